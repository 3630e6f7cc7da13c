/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sent, lost and acknowledged packets of a path, and how its congestion control and timers react to them.
 *
 * A path goes down when PATH_SILENT_MAX packets in a row were lost on it and none that was sent on it
 * is acknowledged, while another path is up. Random loss hardly does that. The path comes up again when
 * probes on it are answered: only a dead path goes down, not a slow one (veRoCE 9.1).
 */
#include "transport/paths/path.h"

#include "transport/paths/pair.h"
#include "transport/paths/path_rtt.h"

enum {
	PATH_SILENT_MAX = 8,
	PATH_GOOD_PROBES = 3,
	SLOW_SIGNALS = 3,
	ROUND_BYTES_MIN = 16 * 1024,
	LOSS_HEAVY = 4, /* a fourth of a round */
	MISSED_A_STEP = 8,
	MISSED_MAX = 4 * MISSED_A_STEP
};

static const uint64_t slow_count_ns = 100000, slow_hold_ns = 200000;
static const uint64_t probe_ns_min = 1000000, probe_lost_ns = 20000000;

static void note_deadline(struct pair *pair, const struct path *p)
{
	if (p->cc.deadline_ns < pair->cc_due_ns)
		pair->cc_due_ns = p->cc.deadline_ns;
}

void pair_expire(struct pair *pair, uint64_t now_ns)
{
	pair->cc_due_ns = CC_NO_DEADLINE;
	for (uint32_t i = 0; i < pair->path_count; i++) {
		if (pair->path[i].cc.deadline_ns <= now_ns)
			cc_on_timer(&pair->own[i].cc, now_ns);
		note_deadline(pair, &pair->path[i]);
	}
}

void pair_cnp(struct pair *pair, uint32_t path, uint64_t now_ns)
{
	/* Nothing was sent that could have met congestion. */
	if (!pair->own)
		return;
	if (pair->joint) /* any path leads to it */
		path = 0;
	for (uint32_t i = 0; i < pair->path_count; i++) {
		if (i != path && path < pair->path_count)
			continue;
		cc_on_cnp(&pair->own[i].cc, now_ns);
		note_deadline(pair, &pair->path[i]);
	}
}

void path_sent(const struct transport_config *c, struct pair *pair, uint32_t path, uint32_t bytes, uint64_t now_ns)
{
	struct path *p = &pair->own[path];

	if (p->cc.rate_bps != CC_UNPACED)
		pacer_sent(&p->pacer, p->cc.rate_bps, bytes + c->cc.wire_overhead_bytes, c->cc.pace_slack_ns, now_ns);

	cc_on_sent(&p->cc, now_ns, p->sent_bytes, bytes);
	p->sent_bytes += bytes;
	pair->sent_bytes += bytes;
}

static void up(struct pair *pair, struct path *p)
{
	if (p->down) {
		p->down = false;
		pair->down_count--;
	}
	p->silent = 0;
	p->good = 0;
	p->missed = 0;
}

/* A packet arrived that left at tx_ns; 0: it is not known which of its copies. */
static void hear(struct pair *pair, struct path *p, uint64_t tx_ns, uint64_t now_ns)
{
	if (!tx_ns)
		tx_ns = now_ns;
	if (tx_ns > p->heard_ns)
		p->heard_ns = tx_ns;
	if (p->silent || p->down)
		up(pair, p);
}

static void leave(struct pair *pair, struct path *p, uint64_t bytes)
{
	p->gone_bytes += bytes;
	pair->gone_bytes += bytes;
}

/*
 * Random loss is not congestion, and the loss of one packet in twenty must not halve a window. If a fourth of all
 * bytes of a round trip are lost, the cause is not the link alone: our choice.
 */
static void count_round(struct path *p, uint32_t lost_bytes, uint64_t now_ns)
{
	uint64_t round;

	p->round_lost_bytes += lost_bytes;
	if (p->gone_bytes < p->round_end)
		return;
	round = p->cc.cwnd_bytes < ROUND_BYTES_MIN ? ROUND_BYTES_MIN : p->cc.cwnd_bytes;
	if ((uint64_t)p->round_lost_bytes * LOSS_HEAVY > round && p->round_end)
		cc_on_loss(&p->cc, now_ns, CC_LOSS_TRIM);
	p->round_end = p->gone_bytes + round;
	p->round_lost_bytes = 0;
}

