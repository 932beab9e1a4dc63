package runtime

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size in bytes. In a Spec or Command, zero means the documented default and Unlimited
// means no limit.
type Bytes int64

// Binary units.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

// Unlimited spells out that there is no limit, for sizes and counts.
const Unlimited = -1

// ParseBytes reads a size as docker's users write it: a decimal number with a unit of b, k, m, g
// or t (also kb, kib, …), in either case, always in powers of 1024; "unlimited" is Unlimited. A
// bare number below 1 MiB is refused, since it is nearly always a forgotten unit.
func ParseBytes(text string) (Bytes, error) {
	t := strings.ToLower(strings.TrimSpace(text))
	if t == "unlimited" {
		return Unlimited, nil
	}
	digits := strings.TrimRight(t, "abcdefghijklmnopqrstuvwxyz")
	unit, ok := unitOf(t[len(digits):])
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil || !ok || value < 0 || strings.Trim(digits, "0123456789.") != "" {
		return 0, fmt.Errorf("size %q: want a number with a unit, such as 64m, 1.5g, 512KiB, or unlimited", text)
	}
	if value*float64(unit) > math.MaxInt64/2 {
		return 0, fmt.Errorf("size %q: too large (use unlimited for no limit)", text)
	}
	if t == digits && value > 0 && value < float64(MiB) {
		return 0, fmt.Errorf("size %q: a number without a unit is in bytes; write %sm for MiB or %sb if bytes are meant", text, digits, digits)
	}
	return Bytes(value * float64(unit)), nil
}

func unitOf(suffix string) (Bytes, bool) {
	switch suffix {
	case "", "b":
		return 1, true
	case "k", "kb", "kib":
		return KiB, true
	case "m", "mb", "mib":
		return MiB, true
	case "g", "gb", "gib":
		return GiB, true
	case "t", "tb", "tib":
		return TiB, true
	}
	return 0, false
}

// String is the size in the largest unit that keeps it exact, in the form ParseBytes reads.
func (b Bytes) String() string {
	switch {
	case b < 0:
		return "unlimited"
	case b == 0:
		return "0b"
	case b%TiB == 0:
		return strconv.FormatInt(int64(b/TiB), 10) + "TiB"
	case b%GiB == 0:
		return strconv.FormatInt(int64(b/GiB), 10) + "GiB"
	case b%MiB == 0:
		return strconv.FormatInt(int64(b/MiB), 10) + "MiB"
	case b%KiB == 0:
		return strconv.FormatInt(int64(b/KiB), 10) + "KiB"
	}
	return strconv.FormatInt(int64(b), 10) + "b"
}
