package integration

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// asUsers runs f as the default user and as the sandbox's root.
func asUsers(t *testing.T, f func(t *testing.T, flags ...string)) {
	t.Run("1000", func(t *testing.T) { f(t) })
	t.Run("root", func(t *testing.T) { f(t, "--user", "root") })
}

// TestPrivilegesInside covers probe 9.
func TestPrivilegesInside(t *testing.T) {
	for user, caps := range map[string]string{
		"1000": "0000000000000000", "4711:12": "0000000000000000",
		// CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID NET_BIND_SERVICE SYS_CHROOT
		"root": "00000000000404fb",
	} {
		o := sh(t, "cat /proc/self/status", "--user", user)
		status := fieldsOf(o.stdout)
		for _, set := range []string{"CapPrm", "CapEff", "CapBnd"} {
			if status[set] != caps {
				t.Errorf("as %s: %s is %s, want %s", user, set, status[set], caps)
			}
		}
		for name, want := range map[string]string{
			"CapInh": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2",
		} {
			if status[name] != want {
				t.Errorf("as %s: %s is %q, want %s", user, name, status[name], want)
			}
		}
	}
}

// TestHostIDs: what is root inside is nobody on the host.
func TestHostIDs(t *testing.T) {
	asUsers(t, func(t *testing.T, flags ...string) {
		seen := map[string]bool{}
		for range 2 {
			o := sh(t, "cat /proc/self/uid_map /proc/self/gid_map", flags...)
			for line := range strings.Lines(o.stdout) {
				f := strings.Fields(line)
				if len(f) != 3 || f[0] != "0" || len(f[1]) < 5 || f[2] != "65536" {
					t.Errorf("id map %q", line)
				}
			}
			seen[o.stdout] = true
		}
	})
}

