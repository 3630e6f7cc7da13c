/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory as a program sees it while WRITEs and READ results land in it, against a model in which they land one
 * after the other, as posted: at any time some have landed completely, the next one in part but without its end,
 * and none of the others. In strong order that part is the first bytes; in weak order none of this holds, which
 * shows that the test can fail.
 *
 * Each byte that lands is the stamp of its message, so the byte shows which message it belongs to. Seeds choose
 * protocol, paths, faults, lengths and places, how much may be kept, and when memory is read.
 */
#include <inttypes.h>

#include "support/test.h"
#include "veroce/veroce.h"

enum {
	SEEDS = 12,
	SEEDS_MANY = 48,
	OPS = 150,
	UNDER_WAY = 24,
	STAMPS = OPS,
	LEN_MAX = 16 * 1024,
	WATCHED_BYTES = 24 * 1024,
	LOOKS_MAX = 2000000
};

struct landing {
	uint64_t off;
	uint32_t len;
	uint8_t stamp;
};

/* Memory for `count` messages, of which the first `done` are known to have landed. */
struct watched {
	struct duo_buf *buf;
	uint8_t *model; /* with those */
	struct landing l[OPS];
	uint32_t count, done;
};

struct op {
	struct watched *into; /* NULL: a READ of what was written */
	uint32_t landing;     /* its number among the messages to that place */
	uint8_t *expected;
	uint32_t len;
	uint64_t slot;
};

struct judge {
	struct prng prng;
	struct veroce_options v;
	struct sim s;
	struct duo_buf *stamps[DUO_SIDES]; /* LEN_MAX bytes of each stamp */
	struct duo_buf *slots;
	struct watched written, fetched;
	struct op ops[OPS];
	uint32_t posted, done, receives;
	uint32_t imms[OPS]; /* the message that the n-th receive reports */
	uint32_t imm_count;
	bool must_fence;
	uint64_t differences;
};

static uint64_t below(struct judge *j, uint64_t n)
{
	return prng_below(&j->prng, n);
}

/* Whether memory equals the model, apart from an allowed part of the next landing. */
static bool matches(const struct judge *j, const struct watched *w, bool *missing)
{
	const struct landing *l = &w->l[w->done];
	const uint8_t *is = w->buf->p, *was = w->model;
	bool strong = j->v.order == ORDER_STRONG;
	uint64_t from = 0, to = 0;

	*missing = false;
	if (w->done < w->count) {
		from = l->off;
		to = l->off + l->len;
	}
	for (uint64_t i = from; i < to; i++) {
		if (is[i] == was[i])
			*missing = true;
		else if (is[i] != l->stamp || (*missing && (strong || i + 1 == to)))
			return false;
	}
	return !memcmp(is, was, from) && !memcmp(is + to, was + to, WATCHED_BYTES - to);
}

/* Several may have landed since the last check. */
static void look(struct judge *j, struct watched *w)
{
	bool missing, right = matches(j, w, &missing);

	while (w->done < w->count && !(right && missing)) {
		const struct landing *l = &w->l[w->done++];

		memset(w->model + l->off, l->stamp, l->len);
		right = matches(j, w, &missing);
	}
	j->differences += !right;
}

/* ---- work -------------------------------------------------------------------------------------- */

static uint32_t choose_len(struct judge *j)
{
	uint32_t mtu = j->s.a->opt.mtu, len = 1 + (uint32_t)below(j, 16);

	switch (below(j, 4)) {
	case 0: return len;
	case 1: len = mtu * (uint32_t)(1 + below(j, 3)) + (uint32_t)below(j, 3) - 1; return len;
	default: return 1 + (uint32_t)below(j, LEN_MAX);
	}
}

static struct landing *plan(struct judge *j, struct watched *w)
{
	struct landing *l = &w->l[w->count++];

	l->len = choose_len(j);
	l->off = below(j, 4) ? below(j, WATCHED_BYTES - l->len + 1) : 0;
	l->stamp = (uint8_t)w->count;
	return l;
}

static uint64_t stamped(const struct landing *l)
{
	return (uint64_t)(l->stamp - 1) * LEN_MAX;
}

