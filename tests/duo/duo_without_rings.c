/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of duo_rings.c, for a program that links no back end: none of its duos has rings. */
#include <assert.h>

#include "duo/duo_channel.h"

void duo_rings_look(struct duo_host *h)
{
	(void)h;
	assert(!"no rings");
}

void duo_rings_send(struct duo_host *h, const struct pkt *burst, size_t n)
{
	(void)h;
	(void)burst;
	(void)n;
	assert(!"no rings");
}

void duo_rings_happen(struct duo *d)
{
	(void)d;
	assert(!"no rings");
}

uint64_t duo_rings_next_ns(struct duo *d)
{
	(void)d;
	return UINT64_MAX;
}

void duo_rings_close(struct duo *d)
{
	(void)d;
	assert(!"no rings");
}
