/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Support for all tests of the group. Members are forked processes that report what reaches them; the
 * test sends datagrams, kills members and starts others. VERBENA_TEST_SEED repeats a run.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/byteorder.h"
#include "base/prng.h"
#include "group/group.h"
#include "group/group_link.h"
#include "group/group_state.h"
#include "io/clock.h"
#include "io/udp/udp.h"
#include "support/test.h"

enum { ROUNDS = 20, MEMBERS_MAX = GROUP_SLOTS + 1, DATAGRAM = 40, WAIT_MS = 30000, JOIN_MS = 60000 };

#define NUMBERED 0x80000000u /* in the nonce of datagrams that are only counted */

enum report_kind { JOINED, FAILED, GOT, FORWARDED, SENT_ON };

struct report {
	enum report_kind kind;
	pid_t pid;
	unsigned slot;
	int err;
	uint32_t nonce;
	uint32_t qpn;
	uint16_t dport;
	char why[GROUP_WHY_BYTES];
};

static int reports[2]; /* [0] is the test's end */
static struct prng rng;
static uint16_t port;
static uint16_t second_port;
static bool no_taking;

/* A process that has joined, as the test sees it. */
struct member {
	pid_t pid;
	unsigned slot;
	bool stopped; /* the test sends it nothing, and expects no report */
};

static struct member members[MEMBERS_MAX];
static size_t member_count;

/* ---- a member ---- */

/* Datagrams of the test: BTH with a QPN, then a nonce. */
static inline void report_packet(enum report_kind kind, const struct group *g, const struct pkt *p)
{
	struct report r = {.kind = kind, .pid = getpid(), .slot = group_slot(g)};

	if (p->len != DATAGRAM)
		return;
	r.qpn = get_be24(p->data + 5);
	r.nonce = get_be32(p->data + 12);
	r.dport = p->flow->dport;
	(void)!write(reports[1], &r, sizeof(r));
}

/* A datagram for another member is passed on, as the core does. */
static inline void take_packet(struct group *g, const struct pkt *p)
{
	unsigned slot = group_slot_of(p);

	if (slot == group_slot(g) || slot == GROUP_ANY_SLOT)
		report_packet(GOT, g, p);
	else if (group_forward(g, slot, p, 0))
		report_packet(SENT_ON, g, p);
}

