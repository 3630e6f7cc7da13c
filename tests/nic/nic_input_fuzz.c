/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * With any input the nic neither crashes nor reads or writes where it must not, and it answers with a
 * bounded number of well-formed packets.
 *
 * Two nics with an RC, a UC and a UD pair of QPs, at 256 bytes path MTU. An input is one mode byte
 * and a sequence of records:
 *
 *     mode     bit 0: what A sends is lost; bit 1: what B sends is lost; bit 2: IPv6
 *     packet   control, PSN offset (signed), length (9 bits in 2 bytes, little endian), so many bytes
 *     action   0xf0 | what, argument
 *
 * The control byte of a packet says where it goes and which fields are corrected, so that deep code
 * is reached; the other fields stay as they are:
 *
 *     bit 0    to A or to B           bits 2:1   RC, UC, UD, or as it is
 *     bit 3    PSN                    bit 4      R_Key, and the address is near the region
 *     bit 5    length in the RETH     bit 6      a stranger's address (below 0xf0 only)
 */
#include <stdlib.h>
#include <string.h>

#include "base/byteorder.h"
#include "duo/duo.h"
#include "support/fuzz_input.h"
#include "wire/atomiceth.h"
#include "wire/deth.h"
#include "wire/ieth.h"
#include "wire/psn.h"

enum { KINDS = 3, REGION = 4096, SECRET = 512, RECORDS_MAX = 64, STEPS = 20000, MTU = 256 };

enum {
	TO_B = 1 << 0,
	KIND_SHIFT = 1,
	FIX_PSN = 1 << 3,
	FIX_KEY = 1 << 4,
	FIX_LEN = 1 << 5,
	STRANGER = 1 << 6,
	ACTION = 0xf0
};

struct world {
	struct duo *d;
	struct duo_qp *qp[DUO_SIDES][KINDS];
	struct duo_buf *region[DUO_SIDES]; /* granted */
	struct duo_buf *secret[DUO_SIDES]; /* registered for local reading only */
	uint32_t posted[DUO_SIDES][KINDS];
	uint32_t recvs[DUO_SIDES][KINDS];
	uint8_t gid;
};

/* ---- set-up -------------------------------------------------------------------------------------- */

static void post_recvs(struct world *w, int side, int kind, uint32_t len)
{
	if (duo_recv(w->qp[side][kind], w->recvs[side][kind], w->region[side], 1024, len))
		w->recvs[side][kind]++;
}

static void connect_all(struct world *w, uint8_t mode)
{
	static const enum qp_type types[KINDS] = {QPT_RC, QPT_UC, QPT_UD};

	w->gid = mode & 4 ? DUO_GID_IPV6 : DUO_GID_IPV4;
	for (int k = 0; k < KINDS; k++) {
		struct duo_options o = duo_options();

		o.type = types[k];
		o.gid = w->gid;
		o.mtu = MTU;
		o.psn[DUO_A] = 0xfffffa;
		o.psn[DUO_B] = 0x000100;
		o.timeout = 3;
		o.retry_cnt = 2;
		o.rnr_retry = 2;
		o.min_rnr_timer = 1;
		o.max_rd_atomic = o.max_dest_rd_atomic = 4;
		o.cap = (struct qp_cap){.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2};
		o.cqe = 64;
		struct duo_pair p = duo_connect(w->d, &o);

		w->qp[DUO_A][k] = p.a;
		w->qp[DUO_B][k] = p.b;
	}
	for (int s = 0; s < DUO_SIDES; s++) {
		struct duo_host *h = &w->d->host[s];

		w->region[s] = duo_buf(h, REGION, MR_LOCAL_WRITE | MR_REMOTE_ACCESS);
		w->secret[s] = duo_buf(h, SECRET, 0);
		duo_fill(w->secret[s], 7);
		for (int k = 0; k < KINDS; k++) {
			post_recvs(w, s, k, 1024);
			post_recvs(w, s, k, 300);
		}
		if (mode & 1 << s)
			duo_drop(w->d, s, DUO_ANY, DUO_ANY);
	}
}

