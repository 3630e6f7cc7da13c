/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/udp/udp_socket.h"
#include "support/udp_ends.h"
#include "support/test.h"

enum { BYTES = 200000, PKTS = 256 };

/* Two ends on loopback: `rx` reads the sockets, `tx` sends to them. */
struct rig {
	int fds[2];
	uint16_t ports[2];
	bool v6;
	struct io *rx, *tx;
	struct io_counters rx_counters, tx_counters;
	uint8_t sent[BYTES];
	struct pkt pkts[PKTS];
};

static struct rig *rig_new(const struct udp_config *tx_config)
{
	struct rig *r = calloc(1, sizeof(*r));
	char why[256];
	struct udp_config rx = {.counters = &r->rx_counters};
	struct udp_config tx = *tx_config;

	r->fds[0] = bind_any(UDP_V4, &r->ports[0]);
	r->fds[1] = bind_any(UDP_V6, &r->ports[1]);
	assert_true(r->fds[0] >= 0);
	r->v6 = r->fds[1] >= 0;
	rx.rx_fds[0] = r->fds[0];
	rx.rx_fds[1] = r->fds[1];
	rx.rx_count = r->v6 ? 2 : 1;
	assert_int_equal(udp_open(&r->rx, &rx, why, sizeof(why)), 0);
	tx.counters = &r->tx_counters;
	assert_int_equal(udp_open(&r->tx, &tx, why, sizeof(why)), 0);
	for (size_t i = 0; i < BYTES; i++)
		r->sent[i] = (uint8_t)(i * 7 + i / 251);
	return r;
}

static void rig_free(struct rig *r)
{
	io_close(r->rx);
	io_close(r->tx);
	close(r->fds[0]);
	if (r->v6)
		close(r->fds[1]);
	free(r);
}

/* What follows the name is the configuration of the one that sends. */
#define RIG_TEST(name, ...) TEST_OF(name, struct rig *, r, rig_new(&(struct udp_config){__VA_ARGS__}), rig_free(r))

static struct flow flow_to(const struct rig *r, enum udp_family family, const char *src, const char *dst)
{
	struct flow f = {.sport = udp_source_port(r->tx, family, 0), .dport = r->ports[family], .ttl = 64};

	set_addr(f.src, src);
	set_addr(f.dst, dst);
	return f;
}

/* A train of n packets of len bytes, the last one of last bytes, at offset into what is sent. */
static size_t make_train(struct rig *r, struct pkt *p, const struct flow *f, size_t offset, size_t n, uint32_t len,
			 uint32_t last)
{
	for (size_t i = 0; i < n; i++) {
		p[i] = (struct pkt){.data = r->sent + offset + i * len,
				    .flow = f,
				    .len = i + 1 < n ? len : last,
				    .ip_id = (uint16_t)i,
				    .train = (uint16_t)(n - i)};
	}
	return n;
}

static void assert_flow(const struct flow *got, const struct flow *want)
{
	assert_memory_equal(got->src, want->src, 16);
	assert_memory_equal(got->dst, want->dst, 16);
	assert_int_equal(got->sport, want->sport);
	assert_int_equal(got->dport, want->dport);
	assert_int_equal(got->tos, want->tos);
	assert_int_equal(got->ttl, want->ttl);
}

