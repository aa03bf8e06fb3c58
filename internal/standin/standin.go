// Package standin answers the Messages API from a script, so that the real agent
// CLI can be run, and made to call tools, without a model. It serves
// POST /v1/messages, streamed as server-sent events or not, and answers the
// CLI's other requests harmlessly. What it was asked is recorded.
package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxRequest bounds a request's body, in bytes; the API's own limit is 32 MB.
const maxRequest = 64 << 20

// Server is a running stand-in.
type Server struct {
	script   Script
	listener net.Listener
	http     *http.Server
	record   io.Writer

	mu       sync.Mutex
	requests []Request
	arrived  chan struct{} // closed and replaced at each request
	lastID   int
}

// Start serves script on address until Close: HOST:PORT, where port 0 is any
// free one, or unix:PATH. Each request is also written to record, if that is not
// nil, as one line of JSON.
func Start(script Script, address string, record io.Writer) (*Server, error) {
	network, addr := "tcp", address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, addr = "unix", path
	}
	listener, err := net.Listen(network, addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	s := &Server{script: script, listener: listener, record: record, arrived: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", countTokens)
	mux.HandleFunc("GET /requests", s.list)
	mux.HandleFunc("/", other)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go s.http.Serve(listener)
	return s, nil
}

// URL is what ANTHROPIC_BASE_URL takes; for a Unix socket, unix:PATH.
func (s *Server) URL() string {
	addr := s.listener.Addr()
	if addr.Network() == "unix" {
		return "unix:" + addr.String()
	}
	return "http://" + addr.String()
}

// Close ends the server and every request that is held.
func (s *Server) Close() error {
	return s.http.Close()
}

// Requests are those to POST /v1/messages so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Wait waits until done says yes to the requests so far, or returns ctx's error.
func (s *Server) Wait(ctx context.Context, done func([]Request) bool) error {
	for {
		s.mu.Lock()
		requests, arrived := slices.Clone(s.requests), s.arrived
		s.mu.Unlock()
		if done(requests) {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for requests after %d of them: %w", len(requests), ctx.Err())
		}
	}
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		status := http.StatusBadRequest
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		writeError(w, status, err.Error())
		return
	}
	request, err := parseRequest(body)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	number := s.add(request)
	turn := s.script.answer(request)
	switch {
	case turn.Hold:
		<-r.Context().Done()
	case turn.Status != 0:
		writeError(w, turn.Status, turn.Text)
	case request.Stream:
		newReply(number, request, turn).stream(w)
	default:
		writeJSON(w, http.StatusOK, newReply(number, request, turn).message())
	}
}

// add records r and returns its number, from 1.
func (s *Server) add(r Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if s.record != nil {
		json.NewEncoder(s.record).Encode(r)
	}
	close(s.arrived)
	s.arrived = make(chan struct{})
	s.lastID++
	return s.lastID
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.Requests())
}

// countTokens answers with a guess of four characters a token.
func countTokens(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxRequest))
	writeJSON(w, http.StatusOK, map[string]any{"input_tokens": n/4 + 1})
}

// other answers what is no part of the API: the CLI looks whether the address
// answers at all with HEAD /.
func other(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" {
		w.WriteHeader(http.StatusOK)
		return
	}
	writeError(w, http.StatusNotFound, "no such resource: "+r.URL.Path)
}

func writeError(w http.ResponseWriter, status int, text string) {
	kind := "api_error"
	switch {
	case status == http.StatusNotFound:
		kind = "not_found_error"
	case status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case status < 500:
		kind = "invalid_request_error"
	}
	writeJSON(w, status, map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": text}})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value)
}
