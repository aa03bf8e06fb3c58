package problem

import "testing"

func TestTextIsOneLineWithPlaceAndReason(t *testing.T) {
	tests := []struct {
		p    Problem
		want string
	}{
		{Problem{What: "cannot read MCP config", File: "/repos/b/.claude-ops/mcp.json", Line: 14, Column: 7, Why: `duplicate key "api"`},
			`cannot read MCP config /repos/b/.claude-ops/mcp.json:14:7: duplicate key "api"`},
		{Problem{What: "cannot read plugin manifest", File: "/p/new\nline/plugin.json", Why: "it is empty"},
			`cannot read plugin manifest "/p/new\nline/plugin.json": it is empty`},
		{Problem{What: "cannot use AGENTIC_STOP_GRACE", Why: "\"x\x1b[31m\" is no duration"},
			`cannot use AGENTIC_STOP_GRACE: "x\x1b[31m" is no duration`},
		{Problem{What: "odd", File: "/f", Line: 3}, "odd /f:3"},
		{Problem{What: "cannot read", File: "/p/\xff", Why: "a\xffb"}, `cannot read "/p/\xff": a` + `\ufffd` + `b`},
	}
	for _, tt := range tests {
		if got := tt.p.Text(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestListSeverities(t *testing.T) {
	l := List{{Severity: Warning, What: "a"}}
	if l.Refuses() {
		t.Error("a list of warnings refuses")
	}
	l.Add(Problem{What: "b"})
	if !l.Refuses() || len(l.Only(Error)) != 1 || len(l.Only(Warning)) != 1 {
		t.Errorf("got %v", l)
	}
	if l.Downgraded().Refuses() || !l.Refuses() {
		t.Error("Downgraded must return a copy without errors")
	}
}
