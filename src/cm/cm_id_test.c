/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids, ports and channels without a peer; and messages that a peer may not send. */
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

static struct cm_addr anywhere(enum cm_family family, uint16_t port)
{
	struct cm_addr a = {.family = family, .port = port};

	if (family == CM_IPV4)
		a.ip[10] = a.ip[11] = 0xff;
	return a;
}

static struct cm_addr here(uint16_t port)
{
	struct cm_addr a = w.ends[SERVER].addr;

	a.port = port;
	return a;
}

static struct cm_id *new_id(void)
{
	struct cm_id *id;

	assert_int_equal(cm_id_create(w.ends[SERVER].channel, CM_SPACE_TCP, QPT_RC, SERVER_UID, &id), 0);
	return id;
}

/* ---- ports ------------------------------------------------------------------------------------------- */

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(two_ids_on_one_port)
{
	static const struct {
		enum cm_family first, second; /* of a wildcard; CM_NO_FAMILY: the address */
		bool reuse, afonly;
		int err;
	} row[] = {
		{CM_NO_FAMILY, CM_NO_FAMILY, false, false, -EADDRINUSE},
		{CM_NO_FAMILY, CM_NO_FAMILY, true, false, 0},
		{CM_NO_FAMILY, CM_IPV4, false, false, -EADDRNOTAVAIL},
		{CM_IPV4, CM_NO_FAMILY, false, false, -EADDRNOTAVAIL},
		{CM_IPV4, CM_IPV4, false, false, -EADDRNOTAVAIL},
		{CM_IPV4, CM_IPV6, false, false, -EADDRNOTAVAIL},
		{CM_IPV4, CM_IPV6, false, true, 0},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct cm_addr a = row[i].first ? anywhere(row[i].first, 80) : here(80);
		struct cm_addr b = row[i].second ? anywhere(row[i].second, 80) : here(80);
		struct cm_id *first = new_id(), *second = new_id();

		cm_id_set_reuse(first, row[i].reuse);
		cm_id_set_reuse(second, row[i].reuse);
		cm_id_set_afonly(first, row[i].afonly);
		cm_id_set_afonly(second, row[i].afonly);
		assert_int_equal(cm_id_bind(first, &a), 0);
		assert_int_equal(cm_id_bind(second, &b), row[i].err);
		cm_id_destroy(first, 0);
		cm_id_destroy(second, 0);
	}
}

CASE(who_shares_a_port_may_not_listen)
{
	struct cm_id *first = new_id(), *second = new_id();
	struct cm_addr a = here(80);

	cm_id_set_reuse(first, true);
	cm_id_set_reuse(second, true);
	assert_int_equal(cm_id_bind(first, &a), 0);
	assert_int_equal(cm_id_bind(second, &a), 0);
	assert_int_equal(cm_id_listen(first, 1), -EADDRINUSE);
	cm_id_destroy(second, 0);
	assert_int_equal(cm_id_listen(first, 1), 0);
	second = new_id();
	cm_id_set_reuse(second, true);
	assert_int_equal(cm_id_bind(second, &a), -EADDRINUSE);
}

CASE(ports_that_are_drawn_are_of_the_slots_class_and_differ)
{
	uint16_t seen[200];
	struct cm_addr a = here(0);

	for (size_t i = 0; i < 200; i++) {
		struct cm_id_info info;
		struct cm_id *id = new_id();

		assert_int_equal(cm_id_bind(id, &a), 0);
		cm_id_query(id, &info);
		seen[i] = info.local.port;
		assert_in_range(seen[i], 32768, 60999);
		assert_int_equal((seen[i] - 32768) % 127, 5);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(seen[i], seen[k]);
	}
}

CASE(when_no_port_is_left_it_is_said)
{
	struct cm_addr a = here(0);
	int err;

	/* Of a class there are 223; then any will do. */
	w.ends[SERVER].cm->port_last = w.ends[SERVER].cm->port_first + 299;
	for (int i = 0; i < 300; i++)
		assert_int_equal(cm_id_bind(new_id(), &a), 0);
	err = cm_id_bind(new_id(), &a);
	assert_int_equal(err, -EADDRNOTAVAIL);
}

