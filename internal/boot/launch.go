package boot

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent-init/internal/agent"
	"agent-init/internal/atomicfile"
	"agent-init/internal/config"
	"agent-init/internal/event"
	"agent-init/internal/jsondoc"
	"agent-init/internal/privilege"
	"agent-init/internal/problem"
	"agent-init/internal/rundir"
	"agent-init/internal/secret"
	"agent-init/internal/tap"
	"agent-init/internal/textfile"
)

// Launch is what a later command in the same workspace needs to run as the
// agent does. It names secrets and never holds one.
type Launch struct {
	// Flags hand plugins and MCP servers to Claude Code.
	Flags []string
	// Env are variables that boot set, secrets aside.
	Env []string
	// Files are the secrets that were found in files.
	Files []SecretFile
	// Put are the secrets that were handed over to PID 1, which the agent gets.
	Put []string
	// Values are theirs, for Prepare; they are never written down.
	Values map[string]string
	// Masked are the names of variables whose values must not be shown.
	Masked []string
	// Withheld are the names that the agent does not get.
	Withheld []string
	// Bin are plugin directories for the PATH of an agent without plugins.
	Bin []string
	// Shim is the directory of the shim; empty where boot made none.
	Shim string
	// Tap is the directory of the workspace's tap; empty where there is none.
	Tap string
	// SessionEnd is how many milliseconds the hooks of a session's end have.
	SessionEnd string
}

// SecretFile is a variable and the file that holds its value.
type SecretFile struct{ Name, Path string }

// prepared are variables that Prepare sets by itself, because they depend on the
// environment that the command would have had.
var prepared = []string{"PATH", tap.PrefixVariable, tap.KeptVariable, sessionEndTimeout}

func (p *Plan) launch() Launch {
	l := Launch{Flags: p.Flags, Masked: p.secrets.masked, Withheld: p.Config.WithholdEnv, Bin: p.binDirs(), Tap: p.Tap, SessionEnd: p.sessionEnd()}
	if p.shim {
		l.Shim = p.shimDir()
	}
	for _, name := range p.environ.added {
		switch v := p.secrets.values[name]; {
		case v.Origin == secret.File:
			l.Files = append(l.Files, SecretFile{name, v.Path})
		case v.Origin == secret.Put && slices.Contains(l.Withheld, name):
		case v.Origin == secret.Put:
			l.Put = append(l.Put, name)
		case !slices.Contains(prepared, name):
			l.Env = append(l.Env, name+"="+p.environ.get(name))
		}
	}
	return l
}

func (p *Plan) launchJSON() []byte {
	l := p.launch()
	return document([]event.Member{
		event.Strings("flags", l.Flags),
		event.Strings("env", l.Env),
		event.List("secret_files", each(l.Files, func(f SecretFile) []event.Member {
			return []event.Member{event.String("name", f.Name), event.String("path", f.Path)}
		})...),
		event.Strings("put", l.Put),
		event.Strings("masked", l.Masked),
		event.Strings("withheld", l.Withheld),
		event.Strings("bin", l.Bin),
		event.String("shim", l.Shim),
		event.String("tap", l.Tap),
		event.String("session_end_ms", l.SessionEnd),
	})
}

// Launchable tells whether the boot of a workspace is over.
func Launchable(dir rundir.Dir) bool {
	_, err := os.Stat(dir.Join(rundir.Launch))
	return err == nil
}

