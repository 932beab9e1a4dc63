package integration

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lookAround is a program that tries to reach a port on the host's loopback, an abstract socket, and
// what a cloud has.
const lookAround = `
import socket, sys, time
def reach(family, address):
    s = socket.socket(family); s.settimeout(5)
    try: s.connect(address); return "reached"
    except OSError as e: return e.strerror or str(e)
print(open("/proc/net/unix").read().count(sys.argv[2]))
print(reach(socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))))
print(reach(socket.AF_UNIX, "\0" + sys.argv[2]))
`

// hostListeners are a TCP port on the host's loopback and an abstract unix socket.
func hostListeners(t *testing.T) (port, abstract string) {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	abstract = "husk-canary-" + filepath.Base(t.TempDir()) + t.Name()
	unix, err := net.Listen("unix", "@"+abstract)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close() })
	return fmt.Sprint(tcp.Addr().(*net.TCPAddr).Port), abstract
}

// TestHostUnreachable covers E7, probes 39 and 40: without a network, nothing that listens on the host is
// reached or seen; with --net host everything is, as docs/security.md says.
func TestHostUnreachable(t *testing.T) {
	port, abstract := hostListeners(t)
	asUsers(t, func(t *testing.T, flags ...string) {
		for _, scope := range []string{"execute", "sandbox"} {
			o := husk(t, append(append([]string{"run", "--scope", scope}, flags...), "--", "python3", "-c", lookAround, port, abstract)...)
			o.want(t, 0, "0\nConnection refused\nConnection refused\n")
		}
	})
	o := husk(t, "run", "--net", "host", "--", "python3", "-c", lookAround, port, abstract)
	o.want(t, 0, "1\nreached\nreached\n")
}

// TestLoopback covers E1: lo is up, and the outside fails at once.
func TestLoopback(t *testing.T) {
	program := `
import socket as s, time
for family, address in (ADDRESSES):
    a = s.create_server((address, 0), family=family); s.create_connection(a.getsockname()[:2], 5); print("ok")
a = s.create_server(("localhost", 0)); s.create_connection(("localhost", a.getsockname()[1]), 5); print("ok")
start = time.monotonic()
for address in ("1.1.1.1", "169.254.169.254", "10.0.0.1"):
    try: s.create_connection((address, 80), 20)
    except OSError as e: print(e.strerror)
try: s.getaddrinfo("example.org", 80)
except OSError as e: print(type(e).__name__)
print(time.monotonic() - start < 5)
print([name for _, name in s.if_nameindex()])`
	addresses, want := `(s.AF_INET, "127.0.0.1"), (s.AF_INET6, "::1")`, "ok\nok\nok\n"
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil { // the host has no IPv6
		addresses, want = `(s.AF_INET, "127.0.0.1"),`, "ok\nok\n"
	}
	program = strings.Replace(program, "ADDRESSES", addresses, 1)
	asUsers(t, func(t *testing.T, flags ...string) {
		for _, scope := range []string{"execute", "sandbox"} {
			o := husk(t, append(append([]string{"run", "--scope", scope}, flags...), "--", "python3", "-c", program)...)
			o.want(t, 0, want+"Network is unreachable\nNetwork is unreachable\nNetwork is unreachable\ngaierror\nTrue\n['lo']\n")
		}
	})
}

// TestPing covers E9: the sandbox starts, and ping is a plain no, as docs/networking.md says.
func TestPing(t *testing.T) {
	const program = `
import socket
for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM):
    try: socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP); print("ok")
    except OSError as e: print(e.strerror)`
	asUsers(t, func(t *testing.T, flags ...string) {
		o := husk(t, append(append([]string{"run"}, flags...), "--", "python3", "-c", program)...)
		for line := range strings.Lines(o.stdout) {
			if !strings.Contains("Operation not permitted\nPermission denied\n", line) {
				t.Errorf("%q", line)
			}
		}
		if o.code != 0 {
			t.Errorf("exit code %d, stderr %q", o.code, o.stderr)
		}
	})
}

// TestLowPorts: the sandbox's root may serve on port 80 of its own network, and not of the host's.
func TestLowPorts(t *testing.T) {
	const program = `import socket; socket.create_server(("127.0.0.1", 80)); print("ok")`
	husk(t, "run", "--user", "root", "--", "python3", "-c", program).want(t, 0, "ok\n")
	if o := husk(t, "run", "--user", "root", "--net", "host", "--", "python3", "-c", program); o.code == 0 || !strings.Contains(o.stderr, "Permission denied") {
		t.Errorf("host network: exit code %d, stderr %q", o.code, o.stderr)
	}
}

// TestAllowListRefused: not in this version, and never open instead.
func TestAllowListRefused(t *testing.T) {
	for _, policy := range []string{"allow:example.org", "allow:", "allow:*", "bridge", "Host", "none,host", ""} {
		o := husk(t, "run", "--net="+policy, "--", "true")
		if policy == "" && o.code == 0 {
			continue
		}
		o.wantError(t, "net")
	}
}

// TestControlSocketUnreachable covers probe 40: husk's own socket and state have no name inside, in any
// kind of network or scope.
func TestControlSocketUnreachable(t *testing.T) {
	for _, flags := range [][]string{nil, {"--net", "host"}, {"--scope", "sandbox", "--user", "root"}} {
		id := create(t, flags...)
		o := husk(t, "exec", id, "--", "sh", "-c", `find / -xdev -name control -type s 2>/dev/null; find /run /var/lib -mindepth 1 2>/dev/null; ls /var/lib/husk /run/husk 2>/dev/null; grep -c husk /proc/net/unix`)
		if count := strings.TrimSpace(o.stdout); count != "0" && (len(flags) == 0 || flags[0] != "--net") {
			t.Errorf("%v: %q", flags, o.stdout)
		}
		if strings.Contains(o.stdout, "/") {
			t.Errorf("%v: %q", flags, o.stdout)
		}
		// with the host's network the names are seen, but not reached: the paths do not exist inside
		o = husk(t, "exec", id, "--", "python3", "-c", `
import socket
for line in open("/proc/net/unix"):
    path = line.split()[-1]
    if not path.endswith("/control"): continue
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try: s.connect(path); print("reached", path)
    except OSError: pass`)
		o.want(t, 0, "")
	}
}

// TestNetworksApart: two executions of one sandbox of scope execute do not meet on loopback, nor do two
// sandboxes.
func TestNetworksApart(t *testing.T) {
	const serve = `import socket, time; s = socket.create_server(("127.0.0.1", 4711)); print("ready", flush=True); time.sleep(600)`
	one, two := create(t, "--scope", "sandbox"), create(t, "--scope", "sandbox")
	background(t, "ready\n", "exec", one, "--", "python3", "-c", serve)
	start := time.Now()
	o := husk(t, "exec", two, "--", "python3", "-c", `import socket; socket.create_connection(("127.0.0.1", 4711), 20)`)
	if o.code != 1 || !strings.Contains(o.stderr, "refused") || time.Since(start) > patience(10*time.Second) {
		t.Errorf("exit code %d after %v, stderr %q", o.code, time.Since(start), o.stderr)
	}
}
