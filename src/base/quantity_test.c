/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/quantity.h"
#include "support/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct quantity_unit fibre[] = {{"km", 5, -6, 0}, {NULL, 0, 0, 0}};

static const struct quantity_form bps = {quantity_rates, NULL, 0, 0, QUANTITY_UNIT},
				  bare_bps = {quantity_rates, NULL, 0, 0, QUANTITY_NEAREST},
				  ns = {quantity_times, NULL, 9, 0, QUANTITY_UNIT},
				  near_ns = {quantity_times, NULL, 9, 0, QUANTITY_UNIT | QUANTITY_NEAREST},
				  ps = {quantity_times, fibre, 12, 0, QUANTITY_UNIT | QUANTITY_BLANK},
				  seconds = {quantity_times, NULL, 12, 0, QUANTITY_NEAREST},
				  bytes = {quantity_bytes, NULL, 0, 0, 0}, counts = {quantity_counts, NULL, 0, 0, 0},
				  ppb = {quantity_shares, NULL, 9, 0, QUANTITY_FRACTION},
				  q32 = {NULL, NULL, 0, 32, QUANTITY_FRACTION | QUANTITY_NEAREST},
				  rounded = {NULL, NULL, 0, 0, QUANTITY_NEAREST},
				  tenths = {NULL, NULL, 1, 0, QUANTITY_NEAREST};

TEST(a_quantity_is_taken_exactly)
{
	static const struct {
		const char *text;
		const struct quantity_form *form;
		uint64_t value;
	} rows[] = {
		{"10Gbps", &bps, 10000000000},
		{"2.5Gbps", &bps, 2500000000},
		{"64kbit/s", &bps, 64000},
		{"25G", &bps, 25000000000},
		{"1.000000001Gbps", &bps, 1000000001},
		{"0", &bps, 0},
		{"1e9", &bare_bps, 1000000000},
		{"300us", &ns, 300000},
		{"1500ps", &near_ns, 2},
		{"2000ps", &ns, 2},
		{"0.000001s", &ns, 1000},
		{"1.5e-3ms", &ns, 1500},
		{"2 km", &ps, 10000000},
		{"1e-6", &seconds, 1000000},
		{"64KiB", &bytes, 65536},
		{"64KB", &bytes, 64000},
		{"1.5KiB", &bytes, 1536},
		{"16TiB", &bytes, UINT64_C(16) << 40},
		{"7", &bytes, 7},
		{"3k", &counts, 3000},
		{"2Mi", &counts, 2 << 20},
		{"1%", &ppb, 10000000},
		{"0.25", &ppb, 250000000},
		{"1/3", &ppb, 333333333},
		{"2/3", &ppb, 666666667},
		{"1/16", &q32, UINT64_C(1) << 28},
		{"0.95", &q32, 4080218931},
		{"18446744073709551615", &quantity_whole, UINT64_MAX},
		{"010", &quantity_whole, 10},
		{"20.0", &counts, 20},
		{"1e3", &counts, 1000},
		{".5", &tenths, 5},
		{"5.", &tenths, 50},
		{"0.49999999999999999999999999999999999999999", &rounded, 0},
		{"0.5", &rounded, 1},
		{"100000000000000000000000000000000000000000000000000e-40", &rounded, 10000000000},
		{"0.00000000000000000000000000000000000000000000000001e50", &rounded, 1},
		{"1e-99999999999", &rounded, 0},
		{"0e99999999999", &rounded, 0},
	};
	uint64_t v;

	for (size_t i = 0; i < COUNT(rows); i++) {
		enum quantity_fault f = quantity_parse(rows[i].text, strlen(rows[i].text), rows[i].form, &v);

		if (f || v != rows[i].value)
			fail_msg("%s: %s, %llu", rows[i].text, quantity_fault_text(f), (unsigned long long)v);
	}
}

