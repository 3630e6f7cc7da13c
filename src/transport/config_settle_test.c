/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/test.h"
#include "transport/config.h"

static uint64_t early_bytes_of(uint32_t window_bytes, uint64_t early_bytes_max)
{
	struct transport_config c = {.window_bytes = window_bytes, .veroce.early_bytes_max = early_bytes_max};

	transport_config_settle(&c);
	return c.veroce.early_bytes_max;
}

/* Where many bytes are in flight, a packet that is lost lets many wait. */
TEST(early_packets_have_room_for_four_windows)
{
	assert_int_equal(early_bytes_of(1 << 20, 0), 64 << 20);
	assert_int_equal(early_bytes_of(16 << 20, 0), 64 << 20);
	assert_int_equal(early_bytes_of(100 << 20, 0), 400 << 20);
	assert_true(early_bytes_of(UINT32_MAX, 0) == UINT64_C(4) * UINT32_MAX);
	assert_int_equal(early_bytes_of(100 << 20, 4096), 4096);
}

TEST(what_the_owner_set_stays)
{
	struct transport_config c = {
		.paths = 3, .train_max = 5, .veroce = {.rx_window = 256, .rto_ns_min = 7, .pto_ns_min = 9}};

	transport_config_settle(&c);
	assert_int_equal(c.paths, 3);
	assert_int_equal(c.train_max, 5);
	assert_int_equal(c.veroce.rx_window, 256);
	assert_int_equal(c.veroce.rto_ns_min, 7);
	assert_int_equal(c.veroce.pto_ns_min, 9);
}
