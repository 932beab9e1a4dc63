package seccomp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// call is a made-up struct seccomp_data.
type call struct {
	audit uint32
	nr    uint32
	args  [6]uint64
}

// interpreter runs packed filters in user space.
type interpreter struct{ vm *bpf.VM }

func newInterpreter(t testing.TB, filter []byte) interpreter {
	t.Helper()
	if len(filter)%8 != 0 || len(filter)/8 > MaxInstructions {
		t.Fatalf("filter has %d bytes", len(filter))
	}
	var code []bpf.Instruction
	for b := range slices.Chunk(filter, 8) {
		raw := bpf.RawInstruction{Op: binary.LittleEndian.Uint16(b), Jt: b[2], Jf: b[3], K: binary.LittleEndian.Uint32(b[4:])}
		code = append(code, raw.Disassemble())
	}
	vm, err := bpf.NewVM(code)
	if err != nil {
		t.Fatal(err)
	}
	return interpreter{vm}
}

// run gives the words big-endian, as the interpreter loads them, in the little-endian order of the
// two halves of an argument.
func (i interpreter) run(t testing.TB, c call) action {
	t.Helper()
	var in [64]byte
	binary.BigEndian.PutUint32(in[offNumber:], c.nr)
	binary.BigEndian.PutUint32(in[offArch:], c.audit)
	for n, arg := range c.args {
		binary.BigEndian.PutUint32(in[offArgs+8*n:], uint32(arg))
		binary.BigEndian.PutUint32(in[offArgs+8*n+4:], uint32(arg>>32))
	}
	out, err := i.vm.Run(in[:])
	if err != nil {
		t.Fatal(err)
	}
	return action(uint32(out))
}

// holds is the plain meaning of a condition.
func (c cond) holds(args [6]uint64) bool {
	arg := args[c.arg]
	switch c.op {
	case opGreater:
		return (arg > c.value) != c.negate
	case opGreaterEqual:
		return (arg >= c.value) != c.negate
	}
	return (arg&c.mask == c.value) != c.negate
}

// answer is the plain meaning of a policy.
func (p policy) answer(nr uint32, args [6]uint64) action {
	switch {
	case nr >= firstX32:
		return nosys
	case nr >= uint32(len(p.calls)):
		return p.beyond
	}
next:
	for _, r := range p.calls[nr].rules {
		for _, c := range r.conds {
			if !c.holds(args) {
				continue next
			}
		}
		return r.act
	}
	return p.calls[nr].final
}

// interesting values are where comparisons of two halves go wrong.
var interesting = []uint64{
	0, 1, 2, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 0x100000000, 0x100000001, 0x1ffffffff,
	0x200000000, 0x7fffffff00000000, 0x8000000000000000, 0xffffffff00000000, 0xfffffffffffffffe, 0xffffffffffffffff,
}

func TestConditionsCompareBothHalves(t *testing.T) {
	for _, op := range []op{opEqual, opGreater, opGreaterEqual} {
		for _, negate := range []bool{false, true} {
			for _, value := range interesting {
				for _, mask := range []uint64{full, low, full &^ low, 0x8000000000000001, 1} {
					c := cond{arg: 3, op: op, negate: negate, mask: mask, value: value}
					if op == opEqual {
						c.value &= mask
					} else if mask != full {
						continue
					}
					checkCond(t, c)
				}
			}
		}
	}
}

func checkCond(t *testing.T, c cond) {
	t.Helper()
	p := policy{calls: []decision{{[]rule{{[]cond{c}, refuse(7)}}, allow}}, beyond: allow}
	vm := newInterpreter(t, mustPack(t, p))
	for _, arg := range interesting {
		args := [6]uint64{arg ^ 5, 9, 9, arg, arg ^ 5, 9}
		want := allow
		if c.holds(args) {
			want = refuse(7)
		}
		if got := vm.run(t, call{unix.AUDIT_ARCH_X86_64, 0, args}); got != want {
			t.Errorf("%v with %#x: %#x, want %#x", c, arg, got, want)
		}
	}
}

func mustPack(t testing.TB, p policy) []byte {
	t.Helper()
	filter, err := pack(p.code(unix.AUDIT_ARCH_X86_64))
	if err != nil {
		t.Fatal(err)
	}
	return filter
}

