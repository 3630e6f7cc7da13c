/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that are made, refused and ended without loss: rows of the tables in docs/rdmacm.md 3. */
#include "support/cm_pair.h"
#include "support/test.h"

static struct world w;

static int setup(void **state)
{
	world_init(&w, wire_perfect, 1);
	return 0;
}

static int teardown(void **state)
{
	world_fini(&w);
	return 0;
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(a_connection_is_made_and_ended)
{
	struct connection c = connected(&w);

	assert_int_equal(state_of(c.client), CONN_ESTABLISHED);
	assert_int_equal(state_of(c.server), CONN_ESTABLISHED);
	assert_int_equal(cm_id_disconnect(c.client, w.now_ns), 0);
	run_for(&w, SECONDS / 10);
	take(&w, SERVER, CM_DISCONNECTED);
	assert_int_equal(state_of(c.server), CONN_DREQ_RCVD);
	assert_int_equal(cm_id_disconnect(c.server, w.now_ns), 0);
	run_for(&w, SECONDS / 10);
	take(&w, CLIENT, CM_DISCONNECTED);
	assert_int_equal(state_of(c.client), CONN_TIMEWAIT);
	run_for(&w, SECONDS);
	take(&w, CLIENT, CM_TIMEWAIT_EXIT);
	take(&w, SERVER, CM_TIMEWAIT_EXIT);
	assert_int_equal(state_of(c.client), CONN_CLOSED);
	for (int a = CM_REQ; a <= CM_DREP; a++)
		assert_int_equal(w.sent[CLIENT][a] + w.sent[SERVER][a], a != CM_MRA && a != CM_REJ);
	nothing_to_take(&w, CLIENT);
	nothing_to_take(&w, SERVER);
}

CASE(each_side_learns_what_the_other_said)
{
	struct cm_id *client, *server;
	struct cm_event e;
	struct qp_attr ca = {.state = QPS_RTR}, cs = {.state = QPS_RTS}, sa = {.state = QPS_RTR},
		       ss = {.state = QPS_RTS};
	uint32_t mask;

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	client = connecting(&w, 0x1234);
	assert_int_equal(cm_id_qp_attr(client, &ca, &mask), -EINVAL); /* the peer is not known */
	run_for(&w, SECONDS / 10);
	e = take(&w, SERVER, CM_CONNECT_REQUEST);
	assert_int_equal(e.param.qpn, 0x1234);
	assert_int_equal(e.param.responder_resources, 6); /* swapped: the client's view */
	assert_int_equal(e.param.initiator_depth, 4);
	assert_int_equal(e.param.retry_count, 5);
	assert_int_equal(e.param.rnr_retry_count, 6);
	assert_int_equal(e.param.data_len, CM_REQ_PRIVATE);
	assert_string_equal((char *)e.param.data, "from the client");
	server = cm_id_find(w.ends[SERVER].cm, e.number);
	accept_it(&w, server, 0x5678);
	run_for(&w, SECONDS / 10);
	e = take(&w, CLIENT, CM_CONNECT_RESPONSE);
	assert_int_equal(e.uid, CLIENT_UID);
	assert_int_equal(e.param.qpn, 0x5678);
	assert_int_equal(e.param.responder_resources, 6);
	assert_int_equal(e.param.initiator_depth, 4);
	assert_int_equal(e.param.data_len, CM_REP_DATA_LEN);
	assert_string_equal((char *)e.param.data, "from the server");

	assert_int_equal(cm_id_qp_attr(client, &ca, &mask), 0);
	assert_int_equal(mask, QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC |
				       QPA_MIN_RNR_TIMER);
	assert_int_equal(cm_id_qp_attr(client, &cs, &mask), 0);
	assert_int_equal(mask,
			 QPA_STATE | QPA_SQ_PSN | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC | QPA_TIMEOUT);
	assert_int_equal(cm_id_qp_attr(server, &sa, &mask), 0);
	assert_int_equal(cm_id_qp_attr(server, &ss, &mask), 0);
	assert_int_equal(ca.dest_qpn, 0x5678);
	assert_int_equal(sa.dest_qpn, 0x1234);
	assert_int_equal(ca.rq_psn, ss.sq_psn);
	assert_int_equal(sa.rq_psn, cs.sq_psn);
	assert_int_equal(ca.path_mtu_bytes, 1024);
	assert_int_equal(sa.path_mtu_bytes, 1024);
	assert_memory_equal(ca.av.dgid, w.ends[SERVER].addr.ip, 16);
	assert_memory_equal(sa.av.dgid, w.ends[CLIENT].addr.ip, 16);
	assert_int_equal(ca.max_dest_rd_atomic, 4);
	assert_int_equal(cs.max_rd_atomic, 4); /* of the 6 that it requested the server grants 4 */
	assert_int_equal(sa.max_dest_rd_atomic, 4);
	assert_int_equal(ss.max_rd_atomic, 6);
	assert_int_equal(ss.retry_cnt, 5);
	assert_int_equal(cs.timeout, CM_ACK_TIMEOUT);
}

CASE(the_vendors_word_travels_both_ways)
{
	struct cm_id *client = resolved(&w, CM_SPACE_TCP, SERVER_PORT, CLIENT_UID);
	struct cm_param p = param_with(0x1234, "");
	struct cm_event e;

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	p.ece_vendor = 0x15b3;
	p.ece_options = 0x30000002;
	assert_int_equal(cm_id_connect(client, &p, w.now_ns), 0);
	run_for(&w, SECONDS / 10);
	e = take(&w, SERVER, CM_CONNECT_REQUEST);
	assert_int_equal(e.param.ece_vendor, 0x15b3);
	assert_int_equal(e.param.ece_options, 0x30000002);
	p.ece_options = 0x10000002;
	assert_int_equal(cm_id_accept(cm_id_find(w.ends[SERVER].cm, e.number), CHILD_UID, &p, w.now_ns), 0);
	run_for(&w, SECONDS / 10);
	e = take(&w, CLIENT, CM_CONNECT_RESPONSE);
	assert_int_equal(e.param.ece_vendor, 0x15b3);
	assert_int_equal(e.param.ece_options, 0x10000002);
}

static struct cm_id *xrc_id(int end, enum qp_type type, uint64_t uid)
{
	struct cm_id *id;

	assert_int_equal(cm_id_create(w.ends[end].channel, CM_SPACE_IB, type, uid, &id), 0);
	return id;
}

/* An initiator sends requests and a target answers them, so each has half of the attributes of RC. */
CASE(the_halves_of_xrc_find_each_other)
{
	struct cm_addr at = w.ends[SERVER].addr;
	struct qp_attr a;
	struct cm_id *listener = xrc_id(SERVER, QPT_XRC_RECV, SERVER_UID),
		     *client = xrc_id(CLIENT, QPT_XRC_SEND, CLIENT_UID);
	struct cm_id *server;
	struct cm_param p = param_with(0x1234, "");
	struct cm_event e;
	struct cm_req req;
	struct cm_rep rep;
	uint32_t mask;

	at.port = SERVER_PORT;
	assert_int_equal(cm_id_bind(listener, &at), 0);
	assert_int_equal(cm_id_listen(listener, 1), 0);
	assert_int_equal(cm_id_resolve_addr(client, &w.ends[CLIENT].addr, &at), 0);
	assert_int_equal(cm_id_resolve_route(client), 0);
	take(&w, CLIENT, CM_ADDR_RESOLVED);
	take(&w, CLIENT, CM_ROUTE_RESOLVED);
	assert_int_equal(cm_id_set_ack_timeout(client, 12), 0);
	assert_int_equal(cm_id_set_ack_timeout(listener, 12), -EINVAL);
	assert_int_equal(cm_id_connect(client, &p, w.now_ns), 0);
	run_for(&w, SECONDS / 10);
	cm_req_decode(&req, w.last[CLIENT] + MAD_HEADER_LEN);
	assert_int_equal(req.transport, CM_TRANSPORT_EXTENDED);
	assert_int_equal(req.extended_transport, CM_EXTENDED_XRC);
	assert_int_equal(req.qpn, 0x1234);
	assert_int_equal(req.initiator_depth, 6);
	assert_int_equal(req.responder_resources + req.retry_count + req.rnr_retry_count + req.srq, 0);
	e = take(&w, SERVER, CM_CONNECT_REQUEST);
	assert_int_equal(e.param.qpn, 0x1234);
	server = cm_id_find(w.ends[SERVER].cm, e.number);
	accept_it(&w, server, 0x5678);
	run_for(&w, SECONDS / 10);
	cm_rep_decode(&rep, w.last[SERVER] + MAD_HEADER_LEN);
	assert_int_equal(rep.eecn, 0x5678);
	assert_int_equal(rep.qpn + rep.initiator_depth, 0);
	assert_true(rep.srq);
	e = take(&w, CLIENT, CM_CONNECT_RESPONSE);
	assert_int_equal(e.param.qpn, 0x5678);

	a = (struct qp_attr){.state = QPS_RTR};
	assert_int_equal(cm_id_qp_attr(client, &a, &mask), 0);
	assert_int_equal(mask, QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN);
	assert_int_equal(a.dest_qpn, 0x5678);
	a = (struct qp_attr){.state = QPS_RTS};
	assert_int_equal(cm_id_qp_attr(client, &a, &mask), 0);
	assert_int_equal(mask,
			 QPA_STATE | QPA_SQ_PSN | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC | QPA_TIMEOUT);
	assert_int_equal(a.timeout, 12);
	assert_int_equal(a.retry_cnt, 5);
	assert_int_equal(a.max_rd_atomic, 4);
	a = (struct qp_attr){.state = QPS_RTR};
	assert_int_equal(cm_id_qp_attr(server, &a, &mask), 0);
	assert_int_equal(mask, QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC |
				       QPA_MIN_RNR_TIMER);
	assert_int_equal(a.dest_qpn, 0x1234);
	a = (struct qp_attr){.state = QPS_RTS};
	assert_int_equal(cm_id_qp_attr(server, &a, &mask), 0);
	assert_int_equal(mask, QPA_STATE | QPA_SQ_PSN | QPA_TIMEOUT);

	/* A REP that comes again is known again, and so is the queue pair that a DREQ names. */
	assert_int_equal(cm_id_confirm(client, w.now_ns), 0);
	w.wire(&w, SERVER, &server->conn->flow, server->conn->mad);
	run_for(&w, SECONDS / 10);
	assert_int_equal(w.sent[CLIENT][CM_RTU], 2);
	take(&w, SERVER, CM_ESTABLISHED);
	assert_int_equal(cm_id_disconnect(server, w.now_ns), 0);
	run_for(&w, SECONDS / 10);
	take(&w, CLIENT, CM_DISCONNECTED);
}

static void wire_without_reps(struct world *world, int from, const struct flow *flow, const uint8_t *mad)
{
	if (attribute_of(mad) != CM_REP)
		fly(world, from, flow, mad, WIRE_NS);
}

CASE(one_source_leaves_room_for_others)
{
	struct cm_counters c;

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, CM_BACKLOG_MAX);
	for (int i = 0; i < CM_HALF_OPEN_MAX_OF_ONE + 10; i++)
		connecting(&w, 0x1234 + (uint32_t)i);
	run_for(&w, SECONDS / 10);
	assert_int_equal(cm_channel_events(w.ends[SERVER].channel), CM_HALF_OPEN_MAX_OF_ONE);
	cm_report(w.ends[SERVER].cm, &c);
	assert_int_equal(c.requests_dropped, 10);
	assert_int_equal(c.connecting, CM_HALF_OPEN_MAX_OF_ONE);
	/* Each that a program takes makes room for one that comes again. */
	for (int i = 0; i < 10; i++)
		take(&w, SERVER, CM_CONNECT_REQUEST);
	run_for(&w, SECONDS);
	assert_int_equal(cm_channel_events(w.ends[SERVER].channel), CM_HALF_OPEN_MAX_OF_ONE);
}

