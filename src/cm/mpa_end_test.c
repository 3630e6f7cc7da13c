/* SPDX-License-Identifier: BSD-2-Clause */
/* How connections over streams end: by a program, a peer, the network or the queue pair. */
#include "support/mpa_hand.h"

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

static void the_peer_ends(void **state)
{
	connected();
	say(ACCEPTED, PKT_FIN, NULL, 0);
	expect_event(CM_DISCONNECTED, 0);
	assert_int_equal(qp_state(qp), QPS_ERR);
	assert_int_equal(fins, 1);
	assert_int_equal(resets, 0);
}

static void the_stream_is_lost(void **state)
{
	connected();
	say(ACCEPTED, PKT_RESET, NULL, ECONNRESET);
	expect_event(CM_DISCONNECTED, -ECONNRESET);
	assert_int_equal(qp_state(qp), QPS_ERR);
}

static void the_program_hangs_up(void **state)
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

static void a_peer_that_does_not_end_is_reset(void **state)
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
static void a_slow_peer_gets_all_before_it_is_reset(void **state)
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
static void the_qp_ends(void **state)
{
	connected();
	assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_ERR}, QPA_STATE, now_ns), 0);
	expect_event(CM_DISCONNECTED, 0);
	assert_int_equal(fins, 1);
}

static void the_qp_goes(void **state)
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
static void unknown_streams_are_reset(void **state)
{
	say(77, PKT_BYTES, (const uint8_t *)"abc", 3);
	say(77, PKT_FIN, NULL, 0);
	assert_int_equal(resets, 2);
	say(77, PKT_RESET, NULL, 0);
	assert_int_equal(resets, 2);
}

static void a_listener_that_goes_is_told_to_the_back_end(void **state)
{
	cm_id_destroy(listener(), now_ns);
	drain();
	assert_int_equal(resets, 1);
}

static void ten_thousand_connections_leave_nothing(void **state)
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

/* The back end answers the reset when it has given the memory back; not before is the request flushed. */
static void a_peer_that_does_not_take_what_is_lent_is_reset(void **state)
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

static void a_back_end_that_does_not_answer_is_not_waited_for(void **state)
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

static void what_comes_back_shows_that_bytes_leave(void **state)
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
static void lent_memory_is_called_back(void **state)
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

int main(void)
{
#define LENDS(f) cmocka_unit_test_setup_teardown(f, set_up_lending, tear_down)
#define TEST(f)  cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_peer_ends),
		TEST(the_stream_is_lost),
		TEST(the_program_hangs_up),
		TEST(a_peer_that_does_not_end_is_reset),
		TEST(a_slow_peer_gets_all_before_it_is_reset),
		TEST(the_qp_ends),
		TEST(the_qp_goes),
		TEST(unknown_streams_are_reset),
		TEST(a_listener_that_goes_is_told_to_the_back_end),
		TEST(ten_thousand_connections_leave_nothing),
		LENDS(a_peer_that_does_not_take_what_is_lent_is_reset),
		LENDS(a_back_end_that_does_not_answer_is_not_waited_for),
		LENDS(what_comes_back_shows_that_bytes_leave),
		LENDS(lent_memory_is_called_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
