/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members are forked processes that report what reaches them; the test sends datagrams, kills
 * members and starts others. VERBENA_TEST_SEED repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/byteorder.h"
#include "base/prng.h"
#include "io/group.h"
#include "io/group_link.h"
#include "io/group_state.h"
#include "io/udp.h"

enum { ROUNDS = 20, MEMBERS_MAX = GROUP_SLOTS + 1, DATAGRAM = 40, WAIT_MS = 3000 };

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

/* What the test knows of a process that has joined. */
struct member {
	pid_t pid;
	unsigned slot;
};

static struct member members[MEMBERS_MAX];
static size_t member_count;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- a member ---- */

/* Datagrams of the test: BTH with a QPN, then a nonce. */
static void report_packet(enum report_kind kind, const struct group *g, const struct pkt *p)
{
	struct report r = {.kind = kind, .pid = getpid(), .slot = group_slot(g)};

	if (p->len != DATAGRAM)
		return;
	r.qpn = get_be24(p->data + 5);
	r.nonce = get_be32(p->data + 12);
	r.dport = p->flow->dport;
	(void)!write(reports[1], &r, sizeof(r));
}

/* What arrives although it is another's is passed on, as the core does. */
static void take_packet(struct group *g, const struct pkt *p)
{
	unsigned slot = group_slot_of(p);

	if (slot == group_slot(g))
		report_packet(GOT, g, p);
	else if (group_forward(g, slot, p))
		report_packet(SENT_ON, g, p);
}

static void member_run(const struct group_config *cfg)
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

static pid_t member_fork(const struct group_config *cfg)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		close(reports[0]);
		member_run(cfg);
	}
	return pid;
}

static bool next_report(struct report *r, int wait_ms)
{
	struct pollfd p = {.fd = reports[0], .events = POLLIN};

	return poll(&p, 1, wait_ms) > 0 && read(reports[0], r, sizeof(*r)) == sizeof(*r);
}

static struct report report_of(pid_t pid, int wait_ms)
{
	struct report r;
	uint64_t until = now_ms() + (uint64_t)wait_ms;

	while (now_ms() < until)
		if (next_report(&r, (int)(until - now_ms())) && r.pid == pid &&
		    (r.kind == JOINED || r.kind == FAILED))
			return r;
	fail_msg("process %d has not reported", (int)pid);
	return r;
}

static struct group_config config(void)
{
	return (struct group_config){
		.ports = {port, second_port}, .port_count = 2, .stat_fd = -1};
}

static struct report member_start(void)
{
	struct group_config cfg = config();
	pid_t pid = member_fork(&cfg);
	struct report r = report_of(pid, 15000);

	if (r.kind == FAILED) {
		waitpid(pid, NULL, 0);
		return r;
	}
	for (size_t i = 0; i < member_count; i++)
		assert_int_not_equal(members[i].slot, r.slot);
	members[member_count++] = (struct member){.pid = pid, .slot = r.slot};
	return r;
}

static void member_kill(size_t i)
{
	kill(members[i].pid, SIGKILL);
	waitpid(members[i].pid, NULL, 0);
	members[i] = members[--member_count];
}

static int group_setup(void **state)
{
	/* A port of the test's own, so that it can run beside a real group. */
	port = (uint16_t)(20000 + (getpid() * 7u + now_ms()) % 10000);
	second_port = (uint16_t)(port + 3);
	assert_int_equal(pipe(reports), 0);
	member_count = 0;
	return 0;
}

static int group_teardown(void **state)
{
	while (member_count)
		member_kill(member_count - 1);
	close(reports[0]);
	close(reports[1]);
	return 0;
}

/* ---- sending ---- */

