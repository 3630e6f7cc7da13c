/* SPDX-License-Identifier: BSD-2-Clause */
#include "cc/aimd.h"
#include "support/test.h"

enum { KIB = 1024, MAX = 1024 * KIB, MIN = 32 * KIB };

/* A round trip in which all of the window is acknowledged, packet by packet. */
static void round_trip(struct aimd *c)
{
	uint32_t window = c->window_bytes;

	for (uint32_t sent = 0; sent < window; sent += KIB)
		aimd_acked(c, KIB);
}

TEST(doubles_a_round_trip_until_the_first_loss)
{
	struct aimd c;

	aimd_init(&c, MAX, MIN);
	assert_int_equal(c.window_bytes, AIMD_START_BYTES);
	for (uint32_t want = 2 * AIMD_START_BYTES; want <= MAX; want *= 2) {
		round_trip(&c);
		assert_int_equal(c.window_bytes, want);
	}
	round_trip(&c);
	assert_int_equal(c.window_bytes, MAX);
}

TEST(a_loss_halves_and_an_eighth_comes_back_a_round_trip)
{
	struct aimd c;

	aimd_init(&c, MAX, MIN);
	round_trip(&c);
	aimd_lost(&c);
	assert_int_equal(c.window_bytes, 64 * KIB);
	round_trip(&c);
	assert_int_equal(c.window_bytes, 72 * KIB);
	for (int i = 0; i < 50; i++)
		round_trip(&c);
	assert_int_equal(c.window_bytes, MAX);
}

TEST(stays_between_its_bounds)
{
	struct aimd c;

	aimd_init(&c, MAX, MIN);
	for (int i = 0; i < 40; i++)
		aimd_lost(&c);
	assert_int_equal(c.window_bytes, MIN);
	aimd_init(&c, 4 * KIB, MIN);
	assert_int_equal(c.window_bytes, MIN);
	aimd_init(&c, 48 * KIB, MIN);
	assert_int_equal(c.window_bytes, 48 * KIB);
	round_trip(&c);
	assert_int_equal(c.window_bytes, 48 * KIB);
}
