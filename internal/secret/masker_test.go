package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// reference masks as the contract says it, without any search of its own: each
// byte of an occurrence is marked, and each run of overlapping ones replaced.
func reference(m *Masker, text []byte) []byte {
	var out []byte
	end := 0
	for i := range text {
		length := 0
		for _, form := range m.forms {
			if len(form) > length && bytes.HasPrefix(text[i:], []byte(form)) {
				length = len(form)
			}
		}
		if length > 0 && i >= end {
			out = append(out, Mark...)
		}
		if length > 0 {
			end = max(end, i+length)
		}
		if i >= end {
			out = append(out, text[i])
		}
	}
	return out
}

// inPieces masks text through a Stream, cut at random, in place as relays do.
func inPieces(m *Masker, text []byte, random *rand.Rand) []byte {
	var s Stream
	var out, held []byte
	for len(text) > 0 {
		n := 1 + random.IntN(len(text))
		if random.IntN(2) == 0 {
			n = min(n, 1+random.IntN(12))
		}
		p := append(held, text[:n]...)
		text = text[n:]
		masked, h := s.Mask(p[:0], m, p, false)
		out = append(out, masked...)
		held = bytes.Clone(p[len(p)-h:])
	}
	masked, h := s.Mask(nil, m, held, true)
	if h != 0 {
		panic("held at the end")
	}
	return append(out, masked...)
}

func FuzzMask(f *testing.F) {
	f.Add("aaaaaaaa\x00aaaaaaab", "aaaaaaaaaaaaaaaabaaaaaaaaab", uint64(1))
	f.Add("abcdefgh\x00fghijklm\x00cdefghij", "xabcdefghijklmabcdefghabcdefgh", uint64(2))
	f.Add("line one of it\nline two of it\nend", "line one of it\nline two of it\nend line two of it", uint64(3))
	f.Add("pa\"ss/wörd<>", `{"k":"pa\"ss\/w\u00f6rd\u003c\u003E pa%22ss%2Fw%C3%B6rd%3C%3E"}`, uint64(4))
	f.Add("abababab\x00babababa\x00ababababX", "abababababababababababXababab", uint64(5))
	f.Fuzz(func(t *testing.T, secrets, text string, seed uint64) {
		m := NewMasker(strings.Split(secrets, "\x00"))
		p := []byte(text)
		want := reference(m, p)
		if got := m.Mask(nil, p); !bytes.Equal(got, want) {
			t.Fatalf("Mask\ngot  %q\nwant %q", got, want)
		}
		if got := m.Mask([]byte("before"), p); string(got) != "before"+string(want) {
			t.Fatalf("Mask after other text\ngot  %q\nwant %q", got, want)
		}
		if got := m.MaskString(text); got != string(want) {
			t.Fatalf("MaskString\ngot  %q\nwant %q", got, want)
		}
		random := rand.New(rand.NewPCG(seed, 0))
		if got := inPieces(m, p, random); !bytes.Equal(got, want) {
			t.Fatalf("in pieces\ngot  %q\nwant %q", got, want)
		}
		if len(p) > 0 {
			cut := random.IntN(len(p) + 1)
			h := m.Holdback(p[:cut])
			got := append(m.Mask(nil, p[:cut-h]), m.Mask(nil, p[cut-h:])...)
			if !bytes.Equal(got, want) {
				t.Fatalf("cut at %d less %d\ngot  %q\nwant %q", cut, h, got, want)
			}
		}
		if strings.Contains(secrets, "*") {
			return // Mark itself can complete such a secret.
		}
		for _, form := range m.forms {
			if bytes.Contains(want, []byte(form)) {
				t.Fatalf("%q left in %q", form, want)
			}
		}
		if got := m.Mask(p[:0], p); !bytes.Equal(got, want) {
			t.Fatalf("in place\ngot  %q\nwant %q", got, want)
		}
	})
}