static void send_datagram(uint16_t to, bool v6, unsigned slot, uint32_t nonce)
{
	static int fds[2] = {-1, -1};
	struct sockaddr_in a4 = {.sin_family = AF_INET,
				 .sin_port = htons(to),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 a6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(to), .sin6_addr = in6addr_loopback};
	uint8_t d[DATAGRAM] = {0};

	if (fds[v6] < 0)
		fds[v6] = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	put_be24(d + 5, slot << GROUP_SLOT_SHIFT | (nonce & 0x1ffff));
	put_be32(d + 12, nonce);
	(void)!sendto(fds[v6], d, sizeof(d), 0,
		      v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4,
		      v6 ? sizeof(a6) : sizeof(a4));
}

static bool have_ipv6(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	bool have = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;

	if (fd >= 0)
		close(fd);
	return have;
}

/* One datagram to each live slot, on each port, in each family: it must reach that member and nobody else. */
static void expect_all_reached(void)
{
	static uint32_t nonce;
	uint32_t first = nonce;
	unsigned families = have_ipv6() ? 2 : 1;
	unsigned lanes = 2 * families;
	size_t expected = member_count * lanes;
	uint64_t until = now_ms() + WAIT_MS;
	struct report r;
	size_t got = 0;

	for (size_t i = 0; i < member_count; i++)
		for (unsigned lane = 0; lane < lanes; lane++)
			send_datagram(lane & 1 ? second_port : port, lane > 1, members[i].slot,
				      nonce++);
	while (got < expected && now_ms() < until) {
		if (!next_report(&r, 100) || r.kind == JOINED || r.nonce < first)
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

/* ---- tests ---- */

static void slots_are_handed_out_from_0(void **state)
{
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(member_start().slot, i);
		expect_all_reached();
	}
}

static void a_dead_members_slot_is_taken_first(void **state)
{
	for (int i = 0; i < 4; i++)
		member_start();
	member_kill(1); /* slot 1; the last stands in its place in the table */
	expect_all_reached();
	assert_int_equal(member_start().slot, 1);
	expect_all_reached();
}

static void what_a_dead_member_left_unread_is_thrown_away(void **state)
{
	member_start();
	member_start();
	member_kill(1);
	for (uint32_t i = 0; i < 50; i++)
		send_datagram(port, false, 1, 0x80000000u + i);
	assert_int_equal(member_start().slot, 1);

	struct report r;

	assert_false(next_report(&r, 50));
}

static void members_come_and_die_at_random(void **state)
{
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t deaths = prng_below(&rng, 4);
		uint64_t births = 1 + prng_below(&rng, 4);

		while (deaths-- && member_count)
			member_kill(prng_below(&rng, member_count));
		while (births--)
			assert_int_equal(member_start().kind, JOINED);
		expect_all_reached();
	}
}

/* Processes die in the middle of joining, several at a time; the group stays whole. */
static void joiners_die_at_random(void **state)
{
	struct group_config cfg = config();

	for (int round = 0; round < ROUNDS; round++) {
		pid_t victims[4];
		struct report r;

		for (int i = 0; i < 4; i++)
			victims[i] = member_fork(&cfg);
		for (int i = 0; i < 4; i++) {
			struct timespec ts = {.tv_nsec = (long)prng_below(&rng, 4000000)};

			nanosleep(&ts, NULL);
			kill(victims[i], SIGKILL);
			waitpid(victims[i], NULL, 0);
		}
		while (next_report(&r, 0))
			;
		if (member_count && prng_below(&rng, 2))
			member_kill(prng_below(&rng, member_count));
		r = member_start();
		if (r.kind == FAILED)
			fail_msg("%s", r.why);
		expect_all_reached();
	}
}

static void a_group_of_all_dead_starts_anew(void **state)
{
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(member_start().slot, i);
		expect_all_reached();
		while (member_count)
			member_kill(prng_below(&rng, member_count));
	}
}

