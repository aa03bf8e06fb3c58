// Package githook composes git hooks of several sources under one
// core.hooksPath, with those of each repository behind them.
//
// core.hooksPath replaces a repository's own hooks directory. The composed
// directory therefore holds a link to agent-init under every name that git
// knows, whether or not there is a hook of ours: it runs ours, if any, and then
// becomes the repository's own hook.
package githook

import "slices"

// Hook is one program that git is to run.
type Hook struct {
	// Name is what git calls it: "pre-commit".
	Name string
	// Path is its absolute path.
	Path string
	// Plugin is the name of the plugin that brings it; empty for the image's own.
	Plugin string
}

// trait is what githooks(5) says of a hook.
type trait int

const (
	// notices runs when its matter is settled.
	notices trait = 0
	// vetoes stops what git is about to do by failing.
	vetoes trait = 1 << iota
	// reads gets lines on its standard input.
	reads
	// converses speaks a protocol with git, which only one program can.
	converses
)

// known are the hooks that git looks up in core.hooksPath, as of git 2.54.
// fsmonitor-watchman is none: core.fsmonitor holds its path.
var known = [...]struct {
	name  string
	trait trait
}{
	{"applypatch-msg", vetoes},
	{"commit-msg", vetoes},
	{"p4-changelist", vetoes},
	{"p4-post-changelist", notices},
	{"p4-pre-submit", vetoes},
	{"p4-prepare-changelist", vetoes},
	{"post-applypatch", notices},
	{"post-checkout", notices},
	{"post-commit", notices},
	{"post-index-change", notices},
	{"post-merge", notices},
	{"post-receive", notices | reads},
	{"post-rewrite", notices | reads},
	{"post-update", notices},
	{"pre-applypatch", vetoes},
	{"pre-auto-gc", vetoes},
	{"pre-commit", vetoes},
	{"pre-merge-commit", vetoes},
	{"pre-push", vetoes | reads},
	{"pre-rebase", vetoes},
	{"pre-receive", vetoes | reads},
	{"prepare-commit-msg", vetoes},
	{"proc-receive", vetoes | converses},
	{"push-to-checkout", vetoes},
	{"reference-transaction", vetoes | reads},
	{"sendemail-validate", vetoes},
	{"update", vetoes},
}

func traits(name string) (t trait, ok bool) {
	for _, k := range known {
		if k.name == name {
			return k.trait, true
		}
	}
	return 0, false
}

// Known tells whether git runs hooks of a name.
func Known(name string) bool {
	_, ok := traits(name)
	return ok
}

// canVeto tells whether a hook with these arguments stops git by failing. Of the
// states of a reference transaction only those before it is settled do.
func canVeto(name string, args []string) bool {
	if name == "reference-transaction" {
		return len(args) > 0 && slices.Contains([]string{"preparing", "prepared"}, args[0])
	}
	t, _ := traits(name)
	return t&vetoes != 0
}