/* The client's machine is another one than the requests': a flood that hears nothing of what it causes. */
CASE(who_leaves_replies_unanswered_gets_no_more)
{
	struct cm_counters c;
	struct cm_event e;

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, CM_BACKLOG_MAX);
	w.wire = wire_without_reps;
	for (uint32_t i = 0; i < 2 * CM_UNANSWERED_MAX_OF_ONE; i++) {
		connecting(&w, 0x1234 + i);
		run_for(&w, SECONDS / 100);
		while (cm_channel_take_event(w.ends[SERVER].channel, &e)) {
			if (e.type == CM_CONNECT_REQUEST)
				accept_it(&w, cm_id_find(w.ends[SERVER].cm, e.number), 0x8000 + i);
		}
	}
	cm_report(w.ends[SERVER].cm, &c);
	assert_in_range(c.connecting, CM_UNANSWERED_MAX_OF_ONE, CM_UNANSWERED_MAX_OF_ONE + 60);
	assert_true(c.dropped_by[CM_LIMIT_UNANSWERED_OF_ONE] > 100);
	w.wire = wire_perfect; /* it hears the repeats: its MRA, or its RTU, shows that it lives */
	run_for(&w, 20 * SECONDS);
	while (cm_channel_take_event(w.ends[SERVER].channel, &e)) {
		if (e.type == CM_CONNECT_REQUEST)
			accept_it(&w, cm_id_find(w.ends[SERVER].cm, e.number), 0x9000);
	}
	cm_report(w.ends[SERVER].cm, &c);
	assert_int_equal(c.connecting, 2 * CM_UNANSWERED_MAX_OF_ONE);
}

