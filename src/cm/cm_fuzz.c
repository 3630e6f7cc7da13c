/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One machine between a program and a peer that both do as the input says. Where the input says so, the peer's
 * messages have numbers that the machine itself uses, so that they are not dropped at once. Afterwards time goes on
 * until all timers have ended, and nothing may be left.
 */
#include "base/byteorder.h"
#define TEST_OWN_MAIN
#include "support/cm_pair.h"
#include "support/fuzz_input.h"

static struct world w;

static void nothing(struct world *world, int from, const struct flow *flow, const uint8_t *mad)
{
}

static struct conn *some_conn(struct cm *cm, unsigned which)
{
	struct list *l = cm->conns.next;

	while (which-- && l->next != &cm->conns)
		l = l->next;
	return l == &cm->conns ? NULL : container_of(l, struct conn, link);
}

static struct cm_id *some_id(struct cm_channel *ch, unsigned which)
{
	struct list *l = ch->ids.next;

	while (which-- && l->next != &ch->ids)
		l = l->next;
	return l == &ch->ids ? NULL : container_of(l, struct cm_id, link);
}

/* A message of the peer: any bytes, then the numbers of a conn in their places. */
static void peer_sends(struct input *in)
{
	static const uint8_t attributes[] = {CM_REQ,  CM_MRA,  CM_REJ,      CM_REP,     CM_RTU,
					     CM_DREQ, CM_DREP, CM_SIDR_REQ, CM_SIDR_REP};
	struct cm *cm = w.ends[SERVER].cm;
	uint8_t kind = next_byte(in), mad[MAD_LEN];
	uint8_t *msg = mad + MAD_HEADER_LEN;
	struct conn *c = some_conn(cm, kind >> 5);
	uint16_t attribute = attributes[(kind & 0x1f) % sizeof(attributes)];
	struct flow flow = {0};

	memcpy(flow.src, w.ends[CLIENT].addr.ip, 16);
	memcpy(flow.dst, w.ends[SERVER].addr.ip, 16);
	message_start(mad, (enum cm_attribute)attribute, next_byte(in));
	for (size_t n = next_byte(in) % 64; n; n--)
		msg[next_byte(in) % MAD_DATA_LEN] = next_byte(in);
	if (attribute == CM_REQ || attribute == CM_SIDR_REQ) {
		struct cm_ip ip = {.ip_version = 4, .src = {[12] = 10, [15] = 1}, .dst = {[12] = 10, [15] = 2}};
		size_t at = attribute == CM_REQ ? 140 : 16;

		put_be64(msg + 8, service_id_of(attribute == CM_REQ ? CM_SPACE_TCP : CM_SPACE_UDP, SERVER_PORT));
		memcpy(msg + 56, flow.src, attribute == CM_REQ ? 16 : 0);
		memcpy(msg + 72, flow.dst, attribute == CM_REQ ? 16 : 0);
		cm_ip_encode(msg + at, &ip);
		msg[3] |= 1;
	} else if (c) {
		put_be32(msg, c->remote_comm_id);
		put_be32(msg + (attribute == CM_SIDR_REP ? 0 : 4), c->local_comm_id);
		if (attribute == CM_REP && c->state == CONN_REQ_SENT)
			msg[3] = next_byte(in) | 1;
		if (attribute == CM_DREQ)
			put_be24(msg + 8, c->local_qpn);
	}
	cm_input(cm, &flow, mad, w.now_ns);
}

static void program_starts(struct input *in)
{
	struct cm_addr dst = w.ends[CLIENT].addr;
	struct cm_param p = param_with(next_byte(in), "fuzz");
	struct cm_id *id;
	bool datagram = p.qpn & 1;

	dst.port = 1 + next_byte(in);
	if (cm_id_create(w.ends[SERVER].channel, datagram ? CM_SPACE_UDP : CM_SPACE_TCP, datagram ? QPT_UD : QPT_RC,
			 next_byte(in) % 4, &id) ||
	    cm_id_resolve_addr(id, &w.ends[SERVER].addr, &dst) || cm_id_resolve_route(id))
		return;
	cm_id_connect(id, &p, w.now_ns);
}

static void program_acts(struct input *in)
{
	uint8_t what = next_byte(in);
	struct cm_id *id = some_id(w.ends[SERVER].channel, what >> 4);
	struct cm_param p = param_with(next_byte(in), "fuzz");
	struct qp_attr attr = {.state = (enum qp_state)(next_byte(in) % QPS_COUNT)};
	struct cm_event e;
	uint32_t mask;

	if (!id)
		return;
	p.data_len = (uint16_t)(next_byte(in) % (CM_DATA_MAX + 1));
	switch (what & 0xf) {
	case 0: cm_id_accept(id, next_byte(in), &p, w.now_ns); break;
	case 1: cm_id_confirm(id, w.now_ns); break;
	case 2: cm_id_reject(id, CM_REJ_CONSUMER, p.data, p.data_len); break;
	case 3: cm_id_disconnect(id, w.now_ns); break;
	case 4: cm_id_established(id); break;
	case 5: cm_id_destroy(id, w.now_ns); break;
	case 6: cm_id_qp_attr(id, &attr, &mask); break;
	case 7: cm_id_listen(id, next_byte(in)); break;
	case 8: cm_id_bind(id, &w.ends[SERVER].addr); break;
	case 9: cm_channel_take_event(w.ends[SERVER].channel, &e); break;
	default: break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	world_init(&w, nothing, 1);
	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 3);
	listen_on(&w, CM_SPACE_UDP, SERVER_PORT, 3);
	while (in.size) {
		switch (next_byte(&in) % 4) {
		case 0: peer_sends(&in); break;
		case 1: program_acts(&in); break;
		case 2: run_for(&w, next_byte(&in) * SECONDS / 16); break;
		default: program_starts(&in); break;
		}
		must(w.ends[SERVER].cm->out_count <= CM_OUT_MAX);
	}
	world_fini(&w);
	return 0;
}
