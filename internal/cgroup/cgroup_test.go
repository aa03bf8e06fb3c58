package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary be a process that wants more memory than its
// group may have.
func TestMain(m *testing.M) {
	if text := os.Getenv("CGROUP_TEST_MIB"); text != "" {
		// A byte tells that the parent has put us into the group.
		os.Stdin.Read(make([]byte, 1))
		size, _ := strconv.Atoi(text)
		// Mapped by ourselves, so that nothing but the OOM killer can object.
		memory, err := unix.Mmap(-1, 0, size<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			os.Exit(3)
		}
		for i := 0; i < len(memory); i += 4096 {
			memory[i] = 1
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestE6WhereTheNumbersAre(t *testing.T) {
	const kills2 = "low 0\nhigh 0\nmax 12\noom 4\noom_kill 3\noom_group_kill 9\n"
	const kills1 = "oom_kill_disable 0\nunder_oom 1\noom_kill 7\n"
	for name, c := range map[string]struct {
		own   string
		files map[string]string
		peak  string
		kills string
	}{
		"version 2":                   {"0::/a/b\n", map[string]string{"a/b/memory.peak": "4096\n", "a/b/memory.events": kills2, "memory.peak": "1\n"}, "4096 true", "3 true"},
		"version 2 in a namespace":    {"0::/\n", map[string]string{"memory.peak": "8192\n", "memory.events": kills2}, "8192 true", "3 true"},
		"version 2 without namespace": {"0::/docker/1\n", map[string]string{"memory.peak": "8192\n", "memory.events": kills2}, "8192 true", "3 true"},
		"Linux before 5.19":           {"0::/a\n", map[string]string{"a/memory.events": kills2}, "0 false", "3 true"},
		"version 1":                   {"5:cpu,memory:/a\n0::/\n", map[string]string{"memory/a/memory.max_usage_in_bytes": "5\n", "memory/a/memory.oom_control": kills1}, "5 true", "7 true"},
		"version 1 after 2":           {"0::/x\n5:memory:/a\n", map[string]string{"memory/a/memory.oom_control": kills1, "x/memory.events": kills2}, "0 false", "7 true"},
		"version 1 without namespace": {"4:memory:/docker/1\n", map[string]string{"memory/memory.max_usage_in_bytes": "6\n", "memory/memory.oom_control": kills1}, "6 true", "7 true"},
		"Linux before 4.13":           {"4:memory:/a\n", map[string]string{"memory/a/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n"}, "0 false", "0 false"},
		"a group with a colon":        {"0::/a:b\n", map[string]string{"a:b/memory.peak": "2\n"}, "2 true", "0 false"},
		"another controller's name":   {"4:memoryless:/a\n", map[string]string{"memory/a/memory.oom_control": kills1}, "0 false", "0 false"},
		"nonsense in the files":       {"0::/\n", map[string]string{"memory.peak": "max\n", "memory.events": "oom_kill many\n"}, "0 false", "0 false"},
		"an empty file":               {"0::/\n", map[string]string{"memory.peak": "", "memory.events": ""}, "0 false", "0 false"},
		"no cgroup at all":            {"", map[string]string{"memory.peak": "1\n", "memory.events": kills2}, "0 false", "0 false"},
		"a broken line":               {"0\n5:memory\n", map[string]string{"memory.peak": "1\n"}, "0 false", "0 false"},
	} {
		t.Run(name, func(t *testing.T) {
			mount := t.TempDir()
			for file, text := range c.files {
				write(t, filepath.Join(mount, file), text)
			}
			m := find(mount, []byte(c.own))
			if got := fmt.Sprint(m.Peak()); got != c.peak {
				t.Errorf("peak is %s, want %s", got, c.peak)
			}
			if got := fmt.Sprint(m.OOMKills()); got != c.kills {
				t.Errorf("kills are %s, want %s", got, c.kills)
			}
		})
	}
}

func TestS6GroupsThatAreKilledAsOne(t *testing.T) {
	mount := t.TempDir()
	killed := func(own string) bool { return find(mount, []byte(own)).KilledAsOne() }
	file := filepath.Join(mount, "a", "memory.oom.group")
	write(t, file, "0\n")
	if killed("0::/a/b\n") {
		t.Error("0 counts as set")
	}
	write(t, file, "1\n")
	if !killed("0::/a/b\n") || !killed("0::/a\n") {
		t.Error("1 in a group above does not count")
	}
	if killed("0::/\n") || killed("5:memory:/a\n") || killed("") {
		t.Error("a group that is not ours counts")
	}
}

// memoryGroup makes a real group with a limit in bytes.
func memoryGroup(t *testing.T, limit int) (dir string, m Memory) {
	t.Helper()
	name := fmt.Sprintf("/agentic-test-%d", os.Getpid())
	m, limits := Memory{hierarchy, name, version2}, []string{"memory.max", "memory.swap.max"}
	if _, err := os.Stat(filepath.Join(hierarchy, "memory")); err == nil {
		m, limits = Memory{filepath.Join(hierarchy, "memory"), name, version1}, []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"}
	}
	dir = filepath.Join(m.mount, name)
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
		err = os.WriteFile(filepath.Join(dir, limits[0]), strconv.AppendInt(nil, int64(limit), 10), 0)
	}
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, os.ErrNotExist) {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("only root, with a memory controller, can limit a group's memory: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	// Swap would take what the limit refuses; a kernel without has no such file.
	for _, text := range []string{strconv.Itoa(limit), "0"} {
		_ = os.WriteFile(filepath.Join(dir, limits[1]), []byte(text), 0)
	}
	return dir, m
}

// grow runs a process of so many MiB in the group.
func grow(t *testing.T, dir string, mib int) *os.ProcessState {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CGROUP_TEST_MIB="+strconv.Itoa(mib))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), strconv.AppendInt(nil, int64(cmd.Process.Pid), 10), 0); err != nil {
		t.Error(err)
	}
	in.Close()
	_ = cmd.Wait()
	return cmd.ProcessState
}

func TestE6ProcessEndedByTheOOMKiller(t *testing.T) {
	const limit = 48 << 20
	dir, m := memoryGroup(t, limit)
	if kills, ok := m.OOMKills(); kills != 0 || !ok {
		t.Fatalf("a new group: %d, %v", kills, ok)
	}
	if end := grow(t, dir, 8); end.ExitCode() != 0 {
		t.Fatal(end)
	}
	peak, ok := m.Peak()
	if kills, _ := m.OOMKills(); kills != 0 || !ok || peak < 8<<20 || peak > limit {
		t.Errorf("a process that fits: %d kills, peak %d, %v", kills, peak, ok)
	}
	if end := grow(t, dir, 96); end.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatal(end)
	}
	peak, _ = m.Peak()
	if kills, ok := m.OOMKills(); kills != 1 || !ok || peak < limit-1<<20 || peak > limit {
		t.Errorf("one that does not: %d kills, %v, peak %d", kills, ok, peak)
	}
}

func TestOwn(t *testing.T) {
	m := Own()
	if m.group == "" {
		t.Skip("this kernel has no memory controller")
	}
	if m.KilledAsOne() {
		t.Skip("this test would not survive a lack of memory either")
	}
	if peak, ok := m.Peak(); ok && peak <= 0 {
		t.Errorf("peak %d", peak)
	}
}

// BenchmarkOOMKillsOfOwn is what a start pays.
func BenchmarkOOMKillsOfOwn(b *testing.B) {
	for b.Loop() {
		Own().OOMKills()
	}
}
