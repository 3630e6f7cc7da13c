/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * veRoCE's opcode table, the length judge and the walk along a packet's headers. The table holds
 * the stacks of veRoCE 3 behind the BTH; the time stamps follow from BTH.T (veRoCE 13.2) and are
 * not in it.
 *
 * Both walks visit the headers in the order of their H_ bits, which is their order on the wire.
 */
#include "wire/veroce.h"

#include <assert.h>

#include "wire/icrc.h"
#include "wire/opcode_row.h"

/* The stacks that several operations share. All packets of a WRITE have the RETH (veRoCE 3). */
#define H_START (H_BTH | H_MSNETH)
#define H_NEXT  (H_BTH | H_MSNETH | H_POETH)
#define H_ACK   (H_BTH | H_AETH | H_POETH)
/* Most packets have none of these. */
#define H_BEHIND_POETH (H_SACKETH | H_ATOMICACKETH | H_IMMDT | H_IETH | H_RTTETH | H_CAPSETH | H_HOLDETH | H_ROAMETH)

/* clang-format off */
const struct opcode_info veroce_opcode_table[256] = {
	ROW(RC_SEND_FIRST,           H_START | H_RQETH,
						F_REQUEST | F_SEND | F_FIRST | F_PAYLOAD),
	ROW(RC_SEND_MIDDLE,          H_NEXT | H_RQETH,
						F_REQUEST | F_SEND | F_MIDDLE | F_PAYLOAD),
	ROW(RC_SEND_LAST,            H_NEXT | H_RQETH,
						F_REQUEST | F_SEND | F_LAST | F_PAYLOAD),
	ROW(RC_SEND_LAST_IMM,        H_NEXT | H_RQETH | H_IMMDT,
						F_REQUEST | F_SEND | F_LAST | F_PAYLOAD),
	ROW(RC_SEND_ONLY,            H_START | H_RQETH,
						F_REQUEST | F_SEND | F_ONLY | F_PAYLOAD),
	ROW(RC_SEND_ONLY_IMM,        H_START | H_RQETH | H_IMMDT,
						F_REQUEST | F_SEND | F_ONLY | F_PAYLOAD),
	ROW(RC_WRITE_FIRST,          H_START | H_RETH,
						F_REQUEST | F_WRITE | F_FIRST | F_PAYLOAD),
	ROW(RC_WRITE_MIDDLE,         H_NEXT | H_RETH,
						F_REQUEST | F_WRITE | F_MIDDLE | F_PAYLOAD),
	ROW(RC_WRITE_LAST,           H_NEXT | H_RETH,
						F_REQUEST | F_WRITE | F_LAST | F_PAYLOAD),
	ROW(RC_WRITE_LAST_IMM,       H_NEXT | H_RETH | H_RQETH | H_IMMDT,
						F_REQUEST | F_WRITE | F_LAST | F_PAYLOAD),
	ROW(RC_WRITE_ONLY,           H_START | H_RETH,
						F_REQUEST | F_WRITE | F_ONLY | F_PAYLOAD),
	ROW(RC_WRITE_ONLY_IMM,       H_START | H_RETH | H_RQETH | H_IMMDT,
						F_REQUEST | F_WRITE | F_ONLY | F_PAYLOAD),
	ROW(RC_READ_REQUEST,         H_START | H_RETH,
						F_REQUEST | F_READ | F_ONLY),
	ROW(RC_READ_RESPONSE_FIRST,  H_START | H_AETH,
						F_RESPONSE | F_READ | F_FIRST | F_PAYLOAD),
	ROW(RC_READ_RESPONSE_MIDDLE, H_NEXT | H_AETH,
						F_RESPONSE | F_READ | F_MIDDLE | F_PAYLOAD),
	ROW(RC_READ_RESPONSE_LAST,   H_NEXT | H_AETH,
						F_RESPONSE | F_READ | F_LAST | F_PAYLOAD),
	ROW(RC_READ_RESPONSE_ONLY,   H_START | H_AETH,
						F_RESPONSE | F_READ | F_ONLY | F_PAYLOAD),
	ROW(RC_ACK,                  H_ACK,          F_RESPONSE | F_ACK | F_ONLY),
	ROW(RC_ATOMIC_ACK,           H_START | H_AETH | H_ATOMICACKETH,
						F_RESPONSE | F_ATOMIC | F_ONLY),
	ROW(RC_CMP_SWAP,             H_START | H_ATOMICETH,
						F_REQUEST | F_ATOMIC | F_ONLY),
	ROW(RC_FETCH_ADD,            H_START | H_ATOMICETH,
						F_REQUEST | F_ATOMIC | F_ONLY),
	ROW(RC_FLUSH,                H_START | H_FETH | H_RETH,
						F_REQUEST | F_MPE | F_ONLY),
	ROW(RC_ATOMIC_WRITE,         H_START | H_RETH,
						F_REQUEST | F_MPE | F_ONLY | F_PAYLOAD),
	ROW(RC_SEND_LAST_INV,        H_NEXT | H_RQETH | H_IETH,
						F_REQUEST | F_SEND | F_LAST | F_PAYLOAD),
	ROW(RC_SEND_ONLY_INV,        H_START | H_RQETH | H_IETH,
						F_REQUEST | F_SEND | F_ONLY | F_PAYLOAD),
	ROW(RC_SACK,                 H_ACK | H_SACKETH,
						F_RESPONSE | F_ACK | F_ONLY),
	ROW(RC_ACK_RSP,              H_ACK,          F_RESPONSE | F_ACK | F_ONLY),
	ROW(RC_SACK_RSP,             H_ACK | H_SACKETH,
						F_RESPONSE | F_ACK | F_ONLY),

	ROW(CNP,                     H_BTH,     F_PAYLOAD),
	ROW(RTT_REQUEST,             H_BTH | H_RTTETH, 0),
	ROW(RTT_RESPONSE,            H_BTH | H_RTTETH, 0),
	ROW(SLOW_PACKET,             H_BTH,     0),
	ROW(CAPS_REQUEST,            H_BTH | H_CAPSETH, 0),
	ROW(CAPS_RESPONSE,           H_BTH | H_CAPSETH, 0),
	ROW(HOLD,                    H_BTH | H_HOLDETH, 0),
	ROW(HELD,                    H_BTH | H_HOLDETH, 0),
	ROW(ROAM,                    H_BTH | H_ROAMETH, 0),
};
/* clang-format on */