// TestMaskRandom meets what a fuzzer without hours rarely does: secrets that
// overlap and contain each other in texts made of their parts.
func TestMaskRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab\n"[random.IntN(2+random.IntN(2))]
		}
		return string(b)
	}
	for range 3000 {
		var values []string
		for range 1 + random.IntN(5) {
			values = append(values, word(8+random.IntN(20)))
		}
		m := NewMasker(values)
		var text []byte
		for range random.IntN(12) {
			switch random.IntN(3) {
			case 0:
				text = append(text, word(random.IntN(9))...)
			case 1:
				v := values[random.IntN(len(values))]
				text = append(text, v[:random.IntN(len(v)+1)]...)
			default:
				if len(m.forms) > 0 {
					text = append(text, m.forms[random.IntN(len(m.forms))]...)
				}
			}
		}
		want := reference(m, text)
		if got := m.Mask(nil, text); !bytes.Equal(got, want) {
			t.Fatalf("%q in %q\ngot  %q\nwant %q", values, text, got, want)
		}
		if got := inPieces(m, text, random); !bytes.Equal(got, want) {
			t.Fatalf("%q in pieces of %q\ngot  %q\nwant %q", values, text, got, want)
		}
		cut := random.IntN(len(text) + 1)
		h := m.Holdback(text[:cut])
		got := append(m.Mask(nil, text[:cut-h]), m.Mask(nil, text[cut-h:])...)
		if !bytes.Equal(got, want) {
			t.Fatalf("%q cut %d-%d\ngot  %q\nwant %q", values, cut, h, got, want)
		}
	}
}

func TestB1AnywhereInALongText(t *testing.T) {
	const value = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	m := NewMasker([]string{value, "hunter22"})
	text := eventText(3*block + 100)
	for at := 0; at < len(text)-len(value); at += 7 {
		p := bytes.Clone(text)
		copy(p[at:], value)
		if got, want := len(m.Mask(p[:0], p)), len(text)-len(value)+len(Mark); got != want {
			t.Fatalf("at %d: %d bytes, want %d", at, got, want)
		}
	}
}

func TestB1EveryEncodingIsMasked(t *testing.T) {
	values := []string{
		"ghp_16C7e42F292c6912E7710c838347Ae178B4a",
		`p"a\s's/w<o>r&d+1 2~!*(x)` + "\t`",
		"Grüße-aus-Köln-\U0001F511\x7f\b\f\u2028",
		"-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC/+x\nshort\n-----END KEY-----\n",
	}
	for _, secret := range values {
		m := NewMasker([]string{secret})
		check := func(how, text string) {
			t.Helper()
			if got := m.MaskString("x " + text + " y"); strings.Contains(got, text) || !strings.Contains(got, Mark) {
				t.Errorf("%s: %q is not masked: %q", how, text, got)
			}
		}
		check("raw", secret)
		text := strings.Trim(secret, "\n")
		check("Go", marshal(t, text, true))
		check("Go without HTML", marshal(t, text, false))
		twice := marshal(t, text, false)
		check("JSON in JSON", marshal(t, `{"a":"`+twice+`"}`, false)[len(`{\"a\":\"`):len(marshal(t, `{"a":"`+twice+`"}`, false))-len(`\"}`)])
		check("query", url.QueryEscape(text))
		check("path", url.PathEscape(text))
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
			for before := range 6 {
				for after := range 3 {
					whole := enc.EncodeToString([]byte(strings.Repeat("a", before) + text + strings.Repeat("z", after)))
					got := m.MaskString(whole)
					// What is left are the neighbours and the characters they share with the secret.
					if left := strings.ReplaceAll(got, Mark, ""); len(left) > (before+after)*8/6+8 {
						t.Errorf("base64 after %d bytes: %q is masked as %q", before, whole, got)
					}
				}
			}
		}
	}
}

func marshal(t *testing.T, text string, html bool) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(text); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")[1 : b.Len()-2]
}

