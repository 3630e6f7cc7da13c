/* SPDX-License-Identifier: BSD-2-Clause */
/* Coded messages; ctest runs it on a network that loses, doubles and reorders, and on one that does
 * not. Every message is compared byte by byte. */
#include "layers.h"
#include "support/test.h"

static struct verbena_sdr_ec_attr attr_of(uint32_t data, uint32_t parity, uint32_t parity_max)
{
	struct verbena_sdr_ec_attr attr;

	verbena_sdr_ec_attr_init(&attr);
	attr.data = data;
	attr.parity = parity;
	attr.parity_max = parity_max;
	return attr;
}

CASE(every_message_arrives_by_parity_on_demand)
{
	for (uint32_t n = 0; n < 30; n++) {
		/* Now and then a wide group. */
		struct verbena_sdr_ec_attr attr = attr_of(n % 7 == 6 ? 300 : 4 + n, n % 4, 4 + n % 8);

		attr.depth = 1 + n % 5;
		attr.uncoded = n % 3 ? 0 : MESSAGE / 2;
		layer_exchange(LAYER_EC, *state, &attr, 1 + n * 3971 % MESSAGE, n);
	}
}

CASE(every_message_arrives_with_chunks)
{
	for (uint32_t n = 0; n < 10; n++) {
		struct verbena_sdr_ec_attr attr = attr_of(4, 1, 2);

		attr.chunks = true;
		layer_exchange(LAYER_EC, *state, &attr, 1 + n * 1597 % MESSAGE, n);
	}
}

CASE(every_message_arrives_by_the_repeat)
{
	for (uint32_t n = 0; n < 10; n++) {
		struct verbena_sdr_ec_attr attr = attr_of(16, 4, 4);

		attr.fallback = VERBENA_SDR_FALLBACK_SR;
		attr.code = n % 2 ? VERBENA_SDR_XOR : VERBENA_SDR_MDS;
		attr.end_marker = n % 3;
		layer_exchange(LAYER_EC, *state, &attr, 1 + n * 1597 % MESSAGE, n);
	}
}

CASE(what_makes_no_sense_is_refused)
{
	const struct verbena_sdr_ec_attr good = attr_of(16, 4, 8);
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, CHUNK), all = block(e, 0, 2 * CHUNK);
	struct verbena_sdr_ec_attr bad[12];
	struct verbena_sdr_recv recv, parities;
	struct verbena_sdr_send send;
	bool done;

	assert_int_equal(verbena_sdr_ec_send(e->from, &all, NULL, &send), VERBENA_SDR_RETRY);
	assert_int_equal(ec_post(e, 0, 0, NULL, &recv), VERBENA_SDR_ERROR);
	assert_int_equal(ec_post(e, 0, MESSAGE + 1, NULL, &recv), VERBENA_SDR_ERROR);
	assert_int_equal(ec_post(e, 0, 2 * CHUNK, NULL, &recv), VERBENA_SDR_SUCCESS);
	settle(e);
	settle(e);
	parities = (struct verbena_sdr_recv){recv.qp, recv.number + 1};
	assert_int_equal(verbena_sdr_recv_complete(&parities), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_sr_recv(&recv, NULL), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_sr_recv(&parities, NULL), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_ec_recv_poll(&parities, &done), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_ec_send(e->from, &b, NULL, &send), VERBENA_SDR_ERROR);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		bad[i] = good;
	bad[0].data = 0;
	bad[1].data = 993;
	bad[2].parity = 9;
	bad[3].parity_max = 240;
	bad[3].parity = 100; /* no room for so many */
	bad[4].depth = 0;
	bad[5].tries_max = 0;
	bad[6].loss = 0.6;
	bad[7].rtt_ns = 0;
	bad[8].code = VERBENA_SDR_XOR; /* has no fresh parities */
	bad[9].tries_max = 256;
	bad[10].loss = -0.1;
	bad[11].timeout_ns = UINT64_MAX;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(verbena_sdr_ec_send(e->from, &all, &bad[i], &send), VERBENA_SDR_ERROR);
		assert_int_equal(errno, EINVAL);
	}
	assert_int_equal(verbena_sdr_ec_send(e->to, &all, NULL, &send), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_ec_poll(NULL, &done), VERBENA_SDR_ERROR);
	AWAIT(e, verbena_sdr_ec_send(e->from, &all, &good, &send) == VERBENA_SDR_SUCCESS);
	/* A send that is coded is not the program's to go on with; its parities neither. */
	for (int i = 0; i < 2; i++, send.number++) {
		assert_int_equal(verbena_sdr_send_stream_continue(&send, &b), VERBENA_SDR_ERROR);
		assert_int_equal(verbena_sdr_send_stream_end(&send), VERBENA_SDR_ERROR);
		assert_int_equal(verbena_sdr_send_poll(&send, &done), VERBENA_SDR_ERROR);
	}
	send.number -= 2;
	AWAIT(e, layer_done(LAYER_EC, &send));
}

CASE(round_trips_are_measured)
{
	struct ends *e = *state;
	uint64_t least_ns, mean_ns;

	assert_int_equal(verbena_sdr_rtt_get(e->from, &least_ns, &mean_ns), VERBENA_SDR_RETRY);
	assert_int_equal(verbena_sdr_ping(NULL), VERBENA_SDR_ERROR);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(verbena_sdr_ping(e->from), VERBENA_SDR_SUCCESS);
		settle(e);
	}
	assert_int_equal(verbena_sdr_rtt_get(e->from, &least_ns, &mean_ns), VERBENA_SDR_SUCCESS);
	assert_true(least_ns > 0 && least_ns <= mean_ns);
}

CASE(a_choice_says_why)
{
	struct verbena_sdr_link link = {.rate_mbps = 1000, .rtt_ns = 100000000};
	struct verbena_sdr_ec_attr attr;
	struct ends *e = *state;
	const char *why;

	assert_int_equal(verbena_sdr_ec_choose(e->from, &link, MESSAGE, 0, &attr, &why), VERBENA_SDR_SUCCESS);
	assert_true(attr.parity > 0 && strlen(why) > 0);
	layer_exchange(LAYER_EC, e, &attr, MESSAGE, 1);
	assert_int_equal(verbena_sdr_ec_choose(e->from, &link, MESSAGE, 1 << 30, &attr, &why), VERBENA_SDR_SUCCESS);
	assert_int_equal(attr.parity, 0);
	layer_exchange(LAYER_EC, e, &attr, MESSAGE, 2);
	link.lost = 1;
	assert_int_equal(verbena_sdr_ec_choose(e->from, &link, MESSAGE, 0, &attr, &why), VERBENA_SDR_ERROR);
}
