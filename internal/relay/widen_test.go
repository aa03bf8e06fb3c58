package relay

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe that is found full again and again is made larger; one that is full now
// and then is not.
func TestBusyPipesAreWidened(t *testing.T) {
	r, w := pipe(t)
	size := func() int {
		n, err := unix.FcntlInt(r.Fd(), unix.F_GETPIPE_SZ, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := size()
	var b busy
	for range 100 {
		b.read(r, chunk)
		b.read(r, chunk-1)
	}
	if size() != before {
		t.Errorf("a pipe that is idle at times holds %d bytes", size())
	}
	for range busyReads {
		b.read(r, chunk)
	}
	if size() != widePipe {
		t.Errorf("a busy pipe holds %d bytes", size())
	}
	w.Close()
}