static inline void member_run(const struct group_config *cfg)
{
	struct report r = {.kind = JOINED, .pid = getpid()};
	struct io_counters counters = {0};
	struct udp_config udp = {.counters = &counters};
	struct group *g;
	struct io *io;
	char why[GROUP_WHY_BYTES];
	int fds[1 + GROUP_LANES_MAX];
	size_t n;

	r.err = group_open(&g, cfg, r.why, sizeof(r.why));
	if (r.err < 0) {
		r.kind = FAILED;
		(void)!write(reports[1], &r, sizeof(r));
		_exit(1);
	}
	udp.rx_count = group_rx_fds(g, udp.rx_fds, UDP_RX_SOCKETS_MAX);
	if (udp_open(&io, &udp, why, sizeof(why)) < 0)
		_exit(2);
	r.slot = group_slot(g);
	(void)!write(reports[1], &r, sizeof(r));
	n = io_fds(io, fds, GROUP_LANES_MAX);
	fds[n++] = group_fd(g);
	for (;;) {
		struct pollfd p[1 + GROUP_LANES_MAX];
		struct pkt pkts[64];
		size_t k;

		for (size_t i = 0; i < n; i++)
			p[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
		poll(p, (nfds_t)n, -1);
		group_service(g);
		while ((k = group_recv_forwarded(g, pkts, 64)) > 0)
			for (size_t i = 0; i < k; i++)
				report_packet(FORWARDED, g, &pkts[i]);
		while ((k = io_recv(io, pkts, 64, 0)) > 0)
			for (size_t i = 0; i < k; i++)
				take_packet(g, &pkts[i]);
	}
}

static pid_t forked[4096];
static size_t forked_count;

/* So that no started process outlives a failed test. */
static inline void note_forked(pid_t pid)
{
	assert_true(pid >= 0);
	if (pid && forked_count < sizeof(forked) / sizeof(forked[0]))
		forked[forked_count++] = pid;
}

static inline pid_t member_fork(const struct group_config *cfg)
{
	pid_t pid = fork();

	note_forked(pid);
	if (pid == 0) {
		close(reports[0]);
		member_run(cfg);
	}
	return pid;
}

static uint32_t numbered_count; /* that have arrived */

/* False where there is none, or it was one of those that are only counted. */
static inline bool next_report(struct report *r, int wait_ms)
{
	struct pollfd p = {.fd = reports[0], .events = POLLIN};

	if (poll(&p, 1, wait_ms) <= 0 || read(reports[0], r, sizeof(*r)) != sizeof(*r))
		return false;
	if (r->kind != GOT || !(r->nonce & NUMBERED))
		return true;
	numbered_count++;
	return false;
}

/* Reports of how others joined, until the test takes them. */
static struct report kept[MEMBERS_MAX];
static size_t kept_count;

static inline void report_keep(const struct report *r)
{
	if ((r->kind == JOINED || r->kind == FAILED) && kept_count < MEMBERS_MAX)
		kept[kept_count++] = *r;
}

static inline struct report report_of(pid_t pid, int wait_ms)
{
	struct report r;
	uint64_t until = clock_now_ms() + (uint64_t)wait_ms;

	for (size_t i = 0; i < kept_count; i++) {
		if (kept[i].pid != pid)
			continue;
		r = kept[i];
		kept[i] = kept[--kept_count];
		return r;
	}
	while (clock_now_ms() < until) {
		if (!next_report(&r, (int)(until - clock_now_ms())))
			continue;
		if (r.pid == pid && (r.kind == JOINED || r.kind == FAILED))
			return r;
		report_keep(&r);
	}
	fail_msg("process %d has not reported", (int)pid);
	return r;
}

static inline struct group_config config(void)
{
	return (struct group_config){.ports = {port, second_port},
				     .port_count = 2,
				     .stat_fd = -1,
				     .join_ms_max = JOIN_MS,
				     .no_taking = no_taking};
}

static inline struct report member_start(void)
{
	struct group_config cfg = config();
	pid_t pid = member_fork(&cfg);
	struct report r = report_of(pid, JOIN_MS);

	if (r.kind == FAILED) {
		waitpid(pid, NULL, 0);
		return r;
	}
	for (size_t i = 0; i < member_count; i++)
		assert_int_not_equal(members[i].slot, r.slot);
	members[member_count++] = (struct member){.pid = pid, .slot = r.slot};
	return r;
}

static inline void member_kill(size_t i)
{
	kill(members[i].pid, SIGKILL);
	waitpid(members[i].pid, NULL, 0);
	members[i] = members[--member_count];
}

static inline void member_stop(size_t i)
{
	int status;

	if (members[i].stopped)
		return;
	kill(members[i].pid, SIGSTOP);
	waitpid(members[i].pid, &status, WUNTRACED);
	members[i].stopped = true;
}

static inline void member_continue(size_t i)
{
	kill(members[i].pid, SIGCONT);
	members[i].stopped = false;
}

static inline int group_setup(void **state)
{
	static unsigned tests;

	/*
	 * Ports of the process's own, 16 of them, so that it can run beside a real group and beside other
	 * tests: two groups that share one of their ports shift each other's sockets.
	 */
	port = (uint16_t)(20000 + (unsigned)getpid() % 600 * 16 + tests++ % 2 * 8);
	second_port = (uint16_t)(port + 3);
	assert_int_equal(pipe(reports), 0);
	member_count = 0;
	return 0;
}

/* Where the kernel lets no process look into another. */
static inline int group_setup_no_taking(void **state)
{
	no_taking = true;
	return group_setup(state);
}

static inline int group_teardown(void **state)
{
	no_taking = false;
	while (member_count)
		member_kill(member_count - 1);
	for (; forked_count; forked_count--) {
		pid_t pid = forked[forked_count - 1];

		if (waitpid(pid, NULL, WNOHANG) == 0) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
	}
	kept_count = 0;
	close(reports[0]);
	close(reports[1]);
	return 0;
}

/* ---- sending ---- */

static inline void send_datagram(uint16_t to, bool v6, unsigned slot, uint32_t nonce)
{
	static int fds[2] = {-1, -1};
	struct sockaddr_in a4 = {
		.sin_family = AF_INET, .sin_port = htons(to), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(to), .sin6_addr = in6addr_loopback};
	uint8_t d[DATAGRAM] = {0};

	if (fds[v6] < 0)
		fds[v6] = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	put_be24(d + 5, slot << GROUP_SLOT_SHIFT | (nonce & 0x1ffff));
	put_be32(d + 12, nonce);
	(void)!sendto(fds[v6], d, sizeof(d), 0, v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4,
		      v6 ? sizeof(a6) : sizeof(a4));
}

static inline bool have_ipv6(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	bool have = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;

	if (fd >= 0)
		close(fd);
	return have;
}

static inline size_t running_members(void)
{
	size_t n = 0;

	for (size_t i = 0; i < member_count; i++)
		n += !members[i].stopped;
	return n;
}

/* One datagram to each live slot, on each port, in each family: it must reach that member and nobody else. */
static inline void expect_all_reached(void)
{
	static uint32_t nonce;
	uint32_t first = nonce;
	unsigned families = have_ipv6() ? 2 : 1;
	unsigned lanes = 2 * families;
	size_t expected = running_members() * lanes;
	uint64_t until = clock_now_ms() + WAIT_MS;
	struct report r;
	size_t got = 0;

	for (size_t i = 0; i < member_count; i++)
		for (unsigned lane = 0; lane < lanes; lane++, nonce++)
			if (!members[i].stopped)
				send_datagram(lane & 1 ? second_port : port, lane > 1, members[i].slot, nonce);
	while (got < expected && clock_now_ms() < until) {
		if (!next_report(&r, 100))
			continue;
		report_keep(&r);
		if (r.kind == JOINED || r.kind == FAILED || r.nonce < first)
			continue;
		assert_int_equal(r.kind, GOT);
		assert_int_equal(r.qpn >> GROUP_SLOT_SHIFT, r.slot);
		assert_int_equal(r.dport, (r.nonce - first) % 2 ? second_port : port);
		assert_int_equal(members[(r.nonce - first) / lanes].slot, r.slot);
		assert_int_equal(members[(r.nonce - first) / lanes].pid, r.pid);
		got++;
	}
	assert_int_equal(got, expected);
	assert_false(next_report(&r, 0));
}

/* On the test's port; it belongs to no member. */
static inline int stray_socket(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int one = 1;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

#define GROUP_TEST_NO_TAKING(name) TEST_WITH(name, group_setup_no_taking, group_teardown)
#define GROUP_TEST(name)           TEST_WITH(name, group_setup, group_teardown)
/* Both ways. */
#define GROUP_TEST_EACH(name)                  \
	static void name(void **state);        \
	GROUP_TEST_NO_TAKING(name##_no_taking) \
	{                                      \
		name(state);                   \
	}                                      \
	GROUP_TEST(name)

__attribute__((constructor)) static void group_begin(void)
{
	const char *env = getenv("VERBENA_TEST_SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : clock_now_ms();

	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	prng_init(&rng, seed);
	signal(SIGPIPE, SIG_IGN);
}
