/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses that programs know by other names: what they give and get is vGIDs, what is on the wire has the addresses of the
 * underlay, and a nic without a map is the peer of one that has it.
 */
#include <errno.h>

#include "duo/sim.h"
#include "wire/grh.h"
#include "wire/mad.h"

enum { ROWS = 2 * DUO_GIDS, LEN = 512, NEW_HOST = 9 };

static uint8_t names[DUO_SIDES][DUO_GIDS][16];
static struct gid_row rows[ROWS + 1], by_underlay[ROWS + 1];
static struct gid_map map;
static enum protocol spoken;

static void order(uint32_t now_count, uint32_t past_count)
{
	qsort(rows, now_count, sizeof(rows[0]), gid_row_by_vgid);
	qsort(by_underlay, past_count, sizeof(by_underlay[0]), gid_row_by_underlay);
	map = (struct gid_map){.now = rows, .now_count = now_count, .past = by_underlay, .past_count = past_count};
}

/* 10.200.0.1 and .2 are 10.0.0.1 and .2; fd99::1 and ::2 are fd00::1 and ::2. */
static void make_map(struct nic_config *c, enum duo_side side)
{
	for (uint32_t g = 0; g < DUO_GIDS; g++) {
		struct gid_row *row = &rows[(uint32_t)side * DUO_GIDS + g];

		memcpy(row->underlay, c->gids[g].raw, 16);
		memcpy(row->vgid, c->gids[g].raw, 16);
		row->vgid[g == DUO_GID_IPV4 ? 13 : 1] = g == DUO_GID_IPV4 ? 200 : 0x99;
		memcpy(names[side][g], row->vgid, 16);
	}
	if (side == DUO_B) {
		memcpy(by_underlay, rows, sizeof(rows));
		order(ROWS, ROWS);
	}
}

static void both_have_it(struct nic_config *c, enum duo_side side)
{
	make_map(c, side);
	c->transport.protocol = spoken;
	c->gid_map = &map;
}

static void a_has_it(struct nic_config *c, enum duo_side side)
{
	make_map(c, side);
	c->transport.protocol = spoken;
	c->gid_map = side == DUO_A ? &map : NULL;
}

/* The host's programs name the other one by its vGIDs, if they have a map. */
static void name_ends(struct duo *d, bool by_vgid, enum duo_side side)
{
	for (uint32_t g = 0; g < DUO_GIDS; g++)
		memcpy(d->host[side].gids[g].raw, by_vgid ? names[side][g] : d->host[side].config.gids[g].raw, 16);
}

static struct sim start(enum qp_type type, uint8_t gid, void (*tweak)(struct nic_config *, enum duo_side))
{
	struct duo_options o = duo_options();
	struct duo *d = duo_create(1, tweak);
	struct duo_qp *a, *b;
	struct sim s;

	o.type = type;
	o.gid = gid;
	a = duo_qp_create(&d->host[DUO_A], &o);
	b = duo_qp_create(&d->host[DUO_B], &o);
	a->peer = b;
	b->peer = a;
	assert_int_equal(duo_qp_to_init(a), 0);
	assert_int_equal(duo_qp_to_init(b), 0);
	name_ends(d, true, DUO_B);
	assert_int_equal(duo_qp_to_rtr(a, b), 0);
	name_ends(d, false, DUO_B);
	name_ends(d, tweak == both_have_it, DUO_A);
	assert_int_equal(duo_qp_to_rtr(b, a), 0);
	name_ends(d, false, DUO_A);
	assert_int_equal(duo_qp_to_rts(a), 0);
	assert_int_equal(duo_qp_to_rts(b), 0);
	s = (struct sim){.duo = d, .a = a, .b = b};
	s.abuf = duo_buf(&d->host[DUO_A], BUF_BYTES, ALL_ACCESS);
	s.bbuf = duo_buf(&d->host[DUO_B], BUF_BYTES, ALL_ACCESS);
	duo_fill(s.abuf, 1);
	return s;
}

static void write_arrives(struct sim *s, uint64_t wr_id)
{
	duo_must_post(s->a, duo_write_wr(wr_id, s->abuf, 0, LEN, s->bbuf, 0));
	duo_idle(s->duo);
	duo_expect(s->duo, &s->a->sent, wr_id, WC_SUCCESS);
	assert_memory_equal(s->bbuf->p, s->abuf->p, LEN);
}

static void expect_peer(const struct duo_qp *q, const uint8_t gid[16])
{
	struct qp_attr attr;
	struct qp_init init;

	nic_qp_query(q->host->nic, q->qp, &attr, &init);
	assert_memory_equal(attr.av.dgid, gid, 16);
}

