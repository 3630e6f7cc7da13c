/* SPDX-License-Identifier: BSD-2-Clause */
/* A fabric as a manager meets it: two adapters at a switch, asked and set by MADs alone. */
#include <errno.h>

#include "base/byteorder.h"
#include "fabric/fabric.h"
#include "support/test.h"
#include "wire/lrh.h"
#include "wire/notice.h"

static const char pair[] = "Switch 4 \"leaf\" # what is behind is ignored\n[1] \"a\"[1]\n[2] \"b\"[2]\n\n"
			   "Hca 1 \"a\"\n[1] \"leaf\"[1]\n\nHca 2 \"b\"\n[2](0x12ab) \"leaf\"[2]\n";

enum { LEAF, A, B, SA_CLASS = 3, PM_CLASS = 4 };

static struct fabric f;

static int setup(void **state)
{
	char why[128];

	return fabric_read(&f, pair, sizeof(pair) - 1, why, sizeof(why));
}

static int teardown(void **state)
{
	fabric_free(&f);
	return 0;
}

/* From a's adapter along that path, "" being a itself. */
static enum fabric_end ask(struct smp *s, uint8_t method, uint16_t attribute, uint32_t modifier, const char *path)
{
	struct fabric_mad m = {.node = A};
	enum fabric_end end;

	s->mad = (struct mad){.base_version = 1,
			      .mgmt_class = SMP_CLASS_DIRECTED,
			      .class_version = 1,
			      .method = method,
			      .tid = 0x1234,
			      .attribute = attribute,
			      .modifier = modifier};
	s->d = false;
	s->hop_pointer = 0;
	s->hop_count = (uint8_t)strlen(path);
	memset(s->back, 0, sizeof(s->back));
	for (size_t i = 0; path[i]; i++)
		s->initial[i + 1] = (uint8_t)(path[i] - '0');
	smp_encode(m.bytes, s);
	end = fabric_carry(&f, &m);
	smp_decode(s, m.bytes);
	return end;
}

static void set_port(uint32_t port, uint16_t lid, uint8_t state, const char *path, uint16_t status)
{
	struct smp s = {0};
	struct port_info i;

	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_PORT_INFO, port, path), FABRIC_ANSWERED);
	port_info_decode(&i, s.data);
	i.lid = lid;
	i.state = state;
	port_info_encode(s.data, &i);
	assert_int_equal(ask(&s, MAD_METHOD_SET, SMP_PORT_INFO, port, path), FABRIC_ANSWERED);
	assert_int_equal(s.mad.status, status);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(a_directed_route_finds_the_nodes)
{
	static const struct {
		const char *path, *name;
		uint8_t type, local, back[3];
	} rows[] = {
		{"", "a", NODE_CA, 1, {0}}, {"1", "leaf", NODE_SWITCH, 1, {0, 1}}, {"12", "b", NODE_CA, 2, {0, 1, 2}}};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct smp s = {0};
		struct node_info n;

		assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_NODE_INFO, 0, rows[k].path), FABRIC_ANSWERED);
		assert_int_equal(s.mad.method, MAD_METHOD_GET_RESP);
		assert_true(s.d && s.hop_pointer == 0 && s.mad.tid == 0x1234);
		assert_memory_equal(s.back, rows[k].back, strlen(rows[k].path) + 1);
		node_info_decode(&n, s.data);
		assert_int_equal(n.type, rows[k].type);
		assert_int_equal(n.local_port, rows[k].local);
		assert_true(n.node_guid == fabric_find(&f, rows[k].name)->guid);
		assert_true(n.port_guid == n.node_guid + (n.type == NODE_CA ? n.local_port : 0));
		assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_NODE_DESCRIPTION, 0, rows[k].path), FABRIC_ANSWERED);
		assert_string_equal((char *)s.data, rows[k].name);
	}
}

