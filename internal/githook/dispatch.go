package githook

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"agent-init/internal/problem"
	"agent-init/internal/tap"
	"agent-init/internal/textfile"
)

// codeFailed is the exit code where no hook has one to give.
const codeFailed = 1

// call is git's call of a hook.
type call struct {
	name string
	args []string
	env  []string
}

// Dispatch does what git has called the composed hook for. With a hook to end
// with, it becomes that one; else it returns the exit code.
func Dispatch(argv, env []string) int {
	c := call{filepath.Base(argv[0]), argv[1:], env}
	hooks, err := composed(filepath.Dir(argv[0]), c.name)
	if err != nil {
		c.complain("cannot read the list of hooks", err)
		return codeFailed
	}
	if own := c.own(); own != "" {
		hooks = append(hooks, own)
	}
	switch len(hooks) {
	case 0:
		return c.nothing()
	case 1:
		return c.become(hooks[0])
	}
	return c.all(hooks)
}

// own is the path of the repository's own hook; empty where it has none that git
// would run.
func (c call) own() string {
	r, ok := current()
	if !ok {
		return ""
	}
	path := r.own(c.name)
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || tap.IsSelf(path) {
		return ""
	}
	if unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) != nil {
		fmt.Fprintf(os.Stderr, "hint: The '%s' hook was ignored because it's not set as executable.\n", path)
		return ""
	}
	return path
}

// nothing is what git does without a hook, where a hook that succeeds would be
// another thing.
func (c call) nothing() int {
	switch c.name {
	case "push-to-checkout":
		return c.deploy()
	case "proc-receive":
		fmt.Fprintln(os.Stderr, "error: cannot find hook 'proc-receive'")
		return codeFailed
	}
	return 0
}

// all runs the hooks one after another. The first to fail where that is a veto is
// the last to run; else the first failure is the exit code.
func (c call) all(hooks []string) int {
	input, err := c.input()
	if err != nil {
		c.complain("cannot keep the input of the hooks", err)
		return codeFailed
	}
	veto := canVeto(c.name, c.args)
	result := 0
	for _, path := range hooks[:len(hooks)-1] {
		code := c.run(path, input)
		if code != 0 && veto {
			return code
		}
		if result == 0 {
			result = code
		}
	}
	last := hooks[len(hooks)-1]
	if result != 0 {
		c.run(last, input)
		return result
	}
	if err := input.toStdin(); err != nil {
		c.complain("cannot pass the input on", err)
		return codeFailed
	}
	return c.become(last)
}

// become replaces this process by a hook; it returns where that fails.
func (c call) become(path string) int {
	argv := append([]string{path}, c.args...)
	err := syscall.Exec(path, argv, c.env)
	if err == unix.ENOEXEC {
		err = syscall.Exec(shell, append([]string{shell}, argv...), c.env)
	}
	c.complain("cannot start "+problem.Path(path), err)
	return codeFailed
}

// shell runs a hook that does not say which program is to read it, as git has it.
const shell = "/bin/sh"

// run runs a hook to its end.
func (c call) run(path string, input *input) int {
	stdin, err := input.open()
	if err != nil {
		c.complain("cannot pass the input on", err)
		return codeFailed
	}
	if stdin != os.Stdin {
		defer stdin.Close()
	}
	argv := append([]string{path}, c.args...)
	attr := &os.ProcAttr{Env: c.env, Files: []*os.File{stdin, os.Stdout, os.Stderr}}
	process, err := os.StartProcess(path, argv, attr)
	if errors.Is(err, unix.ENOEXEC) {
		process, err = os.StartProcess(shell, append([]string{shell}, argv...), attr)
	}
	if err != nil {
		c.complain("cannot start "+problem.Path(path), err)
		return codeFailed
	}
	state, err := process.Wait()
	if err != nil {
		c.complain("cannot wait for "+problem.Path(path), err)
		return codeFailed
	}
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		c.complain(problem.Path(path), fmt.Errorf("ended by %v", status.Signal()))
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

func (c call) complain(what string, err error) {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = errors.New(textfile.Reason(err))
	}
	fmt.Fprintf(os.Stderr, "agent-init: git hook %s: %s: %v\n", c.name, what, err)
}
