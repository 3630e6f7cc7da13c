/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA's start-up and the end of connections: a cm and its nic on one side, on the other a hand that says any bytes
 * (RFC 5044 7.1, RFC 6581).
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm/cm.h"
#include "iwarp/fpdu.h"
#include "iwarp/mpa.h"
#include "iwarp/rdmap.h"
#include "../tests/support/heap.h"

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

static void drain(void)
{
	struct pkt p, burst[8];
	size_t n;

	now_ns += 1000;
	if (cm_deadline(cm) <= now_ns)
		cm_expire(cm, now_ns);
	while (cm_stream_output(cm, &p) || (n = nic_output(nic, burst, 1, now_ns), p = burst[0], n)) {
		switch (p.kind) {
		case PKT_BYTES:
			memcpy(sent + sent_len, p.data, p.len);
			sent_len += p.len;
			break;
		case PKT_OPEN:
			opened = p.flow->flow_label;
			break;
		case PKT_FIN:
			fins++;
			break;
		default:
			resets++;
		}
	}
}

static void say(uint32_t stream, enum pkt_kind kind, const uint8_t *data, size_t len)
{
	struct flow flow = {.flow_label = stream, .sport = PORT, .dport = 40000};
	/* In memory of its own. */
	uint8_t *copy = malloc(len + 1);
	struct pkt p = {.data = copy, .len = (uint32_t)len, .kind = kind, .flow = &flow};

	if (len && data)
		memcpy(copy, data, len);
	if (kind == PKT_OPEN)
		p.segment_bytes = 1448;
	memcpy(flow.src, here, 16);
	memcpy(flow.dst, there, 16);
	cm_stream_input(cm, &p, now_ns);
	free(copy);
	drain();
}

static bool no_crc;

static int set_up(void **state)
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
	assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_INIT, .port = 1}, QPA_STATE | QPA_PORT, 0), 0);
	sent_len = 0;
	opened = fins = resets = 0;
	return 0;
}

static int set_up_without_crc(void **state)
{
	no_crc = true;
	return set_up(state);
}

static int tear_down(void **state)
{
	no_crc = false;
	cm_destroy(cm);
	nic_destroy(nic);
	assert_int_equal(heap.blocks, 0);
	return 0;
}

static bool next_event(struct cm_event *e)
{
	drain();
	return cm_channel_take_event(channel, e);
}

static void expect_event(enum cm_event_type type, int status)
{
	struct cm_event e;

	assert_true(next_event(&e));
	assert_int_equal(e.type, type);
	assert_int_equal(e.status, status);
}

/* ---- the active side ------------------------------------------------------------------------------ */

/* TCP is asked to connect. */
static struct cm_id *ask_to_connect(uint8_t ird, uint8_t ord)
{
	struct cm_addr src = {.family = CM_IPV4}, dst = {.family = CM_IPV4, .port = PORT};
	struct cm_param p = {.qpn = qp_number(qp), .responder_resources = ird, .initiator_depth = ord, .data_len = 4,
			     .data = "ping"};
	struct cm_event e;
	struct cm_id *id;

	memcpy(src.ip, here, 16);
	memcpy(dst.ip, there, 16);
	assert_int_equal(cm_id_create(channel, CM_SPACE_TCP, QPT_RC, 5, &id), 0);
	assert_int_equal(cm_id_resolve_addr(id, &src, &dst), 0);
	assert_int_equal(cm_id_resolve_route(id), 0);
	assert_int_equal(cm_id_connect(id, &p, now_ns), 0);
	while (cm_channel_take_event(channel, &e))
		;
	drain();
	assert_true(opened && opened < ACCEPTED);
	return id;
}

/* TCP has connected, and the Request was sent. */
static struct cm_id *start_connect(uint8_t ird, uint8_t ord)
{
	struct cm_id *id = ask_to_connect(ird, ord);

	say(opened, PKT_OPEN, NULL, ROOM);
	return id;
}

