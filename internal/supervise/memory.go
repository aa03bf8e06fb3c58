package supervise

import (
	"bytes"
	"os"
	"strconv"
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
