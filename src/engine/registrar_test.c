/* SPDX-License-Identifier: BSD-2-Clause */
/* The registrar of a host: rules 7.5 and 7.6 of docs/rdmacm.md, with the processes of tests/support/processes.h. */
#include "support/processes.h"
#include "support/test.h"

static int registrar(void)
{
	struct process *p = with_slot((unsigned)cm_registrar(processes[C].loop.cm));

	return p ? (int)(p - processes) : -1;
}

static void all_join(void)
{
	join(A);
	join(B);
	join(C);
	run_ms(1);
}

#define CASE(name) TEST_WITH(name, processes_start, processes_end)

CASE(the_first_that_takes_part_is_it)
{
	assert_int_equal(registrar(), -1);
	join(B);
	assert_int_equal(registrar(), B);
	assert_int_equal(requests_slot, processes[B].group.slot);
	all_join();
	assert_int_equal(registrar(), B);
	assert_int_equal(processes[A].group.watched, processes[B].group.slot);
	assert_int_equal(processes[C].group.watched, processes[B].group.slot);
	assert_false(group_is_watching(&processes[B].group));
}

CASE(another_takes_its_place_at_once)
{
	all_join();
	process_kill(A);
	run_ms(1);
	assert_int_equal(registrar(), B);
	assert_int_equal(requests_slot, processes[B].group.slot);
	run_ms(1);
	assert_int_equal(processes[C].group.watched, processes[B].group.slot);
	process_kill(B);
	run_ms(1);
	assert_int_equal(registrar(), C);
	assert_int_equal(requests_slot, processes[C].group.slot);
	/* Who takes no part is not asked. */
	assert_false(processes[CLIENT].loop.registrar.takes_part);
}

/* Between two that see its end at once the registry decides. */
CASE(one_of_several_takes_its_place)
{
	all_join();
	process_kill(A);
	for (int i = B; i <= C; i++) {
		registrar_serve(&processes[i].loop, now_ns);
		assert_int_equal(registrar(), B);
		assert_int_equal(requests_slot, processes[B].group.slot);
	}
}

CASE(one_that_ends_before_it_is_watched_is_replaced)
{
	join(A);
	processes[A].killed = true; /* nobody is connected with it yet */
	join(B);
	assert_int_equal(registrar(), B);
	assert_int_equal(requests_slot, processes[B].group.slot);
}

CASE(a_stopped_one_is_replaced_where_somebody_listens)
{
	all_join();
	processes[A].stopped = true;
	run_ms(3000);
	assert_int_equal(registrar(), A);
	listen_on(C, PORT);
	run_ms(1001);
	assert_int_equal(registrar(), C);
	assert_int_equal(requests_slot, processes[C].group.slot);
	/* It goes on, and sees that it is not the one any more. */
	processes[A].stopped = false;
	run_ms(2);
	assert_int_equal(processes[A].group.watched, processes[C].group.slot);
	process_kill(C);
	run_ms(2);
	assert_int_not_equal(registrar(), C);
}

/* The request is in the dead one's socket; its repeat is taken in. */
CASE(its_death_costs_a_request_one_repeat)
{
	all_join();
	listen_on(B, PORT);
	ask(PORT);
	loop_turn(&processes[CLIENT].loop, LOOP_ALL, now_ns);
	assert_int_equal(processes[A].socket.tail - processes[A].socket.head, 1);
	process_kill(A);
	run_ms(200);
	assert_int_equal(events_of(B), 0);
	run_ms(100);
	take(B, CM_CONNECT_REQUEST);
	assert_int_equal(sent[CLIENT][CM_REQ], 2);
}

/* Each process dies between two messages of a connection that it has no part in. */
CASE(a_connection_of_others_is_not_disturbed)
{
	all_join();
	listen_on(C, PORT);
	connect_with(C, PORT);
	process_kill(A);
	run_ms(100);
	process_kill(B);
	run_ms(3000);
	assert_int_equal(events_of(CLIENT), 0);
	assert_int_equal(events_of(C), 0);
	assert_int_equal(sent[CLIENT][CM_DREQ], 0);
}

static void expect_the_peer_is_told_by(int heir)
{
	run_ms(50);
	take(CLIENT, CM_DISCONNECTED);
	assert_int_not_equal(sent[heir][CM_DREQ], 0);
}

CASE(the_peer_of_one_that_is_killed_is_told)
{
	all_join();
	listen_on(C, PORT);
	connect_with(C, PORT);
	process_kill(C);
	expect_the_peer_is_told_by(A);
	run_ms(10000);
	assert_in_range(sent[A][CM_DREQ], 1, 3);
	assert_int_equal(sent[B][CM_DREQ], 0);
}

CASE(the_peer_of_a_killed_registrar_is_told)
{
	all_join();
	listen_on(A, PORT);
	connect_with(A, PORT);
	process_kill(A);
	expect_the_peer_is_told_by(B);
	assert_int_equal(sent[C][CM_DREQ], 0);
}

/* Its descriptors are closed one by one: it has hung up, and its name is still there. */
CASE(one_that_is_not_quite_dead_is_looked_at_again)
{
	all_join();
	listen_on(C, PORT);
	connect_with(C, PORT);
	processes[C].lingers = true;
	process_kill(C);
	run_ms(10);
	assert_int_equal(sent[A][CM_DREQ], 0);
	processes[C].lingers = false;
	expect_the_peer_is_told_by(A);
}

CASE(on_a_busy_machine_it_is_looked_at_once_more)
{
	all_join();
	listen_on(C, PORT);
	connect_with(C, PORT);
	processes[C].lingers = true;
	process_kill(C);
	run_ms(500);
	assert_int_equal(sent[A][CM_DREQ], 0);
	processes[C].lingers = false;
	run_ms(600);
	take(CLIENT, CM_DISCONNECTED);
	assert_int_not_equal(sent[A][CM_DREQ], 0);
	assert_int_equal(registrar_deadline_ns(&processes[A].loop), UINT64_MAX);
}

CASE(who_has_nothing_to_look_at_is_not_woken)
{
	all_join();
	assert_int_equal(registrar_deadline_ns(&processes[B].loop), UINT64_MAX);
	listen_on(B, PORT);
	assert_in_range(registrar_deadline_ns(&processes[B].loop), now_ns, now_ns + 1000000000);
}
