package integration

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// numbered is size bytes of which no two blocks are alike, so that loss and reordering show.
type numbered struct {
	left  int64
	block [32 << 10]byte
	at    int
	count uint64
	sum   hash.Hash
}

func newNumbered(size int64) *numbered {
	n := &numbered{left: size, sum: sha256.New()}
	for i := range n.block {
		n.block[i] = byte(i * 7)
	}
	n.at = len(n.block)
	return n
}

func (n *numbered) Read(b []byte) (int, error) {
	if n.left == 0 {
		return 0, io.EOF
	}
	if n.at == len(n.block) {
		n.count++
		binary.BigEndian.PutUint64(n.block[:], n.count)
		n.at = 0
	}
	k := copy(b, n.block[n.at:])
	k = int(min(int64(k), n.left))
	n.sum.Write(b[:k])
	n.at += k
	n.left -= int64(k)
	return k, nil
}

// counted hashes and counts what is written to it.
type counted struct {
	sum  hash.Hash
	size int64
	slow time.Duration // before each Write
}

func (c *counted) Write(b []byte) (int, error) {
	time.Sleep(c.slow)
	c.size += int64(len(b))
	return c.sum.Write(b)
}

func megabytes(n int64) int64 {
	if inVM() {
		return n << 20 / 32
	}
	return n << 20
}

// B13: much input and as much output at once, nothing lost, nothing out of order, no deadlock.
// Issue 2 item 5: 1 GiB.
func TestStreamsLarge(t *testing.T) {
	in, out := newNumbered(megabytes(1024)), &counted{sum: sha256.New()}
	s := begin(t, func(c *exec.Cmd) { c.Stdin, c.Stdout = in, out }, "run", "-i", "--", "cat")
	if o := s.wait(t, time.Minute); o.code != 0 || o.stderr != "" {
		t.Errorf("exit code %d, stderr %q", o.code, o.stderr)
	}
	if out.size != megabytes(1024) || !bytes.Equal(in.sum.Sum(nil), out.sum.Sum(nil)) {
		t.Errorf("%d bytes came back, of %d, and they are not the same", out.size, megabytes(1024))
	}
}

// B13: the answer is read only after all is sent: the program waits, nothing deadlocks before the pipes
// are full, and all of it comes when reading begins.
func TestStreamsSlowReader(t *testing.T) {
	out := &counted{sum: sha256.New(), slow: 3 * time.Millisecond}
	want := sha256.New()
	const lines = 500_000
	var size int64
	for i := 1; i <= lines; i++ {
		n, _ := fmt.Fprintln(want, i)
		size += int64(n)
	}
	s := begin(t, func(c *exec.Cmd) { c.Stdout = out }, "run", "--", "seq", strconv.Itoa(lines))
	if o := s.wait(t, time.Minute); o.code != 0 || o.stderr != "" {
		t.Errorf("exit code %d, stderr %q", o.code, o.stderr)
	}
	if out.size != size || !bytes.Equal(out.sum.Sum(nil), want.Sum(nil)) {
		t.Errorf("%d bytes of %d came, or not the same", out.size, size)
	}
}

// A reader that does not read holds the program back instead of filling husk's memory, and what it
// wrote before it ended comes whole, however late it is read.
func TestStreamsStalledReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mark := newMark(t)
	s := begin(t, func(c *exec.Cmd) { c.Stdout = w }, "run", "-e", "MARK="+mark, "--", "sh", "-c", "head -c 100m /dev/zero; echo end")
	w.Close()
	eventually(t, 10*time.Second, "the program runs", func() bool { return len(holders(mark)) > 0 })
	time.Sleep(300 * time.Millisecond) // time in which a husk that buffers would grow
	if rss := residentMiB(t, s.Process.Pid); rss > 64 {
		t.Errorf("husk has %d MiB in memory", rss)
	}
	if len(holders(mark)) == 0 {
		t.Error("the program was not held back")
	}
	out, err := io.ReadAll(r)
	if err != nil || len(out) != 100<<20+4 || !bytes.HasSuffix(out, []byte("\x00end\n")) {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	s.wait(t, 10*time.Second).want(t, 0, "")
}

