/*
 * guest: process 1 of a sandbox. It starts executions, reaps and reports them, enforces their
 * deadlines, and ends when it is told to or when its owner died.
 *
 * One thread, no allocation, fixed-size messages (proto.h). What the host sends is trusted but
 * checked; nothing of what a command does reaches this process but its exit and one page of results
 * written by its reaper.
 *
 *   guest -- clone3: new pid mnt uts [net ipc], into the leaf --> child: cgroup ns, mounts, stdio
 *                                      `-- vfork --> command: ids, capabilities, filter, exec
 *                                                    the child goes on as the reaper
 */
#include "sys.h"
#include "proto.h"

/* --- state ----------------------------------------------------------------------------------- */

/* FD_REPORT: a reaper's connection to the host */
enum { SLOTS = 128, NOBODY = 65534, FD_REPORT = 3, SECOND = 1000000000 };

union control {
	char bytes[sizeof(struct cmsghdr_) + MAX_FDS * sizeof(int)];
	struct cmsghdr_ head;
};

/* result: what the reaper, and the command before its exec, tell the guest; a shared page each. */
struct result {
	volatile u32 step;
	volatile s32 err, index, status, notify;
	volatile u32 main_ended, full, ndenied, reason;
	u64 start;
	struct {
		volatile u32 nr, count;
	} denied[MAX_DENIED];
};

struct slot {
	int used, conn;
	int pid, pidfd, cpufd, oomfd; /* pid 0: no execution */
	u32 cpu_v1, ncpus;
	u64 deadline, cpu_ns, cpu_check; /* monotonic ns; 0 = never */
};

static struct config config;
static struct slot slots[SLOTS];
static char (*pages)[4096]; /* shared results, one page per slot */
static int stopping, life = -1;
static u64 stop_deadline;

static struct result *result_of(const struct slot *s) { return (struct result *)pages[s - slots]; }

static u64 now(void)
{
	struct __kernel_timespec t = {0};
	sc(__NR_clock_gettime, CLOCK_MONOTONIC_, &t, 0, 0);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		sc(__NR_close, *fd, 0, 0, 0);
	*fd = -1;
}

/* die: a command's profile may refuse even this call; an illegal instruction it cannot. */
static __attribute__((noreturn)) void die(int status)
{
	sc(__NR_exit_group, status, 0, 0, 0);
	__builtin_trap();
}

/* --- messages -------------------------------------------------------------------------------- */

static int send_reply(int conn, struct reply *r, int fd)
{
	union control c = {
		.head = {sizeof(struct cmsghdr_) + sizeof(int), SOL_SOCKET_, SCM_RIGHTS_}};
	struct iovec_ iov = {r, sizeof *r};
	struct msghdr_ m = {.iov = &iov, .iovlen = 1};
	if (fd >= 0) {
		memcpy(c.bytes + sizeof(struct cmsghdr_), &fd, sizeof fd);
		m.control = &c;
		m.controllen = (sizeof(struct cmsghdr_) + sizeof(int) + 7) & ~7ul;
	}
	r->version = PROTO_VERSION;
	return (int)sc(__NR_sendmsg, conn, &m, MSG_NOSIGNAL_ | MSG_DONTWAIT_, 0);
}

static void reply_kind(int conn, u32 kind, int err)
{
	struct reply r = {.kind = kind, .err = err, .index = -1};
	send_reply(conn, &r, -1);
}

/* take_fds: the descriptors of a received message into fds; their number. */
static int take_fds(const struct msghdr_ *m, union control *c, int *fds)
{
	if (m->controllen < sizeof(struct cmsghdr_) || c->head.level != SOL_SOCKET_ ||
		c->head.type != SCM_RIGHTS_ || c->head.len < sizeof(struct cmsghdr_) ||
		c->head.len > sizeof *c)
		return 0;
	int n = (int)((c->head.len - sizeof(struct cmsghdr_)) / sizeof(int));
	memcpy(fds, c->bytes + sizeof(struct cmsghdr_), (size_t)n * sizeof(int));
	return n;
}

/* receive: one request and its descriptors. 1; 0 for nothing yet, -1 for the end or nonsense. */
static int receive(int conn, struct request *r, int *fds, int *nfds)
{
	union control c = {{0}};
	struct iovec_ iov = {r, sizeof *r};
	struct msghdr_ m = {.iov = &iov, .iovlen = 1, .control = &c, .controllen = sizeof c};
	long n = sc(__NR_recvmsg, conn, &m, MSG_DONTWAIT_ | MSG_CMSG_CLOEXEC_, 0);
	*nfds = 0;
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0)
		return -1;
	*nfds = take_fds(&m, &c, fds);
	return n == sizeof *r && !(m.flags & MSG_CTRUNC_) ? 1 : -1;
}

