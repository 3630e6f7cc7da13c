/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans of all members together: what they send is received, sizes add up, and each byte goes where it belongs. */
#include "support/test.h"
#include "workload/collective.h"

enum { MEMBERS_MAX = 16 };

struct plans {
	struct collective c;
	struct collective_plan of[MEMBERS_MAX];
};

static struct plans make(enum collective_kind kind, enum collective_algorithm a, uint32_t n, uint64_t bytes,
			 uint32_t chunks)
{
	struct plans p = {.c = {kind, a, bytes, n, n / 3, chunks}};

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(collective_plan(&p.c, i, &p.of[i]), 0);
	return p;
}

static void end(struct plans *p)
{
	for (uint32_t i = 0; i < p->c.n; i++)
		collective_plan_free(&p->of[i]);
}

static const struct collective_op *find(const struct collective_plan *p, bool send, uint32_t peer, uint32_t step)
{
	const struct collective_op *found = NULL;

	for (uint32_t i = 0; i < p->count; i++) {
		if (p->ops[i].send == send && p->ops[i].peer == peer && p->ops[i].step == step) {
			assert_null(found);
			found = &p->ops[i];
		}
	}
	return found;
}

static void check_partners(const struct plans *p)
{
	for (uint32_t me = 0; me < p->c.n; me++) {
		for (uint32_t i = 0; i < p->of[me].count; i++) {
			const struct collective_op *op = &p->of[me].ops[i], *other;

			assert_true(op->peer < p->c.n && op->peer != me && op->step < collective_steps(&p->c));
			other = find(&p->of[op->peer], !op->send, me, op->step);
			assert_non_null(other);
			assert_int_equal(other->bytes, op->bytes);
			for (int k = 0; k < 2; k++)
				assert_true(op->needs[k] == COLLECTIVE_NO_OP || op->needs[k] < i);
			assert_true(op->begun == COLLECTIVE_NO_OP || op->begun < i);
		}
	}
}

/* Runs the ops of all members in any order that their needs allow; all must end. */
static void check_ends(const struct plans *p)
{
	static bool done[MEMBERS_MAX][4096];
	uint32_t left = 0;
	bool went_on = true;

	memset(done, 0, sizeof(done));
	for (uint32_t i = 0; i < p->c.n; i++)
		left += p->of[i].count;
	while (left && went_on) {
		went_on = false;
		for (uint32_t me = 0; me < p->c.n; me++) {
			for (uint32_t i = 0; i < p->of[me].count; i++) {
				const struct collective_op *op = &p->of[me].ops[i], *other;
				bool ready = !done[me][i];

				for (int k = 0; k < 2; k++)
					ready &= op->needs[k] == COLLECTIVE_NO_OP || done[me][op->needs[k]];
				other = find(&p->of[op->peer], !op->send, me, op->step);
				if (!op->send)
					ready &= done[op->peer][other - p->of[op->peer].ops];
				if (!ready)
					continue;
				done[me][i] = true;
				went_on = true;
				left--;
			}
		}
	}
	assert_int_equal(left, 0);
}

static uint64_t sent_by(const struct plans *p, uint32_t me)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < p->of[me].count; i++)
		bytes += p->of[me].ops[i].send ? p->of[me].ops[i].bytes : 0;
	return bytes;
}

TEST(each_send_has_its_receive_and_all_end)
{
	static const uint64_t sizes[] = {0, 1, 5, 1000, 65537};

	for (int kind = 0; kind < COLLECTIVE_KINDS; kind++) {
		for (int a = 0; a < COLLECTIVE_ALGORITHMS; a++) {
			for (uint32_t n = 1; n <= 9; n++) {
				for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
					struct plans p = make((enum collective_kind)kind, (enum collective_algorithm)a,
							      n, sizes[s], 1 + n % 3);

					check_partners(&p);
					check_ends(&p);
					end(&p);
				}
			}
		}
	}
}

TEST(a_group_of_one_has_nothing_to_do)
{
	for (int kind = 0; kind < COLLECTIVE_KINDS; kind++) {
		struct plans p = make((enum collective_kind)kind, COLLECTIVE_AUTO, 1, 1000, 1);

		assert_int_equal(p.of[0].count, 0);
		end(&p);
	}
}

