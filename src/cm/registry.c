/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of atomic words. A row's state says whose life it belongs to, counts how often it was written, and has its
 * status; a reader that finds the same state before and after has read one row and not halves of two.
 */
#include "cm/registry.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

enum {
	SPACES = 3,
	PORTS = 65536,
	BITS = 32,
	NOTES = 4096,
	READS_MAX = 64,
	FIT_MAX = 3, /* registry_fit(): the address itself, which is one's alone */
	AREA_ALIGN = 4096,
	/* of a row */
	FREE = 0,
	FIRM = 1,
	TENTATIVE = 2,
	REVOKED = 3,
	STATUS_BITS = 8,
	LIFE_SHIFT = 32,
	/* flags of a row */
	REUSE = 1,
	AFONLY = 2,
	LISTENING = 4,
	IPV6 = 8
};

struct row {
	_Atomic uint64_t state;
	_Atomic uint64_t ip[2];
	_Atomic uint64_t rest; /* ifindex << 32 | port << 16 | space << 8 | flags */
};

struct will {
	_Atomic uint64_t state;
	_Atomic uint64_t src[2], dst[2];
	_Atomic uint64_t comm_ids; /* local << 32 | remote */
	_Atomic uint64_t rest;     /* ifindex << 32 | the peer's QPN */
	uint64_t unused;
};

struct area {
	_Alignas(AREA_ALIGN) _Atomic uint32_t life; /* 0: nobody's */
	_Atomic uint32_t row_end, will_end;         /* none further back was ever used */
	_Atomic uint32_t own_end;                   /* 1 + how many addresses it has; 0: every one of the host */
	_Atomic uint64_t own[NIC_GIDS_MAX][2];
	_Atomic uint32_t bound[SPACES][PORTS / BITS]; /* ports that have rows */
	_Atomic uint32_t drawn[SPACES][PORTS / BITS]; /* ports that have none */
	struct row rows[REGISTRY_ROWS];
	struct will wills[REGISTRY_WILLS];
};

struct registry_page {
	_Atomic uint32_t registrar;                            /* its slot + 1; 0: nobody */
	_Atomic uint32_t used[(REGISTRY_SLOTS + BITS) / BITS]; /* slots that ever had an owner */
	_Atomic uint64_t notes[NOTES];                         /* key, but for its lowest byte, which is the slot + 1 */
	struct area areas[REGISTRY_SLOTS];
};

static_assert(sizeof(struct row) == 32 && sizeof(struct will) == 64, "rows do not straddle lines");
static_assert((int)REGISTRY_SLOTS < UINT8_MAX, "a slot fits a note");

size_t registry_bytes(void)
{
	return sizeof(struct registry_page);
}

/* ---- bits -------------------------------------------------------------------------------------- */

static bool bit_get(const _Atomic uint32_t *bits, uint32_t at)
{
	return atomic_load(&bits[at / BITS]) >> at % BITS & 1;
}

static void bit_set(_Atomic uint32_t *bits, uint32_t at)
{
	atomic_fetch_or(&bits[at / BITS], UINT32_C(1) << at % BITS);
}

static void bit_clear(_Atomic uint32_t *bits, uint32_t at)
{
	atomic_fetch_and(&bits[at / BITS], ~(UINT32_C(1) << at % BITS));
}

static void bits_clear(_Atomic uint32_t (*bits)[PORTS / BITS])
{
	for (uint32_t s = 0; s < SPACES; s++) {
		for (uint32_t i = 0; i < PORTS / BITS; i++) {
			if (atomic_load(&bits[s][i]))
				atomic_store(&bits[s][i], 0);
		}
	}
}

static int space_index(enum cm_space space)
{
	return space == CM_SPACE_TCP ? 0 : space == CM_SPACE_UDP ? 1 : 2;
}

static enum cm_space space_of(uint8_t index)
{
	return index == 0 ? CM_SPACE_TCP : index == 1 ? CM_SPACE_UDP : CM_SPACE_IB;
}

/* ---- members ----------------------------------------------------------------------------------- */

static struct area *own(const struct registry *r)
{
	return &r->page->areas[r->slot];
}

