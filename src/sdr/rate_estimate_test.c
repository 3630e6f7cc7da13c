/* SPDX-License-Identifier: BSD-2-Clause */
/* Rates of a device that gives packets back in lists, waits, and is waited for. */
#include "sdr/rate_estimate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Lists of 8, every `list_ns`, for `ns`; returns when it ends. */
static uint64_t send(struct rate_estimate *e, uint64_t now_ns, uint64_t list_ns, uint64_t ns)
{
	rate_estimate_note(e, 0, true, now_ns);
	for (uint64_t end_ns = now_ns + ns; now_ns < end_ns;) {
		now_ns += list_ns;
		rate_estimate_note(e, 8, now_ns < end_ns, now_ns);
	}
	return now_ns;
}

static void near(double got, double expected)
{
	assert_true(fabs(got - expected) < 0.01 * expected);
}

static void a_busy_device_shows_its_rate(void **state)
{
	struct rate_estimate e = {0};

	assert_true(e.pps == 0);
	send(&e, 5, 8000, 1500000);
	assert_true(e.pps == 0); /* too short */
	send(&e, 2000000, 8000, 3000000);
	near(e.pps, 1e6);
}

/* Bursts of 0.4 ms, and 10 ms between them. */
static void pauses_do_not_count(void **state)
{
	struct rate_estimate e = {0};
	uint64_t now_ns = 1;

	for (int i = 0; i < 10; i++)
		now_ns = send(&e, now_ns + 10000000, 8000, 400000);
	near(e.pps, 1e6);
}

static void too_few_packets_say_nothing(void **state)
{
	struct rate_estimate e = {0};

	send(&e, 1, 1000000, 7000000); /* 56 in 7 ms */
	assert_true(e.pps == 0);
	send(&e, 8000000, 1000000, 1000000);
	near(e.pps, 8000);
}

/* Half of the way up each time, and a sixteenth of the way down. */
static void a_higher_rate_is_believed_sooner(void **state)
{
	struct rate_estimate e = {0};
	uint64_t now_ns = send(&e, 1, 8000, 2000000);

	near(e.pps, 1e6);
	now_ns = send(&e, now_ns, 4000, 2000000);
	near(e.pps, 1.5e6);
	send(&e, now_ns, 16000, 2000000);
	near(e.pps, 1.4375e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_busy_device_shows_its_rate),
		cmocka_unit_test(pauses_do_not_count),
		cmocka_unit_test(too_few_packets_say_nothing),
		cmocka_unit_test(a_higher_rate_is_believed_sooner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