CASE(only_our_own_addresses_are_bound)
{
	struct cm_addr theirs = w.ends[CLIENT].addr, ours = here(80);
	struct cm_id *id = new_id();

	assert_int_equal(cm_id_bind(id, &theirs), -EADDRNOTAVAIL);
	assert_int_equal(cm_id_bind(id, &ours), 0);
	assert_int_equal(cm_id_bind(id, &ours), -EINVAL);
}

static int device_after_bind(const char *ipv4)
{
	struct cm_addr a = anywhere(CM_IPV4, 0);
	struct cm_id *id = new_id();
	struct cm_id_info info;

	memcpy(a.ip + 12, ipv4, 4);
	assert_int_equal(cm_id_bind(id, &a), 0);
	cm_id_query(id, &info);
	return info.gid_index;
}

CASE(a_loopback_address_names_no_device_where_there_are_others)
{
	static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	struct cm *cm = w.ends[SERVER].cm;

	memcpy(cm->gids[1].raw, loopback, sizeof(loopback));
	cm->gid_count = 2;
	assert_int_equal(device_after_bind((const char *)cm->gids[0].raw + 12), 0);
	assert_int_equal(device_after_bind("\x7f\0\0\x01"), -1);
	assert_int_equal(device_after_bind("\0\0\0\0"), -1);
	memcpy(cm->gids[0].raw, loopback, sizeof(loopback));
	assert_int_equal(device_after_bind("\x7f\0\0\x01"), 0);
}

static size_t events_of(enum cm_event_type type)
{
	struct cm_event e;
	size_t n = 0;

	while (cm_channel_take_event(w.ends[SERVER].channel, &e))
		n += e.type == type;
	return n;
}

/* A peer of this host by a loopback address that the device does not have, as Linux's cma_bind_loopback() has it. */
CASE(loopback_goes_from_the_devices_address_to_itself)
{
	struct cm_addr lo = anywhere(CM_IPV4, 80), src;
	struct end *e = &w.ends[SERVER];
	struct cm_id *listener = new_id(), *other = new_id(), *id = new_id(), *asked;
	struct cm_addr at = here(80);
	struct cm_param param = {.qpn = 9};
	struct cm_id_info info;
	struct flow flow;
	uint8_t mad[MAD_LEN];

	lo.ip[12] = 127;
	lo.ip[15] = 1;
	src = lo;
	src.port = 0;
	assert_int_equal(cm_id_bind(listener, &lo), 0);
	assert_int_equal(cm_id_listen(listener, 1), 0);
	assert_int_equal(cm_id_bind(other, &at), 0);
	assert_int_equal(cm_id_listen(other, 1), 0);
	assert_int_equal(cm_id_resolve_addr(id, &src, &lo), 0);
	assert_int_equal(cm_id_resolve_route(id), 0);
	assert_int_equal(events_of(CM_ADDR_RESOLVED), 1);
	assert_int_equal(cm_id_connect(id, &param, 0), 0);
	cm_id_query(id, &info);
	assert_int_equal(info.gid_index, 0);
	assert_memory_equal(info.sgid, e->addr.ip, 16);
	assert_memory_equal(info.dgid, e->addr.ip, 16);
	assert_memory_equal(info.remote.ip, lo.ip, 16);

	assert_true(cm_output(e->cm, &flow, mad));
	assert_memory_equal(flow.src, e->addr.ip, 16);
	assert_memory_equal(flow.dst, e->addr.ip, 16);
	assert_int_equal(cm_route(e->cm, &flow, mad, true), CM_HERE);
	cm_input(e->cm, &flow, mad, 0);
	/* The listener of the packet's own address is not asked. */
	asked = requested(&w);
	cm_id_query(asked, &info);
	assert_int_equal(info.gid_index, 0);
	assert_memory_equal(info.local.ip, lo.ip, 16);
	assert_memory_equal(info.remote.ip, lo.ip, 16);
	assert_memory_equal(info.dgid, e->addr.ip, 16);
}

