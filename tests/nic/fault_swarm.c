/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A seed writes a script of faults for each of two hosts (docs/faults.md), and the fault engine does them to simulated
 * packets, requests and queue pairs, as src/engine does to real ones. Whatever the scripts say:
 *
 *	each request completes once and in its turn, with success or an error, and after an error all are flushed;
 *	what has succeeded is in memory, and no byte changed that no request names;
 *	messages arrive once, in order and whole;
 *	when the scripts are gone, the queue pairs that are left go on, and those that failed work when they are connected anew;
 *	the same seed has the same packets and the same log of faults.
 *
 * usage: fault_swarm rocev2|veroce [SEED [COUNT]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duo/duo.h"
#include "faults/faults.h"

enum {
	PAIRS_MAX = 3,
	OPS = 60,   /* of a lane, while there are faults, */
	AFTER = 12, /* and behind them */
	SLOTS = OPS + AFTER,
	SLOT_BYTES = 5000,
	SCRIPT_BYTES = 1024,
	STEPS_MAX = 20 * 1000 * 1000,
	FOR_EVER_S = 1000
};

/* Requests one way. Each has a slot of its own at both ends. */
struct lane {
	struct duo_qp *from, *to;
	struct duo_buf *source, *target, *constant, *results, *inbox;
	struct {
		enum wr_opcode opcode;
		uint32_t len;
		enum wc_status fails; /* by the script; 0: it does not */
		enum wc_status status;
	} ops[SLOTS];
	uint32_t limit, posted, done;
	uint32_t messages[SLOTS]; /* the requests that are SENDs */
	uint32_t message_count, received, recv_posted;
	bool failed, recv_failed;
	bool overflows; /* completions of `from` may be lost */
};

static struct swarm {
	struct duo *d;
	struct prng prng;
	struct lane lanes[2 * PAIRS_MAX];
	uint32_t lane_count;
	struct faults *faults[DUO_SIDES];
	struct fault_log logs[DUO_SIDES];
	char scripts[DUO_SIDES][SCRIPT_BYTES];
} swarm;

static bool veroce;

static uint64_t below(uint64_t n)
{
	return prng_below(&swarm.prng, n);
}

/* ---- scripts ---- */

/* Each with a number from 1 on, at most the one beside it. */
static const struct {
	const char *text;
	uint32_t most;
} lines[] = {
	{"packet %u of each qp out drop", 60},
	{"packet %u of each qp in drop", 60},
	{"packet %u of each qp out corrupt", 60},
	{"packet %u of each qp in corrupt", 60},
	{"packet %u of each qp out double", 60},
	{"packet %u of each qp in swap", 60},
	{"packet %u of each qp out delay 90us", 60},
	{"packet %u of qp 1 out mark", 60},
	{"every %u packets in drop", 50},
	{"after %u packets when opcode ACK in drop", 50},
	{"after %u packets when retransmitted out drop", 9},
	{"after %u packets when last in double", 50},
	{"after %u packets when size above 1000 out drop", 50},
	{"chance %u%% in drop", 9},
	{"chance %u%% out swap", 20},
	{"chance %u%% in corrupt", 9},
	{"chance %u%% out double", 20},
	{"at %uus link down for 200us", 900},
	{"every %uus link down for 20us", 900},
	{"after %u packets link down for 300us", 200},
	{"after %u packets link down", 400},
	{"after %u packets device hang for 200us", 200},
	{"after %u wr device hang for 2ms", 60},
	{"after %u wr device fatal", 300},
	{"after %u wr qp any hang for 400us", 90},
	{"after %u wr qp any hang", 90},
	{"after %u wr qp any error", 90},
	{"at %uus qp 1 error", 900},
	{"after %u wr qp any overflow", 150},
	{"after %u wr qp any complete IBV_WC_RETRY_EXC_ERR", 90},
	{"wr %u qp any complete IBV_WC_LOC_PROT_ERR", 90},
	{"wr %u of qp 2 complete IBV_WC_REM_ACCESS_ERR", 30},
	{"wr %u of each qp complete IBV_WC_LOC_PROT_ERR", 60},
	{"wr %u fail ENOMEM", 90},
	{"every %u wr fail EAGAIN", 9},
};

static void script_write(char text[SCRIPT_BYTES])
{
	size_t n = (size_t)sprintf(text, "seed %u\n", 1 + (unsigned)below(1000));

	for (uint64_t rules = below(5); rules; rules--) {
		size_t i = below(sizeof(lines) / sizeof(lines[0]));

		n += (size_t)sprintf(text + n, lines[i].text, 1 + (unsigned)below(lines[i].most));
		n += (size_t)sprintf(text + n, "\n");
	}
}

static void faults_open(enum duo_side side)
{
	const struct fault_host host = {.devices = 1};
	static struct fault_script script;
	struct duo *d = swarm.d;
	char why[FAULT_WHY_BYTES] = "";

	script_write(swarm.scripts[side]);
	fault_script_init(&script);
	if (fault_script_read(&script, "script", swarm.scripts[side], strlen(swarm.scripts[side]), false, &host, why,
			      sizeof(why)))
		fprintf(stderr, "%s\n", why);
	DUO_CHECK(d, !why[0]);
	swarm.logs[side] = (struct fault_log){0};
	swarm.faults[side] = faults_new(&d->host[side].alloc, &swarm.logs[side], 0, d->now_ns);
	DUO_CHECK(d, swarm.faults[side] && !faults_add(swarm.faults[side], &script, d->now_ns));
}

/* ---- what they do to packets ---- */

static enum duo_fate fate_of(const struct fault_verdict *v, uint64_t *n)
{
	if (v->drop)
		return DUO_DROP;
	if (v->corrupt) {
		*n = v->bit % DUO_CORRUPT_BITS;
		return DUO_CORRUPT;
	}
	*n = v->late ? v->late : v->delay_ns;
	return v->doubled    ? DUO_DUPLICATE
	       : v->late     ? DUO_HOLD
	       : v->delay_ns ? DUO_DELAY
	       : v->mark     ? DUO_MARK_CE
			     : DUO_PASS;
}

/* The sender's faults first; the receiver's, if it still comes there. */
static bool decide(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	const enum duo_side ends[] = {p->from, p->from == DUO_A ? DUO_B : DUO_A};

	*fate = DUO_PASS;
	for (int i = 0; i < DUO_SIDES && *fate != DUO_DROP; i++) {
		struct faults *f = swarm.faults[ends[i]];
		struct fault_verdict v;
		enum duo_fate its;
		uint64_t its_n = 0;

		if (!f)
			continue;
		faults_packet(f, p->pkt, !i, swarm.d->now_ns, &v);
		its = fate_of(&v, &its_n);
		if (its != DUO_PASS) {
			*fate = its;
			*n = its_n;
		}
	}
	return true;
}

/* ---- to queue pairs and devices ---- */

static struct lane *lane_of(enum duo_side side, uint32_t qpn)
{
	for (uint32_t i = 0; i < swarm.lane_count; i++)
		if (swarm.lanes[i].from->host->side == side && swarm.lanes[i].from->qpn == qpn)
			return &swarm.lanes[i];
	return NULL;
}

static enum fault_outcome do_to_qp(enum duo_side side, const struct fault_deed *deed)
{
	struct lane *l = lane_of(side, deed->qpn);
	struct nic *nic = swarm.d->host[side].nic;
	struct qp *qp;

	DUO_CHECK(swarm.d, l);
	qp = l->from->qp;
	switch (deed->action) {
	case FAULT_COMPLETE:
		if (nic_qp_fail(nic, qp, (enum wc_status)deed->rule->value, swarm.d->now_ns))
			return FAULT_DONE;
		faults_wait_wr(swarm.faults[side], deed);
		return FAULT_WAITS;
	case FAULT_QP_ERROR: nic_qp_break(nic, qp, swarm.d->now_ns); return FAULT_DONE;
	case FAULT_QP_OVERFLOW: l->overflows = true; return nic_qp_overflow(nic, qp) ? FAULT_DONE : FAULT_ALREADY;
	default: nic_qp_hang(nic, qp, !deed->undo, swarm.d->now_ns); return FAULT_DONE;
	}
}

static void do_deeds(enum duo_side side)
{
	struct duo_host *h = &swarm.d->host[side];
	struct fault_deed deed;

	while (swarm.faults[side] && faults_next(swarm.faults[side], swarm.d->now_ns, &deed)) {
		enum fault_outcome outcome = FAULT_DONE;

		if (deed.qp)
			outcome = do_to_qp(side, &deed);
		else if (deed.action == FAULT_DEVICE_FATAL)
			nic_break_all(h->nic, swarm.d->now_ns);
		else if (deed.action == FAULT_DEVICE_HANG)
			duo_stop(h, deed.undo ? 0 : swarm.d->now_ns + (uint64_t)FOR_EVER_S * 1000000000);
		faults_done(swarm.faults[side], &deed, outcome, swarm.d->now_ns);
	}
}

static uint64_t due_ns(enum duo_side side)
{
	return swarm.faults[side] ? faults_due_ns(swarm.faults[side]) : UINT64_MAX;
}

/* Time passes, and what is due is done. */
static void pass(uint64_t ns)
{
	struct duo *d = swarm.d;

	for (uint64_t until_ns = d->now_ns + ns;;) {
		uint64_t next_ns = until_ns;

		do_deeds(DUO_A);
		do_deeds(DUO_B);
		if (d->now_ns == until_ns)
			return;
		for (int side = 0; side < DUO_SIDES; side++)
			if (due_ns(side) < next_ns)
				next_ns = due_ns(side) > d->now_ns ? due_ns(side) : d->now_ns + 1;
		/* What packets and requests bring about is done soon, too. */
		duo_run_until(d, next_ns < d->now_ns + 1000   ? next_ns
				 : next_ns > d->now_ns + 1000 ? d->now_ns + 1000
							      : next_ns);
	}
}

/* ---- lanes ---- */

static void lane_open(struct lane *l, struct duo_qp *from, struct duo_qp *to)
{
	struct duo_host *f = from->host, *t = to->host;
	const uint64_t bytes = (uint64_t)SLOTS * SLOT_BYTES;

	*l = (struct lane){.from = from, .to = to, .limit = OPS};
	l->source = duo_buf(f, bytes, 0);
	l->results = duo_buf(f, bytes, MR_LOCAL_WRITE);
	l->target = duo_buf(t, bytes, MR_LOCAL_WRITE | MR_REMOTE_WRITE);
	l->constant = duo_buf(t, bytes, MR_REMOTE_READ);
	l->inbox = duo_buf(t, bytes, MR_LOCAL_WRITE);
	duo_fill(l->source, 1);
	duo_fill(l->constant, 2);
	duo_fill(l->target, 3);
	duo_fill(l->results, 4);
	duo_fill(l->inbox, 5);
}

/* A request, unless the script refuses it. */
static bool post_one(struct lane *l)
{
	enum duo_side side = l->from->host->side;
	uint64_t at = (uint64_t)l->posted * SLOT_BYTES;
	struct fault_wr fault = {0};
	uint32_t i = l->posted;
	struct duo_wr w;

	if (i == l->limit || !sq_slot(qp_sq(l->from->qp), 0))
		return false;
	if (swarm.faults[side])
		fault = faults_wr(swarm.faults[side], l->from->qpn, swarm.d->now_ns);
	if (fault.err)
		return false;
	l->ops[i].len = (uint32_t)below(below(2) ? SLOT_BYTES + 1 : 100);
	switch (below(4)) {
	case 0: w = duo_read_wr(i, l->results, at, l->ops[i].len, l->constant, at); break;
	case 1: w = duo_send_wr(i, l->source, at, l->ops[i].len); break;
	default: w = duo_write_wr(i, l->source, at, l->ops[i].len, l->target, at);
	}
	if (fault.status)
		w = (struct duo_wr){
			.opcode = WR_LOCAL_INV, .flags = WR_FAILS | WR_SIGNALED, .wr_id = i, .rkey = fault.status};
	l->ops[i].opcode = w.opcode;
	l->ops[i].fails = (enum wc_status)fault.status;
	if (w.opcode == WR_SEND)
		l->messages[l->message_count++] = i;
	duo_must_post(l->from, w);
	l->posted++;
	return true;
}

static void post_recvs(struct lane *l)
{
	while (l->recv_posted < SLOTS &&
	       duo_recv(l->to, l->recv_posted, l->inbox, (uint64_t)l->recv_posted * SLOT_BYTES, SLOT_BYTES))
		l->recv_posted++;
}

/* The bytes of a slot: those of `after` up to len, or, if it may be in part, some of them; behind them those of before. */
static void check_slot(const struct duo_buf *buf, uint32_t slot, uint64_t before, uint64_t after, uint32_t len,
		       bool whole)
{
	for (uint64_t i = (uint64_t)slot * SLOT_BYTES, k = 0; k < SLOT_BYTES; i++, k++) {
		bool is_new = k < len && buf->p[i] == duo_filled(after, i);

		DUO_CHECK(swarm.d, is_new || (buf->p[i] == duo_filled(before, i) && (k >= len || !whole)));
	}
}

static void check_sent(struct lane *l)
{
	struct cqe_log *log = &l->from->sent;

	while (log->taken < log->n) {
		const struct cqe *e = &log->e[log->taken++];

		DUO_CHECK(swarm.d, e->wr_id == l->done && l->done < l->posted);
		DUO_CHECK(swarm.d, !l->failed || e->status == WC_WR_FLUSH_ERR);
		DUO_CHECK(swarm.d, e->status != WC_SUCCESS || !l->ops[l->done].fails);
		/* Of these two a script says which request they are for, and nothing else leads to them. */
		DUO_CHECK(swarm.d, (e->status != WC_LOC_PROT_ERR && e->status != WC_REM_ACCESS_ERR) ||
					   e->status == l->ops[l->done].fails);
		l->ops[l->done++].status = e->status;
		l->failed |= e->status != WC_SUCCESS;
	}
}

static void check_received(struct lane *l)
{
	struct cqe_log *log = &l->to->received;

	while (log->taken < log->n) {
		const struct cqe *e = &log->e[log->taken++];
		uint32_t op;

		DUO_CHECK(swarm.d, e->wr_id == l->received && l->received < l->recv_posted);
		DUO_CHECK(swarm.d, !l->recv_failed || e->status == WC_WR_FLUSH_ERR);
		l->recv_failed |= e->status != WC_SUCCESS;
		if (e->status == WC_SUCCESS) {
			DUO_CHECK(swarm.d, l->received < l->message_count);
			op = l->messages[l->received];
			DUO_CHECK(swarm.d, e->byte_len == l->ops[op].len &&
						   !memcmp(l->inbox->p + (uint64_t)l->received * SLOT_BYTES,
							   l->source->p + (uint64_t)op * SLOT_BYTES, e->byte_len));
		}
		l->received++;
	}
}

static void check_all(void)
{
	for (uint32_t i = 0; i < swarm.lane_count; i++) {
		check_sent(&swarm.lanes[i]);
		check_received(&swarm.lanes[i]);
	}
}

/* Each slot has what its request makes of it, and nothing else. */
static void check_memory(const struct lane *l)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		bool writes = i < l->posted && l->ops[i].opcode == WR_WRITE,
		     reads = i < l->posted && l->ops[i].opcode == WR_READ;
		bool whole = i < l->done && l->ops[i].status == WC_SUCCESS;

		check_slot(l->target, i, 3, 1, writes ? l->ops[i].len : 0, whole);
		check_slot(l->results, i, 4, 2, reads ? l->ops[i].len : 0, whole);
		check_slot(l->constant, i, 2, 2, 0, false);
		check_slot(l->source, i, 1, 1, 0, false);
	}
}

