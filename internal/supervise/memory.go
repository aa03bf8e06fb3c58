package supervise

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
)

// oomRaise is added to the agent's oom_score_adj, in thousandths of the memory
// it may use: with a tenth, the kernel's OOM killer takes the agent or one of
// its children before agent-init, which is left to report it.
const oomRaise = 100

const oomMax = 1000

// raiseOOMScore is best effort: the kernel or a seccomp filter may refuse.
func raiseOOMScore(pid int) {
	file := "/proc/" + strconv.Itoa(pid) + "/oom_score_adj"
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	score, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil || score >= oomMax {
		return
	}
	_ = os.WriteFile(file, strconv.AppendInt(nil, int64(min(score+oomRaise, oomMax)), 10), 0)
}

// MemoryGroupKill tells whether our memory cgroup, or one above it that we can
// see, is ended as a whole when its memory runs out (memory.oom.group of cgroup
// v2): agent-init then dies with the agent and can report nothing.
func MemoryGroupKill() bool {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return false
	}
	return groupKill("/sys/fs/cgroup", string(own))
}

func groupKill(mount, own string) bool {
	for line := range strings.Lines(own) {
		group, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !ok {
			continue
		}
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			set, err := os.ReadFile(path.Join(mount, group, "memory.oom.group"))
			if err == nil && bytes.Equal(bytes.TrimSpace(set), []byte("1")) {
				return true
			}
			if group == "/" {
				break
			}
		}
	}
	return false
}