/* Packets of a PSN space and acknowledgements of one; the others are neither. */
static bool in_psn_space(uint32_t flags)
{
	return flags & (F_REQUEST | F_RESPONSE);
}

/* The least length; an echo may have one word more. */
static uint32_t stamp_len(const struct bth *bth, uint32_t flags)
{
	return !bth->ts ? 0 : flags & F_ACK ? TSEETH_LEN : TSETH_LEN;
}

/* Whether `body` bytes between headers and ICRC are allowed for an opcode that carries no payload. */
static bool sack_body_ok(uint32_t headers, uint32_t body)
{
	return headers & H_SACKETH && body % SACKETH_LEN == 0 && body <= (VEROCE_SACKS_MAX - 1) * SACKETH_LEN;
}

/* The headers that most packets have, behind the BTH. Returns the first byte after them. */
static inline const uint8_t *decode_numbers(struct veroce_packet *p, const uint8_t *data, uint32_t h, uint32_t flags)
{
	const uint8_t *at = data + BTH_LEN;

	if (p->bth.ts) {
		if (flags & F_ACK) {
			tseeth_decode(&p->tse, at);
			at += tseeth_len(&p->tse);
		} else {
			tseth_decode(&p->ts, at);
			at += TSETH_LEN;
		}
	}
	if (h & H_MSNETH) {
		p->msn = get_low24(at);
		at += MSNETH_LEN;
	}
	if (h & H_RETH) {
		if (__builtin_expect(h & H_FETH, 0)) {
			feth_decode(&p->feth, at);
			at += FETH_LEN;
		}
		reth_decode(&p->reth, at);
		at += RETH_LEN;
	}
	if (h & H_ATOMICETH) {
		atomiceth_decode(&p->atomic, at);
		at += ATOMICETH_LEN;
	}
	if (h & H_AETH) {
		aeth_decode(&p->aeth, at);
		at += AETH_LEN;
	}
	if (h & H_RQETH) {
		p->rqmsn = get_low24(at);
		at += RQETH_LEN;
	}
	if (h & H_POETH) {
		p->po = get_low24(at);
		at += POETH_LEN;
	}
	return at;
}

