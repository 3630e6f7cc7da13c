/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages with codes over their tails; ctest runs it on a network that loses, doubles and reorders. Every message is
 * compared byte by byte. */
/* 512 packets, so that groups may be wide. */
#define ENDS_MESSAGE_LOG 17
#include "layers.h"
#include "support/test.h"

/* Long tails and short ones, loss that is told too low and too high, and more data behind the message. */
CASE(every_message_arrives)
{
	for (uint32_t n = 0; n < 24; n++) {
		struct verbena_sdr_tail_attr attr;

		verbena_sdr_tail_attr_init(&attr);
		attr.rate_mbps = n % 4 ? 1 << n % 12 : 0;
		attr.loss = n % 3 ? 0 : 0.001 * (n % 11);
		attr.behind = n % 5 ? 0 : UINT64_C(1) << (n + 10);
		layer_exchange(LAYER_TAIL, *state, &attr, 1 + n * 3971 % MESSAGE, n);
	}
}

static uint64_t sent_of(const struct verbena_sdr_qp *qp)
{
	struct verbena_sdr_stats s;

	assert_int_equal(verbena_sdr_qp_stats_get(qp, &s), VERBENA_SDR_SUCCESS);
	return s.sent;
}

/* What follows the message takes 8 ms at 1000 Mbit/s, and a second at the limit: in the second, longer than a round
 * trip, every loss can be repaired, so there are no parities. */
TEST(the_limit_of_the_rate_is_reckoned_with)
{
	struct verbena_sdr_qp_attr attr = ends_attr(2);
	struct verbena_sdr_tail_attr tail;
	uint64_t told, before, beside = 1;
	struct ends e;

	attr.rate_limit_mbps = 8;
	ends_make(&e, attr, VERBENA_SDR_NO_WORKERS);
	verbena_sdr_tail_attr_init(&tail);
	tail.loss = 0.3;
	tail.behind = 1 << 20;
	tail.rate_mbps = 1000;
	layer_exchange(LAYER_TAIL, &e, &tail, MESSAGE, 1);
	told = sent_of(e.from);
	tail.rate_mbps = 0;
	/* On a busy machine packets are repeated, and round trips seem long: one message of several shows it. */
	for (uint32_t seed = 2; seed < 12 && beside; seed++) {
		before = sent_of(e.from);
		layer_exchange(LAYER_TAIL, &e, &tail, MESSAGE, seed);
		beside = sent_of(e.from) - before - MESSAGE / MTU;
	}
	/* Where nothing is lost, all that goes beside the packets is parities. */
	if (!getenv("VERBENA_IMPAIR")) {
		assert_true(told > MESSAGE / MTU);
		assert_int_equal(beside, 0);
	}
	ends_destroy(&e);
}

static uint64_t fills_of(const struct verbena_sdr_qp *qp)
{
	struct verbena_sdr_stats s;

	assert_int_equal(verbena_sdr_qp_stats_get(qp, &s), VERBENA_SDR_SUCCESS);
	return s.fills;
}

/* Loss that is told too low. Both with workers and without, parities of messages that are over come late, and nothing
 * of a message is wrong. */
TEST(parities_go_on_where_idle_fill_is_wanted)
{
	for (int workers = 0; workers <= 2; workers += 2) {
		struct verbena_sdr_qp_attr qa = ends_attr(2);
		struct verbena_sdr_tail_attr attr;
		uint64_t filled = 0;
		struct ends e;

		qa.idle_fill = true;
		ends_make(&e, qa, workers ? 2 : VERBENA_SDR_NO_WORKERS);
		for (uint32_t n = 0; n < 8; n++) {
			verbena_sdr_tail_attr_init(&attr);
			attr.loss = 0.001;
			attr.rate_mbps = 100;
			layer_exchange(LAYER_TAIL, &e, &attr, MESSAGE - n % 3, n);
			/* 25 ms at 100 Mbit/s, in packets of 256 bytes. */
			assert_in_range(fills_of(e.from) - filled, 0, 25000 / 20);
			filled = fills_of(e.from);
		}
		assert_true(filled > 0);
		assert_int_equal(fills_of(e.to), 0);
		ends_destroy(&e);
	}
}

/* Before the receive is completed none of them is late: each comes by the queue pair of its message's generation. */
TEST(parities_that_fill_are_taken)
{
	struct verbena_sdr_qp_attr qa = ends_attr(2);
	struct verbena_sdr_stats stats;
	uint64_t filled = 0;

	qa.idle_fill = true;
	for (int tries = 0; tries < 20 && !filled; tries++) {
		struct verbena_sdr_recv recv;
		struct verbena_sdr_send send;
		struct verbena_sdr_block b;
		struct ends e;

		ends_make(&e, qa, VERBENA_SDR_NO_WORKERS);
		b = block(&e, 0, MESSAGE);
		fill(&e, 0);
		AWAIT(&e, tail_post(&e, 0, MESSAGE, NULL, &recv) == VERBENA_SDR_SUCCESS);
		AWAIT(&e, verbena_sdr_tail_send(e.from, &b, NULL, &send) == VERBENA_SDR_SUCCESS);
		AWAIT(&e, layer_done(LAYER_TAIL, &send));
		settle(&e);
		filled = fills_of(e.from);
		assert_int_equal(verbena_sdr_qp_stats_get(e.to, &stats), VERBENA_SDR_SUCCESS);
		assert_int_equal(stats.dropped_late, 0);
		assert_true(layer_whole(LAYER_TAIL, &recv));
		assert_memory_equal(e.sink, e.source, MESSAGE);
		assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
		ends_destroy(&e);
	}
	assert_true(filled > 0);
}

