/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first bytes choose where the PSNs start and how far ahead may be recorded, then each four are one
 * call with its arguments; a model with one entry a PSN does the same and must agree. The calls keep to their
 * contract: only PSNs that were judged new are recorded, and only those in [epsn, hpsn] are queried.
 */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_input.h"
#include "transport/veroce/rx_space.h"

enum { OPS_MAX = 400, MODEL = 1 << 17, STEPS_MAX = 20000 };

/* ---- memory that can run dry --------------------------------------------------------------------- */

static int gets_left;

static void *get(void *ctx, size_t bytes)
{
	void *p = gets_left ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;

	if (gets_left > 0)
		gets_left--;
	return p ? memset(p, 0, bytes) : NULL;
}

static void put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

/* ---- the model ------------------------------------------------------------------------------------ */

enum { MISSING, ARRIVED, ENDS };

struct world {
	struct pool pool;
	struct rx_space s;
	uint32_t limit;
	uint32_t epsn;
	uint32_t ahead;   /* PSNs from epsn to the highest that arrived */
	uint32_t arrived; /* of them */
	uint32_t steps;
	uint8_t kind[MODEL]; /* by PSN modulo MODEL */
};

static uint8_t *kind_of(struct world *w, uint32_t psn)
{
	return &w->kind[psn % MODEL];
}

/* A record whose values follow from its PSN. */
static struct rx_meta meta_for(uint32_t psn)
{
	return (struct rx_meta){
		.opcode = (uint8_t)(psn * 31),
		.se = psn & 1,
		.payload_len = (uint16_t)(psn * 17),
		.msn = psn ^ 0x5555,
		.po = psn >> 3,
		.rkey = psn * 5,
		.len = psn * 3,
		.va = psn * UINT64_C(0x100000001),
		.swap_add = psn,
		.compare = ~(uint64_t)psn,
	};
}

static enum rx_place model_judge(struct world *w, uint32_t psn)
{
	uint32_t d = (psn - w->epsn) & PSN_MASK;

	if (d >= 1u << 23)
		return RX_OLD;
	if (d >= w->limit)
		return RX_BEYOND;
	return d < w->ahead && *kind_of(w, psn) != MISSING ? RX_OLD : RX_NEW;
}

static void must_meta(const struct rx_meta *m, uint32_t psn)
{
	struct rx_meta want = meta_for(psn);

	must(m->opcode == want.opcode && m->se == want.se && m->payload_len == want.payload_len);
	must(m->msn == want.msn && m->po == want.po && m->rkey == want.rkey && m->len == want.len);
	must(m->va == want.va && m->swap_add == want.swap_add && m->compare == want.compare);
}

static void must_agree(struct world *w)
{
	const struct rx_meta *meta = NULL;
	bool there = w->ahead && *kind_of(w, w->epsn) != MISSING;

	must(w->s.epsn == w->epsn);
	must(rx_distance(&w->s) == w->ahead);
	must(rx_has_holes(&w->s) == (w->ahead > 0));
	must(rx_epsn_arrived(&w->s, &meta) == there);
	if (there) {
		must(!meta == (*kind_of(w, w->epsn) != ENDS));
		if (meta)
			must_meta(meta, w->epsn);
	}
	if (!w->s.window) {
		must(pool_lent_bytes(&w->pool) == 0);
		must(!w->arrived);
		return;
	}
	must(w->s.window->size >= w->ahead && w->s.window->size <= 2 * RX_WINDOW_MAX);
}

/* ---- calls ------------------------------------------------------------------------------------------ */

