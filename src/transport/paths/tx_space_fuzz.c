/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first bytes choose the first PSN, then each three are one call with its arguments; a model that
 * keeps every list as an array does the same and must agree. The calls keep to their contract: only
 * outstanding PSNs are named, only lost ones sent again or hurried.
 */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_input.h"
#include "transport/paths/tx_space.h"

enum { STEP = 3, OPS_MAX = 400, OUTSTANDING_MAX = 700, CHECK_EVERY = 8, LOG = 1024 };

/* ---- memory that can run dry --------------------------------------------------------------------- */

static bool dry;

static void *get(void *ctx, size_t bytes)
{
	void *p = dry ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);

	return p ? memset(p, 0, bytes) : NULL;
}

static void put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

/* ---- the model ------------------------------------------------------------------------------------ */

struct entry {
	uint64_t tx_ns;
	uint32_t item;
	uint32_t order;
	uint16_t bytes;
	uint8_t path;
	uint8_t path_before;
	uint8_t copies;
	uint8_t state;
	bool timed_out;
};

/* PSNs in order; at most OUTSTANDING_MAX. */
struct row {
	uint32_t psn[LOG];
	uint32_t n;
};

struct model {
	uint32_t una, nxt;
	struct entry entry[LOG]; /* by PSN modulo LOG */
	struct row flying[PATHS_MAX];
	struct row again;
	uint32_t sent[PATHS_MAX];
	uint64_t newest[PATHS_MAX];
	uint32_t newest_order[PATHS_MAX];
};

static struct entry *at(struct model *m, uint32_t psn)
{
	return &m->entry[psn % LOG];
}

static uint32_t outstanding(const struct model *m)
{
	return (m->nxt - m->una) & PSN_MASK;
}

static void row_remove(struct row *r, uint32_t psn)
{
	uint32_t i = 0;

	while (i < r->n && r->psn[i] != psn)
		i++;
	must(i < r->n);
	r->n--;
	memmove(r->psn + i, r->psn + i + 1, (r->n - i) * sizeof(r->psn[0]));
}

static void row_append(struct row *r, uint32_t psn)
{
	must(r->n < LOG);
	r->psn[r->n++] = psn;
}

static void model_forget(struct model *m)
{
	m->una = m->nxt;
	m->again.n = 0;
	for (int i = 0; i < PATHS_MAX; i++) {
		m->flying[i].n = 0;
		m->sent[i] = 0;
		m->newest[i] = 0;
		m->newest_order[i] = 0;
	}
}

static void model_fly(struct model *m, uint32_t psn, uint8_t path, uint64_t now_ns)
{
	struct entry *e = at(m, psn);

	e->path = path;
	e->tx_ns = now_ns;
	e->order = m->sent[path]++;
	e->state = TX_FLYING;
	row_append(&m->flying[path], psn);
}

static void model_leave(struct model *m, uint32_t psn)
{
	struct entry *e = at(m, psn);

	if (e->state == TX_FLYING)
		row_remove(&m->flying[e->path], psn);
	else if (e->state == TX_LOST)
		row_remove(&m->again, psn);
}

static void model_ack(struct model *m, uint32_t psn, const uint64_t *min_rtt_ns, uint64_t now_ns, struct tx_news *news)
{
	struct entry *e = at(m, psn);
	struct tx_path_news *n = &news->path[e->path];

	if (e->state == TX_ACKED)
		return;
	news->packets++;
	if (e->copies > 1 && min_rtt_ns && min_rtt_ns[e->path] != UINT64_MAX &&
	    now_ns - e->tx_ns < min_rtt_ns[e->path] / 2) {
		news->spurious++;
		if (!e->timed_out)
			news->late_paths |= 1u << e->path_before;
	}
	if (e->state == TX_FLYING) {
		bool last_meant = min_rtt_ns && now_ns - e->tx_ns >= min_rtt_ns[e->path];

		news->paths |= 1u << e->path;
		n->bytes += e->bytes;
		n->packets++;
		if (e->copies == 1 && e->tx_ns > n->newest_tx_ns)
			n->newest_tx_ns = e->tx_ns;
		n->sure += e->copies == 1 || last_meant;
		if ((e->copies == 1 || last_meant) && e->order >= m->newest_order[e->path]) {
			m->newest_order[e->path] = e->order + 1;
			m->newest[e->path] = e->tx_ns;
		}
	}
	model_leave(m, psn);
	e->state = TX_ACKED;
}

/* ---- agreement ------------------------------------------------------------------------------------ */

