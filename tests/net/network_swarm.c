/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole simulations of scenarios drawn at random: small networks, every kind of traffic, and any
 * combination of features. Each run is checked against claims that hold for all runs:
 *
 *   - every invariant of the network holds after each event, and memory is given back (sanitizers check);
 *   - it ends with all bytes of all messages acknowledged, or names a possible reason why not;
 *   - every loss has a cause in the scenario; with PFC no switch loses data;
 *   - every retransmission has a cause;
 *   - a second run gives the same results.
 *
 *     network_swarm [FIRST [COUNT]]     one line for each scenario that fails its judgement
 */

#include <stdio.h>

#include "base/prng.h"
#include "cc/params.h"
#define TEST_OWN_MAIN
#include "support/sim_run.h"

enum { TEXT_MAX = 4096, EVENTS_MAX = 150000, CHECKED_EVENTS_MAX = 15000 };

struct drawn {
	char text[TEXT_MAX];
	size_t at;
	struct prng prng;
	bool veroce, pfc, hpcc_pfc, loss, down, overtakes, jitter, one_class, unmarked;
};

static uint64_t below(struct drawn *d, uint64_t n)
{
	return prng_below(&d->prng, n);
}

static bool one_in(struct drawn *d, uint64_t n)
{
	return !below(d, n);
}

__attribute__((format(printf, 2, 3))) static void say(struct drawn *d, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	d->at += (size_t)vsnprintf(d->text + d->at, TEXT_MAX - d->at, format, ap);
	va_end(ap);
	if (d->at >= TEXT_MAX)
		abort();
}

/* Returns how many hosts there are. */
static unsigned draw_topology(struct drawn *d)
{
	unsigned n = 2 + (unsigned)below(d, 5);

	switch (below(d, 6)) {
	case 0: say(d, "[topology]\nkind = star\nhosts = %u\n", n); return n;
	case 1: say(d, "[topology]\nkind = dumbbell\nhosts = %u\n", n); return 2 * n;
	case 2: say(d, "[topology]\nkind = parking-lot\nbottlenecks = %u\n", n); return n + 2;
	case 3: say(d, "[topology]\nkind = fat-tree\nk = 4\n"); return 16;
	case 4:
		say(d, "[topology]\nkind = two-dc\nsite = leaf-spine\nhosts = 2\nleaves = 2\nspines = 2\n"
		       "long_links = 2\n");
		return 8;
	default: say(d, "[topology]\nkind = leaf-spine\nhosts = %u\nleaves = 2\nspines = 3\n", n); return 2 * n;
	}
}

static void draw_links(struct drawn *d)
{
	static const char *const rates[] = {"1Gbps", "10Gbps", "100Gbps", "400Gbps"};
	static const char *const delays[] = {"0", "100ns", "1us", "10us"};
	static const char *const places[] = {"all", "host", "fabric"};

	say(d, "[link]\nrate = %s\ndelay = %s\nlong_delay = 10us\nlong_skew = 3us\n", rates[below(d, 4)],
	    delays[below(d, 4)]);
	if (one_in(d, 3))
		say(d, "fabric_rate = %s\n", rates[below(d, 4)]);
	if (one_in(d, 4)) {
		d->loss = true;
		say(d, "loss = 0.%u%%\nloss_place = %s\n", 1 + (unsigned)below(d, 9), places[below(d, 3)]);
	}
	if (one_in(d, 8)) {
		d->loss = true;
		say(d, "ge_bad = 0.1%%\nge_good = 20%%\nge_loss = 50%%\n");
	} else if (one_in(d, 8)) {
		d->loss = true;
		say(d, "corrupt = 0.2%%\n");
	}
	if (one_in(d, 8)) {
		d->loss = true;
		say(d, "lost = 0:%u,1:1\n", 1 + (unsigned)below(d, 50));
	}
	d->jitter = d->veroce && one_in(d, 8);
	if (d->jitter)
		say(d, "jitter = 3us\n");
	if (one_in(d, 8))
		say(d, "[failures]\ndegraded = 30%%\n");
	if (one_in(d, 10)) {
		d->down = true;
		say(d, "[failures]\ndown = 20%%\n");
	}
}

static void draw_switches(struct drawn *d)
{
	static const char *const routings[] = {"ecmp",      "flowlet",    "wecmp", "spray-random", "spray-round-robin",
					       "spray-two", "spray-least"};

	size_t routing = below(d, d->veroce ? 7 : 3);

	d->overtakes = routing == 1; /* a flow paused for longer than the gap may change its path */
	say(d, "[switch]\nrouting = %s\n", routings[routing]);
	if (one_in(d, 3))
		say(d, "latency = %uns\n", (unsigned)below(d, 1000));
	d->unmarked = one_in(d, 3);
	if (d->unmarked)
		say(d, "ecn = off\n");
	if (one_in(d, 3))
		say(d, "mark = enqueue\n");
	if (one_in(d, 4))
		say(d, "t_conv = %s\n", one_in(d, 2) ? "never" : "50us");
	d->pfc = one_in(d, 2);
	if (d->pfc) {
		d->hpcc_pfc = one_in(d, 2);
		say(d, "pfc = %s\nbuffer = %uMB\n", d->hpcc_pfc ? "hpcc" : "on", 8 + (unsigned)below(d, 25));
	} else {
		say(d, "buffer = %uKB\n", 200 + (unsigned)below(d, 4000));
		if (one_in(d, 4))
			say(d, "port_limit = %uKB\n", 20 + (unsigned)below(d, 100));
	}
	if (d->veroce && !d->pfc && one_in(d, 3))
		say(d, "trim = on\ntrim_queue = %uKB\n", 15 + (unsigned)below(d, 100));
}

