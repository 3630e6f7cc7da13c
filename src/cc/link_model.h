/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of this folder: one port of a switch, and hosts that send to it with all of the
 * contract: windows, pacing, RED marks at dequeue, CNPs, INT stacks, probes, timers. Data flows
 * without end, packets are of one size with an ACK each, nothing is lost, and all flows have the
 * same base RTT: a packet reaches the queue as it is sent, and is acknowledged one base RTT after
 * it leaves the queue. path_model.h is a smaller model, for windows alone.
 *
 * Private to src/cc.
 */
#pragma once

#include <assert.h>
#include <string.h>

#include "base/prng.h"
#include "cc/cc.h"

enum { LINK_FLOWS_MAX = 128, LINK_RING = 1 << 18, LINK_PROBE_BYTES = 64 };

struct link_packet {
	uint16_t flow;
	bool probe, marked;
	uint64_t sent_ns, acked_ns;
	struct int_stack stack;
};

struct link_flow {
	struct cc cc;
	uint64_t snd_nxt, acked;
	uint64_t next_ps; /* earliest start of the next packet */
	uint64_t cnp_ns;  /* when the receiver last sent a CNP */
	uint64_t cnps;
	bool on, cnp_sent, cnp_pending;
};

struct link {
	/* set by the test */
	uint64_t rate_bps, base_rtt_ns;
	uint32_t mtu_bytes;
	uint64_t kmin_bytes, kmax_bytes; /* RED; kmax 0: nothing is marked */
	uint64_t pmax_q32;
	uint64_t cnp_gap_ns; /* between a flow's CNPs */
	bool cnps, stacks;
	unsigned int flow_count;

	uint64_t now_ns, queue_bytes, queue_bytes_max, tx_bytes;
	uint64_t free_ps; /* when the packet on the wire has left */
	struct link_flow flows[LINK_FLOWS_MAX];
	struct link_packet ring[LINK_RING];
	uint64_t acked, dequeued, sent; /* of the ring, in this order */
	struct prng prng;
};

static inline uint64_t link_wire_ps(const struct link *l, uint64_t bytes)
{
	return bytes * 8 * UINT64_C(1000000000000) / l->rate_bps;
}

static inline uint32_t link_bytes(const struct link *l, const struct link_packet *k)
{
	return k->probe ? LINK_PROBE_BYTES : l->mtu_bytes;
}

static inline void link_enqueue(struct link *l, unsigned int i, bool probe)
{
	struct link_packet *k = &l->ring[l->sent++ % LINK_RING];

	assert(l->sent - l->acked <= LINK_RING);
	*k = (struct link_packet){.flow = (uint16_t)i, .probe = probe, .sent_ns = l->now_ns};
	l->queue_bytes += link_bytes(l, k);
	if (l->queue_bytes > l->queue_bytes_max)
		l->queue_bytes_max = l->queue_bytes;
}

/* When the flow may send: UINT64_MAX if the window forbids. */
static inline uint64_t link_may_send_ns(const struct link *l, const struct link_flow *f)
{
	uint64_t flying = f->snd_nxt - f->acked;

	if (!f->on || (flying && flying + l->mtu_bytes > f->cc.cwnd_bytes))
		return UINT64_MAX;
	return (f->next_ps + 999) / 1000 > l->now_ns ? (f->next_ps + 999) / 1000 : l->now_ns;
}

static inline void link_send(struct link *l, unsigned int i)
{
	struct link_flow *f = &l->flows[i];
	uint64_t now_ps = l->now_ns * 1000;

	if (f->cc.probe_wanted) {
		link_enqueue(l, i, true);
		cc_on_probe(&f->cc, l->now_ns);
	}
	link_enqueue(l, i, false);
	/* less than a nanosecond behind is the clock's grain, not a pause */
	if (f->next_ps + 1000 <= now_ps)
		f->next_ps = now_ps;
	if (f->cc.rate_bps != CC_UNPACED)
		f->next_ps += l->mtu_bytes * UINT64_C(8000000000000) / f->cc.rate_bps;
	cc_on_sent(&f->cc, l->now_ns, f->snd_nxt, l->mtu_bytes);
	f->snd_nxt += l->mtu_bytes;
}

static inline bool link_marks(struct link *l)
{
	if (!l->kmax_bytes || l->queue_bytes <= l->kmin_bytes)
		return false;
	if (l->queue_bytes > l->kmax_bytes)
		return true;
	return prng_below(&l->prng, UINT64_C(1) << 32) <
	       l->pmax_q32 * (l->queue_bytes - l->kmin_bytes) / (l->kmax_bytes - l->kmin_bytes);
}

/* The oldest packet's last bit leaves. */
static inline void link_dequeue(struct link *l)
{
	struct link_packet *k = &l->ring[l->dequeued++ % LINK_RING];
	uint32_t bytes = link_bytes(l, k);

	l->queue_bytes -= bytes;
	if (!k->probe)
		k->marked = link_marks(l);
	if (l->stacks) {
		int_stack_init(&k->stack);
		int_stack_push(&k->stack,
			       &(struct int_hop){.rate_bps = l->rate_bps,
						 .ts_ns = l->now_ns,
						 .tx_bytes = l->tx_bytes,
						 .qlen_bytes = (uint32_t)l->queue_bytes},
			       1);
	}
	l->tx_bytes += bytes;
	k->acked_ns = l->now_ns + l->base_rtt_ns - link_wire_ps(l, l->mtu_bytes) / 1000;
}

