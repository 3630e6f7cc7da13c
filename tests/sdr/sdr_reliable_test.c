/* SPDX-License-Identifier: BSD-2-Clause */
/* What all reliable layers have in common; ctest runs it on a network that loses, doubles and reorders. */
/* 512 packets, so that groups may be wide. */
#define ENDS_MESSAGE_LOG 17
#include "layers.h"
#include "support/test.h"

/* Threads send and answer, and the program only asks whether it is done. */
TEST(workers_repeat_code_and_acknowledge)
{
	for (int layer = 0; layer < LAYERS; layer++) {
		struct ends e;

		ends_make(&e, ends_attr(2), 2);
		for (uint32_t n = 0; n < 8; n++)
			layer_exchange(layer, &e, NULL, MESSAGE - n, n);
		ends_destroy(&e);
	}
}

/* Two at a time, of any two layers: numbers and words do not get mixed up. */
CASE(messages_of_all_layers_may_come_in_turn)
{
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, MESSAGE);
	struct verbena_sdr_recv recv[2];
	struct verbena_sdr_send send[2];

	for (uint32_t n = 0; n < LAYERS * LAYERS; n++) {
		int layer[2] = {(int)(n / LAYERS), (int)(n % LAYERS)};

		fill(e, n);
		for (uint32_t i = 0; i < 2; i++)
			AWAIT(e, layers[layer[i]].post(e, i, MESSAGE, NULL, &recv[i]) == VERBENA_SDR_SUCCESS);
		for (int i = 0; i < 2; i++)
			AWAIT(e, layers[layer[i]].send(e->from, &b, NULL, &send[i]) == VERBENA_SDR_SUCCESS);
		for (int i = 0; i < 2; i++)
			AWAIT(e, layer_whole(layer[i], &recv[i]));
		for (int i = 0; i < 2; i++) {
			assert_memory_equal(e->sink + i * MESSAGE, e->source, MESSAGE);
			assert_int_equal(verbena_sdr_recv_complete(&recv[i]), VERBENA_SDR_SUCCESS);
		}
		for (int i = 0; i < 2; i++)
			AWAIT(e, layer_done(layer[i], &send[i]));
	}
}

/* Before the send and after it: a receive that ends before the message is there ends the send, too. */
CASE(a_receive_given_up_ends_the_send)
{
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, MESSAGE);
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	bool done;

	for (int i = 0; i < 2 * LAYERS; i++) {
		int layer = i / 2;

		AWAIT(e, layers[layer].post(e, 0, MESSAGE, NULL, &recv) == VERBENA_SDR_SUCCESS);
		settle(e);
		if (i % 2)
			assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
		AWAIT(e, layers[layer].send(e->from, &b, NULL, &send) == VERBENA_SDR_SUCCESS);
		if (!(i % 2))
			assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
		AWAIT(e, layers[layer].poll(&send, &done) == VERBENA_SDR_ERROR);
		assert_int_equal(errno, ECONNABORTED);
		assert_int_equal(layers[layer].poll(&send, &done), VERBENA_SDR_ERROR);
		assert_int_equal(errno, EINVAL);
		layer_exchange(layer, e, NULL, MESSAGE, 1);
	}
}

/* Nobody acknowledges two plain receives: the sender's time runs out, and the next message is not disturbed. */
CASE(a_silent_peer_times_out)
{
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, MESSAGE);
	struct verbena_sdr_sr_attr sr;
	struct verbena_sdr_ec_attr ec;
	struct verbena_sdr_tail_attr tail;
	const void *attr[LAYERS] = {&sr, &ec, &tail};

	verbena_sdr_sr_attr_init(&sr);
	verbena_sdr_ec_attr_init(&ec);
	verbena_sdr_tail_attr_init(&tail);
	sr.timeout_ns = ec.timeout_ns = tail.timeout_ns = 300000000;
	for (int layer = 0; layer < LAYERS; layer++) {
		struct verbena_sdr_recv recv[2];
		struct verbena_sdr_send send;
		int parts = layer == LAYER_SR ? 1 : 2;
		bool done;

		for (int i = 0; i < parts; i++)
			AWAIT(e, recv_post(e, (uint32_t)i, MESSAGE, &recv[i]) == VERBENA_SDR_SUCCESS);
		AWAIT(e, layers[layer].send(e->from, &b, attr[layer], &send) == VERBENA_SDR_SUCCESS);
		AWAIT(e, layers[layer].poll(&send, &done) == VERBENA_SDR_ERROR);
		assert_int_equal(errno, ETIMEDOUT);
		for (int i = 0; i < parts; i++)
			assert_int_equal(verbena_sdr_recv_complete(&recv[i]), VERBENA_SDR_SUCCESS);
		layer_exchange(layer, e, NULL, MESSAGE, 2);
	}
}
