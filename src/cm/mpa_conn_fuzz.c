/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that says anything by streams of any number, to a program that listens, connects, accepts, refuses and hangs
 * up as the input says. Streams that have no Request yet are bounded, and when all timers have ended and the program is
 * gone nothing is left.
 */
#include <stdlib.h>
#include <string.h>

#include "base/stream_event.h"
#include "cm/cm.h"
#include "iwarp/mpa.h"
#include "support/fuzz_input.h"
#include "support/heap.h"

enum { PORT = 7471, STREAMS = 16, QPS = 3, SECOND_NS = 1000000000 };

#define ACCEPTED_FIRST 0x80000001u

static struct input in;

static struct heap heap;
static struct nic *nic;
static struct cm *cm;
static struct cm_channel *channel;
static struct qp *qps[QPS];
static struct cm_id *listener;
static uint32_t opened; /* the stream that this end opened last */
/* A back end opens a stream once: the one that was opened last, and those that it accepted. */
static bool connected, accepted[STREAMS];
static uint64_t now_ns;
static const uint8_t here[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1};
static const uint8_t there[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2};

static void sent(const struct pkt *p)
{
	enum stream_event_kind kind = pkt_stream_kind(p);
	uint32_t stream = p->flow->flow_label;

	if (kind == STREAM_OPEN) {
		opened = stream;
		connected = false;
	}
	if (kind == STREAM_RESET && stream - ACCEPTED_FIRST < STREAMS)
		accepted[stream - ACCEPTED_FIRST] = false;
}

static void drain(void)
{
	struct pkt p, burst[8];
	size_t n;

	if (cm_deadline(cm) <= now_ns)
		cm_expire(cm, now_ns);
	if (nic_deadline(nic) <= now_ns)
		nic_expire(nic, now_ns);
	while (cm_stream_output(cm, &p))
		sent(&p);
	while ((n = nic_output(nic, burst, 8, now_ns))) {
		while (n)
			sent(&burst[--n]);
	}
}

static void start(void)
{
	struct nic_config *nc = calloc(1, sizeof(*nc));
	struct cm_config *cc = calloc(1, sizeof(*cc));
	struct cm_addr any = {.ip = {[10] = 0xff, [11] = 0xff}, .family = CM_IPV4, .port = PORT};
	struct qp_init init = {.type = QPT_RC, .cap = {.max_send_wr = 4, .max_recv_wr = 4}};
	uint8_t settings;

	heap = (struct heap)HEAP_INIT;
	now_ns = 1000;
	opened = 0;
	connected = false;
	memset(accepted, 0, sizeof(accepted));
	nc->alloc = cc->alloc = heap_alloc(&heap);
	nc->transport.protocol = PROTOCOL_IWARP;
	nc->gid_count = cc->gid_count = 1;
	memcpy(nc->gids[0].raw, here, 16);
	nc->gids[0].ip_mtu = 1500;
	cc->gids[0] = nc->gids[0];
	cc->port_first = 50000;
	cc->port_last = 60000;
	settings = next_byte(&in);
	cc->no_crc = settings & 1;
	cc->markers = settings & 2;
	nic = nic_create(nc);
	cc->streams_of = nic;
	cm = cm_create(cc);
	must(cm && !cm_channel_create(cm, NULL, &channel) && !nic_pd_alloc(nic, &init.pd) &&
	     !nic_cq_create(nic, 64, NULL, &init.send_cq));
	init.recv_cq = init.send_cq;
	for (int i = 0; i < QPS; i++) {
		must(!nic_qp_create(nic, &init, &qps[i]));
		nic_qp_modify(nic, qps[i], &(struct qp_attr){.state = QPS_INIT, .port = 1}, QPA_STATE | QPA_PORT,
			      now_ns);
	}
	must(!cm_id_create(channel, CM_SPACE_TCP, QPT_RC, 1, &listener) && !cm_id_bind(listener, &any) &&
	     !cm_id_listen(listener, 2));
	free(nc);
	free(cc);
}

/* A frame with fields of the input, cut and changed as it says, or bytes as they are. */
static size_t some_bytes(uint8_t *p, bool reply)
{
	uint8_t how = next_byte(&in), flags = next_byte(&in);
	struct mpa_frame f = {.reply = reply,
			      .crc = flags & 1,
			      .enhanced = flags & 2,
			      .peer_to_peer = flags & 4,
			      .markers = flags & 8,
			      .rejected = flags & 16,
			      .rtr = flags >> 5,
			      .rev = flags & 2 ? 2 : 1};
	size_t len = 0;

	if (how & 1) {
		f.ird = f.ord = next_byte(&in);
		len = mpa_encode(p, &f);
	}
	for (uint8_t more = how >> 3; more; more--)
		p[len++] = next_byte(&in);
	if (how & 2)
		p[next_byte(&in) % (len + 1)] ^= next_byte(&in);
	return how & 4 ? len / 2 : len;
}