/* Receives what was sent, up to `burst` packets a call, and checks every packet of it. */
static void expect(struct rig *r, const struct pkt *want, size_t n, size_t burst)
{
	size_t got = 0;

	while (got < n) {
		struct pkt p[PKTS];
		size_t k;

		memset(p, 0xa5, sizeof(p)); /* nothing of what was there is left */
		k = io_recv(r->rx, p, burst, 0);
		for (size_t i = 0; i < k; i++, got++) {
			assert_true(got < n);
			assert_null(p[i].int_stack);
			assert_int_equal(p[i].len, want[got].len);
			assert_memory_equal(p[i].data, want[got].data, p[i].len);
			assert_int_equal(p[i].train, want[got].train);
			if (want[got].train > 1)
				assert_int_equal(p[i].ip_id, want[got].ip_id);
			assert_flow(p[i].flow, want[got].flow);
		}
		if (!k) {
			struct pollfd fd[2] = {{.fd = r->fds[0], .events = POLLIN},
					       {.fd = r->fds[1], .events = POLLIN}};

			assert_true(poll(fd, 2, 2000) > 0);
		}
	}

	struct pkt p;

	assert_int_equal(io_recv(r->rx, &p, 1, 0), 0);
	assert_int_equal(r->rx_counters.rx_packets, n);
	memset(&r->rx_counters, 0, sizeof(r->rx_counters));
}

static const struct address_row {
	enum udp_family family;
	const char *src, *dst;
} addresses[] = {
	{UDP_V4, "127.0.0.1", "127.0.0.1"},
	{UDP_V4, "127.1.2.3", "127.9.8.7"},
	{UDP_V4, "127.1.2.3", "127.1.2.3"}, /* the kernel would choose 127.0.0.1 */
	{UDP_V6, "::1", "::1"},
};

enum { ADDRESSES = sizeof(addresses) / sizeof(addresses[0]) };

RIG_TEST(lone_packets_arrive_as_sent)
{
	static const struct {
		uint8_t tos, ttl;
		uint32_t len;
	} rows[] = {{0, 64, 16}, {0xb8, 64, 1064}, {2, 7, 4136}, {0xff, 255, 60000}};

	for (size_t a = 0; a < ADDRESSES; a++) {
		if (addresses[a].family == UDP_V6 && !r->v6)
			continue;
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct flow f = flow_to(r, addresses[a].family, addresses[a].src, addresses[a].dst);

			f.tos = rows[i].tos;
			f.ttl = rows[i].ttl;
			make_train(r, r->pkts, &f, i, 1, rows[i].len, rows[i].len);
			assert_int_equal(io_send(r->tx, r->pkts, 1, 0), 1);
			expect(r, r->pkts, 1, 16);
		}
	}
}

/* RoCEv2 senders leave the checksum zero (IBTA A17.3.2); by default IPv6 drops such datagrams. */
RIG_TEST(zero_checksums_are_taken_over_ipv6)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), one = 1;
	struct pollfd p = {.fd = r->fds[1], .events = POLLIN};

	if (r->v6) {
		assert_true(fd >= 0);
		assert_int_equal(setsockopt(fd, SOL_UDP, UDP_NO_CHECK6_TX, &one, sizeof(one)), 0);
		to.sin6_port = htons(r->ports[UDP_V6]);
		assert_int_equal(sendto(fd, r->sent, 100, 0, (struct sockaddr *)&to, sizeof(to)), 100);
		assert_int_equal(poll(&p, 1, 2000), 1);
	}
	close(fd);
}

RIG_TEST(source_is_the_kernels_where_the_flow_has_none)
{
	struct flow f = flow_to(r, UDP_V4, "0.0.0.0", "127.0.0.1");
	struct flow want = flow_to(r, UDP_V4, "127.0.0.1", "127.0.0.1");

	make_train(r, r->pkts, &f, 0, 1, 100, 100);
	assert_int_equal(io_send(r->tx, r->pkts, 1, 0), 1);
	r->pkts[0].flow = &want;
	expect(r, r->pkts, 1, 1);
}

