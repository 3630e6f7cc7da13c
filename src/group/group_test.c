/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a group: members join, die, stop and pass on packets of others, and each gets its
 * packets.
 */
#include "support/group_members.h"
#include "support/test.h"

#include <net/if.h>
#include <sys/ioctl.h>

GROUP_TEST(slots_are_handed_out_from_0)
{
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(member_start().slot, i);
		expect_all_reached();
	}
}

GROUP_TEST(a_dead_members_slot_is_taken_first)
{
	for (int i = 0; i < 4; i++)
		member_start();
	member_kill(1); /* slot 1; the last entry takes its place in the table */
	expect_all_reached();
	assert_int_equal(member_start().slot, 1);
	expect_all_reached();
}

GROUP_TEST(what_a_dead_member_left_unread_is_thrown_away)
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

GROUP_TEST(members_come_and_die_at_random)
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
GROUP_TEST(joiners_die_at_random)
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

GROUP_TEST(a_group_of_all_dead_starts_anew)
{
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(member_start().slot, i);
		expect_all_reached();
		while (member_count)
			member_kill(prng_below(&rng, member_count));
	}
}

GROUP_TEST(packets_are_forwarded_to_their_slot)
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
		assert_true(group_forward(g, i % 2, &p, 0));
		assert_true(next_report(&r, WAIT_MS));
		assert_int_equal(r.kind, FORWARDED);
		assert_int_equal(r.slot, i % 2);
		assert_int_equal(r.nonce, 0x40000000u + i);
	}
	/* A member that is not there, our own slot, a slot that does not match the packet. */
	assert_false(group_forward(g, 9, &p, 0));
	assert_false(group_forward(g, 2, &p, 0));
	assert_false(group_forward(g, 127, &p, 0));
	assert_true(group_forward(g, 0, &p, 0));
	assert_false(next_report(&r, 50));
	/* After kill and adoption the connection is made anew. */
	member_kill(1);
	pid_t pid = member_fork(&cfg);
	uint64_t until = clock_now_ms() + WAIT_MS;

	do {
		group_service(g);
		if (next_report(&r, 1) && r.pid == pid)
			break;
	} while (clock_now_ms() < until);
	assert_int_equal(r.kind, JOINED);
	assert_int_equal(r.slot, 1);
	members[member_count++] = (struct member){.pid = pid, .slot = 1};
	assert_true(group_forward(g, 1, &p, 0));
	assert_true(next_report(&r, WAIT_MS));
	assert_int_equal(r.kind, FORWARDED);
	assert_int_equal(r.pid, pid);
	assert_int_equal(counters.forward_sent, 102);
	assert_int_equal(counters.forward_dropped, 3);
	group_close(g);
}

/*
 * No member has that slot: the kernel gives the datagram to any member, which passes it on or drops
 * it.
 */
