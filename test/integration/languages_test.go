package integration

import (
	"os/exec"
	"strings"
	"testing"
)

// language is one that the base host has where the host has it.
type language struct {
	program string // that must be on the host
	script  string
	stdout  string
	heavy   string // why it is left out under emulation
	flags   []string
}

func languages() map[string]language {
	return map[string]language{
		"sh":   {program: "sh", script: `for i in 1 2 3; do echo $((i*14)); done | tail -n 1`, stdout: "42\n"},
		"bash": {program: "bash", script: `bash -c 'a=(6 7); echo $((a[0]*a[1])) "${BASH_VERSION:+bash}"; wc -l < <(echo x)'`, stdout: "42 bash\n1\n"},
		"perl": {program: "perl", script: `perl -MData::Dumper -MPOSIX -e 'print POSIX::floor(42.5), "\n"'`, stdout: "42\n"},
		"python": {program: "python3", stdout: "42\n{'a': 1}\nx\n", script: `cat >p.py <<'E'
import json, ssl, sqlite3, subprocess, concurrent.futures as c
with c.ProcessPoolExecutor(2) as e: print(sum(e.map(abs, [-40, 2])))
print(json.loads('{"a": 1}')); print(subprocess.run(["echo", "x"], capture_output=True, text=True).stdout.strip())
E
python3 p.py`},
		"gcc": {program: "gcc", stdout: "42\n", script: `cat >p.c <<'E'
#include <pthread.h>
#include <stdio.h>
static void *f(void *x) { *(int *)x *= 2; return 0; }
int main(void) { pthread_t t; int n = 21; pthread_create(&t, 0, f, &n); pthread_join(t, 0); printf("%d\n", n); }
E
gcc -Wall -O2 -o p p.c && ./p`},
		"node": {program: "node", stdout: "ok\n42\n", script: `cat >p.js <<'E'
const { Worker } = require("worker_threads");
require("fs").readFile("/etc/passwd", () => { console.log("ok"); new Worker("console.log(6*7)", { eval: true }); });
E
node p.js`},
		"go": {program: "go", heavy: "Go's compiler; gcc is the one that runs everywhere", stdout: "42\n", flags: []string{"--memory", "2g", "--cpus", "2", "--tmpfs", "/workspace:size=700m,exec"}, script: `cat >p.go <<'E'
package main
func main() { c := make(chan int); go func() { c <- 42 }(); println(<-c) } // without fmt, which takes long to compile
E
export GOCACHE=/workspace/cache TMPDIR=/workspace; go build -o p p.go && ./p 2>&1`},
		"java": {program: "javac", stdout: "42\ntrue\n", flags: []string{"--cpus", "2"}, script: `cat >P.java <<'E'
public class P { public static void main(String[] a) throws Exception {
	Thread t = new Thread(() -> System.out.println(6 * 7)); t.start(); t.join();
	System.out.println(Runtime.getRuntime().maxMemory() < 512L << 20);
} }
E
javac P.java && java P`},
	}
}

// TestLanguages covers point 2 of what must work: compile and run what the host has, with the default
// profile and limits unless said otherwise.
func TestLanguages(t *testing.T) {
	for name, l := range languages() {
		t.Run(name, func(t *testing.T) {
			if l.heavy != "" {
				heavy(t, l.heavy)
			}
			onHost(t, l.program)
			o := sh(t, l.script, l.flags...)
			if o.code != 0 || o.stdout != l.stdout {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %q", o.code, o.stdout, o.stderr, l.stdout)
			}
		})
	}
}

// onHost skips where the host itself has no such program.
func onHost(t *testing.T, program string) {
	t.Helper()
	path := "/usr/local/sbin:/usr/local/bin:/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for dir := range strings.SplitSeq(path, ":") {
		if _, err := exec.LookPath(dir + "/" + program); err == nil {
			return
		}
	}
	t.Skip("heavy: this host has no " + program)
}

// TestStrictLanguages: the strict profile is enough for an interpreter and a compiler.
func TestStrictLanguages(t *testing.T) {
	for _, name := range []string{"bash", "perl", "python", "gcc"} {
		l := languages()[name]
		sh(t, l.script, "--seccomp", "strict").want(t, 0, l.stdout)
	}
}

// TestMemorySeenByRuntimes covers C13: heaps follow the sandbox's limit, not the host's memory.
func TestMemorySeenByRuntimes(t *testing.T) {
	heavy(t, "JVM and V8 under emulation")
	onHost(t, "node")
	o := husk(t, "run", "--memory", "256m", "--", "node", "-e", "console.log(process.constrainedMemory() === 268435456, v8.getHeapStatistics().heap_size_limit < 300 * 2**20)")
	if o.code != 0 || !strings.HasPrefix(o.stdout, "true ") {
		t.Errorf("exit code %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
}
