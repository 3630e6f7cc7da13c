/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes through a network, and when they arrive: two links of 100 Gbit/s and 1 us, one switch. */
#include "sim/outside.h"

#include <stdio.h>
#include <string.h>

#include "support/test.h"
#include "wire/opcode.h"
#include "wire/rocev2.h"

enum { BYTES = 1000, FRAME = 66, PS_A_BYTE = 80, HOSTS = 4 };

static const uint64_t link_ps = 1000000;

static struct {
	struct outside *o;
	uint32_t arrived, woken, host;
	uint64_t at_ps;
	struct flow flow;
	uint32_t len;
	uint8_t bytes[4096];
	uint16_t ip_id;
} seen;

static void arrived(void *ctx, uint32_t host, const struct pkt *pkt)
{
	seen.arrived++;
	seen.host = host;
	seen.at_ps = outside_now_ps(seen.o);
	seen.flow = *pkt->flow;
	seen.len = pkt->len;
	seen.ip_id = pkt->ip_id;
	memcpy(seen.bytes, pkt->data, pkt->len);
}

static void woken(void *ctx, uint32_t host)
{
	seen.woken++;
	seen.host = host;
	seen.at_ps = outside_now_ps(seen.o);
}

/* The last byte of an address. */
static bool host_of(void *ctx, const uint8_t gid[16], uint32_t *host)
{
	*host = gid[15];
	return gid[12] == 127;
}

static const struct outside_sink sink = {arrived, woken, host_of, NULL};

static struct outside *make(const char *more, char *why, size_t why_bytes)
{
	static struct scenario s;
	struct scenario_source *source = scenario_source_create();
	struct scenario_error e;
	char text[1024];

	snprintf(text, sizeof(text),
		 "[run]\nonly = none\n[topology]\nkind = star\nhosts = 4\n[link]\nrate = 100Gbps\ndelay = 1us\n%s",
		 more);
	assert_int_equal(scenario_source_text(source, "test.ini", text, &e), 0);
	assert_int_equal(scenario_source_settle(source, &s, &e), 0);
	scenario_source_destroy(source);
	memset(&seen, 0, sizeof(seen));
	seen.o = outside_create(&s, &sink, why, why_bytes);
	return seen.o;
}

static struct outside *open_star(void)
{
	char why[256] = "";
	struct outside *o = make("", why, sizeof(why));

	assert_string_equal(why, "");
	assert_int_equal(outside_hosts(o), HOSTS);
	return o;
}

static bool send_to(struct outside *o, uint8_t host, uint8_t opcode)
{
	static uint8_t bytes[BYTES];
	struct flow flow = {.dst = {[10] = 0xff, 0xff, 127, 0, 0, host}, .sport = 50000, .dport = ROCEV2_UDP_PORT};
	struct pkt pkt = {.data = bytes, .flow = &flow, .len = BYTES, .ip_id = 7, .train = 1};

	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(i * 7);
	bytes[0] = opcode;
	return outside_send(o, 0, &pkt);
}

/* Store and forward: twice its time on the wire, and twice the delay. */
TEST_OF(a_packet_arrives_whole_and_when_the_links_say, struct outside *, o, open_star(), outside_destroy(o))
{
	char why[256];

	assert_true(send_to(o, 2, OP_RC_SEND_ONLY));
	assert_int_equal(outside_run(o, why, sizeof(why)), OUTSIDE_TOLD);
	assert_int_equal(seen.arrived, 1);
	assert_int_equal(seen.host, 2);
	assert_true(seen.at_ps == 2 * ((BYTES + FRAME) * PS_A_BYTE + link_ps));
	assert_int_equal(seen.len, BYTES);
	assert_int_equal(seen.bytes[999], (uint8_t)(999 * 7));
	assert_int_equal(seen.flow.sport, 50000);
	assert_int_equal(seen.ip_id, 7);
	assert_int_equal(outside_run(o, why, sizeof(why)), OUTSIDE_IDLE);
}

TEST_OF(acknowledgements_overtake_data_that_waits, struct outside *, o, open_star(), outside_destroy(o))
{
	char why[256];

	for (int i = 0; i < 5; i++)
		assert_true(send_to(o, 1, OP_RC_SEND_ONLY));
	assert_true(send_to(o, 1, OP_RC_ACK));
	while (outside_run(o, why, sizeof(why)) == OUTSIDE_TOLD && seen.bytes[0] != OP_RC_ACK)
		;
	assert_in_range(seen.arrived, 1, 2); /* the first one may be on the wire */
}

TEST_OF(a_timer_tells_its_host, struct outside *, o, open_star(), outside_destroy(o))
{
	char why[256];

	outside_set_timer(o, 3, 5000);
	assert_int_equal(outside_run(o, why, sizeof(why)), OUTSIDE_TOLD);
	assert_int_equal(seen.woken, 1);
	assert_int_equal(seen.host, 3);
	assert_true(seen.at_ps == 5000);
	assert_int_equal(outside_run(o, why, sizeof(why)), OUTSIDE_IDLE);
}

/* Whatever a program sends: other ports, opcodes that are none, too few bytes for a header, no host. */
TEST_OF(any_bytes_may_be_sent, struct outside *, o, open_star(), outside_destroy(o))
{
	struct flow flow = {.dst = {[10] = 0xff, 0xff, 127, 0, 0, 1}};
	uint8_t bytes[64] = {0};
	char why[256];
	uint32_t sent = 0;

	for (int opcode = 0; opcode < 256; opcode++) {
		static const uint16_t ports[] = {ROCEV2_UDP_PORT, VEROCE_UDP_PORT, 0, 80};

		bytes[0] = (uint8_t)opcode;
		for (size_t i = 0; i < 4; i++) {
			struct pkt pkt = {.data = bytes, .flow = &flow, .len = i % 2 ? 64 : 1, .train = 1};

			flow.dport = ports[i];
			flow.sl = (uint8_t)opcode;
			sent += outside_send(o, 0, &pkt);
		}
	}
	assert_int_equal(sent, 1024);
	while (outside_run(o, why, sizeof(why)) == OUTSIDE_TOLD)
		;
	assert_int_equal(seen.arrived, sent);
	assert_false(send_to(o, HOSTS, OP_RC_SEND_ONLY));
	flow.dst[12] = 10;
	assert_false(outside_send(o, 0, &(struct pkt){.data = bytes, .flow = &flow, .len = 1, .train = 1}));
}

TEST(what_a_program_cannot_have_is_refused)
{
	char why[256] = "";

	assert_null(make("[host]\nack_delay = 1us\n", why, sizeof(why)));
	assert_string_equal(why, "host.ack_delay: not possible where programs run");
}

TEST_PROGRAM(NULL, NULL)