void registry_join(struct registry *r, uint32_t life)
{
	struct area *a;

	if (!r->page)
		return;
	a = own(r);
	r->life = life;
	/* Rows of another life are free by their state; bits have none, and count only where there is a life. */
	atomic_store(&a->life, 0);
	bits_clear(a->bound);
	bits_clear(a->drawn);
	atomic_store(&a->row_end, 0);
	atomic_store(&a->own_end, 0);
	atomic_store(&a->life, life);
	bit_set(r->page->used, r->slot);
}

void registry_leave(struct registry *r)
{
	uint32_t life = r->life;

	if (r->page)
		atomic_compare_exchange_strong(&own(r)->life, &life, 0);
	r->page = NULL;
}

/* 0: nobody has the slot. */
static uint32_t life_of(const struct registry_page *p, uint32_t slot)
{
	return bit_get(p->used, slot) ? atomic_load(&p->areas[slot].life) : 0;
}

/* The process whose row or bit is in the way may have ended without giving it back. */
static bool bury(struct registry *r, uint32_t slot, uint32_t life)
{
	if (slot == r->slot || r->lives(r->ctx, slot))
		return false;
	atomic_compare_exchange_strong(&r->page->areas[slot].life, &life, 0);
	return true;
}

bool registry_is_gone(struct registry *r, uint32_t slot)
{
	uint32_t life = r->page && slot < REGISTRY_SLOTS ? life_of(r->page, slot) : 0;

	return !life || bury(r, slot, life);
}

/* ---- addresses --------------------------------------------------------------------------------- */

/* Who reads meanwhile may find an address of before, or miss one: then a request is led astray, and comes again. */
void registry_set_own(struct registry *r, const uint8_t (*ip)[16], uint32_t count)
{
	uint32_t n = count < NIC_GIDS_MAX ? count : NIC_GIDS_MAX;

	if (!r->page)
		return;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t half[2];

		memcpy(half, ip[i], sizeof(half));
		atomic_store(&own(r)->own[i][0], half[0]);
		atomic_store(&own(r)->own[i][1], half[1]);
	}
	atomic_store(&own(r)->own_end, n + 1);
}

static bool area_has(struct area *a, const uint8_t *ip)
{
	uint32_t end = atomic_load(&a->own_end);
	uint64_t half[2];

	memcpy(half, ip, sizeof(half));
	for (uint32_t i = 0; i + 1 < end && i < NIC_GIDS_MAX; i++)
		if (atomic_load(&a->own[i][0]) == half[0] && atomic_load(&a->own[i][1]) == half[1])
			return true;
	return !end;
}

static bool areas_meet(struct area *a, struct area *b)
{
	uint32_t end = atomic_load(&a->own_end);
	bool meet = !end || !atomic_load(&b->own_end);

	for (uint32_t i = 0; i + 1 < end && i < NIC_GIDS_MAX && !meet; i++) {
		uint64_t half[2] = {atomic_load(&a->own[i][0]), atomic_load(&a->own[i][1])};
		uint8_t ip[16];

		memcpy(ip, half, sizeof(ip));
		meet = area_has(b, ip);
	}
	return meet;
}

int registry_owner(struct registry *r, const uint8_t *ip)
{
	for (uint32_t slot = 0; r->page && slot < REGISTRY_SLOTS; slot++) {
		uint32_t life = slot == r->slot ? 0 : life_of(r->page, slot);

		if (life && area_has(&r->page->areas[slot], ip) && !bury(r, slot, life))
			return (int)slot;
	}
	return REGISTRY_NOBODY;
}

/* ---- rows -------------------------------------------------------------------------------------- */

static uint64_t state_with(uint64_t before, uint32_t life, unsigned status)
{
	uint64_t writes = ((before >> STATUS_BITS) + 1) & 0xffffff;

	return (uint64_t)life << LIFE_SHIFT | writes << STATUS_BITS | status;
}

static uint32_t state_life(uint64_t state)
{
	return (uint32_t)(state >> LIFE_SHIFT);
}

static unsigned state_status(uint64_t state)
{
	return state & ((1u << STATUS_BITS) - 1);
}

static void ip_store(_Atomic uint64_t *to, const uint8_t *ip)
{
	uint64_t half[2];

	memcpy(half, ip, sizeof(half));
	atomic_store(&to[0], half[0]);
	atomic_store(&to[1], half[1]);
}

static void ip_load(uint8_t *ip, _Atomic uint64_t *from)
{
	uint64_t half[2] = {atomic_load(&from[0]), atomic_load(&from[1])};

	memcpy(ip, half, sizeof(half));
}

