/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open-ended traffic: Poisson arrivals, by each host or of whole incasts, and the staircase of long
 * flows. Each message is made when the simulation pulls it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workload/workload_draw.h"
#include "workload/workload_part.h"

typedef unsigned __int128 u128;

static uint64_t rate_of(const struct workload_params *p, uint32_t rank)
{
	return p->rates_bps ? p->rates_bps[rank] : p->rate_bps;
}

/*
 * The rate of all ranks together; it fits, as there are 2^20 hosts at most. 0: *err names the rate
 * that is not allowed.
 */
static uint64_t rate_of_all(const struct workload_params *p, uint32_t host_count, struct text_error *err)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < host_count; i++) {
		if (part_need("rate, bit/s,", rate_of(p, i), TOPOLOGY_RATE_BPS_MIN, TOPOLOGY_RATE_BPS_MAX, err))
			return 0;
		sum += rate_of(p, i);
	}
	return sum;
}

/* Mean gap in 2^-16 ps so that `bytes_milli` thousandths of a byte each make load x rate. */
static int mean_gap_q16(const struct workload_params *p, uint64_t bytes_milli, uint64_t rate_bps, uint64_t *out,
			struct text_error *err)
{
	/* bytes x 8 x 10^12 ps / (rate x load), load = ppm / 10^6, bytes = milli / 1000. */
	u128 bits = (u128)bytes_milli * 8 * 1000000000000000ull;
	u128 rate = (u128)rate_bps * p->load_ppm;
	u128 gap;
	int rc = part_need("load, millionths,", p->load_ppm, 1, 10000000, err);

	if (rc)
		return rc;
	/* The shift comes in two halves: all at once would exceed 128 bits. */
	gap = bits / rate << 16 | ((bits % rate) << 16) / rate;
	if (!gap || gap >> 63)
		return text_fail(err, 0,
				 "sizes, rate and load give a mean gap of %u ps; allowed are "
				 "1 to 10^14",
				 (uint64_t)(bits / rate > UINT64_MAX ? UINT64_MAX : bits / rate));
	*out = (uint64_t)gap;
	return 0;
}

static uint64_t later(uint64_t at_ps, uint64_t gap_ps)
{
	return at_ps + gap_ps < WORKLOAD_TIME_PS_MAX ? at_ps + gap_ps : WORKLOAD_TIME_PS_MAX;
}

/* Hosts in a heap by the time of their next message, then by rank. */
struct poisson {
	struct workload_part part;
	struct cdf cdf;
	uint64_t end_ps, count_max, count;
	uint32_t heap_count;
	struct poisson_host {
		uint64_t at_ps, mean_q16;
		struct prng draws;
		uint32_t rank;
	} * heap;
};

static struct poisson *poisson_of(struct workload_part *p)
{
	return (struct poisson *)p;
}

static bool before(const struct poisson_host *a, const struct poisson_host *b)
{
	return a->at_ps < b->at_ps || (a->at_ps == b->at_ps && a->rank < b->rank);
}

static void sink(struct poisson *s, uint32_t i)
{
	for (;;) {
		uint32_t least = i;
		struct poisson_host t;

		for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < s->heap_count; child++)
			if (before(&s->heap[child], &s->heap[least]))
				least = child;
		if (least == i)
			return;
		t = s->heap[i];
		s->heap[i] = s->heap[least];
		s->heap[least] = t;
		i = least;
	}
}

static bool poisson_next(struct workload_part *p, struct message *out)
{
	struct poisson *s = poisson_of(p);
	struct poisson_host *h = &s->heap[0];
	struct message m = part_message(p);

	if (h->at_ps >= s->end_ps || s->count == s->count_max)
		return false;
	/* One random number each for destination, size and gap, so the number of hosts changes none
	 * of the later draws. */
	m.src = h->rank;
	m.dst = (uint32_t)prng_below(&h->draws, p->host_count - 1);
	m.dst += m.dst >= m.src;
	m.bytes = cdf_bytes(&s->cdf, prng_next(&h->draws));
	m.start_ps = h->at_ps;
	m.number = m.connection = s->count++;
	h->at_ps = later(h->at_ps, draw_gap_ps(&h->draws, h->mean_q16));
	sink(s, 0);
	*out = m;
	return true;
}

static void poisson_free(struct workload_part *p)
{
	cdf_free(&poisson_of(p)->cdf);
	free(poisson_of(p)->heap);
	free(p);
}

static const struct workload_part_ops poisson_ops = {.next = poisson_next, .free = poisson_free};

