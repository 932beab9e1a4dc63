/*
 * probe: hostile calls, one group for each name on its command line. Every attempt prints one line
 * "WHAT RESULT": OK, the name of an errno, or the signal that ended it. Nothing here succeeds in a
 * sandbox that is as it should be, unless the test that runs it says so.
 *
 *   gcc -static -O1 -pthread -o probe *.c
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "probe.h"

/* apart runs f in a child: it may be killed, or change what it runs in. */
static void apart(const char *what, long (*f)(void))
{
	int status;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		say(what, f());
		fflush(stdout);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		say(what, -1);
	else if (WIFSIGNALED(status))
		printf("%s SIG%s\n", what, sigabbrev_np(WTERMSIG(status)));
}

/* --- system calls that the filter refuses ------------------------------------------------------- */

static char junk[4096];
#define P ((long)junk)
#define SELF(ns) ((long)open("/proc/self/ns/" ns, O_RDONLY))

struct call { const char *name; long nr, args[6]; };

static const struct call calls[] = {
	{"keyctl", SYS_keyctl, {0, -3, 1}},
	{"add_key", SYS_add_key, {(long)"user", (long)"name", P, 8, -3}},
	{"request_key", SYS_request_key, {(long)"user", (long)"name", 0, -3}},
	{"io_uring_setup", SYS_io_uring_setup, {1, P}},
	{"io_uring_enter", SYS_io_uring_enter, {0, 1, 0, 0}},
	{"io_uring_register", SYS_io_uring_register, {0, 0, 0, 0}},
	{"bpf", SYS_bpf, {5, P, 48}},
	{"userfaultfd", SYS_userfaultfd, {1}},
	{"perf_event_open", SYS_perf_event_open, {P, 0, -1, -1, 0}},
	{"kexec_load", SYS_kexec_load, {0, 0, 0, 0}},
	{"kexec_file_load", SYS_kexec_file_load, {-1, -1, 0, 0, 0}},
	{"init_module", SYS_init_module, {P, 1, P}},
	{"finit_module", SYS_finit_module, {0, P, 0}},
	{"delete_module", SYS_delete_module, {P, 0}},
	{"name_to_handle_at", SYS_name_to_handle_at, {-100, (long)"/", P, P + 256, 0}},
	{"open_by_handle_at", SYS_open_by_handle_at, {-100, P, 0}},
	{"unshare-user", SYS_unshare, {CLONE_NEWUSER}},
	{"unshare-mount", SYS_unshare, {CLONE_NEWNS}},
	{"unshare-net", SYS_unshare, {CLONE_NEWNET}},
	{"unshare-pid", SYS_unshare, {CLONE_NEWPID}},
	{"unshare-ipc", SYS_unshare, {CLONE_NEWIPC}},
	{"unshare-uts", SYS_unshare, {CLONE_NEWUTS}},
	{"unshare-cgroup", SYS_unshare, {CLONE_NEWCGROUP}},
	{"unshare-user-net", SYS_unshare, {CLONE_NEWUSER | CLONE_NEWNET}},
	{"clone-user", SYS_clone, {CLONE_NEWUSER | SIGCHLD}},
	{"clone-mount", SYS_clone, {CLONE_NEWNS | SIGCHLD}},
	{"clone-net", SYS_clone, {CLONE_NEWNET | SIGCHLD}},
	{"clone-pid", SYS_clone, {CLONE_NEWPID | SIGCHLD}},
	{"clone3", 435, {0, 0}},
	{"mount", SYS_mount, {(long)"none", (long)"/tmp", (long)"tmpfs", 0, 0}},
	{"umount2", SYS_umount2, {(long)"/proc", MNT_DETACH}},
	{"pivot_root", SYS_pivot_root, {(long)"/tmp", (long)"/tmp"}},
	{"open_tree", 428, {-100, (long)"/", 1}},
	{"move_mount", 429, {-100, (long)"/usr", -100, (long)"/tmp", 0}},
	{"fsopen", 430, {(long)"tmpfs", 0}},
	{"fsconfig", 431, {0, 6, 0, 0, 0}},
	{"fsmount", 432, {0, 0, 0}},
	{"fspick", 433, {-100, (long)"/", 0}},
	{"mount_setattr", 442, {-100, (long)"/", 0, P, 32}},
	{"statmount", 457, {P, P, 512, 0}},
	{"listmount", 458, {P, P, 1, 0}},
	{"open_tree_attr", 467, {-100, (long)"/", 1, P, 32}},
	{"acct", SYS_acct, {(long)"/tmp/acct"}},
	{"swapon", SYS_swapon, {(long)"/tmp/swap", 0}},
	{"swapoff", SYS_swapoff, {(long)"/tmp/swap"}},
	{"reboot", SYS_reboot, {0xfee1dead, 672274793, 0, 0}},
	{"settimeofday", SYS_settimeofday, {P, 0}},
	{"clock_settime", SYS_clock_settime, {0, P}},
	{"sethostname", SYS_sethostname, {(long)"x", 1}},
	{"setdomainname", SYS_setdomainname, {(long)"x", 1}},
	{"quotactl", SYS_quotactl, {0, (long)"/", 0, P}},
	{"syslog", SYS_syslog, {3, P, 64}},
	{"fanotify_init", SYS_fanotify_init, {0, 0}},
	{"vhangup", SYS_vhangup, {0}},
	{"move_pages", SYS_move_pages, {0, 1, P, P, P, 0}},
#ifdef __x86_64__
	{"iopl", SYS_iopl, {3}},
	{"ioperm", SYS_ioperm, {0, 8, 1}},
	{"uselib", SYS_uselib, {(long)"/usr/lib/x"}},
#endif
	{"mknod-disk", SYS_mknodat, {-100, (long)"/tmp/disk", S_IFBLK | 0666, 0x100}},
	{"mknod-kmem", SYS_mknodat, {-100, (long)"/tmp/mem", S_IFCHR | 0666, 0x101}},
	{"number-600", 600, {0}},
	{"number-max", 0x3fffffff, {0}},
};

