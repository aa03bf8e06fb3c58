package standin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func start(t *testing.T, script Script) *Server {
	t.Helper()
	s, err := Start(script, "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// post sends body and returns the status and what came back.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

const conversation = `{"model":"m","stream":true,"tools":[{"name":"Bash"}],"messages":[
	{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"list"}]},
	{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},
	{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a b"}]}]},
	{"role":"system","content":"a note"}]}`

func TestStreamSendsTextAndToolInputInParts(t *testing.T) {
	s := start(t, Script{Turns: []Turn{{}, {Text: "saw {tool_result}", ToolUses: []ToolUse{{Name: "Bash", Input: map[string]any{"command": "ls \"x\""}}}}}})
	status, body := post(t, s.URL()+"/v1/messages?beta=true", conversation)
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	var kinds []string
	var text, input, reason string
	for record := range strings.SplitSeq(strings.TrimSpace(body), "\n\n") {
		kind, data, _ := strings.Cut(strings.TrimPrefix(record, "event: "), "\ndata: ")
		var ev struct {
			Type  string
			Delta struct {
				Text        string
				PartialJSON string `json:"partial_json"`
				StopReason  string `json:"stop_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &ev); err != nil {
			t.Fatalf("%q: %v", record, err)
		}
		if ev.Type != kind {
			t.Errorf("event %q holds type %q", kind, ev.Type)
		}
		kinds = append(kinds, kind)
		text += ev.Delta.Text
		input += ev.Delta.PartialJSON
		reason += ev.Delta.StopReason
	}
	want := strings.Fields(`message_start
		content_block_start content_block_delta content_block_delta content_block_stop
		content_block_start content_block_delta content_block_delta content_block_stop
		message_delta message_stop`)
	if d := cmp.Diff(want, kinds); d != "" {
		t.Error(d)
	}
	if text != "saw a b" || input != `{"command":"ls \"x\""}` || reason != "tool_use" {
		t.Errorf("text %q, input %q, stop reason %q", text, input, reason)
	}
}

func TestRequestsAreRecorded(t *testing.T) {
	var record bytes.Buffer
	s, err := Start(Script{}, "127.0.0.1:0", &record)
	if err != nil {
		t.Fatal(err)
	}
	post(t, s.URL()+"/v1/messages", conversation)
	s.Close()
	got := s.Requests()
	if len(got) != 1 {
		t.Fatalf("%d requests recorded", len(got))
	}
	want := Request{Model: "m", Stream: true, Turn: 1, Prompt: "list", Tools: []string{"Bash"},
		ToolResults: []ToolResult{{ToolUseID: "t1", Text: "a b"}}, Body: json.RawMessage(conversation)}
	if d := cmp.Diff(want, got[0]); d != "" {
		t.Error(d)
	}
	if n := strings.Count(record.String(), "\n"); n != 1 {
		t.Errorf("record holds %d lines: %s", n, record.String())
	}
}

func TestWithoutStreamTheReplyIsOneMessage(t *testing.T) {
	s := start(t, Script{})
	_, body := post(t, s.URL()+"/v1/messages", `{"model":"m","messages":[{"role":"user","content":"good morning"}]}`)
	var m struct {
		Content    []struct{ Text string }
		StopReason string `json:"stop_reason"`
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Content) != 1 || m.Content[0].Text != "you said: good morning" || m.StopReason != "end_turn" {
		t.Errorf("got %s", body)
	}
}

func TestSideRequestsDoNotUseATurn(t *testing.T) {
	s := start(t, Script{Turns: []Turn{{Text: "the first turn"}}})
	if _, body := post(t, s.URL()+"/v1/messages", `{"messages":[{"role":"user","content":"a title, please"}]}`); !strings.Contains(body, "you said: a title, please") {
		t.Errorf("a request without tools got %s", body)
	}
	if status, body := post(t, s.URL()+"/v1/messages/count_tokens", `{"messages":[]}`); status != http.StatusOK || !strings.Contains(body, "input_tokens") {
		t.Errorf("count_tokens: %d %s", status, body)
	}
	if n := len(s.Requests()); n != 1 {
		t.Errorf("%d requests recorded, want 1", n)
	}
}

func TestBadRequestsAndScriptedErrors(t *testing.T) {
	s := start(t, Script{Turns: []Turn{{Status: http.StatusTooManyRequests, Text: "slow down"}}})
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v1/messages", `{`, http.StatusBadRequest, "invalid_request_error"},
		{"/v1/messages", `{"tools":[{"name":"x"}],"messages":[]}`, http.StatusTooManyRequests, "slow down"},
		{"/v1/nothing", `{}`, http.StatusNotFound, "not_found_error"},
	} {
		if status, body := post(t, s.URL()+c.path, c.body); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, body)
		}
	}
}

func TestHeldTurnEndsWithItsClientOrTheServer(t *testing.T) {
	s := start(t, Script{Turns: []Turn{{Hold: true}}})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		res, err := http.Post(s.URL()+"/v1/messages", "application/json", strings.NewReader(`{"tools":[{"name":"x"}],"messages":[]}`))
		if err == nil {
			res.Body.Close()
		}
		ended <- err
	}()
	if err := s.Wait(ctx, func(r []Request) bool { return len(r) == 1 }); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Fatalf("the held request was answered: %v", err)
	default:
	}
	s.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the held request got an answer from a closed server")
		}
	case <-ctx.Done():
		t.Error("the held request outlived the server")
	}
}

func TestListensOnAUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	s, err := Start(Script{}, "unix:"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.URL() != "unix:"+path {
		t.Errorf("URL %q", s.URL())
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	res, err := client.Head("http://standin/")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("HEAD / answered %d", res.StatusCode)
	}
}

func TestParseScriptRefusesWhatItDoesNotKnow(t *testing.T) {
	got, err := ParseScript([]byte(`{"turns":[{"text":"a","tool_uses":[{"name":"Bash","input":{"command":"ls"}}]}]}`))
	want := Script{Turns: []Turn{{Text: "a", ToolUses: []ToolUse{{Name: "Bash", Input: map[string]any{"command": "ls"}}}}}}
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{``, `[]`, `{"turn":[]}`, `{"turns":[]} {}`, `{"turns":[]} x`} {
		if _, err := ParseScript([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