CASE(a_route_through_nothing_is_lost)
{
	static const char *const paths[] = {"2", "0", "13", "10", "122", "19"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct smp s = {0};

		assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_NODE_INFO, 0, paths[i]), FABRIC_LOST);
	}
}

/* What a manager does, by hand. */
static void bring_up(void)
{
	struct smp s = {0};
	struct switch_info w;

	set_port(0, 3, PORT_NO_CHANGE, "1", 0);
	for (uint8_t to = PORT_ARMED; to <= PORT_ACTIVE; to++) {
		set_port(1, 1, to, "", 0);
		set_port(2, 2, to, "12", 0);
		set_port(1, 0, to, "1", 0);
		set_port(2, 0, to, "1", 0);
	}
	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_LINEAR_FORWARDING, 0, "1"), FABRIC_ANSWERED);
	assert_int_equal(s.data[1], FABRIC_NONE);
	s.data[1] = 1;
	s.data[2] = 2;
	s.data[3] = 0;
	assert_int_equal(ask(&s, MAD_METHOD_SET, SMP_LINEAR_FORWARDING, 0, "1"), FABRIC_ANSWERED);
	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_SWITCH_INFO, 0, "1"), FABRIC_ANSWERED);
	switch_info_decode(&w, s.data);
	assert_true(w.state_change);
	w.linear_top = 3;
	switch_info_encode(s.data, &w);
	assert_int_equal(ask(&s, MAD_METHOD_SET, SMP_SWITCH_INFO, 0, "1"), FABRIC_ANSWERED);
	assert_int_equal(s.mad.status, 0);
}

static enum fabric_end send_to(struct fabric_mad *m, uint16_t from, uint16_t lid, uint8_t class, uint8_t method)
{
	const struct mad h = {.base_version = 1,
			      .mgmt_class = class,
			      .class_version = 1,
			      .method = method,
			      .attribute = SMP_NODE_INFO};

	*m = (struct fabric_mad){.node = from, .dlid = lid, .dqp = 1};
	mad_encode(m->bytes, &h);
	return fabric_carry(&f, m);
}

CASE(tables_that_were_set_carry_packets)
{
	struct fabric_mad m;

	assert_int_equal(send_to(&m, A, 2, SA_CLASS, MAD_METHOD_GET), FABRIC_LOST);
	bring_up();
	assert_int_equal(send_to(&m, A, 2, SA_CLASS, MAD_METHOD_GET), FABRIC_DELIVERED);
	assert_true(m.node == B && m.port == 2);
	assert_int_equal(send_to(&m, B, 1, SA_CLASS, MAD_METHOD_GET), FABRIC_DELIVERED);
	assert_true(m.node == A && m.port == 1);
	assert_int_equal(send_to(&m, A, 1, SA_CLASS, MAD_METHOD_GET), FABRIC_DELIVERED);
	assert_int_equal(m.node, A);
	assert_int_equal(send_to(&m, A, 3, SMP_CLASS_LID, MAD_METHOD_GET), FABRIC_ANSWERED);
	/* Nobody is at a switch, no LID 4, and a table may send a packet back for ever. */
	assert_int_equal(send_to(&m, A, 3, SA_CLASS, MAD_METHOD_GET), FABRIC_LOST);
	assert_int_equal(send_to(&m, A, 4, SA_CLASS, MAD_METHOD_GET), FABRIC_LOST);
	assert_int_equal(send_to(&m, A, 0, SA_CLASS, MAD_METHOD_GET), FABRIC_LOST);
	f.nodes[LEAF].forwarding[2] = 1;
	assert_int_equal(send_to(&m, A, 2, SA_CLASS, MAD_METHOD_GET), FABRIC_LOST);
}

/* IBTA 7.2.7: data waits for Active, management does not; and a link that goes down begins anew at
 * both ends. */
