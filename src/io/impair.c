/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet on its way in passes three stages: it is spoiled (dropped, corrupted, doubled, marked to
 * come late), it waits (delay, jitter, rate) in a heap ordered by release time, and it is handed
 * out. A packet marked to come late then steps aside for some that follow.
 *
 * A packet that does not wait is passed on without a copy. One that waits is copied into a cell of
 * a pool whose size is fixed at open; a cell that was handed out is free again at the next call.
 * The free stack, the heap, `late` and `lent` together hold each cell once.
 */
#include "base/quantity.h"
#include "io/impair.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "space/space.h"

enum {
	CELL_BYTES_MAX = 9216, /* of payload; longer packets pass unless they would have to wait */
	LATE_MAX = 64,         /* packets that stepped aside at one time */
	LATE_PACKETS_MAX = 8,  /* later packets that overtake one */
	LATE_NS_MAX = 1000000,
	BURST_SILENCE_NS = 10000000,
	BURST_MAX = 256,
	BURST_DROPPED_MAX = 1000000,
	TURNS_MAX = 64, /* calls of the lower io in one call */
	LIMIT_DEFAULT = 8192,
	LIMIT_MAX = 65536,
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

struct impair {
	struct io io;
	struct io *lower;
	struct io_counters *counters;
	struct impair_config cfg;
	struct prng prng;
	uint64_t order;
	bool in_burst;     /* with cfg.burst: the last packet was dropped */
	uint64_t burst_ns; /* and when it came */
	uint64_t busy_ns;  /* when the link of that rate is free again */

