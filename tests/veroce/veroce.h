/* SPDX-License-Identifier: BSD-2-Clause */
/* For every veRoCE simulation test: a pair that speaks it, on any number of paths. */
#pragma once

#include "duo/sim.h"
#include "veroce/sent.h"
#include "wire/psn.h"
#include "wire/rocev2.h"

/* Read by veroce_tweak() when a duo is made. */
struct veroce_options {
	uint32_t paths;
	uint32_t window_bytes;
	uint32_t rx_window;
	enum veroce_loss loss;
	enum veroce_cc cc;
	enum protocol protocol[DUO_SIDES];
	bool base[DUO_SIDES];
	enum veroce_seal seal;
	enum veroce_roam roam[DUO_SIDES];
	bool fence_indicator;
	enum rx_order order;
	uint64_t early_bytes;
	bool trim;
	bool same_host;
	bool large[DUO_SIDES];
	uint16_t flowlet;
	const struct cc_params *cc_params; /* in place of cc; NULL: that */
	enum veroce_scope scope;
	struct veroce_sent sent; /* before the test begins */
};

static struct veroce_options veroce_opt;

static inline struct veroce_options veroce_options(void)
{
	return (struct veroce_options){
		.paths = 1,
		.window_bytes = 1 << 20,
		.cc = VEROCE_CC_NONE,
		.protocol = {PROTOCOL_VEROCE, PROTOCOL_VEROCE},
	};
}

static inline void veroce_tweak(struct nic_config *c, enum duo_side side)
{
	c->transport.protocol = veroce_opt.protocol[side];
	c->transport.paths = veroce_opt.paths;
	c->transport.window_bytes = veroce_opt.window_bytes;
	c->transport.veroce.rx_window = veroce_opt.rx_window;
	c->transport.veroce.loss = veroce_opt.loss;
	c->transport.veroce.cc = veroce_opt.cc;
	c->transport.cc.params = veroce_opt.cc_params;
	c->transport.veroce.scope = veroce_opt.scope;
	c->transport.veroce.base_only = veroce_opt.base[side];
	c->transport.veroce.large = veroce_opt.large[side];
	c->transport.veroce.seal = veroce_opt.seal;
	c->transport.veroce.roam = veroce_opt.roam[side];
	c->transport.veroce.fence_indicator = veroce_opt.fence_indicator;
	c->transport.veroce.order = veroce_opt.order;
	c->transport.veroce.early_bytes_max = veroce_opt.early_bytes;
	c->transport.veroce.trim = veroce_opt.trim;
	c->transport.veroce.flowlet_packets = veroce_opt.flowlet;
	if (veroce_opt.same_host)
		duo_same_host(c);
}

static inline struct sim veroce_start_sim(const struct veroce_options *v, const struct duo_options *o, uint64_t seed)
{
	veroce_opt = *v;

	struct sim s = sim_on(duo_create(seed, veroce_tweak), o);

	duo_idle(s.duo); /* capabilities are known */
	veroce_set_sent(s.a, &v->sent);
	veroce_set_sent(s.b, &v->sent);
	return s;
}

/* One path, the default loss detection, no congestion control; or with changes: VEROCE_SIM(v.loss = LOSS_BASE, o.mtu = 256). */
#define VEROCE_SIM(...)                                     \
	({                                                  \
		struct veroce_options v = veroce_options(); \
		struct duo_options o = duo_options();       \
		__VA_ARGS__;                                \
		veroce_start_sim(&v, &o, 1);                \
	})

static inline struct sim veroce_default(void)
{
	return VEROCE_SIM();
}

/* A test on such a pair, `s`; what follows the name are changes to the options. */
#define VEROCE_TEST(name, ...) TEST_ON(name, VEROCE_SIM(__VA_ARGS__))

/* ---- the variants of every scenario (out-of-order 4, O40) ------------------------------------- */

enum { VEROCE_VARIANTS = 24 };

/*
 * Every path MTU with initial PSNs of 0, just before the wrap, at the wrap, and any; each of them
 * from the first message on, and where message numbers wrap. False: there is no i-th variant.
 */
static inline bool veroce_variant(struct veroce_options *v, struct duo_options *o, unsigned i)
{
	static const uint32_t mtus[] = {256, 1024, 4096};
	static const uint32_t psns[] = {0, 0xfffff0, 0xfffffe, 0x3a91c7};
	unsigned psn = i / COUNT(mtus) % COUNT(psns);

	if (i >= VEROCE_VARIANTS)
		return false;
	o->mtu = mtus[i % COUNT(mtus)];
	o->psn[DUO_A] = psns[psn];
	o->psn[DUO_B] = psns[(psn + 1) % COUNT(psns)];
	if (i < VEROCE_VARIANTS / 2)
		v->sent = (struct veroce_sent){0};
	else if (i & 1)
		v->sent = (struct veroce_sent){0xfffffe, 0xfffffe, 0xfffffe};
	else
		v->sent = (struct veroce_sent){0xffffff, 0xffffff, 0xffffff};
	return true;
}

