/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The description of an end, which the user carries to the other end before the two connect. Big-endian:
 *
 *      0        4         6        8       9            10        12        16            20
 *     +--------+---------+--------+-------+------------+---------+---------+-------------+---------------
 *     | "SDRI" | version | length | roles | transport  | lid     | tag     | control QPN | GID (16)
 *     +--------+---------+--------+-------+------------+---------+---------+-------------+---------------
 *      36       40            44       48                   56            58         60 61 62  64
 *     +--------+-------------+--------+--------------------+-------------+----------+--+--+--+--+----------------
 *     | mtu    | chunk bytes | slots  | message bytes      | generations | channels | I| O| U| F| QPNs, 4 each ..
 *     +--------+-------------+--------+--------------------+-------------+----------+--+--+--+--+----------------
 *
 * F: 1 if there is a channel for idle fill beside the others, which has a QP of each generation too; their QPNs are the
 * last. The PSN that a QP starts with is the lower 24 bits of the tag.
 */
#pragma once

#include <stddef.h>

#include "sdr/message/shape.h"

enum {
	INFO_VERSION = 3, /* of the description, and of what control messages say */
	INFO_FIXED_LEN = 64,
	INFO_QPS_MAX = SHAPE_GENERATIONS_MAX * (SHAPE_CHANNELS_MAX + 1),
	INFO_LEN_MAX = INFO_FIXED_LEN + 4 * INFO_QPS_MAX,
};

enum { INFO_SENDS = 1, INFO_RECEIVES = 2 };

struct info {
	struct shape shape;
	uint8_t roles;     /* INFO_SENDS, INFO_RECEIVES */
	uint8_t transport; /* 0: UC, 1: RC */
	bool fills;        /* there is a channel for idle fill */
	uint16_t lid;
	uint32_t tag; /* in every control message to this end */
	uint32_t control_qpn;
	uint8_t gid[16];
	const uint8_t *qpns; /* for info_qpn(): points into what was decoded */
};

/* QPs for data. */
static inline uint32_t info_qps(const struct info *i)
{
	return i->shape.generations * (i->shape.channels + i->fills);
}

/* The place of a QP among these; channel shape.channels: that of idle fill. */
static inline uint32_t info_qp(const struct info *i, uint32_t generation, uint32_t channel)
{
	const struct shape *s = &i->shape;

	return channel < s->channels ? generation * s->channels + channel : s->generations * s->channels + generation;
}

static inline size_t info_len(const struct info *i)
{
	return INFO_FIXED_LEN + (size_t)4 * info_qps(i);
}

/* Writes info_len() bytes except the QPNs, which info_put_qpn() writes, each in its place (info_qp()). */
void info_encode(uint8_t *, const struct info *);
void info_put_qpn(uint8_t *, uint32_t place, uint32_t qpn);
/* False for anything that info_encode() would not write. Lends p. */
bool info_decode(struct info *, const uint8_t *p, size_t len);
uint32_t info_qpn(const struct info *, uint32_t place);

/* Whether two ends can be connected: the same shape and channels, and each sends only what the other receives. */
bool info_match(const struct info *, const struct info *);
