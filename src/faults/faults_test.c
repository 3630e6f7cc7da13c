/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "base/byteorder.h"
#include "faults/faults.h"
#include "support/test.h"
#include "wire/opcode.h"

enum { MS = 1000000, PEER = 2, QPN = 0x111, DEST = 0x222 };

#define START UINT64_C(5000000000)

static void *get(void *ctx, size_t bytes)
{
	return calloc(1, bytes);
}

static void put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

static const struct alloc heap = {.get = get, .put = put};

struct rig {
	struct faults *f;
	struct fault_log log;
	uint64_t now_ns;
	uint32_t psn;
};

static void address(uint8_t gid[16], uint8_t last)
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	gid[12] = 10;
	gid[15] = last;
}

static void add(struct rig *r, const char *text)
{
	static struct fault_script s;
	char why[FAULT_WHY_BYTES];

	fault_script_init(&s);
	if (fault_script_read(&s, "test", text, strlen(text), false, &(struct fault_host){.devices = 2}, why,
			      sizeof(why)))
		fail_msg("%s: %s", text, why);
	assert_int_equal(faults_add(r->f, &s, r->now_ns), 0);
}

/* Two QPs of one device: numbers 1 and 2, connected to DEST and DEST + 1 at 10.0.0.2. */
static void rig_open(struct rig *r, const char *text)
{
	uint8_t peer[16];

	memset(r, 0, sizeof(*r));
	r->now_ns = START;
	r->f = faults_new(&heap, &r->log, 0, START);
	address(peer, PEER);
	for (uint32_t i = 0; i < 2; i++) {
		faults_qp_made(r->f, i + 1, QPN + i);
		faults_qp_peer(r->f, QPN + i, peer, DEST + i);
	}
	add(r, text);
}

static void rig_close(struct rig *r)
{
	faults_free(r->f);
}

static struct fault_verdict packet_of(struct rig *r, bool out, uint32_t qp, uint8_t opcode, uint32_t psn, uint32_t len)
{
	static uint8_t bytes[2000];
	struct fault_verdict v;
	struct flow flow = {0};
	struct pkt p = {.data = bytes, .flow = &flow, .len = len};

	address(out ? flow.dst : flow.src, PEER);
	address(out ? flow.src : flow.dst, 1);
	memset(bytes, 0, sizeof(bytes));
	bytes[0] = opcode;
	put_be32(bytes + 4, (out ? DEST : QPN) + qp - 1);
	put_be32(bytes + 8, psn);
	faults_packet(r->f, &p, out, r->now_ns, &v);
	return v;
}

static struct fault_verdict packet(struct rig *r, bool out, uint32_t qp)
{
	return packet_of(r, out, qp, OP_RC_SEND_ONLY, r->psn++, 100);
}

/* A bit for each of so many packets that is dropped, the first one the lowest. */
static uint32_t dropped(struct rig *r, bool out, uint32_t qp, unsigned count)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < count; i++)
		mask |= (uint32_t)packet(r, out, qp).drop << i;
	return mask;
}

static enum fault_action deed_due(struct rig *r, struct fault_deed *d)
{
	if (!faults_next(r->f, r->now_ns, d))
		return FAULT_ACTIONS;
	faults_done(r->f, d, FAULT_DONE, r->now_ns);
	return d->action;
}

static const struct fault_record *last(const struct rig *r)
{
	return &r->log.records[(r->log.record_count - 1) % FAULT_RECORDS_MAX];
}

TEST(a_packet_is_counted_for_each_queue_pair)
{
	struct rig r;

	rig_open(&r, "packet 3 of each qp out drop");
	assert_int_equal(dropped(&r, true, 1, 5), 4);
	assert_int_equal(dropped(&r, false, 1, 5), 0);
	assert_int_equal(dropped(&r, true, 2, 5), 4);
	assert_int_equal(r.log.record_count, 2);
	assert_int_equal(r.log.records[1].qp, 2);
	assert_int_equal(r.log.rules[0].fired, 2);
	rig_close(&r);
	rig_open(&r, "packet 3 of qp 2 drop");
	assert_int_equal(dropped(&r, true, 1, 9), 0);
	assert_int_equal(dropped(&r, true, 2, 9), 4);
	rig_close(&r);
}