/* ---- the run ---- */

static void connect_pairs(void)
{
	uint32_t pairs = 1 + (uint32_t)below(PAIRS_MAX);

	for (uint32_t i = 0; i < pairs; i++) {
		struct duo_options o = duo_options();
		struct duo_pair p;

		o.gid = (uint8_t)below(DUO_GIDS);
		o.mtu = 256u << below(5);
		o.timeout = (uint8_t)(4 + below(5));
		o.retry_cnt = (uint8_t)(1 + below(7));
		o.min_rnr_timer = (uint8_t)(1 + below(8));
		o.psn[DUO_A] = 0xffffff - (uint32_t)below(100);
		o.cap.max_recv_wr = SLOTS;
		p = duo_connect(swarm.d, &o);
		lane_open(&swarm.lanes[swarm.lane_count++], p.a, p.b);
		lane_open(&swarm.lanes[swarm.lane_count++], p.b, p.a);
	}
	for (uint32_t i = 0; i < swarm.lane_count; i++) {
		struct lane *l = &swarm.lanes[i];
		struct faults *f = swarm.faults[l->from->host->side];

		post_recvs(l);
		faults_qp_made(f, i / 2 + 1, l->from->qpn);
		faults_qp_peer(f, l->from->qpn, l->to->host->gids[l->from->opt.gid].raw, l->to->qpn);
	}
}