CASE(ports_come_up_in_order)
{
	struct fabric_mad m;

	set_port(1, 1, PORT_ACTIVE, "", MAD_STATUS_BAD_VALUE);
	bring_up();
	set_port(1, 1, PORT_INIT, "", MAD_STATUS_BAD_VALUE);
	set_port(2, 0, PORT_DOWN, "1", 0);
	assert_int_equal(f.nodes[LEAF].ports[2].info.state, PORT_INIT);
	assert_int_equal(f.nodes[B].ports[2].info.state, PORT_INIT);
	assert_int_equal(send_to(&m, A, 2, SA_CLASS, MAD_METHOD_GET), FABRIC_LOST);
	assert_int_equal(send_to(&m, A, 2, SMP_CLASS_LID, MAD_METHOD_GET), FABRIC_ANSWERED);
}

/* What the switch has to say to a manager at a, which it knows. */
static void expect_trap(enum notice_trap number)
{
	struct fabric_mad m;

	assert_true(fabric_trap_next(&f, &m));
	assert_int_equal(m.node, A);
	assert_true(m.bytes[1] == SMP_CLASS_LID && m.bytes[3] == MAD_METHOD_TRAP &&
		    get_be16(m.bytes + 16) == SMP_NOTICE);
	assert_int_equal(get_be16(m.bytes + 64 + 4), number);
	assert_false(fabric_is_request(m.bytes));
}

static void expect_no_trap(void)
{
	struct fabric_mad m;

	assert_false(fabric_trap_next(&f, &m));
}

static void know_manager_at_a(void)
{
	f.nodes[A].is_sm = true;
	f.nodes[LEAF].ports[0].info.sm_lid = f.nodes[B].ports[2].info.sm_lid = 1;
}

static void set_phys(uint32_t port, uint8_t state, uint8_t phys, const char *path, uint16_t status)
{
	struct smp s = {0};
	struct port_info i;

	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_PORT_INFO, port, path), FABRIC_ANSWERED);
	port_info_decode(&i, s.data);
	i.state = state;
	i.phys_state = phys;
	port_info_encode(s.data, &i);
	assert_int_equal(ask(&s, MAD_METHOD_SET, SMP_PORT_INFO, port, path), FABRIC_ANSWERED);
	assert_int_equal(s.mad.status, status);
}

static void expect_link(uint8_t state, uint8_t leaf_phys, uint8_t b_phys)
{
	const struct port_info *leaf = &f.nodes[LEAF].ports[2].info, *b = &f.nodes[B].ports[2].info;

	assert_true(leaf->state == state && b->state == state);
	assert_int_equal(leaf->phys_state, leaf_phys);
	assert_int_equal(b->phys_state, b_phys);
}

/* IBTA 14.2.5.6: a disabled port takes its link down, until it is enabled; the manager is told of
 * both. */
CASE(a_disabled_port_carries_nothing_and_its_manager_is_told)
{
	struct fabric_mad m;
	struct smp s = {0};

	bring_up();
	know_manager_at_a();
	f.nodes[LEAF].info.state_change = false;
	expect_no_trap();
	set_phys(2, PORT_NO_CHANGE, PORT_PHYS_POLLING, "1", 0); /* it is up */
	expect_no_trap();
	set_phys(0, PORT_DOWN, PORT_PHYS_DISABLED, "1", MAD_STATUS_BAD_VALUE);
	expect_link(PORT_ACTIVE, PORT_PHYS_LINK_UP, PORT_PHYS_LINK_UP);
	set_phys(2, PORT_ACTIVE, PORT_PHYS_DISABLED, "1", 0); /* as ibportstate does it */
	expect_link(PORT_DOWN, PORT_PHYS_DISABLED, PORT_PHYS_POLLING);
	assert_true(f.nodes[LEAF].info.state_change);
	expect_trap(NOTICE_LINK_STATE);
	expect_no_trap();
	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_NODE_INFO, 0, "12"), FABRIC_LOST);
	assert_int_equal(send_to(&m, A, 2, SMP_CLASS_LID, MAD_METHOD_GET), FABRIC_LOST);
	assert_int_equal(f.nodes[LEAF].ports[2].counters[COUNT_LINKS_DOWNED], 1);
	assert_int_equal(f.nodes[B].ports[2].counters[COUNT_LINKS_DOWNED], 1);

	set_phys(2, PORT_DOWN, 0, "1", 0); /* it stays disabled */
	expect_link(PORT_DOWN, PORT_PHYS_DISABLED, PORT_PHYS_POLLING);
	expect_no_trap();
	set_phys(2, PORT_NO_CHANGE, PORT_PHYS_POLLING, "1", 0);
	expect_link(PORT_INIT, PORT_PHYS_LINK_UP, PORT_PHYS_LINK_UP);
	expect_trap(NOTICE_LINK_STATE);
	assert_int_equal(f.nodes[LEAF].ports[2].counters[COUNT_LINKS_DOWNED], 1);
	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_NODE_INFO, 0, "12"), FABRIC_ANSWERED);
}

