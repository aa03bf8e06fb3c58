package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"agent-init/internal/config"
	"agent-init/internal/event"
	"agent-init/internal/journal"
	"agent-init/internal/problem"
	"agent-init/internal/relay"
	"agent-init/internal/rundir"
)

const (
	// livePause is how often a reader that follows looks whether the workspace
	// still lives.
	livePause = time.Second
	// stopPause bounds, after a signal, the wait for whoever reads our output.
	stopPause = 500 * time.Millisecond
)

// eventsReader is one run of the command events.
type eventsReader struct {
	runtime rundir.Dir
	reader  *journal.Reader
	out     io.Writer
	follow  bool
	asText  bool
	types   []string
	since   time.Time
	// show turns an event line into what is printed.
	show func(line []byte) []byte
	// missed is how many dropped events have been reported.
	missed int64
}

// eventsCommand prints the journal of the workspace that lives here, or lived
// here last.
func eventsCommand(args []string) int {
	cfg, found := config.Environment()
	e := &eventsReader{out: os.Stdout}
	if err := e.parse(cfg, args); err != nil {
		return usageError("%v", err)
	}
	log := newLogger(os.Stderr, cfg.LogLevel, isTerminal(2))
	workAs(cfg, &found)
	e.runtime = chooseRuntime(cfg, &found)
	if !e.asText && relay.Name(1) != "" && relay.Name(1) == os.Getenv(relay.Variable) {
		found.Add(problem.Problem{What: "cannot print events as JSON here", Why: "what goes to this output is collected, and they would come twice",
			Hint: "send it to a pipe, or use --format text"})
	}
	if found.Refuses() {
		logProblems(log, found)
		return exitRefused
	}
	var err error
	if e.reader, err = journal.NewReader(e.runtime.Path); err != nil {
		logProblems(log, problem.List{e.absent(err)})
		return exitRefused
	}
	defer e.reader.Close()
	// A reader of ours that goes away is an end like any other.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() {
		time.Sleep(stopPause)
		os.Exit(exitOK)
	})
	if err := e.run(ctx); err != nil && !errors.Is(err, syscall.EPIPE) {
		log.Error().Msgf("cannot print events: %v", err)
		return exitFault
	}
	return exitOK
}

// absent says why there is no journal to read.
func (e *eventsReader) absent(err error) problem.Problem {
	p := problem.Problem{What: "cannot read events", File: e.runtime.Join(journal.Name), Why: err.Error(), Hint: "run it as the user of the workspace"}
	if e.runtime.Path == "" || errors.Is(err, fs.ErrNotExist) {
		p.File, p.Why = e.runtime.Path, "no agent-init has kept a journal here"
		p.Hint = "start the container with agent-init as its ENTRYPOINT, or name its AGENTIC_RUNTIME_DIR"
	}
	return p
}

func (e *eventsReader) parse(cfg *config.Config, args []string) error {
	set := flag.NewFlagSet("agent-init events", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	cfg.Register(set)
	set.BoolVar(&e.follow, "follow", false, "go on as events come")
	set.Func("type", "event type to print", func(s string) error {
		e.types = append(e.types, s)
		return nil
	})
	set.Func("since", "duration or time", func(s string) (err error) {
		e.since, err = parseSince(s, time.Now())
		return err
	})
	e.asText = true
	set.Func("format", "text or json", func(s string) error {
		if s != "text" && s != "json" {
			return errFormat
		}
		e.asText = s == "text"
		return nil
	})
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("events takes no argument, but got %q", set.Arg(0))
	}
	e.show = func(line []byte) []byte { return line }
	if e.asText {
		e.show = eventText{coloured: isTerminal(1) && os.Getenv("NO_COLOR") == ""}.line
	}
	return nil
}

// parseSince reads a duration before now, or a time as RFC 3339 has it.
func parseSince(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	return time.Time{}, errors.New("use a duration such as 10m, or a time such as 2026-11-21T07:45:00Z")
}

// run prints events until there are no more to come.
func (e *eventsReader) run(ctx context.Context) error {
	var watch *journal.Watch
	if e.follow {
		watch = journal.NewWatch(e.runtime.Path)
		defer watch.Close()
		// Not to wait for the next event when a signal comes.
		defer context.AfterFunc(ctx, watch.Close)()
	}
	for ended := !e.follow; ctx.Err() == nil; {
		err := e.print(ctx)
		if err != nil || ended || ctx.Err() != nil {
			return err
		}
		if !watch.Wait(livePause) {
			// What it wrote last is still to be read.
			_, live := e.runtime.Live()
			ended = !live
		}
	}
	return nil
}

// print prints what the journal has now.
func (e *eventsReader) print(ctx context.Context) error {
	for ctx.Err() == nil {
		line, err := e.reader.Next()
		if missed := e.reader.Missed(); missed > e.missed {
			fmt.Fprintf(os.Stderr, "agent-init: %d older events are no longer in the journal\n", missed-e.missed)
			e.missed = missed
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !e.wanted(line) {
			continue
		}
		if _, err := e.out.Write(e.show(line)); err != nil {
			return err
		}
	}
	return nil
}

// wanted tells whether the filters let an event pass. One whose time nobody can
// read passes: better shown than hidden.
func (e *eventsReader) wanted(line []byte) bool {
	if len(e.types) == 0 && e.since.IsZero() {
		return true
	}
	var kind, stamp string
	event.Members(line, func(name string, value []byte) {
		switch name {
		case "event_type":
			kind = event.Unquote(value)
		case "timestamp":
			stamp = event.Unquote(value)
		}
	})
	if len(e.types) > 0 && !slices.Contains(e.types, kind) {
		return false
	}
	t, ok := parseStamp(stamp)
	return !ok || !t.Before(e.since)
}

// parseStamp reads an event's timestamp; without a zone, as Python writes a
// naive time, it is taken for UTC.
func parseStamp(s string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
