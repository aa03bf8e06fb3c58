package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if err := openNull(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestQuantileInterpolates(t *testing.T) {
	values := []float64{40, 10, 30, 20}
	for q, want := range map[float64]float64{0: 10, 0.25: 17.5, 0.5: 25, 1: 40} {
		if got := quantile(values, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if values[0] != 40 {
		t.Error("quantile reordered its argument")
	}
}

func TestRatioIsThatOfMedians(t *testing.T) {
	wall := func(values ...time.Duration) (out []sample) {
		for _, v := range values {
			out = append(out, sample{wall: v * time.Millisecond})
		}
		return out
	}
	own, other := wall(4, 6, 100), wall(2, 3, 2)
	r := measured("own", own).against("other", own, other)
	if r.Ratio != 3 || r.Median != 6 || r.Runs != 3 {
		t.Errorf("got ratio %v, median %v, %d runs, want 3, 6, 3", r.Ratio, r.Median, r.Runs)
	}
}

func TestRunsTakeTurns(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	program := func(name string) program {
		return program{name: name, argv: []string{"/bin/sh", "-c", `printf %s "$0" >>"$LOG"`, name}, env: []string{"LOG=" + log}}
	}
	samples, err := interleave(1, 2, program("a"), program("b"))
	if err != nil {
		t.Fatal(err)
	}
	order, err := os.ReadFile(log)
	if err != nil || string(order) != "ababab" {
		t.Errorf("they ran as %q (%v), want ababab", order, err)
	}
	if len(samples) != 2 || len(samples[0]) != 2 || samples[0][0].wall <= 0 || samples[0][0].cpu <= 0 {
		t.Errorf("got %v, want two measured runs of each", samples)
	}
}

func TestFailedRunIsAnError(t *testing.T) {
	for script, want := range map[string]string{"exit 7": "exited with 7", "kill -9 $$": "signal 9"} {
		_, err := program{name: "p", argv: []string{"/bin/sh", "-c", script}}.run()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gave %v, want an error with %q", script, err, want)
		}
	}
}

func TestGoals(t *testing.T) {
	var r report
	r.atMost("slow", row{}, 2.6, 2.5, "x")
	r.atMost("fast", row{}, 2.5, 2.5, "x")
	r.atLeast("boot", row{}, 99, 100, "x")
	r.atLeast("absent", row{NotRun: "no jq"}, 0, 100, "x")
	for i, want := range []string{"MISSED", "met", "MISSED", "NOT RUN"} {
		if got := r.Goals[i].text(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want it to begin with %s", got, want)
		}
	}
}

func TestMissingProgramIsIncomplete(t *testing.T) {
	r := report{Sections: []section{{Rows: []row{{Name: "agent-init"}}}}}
	if r.incomplete() {
		t.Error("a report with all its rows is called incomplete")
	}
	r.Sections[0].Rows = append(r.Sections[0].Rows, row{Name: "tini", NotRun: "it is not installed"})
	if !r.incomplete() {
		t.Error("a report without tini is called complete")
	}
}
