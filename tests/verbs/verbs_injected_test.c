/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults on command as programs see them: each test is a process of its own, whose script VERBENA_FAULTS names. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

enum { BYTES = 4096, WAIT_MS = 20000 };

/* The pair of a body that runs with a script; a step that fails ends the child. */
static void with_script(const char *script, void (*body)(void))
{
	char file[] = "/tmp/verbs_injected_XXXXXX";
	int fd = mkstemp(file), status;
	pid_t pid;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, script, strlen(script)), (ssize_t)strlen(script));
	close(fd);
	pid = fork();
	if (!pid) {
		/* What fails ends it: to go on with the next test is the parent's. */
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		setenv("VERBENA_FAULTS", file, 1);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(file);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("with \"%s\" it ended with status %x", script, (unsigned)status);
}

/* In a child cmocka's assertions have nowhere to jump to. */
#define MUST(x)                                                                                  \
	do {                                                                                     \
		if (!(x)) {                                                                      \
			fprintf(stderr, "%s:%d: %s, errno %d\n", __FILE__, __LINE__, #x, errno); \
			_exit(1);                                                                \
		}                                                                                \
	} while (0)

static int write_one(struct pair *p, uint64_t wr_id)
{
	struct ibv_sge from = sge_at(p, A, 0, BYTES);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &from,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = (uintptr_t)p->side[B].buf, .rkey = p->side[B].mr->rkey}};
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(p->side[A].qp, &wr, &bad);

	MUST(!err || bad == &wr);
	return err;
}

static enum ibv_wc_status status_of(struct pair *p, int side, uint64_t wr_id)
{
	struct ibv_wc wc;