// TestB1OtherLanguagesEncodings has the results of encoders that are not Go's,
// written down.
func TestB1OtherLanguagesEncodings(t *testing.T) {
	m := NewMasker([]string{"a/b<ö🔑\"\x7f\\ d'+=!"})
	for how, text := range map[string]string{
		"Python":                  `a/b<\u00f6\ud83d\udd11\"\u007f\\ d'+=!`,
		"Python, not ASCII":       "a/b<ö🔑\\\"\x7f\\\\ d'+=!",
		"PHP":                     `a\/b<\u00f6\ud83d\udd11\"` + "\x7f" + `\\ d'+=!`,
		".NET":                    `a/b\u003C\u00F6\uD83D\uDD11\u0022\u007F\\ d\u0027\u002B=!`,
		"encodeURIComponent":      "a%2Fb%3C%C3%B6%F0%9F%94%91%22%7F%5C%20d'%2B%3D!",
		"encodeURI":               "a/b%3C%C3%B6%F0%9F%94%91%22%7F%5C%20d'+=!",
		"quote_plus, lower":       "a%2fb%3c%c3%b6%f0%9f%94%91%22%7f%5c+d%27%2b%3d%21",
		"Python's quote":          "a/b%3C%C3%B6%F0%9F%94%91%22%7F%5C%20d%27%2B%3D%21",
		"base64 url, two aligned": base64.URLEncoding.EncodeToString([]byte("xya/b<ö🔑\"\x7f\\ d'+=!"))[3:28],
	} {
		if got := m.MaskString(text); !strings.HasPrefix(got, Mark) || len(got) > len(Mark)+4 {
			t.Errorf("%s: %q is masked as %q", how, text, got)
		}
	}
}

func TestB1LongBase64IsMaskedLineByLine(t *testing.T) {
	secret := strings.Repeat("k3y-material.", 20)
	m := NewMasker([]string{secret})
	encoded := base64.StdEncoding.EncodeToString([]byte(secret + "\n"))
	for _, width := range []int{64, 76} {
		var b strings.Builder
		for rest := encoded; rest != ""; {
			n := min(width, len(rest))
			b.WriteString(rest[:n] + "\n")
			rest = rest[n:]
		}
		if got := m.MaskString(b.String()); len(got) > 12 {
			t.Errorf("in lines of %d: left %q", width, got)
		}
		embedded := strings.ReplaceAll(b.String(), "\n", `\n`)
		if got := m.MaskString(embedded); len(strings.NewReplacer(Mark, "", `\n`, "").Replace(got)) > width {
			t.Errorf("in lines of %d in JSON: left %q", width, got)
		}
	}
}

