/* SPDX-License-Identifier: BSD-2-Clause */
/* An XRC_RECV queue pair and what a peer may send it (IBTA A14.5): which SRQ a request is for, and other services'
 * packets. */
#include <errno.h>

#include "duo/sim.h"
#include "wire/xrceth.h"

enum { MTU = 1024, PEER_QPN = 0x4711, PSN = 100, SRQS = 2, RECV_BYTES = 4 * MTU };

struct room {
	struct duo *duo;
	struct nic *nic;
	struct xrcd *xrcd;
	struct cq *cq[SRQS];
	struct srq *srq[SRQS];
	struct duo_buf *buf;
	struct qp *qp;
	uint32_t psn; /* of the next request */
	int owner;
};

static void connect(struct room *r)
{
	const struct duo_host *b = &r->duo->host[DUO_B];
	struct qp_attr a = {.state = QPS_INIT, .port = 1, .access = ALL_ACCESS & ~(uint32_t)MR_LOCAL_WRITE};

	assert_int_equal(nic_qp_modify(r->nic, r->qp, &a, QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
				       r->duo->now_ns),
			 0);
	a = (struct qp_attr){.state = QPS_RTR,
			     .path_mtu_bytes = MTU,
			     .max_dest_rd_atomic = 4,
			     .min_rnr_timer = 1,
			     .rq_psn = PSN,
			     .dest_qpn = PEER_QPN,
			     .av = duo_av(b, &r->duo->host[DUO_A], DUO_GID_IPV4)};
	assert_int_equal(nic_qp_modify(r->nic, r->qp, &a,
				       QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
					       QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
				       r->duo->now_ns),
			 0);
}

static struct room *room_make(void)
{
	struct room *r = calloc(1, sizeof(*r));
	struct qp_init init = {.type = QPT_XRC_RECV, .owner = &r->owner};

	r->duo = duo_create(1, NULL);
	r->nic = r->duo->host[DUO_B].nic;
	r->buf = duo_buf(&r->duo->host[DUO_B], 2 * RECV_BYTES, ALL_ACCESS);
	assert_int_equal(nic_xrcd_alloc(r->nic, &r->xrcd), 0);
	for (int i = 0; i < SRQS; i++) {
		struct srq_init s = {.max_wr = 4, .max_sge = 1, .xrcd = r->xrcd};
		struct sge sge = duo_sge(r->buf, (uint64_t)(i * RECV_BYTES), RECV_BYTES);

		assert_int_equal(nic_cq_create(r->nic, 8, &r->owner, &r->cq[i]), 0);
		s.cq = r->cq[i];
		assert_int_equal(nic_srq_create(r->nic, r->duo->host[DUO_B].pd, &s, &r->srq[i]), 0);
		assert_true(duo_post_srq(r->srq[i], 70 + (uint64_t)i, &sge, 1));
	}
	assert_int_not_equal(r->srq[0]->number, r->srq[1]->number);
	init.xrcd = r->xrcd;
	assert_int_equal(nic_qp_create(r->nic, &init, &r->qp), 0);
	r->psn = PSN;
	connect(r);
	return r;
}

static void room_end(struct room *r)
{
	duo_idle(r->duo);
	assert_int_equal(nic_xrcd_free(r->nic, r->xrcd), -EBUSY);
	nic_qp_destroy(r->nic, r->qp);
	for (int i = 0; i < SRQS; i++) {
		if (r->srq[i])
			assert_int_equal(nic_srq_destroy(r->nic, r->srq[i]), 0);
		assert_int_equal(nic_cq_destroy(r->nic, r->cq[i]), 0);
	}
	assert_int_equal(nic_xrcd_free(r->nic, r->xrcd), 0);
	duo_destroy(r->duo);
	free(r);
}

static void arrive(struct room *r, uint8_t opcode, uint32_t srqn, uint32_t payload_len)
{
	static const uint8_t payload[MTU] = {0x5a};
	uint8_t ext[XRCETH_LEN + RETH_LEN];
	struct bth bth = {.opcode = opcode,
			  .migreq = true,
			  .pkey = NIC_PKEY_DEFAULT,
			  .dqpn = qp_number(r->qp),
			  .psn = r->psn++,
			  .ackreq = true};
	const struct opcode_info *info = opcode_info(opcode);
	uint32_t len = info->header_len - BTH_LEN;

	xrceth_encode(ext, &(struct xrceth){.srqn = srqn});
	reth_encode(ext + XRCETH_LEN, &(struct reth){.va = r->buf->iova, .rkey = r->buf->mr->key, .len = payload_len});
	assert_true(len <= sizeof(ext));
	duo_forge(r->duo, DUO_B, DUO_GID_IPV4, &bth, ext, len, payload, payload_len);
	duo_idle(r->duo);
}

static uint8_t last_syndrome(const struct room *r)
{
	size_t n = duo_count(r->duo, DUO_B, OP_XRC_ACK);

	return n ? duo_packet(r->duo, DUO_B, OP_XRC_ACK, n - 1)->aeth.syndrome : 0;
}

static void expect_completion(struct room *r, int srq, uint64_t wr_id, enum wc_status status)
{
	const struct cqe *e = cq_peek(r->cq[srq], 0);

	assert_non_null(e);
	assert_int_equal(e->wr_id, wr_id);
	assert_int_equal(e->status, status);
	cq_consume(r->cq[srq], 1);
	assert_null(cq_peek(r->cq[srq], 0));
}

