/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCQCN as its paper has it (Zhu et al., SIGCOMM 2015): a CNP cuts at once, and a timer and a byte
 * counter lead back. dcqcn_fw.h has the form of NICs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cc/limiter.h"

struct cc;
struct cc_config;

struct dcqcn_params {
	uint64_t t_cnp_ns;   /* N: least time between CNPs, and between losses taken for one */
	uint64_t t_alpha_ns; /* K: alpha decays once for each of these without a CNP */
	uint64_t t_inc_ns;   /* the rate timer */
	uint64_t bytes;      /* B: the byte counter; 0: none */
	uint64_t g_q32;      /* gain of alpha */
	uint64_t rate_ai;    /* bit/s or a part of the line: see relative.h */
	uint64_t rate_hai;   /* likewise */
	uint32_t rounds;     /* F: of fast recovery */
	bool ai_bounded;     /* ours: no step is more than a quarter of the rate */
};

extern const struct dcqcn_params dcqcn_params_default;

struct cc_dcqcn {
	const struct dcqcn_params *params;
	struct cc_limiter limiter;
	uint64_t target_bps; /* R_T; R_C is rate_bps */
	uint64_t alpha_q32;
	uint64_t rate_ai_bps;
	uint64_t rate_hai_bps;
	uint64_t alpha_ns;     /* end of the last period K that alpha_q32 accounts for */
	uint64_t inc_ns;       /* when the rate timer fires; CC_NO_DEADLINE: the rate is not limited */
	uint64_t loss_ns;      /* when a loss was last taken for a CNP; UINT64_MAX: never */
	uint64_t bytes;        /* sent since the byte counter last fired */
	uint32_t timer_rounds; /* T */
	uint32_t byte_rounds;  /* BC */
};

/* cc_init with other parameters, borrowed for the life of the block. */
void dcqcn_init(struct cc *, const struct cc_config *, const struct dcqcn_params *, uint64_t now_ns);