static size_t reply(uint8_t *p, struct mpa_frame f)
{
	f.reply = true;
	if (!f.rev)
		f.rev = f.enhanced ? 2 : 1;
	return mpa_encode(p, &f);
}

static void the_request_asks_for_crc(void **state)
{
	struct mpa_frame f;

	start_connect(16, 16);
	assert_int_equal(mpa_frame_len(sent, sent_len, false), sent_len);
	mpa_decode(&f, sent);
	assert_true(f.crc && f.enhanced && !f.peer_to_peer && !f.markers);
	assert_int_equal(f.ird, 16);
	assert_int_equal(f.ord, 16);
	assert_memory_equal(f.data, "ping", 4);
}

/* An RDMA Write without bytes. */
static const uint8_t rtr_write[20] = {0x00, 0x0e, 0xc1, 0x40, 0, 0, 0, 1, [16] = 0xeb, 0xd3, 0x4c, 0x5f};

/* The stream is lost, the id goes, and the QP may connect again. */
static void renew(struct cm_id *id)
{
	say(opened, PKT_RESET, NULL, 0);
	expect_event(CM_DISCONNECTED, -ECONNRESET);
	cm_id_destroy(id, now_ns);
	assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_RESET}, QPA_STATE, now_ns), 0);
	assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_INIT, .port = 1}, QPA_STATE | QPA_PORT, now_ns),
			 0);
}

/* The reply a byte at a time, and what it makes of depths. */
static void a_reply_makes_the_connection(void **state)
{
	uint8_t p[MPA_FRAME_MAX];
	struct qp_attr attr;
	struct qp_init init;
	struct cm_event e;
	size_t n;

	start_connect(3, 16);
	sent_len = 0;
	n = reply(p, (struct mpa_frame){.enhanced = true, .crc = true, .peer_to_peer = true, .rtr = MPA_RTR_WRITE, .ird = 7,
					.ord = 9, .data = (const uint8_t *)"pong", .data_len = 4});
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(qp_state(qp), QPS_INIT);
		say(opened, PKT_BYTES, p + i, 1);
	}
	assert_true(next_event(&e));
	assert_int_equal(e.type, CM_ESTABLISHED);
	assert_int_equal(e.param.data_len, 4);
	assert_memory_equal(e.param.data, "pong", 4);
	assert_int_equal(qp_state(qp), QPS_RTS);
	nic_qp_query(nic, qp, &attr, &init);
	assert_int_equal(attr.max_rd_atomic, 7);      /* the peer takes no more */
	assert_int_equal(attr.max_dest_rd_atomic, 9); /* raised to what the peer wants */
	assert_int_equal(sent_len, sizeof(rtr_write));
	assert_memory_equal(sent, rtr_write, sizeof(rtr_write));
}

static void replies_that_make_none(void **state)
{
	static const struct {
		struct mpa_frame f;
		enum cm_event_type type;
		int status;
	} cases[] = {
		{{.enhanced = true, .rejected = true, .data = (const uint8_t *)"no", .data_len = 2}, CM_REJECTED, -ECONNREFUSED},
		{{.rejected = true}, CM_REJECTED, -ECONNREFUSED},
		{{.enhanced = true, .peer_to_peer = true, .rtr = MPA_RTR_SEND}, CM_CONNECT_ERROR, -EPROTO},
		{{.enhanced = true, .ord = 500}, CM_CONNECT_ERROR, -EPROTO},
		{{.rev = 3}, CM_CONNECT_ERROR, -EPROTO},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t p[MPA_FRAME_MAX];
		struct cm_id *id = start_connect(1, 1);

		resets = 0;
		say(opened, PKT_BYTES, p, reply(p, cases[i].f));
		expect_event(cases[i].type, cases[i].status);
		assert_int_equal(resets, 1);
		assert_int_equal(qp_state(qp), QPS_INIT);
		cm_id_destroy(id, now_ns);
		drain();
	}
}

