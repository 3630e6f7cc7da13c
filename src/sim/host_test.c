/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/int_stack.h"
#include "sim/channel.h"
#include "support/sim_checks.h"
#include "support/test.h"
#include "wire/opcode.h"
#include "wire/rocev2.h"
#include "wire/veroce.h"

enum { HOSTS = 4, SEEN_MAX = 4096 };

struct seen {
	uint64_t time_ps;
	uint32_t wire_bytes, src;
	uint16_t sport, flags;
	uint8_t class, opcode;
	bool int_stack;
};

static struct {
	struct network *net;
	struct host *host[HOSTS];
	struct host_config config;
	struct cc_params cc;
	unsigned good, bad;
	struct seen seen[SEEN_MAX];
	unsigned seen_count;
	unsigned while_paused[2]; /* answers, data */
} t;

static void completed(void *ctx, struct channel *c, uint64_t wr_id, uint64_t bytes, bool good)
{
	bool done;

	(void)ctx;
	(void)bytes;
	channel_completed(c, wr_id, &bytes, &done);
	t.good += good;
	t.bad += !good;
}

static void received(void *ctx, uint32_t imm)
{
	(void)ctx;
	(void)imm;
}

static bool is_paused(unsigned host)
{
	struct network_port_counts n;

	assert_true(network_count_port(t.net, host, 0, &n));
	return n.pauses_received > n.resumes_received;
}

static void see(void *context, const struct packet *p, uint64_t now_ps)
{
	const uint8_t *body = p->body;

	(void)context;
	if (p->flags & PACKET_PAUSE)
		return;
	if (is_paused(0))
		t.while_paused[!!(p->flags & PACKET_DATA)]++;
	if (t.seen_count < SEEN_MAX)
		t.seen[t.seen_count++] = (struct seen){now_ps,   p->wire_bytes, p->src,  p->sport,
						       p->flags, p->class,      body[0], p->int_stack};
}

/* A star; the test sees what host 0 sends. */
static void start(enum protocol protocol, const struct network_config *network)
{
	struct topology star;

	memset(&t, 0, sizeof(t));
	tree_star(&star, HOSTS, G100, US);
	t.net = must_create(&star, network);
	cc_params_default(&t.cc, CC_NONE);
	t.config = (struct host_config){
		.seed = 1,
		.mtu_bytes = 1024,
		.data_class = 3,
		.credits = 16,
		.timeout = 6,
		.completed = completed,
		.received = received,
		.nic =
			{
				.transport.protocol = protocol,
				.transport.cc.params = &t.cc,
				.transport.paths = protocol == PROTOCOL_VEROCE ? 16 : 1,
				.transport.veroce.flowlet_packets = 1,
				.transport.window_bytes = 1 << 30,
				.qpn_bits = 8,
			},
	};
	assert_int_equal(network_tap_port(t.net, 0, 0, see, NULL), 0);
}

/* After the test has changed the configuration. */
static void start_hosts(void)
{
	for (uint32_t i = 0; i < HOSTS; i++) {
		t.host[i] = host_create(t.net, i, &t.config);
		assert_non_null(t.host[i]);
		assert_int_equal(host_index(t.host[i]), i);
	}
}

static void stop(void)
{
	for (uint32_t i = 0; i < HOSTS; i++)
		host_destroy(t.host[i]);
	assert_int_equal(network_packets(t.net)->lent, 0);
	network_destroy(t.net);
}

static struct network_config plain(void)
{
	struct network_config c;

	network_config_init(&c);
	c.check = true;
	return c;
}

/* Runs one message from a host to another to its end. */
static void transfer(unsigned from, unsigned to, uint64_t bytes)
{
	struct message_post m = {.bytes = bytes};
	struct channel *c = channel_open(t.host[from], t.host[to], CHANNEL_PIECE_BYTES_MAX);

	assert_non_null(c);
	channel_post(c, &m);
	must_end(t.net);
	assert_true(channel_is_idle(c));
	channel_close(c);
}

static unsigned count(uint16_t flag, bool with)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t.seen_count; i++)
		n += !!(t.seen[i].flags & flag) == with;
	return n;
}

/* ---- packets ------------------------------------------------------------------------------------------- */

