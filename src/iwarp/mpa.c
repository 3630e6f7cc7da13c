/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA's start-up frames as bytes. */
#include "iwarp/mpa.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/byteorder.h"

enum {
	KEY_LEN = 16,
	FLAGS_AT = 16,
	REV_AT = 17,
	PD_LENGTH_AT = 18,
	FLAG_M = 0x80,
	FLAG_C = 0x40,
	FLAG_R = 0x20,
	FLAG_S = 0x10,
	REV_FIRST = 1,
	REV_ENHANCED = 2,
	DEPTH_FLAG_HIGH = 0x8000, /* A in front of IRD, C in front of ORD */
	DEPTH_FLAG_LOW = 0x4000   /* B, D */
};

static const uint8_t keys[2][KEY_LEN] = {"MPA ID Req Frame", "MPA ID Rep Frame"};

static bool is_enhanced(const uint8_t *p)
{
	return p[REV_AT] == REV_ENHANCED && p[FLAGS_AT] & FLAG_S;
}

int mpa_frame_len(const uint8_t *p, size_t have, bool reply)
{
	uint16_t pd_len;

	if (memcmp(p, keys[reply], have < KEY_LEN ? have : KEY_LEN))
		return -EBADMSG;
	if (have < MPA_HEADER_LEN)
		return 0;
	pd_len = get_be16(p + PD_LENGTH_AT);
	if (p[REV_AT] < REV_FIRST || p[REV_AT] > REV_ENHANCED || pd_len > MPA_PD_MAX ||
	    (is_enhanced(p) && pd_len < MPA_ENHANCED_LEN))
		return -EBADMSG;
	return MPA_HEADER_LEN + pd_len;
}

static void decode_enhanced(struct mpa_frame *f, const uint8_t *p)
{
	uint16_t ird = get_be16(p), ord = get_be16(p + 2);

	f->peer_to_peer = ird & DEPTH_FLAG_HIGH;
	f->rtr = (uint8_t)((ird & DEPTH_FLAG_LOW ? MPA_RTR_SEND : 0) | (ord & DEPTH_FLAG_HIGH ? MPA_RTR_WRITE : 0) |
			   (ord & DEPTH_FLAG_LOW ? MPA_RTR_READ : 0));
	f->ird = ird & MPA_DEPTH_ANY;
	f->ord = ord & MPA_DEPTH_ANY;
}

void mpa_decode(struct mpa_frame *f, const uint8_t *p)
{
	uint16_t before = is_enhanced(p) ? MPA_ENHANCED_LEN : 0;

	*f = (struct mpa_frame){
		.reply = !memcmp(p, keys[1], KEY_LEN),
		.markers = p[FLAGS_AT] & FLAG_M,
		.crc = p[FLAGS_AT] & FLAG_C,
		.rejected = p[FLAGS_AT] & FLAG_R,
		.enhanced = before,
		.rev = p[REV_AT],
		.data_len = (uint16_t)(get_be16(p + PD_LENGTH_AT) - before),
		.data = p + MPA_HEADER_LEN + before,
	};
	if (before)
		decode_enhanced(f, p + MPA_HEADER_LEN);
}

static void encode_enhanced(uint8_t *p, const struct mpa_frame *f)
{
	put_be16(p, (uint16_t)((f->peer_to_peer ? DEPTH_FLAG_HIGH : 0) | (f->rtr & MPA_RTR_SEND ? DEPTH_FLAG_LOW : 0) |
			       (f->ird & MPA_DEPTH_ANY)));
	put_be16(p + 2, (uint16_t)((f->rtr & MPA_RTR_WRITE ? DEPTH_FLAG_HIGH : 0) |
				   (f->rtr & MPA_RTR_READ ? DEPTH_FLAG_LOW : 0) | (f->ord & MPA_DEPTH_ANY)));
}

size_t mpa_encode(uint8_t *p, const struct mpa_frame *f)
{
	uint16_t before = f->enhanced ? MPA_ENHANCED_LEN : 0;

	assert(before + f->data_len <= MPA_PD_MAX);
	memcpy(p, keys[f->reply], KEY_LEN);
	p[FLAGS_AT] = (uint8_t)((f->markers ? FLAG_M : 0) | (f->crc ? FLAG_C : 0) | (f->rejected ? FLAG_R : 0) |
				(f->enhanced ? FLAG_S : 0));
	p[REV_AT] = f->rev;
	put_be16(p + PD_LENGTH_AT, (uint16_t)(before + f->data_len));
	if (before)
		encode_enhanced(p + MPA_HEADER_LEN, f);
	if (f->data_len)
		memcpy(p + MPA_HEADER_LEN + before, f->data, f->data_len);
	return (size_t)MPA_HEADER_LEN + before + f->data_len;
}
