/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses that have answered a message of ours by the communication id in it. Only a host that gets messages to that
 * address can answer so, hence no flood of forged addresses puts one among them, nor one out: the place of an address
 * that has nothing here is given to another only by an answer.
 */
#include <string.h>

#include "base/byteorder.h"
#include "base/siphash.h"
#include "cm/state.h"

enum { SETS = CM_KNOWN / CM_KNOWN_WAYS };

uint64_t address_hash(const struct cm *cm, const uint8_t *ip)
{
	uint64_t h = siphash_u64(cm->table_secret, get_be64(ip));

	return siphash_u64(cm->table_secret, h ^ get_be64(ip + 8));
}

static uint32_t set_of(const struct cm *cm, const uint8_t *ip)
{
	return (uint32_t)(address_hash(cm, ip) >> 32) % SETS * CM_KNOWN_WAYS;
}

int known_find(const struct cm *cm, const uint8_t *ip)
{
	uint32_t first;

	if (!cm->known_count)
		return -1;
	first = set_of(cm, ip);
	for (uint32_t i = first; i < first + CM_KNOWN_WAYS; i++) {
		if (cm->known[i].heard_ns && !memcmp(cm->known[i].ip, ip, sizeof(cm->known[i].ip)))
			return (int)i;
	}
	return -1;
}

/* Its counters name the place, so it stays as long as they count something. */
static bool is_idle(const struct cm *cm, uint32_t i)
{
	return !cm->half_open_of[CM_SOURCES + i] && !cm->unanswered_of[CM_SOURCES + i];
}

void known_add(struct cm *cm, const uint8_t *ip, uint64_t now_ns)
{
	int found = known_find(cm, ip);
	uint32_t first = set_of(cm, ip), oldest = UINT32_MAX;

	if (found >= 0) {
		cm->known[found].heard_ns = now_ns;
		return;
	}
	for (uint32_t i = first; i < first + CM_KNOWN_WAYS; i++) {
		if (is_idle(cm, i) && (oldest == UINT32_MAX || cm->known[i].heard_ns < cm->known[oldest].heard_ns))
			oldest = i;
	}
	if (oldest == UINT32_MAX)
		return;
	cm->known_count += !cm->known[oldest].heard_ns;
	memcpy(cm->known[oldest].ip, ip, sizeof(cm->known[oldest].ip));
	cm->known[oldest].heard_ns = now_ns;
}
