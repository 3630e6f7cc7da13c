/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that wait for a context instead of asking it again and again, with workers and without. */
#include <poll.h>

#include "ends.h"
#include "support/test.h"

#define CASE(name) TEST_WITH(name, ends_setup, ends_teardown)

enum { LONG_MS = 60000 };

static int threads_setup(void **state)
{
	static struct ends e;

	ends_make(&e, ends_attr(2), 1);
	*state = &e;
	return 0;
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

/* Arms until there is nothing more to be done. */
static int arm(struct ends *e)
{
	int fd;

	assert_int_equal(verbena_sdr_event_fd_get(e->ctx, &fd), VERBENA_SDR_SUCCESS);
	while (verbena_sdr_event_arm(e->ctx) == VERBENA_SDR_RETRY)
		;
	return fd;
}

/* Messages of which nothing is told by calls: every step is waited for. */
static void all_arrive_by_events(struct ends *e)
{
	for (int n = 0; n < 50; n++) {
		struct verbena_sdr_block b = block(e, 0, MESSAGE);
		struct verbena_sdr_recv recv;
		struct verbena_sdr_send send;
		bool done = false;

		assert_int_equal(recv_post(e, 0, MESSAGE, &recv), VERBENA_SDR_SUCCESS);
		while (verbena_sdr_send_post(e->from, &b, NULL, &send) == VERBENA_SDR_RETRY) {
			int fd = arm(e);

			if (verbena_sdr_send_post(e->from, &b, NULL, &send) == VERBENA_SDR_SUCCESS)
				break;
			assert_true(readable(fd, LONG_MS));
		}
		for (uint32_t chunk = 0; chunk < MESSAGE / CHUNK; chunk++)
			assert_int_equal(verbena_sdr_recv_chunk_wait(&recv, chunk, LONG_MS), VERBENA_SDR_SUCCESS);
		assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
		while (!done) {
			int fd = arm(e);

			assert_int_equal(verbena_sdr_send_poll(&send, &done), VERBENA_SDR_SUCCESS);
			if (!done)
				assert_true(readable(fd, LONG_MS));
		}
	}
}

CASE(all_arrives_by_events_alone)
{
	all_arrive_by_events(*state);
}

TEST_WITH(all_arrives_by_events_alone_beside_workers, threads_setup, ends_teardown)
{
	all_arrive_by_events(*state);
}

CASE(chunk_that_does_not_come_is_waited_for_as_long_as_was_said)
{
	struct ends *e = *state;
	struct verbena_sdr_recv recv;
	const uint8_t *bitmap;
	struct timespec before, after;
	size_t bytes;

	assert_int_equal(recv_post(e, 0, MESSAGE, &recv), VERBENA_SDR_SUCCESS);
	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(verbena_sdr_recv_chunk_wait(&recv, 1, 50), VERBENA_SDR_RETRY);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >= 49);
	assert_int_equal(verbena_sdr_recv_bitmap_get(&recv, &bitmap, &bytes), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_recv_chunk_wait(&recv, (uint32_t)bytes * 8, 0), VERBENA_SDR_ERROR);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_recv_chunk_wait(&recv, 0, 0), VERBENA_SDR_ERROR);
}

CASE(timer_of_a_message_is_an_event)
{
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, MESSAGE);
	struct verbena_sdr_sr_attr attr;
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	bool done = false;
	int r;

	verbena_sdr_sr_attr_init(&attr);
	attr.timeout_ns = 200000000;
	/* The receive is never acknowledged, so the message fails by its timer alone. */
	assert_int_equal(recv_post(e, 0, MESSAGE, &recv), VERBENA_SDR_SUCCESS);
	AWAIT(e, verbena_sdr_sr_send(e->from, &b, &attr, &send) == VERBENA_SDR_SUCCESS);
	for (;;) {
		int fd = arm(e);

		r = verbena_sdr_sr_poll(&send, &done);
		if (r || done)
			break;
		assert_true(readable(fd, LONG_MS));
	}
	assert_int_equal(r, VERBENA_SDR_ERROR);
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	settle(e);
}

CASE(nothing_where_something_is_needed_is_refused)
{
	struct ends *e = *state;
	int fd;

	assert_int_equal(verbena_sdr_event_fd_get(NULL, &fd), VERBENA_SDR_ERROR);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(verbena_sdr_event_fd_get(e->ctx, NULL), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_event_arm(NULL), VERBENA_SDR_ERROR);
	assert_int_equal(verbena_sdr_recv_chunk_wait(NULL, 0, 0), VERBENA_SDR_ERROR);
}
