package seccomp

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	noFamily := noFamily()
	cases := []struct {
		name string
		nr   uint32
		args []uint64
		want action
	}{
		{"AF_UNIX", sys("socket"), []uint64{1, 1}, allow},
		{"AF_INET", sys("socket"), []uint64{2, 1}, allow},
		{"AF_INET6", sys("socket"), []uint64{10, 1}, allow},
		{"NETLINK_ROUTE", sys("socket"), []uint64{16, 3, 0}, allow},
		{"NETLINK_KOBJECT_UEVENT", sys("socket"), []uint64{16, 3, 15}, allow},
		{"NETLINK_XFRM", sys("socket"), []uint64{16, 3, 6}, noFamily},
		{"NETLINK_NETFILTER", sys("socket"), []uint64{16, 3, 12}, noFamily},
		{"NETLINK_NETFILTER with high bits", sys("socket"), []uint64{16, 3, 0x10000000c}, noFamily},
		{"AF_PACKET", sys("socket"), []uint64{17, 3}, noFamily},
		{"AF_RXRPC", sys("socket"), []uint64{33, 2}, noFamily},
		{"AF_ALG", sys("socket"), []uint64{38, 5}, noFamily},
		{"AF_ALG with high bits", sys("socket"), []uint64{0x100000026, 5}, noFamily},
		{"AF_VSOCK", sys("socket"), []uint64{40, 1}, noFamily},
		{"pair of AF_UNIX", sys("socketpair"), []uint64{1, 1}, allow},
		{"pair of AF_TIPC", sys("socketpair"), []uint64{30, 1}, noFamily},
		{"UDP_ENCAP", sys("setsockopt"), []uint64{3, 17, 100}, noOption()},
		{"UDP_ENCAP of udplite", sys("setsockopt"), []uint64{3, 136, 100}, noOption()},
		{"TCP_ULP with high bits", sys("setsockopt"), []uint64{3, 6, 0xff0000001f}, noOption()},
		{"SO_REUSEADDR", sys("setsockopt"), []uint64{3, 1, 2}, allow},
		{"clone of a thread", sys("clone"), []uint64{0x3d0f00}, allow},
		{"clone NEWUSER", sys("clone"), []uint64{unix.CLONE_NEWUSER | 17}, eperm},
		{"clone NEWNET", sys("clone"), []uint64{unix.CLONE_NEWNET}, eperm},
		{"clone NEWCGROUP", sys("clone"), []uint64{unix.CLONE_NEWCGROUP}, eperm},
		{"clone3", sys("clone3"), nil, nosys},
		{"unshare NEWUSER", sys("unshare"), []uint64{unix.CLONE_NEWUSER}, eperm},
		{"setns", sys("setns"), nil, eperm},
		{"io_uring_setup", sys("io_uring_setup"), nil, eperm},
		{"io_uring_enter", sys("io_uring_enter"), nil, eperm},
		{"io_uring_register", sys("io_uring_register"), nil, eperm},
		{"keyctl", sys("keyctl"), nil, eperm},
		{"add_key", sys("add_key"), nil, eperm},
		{"request_key", sys("request_key"), nil, eperm},
		{"userfaultfd", sys("userfaultfd"), nil, eperm},
		{"bpf", sys("bpf"), nil, eperm},
		{"perf_event_open", sys("perf_event_open"), nil, eperm},
		{"mount", sys("mount"), nil, eperm},
		{"umount2", sys("umount2"), nil, eperm},
		{"fsopen", sys("fsopen"), nil, eperm},
		{"fsconfig", sys("fsconfig"), nil, eperm},
		{"fsmount", sys("fsmount"), nil, eperm},
		{"fspick", sys("fspick"), nil, eperm},
		{"open_tree", sys("open_tree"), nil, eperm},
		{"move_mount", sys("move_mount"), nil, eperm},
		{"mount_setattr", sys("mount_setattr"), nil, eperm},
		{"pivot_root", sys("pivot_root"), nil, eperm},
		{"open_tree_attr", sys("open_tree_attr"), nil, nosys},
		{"listmount", sys("listmount"), nil, nosys},
		{"statmount", sys("statmount"), nil, nosys},
		{"kexec_load", sys("kexec_load"), nil, eperm},
		{"init_module", sys("init_module"), nil, eperm},
		{"finit_module", sys("finit_module"), nil, eperm},
		{"reboot", sys("reboot"), nil, eperm},
		{"swapon", sys("swapon"), nil, eperm},
		{"clock_settime", sys("clock_settime"), nil, eperm},
		{"settimeofday", sys("settimeofday"), nil, eperm},
		{"name_to_handle_at", sys("name_to_handle_at"), nil, eperm},
		{"open_by_handle_at", sys("open_by_handle_at"), nil, eperm},
		{"quotactl", sys("quotactl"), nil, eperm},
		{"nfsservctl", sys("nfsservctl"), nil, eperm},
		{"lookup_dcookie", sys("lookup_dcookie"), nil, eperm},
		{"ptrace", sys("ptrace"), nil, allow},
		{"TIOCSTI", sys("ioctl"), []uint64{0, 0x5412}, eperm},
		{"TIOCSTI with high bits", sys("ioctl"), []uint64{0, 0xdead00005412}, eperm},
		{"TIOCLINUX with high bits", sys("ioctl"), []uint64{0, 0x10000541c}, eperm},
		{"TCGETS", sys("ioctl"), []uint64{0, 0x5401}, allow},
		{"hole in the table", 400, nil, nosys},
		{"file_getattr, newer than the profile", sys("file_getattr"), nil, nosys},
		{"1000", 1000, nil, nosys},
		{"x32 read", 0x40000000, nil, nosys},
		{"x32 with its own number", 0x40000000 + 512, nil, nosys},
		{"read", sys("read"), nil, allow},
		{"execve", sys("execve"), nil, allow},
		{"openat2", sys("openat2"), nil, allow},
	}
	vm := interpreterFor(t, "default", Options{Arch: "amd64"})
	for _, c := range cases {
		in := call{audit: unix.AUDIT_ARCH_X86_64, nr: c.nr}
		copy(in.args[:], c.args)
		if got := vm.run(t, in); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.describe(), c.want.describe())
		}
		in.audit = unix.AUDIT_ARCH_I386
		if got := vm.run(t, in); got != nosys {
			t.Errorf("%s by i386: %s", c.name, got.describe())
		}
	}
}

