/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In-band network telemetry as HPCC carries it (Li et al., SIGCOMM 2019, section 4.1): each switch
 * on the way pushes eight bytes about the port that the packet leaves by, behind a header of two.
 * The stored values are those of the wire, so a reader sees the same coarse, wrapping values in
 * a simulation as from hardware.
 *
 *      15  12 11             0
 *     +------+----------------+     pathID: XOR of the switches' numbers, so that another path
 *     | nHop |     pathID     |     shows even where it has as many hops
 *     +------+----------------+
 *
 *      63 60 59        36 35        16 15         0
 *     +-----+------------+------------+------------+
 *     |  B  |     ts     |  txBytes   |    qlen    |
 *     +-----+------------+------------+------------+
 *
 *     B        code of the port's speed, below
 *     ts       when the packet left the queue, 1 ns, wraps after 16.8 ms
 *     txBytes  what the port had sent before it, 128 B x m, wraps
 *     qlen     what stood in the queue behind it, 80 B x m, saturates
 *     m        speed / 25 Gbit/s, rounded down, at least 1
 *
 * Both counters wrap, so differences are only right between readings less than INT_WRAP_NS apart.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	INT_HOPS_MAX = 8,
	INT_HEADER_LEN = 2,
	INT_HOP_LEN = 8,
	INT_LEN_MAX = INT_HEADER_LEN + INT_HOPS_MAX * INT_HOP_LEN,
	INT_WRAP_NS = 1 << 24,
};

/* One egress port at one moment, as a switch measures it. */
struct int_hop {
	uint64_t rate_bps;
	uint64_t ts_ns;
	uint64_t tx_bytes; /* since any moment */
	uint32_t qlen_bytes;
};

/* A value: plain memory, copied freely. */
struct int_stack {
	uint64_t hop[INT_HOPS_MAX]; /* as on the wire, see int_hop_pack */
	uint16_t path_id;           /* 12 bits */
	uint8_t hops;
};

/*
 * Whether the field B has a code for exactly this speed. Other speeds are encoded as the next lower
 * one.
 */
bool int_rate_is_known(uint64_t rate_bps);

/* Rounds down to the units of the fields, wraps and saturates. */
uint64_t int_hop_pack(const struct int_hop *);

/* ts_ns and tx_bytes within their fields; a code without a speed gives rate_bps 0. */
struct int_hop int_hop_unpack(uint64_t packed);

/* From the earlier to the later of two readings of one port, modulo the width of the field. */
uint64_t int_ts_diff_ns(const struct int_hop *later, const struct int_hop *earlier);
uint64_t int_tx_diff_bytes(const struct int_hop *later, const struct int_hop *earlier);

static inline void int_stack_init(struct int_stack *s)
{
	*s = (struct int_stack){0};
}

/* Appends what switch number `switch_id` measured. False, and nothing done: the stack is full. */
bool int_stack_push(struct int_stack *, const struct int_hop *, uint32_t switch_id);

/* Bytes that a stack of so many hops takes on the wire. */
static inline size_t int_stack_len(unsigned int hops)
{
	return INT_HEADER_LEN + (size_t)hops * INT_HOP_LEN;
}

/* Writes int_stack_len(s->hops) bytes and returns that. */
size_t int_stack_encode(uint8_t *, const struct int_stack *);

/* How many bytes it took; 0, and nothing written: too short, or more hops than INT_HOPS_MAX. */
size_t int_stack_decode(struct int_stack *, const uint8_t *, size_t len);