bool veroce_decode(struct veroce_packet *p, const uint8_t *data, uint32_t len)
{
	if (len < BTH_LEN + ICRC_LEN)
		return false;
	bth_decode(&p->bth, data);

	const struct opcode_info *info = &veroce_opcode_table[p->bth.opcode];
	uint32_t h = info->headers, flags = info->flags;

	if (!info->name || p->bth.tver)
		return false;
	p->bth.ts = p->bth.ts && in_psn_space(flags);

	uint32_t least = info->header_len + stamp_len(&p->bth, flags) + (uint32_t)ICRC_LEN;
	if (len < least)
		return false;

	uint32_t body = len - least, pad = p->bth.pad;
	if (body % 4 || pad > body)
		return false;
	p->tse.has_share = false;
	if (!(flags & F_PAYLOAD)) {
		/*
		 * Each block has 20 bytes, so a remainder of 4 is the word that RXSHARE adds
		 * (13.2).
		 */
		if (p->bth.ts && flags & F_ACK && body % SACKETH_LEN == TSEETH_SHARE_LEN && !pad) {
			p->tse.has_share = true;
			body -= TSEETH_SHARE_LEN;
		}
		if (body && (pad || !sack_body_ok(h, body)))
			return false;
	} else if (p->bth.opcode == OP_CNP) {
		if (pad || (body && body != CNP_RESV_LEN))
			return false;
	}

	p->info = info;
	p->msn = p->rqmsn = p->po = p->imm_or_key = p->sack_count = 0;
	p->sacks = NULL;

	const uint8_t *at = decode_numbers(p, data, h, flags);

	if (!(h & H_BEHIND_POETH)) {
		p->payload = at;
		p->payload_len = body - pad;
		return true;
	}
	if (h & H_SACKETH) {
		p->sacks = at;
		p->sack_count = 1 + body / SACKETH_LEN;
		at += SACKETH_LEN + body;
		body = 0;
	}
	if (h & H_ATOMICACKETH) {
		p->orig = get_be64(at);
		at += ATOMICACKETH_LEN;
	}
	if (h & (H_IMMDT | H_IETH)) {
		p->imm_or_key = get_be32(at);
		at += IMMDT_LEN;
	}
	if (h & H_RTTETH) {
		rtteth_decode(&p->rtt, at);
		at += RTTETH_LEN;
	}
	if (h & H_CAPSETH) {
		capseth_decode(&p->caps, at);
		at += CAPSETH_LEN;
	}
	if (h & H_HOLDETH) {
		holdeth_decode(&p->hold, at);
		at += HOLDETH_LEN;
	}
	if (h & H_ROAMETH) {
		roameth_decode(&p->roam, at);
		at += ROAMETH_LEN;
	}
	p->payload = at;
	p->payload_len = body - pad;
	return true;
}

static uint64_t first_bytes(const uint8_t *data)
{
	uint64_t v;

	memcpy(&v, data, sizeof(v));
	return v;
}