TEST(what_is_wrong_is_said_and_nothing_is_set)
{
	static const struct {
		const char *text;
		const struct quantity_form *form;
		enum quantity_fault fault;
	} rows[] = {
		{"", &bps, QUANTITY_NO_NUMBER},
		{".", &bps, QUANTITY_NO_NUMBER},
		{"-1Gbps", &bps, QUANTITY_NO_NUMBER},
		{"+1Gbps", &bps, QUANTITY_NO_NUMBER},
		{" 1Gbps", &bps, QUANTITY_NO_NUMBER},
		{"inf", &bps, QUANTITY_NO_NUMBER},
		{"Gbps", &bps, QUANTITY_NO_NUMBER},
		{"100", &bps, QUANTITY_NO_UNIT},
		{"100Gbs", &bps, QUANTITY_STRANGE_UNIT},
		{"100 Gbps", &bps, QUANTITY_STRANGE_UNIT},
		{"50mbps", &bps, QUANTITY_STRANGE_UNIT},
		{"1us", &bps, QUANTITY_STRANGE_UNIT},
		{"1e", &rounded, QUANTITY_STRANGE_UNIT},
		{"1e+", &rounded, QUANTITY_STRANGE_UNIT},
		{"1.2.3", &rounded, QUANTITY_STRANGE_UNIT},
		{"0x10", &quantity_whole, QUANTITY_STRANGE_UNIT},
		{"1.5bps", &bps, QUANTITY_TOO_FINE},
		{"1.5ns", &ns, QUANTITY_TOO_FINE},
		{"0.5", &counts, QUANTITY_TOO_FINE},
		{"1e99bps", &bps, QUANTITY_TOO_LARGE},
		{"18446744073709551616", &quantity_whole, QUANTITY_TOO_LARGE},
		{"18446744073709551616", &rounded, QUANTITY_TOO_LARGE},
		{"99999999999999999999999999999", &counts, QUANTITY_TOO_LONG},
		{"99999999999999999999999999999", &quantity_whole, QUANTITY_TOO_LARGE},
		{"1.0", &quantity_whole, QUANTITY_STRANGE_UNIT},
		{"1e3", &quantity_whole, QUANTITY_STRANGE_UNIT},
		{"1/0", &ppb, QUANTITY_NO_FRACTION},
		{"1/", &ppb, QUANTITY_NO_FRACTION},
		{"0.5/2", &ppb, QUANTITY_NO_FRACTION},
		{"/2", &ppb, QUANTITY_NO_NUMBER},
		{"1/2", &bps, QUANTITY_STRANGE_UNIT},
		{"18446744073709551615/1", &ppb, QUANTITY_TOO_LARGE},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		uint64_t v = 77;
		enum quantity_fault f = quantity_parse(rows[i].text, strlen(rows[i].text), rows[i].form, &v);

		if (f != rows[i].fault || v != 77)
			fail_msg("%s: %s", rows[i].text, quantity_fault_text(f));
	}
}

/* The text need not end with a NUL. */
TEST(nothing_behind_the_text_is_read)
{
	static const char text[] = {'1', '2', '3'};
	uint64_t v;

	assert_int_equal(quantity_parse(text, 2, &quantity_whole, &v), QUANTITY_GOOD);
	assert_int_equal(v, 12);
	assert_int_equal(quantity_parse(text, 0, &quantity_whole, &v), QUANTITY_NO_NUMBER);
}

TEST(a_quantity_is_written_with_its_largest_unit)
{
	static const struct {
		uint64_t value;
		const struct quantity_form *form;
		const char *text;
	} rows[] = {
		{25000000000, &bps, "25Gbps"},
		{1500, &bps, "1500bps"},
		{8000000000000, &bps, "8Tbps"},
		{0, &bps, "0bps"},
		{UINT64_MAX, &bps, "18446744073709551615bps"},
		{60000000000, &ns, "60s"},
		{1500, &ns, "1500ns"},
		{1, &ps, "1ps"},
		{64000, &bytes, "64kB"},
		{65536, &bytes, "65536"},
		{0, &bytes, "0"},
		{5000, &counts, "5k"},
	};
	char text[QUANTITY_TEXT_BYTES];
	uint64_t v;

	for (size_t i = 0; i < COUNT(rows); i++) {
		quantity_write(rows[i].form, rows[i].value, text);
		assert_string_equal(text, rows[i].text);
		assert_int_equal(quantity_parse(text, strlen(text), rows[i].form, &v), QUANTITY_GOOD);
		assert_int_equal(v, rows[i].value);
	}
}