/* Requests come from 200 addresses, as their communication ids say, and their replies go nowhere.
 */
static void wire_from_everywhere(struct world *world, int from, const struct flow *flow, const uint8_t *mad)
{
	uint8_t forged[MAD_LEN], *msg = forged + MAD_HEADER_LEN, host;
	struct flow f = *flow;

	if (attribute_of(mad) != CM_REQ)
		return;
	memcpy(forged, mad, MAD_LEN);
	host = (uint8_t)(20 + get_be32(msg) % 200);
	f.src[15] = msg[56 + 15] = msg[140 + 4 + 15] = host; /* of the packet, the path, the IP header */
	fly(world, from, &f, forged, WIRE_NS);
}

CASE(many_that_leave_replies_unanswered_leave_room_for_others)
{
	struct cm_counters c;
	struct cm_event e;

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, CM_BACKLOG_MAX);
	w.wire = wire_from_everywhere;
	for (uint32_t i = 0; i < 3 * CM_UNANSWERED_MANY; i++) {
		connecting(&w, 0x1234 + i);
		run_for(&w, SECONDS / 1000);
		while (cm_channel_take_event(w.ends[SERVER].channel, &e)) {
			if (e.type == CM_CONNECT_REQUEST)
				accept_it(&w, cm_id_find(w.ends[SERVER].cm, e.number), 0x8000 + i);
		}
	}
	cm_report(w.ends[SERVER].cm, &c);
	assert_in_range(c.connecting, CM_UNANSWERED_MANY, CM_UNANSWERED_MANY + 400);
	/* They are put off first, and when they come again their addresses have too many. */
	assert_true(c.dropped_by[CM_LIMIT_STRANGERS] + c.dropped_by[CM_LIMIT_UNANSWERED_OF_ONE] > CM_UNANSWERED_MANY);
	assert_true(c.dropped_by[CM_LIMIT_UNANSWERED_OF_ONE] > 100);
	w.wire = wire_perfect;
	connecting(&w, 0xffff);
	run_for(&w, CM_REPEAT_NS_MIN + SECONDS / 100);
	for (bool found = false; !found; found = e.param.qpn == 0xffff)
		e = take(&w, SERVER, CM_CONNECT_REQUEST);
}

