package seccomp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// gate is a set of conditions on the machine. An empty part says nothing.
type gate struct {
	caps   []string
	arches []string // docker's names
	kernel kernelVersion
}

// kernelVersion is major.minor; zero means none.
type kernelVersion struct{ major, minor uint64 }

func (v kernelVersion) atLeast(min kernelVersion) bool {
	return v.major > min.major || v.major == min.major && v.minor >= min.minor
}

// appliesTo tells whether the rule counts on the machine, by docker's rules: includes want all
// capabilities and one of the architectures, excludes are hit by any one.
func (r docRule) appliesTo(m machine) bool {
	holds := func(c string) bool { return slices.Contains(m.caps, c) }
	ex, in := r.excludes, r.includes
	switch {
	case slices.Contains(ex.arches, m.docker), slices.ContainsFunc(ex.caps, holds),
		ex.kernel != kernelVersion{} && m.kernel.atLeast(ex.kernel):
		return false
	case len(in.arches) > 0 && !slices.Contains(in.arches, m.docker), !m.kernel.atLeast(in.kernel):
		return false
	}
	for _, c := range in.caps {
		if !holds(c) {
			return false
		}
	}
	return true
}

// parseKernel reads "4.8".
func parseKernel(text string) (kernelVersion, error) {
	major, minor, ok := strings.Cut(text, ".")
	a, errA := strconv.ParseUint(major, 10, 8)
	b, errB := strconv.ParseUint(minor, 10, 8)
	if !ok || errA != nil || errB != nil || a+b == 0 {
		return kernelVersion{}, fmt.Errorf("kernel version %q is not of the form 4.8", text)
	}
	return kernelVersion{a, b}, nil
}

// runningKernel asks the kernel for its version.
func runningKernel() (kernelVersion, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return kernelVersion{}, fmt.Errorf("read kernel version: %w", err)
	}
	release := unix.ByteSliceToString(name.Release[:])
	fields := strings.FieldsFunc(release, func(r rune) bool { return r < '0' || r > '9' })
	if len(fields) < 2 {
		return kernelVersion{}, fmt.Errorf("read kernel version %q: no number", release)
	}
	return parseKernel(fields[0] + "." + fields[1])
}

// knownArches has the names that docker's profiles use for architectures.
var knownArches = [...]string{
	"386", "amd64", "arm", "arm64", "loongarch64", "mips", "mips64", "mips64n32", "mipsel", "mipsel64",
	"mipsel64n32", "mips3l64n32", "parisc", "parisc64", "ppc", "ppc64", "ppc64le", "riscv64", "s390", "s390x", "x32", "x86",
}

// knownCaps has every capability of Linux without its prefix.
var knownCaps = [...]string{
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
	"LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
	"SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
	"SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
	"MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
	"CHECKPOINT_RESTORE",
}

// checkCaps returns an error for the first name that is no capability.
func checkCaps(caps []string) error {
	for _, c := range caps {
		name, ok := strings.CutPrefix(c, "CAP_")
		if !ok || !slices.Contains(knownCaps[:], name) {
			return fmt.Errorf("capability %q does not exist", c)
		}
	}
	return nil
}
