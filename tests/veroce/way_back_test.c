/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues that acknowledgements meet on their way back do not count, if that is wanted and clocks run alike (veRoCE 10, 12). */
#include "veroce/transfer.h"

#include "support/test.h"
#include "transport/paths/pair.h"

enum { NETWORK_NS = 30000, QUEUE_NS = 300000, MTU = 1024, PACKETS = 64, MESSAGES = 10 };

struct load {
	struct transfer t;
	struct cc_params params;
	uint64_t queue_ns[DUO_SIDES]; /* of what each side sends */
};

/* A duo_script. */
static bool queue(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	*fate = DUO_DELAY;
	*n = ((struct load *)ctx)->queue_ns[p->from];
	return *n;
}

/* B's clock is so much ahead. */
static void start_load(struct load *l, bool one_way, enum veroce_scope scope, uint64_t ahead_ns)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	*l = (struct load){0};
	cc_params_default(&l->params, CC_SWIFT);
	l->params.swift.one_way = one_way;
	v.cc_params = &l->params;
	v.paths = 4;
	v.scope = scope;
	v.window_bytes = 16 << 20;
	transfer_start(&l->t, &v, &o, 1, false, PACKETS * MTU, NETWORK_NS, 0);
	l->t.duo->host[DUO_B].clock_ns = ahead_ns;
	l->t.duo->script = queue;
	l->t.duo->script_ctx = l;
}

static uint64_t window(const struct load *l)
{
	const struct pair *pair = l->t.s.a->qp->veroce->pair;
	uint64_t sum = 0;

	if (pair->joint)
		return pair->joint->cc.cwnd_bytes;
	for (uint32_t i = 0; i < pair->path_count; i++)
		sum += pair->path[i].cc.cwnd_bytes;
	return sum;
}

/* Whether the window is smaller after some messages than it was before. */
static bool shrinks(struct load *l)
{
	uint64_t before = window(l);

	for (int i = 0; i < MESSAGES; i++) {
		transfer_post(&l->t, 0, PACKETS * MTU);
		duo_wait(l->t.duo, &l->t.s.a->sent, l->t.posted);
	}
	return window(l) < before;
}

static void end_load(struct load *l)
{
	duo_idle(l->t.duo);
	transfer_check(&l->t);
	transfer_end(&l->t);
}

TEST(a_queue_on_the_way_back_shrinks_no_window)
{
	static const uint64_t ahead_ns[] = {0, 123456789, UINT64_C(3000000000), UINT64_C(1) << 40};
	static const enum veroce_scope scopes[] = {SCOPE_HOSTS, SCOPE_QP};

	for (size_t i = 0; i < 2 * 2 * COUNT(ahead_ns); i++) {
		bool one_way = i & 1;
		struct load l;

		start_load(&l, one_way, scopes[i / 2 % 2], ahead_ns[i / 4]);
		assert_false(shrinks(&l));
		l.queue_ns[DUO_B] = QUEUE_NS;
		assert_int_equal(shrinks(&l), !one_way);
		end_load(&l);
	}
}

TEST(a_queue_on_the_way_there_shrinks_it)
{
	for (int one_way = 0; one_way < 2; one_way++) {
		for (int back = 0; back < 2; back++) {
			struct load l;

			start_load(&l, one_way, SCOPE_HOSTS, 987654321);
			assert_false(shrinks(&l));
			l.queue_ns[DUO_A] = QUEUE_NS;
			l.queue_ns[DUO_B] = back ? QUEUE_NS : 0;
			assert_true(shrinks(&l));
			end_load(&l);
		}
	}
}

/* Both clocks may be the one that steps; then round trips count. */
TEST(when_a_clock_steps_the_way_back_counts)
{
	for (int side = 0; side < DUO_SIDES; side++) {
		struct load l;

		start_load(&l, true, SCOPE_HOSTS, 5000);
		assert_false(shrinks(&l));
		l.t.duo->host[side].clock_ns += QUEUE_NS;
		assert_false(shrinks(&l));
		l.queue_ns[DUO_B] = QUEUE_NS;
		assert_true(shrinks(&l));
		end_load(&l);
	}
}
