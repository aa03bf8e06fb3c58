package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// SinkKind is a kind of place for events.
type SinkKind string

// The kinds of sinks; only SinkFile and SinkUnix have a path.
const (
	// SinkAuto is SinkStderr unless that is a terminal.
	SinkAuto   SinkKind = "auto"
	SinkStderr SinkKind = "stderr"
	SinkFile   SinkKind = "file"
	SinkUnix   SinkKind = "unix"
	// SinkNone stands alone.
	SinkNone SinkKind = "none"
)

// Sink is a place for events.
type Sink struct {
	Kind SinkKind
	Path string
}

// String is the sink as it is written in the setting.
func (s Sink) String() string {
	if s.Path == "" {
		return string(s.Kind)
	}
	return string(s.Kind) + ":" + s.Path
}

// Sinks is a setting that says where events go.
type Sinks struct {
	List []Sink
	// why says what is wrong.
	why string
}

// maxSocketPath is the length in bytes that the path of a socket may have
// (unix(7), less the final NUL).
const maxSocketPath = 107

// Decode never fails: a wrong value is reported with all others, by name.
func (s *Sinks) Decode(text string) error {
	*s = Sinks{}
	for part := range strings.SplitSeq(text, ",") {
		sink, why := parseSink(strings.TrimSpace(part))
		if why == "" && slices.Contains(s.List, sink) {
			why = fmt.Sprintf("%q is there twice", sink)
		}
		if s.why == "" {
			s.why = why
		}
		s.List = append(s.List, sink)
	}
	if s.why == "" && len(s.List) > 1 && s.Has(SinkNone) {
		s.why = `"none" stands beside another sink`
	}
	return nil
}

func parseSink(text string) (sink Sink, why string) {
	kind, path, hasPath := strings.Cut(text, ":")
	sink = Sink{SinkKind(kind), path}
	switch sink.Kind {
	case SinkAuto, SinkStderr, SinkNone:
		if hasPath {
			return sink, fmt.Sprintf("%q has no path", kind)
		}
	case SinkFile, SinkUnix:
		switch {
		case !filepath.IsAbs(path):
			return sink, fmt.Sprintf("%q has no absolute path", text)
		case sink.Kind == SinkUnix && len(path) > maxSocketPath:
			return sink, fmt.Sprintf("the path of %q is longer than a socket's may be (%d bytes)", text, maxSocketPath)
		}
	default:
		return sink, fmt.Sprintf("%q is no sink", text)
	}
	return sink, ""
}

// Has tells whether there is a sink of a kind.
func (s *Sinks) Has(kind SinkKind) bool {
	return slices.ContainsFunc(s.List, func(sink Sink) bool { return sink.Kind == kind })
}

func (s *Sinks) check() (why, allowed string) {
	if s.why == "" {
		return "", ""
	}
	return s.why, "use auto, stderr, file:/PATH and unix:/PATH, comma-separated, or none"
}