/* Another queue pair of the context has a message that takes a third of a second: nothing fills before that has gone.
 */
TEST(idle_fill_waits_for_other_queue_pairs)
{
	struct verbena_sdr_qp_attr qa = ends_attr(2), slow_attr = ends_attr(2);
	struct verbena_sdr_tail_attr attr;
	struct verbena_sdr_qp *slow, *slow_to;
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	bool done = false;
	struct ends e;

	qa.idle_fill = true;
	slow_attr.rate_limit_mbps = 3;
	ends_make(&e, qa, VERBENA_SDR_NO_WORKERS);
	slow = verbena_sdr_qp_create(e.ctx, &slow_attr);
	slow_to = verbena_sdr_qp_create(e.ctx, &slow_attr);
	ends_connect(slow, slow_to);
	ends_connect(slow_to, slow);
	AWAIT(&e, verbena_sdr_recv_post(slow_to,
					&(struct verbena_sdr_recv_attr){.address = e.sink + (size_t)5 * MESSAGE,
									.max_length = MESSAGE,
									.lkey = e.sink_key},
					&recv) == VERBENA_SDR_SUCCESS);
	AWAIT(&e, verbena_sdr_send_post(slow, &(struct verbena_sdr_block){e.source, MESSAGE, e.source_key, 0}, NULL,
					&send) == VERBENA_SDR_SUCCESS);
	verbena_sdr_tail_attr_init(&attr);
	attr.loss = 0.001;
	for (uint32_t n = 0; !done; n++) {
		uint64_t filled;

		layer_exchange(LAYER_TAIL, &e, &attr, MESSAGE / 16, n % 4);
		filled = fills_of(e.from);
		done = send_done(&send);
		assert_true(done || !filled);
		assert_true(n > 0 || !done);
	}
	for (uint32_t n = 0; n < 10; n++)
		layer_exchange(LAYER_TAIL, &e, &attr, MESSAGE, n);
	assert_true(fills_of(e.from) > 0);
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_qp_destroy(slow), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_qp_destroy(slow_to), VERBENA_SDR_SUCCESS);
	ends_destroy(&e);
}

/* Not where it was not asked for, and not where the ends do not agree or the transport repeats. */
CASE(idle_fill_is_an_option_of_both_ends)
{
	struct ends *e = *state;
	struct verbena_sdr_qp_attr attr = ends_attr(2);
	struct verbena_sdr_qp *qp;
	uint8_t info[16384];
	size_t size;

	layer_exchange(LAYER_TAIL, e, NULL, MESSAGE, 1);
	assert_int_equal(fills_of(e->from), 0);
	attr.idle_fill = true;
	qp = verbena_sdr_qp_create(e->ctx, &attr);
	assert_non_null(qp);
	assert_int_equal(verbena_sdr_qp_info_size_get(e->to, &size), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_qp_info_get(e->to, info, size), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_qp_connect(qp, info, size), VERBENA_SDR_ERROR);
	assert_int_equal(errno, EPROTO);
	assert_int_equal(verbena_sdr_qp_destroy(qp), VERBENA_SDR_SUCCESS);
	attr.transport = VERBENA_SDR_RC;
	assert_null(verbena_sdr_qp_create(e->ctx, &attr));
	assert_int_equal(errno, EINVAL);
}

CASE(wrong_calls_change_nothing)
{
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, MESSAGE);
	struct verbena_sdr_tail_attr attr;
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	double loss;
	bool done;

	AWAIT(e, tail_post(e, 0, MESSAGE, NULL, &recv) == VERBENA_SDR_SUCCESS);
	for (int i = 0; i < 5; i++) {
		verbena_sdr_tail_attr_init(&attr);
		attr.rtt_ns = i == 0 ? 0 : i == 1 ? UINT64_MAX : attr.rtt_ns;
		attr.timeout_ns = i == 2 ? UINT64_MAX : 0;
		attr.loss = i == 3 ? 0.6 : i == 4 ? -1 : 0;
		AWAIT(e, verbena_sdr_tail_send(e->from, &b, &attr, &send) != VERBENA_SDR_RETRY);
		assert_int_equal(errno, EINVAL);
	}
	assert_int_equal(verbena_sdr_tail_send(e->to, &b, NULL, &send), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_tail_send(NULL, &b, NULL, &send), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_tail_poll(NULL, &done), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_tail_recv_poll(NULL, &done), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_tail_loss_get(NULL, &loss), VERBENA_SDR_ERROR);
	/* It is one receive of one layer, and ends as such. */
	assert_int_equal(verbena_sdr_sr_recv(&recv, NULL), VERBENA_SDR_ERROR);
	recv.number++;
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_ERROR);
	recv.number--;
	b.length--;
	assert_int_equal(verbena_sdr_tail_send(e->from, &b, NULL, &send), VERBENA_SDR_ERROR);
	b.length++;
	assert_int_equal(verbena_sdr_tail_send(e->from, &b, NULL, &send), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_send_stream_end(&send), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_send_poll(&send, &done), VERBENA_SDR_ERROR);
	AWAIT(e, layer_whole(LAYER_TAIL, &recv));
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	AWAIT(e, layer_done(LAYER_TAIL, &send));
	assert_int_equal(verbena_sdr_tail_loss_get(e->from, &loss), VERBENA_SDR_SUCCESS);
	assert_true(loss > 0 && loss <= 0.5);
}
