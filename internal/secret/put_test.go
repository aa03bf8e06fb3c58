package secret

import (
	"maps"
	"strings"
	"testing"
)

func TestB1WhatIsPut(t *testing.T) {
	got, bad := ParsePut([]byte(`{"A_TOKEN": "x\ny\u00e9", "b2": ""}` + "\n"))
	if bad != nil || !maps.Equal(got, map[string]string{"A_TOKEN": "x\nyé", "b2": ""}) {
		t.Error(got, bad)
	}
}

func TestB1BadPutsAreRefusedWithoutTheirValues(t *testing.T) {
	const token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	for text, want := range map[string]string{
		token:             "stdin:1:1: ",
		"'" + token:       "stdin:1:1: it is not valid JSON",
		`"` + token + `"`: "stdin:1:1: it holds a string, not an object",
		"":                "stdin:1:1: it is empty",
		"{}":              "stdin:1:1: the object holds no secret",
		`{"A": "` + token + `", "A": "` + token + `"}`: "stdin:1:51: a name stands there twice",
		`{"A":
 ["` + token + `"]}`: "stdin:2:2: A is an array, not a string",
		`{"A": null}`:                                  "stdin:1:7: A is null, not a string",
		`{"` + token + `-": "x"}`:                      "stdin:1:2: what stands in the place of a name",
		`{"1A": "` + token + `"}`:                      "is not the name of a variable",
		`{"A=B": "` + token + `"}`:                     "is not the name of a variable",
		`{"": "` + token + `"}`:                        "is not the name of a variable",
		`{"A": "` + token + `\u0000"}`:                 "A contains a NUL byte",
		`{"AGENTIC_USER": "` + token + `"}`:            "AGENTIC_USER is a setting of agent-init's",
		`{"A": "` + token + `"} {}`:                    "there is more after the end",
		`{"A": "` + token:                              "it ends in the middle of a value",
		`{"A": "` + strings.Repeat(token, 4000) + `"}`: "A is longer than a variable can be",
		strings.Repeat(" ", PutLimit+1):                "there are more than 1048576 bytes",
		`{"A": "` + token + "\xff\"}":                  "not valid UTF-8",
	} {
		got, bad := ParsePut([]byte(text))
		if got != nil || bad == nil || !strings.Contains(bad.Text(), want) || strings.Contains(bad.Error(), "16C7e42F29") {
			t.Errorf("%.60q: got %v, %v; want %q", text, got, bad, want)
		}
	}
}

func TestB1PutComesFirst(t *testing.T) {
	s := Sources{Put: map[string]string{"X": "put", "EMPTY": ""}, Env: env{"X": "env", "EMPTY": "env"}.lookup}
	for name, want := range map[string]Value{"X": {"X", "put", Put, ""}, "EMPTY": {"EMPTY", "env", Environment, ""}} {
		if got, bad := s.Lookup(name); got != want || bad != nil {
			t.Error(got, bad)
		}
	}
}

func FuzzParsePut(f *testing.F) {
	for _, seed := range []string{`{"A": "b"}`, `{"A": "b", "A": "c"}`, "", "[]", `{"A": 1}`, "\xef\xbb\xbf{}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		values, bad := ParsePut(data)
		if (bad == nil) != (len(values) > 0) {
			t.Error(values, bad)
		}
		for name, value := range values {
			if !IsVariable(name) || CheckPut(name, value) != "" {
				t.Errorf("%q", name)
			}
		}
	})
}
