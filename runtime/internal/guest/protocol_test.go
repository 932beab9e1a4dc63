package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// TestLayout compares the Go structs with the C ones by asking the compiler for the latter.
func TestLayout(t *testing.T) {
	var r request
	var p reply
	var c config
	want := map[string]uintptr{
		"sizeof(struct request)":                unsafe.Sizeof(r),
		"offsetof(struct request, caps)":        unsafe.Offsetof(r.caps),
		"offsetof(struct request, groups)":      unsafe.Offsetof(r.groups),
		"offsetof(struct request, ntasks)":      unsafe.Offsetof(r.ntasks),
		"offsetof(struct request, cwd_off)":     unsafe.Offsetof(r.cwdOff),
		"offsetof(struct request, rlimit_mask)": unsafe.Offsetof(r.rlimitMask),
		"offsetof(struct request, rlimits)":     unsafe.Offsetof(r.rlimits),
		"offsetof(struct request, affinity)":    unsafe.Offsetof(r.affinity),
		"sizeof(struct reply)":                  unsafe.Sizeof(p),
		"offsetof(struct reply, index)":         unsafe.Offsetof(p.index),
		"offsetof(struct reply, full)":          unsafe.Offsetof(p.full),
		"offsetof(struct reply, wall_ns)":       unsafe.Offsetof(p.wallNS),
		"offsetof(struct reply, denied)":        unsafe.Offsetof(p.denied),
		"sizeof(struct config)":                 unsafe.Sizeof(c),
		"sizeof(struct mount)":                  unsafe.Sizeof(c.mounts[0]),
		"offsetof(struct config, masks)":        unsafe.Offsetof(c.masks),
		"PROTO_VERSION":                         Version,
		"F_TTY":                                 flagTTY,
		"F_INTO":                                flagInto,
		"F_OOMFD":                               flagOOM,
		"F_TRACE":                               flagTrace,
		"F_CPU_V1":                              flagCPUv1,
		"F_AFFINITY":                            flagAffinity,
		"K_STOP":                                kindStop,
		"K_ENDED":                               uintptr(KindEnded),
		"K_DONE":                                uintptr(KindDone),
		"S_MOUNT":                               uintptr(StepMount),
		"S_RLIMIT":                              uintptr(StepRlimit),
		"S_CHDIR":                               uintptr(StepChdir),
		"S_EXEC":                                uintptr(StepExec),
		"R_STOP":                                uintptr(ReasonStop),
		"M_PRESENT":                             Present,
		"C_OWNED":                               Owned,
	}
	var asserts strings.Builder
	for expr, value := range want {
		asserts.WriteString("_Static_assert(" + expr + " == " + itoa(value) + ", \"" + expr + "\");\n")
	}
	source := filepath.Join(t.TempDir(), "layout.c")
	text := "#define HOSTED\n#include \"sys.h\"\n#include \"proto.h\"\n" + asserts.String()
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("gcc", "-D_GNU_SOURCE", "-std=gnu11", "-fsyntax-only", "-Isrc", source).CombinedOutput()
	if err != nil {
		t.Fatalf("protocol.go and proto.h differ:\n%s", out)
	}
}

func itoa(n uintptr) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

// TestStepNames: every step of proto.h has a text.
func TestStepNames(t *testing.T) {
	for s := StepNone; s <= StepExec; s++ {
		if s.String() == "unknown step" || s.String() == "" {
			t.Errorf("step %d has no name", s)
		}
	}
	if got := Step(99).String(); got != "unknown step" {
		t.Errorf("step 99 is %q", got)
	}
}

// TestHostileReply: whatever numbers a guest sends, taking the message apart stays within bounds.
func TestHostileReply(t *testing.T) {
	var r reply
	for i := range r.bytes() {
		r.bytes()[i] = 0xff
	}
	m := r.message()
	if len(m.Denied) != maxDenied {
		t.Errorf("%d denials, want %d", len(m.Denied), maxDenied)
	}
}
