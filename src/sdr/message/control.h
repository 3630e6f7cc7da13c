/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of the control path: receivers grant and acknowledge, senders probe. Each message
 * may be lost, doubled or overtaken, so it carries the present state and never a change of it.
 * Integers are big-endian.
 *
 *      0        2     3      4                8               12       14      16
 *     +--------+-----+------+----------------+----------------+--------+-------+----------------
 *     | 0x5344 | ver | type | connection tag | message number | length | flags | payload (length)
 *     +--------+-----+------+----------------+----------------+--------+-------+----------------
 *
 *     type        payload                                      meaning
 *     CTS         posted 32, first 32, count 16,               receives posted, and count of the
 *                 count x {length 64, key 32}                  grants from first on
 *     SR_ACK      cum 32, from 32, count 16,                   the first cum chunks are there; and from
 *                 count x {there 16, missing 16}               `from` on so many are, so many are not,
 *                                                              and so on; of what follows nothing is said
 *     SR_NACK     count 16, count x {first 32, run 32}         chunks asked for
 *     EC_ACK      lost 32                                      the message can be recovered; so many
 *                                                              of its data pieces had not come
 *     EC_NACK     mode 8 (0), count 16, count x group 32       groups that cannot be recovered
 *     PROBE                                                    asks for the state of the message
 *     DONE        low 32                                       every message below low is finished
 *     ABORT       code 16                                      the sender of this gives up
 *     CTS_KNOWN   known 32                                     the grants below known have arrived
 *     EC_SHORT    marker 32, groups 32, count 16,              the first so many groups can be
 *                 count x {group 32, pieces 16}                recovered; these lack so many pieces,
 *                                                              of what was sent before the marker
 *     EC_END      marker 32                                    everything was sent; the n-th time
 *                                                              that this is so
 *     EC_PLAN     see ec_plan.h                                how the message is coded
 *     PING        stamp 64                                     asks for a PONG
 *     PONG        stamp 64                                     the stamp of a PING
 *
 * Message numbers are 64 bits long inside, their lower 32 bits on the wire.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CONTROL_MAGIC = 0x5344,
	CONTROL_VERSION = 1,
	CONTROL_HEADER_LEN = 16,
	CTS_FIXED_LEN = 10,
	CTS_GRANT_LEN = 12,
	CTS_GRANTS_MAX = 128,
	SR_ACK_FIXED_LEN = 10,
	SR_ACK_RUN_LEN = 4,
	SR_NACK_FIXED_LEN = 2,
	SR_NACK_RUN_LEN = 8,
	EC_ACK_LEN = 4,
	EC_NACK_FIXED_LEN = 3,
	EC_NACK_GROUP_LEN = 4,
	EC_SHORT_FIXED_LEN = 10,
	EC_SHORT_GROUP_LEN = 6,
	EC_END_LEN = 4,
	EC_PLAN_LEN = 28,
	PING_LEN = 8,
	CODED_PLAN_LEN = 16,
	CODED_STATE_LEN = 16,
};

enum control_type {
	CONTROL_CTS = 1,
	CONTROL_SR_ACK,
	CONTROL_SR_NACK,
	CONTROL_EC_ACK,
	CONTROL_EC_NACK,
	CONTROL_PROBE,
	CONTROL_DONE,
	CONTROL_ABORT,
	CONTROL_CTS_KNOWN,
	CONTROL_EC_SHORT,
	CONTROL_EC_END,
	CONTROL_EC_PLAN,
	CONTROL_PING,
	CONTROL_PONG,
	CONTROL_CODED_PLAN, /* coded_words.h has these two */
	CONTROL_CODED_STATE,
	CONTROL_TYPE_END
};

enum {
	CONTROL_ANSWER = 1, /* flag of a CTS: asks for a CTS_KNOWN */
};

struct control {
	enum control_type type;
	uint32_t tag;
	uint32_t number; /* the message's, or 0 */
	uint16_t flags;
	uint16_t length; /* of the payload */
};

struct cts {
	uint32_t posted;
	uint32_t first;
	uint16_t count;
};

struct grant {
	uint64_t bytes; /* of the receive */
	uint32_t key;   /* opens it, at address 0 */
};

struct sr_ack {
	uint32_t cum;
	uint32_t from;
	uint16_t count;
};

/* Chunks that are there, and those behind them that are not. */
struct ack_run {
	uint16_t there, missing;
};

struct chunk_run {
	uint32_t first, count;
};

struct ec_short {
	uint32_t marker;
	uint32_t groups; /* the first so many can be recovered */
	uint16_t count;
};

/* A group and how many more pieces of it are wanted. */
struct ec_lack {
	uint32_t group;
	uint16_t pieces;
};

/* Room for the header is before the payload that the encoders below write. */
void control_encode(uint8_t *, const struct control *);
/* Reads a header. False unless this is a control message of this version and tag, whose payload is
 * as long as its type says; the type's decoder may then read it. The values are not judged. */
bool control_decode(struct control *, const uint8_t *, size_t len, uint32_t tag);

/* Payloads: the encoders return their length. Decoders take what control_decode() has judged. */
uint16_t cts_encode(uint8_t *, const struct cts *, const struct grant *);
void cts_decode(struct cts *, const uint8_t *);
struct grant cts_grant(const uint8_t *, uint32_t i);
uint16_t sr_ack_encode(uint8_t *, const struct sr_ack *, const struct ack_run *);
void sr_ack_decode(struct sr_ack *, const uint8_t *);
struct ack_run sr_ack_run(const uint8_t *, uint32_t i);
uint16_t sr_nack_encode(uint8_t *, const struct chunk_run *, uint16_t count);
uint16_t sr_nack_count(const uint8_t *);
struct chunk_run sr_nack_run(const uint8_t *, uint32_t i);
uint16_t ec_nack_encode(uint8_t *, const uint32_t *groups, uint16_t count);
uint16_t ec_nack_count(const uint8_t *);
uint32_t ec_nack_group(const uint8_t *, uint32_t i);
uint16_t ec_short_encode(uint8_t *, const struct ec_short *, const struct ec_lack *);
void ec_short_decode(struct ec_short *, const uint8_t *);
struct ec_lack ec_short_lack(const uint8_t *, uint32_t i);

/* The 64-bit number that a 32-bit one of the wire means, near to one that is known. */
static inline uint64_t number_near(uint64_t known, uint32_t wire)
{
	int64_t n = (int64_t)known + (int32_t)(wire - (uint32_t)known);

	return n < 0 ? wire : (uint64_t)n;
}