func TestB1ShortValuesAndNilMask(t *testing.T) {
	for value, short := range map[string]bool{"": true, "1234567": true, "1234567\n": true, "12345678": false} {
		if TooShort(value) != short {
			t.Errorf("TooShort(%q) = %v", value, !short)
		}
		m := NewMasker([]string{value})
		if masked := m.MaskString("x"+value+"y") != "x"+value+"y"; masked == short {
			t.Errorf("%q masked: %v", value, masked)
		}
	}
	for _, m := range []*Masker{nil, NewMasker(nil), NewMasker([]string{"", "short"})} {
		p := []byte("nothing to hide")
		if got := m.Mask(p[:0], p); string(got) != "nothing to hide" || m.Holdback(p) != 0 || m.MaskString("a") != "a" {
			t.Errorf("a masker without secrets: %q", got)
		}
		if n := testing.AllocsPerRun(10, func() { m.Mask(p[:0], p) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func TestHoldback(t *testing.T) {
	m := NewMasker([]string{"secret-value-one", "value-one-and-more"})
	for text, want := range map[string]int{
		"":                          0,
		"nothing":                   0,
		"a s":                       1,
		"a secret-value-on":         15,
		"a secret-value-one":        16, // "value-one" could go on.
		"a secret-value-one.":       0,
		"secret-value-one-and-mor":  24,
		"secret-value-one-and-more": 0,
	} {
		if got := m.Holdback([]byte(text)); got != want {
			t.Errorf("Holdback(%q) = %d, want %d", text, got, want)
		}
	}
}

// tenSecrets are as agents have them.
func tenSecrets() []string {
	random := rand.New(rand.NewPCG(1, 2))
	var out []string
	for i, prefix := range []string{"ghp_", "sk-ant-api03-", "sk-proj-", "", "glpat-", "npm_", "xoxb-", "AIza", "", "hf_"} {
		b := []byte(prefix)
		for range 30 + 7*i {
			b = append(b, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[random.IntN(64)])
		}
		out = append(out, string(b))
	}
	return out
}

// eventText is n bytes of lines as hooks write them.
func eventText(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `{"event_type": "tool_execution_started", "timestamp": "2026-11-21T07:45:47.%06d+00:00", "session_id": "0b2f9a54-6a3c-4a87-9b0e-%012d", "provider": "claude", "context": {"tool_name": "Bash", "tool_use_id": "toolu_%x", "input_preview": "go test ./internal/... -run TestThatThingWorks -count=1"}, "metadata": null}`+"\n", i, i, i*7919)
	}
	return b.Bytes()[:n]
}

func BenchmarkMask(b *testing.B) {
	random := make([]byte, 64<<10)
	source := rand.NewChaCha8([32]byte{})
	source.Read(random)
	texts := map[string][]byte{"events": eventText(64 << 10), "base64": []byte(base64.StdEncoding.EncodeToString(random)), "random": random}
	withKey := append(tenSecrets(), pem())
	for name, values := range map[string][]string{"ten": tenSecrets(), "tenAndShort": append(tenSecrets(), "hunter22"), "tenAndPEM": withKey} {
		m := NewMasker(values)
		for text, p := range texts {
			b.Run(name+"/"+text, func(b *testing.B) {
				b.SetBytes(int64(len(p)))
				for b.Loop() {
					var s Stream
					s.Mask(p[:0], m, p, false)
				}
			})
		}
	}
}

func pem() string {
	key := make([]byte, 1700)
	rand.NewChaCha8([32]byte{1}).Read(key)
	encoded := base64.StdEncoding.EncodeToString(key)
	out := "-----BEGIN PRIVATE KEY-----\n"
	for encoded != "" {
		n := min(64, len(encoded))
		out += encoded[:n] + "\n"
		encoded = encoded[n:]
	}
	return out + "-----END PRIVATE KEY-----\n"
}

func BenchmarkNewMasker(b *testing.B) {
	for name, values := range map[string][]string{"ten": tenSecrets(), "tenAndPEM": append(tenSecrets(), pem())} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				NewMasker(values)
			}
		})
	}
}

func TestB1AddedValuesAreMaskedWhereverTheMaskerIsInUse(t *testing.T) {
	m := NewMasker([]string{"the first secret"})
	var s Stream
	out, held := s.Mask(nil, m, []byte("a the first secret, the second se"), false)
	if string(out) != "a ***, the second se" || held != 0 {
		t.Fatalf("%q, %d", out, held)
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { m.Add("the second secret", fmt.Sprintf("of number %d", i), "short") })
		all.Go(func() { m.MaskString("the second secret") })
	}
	all.Wait()
	m.Add()
	const text = "the first secret, the second secret and of number 3"
	if got := m.MaskString(text); got != "***, *** and ***" {
		t.Error(got)
	}
	if out, held := s.Mask(nil, m, []byte(text+" the second"), false); string(out) != "***, *** and *** " || held != len("the second") {
		t.Errorf("%q, %d", out, held)
	}
	if got := m.Holdback([]byte("the second")); got != len("the second") {
		t.Error(got)
	}
	empty := NewMasker(nil)
	empty.Add("the second secret")
	if got := empty.MaskString(text); got != "the first secret, *** and of number 3" {
		t.Error(got)
	}
}
