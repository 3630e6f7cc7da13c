/* SPDX-License-Identifier: BSD-2-Clause */
/* What every call does with arguments and at times that make no sense: an error that says why, and
 * nothing changed. */
#include "ends.h"
#include "support/test.h"

/* The call fails, and with this errno. */
#define FAILS(call, why)                                   \
	do {                                               \
		errno = 0;                                 \
		assert_int_equal(call, VERBENA_SDR_ERROR); \
		assert_int_equal(errno, why);              \
	} while (0)

#define CASE(name) TEST_WITH(name, ends_setup, ends_teardown)

CASE(nothing_where_something_is_needed_is_refused)
{
	struct ends *e = *state;
	struct verbena_sdr_recv no_recv = {0};
	struct verbena_sdr_send no_send = {0}, send;
	struct verbena_sdr_block b = block(e, 0, CHUNK);
	struct verbena_sdr_recv recv;
	const uint8_t *bitmap;
	uint64_t mask;
	size_t size;
	bool done;

	FAILS(verbena_sdr_context_destroy(NULL), EINVAL);
	FAILS(verbena_sdr_qp_destroy(NULL), EINVAL);
	FAILS(verbena_sdr_mr_dereg(NULL), EINVAL);
	FAILS(verbena_sdr_mr_lkey_get(e->sink_mr, NULL), EINVAL);
	FAILS(verbena_sdr_mr_rkey_get(NULL, NULL), EINVAL);
	FAILS(verbena_sdr_qp_info_size_get(NULL, &size), EINVAL);
	FAILS(verbena_sdr_qp_info_size_get(e->to, NULL), EINVAL);
	FAILS(verbena_sdr_qp_info_get(e->to, NULL, 4096), EINVAL);
	FAILS(verbena_sdr_qp_connect(e->to, NULL, 0), EINVAL);
	FAILS(verbena_sdr_recv_post(NULL, NULL, NULL), EINVAL);
	FAILS(verbena_sdr_recv_post(e->to, NULL, &recv), EINVAL);
	FAILS(verbena_sdr_recv_bitmap_get(NULL, &bitmap, &size), EINVAL);
	FAILS(verbena_sdr_recv_bitmap_get(&no_recv, &bitmap, &size), EINVAL);
	FAILS(verbena_sdr_recv_imm_get(&no_recv, NULL), EINVAL);
	FAILS(verbena_sdr_recv_bitmap_chunk_expand(&no_recv, 0, &mask), EINVAL);
	FAILS(verbena_sdr_recv_complete(&no_recv), EINVAL);
	FAILS(verbena_sdr_send_post(NULL, &b, NULL, &send), EINVAL);
	FAILS(verbena_sdr_send_post(e->from, &b, NULL, NULL), EINVAL);
	FAILS(verbena_sdr_send_post(e->from, NULL, NULL, &send), EINVAL);
	FAILS(verbena_sdr_send_stream_continue(&no_send, &b), EINVAL);
	FAILS(verbena_sdr_send_stream_repeat(&no_send, &b), EINVAL);
	FAILS(verbena_sdr_send_stream_end(NULL), EINVAL);
	FAILS(verbena_sdr_send_cancel(NULL), EINVAL);
	FAILS(verbena_sdr_send_queued_get(&no_send, NULL), EINVAL);
	FAILS(verbena_sdr_send_poll(&no_send, &done), EINVAL);
	FAILS(verbena_sdr_qp_stats_get(NULL, NULL), EINVAL);
	assert_int_equal(verbena_sdr_progress(NULL), 0);
}

CASE(contexts_are_of_devices_that_there_are)
{
	struct verbena_sdr_context_attr attr;

	errno = 0;
	assert_null(verbena_sdr_context_create("no_such_device", NULL));
	assert_int_equal(errno, ENODEV);
	for (int row = 0; row < 7; row++) {
		verbena_sdr_context_attr_init(&attr);
		uint32_t *const member[] = {&attr.num_channels, &attr.num_channels, &attr.log_max_qps,
					    &attr.num_workers,  &attr.num_workers,  &attr.port,
					    &attr.gid_index};
		const uint32_t bad[] = {0, 129, 17, 0, 9, 0, 256};

		*member[row] = bad[row];
		errno = 0;
		assert_null(verbena_sdr_context_create(NULL, &attr));
		assert_int_equal(errno, EINVAL);
	}
}

