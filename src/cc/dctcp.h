/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCTCP (RFC 8257): the window shrinks by half of the running share of marked bytes, once a window
 * of data, and grows by one MTU a round trip.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cc;
struct cc_config;

struct dctcp_params {
	uint64_t g_q32;           /* gain of alpha */
	uint64_t alpha_start_q32; /* RFC 8257 s3.3: 1, so that the first cut is a half */
	uint64_t rate_ai;         /* x base RTT is the increase: see relative.h; 0: one MTU */
	bool doubling;            /* begin with slow start */
	bool paced;               /* spread the window over the base RTT, if that is configured */
	bool bounded;             /* the window never exceeds the first one */
};

extern const struct dctcp_params dctcp_params_default;

struct cc_dctcp {
	const struct dctcp_params *params;
	uint64_t cwnd_q16;     /* 1/65536 byte */
	uint64_t ssthresh_q16; /* the window doubles a round trip below this */
	uint64_t alpha_q32;    /* share of bytes marked, 0 .. 1 */
	uint64_t ai_q16;       /* increase a round trip, 1/65536 byte */
	uint64_t pace_ns;      /* 0: not paced */
	uint64_t snd_nxt;
	uint64_t ack_seq;
	uint64_t round_end;    /* snd_nxt when the round began (RFC 8257: WindowEnd) */
	uint64_t round_cwnd;   /* cwnd_bytes when the round began */
	uint64_t acked_bytes;  /* in this round */
	uint64_t marked_bytes; /* likewise */
	uint64_t cwr_end;      /* snd_nxt at the last cut: no other before this is acknowledged */
	bool cwr;
	bool cnp;     /* a CNP came in this round */
	bool timeout; /* no ACK since the last RTO */
	bool used;    /* the last round used the window */
};

/* cc_init with other parameters, borrowed for the life of the block. */
void dctcp_init(struct cc *, const struct cc_config *, const struct dctcp_params *, uint64_t now_ns);