RIG_TEST(trains_arrive_whole)
{
	static const struct {
		size_t n;
		uint32_t len, last;
	} rows[] = {{2, 100, 100},    {2, 100, 1},
		    {15, 4136, 4136}, {61, 1064, 20},
		    {64, 1000, 1000}, {31, 2088, 2000},
		    {62, 1052, 1048}, {3, PKT_TRAIN_BYTES_MAX / 3, PKT_TRAIN_BYTES_MAX / 3}};

	assert_int_equal(io_train_max(r->tx), PKT_TRAIN_MAX);
	for (size_t a = 0; a < ADDRESSES; a++) {
		if (addresses[a].family == UDP_V6 && !r->v6)
			continue;
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			for (size_t burst = 1; burst <= PKTS; burst *= 16) {
				struct flow f = flow_to(r, addresses[a].family, addresses[a].src, addresses[a].dst);
				uint64_t calls = r->tx_counters.tx_syscalls;

				f.tos = 0x2a;
				make_train(r, r->pkts, &f, i, rows[i].n, rows[i].len, rows[i].last);
				assert_int_equal(io_send(r->tx, r->pkts, rows[i].n, 0), rows[i].n);
				assert_int_equal(r->tx_counters.tx_syscalls, calls + 1);
				expect(r, r->pkts, rows[i].n, burst);
			}
		}
	}
}

RIG_TEST(several_trains_leave_in_one_call)
{
	struct flow f = flow_to(r, UDP_V4, "127.0.0.1", "127.0.0.1");
	struct flow g = flow_to(r, UDP_V4, "127.0.0.2", "127.0.0.3");
	size_t n = make_train(r, r->pkts, &f, 0, 10, 1000, 500);

	g.tos = 1;
	n += make_train(r, r->pkts + n, &g, 10000, 1, 64, 64);
	n += make_train(r, r->pkts + n, &g, 20000, 15, 4000, 4000);
	n += make_train(r, r->pkts + n, &f, 90000, 3, 64, 64);
	assert_int_equal(io_send(r->tx, r->pkts, n, 0), n);
	assert_int_equal(r->tx_counters.tx_syscalls, 1);
	assert_int_equal(r->tx_counters.tx_trains, 4);
	assert_int_equal(r->tx_counters.tx_packets, n);
	expect(r, r->pkts, n, 16);
}

RIG_TEST(refused_packets_are_consumed_and_counted)
{
	struct flow good = flow_to(r, UDP_V4, "127.0.0.1", "127.0.0.1");
	/* An address that no interface has may not be sent from; class E leads nowhere. */
	struct flow bad_source = flow_to(r, UDP_V4, "192.0.2.77", "127.0.0.1");
	struct flow bad_port = good;
	size_t n = make_train(r, r->pkts, &good, 0, 2, 100, 100);
	size_t bad = 0;

	bad_port.sport ^= 1;
	bad += make_train(r, r->pkts + n + bad, &bad_source, 0, 3, 100, 100);
	bad += make_train(r, r->pkts + n + bad, &bad_port, 0, 1, 100, 100);
	bad += make_train(r, r->pkts + n + bad, &good, 0, 1, 66000, 66000); /* EMSGSIZE */
	n += bad;
	n += make_train(r, r->pkts + n, &good, 5000, 2, 100, 100);
	assert_int_equal(io_send(r->tx, r->pkts, n, 0), n);
	assert_int_equal(r->tx_counters.tx_drops, bad);
	assert_int_equal(r->tx_counters.tx_packets, 4);
	memmove(r->pkts + 2, r->pkts + n - 2, 2 * sizeof(r->pkts[0]));
	expect(r, r->pkts, 4, 16);
}

RIG_TEST(without_trains_only_what_is_faithful_leaves, .no_trains = true)
{
	struct flow v4 = flow_to(r, UDP_V4, "127.0.0.1", "127.0.0.1");

	assert_int_equal(io_train_max(r->tx), 1);
	/* Of an IPv4 train only the first has the identification that it would get alone. */
	make_train(r, r->pkts, &v4, 0, 5, 100, 100);
	assert_int_equal(io_send(r->tx, r->pkts, 5, 0), 5);
	assert_int_equal(r->tx_counters.tx_drops, 4);
	r->pkts[0].train = 1;
	expect(r, r->pkts, 1, 16);
	if (r->v6) {
		struct flow v6 = flow_to(r, UDP_V6, "::1", "::1");

		make_train(r, r->pkts, &v6, 0, 20, 100, 70);
		assert_int_equal(io_send(r->tx, r->pkts, 20, 0), 20);
		assert_int_equal(r->tx_counters.tx_syscalls, 1 + 2);
		for (size_t i = 0; i < 20; i++)
			r->pkts[i].train = 1;
		expect(r, r->pkts, 20, 16);
	}
}