CASE(refusals_are_no_flood)
{
	struct cm_counters c;

	for (int i = 0; i < CM_REFUSALS_MAX_OF_ONE + 50; i++)
		connecting(&w, 0x1234 + (uint32_t)i);
	run_for(&w, SECONDS / 100);
	cm_report(w.ends[SERVER].cm, &c);
	assert_int_equal(c.rejects_sent.no_listener, CM_REFUSALS_MAX_OF_ONE);
	assert_int_equal(c.rejects_withheld, 50);
	nothing_to_take(&w, CLIENT); /* a listener may come yet */
	run_for(&w, 9 * SECONDS / 10);
	cm_report(w.ends[SERVER].cm, &c);
	assert_int_equal(c.rejects_sent.no_listener, CM_REFUSALS_MAX_OF_ONE);
	run_for(&w, 5 * SECONDS); /* they come again, in other seconds */
	for (int i = 0; i < CM_REFUSALS_MAX_OF_ONE + 50; i++)
		assert_int_equal(take(&w, CLIENT, CM_REJECTED).status, CM_REJ_SERVICE_ID);
}

CASE(where_nobody_listens_reason_8_is_told)
{
	struct cm_id *client = connecting(&w, 0x1234);
	struct cm_event e;

	run_for(&w, CM_EARLY_NS - 10 * WIRE_NS);
	nothing_to_take(&w, CLIENT);
	run_for(&w, SECONDS / 10);
	e = take(&w, CLIENT, CM_REJECTED);
	assert_int_equal(e.status, CM_REJ_SERVICE_ID);
	assert_int_equal(e.param.data_len, CM_REJ_DATA_LEN);
	assert_int_equal(state_of(client), CONN_CLOSED);
	assert_int_equal(w.sent[CLIENT][CM_REQ], 5); /* after 0, 25, 50, 100 and 200 ms */
}

