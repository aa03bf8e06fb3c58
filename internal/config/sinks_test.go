package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestE5SinksAreParsed(t *testing.T) {
	clean(t)
	t.Setenv("AGENTIC_EVENTS", "file:/var/log/a:b.jsonl, unix:/run/s,stderr")
	t.Setenv("AGENTIC_EVENTS_OVERFLOW", "drop")
	c, found := Environment()
	want := []Sink{{SinkFile, "/var/log/a:b.jsonl"}, {SinkUnix, "/run/s"}, {Kind: SinkStderr}}
	if diff := cmp.Diff(want, c.Events.List); diff != "" || len(found) > 0 || c.EventsOverflow != "drop" {
		t.Error(diff, found)
	}
	if !c.Events.Has(SinkStderr) || c.Events.Has(SinkAuto) {
		t.Error("Has")
	}
	if got := c.Events.List[0].String() + c.Events.List[2].String(); got != "file:/var/log/a:b.jsonlstderr" {
		t.Error(got)
	}
}

func TestE5WrongSinksSayWhatIsAllowed(t *testing.T) {
	clean(t)
	for text, why := range map[string]string{
		"journal":                           `"journal" is no sink`,
		"file":                              `"file" has no absolute path`,
		"file:events.jsonl":                 `"file:events.jsonl" has no absolute path`,
		"unix:":                             `"unix:" has no absolute path`,
		"unix:/" + strings.Repeat("x", 107): "longer than a socket's may be",
		"stderr:/x":                         `"stderr" has no path`,
		"none,stderr":                       `"none" stands beside another sink`,
		"stderr,stderr":                     `"stderr" is there twice`,
		"stderr,,":                          `"" is no sink`,
	} {
		t.Setenv("AGENTIC_EVENTS", text)
		_, found := Environment()
		if len(found) != 1 || !strings.Contains(found[0].Error(), why) || !strings.Contains(found[0].Error(), "file:/PATH") || !strings.HasPrefix(found[0].Error(), "cannot use AGENTIC_EVENTS: ") {
			t.Errorf("%s: %v", text, found)
		}
	}
	t.Setenv("AGENTIC_EVENTS", "")
	t.Setenv("AGENTIC_EVENTS_OVERFLOW", "spill")
	if _, found := Environment(); len(found) != 1 || !strings.Contains(found[0].Error(), "use block, drop") {
		t.Error(found)
	}
}
