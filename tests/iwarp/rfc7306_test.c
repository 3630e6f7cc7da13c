/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 7306: atomics and immediate data, where both ends have them, and what is refused. */

#include "base/byteorder.h"
#include "iwarp/fpdu.h"
#include "iwarp/golden.h"
#include "iwarp/pipe.h"
#include "iwarp/rdmap.h"
#include "support/test.h"

static struct pipe p;

enum { TARGET = 512 << 10, IMM = 0xcafe0001 };

static uint64_t *word_at(enum pipe_side side, uint32_t at)
{
	return (uint64_t *)(p.end[side].mem + at);
}

static void open_pair(size_t piece_max)
{
	pipe_open(&p, &(struct pipe_config){.seed = 1, .piece_max = piece_max, .rfc7306 = true});
}

static void post_atomic(enum wr_opcode opcode, uint32_t at, uint64_t compare_add, uint64_t swap, uint64_t wr_id)
{
	pipe_post(&p, PIPE_A,
		  &(struct pipe_wr){.opcode = opcode,
				    .at = at,
				    .len = 8,
				    .to = TARGET,
				    .compare_add = compare_add,
				    .swap = swap,
				    .wr_id = wr_id});
}

TEST(atomics_change_a_word_and_return_what_was_there)
{
	static const size_t pieces[] = {0, 1, 13, 4000};

	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		open_pair(pieces[i]);
		*word_at(PIPE_B, TARGET) = UINT64_C(0x1122334455667788);
		post_atomic(WR_FETCH_ADD, 0, UINT64_C(0xf000000000000001), 0, 1);
		post_atomic(WR_CMP_SWAP, 8, 5, 6, 2); /* does not compare */
		post_atomic(WR_CMP_SWAP, 16, UINT64_C(0x0122334455667789), 7, 3);
		pipe_run(&p);
		for (uint64_t id = 1; id <= 3; id++)
			pipe_expect(&p, PIPE_A, id, WC_SUCCESS);
		assert_true(*word_at(PIPE_A, 0) == UINT64_C(0x1122334455667788));
		assert_true(*word_at(PIPE_A, 8) == UINT64_C(0x0122334455667789));
		assert_true(*word_at(PIPE_A, 16) == UINT64_C(0x0122334455667789));
		assert_true(*word_at(PIPE_B, TARGET) == 7);
		pipe_close(&p);
	}
}

/* READs and atomics share the queue, its depth and the order of the answers; a fence waits for
 * both. */
TEST(reads_and_atomics_share_a_queue)
{
	open_pair(700);
	for (uint64_t i = 0; i < 40; i++) {
		if (i % 3 == 0)
			pipe_post(&p, PIPE_A,
				  &(struct pipe_wr){
					  .opcode = WR_READ, .at = 65536, .len = 5000, .to = 65536, .wr_id = i});
		else if (i % 3 == 1)
			post_atomic(WR_FETCH_ADD, (uint32_t)(8 * i), 1, 0, i);
		else
			pipe_post(&p, PIPE_A,
				  &(struct pipe_wr){.opcode = WR_WRITE,
						    .flags = WR_FENCE,
						    .at = (uint32_t)(8 * (i - 1)),
						    .len = 8,
						    .to = TARGET + 8,
						    .wr_id = i});
	}
	pipe_run(&p);
	for (uint64_t i = 0; i < 40; i++)
		pipe_expect(&p, PIPE_A, i, WC_SUCCESS);
	assert_true(*word_at(PIPE_B, TARGET) == 13);
	assert_true(*word_at(PIPE_B, TARGET + 8) == 12); /* what the last atomic before a fence found */
	pipe_close(&p);
}

static void check_immediate(uint32_t len, uint32_t flags)
{
	struct cqe e;

	memset(p.end[PIPE_A].mem, (int)len + 1, len);
	memset(p.end[PIPE_B].mem + TARGET, 0xee, len + 8);
	pipe_post_recv(&p, PIPE_B, 9, 0, 0);
	pipe_post(&p, PIPE_A,
		  &(struct pipe_wr){.opcode = WR_WRITE, .len = 100, .to = 0, .wr_id = 1}); /* is not counted */
	pipe_post(&p, PIPE_A,
		  &(struct pipe_wr){.opcode = WR_WRITE_IMM,
				    .flags = flags,
				    .len = len,
				    .to = TARGET,
				    .imm_or_key = IMM,
				    .wr_id = 2});
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 1, WC_SUCCESS);
	pipe_expect(&p, PIPE_A, 2, WC_SUCCESS);
	assert_true(pipe_poll(&p, PIPE_B, &e));
	assert_true(e.status == WC_SUCCESS && e.wr_id == 9 && e.opcode == WC_RECV_RDMA_WITH_IMM &&
		    e.flags == WC_WITH_IMM);
	assert_true(e.imm_or_key == IMM && e.byte_len == len);
	assert_int_equal(e.solicited, flags & WR_SOLICITED ? 1 : 0);
	assert_memory_equal(p.end[PIPE_B].mem + TARGET, p.end[PIPE_A].mem, len);
	assert_int_equal(p.end[PIPE_B].mem[TARGET + len], 0xee);
}