// TestDescriptorsInside covers probe 2: 0 to 2 only, and no way out through them; a session of its own.
func TestDescriptorsInside(t *testing.T) {
	asUsers(t, func(t *testing.T, flags ...string) {
		f := attack(t, "descriptors", flags...)
		for _, name := range []string{"open-0", "open-1", "open-2"} {
			if f.take(name) != "OK" {
				t.Errorf("%s is missing", name)
			}
		}
		if link := f.take("link-0"); link != "/dev/null" && !strings.HasPrefix(link, "pipe:") {
			t.Errorf("standard input is %s", link)
		}
		for _, name := range []string{"link-1", "link-2"} {
			if link := f.take(name); !strings.HasPrefix(link, "pipe:") {
				t.Errorf("%s is %s", name, link)
			}
		}
		for name, want := range map[string]string{"session": "own", "umask": "022", "/dev/tty": "ENXIO"} {
			if got := f.take(name); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		f.refused(t) // nothing else was possible
	})
}

// TestCallersUmask: the caller's own does not count (B18).
func TestCallersUmask(t *testing.T) {
	for _, mask := range []int{0o077, 0} {
		before := syscall.Umask(mask)
		o := sh(t, "umask; touch f; stat -c %a f")
		syscall.Umask(before)
		o.want(t, 0, "0022\n644\n")
	}
}

// TestWorkDirThroughDescriptors covers probe 2: the guest's own descriptors are no place to start in.
func TestWorkDirThroughDescriptors(t *testing.T) {
	for _, dir := range []string{"/proc/self/fd/3", "/proc/self/fd/7", "/proc/self/fd/8", "/proc/1/cwd", "/proc/1/root"} {
		husk(t, "run", "-w", dir, "--", "cat", "../../../../etc/shadow").wantError(t, "work dir", dir)
	}
	husk(t, "run", "-w", "/proc/self/root", "--", "cat", "etc/shadow").want(t, 1, "")
}

// TestProcess1 covers: the reaper cannot be looked into, hurt or ended.
func TestProcess1(t *testing.T) {
	asUsers(t, func(t *testing.T, flags ...string) {
		for _, profile := range []string{"default", "unconfined"} {
			f := attack(t, "init", append(flags, "--seccomp", profile)...)
			if f.take("alive") != "OK" {
				t.Error("the probe ended before its end")
			}
			f.refused(t, "EPERM", "EACCES", "EROFS", "ESRCH", "EBADF", "ENOENT")
		}
	})
}

// TestProcessesInside: process 1 has no name of the host's, and nobody else's processes are there.
func TestProcessesInside(t *testing.T) {
	o := sh(t, `cd /proc; for p in [0-9]*; do test $p = $$ || echo $p $(cat $p/comm) $(tr '\0' ' ' <$p/cmdline); done`)
	if o.stdout != "1 husk husk\n" {
		t.Errorf("processes besides the shell: %q", o.stdout)
	}
}

// TestProcInside: read-only, masked, no nested user namespaces (probes 5, 54).
func TestProcInside(t *testing.T) {
	asUsers(t, func(t *testing.T, flags ...string) {
		o := sh(t, `
for f in sys/kernel/core_pattern sys/kernel/hostname sys/kernel/modprobe sys/vm/drop_caches sys/net/ipv4/ip_forward \
	sys/user/max_user_namespaces sysrq-trigger self/oom_score_adj self/uid_map self/gid_map self/setgroups \
	self/comm self/coredump_filter self/attr/current self/attr/exec self/mem irq bus fs; do
	test -e /proc/$f || continue
	(echo 1 >/proc/$f) 2>/dev/null && echo "written: $f"
	(: >>/proc/$f) 2>/dev/null && echo "opened: $f"
done
for f in kcore keys timer_list interrupts latency_stats sched_debug; do
	test -s /proc/$f && echo "not masked: $f"
	test "$(head -c 1 /proc/$f 2>/dev/null)" && echo "not masked: $f"
done
for d in acpi asound scsi; do
	test "$(ls -A /proc/$d 2>/dev/null)" && echo "not masked: $d"
done
cat /proc/sys/user/max_user_namespaces`, flags...)
		o.want(t, 0, "0\n")
	})
}

// TestDevInside: exactly what docs/security.md says.
func TestDevInside(t *testing.T) {
	const want = "fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero\n"
	asUsers(t, func(t *testing.T, flags ...string) {
		o := sh(t, `echo $(ls -A /dev); ls -A /dev/pts /dev/mqueue /dev/shm | grep -v : | grep .
for d in null zero full random urandom tty; do stat -c %a%F /dev/$d; done | sort -u
touch /dev/x || rm /dev/null || chmod 600 /dev/null || echo read-only`, flags...)
		o.want(t, 0, want+"666character special file\nread-only\n")
	})
}

// TestRootInside: nothing of the host's but /usr, and no place to write but the listed ones.
func TestRootInside(t *testing.T) {
	asUsers(t, func(t *testing.T, flags ...string) {
		o := sh(t, `
echo $(ls -A /)
for d in /root /home /var /run /srv /opt /mnt /boot /lost+found /media; do
	find $d -mindepth 1 ! -path "$HOME" ! -path /var/tmp ! -path /var/run ! -path /var/lock 2>/dev/null
done
for f in /etc/shadow /etc/gshadow /etc/machine-id /etc/sudoers /etc/ssh /etc/fstab /etc/crontab; do test -e $f && echo "there: $f"; done
for d in / /usr /usr/bin /etc /opt /srv /mnt /home /proc /sys /dev /sys/fs/cgroup /lib/ /var; do touch $d/x 2>/dev/null && echo "writable: $d"; done
true`, flags...)
		lines := strings.SplitN(o.stdout, "\n", 2)
		for _, name := range strings.Fields(lines[0]) {
			known := "bin dev etc home lib lib32 lib64 libx32 mnt opt proc root run sbin srv sys tmp usr var workspace"
			if !slices.Contains(strings.Fields(known), name) {
				t.Errorf("/%s is there", name)
			}
		}
		if o.code != 0 || len(lines) != 2 || lines[1] != "" {
			t.Errorf("exit code %d, found %q, stderr %q", o.code, o.stdout, o.stderr)
		}
	})
}

// TestEtcInside covers D13: names resolve, and none of them is the host's.
func TestEtcInside(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	o := husk(t, "run", "--", "python3", "-c", `import socket, os, pwd, grp
name = socket.gethostname()
print(socket.gethostbyname("localhost"), socket.gethostbyname(name).split(".")[0], open("/etc/hostname").read().strip() == name)
print(pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name, pwd.getpwnam("root").pw_uid)
print(name)`)
	lines := strings.Split(o.stdout, "\n")
	if o.code != 0 || len(lines) != 4 || lines[0] != "127.0.0.1 127 True" || lines[1] != "sandbox sandbox 0" || lines[2] == host {
		t.Errorf("exit code %d, %q, stderr %q", o.code, o.stdout, o.stderr)
	}
	sh(t, "hostname; cat /etc/hostname", "--hostname", "box.example").want(t, 0, "box.example\nbox.example\n")
}

// TestMountsInside: flags, and what mountinfo tells about the host.
func TestMountsInside(t *testing.T) {
	writable := strings.Fields("/tmp /var/tmp /run /dev/shm /home/sandbox /workspace")
	o := sh(t, "cat /proc/self/mountinfo")
	for line := range strings.Lines(o.stdout) {
		f := strings.Fields(line)
		at, flags := f[4], strings.Split(f[5], ",")
		// the guest's own /proc lies below the read-only one
		lower := at == "/proc" && slices.Contains(flags, "rw")
		if slices.Contains(flags, "ro") == slices.Contains(writable, at) && !lower {
			t.Errorf("not as it should be: %s", line)
		}
		if !slices.Contains(flags, "nosuid") || !slices.Contains(flags, "nodev") && at != "/dev" && !strings.HasPrefix(at, "/proc/") {
			t.Errorf("without nosuid or nodev: %s", line)
		}
		for _, text := range []string{"husk", "shared:", "/var/lib"} {
			if strings.Contains(strings.Join(f[3:6], " "), text) {
				t.Errorf("%s is told: %s", text, line)
			}
		}
		// what is shown of the host is shown at its own path
		if root := f[3]; !strings.HasSuffix(at, root) && !strings.HasSuffix(root, at) && root != "/" && !strings.HasPrefix(at, "/proc/") {
			t.Errorf("a path of the host is told: %s", line)
		}
	}
	if o.code != 0 {
		t.Errorf("exit code %d, stderr %q", o.code, o.stderr)
	}
}

// TestEnvironmentInside covers probe 51: nothing of the caller's environment.
func TestEnvironmentInside(t *testing.T) {
	t.Setenv("CANARY_SECRET", "canary-secret")
	t.Setenv("LD_PRELOAD_CANARY", "canary-secret")
	t.Setenv("PYTHONPATH", "/canary-secret")
	o := sh(t, "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; true")
	known := strings.Fields("PATH HOME USER LANG PWD OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS")
	for line := range strings.Lines(o.stdout) {
		if name, _, _ := strings.Cut(line, "="); !slices.Contains(known, name) {
			t.Errorf("%q is in the environment", line)
		}
	}
	if strings.Contains(o.stdout+o.stderr, "canary") {
		t.Error("the caller's environment is seen")
	}
}

// TestCgroupInside covers C13 and probe 13: the limits can be seen, and not be changed.
func TestCgroupInside(t *testing.T) {
	limit, procs := "memory/memory.limit_in_bytes", "memory/cgroup.procs"
	if unified(t) {
		limit, procs = "memory.max", "cgroup.procs"
	}
	asUsers(t, func(t *testing.T, flags ...string) {
		o := sh(t, `cd /sys/fs/cgroup; cat `+limit+`
for f in `+limit+` `+procs+` memory.max memory.high pids.max cpu.max cgroup.procs cgroup.kill cgroup.freeze cgroup.subtree_control \
	memory/tasks memory/memory.memsw.limit_in_bytes memory/release_agent cpu/cpu.cfs_quota_us cpu/cgroup.procs ../cgroup.procs; do
	(echo $$ >>$f) 2>/dev/null && echo "written: $f"
	(echo 1 >$f) 2>/dev/null && echo "written: $f"
done
mkdir x memory/x 2>/dev/null && echo "made a group"
grep -v ':/$' /proc/self/cgroup; true`, append(flags, "--memory", "256m")...)
		o.want(t, 0, "268435456\n")
	})
}
