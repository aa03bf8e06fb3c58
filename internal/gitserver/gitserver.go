// Package gitserver is a git server over HTTPS with basic authentication, for
// tests: git http-backend behind a small HTTP server.
package gitserver

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Server serves one repository to one user at a time.
type Server struct {
	// URL is the repository's, Host its host and port.
	URL, Host string
	// CA is the path of the certificate, for GIT_SSL_CAINFO.
	CA string

	mu          sync.Mutex
	user, token string
	served      int
	refused     int
}

// New starts a server with a repository that has one commit and the given file
// in it. It ends with the test.
func New(t testing.TB, user, token, file string) *Server {
	t.Helper()
	dir := t.TempDir()
	bare, work := filepath.Join(dir, "repo.git"), filepath.Join(dir, "work")
	git(t, "init", "-q", "--bare", "-b", "main", bare)
	git(t, "-C", bare, "config", "http.receivepack", "true")
	git(t, "clone", "-q", bare, work)
	if err := os.WriteFile(filepath.Join(work, file), []byte(file+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, "-C", work, "add", ".")
	git(t, "-C", work, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "first")
	git(t, "-C", work, "push", "-q", "origin", "HEAD:main")

	s := &Server{user: user, token: token}
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: path, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.lets(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	// git looks at the certificate and leaves once before it asks.
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	s.Host = strings.TrimPrefix(server.URL, "https://")
	s.URL = server.URL + "/repo.git"
	s.CA = filepath.Join(dir, "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(s.CA, certificate, 0o644); err != nil {
		t.Fatal(err)
	}
	// The certificate has to be in reach of other users.
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	return s
}

// SetToken is what is accepted from now on.
func (s *Server) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Counts are how many requests came with the right token, and how many with a
// wrong one.
func (s *Server) Counts() (served, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served, s.refused
}

func (s *Server) lets(r *http.Request) bool {
	user, token, tried := r.BasicAuth()
	s.mu.Lock()
	defer s.mu.Unlock()
	ok := tried && user == s.user && token == s.token
	switch {
	case ok:
		s.served++
	case tried:
		s.refused++
	}
	return ok
}

func git(t testing.TB, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}
