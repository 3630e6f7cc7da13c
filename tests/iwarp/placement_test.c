/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes that a back end puts where they belong: which ones it may, and what becomes of them when a region closes
 * meanwhile. */

#include "iwarp/fpdu.h"
#include "iwarp/pipe.h"
#include "iwarp/rdmap.h"
#include "iwarp/state.h"
#include "mem/mw.h"
#include "support/test.h"

enum { LEN = 20000, TO = 4096, BEGUN = 1000 /* bytes of a segment that come in a first piece */ };

static struct pipe p;
static uint8_t segment[LEN + 64];
static uint32_t segment_len;
static const uint8_t zeros[PIPE_MEM];

/* The two ends, and an FPDU of A's that carries LEN bytes, which are not zero, and is not on the wire yet. */
static void open_with(const struct pipe_config *c, const struct ddp *ddp)
{
	struct fpdu_framing f = {.crc = !c->no_crc};

	pipe_open(&p, c);
	memset(segment, 0xaa, sizeof(segment));
	ddp_encode(segment + FPDU_LENGTH_LEN, ddp);
	segment_len = fpdu_seal(&f, segment, ddp_len(ddp->tagged) + LEN);
}

static const struct pipe_config plain = {.seed = 1, .no_crc = true};

static struct ddp write_to(uint32_t stag, uint64_t to)
{
	return (struct ddp){.tagged = true,
			    .last = true,
			    .ddp_version = 1,
			    .rdmap_version = 1,
			    .opcode = RDMAP_WRITE,
			    .stag = stag,
			    .to = to};
}

/* The STag is only known when the ends are there. */
static void name_region(uint32_t stag)
{
	put_be32(segment + FPDU_LENGTH_LEN + 2, stag);
}

/* Bytes [from, to) of the segment come to B, the first `placed` of them where they belong. */
static void come(uint32_t from, uint32_t to, uint32_t placed)
{
	struct flow flow = {.flow_label = PIPE_B + 1};
	struct pkt pkt = {.data = segment + from + placed,
			  .len = to - from - placed,
			  .far_bytes = (uint16_t)placed,
			  .flow = &flow};

	nic_stream_input(p.end[PIPE_B].nic, p.end[PIPE_B].qp, &pkt, p.now_ns);
}

static size_t ask(uint8_t **to)
{
	*to = NULL;
	return nic_stream_place(p.end[PIPE_B].nic, p.end[PIPE_B].qp, to);
}

/* Comes as a back end has it: it asks, and puts at most `most` bytes there. */
static void come_placed(uint32_t from, uint32_t most)
{
	uint8_t *to;
	size_t n = ask(&to);

	assert_true(n >= most);
	memcpy(to, segment + from, most);
	come(from, from + most, most);
}

/* Each byte but the last ones, which must be seen last, and after the header, which says where they belong. */
TEST(all_but_header_and_end_may_be_placed)
{
	struct ddp ddp = write_to(0, PIPE_IOVA + TO);
	struct pipe_end *b = &p.end[PIPE_B];
	uint32_t header = FPDU_LENGTH_LEN + DDP_TAGGED_LEN, end;
	uint8_t *to;

	open_with(&plain, &ddp);
	name_region(b->mr->key);
	for (uint32_t i = 0; i < header; i++) {
		assert_int_equal(ask(&to), 0);
		come(i, i + 1, 0);
	}
	assert_int_equal(ask(&to), LEN - IWARP_PLACE_NOT);
	assert_ptr_equal(to, b->mem + TO);
	come_placed(header, 7000);
	assert_int_equal(ask(&to), LEN - IWARP_PLACE_NOT - 7000);
	assert_ptr_equal(to, b->mem + TO + 7000);
	come_placed(header + 7000, 1);
	end = header + 7001;
	assert_int_equal(b->mem[TO + 7000], 0xaa);
	assert_int_equal(b->mem[TO + 7001], 0);
	/* It need not go on with it, and then it cannot either. */
	come(end, end + 100, 0);
	assert_int_equal(ask(&to), 0);
	assert_int_equal(b->mem[TO + 7001], 0);
	come(end + 100, segment_len, 0);
	assert_memory_equal(b->mem + TO, segment + header, LEN);
	assert_int_equal(b->mem[TO + LEN], 0);
	assert_int_equal(b->mem[TO - 1], 0);
	assert_int_equal(nic_counters(b->nic)->rx_placed_bytes, 7001);
	assert_int_equal(nic_counters(b->nic)->rx_bytes, segment_len);
	assert_int_equal(nic_counters(b->nic)->rx_packets, 1);
	pipe_close(&p);
}

