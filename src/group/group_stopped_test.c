/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members and joiners that are stopped, as by Ctrl-Z or a debugger, or that cannot be reached: others join
 * all the same, and every member gets its packets while they are stopped, when they continue and when they
 * are killed.
 */
#include "support/group_members.h"
#include "support/test.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>

enum {
	STOPPED_MAX = 4,
	IDLE_MS = 3000 /* a joiner that makes no system call for so long has joined */
};

GROUP_TEST_EACH(a_stopped_member_keeps_nobody_out)
{
	member_start();
	member_stop(0);
	assert_int_equal(member_start().slot, 1);
	expect_all_reached();
	assert_int_equal(member_start().kind, JOINED);
	expect_all_reached();
	member_continue(0);
	expect_all_reached();
	assert_int_equal(member_start().kind, JOINED);
	expect_all_reached();
	/* By now every member holds all sockets again. */
	for (size_t i = 1; i < 4; i++)
		member_stop(i);
	member_kill(0);
	assert_int_equal(member_start().kind, JOINED);
	expect_all_reached();
}

/* No other member held its sockets: they are closed, and the kernel moves others to their places. */
GROUP_TEST_EACH(a_stopped_member_that_is_killed_moves_nobody)
{
	for (int round = 0; round < 3; round++) {
		size_t before = member_count;

		for (int i = 0; i <= round; i++)
			member_start();
		for (size_t i = 0; i < member_count; i++)
			member_stop(i);
		for (int i = 0; i < 3; i++)
			assert_int_equal(member_start().kind, JOINED);
		expect_all_reached();
		for (size_t i = before + (size_t)round + 1; i-- > 0;) {
			member_kill(i);
			expect_all_reached();
		}
		assert_int_equal(member_start().kind, JOINED);
		expect_all_reached();
		while (member_count)
			member_kill(prng_below(&rng, member_count));
	}
}

/* Each joins when all before it are stopped, so that none has any other's sockets. */
GROUP_TEST_EACH(each_may_be_stopped_before_the_next)
{
	for (int i = 0; i < 5; i++) {
		assert_int_equal(member_start().kind, JOINED);
		expect_all_reached();
		member_stop(member_count - 1);
	}
	for (int round = 0; round < 10; round++) {
		size_t i = prng_below(&rng, member_count);

		if (members[i].stopped)
			member_continue(i);
		else if (member_count > 2 && prng_below(&rng, 2))
			member_kill(i);
		else
			member_stop(i);
		expect_all_reached();
	}
	assert_int_equal(member_start().kind, JOINED);
	expect_all_reached();
	for (size_t i = 0; i < member_count; i++)
		member_continue(i);
	expect_all_reached();
	assert_int_equal(member_start().kind, JOINED);
	expect_all_reached();
}

static bool may_look_into_a_child(void)
{
	pid_t pid = fork();
	int pidfd, fd;

	if (pid == 0) {
		pause();
		_exit(0);
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, reports[0], 0);
	if (fd >= 0)
		close(fd);
	if (pidfd >= 0)
		close(pidfd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return fd >= 0;
}

/* However many: what the stopped hold is taken from them. */
GROUP_TEST(stopped_members_use_one_slot_each)
{
	if (!may_look_into_a_child())
		skip();
	for (unsigned i = 0; i < 12; i++) {
		assert_int_equal(member_start().slot, i);
		expect_all_reached();
		member_stop(i);
	}
	while (member_count > 1)
		member_kill(prng_below(&rng, member_count));
	assert_int_equal(member_start().kind, JOINED);
	expect_all_reached();
}

GROUP_TEST_EACH(members_come_stop_go_on_and_die_at_random)
{
	for (int round = 0; round < 6; round++) {
		for (uint64_t n = 1 + prng_below(&rng, 4); n && member_count < 12; n--)
			assert_int_equal(member_start().kind, JOINED);
		for (size_t i = member_count; i-- > 0;) {
			uint64_t fate = prng_below(&rng, 4);

			if (fate == 0)
				member_kill(i);
			else if (fate == 1)
				member_stop(i);
			else if (members[i].stopped)
				member_continue(i);
		}
		expect_all_reached();
	}
}

/* ---- joiners ---- */

/* False: it has made no system call for so long that it must have joined and wait for packets. */
static bool stops(pid_t pid)
{
	uint64_t until = clock_now_ms() + IDLE_MS;
	pid_t got;
	int status;

	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && clock_now_ms() < until)
		usleep(20);
	if (got && !WIFSTOPPED(status))
		fail_msg("status %#x", (unsigned)status);
	return got;
}

