package gitsetup

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// HelperCommand is the value of credential.helper that has git start a program
// with arguments. git hands it to a shell.
func HelperCommand(program string, args ...string) string {
	command := "!" + shellQuote(program)
	for _, a := range args {
		command += " " + shellQuote(a)
	}
	return command
}

// useHelper has git ask agent-init, and nobody before it, for the hosts with
// credentials. github.com is one of them if it has a token now: without one,
// whatever helper there is keeps it.
func (p *planner) useHelper() {
	var hosts []string
	for _, h := range p.in.Hosts {
		switch why := CheckToken(h.Token); {
		case !h.Wanted():
			continue
		case h.Token == "":
			p.warn("no git credential for "+h.Name, "", h.Variable+" has no value yet", "it is looked up again whenever git asks")
		case why != "":
			p.badToken(h, why)
			continue
		}
		if slices.Contains(hosts, h.Name) {
			continue
		}
		hosts = append(hosts, h.Name)
		// An empty value clears the list (gitcredentials(7)): other helpers are
		// told what ours has said, and may write it down.
		p.set("credential.https://"+h.Name+".helper", "", "")
		p.set("credential.https://"+h.Name+".helper", p.in.Helper, "")
	}
	if len(hosts) > 0 && p.config.obstacle == "" && slices.ContainsFunc(p.user, isHelper) {
		p.warn("git configuration", "", "it names a credential helper of your own, which git tells the tokens too and which may write them to disk",
			"take credential.helper out of ~/.gitconfig, or name the hosts that it is for")
	}
}

// isHelper tells a helper for every host. Those for single hosts are meant for
// them.
func isHelper(e Entry) bool { return e.Key == "credential.helper" && e.Value != "" }

// Wanted tells whether git is to ask agent-init for a host: not for github.com
// where nobody has given a token.
func (h Host) Wanted() bool { return h.Token != "" || !isDefault(h) }

// CheckToken says why git cannot be given a token; it is empty where it can.
func CheckToken(token string) (why string) {
	if hasControl(token) || !utf8.ValidString(token) {
		return "the token holds a newline or another character that no token has"
	}
	return ""
}

// QueryLimit is how many bytes of a Query are read.
const QueryLimit = 64 << 10

// Query is what git asks a credential helper.
type Query struct{ Protocol, Host, User string }

// ParseQuery reads attributes as git writes them to a helper (git-credential(1),
// INPUT/OUTPUT FORMAT): lines KEY=VALUE up to an empty one or the end.
func ParseQuery(data []byte) (q Query, err error) {
	if len(data) > QueryLimit {
		return q, errors.New("there is more than git would ask")
	}
	for raw := range bytes.Lines(data) {
		line := strings.TrimSuffix(string(raw), "\n")
		if line == "" {
			break
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return Query{}, errors.New("a line has no =")
		}
		switch key {
		case "protocol":
			q.Protocol = value
		case "host":
			q.Host = value
		case "username":
			q.User = value
		}
	}
	return q, nil
}

// Answers tells whether the host's credential is what is asked for.
func (h Host) Answers(q Query) bool {
	return q.Protocol == "https" && sameHost(h.Name, q.Host) && (q.User == "" || q.User == h.User)
}

// sameHost compares names as DNS does, and ports with that of https as the
// default.
func sameHost(a, b string) bool {
	return a != "" && strings.EqualFold(strings.TrimSuffix(a, ":443"), strings.TrimSuffix(b, ":443"))
}
