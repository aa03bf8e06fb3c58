// Bench measures agent-init: against other inits, against an empty Go program,
// and against a shell entrypoint that boots the same workspace. It reports
// ratios of one run and judges no absolute time.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// unavailable is the exit code when the machine lacks what a part needs
// (EX_UNAVAILABLE of sysexits.h).
const unavailable = 69

// bench is one run of the benchmark.
type bench struct {
	// The programs: agent-init, an empty Go program, the shell entrypoint.
	agentInit, empty, script string
	// scratch is where boots write.
	scratch string
	// disk is a directory on a disk, for comparison; empty when scratch is.
	disk   string
	report report
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == pid1Command {
		fmt.Fprintf(os.Stderr, "bench: %v\n", becomePID1(os.Args[2:]))
		os.Exit(1)
	}
	if len(os.Args) == 2 && os.Args[1] == hooksCommand {
		if err := measureHooks(); err != nil {
			fatal(err)
		}
		return
	}
	b := &bench{}
	built := filepath.Join("build", "linux-"+runtime.GOARCH)
	flag.StringVar(&b.agentInit, "agent-init", filepath.Join(built, "agent-init"), "the agent-init to measure")
	flag.StringVar(&b.empty, "empty", filepath.Join("build", "bench", "empty"), "an empty Go program, built alike")
	flag.StringVar(&b.script, "entrypoint", filepath.Join("scripts", "bench", "entrypoint.sh"), "the shell entrypoint")
	output := flag.String("json", filepath.Join("build", "bench.json"), "where the report goes as JSON")
	scratch := flag.String("scratch", "", "where boots write; a new directory on a tmpfs, as a container's home and /run are, when unset")
	only := flag.String("only", "", "measure this part alone: supervise, start, boot, events or sizes")
	flag.Parse()
	if err := b.prepare(*scratch); err != nil {
		fatal(err)
	}
	go b.interrupted()
	failed := b.measure(*only)
	if err := errors.Join(b.write(*output), b.clean()); err != nil {
		fatal(err)
	}
	switch {
	case failed:
		os.Exit(1)
	case b.report.incomplete():
		os.Exit(unavailable)
	}
}

func fatal(err error) {
	fmt.Fprintf(os.Stderr, "bench: %v\n", err)
	os.Exit(1)
}

// interrupted leaves nothing behind when the benchmark is stopped.
func (b *bench) interrupted() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGINT, unix.SIGTERM)
	sig := <-stop
	if err := b.clean(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
	}
	os.Exit(128 + int(sig.(unix.Signal)))
}

func (b *bench) clean() error { return errors.Join(os.RemoveAll(b.scratch), os.RemoveAll(b.disk)) }

// prepare makes paths absolute and the scratch directories.
func (b *bench) prepare(scratch string) (err error) {
	for _, path := range []*string{&b.agentInit, &b.empty, &b.script} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
		if _, err := os.Stat(*path); err != nil {
			return fmt.Errorf("%w; run scripts/bench/run, which builds it", err)
		}
	}
	if scratch == "" && fileSystem("/dev/shm") == "tmpfs" && unix.Access("/dev/shm", unix.W_OK) == nil {
		scratch = "/dev/shm"
	}
	if b.scratch, err = os.MkdirTemp(scratch, "agent-init-bench-"); err != nil {
		return err
	}
	if near := filepath.Dir(b.empty); fileSystem(near) != "tmpfs" {
		if b.disk, err = os.MkdirTemp(near, "disk-"); err != nil {
			return err
		}
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err
	}
	b.report.Machine = machine{Kernel: unix.ByteSliceToString(name.Release[:]), CPUs: runtime.NumCPU(), Scratch: fileSystem(b.scratch)}
	return openNull()
}

// fileSystem names those that matter here.
func fileSystem(path string) string {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return ""
	}
	names := map[int64]string{unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.EXT4_SUPER_MAGIC: "ext4",
		unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs"}
	return cmp.Or(names[int64(fs.Type)], fmt.Sprintf("file system %#x", fs.Type))
}

// measure goes on with the next part when one fails.
func (b *bench) measure(only string) (failed bool) {
	for _, part := range []struct {
		name string
		do   func() error
	}{{"supervise", b.supervision}, {"start", b.start}, {"boot", b.boots}, {"events", b.events}, {"sizes", b.sizes}} {
		if only != "" && part.name != only {
			continue
		}
		if err := part.do(); err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", part.name, err)
			b.add(part.name, "it failed", row{Name: "all", NotRun: strings.SplitN(err.Error(), "\n", 2)[0]})
		}
	}
	return failed
}

func (b *bench) write(path string) error {
	if err := b.report.writeText(os.Stdout); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(b.report.writeJSON(f), f.Close())
}

func (b *bench) add(name, measured string, rows ...row) {
	b.report.Sections = append(b.report.Sections, section{Name: name, Measured: measured, Rows: rows})
}
