/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/frame.h"

#include <string.h>

#include "base/ipudp.h"
#include "sim/host.h"
#include "wire/bth.h"
#include "wire/icrc.h"

enum { MAC_LEN = 6, ETHERNET_LEN = 14, PFC_LEN = 60, TTL = 64 };

static void put16(uint8_t *at, uint16_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static void put_mac(uint8_t *at, uint32_t host)
{
	const uint8_t mac[MAC_LEN] = {
		0x02, 0, (uint8_t)(host >> 24), (uint8_t)(host >> 16), (uint8_t)(host >> 8), (uint8_t)host};

	memcpy(at, mac, sizeof(mac));
}

/* IEEE 802.1Q-2018 figure 36-3: opcode, class enable vector, and eight times. Time 0 resumes. */
static size_t pfc_encode(uint8_t *frame, const struct pause_frame *p)
{
	static const uint8_t to[MAC_LEN] = {0x01, 0x80, 0xc2, 0, 0, 0x01};
	uint16_t quanta = p->quanta ? p->quanta : UINT16_MAX; /* pauses without a timer: the longest */

	memset(frame, 0, PFC_LEN);
	memcpy(frame, to, sizeof(to));
	put_mac(frame + MAC_LEN, 0);
	put16(frame + 12, 0x8808);
	put16(frame + 14, 0x0101);
	put16(frame + 16, p->classes);
	for (unsigned i = 0; i < PACKET_CLASSES; i++) {
		if (p->pause >> i & 1)
			put16(frame + 18 + 2 * i, quanta);
	}
	return PFC_LEN;
}

size_t frame_encode(uint8_t frame[FRAME_BYTES_MAX], const struct packet *p, uint32_t *length)
{
	struct flow flow = {.sport = p->sport, .dport = p->dport, .ttl = TTL, .tos = packet_tos(p)};
	uint32_t body = p->body_bytes > ICRC_LEN ? p->body_bytes - ICRC_LEN : 0;
	uint32_t whole = p->flags & PACKET_TRIMMED ? p->body_bytes : p->transport_bytes;
	size_t headers;

	if (p->flags & PACKET_PAUSE) {
		*length = PFC_LEN;
		return pfc_encode(frame, &p->pfc);
	}
	if (!p->body)
		body = 0;
	if (body > FRAME_BODY_BYTES_MAX)
		body = FRAME_BODY_BYTES_MAX;
	if (whole > IPUDP_PAYLOAD_MAX)
		whole = IPUDP_PAYLOAD_MAX;
	put_mac(frame, p->dst);
	put_mac(frame + MAC_LEN, p->src);
	put16(frame + 12, 0x0800);
	host_address(p->src, flow.src);
	host_address(p->dst, flow.dst);
	headers = ETHERNET_LEN + ipudp_encode(frame + ETHERNET_LEN, &flow, 0, whole);
	if (body)
		memcpy(frame + headers, p->body, body);
	*length = (uint32_t)headers + whole;
	return headers + (body < whole ? body : whole);
}

/* Reads the flow back from the headers, which have all that the ICRC covers. */
void frame_fill(uint8_t *frame, size_t bytes, uint32_t length)
{
	struct flow flow = {.src = {[10] = 0xff, [11] = 0xff}, .dst = {[10] = 0xff, [11] = 0xff}};
	const uint8_t *ip = frame + ETHERNET_LEN, *udp = ip + IPUDP_IPV4_LEN;
	struct pkt pkt = {.data = frame + ETHERNET_LEN + IPUDP_V4_LEN, .flow = &flow, .train = 1};

	if (bytes >= length || length < ETHERNET_LEN + IPUDP_V4_LEN + BTH_LEN + ICRC_LEN)
		return;
	memset(frame + bytes, 0, length - bytes);
	memcpy(flow.src + 12, ip + 12, 4);
	memcpy(flow.dst + 12, ip + 16, 4);
	flow.sport = (uint16_t)(udp[0] << 8 | udp[1]);
	flow.dport = (uint16_t)(udp[2] << 8 | udp[3]);
	pkt.len = length - ETHERNET_LEN - IPUDP_V4_LEN;
	icrc_seal(NULL, &pkt, 0);
}
