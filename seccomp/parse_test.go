package seccomp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	moby "github.com/moby/profiles/seccomp"
	"golang.org/x/sys/unix"
)

// ruleText wraps one rule in a profile.
func ruleText(rule string) string {
	return `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"},` + rule + `]}`
}

func TestParseErrors(t *testing.T) {
	arg := func(arg string) string {
		return ruleText(`{"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[` + arg + `]}`)
	}
	cases := []struct{ name, text, want string }{
		{"empty", ``, "EOF"},
		{"no JSON", `hello`, "invalid character"},
		{"trailing text", `{"defaultAction":"SCMP_ACT_ALLOW"} x`, "text after the end"},
		{"array", `[]`, "cannot unmarshal array"},
		{"no action", `{}`, "defaultAction: action is missing"},
		{"unknown field", `{"defaultAction":"SCMP_ACT_ALLOW","syscall":[]}`, `unknown field "syscall"`},
		{"unknown default", `{"defaultAction":"ALLOW"}`, `defaultAction: action "ALLOW" does not exist`},
		{"errno for allow", `{"defaultAction":"SCMP_ACT_ALLOW","defaultErrnoRet":1}`, "defaultAction: errno is given"},
		{"big errno", `{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":4096}`, "errnoRet 4096 is more than 4095"},
		{"negative errno", `{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":-1}`, "defaultErrnoRet"},
		{"errno name", `{"defaultAction":"SCMP_ACT_ERRNO","defaultErrno":"EFOO"}`, `errno "EFOO" does not exist`},
		{"errno conflict", `{"defaultAction":"SCMP_ACT_ERRNO","defaultErrno":"EPERM","defaultErrnoRet":2}`, `errnoRet 2 is not errno "EPERM"`},
		{"architecture", `{"defaultAction":"SCMP_ACT_ALLOW","architectures":["X86"]}`, `architecture "X86" does not exist`},
		{"two lists", `{"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_X86"],"archMap":[{"architecture":"SCMP_ARCH_X86"}]}`, "both architectures and archMap"},
		{"sub-architecture", `{"defaultAction":"SCMP_ACT_ALLOW","archMap":[{"architecture":"SCMP_ARCH_X86","subArchitectures":["x"]}]}`, `architecture "x" does not exist`},
		{"flag", `{"defaultAction":"SCMP_ACT_ALLOW","flags":["SECCOMP_FILTER_FLAG_FOO"]}`, `flag "SECCOMP_FILTER_FLAG_FOO"`},
		{"listener", `{"defaultAction":"SCMP_ACT_ALLOW","listenerPath":"/x"}`, "listenerPath: notification is not supported"},
		{"notify", ruleText(`{"names":["bpf"],"action":"SCMP_ACT_NOTIFY"}`), `rule 1 (bpf): action "SCMP_ACT_NOTIFY" is not supported`},
		{"trace", ruleText(`{"names":["bpf"],"action":"SCMP_ACT_TRACE"}`), `rule 1 (bpf): action "SCMP_ACT_TRACE" is not supported`},
		{"action", ruleText(`{"names":["bpf"],"action":"SCMP_ACT_DENY"}`), `rule 1 (bpf): action "SCMP_ACT_DENY" does not exist`},
		{"no names", ruleText(`{"names":[],"action":"SCMP_ACT_ALLOW"}`), "rule 1: names is missing"},
		{"name and names", ruleText(`{"name":"bpf","names":["read"],"action":"SCMP_ACT_ALLOW"}`), "rule 1 (bpf): both name and names"},
		{"typing error", ruleText(`{"names":["read","opennat"],"action":"SCMP_ACT_ALLOW"}`), `rule 1 (read): system call "opennat" does not exist`},
		{"unknown field of a rule", ruleText(`{"names":["read"],"action":"SCMP_ACT_ALLOW","arg":[]}`), `rule 1: json: unknown field "arg"`},
		{"wrong type", ruleText(`{"names":"read","action":"SCMP_ACT_ALLOW"}`), `rule 1: json: cannot unmarshal string`},
		{"index", arg(`{"index":6,"value":1,"op":"SCMP_CMP_EQ"}`), "rule 1 (socket): args 0: index 6 is more than 5"},
		{"op", arg(`{"index":0,"value":1,"op":"SCMP_CMP_IN"}`), `rule 1 (socket): args 0: op "SCMP_CMP_IN" does not exist`},
		{"no op", arg(`{"index":0,"value":1}`), `rule 1 (socket): args 0: op "" does not exist`},
		{"large value", arg(`{"index":0,"value":18446744073709551616,"op":"SCMP_CMP_EQ"}`), "rule 1: json: cannot unmarshal number"},
		{"twice", arg(`{"index":0,"value":1,"op":"SCMP_CMP_GE"},{"index":0,"value":9,"op":"SCMP_CMP_LE"}`), "rule 1 (socket): args 1: argument 0 is compared twice"},
		{"mask", arg(`{"index":0,"value":1,"valueTwo":2,"op":"SCMP_CMP_MASKED_EQ"}`), "rule 1 (socket): args 0: valueTwo 0x2 has bits outside"},
		{"capability", ruleText(`{"names":["bpf"],"action":"SCMP_ACT_ALLOW","includes":{"caps":["CAP_BFP"]}}`), `rule 1 (bpf): includes: capability "CAP_BFP"`},
		{"arch", ruleText(`{"names":["bpf"],"action":"SCMP_ACT_ALLOW","excludes":{"arches":["x86_64"]}}`), `rule 1 (bpf): excludes: architecture "x86_64"`},
		{"kernel", ruleText(`{"names":["bpf"],"action":"SCMP_ACT_ALLOW","includes":{"minKernel":"5"}}`), `rule 1 (bpf): includes: kernel version "5"`},
		{"two at once", ruleText(`{"names":["bpff"],"action":"SCMP_ACT_ALOW"}`), "rule 1 (bpff): system call \"bpff\" does not exist on any architecture\naction"},
		{"size", `{"defaultAction":"` + strings.Repeat("x", MaxFile) + `"}`, "bytes are more than 1048576"},
	}
	for _, c := range cases {
		_, err := Parse([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestParseBoundsItsErrors(t *testing.T) {
	rules := strings.Repeat(`,{"names":["nothing"],"action":"SCMP_ACT_ALLOW"}`, 1000)
	_, err := Parse([]byte(`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[` + rules[1:] + `]}`))
	if err == nil || !strings.Contains(err.Error(), "and 980 more") || len(err.Error()) > 4096 {
		t.Errorf("%v", err)
	}
}

// TestParsedRules compiles small profiles and asks the interpreter, on amd64.
func TestParsedRules(t *testing.T) {
	getppid := func(act, rest string) string {
		return fmt.Sprintf(`{"names":["getppid"],"action":%q%s}`, act, rest)
	}
	arg := func(n int) string { return fmt.Sprintf(`,"args":[{"index":0,"value":%d,"op":"SCMP_CMP_EQ"}]`, n) }
	errno := func(n int) string { return fmt.Sprintf(`,"errnoRet":%d`, n) }
	cases := []struct {
		name     string
		fallback string
		rules    []string
		caps     []string
		arg      uint64
		want     action
	}{
		{"fallback errno", "ERRNO", nil, nil, 0, eperm},
		{"kill", "ALLOW", []string{getppid("SCMP_ACT_KILL", "")}, nil, 0, killThread},
		{"kill thread", "ALLOW", []string{getppid("SCMP_ACT_KILL_THREAD", "")}, nil, 0, killThread},
		{"kill process", "ALLOW", []string{getppid("SCMP_ACT_KILL_PROCESS", "")}, nil, 0, killProcess},
		{"trap", "ALLOW", []string{getppid("SCMP_ACT_TRAP", "")}, nil, 0, trap},
		{"log", "ERRNO", []string{getppid("SCMP_ACT_LOG", "")}, nil, 0, logged},
		{"errno 0", "ALLOW", []string{getppid("SCMP_ACT_ERRNO", errno(0))}, nil, 0, refuse(0)},
		{"errno by name", "ALLOW", []string{getppid("SCMP_ACT_ERRNO", `,"errno":"ENOMEM"`)}, nil, 0, refuse(12)},
		{"refusal by argument beats permission", "ERRNO",
			[]string{getppid("SCMP_ACT_ALLOW", ""), getppid("SCMP_ACT_ERRNO", errno(5)+arg(7))}, nil, 7, refuse(5)},
		{"and leaves the rest", "ERRNO",
			[]string{getppid("SCMP_ACT_ALLOW", ""), getppid("SCMP_ACT_ERRNO", errno(5)+arg(7))}, nil, 8, allow},
		{"refusal beats permission by argument", "ERRNO",
			[]string{getppid("SCMP_ACT_ALLOW", arg(7)), getppid("SCMP_ACT_ERRNO", errno(5))}, nil, 7, refuse(5)},
		{"the strictest wins", "ALLOW",
			[]string{getppid("SCMP_ACT_ERRNO", arg(7)), getppid("SCMP_ACT_KILL_PROCESS", arg(7)), getppid("SCMP_ACT_LOG", "")}, nil, 7, killProcess},
		{"the first errno wins", "ALLOW",
			[]string{getppid("SCMP_ACT_ERRNO", errno(5)), getppid("SCMP_ACT_ERRNO", errno(6))}, nil, 0, refuse(5)},
		{"permission beats a fallback that kills", "KILL_PROCESS", []string{getppid("SCMP_ACT_ALLOW", arg(7))}, nil, 7, allow},
		{"included without the capability", "ERRNO",
			[]string{getppid("SCMP_ACT_ALLOW", `,"includes":{"caps":["CAP_KILL","CAP_CHOWN"]}`)}, []string{"CAP_KILL"}, 0, eperm},
		{"included with the capabilities", "ERRNO",
			[]string{getppid("SCMP_ACT_ALLOW", `,"includes":{"caps":["CAP_KILL","CAP_CHOWN"]}`)}, []string{"CAP_CHOWN", "CAP_KILL"}, 0, allow},
		{"excluded by a capability", "ERRNO",
			[]string{getppid("SCMP_ACT_ALLOW", `,"excludes":{"caps":["CAP_KILL","CAP_CHOWN"]}`)}, []string{"CAP_KILL"}, 0, eperm},
		{"included for another architecture", "ERRNO", []string{getppid("SCMP_ACT_ALLOW", `,"includes":{"arches":["arm64","s390"]}`)}, nil, 0, eperm},
		{"included for this architecture", "ERRNO", []string{getppid("SCMP_ACT_ALLOW", `,"includes":{"arches":["arm64","amd64"]}`)}, nil, 0, allow},
		{"excluded by architecture", "ERRNO", []string{getppid("SCMP_ACT_ALLOW", `,"excludes":{"arches":["amd64"]}`)}, nil, 0, eperm},
		{"included for an old kernel", "ERRNO", []string{getppid("SCMP_ACT_ALLOW", `,"includes":{"minKernel":"4.8"}`)}, nil, 0, allow},
		{"included for a kernel to come", "ERRNO", []string{getppid("SCMP_ACT_ALLOW", `,"includes":{"minKernel":"99.0"}`)}, nil, 0, eperm},
		{"excluded by the kernel", "ERRNO", []string{getppid("SCMP_ACT_ALLOW", `,"excludes":{"minKernel":"4.8"}`)}, nil, 0, eperm},
		{"not excluded by the kernel", "ERRNO", []string{getppid("SCMP_ACT_ALLOW", `,"excludes":{"minKernel":"99.0"}`)}, nil, 0, allow},
	}
	for _, c := range cases {
		// The last rule names a new call, so that getppid is not newer than the profile.
		rules := append(c.rules, `{"name":"mseal","action":"SCMP_ACT_ALLOW"}`)
		text := fmt.Sprintf(`{"defaultAction":"SCMP_ACT_%s","syscalls":[%s]}`, c.fallback, strings.Join(rules, ","))
		vm := interpreterFor(t, text, Options{Arch: "amd64", Caps: c.caps})
		got := vm.run(t, call{unix.AUDIT_ARCH_X86_64, sys("getppid"), [6]uint64{c.arg}})
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.describe(), c.want.describe())
		}
	}
}

func TestUnknownNumbers(t *testing.T) {
	named := `,"syscalls":[{"name":"mseal","action":"SCMP_ACT_LOG"},{"name":"waitpid","action":"SCMP_ACT_LOG"}]`
	cases := []struct {
		text string
		nr   uint32
		want action
	}{
		{`{"defaultAction":"SCMP_ACT_ERRNO"` + named + `}`, sys("bpf"), eperm},
		{`{"defaultAction":"SCMP_ACT_ERRNO"` + named + `}`, sys("file_getattr"), nosys},
		{`{"defaultAction":"SCMP_ACT_ERRNO"` + named + `}`, 400, nosys},
		{`{"defaultAction":"SCMP_ACT_KILL_PROCESS"` + named + `}`, 5000, nosys},
		{`{"defaultAction":"SCMP_ACT_KILL_PROCESS"` + named + `}`, firstX32 + 1, nosys},
		{`{"defaultAction":"SCMP_ACT_KILL_PROCESS"` + named + `}`, sys("bpf"), killProcess},
		{`{"defaultAction":"SCMP_ACT_ALLOW"` + named + `}`, 5000, allow},
		{`{"defaultAction":"SCMP_ACT_ALLOW"` + named + `}`, firstX32 + 1, nosys},
		{`{"defaultAction":"SCMP_ACT_ERRNO"}`, sys("file_getattr"), eperm},
	}
	for _, c := range cases {
		vm := interpreterFor(t, c.text, Options{Arch: "amd64"})
		if got := vm.run(t, call{unix.AUDIT_ARCH_X86_64, c.nr, [6]uint64{}}); got != c.want {
			t.Errorf("%s: %d: %s, want %s", c.text, c.nr, got.describe(), c.want.describe())
		}
	}
}

// TestDockerFile reads moby's profile in the form that docker's users start from: it must mean what
// moby's data means.
func TestDockerFile(t *testing.T) {
	text, err := json.Marshal(moby.DefaultProfile())
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	want, err := mobyDocument()
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		for _, caps := range [][]string{nil, {"CAP_SYS_ADMIN"}, {"CAP_SYS_CHROOT", "CAP_BPF", "CAP_SYSLOG"}} {
			table, err := tableFor(arch)
			if err != nil {
				t.Fatal(err)
			}
			m := machine{table, caps, kernelVersion{6, 1}}
			if !slices.EqualFunc(p.custom.doc.resolve(m).calls, want.resolve(m).calls, decision.same) {
				t.Errorf("%s %v: differs", arch, caps)
			}
		}
	}
}

// TestOldDockerFile: one rule for each call, and null where nothing is.
func TestOldDockerFile(t *testing.T) {
	vm := interpreterFor(t, `{"defaultAction":"SCMP_ACT_ERRNO","architectures":["SCMP_ARCH_X86_64","SCMP_ARCH_X86"],"syscalls":[
		{"name":"read","action":"SCMP_ACT_ALLOW","args":[]},
		{"name":"mseal","action":"SCMP_ACT_ALLOW","args":null,"comment":"","includes":{},"excludes":null},
		{"name":"clone","action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":2114060288,"valueTwo":0,"op":"SCMP_CMP_MASKED_EQ"}]}]}`,
		Options{Arch: "amd64"})
	for nr, want := range map[uint32]action{sys("read"): allow, sys("write"): eperm, sys("clone"): allow, sys("mseal"): allow} {
		if got := vm.run(t, call{unix.AUDIT_ARCH_X86_64, nr, [6]uint64{17}}); got != want {
			t.Errorf("%d: %s, want %s", nr, got.describe(), want.describe())
		}
	}
}

func TestTooLong(t *testing.T) {
	var rules strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&rules, `,{"name":"ioctl","action":"SCMP_ACT_ALLOW","args":[{"index":1,"value":%d,"op":"SCMP_CMP_EQ"}]}`, i)
	}
	p, err := Parse([]byte(`{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[` + rules.String()[1:] + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Compile(Options{})
	if err == nil || !strings.Contains(err.Error(), "the kernel takes 4096") {
		t.Errorf("%v", err)
	}
}

func TestCache(t *testing.T) {
	text := []byte(`{"defaultAction":"SCMP_ACT_ALLOW"}`)
	compile := func(o Options) *Program {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		program, err := p.Compile(o)
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	first := compile(Options{Caps: []string{"CAP_KILL", "CAP_CHOWN"}})
	if compile(Options{Caps: []string{"CAP_CHOWN", "CAP_KILL"}}) != first {
		t.Error("compiled twice")
	}
	for _, o := range []Options{{}, {NoSetID: true}, {Trace: true}, {Arch: "arm64"}} {
		if compile(o) == first {
			t.Errorf("%+v: program of other options", o)
		}
	}
	for i := range 3 * maxCached {
		text = fmt.Appendf(nil, `{"defaultAction":"SCMP_ACT_ALLOW","defaultErrno":""%s}`, strings.Repeat(" ", i))
		compile(Options{})
	}
	if n := len(programs.programs); n > maxCached {
		t.Errorf("%d programs cached", n)
	}
}
