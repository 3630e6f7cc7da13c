/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer's mistakes: the Terminate that answers it, the completions and events at both ends, and memory that
 * nobody wrote (RFC 5040 7, RFC 5041 7, RFC 5044 8).
 */

#include "base/stream_event.h"
#include "iwarp/fpdu.h"
#include "iwarp/pipe.h"
#include "iwarp/rdmap.h"
#include "support/test.h"

static struct pipe p;

/* The bytes that one side sent while run_and_listen() ran. */
static uint8_t said[4096];
static size_t said_len;

/* Runs to the end; what `side` says is kept. */
static void run_and_listen(enum pipe_side side)
{
	struct pipe_end *e = &p.end[side];
	bool moved = true;

	said_len = 0;
	while (moved) {
		size_t before = e->wire_len;
		struct pkt burst[16];
		size_t n;

		/* This end's output is taken here, so that it can be seen whole. */
		n = nic_output(e->nic, burst, 16, p.now_ns);
		for (size_t i = 0; i < n; i++) {
			if (pkt_stream_kind(&burst[i]) == STREAM_FIN) {
				e->fin = true;
				continue;
			}
			pipe_inject(&p, side, burst[i].data, burst[i].len);
			if (said_len + burst[i].len <= sizeof(said)) {
				memcpy(said + said_len, burst[i].data, burst[i].len);
				said_len += burst[i].len;
			}
		}
		moved = pipe_step(&p) || n || e->wire_len != before;
	}
}

/* The last FPDU that was said is a Terminate with that cause, and complete in itself. */
static void expect_terminate(enum term_cause cause)
{
	struct rdmap_segment s = {0};
	struct fpdu_reader r = {.framing.crc = true};
	struct heap heap = HEAP_INIT;
	struct alloc alloc = heap_alloc(&heap);
	struct pool pool;
	const uint8_t *data = said, *ulpdu;
	size_t left = said_len;
	struct terminate t;
	uint32_t len;

	pool_init(&pool, &alloc);
	while (fpdu_read(&r, &pool, &data, &left, &ulpdu, &len) == FPDU_ULPDU)
		assert_int_equal(rdmap_judge(&s, ulpdu, len), TERM_NONE);
	fpdu_reader_fini(&r, &pool);
	assert_true(fpdu_is_between(&r));
	pool_fini(&pool);
	assert_non_null(s.info);
	assert_int_equal(s.ddp.opcode, RDMAP_TERMINATE);
	assert_int_equal(s.ddp.msn, 1);
	assert_true(terminate_decode(&t, s.payload, s.payload_len));
	assert_int_equal(t.cause, cause);
}

static void expect_over(void)
{
	for (int side = 0; side < PIPE_SIDES; side++) {
		assert_int_equal(qp_state(p.end[side].qp), QPS_ERR);
		assert_true(p.end[side].fin);
	}
}

/* An FPDU of A's with that ULPDU, forged. */
static void inject(const struct ddp *ddp, const uint8_t *body, uint32_t len)
{
	uint8_t raw[2048];
	struct fpdu_framing f = {.crc = true};
	uint32_t headers = ddp_len(ddp->tagged);

	ddp_encode(raw + FPDU_LENGTH_LEN, ddp);
	if (len)
		memcpy(raw + FPDU_LENGTH_LEN + headers, body, len);
	pipe_inject(&p, PIPE_A, raw, fpdu_seal(&f, raw, headers + len));
}

static struct ddp tagged(uint8_t opcode, uint32_t stag, uint64_t to)
{
	return (struct ddp){.tagged = true,
			    .last = true,
			    .ddp_version = 1,
			    .rdmap_version = 1,
			    .opcode = opcode,
			    .stag = stag,
			    .to = to};
}

static struct ddp untagged(uint8_t opcode, uint32_t qn, uint32_t msn, uint32_t mo)
{
	return (struct ddp){
		.last = true, .ddp_version = 1, .rdmap_version = 1, .opcode = opcode, .qn = qn, .msn = msn, .mo = mo};
}