CASE(ids_hear_of_their_interface)
{
	struct cm *cm = w.ends[SERVER].cm;
	struct cm_addr at = here(80), any = anywhere(CM_IPV4, 81);
	struct nic_gid gone = {0}, was = cm->gids[0];
	struct cm_id *id = new_id();
	struct cm_id_info info;

	cm->gids[0].ifindex = 7;
	assert_int_equal(cm_id_bind(id, &at), 0);
	assert_int_equal(cm_id_bind(new_id(), &any), 0);
	cm_tell_interface(cm, 8, CM_DEVICE_REMOVAL);
	assert_int_equal(cm_channel_events(w.ends[SERVER].channel), 0);
	cm_tell_interface(cm, 7, CM_ADDR_CHANGE);
	assert_int_equal(events_of(CM_ADDR_CHANGE), 1);
	/* The address goes first. */
	cm_set_gids(cm, &gone, 1);
	cm_id_query(id, &info);
	assert_int_equal(info.gid_index, 0);
	at.port = 82;
	assert_int_equal(cm_id_bind(new_id(), &at), -EADDRNOTAVAIL);
	cm_tell_interface(cm, 7, CM_DEVICE_REMOVAL);
	assert_int_equal(events_of(CM_DEVICE_REMOVAL), 1);
	cm_set_gids(cm, &was, 1);
	assert_int_equal(cm_id_bind(new_id(), &at), 0);
}

CASE(the_listener_that_fits_best_hears)
{
	struct cm_addr four = anywhere(CM_IPV4, 80), six = anywhere(CM_IPV6, 80), at = here(80);
	struct cm_id *a = new_id(), *b = new_id(), *c;
	int fit;

	assert_null(port_listener(w.ends[SERVER].cm, CM_SPACE_TCP, &at, &fit));
	cm_id_set_afonly(a, true);
	cm_id_set_afonly(b, true);
	assert_int_equal(cm_id_bind(a, &six), 0);
	assert_int_equal(cm_id_listen(a, 1), 0);
	assert_null(port_listener(w.ends[SERVER].cm, CM_SPACE_TCP, &at, &fit));
	assert_int_equal(cm_id_bind(b, &four), 0);
	assert_null(port_listener(w.ends[SERVER].cm, CM_SPACE_TCP, &at, &fit)); /* bound is not listening */
	assert_int_equal(cm_id_listen(b, 1), 0);
	assert_ptr_equal(port_listener(w.ends[SERVER].cm, CM_SPACE_TCP, &at, &fit), b);
	assert_null(port_listener(w.ends[SERVER].cm, CM_SPACE_UDP, &at, &fit));
	cm_id_destroy(a, 0);
	cm_id_destroy(b, 0);
	c = new_id();
	assert_int_equal(cm_id_bind(c, &six), 0); /* for both families */
	assert_int_equal(cm_id_listen(c, 1), 0);
	assert_ptr_equal(port_listener(w.ends[SERVER].cm, CM_SPACE_TCP, &at, &fit), c);
}

/* ---- calls in wrong states ---------------------------------------------------------------------------- */

CASE(calls_come_in_their_order_or_fail)
{
	struct cm_id *id = new_id();
	struct cm_addr at = here(0), to = w.ends[CLIENT].addr;
	struct cm_param p = param_with(3, "");
	struct qp_attr attr = {.state = QPS_INIT};
	uint32_t mask;

	to.port = 1;
	assert_int_equal(cm_id_resolve_route(id), -EINVAL);
	assert_int_equal(cm_id_connect(id, &p, 0), -EINVAL);
	assert_int_equal(cm_id_accept(id, 1, &p, 0), -EINVAL);
	assert_int_equal(cm_id_confirm(id, 0), -EINVAL);
	assert_int_equal(cm_id_reject(id, CM_REJ_CONSUMER, NULL, 0), -EINVAL);
	assert_int_equal(cm_id_disconnect(id, 0), -EINVAL);
	assert_int_equal(cm_id_qp_attr(id, &attr, &mask), -EINVAL);
	assert_int_equal(cm_id_resolve_addr(id, &to, &at), -ENODEV);
	assert_int_equal(cm_id_resolve_addr(id, &at, &to), 0);
	assert_int_equal(cm_id_resolve_addr(id, &at, &to), -EINVAL);
	assert_int_equal(cm_id_qp_attr(id, &attr, &mask), 0);
	assert_int_equal(mask, QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS);
	assert_int_equal(attr.access, 0);
	assert_int_equal(cm_id_listen(id, 1), -EINVAL);
	assert_int_equal(cm_id_resolve_route(id), 0);
	p.data_len = CM_REQ_PRIVATE + 1;
	assert_int_equal(cm_id_connect(id, &p, 0), -EINVAL);
	p.data_len = CM_REQ_PRIVATE;
	assert_int_equal(cm_id_connect(id, &p, 0), 0);
	assert_int_equal(cm_id_connect(id, &p, 0), -EINVAL);
}