TEST(a_write_with_immediate_data_takes_a_receive_wqe)
{
	static const uint32_t lengths[] = {0, 1, 1428, 1429, 70000};

	open_pair(900);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		check_immediate(lengths[i], 0);
		check_immediate(lengths[i], WR_SOLICITED);
		if (lengths[i] == 1)
			check_immediate(lengths[i], WR_INLINE);
	}
	pipe_close(&p);
}

/* What A says of its first requests is what the golden frames say, keys and addresses aside. */
TEST(requests_are_as_the_rfc_has_them)
{
	static const struct {
		enum wr_opcode opcode;
		const char *golden;
		uint32_t at; /* of its FPDU in what is said */
		uint8_t msn, id;
	} rows[] = {{WR_FETCH_ADD, GOLDEN_ATOMIC_REQUEST, 0, 1, 1}, {WR_WRITE_IMM, GOLDEN_IMM, 20, 1, 0}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint8_t want[128];
		size_t len = golden_bytes(want, rows[i].golden), said_len;
		struct pkt burst[4];

		open_pair(0);
		pipe_post(&p, PIPE_A,
			  &(struct pipe_wr){.opcode = rows[i].opcode,
					    .len = rows[i].opcode == WR_FETCH_ADD ? 8 : 0,
					    .remote_va = UINT64_C(0x560012345008),
					    .rkey = 0x11223344,
					    .compare_add = 1,
					    .imm_or_key = IMM,
					    .wr_id = 1});
		assert_int_equal(nic_output(p.end[PIPE_A].nic, burst, 4, p.now_ns), 1);
		said_len = burst[0].len - rows[i].at;
		want[FPDU_LENGTH_LEN + 13] = rows[i].msn;
		if (rows[i].id)
			want[FPDU_LENGTH_LEN + DDP_UNTAGGED_LEN + 7] = rows[i].id;
		assert_int_equal(said_len, len);
		assert_memory_equal(burst[0].data + rows[i].at, want, len - FPDU_CRC_LEN);
		pipe_close(&p);
	}
}

/* The Terminate's cause is what the other end's completion says: nothing was changed, and nothing
 * hangs. */
static void check_refused(struct pipe_wr wr, uint32_t mr_access, uint32_t qp_access, enum wc_status status)
{
	open_pair(100);
	p.end[PIPE_B].mr->access = mr_access;
	nic_qp_modify(p.end[PIPE_B].nic, p.end[PIPE_B].qp, &(struct qp_attr){.access = qp_access}, QPA_ACCESS_FLAGS, 0);
	*word_at(PIPE_B, TARGET) = 41;
	wr.len = 8;
	wr.wr_id = 1;
	pipe_post(&p, PIPE_A, &wr);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_READ, .len = 8, .wr_id = 2});
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 1, status);
	pipe_expect(&p, PIPE_A, 2, WC_WR_FLUSH_ERR);
	assert_true(*word_at(PIPE_B, TARGET) == 41);
	assert_int_equal(qp_state(p.end[PIPE_B].qp), QPS_ERR);
	pipe_close(&p);
}

TEST(an_atomic_without_right_is_refused)
{
	enum {
		ALL = MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC,
		NO_ATOMIC = MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ
	};
	const struct pipe_wr good = {.opcode = WR_FETCH_ADD, .to = TARGET, .compare_add = 1};
	struct pipe_wr wr = good;

	check_refused(wr, NO_ATOMIC, ALL, WC_REM_ACCESS_ERR);
	check_refused(wr, ALL, NO_ATOMIC, WC_REM_ACCESS_ERR);
	wr.rkey = 0x5555;
	check_refused(wr, ALL, ALL, WC_REM_ACCESS_ERR);
	wr = good;
	wr.remote_va = PIPE_IOVA + PIPE_MEM;
	check_refused(wr, ALL, ALL, WC_REM_ACCESS_ERR);
	wr.remote_va = PIPE_IOVA + TARGET + 4; /* not aligned */
	check_refused(wr, ALL, ALL, WC_REM_INV_REQ_ERR);
}

static void inject(enum pipe_side side, const struct ddp *ddp, const uint8_t *body, uint32_t len)
{
	uint8_t raw[256];
	struct fpdu_framing f = {.crc = true};
	uint32_t headers = ddp_len(ddp->tagged);

	ddp_encode(raw + FPDU_LENGTH_LEN, ddp);
	memcpy(raw + FPDU_LENGTH_LEN + headers, body, len);
	pipe_inject(&p, side, raw, fpdu_seal(&f, raw, headers + len));
}