GROUP_TEST(forwarded_packets_come_out_with_their_flow)
{
	struct group_config cfg = config();
	struct group *g;
	char why[GROUP_WHY_BYTES];
	struct flow f = {.sport = 1234, .dport = port, .tos = 3, .ttl = 9, .flow_label = 77};
	uint8_t data[DATAGRAM] = {0};
	struct pkt p = {.data = data, .flow = &f, .len = sizeof(data), .train = 1};
	struct pkt got[64];
	size_t n = 0;
	uint64_t until = clock_now_ms() + WAIT_MS;

	assert_int_equal(group_open(&g, &cfg, why, sizeof(why)), 0);

	pid_t pid = fork();

	if (pid == 0) {
		struct group *child;

		group_child_after_fork(g);
		if (group_open(&child, &cfg, why, sizeof(why)) < 0)
			_exit(1);
		for (uint32_t i = 0; i < 40; i++) {
			put_be32(data + 12, i);
			if (!group_forward(child, 0, &p, 0))
				_exit(2);
		}
		_exit(0);
	}
	for (uint32_t next = 0; next < 40 && clock_now_ms() < until;) {
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

GROUP_TEST(a_forked_child_that_lets_go_does_not_keep_the_slot)
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

GROUP_TEST(a_stopped_member_is_passed_over_while_others_answer)
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
GROUP_TEST(the_newest_member_may_be_stopped)
{
	for (int i = 0; i < 3; i++)
		member_start();
	kill(members[2].pid, SIGSTOP);
	assert_int_equal(member_start().slot, 3);
	kill(members[2].pid, SIGCONT);
	expect_all_reached();
}

GROUP_TEST(only_sockets_of_the_lane_are_held_and_each_once)
{
	struct group *g = group_new();
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fds[2], again;

	g->lane_count = 1;
	g->lanes[0] = (struct group_lane){.family = UDP_V4, .port = port};
	fds[0] = stray_socket();
	fds[1] = stray_socket();
	again = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	assert_true(group_hold(g, 0, 0, 2, fds));
	assert_int_equal(group_held(g), 2);
	assert_int_equal(g->socks[0][0].fd, fds[0]);
	/* A socket known already is closed, and the last message about its index is right. */
	assert_true(group_hold(g, 0, 1, 1, &again));
	assert_true(fcntl(again, F_GETFD) < 0);
	assert_int_equal(group_held(g), 2);
	assert_int_equal(g->socks[0][1].fd, fds[0]);
	assert_int_equal(g->socks[0][0].fd, fds[1]);
	/* A place that is taken: the socket that was there moves. */
	again = stray_socket();
	assert_true(group_hold(g, 0, 1, 1, &again));
	assert_int_equal(group_held(g), 3);
	assert_int_equal(g->socks[0][1].fd, again);
	/*
	 * A socket with another port or with an address, no socket at all, one of another lane, out
	 * of bounds: each is closed, not held.
	 */
	fds[0] = stray_socket();
	fds[1] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_false(group_hold(g, 0, 3, 2, fds));
	assert_true(fcntl(fds[0], F_GETFD) < 0);
	fds[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_REUSEPORT, &(int){1}, sizeof(int)), 0);
	assert_int_equal(bind(fds[0], (struct sockaddr *)&a, sizeof(a)), 0);
	assert_false(group_hold(g, 0, 3, 1, fds));
	fds[0] = memfd_create("none", MFD_CLOEXEC);
	assert_false(group_hold(g, 0, 3, 1, fds));
	fds[0] = stray_socket();
	assert_false(group_hold(g, 1, 3, 1, fds));
	fds[0] = stray_socket();
	assert_false(group_hold(g, 0, GROUP_SOCKETS_MAX, 1, fds));
	assert_true(fcntl(fds[0], F_GETFD) < 0);
	assert_int_equal(group_held(g), 3);
	group_close(g);
}

GROUP_TEST(all_ports_share_one_slot)
{
	struct group_config cfg = config();
	char why[GROUP_WHY_BYTES];

	for (cfg.port_count = 1; cfg.port_count <= GROUP_PORTS_MAX; cfg.port_count++) {
		int fds[GROUP_LANES_MAX];
		struct group *g;

		assert_int_equal(group_open(&g, &cfg, why, sizeof(why)), 0);
		assert_int_equal(group_rx_fds(g, fds, GROUP_LANES_MAX), cfg.port_count * (group_has_ipv6(g) ? 2 : 1));
		group_close(g);
	}
}

/* A new network namespace has its loopback interface down: nothing can be proven, nothing is lost.
 */
GROUP_TEST(joining_works_without_loopback)
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

enum { ELSEWHERE = 0x0a090909 }; /* 10.9.9.9 */

/* A network namespace of our own, whose host is at ELSEWHERE and not at 127.0.0.1. */
static bool move_host(void)
{
	struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	struct ifreq address = {.ifr_name = "lo"};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ELSEWHERE)};
	int fd;
	bool done;

	if (unshare(CLONE_NEWNET) < 0)
		return false;
	memcpy(&address.ifr_addr, &a, sizeof(a));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	done = ioctl(fd, SIOCSIFFLAGS, &up) == 0 && ioctl(fd, SIOCSIFADDR, &address) == 0;
	close(fd);
	return done;
}

/* The status of a child that joins g's group, and then does what `then` says. */
static int child_of_group(struct group *g, const struct group_config *cfg, int (*then)(struct group *))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct group *own;
		char why[GROUP_WHY_BYTES];

		group_child_after_fork(g);
		if (group_open(&own, cfg, why, sizeof(why)) < 0) {
			fprintf(stderr, "%s\n", why);
			_exit(1);
		}
		_exit(group_slot(own) != 1 ? 2 : then(own));
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		struct pollfd p = {.fd = group_fd(g), .events = POLLIN};

		poll(&p, 1, 1);
		group_service(g);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int leave(struct group *g)
{
	return 0;
}

static int count_unread(struct group *g)
{
	int fds[GROUP_LANES_MAX], unread = 0;
	size_t n = group_rx_fds(g, fds, GROUP_LANES_MAX);

	for (size_t i = 0; i < n; i++)
		unread += recv(fds[i], NULL, 0, MSG_DONTWAIT | MSG_PEEK) >= 0;
	return unread ? 3 : 0;
}

/*
 * Where a datagram to ourselves proves the place, the search for it empties the sockets too; here
 * it does not.
 */
GROUP_TEST(what_was_left_unread_is_thrown_away_where_nothing_is_proven)
{
	struct group_config cfg = config();
	int status;
	pid_t pid = fork();

	cfg.no_ipv6 = true;
	if (pid == 0) {
		struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ELSEWHERE)};
		uint8_t d[DATAGRAM] = {[5] = 1 << 1};
		int fd = move_host() ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
		struct group *g;
		char why[GROUP_WHY_BYTES];

		if (fd < 0)
			_exit(77);
		if (group_open(&g, &cfg, why, sizeof(why)) < 0 || child_of_group(g, &cfg, leave) != 0)
			_exit(4);
		for (unsigned i = 0; i < 2; i++) {
			a.sin_port = htons(i ? second_port : port);
			if (sendto(fd, d, sizeof(d), 0, (struct sockaddr *)&a, sizeof(a)) < 0)
				_exit(5);
		}
		_exit(child_of_group(g, &cfg, count_unread));
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}
