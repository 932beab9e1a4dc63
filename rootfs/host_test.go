package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRootBaseHost(t *testing.T) {
	private(t)
	p := testPlan(t)
	assemble(t, p)
	want := []string{"dev", "etc", "home", "mnt", "opt", "proc", "root", "run", "srv", "sys", "tmp", "usr", "var", "workspace"}
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		target, err := os.Readlink("/" + name)
		if err != nil {
			if _, err := os.Lstat("/" + name); err == nil {
				want = append(want, name)
			}
			continue
		}
		want = append(want, name)
		if got, err := os.Readlink(p.Target + "/" + name); got != target {
			t.Errorf("/%s is a link to %q (%v), on the host to %q", name, got, err, target)
		}
	}
	if have := list(t, p.Target); !slices.Equal(have, sorted(want)) {
		t.Errorf("/ has %v, want %v", have, sorted(want))
	}
	for _, dir := range []string{"home", "root", "run", "proc", "sys", "tmp", "opt", "srv", "mnt", "dev", "var/tmp"} {
		if have := list(t, p.Target+"/"+dir); len(have) > 0 {
			t.Errorf("/%s holds %v", dir, have)
		}
	}
	if have := list(t, p.Target+"/var"); !slices.Equal(have, []string{"lock", "run", "tmp"}) {
		t.Errorf("/var holds %v", have)
	}
	checkOwners(t, p)
}