static void row_store_rest(struct row *row, const struct registry_claim *c)
{
	uint64_t flags = (c->reuse ? REUSE : 0) | (c->afonly ? AFONLY : 0) | (c->listening ? LISTENING : 0) |
			 (c->addr.family == CM_IPV6 ? IPV6 : 0);

	atomic_store(&row->rest, (uint64_t)c->addr.ifindex << 32 | (uint64_t)c->addr.port << 16 |
					 (uint64_t)space_index(c->space) << 8 | flags);
}

static void row_store(struct row *row, const struct registry_claim *c)
{
	ip_store(row->ip, c->addr.ip);
	row_store_rest(row, c);
}

static void row_load(struct row *row, struct registry_claim *c)
{
	uint64_t rest = atomic_load(&row->rest);

	*c = (struct registry_claim){.space = space_of((uint8_t)(rest >> 8)),
				     .addr = {.ifindex = (uint32_t)(rest >> 32),
					      .port = (uint16_t)(rest >> 16),
					      .family = rest & IPV6 ? CM_IPV6 : CM_IPV4},
				     .reuse = rest & REUSE,
				     .afonly = rest & AFONLY,
				     .listening = rest & LISTENING};
	ip_load(c->addr.ip, row->ip);
}

/*
 * A copy of a row of that life and its state; false: there is none. One that changes while it is read is read again;
 * its owner writes each row once a call, so that does not go on.
 */
static bool row_read(struct row *row, uint32_t life, struct registry_claim *c, uint64_t *state)
{
	for (unsigned i = 0; i < READS_MAX; i++) {
		*state = atomic_load(&row->state);
		if (state_life(*state) != life || (state_status(*state) != FIRM && state_status(*state) != TENTATIVE))
			return false;
		row_load(row, c);
		if (atomic_load(&row->state) == *state)
			return true;
	}
	return true;
}

/*
 * Whether a row is about that port, by one read. What a row says is written before the row counts: who still finds
 * another port here has looked before the row was made.
 */
static bool row_is_on(struct row *row, enum cm_space space, uint16_t port)
{
	return (uint32_t)atomic_load(&row->rest) >> 8 == ((uint32_t)port << 8 | (uint32_t)space_index(space));
}

static uint32_t row_end(struct area *a)
{
	uint32_t end = atomic_load(&a->row_end);

	return end < REGISTRY_ROWS ? end : REGISTRY_ROWS;
}

bool registry_row(const struct registry_page *p, uint32_t slot, uint32_t row, struct registry_claim *c)
{
	uint32_t life = slot < REGISTRY_SLOTS ? life_of(p, slot) : 0;
	uint64_t state;

	return life && row < REGISTRY_ROWS && row_read((struct row *)&p->areas[slot].rows[row], life, c, &state) &&
	       state_status(state) == FIRM;
}

/* ---- claims ------------------------------------------------------------------------------------- */

static bool is_wildcard(const uint8_t *ip)
{
	static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff}, ipv6[16];

	return !memcmp(ip, ipv4, sizeof(ipv4)) || !memcmp(ip, ipv6, sizeof(ipv6));
}

static bool shares(const struct registry_claim *c)
{
	return c->reuse && !c->listening;
}

int registry_clash(const struct registry_claim *there, const struct registry_claim *wanted)
{
	if (shares(there) && shares(wanted))
		return 0;
	if (there->afonly && wanted->afonly && there->addr.family != wanted->addr.family)
		return 0;
	/* Two wildcards, too, as in Linux. */
	if (is_wildcard(wanted->addr.ip) || is_wildcard(there->addr.ip))
		return -EADDRNOTAVAIL;
	return memcmp(there->addr.ip, wanted->addr.ip, sizeof(wanted->addr.ip)) ? 0 : -EADDRINUSE;
}

int registry_fit(const struct registry_claim *there, const uint8_t *ip)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool ipv4 = !memcmp(ip, mapped, sizeof(mapped));

	if (!there->listening)
		return 0;
	if (!memcmp(there->addr.ip, ip, sizeof(there->addr.ip)))
		return 3;
	if (!is_wildcard(there->addr.ip))
		return 0;
	if ((there->addr.family == CM_IPV4) == ipv4)
		return 2;
	return there->addr.family == CM_IPV6 && !there->afonly ? 1 : 0;
}

