/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA's start-up as RFC 5044 7.1 and RFC 6581 have it. The end of connections is mpa_end_test.c's. */
#include "support/mpa_hand.h"
#include "support/test.h"

/* ---- the active side ------------------------------------------------------------------------------ */

/* TCP is asked to connect. */
static struct cm_id *ask_to_connect(uint8_t ird, uint8_t ord)
{
	struct cm_addr src = {.family = CM_IPV4}, dst = {.family = CM_IPV4, .port = PORT};
	struct cm_param p = {.qpn = qp_number(qp),
			     .responder_resources = ird,
			     .initiator_depth = ord,
			     .data_len = 4,
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

	say(opened, STREAM_OPEN, NULL, ROOM);
	return id;
}

static size_t reply(uint8_t *p, struct mpa_frame f)
{
	f.reply = true;
	if (!f.rev)
		f.rev = f.enhanced ? 2 : 1;
	return mpa_encode(p, &f);
}

#define CASE(name) TEST_WITH(name, set_up, tear_down)

CASE(the_request_asks_for_crc)
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
	say(opened, STREAM_RESET, NULL, 0);
	expect_event(CM_DISCONNECTED, -ECONNRESET);
	cm_id_destroy(id, now_ns);
	assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_RESET}, QPA_STATE, now_ns), 0);
	assert_int_equal(
		nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_INIT, .port = 1}, QPA_STATE | QPA_PORT, now_ns),
		0);
}

/* The reply a byte at a time, and what it makes of depths. */
CASE(a_reply_makes_the_connection)
{
	uint8_t p[MPA_FRAME_MAX];
	struct qp_attr attr;
	struct qp_init init;
	struct cm_event e;
	size_t n;

	start_connect(3, 16);
	sent_len = 0;
	n = reply(p, (struct mpa_frame){.enhanced = true,
					.crc = true,
					.peer_to_peer = true,
					.rtr = MPA_RTR_WRITE,
					.ird = 7,
					.ord = 9,
					.data = (const uint8_t *)"pong",
					.data_len = 4});
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(qp_state(qp), QPS_INIT);
		say(opened, STREAM_BYTES, p + i, 1);
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

CASE(replies_that_make_none)
{
	static const struct {
		struct mpa_frame f;
		enum cm_event_type type;
		int status;
	} cases[] = {
		{{.enhanced = true, .rejected = true, .data = (const uint8_t *)"no", .data_len = 2},
		 CM_REJECTED,
		 -ECONNREFUSED},
		{{.rejected = true}, CM_REJECTED, -ECONNREFUSED},
		{{.enhanced = true, .peer_to_peer = true, .rtr = MPA_RTR_SEND}, CM_CONNECT_ERROR, -EPROTO},
		{{.enhanced = true, .ord = 500}, CM_CONNECT_ERROR, -EPROTO},
		{{.rev = 3}, CM_CONNECT_ERROR, -EPROTO},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t p[MPA_FRAME_MAX];
		struct cm_id *id = start_connect(1, 1);

		resets = 0;
		say(opened, STREAM_BYTES, p, reply(p, cases[i].f));
		expect_event(cases[i].type, cases[i].status);
		assert_int_equal(resets, 1);
		assert_int_equal(qp_state(qp), QPS_INIT);
		cm_id_destroy(id, now_ns);
		drain();
	}
}

CASE(a_plain_reply_makes_one_too)
{
	uint8_t p[MPA_FRAME_MAX];

	start_connect(1, 1);
	sent_len = 0;
	say(opened, STREAM_BYTES, p, reply(p, (struct mpa_frame){.crc = true}));
	expect_event(CM_ESTABLISHED, 0);
	assert_int_equal(sent_len, sizeof(rtr_write));
}

/* RFC 5044 7.1: one end that asks is enough. Without, the CRC's place holds zeros. */
TEST_WITH(crcs_may_be_left_to_the_peer, set_up_without_crc, tear_down)
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
		say(opened, STREAM_BYTES, p, reply(p, (struct mpa_frame){.enhanced = true, .crc = asks}));
		expect_event(CM_ESTABLISHED, 0);
		assert_int_equal(sent_len, sizeof(rtr_write));
		assert_int_equal(memcmp(sent, rtr_write, sizeof(rtr_write)) == 0, asks);
		assert_memory_equal(sent, rtr_write, sizeof(rtr_write) - 4);
		renew(id);
	}
}

