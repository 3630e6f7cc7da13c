/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop: let both nics send, collect what they completed, step the clock to the next arrival or
 * deadline, deliver or expire. The clock never goes back and moves only there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ipudp.h"
#include "base/siphash.h"
#include "nic/state.h"
#include "duo/duo.h"
#include "duo/duo_channel.h"
#include "transport/veroce/connection.h"
#include "wire/packet.h"
#include "wire/rocev2.h"
#include "wire/veroce.h"

void (*duo_fail_hook)(void);

#define PS_A_NS UINT64_C(1000)

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static void *grow(void *p, size_t *room, size_t size)
{
	*room = *room ? *room * 2 : 64;
	return must(realloc(p, *room * size));
}

/* ---- failing ------------------------------------------------------------------------------- */

void duo_dump(const struct duo *d, size_t last)
{
	static const char *const fates[] = {"", " DROP", " DELAY", " HOLD", " DUP", " CORRUPT", " CE"};
	size_t from = d->wire_count > last ? d->wire_count - last : 0;

	for (size_t i = from; i < d->wire_count; i++) {
		const struct duo_packet *p = &d->wire[i];

		fprintf(stderr, "%6" PRIu64 " %12.3f us %c %06x psn %06x %-22s len %4u%s%s", p->index,
			(double)p->sent_ns / 1000, "AB"[p->from], p -> bth.dqpn, p->bth.psn,
			p->info ? p->info->name : "?", p->payload_len, p->bth.ackreq ? " A" : "", fates[p->fate]);
		if (p->info && p->info->headers & H_AETH)
			fprintf(stderr, " syndrome %02x msn %06x", p->aeth.syndrome, p->aeth.msn);
		if (p->veroce)
			fprintf(stderr, " path %u msn %06x rqmsn %x po %x%s", p->path, p->msn, p->rqmsn, p->po,
				p->bth.retrans ? " R" : "");
		if (p->sack_count)
			fprintf(stderr, " sack %u: %06x+%u %" PRIx64 " %" PRIx64, p->sack_count, p->sack.start_psn,
				p->sack.valid_len, p->sack.bits[0], p->sack.bits[1]);
		if (p->info && p->info->headers & H_RETH)
			fprintf(stderr, " va %" PRIx64 "+%u", p->reth.va, p->reth.len);
		fprintf(stderr, "\n");
	}
}

_Noreturn void duo_fail(const struct duo *d, const char *file, int line, const char *what)
{
	enum { QPS_SHOWN = 64 };
	int shown = 0;

	if (d) {
		duo_dump(d, getenv("DUO_DUMP") ? strtoul(getenv("DUO_DUMP"), NULL, 0) : 60);
		fprintf(stderr, "seed %" PRIu64 ", now %.3f us\n", d->seed, (double)d->now_ns / 1000);
		for (const struct duo_qp *q = d->qps; q && shown < QPS_SHOWN; q = q->next, shown++)
			fprintf(stderr, "%c qp %06x type %d state %d sent %zu received %zu\n", "AB"[q->host->side],
				q -> qpn, q -> opt.type, qp_state(q->qp), q->sent.n, q->received.n);
	}
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	if (duo_fail_hook)
		duo_fail_hook();
	abort();
}

/* ---- trace ----------------------------------------------------------------------------------- */

static void trace_word(struct duo *d, uint64_t w)
{
	static const uint8_t key[16] = "trace";

	d->trace = siphash_u64(key, d->trace ^ w);
}

void duo_trace(struct duo *d, const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	trace_word(d, h);
}

/* ---- the channel ------------------------------------------------------------------------------- */

/* Takes the flight's bytes. Packets that arrive at the same time do so in the order sent. */
static void fly(struct duo *d, struct duo_flight f, uint64_t arrival_ns)
{
	struct duo_flight *copy = must(malloc(sizeof(*copy)));

	*copy = f;
	event_push(&d->flights, arrival_ns * PS_A_NS, 0, 0, d->flown++, copy);
	DUO_CHECK(d, !d->flights.out_of_memory);
}

bool duo_land(struct duo *d, uint64_t until_ns, struct duo_flight *f)
{
	const struct event *e =
		event_pop(&d->flights, until_ns < UINT64_MAX / PS_A_NS ? until_ns * PS_A_NS : UINT64_MAX);

	if (!e)
		return false;
	*f = *(struct duo_flight *)e->object;
	free(e->object);
	return true;
}

