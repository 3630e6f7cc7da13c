/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a receiver reports CE marks (veRoCE 10): by an acknowledgement, or by a CNP if none is due; and
 * how a sender reacts to a CNP.
 */
#include "support/test.h"
#include "veroce/veroce.h"

enum { MTU = 1024, PATH = 2, PATHS = 4, CNP_NS = 50000, CE = 3 };

static struct sim start(enum veroce_cc cc)
{
	return VEROCE_SIM(v.paths = PATHS, v.cc = cc, v.trim = true, v.rx_window = 128);
}

static int forge(struct sim *s, enum duo_side to, struct veroce_packet *p, uint32_t path, uint8_t tos)
{
	uint8_t buf[DUO_PACKET_MAX];
	struct flow flow = duo_flow(s->duo, to, DUO_GID_IPV4);
	struct pkt pkt = {.data = buf, .flow = &flow, .train = 1};

	flow.sport = (uint16_t)(DUO_SPORT_IPV4 + path);
	flow.dport = VEROCE_UDP_PORT;
	flow.tos = tos;
	p->bth.dqpn = to == DUO_A ? s->a->qpn : s->b->qpn;
	p->bth.pkey = 0xffff;
	pkt.len = veroce_encode_headers(buf, p) + ICRC_LEN;
	duo_seal(s->duo, to, &pkt);
	return duo_inject(s->duo, to, &flow, buf, pkt.len);
}

/* Nothing is acknowledged by a packet that is beyond the window. */
static void mark_beyond_the_window(struct sim *s)
{
	struct veroce_packet p = {.bth = {.opcode = OP_RC_SEND_ONLY, .psn = psn_add(s->a->opt.psn[DUO_A], 1000)},
				  .msn = 1};

	forge(s, DUO_B, &p, PATH, CE);
}

static bool mark_data(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	*fate = DUO_MARK_CE;
	return veroce_is_data(p);
}

TEST_ON(acknowledged_marks_need_no_cnp, start(VEROCE_CC_NONE))
{
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 20 * MTU, s.bbuf, 0);
	struct duo_wr r = duo_read_wr(2, s.abuf, 0, 20 * MTU, s.bbuf, 0);
	uint32_t told[DUO_SIDES] = {0};

	s.duo->script = mark_data;
	assert_true(duo_post(s.a, &w));
	assert_true(duo_post(s.a, &r));
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	for (size_t i = 0; i < s.duo->wire_count; i++) {
		const struct duo_packet *p = &s.duo->wire[i];

		told[p->from] += p->veroce && p->info->flags & F_ACK && p->bth.becn;
	}
	assert_true(told[DUO_A] && told[DUO_B]);
	assert_int_equal(duo_count(s.duo, DUO_ANY, OP_CNP), 0);
}

TEST_ON(unacknowledged_marks_are_told_by_a_cnp_now_and_then, start(VEROCE_CC_NONE))
{
	enum { STEP_NS = 1000, STEPS = 1000 };
	uint64_t began_ns = s.duo->now_ns, last_ns = 0;
	size_t n;

	for (uint32_t i = 0; i < STEPS; i++) {
		struct veroce_packet rtt = {.bth = {.opcode = OP_RTT_REQUEST}};

		mark_beyond_the_window(&s);
		forge(&s, DUO_B, &rtt, 0, 0); /* so that B has something to send all the time */
		duo_run_for(s.duo, STEP_NS);
	}
	duo_idle(s.duo);
	n = duo_count(s.duo, DUO_B, OP_CNP);
	DUO_CHECK(s.duo, n == STEPS * STEP_NS / CNP_NS || n == STEPS * STEP_NS / CNP_NS + 1);
	assert_int_equal(nic_counters(s.b->host->nic)->cnps_sent, n);
	assert_int_equal(nic_counters(s.a->host->nic)->cnps_received, n);
	assert_int_equal(duo_count(s.duo, DUO_B, OP_RC_ACK), 0);
	assert_true(duo_packet(s.duo, DUO_B, OP_CNP, 0)->sent_ns <= began_ns + STEP_NS);
	for (size_t i = 0; i < n; i++) {
		const struct duo_packet *p = duo_packet(s.duo, DUO_B, OP_CNP, i);

		assert_true(p->bth.becn);
		assert_int_equal(p->path, PATH);
		assert_int_equal(p->payload_len, CNP_RESV_LEN);
		assert_true(p->sent_ns >= last_ns + CNP_NS);
		last_ns = p->sent_ns;
	}
}

/* The last mark is not lost because another one was reported a moment before. */
TEST_ON(mark_within_the_interval_is_told_at_its_end, start(VEROCE_CC_NONE))
{
	mark_beyond_the_window(&s);
	duo_run_for(s.duo, 1000);
	mark_beyond_the_window(&s);
	duo_run_for(s.duo, CNP_NS / 2);
	assert_int_equal(duo_count(s.duo, DUO_B, OP_CNP), 1);
	duo_idle(s.duo);
	assert_int_equal(duo_count(s.duo, DUO_B, OP_CNP), 2);
	assert_int_equal(duo_packet(s.duo, DUO_B, OP_CNP, 1)->sent_ns - duo_packet(s.duo, DUO_B, OP_CNP, 0)->sent_ns,
			 CNP_NS);
}

