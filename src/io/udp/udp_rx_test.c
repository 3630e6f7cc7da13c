/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of several sockets a look reads, and how many system calls it makes. */
#include "support/udp_ends.h"
#include "support/test.h"

/* Two ports in each family, as RoCEv2 and veRoCE have them. */
struct four {
	size_t n;
	int fds[4];
	enum udp_family family[4];
	uint16_t port[4];
	struct io *rx, *tx;
	struct io_counters rx_counters, tx_counters;
	uint64_t now_ns;
	uint8_t bytes[4][100];
};

static void four_open(struct four *q)
{
	struct udp_config rx = {.counters = &q->rx_counters};
	struct udp_config tx = {.counters = &q->tx_counters};
	char why[256];

	q->now_ns = 1000000000;
	for (size_t i = 0; i < 4; i++) {
		q->family[q->n] = i % 2 ? UDP_V6 : UDP_V4;
		q->fds[q->n] = bind_any(q->family[q->n], &q->port[q->n]);
		if (q->fds[q->n] >= 0)
			rx.rx_fds[rx.rx_count++] = q->fds[q->n++];
	}
	assert_true(q->n >= 2);
	assert_int_equal(udp_open(&q->rx, &rx, why, sizeof(why)), 0);
	assert_int_equal(udp_open(&q->tx, &tx, why, sizeof(why)), 0);
}

static void four_close(struct four *q)
{
	io_close(q->rx);
	io_close(q->tx);
	for (size_t i = 0; i < q->n; i++)
		close(q->fds[i]);
}

/* One packet to socket i, which says so. */
static void four_send(struct four *q, size_t i)
{
	bool v4 = q->family[i] == UDP_V4;
	struct flow f = {.sport = udp_source_port(q->tx, q->family[i], 0), .dport = q->port[i], .tos = i % 2 ? 2 : 0};
	struct pkt p = {.data = q->bytes[i], .flow = &f, .len = sizeof(q->bytes[i]), .train = 1};

	set_addr(f.src, v4 ? "127.0.0.1" : "::1");
	set_addr(f.dst, v4 ? "127.0.0.1" : "::1");
	q->bytes[i][0] = (uint8_t)i;
	assert_int_equal(io_send(q->tx, &p, 1, 0), 1);
}

/* One look; how many packets of which sockets it finds. */
static size_t four_look(struct four *q, uint64_t after_ns, size_t found[4])
{
	struct pkt p[16];
	size_t n;

	q->now_ns += after_ns;
	n = io_recv(q->rx, p, 16, q->now_ns);
	for (size_t k = 0; k < n; k++) {
		size_t i = p[k].data[0];

		assert_true(i < q->n);
		assert_int_equal(p[k].flow->dport, q->port[i]);
		assert_int_equal(p[k].flow->tos, i % 2 ? 2 : 0);
		found[i]++;
	}
	return n;
}

enum { SOON_NS = 300, PAUSE_NS = 100000 };

TEST(idle_sockets_cost_little)
{
	enum { LOOKS = 1600 };
	struct four q = {0};
	size_t found[4] = {0};
	uint64_t calls;

	four_open(&q);
	for (int i = 0; i < 100; i++)
		assert_int_equal(four_look(&q, SOON_NS, found), 0);
	calls = q.rx_counters.rx_syscalls;
	for (int i = 0; i < LOOKS; i++)
		assert_int_equal(four_look(&q, SOON_NS, found), 0);
	assert_in_range(q.rx_counters.rx_syscalls - calls, LOOKS, LOOKS + LOOKS / 16 + 1);

	/*
	 * A ping-pong on one socket: a call that finds a packet, one that is avoided, some that
	 * wait.
	 */
	calls = q.rx_counters.rx_syscalls;
	for (int i = 0; i < LOOKS; i++) {
		four_send(&q, q.n - 1);
		while (!found[q.n - 1])
			four_look(&q, SOON_NS, found);
		found[q.n - 1] = 0;
	}
	assert_in_range(q.rx_counters.rx_syscalls - calls, LOOKS, LOOKS + LOOKS / 8 + 40);
	four_close(&q);
}

TEST(every_socket_is_found_soon)
{
	struct four q = {0};
	size_t found[4] = {0};

	four_open(&q);
	for (size_t from = 0; from < q.n; from++) {
		for (size_t to = 0; to < q.n; to++) {
			size_t looks = 0;

			/* `from` is the busy one, and the others have long been idle. */
			four_send(&q, from);
			for (int i = 0; i < 200; i++)
				four_look(&q, SOON_NS, found);
			memset(found, 0, sizeof(found));
			four_send(&q, to);
			for (; !found[to]; looks++)
				four_look(&q, SOON_NS, found);
			assert_true(looks <= 16);
			/* And when it is the first again. */
			four_look(&q, SOON_NS, found);
			four_send(&q, from);
			for (looks = 0; found[from] < 1 + (from == to); looks++)
				four_look(&q, SOON_NS, found);
			assert_true(looks <= 2);
		}
	}
	four_close(&q);
}

/* A caller that a descriptor woke finds its packet with the first call. */
TEST(after_a_pause_one_look_finds_any_socket)
{
	struct four q = {0};
	size_t found[4] = {0};

	four_open(&q);
	for (int round = 0; round < 20; round++) {
		size_t to = (size_t)(round * 7 + round / 3) % q.n;

		for (int i = 0; i < 50; i++)
			four_look(&q, SOON_NS, found);
		four_send(&q, to);
		memset(found, 0, sizeof(found));
		assert_int_equal(four_look(&q, PAUSE_NS, found), 1);
		assert_int_equal(found[to], 1);
		/* The call after a batch that emptied the socket is avoided, but not after a pause. */
		four_send(&q, to);
		assert_int_equal(four_look(&q, PAUSE_NS, found), 1);
	}
	four_close(&q);
}

TEST(all_sockets_are_served_under_load)
{
	struct four q = {0};
	size_t found[4] = {0};

	four_open(&q);
	for (size_t i = 0; i < q.n; i++)
		for (int k = 0; k < 1000; k++)
			four_send(&q, i);
	/* The first is never empty. */
	for (int i = 0; i < 40; i++) {
		four_look(&q, SOON_NS, found);
		for (int k = 0; k < 20; k++)
			four_send(&q, 0);
	}
	for (size_t i = 0; i < q.n; i++)
		assert_true(found[i] > 0);
	four_close(&q);
}
