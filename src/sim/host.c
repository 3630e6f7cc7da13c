/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between a nic and the network. Time is picoseconds there and nanoseconds here: a nic never gets a
 * time that has not come, and is never called before its deadline.
 *
 * The port has no queue of its own: each packet is taken from the nic when the wire is free for it, so
 * windows, pace and the turns of QPs are judged at the last moment, as in an adapter.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/int_stack.h"
#include "base/siphash.h"
#include "sim/channel.h"
#include "sim/host.h"
#include "sim/host_state.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/rocev2.h"
#include "wire/veroce.h"

enum {
	SPORT_FIRST = 49152, /* path i leaves from this one and i more */
	SPORT_MASK = 0x3fff,
	CREDITS_AHEAD = 64,
	SHORTEST_WORD_BYTES = 24, /* an acknowledgement of the whole (sdr/message/control.h) */
	LAZY_BYTES = 8193,        /* more would mostly waste its last page */
	DATA_CLASSES = 0xff & ~(1 << PACKET_CONTROL_CLASS)
};

#define PS_A_NS UINT64_C(1000)

/* ---- memory ------------------------------------------------------------------------------------- */

/*
 * Zeroed by the system, so that what is never touched costs nothing: most of a completion queue or of a slab
 * of the pool never is. calloc() has that effect only for fresh memory.
 */
static void *get(void *ctx, size_t bytes)
{
	uint8_t *raw, *p;

	(void)ctx;
	if (bytes >= LAZY_BYTES) {
		raw = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return raw == MAP_FAILED ? NULL : raw;
	}
	raw = calloc(1, bytes + 64);
	if (!raw)
		return NULL;
	p = raw + 64 - ((uintptr_t)raw & 63);
	p[-1] = (uint8_t)(p - raw);
	return p;
}

static void put(void *ctx, void *p, size_t bytes)
{
	uint8_t *at = p;

	(void)ctx;
	if (bytes >= LAZY_BYTES)
		munmap(p, bytes);
	else
		free(at - at[-1]);
}

/* ---- addresses ---------------------------------------------------------------------------------- */

/* 10.0.0.0/8 as an IPv4-mapped address; 2^24 hosts are more than a topology may have. */
void host_address(uint32_t index, uint8_t gid[16])
{
	const uint8_t address[16] = {[10] = 0xff,
				     [11] = 0xff,
				     [12] = 10,
				     [13] = (uint8_t)(index >> 16),
				     [14] = (uint8_t)(index >> 8),
				     [15] = (uint8_t)index};

	memcpy(gid, address, sizeof(address));
}

static uint32_t index_of(const uint8_t gid[16])
{
	return (uint32_t)gid[13] << 16 | (uint32_t)gid[14] << 8 | gid[15];
}

/* ---- life ----------------------------------------------------------------------------------------- */

/*
 * The number of receive WQEs kept posted: one packet takes no more, and a WQE that was never posted was
 * never touched. WQEs taken by early packets count in addition.
 */
static void post_credits(struct host *h)
{
	struct rq *rq = &h->srq->rq;

	for (uint32_t have = rq_posted(rq); have < h->credits_ahead; have++) {
		struct recv_wqe *w = rq_slot(rq);

		if (!w)
			return;
		w->wr_id = 0;
		w->num_sge = 0;
		w->length = 0;
		rq_post(rq, w);
	}
}

static uint32_t window_bytes(const struct host_config *c, uint64_t line_rate_bps)
{
	uint64_t bdp = (uint64_t)((unsigned __int128)line_rate_bps * c->window_rtt_ps / (8000 * PS_A_NS * 1000000));

	return bdp > UINT32_MAX / 4 ? UINT32_MAX : (uint32_t)(2 * bdp + 16 * c->mtu_bytes);
}

static uint64_t base_rtt_ns_to(const void *host, const uint8_t dgid[16])
{
	const struct host *h = host;

	return h->config->base_rtt_ns(h->config->base_rtt_ctx, h->index, index_of(dgid));
}

