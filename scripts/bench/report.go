package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// report is everything that was measured, as it goes into the JSON file.
type report struct {
	Machine  machine   `json:"machine"`
	Sections []section `json:"sections"`
	Goals    []goal    `json:"goals"`
}

type machine struct {
	Kernel string `json:"kernel"`
	CPUs   int    `json:"cpus"`
	// Scratch is the kind of file system that boots wrote to.
	Scratch string `json:"scratch_filesystem"`
}

// section is one question, with a row for each program compared.
type section struct {
	Name string `json:"name"`
	// Measured says what the numbers are.
	Measured string `json:"measured"`
	Rows     []row  `json:"rows"`
}

// row is one program in a section.
type row struct {
	Name string `json:"name"`
	// NotRun is the reason why there are no numbers.
	NotRun string `json:"not_run,omitempty"`
	Runs   int    `json:"runs,omitempty"`
	// Ratio is the median relative to that of the reference; RatioLow and
	// RatioHigh are the quartiles of the ratios of the single rounds.
	Reference string  `json:"reference,omitempty"`
	Ratio     float64 `json:"ratio,omitempty"`
	RatioLow  float64 `json:"ratio_p25,omitempty"`
	RatioHigh float64 `json:"ratio_p75,omitempty"`
	// Times are medians and quartiles in milliseconds, for orientation: they
	// hold for this machine and this minute.
	Median float64 `json:"median_ms,omitempty"`
	Low    float64 `json:"p25_ms,omitempty"`
	High   float64 `json:"p75_ms,omitempty"`
	CPU    float64 `json:"cpu_median_ms,omitempty"`
	// MiB is a size.
	MiB float64 `json:"mib,omitempty"`
}

// goal is a bound on a value of the report.
type goal struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Bound float64 `json:"bound"`
	Unit  string  `json:"unit"`
	// AtLeast turns the bound round.
	AtLeast bool   `json:"at_least,omitempty"`
	NotRun  string `json:"not_run,omitempty"`
	Met     bool   `json:"met"`
}

// measured makes a row of samples, without a reference.
func measured(name string, samples []sample) row {
	wall := make([]time.Duration, len(samples))
	cpu := make([]time.Duration, len(samples))
	for i, s := range samples {
		wall[i], cpu[i] = s.wall, s.cpu
	}
	return row{
		Name: name, Runs: len(samples),
		Median: ms(quantile(wall, 0.5)), Low: ms(quantile(wall, 0.25)), High: ms(quantile(wall, 0.75)),
		CPU: ms(quantile(cpu, 0.5)),
	}
}

// against sets the row's ratio to the reference, whose runs took turns with
// those of the row.
func (r row) against(reference string, own, other []sample) row {
	var rounds []float64
	var a, b []time.Duration
	for i := range min(len(own), len(other)) {
		a, b = append(a, own[i].wall), append(b, other[i].wall)
		rounds = append(rounds, float64(own[i].wall)/float64(other[i].wall))
	}
	if len(rounds) == 0 {
		return r
	}
	r.Reference = reference
	r.Ratio = float64(quantile(a, 0.5)) / float64(quantile(b, 0.5))
	r.RatioLow, r.RatioHigh = quantile(rounds, 0.25), quantile(rounds, 0.75)
	return r
}

// quantile interpolates linearly between the two nearest values; q is from 0
// to 1.
func quantile[T time.Duration | float64](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + T((at-float64(i))*float64(sorted[i+1]-sorted[i]))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// atMost and atLeast add a goal for the row's value.
func (r *report) atMost(name string, from row, value, bound float64, unit string) {
	r.Goals = append(r.Goals, goal{Name: name, Value: value, Bound: bound, Unit: unit, NotRun: from.NotRun,
		Met: from.NotRun == "" && value > 0 && value <= bound})
}

func (r *report) atLeast(name string, from row, value, bound float64, unit string) {
	r.Goals = append(r.Goals, goal{Name: name, Value: value, Bound: bound, Unit: unit, AtLeast: true, NotRun: from.NotRun,
		Met: from.NotRun == "" && value >= bound})
}

// incomplete tells whether something could not run.
func (r *report) incomplete() bool {
	for _, s := range r.Sections {
		if slices.ContainsFunc(s.Rows, func(r row) bool { return r.NotRun != "" }) {
			return true
		}
	}
	return false
}

func (r *report) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

func (r *report) writeText(w io.Writer) error {
	fmt.Fprintf(w, "Linux %s, %d CPUs, boots on %s. Ratios are of medians of interleaved runs; in brackets the\n"+
		"quartiles. Milliseconds hold for this machine and minute only.\n", r.Machine.Kernel, r.Machine.CPUs, r.Machine.Scratch)
	for _, s := range r.Sections {
		fmt.Fprintf(w, "\n%s: %s\n", s.Name, s.Measured)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, row := range s.Rows {
			fmt.Fprintf(t, "  %s\t%s\t\n", row.Name, row.cells())
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "\nGoals")
	for _, g := range r.Goals {
		if _, err := fmt.Fprintf(w, "  %s\n", g.text()); err != nil {
			return err
		}
	}
	return nil
}

func (r row) cells() string {
	switch {
	case r.NotRun != "":
		return "NOT RUN: " + r.NotRun
	case r.MiB != 0:
		return fmt.Sprintf("%.2f MiB", r.MiB)
	}
	ratio := "\t\t"
	if r.Reference != "" {
		ratio = fmt.Sprintf("%s x %s\t[%s - %s]\t", number(r.Ratio), r.Reference, number(r.RatioLow), number(r.RatioHigh))
	}
	return fmt.Sprintf("%s%.2f ms\t[%.2f - %.2f]\tCPU %.2f ms\t%d runs", ratio, r.Median, r.Low, r.High, r.CPU, r.Runs)
}

// number shows three digits or more.
func number(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

func (g goal) text() string {
	verdict, side := "MISSED", "at most"
	if g.Met {
		verdict = "met   "
	}
	if g.AtLeast {
		side = "at least"
	}
	if g.NotRun != "" {
		return fmt.Sprintf("NOT RUN  %s (%s %s %s): %s", g.Name, side, number(g.Bound), g.Unit, g.NotRun)
	}
	return fmt.Sprintf("%s   %s: %s, %s %s %s", verdict, g.Name, number(g.Value), side, number(g.Bound), g.Unit)
}
