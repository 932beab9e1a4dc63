package seccomp

// File mode and open flags, the same on both architectures.
const (
	setIDBits   = 0o6000     // S_ISUID | S_ISGID
	createFlags = 0o20000100 // O_CREAT and the bit of O_TMPFILE: the mode argument counts
)

// setIDRules refuse set-id bits in every register that holds a file's mode.
//
// mkdir and mkdirat are not among them: the kernel keeps only permissions and the sticky bit.
func setIDRules() []docRule {
	modeIn := func(arg uint8) []cond { return []cond{has(arg, setIDBits)} }
	return []docRule{
		{names: []string{"chmod", "fchmod", "creat", "mknod"}, act: eperm, conds: modeIn(1)},
		{names: []string{"fchmodat", "fchmodat2", "mknodat"}, act: eperm, conds: modeIn(2)},
		{names: []string{"open"}, act: eperm, conds: []cond{has(1, createFlags), has(2, setIDBits)}},
		{names: []string{"openat"}, act: eperm, conds: []cond{has(2, createFlags), has(3, setIDBits)}},
		{names: []string{"io_uring_setup", "io_uring_enter", "io_uring_register"}, act: eperm},
		{names: []string{"openat2"}, act: nosys},
	}
}

// refuseSetID adds the rules to a policy, and closes calls that this package does not know, which
// may have a mode too.
func (p *policy) refuseSetID(t table) {
	for _, r := range setIDRules() {
		p.collect(t, r)
	}
	for nr, name := range t.names {
		if name == "" {
			p.calls[nr].rules = append(p.calls[nr].rules, rule{act: nosys})
		}
		p.calls[nr] = decide(p.calls[nr].rules, p.calls[nr].final)
	}
	if p.beyond.permits() {
		p.beyond = nosys
	}
}