	struct cell *cells; /* [limit] */
	uint32_t *unused;   /* stack */
	uint32_t unused_count;
	uint32_t *heap; /* by release time, then order */
	uint32_t heap_count;
	uint32_t late[LATE_MAX]; /* in order of stepping aside; release_ns is the latest time */
	uint32_t late_count;
	uint32_t lent[BURST_MAX];
	uint32_t lent_count;
	struct pkt in[BURST_MAX];
	struct flow marked[BURST_MAX]; /* of those not copied, by their place in the burst */
};

static const struct io_ops impair_ops;

/* ---- the specification ---- */

static bool parse_quantity(const char *text, const struct quantity_form *form, uint64_t max, uint64_t *out)
{
	uint64_t v;

	if (quantity_parse(text, strlen(text), form, &v) || v > max)
		return false;
	*out = v;
	return true;
}

static bool parse_probability(const char *text, void *out)
{
	static const struct quantity_form form = {.units = quantity_shares, .exponent = 18, .flags = QUANTITY_NEAREST};
	uint64_t v;

	if (!parse_quantity(text, &form, UINT64_C(1000000000000000000), &v))
		return false;
	*(double *)out = (double)v / 1e18;
	return true;
}

static bool parse_time(const char *text, void *out)
{
	static const struct quantity_form form = {
		.units = quantity_times, .exponent = 9, .flags = QUANTITY_UNIT | QUANTITY_NEAREST};

	return parse_quantity(text, &form, UINT64_C(60000000000), out);
}

static bool parse_rate(const char *text, void *out)
{
	static const struct quantity_form form = {.units = quantity_rates, .flags = QUANTITY_NEAREST};
	uint64_t v;

	if (!parse_quantity(text, &form, UINT64_C(10000000000000), &v) || v < 1000)
		return false;
	*(uint64_t *)out = v;
	return true;
}

/* Seeds are mostly written in hexadecimal. */
static bool parse_integer(const char *text, uint64_t max, uint64_t *out)
{
	char *end;
	uint64_t v;

	if (text[0] != '0' || (text[1] != 'x' && text[1] != 'X'))
		return parse_quantity(text, &quantity_whole, max, out);
	errno = 0;
	v = strtoull(text, &end, 16);
	if (*end || end == text + 1 || errno || v > max)
		return false;
	*out = v;
	return true;
}

static bool parse_limit(const char *text, void *out)
{
	uint64_t v;

	if (!parse_integer(text, LIMIT_MAX, &v) || v == 0)
		return false;
	*(uint32_t *)out = (uint32_t)v;
	return true;
}

static bool parse_burst(const char *text, void *out)
{
	uint64_t v;

	if (!parse_integer(text, BURST_DROPPED_MAX, &v) || v == 0)
		return false;
	*(uint32_t *)out = (uint32_t)v;
	return true;
}

static bool parse_seed(const char *text, void *out)
{
	return parse_integer(text, UINT64_MAX, out);
}

static const struct key {
	const char *name;
	bool (*parse)(const char *text, void *out);
	size_t offset;
	const char *allowed;
} keys[] = {
#define KEY(name, field, parser, allowed)                                     \
	{                                                                     \
#name, parser, offsetof(struct impair_config, field), allowed \
	}
	KEY(drop, drop, parse_probability, "a probability: 0 to 1, or 0% to 100%"),
	KEY(burst, burst, parse_burst, "packets, 1 to 1000000"),
	KEY(dup, dup, parse_probability, "a probability: 0 to 1, or 0% to 100%"),
	KEY(reorder, reorder, parse_probability, "a probability: 0 to 1, or 0% to 100%"),
	KEY(corrupt, corrupt, parse_probability, "a probability: 0 to 1, or 0% to 100%"),
	KEY(ce, ce, parse_probability, "a probability: 0 to 1, or 0% to 100%"),
	KEY(delay, delay_ns, parse_time, "a time up to 60s with its unit: ns, us, ms or s"),
	KEY(jitter, jitter_ns, parse_time, "a time up to 60s with its unit: ns, us, ms or s"),
	KEY(rate, rate_bps, parse_rate, "bits a second, 1k to 10T, with k, M, G or T"),
	KEY(limit, limit, parse_limit, "packets, 1 to 65536"),
	KEY(seed, seed, parse_seed, "an unsigned 64-bit integer"),
#undef KEY
};

enum { KEYS = sizeof(keys) / sizeof(keys[0]), TEXT_BYTES_MAX = 511 };

static int parse_item(char *item, struct impair_config *cfg, unsigned *seen, char *why, size_t why_bytes)
{
	char *value = strchr(item, '=');

	if (!value) {
		snprintf(why, why_bytes, "\"%.40s\" is not key=value", item);
		return -EINVAL;
	}
	*value++ = '\0';
	for (unsigned k = 0; k < KEYS; k++) {
		if (strcmp(item, keys[k].name) != 0)
			continue;
		if (*seen & 1u << k) {
			snprintf(why, why_bytes, "%s is given twice", item);
			return -EINVAL;
		}
		*seen |= 1u << k;
		if (keys[k].parse(value, (uint8_t *)cfg + keys[k].offset))
			return 0;
		snprintf(why, why_bytes, "%s=%.40s: must be %s", item, value, keys[k].allowed);
		return -EINVAL;
	}

	int n = snprintf(why, why_bytes, "\"%.40s\" is not a key; the keys are", item);

	for (unsigned k = 0; k < KEYS && n >= 0 && (size_t)n < why_bytes; k++)
		n += snprintf(why + n, why_bytes - (size_t)n, "%s %s", k ? "," : "", keys[k].name);
	return -EINVAL;
}

int impair_parse(const char *text, struct impair_config *cfg, char *why, size_t why_bytes)
{
	struct impair_config c = {.limit = LIMIT_DEFAULT, .seed = 1};
	char copy[TEXT_BYTES_MAX + 1];
	unsigned seen = 0;
	size_t len = strlen(text);

	if (len > TEXT_BYTES_MAX) {
		snprintf(why, why_bytes, "the text has %zu bytes; at most %d are allowed", len, TEXT_BYTES_MAX);
		return -EINVAL;
	}
	memcpy(copy, text, len + 1);

	char *rest = len ? copy : NULL;

	while (rest) {
		char *item = strsep(&rest, ",");
		int err = parse_item(item, &c, &seen, why, why_bytes);

		if (err < 0)
			return err;
	}
	*cfg = c;
	return 0;
}

/* ---- cells and their heap ---- */

static bool cell_before(const struct impair *im, uint32_t a, uint32_t b)
{
	const struct cell *x = &im->cells[a];
	const struct cell *y = &im->cells[b];

	return x->release_ns != y->release_ns ? x->release_ns < y->release_ns : x->order < y->order;
}

static void heap_push(struct impair *im, uint32_t cell)
{
	uint32_t i = im->heap_count++;

	for (; i && cell_before(im, cell, im->heap[(i - 1) / 2]); i = (i - 1) / 2)
		im->heap[i] = im->heap[(i - 1) / 2];
	im->heap[i] = cell;
}

static uint32_t heap_pop(struct impair *im)
{
	uint32_t top = im->heap[0];
	uint32_t last = im->heap[--im->heap_count];
	uint32_t i = 0;

	for (uint32_t child; (child = 2 * i + 1) < im->heap_count; i = child) {
		if (child + 1 < im->heap_count && cell_before(im, im->heap[child + 1], im->heap[child]))
			child++;
		if (!cell_before(im, im->heap[child], last))
			break;
		im->heap[i] = im->heap[child];
	}
	im->heap[i] = last;
	return top;
}

/* Copies a packet into a cell; -1 and counted where there is no room. */
static int64_t cell_take(struct impair *im, const struct pkt *p, uint64_t release_ns, uint32_t late)
{
	if (!im->unused_count || p->len > CELL_BYTES_MAX) {
		im->counters->impair_overflow++;
		return -1;
	}

	uint32_t i = im->unused[--im->unused_count];
	struct cell *c = &im->cells[i];

	c->release_ns = release_ns;
	c->order = im->order++;
	c->flow = *p->flow;
	c->len = p->len;
	c->late = late;
	memcpy(c->data, p->data, p->len);
	return i;
}

/* ---- the way out ---- */

struct burst {
	struct pkt *pkts;
	size_t n;
	size_t max;
};

static void lend(struct impair *im, struct burst *b, uint32_t i)
{
	struct cell *c = &im->cells[i];

	assert(b->n < b->max && im->lent_count < BURST_MAX);
	b->pkts[b->n++] = (struct pkt){.data = c->data, .flow = &c->flow, .len = c->len, .train = 1};
	im->lent[im->lent_count++] = i;
}

/* Hands out those whose turn has come, by packets passed or by time. */
static void lend_late(struct impair *im, struct burst *b, uint64_t now_ns)
{
	uint32_t kept = 0;

	for (uint32_t k = 0; k < im->late_count; k++) {
		struct cell *c = &im->cells[im->late[k]];

		if ((c->late == 0 || c->release_ns <= now_ns) && b->n < b->max)
			lend(im, b, im->late[k]);
		else
			im->late[kept++] = im->late[k];
	}
	im->late_count = kept;
}

/* A packet went out: those that stepped aside for it have one fewer to wait for. */
static void passed(struct impair *im, struct burst *b, uint64_t now_ns)
{
	for (uint32_t k = 0; k < im->late_count; k++)
		if (im->cells[im->late[k]].late)
			im->cells[im->late[k]].late--;
	lend_late(im, b, now_ns);
}

/* True: the cell has stepped aside. */
static bool step_aside(struct impair *im, uint32_t i, uint64_t now_ns)
{
	if (im->late_count == LATE_MAX)
		return false;
	im->cells[i].release_ns = now_ns + LATE_NS_MAX;
	im->late[im->late_count++] = i;
	im->counters->impair_reordered++;
	return true;
}

static void release_due(struct impair *im, struct burst *b, uint64_t now_ns)
{
	while (b->n < b->max && im->heap_count && im->cells[im->heap[0]].release_ns <= now_ns) {
		uint32_t i = heap_pop(im);

		if (im->cells[i].late && step_aside(im, i, now_ns))
			continue;
		lend(im, b, i);
		passed(im, b, now_ns);
	}
}

/* ---- the way in ---- */

struct dice {
	bool drop, dup, reorder, corrupt, ce;
	uint32_t late;
	uint64_t jitter;
	uint64_t bit;
};

static double uniform(struct impair *im)
{
	return (double)(prng_next(&im->prng) >> 11) * 0x1p-53;
}

/*
 * A burst ends with each packet by 1 / burst, and begins so seldom that `drop` of all packets are in one. A silence
 * ends it, too: a sender that sends once a second would otherwise wait for as many seconds as the burst has packets.
 */
static bool is_dropped(struct impair *im, uint64_t now_ns)
{
	double u = uniform(im), share = im->cfg.drop, length = im->cfg.burst;

	if (length <= 1 || share >= 1)
		return u < share;
	im->in_burst = im->in_burst && now_ns < im->burst_ns + BURST_SILENCE_NS;
	im->burst_ns = now_ns;
	im->in_burst = im->in_burst ? u >= 1 / length : u < share / (1 - share) / length;
	return im->in_burst;
}

/* Draws eight numbers for every packet. */
static struct dice throw(struct impair * im, uint64_t now_ns)
{
	const struct impair_config *c = &im->cfg;
	struct dice d;

