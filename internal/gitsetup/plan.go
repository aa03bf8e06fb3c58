package gitsetup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent-init/internal/atomicfile"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

const defaultEmail = "agent@agentic.local"

type planner struct {
	in   Input
	plan Plan
	// config is where our block belongs; its obstacle is also set when git
	// would not read the file.
	config place
	own    userContent
	// user holds what the user's own files set, in git's order.
	user []Entry
	// environment holds what GIT_CONFIG_COUNT brings already.
	environment environConfig
}

// New makes the plan. It reads files of the home and directories, nothing else.
func New(in Input) Plan {
	p := planner{in: in}
	p.findConfig()
	p.readUser()
	p.environment = p.readEnviron()
	p.identity()
	p.set("init.defaultBranch", "main", "")
	for _, dir := range p.safeDirectories() {
		p.set("safe.directory", dir, "")
	}
	p.hooks()
	switch in.Credentials {
	case Store:
		p.storeCredentials()
	case Helper:
		p.useHelper()
	}
	p.placeSettings()
	return p.plan
}

func (p *planner) problem(found ...problem.Problem) { p.plan.Problems.Add(found...) }

func (p *planner) warn(what, file, why, hint string) {
	p.problem(problem.Problem{Severity: problem.Warning, What: what, File: file, Why: why, Hint: hint})
}

// set adds a setting; variable is where its value came from, if anywhere.
func (p *planner) set(key, value, variable string) {
	if strings.ContainsRune(value, 0) {
		source := variable
		if source == "" {
			source = key
		}
		p.problem(problem.Problem{What: "cannot use " + source, Why: "it holds a NUL byte, which git cannot represent"})
		return
	}
	p.plan.Settings = append(p.plan.Settings, Setting{key, value})
}

// env is a variable's value, empty when it is unset.
func (p *planner) env(name string) string {
	value, _ := p.in.Env(name)
	return value
}

// configHome is where programs of the user keep configuration; empty without a
// home (XDG Base Directory Specification).
func (p *planner) configHome() string {
	if dir := p.env("XDG_CONFIG_HOME"); dir != "" {
		return dir
	}
	if p.in.Home == "" {
		return ""
	}
	return filepath.Join(p.in.Home, ".config")
}

func (p *planner) findConfig() {
	if p.in.Home == "" {
		p.config.obstacle = "HOME is not set"
		return
	}
	p.config = at(filepath.Join(p.configHome(), "git", "config"))
	if _, set := p.in.Env("GIT_CONFIG_GLOBAL"); set {
		p.config.obstacle = "git does not read it when GIT_CONFIG_GLOBAL is set"
		return
	}
	own, unpaired := splitConfig(p.config.path, p.config.data)
	switch {
	case unpaired == nil:
		p.own = own
	case p.config.obstacle == "":
		p.problem(*unpaired)
	default:
		// Nothing can be lost in a file that is not written.
		p.own = userContent{rest: p.config.data}
	}
}

// readUser collects what the user's own files set. Files that they include are
// not followed.
func (p *planner) readUser() {
	if path, set := p.in.Env("GIT_CONFIG_GLOBAL"); set {
		if path != "" {
			p.readUserFile(path)
		}
		return
	}
	p.addUser(p.config.path, p.own.all())
	if p.in.Home != "" {
		p.readUserFile(filepath.Join(p.in.Home, ".gitconfig"))
	}
}

func (p *planner) readUserFile(path string) {
	data, err := textfile.Read(path)
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		p.warn("git configuration", path, textfile.Reason(err), "what it sets is not known here")
		return
	}
	p.addUser(path, data)
}

func (p *planner) addUser(path string, data []byte) {
	entries, bad := ParseConfig(path, data)
	if bad != nil {
		bad.Severity = problem.Warning
		p.problem(*bad)
	}
	p.user = append(p.user, entries...)
}

