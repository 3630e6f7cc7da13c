/* SPDX-License-Identifier: BSD-2-Clause */
/* What trims cut: the window of their path, or that of all paths of the pair. */
#include "support/pair_fixture.h"

/* So many packets leave on each path and every one is trimmed. */
static void trim_all(struct fixture *f, uint32_t packets)
{
	for (uint32_t i = 0; i < f->pair->path_count; i++) {
		for (uint32_t k = 0; k < packets; k++)
			path_sent(&f->table.config, f->pair, i, PACKET, start_ns);
	}
	for (uint32_t i = 0; i < f->pair->path_count; i++) {
		for (uint32_t k = 0; k < packets; k++) {
			path_trimmed(f->pair, i, PACKET, start_ns);
			path_lost(f->pair, i, PACKET, start_ns);
		}
	}
}

static void a_trim_cuts_its_path_and_no_other(void **state)
{
	struct fixture f;
	uint64_t before, window;

	start(&f, 2, CC_SWIFT);
	before = f.pair->path[1].cc.cwnd_bytes;
	window = f.pair->window_bytes;
	for (uint32_t i = 0; i < 2; i++)
		path_sent(&f.table.config, f.pair, i, PACKET, start_ns);
	path_trimmed(f.pair, 1, PACKET, start_ns);
	assert_true(f.pair->path[1].cc.cwnd_bytes < before);
	assert_int_equal(f.pair->path[0].cc.cwnd_bytes, before);
	assert_int_equal(f.pair->window_bytes, window);
	end(&f);
}

/* The least windows of all paths may be more than there is room for. */
static void trims_that_no_path_can_answer_shrink_the_window_of_all(void **state)
{
	uint64_t now_ns = start_ns + 1000000, window;
	uint32_t held = 0;
	struct fixture f;

	start(&f, 16, CC_SWIFT);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(f.pair->window_bytes, f.pair->buffer_bytes);
		trim_all(&f, 8);
	}
	while (held < 1000 && send(&f, PACKET))
		held++;
	assert_int_equal(held, 1);
	/* ... which opens again while nothing more is trimmed. */
	window = f.pair->window_bytes;
	for (int i = 0; i < 200; i++) {
		path_sent(&f.table.config, f.pair, 0, PACKET, now_ns);
		ack(&f, 0, 1, now_ns, now_ns + 1000);
		now_ns += 1000;
	}
	assert_true(window < PACKET && f.pair->window_bytes == f.pair->buffer_bytes);
	end(&f);
}

static void a_path_whose_packets_are_trimmed_is_not_dead(void **state)
{
	struct fixture f;

	start(&f, 2, CC_SWIFT);
	path_silent(f.pair, 0, 7, start_ns);
	path_trimmed(f.pair, 0, PACKET, start_ns);
	path_silent(f.pair, 0, 7, start_ns);
	assert_false(f.pair->path[0].down);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trim_cuts_its_path_and_no_other),
		cmocka_unit_test(trims_that_no_path_can_answer_shrink_the_window_of_all),
		cmocka_unit_test(a_path_whose_packets_are_trimmed_is_not_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
