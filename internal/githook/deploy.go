package githook

import (
	"fmt"
	"os"

	"agent-init/internal/supervise"
)

// emptyTree is the id of the tree without entries in the format of another id,
// SHA-1 or SHA-256.
func emptyTree(id string) string {
	if len(id) == 40 {
		return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	}
	return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
}

// deploy updates the working tree as git itself does without a push-to-checkout
// hook: the command sequence is that of receive-pack, whose own a hook replaces.
func (c call) deploy() int {
	if len(c.args) == 0 {
		return codeFailed
	}
	commit := c.args[0]
	git, err := supervise.Lookup("git", os.Getenv("PATH"))
	if err != nil {
		c.complain("cannot update the working tree", err)
		return codeFailed
	}
	run := func(args ...string) bool {
		return call{name: c.name, args: args, env: c.env}.run(git, nil) == 0
	}
	head := "HEAD"
	if !run("show-ref", "--quiet", "--verify", "HEAD") {
		head = emptyTree(commit)
	}
	for _, step := range []struct {
		args []string
		why  string
	}{
		{[]string{"update-index", "-q", "--ignore-submodules", "--refresh"}, "Up-to-date check failed"},
		{[]string{"diff-files", "--quiet", "--ignore-submodules", "--"}, "Working directory has unstaged changes"},
		{[]string{"diff-index", "--quiet", "--cached", "--ignore-submodules", head, "--"}, "Working directory has staged changes"},
		{[]string{"read-tree", "-u", "-m", commit}, "Could not update working tree to new HEAD"},
	} {
		if !run(step.args...) {
			fmt.Fprintln(os.Stderr, step.why)
			return codeFailed
		}
	}
	return 0
}
