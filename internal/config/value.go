package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a setting such as "8s" or "1m30s"; a bare number is seconds.
type Duration struct {
	time.Duration
	bad string
}

// Decode never fails: a wrong value is reported with all others, by name.
func (d *Duration) Decode(s string) error {
	*d = Duration{}
	text := strings.TrimSpace(s)
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < 1e9 {
		d.Duration = time.Duration(n * float64(time.Second))
		return nil
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		d.bad = s
		return nil
	}
	d.Duration = v
	return nil
}

func (d *Duration) check() (why, allowed string) {
	if d.bad == "" {
		return "", ""
	}
	return fmt.Sprintf("%q is no duration", d.bad), "use 0, 8s, 1m30s or a number of seconds"
}

// Bool is a setting that is on or off.
type Bool struct {
	On  bool
	bad string
}

// Decode never fails: a wrong value is reported with all others, by name.
func (b *Bool) Decode(s string) error {
	*b = Bool{}
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "1", "true", "yes", "on":
		b.On = true
	case "", "0", "false", "no", "off":
	default:
		b.bad = s
	}
	return nil
}

func (b *Bool) check() (why, allowed string) {
	if b.bad == "" {
		return "", ""
	}
	return fmt.Sprintf("%q is neither on nor off", b.bad), "use 1 or 0"
}

// List is a setting with several values; blanks around and empty ones are
// dropped.
type List []string

// Decode keeps the text whole: the separators are in the field's tag.
func (l *List) Decode(s string) error {
	*l = List{s}
	return nil
}

func (l *List) split(separators string) {
	var out List
	for _, part := range strings.FieldsFunc(strings.Join(*l, separators[:1]), func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	*l = out
}

// Count is a whole number of things, 0 or more.
type Count struct {
	N   int
	bad string
}

// Decode never fails: a wrong value is reported with all others, by name.
func (c *Count) Decode(s string) error {
	*c = Count{}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if s != "" && (err != nil || n < 0) {
		c.bad = s
		return nil
	}
	c.N = n
	return nil
}

func (c *Count) check() (why, allowed string) {
	if c.bad == "" {
		return "", ""
	}
	return fmt.Sprintf("%q is no number of times", c.bad), "use 0 or a whole number"
}

// Codes is a set of exit codes.
type Codes struct {
	Values []int
	bad    string
}

// Decode never fails: a wrong value is reported with all others, by name.
func (c *Codes) Decode(s string) error {
	*c = Codes{}
	return c.add(s)
}

func (c *Codes) add(s string) error {
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || n > 255 {
			c.bad = part
			return nil
		}
		c.Values = append(c.Values, n)
	}
	return nil
}

func (c *Codes) check() (why, allowed string) {
	if c.bad == "" {
		return "", ""
	}
	return fmt.Sprintf("%q is no exit code", c.bad), "use numbers from 0 to 255, comma-separated"
}

// split finishes a list that envconfig has read whole.
func (f field) split() {
	if l, ok := f.value.Addr().Interface().(*List); ok {
		l.split(f.tag.Get("sep"))
	}
}

// set gives the field the value that a text stands for.
func (f field) set(text string) {
	switch v := f.value.Addr().Interface().(type) {
	case *string:
		*v = text
	case *List:
		*v = List{text}
		f.split()
	case interface{ Decode(string) error }:
		v.Decode(text)
	}
}

// check tells why the field's value cannot be used and what is allowed.
func (f field) check() (why, allowed string) {
	if oneof := f.tag.Get("oneof"); oneof != "" {
		got := f.value.String()
		choices := strings.Fields(oneof)
		for _, c := range choices {
			if got == c {
				return "", ""
			}
		}
		return fmt.Sprintf("%q is not allowed", got), "use " + strings.Join(choices, ", ")
	}
	if c, ok := f.value.Addr().Interface().(interface{ check() (string, string) }); ok {
		return c.check()
	}
	return "", ""
}

// typeName is the field's type in the words of the documentation.
func (f field) typeName() string {
	if oneof := f.tag.Get("oneof"); oneof != "" {
		return strings.Join(strings.Fields(oneof), " | ")
	}
	switch f.value.Interface().(type) {
	case Duration:
		return "duration"
	case Bool:
		return "0 | 1"
	case Count:
		return "number"
	case Codes:
		return "exit codes"
	case Sinks:
		return "sinks"
	case List:
		return "list"
	}
	if strings.HasSuffix(f.name, "_DIR") || f.name == "MCP_BASELINE" || f.name == "MCP_CONFIG" || f.name == "RECORD" || f.name == "PROMPT_FILE" {
		return "path"
	}
	return "text"
}
