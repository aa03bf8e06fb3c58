package secret

import (
	"encoding/binary"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// Mark stands where a secret was.
const Mark = "***"

// Masker replaces secrets in text. A nil Masker is valid and masks nothing.
//
// It looks for all forms at once, after Wu and Manber ("A Fast Algorithm for
// Multi-Pattern Searching", 1994): a table says for each pair of bytes how far
// before the end of any form's first window bytes it occurs, and so how far the
// search may jump. Where it may not, the first eight bytes decide.
type Masker struct {
	// forms are sorted, so that those with a common beginning are neighbours.
	forms []string
	// window is how many first bytes of every form take part in the jumps: at
	// least MinLength, and no form is shorter.
	window int
	// jump is how far the search may advance when a window ends in a pair of
	// bytes; 0 where a form may begin at the window's start.
	jump *[1 << 16]uint8
	// heads finds the forms that begin with eight given bytes, and hashes tells
	// quickly that there are none.
	heads  map[uint64][]string
	hashes [1 << 14 / 64]uint64
	// first says which bytes forms begin with.
	first [256]bool

	// values are those of NewMasker and Add; adding guards them.
	adding sync.Mutex
	values []string
	// now takes this one's place after an Add; nil before.
	now atomic.Pointer[Masker]
}

// maxWindow bounds the jumps; beyond it, more pairs of each form in the table
// cost more than longer jumps gain.
const maxWindow = 24

// NewMasker returns a Masker for values, those that are TooShort left out. All its
// methods are safe for concurrent use.
func NewMasker(values []string) *Masker {
	f := forms{seen: map[string]bool{}}
	for _, v := range values {
		f.value(v)
	}
	m := &Masker{forms: f.list, values: values}
	if len(m.forms) > 0 {
		m.prepare()
	}
	return m
}

// Add has the Masker hide more values, wherever it is in use already.
func (m *Masker) Add(values ...string) {
	m.adding.Lock()
	defer m.adding.Unlock()
	all := slices.Clone(m.values)
	for _, v := range values {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	if len(all) > len(m.values) {
		m.values = all
		m.now.Store(NewMasker(all))
	}
}

// current is the Masker with all that was added.
func (m *Masker) current() *Masker {
	if m == nil {
		return nil
	}
	if now := m.now.Load(); now != nil {
		return now
	}
	return m
}

func (m *Masker) prepare() {
	slices.Sort(m.forms)
	m.window = maxWindow
	for _, form := range m.forms {
		m.window = min(m.window, len(form))
	}
	m.jump = new([1 << 16]uint8)
	for i := range m.jump {
		m.jump[i] = uint8(m.window - 1)
	}
	m.heads = make(map[uint64][]string, len(m.forms))
	for _, form := range m.forms {
		for end := 1; end < m.window; end++ {
			pair := uint16(form[end-1]) | uint16(form[end])<<8
			m.jump[pair] = min(m.jump[pair], uint8(m.window-1-end))
		}
		head := binary.LittleEndian.Uint64([]byte(form[:8]))
		m.heads[head] = append(m.heads[head], form)
		m.hashes[hash(head)/64] |= 1 << (hash(head) % 64)
		m.first[form[0]] = true
	}
	for _, group := range m.heads {
		slices.SortFunc(group, func(a, b string) int { return len(b) - len(a) })
	}
}

// Mask appends p to dst, each secret in it replaced by Mark; secrets that
// overlap become one Mark. dst may be p[:0].
func (m *Masker) Mask(dst, p []byte) []byte {
	var s Stream
	dst, _ = s.Mask(dst, m, p, true)
	return dst
}

// MaskString is Mask for a string.
func (m *Masker) MaskString(text string) string {
	if m = m.current(); m == nil || len(m.forms) == 0 {
		return text
	}
	return string(m.Mask(nil, []byte(text)))
}

// Holdback is how many bytes at the end of p have to wait for what follows
// them: the longest end that could begin a secret, and with it a secret that
// overlaps it. What is before may be masked and shown. To mask a text in pieces
// use a Stream, which needs bounded memory only.
func (m *Masker) Holdback(p []byte) int {
	m = m.current()
	start, end := 0, 0
	for from := 0; ; {
		at, length := m.find(p, from, false)
		if length == 0 {
			if at < end {
				at = start
			}
			return len(p) - at
		}
		if at >= end {
			start = at
		}
		end = max(end, at+length)
		from = at + 1
	}
}

// Stream masks a text that comes in pieces; the result is the same as if it had
// come in one. The zero value is ready.
type Stream struct {
	// covered is how many bytes at the start of what was held back belong to a
	// secret whose Mark has already been put out.
	covered int
}

// Mask appends p to dst, masked, except for held bytes at its end that could
// begin a secret: the next call's p has to begin with them. last says that
// nothing follows; nothing is held then. dst may be p[:0].
func (s *Stream) Mask(dst []byte, m *Masker, p []byte, last bool) (out []byte, held int) {
	m = m.current()
	// [start, end) is a run of overlapping secrets; pending while its Mark is
	// to be put out. That waits until the run is over: dst may share memory
	// with what is still to be searched.
	start, end, pending := 0, s.covered, false
	s.covered = 0
	for from := 0; ; {
		at, length := m.find(p, from, last)
		if length > 0 && at < end {
			end = max(end, at+length)
			from = at + 1
			continue
		}
		if pending && at < start+len(Mark) {
			// Mark would reach into the held bytes.
			return dst, len(p) - start
		}
		if pending {
			dst = append(dst, Mark...)
		}
		if length == 0 {
			if end > at {
				s.covered = end - at
			} else {
				dst = appendText(dst, p[end:at])
			}
			return dst, len(p) - at
		}
		dst = appendText(dst, p[end:at])
		start, end, pending = at, at+length, true
		from = at + 1
	}
}

// appendText is append that does not touch text which is in place already.
func appendText(dst, text []byte) []byte {
	if n := len(dst); len(text) > 0 && n < cap(dst) && &dst[:n+1][n] == &text[0] {
		return dst[:n+len(text)]
	}
	return append(dst, text...)
}

// find returns where the first secret at or after from begins and its length.
// With length 0 there is none before at, and what begins at at is the end of p
// or could be the beginning of a secret.
func (m *Masker) find(p []byte, from int, last bool) (at, length int) {
	if m == nil || len(m.forms) == 0 {
		return len(p), 0
	}
	for {
		at = m.candidate(p, from)
		if at+m.window > len(p) {
			break
		}
		rest := p[at:]
		for _, form := range m.heads[binary.LittleEndian.Uint64(rest)] {
			switch {
			case len(form) <= len(rest):
				if string(rest[:len(form)]) == form {
					return at, len(form)
				}
			case !last && form[:len(rest)] == string(rest):
				return at, 0
			}
		}
		from = at + 1
	}
	if last {
		return len(p), 0
	}
	for at = max(from, len(p)-m.window+1); at < len(p); at++ {
		if m.begins(p[at:]) {
			break
		}
	}
	return at, 0
}

// candidate is the first place at or after from where the first bytes are those
// of a form; a place whose window does not fit in p means that there is none.
func (m *Masker) candidate(p []byte, from int) int {
	for len(p)-from >= block+m.window && m.isClean(p[from:from+block+m.window]) {
		from += block
	}
	jump, last := m.jump, m.window-1
	for i := from + last; i < len(p); {
		n := int(jump[binary.LittleEndian.Uint16(p[i-1:])])
		if n == 0 {
			if m.mayBegin(p[i-last:]) {
				return i - last
			}
			n = 1
		}
		i += n
	}
	return len(p)
}

// block is how many places isClean looks at.
const block = 4096

// isClean tells that no form begins in the first block bytes of p, which is
// longer by the window. Each jump waits for the memory of the one before, so
// four searches run side by side, each in its quarter.
func (m *Masker) isClean(p []byte) bool {
	const quarter = block / 4
	jump, last := m.jump, m.window-1
	at := [4]int{last, last + quarter, last + 2*quarter, last + 3*quarter}
	a, b, c, d := at[0], at[1], at[2], at[3]
	for a < at[1] && b < at[2] && c < at[3] && d < len(p) {
		na := int(jump[binary.LittleEndian.Uint16(p[a-1:])])
		nb := int(jump[binary.LittleEndian.Uint16(p[b-1:])])
		nc := int(jump[binary.LittleEndian.Uint16(p[c-1:])])
		nd := int(jump[binary.LittleEndian.Uint16(p[d-1:])])
		if na == 0 {
			if m.mayBegin(p[a-last:]) {
				return false
			}
			na = 1
		}
		if nb == 0 {
			if m.mayBegin(p[b-last:]) {
				return false
			}
			nb = 1
		}
		if nc == 0 {
			if m.mayBegin(p[c-last:]) {
				return false
			}
			nc = 1
		}
		if nd == 0 {
			if m.mayBegin(p[d-last:]) {
				return false
			}
			nd = 1
		}
		a, b, c, d = a+na, b+nb, c+nc, d+nd
	}
	return m.isCleanFrom(p, a, at[1]) && m.isCleanFrom(p, b, at[2]) &&
		m.isCleanFrom(p, c, at[3]) && m.isCleanFrom(p, d, last+block)
}

// isCleanFrom tells that no window that ends at i or later, but before end, is
// that of a form.
func (m *Masker) isCleanFrom(p []byte, i, end int) bool {
	for i < end {
		n := int(m.jump[binary.LittleEndian.Uint16(p[i-1:])])
		if n == 0 {
			if m.mayBegin(p[i-m.window+1:]) {
				return false
			}
			n = 1
		}
		i += n
	}
	return true
}

// mayBegin tells whether the first eight bytes of p are, most likely, those of
// a form.
func (m *Masker) mayBegin(p []byte) bool {
	h := hash(binary.LittleEndian.Uint64(p))
	return m.hashes[h/64]>>(h%64)&1 != 0
}

// hash has 14 bits.
func hash(head uint64) uint64 { return head * 0x9e3779b97f4a7c15 >> 50 }

// begins tells whether tail is the beginning of a form.
func (m *Masker) begins(tail []byte) bool {
	if !m.first[tail[0]] {
		return false
	}
	i := sort.Search(len(m.forms), func(i int) bool { return m.forms[i] >= string(tail) })
	return i < len(m.forms) && m.forms[i][:min(len(tail), len(m.forms[i]))] == string(tail)
}