static void probe_calls(void)
{
	for (size_t i = 0; i < LEN(calls); i++) {
		const long *a = calls[i].args;
		long ret = syscall(calls[i].nr, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (ret == 0 && calls[i].nr == SYS_clone)
			_exit(0);
		say(calls[i].name, ret);
	}
	const char *kinds[] = {"user", "mnt", "net", "pid", "ipc", "uts", "cgroup"};
	for (size_t i = 0; i < LEN(kinds); i++) {
		char path[64], name[64];
		snprintf(path, sizeof path, "/proc/self/ns/%s", kinds[i]);
		snprintf(name, sizeof name, "setns-%s", kinds[i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		say(name, fd < 0 ? -1 : setns(fd, 0));
	}
}

/* --- sockets ------------------------------------------------------------------------------------- */

static void try_socket(const char *name, int family, int type, int protocol)
{
	int fd = socket(family, type, protocol);
	say(name, fd);
	close(fd);
}

static void probe_sockets(void)
{
	static const struct { const char *name; int family, type, protocol; } sockets[] = {
		{"alg", 38, SOCK_SEQPACKET, 0}, {"alg-cloexec", 38, SOCK_SEQPACKET | SOCK_CLOEXEC, 0},
		{"vsock", 40, SOCK_STREAM, 0}, {"rxrpc", 33, SOCK_DGRAM, AF_INET}, {"packet", AF_PACKET, SOCK_RAW, 0x300},
		{"key", 15, SOCK_RAW, 2}, {"xdp", 44, SOCK_RAW, 0}, {"tipc", 30, SOCK_SEQPACKET, 0},
		{"can", 29, SOCK_RAW, 1}, {"bluetooth", 31, SOCK_RAW, 1}, {"smc", 43, SOCK_STREAM, 0},
		{"netlink-xfrm", AF_NETLINK, SOCK_RAW, 6}, {"netlink-netfilter", AF_NETLINK, SOCK_RAW, 12},
		{"netlink-crypto", AF_NETLINK, SOCK_RAW, 21}, {"netlink-audit", AF_NETLINK, SOCK_RAW, 9},
		{"netlink-generic", AF_NETLINK, SOCK_RAW, 16}, {"raw", AF_INET, SOCK_RAW, IPPROTO_ICMP},
	};
	for (size_t i = 0; i < LEN(sockets); i++)
		try_socket(sockets[i].name, sockets[i].family, sockets[i].type, sockets[i].protocol);
	int pair[2], espinudp = 2, udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0);
	say("pair-alg", socketpair(38, SOCK_SEQPACKET, 0, pair));
	say("udp-encap", setsockopt(udp, IPPROTO_UDP, 100, &espinudp, sizeof espinudp));
	say("tcp-ulp-espintcp", setsockopt(tcp, IPPROTO_TCP, 31, "espintcp", 8));
	say("tcp-ulp-tls", setsockopt(tcp, IPPROTO_TCP, 31, "tls", 3));
}

/* --- other ABIs ---------------------------------------------------------------------------------- */

#ifdef __x86_64__
static long negative(long ret)
{
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

static long i386(long nr, long a, long b)
{
	long ret;
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(nr), "b"(a), "c"(b), "d"(0), "S"(0), "D"(0)
			 : "memory", "r8", "r9", "r10", "r11");
	return negative((int)ret);
}

static long i386_getpid(void) { return i386(20, 0, 0); }
static long i386_socketcall(void) { return i386(102, 1, 0); }
static long i386_execve(void) { return i386(11, 0, 0); }
static long x32_getpid(void) { return syscall(0x40000000 | 39); }
static long x32_execve(void) { return syscall(0x40000000 | 520, "/bin/true", 0, 0); }
static long x32_ptrace(void) { return syscall(0x40000000 | 521, 0, 0, 0, 0); }
#endif

static void probe_abi(void)
{
#ifdef __x86_64__
	apart("i386-getpid", i386_getpid);
	apart("i386-socketcall", i386_socketcall);
	apart("i386-execve", i386_execve);
	apart("x32-getpid", x32_getpid);
	apart("x32-execve", x32_execve);
	apart("x32-ptrace", x32_ptrace);
#endif
}

/* --- process 1 ----------------------------------------------------------------------------------- */

static void try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);
	say(path, fd);
	close(fd);
}

