/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allreduce by ring, by halving and doubling, and by a tree. A message's number encodes step and
 * sender; the only state of a host is at most the set of steps that have reached it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "workload/workload_part.h"

static int need_common(const struct workload_params *p, uint64_t bytes_min, struct text_error *err)
{
	int rc = part_need("bytes", p->bytes, bytes_min, WORKLOAD_BYTES_MAX, err);

	return rc ? rc : part_need("step gap, ps,", p->step_gap_ps, 0, WORKLOAD_STEP_GAP_PS_MAX, err);
}

static void set_bus(struct workload_part *p, uint64_t bytes)
{
	p->facts.collective_bytes = bytes;
	p->facts.bus_num = 2 * (p->host_count - 1);
	p->facts.bus_den = p->host_count;
}

/* Part `i` of `bytes` divided into `n` parts that differ by one byte at most. */
static uint64_t share(uint64_t bytes, uint64_t n, uint64_t i)
{
	return bytes / n + (i < bytes % n);
}

/*
 * Ring. In ring r the host at position p is p x stride, and sends to position p + 1. Steps 0 .. n-2
 * reduce and scatter, n-1 .. 2n-3 gather: in step s the position p sends the chunk p - s.
 */
struct ring {
	struct workload_part part;
	uint64_t bytes;
	uint32_t rings, steps;
	uint32_t *strides;
	uint64_t step_gap_ps;
	uint64_t timed; /* messages of step 0 handed out */
};

static struct ring *ring_of(struct workload_part *p)
{
	return (struct ring *)p;
}

static struct message ring_message(const struct ring *g, uint32_t r, uint32_t step, uint32_t pos)
{
	uint32_t n = g->part.host_count;
	uint32_t chunk = (pos + 2 * n - step) % n;
	struct message m = part_message(&g->part);

	m.src = (uint32_t)((uint64_t)pos * g->strides[r] % n);
	m.dst = (uint32_t)((uint64_t)((pos + 1) % n) * g->strides[r] % n);
	m.bytes = share(share(g->bytes, g->rings, r), n, chunk);
	m.number = ((uint64_t)r * g->steps + step) * n + pos;
	m.connection = (uint64_t)r * n + pos;
	m.last = step + 1 == g->steps;
	return m;
}

static bool ring_next(struct workload_part *p, struct message *out)
{
	struct ring *g = ring_of(p);
	uint32_t n = p->host_count;

	if (g->timed == (uint64_t)g->rings * n)
		return false;
	*out = ring_message(g, (uint32_t)(g->timed / n), 0, (uint32_t)(g->timed % n));
	g->timed++;
	return true;
}

static void ring_received(struct workload_part *p, const struct message *m, uint64_t now_ps)
{
	struct ring *g = ring_of(p);
	uint32_t n = p->host_count, pos = (uint32_t)(m->number % n);
	uint32_t step = (uint32_t)(m->number / n % g->steps), r = (uint32_t)(m->number / n / g->steps);
	struct message next;

	assert(r < g->rings);
	if (step + 1 == g->steps)
		return;
	next = ring_message(g, r, step + 1, (pos + 1) % n);
	next.start_ps = now_ps + g->step_gap_ps;
	part_release(p, &next);
}

static void ring_free(struct workload_part *p)
{
	free(ring_of(p)->strides);
	free(p);
}

static const struct workload_part_ops ring_ops = {.next = ring_next, .received = ring_received, .free = ring_free};

static uint32_t gcd(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t t = a % b;

		a = b;
		b = t;
	}
	return a;
}

int ring_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
		struct text_error *err)
{
	uint32_t n = c->host_count, rings = p->rings ? p->rings : 1, stride = 0;
	struct ring *g;
	int rc = part_need("rings", rings, 1, 1024, err);

