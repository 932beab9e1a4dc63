package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// B17: HOME is the user's own, writable, and never the host's; an empty one counts as unset.
func TestHome(t *testing.T) {
	const show = `echo "$HOME"; python3 -c 'import os; print(os.path.expanduser("~"))'; touch "$HOME/f" && echo writable`
	type test struct {
		flags []string
		home  string
	}
	for _, c := range fewer(4, []test{
		{nil, "/home/sandbox"},
		{[]string{"-u", "root"}, "/root"},
		{[]string{"-u", "0"}, "/root"},
		{[]string{"-u", "sandbox"}, "/home/sandbox"},
		{[]string{"-u", "1000"}, "/home/sandbox"},
		{[]string{"-u", "1000:50"}, "/home/sandbox"},
		{[]string{"-u", "4242"}, "/home/sandbox"}, // without a line in passwd
		{[]string{"-u", "nobody"}, "/home/sandbox"},
		{[]string{"-e", "HOME=/tmp"}, "/tmp"},
		{[]string{"-e", "HOME="}, "/home/sandbox"},
	}) {
		t.Run(strings.Join(c.flags, " "), func(t *testing.T) {
			t.Parallel()
			s := begin(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Environ(), "HOME=/host-home") },
				append(append([]string{"run"}, c.flags...), "--", "sh", "-c", show)...)
			s.wait(t, 20*time.Second).want(t, 0, c.home+"\n"+c.home+"\nwritable\n")
		})
	}
}

// Nothing of husk's own environment gets in, but what -e NAME asks for by name.
func TestEnvironmentOfCallerStaysOut(t *testing.T) {
	id := create(t)
	set := func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Environ(), "SECRET_TOKEN=s3cret", "LD_PRELOAD=", "PYTHONPATH=/host", "WANTED=yes", "TERM=dumb")
	}
	for _, where := range [][]string{{"run"}, {"exec", id}} {
		args := append(append([]string{where[0], "-e", "WANTED", "-e", "EXTRA=a=b c"}, where[1:]...), "--", "env")
		o := begin(t, set, args...).wait(t, 10*time.Second)
		names := map[string]string{}
		for line := range strings.Lines(o.stdout) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			names[name] = value
		}
		if names["WANTED"] != "yes" || names["EXTRA"] != "a=b c" {
			t.Errorf("%q", o.stdout)
		}
		for name := range names {
			switch name {
			case "WANTED", "EXTRA", "PATH", "HOME", "USER", "LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS":
			default:
				t.Errorf("%s got in", name)
			}
		}
	}
	o := begin(t, set, "run", "-e", "NOT_SET_ANYWHERE", "--", "true").wait(t, 10*time.Second)
	o.wantError(t, "NOT_SET_ANYWHERE")
}

// B18: husk's umask does not leak.
func TestUmask(t *testing.T) {
	o := hostShell(t, "umask 077; exec "+bin+` run -u root -- sh -c 'umask; touch /tmp/a; mkdir b; stat -Lc %a /tmp/a b /etc/passwd /tmp /bin/sh'`)
	o.want(t, 0, "0022\n644\n755\n644\n1777\n755\n")
	o = hostShell(t, "umask 077; "+bin+" create")
	id := strings.TrimSpace(o.stdout)
	t.Cleanup(func() { husk(t, "rm", "-f", id) })
	husk(t, "exec", id, "--", "sh", "-c", "cat /etc/passwd >/dev/null && touch f && stat -c %a f . /home/sandbox").want(t, 0, "644\n755\n755\n")
	hostShell(t, "umask 000; exec "+bin+" run -- sh -c umask").want(t, 0, "0022\n")
}

// B21: UTF-8 comes out whatever locale husk itself was started in, and in every way of starting.
func TestLocale(t *testing.T) {
	id := create(t)
	python := []string{"--", "python3", "-c", "import sys; print(sys.stdout.encoding, 'é☕')"}
	for _, locale := range fewer(2, []string{"LC_ALL=xx_XX.bad", "LC_ALL=C", "UNUSED=1", "LC_ALL=POSIX", "LANG=de_DE.ISO-8859-1"}) {
		t.Run(locale, func(t *testing.T) {
			for _, where := range [][]string{{"run"}, {"exec", id}} {
				s := begin(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Environ(), locale) }, append(where, python...)...)
				s.wait(t, 10*time.Second).want(t, 0, "utf-8 é☕\n")
			}
		})
	}
	// the caller's own wins
	sh(t, `echo $LANG`, "-e", "LANG=C").want(t, 0, "C\n")
}

// B8: scripts of any size by standard input; what cannot be an argument is said in so many words.
func TestLongArguments(t *testing.T) {
	id := create(t)
	const kib = 1 << 10
	for _, n := range fewer(1, []int{200 * kib, 5 << 20}) {
		script := "#" + strings.Repeat("x", n) + "\nprint('ran')\n"
		huskInput(t, strings.NewReader(script), "exec", "-i", id, "--", "python3", "-").want(t, 0, "ran\n")
		shell := strings.Repeat("# a comment of this script\n", n/27) + "echo ran\n"
		huskInput(t, strings.NewReader(shell), "exec", "-i", id, "--", "sh").want(t, 0, "ran\n")
	}
	// one string of up to 128 KiB - 1, and many of them: 3 MiB in all
	longest := strings.Repeat("a", 128*kib-1)
	husk(t, "exec", id, "--", "sh", "-c", "echo ${#0}", longest).want(t, 0, strconv.Itoa(len(longest))+"\n")
	// (husk itself is started with these arguments, so the test's own stack limit must allow it)
	var many []string
	for range 15 * 2 {
		many = append(many, longest[:64*kib])
	}
	o := husk(t, append([]string{"exec", id, "--", "python3", "-c", "import sys; print(sum(map(len, sys.argv[1:])))"}, many...)...)
	o.want(t, 0, strconv.Itoa(30*64*kib)+"\n")
	var env bytes.Buffer
	for i := range 30 { // and by a file, which the test's own limit does not bind
		env.WriteString("LONG_" + strconv.Itoa(i) + "=" + strings.Repeat("b", 100*kib) + "\n")
	}
	file := envFile(t, "env", env.String())
	husk(t, "exec", "--env-file", file, id, "--", "python3", "-c",
		"import os; print(sum(len(v) for k, v in os.environ.items() if k.startswith('LONG_')))").want(t, 0, strconv.Itoa(30*100*kib)+"\n")
	// too long is the caller's fault and a Result, not an internal error
	file = envFile(t, "too-long", "LONG="+strings.Repeat("c", 200*kib)+"\n")
	o = husk(t, "exec", "--env-file", file, id, "--", "true")
	if o.code != 126 || !strings.Contains(o.stderr, "argument list too long") || strings.Count(o.stderr, "\n") != 1 {
		t.Errorf("exit code %d, stderr %.300q", o.code, o.stderr)
	}
}

func envFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
