package relay

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"agent-init/internal/secret"
)

// BenchmarkThroughput moves the same event lines through the relay and through
// cat, each followed by a cat; the ratio is what counts.
func BenchmarkThroughput(b *testing.B) {
	var text []byte
	for i := 0; len(text) < 1<<20; i++ {
		text = fmt.Appendf(text, `{"event_type": "tool_execution_started", "timestamp": "2026-11-21T07:45:47.%06d+00:00", "session_id": "0b2f9a54-6a3c-4a87-9b0e-%012d", "provider": "claude", "context": {"tool_name": "Bash", "tool_use_id": "toolu_%x", "input_preview": "go test ./internal/... -run TestThatThingWorks -count=1"}, "metadata": null}`+"\n", i%1_000_000, i, i*7919)
	}
	b.Run("cat", func(b *testing.B) {
		throughput(b, text, func(in, out *os.File) {
			cat := exec.Command("cat")
			cat.Stdin, cat.Stdout = in, out
			if err := cat.Run(); err != nil {
				b.Error(err)
			}
		})
	})
	masker := secret.NewMasker(tenSecrets())
	for _, c := range []struct {
		name    string
		masker  *secret.Masker
		journal bool
		text    []byte
	}{
		{"relay", nil, false, text},
		{"relay with ten secrets", masker, false, text},
		{"relay with ten secrets and a journal, no line an event", masker, true, bytes.ReplaceAll(text, []byte(`{"event_type"`), []byte(` -"event_type"`))},
		{"relay with ten secrets and a journal, JSON but no event", masker, true, bytes.ReplaceAll(text, []byte(`"event_type"`), []byte(`"other_type"`))},
		{"relay with ten secrets and a journal, all lines events", masker, true, text},
	} {
		b.Run(c.name, func(b *testing.B) {
			throughput(b, c.text, func(in, out *os.File) {
				o := NewOutput(int(out.Fd()))
				o.SetMasker(c.masker)
				if c.journal {
					dir := b.TempDir()
					o.SetEvents(Events{Sinks: []Sink{journalSink(b, dir)}, Stderr: true, Dir: dir})
				}
				o.Copy(in)
				if !o.Drain(time.Now().Add(time.Minute)) || o.Lost() > 0 {
					b.Error("not everything was relayed")
				}
				if o.dest.pipe != nil {
					o.dest.pipe.Close()
				}
			})
		})
	}
}

// throughput sends text b.N times through middle and a cat.
func throughput(b *testing.B, text []byte, middle func(in, out *os.File)) {
	b.SetBytes(int64(len(text)))
	in, source := benchPipe(b)
	rest, out := benchPipe(b)
	sink := exec.Command("cat")
	sink.Stdin = rest
	if err := sink.Start(); err != nil {
		b.Fatal(err)
	}
	rest.Close()
	// The writer is a process too, as an agent is.
	file, err := os.CreateTemp(b.TempDir(), "")
	if err != nil {
		b.Fatal(err)
	}
	file.Write(text)
	writer := exec.Command("sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do set -- \"$@\" %s; i=$((i+1)); [ $((i%%200)) -eq 0 ] && { cat \"$@\"; set --; }; done; [ $# -eq 0 ] || cat \"$@\"", b.N, file.Name()))
	writer.Stdout = source
	b.ResetTimer()
	if err := writer.Start(); err != nil {
		b.Fatal(err)
	}
	source.Close()
	middle(in, out)
	out.Close()
	sink.Wait()
	b.StopTimer()
	writer.Wait()
}

func benchPipe(b *testing.B) (r, w *os.File) {
	b.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func tenSecrets() []string {
	random := rand.New(rand.NewPCG(1, 2))
	var out []string
	for i := range 10 {
		b := []byte("ghp_")
		for range 30 + 7*i {
			b = append(b, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[random.IntN(64)])
		}
		out = append(out, string(b))
	}
	return out
}