/* RFC 5044 4.3: each end says whether what it gets has markers, and says so in a Reply, too. */
TEST_WITH(markers_are_asked_for_by_who_wants_them, set_up_with_markers, tear_down)
{
	struct ddp ddp = {.tagged = true, .last = true, .ddp_version = 1, .rdmap_version = 1};
	struct cm_event e;
	uint8_t p[MPA_FRAME_MAX], raw[64];
	struct mpa_frame f;

	for (int marked = 0; marked < 2; marked++) {
		struct fpdu_framing framing = {.crc = true, .markers = marked};
		struct cm_id *id;

		sent_len = 0;
		id = start_connect(1, 1);
		mpa_decode(&f, sent);
		assert_true(f.markers);
		sent_len = 0;
		say(opened, STREAM_BYTES, p, reply(p, (struct mpa_frame){.enhanced = true, .crc = true}));
		expect_event(CM_ESTABLISHED, 0);
		assert_memory_equal(sent, rtr_write, sizeof(rtr_write)); /* the peer wants none */
		ddp_encode(raw + FPDU_LENGTH_LEN, &ddp);
		say(opened, STREAM_BYTES, raw, fpdu_seal(&framing, raw, DDP_TAGGED_LEN));
		assert_int_equal(qp_state(qp), marked ? QPS_RTS : QPS_ERR);
		if (!marked)
			expect_event(CM_DISCONNECTED, 0);
		say(opened, STREAM_RESET, NULL, 0);
		while (next_event(&e))
			;
		cm_id_destroy(id, now_ns);
		assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_RESET}, QPA_STATE, now_ns), 0);
		assert_int_equal(nic_qp_modify(nic, qp, &(struct qp_attr){.state = QPS_INIT, .port = 1},
					       QPA_STATE | QPA_PORT, now_ns),
				 0);
	}
	listener();
	accept_it(requested((struct mpa_frame){.enhanced = true, .crc = true}, &e), 1, 1);
	mpa_decode(&f, sent);
	assert_true(f.reply && f.markers);
}

