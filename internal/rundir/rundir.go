// Package rundir is the runtime directory: where boot keeps its own files, and
// how other commands find out that a workspace lives.
package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/journal"
	"agent-init/internal/problem"
)

// Preferred is used wherever it can be.
const Preferred = "/run/agentic"

// lockName is the file that a living agent-init holds locked. The kernel
// drops the lock with the process, so nothing has to be cleaned up after a
// crash and a reused process id means nothing.
const lockName = "lock"

// Names of what boot writes in the directory.
const (
	Report = "boot.json"
	Repos  = "repos.json"
	MCP    = "mcp.json"
	Launch = "launch.json"
	// GitCredentials takes the place of ~/.git-credentials where the home
	// cannot be written.
	GitCredentials = "git-credentials"
	// Control is the socket on which agent-init answers, where a setting needs it.
	Control = "control"
	// Bin holds programs that come first on the agent's PATH.
	Bin = "bin"
	// Taps holds the directories of taps.
	Taps = "taps"
	// Views holds what the agent CLI is given in place of some plugins.
	Views = "views"
	// GitHooks is the core.hooksPath.
	GitHooks = "git-hooks"
)

var names = append([]string{Report, Repos, MCP, Launch, GitCredentials, Control, Bin, Taps, Views, GitHooks}, journal.Names...)

// Dir is a runtime directory that has been chosen but not necessarily made.
type Dir struct {
	// Path is empty where no directory is writable.
	Path string
	// Explicit tells that the user named it.
	Explicit bool
}

// Join is a path in the directory.
func (d Dir) Join(name string) string { return filepath.Join(d.Path, name) }

// Choose finds the runtime directory without touching the disk. An explicit
// one that cannot be used is an Error; where none of the default places is
// usable Path is empty.
func Choose(explicit string) (Dir, *problem.Problem) {
	if explicit != "" {
		path, err := filepath.Abs(explicit)
		if err == nil {
			err = usable(path)
		}
		if err == nil {
			err = ours(path)
		}
		if err != nil {
			return Dir{}, &problem.Problem{What: "cannot use runtime directory", File: explicit, Why: reason(err),
				Hint: "let AGENTIC_RUNTIME_DIR name a directory that only this user can write"}
		}
		return Dir{path, true}, nil
	}
	for _, path := range []string{Preferred, fallback(os.Geteuid())} {
		if usable(path) == nil {
			return Dir{Path: path}, nil
		}
	}
	return Dir{}, nil
}

// Places are where the runtime directory of a live workspace may be, seen by this
// process: root also finds that of the given user.
func Places(explicit string, user int) (paths []string) {
	if explicit != "" {
		if path, err := filepath.Abs(explicit); err == nil {
			explicit = path
		}
		return []string{explicit}
	}
	paths = []string{Preferred, fallback(os.Geteuid())}
	if os.Geteuid() == 0 && user > 0 {
		paths = append(paths, fallback(user))
	}
	return paths
}

func fallback(uid int) string { return "/tmp/.agentic-" + strconv.Itoa(uid) }

// usable tells whether path is, or could be made, a directory of this user.
// One of another user could be filled with files for us to trust.
func usable(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return creatable(filepath.Dir(path))
	case err != nil:
		return err
	case !info.IsDir():
		return errors.New("it is not a directory")
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Geteuid() {
		return fmt.Errorf("it belongs to uid %d, not to uid %d", owner, os.Geteuid())
	}
	return unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
}

func creatable(dir string) error {
	for {
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != "/" {
			dir = filepath.Dir(dir)
			continue
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", problem.Path(dir))
		}
		if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
			return fmt.Errorf("%s: %w", problem.Path(dir), err)
		}
		return nil
	}
}

// ours refuses a directory that holds other people's files: boot clears and
// closes its runtime directory.
func ours(path string) error {
	if _, err := os.Lstat(filepath.Join(path, lockName)); err == nil {
		return nil
	}
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.New("it is not empty and was not made by agent-init")
}

func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}

// ErrLive says that a living agent-init holds the directory.
var ErrLive = errors.New("another agent-init uses it")

// Lock is a claim to the directory; it lasts as long as the process.
type Lock struct {
	file *os.File
	// holder is the file's first line: our process id and its namespace.
	holder string
	// size is how much of the file has been written.
	size int
}

// Claim makes the directory, locks it for this process and clears what an
// earlier start left. It returns ErrLive where another process holds it.
func (d Dir) Claim() (*Lock, error) {
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return nil, err
	}
	// Between Choose and here somebody else may have put something in place.
	if err := usable(d.Path); err != nil {
		return nil, err
	}
	if err := os.Chmod(d.Path, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(d.Join(lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := acquire(f); err != nil {
		f.Close()
		return nil, err
	}
	for _, name := range names {
		if err := os.RemoveAll(d.Join(name)); err != nil {
			f.Close()
			return nil, err
		}
	}
	l := &Lock{file: f, holder: fmt.Sprintf("%d %s\n", os.Getpid(), namespace("self"))}
	err = f.Truncate(0)
	if err == nil {
		err = l.Record(Status{})
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// acquire locks f for good. Status holds the lock for a moment, too, where
// nobody else does, and must not keep a boot from starting.
func acquire(f *os.File) (err error) {
	for range 10 {
		if err = flock(f, unix.LOCK_EX); !errors.Is(err, ErrLive) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

func flock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLive
	}
	return err
}

// Release gives the directory up.
func (l *Lock) Release() error { return l.file.Close() }

// Live tells whether a living agent-init holds the directory, and its process
// id as it wrote it down: 0 where it lives in another PID namespace. It changes
// nothing.
func (d Dir) Live() (pid int, live bool) {
	st, live := d.Status()
	return st.PID, live
}

// Inside tells whether this process is part of the workspace whose agent-init
// has the given process id: its descendant, started in its container from
// outside (docker exec), or anything where that is PID 1.
func Inside(holder int) bool {
	if holder <= 0 {
		return false
	}
	if holder == 1 {
		return true
	}
	pid := os.Getpid()
	for range 1 << 16 {
		if pid == holder {
			return true
		}
		if pid == 1 {
			return false
		}
		parent := parentOf(pid)
		if parent == 0 {
			// Only a process that entered the PID namespace from outside has
			// no parent in it without being PID 1.
			return true
		}
		if parent < 0 {
			return false
		}
		pid = parent
	}
	return false
}

// HasChild tells whether a process has one.
func HasChild(parent int) bool {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && parentOf(pid) == parent {
			return true
		}
	}
	return false
}

func namespace(pid string) string {
	ns, _ := os.Readlink("/proc/" + pid + "/ns/pid")
	return ns
}

// parentOf is the parent's process id; -1 where there is no such process.
func parentOf(pid int) int {
	fields := stat(pid)
	if fields == nil {
		return -1
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return -1
	}
	return parent
}

// stat is /proc/PID/stat from the state on, which proc_pid_stat(5) numbers 3.
// The name before it is in parentheses and may hold anything.
func stat(pid int) []string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 18 {
		return nil
	}
	return fields
}
