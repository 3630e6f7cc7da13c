/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * With any forgery a veRoCE nic neither crashes nor reads or writes where it must not; every work
 * request completes once and in order, the work stays bounded and nothing leaks.
 *
 * Two nics with two RC pairs of QPs, at 256 bytes path MTU, between which real traffic goes on. An
 * input is three mode bytes, see struct mode, and a sequence of records of one control byte and
 * what its kind asks for:
 *
 *     bits 3:0   kind (enum kind)     bit 4   at A or at B        bit 5   which pair
 *     bit 6      kinds up to RAW: a stranger's address            bit 7   the kind's own
 *
 * A forged packet is right in all that the input does not change: fields are offsets from what the
 * receiver expects (see offset()), and the ICRC is always good, so that deep code is reached.
 */
#include <stdlib.h>
#include <string.h>

#include "base/byteorder.h"
#include "base/pool.h"
#include "nic/state.h"
#include "duo/duo.h"
#include "support/fuzz_input.h"
#include "transport/veroce/work.h"
#include "wire/rocev2.h"

enum kind {
	REPLAY, /* a packet of the real traffic, changed; bit 7: with a PSN that is near */
	ACK,    /* bit 7: of responses, as in SACK */
	SACK,
	CAPS,    /* bit 7: a response */
	MESSAGE, /* SEND or WRITE; bit 7: its payload is cut off */
	REQUEST, /* READ or atomic */
	RESULT,  /* of one; bit 7: its payload is cut off */
	CONTROL,
	RAW, /* bit 7: to RoCEv2's port */
	POST,
	RECV,
	RUN,
	FAULTS,
	STATE,
	KEYS,
	MEMORY
};

enum {
	PAIRS = 2,
	REGION = 4096,
	SECRET = 512,
	SINK = 8192,
	SINK_GUARD = 512,
	RECORDS_MAX = 64,
	STEPS = 60000,
	MTU = 256,
	TAKEN = 64,
	TAKEN_BYTES = 512
};

struct taken {
	uint8_t data[TAKEN_BYTES];
	uint32_t len;
	uint8_t path;
	bool veroce;
};

struct world {
	struct duo *d;
	struct duo_qp *qp[DUO_SIDES][PAIRS];
	struct duo_buf *region[DUO_SIDES]; /* granted */
	struct duo_buf *secret[DUO_SIDES]; /* registered for local reading only */
	struct duo_buf *source[DUO_SIDES]; /* likewise; what is sent */
	struct duo_buf *sink[DUO_SIDES];   /* local writing only; its last bytes are in no request */
	uint64_t posted[DUO_SIDES][PAIRS];
	uint64_t recvs[DUO_SIDES][PAIRS];
	struct taken taken[TAKEN];
	uint32_t taken_count;
	uint8_t gid;
};

