/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMELY (Mittal et al., SIGCOMM 2015): the gradient of the round trip moves the rate. The plain
 * form has no one fixed point; the patched one (Zhu et al., CoNEXT 2016) has, and shares fairly.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cc/limiter.h"

struct cc;
struct cc_config;

enum timely_sample {
	TIMELY_EVERY_ACK,
	TIMELY_EVERY_RTT /* the first ACK of what was sent after the last sample */
};

/* Which steps up count towards those of five, and are of five: */
enum timely_hai {
	TIMELY_HAI_FALLING, /* between t_low and t_high, without a rise: Algorithm 1 */
	TIMELY_HAI_ANY      /* those below t_low too: the simulator of the HPCC evaluation */
};

/* Times are ns or base RTTs: see relative.h. */
struct timely_params {
	uint64_t a_q32;            /* weight of the newest difference */
	uint64_t beta_q32;         /* of a decrease */
	uint64_t beta_patched_q32; /* of the patched form's, between the two times */
	uint64_t rate_ai;          /* delta: bit/s or a part of the line */
	uint64_t t_low;            /* below it the rate rises, with any gradient */
	uint64_t t_high;           /* above it the rate falls likewise */
	uint64_t min_rtt;          /* what the gradient is measured in */
	uint32_t hai_after;        /* steps in a row, as hai_counts, until the step is five */
	enum timely_hai hai_counts;
	enum timely_sample sample;
	bool scaled; /* a sample counts for its part of min_rtt, if it comes sooner */
};

extern const struct timely_params timely_params_default;

struct cc_timely {
	const struct timely_params *params;
	struct cc_limiter limiter;
	uint64_t rate_ai_bps;
	uint64_t base_rtt_ns; /* configured, or the least seen; 0: none yet */
	uint64_t prev_ns;     /* the last sample's round trip; 0: none */
	int64_t diff_q16;     /* running difference of round trips, 1/65536 ns */
	uint64_t sample_ns;   /* when the last sample was taken */
	uint64_t round_end;   /* snd_nxt at that time */
	uint32_t steps;       /* up in a row, of those that hai_counts names */
	bool patched, measured;
};

/* cc_init with other parameters, borrowed for the life of the block. */
void timely_init(struct cc *, const struct cc_config *, const struct timely_params *, bool patched, uint64_t now_ns);