static const uint8_t zeros[PIPE_MEM];

/* Of a Write that is refused: what B says, and that nothing was written. */
static void check_write(struct pipe_wr wr, uint32_t mr_access, uint32_t qp_access, enum term_cause cause)
{
	pipe_open(&p, &(struct pipe_config){.seed = 1});
	p.end[PIPE_B].mr->access = mr_access;
	nic_qp_modify(p.end[PIPE_B].nic, p.end[PIPE_B].qp, &(struct qp_attr){.access = qp_access}, QPA_ACCESS_FLAGS, 0);
	memset(p.end[PIPE_A].mem, 0xff, 4096);
	wr.opcode = WR_WRITE;
	wr.wr_id = 1;
	pipe_post(&p, PIPE_A, &wr);
	run_and_listen(PIPE_B);
	pipe_expect(&p, PIPE_A, 1, WC_SUCCESS); /* it left; the stream's end is what tells */
	expect_terminate(cause);
	expect_over();
	assert_int_equal(pipe_event(&p, PIPE_B), EVENT_QP_ACCESS_ERR);
	assert_memory_equal(p.end[PIPE_B].mem, zeros, PIPE_MEM);
	pipe_close(&p);
}

enum { ALL = MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ };

TEST(a_write_without_right_is_terminated)
{
	check_write((struct pipe_wr){.len = 100, .rkey = 0x12345678}, ALL, ALL, TERM_TAGGED_STAG);
	check_write((struct pipe_wr){.len = 100, .to = PIPE_MEM - 99}, ALL, ALL, TERM_TAGGED_BOUNDS);
	check_write((struct pipe_wr){.len = 100, .remote_va = PIPE_IOVA - 1}, ALL, ALL, TERM_TAGGED_BOUNDS);
	check_write((struct pipe_wr){.len = 100, .remote_va = UINT64_MAX - 50}, ALL, ALL, TERM_TAGGED_WRAP);
	check_write((struct pipe_wr){.len = 100}, MR_LOCAL_WRITE, ALL, TERM_TAGGED_STAG);
	check_write((struct pipe_wr){.len = 100}, ALL, MR_REMOTE_READ, TERM_TAGGED_STAG);
}

PIPE_TEST(a_write_to_another_domain_is_terminated)
{
	struct pd *other;
	struct mr *mr;

	assert_int_equal(nic_pd_alloc(p.end[PIPE_B].nic, &other), 0);
	assert_int_equal(nic_mr_reg(p.end[PIPE_B].nic, other,
				    (struct mr_range){.addr = p.end[PIPE_B].mem, .length = 4096, .iova = 4096}, ALL,
				    &mr),
			 0);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 100, .rkey = mr->key, .remote_va = 4096});
	run_and_listen(PIPE_B);
	expect_terminate(TERM_TAGGED_STREAM);
}

static void check_read(struct pipe_wr wr, uint32_t qp_access, enum term_cause cause)
{
	pipe_open(&p, &(struct pipe_config){.seed = 1});
	nic_qp_modify(p.end[PIPE_B].nic, p.end[PIPE_B].qp, &(struct qp_attr){.access = qp_access}, QPA_ACCESS_FLAGS, 0);
	memset(p.end[PIPE_B].mem, 0xff, PIPE_MEM);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_READ, .len = 0, .wr_id = 1});
	wr.opcode = WR_READ;
	wr.wr_id = 2;
	pipe_post(&p, PIPE_A, &wr);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_READ, .len = 10, .wr_id = 3});
	run_and_listen(PIPE_B);
	expect_terminate(cause);
	/* The one that the Terminate names; what is behind it is flushed. */
	pipe_expect(&p, PIPE_A, 1, p.end[PIPE_B].sent_bytes ? WC_SUCCESS : WC_WR_FLUSH_ERR);
	pipe_expect(&p, PIPE_A, 2, WC_REM_ACCESS_ERR);
	pipe_expect(&p, PIPE_A, 3, WC_WR_FLUSH_ERR);
	expect_over();
	assert_int_equal(pipe_event(&p, PIPE_B), EVENT_QP_ACCESS_ERR);
	assert_memory_equal(p.end[PIPE_A].mem, zeros, PIPE_MEM);
	pipe_close(&p);
}

