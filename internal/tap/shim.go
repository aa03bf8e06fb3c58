package tap

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ShimName is the name under which agent-init stands before the agent CLI.
const ShimName = "claude"

// Hidden is where an image keeps an agent CLI that only the shim is to start.
const Hidden = "/opt/agentic/libexec/" + ShimName

// CLI is the agent CLI of an image.
type CLI struct {
	// Path is its file; empty where there is none.
	Path string
	// Shimmed tells that whoever types its name gets the shim.
	Shimmed bool
}

// FindCLI finds the agent CLI on a search path: the first program of its name
// that is not agent-init, or the hidden one where an image's shim comes first.
// Shims in skip do not count: they stand before whatever comes next.
func FindCLI(searchPath, skip string) CLI {
	self, err := os.Stat("/proc/self/exe")
	var found CLI
	for _, dir := range strings.Split(searchPath, ":") {
		file := filepath.Join(dir, ShimName)
		info, errFile := os.Stat(file)
		if errFile != nil || info.IsDir() || unix.Access(file, unix.X_OK) != nil {
			continue
		}
		if err == nil && os.SameFile(self, info) {
			found.Shimmed = true
			if dir != skip && unix.Access(Hidden, unix.X_OK) == nil {
				break
			}
			continue
		}
		found.Path = file
		return found
	}
	if unix.Access(Hidden, unix.X_OK) == nil {
		found.Path = Hidden
	}
	return found
}

// IsSelf tells whether a file is this program.
func IsSelf(path string) bool {
	self, err := os.Stat("/proc/self/exe")
	info, errFile := os.Stat(path)
	return err == nil && errFile == nil && os.SameFile(self, info)
}

// guardVariable holds the process that has become the CLI by way of the shim. A
// process that meets itself there is a shim that took another for the CLI.
const guardVariable = "AGENTIC_SHIM"

// Enter marks an environment with the shim's passage; it is false where the shim
// has passed in this process already.
func Enter(env []string) ([]string, bool) {
	own := strconv.Itoa(os.Getpid())
	e := environ(env)
	if e.get(guardVariable) == own {
		return env, false
	}
	return e.with(guardVariable, own), true
}
