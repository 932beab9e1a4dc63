package seccomp

import "fmt"

// op compares a masked argument with a value, unsigned.
type op uint8

const (
	opEqual op = iota // argument & mask == value
	opGreater
	opGreaterEqual
)

// full is the mask of a comparison of the whole argument.
const full = ^uint64(0)

// low is the mask for arguments that the kernel takes as a 32-bit int: it ignores the upper half,
// and so must a refusal (CVE-2019-10063).
const low = 0xffffffff

// cond is a condition on one argument. Only opEqual looks at the mask.
type cond struct {
	arg    uint8 // 0 to 5
	op     op
	negate bool
	mask   uint64
	value  uint64 // for opEqual: no bit outside of the mask
}

// is holds when the 32-bit argument equals value.
func is(arg uint8, value uint32) cond { return cond{arg: arg, mask: low, value: uint64(value)} }

// has holds when one of the bits is set.
func has(arg uint8, bits uint32) cond { return cond{arg: arg, mask: uint64(bits), negate: true} }

// field holds when the bits of mask have that value.
func field(arg uint8, mask, value uint32) cond {
	return cond{arg: arg, mask: uint64(mask), value: uint64(value)}
}

// String writes the condition in the form that golden files show.
func (c cond) String() string {
	arg := fmt.Sprintf("arg%d", c.arg)
	if c.mask != full && c.op == opEqual {
		arg = fmt.Sprintf("arg%d&%#x", c.arg, c.mask)
	}
	sign := [...][2]string{opEqual: {"==", "!="}, opGreater: {">", "<="}, opGreaterEqual: {">=", "<"}}[c.op][0]
	if c.negate {
		sign = [...]string{opEqual: "!=", opGreater: "<=", opGreaterEqual: "<"}[c.op]
	}
	return fmt.Sprintf("%s%s%#x", arg, sign, c.value)
}
