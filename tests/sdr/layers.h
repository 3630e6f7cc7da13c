/* SPDX-License-Identifier: BSD-2-Clause */
/* The reliable layers of libverbena-sdr behind one contract, for tests of what they have in common. */
#pragma once

#include "ends.h"

/* `attr` is a pointer to the layer's attributes; NULL: as they are initialized. */
struct layer {
	int (*post)(struct ends *, uint32_t buffer, size_t bytes, const void *attr, struct verbena_sdr_recv *);
	int (*send)(struct verbena_sdr_qp *, const struct verbena_sdr_block *, const void *attr,
		    struct verbena_sdr_send *);
	int (*poll)(const struct verbena_sdr_send *, bool *);
	int (*recv_poll)(const struct verbena_sdr_recv *, bool *);
};

static inline struct verbena_sdr_recv_attr recv_into(const struct ends *e, uint32_t buffer, size_t bytes)
{
	return (struct verbena_sdr_recv_attr){
		.address = e->sink + (size_t)buffer * MESSAGE, .max_length = bytes, .lkey = e->sink_key};
}

static int sr_post(struct ends *e, uint32_t buffer, size_t bytes, const void *attr, struct verbena_sdr_recv *recv)
{
	int r = recv_post(e, buffer, bytes, recv);

	return r == VERBENA_SDR_SUCCESS ? verbena_sdr_sr_recv(recv, attr) : r;
}

static int sr_send(struct verbena_sdr_qp *qp, const struct verbena_sdr_block *b, const void *attr,
		   struct verbena_sdr_send *send)
{
	return verbena_sdr_sr_send(qp, b, attr, send);
}

static int ec_post(struct ends *e, uint32_t buffer, size_t bytes, const void *attr, struct verbena_sdr_recv *recv)
{
	struct verbena_sdr_recv_attr into = recv_into(e, buffer, bytes);

	return verbena_sdr_ec_recv_post(e->to, &into, recv);
}

static int ec_send(struct verbena_sdr_qp *qp, const struct verbena_sdr_block *b, const void *attr,
		   struct verbena_sdr_send *send)
{
	return verbena_sdr_ec_send(qp, b, attr, send);
}

static int tail_post(struct ends *e, uint32_t buffer, size_t bytes, const void *attr, struct verbena_sdr_recv *recv)
{
	struct verbena_sdr_recv_attr into = recv_into(e, buffer, bytes);

	return verbena_sdr_tail_recv_post(e->to, &into, 0, recv);
}

static int tail_send(struct verbena_sdr_qp *qp, const struct verbena_sdr_block *b, const void *attr,
		     struct verbena_sdr_send *send)
{
	return verbena_sdr_tail_send(qp, b, attr, send);
}

enum { LAYER_SR, LAYER_EC, LAYER_TAIL, LAYERS };

static const struct layer layers[LAYERS] = {
	[LAYER_SR] = {sr_post, sr_send, verbena_sdr_sr_poll, verbena_sdr_sr_recv_poll},
	[LAYER_EC] = {ec_post, ec_send, verbena_sdr_ec_poll, verbena_sdr_ec_recv_poll},
	[LAYER_TAIL] = {tail_post, tail_send, verbena_sdr_tail_poll, verbena_sdr_tail_recv_poll},
};

static inline bool layer_done(int layer, const struct verbena_sdr_send *send)
{
	bool done;

	assert_int_equal(layers[layer].poll(send, &done), VERBENA_SDR_SUCCESS);
	return done;
}

static inline bool layer_whole(int layer, const struct verbena_sdr_recv *recv)
{
	bool done;

	assert_int_equal(layers[layer].recv_poll(recv, &done), VERBENA_SDR_SUCCESS);
	return done;
}

static inline void fill(struct ends *e, uint32_t n)
{
	for (size_t i = 0; i < MESSAGE; i++)
		e->source[i] = (uint8_t)(i * 31 + i / 256 * n + n);
	memset(e->sink + (size_t)(n % 4) * MESSAGE, 0xaa, MESSAGE);
}

/* The n-th message of a test, compared byte by byte. */
static inline void layer_exchange(int layer, struct ends *e, const void *attr, size_t bytes, uint32_t n)
{
	struct verbena_sdr_block b = block(e, 0, bytes);
	const struct layer *l = &layers[layer];
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	bool done;

	fill(e, n);
	AWAIT(e, l->post(e, n % 4, bytes, attr, &recv) == VERBENA_SDR_SUCCESS);
	AWAIT(e, l->send(e->from, &b, attr, &send) == VERBENA_SDR_SUCCESS);
	AWAIT(e, layer_whole(layer, &recv));
	assert_memory_equal(e->sink + (size_t)(n % 4) * MESSAGE, e->source, bytes);
	/* At once: what the sender has not heard of by then, it asks. */
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	AWAIT(e, layer_done(layer, &send));
	assert_int_equal(l->poll(&send, &done), VERBENA_SDR_ERROR);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(l->recv_poll(&recv, &done), VERBENA_SDR_ERROR);
}

#define CASE(name) TEST_WITH(name, ends_setup, ends_teardown)
