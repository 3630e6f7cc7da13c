/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary program of librdmacm that writes data, has them flushed and then sets a flag by an ATOMIC WRITE. The server
 * waits for the flag in its memory and looks whether the data are there.
 *
 *	placement ADDRESS PORT      the server, of one connection
 *	placement -c ADDRESS PORT [words]   the client; with `words` it has nothing flushed
 *
 * A device that builds no FLUSH does without: the client says so. Both say what went otherwise than it must, and end
 * with status 1 then.
 */
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#include <rdma/rdma_verbs.h>

#include "cm_end.h"

enum { BYTES = 5000, WORD_AT = 5000, ROUNDS = 40, WAIT_S = 30 };
/* Of rdma-core 45 and later. */
enum { ACCESS_FLUSH_GLOBAL = 1 << 8, WITH_FLUSH = 1 << 11, WR_FLUSH_AT = 352, FLUSH_GLOBAL = 1, FLUSH_PERSISTENT = 2 };

struct letter {
	uint64_t addr;
	uint32_t rkey;
	uint32_t round;
};

static const struct rdma_conn_param PARAM = {
	.responder_resources = 4, .initiator_depth = 4, .retry_count = 7, .rnr_retry_count = 7};

static struct {
	struct rdma_cm_id *id;
	struct ibv_qp_ex *qp;
	struct ibv_mr *mr, *letters;
	struct letter letter;
	_Alignas(8) uint8_t memory[BYTES + sizeof(uint64_t)];
	bool flushes;
	int wrong;
} g;

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	printf("round %u: %s\n", g.letter.round, what);
	g.wrong = 1;
}

static void prepare(unsigned access)
{
	g.mr = ibv_reg_mr_iova2(g.id->pd, g.memory, sizeof(g.memory), (uintptr_t)g.memory, access);
	g.letters = rdma_reg_msgs(g.id, &g.letter, sizeof(g.letter));
	if (!g.mr || !g.letters)
		fail("register");
}

static void expect_letter(void)
{
	if (rdma_post_recv(g.id, NULL, &g.letter, sizeof(g.letter), g.letters))
		fail("receive");
}

static void await_letter(void)
{
	struct ibv_wc wc;

	if (rdma_get_recv_comp(g.id, &wc) != 1)
		fail("await a message");
	if (wc.status != IBV_WC_SUCCESS)
		fail(ibv_wc_status_str(wc.status));
}

static enum ibv_wc_status completed(void)
{
	struct ibv_wc wc;

	if (rdma_get_send_comp(g.id, &wc) != 1)
		fail("await a completion");
	return wc.status;
}

static void hang_up(void)
{
	rdma_disconnect(g.id);
	must(!ibv_dereg_mr(g.mr), "the region is not given back");
	rdma_dereg_mr(g.letters);
}

/* ---- the client --------------------------------------------------------------------------------- */

static bool make_qp(uint64_t more)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = g.id->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE | more};

	if (rdma_create_qp_ex(g.id, &attr))
		return false;
	g.qp = ibv_qp_to_qp_ex(g.id->qp);
	return true;
}

static void flush(size_t len, uint8_t type, uint8_t level)
{
	void (*call)(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t);

	memcpy(&call, (uint8_t *)g.qp + WR_FLUSH_AT, sizeof(call));
	call(g.qp, g.letter.rkey, g.letter.addr, len, type, level);
}

static void write_round(uint32_t round)
{
	uint64_t word = round;

	memset(g.memory, (int)round, BYTES);
	ibv_wr_start(g.qp);
	g.qp->wr_flags = 0;
	ibv_wr_rdma_write(g.qp, g.letter.rkey, g.letter.addr);
	ibv_wr_set_sge(g.qp, g.mr->lkey, (uintptr_t)g.memory, BYTES);
	if (g.flushes)
		flush(BYTES, FLUSH_GLOBAL, round & 1);
	g.qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(g.qp, g.letter.rkey, g.letter.addr + WORD_AT, &word);
	errno = ibv_wr_complete(g.qp);
	if (errno)
		fail("post");
	must(completed() == IBV_WC_SUCCESS, "it was not written");
}

/* The region's owner has not allowed it, and no memory here or there could do it. */
static void flush_to_persistence(void)
{
	ibv_wr_start(g.qp);
	flush(8, FLUSH_PERSISTENT, 0);
	errno = ibv_wr_complete(g.qp);
	if (errno)
		fail("post");
	must(completed() == IBV_WC_REM_ACCESS_ERR, "memory became persistent");
}

static void client(char **where, bool flushes)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *found;
	struct rdma_conn_param param = PARAM;

	if (rdma_getaddrinfo(where[0], where[1], &hints, &found) || rdma_create_ep(&g.id, found, NULL, NULL))
		fail("endpoint");
	g.flushes = flushes && make_qp(WITH_FLUSH);
	if (!g.flushes && !make_qp(0))
		fail("queue pair");
	if (!g.flushes)
		printf("no FLUSH here\n");
	prepare(IBV_ACCESS_LOCAL_WRITE);
	expect_letter();
	if (rdma_connect(g.id, &param))
		fail("connect");
	for (;;) {
		await_letter();
		if (g.letter.round > ROUNDS || g.wrong)
			break;
		expect_letter();
		write_round(g.letter.round);
	}
	if (g.flushes && !g.wrong)
		flush_to_persistence();
	hang_up();
}

/* ---- the server --------------------------------------------------------------------------------- */

static void await_word(uint64_t value)
{
	const uint64_t *word = (const uint64_t *)(g.memory + WORD_AT);
	time_t until = time(NULL) + WAIT_S;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value && time(NULL) < until)
		usleep(100);
	must(*word == value, "the word does not come");
	for (int i = 0; i < BYTES; i++) {
		if (g.memory[i] != (uint8_t)value) {
			must(false, "the word has come before the data");
			break;
		}
	}
}

static void server(char **where)
{
	struct rdma_cm_id *listener = endpoint(where, RAI_PASSIVE, 8, 0);
	struct rdma_conn_param param = PARAM;

	if (rdma_listen(listener, 1))
		fail("listen");
	if (rdma_get_request(listener, &g.id))
		fail("request");
	prepare(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | ACCESS_FLUSH_GLOBAL);
	if (rdma_accept(g.id, &param))
		fail("accept");
	for (uint32_t round = 1; round <= ROUNDS + 1 && !g.wrong; round++) {
		g.letter = (struct letter){(uintptr_t)g.memory, g.mr->rkey, round};
		if (rdma_post_send(g.id, NULL, &g.letter, sizeof(g.letter), g.letters, IBV_SEND_SIGNALED))
			fail("send");
		must(completed() == IBV_WC_SUCCESS || round > ROUNDS, "the message was not sent");
		if (round <= ROUNDS)
			await_word(round);
	}
	/* The client hangs up. */
	struct rdma_cm_event *event;

	if (!g.wrong && !rdma_get_cm_event(g.id->channel, &event))
		rdma_ack_cm_event(event);
	hang_up();
}

int main(int argc, char **argv)
{
	if (argc == 3)
		server(argv + 1);
	else if ((argc == 4 || argc == 5) && !strcmp(argv[1], "-c"))
		client(argv + 2, argc == 4);
	else
		return 2;
	if (!g.wrong)
		printf("all as it must be\n");
	return g.wrong;
}