// The last output is taken from a slow reader's pipe after the program's end too.
func TestStreamsLateReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mark := newMark(t)
	s := begin(t, func(c *exec.Cmd) { c.Stdout = w }, "run", "-e", "MARK="+mark, "--", "sh", "-c", "head -c 120000 /dev/zero; printf tail")
	w.Close()
	// 64 KiB in our pipe, 56 KiB in the command's: it ends with both full
	eventually(t, 10*time.Second, "the program has ended", func() bool {
		var b [1]byte
		n, _ := r.Read(b[:])
		return n == 1 && len(holders(mark)) == 0
	})
	time.Sleep(1500 * time.Millisecond) // longer than any grace for a quiet stream
	out, _ := io.ReadAll(r)
	if !bytes.HasSuffix(out, []byte("\x00tail")) {
		t.Errorf("%d bytes, the end is %q", len(out), out[max(0, len(out)-10):])
	}
	s.wait(t, 10*time.Second).want(t, 0, "")
}

func residentMiB(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(text)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// husk run -- yes | head -1 ends at once, by SIGPIPE in the program as in any pipeline; H15.
func TestStreamsClosedReader(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"yes"}, 141},
		{[]string{"python3", "-c", "import sys\ntry:\n while True: print('y')\nexcept BrokenPipeError: sys.stderr.close(); sys.exit(3)"}, 3},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			mark := newMark(t)
			s := begin(t, func(c *exec.Cmd) { c.Stdout = w }, append([]string{"run", "-e", "MARK=" + mark, "--"}, c.args...)...)
			w.Close()
			var line [2]byte
			if _, err := io.ReadFull(r, line[:]); err != nil || string(line[:]) != "y\n" {
				t.Errorf("%q, %v", line, err)
			}
			r.Close()
			if o := s.wait(t, 3*time.Second); o.code != c.code || o.stderr != "" {
				t.Errorf("exit code %d, stderr %q; want %d", o.code, o.stderr, c.code)
			}
			wantNothingLeft(t, mark, "")
		})
	}
	// in a shell's pipeline, with husk's own exit code seen
	o := hostShell(t, bin+" run -- yes | head -n 1; echo ${PIPESTATUS[0]}")
	o.want(t, 0, "y\n141\n")
}

// A reader that is gone from the start, and a program that writes once and goes on: no error of husk's
// hides the program's own end.
func TestStreamsClosedReaderLater(t *testing.T) {
	o := hostShell(t, bin+" run -- sh -c 'trap \"\" PIPE; sleep 0.2; echo lost; exit 5' | true; echo ${PIPESTATUS[0]}")
	if o.stdout != "5\n" {
		t.Errorf("%+v", o)
	}
	o = hostShell(t, bin+" run -- sh -c 'echo out; exit 5' >&-")
	if o.code != 5 && o.code != 125 {
		t.Errorf("%+v", o)
	}
	o = hostShell(t, bin+" run -- sh -c 'echo out' >/dev/full")
	if o.code != 125 || !strings.Contains(o.stderr, "no space left on device") {
		t.Errorf("lost output was not reported: %+v", o)
	}
}

// Every byte value comes through, both ways, in text or in its base64 twin.
func TestStreamsBinary(t *testing.T) {
	all := make([]byte, 256*4)
	for i := range all {
		all[i] = byte(i)
	}
	huskInput(t, bytes.NewReader(all), "run", "-i", "--", "cat").want(t, 0, string(all))
	huskInput(t, bytes.NewReader(all), "run", "-i", "--", "sh", "-c", "cat >&2").want(t, 0, "")
	r := decode(t, huskInput(t, bytes.NewReader(all), "run", "-i", "--json", "--", "cat"))
	if r.StdoutBase64 == nil || *r.StdoutBase64 != base64.StdEncoding.EncodeToString(all) || r.StdoutBytes != int64(len(all)) || r.StdoutTruncated {
		t.Errorf("%+v", r)
	}
	if r := decode(t, husk(t, "run", "--json", "--", "printf", `é☕\0\177`)); r.StdoutBase64 != nil || r.Stdout != "é☕\x00\x7f" {
		t.Errorf("text got a twin or is changed: %q", r.Stdout)
	}
}

