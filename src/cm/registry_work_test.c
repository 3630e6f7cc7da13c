/* SPDX-License-Identifier: BSD-2-Clause */
/* How many words of the registry a call reads when others have filled it: rows of other ports cost one each. */

#include <sys/mman.h>

#include "support/registry_words.h"
#include "support/test.h"

enum { FULL = 40, OURS = 0, PORT = 80, OTHER_PORT = 1000, PER_MEMBER = 8 };

static struct registry_page *page;
static struct registry ours;
static uint64_t reads;

static uint64_t touch(volatile void *word, size_t bytes, enum access_kind kind, uint64_t value, uint64_t expected)
{
	uint64_t before = 0, after = value;

	reads += kind == LOAD;
	memcpy(&before, (void *)word, bytes);
	if (kind == OR)
		after = before | value;
	else if (kind == AND)
		after = before & value;
	if (kind != LOAD && (kind != SWAP || before == expected))
		memcpy((void *)word, &after, bytes);
	return before;
}

static bool lives(void *ctx, uint32_t slot)
{
	return true;
}

static struct registry_claim shared(uint16_t port)
{
	return (struct registry_claim){
		.space = CM_SPACE_TCP,
		.addr = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 10}, .port = port, .family = CM_IPV4},
		.reuse = true};
}

/* Others with one row of our port, which does not clash, and all the rest of a port that is not ours. */
static int setup(void **state)
{
	page = mmap(NULL, registry_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	ours = (struct registry){.page = page, .slot = OURS, .lives = lives};
	registry_join(&ours, 1);
	for (uint32_t slot = 1; slot <= FULL; slot++) {
		struct registry r = {.page = page, .slot = slot, .lives = lives};
		struct registry_claim c = shared(PORT), other = shared(OTHER_PORT);

		registry_join(&r, slot + 1);
		bit_set(own(&r)->bound[0], PORT);
		bit_set(own(&r)->bound[0], OTHER_PORT);
		for (uint32_t i = 0; i < REGISTRY_ROWS; i++) {
			row_store(&own(&r)->rows[i], i ? &other : &c);
			set_state(&r, &own(&r)->rows[i], FIRM);
		}
		atomic_store(&own(&r)->row_end, REGISTRY_ROWS);
	}
	reads = 0;
	return 0;
}

static int teardown(void **state)
{
	munmap(page, registry_bytes());
	return 0;
}

TEST_WITH(rows_of_other_ports_cost_a_listeners_search_one_read, setup, teardown)
{
	struct registry_claim c = shared(PORT);
	int fit;

	assert_int_equal(registry_listener(&ours, CM_SPACE_TCP, c.addr.ip, c.addr.ip, PORT, &fit), REGISTRY_NOBODY);
	assert_true(reads <= 2 * REGISTRY_SLOTS + FULL * (REGISTRY_ROWS + PER_MEMBER));
}

TEST_WITH(rows_of_other_ports_cost_a_claim_one_read, setup, teardown)
{
	struct registry_claim c = shared(PORT);
	uint32_t row;

	assert_int_equal(registry_bind(&ours, &c, &row), 0);
	assert_true(reads <= 3 * REGISTRY_SLOTS + FULL * (REGISTRY_ROWS + PER_MEMBER));
}

TEST_WITH(who_has_the_address_ends_the_search, setup, teardown)
{
	struct registry_claim c = shared(PORT);
	int fit;

	c.listening = true;
	row_store_rest(&page->areas[1].rows[REGISTRY_ROWS - 1], &c);
	assert_int_equal(registry_listener(&ours, CM_SPACE_TCP, c.addr.ip, c.addr.ip, PORT, &fit), 1);
	assert_int_equal(fit, 3);
	assert_true(reads <= REGISTRY_ROWS + 2 * PER_MEMBER);
}