TEST(a_packet_weighs_what_it_weighs_on_ethernet)
{
	struct network_config net = plain();

	start(PROTOCOL_ROCEV2, &net);
	start_hosts();
	transfer(0, 1, 2 * 1024 + 5);
	assert_int_equal(t.good, 1);
	assert_int_equal(t.seen_count, 3);
	/* BTH 12, ICRC 4, and 66 around; RETH 16 in the first; padded to 4 */
	assert_int_equal(t.seen[0].wire_bytes, 1024 + 16 + 66 + 16);
	assert_int_equal(t.seen[1].wire_bytes, 1024 + 16 + 66);
	assert_int_equal(t.seen[2].wire_bytes, 8 + 16 + 66);
	assert_int_equal(host_packet_wire_bytes(&t.config), t.seen[1].wire_bytes);
	stop();
}

TEST(a_scenario_may_say_what_packets_weigh)
{
	struct network_config net = plain();

	net.int_stamp = true;
	start(PROTOCOL_ROCEV2, &net);
	t.config.header_bytes = 48;
	t.config.ack_bytes = 60;
	t.config.int_bytes = 42;
	t.config.telemetry = true;
	start_hosts();
	transfer(0, 1, 2 * 1024 + 5);
	assert_int_equal(t.seen_count, 3);
	assert_int_equal(t.seen[0].wire_bytes, 1024 + 48 + 42);
	assert_int_equal(t.seen[2].wire_bytes, 5 + 48 + 42);
	assert_true(t.seen[0].int_stack);
	assert_int_equal(host_packet_wire_bytes(&t.config), 1024 + 48 + 42);
	t.seen_count = 0;
	transfer(1, 0, 1000);
	assert_int_equal(t.seen_count, 1);
	assert_int_equal(t.seen[0].opcode, OP_RC_ACK);
	assert_int_equal(t.seen[0].wire_bytes, 60);
	stop();
}

TEST(answers_go_in_the_class_that_they_are_to)
{
	struct network_config net = plain();

	for (int data_class = 0; data_class < 2; data_class++) {
		start(PROTOCOL_ROCEV2, &net);
		t.config.ack_in_data_class = data_class;
		start_hosts();
		transfer(0, 1, 1000);
		transfer(1, 0, 1000);
		assert_int_equal(t.seen_count, 2);
		assert_int_equal(t.seen[0].class, 3);
		assert_int_equal(t.seen[1].class, data_class ? 3 : PACKET_CONTROL_CLASS);
		assert_int_equal(t.seen[1].flags & (PACKET_DATA | PACKET_ECT), 0);
		stop();
	}
}

TEST(a_channel_may_have_a_class_of_its_own)
{
	static const enum protocol protocols[] = {PROTOCOL_ROCEV2, PROTOCOL_VEROCE};
	struct network_config net = plain();

	for (int i = 0; i < 2; i++) {
		struct message_post m = {.bytes = 5000};
		struct channel *c;

		start(protocols[i], &net);
		start_hosts();
		c = channel_open_in_class(t.host[0], t.host[1], CHANNEL_PIECE_BYTES_MAX, 6);
		channel_post(c, &m);
		must_end(t.net);
		assert_true(t.seen_count >= 5);
		for (unsigned k = 0; k < t.seen_count; k++)
			assert_int_equal(t.seen[k].class, t.seen[k].flags & PACKET_DATA ? 6 : PACKET_CONTROL_CLASS);
		assert_true(channel_is_idle(c));
		channel_close(c);
		stop();
	}
}

TEST(data_is_ecn_capable_if_it_is_to_be)
{
	struct network_config net = plain();

	for (int ecn = 0; ecn < 2; ecn++) {
		start(PROTOCOL_ROCEV2, &net);
		cc_params_default(&t.cc, CC_DCQCN);
		t.config.ecn = ecn;
		start_hosts();
		transfer(0, 1, 100000);
		assert_int_equal(count(PACKET_ECT, true), ecn ? t.seen_count : 0);
		stop();
	}
}