/* Linux refuses a request that comes before its listener at once; programs here do not learn of it. */
CASE(a_request_may_be_early_for_its_listener)
{
	struct cm_id *client = connecting(&w, 0x1234);

	run_for(&w, SECONDS / 8);
	assert_true(w.sent[SERVER][CM_REJ] > 1);
	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	run_for(&w, SECONDS / 8);
	take(&w, SERVER, CM_CONNECT_REQUEST);
	nothing_to_take(&w, CLIENT);
	assert_int_equal(state_of(client), CONN_REQ_SENT);
}

CASE(a_refusal_that_comes_twice_changes_nothing)
{
	struct cm_id *client = connecting(&w, 0x1234);

	for (int i = 0; i < 300; i++) {
		struct flow from = {0};

		memcpy(from.src, w.ends[SERVER].addr.ip, 16);
		memcpy(from.dst, w.ends[CLIENT].addr.ip, 16);
		run_for(&w, 2 * WIRE_NS);
		if (w.sent[SERVER][CM_REJ] == 1)
			cm_input(w.ends[CLIENT].cm, &from, w.last[SERVER], w.now_ns);
	}
	run_for(&w, SECONDS);
	take(&w, CLIENT, CM_REJECTED);
	assert_int_equal(w.sent[CLIENT][CM_REQ], 5);
	assert_int_equal(state_of(client), CONN_CLOSED);
}

static void wire_cut(struct world *world, int from, const struct flow *flow, const uint8_t *mad)
{
}

CASE(silence_is_measured)
{
	struct cm_id *client;
	struct cm_id_info info;

	w.wire = wire_cut;
	client = connecting(&w, 0x1234);
	run_for(&w, 60 * SECONDS);
	assert_int_equal(take(&w, CLIENT, CM_UNREACHABLE).status, -ETIMEDOUT);
	cm_id_query(client, &info);
	assert_true(info.asked);
	assert_int_equal(info.sends, CM_SENDS_MAX);
	assert_int_equal(info.silent_ns / SECONDS, 51);
}

CASE(an_obstacle_has_a_name)
{
	struct cm *cm = w.ends[SERVER].cm;
	struct cm_id *first, *second;
	struct cm_addr a = w.ends[SERVER].addr, elsewhere = w.ends[CLIENT].addr;
	struct cm_obstacle o;

	a.port = SERVER_PORT;
	assert_int_equal(cm_id_create(w.ends[SERVER].channel, CM_SPACE_TCP, QPT_RC, 1, &first), 0);
	assert_int_equal(cm_id_create(w.ends[SERVER].channel, CM_SPACE_TCP, QPT_RC, 2, &second), 0);
	assert_int_equal(cm_id_bind(first, &elsewhere), -EADDRNOTAVAIL);
	o = cm_take_obstacle(cm);
	assert_int_equal(o.kind, CM_NO_SUCH_ADDRESS);
	assert_memory_equal(o.addr.ip, elsewhere.ip, 16);
	assert_int_equal(cm_take_obstacle(cm).kind, CM_NO_OBSTACLE);
	assert_int_equal(cm_id_bind(first, &a), 0);
	assert_int_equal(cm_id_bind(second, &a), -EADDRINUSE);
	o = cm_take_obstacle(cm);
	assert_int_equal(o.kind, CM_PORT_TAKEN_HERE);
	assert_int_equal(o.addr.port, SERVER_PORT);
}

CASE(a_limit_that_drops_requests_has_a_name)
{
	struct cm_counters c;

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 2);
	assert_int_equal(cm_take_limits(w.ends[SERVER].cm), 0);
	for (uint32_t i = 0; i < 5; i++)
		connecting(&w, 0x1234 + i);
	run_for(&w, SECONDS / 10);
	cm_report(w.ends[SERVER].cm, &c);
	assert_int_equal(c.requests_dropped, 3);
	assert_int_equal(c.dropped_by[CM_LIMIT_BACKLOG], 3);
	assert_int_equal(cm_take_limits(w.ends[SERVER].cm), 1 << CM_LIMIT_BACKLOG);
	assert_int_equal(cm_take_limits(w.ends[SERVER].cm), 0);
}

