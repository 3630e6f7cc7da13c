/* SPDX-License-Identifier: BSD-2-Clause */
/* How connections over streams end: by a program, a peer, the network or the queue pair. */
#include "support/mpa_hand.h"
#include "support/test.h"

static struct cm_id *connected(void)
{
	struct mpa_frame f = {.enhanced = true, .crc = true};
	struct cm_event e;
	struct cm_id *id;

	listener();
	id = requested(f, &e);
	accept_it(id, 1, 1);
	expect_event(CM_ESTABLISHED, 0);
	return id;
}

#define CASE(name) TEST_WITH(name, set_up, tear_down)

CASE(the_peer_ends)
{
	connected();
	say(ACCEPTED, STREAM_FIN, NULL, 0);
	expect_event(CM_DISCONNECTED, 0);
	assert_int_equal(qp_state(qp), QPS_ERR);
	assert_int_equal(fins, 1);
	assert_int_equal(resets, 0);
}

CASE(the_stream_is_lost)
{
	connected();
	say(ACCEPTED, STREAM_RESET, NULL, ECONNRESET);
	expect_event(CM_DISCONNECTED, -ECONNRESET);
	assert_int_equal(qp_state(qp), QPS_ERR);
}

CASE(the_program_hangs_up)
{
	struct cm_event e;
	struct cm_id *id = connected();

	assert_int_equal(cm_id_disconnect(id, now_ns), 0);
	drain();
	assert_int_equal(fins, 1);
	assert_false(next_event(&e));
	say(ACCEPTED, STREAM_FIN, NULL, 0);
	expect_event(CM_DISCONNECTED, 0);
	assert_int_equal(fins, 1);
}

CASE(a_peer_that_does_not_end_is_reset)
{
	struct cm_id *id = connected();

	assert_int_equal(cm_id_disconnect(id, now_ns), 0);
	drain();
	now_ns += UINT64_C(6000000000);
	expect_event(CM_DISCONNECTED, -ETIMEDOUT);
	assert_int_equal(qp_state(qp), QPS_ERR);
	assert_int_equal(resets, 1);
}

/* Room that comes back shows that bytes leave: the patience is with a peer that takes none. */
CASE(a_slow_peer_gets_all_before_it_is_reset)
{
	struct cm_id *id = connected();
	struct cm_event e;

	assert_int_equal(cm_id_disconnect(id, now_ns), 0);
	for (int i = 0; i < 5; i++) {
		drain();
		assert_false(next_event(&e));
		now_ns += UINT64_C(4000000000);
		say(ACCEPTED, STREAM_ROOM, NULL, 1000);
	}
	drain();
	assert_int_equal(resets, 0);
	now_ns += UINT64_C(6000000000);
	expect_event(CM_DISCONNECTED, -ETIMEDOUT);
	assert_int_equal(resets, 1);
}

/* The queue pair ends by itself, or is destroyed: its stream ends, and the program is told. */
CASE(the_qp_ends)
{
	connected();
	assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_ERR}, QPA_STATE, now_ns), 0);
	expect_event(CM_DISCONNECTED, 0);
	assert_int_equal(fins, 1);
}

CASE(the_qp_goes)
{
	connected();
	nic_qp_destroy(nic, qp);
	expect_event(CM_DISCONNECTED, 0);
	assert_int_equal(fins, 1);
	say(ACCEPTED, STREAM_BYTES, (const uint8_t *)"abc", 3);
	say(ACCEPTED, STREAM_FIN, NULL, 0);
	now_ns += UINT64_C(6000000000);
	drain();
	assert_int_equal(resets, 1);
}

/* Packets of streams that nobody knows are answered with a reset, but for a reset. */
CASE(unknown_streams_are_reset)
{
	say(77, STREAM_BYTES, (const uint8_t *)"abc", 3);
	say(77, STREAM_FIN, NULL, 0);
	assert_int_equal(resets, 2);
	say(77, STREAM_RESET, NULL, 0);
	assert_int_equal(resets, 2);
}

CASE(a_listener_that_goes_is_told_to_the_back_end)
{
	cm_id_destroy(listener(), now_ns);
	drain();
	assert_int_equal(resets, 1);
}

CASE(ten_thousand_connections_leave_nothing)
{
	struct mpa_frame f = {.enhanced = true, .crc = true};
	int64_t blocks = 0;

	listener();
	for (int i = 0; i < 10000; i++) {
		struct cm_event e;
		struct cm_id *id = requested(f, &e);

		accept_it(id, 1, 1);
		expect_event(CM_ESTABLISHED, 0);
		if (i % 2) {
			assert_int_equal(cm_id_disconnect(id, now_ns), 0);
			drain();
		}
		say(ACCEPTED, STREAM_FIN, NULL, 0);
		expect_event(CM_DISCONNECTED, 0);
		cm_id_destroy(id, now_ns);
		assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_RESET}, QPA_STATE, now_ns), 0);
		assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_INIT, .port = 1},
					       QPA_STATE | QPA_PORT, now_ns),
				 0);
		pass_ms(6000);
		sent_len = 0;
		if (i == 10)
			blocks = heap.blocks;
	}
	assert_int_equal(heap.blocks, blocks);
}