static void a_plain_reply_makes_one_too(void **state)
{
	uint8_t p[MPA_FRAME_MAX];

	start_connect(1, 1);
	sent_len = 0;
	say(opened, PKT_BYTES, p, reply(p, (struct mpa_frame){.crc = true}));
	expect_event(CM_ESTABLISHED, 0);
	assert_int_equal(sent_len, sizeof(rtr_write));
}

/* RFC 5044 7.1: one end that asks is enough. Without, the CRC's place holds zeros. */
static void crcs_may_be_left_to_the_peer(void **state)
{
	for (int asks = 0; asks < 2; asks++) {
		struct cm_id *id;
		uint8_t p[MPA_FRAME_MAX];
		struct mpa_frame f;

		sent_len = 0;
		id = start_connect(1, 1);
		mpa_decode(&f, sent);
		assert_false(f.crc);
		sent_len = 0;
		say(opened, PKT_BYTES, p, reply(p, (struct mpa_frame){.enhanced = true, .crc = asks}));
		expect_event(CM_ESTABLISHED, 0);
		assert_int_equal(sent_len, sizeof(rtr_write));
		assert_int_equal(memcmp(sent, rtr_write, sizeof(rtr_write)) == 0, asks);
		assert_memory_equal(sent, rtr_write, sizeof(rtr_write) - 4);
		renew(id);
	}
}

static void pass_ms(uint32_t ms)
{
	now_ns += ms * UINT64_C(1000000);
	drain();
}

/* A peer that has not noticed the first FPDU is sent two more that mean nothing; one that has spoken is not. */
static void an_initiator_says_it_again(void **state)
{
	struct fpdu_framing framing = {.crc = true};
	struct ddp ddp = {.tagged = true, .last = true, .ddp_version = 1, .rdmap_version = 1};
	uint8_t p[MPA_FRAME_MAX], raw[64];

	for (int heard = 0; heard < 2; heard++) {
		struct cm_id *id = start_connect(1, 1);

		sent_len = 0;
		say(opened, PKT_BYTES, p, reply(p, (struct mpa_frame){.enhanced = true, .crc = true}));
		expect_event(CM_ESTABLISHED, 0);
		assert_int_equal(sent_len, sizeof(rtr_write));
		ddp_encode(raw + FPDU_LENGTH_LEN, &ddp);
		if (heard)
			say(opened, PKT_BYTES, raw, fpdu_seal(&framing, raw, DDP_TAGGED_LEN));
		pass_ms(15);
		assert_int_equal(sent_len, sizeof(rtr_write));
		for (size_t n = 2; n < 6; n++) {
			pass_ms(300);
			assert_int_equal(sent_len, sizeof(rtr_write) * (heard ? 1 : n < 3 ? n : 3));
		}
		assert_memory_equal(sent + sent_len - sizeof(rtr_write), rtr_write, sizeof(rtr_write));
		renew(id);
	}
}

/* The listener opens a moment after its client began. */
static void a_refused_client_comes_again(void **state)
{
	struct cm_event e;
	uint32_t stream;

	ask_to_connect(1, 1);
	stream = opened;
	for (int i = 0; i < 5; i++) {
		opened = 0;
		say(stream, PKT_RESET, NULL, ECONNREFUSED);
		assert_int_equal(opened, 0);
		pass_ms(11);
		assert_int_equal(opened, stream);
		assert_false(next_event(&e));
	}
	sent_len = 0;
	say(stream, PKT_OPEN, NULL, ROOM);
	assert_int_equal(mpa_frame_len(sent, sent_len, false), sent_len);
}

static void a_client_that_stays_refused_is_told(void **state)
{
	struct cm_event e;
	int n;

	ask_to_connect(1, 1);
	for (n = 0; n < 100 && !next_event(&e); n++) {
		say(opened, PKT_RESET, NULL, ECONNREFUSED);
		pass_ms(11);
	}
	assert_int_equal(e.type, CM_REJECTED);
	assert_int_equal(e.status, -ECONNREFUSED);
	assert_in_range(n, 15, 21);
}

