/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares protocols by the clock on a machine whose speed swings by half within seconds: pairs of
 * processes take turns of some milliseconds, so that all of them meet the same phases.
 *
 *     turns [--verbena PATH] [--measure NAME] [--starts N] [--turns N] [--messages N] [--warm-up N]
 *           [--depth N] [--size BYTES] [--mtu BYTES] [NAME:VARIABLE=VALUE[,VARIABLE=VALUE...] ...]
 *
 * Each argument is a pair of processes that `verbena run` starts with these environment variables; pairs
 * of the same name count as one. The default is two pairs for each protocol. --measure: write, read,
 * send, rate, pingpong; the default is all of them. Where a process's pages lie changes its speed by a
 * few percent, so all pairs are started anew --starts times, with --turns turns each.
 *
 * The first messages of each turn do not count, because the caches still belong to another pair. The
 * output has, for each name, the median and the best tenth of its turns, and the median and the
 * quartiles, over the turns, of its speed divided by that of the first name. The ratio of the first
 * name's second pair to its first shows the accuracy.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "options.h"

enum {
	PAIRS_MAX = 8,
	VARIABLES_MAX = 16,
	RECEIVES = 256,
	SENDS_MAX = 512,
	PINGPONG_SENDS = 32, /* not known to be complete */
	POLL = 16,
	IDLE_TURNS = 3,   /* before the first that counts */
	BETWEEN_US = 300, /* for what is on the way when a turn ends */
	LIMIT_S = 20
};

enum op { OP_WRITE, OP_READ, OP_SEND, OP_PINGPONG };

struct measure {
	const char *name;
	enum op op;
	uint32_t size, mtu; /* bytes */
	uint32_t depth, warm_up, messages;
};

static const struct measure measures[] = {
	{"write", OP_WRITE, 1 << 20, 1024, 16, 3, 8},     {"read", OP_READ, 1 << 20, 1024, 16, 3, 8},
	{"send", OP_SEND, 1 << 20, 1024, 16, 3, 8},       {"rate", OP_WRITE, 64, 1024, 128, 1000, 10000},
	{"pingpong", OP_PINGPONG, 8, 1024, 1, 100, 1000},
};

enum { MEASURES = sizeof(measures) / sizeof(measures[0]), CLIENT = 0, SERVER = 1 };

struct end {
	_Atomic uint32_t steps; /* 1: the members below are set; 2: in RTS */
	uint32_t qpn, psn, rkey;
	uint64_t address;
	union ibv_gid gid;
	sem_t go;
};

/* Memory that all processes share. */
struct shared {
	struct measure m;
	bool over;
	double seconds; /* of the turn, by its client */
	sem_t done;
	struct end ends[PAIRS_MAX][2];
};

static struct shared *shared;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "turns: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
	exit(1);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- one end, in a process of its own ---------------------------------------------------------- */

static struct {
	struct end *us, *them;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	uint32_t sent, received; /* completions in this turn */
} end;

static void post_receive(void)
{
	struct ibv_sge sge = {(uintptr_t)end.memory, shared->m.size, end.mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	errno = ibv_post_recv(end.qp, &wr, &bad);
	if (errno)
		die("ibv_post_recv");
}

static void post(void)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND, IBV_WR_SEND};
	struct ibv_sge sge = {(uintptr_t)end.memory, shared->m.size, end.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcodes[shared->m.op],
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {end.them->address, end.them->rkey}},
			   *bad;

	errno = ibv_post_send(end.qp, &wr, &bad);
	if (errno)
		die("ibv_post_send");
}

static void poll_cq(int most)
{
	struct ibv_wc wc[POLL];
	int n = ibv_poll_cq(end.cq, most, wc);

	errno = 0;
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			die(ibv_wc_status_str(wc[i].status));
		if (wc[i].opcode & IBV_WC_RECV) {
			end.received++;
			post_receive();
		} else {
			end.sent++;
		}
	}
}

static uint8_t gid_index(struct ibv_context *context)
{
	static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

	for (uint8_t i = 0; i < UINT8_MAX; i++)
		if (!ibv_query_gid(context, 1, i, &end.us->gid) && !memcmp(end.us->gid.raw, loopback, 16))
			return i;
	errno = 0;
	die("the device has no GID for 127.0.0.1");
}

static enum ibv_mtu mtu_of(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	for (; bytes > 256; bytes /= 2)
		mtu++;
	return mtu;
}