CASE(events_move_with_their_id)
{
	struct cm_channel *other;
	struct cm_id *listener = listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 4);
	struct cm_event e;

	assert_int_equal(cm_channel_create(w.ends[SERVER].cm, NULL, &other), 0);
	connecting(&w, 0x1234);
	connecting(&w, 0x1235);
	run_for(&w, SECONDS / 10);
	take(&w, SERVER, CM_CONNECT_REQUEST);
	assert_int_equal(cm_id_migrate(listener, other), 1);
	nothing_to_take(&w, SERVER);
	assert_int_equal(cm_channel_events(other), 1);
	assert_true(cm_channel_take_event(other, &e));
	assert_ptr_equal(cm_id_channel(cm_id_find(w.ends[SERVER].cm, e.number)), other);
	assert_int_equal(cm_id_destroy(listener, w.now_ns), 2);
	cm_channel_destroy(other, w.now_ns);
}

CASE(channels_that_stirred_are_named_once)
{
	struct cm *cm = w.ends[SERVER].cm;

	assert_null(cm_next_stirred(cm));
	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 4);
	connecting(&w, 0x1234);
	connecting(&w, 0x1235);
	run_for(&w, SECONDS / 10);
	assert_ptr_equal(cm_next_stirred(cm), w.ends[SERVER].channel);
	assert_null(cm_next_stirred(cm));
	assert_int_equal(cm_channel_added(w.ends[SERVER].channel), 2);
	take(&w, SERVER, CM_CONNECT_REQUEST);
	assert_ptr_equal(cm_next_stirred(cm), w.ends[SERVER].channel);
	assert_int_equal(cm_channel_added(w.ends[SERVER].channel), 2);
	assert_ptr_equal(cm_channel_owner(w.ends[SERVER].channel), &w.ends[SERVER]);
}

/* ---- messages that a peer may not send ------------------------------------------------------------------------------
 */

static struct flow from_client(void)
{
	struct flow f = {0};

	memcpy(f.src, w.ends[CLIENT].addr.ip, 16);
	memcpy(f.dst, w.ends[SERVER].addr.ip, 16);
	return f;
}

static struct cm_req good_req(void)
{
	struct cm_req r = {.local_comm_id = 77,
			   .service_id = service_id_of(CM_SPACE_TCP, SERVER_PORT),
			   .ca_guid = 5,
			   .qpn = 0x99,
			   .mtu = 3,
			   .primary.ack_timeout = 10};
	struct cm_ip ip = {.ip_version = 4, .sport = 9, .src = {[12] = 10, [15] = 1}, .dst = {[12] = 10, [15] = 2}};

	memcpy(r.primary.local_gid, w.ends[CLIENT].addr.ip, 16);
	memcpy(r.primary.remote_gid, w.ends[SERVER].addr.ip, 16);
	cm_ip_encode(r.private_data, &ip);
	return r;
}