static void no_answer_and_no_listener(void **state)
{
	struct cm_id *id = start_connect(1, 1);

	now_ns += UINT64_C(11000000000);
	expect_event(CM_UNREACHABLE, -ETIMEDOUT);
	cm_id_destroy(id, now_ns);
	id = start_connect(1, 1);
	say(opened, PKT_FIN, NULL, 0);
	expect_event(CM_REJECTED, -ECONNRESET);
	cm_id_destroy(id, now_ns);
	id = start_connect(1, 1);
	say(opened, PKT_RESET, NULL, EHOSTUNREACH);
	expect_event(CM_UNREACHABLE, -EHOSTUNREACH);
}

/* ---- the passive side ----------------------------------------------------------------------------- */

static struct cm_id *listener(void)
{
	struct cm_addr any = {.ip = {[10] = 0xff, [11] = 0xff}, .family = CM_IPV4, .port = PORT};
	struct cm_id *id;

	assert_int_equal(cm_id_create(channel, CM_SPACE_TCP, QPT_RC, 1, &id), 0);
	assert_int_equal(cm_id_bind(id, &any), 0);
	assert_int_equal(cm_id_listener(id), 0);
	assert_int_equal(cm_id_listen(id, 10), 0);
	assert_true(cm_id_listener(id) && cm_id_listener(id) < ACCEPTED);
	return id;
}

static size_t request(uint8_t *p, struct mpa_frame f)
{
	if (!f.rev)
		f.rev = f.enhanced ? 2 : 1;
	return mpa_encode(p, &f);
}

/* The request is told; the id that it made. */
static struct cm_id *requested(struct mpa_frame f, struct cm_event *e)
{
	uint8_t p[MPA_FRAME_MAX];
	size_t n = request(p, f);

	say(ACCEPTED, PKT_OPEN, NULL, ROOM);
	say(ACCEPTED, PKT_BYTES, p, n / 2);
	assert_false(next_event(e));
	say(ACCEPTED, PKT_BYTES, p + n / 2, n - n / 2);
	assert_true(next_event(e));
	assert_int_equal(e->type, CM_CONNECT_REQUEST);
	return cm_id_find(cm, e->number);
}

static void accept_it(struct cm_id *id, uint8_t ird, uint8_t ord)
{
	struct cm_param p = {.qpn = qp_number(qp), .responder_resources = ird, .initiator_depth = ord, .data_len = 4,
			     .data = "pong"};

	sent_len = 0;
	assert_int_equal(cm_id_accept(id, 2, &p, now_ns), 0);
	drain();
}

static void each_wish_is_the_others_promise(void **state)
{
	struct mpa_frame f = {.enhanced = true, .crc = false, .ird = 5, .ord = 6, .data = (const uint8_t *)"ping",
			      .data_len = 4};
	struct cm_event e;
	struct cm_id *id;
	struct qp_attr attr;
	struct qp_init init;

	listener();
	id = requested(f, &e);
	assert_int_equal(e.param.responder_resources, 6);
	assert_int_equal(e.param.initiator_depth, 5);
	assert_int_equal(e.param.data_len, 4);
	assert_memory_equal(e.param.data, "ping", 4);
	accept_it(id, 6, 8);
	expect_event(CM_ESTABLISHED, 0); /* at once: the initiator is not asked to speak */
	mpa_decode(&f, sent);
	assert_true(f.reply && f.crc && f.enhanced && !f.markers && !f.peer_to_peer);
	assert_int_equal(f.ird, 6);
	assert_int_equal(f.ord, 5);
	assert_int_equal(f.data_len, 4);
	assert_int_equal(qp_state(qp), QPS_RTS);
	nic_qp_query(nic, qp, &attr, &init);
	assert_int_equal(attr.max_rd_atomic, 5);
	assert_int_equal(attr.max_dest_rd_atomic, 6);
}