static void configure(struct host *h, struct nic_config *c)
{
	uint64_t secret[2];
	uint8_t key[16] = {0};

	memcpy(key, &h->config->seed, sizeof(h->config->seed));
	secret[0] = siphash_u64(key, (uint64_t)h->index << 1);
	secret[1] = siphash_u64(key, (uint64_t)h->index << 1 | 1);
	memcpy(c->secret, secret, sizeof(c->secret));
	c->alloc = (struct alloc){.get = get, .put = put};
	c->no_payload = true;
	c->transport.train_max = 1;
	c->tx_arena = network_scratch(h->network, NIC_TX_ARENA_BYTES);
	c->qpn_slot = 1; /* so that no QPN is 0 or 1 */
	for (uint16_t i = 0; i < PATHS_MAX; i++)
		c->transport.sport_ipv4[i] = (uint16_t)(SPORT_FIRST + i);
	c->gid_count = 1;
	memcpy(c->gids[0].raw, h->gid, sizeof(h->gid));
	c->gids[0].ifindex = 1;
	c->gids[0].ip_mtu = 9000;
	if (!c->transport.cc.line_rate_bps)
		c->transport.cc.line_rate_bps = network_host_rate_bps(h->network, h->index);
	if (c->transport.cc.params && cc_params_kind(c->transport.cc.params)->needs & CC_NEEDS_MARKS) {
		c->transport.rocev2.ce_echo = true;
		c->transport.rocev2.ce_is_cnp = false;
	}
	if (h->config->base_rtt_ns) {
		c->transport.cc.base_rtt_ns_to = base_rtt_ns_to;
		c->transport.cc.base_rtt_ctx = h;
	}
	if (h->config->window_rtt_ps)
		c->transport.window_bytes = window_bytes(h->config, c->transport.cc.line_rate_bps);
}

static struct packet *pull(void *host, uint32_t allowed_classes, uint64_t now_ps);
static void arrive(void *host, struct packet *, uint64_t now_ps);
static void expire(void *host, uint64_t now_ps);

static const struct endpoint_ops host_ops = {.pull = pull, .arrive = arrive, .timer = expire};

struct host *host_create(struct network *network, uint32_t index, const struct host_config *config)
{
	struct host *h = calloc(1, sizeof(*h));
	struct nic_config c = config->nic;

	if (!h)
		return NULL;
	h->network = network_of_host(network, index);
	h->index = index;
	h->config = config;
	h->credits_ahead = config->credits < CREDITS_AHEAD ? config->credits : CREDITS_AHEAD;
	h->packets = network_packets(h->network);
	host_address(index, h->gid);
	configure(h, &c);
	if (host_delay_is_any(&config->delay)) {
		h->delay = host_delay_create(&config->delay, h->packets);
		if (!h->delay)
			goto free_host;
	}
	h->nic = nic_create(&c);
	if (!h->nic)
		goto free_delay;
	if (nic_pd_alloc(h->nic, &h->pd) || nic_cq_create(h->nic, CQES, h, &h->cq) ||
	    nic_srq_create(h->nic, h->pd, &(struct srq_init){.max_wr = config->credits, .owner = h}, &h->srq) ||
	    nic_mr_reg(h->nic, h->pd, (struct mr_range){(void *)(uintptr_t)MEMORY_VA, MEMORY_BYTES, MEMORY_VA},
		       MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ, &h->mr))
		goto free_nic;
	post_credits(h);
	network_attach(network, index, &host_ops, h);
	return h;

free_nic:
	nic_destroy(h->nic);
free_delay:
	host_delay_destroy(h->delay);
free_host:
	free(h);
	return NULL;
}

void host_destroy(struct host *h)
{
	if (!h)
		return;
	if (h->guest_calls)
		h->guest_calls->destroy(h->guest);
	nic_destroy(h->nic);
	host_delay_destroy(h->delay);
	free(h);
}

uint32_t host_index(const struct host *h)
{
	return h->index;
}

struct nic *host_nic(const struct host *h)
{
	return h->nic;
}

const struct host_config *host_config(const struct host *h)
{
	return h->config;
}