/* try_read: some files of /proc may be opened by all, and ask when they are read. */
static void try_read(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	say(path, fd < 0 ? -1 : read(fd, &byte, 1));
	close(fd);
}

static void probe_init(void)
{
	static const char *files[] = {"mem", "maps", "environ", "auxv", "pagemap", "exe", "root", "cwd",
				      "ns/mnt", "ns/user", "ns/net", "ns/pid", "fd/0", "stack", "syscall"};
	char path[64], byte;
	for (size_t i = 0; i < LEN(files); i++) {
		snprintf(path, sizeof path, "/proc/1/%s", files[i]);
		try_read(path);
	}
	try_open("/proc/1/mem", O_RDWR);
	try_open("/proc/1/exe", O_WRONLY);
	struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
	say("attach", ptrace(PTRACE_ATTACH, 1, 0, 0));
	say("seize", ptrace(PTRACE_SEIZE, 1, 0, 0));
	say("readv", process_vm_readv(1, &here, 1, &there, 1, 0));
	say("writev", process_vm_writev(1, &here, 1, &there, 1, 0));
	int pidfd = (int)syscall(434, 1, 0);
	say("getfd", syscall(438, pidfd, 0, 0));
	say("setns-pidfd", setns(pidfd, CLONE_NEWNS));
	say("prlimit", prlimit(1, 0, &(struct rlimit){0, 0}, 0));
	signal(SIGTERM, SIG_IGN);
	for (int sig = 1; sig < 65; sig++)
		if (sig != SIGCHLD)
			kill(1, sig);
	syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, 0, 0);
	kill(-1, SIGKILL); /* but us */
	kill(1, SIGKILL);
	printf("alive OK\n");
}

/* --- descriptors --------------------------------------------------------------------------------- */

static void probe_descriptors(void)
{
	char path[64], link[256];
	for (int fd = 0; fd < 1024; fd++) {
		struct stat st;
		if (fstat(fd, &st) == 0)
			printf("open-%d OK\n", fd);
	}
	for (int fd = 3; fd <= 64; fd++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		if (chdir(path) == 0)
			printf("chdir-%d OK\n", fd);
	}
	for (int fd = 0; fd < 3; fd++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d/../../../../etc/shadow", fd);
		if (open(path, O_RDONLY) >= 0)
			printf("escape-%d OK\n", fd);
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		long n = readlink(path, link, sizeof link - 1);
		link[n < 0 ? 0 : n] = 0;
		printf("link-%d %s\n", fd, link);
	}
	try_open("/dev/tty", O_RDWR);
	printf("session %s\n", getsid(0) == getpid() && getpgrp() == getpid() ? "own" : "foreign");
	printf("umask %03o\n", umask(0));
}

