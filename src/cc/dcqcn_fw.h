/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCQCN as NICs do it and as the HPCC evaluation ran it: CNPs set flags, and two periodic checks
 * read them, one for alpha and one for the rate. dcqcn.h has the paper's form.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cc/limiter.h"

struct cc;
struct cc_config;

struct dcqcn_fw_params {
	uint64_t t_cnp_ns;   /* for the peer: least time between CNPs; 0: one a marked packet */
	uint64_t t_alpha_ns; /* between updates of alpha */
	uint64_t t_dec_ns;   /* between checks whether to cut */
	uint64_t t_inc_ns;   /* between increases */
	uint64_t g_q32;      /* gain of alpha */
	uint64_t alpha_start_q32;
	uint64_t rate_ai;        /* bit/s or a part of the line: see relative.h */
	uint64_t rate_hai;       /* likewise */
	uint64_t rate_first_q32; /* share of the rate that the first CNP leaves at once */
	uint32_t rounds;         /* of fast recovery (F) */
	bool clamp;              /* a cut lowers the target even if none rose since the last cut */
};

extern const struct dcqcn_fw_params dcqcn_fw_params_default;

struct cc_dcqcn_fw {
	const struct dcqcn_fw_params *params;
	struct cc_limiter limiter;
	uint64_t target_bps; /* R_T; R_C is rate_bps */
	uint64_t alpha_q32;
	uint64_t rate_ai_bps;
	uint64_t rate_hai_bps;
	uint64_t first_ns; /* the first CNP: the checks' periods are counted from here */
	uint64_t alpha_ns; /* end of the last period that alpha_q32 accounts for */
	uint64_t look_ns;  /* next check whether to cut, while cnp_cut is set */
	uint64_t inc_ns;   /* next increase; CC_NO_DEADLINE: none */
	uint32_t rounds;   /* increases since the last cut */
	bool started;      /* first_ns is set */
	bool cnp_alpha;    /* a CNP came in alpha's period */
	bool cnp_cut;      /* a CNP came since the last check */
};

/* cc_init with other parameters, borrowed for the life of the block. */
void dcqcn_fw_init(struct cc *, const struct cc_config *, const struct dcqcn_fw_params *, uint64_t now_ns);