/* A process that joins, and is stopped at its n-th system call; or joins, if it makes fewer. */
static pid_t stop_at_call(const struct group_config *cfg, unsigned n)
{
	pid_t pid = fork();
	bool idle = false;
	int status;

	note_forked(pid);
	if (pid == 0) {
		close(reports[0]);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		member_run(cfg);
	}
	waitpid(pid, &status, 0);
	if (!WIFSTOPPED(status))
		fail_msg("status %#x", (unsigned)status);
	for (unsigned i = 0; i < n && !idle; i++) {
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
		idle = !stops(pid);
	}
	if (idle) {
		kill(pid, SIGSTOP);
		waitpid(pid, &status, 0);
	}
	ptrace(PTRACE_DETACH, pid, NULL, (void *)SIGSTOP);
	return pid;
}

/* How many system calls it makes, entries and exits counted, until it reports. */
static unsigned calls_of_a_join(void)
{
	struct group_config cfg = config();
	pid_t pid = fork();
	struct report r;
	int status;
	unsigned n = 0;

	note_forked(pid);
	if (pid == 0) {
		close(reports[0]);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		member_run(&cfg);
	}
	waitpid(pid, &status, 0);
	for (; !next_report(&r, 0); n++) {
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
		waitpid(pid, &status, 0);
	}
	assert_int_equal(r.kind, JOINED);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return n;
}

static void take_in(struct report r)
{
	if (r.kind == FAILED)
		fail_msg("%s", r.why);
	for (size_t i = 0; i < member_count; i++)
		assert_int_not_equal(members[i].slot, r.slot);
	members[member_count++] = (struct member){.pid = r.pid, .slot = r.slot};
}

/*
 * At whichever system call joiners are stopped, with the lock or without, others join; and so do
 * they when they continue.
 */
GROUP_TEST(joiners_are_stopped_anywhere)
{
	struct group_config cfg = config();
	const char *all = getenv("VERBENA_TEST_CALLS"); /* this many steps, evenly spread; else a few at random */
	unsigned steps = all ? (unsigned)atoi(all) : 1;

	member_start();
	for (unsigned step = 0; step < steps; step++) {
		unsigned calls = calls_of_a_join();
		pid_t joiners[STOPPED_MAX];
		unsigned count = all ? 1 : STOPPED_MAX;

		for (unsigned i = 0; i < count; i++)
			joiners[i] = stop_at_call(&cfg, all ? step * calls / steps : (unsigned)prng_below(&rng, calls));
		if (!all && prng_below(&rng, 2))
			member_stop(0);
		take_in(report_of(member_fork(&cfg), JOIN_MS));
		expect_all_reached();
		for (unsigned i = 0; i < count; i++) {
			if (prng_below(&rng, 4) == 0) {
				kill(joiners[i], SIGKILL);
				waitpid(joiners[i], NULL, 0);
				continue;
			}
			kill(joiners[i], SIGCONT);
			take_in(report_of(joiners[i], JOIN_MS));
		}
		for (size_t i = 0; i < member_count; i++)
			member_continue(i);
		expect_all_reached();
		while (member_count > 1)
			member_kill(member_count - 1);
	}
}

/* ---- sockets that no member can give ---- */

GROUP_TEST(a_socket_of_nobodys_is_passed_over)
{
	int stray = stray_socket();

	assert_int_equal(member_start().slot, 1);
	expect_all_reached();
	assert_int_equal(member_start().kind, JOINED);
	expect_all_reached();
	close(stray);
	expect_all_reached();
	assert_int_equal(member_start().kind, JOINED);
	expect_all_reached();
}

/* Like the socket of a dying member that the kernel has not closed yet. */
GROUP_TEST(a_socket_that_is_about_to_be_closed_is_waited_for)
{
	int stray = stray_socket();
	pid_t pid = fork();

	if (pid == 0) {
		usleep(50000);
		_exit(0);
	}
	close(stray); /* now only that process has it */

	struct report r = member_start();

	/* 1: this machine was too busy to finish in time. */
	assert_true(r.kind == JOINED && r.slot <= 1);
	expect_all_reached();
	waitpid(pid, NULL, 0);
	expect_all_reached();
}