// identity makes the author's variables git's identity, and the committer's
// default to them.
func (p *planner) identity() {
	name, email := p.env("GIT_AUTHOR_NAME"), p.env("GIT_AUTHOR_EMAIL")
	committed := email
	if name != "" {
		p.set("user.name", name, "GIT_AUTHOR_NAME")
		p.committer("NAME", name)
		if email == "" {
			email = defaultEmail
			// Without the variable git takes the author's address from its
			// configuration, where the user's wins.
			committed = p.userEmail(email)
		}
	}
	if email != "" {
		p.set("user.email", email, "GIT_AUTHOR_EMAIL")
		p.committer("EMAIL", committed)
		if v, set := p.in.Env("GIT_AUTHOR_EMAIL"); set && v == "" {
			p.plan.Env = append(p.plan.Env, "GIT_AUTHOR_EMAIL="+committed)
		}
	}
	p.emptyName("GIT_AUTHOR_NAME", false)
	p.emptyName("GIT_COMMITTER_NAME", name != "")
}

func (p *planner) userEmail(otherwise string) string {
	for _, key := range []string{"author.email", "user.email"} {
		for _, entries := range [][]Entry{p.environment.entries, p.user} {
			if v, ok := Last(entries, key); ok {
				return v
			}
		}
	}
	return otherwise
}

// committer exports a variable of the committer's unless it has a value, or the
// user's configuration names a committer, which the variable would override.
func (p *planner) committer(part, value string) {
	variable := "GIT_COMMITTER_" + part
	own, set := p.in.Env(variable)
	if own != "" {
		return
	}
	_, configured := Last(append(slices.Clone(p.user), p.environment.entries...), "committer."+strings.ToLower(part))
	if set || !configured {
		p.plan.Env = append(p.plan.Env, variable+"="+value)
	}
}

// emptyName warns of a variable that makes every commit fail: git takes an
// empty name for a name.
func (p *planner) emptyName(variable string, replaced bool) {
	if v, set := p.in.Env(variable); set && v == "" && !replaced {
		p.warn(variable, "", "it is set but empty, and git refuses to commit with an empty name", "give it a value or unset it")
	}
}

// safeDirectories lists the directories as git compares them: by their resolved
// path, and by .git where git clone reads the repository from disk.
func (p *planner) safeDirectories() []string {
	var dirs []string
	listed := map[string]bool{}
	add := func(dir string) {
		if listed[dir] {
			return
		}
		listed[dir] = true
		dirs = append(dirs, dir)
		git := filepath.Join(dir, ".git")
		if !listed[git] && isDir(git) {
			listed[git] = true
			dirs = append(dirs, git)
		}
	}
	resolve := resolver{}
	for _, dir := range p.in.SafeDirs {
		if !filepath.IsAbs(dir) {
			p.warn("safe.directory", dir, "the path is not absolute, so git could not match it", "")
			continue
		}
		dir = filepath.Clean(dir)
		add(dir)
		if real, ok := resolve.path(dir); ok {
			add(real)
		}
	}
	return dirs
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// resolver resolves symlinks. It remembers what the parents of paths resolve to:
// most repos have the same one.
type resolver map[string]string

// path is filepath.EvalSymlinks for a clean absolute path.
func (r resolver) path(path string) (real string, ok bool) {
	parent, name := filepath.Split(path)
	info, err := os.Lstat(path)
	if name == "" || err != nil || info.Mode()&os.ModeSymlink != 0 {
		real, err := filepath.EvalSymlinks(path)
		return real, err == nil
	}
	real, known := r[parent]
	if !known {
		if real, err = filepath.EvalSymlinks(parent); err != nil {
			return "", false
		}
		r[parent] = real
	}
	return filepath.Join(real, name), true
}

// placeSettings puts the settings into the file, or where that is impossible
// into the environment.
func (p *planner) placeSettings() {
	if p.plan.Problems.Refuses() {
		return
	}
	p.plan.environment, p.plan.user = p.environment, p.user
	if p.config.obstacle != "" {
		p.warn("git is configured through GIT_CONFIG_COUNT instead of a file", p.config.path, p.config.obstacle,
			"git config --global does not show these settings")
		p.plan.Settings, p.plan.Env = p.plan.inEnviron()
		return
	}
	if len(p.own.moved) > 0 {
		p.warn("git configuration", p.config.path, fmt.Sprintf("%d lines inside agent-init's block are not its own and move below it",
			strings.Count(string(p.own.moved), "\n")), "")
	}
	p.plan.ConfigFile = p.config.path
	p.plan.Files = append(p.plan.Files, atomicfile.File{
		Path: p.config.path, Data: p.own.with(renderBlock(p.plan.Settings)),
		Mode: p.config.mode, DirMode: 0o700, Durable: true, FollowLink: true,
	})
}