static void describe_veroce(struct duo_packet *p, const struct pkt *pkt)
{
	struct veroce_packet v;

	if (!veroce_decode(&v, pkt->data, pkt->len))
		return;
	p->veroce = true;
	p->path = (uint8_t)((pkt->flow->sport - DUO_SPORT_IPV4) % PATHS_MAX);
	p->info = v.info;
	p->bth = v.bth;
	p->payload_len = v.payload_len;
	p->msn = v.msn;
	p->rqmsn = v.rqmsn;
	p->po = v.po;
	if (v.info->headers & H_AETH)
		p->aeth = v.aeth;
	if (v.info->headers & H_RETH)
		p->reth = v.reth;
	p->sack_count = v.sack_count;
	if (v.sack_count)
		sacketh_decode(&p->sack, v.sacks);
}

static struct duo_packet describe(struct duo *d, enum duo_side from, const struct pkt *pkt)
{
	struct duo_packet p = {
		.index = d->wire_count,
		.sent_ns = d->now_ns,
		.from = from,
		.len = pkt->len,
		.train = pkt->train,
	};
	uint32_t header_len;

	if (pkt->flow->dport == VEROCE_UDP_PORT) {
		describe_veroce(&p, pkt);
		return p;
	}
	if (!opcode_judge_length(pkt->data, pkt->len, &p.info, &p.bth, &header_len, &p.payload_len))
		return p;
	if (p.info->headers & H_AETH)
		aeth_decode(&p.aeth, pkt->data + opcode_header_offset(p.info, H_AETH));
	if (p.info->headers & H_RETH)
		reth_decode(&p.reth, pkt->data + opcode_header_offset(p.info, H_RETH));
	return p;
}

/* A Middle packet that starts its message is found as its First. */
static bool has_opcode(const struct duo_packet *p, int opcode)
{
	bool starts = p->veroce && p->info && p->info->flags & F_MIDDLE && !p->po;

	return opcode == DUO_ANY || (p->info && opcode == p->bth.opcode - starts);
}

static bool matches(const struct duo_rule *r, const struct duo_packet *p)
{
	return (r->from == DUO_ANY || r->from == (int)p->from) && has_opcode(p, r->opcode) &&
	       (!r->match || r->match(p, r->arg));
}

static enum duo_fate faults_decide(struct duo *d, enum duo_side from, uint64_t *n)
{
	const struct duo_faults *f = &d->faults[from];
	uint64_t dice = prng_below(&d->prng, 1000000);
	const struct {
		uint32_t ppm;
		enum duo_fate fate;
		uint64_t n_max;
	} rows[] = {
		{f->drop_ppm, DUO_DROP, 0},
		{f->duplicate_ppm, DUO_DUPLICATE, f->delay_ns_max},
		{f->delay_ppm, DUO_DELAY, f->delay_ns_max},
		{f->corrupt_ppm, DUO_CORRUPT, DUO_CORRUPT_BITS},
		{f->ce_ppm, DUO_MARK_CE, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (dice < rows[i].ppm) {
			*n = prng_below(&d->prng, rows[i].n_max + 1);
			return rows[i].fate;
		}
		dice -= rows[i].ppm;
	}
	return DUO_PASS;
}

static enum duo_fate decide(struct duo *d, const struct duo_packet *p, uint64_t *n)
{
	enum duo_fate fate;

	if (d->script && d->script(d->script_ctx, p, &fate, n))
		return fate;
	for (size_t i = 0; i < d->rule_count; i++) {
		struct duo_rule *r = d->rules[i];

		if (r->off || !matches(r, p))
			continue;
		if (r->nth != DUO_ANY && r->seen++ != (uint64_t)r->nth)
			continue;
		r->hits++;
		*n = r->n;
		return r->fate;
	}
	return faults_decide(d, p->from, n);
}

/* Checks what a back end may rely on (base/pkt.h). */
static void check_trains(struct duo *d, const struct pkt *burst, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct pkt *p = &burst[i], *q = p + 1;

		DUO_CHECK(d, p->train >= 1 && p->train <= PKT_TRAIN_MAX && p->train <= n - i);
		DUO_CHECK(d, p->len >= BTH_LEN + ICRC_LEN && p->len % 4 == 0);
		DUO_CHECK(d, p->len <= DUO_PACKET_MAX);
		if (p->train == 1)
			continue;
		DUO_CHECK(d, q->train == p->train - 1);
		DUO_CHECK(d, memcmp(p->flow, q->flow, sizeof(*p->flow)) == 0);
		DUO_CHECK(d, q->data == p->data + p->len);
		DUO_CHECK(d, q->train == 1 ? q->len <= p->len : q->len == p->len);
		DUO_CHECK(d, q->ip_id == p->ip_id + 1);
	}
}

