package relay

import (
	"bytes"
	"strings"
	"testing"
)

func TestE2EventsArePickedByteForByte(t *testing.T) {
	var p picked
	for text, want := range map[string]string{
		"plain\n{\"event_type\": \"a\", \"n\": NaN, \"metadata\": null}\r\n{\"event_type\":\"\xff\"}\n{}\n  {\"event\\u005ftype\":\"b\"}\nx\n\n{\"event_type\":\"c\"}": "{\"event_type\": \"a\", \"n\": NaN, \"metadata\": null}\r\n{\"event_type\":\"\xff\"}\n  {\"event\\u005ftype\":\"b\"}\n{\"event_type\":\"c\"}\n",
		"nothing\n":                "",
		"{\"event_type\":\"d\"}\n": "{\"event_type\":\"d\"}\n",
		"{\"event_type\":\"d\"}":   "{\"event_type\":\"d\"}\n",
		"{\"event_type\":\"d\"}\n{\"event_type\":\"e\"}\nx": "{\"event_type\":\"d\"}\n{\"event_type\":\"e\"}\n",
	} {
		p.pick([]byte(text))
		if string(p.lines) != want || p.count != int64(bytes.Count([]byte(want), newline)) || countEvents([]byte(text)) != p.count {
			t.Errorf("%q: %d events, %q", text, p.count, p.lines)
		}
		var all, events []byte
		runs([]byte(text), func(lines []byte, n int64) {
			all = append(all, lines...)
			if n > 0 {
				events = append(events, lines...)
			}
		})
		if string(all) != text || string(bytes.TrimSuffix(events, newline)) != string(bytes.TrimSuffix([]byte(want), newline)) {
			t.Errorf("%q: %q in runs", text, events)
		}
	}
}

// A long text is looked at in two halves; the result is that of one.
func TestE2EventsOfLongTextsArePicked(t *testing.T) {
	var p, whole picked
	for _, part := range []string{"{\"event_type\":\"a\"}\n", "plain\n{\"event_type\":\"b\"}\n", "plain\n", "{\"event_type\":\"c\"}\n{\"n\":1}\n"} {
		for _, end := range []string{"", "x", "{\"event_type\":\"d\"}", "{\"event_type\":\"d\"}\n", "{\"event_type\":\"" + strings.Repeat("e", 3*apart) + "\"}\n"} {
			text := []byte(strings.Repeat(part, 2*apart/len(part)) + end)
			p.pick(text)
			whole.pickAll(text)
			if string(p.lines) != string(whole.lines) || p.count != whole.count || p.all != whole.all {
				t.Errorf("%q...%.40q: %d events, all %v, instead of %d, %v", part, end, p.count, p.all, whole.count, whole.all)
			}
		}
	}
}
