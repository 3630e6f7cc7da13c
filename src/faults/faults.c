/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules at work. A rule has a gate, which time or an amount opens, and an event that it waits for behind the gate; `until`
 * is when what it did ends. What it does to packets, requests and calls is answered at once; the rest are deeds, which wait
 * in `pending` until the caller takes them.
 *
 * Invariants: due_ns is no later than any time that a rule waits for; a deed that waits names a QP that lives, or none.
 */
#include "faults/faults.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/byteorder.h"
#include "base/prng.h"
#include "faults/qps.h"
#include "wire/mad.h"
#include "wire/opcode.h"
#include "wire/psn.h"

enum { PENDING_MAX = 128, MAD_AT = 20, BURST_SILENCE_NS = 10000000 };

struct rule {
	struct fault_rule r;
	uint32_t shown;    /* its index in the log */
	bool open;         /* the gate is */
	uint64_t next_ns;  /* when time opens it; UINT64_MAX: never again */
	uint64_t until_ns; /* when what it did ends; UINT64_MAX: it does not, or nothing is done */
	bool active;       /* SILENT, RATE: it holds */
	uint64_t amount;   /* of the gate's unit so far */
	uint64_t matched;  /* events that its filters let through */
	int32_t last_qp;   /* whom it did something to; NO_QP */
	struct prng prng;
	bool in_burst;
	uint64_t burst_ns; /* and when its last packet came */
};

struct pending {
	uint32_t rule;
	bool undo;
	int32_t qp; /* NO_QP: no QP; with `each`: the next to look at */
};

struct faults {
	struct alloc alloc;
	struct fault_log *log;
	int device;
	uint64_t opened_ns, due_ns;
	bool link_down, device_hangs, fatal, picks_out, sees_out;
	uint32_t count;
	struct rule rules[FAULT_RULES_MAX];
	struct pending pending[PENDING_MAX];
	uint32_t first, waiting;

	struct qps qps;
};

struct faults *faults_new(const struct alloc *alloc, struct fault_log *log, unsigned device, uint64_t now_ns)
{
	struct faults *f = alloc_get(alloc, sizeof(*f));

	if (!f)
		return NULL;
	f->alloc = *alloc;
	f->log = log;
	f->device = (int)device;
	f->opened_ns = now_ns;
	f->due_ns = UINT64_MAX;
	qps_init(&f->qps);
	return f;
}

void faults_free(struct faults *f)
{
	struct alloc alloc;

	if (!f)
		return;
	alloc = f->alloc;
	qps_fini(&f->qps, &alloc);
	alloc_put(&alloc, f, sizeof(*f));
}

/* ---- the log ---- */