// H1: not a byte of short-lived commands is lost, and nothing of the two streams is mixed up.
func TestStreamsNothingLost(t *testing.T) {
	id := create(t)
	var numbers strings.Builder
	for i := 1; i <= 100000; i++ {
		fmt.Fprintln(&numbers, i)
	}
	for _, c := range []struct {
		n           int
		script      string
		code        int
		out, errOut string
	}{
		{100, "echo hello", 0, "hello\n", ""},
		{20, "seq 1 100000", 0, numbers.String(), ""},
		{40, "echo o; echo e >&2; exit 3", 3, "o\n", "e\n"},
		{20, "head -c 65537 /dev/zero; kill -9 $$", 137, strings.Repeat("\x00", 65537), ""},
		{20, "printf late & exit 0", 0, "", ""},
	} {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel() // so that they disturb each other
			for i := range rounds(c.n) {
				where := []string{"exec", id}
				if i%10 == 0 {
					where = []string{"run"}
				}
				o := husk(t, append(where, "--", "sh", "-c", c.script)...)
				if strings.HasPrefix(c.script, "printf") {
					continue // either is right: it must only end
				}
				if o.code != c.code || o.stdout != c.out || o.stderr != c.errOut {
					t.Fatalf("round %d: exit code %d, %d bytes of %d, stderr %q", i, o.code, len(o.stdout), len(c.out), o.stderr)
				}
			}
		})
	}
}

// Within one stream the order is kept, also when two processes write to it in turn.
func TestStreamsOrder(t *testing.T) {
	var want strings.Builder
	for i := range 300 {
		fmt.Fprintf(&want, "%d\nsub %d\n", i, i)
	}
	sh(t, `i=0; while [ $i -lt 300 ]; do echo $i; (echo sub $i >&2); i=$((i+1)); done 2>&1`).want(t, 0, want.String())
}

// H8: lines longer than anybody's buffer.
func TestStreamsLongLine(t *testing.T) {
	o := sh(t, "head -c 1000000 /dev/zero | tr '\\0' a; echo; echo end")
	o.want(t, 0, strings.Repeat("a", 1000000)+"\nend\n")
	r, _ := shResult(t, "head -c 1000000 /dev/zero | tr '\\0' a; echo; echo end")
	if r.Stdout != o.stdout {
		t.Errorf("%d bytes in the Result", len(r.Stdout))
	}
	size := megabytes(100)
	out := &counted{sum: sha256.New()}
	s := begin(t, func(c *exec.Cmd) { c.Stdout = out }, "run", "--", "sh", "-c", fmt.Sprintf("head -c %d /dev/zero; echo; echo end", size))
	s.wait(t, time.Minute)
	if out.size != size+5 {
		t.Errorf("%d bytes of %d", out.size, size+5)
	}
	line := strings.Repeat("x", 3<<20) + "\n"
	huskInput(t, strings.NewReader(line+"y\n"), "run", "-i", "--", "tail", "-n", "1").want(t, 0, "y\n")
}