/* Mostly small, otherwise where sequence numbers wrap. */
static uint32_t offset(struct input *in)
{
	static const int32_t far[] = {64,    127,   128,      129,      1000,     4095,     4096,     65535,
				      65536, 70000, 0x7ffffe, 0x7fffff, 0x800000, 0x800001, 0x400000, 0xffff00};
	uint8_t b = next_byte(in);

	if (b < 0xc0)
		return (uint32_t)(int32_t)(int8_t)(b < 0x60 ? b : b - 0xc0);
	return (uint32_t)(b & 1 ? far[b >> 1 & 15] : -far[b >> 1 & 15]);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

/* The mode bytes, bit by bit. */
struct mode {
	uint8_t paths;                     /* 1:0 of the first: 1, 2, 5 or 16 */
	enum veroce_loss loss;             /* 3:2 */
	bool base[DUO_SIDES];              /* 5:4 */
	enum rx_order order;               /* 6, and 3 of the third: message, strong, weak, strong */
	enum veroce_cc cc;                 /* 7 */
	enum protocol protocol[DUO_SIDES]; /* 1:0 of the second: AUTO where set */
	bool small_rx;                     /* 2 */
	bool small_window;                 /* 3 */
	bool ipv6;                         /* 4 */
	bool trim[DUO_SIDES];              /* 6:5 */
	bool patient;                      /* 7: with a peer that has no receive */
	uint8_t psn;                       /* the third: where the PSNs start */
	bool fence_indicator;              /* 5 of it as well */
};

static struct mode mode;

static void read_mode(struct input *in)
{
	static const uint8_t paths[] = {1, 2, 5, 16};
	static const enum veroce_loss losses[] = {LOSS_FAST, LOSS_BASE, LOSS_IRN, LOSS_FAST};
	static const enum rx_order orders[] = {ORDER_MESSAGE, ORDER_STRONG, ORDER_WEAK, ORDER_STRONG};
	uint8_t a = next_byte(in), b = next_byte(in), c = next_byte(in);

	mode = (struct mode){
		.paths = paths[a & 3],
		.loss = losses[a >> 2 & 3],
		.base = {a >> 4 & 1, a >> 5 & 1},
		.order = orders[(a >> 6 & 1) | (c >> 3 & 1) << 1],
		.cc = a >> 7 ? VEROCE_CC_SWIFT : VEROCE_CC_NONE,
		.protocol = {b & 1 ? PROTOCOL_AUTO : PROTOCOL_VEROCE, b & 2 ? PROTOCOL_AUTO : PROTOCOL_VEROCE},
		.small_rx = b >> 2 & 1,
		.small_window = b >> 3 & 1,
		.ipv6 = b >> 4 & 1,
		.trim = {b >> 5 & 1, b >> 6 & 1},
		.patient = b >> 7,
		.psn = c,
		.fence_indicator = c >> 5 & 1,
	};
}

/*
 * A nic's largest tables stay from input to input: fresh pages for them would take longer than all
 * that is done with them. Everything else is the host's.
 */
enum { KEPT_BYTES = 1 << 20, KEPT = 2 * DUO_SIDES };

static struct kept {
	struct alloc host;
	struct {
		void *p;
		size_t bytes;
		bool used;
	} block[KEPT];
} kept[DUO_SIDES];

static void *kept_get(void *ctx, size_t bytes)
{
	struct kept *k = ctx;

	for (int i = 0; bytes >= KEPT_BYTES && i < KEPT; i++) {
		if (!k->block[i].p) {
			k->block[i].p = aligned_alloc(64, (bytes + 63) / 64 * 64);
			k->block[i].bytes = bytes;
		}
		if (k->block[i].used || k->block[i].bytes != bytes)
			continue;
		k->block[i].used = true;
		return memset(k->block[i].p, 0, bytes);
	}
	return k->host.get(k->host.ctx, bytes);
}

static void kept_put(void *ctx, void *p, size_t bytes)
{
	struct kept *k = ctx;

	for (int i = 0; i < KEPT; i++) {
		if (k->block[i].p == p) {
			k->block[i].used = false;
			return;
		}
	}
	k->host.put(k->host.ctx, p, bytes);
}

static void tweak(struct nic_config *c, enum duo_side side)
{
	kept[side].host = c->alloc;
	c->alloc = (struct alloc){.get = kept_get, .put = kept_put, .ctx = &kept[side]};
	c->transport.paths = mode.paths;
	c->transport.veroce.loss = mode.loss;
	c->transport.veroce.base_only = mode.base[side];
	c->transport.veroce.order = mode.order;
	c->transport.veroce.early_bytes_max = mode.small_window ? 4096 : 0;
	c->transport.veroce.cc = mode.cc;
	c->transport.protocol = mode.protocol[side];
	c->transport.veroce.rx_window = mode.small_rx ? RX_WINDOW_MIN : 0;
	c->transport.window_bytes = mode.small_window ? 2048 : 64 * 1024;
	c->transport.veroce.trim = mode.trim[side];
	c->transport.veroce.fence_indicator = mode.fence_indicator;
	c->transport.veroce.flowlet_packets = 2;
}

static void tap(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct world *w = ctx;
	struct taken *t = &w->taken[w->taken_count % TAKEN];

	if (p->len > TAKEN_BYTES)
		return;
	memcpy(t->data, data, p->len);
	t->len = p->len;
	t->path = p->path;
	t->veroce = p->veroce;
	w->taken_count++;
}

static void post_recv(struct world *w, int side, int pair, uint32_t len)
{
	uint64_t *n = &w->recvs[side][pair];

	if (duo_recv(w->qp[side][pair], *n, w->sink[side], *n * 640 % (SINK - SINK_GUARD - 4096), len))
		++*n;
}

/* Memory that must not change. */
static const uint8_t *pattern(void)
{
	static uint8_t bytes[SINK];
	struct prng r;

	if (!bytes[0]) {
		prng_init(&r, 7);
		for (int i = 0; i < SINK; i++)
			bytes[i] = (uint8_t)(1 + prng_next(&r) % 255);
	}
	return bytes;
}

static void start(struct world *w)
{
	w->d = duo_create(1, tweak);
	w->d->steps_left = STEPS;
	w->d->tap = tap;
	w->d->tap_ctx = w;
	w->gid = mode.ipv6 ? DUO_GID_IPV6 : DUO_GID_IPV4;
	for (int k = 0; k < PAIRS; k++) {
		struct duo_options o = duo_options();

		o.gid = w->gid;
		o.mtu = MTU;
		o.psn[DUO_A] = psn_add(0xfffff0, mode.psn);
		o.psn[DUO_B] = psn_add(0x7ffff0, mode.psn);
		o.timeout = 3;
		o.retry_cnt = 2;
		o.rnr_retry = mode.patient ? 6 : 2; /* 7 would be for ever */
		o.min_rnr_timer = 1;
		o.max_rd_atomic = o.max_dest_rd_atomic = 3;
		o.cap = (struct qp_cap){
			.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2, .max_inline = 64};
		o.cqe = 64;
		struct duo_pair p = duo_connect(w->d, &o);

		w->qp[DUO_A][k] = p.a;
		w->qp[DUO_B][k] = p.b;
	}
	for (int s = 0; s < DUO_SIDES; s++) {
		struct duo_host *h = &w->d->host[s];

		w->region[s] = duo_buf(h, REGION, MR_LOCAL_WRITE | MR_REMOTE_ACCESS);
		w->secret[s] = duo_buf(h, SECRET, 0);
		w->source[s] = duo_buf(h, SINK, 0);
		w->sink[s] = duo_buf(h, SINK, MR_LOCAL_WRITE);
		memcpy(w->secret[s]->p, pattern(), SECRET);
		memcpy(w->source[s]->p, pattern(), SINK);
		for (int k = 0; k < PAIRS; k++) {
			post_recv(w, s, k, 3000);
			post_recv(w, s, k, 300);
		}
	}
	duo_run_for(w->d, 10000);
}

/* ---- packets --------------------------------------------------------------------------------- */

/* The numbers that a QP expects next, whether it rests or not. */
struct expected {
	uint32_t q_una, r_una;
	uint32_t q_epsn, r_epsn;
	uint32_t q_amsn, r_amsn;
	uint32_t q_po, r_po;
	uint32_t reads_done, released;
};

static struct expected expect(const struct veroce *vr)
{
	const struct veroce_work *w = vr->w;
	const struct veroce_quiet *k = &vr->quiet;

	if (!w)
		return (struct expected){.q_una = vr->psn_new,
					 .r_una = k->r_psn,
					 .q_epsn = k->q_epsn,
					 .r_epsn = k->r_epsn,
					 .q_amsn = k->q_amsn,
					 .r_amsn = k->r_amsn,
					 .reads_done = vr->reads,
					 .released = vr->executed};
	return (struct expected){.q_una = w->q.tx.una,
				 .r_una = w->r.tx.una,
				 .q_epsn = w->q_in.rx.epsn,
				 .r_epsn = w->r_in.rx.epsn,
				 .q_amsn = w->q_in.amsn,
				 .r_amsn = w->r_in.amsn,
				 .q_po = w->q_in.po,
				 .r_po = w->r_in.po,
				 .reads_done = w->reads_done,
				 .released = w->released};
}

/* The QP that gets the forgery. */
struct target {
	int side;
	int pair;
	struct duo_qp *q;
	struct qp *qp;
	struct veroce *vr;
	struct expected x;
	bool stranger;
	bool own;    /* bit 7 */
	uint8_t way; /* 3:0 path, 5:4 ECN, 6: trimmed by a switch */
};

static void inject(struct world *w, const struct target *t, uint8_t *buf, uint32_t len, uint16_t dport)
{
	struct flow flow = duo_flow(w->d, t->side, w->gid);
	struct pkt pkt = {.data = buf, .flow = &flow, .len = len, .train = 1};

	flow.dport = dport;
	flow.sport = (uint16_t)((mode.ipv6 ? DUO_SPORT_IPV6 : DUO_SPORT_IPV4) + (t->way & 15));
	flow.tos = (uint8_t)((t->way >> 6 & 1 ? VEROCE_DSCP_TRIMMED << 2 : 0) | (t->way >> 4 & 3));
	if (t->stranger)
		flow.src[15] ^= 0x80;
	if (len >= BTH_LEN + ICRC_LEN)
		duo_seal(w->d, (enum duo_side)t->side, &pkt);
	duo_inject(w->d, t->side, &flow, buf, len);
}

static void forge(struct world *w, struct input *in, struct target *t, struct veroce_packet *p, bool cut)
{
	uint8_t buf[DUO_PACKET_MAX], flags = next_byte(in);
	uint32_t len;

	t->way = next_byte(in);
	p->bth.pkey = 0xffff;
	p->bth.dqpn = t->q->qpn;
	p->bth.ackreq = flags & 1;
	p->bth.retrans = flags >> 1 & 1;
	p->bth.becn = flags >> 2 & 1;
	p->bth.se = flags >> 3 & 1;
	p->bth.pad = (uint8_t)(-p->payload_len & 3);
	/* Stamps are plausible or not. */
	if (veroce_opcode_table[p->bth.opcode].flags & (F_REQUEST | F_RESPONSE) && flags & 0x10) {
		uint32_t now = (uint32_t)w->d->now_ns;

		p->bth.ts = true;
		p->ts = (struct tseth){.tx1 = now, .path_id = t->way & 0x1f};
		p->tse = (struct tseeth){
			.tx1 = now - (flags >> 5) * 1000u,
			.rx1 = now,
			.tx2 = now + (flags >> 6) * 700u,
			.path_id = t->way & 0x1f,
			.path_ce = t->way * 77u,
		};
	}
	len = veroce_encode_headers(buf, p);
	if (!cut) {
		memset(buf + len, 0xa5, p->payload_len + p->bth.pad);
		len += p->payload_len + p->bth.pad;
	}
	inject(w, t, buf, len + ICRC_LEN, VEROCE_UDP_PORT);
}

static void replay(struct world *w, struct input *in, struct target *t)
{
	const struct taken *k;
	uint8_t buf[TAKEN_BYTES], changes;
	const struct opcode_info *info;

	if (!w->taken_count)
		return;
	k = &w->taken[next_byte(in) % (w->taken_count < TAKEN ? w->taken_count : TAKEN)];
	memcpy(buf, k->data, k->len);
	t->way = (uint8_t)(2 << 4 | (k->path & 15));
	info = veroce_opcode_info(buf[0]);
	if (t->own && info && info->flags & (F_REQUEST | F_RESPONSE)) {
		uint32_t near = info->flags & F_ACK ? t->x.q_una : info->flags & F_RESPONSE ? t->x.r_epsn : t->x.q_epsn;

		put_be24(buf + 5, t->q->qpn);
		put_be24(buf + 9, psn_add(near, offset(in)));
	}
	for (changes = next_byte(in) & 3; changes; changes--) {
		uint32_t at = next_byte(in) % (k->len - ICRC_LEN);

		buf[at] ^= next_byte(in);
	}
	inject(w, t, buf, k->len, k->veroce ? VEROCE_UDP_PORT : ROCEV2_UDP_PORT);
}

static void forge_ack(struct world *w, struct input *in, struct target *t)
{
	static const uint8_t syndromes[] = {0x1f, 0x60, 0x61, 0x62, 0x63, 0x64, 0x21, 0x20,
					    0x3f, 0x40, 0x00, 0x7f, 0x9f, 0xe1, 0x1f, 0x1f};
	uint32_t una = t->own ? t->x.r_una : t->x.q_una;
	uint8_t which = next_byte(in);
	struct veroce_packet p = {
		.bth = {.opcode = t->own ? OP_RC_ACK_RSP : OP_RC_ACK, .psn = psn_add(una, offset(in))},
		.aeth = {.syndrome = which < 16 ? syndromes[which] : which},
	};

	p.aeth.msn = psn_add(t->own ? t->x.released : t->vr->acked_msn, offset(in));
	p.po = offset(in) & PSN_MASK;
	forge(w, in, t, &p, false);
}

static void forge_sack(struct world *w, struct input *in, struct target *t)
{
	uint32_t una = t->own ? t->x.r_una : t->x.q_una;
	uint8_t blocks[VEROCE_SACKS_MAX * SACKETH_LEN];
	struct veroce_packet p = {
		.bth = {.opcode = t->own ? OP_RC_SACK_RSP : OP_RC_SACK, .psn = psn_add(una - 1, offset(in))},
		.sacks = blocks,
		.sack_count = 1 + next_byte(in) % VEROCE_SACKS_MAX,
	};

	p.aeth.syndrome = next_byte(in);
	p.aeth.msn = psn_add(t->own ? t->x.released : t->vr->acked_msn, offset(in));
	for (uint32_t i = 0; i < p.sack_count; i++) {
		struct sacketh h = {.start_psn = psn_add(una, offset(in)), .valid_len = next_byte(in)};

		h.bits[0] = next_byte(in) * UINT64_C(0x0101010101010101);
		h.bits[1] = next_byte(in) * UINT64_C(0x0101010101010101);
		sacketh_encode(blocks + i * SACKETH_LEN, &h);
	}
	forge(w, in, t, &p, false);
}

static void forge_caps(struct world *w, struct input *in, struct target *t)
{
	uint8_t wrong = next_byte(in);
	struct veroce_packet p = {
		.bth = {.opcode = t->own ? OP_CAPS_RESPONSE : OP_CAPS_REQUEST, .psn = t->q->opt.psn[t->side]},
		.caps = {.magic = CAPS_MAGIC,
			 .version = CAPS_VERSION,
			 .profile = next_byte(in) & 3,
			 .flags = next_byte(in),
			 .mtu_code = next_byte(in),
			 .rx_window_q = offset(in) & PSN_MASK,
			 .rx_window_r = offset(in) & PSN_MASK,
			 .paths = next_byte(in),
			 .source_qpn = t->q->peer->qpn,
			 .nonce = t->vr->nonce},
	};

	p.bth.psn = psn_add(p.bth.psn, wrong & 1 ? offset(in) : 0);
	p.caps.magic += wrong >> 1 & 1;
	p.caps.version += wrong >> 2 & 1;
	p.caps.source_qpn ^= wrong >> 3 & 1;
	p.caps.nonce += wrong >> 4 & 1;
	forge(w, in, t, &p, false);
}

/* The region's key, or one that grants nothing, and an address from before its start to behind its
 * end. */
static void forge_address(struct world *w, struct input *in, const struct target *t, uint64_t *va, uint32_t *rkey)
{
	uint8_t which = next_byte(in);
	const struct duo_buf *b = which & 1 ? w->secret[t->side] : w->region[t->side];

	*va = b->iova - 64 + (which >> 1) * (b->len + 128) / 127;
	*rkey = b->mr->key;
}

static void forge_message(struct world *w, struct input *in, struct target *t)
{
	static const uint8_t opcodes[] = {
		OP_RC_SEND_FIRST,    OP_RC_SEND_MIDDLE,    OP_RC_SEND_LAST,   OP_RC_SEND_LAST_IMM,
		OP_RC_SEND_ONLY,     OP_RC_SEND_ONLY_IMM,  OP_RC_WRITE_FIRST, OP_RC_WRITE_MIDDLE,
		OP_RC_WRITE_LAST,    OP_RC_WRITE_LAST_IMM, OP_RC_WRITE_ONLY,  OP_RC_WRITE_ONLY_IMM,
		OP_RC_SEND_LAST_INV, OP_RC_SEND_ONLY_INV,  OP_RC_WRITE_FIRST, OP_RC_WRITE_MIDDLE};
	uint8_t opcode = opcodes[next_byte(in) & 15], len;
	const struct opcode_info *info = veroce_opcode_info(opcode);
	struct veroce_packet p = {.bth = {.opcode = opcode}};

	p.bth.psn = psn_add(t->x.q_epsn, offset(in));
	p.msn = psn_add(t->x.q_amsn + 1, offset(in));
	p.rqmsn = psn_add(t->vr->rq_done, offset(in));
	p.po = psn_add(t->x.q_po, offset(in));
	len = next_byte(in);
	p.payload_len = info->flags & F_FULL && !(len & 0x80) ? MTU : len * 3u;
	p.imm_or_key = w->region[t->side]->mr->key;
	forge_address(w, in, t, &p.reth.va, &p.reth.rkey);
	p.reth.len = p.payload_len;
	forge(w, in, t, &p, t->own);
}

static void forge_request(struct world *w, struct input *in, struct target *t)
{
	static const uint8_t opcodes[] = {OP_RC_READ_REQUEST, OP_RC_READ_REQUEST, OP_RC_FETCH_ADD, OP_RC_CMP_SWAP};
	static const uint8_t mpe[] = {OP_RC_FLUSH, OP_RC_ATOMIC_WRITE};
	uint8_t which = next_byte(in);
	struct veroce_packet p = {.bth = {.opcode = which & 4 ? mpe[which & 1] : opcodes[which & 3]}};

	p.bth.psn = psn_add(t->x.q_epsn, offset(in));
	p.msn = psn_add(t->x.q_amsn + 1, offset(in));
	p.feth = (struct feth){.placement = which >> 3 & 3, .selectivity = which >> 5 & 3};
	forge_address(w, in, t, &p.reth.va, &p.reth.rkey);
	p.reth.len = next_byte(in) * 16u;
	if (p.reth.len == 255 * 16)
		p.reth.len = UINT32_MAX;
	if (p.bth.opcode == OP_RC_ATOMIC_WRITE) {
		p.reth.len /= 16;
		p.payload_len = p.reth.len & 0xff;
	}
	p.atomic = (struct atomiceth){.va = p.reth.va & ~UINT64_C(7), .rkey = p.reth.rkey, .swap_add = 1, .compare = 0};
	forge(w, in, t, &p, false);
}

/* Right in all but what the input changes, if there is a request that it can answer. */
static void forge_result(struct world *w, struct input *in, struct target *t)
{
	static const uint8_t opcodes[] = {OP_RC_READ_RESPONSE_FIRST, OP_RC_READ_RESPONSE_MIDDLE,
					  OP_RC_READ_RESPONSE_LAST, OP_RC_READ_RESPONSE_ONLY, OP_RC_ATOMIC_ACK};
	struct veroce_packet p = {.bth = {.opcode = opcodes[next_byte(in) % 5]}};
	const struct send_wqe *wqe = NULL;
	uint32_t left = 0;

	p.bth.psn = psn_add(t->x.r_epsn, offset(in));
	p.msn = psn_add(t->x.r_amsn + 1, offset(in));
	p.po = psn_add(t->x.r_po, offset(in));
	if (psn_diff(p.msn, t->x.reads_done) > 0 && psn_diff(p.msn, t->vr->reads) <= 0)
		wqe = sq_at(&t->qp->sq, *veroce_read(t->vr, p.msn));
	p.aeth = (struct aeth){.syndrome = 0x1f, .msn = psn_add(wqe ? wqe->msn : 1, offset(in))};
	if (wqe && p.po * MTU < wqe->length)
		left = wqe->length - p.po * MTU;
	p.payload_len = left < MTU ? left : MTU;
	if (p.bth.opcode == OP_RC_ATOMIC_ACK)
		p.payload_len = 0;
	p.payload_len ^= next_byte(in);
	if (p.bth.opcode == OP_RC_ATOMIC_ACK)
		p.payload_len = 0;
	p.orig = 77;
	forge(w, in, t, &p, t->own);
}

static void forge_control(struct world *w, struct input *in, struct target *t)
{
	static const uint8_t opcodes[] = {OP_CNP, OP_RTT_REQUEST, OP_RTT_RESPONSE, OP_SLOW_PACKET};
	uint8_t kind = next_byte(in);
	struct veroce_packet p = {.bth = {.opcode = kind & 4 ? (uint8_t)(OP_HOLD + (kind & 1)) : opcodes[kind & 3]}};
	uint32_t path = next_byte(in);

	p.bth.psn = psn_add(t->x.q_una, offset(in));
	p.rtt = (struct rtteth){.context = path, .tx1 = (uint32_t)w->d->now_ns - next_byte(in)};
	if (p.bth.opcode == OP_RTT_RESPONSE && path < t->vr->pair->path_count)
		p.rtt.tx1 = (uint32_t)t->vr->pair->path[path].probe_sent_ns;
	if (p.bth.opcode == OP_CNP && path & 1)
		p.payload_len = CNP_RESV_LEN;
	p.hold = (struct holdeth){.ms = (uint16_t)(path << 6),
				  .number = (uint16_t)(t->vr->held_number + (kind >> 4)),
				  .source_qpn = t->q->peer->qpn,
				  .nonce = t->vr->nonce ^ (kind >> 3 & 1)};
	forge(w, in, t, &p, false);
}

static void raw(struct world *w, struct input *in, struct target *t)
{
	uint8_t buf[256];
	uint32_t len = next_byte(in);

	if (len > in->size)
		len = (uint32_t)in->size;
	memcpy(buf, in->data, len);
	in->data += len;
	in->size -= len;
	if (len >= BTH_LEN) {
		put_be16(buf + 2, 0xffff);
		put_be24(buf + 5, t->q->qpn);
	}
	inject(w, t, buf, len, t->own ? ROCEV2_UDP_PORT : VEROCE_UDP_PORT);
}

/* ---- actions --------------------------------------------------------------------------------- */

static void post(struct world *w, struct input *in, const struct target *t)
{
	static const enum wr_opcode ops[] = {WR_SEND,     WR_WRITE,     WR_READ,     WR_FETCH_ADD,
					     WR_SEND_INV, WR_WRITE_IMM, WR_CMP_SWAP, WR_SEND_IMM};
	static const uint8_t inline_data[64] = "what is inline";
	uint8_t which = next_byte(in);
	uint32_t len = next_byte(in) * 16u % 3300;
	uint64_t *n = &w->posted[t->side][t->pair], off = *n * 512 % (SINK - SINK_GUARD - 4096);
	enum wr_opcode op = ops[which & 7];
	bool response = op == WR_READ || op == WR_FETCH_ADD || op == WR_CMP_SWAP;
	struct duo_wr wr = duo_write_wr(*n, response ? w->sink[t->side] : w->source[t->side], off, len,
					w->region[!t->side], (which >> 5) * 64u);

	wr.opcode = op;
	wr.imm_or_key = w->region[!t->side]->mr->key;
	if (response && op != WR_READ)
		wr.sge[0].len = 8;
	if (which >> 4 & 1 && op == WR_READ)
		wr = duo_flush_wr(*n, w->region[!t->side], 0, len);
	else if (which >> 4 & 1 && op == WR_FETCH_ADD)
		wr = duo_atomic_write_wr(*n, inline_data, w->region[!t->side], (which >> 5) * 64u);
	if (which >> 3 & 1)
		wr.flags |= WR_FENCE;
	if (which >> 4 & 1 && !response && len <= sizeof(inline_data)) {
		wr.flags |= WR_INLINE;
		wr.inline_data = inline_data;
		wr.inline_len = len;
	}
	if (duo_post(t->q, &wr))
		++*n;
}

static void set_faults(struct world *w, struct input *in, const struct target *t)
{
	uint8_t b = next_byte(in);

	w->d->faults[t->side] = (struct duo_faults){
		.drop_ppm = (b & 3) * 200000u + (b == 255 ? 400000u : 0),
		.duplicate_ppm = (b >> 2 & 1) * 100000u,
		.delay_ppm = (b >> 3 & 1) * 200000u,
		.corrupt_ppm = (b >> 4 & 1) * 50000u,
		.ce_ppm = (b >> 5 & 1) * 50000u,
		.delay_ns_max = 100u << (b >> 5),
	};
}

static void set_state(struct world *w, struct input *in, const struct target *t)
{
	uint8_t b = next_byte(in);

	if (b < 0x40)
		nic_hold_acks(t->q->host->nic, b & 1);
	else if (b < 0x80)
		duo_qp_to_state(t->q, b & 1 ? QPS_SQD : QPS_RTS);
	else if (b >= 0xf0)
		duo_qp_to_state(t->q, QPS_ERR);
}

/* Regions get other keys, or lose and get access, while they are in use. */
static void change_keys(struct world *w, struct input *in, const struct target *t)
{
	struct duo_buf *b[] = {w->region[t->side], w->source[t->side], w->sink[t->side], w->region[t->side]};
	uint8_t which = next_byte(in);
	int64_t access = which & 4 ? MR_LOCAL_WRITE : which & 8 ? 0 : -1;

	if ((which & 3) == 0 && !(which & 12))
		access = MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC;
	nic_mr_rereg(t->q->host->nic, b[which & 3]->mr, NULL, NULL, 0, access);
}

static void record(struct world *w, struct input *in)
{
	uint8_t control = next_byte(in);
	enum kind kind = control & 15;
	struct target t = {
		.side = control >> 4 & 1,
		.pair = control >> 5 & 1,
		.stranger = control >> 6 & 1,
		.own = control >> 7,
	};
	static void (*const forgers[])(struct world *, struct input *, struct target *) = {
		[REPLAY] = replay,       [ACK] = forge_ack,         [SACK] = forge_sack,
		[CAPS] = forge_caps,     [MESSAGE] = forge_message, [REQUEST] = forge_request,
		[RESULT] = forge_result, [CONTROL] = forge_control, [RAW] = raw,
	};

	t.q = w->qp[t.side][t.pair];
	t.qp = t.q->qp;
	t.vr = t.qp->veroce;
	t.x = expect(t.vr);
	if (kind <= RAW) {
		forgers[kind](w, in, &t);
		return;
	}
	switch (kind) {
	case POST: post(w, in, &t); break;
	case RECV: post_recv(w, t.side, t.pair, next_byte(in) * 16u); break;
	case RUN: duo_run_for(w->d, (uint64_t)next_byte(in) << (control >> 4)); break;
	case FAULTS: set_faults(w, in, &t); break;
	case STATE: set_state(w, in, &t); break;
	case KEYS: change_keys(w, in, &t); break;
	default: w->d->host[t.side].heap.gets_left = t.own ? -1 : next_byte(in) & 3;
	}
}

/* ---- judgement ------------------------------------------------------------------------------- */

static void judge_memory(const struct world *w)
{
	duo_check_canaries(w->d);
	for (int s = 0; s < DUO_SIDES; s++) {
		DUO_CHECK(w->d, !memcmp(w->secret[s]->p, pattern(), SECRET));
		DUO_CHECK(w->d, !memcmp(w->source[s]->p, pattern(), SINK));
		for (uint32_t i = 0; i < SINK_GUARD; i++)
			DUO_CHECK(w->d, !w->sink[s]->p[SINK - 1 - i]);
	}
}

static void judge_log(const struct world *w, const struct cqe_log *log, uint64_t posted)
{
	DUO_CHECK(w->d, log->n == posted);
	for (size_t i = 0; i < log->n; i++)
		DUO_CHECK(w->d, log->e[i].wr_id == i);
}

/*
 * The network is good again and there is memory: every posted request completes, with success or
 * not.
 */
static void judge(struct world *w)
{
	for (int s = 0; s < DUO_SIDES; s++) {
		w->d->faults[s] = (struct duo_faults){0};
		w->d->host[s].heap.gets_left = -1;
		nic_hold_acks(w->d->host[s].nic, false);
		for (int k = 0; k < PAIRS; k++) {
			duo_qp_to_state(w->qp[s][k], QPS_RTS);
			while (w->recvs[s][k] < 64 && qp_state(w->qp[s][k]->qp) == QPS_RTS &&
			       w->recvs[s][k] < w->qp[s][k]->received.n + 8)
				post_recv(w, s, k, 3000);
		}
	}
	duo_idle(w->d);
	for (int s = 0; s < DUO_SIDES; s++) {
		for (int k = 0; k < PAIRS; k++)
			judge_log(w, &w->qp[s][k]->sent, w->posted[s][k]);
	}
	judge_memory(w);
	for (int s = 0; s < DUO_SIDES; s++) {
		for (int k = 0; k < PAIRS; k++)
			duo_qp_to_state(w->qp[s][k], QPS_ERR);
	}
	duo_idle(w->d);
	for (int s = 0; s < DUO_SIDES; s++) {
		for (int k = 0; k < PAIRS; k++) {
			judge_log(w, &w->qp[s][k]->received, w->recvs[s][k]);
			duo_qp_destroy(w->qp[s][k]);
		}
		DUO_CHECK(w->d, pool_lent_bytes(&w->d->host[s].nic->tp.pool) == 0);
	}
	judge_memory(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	struct input in = {data, size};

	memset(&w, 0, sizeof(w));
	read_mode(&in);
	start(&w);
	for (int n = 0; n < RECORDS_MAX && in.size; n++) {
		record(&w, &in);
		duo_run_for(w.d, 100);
	}
	judge(&w);
	duo_destroy(w.d);
	for (int i = 0; i < DUO_SIDES * KEPT; i++)
		DUO_CHECK(NULL, !kept[i / KEPT].block[i % KEPT].used);
	return 0;
}