/* Decodes the packet as any other, and remembers it if its layout follows from the compared bytes. */
static const struct veroce_packet *decode_anew(struct veroce_before *b, const uint8_t *data, uint32_t len)
{
	b->len = 0;
	if (!veroce_decode(&b->packet, data, len))
		return NULL;
	if (b->packet.info->headers & H_BEHIND_POETH)
		return &b->packet;
	b->first = first_bytes(data);
	b->bits = data[8];
	b->len = len;
	return &b->packet;
}

const struct veroce_packet *veroce_decode_next(struct veroce_decoder *d, const uint8_t *data, uint32_t len)
{
	enum { BTH_A = 0x80 };
	static_assert((OP_RC_ACK >> 4 & 1) != (OP_RC_SEND_ONLY >> 4 & 1), "not of one kind");
	struct veroce_before *b = len ? &d->before[data[0] >> 4 & 1] : &d->before[0];
	struct veroce_packet *p = &b->packet;

	if (!len || len != b->len || first_bytes(data) != b->first || (data[8] ^ b->bits) & ~BTH_A)
		return decode_anew(b, data, len);
	p->bth.ackreq = data[8] & BTH_A;
	p->bth.psn = get_low24(data + 8);
	p->payload = decode_numbers(p, data, p->info->headers, p->info->flags);
	return p;
}

static_assert((int)IMMDT_LEN == (int)IETH_LEN, "no packet has both; they are walked as one");

uint32_t veroce_encode_headers(uint8_t *out, const struct veroce_packet *p)
{
	const struct opcode_info *info = veroce_opcode_info(p->bth.opcode);
	uint8_t *at = out + BTH_LEN;

	assert(info);

	uint32_t h = info->headers, flags = info->flags;

	assert(!p->bth.ts || in_psn_space(flags));
	bth_encode(out, &p->bth);
	if (p->bth.ts) {
		if (flags & F_ACK) {
			tseeth_encode(at, &p->tse);
			at += tseeth_len(&p->tse);
		} else {
			tseth_encode(at, &p->ts);
			at += TSETH_LEN;
		}
	}
	if (h & H_MSNETH) {
		msneth_encode(at, &(struct msneth){.msn = p->msn});
		at += MSNETH_LEN;
	}
	if (h & H_RETH) {
		if (__builtin_expect(h & H_FETH, 0)) {
			feth_encode(at, &p->feth);
			at += FETH_LEN;
		}
		reth_encode(at, &p->reth);
		at += RETH_LEN;
	}
	if (h & H_ATOMICETH) {
		atomiceth_encode(at, &p->atomic);
		at += ATOMICETH_LEN;
	}
	if (h & H_AETH) {
		aeth_encode(at, &p->aeth);
		at += AETH_LEN;
	}
	if (h & H_RQETH) {
		rqeth_encode(at, &(struct rqeth){.rqmsn = p->rqmsn});
		at += RQETH_LEN;
	}
	if (h & H_POETH) {
		poeth_encode(at, &(struct poeth){.po = p->po});
		at += POETH_LEN;
	}
	if (!(h & H_BEHIND_POETH))
		return (uint32_t)(at - out);
	if (h & H_SACKETH) {
		assert(p->sack_count >= 1);
		assert(p->sack_count <= VEROCE_SACKS_MAX);
		memcpy(at, p->sacks, p->sack_count * SACKETH_LEN);
		at += p->sack_count * SACKETH_LEN;
	}
	if (h & H_ATOMICACKETH) {
		atomicacketh_encode(at, &(struct atomicacketh){.orig = p->orig});
		at += ATOMICACKETH_LEN;
	}
	if (h & (H_IMMDT | H_IETH)) {
		immdt_encode(at, &(struct immdt){.imm = p->imm_or_key});
		at += IMMDT_LEN;
	}
	if (h & H_RTTETH) {
		rtteth_encode(at, &p->rtt);
		at += RTTETH_LEN;
	}
	if (h & H_CAPSETH) {
		capseth_encode(at, &p->caps);
		at += CAPSETH_LEN;
	}
	if (h & H_HOLDETH) {
		holdeth_encode(at, &p->hold);
		at += HOLDETH_LEN;
	}
	if (h & H_ROAMETH) {
		roameth_encode(at, &p->roam);
		at += ROAMETH_LEN;
	}
	return (uint32_t)(at - out);
}