TEST(a_read_without_right_is_terminated)
{
	check_read((struct pipe_wr){.len = 100, .rkey = 0x12345678}, ALL, TERM_PROTECTION_STAG);
	check_read((struct pipe_wr){.len = 100, .to = PIPE_MEM - 99}, ALL, TERM_PROTECTION_BOUNDS);
	check_read((struct pipe_wr){.len = 100, .remote_va = UINT64_MAX - 50}, ALL, TERM_PROTECTION_WRAP);
	check_read((struct pipe_wr){.len = 100}, MR_REMOTE_WRITE, TERM_PROTECTION_ACCESS);
}

/* RFC 5041 7.2: there is no RNR. */
PIPE_TEST(a_send_without_receive_wqe_is_terminated)
{
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_SEND, .len = 100, .wr_id = 1});
	run_and_listen(PIPE_B);
	expect_terminate(TERM_UNTAGGED_NO_BUFFER);
	expect_over();
	assert_int_equal(pipe_event(&p, PIPE_B), EVENT_QP_FATAL);
}

PIPE_TEST(a_send_that_is_too_long_is_terminated)
{
	pipe_post_recv(&p, PIPE_B, 5, 0, 99);
	pipe_post_recv(&p, PIPE_B, 6, 0, 99);
	memset(p.end[PIPE_A].mem, 0xff, 4096);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_SEND, .len = 100, .wr_id = 1});
	run_and_listen(PIPE_B);
	expect_terminate(TERM_UNTAGGED_TOO_LONG);
	pipe_expect(&p, PIPE_B, 5, WC_LOC_LEN_ERR);
	pipe_expect(&p, PIPE_B, 6, WC_WR_FLUSH_ERR);
	expect_over();
	assert_memory_equal(p.end[PIPE_B].mem, zeros, PIPE_MEM);
}

PIPE_TEST(invalidating_what_is_not_there_is_terminated)
{
	pipe_post_recv(&p, PIPE_B, 5, 0, 100);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_SEND_INV, .len = 4, .imm_or_key = 0x99});
	run_and_listen(PIPE_B);
	expect_terminate(TERM_PROTECTION_NO_INVALIDATE);
	pipe_expect(&p, PIPE_B, 5, WC_WR_FLUSH_ERR);
	expect_over();
}

/* Segments that no conforming peer sends. */
TEST(forged_segments_are_terminated)
{
	static const uint8_t body[READ_REQUEST_LEN];
	const struct {
		struct ddp ddp;
		uint32_t len;
		enum term_cause cause;
	} cases[] = {
		{untagged(RDMAP_SEND, QN_SEND, 2, 0), 4, TERM_UNTAGGED_MSN},
		{untagged(RDMAP_SEND, QN_SEND, 0, 0), 4, TERM_UNTAGGED_MSN},
		{untagged(RDMAP_SEND, QN_SEND, 1, 4), 4, TERM_UNTAGGED_MO},
		{untagged(RDMAP_READ_REQUEST, QN_READ, 2, 0), READ_REQUEST_LEN, TERM_UNTAGGED_MSN},
		{tagged(RDMAP_READ_RESPONSE, 1, 0), 4, TERM_OPERATION_OPCODE}, /* nobody asked */
		{tagged(RDMAP_READ_RESPONSE, 1, 0), 0, TERM_OPERATION_OPCODE},
		{untagged(RDMAP_IMM, QN_SEND, 1, 0), IMM_LEN, TERM_OPERATION_OPCODE},
		{untagged(RDMAP_SEND, 9, 1, 0), 4, TERM_UNTAGGED_QN},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		pipe_open(&p, &(struct pipe_config){.seed = 1});
		pipe_post_recv(&p, PIPE_B, 5, 0, 100);
		inject(&cases[i].ddp, body, cases[i].len);
		run_and_listen(PIPE_B);
		expect_terminate(cases[i].cause);
		pipe_expect(&p, PIPE_B, 5, WC_WR_FLUSH_ERR);
		expect_over();
		pipe_close(&p);
	}
}