	if (!rc)
		rc = need_common(p, (uint64_t)rings * n, err);
	if (rc)
		return rc;
	g = part_alloc(c, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->strides = malloc(rings * sizeof(*g->strides));
	if (!g->strides) {
		free(g);
		return -ENOMEM;
	}
	/*
	 * A stride that has no common divisor with n visits every host; rings take these strides in
	 * turn.
	 */
	for (uint32_t r = 0; r < rings; r++) {
		do
			stride = stride % n + 1;
		while (gcd(stride, n) != 1);
		g->strides[r] = stride;
	}
	g->part.ops = &ring_ops;
	g->part.release_max = 1;
	g->bytes = p->bytes;
	g->rings = rings;
	g->steps = 2 * (n - 1);
	g->step_gap_ps = p->step_gap_ps;
	g->part.facts.message_count = (uint64_t)rings * g->steps * n;
	g->part.facts.bytes = p->bytes * g->steps;
	set_bus(&g->part, p->bytes);
	*out = &g->part;
	return 0;
}

/*
 * Halving and doubling. In step s < q a host exchanges half of what it has with the host whose rank
 * differs in bit q-1-s; the steps q .. 2q-1 go back the same way. A host's step s waits for all
 * messages sent to it in earlier steps.
 */
struct halving {
	struct workload_part part;
	uint64_t bytes;
	uint32_t bits; /* q */
	uint64_t step_gap_ps;
	uint32_t timed;
	struct halving_host {
		uint64_t arrived; /* bit s: step s has reached this host */
		uint32_t next;    /* step that it sends next */
	} hosts[];
};

static struct halving *halving_of(struct workload_part *p)
{
	return (struct halving *)p;
}

static uint32_t halving_bit(const struct halving *h, uint32_t step)
{
	return step < h->bits ? h->bits - 1 - step : step - h->bits;
}

static struct message halving_message(const struct halving *h, uint32_t step, uint32_t host)
{
	uint32_t bit = halving_bit(h, step);
	struct message m = part_message(&h->part);

	m.src = host;
	m.dst = host ^ 1u << bit;
	m.bytes = h->bytes >> (h->bits - bit);
	m.number = (uint64_t)step * h->part.host_count + host;
	m.connection = (uint64_t)host * h->bits + bit;
	m.last = step >= h->bits;
	return m;
}

static bool halving_next(struct workload_part *p, struct message *out)
{
	struct halving *h = halving_of(p);

	if (h->timed == p->host_count)
		return false;
	*out = halving_message(h, 0, h->timed++);
	return true;
}

static void halving_received(struct workload_part *p, const struct message *m, uint64_t now_ps)
{
	struct halving *h = halving_of(p);
	uint32_t step = (uint32_t)(m->number / p->host_count);
	uint32_t host = (uint32_t)(m->number % p->host_count) ^ 1u << halving_bit(h, step);
	struct halving_host *at = &h->hosts[host];

	assert(step < 2 * h->bits);
	at->arrived |= 1ull << step;
	while (at->next < 2 * h->bits && at->arrived >> (at->next - 1) & 1) {
		struct message next = halving_message(h, at->next++, host);

		next.start_ps = now_ps + h->step_gap_ps;
		part_release(p, &next);
	}
}

static void halving_free(struct workload_part *p)
{
	free(p);
}

static const struct workload_part_ops halving_ops = {
	.next = halving_next, .received = halving_received, .free = halving_free};

int halving_doubling_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
			    struct text_error *err)
{
	uint32_t n = c->host_count;
	struct halving *h;
	int rc = need_common(p, n, err);

	if (!rc && n & (n - 1))
		rc = text_fail(err, 0, "%u hosts; halving-doubling needs a power of two", (uint64_t)n);
	if (rc)
		return rc;
	h = part_alloc(c, sizeof(*h) + n * sizeof(h->hosts[0]));
	if (!h)
		return -ENOMEM;
	h->part.ops = &halving_ops;
	h->bytes = p->bytes;
	h->bits = (uint32_t)__builtin_ctz(n);
	h->step_gap_ps = p->step_gap_ps;
	h->part.release_max = 2 * h->bits;
	for (uint32_t i = 0; i < n; i++)
		h->hosts[i].next = 1;
	h->part.facts.message_count = 2ull * h->bits * n;
	for (uint32_t s = 0; s < 2 * h->bits; s++)
		h->part.facts.bytes += n * halving_message(h, s, 0).bytes;
	set_bus(&h->part, p->bytes);
	*out = &h->part;
	return 0;
}