void duo_seal(const struct duo *d, enum duo_side to, struct pkt *pkt)
{
	uint32_t secret = 0;
	struct bth bth;
	const struct qp *qp;

	bth_decode(&bth, pkt->data);
	qp = qp_table_find(d->host[to].nic, bth.dqpn);
	if (pkt->flow->dport == VEROCE_UDP_PORT && !opcode_is_caps(bth.opcode) && qp)
		secret = qp->secret;
	icrc_seal(NULL, pkt, secret);
}

/* The secret with which a packet's sender seals it: the one that its QP got from the peer, or 0. */
static uint32_t secret_of(const struct duo *d, enum duo_side from, const struct pkt *pkt)
{
	struct bth bth;

	bth_decode(&bth, pkt->data);
	if (pkt->flow->dport != VEROCE_UDP_PORT || opcode_is_caps(bth.opcode))
		return 0;
	for (const struct duo_qp *q = d->qps; q; q = q->next) {
		const struct veroce *vr = q->qp ? q->qp->veroce : NULL;

		if (q->host == &d->host[from] && vr && q->qp->dest_qpn == bth.dqpn && vr->caps & CAPS_SEAL)
			return vr->peer_nonce;
	}
	return 0;
}

static bool is_sealed(struct duo *d, enum duo_side from, const struct pkt *pkt, uint16_t *ip_id)
{
	return icrc_check(&d->icrc, pkt, secret_of(d, from, pkt), ip_id);
}

static void check_sealed(struct duo *d, enum duo_side from, const struct pkt *pkt)
{
	uint16_t ip_id;

	DUO_CHECK(d, is_sealed(d, from, pkt, &ip_id));
	DUO_CHECK(d, ip_id == pkt->ip_id || pkt->flow->dst[0]);
}

/*
 * Flips a bit. A receiver does not know the IPv4 identification and takes any that explains the
 * ICRC, so 1 of 2^16 flips would pass; tests never make such flips.
 */
