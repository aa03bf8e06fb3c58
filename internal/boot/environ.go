package boot

import (
	"slices"
	"strings"
)

// environ is an environment in which a later value of a name replaces an
// earlier one in its place, as getenv(3) sees only the first.
type environ struct {
	entries []string
	index   map[string]int
	// added are the names that boot has set, in order.
	added []string
}

func newEnviron(entries []string) *environ {
	e := &environ{index: make(map[string]int, len(entries))}
	for _, entry := range entries {
		name, value, ok := strings.Cut(entry, "=")
		if !ok {
			continue
		}
		if _, twice := e.index[name]; !twice {
			e.put(name, value)
		}
	}
	return e
}

func (e *environ) set(name, value string) {
	e.put(name, value)
	if !slices.Contains(e.added, name) {
		e.added = append(e.added, name)
	}
}

func (e *environ) put(name, value string) {
	if i, ok := e.index[name]; ok {
		e.entries[i] = name + "=" + value
		return
	}
	e.index[name] = len(e.entries)
	e.entries = append(e.entries, name+"="+value)
}

// unset removes what boot has set.
func (e *environ) unset(name string) {
	if i, ok := e.index[name]; ok {
		e.entries = slices.Delete(e.entries, i, i+1)
		delete(e.index, name)
		for n, j := range e.index {
			if j > i {
				e.index[n] = j - 1
			}
		}
	}
	e.added = slices.DeleteFunc(e.added, func(n string) bool { return n == name })
}

func (e *environ) lookup(name string) (string, bool) {
	i, ok := e.index[name]
	if !ok {
		return "", false
	}
	return e.entries[i][len(name)+1:], true
}

func (e *environ) get(name string) string {
	value, _ := e.lookup(name)
	return value
}

// without returns the entries whose names are not withheld.
func (e *environ) without(names []string) []string {
	withheld := make(map[string]bool, len(names))
	for _, n := range names {
		withheld[n] = true
	}
	out := make([]string, 0, len(e.entries))
	for _, entry := range e.entries {
		if name, _, _ := strings.Cut(entry, "="); !withheld[name] {
			out = append(out, entry)
		}
	}
	return out
}

// prependPath puts a directory before all others of PATH.
func (e *environ) prependPath(dir string) {
	path := e.get("PATH")
	if path != dir && !strings.HasPrefix(path, dir+":") {
		e.set("PATH", strings.TrimSuffix(dir+":"+path, ":"))
	}
}

// appendPath adds directories at the end of PATH.
func (e *environ) appendPath(dirs []string) {
	path := e.get("PATH")
	for _, dir := range dirs {
		path += ":" + dir
	}
	if len(dirs) > 0 {
		e.set("PATH", strings.TrimPrefix(path, ":"))
	}
}
