/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that are repeated until they are whole; ctest runs it on a network that loses, doubles
 * and reorders. */
#include "layers.h"
#include "support/test.h"

static struct verbena_sdr_sr_attr attr_with(bool nack)
{
	struct verbena_sdr_sr_attr attr;

	verbena_sdr_sr_attr_init(&attr);
	attr.nack = nack;
	return attr;
}

CASE(every_message_arrives_with_nack)
{
	const struct verbena_sdr_sr_attr attr = attr_with(true);

	for (uint32_t n = 0; n < 20; n++)
		layer_exchange(LAYER_SR, *state, &attr, 1 + n * 797 % MESSAGE, n);
}

CASE(every_message_arrives_without)
{
	const struct verbena_sdr_sr_attr attr = attr_with(false);

	for (uint32_t n = 0; n < 8; n++)
		layer_exchange(LAYER_SR, *state, &attr, 1 + n * 1997 % MESSAGE, n);
}

CASE(what_makes_no_sense_is_refused)
{
	struct verbena_sdr_sr_attr attr = attr_with(true);
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, CHUNK), all = block(e, 0, 2 * CHUNK);
	struct verbena_sdr_recv recv, none = {0};
	struct verbena_sdr_send send;
	bool done;

	assert_int_equal(verbena_sdr_sr_send(e->from, &all, NULL, &send), VERBENA_SDR_RETRY);
	assert_int_equal(recv_post(e, 0, 2 * CHUNK, &recv), VERBENA_SDR_SUCCESS);
	settle(e);
	settle(e);
	assert_int_equal(verbena_sdr_sr_recv_poll(&recv, &done), VERBENA_SDR_ERROR); /* is not acknowledged */
	assert_int_equal(verbena_sdr_sr_recv(&none, NULL), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_sr_recv(&recv, NULL), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_sr_recv(&recv, NULL), VERBENA_SDR_ERROR);              /* once */
	assert_int_equal(verbena_sdr_sr_send(e->from, &b, NULL, &send), VERBENA_SDR_ERROR); /* does not fill it */
	assert_int_equal(errno, EINVAL);
	attr.tries_max = 0;
	assert_int_equal(verbena_sdr_sr_send(e->from, &all, &attr, &send), VERBENA_SDR_ERROR);
	attr.tries_max = 256;
	assert_int_equal(verbena_sdr_sr_send(e->from, &all, &attr, &send), VERBENA_SDR_ERROR);
	attr = attr_with(true);
	attr.rtt_ns = 0;
	assert_int_equal(verbena_sdr_sr_send(e->from, &all, &attr, &send), VERBENA_SDR_ERROR);
	attr.rtt_ns = UINT64_MAX;
	assert_int_equal(verbena_sdr_sr_send(e->from, &all, &attr, &send), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_sr_send(e->to, &all, NULL, &send), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_sr_poll(NULL, &done), VERBENA_SDR_ERROR);
	AWAIT(e, verbena_sdr_sr_send(e->from, &all, NULL, &send) == VERBENA_SDR_SUCCESS);
	/* A send that is repeated is not the program's to go on with. */
	assert_int_equal(verbena_sdr_send_stream_continue(&send, &b), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_send_stream_end(&send), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_send_poll(&send, &done), VERBENA_SDR_ERROR);
	AWAIT(e, layer_done(LAYER_SR, &send));
}