TEST(both_families_are_served_under_load)
{
	struct rig *r = rig_new(&(struct udp_config){0});
	bool seen = false;

	if (!r->v6) {
		rig_free(r);
		skip();
	}

	struct flow v4 = flow_to(r, UDP_V4, "127.0.0.1", "127.0.0.1");
	struct flow v6 = flow_to(r, UDP_V6, "::1", "::1");

	make_train(r, r->pkts, &v4, 0, 1, 100, 100);
	make_train(r, r->pkts + 1, &v6, 0, 1, 100, 100);
	assert_int_equal(io_send(r->tx, r->pkts, 2, 0), 2);
	for (int i = 0; i < 20 && !seen; i++) {
		struct pkt p[16];
		size_t n = io_recv(r->rx, p, 16, 0);

		for (size_t k = 0; k < n; k++)
			seen |= p[k].flow->dport == r->ports[UDP_V6];
		assert_int_equal(io_send(r->tx, r->pkts, 1, 0), 1);
	}
	assert_true(seen);
	rig_free(r);
}

RIG_TEST(paths_have_ports_of_their_own, .paths = UDP_PATHS_MAX)
{
	size_t in_range = 0;

	assert_int_equal(udp_paths(r->tx), UDP_PATHS_MAX);
	for (size_t a = 0; a < ADDRESSES; a++) {
		enum udp_family family = addresses[a].family;
		bool seen[65536] = {false};

		if (family == UDP_V6 && !r->v6)
			continue;
		for (unsigned i = 0; i < UDP_PATHS_MAX; i++) {
			struct flow f = flow_to(r, family, addresses[a].src, addresses[a].dst);

			f.sport = udp_source_port(r->tx, family, i);
			assert_int_not_equal(f.sport, 0);
			assert_false(seen[f.sport]);
			seen[f.sport] = true;
			in_range += f.sport >= UDP_SOURCE_PORT_MIN && f.sport % UDP_PATHS_MAX == i;
			make_train(r, r->pkts, &f, 0, 3, 100, 100);
			assert_int_equal(io_send(r->tx, r->pkts, 3, 0), 3);
			expect(r, r->pkts, 3, 16);
		}
	}
	/* Elsewhere only by mishap: eight others had drawn the same port. */
	assert_true(in_range >= UDP_PATHS_MAX);
	assert_int_equal(udp_source_port(r->tx, UDP_V4, UDP_PATHS_MAX), 0);
}

TEST(what_waits_at_a_timed_port_says_how_long)
{
	enum { WAIT_NS = 3000000 };

	for (int timed = 0; timed < 2; timed++) {
		struct rig *r = rig_new(&(struct udp_config){0});
		struct udp_config rx = {
			.counters = &r->rx_counters, .rx_fds = {r->fds[0], r->fds[1]}, .rx_count = r->v6 ? 2 : 1};
		struct flow f = flow_to(r, UDP_V4, "127.0.0.1", "127.0.0.1");
		struct pkt got[8];
		uint32_t waited_ns = 0;
		size_t n;
		char why[256];

		io_close(r->rx);
		rx.timed_port = timed ? r->ports[UDP_V4] : 0;
		assert_int_equal(udp_open(&r->rx, &rx, why, sizeof(why)), 0);
		/* The kernel begins to stamp packets some time after it was asked to. */
		for (int tries = 0; tries < (timed ? 1000 : 3) && waited_ns == 0; tries++) {
			make_train(r, r->pkts, &f, 0, 3, 100, 100);
			assert_int_equal(io_send(r->tx, r->pkts, 3, 0), 3);
			usleep(WAIT_NS / 1000);
			for (n = 0; n < 3;)
				n += io_recv(r->rx, got + n, 8 - n, 0);
			for (size_t i = 0; i < n; i++)
				assert_int_equal(got[i].waited_ns, got[0].waited_ns);
			if (!timed)
				assert_int_equal(got[0].waited_ns, 0);
			waited_ns = got[0].waited_ns < WAIT_NS / 2 ? 0 : got[0].waited_ns;
		}
		assert_int_equal(timed, waited_ns != 0);
		rig_free(r);
	}
}