/* Any other address would have reached no host. */
TEST(programs_have_vgids_and_the_wire_the_underlay)
{
	static const enum protocol protocols[] = {PROTOCOL_ROCEV2, PROTOCOL_VEROCE};

	for (size_t p = 0; p < COUNT(protocols); p++) {
		for (uint8_t gid = 0; gid < DUO_GIDS; gid++) {
			struct nic_gid own;
			struct sim s;

			spoken = protocols[p];
			s = start(QPT_RC, gid, both_have_it);
			assert_int_equal(nic_gid(s.a->host->nic, gid, &own), 0);
			assert_memory_equal(own.raw, names[DUO_A][gid], 16);
			expect_peer(s.a, names[DUO_B][gid]);
			expect_peer(s.b, names[DUO_A][gid]);
			write_arrives(&s, 1);
			sim_end(&s);
		}
	}
}

TEST(a_peer_without_a_map_knows_nothing_of_it)
{
	static const enum protocol protocols[] = {PROTOCOL_ROCEV2, PROTOCOL_VEROCE};

	for (size_t p = 0; p < COUNT(protocols); p++) {
		struct sim s;

		spoken = protocols[p];
		s = start(QPT_RC, DUO_GID_IPV4, a_has_it);
		expect_peer(s.a, names[DUO_B][DUO_GID_IPV4]);
		expect_peer(s.b, s.a->host->config.gids[DUO_GID_IPV4].raw);
		write_arrives(&s, 1);
		sim_end(&s);
	}
}

static int resolve(const struct sim *s, const uint8_t dgid[16], struct flow *f)
{
	struct ah_attr av = duo_av(s->a->host, s->b->host, s->a->opt.gid);
	uint32_t mtu;

	memcpy(av.dgid, dgid, 16);
	return nic_resolve(s->a->host->nic, &av, f, &mtu);
}

TEST(what_the_map_lacks_is_unreachable)
{
	static const uint8_t group[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};
	struct duo_options o = duo_options();
	struct duo_qp *q;
	struct sim s;
	struct flow f;

	spoken = PROTOCOL_ROCEV2;
	s = start(QPT_RC, DUO_GID_IPV4, both_have_it);
	/* An address of the underlay is no name. */
	assert_int_equal(resolve(&s, s.b->host->config.gids[DUO_GID_IPV4].raw, &f), -ENETUNREACH);
	assert_int_equal(resolve(&s, group, &f), 0);
	assert_memory_equal(f.dst, group, 16);
	assert_memory_equal(f.src, s.a->host->config.gids[DUO_GID_IPV4].raw, 16);
	q = duo_qp_create(s.a->host, &o);
	assert_int_equal(duo_qp_to_init(q), 0);
	assert_int_equal(duo_qp_to_rtr(q, s.b), -ENETUNREACH);
	assert_int_equal(qp_state(q->qp), QPS_INIT);
	name_ends(s.duo, true, DUO_B);
	assert_int_equal(duo_qp_to_rtr(q, s.b), 0);
	name_ends(s.duo, false, DUO_B);
	sim_end(&s);
}

static void send_datagram(struct sim *s, const struct flow *to, uint64_t wr_id)
{
	struct duo_wr w = duo_send_wr(wr_id, s->abuf, 0, LEN);

	w.flow = to;
	w.dqpn = s->b->qpn;
	w.qkey = s->b->opt.qkey;
	duo_must_post(s->a, w);
	duo_idle(s->duo);
	duo_expect(s->duo, &s->a->sent, wr_id, WC_SUCCESS);
}

TEST(a_datagram_shows_names_to_its_receiver)
{
	for (uint8_t gid = 0; gid < DUO_GIDS; gid++) {
		const size_t at = gid == DUO_GID_IPV4 ? 32 : 8, len = gid == DUO_GID_IPV4 ? 4 : 16;
		struct flow to;
		struct sim s;

		spoken = PROTOCOL_ROCEV2;
		s = start(QPT_UD, gid, both_have_it);
		assert_true(duo_recv(s.b, 50, s.bbuf, 0, GRH_LEN + LEN));
		assert_int_equal(resolve(&s, names[DUO_B][gid], &to), 0);
		send_datagram(&s, &to, 1);
		duo_expect(s.duo, &s.b->received, 50, WC_SUCCESS);
		assert_memory_equal(s.bbuf->p + at, names[DUO_A][gid] + 16 - len, len);
		assert_memory_equal(s.bbuf->p + at + len, names[DUO_B][gid] + 16 - len, len);
		assert_memory_equal(s.bbuf->p + GRH_LEN, s.abuf->p, LEN);
		sim_end(&s);
	}
}

