/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HPCC (Li et al., SIGCOMM 2019): switches report what their ports carry, and the window goes
 * straight to the value at which the busiest port would be used to the share eta.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/int_stack.h"

struct cc;
struct cc_config;

struct hpcc_params {
	uint64_t eta_q32;    /* the target utilisation */
	uint32_t max_stage;  /* additive rounds in a row; 0: every round is multiplicative */
	uint32_t flows;      /* flows whose additions W_AI together stay below the link */
	uint64_t w_ai_bytes; /* W_AI itself; 0: see rate_ai */
	uint64_t rate_ai;    /* W_AI / T: see relative.h; 0: from eta and flows */
	uint64_t t;          /* T, in ns or base RTTs: see relative.h */
};

extern const struct hpcc_params hpcc_params_default;

struct cc_hpcc {
	const struct hpcc_params *params;
	uint64_t t_ns;
	uint64_t window_q16;    /* W, 1/65536 byte */
	uint64_t reference_q16; /* Wc, moves once a round trip */
	uint64_t window_q16_max;
	uint64_t window_q16_min;
	uint64_t w_ai_q16;
	uint64_t u_q32;             /* running normalised bytes in flight of the busiest hop */
	uint64_t round_end;         /* snd_nxt at the last move of Wc */
	uint64_t heard_ns;          /* when `hop` was stored */
	uint64_t halved_ns;         /* when a loss last took a half; UINT64_MAX: never */
	uint64_t hop[INT_HOPS_MAX]; /* the last stack */
	uint16_t path_id;
	uint8_t hops;
	bool heard;
	uint32_t stage; /* incStage */
};

/* cc_init with other parameters, borrowed for the life of the block. */
void hpcc_init(struct cc *, const struct cc_config *, const struct hpcc_params *, uint64_t now_ns);

/*
 * The steps of the algorithm, for tests and readers of a single step.
 *
 * hpcc_hop_q32: utilisation of a hop between two readings of it: its queue, the smaller of the two,
 * and what it sent, over what it can in t_ns. dt_ns is the time between them; UINT64_MAX: these
 * readings say nothing.
 */
uint64_t hpcc_hop_q32(const struct int_hop *later, const struct int_hop *earlier, uint64_t t_ns, uint64_t *dt_ns);

/* The running utilisation after a measurement that lasted dt_ns. */
uint64_t hpcc_average_q32(uint64_t average_q32, uint64_t u_q32, uint64_t dt_ns, uint64_t t_ns);
