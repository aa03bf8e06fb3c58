package event

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestE6ShapeOfOwnEvents(t *testing.T) {
	at := time.Date(2026, 11, 21, 8, 45, 47, 785947123, time.FixedZone("", 3600))
	e := New("agent_exited", "s1", "claude", at).Add(
		Int("code", 143),
		String("signal", "TERM \"<\n\xff"),
		Float("duration_s", 1.5),
		Float("nan", math.NaN()),
		Bool("oom", false),
		Strings("names", []string{"a", "b"}),
		Object("usage", Int("peak", 1)),
		List("plugins", []Member{String("name", "p")}, nil),
		Raw("report", []byte("{\n \"a\": [1, 2]\n}\n")),
		Raw("broken", []byte(`{"a":`)),
	)
	got := string(e.AppendJSON([]byte("before ")))
	want := `before {"event_type":"agent_exited","timestamp":"2026-11-21T07:45:47.785947+00:00","session_id":"s1","provider":"claude",` +
		`"context":{"code":143,"signal":"TERM \"<\n` + "\ufffd" + `","duration_s":1.5,"nan":"NaN","oom":false,"names":["a","b"],"usage":{"peak":1},` +
		`"plugins":[{"name":"p"},{}],"report":{"a":[1,2]},"broken":"{\"a\":"}}` + "\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !IsEvent([]byte(strings.TrimPrefix(got, "before "))) {
		t.Error("it is no event line")
	}
	if got := string(New("x", "", "", at).AppendJSON(nil)); !strings.HasSuffix(got, `"context":{}}`+"\n") {
		t.Errorf("no context: %s", got)
	}
}