static void disconnect_all(struct world *w)
{
	duo_pass_all(w->d);
	duo_ground(w->d);
	for (int s = 0; s < DUO_SIDES; s++) {
		for (int k = 0; k < KINDS; k++)
			duo_qp_destroy(w->qp[s][k]);
		duo_buf_free(w->region[s]);
		duo_buf_free(w->secret[s]);
		w->d->host[s].event_count = 0;
		w->d->host[s].cq_event_count = 0;
		nic_hold_acks(w->d->host[s].nic, false);
	}
	w->d->wire_count = 0;
	memset(w->posted, 0, sizeof(w->posted));
	memset(w->recvs, 0, sizeof(w->recvs));
}

/* ---- packets --------------------------------------------------------------------------------------- */

static uint32_t right_psn(const struct duo_qp *q, const struct opcode_info *info)
{
	struct qp_attr attr;
	struct qp_init init;

	if (info->flags & F_RESPONSE)
		return q->opt.psn[q->host->side];
	nic_qp_query(q->host->nic, q->qp, &attr, &init);
	return attr.rq_psn;
}

/* The region's key, and an address from just before its start to just behind its end. */
static void fix_keys(const struct duo_buf *b, const struct opcode_info *info, uint8_t *p, uint8_t control)
{
	if (info->headers & H_RETH) {
		uint8_t *at = p + opcode_header_offset(info, H_RETH);
		struct reth h;

		reth_decode(&h, at);
		h.va = b->iova - 64 + h.va % (REGION + 128);
		h.rkey = b->mr->key;
		if (control & FIX_LEN)
			h.len %= 2048;
		reth_encode(at, &h);
	}
	if (info->headers & H_ATOMICETH) {
		uint8_t *at = p + opcode_header_offset(info, H_ATOMICETH);
		struct atomiceth h;

		atomiceth_decode(&h, at);
		h.va = b->iova - 64 + h.va % (REGION + 128);
		h.rkey = b->mr->key;
		atomiceth_encode(at, &h);
	}
	if (info->headers & H_IETH)
		ieth_encode(p + opcode_header_offset(info, H_IETH), &(struct ieth){b->mr->key});
}

static void make_right(struct world *w, uint8_t *p, uint32_t len, int side, uint8_t control, int8_t psn_offset)
{
	int kind = control >> KIND_SHIFT & 3;
	const struct opcode_info *info = len ? opcode_info(p[0]) : NULL;
	struct bth bth;

	if (kind == KINDS || !info || len < info->header_len + (uint32_t)ICRC_LEN)
		return;
	bth_decode(&bth, p);
	bth.dqpn = w->qp[side][kind]->qpn;
	bth.pkey = 0xffff;
	bth.tver = 0;
	if (control & FIX_PSN)
		bth.psn = psn_add(right_psn(w->qp[side][kind], info), (uint32_t)psn_offset);
	bth_encode(p, &bth);
	if (control & FIX_KEY)
		fix_keys(w->region[side], info, p, control);
	if (info->headers & H_DETH && control & FIX_KEY) {
		uint8_t *at = p + opcode_header_offset(info, H_DETH);

		deth_encode(at, &(struct deth){w->qp[side][kind]->opt.qkey, get_be24(at + 5)});
	}
}

static void packet(struct world *w, struct input *in, uint8_t control)
{
	int side = control & TO_B ? DUO_B : DUO_A;
	int8_t psn_offset = (int8_t)next_byte(in);
	uint32_t len = next_byte(in);
	struct flow flow = duo_flow(w->d, side, w->gid);
	uint8_t buf[DUO_PACKET_MAX];
	struct pkt pkt = {.data = buf, .flow = &flow, .train = 1};

	len |= (next_byte(in) & 1u) << 8;
	if (len > in->size)
		len = (uint32_t)in->size;
	memcpy(buf, in->data, len);
	in->data += len;
	in->size -= len;
	make_right(w, buf, len, side, control, psn_offset);
	if (control & STRANGER)
		flow.src[15] ^= 0x80;
	pkt.len = len;
	if (len >= BTH_LEN + ICRC_LEN)
		icrc_seal(NULL, &pkt, 0);
	duo_inject(w->d, side, &flow, buf, len);
}

