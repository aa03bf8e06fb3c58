// Package gitsetup plans how git is configured for the agent: identity,
// directories of other owners, credentials. The plan is a value: nothing here
// writes to disk and no git is started.
//
// Settings go to a block of our own at the head of $XDG_CONFIG_HOME/git/config
// (~/.config/git/config), which git reads before ~/.gitconfig, so that whatever
// the user says there or further down wins. Where that file cannot be replaced
// or git would not read it, the same settings travel in GIT_CONFIG_COUNT,
// GIT_CONFIG_KEY_n and GIT_CONFIG_VALUE_n (git-config(1), ENVIRONMENT).
package gitsetup

import (
	"slices"

	"agent-init/internal/atomicfile"
	"agent-init/internal/problem"
)

// Mode is how git gets credentials: AGENTIC_GIT_CREDENTIALS.
type Mode int

const (
	// Store writes tokens to the file of git-credential-store(1).
	Store Mode = iota
	// Helper has git ask agent-init each time; no token is written anywhere.
	Helper
	// None leaves everything about credentials as it is.
	None
)

// Host is a credential for https://Name.
type Host struct {
	// Name is the host, with :PORT where it is not 443.
	Name string
	User string
	// Variable is the variable that Token came from; messages name it.
	Variable string
	// Token is the secret; empty when the variable is not set.
	Token string
}

// Input is what a plan depends on, the files in the home aside.
type Input struct {
	// Env looks up the agent's environment as it will be.
	Env func(name string) (string, bool)
	// Home is the agent's home directory; empty when HOME is unset.
	Home string
	// RuntimeDir is the runtime directory; empty when there is none.
	RuntimeDir string
	// SafeDirs are directories that git must accept whoever owns them.
	SafeDirs []string
	// HooksPath is the directory of composed hooks; empty where there are none.
	HooksPath   string
	Credentials Mode
	// Helper is what git is to start in mode Helper: see HelperCommand.
	Helper string
	// Hosts are in the order in which git is to find them.
	Hosts []Host
}

// Setting is one configuration variable that the plan sets. It never holds a
// token.
type Setting struct{ Key, Value string }

// Plan is what is to be done.
type Plan struct {
	// Files are to be written in this order.
	Files []atomicfile.File
	// ConfigFile is the path in Files whose failure EnvironFallback makes up
	// for; empty when the settings are in Env already.
	ConfigFile string
	// Env holds NAME=value for the agent's environment, replacing what is there.
	Env      []string
	Settings []Setting
	Problems problem.List

	// environment and user are what settings in the environment must heed.
	environment environConfig
	user        []Entry
}

// EnvironFallback is what takes the place of Env when ConfigFile could not be
// written.
func (p Plan) EnvironFallback() []string {
	if p.ConfigFile == "" {
		return p.Env
	}
	_, env := p.inEnviron()
	return env
}

// inEnviron are the settings that would go into the environment, and Env with
// them in it.
func (p Plan) inEnviron() ([]Setting, []string) {
	settings, env := p.environment.with(p.Settings, p.user)
	return settings, slices.Concat(p.Env, env)
}