#define MUCH_NS UINT64_C(1000000000000)

static uint64_t much_later(const void *ctx)
{
	return MUCH_NS;
}

/* The process lost its processor between its look at the clock and the call: packets that arrived meanwhile were not
 * there to be read. */
RIG_TEST(what_came_after_the_time_of_a_call_did_not_wait)
{
	struct udp_config rx = {.counters = &r->rx_counters,
				.rx_fds = {r->fds[0], r->fds[1]},
				.rx_count = r->v6 ? 2 : 1,
				.timed_port = r->ports[UDP_V4],
				.clock.now_ns = much_later};
	struct flow f = flow_to(r, UDP_V4, "127.0.0.1", "127.0.0.1");
	struct pkt got[8];
	char why[256];

	io_close(r->rx);
	assert_int_equal(udp_open(&r->rx, &rx, why, sizeof(why)), 0);
	for (uint64_t now_ns = 0; now_ns <= MUCH_NS; now_ns += MUCH_NS) {
		bool waited = false;

		for (int tries = 0; tries < (now_ns ? 1000 : 20) && !waited; tries++) {
			make_train(r, r->pkts, &f, 0, 1, 100, 100);
			assert_int_equal(io_send(r->tx, r->pkts, 1, 0), 1);
			usleep(1000);
			while (!io_recv(r->rx, got, 8, now_ns))
				;
			waited = got[0].waited_ns;
		}
		assert_int_equal(waited, now_ns != 0);
	}
}

RIG_TEST(without_paths_asked_for_there_is_one)
{
	assert_int_equal(udp_paths(r->tx), 1);
	assert_int_not_equal(udp_source_port(r->tx, UDP_V4, 0), 0);
	assert_int_equal(udp_source_port(r->tx, UDP_V4, 1), 0);
}

/* A limit below which so many descriptors are free; whoever started the test may have left some open. */
static rlim_t limit_with_free(unsigned count)
{
	rlim_t limit = 0;

	while (count) {
		if (fcntl((int)limit++, F_GETFD) < 0)
			count--;
	}
	return limit;
}

RIG_TEST(few_descriptors_give_few_paths, .no_ipv6 = true)
{
	struct rlimit old, few;
	struct io_counters counters = {0};
	struct io *io;
	char why[256];
	int rc;

	getrlimit(RLIMIT_NOFILE, &old);
	few = old;
	few.rlim_cur = limit_with_free(7);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	rc = udp_open(&io, &(struct udp_config){.paths = 16, .counters = &counters}, why, sizeof(why));
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(rc, 0);
	assert_true(udp_paths(io) >= 1 && udp_paths(io) <= 7);
	if (r->v6)
		assert_int_equal(udp_paths(io), 3);
	for (unsigned i = 0; i < udp_paths(io); i++) {
		assert_int_not_equal(udp_source_port(io, UDP_V4, i), 0);
		assert_int_equal(udp_source_port(io, UDP_V6, i) != 0, r->v6);
	}
	assert_int_equal(udp_source_port(io, UDP_V4, udp_paths(io)), 0);
	io_close(io);
}

/* How many descriptors can be made. */
static unsigned free_descriptors(void)
{
	int fds[64];
	unsigned n = 0;

	while (n < 64 && (fds[n] = dup(0)) >= 0)
		n++;
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
	return n;
}

