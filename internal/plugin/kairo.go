package plugin

import "strings"

// hookEvents are the events of the agent CLI whose Kairo constant is their own
// name in upper case, words parted by underscores.
var hookEvents = [...]string{
	"SessionStart", "SessionEnd", "Setup", "UserPromptSubmit", "UserPromptExpansion", "PostToolBatch",
	"PermissionRequest", "PermissionDenied", "Notification", "SubagentStart", "SubagentStop", "TaskCreated",
	"TaskCompleted", "StopFailure", "TeammateIdle", "InstructionsLoaded", "ConfigChange", "CwdChanged",
	"FileChanged", "WorktreeCreate", "WorktreeRemove", "PreCompact", "PostCompact", "MessageDisplay", "DirectoryAdded",
}

// eventOf is the CLI's name for an event under Kairo's constant; ok is false
// for any other name, the CLI's own among them.
//
// NOTIFICATION is Kairo's constant for Elicitation and ElicitationResult too.
// It becomes Notification alone: the CLI has notifications of elicitations as well,
// while the output of a handler of Elicitation would be taken for the answer.
func eventOf(constant string) (name string, ok bool) {
	switch constant {
	case "PRE_ACTING":
		return "PreToolUse", true
	case "POST_ACTING":
		return "PostToolUse", true
	case "POST_TOOL_FAILURE":
		return "PostToolUseFailure", true
	case "PRE_COMPLETE":
		return "Stop", true
	}
	// Only names without a lower-case letter are worth a comparison.
	if strings.ToUpper(constant) != constant {
		return "", false
	}
	for _, e := range hookEvents {
		if snake(e) == constant {
			return e, true
		}
	}
	return "", false
}

// snake turns SessionStart into SESSION_START.
func snake(name string) string {
	var b strings.Builder
	for i, c := range []byte(name) {
		if i > 0 && c < 'a' {
			b.WriteByte('_')
		}
		b.WriteByte(c &^ 0x20)
	}
	return b.String()
}

// claudeNames replaces references to Kairo's variables, which the CLI does not
// know, by those that it expands. A handler that reads KAIRO_PLUGIN_ROOT and its
// siblings from its environment is not served by this: whoever starts it has to
// set them from their CLAUDE_ namesakes.
var claudeNames = strings.NewReplacer(
	"${KAIRO_PLUGIN_ROOT}", "${CLAUDE_PLUGIN_ROOT}",
	"${KAIRO_PLUGIN_DATA}", "${CLAUDE_PLUGIN_DATA}",
	"${KAIRO_PROJECT_DIR}", "${CLAUDE_PROJECT_DIR}",
)

// mentionsKairo is a quick look for text that claudeNames may change.
func mentionsKairo(text string) bool { return strings.Contains(text, "${KAIRO_P") }
