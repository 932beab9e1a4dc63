package runtime

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strings"
	"time"

	"github.com/husk-sandbox/husk/images"
)

// problems collects everything that is wrong with a request, to be reported at once.
type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Errorf("%w "+format, append([]any{ErrInvalid}, args...)...))
}

func (p *problems) addErr(err error) {
	if err != nil {
		*p = append(*p, fmt.Errorf("%w %w", ErrInvalid, err))
	}
}

func (p problems) join() error { return errors.Join(p...) }

// validate checks a Spec that has its defaults.
func (s Spec) validate() error {
	var p problems
	if s.Name != "" {
		p.addErr(images.CheckID(s.Name))
	}
	if s.Scope != ScopeExecute && s.Scope != ScopeSandbox {
		p.add("scope %q: want execute or sandbox", s.Scope)
	}
	if s.CPUView != CPUViewQuota && s.CPUView != CPUViewHost {
		p.add("cpu view %q: want quota or host", s.CPUView)
	}
	p.addErr(checkHostname(s.Hostname))
	p.addErr(checkInside("work dir", s.WorkDir))
	p.addErr(checkEnv(s.Env))
	s.Limits.validate(&p)
	s.validateMounts(&p)
	if _, err := profileOf(s.Seccomp); err != nil {
		p.addErr(err)
	}
	if _, err := parseUser(s.User); err != nil {
		p.addErr(err)
	}
	for _, name := range s.AllowDowngrade {
		if name != DowngradeSwap {
			p.add("downgrade %q: the only known one is %s", name, DowngradeSwap)
		}
	}
	return p.join()
}

func (l Limits) validate(p *problems) {
	if l.Memory != Unlimited && l.Memory < minMemory {
		p.add("memory limit %s: at least %s", l.Memory, minMemory)
	}
	if l.CPUs != Unlimited && (math.IsNaN(l.CPUs) || l.CPUs < minCPUs || l.CPUs > 1024) {
		p.add("cpu limit %v: at least %v, or unlimited", l.CPUs, minCPUs)
	}
	if l.PIDs != Unlimited && (l.PIDs < 1 || l.PIDs > 4<<20) {
		p.add("pids limit %d: at least 1", l.PIDs)
	}
}

// checkInside accepts an absolute path inside, without a NUL, short enough for the kernel.
func checkInside(what, p string) error {
	switch {
	case !strings.HasPrefix(p, "/"):
		return fmt.Errorf("%s %q: must be an absolute path", what, p)
	case strings.ContainsRune(p, 0):
		return fmt.Errorf("%s %q: contains a NUL byte", what, p)
	case len(p) > 4095:
		return fmt.Errorf("%s: longer than 4095 bytes", what)
	}
	return nil
}

func checkHostname(name string) error {
	if len(name) > 63 || name == "" {
		return fmt.Errorf("hostname %q: 1 to 63 characters", name)
	}
	for i, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '.' && c != '_') {
			return fmt.Errorf("hostname %q: letters, digits, - . and _ only", name)
		}
	}
	return nil
}

func checkEnv(env []string) error {
	for _, e := range env {
		name, _, ok := strings.Cut(e, "=")
		switch {
		case !ok:
			return fmt.Errorf("environment %q: want NAME=value", e)
		case name == "":
			return fmt.Errorf("environment %q: empty name", e)
		case strings.ContainsRune(e, 0):
			return fmt.Errorf("environment %s: contains a NUL byte", name)
		}
	}
	return nil
}

// checkDestination refuses places where a mount would undo what protects the sandbox.
func checkDestination(what, dst string) error {
	if err := checkInside(what+" destination", dst); err != nil {
		return err
	}
	clean := path.Clean(dst)
	if clean == "/" {
		return fmt.Errorf("%s on /: the root cannot be replaced", what)
	}
	for _, own := range []string{"/proc", "/sys", "/dev"} {
		if strings.HasPrefix(clean+"/", own+"/") && clean != "/dev/shm" {
			return fmt.Errorf("%s on %s: %s is the sandbox's own", what, dst, own)
		}
	}
	return nil
}