struct host_memory host_memory(const struct host *h)
{
	return (struct host_memory){.va = MEMORY_VA, .key = h->mr->key};
}

struct qp *host_make_qp(struct host *h, enum qp_type type, struct cq *cq, uint32_t send_wrs, void *owner)
{
	struct qp_init init = {
		.type = type,
		.pd = h->pd,
		.send_cq = cq,
		.recv_cq = cq,
		.srq = h->srq,
		.cap = {.max_send_wr = send_wrs, .max_send_sge = 1},
		.sq_sig_all = true,
		.owner = owner,
	};
	struct qp *qp;

	return nic_qp_create(h->nic, &init, &qp) ? NULL : qp;
}

struct qp *host_qp_create(struct host *h, uint32_t send_wrs, struct channel *owner)
{
	return host_make_qp(h, QPT_RC, h->cq, send_wrs, owner);
}

void host_qp_destroy(struct host *h, struct qp *qp)
{
	if (h->delay)
		host_delay_disconnect(h->delay, qp_number(qp));
	nic_qp_destroy(h->nic, qp);
}

void host_connected(struct host *h, const struct qp *qp, uint32_t peer, uint32_t peer_qpn)
{
	if (h->delay)
		host_delay_connect(h->delay, qp_number(qp), peer, peer_qpn);
}

void host_forget(struct host *h, const struct channel *c)
{
	if (h->delay)
		host_delay_forget(h->delay, c);
}

uint64_t host_now_ps(const struct host *h)
{
	return network_now_ps(h->network);
}

uint64_t host_now_ns(const struct host *h)
{
	return network_now_ps(h->network) / PS_A_NS;
}

/* ---- time ------------------------------------------------------------------------------------------- */

void host_kick(struct host *h)
{
	h->asks = true;
	network_kick(h->network, h->index);
}

/* The earlier one of the nic's and the guest's. */
static uint64_t deadline(const struct host *h)
{
	uint64_t nic_ns = nic_deadline(h->nic),
		 guest_ns = h->guest_calls ? h->guest_calls->deadline(h->guest) : UINT64_MAX;

	return guest_ns < nic_ns ? guest_ns : nic_ns;
}

static void set_timer(struct host *h, uint64_t deadline_ns)
{
	uint64_t at_ps = deadline_ns > NETWORK_TIME_PS_MAX / PS_A_NS ? NETWORK_NEVER_PS : deadline_ns * PS_A_NS;
	uint64_t delay_ps = h->delay ? host_delay_next_ps(h->delay) : NETWORK_NEVER_PS;

	network_set_timer(h->network, h->index, delay_ps < at_ps ? delay_ps : at_ps);
}

uint64_t host_post_ps(struct host *h, struct channel *c)
{
	const struct host_event e = {.kind = HOST_POSTED, .channel = c};
	uint64_t now_ps = network_now_ps(h->network), due_ps;

	if (!h->delay)
		return now_ps;
	due_ps = host_delay_event(h->delay, &e, now_ps);
	if (due_ps > now_ps)
		set_timer(h, nic_deadline(h->nic));
	return due_ps;
}

/* With delay: whether to ask the nic for packets now. */
static bool may_ask(const struct host *h, uint64_t now_ps)
{
	return !host_delay_is_full(h->delay) && (h->asks || !host_delay_data_waits(h->delay, now_ps));
}

/*
 * Called after anything that may have changed the nic's state: gives it a turn now, or sets the
 * timer.
 */
static void settle(struct host *h, uint64_t now_ns)
{
	uint64_t deadline_ns = deadline(h);

	if (deadline_ns > now_ns) {
		set_timer(h, deadline_ns);
		return;
	}
	nic_expire(h->nic, now_ns);
	if (h->guest_calls)
		h->guest_calls->expire(h->guest, now_ns);
	if (!h->delay) {
		network_kick(h->network, h->index);
		return;
	}
	/* The port may be busy for long, and packets for the delays must not wait for it. */
	set_timer(h, UINT64_MAX);
	if (may_ask(h, network_now_ps(h->network)))
		network_kick(h->network, h->index);
}