func TestNoSetID(t *testing.T) {
	custom := `{"defaultAction":"SCMP_ACT_ALLOW"}`
	cases := []struct {
		name string
		nr   uint32
		args []uint64
		want action
	}{
		{"chmod 4755", sys("chmod"), []uint64{0, 0o4755}, eperm},
		{"chmod 2755", sys("chmod"), []uint64{0, 0o2755}, eperm},
		{"chmod 6755 with high bits", sys("chmod"), []uint64{0, 0xf00006755}, eperm},
		{"chmod 1777", sys("chmod"), []uint64{0, 0o1777}, allow},
		{"fchmod 4755", sys("fchmod"), []uint64{0, 0o4755}, eperm},
		{"fchmodat 4755", sys("fchmodat"), []uint64{0, 0, 0o4755}, eperm},
		{"fchmodat 755", sys("fchmodat"), []uint64{0, 0, 0o755, 0o4000}, allow},
		{"fchmodat2 2755", sys("fchmodat2"), []uint64{0, 0, 0o2755}, eperm},
		{"mknod 4755", sys("mknod"), []uint64{0, 0o104755}, eperm},
		{"mknodat 4755", sys("mknodat"), []uint64{0, 0, 0o104755}, eperm},
		{"creat 4755", sys("creat"), []uint64{0, 0o4755}, eperm},
		{"open, no creation, garbage", sys("open"), []uint64{0, 0, 0o7777}, allow},
		{"open O_CREAT 4755", sys("open"), []uint64{0, 0o101, 0o4755}, eperm},
		{"open O_CREAT 755", sys("open"), []uint64{0, 0o101, 0o755}, allow},
		{"openat O_CREAT 4755", sys("openat"), []uint64{0, 0, 0o101, 0o4755}, eperm},
		{"openat O_TMPFILE 4755", sys("openat"), []uint64{0, 0, 0o20200001, 0o4755}, eperm},
		{"openat O_DIRECTORY, garbage", sys("openat"), []uint64{0, 0, 0o200000, 0o4755}, allow},
		{"openat2", sys("openat2"), nil, nosys},
		{"io_uring_setup", sys("io_uring_setup"), nil, eperm},
		{"mkdir 2755", sys("mkdir"), []uint64{0, 0o2755}, allow},
		{"past the table", 1000, nil, nosys},
	}
	for _, profile := range []string{"default", "unconfined", custom} {
		vm := interpreterFor(t, profile, Options{Arch: "amd64", NoSetID: true})
		for _, c := range cases {
			in := call{audit: unix.AUDIT_ARCH_X86_64, nr: c.nr}
			copy(in.args[:], c.args)
			if got := vm.run(t, in); got != c.want {
				t.Errorf("%s: %s: %s, want %s", profile, c.name, got.describe(), c.want.describe())
			}
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