func (s Spec) validateMounts(p *problems) {
	seen := map[string]bool{}
	once := func(dst string) {
		if dst = inside(dst); seen[dst] {
			p.add("mount on %s: named twice", dst)
		}
		seen[dst] = true
	}
	for _, b := range s.Binds {
		p.addErr(checkDestination("bind", b.Destination))
		if !path.IsAbs(b.Source) || strings.ContainsRune(b.Source, 0) {
			p.add("bind source %q: must be an absolute path", b.Source)
		} else if _, err := os.Lstat(b.Source); err != nil {
			p.addErr(fmt.Errorf("bind %w", err))
		}
		once(b.Destination)
	}
	for _, t := range s.Tmpfs {
		p.addErr(checkDestination("tmpfs", t.Destination))
		if t.Size < 0 || t.Inodes < 0 || t.Mode&^0o7777 != 0 {
			p.add("tmpfs %s: size, inodes and mode must not be negative or beyond 07777", t.Destination)
		}
		once(t.Destination)
	}
	if s.Scope == ScopeExecute {
		s.validateHidden(p)
	}
}

// validateHidden refuses a bind that a fresh tmpfs of each execution would cover.
func (s Spec) validateHidden(p *problems) {
	for _, b := range s.Binds {
		for _, fresh := range s.freshTmpfs() {
			if strings.HasPrefix(inside(b.Destination), fresh.Destination+"/") {
				p.add("bind on %s: each execution mounts a fresh tmpfs on %s, which would hide it; bind elsewhere, or use scope sandbox",
					b.Destination, fresh.Destination)
			}
		}
	}
}

// validate checks a Command that has its defaults against the sandbox it is for.
func (c Command) validate(s Spec) error {
	var p problems
	switch {
	case len(c.Args) == 0 || c.Args[0] == "":
		p.add("command: empty")
	default:
		for _, a := range c.Args {
			if strings.ContainsRune(a, 0) {
				p.add("argument %q: contains a NUL byte", a)
			}
		}
	}
	p.addErr(checkEnv(c.Env))
	p.addErr(checkInside("work dir", c.Dir))
	if c.Timeout < 0 && c.Timeout != NoTimeout {
		p.add("timeout %v: negative; NoTimeout (-1) is no limit", c.Timeout)
	}
	if c.CPUTime < 0 || c.CPUTime > 0 && c.CPUTime < time.Millisecond {
		p.add("cpu time %v: at least 1ms, or 0 for no limit", c.CPUTime)
	}
	if c.Output < 0 && c.Output != Unlimited {
		p.add("output limit %d: negative", c.Output)
	}
	if c.TTY != nil && c.Stderr != nil {
		p.add("stderr: a terminal has only one output stream")
	}
	if c.Limits != s.Limits { // what is the sandbox's own was checked with it
		c.Limits.validate(&p)
		c.Limits.validateBelow(s.Limits, &p)
	}
	if _, err := rlimits(c.Rlimits); err != nil {
		p.addErr(err)
	}
	if _, err := profileOf(c.Seccomp); err != nil && c.Seccomp != s.Seccomp {
		p.addErr(err)
	}
	if _, err := parseUser(c.User); err != nil && c.User != s.User {
		p.addErr(err)
	}
	return p.join()
}

// validateBelow: an execution's limits cannot be above its sandbox's.
func (l Limits) validateBelow(s Limits, p *problems) {
	above := func(a, b float64) bool { return b >= 0 && (a < 0 || a > b) }
	if above(float64(l.Memory), float64(s.Memory)) {
		p.add("memory limit %s: the sandbox has only %s", l.Memory, s.Memory)
	}
	if above(l.CPUs, s.CPUs) {
		p.add("cpu limit %v: the sandbox has only %v", l.CPUs, s.CPUs)
	}
	if above(float64(l.PIDs), float64(s.PIDs)) {
		p.add("pids limit %d: the sandbox has only %d", l.PIDs, s.PIDs)
	}
}
