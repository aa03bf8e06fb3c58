package standin

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Request is one request to the Messages API, as far as tests look at it.
type Request struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	// Turn counts the assistant messages of the conversation so far.
	Turn int `json:"turn"`
	// Prompt is the newest text of the user, without the reminders that the CLI
	// adds to it.
	Prompt string `json:"prompt"`
	// Tools are the names of the tools offered.
	Tools []string `json:"tools"`
	// ToolResults are those of the whole conversation, the newest last.
	ToolResults []ToolResult `json:"tool_results"`
	// Body is the request as it came.
	Body json.RawMessage `json:"body"`
}

// ToolResult is what a tool answered.
type ToolResult struct {
	ToolUseID string `json:"tool_use_id"`
	Text      string `json:"text"`
	IsError   bool   `json:"is_error"`
}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

type block struct {
	Type      string  `json:"type"`
	Text      string  `json:"text"`
	ToolUseID string  `json:"tool_use_id"`
	Content   content `json:"content"`
	IsError   bool    `json:"is_error"`
}

// content is a list of blocks; the API allows a string for one text block.
type content []block

func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = content{{Type: "text", Text: text}}
		return nil
	}
	var blocks []block
	if err := json.Unmarshal(data, &blocks); err != nil {
		return err
	}
	*c = blocks
	return nil
}

// text joins the text blocks, reminders left out.
func (c content) text() string {
	var parts []string
	for _, b := range c {
		if b.Type == "text" && !strings.HasPrefix(b.Text, "<system-reminder>") {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

func parseRequest(body []byte) (Request, error) {
	var in struct {
		Model    string    `json:"model"`
		Stream   bool      `json:"stream"`
		Messages []message `json:"messages"`
		Tools    []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, fmt.Errorf("cannot read request: %w", err)
	}
	r := Request{Model: in.Model, Stream: in.Stream, Body: body}
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	for _, m := range in.Messages {
		switch m.Role {
		case "assistant":
			r.Turn++
		case "user":
			r.addUser(m.Content)
		}
	}
	return r, nil
}

func (r *Request) addUser(c content) {
	if text := c.text(); text != "" {
		r.Prompt = text
	}
	for _, b := range c {
		if b.Type == "tool_result" {
			r.ToolResults = append(r.ToolResults, ToolResult{ToolUseID: b.ToolUseID, Text: b.Content.text(), IsError: b.IsError})
		}
	}
}