TEST(paths_come_later_and_leave_descriptors_to_others)
{
	struct io_counters counters = {0};
	struct udp_config cfg = {.spare_fds = 8, .no_ipv6 = true, .counters = &counters};
	struct rlimit old, few;
	struct io *io;
	char why[256];
	unsigned before, paths, left;
	uint16_t first;

	assert_int_equal(udp_open(&io, &cfg, why, sizeof(why)), 0);
	assert_int_equal(udp_paths(io), 1);
	first = udp_source_port(io, UDP_V4, 0);
	assert_int_equal(udp_add_paths(io, 4), 4);
	getrlimit(RLIMIT_NOFILE, &old);
	for (few = old, few.rlim_cur = 8; few.rlim_cur < old.rlim_cur; few.rlim_cur++)
		if (setrlimit(RLIMIT_NOFILE, &few) == 0 && free_descriptors() == 11)
			break;
	before = free_descriptors();
	paths = udp_add_paths(io, 16);
	left = free_descriptors();
	assert_int_equal(udp_add_paths(io, 16), paths);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(before, 11);
	assert_int_equal(paths, 7);
	assert_int_equal(left, 8);
	assert_int_equal(udp_add_paths(io, 16), 16);
	assert_int_equal(udp_add_paths(io, 2), 16);
	assert_int_equal(udp_source_port(io, UDP_V4, 0), first);
	for (unsigned i = 0; i < 16; i++)
		assert_int_not_equal(udp_source_port(io, UDP_V4, i), 0);
	io_close(io);
}

/* Long runs make a TOS the socket's own; each packet has the TOS of its flow all the same. */
RIG_TEST(every_packet_leaves_with_its_own_tos, .paths = 3)
{
	enum { N = 3000, BURST = 40, PATHS = 3 };
	static struct flow flows[N];
	uint32_t x = 12345;
	size_t n = 0;

	for (size_t a = 0; a < ADDRESSES; a++) {
		enum udp_family family = addresses[a].family;
		unsigned path = 0;
		uint8_t tos = 0;

		if (family == UDP_V6 && !r->v6)
			continue;
		for (size_t i = 0; i < N; i++) {
			x = x * 1103515245 + 12345;
			/* Mostly veRoCE's ECT(0), in runs; RoCEv2's between them now and then. */
			if (x >> 16 & 1 || i % 1000 < 600)
				tos = 2;
			else
				tos = (uint8_t)(x >> 24);
			if ((x >> 20 & 7) == 0)
				path = (x >> 23) % PATHS;
			flows[i] = flow_to(r, family, addresses[a].src, addresses[a].dst);
			flows[i].sport = udp_source_port(r->tx, family, path);
			flows[i].tos = tos;
			n += make_train(r, r->pkts + n, &flows[i], i, 1 + (x >> 18) % 3, 60, 60);
			if (n + 3 < BURST && i + 1 < N)
				continue;
			assert_int_equal(io_send(r->tx, r->pkts, n, 0), n);
			expect(r, r->pkts, n, 16);
			n = 0;
		}
	}
	assert_int_equal(r->tx_counters.tx_drops, 0);
}

/* The ICMP error "port unreachable" comes back before the next packet is sent. */
RIG_TEST(unreachable_peers_are_no_send_errors, .paths = 2)
{
	for (size_t a = 0; a < ADDRESSES; a++) {
		enum udp_family family = addresses[a].family;
		struct flow good, gone;

		if (family == UDP_V6 && !r->v6)
			continue;
		good = gone = flow_to(r, family, addresses[a].src, addresses[a].dst);
		gone.dport = 1;
		make_train(r, r->pkts, &gone, 0, 1, 100, 100);
		for (int i = 0; i < 10; i++)
			assert_int_equal(io_send(r->tx, r->pkts, 1, 0), 1);
		make_train(r, r->pkts, &good, 0, 3, 100, 100);
		assert_int_equal(io_send(r->tx, r->pkts, 3, 0), 3);
		expect(r, r->pkts, 3, 16);
	}
	assert_int_equal(r->tx_counters.tx_drops, 0);
	assert_int_equal(r->tx_counters.tx_again, 0);
}