static struct ddp untagged(uint8_t opcode, uint32_t msn)
{
	return (struct ddp){.last = true,
			    .ddp_version = 1,
			    .rdmap_version = 1,
			    .opcode = opcode,
			    .qn = rdmap_table[opcode].qn,
			    .msn = msn};
}

/* Operations and masks that verbs do not have are not offered. */
TEST(other_atomics_are_refused)
{
	static const struct atomic_request wrong[] = {
		{.operation = 1},
		{.operation = ATOMIC_FETCH_ADD, .add_swap_mask = 1},
		{.operation = ATOMIC_CMP_SWAP, .add_swap_mask = UINT64_MAX},
		{.operation = ATOMIC_CMP_SWAP, .compare_mask = UINT64_MAX},
		{.operation = 15, .add_swap_mask = UINT64_MAX, .compare_mask = UINT64_MAX}};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct ddp ddp = untagged(RDMAP_ATOMIC_REQUEST, 1);
		struct atomic_request r = wrong[i];
		uint8_t body[ATOMIC_REQUEST_LEN];

		open_pair(0);
		r.stag = p.end[PIPE_B].mr->key;
		r.to = PIPE_IOVA + TARGET;
		r.add_swap = 9;
		atomic_request_encode(body, &r);
		inject(PIPE_A, &ddp, body, sizeof(body));
		pipe_run(&p);
		assert_int_equal(qp_state(p.end[PIPE_B].qp), QPS_ERR);
		assert_true(*word_at(PIPE_B, TARGET) == 0);
		pipe_close(&p);
	}
}

/* An answer that nobody asked for, to a READ, with another id or in another turn is not taken. */
TEST(a_forged_response_is_not_taken)
{
	static const struct {
		enum wr_opcode asked;
		uint32_t id, msn;
		bool taken;
	} rows[] = {{WR_SEND, 1, 1, false},      {WR_READ, 1, 1, false},      {WR_FETCH_ADD, 2, 1, false},
		    {WR_FETCH_ADD, 1, 2, false}, {WR_FETCH_ADD, 1, 0, false}, {WR_FETCH_ADD, 1, 1, true}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ddp ddp = untagged(RDMAP_ATOMIC_RESPONSE, rows[i].msn);
		uint8_t body[ATOMIC_RESPONSE_LEN];
		struct pkt burst[4];

		open_pair(0);
		pipe_post(&p, PIPE_B,
			  &(struct pipe_wr){.opcode = rows[i].asked, .at = 64, .len = 8, .to = TARGET, .wr_id = 1});
		nic_output(p.end[PIPE_B].nic, burst, 4, p.now_ns); /* A never gets it */
		atomic_response_encode(body, &(struct atomic_response){.id = rows[i].id, .found = 77});
		inject(PIPE_A, &ddp, body, sizeof(body));
		pipe_run(&p);
		assert_int_equal(qp_state(p.end[PIPE_B].qp), rows[i].taken ? QPS_RTS : QPS_ERR);
		assert_true(*word_at(PIPE_B, 64) == (rows[i].taken ? 77 : 0));
		pipe_close(&p);
	}
}

/* Without a receive WQE, and inside a Send. */
TEST(immediate_data_out_of_place_end_the_stream)
{
	static const uint8_t body[IMM_LEN] = {1};
	struct ddp imm = untagged(RDMAP_IMM, 1), send = untagged(RDMAP_SEND, 1);

	for (int inside = 0; inside < 2; inside++) {
		open_pair(0);
		if (inside) {
			pipe_post_recv(&p, PIPE_B, 1, 0, 100);
			send.last = false;
			inject(PIPE_A, &send, body, sizeof(body));
		}
		inject(PIPE_A, &imm, body, sizeof(body));
		pipe_run(&p);
		assert_int_equal(qp_state(p.end[PIPE_B].qp), QPS_ERR);
		pipe_close(&p);
	}
}

/* A peer that has no RFC 7306, as siw, ends the stream. */
TEST(a_peer_without_it_ends_the_stream)
{
	static const enum rdmap_opcode opcodes[] = {RDMAP_IMM, RDMAP_IMM_SE, RDMAP_ATOMIC_REQUEST,
						    RDMAP_ATOMIC_RESPONSE};
	static const uint8_t body[ATOMIC_REQUEST_LEN];

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(*opcodes); i++) {
		struct ddp ddp = untagged((uint8_t)opcodes[i], 1);

		pipe_open(&p, &(struct pipe_config){.seed = 1});
		pipe_post_recv(&p, PIPE_B, 1, 0, 100);
		inject(PIPE_A, &ddp, body, rdmap_table[opcodes[i]].header_len);
		pipe_run(&p);
		pipe_expect(&p, PIPE_B, 1, WC_WR_FLUSH_ERR);
		assert_int_equal(qp_state(p.end[PIPE_B].qp), QPS_ERR);
		pipe_close(&p);
	}
}