CASE(a_refusal_carries_the_programs_words)
{
	struct cm_id *client, *server;
	struct cm_event e;

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	client = connecting(&w, 0x1234);
	run_for(&w, SECONDS / 10);
	server = requested(&w);
	assert_int_equal(cm_id_reject(server, CM_REJ_CONSUMER, (const uint8_t *)"no", 3), 0);
	run_for(&w, SECONDS / 10);
	e = take(&w, CLIENT, CM_REJECTED);
	assert_int_equal(e.status, CM_REJ_CONSUMER);
	assert_string_equal((char *)e.param.data, "no");
	assert_int_equal(state_of(client), CONN_CLOSED);
	assert_int_equal(cm_id_reject(server, CM_REJ_CONSUMER, NULL, 0), -EINVAL);
}

CASE(refusals_are_counted_by_their_numbers)
{
	struct cm_rejects r = {0};
	struct cm_counters c;

	for (uint16_t reason = 0; reason < 256; reason++)
		count_reject(&r, reason);
	for (size_t i = 0; i < offsetof(struct cm_rejects, other) / sizeof(uint64_t); i++)
		assert_int_equal(((uint64_t *)&r)[i], 1);
	assert_int_equal(r.other, 256 - offsetof(struct cm_rejects, other) / sizeof(uint64_t));

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	connecting(&w, 0x1234);
	run_for(&w, SECONDS / 10);
	assert_int_equal(cm_id_reject(requested(&w), CM_REJ_VENDOR_OPTION, NULL, 0), 0);
	run_for(&w, SECONDS / 10);
	assert_int_equal(take(&w, CLIENT, CM_REJECTED).status, CM_REJ_VENDOR_OPTION);
	cm_report(w.ends[SERVER].cm, &c);
	assert_int_equal(c.rejects_sent.vendor_option, 1);
	cm_report(w.ends[CLIENT].cm, &c);
	assert_int_equal(c.rejects_received.vendor_option, 1);
}

CASE(a_request_that_is_destroyed_is_refused)
{
	struct cm_id *listener = listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 2);

	connecting(&w, 0x1234);
	run_for(&w, SECONDS / 10);
	cm_id_destroy(requested(&w), w.now_ns);
	run_for(&w, SECONDS / 10);
	assert_int_equal(take(&w, CLIENT, CM_REJECTED).status, CM_REJ_CONSUMER);
	connecting(&w, 0x1235);
	run_for(&w, SECONDS / 10);
	/* The listener goes, and the request that no program has seen; of two events one was taken. */
	assert_int_equal(cm_id_destroy(listener, w.now_ns), 1);
	run_for(&w, SECONDS / 10);
	assert_int_equal(take(&w, CLIENT, CM_REJECTED).status, CM_REJ_CONSUMER);
	nothing_to_take(&w, SERVER);
}

CASE(who_asked_may_leave_before_the_answer)
{
	struct cm_id *client, *server;
	struct cm_param p = param_with(0x5678, "");

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	client = connecting(&w, 0x1234);
	run_for(&w, SECONDS / 10);
	server = requested(&w);
	cm_id_destroy(client, w.now_ns);
	run_for(&w, SECONDS / 10);
	assert_int_equal(w.sent[CLIENT][CM_REJ], 1);
	assert_int_equal(cm_id_accept(server, CHILD_UID, &p, w.now_ns), -EINVAL);
}

CASE(an_answer_that_the_client_refuses)
{
	struct cm_id *client, *server;

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	client = connecting(&w, 0x1234);
	run_for(&w, SECONDS / 10);
	server = requested(&w);
	accept_it(&w, server, 0x5678);
	run_for(&w, SECONDS / 10);
	take(&w, CLIENT, CM_CONNECT_RESPONSE);
	assert_int_equal(cm_id_reject(client, CM_REJ_CONSUMER, NULL, 0), 0);
	run_for(&w, SECONDS / 10);
	assert_int_equal(take(&w, SERVER, CM_REJECTED).status, CM_REJ_CONSUMER);
	assert_int_equal(state_of(server), CONN_CLOSED);
}

