/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sixteen paths that are not alike, each a link of its own with a queue: one loses 30 % of its packets, one is 5 ms
 * longer, one is dead for a while. The stream gets what the paths carry together (veRoCE 9, 9.1).
 */
#include "support/test.h"
#include "veroce/transfer.h"

enum {
	PATHS = 16,
	LOSSY = 3,
	LOSS = 30, /* per cent */
	LONG = 9,
	DYING = 12,
	MTU = 4096,
	MESSAGE = 256 << 10,
	BULK = 16 * MESSAGE,
	PACKET_US = 320,    /* of a full packet on a path: 100 Mbit/s */
	QUEUE_PACKETS = 64, /* that wait for a path; more are dropped */
	WARM_MS = 150,
	MEASURED_MS = 150
};

#define MS UINT64_C(1000000)

struct links {
	struct transfer t;
	uint64_t free_ns[PATHS];
	uint64_t dies_ns, lives_ns;
	uint64_t carried[PATHS]; /* packets */
};

static bool link_script(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	struct links *l = ctx;
	uint64_t *free_ns = &l->free_ns[p->path];
	bool dead = p->path == DYING && p->sent_ns >= l->dies_ns && p->sent_ns < l->lives_ns;

	*fate = DUO_DROP;
	if (dead || (p->path == LOSSY && prng_below(&l->t.prng, 100) < LOSS))
		return true;
	if (!transfer_is_data(&l->t, p))
		return false;
	if (*free_ns < p->sent_ns)
		*free_ns = p->sent_ns;
	if (*free_ns - p->sent_ns > (uint64_t)QUEUE_PACKETS * PACKET_US * 1000)
		return true;
	*free_ns += PACKET_US * 1000;
	*fate = DUO_DELAY;
	*n = *free_ns - p->sent_ns;
	l->carried[p->path]++;
	return true;
}

static void links_start(struct links *l, uint64_t seed, bool read)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	*l = (struct links){.dies_ns = UINT64_MAX, .lives_ns = UINT64_MAX};
	v.paths = PATHS;
	v.cc = VEROCE_CC_SWIFT;
	o.mtu = MTU;
	o.timeout = 0;
	transfer_start(&l->t, &v, &o, seed, read, BULK, 100000, 0);
	l->t.duo->path_ns[LONG] = 5 * MS;
	l->t.duo->script = link_script;
	l->t.duo->script_ctx = l;
}

/* Eight messages at a time, until then. */
static void stream(struct links *l, uint64_t until_ns)
{
	while (l->t.duo->now_ns < until_ns) {
		while (l->t.posted - l->t.s.a->sent.taken < 8)
			transfer_post(&l->t, l->t.posted % 16 * MESSAGE, MESSAGE);
		duo_wait(l->t.duo, &l->t.s.a->sent, l->t.s.a->sent.taken + 1);
		duo_expect(l->t.duo, &l->t.s.a->sent, l->t.s.a->sent.taken, WC_SUCCESS);
	}
}

/* Those that were posted, too. */
static void finish(struct links *l)
{
	duo_wait(l->t.duo, &l->t.s.a->sent, l->t.posted);
	transfer_check(&l->t);
	transfer_end(&l->t);
}

/* At least 0.95 of 15 paths and what gets through on the one that loses. */
TEST(a_stream_gets_what_unlike_paths_carry)
{
	for (unsigned i = 0; i < 2; i++) {
		uint64_t from_ns, took_ns, done;
		struct links l;

		links_start(&l, 1 + i, i & 1);
		stream(&l, WARM_MS * MS);
		from_ns = l.t.duo->now_ns;
		done = l.t.s.a->sent.taken;
		memset(l.carried, 0, sizeof(l.carried));
		stream(&l, from_ns + MEASURED_MS * MS);
		took_ns = l.t.duo->now_ns - from_ns;
		done = (l.t.s.a->sent.taken - done) * (MESSAGE / MTU);
		if (done * PACKET_US * 1000 * 100 < took_ns * (15 * 100 + 100 - LOSS) * 95 / 100)
			fail_msg("%s: %llu packets in %llu us", i ? "READs" : "WRITEs", (unsigned long long)done,
				 (unsigned long long)took_ns / 1000);
		/* The long one is not taken for dead, and is as busy as others. */
		assert_true(l.carried[LONG] * PACKET_US * 1000 * 10 >= took_ns * 9);
		finish(&l);
	}
}

TEST(a_path_that_comes_back_is_used_within_a_second)
{
	struct links l;

	links_start(&l, 1, false);
	l.dies_ns = 50 * MS;
	l.lives_ns = 550 * MS;
	stream(&l, l.lives_ns);
	assert_true(l.t.s.a->qp->veroce->pair->path[DYING].down);
	memset(l.carried, 0, sizeof(l.carried));
	while (l.carried[DYING] < 100 && l.t.duo->now_ns < l.lives_ns + 1000 * MS)
		stream(&l, l.t.duo->now_ns + 10 * MS);
	assert_false(l.t.s.a->qp->veroce->pair->path[DYING].down);
	assert_true(l.carried[DYING] >= 100);
	finish(&l);
}
