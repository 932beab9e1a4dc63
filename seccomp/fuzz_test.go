package seccomp

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func seeds(f *testing.F) {
	for _, text := range []string{
		`{"defaultAction":"SCMP_ACT_ALLOW"}`,
		`{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":38,"architectures":["SCMP_ARCH_X86_64"],"flags":["SECCOMP_FILTER_FLAG_LOG"]}`,
		`{"defaultAction":"SCMP_ACT_KILL_PROCESS","archMap":[{"architecture":"SCMP_ARCH_X86_64","subArchitectures":["SCMP_ARCH_X32"]}],
			"syscalls":[{"names":["read","write","mseal","waitpid"],"action":"SCMP_ACT_ALLOW"},
			{"name":"ioctl","action":"SCMP_ACT_TRAP","args":[{"index":1,"value":21522,"op":"SCMP_CMP_EQ"},{"index":2,"value":4294967296,"op":"SCMP_CMP_GT"}]},
			{"names":["clone"],"action":"SCMP_ACT_ERRNO","errnoRet":1,"errno":"EPERM","args":[{"index":0,"value":2114060288,"valueTwo":0,"op":"SCMP_CMP_MASKED_EQ"}],
			"includes":{"caps":["CAP_KILL"],"arches":["amd64"],"minKernel":"4.8"},"excludes":{"arches":["arm64"]}}]}`,
		`{"defaultAction":"SCMP_ACT_LOG","syscalls":[{"names":["socket"],"action":"SCMP_ACT_KILL","args":[{"index":5,"value":18446744073709551615,"op":"SCMP_CMP_LE"},
			{"index":4,"value":1,"op":"SCMP_CMP_NE"},{"index":3,"value":0,"op":"SCMP_CMP_LT"},{"index":2,"value":1,"op":"SCMP_CMP_GE"}]}]}`,
		`{"defaultAction":"SCMP_ACT_NOTIFY"}`, `{}`, `[]`, `{"syscalls":[null]}`, `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":[""]}]}`,
	} {
		f.Add([]byte(text))
	}
}

// FuzzParse: an error is one of ours, and never long.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err == nil {
			if p.Name() != "custom" {
				t.Error(p.Name())
			}
			return
		}
		if !strings.HasPrefix(err.Error(), "parse seccomp profile: ") || p != (Profile{}) {
			t.Errorf("%v %v", p, err)
		}
	})
}

// FuzzCompile runs what parses against the plain meaning of the policy.
func FuzzCompile(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		for _, o := range []Options{{Arch: "amd64", Caps: []string{"CAP_KILL"}}, {Arch: "arm64", NoSetID: true}} {
			program, err := p.Compile(o)
			if err != nil {
				if !strings.Contains(err.Error(), "the kernel takes") {
					t.Error(err)
				}
				continue
			}
			policy, table, err := p.policy(o)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, program.Filter, policy, table.audit)
		}
	})
}

// compare tries every number with arguments that the conditions are about.
func compare(t *testing.T, filter []byte, p policy, audit uint32) {
	t.Helper()
	vm := newInterpreter(t, filter)
	for nr := range uint32(len(p.calls) + 1) {
		values := []uint64{0, full}
		if nr < uint32(len(p.calls)) {
			for _, r := range p.calls[nr].rules {
				for _, c := range r.conds {
					values = append(values, c.value, c.value-1, c.value+1, c.value^1<<32)
				}
			}
		}
		for _, v := range values[:min(len(values), 40)] {
			args := [6]uint64(slices.Repeat([]uint64{v}, 6))
			if got, want := vm.run(t, call{audit, nr, args}), p.answer(nr, args); got != want {
				t.Fatalf("call %d %#x: %s, want %s", nr, v, got.describe(), want.describe())
			}
		}
	}
	if got := vm.run(t, call{unix.AUDIT_ARCH_I386, 1, [6]uint64{}}); got != nosys {
		t.Fatalf("i386: %s", got.describe())
	}
}