/* Where numbers begin, and a bit before one of them. */
enum { BTH_PSN = 8, BTH_T = 0x20, TSETH_SEQ = 4, RETH_RKEY = 8 };

static uint32_t plus_one24(uint32_t word)
{
	return (word & 0xff000000) | ((word + 1) & 0xffffff);
}

/* In three steps, since GCC may make a REP MOVS of one copy of 48 bytes, which takes longer than all the rest of a
 * header. */
static void copy_headers(uint8_t *to, const uint8_t *from)
{
	static_assert(VEROCE_NEXT_ROOM == 48, "three steps");
	memcpy(to, from, 16);
	memcpy(to + 16, from + 16, 16);
	memcpy(to + 32, from + 32, 16);
}

uint32_t veroce_encode_next(uint8_t *out, const uint8_t *before, uint32_t va_step, bool ackreq)
{
	enum { BTH_A = 0x80 };
	const struct opcode_info *info = &veroce_opcode_table[before[0]];
	uint32_t stamp = before[BTH_PSN] & BTH_T ? TSETH_LEN : 0, len = info->header_len + stamp;
	uint8_t *reth = out + BTH_LEN + stamp + MSNETH_LEN, *po = out + len - POETH_LEN;

	static_assert(BTH_LEN + TSETH_LEN + MSNETH_LEN + RETH_LEN + POETH_LEN <= VEROCE_NEXT_ROOM,
		      "the longest are those of a WRITE");
	assert(info->flags & F_MIDDLE);
	copy_headers(out, before);
	put_be32(out + BTH_PSN, plus_one24(get_be32(out + BTH_PSN)));
	out[BTH_PSN] = (uint8_t)((out[BTH_PSN] & ~BTH_A) | (ackreq ? BTH_A : 0));
	if (stamp)
		put_be32(out + BTH_LEN + TSETH_SEQ, plus_one24(get_be32(out + BTH_LEN + TSETH_SEQ)));
	if (info->headers & H_RETH)
		put_be64(reth, get_be64(reth) + va_step);
	put_be32(po, plus_one24(get_be32(po)));
	return len;
}

/* Writes a number, and leaves the byte before it. */
static void put_low24(uint8_t *at, uint32_t number)
{
	put_be32(at, (get_be32(at) & 0xff000000) | (number & 0xffffff));
}

uint32_t veroce_encode_alike(uint8_t *out, const uint8_t *before, const struct veroce_packet *p)
{
	const struct opcode_info *info = &veroce_opcode_table[before[0]];
	uint32_t stamp = before[BTH_PSN] & BTH_T ? TSETH_LEN : 0;
	uint8_t headers[VEROCE_NEXT_ROOM], *msneth = out + BTH_LEN + stamp, *behind = msneth + MSNETH_LEN;

	static_assert(BTH_LEN + TSETH_LEN + MSNETH_LEN + RETH_LEN <= VEROCE_NEXT_ROOM,
		      "the longest are those of a WRITE");
	assert(info->flags & F_ONLY);
	assert(!(info->headers & H_BEHIND_POETH));
	copy_headers(headers, before);
	copy_headers(out, headers);
	put_low24(out + BTH_PSN, p->bth.psn);
	if (stamp)
		put_low24(out + BTH_LEN + TSETH_SEQ, p->ts.path_seq);
	put_low24(msneth, p->msn);
	if (info->headers & H_RETH) {
		put_be64(behind, p->reth.va);
		put_be32(behind + RETH_RKEY, p->reth.rkey);
	} else {
		put_low24(behind, p->rqmsn);
	}
	return info->header_len + stamp;
}