/* list_fits: a list of count offsets and its 0 lies in the payload from *at on. */
static int list_fits(u64 *at, u32 count, u32 len)
{
	*at += ((u64)count + 1) * sizeof(u64);
	return *at <= len;
}

/* check_exec: every number in the request is within its bounds, and every descriptor is there. */
static int check_exec(const struct request *r, int nfds)
{
	u64 at = 0;
	int want = 1 + (r->flags & F_TTY ? 0 : 3) + !!(r->flags & F_INTO) + !!r->cpu_ns +
		   !!(r->flags & F_OOMFD);
	return r->ntasks <= MAX_TASKS && r->ngroups <= MAX_GROUPS &&
	       nfds == want + (int)r->ntasks && r->argc > 0 && r->npaths > 0 &&
	       r->payload_len > 0 && list_fits(&at, r->argc, r->payload_len) &&
	       list_fits(&at, r->envc, r->payload_len) &&
	       list_fits(&at, r->npaths, r->payload_len) && r->cwd_off < r->payload_len &&
	       r->filter_len % sizeof(struct sock_filter) == 0 &&
	       r->filter_len / sizeof(struct sock_filter) <= BPF_MAXINSNS &&
	       r->filter_off % 8 == 0 && (u64)r->filter_off + r->filter_len <= r->payload_len &&
	       r->errnos_off % 2 == 0 && (u64)r->errnos_off + r->errnos_len <= r->payload_len &&
	       r->uid != ~0u && r->gid != ~0u;
}

/* --- payload --------------------------------------------------------------------------------- */

struct program {
	char **argv, **envp, **paths;
	const char *cwd;
	struct sock_fprog filter;
	const u16 *errnos;
	u32 nerrnos;
};

/* relocate: turns count offsets at *at into pointers, in place; 0 if one is outside. */
static char **relocate(char *base, u64 *at, u32 count, u32 len)
{
	u64 *list = (u64 *)(base + *at);
	for (u32 i = 0; i < count; i++) {
		if (list[i] >= len)
			return 0;
		list[i] = (u64)(size_t)(base + list[i]);
	}
	list[count] = 0;
	*at += ((u64)count + 1) * sizeof(u64);
	return (char **)list;
}

/* read_payload: checked pointers into the mapping at base; every string ends at its last byte. */
static int read_payload(struct program *p, const struct request *r, char *base)
{
	u64 at = 0;
	if (base[r->payload_len - 1])
		return -EINVAL;
	p->argv = relocate(base, &at, r->argc, r->payload_len);
	p->envp = p->argv ? relocate(base, &at, r->envc, r->payload_len) : 0;
	p->paths = p->envp ? relocate(base, &at, r->npaths, r->payload_len) : 0;
	p->cwd = base + r->cwd_off;
	p->filter.len = (unsigned short)(r->filter_len / sizeof(struct sock_filter));
	p->filter.filter = (struct sock_filter *)(base + r->filter_off);
	p->errnos = (const u16 *)(base + r->errnos_off);
	p->nerrnos = r->errnos_len / 2;
	return p->paths ? 0 : -EINVAL;
}

/* --- inside the new namespaces --------------------------------------------------------------- */

/* fail: records where an execution stopped, unless an earlier step did, and ends this process. */
static __attribute__((noreturn)) void fail(struct result *res, enum step step, long err, int index)
{
	if (!res->step) {
		res->err = (s32)-err;
		res->index = index;
		res->step = step;
	}
	die(1);
}

static long check(struct result *res, enum step step, long ret)
{
	if (ret < 0)
		fail(res, step, ret, -1);
	return ret;
}

/* mount_at: the target is opened without following links, since a writable root may have been
 * changed since the sandbox was made, and mounted on through the working directory. It is missing
 * where it lies below a tmpfs that was mounted just now. */
static void mount_at(struct result *res, struct mount *m, int index)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	long fd = sc(__NR_openat2, AT_FDCWD, m->target, &how, sizeof how);
	for (char *c = m->target + 1; fd == -ENOENT; c++)
		if (!*c || *c == '/') {
			char end = *c;
			*c = 0;
			sc(__NR_mkdirat, AT_FDCWD, m->target, 0755, 0);
			*c = end;
			if (!end) {
				fd = sc(__NR_openat2, AT_FDCWD, m->target, &how, sizeof how);
				break;
			}
		}
	if (fd >= 0)
		fd = sc(__NR_fchdir, fd, 0, 0, 0);
	if (fd < 0)
		fail(res, S_TARGET, fd, index);
	long ret = sc5(__NR_mount, m->type, ".", m->type, m->flags, m->options);
	if (ret < 0)
		fail(res, S_MOUNT, ret, index);
}

