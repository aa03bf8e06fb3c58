package config

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

// ParseFlags reads the flags of a command line into c, over what the
// environment said, and returns what follows them: flags stop at the first
// word that is none, or after "--". The error is a usage error, in one line.
func (c *Config) ParseFlags(args []string) (rest []string, err error) {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args, nil // as most often, and the flag package is slow
	}
	set := flag.NewFlagSet("agent-init", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	c.Register(set)
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	return set.Args(), nil
}

// Register adds a flag for each setting that has one.
func (c *Config) Register(set *flag.FlagSet) {
	for _, f := range c.fields() {
		if name := f.tag.Get("flag"); name != "" {
			set.Var(&flagValue{config: c, field: f}, name, f.tag.Get("desc"))
		}
	}
}

type flagValue struct {
	config *Config
	field  field
	seen   bool
}

func (v *flagValue) String() string { return "" }

// IsBoolFlag lets --mcp-strict stand without a value.
func (v *flagValue) IsBoolFlag() bool {
	if v.config == nil {
		return false
	}
	_, ok := v.field.value.Interface().(Bool)
	return ok
}

// Set replaces what the environment said; a list flag given again adds to it.
func (v *flagValue) Set(text string) error {
	v.config.explicit[v.field.name] = true
	switch p := v.field.value.Addr().Interface().(type) {
	case *List:
		more := List{text}
		more.split(v.field.tag.Get("sep"))
		if !v.seen {
			*p = nil
		}
		*p = append(*p, more...)
	case *Codes:
		if !v.seen {
			*p = Codes{}
		}
		p.add(text)
	default:
		v.field.set(text)
	}
	v.seen = true
	if why, allowed := v.field.check(); why != "" {
		return fmt.Errorf("%s; %s", why, allowed)
	}
	return nil
}

// Row is one setting as the documentation shows it.
type Row struct {
	Variable, Flag, Type, Default, Meaning string
}

// Rows are all settings, in the order of the struct.
func Rows() []Row {
	var out []Row
	for _, f := range new(Config).fields() {
		r := Row{Variable: Prefix + f.name, Type: f.typeName(), Default: f.tag.Get("default"), Meaning: f.tag.Get("desc")}
		if name := f.tag.Get("flag"); name != "" {
			r.Flag = "--" + name
		}
		if legacy := f.tag.Get("legacy"); legacy != "" {
			r.Meaning += " (or " + legacy + ")"
		}
		if sep := f.tag.Get("sep"); sep != "" {
			r.Meaning += "; separated by " + separatorNames(sep)
		}
		out = append(out, r)
	}
	return out
}

func separatorNames(sep string) string {
	var names []string
	for _, r := range sep {
		names = append(names, map[rune]string{',': "commas", ':': "colons", ' ': "blanks"}[r])
	}
	return strings.Join(names, " or ")
}
