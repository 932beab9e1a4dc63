package seccomp

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// MaxInstructions is the kernel's limit for one filter (BPF_MAXINSNS).
const MaxInstructions = 4096

// firstX32 is where the numbers of the x32 ABI begin (__X32_SYSCALL_BIT).
const firstX32 = 0x40000000

// span is a range of numbers that share a decision; it ends where the next one starts.
type span struct {
	start uint32
	decision
}

// spans merges neighbours. Every number has one: those past the table as well, and those of x32,
// which would otherwise reach the same calls by other numbers.
func (p policy) spans() []span {
	var out []span
	add := func(start uint32, d decision) {
		if len(out) == 0 || !out[len(out)-1].same(d) {
			out = append(out, span{start, d})
		}
	}
	for nr, d := range p.calls {
		add(uint32(nr), d)
	}
	add(uint32(len(p.calls)), decision{final: p.beyond})
	add(firstX32, decision{final: nosys})
	return out
}

// code writes the whole filter: foreign ABIs, then a binary tree over the spans. The kernel runs a
// new filter once for each number, to learn which it can skip it for; a tree keeps that short.
func (p policy) code(audit uint32) []bpf.Instruction {
	a := &assembler{rets: map[action]label{}}
	root := a.tree(p.spans(), &blocks{})
	if a.skip(root) > 0 {
		a.emit(bpf.Jump{Skip: uint32(a.skip(root))})
	}
	native := a.load(offNumber)
	foreign := a.emit(bpf.RetConstant{Val: uint32(nosys)})
	a.jumpIf(bpf.JumpEqual, audit, native, foreign)
	a.load(offArch)
	return a.program()
}

// tree writes a search for the number in the accumulator.
func (a *assembler) tree(spans []span, done *blocks) label {
	if len(spans) == 1 {
		return done.place(a, spans[0].decision)
	}
	half := len(spans) / 2
	right := a.tree(spans[half:], done)
	left := a.tree(spans[:half], done)
	return a.jumpIf(bpf.JumpGreaterOrEqual, spans[half].start, right, left)
}

// blocks remembers where the checks of a decision are, so that equal ones are written once.
type blocks struct {
	decisions []decision
	places    []label
}

func (b *blocks) place(a *assembler, d decision) label {
	if len(d.rules) == 0 {
		return a.ret(d.final)
	}
	if i := slices.IndexFunc(b.decisions, d.same); i >= 0 {
		return b.places[i]
	}
	at := a.decision(d)
	b.decisions, b.places = append(b.decisions, d), append(b.places, at)
	return at
}

// pack turns instructions into an array of struct sock_filter.
func pack(code []bpf.Instruction) ([]byte, error) {
	if len(code) > MaxInstructions {
		return nil, fmt.Errorf("filter has %d instructions, the kernel takes %d: %w", len(code), MaxInstructions, unix.E2BIG)
	}
	raw, err := bpf.Assemble(code)
	if err != nil {
		return nil, fmt.Errorf("assemble filter: %w", err)
	}
	out := make([]byte, 0, len(raw)*8)
	for _, in := range raw {
		out = binary.LittleEndian.AppendUint16(out, in.Op)
		out = append(out, in.Jt, in.Jf)
		out = binary.LittleEndian.AppendUint32(out, in.K)
	}
	return out, nil
}