static __attribute__((noinline)) bool is_told_later(struct host *h, const struct cqe *e)
{
	const struct host_event later = {
		.kind = e->opcode & WC_RECV ? HOST_RECEIVED : HOST_COMPLETED,
		.good = e->status == WC_SUCCESS,
		.imm = e->imm_or_key,
		.channel = e->opcode & WC_RECV ? NULL : e->qp_owner,
		.wr_id = e->wr_id,
		.bytes = e->byte_len,
	};
	uint64_t now_ps = network_now_ps(h->network);

	if (later.kind == HOST_RECEIVED && !later.good)
		return false;
	if (host_delay_event(h->delay, &later, now_ps) == now_ps)
		return false;
	if (later.channel)
		channel_completes_late(later.channel, later.wr_id);
	return true;
}

static void input(struct host *, struct packet *, uint64_t now_ps);

/* The timer was that of the delays or of the nic; events whose time has come happen. */
static __attribute__((noinline)) void catch_up(struct host *h, uint64_t now_ps)
{
	const struct host_config *c = h->config;
	struct host_event e;
	struct packet *p;

	h->asks |= host_delay_next_ps(h->delay) > now_ps;
	while (host_delay_due(h->delay, now_ps, &e)) {
		if (e.kind == HOST_POSTED)
			channel_ring(e.channel);
		else if (e.kind == HOST_RECEIVED)
			c->received(c->ctx, e.imm);
		else
			c->completed(c->ctx, e.channel, e.wr_id, e.bytes, e.good);
	}
	while ((p = host_delay_arrived(h->delay, now_ps)))
		input(h, p, now_ps);
	host_delay_woken(h->delay, now_ps);
	network_kick(h->network, h->index);
}

static __attribute__((noinline)) void poll_guest(struct host *h)
{
	const struct cqe *e;

	while ((e = cq_peek(h->guest_cq, 0))) {
		struct cqe done = *e;

		cq_consume(h->guest_cq, 1);
		h->guest_calls->completed(h->guest, &done);
	}
}

static void poll_completions(struct host *h)
{
	const struct host_config *c = h->config;
	const struct cqe *e;

	if (h->guest_calls)
		poll_guest(h);
	while ((e = cq_peek(h->cq, 0))) {
		struct cqe done = *e;

		cq_consume(h->cq, 1);
		if (h->delay && is_told_later(h, &done))
			continue;
		if (done.opcode & WC_RECV) {
			if (done.status == WC_SUCCESS)
				c->received(c->ctx, done.imm_or_key);
		} else {
			c->completed(c->ctx, done.qp_owner, done.wr_id, done.byte_len, done.status == WC_SUCCESS);
		}
	}
}

static void expire(void *host, uint64_t now_ps)
{
	struct host *h = host;

	nic_expire(h->nic, now_ps / PS_A_NS);
	if (h->guest_calls)
		h->guest_calls->expire(h->guest, now_ps / PS_A_NS);
	if (h->delay)
		catch_up(h, now_ps);
	poll_completions(h);
	settle(h, now_ps / PS_A_NS);
}

/* ---- out -------------------------------------------------------------------------------------------- */

static const struct opcode_info *info_of(const struct flow *flow, const uint8_t *data)
{
	return flow->dport == ROCEV2_UDP_PORT ? opcode_info(data[0]) : veroce_opcode_info(data[0]);
}

const struct opcode_info *host_opcode_info(const struct pkt *pkt)
{
	return info_of(pkt->flow, pkt->data);
}

bool host_is_data(const struct opcode_info *info, uint8_t opcode)
{
	return opcode != OP_CNP && info->flags & (F_PAYLOAD | F_READ | F_ATOMIC);
}

/* Bytes from the BTH up to the payload. */
static uint32_t header_len(const struct opcode_info *info, const struct pkt *pkt)
{
	struct bth bth;

	if (pkt->flow->dport == ROCEV2_UDP_PORT)
		return info->header_len;
	bth_decode(&bth, pkt->data);
	return info->header_len + (bth.ts ? TSETH_LEN : 0);
}

