package seccomp

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Options says what a filter is compiled for. The zero value is this machine, no capabilities.
type Options struct {
	// Arch is a GOARCH, amd64 or arm64; empty: the one of this program.
	Arch string
	// Caps has the capabilities (CAP_CHOWN, …) of the command, by which profiles open calls.
	Caps []string
	// NoSetID refuses, whatever the profile, to give files set-user-ID and set-group-ID bits (by
	// chmod, or when creating them), with EPERM; openat2, whose mode a filter cannot see, gets
	// ENOSYS, io_uring EPERM. mkdir needs no check: the kernel drops the bits.
	NoSetID bool
	// Trace makes refused calls ask a listener (SECCOMP_RET_USER_NOTIF), which must answer with
	// the errno of Program.Errnos. Foreign ABIs are answered without asking, and so are refusals
	// of a call with another errno than the one in the table.
	Trace bool
}

// Program is a compiled filter. It is shared: do not modify it.
type Program struct {
	// Filter is an array of struct sock_filter in the byte order of the architecture. It is empty
	// when there is nothing to install.
	Filter []byte
	// Errnos, with Options.Trace and a filter, has the errno that a refused call gets, by number:
	// at least 512 of them, ENOSYS where nothing is known. Numbers past the end get ENOSYS.
	Errnos []uint16
}

// minErrnos is the shortest length of Program.Errnos.
const minErrnos = 512

// programs caches what was compiled, for all profiles.
var programs cache

// Compile returns the filter of a profile. It is fast from the second time on. Errors are an
// unknown architecture ([ErrArch]), an unknown capability, and a filter that is too long (E2BIG).
func (p Profile) Compile(o Options) (*Program, error) {
	if o.Arch == "" {
		o.Arch = runtime.GOARCH
	}
	key := p.cacheKey(o)
	if program := programs.get(key); program != nil {
		return program, nil
	}
	program, err := p.compile(o)
	if err != nil {
		return nil, fmt.Errorf("compile seccomp profile %s: %w", p.Name(), err)
	}
	programs.put(key, program)
	return program, nil
}

func (p Profile) compile(o Options) (*Program, error) {
	policy, t, err := p.policy(o)
	if err != nil {
		return nil, err
	}
	if p.kind == kindUnconfined && !o.NoSetID {
		return &Program{}, nil
	}
	var errnos []uint16
	if o.Trace {
		errnos = policy.trace()
	}
	filter, err := pack(policy.code(t.audit))
	if err != nil {
		return nil, err
	}
	return &Program{Filter: filter, Errnos: errnos}, nil
}

// policy resolves the profile for the options.
func (p Profile) policy(o Options) (policy, table, error) {
	t, err := tableFor(o.Arch)
	if err != nil {
		return policy{}, t, err
	}
	if err := checkCaps(o.Caps); err != nil {
		return policy{}, t, err
	}
	kernel, err := runningKernel()
	if err != nil {
		return policy{}, t, err
	}
	doc, err := p.document()
	if err != nil {
		return policy{}, t, err
	}
	resolved := doc.resolve(machine{t, o.Caps, kernel})
	if o.NoSetID {
		resolved.refuseSetID(t)
	}
	return resolved, t, nil
}

// trace turns refusals into questions and returns the table of answers.
func (p *policy) trace() []uint16 {
	errnos := make([]uint16, max(minErrnos, len(p.calls)))
	for i := range errnos {
		errnos[i], _ = nosys.errno()
	}
	ask := func(act action, answer uint16) action {
		if errno, refused := act.errno(); refused && errno == answer {
			return notify
		}
		return act
	}
	for nr, d := range p.calls {
		if errno, refused := d.errno(); refused {
			errnos[nr] = errno
		}
		rules := slices.Clone(d.rules)
		for i := range rules {
			rules[i].act = ask(rules[i].act, errnos[nr])
		}
		p.calls[nr] = decision{rules, ask(d.final, errnos[nr])}
	}
	for nr := len(p.calls); nr < len(errnos); nr++ {
		if errno, refused := p.beyond.errno(); refused {
			errnos[nr] = errno
		}
	}
	p.beyond = ask(p.beyond, errnos[len(errnos)-1])
	return errnos
}

// errno returns the errno that stands for a decision: the one of its last resort, else the first.
func (d decision) errno() (uint16, bool) {
	if errno, refused := d.final.errno(); refused {
		return errno, true
	}
	for _, r := range d.rules {
		if errno, refused := r.act.errno(); refused {
			return errno, true
		}
	}
	return 0, false
}

// cache keeps the last programs. Its zero value is ready.
type cache struct {
	mu       sync.RWMutex
	programs map[cacheKey]*Program
}

// maxCached bounds the cache of a program that reads many profiles; a full one starts again.
const maxCached = 128

type cacheKey struct {
	kind           kind
	digest         [32]byte
	arch, caps     string
	noSetID, trace bool
}

func (p Profile) cacheKey(o Options) cacheKey {
	key := cacheKey{kind: p.kind, arch: o.Arch, noSetID: o.NoSetID, trace: o.Trace}
	if p.custom != nil {
		key.digest = p.custom.digest
	}
	if len(o.Caps) > 0 {
		key.caps = strings.Join(slices.Sorted(slices.Values(o.Caps)), " ")
	}
	return key
}

func (c *cache) get(key cacheKey) *Program {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.programs[key]
}

func (c *cache) put(key cacheKey, program *Program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.programs == nil || len(c.programs) >= maxCached {
		c.programs = map[cacheKey]*Program{}
	}
	c.programs[key] = program
}