/* The scripts are gone: links are up, and what hung goes on. */
static void heal(void)
{
	for (int side = 0; side < DUO_SIDES; side++) {
		faults_free(swarm.faults[side]);
		swarm.faults[side] = NULL;
		duo_stop(&swarm.d->host[side], 0);
	}
	for (uint32_t i = 0; i < swarm.lane_count; i++)
		nic_qp_hang(swarm.lanes[i].from->host->nic, swarm.lanes[i].from->qp, false, swarm.d->now_ns);
}

/* Everything posted completes, now that nothing is in the way. */
static void finish(void)
{
	duo_idle(swarm.d);
	check_all();
	for (uint32_t i = 0; i < swarm.lane_count; i++) {
		struct lane *l = &swarm.lanes[i];

		DUO_CHECK(swarm.d, l->done == l->posted || l->overflows);
		DUO_CHECK(swarm.d, !l->failed || qp_state(l->from->qp) == QPS_ERR);
		check_memory(l);
	}
}

static bool has_failed(const struct lane *l)
{
	return qp_state(l->from->qp) == QPS_ERR || qp_state(l->to->qp) == QPS_ERR;
}

/* What a program does that lost a connection. Its receives are posted again, in the slots of messages that have not come. */
static void connect_again(struct lane *there, struct lane *back)
{
	DUO_CHECK(swarm.d, !duo_qp_to_state(there->from, QPS_RESET) && !duo_qp_to_state(back->from, QPS_RESET));
	for (int i = 0; i < 2; i++) {
		struct lane *l = i ? back : there;

		l->message_count = l->received = l->recv_posted = 0;
		l->failed = l->recv_failed = false;
		DUO_CHECK(swarm.d, !duo_qp_to_init(l->from));
	}
	post_recvs(there);
	post_recvs(back);
	DUO_CHECK(swarm.d, !duo_qp_to_rtr(there->from, there->to) && !duo_qp_to_rtr(back->from, back->to));
	DUO_CHECK(swarm.d, !duo_qp_to_rts(there->from) && !duo_qp_to_rts(back->from));
}

