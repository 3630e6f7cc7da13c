/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of the command line. */
#include "sdr/number.h"

#include <errno.h>
#include <stdlib.h>

#include "sdr/meet.h"

bool number_allowed(struct number_range r, uint64_t v)
{
	return v >= r.low && v <= r.high && (!r.power || !(v & (v - 1)));
}

uint64_t number_read(const char *name, const char *text, struct number_range r)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (end == text || *end || errno || *text == '-' || !number_allowed(r, v))
		die("--%s %s: a %s of %llu to %llu is allowed", name, text, r.power ? "power of two" : "number",
		    (unsigned long long)r.low, (unsigned long long)r.high);
	return v;
}
