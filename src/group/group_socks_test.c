/* SPDX-License-Identifier: BSD-2-Clause */
/* The digest of the sockets that are held, by which members see that they hold the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "group/group_state.h"

/* Of sockets with those cookies; 0 ends them. */
static uint64_t digest_of(const uint64_t *cookies)
{
	struct group *g = calloc(1, sizeof(*g));
	uint64_t digest;

	assert_non_null(g);
	g->lane_count = 1;
	group_socks_init(g);
	for (unsigned i = 0; cookies[i]; i++)
		g->socks[0][i] = (struct group_socket){.fd = 0, .cookie = cookies[i]};
	digest = group_digest(g);
	free(g);
	return digest;
}

static void the_same_sockets_in_another_order_have_the_same_digest(void **state)
{
	assert_true(digest_of((uint64_t[]){100, 101, 102, 0}) == digest_of((uint64_t[]){102, 100, 101, 0}));
}

/* The kernel counts cookies up, so neighbours are what a member holds, and their plain sums are often equal. */
static void other_sockets_have_another_digest(void **state)
{
	uint64_t pairs[40 * 39 / 2];
	size_t n = 0;

	for (uint64_t a = 1; a < 40; a++)
		for (uint64_t b = a + 1; b <= 40; b++)
			pairs[n++] = digest_of((uint64_t[]){1000 + a, 1000 + b, 0});
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			assert_true(pairs[i] != pairs[k]);
}

static void a_socket_that_is_missing_changes_the_digest(void **state)
{
	assert_true(digest_of((uint64_t[]){100, 101, 0}) != digest_of((uint64_t[]){100, 0}));
	assert_true(digest_of((uint64_t[]){100, 0}) != digest_of((uint64_t[]){0}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_sockets_in_another_order_have_the_same_digest),
		cmocka_unit_test(other_sockets_have_another_digest),
		cmocka_unit_test(a_socket_that_is_missing_changes_the_digest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