	for (int i = 0; i < WAIT_MS; i++) {
		int n = ibv_poll_cq(p->side[side].cq, 1, &wc);

		MUST(n >= 0);
		if (n) {
			MUST(wc.wr_id == wr_id);
			return wc.status;
		}
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	MUST(!"a completion");
	return IBV_WC_GENERAL_ERR;
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	MUST(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

static enum ibv_port_state port_of(struct pair *p)
{
	struct ibv_port_attr port;

	MUST(!ibv_query_port(p->ctx, PORT, &port));
	return port.state;
}

static void event_await(struct pair *p, enum ibv_event_type type)
{
	struct pollfd f = {.fd = p->ctx->async_fd, .events = POLLIN};
	struct ibv_async_event e;

	do {
		MUST(poll(&f, 1, WAIT_MS) == 1);
		MUST(!ibv_get_async_event(p->ctx, &e));
		ibv_ack_async_event(&e);
	} while (e.event_type != type);
}

static const struct wishes wish = {.retry_cnt_given = 1, .retry_cnt = 7, .timeout = 12};

static void completes_in_error(void)
{
	struct ibv_recv_wr recv = {.wr_id = 77}, *bad;
	struct pair p;

	pair_make(&p, wish);
	MUST(!ibv_post_recv(p.side[A].qp, &recv, &bad));
	for (uint64_t i = 1; i <= 3; i++)
		MUST(!write_one(&p, i));
	for (uint64_t i = 4; i <= 6; i++)
		MUST(!write_one(&p, i));
	for (uint64_t i = 1; i <= 3; i++)
		MUST(status_of(&p, A, i) == IBV_WC_SUCCESS);
	MUST(status_of(&p, A, 4) == IBV_WC_RETRY_EXC_ERR);
	MUST(state_of(p.side[A].qp) == IBV_QPS_ERR);
	for (int left = 3; left--;) {
		struct ibv_wc wc;

		while (!ibv_poll_cq(p.side[A].cq, 1, &wc))
			;
		MUST(wc.status == IBV_WC_WR_FLUSH_ERR && (wc.wr_id == 5 || wc.wr_id == 6 || wc.wr_id == 77));
	}
	/* The peer has seen nothing of it. */
	MUST(state_of(p.side[B].qp) == IBV_QPS_RTS);
}

TEST(a_request_completes_in_error_and_what_follows_is_flushed)
{
	with_script("after 3 wr qp any complete IBV_WC_RETRY_EXC_ERR", completes_in_error);
	with_script("wr 4 of qp 1 complete IBV_WC_RETRY_EXC_ERR", completes_in_error);
}

static void datagram_fails(void)
{
	struct ibv_sge from;
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct pair p;

	pair_make(&p, (struct wishes){.type = IBV_QPT_UD});
	from = sge_at(&p, A, 0, 64);
	wr.sg_list = &from;
	wr.wr.ud.ah = p.side[A].ah;
	wr.wr.ud.remote_qpn = p.side[B].qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	MUST(!ibv_post_send(p.side[A].qp, &wr, &bad));
	MUST(status_of(&p, A, 1) == IBV_WC_GENERAL_ERR);
	MUST(state_of(p.side[A].qp) == IBV_QPS_SQE);
}

TEST(a_datagram_fails_too)
{
	with_script("wr 1 qp 1 complete IBV_WC_GENERAL_ERR", datagram_fails);
}

static void post_fails(void)
{
	struct ibv_sge from;
	struct ibv_send_wr wr[4] = {0}, *bad = NULL;
	struct pair p;

	pair_make(&p, wish);
	from = sge_at(&p, A, 0, BYTES);
	for (unsigned i = 0; i < 4; i++) {
		wr[i] = (struct ibv_send_wr){
			.wr_id = i,
			.sg_list = &from,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.next = i < 3 ? &wr[i + 1] : NULL,
			.wr.rdma = {.remote_addr = (uintptr_t)p.side[B].buf, .rkey = p.side[B].mr->rkey}};
	}
	/* The third request of the chain. */
	MUST(ibv_post_send(p.side[A].qp, wr, &bad) == ENOMEM);
	MUST(bad == &wr[2]);
	MUST(status_of(&p, A, 0) == IBV_WC_SUCCESS);
	MUST(status_of(&p, A, 1) == IBV_WC_SUCCESS);
	MUST(!ibv_post_send(p.side[A].qp, bad, &bad));
	MUST(status_of(&p, A, 2) == IBV_WC_SUCCESS);
	MUST(status_of(&p, A, 3) == IBV_WC_SUCCESS);
}

TEST(a_post_fails_at_the_right_request)
{
	with_script("after 2 wr fail ENOMEM", post_fails);
}

static void builder_fails(void)
{
	struct pair p;

	pair_make(&p, (struct wishes){.extended = true, .all_signaled = true});
	for (int round = 0; round < 2; round++) {
		struct ibv_qp_ex *ex = p.side[A].qp_ex;

		ibv_wr_start(ex);
		for (uint64_t i = 0; i < 2; i++) {
			ex->wr_id = 10 + i;
			ex->wr_flags = IBV_SEND_SIGNALED;
			ibv_wr_rdma_write(ex, p.side[B].mr->rkey, (uintptr_t)p.side[B].buf);
			ibv_wr_set_sge(ex, p.side[A].mr->lkey, (uintptr_t)p.side[A].buf, 64);
		}
		MUST(ibv_wr_complete(ex) == (round ? 0 : EAGAIN));
	}
	MUST(state_of(p.side[A].qp) == IBV_QPS_RTS);
}

TEST(a_chain_of_the_builder_fails_as_a_whole)
{
	with_script("call ibv_post_send 1 fail EAGAIN", builder_fails);
	with_script("wr 2 fail EAGAIN", builder_fails);
}

static void calls_fail(void)
{
	static uint8_t buf[4096];
	struct ibv_context *ctx = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1}};

	MUST(pd);
	for (int i = 1; i < 7; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);

		MUST(!mr == (i % 3 == 0));
		MUST(mr || errno == ENOMEM);
	}
	init.send_cq = init.recv_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	MUST(!init.send_cq && errno == EMFILE);
	init.send_cq = init.recv_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	for (int i = 1; i < 4; i++) {
		errno = 0;
		MUST(!ibv_create_qp(pd, &init) == (i == 2));
		MUST(i != 2 || errno == EAGAIN);
	}
}

