// Command mcpserver is a small MCP server over stdio with one tool, for tests
// and the demo:
//
//	mcpserver [-tool NAME] [-answer TEXT]
//
// The tool takes {"text": STRING}; it answers TEXT, in which {text} stands for
// its argument and {env:NAME} for a variable of the server's environment, so
// that a test sees what reached the server. MCPSERVER_TOOL and MCPSERVER_ANSWER
// stand in for the flags. The server ends with its stdin.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// protocol is the version offered to a client that names none.
const protocol = "2025-06-18"

// Error codes of JSON-RPC 2.0.
const (
	parseError     = -32700
	methodNotFound = -32601
	invalidParams  = -32602
)

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type server struct {
	tool, answer string
}

func main() {
	tool := flag.String("tool", fromEnv("MCPSERVER_TOOL", "echo"), "`NAME` of the tool")
	answer := flag.String("answer", fromEnv("MCPSERVER_ANSWER", "{text}"), "`TEXT` that the tool answers")
	flag.Parse()
	if err := (server{*tool, *answer}).serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mcpserver:", err)
		os.Exit(1)
	}
}

func fromEnv(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// serve answers one message a line until in ends.
func (s server) serve(in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	enc := json.NewEncoder(out)
	for {
		line, err := r.ReadBytes('\n')
		if len(strings.TrimSpace(string(line))) > 0 {
			if reply := s.handle(line); reply != nil {
				if err := enc.Encode(reply); err != nil {
					return err
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// handle returns nil for a notification, which takes no answer.
func (s server) handle(line []byte) *response {
	var req request
	if err := json.Unmarshal(line, &req); err != nil {
		return &response{Version: "2.0", ID: json.RawMessage("null"), Error: &rpcError{parseError, err.Error()}}
	}
	if len(req.ID) == 0 {
		return nil
	}
	result, rpcErr := s.call(req)
	return &response{Version: "2.0", ID: req.ID, Result: result, Error: rpcErr}
}

func (s server) call(req request) (any, *rpcError) {
	switch req.Method {
	case "initialize":
		var params struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		json.Unmarshal(req.Params, &params)
		if params.ProtocolVersion == "" {
			params.ProtocolVersion = protocol
		}
		return map[string]any{
			"protocolVersion": params.ProtocolVersion,
			"capabilities":    map[string]any{"tools": map[string]any{}},
			"serverInfo":      map[string]any{"name": "mcpserver", "version": "1.0.0"},
		}, nil
	case "ping":
		return map[string]any{}, nil
	case "tools/list":
		return map[string]any{"tools": []any{map[string]any{
			"name":        s.tool,
			"description": "Answers a text.",
			"inputSchema": map[string]any{
				"type":       "object",
				"properties": map[string]any{"text": map[string]any{"type": "string"}},
				"required":   []string{"text"},
			},
		}}}, nil
	case "tools/call":
		return s.callTool(req.Params)
	}
	return nil, &rpcError{methodNotFound, "no such method: " + req.Method}
}

func (s server) callTool(data []byte) (any, *rpcError) {
	var params struct {
		Name      string `json:"name"`
		Arguments struct {
			Text *string `json:"text"`
		} `json:"arguments"`
	}
	if err := json.Unmarshal(data, &params); err != nil {
		return nil, &rpcError{invalidParams, err.Error()}
	}
	if params.Name != s.tool {
		return nil, &rpcError{invalidParams, "no such tool: " + params.Name}
	}
	if params.Arguments.Text == nil {
		return nil, &rpcError{invalidParams, "text is missing"}
	}
	text := fill(s.answer, *params.Arguments.Text)
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}, nil
}

// fill puts text and the environment into the answer's placeholders.
func fill(answer, text string) string {
	return regexp.MustCompile(`\{text\}|\{env:[^}]*\}`).ReplaceAllStringFunc(answer, func(p string) string {
		if p == "{text}" {
			return text
		}
		return os.Getenv(strings.TrimSuffix(strings.TrimPrefix(p, "{env:"), "}"))
	})
}
