/* SPDX-License-Identifier: BSD-2-Clause */
#include "workload/agenda.h"
#include "base/prng.h"
#include "support/test.h"

enum { ITEMS = 400 };

/* The model is which items are there; the agenda must give the least of them. */
TEST(the_first_by_time_and_then_by_order_is_taken)
{
	struct agenda_item model[ITEMS];
	struct agenda a = {0};
	struct prng r;
	uint32_t count = 0, taken = 0;

	prng_init(&r, 7);
	assert_true(agenda_due(&a) == AGENDA_NEVER);
	assert_false(agenda_is_due(&a, AGENDA_NEVER));
	for (uint32_t step = 0; step < 20000; step++) {
		if (count < ITEMS && prng_below(&r, 2)) {
			/* Few distinct times, so that many are equal. */
			struct agenda_item item = {prng_below(&r, 20), step, &model[step % ITEMS], step};

			assert_true(agenda_make_room(&a, (uint64_t)count + 1));
			agenda_add(&a, item);
			model[count++] = item;
		} else if (count) {
			struct agenda_item item;
			uint32_t least = 0;

			for (uint32_t i = 1; i < count; i++) {
				if (model[i].at < model[least].at ||
				    (model[i].at == model[least].at && model[i].order < model[least].order))
					least = i;
			}
			assert_true(agenda_due(&a) == model[least].at);
			assert_true(agenda_is_due(&a, model[least].at));
			assert_false(model[least].at && agenda_is_due(&a, model[least].at - 1));
			item = agenda_take(&a);
			assert_true(item.order == model[least].order && item.at == model[least].at);
			assert_true(item.subject == model[least].subject && item.what == model[least].what);
			model[least] = model[--count];
			taken++;
		}
	}
	assert_true(taken > 9000);
	agenda_free(&a);
}

/* No room is got for as many as cannot be counted, and what is there stays. */
TEST(too_many_items_have_no_room)
{
	struct agenda a = {0};

	assert_true(agenda_make_room(&a, 1));
	agenda_add(&a, (struct agenda_item){.at = 5});
	assert_false(agenda_make_room(&a, UINT64_MAX));
	assert_false(agenda_make_room(&a, UINT32_MAX));
	assert_true(agenda_take(&a).at == 5);
	agenda_free(&a);
}
