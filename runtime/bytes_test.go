package runtime

import "testing"

func TestParseBytes(t *testing.T) {
	good := map[string]Bytes{
		"64m": 64 * MiB, "64MiB": 64 * MiB, "64MB": 64 * MiB, "1.5g": GiB + GiB/2, "512k": 512 * KiB, "10b": 10,
		"0": 0, "unlimited": Unlimited, "1073741824": GiB, "2t": 2 * TiB,
	}
	for text, want := range good {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "64", "-1", "1e9", "0x10m", "m", "64 parsecs", "nan", "inf", "+5m", "9999999t", "1_0m"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		}
	}
}

func TestBytesStringRoundTrip(t *testing.T) {
	for _, b := range []Bytes{0, 1, 1023, KiB, 1536, MiB, 64 * MiB, GiB, 3 * TiB, Unlimited} {
		got, err := ParseBytes(b.String())
		if err != nil || got != b {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", b.String(), got, err, int64(b))
		}
	}
}
