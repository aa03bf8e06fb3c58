package gitsetup

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

// storeGH plans hosts.yml of the GitHub CLI, in the directory that it looks in
// (gh help environment). Without a config.yml beside it, or with one that has a
// version, gh takes it as it is.
func (p *planner) storeGH(h Host) {
	const what = "no token for gh in"
	dir := p.env("GH_CONFIG_DIR")
	if dir == "" {
		if dir = p.configHome(); dir == "" {
			p.warn("no token for gh", "", "HOME is not set", "")
			return
		}
		dir = filepath.Join(dir, "gh")
	}
	old := at(filepath.Join(dir, "hosts.yml"))
	if old.obstacle != "" {
		p.warn(what, old.path, old.obstacle, "gh also reads GH_TOKEN and GITHUB_TOKEN")
		return
	}
	data, why := ghHosts(old.data, h)
	if why != "" {
		p.warn(what, old.path, why, "correct or remove the file; it is left as it is")
		return
	}
	p.secretFile(old.path, data)
}

// ghHosts sets the host's entry and keeps everything else; a file that says so
// already keeps its bytes. The reason never quotes the file, which holds tokens.
func ghHosts(old []byte, h Host) (data []byte, why string) {
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(old))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		doc = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}}
	} else if err != nil {
		return nil, "it is not valid YAML"
	} else if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, "it has more than one YAML document"
	}
	entry, ok := childMap(&doc, h.Name)
	if !ok {
		return nil, "it is not a mapping of hosts to mappings"
	}
	if anchored(entry) {
		// Another host may refer to it and would get this token.
		return nil, "it has a YAML anchor at " + h.Name
	}
	changed := setScalar(entry, "oauth_token", h.Token)
	changed = setScalar(entry, "user", h.User) || changed
	changed = setScalar(entry, "git_protocol", "https") || changed
	if !changed {
		return old, ""
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(4)
	if enc.Encode(&doc) != nil || enc.Close() != nil {
		return nil, "it cannot be written again as YAML"
	}
	return b.Bytes(), ""
}

// childMap is the mapping below key of the document's mapping, made when there
// is none.
func childMap(doc *yaml.Node, key string) (*yaml.Node, bool) {
	root := doc.Content[0]
	if isNull(root) {
		makeMap(root)
	}
	if root.Kind != yaml.MappingNode {
		return nil, false
	}
	child := lookUp(root, key)
	if child == nil {
		child = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		root.Content = append(root.Content, scalar(key), child)
	} else if isNull(child) {
		makeMap(child)
	}
	return child, child.Kind == yaml.MappingNode
}

func anchored(n *yaml.Node) bool {
	return n.Anchor != "" || slices.ContainsFunc(n.Content, anchored)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func makeMap(n *yaml.Node) { n.Kind, n.Tag, n.Value = yaml.MappingNode, "!!map", "" }

func lookUp(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// setScalar reports whether the value was another one.
func setScalar(m *yaml.Node, key, value string) bool {
	old := lookUp(m, key)
	if old == nil {
		m.Content = append(m.Content, scalar(key), scalar(value))
		return true
	}
	if old.Kind == yaml.ScalarNode && old.Tag == "!!str" && old.Value == value {
		return false
	}
	comment := old.LineComment
	*old = *scalar(value)
	old.LineComment = comment
	return true
}

// scalar is a string, quoted by the encoder where it would read as another type.
func scalar(value string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(value)
	return n
}