// H10: up to the cap everything is kept, beyond it the head, the true size and the program's own end;
// the program is not held up.
func TestStreamsCap(t *testing.T) {
	const limit = 64 << 10
	id := create(t)
	for _, n := range fewer(3, []int64{limit - 1, limit, limit + 1, 0, 1, 3 * limit}) {
		for _, stream := range []string{"stdout", "stderr"} {
			script := fmt.Sprintf("head -c %d /dev/zero | tr '\\0' a", n)
			if stream == "stderr" {
				script += " >&2; echo small"
			}
			o := husk(t, "exec", "--json", "--output", "64k", id, "--", "sh", "-c", script+"; exit 4")
			r := decode(t, o)
			kept, size, cut := r.Stdout, r.StdoutBytes, r.StdoutTruncated
			if stream == "stderr" {
				if kept, size, cut = r.Stderr, r.StderrBytes, r.StderrTruncated; r.Stdout != "small\n" || r.StdoutTruncated {
					t.Errorf("%d on stderr: stdout %q", n, r.Stdout)
				}
			}
			if o.code != 4 || size != n || cut != (n > limit) || kept != strings.Repeat("a", int(min(n, limit))) {
				t.Errorf("%d bytes on %s: exit code %d, size %d, truncated %v, kept %d", n, stream, o.code, size, cut, len(kept))
			}
		}
	}
	r, o := shResult(t, "seq 1 2000000; echo LAST; exit 4")
	if o.code != 4 || len(r.Stdout) != 8<<20 || !r.StdoutTruncated || r.StdoutBytes != 14888901 || !strings.HasPrefix(r.Stdout, "1\n2\n3\n") {
		t.Errorf("exit code %d, kept %d of %d, truncated %v", o.code, len(r.Stdout), r.StdoutBytes, r.StdoutTruncated)
	}
	r, _ = shResult(t, "seq 1 2000000", "--output", "unlimited")
	if len(r.Stdout) != 14888896 || r.StdoutTruncated {
		t.Errorf("unlimited kept %d, truncated %v", len(r.Stdout), r.StdoutTruncated)
	}
}

// H10, H2: a character that the cap cuts in two is no damage: the text ends before it, and the exact
// bytes are beside it.
func TestStreamsCapInCharacter(t *testing.T) {
	text := strings.Repeat("☕", 1000)
	for cut := 1000; cut <= 1003; cut++ {
		r := decode(t, husk(t, "run", "--json", "--output", fmt.Sprintf("%db", cut), "--", "printf", "%s", text))
		if want := text[:cut/3*3]; r.Stdout != want || !r.StdoutTruncated || r.StdoutBytes != 3000 {
			t.Errorf("at %d: %d bytes of text, truncated %v, %d in all", cut, len(r.Stdout), r.StdoutTruncated, r.StdoutBytes)
		}
		exact := base64.StdEncoding.EncodeToString([]byte(text[:cut]))
		if whole := cut%3 == 0; whole != (r.StdoutBase64 == nil) || !whole && *r.StdoutBase64 != exact {
			t.Errorf("at %d: base64 %v", cut, r.StdoutBase64)
		}
	}
	// bytes that are no text are marked, the others kept
	r := decode(t, husk(t, "run", "--json", "--", "printf", "a\\377b\\n"))
	if r.Stdout != "a\uFFFDb\n" || r.StdoutBase64 == nil || *r.StdoutBase64 != base64.StdEncoding.EncodeToString([]byte("a\xffb\n")) {
		t.Errorf("%q %v", r.Stdout, r.StdoutBase64)
	}
}

// H2: a character written in two pieces is whole; and an unfinished one at the end is not held back.
func TestStreamsSplitCharacter(t *testing.T) {
	r, _ := shResult(t, `printf '\342\230'; sleep 0.2; printf '\225\n'; printf '\342\230' >&2; sleep 0.2; printf '\225\n' >&2`)
	if r.Stdout != "☕\n" || r.Stderr != "☕\n" {
		t.Errorf("%q %q", r.Stdout, r.Stderr)
	}
	sh(t, `printf 'x\342\230'`).want(t, 0, "x\xe2\x98")
}