/* What each of n members sends of S, where n divides S. */
TEST(members_send_what_the_algorithms_are_known_for)
{
	enum { N = 8, S = 8000 };
	static const struct {
		enum collective_kind kind;
		enum collective_algorithm algorithm;
		uint64_t of_each; /* 0: members differ */
		uint64_t of_all;
	} cases[] = {
		{COLLECTIVE_ALL_REDUCE, COLLECTIVE_RING, 2 * (N - 1) * S / N, 0},
		{COLLECTIVE_ALL_REDUCE, COLLECTIVE_HALVING_DOUBLING, 2 * (N - 1) * S / N, 0},
		{COLLECTIVE_ALL_REDUCE, COLLECTIVE_TREE, 0, 2 * (N - 1) * S},
		{COLLECTIVE_ALL_GATHER, COLLECTIVE_RING, (N - 1) * S / N, 0},
		{COLLECTIVE_ALL_GATHER, COLLECTIVE_HALVING_DOUBLING, (N - 1) * S / N, 0},
		{COLLECTIVE_ALL_GATHER, COLLECTIVE_DIRECT, (N - 1) * S / N, 0},
		{COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_RING, (N - 1) * S / N, 0},
		{COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_HALVING_DOUBLING, (N - 1) * S / N, 0},
		{COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_DIRECT, (N - 1) * S / N, 0},
		{COLLECTIVE_ALL_TO_ALL, COLLECTIVE_AUTO, (N - 1) * S / N, 0},
		{COLLECTIVE_REDUCE, COLLECTIVE_RING, 0, (N - 1) * S},
		{COLLECTIVE_REDUCE, COLLECTIVE_TREE, 0, (N - 1) * S},
		{COLLECTIVE_BROADCAST, COLLECTIVE_RING, 0, (N - 1) * S},
		{COLLECTIVE_BROADCAST, COLLECTIVE_TREE, 0, (N - 1) * S},
		{COLLECTIVE_GATHER, COLLECTIVE_AUTO, 0, (N - 1) * S / N},
		{COLLECTIVE_SCATTER, COLLECTIVE_AUTO, 0, (N - 1) * S / N},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (uint32_t chunks = 1; chunks <= 4; chunks *= 2) {
			struct plans p = make(cases[i].kind, cases[i].algorithm, N, S, chunks);
			uint64_t all = 0;

			for (uint32_t me = 0; me < N; me++) {
				all += sent_by(&p, me);
				if (cases[i].of_each)
					assert_int_equal(sent_by(&p, me), cases[i].of_each);
			}
			assert_int_equal(all, cases[i].of_each ? N * cases[i].of_each : cases[i].of_all);
			end(&p);
		}
	}
}

/* After it each member has heard from each other one, directly or through others. */
TEST(a_barrier_joins_all_members)
{
	for (uint32_t n = 2; n <= MEMBERS_MAX; n++) {
		struct plans p = make(COLLECTIVE_BARRIER, COLLECTIVE_AUTO, n, 0, 1);
		uint32_t heard[MEMBERS_MAX];

		for (uint32_t i = 0; i < n; i++)
			heard[i] = 1u << i;
		for (uint32_t step = 0; step < 5; step++) {
			uint32_t before[MEMBERS_MAX];

			memcpy(before, heard, sizeof(before));
			for (uint32_t i = 0; i < n; i++) {
				for (uint32_t k = 0; k < p.of[i].count; k++) {
					if (!p.of[i].ops[k].send && p.of[i].ops[k].step == step)
						heard[i] |= before[p.of[i].ops[k].peer];
				}
			}
		}
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(heard[i], (1u << n) - 1);
		end(&p);
	}
}

TEST(bus_bandwidths_are_as_defined)
{
	uint32_t num, den;

	collective_bus(&(struct collective){.kind = COLLECTIVE_ALL_REDUCE, .n = 4}, &num, &den);
	assert_int_equal(num, 6);
	assert_int_equal(den, 4);
	collective_bus(&(struct collective){.kind = COLLECTIVE_ALL_GATHER, .n = 4}, &num, &den);
	assert_int_equal(num, 3);
	collective_bus(&(struct collective){.kind = COLLECTIVE_BROADCAST, .n = 4}, &num, &den);
	assert_int_equal(num, den);
}