static void make_mounts(struct result *res, int tty)
{
	for (u32 i = 0; i < config.nmounts; i++)
		if (!(config.mounts[i].what & M_PRESENT) &&
			(tty || !(config.mounts[i].what & M_TTY)))
			mount_at(res, &config.mounts[i], (int)i);
	for (u32 i = 0; i < config.nmasks; i++) {
		/* the first byte says what it is: 'd' an empty directory covers it, 'f' /dev/null */
		const char *cover = config.masks[i][0] == 'd' ? "/dev/mqueue" : "/dev/null";
		long ret = sc5(__NR_mount, cover, config.masks[i] + 1, 0, MS_BIND, 0);
		if (ret < 0)
			fail(res, S_MASK, ret, (int)i);
	}
	check(res, S_MOUNT, sc(__NR_chdir, "/", 0, 0, 0));
}

static long loopback_up(void)
{
	struct { char name[16]; short flags; char rest[22]; } lo = {"lo", IFF_UP_, ""};
	long fd = sc(__NR_socket, AF_INET_, SOCK_DGRAM_ | SOCK_CLOEXEC_, 0, 0);
	if (fd < 0)
		return fd;
	long ret = sc(__NR_ioctl, fd, SIOCSIFFLAGS_, &lo, 0);
	sc(__NR_close, fd, 0, 0, 0);
	return ret;
}

/* open_tty: a terminal of the execution's own devpts as fds[0..2]; its master goes to the host. */
static void open_tty(struct result *res, const struct request *r, int conn, int *fds)
{
	int unlock = 0;
	unsigned short size[4] = {(unsigned short)r->rows, (unsigned short)r->cols, 0, 0};
	struct reply tty = {.kind = K_TTY};
	int how = O_RDWR | O_NOCTTY;
	long master = check(res, S_TTY, sc(__NR_openat, AT_FDCWD, "/dev/pts/ptmx", how, 0));
	check(res, S_TTY, sc(__NR_ioctl, master, TIOCSPTLCK, &unlock, 0));
	long slave = check(res, S_TTY, sc(__NR_ioctl, master, TIOCGPTPEER, how, 0));
	check(res, S_TTY, sc(__NR_ioctl, master, TIOCSWINSZ, size, 0));
	check(res, S_TTY, sc(__NR_fchown, slave, r->uid, r->gid, 0));
	check(res, S_TTY, send_reply(conn, &tty, (int)master));
	fds[0] = fds[1] = fds[2] = (int)slave;
}

/* become: the command's own limits, ids and capabilities; in the child that will exec. */
static void become(struct result *res, const struct request *r, const struct program *p)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	u32 low = (u32)r->caps, high = (u32)(r->caps >> 32);
	struct __user_cap_data_struct caps[2] = {{low, low, 0}, {high, high, 0}};
	u64 none = 0;
	check(res, S_SESSION, sc(__NR_setsid, 0, 0, 0, 0));
	if (r->flags & F_TTY)
		check(res, S_TTY, sc(__NR_ioctl, 0, TIOCSCTTY, 0, 0));
	sc(__NR_umask, r->umask, 0, 0, 0);
	for (int i = 0; i < NRLIMITS; i++) {
		int set = r->rlimit_mask >> i & 1;
		long ret = set ? sc(__NR_prlimit64, 0, i, &r->rlimits[i], 0) : 0;
		if (ret < 0)
			fail(res, S_RLIMIT, ret, i);
	}
	if (r->flags & F_AFFINITY)
		check(res, S_AFFINITY, sc(__NR_sched_setaffinity, 0, sizeof(u64[16]), r->affinity, 0));
	check(res, S_GROUPS, sc(__NR_setgroups, r->ngroups, r->groups, 0, 0));
	check(res, S_GID, sc(__NR_setresgid, r->gid, r->gid, r->gid, 0));
	check(res, S_UID, sc(__NR_setresuid, r->uid, r->uid, r->uid, 0));
	check(res, S_CAPS, sc(__NR_capset, &head, caps, 0, 0));
	check(res, S_CHDIR, sc(__NR_chdir, p->cwd, 0, 0, 0));
	sc(__NR_rt_sigprocmask, SIG_SETMASK_, &none, 0, sizeof none);
}

/* filter_command: the filter comes last. Traced, its listener goes to the reaper by number, since
 * the two share their descriptors until the exec. */
