/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings between members: who gets them, who is believed, and how the end of either is told. */
#include "support/group_members.h"
#include "support/test.h"

#include <sys/eventfd.h>

static struct group *join(bool rings)
{
	struct group_config cfg = config();
	char why[GROUP_WHY_BYTES];
	struct group *g;

	cfg.rings = rings;
	if (group_open(&g, &cfg, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	return g;
}

/* The second member joins in a process of its own, as the first must answer it, and says how the test goes on. */
static pid_t fork_member(bool rings, void (*act)(struct group *))
{
	pid_t pid = fork();

	note_forked(pid);
	if (pid == 0) {
		act(join(rings));
		_exit(0);
	}
	return pid;
}

static bool wait_for_ring(struct group *g, struct group_ring *r)
{
	uint64_t until = clock_now_ms() + WAIT_MS;

	while (clock_now_ms() < until) {
		struct pollfd p = {.fd = group_fd(g), .events = POLLIN};

		poll(&p, 1, 100);
		group_service(g);
		if (group_next_ring(g, r))
			return true;
	}
	return false;
}

static void make_fds(int fds[GROUP_RING_FDS], const char *content)
{
	fds[0] = memfd_create("ring", MFD_CLOEXEC);
	fds[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(write(fds[0], content, strlen(content)), (ssize_t)strlen(content));
}

static void offer_and_stay(struct group *g)
{
	int fds[GROUP_RING_FDS];

	make_fds(fds, "hello");
	if (group_offer_ring(g, 0, fds) < 0)
		_exit(3);
	pause();
}

GROUP_TEST(a_ring_reaches_its_member_and_its_end_is_told)
{
	struct group *g = join(true);
	pid_t pid = fork_member(true, offer_and_stay);
	struct group_ring r;
	char got[6] = "";

	assert_true(wait_for_ring(g, &r));
	assert_int_equal(r.kind, GROUP_RING_OFFERED);
	assert_int_equal(r.slot, 1);
	assert_int_equal(r.pid, pid);
	assert_int_equal(pread(r.fds[0], got, 5, 0), 5);
	assert_string_equal(got, "hello");
	assert_false(group_next_ring(g, &r));
	kill(pid, SIGKILL);
	assert_true(wait_for_ring(g, &r));
	assert_int_equal(r.kind, GROUP_RING_IN_ENDED);
	assert_int_equal(r.slot, 1);
	group_close(g);
}

static void offer_and_wait_for_the_end(struct group *g)
{
	struct group_ring r;
	int fds[GROUP_RING_FDS];

	make_fds(fds, "hello");
	if (group_offer_ring(g, 0, fds) < 0)
		_exit(3);
	_exit(wait_for_ring(g, &r) && r.kind == GROUP_RING_OUT_ENDED && r.slot == 0 ? 0 : 4);
}

static void expect_end(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void serve_until_it_ends(struct group *g, pid_t pid)
{
	uint64_t until = clock_now_ms() + WAIT_MS;
	int status;

	while (clock_now_ms() < until) {
		struct group_ring r;

		group_service(g);
		assert_false(group_next_ring(g, &r) && r.kind == GROUP_RING_OFFERED);
		if (waitpid(pid, &status, WNOHANG) == pid) {
			assert_true(WIFEXITED(status));
			assert_int_equal(WEXITSTATUS(status), 0);
			return;
		}
		usleep(1000);
	}
	fail_msg("it was told nothing");
}

GROUP_TEST(who_refuses_a_ring_hangs_up)
{
	struct group *g = join(true);
	pid_t pid = fork_member(true, offer_and_wait_for_the_end);
	struct group_ring r;

	assert_true(wait_for_ring(g, &r));
	link_close_all(r.fds, GROUP_RING_FDS);
	group_refuse_ring(g, r.slot);
	expect_end(pid);
	group_close(g);
}

GROUP_TEST(a_member_without_rings_takes_none)
{
	struct group *g = join(false);

	serve_until_it_ends(g, fork_member(true, offer_and_wait_for_the_end));
	group_close(g);
}

/* Offers in the name of slot 0, which the test has, and of a slot that nobody has. */
static void lie(struct group *g)
{
	struct group_msg m = {.type = GROUP_RING, .slot = 5};
	uint8_t buf[GROUP_MSG_HEADER_LEN];
	int fds[GROUP_RING_FDS];
	struct link_peer peer;

	make_fds(fds, "lie");
	for (m.slot = 0; m.slot <= 5; m.slot += 5) {
		int link = link_connect(&(struct group_id){.uid = geteuid(), .port = port}, 0, &peer);
		struct pollfd p = {.fd = link, .events = POLLIN};

		if (link < 0 || link_send(link, buf, group_msg_encode(buf, &m), NULL, 0, fds, GROUP_RING_FDS) < 0)
			_exit(3);
		if (poll(&p, 1, WAIT_MS) != 1 || recv(link, buf, 1, 0) != 0)
			_exit(4);
	}
	_exit(0);
}

GROUP_TEST(a_ring_in_the_name_of_another_is_refused)
{
	struct group *g = join(true);

	serve_until_it_ends(g, fork_member(true, lie));
	group_close(g);
}

GROUP_TEST(nobody_offers_to_himself)
{
	struct group *g = join(true);
	int fds[GROUP_RING_FDS];

	make_fds(fds, "mine");
	assert_int_equal(group_offer_ring(g, group_slot(g), fds), -EINVAL);
	assert_int_equal(group_offer_ring(g, 7, fds), -ECONNREFUSED);
	link_close_all(fds, GROUP_RING_FDS);
	group_close(g);
}

/* A member that has the slot 1, and has joined for certain. */
static pid_t fork_first(struct group *g)
{
	pid_t pid = fork_member(true, offer_and_stay);
	struct group_ring r;

	do {
		assert_true(wait_for_ring(g, &r));
	} while (r.kind != GROUP_RING_OFFERED);
	assert_int_equal(r.slot, 1);
	link_close_all(r.fds, GROUP_RING_FDS);
	return pid;
}

/* The question is about the process, and not about its slot, which another one gets. */
GROUP_TEST(the_end_of_a_reader_is_seen_though_its_slot_is_taken_again)
{
	struct group *g = join(true);
	int fds[GROUP_RING_FDS];
	pid_t pid = fork_first(g);

	make_fds(fds, "hello");
	assert_int_equal(group_offer_ring(g, 1, fds), 0);
	assert_true(group_ring_lives(g, 1));
	kill(pid, SIGSTOP);
	assert_true(group_ring_lives(g, 1));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	fork_first(g);
	assert_true(group_lives(g, 1));
	assert_false(group_ring_lives(g, 1));
	/* The question is about the other process once that has a ring. */
	assert_int_equal(group_offer_ring(g, 1, fds), 0);
	assert_true(group_ring_lives(g, 1));
	link_close_all(fds, GROUP_RING_FDS);
	group_close(g);
}

/* To the member in a process of its own, and from it: a byte each says that the next step may be done. */
static int steps_down[2], steps_up[2];

static void step(const int *pipe_fds)
{
	if (write(pipe_fds[1], "", 1) != 1)
		_exit(9);
}

static void await_step(const int *pipe_fds)
{
	char byte;

	if (read(pipe_fds[0], &byte, 1) != 1)
		_exit(9);
}

/* Offers a ring in place of another. A copy of the connection over which the older one was offered, which is still to
 * end. */
static int offer_in_place(struct group *g, const char *content)
{
	int older = dup(g->ring_links[0]), fds[GROUP_RING_FDS];

	make_fds(fds, content);
	if (group_offer_ring(g, 0, fds) < 0)
		_exit(3);
	return older;
}

static void offer_three(struct group *g)
{
	int first;

	offer_in_place(g, "one");
	await_step(steps_down);
	first = offer_in_place(g, "two");
	await_step(steps_down);
	close(first);
	offer_in_place(g, "three");
	pause();
}

/* The second one over the connection of the first. */
static void offer_twice(struct group *g)
{
	struct group_msg m = {.type = GROUP_RING, .slot = (uint16_t)group_slot(g)};
	uint8_t buf[GROUP_MSG_HEADER_LEN];
	int fds[GROUP_RING_FDS];

	offer_in_place(g, "one");
	await_step(steps_down);
	make_fds(fds, "two");
	if (link_send(g->ring_links[0], buf, group_msg_encode(buf, &m), NULL, 0, fds, GROUP_RING_FDS) < 0)
		_exit(3);
	pause();
}

static void offer_two_at_once(struct group *g)
{
	offer_in_place(g, "one");
	offer_in_place(g, "two");
	step(steps_up);
	pause();
}

static void expect_offer(struct group *g, const char *content)
{
	struct group_ring r;
	char got[8] = "";

	assert_true(wait_for_ring(g, &r));
	assert_int_equal(r.kind, GROUP_RING_OFFERED);
	assert_true(pread(r.fds[0], got, sizeof(got) - 1, 0) > 0);
	assert_string_equal(got, content);
	link_close_all(r.fds, GROUP_RING_FDS);
}

/* And there is no next step. */
static void expect_one_end(struct group *g, pid_t pid)
{
	struct group_ring r;

	kill(pid, SIGKILL);
	assert_true(wait_for_ring(g, &r));
	assert_int_equal(r.kind, GROUP_RING_IN_ENDED);
	assert_int_equal(r.slot, 1);
	assert_false(group_next_ring(g, &r));
	for (unsigned i = 0; i < 2; i++) {
		close(steps_down[i]);
		close(steps_up[i]);
	}
}

/* However late the end of the older one is noticed, and told of or not. */
GROUP_TEST(a_ring_that_replaces_another_does_not_end_with_it)
{
	struct group *g = join(true);
	pid_t pid;

	assert_int_equal(pipe(steps_down) || pipe(steps_up), 0);
	pid = fork_member(true, offer_three);
	expect_offer(g, "one");
	step(steps_down);
	expect_offer(g, "two");
	step(steps_down);
	expect_offer(g, "three");
	expect_one_end(g, pid);
	group_close(g);
}

/* Its end is that of one ring: a process with two slots could leave another one that never ends. */
GROUP_TEST(a_connection_is_for_one_ring)
{
	struct group *g = join(true);
	struct group_ring r;
	pid_t pid;

	assert_int_equal(pipe(steps_down) || pipe(steps_up), 0);
	pid = fork_member(true, offer_twice);
	expect_offer(g, "one");
	step(steps_down);
	assert_true(wait_for_ring(g, &r));
	assert_int_equal(r.kind, GROUP_RING_IN_ENDED);
	assert_int_equal(r.slot, 1);
	assert_false(group_next_ring(g, &r));
	kill(pid, SIGKILL);
	group_close(g);
}

GROUP_TEST(of_two_rings_from_one_slot_the_newer_is_told)
{
	struct group *g = join(true);
	struct group_ring r;
	pid_t pid;

	assert_int_equal(pipe(steps_down) || pipe(steps_up), 0);
	pid = fork_member(true, offer_two_at_once);
	while (!group_lives(g, 1)) /* it joins by asking us */
		group_service(g);
	await_step(steps_up);
	expect_offer(g, "two");
	assert_false(group_next_ring(g, &r));
	expect_one_end(g, pid);
	group_close(g);
}