/* Of a CRC's bytes nothing is known before the last one came (RFC 5044 6), and markers lie among the payload. */
TEST(nothing_is_placed_before_it_is_verified)
{
	struct ddp ddp = write_to(0, PIPE_IOVA + TO);
	uint8_t *to;

	open_with(&(struct pipe_config){.seed = 1}, &ddp);
	name_region(p.end[PIPE_B].mr->key);
	come(0, BEGUN, 0);
	assert_int_equal(ask(&to), 0);
	pipe_close(&p);
	open_with(&(struct pipe_config){.seed = 1, .no_crc = true, .markers = true}, &ddp);
	name_region(p.end[PIPE_B].mr->key);
	come(0, 400, 0);
	assert_int_equal(ask(&to), 0);
	pipe_close(&p);
}

static void check_refused(struct ddp ddp, bool known, uint32_t mr_access, uint32_t qp_access)
{
	struct pipe_end *b = &p.end[PIPE_B];
	uint8_t *to;

	open_with(&plain, &ddp);
	b->mr->access = mr_access;
	nic_qp_modify(b->nic, b->qp, &(struct qp_attr){.access = qp_access}, QPA_ACCESS_FLAGS, 0);
	if (known)
		name_region(b->mr->key);
	come(0, BEGUN, 0);
	assert_int_equal(ask(&to), 0);
	come(BEGUN, segment_len, 0);
	assert_int_equal(qp_state(b->qp), QPS_ERR);
	assert_int_equal(ask(&to), 0);
	assert_memory_equal(b->mem, zeros, PIPE_MEM);
	pipe_close(&p);
}

TEST(what_will_be_refused_has_no_place)
{
	enum { ALL = MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ };
	struct ddp right = write_to(0, PIPE_IOVA + TO), other = right;

	check_refused(write_to(0x12345678, PIPE_IOVA + TO), false, ALL, ALL);
	check_refused(write_to(0, PIPE_IOVA + PIPE_MEM - LEN + 1), true, ALL, ALL);
	check_refused(write_to(0, PIPE_IOVA - 1), true, ALL, ALL);
	check_refused(right, true, MR_LOCAL_WRITE, ALL);
	check_refused(right, true, ALL, MR_REMOTE_READ);
	other.opcode = RDMAP_READ_RESPONSE; /* nobody asked */
	check_refused(other, true, ALL, ALL);
	other.opcode = RDMAP_READ_REQUEST; /* on no queue */
	check_refused(other, true, ALL, ALL);
	other = right;
	other.ddp_version = 2;
	check_refused(other, true, ALL, ALL);
}

/* A Send's place depends on a receive WQE, which it takes when it is whole. */
TEST(a_send_has_no_place)
{
	struct ddp ddp = {.last = true, .ddp_version = 1, .rdmap_version = 1, .opcode = RDMAP_SEND, .msn = 1};
	uint8_t *to;

	open_with(&plain, &ddp);
	pipe_post_recv(&p, PIPE_B, 5, TO, LEN);
	come(0, BEGUN, 0);
	assert_int_equal(ask(&to), 0);
	come(BEGUN, segment_len, 0);
	pipe_expect(&p, PIPE_B, 5, WC_SUCCESS);
	pipe_close(&p);
}

