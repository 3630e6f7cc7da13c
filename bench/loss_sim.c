/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of loss: two real nics on a channel of given bandwidth, delay and random loss, in
 * virtual time.
 *
 *     loss_sim [--bytes N] [--seed N] [--loss PERCENT] [--bdp PACKETS] [--paths N] [--mtu BYTES]
 *              [--rtt MICROSECONDS] [--skew PERCENT] [--window BDPS] [--backlog PACKETS]
 *              [--loss-detection fast|base|irn|rocev2|all] [--order message|strong|weak] [--quick]
 *
 * Prints a table with one row for each combination of the options that are not given. WRITEs of 1
 * MiB follow each other; the window is 4 bandwidth-delay products, as veRoCE 4.2 requires, and only
 * the sender's own link slows it down. Data and acknowledgements have the same loss. Several paths
 * share the link; their delays are spread evenly over `skew` of the round trip, around `rtt`. A
 * host reads its link once in TURN_NS, so it takes packets in batches, as real hosts do.
 *
 * goodput is that of a run divided by that of the same run without loss; the ideal is 1 - loss.
 * spurious is the share of packets sent that arrived twice.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/prng.h"
#include "duo/duo.h"
#include "wire/icrc.h"

#include "options.h"

enum {
	MESSAGE_BYTES = 1 << 20,
	BUFFER_MESSAGES = 4, /* written over and over */
	POSTED_MAX = 128,
	BURST = 16, /* packets asked of a nic at a time */
	PACKET_MAX = 4096 + 128,
	IP_OVERHEAD = 20 + 8 + 38, /* IPv4, UDP, Ethernet with preamble and gap (veRoCE 1.2) */
	WRITE_OVERHEAD = 36 + ICRC_LEN,
	TURN_NS = 1000,
	PATIENCE = 10
};

static const uint64_t negotiation_ns = 20000000;

/* ---- what to run ----------------------------------------------------------------------------- */

static const char *const detections[] = {"fast", "base", "irn", "rocev2"};

enum { DETECTIONS = sizeof(detections) / sizeof(detections[0]), ROCEV2 = 3 };

struct setting {
	uint64_t bytes;
	uint64_t seed;
	uint64_t rtt_ns;
	double loss; /* probability */
	double skew;
	double window; /* BDPs */
	uint32_t bdp;  /* packets */
	uint32_t backlog;
	uint32_t paths;
	uint32_t mtu;
	uint32_t detection;
	enum rx_order order;
};

struct outcome {
	double bps;
	double packets, retransmits, duplicates;
	uint64_t timeouts, probes, path_timeouts, sacks, acks;
	bool failed;
};

/* ---- the channel ----------------------------------------------------------------------------- */

struct packet {
	struct packet *next;
	uint64_t arrival_ns;
	struct flow flow;
	uint32_t len;
	uint8_t data[PACKET_MAX];
};

struct fifo {
	struct packet *head, **tail;
};

/* One direction. Packets of one path stay in order. */
struct link {
	uint64_t free_ps; /* when the last packet put on it has left */
	struct prng prng;
	struct fifo path[PATHS_MAX];
};

struct end {
	struct nic *nic;
	struct duo_qp *qp;
	struct duo_buf *buf;
	struct link out;
	uint64_t next_ns; /* the earliest time of its next turn */
};

struct channel {
	const struct setting *set;
	struct duo *duo;
	struct end end[DUO_SIDES];
	double byte_ps;
	uint64_t backlog_ns; /* an end sends while fewer bytes than this wait for its link */
	uint64_t delay_ns[PATHS_MAX];
	struct packet *unused;
	uint64_t posted, done;
	uint64_t first_ns, last_ns;
	bool failed;
};

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static void put_on(struct channel *c, struct link *l, const struct pkt *pkt)
{
	uint32_t path = (uint32_t)(pkt->flow->sport - DUO_SPORT_IPV4) % c->set->paths;
	struct packet *p;

	if (l->free_ps < c->duo->now_ns * 1000)
		l->free_ps = c->duo->now_ns * 1000;
	l->free_ps += (uint64_t)((pkt->len + IP_OVERHEAD) * c->byte_ps);
	if ((double)(prng_next(&l->prng) >> 11) * 0x1p-53 < c->set->loss)
		return;
	p = c->unused;
	if (p)
		c->unused = p->next;
	else
		p = must(malloc(sizeof(*p)));
	p->next = NULL;
	p->arrival_ns = l->free_ps / 1000 + c->delay_ns[path];
	p->flow = *pkt->flow;
	p->len = pkt->len;
	assert(p->len <= PACKET_MAX);
	memcpy(p->data, pkt->data, pkt->len);
	*l->path[path].tail = p;
	l->path[path].tail = &p->next;
}

