package seccomp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// MaxFile is the largest profile in bytes that [Parse] reads.
const MaxFile = 1 << 20

// maxProblems is how many faults of a file Parse reports.
const maxProblems = 20

// file is a profile as docker and the OCI runtime specification write it.
// https://github.com/opencontainers/runtime-spec/blob/main/config-linux.md#seccomp
type file struct {
	DefaultAction    string            `json:"defaultAction"`
	DefaultErrnoRet  *uint             `json:"defaultErrnoRet"`
	DefaultErrno     string            `json:"defaultErrno"` // podman's
	Architectures    []string          `json:"architectures"`
	ArchMap          []fileArch        `json:"archMap"`
	Flags            []string          `json:"flags"`
	ListenerPath     string            `json:"listenerPath"`
	ListenerMetadata string            `json:"listenerMetadata"`
	Syscalls         []json.RawMessage `json:"syscalls"`
}

type fileArch struct {
	Architecture     string   `json:"architecture"`
	SubArchitectures []string `json:"subArchitectures"`
}

// Parse reads a profile in JSON: the object linux.seccomp of the OCI runtime specification, or a
// file for docker's --security-opt seccomp=, which is the same with archMap, includes and excludes.
//
// Everything is checked, and all that is wrong is reported, with the rule's index from 0. Fields
// and system calls that nobody knows are errors, for a typing error would open what was meant to be
// closed; calls that only other architectures have are ignored. Flags and the list of
// architectures are checked and otherwise ignored: a filter is for the native ABI, and how it is
// installed is the caller's choice. Not accepted, with an error that says so, are the actions
// NOTIFY (who would answer?) and TRACE (a tracer inside could let the call pass), and rules that
// compare an argument twice, which docker takes as an alternative.
func Parse(text []byte) (Profile, error) {
	doc, err := parseDocument(text)
	if err != nil {
		return Profile{}, fmt.Errorf("parse seccomp profile: %w", err)
	}
	return Profile{kind: kindCustom, custom: &custom{sha256.Sum256(text), doc}}, nil
}

func parseDocument(text []byte) (document, error) {
	if len(text) > MaxFile {
		return document{}, fmt.Errorf("%d bytes are more than %d", len(text), MaxFile)
	}
	var f file
	if err := decodeStrictly(text, &f); err != nil {
		return document{}, err
	}
	rules := make([]fileRule, len(f.Syscalls))
	var problems []error
	for i, raw := range f.Syscalls {
		if err := decodeStrictly(raw, &rules[i]); err != nil {
			problems = append(problems, fmt.Errorf("rule %d: %w", i, err))
		}
	}
	if len(problems) > 0 {
		return document{}, joinSome(problems)
	}
	return f.document(rules)
}

// decodeStrictly reads one JSON value and nothing after it, without unknown fields.
func decodeStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end of the profile")
	}
	return nil
}

// document checks the file and its decoded rules and converts them.
func (f file) document(rules []fileRule) (document, error) {
	fallback, err := parseAction(f.DefaultAction, f.DefaultErrnoRet, f.DefaultErrno)
	if err != nil {
		err = fmt.Errorf("defaultAction: %w", err)
	}
	problems := append(f.problems(), err)
	doc := document{fallback: fallback, rules: make([]docRule, len(rules))}
	for i, r := range rules {
		if doc.rules[i], err = r.rule(); err != nil {
			problems = append(problems, fmt.Errorf("rule %d%s: %w", i, r.label(), err))
		}
	}
	return doc, joinSome(problems)
}

// problems checks what the file says besides rules.
func (f file) problems() []error {
	var out []error
	if f.ListenerPath != "" || f.ListenerMetadata != "" {
		out = append(out, errors.New("listenerPath: notification is not supported"))
	}
	if len(f.Architectures) > 0 && len(f.ArchMap) > 0 {
		out = append(out, errors.New("both architectures and archMap are given"))
	}
	arches := slices.Clone(f.Architectures)
	for _, m := range f.ArchMap {
		arches = append(append(arches, m.Architecture), m.SubArchitectures...)
	}
	for _, arch := range arches {
		if !slices.Contains(fileArches[:], arch) {
			out = append(out, fmt.Errorf("architecture %q does not exist", arch))
		}
	}
	for _, flag := range f.Flags {
		if !slices.Contains(fileFlags[:], flag) {
			out = append(out, fmt.Errorf("flag %q does not exist", flag))
		}
	}
	return out
}

// joinSome joins the first problems.
func joinSome(problems []error) error {
	problems = slices.DeleteFunc(problems, func(err error) bool { return err == nil })
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems], fmt.Errorf("and %d more", more))
	}
	return errors.Join(problems...)
}

var fileFlags = [...]string{
	"SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW",
	"SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV",
}

var fileArches = [...]string{
	"SCMP_ARCH_X86", "SCMP_ARCH_X86_64", "SCMP_ARCH_X32", "SCMP_ARCH_ARM", "SCMP_ARCH_AARCH64",
	"SCMP_ARCH_MIPS", "SCMP_ARCH_MIPS64", "SCMP_ARCH_MIPS64N32", "SCMP_ARCH_MIPSEL", "SCMP_ARCH_MIPSEL64",
	"SCMP_ARCH_MIPSEL64N32", "SCMP_ARCH_PPC", "SCMP_ARCH_PPC64", "SCMP_ARCH_PPC64LE", "SCMP_ARCH_S390",
	"SCMP_ARCH_S390X", "SCMP_ARCH_PARISC", "SCMP_ARCH_PARISC64", "SCMP_ARCH_RISCV64", "SCMP_ARCH_LOONGARCH64",
	"SCMP_ARCH_M68K", "SCMP_ARCH_SH", "SCMP_ARCH_SHEB",
}
