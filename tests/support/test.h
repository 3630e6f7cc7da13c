/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a test program is made of: cmocka, and tests that name themselves where they are written.
 *
 *     TEST(psn_diff_wraps_at_24_bits)
 *     {
 *             assert_int_equal(psn_diff(0, PSN_MASK), 1);
 *     }
 *
 * The program runs them in the order in which they stand. With the argument "many" it runs those of TEST_MANY and
 * TEST_ALWAYS in place of those of TEST and TEST_ALWAYS, and test_many is true: many seeds, figures, every order of
 * events. A program with a main() of its own defines TEST_OWN_MAIN before it includes this, and calls test_run().
 */
#pragma once

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { TEST_IN_ONE = 1, TEST_IN_MANY = 2, TESTS_MAX = 128 };

struct test {
	struct CMUnitTest unit;
	unsigned line; /* constructors run in no order that the language knows */
	unsigned runs; /* TEST_IN_* */
};

static struct {
	struct test tests[TESTS_MAX];
	unsigned count;
	CMFixtureFunction set_up, tear_down; /* of the program; may be NULL */
} test_program;

static bool test_many;

static inline void test_add(struct test t)
{
	unsigned at = test_program.count++;

	assert(at < TESTS_MAX);
	for (; at && test_program.tests[at - 1].line > t.line; at--)
		test_program.tests[at] = test_program.tests[at - 1];
	test_program.tests[at] = t;
}

#define TEST_AS(name, in, before, after)                                                   \
	static void name(void **state);                                                    \
	__attribute__((constructor)) static void add_##name(void)                          \
	{                                                                                  \
		test_add((struct test){{#name, name, before, after, NULL}, __LINE__, in}); \
	}                                                                                  \
	static void name(__attribute__((unused)) void **state)

#define TEST(name)        TEST_AS(name, TEST_IN_ONE, NULL, NULL)
#define TEST_MANY(name)   TEST_AS(name, TEST_IN_MANY, NULL, NULL)
#define TEST_ALWAYS(name) TEST_AS(name, TEST_IN_ONE | TEST_IN_MANY, NULL, NULL)
/* Of `x`, a value of that type that `make` makes before it; `end` takes it away behind it. */
#define TEST_OF(name, type, x, make, end) \
	static void name##_of(type x);    \
	TEST(name)                        \
	{                                 \
		type x = make;            \
                                          \
		name##_of(x);             \
		end;                      \
	}                                 \
	static void name##_of(type x)
/* With functions of its own before and after it. */
#define TEST_WITH(name, before, after) TEST_AS(name, TEST_IN_ONE, before, after)
/* Functions before the first and after the last test of the program; either may be NULL. */
#define TEST_PROGRAM(before, after)                                \
	__attribute__((constructor)) static void set_fixture(void) \
	{                                                          \
		test_program.set_up = before;                      \
		test_program.tear_down = after;                    \
	}

/* Returns the number of tests that failed, for main() to return. */
static inline int test_run(int argc, char **argv)
{
	static struct CMUnitTest units[TESTS_MAX];
	size_t count = 0;

	test_many = argc > 1 && !strcmp(argv[1], "many");
	for (unsigned i = 0; i < test_program.count; i++) {
		if (test_program.tests[i].runs & (test_many ? TEST_IN_MANY : TEST_IN_ONE))
			units[count++] = test_program.tests[i].unit;
	}
	return _cmocka_run_group_tests("tests", units, count, test_program.set_up, test_program.tear_down);
}

#ifndef TEST_OWN_MAIN
int main(int argc, char **argv)
{
	return test_run(argc, argv);
}
#endif
