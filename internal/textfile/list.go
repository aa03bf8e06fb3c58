package textfile

import (
	"encoding/binary"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Entry is one entry of a directory.
type Entry struct {
	Name string
	// Type is fs.ModeDir, fs.ModeSymlink, 0 for a regular file, or
	// fs.ModeIrregular for anything else.
	Type fs.FileMode
}

// IsDir tells whether the entry is a directory; a symlink to one is none.
func (e Entry) IsDir() bool { return e.Type == fs.ModeDir }

const directory = flags | unix.O_DIRECTORY

// List lists the directory at path in byte order. What it could read before an
// error is returned with the error.
func List(path string) ([]Entry, error) {
	fd, err := open(path, directory)
	if err != nil {
		return nil, err
	}
	return list(fd, path)
}

// Names is List without the types, which some file systems have to be asked for
// one by one.
func Names(path string) ([]string, error) {
	fd, err := open(path, directory)
	if err != nil {
		return nil, err
	}
	return names(fd, path)
}

// list lists the directory open at fd and closes it.
func list(fd int, path string) (entries []Entry, err error) {
	defer unix.Close(fd)
	err = each(fd, path, func(name string, stated byte) error {
		mode, err := typeOf(fd, name, stated)
		if err == nil {
			entries = append(entries, Entry{name, mode})
		} else if err != unix.ENOENT { // else it is gone since
			return &fs.PathError{Op: "lstat", Path: path + "/" + name, Err: err}
		}
		return nil
	})
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, err
}

// names is list without the types.
func names(fd int, path string) (names []string, err error) {
	defer unix.Close(fd)
	err = each(fd, path, func(name string, _ byte) error {
		names = append(names, name)
		return nil
	})
	slices.Sort(names)
	return names, err
}

// records keeps buffers for getdents(2): on the stack they would make it grow.
var records = sync.Pool{New: func() any { return new([8192]byte) }}

// each visits the entries of the directory open at fd with the types that their
// records state, see getdents(2).
func each(fd int, path string, visit func(name string, stated byte) error) error {
	const lengthAt, typeAt, nameAt = 16, 18, 19
	buf := records.Get().(*[8192]byte)
	defer records.Put(buf)
	for {
		n, err := again(func() (int, error) { return unix.Getdents(fd, buf[:]) })
		if err != nil {
			return &fs.PathError{Op: "readdirent", Path: path, Err: err}
		}
		if n <= 0 {
			return nil
		}
		for rest := buf[:n]; len(rest) > nameAt; {
			length := int(binary.NativeEndian.Uint16(rest[lengthAt:]))
			if length <= nameAt || length > len(rest) {
				break
			}
			record := rest[:length]
			rest = rest[length:]
			name := unix.ByteSliceToString(record[nameAt:])
			if name == "." || name == ".." {
				continue
			}
			if err := visit(name, record[typeAt]); err != nil {
				return err
			}
		}
	}
}

// typeOf is the type that a record states, or where the file system leaves that
// open, the type that lstat(2) tells.
func typeOf(fd int, name string, stated byte) (fs.FileMode, error) {
	if stated == unix.DT_UNKNOWN {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return 0, err
		}
		// Both calls number the types alike.
		stated = byte(st.Mode & unix.S_IFMT >> 12)
	}
	switch stated {
	case unix.DT_REG:
		return 0, nil
	case unix.DT_DIR:
		return fs.ModeDir, nil
	case unix.DT_LNK:
		return fs.ModeSymlink, nil
	}
	return fs.ModeIrregular, nil
}
