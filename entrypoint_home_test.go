package entrypoint_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
)

// interactive is the agent CLI in a terminal of a size that shows everything.
func interactive(c *container.Config, h *container.HostConfig) {
	withTerminal(c, h)
	c.Env = append(c.Env, "TERM=xterm")
	h.ConsoleSize = [2]uint{40, 120}
}

// B10: a first run reaches the prompt, and answers, with nothing asked.
func TestB10FirstRunAsksNothing(t *testing.T) {
	for name, c := range map[string]struct {
		options     []option
		state, home string
	}{
		"home":          {nil, "/home/agent/.claude.json", "/home/agent/.claude"},
		"config dir":    {[]option{env("CLAUDE_CONFIG_DIR=/home/agent/elsewhere")}, "/home/agent/elsewhere/.claude.json", "/home/agent/elsewhere"},
		"token":         {[]option{env("CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-stand-in-without-a-token")}, "/home/agent/.claude.json", "/home/agent/.claude"},
		"another place": {[]option{env("AGENTIC_WORKSPACE_DIR=/tmp/my work"), func(c *container.Config, _ *container.HostConfig) { c.WorkingDir = "/tmp" }}, "/home/agent/.claude.json", "/home/agent/.claude"},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			m := startModel(t, "")
			command := []string{"claude"}
			switch name {
			case "another place":
				command = []string{"bash", "-c", "cd '/tmp/my work' && exec claude"}
			case "token":
				command = []string{"env", "-u", "ANTHROPIC_API_KEY", "claude"}
			}
			w := create(t, image, command, append([]option{m.talk(), interactive, env("AGENTIC_CLAUDE_SETUP=1")}, c.options...)...)
			p := w.attach()
			w.start()
			// Nothing is typed before this: a question would wait for an answer.
			p.expect("shortcuts")
			modes := w.exec("stat", "-c", "%a %U", c.state, c.home+"/settings.json")
			if modes.stdout != "600 agent\n600 agent\n" {
				t.Errorf("modes: %s", modes)
			}
			p.types("greetings")
			p.expect("greetings")
			p.types("\r")
			p.expect("said")
			p.types("/exit\r")
			wantCode(t, w.wait(), 0)
			var settings struct{ Attribution map[string]string }
			for _, text := range w.files(c.home + "/settings.json") {
				if err := json.Unmarshal([]byte(text), &settings); err != nil {
					t.Error(err)
				}
			}
			commit, hasCommit := settings.Attribution["commit"]
			pr, hasPR := settings.Attribution["pr"]
			if commit+pr != "" || !hasCommit || !hasPR {
				t.Errorf("attribution is %v", settings.Attribution)
			}
		})
	}
}

// Without the setting a first run wants the network: else the test above would
// show nothing.
func TestB10FirstRunWithoutTheSetting(t *testing.T) {
	parallel(t)
	m := startModel(t, "")
	w := create(t, image, []string{"claude"}, m.talk(), interactive)
	p := w.attach()
	w.start()
	p.expect("Unable")
}

func TestB10NothingIsWrittenOrChangedUnasked(t *testing.T) {
	parallel(t)
	r := run(t, bash("ls -A ~/.claude ~/.claude.json 2>&1"))
	wantIn(t, r.stdout, "cannot access '/home/agent/.claude'", "cannot access '/home/agent/.claude.json'")

	w := create(t, image, bash("cat ~/.claude.json ~/.claude/settings.json"), env("AGENTIC_CLAUDE_SETUP=1", "ANTHROPIC_API_KEY=a-key-of-more-than-twenty-characters"))
	w.copyIn("/home/agent", ".claude.json", "{broken\n")
	w.start()
	r = w.wait()
	wantCode(t, r, 0)
	if r.stdout != "{broken\n{\n  \"attribution\": {\n    \"commit\": \"\",\n    \"pr\": \"\"\n  }\n}\n" {
		t.Errorf("%q", r.stdout)
	}
}

func TestB10KeyIsNotedByItsEndOnly(t *testing.T) {
	parallel(t)
	const key = "a-key-of-more-than-twenty-characters"
	state := func(options ...option) (out struct{ CustomApiKeyResponses struct{ Approved []string } }) {
		r := run(t, bash("cat ~/.claude.json"), append(options, env("AGENTIC_CLAUDE_SETUP=1", "ANTHROPIC_API_KEY="+key))...)
		wantCode(t, r, 0)
		if err := json.Unmarshal([]byte(r.stdout), &out); err != nil {
			t.Error(err)
		}
		if strings.Contains(r.stderr, key[len(key)-20:]) {
			t.Errorf("the log shows the key:\n%s", r.stderr)
		}
		return out
	}
	if got := state().CustomApiKeyResponses.Approved; len(got) != 1 || got[0] != key[len(key)-20:] {
		t.Errorf("approved: %q", got)
	}
	if got := state(env("AGENTIC_WITHHOLD_ENV=ANTHROPIC_API_KEY")).CustomApiKeyResponses.Approved; len(got) != 0 {
		t.Errorf("approved a key that is withheld: %q", got)
	}
}

func TestB10HomeThatCannotBeWrittenRefuses(t *testing.T) {
	parallel(t)
	r := refused(t, env("AGENTIC_CLAUDE_SETUP=1"), host(func(h *container.HostConfig) {
		h.ReadonlyRootfs, h.Tmpfs = true, map[string]string{"/workspace": "mode=1777", "/tmp": "mode=1777"}
	}))
	wantIn(t, r.stderr, "cannot set up Claude Code", "/home/agent/.claude.json", "read-only file system")
}

func TestB8B10FilesBelongToTheUser(t *testing.T) {
	parallel(t)
	r := run(t, bash("cd; stat -c '%U %a %n' .claude.json .claude/settings.json .claude/agents/reviewer.md /workspace/CLAUDE.md /run/agentic/git-hooks",
		"git init -q x && git -C x commit -q --allow-empty -m first"), injected(t, whole), user("0"), env("AGENTIC_USER=agent", "AGENTIC_CLAUDE_SETUP=1", "GIT_AUTHOR_NAME=n"))
	wantCode(t, r, 0)
	wantIn(t, r.stderr, `"event_type": "git_commit"`)
	if r.stdout != "agent 600 .claude.json\nagent 600 .claude/settings.json\nagent 600 .claude/agents/reviewer.md\nagent 600 /workspace/CLAUDE.md\nagent 700 /run/agentic/git-hooks\n" {
		t.Errorf("%q", r.stdout)
	}
}