/* A peer that has not noticed the first FPDU is sent two more that mean nothing; one that has spoken is not. */
CASE(an_initiator_says_it_again)
{
	struct fpdu_framing framing = {.crc = true};
	struct ddp ddp = {.tagged = true, .last = true, .ddp_version = 1, .rdmap_version = 1};
	uint8_t p[MPA_FRAME_MAX], raw[64];

	for (int heard = 0; heard < 2; heard++) {
		struct cm_id *id = start_connect(1, 1);

		sent_len = 0;
		say(opened, STREAM_BYTES, p, reply(p, (struct mpa_frame){.enhanced = true, .crc = true}));
		expect_event(CM_ESTABLISHED, 0);
		assert_int_equal(sent_len, sizeof(rtr_write));
		ddp_encode(raw + FPDU_LENGTH_LEN, &ddp);
		if (heard)
			say(opened, STREAM_BYTES, raw, fpdu_seal(&framing, raw, DDP_TAGGED_LEN));
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
CASE(a_refused_client_comes_again)
{
	struct cm_event e;
	uint32_t stream;

	ask_to_connect(1, 1);
	stream = opened;
	for (int i = 0; i < 5; i++) {
		opened = 0;
		say(stream, STREAM_RESET, NULL, ECONNREFUSED);
		assert_int_equal(opened, 0);
		pass_ms(11);
		assert_int_equal(opened, stream);
		assert_false(next_event(&e));
	}
	sent_len = 0;
	say(stream, STREAM_OPEN, NULL, ROOM);
	assert_int_equal(mpa_frame_len(sent, sent_len, false), sent_len);
}

CASE(a_client_that_stays_refused_is_told)
{
	struct cm_event e;
	int n;

	ask_to_connect(1, 1);
	for (n = 0; n < 100 && !next_event(&e); n++) {
		say(opened, STREAM_RESET, NULL, ECONNREFUSED);
		pass_ms(11);
	}
	assert_int_equal(e.type, CM_REJECTED);
	assert_int_equal(e.status, -ECONNREFUSED);
	assert_in_range(n, 15, 21);
}

CASE(no_answer_and_no_listener)
{
	struct cm_id *id = start_connect(1, 1);

	now_ns += UINT64_C(11000000000);
	expect_event(CM_UNREACHABLE, -ETIMEDOUT);
	cm_id_destroy(id, now_ns);
	id = start_connect(1, 1);
	say(opened, STREAM_FIN, NULL, 0);
	expect_event(CM_REJECTED, -ECONNRESET);
	cm_id_destroy(id, now_ns);
	id = start_connect(1, 1);
	say(opened, STREAM_RESET, NULL, EHOSTUNREACH);
	expect_event(CM_UNREACHABLE, -EHOSTUNREACH);
}

/* ---- the passive side ----------------------------------------------------------------------------- */

CASE(each_wish_is_the_others_promise)
{
	struct mpa_frame f = {
		.enhanced = true, .crc = false, .ird = 5, .ord = 6, .data = (const uint8_t *)"ping", .data_len = 4};
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
CASE(peer_to_peer_is_established_by_the_first_fpdu)
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
	say(ACCEPTED, STREAM_BYTES, raw, fpdu_seal(&framing, raw, DDP_TAGGED_LEN));
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
CASE(a_responder_waits_for_the_initiator_but_not_for_ever)
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
CASE(requests_that_are_none)
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
		say(ACCEPTED, STREAM_OPEN, NULL, ROOM);
		say(ACCEPTED, STREAM_BYTES, p, n);
		assert_int_equal(resets, 1);
		assert_false(next_event(&e));
	}
	/* Bytes behind the Request (RFC 5044 7.1.2). */
	{
		uint8_t p[MPA_FRAME_MAX + 1] = {0};
		size_t n = request(p, (struct mpa_frame){.crc = true});

		resets = 0;
		say(ACCEPTED, STREAM_OPEN, NULL, ROOM);
		say(ACCEPTED, STREAM_BYTES, p, n + 1);
		assert_int_equal(resets, 1);
		assert_false(next_event(&e));
	}
}

CASE(nobody_waits_for_a_request_for_ever)
{
	struct cm_event e;

	listener();
	say(ACCEPTED, STREAM_OPEN, NULL, ROOM);
	now_ns += UINT64_C(6000000000);
	drain();
	assert_int_equal(resets, 1);
	assert_false(next_event(&e));
}

/* A flood of streams that say nothing takes bounded memory, and keeps out nobody who says something. */
CASE(half_open_streams_are_bounded)
{
	struct cm_event e;
	int64_t bytes;

	listener();
	for (uint32_t i = 0; i < 1024; i++)
		say(ACCEPTED + i, STREAM_OPEN, NULL, ROOM);
	assert_int_equal(resets, 0);
	bytes = heap.bytes;
	for (uint32_t i = 0; i < 1000; i++)
		say(ACCEPTED + 5000 + i, STREAM_OPEN, NULL, ROOM);
	assert_int_equal(resets, 1000);
	assert_true(heap.bytes <= bytes + (256 << 10));
	/* The oldest went, and the latest are there. */
	assert_non_null(requested((struct mpa_frame){.enhanced = true, .crc = true}, &e));
	assert_int_equal(resets, 1001);
	say(ACCEPTED + 5999, STREAM_BYTES, (const uint8_t *)"MPA", 3);
	assert_int_equal(resets, 1001);
	say(ACCEPTED + 999, STREAM_BYTES, (const uint8_t *)"MPA", 3);
	assert_int_equal(resets, 1002);
}

CASE(a_refusal_is_a_reply)
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
CASE(a_request_may_vanish)
{
	struct mpa_frame f = {.enhanced = true, .crc = true};
	struct cm_param p = {.qpn = qp_number(qp)};
	struct cm_event e;
	struct cm_id *id;

	listener();
	id = requested(f, &e);
	say(ACCEPTED, STREAM_RESET, NULL, ECONNRESET);
	assert_int_equal(cm_id_accept(id, 2, &p, now_ns), -EINVAL);
	assert_int_equal(qp_state(qp), QPS_INIT);
	cm_id_destroy(id, now_ns);
}

CASE(only_qps_in_init_connect)
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
