package gitsetup

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"agent-init/internal/problem"
)

const hostsHint = `write HOST=USER:VARIABLE, separated by commas, with the name of the variable that holds the token: "gitlab.example.com=oauth2:GITLAB_TOKEN"`

// ParseHosts parses AGENTIC_GIT_HOSTS: HOST[:PORT]=USER:VARIABLE, separated by
// commas or blanks. The hosts have no Token yet. What stands in the place of a
// variable's name may be a token put there by mistake, so the Error never shows
// it.
func ParseHosts(s string) ([]Host, *problem.Problem) {
	var hosts []Host
	entries := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	for i, entry := range entries {
		h, why := parseHost(entry)
		for _, other := range hosts {
			if why == "" && other.Name == h.Name && other.User == h.User {
				why = "the same host and user stand there twice"
			}
		}
		if why != "" {
			return nil, &problem.Problem{What: "cannot use AGENTIC_GIT_HOSTS", Why: fmt.Sprintf("entry %d: %s", i+1, why), Hint: hostsHint}
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

func parseHost(entry string) (h Host, why string) {
	name, credential, ok := strings.Cut(entry, "=")
	if !ok {
		return h, "it has no ="
	}
	if why := checkHostName(name); why != "" {
		return h, why
	}
	user, variable, ok := strings.Cut(credential, ":")
	switch {
	case !ok:
		return h, "it has no : between user and variable"
	case user == "":
		return h, "it has no user"
	case !utf8.ValidString(user) || hasControl(user):
		return h, "the user has characters that are not allowed"
	case variable == "":
		return h, "it has no variable"
	case !isVariable(variable):
		return h, "what follows the user is not the name of a variable (not shown, in case it is a token)"
	case looksLikeToken(variable):
		return h, "what follows the user looks like a token, not like the name of a variable (not shown)"
	}
	return Host{Name: name, User: user, Variable: variable}, ""
}

// checkHostName allows what git keeps of an https URL's authority without
// change: a name, an IPv4 address or an IPv6 address in brackets, and a port.
func checkHostName(s string) (why string) {
	const bad = "the host is not a name or address, with :PORT or without"
	if strings.Contains(s, "/") {
		return bad + "; a scheme or a path does not belong there"
	}
	name, port, hasPort := s, "", false
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return bad
		}
		if addr, err := netip.ParseAddr(s[1:end]); err != nil || !addr.Is6() || addr.Zone() != "" {
			return bad
		}
		name = ""
		if rest := s[end+1:]; rest != "" {
			if port, hasPort = strings.CutPrefix(rest, ":"); !hasPort {
				return bad
			}
		}
	} else {
		name, port, hasPort = strings.Cut(s, ":")
		if name == "" {
			return bad
		}
	}
	for i := range len(name) {
		if c := name[i]; !isAlnum(c) && c != '.' && c != '-' && c != '_' {
			return bad
		}
	}
	if hasPort {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "the port is not a number from 1 to 65535"
		}
	}
	return ""
}

func isVariable(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '_' && !isAlpha(c) && (i == 0 || !isAlnum(c)) {
			return false
		}
	}
	return s != ""
}

// looksLikeToken catches tokens that could be names of variables: GitHub's by
// their published prefixes, others by mixing digits and small letters at a
// length that names without an underscore do not have.
func looksLikeToken(s string) bool {
	for _, prefix := range []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "gldt_"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return len(s) >= 20 && !strings.Contains(s, "_") &&
		strings.ContainsAny(s, "0123456789") && strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyz")
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isAlnum(c byte) bool { return isAlpha(c) || '0' <= c && c <= '9' }
