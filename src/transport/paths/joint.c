/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The joint congestion control: what paths report goes to one algorithm, and its answer to all paths.
 *
 * Its window is the pair's. Paths have parts of it, which follow their queues: else the path with the longest queue would
 * hold the mean up, and those that have room would get no more than the others. Loss counts over all paths, but for the one that lost most: one bad path is no congestion of the others.
 */
#include "transport/paths/joint.h"

#include "base/archive.h"
#include "transport/paths/pair.h"

enum {
	SCARCE_PACKETS = 32, /* of which one asks for an acknowledgement */
	SPARE = 4,           /* a fourth of the window */
	LONGER = 4,          /* likewise of a queue */
	WEIGHT = 256,
	WEIGHT_MIN = 32,
	WEIGHT_MAX = 2048,
	WEIGHT_STEP = 8,
	ROUND_BYTES_MIN = 16 * 1024,
	LOSS_HEAVY = 4 /* a fourth of a round, as on a path */
};

/* A path's struct cc names its pair here. */
static struct pair *pair_of(const struct cc *c)
{
	return (struct pair *)(uintptr_t)c->other[0];
}

/* Those of the paths that are up; of all, if none is. */
static uint32_t weights(const struct pair *pair)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < pair->path_count; i++)
		sum += pair->path[i].down && pair->down_count < pair->path_count ? 0 : pair->joint->weight[i];
	return sum;
}

/*
 * What the algorithm answered holds for all paths. Their parts are a little more than the window, so that there is a
 * choice; which of them is full decides where packets go.
 */
static void answer(struct pair *pair)
{
	const struct cc *c = &pair->joint->cc;
	uint64_t each = (c->cwnd_bytes + c->cwnd_bytes / SPARE) / weights(pair) + 1;

	for (uint32_t i = 0; i < pair->path_count; i++) {
		pair->own[i].cc.cwnd_bytes = each * pair->joint->weight[i];
		pair->own[i].cc.rate_bps = c->rate_bps;
	}
	pair->own[0].cc.deadline_ns = c->deadline_ns;
	if (c->deadline_ns < pair->cc_due_ns)
		pair->cc_due_ns = c->deadline_ns;
	pair->window_bytes = c->cwnd_bytes < pair->buffer_bytes ? c->cwnd_bytes : pair->buffer_bytes;
	pair->scarce = pair->window_bytes < (uint64_t)SCARCE_PACKETS * pair->mtu_bytes;
}

static bool is_heavy(const struct pair *pair, uint64_t round_bytes)
{
	uint64_t all = 0, most = 0;

	for (uint32_t i = 0; i < pair->path_count; i++) {
		uint64_t lost = pair->path[i].lost_bytes - pair->joint->lost_before[i];

		all += lost;
		most = lost > most ? lost : most;
	}
	return (all - most) * LOSS_HEAVY > round_bytes;
}

static void count_losses(struct pair *pair, uint64_t now_ns)
{
	struct joint *j = pair->joint;
	uint64_t round = j->cc.cwnd_bytes < ROUND_BYTES_MIN ? ROUND_BYTES_MIN : j->cc.cwnd_bytes;

	if (pair->gone_bytes < j->loss_end)
		return;
	if (j->loss_end && is_heavy(pair, round))
		cc_on_loss(&j->cc, now_ns, CC_LOSS_TRIM);
	j->loss_end = pair->gone_bytes + round;
	for (uint32_t i = 0; i < pair->path_count; i++)
		j->lost_before[i] = pair->path[i].lost_bytes;
}

/* The next packet of any path waits for that which just left on one. */
static void on_sent(struct cc *path_cc, uint64_t now_ns, uint64_t seq, uint32_t bytes)
{
	struct pair *pair = pair_of(path_cc);
	const struct path *sent = container_of(path_cc, struct path, cc);

	cc_on_sent(&pair->joint->cc, now_ns, pair->sent_bytes, bytes);
	for (uint32_t i = 0; path_cc->rate_bps != CC_UNPACED && i < pair->path_count; i++)
		pair->own[i].pacer = sent->pacer;
}

/* A path whose queue is longer than the others' gives up a part of its weight, another one gains. */
static void weigh(struct pair *pair, uint32_t path, uint64_t network_ns)
{
	struct joint *j = pair->joint;
	uint64_t least = pair->min_rtt_ns[path], queue_ns = network_ns > least ? network_ns - least : 0;
	uint32_t w = j->weight[path];

	w = queue_ns > j->queue_ns + j->queue_ns / LONGER ? w - w / WEIGHT_STEP : w + w / WEIGHT_STEP;
	j->weight[path] = (uint16_t)(w < WEIGHT_MIN ? WEIGHT_MIN : w > WEIGHT_MAX ? WEIGHT_MAX : w);
	j->queue_ns = (7 * j->queue_ns + queue_ns) / 8;
}