/* The server's answer to that REQ: the reason of its REJ, 0 if it is silent, -1 if it accepts. */
static int answer_to(const struct cm_req *r, const struct flow *in)
{
	uint8_t mad[MAD_LEN];
	struct cm_rej rej;
	struct flow out;

	message_start(mad, CM_REQ, 1);
	cm_req_encode(mad + MAD_HEADER_LEN, r);
	cm_input(w.ends[SERVER].cm, in, mad, w.now_ns);
	if (cm_channel_events(w.ends[SERVER].channel)) {
		cm_id_destroy(requested(&w), w.now_ns);
		cm_output(w.ends[SERVER].cm, &out, mad);
		return -1;
	}
	if (!cm_output(w.ends[SERVER].cm, &out, mad))
		return 0;
	assert_int_equal(attribute_of(mad), CM_REJ);
	assert_memory_equal(out.dst, in->src, 16);
	assert_memory_equal(out.src, in->dst, 16);
	cm_rej_decode(&rej, mad + MAD_HEADER_LEN);
	assert_int_equal(rej.local_comm_id, 0);
	assert_int_equal(rej.remote_comm_id, r->local_comm_id);
	if (rej.reason == CM_REJ_MTU)
		assert_int_equal(rej.info[0] >> 4, 3);
	return rej.reason;
}

/* Another host may not name itself so. */
CASE(loopback_from_elsewhere_is_refused)
{
	struct cm_addr lo = anywhere(CM_IPV4, SERVER_PORT);
	struct flow in = from_client();
	struct cm_ip ip = {.ip_version = 4, .sport = 9, .src = {[12] = 127, [15] = 1}, .dst = {[12] = 127, [15] = 1}};
	struct cm_req r = good_req();
	struct cm_id *listener = new_id();

	lo.ip[12] = 127;
	lo.ip[15] = 1;
	assert_int_equal(cm_id_bind(listener, &lo), 0);
	assert_int_equal(cm_id_listen(listener, 1), 0);
	cm_ip_encode(r.private_data, &ip);
	assert_int_equal(answer_to(&r, &in), CM_REJ_SERVICE_ID);
}

CASE(a_req_that_is_not_right_is_refused_or_dropped)
{
	struct flow in = from_client();
	struct cm_req r;

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
#define REQ_WITH(change, expect)                              \
	do {                                                  \
		r = good_req();                               \
		change;                                       \
		assert_int_equal(answer_to(&r, &in), expect); \
	} while (0)
	REQ_WITH((void)0, -1);
	REQ_WITH(r.local_comm_id = 0, 0);
	REQ_WITH(r.qpn = 0, 0);
	REQ_WITH(r.qpn = 1, 0);
	REQ_WITH(r.qpn = 0xffffff, 0);
	REQ_WITH(r.mtu = 0, 0);
	REQ_WITH(r.mtu = 6, 0);
	REQ_WITH(r.mtu = 4, CM_REJ_MTU);
	REQ_WITH(r.transport = CM_TRANSPORT_RD, CM_REJ_TRANSPORT);
	REQ_WITH(r.transport = CM_TRANSPORT_EXTENDED, CM_REJ_TRANSPORT);
	REQ_WITH((r.transport = CM_TRANSPORT_EXTENDED, r.extended_transport = 2), CM_REJ_TRANSPORT);
	/* The listener is for another type of queue pair. */
	REQ_WITH((r.transport = CM_TRANSPORT_EXTENDED, r.extended_transport = CM_EXTENDED_XRC), CM_REJ_CONSUMER);
	REQ_WITH(r.transport = CM_TRANSPORT_UC, CM_REJ_CONSUMER);
	REQ_WITH(r.service_id++, CM_REJ_SERVICE_ID);
	REQ_WITH(r.service_id |= UINT64_C(1) << 40, CM_REJ_SERVICE_ID);
	REQ_WITH(r.service_id = service_id_of(CM_SPACE_UDP, SERVER_PORT), CM_REJ_SERVICE_ID);
	REQ_WITH(r.primary.local_gid[15]++, CM_REJ_GID);
	REQ_WITH(r.primary.remote_gid[15]++, CM_REJ_GID);
	REQ_WITH(r.private_data[0] = 0x10, CM_REJ_CONSUMER);
	REQ_WITH(r.private_data[1] = 0x50, CM_REJ_CONSUMER);
	REQ_WITH(r.private_data[19]++, CM_REJ_CONSUMER); /* not the packet's source */
	REQ_WITH(r.private_data[35]++, CM_REJ_CONSUMER);
	REQ_WITH(in.dst[15]++, 0); /* not for us */
	in = from_client();
	REQ_WITH(in.src[12] = 224, 0); /* a group cannot be answered */
	REQ_WITH(in.src[12] = 0, 0);
}

