package relay

import (
	"io"
	"os"
	"testing"
	"time"
)

// H3: between two runs only the streams of the run are waited for, and none is cut.
func TestH3SettleWaitsForTheStreamsOfTheRun(t *testing.T) {
	shown, dest, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer shown.Close()
	defer dest.Close()
	o := NewOutput(int(dest.Fd()))
	stream := func() *os.File {
		t.Helper()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		o.Copy(r)
		return w
	}
	before := stream()
	o.BeginRun()
	if !o.Settle(time.Now().Add(time.Minute)) {
		t.Error("a stream from before the run was waited for")
	}
	within := stream()
	if o.Settle(time.Now().Add(time.Millisecond)) {
		t.Error("a stream of the run was not waited for")
	}
	for _, w := range []*os.File{within, before} {
		if _, err := io.WriteString(w, "goes on\n"); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, len("goes on\n"))
		if _, err := io.ReadFull(shown, line); err != nil || string(line) != "goes on\n" {
			t.Errorf("%q, %v", line, err)
		}
	}
	within.Close()
	if !o.Settle(time.Now().Add(time.Minute)) {
		t.Error("the end of the run's stream was not seen")
	}
	before.Close()
	if !o.Drain(time.Now().Add(time.Minute)) {
		t.Error("something was given up")
	}
}
