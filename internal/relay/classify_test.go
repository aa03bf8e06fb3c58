package relay

import (
	"bytes"
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
