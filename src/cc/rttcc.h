/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control by the round trips of probes, in the shape of NVIDIA's ZTR-RTTCC. NVIDIA's
 * rules are not public; these are ours: a target that grows as the rate falls, so that many flows
 * agree on one queue and on even shares, and AIMD around it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cc/limiter.h"

struct cc;
struct cc_config;

struct rttcc_params {
	uint64_t alpha_q32;      /* target RTT is base x (1 + alpha/sqrt(R)) */
	uint64_t beta_q32;       /* how hard an RTT over target is answered */
	uint64_t max_dec_q32;    /* the largest share that one cut takes */
	uint64_t max_inc_q32;    /* the largest increase, of R */
	uint64_t rate_ai;        /* a sample: bit/s or a part of the line, see relative.h */
	uint64_t rate_hai;       /* likewise, after hai_period */
	uint64_t max_delay_ns;   /* an RTT that is answered with max_dec */
	uint64_t rate_first_q32; /* R after the first congestion of a flow, at most */
	uint64_t timeout_ns;     /* of the first probe; doubles four times at most */
	uint32_t hai_period;     /* good samples in a row */
	bool probes;             /* false: an ACK's RTT once a round trip stands for them */
};

extern const struct rttcc_params rttcc_params_default;

struct cc_rttcc {
	const struct rttcc_params *params;
	struct cc_limiter limiter;
	uint64_t share_q32; /* R, of the line rate */
	uint64_t share_q32_min;
	uint64_t ai_q32;      /* of the line rate */
	uint64_t hai_q32;     /* likewise */
	uint64_t base_rtt_ns; /* configured, or the least seen; 0: none yet */
	uint64_t give_up_ns;  /* of the probe under way */
	uint64_t round_end;   /* snd_nxt at the last sample, without probes */
	uint32_t good;        /* samples in a row */
	uint8_t silent;       /* probes in a row without an answer */
	bool measured;        /* base_rtt_ns is */
	bool flying;          /* a probe is on its way */
	bool sent;            /* something left since it did */
	bool cnp, nak;        /* since the last sample */
	bool congested;       /* ever */
};

/* cc_init with other parameters, borrowed for the life of the block. */
void rttcc_init(struct cc *, const struct cc_config *, const struct rttcc_params *, uint64_t now_ns);

/* The target RTT at this share of the line, in the unit of the base. */
uint64_t rttcc_target(uint64_t base_rtt, uint64_t alpha_q32, uint64_t share_q32);
