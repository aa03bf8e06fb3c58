// Package secret finds the values of variables (in the environment or in files
// named after them), knows which variables hold credentials, and masks their
// values in text, in every encoding in which programs print them.
package secret

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent-init/internal/problem"
	"agent-init/internal/textfile"
)

// Origin says where a value was found.
type Origin int

const (
	// Unset means nowhere.
	Unset Origin = iota
	// Environment is the process's own environment.
	Environment
	// File is the file that NAME_FILE names, or the one in the secrets directory.
	File
	// Put is what "agent-init secrets put" handed over.
	Put
)

// String is the name that reports use.
func (o Origin) String() string {
	switch o {
	case Environment:
		return "environment"
	case File:
		return "file"
	case Put:
		return "put"
	default:
		return "unset"
	}
}

// Value is a variable and what it was found to hold.
type Value struct {
	Name string
	// Text may be empty although the variable was found: an empty file.
	Text   string
	Origin Origin
	// Path is the file's, for Origin File.
	Path string
}

// Sources are the places in which values are looked for.
type Sources struct {
	// Put are the values that were handed over, by name.
	Put map[string]string
	// Env is os.LookupEnv or the like.
	Env func(string) (string, bool)
	// Dir holds files named after variables; empty means none.
	Dir string
}

// Lookup finds the value of a variable: the one that was handed over, if it is not
// empty, else the environment's if that is not empty, else the content of the file that NAME_FILE names, else that of the file NAME
// in Dir. One newline at a file's end is cut. A file that NAME_FILE names has to
// be there; one in Dir does not, but if it is there it has to be readable. A
// directory that may not be searched is a Warning, the same for every name.
func (s Sources) Lookup(name string) (Value, *problem.Problem) {
	if text := s.Put[name]; text != "" {
		return Value{Name: name, Text: text, Origin: Put}, nil
	}
	if text, _ := s.Env(name); text != "" {
		return Value{Name: name, Text: text, Origin: Environment}, nil
	}
	if path, _ := s.Env(name + "_FILE"); path != "" {
		return read(name, path, "correct the path in "+name+"_FILE or unset it")
	}
	if s.Dir == "" || !isEntry(name) {
		return Value{Name: name}, nil
	}
	path := filepath.Join(s.Dir, name)
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return read(name, path, "make it a readable file or remove it")
	case errors.Is(err, fs.ErrPermission):
		return Value{Name: name}, &problem.Problem{
			Severity: problem.Warning,
			What:     "cannot look into the secrets directory",
			File:     s.Dir,
			Why:      textfile.Reason(err),
			Hint:     "make it searchable for this user, or set AGENTIC_SECRETS_DIR to another directory",
		}
	default:
		return Value{Name: name}, nil
	}
}

// isEntry tells whether a variable's name can name a file directly in a
// directory.
func isEntry(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// read follows symlinks: Kubernetes mounts secrets as such.
func read(name, path, hint string) (Value, *problem.Problem) {
	fail := func(why string) (Value, *problem.Problem) {
		return Value{Name: name}, &problem.Problem{
			What: "cannot read variable " + name + " from", File: path, Why: why, Hint: hint,
		}
	}
	data, err := textfile.Read(path)
	if err != nil {
		return fail(textfile.Reason(err))
	}
	text := string(data)
	// No environment can hold one, so the agent would see a cut value.
	if strings.ContainsRune(text, 0) {
		return fail("it contains a NUL byte")
	}
	if cut, ok := strings.CutSuffix(text, "\n"); ok {
		text = strings.TrimSuffix(cut, "\r")
	}
	return Value{Name: name, Text: text, Origin: File, Path: path}, nil
}

// Credentials are the variables that are looked up, handed to the agent and
// masked even if no plugin declares them.
var Credentials = []string{
	"ANTHROPIC_API_KEY",
	"ANTHROPIC_AUTH_TOKEN",
	"ANTHROPIC_FOUNDRY_API_KEY",
	"AWS_BEARER_TOKEN_BEDROCK",
	"AWS_SECRET_ACCESS_KEY",
	"AWS_SESSION_TOKEN",
	"AZURE_CLIENT_SECRET",
	"AZURE_OPENAI_API_KEY",
	"BITBUCKET_TOKEN",
	"CARGO_REGISTRY_TOKEN",
	"CLAUDE_CODE_OAUTH_TOKEN",
	"CODEX_API_KEY",
	"CURSOR_API_KEY",
	"DEEPSEEK_API_KEY",
	"GEMINI_API_KEY",
	"GH_ENTERPRISE_TOKEN",
	"GH_TOKEN",
	"GITEA_TOKEN",
	"GITHUB_ENTERPRISE_TOKEN",
	"GITHUB_PERSONAL_ACCESS_TOKEN",
	"GITHUB_TOKEN",
	"GITLAB_TOKEN",
	"GOOGLE_API_KEY",
	"GROQ_API_KEY",
	"HF_TOKEN",
	"JIRA_API_TOKEN",
	"LINEAR_API_KEY",
	"MISTRAL_API_KEY",
	"MYSQL_PWD",
	"NODE_AUTH_TOKEN",
	"NOTION_TOKEN",
	"NPM_TOKEN",
	"OPENAI_API_KEY",
	"OPENROUTER_API_KEY",
	"PGPASSWORD",
	"SENTRY_AUTH_TOKEN",
	"SLACK_BOT_TOKEN",
	"XAI_API_KEY",
}

// IsCredential tells whether a variable's value is masked because of its name:
// it is one of Credentials or ends in _TOKEN, _KEY, _SECRET or _PASSWORD.
func IsCredential(name string) bool {
	upper := strings.ToUpper(name)
	// They name a session and what it is about, for workspace hooks.
	switch strings.TrimPrefix(upper, "AGENTIC_") {
	case "SESSION_KEY", "SCOPE_KEY":
		return false
	}
	for _, suffix := range []string{"_TOKEN", "_KEY", "_SECRET", "_PASSWORD"} {
		if strings.HasSuffix(upper, suffix) {
			return true
		}
	}
	return slices.Contains(Credentials, name)
}
