/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/channel.h"
#include "support/sim_checks.h"
#include "support/test.h"

enum { DONE_MAX = 64 };

static struct {
	struct network *net;
	struct host *host[2];
	struct host_config config;
	struct cc_params cc;
	struct message_post *done[DONE_MAX]; /* messages in the order of their completion */
	uint32_t arrived[DONE_MAX];          /* immediates */
	unsigned done_count, arrived_count, pieces, bad;
	bool arrived_first; /* no completion was reported before */
} t;

static void completed(void *ctx, struct channel *c, uint64_t wr_id, uint64_t bytes, bool good)
{
	struct message_post *m;
	bool done;

	assert_ptr_equal(ctx, &t);
	m = channel_completed(c, wr_id, &bytes, &done);
	t.pieces++;
	t.bad += !good;
	if (done)
		t.done[t.done_count++ % DONE_MAX] = m;
}

static void received(void *ctx, uint32_t imm)
{
	assert_ptr_equal(ctx, &t);
	if (!t.arrived_count)
		t.arrived_first = !t.done_count;
	t.arrived[t.arrived_count++ % DONE_MAX] = imm;
}

static int setup(void **state)
{
	struct network_config net;
	struct topology star;

	memset(&t, 0, sizeof(t));
	network_config_init(&net);
	net.check = true;
	tree_star(&star, 2, G100, US);
	t.net = must_create(&star, &net);
	cc_params_default(&t.cc, CC_NONE);
	t.config = (struct host_config){
		.seed = 7,
		.mtu_bytes = 1000,
		.data_class = 3,
		.credits = 4,
		.timeout = 6,
		.completed = completed,
		.received = received,
		.ctx = &t,
		.nic = {.transport.protocol = PROTOCOL_ROCEV2,
			.transport.cc.params = &t.cc,
			.transport.window_bytes = 1 << 30,
			.qpn_bits = 4},
	};
	for (uint32_t i = 0; i < 2; i++) {
		t.host[i] = host_create(t.net, i, &t.config);
		assert_non_null(t.host[i]);
	}
	return 0;
}

static int teardown(void **state)
{
	host_destroy(t.host[0]);
	host_destroy(t.host[1]);
	assert_int_equal(network_packets(t.net)->lent, 0);
	network_destroy(t.net);
	return 0;
}

static struct channel *open_channel(uint32_t piece_bytes)
{
	struct channel *c = channel_open(t.host[0], t.host[1], piece_bytes);

	assert_non_null(c);
	assert_null(channel_owner(c));
	assert_true(channel_is_idle(c));
	return c;
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(messages_complete_in_the_order_posted)
{
	struct channel *c = open_channel(CHANNEL_PIECE_BYTES_MAX);
	struct message_post m[20];

	for (unsigned i = 0; i < 20; i++) {
		m[i] = (struct message_post){.bytes = 1 + 777 * ((i * 7) % 20)};
		channel_post(c, &m[i]);
		assert_false(channel_is_idle(c));
	}
	must_end(t.net);
	assert_int_equal(t.done_count, 20);
	for (unsigned i = 0; i < 20; i++)
		assert_ptr_equal(t.done[i], &m[i]);
	assert_int_equal(t.arrived_count, 0);
	assert_true(channel_is_idle(c));
	channel_close(c);
}

CASE(a_long_message_goes_in_pieces)
{
	struct channel *c = open_channel(3000);
	struct message_post a = {.bytes = 100000, .imm = 1, .notify = true}, b = {.bytes = 3000};

	channel_post(c, &a);
	channel_post(c, &b);
	must_end(t.net);
	assert_int_equal(t.pieces, 34 + 1);
	assert_int_equal(t.done_count, 2);
	assert_int_equal(a.completed, 100000);
	/* One message, so one report. */
	assert_int_equal(t.arrived_count, 1);
	channel_close(c);
}

CASE(arrivals_are_reported_before_the_sender_knows)
{
	struct channel *c = open_channel(CHANNEL_PIECE_BYTES_MAX);
	struct message_post m[30];

	/* More than there are credits. */
	for (unsigned i = 0; i < 30; i++) {
		m[i] = (struct message_post){.bytes = 500, .imm = 1000 + i, .notify = true};
		channel_post(c, &m[i]);
	}
	must_end(t.net);
	assert_true(t.arrived_first);
	assert_int_equal(t.arrived_count, 30);
	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(t.arrived[i], 1000 + i);
	assert_int_equal(t.done_count, 30);
	channel_close(c);
}

CASE(progress_grows_to_the_whole)
{
	struct channel *c = open_channel(20000);
	struct message_post m = {.bytes = 100000};
	const struct message_post *oldest;
	uint64_t last = 0, steps = 0;

	channel_post(c, &m);
	while (!t.done_count) {
		uint64_t now;

		network_run(t.net, network_now_ps(t.net) + US / 2, UINT64_MAX);
		now = channel_progress(c, &oldest);
		if (t.done_count)
			break;
		assert_ptr_equal(oldest, &m);
		assert_in_range(now, last, 100000);
		steps += now > last;
		last = now;
	}
	assert_true(steps >= 5);
	assert_int_equal(channel_progress(c, &oldest), 0);
	assert_null(oldest);
	channel_close(c);
}

/* In the middle of a transfer, too: packets under way do no harm. */
CASE(a_channel_may_close_at_any_time)
{
	for (uint64_t at_ps = 0; at_ps < 20 * US; at_ps += 777777) {
		struct channel *c = open_channel(5000);
		struct message_post m = {.bytes = 100000, .notify = true};

		channel_post(c, &m);
		network_run(t.net, network_now_ps(t.net) + at_ps, UINT64_MAX);
		channel_close(c);
		must_end(t.net);
	}
	assert_int_equal(nic_counters(host_nic(t.host[0]))->qps, 0);
	assert_int_equal(nic_counters(host_nic(t.host[1]))->qps, 0);
}

CASE(a_break_completes_everything_that_was_posted)
{
	struct channel *c = open_channel(1000);
	struct message_post m[10];

	assert_int_equal(network_link_down(t.net, 0, 0), 0);
	for (unsigned i = 0; i < 10; i++) {
		m[i] = (struct message_post){.bytes = 10000};
		channel_post(c, &m[i]);
	}
	must_end(t.net);
	assert_int_equal(t.done_count, 10);
	assert_int_equal(t.bad, 100);
	assert_true(channel_is_idle(c));
	channel_close(c);
}

/* 2^4 numbers, some of which are unused. */
CASE(numbers_run_out_and_come_back)
{
	struct channel *c[16];
	unsigned n = 0;

	while (n < 16 && (c[n] = channel_open(t.host[0], t.host[1], 1000)))
		n++;
	assert_in_range(n, 14, 16);
	channel_close(c[--n]);
	c[n] = channel_open(t.host[0], t.host[1], 1000);
	assert_non_null(c[n]);
	for (unsigned i = 0; i <= n; i++)
		channel_close(c[i]);
}