/* Two wildcards of members that have no address in common, or one and an address that its member does not have. */
static bool are_apart(struct area *theirs, const struct registry_claim *there, struct area *ours,
		      const struct registry_claim *wanted)
{
	if (is_wildcard(wanted->addr.ip))
		return is_wildcard(there->addr.ip) ? !areas_meet(ours, theirs) : !area_has(ours, there->addr.ip);
	return is_wildcard(there->addr.ip) && !area_has(theirs, wanted->addr.ip);
}

/*
 * Whether another member's row keeps us from a port. A tentative one of a higher slot does not if we can take it back
 * before it is firm.
 */
static int row_clash(const struct registry *r, uint32_t slot, struct row *row, uint32_t life,
		     const struct registry_claim *wanted)
{
	struct registry_claim there;
	uint64_t state;
	int err;

	if (!row_is_on(row, wanted->space, wanted->addr.port) || !row_read(row, life, &there, &state) ||
	    there.space != wanted->space || there.addr.port != wanted->addr.port)
		return 0;
	err = are_apart(&r->page->areas[slot], &there, own(r), wanted) ? 0 : registry_clash(&there, wanted);
	if (err && state_status(state) == TENTATIVE && r->slot < slot &&
	    atomic_compare_exchange_strong(&row->state, &state, state_with(state, life, REVOKED)))
		return 0;
	/* It may be firm by now, or gone. */
	return err && state_life(state) == life && state_status(state) != FREE && state_status(state) != REVOKED ? err
														 : 0;
}

static int member_clash(const struct registry *r, uint32_t slot, uint32_t life, const struct registry_claim *wanted)
{
	struct area *a = &r->page->areas[slot];
	int space = space_index(wanted->space), err = 0;

	if (bit_get(a->drawn[space], wanted->addr.port))
		return -EADDRINUSE;
	if (!bit_get(a->bound[space], wanted->addr.port))
		return 0;
	for (uint32_t i = 0, end = row_end(a); i < end && !err; i++)
		err = row_clash(r, slot, &a->rows[i], life, wanted);
	return err;
}

/* Whether any other member keeps us from it. */
static int judge(struct registry *r, const struct registry_claim *wanted)
{
	for (uint32_t slot = 0; slot < REGISTRY_SLOTS; slot++) {
		uint32_t life = slot == r->slot ? 0 : life_of(r->page, slot);
		int err = life ? member_clash(r, slot, life, wanted) : 0;

		if (!err || bury(r, slot, life))
			continue;
		r->in_the_way = (int)slot;
		return err;
	}
	return 0;
}

static uint64_t set_state(struct registry *r, struct row *row, unsigned status)
{
	uint64_t state = state_with(atomic_load(&row->state), status == FREE ? 0 : r->life, status);

	atomic_store(&row->state, state);
	return state;
}

static bool row_is_ours(const struct registry *r, const struct row *row)
{
	uint64_t state = atomic_load(&row->state);

	return state_life(state) == r->life && state_status(state) != FREE;
}

static uint32_t free_row(struct registry *r)
{
	for (uint32_t n = 0; n < REGISTRY_ROWS; n++) {
		uint32_t i = (r->row_hint + n) % REGISTRY_ROWS;

		if (!row_is_ours(r, &own(r)->rows[i]))
			return i;
	}
	return REGISTRY_NO_ROW;
}

/* Makes the row firm unless somebody else has the port, or has taken the row back since it was tentative. */
static int claim(struct registry *r, struct row *row, const struct registry_claim *c)
{
	uint64_t tentative;
	int err;

	set_state(r, row, FREE);
	row_store(row, c);
	tentative = set_state(r, row, TENTATIVE);
	err = judge(r, c);
	if (err)
		return err;
	return atomic_compare_exchange_strong(&row->state, &tentative, state_with(tentative, r->life, FIRM))
		       ? 0
		       : -EADDRINUSE;
}

int registry_bind(struct registry *r, const struct registry_claim *c, uint32_t *out)
{
	uint32_t i;
	int err;

	*out = REGISTRY_NO_ROW;
	if (!r->page)
		return 0;
	i = free_row(r);
	if (i == REGISTRY_NO_ROW)
		return -ENOMEM;
	if (atomic_load(&own(r)->row_end) <= i)
		atomic_store(&own(r)->row_end, i + 1);
	bit_set(own(r)->bound[space_index(c->space)], c->addr.port);
	err = claim(r, &own(r)->rows[i], c);
	if (err) {
		registry_release(r, i, true); /* its bit stays: another row of ours may have the port */
		return err;
	}
	r->row_hint = i + 1;
	*out = i;
	return 0;
}