/* RFC 6581 9: established when the initiator's first message came. */
static void peer_to_peer_is_established_by_the_first_fpdu(void **state)
{
	uint8_t raw[64];
	struct fpdu_framing framing = {.crc = true};
	struct ddp ddp = {.tagged = true, .last = true, .ddp_version = 1, .rdmap_version = 1, .stag = 1};
	struct mpa_frame f = {.enhanced = true, .crc = true, .peer_to_peer = true, .rtr = MPA_RTR_WRITE | MPA_RTR_READ};
	struct cm_event e;
	struct cm_id *id;

	listener();
	id = requested(f, &e);
	accept_it(id, 1, 1);
	mpa_decode(&f, sent);
	assert_true(f.peer_to_peer && f.rtr == MPA_RTR_WRITE);
	assert_false(next_event(&e));
	ddp_encode(raw + FPDU_LENGTH_LEN, &ddp);
	say(ACCEPTED, PKT_BYTES, raw, fpdu_seal(&framing, raw, DDP_TAGGED_LEN));
	expect_event(CM_ESTABLISHED, 0);
}

static void post_empty_send(void)
{
	struct send_wqe *w = sq_slot(qp_sq(qp), 0);

	assert_non_null(w);
	memset(w, 0, sizeof(*w));
	w->opcode = WR_SEND;
	w->flags = WR_SIGNALED;
	sq_post(qp_sq(qp), 1);
	nic_doorbell(nic, qp);
}

/* RFC 5044 7.1.2, and no longer: an initiator without A may wait for the responder's program (siw does). */
static void a_responder_waits_for_the_initiator_but_not_for_ever(void **state)
{
	struct mpa_frame f = {.enhanced = true, .crc = true};
	struct cm_event e;

	listener();
	accept_it(requested(f, &e), 1, 1);
	expect_event(CM_ESTABLISHED, 0);
	sent_len = 0;
	post_empty_send();
	pass_ms(200);
	assert_int_equal(sent_len, 0);
	pass_ms(60);
	assert_int_equal(sent_len, 24);
	assert_int_equal(sent[3], 0x43);
}

/* Each ends with a reset, and no program gets an event. */
static void requests_that_are_none(void **state)
{
	static const struct mpa_frame cases[] = {
		{.rev = 3},
		{.rejected = true},
		{.enhanced = true, .peer_to_peer = true, .rtr = MPA_RTR_SEND},
		{.reply = true},
	};
	struct cm_event e;

	listener();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t p[MPA_FRAME_MAX + 1];
		size_t n = request(p, cases[i]);

		resets = 0;
		say(ACCEPTED, PKT_OPEN, NULL, ROOM);
		say(ACCEPTED, PKT_BYTES, p, n);
		assert_int_equal(resets, 1);
		assert_false(next_event(&e));
	}
	/* Bytes behind the Request (RFC 5044 7.1.2). */
	{
		uint8_t p[MPA_FRAME_MAX + 1] = {0};
		size_t n = request(p, (struct mpa_frame){.crc = true});

		resets = 0;
		say(ACCEPTED, PKT_OPEN, NULL, ROOM);
		say(ACCEPTED, PKT_BYTES, p, n + 1);
		assert_int_equal(resets, 1);
		assert_false(next_event(&e));
	}
}

static void nobody_waits_for_a_request_for_ever(void **state)
{
	struct cm_event e;

	listener();
	say(ACCEPTED, PKT_OPEN, NULL, ROOM);
	now_ns += UINT64_C(6000000000);
	drain();
	assert_int_equal(resets, 1);
	assert_false(next_event(&e));
}

/* A flood of streams that say nothing takes bounded memory. */
static void half_open_streams_are_bounded(void **state)
{
	int64_t bytes;

	listener();
	for (uint32_t i = 0; i < 1024; i++)
		say(ACCEPTED + i, PKT_OPEN, NULL, ROOM);
	assert_int_equal(resets, 0);
	bytes = heap.bytes;
	for (uint32_t i = 0; i < 1000; i++)
		say(ACCEPTED + 5000 + i, PKT_OPEN, NULL, ROOM);
	assert_int_equal(resets, 1000);
	assert_true(heap.bytes <= bytes + (256 << 10));
}