static void packets_are_forwarded_to_their_slot(void **state)
{
	struct group_config cfg = config();
	struct io_counters counters = {0};
	struct flow f = {.sport = 1234, .dport = 4791, .tos = 3, .ttl = 9, .ifindex = 5};
	uint8_t data[DATAGRAM] = {0};
	struct pkt p = {.data = data, .flow = &f, .len = sizeof(data), .train = 1};
	char why[GROUP_WHY_BYTES];
	struct group *g;
	struct report r;

	member_start();
	member_start();
	cfg.counters = &counters;
	assert_int_equal(group_open(&g, &cfg, why, sizeof(why)), 0);
	assert_int_equal(group_slot(g), 2);
	for (uint32_t i = 0; i < 100; i++) {
		put_be24(data + 5, (i % 2) << GROUP_SLOT_SHIFT | i);
		put_be32(data + 12, 0x40000000u + i);
		assert_true(group_forward(g, i % 2, &p));
		assert_true(next_report(&r, WAIT_MS));
		assert_int_equal(r.kind, FORWARDED);
		assert_int_equal(r.slot, i % 2);
		assert_int_equal(r.nonce, 0x40000000u + i);
	}
	/* A member that is not there, our own slot, a slot that does not match the packet. */
	assert_false(group_forward(g, 9, &p));
	assert_false(group_forward(g, 2, &p));
	assert_false(group_forward(g, 127, &p));
	assert_true(group_forward(g, 0, &p));
	assert_false(next_report(&r, 50));
	/* After kill and adoption the connection is made anew. */
	member_kill(1);
	pid_t pid = member_fork(&cfg);
	uint64_t until = now_ms() + WAIT_MS;

	do {
		group_service(g);
		if (next_report(&r, 1) && r.pid == pid)
			break;
	} while (now_ms() < until);
	assert_int_equal(r.kind, JOINED);
	assert_int_equal(r.slot, 1);
	members[member_count++] = (struct member){.pid = pid, .slot = 1};
	assert_true(group_forward(g, 1, &p));
	assert_true(next_report(&r, WAIT_MS));
	assert_int_equal(r.kind, FORWARDED);
	assert_int_equal(r.pid, pid);
	assert_int_equal(counters.forward_sent, 102);
	assert_int_equal(counters.forward_dropped, 3);
	group_close(g);
}

/* No member there: the kernel gives the datagram to anybody, who passes it on or drops it. */
static void forwarded_packets_come_out_with_their_flow(void **state)
{
	struct group_config cfg = config();
	struct group *g;
	char why[GROUP_WHY_BYTES];
	struct flow f = {.sport = 1234, .dport = port, .tos = 3, .ttl = 9, .flow_label = 77};
	uint8_t data[DATAGRAM] = {0};
	struct pkt p = {.data = data, .flow = &f, .len = sizeof(data), .train = 1};
	struct pkt got[64];
	size_t n = 0;
	uint64_t until = now_ms() + WAIT_MS;

	assert_int_equal(group_open(&g, &cfg, why, sizeof(why)), 0);

	pid_t pid = fork();

	if (pid == 0) {
		struct group *child;

		group_child_after_fork(g);
		if (group_open(&child, &cfg, why, sizeof(why)) < 0)
			_exit(1);
		for (uint32_t i = 0; i < 40; i++) {
			put_be32(data + 12, i);
			if (!group_forward(child, 0, &p))
				_exit(2);
		}
		_exit(0);
	}
	for (uint32_t next = 0; next < 40 && now_ms() < until;) {
		struct pollfd fd = {.fd = group_fd(g), .events = POLLIN};

		poll(&fd, 1, 100);
		group_service(g);
		while ((n = group_recv_forwarded(g, got, 7)) > 0) {
			assert_true(n <= 7);
			for (size_t i = 0; i < n; i++, next++) {
				assert_int_equal(got[i].len, DATAGRAM);
				assert_int_equal(get_be32(got[i].data + 12), next);
				assert_memory_equal(got[i].flow, &f, sizeof(f));
			}
		}
		if (next == 40)
			n = 40;
	}
	assert_int_equal(n, 40);

	int status;

	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	group_close(g);
}

