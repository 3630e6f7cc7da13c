/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bounds that keep one source address from using up room that is for all, and a flood of requests from becoming a flood
 * of refusals. Addresses that are known (known.c) have counters of their own. Those of all others lie in a table by a
 * secret hash of the address; addresses that share one share its bound.
 *
 * A flood is there when many accepted connections have no answer. Then a request of an address that is not known is
 * taken only when it comes for the second time, which costs a peer that lives one repeat, once, and a sender of forged
 * requests all of them. Should he send them twice, the bound of a second holds, and the few repeats of a REP.
 */
#include <assert.h>
#include <string.h>

#include "base/siphash.h"
#include "cm/state.h"

static const uint64_t window_ns = 1000000000;

static_assert((int)CM_PLACES <= UINT16_MAX, "a place fits the conn's and the event's");

static uint16_t place_of(const struct cm *cm, const uint8_t *ip)
{
	int known = known_find(cm, ip);

	return (uint16_t)(known >= 0 ? CM_SOURCES + (uint32_t)known : (uint32_t)address_hash(cm, ip) % CM_SOURCES);
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

bool limit_half_open(struct cm *cm, const uint8_t *source, uint16_t *place)
{
	uint16_t at = place_of(cm, source), *of_one = &cm->half_open_of[at];

	if (cm->half_open_count >= CM_HALF_OPEN_MAX || *of_one >= CM_HALF_OPEN_MAX_OF_ONE) {
		limit_reached(cm,
			      cm->half_open_count >= CM_HALF_OPEN_MAX ? CM_LIMIT_HALF_OPEN : CM_LIMIT_HALF_OPEN_OF_ONE);
		return false;
	}
	cm->half_open_count++;
	++*of_one;
	*place = at;
	return true;
}

void limit_half_open_done(struct cm *cm, uint16_t place)
{
	cm->half_open_count--;
	cm->half_open_of[place]--;
}

void limit_unanswered(struct conn *c, bool unanswered)
{
	if (c->unanswered == unanswered)
		return;
	c->unanswered = unanswered;
	if (unanswered)
		c->place = place_of(c->cm, c->flow.dst);
	c->cm->unanswered_of[c->place] += unanswered ? 1 : -1;
	c->cm->unanswered += unanswered ? 1 : -1;
}

bool limit_is_mute(struct cm *cm, const uint8_t *source)
{
	uint16_t place = place_of(cm, source);
	/* A flood may come from many addresses, each of which stays within its bound. */
	bool few = place < CM_SOURCES && cm->unanswered >= CM_UNANSWERED_MANY;

	if (cm->unanswered_of[place] < (few ? CM_UNANSWERED_FEW_OF_ONE : CM_UNANSWERED_MAX_OF_ONE))
		return false;
	limit_reached(cm, CM_LIMIT_UNANSWERED_OF_ONE);
	return true;
}

/* Whether this request came before. It is remembered, in the place of an older one that has the same hash. */
static bool was_seen(struct cm *cm, uint64_t request)
{
	uint64_t h = siphash_u64(cm->table_secret, request);
	uint16_t tag = (uint16_t)(h >> 32 | 1), *at;

	if (!cm->seen)
		cm->seen = alloc_get(&cm->alloc, CM_SEEN * sizeof(*cm->seen));
	if (!cm->seen)
		return true;
	at = &cm->seen[h % CM_SEEN];
	if (*at == tag)
		return true;
	*at = tag;
	return false;
}

bool limit_puts_off(struct cm *cm, const uint8_t *source, uint64_t request, uint64_t now_ns)
{
	if (cm->unanswered >= CM_UNANSWERED_MANY)
		cm->flooded_until_ns = now_ns + CM_FLOOD_NS;
	if (now_ns >= cm->flooded_until_ns || known_find(cm, source) >= 0)
		return false;
	if (now_ns - cm->strangers_since_ns >= window_ns) {
		cm->strangers_since_ns = now_ns;
		cm->strangers = cm->put_off = 0;
	}
	if (was_seen(cm, request) && cm->strangers < CM_STRANGERS_MAX) {
		cm->strangers++;
		return false;
	}
	if (++cm->put_off >= CM_PUT_OFF_FLOOD)
		cm->flooded_until_ns = now_ns + CM_FLOOD_NS;
	limit_reached(cm, CM_LIMIT_STRANGERS);
	return true;
}

bool limit_is_doubtful(const struct conn *c, uint64_t now_ns)
{
	return now_ns < c->cm->flooded_until_ns && known_find(c->cm, c->flow.dst) < 0;
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