void path_lost(struct pair *pair, uint32_t path, uint32_t bytes, uint64_t now_ns)
{
	struct path *p = &pair->own[path];

	leave(pair, p, bytes);
	p->lost_bytes += bytes;
	cc_on_loss(&p->cc, now_ns, CC_LOSS_SACK_HOLE);
	count_round(p, bytes, now_ns);
	note_deadline(pair, p);
}

void path_trimmed(struct pair *pair, uint32_t path, uint32_t bytes, uint64_t now_ns)
{
	struct path *p = &pair->own[path];

	hear(pair, p, 0, now_ns);
	cc_on_loss(&p->cc, now_ns, CC_LOSS_TRIM);
	note_deadline(pair, p);
	trim_window_cut(pair, bytes, p->cc.cwnd_bytes <= pair->cwnd_least_bytes);
}

void path_forget(struct pair *pair, uint32_t path, uint32_t bytes)
{
	leave(pair, &pair->own[path], bytes);
}

/* A path without congestion control, as between processes of one host: only the timeouts are updated. */
static void acked_uncontrolled(struct pair_table *t, struct pair *pair, uint32_t path, const struct tx_path_news *n,
			       const struct path_echo *echo, uint64_t now_ns)
{
	struct path *p = &pair->own[path];
	bool told = echo->path == path;
	uint64_t network_ns = told ? echo->rtt_ns : now_ns - n->newest_tx_ns;
	uint64_t rtt_ns = network_ns + (told ? echo->hosts_ns : 0);

	leave(pair, p, n->bytes);
	if (n->sure || told)
		hear(pair, p, told ? now_ns - echo->rtt_ns - echo->hosts_ns : n->newest_tx_ns, now_ns);
	if (n->newest_tx_ns || told)
		path_rtt_sample(t->config, pair, path, rtt_ns ? rtt_ns : 1, network_ns ? network_ns : 1);
	path_reo_expire(p, now_ns);
}

static void acked_controlled(struct pair_table *t, struct pair *pair, uint32_t path, const struct tx_path_news *n,
			     const struct path_echo *echo, uint64_t now_ns)
{
	struct path *p = &pair->own[path];
	bool told = echo->path == path;
	uint64_t network_ns = told ? echo->rtt_ns : n->newest_tx_ns ? now_ns - n->newest_tx_ns : 0;
	uint64_t hosts_ns = told ? echo->hosts_ns : 0, back_ns = 0;
	bool starved;
	struct cc_ack ack = {
		.acked_bytes = n->bytes,
		.acked_packets = n->packets,
		.snd_nxt = p->sent_bytes,
	};

	/* The peer counted them; otherwise all packets of this acknowledgement may be marked. */
	if (told)
		ack.ecn_packets = echo->ce_packets < n->packets ? echo->ce_packets : n->packets;
	else if (echo->becn && echo->path == PATHS_MAX)
		ack.ecn_packets = n->packets;
	if (ack.ecn_packets && n->packets)
		ack.ecn_bytes = (uint64_t)n->bytes * ack.ecn_packets / n->packets;
	leave(pair, p, n->bytes);
	trim_window_grow(pair);
	ack.ack_seq = p->gone_bytes;
	if (n->sure || told)
		hear(pair, p, told ? now_ns - echo->rtt_ns - echo->hosts_ns : n->newest_tx_ns, now_ns);
	if (n->newest_tx_ns || told) {
		network_ns = network_ns ? network_ns : 1;
		path_rtt_sample(t->config, pair, path, network_ns + hosts_ns, network_ns);
		if (told)
			path_rtt_told(pair, hosts_ns, now_ns);
		if (told && pair->one_way.wanted)
			back_ns = one_way_waited_ns(&pair->one_way, echo->there_ns, network_ns, now_ns);
		network_ns -= back_ns;
		starved = pair_is_starved(pair, now_ns);
		/*
		 * Nobody knows what part of a round trip the hosts took, of which no stamps came, nor the way back. A joint
		 * control looks for the mean and has no shortest sample to rely on: where stamps tell of another path,
		 * this does not count.
		 */
		if ((told || !(starved || ((pair->joint || pair->one_way.wanted) && echo->path != PATHS_MAX))) &&
		    path_rtt_round(p, starved, &network_ns, &hosts_ns, now_ns)) {
			if (t->config->cc.base_rtt_ns)
				network_ns -= path_detour_ns(pair, p, network_ns, now_ns);
			ack.rtt_ns = network_ns + hosts_ns + back_ns;
			ack.remote_ns = hosts_ns;
			ack.back_ns = back_ns;
		}
	}
	path_reo_expire(p, now_ns);
	cc_on_ack(&p->cc, now_ns, &ack);
	/* Each acknowledgement serves as the answer to a probe. */
	if (p->cc.probe_wanted && ack.rtt_ns) {
		cc_on_probe(&p->cc, now_ns);
		cc_on_rtt(&p->cc, now_ns, ack.rtt_ns);
	}
	count_round(p, 0, now_ns);
	note_deadline(pair, p);
}