static void filter_command(
	struct result *res, const struct request *r, const struct program *p, int note)
{
	u32 flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;
	if (!p->filter.len)
		return;
	if (r->flags & F_TRACE) {
		flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER;
		/* announced before, since the profile may refuse this very call, and nobody would answer */
		sc(__NR_write, note, "", 1, 0);
	}
	long fd = sc(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &p->filter, 0);
	check(res, S_SECCOMP, fd);
	if (r->flags & F_TRACE)
		res->notify = (s32)fd;
}

/* run_paths: execve of each place where the program may be. What execvp(3) does: go on after "not
 * there", remember "not allowed". */
static __attribute__((noreturn)) void run_paths(struct result *res, const struct program *p)
{
	long err = -ENOENT;
	for (char **path = p->paths; *path; path++) {
		long ret = sc(__NR_execve, *path, p->argv, p->envp, 0);
		if (ret != -ENOENT && ret != -ENOTDIR && (ret != -EACCES || err == -ENOENT))
			err = ret;
		if (ret != -ENOENT && ret != -ENOTDIR && ret != -EACCES)
			break;
	}
	fail(res, S_EXEC, err, -1);
}

/* --- the reaper ------------------------------------------------------------------------------ */

#if defined __x86_64__
#define THIS_ARCH AUDIT_ARCH_X86_64
#else
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif
#define ALLOW(nr)                                                                                  \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* lock_reaper: only what reap needs; KILL, to pass signals on to a command of another uid. The
 * command's filter never applies here. */