CASE(contexts_stay_while_they_are_used)
{
	struct ends *e = *state;

	FAILS(verbena_sdr_context_destroy(e->ctx), EBUSY);
}

CASE(queue_pairs_are_within_their_limits)
{
	struct ends *e = *state;
	struct verbena_sdr_qp_attr attr;
	uint32_t *const member[] = {&attr.mtu,
				    &attr.mtu,
				    &attr.mtu,
				    &attr.bitmap_chunk_size_log_bytes,
				    &attr.bitmap_chunk_size_log_bytes,
				    &attr.bitmap_chunk_size_log_bytes,
				    &attr.max_log_num_msgs,
				    &attr.max_log_num_msgs,
				    &attr.max_in_flight_log_bytes,
				    &attr.max_in_flight_log_bytes,
				    &attr.max_in_flight_log_bytes,
				    &attr.generations,
				    &attr.generations,
				    &attr.msg_id_bits,
				    &attr.offset_bits,
				    &attr.imm_bits,
				    &attr.imm_bits,
				    &attr.send_batch,
				    &attr.send_batch};
	const uint32_t bad[] = {32, 100, 8192, 7, 15, 40, 11, 99, 0, 64, 99, 0, 17, 9, 19, 3, 100, 0, 65};

	for (size_t row = 0; row < sizeof(bad) / sizeof(bad[0]); row++) {
		attr = ends_attr(1);
		*member[row] = bad[row];
		errno = 0;
		assert_null(verbena_sdr_qp_create(e->ctx, &attr));
		assert_int_equal(errno, EINVAL);
	}
	attr = ends_attr(1);
	attr.send_enable = attr.recv_enable = false;
	assert_null(verbena_sdr_qp_create(e->ctx, &attr));
	attr = ends_attr(1);
	attr.transport = 2;
	assert_null(verbena_sdr_qp_create(e->ctx, &attr));
	attr = ends_attr(1);
	attr.rate_auto = true;
	attr.rate_limit_mbps = 1;
	assert_null(verbena_sdr_qp_create(e->ctx, &attr));
	assert_null(verbena_sdr_qp_create(NULL, &attr));
}

CASE(queue_pairs_are_as_many_as_the_context_has)
{
	struct verbena_sdr_context_attr attr;
	struct verbena_sdr_qp_attr qp_attr = ends_attr(1);
	struct verbena_sdr_context *ctx;
	struct verbena_sdr_qp *qp;

	verbena_sdr_context_attr_init(&attr);
	attr.num_channels = 1;
	attr.log_max_qps = 0;
	ctx = verbena_sdr_context_create(NULL, &attr);
	assert_non_null(ctx);
	for (int i = 0; i < 3; i++) {
		qp = verbena_sdr_qp_create(ctx, &qp_attr);
		assert_non_null(qp);
		errno = 0;
		assert_null(verbena_sdr_qp_create(ctx, &qp_attr));
		assert_int_equal(errno, ENOSPC);
		assert_int_equal(verbena_sdr_qp_destroy(qp), VERBENA_SDR_SUCCESS);
	}
	assert_int_equal(verbena_sdr_context_destroy(ctx), VERBENA_SDR_SUCCESS);
}

/* Connects with its own description after a byte of it was changed. */
static void connect_spoilt(struct verbena_sdr_qp *qp, size_t at, uint8_t value, int why)
{
	uint8_t info[4096];
	size_t size;

	assert_int_equal(verbena_sdr_qp_info_size_get(qp, &size), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_qp_info_get(qp, info, size), VERBENA_SDR_SUCCESS);
	info[at] = value;
	FAILS(verbena_sdr_qp_connect(qp, info, size), why);
	FAILS(verbena_sdr_qp_connect(qp, info, size - 1), EINVAL);
}

