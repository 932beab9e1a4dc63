/* sys.h: the kernel without a libc. Calls give a negative errno. */
#include <asm/unistd.h>
#include <asm/ioctls.h>
#include <asm/stat.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/time_types.h>
#include <linux/wait.h>
#include <stddef.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#ifdef HOSTED /* the fuzz harness runs under the sanitizers, and they need a libc */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#define sc6(n, a, b, c, d, e, f)                                                                   \
	({                                                                                         \
		long r_ = syscall(n, a, b, c, d, e, f);                                            \
		r_ < 0 ? -(long)errno : r_;                                                        \
	})
#else
void *memset(void *p, int c, size_t n)
{
	for (char *q = p; n--;)
		*q++ = (char)c;
	return p;
}

void *memcpy(void *to, const void *from, size_t n)
{
	const char *f = from;
	for (char *t = to; n--;)
		*t++ = *f++;
	return to;
}

static inline __attribute__((always_inline)) long sc6(
	long n, long a, long b, long c, long d, long e, long f)
{
#if defined __x86_64__
	long ret;
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined __aarch64__
	register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e,
			 x5 __asm__("x5") = f;
	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), "r"(x8)
			 : "memory");
	return x0;
#else
#error "no system call sequence for this architecture"
#endif
}

void guest_main(int argc, char **argv);

/* _start: the stack pointer is at argc, argv follows. */
#if defined __x86_64__
__asm__(".globl _start\n_start:\n\txor %ebp,%ebp\n\tmov (%rsp),%rdi\n\tlea 8(%rsp),%rsi\n"
	"\tand $-16,%rsp\n\tcall guest_main\n\thlt\n");
#elif defined __aarch64__
__asm__(".globl _start\n_start:\n\tmov x29,#0\n\tldr x0,[sp]\n\tadd x1,sp,#8\n\tbl "
	"guest_main\n\tbrk #0\n");
#endif
#endif

#define L(x) ((long)(x))
#define sc(n, a, b, c, d) sc6(n, L(a), L(b), L(c), L(d), 0, 0)
#define sc5(n, a, b, c, d, e) sc6(n, L(a), L(b), L(c), L(d), L(e), 0)

/* --- what the kernel's headers keep for libcs ------------------------------------------------- */

enum {
	POLLIN_ = 1,
	POLLERR_ = 8,
	POLLHUP_ = 16,
	MSG_DONTWAIT_ = 0x40,
	MSG_NOSIGNAL_ = 0x4000,
	MSG_CMSG_CLOEXEC_ = 0x40000000,
	MSG_CTRUNC_ = 8,
	SOL_SOCKET_ = 1,
	SCM_RIGHTS_ = 1,
	PROT_RW = 3,
	MAP_SHARED_ = 1,
	MAP_PRIVATE_ = 2,
	MAP_ANONYMOUS_ = 0x20,
	SIGKILL_ = 9,
	SIGTERM_ = 15,
	SIGCHLD_ = 17,
	SIGSTOP_ = 19,
	SIG_SETMASK_ = 2,
	AF_INET_ = 2,
	SOCK_DGRAM_ = 2,
	SOCK_CLOEXEC_ = 02000000,
	SIOCSIFFLAGS_ = 0x8914,
	IFF_UP_ = 1,
	CLOCK_MONOTONIC_ = 1,
	RUSAGE_CHILDREN_ = -1
};

struct pollfd_ {
	int fd;
	short events, revents;
};
struct iovec_ {
	void *base;
	size_t len;
};
struct msghdr_ {
	void *name;
	int namelen;
	struct iovec_ *iov;
	size_t iovlen;
	void *control;
	size_t controllen;
	int flags;
};
struct cmsghdr_ {
	size_t len;
	int level, type;
};
struct statfs_ {
	long type, bsize, blocks, bfree, bavail, files, ffree, rest[9];
};
struct rusage_ {
	long utime[2], stime[2], maxrss, ixrss, idrss, isrss, minflt, majflt, nswap, inblock,
		oublock, rest[5];
};
struct siginfo_ {
	u32 signo;
	s32 err, code;
	u32 pid;
	u8 rest[112];
}; /* struct signalfd_siginfo */
