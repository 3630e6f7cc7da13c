/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/int_stack.h"

#include "base/prng.h"
#include "support/test.h"

#define GBPS UINT64_C(1000000000)

TEST(a_hop_survives_in_the_units_of_its_fields)
{
	static const struct {
		uint64_t rate_bps, m;
	} ports[] = {{GBPS, 1},       {10 * GBPS, 1},  {25 * GBPS, 1},   {40 * GBPS, 1},   {50 * GBPS, 2},
		     {100 * GBPS, 4}, {200 * GBPS, 8}, {400 * GBPS, 16}, {800 * GBPS, 32}, {1600 * GBPS, 64}};

	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		struct int_hop h = {.rate_bps = ports[i].rate_bps,
				    .ts_ns = 0x123456,
				    .tx_bytes = 1000 * 128 * ports[i].m + 127,
				    .qlen_bytes = (uint32_t)(70 * 80 * ports[i].m + 79)};
		struct int_hop got = int_hop_unpack(int_hop_pack(&h));

		assert_true(int_rate_is_known(h.rate_bps));
		assert_int_equal(got.rate_bps, h.rate_bps);
		assert_int_equal(got.ts_ns, 0x123456);
		assert_int_equal(got.tx_bytes, 1000 * 128 * ports[i].m);
		assert_int_equal(got.qlen_bytes, 70 * 80 * ports[i].m);
	}
}

TEST(the_fields_lie_where_the_picture_says)
{
	struct int_hop h = {.rate_bps = 25 * GBPS, .ts_ns = 0xabcdef, .tx_bytes = 0x54321 * 128};

	h.qlen_bytes = 0x1234 * 80;
	assert_int_equal(int_hop_pack(&h) & 0x0fffffffffffffff, 0x0abcdef543211234);
	h = (struct int_hop){.ts_ns = 1 << 24, .tx_bytes = (1 << 20) * 128};
	assert_int_equal(int_hop_pack(&h), 0);
}

TEST(a_speed_without_a_code_is_told_as_the_next_lower)
{
	struct int_hop h = {.rate_bps = 99 * GBPS};

	assert_false(int_rate_is_known(h.rate_bps));
	assert_int_equal(int_hop_unpack(int_hop_pack(&h)).rate_bps, 50 * GBPS);
	h.rate_bps = UINT64_MAX;
	assert_int_equal(int_hop_unpack(int_hop_pack(&h)).rate_bps, 1600 * GBPS);
	h.rate_bps = 1;
	assert_int_equal(int_hop_unpack(int_hop_pack(&h)).rate_bps, 0);
	assert_false(int_rate_is_known(0));
}

TEST(a_long_queue_saturates)
{
	struct int_hop h = {.rate_bps = 25 * GBPS, .qlen_bytes = UINT32_MAX};

	assert_int_equal(int_hop_unpack(int_hop_pack(&h)).qlen_bytes, 65535 * 80);
}

TEST(differences_are_right_across_a_wrap)
{
	struct prng prng;

	prng_init(&prng, 5);
	for (int i = 0; i < 10000; i++) {
		static const uint64_t rates[] = {10 * GBPS, 25 * GBPS, 100 * GBPS, 400 * GBPS};
		uint64_t rate = rates[prng_below(&prng, 4)], m = rate / (25 * GBPS);
		uint64_t unit = 128 * (m ? m : 1);
		struct int_hop a = {.rate_bps = rate, .ts_ns = prng_below(&prng, 1 << 30)}, b = a;
		uint64_t dt = prng_below(&prng, INT_WRAP_NS), dtx = prng_below(&prng, 1 << 20);

		a.tx_bytes = prng_below(&prng, 1 << 30) * unit;
		b.ts_ns = a.ts_ns + dt;
		b.tx_bytes = a.tx_bytes + dtx * unit;
		a = int_hop_unpack(int_hop_pack(&a));
		b = int_hop_unpack(int_hop_pack(&b));
		assert_int_equal(int_ts_diff_ns(&b, &a), dt);
		assert_int_equal(int_tx_diff_bytes(&b, &a), dtx * unit);
	}
}

TEST(a_stack_takes_eight_hops_and_tells_paths_apart)
{
	struct int_hop h = {.rate_bps = 100 * GBPS};
	struct int_stack s, t;

	int_stack_init(&s);
	int_stack_init(&t);
	for (uint32_t i = 0; i < INT_HOPS_MAX; i++) {
		assert_true(int_stack_push(&s, &h, 0x1000 | i));
		assert_true(int_stack_push(&t, &h, i == 3 ? 77 : i));
	}
	assert_int_equal(s.path_id, 0 ^ 1 ^ 2 ^ 3 ^ 4 ^ 5 ^ 6 ^ 7);
	assert_int_not_equal(s.path_id, t.path_id);
	assert_false(int_stack_push(&s, &h, 9));
	assert_int_equal(s.hops, INT_HOPS_MAX);
}

TEST(bytes_are_those_of_the_header_and_no_more_hops_than_it_says)
{
	struct int_hop h = {.rate_bps = 25 * GBPS, .ts_ns = 0xabcdef, .tx_bytes = 128, .qlen_bytes = 160};
	uint8_t buf[INT_LEN_MAX];
	struct int_stack s, got;

	int_stack_init(&s);
	assert_true(int_stack_push(&s, &h, 0x345));
	assert_int_equal(int_stack_encode(buf, &s), 10);
	assert_memory_equal(buf, "\x13\x45\x6a\xbc\xde\xf0\x00\x01\x00\x02", 10);
	memset(&got, 0xff, sizeof(got));
	assert_int_equal(int_stack_decode(&got, buf, 10), 10);
	assert_memory_equal(&got, &s, offsetof(struct int_stack, hops));
	assert_int_equal(got.hops, 1);
	for (size_t len = 0; len < 10; len++)
		assert_int_equal(int_stack_decode(&got, buf, len), 0);
	buf[0] = 0x93; /* nine hops */
	memset(buf + 1, 0, sizeof(buf) - 1);
	assert_int_equal(int_stack_decode(&got, buf, sizeof(buf)), 0);
	assert_int_equal(int_stack_len(5), 42);
}
