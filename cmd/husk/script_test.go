package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/husk-sandbox/husk/runtime"
)

func TestMain(m *testing.M) {
	runtime.Init()
	testscript.Main(m, map[string]func(){"husk": main})
}

// TestScripts: what needs no root, one file per subject.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/scripts", Cmds: scriptCommands(), Setup: setUp})
}

// TestRootScripts: the command line end to end.
func TestRootScripts(t *testing.T) {
	needRoot(t)
	testscript.Run(t, testscript.Params{Dir: "testdata/root", Cmds: scriptCommands(), Setup: setUp})
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){"code": code}
}

// code N COMMAND ARG… checks the exit code, which testscript's exec does not.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// setUp gives a script a store, a run directory and a cgroup of its own, and the husk of $HUSK_BIN, if
// that is set.
func setUp(env *testscript.Env) error {
	if husk := os.Getenv("HUSK_BIN"); husk != "" {
		bin := filepath.Join(env.WorkDir, "bin")
		if err := os.Mkdir(bin, 0o755); err != nil {
			return err
		}
		if err := os.Symlink(husk, filepath.Join(bin, "husk")); err != nil {
			return err
		}
		env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
	}
	own, remove, err := ownPlaces(env.WorkDir)
	if err != nil {
		return err
	}
	env.Defer(remove)
	for name, value := range own {
		env.Setenv(name, value)
	}
	return nil
}

// ownPlaces are the environment variables that keep a test away from the host's own store.
func ownPlaces(dir string) (env map[string]string, remove func(), err error) {
	if os.Geteuid() != 0 {
		return nil, func() {}, nil
	}
	run, err := os.MkdirTemp("/run", "husk-test-")
	if err != nil {
		return nil, nil, err
	}
	parent := "/" + filepath.Base(run)
	options := runtime.Options{Root: filepath.Join(dir, "state"), Run: run, CgroupParent: parent}
	remove = func() {
		removeSandboxes(options)
		_ = os.RemoveAll(run)
		for _, pattern := range []string{"/sys/fs/cgroup" + parent, "/sys/fs/cgroup/*" + parent} {
			groups, _ := filepath.Glob(pattern)
			for _, group := range groups {
				removeGroups(group)
			}
		}
	}
	return map[string]string{
		"HUSK_ROOT": options.Root, "HUSK_RUN": run, "HUSK_CGROUP_PARENT": parent,
	}, remove, nil
}

// removeSandboxes removes what a failed test left running.
func removeSandboxes(options runtime.Options) {
	rt, err := runtime.Open(options)
	if err != nil {
		return
	}
	defer rt.Close()
	infos, err := rt.List(context.Background())
	for _, info := range infos {
		sb, e := rt.Sandbox(info.ID)
		if e == nil {
			e = sb.Remove(context.Background(), true)
		}
		err = errors.Join(err, e)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "left behind:", err)
	}
}

// removeGroups removes a tree of empty cgroups, the deepest first.
func removeGroups(top string) {
	var groups []string
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, path)
		}
		return nil
	})
	for i := range groups {
		if err := os.Remove(groups[len(groups)-1-i]); err != nil {
			fmt.Fprintln(os.Stderr, "left behind:", err)
		}
	}
}
