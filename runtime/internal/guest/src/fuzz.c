/*
 * fuzz.c: the guest's parsing under the sanitizers. Reads inputs (u32 length, bytes) from standard
 * input and answers each with one byte; protocol_fuzz_test.go drives it.
 *
 * An input is a struct request, one byte with the number of descriptors, and the payload.
 */
#define HOSTED
#include <stdlib.h>

#include "guest.c"

static u64 seen; /* keeps the reads alive */

static void look(const char *s)
{
	for (; *s; s++)
		seen += (u8)*s;
}

static void look_at(char **list)
{
	for (; *list; list++)
		look(*list);
}

static char try(const u8 *in, u32 n)
{
	struct request r;
	struct program p;
	if (n < sizeof r + 1)
		return 's';
	memcpy(&r, in, sizeof r);
	if (!check_exec(&r, in[sizeof r]) || r.payload_len > 1 << 20)
		return 'r';
	char *payload = calloc(1, r.payload_len);
	u32 rest = n - (u32)sizeof r - 1;
	memcpy(payload, in + sizeof r + 1, rest < r.payload_len ? rest : r.payload_len);
	char answer = 'p';
	if (read_payload(&p, &r, payload) == 0) {
		answer = 'o';
		look_at(p.argv);
		look_at(p.envp);
		look_at(p.paths);
		look(p.cwd);
		for (u32 i = 0; i < p.filter.len; i++)
			seen += p.filter.filter[i].k;
		for (u32 i = 0; i < p.nerrnos; i++)
			seen += p.errnos[i];
	}
	free(payload);
	return answer;
}

static void try_control(const u8 *in, u32 n)
{
	union control c = {{0}};
	int fds[MAX_FDS];
	struct msghdr_ m = {.control = &c, .controllen = n < sizeof c ? n : sizeof c};
	memcpy(&c, in, m.controllen);
	for (int count = take_fds(&m, &c, fds); count > 0; count--)
		seen += (u64)fds[count - 1];
}

static int all(void *to, u32 n)
{
	for (u32 got = 0; got < n;) {
		long ret = read(0, (char *)to + got, n - got);
		if (ret <= 0)
			return 0;
		got += (u32)ret;
	}
	return 1;
}

int main(void)
{
	(void)loop;
	(void)keep_masks;
	(void)no_nested;
	for (u32 n; all(&n, sizeof n);) {
		u8 *in = malloc(n + !n);
		if (!in || !all(in, n))
			return 1;
		char answer = try(in, n);
		try_control(in, n);
		free(in);
		if (write(1, &answer, 1) != 1)
			return 1;
	}
	return 0;
}
