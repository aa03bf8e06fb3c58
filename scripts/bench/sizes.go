package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const memoryRuns = 10

// sizes measures the binary and the resident memory.
func (b *bench) sizes() error {
	tini, tiniErr := exec.LookPath("tini")
	rows := []row{fileSize("agent-init", b.agentInit)}
	if tiniErr == nil {
		rows = append(rows, fileSize("tini", tini))
	} else {
		rows = append(rows, row{Name: "tini", NotRun: "it is not installed"})
	}
	b.add("binary", "size of the file", rows...)
	b.report.atMost("binary", rows[0], rows[0].MiB, 6, "MiB")
	return b.memory()
}

func fileSize(name, path string) row {
	info, err := os.Stat(path)
	if err != nil {
		return row{Name: name, NotRun: err.Error()}
	}
	return row{Name: name, MiB: float64(info.Size()) / (1 << 20)}
}

// memory measures inits while they supervise an agent that sleeps.
func (b *bench) memory() error {
	// The line tells that the init has started it.
	sleeper := []string{"/bin/sh", "-c", "echo; exec sleep 600"}
	programs, missing, err := b.inits(sleeper...)
	if err != nil {
		return err
	}
	t, err := newTree(filepath.Join(b.scratch, "memory-tree"), bootPlugins, bootRepos)
	if err != nil {
		return err
	}
	full := b.booter(fmt.Sprintf("agent-init, after %d plugins and %d repos", bootPlugins, bootRepos), b.scratch, t, fresh,
		append([]string{b.agentInit}, sleeper...)...)
	programs = append([]program{full}, programs[:len(programs)-1]...)
	sizes := make([][]float64, len(programs))
	for range memoryRuns {
		for i, p := range programs {
			size, err := p.resident()
			if err != nil {
				return err
			}
			sizes[i] = append(sizes[i], size)
		}
	}
	var rows []row
	for i, p := range programs {
		rows = append(rows, row{Name: p.name, Runs: memoryRuns, MiB: quantile(sizes[i], 0.5)})
	}
	b.add("memory", "VmRSS of the init while it supervises a sleeping agent, files that it shares included", append(rows, missing...)...)
	b.report.atMost("resident memory", rows[0], rows[0].MiB, 12, "MiB")
	return nil
}

// resident starts the program and returns its VmRSS in MiB once its agent runs.
func (p program) resident() (float64, error) {
	if p.before != nil {
		if err := p.before(); err != nil {
			return 0, err
		}
	}
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Env = p.env
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	_, ready := bufio.NewReader(stdout).ReadString('\n')
	size, err := vmRSS(cmd.Process.Pid)
	if ready != nil {
		err = fmt.Errorf("%s did not start its agent: %w", p.name, ready)
	}
	// dumb-init and agent-init wait for the agent to end; it does so at once.
	cmd.Process.Signal(syscall.SIGTERM)
	stuck := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
	defer stuck.Stop()
	cmd.Wait() // the code is that of SIGTERM
	return size, err
}

func vmRSS(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(status), "\nVmRSS:")
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("process %d has no VmRSS", pid)
	}
	kib, err := strconv.ParseFloat(fields[0], 64)
	return kib / 1024, err
}
