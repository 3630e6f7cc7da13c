/* SPDX-License-Identifier: BSD-2-Clause */
/* One congestion control for all paths of a queue pair (veRoCE 10, 11). */
#include "support/pair_fixture.h"
#include "support/test.h"

enum { PATHS = 4 };

/* An algorithm that does nothing but note what it is told; its window and pace are the test's. */
static struct notes {
	uint64_t ack_seq, snd_nxt, sent_seq, rtt_ns, remote_ns;
	uint32_t ecn_packets, cnps, rtts, losses[CC_LOSS_RTO + 1];
} notes;

static void note_sent(struct cc *c, uint64_t now_ns, uint64_t seq, uint32_t bytes)
{
	notes.sent_seq = seq;
}

static void note_ack(struct cc *c, uint64_t now_ns, const struct cc_ack *ack)
{
	notes.ack_seq = ack->ack_seq;
	notes.snd_nxt = ack->snd_nxt;
	notes.ecn_packets += ack->ecn_packets;
	if (!ack->rtt_ns)
		return;
	notes.rtts++;
	notes.rtt_ns = ack->rtt_ns;
	notes.remote_ns = ack->remote_ns;
}

static void note_cnp(struct cc *c, uint64_t now_ns)
{
	notes.cnps++;
}

static void note_loss(struct cc *c, uint64_t now_ns, enum cc_loss loss)
{
	notes.losses[loss]++;
}

static void note_init(struct cc *c, const struct cc_config *config, uint64_t now_ns)
{
	static const struct cc_ops ops = {
		.on_sent = note_sent, .on_ack = note_ack, .on_cnp = note_cnp, .on_loss = note_loss};

	*c = (struct cc){.ops = &ops,
			 .cwnd_bytes = 12 * PACKET,
			 .rate_bps = CC_UNPACED,
			 .deadline_ns = CC_NO_DEADLINE,
			 .cwnd_bytes_max = CC_CWND_BYTES_LIMIT,
			 .mtu_bytes = MTU};
	notes = (struct notes){0};
}

static const struct cc_kind note_kind = {.init = note_init};

static struct fixture *start_joint(struct fixture *f)
{
	scope = SCOPE_QP;
	own_cc = &note_kind;
	return start(f, PATHS, CC_SWIFT);
}

static void end_joint(struct fixture *f)
{
	end(f);
	scope = SCOPE_HOSTS;
	own_cc = NULL;
}

#define JOINT_TEST(name) TEST_OF(name, struct fixture *, f, start_joint(&(struct fixture){0}), end_joint(f))

/* All paths are known; what is in flight is 0 again. */
static void know_all(struct fixture *f)
{
	static const uint64_t rtt_ns[PATHS] = {1000, 1000, 1000, 1000};

	measure(f, rtt_ns);
}

static void told(struct fixture *f, uint32_t path, uint64_t rtt_ns, uint64_t hosts_ns, uint64_t now_ns)
{
	struct tx_path_news n = {.bytes = PACKET, .packets = 1, .newest_tx_ns = now_ns - rtt_ns - hosts_ns, .sure = 1};
	struct path_echo echo = {.path = path, .rtt_ns = rtt_ns, .hosts_ns = hosts_ns};

	path_sent(&f->config, f->pair, path, PACKET, now_ns - rtt_ns - hosts_ns);
	path_acked(&f->table, f->pair, path, &n, &echo, now_ns);
}

JOINT_TEST(the_window_is_one_for_all_paths)
{
	uint32_t sent = 0;

	know_all(f);
	while (send(f, PACKET))
		sent++;
	assert_int_equal(sent, 12);
}

/* The paths' parts together are a fourth more than the window of 12 packets. */
JOINT_TEST(paths_that_are_up_share_what_a_dead_one_had)
{
	know_all(f);
	for (uint32_t i = 0; i < PATHS; i++)
		assert_in_range(f->pair->path[i].cc.cwnd_bytes, 15 * PACKET / 4, 15 * PACKET / 4 + 512);
	path_silent(f->pair, 0, 8, start_ns);
	path_silent(f->pair, 1, 8, start_ns);
	ack(f, 2, 0, 0, start_ns + 2000);
	assert_in_range(f->pair->path[2].cc.cwnd_bytes, 15 * PACKET / 2, 15 * PACKET / 2 + 512);
	path_silent(f->pair, 2, 8, start_ns);
	ack(f, 3, 0, 0, start_ns + 3000);
	assert_in_range(f->pair->path[3].cc.cwnd_bytes, 15 * PACKET, 15 * PACKET + 512);
}

/* The longer queue's path gets less and less of the window, but never nothing; a long path without a queue keeps its part. */
JOINT_TEST(a_path_with_a_longer_queue_gets_less)
{
	static const uint64_t rtt_ns[PATHS] = {10000, 10000, 10000, 30000};
	const struct path *p = f->pair->path;

	measure(f, rtt_ns);
	for (uint64_t k = 1; k <= 100; k++) {
		for (uint32_t i = 0; i < PATHS; i++)
			told(f, i, rtt_ns[i] + (i ? 1000 : 9000), 0, start_ns + k * 100000);
	}
	assert_true(p[0].cc.cwnd_bytes < p[1].cc.cwnd_bytes / 4);
	assert_true(p[0].cc.cwnd_bytes > 0);
	assert_true(p[3].cc.cwnd_bytes >= p[1].cc.cwnd_bytes);
	/* And it gets its part back. */
	for (uint64_t k = 101; k <= 200; k++) {
		for (uint32_t i = 0; i < PATHS; i++)
			told(f, i, rtt_ns[i] + 1000, 0, start_ns + k * 100000);
	}
	assert_int_equal(p[0].cc.cwnd_bytes, p[1].cc.cwnd_bytes);
}