/* The final content after the messages posted so far. */
static void expect_written(struct judge *j, uint8_t *bytes, uint64_t off, uint32_t len)
{
	uint8_t *all = malloc(WATCHED_BYTES);

	memcpy(all, j->written.model, WATCHED_BYTES);
	for (uint32_t i = j->written.done; i < j->written.count; i++)
		memset(all + j->written.l[i].off, j->written.l[i].stamp, j->written.l[i].len);
	memcpy(bytes, all + off, len);
	free(all);
}

/*
 * A READ has no order with later WRITEs, over any transport (IBTA 10.8.3.3), so those WRITEs have a
 * fence.
 */
static void plan_look_by_read(struct judge *j, struct op *op, struct duo_wr *w)
{
	uint64_t off;

	op->len = choose_len(j);
	off = below(j, WATCHED_BYTES - op->len + 1);
	op->slot = (uint64_t)(j->posted % UNDER_WAY) * LEN_MAX;
	op->expected = malloc(op->len);
	expect_written(j, op->expected, off, op->len);
	*w = duo_read_wr(j->posted, j->slots, op->slot, op->len, j->written.buf, off);
}

static void post(struct judge *j)
{
	struct op *op = &j->ops[j->posted];
	const struct landing *l;
	struct duo_wr w;
	bool fence = j->must_fence;

	j->must_fence = false;
	if (below(j, 10) == 0) {
		plan_look_by_read(j, op, &w);
		j->must_fence = true;
	} else if (below(j, 3) == 0) {
		op->into = &j->fetched;
		l = plan(j, op->into);
		w = duo_read_wr(j->posted, j->fetched.buf, l->off, l->len, j->stamps[DUO_B], stamped(l));
	} else {
		op->into = &j->written;
		l = plan(j, op->into);
		w = duo_write_wr(j->posted, j->stamps[DUO_A], stamped(l), l->len, j->written.buf, l->off);
		if (below(j, 5) == 0) {
			w.opcode = WR_WRITE_IMM;
			j->imms[j->imm_count++] = j->written.count;
		}
	}
	if (op->into)
		op->landing = op->into->count;
	if (fence)
		w.flags |= WR_FENCE;
	DUO_CHECK(j->s.duo, duo_post(j->s.a, &w));
	j->posted++;
}

/* ---- looking ------------------------------------------------------------------------------------ */

/* Completed messages have landed. */
static void take_completions(struct judge *j)
{
	struct cqe_log *sent = &j->s.a->sent, *received = &j->s.b->received;

	for (; sent->taken < sent->n; j->done++) {
		const struct op *op = &j->ops[j->done];

		duo_expect(j->s.duo, sent, j->done, WC_SUCCESS);
		if (op->into)
			j->differences += op->into->done < op->landing;
		else
			j->differences += memcmp(j->slots->p + op->slot, op->expected, op->len) != 0;
	}
	for (; received->taken < received->n; j->receives++) {
		duo_expect(j->s.duo, received, j->receives, WC_SUCCESS);
		j->differences += j->written.done < j->imms[j->receives];
	}
}

static uint64_t packets_taken(const struct judge *j)
{
	return nic_counters(j->s.a->host->nic)->rx_packets + nic_counters(j->s.b->host->nic)->rx_packets;
}

static void run(struct judge *j)
{
	uint64_t taken = 0;

	for (uint32_t looks = 0; j->done < OPS && !j->differences; looks++) {
		DUO_CHECK(j->s.duo, looks < LOOKS_MAX);
		if (j->posted < OPS && j->posted - j->done < UNDER_WAY && below(j, 20) == 0) {
			for (uint64_t n = 1 + below(j, 8); n && j->posted < OPS && j->posted - j->done < UNDER_WAY; n--)
				post(j);
		}
		duo_run_for(j->s.duo, 1 + below(j, below(j, 20) ? 500 : 5000));
		if (taken == packets_taken(j))
			continue;
		taken = packets_taken(j);
		look(j, &j->written);
		look(j, &j->fetched);
		take_completions(j);
	}
	if (j->differences)
		return; /* what comes next cannot be judged */
	duo_idle(j->s.duo);
	look(j, &j->written);
	look(j, &j->fetched);
	j->differences += j->written.done != j->written.count || j->fetched.done != j->fetched.count;
}

/* ---- set-up ------------------------------------------------------------------------------------- */