CASE(a_link_with_one_end_disabled_stays_down)
{
	bring_up();
	f.nodes[B].ports[2].info.phys_state = PORT_PHYS_DISABLED;
	set_phys(2, PORT_DOWN, PORT_PHYS_POLLING, "1", 0);
	expect_link(PORT_DOWN, PORT_PHYS_POLLING, PORT_PHYS_DISABLED);
	set_phys(3, PORT_DOWN, PORT_PHYS_DISABLED, "1", 0); /* a port without a cable */
	assert_int_equal(f.nodes[LEAF].ports[3].info.phys_state, PORT_PHYS_DISABLED);
}

CASE(traps_without_a_manager_or_a_way_are_lost)
{
	bring_up();
	set_phys(2, PORT_DOWN, 0, "1", 0);
	expect_no_trap(); /* nobody has told the switch where its manager is */
	know_manager_at_a();
	set_phys(2, PORT_DOWN, 0, "1", 0);
	f.nodes[LEAF].ports[1].info.phys_state = PORT_PHYS_DISABLED; /* the way to it */
	expect_no_trap();
	assert_int_equal(f.trap_count, 0);
}

CASE(values_out_of_range_change_nothing)
{
	struct smp s = {0};

	set_port(1, 0xc000, PORT_NO_CHANGE, "", MAD_STATUS_BAD_VALUE);
	assert_int_equal(f.nodes[A].ports[1].info.lid, 0);
	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_PORT_INFO, 5, "1"), FABRIC_ANSWERED);
	assert_int_equal(s.mad.status, MAD_STATUS_BAD_VALUE);
	assert_int_equal(ask(&s, MAD_METHOD_SET, SMP_LINEAR_FORWARDING, FABRIC_LIDS / 64, "1"), FABRIC_ANSWERED);
	assert_int_equal(s.mad.status, MAD_STATUS_BAD_VALUE);
	assert_int_equal(ask(&s, MAD_METHOD_SET, SMP_LINEAR_FORWARDING, 0, ""), FABRIC_ANSWERED);
	assert_int_equal(s.mad.status, MAD_STATUS_BAD_ATTRIBUTE);
	assert_int_equal(ask(&s, MAD_METHOD_SET, SMP_NODE_INFO, 0, ""), FABRIC_ANSWERED);
	assert_int_equal(s.mad.status, MAD_STATUS_BAD_ATTRIBUTE);
	assert_int_equal(ask(&s, MAD_METHOD_GET, 0x99, 0, ""), FABRIC_ANSWERED);
	assert_int_equal(s.mad.status, MAD_STATUS_BAD_ATTRIBUTE);
	assert_int_equal(ask(&s, MAD_METHOD_TRAP, SMP_NOTICE, 0, "1"), FABRIC_LOST);
}