// TestGoldenVectors are written down by hand, unlike the model above.
func TestGoldenVectors(t *testing.T) {
	cases := []struct {
		op       string
		value    uint64
		valueTwo uint64
		match    []uint64
		miss     []uint64
	}{
		{"SCMP_CMP_EQ", 0x100000002, 0, []uint64{0x100000002}, []uint64{2, 0x100000000, 0x200000002, 0x100000003}},
		{"SCMP_CMP_NE", 0x100000002, 0, []uint64{2, 0x100000000, 0x200000002}, []uint64{0x100000002}},
		{"SCMP_CMP_LT", 0x100000002, 0, []uint64{0, 0xffffffff, 0x100000001}, []uint64{0x100000002, 0x100000003, 0x200000000, full}},
		{"SCMP_CMP_LE", 0x100000002, 0, []uint64{0, 0xffffffff, 0x100000002}, []uint64{0x100000003, 0x200000000, full}},
		{"SCMP_CMP_GE", 0x100000002, 0, []uint64{0x100000002, 0x200000000, full}, []uint64{0, 0xffffffff, 0x100000001}},
		{"SCMP_CMP_GT", 0x100000002, 0, []uint64{0x100000003, 0x200000000, full}, []uint64{0, 0xffffffff, 0x100000002}},
		{"SCMP_CMP_GT", 0, 0, []uint64{1, 0x100000000}, []uint64{0}},
		{"SCMP_CMP_GE", 0, 0, []uint64{0, 1, full}, nil},
		{"SCMP_CMP_LT", 0, 0, nil, []uint64{0, 1, full}},
		{"SCMP_CMP_LE", full, 0, []uint64{0, full}, nil},
		{"SCMP_CMP_MASKED_EQ", 0xff000000ff, 0x1000000002, []uint64{0x1000000002, 0xff000010ffffff02}, []uint64{2, 0x1000000003, 0x1100000002}},
		{"SCMP_CMP_MASKED_EQ", 0x7e020000, 0, []uint64{0, 17, 0x100000000}, []uint64{0x10000000, 0x20000, 0x7e020000}},
		{"SCMP_CMP_MASKED_EQ", 0, 0, []uint64{0, full}, nil},
	}
	for _, c := range cases {
		text := fmt.Sprintf(`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["getppid"],"action":"SCMP_ACT_ERRNO",
			"errnoRet":33,"args":[{"index":5,"value":%d,"valueTwo":%d,"op":%q}]}]}`, c.value, c.valueTwo, c.op)
		vm := interpreterFor(t, text, Options{Arch: "amd64"})
		for _, arg := range c.match {
			if got := vm.run(t, call{unix.AUDIT_ARCH_X86_64, 110, [6]uint64{5: arg}}); got != refuse(33) {
				t.Errorf("%s %#x %#x does not match %#x", c.op, c.value, c.valueTwo, arg)
			}
		}
		for _, arg := range c.miss {
			if got := vm.run(t, call{unix.AUDIT_ARCH_X86_64, 110, [6]uint64{5: arg}}); got != allow {
				t.Errorf("%s %#x %#x matches %#x", c.op, c.value, c.valueTwo, arg)
			}
		}
	}
}

// interpreterFor compiles a profile in JSON, or a built-in one by its name.
func interpreterFor(t testing.TB, profile string, o Options) interpreter {
	t.Helper()
	p, ok := ByName(profile)
	if !ok {
		var err error
		if p, err = Parse([]byte(profile)); err != nil {
			t.Fatal(err)
		}
	}
	program, err := p.Compile(o)
	if err != nil {
		t.Fatal(err)
	}
	return newInterpreter(t, program.Filter)
}

// TestTreeAgreesWithPolicy compares generated code with the plain meaning, for made-up policies
// that are large enough to need long jumps and for the built-in profiles.
func TestTreeAgreesWithPolicy(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		p := randomPolicy(random)
		agree(t, random, p, unix.AUDIT_ARCH_X86_64)
	}
	for _, profile := range []Profile{Default(), Strict(), Unconfined()} {
		for _, arch := range []string{"amd64", "arm64"} {
			p, table, err := profile.policy(Options{Arch: arch, NoSetID: true})
			if err != nil {
				t.Fatal(err)
			}
			agree(t, random, p, table.audit)
		}
	}
}

func agree(t *testing.T, random *rand.Rand, p policy, audit uint32) {
	t.Helper()
	code := p.code(audit)
	filter, err := pack(code)
	if err != nil {
		t.Fatal(err)
	}
	vm := newInterpreter(t, filter)
	numbers := []uint32{600, 4095, firstX32 - 1, firstX32, firstX32 + 1, firstX32 + 41, 0x7fffffff, 0x80000000, 0xffffffff}
	for nr := range uint32(len(p.calls) + 2) {
		numbers = append(numbers, nr, nr, nr, nr)
	}
	for _, nr := range numbers {
		var args [6]uint64
		for i := range args {
			args[i] = interesting[random.IntN(len(interesting))]
			if nr < uint32(len(p.calls)) && random.IntN(2) == 0 {
				args[i] = someValue(random, p.calls[nr], i)
			}
		}
		want := p.answer(nr, args)
		if got := vm.run(t, call{audit, nr, args}); got != want {
			t.Fatalf("call %d %#x: %#x, want %#x (%d instructions)", nr, args, got, want, len(code))
		}
		if got := vm.run(t, call{unix.AUDIT_ARCH_I386, nr, args}); got != nosys {
			t.Fatalf("call %d of i386: %#x", nr, got)
		}
	}
}

// someValue picks a value that a condition of the decision mentions.
func someValue(random *rand.Rand, d decision, arg int) uint64 {
	var values []uint64
	for _, r := range d.rules {
		for _, c := range r.conds {
			if int(c.arg) == arg {
				values = append(values, c.value, c.value+1, c.value|0xabc00000000)
			}
		}
	}
	if len(values) == 0 {
		return random.Uint64()
	}
	return values[random.IntN(len(values))]
}

func randomPolicy(random *rand.Rand) policy {
	actions := []action{allow, eperm, nosys, refuse(22), killProcess, killThread, trap, logged}
	pick := func() action { return actions[random.IntN(len(actions))] }
	p := policy{calls: make([]decision, 1+random.IntN(470)), beyond: pick()}
	for i := range p.calls {
		var rules []rule
		for range random.IntN(4) * random.IntN(2) {
			r := rule{act: pick()}
			for range random.IntN(3) {
				c := cond{arg: uint8(random.IntN(6)), op: op(random.IntN(3)), negate: random.IntN(2) == 0, mask: full}
				if random.IntN(2) == 0 {
					c.mask = interesting[random.IntN(len(interesting))]
				}
				c.value = interesting[random.IntN(len(interesting))] & c.mask
				r.conds = append(r.conds, c)
			}
			rules = append(rules, r)
		}
		p.calls[i] = decide(rules, pick())
	}
	return p
}