static void draw_transport(struct drawn *d)
{
	static const char *const losses[] = {"fast", "base", "irn"};
	static const unsigned payloads[] = {256, 1000, 1024, 4096};
	enum cc_algorithm cc;

	do {
		cc = (enum cc_algorithm)below(d, CC_ALGORITHMS);
	} while ((d->veroce && cc_needs_int(cc)) || (d->unmarked && cc_needs_ecn(cc)));
	if (cc_needs_int(cc))
		say(d, "int = on\n"); /* of [switch], which is the section that we are in */
	say(d, "[cc]\nalgorithm = %s\n", cc_name(cc));
	if (one_in(d, 3))
		say(d, "window = on\n");
	say(d, "[transport]\nprotocol = %s\npayload = %uB\n", d->veroce ? "veroce" : "rocev2", payloads[below(d, 4)]);
	if (d->veroce) {
		say(d, "loss = %s\npaths = %u\nrx_window = %u\n", losses[below(d, 3)], 1 + (unsigned)below(d, 16),
		    128u << below(d, 10));
	} else if (one_in(d, 2)) {
		say(d, "ack_every = %u\n", 1 + (unsigned)below(d, 16));
	}
	if (one_in(d, 3))
		say(d, "header_bytes = 48B\nack_bytes = 60B\n");
	d->one_class = one_in(d, 3);
	if (d->one_class)
		say(d, "ack_class = data\n");
	if (one_in(d, 6))
		say(d, "cnp_gap_port = %uns\n", 1 + (unsigned)below(d, 20000));
	if (one_in(d, 3))
		say(d, "cnp_interval = 0\n");
	if (one_in(d, 4))
		say(d, "window = %uKB\n", 8 + (unsigned)below(d, 100));
	if (one_in(d, 4))
		say(d, "class = %u\n", 1 + (unsigned)below(d, 7));
	if (!cc_needs_ecn(cc) && one_in(d, 5))
		say(d, "ecn = off\n");
	if (d->veroce && one_in(d, 5))
		say(d, "flowlet_gap = %uus\n[cc]\nscope = path\n", (unsigned)below(d, 30));
}

static void draw_hosts(struct drawn *d)
{
	say(d, "[host]\n");
	if (one_in(d, 5))
		say(d, "idle_qps = %u\n", 1 + (unsigned)below(d, 20));
	if (one_in(d, 4))
		say(d, "post_delay = %uns\ncompletion_delay = %uns\n", (unsigned)below(d, 5000),
		    (unsigned)below(d, 5000));
	if (one_in(d, 4))
		say(d, "ack_delay = %uns\n", 1 + (unsigned)below(d, 5000));
	if (one_in(d, 4))
		say(d, "read_rate = %uGbps\n", 1 + (unsigned)below(d, 200));
	if (one_in(d, 4))
		say(d, "qp_cache = %u\nqp_miss = %uns\n", 1 + (unsigned)below(d, 10), (unsigned)below(d, 2000));
	if (!one_in(d, 6))
		return;
	say(d, "rx_drain = %uGbps\nrx_buffer = %uKB\n", 1 + (unsigned)below(d, 200),
	    (d->pfc ? 4000 : 50) + (unsigned)below(d, 1000));
	d->loss |= !d->pfc;
}

static void draw_workload(struct drawn *d, unsigned number, unsigned hosts)
{
	static const char *const collectives[] = {"all-to-all", "ring-allreduce", "moe", "permutation"};
	unsigned kb = 1 + (unsigned)below(d, 200);

	say(d, "[workload.w%u]\n", number);
	switch (below(d, 4)) {
	case 0: say(d, "kind = incast\nsize = %uKB\n", kb); break;
	case 1: say(d, "kind = %s\nsize = %uKB\n", collectives[below(d, 4)], kb * hosts / 4 + hosts); break;
	case 2:
		say(d, "kind = cdf\ncdf = FB_Hadoop\nload = %u%%\nflows = %u\n", 10 + (unsigned)below(d, 80),
		    1 + (unsigned)below(d, 30));
		return;
	default:
		say(d, "kind = flow\nsenders = 0\nreceivers = %u\nsize = %uB\n", 1 + (unsigned)below(d, hosts - 1),
		    1 + (unsigned)below(d, 500000));
	}
	if (one_in(d, 3))
		say(d, "qps = %u\n", 1 + (unsigned)below(d, 3));
	if (one_in(d, 3))
		say(d, "repeat = 2\ninterval = %s\nround_qps = %s\n", one_in(d, 2) ? "30us" : "0",
		    one_in(d, 2) ? "same" : "new");
	if (one_in(d, 4))
		say(d, "start = 5us\n");
	if (!d->one_class && one_in(d, 3))
		say(d, "class = %u\n", 1 + (unsigned)below(d, 7));
}