/* IBTA 14.2.4: violations are counted. */
CASE(a_management_key_protects)
{
	struct smp s = {0};

	f.nodes[A].ports[1].info.mkey = 7;
	f.nodes[A].ports[1].info.mkey_protect = 1;
	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_PORT_INFO, 1, ""), FABRIC_ANSWERED);
	assert_int_equal(ask(&s, MAD_METHOD_SET, SMP_PORT_INFO, 1, ""), FABRIC_LOST);
	f.nodes[A].ports[1].info.mkey_protect = 2;
	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_PORT_INFO, 1, ""), FABRIC_LOST);
	assert_int_equal(f.nodes[A].ports[1].info.mkey_violations, 2);
	s.mkey = 7;
	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_PORT_INFO, 1, ""), FABRIC_ANSWERED);
}

CASE(counters_count_packets)
{
	struct fabric_mad m = {.node = A, .dlid = 3};
	const struct mad h = {.base_version = 1,
			      .mgmt_class = PM_CLASS,
			      .class_version = 1,
			      .method = MAD_METHOD_GET,
			      .attribute = 0x12};
	uint64_t before;

	bring_up();
	before = f.nodes[LEAF].ports[1].counters[COUNT_RCV_PACKETS];
	mad_encode(m.bytes, &h);
	m.bytes[65] = 1; /* PortSelect */
	assert_int_equal(fabric_carry(&f, &m), FABRIC_ANSWERED);
	assert_int_equal(m.bytes[3], MAD_METHOD_GET_RESP);
	assert_int_equal(get_be32(m.bytes + 64 + 36), before + 1);
	assert_int_equal(get_be32(m.bytes + 64 + 28), (before + 1) * 72);
}

/* a asks b's counters, and gets an answer or none. */
static void ask_b(enum fabric_end end)
{
	struct fabric_mad m = {.node = A, .dlid = 2};
	const struct mad h = {.base_version = 1,
			      .mgmt_class = PM_CLASS,
			      .class_version = 1,
			      .method = MAD_METHOD_GET,
			      .attribute = 0x12};

	mad_encode(m.bytes, &h);
	m.bytes[65] = 2; /* PortSelect */
	assert_int_equal(fabric_carry(&f, &m), end);
}

CASE(another_partition_is_dropped_and_counted)
{
	static const struct {
		uint16_t a, b;
		bool meet;
	} rows[] = {{0xffff, 0xffff, true},  {0xffff, 0x7fff, true}, {0x7fff, 0xffff, true},  {0x7fff, 0x7fff, false},
		    {0x8001, 0xffff, false}, {0x8001, 0x0001, true}, {0x8000, 0x8000, false}, {0x0001, 0x0001, false}};
	struct port_info *b = &f.nodes[B].ports[2].info;
	uint16_t violations = 0;

	bring_up();
	know_manager_at_a();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		f.nodes[A].ports[1].pkeys[0] = rows[i].a;
		f.nodes[B].ports[2].pkeys[3] = rows[i].b;
		f.nodes[B].ports[2].pkeys[0] = 0;
		ask_b(rows[i].meet ? FABRIC_ANSWERED : FABRIC_LOST);
		violations = (uint16_t)(violations + !rows[i].meet);
		assert_int_equal(b->pkey_violations, violations);
		if (!rows[i].meet)
			expect_trap(NOTICE_BAD_PKEY);
		expect_no_trap();
	}
	b->pkey_violations = UINT16_MAX;
	ask_b(FABRIC_LOST);
	assert_int_equal(b->pkey_violations, UINT16_MAX);
}