static void corrupt(struct duo *d, struct duo_flight *f, uint64_t bit)
{
	struct pkt pkt = {.data = f->data, .flow = &f->flow, .len = f->len};
	uint16_t ip_id;

	for (;; bit++) {
		bit %= (uint64_t)f->len * 8;
		f->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (!is_sealed(d, f->from, &pkt, &ip_id))
			return;
		f->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void release_held(struct duo *d, enum duo_side from, bool all)
{
	for (struct duo_flight **at = &d->held; *at;) {
		struct duo_flight *f = *at;

		if (!all && (f->from != from || --f->behind)) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		fly(d, *f, d->now_ns + d->latency_ns);
		free(f);
	}
}

/* A back end sends from the ports that it named, others for each IP version, and from no other. */
static void check_source_port(struct duo *d, const struct flow *flow)
{
	uint16_t first = flow_is_ipv4(flow) ? DUO_SPORT_IPV4 : DUO_SPORT_IPV6;

	if (!flow_has_udp(flow)) {
		DUO_CHECK(d, !flow->sport);
		return;
	}
	DUO_CHECK(d, flow->sport >= first && flow->sport < first + PATHS_MAX);
}

static struct duo_flight copy_flight(const struct duo_flight *f)
{
	struct duo_flight c = *f;

	c.data = must(malloc(f->len));
	memcpy(c.data, f->data, f->len);
	return c;
}

static void hold(struct duo *d, struct duo_flight f, uint64_t behind)
{
	struct duo_flight *h = must(malloc(sizeof(*h)));

	*h = f;
	h->behind = behind;
	h->next = d->held;
	d->held = h;
}

void duo_transmit(struct duo *d, enum duo_side from, const struct pkt *pkt)
{
	struct duo_packet p = describe(d, from, pkt);
	struct duo_flight f = {.from = from, .flow = *pkt->flow, .len = pkt->len};
	uint64_t n = 0, arrival = d->now_ns + d->latency_ns;

	DUO_CHECK(d, p.info);
	check_sealed(d, from, pkt);
	check_source_port(d, pkt->flow);
	p.pkt = pkt;
	p.fate = decide(d, &p, &n);
	p.pkt = NULL;
	if (p.veroce && d->path_ns[p.path] == UINT64_MAX)
		p.fate = DUO_DROP;
	else if (p.veroce)
		arrival += d->path_ns[p.path];
	trace_word(d, d->now_ns << 8 | (uint64_t)from << 4 | p.fate);
	duo_trace(d, pkt->data, pkt->len);
	if (d->wire_count == d->wire_room)
		d->wire = grow(d->wire, &d->wire_room, sizeof(p));
	d->wire[d->wire_count++] = p;
	if (d->tap)
		d->tap(d->tap_ctx, &p, pkt->data);
	if (p.fate == DUO_DROP) {
		release_held(d, from, false);
		return;
	}
	f.data = must(malloc(pkt->len));
	memcpy(f.data, pkt->data, pkt->len);
	switch (p.fate) {
	case DUO_HOLD: hold(d, f, n + 1); break;
	case DUO_DELAY: fly(d, f, arrival + n); break;
	case DUO_DUPLICATE:
		fly(d, copy_flight(&f), arrival);
		fly(d, f, arrival + n);
		break;
	case DUO_CORRUPT:
		corrupt(d, &f, n);
		fly(d, f, arrival);
		break;
	case DUO_MARK_CE:
		f.flow.tos |= 3;
		fly(d, f, arrival);
		break;
	default: fly(d, f, arrival);
	}
	release_held(d, from, false);
}

struct duo_host *duo_addressee(struct duo *d, const struct flow *flow)
{
	for (int s = 0; s < DUO_SIDES; s++) {
		for (int g = 0; g < DUO_GIDS; g++) {
			if (!memcmp(d->host[s].gids[g].raw, flow->dst, 16))
				return &d->host[s];
		}
	}
	return NULL;
}

static bool deliver(struct duo *d)
{
	struct duo_flight f;

	if (!duo_land(d, d->now_ns, &f))
		return false;

	struct duo_host *to = duo_addressee(d, &f.flow);
	/* Hides from the nic what a UDP socket hides. */
	struct pkt pkt = {.data = f.data, .flow = &f.flow, .len = f.len, .ip_id = 0xdead, .train = 1};

	pkt.waited_ns = to ? to->waits_ns : 0;
	if (to)
		nic_input(to->nic, &pkt, 1, duo_now(to));
	free(f.data);
	return true;
}

/* Asks for the place of the payload, and takes it there. False: it is not known. */
static bool place(struct duo *d, struct duo_host *to, const struct duo_flight *f, struct pkt *pkt, bool begins)
{
	struct pkt near = *pkt;
	struct flow flow = *pkt->flow;
	struct veroce_packet p;
	struct pkt_far far;
	uint8_t *spot;
	uint32_t at;
	uint16_t ip_id;

	if (!is_sealed(d, f->from, pkt, &ip_id) || flow.dport != to->nic->tp.decoder.veroce_port ||
	    !veroce_decode(&p, pkt->data, pkt->len) || p.payload_len < sizeof(far))
		return false;
	at = (uint32_t)(p.payload - pkt->data);
	flow.neighbour = (uint8_t)(1 + d->host[!to->side].slot);
	near.flow = &flow;
	near.far_at = (uint16_t)at;
	near.far_bytes = (uint16_t)p.payload_len;
	if (!nic_place(to->nic, &near, 1, begins, &spot))
		return false;
	far = (struct pkt_far){.from = spot};
	memcpy(spot, p.payload, p.payload_len);
	memset(pkt->data + at, 0xee, p.payload_len);
	memcpy(pkt->data + at, &far, sizeof(far));
	pkt->far_at = (uint16_t)at;
	pkt->far_bytes = (uint16_t)p.payload_len;
	d->placed++;
	return true;
}

enum { ROW_MAX = 64 };

/* Delivers packets of one host that have arrived, at most `max`. Their number. */
static size_t deliver_row(struct duo *d, size_t max)
{
	struct duo_flight f[ROW_MAX];
	struct pkt pkts[ROW_MAX];
	struct duo_host *to = NULL;
	bool placing = true;
	size_t n = 0, left = 0;

	for (; n < max && n < ROW_MAX && duo_land(d, d->now_ns, &f[n]); n++) {
		struct duo_host *host = duo_addressee(d, &f[n].flow);

		if (host != to && n) {
			fly(d, f[n], d->now_ns);
			break;
		}
		to = host;
		pkts[n] = (struct pkt){
			.data = f[n].data, .flow = &f[n].flow, .len = f[n].len, .ip_id = 0xdead, .train = 1};
	}
	for (size_t i = 0; to && i < n; i++)
		placing = placing && place(d, to, &f[i], &pkts[i], !i);
	for (size_t i = 0; i < n; i++) {
		bool lost = pkts[i].far_bytes && d->placed_lost && !prng_below(&d->prng, d->placed_lost);

		if (to && pkts[i].far_bytes)
			f[i].flow.neighbour = (uint8_t)(1 + d->host[!to->side].slot);
		if (!lost)
			pkts[left++] = pkts[i];
	}
	if (to)
		nic_input(to->nic, pkts, left, duo_now(to));
	for (size_t i = 0; i < n; i++)
		free(f[i].data);
	return n;
}

void duo_ground(struct duo *d)
{
	struct duo_flight f;

	release_held(d, DUO_A, true);
	while (duo_land(d, UINT64_MAX, &f))
		free(f.data);
}

/* ---- the loop ------------------------------------------------------------------------------------ */

static void step(struct duo *d)
{
	DUO_CHECK(d, d->steps_left);
	d->steps_left--;
}

bool duo_is_stopped(const struct duo_host *h)
{
	return h->stopped_until_ns > h->duo->now_ns;
}

static void maybe_reload(struct duo *d)
{
	uint64_t dice = d->reload_of ? prng_below(&d->reload_prng, d->reload_of) : DUO_SIDES;

	if (dice < DUO_SIDES)
		duo_reload(&d->host[dice]);
}

static bool pump(struct duo *d, struct duo_host *h)
{
	struct pkt burst[256];
	bool any = false;

	while (!duo_is_stopped(h)) {
		size_t max = d->burst, n;

		if (d->rings)
			duo_rings_look(h);
		maybe_reload(d);
		n = nic_output(h->nic, burst, max, duo_now(h));
		if (!n)
			return any;
		any = true;
		DUO_CHECK(d, n <= max);
		check_trains(d, burst, n);
		for (size_t i = 0; i < n; i++) {
			step(d);
			if (!d->rings)
				duo_transmit(d, h->side, &burst[i]);
		}
		if (d->rings)
			duo_rings_send(h, burst, n);
	}
	return any;
}

static void log_append(struct duo *d, struct cqe_log *log, const struct cqe *e, uint64_t clock_ns)
{
	if (log->n == log->room)
		log->e = grow(log->e, &log->room, sizeof(*e));
	log->e[log->n++] = *e;
	trace_word(d, e->wr_id);
	trace_word(d, (uint64_t)e->status << 32 | e->byte_len);
	trace_word(d, e->timestamp_ns - clock_ns);
}

static void drain(struct duo *d, struct cq *cq, struct cqe_log *log, const struct duo_qp *qp)
{
	const struct cqe *e;

	while ((e = cq_peek(cq, 0))) {
		DUO_CHECK(d, e->qp_owner == qp);
		DUO_CHECK(d, e->qpn == qp->qpn);
		log_append(d, log, e, qp->host->clock_ns);
		cq_consume(cq, 1);
	}
}

static void collect(struct duo *d)
{
	for (struct duo_qp *q = d->qps; q; q = q->next) {
		if (q->manual)
			continue;
		drain(d, q->send_cq, &q->sent, q);
		drain(d, q->recv_cq, &q->received, q);
	}
	for (int s = 0; s < DUO_SIDES; s++) {
		struct duo_host *h = &d->host[s];
		struct async_event e;
		struct cq *cq;

		while (nic_next_async_event(h->nic, &e)) {
			step(d);
			h->events = must(realloc(h->events, (h->event_count + 1) * sizeof(e)));
			h->events[h->event_count++] = e;
			trace_word(d, e.type);
		}
		while ((cq = nic_next_cq_event(h->nic))) {
			step(d);
			h->cq_events = must(realloc(h->cq_events, (h->cq_event_count + 1) * sizeof(struct cq *)));
			h->cq_events[h->cq_event_count++] = cq;
		}
	}
}

/* By the duo's clock. */
static uint64_t deadline(const struct duo_host *h)
{
	uint64_t at_ns = nic_deadline(h->nic);

	return at_ns == UINT64_MAX ? UINT64_MAX : at_ns > h->clock_ns ? at_ns - h->clock_ns : 0;
}

static uint64_t next_event(struct duo *d)
{
	uint64_t arrival_ps = event_next_ps(&d->flights);
	uint64_t next = arrival_ps == UINT64_MAX ? UINT64_MAX : arrival_ps / PS_A_NS;

	for (int s = 0; s < DUO_SIDES; s++) {
		const struct duo_host *h = &d->host[s];
		uint64_t t = duo_is_stopped(h) ? h->stopped_until_ns : deadline(h);

		if (t < next)
			next = t;
	}
	if (d->rings && duo_rings_next_ns(d) < next)
		next = duo_rings_next_ns(d);
	return next;
}

static void happen(struct duo *d)
{
	if (d->rings)
		duo_rings_happen(d);
	for (size_t n = 0, more = 1; !d->rings && n < d->batch && more; n += more)
		more = d->places ? deliver_row(d, d->batch - n) : deliver(d);
	for (int s = 0; s < DUO_SIDES; s++) {
		struct duo_host *h = &d->host[s];

		maybe_reload(d);
		if (deadline(h) <= d->now_ns && !duo_is_stopped(h))
			nic_expire(h->nic, duo_now(h));
	}
}

static void settle(struct duo *d)
{
	for (int s = 0; s < DUO_SIDES; s++)
		pump(d, &d->host[s]);
	collect(d);
}

/*
 * One turn. False: nothing more happens up to `until_ns`; time is then `until_ns`, unless that is
 * UINT64_MAX.
 */
static bool turn(struct duo *d, uint64_t until_ns)
{
	uint64_t next;

	step(d);
	settle(d);
	maybe_reload(d);
	next = next_event(d);
	if (next == UINT64_MAX && d->held) {
		release_held(d, DUO_A, true);
		return true;
	}
	if (next > until_ns || next == UINT64_MAX) {
		if (until_ns != UINT64_MAX)
			d->now_ns = until_ns;
		return false;
	}
	if (next > d->now_ns)
		d->now_ns = next;
	happen(d);
	return true;
}

void duo_stop(struct duo_host *h, uint64_t until_ns)
{
	h->stopped_until_ns = until_ns;
}

void duo_idle(struct duo *d)
{
	while (turn(d, UINT64_MAX))
		;
}

void duo_run_until(struct duo *d, uint64_t ns)
{
	while (turn(d, ns))
		;
}

void duo_run_for(struct duo *d, uint64_t ns)
{
	duo_run_until(d, d->now_ns + ns);
}

void duo_wait(struct duo *d, const struct cqe_log *log, size_t n)
{
	while (log->n < n) {
		bool more = turn(d, UINT64_MAX);

		DUO_CHECK(d, more || log->n >= n);
	}
}

/* ---- rules ---------------------------------------------------------------------------------------- */

struct duo_rule *duo_rule(struct duo *d, struct duo_rule rule)
{
	struct duo_rule *r = must(malloc(sizeof(*r)));

	DUO_CHECK(d, d->rule_count < sizeof(d->rules) / sizeof(d->rules[0]));
	*r = rule;
	d->rules[d->rule_count++] = r;
	return r;
}

struct duo_rule *duo_drop(struct duo *d, int from, int opcode, int nth)
{
	return duo_rule(d, (struct duo_rule){.from = from, .opcode = opcode, .nth = nth, .fate = DUO_DROP});
}

void duo_pass_all(struct duo *d)
{
	while (d->rule_count)
		free(d->rules[--d->rule_count]);
}

/* ---- looking back ---------------------------------------------------------------------------------- */

const struct duo_packet *duo_packet(const struct duo *d, int from, int opcode, size_t n)
{
	for (size_t i = 0; i < d->wire_count; i++) {
		const struct duo_packet *p = &d->wire[i];

		if ((from == DUO_ANY || from == (int)p->from) && has_opcode(p, opcode) && n-- == 0)
			return p;
	}
	return NULL;
}

size_t duo_count(const struct duo *d, int from, int opcode)
{
	size_t n = 0;

	while (duo_packet(d, from, opcode, n))
		n++;
	return n;
}

size_t duo_count_syndrome(const struct duo *d, int from, uint8_t syndrome)
{
	size_t count = 0;

	for (size_t i = 0; i < d->wire_count; i++) {
		const struct duo_packet *p = &d->wire[i];

		if (!p->info || p->bth.opcode != OP_RC_ACK)
			continue;
		if (from != DUO_ANY && from != (int)p->from)
			continue;
		count += syndrome ? p->aeth.syndrome == syndrome : aeth_kind(p->aeth.syndrome) == AETH_ACK;
	}
	return count;
}

const struct cqe *duo_expect_at(const struct duo *d, struct cqe_log *log, uint64_t wr_id, enum wc_status status,
				const char *file, int line)
{
	char what[128];

	if (log->taken == log->n) {
		snprintf(what, sizeof(what), "no completion where wr_id %" PRIu64 " was expected", wr_id);
		duo_fail(d, file, line, what);
	}

	const struct cqe *e = &log->e[log->taken++];

	if (e->wr_id != wr_id || e->status != status) {
		snprintf(what, sizeof(what), "wr_id %" PRIu64 " status %u where %" PRIu64 " with %u was expected",
			 e->wr_id, e->status, wr_id, status);
		duo_fail(d, file, line, what);
	}
	return e;
}

bool duo_had_event(const struct duo_host *h, enum event_type type, const void *owner)
{
	for (size_t i = 0; i < h->event_count; i++) {
		if (h->events[i].type == type && h->events[i].owner == owner)
			return true;
	}
	return false;
}

/* ---- packets of the test's own making ------------------------------------------------------------- */

struct flow duo_flow(const struct duo *d, enum duo_side to, uint8_t gid)
{
	struct flow f = {.sport = 49152, .dport = 4791, .ttl = 64};

	memcpy(f.src, d->host[!to].gids[gid].raw, 16);
	memcpy(f.dst, d->host[to].gids[gid].raw, 16);
	return f;
}

int duo_inject(struct duo *d, enum duo_side to, const struct flow *flow, const uint8_t *data, uint32_t len)
{
	uint8_t *copy = must(malloc(len ? len : 1));
	struct pkt pkt = {.data = copy, .flow = flow, .len = len, .train = 1};

	if (len)
		memcpy(copy, data, len);
	size_t whole = nic_input(d->host[to].nic, &pkt, 1, duo_now(&d->host[to]));

	free(copy);
	return whole ? 0 : -EBADMSG;
}

uint32_t duo_build(struct duo *d, enum duo_side to, uint8_t gid, struct bth *bth, const void *ext, uint32_t ext_len,
		   const void *payload, uint32_t payload_len, uint8_t buf[DUO_PACKET_MAX])
{
	struct flow flow = duo_flow(d, to, gid);
	struct pkt pkt = {.data = buf, .flow = &flow, .train = 1};

	bth->pad = (uint8_t)(-payload_len & 3);
	DUO_CHECK(d, BTH_LEN + ext_len + payload_len + 3 + ICRC_LEN <= DUO_PACKET_MAX);
	bth_encode(buf, bth);
	pkt.len = BTH_LEN;
	if (ext_len)
		memcpy(buf + pkt.len, ext, ext_len);
	pkt.len += ext_len;
	if (payload_len)
		memcpy(buf + pkt.len, payload, payload_len);
	pkt.len += payload_len;
	memset(buf + pkt.len, 0, bth->pad);
	pkt.len += bth->pad + ICRC_LEN;
	icrc_seal(NULL, &pkt, 0);
	return pkt.len;
}

int duo_forge(struct duo *d, enum duo_side to, uint8_t gid, struct bth *bth, const void *ext, uint32_t ext_len,
	      const void *payload, uint32_t payload_len)
{
	uint8_t buf[DUO_PACKET_MAX];
	struct flow flow = duo_flow(d, to, gid);
	uint32_t len = duo_build(d, to, gid, bth, ext, ext_len, payload, payload_len, buf);

	return duo_inject(d, to, &flow, buf, len);
}
