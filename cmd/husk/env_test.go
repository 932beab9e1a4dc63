package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func lookupHere(name string) (string, bool) { return "caller's", name == "HERE" }

func TestEnvFile(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		env  []string
		err  string
	}{
		"plain":    {data: "A=1\nB=2", env: []string{"A=1", "B=2"}},
		"comments": {data: "# A=1\n\n   \n\t# x\nB=#2 # kept\n", env: []string{"B=#2 # kept"}},
		"verbatim": {data: "A=\"q\" '\nB= x \nC=a=b\nD=\n", env: []string{`A="q" '`, "B= x ", "C=a=b", "D="}},
		"indented": {data: "  A=1\n", env: []string{"A=1"}},
		"windows":  {data: "\ufeffA=1\r\n\r\nB=2\r\n", env: []string{"A=1", "B=2"}},
		"caller":   {data: "HERE\n", env: []string{"HERE=caller's"}},
		"unset":    {data: "A=1\nGONE\n", err: `f:2: "GONE": not set here`},
		"no name":  {data: "\n=x\n", err: `f:2: empty name`},
		"nul":      {data: "A=\x00\n", err: `f:1: "A": contains a NUL byte`},
		"export":   {data: "export A=1\n", err: `f:1: "export A": a space in the name`},
		"several":  {data: "=1\n=2\n", err: "f:1: empty name: want NAME=value, or NAME to pass the present value on\nf:2: "},
		"empty":    {},
		"not utf8": {data: "A=\xff\n", env: []string{"A=\xff"}},
	} {
		env, err := parseEnvFile("f", c.data, lookupHere)
		if c.err != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %s…", name, err, c.err)
			}
			continue
		}
		if err != nil || !slices.Equal(env, c.env) {
			t.Errorf("%s: %q, %v; want %q", name, env, err, c.env)
		}
	}
}

// TestEnvOrder: what --env says comes after the files, so that it wins.
func TestEnvOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte("A=file\nB=file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := parse(t, "run", "-e", "A=flag", "--env-file", file, "--", "env")
	if want := []string{"A=file", "B=file", "A=flag"}; err != nil || !slices.Equal(r.spec.Env, want) {
		t.Errorf("%q, %v; want %q", r.spec.Env, err, want)
	}
}

func TestEnvFileTooLong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, make([]byte, maxEnvFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readEnvFile(file, lookupHere); err == nil || !strings.Contains(err.Error(), "longer than 4 MiB") {
		t.Errorf("error %v", err)
	}
}

// FuzzEnvFile: whatever is in the file, each entry that comes out is one that execve(2) takes, and is
// some line of the file.
func FuzzEnvFile(f *testing.F) {
	for _, data := range []string{"A=1\n", "# c\r\nB\r\n", "\ufeffHERE", "=", "\x00", "a b=c", "A=\xff"} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		env, err := parseEnvFile("f", data, lookupHere)
		if err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("error does not name the line: %v", err)
		}
		if len(env) > strings.Count(data, "\n")+1 {
			t.Errorf("%d entries of %q", len(env), data)
		}
		for _, entry := range env {
			name, _, ok := strings.Cut(entry, "=")
			if !ok || name == "" || strings.ContainsAny(entry, "\x00\n") || !strings.Contains(data, name) {
				t.Errorf("entry %q of %q", entry, data)
			}
		}
	})
}
