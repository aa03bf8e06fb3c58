package supervise

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The C library's names for the ends of the real-time range; Linux itself
// begins at 32, and the libraries keep two for threads.
const (
	sigRTMin unix.Signal = 34
	sigRTMax unix.Signal = 64
)

// Catchable tells whether agent-init can catch sig, so that it can be passed
// on, rewritten or start the grace. CHLD is its own, URG the Go runtime's, and 32
// and 33 belong to the thread libraries.
func Catchable(sig unix.Signal) bool {
	switch sig {
	case unix.SIGKILL, unix.SIGSTOP, unix.SIGCHLD, unix.SIGURG, 32, 33:
		return false
	}
	return sig >= 1 && sig <= sigRTMax
}

// aliases are names that kill(1) takes and that x/sys does not know.
var aliases = map[string]unix.Signal{
	"SIGCLD": unix.SIGCHLD, "SIGIOT": unix.SIGABRT, "SIGPOLL": unix.SIGIO,
	"SIGRTMIN": sigRTMin, "SIGRTMAX": sigRTMax,
}

// ParseSignal reads a signal as kill(1) takes it: "15", "TERM", "SIGTERM",
// "RTMIN+1", in either case.
func ParseSignal(text string) (unix.Signal, error) {
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 || n > int(sigRTMax) {
			return 0, fmt.Errorf("%q is no signal: numbers go from 1 to %d", text, sigRTMax)
		}
		return unix.Signal(n), nil
	}
	name := strings.ToUpper(text)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	base, offset := name, 0
	if i := strings.IndexAny(name, "+-"); i > 0 {
		n, err := strconv.Atoi(name[i:])
		if err != nil || name[:i] != "SIGRTMIN" && name[:i] != "SIGRTMAX" {
			return 0, noSignal(text)
		}
		base, offset = name[:i], n
	}
	sig, ok := aliases[base]
	if !ok {
		sig = unix.SignalNum(base)
	}
	if sig == 0 {
		return 0, noSignal(text)
	}
	if offset != 0 {
		sig += unix.Signal(offset)
		if sig < sigRTMin || sig > sigRTMax {
			return 0, fmt.Errorf("%q is no signal: the real-time range goes from RTMIN to RTMIN+%d", text, sigRTMax-sigRTMin)
		}
	}
	return sig, nil
}

func noSignal(text string) error {
	return fmt.Errorf("%q is no signal: use a number or a name such as 15, TERM or RTMIN+1", text)
}

// ParseRewrite reads "FROM:TO", two signals as ParseSignal takes them; a TO of
// 0 drops FROM.
func ParseRewrite(text string) (from, to unix.Signal, err error) {
	left, right, ok := strings.Cut(text, ":")
	if !ok {
		return 0, 0, fmt.Errorf("%q is no rewrite: use FROM:TO such as 15:2, or FROM:0 to drop a signal", text)
	}
	if from, err = ParseSignal(left); err != nil {
		return 0, 0, err
	}
	if !Catchable(from) {
		return 0, 0, fmt.Errorf("%q is no rewrite: %s cannot be caught", text, SignalName(from))
	}
	if right == "0" {
		return from, 0, nil
	}
	to, err = ParseSignal(right)
	return from, to, err
}

// SignalName is "SIGTERM", "SIGRTMIN+1", or "signal 32" where there is no name.
func SignalName(sig unix.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	switch {
	case sig == sigRTMin:
		return "SIGRTMIN"
	case sig > sigRTMin && sig <= sigRTMax:
		return "SIGRTMIN+" + strconv.Itoa(int(sig-sigRTMin))
	}
	return "signal " + strconv.Itoa(int(sig))
}
