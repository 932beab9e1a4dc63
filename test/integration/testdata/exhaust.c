/* exhaust: programs that take all there is; groups of probe. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static void *sleeper(void *arg) { pause(); return arg; }

void probe_forks(void)
{
	int n = 0;
	for (pid_t pid; n < 100000 && (pid = fork()) >= 0; n++)
		if (pid == 0)
			sleeper(0);
	printf("count %d\nend %s\n", n, strerrorname_np(errno));
}

void probe_threads(void)
{
	int n = 0, err = 0;
	pthread_t thread;
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 32768);
	while (n < 100000 && !(err = pthread_create(&thread, &small, sleeper, 0)))
		n++;
	printf("count %d\nend %s\n", n, strerrorname_np(err));
}

/* fork_soon waits for process 1, which may be behind, before it gives up. */
static pid_t fork_soon(void)
{
	pid_t pid = fork();
	for (int i = 0; pid < 0 && i < 10000; i++) {
		usleep(1000);
		pid = fork();
	}
	return pid;
}

/* probe_zombies leaves orphans that end at once: process 1 must reap them, or the limit is reached. */
void probe_zombies(void)
{
	int failed = 0;
	for (int i = 0; i < 600; i++) {
		int status = 1;
		pid_t pid = fork_soon();
		if (pid == 0)
			_exit(fork_soon() < 0);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			failed++;
	}
	printf("failed %d\n", failed);
}

/* probe_daemons: three generations that ignore everything and hold the pipes; the last stop. */
void probe_daemons(void)
{
	for (int sig = 1; sig < 65; sig++)
		signal(sig, SIG_IGN);
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			setsid();
			if (fork() == 0) {
				setsid();
				if (i == 2)
					raise(SIGSTOP);
				for (;;)
					sleep(1000);
			}
			for (;;)
				sleep(1000);
		}
	printf("started OK\n");
}

static void fill(int fd)
{
	static char page[1 << 16];
	memset(page, 1, sizeof page);
	while (write(fd, page, sizeof page) > 0)
		;
}

void probe_memfd(void) { fill(memfd_create("x", 0)); }

void probe_heap(void)
{
	for (char *p; (p = malloc(1 << 20));)
		memset(p, 1, 1 << 20);
}

void probe_shm(void)
{
	for (int id; (id = shmget(IPC_PRIVATE, 1 << 20, 0600)) >= 0;)
		memset(shmat(id, 0, 0), 1, 1 << 20);
}

void probe_sockets_full(void)
{
	for (int pair[2]; !socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);)
		fill(pair[0]);
	printf("end %s\n", strerrorname_np(errno));
}

/* probe_tables: one page of memory mapped in a great many places. */
void probe_tables(void)
{
	int fd = memfd_create("x", 0);
	if (ftruncate(fd, 4096) < 0)
		return;
	for (unsigned long at = 1ul << 40; at < 1ul << 46; at += 1ul << 21) {
		char *p = mmap((void *)at, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
		if (p == MAP_FAILED)
			break;
		*p = 1;
	}
	printf("end %s\n", strerrorname_np(errno));
}

void probe_quotas(void)
{
	int n = 0;
	while (n < 100000 && open("/dev/null", O_RDONLY) >= 0)
		n++;
	printf("descriptors %d\n", n);
	close_range(3, ~0u, 0);
	char name[32];
	for (n = 0; n < 100000; n++) {
		snprintf(name, sizeof name, "/q%d", n);
		if (mq_open(name, O_CREAT | O_RDWR, 0600, 0) < 0)
			break;
	}
	printf("queues %d\n", n);
	close_range(3, ~0u, 0);
	for (n = 0; n < 100000 && semget(IPC_PRIVATE, 1, 0600) >= 0;)
		n++;
	printf("semaphores %d\n", n);
	printf("locked %s\n", mlock(malloc(64 << 20), 64 << 20) ? strerrorname_np(errno) : "OK");
	printf("nice %s\n", setpriority(PRIO_PROCESS, 0, -5) ? strerrorname_np(errno) : "OK");
	struct sched_param one = {1};
	printf("realtime %s\n", sched_setscheduler(0, SCHED_FIFO, &one) ? strerrorname_np(errno) : "OK");
}

void probe_crash(void) { abort(); }