/* The mean of the round trips that came meanwhile, once a round trip. False: not yet. */
static bool take_mean(struct pair *pair, struct cc_ack *ack, uint64_t now_ns)
{
	struct joint *j = pair->joint;

	if (!ack->rtt_ns)
		return false;
	j->network_sum_ns += ack->rtt_ns - ack->remote_ns;
	j->back_sum_ns += ack->back_ns;
	j->hosts_sum_ns += ack->remote_ns;
	j->samples++;
	if (now_ns < j->round_ns)
		return false;
	ack->remote_ns = j->hosts_sum_ns / j->samples;
	ack->back_ns = j->back_sum_ns / j->samples;
	ack->rtt_ns = j->network_sum_ns / j->samples + ack->remote_ns;
	j->network_sum_ns = j->back_sum_ns = j->hosts_sum_ns = 0;
	j->samples = 0;
	j->round_ns = now_ns + pair->srtt_ns;
	return true;
}

static void on_ack(struct cc *path_cc, uint64_t now_ns, const struct cc_ack *of_path)
{
	struct pair *pair = pair_of(path_cc);
	struct cc *c = &pair->joint->cc;
	struct cc_ack ack = *of_path;

	ack.ack_seq = pair->gone_bytes;
	ack.snd_nxt = pair->sent_bytes;
	if (ack.rtt_ns)
		weigh(pair, (uint32_t)(container_of(path_cc, struct path, cc) - pair->own),
		      ack.rtt_ns - ack.remote_ns - ack.back_ns);
	if (!take_mean(pair, &ack, now_ns))
		ack.rtt_ns = ack.remote_ns = ack.back_ns = 0;
	cc_on_ack(c, now_ns, &ack);
	if (c->probe_wanted && ack.rtt_ns) {
		cc_on_probe(c, now_ns);
		cc_on_rtt(c, now_ns, ack.rtt_ns);
	}
	count_losses(pair, now_ns);
	answer(pair);
}

static void on_cnp(struct cc *path_cc, uint64_t now_ns)
{
	cc_on_cnp(&pair_of(path_cc)->joint->cc, now_ns);
	answer(pair_of(path_cc));
}

static void on_timer(struct cc *path_cc, uint64_t now_ns)
{
	cc_on_timer(&pair_of(path_cc)->joint->cc, now_ns);
	answer(pair_of(path_cc));
}

static void on_loss(struct cc *path_cc, uint64_t now_ns, enum cc_loss loss)
{
	struct pair *pair = pair_of(path_cc);

	cc_on_loss(&pair->joint->cc, now_ns, loss);
	count_losses(pair, now_ns);
	answer(pair);
}

static const struct cc_ops joint_ops = {
	.on_sent = on_sent,
	.on_ack = on_ack,
	.on_cnp = on_cnp,
	.on_timer = on_timer,
	.on_loss = on_loss,
};

bool joint_begin(struct pair_table *t, struct pair *pair, const struct cc_config *config)
{
	pair->joint = alloc_get(t->alloc, sizeof(*pair->joint));
	if (!pair->joint)
		return false;
	cc_init(&pair->joint->cc, pair_algorithm(t->config, pair->local), config, pair->made_ns);
	for (uint32_t i = 0; i < pair->path_count; i++) {
		pair->own[i].cc = (struct cc){
			.ops = &joint_ops, .deadline_ns = CC_NO_DEADLINE, .other = {(uint64_t)(uintptr_t)pair}};
		pair->joint->weight[i] = WEIGHT;
		pair->own[i].round_end = UINT64_MAX; /* a path counts no heavy losses of its own */
	}
	/* The window of all is the algorithm's: it may be less than one of all paths' least. */
	pair->cwnd_least_bytes = 0;
	answer(pair);
	return true;
}

void joint_free(struct pair_table *t, struct pair *pair)
{
	alloc_put(t->alloc, pair->joint, sizeof(*pair->joint));
	pair->joint = NULL;
}

void joint_archive(struct archive *a, const struct pair_table *t, struct pair *pair)
{
	struct joint *j = pair->joint;

	cc_archive(a, &j->cc, pair_algorithm(t->config, pair->local), t->config->cc.params);
	/* Loading, joint_begin() has answered for a control that has just begun. */
	ARCHIVE(a, pair, window_bytes);
	ARCHIVE_TIMES(a, pair, cc_due_ns);
	ARCHIVE(a, j, network_sum_ns, back_sum_ns, hosts_sum_ns, samples, queue_ns, loss_end);
	ARCHIVE_TIMES(a, j, round_ns);
	ARCHIVE_ARRAYS(a, j, weight, lost_before);
	archive_judge(a, j->samples < UINT32_MAX);
	for (uint32_t i = 0; i < pair->path_count; i++) {
		struct cc *c = &pair->own[i].cc;

		ARCHIVE(a, c, cwnd_bytes, rate_bps);
		ARCHIVE_TIMES(a, c, deadline_ns);
		pair->scarce = pair->window_bytes < (uint64_t)SCARCE_PACKETS * pair->mtu_bytes;
		archive_judge(a, j->weight[i] >= WEIGHT_MIN && j->weight[i] <= WEIGHT_MAX);
		archive_judge(a, c->rate_bps && c->cwnd_bytes <= CC_CWND_BYTES_LIMIT << 8);
	}
}