static void a_refusal_is_a_reply(void **state)
{
	struct mpa_frame f = {.enhanced = true, .crc = true};
	struct cm_event e;
	struct cm_id *id;

	listener();
	id = requested(f, &e);
	sent_len = 0;
	assert_int_equal(cm_id_reject(id, 28, (const uint8_t *)"no", 2), 0);
	drain();
	mpa_decode(&f, sent);
	assert_true(f.reply && f.rejected && f.enhanced);
	assert_memory_equal(f.data, "no", 2);
	assert_int_equal(fins, 1);
	now_ns += UINT64_C(4000000000);
	drain();
	assert_int_equal(resets, 0);
	now_ns += UINT64_C(2000000000);
	drain();
	assert_int_equal(resets, 1); /* the peer did not end */
}

/* The peer went before the program answered: the id is there, and cannot be accepted. */
static void a_request_may_vanish(void **state)
{
	struct mpa_frame f = {.enhanced = true, .crc = true};
	struct cm_param p = {.qpn = qp_number(qp)};
	struct cm_event e;
	struct cm_id *id;

	listener();
	id = requested(f, &e);
	say(ACCEPTED, PKT_RESET, NULL, ECONNRESET);
	assert_int_equal(cm_id_accept(id, 2, &p, now_ns), -EINVAL);
	assert_int_equal(qp_state(qp), QPS_INIT);
	cm_id_destroy(id, now_ns);
}

/* ---- the end --------------------------------------------------------------------------------------- */

static struct cm_id *connected(void)
{
	struct mpa_frame f = {.enhanced = true, .crc = true};
	struct cm_event e;
	struct cm_id *id;

	listener();
	id = requested(f, &e);
	accept_it(id, 1, 1);
	expect_event(CM_ESTABLISHED, 0);
	return id;
}

static void the_peer_ends(void **state)
{
	connected();
	say(ACCEPTED, PKT_FIN, NULL, 0);
	expect_event(CM_DISCONNECTED, 0);
	assert_int_equal(qp_state(qp), QPS_ERR);
	assert_int_equal(fins, 1);
	assert_int_equal(resets, 0);
}

static void the_stream_is_lost(void **state)
{
	connected();
	say(ACCEPTED, PKT_RESET, NULL, ECONNRESET);
	expect_event(CM_DISCONNECTED, -ECONNRESET);
	assert_int_equal(qp_state(qp), QPS_ERR);
}

static void the_program_hangs_up(void **state)
{
	struct cm_event e;
	struct cm_id *id = connected();

	assert_int_equal(cm_id_disconnect(id, now_ns), 0);
	drain();
	assert_int_equal(fins, 1);
	assert_false(next_event(&e));
	say(ACCEPTED, PKT_FIN, NULL, 0);
	expect_event(CM_DISCONNECTED, 0);
	assert_int_equal(fins, 1);
}

static void a_peer_that_does_not_end_is_reset(void **state)
{
	struct cm_id *id = connected();

	assert_int_equal(cm_id_disconnect(id, now_ns), 0);
	drain();
	now_ns += UINT64_C(6000000000);
	expect_event(CM_DISCONNECTED, -ETIMEDOUT);
	assert_int_equal(qp_state(qp), QPS_ERR);
	assert_int_equal(resets, 1);
}

/* The queue pair ends by itself, or is destroyed: its stream ends, and the program is told. */
static void the_qp_ends(void **state)
{
	connected();
	assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_ERR}, QPA_STATE, now_ns), 0);
	expect_event(CM_DISCONNECTED, 0);
	assert_int_equal(fins, 1);
}

static void the_qp_goes(void **state)
{
	connected();
	nic_qp_destroy(nic, qp);
	expect_event(CM_DISCONNECTED, 0);
	assert_int_equal(fins, 1);
	say(ACCEPTED, PKT_BYTES, (const uint8_t *)"abc", 3);
	say(ACCEPTED, PKT_FIN, NULL, 0);
	now_ns += UINT64_C(6000000000);
	drain();
	assert_int_equal(resets, 1);
}

