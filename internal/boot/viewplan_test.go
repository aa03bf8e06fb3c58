package boot

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agent-init/internal/config"
	"agent-init/internal/plugin"
	"agent-init/internal/rundir"
)

// planned is a plan with two plugins, of which only one is Kairo's.
func planned(t *testing.T, runtime string) *Plan {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"exec/.claude-plugin/plugin.json": `{"name": "exec"}`,
		"exec/hooks/hooks.json":           `{"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "x", "args": []}]}]}}`,
		"kairo/.kairo-plugin/plugin.json": `{"name": "kairo"}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	plugins, found := plugin.Scan(dir, plugin.Options{})
	if len(plugins) != 2 || len(found) != 0 {
		t.Fatal(plugins, found)
	}
	p := &Plan{Config: &config.Config{}, Plugins: plugins, Runtime: rundir.Dir{Path: runtime}}
	p.Config.StopGrace.Duration = 8 * time.Second
	return p
}

func TestP5WithoutARuntimeDirectoryAWarningSaysWhatIsMissing(t *testing.T) {
	p := planned(t, "")
	found := p.planViews("")
	if len(p.Views) != 0 || len(found) != 2 || found.Refuses() {
		t.Fatal(p.Views, found)
	}
	for i, want := range []string{
		"exec: without a runtime directory events of its hooks in exec form are not collected, and its SessionEnd hooks end after 1.5 s",
		"kairo: without a runtime directory Claude Code does not read .kairo-plugin",
	} {
		if !strings.HasSuffix(found[i].Text(), "/"+want) {
			t.Error(found[i].Text())
		}
	}
	if got := p.loadedFrom(p.Plugins[1]); got != p.Plugins[1].Path {
		t.Error(got)
	}
}

func TestE3WithoutATapOnlyKairoPluginsNeedViews(t *testing.T) {
	p := planned(t, "/run/x")
	if found := p.planViews("/run/x/taps/run/agent-tap-exec"); len(p.Views) != 2 || len(found) != 0 {
		t.Error(p.Views, found)
	}
	if data := string(p.Views[0].Files[0].Data); !strings.Contains(data, `"timeout": 5`) {
		t.Error(data)
	}
	p.planViews("")
	if len(p.Views) != 1 || p.Views[0].Path != "/run/x/views/kairo" || !slices.Equal(p.Views[0].Reasons, []plugin.Reason{plugin.KairoManifest}) {
		t.Error(p.Views)
	}
	if got := p.loadedFrom(p.Plugins[1]); got != "/run/x/views/kairo" {
		t.Error(got)
	}
}