// ReadLaunch reads what the boot of a live workspace left for later commands.
func ReadLaunch(dir rundir.Dir) (Launch, *problem.Problem) {
	var l Launch
	path := dir.Join(rundir.Launch)
	fail := func(why string) (Launch, *problem.Problem) {
		return l, &problem.Problem{What: "cannot join the workspace", File: path, Why: why, Hint: "is its boot over? agent-init writes this file at the end of it"}
	}
	data, err := textfile.Read(path)
	if err != nil {
		return fail(textfile.Reason(err))
	}
	doc, bad := jsondoc.Parse("launch file", path, data)
	if bad != nil {
		return fail(bad.Why)
	}
	texts := func(name string) (out []string) {
		v, _ := doc.Root.Get(name)
		for _, e := range v.Elements {
			out = append(out, e.Text)
		}
		return out
	}
	l = Launch{Flags: texts("flags"), Env: texts("env"), Put: texts("put"), Masked: texts("masked"), Withheld: texts("withheld"), Bin: texts("bin")}
	for name, field := range map[string]*string{"shim": &l.Shim, "tap": &l.Tap, "session_end_ms": &l.SessionEnd} {
		v, _ := doc.Root.Get(name)
		*field = v.Text
	}
	files, _ := doc.Root.Get("secret_files")
	for _, e := range files.Elements {
		name, _ := e.Get("name")
		path, _ := e.Get("path")
		l.Files = append(l.Files, SecretFile{name.Text, path.Text})
	}
	return l, nil
}

// meant tells whether this process's own environment asks for a file. The launch
// file is the agent's: it must not have root read others.
func (l Launch) meant(env *environ, f SecretFile) bool {
	dir := cmp.Or(env.get("AGENTIC_SECRETS_DIR"), config.DefaultSecretsDir)
	return f.Path == env.get(f.Name+"_FILE") || f.Path == filepath.Join(absolute(dir), f.Name)
}

// Prepared is a command as it runs in a live workspace.
type Prepared struct {
	Argv, Env []string
	Masker    *secret.Masker
	Agent     agent.Kind
	// File is to be written before the command starts; nil where there is none.
	File     *atomicfile.File
	Problems problem.List
}

// Prepare gives a command the flags and the environment that the agent of the
// workspace has. The CLI is to call the tap in the given directory; where that is
// empty, the tap that its caller has, or the workspace's.
func (l Launch) Prepare(command, environ []string, setting string, dir rundir.Dir, tapDir string) Prepared {
	env := newEnviron(environ)
	var out Prepared
	if l.Shim != "" {
		env.prependPath(l.Shim)
	}
	if prefix := env.get(tap.PrefixVariable); tapDir == "" && !tap.Ours(prefix, dir.Path) {
		tapDir = l.Tap
	}
	if tapDir != "" {
		env.setTap(dir.Path, tapDir, l.SessionEnd)
	}
	for _, entry := range l.Env {
		name, value, _ := strings.Cut(entry, "=")
		env.set(name, value)
	}
	for name, value := range l.Values {
		env.set(name, value)
	}
	for _, f := range l.Files {
		if env.get(f.Name) != "" {
			continue
		}
		// The file is read afresh, so that a rotated secret counts.
		file := secret.Sources{Env: func(name string) (string, bool) {
			if name == f.Name+"_FILE" {
				return f.Path, true
			}
			return "", false
		}}
		var value secret.Value
		var bad *problem.Problem
		read := func() { value, bad = file.Lookup(f.Name) }
		if l.meant(env, f) {
			privilege.AsRoot(read)
		} else {
			read()
		}
		if bad != nil {
			// What the command does not get it need not read.
			if !slices.Contains(l.Withheld, f.Name) {
				bad.Severity = problem.Warning
				out.Problems.Add(*bad)
			}
			continue
		}
		env.set(f.Name, value.Text)
	}
	var secrets []string
	for _, entry := range env.entries {
		if name, value, _ := strings.Cut(entry, "="); secret.IsCredential(name) || slices.Contains(l.Masked, name) {
			secrets = append(secrets, value)
		}
	}
	out.Masker = secret.NewMasker(secrets)
	out.Agent = agent.Choose(setting, command[0])
	out.Argv = command
	if out.Agent == agent.Claude {
		var found problem.List
		out.Argv, out.File, _, found = env.tapSettings(agent.Insert(command, l.Flags), dir.Path)
		out.Problems.Add(found...)
	} else {
		env.appendPath(l.Bin)
	}
	out.Env = env.without(l.Withheld)
	return out
}