CASE(a_switch_refuses_other_partitions_where_it_is_told_to)
{
	struct fabric_port *from_a = &f.nodes[LEAF].ports[1], *to_b = &f.nodes[LEAF].ports[2];
	struct fabric_mad m = {.node = A, .dlid = 3};
	const struct mad set = {.base_version = 1,
				.mgmt_class = PM_CLASS,
				.class_version = 1,
				.method = MAD_METHOD_SET,
				.attribute = 0x12};

	bring_up();
	know_manager_at_a();
	from_a->pkeys[0] = to_b->pkeys[0] = 0x8001;
	ask_b(FABRIC_ANSWERED); /* it does not look */
	from_a->info.enforcement = 8;
	ask_b(FABRIC_LOST);
	assert_int_equal(from_a->counters[COUNT_RCV_CONSTRAINT_ERRORS], 1);
	expect_trap(NOTICE_SWITCH_PKEY);
	from_a->info.enforcement = 4; /* that way is the other one */
	to_b->info.enforcement = 4;
	ask_b(FABRIC_LOST);
	assert_int_equal(to_b->counters[COUNT_XMIT_CONSTRAINT_ERRORS], 1);
	expect_trap(NOTICE_SWITCH_PKEY);
	expect_no_trap();
	assert_int_equal(from_a->counters[COUNT_RELAY_ERRORS], 0);
	assert_int_equal(f.nodes[B].ports[2].info.pkey_violations, 0);

	/* Clearing answers with what is left. */
	to_b->pkeys[0] = from_a->pkeys[0] = 0xffff;
	mad_encode(m.bytes, &set);
	m.bytes[65] = 2;
	m.bytes[66] = 0;
	m.bytes[67] = 0;
	assert_int_equal(fabric_carry(&f, &m), FABRIC_ANSWERED);
	assert_int_equal(m.bytes[64 + 16], 1);
	assert_int_equal(m.bytes[64 + 17], 0);
	mad_encode(m.bytes, &set);
	m.bytes[65] = 2;
	m.bytes[66] = 0;
	m.bytes[67] = 1 << 7;
	assert_int_equal(fabric_carry(&f, &m), FABRIC_ANSWERED);
	assert_int_equal(to_b->counters[COUNT_XMIT_CONSTRAINT_ERRORS], 0);
	ask_b(FABRIC_ANSWERED);
}

static void fault(const char *text, int rc)
{
	char why[128] = "";

	assert_int_equal(fabric_fault_set(&f, text, why, sizeof(why)), rc);
	assert_true(!rc == !why[0]);
}

/* An attribute of performance management at a port of the switch, which a asks for. */
static void ask_leaf(struct fabric_mad *m, uint16_t attribute, uint8_t port)
{
	const struct mad h = {.base_version = 1,
			      .mgmt_class = PM_CLASS,
			      .class_version = 1,
			      .method = MAD_METHOD_GET,
			      .attribute = attribute};

	*m = (struct fabric_mad){.node = A, .slid = 1, .dlid = 3};
	mad_encode(m->bytes, &h);
	m->bytes[65] = port;
	assert_int_equal(fabric_carry(&f, m), FABRIC_ANSWERED);
}

/* Each fault of a packet counts where the standard says, in PortCounters and in the details.
 * Offsets are those of the attributes. */
CASE(a_packet_with_a_fault_is_dropped_and_counted)
{
	static const struct {
		const char *fault;
		uint8_t details_at;
	} rows[] = {{"leaf[2]=bit/2", 4},
		    {"leaf[2]=length/2", 6},
		    {"leaf[2]=version/2", 6},
		    {"leaf[2]=lane/2", 6},
		    {"leaf[2]=room/2", 8}};
	struct fabric_port *p = &f.nodes[LEAF].ports[2];

	bring_up();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fabric_mad m;

		memset(p->counters, 0, sizeof(p->counters));
		fault(rows[i].fault, 0);
		for (uint32_t k = 1; k <= 20; k++) {
			struct fabric_mad from_b = {.node = B, .slid = 2, .dlid = 3};

			from_b.bytes[1] = PM_CLASS;
			from_b.bytes[3] = MAD_METHOD_GET;
			assert_int_equal(fabric_carry(&f, &from_b), k % 2 ? FABRIC_ANSWERED : FABRIC_LOST);
		}
		ask_leaf(&m, 0x12, 2);
		assert_int_equal(get_be16(m.bytes + 64 + 8), 10);  /* PortRcvErrors */
		assert_int_equal(get_be32(m.bytes + 64 + 36), 20); /* PortRcvPkts */
		ask_leaf(&m, 0x15, 2);
		for (uint8_t at = 4; at < 16; at += 2)
			assert_int_equal(get_be16(m.bytes + 64 + at), at == rows[i].details_at ? 10 : 0);
	}
}

