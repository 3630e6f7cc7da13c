/* SPDX-License-Identifier: BSD-2-Clause */
/* Which process of a host gets a message: rules 7.1 and 7.4 of docs/rdmacm.md, with the processes of
 * tests/support/processes.h. */
#include "support/processes.h"
#include "support/test.h"
#include "wire/icrc.h"

enum { KEPT_MAX = 256, KEPT_MAX_OF_ONE = 64, KEPT_MS = 100 };

static int start(void **state)
{
	processes_start(state);
	join(A);
	join(B);
	join(C);
	run_ms(1);
	return 0;
}

#define CASE(name) TEST_WITH(name, start, processes_end)

CASE(a_request_goes_to_the_process_that_listens)
{
	listen_on(C, PORT);
	listen_on(A, PORT + 1);
	ask(PORT);
	ask(PORT + 1);
	run_ms(2);
	take(C, CM_CONNECT_REQUEST);
	take(A, CM_CONNECT_REQUEST);
	assert_int_equal(events_of(B), 0);
	assert_int_equal(sent[CLIENT][CM_REQ], 2);
}

/* The kernel steers by indices that may be a moment old. */
CASE(a_message_goes_to_who_has_the_communication_id)
{
	struct cm_id *server;

	listen_on(C, PORT);
	misled_to = B;
	server = connect_with(C, PORT);
	assert_int_equal(cm_id_disconnect(server, now_ns), 0);
	run_ms(3);
	take(CLIENT, CM_DISCONNECTED);
	assert_int_equal(events_of(A) + events_of(B), 0);
}

/* By what the registry remembers: the listener has gone to another process meanwhile. */
CASE(a_repeat_goes_to_who_took_the_first_one_in)
{
	struct cm_id *listener = listen_on(B, PORT);

	ask(PORT);
	run_ms(2);
	take(B, CM_CONNECT_REQUEST);
	cm_id_destroy(listener, now_ns);
	listen_on(C, PORT);
	run_ms(300);
	assert_int_equal(sent[CLIENT][CM_REQ], 2);
	assert_int_equal(events_of(C), 0);
	assert_int_equal(sent[B][CM_MRA], 1);
}

CASE(a_request_waits_a_moment_for_its_listener)
{
	ask(PORT);
	run_ms(KEPT_MS / 2);
	listen_on(C, PORT);
	run_ms(15);
	take(C, CM_CONNECT_REQUEST);
	assert_int_equal(sent[CLIENT][CM_REQ], 1);
}

/* Its own listener is seen at once, and not at the next look. */
CASE(the_registrars_own_listener_gets_it_at_once)
{
	ask(PORT);
	run_ms(5);
	listen_on(A, PORT);
	run_ms(1);
	take(A, CM_CONNECT_REQUEST);
}

CASE(nobody_who_listens_is_a_refusal_in_the_end)
{
	ask(PORT);
	run_ms(KEPT_MS - 2);
	assert_int_equal(sent[A][CM_REJ], 0);
	run_ms(20);
	assert_int_equal(sent[A][CM_REJ], 1);
	run_ms(1000);
	assert_int_equal(take(CLIENT, CM_REJECTED).status, CM_REJ_SERVICE_ID);
	assert_int_equal(requests_deadline_ns(&processes[A].loop), UINT64_MAX);
}

CASE(the_listener_of_a_process_that_was_killed_is_none)
{
	listen_on(B, PORT);
	process_kill(B);
	ask(PORT);
	run_ms(5);
	listen_on(C, PORT);
	run_ms(15);
	take(C, CM_CONNECT_REQUEST);
}

/* ---- requests that nobody sent ------------------------------------------------------------------------- */

/* The client's next request as a packet, which is taken off the wire, with another source and communication id. */
static struct letter request_of(uint16_t port, unsigned number, uint8_t source)
{
	static struct letter l;
	static bool have;

	if (!have) {
		uint8_t *msg = l.bytes + MAD_AT + MAD_HEADER_LEN;

		misled_to = C;
		ask(port);
		loop_turn(&processes[CLIENT].loop, LOOP_ALL, now_ns);
		l = processes[C].socket.letters[processes[C].socket.head++ % BOX];
		misled_to = 0;
		have = true;
		assert_int_equal(get_be16(l.bytes + MAD_AT + 16), CM_REQ);
		memset(msg + 16, 7, 8);
	}
	put_be32(l.bytes + MAD_AT + MAD_HEADER_LEN, 1000 + number);
	put_be24(l.bytes + MAD_AT + MAD_HEADER_LEN + 32, 1000 + number);
	l.flow.src[15] = source;
	l.bytes[MAD_AT + MAD_HEADER_LEN + 56 + 15] = source;  /* its GID */
	l.bytes[MAD_AT + MAD_HEADER_LEN + 140 + 19] = source; /* and its address in the private data */
	return l;
}

static void give(int which, struct letter *l, unsigned hops)
{
	struct pkt p = {.data = l->bytes, .flow = &l->flow, .len = l->len, .train = 1};

	icrc_seal(NULL, &p, 0);
	requests_take(&processes[which].loop, &p, hops, now_ns);
}

CASE(what_is_kept_is_bounded_for_each_address_and_in_all)
{
	for (unsigned i = 0; i < 2 * KEPT_MAX_OF_ONE; i++) {
		struct letter l = request_of(PORT, i, 77);

		give(A, &l, 0);
	}
	listen_on(B, PORT);
	run_ms(15);
	assert_int_equal(events_of(B), KEPT_MAX_OF_ONE);
	for (unsigned i = 0; i < 2 * KEPT_MAX; i++) {
		struct letter l = request_of(PORT, 1000 + i, (uint8_t)(80 + i % 16));

		put_be64(l.bytes + MAD_AT + MAD_HEADER_LEN + 8, (uint64_t)CM_SPACE_TCP << 16 | (PORT + 1));
		give(A, &l, 0);
	}
	listen_on(C, PORT + 1);
	run_ms(15);
	assert_int_equal(events_of(C), KEPT_MAX);
}

/* It was killed, and nobody has noticed yet. */
CASE(the_repeat_for_a_dead_one_goes_to_who_listens_now)
{
	struct letter l = request_of(PORT, 3, 92);

	listen_on(B, PORT);
	give(B, &l, 0);
	run_ms(1);
	take(B, CM_CONNECT_REQUEST);
	processes[B].killed = true;
	give(A, &l, 0);
	run_ms(1);
	listen_on(C, PORT);
	run_ms(15);
	take(C, CM_CONNECT_REQUEST);
}

/* The registry may be wrong: here each of two processes believes that the other one listens. */
CASE(no_message_circulates)
{
	struct letter l = request_of(PORT, 1, 90);

	listen_on(C, PORT);
	give(A, &l, 2);
	assert_int_equal(processes[C].group.forwarded.tail, processes[C].group.forwarded.head);
	give(A, &l, 1);
	assert_int_equal(processes[C].group.forwarded.tail, processes[C].group.forwarded.head + 1);
}

CASE(a_message_that_is_too_short_is_nothing)
{
	struct letter l = request_of(PORT, 2, 91);

	listen_on(C, PORT);
	for (l.len = MAD_AT + MAD_LEN; l.len-- > 52;)
		give(A, &l, 0);
	assert_int_equal(processes[C].group.forwarded.tail, processes[C].group.forwarded.head);
	run_ms(200);
	assert_int_equal(events_of(C), 0);
	assert_int_equal(requests_deadline_ns(&processes[A].loop), UINT64_MAX);
}