	d.drop = is_dropped(im, now_ns);
	d.dup = uniform(im) < c->dup;
	d.reorder = uniform(im) < c->reorder;
	d.corrupt = uniform(im) < c->corrupt;
	d.late = 1 + (uint32_t)(uniform(im) * LATE_PACKETS_MAX);
	d.jitter = (uint64_t)(uniform(im) * (double)c->jitter_ns);
	d.bit = prng_next(&im->prng);
	d.ce = uniform(im) < c->ce;
	return d;
}

static uint64_t release_time(struct impair *im, uint32_t len, uint64_t jitter, uint64_t now_ns)
{
	uint64_t at = now_ns;

	if (im->cfg.rate_bps) {
		uint64_t start = im->busy_ns > now_ns ? im->busy_ns : now_ns;

		im->busy_ns = start + (uint64_t)((double)len * 8e9 / (double)im->cfg.rate_bps);
		at = im->busy_ns;
	}
	return at + im->cfg.delay_ns + jitter;
}

static void wait_in_heap(struct impair *im, const struct pkt *p, uint64_t release_ns, uint32_t late)
{
	int64_t i = cell_take(im, p, release_ns, late);

	if (i >= 0)
		heap_push(im, (uint32_t)i);
}

static void take_in(struct impair *im, struct burst *b, struct pkt *p, uint64_t now_ns)
{
	struct dice d = throw(im, now_ns);
	uint32_t late = d.reorder ? d.late : 0;
	uint8_t ecn = p->flow->tos & ECN_MASK;
	struct flow marked;

	if (d.drop) {
		im->counters->impair_dropped++;
		return;
	}
	if (d.corrupt && p->len) {
		uint64_t bit = d.bit % ((uint64_t)p->len * 8);

		p->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		im->counters->impair_corrupted++;
	}
	/* The packets of a datagram share a flow, so a marked one gets its own. */
	if (d.ce && ecn != ECN_NOT_ECT && ecn != ECN_CE) {
		marked = *p->flow;
		marked.tos |= ECN_CE;
		p->flow = &marked;
		im->counters->impair_marked++;
	}

	uint64_t at = release_time(im, p->len, d.jitter, now_ns);
	/* A packet that waits also waits behind those that are due and found no room in this burst. */
	bool waits = at > now_ns || b->n == b->max || (im->heap_count && im->cells[im->heap[0]].release_ns <= now_ns);

	if (waits) {
		wait_in_heap(im, p, at, late);
	} else {
		int64_t i = -1;

		if (late && im->late_count < LATE_MAX)
			i = cell_take(im, p, now_ns, late);
		if (i >= 0) {
			step_aside(im, (uint32_t)i, now_ns);
		} else if (!late || im->late_count == LATE_MAX) {
			struct pkt *out = &b->pkts[b->n];

			*out = *p;
			if (p->flow == &marked) {
				im->marked[b->n] = marked;
				out->flow = &im->marked[b->n];
			}
			b->n++;
			passed(im, b, now_ns);
		}
	}
	if (d.dup) {
		im->counters->impair_duplicated++;
		wait_in_heap(im, p, at, 0);
		release_due(im, b, now_ns);
	}
}

static bool is_lent_cell(const struct impair *im, const struct pkt *p)
{
	return p->data >= (uint8_t *)im->cells && p->data < (uint8_t *)(im->cells + im->cfg.limit);
}

/* The train of a packet passed on without a copy counts to the end of its coalesced datagram, less
 * the packets that are gone. */
static void count_trains(const struct impair *im, struct burst *b)
{
	for (size_t i = b->n; i-- > 0;) {
		bool joined = i + 1 < b->n && !is_lent_cell(im, &b->pkts[i]) && b->pkts[i].flow == b->pkts[i + 1].flow;

		b->pkts[i].train = joined ? (uint16_t)(b->pkts[i + 1].train + 1) : 1;
	}
}

static size_t impair_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	struct impair *im = (struct impair *)io;
	struct burst b = {.pkts = pkts, .max = max < BURST_MAX ? max : BURST_MAX};
	uint64_t came_ns;

