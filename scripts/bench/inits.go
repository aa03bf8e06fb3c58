package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	initRounds = 200
	pid1Rounds = 100
	warmUp     = 10
)

// inits are the programs that supervise a command: agent-init and others, and
// last the command without any.
func (b *bench) inits(argv ...string) (ready []program, missing []row, err error) {
	t, err := newTree(filepath.Join(b.scratch, "nothing"), 0, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := os.Remove(t.baseline()); err != nil {
		return nil, nil, err
	}
	w := newWorkspace(filepath.Join(b.scratch, "inits"))
	if err := w.clear(); err != nil {
		return nil, nil, err
	}
	env := w.bare(t)
	ready = []program{{name: "agent-init", argv: append([]string{b.agentInit}, argv...), env: env}}
	for _, other := range [][]string{{"tini", "--"}, {"dumb-init"}, {"catatonit", "--"}} {
		path, err := exec.LookPath(other[0])
		if err != nil {
			missing = append(missing, row{Name: other[0], NotRun: "it is not installed"})
			continue
		}
		full := append(append([]string{path}, other[1:]...), argv...)
		ready = append(ready, program{name: other[0], argv: full, env: env})
	}
	return append(ready, program{name: "none", argv: argv, env: env}), missing, nil
}

// supervision compares agent-init with other inits. The goal is on the plain
// runs: making and ending a PID namespace costs each of them the same, which
// would flatter the ratio.
func (b *bench) supervision() error {
	programs, missing, err := b.inits("/bin/true")
	if err != nil {
		return err
	}
	rows, err := compare(initRounds, "tini", programs)
	if err != nil {
		return err
	}
	rows = append(rows, missing...)
	b.add("supervise", "INIT /bin/true with nothing to boot, from vfork to reaped; \"none\" is /bin/true alone", rows...)
	own := find(rows, "agent-init")
	if tini := find(rows, "tini"); tini.NotRun != "" {
		own.NotRun = "no tini to compare with"
	}
	b.report.atMost("supervising /bin/true", own, own.Ratio, 2.5, "x tini")

	rows = nil
	for i := range programs {
		programs[i].pid1 = true
	}
	if _, err := programs[len(programs)-1].run(); err != nil {
		rows = append(rows, row{Name: "all", NotRun: err.Error()})
	} else if rows, err = compare(pid1Rounds, "tini", programs); err != nil {
		return err
	}
	b.add("supervise as PID 1", "the same in a PID namespace with its own /proc, from exec to the end of the namespace", rows...)
	return nil
}

// start compares the start of agent-init with that of any Go program.
func (b *bench) start() error {
	rows, err := compare(initRounds, "empty", []program{
		{name: "agent-init version", argv: []string{b.agentInit, "version"}},
		{name: "empty", argv: []string{b.empty}},
	})
	if err != nil {
		return err
	}
	b.add("start", "agent-init version against an empty Go main built with the same flags, from vfork to reaped", rows...)
	b.report.atMost("start", rows[0], rows[0].Ratio, 1.8, "x an empty Go main")
	return nil
}

// compare measures the programs in turns; the ratios are to the one named, if
// it is among them.
func compare(rounds int, reference string, programs []program) ([]row, error) {
	samples, err := interleave(warmUp, rounds, programs...)
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, p := range programs {
		r := measured(p.name, samples[i])
		for j, other := range programs {
			if other.name == reference {
				r = r.against(reference, samples[i], samples[j])
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func find(rows []row, name string) row {
	for _, r := range rows {
		if r.Name == name {
			return r
		}
	}
	return row{Name: name, NotRun: fmt.Sprintf("no %s here", name)}
}
