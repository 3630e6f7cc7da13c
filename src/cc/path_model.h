/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of this folder: one bottleneck with an endless first-in first-out queue, and flows that
 * always have something to send. Packets of one size, an ACK each; all flows have the same base
 * RTT, so packets are acknowledged in the order in which they were sent and a ring is the whole
 * network.
 *
 * Private to src/cc.
 */
#pragma once

#include <assert.h>

#include "cc/cc.h"

enum { PATH_FLOWS_MAX = 16, PATH_RING = 1 << 16 };

struct path_packet {
	unsigned int flow;
	bool marked;
	uint64_t sent_ns, acked_ns;
};

struct path_flow {
	struct cc cc;
	uint64_t snd_nxt, acked;
	bool on;
};

struct path {
	uint64_t rate_bps, base_rtt_ns;
	uint64_t mark_ns; /* packets that wait longer are marked; 0: none are */
	uint32_t mtu_bytes;
	uint64_t now_ns, free_ns; /* free_ns: when the bottleneck has sent all it holds */
	uint64_t queue_ns_max;    /* longest wait since the test last cleared it */
	struct path_flow flows[PATH_FLOWS_MAX];
	struct path_packet ring[PATH_RING];
	uint64_t head, tail;
};

static inline void path_send(struct path *p, unsigned int i)
{
	struct path_flow *f = &p->flows[i];
	uint64_t wire_ns = p->mtu_bytes * UINT64_C(8000000000) / p->rate_bps;

	while (f->on && (f->snd_nxt == f->acked || f->snd_nxt - f->acked + p->mtu_bytes <= f->cc.cwnd_bytes)) {
		struct path_packet *k = &p->ring[p->tail++ % PATH_RING];
		uint64_t wait_ns = p->free_ns > p->now_ns ? p->free_ns - p->now_ns : 0;

		assert(p->tail - p->head <= PATH_RING);
		p->free_ns = p->now_ns + wait_ns + wire_ns;
		if (wait_ns > p->queue_ns_max)
			p->queue_ns_max = wait_ns;
		*k = (struct path_packet){
			.flow = i,
			.marked = p->mark_ns && wait_ns > p->mark_ns,
			.sent_ns = p->now_ns,
			.acked_ns = p->free_ns + p->base_rtt_ns - wire_ns,
		};
		cc_on_sent(&f->cc, p->now_ns, f->snd_nxt, p->mtu_bytes);
		f->snd_nxt += p->mtu_bytes;
	}
}

static inline void path_start(struct path *p, unsigned int i, enum cc_algorithm algorithm,
			      const struct cc_config *config)
{
	cc_init(&p->flows[i].cc, algorithm, config, p->now_ns);
	p->flows[i].on = true;
	path_send(p, i);
}

static inline void path_run(struct path *p, uint64_t until_ns)
{
	while (p->head < p->tail && p->ring[p->head % PATH_RING].acked_ns <= until_ns) {
		const struct path_packet *k = &p->ring[p->head++ % PATH_RING];
		struct path_flow *f = &p->flows[k->flow];

		p->now_ns = k->acked_ns;
		f->acked += p->mtu_bytes;
		cc_on_ack(&f->cc, p->now_ns,
			  &(struct cc_ack){
				  .acked_bytes = p->mtu_bytes,
				  .acked_packets = 1,
				  .ack_seq = f->acked,
				  .snd_nxt = f->snd_nxt,
				  .ecn_packets = k->marked,
				  .rtt_ns = k->acked_ns - k->sent_ns,
			  });
		path_send(p, k->flow);
	}
	p->now_ns = until_ns;
}