RIG_TEST(overflow_is_counted)
{
	struct flow f = flow_to(r, UDP_V4, "127.0.0.1", "127.0.0.1");
	int small = 4096;
	size_t got = 0;
	struct pkt p[16];

	setsockopt(r->fds[0], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_true(udp_rcvbuf_bytes(r->rx) < 100000);
	make_train(r, r->pkts, &f, 0, 1, 1000, 1000);
	for (int i = 0; i < 100; i++)
		assert_int_equal(io_send(r->tx, r->pkts, 1, 0), 1);
	for (size_t n; (n = io_recv(r->rx, p, 16, 0)) > 0;)
		got += n;
	/* The kernel reports it with the next datagram that it accepts. */
	assert_int_equal(io_send(r->tx, r->pkts, 1, 0), 1);
	for (size_t n; (n = io_recv(r->rx, p, 16, 0)) > 0;)
		got += n;
	assert_true(got < 101);
	assert_int_equal(r->rx_counters.rx_overflow, 101 - got);
}

static int option_of(int fd, int level, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);

	getsockopt(fd, level, option, &value, &len);
	return value;
}

static void forget(int fd, int level, int option, int value)
{
	assert_int_equal(setsockopt(fd, level, option, &value, sizeof(value)), 0);
}

/* The socket that this back end sends from. */
static int sender(const struct io *io)
{
	for (int fd = 3; fd < 1 << 20; fd++)
		if (udp_bound_port(fd, UDP_V4) == udp_source_port(io, UDP_V4, 0) &&
		    option_of(fd, SOL_SOCKET, SO_DOMAIN) == AF_INET)
			return fd;
	fail();
	return -1;
}

/* As sockets come back from a checkpoint: with their ports, and without their options. */
RIG_TEST(options_that_were_lost_are_set_again)
{
	struct flow f = flow_to(r, UDP_V4, "127.0.0.1", "127.0.0.1");
	int from = sender(r->tx);
	struct udp_config c = {.rx_fds = {r->fds[0]}, .rx_count = 1, .counters = &r->tx_counters};
	struct io *both;
	char why[256];

	assert_false(udp_heal(r->rx));
	assert_false(udp_heal(r->tx)); /* it has none to look at */
	forget(r->fds[0], SOL_UDP, UDP_GRO, 0);
	forget(r->fds[0], IPPROTO_IP, IP_RECVTOS, 0);
	forget(r->fds[0], IPPROTO_IP, IP_RECVTTL, 0);
	forget(from, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_WANT);
	assert_true(udp_heal(r->rx));
	assert_false(udp_heal(r->rx));
	assert_int_equal(option_of(r->fds[0], SOL_UDP, UDP_GRO), 1);
	assert_int_equal(option_of(r->fds[0], IPPROTO_IP, IP_RECVTOS), 1);
	assert_int_equal(option_of(r->fds[0], IPPROTO_IP, IP_RECVTTL), 1);
	assert_int_equal(option_of(from, IPPROTO_IP, IP_MTU_DISCOVER), IP_PMTUDISC_WANT); /* another's */
	assert_int_equal(udp_open(&both, &c, why, sizeof(why)), 0);
	from = sender(both);
	forget(from, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_WANT);
	forget(r->fds[0], SOL_UDP, UDP_GRO, 0);
	assert_true(udp_heal(both));
	assert_int_equal(option_of(from, IPPROTO_IP, IP_MTU_DISCOVER), IP_PMTUDISC_PROBE);
	io_close(both);
	f.tos = 2;
	make_train(r, r->pkts, &f, 0, 3, 100, 100);
	assert_int_equal(io_send(r->tx, r->pkts, 3, 0), 3);
	expect(r, r->pkts, 3, 16);
}
