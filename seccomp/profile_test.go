package seccomp

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "rewrite testdata")

// describe writes an action for people.
func (a action) describe() string {
	if errno, ok := a.errno(); ok {
		if name := unix.ErrnoName(syscall.Errno(errno)); name != "" {
			return name
		}
		return fmt.Sprintf("errno %d", errno)
	}
	switch a {
	case allow:
		return "allow"
	case notify:
		return "notify"
	}
	return fmt.Sprintf("%#x", uint32(a))
}

func (d decision) describe() string {
	var out strings.Builder
	for _, r := range d.rules {
		var conds []string
		for _, c := range r.conds {
			conds = append(conds, c.String())
		}
		fmt.Fprintf(&out, "%s if %s; ", r.act.describe(), strings.Join(conds, " && "))
	}
	return out.String() + d.final.describe()
}

// TestSnapshots shows what a profile does with each call, so that a new release of moby's profile
// is a change that can be read. Refresh with -update.
func TestSnapshots(t *testing.T) {
	image := []string{
		"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID",
		"CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT",
	}
	for _, arch := range []string{"amd64", "arm64"} {
		snapshot(t, "default_"+arch, Default(), Options{Arch: arch})
		snapshot(t, "strict_"+arch, Strict(), Options{Arch: arch})
	}
	snapshot(t, "default_amd64_image_caps", Default(), Options{Arch: "amd64", Caps: image})
	snapshot(t, "default_amd64_sys_admin", Default(), Options{Arch: "amd64", Caps: []string{"CAP_SYS_ADMIN"}})
	snapshot(t, "unconfined_amd64_no_set_id", Unconfined(), Options{Arch: "amd64", NoSetID: true})
}

func snapshot(t *testing.T, name string, p Profile, o Options) {
	t.Helper()
	policy, table, err := p.policy(o)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for nr, d := range policy.calls {
		if table.names[nr] != "" {
			lines = append(lines, fmt.Sprintf("%-24s %s\n", table.names[nr], d.describe()))
		}
	}
	slices.Sort(lines)
	lines = append(lines, fmt.Sprintf("%-24s %s\n", "(numbers past the table)", policy.beyond.describe()))
	have := []byte(strings.Join(lines, ""))
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, have, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%s differs: look at it and run go test -update", file)
	}
}

func TestArchitectures(t *testing.T) {
	if _, err := Default().Compile(Options{Arch: "riscv64"}); !errors.Is(err, ErrArch) {
		t.Errorf("riscv64: %v", err)
	}
	if _, err := Default().Compile(Options{Caps: []string{"SYS_ADMIN"}}); err == nil || !strings.Contains(err.Error(), `"SYS_ADMIN"`) {
		t.Errorf("capability without prefix: %v", err)
	}
}

func TestSyscallName(t *testing.T) {
	cases := []struct {
		arch string
		nr   int
		want string
	}{
		{"amd64", 0, "read"}, {"amd64", 257, "openat"}, {"amd64", 435, "clone3"}, {"amd64", 467, "open_tree_attr"},
		{"amd64", 334, "rseq"}, {"amd64", 400, ""}, {"amd64", -1, ""}, {"amd64", 100000, ""},
		{"arm64", 0, "io_setup"}, {"arm64", 56, "openat"}, {"arm64", 220, "clone"}, {"arm64", 244, ""},
		{"mips", 1, ""}, {"", 0, ""},
	}
	for _, c := range cases {
		if got := SyscallName(c.arch, c.nr); got != c.want {
			t.Errorf("SyscallName(%q, %d) = %q, want %q", c.arch, c.nr, got, c.want)
		}
	}
}

func TestByName(t *testing.T) {
	for _, name := range []string{"default", "strict", "unconfined"} {
		if p, ok := ByName(name); !ok || p.Name() != name {
			t.Errorf("ByName(%q) = %v, %v", name, p, ok)
		}
	}
	if _, ok := ByName("custom"); ok {
		t.Error("ByName knows custom")
	}
	if (Profile{}) != Default() {
		t.Error("the zero value is not the default")
	}
}

func TestUnconfinedHasNoFilter(t *testing.T) {
	program, err := Unconfined().Compile(Options{Trace: true})
	if err != nil || len(program.Filter) != 0 {
		t.Errorf("filter of %d bytes, %v", len(program.Filter), err)
	}
}

// sys returns a number of amd64, on whatever machine the test runs.
func sys(name string) uint32 {
	t, err := tableFor("amd64")
	nr, ok := t.number(name)
	if err != nil || !ok {
		panic("no system call " + name)
	}
	return uint32(nr)
}

// TestDefaultCalls goes through the promises of the profile, on amd64.
func TestDefaultCalls(t *testing.T) {
	checkCalls(t, "calls_default.txt", interpreterFor(t, "default", Options{Arch: "amd64"}))
}

