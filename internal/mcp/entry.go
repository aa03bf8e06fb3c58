package mcp

import (
	"fmt"
	"strconv"
	"strings"

	"agent-init/internal/jsondoc"
)

// transports maps a "type" to the transport that Claude Code uses for it.
// Claude Code knows further types (sdk, sse-ide, ws-ide, claudeai-proxy), which
// only a program that embeds it can serve.
var transports = map[string]string{"stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse", "ws": "ws"}

// reserved are the names, normalised, whose entries Claude Code drops.
var reserved = []string{"claude-in-chrome", "computer-use", "Claude_Preview"}

// checkName reports a name that Claude Code takes for itself or stumbles over.
func (r *reporter) checkName(offset int, name string) {
	const hint = "rename the server"
	switch name {
	case "constructor", "__proto__":
		r.fault(offset, fmt.Sprintf("server %q: Claude Code refuses every server of a file with this name in it", name), hint)
		return
	case "workspace", "prototype":
		r.fault(offset, fmt.Sprintf("server %q: Claude Code keeps this name for itself and drops the entry", name), hint)
		return
	}
	spelt := Normalise(name)
	for _, n := range reserved {
		if spelt == n {
			r.fault(offset, fmt.Sprintf("server %q: Claude Code keeps this name for itself and drops the entry", name), hint)
		}
	}
}

// checkEntry reports every fault for which Claude Code would drop the entry,
// and returns the transport of an entry without one.
func (r *reporter) checkEntry(server string, at int, v jsondoc.Value) (transport string) {
	f := fields{r, server, ""}
	if v.Kind != '{' {
		f.fault(v.Start, "it is "+v.KindName()+", not an object", "")
		return ""
	}
	if f.transport = f.choose(at, v); f.transport == "" {
		return ""
	}
	for _, m := range v.Members {
		f.check(m.Name, m.Value)
	}
	return f.transport
}

// fields checks the members of one entry.
type fields struct {
	*reporter
	server, transport string
}

func (f fields) fault(offset int, why, hint string) {
	f.reporter.fault(offset, "server "+strconv.Quote(f.server)+": "+why, hint)
}

// choose finds the transport and reports a missing command or url, at the
// server's name.
func (f fields) choose(at int, v jsondoc.Value) string {
	typ, typed := v.Get("type")
	_, command := v.Get("command")
	_, url := v.Get("url")
	transport := "stdio"
	if typed {
		if typ.Kind != '"' {
			f.fault(typ.Start, `"type" is `+typ.KindName()+", not a string", "write stdio, http, sse or ws")
			return ""
		}
		if transport = transports[typ.Text]; transport == "" {
			f.fault(typ.Start, "unknown type "+strconv.Quote(typ.Text), "write stdio, http, sse or ws")
			return ""
		}
	}
	switch {
	case transport != "stdio" && !url:
		f.fault(at, fmt.Sprintf(`it has type %q and no "url"`, typ.Text), `add "url": "https://..."`)
	case transport == "stdio" && command:
	case transport == "stdio" && url && !typed:
		f.fault(at, `it has a "url" and no "type"`, `add "type": "http"`)
		return ""
	case transport == "stdio" && typed:
		f.fault(at, `it has type "stdio" and no "command"`, `add "command": "..."`)
	case transport == "stdio":
		f.fault(at, `it has neither "command" nor "url"`, "")
		return ""
	}
	return transport
}

func (f fields) check(name string, v jsondoc.Value) {
	switch name {
	case "timeout":
		f.positive(name, v)
	case "alwaysLoad":
		f.boolean(name, v)
	default:
		if f.transport == "stdio" {
			f.checkLocal(name, v)
		} else {
			f.checkRemote(name, v)
		}
	}
}

func (f fields) checkLocal(name string, v jsondoc.Value) {
	switch name {
	case "command":
		f.filled(name, v)
	case "args":
		if f.is('[', name, v, "a list of strings") {
			for i, e := range v.Elements {
				f.text(fmt.Sprintf("%s[%d]", name, i), e)
			}
		}
	case "env":
		f.record(name, v)
	}
}

