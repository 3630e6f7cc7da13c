/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bounds that hold one source address from using up what is for all, and a flood of requests from becoming a flood of
 * refusals. Counters lie in a table by a secret hash of the address; addresses that share one share its bound.
 */
#include <string.h>

#include "base/byteorder.h"
#include "base/siphash.h"
#include "cm/state.h"

static const uint64_t window_ns = 1000000000;

static uint32_t place_of(const struct cm *cm, const uint8_t *ip)
{
	uint64_t h = siphash_u64(cm->table_secret, get_be64(ip));

	return (uint32_t)siphash_u64(cm->table_secret, h ^ get_be64(ip + 8)) % CM_SOURCES;
}

void limit_reached(struct cm *cm, enum cm_limit limit)
{
	cm->counters.dropped_by[limit]++;
	cm->limits |= 1u << limit;
}

unsigned cm_take_limits(struct cm *cm)
{
	unsigned reached = cm->limits;

	cm->limits = 0;
	return reached;
}

bool limit_half_open(struct cm *cm, const uint8_t *source)
{
	uint16_t *of_one = &cm->half_open_of[place_of(cm, source)];

	if (cm->half_open_count >= CM_HALF_OPEN_MAX || *of_one >= CM_HALF_OPEN_MAX_OF_ONE) {
		limit_reached(cm, cm->half_open_count >= CM_HALF_OPEN_MAX ? CM_LIMIT_HALF_OPEN : CM_LIMIT_HALF_OPEN_OF_ONE);
		return false;
	}
	cm->half_open_count++;
	++*of_one;
	return true;
}

void limit_half_open_done(struct cm *cm, const uint8_t *source)
{
	cm->half_open_count--;
	cm->half_open_of[place_of(cm, source)]--;
}

void limit_unanswered(struct conn *c, bool unanswered)
{
	if (c->unanswered == unanswered)
		return;
	c->unanswered = unanswered;
	c->cm->unanswered_of[place_of(c->cm, c->flow.dst)] += unanswered ? 1 : -1;
	c->cm->unanswered += unanswered ? 1 : -1;
}

bool limit_is_mute(struct cm *cm, const uint8_t *source)
{
	/* A flood may come from many addresses, each of which stays within its bound. */
	uint32_t max = cm->unanswered < CM_UNANSWERED_MANY ? CM_UNANSWERED_MAX_OF_ONE : CM_UNANSWERED_FEW_OF_ONE;

	if (cm->unanswered_of[place_of(cm, source)] < max)
		return false;
	limit_reached(cm, CM_LIMIT_UNANSWERED_OF_ONE);
	return true;
}

bool limit_refusal(struct cm *cm, const uint8_t *source, uint64_t now_ns)
{
	uint8_t *of_one = &cm->refusals_of[place_of(cm, source)];

	if (now_ns - cm->refusals_since_ns >= window_ns) {
		cm->refusals_since_ns = now_ns;
		cm->refusals = 0;
		memset(cm->refusals_of, 0, sizeof(cm->refusals_of));
	}
	if (cm->refusals >= CM_REFUSALS_MAX || *of_one >= CM_REFUSALS_MAX_OF_ONE) {
		cm->counters.rejects_withheld++;
		return false;
	}
	cm->refusals++;
	++*of_one;
	return true;
}
