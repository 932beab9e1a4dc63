/*
 * proto.h: what the host and the guest say to each other, over a SOCK_SEQPACKET unix socket.
 *
 * One connection carries one execution at a time. Every message is one fixed-size struct in native
 * byte order; the host's twin of this file is protocol.go, and a test there compares the layouts.
 *
 *   host                                   guest
 *   K_EXEC + descriptors         ------->
 *                                <-------  K_STARTED               accepted: it will be reported
 *                                <-------  K_TTY + master          only with F_TTY
 *   K_SIGNAL, K_KILL             ------->
 *                                <-------  K_DONE              by the reaper: all of it is dead
 *                                <-------  K_ENDED                 exactly one for each K_EXEC: its
 *                                                                  namespaces are gone as well
 *   K_STOP                       ------->                          guest ends all, then itself
 *   K_HELLO                      ------->
 *                                <-------  K_VERSION
 *
 * K_DONE says the same as the K_ENDED after it, and saves a caller the wait for the tear-down of
 * the namespaces; there is none when the reaper was killed. Until K_ENDED the connection is in use.
 *
 * Closing a connection kills the execution on it. A request of another version, or one while the
 * guest is stopping, is answered by K_REFUSED.
 *
 * Descriptors of K_EXEC, in this order: payload; stdin stdout stderr (not with F_TTY); the leaf's
 * directory (F_INTO); the leaf's CPU counter (cpu_ns != 0); the out-of-memory eventfd (F_OOMFD);
 * ntasks files "tasks" of the leaf in v1 hierarchies.
 */
#define PROTO_VERSION 1

enum { K_HELLO = 1, K_EXEC, K_SIGNAL, K_KILL, K_STOP };
enum { K_VERSION = 1, K_REFUSED, K_STARTED, K_TTY, K_ENDED, K_DONE };

enum {
	F_TTY = 1 << 0,
	F_INTO = 1 << 1,
	F_OOMFD = 1 << 2,
	F_TRACE = 1 << 3,  /* report refused system calls: the filter says USER_NOTIF */
	F_CPU_V1 = 1 << 4, /* the CPU counter is cpuacct.usage, not cpu.stat */
	F_AFFINITY = 1 << 5,
};

enum { MAX_FDS = 16, MAX_GROUPS = 32, MAX_TASKS = 8, NRLIMITS = 16, MAX_DENIED = 64 };

struct request {
	u32 version, kind, flags, signal;
	u64 grace_ns;	     /* K_STOP: between SIGTERM and SIGKILL */
	u64 wall_ns, cpu_ns; /* limits; 0 = none */
	u64 caps;	     /* capabilities that the command keeps */
	u32 uid, gid, umask, ngroups;
	u32 groups[MAX_GROUPS];
	u32 ntasks, ncpus; /* ncpus: how fast cpu_ns can be used up */
	u32 rows, cols;
	/* payload: nargs+nenv+npaths offsets (u64, each list ends with one 0), then the rest */
	u32 payload_len, argc, envc, npaths;
	u32 cwd_off, filter_off, filter_len, errnos_off, errnos_len;
	u32 rlimit_mask; /* which of rlimits to set; the others stay at the host's maxima */
	struct {
		u64 soft, hard;
	} rlimits[NRLIMITS];
	u64 affinity[16]; /* CPUs 0..1023 */
};

/* Where an execution failed to start; protocol.go has the texts. */
enum step {
	S_NONE,
	S_MESSAGE,
	S_CLONE,
	S_PAYLOAD,
	S_CGROUP,
	S_CGROUPNS,
	S_TARGET,
	S_MOUNT,
	S_MASK,
	S_LOOPBACK,
	S_TTY,
	S_STDIO,
	S_BOUNDING,
	S_NONEWPRIVS,
	S_FORK,
	S_SESSION,
	S_RLIMIT,
	S_AFFINITY,
	S_GROUPS,
	S_GID,
	S_UID,
	S_CAPS,
	S_CHDIR,
	S_SECCOMP,
	S_EXEC,
};

/* Why the guest killed it. */
enum { R_NONE, R_WALL, R_CPU, R_OOM, R_KILL, R_STOP };

struct reply {
	u32 version, kind;
	u32 reason, step;
	s32 err;	/* errno of step */
	s32 index;	/* which mount or path step was about, -1 none */
	s32 status;	/* of the main process, as wait(2) gives it */
	u32 main_ended; /* 0: the reaper died first, status is its own */
	u32 full;	/* bit i: sized mount i had no space or inode left */
	u32 ndenied;
	u64 wall_ns, in_blocks, out_blocks; /* blocks of 512 bytes */
	struct {
		u32 nr, count;
	} denied[MAX_DENIED];
};

/* The guest's configuration, read once from descriptor FD_CONFIG. */
enum { FD_LISTEN = 3, FD_ALIVE, FD_LIFE, FD_CONFIG, FD_SELF };
enum { MAX_MOUNTS = 32, MAX_MASKS = 24 };
enum {
	M_TTY = 1 << 0,	    /* only with a terminal */
	M_SIZED = 1 << 1,   /* look at the end whether it is full */
	M_PRESENT = 1 << 2, /* the sandbox's own, there already: not mounted, only looked at */
};
enum {
	C_NEWNET = 1 << 0,
	C_NEWIPC = 1 << 1,
	C_LOOPBACK = 1 << 2,
	C_OWNED = 1 << 3 /* FD_LIFE says when to end */
};

struct mount {
	char target[256], type[16], options[192];
	u32 flags, what; /* MS_*, M_* */
};

struct config {
	u32 version, flags, nmounts, nmasks;
	struct mount mounts
		[MAX_MOUNTS];	   /* made anew in every execution, in this order (but M_PRESENT) */
	char masks[MAX_MASKS][64]; /* paths covered in every execution, where they exist */
};