/*
 * What ECMP hashes. A path of veRoCE is its source port. RoCEv2 adapters derive theirs from the QPs,
 * so that a QP stays on its path and two QPs of one pair of hosts may differ.
 */
uint16_t host_entropy(uint32_t index, const struct pkt *pkt)
{
	uint32_t qpn = (uint32_t)pkt->data[5] << 16 | (uint32_t)pkt->data[6] << 8 | pkt->data[7];

	if (pkt->flow->dport != ROCEV2_UDP_PORT)
		return pkt->flow->sport;
	qpn = (qpn ^ index * 0x9e3779b1u) * 0x85ebca6bu;
	return (uint16_t)(SPORT_FIRST + (qpn >> 16 & SPORT_MASK));
}

/* Without pad; `headers` as header_len() has it. */
static uint32_t payload_len(const struct pkt *pkt, uint32_t headers)
{
	return pkt->len - headers - ICRC_LEN - (pkt->data[1] >> 4 & 3);
}

static uint32_t frame_bytes(const struct host_config *c)
{
	return c->frame_bytes ? c->frame_bytes : HOST_FRAME_BYTES;
}

static uint32_t on_the_wire(const struct host_config *c, const struct pkt *pkt, bool data, uint32_t payload)
{
	if (!data)
		return c->ack_bytes ? c->ack_bytes : pkt->len + frame_bytes(c);
	return c->header_bytes ? payload + c->header_bytes : pkt->len + frame_bytes(c);
}

/* A long message consists of Middle packets of a WRITE; veRoCE's have more headers. */
uint32_t host_packet_wire_bytes(const struct host_config *c)
{
	bool veroce = c->nic.transport.protocol == PROTOCOL_VEROCE;
	uint32_t headers = veroce ? veroce_header_len(OP_RC_WRITE_MIDDLE) + TSETH_LEN
				  : opcode_info(OP_RC_WRITE_MIDDLE)->header_len;
	uint32_t around = c->header_bytes ? c->header_bytes : headers + ICRC_LEN + frame_bytes(c);

	return c->mtu_bytes + around + (c->telemetry ? c->int_bytes : 0);
}

/* A packet of a WRITE of one piece. */
static uint32_t write_wire_bytes(const struct host_config *c, uint8_t opcode, uint32_t payload)
{
	bool veroce = c->nic.transport.protocol == PROTOCOL_VEROCE;
	uint32_t headers = veroce ? veroce_header_len(opcode) : opcode_info(opcode)->header_len;

	if (c->header_bytes)
		return payload + c->header_bytes;
	return headers + ((payload + 3) & ~3u) + ICRC_LEN + frame_bytes(c);
}

struct host_message host_message_wire(const struct host_config *c, uint64_t bytes, bool imm)
{
	bool veroce = c->nic.transport.protocol == PROTOCOL_VEROCE;
	uint32_t ack = veroce ? veroce_header_len(OP_RC_ACK) : opcode_info(OP_RC_ACK)->header_len;
	struct host_message m = {
		.packets = (bytes + c->mtu_bytes - 1) / c->mtu_bytes,
		.ack_bytes = c->ack_bytes ? c->ack_bytes : ack + ICRC_LEN + frame_bytes(c),
	};

	m.last_payload_bytes = (uint32_t)(bytes - (m.packets - 1) * c->mtu_bytes);
	if (c->datagrams) {
		m.first_bytes = write_wire_bytes(c, OP_RC_WRITE_ONLY_IMM, c->mtu_bytes);
		m.full_bytes = m.first_bytes;
		m.last_bytes = write_wire_bytes(c, OP_RC_WRITE_ONLY_IMM, m.last_payload_bytes);
		m.ack_bytes = write_wire_bytes(c, OP_RC_WRITE_ONLY_IMM, SHORTEST_WORD_BYTES);
		return m;
	}
	if (m.packets == 1) {
		m.last_bytes = write_wire_bytes(c, imm ? OP_RC_WRITE_ONLY_IMM : OP_RC_WRITE_ONLY, m.last_payload_bytes);
		return m;
	}
	m.first_bytes = write_wire_bytes(c, OP_RC_WRITE_FIRST, c->mtu_bytes);
	m.full_bytes = write_wire_bytes(c, OP_RC_WRITE_MIDDLE, c->mtu_bytes);
	m.last_bytes = write_wire_bytes(c, imm ? OP_RC_WRITE_LAST_IMM : OP_RC_WRITE_LAST, m.last_payload_bytes);
	return m;
}