// checkOwners: all that is made belongs to the sandbox's root, and only that may write to it.
func checkOwners(t *testing.T, p Plan) {
	t.Helper()
	root := statOf(t, p.Target)
	for _, tree := range []string{p.Target, p.Dev} {
		dev := statOf(t, tree).Dev
		err := filepath.WalkDir(tree, func(path string, e os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			st := statOf(t, path)
			if st.Dev != dev {
				if e.IsDir() {
					return filepath.SkipDir
				}
				return nil
			}
			if st.Uid != root.Uid || st.Gid != root.Gid || st.Uid != testBase {
				t.Errorf("%s belongs to %d:%d", path, st.Uid, st.Gid)
			}
			if mode := st.Mode & unix.S_IFMT; mode != unix.S_IFLNK && mode != unix.S_IFCHR && st.Mode&0o7022 != 0 {
				t.Errorf("%s has mode %o", path, st.Mode)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestRootNoSecrets(t *testing.T) {
	private(t)
	p := testPlan(t)
	assemble(t, p)
	for _, name := range []string{
		"shadow", "gshadow", "machine-id", "npmrc", "pip.conf", "maven", "sudoers", "ssh", "ssl/private", "pki/tls/private", "gitconfig",
		"environment", "ld.so.preload",
	} {
		if _, err := os.Lstat(p.Target + "/etc/" + name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("/etc/%s: %v", name, err)
		}
	}
	text, err := os.ReadFile(p.Target + "/etc/passwd")
	if err != nil || strings.Count(string(text), "\n") != 3 {
		t.Errorf("passwd: %v\n%s", err, text)
	}
}

func TestRootReadOnly(t *testing.T) {
	private(t)
	p := testPlan(t)
	p.MountPoints = []string{"/made/here"}
	assemble(t, p)
	for _, dir := range []string{"", "/etc", "/home", "/var", "/var/tmp", "/made/here", "/usr", "/workspace", "/root"} {
		if err := os.WriteFile(p.Target+dir+"/canary", nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("write to %s: %v", dir, err)
		}
	}
	if err := os.Chmod(p.Dev+"/null", 0); !errors.Is(err, unix.EROFS) {
		t.Errorf("chmod /dev/null: %v", err)
	}
	if err := os.WriteFile(p.Dev+"/null", []byte("x"), 0); err != nil {
		t.Errorf("write to /dev/null: %v", err)
	}
	hasOptions(t, p.Target, "ro", "nosuid", "nodev")
	hasOptions(t, p.Target+"/usr", "ro", "nosuid", "nodev")
	hasOptions(t, p.Dev, "ro", "nosuid", "noexec")
}

func TestRootUsrSubmounts(t *testing.T) {
	private(t)
	at := "/usr/local"
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, at+"/separate", "")
	p := testPlan(t)
	assemble(t, p)
	if _, err := os.Lstat(p.Target + at + "/separate"); err != nil {
		t.Error(err)
	}
	hasOptions(t, p.Target+at, "ro", "nosuid", "nodev")
}

// TestRootPropagation: what the root shows is cut off from the host's mounts.
func TestRootPropagation(t *testing.T) {
	private(t)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	p := testPlan(t)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		t.Fatal(err)
	}
	source := userDir(t, 12345, 12345)
	p.Mounts = []Mount{{Kind: KindBind, Source: source, Destination: "/data"}}
	assemble(t, p)
	for _, at := range []string{p.Target, p.Dev, p.Target + "/usr", p.Target + "/data"} {
		for _, field := range mountOn(t, at)[6:] {
			if field == "-" {
				break
			}
			t.Errorf("%s is not private: %s", at, field)
		}
	}
}

func TestRootMountinfoShowsNoHostPath(t *testing.T) {
	private(t)
	p := testPlan(t)
	assemble(t, p)
	for _, at := range []string{p.Target, p.Dev} {
		f := mountOn(t, at)
		f[4] = ""
		if f[3] != "/" || strings.Contains(strings.Join(f, " "), filepath.Dir(p.Target)) {
			t.Errorf("%s: %v", at, f)
		}
	}
}

// TestRootPrograms: what the host has runs from the base, as a user without any right.
func TestRootPrograms(t *testing.T) {
	private(t)
	p := testPlan(t)
	p.Mounts = []Mount{{Kind: KindTmpfs, Destination: "/tmp", Size: 512 << 20, Inodes: 20000, Mode: 0o1777}}
	assemble(t, p)
	writeFile(t, p.Target+"/tmp/a.c", "#include <stdio.h>\nint main(void) { puts(\"42\"); }\n")
	writeFile(t, p.Target+"/tmp/A.java", "class A { public static void main(String[] a) { System.out.println(6 * 7); } }\n")
	writeFile(t, p.Target+"/tmp/a.go", "package main\n\nfunc main() { println(6 * 7) }\n")
	cases := map[string]string{
		"/bin/sh":                "echo $((6*7))",
		"/usr/bin/python3":       "python3 -c 'import ssl, json; print(6*7)'",
		"/usr/bin/perl":          "perl -e 'print 6*7, \"\\n\"'",
		"/usr/bin/gcc":           "cd /tmp && gcc a.c -o a && ./a",
		"/usr/bin/node":          "node -e 'console.log(6*7)'",
		"/usr/bin/java":          "java -Xmx128m -Xshare:auto /tmp/A.java",
		"/usr/local/go/bin/go":   "cd /tmp && go run a.go",
		"/etc/ssl/openssl.cnf":   "test -r /etc/ssl/openssl.cnf && echo 42",
		"/etc/ssl/certs":         "ls /etc/ssl/certs | grep -q . && echo 42",
		"/etc/alternatives":      "test -e /etc/alternatives/awk && echo 42",
		"/usr/share/zoneinfo/UA": "date",
	}
	for program, script := range cases {
		if _, err := os.Stat(program); err != nil {
			continue
		}
		if os.Getenv("HUSK_VM") != "" && (strings.Contains(program, "java") || strings.HasSuffix(program, "/go")) {
			continue // minutes in an emulated machine
		}
		if out := strings.TrimSpace(inside(t, p, "/bin/sh", "-c", script)); out != "42" {
			t.Errorf("%s: %q", script, out)
		}
	}
	if out, err := tryInside(p, 1000, "/bin/sh", "-c", "cat /etc/shadow /usr/../etc/gshadow"); err == nil {
		t.Errorf("read shadow: %s", out)
	}
}

// TestRootOtherHosts: hosts that this one is not.
func TestRootOtherHosts(t *testing.T) {
	private(t)
	b := builder{p: testPlan(t), host: openDir(t)}
	for name, text := range map[string]string{
		"usr/bin/true": "", "bin/sh": "#!", "lib/x86_64-linux-gnu/libc.so": "", // not merged
		"etc/pki/tls/private/key.pem": "secret", "etc/pki/tls/certs/ca-bundle.crt": "ca", "etc/pki/tls/openssl.cnf": "cnf",
		"etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem": "ca", "etc/pki/ca-trust/source/README": "", "etc/shadow": "secret",
		"etc/crypto-policies/config": "DEFAULT", "etc/python3.13/sitecustomize.py": "", "etc/java/java-21/security/java.security": "j",
		"etc/ld.so.conf": "include", "etc/ld.so.conf.d/a.conf": "/a", "etc/services": "private",
	} {
		writeFile(t, b.host+"/"+name, text)
	}
	if err := errors.Join(
		os.Symlink("usr/sbin", b.host+"/sbin"), os.Chmod(b.host+"/etc/services", 0o640), unix.Mkfifo(b.host+"/etc/protocols", 0o644),
		os.Symlink("../usr/lib/os-release", b.host+"/etc/os-release"), os.Symlink("/nowhere/certs", b.host+"/etc/pki/java"),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := b.assemble(); err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]bool{
		"usr/bin/true": true, "bin/sh": true, "lib/x86_64-linux-gnu/libc.so": true, "sbin": true, "lib64": false,
		"etc/pki/tls/private": false, "etc/pki/tls/certs/ca-bundle.crt": true, "etc/pki/tls/openssl.cnf": true,
		"etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem": true, "etc/pki/ca-trust/source": false, "etc/shadow": false,
		"etc/crypto-policies/config": true, "etc/python3.13/sitecustomize.py": true, "etc/java/java-21/security/java.security": true,
		"etc/ld.so.conf.d/a.conf": true, "etc/services": false, "etc/protocols": false, "etc/os-release": true,
	} {
		if _, err := os.Lstat(b.p.Target + "/" + name); (err == nil) != there {
			t.Errorf("/%s: %v", name, err)
		}
	}
	hasOptions(t, b.p.Target+"/bin", "ro", "nosuid", "nodev")
}

func TestRootHostNetworkCopiesResolver(t *testing.T) {
	private(t)
	for _, network := range []bool{false, true} {
		b := builder{p: testPlan(t), host: openDir(t)}
		b.p.HostNetwork = network
		writeFile(t, b.host+"/usr/x", "")
		writeFile(t, b.host+"/etc/resolv.conf", "nameserver 192.0.2.1\n")
		if _, err := b.assemble(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(b.p.Target + "/etc/resolv.conf")
		if err != nil || (len(text) > 0) != network {
			t.Errorf("host network %v: %q, %v", network, text, err)
		}
	}
}

// TestRootWhateverUmask: a strict umask of the caller changes nothing, and stays.
func TestRootWhateverUmask(t *testing.T) {
	private(t)
	p := testPlan(t)
	unix.Umask(0o077)
	assemble(t, p)
	if now := unix.Umask(0o022); now != 0o077 {
		t.Errorf("umask is %o afterwards", now)
	}
	inside(t, p, "/bin/sh", "-c", "cat /etc/passwd /etc/hosts && ls / /etc >/dev/null && echo x >/dev/null && test -r /dev/zero")
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func sorted(s []string) []string { slices.Sort(s); return s }
