/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages with codes over their tails; ctest runs it on a network that loses, doubles and reorders. Every message is
 * compared byte by byte. */
/* 512 packets, so that groups may be wide. */
#define ENDS_MESSAGE_LOG 17
#include "ends.h"

static bool tail_done(const struct verbena_sdr_send *send)
{
	bool done;

	assert_int_equal(verbena_sdr_tail_poll(send, &done), VERBENA_SDR_SUCCESS);
	return done;
}

static bool tail_whole(const struct verbena_sdr_recv *recv)
{
	bool done;

	assert_int_equal(verbena_sdr_tail_recv_poll(recv, &done), VERBENA_SDR_SUCCESS);
	return done;
}

static int tail_post(struct ends *e, uint32_t buffer, size_t bytes, struct verbena_sdr_recv *recv)
{
	struct verbena_sdr_recv_attr attr = {.address = e->sink + (size_t)buffer * MESSAGE,
					     .max_length = bytes,
					     .lkey = e->sink_key};

	return verbena_sdr_tail_recv_post(e->to, &attr, 0, recv);
}

static void fill(struct ends *e, uint32_t n)
{
	for (size_t i = 0; i < MESSAGE; i++)
		e->source[i] = (uint8_t)(i * 31 + i / 256 * n + n);
	memset(e->sink + (size_t)(n % 4) * MESSAGE, 0xaa, MESSAGE);
}

static void exchange(struct ends *e, const struct verbena_sdr_tail_attr *attr, size_t bytes, uint32_t n)
{
	struct verbena_sdr_block b = block(e, 0, bytes);
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	bool done;

	fill(e, n);
	AWAIT(e, tail_post(e, n % 4, bytes, &recv) == VERBENA_SDR_SUCCESS);
	AWAIT(e, verbena_sdr_tail_send(e->from, &b, attr, &send) == VERBENA_SDR_SUCCESS);
	AWAIT(e, tail_whole(&recv));
	assert_memory_equal(e->sink + (size_t)(n % 4) * MESSAGE, e->source, bytes);
	/* At once: what the sender has not heard of by then, it asks. */
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	AWAIT(e, tail_done(&send));
	assert_int_equal(verbena_sdr_tail_poll(&send, &done), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_tail_recv_poll(&recv, &done), VERBENA_SDR_ERROR);
}

/* Long tails and short ones, loss that is told too low and too high, and more data behind the message. */
static void every_message_arrives(void **state)
{
	for (uint32_t n = 0; n < 24; n++) {
		struct verbena_sdr_tail_attr attr;

		verbena_sdr_tail_attr_init(&attr);
		attr.rate_mbps = n % 4 ? 1 << n % 12 : 0;
		attr.loss = n % 3 ? 0 : 0.001 * (n % 11);
		attr.behind = n % 5 ? 0 : UINT64_C(1) << (n + 10);
		exchange(*state, &attr, 1 + n * 3971 % MESSAGE, n);
	}
}

static void workers_code_and_acknowledge(void **state)
{
	struct ends e;

	ends_make(&e, ends_attr(2), 2);
	for (uint32_t n = 0; n < 15; n++)
		exchange(&e, NULL, MESSAGE - n, n);
	ends_destroy(&e);
}