CASE(ends_connect_with_what_fits_them_and_once)
{
	struct ends *e = *state;
	struct verbena_sdr_qp_attr attr = ends_attr(1);
	struct verbena_sdr_send send;
	struct verbena_sdr_recv recv;
	struct verbena_sdr_block b = block(e, 0, CHUNK);
	struct verbena_sdr_recv_attr r = {.address = e->sink, .max_length = CHUNK, .lkey = e->sink_key};
	struct verbena_sdr_qp *qp = verbena_sdr_qp_create(e->ctx, &attr);
	uint8_t info[4096];
	size_t size;

	assert_non_null(qp);
	connect_spoilt(qp, 0, 'X', EINVAL); /* no description */
	connect_spoilt(qp, 5, 1, EINVAL);   /* of another version */
	connect_spoilt(qp, 57, 3, EINVAL);  /* not as long as it must be */
	connect_spoilt(qp, 9, 1, EPROTO);   /* the other transport */
	connect_spoilt(qp, 47, 4, EPROTO);  /* other slots */
	FAILS(verbena_sdr_send_post(qp, &b, NULL, &send), ENOTCONN);
	FAILS(verbena_sdr_send_stream_start(qp, NULL, &send), ENOTCONN);
	FAILS(verbena_sdr_recv_post(qp, &r, &recv), ENOTCONN);
	assert_int_equal(verbena_sdr_qp_info_size_get(qp, &size), VERBENA_SDR_SUCCESS);
	FAILS(verbena_sdr_qp_info_get(qp, info, size - 1), EINVAL);
	ends_connect(qp, qp);
	assert_int_equal(verbena_sdr_qp_info_get(qp, info, size), VERBENA_SDR_SUCCESS);
	FAILS(verbena_sdr_qp_connect(qp, info, size), EISCONN);
	assert_int_equal(verbena_sdr_qp_destroy(qp), VERBENA_SDR_SUCCESS);
}

/* The last queue pair cannot be connected when all others have been; another try finds all as they
 * were. */
CASE(a_connection_that_fails_halfway_can_be_tried_again)
{
	struct ends *e = *state;
	struct verbena_sdr_qp_attr attr = ends_attr(1);
	struct verbena_sdr_qp *qp = verbena_sdr_qp_create(e->ctx, &attr);
	struct verbena_sdr_block b = block(e, 0, CHUNK);
	struct verbena_sdr_recv_attr r = {.address = e->sink, .max_length = CHUNK, .lkey = e->sink_key};
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	size_t size;

	assert_non_null(qp);
	assert_int_equal(verbena_sdr_qp_info_size_get(qp, &size), VERBENA_SDR_SUCCESS);
	connect_spoilt(qp, size - 4, 0xff, EINVAL); /* a number of 32 bits */
	FAILS(verbena_sdr_recv_post(qp, &r, &recv), ENOTCONN);
	ends_connect(qp, qp);
	assert_int_equal(verbena_sdr_recv_post(qp, &r, &recv), VERBENA_SDR_SUCCESS);
	AWAIT(e, verbena_sdr_send_post(qp, &b, NULL, &send) == VERBENA_SDR_SUCCESS);
	AWAIT(e, chunks_arrived(&recv, 0, 1));
	AWAIT(e, send_done(&send));
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_qp_destroy(qp), VERBENA_SDR_SUCCESS);
}

CASE(directions_are_kept_to)
{
	struct ends *e = *state;
	struct verbena_sdr_recv_attr r = {.address = e->sink, .max_length = CHUNK, .lkey = e->sink_key};
	struct verbena_sdr_block b = block(e, 0, CHUNK);
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;

	FAILS(verbena_sdr_send_post(e->to, &b, NULL, &send), EOPNOTSUPP);
	FAILS(verbena_sdr_recv_post(e->from, &r, &recv), EOPNOTSUPP);
}