static void do_record(struct world *w, uint32_t d, bool ends)
{
	uint32_t psn = psn_add(w->epsn, d);
	struct rx_meta meta = meta_for(psn);
	size_t lent = pool_lent_bytes(&w->pool);
	bool fresh = !w->s.window;

	must(rx_judge(&w->s, psn, w->limit) == model_judge(w, psn));
	if (model_judge(w, psn) != RX_NEW)
		return;
	if (!rx_record(&w->s, &w->pool, psn, ends ? &meta : NULL)) {
		must(gets_left == 0);
		must(!fresh || pool_lent_bytes(&w->pool) == lent);
		return;
	}
	*kind_of(w, psn) = ends ? ENDS : ARRIVED;
	w->arrived++;
	if (d >= w->ahead)
		w->ahead = d + 1;
	must(rx_judge(&w->s, psn, w->limit) == RX_OLD);
}

/* The one that was recorded, or one that comes just now. */
static void do_step(struct world *w)
{
	uint8_t *k = kind_of(w, w->epsn);

	if (w->steps++ >= STEPS_MAX)
		return;
	rx_step(&w->s, &w->pool);
	w->arrived -= *k != MISSING;
	*k = MISSING;
	w->epsn = psn_add(w->epsn, 1);
	w->ahead -= w->ahead > 0;
}

static void do_look(struct world *w, uint32_t d)
{
	uint32_t from;
	uint64_t bits[2];

	d %= w->ahead + 1;
	from = psn_add(w->epsn, d);
	rx_arrived128(&w->s, from, bits);
	for (uint32_t i = 0; i < 128; i++) {
		bool there = d + i < w->ahead && *kind_of(w, psn_add(from, i)) != MISSING;

		must((bits[i / 64] >> i % 64 & 1) == there);
	}
}

static void do_drop(struct world *w)
{
	rx_space_drop(&w->s, &w->pool);
	for (; w->ahead; w->ahead--)
		*kind_of(w, psn_add(w->epsn, w->ahead - 1)) = MISSING;
	w->arrived = 0;
}

static void call(struct world *w, uint8_t op, uint8_t a, uint16_t b)
{
	switch (op & 15) {
	case 0: do_record(w, b, a & 1); break;
	case 1:
	case 2: do_record(w, a, b & 1); break;
	case 3: /* a run of them, some of which end a message */
		for (uint32_t i = 0; i < a; i++)
			do_record(w, (b & 0xfffu) + i, (b >> 12) && i % (b >> 12) == 0);
		break;
	case 4: /* every a-th */
		for (uint32_t i = 0; i < 40; i++)
			do_record(w, b % 512u + i * a, i & 1);
		break;
	case 5: do_step(w); break;
	case 6: /* as far as they arrived, as a receiver does */
		do_step(w);
		while (w->ahead && *kind_of(w, w->epsn) != MISSING && w->steps < STEPS_MAX)
			do_step(w);
		break;
	case 7:
		for (uint32_t i = 0; i < a; i++)
			do_step(w);
		break;
	case 8:
	case 9: do_look(w, b); break;
	case 10:
		must(rx_judge(&w->s, psn_add(w->epsn, (uint32_t)a << 16 | b), w->limit) ==
		     model_judge(w, psn_add(w->epsn, (uint32_t)a << 16 | b)));
		break;
	case 11: gets_left = a < 8 ? a : -1; break;
	case 12:
		if (a == 255)
			do_drop(w);
		break;
	default: do_record(w, b & 0x3ff, a & 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t limits[] = {RX_WINDOW_MIN, 4096, RX_WINDOW_MAX, 256};
	static const struct alloc alloc = {get, put, NULL};
	static struct world w;

	if (size < 4)
		return 0;
	gets_left = -1;
	pool_init(&w.pool, &alloc);
	w.limit = limits[data[3] % 4];
	w.epsn = data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16;
	w.steps = 0;
	rx_space_init(&w.s, w.epsn);
	data += 4;
	size -= 4;
	for (int op = 0; op < OPS_MAX && size >= 4; op++, data += 4, size -= 4) {
		call(&w, data[0], data[1], (uint16_t)(data[2] | data[3] << 8));
		must_agree(&w);
	}
	do_look(&w, 0);
	do_drop(&w);
	must(pool_lent_bytes(&w.pool) == 0);
	pool_fini(&w.pool);
	return 0;
}