static void draw(struct drawn *d, uint64_t seed)
{
	unsigned hosts, workloads;
	bool checked;

	memset(d, 0, sizeof(*d));
	prng_init(&d->prng, seed);
	d->veroce = one_in(d, 2);
	hosts = draw_topology(d);
	draw_links(d);
	draw_switches(d);
	draw_transport(d);
	draw_hosts(d);
	workloads = 1 + (unsigned)below(d, 2);
	for (unsigned i = 0; i < workloads; i++)
		draw_workload(d, i, hosts);
	checked = one_in(d, 4); /* takes long */
	say(d, "[run]\nseed = %llu\ncheck = %s\nuntil = 20s\nevents = %u\n", (unsigned long long)below(d, 1000000),
	    checked ? "on" : "off", checked ? CHECKED_EVENTS_MAX : EVENTS_MAX);
}

/* ---- judgement ------------------------------------------------------------------------------------------- */

static const char *judge_end(const struct drawn *d, const struct results *r)
{
	if (!r->partial) {
		if (r->flows_done != r->flow_count)
			return "not all flows are done";
		for (uint32_t i = 0; i < r->flow_count; i++) {
			if (r->flows[i].fct_ps == RESULTS_NOT_DONE)
				return "a flow is not done";
			if (r->flows[i].received_bytes != r->flows[i].bytes)
				return "bytes are missing";
			if (results_bps(r->flows[i].bytes, r->flows[i].fct_ps) > r->host_rate_bps)
				return "a flow is faster than its host's link";
		}
		return NULL;
	}
	if (!strcmp(r->partial_why, "run.events were spent"))
		return NULL; /* a slow one */
	if (!strcmp(r->partial_why, "queue pairs broke: their flows never ended"))
		return d->loss || d->down || !d->pfc ? NULL : "a queue pair broke for nothing";
	if (!strcmp(r->partial_why, "run.until came before all flows were done"))
		/*
		 * To algorithms that use delay jitter is congestion, and some hardly recover from
		 * timeouts.
		 */
		return d->down || d->jitter || d->loss ? NULL : "it takes too long";
	return d->down ? NULL : "it came to a halt";
}

static const char *judge_loss(const struct drawn *d, const struct results *r)
{
	for (uint32_t i = 0; i < r->drop_count; i++) {
		const struct results_drop *p = &r->drops[i];
		bool expected = false;

		switch (p->reason) {
		case RESULTS_DROP_LOSS:
		case RESULTS_DROP_CORRUPT:
		case RESULTS_DROP_RX_BUFFER: expected = d->loss; break;
		case RESULTS_DROP_DOWN:
		case RESULTS_DROP_NO_ROUTE: expected = d->down; break;
		case RESULTS_DROP_BUFFER:
		case RESULTS_DROP_CONTROL_FULL: expected = !d->pfc || !p->class; break;
		case RESULTS_TRIMMED: expected = d->veroce && !d->pfc && p->class; break;
		case RESULTS_DROP_HEADROOM: /* HPCC's own is not computed from all that counts */
			expected = d->hpcc_pfc;
			break;
		default: break;
		}
		if (!expected)
			return results_reason_name(p->reason);
	}
	return NULL;
}

/* Without loss packets are repeated only by timers, which may fire in long queues. */
static const char *judge_recovery(const struct drawn *d, const struct results *r)
{
	if (r->drop_count || d->veroce || d->overtakes || r->partial)
		return NULL;
	if (r->recovery.naks)
		return "NAKs where nothing is lost or overtaken";
	if (r->recovery.timeouts && d->pfc)
		return "no patience with a queue that PFC keeps";
	if (r->recovery.retransmitted_packets && !r->recovery.timeouts)
		return "sent again for no reason";
	return NULL;
}

static uint64_t run(const char *text, const struct drawn *d, const char **wrong)
{
	struct sim_run s;
	uint64_t hash;

	sim_run_do(&s, text, NULL);
	hash = sim_hash(&s.results);
	*wrong = judge_end(d, &s.results);
	if (!*wrong)
		*wrong = judge_loss(d, &s.results);
	if (!*wrong)
		*wrong = judge_recovery(d, &s.results);
	sim_run_free(&s);
	return hash;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : 40;
	unsigned bad = 0;

	for (uint64_t seed = first; seed < first + count; seed++) {
		static struct drawn d;
		const char *wrong, *again;
		uint64_t hash;

		draw(&d, seed);
		fprintf(stderr, "%llu\r", (unsigned long long)seed); /* left behind by a run that aborts */
		hash = run(d.text, &d, &wrong);
		if (!wrong && seed % 8 == 0 && run(d.text, &d, &again) != hash)
			wrong = "another time other results";
		if (!wrong)
			continue;
		fprintf(stderr, "seed %llu: %s\n%s\n", (unsigned long long)seed, wrong, d.text);
		bad++;
	}
	return bad != 0;
}