/* The region closes when a part is there: nothing comes after it, and the peer is told as if it had closed before. */
TEST(a_region_that_closes_gets_no_more)
{
	struct ddp ddp = write_to(0, PIPE_IOVA + TO);
	struct pipe_end *b = &p.end[PIPE_B];
	uint8_t *to;

	for (int gone = 0; gone < 2; gone++) {
		open_with(&plain, &ddp);
		name_region(b->mr->key);
		come(0, BEGUN, 0);
		come_placed(BEGUN, 3000);
		memset(b->mem, 0, PIPE_MEM);
		if (gone)
			assert_int_equal(nic_mr_dereg(b->nic, b->mr), 0);
		else
			b->mr->access = MR_LOCAL_WRITE;
		assert_int_equal(ask(&to), 0);
		come(BEGUN + 3000, segment_len, 0);
		assert_int_equal(pipe_event(&p, PIPE_B), EVENT_QP_ACCESS_ERR);
		assert_memory_equal(b->mem, zeros, PIPE_MEM);
		pipe_close(&p);
	}
}

/* B's request without a message. */
static void post_local(const struct send_wqe *request)
{
	struct pipe_end *b = &p.end[PIPE_B];
	struct send_wqe *w = sq_slot(qp_sq(b->qp), 0);

	w->opcode = request->opcode;
	w->flags = w->length = w->num_sge = 0;
	w->rkey = request->rkey;
	w->imm_or_key = request->imm_or_key;
	w->bind = request->bind;
	sq_post(qp_sq(b->qp), 1);
	nic_doorbell(b->nic, b->qp);
	pipe_run(&p);
}

/* The window opens all that the region has from PIPE_IOVA on, up to the middle of B's memory. */
static void bind_window(const struct mw *mw, uint32_t key, const struct mr *mr)
{
	post_local(&(struct send_wqe){.opcode = WR_BIND_MW,
				      .rkey = key,
				      .bind = {.addr = PIPE_IOVA,
					       .length = PIPE_MEM / 2,
					       .handle = mw->anchor.key,
					       .lkey = mr->key,
					       .access = MR_REMOTE_WRITE}});
	assert_ptr_equal(mw->region, mr);
}

/* A window's key that opens other bytes when the rest of the segment comes: half of it here and half there is no Write.
 */
TEST(a_key_that_opens_another_place_is_refused)
{
	struct ddp ddp = write_to(0, PIPE_IOVA + TO);
	struct pipe_end *b = &p.end[PIPE_B];
	struct mr *other;
	struct mw *mw;
	uint32_t key;
	uint8_t *to;

	for (int asks = 0; asks < 2; asks++) {
		open_with(&plain, &ddp);
		b->mr->access |= MR_MW_BIND;
		assert_int_equal(nic_mr_reg(b->nic, b->pd,
					    (struct mr_range){b->mem + PIPE_MEM / 2, PIPE_MEM / 2, PIPE_IOVA},
					    b->mr->access, &other),
				 0);
		assert_int_equal(nic_mw_alloc(b->nic, b->pd, MW_TYPE_2, &mw), 0);
		key = mw->opened.key ^ 1;
		name_region(key);
		bind_window(mw, key, b->mr);
		come(0, BEGUN, 0);
		come_placed(BEGUN, 3000);
		memset(b->mem, 0, PIPE_MEM);
		post_local(&(struct send_wqe){.opcode = WR_LOCAL_INV, .imm_or_key = key});
		assert_null(mw->region);
		bind_window(mw, key, other);
		if (asks)
			assert_int_equal(ask(&to), 0);
		come(BEGUN + 3000, segment_len, 0);
		assert_int_equal(pipe_event(&p, PIPE_B), EVENT_QP_ACCESS_ERR);
		assert_memory_equal(b->mem, zeros, PIPE_MEM);
		nic_mw_free(b->nic, mw);
		pipe_close(&p);
	}
}
