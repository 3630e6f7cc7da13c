/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No datagram to a living member is lost while others join, stop, continue and die. UC and UD would
 * not repeat it.
 */
#include "support/group_members.h"
#include "support/test.h"

enum { GAP_US = 50, ROUNDS_OF_CHURN = 12, OTHERS_MAX = 10, STUCK_MS = 3000, TRIES_MAX = 5 };

/* Memory that the sender and the test share. */
struct traffic {
	_Atomic bool over;
	unsigned slots[MEMBERS_MAX];
	size_t count;
	uint32_t sent;
};

static struct traffic *traffic;
static pid_t sender;

static void send_for_ever(void)
{
	bool v6 = have_ipv6();

	while (!traffic->over) {
		uint32_t n = traffic->sent++;

		send_datagram(n & 1 ? second_port : port, v6 && n & 2, traffic->slots[n / 4 % traffic->count],
			      NUMBERED | n);
		usleep(GAP_US);
	}
	_exit(0);
}

/* From here on every member gets datagrams. */
static void traffic_start(void)
{
	traffic = mmap(NULL, sizeof(*traffic), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(traffic, MAP_FAILED);
	for (size_t i = 0; i < member_count; i++)
		if (!members[i].stopped)
			traffic->slots[traffic->count++] = members[i].slot;
	numbered_count = 0;
	sender = fork();
	note_forked(sender);
	if (sender == 0)
		send_for_ever();
}

/* All datagrams have arrived. */
static void traffic_stop(void)
{
	uint64_t until;
	struct report r;

	traffic->over = true;
	waitpid(sender, NULL, 0);
	until = clock_now_ms() + STUCK_MS;
	while (numbered_count < traffic->sent && clock_now_ms() < until)
		if (next_report(&r, 100))
			report_keep(&r);
	assert_int_equal(numbered_count, traffic->sent);
	munmap(traffic, sizeof(*traffic));
}

static size_t member_of(unsigned slot)
{
	size_t i = 0;

	while (i < member_count && members[i].slot != slot)
		i++;
	assert_true(i < member_count);
	return i;
}

static bool joins_at(unsigned slot)
{
	struct report r = member_start();

	return r.kind == JOINED && r.slot == slot;
}

/*
 * False: on a busy machine a datagram by which a joiner proves its place came too late, so that it searched for another
 * one (group_place.c).
 */
static bool places_get_old_while_one_sleeps(void)
{
	/* Two sleep, so that 3 binds sockets 3 .. 6 and gives them to 4. */
	if (!joins_at(0))
		return false;
	member_stop(0);
	if (!joins_at(1))
		return false;
	member_stop(1);
	if (!joins_at(3) || !joins_at(4))
		return false;
	/* The last two sockets move to the places of the dead 1, and are taken there; 3 sleeps
	 * meanwhile. */
	member_kill(1);
	member_stop(member_of(3));
	if (!joins_at(1) || !joins_at(2) || !joins_at(5))
		return false;
	member_continue(member_of(3));
	return true;
}

/*
 * A member may have outdated places for the sockets of others. Here one sleeps while sockets move
 * and others take them, and then gives the next joiner the old places.
 */
GROUP_TEST_NO_TAKING(a_member_that_slept_gives_away_nobodys_socket)
{
	for (int tries = 1; !places_get_old_while_one_sleeps(); tries++) {
		assert_in_range(tries, 1, TRIES_MAX);
		group_teardown(state);
		group_setup_no_taking(state);
	}
	traffic_start();
	assert_int_equal(member_start().kind, JOINED);
	assert_int_equal(member_start().kind, JOINED);
	traffic_stop();
	expect_all_reached();
}

/* A few live on; all others are stopped, continued and killed, and new ones come, one by one and at
 * once. */
GROUP_TEST_EACH(members_that_stay_lose_nothing)
{
	struct group_config cfg = config();
	size_t stay = 1 + prng_below(&rng, 3);

	for (size_t i = 0; i < stay + 2; i++)
		member_start();
	while (member_count > stay)
		member_kill(prng_below(&rng, member_count));
	traffic_start();
	for (int round = 0; round < ROUNDS_OF_CHURN; round++) {
		pid_t joiners[4];
		size_t count = 1 + prng_below(&rng, 4);

		for (size_t i = 0; i < count; i++)
			joiners[i] = member_fork(&cfg);
		for (size_t i = 0; i < count; i++) {
			struct report r = report_of(joiners[i], JOIN_MS);

			if (r.kind == FAILED)
				fail_msg("%s", r.why);
			members[member_count++] = (struct member){.pid = r.pid, .slot = r.slot};
		}
		for (size_t i = member_count; i-- > stay;) {
			uint64_t fate = prng_below(&rng, member_count > OTHERS_MAX ? 2 : 4);

			if (fate < 2)
				member_kill(i);
			else if (fate == 2)
				member_stop(i);
			else if (members[i].stopped)
				member_continue(i);
		}
	}
	traffic_stop();
	expect_all_reached();
}