static int copy_cdf(struct cdf *to, const struct cdf *from)
{
	to->points = malloc(from->count * sizeof(*from->points));
	if (!to->points)
		return -ENOMEM;
	memcpy(to->points, from->points, from->count * sizeof(*from->points));
	to->count = from->count;
	return 0;
}

static int need_end(const struct workload_params *p, struct text_error *err)
{
	return p->end_ps ? part_need("end, ps,", p->end_ps, p->start_ps, WORKLOAD_TIME_PS_MAX, err) : 0;
}

static uint64_t end_of(const struct workload_params *p)
{
	return p->end_ps ? p->end_ps : WORKLOAD_TIME_PS_MAX;
}

int poisson_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
		   struct text_error *err)
{
	struct poisson *s;
	int rc;

	if (!p->cdf || !p->cdf->count)
		return text_fail(err, 0, "no distribution of sizes is given");
	if (!rate_of_all(p, c->host_count, err))
		return -EINVAL;
	rc = need_end(p, err);
	if (rc)
		return rc;
	s = part_alloc(c, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->heap = malloc(c->host_count * sizeof(*s->heap));
	if (!s->heap || copy_cdf(&s->cdf, p->cdf)) {
		poisson_free(&s->part);
		return -ENOMEM;
	}
	s->part.ops = &poisson_ops;
	s->end_ps = end_of(p);
	s->count_max = p->count_max ? p->count_max : UINT64_MAX;
	s->heap_count = c->host_count;
	for (uint32_t h = 0; h < c->host_count; h++) {
		struct poisson_host *host = &s->heap[h];

		rc = mean_gap_q16(p, cdf_mean_millibytes(p->cdf), rate_of(p, h), &host->mean_q16, err);
		if (rc) {
			poisson_free(&s->part);
			return rc;
		}
		draw_init(&host->draws, c->seed, h);
		host->rank = h;
		host->at_ps = later(c->start_ps, draw_gap_ps(&host->draws, host->mean_q16));
	}
	for (uint32_t i = c->host_count / 2; i-- > 0;)
		sink(s, i);
	*out = &s->part;
	return 0;
}

/* One incast after another, each with its own draws; they may overlap. */
struct poisson_incast {
	struct workload_part part;
	uint64_t bytes, mean_q16, end_ps, count_max, count;
	uint32_t senders;
	uint64_t at_ps; /* of the incast under way */
	uint32_t dealt; /* its messages handed out */
	struct prng draws;
	uint32_t *ranks; /* a random order; the first are target and senders of this incast */
};

static struct poisson_incast *incast_of(struct workload_part *p)
{
	return (struct poisson_incast *)p;
}

/* Draws the target and then the senders: the beginning of a shuffle. */
static void draw_incast(struct poisson_incast *s)
{
	for (uint32_t i = 0; i <= s->senders; i++) {
		uint32_t j = i + (uint32_t)prng_below(&s->draws, s->part.host_count - i);
		uint32_t t = s->ranks[i];

		s->ranks[i] = s->ranks[j];
		s->ranks[j] = t;
	}
	s->dealt = 0;
}

static bool poisson_incast_next(struct workload_part *p, struct message *out)
{
	struct poisson_incast *s = incast_of(p);
	struct message m = part_message(p);

	if (s->dealt == s->senders) {
		s->at_ps = later(s->at_ps, draw_gap_ps(&s->draws, s->mean_q16));
		draw_incast(s);
	}
	if (s->at_ps >= s->end_ps || s->count == s->count_max)
		return false;
	m.start_ps = s->at_ps;
	m.bytes = s->bytes;
	m.dst = s->ranks[0];
	m.src = s->ranks[1 + s->dealt++];
	m.number = m.connection = s->count++;
	*out = m;
	return true;
}

static void poisson_incast_free(struct workload_part *p)
{
	free(incast_of(p)->ranks);
	free(p);
}

static const struct workload_part_ops poisson_incast_ops = {.next = poisson_incast_next, .free = poisson_incast_free};

int poisson_incast_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
			  struct text_error *err)
{
	struct poisson_incast *s;
	uint64_t mean_q16 = 0, rate_bps = 0;
	int rc = part_need("bytes", p->bytes, 1, WORKLOAD_BYTES_MAX, err);

