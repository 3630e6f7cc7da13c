/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/frame_ib.h"

#include <assert.h>
#include <string.h>

#include "base/byteorder.h"
#include "wire/bth.h"
#include "wire/flow_control.h"
#include "wire/ib_packet.h"
#include "wire/icrc.h"
#include "wire/vcrc.h"

enum {
	ERF_INFINIBAND = 21,
	ERF_INFINIBAND_LINK = 25,
	ERF_VARIABLE_LENGTH = 1 << 2,
	ERF_FLAGS_AT = 9,
	ERF_RECORD_AT = 10,
	ERF_WIRE_AT = 14,
	/* A flow control packet's 6 bytes, and zeroes: Wireshark looks for addresses where another packet has LRH and
	 * GRH.
	 */
	LINK_BYTES = LRH_LEN + GRH_LEN
};

#define PS_A_S UINT64_C(1000000000000)

static_assert(FRAME_ERF_BYTES + LRH_LEN + FRAME_BODY_BYTES_MAX <= FRAME_BYTES_MAX, "a record fits");

/* The time has 32 bits of seconds and 32 of their fraction, least significant byte first. */
static void put_header(uint8_t *at, uint8_t type, uint64_t now_ps, size_t record, uint32_t wire)
{
	uint64_t time = now_ps / PS_A_S << 32 | (uint64_t)(((unsigned __int128)(now_ps % PS_A_S) << 32) / PS_A_S);

	memset(at, 0, FRAME_ERF_BYTES);
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)(time >> 8 * i);
	at[8] = type;
	at[ERF_FLAGS_AT] = ERF_VARIABLE_LENGTH;
	put_be16(at + ERF_RECORD_AT, (uint16_t)record);
	put_be16(at + ERF_WIRE_AT, (uint16_t)wire);
}

static uint16_t lid_of(uint32_t host)
{
	return (uint16_t)(host % LID_UNICAST_MAX + 1);
}

static size_t encode_link(uint8_t *frame, const struct packet *p, uint64_t now_ps, uint32_t *length)
{
	const struct flow_control h = {
		.op = FLOW_CONTROL_NORMAL, .vl = p->credits.vl, .fctbs = p->credits.fctbs, .fccl = p->credits.fccl};

	put_header(frame, ERF_INFINIBAND_LINK, now_ps, FRAME_ERF_BYTES + LINK_BYTES, LINK_BYTES);
	memset(frame + FRAME_ERF_BYTES, 0, LINK_BYTES);
	flow_control_encode(frame + FRAME_ERF_BYTES, &h);
	*length = FRAME_ERF_BYTES + LINK_BYTES;
	return *length;
}

size_t frame_ib_encode(uint8_t frame[FRAME_BYTES_MAX], const struct packet *p, uint64_t now_ps, uint32_t *length)
{
	const struct lrh lrh = {
		.vl = p->class,
		.sl = (uint8_t)(p->flags >> PACKET_SL_SHIFT),
		.lnh = LNH_LOCAL,
		.dlid = lid_of(p->dst),
		.pktlen = (uint16_t)((LRH_LEN + p->transport_bytes) / 4),
		.slid = lid_of(p->src),
	};
	size_t body = p->body && p->body_bytes > ICRC_LEN ? p->body_bytes - ICRC_LEN : 0;
	uint32_t wire = LRH_LEN + p->transport_bytes + VCRC_LEN;

	if (p->flags & PACKET_PAUSE)
		return encode_link(frame, p, now_ps, length);
	if (body > FRAME_BODY_BYTES_MAX)
		body = FRAME_BODY_BYTES_MAX;
	put_header(frame, ERF_INFINIBAND, now_ps, FRAME_ERF_BYTES + LRH_LEN + body, wire);
	lrh_encode(frame + FRAME_ERF_BYTES, &lrh);
	if (body)
		memcpy(frame + FRAME_ERF_BYTES + LRH_LEN, p->body, body);
	*length = FRAME_ERF_BYTES + wire;
	return FRAME_ERF_BYTES + LRH_LEN + body;
}

void frame_ib_fill(uint8_t *frame, size_t bytes, uint32_t length)
{
	uint8_t *packet = frame + FRAME_ERF_BYTES;
	uint32_t n = length - FRAME_ERF_BYTES, icrc;

	if (bytes >= length || length < FRAME_ERF_BYTES + LRH_LEN + BTH_LEN + ICRC_LEN + VCRC_LEN)
		return;
	memset(frame + bytes, 0, length - bytes);
	put_be16(frame + ERF_RECORD_AT, (uint16_t)length);
	icrc = ib_icrc(packet, n - ICRC_LEN - VCRC_LEN);
	for (int i = 0; i < ICRC_LEN; i++)
		packet[n - ICRC_LEN - VCRC_LEN + (uint32_t)i] = (uint8_t)(icrc >> 8 * i);
	vcrc_seal(packet, n - VCRC_LEN);
}
