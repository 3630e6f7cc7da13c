/* SPDX-License-Identifier: BSD-2-Clause */
/* Management datagrams between two nics, and other packets to QPN 1. */

#include "base/byteorder.h"
#include "nic/nic.h"
#include "support/test.h"
#include "wire/cm_golden.h"
#include "wire/icrc.h"

static struct nic *a, *b;

static void *get(void *ctx, size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	return p ? memset(p, 0, bytes) : NULL;
}

static void put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

static struct flow a_to_b(void)
{
	struct flow f = {.ttl = 64};

	memcpy(f.src, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1", 16);
	memcpy(f.dst, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\2", 16);
	return f;
}

static int setup(void **state)
{
	struct nic_config *c = calloc(1, sizeof(*c));

	c->alloc = (struct alloc){.get = get, .put = put};
	c->transport.sport_ipv4[0] = 49152;
	c->transport.window_bytes = 65536;
	a = nic_create(c);
	c->qpn_slot = 3;
	b = nic_create(c);
	free(c);
	assert_non_null(a);
	assert_non_null(b);
	return 0;
}

static int teardown(void **state)
{
	nic_destroy(a);
	nic_destroy(b);
	return 0;
}

TEST_WITH(a_mad_arrives_as_it_was_sent, setup, teardown)
{
	struct flow flow = a_to_b(), came;
	uint8_t mad[MAD_LEN];
	struct pkt burst[4];

	assert_int_equal(nic_output(a, burst, 4, 0), 0);
	assert_true(nic_mad_send(a, &flow, linux_req));
	assert_true(nic_mad_send(a, &flow, linux_rep));
	assert_int_equal(nic_deadline(a), 0);
	assert_int_equal(nic_output(a, burst, 4, 0), 2);
	assert_true(nic_deadline(a) > 0);
	for (int i = 0; i < 2; i++) {
		/* As Linux's soft RoCE sends them: 280 bytes with Q_Key, QPN 1 to QPN 1, PSNs in sequence. */
		static const uint8_t head[20] = {0x64, 0x40, 0xff, 0xff, 0, 0, 0, 1, 0, 0,
						 0,    0,    0x80, 0x01, 0, 0, 0, 0, 0, 1};
		uint8_t expect[20];

		memcpy(expect, head, sizeof(head));
		expect[11] = (uint8_t)i;
		assert_int_equal(burst[i].len, 280);
		assert_memory_equal(burst[i].data, expect, sizeof(expect));
		assert_int_equal(burst[i].flow->sport, 49152);
		assert_int_equal(burst[i].flow->dport, 4791);
		assert_int_equal(nic_input(b, &burst[i], 1, 0), 1);
	}
	assert_true(nic_mad_take(b, &came, mad));
	assert_memory_equal(mad, linux_req, MAD_LEN);
	assert_memory_equal(came.src, flow.src, 16);
	assert_memory_equal(came.dst, flow.dst, 16);
	assert_true(nic_mad_take(b, &came, mad));
	assert_memory_equal(mad, linux_rep, MAD_LEN);
	assert_false(nic_mad_take(b, &came, mad));
}

/* A packet of nic a with one byte changed and a new ICRC: whether nic b accepts it. */
static bool is_taken(size_t at, uint8_t value, uint32_t cut)
{
	struct flow flow = a_to_b(), came;
	uint8_t mad[MAD_LEN], bytes[512] = {0};
	struct pkt p;

	assert_true(nic_mad_send(a, &flow, linux_req));
	assert_int_equal(nic_output(a, &p, 1, 0), 1);
	memcpy(bytes, p.data, p.len);
	bytes[at] = value;
	p.data = bytes;
	p.len -= cut;
	icrc_seal(NULL, &p, 0);
	nic_input(b, &p, 1, 0);
	return nic_mad_take(b, &came, mad);
}

TEST_WITH(what_is_no_mad_is_dropped, setup, teardown)
{
	assert_true(is_taken(0, 0x64, 0));
	assert_true(is_taken(2, 0x7f, 0));  /* a limited member's P_Key */
	assert_false(is_taken(3, 0xfe, 0)); /* another P_Key */
	assert_false(is_taken(0, 0x65, 4)); /* with immediate data */
	assert_false(is_taken(0, 0x04, 0)); /* not UD */
	assert_false(is_taken(7, 2, 0));    /* another QPN */
	assert_false(is_taken(12, 0, 0));   /* another Q_Key */
	assert_false(is_taken(19, 2, 0));   /* from another QPN */
	assert_false(is_taken(0, 0x64, 4)); /* short */
	assert_int_equal(nic_counters(b)->rx_dropped, 0);
}

/* One that is not whole takes nothing else of its call with it. */
TEST_WITH(the_whole_packets_of_a_call_are_taken, setup, teardown)
{
	struct flow flow = a_to_b(), came;
	uint8_t mad[MAD_LEN], changed[512];
	struct pkt burst[3];

	for (int i = 0; i < 3; i++)
		assert_true(nic_mad_send(a, &flow, i == 2 ? linux_rep : linux_req));
	assert_int_equal(nic_output(a, burst, 3, 0), 3);
	memcpy(changed, burst[1].data, burst[1].len);
	changed[40] ^= 1;
	burst[1].data = changed;
	assert_int_equal(nic_input(b, burst, 3, 0), 2);
	assert_true(nic_mad_take(b, &came, mad));
	assert_memory_equal(mad, linux_req, MAD_LEN);
	assert_true(nic_mad_take(b, &came, mad));
	assert_memory_equal(mad, linux_rep, MAD_LEN);
	assert_false(nic_mad_take(b, &came, mad));
}

TEST_WITH(a_flood_is_bounded, setup, teardown)
{
	struct flow flow = a_to_b();
	uint32_t sent = 0;

	while (sent < 100000 && nic_mad_send(a, &flow, linux_req))
		sent++;
	assert_in_range(sent, 100, 10000);
	for (struct pkt burst[64];;) {
		size_t n = nic_output(a, burst, 64, 0);

		if (!n)
			break;
		nic_input(b, burst, n, 0);
	}
	assert_true(nic_mad_send(a, &flow, linux_req));
	struct pkt p;

	assert_int_equal(nic_output(a, &p, 1, 0), 1);
	nic_input(b, &p, 1, 0);
	assert_int_equal(nic_counters(b)->rx_dropped, 1);
}