/* A row of its own for the new claim: should it fail, the old one was there all the time. */
int registry_change(struct registry *r, uint32_t *row, const struct registry_claim *c)
{
	uint32_t changed;
	int err;

	if (!r->page || *row == REGISTRY_NO_ROW)
		return 0;
	err = registry_bind(r, c, &changed);
	if (err)
		return err;
	registry_release(r, *row, true);
	*row = changed;
	return 0;
}

/* All that differs is in one word: who reads it meanwhile has the old flags or the new, and the port is never free. */
void registry_amend(struct registry *r, uint32_t row, const struct registry_claim *c)
{
	if (r->page && row < REGISTRY_ROWS)
		row_store_rest(&own(r)->rows[row], c);
}

void registry_release(struct registry *r, uint32_t i, bool more)
{
	struct registry_claim c;

	if (!r->page || i >= REGISTRY_ROWS)
		return;
	row_load(&own(r)->rows[i], &c);
	set_state(r, &own(r)->rows[i], FREE);
	if (!more)
		bit_clear(own(r)->bound[space_index(c.space)], c.addr.port);
	if (i < r->row_hint)
		r->row_hint = i;
}

bool registry_draw(struct registry *r, enum cm_space space, uint16_t port)
{
	/* Any claim to the port clashes with this one. */
	const struct registry_claim everywhere = {.space = space, .addr = {.port = port, .family = CM_IPV6}};

	if (!r->page)
		return true;
	bit_set(own(r)->drawn[space_index(space)], port);
	if (!judge(r, &everywhere))
		return true;
	registry_undraw(r, space, port);
	return false;
}

void registry_undraw(struct registry *r, enum cm_space space, uint16_t port)
{
	if (r->page)
		bit_clear(own(r)->drawn[space_index(space)], port);
}

/* ---- who listens -------------------------------------------------------------------------------- */

static int member_fit(struct area *a, uint32_t life, enum cm_space space, const uint8_t *gid, const uint8_t *ip,
		      uint16_t port)
{
	int best = 0;

	if (!area_has(a, gid) || !bit_get(a->bound[space_index(space)], port))
		return 0;
	for (uint32_t i = 0, end = row_end(a); i < end; i++) {
		struct registry_claim c;
		uint64_t state;
		int fit;

		if (!row_is_on(&a->rows[i], space, port) || !row_read(&a->rows[i], life, &c, &state) ||
		    state_status(state) != FIRM || c.space != space || c.addr.port != port)
			continue;
		fit = registry_fit(&c, ip);
		if (fit > best)
			best = fit;
	}
	return best;
}

int registry_listener(struct registry *r, enum cm_space space, const uint8_t *gid, const uint8_t *ip, uint16_t port,
		      int *fit)
{
	int best = REGISTRY_NOBODY;

	*fit = 0;
	for (uint32_t slot = 0; r->page && slot < REGISTRY_SLOTS && *fit < FIT_MAX; slot++) {
		uint32_t life = slot == r->slot ? 0 : life_of(r->page, slot);
		int f = life ? member_fit(&r->page->areas[slot], life, space, gid, ip, port) : 0;

		if (f > *fit && !bury(r, slot, life)) {
			*fit = f;
			best = (int)slot;
		}
	}
	return best;
}

/* ---- requests that came ------------------------------------------------------------------------- */

void registry_note(struct registry *r, uint64_t key)
{
	if (r->page)
		atomic_store(&r->page->notes[key >> 8 & (NOTES - 1)], (key & ~UINT64_C(0xff)) | (r->slot + 1));
}

int registry_noted(const struct registry *r, uint64_t key)
{
	uint64_t note = r->page ? atomic_load(&r->page->notes[key >> 8 & (NOTES - 1)]) : 0;
	uint32_t slot = (uint32_t)(note & 0xff) - 1;

	if (!note || (note ^ key) >> 8 || slot >= REGISTRY_SLOTS || !life_of(r->page, slot))
		return REGISTRY_NOBODY;
	return (int)slot;
}

/* ---- last wills --------------------------------------------------------------------------------- */