func TestE2WhatIsAnEvent(t *testing.T) {
	for line, want := range map[string]bool{
		`{"event_type":"x"}`:               true,
		"{\"event_type\":\"x\"}\n":         true,
		"{\"event_type\":\"x\"}\r\n":       true,
		" \t {\"event_type\" : \"x\" } \r": true,
		`{"event_type": "x", "metadata": null, "cost": NaN, "a": [Infinity, -Infinity, -0.5e+7, [], {}], "t": true, "f": false}`: true,
		"{\"event_type\":\"x\",\"raw\":\"\xff\xfe\xc3\"}":                                                                        true,
		"{\"event_type\":\"\xff\"}":                                    true,
		`{"event\u005ftype":"x"}`:                                      true,
		`{"event_type":"","event_type":"x"}`:                           true,
		`{"event_type":5,"context":{"event_type":5},"event_type":"x"}`: true,
		`{"event_type":"x","u":"\ud83d\udd11\uDEAD\"\\\/\b\f\n\r\t"}`:  true,

		``:                                      false,
		`{}`:                                    false,
		`[{"event_type":"x"}]`:                  false,
		`"event_type"`:                          false,
		`{"event_type":""}`:                     false,
		`{"event_type":null}`:                   false,
		`{"event_type":5}`:                      false,
		`{"event_type":["x"]}`:                  false,
		`{"event_type":"x","event_type":""}`:    false,
		`{"event_type":"x","event_type":1}`:     false,
		`{"context":{"event_type":"x"}}`:        false,
		`{"Event_Type":"x"}`:                    false,
		`{"event_type":"x"`:                     false,
		`{"event_type":"x","a":"b`:              false,
		`{"event_type":"x"}}`:                   false,
		`{"event_type":"x"} {"event_type":"x"}`: false,
		`{"event_type":"x","a":"tor{"event_type":"y"}n"}`:     false,
		`log: {"event_type":"x"}`:                             false,
		`{'event_type':'x'}`:                                  false,
		`{"event_type":"x",}`:                                 false,
		`{"event_type":"x","a":[1,]}`:                         false,
		`{"event_type":"x","a":01}`:                           false,
		`{"event_type":"x","a":1.}`:                           false,
		`{"event_type":"x","a":-}`:                            false,
		`{"event_type":"x","a":1e}`:                           false,
		`{"event_type":"x","a":+1}`:                           false,
		`{"event_type":"x","a":nan}`:                          false,
		`{"event_type":"x","a":-NaN}`:                         false,
		`{"event_type":"x","a":"\x"}`:                         false,
		`{"event_type":"x","a":"\u12g4"}`:                     false,
		`{"event_type":"x" "a":1}`:                            false,
		`{"event_type""x"}`:                                   false,
		"{\"event_type\":\"x\",\"a\":\"\t\"}":                 false,
		"{\"event_type\":\"x\",\"a\":\"\x00\"}":               false,
		"{\"event_type\":\"x\",\n\"a\":1}":                    false,
		"{\"event_type\":\"x\"}\x00":                          false,
		"\ufeff{\"event_type\":\"x\"}":                        false,
		`{"event_type":"x","a":` + strings.Repeat("[", 20000): false,
	} {
		if got := IsEvent([]byte(line)); got != want {
			t.Errorf("IsEvent(%.100q) = %v", line, got)
		}
	}
	deep := 9000
	if !IsEvent([]byte(`{"event_type":"x","a":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + "}")) {
		t.Error("a deep event is refused")
	}
}

const example = `{"event_type": "tool_execution_started", "timestamp": "2026-11-21T07:45:47.785947+00:00", "session_id": "s1", "provider": "claude", "context": {"tool_name": "Bash", "tool_use_id": "toolu_1", "input_preview": "{\"command\": \"ls\"}", "n": -1.5e3}, "metadata": null, "x": [true, false]}`

// TestE2NoPartOfAnEventIsOne cuts an event anywhere, and puts pieces of two
// together.
func TestE2NoPartOfAnEventIsOne(t *testing.T) {
	for cut := range len(example) {
		for _, torn := range []string{example[:cut], example[cut:], example[:cut] + example, example + example[cut:]} {
			if torn != example && IsEvent([]byte(torn)) {
				t.Errorf("cut at %d: %s", cut, torn)
			}
		}
	}
}

func TestE2RecognitionDoesNotAllocate(t *testing.T) {
	line := []byte(example)
	if n := testing.AllocsPerRun(100, func() { IsEvent(line) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// asJSONReader decides as encoding/json would; ok is false for what it refuses.
func asJSONReader(line []byte) (event, ok bool) {
	var object map[string]any
	if err := json.Unmarshal(line, &object); err != nil {
		return false, false
	}
	kind, _ := object["event_type"].(string)
	return kind != "", true
}

func FuzzIsEvent(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(`{"event\u005Ftype":"x","event_type":[1,2.5e-7,{"a":{}}],"event_type":"y"}`))
	f.Add([]byte(`{"event_type":"x","a":NaN,"b":-Infinity}`))
	f.Add([]byte("{\"event_type\":\"\xff\"}\r\n"))
	f.Add([]byte(`{"event_type":{"event_type":"x"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		got := IsEvent(line)
		want, valid := asJSONReader(line)
		if bytes.ContainsAny(bytes.TrimSuffix(line, []byte("\n")), "\n") {
			want = false // Not one line.
		}
		if valid && got != want {
			t.Fatalf("%q: got %v, want %v", line, got, want)
		}
		if valid || !got {
			return
		}
		// What JSON refuses is an event only for these words, anywhere but in strings.
		for _, word := range []string{"-Infinity", "Infinity", "NaN"} {
			line = bytes.ReplaceAll(line, []byte(word), bytes.Repeat([]byte("1"), len(word)))
		}
		if _, ok := asJSONReader(line); !ok {
			t.Fatalf("%q is taken for an event", line)
		}
	})
}

func BenchmarkIsEvent(b *testing.B) {
	for name, line := range map[string]string{
		"300B":   example,
		"4KB":    strings.Replace(example, "ls", strings.Repeat("some command and its text ", 150), 1),
		"no":     "just a line of log output that is no event at all",
		"braced": "{ this is no JSON but begins like it",
	} {
		b.Run(name, func(b *testing.B) {
			p := []byte(line)
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				IsEvent(p)
			}
		})
	}
}
