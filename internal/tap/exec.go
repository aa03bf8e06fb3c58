package tap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agent-init/internal/agent"
	"agent-init/internal/problem"
	"agent-init/internal/relay"
	"agent-init/internal/supervise"
)

// codeUsage is EX_USAGE of sysexits.h.
const codeUsage = 64

// Exec does what the CLI has called the tap for; it returns only where the
// command cannot be started, with the exit code that a shell would have.
func Exec(argv, environment []string) (code int) {
	c := observe(argv, environment)
	if len(argv) < 2 {
		fmt.Fprintf(os.Stderr, "%s: there is nothing to run; the agent CLI calls it by way of %s\n", filepath.Base(argv[0]), PrefixVariable)
		return codeUsage
	}
	f := c.form()
	env := c.env
	if f != server {
		env = c.forPlugin(env)
		env = handOver(c.dir(), env)
	}
	args := c.command(f)
	path, err := supervise.Lookup(args[0], env.get("PATH"))
	if err == nil {
		err = Become(path, args, env)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(argv[0]), err)
	return supervise.StartErrorCode(err)
}

// Become replaces this process by a program. It returns only where that fails,
// with a *supervise.StartError.
func Become(path string, argv, env []string) error {
	err := syscall.Exec(path, argv, env)
	return &supervise.StartError{Problem: problem.Problem{What: "cannot start " + problem.Path(path), Why: err.Error()}, Code: supervise.CodeNotExecutable}
}

// dir is where the socket is: beside the tap that the CLI was told of, which for
// hooks in exec form is not the one that they name.
func (c caller) dir() string {
	if prefix := c.env.get(PrefixVariable); c.form() == program && filepath.Base(prefix) == Name {
		return filepath.Dir(prefix)
	}
	return filepath.Dir(c.argv[0])
}

// command is what runs in the tap's place.
func (c caller) command(f form) []string {
	if f == program {
		return c.argv[1:]
	}
	line, kept := c.argv[1], c.env.get(KeptVariable)
	if f == server {
		if kept != "" {
			return []string{kept, line}
		}
		if args, ok := words(line); ok {
			return args
		}
		return []string{hookShell, "-c", "exec " + line}
	}
	if kept != "" {
		line = called(kept, line)
	}
	if f == tool {
		if shell := agent.BashShell(c.env.get); shell != "" {
			return []string{shell, "-c", line}
		}
	}
	return []string{hookShell, "-c", line}
}

// forPlugin gives plugins that were written for Kairo the variables that they
// know.
func (c caller) forPlugin(env environ) environ {
	for _, name := range []string{"PLUGIN_ROOT", "PLUGIN_DATA", "PROJECT_DIR"} {
		if value := env.get("CLAUDE_" + name); value != "" && env.get("KAIRO_"+name) == "" {
			env = env.with("KAIRO_"+name, value)
		}
	}
	return env
}

// handOver lets agent-init see this process's standard error, and returns the
// environment of the command. Where it cannot, the command runs as it would
// without agent-init.
func handOver(dir string, env environ) environ {
	var out, errs unix.Stat_t
	if unix.Fstat(2, &errs) != nil || isTerminal(2) {
		return env
	}
	var err error
	one := unix.Fstat(1, &out) == nil && out.Dev == errs.Dev && out.Ino == errs.Ino
	switch {
	case !one:
		err = handPipe(dir)
	case errs.Mode&unix.S_IFMT == unix.S_IFREG:
		err = handFile(dir, errs.Size)
	default:
		err = errors.New("its output and its errors are one stream that is no file")
	}
	if err != nil {
		// It does not get through either where nobody listens any more.
		_ = send(dir, failed, []byte(clipped(err.Error())))
		return env
	}
	return env.with(relay.Variable, relay.Name(2))
}

func clipped(text string) string { return text[:min(len(text), maxMessage-1)] }

// handPipe makes descriptor 2 a pipe that agent-init reads.
func handPipe(dir string) error {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return os.NewSyscallError("pipe", err)
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	if err := sendPatiently(dir, pipe, nil, p[0], 2); err != nil {
		return err
	}
	// Onto itself it would not lose its close-on-exec flag; 2 is open here.
	return os.NewSyscallError("dup", unix.Dup3(p[1], 2, 0))
}

// handFile has agent-init read what is appended to descriptor 2.
func handFile(dir string, size int64) error {
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(self)
	return sendPatiently(dir, file, offset(size), 2, self)
}

// The kernel bounds how many descriptors of a user are on their way (unix(7),
// ETOOMANYREFS), and its memory; both pass.
const (
	shortageTries = 50
	shortagePause = 20 * time.Millisecond
)

func sendPatiently(dir string, k kind, payload []byte, fds ...int) (err error) {
	for range shortageTries {
		err = send(dir, k, payload, fds...)
		switch err {
		case unix.ETOOMANYREFS, unix.ENOBUFS, unix.ENOMEM:
			time.Sleep(shortagePause)
			continue
		}
		break
	}
	return os.NewSyscallError("sendmsg", err)
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}