/* Coded, repeated and tailed messages in turn: numbers and words do not get mixed up. */
static void other_messages_may_come_between(void **state)
{
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, MESSAGE);
	struct verbena_sdr_recv_attr second = {
		.address = e->sink + MESSAGE, .max_length = MESSAGE, .lkey = e->sink_key};
	struct verbena_sdr_recv recv[2];
	struct verbena_sdr_send send[2];
	bool done;

	for (uint32_t n = 0; n < 6; n++) {
		fill(e, n);
		AWAIT(e, tail_post(e, 0, MESSAGE, &recv[0]) == VERBENA_SDR_SUCCESS);
		AWAIT(e, verbena_sdr_ec_recv_post(e->to, &second, &recv[1]) == VERBENA_SDR_SUCCESS);
		AWAIT(e, verbena_sdr_tail_send(e->from, &b, NULL, &send[0]) == VERBENA_SDR_SUCCESS);
		AWAIT(e, verbena_sdr_ec_send(e->from, &b, NULL, &send[1]) == VERBENA_SDR_SUCCESS);
		AWAIT(e, tail_whole(&recv[0]));
		AWAIT(e, (verbena_sdr_ec_recv_poll(&recv[1], &done) == VERBENA_SDR_SUCCESS && done));
		assert_memory_equal(e->sink, e->source, MESSAGE);
		assert_memory_equal(e->sink + MESSAGE, e->source, MESSAGE);
		assert_int_equal(verbena_sdr_recv_complete(&recv[0]), VERBENA_SDR_SUCCESS);
		assert_int_equal(verbena_sdr_recv_complete(&recv[1]), VERBENA_SDR_SUCCESS);
		AWAIT(e, tail_done(&send[0]));
		AWAIT(e, (verbena_sdr_ec_poll(&send[1], &done) == VERBENA_SDR_SUCCESS && done));
	}
}

/* A receive that ends before the message is there ends the send, too. */
static void a_receiver_may_give_up(void **state)
{
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, MESSAGE);
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	bool done = false;
	int r;

	AWAIT(e, tail_post(e, 0, MESSAGE, &recv) == VERBENA_SDR_SUCCESS);
	AWAIT(e, verbena_sdr_tail_send(e->from, &b, NULL, &send) == VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	AWAIT(e, (r = verbena_sdr_tail_poll(&send, &done)) == VERBENA_SDR_ERROR || done);
	assert_true(r == VERBENA_SDR_ERROR && errno == ECONNABORTED);
	exchange(e, NULL, MESSAGE, 1);
}

static void a_sender_gives_up_in_time(void **state)
{
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, MESSAGE);
	struct verbena_sdr_tail_attr attr;
	struct verbena_sdr_recv_attr plain = {.address = e->sink, .max_length = MESSAGE, .lkey = e->sink_key};
	struct verbena_sdr_recv recv[2];
	struct verbena_sdr_send send;
	bool done = false;
	int r;

	/* Nobody acknowledges two plain receives. */
	verbena_sdr_tail_attr_init(&attr);
	attr.timeout_ns = 200000000;
	for (int i = 0; i < 2; i++)
		AWAIT(e, verbena_sdr_recv_post(e->to, &plain, &recv[i]) == VERBENA_SDR_SUCCESS);
	AWAIT(e, verbena_sdr_tail_send(e->from, &b, &attr, &send) == VERBENA_SDR_SUCCESS);
	AWAIT(e, (r = verbena_sdr_tail_poll(&send, &done)) == VERBENA_SDR_ERROR || done);
	assert_true(r == VERBENA_SDR_ERROR && errno == ETIMEDOUT);
	for (int i = 0; i < 2; i++)
		assert_int_equal(verbena_sdr_recv_complete(&recv[i]), VERBENA_SDR_SUCCESS);
	exchange(e, NULL, MESSAGE, 2);
}

static void wrong_calls_change_nothing(void **state)
{
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, MESSAGE);
	struct verbena_sdr_tail_attr attr;
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	double loss;
	bool done;

	AWAIT(e, tail_post(e, 0, MESSAGE, &recv) == VERBENA_SDR_SUCCESS);
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
	AWAIT(e, tail_whole(&recv));
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	AWAIT(e, tail_done(&send));
	assert_int_equal(verbena_sdr_tail_loss_get(e->from, &loss), VERBENA_SDR_SUCCESS);
	assert_true(loss > 0 && loss <= 0.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_message_arrives, ends_setup, ends_teardown),
		cmocka_unit_test(workers_code_and_acknowledge),
		cmocka_unit_test_setup_teardown(other_messages_may_come_between, ends_setup, ends_teardown),
		cmocka_unit_test_setup_teardown(a_receiver_may_give_up, ends_setup, ends_teardown),
		cmocka_unit_test_setup_teardown(a_sender_gives_up_in_time, ends_setup, ends_teardown),
		cmocka_unit_test_setup_teardown(wrong_calls_change_nothing, ends_setup, ends_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
