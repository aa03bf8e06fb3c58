package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// reply is one assistant message.
type reply struct {
	id      string
	model   string
	blocks  []map[string]any
	inputs  []string // beside blocks: the JSON of a tool call's input
	reason  string
	tokens  int
	written int
}

func newReply(number int, r Request, t Turn) reply {
	p := reply{
		id:      fmt.Sprintf("msg_standin_%d", number),
		model:   r.Model,
		reason:  "end_turn",
		tokens:  len(r.Body)/4 + 1,
		written: len(t.Text)/4 + 1,
	}
	if t.Text != "" || len(t.ToolUses) == 0 {
		p.blocks = append(p.blocks, map[string]any{"type": "text", "text": t.Text})
		p.inputs = append(p.inputs, "")
	}
	for i, use := range t.ToolUses {
		input := use.Input
		if input == nil {
			input = map[string]any{}
		}
		p.reason = "tool_use"
		p.blocks = append(p.blocks, map[string]any{
			"type": "tool_use", "id": fmt.Sprintf("toolu_standin_%d_%d", number, i+1), "name": use.Name, "input": input,
		})
		p.inputs = append(p.inputs, encode(input))
	}
	return p
}

// message is the whole reply, for a request that is not streamed.
func (p reply) message() map[string]any {
	return map[string]any{
		"id": p.id, "type": "message", "role": "assistant", "model": p.model,
		"content": p.blocks, "stop_reason": p.reason, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": p.tokens, "output_tokens": p.written},
	}
}

// stream writes the reply as server-sent events, each text and each input in two
// parts, so that a reader has to put them together.
func (p reply) stream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	send := func(kind string, fields map[string]any) {
		fields["type"] = kind
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, encode(fields))
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
	start := p.message()
	start["content"], start["stop_reason"] = []any{}, nil
	send("message_start", map[string]any{"message": start})
	for i, b := range p.blocks {
		empty := map[string]any{"type": "text", "text": ""}
		kind, field, whole := "text_delta", "text", ""
		if b["type"] == "tool_use" {
			empty = map[string]any{"type": "tool_use", "id": b["id"], "name": b["name"], "input": map[string]any{}}
			kind, field, whole = "input_json_delta", "partial_json", p.inputs[i]
		} else {
			whole = b["text"].(string)
		}
		send("content_block_start", map[string]any{"index": i, "content_block": empty})
		for _, part := range halves(whole) {
			send("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": kind, field: part}})
		}
		send("content_block_stop", map[string]any{"index": i})
	}
	send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": p.reason, "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": p.written},
	})
	send("message_stop", map[string]any{})
}

// halves cuts s in the middle, between two characters.
func halves(s string) []string {
	runes := []rune(s)
	if len(runes) < 2 {
		return []string{s}
	}
	middle := len(runes) / 2
	return []string{string(runes[:middle]), string(runes[middle:])}
}

// encode marshals values that are made of strings, numbers, maps and lists.
func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("standin: " + err.Error())
	}
	return string(data)
}
