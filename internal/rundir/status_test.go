package rundir

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func claimed(t *testing.T) (Dir, *Lock) {
	t.Helper()
	d := Dir{Path: filepath.Join(t.TempDir(), "run")}
	lock, err := d.Claim()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Release() })
	return d, lock
}

func TestStatusFollowsTheAgent(t *testing.T) {
	d, lock := claimed(t)
	if got, live := d.Status(); !live || got != (Status{PID: os.Getpid()}) {
		t.Errorf("before the agent: %+v, %v", got, live)
	}
	agent := exec.Command("sleep", "1000")
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	want := Status{PID: os.Getpid(), State: Running, Agent: agent.Process.Pid, Command: "my \"agent\"\n\xff", Started: time.UnixMicro(1795263600123456)}
	if err := lock.Record(want); err != nil {
		t.Fatal(err)
	}
	if got, live := d.Status(); !live || got != want {
		t.Errorf("while it runs: %+v, %v", got, live)
	}
	// It ends, and nobody has noted so yet.
	agent.Process.Kill()
	agent.Wait()
	want.State = Exited
	if got, _ := d.Status(); got != want {
		t.Errorf("when it is gone: %+v", got)
	}
	want.Command = "x"
	if err := lock.Record(want); err != nil {
		t.Fatal(err)
	}
	if got, _ := d.Status(); got != want {
		t.Errorf("a shorter status: %+v", got)
	}
	lock.Release()
	if got, live := d.Status(); live || got != (Status{}) {
		t.Errorf("after agent-init: %+v, %v", got, live)
	}
}

// An exited agent that was not waited for yet is gone, too; and so is one whose
// process id is another process's now.
func TestStatusOfAnAgentThatIsNoLongerOurs(t *testing.T) {
	d, lock := claimed(t)
	agent := exec.Command("cat")
	in, err := agent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	if err := lock.Record(Status{State: Running, Agent: agent.Process.Pid, Command: "cat"}); err != nil {
		t.Fatal(err)
	}
	in.Close()
	// Nothing but its state tells of a process that nobody has waited for.
	for limit := time.Now().Add(10 * time.Second); ; {
		if got, _ := d.Status(); got.State == Exited {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("a zombie counts as running")
		}
	}
	if err := agent.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := lock.Record(Status{State: Running, Agent: os.Getppid(), Command: "cat"}); err != nil {
		t.Fatal(err)
	}
	if got, _ := d.Status(); got.State != Exited {
		t.Errorf("a stranger's process: %+v", got)
	}
}

func TestStatusIsNeverTorn(t *testing.T) {
	d, lock := claimed(t)
	commands := []string{strings.Repeat("\x01", commandLimit), "b"}
	var writing sync.WaitGroup
	stop := make(chan struct{})
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := lock.Record(Status{State: Exited, Agent: 7, Command: commands[i%2]}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 2000 {
		got, live := d.Status()
		if !live || got.State == Exited && got.Command != commands[0] && got.Command != commands[1] {
			t.Fatalf("%+v, %v", got, live)
		}
	}
	close(stop)
	writing.Wait()
}

// A health check may look at the lock of a dead agent-init just when the next
// one claims it.
func TestAskingForTheStatusKeepsNobodyFromClaiming(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	f, err := os.OpenFile(d.Join(lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	var asking sync.WaitGroup
	stop := make(chan struct{})
	asking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				d.Status()
			}
		}
	})
	for range 50 {
		lock, err := d.Claim()
		if err != nil {
			t.Error(err)
			break
		}
		lock.Release()
	}
	close(stop)
	asking.Wait()
}

func FuzzParseStatus(f *testing.F) {
	f.Add("running 12 1795263600123456 \"bash\"\n")
	f.Add("exited 12 0 \"\\n\\xff\"\n\n\n")
	f.Add("")
	f.Add("running -1 9 bash")
	f.Fuzz(func(t *testing.T, text string) {
		if s, ok := parseStatus(text); ok && s.State.String() == "" || !ok && s != (Status{}) {
			t.Errorf("%+v, %v", s, ok)
		}
	})
}

// Where there are cycles an agent that is gone comes again.
func TestH3StatusBetweenRuns(t *testing.T) {
	d, lock := claimed(t)
	agent := exec.Command("true")
	if err := agent.Run(); err != nil {
		t.Fatal(err)
	}
	want := Status{PID: os.Getpid(), State: Running, Agent: agent.Process.Pid, Command: "true", Started: time.UnixMicro(1795263600123456), Cycle: 7}
	if err := lock.Record(want); err != nil {
		t.Fatal(err)
	}
	want.State = Waiting
	if got, _ := d.Status(); got != want {
		t.Errorf("just ended: %+v", got)
	}
	want = Status{PID: os.Getpid(), State: Waiting, Command: "true", Cycle: 7, Next: time.UnixMicro(1795263660123456)}
	if err := lock.Record(want); err != nil {
		t.Fatal(err)
	}
	if got, _ := d.Status(); got != want {
		t.Errorf("waiting: %+v", got)
	}
}
