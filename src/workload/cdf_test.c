/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "base/prng.h"
#include "support/test.h"
#include "workload/cdf.h"

static struct cdf builtin(const char *name)
{
	struct text_error err;
	struct cdf c;

	assert_int_equal(cdf_builtin(&c, name, &err), 0);
	return c;
}

static int read_text(struct cdf *c, const char *text, struct text_error *err)
{
	return cdf_read(c, text, strlen(text), err);
}

TEST(the_means_are_the_published_ones)
{
	static const struct {
		const char *name;
		uint32_t points;
		uint64_t mean_millibytes;
	} rows[] = {
		{"WebSearch", 12, 1711250000},
		{"FB_Hadoop", 20, 120420750},
		{"AliStorage2019", 9, 40869800},
		/*
		 * The mean of the points here; the original has hundreds of points and another
		 * mean.
		 */
		{"GoogleRPC2008", 21, 3128306},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cdf c = builtin(rows[i].name);

		assert_string_equal(cdf_names[i], rows[i].name);
		assert_int_equal(c.count, rows[i].points);
		assert_int_equal(cdf_mean_millibytes(&c), rows[i].mean_millibytes);
		cdf_free(&c);
	}
	assert_null(cdf_names[4]);
}

TEST(a_mean_is_rounded_to_thousandths)
{
	struct text_error err;
	struct cdf c;

	assert_int_equal(read_text(&c, "0 99.9\n1 100", &err), 0);
	assert_int_equal(cdf_mean_millibytes(&c), 1);
	cdf_free(&c);
	assert_int_equal(read_text(&c, "0 99.902\n1 100", &err), 0);
	assert_int_equal(cdf_mean_millibytes(&c), 0);
	cdf_free(&c);
}

TEST(samples_have_the_mean_of_the_curve)
{
	enum { COUNT = 1000000 };

	for (int i = 0; cdf_names[i]; i++) {
		struct cdf c = builtin(cdf_names[i]);
		struct prng r;
		uint64_t sum = 0, want = cdf_mean_millibytes(&c) * (COUNT / 1000);

		prng_init(&r, 1);
		for (int k = 0; k < COUNT; k++)
			sum += cdf_bytes(&c, prng_next(&r));
		/* GoogleRPC2008's tail makes it vary most: 4 of its standard errors are 7 %. */
		assert_in_range(sum, want - want * 7 / 100, want + want * 7 / 100);
		if (i < 3)
			assert_in_range(sum, want - want / 100, want + want / 100);
		cdf_free(&c);
	}
}

TEST(a_share_gives_the_size_on_the_line)
{
	static const struct {
		const char *text;
		uint64_t percent_milli, bytes;
	} rows[] = {
		{"0 0\n100 100", 0, 1}, /* never 0 bytes */
		{"0 0\n100 100", 50000, 50},
		{"0 0\n100 100", 99999, 99},
		{"0 0\n10 50\n1000 50\n2000 100", 49999, 9},
		{"0 0\n10 50\n1000 50\n2000 100", 50000, 1000}, /* a gap has no messages */
		{"0 0\n10 50\n1000 50\n2000 100", 75000, 1500},
		{"64 30\n64 60\n128 100", 0, 64}, /* below the first point, and a step */
		{"64 30\n64 60\n128 100", 59999, 64},
		{"64 30\n64 60\n128 100", 80000, 96},
		{"9000 100", 12345, 9000},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text_error err;
		struct cdf c;
		/* Rounded up, so that it is not just below the intended share. */
		unsigned __int128 u = (((unsigned __int128)rows[i].percent_milli << 64) + 99999) / 100000;

		assert_int_equal(read_text(&c, rows[i].text, &err), 0);
		assert_int_equal(cdf_bytes(&c, (uint64_t)u), rows[i].bytes);
		cdf_free(&c);
	}
}

TEST(the_ends_of_the_draw_are_the_ends_of_the_curve)
{
	for (int i = 0; cdf_names[i]; i++) {
		struct cdf c = builtin(cdf_names[i]);
		uint64_t largest = c.points[c.count - 1].bytes;

		assert_int_equal(cdf_bytes(&c, 0), 1);
		assert_in_range(cdf_bytes(&c, UINT64_MAX), largest - 1, largest);
		cdf_free(&c);
	}
}