/* The NAK for a trimmed packet stands for its mark, once. */
TEST_ON(cut_packet_that_is_marked_too_gets_its_nak_only, start(VEROCE_CC_NONE))
{
	struct veroce_packet p = {.bth = {.opcode = OP_RC_WRITE_ONLY, .psn = s.a->opt.psn[DUO_A]}, .msn = 1};

	forge(&s, DUO_B, &p, PATH, 9 << 2 | CE);
	duo_idle(s.duo);
	assert_int_equal(nic_counters(s.b->host->nic)->rx_trimmed, 1);
	assert_int_equal(nic_counters(s.b->host->nic)->naks_sent, 1);
	assert_int_equal(duo_count(s.duo, DUO_B, OP_CNP), 0);
}

/*
 * That path's window becomes smaller, and no other; a port that belongs to no path of ours stands
 * for all paths.
 */
TEST(cnp_slows_the_path_that_its_port_names)
{
	for (uint32_t port = 0; port <= PATHS; port++) {
		struct sim s = start(VEROCE_CC_SWIFT);
		struct veroce_packet cnp = {.bth = {.opcode = OP_CNP, .becn = true}};
		const struct path *path;
		uint64_t before[PATHS];

		duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 3 * MTU, s.bbuf, 0));
		duo_run_for(s.duo, 100000000);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		path = s.a->qp->veroce->pair->path;
		for (uint32_t i = 0; i < PATHS; i++)
			before[i] = path[i].cc.cwnd_bytes;
		assert_int_equal(forge(&s, DUO_A, &cnp, port, 0), 0);
		for (uint32_t i = 0; i < PATHS; i++)
			assert_int_equal(path[i].cc.cwnd_bytes < before[i], i == port || port == PATHS);
		duo_idle(s.duo);
		sim_end(&s);
	}
}

/* B only receives: every report is about packets that it never sent, so it keeps no state of paths. */
TEST_ON(who_sent_nothing_learns_nothing_of_paths, start(VEROCE_CC_SWIFT))
{
	static const struct {
		uint8_t opcode;
		enum duo_side psns; /* whose count */
		bool ts;
	} rows[] = {{OP_CNP, DUO_B, false},
		    {OP_RC_ACK, DUO_B, true},
		    {OP_RC_ACK_RSP, DUO_A, true},
		    {OP_RTT_RESPONSE, DUO_B, false},
		    {OP_SLOW_PACKET, DUO_B, false}};
	const struct pair *pair = s.b->qp->veroce->pair;

	for (uint64_t i = 0; i < 3; i++) {
		duo_must_post(s.a, duo_write_wr(i, s.abuf, 0, 3 * MTU, s.bbuf, 0));
		for (size_t k = 0; k < COUNT(rows); k++) {
			for (uint32_t path = 0; path <= PATHS; path++) {
				struct veroce_packet p = {
					.bth = {.opcode = rows[k].opcode,
						.ts = rows[k].ts,
						.psn = (s.b->opt.psn[rows[k].psns] - 1) & PSN_MASK,
						.becn = true},
					.aeth = {.syndrome = AETH_ACK | AETH_CREDIT_INVALID},
					.po = POETH_NO_INFO,
					.tse = {.path_id = (uint8_t)path, .path_ce = 9},
					.rtt = {.context = path},
				};

				forge(&s, DUO_B, &p, path, CE);
			}
		}
		duo_finish(s.a, i, WC_SUCCESS);
	}
	assert_false(pair->own);
}

/* 5.3, 2: the sender must know now, not when the ACK timer or the next packet makes one due. */
TEST(marked_packet_is_acknowledged_at_once)
{
	for (int marked = 0; marked < 2; marked++) {
		struct sim s = start(VEROCE_CC_NONE);
		const struct duo_packet *ack;

		duo_rule(s.duo, (struct duo_rule){.from = DUO_A,
						  .opcode = OP_RC_WRITE_FIRST,
						  .nth = DUO_ANY,
						  .fate = marked ? DUO_MARK_CE : DUO_PASS});
		duo_rule(s.duo,
			 (struct duo_rule){
				 .from = DUO_A, .opcode = OP_RC_WRITE_LAST, .nth = 0, .fate = DUO_DELAY, .n = 100000});
		duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 3 * MTU, s.bbuf, 0));
		duo_run_for(s.duo, DUO_LATENCY_NS + 1000);
		ack = duo_packet(s.duo, DUO_B, OP_RC_ACK, 0);
		assert_int_equal(ack != NULL, marked);
		assert_true(!ack || ack->bth.becn);
		duo_finish(s.a, 1, WC_SUCCESS);
		sim_end(&s);
	}
}