	while (im->lent_count)
		im->unused[im->unused_count++] = im->lent[--im->lent_count];
	lend_late(im, &b, now_ns);
	release_due(im, &b, now_ns);
	/*
	 * Once a packet is passed on without a copy, the lower io must not be called again before
	 * the next call. As long as all its packets are dropped or wait it is called again, until
	 * it returns 0.
	 */
	for (unsigned turns = 0; b.n < b.max && turns < TURNS_MAX; turns++) {
		size_t n = io_recv(im->lower, im->in, b.max - b.n, now_ns);

		/* No packet has come later than this. */
		came_ns = n && im->cfg.clock.now_ns ? im->cfg.clock.now_ns(im->cfg.clock.ctx) : now_ns;
		for (size_t i = 0; i < n; i++)
			take_in(im, &b, &im->in[i], came_ns > now_ns ? came_ns : now_ns);
		if (!n || b.n)
			break;
	}
	release_due(im, &b, now_ns);
	count_trains(im, &b);
	return b.n;
}

static size_t impair_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	struct impair *im = (struct impair *)io;

	return io_send(im->lower, pkts, n, now_ns);
}

static size_t impair_fds(const struct io *io, int *fds, size_t max)
{
	return io_fds(((const struct impair *)io)->lower, fds, max);
}