/* VL 15 has no credits: a packet that finds no room there is dropped and is no error (IBTA 7.9.4).
 */
CASE(an_smp_without_room_is_dropped)
{
	struct fabric_port *p = &f.nodes[LEAF].ports[1];
	struct fabric_mad m;
	struct smp s = {0};

	bring_up();
	fault("leaf[1]=room/2", 0);
	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_NODE_INFO, 0, "1"), FABRIC_ANSWERED);
	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_NODE_INFO, 0, "1"), FABRIC_LOST);
	assert_int_equal(p->counters[COUNT_RCV_ERRORS], 0);
	p->fault.kind = FAULT_NONE;
	ask_leaf(&m, 0x12, 1);
	assert_int_equal(get_be16(m.bytes + 64 + 22), 1); /* VL15Dropped */
}

/* More physical errors than LocalPhyErrors, or OverrunErrors overruns in a row, are errors of the
 * link, and the manager hears of them. */
CASE(too_many_errors_are_the_links)
{
	struct fabric_port *p = &f.nodes[LEAF].ports[2];
	static const uint8_t mad[MAD_LEN];
	const struct fabric_packet k = {.slid = 2, .dlid = 1, .sqp = 1, .dqp = 1, .pkey = 0xffff, .mad = mad};
	struct fabric_mad m;

	bring_up();
	know_manager_at_a();
	p->info.phy_errors = 3;
	p->info.overrun_errors = 2;
	for (uint32_t i = 1; i <= 8; i++) {
		p->fault = (struct fabric_fault){.kind = FAULT_BIT, .every = 1, .received = i};
		assert_false(fabric_receive(&f, &f.nodes[LEAF], 2, &k));
		assert_int_equal(p->counters[COUNT_INTEGRITY_ERRORS], i / 4);
		if (i % 4 == 0)
			expect_trap(NOTICE_LINK_INTEGRITY);
		expect_no_trap();
	}
	/* A good packet between bad ones keeps the count down. */
	for (uint32_t i = 1; i <= 20; i++) {
		p->fault = (struct fabric_fault){.kind = FAULT_BIT, .every = 2, .received = i};
		assert_int_equal(fabric_receive(&f, &f.nodes[LEAF], 2, &k), i % 2 == 0);
		p->fault.kind = FAULT_ROOM;
		p->fault.every = 3;
		fabric_receive(&f, &f.nodes[LEAF], 2, &k);
	}
	expect_no_trap();
	p->fault = (struct fabric_fault){.kind = FAULT_ROOM, .every = 1};
	for (uint32_t i = 1; i <= 4; i++)
		assert_false(fabric_receive(&f, &f.nodes[LEAF], 2, &k));
	expect_trap(NOTICE_OVERRUN);
	p->fault.kind = FAULT_NONE;
	ask_leaf(&m, 0x12, 2);
	assert_int_equal(m.bytes[64 + 6], 2);     /* LinkErrorRecoveryCounter */
	assert_int_equal(m.bytes[64 + 19], 0x22); /* LocalLinkIntegrityErrors, ExcessiveBufferOverrunErrors */
}

