/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ends in one process, each run by a thread of its own as a process's engine would: they send, take, sleep, wake
 * each other and take back what they lent. (ThreadSanitizer cannot judge it: each end has the rings at other addresses.
 * shm_ring_races does.)
 */
#include "support/shm_ends.h"
#include "support/test.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>

enum {
	SENT = 40000,       /* packets, each way */
	TAKEN_BACK = 20000, /* behind so many nothing is taken back any more, so that some comes even where the ends run
			       by turns */
	AT_ONCE = 7,
	EACH_FAR = 4,        /* after so many bursts one whose payload is left out */
	EACH_TAKEN_BACK = 2, /* after so many of those all are taken back */
	FAR_AT = 40,
	FAR_BYTES = 48 << 10, /* so that to read them takes a while */
	FAR_LEN = FAR_AT + FAR_BYTES,
	WAKES_MS = 60000, /* a bell that is not heard */
	STEP_NS = 1000
};

struct side {
	struct end *e;
	unsigned peer;
	uint32_t sent, got;
	uint64_t now_ns, bursts, far, far_came, lot, taken_back, slept;
	uint8_t bytes[AT_ONCE][LEN], memory[FAR_BYTES], far_bytes[FAR_LEN];
};

/* cmocka's assertions are for the main thread. */
static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static bool is_full(const struct side *s)
{
	return s->e->peers[s->peer].full;
}

static void send_far(struct side *s)
{
	const struct pkt_far far = {.from = s->memory, .lot = ++s->lot};
	struct pkt p = {.data = s->far_bytes,
			.flow = &within,
			.len = FAR_LEN,
			.train = 1,
			.far_at = FAR_AT,
			.far_bytes = FAR_BYTES};

	if (!s->e->peers[s->peer].reads)
		return;
	s->far_bytes[0] = 1;
	s->far_bytes[5] = (uint8_t)(s->peer << 1);
	memcpy(s->far_bytes + FAR_AT, &far, sizeof(far));
	must(io_send(s->e->io, &p, 1, s->now_ns) == 1, "a packet is refused");
	if (++s->far % EACH_TAKEN_BACK || s->sent >= TAKEN_BACK)
		return;
	/* It may be something else at once: who reads it meanwhile drops what came. */
	loan_take_back(s->e->peers[s->peer].loan, s->lot);
	memset(s->memory, (int)++s->taken_back, sizeof(s->memory));
}

static bool send_some(struct side *s)
{
	struct pkt pkts[AT_ONCE];
	size_t n = SENT - s->sent < AT_ONCE ? SENT - s->sent : AT_ONCE;

	look_at(s->e, s->peer, s->now_ns);
	if (!n || is_full(s))
		return false;
	if (s->bursts++ % EACH_FAR == 0)
		send_far(s);
	fill(pkts, s->bytes, n, s->peer, s->sent);
	must(io_send(s->e->io, pkts, n, s->now_ns) == n, "packets are refused");
	s->sent += (uint32_t)n;
	return true;
}

static bool take_some(struct side *s)
{
	struct pkt pkts[BURST];
	size_t n = io_recv(s->e->io, pkts, BURST, s->now_ns);

	for (size_t i = 0; i < n; i++) {
		if (pkts[i].data[0]) {
			for (size_t k = FAR_AT; k < FAR_LEN; k++)
				must(pkts[i].data[k] == pkts[i].data[FAR_AT], "payload of two lives");
			s->far_came++;
			continue;
		}
		must(get_be32(pkts[i].data + 12) == s->got, "a packet is lost or out of order");
		s->got++;
	}
	return n;
}

static void sleep_until_woken(struct side *s)
{
	struct pollfd p = {.events = POLLIN};
	int fds[IO_FDS_MAX];
	uint64_t due_ns;

	io_flush(s->e->io);
	due_ns = io_deadline_ns(s->e->io);
	if (due_ns <= s->now_ns)
		return;
	p.fd = fds[io_fds(s->e->io, fds, IO_FDS_MAX) - 1];
	s->slept++;
	must(poll(&p, 1, due_ns == UINT64_MAX ? WAKES_MS : 1) > 0 || due_ns != UINT64_MAX, "nobody wakes a sleeper");
	if (due_ns != UINT64_MAX)
		s->now_ns = due_ns;
}

static void *run(void *arg)
{
	struct side *s = arg;

	while (s->sent < SENT || s->got < SENT || is_full(s)) {
		bool moved = send_some(s);

		s->now_ns += STEP_NS;
		moved |= take_some(s);
		if (!moved)
			sleep_until_woken(s);
	}
	return NULL;
}

TEST(both_ends_run_at_once)
{
	struct side *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	pthread_t thread;

	*a = (struct side){.e = end_new(A), .peer = B, .now_ns = 1};
	*b = (struct side){.e = end_new(B), .peer = A, .now_ns = 1};
	connect_ends(a->e, A, b->e, B);
	connect_ends(b->e, B, a->e, A);
	assert_int_equal(pthread_create(&thread, NULL, run, a), 0);
	run(b);
	pthread_join(thread, NULL);
	assert_int_equal(a->got, SENT);
	assert_int_equal(b->got, SENT);
	assert_int_equal(a->e->counters.shm_broken + b->e->counters.shm_broken, 0);
	/* It was about something. */
	assert_true(a->taken_back && b->taken_back);
	assert_true(a->far_came + b->far_came > 0);
	end_free(a->e);
	end_free(b->e);
	free(a);
	free(b);
}
