// Package asciicast writes recordings of terminals as asciinema plays them
// (asciicast v2, https://docs.asciinema.org/manual/asciicast/v2/): a header and
// then an event, each a line of its own.
package asciicast

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"

	"agent-init/internal/secret"
)

// Options say what is recorded and how.
type Options struct {
	// Width and Height are the terminal's size at the start, in cells.
	Width, Height int
	// Masker hides secrets; nil hides none.
	Masker *secret.Masker
	// Failed is called at the first write that fails. It must not wait.
	Failed func(error)
}

// Recorder writes one recording. Its methods are safe for concurrent use. What
// it has taken is in the file when a method returns, less what could begin a
// secret or a character.
type Recorder struct {
	mu     sync.Mutex
	file   *os.File
	opt    Options
	start  time.Time
	output text
	line   []byte
	lost   int64
	failed bool
	// broken says that the file ends with a part of a line that cannot be cut off.
	broken bool
	closed bool
}

// Check tells why a recording cannot be made at path. It touches nothing;
// Create makes directories that are missing.
func Check(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fs.ErrExist
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
		if err != unix.ENOENT || dir == filepath.Dir(dir) {
			if info, stat := os.Stat(dir); stat == nil && !info.IsDir() {
				return unix.ENOTDIR
			}
			return err
		}
	}
}

// Create begins a recording, in a file (0600) that must not exist.
func Create(path string, o Options) (*Recorder, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	r := &Recorder{file: file, opt: o, start: time.Now()}
	if err := r.write(r.header()); err != nil {
		file.Close()
		os.Remove(path)
		return nil, err
	}
	return r, nil
}

// header leaves the command out: its arguments hold prompts.
func (r *Recorder) header() []byte {
	line := append([]byte(nil), `{"version":2,"width":`...)
	line = strconv.AppendInt(line, int64(r.opt.Width), 10)
	line = append(line, `,"height":`...)
	line = strconv.AppendInt(line, int64(r.opt.Height), 10)
	line = append(line, `,"timestamp":`...)
	line = strconv.AppendInt(line, r.start.Unix(), 10)
	line = append(line, `,"env":{"SHELL":`...)
	line = appendString(line, []byte(r.opt.Masker.MaskString(os.Getenv("SHELL"))))
	line = append(line, `,"TERM":`...)
	line = appendString(line, []byte(r.opt.Masker.MaskString(os.Getenv("TERM"))))
	return append(line, "}}\n"...)
}

// Output records what the terminal shows.
func (r *Recorder) Output(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if shown := r.output.take(r.opt.Masker, p, false); len(shown) > 0 {
		r.event("o", shown)
	}
}

// Resize records the terminal's new size, in cells.
func (r *Recorder) Resize(width, height int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := strconv.AppendInt(nil, int64(width), 10)
	size = strconv.AppendInt(append(size, 'x'), int64(height), 10)
	r.event("r", size)
}

// Close ends the recording, which takes nothing from then on, and returns how many bytes of it were lost.
func (r *Recorder) Close() (lost int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if shown := r.output.take(r.opt.Masker, nil, true); len(shown) > 0 {
		r.event("o", shown)
	}
	r.closed = true
	if err := r.file.Close(); err != nil {
		r.fail(err, 0)
	}
	return r.lost
}

func (r *Recorder) event(kind string, data []byte) {
	if r.closed {
		return
	}
	// Microseconds of a monotonic clock.
	line := append(r.line[:0], '[')
	line = strconv.AppendFloat(line, time.Since(r.start).Seconds(), 'f', 6, 64)
	line = append(line, `,"`+kind+`",`...)
	line = appendString(line, data)
	line = append(line, "]\n"...)
	r.line = line
	if r.broken {
		r.lost += int64(len(data))
		return
	}
	if err := r.write(line); err != nil {
		r.fail(err, len(data))
	}
}

func (r *Recorder) fail(err error, size int) {
	r.lost += int64(size)
	if !r.failed && r.opt.Failed != nil {
		r.opt.Failed(err)
	}
	r.failed = true
}

// write writes a line as a whole or not at all.
func (r *Recorder) write(line []byte) error {
	n, err := r.file.Write(line)
	if err == nil || n == 0 {
		return err
	}
	info, failed := r.file.Stat()
	if failed == nil {
		failed = r.file.Truncate(info.Size() - int64(n))
	}
	r.broken = failed != nil
	return errors.Join(err, failed)
}

// appendString appends a JSON string.
func appendString(dst, s []byte) []byte {
	dst, _ = jsontext.AppendQuote(dst, strings.ToValidUTF8(string(s), "\ufffd")) // It can only fail for what is no UTF-8.
	return dst
}

// text is what comes in pieces that may cut secrets and characters.
type text struct {
	mask secret.Stream
	// buf[:shown] is masked and the beginning of a character; the rest of buf is
	// what the masker holds back.
	buf   []byte
	shown int
}

// take adds a piece and returns what may be shown; it holds until the next call.
func (t *text) take(m *secret.Masker, p []byte, last bool) []byte {
	// A copy: what is shown must outlive the bytes that move to the front.
	all := append(append([]byte(nil), t.buf...), p...)
	raw := all[t.shown:]
	masked, held := t.mask.Mask(all[:t.shown], m, raw, last)
	rest := all[len(all)-held:]
	end := len(masked)
	if !last {
		end -= cut(masked)
	}
	t.shown = len(masked) - end
	t.buf = append(append(t.buf[:0], masked[end:]...), rest...)
	return masked[:end]
}

// cut is how many bytes at the end of p are the beginning of a character.
func cut(p []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(p)); n++ {
		if tail := p[len(p)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