static void expect_refused(struct room *r)
{
	assert_int_equal(last_syndrome(r), AETH_NAK | NAK_INVALID_REQUEST);
	assert_int_equal(qp_state(r->qp), QPS_ERR);
	assert_true(duo_had_event(&r->duo->host[DUO_B], EVENT_QP_ACCESS_ERR, &r->owner));
}

TEST(messages_go_to_the_srq_that_they_name)
{
	struct room *r = room_make();

	arrive(r, OP_XRC_SEND_FIRST, r->srq[1]->number, MTU);
	arrive(r, OP_XRC_SEND_MIDDLE, r->srq[1]->number, MTU);
	arrive(r, OP_XRC_SEND_LAST, r->srq[1]->number, 8);
	expect_completion(r, 1, 71, WC_SUCCESS);
	arrive(r, OP_XRC_SEND_ONLY, r->srq[0]->number, 8);
	expect_completion(r, 0, 70, WC_SUCCESS);
	assert_int_equal(last_syndrome(r) & 0xe0, AETH_ACK);
	assert_int_equal(duo_count(r->duo, DUO_B, OP_RC_ACK), 0);
	arrive(r, OP_XRC_SEND_ONLY, r->srq[0]->number, 8); /* it has no receive left */
	assert_int_equal(aeth_kind(last_syndrome(r)), AETH_RNR_NAK);
	assert_int_equal(qp_state(r->qp), QPS_RTR);
	room_end(r);
}

TEST(a_message_stays_with_its_srq)
{
	static const uint8_t second[] = {OP_XRC_SEND_MIDDLE, OP_XRC_SEND_LAST, OP_XRC_READ_REQUEST};

	for (size_t i = 0; i < COUNT(second); i++) {
		struct room *r = room_make();

		arrive(r, OP_XRC_SEND_FIRST, r->srq[0]->number, MTU);
		arrive(r, second[i], r->srq[1]->number, second[i] == OP_XRC_READ_REQUEST ? 0 : MTU);
		expect_refused(r);
		expect_completion(r, 0, 70, WC_WR_FLUSH_ERR);
		assert_null(cq_peek(r->cq[1], 0));
		room_end(r);
	}
}

TEST(numbers_that_name_no_srq_are_refused)
{
	struct room *r = room_make();

	arrive(r, OP_XRC_SEND_ONLY, 0, 8); /* as a basic SRQ has */
	expect_refused(r);
	room_end(r);
	r = room_make();
	arrive(r, OP_XRC_WRITE_ONLY, r->srq[0]->number ^ r->srq[1]->number ^ 1, 8);
	expect_refused(r);
	room_end(r);
}

/* With or without a message for it on its way. */
TEST(an_srq_may_be_destroyed_at_any_time)
{
	for (int begun = 0; begun < 2; begun++) {
		struct room *r = room_make();
		uint32_t number = r->srq[0]->number;

		if (begun)
			arrive(r, OP_XRC_SEND_FIRST, number, MTU);
		assert_int_equal(nic_srq_destroy(r->nic, r->srq[0]), 0);
		r->srq[0] = NULL;
		arrive(r, begun ? OP_XRC_SEND_LAST : OP_XRC_SEND_ONLY, number, 8);
		expect_refused(r);
		assert_null(cq_peek(r->cq[0], 0));
		room_end(r);
	}
}

/* And the QP that receives gets no answers to requests that it never sends. */
TEST(packets_of_another_service_are_dropped)
{
	static const uint8_t opcodes[] = {OP_RC_SEND_ONLY, OP_UC_SEND_ONLY, OP_XRC_ACK, OP_XRC_READ_RESPONSE_ONLY,
					  OP_XRC_ATOMIC_ACK};
	struct room *r = room_make();

	for (size_t i = 0; i < COUNT(opcodes); i++) {
		arrive(r, opcodes[i], r->srq[0]->number, 0);
		r->psn--;
	}
	assert_int_equal(duo_count(r->duo, DUO_B, DUO_ANY), 0);
	arrive(r, OP_XRC_SEND_ONLY, r->srq[0]->number, 8);
	expect_completion(r, 0, 70, WC_SUCCESS);
	room_end(r);
}

SIM_TEST(an_rc_qp_takes_no_xrc_requests)
{
	struct bth bth = {
		.opcode = OP_XRC_SEND_ONLY, .migreq = true, .pkey = NIC_PKEY_DEFAULT, .dqpn = s.b->qpn, .ackreq = true};
	uint8_t ext[XRCETH_LEN] = {0};

	duo_forge(s.duo, DUO_B, DUO_GID_IPV4, &bth, ext, sizeof(ext), NULL, 0);
	duo_idle(s.duo);
	assert_int_equal(duo_count(s.duo, DUO_B, OP_XRC_ACK), 0);
}

TEST(a_request_without_its_xrceth_is_malformed)
{
	struct room *r = room_make();
	struct bth bth = {.opcode = OP_XRC_SEND_ONLY,
			  .migreq = true,
			  .pkey = NIC_PKEY_DEFAULT,
			  .dqpn = qp_number(r->qp),
			  .psn = r->psn,
			  .ackreq = true};

	assert_int_equal(duo_forge(r->duo, DUO_B, DUO_GID_IPV4, &bth, NULL, 0, NULL, 0), -EBADMSG);
	duo_idle(r->duo);
	assert_int_equal(qp_state(r->qp), QPS_RTR);
	room_end(r);
}
