package gitsetup

import (
	"bytes"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"agent-init/internal/atomicfile"
	"agent-init/internal/problem"
)

// storeCredentials plans the files of git-credential-store(1) and of gh.
func (p *planner) storeCredentials() {
	hosts := p.usableHosts()
	if len(hosts) == 0 {
		return
	}
	old := place{obstacle: "HOME is not set"}
	if p.in.Home != "" {
		old = at(filepath.Join(p.in.Home, ".git-credentials"))
	}
	helper := "store"
	if old.obstacle != "" {
		if p.in.RuntimeDir == "" {
			p.problem(problem.Problem{What: "cannot store git credentials in", File: old.path, Why: old.obstacle + ", and there is no runtime directory",
				Hint: "make the home writable, or set AGENTIC_RUNTIME_DIR to a directory that is, or AGENTIC_GIT_CREDENTIALS=none"})
			return
		}
		runtime := filepath.Join(p.in.RuntimeDir, "git-credentials")
		p.warn("git credentials are stored in "+problem.Path(runtime)+" instead of the home", old.path, old.obstacle, "")
		// What stands there is of an earlier start.
		old = place{path: runtime}
		helper = "store --file " + shellQuote(runtime)
	}
	p.set("credential.helper", helper, "")
	p.secretFile(old.path, credentialLines(old.data, hosts))
	if i := slices.IndexFunc(hosts, func(h Host) bool { return h.Name == "github.com" }); i >= 0 {
		p.storeGH(hosts[i])
	}
}

func (p *planner) secretFile(path string, data []byte) {
	p.plan.Files = append(p.plan.Files, atomicfile.File{
		Path: path, Data: data, Mode: 0o600, DirMode: 0o700, Durable: true, FollowLink: true,
	})
}

// usableHosts are the hosts with a token, each host and user once.
func (p *planner) usableHosts() []Host {
	var hosts []Host
	for _, h := range p.in.Hosts {
		if h.Token == "" {
			if !isDefault(h) {
				p.warn("no git credential for "+h.Name, "", h.Variable+" has no value", "set it, or take the host out of AGENTIC_GIT_HOSTS")
			}
			continue
		}
		if why := CheckToken(h.Token); why != "" {
			p.badToken(h, why)
			continue
		}
		i := slices.IndexFunc(hosts, func(o Host) bool { return o.Name == h.Name && o.User == h.User })
		if i < 0 {
			hosts = append(hosts, h)
		} else if hosts[i].Token != h.Token {
			p.warn("git credential for "+h.Name, "", h.Variable+" is not used, as "+hosts[i].Variable+" comes before it for the same user", "")
		}
	}
	return hosts
}

func (p *planner) badToken(h Host, why string) {
	p.problem(problem.Problem{What: "cannot use " + h.Variable, Why: why, Hint: "set it again without line breaks around or inside it"})
}

// isDefault tells the credential that nobody has to ask for.
func isDefault(h Host) bool { return h.Name == "github.com" && h.User == "x-access-token" }

// credentialLines puts the hosts' lines before the others: git takes the first
// line that matches, also for a URL without a user.
func credentialLines(old []byte, hosts []Host) []byte {
	var b bytes.Buffer
	for _, h := range hosts {
		b.WriteString("https://" + percentEncode(h.User) + ":" + percentEncode(h.Token) + "@" + h.Name + "\n")
	}
	for line := range bytes.Lines(old) {
		user, host, ok := credentialOwner(strings.TrimSuffix(string(line), "\n"))
		if ok && slices.ContainsFunc(hosts, func(h Host) bool { return h.Name == host && h.User == user }) {
			continue
		}
		b.Write(line)
	}
	return b.Bytes()
}

// credentialOwner is the user and the host of a line for a whole https host,
// taken apart as git's credential_from_url does.
func credentialOwner(line string) (user, host string, ok bool) {
	rest, ok := strings.CutPrefix(line, "https://")
	if !ok {
		return "", "", false
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		if strings.Trim(rest[i:], "/") != "" {
			return "", "", false
		}
		rest = rest[:i]
	}
	login, host, ok := strings.Cut(rest, "@")
	user, _, hasPassword := strings.Cut(login, ":")
	return percentDecode(user), percentDecode(host), ok && hasPassword
}

// percentEncode leaves the unreserved characters of RFC 3986, as git does for
// users and passwords.
func percentEncode(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; isAlnum(c) || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

func percentDecode(s string) string {
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}

// shellQuote quotes for sh, which git starts a helper with arguments through.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
