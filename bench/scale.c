/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of many queue pairs: two real nics, each with as many connected RC QPs as it has numbers
 * for, on a channel in memory and in virtual time.
 *
 *     scale [--qps N] [--seed N] [--mtu BYTES] [--wave QPS] [--runs N] [--protocol auto|veroce]
 *
 *     memory      bytes that one nic holds for each QP at rest, by purpose. Every QP sent
 *                 a message and took one before, so many of them together (a wave). The memory that
 *                 the nic's pool keeps has a line of its own; the last line is the same with all of
 *                 them together.
 *     set-up      a QP created and moved through INIT and RTR to RTS: wall clock, one thread.
 *     throughput  64 of the QPs, drawn anywhere among all of them, WRITE 64 KiB each again and
 *                 again; beside them 64 QPs alone in two fresh nics. Both ends are counted, in
 *                 bytes per second of processor time; runs alternate.
 *
 * A packet passes from nic to nic without a copy, so the figures contain the core's own work only.
 * The ends share one pair of buffers over all runs, so these are equally warm.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/prng.h"
#include "duo/duo.h"

#include "options.h"

enum {
	ACTIVE = 64,
	DEPTH = 4,
	MESSAGE_BYTES = 64 << 10,
	SMALL_BYTES = 64, /* of the messages that every QP sends once */
	MESSAGES = 64,    /* of each active QP in a run */
	WARM_UP_MESSAGES = 32,
	BATCH = 4096, /* QPs set up before the clock is read again */
	BURST = 2 * PKT_TRAIN_MAX,
	CQES = 4096,
	WINDOW_BYTES = 4 << 20,
	TURN_NS = 1000,
	MEMORY_BYTES = (ACTIVE + 1) * MESSAGE_BYTES /* the last one: messages that come once */
};

static const uint64_t rest_ns = 20000000, stalled_ns = UINT64_C(2000000000);

struct setting {
	uint32_t qps;
	uint32_t mtu;
	uint32_t wave;
	uint32_t runs;
	uint64_t seed;
	enum protocol protocol;
};

