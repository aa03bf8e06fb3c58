package repo

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFrontmatter bounds the YAML at the head of a file, in bytes.
const maxFrontmatter = 64 << 10

// frontmatter is the YAML mapping at the head of a markdown file.
type frontmatter struct {
	keys map[string]*yaml.Node
	// body is what follows it, from the line of that number on.
	body  string
	first int
}

// splitFrontmatter parses the block between "---" lines at the head of text.
// What is wrong with it is reported through warn; the body is read all the same.
func splitFrontmatter(text string, warn func(place, string)) frontmatter {
	text = strings.TrimPrefix(text, "\ufeff")
	f := frontmatter{body: text, first: 1}
	head, rest, ok := strings.Cut(text, "\n")
	if !ok || strings.TrimRight(head, " \t\r") != "---" {
		return f
	}
	number, size := 2, 0
	for raw := range strings.Lines(rest) {
		s := strings.TrimRight(raw, " \t\r\n")
		if s == "---" || s == "..." {
			f.body, f.first = rest[size+len(raw):], number+1
			f.parse(rest[:size], warn)
			return f
		}
		size += len(raw)
		number++
	}
	warn(place{line: 1}, `its frontmatter has no closing "---"`)
	return f
}

func (f *frontmatter) parse(text string, warn func(place, string)) {
	if len(text) > maxFrontmatter {
		warn(place{line: 1}, fmt.Sprintf("its frontmatter has %d bytes, more than the limit of %d", len(text), maxFrontmatter))
		return
	}
	var doc yaml.Node
	// Into a node nothing is expanded: an alias stays an alias.
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		at, why := yamlError(err)
		warn(at, "its frontmatter is no YAML: "+why)
		return
	}
	if len(doc.Content) == 0 {
		return
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		warn(nodePlace(root), "its frontmatter is no mapping of names to values")
		return
	}
	f.keys = map[string]*yaml.Node{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i]
		if _, twice := f.keys[key.Value]; twice {
			warn(nodePlace(key), fmt.Sprintf("its frontmatter has %q twice; the first counts", key.Value))
			continue
		}
		f.keys[key.Value] = root.Content[i+1]
	}
}

// nodePlace is a node's position in the file: the YAML begins on line 2.
func nodePlace(n *yaml.Node) place { return place{n.Line + 1, n.Column} }

// yamlError takes the line out of an error's text, which is all it has.
func yamlError(err error) (place, string) {
	why := strings.TrimPrefix(err.Error(), "yaml: ")
	var n int
	if _, e := fmt.Sscanf(why, "line %d:", &n); e != nil {
		return place{line: 1}, why
	}
	_, why, _ = strings.Cut(why, ": ")
	return place{line: n + 1}, why
}

// scalar is the text of a value.
func (f *frontmatter) scalar(key string, warn func(place, string)) (string, place) {
	n := f.keys[key]
	if n == nil || n.ShortTag() == "!!null" {
		return "", place{}
	}
	if n.Kind != yaml.ScalarNode {
		warn(nodePlace(n), fmt.Sprintf("%q in its frontmatter is no text", key))
		return "", place{}
	}
	return n.Value, nodePlace(n)
}

// list is a value that is a list of names, or one name.
func (f *frontmatter) list(key string, warn func(place, string)) (names []string, at []place) {
	n := f.keys[key]
	if n == nil || n.ShortTag() == "!!null" {
		return nil, nil
	}
	entries := n.Content
	switch n.Kind {
	case yaml.ScalarNode:
		entries = []*yaml.Node{n}
	case yaml.SequenceNode:
	default:
		warn(nodePlace(n), fmt.Sprintf("%q in its frontmatter is no list of names", key))
		return nil, nil
	}
	for _, e := range entries {
		if e.Kind != yaml.ScalarNode || e.ShortTag() == "!!null" || strings.TrimSpace(e.Value) == "" {
			warn(nodePlace(e), fmt.Sprintf("an entry of %q in its frontmatter is no name", key))
			continue
		}
		names, at = append(names, e.Value), append(at, nodePlace(e))
	}
	return names, at
}
