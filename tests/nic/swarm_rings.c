/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The swarm between two processes of one host: what memory between them adds that can go wrong. Rings come and go, and
 * packets go by the channel meanwhile; a host that is stopped lets a ring fill; payload that packets left out is taken
 * back under way; one process may not read the other.
 *
 * A lane that fails shows whether what was left out is taken back in time: its program writes over memory as soon as it
 * may, and none of that is ever seen at the other end. And what nobody may write to any more keeps its bytes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io/io.h"
#include "nic/swarm.h"

enum {
	SCRIBBLE = 0xa5,
	RUN = 64, /* so many such bytes in a row come from nowhere else */
	BYSTANDER_BYTES = 32 * 1024,
	UNREAD_NS = 30000,
	FLOOD_BYTES = 8192,
	FLOOD = 32 /* more of these than a ring holds */
};

static struct duo_host *some_host(struct swarm *s)
{
	return &s->d->host[below(s, DUO_SIDES)];
}

static void make(struct swarm *s, struct duo_host *from)
{
	duo_ring_make(from, chance(s, 75));
	s->ring_lost[from->side] = false;
}

/* The other host may learn it much later, and take what is still in the ring. */
static void lose(struct swarm *s, struct duo_host *from)
{
	if (!duo_ring_lose(from))
		return;
	s->ring_lost[from->side] = true;
	if (chance(s, 50))
		duo_run_for(s->d, below(s, 5000));
}

static void tell(struct swarm *s, struct duo_host *from)
{
	if (s->ring_lost[from->side])
		duo_ring_end(from);
	s->ring_lost[from->side] = false;
}

void rings_begin(struct swarm *s)
{
	duo_rings_open(s->d);
	for (int side = 0; side < DUO_SIDES; side++) {
		if (chance(s, 80))
			make(s, &s->d->host[side]);
	}
}

/* Of a pair that others have nothing to do with; but what is taken back is lost to them, too. */
static void bystanders(struct swarm *s)
{
	struct duo_options o = duo_options();
	struct duo_pair p = duo_connect(s->d, &o);
	struct duo_buf *a = duo_buf(p.a->host, BYSTANDER_BYTES, MR_LOCAL_WRITE | MR_REMOTE_READ);
	struct duo_buf *b = duo_buf(p.b->host, BYSTANDER_BYTES, MR_LOCAL_WRITE | MR_REMOTE_READ | MR_REMOTE_WRITE);
	struct duo_wr read = duo_read_wr(1, a, 0, BYSTANDER_BYTES, b, 0),
		      write = duo_write_wr(2, a, 0, BYSTANDER_BYTES, b, 0);
	bool closes = chance(s, 50);

	DUO_CHECK(s->d, duo_post(p.a, closes ? &read : &write));
	duo_run_for(s->d, below(s, 8000));
	if (closes)
		duo_buf_close(b);
	else
		DUO_CHECK(s->d, !duo_qp_to_state(p.a, QPS_ERR));
	duo_run_for(s->d, below(s, 8000));
	duo_qp_destroy(p.a);
	duo_qp_destroy(p.b);
	duo_buf_free(a);
	duo_buf_free(b);
}

/* Of another pair, to a host that is stopped; of packets that are too short to leave anything out. */
static void flood(struct swarm *s, struct duo_host *to)
{
	struct duo_options o = duo_options();
	struct duo_faults faults[DUO_SIDES];
	struct duo_buf *source, *target;
	struct duo_pair p;
	struct duo_qp *q;

	o.mtu = 512;
	p = duo_connect(s->d, &o);
	q = p.a->host == to ? p.b : p.a;
	source = duo_buf(q->host, FLOOD * FLOOD_BYTES, MR_LOCAL_WRITE);
	target = duo_buf(to, FLOOD * FLOOD_BYTES, MR_LOCAL_WRITE | MR_REMOTE_WRITE);
	duo_fill(source, prng_next(&s->prng));
	for (uint32_t i = 0; i < FLOOD; i++) {
		struct duo_wr w = duo_write_wr(i, source, i * FLOOD_BYTES, FLOOD_BYTES, target, i * FLOOD_BYTES);

		DUO_CHECK(s->d, duo_post(q, &w));
	}
	/* Without what makes it last. */
	memcpy(faults, s->d->faults, sizeof(faults));
	memset(s->d->faults, 0, sizeof(faults));
	duo_wait(s->d, &q->sent, FLOOD);
	memcpy(s->d->faults, faults, sizeof(faults));
	for (uint32_t i = 0; i < FLOOD; i++)
		duo_expect(s->d, &q->sent, i, WC_SUCCESS);
	DUO_CHECK(s->d, !memcmp(source->p, target->p, FLOOD * FLOOD_BYTES));
	duo_qp_destroy(p.a);
	duo_qp_destroy(p.b);
	duo_buf_free(source);
	duo_buf_free(target);
}

