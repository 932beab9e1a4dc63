// Package netpolicy says what a sandbox's network may do.
//
//	p, err := netpolicy.Parse("none")
//	spec := runtime.Spec{Network: p}
//
// A [Policy] is an immutable value: comparable, safe to copy and to share between goroutines. Its
// zero value is [None], the safest one.
//
// Guarantees: a text that this version does not enforce is never taken for one that it does. Parse
// refuses it ([ErrUnsupported], [ErrSyntax]) and returns none beside the error, so that a caller
// who drops the error gets no network rather than an open one.
//
// Limits: a policy text has at most [MaxLength] bytes. Policies of this version are "none" and
// "host"; "allow:…" is known and refused. Kernel: network namespaces, any supported version.
//
// What it does not protect against: host is the host's own network namespace. A command there
// reaches whatever the host reaches, its loopback services and abstract unix sockets included.
package netpolicy

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that a caller may decide on.
var (
	// ErrUnsupported: the policy is well known, but this version cannot enforce it.
	ErrUnsupported = errors.New("not available in this version: use none or host")
	// ErrSyntax: the text is no network policy.
	ErrSyntax = errors.New("not a network policy: use none or host")
)

// MaxLength is the longest policy text that Parse looks at, in bytes.
const MaxLength = 64 << 10

const (
	textNone    = "none"
	textHost    = "host"
	prefixAllow = "allow:"
)

// mode is the kind of a policy. Zero is none, so that the zero Policy is closed.
type mode uint8

const (
	modeNone mode = iota
	modeHost
)

// Policy is what the network may do. The zero value is None.
type Policy struct {
	mode mode
}

// None is a network namespace of the sandbox's own with nothing but loopback.
func None() Policy { return Policy{} }

// Host is the host's own network namespace: no isolation of the network at all.
func Host() Policy { return Policy{mode: modeHost} }

// Parse reads "none" or "host"; the empty text is none. What it cannot enforce is an error that
// wraps ErrUnsupported ("allow:…") or ErrSyntax (all else), and the policy is then None.
func Parse(text string) (Policy, error) {
	switch {
	case text == "" || text == textNone:
		return None(), nil
	case text == textHost:
		return Host(), nil
	case strings.HasPrefix(text, prefixAllow):
		return None(), fmt.Errorf("network policy %s: %w", abridge(text), ErrUnsupported)
	}
	return None(), fmt.Errorf("network policy %q: %w", abridge(text), ErrSyntax)
}

// IsNone reports whether the sandbox gets a network namespace of its own with loopback only.
func (p Policy) IsNone() bool { return p.mode == modeNone }

// IsHost reports whether the sandbox uses the host's network namespace.
func (p Policy) IsHost() bool { return p.mode == modeHost }

// String is the text that Parse reads back to the same policy.
func (p Policy) String() string {
	if p.IsHost() {
		return textHost
	}
	return textNone
}

// MarshalText makes a Policy a string in JSON, the zero value "none". It never returns an error.
func (p Policy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is Parse. After an error the policy is None, whatever it was before.
func (p *Policy) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	*p = parsed
	return err
}

// abridge keeps a foreign text short and on one line in an error.
func abridge(text string) string {
	const longest = 64
	text = strings.Map(printable, text[:min(len(text), MaxLength)])
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029' {
		return ' '
	}
	return r
}
