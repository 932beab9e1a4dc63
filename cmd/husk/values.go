package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/husk-sandbox/husk/runtime"
)

// problems are all that is wrong with a command line: everything is reported before anything is done.
type problems []error

// add notes that a flag's value is wrong; a nil error is none.
func (p *problems) add(flag string, err error) {
	if err != nil {
		*p = append(*p, fmt.Errorf("%s: %w", flag, err))
	}
}

func (p problems) join() error { return errors.Join(p...) }

// size reads a limit in bytes; the empty text is zero, the default.
func (p *problems) size(flag, text string) runtime.Bytes {
	if text == "" {
		return 0
	}
	b, err := runtime.ParseBytes(text)
	if err == nil && b == 0 {
		err = zeroError(text, "unlimited")
	}
	p.add(flag, err)
	return b
}

// zeroError refuses a zero that means "no limit" to some tools and "nothing" to others.
func zeroError(text, none string) error {
	return fmt.Errorf("%q: zero is no limit that can be worked under; write %s for no limit", text, none)
}

// count reads a number of things.
func (p *problems) count(flag, text string) int {
	if text == "" {
		return 0
	}
	if text == "unlimited" {
		return runtime.Unlimited
	}
	n, err := strconv.ParseUint(text, 10, 31)
	switch {
	case err != nil:
		p.add(flag, fmt.Errorf("%q: want a whole number, or unlimited", text))
	case n == 0:
		p.add(flag, zeroError(text, "unlimited"))
	}
	return int(n)
}

// cpus reads a number of CPUs, fractions allowed.
func (p *problems) cpus(flag, text string) float64 {
	if text == "" {
		return 0
	}
	if text == "unlimited" {
		return runtime.Unlimited
	}
	n, err := parseDecimal(text)
	switch {
	case err != nil:
		p.add(flag, fmt.Errorf("%q: want a number of CPUs such as 1.5, or unlimited", text))
	case n == 0:
		p.add(flag, zeroError(text, "unlimited"))
	}
	return n
}

// duration reads a time limit: "none" is noLimit, the empty text zero.
func (p *problems) duration(flag, text string, noLimit time.Duration) time.Duration {
	if text == "" {
		return 0
	}
	if text == "none" {
		return noLimit
	}
	d, err := parseDuration(text)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%q: write none for no limit", text)
	}
	p.add(flag, err)
	return d
}

// parseDuration reads Go's form (5m, 1h30m, 250ms) or a bare number of seconds (30, 0.5).
func parseDuration(text string) (time.Duration, error) {
	if seconds, err := parseDecimal(strings.TrimPrefix(text, "-")); err == nil {
		if seconds > math.MaxInt64/1e9-1 {
			return 0, fmt.Errorf("%q: too long", text)
		}
		if strings.HasPrefix(text, "-") {
			seconds = -seconds
		}
		return time.Duration(seconds * 1e9), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q: want seconds such as 30 or 0.5, or a time such as 5m or 1h30m", text)
	}
	return d, nil
}

// parseDecimal reads digits with at most one point: no sign, exponent, hexadecimal or word.
func parseDecimal(text string) (float64, error) {
	if strings.Trim(text, "0123456789.") != "" {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseFloat(text, 64)
	if err == nil && math.IsInf(n, 0) {
		err = strconv.ErrRange
	}
	return n, err
}

// oneOf accepts one of a few words; the empty text is the first.
func (p *problems) oneOf(flag, text string, words ...string) string {
	if text == "" {
		return words[0]
	}
	if !slices.Contains(words, text) {
		p.add(flag, fmt.Errorf("%q: want %s", text, strings.Join(words, " or ")))
	}
	return text
}

// labels reads NAME=VALUE, or NAME alone for an empty value; the last of a name counts.
func (p *problems) labels(flag string, texts []string) map[string]string {
	var labels map[string]string
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		if name == "" {
			p.add(flag, fmt.Errorf("%q: empty name: want NAME=VALUE", text))
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
	}
	return labels
}