CASE(both_hang_up_at_once)
{
	struct connection c = connected(&w);

	assert_int_equal(cm_id_disconnect(c.client, w.now_ns), 0);
	assert_int_equal(cm_id_disconnect(c.server, w.now_ns), 0);
	run_for(&w, SECONDS / 10);
	take(&w, CLIENT, CM_DISCONNECTED);
	take(&w, SERVER, CM_DISCONNECTED);
	run_for(&w, SECONDS);
	take(&w, CLIENT, CM_TIMEWAIT_EXIT);
	take(&w, SERVER, CM_TIMEWAIT_EXIT);
}

CASE(an_id_that_is_destroyed_hangs_up)
{
	struct connection c = connected(&w);

	cm_id_destroy(c.client, w.now_ns);
	run_for(&w, SECONDS / 10);
	take(&w, SERVER, CM_DISCONNECTED);
	cm_id_destroy(c.server, w.now_ns); /* which answers */
	run_for(&w, SECONDS / 10);
	assert_int_equal(w.sent[SERVER][CM_DREP], 1);
	assert_int_equal(w.sent[CLIENT][CM_DREQ], 1);
}

CASE(the_program_may_know_before_the_rtu_does)
{
	struct cm_id *client, *server;

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	client = connecting(&w, 0x1234);
	run_for(&w, SECONDS / 10);
	server = requested(&w);
	accept_it(&w, server, 0x5678);
	assert_int_equal(cm_id_established(server), 0);
	take(&w, SERVER, CM_ESTABLISHED);
	assert_int_equal(cm_id_established(server), -EISCONN);
	run_for(&w, SECONDS / 10);
	take(&w, CLIENT, CM_CONNECT_RESPONSE);
	cm_id_confirm(client, w.now_ns);
	run_for(&w, SECONDS / 10);
	nothing_to_take(&w, SERVER);
}

CASE(a_full_backlog_is_silent_and_the_peer_repeats_itself)
{
	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	connecting(&w, 0x1234);
	connecting(&w, 0x1235);
	run_for(&w, SECONDS / 10);
	assert_int_equal(cm_channel_events(w.ends[SERVER].channel), 1);
	nothing_to_take(&w, CLIENT);
	requested(&w);
	run_for(&w, SECONDS);
	requested(&w);
}

CASE(a_slow_program_is_waited_for)
{
	struct cm_id *client, *server;

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	client = connecting(&w, 0x1234);
	run_for(&w, 60 * SECONDS);
	assert_int_equal(w.sent[CLIENT][CM_REQ], 2); /* then an MRA arrived */
	assert_int_equal(w.sent[SERVER][CM_MRA], 1);
	server = requested(&w);
	accept_it(&w, server, 0x5678);
	run_for(&w, 60 * SECONDS);
	assert_int_equal(w.sent[SERVER][CM_REP], 2);
	assert_int_equal(w.sent[CLIENT][CM_MRA], 1);
	take(&w, CLIENT, CM_CONNECT_RESPONSE);
	assert_int_equal(cm_id_confirm(client, w.now_ns), 0);
	run_for(&w, SECONDS);
	take(&w, SERVER, CM_ESTABLISHED);
}

/* Repeats the peer's last message. */
static void send_again(int from)
{
	struct flow flow = {0};

	memcpy(flow.src, w.ends[from].addr.ip, 16);
	memcpy(flow.dst, w.ends[!from].addr.ip, 16);
	cm_input(w.ends[!from].cm, &flow, w.last[from], w.now_ns);
}

CASE(who_waits_for_the_end_still_answers)
{
	struct connection c = connected(&w);

	cm_id_disconnect(c.client, w.now_ns);
	cm_id_disconnect(c.server, w.now_ns);
	run_for(&w, SECONDS / 100);
	assert_int_equal(state_of(c.server), CONN_TIMEWAIT);
	memset(w.sent, 0, sizeof(w.sent));
	message_start(w.last[CLIENT], CM_DREQ, 1);
	cm_dreq_encode(w.last[CLIENT] + MAD_HEADER_LEN,
		       &(struct cm_dreq){.local_comm_id = c.server->conn->remote_comm_id,
					 .remote_comm_id = c.server->conn->local_comm_id,
					 .remote_qpn = c.server->conn->local_qpn});
	send_again(CLIENT);
	run_for(&w, 0);
	assert_int_equal(w.sent[SERVER][CM_DREP], 1);
	assert_int_equal(state_of(c.server), CONN_TIMEWAIT);
}

