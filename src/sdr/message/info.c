/* SPDX-License-Identifier: BSD-2-Clause */
/* The codec of an end's description. */
#include <string.h>

#include "base/byteorder.h"
#include "sdr/message/info.h"

static const uint32_t magic = 0x53445249; /* "SDRI" */

static void shape_encode(uint8_t *p, const struct shape *s)
{
	put_be32(p, s->mtu);
	put_be32(p + 4, s->chunk_bytes);
	put_be32(p + 8, s->slots);
	put_be64(p + 12, s->message_bytes);
	put_be16(p + 20, (uint16_t)s->generations);
	put_be16(p + 22, (uint16_t)s->channels);
	p[24] = s->split.id_bits;
	p[25] = s->split.offset_bits;
	p[26] = s->split.frag_bits;
}

static struct shape shape_decode(const uint8_t *p)
{
	return (struct shape){
		.mtu = get_be32(p),
		.chunk_bytes = get_be32(p + 4),
		.slots = get_be32(p + 8),
		.message_bytes = get_be64(p + 12),
		.generations = get_be16(p + 20),
		.channels = get_be16(p + 22),
		.split = {.id_bits = p[24], .offset_bits = p[25], .frag_bits = p[26]},
	};
}

void info_encode(uint8_t *p, const struct info *i)
{
	put_be32(p, magic);
	put_be16(p + 4, INFO_VERSION);
	put_be16(p + 6, (uint16_t)info_len(i));
	p[8] = i->roles;
	p[9] = i->transport;
	put_be16(p + 10, i->lid);
	put_be32(p + 12, i->tag);
	put_be32(p + 16, i->control_qpn);
	memcpy(p + 20, i->gid, sizeof(i->gid));
	shape_encode(p + 36, &i->shape);
	p[63] = i->fills;
}

void info_put_qpn(uint8_t *p, uint32_t place, uint32_t qpn)
{
	put_be32(p + INFO_FIXED_LEN + (size_t)4 * place, qpn);
}

uint32_t info_qpn(const struct info *i, uint32_t place)
{
	return get_be32(i->qpns + (size_t)4 * place);
}

static bool qpns_valid(const struct info *i)
{
	for (uint32_t place = 0; place < info_qps(i); place++) {
		if (info_qpn(i, place) >> 24)
			return false;
	}
	return !(i->control_qpn >> 24);
}

bool info_decode(struct info *out, const uint8_t *p, size_t len)
{
	struct info i;

	if (len < INFO_FIXED_LEN || get_be32(p) != magic || get_be16(p + 4) != INFO_VERSION || p[63] > 1)
		return false;
	i = (struct info){
		.shape = shape_decode(p + 36),
		.roles = p[8],
		.transport = p[9],
		.fills = p[63],
		.lid = get_be16(p + 10),
		.tag = get_be32(p + 12),
		.control_qpn = get_be32(p + 16),
		.qpns = p + INFO_FIXED_LEN,
	};
	memcpy(i.gid, p + 20, sizeof(i.gid));
	if (i.roles < 1 || i.roles > 3 || i.transport > 1 || !shape_valid(&i.shape))
		return false;
	if (len != info_len(&i) || get_be16(p + 6) != len || !qpns_valid(&i))
		return false;
	*out = i;
	return true;
}

static bool shape_equal(const struct shape *a, const struct shape *b)
{
	return a->mtu == b->mtu && a->chunk_bytes == b->chunk_bytes && a->slots == b->slots &&
	       a->message_bytes == b->message_bytes && a->generations == b->generations && a->channels == b->channels &&
	       a->split.id_bits == b->split.id_bits && a->split.offset_bits == b->split.offset_bits &&
	       a->split.frag_bits == b->split.frag_bits;
}

bool info_match(const struct info *a, const struct info *b)
{
	bool a_to_b = a->roles & INFO_SENDS && b->roles & INFO_RECEIVES;
	bool b_to_a = b->roles & INFO_SENDS && a->roles & INFO_RECEIVES;

	return shape_equal(&a->shape, &b->shape) && a->transport == b->transport && a->fills == b->fills &&
	       (a_to_b || b_to_a);
}
