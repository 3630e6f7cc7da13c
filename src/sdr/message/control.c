/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Length is judged once, by control_decode(): a payload has exactly the bytes that its type and its
 * own count say. The sender and the receiver judge the values.
 */
#include "base/byteorder.h"
#include "sdr/message/control.h"

/* How long the payload must be, by its fixed part; negative: no payload begins like this. */
static int32_t cts_len(const uint8_t *p)
{
	uint16_t count = get_be16(p + 8);

	return count > CTS_GRANTS_MAX ? -1 : CTS_FIXED_LEN + count * CTS_GRANT_LEN;
}

static int32_t sr_ack_len(const uint8_t *p)
{
	return SR_ACK_FIXED_LEN + get_be16(p + 8) * SR_ACK_RUN_LEN;
}

static int32_t sr_nack_len(const uint8_t *p)
{
	return SR_NACK_FIXED_LEN + get_be16(p) * SR_NACK_RUN_LEN;
}

static int32_t coded_plan_len(const uint8_t *p)
{
	return get_be16(p + 14) & CODED_PLAN_TIMES ? CODED_PLAN_LEN_MAX : CODED_PLAN_LEN;
}

static int32_t no_len(const uint8_t *p)
{
	return 0;
}

static const struct {
	uint8_t fixed;
	int32_t (*len)(const uint8_t *fixed); /* NULL: the fixed part is all; where that is 0, there is no such type */
} payloads[CONTROL_TYPE_END] = {
	[CONTROL_CTS] = {CTS_FIXED_LEN, cts_len},
	[CONTROL_SR_ACK] = {SR_ACK_FIXED_LEN, sr_ack_len},
	[CONTROL_SR_NACK] = {SR_NACK_FIXED_LEN, sr_nack_len},
	[CONTROL_PROBE] = {0, no_len},
	[CONTROL_DONE] = {4, NULL},
	[CONTROL_ABORT] = {2, NULL},
	[CONTROL_CTS_KNOWN] = {4, NULL},
	[CONTROL_PING] = {PING_LEN, NULL},
	[CONTROL_PONG] = {PING_LEN, NULL},
	[CONTROL_CODED_PLAN] = {CODED_PLAN_LEN, coded_plan_len},
	[CONTROL_CODED_STATE] = {CODED_STATE_LEN, NULL},
	[CONTROL_COUNT] = {COUNT_LEN, NULL},
};

void control_encode(uint8_t *p, const struct control *c)
{
	put_be16(p, CONTROL_MAGIC);
	p[2] = CONTROL_VERSION;
	p[3] = (uint8_t)c->type;
	put_be32(p + 4, c->tag);
	put_be32(p + 8, c->number);
	put_be16(p + 12, c->length);
	put_be16(p + 14, c->flags);
}

static bool payload_fits(enum control_type type, const uint8_t *payload, uint16_t len)
{
	if (len < payloads[type].fixed || (!payloads[type].fixed && !payloads[type].len))
		return false;
	return len == (payloads[type].len ? payloads[type].len(payload) : payloads[type].fixed);
}

bool control_decode(struct control *c, const uint8_t *p, size_t len, uint32_t tag)
{
	struct control got;

	if (len < CONTROL_HEADER_LEN || get_be16(p) != CONTROL_MAGIC || p[2] != CONTROL_VERSION)
		return false;
	if (p[3] < CONTROL_CTS || p[3] >= CONTROL_TYPE_END || get_be32(p + 4) != tag)
		return false;
	got = (struct control){
		.type = (enum control_type)p[3],
		.tag = tag,
		.number = get_be32(p + 8),
		.length = get_be16(p + 12),
		.flags = get_be16(p + 14),
	};
	if (len != (size_t)CONTROL_HEADER_LEN + got.length ||
	    !payload_fits(got.type, p + CONTROL_HEADER_LEN, got.length))
		return false;
	*c = got;
	return true;
}

uint16_t cts_encode(uint8_t *p, const struct cts *c, const struct grant *grants)
{
	put_be32(p, c->posted);
	put_be32(p + 4, c->first);
	put_be16(p + 8, c->count);
	for (uint32_t i = 0; i < c->count; i++) {
		put_be64(p + CTS_FIXED_LEN + i * CTS_GRANT_LEN, grants[i].bytes);
		put_be32(p + CTS_FIXED_LEN + i * CTS_GRANT_LEN + 8, grants[i].key);
	}
	return (uint16_t)(CTS_FIXED_LEN + c->count * CTS_GRANT_LEN);
}

void cts_decode(struct cts *c, const uint8_t *p)
{
	*c = (struct cts){get_be32(p), get_be32(p + 4), get_be16(p + 8)};
}

struct grant cts_grant(const uint8_t *p, uint32_t i)
{
	p += CTS_FIXED_LEN + i * CTS_GRANT_LEN;
	return (struct grant){.bytes = get_be64(p), .key = get_be32(p + 8)};
}

uint16_t sr_ack_encode(uint8_t *p, const struct sr_ack *a, const struct ack_run *runs)
{
	put_be32(p, a->cum);
	put_be32(p + 4, a->from);
	put_be16(p + 8, a->count);
	for (uint32_t i = 0; i < a->count; i++) {
		put_be16(p + SR_ACK_FIXED_LEN + i * SR_ACK_RUN_LEN, runs[i].there);
		put_be16(p + SR_ACK_FIXED_LEN + i * SR_ACK_RUN_LEN + 2, runs[i].missing);
	}
	return (uint16_t)(SR_ACK_FIXED_LEN + a->count * SR_ACK_RUN_LEN);
}

void sr_ack_decode(struct sr_ack *a, const uint8_t *p)
{
	*a = (struct sr_ack){get_be32(p), get_be32(p + 4), get_be16(p + 8)};
}

struct ack_run sr_ack_run(const uint8_t *p, uint32_t i)
{
	p += SR_ACK_FIXED_LEN + i * SR_ACK_RUN_LEN;
	return (struct ack_run){get_be16(p), get_be16(p + 2)};
}

void count_encode(uint8_t *p, const struct count *c)
{
	put_be64(p, c->stamp);
	put_be64(p + 8, c->bytes);
	put_be64(p + 16, c->time_ns);
}

void count_decode(struct count *c, const uint8_t *p)
{
	*c = (struct count){get_be64(p), get_be64(p + 8), get_be64(p + 16)};
}

uint16_t sr_nack_encode(uint8_t *p, const struct chunk_run *runs, uint16_t count)
{
	put_be16(p, count);
	for (uint32_t i = 0; i < count; i++) {
		put_be32(p + SR_NACK_FIXED_LEN + i * SR_NACK_RUN_LEN, runs[i].first);
		put_be32(p + SR_NACK_FIXED_LEN + i * SR_NACK_RUN_LEN + 4, runs[i].count);
	}
	return (uint16_t)(SR_NACK_FIXED_LEN + count * SR_NACK_RUN_LEN);
}

uint16_t sr_nack_count(const uint8_t *p)
{
	return get_be16(p);
}

struct chunk_run sr_nack_run(const uint8_t *p, uint32_t i)
{
	p += SR_NACK_FIXED_LEN + i * SR_NACK_RUN_LEN;
	return (struct chunk_run){get_be32(p), get_be32(p + 4)};
}