static void a_forked_child_that_lets_go_does_not_keep_the_slot(void **state)
{
	struct group_config cfg = config();
	struct group *g;
	char why[GROUP_WHY_BYTES];

	member_start();
	assert_int_equal(group_open(&g, &cfg, why, sizeof(why)), 0);
	assert_int_equal(group_slot(g), 1);

	pid_t pid = fork();

	if (pid == 0) {
		group_child_after_fork(g);
		pause();
		_exit(0);
	}
	usleep(50000);
	group_close(g);
	assert_int_equal(member_start().slot, 1);
	expect_all_reached();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void a_tool_finds_the_members_and_their_counters(void **state)
{
	struct group_config cfg = config();
	struct group_member found[GROUP_SLOTS];
	uint64_t *shared;
	uint64_t value = 0;

	cfg.stat_fd = memfd_create("counters", MFD_CLOEXEC);
	assert_int_equal(ftruncate(cfg.stat_fd, 4096), 0);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, cfg.stat_fd, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	*shared = 4711;
	member_start();

	pid_t pid = member_fork(&cfg);
	struct report r = report_of(pid, 15000);

	assert_int_equal(r.kind, JOINED);
	members[member_count++] = (struct member){.pid = pid, .slot = r.slot};
	assert_int_equal(group_query(geteuid(), port, GROUP_ALL_SLOTS, 1000, found, GROUP_SLOTS),
			 2);
	assert_int_equal(found[0].slot, 0);
	assert_int_equal(found[0].pid, members[0].pid);
	assert_true(found[0].answered);
	assert_int_equal(found[0].stat_fd, -1);
	assert_int_equal(found[1].slot, 1);
	assert_int_equal(found[1].pid, pid);
	assert_int_equal(pread(found[1].stat_fd, &value, sizeof(value), 0), sizeof(value));
	assert_int_equal(value, 4711);
	close(found[1].stat_fd);
	assert_int_equal(group_query(geteuid(), port, 1, 1000, found, 1), 1);
	close(found[0].stat_fd);
	assert_int_equal(group_query(geteuid(), port, 2, 1000, found, 1), 0);
	munmap(shared, 4096);
	close(cfg.stat_fd);
}

static void assert_fails(const struct group_config *cfg, int err, const char *part)
{
	struct group *g;
	char why[GROUP_WHY_BYTES] = "";

	assert_int_equal(group_open(&g, cfg, why, sizeof(why)), err);
	if (!strstr(why, part))
		fail_msg("\"%s\" does not say \"%s\"", why, part);
	if (getenv("VERBENA_TEST_SHOW"))
		print_message("\t%s\n", why);
}

static void a_held_lock_is_reported_with_its_holder(void **state)
{
	struct group_config cfg = config();
	char part[64];
	int lock = link_listen(geteuid(), port, LINK_LOCK);

	cfg.join_ms_max = 100;
	snprintf(part, sizeof(part), "process %d has held the lock", (int)getpid());
	assert_fails(&cfg, -ETIMEDOUT, part);
	close(lock);
}

static void a_stopped_member_is_reported_and_joining_works_after(void **state)
{
	struct group_config cfg = config();
	char part[64];

	member_start();
	kill(members[0].pid, SIGSTOP);
	cfg.join_ms_max = 100;
	snprintf(part, sizeof(part), "process %d", (int)members[0].pid);
	assert_fails(&cfg, -ETIMEDOUT, part);
	kill(members[0].pid, SIGCONT);
	assert_int_equal(member_start().slot, 1);
	expect_all_reached();
}

static void a_stopped_member_is_passed_over_while_others_answer(void **state)
{
	for (int i = 0; i < 3; i++)
		member_start();
	kill(members[1].pid, SIGSTOP);
	assert_int_equal(member_start().slot, 3);
	kill(members[1].pid, SIGCONT);
	expect_all_reached();
	/* It lacked the newcomer's socket; the next joiner gives it. */
	assert_int_equal(member_start().slot, 4);
	member_kill(0);
	expect_all_reached();
}

/* Others hold the sockets of the newest too, so that it is not needed. */
static void the_newest_member_may_be_stopped(void **state)
{
	for (int i = 0; i < 3; i++)
		member_start();
	kill(members[2].pid, SIGSTOP);
	assert_int_equal(member_start().slot, 3);
	kill(members[2].pid, SIGCONT);
	expect_all_reached();
}

static int stray_socket(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int one = 1;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* As one that a dying member alone holds, and that the kernel has not closed yet. */
static void a_socket_out_of_order_is_noticed(void **state)
{
	struct group_config cfg = config();
	int stray = stray_socket();

	cfg.join_ms_max = 100;
	assert_fails(&cfg, -ETIMEDOUT, "does not arrive");

	pid_t pid = fork();

	if (pid == 0) {
		usleep(300000);
		_exit(0);
	}
	close(stray); /* now only that process has it */
	assert_int_equal(member_start().slot, 0);
	expect_all_reached();
	waitpid(pid, NULL, 0);
}

static void only_sockets_of_the_lane_that_come_next_are_held(void **state)
{
	struct group *g = group_new();
	int fds[2];

	g->lane_count = 1;
	g->lanes[0] = (struct group_lane){UDP_V4, port};
	for (int round = 0; round < 2; round++) {
		/* The first time they are new, then they are known. */
		fds[0] = stray_socket();
		fds[1] = stray_socket();
		assert_true(group_hold(g, 0, 2, fds));
		assert_int_equal(g->held, 2);
		assert_int_equal(fcntl(fds[0], F_GETFD) < 0, round);
		assert_int_equal(fcntl(fds[1], F_GETFD) < 0, round);
	}
	/* A gap, another port, no socket at all: closed, not held. */
	fds[0] = stray_socket();
	assert_true(group_hold(g, 3, 1, fds));
	assert_true(fcntl(fds[0], F_GETFD) < 0);
	fds[0] = stray_socket();
	fds[1] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_false(group_hold(g, 2, 2, fds));
	assert_true(fcntl(fds[0], F_GETFD) < 0);
	fds[0] = memfd_create("none", MFD_CLOEXEC);
	assert_false(group_hold(g, 2, 1, fds));
	assert_int_equal(g->held, 2);
	group_close(g);
}

static void a_port_in_use_is_reported(void **state)
{
	struct group_config cfg = config();
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_fails(&cfg, -EADDRINUSE, "in use by something else");
	close(fd);
}

static void another_users_group_is_reported(void **state)
{
	struct group_config cfg = config();
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	member_start();
	pid = fork();
	if (pid == 0) {
		struct group *g;
		char why[GROUP_WHY_BYTES] = "";

		if (setuid(65534) < 0 || group_open(&g, &cfg, why, sizeof(why)) != -EADDRINUSE ||
		    !strstr(why, "another user (uid 0)"))
			_exit(1);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	expect_all_reached();
}

static void too_few_descriptors_are_reported(void **state)
{
	struct group_config cfg = config();
	struct rlimit limit = {.rlim_cur = 12, .rlim_max = 12};
	int status;
	pid_t pid;

	for (int i = 0; i < 4; i++)
		member_start();
	pid = fork();
	if (pid == 0) {
		struct group *g;
		char why[GROUP_WHY_BYTES] = "";

		setrlimit(RLIMIT_NOFILE, &limit);
		if (group_open(&g, &cfg, why, sizeof(why)) != -EMFILE ||
		    !strstr(why, "limit is 12"))
			_exit(1);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	expect_all_reached();
}

static void other_ports_are_reported(void **state)
{
	struct group_config cfg = config();

	member_start();
	cfg.ports[1] = (uint16_t)(port + 1);
	assert_fails(&cfg, -EPROTO, "without port");
	cfg.port_count = 1;
	assert_fails(&cfg, -EPROTO, "and one more");
	expect_all_reached();
}

static void all_ports_share_one_slot(void **state)
{
	struct group_config cfg = config();
	char why[GROUP_WHY_BYTES];

	for (cfg.port_count = 1; cfg.port_count <= GROUP_PORTS_MAX; cfg.port_count++) {
		int fds[GROUP_LANES_MAX];
		struct group *g;

		assert_int_equal(group_open(&g, &cfg, why, sizeof(why)), 0);
		assert_int_equal(group_rx_fds(g, fds, GROUP_LANES_MAX),
				 cfg.port_count * (group_has_ipv6(g) ? 2 : 1));
		group_close(g);
	}
}

static void a_second_port_in_use_is_reported(void **state)
{
	struct group_config cfg = config();
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(second_port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char part[64];

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	snprintf(part, sizeof(part), "UDP port %u is in use by something else", second_port);
	assert_fails(&cfg, -EADDRINUSE, part);
	close(fd);
	member_start();
	expect_all_reached();
}

/* A new network namespace has its loopback interface down: nothing can be proven, nothing is lost.
 */
static void joining_works_without_loopback(void **state)
{
	struct group_config cfg = config();
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct group *g, *h;
		char why[GROUP_WHY_BYTES] = "";

		if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
			_exit(77);
		if (group_open(&g, &cfg, why, sizeof(why)) < 0) {
			fprintf(stderr, "%s\n", why);
			_exit(1);
		}
		group_close(g);
		_exit(group_open(&h, &cfg, why, sizeof(why)) < 0 ? 2 : 0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

static void a_full_group_is_reported(void **state)
{
	struct group_config cfg = config();
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < 600)
		skip();
	for (unsigned i = 0; i < GROUP_SLOTS; i++) {
		struct report r = member_start();

		if (r.kind == FAILED)
			fail_msg("%s", r.why);
		assert_int_equal(r.slot, i);
	}
	expect_all_reached();
	assert_fails(&cfg, -ENOSPC, "all 127 slots");
	member_kill(prng_below(&rng, member_count));
	assert_int_equal(member_start().kind, JOINED);
	expect_all_reached();
}

int main(void)
{
	const char *env = getenv("VERBENA_TEST_SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : now_ms();
#define TEST(f) cmocka_unit_test_setup_teardown(f, group_setup, group_teardown)
	const struct CMUnitTest tests[] = {
		TEST(slots_are_handed_out_from_0),
		TEST(a_dead_members_slot_is_taken_first),
		TEST(what_a_dead_member_left_unread_is_thrown_away),
		TEST(members_come_and_die_at_random),
		TEST(joiners_die_at_random),
		TEST(a_group_of_all_dead_starts_anew),
		TEST(packets_are_forwarded_to_their_slot),
		TEST(forwarded_packets_come_out_with_their_flow),
		TEST(a_forked_child_that_lets_go_does_not_keep_the_slot),
		TEST(a_tool_finds_the_members_and_their_counters),
		TEST(a_held_lock_is_reported_with_its_holder),
		TEST(a_stopped_member_is_reported_and_joining_works_after),
		TEST(a_stopped_member_is_passed_over_while_others_answer),
		TEST(the_newest_member_may_be_stopped),
		TEST(a_socket_out_of_order_is_noticed),
		TEST(only_sockets_of_the_lane_that_come_next_are_held),
		TEST(a_port_in_use_is_reported),
		TEST(another_users_group_is_reported),
		TEST(too_few_descriptors_are_reported),
		TEST(other_ports_are_reported),
		TEST(all_ports_share_one_slot),
		TEST(a_second_port_in_use_is_reported),
		TEST(joining_works_without_loopback),
		TEST(a_full_group_is_reported),
	};

	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	prng_init(&rng, seed);
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