/* ---- actions --------------------------------------------------------------------------------------- */

enum { POSTS_FLUSH = 0xe0 };

static void post_one(struct world *w, int side, int kind, uint8_t argument)
{
	static const enum wr_opcode ops[] = {WR_SEND,     WR_WRITE,     WR_READ,     WR_FETCH_ADD,
					     WR_SEND_INV, WR_WRITE_IMM, WR_CMP_SWAP, WR_SEND_IMM};
	struct duo_qp *q = w->qp[side][kind];
	struct duo_wr wr =
		duo_write_wr(w->posted[side][kind], w->region[side], 2048, argument * 7 % 1500, w->region[!side], 0);
	struct ah_attr av = duo_av(q->host, &w->d->host[!side], w->gid);
	struct flow flow;
	uint32_t ip_mtu;

	wr.opcode = ops[argument % 8];
	wr.imm_or_key = w->region[!side]->mr->key;
	if (wr.opcode == WR_FETCH_ADD || wr.opcode == WR_CMP_SWAP)
		wr.sge[0].len = 8;
	if (argument >= POSTS_FLUSH && kind == 0)
		wr = argument & 1 ? duo_atomic_write_wr(wr.wr_id, "a word..", w->region[!side], argument & 0x18)
				  : duo_flush_wr(wr.wr_id, w->region[!side], 0, argument);
	if (kind == 2) {
		DUO_CHECK(w->d, !nic_resolve(q->host->nic, &av, &flow, &ip_mtu));
		wr.flow = &flow;
		wr.dqpn = w->qp[!side][kind]->qpn;
		wr.qkey = q->opt.qkey;
		wr.sge[0].len %= MTU;
	}
	if (duo_post(q, &wr))
		w->posted[side][kind]++;
}

static void action(struct world *w, struct input *in, uint8_t what)
{
	uint8_t argument = next_byte(in);
	int side = what >> 2 & 1, kind = argument >> 6;

	switch (what & 3) {
	case 0:
		if (kind < KINDS)
			post_one(w, side, kind, argument & 0x3f);
		break;
	case 1:
		if (kind < KINDS)
			post_recvs(w, side, kind, (argument & 0x3fu) * 16);
		break;
	case 2: duo_run_for(w->d, (uint64_t)argument << 8); break;
	default:
		if (kind == KINDS)
			nic_hold_acks(w->d->host[side].nic, argument & 1);
		else if (argument & 1)
			duo_qp_to_state(w->qp[side][kind], argument & 2 ? QPS_SQD : QPS_RTS);
		else if (argument & 2)
			duo_qp_to_state(w->qp[side][kind], QPS_ERR);
	}
}

/* ---- judgement ------------------------------------------------------------------------------------- */

static void judge(struct world *w)
{
	static uint8_t want[SECRET];

	for (uint64_t i = 0; i < SECRET; i++)
		want[i] = duo_filled(7, i);
	duo_check_canaries(w->d);
	for (int s = 0; s < DUO_SIDES; s++) {
		DUO_CHECK(w->d, !memcmp(w->secret[s]->p, want, SECRET));
		for (int k = 0; k < KINDS; k++) {
			DUO_CHECK(w->d, w->qp[s][k]->sent.n <= w->posted[s][k]);
			DUO_CHECK(w->d, w->qp[s][k]->received.n <= w->recvs[s][k]);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	struct input in = {data, size};

	if (!w.d)
		w.d = duo_create(1, NULL);
	w.d->steps_left = STEPS;
	connect_all(&w, next_byte(&in));
	for (int n = 0; n < RECORDS_MAX && in.size; n++) {
		uint8_t control = next_byte(&in);

		if (control >= ACTION)
			action(&w, &in, control & 0xf);
		else
			packet(&w, &in, control);
		duo_run_for(w.d, 100);
	}
	duo_idle(w.d);
	judge(&w);
	disconnect_all(&w);
	return 0;
}
