/* SPDX-License-Identifier: BSD-2-Clause */
/* The codec of subnet management packets. */
#include "wire/smp.h"

#include <assert.h>
#include <string.h>

enum {
	MKEY_AT = 24,
	DR_SLID_AT = 32,
	DR_DLID_AT = 34,
	RESERVED_AT = 36,
	INITIAL_AT = 128,
	BACK_AT = 192,
	D_BIT = 0x8000
};

static_assert(BACK_AT + SMP_HOPS_MAX + 1 == MAD_LEN, "the return path ends the MAD");

void smp_decode(struct smp *s, const uint8_t *p)
{
	mad_decode(&s->mad, p);
	s->d = s->mad.status & D_BIT;
	s->mad.status &= (uint16_t)~D_BIT;
	s->hop_pointer = (uint8_t)(s->mad.class_specific >> 8);
	s->hop_count = (uint8_t)s->mad.class_specific;
	s->mkey = get_be64(p + MKEY_AT);
	s->dr_slid = get_be16(p + DR_SLID_AT);
	s->dr_dlid = get_be16(p + DR_DLID_AT);
	memcpy(s->data, p + SMP_DATA_AT, sizeof(s->data));
	memcpy(s->initial, p + INITIAL_AT, sizeof(s->initial));
	memcpy(s->back, p + BACK_AT, sizeof(s->back));
}

void smp_encode(uint8_t *p, const struct smp *s)
{
	struct mad h = s->mad;

	h.status = (uint16_t)((h.status & ~D_BIT) | (s->d ? D_BIT : 0));
	h.class_specific = (uint16_t)(s->hop_pointer << 8 | s->hop_count);
	mad_encode(p, &h);
	put_be64(p + MKEY_AT, s->mkey);
	put_be16(p + DR_SLID_AT, s->dr_slid);
	put_be16(p + DR_DLID_AT, s->dr_dlid);
	memset(p + RESERVED_AT, 0, SMP_DATA_AT - RESERVED_AT);
	memcpy(p + SMP_DATA_AT, s->data, sizeof(s->data));
	memcpy(p + INITIAL_AT, s->initial, sizeof(s->initial));
	memcpy(p + BACK_AT, s->back, sizeof(s->back));
}