static void peer_speaks(void)
{
	static const enum stream_event_kind kinds[] = {STREAM_BYTES, STREAM_BYTES, STREAM_BYTES, STREAM_OPEN,
						       STREAM_ROOM,  STREAM_FIN,   STREAM_RESET, STREAM_BYTES};
	uint8_t what = next_byte(&in);
	bool ours = what & 8 && opened;
	struct flow flow = {.flow_label = ours ? opened : ACCEPTED_FIRST + (what >> 4), .sport = PORT, .dport = 40000};
	bool *is_open = ours ? &connected : &accepted[what >> 4];
	uint8_t *bytes, *exact;
	struct stream_event event = {.kind = kinds[what & 7], .room = 65536};
	struct pkt p = {.flow = &flow, .event = event.kind == STREAM_BYTES ? NULL : &event};

	if (event.kind == STREAM_OPEN && *is_open)
		return;
	if (event.kind == STREAM_OPEN || event.kind == STREAM_RESET)
		*is_open = event.kind == STREAM_OPEN;
	bytes = calloc(1, 1024);
	memcpy(flow.src, here, 16);
	memcpy(flow.dst, there, 16);
	if (event.kind == STREAM_BYTES)
		p.len = (uint32_t)some_bytes(bytes, ours);
	if (event.kind == STREAM_RESET)
		event.error = next_byte(&in);
	if (event.kind == STREAM_OPEN)
		event.segment_bytes = (uint16_t)(next_byte(&in) << 8 | next_byte(&in));
	/* In memory of its own, so that a read beyond it is seen. */
	exact = malloc(p.len + 1);
	memcpy(exact, bytes, p.len);
	p.data = exact;
	cm_stream_input(cm, &p, now_ns);
	free(exact);
	free(bytes);
}

static void program_connects(void)
{
	struct cm_addr src = {.family = CM_IPV4}, dst = {.family = CM_IPV4, .port = PORT};
	struct cm_param p = {.qpn = qp_number(qps[next_byte(&in) % QPS]),
			     .responder_resources = next_byte(&in),
			     .initiator_depth = next_byte(&in),
			     .data_len = next_byte(&in)};
	struct cm_id *id;

	memcpy(src.ip, here, 16);
	memcpy(dst.ip, there, 16);
	if (cm_id_create(channel, CM_SPACE_TCP, QPT_RC, next_byte(&in), &id) || cm_id_resolve_addr(id, &src, &dst) ||
	    cm_id_resolve_route(id) || cm_id_connect(id, &p, now_ns))
		return;
}

static void program_acts(void)
{
	uint8_t what = next_byte(&in);
	struct cm_param p = {
		.qpn = qp_number(qps[next_byte(&in) % QPS]), .responder_resources = 4, .initiator_depth = 4};
	struct qp *qp = qps[what % QPS];
	struct cm_event e;
	struct cm_id *id = NULL;

	if (cm_channel_take_event(channel, &e))
		id = cm_id_find(cm, e.number);
	if (what & 0x80)
		nic_qp_modify(nic, qp, &(struct qp_attr){.state = what & 1 ? QPS_ERR : QPS_SQD}, QPA_STATE, now_ns);
	if (what & 0x40) {
		nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_RESET}, QPA_STATE, now_ns);
		nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_INIT, .port = 1}, QPA_STATE | QPA_PORT, now_ns);
	}
	if (!id || id == listener)
		return;
	switch (what & 7) {
	case 0:
	case 1:
	case 2: cm_id_accept(id, 1, &p, now_ns); break;
	case 3: cm_id_reject(id, 28, p.data, what >> 3); break;
	case 4: cm_id_disconnect(id, now_ns); break;
	case 5: cm_id_destroy(id, now_ns); break;
	default: break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	in = (struct input){data, size};
	start();
	while (in.size) {
		switch (next_byte(&in) % 8) {
		case 0: program_connects(); break;
		case 1:
		case 2: program_acts(); break;
		case 3: now_ns += next_byte(&in) * (uint64_t)SECOND_NS / 64; break;
		default: peer_speaks(); break;
		}
		drain();
	}
	for (int s = 0; s < 30; s++) {
		now_ns += SECOND_NS;
		drain();
	}
	must(cm_deadline(cm) == UINT64_MAX);
	cm_destroy(cm);
	nic_destroy(nic);
	must(!heap.blocks);
	return 0;
}