/* RFC 6581 4.4: one Read Request more than agreed on. */
PIPE_TEST(a_read_too_many_is_terminated, .reads = 2)
{
	for (uint32_t i = 1; i <= 3; i++) {
		struct ddp ddp = untagged(RDMAP_READ_REQUEST, QN_READ, i, 0);
		uint8_t body[READ_REQUEST_LEN];

		read_request_encode(body, &(struct read_request){.size = 8,
								 .source_stag = p.end[PIPE_B].mr->key,
								 .source_to = PIPE_IOVA});
		inject(&ddp, body, sizeof(body));
	}
	run_and_listen(PIPE_B);
	expect_terminate(TERM_OPERATION_STREAM);
}

/* A response fits its READ to the byte, or is not placed, whatever key it names. */
TEST(a_response_that_does_not_fit_its_read_is_terminated)
{
	for (int wrong = 0; wrong < 5; wrong++) {
		struct pkt burst[4];
		uint32_t len = 100;
		struct ddp ddp;

		pipe_open(&p, &(struct pipe_config){.seed = 1});
		/* B asks, and A's answer is forged: A's own nic never gets the request. */
		pipe_post(&p, PIPE_B, &(struct pipe_wr){.opcode = WR_READ, .at = 4096, .len = 100, .wr_id = 1});
		assert_int_equal(nic_output(p.end[PIPE_B].nic, burst, 4, p.now_ns), 1);
		ddp = tagged(RDMAP_READ_RESPONSE, p.end[PIPE_B].mr->key, PIPE_IOVA + 4096);
		if (wrong == 0)
			ddp.stag ^= 1;
		else if (wrong == 1)
			ddp.to += 1;
		else if (wrong == 2)
			len = 101;
		else if (wrong == 3)
			len = 99;
		else
			ddp.last = false;
		inject(&ddp,
		       (const uint8_t *)"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
					"xxxxxxxxxxxxxxxxxxxxxxxxxxx",
		       len);
		run_and_listen(PIPE_B);
		expect_terminate(wrong == 0 ? TERM_TAGGED_STAG : TERM_TAGGED_BOUNDS);
		pipe_expect(&p, PIPE_B, 1, WC_WR_FLUSH_ERR);
		assert_memory_equal(p.end[PIPE_B].mem, zeros, PIPE_MEM);
		pipe_close(&p);
	}
}

/* B found those errors, and its Terminate got there. */
static void expect_counted(uint64_t crc_errors, uint64_t marker_errors)
{
	const struct nic_counters *a = nic_counters(p.end[PIPE_A].nic), *b = nic_counters(p.end[PIPE_B].nic);

	assert_int_equal(b->fpdu_crc_errors, crc_errors);
	assert_int_equal(b->fpdu_marker_errors, marker_errors);
	assert_int_equal(b->terminates_sent, 1);
	assert_int_equal(b->terminates_received, 0);
	assert_int_equal(a->terminates_received, 1);
	assert_int_equal(a->terminates_sent, 0);
}

