/* SPDX-License-Identifier: BSD-2-Clause */
/* Scatter/gather elements: the bytes of a message, in the order its work request lists them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mem/mr.h"

/* Laid out as struct ibv_sge. */
struct sge {
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};

/* Of a work request, as the queues keep them; borrowed. */
struct sge_list {
	const struct sge *sge;
	uint32_t count;
};

static inline uint64_t sge_total(const struct sge *sge, uint32_t count)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < count; i++)
		total += sge[i].len;
	return total;
}

/* Whether every element's key opens its range in pd with `access`. */
bool sge_check(const struct mr_table *, const struct pd *, struct sge_list, uint32_t access);

/*
 * Where those bytes of the message lie, if it is in one element, and its key opens them with `access`; else NULL. `len`
 * is not 0.
 */
uint8_t *sge_place(const struct mr_table *, const struct pd *, struct sge_list, uint64_t off, uint64_t len,
		   uint32_t access);

/*
 * Copies `len` message bytes from message offset `off` out of the elements (gather) or into them
 * (scatter); each element touched is checked again. False, with a part perhaps copied, when a key
 * does not open its range or the memory there is gone; off + len must not exceed the elements' total.
 */
bool sge_gather(const struct mr_table *, const struct pd *, struct sge_list, uint64_t off, uint8_t *to, uint64_t len);
bool sge_scatter(const struct mr_table *, const struct pd *, struct sge_list, uint64_t off, const uint8_t *from,
		 uint64_t len);
