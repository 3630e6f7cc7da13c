/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parameters of congestion control by name, as command lines and scenarios spell them. One
 * table has every fact about a parameter, so help, manuals and error messages agree with the
 * parser.
 *
 * A name is "hpcc.eta", or "eta" where the algorithm is hpcc; those of every algorithm ("window",
 * "loss", "rate_min") have no dot. Values are decimals with a unit, taken exactly:
 *
 *     ratio   0.95  1/256
 *     count   5
 *     time    300us  1.5ms  2s  800ns, and 1.25rtt: of the base RTT
 *     rate    20Mbps  1.5Gbps  64kbps  9bps, and line/1000: of the line rate
 *     bytes   80B  10KB  10MB (powers of 1000)  64KiB  1MiB (of 1024)
 *     switch  on  off
 *     choice  one of the words that `unit` lists, with | between
 *
 * A number without its unit is refused, 0 excepted.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cc/cc.h"

/*
 * For the transport: to whom a veRoCE receiver gives equal shares of its port (transport/rxshare.h). A crowd: more hosts
 * than windows can hold; on: any that together want more than the port; off: nobody.
 */
enum cc_shares { CC_SHARES_CROWD, CC_SHARES_ON, CC_SHARES_OFF };

/* A value: copied freely. Fill it with cc_params_default; the members may then be set as well. */
struct cc_params {
	enum cc_algorithm algorithm;
	enum cc_loss_policy loss;
	uint64_t rate_min; /* relative.h; 0: the algorithm's own */
	/*
	 * Not NULL: an algorithm that has no row in the list; borrowed. `algorithm` is then CC_NONE. The
	 * algorithm's parameters lie around its config->params.
	 */
	const struct cc_kind *own;
	enum cc_shares rxshare;
	bool window; /* +w: the window shrinks with the rate; window algorithms ignore it */
	union {
		uint8_t of_kind[1]; /* the algorithm's own */
#define CC_PARAMS(x) struct x##_params x;
		CC_STATE_ROWS(CC_PARAMS)
#undef CC_PARAMS
	};
};

/* What makes such blocks. */
static inline const struct cc_kind *cc_params_kind(const struct cc_params *p)
{
	return p->own ? p->own : cc_kind_of(p->algorithm);
}

/* Whether such blocks react to anything, marks included; those of CC_NONE do not. */
static inline bool cc_params_heed(const struct cc_params *p)
{
	return p->own || p->algorithm != CC_NONE;
}

/* For the transport: whether it should tell how much of a round trip was queues on the way back. */
static inline bool cc_params_one_way(const struct cc_params *p)
{
	return p->algorithm == CC_SWIFT && p->swift.one_way;
}

/* One parameter. All text is static. */
struct cc_param_info {
	const char *name;
	const char *unit; /* a word of the list above, or the choices */
	const char *value_default;
	const char *value_min; /* "": no numbers */
	const char *value_max;
	const char *help;
	uint32_t algorithms;   /* bit n: it is one of enum cc_algorithm n's */
	uint16_t kind, offset; /* for cc_params_set alone */
};

/* A published set of values. All text is static. */
struct cc_preset_info {
	enum cc_algorithm algorithm;
	const char *name;
	const char *help;
	const char *values; /* "name=value name=value", on top of the defaults */
};

/* What that algorithm has where the user says nothing. */
void cc_params_default(struct cc_params *, enum cc_algorithm);

/* 0, or -EINVAL with nothing changed: no such parameter of this algorithm, or not a value it takes.
 */
int cc_params_set(struct cc_params *, const char *name, const char *value);

/*
 * The defaults with the values of a preset of params->algorithm ("hpcc-eval"; "default": none). 0,
 * or -EINVAL with nothing changed: this algorithm has no such preset.
 */
int cc_params_preset(struct cc_params *params, const char *name);

/* The row of the parameter by which cc_params_set() judges this name; NULL: this algorithm has no
 * such parameter. */
const struct cc_param_info *cc_param_find(enum cc_algorithm, const char *name);

/* The least time between two CNPs that a receiver sends for a flow; 0: one for each marked packet. */
uint64_t cc_params_cnp_gap_ns(const struct cc_params *);

/* The rows, for help and checks; *n is their number. */
const struct cc_param_info *cc_params_table(size_t *n);
const struct cc_preset_info *cc_presets_table(size_t *n);
