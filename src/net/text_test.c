/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "net/text.h"
#include "support/test.h"

static struct word word(const char *s)
{
	return (struct word){s, strlen(s)};
}

TEST(numbers_are_exact_and_rounded_half_up)
{
	static const struct {
		const char *text;
		int exponent;
		bool ok;
		uint64_t value;
	} rows[] = {
		{"0", 0, true, 0},
		{"7", 0, true, 7},
		{"2.5", 12, true, 2500000000000},
		{"2.000000001", 12, true, 2000000001000},
		{"0.1", 0, true, 0},
		{"0.49999999999999999999999999999999999999999", 0, true, 0},
		{"0.5", 0, true, 1},
		{"1.5e3", 0, true, 1500},
		{"15E-1", 0, true, 2},
		{"1e+2", 1, true, 1000},
		{".5", 1, true, 5},
		{"5.", 1, true, 50},
		{"18446744073709551615", 0, true, UINT64_MAX},
		{"1844674407370955161.5", 1, true, UINT64_MAX},
		{"18446744073709551616", 0, false, 0},
		{"18446744073709551616", -1, true, 1844674407370955162},
		{"1e20", 0, false, 0},
		{"1e99999999999", 0, false, 0},
		{"0e99999999999", 0, true, 0},
		{"1e-99999999999", 0, true, 0},
		{"100000000000000000000000000000000000000000000000000e-40", 0, true, 10000000000},
		{"0.00000000000000000000000000000000000000000000000001e50", 0, true, 1},
		{"", 0, false, 0},
		{".", 0, false, 0},
		{"-1", 0, false, 0},
		{"+1", 0, false, 0},
		{"1.2.3", 0, false, 0},
		{"1e", 0, false, 0},
		{"1e+", 0, false, 0},
		{"1x", 0, false, 0},
		{"0x10", 0, false, 0},
		{"inf", 0, false, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t value = 77;

		if (word_number(word(rows[i].text), rows[i].exponent, &value) != rows[i].ok)
			fail_msg("'%s'", rows[i].text);
		assert_int_equal(value, rows[i].ok ? rows[i].value : 77);
	}
}

TEST(rates_and_times_have_units)
{
	static const struct {
		bool (*read)(struct word, uint64_t *);
		const char *text;
		bool ok;
		uint64_t value;
	} rows[] = {
		{word_rate_bps, "100Gbps", true, 100000000000},
		{word_rate_bps, "25G", true, 25000000000},
		{word_rate_bps, "1.6Tbps", true, 1600000000000},
		{word_rate_bps, "10Mbps", true, 10000000},
		{word_rate_bps, "1e9", true, 1000000000},
		{word_rate_bps, "1e9bps", true, 1000000000},
		{word_rate_bps, "100 Gbps", false, 0},
		{word_rate_bps, "Gbps", false, 0},
		{word_rate_bps, "100GB", false, 0},
		{word_rate_bps, "99999999999T", false, 0},
		{word_time_ps, "1000ns", true, 1000000},
		{word_time_ps, "0.001ms", true, 1000000},
		{word_time_ps, "1us", true, 1000000},
		{word_time_ps, "3ps", true, 3},
		{word_time_ps, "0.000001s", true, 1000000},
		{word_time_ps, "1e-6", true, 1000000},
		{word_time_ps, "1min", false, 0},
		{word_time_ps, "99999999999s", false, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t value = 77;

		if (rows[i].read(word(rows[i].text), &value) != rows[i].ok)
			fail_msg("'%s'", rows[i].text);
		assert_int_equal(value, rows[i].ok ? rows[i].value : 77);
	}
}

TEST(counts_have_a_limit)
{
	uint64_t value;

	assert_true(word_count(word("10"), 10, &value));
	assert_int_equal(value, 10);
	assert_false(word_count(word("11"), 10, &value));
	assert_false(word_count(word("1.0"), 10, &value));
	assert_false(word_count(word(""), 10, &value));
	assert_false(word_count(word("99999999999999999999999"), UINT64_MAX, &value));
	assert_false(word_count(word("18446744073709551617"), UINT64_MAX, &value));
}

TEST(tokens_cross_lines_and_words_do_not)
{
	static const char text[] = "a  b\n\n# c\n d\r\ne";
	struct text t;
	struct word w;

	text_start(&t, text, sizeof(text) - 1);
	assert_true(text_word(&t, &w));
	assert_true(word_is(w, "a"));
	assert_true(text_word(&t, &w));
	assert_true(word_is(w, "b"));
	assert_false(text_word(&t, &w));
	assert_int_equal(t.line, 1);
	assert_true(text_next_line(&t));
	assert_int_equal(t.line, 4);
	assert_true(text_token(&t, &w));
	assert_true(word_is(w, "d"));
	assert_true(text_token(&t, &w));
	assert_true(word_is(w, "e"));
	assert_int_equal(t.line, 5);
	assert_false(text_token(&t, &w));
	assert_false(text_next_line(&t));
}

TEST(the_first_line_is_a_line)
{
	struct text t;
	struct word w;

	text_start(&t, "x y\nz", 5);
	assert_true(text_next_line(&t));
	assert_true(text_word(&t, &w));
	assert_true(word_is(w, "x"));
	assert_true(text_next_line(&t));
	assert_true(text_word(&t, &w));
	assert_true(word_is(w, "z"));
}

TEST(errors_show_what_was_read_and_stay_within_bounds)
{
	struct text_error err;
	char longest[500];

	assert_int_equal(text_fail(&err, 7, "'%w' of %u %s%%",
				   word("a\x01"
					"b"),
				   (uint64_t)12, "x"),
			 -EINVAL);
	assert_int_equal(err.line, 7);
	assert_string_equal(err.message, "'a?b' of 12 x%");
	memset(longest, 'q', sizeof(longest));
	text_fail(&err, 0, "'%w'", (struct word){longest, sizeof(longest)});
	assert_int_equal(strlen(err.message), 45);
	longest[499] = '\0';
	text_fail(&err, 0, "%s", longest);
	assert_int_equal(strlen(err.message), TEXT_ERROR_BYTES - 1);
	assert_int_equal(text_fail(NULL, 0, "%u", (uint64_t)1), -EINVAL);
}