static void go_on(void)
{
	for (uint32_t i = 0; i < swarm.lane_count; i += 2) {
		struct lane *l = &swarm.lanes[i];

		/* A CQ that has overrun is lost for good. */
		if (l[0].overflows || l[1].overflows)
			continue;
		if (has_failed(l))
			connect_again(&l[0], &l[1]);
		for (int k = 0; k < 2; k++)
			for (l[k].limit = l[k].posted + AFTER; post_one(&l[k]);)
				;
	}
	finish();
	for (uint32_t i = 0; i < swarm.lane_count; i++) {
		const struct lane *l = &swarm.lanes[i];

		DUO_CHECK(swarm.d, swarm.lanes[i & ~1u].overflows || swarm.lanes[i | 1].overflows ||
					   (!l->failed && !has_failed(l) && l->received == l->message_count));
	}
}

static void tweak(struct nic_config *c, enum duo_side side)
{
	c->transport.protocol = veroce ? PROTOCOL_VEROCE : PROTOCOL_ROCEV2;
}

static uint64_t run(uint64_t seed)
{
	uint64_t trace;

	swarm.lane_count = 0;
	prng_init(&swarm.prng, seed);
	swarm.d = duo_create(seed, tweak);
	swarm.d->steps_left = STEPS_MAX;
	faults_open(DUO_A);
	faults_open(DUO_B);
	connect_pairs();
	swarm.d->script = decide;
	for (uint64_t steps = 100 + below(400); steps; steps--) {
		struct lane *l = &swarm.lanes[below(swarm.lane_count)];

		for (uint64_t n = below(4); n && post_one(l); n--)
			;
		pass(below(below(20) ? 4000 : 200000));
		check_all();
	}
	heal();
	finish();
	go_on();
	trace = swarm.d->trace;
	duo_destroy(swarm.d);
	return trace;
}

