package seccomp

import "golang.org/x/net/bpf"

// assembler writes a BPF program from its end to its beginning: jumps only go forward, so that
// every target already has its place when the jump to it is written.
type assembler struct {
	code []bpf.Instruction // backwards
	rets map[action]label  // the nearest return of each action
}

// label is the place of an instruction, counted from the end of the program.
type label int

// reach is how far a conditional jump may be written from its target: the offset has 8 bits, and
// two jumps may still come between.
const reach = 255 - 2

func (a *assembler) emit(in bpf.Instruction) label {
	a.code = append(a.code, in)
	return label(len(a.code) - 1)
}

// skip is the offset to a target from an instruction written now.
func (a *assembler) skip(to label) int { return len(a.code) - 1 - int(to) }

// ret returns the place of a return of the action, a new one if none is near.
func (a *assembler) ret(act action) label {
	if at, ok := a.rets[act]; ok && a.skip(at) <= reach {
		return at
	}
	at := a.emit(bpf.RetConstant{Val: uint32(act)})
	a.rets[act] = at
	return at
}

// near returns a place in reach that leads to the target.
func (a *assembler) near(to label) label {
	if a.skip(to) <= reach {
		return to
	}
	if r, ok := a.code[to].(bpf.RetConstant); ok {
		return a.ret(action(r.Val))
	}
	return a.emit(bpf.Jump{Skip: uint32(a.skip(to))})
}

// jumpIf compares the accumulator.
func (a *assembler) jumpIf(test bpf.JumpTest, value uint32, yes, no label) label {
	yes = a.near(yes)
	no = a.near(no)
	return a.emit(bpf.JumpIf{Cond: test, Val: value, SkipTrue: uint8(a.skip(yes)), SkipFalse: uint8(a.skip(no))})
}

// load reads a 32-bit word of struct seccomp_data in front of what was written last.
func (a *assembler) load(offset uint32) label {
	return a.emit(bpf.LoadAbsolute{Off: offset, Size: 4})
}

// Offsets in struct seccomp_data. Both architectures are little-endian: the low word comes first.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
	argSize   = 8
	wordSize  = 4
)

// test jumps to yes when the condition holds and to no otherwise.
func (a *assembler) test(c cond, yes, no label) label {
	if c.negate {
		yes, no = no, yes
	}
	lo := offArgs + argSize*uint32(c.arg)
	hi := lo + wordSize
	if c.op == opEqual {
		yes = a.testWord(word{lo, uint32(c.mask), uint32(c.value)}, yes, no)
		return a.testWord(word{hi, uint32(c.mask >> 32), uint32(c.value >> 32)}, yes, no)
	}
	last := bpf.JumpGreaterThan
	if c.op == opGreaterEqual {
		last = bpf.JumpGreaterOrEqual
	}
	a.jumpIf(last, uint32(c.value), yes, no)
	lower := a.load(lo)
	equal := a.jumpIf(bpf.JumpEqual, uint32(c.value>>32), lower, no)
	a.jumpIf(bpf.JumpGreaterThan, uint32(c.value>>32), yes, equal)
	return a.load(hi)
}

// word is one half of an argument, and what it is compared with.
type word struct{ offset, mask, value uint32 }

// testWord compares one half of an argument. A half outside of the mask needs no code.
func (a *assembler) testWord(w word, yes, no label) label {
	switch {
	case w.mask == 0 && w.value == 0:
		return yes
	case w.mask != low:
		a.jumpIf(bpf.JumpEqual, w.value, yes, no)
		a.emit(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: w.mask})
	default:
		a.jumpIf(bpf.JumpEqual, w.value, yes, no)
	}
	return a.load(w.offset)
}

// decision writes the checks of one call.
func (a *assembler) decision(d decision) label {
	next := a.ret(d.final)
	for i := len(d.rules) - 1; i >= 0; i-- {
		yes := a.ret(d.rules[i].act)
		for _, c := range d.rules[i].conds {
			yes = a.test(c, yes, next)
		}
		next = yes
	}
	return next
}

// program returns the instructions in their order.
func (a *assembler) program() []bpf.Instruction {
	out := make([]bpf.Instruction, len(a.code))
	for i, in := range a.code {
		out[len(out)-1-i] = in
	}
	return out
}