JOINT_TEST(bytes_of_all_paths_are_counted_as_one)
{
	know_all(f);
	assert_int_equal(notes.sent_seq, 3 * PACKET);
	assert_int_equal(notes.ack_seq, 4 * PACKET);
	assert_int_equal(notes.snd_nxt, 4 * PACKET);
}

/* Once a round trip, and not the longest: out-of-the-way paths are no queue. */
JOINT_TEST(the_algorithm_gets_the_mean_of_round_trips)
{
	uint64_t at = start_ns + 1000000;

	told(f, 0, 1000, 1000, at);
	assert_int_equal(notes.rtts, 1);
	assert_int_equal(notes.rtt_ns, 2000);
	told(f, 1, 2000, 0, at + 10);
	told(f, 2, 6000, 2000, at + 20);
	assert_int_equal(notes.rtts, 1);
	told(f, 3, 4000, 1000, at + 10000);
	assert_int_equal(notes.rtts, 2);
	assert_int_equal(notes.rtt_ns, 5000);
	assert_int_equal(notes.remote_ns, 1000);
}

/* An acknowledgement waits at the peer, and stamps tell of one path how long. */
JOINT_TEST(where_stamps_tell_of_one_path_no_other_is_measured)
{
	struct tx_path_news n = {.bytes = PACKET, .packets = 1, .newest_tx_ns = start_ns, .sure = 1};
	struct path_echo echo = {.path = 1, .rtt_ns = 1000, .hosts_ns = 20000};

	path_sent(&f->config, f->pair, 0, PACKET, start_ns);
	path_sent(&f->config, f->pair, 1, PACKET, start_ns);
	path_acked(&f->table, f->pair, 0, &n, &echo, start_ns + 21000);
	assert_int_equal(notes.rtts, 0);
	path_acked(&f->table, f->pair, 1, &n, &echo, start_ns + 21000);
	assert_int_equal(notes.rtts, 1);
	assert_int_equal(notes.rtt_ns - notes.remote_ns, 1000);
}

/* Loses so many of 400 packets on each path. */
static void lose(struct fixture *f, const uint32_t *lost)
{
	for (uint32_t i = 0; i < PATHS; i++) {
		for (uint32_t k = 0; k < 400; k++)
			path_sent(&f->config, f->pair, i, PACKET, start_ns);
	}
	for (uint32_t k = 0; k < 400; k++) {
		for (uint32_t i = 0; i < PATHS; i++) {
			if (k % 10 < lost[i])
				path_lost(f->pair, i, PACKET, start_ns + k);
			else
				ack(f, i, 1, start_ns, start_ns + k);
		}
	}
}

JOINT_TEST(one_bad_path_is_no_congestion_of_the_others)
{
	static const uint32_t one[PATHS] = {10, 0, 1, 0}, all[PATHS] = {5, 5, 5, 5};

	lose(f, one);
	assert_int_equal(notes.losses[CC_LOSS_TRIM], 0);
	lose(f, all);
	assert_true(notes.losses[CC_LOSS_TRIM] > 0);
}

JOINT_TEST(a_cnp_counts_once_whatever_paths_it_is_for)
{
	pair_cnp(f->pair, PATHS_MAX, start_ns);
	pair_cnp(f->pair, 3, start_ns);
	assert_int_equal(notes.cnps, 2);
}

/* At 8 kbit/s, 1000 bytes take a second. */
JOINT_TEST(all_paths_keep_one_pace)
{
	know_all(f);
	f->pair->joint->cc.rate_bps = 8000000;
	ack(f, 0, 0, 0, start_ns + 10);
	assert_true(send(f, PACKET));
	f->flowlet.left = 0;
	assert_false(send(f, PACKET));
	for (uint32_t i = 0; i < PATHS; i++)
		assert_int_equal(pacer_due_ns(&f->pair->path[i].pacer, f->pair->path[i].cc.rate_bps, 0),
				 start_ns + 1000000);
}

/* A small window gathers too few packets for an acknowledgement that nobody asked for. */
JOINT_TEST(a_small_window_asks_for_acknowledgements)
{
	assert_true(f->pair->scarce);
	f->pair->joint->cc.cwnd_bytes = 33 * MTU;
	ack(f, 0, 0, 0, start_ns + 10);
	assert_false(f->pair->scarce);
}

/* Two QPs to one host have nothing in common but what the host speaks. */
JOINT_TEST(each_queue_pair_has_a_window)
{
	struct pair *other;

	pair_learn(f->pair, PAIR_VEROCE, start_ns);
	other = pair_get(&f->table, here, there, false, MTU, start_ns);
	assert_ptr_not_equal(other, f->pair);
	assert_int_equal(pair_speaks(other, start_ns), PAIR_VEROCE);
	pair_put(&f->table, other);
}

TEST(without_memory_nothing_is_begun)
{
	struct fixture f;
	struct pair *other;

	start_joint(&f);
	other = pair_get(&f.table, here, there, false, MTU, start_ns);
	dry = true;
	assert_false(pair_begin(&f.table, other));
	assert_null(other->own);
	dry = false;
	assert_true(pair_begin(&f.table, other));
	pair_put(&f.table, other);
	end_joint(&f);
}