/* The path whose next packet arrives first, or NULL. */
static struct fifo *first_of(const struct channel *c, struct link *l)
{
	struct fifo *first = NULL;

	for (uint32_t i = 0; i < c->set->paths; i++) {
		struct fifo *f = &l->path[i];

		if (f->head && (!first || f->head->arrival_ns < first->head->arrival_ns))
			first = f;
	}
	return first;
}

static struct packet *take(struct fifo *f)
{
	struct packet *p = f->head;

	f->head = p->next;
	if (!f->head)
		f->tail = &f->head;
	return p;
}

/* ---- an end's turn ---------------------------------------------------------------------------- */

static void receive(struct channel *c, struct end *e, struct link *in)
{
	struct fifo *f;

	while ((f = first_of(c, in)) && f->head->arrival_ns <= c->duo->now_ns) {
		struct packet *p = take(f);
		struct pkt pkt = {.data = p->data, .flow = &p->flow, .len = p->len, .train = 1};

		nic_input(e->nic, &pkt, 1, c->duo->now_ns);
		p->next = c->unused;
		c->unused = p;
	}
}

static uint64_t free_ns(const struct channel *c, const struct end *e)
{
	uint64_t ns = e->out.free_ps / 1000;

	return ns > c->backlog_ns ? ns - c->backlog_ns : 0;
}

static void transmit(struct channel *c, struct end *e)
{
	struct pkt burst[BURST];
	size_t n;

	while (free_ns(c, e) <= c->duo->now_ns && (n = nic_output(e->nic, burst, BURST, c->duo->now_ns))) {
		for (size_t i = 0; i < n; i++)
			put_on(c, &e->out, &burst[i]);
	}
}

static void post(struct channel *c)
{
	struct end *a = &c->end[DUO_A], *b = &c->end[DUO_B];
	uint64_t offset = c->posted % BUFFER_MESSAGES * MESSAGE_BYTES;
	struct duo_wr w = duo_write_wr(c->posted++, a->buf, offset, MESSAGE_BYTES, b->buf, offset);

	DUO_CHECK(c->duo, duo_post(a->qp, &w));
}

static uint64_t messages(const struct channel *c)
{
	return (c->set->bytes + MESSAGE_BYTES - 1) / MESSAGE_BYTES;
}

static void work(struct channel *c)
{
	uint64_t window = (uint64_t)(c->set->window * c->set->bdp * c->set->mtu);
	uint64_t wanted = window / MESSAGE_BYTES + 4;
	const struct cqe *cqe;

	while ((cqe = cq_peek(c->end[DUO_A].qp->send_cq, 0))) {
		c->failed = c->failed || cqe->status != WC_SUCCESS;
		c->done++;
		c->last_ns = c->duo->now_ns;
		cq_consume(c->end[DUO_A].qp->send_cq, 1);
	}
	if (wanted > POSTED_MAX)
		wanted = POSTED_MAX;
	while (c->posted < messages(c) && c->posted - c->done < wanted)
		post(c);
}

static uint64_t turn_due(struct channel *c, int side)
{
	struct end *e = &c->end[side];
	struct fifo *f = first_of(c, &c->end[!side].out);
	uint64_t due = nic_deadline(e->nic);

	/* Something to send, but a busy link. */
	if (due < free_ns(c, e))
		due = free_ns(c, e);
	if (f && f->head->arrival_ns < due)
		due = f->head->arrival_ns;
	return due > e->next_ns ? due : e->next_ns;
}

static void turn(struct channel *c, int side)
{
	struct end *e = &c->end[side];

	e->next_ns = c->duo->now_ns + TURN_NS;
	receive(c, e, &c->end[!side].out);
	if (nic_deadline(e->nic) <= c->duo->now_ns)
		nic_expire(e->nic, c->duo->now_ns);
	if (side == 0 && c->first_ns)
		work(c);
	transmit(c, e);
}