// B11: without input there is end of file at once, not husk's own standard input.
func TestStdinNone(t *testing.T) {
	id := create(t)
	for _, c := range []struct {
		args   []string
		code   int
		stdout string
	}{
		{[]string{"sh", "-c", "cat; echo rc=$?"}, 0, "rc=0\n"},
		{[]string{"grep", "x"}, 1, ""},
		{[]string{"python3", "-c", "try: input()\nexcept EOFError: print('EOF')"}, 0, "EOF\n"},
		{[]string{"sh", "-c", "read x || echo none"}, 0, "none\n"},
		{[]string{"wc", "-c"}, 0, "0\n"},
	} {
		// what husk itself could read must not get in
		for _, where := range [][]string{{"run", "--timeout", "20"}, {"exec", "--timeout", "20", id}} {
			huskInput(t, strings.NewReader("protocol\n"), append(append(where, "--"), c.args...)...).want(t, c.code, c.stdout)
		}
	}
}

// B13: end of file is passed on, text without a newline comes whole, and a program that does not read
// is no error.
func TestStdin(t *testing.T) {
	id := create(t)
	exec := func(input, script string) outcome {
		return huskInput(t, strings.NewReader(input), "exec", "-i", id, "--", "sh", "-c", script)
	}
	exec("", "wc -c").want(t, 0, "0\n")
	exec("no newline", "cat").want(t, 0, "no newline")
	exec("one\ntwo\n", "read a; read b; echo $b $a; read c || echo end").want(t, 0, "two one\nend\n")
	big := strings.Repeat("0123456789abcde\n", 1<<20/16*4)
	exec(big, "true").want(t, 0, "")
	exec(big, "exec 0<&-; sleep 0.3; echo slept").want(t, 0, "slept\n")
	exec(big, "head -c 5; exit 7").want(t, 7, "01234")
	exec(big, "sha256sum | cut -c1-8").want(t, 0, fmt.Sprintf("%x", sha256.Sum256([]byte(big)))[:8]+"\n")
}

// Input that stays open does not keep a program, nor husk, from ending.
func TestStdinStaysOpen(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s := begin(t, func(c *exec.Cmd) { c.Stdin = r }, "run", "-i", "--", "sh", "-c", "read line; echo got $line")
	r.Close()
	if _, err := w.WriteString("this\n"); err != nil {
		t.Fatal(err)
	}
	s.wait(t, 5*time.Second).want(t, 0, "got this\n")
}

// Input comes as it is typed, not when a buffer is full.
func TestStdinIsNotHeldBack(t *testing.T) {
	in, out := pipes(t)
	s := begin(t, func(c *exec.Cmd) { c.Stdin, c.Stdout = in.r, out.w }, "run", "-i", "--", "sh", "-c", "while read line; do echo \"<$line>\"; done")
	in.r.Close()
	out.w.Close()
	for i := range 5 {
		fmt.Fprintf(in.w, "%d\n", i)
		buf := make([]byte, 10)
		n, err := out.r.Read(buf)
		if want := fmt.Sprintf("<%d>\n", i); err != nil || string(buf[:n]) != want {
			t.Fatalf("%q, %v; want %q", buf[:n], err, want)
		}
	}
	in.w.Close()
	s.wait(t, 5*time.Second).want(t, 0, "")
}

type pipe struct{ r, w *os.File }

// pipes gives two, closed at the end of the test.
func pipes(t *testing.T) (a, b pipe) {
	t.Helper()
	for _, p := range []*pipe{&a, &b} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		*p = pipe{r, w}
		t.Cleanup(func() { r.Close(); w.Close() })
	}
	return a, b
}

// A program sees pipes, never husk's own descriptors, and no others.
func TestStreamsAreNotTheCallers(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := begin(t, func(c *exec.Cmd) { c.Stdin, c.Stdout, c.ExtraFiles = f, f, []*os.File{f} },
		"run", "-i", "--", "sh", "-c", "readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2; ls /proc/self/fd")
	s.wait(t, 10*time.Second)
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 7 { // ls itself has the directory open as 3
		t.Fatalf("%q", lines)
	}
	for i, line := range lines[:3] {
		if !strings.HasPrefix(line, "pipe:[") {
			t.Errorf("descriptor %d is %q", i, line)
		}
	}
	if got := strings.Join(lines[3:], " "); got != "0 1 2 3" {
		t.Errorf("descriptors inside: %s", got)
	}
}