func TestNoSetID(t *testing.T) {
	for _, profile := range []string{"default", "unconfined", `{"defaultAction":"SCMP_ACT_ALLOW"}`} {
		checkCalls(t, "calls_no_set_id.txt", interpreterFor(t, profile, Options{Arch: "amd64", NoSetID: true}))
	}
}

// checkCalls reads lines of a wanted action, the call's name or number and its arguments.
func checkCalls(t *testing.T, file string, vm interpreter) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		spec, _, _ := strings.Cut(line, "#")
		fields := strings.Fields(spec)
		if len(fields) == 0 {
			continue
		}
		in := call{audit: unix.AUDIT_ARCH_X86_64}
		if nr, err := strconv.ParseUint(fields[1], 0, 32); err == nil {
			in.nr = uint32(nr)
		} else {
			in.nr = sys(fields[1])
		}
		for i, field := range fields[2:] {
			if in.args[i], err = strconv.ParseUint(field, 0, 64); err != nil {
				t.Fatal(err)
			}
		}
		if got := vm.run(t, in); got.describe() != fields[0] {
			t.Errorf("%s: %s", strings.TrimSpace(line), got.describe())
		}
		in.audit = unix.AUDIT_ARCH_I386
		if got := vm.run(t, in); got != nosys {
			t.Errorf("%s by i386: %s", strings.TrimSpace(line), got.describe())
		}
	}
}

func TestTrace(t *testing.T) {
	program, err := Default().Compile(Options{Arch: "amd64", Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(program.Errnos) < minErrnos {
		t.Fatalf("%d errnos", len(program.Errnos))
	}
	vm := newInterpreter(t, program.Filter)
	cases := []struct {
		nr    uint32
		arg   uint64
		want  action
		errno syscall.Errno
	}{
		{sys("read"), 0, allow, unix.ENOSYS},
		{sys("bpf"), 0, notify, unix.EPERM},
		{sys("clone3"), 0, notify, unix.ENOSYS},
		{sys("socket"), 38, notify, unix.EAFNOSUPPORT},
		{sys("socket"), 1, allow, unix.EAFNOSUPPORT},
		{sys("clone"), unix.CLONE_NEWNS, notify, unix.EPERM},
		{400, 0, notify, unix.ENOSYS},
		{500, 0, notify, unix.ENOSYS},
	}
	for _, c := range cases {
		got := vm.run(t, call{unix.AUDIT_ARCH_X86_64, c.nr, [6]uint64{c.arg}})
		if got != c.want || syscall.Errno(program.Errnos[c.nr]) != c.errno {
			t.Errorf("%d: %s and %v, want %s and %v", c.nr, got.describe(), program.Errnos[c.nr], c.want.describe(), c.errno)
		}
	}
	if got := vm.run(t, call{unix.AUDIT_ARCH_X86_64, 5000, [6]uint64{}}); got != notify {
		t.Errorf("5000: %s", got.describe())
	}
	if got := vm.run(t, call{unix.AUDIT_ARCH_I386, 5, [6]uint64{}}); got != nosys {
		t.Errorf("i386: %s", got.describe())
	}
}

// TestTraceKeepsErrnos: a call with two errnos asks only for the one in the table.
func TestTraceKeepsErrnos(t *testing.T) {
	p, err := Parse([]byte(`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
		{"name":"getppid","action":"SCMP_ACT_ERRNO","errnoRet":22,"args":[{"index":0,"value":1,"op":"SCMP_CMP_EQ"}]},
		{"name":"getppid","action":"SCMP_ACT_ERRNO","errnoRet":5,"args":[{"index":0,"value":2,"op":"SCMP_CMP_EQ"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	program, err := p.Compile(Options{Arch: "amd64", Trace: true})
	if err != nil {
		t.Fatal(err)
	}
	vm := newInterpreter(t, program.Filter)
	for arg, want := range map[uint64]action{0: allow, 1: notify, 2: refuse(5)} {
		if got := vm.run(t, call{unix.AUDIT_ARCH_X86_64, sys("getppid"), [6]uint64{arg}}); got != want {
			t.Errorf("%d: %s, want %s", arg, got.describe(), want.describe())
		}
	}
	if program.Errnos[sys("getppid")] != 22 {
		t.Errorf("errno %d", program.Errnos[sys("getppid")])
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, p := range []Profile{Default(), Strict()} {
		b.Run(p.Name()+"/first", func(b *testing.B) {
			for b.Loop() {
				if _, err := p.compile(Options{Arch: "amd64", NoSetID: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(p.Name()+"/cached", func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Compile(Options{Caps: []string{"CAP_CHOWN", "CAP_KILL"}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
