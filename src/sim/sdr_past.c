/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives of a line that were completed, by generation, then slot. Their regions stay, too, or nothing late would be
 * seen. */
#include <stdlib.h>
#include <string.h>

#include "sim/sdr_line_state.h"

static struct sdr_past *past_of(const struct sdr_line *l, uint32_t generation, uint32_t slot)
{
	return l->past ? &l->past[generation * l->shape.slots + slot] : NULL;
}

static void forget(struct sdr_line *l, struct sdr_past *p)
{
	if (p->mr)
		host_region_end(l->to, p->mr);
	free(p->came);
	*p = (struct sdr_past){0};
}

/* Without memory what is late is not counted. */
void sdr_past_keep(struct sdr_line *l, const struct sdr_part *part, const struct slot *slot)
{
	size_t bytes = slot ? (slot->packets + 63) / 64 * sizeof(uint64_t) : 0;
	struct sdr_past *p;

	if (!l->past)
		l->past = calloc(l->shape.generations * l->shape.slots, sizeof(*l->past));
	p = past_of(l, shape_generation(&l->shape, part->number), shape_slot(&l->shape, part->number));
	if (!p) {
		host_region_end(l->to, part->mr);
		return;
	}
	forget(l, p);
	p->mr = part->mr;
	p->came = bytes ? malloc(bytes) : NULL;
	if (!p->came)
		return;
	memcpy(p->came, (const uint64_t *)slot->packet_bits, bytes);
	p->packets = slot->packets;
}

void sdr_past_forget(struct sdr_line *l)
{
	for (uint32_t i = 0; l->past && i < l->shape.generations * l->shape.slots; i++)
		forget(l, &l->past[i]);
	free(l->past);
	l->past = NULL;
}

bool sdr_past_has(const struct sdr_line *l, uint32_t generation, struct imm imm)
{
	const struct sdr_past *p = past_of(l, generation, imm.id);

	return p && imm.offset < p->packets && p->came[imm.offset / 64] >> imm.offset % 64 & 1;
}
