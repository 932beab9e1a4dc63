package netpolicy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/husk-sandbox/husk/netpolicy"
)

func TestZeroIsNone(t *testing.T) {
	var p netpolicy.Policy
	if p != netpolicy.None() || !p.IsNone() || p.IsHost() || p.String() != "none" {
		t.Errorf("zero policy = %v (none %v, host %v)", p, p.IsNone(), p.IsHost())
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want netpolicy.Policy
		err  error
	}{
		{"", netpolicy.None(), nil},
		{"none", netpolicy.None(), nil},
		{"host", netpolicy.Host(), nil},
		{"allow:", netpolicy.None(), netpolicy.ErrUnsupported},
		{"allow:pypi.example:443", netpolicy.None(), netpolicy.ErrUnsupported},
		{"allow", netpolicy.None(), netpolicy.ErrSyntax},
		{"Host", netpolicy.None(), netpolicy.ErrSyntax},
		{"host ", netpolicy.None(), netpolicy.ErrSyntax},
		{" host", netpolicy.None(), netpolicy.ErrSyntax},
		{"host\x00", netpolicy.None(), netpolicy.ErrSyntax},
		{"host,none", netpolicy.None(), netpolicy.ErrSyntax},
		{"bridge", netpolicy.None(), netpolicy.ErrSyntax},
	} {
		got, err := netpolicy.Parse(c.text)
		if got != c.want || !errors.Is(err, c.err) || (c.err == nil) != (err == nil) {
			t.Errorf("Parse(%q) = %v, %v; want %v, %v", c.text, got, err, c.want, c.err)
		}
	}
}

func TestParseAllowSaysWhatToUse(t *testing.T) {
	_, err := netpolicy.Parse("allow:a.example:443")
	const want = "network policy allow:a.example:443: not available in this version: use none or host"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestParseErrorIsOneShortLine(t *testing.T) {
	for _, text := range []string{
		"allow:\nroot", "x\u2028y", "\x1b[2J", strings.Repeat("é", 1<<20), "allow:" + strings.Repeat("\xff", 100),
	} {
		_, err := netpolicy.Parse(text)
		if err == nil {
			t.Errorf("Parse(%.20q): no error", text)
			continue
		}
		if s := err.Error(); strings.ContainsAny(s, "\n\r\x1b\u2028") || len(s) > 512 {
			t.Errorf("Parse(%.20q): error of %d bytes: %.200q", text, len(s), s)
		}
	}
}

func TestJSON(t *testing.T) {
	type spec struct {
		Network netpolicy.Policy `json:"network"`
	}
	for _, p := range []netpolicy.Policy{netpolicy.None(), netpolicy.Host()} {
		data, err := json.Marshal(spec{p})
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"network":"` + p.String() + `"}`; string(data) != want {
			t.Errorf("Marshal = %s, want %s", data, want)
		}
		var back spec
		if err := json.Unmarshal(data, &back); err != nil || back.Network != p {
			t.Errorf("Unmarshal(%s) = %v, %v", data, back.Network, err)
		}
	}
}

func TestUnmarshalErrorCloses(t *testing.T) {
	p := netpolicy.Host()
	if err := p.UnmarshalText([]byte("allow:x")); !errors.Is(err, netpolicy.ErrUnsupported) {
		t.Errorf("error %v, want ErrUnsupported", err)
	}
	if !p.IsNone() {
		t.Errorf("policy after an error = %v, want none", p)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "none", "host", "allow:a.example:443", "Host", "host\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := netpolicy.Parse(text)
		if err != nil && !p.IsNone() {
			t.Errorf("Parse(%q) = %v beside an error", text, p)
		}
		if p.IsHost() && text != "host" {
			t.Errorf("Parse(%q) opens the network", text)
		}
		if back, err := netpolicy.Parse(p.String()); err != nil || back != p {
			t.Errorf("Parse(%q) = %v, %v", p, back, err)
		}
	})
}

func ExampleParse() {
	p, err := netpolicy.Parse("none")
	fmt.Println(p, err)
	p, err = netpolicy.Parse("allow:files.example:443")
	fmt.Println(p, err)
	// Output:
	// none <nil>
	// none network policy allow:files.example:443: not available in this version: use none or host
}
