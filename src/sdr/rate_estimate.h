/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * At what rate packets leave a device, from when it gives them back. Only time in which it had packets counts. A
 * sender that waits for a processor finds its packets long gone, so a high rate is believed sooner than a low one.
 */
#ifndef SDR_RATE_ESTIMATE_H
#define SDR_RATE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: a new one. */
struct rate_estimate {
	double pps; /* packets a second; 0: not known yet */
	uint64_t at_ns, span_ns;
	uint32_t packets; /* given back in span_ns */
	bool busy;        /* the device has had packets since at_ns */
};

/* `returned` packets have left since the last call. busy: the device has more. */
void rate_estimate_note(struct rate_estimate *, uint32_t returned, bool busy, uint64_t now_ns);

#endif