static _Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("scale: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void *own(size_t count, size_t bytes, const char *what)
{
	void *p = calloc(count, bytes);

	if (!p)
		die("out of memory: %zu bytes for %s", count * bytes, what);
	return p;
}

/* Of both ends: written from by A and to by B in the throughput runs. */
static uint8_t *memory[2];

/* ---- the two ends ---------------------------------------------------------------------------- */

/* A QP of A and its peer at B. */
struct conn {
	struct duo_qp *qp[DUO_SIDES];
	uint32_t slot; /* of the buffers */
	uint32_t depth;
	uint32_t left;     /* WRITEs that A still has to post */
	uint32_t writes;   /* completed at A */
	uint32_t sends;    /* completed at B */
	uint32_t receives; /* completed at A */
};

struct world {
	const struct setting *set;
	struct duo *duo;
	struct cq *cq[DUO_SIDES]; /* of all QPs */
	struct mr *mr[DUO_SIDES]; /* memory[] */
	struct conn *conns;
	uint32_t count;
	uint32_t *active;
	uint32_t active_count;
	uint64_t completions; /* of all kinds */
	struct prng prng;
};

static struct nic *nic_of(const struct world *w, int side)
{
	return w->duo->host[side].nic;
}

static void post(struct world *w, int side, uint32_t i, enum wr_opcode opcode, uint32_t bytes)
{
	struct conn *c = &w->conns[i];
	size_t offset = (size_t)c->slot * MESSAGE_BYTES;
	struct duo_wr wr = {
		.opcode = opcode,
		.flags = WR_SIGNALED,
		.wr_id = i,
		.sge = {{.addr = (uintptr_t)memory[side] + offset, .len = bytes, .lkey = w->mr[side]->key}},
		.num_sge = 1,
		.remote_va = (uintptr_t)memory[!side] + offset,
		.rkey = w->mr[!side]->key,
	};

	if (!duo_post(c->qp[side], &wr))
		die("the send queue of QP %u is full", i);
}

static void post_receive(struct world *w, uint32_t i)
{
	struct sge sge = {
		.addr = (uintptr_t)memory[DUO_A] + (size_t)ACTIVE * MESSAGE_BYTES,
		.len = SMALL_BYTES,
		.lkey = w->mr[DUO_A]->key,
	};

	if (!duo_post_recv(w->conns[i].qp[DUO_A], i, &sge, 1))
		die("the receive queue of QP %u is full", i);
}

static void complete(struct world *w, int side, const struct cqe *e)
{
	struct conn *c = &w->conns[e->wr_id];

	if (e->status != WC_SUCCESS)
		die("QP %" PRIu64 " of nic %c: a completion has status %u", e->wr_id, "AB"[side], e -> status);
	w->completions++;
	if (e->opcode & WC_RECV)
		c->receives++;
	else if (side)
		c->sends++;
	else
		c->writes++;
}

static void poll(struct world *w, int side)
{
	struct cq *cq = w->cq[side];
	const struct cqe *e;

	while ((e = cq_peek(cq, 0))) {
		uint32_t i = (uint32_t)e->wr_id;
		bool write = !side && !(e->opcode & WC_RECV);

		complete(w, side, e);
		cq_consume(cq, 1);
		if (write && w->conns[i].left) {
			w->conns[i].left--;
			post(w, 0, i, WR_WRITE, MESSAGE_BYTES);
		}
	}
}

/* ---- the channel ----------------------------------------------------------------------------- */

/* A burst of one nic into the other, and its bytes. */
static uint64_t carry(struct world *w, int from)
{
	struct pkt burst[BURST];
	size_t n = nic_output(nic_of(w, from), burst, BURST, w->duo->now_ns);
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		bytes += burst[i].len;
		burst[i].train = 1;
	}
	nic_input(nic_of(w, !from), burst, n, w->duo->now_ns);
	return bytes;
}

/* Time advances as if the link carried 100 Gbps, so that timers and round trips are plausible. */
static bool turn(struct world *w)
{
	uint64_t bytes = 0, took_ns;

	for (int side = 0; side < 2; side++) {
		if (nic_deadline(nic_of(w, side)) <= w->duo->now_ns)
			nic_expire(nic_of(w, side), w->duo->now_ns);
		bytes += carry(w, side);
		poll(w, 0);
		poll(w, 1);
	}
	took_ns = bytes * 8 / 100;
	w->duo->now_ns += took_ns > TURN_NS ? took_ns : TURN_NS;
	return bytes;
}

static void run_for(struct world *w, uint64_t ns)
{
	uint64_t until = w->duo->now_ns + ns;

	while (w->duo->now_ns < until) {
		uint64_t due[2];

		if (turn(w))
			continue;
		due[0] = nic_deadline(nic_of(w, 0));
		due[1] = nic_deadline(nic_of(w, 1));
		due[0] = due[1] < due[0] ? due[1] : due[0];
		if (due[0] > until)
			due[0] = until;
		if (due[0] > w->duo->now_ns)
			w->duo->now_ns = due[0];
	}
}

