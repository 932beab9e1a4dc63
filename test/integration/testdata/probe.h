/* probe.h: what the sources of probe share. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* say prints the line of one attempt: OK, or the name of errno. */
static inline void say(const char *what, long ret)
{
	if (ret >= 0)
		printf("%s OK\n", what);
	else
		printf("%s %s\n", what, strerrorname_np(errno));
}

/* The groups of exhaust.c. */
void probe_forks(void);
void probe_threads(void);
void probe_zombies(void);
void probe_daemons(void);
void probe_memfd(void);
void probe_heap(void);
void probe_shm(void);
void probe_sockets_full(void);
void probe_tables(void);
void probe_quotas(void);
void probe_crash(void);

/* The groups of files.c. */
void probe_mounts(void);
void probe_setid(void);
void probe_privileges(void);
void probe_dirty(void);
void probe_executable(void);
