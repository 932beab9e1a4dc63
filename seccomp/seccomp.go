// Package seccomp turns seccomp profiles into the classic BPF filters that the kernel runs, in pure
// Go, for amd64 and arm64.
//
//	program, err := seccomp.Default().Compile(seccomp.Options{})
//	// hand program.Filter to prctl or seccomp(2), last before exec, with no_new_privs set
//
// # Profiles
//
// [Default] is moby's default profile with what has broken containers since closed. [Strict] is a
// short list for programs that compute. [Unconfined] has no filter. [Parse] reads docker's files.
// A Profile is an immutable value; the zero value is the default.
//
// # Guarantees
//
//   - Calls of foreign ABIs (i386, x32, 32-bit ARM) get ENOSYS under every profile that has a filter.
//   - Where a profile refuses by default, numbers without a name and numbers newer than the newest
//     call that the profile names get ENOSYS, so that programs fall back as on an older kernel.
//   - When several rules match, the strictest action wins; the order of rules does not matter, except
//     among different errnos for one call. (docker lets a rule without conditions win.)
//   - Arguments are compared as the kernel takes them: 64 bits in profiles that are read, and 32 bits
//     in the built-in ones where the kernel ignores the upper half.
//   - Compiling has no side effect, and the same profile with the same options gives the same bytes.
//
// # Limits
//
// A filter has at most [MaxInstructions] instructions and a file at most [MaxFile] bytes. Filters
// need Linux 4.8 or newer, Options.Trace 5.0.
//
// # What it does not protect against
//
// A filter sees numbers and registers, never memory: paths, socket addresses and the structures of
// clone3 or openat2 are out of its reach. It does not make a bug in a permitted call harmless. It
// does not end what a process got hold of before the filter was installed.
package seccomp

import "errors"

// ErrArch is returned for an architecture other than amd64 and arm64.
var ErrArch = errors.New("architecture has no system call table")

// Profile says which system calls a command may make. The zero value is [Default].
type Profile struct {
	custom *custom // nil: built-in
	kind   kind
}

type kind uint8

const (
	kindDefault kind = iota
	kindStrict
	kindUnconfined
	kindCustom
)

// custom is a profile that was read from a file.
type custom struct {
	digest [32]byte // SHA-256 of the file
	doc    document
}

// Default returns the profile "default": docker's default profile (github.com/moby/profiles), which
// opens some calls by capabilities, and on top of it, whatever the capabilities:
//
//   - sockets: only the families UNIX, INET, INET6 and NETLINK, the latter only with the protocols
//     ROUTE and KOBJECT_UEVENT; else EAFNOSUPPORT, which libraries take for a kernel built without.
//     Socket options that put ESP into UDP or TCP, or load protocols on top of TCP: ENOPROTOOPT
//   - no nested user namespaces, by unshare, clone or clone3
//   - no io_uring, keys, userfaultfd, kexec, file handles (name_to_handle_at, open_by_handle_at)
//   - the terminal requests TIOCSTI, TIOCLINUX and TIOCSETD refused
//   - listmount, statmount and listns (which tell about the host) answered with ENOSYS
//
// Refused calls get EPERM where nothing else is said.
func Default() Profile { return Profile{} }

// Strict returns the profile "strict": a list of its own, which neither capabilities nor a newer
// release of docker's profile widen. Python, Node, Java and C compilers work. Besides what
// [Default] closes it has no netlink, no sockets other than unix, TCP and UDP, no ptrace or access
// to other processes' memory, no device nodes (fifos are fine), no change of ids or groups, no
// chroot, no personality, no filters of the program's own, no SysV or POSIX message queues, shared
// memory or semaphores of SysV, no kernel AIO, no writing of extended attributes.
func Strict() Profile { return Profile{kind: kindStrict} }

// Unconfined returns the profile "unconfined": everything that capabilities and namespaces permit.
func Unconfined() Profile { return Profile{kind: kindUnconfined} }

// ByName returns a built-in profile: default, strict or unconfined.
func ByName(name string) (Profile, bool) {
	for _, p := range [...]Profile{Default(), Strict(), Unconfined()} {
		if p.Name() == name {
			return p, true
		}
	}
	return Profile{}, false
}

// Name returns the name of a built-in profile, and "custom" for one that was read.
func (p Profile) Name() string {
	return [...]string{"default", "strict", "unconfined", "custom"}[p.kind]
}

// document returns the profile's rules.
func (p Profile) document() (document, error) {
	switch p.kind {
	case kindStrict:
		return strictDocument(), nil
	case kindUnconfined:
		return document{fallback: allow}, nil
	case kindCustom:
		return p.custom.doc, nil
	}
	return defaultDocument()
}