TEST(calls_fail_with_the_errno_that_is_given)
{
	with_script(
		"call ibv_reg_mr every 3 fail ENOMEM\ncall ibv_create_qp 2 fail EAGAIN\ncall ibv_create_cq 1 fail EMFILE",
		calls_fail);
}

static void link_flaps(void)
{
	struct wishes patient = wish;
	struct pair p;

	patient.timeout = 17; /* half a second */
	pair_make(&p, patient);
	MUST(port_of(&p) == IBV_PORT_ACTIVE);
	MUST(!write_one(&p, 1));
	MUST(status_of(&p, A, 1) == IBV_WC_SUCCESS);
	MUST(!write_one(&p, 2));
	event_await(&p, IBV_EVENT_PORT_ERR);
	MUST(port_of(&p) == IBV_PORT_DOWN);
	MUST(!write_one(&p, 3));
	event_await(&p, IBV_EVENT_PORT_ACTIVE);
	MUST(port_of(&p) == IBV_PORT_ACTIVE);
	MUST(status_of(&p, A, 2) == IBV_WC_SUCCESS);
	MUST(status_of(&p, A, 3) == IBV_WC_SUCCESS);
}

TEST(a_link_flaps_and_connections_live_on)
{
	/* For long enough that a busy machine sees it. */
	with_script("after 2 wr link down for 200ms", link_flaps);
}

static void link_stays_down(void)
{
	struct pair p;

	pair_make(&p, (struct wishes){.retry_cnt_given = 1, .retry_cnt = 1, .timeout = 10});
	MUST(!write_one(&p, 1));
	event_await(&p, IBV_EVENT_PORT_ERR);
	MUST(!write_one(&p, 2));
	MUST(!write_one(&p, 3));
	MUST(status_of(&p, A, 1) == IBV_WC_SUCCESS || true);
	for (struct ibv_wc wc; state_of(p.side[A].qp) != IBV_QPS_ERR;)
		ibv_poll_cq(p.side[A].cq, 1, &wc);
}

TEST(a_link_that_stays_down_uses_up_retries)
{
	with_script("after 1 wr link down", link_stays_down);
}

static void gid_moves(void)
{
	union ibv_gid gid, at;
	struct pair p;

	pair_make(&p, wish);
	gid = p.gid;
	MUST(!write_one(&p, 1));
	event_await(&p, IBV_EVENT_GID_CHANGE);
	MUST(!ibv_query_gid(p.ctx, PORT, p.gid_index, &at));
	MUST(memcmp(&gid, &at, sizeof(gid)));
	MUST(status_of(&p, A, 1) == IBV_WC_SUCCESS);
	/* What is connected lives on. */
	MUST(!write_one(&p, 2));
	MUST(status_of(&p, A, 2) == IBV_WC_SUCCESS);
}

static void gid_goes_and_returns(void)
{
	union ibv_gid at;
	struct pair p;

	pair_make(&p, wish);
	MUST(!write_one(&p, 1));
	event_await(&p, IBV_EVENT_GID_CHANGE);
	event_await(&p, IBV_EVENT_GID_CHANGE);
	MUST(!ibv_query_gid(p.ctx, PORT, p.gid_index, &at));
	MUST(!memcmp(&p.gid, &at, sizeof(at)));
}

TEST(a_gid_moves_and_goes)
{
	with_script("after 1 wr gid 127.0.0.1 move", gid_moves);
	with_script("after 1 wr gid 127.0.0.1 remove", gid_moves);
	with_script("after 1 wr gid 127.0.0.1 remove for 20ms", gid_goes_and_returns);
}

static void qp_breaks(void)
{
	struct pair p;

	pair_make(&p, wish);
	MUST(!write_one(&p, 1));
	event_await(&p, IBV_EVENT_QP_FATAL);
	MUST(state_of(p.side[A].qp) == IBV_QPS_ERR);
	MUST(state_of(p.side[B].qp) == IBV_QPS_RTS);
}