/* --- the terminal -------------------------------------------------------------------------------- */

static void probe_terminal(void)
{
	int discipline = 0;
	char c = '!';
	say("TIOCSTI", ioctl(0, TIOCSTI, &c));
	say("TIOCSTI-high", syscall(SYS_ioctl, 0, (1ul << 32) | TIOCSTI, &c));
	say("TIOCLINUX", ioctl(0, 0x541c, &c));
	say("TIOCLINUX-high", syscall(SYS_ioctl, 0, (1ul << 32) | 0x541c, &c));
	say("TIOCSETD", ioctl(0, TIOCSETD, &discipline));
	say("TIOCCONS", ioctl(0, TIOCCONS, 0));
	say("steal", ioctl(0, TIOCSCTTY, 1));
	try_open("/dev/console", O_RDWR);
	try_open("/dev/tty1", O_RDWR);
	try_open("/dev/pts/1", O_RDWR);
	printf("tty %s\n", ttyname(0));
	printf("session %s\n", getsid(0) == getpid() && tcgetsid(0) == getpid() ? "own" : "foreign");
}

/* --- more filters -------------------------------------------------------------------------------- */

/* add_filter says action about unshare, and allows the rest. */
static long add_filter(unsigned flags, unsigned action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {LEN(code), code};
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

static long refused(void) { return unshare(CLONE_NEWUSER); }
static long after_allow(void) { add_filter(0, SECCOMP_RET_ALLOW); return refused(); }
static long after_log(void) { add_filter(0, SECCOMP_RET_LOG); return refused(); }
static long after_trace(void) { add_filter(0, SECCOMP_RET_TRACE); return refused(); }
static long after_notify(void) { add_filter(0, SECCOMP_RET_USER_NOTIF); return refused(); }

/* A listener in a child that says "go on". */
static long after_continue(void)
{
	int fd = (int)add_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_RET_USER_NOTIF);
	if (fd < 0)
		return refused(); /* there is a listener already */
	if (fork() == 0) {
		struct seccomp_notif req = {0};
		struct seccomp_notif_resp resp = {0};
		alarm(5);
		ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &req);
		resp.id = req.id;
		resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &resp);
		_exit(0);
	}
	close(fd);
	return refused();
}

/* A tracer that swaps the number of a permitted call for a refused one. */
static long traced(void)
{
#ifdef __x86_64__
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		long ret = syscall(SYS_getpgid, CLONE_NEWUSER); /* will be unshare */
		_exit(ret == 0 ? 0 : errno);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status)) {
		errno = EPERM; /* no tracing here */
		return -1;
	}
	for (;;) {
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
		if (waitpid(pid, &status, 0) != pid || WIFEXITED(status) || WIFSIGNALED(status))
			break;
		long nr = ptrace(PTRACE_PEEKUSER, pid, 15 * 8 /* orig_rax */, 0);
		if (nr == SYS_getpgid)
			ptrace(PTRACE_POKEUSER, pid, 15 * 8, SYS_unshare);
	}
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	return errno ? -1 : 0;
#else
	errno = EPERM;
	return -1;
#endif
}

static void probe_filters(void)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	apart("refused", refused);
	apart("after-allow", after_allow);
	apart("after-log", after_log);
	apart("after-trace", after_trace);
	apart("after-notify", after_notify);
	apart("after-continue", after_continue);
	apart("traced", traced);
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } probes[] = {
		{"calls", probe_calls}, {"sockets", probe_sockets}, {"abi", probe_abi}, {"mounts", probe_mounts},
		{"init", probe_init}, {"descriptors", probe_descriptors}, {"terminal", probe_terminal},
		{"filters", probe_filters}, {"setid", probe_setid}, {"privileges", probe_privileges},
		{"dirty", probe_dirty}, {"executable", probe_executable}, {"forks", probe_forks},
		{"threads", probe_threads}, {"zombies", probe_zombies}, {"daemons", probe_daemons},
		{"memfd", probe_memfd}, {"heap", probe_heap}, {"shm", probe_shm}, {"tables", probe_tables},
		{"socket-buffers", probe_sockets_full}, {"quotas", probe_quotas}, {"crash", probe_crash},
	};
	if (argc != 2)
		return 2;
	for (size_t i = 0; i < LEN(probes); i++)
		if (!strcmp(argv[1], probes[i].name)) {
			probes[i].run();
			return 0;
		}
	return 2;
}
