package seccomp

import "testing"

// TestFilterSizes keeps the built-in filters short: the kernel walks them once for every number.
func TestFilterSizes(t *testing.T) {
	for _, p := range []Profile{Default(), Strict()} {
		for _, arch := range []string{"amd64", "arm64"} {
			for _, o := range []Options{{Arch: arch}, {Arch: arch, NoSetID: true}, {Arch: arch, Trace: true}} {
				program, err := p.Compile(o)
				if err != nil {
					t.Fatal(err)
				}
				n := len(program.Filter) / 8
				t.Logf("%s %+v: %d instructions", p.Name(), o, n)
				if n > 400 {
					t.Errorf("%s %+v: %d instructions", p.Name(), o, n)
				}
			}
		}
	}
}
