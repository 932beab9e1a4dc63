package seccomp

import "golang.org/x/sys/unix"

// strictDocument returns the rules of the profile "strict".
func strictDocument() document {
	doc := document{fallback: eperm}
	for _, names := range [...][]string{
		strictFiles(), strictMemory(), strictProcesses(), strictWaiting(), strictNetwork(), strictSystem(),
	} {
		doc.rules = append(doc.rules, docRule{names: names, act: allow})
	}
	for _, rules := range [...][]docRule{
		strictSockets(), strictConditions(), closedSocketOptions(), closedTerminal(), closedCalls(),
	} {
		doc.rules = append(doc.rules, rules...)
	}
	return doc
}

func strictFiles() []string {
	return []string{
		"access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup", "dup2", "dup3",
		"faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown",
		"fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock", "fstat", "fstatfs", "fsync", "ftruncate",
		"futimesat", "getcwd", "getdents", "getdents64", "getxattr", "getxattrat", "inotify_add_watch", "inotify_init",
		"inotify_init1", "inotify_rm_watch", "ioctl", "lchown", "lgetxattr", "link", "linkat", "listxattr",
		"listxattrat", "llistxattr", "lseek", "lstat", "memfd_create", "mkdir", "mkdirat", "newfstatat", "open",
		"openat", "openat2", "pipe", "pipe2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read",
		"readahead", "readlink", "readlinkat", "readv", "rename", "renameat", "renameat2", "rmdir", "sendfile",
		"splice", "stat", "statfs", "statx", "symlink", "symlinkat", "sync", "sync_file_range", "syncfs", "truncate",
		"umask", "unlink", "unlinkat", "utime", "utimensat", "utimes", "write", "writev",
	}
}

func strictMemory() []string {
	return []string{
		"brk", "madvise", "map_shadow_stack", "membarrier", "mincore", "mlock", "mlock2", "mlockall", "mmap",
		"mprotect", "mremap", "mseal", "msync", "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free",
		"pkey_mprotect",
	}
}

func strictProcesses() []string {
	return []string{
		"arch_prctl", "capget", "execve", "execveat", "exit", "exit_group", "fork", "getegid", "geteuid", "getgid",
		"getgroups", "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getresgid", "getresuid", "getrlimit",
		"getrusage", "getsid", "gettid", "getuid", "kill", "landlock_add_rule", "landlock_create_ruleset",
		"landlock_restrict_self", "pidfd_open", "pidfd_send_signal", "prctl", "prlimit64", "rseq", "rt_sigaction",
		"rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
		"rt_tgsigqueueinfo", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr",
		"sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_setattr",
		"sched_setparam", "sched_setscheduler", "sched_yield", "set_robust_list", "get_robust_list",
		"set_tid_address", "setpgid", "setpriority", "setrlimit", "setsid", "sigaltstack", "tgkill", "times", "tkill",
		"vfork", "wait4", "waitid",
	}
}

func strictWaiting() []string {
	return []string{
		"alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "epoll_create", "epoll_create1", "epoll_ctl",
		"epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "futex", "futex_requeue", "futex_wait",
		"futex_waitv", "futex_wake", "getitimer", "gettimeofday", "nanosleep", "pause", "poll", "ppoll", "pselect6",
		"restart_syscall", "select", "setitimer", "signalfd", "signalfd4", "time", "timer_create", "timer_delete",
		"timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime",
	}
}

func strictNetwork() []string {
	return []string{
		"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recvfrom",
		"recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
	}
}

func strictSystem() []string {
	return []string{"getcpu", "getrandom", "sysinfo", "uname"}
}

// strictSockets permits unix sockets, TCP and UDP.
func strictSockets() []docRule {
	const typeMask = 0xf // the rest are SOCK_CLOEXEC and SOCK_NONBLOCK
	rules := []docRule{
		{names: []string{"socket", "socketpair"}, act: allow, conds: []cond{is(0, unix.AF_UNIX)}},
		{names: []string{"socket", "socketpair"}, act: noFamily, otherwise: true},
	}
	inet := func(family, kind, protocol uint32) {
		conds := []cond{is(0, family), field(1, typeMask, kind), is(2, protocol)}
		rules = append(rules, docRule{names: []string{"socket"}, act: allow, conds: conds})
	}
	for _, family := range [...]uint32{unix.AF_INET, unix.AF_INET6} {
		inet(family, unix.SOCK_STREAM, 0)
		inet(family, unix.SOCK_STREAM, unix.IPPROTO_TCP)
		inet(family, unix.SOCK_DGRAM, 0)
		inet(family, unix.SOCK_DGRAM, unix.IPPROTO_UDP)
	}
	return rules
}

// strictConditions permits or refuses calls by their arguments, or with an errno of their own.
func strictConditions() []docRule {
	const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP
	return []docRule{
		{names: []string{"clone"}, act: allow, conds: []cond{field(0, namespaces, 0)}},
		{names: []string{"mknod"}, act: allow, conds: []cond{field(1, unix.S_IFMT, unix.S_IFIFO)}},
		{names: []string{"mknodat"}, act: allow, conds: []cond{field(2, unix.S_IFMT, unix.S_IFIFO)}},
		{names: []string{"prctl"}, act: eperm, conds: []cond{is(0, unix.PR_SET_SECCOMP)}},
		{names: []string{
			"fremovexattr", "fsetxattr", "lremovexattr", "lsetxattr", "removexattr", "removexattrat", "setxattr",
			"setxattrat",
		}, act: noAttribute},
	}
}
