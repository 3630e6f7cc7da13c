/* SPDX-License-Identifier: BSD-2-Clause */
/* Nothing is copied: a field of bytes points into what is read. */
#include "workload/protobuf.h"

bool protobuf_varint(struct protobuf *p, uint64_t *out)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70 && p->at < p->end; shift += 7) {
		uint8_t byte = *p->at++;

		if (shift == 63 && byte > 1)
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*out = value;
			return true;
		}
	}
	return false;
}

static bool fixed(struct protobuf *p, unsigned bytes, uint64_t *out)
{
	uint64_t value = 0;

	if ((size_t)(p->end - p->at) < bytes)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)p->at[i] << 8 * i;
	p->at += bytes;
	*out = value;
	return true;
}

static bool read_bytes(struct protobuf *p, struct protobuf *out)
{
	uint64_t length;

	if (!protobuf_varint(p, &length) || length > (size_t)(p->end - p->at))
		return false;
	*out = (struct protobuf){p->at, p->at + length};
	p->at += length;
	return true;
}

enum protobuf_result protobuf_next(struct protobuf *p, struct protobuf_field *f)
{
	uint64_t key;
	bool good = false;

	if (p->at == p->end)
		return PROTOBUF_END;
	if (!protobuf_varint(p, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX >> 3)
		return PROTOBUF_BAD;
	*f = (struct protobuf_field){.number = (uint32_t)(key >> 3), .wire = (enum protobuf_wire)(key & 7)};
	switch (key & 7) {
	case PROTOBUF_VARINT: good = protobuf_varint(p, &f->value); break;
	case PROTOBUF_FIXED64: good = fixed(p, 8, &f->value); break;
	case PROTOBUF_BYTES: good = read_bytes(p, &f->bytes); break;
	case PROTOBUF_FIXED32: good = fixed(p, 4, &f->value); break;
	default: break;
	}
	return good ? PROTOBUF_FIELD : PROTOBUF_BAD;
}
