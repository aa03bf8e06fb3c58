package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// denied are packages that the PID-1 binary must not link, and why: init
// functions run even if nothing of a package is ever called.
var denied = map[string]string{
	"net/http":                      "network code has no place in PID 1; 4 MB and 0.7 ms",
	"crypto/tls":                    "network code has no place in PID 1",
	"crypto/x509":                   "network code has no place in PID 1",
	"os/exec":                       "a second waiter loses exit statuses beside wait4(-1)",
	"os/user":                       "reads the passwd database through cgo where it can",
	"encoding/gob":                  "0.25 ms of init",
	"html/template":                 "not needed",
	"testing":                       "test code in the product",
	"plugin":                        "needs dynamic linking",
	"github.com/docker/docker":      "Docker code belongs to the host tool",
	"github.com/moby/moby":          "Docker code belongs to the host tool",
	"github.com/spf13/cobra":        "the flag package does",
	"github.com/jackc/pgx":          "databases belong to the host tool",
	"go.opentelemetry.io":           "telemetry exporters belong to the host tool",
	"google.golang.org":             "gRPC belongs nowhere near PID 1",
	"agent-init/internal/standin":   "test code in the product",
	"agent-init/internal/gitserver": "test code in the product",
	"github.com/Masterminds/semver": "0.5 ms of init; x/mod/semver does",
}

// notOurs are packages that zerolog links for features of its own; code of
// this module must not use them, and why.
var notOurs = map[string]string{
	"encoding/json": "accepts duplicate keys; jsontext is the one parser",
	"log/slog":      "zerolog is the one logger",
	"log":           "zerolog is the one logger",
}

// maxSize is what the binary may weigh, in bytes.
const maxSize = 6 << 20

// reviewed are the modules that the PID-1 binary may link; another one is a
// decision to be taken here.
var reviewed = []string{
	"agent-init", "github.com/containerd/console", "github.com/go-json-experiment/json", "github.com/kelseyhightower/envconfig", "github.com/mattn/go-colorable",
	"github.com/mattn/go-isatty", "github.com/moby/sys/user", "github.com/rs/zerolog", "go.yaml.in/yaml/v3", "golang.org/x/sys",
}

func TestDependenciesStayLight(t *testing.T) {
	const format = "{{.ImportPath}}\t{{with .Module}}{{.Path}}{{end}}\t{{join .Imports \" \"}}"
	out, err := exec.Command("go", "list", "-deps", "-f", format, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) < 50 {
		t.Fatalf("go list says only %d packages", len(lines))
	}
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		path, module, imports := fields[0], fields[1], strings.Fields(fields[2])
		for no, why := range denied {
			if path == no || strings.HasPrefix(path, no+"/") {
				t.Errorf("%s is linked: %s", path, why)
			}
		}
		if module != "" && !slices.Contains(reviewed, module) {
			t.Errorf("module %s is linked (%s) and not reviewed", module, path)
		}
		for _, i := range imports {
			if why := notOurs[i]; module == "agent-init" && why != "" {
				t.Errorf("%s imports %s: %s", path, i, why)
			}
		}
	}
}

func TestBinaryIsStaticAndSmallOnBothArchitectures(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		path := filepath.Join(t.TempDir(), arch)
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > maxSize {
			t.Errorf("%s: %d bytes, more than %d", arch, info.Size(), maxSize)
		}
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Machine != machine {
			t.Errorf("%s: built for %v", arch, f.Machine)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("%s: is linked dynamically", arch)
			}
		}
	}
}
