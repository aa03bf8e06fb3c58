// Package cgroup reads what the kernel accounts for the memory of the control
// group that this process is in, of version 1 and 2 (cgroups(7)).
package cgroup

import (
	"bytes"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hierarchy is where every distribution and container runtime mounts it.
const hierarchy = "/sys/fs/cgroup"

// Memory is a control group of the memory controller. The zero value is one of
// which nothing is known.
type Memory struct {
	// mount is where the controller's hierarchy begins and group the path
	// below it; group is empty where there is no memory controller.
	mount, group string
	// files name what differs between the versions.
	files files
}

type files struct{ peak, events, groupKill string }

// See Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst of the
// kernel. memory.peak exists since Linux 5.19.
var (
	version1 = files{peak: "memory.max_usage_in_bytes", events: "memory.oom_control"}
	version2 = files{peak: "memory.peak", events: "memory.events", groupKill: "memory.oom.group"}
)

// Own is the group of this process.
func Own() Memory {
	var buf [4096]byte
	text, _ := read(buf[:], "/proc/self/cgroup")
	return find(hierarchy, text)
}

// find picks the memory controller's line of /proc/PID/cgroup. A hybrid setup
// has one of each version, and the memory controller is then in version 1.
func find(mount string, own []byte) Memory {
	var m Memory
	for line := range bytes.Lines(own) {
		id, rest, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case id == "0" && controllers == "":
			m = Memory{mount, path.Clean("/" + group), version2}
		case hasController(controllers, "memory"):
			return Memory{path.Join(mount, "memory"), path.Clean("/" + group), version1}
		}
	}
	return m
}

func hasController(list, name string) bool {
	for c := range strings.SplitSeq(list, ",") {
		if c == name {
			return true
		}
	}
	return false
}

// Peak is the most memory in bytes that the group has used at once since it was
// made; !ok where the kernel does not say.
func (m Memory) Peak() (size int64, ok bool) {
	var buf [64]byte
	text, ok := m.read(buf[:], m.files.peak)
	if !ok {
		return 0, false
	}
	size, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	// The root group is not accounted.
	return size, err == nil && size > 0
}

// OOMKills is how many processes of the group the kernel's OOM killer has ended
// since the group was made; !ok where the kernel does not say.
func (m Memory) OOMKills() (count int64, ok bool) {
	var buf [1024]byte
	text, ok := m.read(buf[:], m.files.events)
	if !ok {
		return 0, false
	}
	for line := range bytes.Lines(text) {
		if value, found := bytes.CutPrefix(line, []byte("oom_kill ")); found {
			count, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
			return count, err == nil
		}
	}
	return 0, false
}

// KilledAsOne tells whether the group, or one above it that we can see, is ended
// as a whole when its memory runs out (memory.oom.group of version 2).
func (m Memory) KilledAsOne() bool {
	if m.files.groupKill == "" {
		return false
	}
	var buf [64]byte
	for group := m.group; ; group = path.Dir(group) {
		set, _ := read(buf[:], path.Join(m.mount, group, m.files.groupKill))
		if bytes.Equal(bytes.TrimSpace(set), []byte("1")) {
			return true
		}
		if group == "/" {
			return false
		}
	}
}

// read reads one of the group's files. A container without a cgroup namespace
// sees the path that its group has on the host, but its mount begins at the
// group itself.
func (m Memory) read(buf []byte, name string) (text []byte, ok bool) {
	if m.group == "" {
		return nil, false
	}
	text, ok = read(buf, path.Join(m.mount, m.group, name))
	if !ok && m.group != "/" {
		text, ok = read(buf, path.Join(m.mount, name))
	}
	return text, ok
}

// read fills buf from a file of the kernel's, which it gives out in one piece.
func read(buf []byte, file string) (text []byte, ok bool) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		return buf[:max(n, 0)], err == nil && n > 0
	}
}
