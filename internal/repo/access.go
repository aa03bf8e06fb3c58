package repo

import "golang.org/x/sys/unix"

// writable tells whether this process may create files in the directory:
// access(2) with W_OK, which also knows of read-only mounts.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }
