package seccomp

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKernelRefusesForeignABIs makes calls that this Go program cannot make: through int 0x80, with
// the numbers of i386, and with the numbers of x32. The program exits with the errno.
func TestKernelRefusesForeignABIs(t *testing.T) {
	cases := []struct {
		name string
		code []byte
	}{
		{"getpid of i386", []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80}},          // mov eax, 20; int 0x80
		{"socketcall of i386", []byte{0xb8, 102, 0, 0, 0, 0xcd, 0x80}},     // mov eax, 102; int 0x80
		{"getpid of x32", []byte{0xb8, 39, 0, 0, 0x40, 0x0f, 0x05}},        // mov eax, 0x40000027; syscall
		{"writev of x32", []byte{0xb8, 0x04, 0x02, 0, 0x40, 0x0f, 0x05}},   // mov eax, 0x40000204; syscall
		{"call of the future", []byte{0xb8, 0x84, 0x03, 0, 0, 0x0f, 0x05}}, // mov eax, 900; syscall
	}
	exit := []byte{
		0xf7, 0xd8, // neg eax
		0x89, 0xc7, // mov edi, eax
		0xb8, 60, 0, 0, 0, // mov eax, exit
		0x0f, 0x05, // syscall
	}
	open := `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"name":"acct","action":"SCMP_ACT_ERRNO"}]}`
	custom, err := Parse([]byte(open))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		file := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(file, elf(append(c.code, exit...)), 0o755); err != nil {
			t.Fatal(err)
		}
		want := "exit status 38" // ENOSYS
		if free := confined(t, "exec", Unconfined(), Options{}, file).Run(); free != nil && strings.HasPrefix(free.Error(), "signal:") {
			want = free.Error() // this kernel is built without the ABI
		}
		t.Logf("%s: %s", c.name, want)
		for _, p := range []Profile{Default(), Strict(), custom} {
			if err := confined(t, "exec", p, Options{}, file).Run(); err == nil || err.Error() != want {
				t.Errorf("%s: %s: %v, want %s", p.Name(), c.name, err, want)
			}
		}
	}
}

// elf wraps machine code in the smallest static program.
func elf(code []byte) []byte {
	const base, headers = 0x400000, 64 + 56
	size := uint64(headers + len(code))
	out := append([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, make([]byte, 9)...)
	le := binary.LittleEndian
	out = le.AppendUint16(out, 2)    // executable
	out = le.AppendUint16(out, 0x3e) // x86-64
	out = le.AppendUint32(out, 1)
	out = le.AppendUint64(out, base+headers) // entry
	out = le.AppendUint64(out, 64)           // program headers
	out = le.AppendUint64(out, 0)            // section headers
	out = le.AppendUint32(out, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} {
		out = le.AppendUint16(out, v)
	}
	out = le.AppendUint32(out, 1) // load
	out = le.AppendUint32(out, 5) // read, execute
	for _, v := range []uint64{0, base, base, size, size, 0x1000} {
		out = le.AppendUint64(out, v)
	}
	return append(out, code...)
}
