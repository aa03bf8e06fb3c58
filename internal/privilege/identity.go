package privilege

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// Identity is a user as the kernel knows it, and its home.
type Identity struct {
	UID, GID int
	// Groups are the supplementary groups.
	Groups []int
	// Home is where the user's own files are; "/" where nobody knows.
	Home string
}

// maxID is the largest id; the one above it means "leave it" to the kernel.
const maxID = 1<<32 - 2

// Find resolves a name or uid, and after a colon a group's name or gid. A uid
// without an entry in /etc/passwd has the group of the same number, no others,
// and the home "/".
func Find(text string) (Identity, error) {
	name, group, grouped := strings.Cut(text, ":")
	id, err := findUser(name)
	if err != nil || !grouped {
		return id, err
	}
	if id.GID, err = findGroup(group); err != nil {
		return id, err
	}
	id.Groups = []int{id.GID}
	return id, nil
}

func findUser(name string) (Identity, error) {
	u, err := user.Lookup(name)
	if err != nil {
		number, bad := parseID(name)
		if bad != nil {
			return Identity{}, fmt.Errorf("there is no user %q", name)
		}
		if u, err = user.LookupId(name); err != nil {
			return Identity{UID: number, GID: number, Groups: []int{number}, Home: "/"}, nil
		}
	}
	id := Identity{Home: u.HomeDir}
	if id.UID, err = parseID(u.Uid); err != nil {
		return id, err
	}
	if id.GID, err = parseID(u.Gid); err != nil {
		return id, err
	}
	if id.Home == "" {
		id.Home = "/"
	}
	groups, err := u.GroupIds()
	if err != nil {
		return id, err
	}
	for _, g := range groups {
		n, err := parseID(g)
		if err != nil {
			return id, err
		}
		id.Groups = append(id.Groups, n)
	}
	return id, nil
}

func findGroup(name string) (int, error) {
	if n, err := parseID(name); err == nil {
		return n, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, fmt.Errorf("there is no group %q", name)
	}
	return parseID(g.Gid)
}

func parseID(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > maxID {
		return 0, errors.New("it is no user or group id")
	}
	return int(n), nil
}

// Credential is what a child process of the user has.
func (id Identity) Credential() *syscall.Credential {
	c := &syscall.Credential{Uid: uint32(id.UID), Gid: uint32(id.GID)}
	for _, g := range id.Groups {
		c.Groups = append(c.Groups, uint32(g))
	}
	return c
}