static uint64_t current_seed;
static const char *program;

static void say_how_to_repeat(void)
{
	for (uint32_t i = 0; i < swarm.lane_count; i++) {
		const struct lane *l = &swarm.lanes[i];

		fprintf(stderr, "lane %06x->%06x: %u of %u done, %u messages, %u received\n", l->from->qpn, l->to->qpn,
			l->done, l->posted, l->message_count, l->received);
	}
	for (int side = 0; side < DUO_SIDES; side++)
		fprintf(stderr, "%c: %s", "AB"[side], swarm.scripts[side]);
	fprintf(stderr, "repeat: %s %s %" PRIu64 " 1\n", program, veroce ? "veroce" : "rocev2", current_seed);
	exit(1);
}

static uint64_t fired(void)
{
	uint64_t n = 0;

	for (int side = 0; side < DUO_SIDES; side++)
		for (uint32_t i = 0; i < swarm.logs[side].rule_count; i++)
			n += swarm.logs[side].rules[i].fired;
	return n;
}

int main(int argc, char **argv)
{
	static struct fault_log logs[DUO_SIDES];
	const char *env = getenv("VERBENA_SEED");
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : env ? strtoull(env, NULL, 0) : 1;
	uint64_t count = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	uint64_t faults = 0;

	program = argv[0];
	veroce = argc > 1 && !strcmp(argv[1], "veroce");
	duo_fail_hook = say_how_to_repeat;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (current_seed = seed; current_seed < seed + count; current_seed++) {
		printf("seed %" PRIu64 ": ", current_seed);
		fflush(stdout);
		uint64_t trace = run(current_seed);

		faults += fired();
		printf("%" PRIu64 " faults, trace %016" PRIx64 "\n", fired(), trace);
		memcpy(logs, swarm.logs, sizeof(logs));
		if (run(current_seed) != trace || memcmp(logs, swarm.logs, sizeof(logs))) {
			fprintf(stderr, "the same seed gave another trace, or other faults\n");
			say_how_to_repeat();
		}
	}
	printf("%" PRIu64 " seeds, %" PRIu64 " faults\n", count, faults);
	return count >= 10 && !faults;
}
