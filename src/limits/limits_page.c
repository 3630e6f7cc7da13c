/* SPDX-License-Identifier: BSD-2-Clause */
#include "limits/limits_page.h"

enum {
	BURST_NS = 4000000,         /* a process that waits for a processor for a scheduler's slice loses nothing */
	BURST_BYTES_MIN = 64 << 10, /* a train */
	RATE_BPS_MIN = 1000000
};

#define NS_A_S UINT64_C(1000000000)
/* What all processes of a device send in one turn takes less, at the lowest rate; more is of another boot. */
#define AHEAD_NS_MAX (60 * NS_A_S)

#define GET(x)    atomic_load_explicit(&(x), memory_order_relaxed)
#define SET(x, v) atomic_store_explicit(&(x), (v), memory_order_relaxed)

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- places ---- */

void place_clear(struct limits_place *p)
{
	SET(p->set, false);
	for (int k = 0; k < LIMITS; k++)
		SET(p->used[k], 0);
}

void place_set(struct limits_place *p, const struct limits_config *c)
{
	for (int k = 0; k < LIMITS; k++) {
		SET(p->used[k], 0);
		SET(p->quota[k], c->quota[k]);
	}
	SET(p->rate_bps, c->rate_bps);
	SET(p->burst_bytes, c->burst_bytes);
	SET(p->weight, c->weight);
	atomic_store(&p->set, true);
}

void place_config(const struct limits_place *p, struct limits_config *c)
{
	for (int k = 0; k < LIMITS; k++)
		c->quota[k] = GET(p->quota[k]);
	c->rate_bps = GET(p->rate_bps);
	c->burst_bytes = GET(p->burst_bytes);
	c->weight = GET(p->weight);
}

void place_note(struct limits_place *p, const uint64_t have[LIMITS])
{
	for (int k = 0; k < LIMITS; k++)
		SET(p->used[k], have[k]);
}

/* ---- quotas ---- */

static uint32_t places_of(const struct limits_row *row)
{
	uint32_t n = atomic_load(&row->places);

	return n < LIMITS_PROCESSES_MAX ? n : LIMITS_PROCESSES_MAX;
}

/* Of all places but one; it stops at the largest number. */
static uint64_t used_beside(const struct limits_row *row, const struct limits_place *mine, enum limit k)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < places_of(row); i++)
		if (&row->place[i] != mine && __builtin_add_overflow(sum, atomic_load(&row->place[i].used[k]), &sum))
			return UINT64_MAX;
	return sum;
}

uint64_t row_used(const struct limits_row *row, enum limit k)
{
	return used_beside(row, NULL, k);
}

/* What it has already is no reason to refuse another kind. */
static bool has_room(const struct limits_row *row, const struct limits_place *mine, const uint64_t before[LIMITS],
		     const uint64_t wanted[LIMITS], enum limit *over)
{
	for (int k = 0; k < LIMITS; k++) {
		uint64_t quota = GET(mine->quota[k]), beside;

		if (!quota || wanted[k] <= before[k])
			continue;
		beside = used_beside(row, mine, (enum limit)k);
		if (beside <= quota && wanted[k] <= quota - beside)
			continue;
		*over = (enum limit)k;
		return false;
	}
	return true;
}

/*
 * Each writes first and looks then, so of two that take the last one at the same time at least one sees the other. Both may,
 * and neither has it then.
 */
bool row_take(struct limits_row *row, struct limits_place *mine, const uint64_t wanted[LIMITS], enum limit *over)
{
	uint64_t before[LIMITS];

	for (int k = 0; k < LIMITS; k++)
		before[k] = GET(mine->used[k]);
	if (!has_room(row, mine, before, wanted, over))
		return false;
	for (int k = 0; k < LIMITS; k++)
		atomic_store(&mine->used[k], wanted[k]);
	if (has_room(row, mine, before, wanted, over))
		return true;
	place_note(mine, before);
	return false;
}

/* ---- shares ---- */

/* A device, for the time of a division. */
struct part {
	struct limits_row *row;
	uint64_t weight;
	uint64_t wants_bps; /* what it sent in the epoch, its own rate, or without end */
	bool sends, settled;
};

struct division {
	struct part parts[LIMITS_DEVICES_MAX];
	unsigned count;
	uint64_t left_bps, weights; /* of the parts that are not settled */
};

static bool is_recent(uint64_t then_ns, uint64_t now_ns)
{
	return then_ns && then_ns + LIMITS_ACTIVE_NS > now_ns;
}

static uint64_t bps_of(uint64_t bytes, uint64_t ns)
{
	/* More than a terabit is none. */
	return bytes > (UINT64_C(1) << 40) ? UINT64_MAX : (uint64_t)((double)bytes * 8 * (double)NS_A_S / (double)ns);
}

static void gather(struct limits_page *page, struct division *d, uint64_t took_ns, uint64_t now_ns)
{
	for (unsigned i = 0; i < LIMITS_DEVICES_MAX; i++) {
		struct limits_row *row = &page->rows[i];
		uint64_t bytes = GET(row->bytes), cap_bps = GET(row->cap_bps);
		struct part *p = &d->parts[d->count];

		if (!GET(row->key) || !GET(row->weight))
			continue;
		*p = (struct part){.row = row,
				   .weight = GET(row->weight),
				   .sends = is_recent(GET(row->sent_at_ns), now_ns) ||
					    is_recent(GET(row->waits_ns), now_ns)};
		p->wants_bps =
			is_recent(GET(row->waits_ns), now_ns) ? UINT64_MAX : bps_of(bytes - GET(row->counted), took_ns);
		p->wants_bps = least(p->wants_bps, cap_bps ? cap_bps : UINT64_MAX);
		SET(row->counted, bytes);
		d->weights += p->sends ? p->weight : 0;
		d->count++;
	}
}