	if (!rc)
		rc = part_need("senders", p->senders, 1, c->host_count - 1, err);
	if (!rc && (u128)p->bytes * p->senders > WORKLOAD_BYTES_MAX)
		rc = text_fail(err, 0, "%u senders of %u bytes; together they may have %u", (uint64_t)p->senders,
			       p->bytes, (uint64_t)WORKLOAD_BYTES_MAX);
	if (!rc) {
		rate_bps = rate_of_all(p, c->host_count, err);
		rc = rate_bps ? mean_gap_q16(p, p->bytes * p->senders * 1000, rate_bps, &mean_q16, err) : -EINVAL;
	}
	if (!rc)
		rc = need_end(p, err);
	if (rc)
		return rc;
	s = part_alloc(c, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->ranks = malloc(c->host_count * sizeof(*s->ranks));
	if (!s->ranks) {
		free(s);
		return -ENOMEM;
	}
	s->part.ops = &poisson_incast_ops;
	s->bytes = p->bytes;
	s->mean_q16 = mean_q16;
	s->end_ps = end_of(p);
	s->count_max = p->count_max ? p->count_max : UINT64_MAX;
	s->senders = p->senders;
	s->dealt = p->senders;
	s->at_ps = c->start_ps;
	draw_init(&s->draws, c->seed, UINT64_MAX);
	for (uint32_t h = 0; h < c->host_count; h++)
		s->ranks[h] = h;
	*out = &s->part;
	return 0;
}

/* Long flows as chains of messages: each one that is sent releases the next, until the flow leaves. */
struct staircase {
	struct workload_part part;
	uint64_t bytes, interval_ps, end_ps;
	uint32_t flows, depth, stride, target;
	uint64_t timed;
	uint32_t *next; /* of each flow */
};

enum { STAIRCASE_FLOW_SHIFT = 32 };

static struct staircase *stairs_of(struct workload_part *p)
{
	return (struct staircase *)p;
}

static struct message stairs_message(struct staircase *s, uint32_t flow)
{
	struct message m = part_message(&s->part);
	uint32_t n = s->part.host_count;

	m.src = flow % n;
	m.dst = s->target;
	if (s->stride)
		m.dst = (uint32_t)(((uint64_t)m.src + s->stride) % n);
	else
		m.src += m.src >= s->target;
	m.bytes = s->bytes;
	m.connection = flow;
	m.number = (uint64_t)flow << STAIRCASE_FLOW_SHIFT | s->next[flow]++;
	m.last = false;
	return m;
}

static bool stairs_next(struct workload_part *p, struct message *out)
{
	struct staircase *s = stairs_of(p);
	uint32_t flow = (uint32_t)(s->timed / s->depth);

	if (flow == s->flows)
		return false;
	s->timed++;
	*out = stairs_message(s, flow);
	out->start_ps += flow * s->interval_ps;
	return true;
}

static void stairs_sent(struct workload_part *p, const struct message *m, uint64_t now_ps)
{
	struct staircase *s = stairs_of(p);
	uint32_t flow = (uint32_t)(m->number >> STAIRCASE_FLOW_SHIFT);
	struct message next;

	assert(flow < s->flows);
	if (s->end_ps && now_ps >= s->end_ps - flow * s->interval_ps)
		return;
	next = stairs_message(s, flow);
	next.start_ps = now_ps;
	part_release(p, &next);
}

static void stairs_free(struct workload_part *p)
{
	free(stairs_of(p)->next);
	free(p);
}

static const struct workload_part_ops stairs_ops = {.next = stairs_next, .sent = stairs_sent, .free = stairs_free};

int staircase_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
		     struct text_error *err)
{
	uint32_t n = c->host_count, last = p->senders ? p->senders - 1 : 0;
	struct staircase *s;
	int rc = part_need("bytes", p->bytes, 1, WORKLOAD_BYTES_MAX, err);

	if (!rc)
		rc = part_need("senders", p->senders, 1, p->stride ? n : n - 1, err);
	if (!rc)
		rc = part_need("stride", p->stride, 0, n - 1, err);
	if (!rc)
		rc = part_need("target", p->target, 0, n - 1, err);
	if (!rc)
		rc = part_need("messages under way", p->active_max, 0, 1024, err);
	if (!rc)
		rc = part_need("interval, ps,", p->interval_ps, 0, WORKLOAD_TIME_PS_MAX / n / 2, err);
	/* The last flow joins before it leaves. */
	if (!rc && p->end_ps)
		rc = part_need("end, ps,", p->end_ps, c->start_ps + 2 * last * p->interval_ps, WORKLOAD_TIME_PS_MAX,
			       err);
	if (rc)
		return rc;
	s = part_alloc(c, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->next = calloc(p->senders, sizeof(*s->next));
	if (!s->next) {
		free(s);
		return -ENOMEM;
	}
	s->part.ops = &stairs_ops;
	s->part.release_max = 1;
	s->bytes = p->bytes;
	s->interval_ps = p->interval_ps;
	s->end_ps = p->end_ps;
	s->flows = p->senders;
	s->depth = p->active_max ? p->active_max : 2;
	s->stride = p->stride;
	s->target = p->target;
	*out = &s->part;
	return 0;
}
