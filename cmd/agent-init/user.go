package main

import (
	"fmt"
	"os"

	"agent-init/internal/config"
	"agent-init/internal/privilege"
	"agent-init/internal/problem"
)

// workAs has this process work as the user that the settings name, whose home is
// then HOME. Everything that reads or writes files comes after it; secrets are
// read as root all the same.
func workAs(cfg *config.Config, found *problem.List) {
	if cfg.User == "" {
		return
	}
	refuse := func(why, hint string) {
		found.Add(problem.Problem{What: fmt.Sprintf("cannot run as AGENTIC_USER=%q", cfg.User), Why: why, Hint: hint})
	}
	id, err := privilege.Find(cfg.User)
	if err != nil {
		refuse(err.Error(), "name a user of /etc/passwd, a uid, or one of them with a group, as in 1000:1000")
		return
	}
	switch own := os.Geteuid(); {
	case own == id.UID && own == os.Getuid():
		return
	case own != 0:
		refuse(fmt.Sprintf("agent-init was started as uid %d", own), "start the container as root, without USER or --user, or unset AGENTIC_USER")
		return
	}
	if err := privilege.Lower(id); err != nil {
		refuse(err.Error(), "leave the container the capabilities SETUID and SETGID")
		return
	}
	os.Setenv("HOME", id.Home)
}
