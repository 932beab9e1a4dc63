package seccomp

import (
	"fmt"
	"slices"
	"sort"

	"golang.org/x/sys/unix"
)

//go:generate go run ./internal/gentables tables.go

// table is what the package knows of one architecture.
type table struct {
	arch   string   // GOARCH
	docker string   // the name that includes.arches of a profile uses
	audit  uint32   // AUDIT_ARCH_* of the native ABI
	names  []string // by number
	sorted []uint16 // numbers in the order of their names
}

// tableFor returns the table of a GOARCH.
func tableFor(arch string) (table, error) {
	switch arch {
	case "amd64":
		return table{arch, "amd64", unix.AUDIT_ARCH_X86_64, namesAMD64[:], sortedAMD64[:]}, nil
	case "arm64":
		return table{arch, "arm64", unix.AUDIT_ARCH_AARCH64, namesARM64[:], sortedARM64[:]}, nil
	}
	return table{}, fmt.Errorf("find system calls of architecture %q: %w", arch, ErrArch)
}

// number looks a name up.
func (t table) number(name string) (int, bool) {
	i := sort.Search(len(t.sorted), func(i int) bool { return t.names[t.sorted[i]] >= name })
	if i == len(t.sorted) || t.names[t.sorted[i]] != name {
		return 0, false
	}
	return int(t.sorted[i]), true
}

// SyscallName returns the kernel's name of a system call number on an architecture (a GOARCH),
// "openat" for instance, and "" for a number or an architecture that this package does not know.
func SyscallName(arch string, nr int) string {
	t, err := tableFor(arch)
	if err != nil || nr < 0 || nr >= len(t.names) {
		return ""
	}
	return t.names[nr]
}

// knownName tells whether any Linux architecture has a system call of that name.
func knownName(name string) bool {
	for _, arch := range [...]string{"amd64", "arm64"} {
		if t, err := tableFor(arch); err == nil {
			if _, ok := t.number(name); ok {
				return true
			}
		}
	}
	_, ok := slices.BinarySearch(foreignNames[:], name)
	return ok
}
