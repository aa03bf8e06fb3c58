package mcp

import (
	"os"
	"path/filepath"
	"strings"

	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// managedDir is where Claude Code looks for an administrator's files on Linux:
// https://code.claude.com/docs/en/managed-mcp and .../settings.
const managedDir = "etc/claude-code"

// Managed warns about an administrator's files, below the file system's root
// fsRoot, that switch off what agent-init hands to Claude Code; strict says
// that --strict-mcp-config is among it.
//
// Claude Code 2.1.197 does not ignore the flags then but ends with an error.
func Managed(fsRoot string, strict bool) problem.List {
	dir := filepath.Join(fsRoot, managedDir)
	found := managedServers(filepath.Join(dir, "managed-mcp.json"), strict)
	found.Add(managedSettings(dir)...)
	return found.Downgraded()
}

func managedServers(file string, strict bool) (found problem.List) {
	doc, bad := Read(file, "managed MCP config")
	if bad != nil {
		bad.Hint = "Claude Code ignores it until it is mended, and then allows no other MCP servers"
		return problem.List{*bad}
	}
	if doc == nil {
		return nil
	}
	flags := "--mcp-config"
	if strict {
		flags += " and --strict-mcp-config"
	}
	return problem.List{{What: "managed MCP config", File: file,
		Why:  "it switches off every other MCP server, those of repos, baseline and plugins: Claude Code refuses to start with " + flags,
		Hint: "remove it, or let repos and baseline define no servers"}}
}

// managedSettings applies the base file and then the drop-ins, as Claude Code
// does: a later true or false replaces an earlier one.
func managedSettings(dir string) (found problem.List) {
	const hint = "see whether it sets disableSideloadFlags, with which Claude Code refuses to start with plugins or MCP servers"
	var last *problem.Problem
	files, err := managedFiles(dir)
	if err != nil {
		found.Add(problem.Problem{What: "cannot read managed settings", File: filepath.Join(dir, dropIns), Why: textfile.Reason(err), Hint: hint})
	}
	for _, file := range files {
		data, err := textfile.Read(file)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			found.Add(problem.Problem{What: "cannot read managed settings", File: file, Why: textfile.Reason(err), Hint: hint})
			continue
		}
		doc, bad := jsondoc.Parse("managed settings", file, data)
		if bad != nil {
			bad.Hint = hint
			found.Add(*bad)
			continue
		}
		if doc.Root.Kind != '{' {
			found.Add(doc.Error(doc.Root.Start, "it holds "+doc.Root.KindName()+", not an object", ""))
			continue
		}
		flag, ok := doc.Root.Get("disableSideloadFlags")
		switch {
		case !ok:
		case !flag.IsBool():
			found.Add(doc.Error(flag.Start, `"disableSideloadFlags" is `+flag.KindName()+", not true or false; Claude Code ignores it", ""))
		case flag.Kind == 'f':
			last = nil
		default:
			p := doc.Warning(flag.Start, "\"disableSideloadFlags\" switches off --plugin-dir and --mcp-config: Claude Code refuses to start with a plugin or an MCP server of this workspace",
				"set it to false, or start without plugins and MCP servers")
			last = &p
		}
	}
	if last != nil {
		found.Add(*last)
	}
	return found
}

const dropIns = "managed-settings.d"

// managedFiles are managed-settings.json and the drop-ins in byte order.
func managedFiles(dir string) ([]string, error) {
	files := []string{filepath.Join(dir, "managed-settings.json")}
	entries, err := os.ReadDir(filepath.Join(dir, dropIns))
	if os.IsNotExist(err) {
		err = nil
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") && !e.IsDir() {
			files = append(files, filepath.Join(dir, dropIns, name))
		}
	}
	return files, err
}
