package event

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMembersAsTheyStand(t *testing.T) {
	var got []string
	collect := func(name string, value []byte) { got = append(got, name+"="+string(value)) }
	text := "  { \"a\" : 1.50,\"b\\u0063\":\"x\\n\\u00e9\" , \"n\":NaN,\"o\": {\"p\": [1, -Infinity]},\"a\":null,\"\xff\":\"\xff\" }\r\n"
	if !Members([]byte(text), collect) {
		t.Error("not taken")
	}
	want := "a=1.50|bc=\"x\\n\\u00e9\"|n=NaN|o={\"p\": [1, -Infinity]}|a=null|\ufffd=\"\xff\""
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("got  %q\nwant %q", s, want)
	}
	for _, no := range []string{"", "[]", `{"a":}`, `{"a"`, `{"a":1`, "x", `{"a":1} x`} {
		if Members([]byte(no), func(name string, _ []byte) { t.Errorf("%q: visits %s", no, name) }) {
			t.Errorf("%q is taken", no)
		}
	}
	if !Members([]byte("{}"), collect) {
		t.Error("{} is not taken")
	}
}

func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"event_type":"x","context":{"a":[{}]},"x\"y":1e5}`))
	f.Add([]byte(`{ }`))
	f.Add([]byte("{\"\xff\":NaN}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := map[string]bool{}
		taken := Members(text, func(name string, value []byte) { got[name] = true })
		var want map[string]any
		if json.Unmarshal(text, &want) == nil && want != nil && !strings.ContainsAny(string(text), "\n") {
			if !taken {
				t.Fatal("not taken")
			}
			if len(got) != len(want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	})
}
