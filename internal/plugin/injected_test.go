package plugin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestB8InjectedPluginsComeLastAndReplace(t *testing.T) {
	dir := t.TempDir()
	add := func(path, text string) string {
		t.Helper()
		file := filepath.Join(dir, path, ".claude-plugin", "plugin.json")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, path)
	}
	add("baked/a", `{"name": "a", "dependencies": ["new"]}`)
	old := add("baked/b", `{"name": "b"}`)
	add("baked/c", `{"name": "c"}`)
	newB, added := add("injected/x", `{"name": "b", "version": "2"}`), add("injected/y", `{"name": "new"}`)
	baked := filepath.Join(dir, "baked")
	plain := filepath.Join(dir, "injected", "plain")
	os.Mkdir(plain, 0o755)

	plugins, found := Scan(baked, Options{Injected: []string{plain, newB, added}})
	if len(found) > 0 {
		t.Error(found)
	}
	var got []string
	for _, p := range plugins {
		got = append(got, strings.TrimPrefix(p.Path, dir)+" "+strings.TrimPrefix(p.Replaced, dir))
		if p.Injected != strings.HasPrefix(p.Path, dir+"/injected") {
			t.Errorf("%s: injected is %v", p.Path, p.Injected)
		}
	}
	if want := []string{"/baked/a ", "/baked/c ", "/injected/x /baked/b", "/injected/y "}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if plugins[2].Replaced != old {
		t.Error(plugins[2].Replaced)
	}

	// Chosen names are those of the image, but an injected one is not missing.
	plugins, found = Scan(baked, Options{Only: []string{"c", "new"}, Injected: []string{newB, added}})
	if len(found) > 0 || len(plugins) != 3 || plugins[1].Replaced != "" {
		t.Error(plugins, found)
	}

	twin, broken := add("injected/z", `{"name": "new"}`), add("injected/broken", `{`)
	injected := []string{added, twin, broken, filepath.Join(dir, "gone")}
	if plugins, found = Scan(baked, Options{Injected: injected}); !found.Refuses() || len(found) != 3 {
		t.Error(plugins, found)
	}
	if plugins, found = Scan(baked, Options{Injected: injected[:3], Skip: true}); found.Refuses() || len(found) != 2 || len(plugins) != 4 {
		t.Error(plugins, found)
	}
	// Without any of the image's.
	if plugins, found = Scan(filepath.Join(dir, "absent"), Options{Injected: []string{added}}); len(plugins) != 1 || len(found) > 0 {
		t.Error(plugins, found)
	}
}