static void must_list(const struct tx_space *s, uint32_t head, uint32_t tail, const struct row *row)
{
	uint32_t prev = TX_NIL, psn = head;

	for (uint32_t i = 0; i < row->n; i++) {
		must(psn == row->psn[i]);
		must(tx_record(s, psn)->prev == prev);
		prev = psn;
		psn = tx_record(s, psn)->next;
	}
	must(psn == TX_NIL);
	must(tail == prev);
}

static void must_agree(const struct tx_space *s, struct model *m)
{
	uint32_t flying = 0;

	must(s->una == m->una);
	must(s->nxt == m->nxt);
	must(tx_outstanding(s) == outstanding(m));
	must(!tx_is_outstanding(s, m->nxt));
	must(!tx_is_outstanding(s, (m->una - 1) & PSN_MASK));
	must(s->lost == m->again.n);
	if (!s->ring) {
		must(!outstanding(m) && !s->flying);
		return;
	}
	must(s->size >= outstanding(m) + tx_space_room(s) && outstanding(m) + tx_space_room(s) <= TX_WINDOW_MAX);
	must_list(s, s->again_head, s->again_tail, &m->again);
	for (int i = 0; i < PATHS_MAX; i++) {
		const struct tx_path *p = &s->ring->paths[i];

		must_list(s, p->head, p->tail, &m->flying[i]);
		must(p->flying == m->flying[i].n);
		must(p->sent == m->sent[i]);
		must(p->newest_tx_ns == m->newest[i]);
		must(p->newest_order == m->newest_order[i]);
		flying += p->flying;
	}
	must(s->flying == flying);
	for (uint32_t psn = m->una; psn != m->nxt; psn = psn_add(psn, 1)) {
		const struct tx_record *r = tx_record(s, psn);
		const struct entry *e = at(m, psn);

		must(tx_is_outstanding(s, psn));
		must(r->state == e->state && r->path == e->path && r->copies == e->copies);
		must(r->item == e->item && r->bytes == e->bytes && r->tx_ns == e->tx_ns);
		must(r->order == e->order);
	}
}

static void must_news(const struct tx_news *a, const struct tx_news *b)
{
	must(a->paths == b->paths && a->packets == b->packets && a->spurious == b->spurious);
	must(a->late_paths == b->late_paths);
	for (int i = 0; i < PATHS_MAX; i++) {
		const struct tx_path_news *p = &a->path[i], *q = &b->path[i];

		if (!(a->paths & 1u << i))
			continue;
		must(p->bytes == q->bytes && p->packets == q->packets && p->sure == q->sure);
		must(p->newest_tx_ns == q->newest_tx_ns);
	}
}

/* ---- calls ------------------------------------------------------------------------------------------ */

struct world {
	struct pool pool;
	struct tx_space s;
	struct model m;
	uint64_t now_ns;
	uint64_t min_rtt_ns[PATHS_MAX];
};

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* As many at once as there is room for. */
static void do_send(struct world *w, uint32_t count, uint8_t path, uint16_t bytes)
{
	while (count && outstanding(&w->m) < OUTSTANDING_MAX) {
		uint32_t n, item = w->m.nxt * 7u;

		if (!tx_space_reserve(&w->s, &w->pool)) {
			must(dry);
			return;
		}
		n = least(least(count, tx_space_room(&w->s)), OUTSTANDING_MAX - outstanding(&w->m));
		must(n);
		tx_space_sent(&w->s,
			      &(struct tx_run){.item = item, .step = STEP, .count = n, .bytes = bytes, .path = path},
			      w->now_ns);
		for (count -= n; n; n--, item += STEP) {
			uint32_t psn = w->m.nxt;

			*at(&w->m, psn) = (struct entry){.item = item, .bytes = bytes, .copies = 1};
			model_fly(&w->m, psn, path, w->now_ns);
			w->m.nxt = psn_add(psn, 1);
		}
	}
}

static void do_ack_to(struct world *w, uint32_t psn, const uint64_t *min_rtt_ns)
{
	struct tx_news news = {0}, want = {0};

	memset(news.path, 0xee, sizeof(news.path)); /* follows from `paths` */
	tx_space_ack_to(&w->s, &w->pool, psn, min_rtt_ns, w->now_ns, &news);
	do {
		model_ack(&w->m, w->m.una, min_rtt_ns, w->now_ns, &want);
		w->m.una = psn_add(w->m.una, 1);
	} while (w->m.una != psn_add(psn, 1));
	must_news(&news, &want);
	if (w->m.una == w->m.nxt) {
		must(!w->s.used && tx_space_room(&w->s) <= TX_CHUNK);
		model_forget(&w->m);
	}
}

