/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Swift (Kumar et al., SIGCOMM 2020): a delay target and AIMD around it. Two windows, one for the
 * delay of the fabric and one for that of the hosts; the smaller counts. Below one packet the
 * window becomes a pacing rate.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cc;
struct cc_config;

/* Packets are MTUs. _q16 and _q32 are fixed point with that many fraction bits. */
struct swift_params {
	/* The paper's. */
	uint32_t ai_q16;        /* additive increase, packets a round trip */
	uint64_t beta_q32;      /* how hard delay over target is answered */
	uint64_t max_mdf_q32;   /* the largest share that one cut takes */
	uint64_t base_ns;       /* base target; 0: base RTT + base_slack_ns */
	uint64_t base_slack_ns; /* ... */
	uint64_t hop_ns;        /* target a hop; not where the base is measured: it has them */
	uint64_t fs_range_ns;   /* most that scaling adds to the target; 0: fs_range_q32 x base */
	uint64_t fs_range_q32;  /* ... */
	uint64_t fs_min_q32;    /* packets at which scaling adds its whole range; >= 1/1024 */
	uint64_t fs_max_q32;    /* packets at which it adds nothing; > fs_min_q32 */
	uint32_t retx_reset;    /* RTOs in a row after which the window falls to its minimum */

	/* Ours: what a software NIC needs on a network of which it knows nothing. */
	uint64_t host_target_ns; /* of the hosts' window, or half of the base RTT if more */
	bool doubling;           /* begin with a window that doubles a round trip */
	uint32_t hyper_rounds;   /* calm rounds until the increase becomes a share; 0: never */
	uint32_t hyper_shift;    /* ... of 2^-hyper_shift of the window a round trip */
	uint64_t cnp_mdf_q32;    /* what a CNP takes, as it reports no share of marks */
	bool one_way;            /* queues on the way back do not count */
	uint64_t rtt_unknown_ns; /* least time between two cuts before the first RTT is known */
	uint64_t base_bucket_ns; /* a measured base RTT is the least of this and the last */
};

extern const struct swift_params swift_params_default;

struct swift_window {
	uint64_t cwnd_q16;    /* 1/65536 byte */
	uint64_t last_cut_ns; /* UINT64_MAX: never */
	bool doubling;
	bool disturbed;      /* in this round: more than half of the target, a mark, or a loss */
	bool sampled;        /* in this round: any delay */
	uint8_t calm_rounds; /* undisturbed ones in a row */
};

struct cc_swift {
	const struct swift_params *params;
	struct swift_window fabric;
	struct swift_window host;
	uint64_t base_rtt_ns;  /* configured or measured; 0: not yet known */
	uint64_t target_ns;    /* as configured */
	uint64_t bucket_ns[2]; /* least fabric delay, this and last; UINT64_MAX: none */
	uint32_t bucket;       /* number of the current one */
	bool base_measured;
	bool used; /* the last round used the window */
	bool round_open;
	uint8_t drain_rounds;    /* left; 0: not draining */
	uint8_t target_rtt_part; /* as configured */
	uint8_t timeouts;
	uint64_t rtt_ns; /* the newest; 0: none yet */
	uint64_t snd_nxt;
	uint64_t round_end;         /* snd_nxt when the round began */
	uint64_t acked_bytes;       /* in this round */
	uint64_t marked_bytes;      /* likewise */
	uint64_t round_cwnd;        /* cwnd_bytes when the round began */
	uint64_t pending_bytes;     /* acknowledged, with no delay yet that decides about growth */
	uint64_t drain_end;         /* snd_nxt when this round of draining began */
	uint64_t drain_bytes;       /* the window while draining */
	uint64_t fs_isqrt_max_q26;  /* 1/sqrt(fs_max) */
	uint64_t fs_isqrt_span_q26; /* 1/sqrt(fs_min) - 1/sqrt(fs_max) */
};

/* cc_init with other parameters, borrowed for the life of the block. */
void swift_init(struct cc *, const struct cc_config *, const struct swift_params *, uint64_t now_ns);

/*
 * Flow scaling: what a window of cwnd_q32 packets adds to a target that it may raise by range_ns.
 * A/sqrt(cwnd) + B of the paper, within [0, range_ns].
 */
uint64_t swift_flow_scaling(const struct swift_params *, uint64_t range_ns, uint64_t cwnd_q32);
