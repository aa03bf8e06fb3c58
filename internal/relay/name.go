package relay

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// Variable holds, in an environment, the Name of the file whose event lines are
// relayed already: they are not to be in the journal twice.
const Variable = "AGENTIC_RELAY"

// Name names the file that a descriptor is, as DEV:INO: any process that has the
// same file finds the same name. It is empty for a terminal, which many share,
// and on error.
func Name(fd int) string {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return ""
	}
	if st.Mode&unix.S_IFMT == unix.S_IFCHR {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			return ""
		}
	}
	return strconv.FormatUint(st.Dev, 10) + ":" + strconv.FormatUint(st.Ino, 10)
}