static uint32_t flow_of(const struct host_config *c, uint32_t to, const uint8_t *data, bool is_data)
{
	struct bth bth;

	bth_decode(&bth, data);
	return c->flow_of(c->ctx, to, bth.dqpn, bth.psn, is_data);
}

/* Fills in the packet's descriptor; its body has the nic's bytes. */
static inline __attribute__((always_inline)) struct packet *wrap(struct host *h, const struct pkt *pkt)
{
	const struct host_config *c = h->config;
	const struct opcode_info *info = info_of(pkt->flow, pkt->data);
	bool data = host_is_data(info, pkt->data[0]);
	uint32_t bare = data ? header_len(info, pkt) + ICRC_LEN : pkt->len, keep = bare;
	struct packet *p = packet_get(h->packets);
	uint8_t *body = p ? packet_body(h->packets, p, keep) : NULL;

	if (!body)
		goto drop;
	memcpy(body, pkt->data, keep);
	p->body_bytes = (uint16_t)keep;
	p->transport_bytes = pkt->len;
	p->src = h->index;
	p->dst = index_of(pkt->flow->dst);
	p->sport = host_entropy(h->index, pkt);
	p->dport = pkt->flow->dport;
	p->class = data || c->ack_in_data_class ? pkt->flow->sl : PACKET_CONTROL_CLASS;
	p->wire_bytes = on_the_wire(c, pkt, data, data ? payload_len(pkt, bare - ICRC_LEN) : 0);
	p->flow = c->flow_of ? flow_of(c, p->dst, pkt->data, data) : PACKET_NO_FLOW;
	if (pkt->flow->tos & 3 && c->ecn && data)
		p->flags |= PACKET_ECT;
	if (pkt->flow->tos >> 2 == VEROCE_DSCP_TRIMMABLE)
		p->flags |= PACKET_TRIMMABLE;
	if (data)
		p->flags |= PACKET_DATA;
	if (data && c->telemetry) {
		if (!packet_int(h->packets, p))
			goto drop;
		p->wire_bytes += c->int_bytes;
	} else if (pkt->int_stack) {
		struct int_stack *echo = packet_int(h->packets, p);

		if (!echo)
			goto drop;
		*echo = *pkt->int_stack;
		p->flags &= (uint16_t)~PACKET_INT; /* switches leave it as it is */
	}
	return p;

drop:
	if (p)
		packet_put(h->packets, p);
	return NULL;
}

/* A class is a service level. */
static void pause(struct host *h, uint8_t paused)
{
	if (paused == h->paused)
		return;
	h->paused = paused;
	nic_pause(h->nic, paused);
}

static enum host_packet_kind kind_of(const struct opcode_info *info, uint8_t opcode)
{
	return host_is_data(info, opcode) ? HOST_PACKET_DATA
	       : opcode == OP_CNP         ? HOST_PACKET_CNP
	       : info->flags & F_ACK      ? HOST_PACKET_ACK
					  : HOST_PACKET_OTHER;
}

/* Passes the nic's packets to the delays. */
static bool delay_sent(struct host *h, const struct pkt *pkt, uint64_t now_ps)
{
	const struct opcode_info *info = info_of(pkt->flow, pkt->data);
	enum host_packet_kind kind = kind_of(info, pkt->data[0]);
	struct packet *p = wrap(h, pkt);

	if (p)
		host_delay_send(h->delay, p, kind,
				kind == HOST_PACKET_DATA ? payload_len(pkt, header_len(info, pkt)) : 0, now_ps);
	return p;
}

/*
 * The nic's packets go through the delays, data only when there is room for it. If the network has paused
 * data, the nic learns it even if it has nothing else to send: then only its timers count.
 */
