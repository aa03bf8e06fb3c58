package standin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Script is what the stand-in answers. A conversation is answered turn by turn:
// its n-th request gets the n-th turn, counted by the assistant messages that it
// already holds, so that a repeated request gets the same answer and several
// sessions can use one script at the same time. After the last turn, and with no
// turns at all, the answer is DefaultText.
type Script struct {
	Turns []Turn `json:"turns"`
}

// Turn is one answer: text, then tool calls.
type Turn struct {
	// Text may hold {prompt}, the newest text of the user, {tool_result}, the
	// newest tool result, and {tool_results}, all of them.
	Text string `json:"text,omitempty"`
	// ToolUses are the tools that the agent is made to call.
	ToolUses []ToolUse `json:"tool_uses,omitempty"`
	// Status, if not 0, is the HTTP status of an API error whose message is Text.
	Status int `json:"status,omitempty"`
	// Hold keeps the request unanswered until the client goes away, so that an
	// agent can be stopped in the middle of a turn.
	Hold bool `json:"hold,omitempty"`
}

// ToolUse is one tool call. The tool of an MCP server has the name
// mcp__SERVER__TOOL.
type ToolUse struct {
	Name  string         `json:"name"`
	Input map[string]any `json:"input"`
}

// DefaultText is the answer where the script has none.
const DefaultText = "you said: {prompt}"

// ParseScript reads a Script from JSON. A field that Script does not have is an
// error.
func ParseScript(data []byte) (Script, error) {
	var script Script
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&script); err != nil {
		return Script{}, fmt.Errorf("cannot read script: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Script{}, fmt.Errorf("cannot read script: text after its end")
	}
	return script, nil
}

// answer is the turn for r, its placeholders filled in.
func (s Script) answer(r Request) Turn {
	turn := Turn{Text: DefaultText}
	// A request that offers no tools is none of the conversation's: the CLI asks
	// for a title or a summary.
	if len(r.Tools) > 0 && r.Turn < len(s.Turns) {
		turn = s.Turns[r.Turn]
	}
	var newest string
	var all []string
	for _, result := range r.ToolResults {
		newest = result.Text
		all = append(all, newest)
	}
	turn.Text = strings.NewReplacer(
		"{prompt}", r.Prompt, "{tool_result}", newest, "{tool_results}", strings.Join(all, "; "),
	).Replace(turn.Text)
	return turn
}
