/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as any quantity: a form, then the text. A value that is read and written is read again as the same, in
 * forms that can be written; rounding never differs from the exact value where there is one.
 */
#include <assert.h>
#include <string.h>

#include "base/quantity.h"
#include "support/fuzz_input.h"

static const struct quantity_unit extra[] = {{"km", 5, -6, 0}, {NULL, 0, 0, 0}};

/* Whether some unit of the form is worth 1 of its result, so that every result can be written. */
static bool has_one(const struct quantity_form *f)
{
	if (f->shift)
		return false;
	if (f->units == quantity_times && (f->exponent == 9 || f->exponent == 12))
		return true;
	return !f->exponent && (f->units == quantity_rates || !(f->flags & QUANTITY_UNIT));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct quantity_unit *const units[] = {NULL,           quantity_rates,  quantity_times,
							    quantity_bytes, quantity_counts, quantity_shares};
	static const int8_t exponents[] = {0, 9, 12, 18};
	struct quantity_form form = {0};
	char text[QUANTITY_TEXT_BYTES];
	uint64_t exact = 1, nearest = 1, again;

	if (size < 2)
		return 0;
	if (data[1] & 32)
		return quantity_parse((const char *)data + 2, size - 2, &quantity_whole, &exact) && exact != 1;
	form.units = units[data[0] % 6];
	form.exponent = exponents[data[0] / 6 % 4];
	form.shift = data[0] / 24 % 2 ? 32 : 0;
	form.flags = data[1] & (QUANTITY_UNIT | QUANTITY_FRACTION | QUANTITY_BLANK);
	form.also = data[1] & 16 ? extra : NULL;
	const char *at = (const char *)data + 2;
	enum quantity_fault f = quantity_parse(at, size - 2, &form, &exact);

	assert(quantity_fault_text(f)[0]);
	form.flags |= QUANTITY_NEAREST;
	if (f) {
		assert(exact == 1);
		quantity_parse(at, size - 2, &form, &nearest);
		return 0;
	}
	assert(quantity_parse(at, size - 2, &form, &nearest) == QUANTITY_GOOD && nearest == exact);
	form.flags &= (uint8_t)~QUANTITY_NEAREST;
	if (!has_one(&form))
		return 0;
	quantity_write(&form, exact, text);
	f = quantity_parse(text, strlen(text), &form, &again);
	assert(f == QUANTITY_GOOD && again == exact);
	return 0;
}