static void lock_reaper(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(__NR_read), ALLOW(__NR_wait4), ALLOW(__NR_kill), ALLOW(__NR_ppoll),
		ALLOW(__NR_ioctl), ALLOW(__NR_statfs), ALLOW(__NR_clock_gettime),
		ALLOW(__NR_getrusage), ALLOW(__NR_sendmsg), ALLOW(__NR_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = {sizeof code / sizeof code[0], code};
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct caps[2] = {{1 << CAP_KILL, 1 << CAP_KILL, 0}, {0, 0, 0}};
	u32 flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;
	if (sc(__NR_capset, &head, caps, 0, 0) < 0 ||
	    sc(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog, 0) < 0)
		die(1); /* takes the command with it */
}

/* refuse: answers one refused system call and counts it. */
static void refuse(struct result *res, const struct program *p, int notify)
{
	static struct seccomp_notif req;
	struct seccomp_notif_resp resp = {0};
	memset(&req, 0, sizeof req);
	if (sc(__NR_ioctl, notify, SECCOMP_IOCTL_NOTIF_RECV, &req, 0) < 0)
		return; /* the caller was killed meanwhile */
	u32 nr = (u32)req.data.nr, i = 0;
	resp.id = req.id;
	resp.error = -(req.data.arch == THIS_ARCH && nr < p->nerrnos ? p->errnos[nr] : ENOSYS);
	sc(__NR_ioctl, notify, SECCOMP_IOCTL_NOTIF_SEND, &resp, 0);
	while (i < res->ndenied && res->denied[i].nr != nr)
		i++;
	if (i == MAX_DENIED)
		return;
	if (i == res->ndenied)
		res->denied[i].nr = nr, res->ndenied = i + 1;
	res->denied[i].count++;
}

/* reap_all: 1 when the command itself ended. */
static int reap_all(struct result *res, int command)
{
	int status, ended = 0;
	for (long pid; (pid = sc(__NR_wait4, -1, &status, WNOHANG | __WALL, 0)) > 0;) {
		if (pid != command)
			continue;
		res->status = status;
		ended = 1;
	}
	return ended;
}

/* fill: what the result says, for the guest and the reaper alike. */
static void fill(struct reply *r, const struct result *res, const struct rusage_ *use)
{
	r->wall_ns = now() - res->start;
	r->reason = res->reason;
	r->step = res->step;
	r->err = res->err;
	r->index = res->index;
	r->main_ended = res->main_ended;
	r->full = res->full;
	if (res->main_ended)
		r->status = res->status;
	r->ndenied = res->ndenied < MAX_DENIED ? res->ndenied : MAX_DENIED;
	for (u32 i = 0; i < r->ndenied; i++) {
		r->denied[i].nr = res->denied[i].nr;
		r->denied[i].count = res->denied[i].count;
	}
	r->in_blocks = (u64)use->inblock;
	r->out_blocks = (u64)use->oublock;
}

/* report: kills what is left, so that no process of the execution outlives its report. */
static void report(const struct result *res)
{
	struct rusage_ use = {.inblock = 0};
	struct reply r = {.kind = K_DONE};
	sc(__NR_kill, -1, SIGKILL_, 0, 0);
	while (sc(__NR_wait4, -1, 0, __WALL, 0) > 0)
		;
	sc(__NR_getrusage, RUSAGE_CHILDREN_, &use, 0, 0);
	fill(&r, res, &use);
	send_reply(FD_REPORT, &r, -1);
}

static u32 full_mounts(void)
{
	u32 full = 0;
	for (u32 i = 0; i < config.nmounts; i++) {
		struct statfs_ st;
		if ((config.mounts[i].what & M_SIZED) &&
			sc(__NR_statfs, config.mounts[i].target, &st, 0, 0) == 0 &&
			(st.bfree == 0 || (st.files > 0 && st.ffree == 0)))
			full |= 1u << i;
	}
	return full;
}

/* answer: waits for a refused call or a signal; 1 for a signal. *note is the pipe on which the
 * command announces the listener, then that, then -1 when no filtered process is left. Between the
 * announcement and the listener lies one system call of the command's, which nothing tells of. */
static int answer(struct result *res, const struct program *p, int sigfd, int *note)
{
	struct pollfd_ fds[2] = {{sigfd, POLLIN_, 0}, {*note, POLLIN_, 0}};
	struct __kernel_timespec soon = {0, 500000};
	sc5(__NR_ppoll, fds, 2, 0, 0, 8);
	if (fds[1].revents && !res->notify)
		sc5(__NR_ppoll, fds, 1, &soon, 0, 8);
	else if (fds[1].revents && *note != res->notify)
		*note = res->notify;
	else if (fds[1].revents & POLLIN_)
		refuse(res, p, *note);
	else if (fds[1].revents)
		*note = -1;
	return fds[0].revents & POLLIN_;
}

/* reap: waits for the command, passes on the guest's signals, answers refused calls. When it
 * ends, the kernel kills what is left in the pid namespace. */
static __attribute__((noreturn)) void reap(
	struct result *res, const struct program *p, int command, int sigfd, int note)
{
	for (;;) {
		struct siginfo_ info;
		if (note >= 0 && !answer(res, p, sigfd, &note))
			continue;
		if (sc(__NR_read, sigfd, &info, sizeof info, 0) != sizeof info)
			continue;
		/* only the guest, from outside this pid namespace, has pid 0 */
		if (info.signo != SIGCHLD_ && info.pid == 0)
			sc(__NR_kill, command, info.signo, 0, 0);
		if (info.signo == SIGCHLD_ && reap_all(res, command))
			break;
	}
	res->full = full_mounts();
	res->main_ended = 1;
	report(res);
	die(0);
}

/* --- one execution, from clone to reaper ----------------------------------------------------- */

/* enter: everything that is done once for the execution, before the command is forked. */
static void enter(struct result *res, const struct request *r, int *fds, int conn)
{
	int *tasks = fds + 1 + (r->flags & F_TTY ? 0 : 3) + !!(r->flags & F_INTO) + !!r->cpu_ns +
		     !!(r->flags & F_OOMFD);
	for (u32 i = 0; i < r->ntasks; i++)
		check(res, S_CGROUP, sc(__NR_write, tasks[i], "0", 1, 0));
	check(res, S_CGROUPNS, sc(__NR_unshare, CLONE_NEWCGROUP, 0, 0, 0));
	make_mounts(res, r->flags & F_TTY);
	if (config.flags & C_NEWNET)
		check(res, S_LOOPBACK, loopback_up());
	if (r->flags & F_TTY)
		open_tty(res, r, conn, fds + 1);
	for (int i = 0; i < 3; i++)
		check(res, S_STDIO, sc(__NR_dup3, fds[1 + i], i, 0, 0));
	check(res, S_STDIO, sc(__NR_dup3, conn, FD_REPORT, O_CLOEXEC, 0));
	check(res, S_STDIO, sc(__NR_close_range, FD_REPORT + 1, ~0u, 0, 0));
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!(r->caps >> cap & 1))
			check(res, S_BOUNDING, sc(__NR_prctl, PR_CAPBSET_DROP, cap, 0, 0));
	check(res, S_NONEWPRIVS, sc5(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

/* command: in a frame of its own, since a vfork parent goes on in the frame that called this. */
static __attribute__((noreturn, noinline)) void command(
	struct result *res, const struct request *r, struct program *p, int note)
{
	become(res, r, p);
	filter_command(res, r, p, note);
	run_paths(res, p);
}

/* child: first process of the execution. vfork shares our memory until the exec; a traced command
 * is forked and shares descriptors, because the reaper must answer its calls from the first on. */
static __attribute__((noreturn)) void child(struct slot *s, const struct request *r, int *fds)
{
	struct result *res = result_of(s);
	struct program p;
	u64 all = ~0ull;
	int note[2] = {-1, -1}, trace = (r->flags & F_TRACE) && r->filter_len;
	long base = sc6(__NR_mmap, 0, r->payload_len, PROT_RW, MAP_PRIVATE_, fds[0], 0);
	check(res, S_PAYLOAD, base < 0 && base > -4096 ? base : read_payload(&p, r, (char *)base));
	enter(res, r, fds, s->conn);
	int sigfd = (int)check(res, S_FORK, sc(__NR_signalfd4, -1, &all, sizeof all, O_CLOEXEC));
	if (trace)
		check(res, S_FORK, sc(__NR_pipe2, note, O_CLOEXEC, 0, 0));
	/* a real and a saved id that differ are nobody's match: else a command that runs as root could
	 * set process 1's limits (prlimit(2)), and a CPU time of 0 kills */
	check(res, S_UID, sc(__NR_setresuid, -1, -1, NOBODY, 0));
	u64 flags = trace ? CLONE_FILES : CLONE_VM | CLONE_VFORK;
	long pid = sc6(__NR_clone, (long)(flags | SIGCHLD_), 0, 0, 0, 0, 0);
	if (pid == 0)
		command(res, r, &p, note[1]);
	check(res, S_FORK, pid);
	if (!trace) /* else they are the command's as well, until its exec */
		sc(__NR_close_range, 0, 2, 0, 0);
	lock_reaper();
	reap(res, &p, (int)pid, sigfd, note[0]);
}

/* --- the guest ------------------------------------------------------------------------------- */

static void ended(struct slot *s, u32 step, int err)
{
	struct result *res = result_of(s);
	struct rusage_ use = {.inblock = 0};
	struct reply r = {.kind = K_ENDED, .step = step, .err = err, .index = -1};
	if (s->pid > 0) {
		sc(__NR_wait4, s->pid, &r.status, __WALL, &use);
		fill(&r, res, &use);
	}
	send_reply(s->conn, &r, -1);
	close_fd(&s->pidfd);
	close_fd(&s->cpufd);
	close_fd(&s->oomfd);
	s->pid = 0;
	s->deadline = s->cpu_check = 0;
}

static void kill_execution(struct slot *s, u32 reason)
{
	if (!result_of(s)->reason)
		result_of(s)->reason = reason;
	s->deadline = s->cpu_check = 0;
	sc(__NR_pidfd_send_signal, s->pidfd, SIGKILL_, 0, 0);
}

static void start(struct slot *s, const struct request *r, int *fds)
{
	int at = 1 + (r->flags & F_TTY ? 0 : 3);
	struct clone_args args = {.pidfd = (u64)(size_t)&s->pidfd, .exit_signal = SIGCHLD_};
	args.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_PIDFD |
		     (config.flags & C_NEWNET ? CLONE_NEWNET : 0) |
		     (config.flags & C_NEWIPC ? CLONE_NEWIPC : 0);
	if (r->flags & F_INTO) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (u64)fds[at++];
	}
	memset(result_of(s), 0, sizeof(struct result));
	u64 at_start = result_of(s)->start = now();
	long pid = sc(__NR_clone3, &args, sizeof args, 0, 0);
	if (pid == 0)
		child(s, r, fds);
	if (pid > 0) {
		s->pid = (int)pid;
		s->deadline = r->wall_ns ? at_start + r->wall_ns : 0;
		s->cpu_ns = r->cpu_ns;
		s->ncpus = r->ncpus ? r->ncpus : 1;
		s->cpu_v1 = r->flags & F_CPU_V1;
		s->cpu_check = r->cpu_ns ? at_start + r->cpu_ns / s->ncpus : 0;
		if (r->cpu_ns)
			s->cpufd = fds[at], fds[at++] = -1;
		if (r->flags & F_OOMFD)
			s->oomfd = fds[at], fds[at++] = -1;
		reply_kind(s->conn, K_STARTED, 0);
	} else {
		ended(s, S_CLONE, (int)-pid);
	}
}

static void stop(u64 grace)
{
	u64 deadline = now() + grace;
	if (!stopping || deadline < stop_deadline)
		stop_deadline = deadline;
	stopping = 1;
	for (struct slot *s = slots; s < slots + SLOTS; s++)
		if (s->pid > 0) {
			if (!result_of(s)->reason)
				result_of(s)->reason = R_STOP;
			sc(__NR_pidfd_send_signal, s->pidfd, grace ? SIGTERM_ : SIGKILL_, 0, 0);
		}
}

static void handle(struct slot *s, const struct request *r, int *fds, int nfds)
{
	if (r->version != PROTO_VERSION && r->kind != K_STOP) /* any version can end a sandbox */
		reply_kind(s->conn, K_REFUSED, EPROTONOSUPPORT);
	else if (r->kind == K_HELLO)
		reply_kind(s->conn, K_VERSION, 0);
	else if (r->kind == K_EXEC && stopping)
		reply_kind(s->conn, K_REFUSED, ESHUTDOWN);
	else if (r->kind == K_EXEC && (s->pid > 0 || !check_exec(r, nfds)))
		reply_kind(s->conn, K_REFUSED, EINVAL);
	else if (r->kind == K_EXEC)
		start(s, r, fds);
	else if (r->kind == K_SIGNAL && s->pid > 0 && r->signal != SIGSTOP_ && r->signal != SIGKILL_)
		sc(__NR_pidfd_send_signal, s->pidfd, r->signal, 0, 0); /* the reaper passes it on */
	else if (r->kind == K_KILL && s->pid > 0)
		kill_execution(s, R_KILL);
	else if (r->kind == K_STOP)
		stop(r->grace_ns);
}

/* hear: one message of a connection. A closed one takes its execution along. */
static void hear(struct slot *s)
{
	static struct request r;
	int fds[MAX_FDS], nfds = 0;
	int got = receive(s->conn, &r, fds, &nfds);
	if (got > 0)
		handle(s, &r, fds, nfds);
	for (int i = 0; i < nfds; i++)
		close_fd(&fds[i]);
	if (got >= 0)
		return;
	close_fd(&s->conn);
	if (s->pid > 0)
		kill_execution(s, R_KILL);
	else
		s->used = 0;
}

/* cpu_used: nanoseconds of the execution's tree, from the number that its counter file begins with
 * ("usage_usec N" in cpu.stat, N in cpuacct.usage). */
static u64 cpu_used(const struct slot *s)
{
	char text[64] = {0};
	u64 value = 0;
	const char *c = text;
	sc(__NR_pread64, s->cpufd, text, sizeof text - 1, 0);
	while (*c && (*c < '0' || *c > '9'))
		c++;
	for (; *c >= '0' && *c <= '9'; c++)
		value = value * 10 + (u64)(*c - '0');
	return s->cpu_v1 ? value : value * 1000;
}

/* check_cpu: kills, or says when the rest could be used up at the earliest. */
static void check_cpu(struct slot *s, u64 at)
{
	u64 used = cpu_used(s), rest = used < s->cpu_ns ? (s->cpu_ns - used) / s->ncpus : 0;
	if (used >= s->cpu_ns)
		kill_execution(s, R_CPU);
	else
		s->cpu_check = at + (rest < 10000000 ? 10000000 : rest);
}

static u64 earlier(u64 a, u64 b) { return !a || (b && b < a) ? b : a; }

/* deadlines: enforces what is due; gives the next moment something will be, 0 for never. */
static u64 deadlines(u64 at)
{
	u64 next = 0;
	if (stopping && at >= stop_deadline)
		stop(0), stop_deadline = ~0ull;
	for (struct slot *s = slots; s < slots + SLOTS; s++) {
		if (s->deadline && at >= s->deadline)
			kill_execution(s, R_WALL);
		if (s->cpu_check && at >= s->cpu_check)
			check_cpu(s, at);
		next = earlier(next, earlier(s->deadline, s->cpu_check));
	}
	return stopping ? earlier(next, stop_deadline) : next;
}

static void accept_connection(void)
{
	long conn = sc(__NR_accept4, FD_LISTEN, 0, 0, SOCK_CLOEXEC_);
	for (struct slot *s = slots; conn >= 0 && s < slots + SLOTS; s++)
		if (!s->used) {
			*s = (struct slot){1, (int)conn, .pidfd = -1, .cpufd = -1, .oomfd = -1};
			return;
		}
}

/* watch: fills fds with what each slot waits for (three entries a slot); 1 if a slot is free. */
static int watch(struct pollfd_ *fds, u64 *live)
{
	int unused = 0;
	*live = 0;
	for (int i = 0; i < SLOTS; i++) {
		struct slot *s = &slots[i];
		fds[3 * i] = (struct pollfd_){s->used ? s->conn : -1, POLLIN_, 0};
		fds[3 * i + 1] = (struct pollfd_){s->pid > 0 ? s->pidfd : -1, POLLIN_, 0};
		fds[3 * i + 2] = (struct pollfd_){s->pid > 0 ? s->oomfd : -1, POLLIN_, 0};
		unused |= !s->used;
		*live += s->pid > 0;
	}
	return unused;
}

static void serve(struct slot *s, const struct pollfd_ *fds)
{
	/* hybrid hosts cannot kill a group by themselves: an eventfd says that memory ran out */
	if (fds[2].revents && s->pid > 0)
		close_fd(&s->oomfd), kill_execution(s, R_OOM);
	if (fds[1].revents && s->pid > 0) {
		ended(s, S_NONE, 0);
		if (s->conn < 0)
			s->used = 0;
	}
	if (fds[0].revents && s->conn >= 0)
		hear(s);
}

static __attribute__((noreturn)) void loop(void)
{
	static struct pollfd_ fds[3 * SLOTS + 2];
	for (;;) {
		u64 at = now(), next = deadlines(at), live, wait = next > at ? next - at : 0;
		int unused = watch(fds, &live);
		if (stopping && !live)
			die(0);
		fds[3 * SLOTS] = (struct pollfd_){unused ? FD_LISTEN : -1, POLLIN_, 0};
		fds[3 * SLOTS + 1] = (struct pollfd_){life, POLLIN_, 0};
		struct __kernel_timespec t = {(long long)(wait / SECOND), (long long)(wait % SECOND)};
		if (sc5(__NR_ppoll, fds, 3 * SLOTS + 2, next ? &t : 0, 0, 8) <= 0)
			continue;
		if (fds[3 * SLOTS + 1].revents)
			die(0); /* the owner died */
		for (int i = 0; i < SLOTS; i++)
			serve(&slots[i], &fds[3 * i]);
		if (fds[3 * SLOTS].revents)
			accept_connection();
	}
}

/* keep_masks: drops the paths that this kernel has not, and notes which are directories. */
static void keep_masks(void)
{
	u32 kept = 0;
	for (u32 i = 0; i < config.nmasks; i++) {
		struct stat st;
		char *path = config.masks[i] + 1, *to = config.masks[kept];
		if (sc(__NR_newfstatat, AT_FDCWD, path, &st, 0) < 0)
			continue;
		for (u32 k = 1; k < sizeof config.masks[0]; k++)
			to[k] = config.masks[i][k];
		to[0] = (st.st_mode & 0170000) == 0040000 ? 'd' : 'f';
		kept++;
	}
	config.nmasks = kept;
}

/* no_nested: no user namespaces below the sandbox's own, whatever the filter says. */
static long no_nested(void)
{
	long fd = sc(__NR_openat, AT_FDCWD, "/proc/sys/user/max_user_namespaces", O_WRONLY, 0);
	if (fd < 0)
		return fd;
	long ret = sc(__NR_write, fd, "0", 1, 0);
	sc(__NR_close, fd, 0, 0, 0);
	return ret;
}

#ifndef HOSTED
/* Exit codes of a guest that cannot start: protocol.go has the texts. */
enum { X_CONFIG = 10, X_MEMORY, X_PROC, X_NESTED, X_LOOPBACK };

void guest_main(int argc, char **argv)
{
	long n, got = 0;
	u64 all = ~0ull;
	char *to = (char *)&config;
	while ((n = sc(__NR_read, FD_CONFIG, to + got, sizeof config - (size_t)got, 0)) > 0)
		got += n;
	if (got != sizeof config || config.version != PROTO_VERSION ||
	    config.nmounts > MAX_MOUNTS || config.nmasks > MAX_MASKS)
		die(X_CONFIG);
	int shared = MAP_SHARED_ | MAP_ANONYMOUS_;
	long map = sc6(__NR_mmap, 0, sizeof *pages * SLOTS, PROT_RW, shared, -1, 0);
	if (map < 0 && map > -4096)
		die(X_MEMORY);
	pages = (char(*)[4096])map;
	/* a reaper must not lose a signal that comes before it listens: blocked ones stay pending */
	sc(__NR_rt_sigprocmask, SIG_SETMASK_, &all, 0, sizeof all);
	/* non-dumpable: neither this process nor a reaper can be looked into by a command */
	if (sc5(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || argc < 1)
		die(X_PROC);
	sc5(__NR_prctl, PR_SET_NAME, "husk", 0, 0, 0);
	for (char *c = argv[0]; *c; c++)
		*c = "husk\0"[c - argv[0] < 4 ? c - argv[0] : 4];
	keep_masks();
	if (no_nested() < 0)
		die(X_NESTED);
	if ((config.flags & C_LOOPBACK) && loopback_up() < 0)
		die(X_LOOPBACK);
	sc(__NR_close, FD_CONFIG, 0, 0, 0);
	sc(__NR_close, FD_SELF, 0, 0, 0);
	if (config.flags & C_OWNED)
		life = FD_LIFE;
	loop();
}
#endif
