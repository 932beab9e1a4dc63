package seccomp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// fileRule is one element of syscalls in a profile.
type fileRule struct {
	Name     string      `json:"name"` // docker's old form
	Names    []string    `json:"names"`
	Action   string      `json:"action"`
	ErrnoRet *uint       `json:"errnoRet"`
	Errno    string      `json:"errno"` // podman's
	Args     []fileArg   `json:"args"`
	Comment  string      `json:"comment"`
	Includes *fileFilter `json:"includes"`
	Excludes *fileFilter `json:"excludes"`
}

type fileArg struct {
	Index    uint   `json:"index"`
	Value    uint64 `json:"value"`
	ValueTwo uint64 `json:"valueTwo"`
	Op       string `json:"op"`
}

type fileFilter struct {
	Caps      []string `json:"caps"`
	Arches    []string `json:"arches"`
	MinKernel string   `json:"minKernel"`
}

// label names the rule in errors by its first call.
func (r fileRule) label() string {
	switch {
	case r.Name != "":
		return fmt.Sprintf(" (%s)", r.Name)
	case len(r.Names) > 0:
		return fmt.Sprintf(" (%s)", r.Names[0])
	}
	return ""
}

// rule checks the rule and converts it.
func (r fileRule) rule() (docRule, error) {
	act, errAction := parseAction(r.Action, r.ErrnoRet, r.Errno)
	names, errNames := r.names()
	conds, errArgs := parseArgs(r.Args)
	includes, errIn := r.Includes.gate("includes")
	excludes, errEx := r.Excludes.gate("excludes")
	err := errors.Join(errNames, errAction, errArgs, errIn, errEx)
	return docRule{names: names, act: act, conds: conds, includes: includes, excludes: excludes}, err
}

func (r fileRule) names() ([]string, error) {
	names := r.Names
	if r.Name != "" {
		if len(names) > 0 {
			return nil, errors.New("both name and names are given")
		}
		names = []string{r.Name}
	}
	if len(names) == 0 {
		return nil, errors.New("names is missing")
	}
	var problems []error
	for _, name := range names {
		if !knownName(name) {
			problems = append(problems, fmt.Errorf("system call %q does not exist on any architecture", name))
		}
	}
	return names, joinSome(problems)
}

// parseAction reads an action and the errno that belongs to it (default EPERM).
func parseAction(name string, errnoRet *uint, errno string) (action, error) {
	if name == "SCMP_ACT_ERRNO" {
		n, err := parseErrno(errnoRet, errno)
		return refuse(n), err
	}
	if errnoRet != nil || errno != "" {
		return 0, fmt.Errorf("errno is given for action %q", name)
	}
	switch name {
	case "SCMP_ACT_ALLOW":
		return allow, nil
	case "SCMP_ACT_LOG":
		return logged, nil
	case "SCMP_ACT_TRAP":
		return trap, nil
	case "SCMP_ACT_KILL", "SCMP_ACT_KILL_THREAD":
		return killThread, nil
	case "SCMP_ACT_KILL_PROCESS":
		return killProcess, nil
	case "SCMP_ACT_NOTIFY", "SCMP_ACT_TRACE":
		return 0, fmt.Errorf("action %q is not supported", name)
	case "":
		return 0, errors.New("action is missing")
	}
	return 0, fmt.Errorf("action %q does not exist", name)
}

// parseErrno reads errnoRet, or podman's name of it, which must agree.
func parseErrno(number *uint, name string) (uint16, error) {
	switch {
	case number == nil && name == "":
		return uint16(unix.EPERM), nil
	case number == nil:
		for n := range syscall.Errno(maxErrno) {
			if unix.ErrnoName(n) == name {
				return uint16(n), nil
			}
		}
		return 0, fmt.Errorf("errno %q does not exist", name)
	case *number > maxErrno:
		return 0, fmt.Errorf("errnoRet %d is more than %d", *number, maxErrno)
	case name != "" && unix.ErrnoName(syscall.Errno(*number)) != name:
		return 0, fmt.Errorf("errnoRet %d is not errno %q", *number, name)
	}
	return uint16(*number), nil
}

// parseArgs converts the conditions of a rule, all of which must hold.
func parseArgs(args []fileArg) ([]cond, error) {
	var out []cond
	var problems []error
	for i, a := range args {
		c, err := a.cond()
		if err == nil && slices.ContainsFunc(out, func(o cond) bool { return o.arg == c.arg }) {
			err = fmt.Errorf("argument %d is compared twice: write one rule for each alternative", a.Index)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("args %d: %w", i, err))
		}
		out = append(out, c)
	}
	return out, joinSome(problems)
}

func (a fileArg) cond() (cond, error) {
	if a.Index > 5 {
		return cond{}, fmt.Errorf("index %d is more than 5", a.Index)
	}
	c := cond{arg: uint8(a.Index), mask: full, value: a.Value}
	switch a.Op {
	case "SCMP_CMP_EQ":
	case "SCMP_CMP_NE":
		c.negate = true
	case "SCMP_CMP_GT":
		c.op = opGreater
	case "SCMP_CMP_LE":
		c.op, c.negate = opGreater, true
	case "SCMP_CMP_GE":
		c.op = opGreaterEqual
	case "SCMP_CMP_LT":
		c.op, c.negate = opGreaterEqual, true
	case "SCMP_CMP_MASKED_EQ":
		c.mask, c.value = a.Value, a.ValueTwo
		if c.value&^c.mask != 0 {
			return cond{}, fmt.Errorf("valueTwo %#x has bits outside of the mask %#x: it never matches", c.value, c.mask)
		}
	default:
		return cond{}, fmt.Errorf("op %q does not exist", a.Op)
	}
	return c, nil
}

// gate converts a filter; field is its name in errors.
func (f *fileFilter) gate(field string) (gate, error) {
	if f == nil {
		return gate{}, nil
	}
	g := gate{caps: f.Caps, arches: f.Arches}
	problems := []error{checkCaps(f.Caps)}
	for _, arch := range f.Arches {
		if !slices.Contains(knownArches[:], arch) {
			problems = append(problems, fmt.Errorf("architecture %q does not exist", arch))
		}
	}
	var err error
	if f.MinKernel != "" {
		g.kernel, err = parseKernel(strings.TrimSpace(f.MinKernel))
	}
	if err := joinSome(append(problems, err)); err != nil {
		return gate{}, fmt.Errorf("%s: %w", field, err)
	}
	return g, nil
}