/* Packets of streams that nobody knows are answered with a reset, but for a reset. */
static void unknown_streams_are_reset(void **state)
{
	say(77, PKT_BYTES, (const uint8_t *)"abc", 3);
	say(77, PKT_FIN, NULL, 0);
	assert_int_equal(resets, 2);
	say(77, PKT_RESET, NULL, 0);
	assert_int_equal(resets, 2);
}

static void a_listener_that_goes_is_told_to_the_back_end(void **state)
{
	cm_id_destroy(listener(), now_ns);
	drain();
	assert_int_equal(resets, 1);
}

static void ten_thousand_connections_leave_nothing(void **state)
{
	struct mpa_frame f = {.enhanced = true, .crc = true};
	int64_t blocks = 0;

	listener();
	for (int i = 0; i < 10000; i++) {
		struct cm_event e;
		struct cm_id *id = requested(f, &e);

		accept_it(id, 1, 1);
		expect_event(CM_ESTABLISHED, 0);
		if (i % 2) {
			assert_int_equal(cm_id_disconnect(id, now_ns), 0);
			drain();
		}
		say(ACCEPTED, PKT_FIN, NULL, 0);
		expect_event(CM_DISCONNECTED, 0);
		cm_id_destroy(id, now_ns);
		assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_RESET}, QPA_STATE, now_ns), 0);
		assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_INIT, .port = 1},
					       QPA_STATE | QPA_PORT, now_ns), 0);
		pass_ms(6000);
		sent_len = 0;
		if (i == 10)
			blocks = heap.blocks;
	}
	assert_int_equal(heap.blocks, blocks);
}

static void only_qps_in_init_connect(void **state)
{
	struct cm_param p = {.qpn = qp_number(qp)};
	struct cm_event e;
	struct cm_id *id;

	listener();
	id = requested((struct mpa_frame){.crc = true}, &e);
	p.qpn ^= 1;
	assert_int_equal(cm_id_accept(id, 2, &p, now_ns), -EINVAL);
	p.qpn ^= 1;
	p.data_len = 252; /* siw breaks above 251 */
	assert_int_equal(cm_id_accept(id, 2, &p, now_ns), -EINVAL);
	p.data_len = 0;
	assert_int_equal(cm_id_accept(id, 2, &p, now_ns), 0);
	assert_int_equal(cm_id_accept(id, 2, &p, now_ns), -EINVAL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_request_asks_for_crc),
		TEST(a_reply_makes_the_connection),
		TEST(replies_that_make_none),
		TEST(a_plain_reply_makes_one_too),
		TEST(an_initiator_says_it_again),
		TEST(a_refused_client_comes_again),
		TEST(a_client_that_stays_refused_is_told),
		TEST(no_answer_and_no_listener),
		TEST(each_wish_is_the_others_promise),
		TEST(peer_to_peer_is_established_by_the_first_fpdu),
		TEST(a_responder_waits_for_the_initiator_but_not_for_ever),
		TEST(requests_that_are_none),
		TEST(nobody_waits_for_a_request_for_ever),
		TEST(half_open_streams_are_bounded),
		TEST(a_refusal_is_a_reply),
		TEST(a_request_may_vanish),
		TEST(the_peer_ends),
		TEST(the_stream_is_lost),
		TEST(the_program_hangs_up),
		TEST(a_peer_that_does_not_end_is_reset),
		TEST(the_qp_ends),
		TEST(the_qp_goes),
		TEST(unknown_streams_are_reset),
		TEST(a_listener_that_goes_is_told_to_the_back_end),
		TEST(only_qps_in_init_connect),
		TEST(ten_thousand_connections_leave_nothing),
		cmocka_unit_test_setup_teardown(crcs_may_be_left_to_the_peer, set_up_without_crc, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
