package entrypoint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fenced are the lines of a document's code blocks in one language.
func fenced(t *testing.T, document, language string) (lines []string) {
	t.Helper()
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for _, line := range strings.Split(string(data), "\n") {
		switch {
		case line == "```"+language:
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside:
			lines = append(lines, line)
		}
	}
	return lines
}

// Every command that a document shows runs. "make" lines name a target of the
// Makefile: they are what runs this test.
func TestDocumentedCommandsRun(t *testing.T) {
	documents, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, document := range append(documents, "README.md") {
		for _, line := range strings.Split(strings.ReplaceAll(strings.Join(fenced(t, document, "sh"), "\n"), "\\\n", ""), "\n") {
			line, _, _ = strings.Cut(line, " #")
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			seen++
			t.Run(document+": "+line, func(t *testing.T) { checkDocumented(t, line, string(makefile)) })
		}
	}
	if seen == 0 {
		t.Error("no document shows a command")
	}
}

func checkDocumented(t *testing.T, line, makefile string) {
	if target, ok := strings.CutPrefix(line, "make "); ok {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).MatchString(makefile) {
			t.Errorf("the Makefile has no target %s", target)
		}
		return
	}
	if !strings.HasPrefix(line, "docker run ") {
		t.Fatal("this test knows commands of docker run and make alone")
	}
	parallel(t)
	docker(t)
	line = strings.NewReplacer("agentic-workspace:dev", image, "agent-init:dev", binaryImage).Replace(line)
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