CASE(what_a_switch_cannot_relay_is_counted)
{
	struct fabric_node *leaf = &f.nodes[LEAF];
	struct fabric_mad m;

	bring_up();
	ask_b(FABRIC_ANSWERED);
	leaf->sl_to_vl[1 * 5 + 2][0] = 0xf1; /* SL 0 from port 1 to port 2: VL 15 */
	ask_b(FABRIC_LOST);
	leaf->sl_to_vl[1 * 5 + 2][0] = 0x01;
	leaf->forwarding[2] = 1;
	ask_b(FABRIC_LOST);
	leaf->forwarding[2] = FABRIC_NONE;
	ask_b(FABRIC_LOST);
	leaf->forwarding[2] = 3; /* there is no cable */
	ask_b(FABRIC_LOST);
	ask_leaf(&m, 0x15, 1);
	assert_int_equal(get_be16(m.bytes + 64 + 10),
			 1); /* PortDLIDMappingErrors, PortVLMappingErrors, PortLoopingErrors */
	assert_int_equal(get_be16(m.bytes + 64 + 12), 1);
	assert_int_equal(get_be16(m.bytes + 64 + 14), 1);
	ask_leaf(&m, 0x12, 1);
	assert_int_equal(get_be16(m.bytes + 64 + 12), 3); /* PortRcvSwitchRelayErrors */
	ask_leaf(&m, 0x12, 3);
	assert_int_equal(get_be16(m.bytes + 64 + 14), 1); /* PortXmitDiscards */
	ask_leaf(&m, 0x16, 3);
	assert_int_equal(get_be16(m.bytes + 64 + 4), 1); /* PortInactiveDiscards */
}

CASE(a_fault_names_a_port_with_a_link)
{
	static const char *const wrong[] = {"",
					    "leaf",
					    "leaf[1]",
					    "leaf[1]=bit",
					    "leaf[1]=bit/1",
					    "leaf[1]=bit/0",
					    "leaf[1]=bit/x",
					    "leaf[1]=bit/2x",
					    "leaf[3]=bit/2",
					    "leaf[0]=bit/2",
					    "leaf[9]=bit/2",
					    "nobody[1]=bit/2",
					    "leaf[1]=bits/2",
					    "leaf[1]=/2",
					    "leaf[1x]=bit/2",
					    "=[]/",
					    "[1]=bit/2",
					    "leaf[1] =bit/2"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		fault(wrong[i], -EINVAL);
	fault("b[2]=lane/1000", 0);
	assert_int_equal(f.nodes[B].ports[2].fault.kind, FAULT_LANE);
	assert_int_equal(f.nodes[B].ports[2].fault.every, 1000);
}

CASE(a_manager_gets_what_is_for_managers)
{
	struct smp s = {0};

	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_SM_INFO, 0, "12"), FABRIC_LOST);
	f.nodes[B].is_sm = true;
	assert_int_equal(ask(&s, MAD_METHOD_GET, SMP_SM_INFO, 0, "12"), FABRIC_DELIVERED);
	assert_int_equal(s.hop_pointer, 3);
}

TEST(wrong_topologies_are_refused_with_a_line)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{"", "no nodes"},
		{"[1] \"a\"[1]\n", "line 1: a port before"},
		{"Hca 1 \"a\"\n[2] \"b\"[1]\n", "line 2: the node has no port 2"},
		{"Hca 1 \"a\"\n[1] \"b\"[1]\n", "line 2: there is no port 1 of \"b\""},
		{"Hca 1 \"a\"\nHca 1 \"a\"\n", "line 2: a second node"},
		{"Hca 0 \"a\"\n", "line 1: 0 ports"},
		{"Hca 64 \"a\"\n", "line 1: 64 ports"},
		{"Hca 1 \"a\"\n[1] \"a\"[1]\n", "line 2: a link from a port to itself"},
		{"Hca 2 \"a\"\n[1] \"b\"[1]\n[2] \"b\"[1]\nHca 1 \"b\"\n", "line 3: another link"},
		{"Router 1 \"a\"\n", "line 1: neither"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fabric g;
		char why[128] = "";

		assert_int_equal(fabric_read(&g, rows[i].text, strlen(rows[i].text), why, sizeof(why)), -EINVAL);
		assert_non_null(strstr(why, rows[i].words));
	}
}