static void cq_overflows(void)
{
	struct pair p;

	pair_make(&p, wish);
	MUST(!write_one(&p, 1));
	event_await(&p, IBV_EVENT_CQ_ERR);
	write_one(&p, 2);
	while (state_of(p.side[A].qp) != IBV_QPS_ERR)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void device_dies(void)
{
	static uint8_t buf[4096];
	struct pair p;

	pair_make(&p, wish);
	MUST(!write_one(&p, 1));
	event_await(&p, IBV_EVENT_DEVICE_FATAL);
	MUST(state_of(p.side[A].qp) == IBV_QPS_ERR && state_of(p.side[B].qp) == IBV_QPS_ERR);
	status_of(&p, A, 1);
	MUST(!write_one(&p, 2));
	MUST(status_of(&p, A, 2) == IBV_WC_WR_FLUSH_ERR);
	MUST(!ibv_reg_mr(p.pd, buf, sizeof(buf), 0) && errno == EIO);
}

TEST(queue_pairs_completion_queues_and_devices_break)
{
	with_script("after 1 wr qp 1 error", qp_breaks);
	with_script("after 1 wr qp 1 overflow", cq_overflows);
	with_script("after 1 wr device fatal", device_dies);
}

static void hangs_and_goes_on(void)
{
	struct pair p;

	pair_make(&p, wish);
	for (uint64_t i = 1; i <= 4; i++)
		MUST(!write_one(&p, i));
	for (uint64_t i = 1; i <= 4; i++)
		MUST(status_of(&p, A, i) == IBV_WC_SUCCESS);
}

static void hangs(void)
{
	struct ibv_wc wc;
	struct pair p;

	pair_make(&p, (struct wishes){.retry_cnt_given = 1, .retry_cnt = 1, .timeout = 8});
	MUST(!write_one(&p, 1));
	MUST(!write_one(&p, 2));
	MUST(!write_one(&p, 3));
	/* Longer than all retries would take: neither a completion nor an error. */
	for (int i = 0, got = 0; i < 400; i++) {
		got += ibv_poll_cq(p.side[A].cq, 1, &wc);
		MUST(got <= 2);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	MUST(state_of(p.side[A].qp) == IBV_QPS_RTS);
}

TEST(what_hangs_says_nothing)
{
	with_script("after 2 wr qp 1 hang for 50ms", hangs_and_goes_on);
	with_script("after 2 wr device hang for 50ms", hangs_and_goes_on);
	with_script("after 2 wr qp 1 hang", hangs);
	with_script("after 2 wr device hang", hangs);
}

/* Packets are repeated, so everything completes. */
TEST(spoiled_packets_are_repeated)
{
	static const char *const scripts[] = {
		"packet 1 of each qp out drop",
		"packet 2 of each qp in drop",
		"packet 2 of each qp out corrupt",
		"packet 3 of each qp out double",
		"packet 2 of each qp out swap",
		"packet 2 of each qp out delay 3ms",
		"packet 2 of each qp in mark",
		"when opcode ACK in drop",
		"chance 20% out drop",
		"seed 4\nchance 20% in drop",
		"after 2 packets rate 1Mbps for 20ms",
		"after 2 packets peer 127.0.0.1 silent for 20ms",
	};

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		with_script(scripts[i], hangs_and_goes_on);
}

static void is_refused(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	MUST(list && list[0]);
	MUST(!ibv_open_device(list[0]) && errno == EINVAL);
}

TEST(a_script_that_is_wrong_is_refused)
{
	with_script("at 2s link downwards", is_refused);
	with_script("verbena7 link down", is_refused);
}

/* ---- a seed writes the script ---- */

enum { REQUESTS = 120, SCRIPT_BYTES = 1024 };

static uint64_t seed_state;

static unsigned draw(unsigned n)
{
	seed_state = seed_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed_state >> 33) % n;
}

static void script_write(char text[SCRIPT_BYTES], unsigned seed)
{
	static const char *const triggers[] = {"packet %u of each qp", "after %u packets",   "every %u packets",
					       "when opcode ACK",      "when retransmitted", "chance 5%%",
					       "wr %u of qp any",      "after %u wr",        "packet %u of qp 2"};
	static const char *const actions[] = {"out drop",
					      "in drop",
					      "out double",
					      "in swap",
					      "out corrupt",
					      "in delay 1ms",
					      "qp any complete IBV_WC_RETRY_EXC_ERR",
					      "qp 1 error",
					      "qp 2 hang for 5ms",
					      "link down for 5ms",
					      "device hang for 5ms",
					      "device fatal",
					      "rate 50Mbps for 10ms",
					      "peer 127.0.0.1 silent for 5ms"};
	size_t n = (size_t)sprintf(text, "seed %u\n", seed);

	for (unsigned rules = 1 + draw(4); rules; rules--) {
		unsigned t = draw(9), a = draw(14);

		/* Packets alone are dropped by chance, and requests alone complete. */
		if (t == 5)
			n += (size_t)sprintf(text + n, "chance 5%% %s\n", actions[a % 6]);
		else if (a == 6 || a == 7 || a == 11) /* which must not hit packets that connect the pair */
			n += (size_t)sprintf(text + n, "after %u wr %s\n", 1 + draw(REQUESTS), actions[a]);
		else if (t >= 6 && t <= 7 && a < 6)
			n += (size_t)sprintf(text + n, "after %u wr %s\n", 1 + draw(REQUESTS), actions[a]);
		else {
			char trigger[64];

			snprintf(trigger, sizeof(trigger), triggers[t], 1 + draw(60));
			n += (size_t)sprintf(text + n, "%s %s\n", trigger, actions[a]);
		}
	}
}

/* Each request completes once, in order, with success or an error; behind an error all are flushed. */
static void completes_once(void)
{
	uint64_t posted[SIDES] = {0}, done[SIDES] = {0};
	bool failed[SIDES] = {false};
	struct pair p;

	pair_make(&p, (struct wishes){.retry_cnt_given = 1, .retry_cnt = 3, .timeout = 12, .max_wr = 32});
	for (unsigned idle = 0; done[A] < REQUESTS || done[B] < REQUESTS;) {
		bool moved = false;

		for (int side = A; side <= B; side++) {
			struct ibv_sge from = sge_at(&p, side, 0, 1 + draw(3 * BYTES));
			struct ibv_send_wr wr = {
				.wr_id = posted[side],
				.sg_list = &from,
				.num_sge = 1,
				.opcode = draw(3) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
				.send_flags = IBV_SEND_SIGNALED,
				.wr.rdma = {.remote_addr = (uintptr_t)p.side[!side].buf + BUF_BYTES / 2,
					    .rkey = p.side[!side].mr->rkey}};
			struct ibv_send_wr *bad;
			struct ibv_wc wc;

			while (posted[side] < REQUESTS && posted[side] - done[side] < 16 &&
			       !ibv_post_send(p.side[side].qp, &wr, &bad))
				wr.wr_id = ++posted[side];
			while (ibv_poll_cq(p.side[side].cq, 1, &wc) > 0) {
				MUST(wc.wr_id == done[side] && done[side] < posted[side]);
				MUST(!failed[side] || wc.status == IBV_WC_WR_FLUSH_ERR);
				failed[side] |= wc.status != IBV_WC_SUCCESS;
				done[side]++;
				moved = true;
			}
		}
		idle = moved ? 0 : idle + 1;
		MUST(idle < WAIT_MS);
		if (!moved)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

static void seeds(unsigned first, unsigned count)
{
	for (unsigned seed = first; seed < first + count; seed++) {
		char script[SCRIPT_BYTES];

		seed_state = seed;
		script_write(script, seed);
		with_script(script, completes_once);
	}
}

TEST(whatever_the_script_each_request_completes_once)
{
	seeds(1, 25);
}

TEST_MANY(whatever_the_script_each_request_completes_once_many)
{
	seeds(1000, 300);
}