/*
 * Tree: the parent of host i is (i - 1) / 2. A chunk goes up when both children have sent theirs,
 * and from the root down. Number: chunk x 2n + child, plus n on the way down.
 */
struct tree {
	struct workload_part part;
	uint64_t bytes;
	uint32_t chunks;
	uint64_t step_gap_ps;
	uint32_t leaf0;    /* the first host without children */
	uint64_t timed;    /* messages of leaves handed out */
	uint8_t arrived[]; /* by chunk and host: children that have sent */
};

static struct tree *tree_of(struct workload_part *p)
{
	return (struct tree *)p;
}

static struct message tree_message(const struct tree *t, uint32_t chunk, uint32_t child, bool down)
{
	uint32_t n = t->part.host_count, parent = (child - 1) / 2;
	struct message m = part_message(&t->part);

	m.src = down ? parent : child;
	m.dst = down ? child : parent;
	m.bytes = share(t->bytes, t->chunks, chunk);
	m.connection = child + (down ? (uint64_t)n : 0);
	m.number = (uint64_t)chunk * 2 * n + m.connection;
	m.last = chunk + 1 == t->chunks;
	return m;
}

static bool tree_next(struct workload_part *p, struct message *out)
{
	struct tree *t = tree_of(p);
	uint32_t leaves = p->host_count - t->leaf0;

	if (t->timed == (uint64_t)leaves * t->chunks)
		return false;
	*out = tree_message(t, (uint32_t)(t->timed / leaves), t->leaf0 + (uint32_t)(t->timed % leaves), false);
	t->timed++;
	return true;
}

static void tree_down(struct tree *t, uint32_t chunk, uint32_t parent, uint64_t at_ps)
{
	for (uint64_t child = 2ull * parent + 1; child <= 2ull * parent + 2; child++) {
		struct message m;

		if (child >= t->part.host_count)
			return;
		m = tree_message(t, chunk, (uint32_t)child, true);
		m.start_ps = at_ps;
		part_release(&t->part, &m);
	}
}

static void tree_received(struct workload_part *p, const struct message *m, uint64_t now_ps)
{
	struct tree *t = tree_of(p);
	uint32_t n = p->host_count;
	uint32_t chunk = (uint32_t)(m->number / (2 * (uint64_t)n));
	uint32_t child = (uint32_t)(m->number % n), parent = (child - 1) / 2;
	uint32_t children = 2ull * parent + 2 < n ? 2 : 1;
	uint64_t at_ps = now_ps + t->step_gap_ps;

	assert(chunk < t->chunks && child > 0);
	if (m->number / n % 2) {
		tree_down(t, chunk, child, at_ps);
	} else if (++t->arrived[(size_t)chunk * n + parent] == children) {
		struct message up;

		if (!parent) {
			tree_down(t, chunk, 0, at_ps);
			return;
		}
		up = tree_message(t, chunk, parent, false);
		up.start_ps = at_ps;
		part_release(p, &up);
	}
}

static void tree_free(struct workload_part *p)
{
	free(p);
}

static const struct workload_part_ops tree_ops = {.next = tree_next, .received = tree_received, .free = tree_free};

int tree_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
		struct text_error *err)
{
	enum { STATE_MAX = 1 << 28 };
	uint32_t n = c->host_count, chunks = p->chunks ? p->chunks : 1;
	struct tree *t;
	int rc = part_need("chunks", chunks, 1, STATE_MAX / n, err);

	if (!rc)
		rc = need_common(p, chunks, err);
	if (rc)
		return rc;
	t = part_alloc(c, sizeof(*t) + (size_t)chunks * n);
	if (!t)
		return -ENOMEM;
	t->part.ops = &tree_ops;
	t->part.release_max = 2;
	t->bytes = p->bytes;
	t->chunks = chunks;
	t->step_gap_ps = p->step_gap_ps;
	t->leaf0 = n / 2;
	t->part.facts.message_count = 2ull * (n - 1) * chunks;
	t->part.facts.bytes = 2ull * (n - 1) * p->bytes;
	set_bus(&t->part, p->bytes);
	*out = &t->part;
	return 0;
}