static inline void link_cnp(struct link *l, struct link_flow *f)
{
	f->cnp_pending = false;
	f->cnp_sent = true;
	f->cnp_ns = l->now_ns;
	f->cnps++;
	cc_on_cnp(&f->cc, l->now_ns);
}

static inline void link_ack(struct link *l)
{
	const struct link_packet *k = &l->ring[l->acked++ % LINK_RING];
	struct link_flow *f = &l->flows[k->flow];

	if (k->probe) {
		cc_on_rtt(&f->cc, l->now_ns, l->now_ns - k->sent_ns);
		return;
	}
	f->acked += l->mtu_bytes;
	if (k->marked && l->cnps) {
		if (!f->cnp_sent || l->now_ns - f->cnp_ns >= l->cnp_gap_ns)
			link_cnp(l, f);
		else
			f->cnp_pending = true;
	}
	cc_on_ack(&f->cc, l->now_ns,
		  &(struct cc_ack){
			  .acked_bytes = l->mtu_bytes,
			  .acked_packets = 1,
			  .ack_seq = f->acked,
			  .snd_nxt = f->snd_nxt,
			  .ecn_packets = k->marked && !l->cnps,
			  .rtt_ns = l->now_ns - k->sent_ns,
			  .hops = 1,
			  .int_stack = l->stacks ? &k->stack : NULL,
		  });
}

static inline void link_init(struct link *l, uint64_t rate_bps, uint64_t base_rtt_ns, uint32_t mtu_bytes, uint64_t seed)
{
	memset(l, 0, sizeof(*l));
	l->rate_bps = rate_bps;
	l->base_rtt_ns = base_rtt_ns;
	l->mtu_bytes = mtu_bytes;
	prng_init(&l->prng, seed);
}

static inline void link_start(struct link *l, enum cc_algorithm algorithm, const struct cc_params *params)
{
	struct link_flow *f = &l->flows[l->flow_count++];
	struct cc_config k = {
		.line_rate_bps = l->rate_bps,
		.base_rtt_ns = l->base_rtt_ns,
		.mtu_bytes = l->mtu_bytes,
		.params = params,
	};

	assert(l->flow_count <= LINK_FLOWS_MAX);
	memset(f, 0, sizeof(*f));
	cc_init(&f->cc, algorithm, &k, l->now_ns);
	f->on = true;
	f->next_ps = l->now_ns * 1000;
}

static inline void link_run(struct link *l, uint64_t until_ns)
{
	for (;;) {
		enum { NOTHING, ACK, DEQUEUE, TIMER, CNP, SEND } what = NOTHING;
		uint64_t at_ns = until_ns, t;
		unsigned int who = 0;

		if (l->acked < l->dequeued && (t = l->ring[l->acked % LINK_RING].acked_ns) < at_ns) {
			at_ns = t;
			what = ACK;
		}
		if (l->dequeued < l->sent) {
			const struct link_packet *k = &l->ring[l->dequeued % LINK_RING];
			uint64_t from_ps = l->free_ps > k->sent_ns * 1000 ? l->free_ps : k->sent_ns * 1000;

			t = (from_ps + link_wire_ps(l, link_bytes(l, k))) / 1000;
			if (t < at_ns) {
				at_ns = t;
				what = DEQUEUE;
			}
		}
		for (unsigned int i = 0; i < l->flow_count; i++) {
			const struct link_flow *f = &l->flows[i];

			if (f->cc.deadline_ns < at_ns) {
				at_ns = f->cc.deadline_ns;
				what = TIMER;
				who = i;
			}
			if (f->cnp_pending && f->cnp_ns + l->cnp_gap_ns < at_ns) {
				at_ns = f->cnp_ns + l->cnp_gap_ns;
				what = CNP;
				who = i;
			}
			t = link_may_send_ns(l, f);
			if (t < at_ns) {
				at_ns = t;
				what = SEND;
				who = i;
			}
		}
		if (at_ns > l->now_ns)
			l->now_ns = at_ns;
		switch (what) {
		case NOTHING: return;
		case ACK: link_ack(l); break;
		case DEQUEUE: {
			const struct link_packet *k = &l->ring[l->dequeued % LINK_RING];
			uint64_t from_ps = l->free_ps > k->sent_ns * 1000 ? l->free_ps : k->sent_ns * 1000;

			l->free_ps = from_ps + link_wire_ps(l, link_bytes(l, k));
			link_dequeue(l);
			break;
		}
		case TIMER: cc_on_timer(&l->flows[who].cc, l->now_ns); break;
		case CNP: link_cnp(l, &l->flows[who]); break;
		case SEND: link_send(l, who); break;
		}
	}
}
