/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ways there and back, each with its least.
 *
 * All is modulo 2^32, as stamps are; two values of one way are less than 2^31 apart, or a clock was stepped.
 */
#include "transport/paths/one_way.h"

enum { APART_PART = 4 }; /* of the least round trip */

static const uint64_t drift_ns = 100000; /* in which clocks drift apart by a nanosecond at most */
static const uint64_t apart_ns = UINT64_C(10000000000);
static const uint64_t silent_ns = UINT64_C(10000000000); /* after which the leasts say nothing */

static uint32_t lesser(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0 ? a : b;
}

/* Clocks that ran alike have no less. */
static bool are_apart(const struct one_way *o)
{
	return (int32_t)(o->there_ns + o->back_ns) < (int32_t)(o->least_ns - o->least_ns / APART_PART);
}

uint32_t one_way_waited_ns(struct one_way *o, uint32_t there_ns, uint64_t rtt_ns, uint64_t now_ns)
{
	uint32_t back_ns = (uint32_t)rtt_ns - there_ns, waited_ns;
	uint64_t drifts = (now_ns - o->at_ns) / drift_ns;

	if (now_ns < o->apart_until_ns)
		return 0;
	if (!o->at_ns || now_ns - o->at_ns > silent_ns) {
		o->there_ns = there_ns;
		o->back_ns = back_ns;
		o->least_ns = (uint32_t)rtt_ns;
		o->at_ns = now_ns;
		return 0;
	}
	o->at_ns += drifts * drift_ns;
	o->there_ns = lesser(there_ns, o->there_ns + (uint32_t)drifts);
	o->back_ns = lesser(back_ns, o->back_ns + (uint32_t)drifts);
	o->least_ns = lesser((uint32_t)rtt_ns, o->least_ns);
	if (are_apart(o)) {
		o->apart_until_ns = now_ns + apart_ns;
		o->at_ns = 0;
		return 0;
	}
	waited_ns = back_ns - o->back_ns;
	/* Only stamps that the peer has made up tell of more. */
	return waited_ns < rtt_ns ? waited_ns : 0;
}
