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
 *     PROBE                                                    asks for the state of the message
 *     DONE        low 32                                       every message below low is finished
 *     ABORT       code 16                                      the sender of this gives up
 *     CTS_KNOWN   known 32                                     the grants below known have arrived
 *     PING        stamp 64                                     asks for a PONG, or by its flag for a COUNT
 *     PONG        stamp 64                                     the stamp of a PING
 *     CODED_PLAN  see coded_words.h                            how the message is coded
 *     CODED_STATE see coded_words.h                            what has come, and whether that is enough
 *     COUNT       stamp 64, bytes 64, time 64                  the stamp of a PING; the payload of all packets that
 *                                                              have come so far; and when that was counted, in
 *                                                              nanoseconds by any clock that never goes back
 *
 * Message numbers are 64 bits long inside, their lower 32 bits on the wire. Types 4, 5 and 10 to 12 were those of
 * version 2 (info.h). A peer that does not know COUNT does not know the flag either, and answers by a PONG.
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
	PING_LEN = 8,
	CODED_PLAN_LEN = 16,
	CODED_PLAN_LEN_MAX = 24,
	CODED_PLAN_TIMES = 32, /* the flag of a plan with times */
	CODED_STATE_LEN = 16,
	COUNT_LEN = 24,
};

enum control_type {
	CONTROL_CTS = 1,
	CONTROL_SR_ACK,
	CONTROL_SR_NACK,
	CONTROL_PROBE = 6,
	CONTROL_DONE,
	CONTROL_ABORT,
	CONTROL_CTS_KNOWN,
	CONTROL_PING = 13,
	CONTROL_PONG,
	CONTROL_CODED_PLAN, /* coded_words.h has these two */
	CONTROL_CODED_STATE,
	CONTROL_COUNT,
	CONTROL_TYPE_END
};

enum {
	CONTROL_ANSWER = 1,      /* flag of a CTS: asks for a CTS_KNOWN */
	CONTROL_WANTS_COUNT = 2, /* flag of a PING: asks for a COUNT */
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

struct count {
	uint64_t stamp;
	uint64_t bytes;
	uint64_t time_ns;
};

/* Chunks that are there, and those behind them that are not. */
struct ack_run {
	uint16_t there, missing;
};

struct chunk_run {
	uint32_t first, count;
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
void count_encode(uint8_t *, const struct count *);
void count_decode(struct count *, const uint8_t *);
uint16_t sr_nack_count(const uint8_t *);
struct chunk_run sr_nack_run(const uint8_t *, uint32_t i);

/* The 64-bit number that a 32-bit one of the wire means, near to one that is known. */
static inline uint64_t number_near(uint64_t known, uint32_t wire)
{
	int64_t n = (int64_t)known + (int32_t)(wire - (uint32_t)known);

	return n < 0 ? wire : (uint64_t)n;
}
