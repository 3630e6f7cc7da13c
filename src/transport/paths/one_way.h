/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What acknowledgements wait in queues on their way back (veRoCE 10, 12), from the four stamps of an echo (13.2).
 *
 * The way there and the way back are each a difference of two hosts' clocks, of which the offset is not known. But as
 * long as the clocks run alike, each is longer than the least of it by what it waited in queues. The leasts are those of
 * all paths. So where the way back of one path is longer than that of another, the difference is taken off as well; it
 * is no queue of ours either. Clocks may drift apart by 10 ppm. By so much the leasts rise, lest a part of the way there
 * be taken for a wait on the way back. A queue that stands for long is thereby forgotten, and counts as it does in a
 * round trip.
 *
 * The sum of both leasts knows no clock. Where it is less than the least round trip by more than a fourth, a clock was
 * stepped or drifts faster: for 10 s nothing is known of the way back. While a queue stands on the way there, such a
 * drift is not seen.
 *
 * Private to src/transport.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct one_way {
	uint64_t apart_until_ns;              /* the clocks did not run alike lately */
	uint64_t at_ns;                       /* when the leasts were these; 0: there are none yet */
	uint32_t there_ns, back_ns, least_ns; /* of the two ways, modulo 2^32, and of the round trip */
	bool wanted;                          /* by congestion control */
};

/*
 * How much of a round trip, 1 to 2^31 ns, was queues on the way back: less than all of it; 0 where that is not known.
 * there_ns is the way there, modulo 2^32.
 */
uint32_t one_way_waited_ns(struct one_way *, uint32_t there_ns, uint64_t rtt_ns, uint64_t now_ns);
