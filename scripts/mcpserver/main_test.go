package main

import (
	"strings"
	"testing"
)

func TestServeAnswersEachRequestOnItsOwnLine(t *testing.T) {
	t.Setenv("SHELF", "{text}")
	for _, c := range []struct{ name, in, want string }{
		{"initialize keeps the client's version", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}`, `"protocolVersion":"2024-11-05"`},
		{"a notification takes no answer", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``},
		{"tools are listed", `{"jsonrpc":"2.0","id":"a","method":"tools/list"}`, `"name":"find"`},
		{"a call is answered", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"find","arguments":{"text":"bolt {env:SHELF}"}}}`, `"text":"{text}: bolt {env:SHELF}"`},
		{"a call without its argument", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"find"}}`, `"code":-32602`},
		{"another tool", `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"other","arguments":{"text":""}}}`, `no such tool: other`},
		{"another method", `{"jsonrpc":"2.0","id":5,"method":"resources/list"}`, `"code":-32601`},
		{"no JSON", `{`, `"code":-32700`},
		{"an empty line", ``, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := (server{"find", "{env:SHELF}: {text}"}).serve(strings.NewReader(c.in+"\n"), &out); err != nil {
				t.Fatal(err)
			}
			if c.want == "" && out.Len() > 0 || !strings.Contains(out.String(), c.want) {
				t.Errorf("got %q, want %q", out.String(), c.want)
			}
			if n := strings.Count(out.String(), "\n"); n > 1 {
				t.Errorf("%d lines", n)
			}
		})
	}
}
