package agent

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// option is an argument --NAME=VALUE, or two, --NAME VALUE.
type option struct {
	name  string
	value string
	// at is the index of the argument that ends in the value.
	at int
	// joined says that the name is in it too.
	joined bool
}

// lastOption finds the last option of a name before "--". The CLI takes the last
// of several, not all, and looks for --settings without regard to what other
// options take as their values.
func lastOption(args []string, name string) (o option, ok bool) {
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		if value, joined := strings.CutPrefix(args[i], name+"="); joined {
			o, ok = option{name, value, i, true}, true
		} else if args[i] == name && i+1 < len(args) {
			i++
			o, ok = option{name, args[i], i, false}, true
		}
	}
	return o, ok
}

// replace returns args with another value for the option.
func (o option) replace(args []string, value string) []string {
	args = slices.Clone(args)
	if o.joined {
		value = o.name + "=" + value
	}
	args[o.at] = value
	return args
}

// readFlag reads the user's --settings. The CLI itself ends with an error when
// inline JSON or the file's path is wrong.
func (s *Settings) readFlag(dir string) (found problem.List) {
	value := strings.TrimSpace(s.flag.value)
	switch {
	case value == "":
		return nil
	case strings.HasPrefix(value, "{") && strings.HasSuffix(value, "}"):
		s.flagDoc, found = parseSettings("--settings", []byte(s.flag.value))
		return found
	}
	s.flagFile = inDir(dir, s.flag.value)
	data, err := textfile.Read(s.flagFile)
	if err != nil {
		return problem.List{{Severity: problem.Warning, What: "cannot read settings", File: s.flagFile, Why: textfile.Reason(err), Hint: "it is the file of --settings"}}
	}
	s.flagDoc, found = parseSettings(s.flagFile, data)
	return found
}

// Tapped are arguments that carry the tap's prefix.
type Tapped struct {
	Argv []string
	// Document is what the file that Argv names must hold; nil when there is none.
	// It may hold the user's secrets: mode 0600.
	Document []byte
}

// maxArgument is the kernel's MAX_ARG_STRLEN with its 32 pages, less the NUL.
const maxArgument = 32*4096 - 1

// WithTap returns argv, which has the --settings of Session.Args, with prefix in
// them. Only there does it win over a project's settings.
//
// The user's --settings are kept: the CLI takes one only, so that the prefix is
// put into a copy of them. Inline JSON, which is public already, stays inline; a
// file becomes the file at path, which the caller writes. Where this cannot be
// done, argv is returned as it is, and the finding says why. Arguments that have
// the prefix already are returned as they are too.
func (s Settings) WithTap(argv []string, prefix, path string) (Tapped, problem.List) {
	as := Tapped{Argv: argv}
	quoted, err := jsontext.AppendQuote(nil, prefix)
	switch {
	case len(argv) == 0 || s.Managed:
		return as, nil
	case err != nil || !utf8.ValidString(prefix):
		return as, untappable(problem.Problem{File: prefix, Why: "JSON cannot hold a path that is not valid UTF-8"})
	}
	fresh := `{"env":{"` + PrefixVariable + `":` + string(quoted) + `}}`
	if s.flag.name == "" {
		return Tapped{Argv: slices.Insert(slices.Clone(argv), 1, "--settings="+fresh)}, nil
	}
	// Other flags may have been inserted since: its place is another then.
	flag, ok := lastOption(argv[1:], s.flag.name)
	if !ok || flag.value != s.flag.value {
		return as, nil
	}
	set := func(value string) []string {
		return append([]string{argv[0]}, flag.replace(argv[1:], value)...)
	}
	switch doc := s.flagDoc; {
	case strings.TrimSpace(s.flag.value) == "":
		return Tapped{Argv: set(fresh)}, nil
	case doc == nil || hasPrefix(doc, prefix):
		return as, nil
	case s.flagFile == "":
		merged := string(merge(doc, quoted))
		if len(s.flag.name)+1+len(merged) > maxArgument {
			return as, untappable(problem.Problem{File: "--settings", Why: "with the prefix added, it would be longer than an argument can be", Hint: "put it into a file"})
		}
		return Tapped{Argv: set(merged)}, nil
	default:
		if at, what, ok := placeBound(doc); ok {
			return as, untappable(doc.Warning(at, what+" is relative to the place of the file, so that no copy of it can be used",
				`write the path in full: "//" begins an absolute path in a permission rule`))
		}
		return Tapped{Argv: set(path), Document: merge(doc, quoted)}, nil
	}
}

func untappable(p problem.Problem) problem.List {
	p.Severity, p.What = problem.Warning, "cannot pass "+PrefixVariable+" through --settings"
	p.Hint = strings.TrimPrefix(p.Hint+"; else a project's settings may override it, and events be lost", "; ")
	return problem.List{p}
}

func hasPrefix(doc *jsondoc.Document, prefix string) bool {
	env, _ := doc.Root.Get("env")
	v, ok := env.Get(PrefixVariable)
	return ok && v.Kind == '"' && v.Text == prefix
}

// merge is the document with the prefix, quoted, in its "env"; every other byte
// is kept.
func merge(doc *jsondoc.Document, quoted []byte) []byte {
	member := `"` + PrefixVariable + `":` + string(quoted)
	object := doc.Root
	if env, ok := doc.Root.Get("env"); ok {
		if v, ok := env.Get(PrefixVariable); ok {
			return slices.Concat(doc.Data[:v.Start], quoted, doc.Data[v.End:])
		}
		object = env
	} else {
		member = `"env":{` + member + `}`
	}
	if len(object.Members) > 0 {
		member += ","
	}
	start := object.Start + 1
	return slices.Concat(doc.Data[:start], []byte(member), doc.Data[start:])
}

// placeBound finds something whose meaning depends on the directory of the file:
// in a permission rule of a --settings file, a path that begins with one slash is
// relative to it (seen with 2.1.197: a copy elsewhere no longer denied what the
// original did), and so may be what "sandbox" says of the file system.
func placeBound(doc *jsondoc.Document) (at int, what string, ok bool) {
	permissions, _ := doc.Root.Get("permissions")
	for _, list := range permissions.Members {
		for _, rule := range list.Value.Elements {
			tool, path, _ := strings.Cut(rule.Text, "(")
			path = strings.TrimSpace(path)
			if tool != "Bash" && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") {
				return rule.Start, "this rule", true
			}
		}
	}
	sandbox, _ := doc.Root.Get("sandbox")
	files, _ := sandbox.Get("filesystem")
	for _, list := range files.Members {
		for _, path := range list.Value.Elements {
			if path.Kind == '"' && !filepath.IsAbs(path.Text) && !strings.HasPrefix(path.Text, "~/") {
				return path.Start, "this path", true
			}
		}
	}
	return 0, "", false
}
