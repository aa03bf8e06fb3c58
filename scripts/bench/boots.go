package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
)

const (
	bootPlugins = 10
	bootRepos   = 50
	// bootsPerScript is how often agent-init boots for each boot of the script,
	// which takes a hundred times as long.
	bootsPerScript = 5
)

// bootKind is what a boot finds in home, runtime directory and workspace.
type bootKind int

const (
	// fresh is the first boot of a new container.
	fresh bootKind = iota
	// repeated is a boot after another one with the same input.
	repeated
)

func (k bootKind) String() string { return [...]string{"fresh", "repeated"}[k] }

// boots compares boots of agent-init with those of the shell script.
func (b *bench) boots() error {
	for _, tool := range []string{"bash", "git", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			none := row{Name: "all", NotRun: tool + ", which the shell script needs, is not installed"}
			b.add("boot", "agent-init against the shell script", none)
			b.report.atLeast("boot", none, 0, 100, "x the shell script's speed")
			return nil
		}
	}
	t, err := newTree(filepath.Join(b.scratch, "tree"), bootPlugins, bootRepos)
	if err != nil {
		return err
	}
	if err := b.agree(t); err != nil {
		return err
	}
	var rows []row
	for _, kind := range []bootKind{fresh, repeated} {
		own, script, err := b.bootPair(b.scratch, t, kind, 1, 5)
		if err != nil {
			return err
		}
		rows = append(rows, own, script)
		b.report.atLeast(fmt.Sprintf("%s boot", kind), own, script.Ratio, 100, "x as fast as the shell script")
	}
	if b.disk != "" {
		own, script, err := b.bootPair(b.disk, t, fresh, 0, 3)
		if err != nil {
			return err
		}
		own.Name, script.Name = own.Name+", on disk", script.Name+", on disk"
		rows = append(rows, own, script)
	}
	b.add("boot", fmt.Sprintf("%d plugins and %d repos with MCP files, agent /bin/true named claude, from vfork to reaped", bootPlugins, bootRepos), rows...)
	return b.growth()
}

// growth shows how boots grow with the number of repos.
func (b *bench) growth() error {
	var rows []row
	// The script takes seconds for 200 repos: one round, so that the whole
	// benchmark stays within a minute.
	for _, size := range []struct{ repos, rounds int }{{0, 3}, {1, 3}, {10, 3}, {200, 1}} {
		repos := size.repos
		t, err := newTree(filepath.Join(b.scratch, fmt.Sprintf("tree-%d", repos)), bootPlugins, repos)
		if err != nil {
			return err
		}
		own, script, err := b.bootPair(b.scratch, t, fresh, 0, size.rounds)
		if err != nil {
			return err
		}
		own.Name, script.Name = fmt.Sprintf("%s, %d repos", own.Name, repos), fmt.Sprintf("%s, %d repos", script.Name, repos)
		rows = append(rows, own, script)
	}
	b.add("boot by repos", fmt.Sprintf("%d plugins and a varying number of repos", bootPlugins), rows...)
	return nil
}

// bootPair measures agent-init and the script in turns. The script's ratio
// says how many times as long it takes.
func (b *bench) bootPair(dir string, t tree, kind bootKind, warmUp, rounds int) (own, script row, err error) {
	claude, err := t.program("/bin/true")
	if err != nil {
		return own, script, err
	}
	turn := []program{
		b.booter("agent-init", dir, t, kind, b.agentInit, claude),
		b.booter("script", dir, t, kind, b.script, claude),
	}
	turn = append(slices.Repeat(turn[:1], bootsPerScript), turn[1])
	samples, err := interleave(warmUp, rounds, turn...)
	if err != nil {
		return own, script, err
	}
	ours, theirs := samples[:bootsPerScript], samples[bootsPerScript]
	own = measured("agent-init, "+kind.String(), slices.Concat(ours...))
	script = measured("script, "+kind.String(), theirs).against("agent-init", theirs, middles(ours, rounds))
	return own, script, nil
}

// middles are the medians of each round.
func middles(turns [][]sample, rounds int) []sample {
	out := make([]sample, rounds)
	for i := range out {
		var round []sample
		for _, t := range turns {
			round = append(round, t[i])
		}
		slices.SortFunc(round, func(a, b sample) int { return int(a.wall - b.wall) })
		out[i] = round[len(round)/2]
	}
	return out
}

// booter boots a workspace of its own.
func (b *bench) booter(name, dir string, t tree, kind bootKind, argv ...string) program {
	w := newWorkspace(filepath.Join(dir, "boot-"+name))
	p := program{name: name, argv: argv, env: w.full(t), before: w.clear}
	if kind == repeated {
		first := true
		p.before = func() error {
			if !first {
				return nil
			}
			first = false
			return w.clear()
		}
	}
	return p
}
