package plugin

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"agent-init/internal/problem"
)

// scanInjected reads the injected plugins.
func scanInjected(o Options) (plugins []Plugin, found problem.List) {
	for _, dir := range o.Injected {
		info, err := os.Lstat(dir)
		if err != nil {
			found.Add(unreadable("plugin", dir, err))
			continue
		}
		p, ps := read(dir, fs.FileInfoToDirEntry(info))
		if ps.Refuses() && o.Skip {
			found.Add(leftOut(filepath.Base(dir), ps)...)
			continue
		}
		found.Add(ps...)
		if p != nil && !ps.Refuses() {
			p.Injected = true
			plugins = append(plugins, *p)
		}
	}
	plugins, twins := unique(plugins, o.Skip)
	found.Add(twins...)
	return plugins, found
}

// replaced are the plugins with the injected ones after them, less those whose
// names the injected ones have.
func replaced(plugins, injected []Plugin) []Plugin {
	for i, p := range injected {
		at := slices.IndexFunc(plugins, func(other Plugin) bool { return other.Name == p.Name })
		if at >= 0 {
			injected[i].Replaced = plugins[at].Path
			plugins = slices.Delete(plugins, at, at+1)
		}
	}
	return append(plugins, injected...)
}