void rings_act(struct swarm *s)
{
	struct duo_host *h = some_host(s);

	switch (below(s, 8)) {
	case 0:
	case 1:
		duo_stop(h, s->d->now_ns + below(s, chance(s, 20) ? 2000000 : 100000));
		if (chance(s, 20))
			flood(s, h);
		break;
	case 2:
		/* RoCEv2's requester gives up after seven losses without progress. */
		if (chance(s, 30))
			lose(s, h);
		break;
	case 3: tell(s, h); break;
	case 4:
	case 5: make(s, h); break;
	case 6:
		if (chance(s, 30))
			duo_ring_blind(h);
		break;
	default: bystanders(s);
	}
}

void rings_calm(struct swarm *s)
{
	for (int side = 0; side < DUO_SIDES; side++)
		tell(s, &s->d->host[side]);
}

/* ---- lanes that fail ---- */

static void freeze(struct lane *l)
{
	if (l->frozen)
		return;
	l->frozen = malloc(l->target->len);
	memcpy(l->frozen, l->target->p, l->target->len);
}

/* The lane whose requests that QP executes. */
static struct lane *lane_to(struct swarm *s, const struct duo_qp *q)
{
	struct lane *l = s->lanes;

	while (l->to != q)
		l++;
	return l;
}

/* What a stopped host has not taken yet is in a ring, and what packets left out is not read. */
static void leave_unread(struct swarm *s, struct lane *l, struct duo_host *reader)
{
	for (uint64_t n = 1 + below(s, 8); n && swarm_post(s, l); n--)
		;
	/* Of a READ the request arrives. */
	if (reader == l->from->host)
		duo_run_for(s->d, 0);
	duo_stop(reader, s->d->now_ns + UNREAD_NS);
	duo_run_for(s->d, below(s, UNREAD_NS / 2));
}

void rings_kill(struct swarm *s, struct lane *l)
{
	switch (below(s, 3)) {
	case 0:
		leave_unread(s, l, l->to->host);
		DUO_CHECK(s->d, !duo_qp_to_state(l->from, QPS_ERR));
		freeze(lane_to(s, l->from));
		memset(l->source->p, SCRIBBLE, l->source->len);
		break;
	case 1:
		leave_unread(s, l, l->from->host);
		duo_buf_close(l->target);
		memset(l->target->p, SCRIBBLE, l->target->len);
		freeze(l);
		break;
	default:
		leave_unread(s, l, l->to->host);
		duo_buf_close(l->source);
		l->scribbles = true;
	}
}

void rings_check(struct swarm *s)
{
	for (uint32_t i = 0; i < s->lane_count; i++) {
		struct lane *l = &s->lanes[i];

		if (!l->scribbles || l->done < l->posted || qp_state(l->from->qp) != QPS_ERR)
			continue;
		memset(l->source->p, SCRIBBLE, l->source->len);
		l->scribbles = false;
	}
}

static bool is_scribbled(const struct duo_buf *b)
{
	uint64_t run = 0;

	for (uint64_t i = 0; i < b->len && run < RUN; i++)
		run = b->p[i] == SCRIBBLE ? run + 1 : 0;
	return run == RUN;
}

static void check_lane(struct swarm *s, struct lane *l)
{
	DUO_CHECK(s->d, !is_scribbled(l->inbox));
	DUO_CHECK(s->d, !is_scribbled(l->results));
	DUO_CHECK(s->d, l->frozen || !is_scribbled(l->target));
	if (l->frozen)
		DUO_CHECK(s->d, !memcmp(l->frozen, l->target->p, l->target->len));
	free(l->frozen);
	l->frozen = NULL;
}

/* ---- what it has come to ---- */

uint64_t rings_packets(const struct swarm *s)
{
	return duo_ring_counters(&s->d->host[DUO_A])->shm_tx_packets +
	       duo_ring_counters(&s->d->host[DUO_B])->shm_tx_packets;
}

void rings_end(struct swarm *s, struct rings_seen *seen)
{
	for (uint32_t i = 0; i < s->lane_count; i++)
		check_lane(s, &s->lanes[i]);
	for (int side = 0; side < DUO_SIDES; side++) {
		const struct io_counters *c = duo_ring_counters(&s->d->host[side]);

		/* Neither end writes nonsense. */
		DUO_CHECK(s->d, !c->shm_broken);
		seen->through += c->shm_rx_packets;
		seen->far += c->shm_tx_far;
		seen->unread += c->shm_far_failed;
		seen->full += c->shm_full;
	}
	seen->below += s->d->wire_count;
	seen->placed += s->d->placed;
}

/* It may be forbidden to all: refuse (tests/programs/refuse.c). */
static bool may_read(void)
{
	uint8_t byte = 0;
	struct iovec v = {&byte, 1};

	return process_vm_readv(getpid(), &v, 1, &v, 1, 0) == 1;
}

bool rings_saw_all(const struct rings_seen *n, bool veroce)
{
	bool reads = may_read();

	fprintf(stderr,
		"packets through rings %" PRIu64 ", by the channel %" PRIu64 "; payload left out of %" PRIu64
		", placed %" PRIu64 ", not read %" PRIu64 " times; rings full %" PRIu64 " times\n",
		n->through, n->below, n->far, n->placed, n->unread, n->full);
	if (!reads)
		return n->through && n->below && n->full && !n->far;
	return n->through && n->below && n->full && n->far && n->unread && (n->placed || !veroce);
}
