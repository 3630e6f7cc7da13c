/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes go to the decoder; what passes is written again and must come out as it went in,
 * reserved bits aside, and all that the packet points to must lie in it.
 */
#include <string.h>

#include "support/fuzz_input.h"
#include "wire/icrc.h"
#include "wire/veroce.h"

/* Clears the bits that a sender cannot set. The stamps lie behind the BTH, if there are any. */
static void clear_reserved(uint8_t *headers, const struct veroce_packet *p, uint32_t stamps)
{
	static const struct {
		uint32_t header;
		uint8_t byte;
	} reserved[] = {
		{H_MSNETH, 0},
		{H_RQETH, 0},
		{H_POETH, 0},
		{H_HOLDETH, 4},
	};

	headers[4] &= 0xc0;
	headers[8] &= p->bth.ts ? 0xe0 : 0xc0;
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		uint32_t h = reserved[i].header;

		if (p->info->headers & h)
			headers[opcode_header_offset(p->info, h) + stamps + reserved[i].byte] = 0;
	}
	if (p->info->headers & H_FETH) {
		uint8_t *feth = headers + opcode_header_offset(p->info, H_FETH) + stamps;

		put_be32(feth, get_be32(feth) & 0x3f);
	}
}

static void fuzz_sacks(const struct veroce_packet *p)
{
	for (uint32_t i = 0; i < p->sack_count; i++) {
		struct sacketh s, again;
		uint8_t block[SACKETH_LEN];

		sacketh_decode(&s, p->sacks + i * SACKETH_LEN);
		must(s.valid_len <= SACKETH_BITS);
		sacketh_encode(block, &s);
		sacketh_decode(&again, block);
		must(again.valid_len == s.valid_len && again.start_psn == s.start_psn);
		must(again.bits[0] == s.bits[0] && again.bits[1] == s.bits[1]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct veroce_decoder decoder; /* kept from input to input: its state must not matter */
	struct veroce_packet p;
	uint8_t headers[VEROCE_HEADERS_MAX], out[VEROCE_HEADERS_MAX];

	if (!veroce_decode(&p, data, (uint32_t)size)) {
		must(!veroce_decode_next(&decoder, data, (uint32_t)size));
		return 0;
	}

	uint32_t stamps = !p.bth.ts ? 0 : p.info->flags & F_ACK ? tseeth_len(&p.tse) : TSETH_LEN;
	uint32_t more_sacks = p.sack_count ? (p.sack_count - 1) * SACKETH_LEN : 0;
	uint32_t header_len = p.info->header_len + stamps + more_sacks;

	must(p.info == veroce_opcode_info(data[0]));
	must(p.bth.tver == 0);
	must(p.payload == data + header_len);
	must(size == (size_t)header_len + p.payload_len + p.bth.pad + ICRC_LEN);
	must(p.payload_len == 0 || p.info->flags & F_PAYLOAD);
	must((p.sack_count != 0) == ((p.info->headers & H_SACKETH) != 0));
	must(p.sack_count <= VEROCE_SACKS_MAX);
	must(header_len <= VEROCE_HEADERS_MAX);
	must(!p.bth.ts || p.info->flags & (F_REQUEST | F_RESPONSE));
	fuzz_sacks(&p);

	memcpy(headers, data, header_len);
	clear_reserved(headers, &p, stamps);
	memset(out, 0xa5, sizeof(out));
	must(veroce_encode_headers(out, &p) == header_len);
	must(!memcmp(headers, out, header_len));
	/* After any packet before, and after itself. */
	for (int i = 0; i < 2; i++) {
		const struct veroce_packet *q = veroce_decode_next(&decoder, data, (uint32_t)size);

		must(q && q->info == p.info && q->payload == p.payload);
		must(q->payload_len == p.payload_len && q->sacks == p.sacks);
		must(q->sack_count == p.sack_count);
		memset(out, 0xa5, sizeof(out));
		must(veroce_encode_headers(out, q) == header_len);
		must(!memcmp(headers, out, header_len));
	}
	return 0;
}