TEST(veroce_spreads_over_source_ports_and_rocev2_does_not)
{
	static const enum protocol protocols[] = {PROTOCOL_ROCEV2, PROTOCOL_VEROCE};
	struct network_config net = plain();

	for (int i = 0; i < 2; i++) {
		uint16_t ports[SEEN_MAX];
		unsigned n = 0;

		start(protocols[i], &net);
		start_hosts();
		transfer(0, 1, 3000000);
		for (unsigned k = 0, j; k < t.seen_count; k++) {
			if (!(t.seen[k].flags & PACKET_DATA))
				continue;
			for (j = 0; j < n && ports[j] != t.seen[k].sport; j++)
				;
			if (j == n)
				ports[n++] = t.seen[k].sport;
		}
		assert_int_equal(n, i ? 16 : 1);
		stop();
	}
}

TEST(two_queue_pairs_of_rocev2_may_take_two_ways)
{
	struct network_config net = plain();
	unsigned differ = 0;

	start(PROTOCOL_ROCEV2, &net);
	start_hosts();
	for (int i = 0; i < 20; i++)
		transfer(0, 1, 100);
	assert_int_equal(t.seen_count, 20);
	for (int i = 1; i < 20; i++)
		differ += t.seen[i].sport != t.seen[0].sport;
	assert_in_range(differ, 15, 19);
	stop();
}

/* ---- PFC ----------------------------------------------------------------------------------------------- */

/*
 * Host 0 sends to host 3, as do 1 and 2, and is therefore paused. If answers have a class of their own,
 * it acknowledges data from host 3 meanwhile.
 */
TEST(a_pause_stops_data_and_not_its_answers)
{
	static const enum protocol protocols[] = {PROTOCOL_ROCEV2, PROTOCOL_VEROCE};

	for (int i = 0; i < 4; i++) {
		struct network_config net = plain();
		struct channel *c[4];
		struct message_post m[4];

		net.buffer_bytes = 1 << 20;
		net.lossless_classes = 1 << 3;
		net.pfc = NETWORK_PFC_HPCC;
		net.mtu_bytes = 1200;
		net.pause_response_ps = 0;
		start(protocols[i % 2], &net);
		t.config.ack_in_data_class = i >= 2;
		t.config.timeout = 12;
		t.config.nic.transport.veroce.rto_ns_min = 20000000;
		start_hosts();
		for (unsigned k = 0; k < 4; k++) {
			m[k] = (struct message_post){.bytes = 2000000};
			c[k] = channel_open(t.host[k], t.host[k == 3 ? 0 : 3], CHANNEL_PIECE_BYTES_MAX);
			channel_post(c[k], &m[k]);
		}
		must_end(t.net);
		assert_int_equal(t.good, 4);
		assert_int_equal(drops_of_all(t.net), 0);
		/* One packet at most was on its way out when the frame came, each time. */
		assert_int_equal(t.while_paused[1], 0);
		if (i < 2)
			assert_true(t.while_paused[0] > 10);
		else
			assert_int_equal(t.while_paused[0], 0);
		for (unsigned k = 0; k < 4; k++)
			channel_close(c[k]);
		stop();
	}
}

/* ---- failures ------------------------------------------------------------------------------------------ */

TEST(whoever_is_not_heard_breaks_the_queue_pair)
{
	static const enum protocol protocols[] = {PROTOCOL_ROCEV2, PROTOCOL_VEROCE};
	struct network_config net = plain();

	for (int i = 0; i < 2; i++) {
		start(protocols[i], &net);
		start_hosts();
		assert_int_equal(network_link_down(t.net, 1, 0), 0);
		transfer(0, 1, 5000);
		assert_int_equal(t.good, 0);
		assert_int_equal(t.bad, 1);
		/* The next message is not affected. */
		transfer(0, 2, 5000);
		assert_int_equal(t.good, 1);
		stop();
	}
}

TEST(corrupt_and_late_packets_do_no_harm)
{
	struct network_config net = plain();
	const struct network_loss corrupt = {.corrupt_ppb = 20000000};

	start(PROTOCOL_VEROCE, &net);
	start_hosts();
	assert_int_equal(network_set_loss(t.net, 0, 0, &corrupt), 0);
	assert_int_equal(network_set_jitter(t.net, 1, 1, 20 * US), 0);
	transfer(0, 1, 1000000);
	assert_int_equal(t.good, 1);
	assert_true(nic_counters(host_nic(t.host[0]))->retransmits > 0);
	stop();
}
