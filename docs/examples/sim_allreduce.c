/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A front end over libverbena-sim: a ring all-reduce, driven as ASTRA-sim drives its network back ends. Each rank is a
 * `struct network` with the calls that such a front end makes (its rank, the time, send, receive, schedule, finished), and an
 * algorithm above that knows nothing of Verbena. verbena-sim(1) says what a scenario is.
 *
 *     cc -o sim_allreduce sim_allreduce.c $(pkg-config --cflags --libs verbena-sim)
 *     ./sim_allreduce SCENARIO BYTES [COMPUTE_NS [FOLDER]] [-- KEY=VALUE...]
 *
 * Every rank has BYTES. Between two steps a rank computes for COMPUTE_NS. A folder gets the report.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <verbena/sim.h>

/* ---- the back end: what a front end sees of the network */

struct front_end {
	struct verbena_sim *sim;
	uint32_t finished; /* ranks */
};

struct network {
	struct front_end *front;
	uint32_t rank;
};

static double network_time_ns(const struct network *n)
{
	return (double)verbena_sim_now(n->front->sim) / 1000;
}

static void check(const struct front_end *f, int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "%s\n", verbena_sim_why(f->sim));
	exit(1);
}

static void network_send(struct network *n, uint32_t dst, uint64_t bytes, uint64_t tag, void (*done)(void *), void *arg)
{
	check(n->front, verbena_sim_send(n->front->sim, n->rank, dst, bytes, tag, done, arg));
}

static void network_receive(struct network *n, uint32_t src, uint64_t tag, void (*done)(void *), void *arg)
{
	check(n->front, verbena_sim_receive(n->front->sim, n->rank, src, tag, done, arg));
}

static void network_schedule(struct network *n, uint64_t delta_ns, void (*due)(void *), void *arg)
{
	check(n->front, verbena_sim_schedule(n->front->sim, delta_ns * 1000, due, arg));
}

static void network_notify_finished(struct network *n)
{
	n->front->finished++;
}

/* ---- the algorithm: 2 (n - 1) steps, in each of which a rank sends a part to the next one */

struct all_reduce {
	struct network network;
	uint32_t ranks, steps;       /* steps: of all */
	uint32_t sent, got, reduced; /* parts */
	uint64_t part_bytes, compute_ns, end_ps;
};

static void part_sent(void *arg);
static void part_arrived(void *arg);

static void send_part(struct all_reduce *a)
{
	network_send(&a->network, (a->network.rank + 1) % a->ranks, a->part_bytes, 0, part_sent, a);
}

static void await_part(struct all_reduce *a)
{
	network_receive(&a->network, (a->network.rank + a->ranks - 1) % a->ranks, 0, part_arrived, a);
}

static void end_when_all_is_done(struct all_reduce *a)
{
	if (a->sent < a->steps || a->reduced < a->steps)
		return;
	a->end_ps = verbena_sim_now(a->network.front->sim);
	network_notify_finished(&a->network);
}

static void part_sent(void *arg)
{
	struct all_reduce *a = arg;

	a->sent++;
	end_when_all_is_done(a);
}

static void part_reduced(void *arg)
{
	struct all_reduce *a = arg;

	if (++a->reduced < a->steps)
		send_part(a);
	end_when_all_is_done(a);
}

static void part_arrived(void *arg)
{
	struct all_reduce *a = arg;

	if (++a->got < a->steps)
		await_part(a);
	if (a->compute_ns)
		network_schedule(&a->network, a->compute_ns, part_reduced, a);
	else
		part_reduced(a);
}

static void start(struct all_reduce *a, struct front_end *f, uint32_t rank, uint64_t bytes, uint64_t compute_ns)
{
	uint32_t ranks = verbena_sim_ranks(f->sim);

	*a = (struct all_reduce){
		.network = {f, rank},
		.ranks = ranks,
		.steps = 2 * (ranks - 1),
		.part_bytes = bytes / ranks,
		.compute_ns = compute_ns,
	};
	if (!a->steps) {
		end_when_all_is_done(a);
		return;
	}
	await_part(a);
	send_part(a);
}

/* ---- the program */

static const char *argument(int argc, char **argv, int i, const char *otherwise)
{
	for (int k = 1; k <= i && k < argc; k++) {
		if (!strcmp(argv[k], "--"))
			return otherwise;
	}
	return i < argc ? argv[i] : otherwise;
}

static const char *const *settings(int argc, char **argv)
{
	for (int k = 1; k < argc; k++) {
		if (!strcmp(argv[k], "--"))
			return (const char *const *)argv + k + 1; /* the last one is NULL */
	}
	return NULL;
}

static int run(struct front_end *f, uint64_t bytes, uint64_t compute_ns)
{
	uint32_t ranks = verbena_sim_ranks(f->sim);
	struct all_reduce *all = calloc(ranks, sizeof(*all));
	uint64_t last_ps = 0;
	int end;

	if (!all)
		return 1;
	for (uint32_t i = 0; i < ranks; i++)
		start(&all[i], f, i, bytes, compute_ns);
	end = verbena_sim_run(f->sim, VERBENA_SIM_NEVER);
	for (uint32_t i = 0; i < ranks; i++)
		last_ps = all[i].end_ps > last_ps ? all[i].end_ps : last_ps;
	if (end != VERBENA_SIM_DONE || f->finished != ranks)
		fprintf(stderr, "%" PRIu32 " of %" PRIu32 " ranks finished: %s\n", f->finished, ranks,
			verbena_sim_why(f->sim));
	else
		printf("all-reduce of %" PRIu64 " bytes among %" PRIu32 " ranks: %" PRIu64 " ps; it is %.3f us\n",
		       bytes, ranks, last_ps, network_time_ns(&all[0].network) / 1000);
	free(all);
	return end != VERBENA_SIM_DONE || f->finished != ranks;
}

int main(int argc, char **argv)
{
	const char *folder = argument(argc, argv, 4, NULL);
	struct front_end f = {0};
	char why[4096];
	int status;

	if (!argument(argc, argv, 2, NULL)) {
		fprintf(stderr, "usage: sim_allreduce SCENARIO BYTES [COMPUTE_NS [FOLDER]] [-- KEY=VALUE...]\n");
		return 2;
	}
	f.sim = verbena_sim_open(argv[1], settings(argc, argv), why, sizeof(why));
	if (!f.sim) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	status = run(&f, strtoull(argv[2], NULL, 10), strtoull(argument(argc, argv, 3, "0"), NULL, 10));
	if (folder)
		check(&f, verbena_sim_report(f.sim, folder));
	verbena_sim_close(f.sim);
	return status;
}
