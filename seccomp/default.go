package seccomp

import (
	"fmt"
	"slices"

	moby "github.com/moby/profiles/seccomp"
	"golang.org/x/sys/unix"
)

// defaultDocument returns moby's profile with ours on top. It is built when it is asked for.
func defaultDocument() (document, error) {
	doc, err := mobyDocument()
	if err != nil {
		return document{}, err
	}
	for i := range doc.rules {
		doc.rules[i].names = slices.DeleteFunc(doc.rules[i].names, func(name string) bool {
			return name == "socket" || name == "socketpair" // decided below
		})
	}
	for _, rules := range [...][]docRule{defaultSockets(), closedSocketOptions(), closedTerminal(), closedCalls()} {
		doc.rules = append(doc.rules, rules...)
	}
	return doc, nil
}

// mobyDocument converts moby's profile as if it had come from a file.
func mobyDocument() (document, error) {
	profile := moby.DefaultProfile()
	f := file{
		DefaultAction:   string(profile.DefaultAction),
		DefaultErrnoRet: profile.DefaultErrnoRet,
	}
	rules := make([]fileRule, len(profile.Syscalls))
	for i, s := range profile.Syscalls {
		rules[i] = fileRule{
			Names:    s.Names,
			Action:   string(s.Action),
			ErrnoRet: s.ErrnoRet,
			Includes: mobyFilter(s.Includes),
			Excludes: mobyFilter(s.Excludes),
		}
		for _, a := range s.Args {
			rules[i].Args = append(rules[i].Args, fileArg{a.Index, a.Value, a.ValueTwo, string(a.Op)})
		}
	}
	doc, err := f.document(rules)
	if err != nil {
		return document{}, fmt.Errorf("read moby's profile: %w", err)
	}
	return doc, nil
}

func mobyFilter(f *moby.Filter) *fileFilter {
	if f == nil {
		return nil
	}
	out := &fileFilter{Caps: f.Caps, Arches: f.Arches}
	if f.MinKernel != nil {
		out.MinKernel = f.MinKernel.String()
	}
	return out
}

// defaultSockets permits what programs use. Every other family loads a kernel module that few
// people test and many have broken: AF_ALG, AF_VSOCK, AF_RXRPC, AF_PACKET, AF_TIPC, AF_XDP, …; of
// netlink NETLINK_XFRM, NETLINK_NETFILTER and NETLINK_CRYPTO are the known ways out.
func defaultSockets() []docRule {
	family := func(conds ...cond) docRule {
		return docRule{names: []string{"socket"}, act: allow, conds: conds}
	}
	return []docRule{
		family(is(0, unix.AF_UNIX)),
		family(is(0, unix.AF_INET)),
		family(is(0, unix.AF_INET6)),
		family(is(0, unix.AF_NETLINK), is(2, unix.NETLINK_ROUTE)),
		family(is(0, unix.AF_NETLINK), is(2, unix.NETLINK_KOBJECT_UEVENT)),
		{names: []string{"socketpair"}, act: allow, conds: []cond{is(0, unix.AF_UNIX)}},
		{names: []string{"socket", "socketpair"}, act: noFamily, otherwise: true},
	}
}

// closedSocketOptions keeps ESP, which decrypts in place, away from UDP and TCP sockets
// (CVE-2026-43284), and TCP from loading protocols on top of it by name (tls, espintcp, smc).
func closedSocketOptions() []docRule {
	const udpEncap, tcpULP = 100, 31
	option := func(level, option uint32) docRule {
		return docRule{names: []string{"setsockopt"}, act: noOption, conds: []cond{is(1, level), is(2, option)}}
	}
	return []docRule{
		option(unix.IPPROTO_UDP, udpEncap),
		option(unix.IPPROTO_UDPLITE, udpEncap),
		option(unix.IPPROTO_TCP, tcpULP),
	}
}

// closedTerminal refuses to type into the controlling terminal (CVE-2017-5226, CVE-2023-1523) and
// to load line disciplines. The kernel takes the request as 32 bits (CVE-2019-10063).
func closedTerminal() []docRule {
	const tioclinux = 0x541c
	var out []docRule
	for _, request := range [...]uint32{unix.TIOCSTI, tioclinux, unix.TIOCSETD} {
		out = append(out, docRule{names: []string{"ioctl"}, act: eperm, conds: []cond{is(1, request)}})
	}
	return out
}

// closedCalls are closed whatever the capabilities, moby's rules or a later release of them say.
func closedCalls() []docRule {
	nested := []cond{has(0, unix.CLONE_NEWUSER)}
	return []docRule{
		{names: []string{"clone", "unshare"}, act: eperm, conds: nested},
		{names: []string{"clone3"}, act: nosys}, // flags are behind a pointer; libc takes clone
		{names: []string{"io_uring_setup", "io_uring_enter", "io_uring_register"}, act: eperm},
		{names: []string{"add_key", "keyctl", "request_key"}, act: eperm},
		{names: []string{"kexec_load", "kexec_file_load", "userfaultfd"}, act: eperm},
		{names: []string{"name_to_handle_at", "open_by_handle_at"}, act: eperm},
		{names: []string{"listmount", "statmount", "listns"}, act: nosys, newer: true},
	}
}