static void log_begin(struct faults *f)
{
	atomic_store_explicit(&f->log->turn, atomic_load_explicit(&f->log->turn, memory_order_relaxed) | 1,
			      memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static void log_end(struct faults *f)
{
	atomic_store_explicit(&f->log->turn, atomic_load_explicit(&f->log->turn, memory_order_relaxed) + 1,
			      memory_order_release);
}

static void note(struct faults *f, struct rule *rule, const struct fault_qp *qp, enum fault_outcome outcome,
		 uint64_t now_ns)
{
	struct fault_log *log = f->log;

	log_begin(f);
	if (outcome != FAULT_UNDONE)
		log->rules[rule->shown].fired++;
	if (!rule->r.quiet)
		log->records[log->record_count++ % FAULT_RECORDS_MAX] = (struct fault_record){
			.time_ns = now_ns - f->opened_ns,
			.rule = rule->shown,
			.qp = qp ? qp->number : 0,
			.action = rule->r.action,
			.outcome = (uint8_t)outcome,
			.value = rule->r.value,
		};
	log_end(f);
}

/* ---- deeds ---- */

static void push(struct faults *f, struct rule *rule, bool undo, int32_t qp)
{
	if (f->waiting == PENDING_MAX)
		return;
	f->pending[(f->first + f->waiting++) % PENDING_MAX] =
		(struct pending){.rule = (uint32_t)(rule - f->rules), .undo = undo, .qp = qp};
}

static bool is_of_qp(const struct fault_rule *r)
{
	return r->action == FAULT_COMPLETE || r->action == FAULT_QP_ERROR || r->action == FAULT_QP_HANG ||
	       r->action == FAULT_QP_OVERFLOW;
}

static int32_t target(const struct faults *f, struct rule *rule)
{
	switch (rule->r.qps) {
	case FAULT_QP_NTH: return qps_find_number(&f->qps, rule->r.qp);
	case FAULT_QP_NUMBER: return qps_find(&f->qps, rule->r.qp);
	/* Drawn by the rule's own numbers. */
	case FAULT_QP_ANY: return f->qps.live ? qps_nth(&f->qps, prng_below(&rule->prng, f->qps.live)) : NO_QP;
	default: return f->qps.live ? 0 : NO_QP;
	}
}

static void begin(struct faults *f, struct rule *rule, uint64_t now_ns)
{
	rule->until_ns = rule->r.for_ns ? now_ns + rule->r.for_ns : UINT64_MAX;
	if (rule->until_ns < f->due_ns)
		f->due_ns = rule->until_ns;
}

/* What a rule does beside answering packets, requests and calls. qp: whose event it was; NO_QP: no QP's. */
static void act(struct faults *f, struct rule *rule, int32_t qp, uint64_t now_ns)
{
	begin(f, rule, now_ns);
	if (rule->r.action == FAULT_SILENT || rule->r.action == FAULT_RATE) {
		rule->active = true;
		note(f, rule, NULL, FAULT_DONE, now_ns);
		return;
	}
	if (!is_of_qp(&rule->r)) {
		push(f, rule, false, NO_QP);
		return;
	}
	/* Each and any are those whose event it was, if it was one's. */
	if (qp == NO_QP || rule->r.qps == FAULT_QP_NTH || rule->r.qps == FAULT_QP_NUMBER)
		qp = target(f, rule);
	rule->last_qp = qp;
	if (qp == NO_QP)
		note(f, rule, NULL, FAULT_NO_QP, now_ns);
	else
		push(f, rule, false, qp);
}

/* A rule of `each` without an event goes on with the QP behind. */
static bool goes_round(const struct fault_rule *r)
{
	return r->qps == FAULT_QP_EACH && r->event == ON_GATE && is_of_qp(r);
}

/* What packets feel from the moment when the deed is named. */
static void take_effect(struct faults *f, const struct fault_rule *r, bool undo, struct fault_qp *qp)
{
	switch (r->action) {
	case FAULT_LINK_DOWN: f->link_down = !undo; break;
	case FAULT_LINK_UP: f->link_down = false; break;
	case FAULT_DEVICE_HANG: f->device_hangs = !undo; break;
	case FAULT_DEVICE_FATAL: f->fatal = !undo; break;
	case FAULT_QP_HANG:
		if (qp)
			qp->hung = !undo;
		break;
	}
}

static void pop(struct faults *f)
{
	f->first = (f->first + 1) % PENDING_MAX;
	f->waiting--;
}

/* ---- queue pairs ---- */

void faults_qp_made(struct faults *f, uint32_t number, uint32_t qpn)
{
	qps_add(&f->qps, &f->alloc, number, qpn);
}

void faults_qp_peer(struct faults *f, uint32_t qpn, const uint8_t peer[16], uint32_t dest_qpn)
{
	int32_t i = qps_find(&f->qps, qpn);

	if (i != NO_QP)
		qps_set_peer(&f->qps, i, peer, dest_qpn);
}

void faults_qp_gone(struct faults *f, uint32_t qpn)
{
	int32_t i = qps_find(&f->qps, qpn);

	if (i == NO_QP)
		return;
	qps_remove(&f->qps, i);
	for (uint32_t k = 0; k < f->count; k++)
		if (f->rules[k].last_qp == i)
			f->rules[k].last_qp = NO_QP;
	for (uint32_t k = 0; k < f->waiting; k++) {
		struct pending *p = &f->pending[(f->first + k) % PENDING_MAX];

		if (p->qp == i && !goes_round(&f->rules[p->rule].r))
			p->qp = NO_QP;
	}
}

/* ---- gates ---- */

static void open_gate(struct faults *f, struct rule *rule, uint64_t now_ns)
{
	if (rule->r.event == ON_GATE) {
		act(f, rule, NO_QP, now_ns);
		return;
	}
	rule->open = true;
	/* Of a deed `for` says how long it lasts, not how long events are waited for. */
	if (rule->r.for_ns && (rule->r.action <= FAULT_DELAY || rule->r.action == FAULT_FAIL))
		begin(f, rule, now_ns);
}

static void end(struct faults *f, struct rule *rule, uint64_t now_ns)
{
	bool is_window = rule->r.event != ON_GATE && (rule->r.action <= FAULT_DELAY || rule->r.action == FAULT_FAIL);

	rule->until_ns = UINT64_MAX;
	if (is_window) {
		rule->open = false;
	} else if (rule->active) {
		rule->active = false;
		note(f, rule, NULL, FAULT_UNDONE, now_ns);
	} else if (!is_of_qp(&rule->r)) {
		push(f, rule, true, NO_QP);
	} else if (rule->last_qp != NO_QP) {
		push(f, rule, true, goes_round(&rule->r) ? 0 : rule->last_qp);
	}
}

/* Opens gates and ends what is over. */
static void tick(struct faults *f, uint64_t now_ns)
{
	f->due_ns = UINT64_MAX;
	for (uint32_t i = 0; i < f->count; i++) {
		struct rule *rule = &f->rules[i];

		if (rule->until_ns <= now_ns)
			end(f, rule, now_ns);
		if (rule->next_ns <= now_ns) {
			rule->next_ns = rule->r.gate == GATE_EVERY
						? now_ns + rule->r.gate_at - (now_ns - rule->next_ns) % rule->r.gate_at
						: UINT64_MAX;
			open_gate(f, rule, now_ns);
		}
		if (rule->until_ns < f->due_ns)
			f->due_ns = rule->until_ns;
		if (rule->next_ns < f->due_ns)
			f->due_ns = rule->next_ns;
	}
}

static inline void look(struct faults *f, uint64_t now_ns)
{
	if (now_ns >= f->due_ns)
		tick(f, now_ns);
}

static bool is_for_qp(const struct faults *f, const struct fault_rule *r, int32_t qp)
{
	if (r->qps == FAULT_QP_NTH)
		return qp != NO_QP && f->qps.at[qp].number == r->qp;
	return r->qps != FAULT_QP_NUMBER || (qp != NO_QP && f->qps.at[qp].qpn == r->qp);
}

/* So much of a unit has happened: gates that wait for it may open behind it. */
static void count(struct faults *f, enum fault_unit unit, int32_t qp, unsigned way, uint64_t amount, uint64_t now_ns)
{
	for (uint32_t i = 0; i < f->count; i++) {
		struct rule *rule = &f->rules[i];
		const struct fault_rule *r = &rule->r;
		uint64_t before = rule->amount;

		if ((r->gate != GATE_AFTER && r->gate != GATE_EACH) || r->unit != unit || !is_for_qp(f, r, qp) ||
		    (way && !(r->ways & way)))
			continue;
		rule->amount += amount;
		if (r->gate == GATE_AFTER ? before < r->gate_at && rule->amount >= r->gate_at
					  : before / r->gate_at != rule->amount / r->gate_at)
			open_gate(f, rule, now_ns);
	}
}

int faults_add(struct faults *f, const struct fault_script *s, uint64_t now_ns)
{
	uint32_t added = 0;

	for (uint32_t i = 0; i < s->count; i++)
		added += s->rules[i].device < 0 || s->rules[i].device == f->device;
	if (f->count + added > FAULT_RULES_MAX)
		return -ENOSPC;
	for (uint32_t i = 0; i < s->count; i++) {
		const struct fault_rule *r = &s->rules[i];
		struct rule *rule = &f->rules[f->count];
		struct fault_rule_report *shown = &f->log->rules[f->count];

		if (r->device >= 0 && r->device != f->device)
			continue;
		*rule = (struct rule){
			.r = *r, .shown = f->count, .next_ns = UINT64_MAX, .until_ns = UINT64_MAX, .last_qp = NO_QP};
		f->sees_out |= r->ways & FAULT_OUT;
		prng_init(&rule->prng, s->seed * 1000003 + f->count);
		log_begin(f);
		memcpy(shown->where, r->where, sizeof(shown->where));
		memcpy(shown->text, r->text, sizeof(shown->text));
		f->log->rule_count = ++f->count;
		log_end(f);
		if (r->gate == GATE_AT || r->gate == GATE_EVERY)
			rule->next_ns = now_ns + r->gate_at;
		else if (r->gate == GATE_OPEN)
			open_gate(f, rule, now_ns);
		if (rule->next_ns < f->due_ns)
			f->due_ns = rule->next_ns;
	}
	f->picks_out |= fault_script_picks_out(s);
	return 0;
}

/* ---- events ---- */

static double uniform(struct rule *rule)
{
	return (double)(prng_next(&rule->prng) >> 11) * 0x1p-53;
}

/*
 * A burst ends with each packet by 1 / burst, and begins so seldom that `chance` of all packets are in one. A silence
 * ends it, too: a sender that sends once a second would otherwise wait for as many seconds as the burst has packets.
 */
static bool is_drawn(struct rule *rule, uint64_t now_ns)
{
	double u = uniform(rule), share = rule->r.chance, length = rule->r.burst;

	if (length <= 1 || share >= 1)
		return u < share;
	rule->in_burst = rule->in_burst && now_ns < rule->burst_ns + BURST_SILENCE_NS;
	rule->burst_ns = now_ns;
	rule->in_burst = rule->in_burst ? u >= 1 / length : u < share / (1 - share) / length;
	return rule->in_burst;
}

/* An event that the filters let through: whether it is one that the rule acts on. */
static bool hits(struct faults *f, struct rule *rule, int32_t qp, uint64_t now_ns)
{
	const struct fault_rule *r = &rule->r;
	uint64_t n;

	if (!rule->open)
		return false;
	if (r->nth_per_qp) {
		if (qp == NO_QP)
			return false;
		n = ++f->qps.at[qp].counts[rule - f->rules];
	} else {
		n = ++rule->matched;
	}
	if (r->nth && (r->nth_again ? n % r->nth != 0 : n != r->nth))
		return false;
	if (r->has_chance && !is_drawn(rule, now_ns))
		return false;
	/* It acts once, unless something says otherwise. */
	if (!r->each && !r->has_chance && !r->nth_again && !r->nth_per_qp && rule->until_ns == UINT64_MAX)
		rule->open = false;
	return true;
}

static bool is_cm(const struct pkt *p, uint16_t attribute)
{
	return p->len >= MAD_AT + MAD_HEADER_LEN && (get_be32(p->data + 4) & 0xffffff) == GSI_QPN &&
	       get_be16(p->data + MAD_AT + 16) == attribute;
}

static bool has_opcode(const struct fault_rule *r, uint8_t opcode)
{
	return r->opcode < 0 || (r->opcode & OPCODE_WHOLE ? opcode == (r->opcode & 0xff)
							  : (opcode & 31) == r->opcode && opcode >> 5 != SVC_CNP);
}

/* A packet as the rules see it. */
struct seen {
	const struct pkt *pkt;
	unsigned way;
	const uint8_t *peer;
	int32_t qp;
	uint8_t opcode;
	uint16_t flags; /* F_ of the opcode */
	bool again;
};

static bool lets_through(const struct faults *f, const struct fault_rule *r, const struct seen *s)
{
	return r->ways & s->way && is_for_qp(f, r, s->qp) && (!r->has_peer || !memcmp(r->peer, s->peer, 16)) &&
	       has_opcode(r, s->opcode) && s->pkt->len >= r->size_above + (r->size_above > 0) &&
	       s->pkt->len < r->size_below && (!r->first || s->flags & F_START) && (!r->last || s->flags & F_END) &&
	       (!r->again || s->again) && (!r->cm || is_cm(s->pkt, r->cm));
}

/* A request whose PSN is not beyond all before it was sent before. */
static bool note_psn(struct faults *f, int32_t i, unsigned way, uint32_t psn)
{
	struct fault_qp *qp = &f->qps.at[i];
	unsigned k = way == FAULT_OUT;

	if (qp->psn_known[k] && psn_diff(psn, qp->psn_high[k]) <= 0)
		return true;
	qp->psn_high[k] = psn;
	qp->psn_known[k] = true;
	return false;
}

static int32_t qp_of(const struct faults *f, const struct pkt *p, bool out)
{
	uint32_t dqpn = get_be32(p->data + 4) & 0xffffff;

	if (!out)
		return qps_find(&f->qps, dqpn);
	/* A datagram names its sender (DETH); of the others it follows from the peer. */
	if (opcode_service(p->data[0]) == SVC_UD)
		return p->len >= 20 ? qps_find(&f->qps, get_be32(p->data + 16) & 0xffffff) : NO_QP;
	return qps_find_peer(&f->qps, p->flow->dst, dqpn);
}

static struct seen see(struct faults *f, const struct pkt *p, bool out)
{
	struct seen s = {
		.pkt = p, .way = out ? FAULT_OUT : FAULT_IN, .peer = out ? p->flow->dst : p->flow->src, .qp = NO_QP};
	const struct opcode_info *info;

	if (p->len < BTH_LEN)
		return s;
	s.opcode = p->data[0];
	info = opcode_info(s.opcode);
	s.flags = info ? info->flags : 0;
	s.qp = qp_of(f, p, out);
	if (s.qp != NO_QP && s.flags & F_REQUEST)
		s.again = note_psn(f, s.qp, s.way, get_be32(p->data + 8) & 0xffffff);
	return s;
}

static void spoil(struct rule *rule, struct fault_verdict *v)
{
	switch (rule->r.action) {
	case FAULT_DROP: v->drop = true; break;
	case FAULT_CORRUPT:
		v->corrupt = true;
		v->bit = prng_next(&rule->prng);
		break;
	case FAULT_MARK: v->mark = true; break;
	case FAULT_DOUBLE: v->doubled = true; break;
	case FAULT_SWAP: v->late = 1 + (uint32_t)(uniform(rule) * rule->r.late_max); break;
	case FAULT_DELAY:
		v->delay_ns += rule->r.delay_ns + (uint64_t)(uniform(rule) * (double)rule->r.jitter_ns);
		break;
	}
}

void faults_packet(struct faults *f, const struct pkt *p, bool out, uint64_t now_ns, struct fault_verdict *v)
{
	struct seen s;

	*v = (struct fault_verdict){0};
	look(f, now_ns);
	if (faults_stops(f)) {
		v->drop = true;
		return;
	}
	s = see(f, p, out);
	if (s.qp != NO_QP && f->qps.at[s.qp].hung)
		v->drop = true;
	for (uint32_t i = 0; i < f->count; i++) {
		struct rule *rule = &f->rules[i];
		const struct fault_rule *r = &rule->r;

		if (r->action == FAULT_SILENT && rule->active && r->ways & s.way && !memcmp(r->peer, s.peer, 16))
			v->drop = true;
		if (r->event != ON_PACKET || !lets_through(f, r, &s) || !hits(f, rule, s.qp, now_ns))
			continue;
		if (r->action > FAULT_DELAY) {
			act(f, rule, s.qp, now_ns);
			continue;
		}
		spoil(rule, v);
		note(f, rule, s.qp == NO_QP ? NULL : &f->qps.at[s.qp], FAULT_DONE, now_ns);
	}
	count(f, UNIT_PACKETS, s.qp, s.way, 1, now_ns);
	count(f, UNIT_BYTES, s.qp, s.way, p->len, now_ns);
}

uint64_t faults_rate_bps(const struct faults *f, bool out)
{
	uint64_t least = 0;

	for (uint32_t i = 0; i < f->count; i++) {
		const struct rule *rule = &f->rules[i];

		if (rule->r.action == FAULT_RATE && rule->active && rule->r.ways & (out ? FAULT_OUT : FAULT_IN) &&
		    (!least || rule->r.rate_bps < least))
			least = rule->r.rate_bps;
	}
	return least;
}

bool faults_stops(const struct faults *f)
{
	return f->link_down || f->device_hangs || f->fatal;
}

bool faults_is_dead(const struct faults *f)
{
	return f->fatal;
}

bool faults_hangs(const struct faults *f)
{
	return f->device_hangs;
}

bool faults_sees_out(const struct faults *f)
{
	return f->sees_out;
}

bool faults_picks_out(const struct faults *f)
{
	return f->picks_out;
}

struct fault_wr faults_wr(struct faults *f, uint32_t qpn, uint64_t now_ns)
{
	int32_t qp = qps_find(&f->qps, qpn);
	struct fault_wr answer = {0};

	look(f, now_ns);
	if (qp != NO_QP && f->qps.at[qp].status) {
		answer.status = f->qps.at[qp].status;
		f->qps.at[qp].status = 0;
		note(f, &f->rules[f->qps.at[qp].status_rule], &f->qps.at[qp], FAULT_DONE, now_ns);
	}
	for (uint32_t i = 0; i < f->count; i++) {
		struct rule *rule = &f->rules[i];
		const struct fault_rule *r = &rule->r;

		if (r->event != ON_WR || !is_for_qp(f, r, qp) || !hits(f, rule, qp, now_ns))
			continue;
		if (r->action != FAULT_FAIL && r->action != FAULT_COMPLETE) {
			act(f, rule, qp, now_ns);
			continue;
		}
		if (r->action == FAULT_FAIL)
			answer.err = (int)r->value;
		else
			answer.status = r->value;
		note(f, rule, qp == NO_QP ? NULL : &f->qps.at[qp], FAULT_DONE, now_ns);
	}
	count(f, UNIT_WR, qp, 0, 1, now_ns);
	return answer;
}

void faults_wait_wr(struct faults *f, const struct fault_deed *deed)
{
	int32_t qp = qps_find(&f->qps, deed->qpn);

	if (qp == NO_QP)
		return;
	f->qps.at[qp].status = deed->rule->value;
	f->qps.at[qp].status_rule = deed->rule_index;
}

int faults_call(struct faults *f, enum fault_call call, uint64_t now_ns)
{
	int err = 0;

	look(f, now_ns);
	for (uint32_t i = 0; i < f->count; i++) {
		struct rule *rule = &f->rules[i];
		const struct fault_rule *r = &rule->r;

		if (r->event != ON_CALL || r->call != call || !hits(f, rule, NO_QP, now_ns))
			continue;
		if (r->action != FAULT_FAIL) {
			act(f, rule, NO_QP, now_ns);
			continue;
		}
		err = (int)r->value;
		note(f, rule, NULL, FAULT_DONE, now_ns);
	}
	return err;
}

uint64_t faults_due_ns(const struct faults *f)
{
	return f->waiting ? 0 : f->due_ns;
}

bool faults_next(struct faults *f, uint64_t now_ns, struct fault_deed *deed)
{
	look(f, now_ns);
	while (f->waiting) {
		struct pending *p = &f->pending[f->first];
		struct rule *rule = &f->rules[p->rule];
		bool round = goes_round(&rule->r);
		int32_t qp = round ? qps_next(&f->qps, p->qp) : p->qp;

		*deed = (struct fault_deed){
			.action = rule->r.action, .undo = p->undo, .rule = &rule->r, .rule_index = p->rule};
		if (qp != NO_QP) {
			deed->qpn = f->qps.at[qp].qpn;
			deed->qp = f->qps.at[qp].number;
		}
		take_effect(f, &rule->r, p->undo, qp == NO_QP ? NULL : &f->qps.at[qp]);
		if (round && qp != NO_QP)
			p->qp = qp + 1;
		else
			pop(f);
		/* The QP is gone since, or the round is over. */
		if (qp != NO_QP || !is_of_qp(&rule->r))
			return true;
	}
	return false;
}

void faults_done(struct faults *f, const struct fault_deed *deed, enum fault_outcome outcome, uint64_t now_ns)
{
	struct fault_qp who = {.number = deed->qp};

	note(f, &f->rules[deed->rule_index], &who, outcome == FAULT_DONE && deed->undo ? FAULT_UNDONE : outcome,
	     now_ns);
}
