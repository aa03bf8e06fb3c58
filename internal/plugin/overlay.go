package plugin

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agent-init/internal/atomicfile"
	"agent-init/internal/textfile"
)

// spread lays the view out: the directories that lead to a replaced file are
// real, everything else in them is a symlink.
func (w *weaver) spread(v *View) error {
	dirs := map[string]bool{".": true}
	for name := range w.replaced {
		for dir := path.Dir(name); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		entries, err := os.ReadDir(filepath.Join(w.plugin.Path, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if _, replaced := w.replaced[name]; !replaced && !dirs[name] {
				v.Links = append(v.Links, Link{filepath.Join(v.Path, name), filepath.Join(w.plugin.Path, name)})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.replaced)) {
		v.Files = append(v.Files, atomicfile.File{Path: filepath.Join(v.Path, name), Data: w.replaced[name], Mode: w.mode(name), DirMode: 0o700})
	}
	return nil
}

// mode keeps an executable file executable.
func (w *weaver) mode(name string) fs.FileMode {
	if info, err := os.Stat(filepath.Join(w.plugin.Path, name)); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
		return 0o700
	}
	return 0o600
}

// markdown rewrites skills, commands and agents, in whose text the CLI expands
// its variables.
//
// The CLI follows a symlink to a directory of commands or agents, and to a
// skill, but passes over symlinks inside of the former. Such a directory of
// which anything is replaced is therefore copied, Markdown files and all.
func (w *weaver) markdown(names *strings.Replacer) {
	root := w.manifestRoot()
	trees := []string{"commands", "agents"}
	for _, field := range trees[:2] {
		v, _ := root.Get(field)
		trees = append(trees, declaredPaths(v)...)
		for _, m := range v.Members {
			source, _ := m.Value.Get("source")
			trees = append(trees, declaredPaths(source)...)
		}
	}
	if names != nil {
		skills, _ := root.Get("skills")
		for _, dir := range append(declaredPaths(skills), "skills") {
			w.skills(dir, names)
		}
	}
	for _, tree := range trees {
		w.tree(tree, names)
	}
}

// skills rewrites the SKILL.md of a directory and of those in it.
func (w *weaver) skills(dir string, names *strings.Replacer) {
	candidates := []string{"SKILL.md", path.Join(dir, "SKILL.md")}
	entries, _ := os.ReadDir(filepath.Join(w.plugin.Path, dir))
	for _, e := range entries {
		candidates = append(candidates, path.Join(dir, e.Name(), "SKILL.md"))
	}
	for _, name := range candidates {
		if data, changed := w.renamedMarkdown(name, names); changed {
			w.replaced[name] = data
		}
	}
}

// tree rewrites a directory of commands or agents, or a single file.
func (w *weaver) tree(tree string, names *strings.Replacer) {
	files := map[string][]byte{}
	inside := w.touched(tree)
	if names == nil && !inside {
		return
	}
	if strings.HasSuffix(tree, ".md") {
		if data, changed := w.renamedMarkdown(tree, names); changed {
			w.replaced[tree] = data
		}
		return
	}
	if w.walk(tree, names, files) || inside {
		for name, data := range files {
			if _, done := w.replaced[name]; !done {
				w.replaced[name] = data
			}
		}
	}
}

// touched tells whether a file below dir is replaced.
func (w *weaver) touched(dir string) bool {
	for name := range w.replaced {
		if dir == "." || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// walk collects the Markdown files below dir as the view has them and tells
// whether any differs from the plugin's.
func (w *weaver) walk(dir string, names *strings.Replacer, files map[string][]byte) (changed bool) {
	entries, _ := os.ReadDir(filepath.Join(w.plugin.Path, dir))
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			changed = w.walk(name, names, files) || changed
		case e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".md"):
			data, differs := w.renamedMarkdown(name, names)
			if data != nil {
				files[name] = data
			}
			changed = changed || differs
		}
	}
	return changed
}

// renamedMarkdown is a file's content with the CLI's names for Kairo's
// variables. One that cannot be read is left to the CLI.
func (w *weaver) renamedMarkdown(name string, names *strings.Replacer) (data []byte, changed bool) {
	data, err := textfile.Read(filepath.Join(w.plugin.Path, name))
	if err != nil || names == nil || !bytes.Contains(data, []byte("${KAIRO_P")) {
		return data, false
	}
	text := names.Replace(string(data))
	return []byte(text), text != string(data)
}