func (f fields) checkRemote(name string, v jsondoc.Value) {
	switch name {
	case "url":
		f.filled(name, v)
	case "headers":
		f.record(name, v)
	case "headersHelper":
		f.text(name, v)
	case "oauth", "tools", "toolPermissions":
		if f.transport != "ws" {
			f.checkAccess(name, v)
		}
	}
}

func (f fields) checkAccess(name string, v jsondoc.Value) {
	switch name {
	case "oauth":
		if f.is('{', name, v, "an object") {
			for _, m := range v.Members {
				f.checkOAuth(name+"."+m.Name, m.Value)
			}
		}
	case "tools":
		if f.is('[', name, v, "a list of objects") {
			for i, e := range v.Elements {
				f.checkTool(fmt.Sprintf("%s[%d]", name, i), e)
			}
		}
	case "toolPermissions":
		if f.is('{', name, v, "an object") {
			for _, m := range v.Members {
				f.oneOf(name+"."+m.Name, m.Value, "allow", "ask", "blocked")
			}
		}
	}
}

func (f fields) checkOAuth(name string, v jsondoc.Value) {
	switch name {
	case "oauth.clientId":
		f.text(name, v)
	case "oauth.scopes":
		f.filled(name, v)
	case "oauth.callbackPort":
		f.positive(name, v)
	case "oauth.xaa":
		f.boolean(name, v)
	case "oauth.authServerMetadataUrl":
		if f.text(name, v) && (!strings.HasPrefix(v.Text, "https://") || v.Text == "https://") {
			f.fault(v.Start, strconv.Quote(name)+" is no https:// URL", "")
		}
	}
}

func (f fields) checkTool(name string, v jsondoc.Value) {
	if !f.is('{', name, v, "an object") {
		return
	}
	if n, ok := v.Get("name"); ok {
		f.text(name+".name", n)
	} else {
		f.fault(v.Start, strconv.Quote(name)+` has no "name"`, "")
	}
	if p, ok := v.Get("permission_policy"); ok {
		f.oneOf(name+".permission_policy", p, "always_allow", "always_ask", "always_deny")
	}
}

// is reports a value of another kind than the one wanted.
func (f fields) is(kind byte, name string, v jsondoc.Value, want string) bool {
	if byte(v.Kind) == kind {
		return true
	}
	f.fault(v.Start, strconv.Quote(name)+" is "+v.KindName()+", not "+want, "")
	return false
}

func (f fields) text(name string, v jsondoc.Value) bool { return f.is('"', name, v, "a string") }

func (f fields) filled(name string, v jsondoc.Value) {
	if f.text(name, v) && v.Text == "" {
		f.fault(v.Start, strconv.Quote(name)+" is empty", "")
	}
}

func (f fields) boolean(name string, v jsondoc.Value) {
	if !v.IsBool() {
		f.fault(v.Start, strconv.Quote(name)+" is "+v.KindName()+", not true or false", "")
	}
}

// record reports an object that holds anything but strings.
func (f fields) record(name string, v jsondoc.Value) {
	if !f.is('{', name, v, "an object of strings") {
		return
	}
	for _, m := range v.Members {
		f.text(name+"."+m.Name, m.Value)
		if m.Name == "constructor" {
			f.fault(m.NameStart, "Claude Code drops an entry with the name "+strconv.Quote(name+".constructor")+" in it", "")
		}
	}
}

// positive takes the whole numbers that JavaScript holds exactly.
func (f fields) positive(name string, v jsondoc.Value) {
	const want = "a positive whole number"
	if !f.is('0', name, v, want) {
		return
	}
	n, err := strconv.ParseFloat(string(f.doc.Raw(v)), 64)
	if err != nil || n < 1 || n > 1<<53-1 || n != float64(int64(n)) {
		f.fault(v.Start, strconv.Quote(name)+" is not "+want, "")
	}
}

func (f fields) oneOf(name string, v jsondoc.Value, allowed ...string) {
	if !f.text(name, v) {
		return
	}
	for _, a := range allowed {
		if v.Text == a {
			return
		}
	}
	f.fault(v.Start, fmt.Sprintf("%q is %q", name, v.Text), "write one of "+strings.Join(allowed, ", "))
}
