/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sending and a receiving end in one process, connected over loopback, without workers: time
 * passes when a test lets it. Sees only the public header.
 */
#pragma once

#include <errno.h>
#include <time.h>

#include <verbena/sdr.h>

#include "support/test.h"

/* A test that needs longer messages says so before it includes this. */
#ifndef ENDS_MESSAGE_LOG
#define ENDS_MESSAGE_LOG 14
#endif
enum { MTU = 256, CHUNK = 1024, MESSAGE = 1 << ENDS_MESSAGE_LOG, BUFFERS = 8 };

struct ends {
	struct verbena_sdr_context *ctx;
	struct verbena_sdr_qp *from, *to;
	struct verbena_sdr_mr *source_mr, *sink_mr;
	uint8_t *source, *sink; /* MESSAGE bytes each, of the sink BUFFERS times as many */
	uint32_t source_key, sink_key;
};

/* Messages of up to MESSAGE bytes, in chunks of four packets; so many receives outstanding. */
static inline struct verbena_sdr_qp_attr ends_attr(uint32_t log_num_msgs)
{
	struct verbena_sdr_qp_attr attr;

	verbena_sdr_qp_attr_init(&attr);
	attr.mtu = MTU;
	attr.bitmap_chunk_size_log_bytes = 10;
	attr.max_log_num_msgs = log_num_msgs;
	attr.max_in_flight_log_bytes = ENDS_MESSAGE_LOG + log_num_msgs;
	return attr;
}

static inline void ends_connect(struct verbena_sdr_qp *a, struct verbena_sdr_qp *b)
{
	uint8_t info[16384];
	size_t size;

	assert_int_equal(verbena_sdr_qp_info_size_get(b, &size), VERBENA_SDR_SUCCESS);
	assert_true(size <= sizeof(info));
	assert_int_equal(verbena_sdr_qp_info_get(b, info, size), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_qp_connect(a, info, size), VERBENA_SDR_SUCCESS);
}

static inline struct verbena_sdr_context *ends_context(uint32_t workers)
{
	struct verbena_sdr_context_attr attr;
	struct verbena_sdr_context *ctx;

	verbena_sdr_context_attr_init(&attr);
	attr.num_channels = 2;
	attr.num_workers = workers;
	ctx = verbena_sdr_context_create(NULL, &attr);
	assert_non_null(ctx);
	return ctx;
}

static inline void ends_memory(struct ends *e)
{
	e->source = malloc(MESSAGE);
	e->sink = calloc(BUFFERS, MESSAGE);
	for (size_t i = 0; i < MESSAGE; i++)
		e->source[i] = (uint8_t)(i * 31 + i / 256 + 1);
	e->source_mr = verbena_sdr_mr_reg(e->ctx, e->source, MESSAGE, 0);
	e->sink_mr = verbena_sdr_mr_reg(e->ctx, e->sink, (size_t)BUFFERS * MESSAGE, VERBENA_SDR_REMOTE_WRITE);
	assert_non_null(e->source_mr);
	assert_non_null(e->sink_mr);
	assert_int_equal(verbena_sdr_mr_lkey_get(e->source_mr, &e->source_key), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_mr_lkey_get(e->sink_mr, &e->sink_key), VERBENA_SDR_SUCCESS);
}

static inline void ends_make(struct ends *e, struct verbena_sdr_qp_attr attr, uint32_t workers)
{
	e->ctx = ends_context(workers);
	attr.recv_enable = false;
	e->from = verbena_sdr_qp_create(e->ctx, &attr);
	assert_non_null(e->from);
	attr.recv_enable = true;
	attr.send_enable = false;
	e->to = verbena_sdr_qp_create(e->ctx, &attr);
	assert_non_null(e->to);
	ends_connect(e->from, e->to);
	ends_connect(e->to, e->from);
	ends_memory(e);
}

static inline void ends_destroy(struct ends *e)
{
	assert_int_equal(verbena_sdr_qp_destroy(e->from), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_qp_destroy(e->to), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_mr_dereg(e->source_mr), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_mr_dereg(e->sink_mr), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_context_destroy(e->ctx), VERBENA_SDR_SUCCESS);
	free(e->source);
	free(e->sink);
}

/* Ends without workers and with four receives, for a test's set-up. */
static inline int ends_setup(void **state)
{
	static struct ends e;

	ends_make(&e, ends_attr(2), VERBENA_SDR_NO_WORKERS);
	*state = &e;
	return 0;
}

static inline int ends_teardown(void **state)
{
	ends_destroy(*state);
	return 0;
}

/* Lets things happen until the condition holds; a minute of waiting fails the test. */
#define AWAIT(e, condition)                              \
	do {                                             \
		time_t end_ = time(NULL) + 60;           \
		while (!(condition)) {                   \
			verbena_sdr_progress((e)->ctx);  \
			assert_true(time(NULL) <= end_); \
		}                                        \
	} while (0)

/* Lets everything that is under way arrive: nothing has happened for a while. */
static inline void settle(struct ends *e)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	for (int quiet = 0; quiet < 20; quiet++) {
		nanosleep(&pause, NULL);
		if (verbena_sdr_progress(e->ctx))
			quiet = 0;
	}
}

static inline int recv_post(struct ends *e, uint32_t buffer, size_t bytes, struct verbena_sdr_recv *recv)
{
	struct verbena_sdr_recv_attr attr = {
		.address = e->sink + (size_t)buffer * MESSAGE, .max_length = bytes, .lkey = e->sink_key};

	return verbena_sdr_recv_post(e->to, &attr, recv);
}

/* The bytes of the source from a chunk on. */
static inline struct verbena_sdr_block block(const struct ends *e, uint32_t chunk, size_t bytes)
{
	return (struct verbena_sdr_block){.address = e->source + (size_t)chunk * CHUNK,
					  .length = bytes,
					  .lkey = e->source_key,
					  .remote_offset = chunk};
}

static inline bool chunks_arrived(const struct verbena_sdr_recv *recv, uint32_t first, uint32_t count)
{
	const uint8_t *bitmap;
	size_t bytes;

	assert_int_equal(verbena_sdr_recv_bitmap_get(recv, &bitmap, &bytes), VERBENA_SDR_SUCCESS);
	for (uint32_t i = first; i < first + count; i++) {
		if (!verbena_sdr_chunk_arrived(bitmap, i))
			return false;
	}
	return true;
}

static inline bool send_done(const struct verbena_sdr_send *send)
{
	bool done;

	assert_int_equal(verbena_sdr_send_poll(send, &done), VERBENA_SDR_SUCCESS);
	return done;
}