static uint64_t impair_deadline_ns(const struct io *io)
{
	const struct impair *im = (const struct impair *)io;
	uint64_t at = io_deadline_ns(im->lower);

	if (im->heap_count && im->cells[im->heap[0]].release_ns < at)
		at = im->cells[im->heap[0]].release_ns;
	for (uint32_t k = 0; k < im->late_count; k++) {
		const struct cell *c = &im->cells[im->late[k]];
		uint64_t its = c->late ? c->release_ns : 0;

		if (its < at)
			at = its;
	}
	return at;
}

static size_t impair_train_max(const struct io *io)
{
	return io_train_max(((const struct impair *)io)->lower);
}

static void impair_flush(struct io *io)
{
	io_flush(((struct impair *)io)->lower);
}

static void impair_free(struct impair *im)
{
	space_put(im->cells, sizeof(*im->cells) * im->cfg.limit);
	space_put(im->unused, sizeof(*im->unused) * im->cfg.limit);
	space_put(im->heap, sizeof(*im->heap) * im->cfg.limit);
	space_put(im, sizeof(*im));
}

static void impair_close(struct io *io)
{
	struct impair *im = (struct impair *)io;

	io_close(im->lower);
	impair_free(im);
}

int impair_open(struct io **io, struct io *lower, const struct impair_config *cfg, struct io_counters *counters)
{
	struct impair *im = space_get(sizeof(*im));

	if (!im)
		return -ENOMEM;
	assert(cfg->limit >= 1 && cfg->limit <= LIMIT_MAX);
	im->io.ops = &impair_ops;
	im->lower = lower;
	im->counters = counters;
	im->cfg = *cfg;
	prng_init(&im->prng, cfg->seed);
	/*
	 * Cells are a stack: a cell that is never needed is never touched, so it takes only address
	 * space.
	 */
	im->cells = space_get(sizeof(*im->cells) * cfg->limit);
	im->unused = space_get(sizeof(*im->unused) * cfg->limit);
	im->heap = space_get(sizeof(*im->heap) * cfg->limit);
	if (!im->cells || !im->unused || !im->heap) {
		impair_free(im);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < cfg->limit; i++)
		im->unused[i] = cfg->limit - 1 - i;
	im->unused_count = cfg->limit;
	*io = &im->io;
	return 0;
}

static const struct io_ops impair_ops = {
	.recv = impair_recv,
	.send = impair_send,
	.fds = impair_fds,
	.deadline_ns = impair_deadline_ns,
	.train_max = impair_train_max,
	.flush = impair_flush,
	.close = impair_close,
};
