package supervise

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/bits"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// patience bounds waiting for what must come; it says nothing about speed.
const patience = 60 * time.Second

// roles are what the test binary does when a test runs it as another process.
var roles = map[string]func(args []string){
	"init":    roleInit,
	"signals": roleSignals,
	"job":     roleJob,
	"broken":  roleBroken,
	"large":   roleLarge,
	"swarm":   roleSwarm,
	"orphans": roleOrphans,
	"daemon":  roleDaemon,
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if name, ok := strings.CutPrefix(os.Args[1], "role:"); ok {
			roles[name](os.Args[2:])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// roleInit is a small agent-init.
func roleInit(args []string) {
	s, err := Listen()
	must(err)
	flags := flag.NewFlagSet("init", flag.ExitOnError)
	grace := flags.Duration("grace", 8*time.Second, "")
	timeout := flags.Duration("timeout", 0, "")
	child := flags.Bool("child", false, "")
	stops := flags.String("stop", "TERM", "")
	rewrites := flags.String("rewrite", "", "")
	outcome := flags.String("outcome", "", "")
	gate := flags.String("gate", "", "")
	busy := flags.Bool("busy", false, "")
	limit := flags.String("limit", "", "")
	_ = flags.Parse(args)
	if os.Getpid() == 1 {
		must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		must(unix.Mount("proc", "/proc", "proc", 0, ""))
	}
	o := Options{Grace: *grace, Timeout: *timeout, Rewrite: map[unix.Signal]unix.Signal{}}
	if *child {
		o.Scope = Child
	}
	for _, text := range strings.Split(*stops, ",") {
		sig, err := ParseSignal(text)
		must(err)
		o.StopSignals = append(o.StopSignals, sig)
	}
	if *rewrites != "" {
		for _, text := range strings.Split(*rewrites, ",") {
			from, to, err := ParseRewrite(text)
			must(err)
			o.Rewrite[from] = to
		}
	}
	s.Configure(o)
	if *gate != "" {
		// Boot lasts until somebody writes to the gate.
		must(os.WriteFile(*gate+".up", nil, 0o600))
		f, err := os.Open(*gate)
		must(err)
		_, _ = f.Read(make([]byte, 1))
		f.Close()
	}
	if *limit != "" {
		must(os.WriteFile(filepath.Join(*limit, "cgroup.procs"), []byte("0"), 0))
	}
	var file string
	file, err = Lookup(flags.Arg(0), os.Getenv("PATH"))
	if err == nil {
		_, err = s.Start(Command{Path: file, Argv: flags.Args(), Stderr: -1})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(StartErrorCode(err))
	}
	if *busy {
		keepBusy()
	}
	out := s.Wait()
	if *outcome != "" {
		text, err := json.Marshal(out)
		must(err)
		must(os.WriteFile(*outcome, text, 0o600))
	}
	os.Exit(out.Code)
}

// keepBusy has work for every processor, collects memory, and blocks in a write.
func keepBusy() {
	var pipe [2]int
	must(unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	go func() { _, _ = unix.Write(pipe[1], make([]byte, 1<<20)) }()
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for {
				work.Store(new([1 << 16]byte))
				runtime.Gosched()
			}
		}()
	}
}

// work keeps what keepBusy allocates on the heap.
var work atomic.Pointer[[1 << 16]byte]

func must(err error) {
	if err != nil {
		_, file, line, _ := runtime.Caller(1)
		fmt.Fprintf(os.Stderr, "%s:%d: %v\n", filepath.Base(file), line, err)
		os.Exit(99)
	}
}

// roleSignals prints every signal it gets, until its stdin ends.
func roleSignals([]string) {
	wake, err := catchSignals()
	must(err)
	fmt.Println("ready", os.Getpid())
	go func() {
		for {
			_, err := wake.Read(make([]byte, 8))
			must(err)
			for set := takeArrived(); set != 0; set &= set - 1 {
				fmt.Println("got", bits.TrailingZeros64(set)+1)
			}
		}
	}()
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// roleJob can be suspended. A shell is no agent for that: its child between
// vfork and exec would stop alone, and the shell hang in the kernel.
func roleJob([]string) {
	c := make(chan os.Signal, 10)
	signal.Notify(c, unix.SIGCONT, unix.SIGINT)
	fmt.Println("up")
	for sig := range c {
		if sig == unix.SIGINT {
			os.Exit(9)
		}
		fmt.Println("resumed")
	}
}

// roleSwarm forks children that live until it has gone.
func roleSwarm(args []string) {
	n, err := strconv.Atoi(args[0])
	must(err)
	var pipe [2]int
	must(unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	for range n {
		if forkUntilClosed(pipe[0], pipe[1]) < 0 {
			fmt.Fprintln(os.Stderr, "fork failed")
			os.Exit(99)
		}
	}
}

// forkUntilClosed may do nothing but raw system calls in the child: it is a copy
// of one thread of a Go process.
//
//go:norace
func forkUntilClosed(read, write int) int {
	pid, _, err := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if err != 0 {
		return -1
	}
	if pid != 0 {
		return int(pid)
	}
	var b [1]byte
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(write), 0, 0)
	_, _, _ = syscall.RawSyscall(syscall.SYS_READ, uintptr(read), uintptr(unsafe.Pointer(&b)), 1)
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// roleOrphans runs a swarm and tells how long its parent then has children
// other than itself.
func roleOrphans(args []string) {
	swarm := exec.Command(os.Args[0], "role:swarm", args[0])
	swarm.Stderr = os.Stderr
	must(swarm.Run())
	start := time.Now()
	for {
		left := 0
		for _, p := range processes() {
			if p.parent == os.Getppid() && p.pid != os.Getpid() {
				left++
			}
		}
		if left == 0 {
			break
		}
		if time.Since(start) > patience {
			fmt.Println("left", left)
			os.Exit(99)
		}
		time.Sleep(20 * time.Millisecond)
	}
	fmt.Println("clean", time.Since(start).Milliseconds())
}

// roleDaemon detaches twice, and says so through the file it is given.
func roleDaemon(args []string) {
	ready := args[0]
	if len(args) == 1 {
		for _, step := range []string{"setsid", "double"} {
			c := exec.Command(os.Args[0], "role:daemon", ready+"."+step, step)
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			must(c.Start())
		}
		return
	}
	if args[1] == "double" {
		c := exec.Command(os.Args[0], "role:daemon", ready, "stubborn")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		must(c.Start())
		return
	}
	if args[1] == "stubborn" {
		signal.Ignore(unix.SIGTERM)
	}
	must(os.WriteFile(ready, nil, 0o600))
	select {}
}

// initProcess is a roleInit under test.
type initProcess struct {
	*exec.Cmd
	t       *testing.T
	stdin   io.WriteCloser
	lines   *bufio.Reader
	outcome string
}

// kinds runs a test as PID 1 of a namespace and as a subreaper.
func kinds(t *testing.T, f func(t *testing.T, pid1 bool)) {
	t.Run("subreaper", func(t *testing.T) { f(t, false) })
	t.Run("pid1", func(t *testing.T) {
		needRoot(t)
		f(t, true)
	})
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("needs root")
	}
	t.Skip("needs root for a PID namespace")
}

// startInit starts roleInit with its flags and command.
func startInit(t *testing.T, pid1 bool, args ...string) *initProcess {
	t.Helper()
	return launch(t, pid1, nil, args...)
}

// startWrapped starts roleInit through a command that execs it.
func startWrapped(t *testing.T, wrap []string, args ...string) *initProcess {
	t.Helper()
	return launch(t, false, wrap, args...)
}

func launch(t *testing.T, pid1 bool, wrap []string, args ...string) *initProcess {
	t.Helper()
	p := &initProcess{t: t, outcome: filepath.Join(t.TempDir(), "outcome")}
	words := slices.Concat(wrap, []string{os.Args[0], "role:init", "-outcome", p.outcome}, args)
	p.Cmd = exec.Command(words[0], words[1:]...)
	p.Stderr = os.Stderr
	in, err := p.StdinPipe()
	check(t, err)
	p.stdin = in
	out, err := p.StdoutPipe()
	check(t, err)
	p.lines = bufio.NewReader(out)
	p.SysProcAttr = &syscall.SysProcAttr{}
	if pid1 {
		p.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	}
	check(t, p.Start())
	t.Cleanup(func() {
		if p.ProcessState == nil {
			left := descendants(p.Process.Pid, processes())
			_ = p.Process.Kill()
			for _, c := range left {
				_ = c.send(unix.SIGKILL)
			}
			_ = p.Cmd.Wait()
		}
	})
	return p
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// line is the next line of output.
func (p *initProcess) line() string {
	p.t.Helper()
	got := make(chan string, 1)
	go func() {
		text, err := p.lines.ReadString('\n')
		if err != nil {
			text += err.Error()
		}
		got <- strings.TrimSuffix(text, "\n")
	}()
	select {
	case text := <-got:
		return text
	case <-time.After(patience):
		p.t.Fatal("no further output")
		return ""
	}
}

func (p *initProcess) signal(sig unix.Signal) {
	p.t.Helper()
	check(p.t, p.Process.Signal(sig))
}

// end waits for the exit and returns the code, -1 for a death by signal, and
// the outcome.
func (p *initProcess) end() (code int, o Outcome) {
	p.t.Helper()
	killer := time.AfterFunc(patience, func() { _ = p.Process.Kill() })
	_ = p.Cmd.Wait()
	killer.Stop()
	if text, err := os.ReadFile(p.outcome); err == nil {
		check(p.t, json.Unmarshal(text, &o))
	}
	return p.ProcessState.ExitCode(), o
}

// until polls for what tells nobody when it happens.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for start := time.Now(); !f(); {
		if time.Since(start) > patience {
			t.Fatal("waited in vain for ", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