static uint64_t share_of(const struct division *d, uint64_t weight)
{
	return d->weights ? (uint64_t)((double)d->left_bps * (double)weight / (double)d->weights) : d->left_bps;
}

/* Who wants less than its share has that; what it leaves is the others'. */
static bool settle_one(struct division *d)
{
	for (unsigned i = 0; i < d->count; i++) {
		struct part *p = &d->parts[i];

		if (!p->sends || p->settled || p->wants_bps >= share_of(d, p->weight))
			continue;
		p->settled = true;
		d->left_bps -= p->wants_bps;
		d->weights -= p->weight;
		return true;
	}
	return false;
}

/* What it would have if all that send wanted as much as they can get: so who begins need not wait for an epoch. */
static uint64_t first_share(const struct part *p, uint64_t line_bps, uint64_t weights)
{
	return (uint64_t)((double)line_bps * (double)p->weight / (double)(weights + (p->sends ? 0 : p->weight)));
}

static void divide(struct limits_page *page, uint64_t line_bps, uint64_t took_ns, uint64_t now_ns)
{
	struct division d = {.left_bps = line_bps};
	uint64_t weights;

	gather(page, &d, took_ns, now_ns);
	weights = d.weights;
	while (settle_one(&d)) {
	}
	for (unsigned i = 0; i < d.count; i++) {
		const struct part *p = &d.parts[i];
		uint64_t cap_bps = GET(p->row->cap_bps), first_bps = first_share(p, line_bps, weights);
		uint64_t bps = p->sends && !p->settled ? share_of(&d, p->weight) : 0;

		bps = bps > first_bps ? bps : first_bps;
		bps = cap_bps ? least(bps, cap_bps) : bps;
		SET(p->row->rate_bps, bps > RATE_BPS_MIN ? bps : RATE_BPS_MIN);
	}
}

/* The process that moves the epoch on divides the line. If it stops halfway, the next epoch's process divides anew. */
static void look_at_epoch(struct limits_page *page, uint64_t line_bps, uint64_t now_ns)
{
	uint64_t began_ns = GET(page->epoch_ns);

	/* One that began in future is of another boot. */
	if (began_ns <= now_ns && now_ns - began_ns < LIMITS_EPOCH_NS)
		return;
	if (atomic_compare_exchange_strong(&page->epoch_ns, &began_ns, now_ns))
		divide(page, line_bps, began_ns < now_ns ? now_ns - began_ns : LIMITS_EPOCH_NS, now_ns);
}

/* ---- tokens ---- */

void row_begin(struct limits_row *row, const struct limits_config *c, uint64_t now_ns)
{
	SET(row->cap_bps, c->rate_bps);
	SET(row->weight, c->weight);
	SET(row->rate_bps, c->rate_bps);
	SET(row->sent_until_ns, now_ns);
	SET(row->bytes, 0);
	SET(row->counted, 0);
	SET(row->sent_at_ns, 0);
	SET(row->waits_ns, 0);
}

/* That of a device that never sent follows from the line alone. */
static uint64_t rate_of(const struct limits_row *row, uint64_t line_bps)
{
	uint64_t bps = GET(row->rate_bps);

	bps = bps ? bps : line_bps;
	return bps > RATE_BPS_MIN ? bps : RATE_BPS_MIN;
}

static uint64_t ns_of(uint64_t bytes, uint64_t bps)
{
	return (uint64_t)((double)bytes * 8 * (double)NS_A_S / (double)bps);
}

uint64_t row_due_ns(struct limits_page *page, struct limits_row *row, uint64_t line_bps, uint64_t now_ns)
{
	uint64_t due_ns = GET(row->sent_until_ns);

	if (GET(row->weight))
		look_at_epoch(page, line_bps, now_ns);
	if (due_ns <= now_ns)
		return now_ns;
	SET(row->waits_ns, due_ns);
	return least(due_ns, now_ns + AHEAD_NS_MAX);
}

void row_send(struct limits_page *page, struct limits_row *row, uint32_t burst_bytes, uint64_t line_bps, uint64_t bytes,
	      uint64_t now_ns)
{
	uint64_t bps = rate_of(row, line_bps), burst_ns, was_ns = GET(row->sent_until_ns), from_ns;

	burst_ns = burst_bytes ? ns_of(burst_bytes, bps) : BURST_NS;
	if (!burst_bytes && burst_ns < ns_of(BURST_BYTES_MIN, bps))
		burst_ns = ns_of(BURST_BYTES_MIN, bps);
	do {
		from_ns = was_ns + burst_ns > now_ns ? was_ns : now_ns > burst_ns ? now_ns - burst_ns : 0;
		from_ns = least(from_ns, now_ns + AHEAD_NS_MAX);
	} while (!atomic_compare_exchange_weak(&row->sent_until_ns, &was_ns, from_ns + ns_of(bytes, bps)));
	atomic_fetch_add_explicit(&row->bytes, bytes, memory_order_relaxed);
	SET(row->sent_at_ns, now_ns);
	if (GET(row->weight))
		look_at_epoch(page, line_bps, now_ns);
}
