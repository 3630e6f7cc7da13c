/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fixture of the tests of connections over streams: a cm and its nic on one side, on the other a hand that says any
 * bytes.
 */
#pragma once

#include <errno.h>

#include "base/stream_event.h"
#include "cm/cm.h"
#include "iwarp/fpdu.h"
#include "iwarp/mpa.h"
#include "iwarp/rdmap.h"
#include "support/heap.h"
#include "support/test.h"

enum { PORT = 7471, ROOM = 65536, ACCEPTED = 0x80000005 };

static struct heap heap;
static struct nic *nic;
static struct cm *cm;
static struct cm_channel *channel;
static struct cq *cq;
static struct pd *pd;
static struct qp *qp;
static uint64_t now_ns;
static const uint8_t here[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1};
static const uint8_t there[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2};

/* Packets that went out since they were looked at last, bytes together. */
static uint8_t sent[8192];
static size_t sent_len;
static uint32_t opened, fins, resets; /* the stream opened last; how many of the others */

static inline void drain(void)
{
	struct pkt p, burst[8];
	size_t n;

	now_ns += 1000;
	if (cm_deadline(cm) <= now_ns)
		cm_expire(cm, now_ns);
	while (cm_stream_output(cm, &p) || (n = nic_output(nic, burst, 1, now_ns), p = burst[0], n)) {
		switch (pkt_stream_kind(&p)) {
		case STREAM_BYTES:
			memcpy(sent + sent_len, p.data, p.len);
			sent_len += p.len;
			break;
		case STREAM_OPEN: opened = p.flow->flow_label; break;
		case STREAM_FIN: fins++; break;
		default: resets++;
		}
	}
}

/* `len` bytes, or an event with that room or error. */
static inline void say(uint32_t stream, enum stream_event_kind kind, const uint8_t *data, size_t len)
{
	struct stream_event event = {.kind = kind, .segment_bytes = 1448, .room = (uint32_t)len, .error = (int)len};
	struct flow flow = {.flow_label = stream, .sport = PORT, .dport = 40000};
	/* In memory of its own. */
	uint8_t *copy = malloc(len + 1);
	struct pkt p = {.data = copy, .flow = &flow};

	if (len && data)
		memcpy(copy, data, len);
	if (kind == STREAM_BYTES)
		p.len = (uint32_t)len;
	else
		p.event = &event;
	memcpy(flow.src, here, 16);
	memcpy(flow.dst, there, 16);
	cm_stream_input(cm, &p, now_ns);
	free(copy);
	drain();
}

static bool no_crc, markers;

static inline int set_up(void **state)
{
	struct nic_config *nc = calloc(1, sizeof(*nc));
	struct cm_config *cc = calloc(1, sizeof(*cc));
	struct qp_init init = {.type = QPT_RC, .cap = {.max_send_wr = 8, .max_recv_wr = 8}};

	heap = (struct heap)HEAP_INIT;
	now_ns = 1000;
	nc->alloc = cc->alloc = heap_alloc(&heap);
	nc->transport.protocol = PROTOCOL_IWARP;
	nc->gid_count = cc->gid_count = 1;
	memcpy(nc->gids[0].raw, here, 16);
	nc->gids[0].ip_mtu = 1500;
	cc->gids[0] = nc->gids[0];
	cc->port_first = 50000;
	cc->port_last = 60000;
	cc->no_crc = no_crc;
	cc->markers = markers;
	nic = nic_create(nc);
	cc->streams_of = nic;
	cm = cm_create(cc);
	free(nc);
	free(cc);
	assert_int_equal(cm_channel_create(cm, NULL, &channel), 0);
	assert_int_equal(nic_pd_alloc(nic, &pd), 0);
	assert_int_equal(nic_cq_create(nic, 64, NULL, &cq), 0);
	init.pd = pd;
	init.send_cq = init.recv_cq = cq;
	assert_int_equal(nic_qp_create(nic, &init, &qp), 0);
	assert_int_equal(
		nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_INIT, .port = 1}, QPA_STATE | QPA_PORT, 0), 0);
	sent_len = 0;
	opened = fins = resets = 0;
	return 0;
}

static inline int set_up_without_crc(void **state)
{
	no_crc = true;
	return set_up(state);
}

static inline int set_up_with_markers(void **state)
{
	markers = true;
	return set_up(state);
}

static inline int tear_down(void **state)
{
	no_crc = markers = false;
	cm_destroy(cm);
	nic_destroy(nic);
	assert_int_equal(heap.blocks, 0);
	return 0;
}

static inline bool next_event(struct cm_event *e)
{
	drain();
	return cm_channel_take_event(channel, e);
}

static inline void expect_event(enum cm_event_type type, int status)
{
	struct cm_event e;

	assert_true(next_event(&e));
	assert_int_equal(e.type, type);
	assert_int_equal(e.status, status);
}

static inline void pass_ms(uint32_t ms)
{
	now_ns += ms * UINT64_C(1000000);
	drain();
}

/* ---- the passive side ----------------------------------------------------------------------------- */

static inline struct cm_id *listener(void)
{
	struct cm_addr any = {.ip = {[10] = 0xff, [11] = 0xff}, .family = CM_IPV4, .port = PORT};
	struct cm_id *id;
	uint32_t number;

	assert_int_equal(cm_id_create(channel, CM_SPACE_TCP, QPT_RC, 1, &id), 0);
	assert_int_equal(cm_id_listener(id), 0);
	assert_int_equal(cm_id_bind(id, &any), 0);
	number = cm_id_listener(id);
	assert_true(number && number < ACCEPTED);
	assert_int_equal(cm_id_listen(id, 10), 0);
	assert_int_equal(cm_id_listener(id), number);
	return id;
}

static inline size_t request(uint8_t *p, struct mpa_frame f)
{
	if (!f.rev)
		f.rev = f.enhanced ? 2 : 1;
	return mpa_encode(p, &f);
}

/* The request is told; the id that it made. */
static inline struct cm_id *requested(struct mpa_frame f, struct cm_event *e)
{
	uint8_t p[MPA_FRAME_MAX];
	size_t n = request(p, f);

	say(ACCEPTED, STREAM_OPEN, NULL, ROOM);
	say(ACCEPTED, STREAM_BYTES, p, n / 2);
	assert_false(next_event(e));
	say(ACCEPTED, STREAM_BYTES, p + n / 2, n - n / 2);
	assert_true(next_event(e));
	assert_int_equal(e->type, CM_CONNECT_REQUEST);
	return cm_id_find(cm, e->number);
}

static inline void accept_it(struct cm_id *id, uint8_t ird, uint8_t ord)
{
	struct cm_param p = {.qpn = qp_number(qp),
			     .responder_resources = ird,
			     .initiator_depth = ord,
			     .data_len = 4,
			     .data = "pong"};

	sent_len = 0;
	assert_int_equal(cm_id_accept(id, 2, &p, now_ns), 0);
	drain();
}
