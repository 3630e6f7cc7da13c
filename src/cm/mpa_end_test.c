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
	say(ACCEPTED, PKT_FIN, NULL, 0);
	expect_event(CM_DISCONNECTED, 0);
	assert_int_equal(qp_state(qp), QPS_ERR);
	assert_int_equal(fins, 1);
	assert_int_equal(resets, 0);
}

CASE(the_stream_is_lost)
{
	connected();
	say(ACCEPTED, PKT_RESET, NULL, ECONNRESET);
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
	say(ACCEPTED, PKT_FIN, NULL, 0);
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
		say(ACCEPTED, PKT_ROOM, NULL, 1000);
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
	say(ACCEPTED, PKT_BYTES, (const uint8_t *)"abc", 3);
	say(ACCEPTED, PKT_FIN, NULL, 0);
	now_ns += UINT64_C(6000000000);
	drain();
	assert_int_equal(resets, 1);
}

/* Packets of streams that nobody knows are answered with a reset, but for a reset. */
CASE(unknown_streams_are_reset)
{
	say(77, PKT_BYTES, (const uint8_t *)"abc", 3);
	say(77, PKT_FIN, NULL, 0);
	assert_int_equal(resets, 2);
	say(77, PKT_RESET, NULL, 0);
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
		say(ACCEPTED, PKT_FIN, NULL, 0);
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

/* ---- memory that is lent -------------------------------------------------------------------------- */

static uint8_t memory[30000];

/* A connection whose QP has lent the memory for a WRITE; its region's key. */
static uint32_t connected_and_lending(struct cm_id **id)
{
	struct send_wqe *w;
	struct mr *mr;

	*id = connected();
	/* The peer's first FPDU, a zero-length Write: this end may speak. */
	say(ACCEPTED, PKT_BYTES, (const uint8_t[20]){0x00, 0x0e, 0xc1, 0x40, 0, 0, 0, 1, [16] = 0xeb, 0xd3, 0x4c, 0x5f},
	    20);
	assert_int_equal(nic_mr_reg(nic, pd, (struct mr_range){memory, sizeof(memory), 0}, 0, &mr), 0);
	w = sq_slot(qp_sq(qp), 0);
	w->opcode = WR_WRITE;
	w->flags = WR_SIGNALED;
	w->length = sizeof(memory);
	w->num_sge = 1;
	w->sge[0] = (struct wqe_sge){0, sizeof(memory), mr->key};
	sq_post(qp_sq(qp), 1);
	nic_doorbell(nic, qp);
	drain();
	assert_int_equal(lent, 1);
	assert_null(cq_peek(cq, 0));
	return mr->key;
}

static void is_complete(enum wc_status status)
{
	const struct cqe *e = cq_peek(cq, 0);

	assert_non_null(e);
	assert_int_equal(e->status, status);
	assert_null(cq_peek(cq, 1));
}

#define LENDS(name) TEST_WITH(name, set_up_lending, tear_down)

/* The back end answers the reset when it has given the memory back; not before is the request flushed. */
LENDS(a_peer_that_does_not_take_what_is_lent_is_reset)
{
	struct cm_id *id;

	connected_and_lending(&id);
	assert_int_equal(cm_id_disconnect(id, now_ns), 0);
	pass_ms(6000);
	expect_event(CM_DISCONNECTED, -ETIMEDOUT);
	assert_int_equal(fins, 0);
	assert_int_equal(resets, 1);
	assert_null(cq_peek(cq, 0));
	pass_ms(1000);
	say(ACCEPTED, PKT_RESET, NULL, ECONNRESET);
	is_complete(WC_WR_FLUSH_ERR);
	assert_int_equal(resets, 1);
	say(ACCEPTED, PKT_BYTES, (const uint8_t *)"abc", 3); /* nobody knows it any more */
	assert_int_equal(resets, 2);
}

LENDS(a_back_end_that_does_not_answer_is_not_waited_for)
{
	struct cm_id *id;

	connected_and_lending(&id);
	assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_ERR}, QPA_STATE, now_ns), 0);
	expect_event(CM_DISCONNECTED, 0);
	assert_int_equal(fins, 1);
	pass_ms(6000);
	assert_int_equal(resets, 1);
	assert_null(cq_peek(cq, 0));
	pass_ms(6000);
	is_complete(WC_WR_FLUSH_ERR);
	assert_int_equal(resets, 2);
}

LENDS(what_comes_back_shows_that_bytes_leave)
{
	struct cm_id *id;

	connected_and_lending(&id);
	assert_int_equal(cm_id_disconnect(id, now_ns), 0);
	pass_ms(4000);
	say(ACCEPTED, PKT_BACK, NULL, 1);
	is_complete(WC_SUCCESS);
	assert_int_equal(fins, 1);
	pass_ms(4000);
	assert_int_equal(resets, 0);
}

/* A region closes: connections that lend its memory end, and no other. */
LENDS(lent_memory_is_called_back)
{
	struct stream_lent which = {.before = 1};
	struct cm_id *id;
	struct cm_event e;

	which.key = connected_and_lending(&id) ^ 1;
	cm_recall(cm, &which, now_ns);
	drain();
	assert_int_equal(resets, 0);
	which.key ^= 1;
	cm_recall(cm, &which, now_ns);
	cm_recall(cm, &which, now_ns);
	expect_event(CM_DISCONNECTED, -ETIMEDOUT);
	assert_int_equal(resets, 1);
	assert_true(nic_streams_lend(nic, &which));
	say(ACCEPTED, PKT_RESET, NULL, 0);
	assert_false(nic_streams_lend(nic, &which));
	is_complete(WC_WR_FLUSH_ERR);
	assert_false(next_event(&e));
	assert_int_equal(resets, 1);
}