static void do_ack_some(struct world *w, uint32_t psn, uint32_t count, const uint64_t *min_rtt_ns)
{
	struct tx_news news = {0}, want = {0};

	memset(news.path, 0xee, sizeof(news.path));
	for (; count && psn != w->m.nxt; count--, psn = psn_add(psn, 1)) {
		tx_space_ack_one(&w->s, psn, min_rtt_ns, w->now_ns, &news);
		model_ack(&w->m, psn, min_rtt_ns, w->now_ns, &want);
	}
	must_news(&news, &want);
}

/* By the clock alone, every fourth one. */
static void do_lose(struct world *w, uint32_t psn)
{
	tx_space_lose(&w->s, psn);
	if (at(&w->m, psn)->state == TX_LOST)
		return;
	model_leave(&w->m, psn);
	at(&w->m, psn)->state = TX_LOST;
	at(&w->m, psn)->timed_out = psn % 4 == 0;
	tx_record(&w->s, psn)->timed_out = psn % 4 == 0;
	row_append(&w->m.again, psn);
}

static void do_resend(struct world *w, uint32_t psn, uint8_t path)
{
	struct entry *e = at(&w->m, psn);

	if (e->state != TX_LOST)
		return;
	tx_record(&w->s, psn)->probe = true;
	tx_space_resent(&w->s, psn, path, w->now_ns);
	must(!tx_record(&w->s, psn)->probe);
	model_leave(&w->m, psn);
	e->path_before = e->path;
	e->copies += e->copies < UINT8_MAX;
	model_fly(&w->m, psn, path, w->now_ns);
}

static void do_hurry(struct world *w, uint32_t psn)
{
	struct row *again = &w->m.again;

	if (at(&w->m, psn)->state != TX_LOST)
		return;
	tx_space_hurry(&w->s, psn);
	row_remove(again, psn);
	memmove(again->psn + 1, again->psn, again->n++ * sizeof(again->psn[0]));
	again->psn[0] = psn;
}

static void call(struct world *w, uint8_t op, uint8_t a, uint8_t b)
{
	uint32_t n = outstanding(&w->m);
	uint32_t psn = psn_add(w->m.una, n ? (a | (b & 3u) << 8) % n : 0);
	uint8_t path = b >> 4;
	const uint64_t *min_rtt_ns = op & 0x80 ? w->min_rtt_ns : NULL;

	switch (op & 15) {
	case 0:
	case 1:
	case 2:
	case 3: do_send(w, a % 64 + 1u, path, (uint16_t)(b * 16 + 20)); break;
	case 4: w->now_ns += (uint64_t)a << (b & 15); break;
	case 5: dry = a & 1; break;
	case 6: w->min_rtt_ns[path] = a == 255 ? UINT64_MAX : (uint64_t)a << 4; break;
	case 7:
		if (b == 255) {
			tx_space_drop(&w->s, &w->pool);
			model_forget(&w->m);
		}
		break;
	default:
		if (!n)
			break;
		switch (op & 7) {
		case 0: do_ack_to(w, psn, min_rtt_ns); break;
		case 1: do_ack_some(w, psn, b >> 2, min_rtt_ns); break;
		case 2: do_lose(w, psn); break;
		case 3:
			for (uint32_t i = 0; i < b >> 2 && psn != w->m.nxt; i++, psn = psn_add(psn, 1))
				do_lose(w, psn);
			break;
		case 4: do_resend(w, psn, path); break;
		case 5:
			for (uint32_t i = 0; i < a && w->m.again.n; i++)
				do_resend(w, w->m.again.psn[0], path);
			break;
		case 6: do_hurry(w, psn); break;
		default:
			if (w->m.again.n)
				do_hurry(w, w->m.again.psn[a % w->m.again.n]);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	static const struct alloc alloc = {get, put, NULL};

	if (size < 3)
		return 0;
	memset(&w, 0, sizeof(w));
	dry = false;
	pool_init(&w.pool, &alloc);
	w.now_ns = 1000;
	w.m.una = w.m.nxt = data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16;
	tx_space_init(&w.s, w.m.una);
	data += 3;
	size -= 3;
	for (int op = 0; op < OPS_MAX && size >= 3; op++, data += 3, size -= 3) {
		call(&w, data[0], data[1], data[2]);
		if (op % CHECK_EVERY == 0)
			must_agree(&w.s, &w.m);
	}
	must_agree(&w.s, &w.m);
	if (outstanding(&w.m))
		do_ack_to(&w, (w.m.nxt - 1) & PSN_MASK, NULL);
	tx_space_drop(&w.s, &w.pool);
	must(w.s.una == w.m.nxt && w.s.nxt == w.m.nxt);
	must(pool_lent_bytes(&w.pool) == 0);
	pool_fini(&w.pool);
	return 0;
}
