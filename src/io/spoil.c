/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet on its way passes three stages: it is spoiled (dropped, corrupted, doubled, marked to come late), it waits
 * (delay, rate) in a heap ordered by release time, and it is handed on. A packet marked to come late then steps aside for
 * some that follow.
 *
 * A packet that does not wait is passed on without a copy. One that waits is copied into a cell of a pool whose size is
 * fixed at open; a cell that was handed out is free again at the next call. The free stack, the heap, `late` and `lent` of
 * a way together hold each of its cells once.
 */
#include "io/spoil.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "faults/faults.h"
#include "space/space.h"

enum {
	CELL_BYTES_MAX = 9216, /* of payload; longer packets pass unless they would have to wait */
	LATE_MAX = 64,         /* packets that stepped aside at one time */
	LATE_NS_MAX = 1000000,
	BURST_MAX = 256,
	TURNS_MAX = 64, /* calls of the lower io in one call */
	RETRY_NS = 200000,
	ECN_MASK = 3, /* of the TOS, RFC 3168 s5 */
	ECN_NOT_ECT = 0,
	ECN_CE = 3
};

struct cell {
	uint64_t release_ns;
	uint64_t order; /* of arrival: ties leave in it */
	struct flow flow;
	uint32_t len;
	uint32_t late; /* later packets that must still pass; 0: in its turn */
	uint8_t data[CELL_BYTES_MAX];
};

/* One direction. */
struct way {
	bool out;
	uint64_t order;
	uint64_t busy_ns;   /* when the link of the engine's rate is free again */
	struct cell *cells; /* [limit] */
	uint32_t *unused;   /* stack */
	uint32_t unused_count;
	uint32_t *heap; /* by release time, then order */
	uint32_t heap_count;
	uint32_t late[LATE_MAX]; /* in order of stepping aside; release_ns is the latest time */
	uint32_t late_count;
	uint32_t lent[BURST_MAX];
	uint32_t lent_count;
	struct flow now_marked;        /* of the packet in hand */
	struct flow marked[BURST_MAX]; /* of those not copied, by their place in the burst */
};

enum { IN, OUT, WAYS };

struct spoil {
	struct io io;
	struct io *lower;
	struct io_counters *counters;
	struct spoil_config cfg;
	struct way ways[WAYS];
	struct pkt in[BURST_MAX];
};

static const struct io_ops spoil_ops, stream_ops;

/* ---- cells and their heap ---- */

static bool cell_before(const struct way *w, uint32_t a, uint32_t b)
{
	const struct cell *x = &w->cells[a];
	const struct cell *y = &w->cells[b];

	return x->release_ns != y->release_ns ? x->release_ns < y->release_ns : x->order < y->order;
}