/* An MRA counts once; a peer that repeats it is given up all the same. */
CASE(asking_for_patience_has_an_end)
{
	struct cm_id *client;
	uint64_t start = w.now_ns;

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	client = connecting(&w, 0x1234);
	while (state_of(client) == CONN_REQ_SENT && w.now_ns < start + 1000 * SECONDS) {
		run_for(&w, SECONDS);
		send_again(SERVER); /* its MRA */
	}
	take(&w, CLIENT, CM_UNREACHABLE);
	assert_true(w.now_ns - start < 130 * SECONDS);
}

/* A peer that forgot: a REQ for the same queue pair with another id. */
CASE(a_stale_connection_is_ended)
{
	struct connection c = connected(&w);

	c.client->conn->id = NULL; /* as if the machine had restarted */
	conn_move(c.client->conn, CONN_TIMEWAIT);
	conn_close(c.client->conn);
	c.client->conn = NULL;
	connecting(&w, 0x1234);
	run_for(&w, SECONDS);
	assert_int_equal(take(&w, CLIENT, CM_REJECTED).status, CM_REJ_STALE);
	take(&w, SERVER, CM_DISCONNECTED); /* the DREQ for an unknown connection was answered */
	run_for(&w, SECONDS);
	take(&w, SERVER, CM_TIMEWAIT_EXIT);
	connecting(&w, 0x1234);
	run_for(&w, SECONDS / 10);
	requested(&w);
}

CASE(datagrams_are_told_where_to_go)
{
	struct cm_param p = param_with(0, "hello");
	struct cm_id *listener = listen_on(&w, CM_SPACE_UDP, SERVER_PORT, 1), *client, *server;
	struct cm_event e;

	client = resolved(&w, CM_SPACE_UDP, SERVER_PORT, CLIENT_UID);
	assert_int_equal(cm_id_connect(client, &p, w.now_ns), 0);
	run_for(&w, SECONDS / 10);
	e = take(&w, SERVER, CM_CONNECT_REQUEST);
	assert_true(e.datagram);
	assert_string_equal((char *)e.param.data, "hello");
	assert_int_equal(e.param.data_len, CM_SIDR_REQ_PRIVATE);
	server = cm_id_find(w.ends[SERVER].cm, e.number);
	p = param_with(0x42, "here");
	assert_int_equal(cm_id_accept(server, CHILD_UID, &p, w.now_ns), 0);
	run_for(&w, SECONDS / 10);
	e = take(&w, CLIENT, CM_ESTABLISHED);
	assert_true(e.datagram);
	assert_int_equal(e.param.qpn, 0x42);
	assert_int_equal(e.param.qkey, CM_QKEY);
	assert_string_equal((char *)e.param.data, "here");
	assert_memory_equal(e.ah.dgid, w.ends[SERVER].addr.ip, 16);
	nothing_to_take(&w, SERVER);
	cm_id_destroy(listener, w.now_ns);
	client = resolved(&w, CM_SPACE_UDP, SERVER_PORT, CLIENT_UID);
	assert_int_equal(cm_id_connect(client, &p, w.now_ns), 0);
	run_for(&w, CM_EARLY_NS - 10 * WIRE_NS);
	nothing_to_take(&w, CLIENT);
	run_for(&w, SECONDS / 10);
	assert_int_equal(take(&w, CLIENT, CM_UNREACHABLE).status, CM_SIDR_UNSUPPORTED);
}

CASE(datagrams_that_are_refused)
{
	struct cm_param p = param_with(0, "hello");
	struct cm_id *client;

	listen_on(&w, CM_SPACE_UDP, SERVER_PORT, 1);
	client = resolved(&w, CM_SPACE_UDP, SERVER_PORT, CLIENT_UID);
	assert_int_equal(cm_id_connect(client, &p, w.now_ns), 0);
	run_for(&w, SECONDS / 10);
	assert_int_equal(cm_id_reject(requested(&w), CM_REJ_CONSUMER, NULL, 0), 0);
	run_for(&w, SECONDS / 10);
	assert_int_equal(take(&w, CLIENT, CM_UNREACHABLE).status, CM_SIDR_REJECTED);
}
