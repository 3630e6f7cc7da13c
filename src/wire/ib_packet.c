/* SPDX-License-Identifier: BSD-2-Clause */
/* The judge of InfiniBand packets, and their ICRC in one go: fabrics are modelled, so nothing is cached here. */
#include "wire/ib_packet.h"

#include <string.h>

#include "wire/bth.h"
#include "wire/crc32.h"
#include "wire/icrc.h"
#include "wire/vcrc.h"

enum {
	WORD_BYTES = 4,
	SHORTEST = LRH_LEN + BTH_LEN + ICRC_LEN + VCRC_LEN,
	BTH_RESV8A_AT = 4 /* FECN, BECN and reserved bits: masked as one byte */
};

static bool lids_are_good(const struct lrh *h)
{
	bool source = h->slid == LID_PERMISSIVE || (h->slid && h->slid <= LID_UNICAST_MAX);

	return source && h->dlid;
}

static enum ib_verdict judge_grh(struct ib_packet *p, const uint8_t *grh)
{
	if (p->len < GRH_LEN + BTH_LEN + ICRC_LEN)
		return IB_BAD_LENGTH;
	grh_decode(&p->grh, grh);
	p->at += GRH_LEN;
	p->len -= GRH_LEN;
	if (grh[0] >> 4 != GRH_IPVER || p->grh.nexthdr != GRH_NEXTHDR_IBA)
		return IB_BAD_GRH;
	return p->grh.paylen == p->len ? IB_GOOD : IB_BAD_LENGTH;
}

enum ib_verdict ib_packet_judge(struct ib_packet *out, const uint8_t *packet, size_t n)
{
	struct ib_packet p = {.at = LRH_LEN};
	enum ib_verdict v = IB_GOOD;

	if (n < SHORTEST)
		return IB_SHORT;
	if (!vcrc_check(packet, n))
		return IB_BAD_VCRC;
	lrh_decode(&p.lrh, packet);
	if (p.lrh.lver)
		return IB_BAD_VERSION;
	if ((size_t)p.lrh.pktlen * WORD_BYTES + VCRC_LEN != n)
		return IB_BAD_LENGTH;
	if (!lids_are_good(&p.lrh))
		return IB_BAD_LID;
	if (p.lrh.lnh != LNH_LOCAL && p.lrh.lnh != LNH_GLOBAL)
		return IB_RAW;
	p.len = (uint32_t)(n - VCRC_LEN - LRH_LEN);
	if (p.lrh.lnh == LNH_GLOBAL)
		v = judge_grh(&p, packet + LRH_LEN);
	if (v == IB_GOOD)
		*out = p;
	return v;
}

static size_t masked_local(uint8_t *out, const uint8_t *packet)
{
	memcpy(out, packet, LRH_LEN);
	out[0] |= 0xf0; /* VL */
	return LRH_LEN;
}

static size_t masked_global(uint8_t *out, const uint8_t *packet)
{
	memset(out, 0xff, LRH_LEN);
	memcpy(out + LRH_LEN, packet + LRH_LEN, GRH_LEN);
	out[LRH_LEN] |= 0x0f; /* TClass, flow label, hop limit */
	memset(out + LRH_LEN + 1, 0xff, 3);
	out[LRH_LEN + 7] = 0xff;
	return LRH_LEN + GRH_LEN;
}

uint32_t ib_icrc(const uint8_t *packet, size_t n)
{
	uint8_t head[LRH_LEN + GRH_LEN + BTH_LEN];
	size_t at = (packet[1] & 3) == LNH_GLOBAL ? masked_global(head, packet) : masked_local(head, packet);
	uint32_t crc;

	memcpy(head + at, packet + at, BTH_LEN);
	head[at + BTH_RESV8A_AT] = 0xff;
	crc = crc32_ieee(0, head, at + BTH_LEN);
	return crc32_ieee(crc, packet + at + BTH_LEN, n - at - BTH_LEN);
}