static __attribute__((noinline)) struct packet *pull_delayed(struct host *h, uint32_t allowed_classes, uint8_t paused,
							     uint64_t now_ps)
{
	struct packet *p;
	struct pkt pkt;

	while (!(p = host_delay_take(h->delay, allowed_classes, now_ps)) &&
	       (may_ask(h, now_ps) || (paused && !host_delay_is_full(h->delay)))) {
		bool waits = host_delay_data_waits(h->delay, now_ps);

		pause(h, waits ? DATA_CLASSES : paused);
		if (!nic_output(h->nic, &pkt, 1, now_ps / PS_A_NS)) {
			h->asks = false;
			if (!paused && !waits)
				host_delay_idle(h->delay);
			break;
		}
		if (!delay_sent(h, &pkt, now_ps))
			break;
	}
	return p;
}

static struct packet *pull(void *host, uint32_t allowed_classes, uint64_t now_ps)
{
	struct host *h = host;
	uint8_t paused = DATA_CLASSES & (uint8_t)~allowed_classes;
	struct packet *p = NULL;
	struct pkt pkt;

	if (!(allowed_classes & 1u << PACKET_CONTROL_CLASS) || (paused && h->config->ack_in_data_class))
		return NULL;
	if (h->delay) {
		p = pull_delayed(h, allowed_classes, paused, now_ps);
	} else {
		pause(h, paused);
		if (h->guest_calls)
			h->guest_calls->fill(h->guest, now_ps / PS_A_NS);
		if (nic_output(h->nic, &pkt, 1, now_ps / PS_A_NS))
			p = wrap(h, &pkt);
	}
	poll_completions(h); /* errors are found while sending, too */
	if (!p)
		settle(h, now_ps / PS_A_NS);
	return p;
}

uint8_t packet_tos(const struct packet *p)
{
	uint8_t ecn = p->flags & PACKET_CE ? 3 : p->flags & PACKET_ECT ? 2 : 0;

	if (p->flags & PACKET_TRIMMED)
		return ecn | VEROCE_DSCP_TRIMMED << 2;
	return p->flags & PACKET_TRIMMABLE ? ecn | VEROCE_DSCP_TRIMMABLE << 2 : ecn;
}

/* ---- in ----------------------------------------------------------------------------------------------- */

/* Whether the nic may answer a packet that came, or only gains room to send. */
static bool asks_for_answer(const struct packet *p)
{
	const uint8_t *bth = p->body;
	const struct opcode_info *info = p->dport == ROCEV2_UDP_PORT ? opcode_info(bth[0]) : veroce_opcode_info(bth[0]);
	enum host_packet_kind kind = kind_of(info, bth[0]);

	return kind != HOST_PACKET_ACK && kind != HOST_PACKET_CNP;
}

/* The nic takes a packet in. */
static void input(struct host *h, struct packet *p, uint64_t now_ps)
{
	bool trimmed = p->flags & PACKET_TRIMMED;
	struct flow flow = {
		.sport = p->sport,
		.dport = p->dport,
		.ttl = SIM_TTL,
		.tos = packet_tos(p),
	};
	struct pkt pkt = {
		.data = p->body,
		.flow = &flow,
		.len = trimmed ? p->body_bytes : p->transport_bytes,
		.train = 1,
		.int_stack = p->int_stack,
	};

	host_address(p->src, flow.src);
	memcpy(flow.dst, h->gid, sizeof(flow.dst));
	nic_input(h->nic, &pkt, 1, now_ps / PS_A_NS);
	packet_put(h->packets, p);
	poll_completions(h);
	if (rq_posted(&h->srq->rq) < h->credits_ahead)
		post_credits(h);
}

static void arrive(void *host, struct packet *p, uint64_t now_ps)
{
	struct host *h = host;

	if (h->delay) {
		if (host_delay_arrive(h->delay, p, now_ps)) {
			set_timer(h, nic_deadline(h->nic));
			return;
		}
		h->asks |= asks_for_answer(p);
	}
	input(h, p, now_ps);
	settle(h, now_ps / PS_A_NS);
}
