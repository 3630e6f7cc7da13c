/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs and paths as bytes. Users, and the queue pairs that wait for room, follow from the queue pairs. What a path's
 * congestion control is configured with comes from the nic that loads.
 */
#include <errno.h>

#include "base/archive.h"
#include "transport/paths/pair.h"
#include "transport/paths/path_rtt.h"

enum { MTU_MIN = 64, MTU_MAX = 4096 };

void pair_table_archive(struct archive *a, struct pair_table *t)
{
	uint32_t buckets = t->bucket_count;

	ARCHIVE(a, t, seed);
	ARCHIVE_ARRAYS(a, t, secret);
	archive_bytes(a, &buckets, sizeof(buckets));
	archive_judge(a, buckets <= PAIR_BUCKETS_MAX);
	while (!a->err && t->bucket_count < buckets) {
		uint32_t before = t->bucket_count;

		pair_table_grow(t);
		if (t->bucket_count == before)
			archive_fail(a, -ENOMEM);
	}
	archive_judge(a, t->bucket_count == buckets);
}

static void path_archive(struct archive *a, const struct transport_config *c, const struct pair *pair, struct path *p)
{
	if (!pair->joint)
		cc_archive(a, &p->cc, pair_algorithm(c, pair->local), pair->local ? NULL : c->cc.params);
	ARCHIVE_TIMES(a, &p->pacer, last_ns);
	ARCHIVE(a, &p->pacer, last_frac, last_bytes, spent);
	ARCHIVE(a, p, sent_bytes, gone_bytes, lost_bytes, idle_bytes, srtt_ns, rttvar_ns, cc_network_ns, ce_seen,
		reo_ns, round_end, round_lost_bytes, stamp_seq, down, slow_signals, silent, good, missed, cc_hosts_us,
		cc_rounds, cc_samples);
	ARCHIVE_ARRAYS(a, p, cc_least_ns, least_ns);
	archive_period(a, &p->least_while, PATH_LEAST_WHILE_NS);
	ARCHIVE_TIMES(a, p, cc_round_ns, reo_until_ns, heard_ns, probe_ns, probe_sent_ns, slow_first_ns, slow_until_ns);
}

static void stall_archive(struct archive *a, struct stall *s)
{
	ARCHIVE_TIMES(a, s, ran_ns, read_ns, told_ns, asked_ns, ask_ns, silent_ns, forced_ns);
	ARCHIVE(a, s, asks);
}

/* Its paths, if it has any of its own. */
static void paths_archive(struct archive *a, struct pair_table *t, struct pair *p)
{
	bool own = p->own;

	archive_flag(a, &own, sizeof(own));
	if (a->loads && !a->err && own && !pair_take_paths(t, p))
		archive_fail(a, -ENOMEM);
	for (uint32_t i = 0; p->own && i < p->path_count; i++)
		path_archive(a, t->config, p, &p->own[i]);
	if (p->joint)
		joint_archive(a, t, p);
	/* The ways there and back (one_way.h) are not saved: after a load one of the two clocks is another. */
}

static void pair_archive(struct archive *a, struct pair_table *t, struct pair *p)
{
	ARCHIVE(a, p, local, mtu_bytes, path_count);
	ARCHIVE_TIMES(a, p, made_ns);
	if (!archive_judge(a, p->mtu_bytes >= MTU_MIN && p->mtu_bytes <= MTU_MAX && p->path_count &&
				      p->path_count <= (p->local ? 1 : t->config->paths))) {
		p->path_count = 1;
		return;
	}
	ARCHIVE(a, p, speaks, sent_bytes, gone_bytes, near_bytes, idle_bytes, window_bytes, buffer_bytes,
		cwnd_least_bytes, srtt_ns, rto_ns, blind_packets, down_count, rto_down, left_turn, left_path, asks);
	ARCHIVE_TIMES(a, p, speaks_until_ns, cc_due_ns, full_ns, paced_ns, starved_until_ns);
	ARCHIVE(a, &p->trims, round_end, round_bytes, trimmed_bytes, heavy, calm);
	ARCHIVE_ARRAYS(a, p, min_rtt_ns);
	ARCHIVE_ARRAYS(a, &p->prng, s);
	for (uint32_t i = 0; i < PATHS_MAX; i++)
		ARCHIVE(a, &p->arrivals[i], packets, ce);
	ARCHIVE(a, &p->sent, round, left_ns);
	archive_time32(a, &p->sent.came_ns);
	stall_archive(a, &p->stall);
	archive_judge(a, p->prng.s[0] | p->prng.s[1] | p->prng.s[2] | p->prng.s[3]);
	archive_judge(a, p->speaks <= PAIR_ROCEV2 && p->left_path < p->path_count);
	archive_judge(a, p->near_bytes + p->idle_bytes <= p->sent_bytes - p->gone_bytes);
	paths_archive(a, t, p);
}

/* Loading, a new one. */
static struct pair *with_addresses(struct archive *a, struct pair_table *t, struct pair *p)
{
	struct pair addresses = {0};

	ARCHIVE_ARRAYS(a, a->loads ? &addresses : p, src, dst);
	if (!a->loads || a->err)
		return p;
	p = pair_make(t, addresses.src, addresses.dst);
	if (!p)
		archive_fail(a, -ENOMEM);
	return p;
}

void pair_archive_all(struct archive *a, struct pair_table *t, uint16_t type, uint32_t kind)
{
	uint32_t count = archive_count(a, t->count, UINT32_MAX), bucket = 0;
	struct list *l = pair_table_buckets(t);

	for (uint32_t i = 0; i < count && !a->err; i++) {
		struct pair *p = NULL;

		if (!a->loads) {
			while (l->next == &pair_table_buckets(t)[bucket])
				l = &pair_table_buckets(t)[++bucket];
			l = l->next;
			p = container_of(l, struct pair, link);
		}
		archive_begin(a, type, 1);
		p = with_addresses(a, t, p);
		if (!p)
			return;
		archive_define(a, p, kind);
		pair_archive(a, t, p);
		archive_end(a);
	}
}
