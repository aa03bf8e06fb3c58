package privilege

import (
	"syscall"

	"github.com/moby/sys/user"
)

// Identity is a user as the kernel knows it, and its home.
type Identity struct {
	UID, GID int
	// Groups are the supplementary groups.
	Groups []int
	// Home is where the user's own files are; "/" where nobody knows.
	Home string
}

// Find resolves what docker run takes for --user, in the same way: a name or uid,
// and after a colon a group's name or gid. A uid without an entry in /etc/passwd
// has group 0, no others, and the home "/"; a group that is named is the only one.
func Find(text string) (Identity, error) {
	u, err := user.GetExecUserPath(text, &user.ExecUser{Home: "/"}, "/etc/passwd", "/etc/group")
	if err != nil {
		return Identity{}, err
	}
	return Identity{UID: u.Uid, GID: u.Gid, Groups: u.Sgids, Home: u.Home}, nil
}

// Credential is what a child process of the user has.
func (id Identity) Credential() *syscall.Credential {
	c := &syscall.Credential{Uid: uint32(id.UID), Gid: uint32(id.GID)}
	for _, g := range id.Groups {
		c.Groups = append(c.Groups, uint32(g))
	}
	return c
}