static void run_until(struct channel *c, uint64_t until_ns)
{
	while (!c->failed && (!c->first_ns || c->done < messages(c))) {
		uint64_t due[2] = {turn_due(c, 0), turn_due(c, 1)};
		int side = due[1] < due[0];

		if (due[side] > until_ns)
			break;
		if (due[side] > c->duo->now_ns)
			c->duo->now_ns = due[side];
		turn(c, side);
	}
	if (c->duo->now_ns < until_ns && !c->first_ns)
		c->duo->now_ns = until_ns;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static uint32_t window_of_packets(double wanted)
{
	uint32_t n = RX_WINDOW_MIN;

	while (n < wanted && n < RX_WINDOW_MAX)
		n *= 2;
	return n;
}

static const struct setting *tweaking; /* read by tweak() when a duo is made */

static void tweak(struct nic_config *c, enum duo_side side)
{
	static const enum veroce_loss losses[] = {LOSS_FAST, LOSS_BASE, LOSS_IRN, 0};
	const struct setting *s = tweaking;

	c->transport.protocol = s->detection == ROCEV2 ? PROTOCOL_ROCEV2 : PROTOCOL_VEROCE;
	c->transport.veroce.loss = losses[s->detection];
	c->transport.veroce.order = s->order;
	c->transport.veroce.cc = VEROCE_CC_NONE;
	c->transport.paths = s->paths;
	c->transport.window_bytes = (uint32_t)(s->window * s->bdp * (s->mtu + WRITE_OVERHEAD));
	c->transport.veroce.rx_window = window_of_packets(s->window * s->bdp);
}

static void open_ends(struct channel *c)
{
	struct duo_options o = duo_options();
	struct duo_pair pair;

	tweaking = c->set;
	c->duo = duo_create(c->set->seed, tweak);
	o.mtu = c->set->mtu;
	o.psn[DUO_A] = o.psn[DUO_B] = 100;
	o.cap = (struct qp_cap){.max_send_wr = POSTED_MAX, .max_send_sge = 1};
	pair = duo_connect(c->duo, &o);
	c->end[DUO_A].qp = pair.a;
	c->end[DUO_B].qp = pair.b;
	for (int side = 0; side < DUO_SIDES; side++) {
		struct end *e = &c->end[side];

		e->nic = c->duo->host[side].nic;
		e->buf =
			duo_buf(&c->duo->host[side], BUFFER_MESSAGES * MESSAGE_BYTES, MR_LOCAL_WRITE | MR_REMOTE_WRITE);
		prng_init(&e->out.prng, c->set->seed ^ (uint64_t)(side + 1) << 32);
		for (int i = 0; i < PATHS_MAX; i++)
			e->out.path[i].tail = &e->out.path[i].head;
	}
}

static void free_packets(struct packet *p)
{
	while (p) {
		struct packet *next = p->next;

		free(p);
		p = next;
	}
}

static void destroy(struct channel *c)
{
	for (int side = 0; side < 2; side++) {
		for (int i = 0; i < PATHS_MAX; i++)
			free_packets(c->end[side].out.path[i].head);
	}
	free_packets(c->unused);
	duo_destroy(c->duo);
}

static struct outcome run(const struct setting *set)
{
	static struct channel c;
	const struct nic_counters *n;
	struct outcome out = {0};
	uint64_t packet_bytes = set->mtu + WRITE_OVERHEAD + IP_OVERHEAD;
	double packet_ns = (double)set->rtt_ns / set->bdp;

	c = (struct channel){.set = set};
	c.byte_ps = packet_ns * 1000 / (double)packet_bytes;
	c.backlog_ns = TURN_NS;
	if (set->backlog * packet_ns > TURN_NS)
		c.backlog_ns = (uint64_t)(set->backlog * packet_ns);
	for (uint32_t i = 0; i < set->paths; i++) {
		double place = set->paths > 1 ? (double)i / (set->paths - 1) - 0.5 : 0;

		c.delay_ns[i] = (uint64_t)((double)set->rtt_ns / 2 * (1 + set->skew * place));
	}
	open_ends(&c);
	run_until(&c, c.duo->now_ns + negotiation_ns);
	c.first_ns = c.duo->now_ns;
	work(&c);
	/* A run that takes many times as long as the wire needs ends here: its rate is known. */
	run_until(&c, c.first_ns + (uint64_t)(PATIENCE * packet_ns * (double)set->bytes / set->mtu));
	if (c.done)
		out.bps = (double)c.done * MESSAGE_BYTES * 8e9 / (double)(c.last_ns - c.first_ns);
	n = nic_counters(c.end[0].nic);
	out.packets = (double)n->tx_packets;
	out.retransmits = (double)n->retransmits;
	out.timeouts = n->timeouts;
	out.probes = n->tail_probes;
	out.path_timeouts = n->path_timeouts;
	n = nic_counters(c.end[1].nic);
	out.duplicates = (double)n->rx_duplicates;
	out.acks = n->acks_sent;
	out.sacks = n->sacks_sent;
	out.failed = c.failed;
	destroy(&c);
	return out;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const double losses[] = {0, 0.01, 0.02, 0.05, 0.10};
static const uint32_t bdps[] = {60, 1000};
static const uint32_t path_counts[] = {1, 16};

static void row(const struct setting *s, const struct outcome *o, double free_bps)
{
	printf("%-7s %5u %5u %5.1f %8.3f %8.4f %7.4f %8.4f %8" PRIu64 " %7" PRIu64 " %9" PRIu64 " %8" PRIu64
	       " %8" PRIu64 "%s\n",
	       detections[s->detection], s->bdp, s->paths, s->loss * 100, o->bps / 1e9,
	       free_bps > 0 ? o->bps / free_bps : 0, o->retransmits / o->packets, o->duplicates / o->packets,
	       o->timeouts, o->probes, o->path_timeouts, o->acks, o->sacks, o->failed ? " failed" : "");
	fflush(stdout);
}

/* One run without loss, and the others in proportion to it. */
static void rows(struct setting s, double loss)
{
	struct outcome o;
	double free_bps;

	s.loss = 0;
	o = run(&s);
	free_bps = o.bps;
	if (loss <= 0)
		row(&s, &o, free_bps);
	for (size_t i = 1; i < sizeof(losses) / sizeof(losses[0]) || loss > 0; i++) {
		s.loss = loss > 0 ? loss : losses[i];
		o = run(&s);
		row(&s, &o, free_bps);
		if (loss > 0)
			break;
	}
}

static void table(struct setting s, double loss, uint32_t bdp, uint32_t paths, uint64_t detection)
{
	for (size_t b = 0; b < sizeof(bdps) / sizeof(bdps[0]); b++) {
		if (bdp && b)
			break;
		for (size_t p = 0; p < sizeof(path_counts) / sizeof(path_counts[0]); p++) {
			if (paths && p)
				break;
			for (uint32_t d = 0; d < DETECTIONS; d++) {
				s.bdp = bdp ? bdp : bdps[b];
				s.paths = paths ? paths : path_counts[p];
				s.detection = d;
				if ((detection < DETECTIONS && detection != d) || (d == ROCEV2 && s.paths > 1))
					continue;
				rows(s, loss);
			}
		}
	}
}

int main(int argc, char **argv)
{
	struct setting s = {.bytes = 1000000000, .seed = 1, .skew = 0.5, .window = 4, .mtu = 1024};
	double loss = -1, skew = 50, rtt_us = 100, began = (double)clock();
	uint32_t bdp = 0, paths = 0;
	uint64_t detection = DETECTIONS, order = 0;
	bool quick = false;
	const struct option_row rows[] = {
		{0, "bytes", OPTION_U64, &s.bytes, 1, 1e18, "BYTES", NULL},
		{0, "seed", OPTION_U64, &s.seed, 0, 1e18, "N", NULL},
		{0, "loss", OPTION_REAL, &loss, 0, 100, "PERCENT", NULL},
		{0, "bdp", OPTION_U32, &bdp, 1, 1 << 20, "PACKETS", NULL},
		{0, "paths", OPTION_U32, &paths, 1, PATHS_MAX, "N", NULL},
		{0, "mtu", OPTION_U32, &s.mtu, 256, 4096, "BYTES", NULL},
		{0, "rtt", OPTION_REAL, &rtt_us, 0.001, 1e9, "MICROSECONDS", NULL},
		{0, "skew", OPTION_REAL, &skew, 0, 1000, "PERCENT", NULL},
		{0, "window", OPTION_REAL, &s.window, 1e-3, 1e3, "BDPS", NULL},
		{0, "backlog", OPTION_U32, &s.backlog, 0, 1 << 20, "PACKETS", NULL},
		{0, "loss-detection", OPTION_WORD, &detection, 0, 0, "fast|base|irn|rocev2|all", NULL},
		{0, "order", OPTION_WORD, &order, 0, 0, "message|strong|weak", NULL},
		{0, "quick", OPTION_FLAG, &quick, 0, 0, NULL, NULL},
	};

	if (options_read(argc, argv, rows, OPTION_COUNT(rows), "usage: loss_sim [OPTION ...]\n") != argc ||
	    s.mtu & (s.mtu - 1))
		return 2;
	s.bytes = quick ? 100000000 : s.bytes;
	s.rtt_ns = (uint64_t)(rtt_us * 1000);
	s.skew = skew / 100;
	s.order = (enum rx_order)order;
	for (int i = 0; i < argc; i++)
		printf("%s%c", argv[i], i + 1 < argc ? ' ' : '\n');
	printf("seed %" PRIu64 ", %" PRIu64 " bytes in WRITEs of %u, PMTU %u, round trip %.1f us, "
	       "window %.1f BDP, skew %.0f %%, backlog %u\n\n",
	       s.seed, s.bytes, MESSAGE_BYTES, s.mtu, (double)s.rtt_ns / 1000, s.window, s.skew * 100, s.backlog);
	printf("                   loss     Gbps  goodput  resent spurious timeouts  probes"
	       " path-outs     acks    sacks\n"
	       "loss by   bdp paths     %%          of free   share    share\n");
	table(s, loss / 100, bdp, paths, detection);
	printf("\n%.0f s of processor time\n", ((double)clock() - began) / CLOCKS_PER_SEC);
	return 0;
}