void path_acked(struct pair_table *t, struct pair *pair, uint32_t path, const struct tx_path_news *n,
		const struct path_echo *echo, uint64_t now_ns)
{
	if (cc_heeds_acks(&pair->path[path].cc))
		acked_controlled(t, pair, path, n, echo, now_ns);
	else
		acked_uncontrolled(t, pair, path, n, echo, now_ns);
}

void path_silent(struct pair *pair, uint32_t path, uint32_t packets, uint64_t now_ns)
{
	struct path *p = &pair->own[path];

	p->silent = (uint8_t)(p->silent + packets < UINT8_MAX ? p->silent + packets : UINT8_MAX);
	if (p->down || p->silent < PATH_SILENT_MAX || pair->down_count + 1 >= pair->path_count)
		return;
	p->down = true;
	p->good = 0;
	p->probe_ns = now_ns + probe_ns_min;
	p->probe_sent_ns = 0;
	pair->down_count++;
}

/*
 * A path that is known to be longer than the others is not slow, it is long: what is sent on it is as
 * late as it should be. Such signals are ignored (9.1, beyond base).
 */
void path_slow(struct pair *pair, uint32_t path, uint64_t now_ns)
{
	struct path *p = &pair->own[path];

	if (pair->min_rtt_ns[path] > pair->srtt_ns)
		return;
	if (now_ns - p->slow_first_ns > slow_count_ns) {
		p->slow_first_ns = now_ns;
		p->slow_signals = 0;
	}
	if (++p->slow_signals >= SLOW_SIGNALS)
		p->slow_until_ns = now_ns + slow_hold_ns;
}

/*
 * An answer takes a round trip, and no probe may leave before it: only the newest probe's answer counts. The path may
 * be longer than all that were measured, so the time grows, but by so little that a path which was dead for a while
 * is back after a fourth of that.
 */
void path_probe_sent(const struct transport_config *c, struct pair *pair, uint32_t path, uint64_t now_ns)
{
	struct path *p = &pair->own[path];
	uint64_t wait_ns, rto_ns = path_rto_ns(c, p);

	if (p->probe_sent_ns) { /* the one before was lost */
		p->good = 0;
		if (p->missed < MISSED_MAX)
			p->missed++;
	}
	wait_ns = probe_lost_ns << p->missed / MISSED_A_STEP;
	if (rto_ns < pair->rto_ns)
		rto_ns = pair->rto_ns;
	p->probe_sent_ns = now_ns;
	p->probe_ns = now_ns + (wait_ns > rto_ns ? wait_ns : rto_ns);
}

void path_probe_answered(struct pair_table *t, struct pair *pair, uint32_t path, uint64_t now_ns)
{
	uint64_t rtt_ns = now_ns - pair->path[path].probe_sent_ns;
	struct path *p;

	if (!pair->path[path].probe_sent_ns)
		return;
	p = &pair->own[path];
	if (p->down)
		path_rtt_sample(t->config, pair, path, rtt_ns ? rtt_ns : 1, rtt_ns ? rtt_ns : 1);
	if (p->down && ++p->good >= PATH_GOOD_PROBES)
		up(pair, p);
	p->probe_sent_ns = 0;
	p->probe_ns = now_ns + probe_ns_min;
}