static void run_until_completed(struct world *w, uint64_t completions)
{
	uint64_t until = w->duo->now_ns + stalled_ns;

	while (w->completions < completions) {
		turn(w);
		if (w->duo->now_ns > until)
			die("stalled: %" PRIu64 " of %" PRIu64 " completions came", w->completions, completions);
	}
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const struct setting *tweaking; /* read by tweak() when a duo is made */

static void tweak(struct nic_config *c, enum duo_side side)
{
	c->transport.protocol = tweaking->protocol;
	c->transport.paths = PATHS_MAX;
	c->transport.window_bytes = WINDOW_BYTES;
	c->transport.ack_delay_ns = 20000;
	c->gid_count = 1;
}

static void host_open(struct world *w, int side)
{
	struct duo_host *h = &w->duo->host[side];
	int err = nic_mr_reg(h->nic, h->pd, (struct mr_range){memory[side], MEMORY_BYTES, (uintptr_t)memory[side]},
			     MR_LOCAL_WRITE | MR_REMOTE_WRITE, &w->mr[side]);

	if (!err)
		err = nic_cq_create(h->nic, CQES, h, &w->cq[side]);
	if (err)
		die("nic %c: no MR or CQ: %s", "AB"[side], strerror(-err));
}

static void must(const struct world *w, int side, uint32_t i, const char *what, int err)
{
	const struct heap *h = &w->duo->host[side].heap;

	if (!err)
		return;
	if (err == -ENOMEM)
		die("out of memory: QP %u of %u at nic %c, %s; the nic holds %" PRId64 " MiB", i, w->count, "AB"[side],
		    what, h -> bytes >> 20);
	die("QP %u of nic %c, %s: %s", i, "AB"[side], what, strerror(-err));
}

static void create(struct world *w, int side, uint32_t i)
{
	struct duo_options o = duo_options();
	struct conn *c = &w->conns[i];

	o.mtu = w->set->mtu;
	o.psn[DUO_A] = i;
	o.psn[DUO_B] = i + 1;
	o.access = MR_REMOTE_WRITE;
	o.max_rd_atomic = o.max_dest_rd_atomic = 0;
	o.cap = (struct qp_cap){.max_send_wr = c->depth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
	o.cq[side] = w->cq[side];
	c->qp[side] = duo_qp_create(&w->duo->host[side], &o);
}

static void bring_up(struct world *w, int side, uint32_t i)
{
	struct conn *c = &w->conns[i];

	must(w, side, i, "to INIT", duo_qp_to_init(c->qp[side]));
	must(w, side, i, "to RTR", duo_qp_to_rtr(c->qp[side], c->qp[!side]));
	must(w, side, i, "to RTS", duo_qp_to_rts(c->qp[side]));
}

/* QPs [from, to), both ends. Returns how long A's took, in seconds; negotiation comes after. */
static double connect_batch(struct world *w, uint32_t from, uint32_t to)
{
	double began;

	/* A names its peer in RTR, so the peer must exist before the clock starts. */
	for (uint32_t i = from; i < to; i++)
		create(w, 1, i);
	began = seconds(CLOCK_MONOTONIC);
	for (uint32_t i = from; i < to; i++) {
		create(w, 0, i);
		bring_up(w, 0, i);
	}
	began = seconds(CLOCK_MONOTONIC) - began;
	for (uint32_t i = from; i < to; i++)
		bring_up(w, 1, i);
	return began;
}

/* Different QPs anywhere among all. They get their own slots and longer send queues. */
static void draw_active(struct world *w)
{
	for (uint32_t n = 0; n < w->active_count;) {
		uint32_t i = (uint32_t)(prng_below(&w->prng, w->count));

		if (w->conns[i].depth == DEPTH)
			continue;
		w->conns[i].depth = DEPTH;
		w->conns[i].slot = n;
		w->active[n++] = i;
	}
}

static void world_open(struct world *w, const struct setting *set, uint32_t count)
{
	*w = (struct world){.set = set, .count = count, .active_count = count < ACTIVE ? count : ACTIVE};
	prng_init(&w->prng, set->seed);
	w->conns = own(count, sizeof(*w->conns), "the list of QPs");
	w->active = own(w->active_count, sizeof(*w->active), "the list of active QPs");
	for (uint32_t i = 0; i < count; i++)
		w->conns[i] = (struct conn){.depth = 1, .slot = ACTIVE};
	draw_active(w);
	tweaking = set;
	w->duo = duo_create(set->seed, tweak);
	host_open(w, DUO_A);
	host_open(w, DUO_B);
}

static void world_close(struct world *w)
{
	duo_destroy(w->duo); /* looks for leaks */
	free(w->conns);
	free(w->active);
}

/* ---- what is measured ------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts them. */
static double median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Every QP of A WRITEs to its peer and gets a SEND from it, `wave` QPs at a time. */
static void once_each(struct world *w, uint32_t wave)
{
	for (uint32_t i = 0; i < w->count; i++) {
		struct conn *c = &w->conns[i];

		c->writes = 0;
		c->sends = 0;
		c->receives = 0;
	}
	for (uint32_t from = 0; from < w->count; from += wave) {
		uint32_t n = w->count - from < wave ? w->count - from : wave;
		uint64_t wanted = w->completions + 3 * (uint64_t)n;

		for (uint32_t i = from; i < from + n; i++) {
			post_receive(w, i);
			post(w, 0, i, WR_WRITE, SMALL_BYTES);
			post(w, 1, i, WR_SEND, SMALL_BYTES);
		}
		run_until_completed(w, wanted);
		run_for(w, rest_ns);
	}
	for (uint32_t i = 0; i < w->count; i++) {
		const struct conn *c = &w->conns[i];

		if (c->writes != 1 || c->sends != 1 || c->receives != 1)
			die("QP %u has %u WRITE, %u SEND and %u receive completions, not one each", i, c->writes,
			    c->sends, c->receives);
	}
}

static size_t send_ring_bytes(const struct qp *qp)
{
	const struct sq *sq = qp_sq((struct qp *)qp);

	return ((size_t)sq->mask + 1) * sq->stride;
}

static size_t receive_ring_bytes(const struct qp *qp)
{
	const struct rq *rq = qp_rq((struct qp *)qp);

	return (size_t)rq->capacity * rq->stride + 2 * ((size_t)rq->mask + 1) * sizeof(*rq->posted);
}

static void measure_set_up(struct world *w)
{
	uint32_t batches = (w->count + BATCH - 1) / BATCH;
	double *rates = own(batches, sizeof(*rates), "the rates"), began, all, middle;

	began = seconds(CLOCK_MONOTONIC);
	for (uint32_t b = 0; b < batches; b++) {
		uint32_t from = b * BATCH;
		uint32_t n = w->count - from < BATCH ? w->count - from : BATCH;

		rates[b] = n / connect_batch(w, from, from + n);
		run_for(w, rest_ns);
	}
	all = seconds(CLOCK_MONOTONIC) - began;
	middle = median(rates, batches);
	printf("set-up      %10.0f QPs/s      median of %u batches of up to %u, %.0f to %.0f\n", middle, batches, BATCH,
	       rates[0], rates[batches - 1]);
	printf("            %10.0f pairs/s    both ends and what they tell each other\n\n", w->count / all);
	free(rates);
}

/* The printed rings are those of an idle QP: the active ones have longer send queues. */
static void measure_memory(struct world *w, const struct heap *empty)
{
	const struct heap *now = &w->duo->host[DUO_A].heap;
	struct heap connected = *now;
	size_t rings = 0, send = 0, receive = 0;
	double n = w->count, state, pool, state_lines, tables = (double)empty->bytes / n;

	for (uint32_t i = 0; i < w->count; i++) {
		const struct qp *qp = w->conns[i].qp[DUO_A]->qp;

		rings += send_ring_bytes(qp) + receive_ring_bytes(qp);
		if (w->conns[i].depth == 1) {
			send = send_ring_bytes(qp);
			receive = receive_ring_bytes(qp);
		}
	}
	once_each(w, w->set->wave);
	state = (double)(connected.bytes - empty->bytes - rings) / n;
	state_lines = (double)(connected.line_bytes - connected.bytes - (empty->line_bytes - empty->bytes)) / n;
	pool = ((double)now->bytes - (double)connected.bytes) / n;
	printf("memory      %10.1f B/QP       QP and engine state\n", state);
	printf("            %10.1f B/QP       what the nic's pool keeps after waves of %u QPs\n", pool, w->set->wave);
	printf("            %10.1f B/QP       its share of the nic itself, which has %" PRId64 " B\n", tables,
	       empty->bytes);
	printf("            %10.1f B/QP       core state: the sum of these\n", state + pool + tables);
	printf("            %10zu B/QP       send ring (1 WR of 1 SGE)\n", send);
	printf("            %10zu B/QP       receive ring (1 WR of 1 SGE)\n", receive);
	printf("            %10.1f B/QP       all of it\n", state + pool + tables + (double)(send + receive));
	printf("            %10.1f B/QP       lost to alignment beyond that, in %.2f blocks a QP\n\n", state_lines,
	       (double)(connected.blocks - empty->blocks) / n);
}

static void measure_memory_together(struct world *w)
{
	int64_t before = w->duo->host[DUO_A].heap.bytes;

	once_each(w, w->count);
	printf("memory      %10.1f B/QP       more that the pool keeps after all QPs at once\n\n",
	       ((double)w->duo->host[DUO_A].heap.bytes - (double)before) / w->count);
}

/* Each active QP makes that many WRITEs. */
static void write_all(struct world *w, uint32_t messages)
{
	uint64_t wanted = w->completions + (uint64_t)w->active_count * messages;

	for (uint32_t n = 0; n < w->active_count; n++) {
		struct conn *c = &w->conns[w->active[n]];

		c->writes = 0;
		c->left = messages;
		for (int d = 0; d < DEPTH && c->left; d++, c->left--)
			post(w, 0, w->active[n], WR_WRITE, MESSAGE_BYTES);
	}
	run_until_completed(w, wanted);
	for (uint32_t n = 0; n < w->active_count; n++) {
		if (w->conns[w->active[n]].writes != messages)
			die("QP %u completed %u of %u WRITEs", w->active[n], w->conns[w->active[n]].writes, messages);
	}
}

struct rate {
	double bytes;               /* a second of processor time */
	uint64_t sent, retransmits; /* packets of A */
};

static struct rate measure_rate(struct world *w)
{
	const struct nic_counters *n = nic_counters(nic_of(w, 0));
	uint64_t sent, retransmits;
	struct rate r;
	double began, took;

	/* The measured QPs have rested, and then reached their windows. */
	run_for(w, rest_ns);
	write_all(w, WARM_UP_MESSAGES);
	memset(memory[1], 0, MEMORY_BYTES);
	sent = n->tx_packets;
	retransmits = n->retransmits;
	began = seconds(CLOCK_THREAD_CPUTIME_ID);
	write_all(w, MESSAGES);
	took = seconds(CLOCK_THREAD_CPUTIME_ID) - began;
	r.sent = n->tx_packets - sent;
	r.retransmits = n->retransmits - retransmits;
	r.bytes = (double)w->active_count * MESSAGES * MESSAGE_BYTES / took;
	if (memcmp(memory[0], memory[1], (size_t)w->active_count * MESSAGE_BYTES) != 0)
		die("what was written is not what was sent");
	return r;
}

static struct rate measure_alone(const struct setting *set)
{
	struct world w;
	struct rate r;

	world_open(&w, set, set->qps < ACTIVE ? set->qps : ACTIVE);
	connect_batch(&w, 0, w.count);
	r = measure_rate(&w);
	world_close(&w);
	return r;
}

static void check_protocol(const struct world *w)
{
	for (int side = 0; side < 2; side++) {
		const struct nic_counters *n = nic_counters(nic_of(w, side));

		if (n->fallbacks || n->cq_overruns || n->completion_errors)
			die("nic %c: %" PRIu64 " QPs fell back to RoCEv2, %" PRIu64 " CQs overran, %" PRIu64
			    " completions failed",
			    "AB"[side], n -> fallbacks, n -> cq_overruns, n -> completion_errors);
	}
}

static void measure_throughput(struct world *among)
{
	const struct setting *set = among->set;
	uint32_t n = set->runs;
	double *rates = own(3 * (size_t)n, sizeof(*rates), "the rates");
	double *alone = rates + n, *ratios = alone + n;
	uint64_t packets = 0, retransmits = 0;
	double middle;

	for (uint32_t i = 0; i < n; i++) {
		struct rate a, b;

		/* They alternate in being first. */
		if (i % 2) {
			b = measure_alone(set);
			a = measure_rate(among);
		} else {
			a = measure_rate(among);
			b = measure_alone(set);
		}
		rates[i] = a.bytes;
		alone[i] = b.bytes;
		ratios[i] = a.bytes / b.bytes;
		packets += a.sent + b.sent;
		retransmits += a.retransmits + b.retransmits;
	}
	printf("throughput  %10.3f GB/s       64 active QPs among all, median of %u runs\n", median(rates, n) / 1e9, n);
	printf("            %10.3f GB/s       64 QPs alone\n", median(alone, n) / 1e9);
	middle = median(ratios, n);
	printf("            %10.3f            ratio, median; quartiles %.3f and %.3f\n", middle, ratios[n / 4],
	       ratios[n - 1 - n / 4]);
	printf("            %10" PRIu64 "            packets sent by A, %" PRIu64 " of them again\n\n", packets,
	       retransmits);
	free(rates);
}

/* ---- the command ----------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	struct setting set = {.qps = NIC_MAX_QP, .seed = 1, .mtu = 1024, .wave = 1024, .runs = 51};
	uint64_t protocol = PROTOCOL_AUTO;
	const struct option_row rows[] = {
		{0, "qps", OPTION_U32, &set.qps, ACTIVE + 1, NIC_MAX_QP, "N", NULL},
		{0, "seed", OPTION_U64, &set.seed, 0, UINT32_MAX, "N", NULL},
		{0, "mtu", OPTION_U32, &set.mtu, 256, 4096, "BYTES", NULL},
		{0, "wave", OPTION_U32, &set.wave, 1, NIC_MAX_QP, "QPS", NULL},
		{0, "runs", OPTION_U32, &set.runs, 1, UINT32_MAX, "N", NULL},
		{0, "protocol", OPTION_WORD, &protocol, 0, 0, "auto|veroce", NULL}, /* as enum protocol */
	};
	struct world w;
	struct heap empty;
	struct prng prng;

	if (options_read(argc, argv, rows, OPTION_COUNT(rows), "usage: scale [OPTION ...]\n") != argc ||
	    set.mtu & (set.mtu - 1))
		return 2;
	set.protocol = (enum protocol)protocol;
	for (int i = 0; i < argc; i++)
		printf("%s%c", argv[i], i + 1 < argc ? ' ' : '\n');
	printf("seed %" PRIu64 ", %u RC QPs in each of two nics, protocol %s, %u paths, PMTU %u, "
	       "%u active QPs, WRITEs of %u, %u at a time\n\n",
	       set.seed, set.qps, set.protocol == PROTOCOL_AUTO ? "auto" : "veroce", PATHS_MAX, set.mtu, ACTIVE,
	       MESSAGE_BYTES, DEPTH);
	fflush(stdout);

	prng_init(&prng, set.seed);
	for (int side = 0; side < 2; side++)
		memory[side] = own(1, MEMORY_BYTES, "the buffers");
	for (size_t i = 0; i < MEMORY_BYTES; i++)
		memory[0][i] = (uint8_t)prng_next(&prng);
	world_open(&w, &set, set.qps);
	empty = w.duo->host[DUO_A].heap;
	measure_set_up(&w);
	measure_memory(&w, &empty);
	measure_throughput(&w);
	measure_memory_together(&w);
	check_protocol(&w);
	world_close(&w);
	for (int side = 0; side < 2; side++)
		free(memory[side]);
	printf("every completion came once; what was written arrived\n");
	return 0;
}