CASE(a_header_that_is_not_right_is_dropped)
{
	static const struct {
		size_t at;
		uint8_t value;
		bool answered;
	} row[] = {{0, 2, false}, {1, 3, false}, {2, 1, true},      {2, 3, true},      {3, 0x83, false},
		   {3, 1, false}, {5, 1, false}, {17, 0x1b, false}, {17, 0x19, false}, {16, 1, false}};
	struct flow in = from_client(), out;
	struct cm_req r = good_req();

	listen_on(&w, CM_SPACE_TCP, SERVER_PORT, 1);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint8_t mad[MAD_LEN];
		struct cm_rej rej;

		message_start(mad, CM_REQ, 1);
		cm_req_encode(mad + MAD_HEADER_LEN, &r);
		mad[row[i].at] = row[i].value;
		cm_input(w.ends[SERVER].cm, &in, mad, w.now_ns);
		nothing_to_take(&w, SERVER);
		assert_int_equal(cm_output(w.ends[SERVER].cm, &out, mad), row[i].answered);
		if (!row[i].answered)
			continue;
		cm_rej_decode(&rej, mad + MAD_HEADER_LEN);
		assert_int_equal(rej.reason, CM_REJ_CLASS_VERSION);
	}
}

/* Who has seen all numbers, and sends from another address, or to another one of ours. */
static void does_not_end(struct connection c, struct flow in)
{
	uint8_t mad[MAD_LEN];
	struct cm_req r = good_req();

	message_start(mad, CM_DREQ, 1);
	cm_dreq_encode(mad + MAD_HEADER_LEN, &(struct cm_dreq){.local_comm_id = c.client->conn->local_comm_id,
							       .remote_comm_id = c.server->conn->local_comm_id,
							       .remote_qpn = 0x5678});
	cm_input(w.ends[SERVER].cm, &in, mad, w.now_ns);
	message_start(mad, CM_REJ, 1);
	cm_rej_encode(mad + MAD_HEADER_LEN, &(struct cm_rej){.local_comm_id = c.client->conn->local_comm_id,
							     .remote_comm_id = c.server->conn->local_comm_id,
							     .reason = CM_REJ_CONSUMER});
	cm_input(w.ends[SERVER].cm, &in, mad, w.now_ns);
	r.ca_guid = 0x1000;
	r.qpn = 0x1234;
	message_start(mad, CM_REQ, 1);
	cm_req_encode(mad + MAD_HEADER_LEN, &r);
	cm_input(w.ends[SERVER].cm, &in, mad, w.now_ns);
	assert_int_equal(state_of(c.server), CONN_ESTABLISHED);
	nothing_to_take(&w, SERVER);
}

CASE(only_the_peer_can_end_a_connection)
{
	struct connection c = connected(&w);
	struct cm *cm = w.ends[SERVER].cm;
	struct flow in = from_client();
	uint8_t mad[MAD_LEN];

	in.src[15] = 66;
	does_not_end(c, in);
	in = from_client();
	cm->gids[cm->gid_count] = cm->gids[0];
	in.dst[15] = ++cm->gids[cm->gid_count++].raw[15];
	does_not_end(c, in);
	/* The peer itself must name the right queue pair. */
	in = from_client();
	message_start(mad, CM_DREQ, 1);
	cm_dreq_encode(mad + MAD_HEADER_LEN, &(struct cm_dreq){.local_comm_id = c.client->conn->local_comm_id,
							       .remote_comm_id = c.server->conn->local_comm_id,
							       .remote_qpn = 0x5679});
	cm_input(w.ends[SERVER].cm, &in, mad, w.now_ns);
	assert_int_equal(state_of(c.server), CONN_ESTABLISHED);
}