/* A has no line any more. */
static void drop_lines_of_a(void)
{
	for (uint32_t i = 0, n = 0; i < ROWS; i++)
		if (memcmp(rows[i].vgid, names[DUO_A][DUO_GID_IPV4], 16) &&
		    memcmp(rows[i].vgid, names[DUO_A][DUO_GID_IPV6], 16))
			rows[n++] = rows[i];
	order(ROWS - DUO_GIDS, ROWS);
}

TEST(datagrams_of_strangers_are_dropped_and_counted)
{
	uint8_t mad[MAD_LEN] = {0};
	struct flow flow, to;
	struct sim s;

	spoken = PROTOCOL_ROCEV2;
	s = start(QPT_UD, DUO_GID_IPV4, both_have_it);
	flow = to = duo_flow(s.duo, DUO_B, DUO_GID_IPV4);
	nic_set_gid_map(s.a->host->nic, NULL); /* its own is another */
	assert_true(nic_mad_send(s.a->host->nic, &flow, mad));
	duo_idle(s.duo);
	assert_true(nic_mad_take(s.b->host->nic, &flow, mad));
	assert_memory_equal(flow.src, names[DUO_A][DUO_GID_IPV4], 16);
	assert_memory_equal(flow.dst, names[DUO_B][DUO_GID_IPV4], 16);

	assert_true(duo_recv(s.b, 50, s.bbuf, 0, GRH_LEN + LEN));
	drop_lines_of_a();
	assert_true(nic_mad_send(s.a->host->nic, &to, mad));
	send_datagram(&s, &to, 1);
	assert_int_equal(s.b->received.n, 0);
	assert_false(nic_mad_take(s.b->host->nic, &flow, mad));
	assert_int_equal(nic_counters(s.b->host->nic)->rx_wrong_source, 2);
	sim_end(&s);
}

TEST(a_management_datagram_is_sent_by_name)
{
	uint8_t mad[MAD_LEN] = {0};
	struct flow flow;
	struct sim s;

	spoken = PROTOCOL_ROCEV2;
	s = start(QPT_UD, DUO_GID_IPV4, both_have_it);
	flow = duo_flow(s.duo, DUO_B, DUO_GID_IPV4);
	assert_false(nic_mad_send(s.a->host->nic, &flow, mad));
	memcpy(flow.src, names[DUO_A][DUO_GID_IPV4], 16);
	memcpy(flow.dst, names[DUO_B][DUO_GID_IPV4], 16);
	assert_true(nic_mad_send(s.a->host->nic, &flow, mad));
	duo_idle(s.duo);
	assert_true(nic_mad_take(s.b->host->nic, &flow, mad));
	assert_memory_equal(flow.src, names[DUO_A][DUO_GID_IPV4], 16);
	sim_end(&s);
}

/* B's queue pair keeps its peer, and the name that the peer had; A, whose own address has none, has no GID. */
TEST(connected_queue_pairs_outlive_their_names)
{
	struct nic_gid own;
	struct flow f;
	struct sim s;

	spoken = PROTOCOL_VEROCE;
	s = start(QPT_RC, DUO_GID_IPV4, both_have_it);
	drop_lines_of_a();
	write_arrives(&s, 1);
	expect_peer(s.b, names[DUO_A][DUO_GID_IPV4]);
	expect_peer(s.a, names[DUO_B][DUO_GID_IPV4]);
	assert_int_equal(nic_gid(s.a->host->nic, DUO_GID_IPV4, &own), 0);
	assert_memory_equal(own.raw, (uint8_t[16]){0}, 16);
	assert_int_equal(resolve(&s, names[DUO_B][DUO_GID_IPV4], &f), -EINVAL);
	sim_end(&s);
}

/* Its name is at another host from now on. */
TEST(a_name_that_moves_is_found_at_its_new_address)
{
	struct gid_row row = {.underlay = {[10] = 0xff, 0xff, 10, 0, 0, NEW_HOST}};
	struct flow f;
	struct sim s;

	spoken = PROTOCOL_ROCEV2;
	s = start(QPT_RC, DUO_GID_IPV4, both_have_it);
	memcpy(row.vgid, names[DUO_B][DUO_GID_IPV4], 16);
	for (int i = 0; i < ROWS; i++)
		if (!gid_row_by_vgid(&rows[i], &row))
			rows[i] = row;
	by_underlay[ROWS] = row;
	order(ROWS, ROWS + 1);
	assert_int_equal(resolve(&s, row.vgid, &f), 0);
	assert_memory_equal(f.dst, row.underlay, 16);
	write_arrives(&s, 1);
	expect_peer(s.a, names[DUO_B][DUO_GID_IPV4]);
	sim_end(&s);
}