CASE(receives_lie_in_memory_that_may_be_written)
{
	struct ends *e = *state;
	const struct verbena_sdr_recv_attr row[] = {
		{e->sink, 0, e->sink_key},         {e->sink, MESSAGE + 1, e->sink_key},
		{e->sink, CHUNK, e->sink_key + 1}, {e->sink, CHUNK, 0},
		{e->source, CHUNK, e->source_key}, /* may not be written */
		{e->sink - 1, CHUNK, e->sink_key}, {e->sink + (BUFFERS - 1) * MESSAGE + 1, MESSAGE, e->sink_key},
		{NULL, CHUNK, e->sink_key},
	};
	struct verbena_sdr_stats stats;
	struct verbena_sdr_recv recv;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		FAILS(verbena_sdr_recv_post(e->to, &row[i], &recv), EINVAL);
	assert_int_equal(verbena_sdr_qp_stats_get(e->to, &stats), VERBENA_SDR_SUCCESS);
	assert_int_equal(stats.cts_sent, 0);
	assert_int_equal(recv_post(e, 0, CHUNK, &recv), VERBENA_SDR_SUCCESS);
	assert_int_equal(recv.number, 0);
}

CASE(receives_wait_for_a_slot)
{
	struct ends *e = *state;
	struct verbena_sdr_recv recv[4], more;

	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(recv_post(e, i, CHUNK, &recv[i]), VERBENA_SDR_SUCCESS);
	assert_int_equal(recv_post(e, 4, CHUNK, &more), VERBENA_SDR_RETRY);
	FAILS(verbena_sdr_mr_dereg(e->sink_mr), EBUSY);
	assert_int_equal(verbena_sdr_recv_complete(&recv[0]), VERBENA_SDR_SUCCESS);
	AWAIT(e, recv_post(e, 4, CHUNK, &more) == VERBENA_SDR_SUCCESS);
}

/* While a peer does not acknowledge receives, it is sent no more of them. */
CASE(receives_wait_for_the_peer_to_hear_of_them)
{
	struct ends *e = *state;
	struct verbena_sdr_recv recv;
	int r = VERBENA_SDR_SUCCESS, posted = 0;

	while (posted < 100 && (r = recv_post(e, 0, CHUNK, &recv)) == VERBENA_SDR_SUCCESS) {
		posted++;
		assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	}
	assert_int_equal(r, VERBENA_SDR_RETRY);
	assert_int_equal(posted, 4);
}

CASE(receives_are_completed_once)
{
	struct ends *e = *state;
	struct verbena_sdr_recv recv, again;
	const uint8_t *bitmap;
	uint64_t mask;
	uint32_t imm;
	size_t bytes;

	assert_int_equal(recv_post(e, 0, CHUNK + 1, &recv), VERBENA_SDR_SUCCESS);
	FAILS(verbena_sdr_recv_bitmap_chunk_expand(&recv, 2, &mask), EINVAL);
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	for (int i = 0; i < 4; i++) { /* the slot has another message by then */
		AWAIT(e, recv_post(e, 1, CHUNK, &again) == VERBENA_SDR_SUCCESS);
		FAILS(verbena_sdr_recv_complete(&recv), EINVAL);
		FAILS(verbena_sdr_recv_bitmap_get(&recv, &bitmap, &bytes), EINVAL);
		FAILS(verbena_sdr_recv_bitmap_chunk_expand(&recv, 0, &mask), EINVAL);
		FAILS(verbena_sdr_recv_imm_get(&recv, &imm), EINVAL);
	}
	assert_int_equal(verbena_sdr_recv_bitmap_get(&again, &bitmap, &bytes), VERBENA_SDR_SUCCESS);
}

