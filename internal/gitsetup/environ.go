package gitsetup

import (
	"math"
	"strconv"
	"strings"

	"agent-init/internal/problem"
)

// environConfig is the configuration in GIT_CONFIG_COUNT, GIT_CONFIG_KEY_n and
// GIT_CONFIG_VALUE_n. git reads it after every file, so what it holds wins.
type environConfig struct {
	count   int
	entries []Entry
}

// readEnviron reads what the environment holds already. git does not start
// with a count or an entry that it cannot use, which is an Error.
func (p *planner) readEnviron() environConfig {
	var c environConfig
	text, set := p.in.Env("GIT_CONFIG_COUNT")
	if !set || text == "" {
		return c
	}
	count, err := strconv.ParseUint(text, 10, 64)
	if err != nil || count > math.MaxInt32 {
		p.problem(problem.Problem{What: "cannot use GIT_CONFIG_COUNT", Why: strconv.Quote(text) + " is not a count",
			Hint: "give the number of GIT_CONFIG_KEY_n and GIT_CONFIG_VALUE_n, or unset it"})
		return c
	}
	for n := range int(count) {
		suffix := strconv.Itoa(n)
		key, hasKey := p.in.Env("GIT_CONFIG_KEY_" + suffix)
		value, hasValue := p.in.Env("GIT_CONFIG_VALUE_" + suffix)
		if !hasKey || !hasValue {
			missing := "GIT_CONFIG_KEY_" + suffix
			if hasKey {
				missing = "GIT_CONFIG_VALUE_" + suffix
			}
			p.problem(problem.Problem{What: "cannot use GIT_CONFIG_COUNT", Why: "it says " + text + ", but " + missing + " is not set",
				Hint: "set it, or lower the count"})
			return c
		}
		c.entries = append(c.entries, Entry{Key: normalKey(key), Value: value})
	}
	c.count = int(count)
	return c
}

// normalKey is a key as Entry has it.
func normalKey(key string) string {
	first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first < 0 {
		return strings.ToLower(key)
	}
	return strings.ToLower(key[:first]) + key[first:last] + strings.ToLower(key[last:])
}

// with appends settings, less those that would override a variable of the
// user's or say again what is there; it returns what it appended and the
// variables that do it.
//
// Two limits of git's: these settings also win over a repository's own, and the
// upload-pack of a clone from a local path does not get them, so that such a
// clone of another owner's repository needs the file.
func (c environConfig) with(settings []Setting, user []Entry) (added []Setting, env []string) {
	for _, s := range settings {
		if c.leaveOut(s, user) {
			continue
		}
		n := strconv.Itoa(c.count + len(added))
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.Key, "GIT_CONFIG_VALUE_"+n+"="+s.Value)
		added = append(added, s)
	}
	if len(added) > 0 {
		env = append([]string{"GIT_CONFIG_COUNT=" + strconv.Itoa(c.count+len(added))}, env...)
	}
	return added, env
}

func (c environConfig) leaveOut(s Setting, user []Entry) bool {
	key := normalKey(s.Key)
	switch key {
	case "safe.directory", "credential.helper":
		return c.lists(key, s.Value)
	}
	if strings.HasPrefix(key, "credential.https://") {
		// They come in pairs, of which the first clears what came before.
		return false
	}
	_, inFile := Last(user, key)
	_, inEnviron := Last(c.entries, key)
	return inFile || inEnviron
}

// lists tells whether the value is among those of a variable with many, which
// an empty value clears.
func (c environConfig) lists(key, value string) (found bool) {
	for _, e := range c.entries {
		if e.Key == key {
			found = e.Value != "" && (found || e.Value == value)
		}
	}
	return found
}