static void heap_push(struct way *w, uint32_t cell)
{
	uint32_t i = w->heap_count++;

	for (; i && cell_before(w, cell, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = cell;
}

static uint32_t heap_pop(struct way *w)
{
	uint32_t top = w->heap[0];
	uint32_t last = w->heap[--w->heap_count];
	uint32_t i = 0;

	for (uint32_t child; (child = 2 * i + 1) < w->heap_count; i = child) {
		if (child + 1 < w->heap_count && cell_before(w, w->heap[child + 1], w->heap[child]))
			child++;
		if (!cell_before(w, w->heap[child], last))
			break;
		w->heap[i] = w->heap[child];
	}
	w->heap[i] = last;
	return top;
}

/* Copies a packet into a cell; -1 and counted where there is no room. */
static int64_t cell_take(struct spoil *s, struct way *w, const struct pkt *p, uint64_t release_ns, uint32_t late)
{
	if (!w->unused_count || p->len > CELL_BYTES_MAX) {
		s->counters->impair_overflow++;
		return -1;
	}

	uint32_t i = w->unused[--w->unused_count];
	struct cell *c = &w->cells[i];

	c->release_ns = release_ns;
	c->order = w->order++;
	c->flow = *p->flow;
	c->len = p->len;
	c->late = late;
	memcpy(c->data, p->data, p->len);
	return i;
}

static void give_back(struct way *w)
{
	while (w->lent_count)
		w->unused[w->unused_count++] = w->lent[--w->lent_count];
}

/* ---- the way on ---- */

struct burst {
	struct pkt *pkts;
	size_t n;
	size_t max;
};

static void lend(struct way *w, struct burst *b, uint32_t i)
{
	struct cell *c = &w->cells[i];

	assert(b->n < b->max && w->lent_count < BURST_MAX);
	b->pkts[b->n++] = (struct pkt){.data = c->data, .flow = &c->flow, .len = c->len, .train = 1};
	w->lent[w->lent_count++] = i;
}

/* Hands out those whose turn has come, by packets passed or by time. */
static void lend_late(struct way *w, struct burst *b, uint64_t now_ns)
{
	uint32_t kept = 0;

	for (uint32_t k = 0; k < w->late_count; k++) {
		struct cell *c = &w->cells[w->late[k]];

		if ((c->late == 0 || c->release_ns <= now_ns) && b->n < b->max)
			lend(w, b, w->late[k]);
		else
			w->late[kept++] = w->late[k];
	}
	w->late_count = kept;
}

/* A packet went on: those that stepped aside for it have one fewer to wait for. */
static void passed(struct way *w, struct burst *b, uint64_t now_ns)
{
	for (uint32_t k = 0; k < w->late_count; k++)
		if (w->cells[w->late[k]].late)
			w->cells[w->late[k]].late--;
	lend_late(w, b, now_ns);
}

/* True: the cell has stepped aside. */
static bool step_aside(struct spoil *s, struct way *w, uint32_t i, uint64_t now_ns)
{
	if (w->late_count == LATE_MAX)
		return false;
	w->cells[i].release_ns = now_ns + LATE_NS_MAX;
	w->late[w->late_count++] = i;
	s->counters->impair_reordered++;
	return true;
}

static bool is_due(const struct way *w, uint64_t now_ns)
{
	return w->heap_count && w->cells[w->heap[0]].release_ns <= now_ns;
}

static void release_due(struct spoil *s, struct way *w, struct burst *b, uint64_t now_ns)
{
	while (b->n < b->max && is_due(w, now_ns)) {
		uint32_t i = heap_pop(w);

		if (w->cells[i].late && step_aside(s, w, i, now_ns))
			continue;
		lend(w, b, i);
		passed(w, b, now_ns);
	}
}

/* ---- what is done to one ---- */

static uint64_t release_time(struct way *w, uint32_t len, uint64_t delay_ns, uint64_t rate_bps, uint64_t now_ns)
{
	uint64_t at = now_ns;

	if (rate_bps) {
		uint64_t start = w->busy_ns > now_ns ? w->busy_ns : now_ns;

		w->busy_ns = start + (uint64_t)((double)len * 8e9 / (double)rate_bps);
		at = w->busy_ns;
	}
	return at + delay_ns;
}

static void wait_in_heap(struct spoil *s, struct way *w, const struct pkt *p, uint64_t release_ns, uint32_t late)
{
	int64_t i = cell_take(s, w, p, release_ns, late);

	if (i >= 0)
		heap_push(w, (uint32_t)i);
}

/* False: the packet goes no further. */
static bool touch(struct spoil *s, struct pkt *p, bool in_memory, struct flow *marked, struct fault_verdict *v)
{
	uint8_t ecn = p->flow->tos & ECN_MASK;

	if (v->drop) {
		s->counters->impair_dropped++;
		return false;
	}
	if (v->corrupt && p->len) {
		uint64_t bit = v->bit % ((uint64_t)p->len * 8);

		s->counters->impair_corrupted++;
		if (in_memory)
			return false;
		p->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	if (in_memory) {
		*v = (struct fault_verdict){0};
		return true;
	}
	/* The packets of a datagram share a flow, so a marked one gets its own. */
	if (v->mark && ecn != ECN_NOT_ECT && ecn != ECN_CE) {
		*marked = *p->flow;
		marked->tos |= ECN_CE;
		p->flow = marked;
		s->counters->impair_marked++;
	}
	return true;
}

static void pass_on(struct spoil *s, struct way *w, struct burst *b, const struct pkt *p, uint32_t late,
		    uint64_t now_ns)
{
	int64_t i = -1;

	if (late && w->late_count < LATE_MAX)
		i = cell_take(s, w, p, now_ns, late);
	if (i >= 0) {
		step_aside(s, w, (uint32_t)i, now_ns);
	} else if (!late || w->late_count == LATE_MAX) {
		struct pkt *to = &b->pkts[b->n];

		*to = *p;
		/* One that was marked has a flow of its own, which must last as long as the burst. */
		if (p->flow == &w->now_marked) {
			w->marked[b->n] = w->now_marked;
			to->flow = &w->marked[b->n];
		}
		b->n++;
		passed(w, b, now_ns);
	}
}

static void take_in(struct spoil *s, struct way *w, struct burst *b, struct pkt *p, uint64_t rate_bps, uint64_t now_ns)
{
	bool in_memory = p->far_bytes || (!w->out && p->flow->neighbour);
	struct fault_verdict v;
	uint64_t at;

	faults_packet(s->cfg.faults, p, w->out, now_ns, &v);
	if (!touch(s, p, in_memory, &w->now_marked, &v))
		return;
	at = release_time(w, p->len, v.delay_ns, in_memory ? 0 : rate_bps, now_ns);
	/* A packet that waits also waits behind those that are due and found no room in this burst. */
	if (at > now_ns || b->n == b->max || is_due(w, now_ns))
		wait_in_heap(s, w, p, at, v.late);
	else
		pass_on(s, w, b, p, v.late, now_ns);
	if (v.doubled) {
		s->counters->impair_duplicated++;
		wait_in_heap(s, w, p, at, 0);
		release_due(s, w, b, now_ns);
	}
}

static bool is_cell(const struct spoil *s, const struct way *w, const struct pkt *p)
{
	return p->data >= (uint8_t *)w->cells && p->data < (uint8_t *)(w->cells + s->cfg.limit);
}

/*
 * The train of a packet passed on without a copy counts to the end of its datagram, less the packets that are gone. On
 * the way out a train is contiguous: one that has lost a packet is two.
 */
static void count_trains(const struct spoil *s, const struct way *w, struct burst *b)
{
	for (size_t i = b->n; i-- > 0;) {
		struct pkt *p = &b->pkts[i];
		bool joined = i + 1 < b->n && !is_cell(s, w, p) && p->flow == p[1].flow &&
			      (!w->out || (p->train > 1 && p->data + p->len == p[1].data));

		p->train = joined ? (uint16_t)(p[1].train + 1) : 1;
	}
}

/* ---- in ---- */

static void send_due(struct spoil *s, uint64_t now_ns);

static size_t spoil_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	struct spoil *s = (struct spoil *)io;
	struct way *w = &s->ways[IN];
	struct burst b = {.pkts = pkts, .max = max < BURST_MAX ? max : BURST_MAX};
	uint64_t rate_bps = faults_rate_bps(s->cfg.faults, false), came_ns;

	send_due(s, now_ns);
	give_back(w);
	lend_late(w, &b, now_ns);
	release_due(s, w, &b, now_ns);
	/*
	 * Once a packet is passed on without a copy, the lower io must not be called again before
	 * the next call. As long as all its packets are dropped or wait it is called again, until
	 * it returns 0.
	 */
	for (unsigned turns = 0; b.n < b.max && turns < TURNS_MAX; turns++) {
		size_t n = io_recv(s->lower, s->in, b.max - b.n, now_ns);

		/* No packet has come later than this. */
		came_ns = n && s->cfg.clock.now_ns ? s->cfg.clock.now_ns(s->cfg.clock.ctx) : now_ns;
		for (size_t i = 0; i < n; i++)
			take_in(s, w, &b, &s->in[i], rate_bps, came_ns > now_ns ? came_ns : now_ns);
		if (!n || b.n)
			break;
	}
	release_due(s, w, &b, now_ns);
	count_trains(s, w, &b);
	return b.n;
}

/* ---- out ---- */

/* Whatever the kernel has no room for now waits, and nobody above is told. */
static void send_burst(struct spoil *s, struct burst *b, uint64_t now_ns)
{
	struct way *w = &s->ways[OUT];
	size_t sent;

	count_trains(s, w, b);
	sent = b->n ? io_send(s->lower, b->pkts, b->n, now_ns) : 0;
	for (size_t i = sent; i < b->n; i++)
		wait_in_heap(s, w, &b->pkts[i], now_ns + RETRY_NS, 0);
	give_back(w);
}

static void send_due(struct spoil *s, uint64_t now_ns)
{
	struct way *w = &s->ways[OUT];
	struct pkt pkts[BURST_MAX];
	struct burst b = {.pkts = pkts, .max = BURST_MAX};

	if (!w->late_count && !is_due(w, now_ns))
		return;
	lend_late(w, &b, now_ns);
	release_due(s, w, &b, now_ns);
	send_burst(s, &b, now_ns);
}

static size_t spoil_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	struct spoil *s = (struct spoil *)io;
	struct pkt out[BURST_MAX];
	uint64_t rate_bps = faults_rate_bps(s->cfg.faults, true);

	if (!faults_sees_out(s->cfg.faults))
		return io_send(s->lower, pkts, n, now_ns);
	send_due(s, now_ns);
	for (size_t at = 0; at < n;) {
		struct burst b = {.pkts = out, .max = BURST_MAX};

		for (; at < n && b.n < b.max; at++) {
			struct pkt p = pkts[at];

			take_in(s, &s->ways[OUT], &b, &p, rate_bps, now_ns);
		}
		send_burst(s, &b, now_ns);
	}
	return n;
}

/* ---- the rest ---- */

static size_t spoil_fds(const struct io *io, int *fds, size_t max)
{
	return io_fds(((const struct spoil *)io)->lower, fds, max);
}

static uint64_t way_deadline_ns(const struct way *w)
{
	uint64_t at = w->heap_count ? w->cells[w->heap[0]].release_ns : UINT64_MAX;

	for (uint32_t k = 0; k < w->late_count; k++) {
		const struct cell *c = &w->cells[w->late[k]];
		uint64_t its = c->late ? c->release_ns : 0;

		if (its < at)
			at = its;
	}
	return at;
}

static uint64_t spoil_deadline_ns(const struct io *io)
{
	const struct spoil *s = (const struct spoil *)io;
	uint64_t at = io_deadline_ns(s->lower);

	for (unsigned i = 0; i < WAYS; i++)
		if (way_deadline_ns(&s->ways[i]) < at)
			at = way_deadline_ns(&s->ways[i]);
	return at;
}

static size_t spoil_train_max(const struct io *io)
{
	const struct spoil *s = (const struct spoil *)io;

	return faults_picks_out(s->cfg.faults) ? 1 : io_train_max(s->lower);
}

static void spoil_flush(struct io *io)
{
	io_flush(((struct spoil *)io)->lower);
}

static void way_free(struct way *w, uint32_t limit)
{
	space_put(w->cells, sizeof(*w->cells) * limit);
	space_put(w->unused, sizeof(*w->unused) * limit);
	space_put(w->heap, sizeof(*w->heap) * limit);
}

static void spoil_free(struct spoil *s)
{
	for (unsigned i = 0; i < WAYS; i++)
		way_free(&s->ways[i], s->cfg.limit);
	space_put(s, sizeof(*s));
}

static void spoil_close(struct io *io)
{
	struct spoil *s = (struct spoil *)io;

	io_close(s->lower);
	spoil_free(s);
}

/* Cells are a stack: a cell that is never needed is never touched, so it takes only address space. */
static bool way_init(struct way *w, bool out, uint32_t limit)
{
	w->out = out;
	w->cells = space_get(sizeof(*w->cells) * limit);
	w->unused = space_get(sizeof(*w->unused) * limit);
	w->heap = space_get(sizeof(*w->heap) * limit);
	if (!w->cells || !w->unused || !w->heap)
		return false;
	for (uint32_t i = 0; i < limit; i++)
		w->unused[i] = limit - 1 - i;
	w->unused_count = limit;
	return true;
}

int spoil_open(struct io **io, struct io *lower, const struct spoil_config *cfg, struct io_counters *counters)
{
	struct spoil *s = space_get(sizeof(*s));

	if (!s)
		return -ENOMEM;
	assert(cfg->limit >= 1 && cfg->limit <= FAULT_LIMIT_MAX);
	s->io.ops = cfg->streams ? &stream_ops : &spoil_ops;
	s->lower = lower;
	s->counters = counters;
	s->cfg = *cfg;
	if (!way_init(&s->ways[IN], false, cfg->limit) || !way_init(&s->ways[OUT], true, cfg->limit)) {
		spoil_free(s);
		return -ENOMEM;
	}
	*io = &s->io;
	return 0;
}

static const struct io_ops spoil_ops = {
	.recv = spoil_recv,
	.send = spoil_send,
	.fds = spoil_fds,
	.deadline_ns = spoil_deadline_ns,
	.train_max = spoil_train_max,
	.flush = spoil_flush,
	.close = spoil_close,
};

/* ---- streams ---- */

static size_t stream_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	struct spoil *s = (struct spoil *)io;

	return faults_stops(s->cfg.faults) ? 0 : io_recv(s->lower, pkts, max, now_ns);
}

static size_t stream_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	struct spoil *s = (struct spoil *)io;

	return faults_stops(s->cfg.faults) ? 0 : io_send(s->lower, pkts, n, now_ns);
}

static uint64_t stream_deadline_ns(const struct io *io)
{
	const struct spoil *s = (const struct spoil *)io;

	return faults_stops(s->cfg.faults) ? UINT64_MAX : io_deadline_ns(s->lower);
}

static size_t stream_train_max(const struct io *io)
{
	return io_train_max(((const struct spoil *)io)->lower);
}

static const struct io_ops stream_ops = {
	.recv = stream_recv,
	.send = stream_send,
	.fds = spoil_fds,
	.deadline_ns = stream_deadline_ns,
	.train_max = stream_train_max,
	.flush = spoil_flush,
	.close = spoil_close,
};