TEST(a_rule_acts_once_unless_it_says_otherwise)
{
	static const struct {
		const char *text;
		uint32_t mask;
	} rows[] = {
		{"drop", 1},
		{"each drop", 0xff},
		{"packet 2 drop", 2},
		{"after 3 packets drop", 8},
		{"after 3 packets each drop", 0xf8},
		{"after 300 bytes drop", 8},
		{"every 3 packets drop", 8 | 64},
		{"each qp 2 drop", 0},
		{"each qp 0x111 drop", 0xff},
		{"chance 100% drop", 0xff},
		{"chance 0 drop", 0},
		{"each peer 10.0.0.2 drop", 0xff},
		{"each peer 10.0.0.3 drop", 0},
		{"verbena1 each drop", 0},
		{"drop for 1s", 0xff},
		{"at 1s each drop", 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig r;

		rig_open(&r, rows[i].text);
		if (dropped(&r, true, 1, 8) != rows[i].mask)
			fail_msg("%s", rows[i].text);
		rig_close(&r);
	}
}

TEST(conditions_choose_packets)
{
	struct rig r;

	rig_open(&r, "each when opcode SEND_ONLY and size above 99 drop");
	assert_true(packet_of(&r, true, 1, OP_RC_SEND_ONLY, 1, 100).drop);
	assert_false(packet_of(&r, true, 1, OP_RC_SEND_ONLY, 1, 99).drop);
	assert_false(packet_of(&r, true, 1, OP_RC_SEND_LAST, 1, 100).drop);
	assert_true(packet_of(&r, false, 1, OP_UC_SEND_ONLY, 1, 100).drop);
	rig_close(&r);
	rig_open(&r, "each when last and size below 50 drop");
	assert_true(packet_of(&r, true, 1, OP_RC_SEND_LAST, 1, 49).drop);
	assert_true(packet_of(&r, true, 1, OP_RC_SEND_ONLY, 1, 49).drop);
	assert_false(packet_of(&r, true, 1, OP_RC_SEND_FIRST, 1, 49).drop);
	rig_close(&r);
	rig_open(&r, "each when retransmitted out drop");
	assert_false(packet_of(&r, true, 1, OP_RC_SEND_ONLY, 0xffffff, 100).drop);
	assert_false(packet_of(&r, true, 1, OP_RC_SEND_ONLY, 0, 100).drop);
	assert_true(packet_of(&r, true, 1, OP_RC_SEND_ONLY, 0xffffff, 100).drop);
	assert_false(packet_of(&r, true, 2, OP_RC_SEND_ONLY, 0xffffff, 100).drop);
	assert_false(packet_of(&r, true, 1, OP_RC_ACK, 0, 100).drop);
	rig_close(&r);
}

TEST(verdicts_of_several_rules_add_up)
{
	struct fault_verdict v;
	struct rig r;

	rig_open(&r, "each delay 5ms\neach delay 2ms\npacket 1 mark\npacket 1 double\npacket 1 swap\npacket 1 corrupt");
	v = packet(&r, true, 1);
	assert_true(v.mark && v.doubled && v.corrupt && !v.drop);
	assert_int_equal(v.late, 1);
	assert_int_equal(v.delay_ns, 7 * MS);
	v = packet(&r, true, 1);
	assert_true(!v.mark && !v.doubled && !v.corrupt && !v.late);
	assert_int_equal(v.delay_ns, 7 * MS);
	rig_close(&r);
}

TEST(time_opens_gates_and_ends_what_they_let_through)
{
	struct rig r;

	rig_open(&r, "at 2s each drop for 1s");
	assert_int_equal(faults_due_ns(r.f), START + 2000 * (uint64_t)MS);
	assert_int_equal(dropped(&r, true, 1, 4), 0);
	r.now_ns = START + 2000 * (uint64_t)MS;
	assert_int_equal(dropped(&r, true, 1, 4), 15);
	assert_int_equal(faults_due_ns(r.f), START + 3000 * (uint64_t)MS);
	r.now_ns = START + 3000 * (uint64_t)MS;
	assert_int_equal(dropped(&r, true, 1, 4), 0);
	assert_int_equal(faults_due_ns(r.f), UINT64_MAX);
	rig_close(&r);
}

TEST(a_peer_falls_silent_again_and_again)
{
	struct rig r;

	rig_open(&r, "every 10s peer 10.0.0.2 silent for 500ms");
	for (unsigned i = 1; i < 4; i++) {
		r.now_ns = START + 10000 * (uint64_t)MS * i - 1;
		assert_int_equal(dropped(&r, false, 1, 2), 0);
		r.now_ns++;
		assert_int_equal(dropped(&r, false, 1, 2), 3);
		assert_int_equal(dropped(&r, true, 2, 2), 3);
		r.now_ns += 500 * (uint64_t)MS;
		assert_int_equal(dropped(&r, true, 1, 2), 0);
	}
	assert_int_equal(r.log.rules[0].fired, 3);
	assert_int_equal(last(&r)->outcome, FAULT_UNDONE);
	rig_close(&r);
}

TEST(a_link_goes_down_and_comes_up)
{
	struct fault_deed d;
	struct rig r;

	rig_open(&r, "at 2s link down for 3s");
	assert_int_equal(deed_due(&r, &d), FAULT_ACTIONS);
	r.now_ns = START + 2000 * (uint64_t)MS;
	assert_int_equal(deed_due(&r, &d), FAULT_LINK_DOWN);
	assert_false(d.undo);
	assert_int_equal(dropped(&r, true, 1, 2), 3);
	assert_true(faults_stops(r.f) && !faults_hangs(r.f));
	r.now_ns = START + 5000 * (uint64_t)MS;
	assert_int_equal(deed_due(&r, &d), FAULT_LINK_DOWN);
	assert_true(d.undo);
	assert_int_equal(dropped(&r, true, 1, 2), 0);
	assert_int_equal(r.log.record_count, 2);
	assert_int_equal(last(&r)->outcome, FAULT_UNDONE);
	rig_close(&r);
}

TEST(deeds_go_to_the_queue_pairs_that_are_named)
{
	struct fault_deed d;
	struct rig r;

	rig_open(&r, "at 1s qp each error\nat 2s qp 2 error\nat 3s qp 3 error\nat 4s qp 0x111 hang for 1s");
	r.now_ns += 1000 * (uint64_t)MS;
	assert_int_equal(deed_due(&r, &d), FAULT_QP_ERROR);
	assert_int_equal(d.qpn, QPN);
	assert_int_equal(deed_due(&r, &d), FAULT_QP_ERROR);
	assert_int_equal(d.qpn, QPN + 1);
	assert_int_equal(deed_due(&r, &d), FAULT_ACTIONS);
	r.now_ns += 1000 * (uint64_t)MS;
	assert_int_equal(deed_due(&r, &d), FAULT_QP_ERROR);
	assert_int_equal(d.qp, 2);
	r.now_ns += 1000 * (uint64_t)MS;
	assert_int_equal(deed_due(&r, &d), FAULT_ACTIONS);
	assert_int_equal(last(&r)->outcome, FAULT_NO_QP);
	r.now_ns += 1000 * (uint64_t)MS;
	assert_int_equal(deed_due(&r, &d), FAULT_QP_HANG);
	assert_int_equal(dropped(&r, true, 1, 2), 3);
	assert_int_equal(dropped(&r, true, 2, 2), 0);
	faults_qp_gone(r.f, QPN);
	r.now_ns += 1000 * (uint64_t)MS;
	assert_int_equal(deed_due(&r, &d), FAULT_ACTIONS);
	rig_close(&r);
}

TEST(any_is_drawn_by_the_seed)
{
	uint32_t first = 0, drawn[2] = {0};

	for (unsigned i = 0; i < 40; i++) {
		char text[64];
		struct fault_deed d;
		struct rig r;

		snprintf(text, sizeof(text), "seed %u\nqp any error", i / 2);
		rig_open(&r, text);
		assert_int_equal(deed_due(&r, &d), FAULT_QP_ERROR);
		if (i % 2)
			assert_int_equal(d.qp, first);
		first = d.qp;
		drawn[d.qp - 1]++;
		rig_close(&r);
	}
	assert_true(drawn[0] && drawn[1]);
}

TEST(requests_fail_when_posted_or_complete_in_error)
{
	struct fault_wr w;
	struct rig r;

	rig_open(&r, "after 2 wr qp any complete IBV_WC_RETRY_EXC_ERR\nwr 2 of qp 2 fail EAGAIN");
	assert_int_equal(faults_wr(r.f, QPN, r.now_ns).status, 0);
	assert_int_equal(faults_wr(r.f, QPN, r.now_ns).status, 0);
	w = faults_wr(r.f, QPN + 1, r.now_ns);
	assert_int_equal(w.status, 12);
	assert_int_equal(w.err, 0);
	assert_int_equal(last(&r)->qp, 2);
	w = faults_wr(r.f, QPN + 1, r.now_ns);
	assert_int_equal(w.status, 0);
	assert_int_equal(w.err, EAGAIN);
	assert_int_equal(faults_wr(r.f, QPN + 1, r.now_ns).err, 0);
	rig_close(&r);
}

TEST(a_completion_waits_for_a_request)
{
	struct fault_deed d;
	struct rig r;

	rig_open(&r, "at 1s qp 2 complete IBV_WC_GENERAL_ERR");
	r.now_ns += 1000 * (uint64_t)MS;
	assert_true(faults_next(r.f, r.now_ns, &d));
	assert_int_equal(d.action, FAULT_COMPLETE);
	faults_wait_wr(r.f, &d);
	faults_done(r.f, &d, FAULT_WAITS, r.now_ns);
	assert_int_equal(faults_wr(r.f, QPN, r.now_ns).status, 0);
	assert_int_equal(faults_wr(r.f, QPN + 1, r.now_ns).status, 21);
	assert_int_equal(faults_wr(r.f, QPN + 1, r.now_ns).status, 0);
	rig_close(&r);
}

TEST(calls_are_counted_by_name)
{
	struct rig r;

	rig_open(&r, "call ibv_create_qp 3 fail ENOMEM\ncall ibv_reg_mr every 2 fail EAGAIN");
	for (int i = 1; i < 6; i++) {
		assert_int_equal(faults_call(r.f, FAULT_CALL_create_qp, r.now_ns), i == 3 ? ENOMEM : 0);
		assert_int_equal(faults_call(r.f, FAULT_CALL_reg_mr, r.now_ns), i % 2 ? 0 : EAGAIN);
		assert_int_equal(faults_call(r.f, FAULT_CALL_alloc_pd, r.now_ns), 0);
	}
	rig_close(&r);
}

TEST(events_of_packets_and_calls_lead_to_deeds)
{
	struct fault_deed d;
	struct rig r;

	rig_open(&r, "packet 3 out link down for 1s\ncall ibv_reg_mr 2 device fatal\nwr 2 of each qp error");
	dropped(&r, true, 1, 2);
	assert_int_equal(deed_due(&r, &d), FAULT_ACTIONS);
	packet(&r, true, 1);
	assert_int_equal(faults_due_ns(r.f), 0);
	assert_int_equal(deed_due(&r, &d), FAULT_LINK_DOWN);
	for (int i = 0; i < 2; i++)
		faults_wr(r.f, QPN + 1, r.now_ns);
	assert_int_equal(deed_due(&r, &d), FAULT_QP_ERROR);
	assert_int_equal(d.qp, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(faults_call(r.f, FAULT_CALL_reg_mr, r.now_ns), 0);
	assert_int_equal(deed_due(&r, &d), FAULT_DEVICE_FATAL);
	r.now_ns += 1000 * (uint64_t)MS;
	assert_int_equal(deed_due(&r, &d), FAULT_LINK_DOWN);
	assert_true(d.undo);
	rig_close(&r);
}

TEST(the_slowest_rate_holds)
{
	struct rig r;

	rig_open(&r, "after 250 bytes rate 1Gbps for 1s\nat 500ms in rate 10Mbps");
	assert_int_equal(faults_rate_bps(r.f, true), 0);
	dropped(&r, true, 1, 3);
	assert_int_equal(faults_rate_bps(r.f, true), 1000000000);
	r.now_ns += 500 * (uint64_t)MS;
	dropped(&r, true, 1, 1);
	assert_int_equal(faults_rate_bps(r.f, true), 1000000000);
	assert_int_equal(faults_rate_bps(r.f, false), 10000000);
	r.now_ns += 500 * (uint64_t)MS;
	dropped(&r, true, 1, 1);
	assert_int_equal(faults_rate_bps(r.f, true), 0);
	rig_close(&r);
}

/* The same script and the same events give the same log, whatever the time of the events. */
TEST(counted_rules_depend_on_nothing_but_what_they_count)
{
	struct rig r[2];

	for (int i = 0; i < 2; i++) {
		rig_open(&r[i],
			 "seed 3\nchance 20% out drop\npacket 7 of each qp out corrupt\nevery 4 wr qp any complete "
			 "IBV_WC_GENERAL_ERR\ncall ibv_reg_mr every 3 fail ENOMEM");
		for (uint32_t k = 0; k < 200; k++) {
			packet(&r[i], true, 1 + k % 2);
			r[i].now_ns += i * (uint64_t)MS * k;
			faults_wr(r[i].f, QPN + k % 2, r[i].now_ns);
			faults_call(r[i].f, FAULT_CALL_reg_mr, r[i].now_ns);
		}
	}
	assert_int_equal(r[0].log.record_count, r[1].log.record_count);
	assert_true(r[0].log.record_count > 100);
	for (uint32_t k = 0; k < FAULT_RECORDS_MAX; k++)
		r[0].log.records[k].time_ns = r[1].log.records[k].time_ns = 0;
	assert_memory_equal(r[0].log.records, r[1].log.records, sizeof(r[0].log.records));
	rig_close(&r[0]);
	rig_close(&r[1]);
}

TEST(too_many_rules_are_refused_and_change_nothing)
{
	static struct fault_script s;
	struct rig r;

	rig_open(&r, "link up");
	fault_script_init(&s);
	s.count = FAULT_RULES_MAX;
	for (uint32_t i = 0; i < s.count; i++)
		s.rules[i].device = -1;
	assert_int_equal(faults_add(r.f, &s, r.now_ns), -ENOSPC);
	assert_int_equal(r.log.rule_count, 1);
	rig_close(&r);
}

TEST(many_queue_pairs_are_told_apart)
{
	enum { MANY = 5000 };
	struct rig r;

	rig_open(&r, "qp 4000 packet 1 drop");
	for (uint32_t i = 0; i < MANY; i++)
		faults_qp_made(r.f, i + 3, 0x1000 + i);
	for (uint32_t i = 0; i < MANY; i += 2)
		faults_qp_gone(r.f, 0x1000 + i);
	for (uint32_t i = 0; i < MANY; i += 2)
		faults_qp_made(r.f, MANY + i, 0x1000 + i);
	for (uint32_t i = 0; i < MANY; i++) {
		static uint8_t bytes[100];
		struct flow flow = {0};
		struct pkt p = {.data = bytes, .flow = &flow, .len = 100};
		struct fault_verdict v;

		put_be32(bytes + 4, 0x1000 + i);
		faults_packet(r.f, &p, false, r.now_ns, &v);
		assert_int_equal(v.drop, i + 3 == 4000);
	}
	rig_close(&r);
}
