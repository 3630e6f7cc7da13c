/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that are repeated until they are whole; ctest runs it on a network that loses, doubles
 * and reorders. */
#include "ends.h"
#include "support/test.h"

static struct verbena_sdr_sr_attr attr_with(bool nack, uint64_t timeout_ms)
{
	struct verbena_sdr_sr_attr attr;

	verbena_sdr_sr_attr_init(&attr);
	attr.nack = nack;
	attr.timeout_ns = timeout_ms * 1000000;
	return attr;
}

static bool sr_done(const struct verbena_sdr_send *send)
{
	bool done;

	assert_int_equal(verbena_sdr_sr_poll(send, &done), VERBENA_SDR_SUCCESS);
	return done;
}

static bool sr_whole(const struct verbena_sdr_recv *recv)
{
	bool done;

	assert_int_equal(verbena_sdr_sr_recv_poll(recv, &done), VERBENA_SDR_SUCCESS);
	return done;
}

static void exchange(struct ends *e, const struct verbena_sdr_sr_attr *attr, size_t bytes, uint32_t n)
{
	struct verbena_sdr_block b = block(e, 0, bytes);
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	bool done;

	e->source[0] = (uint8_t)n;
	AWAIT(e, recv_post(e, n % 4, bytes, &recv) == VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_sr_recv(&recv, attr), VERBENA_SDR_SUCCESS);
	AWAIT(e, verbena_sdr_sr_send(e->from, &b, attr, &send) == VERBENA_SDR_SUCCESS);
	AWAIT(e, sr_whole(&recv));
	assert_memory_equal(e->sink + n % 4 * MESSAGE, e->source, bytes);
	/* At once: the sender probes for acknowledgements that it lacks by then. */
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	AWAIT(e, sr_done(&send));
	assert_int_equal(verbena_sdr_sr_poll(&send, &done), VERBENA_SDR_ERROR);
}

#define CASE(name) TEST_WITH(name, ends_setup, ends_teardown)

CASE(every_message_arrives_with_nack)
{
	const struct verbena_sdr_sr_attr attr = attr_with(true, 0);

	for (uint32_t n = 0; n < 20; n++)
		exchange(*state, &attr, 1 + n * 797 % MESSAGE, n);
}

CASE(every_message_arrives_without)
{
	const struct verbena_sdr_sr_attr attr = attr_with(false, 0);

	for (uint32_t n = 0; n < 8; n++)
		exchange(*state, &attr, 1 + n * 1997 % MESSAGE, n);
}

/* Threads acknowledge and repeat, and the program only asks whether it is done. */
TEST(workers_repeat_and_acknowledge)
{
	struct ends e;

	ends_make(&e, ends_attr(2), 2);
	for (uint32_t n = 0; n < 15; n++)
		exchange(&e, NULL, MESSAGE - n, n);
	ends_destroy(&e);
}

CASE(a_receive_given_up_ends_the_send)
{
	const struct verbena_sdr_sr_attr attr = attr_with(true, 0);
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, MESSAGE);
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	bool done;

	assert_int_equal(recv_post(e, 0, MESSAGE, &recv), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_sr_recv(&recv, &attr), VERBENA_SDR_SUCCESS);
	settle(e);
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	AWAIT(e, verbena_sdr_sr_send(e->from, &b, &attr, &send) == VERBENA_SDR_SUCCESS);
	AWAIT(e, verbena_sdr_sr_poll(&send, &done) == VERBENA_SDR_ERROR);
	assert_int_equal(errno, ECONNABORTED);
	assert_int_equal(verbena_sdr_sr_poll(&send, &done), VERBENA_SDR_ERROR);
	assert_int_equal(errno, EINVAL);
}

/* The receiver never acknowledges: the sender's time runs out, and the next message is not
 * disturbed. */
CASE(a_silent_peer_times_out)
{
	const struct verbena_sdr_sr_attr attr = attr_with(true, 300);
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, MESSAGE);
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	bool done;

	assert_int_equal(recv_post(e, 0, MESSAGE, &recv), VERBENA_SDR_SUCCESS);
	AWAIT(e, verbena_sdr_sr_send(e->from, &b, &attr, &send) == VERBENA_SDR_SUCCESS);
	AWAIT(e, verbena_sdr_sr_poll(&send, &done) == VERBENA_SDR_ERROR);
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	exchange(e, NULL, MESSAGE, 1);
}

CASE(what_makes_no_sense_is_refused)
{
	struct verbena_sdr_sr_attr attr = attr_with(true, 0);
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
	attr = attr_with(true, 0);
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
	AWAIT(e, sr_done(&send));
}
