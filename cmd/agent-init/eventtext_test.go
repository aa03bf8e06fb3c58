package main

import (
	"strings"
	"testing"
)

// TestE5TextIsSafeForATerminal has what could drive a terminal, or disguise one
// event as two.
func TestE5TextIsSafeForATerminal(t *testing.T) {
	for line, want := range map[string]string{
		`{"event_type":"tool_failed","context":{"error":"a\u001b[2Jb\nc"}}`:                                   `tool_failed error="a\x1b[2Jb\nc"`,
		"{\"event_type\":\"x\u009bm\",\"context\":{\"o\":{\"k\":\"\u009b\xff\"},\"\x7f\":1,\"n\":-Infinity}}": "\"x\\u009bm\" o={\"k\":\"\ufffd\ufffd\"} \ufffd=1 n=-Infinity",
		`{"event_type":"x","context":["a"],"more":"","n":null,"z":"null"}`:                                    `x context=["a"] z=null`,
		`{"event_type":"x","timestamp":"then","long":"` + strings.Repeat("ä", 400) + `"}`:                     "then x long=" + strings.Repeat("ä", maxShown/2) + "...",
	} {
		if got := string(eventText{}.line([]byte(line + "\n"))); got != want+"\n" {
			t.Errorf("%s\ngot  %q\nwant %q", line, got, want)
		}
	}
	got := string(eventText{coloured: true}.line([]byte(`{"event_type":"tool_failed","provider":"p","context":{"a":1}}`)))
	if want := red + "tool_failed" + plain + " p " + faint + "a=" + plain + "1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