PIPE_TEST(a_bad_crc_is_terminated_and_nothing_placed)
{
	uint8_t raw[64];
	struct fpdu_framing f = {.crc = true};
	uint32_t len;
	struct ddp ddp = tagged(RDMAP_WRITE, p.end[PIPE_B].mr->key, PIPE_IOVA);

	ddp_encode(raw + FPDU_LENGTH_LEN, &ddp);
	memset(raw + FPDU_LENGTH_LEN + DDP_TAGGED_LEN, 0xff, 8);
	len = fpdu_seal(&f, raw, DDP_TAGGED_LEN + 8);
	raw[20] ^= 1;
	pipe_inject(&p, PIPE_A, raw, len);
	run_and_listen(PIPE_B);
	expect_terminate(TERM_MPA_CRC);
	expect_over();
	assert_int_equal(pipe_event(&p, PIPE_B), EVENT_QP_FATAL);
	assert_memory_equal(p.end[PIPE_B].mem, zeros, PIPE_MEM);
	expect_counted(1, 0);
}

/* RFC 5044 8: Terminate 2/0/3. Only an end that asked for markers finds one wrong; the Terminate has markers, too. */
PIPE_TEST(a_wrong_marker_is_terminated_and_nothing_placed, .markers = true, .no_crc = true)
{
	uint8_t raw[64];
	struct fpdu_framing f = {.markers = true};
	uint32_t len;
	struct ddp ddp = tagged(RDMAP_WRITE, p.end[PIPE_B].mr->key, PIPE_IOVA);

	ddp_encode(raw + FPDU_LENGTH_LEN, &ddp);
	memset(raw + FPDU_LENGTH_LEN + DDP_TAGGED_LEN, 0xff, 8);
	len = fpdu_seal(&f, raw, DDP_TAGGED_LEN + 8);
	raw[FPDU_MARKER_LEN - 1] = 4; /* there is no FPDU four bytes back */
	pipe_inject(&p, PIPE_A, raw, len);
	run_and_listen(PIPE_B);
	assert_int_equal(said_len, FPDU_MARKER_LEN + 2 + DDP_UNTAGGED_LEN + 4 + 4);
	assert_int_equal(get_be16(said + FPDU_MARKER_LEN + FPDU_LENGTH_LEN + DDP_UNTAGGED_LEN), TERM_MPA_MARKER);
	expect_over();
	assert_memory_equal(p.end[PIPE_B].mem, zeros, PIPE_MEM);
	expect_counted(0, 1);
}

/* The first error wins: nothing behind it is placed, and there is one Terminate. */
PIPE_TEST(nothing_behind_an_error_is_placed)
{
	struct ddp good, bad = tagged(RDMAP_WRITE, 0x5555, PIPE_IOVA);

	good = tagged(RDMAP_WRITE, p.end[PIPE_B].mr->key, PIPE_IOVA);
	inject(&bad, (const uint8_t *)"12345678", 8);
	inject(&good, (const uint8_t *)"12345678", 8);
	inject(&bad, (const uint8_t *)"12345678", 8);
	run_and_listen(PIPE_B);
	expect_terminate(TERM_TAGGED_STAG);
	assert_int_equal(said_len, 2 + 18 + 4 + 2 + 14 + 4);
	assert_memory_equal(p.end[PIPE_B].mem, zeros, PIPE_MEM);
}

/* Our own WQE is wrong: it completes so, and the stream ends. */
PIPE_TEST(a_bad_local_key_fails_its_wqe)
{
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_READ, .len = 10, .wr_id = 1});
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 10, .lkey = 0x77, .wr_id = 2});
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 10, .wr_id = 3});
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 1, WC_SUCCESS);
	pipe_expect(&p, PIPE_A, 2, WC_LOC_PROT_ERR);
	pipe_expect(&p, PIPE_A, 3, WC_WR_FLUSH_ERR);
	expect_over();
}

TEST(what_iwarp_has_not_fails_its_wqe)
{
	static const enum wr_opcode none[] = {WR_SEND_IMM, WR_WRITE_IMM, WR_CMP_SWAP, WR_FETCH_ADD};

	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		pipe_open(&p, &(struct pipe_config){.seed = 1});
		pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = none[i], .len = 8, .wr_id = 1});
		pipe_run(&p);
		pipe_expect(&p, PIPE_A, 1, WC_LOC_QP_OP_ERR);
		pipe_close(&p);
	}
}
