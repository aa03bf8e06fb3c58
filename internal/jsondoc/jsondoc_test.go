package jsondoc

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// wantAgreement fails where parseQuick takes what parseStrict refuses, or makes
// something else of it.
func wantAgreement(t *testing.T, data []byte) (taken bool) {
	t.Helper()
	got, ok := parseQuick(data)
	if !ok {
		return false
	}
	want, offset, why := parseStrict(data)
	if why != "" {
		t.Fatalf("%q was taken, but at %d %s", data, offset, why)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q:\n%+v is not\n%+v", data, got, want)
	}
	return true
}

func TestQuickAgreesWithStrict(t *testing.T) {
	var many []string
	for i := range 2 * maxCompared {
		many = append(many, fmt.Sprintf("%q:%d", fmt.Sprint("n", i), i))
	}
	for text, want := range map[string]bool{
		"{}": true, " [ ] ": true, `""`: true, "0": true, "-0.5e+10": true, "1E5": true, "true": true, "null": true, "\r\n\tfalse\n": true,
		`{"a": [1, {"b": [], "c": {}}, "d"], "e": -2}`: true, `"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00"`: true, "\"\u2028\x7f\u00e4\"": true,
		`{"": {"": ""}}`: true, "{\"a\" : 1 , \"b\"\n:\t2}": true,
		strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth):           true,
		strings.Repeat("[", MaxDepth+1) + "1" + strings.Repeat("]", MaxDepth+1): false,
		strings.Repeat(`{"a":`, MaxDepth) + "1" + strings.Repeat("}", MaxDepth): true,
		"{" + strings.Join(many[:maxCompared], ",") + "}":                       true,
		"{" + strings.Join(many, ",") + "}":                                     false,
		"":                                                                      false, "01": false, "1.": false, ".5": false, "+1": false, "1e": false, "-": false, "tru": false, "nul1": false, "NaN": false,
		"[1,]": false, `{"a":1,}`: false, `{"a" 1}`: false, `{a:1}`: false, "{1:2}": false, "[1 2]": false, "[,]": false, "1 2": false, "]": false,
		`"a`: false, `"\`: false, `"\x"`: false, `"\ud800"`: false, "\"\t\"": false, "\"\x00\"": false, "\"\xff\"": false, "\v1": false,
		`{"a":1,"a":2}`: false, `{"a":1,"\u0061":2}`: false, `{"b":{"a":1},"a":{"a":2}}`: true, "[[1],[2]]": true, "{": false, "[": false,
		"\u00a01": false,
	} {
		if got := wantAgreement(t, []byte(text)); got != want {
			t.Errorf("%q: taken %v", text, got)
		}
		if _, _, why := parseStrict([]byte(text)); (why == "") != want && len(text) < 300 {
			t.Errorf("%q: strict says %q", text, why)
		}
	}
}

func TestParseKeepsOrderTextAndPositions(t *testing.T) {
	d, p := Parse("manifest", "/f", []byte("{\n  \"b\": [1, \"\\u00e4\"],\n  \"a\": {\"x\": null}\n}\n"))
	if p != nil {
		t.Fatal(p)
	}
	if len(d.Root.Members) != 2 || d.Root.Members[0].Name != "b" {
		t.Fatalf("members %+v", d.Root.Members)
	}
	b, _ := d.Root.Get("b")
	if b.Elements[1].Text != "ä" || string(d.Raw(b.Elements[1])) != `"\u00e4"` {
		t.Errorf("element %+v", b.Elements[1])
	}
	if string(d.Raw(b)) != `[1, "\u00e4"]` {
		t.Errorf("raw %s", d.Raw(b))
	}
	a, _ := d.Root.Get("a")
	x, _ := a.Get("x")
	if line, col := d.Position(x.Start); line != 3 || col != 14 {
		t.Errorf("position %d:%d", line, col)
	}
	if w := d.Warning(x.Start, "odd", "").Text(); w != "manifest /f:3:14: odd" {
		t.Error(w)
	}
}

func TestParseRefusesWithOneClearLine(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", "", "/f:1:1: it is empty"},
		{"blank", " \n\t", "/f:1:1: it is empty"},
		{"bom", "\xef\xbb\xbf{}", "/f:1:1: it begins with a byte order mark"},
		{"utf16", "\xff\xfe{\x00}\x00", "/f:1:1: it is UTF-16"},
		{"latin1", "{\"a\":\n \"b\xe4\"}", "/f:2:4: it is not valid UTF-8"},
		{"duplicate", "{\"api\": 1,\n \"b\": 2,\n  \"api\": 3}", `/f:3:3: duplicate key "api"`},
		{"duplicate spelled otherwise", `{"a": 1, "\u0061": 2}`, `/f:1:10: duplicate key "a"`},
		{"truncated", "{\"a\": [1,\n", "/f:1:10: it ends in the middle of a value"},
		{"two documents", "{}\n{}", "/f:2:1: there is more after the end of the document"},
		{"trailing", "{} x", "/f:1:4: "},
		{"trailing comma", "{\"a\": 1,\n}", "/f:1:8: there is a comma before the closing }"},
		{"comment", "// hi\n{}", "/f:1:1: "},
		{"single quotes", "{'a': 1}", "/f:1:2: "},
		{"umlaut before", "{\"ä\": x}", "/f:1:7: "},
		{"deep arrays", strings.Repeat("[", 20000), "/f:1:102: it is nested more than 100 levels deep"},
		{"deep objects", strings.Repeat(`{"a":`, 20000), "it is nested more than 100 levels deep"},
		{"NaN", `{"a": NaN}`, "/f:1:7: "},
		{"lone surrogate", `{"a": "\ud800"}`, "/f:1:8: invalid surrogate pair"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, p := Parse("manifest", "/f", []byte(tt.in))
			if p == nil {
				t.Fatal("accepted")
			}
			if got := p.Text(); !strings.HasPrefix(got, "cannot read manifest /f:") || !strings.Contains(got, tt.want) || strings.Contains(got, "jsontext") {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{}`, `[1,2.5e3,"a",null,true]`, `{"a":{"b":[{}]}}`, "{\"a\":1,\"a\":2}", "\xef\xbb\xbf{}", `{"a":"\ud83d\ude00"}`, "[[[", `"x" "y"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		wantAgreement(t, data)
		d, p := Parse("manifest", "/f", data)
		if (d == nil) == (p == nil) {
			t.Fatalf("document %v, problem %v", d, p)
		}
		if p != nil {
			if p.Line < 1 || p.Column < 1 || p.Why == "" || strings.Contains(p.Text(), "\n") {
				t.Fatalf("problem %+v", p)
			}
			return
		}
		var walk func(Value)
		walk = func(v Value) {
			if !d.Raw(v).IsValid() {
				t.Fatalf("raw value %q of %q", d.Raw(v), data)
			}
			for _, m := range v.Members {
				if data[m.NameStart] != '"' {
					t.Fatalf("name start %d in %q", m.NameStart, data)
				}
				walk(m.Value)
			}
			for _, e := range v.Elements {
				walk(e)
			}
		}
		walk(d.Root)
	})
}