TEST(a_fixed_size_is_always_that_size)
{
	struct text_error err;
	struct cdf c;

	assert_int_equal(read_text(&c, "4096 100\n", &err), 0);
	assert_int_equal(cdf_mean_millibytes(&c), 4096000);
	assert_int_equal(cdf_bytes(&c, 0), 4096);
	assert_int_equal(cdf_bytes(&c, UINT64_MAX), 4096);
	cdf_free(&c);
}

TEST(comments_and_blank_lines_are_passed_over)
{
	struct text_error err;
	struct cdf c;

	assert_int_equal(read_text(&c, "# name\n\n0 0\r\n  # more\n\t5 40.5\n\n1e3 100\n\n", &err), 0);
	assert_int_equal(c.count, 3);
	assert_int_equal(c.points[1].bytes, 5);
	assert_int_equal(c.points[1].share, 405000000000);
	assert_int_equal(c.points[2].bytes, 1000);
	cdf_free(&c);
}

TEST(a_wrong_text_names_line_and_reason)
{
	static const struct {
		const char *text;
		uint32_t line;
		const char *says;
	} rows[] = {
		{"", 1, "the last percent must be 100"},
		{"# only\n", 2, "the last percent must be 100"},
		{"0 0\n5 99.9\n", 3, "the last percent must be 100"},
		{"0 0\n5\n", 2, "bytes percent"},
		{"0 0\n5 100 7\n", 2, "bytes percent"},
		{"0 0\nx 100\n", 2, "'x' for a size"},
		{"0 0\n-1 100\n", 2, "'-1' for a size"},
		{"0 0\n1099511627777 100\n", 2, "allowed are 0 to 1099511627776"},
		{"0 0\n5 100.1\n", 2, "'100.1' for a percent; allowed are 0 to 100"},
		{"0 0\n5 nan\n", 2, "'nan' for a percent"},
		{"0 0\n5 60\n4 100\n", 3, "must not fall"},
		{"0 0\n5 60\n6 59\n", 3, "must not fall"},
		{"0 100\n", 2, "1 byte or more"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text_error err = {0};
		struct cdf c = {0};

		assert_int_equal(read_text(&c, rows[i].text, &err), -EINVAL);
		if (!strstr(err.message, rows[i].says) || err.line != rows[i].line)
			fail_msg("row %zu: line %u: %s", i, err.line, err.message);
		assert_null(c.points);
	}
	assert_int_equal(cdf_builtin(&(struct cdf){0}, "Zoo", &(struct text_error){0}), -EINVAL);
}

TEST(more_points_than_allowed_are_refused)
{
	char *text = malloc(CDF_POINTS_MAX * 16 + 64);
	struct text_error err;
	struct cdf c;
	size_t n = 0;

	for (int i = 0; i < CDF_POINTS_MAX; i++)
		n += (size_t)sprintf(text + n, "%d %s\n", i + 1, i + 1 < CDF_POINTS_MAX ? "1" : "100");
	assert_int_equal(cdf_read(&c, text, n, &err), 0);
	cdf_free(&c);
	n += (size_t)sprintf(text + n, "5000 100\n");
	assert_int_equal(cdf_read(&c, text, n, &err), -EINVAL);
	assert_int_equal(err.line, CDF_POINTS_MAX + 1);
	free(text);
}

/* The files that users may copy and change equal the tables that are compiled in. */
TEST(the_files_are_the_tables)
{
	for (int i = 0; cdf_names[i]; i++) {
		char path[512], text[4096];
		struct cdf file, table = builtin(cdf_names[i]);
		struct text_error err;
		FILE *f;
		size_t n;

		snprintf(path, sizeof(path), "%s/%s.txt", SHARE_CDF, cdf_names[i]);
		f = fopen(path, "r");
		assert_non_null(f);
		n = fread(text, 1, sizeof(text), f);
		fclose(f);
		assert_int_equal(text[0], '#');
		assert_int_equal(cdf_read(&file, text, n, &err), 0);
		assert_int_equal(file.count, table.count);
		assert_memory_equal(file.points, table.points, file.count * sizeof(*file.points));
		cdf_free(&file);
		cdf_free(&table);
	}
}