/* A will with a status is a living member's, or is not carried out yet. */
static bool will_is_free(const struct will *w)
{
	return state_status(atomic_load(&w->state)) == FREE;
}

static uint32_t free_will(struct registry *r)
{
	for (uint32_t n = 0; n < REGISTRY_WILLS; n++) {
		uint32_t i = (r->will_hint + n) % REGISTRY_WILLS;

		if (will_is_free(&own(r)->wills[i]))
			return i;
	}
	return REGISTRY_NO_ROW;
}

uint32_t registry_make_will(struct registry *r, const struct registry_will *will)
{
	uint32_t i = r->page ? free_will(r) : REGISTRY_NO_ROW;
	struct will *w;

	if (i == REGISTRY_NO_ROW)
		return i;
	w = &own(r)->wills[i];
	ip_store(w->src, will->flow.src);
	ip_store(w->dst, will->flow.dst);
	atomic_store(&w->comm_ids, (uint64_t)will->local_comm_id << 32 | will->remote_comm_id);
	atomic_store(&w->rest, (uint64_t)will->flow.ifindex << 32 | will->remote_qpn);
	if (atomic_load(&own(r)->will_end) <= i)
		atomic_store(&own(r)->will_end, i + 1);
	atomic_store(&w->state, state_with(atomic_load(&w->state), r->life, FIRM));
	r->will_hint = i + 1;
	return i;
}

void registry_drop_will(struct registry *r, uint32_t i)
{
	struct will *w;

	if (!r->page || i >= REGISTRY_WILLS)
		return;
	w = &own(r)->wills[i];
	if (state_life(atomic_load(&w->state)) != r->life)
		return;
	atomic_store(&w->state, state_with(atomic_load(&w->state), 0, FREE));
	if (i < r->will_hint)
		r->will_hint = i;
}

/* Takes a will out if it is of another life than the area's, for us alone. */
static bool will_take(struct will *w, uint32_t life, struct registry_will *out)
{
	uint64_t state = atomic_load(&w->state), ids, rest;

	if (state_status(state) == FREE || state_life(state) == life)
		return false;
	*out = (struct registry_will){0};
	ip_load(out->flow.src, w->src);
	ip_load(out->flow.dst, w->dst);
	ids = atomic_load(&w->comm_ids);
	rest = atomic_load(&w->rest);
	out->local_comm_id = (uint32_t)(ids >> 32);
	out->remote_comm_id = (uint32_t)ids;
	out->flow.ifindex = (uint32_t)(rest >> 32);
	out->remote_qpn = (uint32_t)rest & 0xffffff;
	return atomic_compare_exchange_strong(&w->state, &state, state_with(state, 0, FREE));
}

static bool area_next_will(struct registry *r, struct registry_sweep *s, struct registry_will *out)
{
	struct area *a = &r->page->areas[s->slot];
	uint32_t life = atomic_load(&a->life), end = atomic_load(&a->will_end);

	if (!s->looked && life)
		bury(r, s->slot, life);
	s->looked = true;
	life = atomic_load(&a->life);
	while (s->will < end && s->will < REGISTRY_WILLS) {
		if (will_take(&a->wills[s->will++], life, out))
			return true;
	}
	return false;
}

bool registry_next_will(struct registry *r, struct registry_sweep *s, struct registry_will *out)
{
	uint32_t end = s->end && s->end < REGISTRY_SLOTS ? s->end : REGISTRY_SLOTS;

	for (; r->page && s->slot < end; *s = (struct registry_sweep){.slot = s->slot + 1, .end = end}) {
		if (bit_get(r->page->used, s->slot) && area_next_will(r, s, out))
			return true;
	}
	return false;
}

/* ---- the registrar ------------------------------------------------------------------------------ */

int registry_requests_slot(const struct registry_page *p)
{
	uint32_t slot = atomic_load(&p->registrar) - 1;

	return slot < REGISTRY_SLOTS ? (int)slot : REGISTRY_NOBODY;
}

int registry_registrar(const struct registry *r)
{
	return r->page ? registry_requests_slot(r->page) : REGISTRY_NOBODY;
}

bool registry_take_over(struct registry *r, int from)
{
	uint32_t was;

	if (!r->page)
		return true;
	was = atomic_load(&r->page->registrar);
	if (registry_registrar(r) != from)
		return false;
	return atomic_compare_exchange_strong(&r->page->registrar, &was, r->slot + 1);
}