/* A test on `s`, once in each variant, the i-th. What follows the name are changes to the options. */
#define VEROCE_VARIANTS_TEST(name, ...)                                \
	static void name##_in(struct sim s, unsigned i);               \
	TEST(name)                                                     \
	{                                                              \
		struct veroce_options v = veroce_options();            \
		struct duo_options o = duo_options();                  \
                                                                       \
		__VA_ARGS__;                                           \
		for (unsigned i = 0; veroce_variant(&v, &o, i); i++) { \
			struct sim s = veroce_start_sim(&v, &o, 1);    \
                                                                       \
			name##_in(s, i);                               \
			sim_end(&s);                                   \
		}                                                      \
	}                                                              \
	static void name##_in(struct sim s, unsigned i)

/* ---- an order of arrival --------------------------------------------------------------------- */

/*
 * A duo_script: the first copies of one direction and space, `count` PSNs from `psn` on, arrive in
 * the order of their ranks, step_ns apart, if they were sent at once. Copies are left alone.
 */
struct veroce_order {
	enum duo_side from;
	bool responses; /* space R */
	uint32_t psn;
	uint32_t count;
	const uint8_t *rank; /* NULL: in reverse */
	uint64_t step_ns;    /* 0: 10 */
	uint64_t lost;       /* bit i: psn + i never arrives */
};

static inline bool veroce_is_data(const struct duo_packet *p)
{
	return p->veroce && p->info && p->info->flags & (F_REQUEST | F_RESPONSE) && !(p->info->flags & F_ACK);
}

static inline bool veroce_reorder(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	const struct veroce_order *o = ctx;
	uint32_t i = (p->bth.psn - o->psn) & PSN_MASK;

	if (p->from != o->from || !veroce_is_data(p) || p->bth.retrans || i >= o->count ||
	    !(p->info->flags & F_RESPONSE) == o->responses)
		return false;
	*fate = i < 64 && o->lost >> i & 1 ? DUO_DROP : DUO_DELAY;
	*n = (o->rank ? o->rank[i] : o->count - 1 - i) * (o->step_ns ? o->step_ns : 10);
	return true;
}

static inline void veroce_set_order(struct duo *d, struct veroce_order *o)
{
	d->script = veroce_reorder;
	d->script_ctx = o;
}

enum { VEROCE_REVERSED = 64 };

/* A WRITE of A of so many packets, from that PSN on, which arrive last to first. */
static inline void veroce_write_reversed(struct sim *s, const struct duo_buf *from, const struct duo_buf *to,
					 uint32_t psn)
{
	uint32_t len = VEROCE_REVERSED * s->a->opt.mtu;
	struct veroce_order order = {.psn = psn, .count = VEROCE_REVERSED};

	memset(to->p, 0, len);
	veroce_set_order(s->duo, &order);
	duo_must_post(s->a, duo_write_wr(psn, from, 0, len, to, 0));
	duo_idle(s->duo);
	s->duo->script = NULL;
	duo_expect(s->duo, &s->a->sent, psn, WC_SUCCESS);
	assert_memory_equal(to->p, from->p, len);
}

/* For rules: any copy of the request with the PSN at arg. */
static inline bool veroce_has_psn(const struct duo_packet *p, const void *arg)
{
	return veroce_is_data(p) && p->info->flags & F_REQUEST && p->bth.psn == *(const uint32_t *)arg;
}

/* Those are lost until the rule is set `off`. */
static inline struct duo_rule *veroce_block(struct duo *d, const uint32_t *psn)
{
	return duo_rule(d, (struct duo_rule){.from = DUO_A,
					     .opcode = DUO_ANY,
					     .nth = DUO_ANY,
					     .match = veroce_has_psn,
					     .arg = psn,
					     .fate = DUO_DROP});
}

/* ---- looking back ---------------------------------------------------------------------------- */

static inline uint64_t veroce_retransmits(const struct duo *d)
{
	return nic_counters(d->host[DUO_A].nic)->retransmits + nic_counters(d->host[DUO_B].nic)->retransmits;
}

/* The last packet of that side and opcode. */
static inline const struct duo_packet *veroce_last(const struct duo *d, enum duo_side from, int opcode)
{
	size_t n = duo_count(d, from, opcode);

	return n ? duo_packet(d, from, opcode, n - 1) : NULL;
}

/* ---- packets of the test's own making -------------------------------------------------------- */

/* As the other host would send it to `to`, handed over at once; p->payload_len bytes of payload. */
static inline void veroce_forge(struct duo *d, enum duo_side to, struct veroce_packet *p, const void *payload)
{
	uint8_t buf[DUO_PACKET_MAX];
	struct flow flow = duo_flow(d, to, DUO_GID_IPV4);
	struct pkt pkt = {.data = buf, .flow = &flow, .train = 1};

	flow.dport = VEROCE_UDP_PORT;
	p->bth.pad = (uint8_t)(-p->payload_len & 3);
	p->bth.pkey = 0xffff;
	p->bth.migreq = true;
	pkt.len = veroce_encode_headers(buf, p);
	if (p->payload_len && payload)
		memcpy(buf + pkt.len, payload, p->payload_len);
	memset(buf + pkt.len + p->payload_len, 0, p->bth.pad);
	pkt.len += p->payload_len + p->bth.pad + ICRC_LEN;
	duo_seal(d, to, &pkt);
	duo_inject(d, to, &flow, buf, pkt.len);
}