CASE(sends_fit_the_receive_and_its_memory)
{
	struct ends *e = *state;
	const struct verbena_sdr_block row[] = {
		{e->source, 0, e->source_key, 0},         /* nothing, and no immediate */
		{e->source, CHUNK + 1, e->source_key, 0}, /* ends within a chunk */
		{e->source, 3 * CHUNK, e->source_key, 0}, /* beyond the receive */
		{e->source, CHUNK, e->source_key, 3},     {e->source, CHUNK, e->source_key, UINT32_MAX},
		{e->source, CHUNK, e->source_key + 1, 0}, {e->source + MESSAGE - 1, CHUNK, e->source_key, 0},
		{e->source, SIZE_MAX, e->source_key, 0},
	};
	struct verbena_sdr_block good = {e->source, 2000, e->source_key, 0};
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;

	assert_int_equal(verbena_sdr_send_post(e->from, &good, NULL, &send), VERBENA_SDR_RETRY);
	assert_int_equal(recv_post(e, 0, 2000, &recv), VERBENA_SDR_SUCCESS);
	settle(e);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		FAILS(verbena_sdr_send_post(e->from, &row[i], NULL, &send), EINVAL);
	assert_int_equal(verbena_sdr_send_post(e->from, &good, NULL, &send), VERBENA_SDR_SUCCESS);
	assert_int_equal(send.number, 0);
}

CASE(streams_end_once_and_take_no_more)
{
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, CHUNK), none = block(e, 0, 0);
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	bool done;

	assert_int_equal(verbena_sdr_send_stream_start(e->from, NULL, &send), VERBENA_SDR_RETRY);
	assert_int_equal(recv_post(e, 0, CHUNK, &recv), VERBENA_SDR_SUCCESS);
	AWAIT(e, verbena_sdr_send_stream_start(e->from, NULL, &send) == VERBENA_SDR_SUCCESS);
	FAILS(verbena_sdr_send_stream_continue(&send, &none), EINVAL);
	assert_int_equal(verbena_sdr_send_stream_end(&send), VERBENA_SDR_SUCCESS);
	FAILS(verbena_sdr_send_stream_end(&send), EINVAL);
	FAILS(verbena_sdr_send_stream_continue(&send, &b), EINVAL);
	assert_int_equal(verbena_sdr_send_poll(&send, &done), VERBENA_SDR_SUCCESS);
	assert_true(done); /* an empty message is one */
	FAILS(verbena_sdr_send_poll(&send, &done), EINVAL);
	FAILS(verbena_sdr_send_stream_continue(&send, &b), EINVAL);
	settle(e);
	assert_false(chunks_arrived(&recv, 0, 1));
}

/* The application takes away what it sends from, while most of it waits for its turn: the
 * connection breaks, and every call says so. */
TEST(memory_that_is_gone_breaks_the_connection_and_nothing_else)
{
	struct verbena_sdr_qp_attr attr = ends_attr(1);
	uint8_t *gone = malloc(MESSAGE);
	struct verbena_sdr_block b = {.address = gone, .length = MESSAGE};
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	struct verbena_sdr_mr *mr;
	struct ends e;
	bool done;

	attr.rate_limit_mbps = 1;
	ends_make(&e, attr, VERBENA_SDR_NO_WORKERS);
	mr = verbena_sdr_mr_reg(e.ctx, gone, MESSAGE, 0);
	assert_non_null(mr);
	memset(gone, 1, MESSAGE);
	assert_int_equal(verbena_sdr_mr_lkey_get(mr, &b.lkey), VERBENA_SDR_SUCCESS);
	assert_int_equal(recv_post(&e, 0, MESSAGE, &recv), VERBENA_SDR_SUCCESS);
	AWAIT(&e, verbena_sdr_send_post(e.from, &b, NULL, &send) == VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_mr_dereg(mr), VERBENA_SDR_SUCCESS);
	free(gone);
	AWAIT(&e, verbena_sdr_send_poll(&send, &done) == VERBENA_SDR_ERROR);
	assert_int_equal(errno, EIO);
	FAILS(verbena_sdr_send_stream_end(&send), EIO);
	FAILS(verbena_sdr_send_stream_start(e.from, NULL, &send), EIO);
	settle(&e);
	ends_destroy(&e);
}