static void create(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {SENDS_MAX, RECEIVES, 1, 1, 0}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned)access};
	uint8_t gid;

	end.memory = mmap(NULL, shared->m.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!pd || end.memory == MAP_FAILED)
		die("no device, no PD or no memory");
	memset(end.memory, 1, shared->m.size);
	end.mr = ibv_reg_mr(pd, end.memory, shared->m.size, access);
	end.cq = ibv_create_cq(context, SENDS_MAX + RECEIVES, NULL, NULL, 0);
	init.send_cq = init.recv_cq = end.cq;
	end.qp = end.mr && end.cq ? ibv_create_qp(pd, &init) : NULL;
	if (!end.qp)
		die("no MR, no CQ or no QP");
	errno = ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (errno)
		die("INIT");
	gid = gid_index(context);
	if (getrandom(&end.us->psn, sizeof(end.us->psn), 0) < 0)
		die("getrandom");
	end.us->psn &= 0xffffff;
	end.us->qpn = end.qp->qp_num;
	end.us->rkey = end.mr->rkey;
	end.us->address = (uintptr_t)end.memory;
	end.us->steps = 1;
	while (end.them->steps < 1)
		usleep(1000);
	for (int i = 0; i < RECEIVES; i++)
		post_receive();
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = mtu_of(shared->m.mtu),
				    .dest_qp_num = end.them->qpn,
				    .rq_psn = end.them->psn,
				    .max_dest_rd_atomic = 16,
				    .min_rnr_timer = 12,
				    .ah_attr = {.is_global = 1,
						.port_num = 1,
						.grh = {.dgid = end.them->gid, .sgid_index = gid, .hop_limit = 64}}};
	errno = ibv_modify_qp(end.qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (errno)
		die("RTR");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 18,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .sq_psn = end.us->psn,
				    .max_rd_atomic = 16};
	errno = ibv_modify_qp(end.qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC);
	if (errno)
		die("RTS");
	end.us->steps = 2;
}

static void pingpong(int side, uint32_t total)
{
	double begun = now_s();

	for (uint32_t i = 0; i < total; i++) {
		if (i == shared->m.warm_up)
			begun = now_s();
		if (side == CLIENT)
			post();
		while (end.received <= i || i > end.sent + PINGPONG_SENDS)
			poll_cq(POLL);
		if (side == SERVER)
			post();
	}
	if (side == CLIENT)
		shared->seconds = now_s() - begun;
	while (end.sent < total)
		poll_cq(POLL);
}

static void stream(int side, uint32_t total)
{
	double begun = 0;
	uint32_t posted = 0;

	if (side == SERVER) {
		while (shared->m.op == OP_SEND && end.received < total)
			poll_cq(POLL);
		return;
	}
	while (end.sent < total) {
		while (posted < total && posted - end.sent < shared->m.depth) {
			post();
			posted++;
		}
		/* Polls one by one until the completion with which the clock starts. */
		poll_cq(begun > 0 ? POLL : 1);
		if (begun <= 0 && end.sent == shared->m.warm_up)
			begun = now_s();
	}
	shared->seconds = now_s() - begun;
}

static int child(int fd, int pair, int side)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	end.us = &shared->ends[pair][side];
	end.them = &shared->ends[pair][!side];
	create();
	for (;;) {
		while (sem_wait(&end.us->go) < 0)
			if (errno != EINTR)
				die("sem_wait");
		if (shared->over)
			return 0;
		end.sent = end.received = 0;
		(shared->m.op == OP_PINGPONG ? pingpong : stream)(side, shared->m.warm_up + shared->m.messages);
		sem_post(&shared->done);
	}
}

/* ---- whose turn it is -------------------------------------------------------------------------- */

struct pair {
	const char *name;
	char *variables[VARIABLES_MAX];
	double *seconds; /* by turn */
};

static struct pair pairs[PAIRS_MAX];
static size_t pair_count;
static const char *verbena;
static uint32_t starts = 8, turns_each = 50;
static uint32_t turns; /* of all starts */

static void pair_add(const char *text)
{
	struct pair *p = &pairs[pair_count];
	char *rest = strdup(text), *variable;
	size_t n = 0;

	errno = 0;
	if (pair_count++ == PAIRS_MAX)
		die("at most 8 pairs");
	p->name = strsep(&rest, ":");
	while ((variable = strsep(&rest, ","))) {
		if (n == VARIABLES_MAX - 1 || !strchr(variable, '='))
			die("NAME:VARIABLE=VALUE[,VARIABLE=VALUE...] is wanted, at most 15 of them");
		p->variables[n++] = variable;
	}
}