static void watch(struct judge *j, struct watched *w, struct duo_host *h)
{
	w->buf = duo_buf(h, WATCHED_BYTES, ALL_ACCESS);
	memset(w->buf->p, 0, WATCHED_BYTES);
	w->model = calloc(1, WATCHED_BYTES);
}

static void choose_faults(struct judge *j)
{
	struct duo *d = j->s.duo;

	for (int side = 0; side < DUO_SIDES; side++)
		d->faults[side] = (struct duo_faults){
			.drop_ppm = (uint32_t)below(j, 40000),
			.duplicate_ppm = (uint32_t)below(j, 40000),
			.delay_ppm = (uint32_t)below(j, 300000),
			.delay_ns_max = 1 + below(j, 30000),
		};
	for (uint32_t i = 0; i < j->v.paths; i++)
		d->path_ns[i] = below(j, 20000);
	d->batch = 1 + below(j, 32);
	d->steps_left = UINT64_MAX;
}

static uint64_t judge(uint64_t seed, enum protocol protocol, enum rx_order order)
{
	struct judge *j = calloc(1, sizeof(*j));
	struct duo_options o = duo_options();
	uint64_t differences;

	prng_init(&j->prng, seed);
	j->v = veroce_options();
	j->v.protocol[DUO_A] = j->v.protocol[DUO_B] = protocol;
	j->v.order = order;
	j->v.paths = seed % 4 ? 1 + (uint32_t)below(j, 16) : 1;
	j->v.early_bytes = below(j, 4) ? 0 : 8192u << below(j, 6);
	j->v.loss = below(j, 5) ? LOSS_FAST : LOSS_BASE;
	j->v.base[DUO_B] = below(j, 5) == 0;
	o.mtu = 256u << below(j, 5);
	o.psn[DUO_A] = 0xffffff - (uint32_t)below(j, 2000);
	o.timeout = 8;
	o.cap.max_recv_wr = OPS;
	j->s = veroce_start_sim(&j->v, &o, seed);
	for (int side = 0; side < DUO_SIDES; side++) {
		j->stamps[side] = duo_buf(&j->s.duo->host[side], STAMPS * LEN_MAX, ALL_ACCESS);
		for (uint32_t i = 0; i < STAMPS; i++)
			memset(j->stamps[side]->p + i * LEN_MAX, (int)i + 1, LEN_MAX);
	}
	watch(j, &j->written, j->s.b->host);
	watch(j, &j->fetched, j->s.a->host);
	j->slots = duo_buf(j->s.a->host, UNDER_WAY * LEN_MAX, ALL_ACCESS);
	for (uint32_t i = 0; i < OPS; i++)
		assert_true(duo_recv(j->s.b, i, j->s.bbuf, 0, 0));
	choose_faults(j);
	run(j);
	differences = j->differences;
	duo_idle(j->s.duo);
	duo_destroy(j->s.duo);
	for (uint32_t i = 0; i < OPS; i++)
		free(j->ops[i].expected);
	free(j->written.model);
	free(j->fetched.model);
	free(j);
	return differences;
}

static void by_seeds(uint64_t first, uint64_t last)
{
	static const struct {
		enum protocol protocol;
		enum rx_order order;
	} rows[] = {
		{PROTOCOL_VEROCE, ORDER_MESSAGE},
		{PROTOCOL_VEROCE, ORDER_STRONG},
		{PROTOCOL_VEROCE, ORDER_MESSAGE},
		{PROTOCOL_ROCEV2, ORDER_STRONG},
	};

	for (uint64_t seed = first; seed <= last; seed++) {
		uint64_t n = judge(seed, rows[seed % COUNT(rows)].protocol, rows[seed % COUNT(rows)].order);

		if (n)
			fail_msg("seed %" PRIu64 ": %" PRIu64 " differences", seed, n);
	}
}

TEST(memory_is_written_in_the_order_posted)
{
	by_seeds(1, SEEDS);
}

TEST_MANY(so_it_is_by_other_seeds)
{
	by_seeds(SEEDS + 1, SEEDS_MANY);
}

TEST(by_weak_order_it_is_not)
{
	for (uint64_t seed = 1; seed <= 4; seed++)
		assert_true(judge(seed, PROTOCOL_VEROCE, ORDER_WEAK) > 0);
}
