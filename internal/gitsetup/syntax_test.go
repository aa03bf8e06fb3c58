package gitsetup

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func listing(entries []Entry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Key)
		if !e.Bare {
			b.WriteString("\n" + e.Value)
		}
		b.WriteByte(0)
	}
	return b.String()
}

var configSeeds = []string{
	"[user]\n\tname = Ada\n\temail=a@b ; c\n",
	"[core]\n\thooksPath = \"/a b\"/c # x\n",
	"[Remote \"Or\\\"i]g\"]\n\tURL = x\\\n   y\r\n\tbare\n",
	"[a.B \"c\"] d = 1\n[a.b] e = 2",
	"\xef\xbb\xbf[x]\na = \"q\\n\\t\\b\\\\\\\"\"\n",
	"[x]\na = one  two\t three  \nb=\n c = \"  kept  \" \n",
	"[x\n", "[x \"y\n\"]\n", "[x]\na b\n", "[x]\na = \"open\n", "[x]\na = \\q\n", "a = 1\n", "[]\na=1\n", "[x]\n1a = 2\n", "[x]\na = b\\", "[ \"s\"]\na=1",
	"[x]\na = 1 \\\n# no comment\n", "[x]\n\ta = \"x\" \"y\"z\n", "[x]\r\na = b\r\n\r\n", "[x]\na = b\rc\n",
}

// git 2.45 and later keep the kind of blank inside an unquoted value.
var blanks = strings.NewReplacer("\t", " ", "\r", " ")

// TestB3ReaderAgreesWithGit compares the reader with the installed git on files
// made of the pieces that matter.
func TestB3ReaderAgreesWithGit(t *testing.T) {
	w := newWorld(t)
	pieces := []string{"[", "]", "[user]\n", "[a \"b\"]", "\"", "\\", "\n", "\r\n", "\r", " ", "\t", "=", "#", ";", "name", "X-1", "\\\n", "\\n", "\\\"", "é", ".", "\x01", "\xef\xbb\xbf", "= v\n"}
	rnd := rand.New(rand.NewPCG(1, 2))
	files := append([]string{}, configSeeds...)
	for range 600 {
		var b strings.Builder
		for range rnd.IntN(14) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		files = append(files, b.String())
	}
	refused := 0
	for i, content := range files {
		path := w.write(fmt.Sprintf("f%d", i), content)
		out, err := w.try("", "config", "--file", path, "--list", "-z")
		entries, bad := ParseConfig(path, []byte(content))
		if (err != nil) != (bad != nil) {
			t.Errorf("%q: git %v %q, reader %v", content, err, out, bad)
			continue
		}
		if err != nil {
			refused++
			line := ""
			if _, after, ok := strings.Cut(out, "bad config line "); ok {
				line, _, _ = strings.Cut(after, " ")
			}
			// git counts the end of the file as a line when a header is open there.
			open := bad.Why == "a section header has no ]" && line == fmt.Sprint(bad.Line+1)
			if want := fmt.Sprint(bad.Line); line != want && !open {
				t.Errorf("%q: git blames line %s, reader %s (%s)", content, line, want, bad.Why)
			}
		} else if got := listing(entries); blanks.Replace(got) != blanks.Replace(out) {
			t.Errorf("%q:\ngit    %q\nreader %q", content, out, got)
		}
	}
	if refused < 50 || len(files)-refused < 50 {
		t.Errorf("of %d files git refused %d: the test does not tell much", len(files), refused)
	}
}

var oddValues = []string{
	"", "plain", " lead", "trail ", "\ttab\t", `quo"te`, `back\slash`, "new\nline", "a\n", "# hash", "a;b", "ünïcödé", "\x01\x1b\x7f",
	"cr\r", "cr\r\nlf", "\b", "\xff\xfe", "'single'", "[x]", "= =", strings.Repeat("long ", 500), "ends in # agent-init", "  ", `\`, "$HOME `x`",
}

func TestB3ValuesComeBackFromGit(t *testing.T) {
	w := newWorld(t)
	for i, v := range oddValues {
		path := w.write(fmt.Sprintf("f%d", i), string(renderBlock([]Setting{{"user.name", v}, {"init.defaultBranch", "x" + v}})))
		if got := w.git("config", "--file", path, "-z", "user.name"); got != v+"\x00" {
			t.Errorf("git read %q for %q", got, v)
		}
		if got := w.git("config", "--file", path, "-z", "init.defaultbranch"); got != "x"+v+"\x00" {
			t.Errorf("git read %q for %q", got, v)
		}
	}
}

func TestReaderNamesFileAndLine(t *testing.T) {
	_, bad := ParseConfig("/f", []byte("[x]\na = 1\nb = \"open\n"))
	if bad == nil {
		t.Fatal("accepted")
	}
	want(t, "problem", bad.Text(), "cannot read git configuration /f:3: a value's quotes are not closed")
}

func FuzzParseConfig(f *testing.F) {
	for _, s := range configSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, bad := ParseConfig("/f", data)
		lines := strings.Count(string(data), "\n") + 1
		if bad != nil && (bad.Line < 1 || bad.Line > lines || bad.Why == "") {
			t.Fatalf("%q: problem %+v", data, bad)
		}
		for _, e := range entries {
			if e.Line < 1 || e.Line > lines || e.Key == "" {
				t.Fatalf("%q: entry %+v", data, e)
			}
			again, bad := ParseConfig("/f", append(appendQuoted([]byte("[x]\na = "), e.Value), '\n'))
			if bad != nil || len(again) != 1 || again[0].Value != e.Value {
				t.Fatalf("%q does not survive quoting: %v %v", e.Value, again, bad)
			}
		}
	})
}

func FuzzSplitConfigLosesNothing(f *testing.F) {
	block := string(renderBlock([]Setting{{"user.name", "x"}}))
	f.Add([]byte(block + "[a]\r\nb=c"))
	f.Add([]byte("[a]\nb=c\n" + strings.Replace(block, "\tname", "\tsigningkey = K\n\tname", 1)))
	f.Add([]byte(blockEnd))
	f.Add([]byte("\xef\xbb\xbf" + block + block))
	f.Fuzz(func(t *testing.T, data []byte) {
		u, bad := splitConfig("/f", data)
		if bad != nil {
			return
		}
		if !strings.Contains(string(data), blockBegin) {
			if got := string(u.with(nil)); got != string(data) {
				t.Fatalf("%q became %q", data, got)
			}
		}
		once := u.with([]byte(block))
		u, bad = splitConfig("/f", once)
		if bad != nil {
			t.Fatalf("%q: %v", once, bad)
		}
		if twice := u.with([]byte(block)); string(twice) != string(once) {
			t.Fatalf("twice: %q, once: %q", twice, once)
		}
	})
}

func TestLastValueCounts(t *testing.T) {
	entries, _ := ParseConfig("/f", []byte("[Core]\nhooksPath=/a\n[core]\nHOOKSPATH=/b\n"))
	v, ok := Last(entries, "core.hookspath")
	if !ok || v != "/b" {
		t.Errorf("got %q, %v", v, ok)
	}
	if _, ok := Last(entries, "core.other"); ok {
		t.Error("found what is not there")
	}
}