static void start(const char *self, int fd, size_t pair, int side)
{
	char words[3][24];

	if (fork() != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (char **v = pairs[pair].variables; *v; v++)
		putenv(*v);
	snprintf(words[0], sizeof(words[0]), "%d", fd);
	snprintf(words[1], sizeof(words[1]), "%zu", pair);
	snprintf(words[2], sizeof(words[2]), "%d", side);
	execl(verbena, verbena, "run", self, "--child", words[0], words[1], words[2], (char *)NULL);
	die(verbena);
}

static void await_done(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LIMIT_S;
	while (sem_timedwait(&shared->done, &until) < 0)
		if (errno != EINTR)
			die("a turn did not end");
}

static void await_connected(void)
{
	double begun = now_s();

	for (size_t i = 0; i < pair_count; i++)
		for (int side = 0; side < 2; side++)
			while (shared->ends[i][side].steps != 2) {
				errno = 0;
				if (now_s() - begun > LIMIT_S || waitpid(-1, NULL, WNOHANG) > 0)
					die("a pair did not connect");
				usleep(1000);
			}
}

static double take_turn(size_t pair)
{
	sem_post(&shared->ends[pair][SERVER].go);
	sem_post(&shared->ends[pair][CLIENT].go);
	await_done();
	await_done();
	usleep(BETWEEN_US);
	return shared->seconds;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The time of a turn of all pairs of one name together. */
static double seconds_of(const char *name, uint32_t turn)
{
	double sum = 0;
	int n = 0;

	for (size_t i = 0; i < pair_count; i++) {
		if (!strcmp(pairs[i].name, name)) {
			sum += pairs[i].seconds[turn];
			n++;
		}
	}
	return sum / n;
}

static bool is_first_of_name(size_t pair)
{
	for (size_t i = 0; i < pair; i++)
		if (!strcmp(pairs[i].name, pairs[pair].name))
			return false;
	return true;
}

static void print_ratio(double *ratio, const char *what, const char *to)
{
	qsort(ratio, turns, sizeof(*ratio), by_value);
	printf("  %-12s to %-12s %.3f, quartiles %.3f and %.3f\n", what, to, ratio[turns / 2], ratio[turns / 4],
	       ratio[turns * 3 / 4]);
}

static void print_speed(const struct measure *m, const char *name, double *seconds)
{
	double median, best;

	qsort(seconds, turns, sizeof(*seconds), by_value);
	median = seconds[turns / 2] / m->messages;
	best = seconds[turns / 10] / m->messages;
	if (m->op == OP_PINGPONG)
		printf("  %-12s %8.2f us a round trip, best tenth %.2f\n", name, median * 1e6, best * 1e6);
	else if (m->size < 4096)
		printf("  %-12s %8.3f million messages/s, best tenth %.3f\n", name, 1 / median / 1e6, 1 / best / 1e6);
	else
		printf("  %-12s %8.0f MB/s, best tenth %.0f\n", name, m->size / median / 1e6, m->size / best / 1e6);
}

static void print_all(const struct measure *m)
{
	double *v = calloc(turns, sizeof(*v));

	if (!v)
		die("calloc");
	printf("%s: %u bytes, path MTU %u, %u under way, %u starts, %u turns of %u messages each\n", m->name, m->size,
	       m->mtu, m->depth, starts, turns_each, m->messages);
	for (size_t i = 0; i < pair_count; i++) {
		if (!is_first_of_name(i))
			continue;
		for (uint32_t t = 0; t < turns; t++)
			v[t] = seconds_of(pairs[i].name, t);
		print_speed(m, pairs[i].name, v);
	}
	for (size_t i = 1; i < pair_count; i++) {
		bool same = !strcmp(pairs[i].name, pairs[0].name);

		if (!same && !is_first_of_name(i))
			continue;
		for (uint32_t t = 0; t < turns; t++)
			v[t] = same ? pairs[0].seconds[t] / pairs[i].seconds[t]
				    : seconds_of(pairs[0].name, t) / seconds_of(pairs[i].name, t);
		print_ratio(v, same ? "(itself)" : pairs[i].name, pairs[0].name);
	}
	fflush(stdout);
	free(v);
}

/* The turns from `first` on, with processes that are started for them. */
static void take_turns(const char *self, const struct measure *m, uint32_t first)
{
	int fd = memfd_create("turns", 0);

	if (fd < 0 || ftruncate(fd, sizeof(*shared)) < 0)
		die("memfd_create");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	shared->m = *m;
	sem_init(&shared->done, 1, 0);
	for (size_t i = 0; i < pair_count; i++)
		for (int side = 0; side < 2; side++) {
			sem_init(&shared->ends[i][side].go, 1, 0);
			start(self, fd, i, side);
		}
	await_connected();
	/* Always in this order, so that no pair follows itself and finds its caches warm. */
	for (uint32_t t = 0; t < IDLE_TURNS + turns_each; t++)
		for (size_t i = 0; i < pair_count; i++) {
			double seconds = take_turn(i);

			if (t >= IDLE_TURNS)
				pairs[i].seconds[first + t - IDLE_TURNS] = seconds;
		}
	shared->over = true;
	for (size_t i = 0; i < pair_count; i++)
		for (int side = 0; side < 2; side++)
			sem_post(&shared->ends[i][side].go);
	while (wait(NULL) > 0)
		;
	munmap(shared, sizeof(*shared));
	close(fd);
}

static void measure(const char *self, const struct measure *m)
{
	for (size_t i = 0; i < pair_count; i++) {
		free(pairs[i].seconds);
		pairs[i].seconds = calloc(turns, sizeof(double));
		if (!pairs[i].seconds)
			die("calloc");
	}
	for (uint32_t i = 0; i < starts; i++)
		take_turns(self, m, i * turns_each);
	print_all(m);
}

int main(int argc, char **argv)
{
	static const char *const pairs_else[] = {"RoCEv2:VERBENA_PROTOCOL=rocev2", "veRoCE:VERBENA_PROTOCOL=veroce",
						 "RoCEv2:VERBENA_PROTOCOL=rocev2", "veRoCE:VERBENA_PROTOCOL=veroce"};
	const char *only = NULL;
	struct measure said = {0};
	const struct option_row rows[] = {
		{0, "verbena", OPTION_TEXT, &verbena, 0, 0, "PATH", NULL},
		{0, "measure", OPTION_TEXT, &only, 0, 0, "NAME", NULL},
		{0, "starts", OPTION_U32, &starts, 1, 1000, "N", NULL},
		{0, "turns", OPTION_U32, &turns_each, 4, 1000000, "N", NULL},
		{0, "messages", OPTION_U32, &said.messages, 1, 100000000, "N", NULL},
		{0, "warm-up", OPTION_U32, &said.warm_up, 1, 100000000, "N", NULL},
		{0, "depth", OPTION_U32, &said.depth, 1, RECEIVES / 2, "N", NULL},
		{0, "size", OPTION_U32, &said.size, 1, 1 << 30, "BYTES", NULL},
		{0, "mtu", OPTION_U32, &said.mtu, 256, 4096, "BYTES", NULL},
	};
	bool found = false;
	int first;

	if (argc == 5 && !strcmp(argv[1], "--child"))
		return child(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
	first = options_read(argc, argv, rows, OPTION_COUNT(rows),
			     "usage: turns [OPTION ...] [NAME:VARIABLE=VALUE,..]\n");
	turns = starts * turns_each;
	if (!verbena)
		verbena = access("build/verbena", X_OK) == 0 ? "build/verbena" : "verbena";
	for (int i = first; i < argc; i++)
		pair_add(argv[i]);
	for (size_t i = 0; first == argc && i < sizeof(pairs_else) / sizeof(*pairs_else); i++)
		pair_add(pairs_else[i]);
	for (size_t i = 0; i < MEASURES; i++) {
		struct measure m = measures[i];

		if (only && strcmp(only, m.name) != 0)
			continue;
		found = true;
		m.messages = said.messages ? said.messages : m.messages;
		m.warm_up = said.warm_up ? said.warm_up : m.warm_up;
		m.depth = said.depth ? said.depth : m.depth;
		m.size = said.size ? said.size : m.size;
		m.mtu = said.mtu ? said.mtu : m.mtu;
		measure(argv[0], &m);
	}
	if (!found) {
		fprintf(stderr, "turns: --measure %s: write, read, send, rate or pingpong is wanted\n", only);
		return 2;
	}
	return 0;
}
