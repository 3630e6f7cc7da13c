/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between processes of one host are cut into large packets if both ends offer it, and no
 * end takes a piece of a message for another one than it is, whatever CAPS are lost.
 */
#define TEST_OWN_MAIN
#include "veroce/veroce.h"
#include "veroce/caps.h"
#include "transport/veroce/veroce.h"

enum { MS = 1000000, LEN = 5 * CAPS_LARGE_BYTES + 77, LARGE_PACKETS = 6, OFF = 13, BYTES = 3 * LEN };

static bool places; /* struct duo's */

static struct veroce_options options(bool a, bool b)
{
	struct veroce_options v = veroce_options();

	v.same_host = true;
	v.large[DUO_A] = a;
	v.large[DUO_B] = b;
	return v;
}

struct ends {
	struct sim s;
	struct duo_buf *a, *b, *inbox;
};

static struct ends start_unconnected(const struct veroce_options *v)
{
	struct ends e;

	veroce_opt = *v;
	e.s = (struct sim){.duo = duo_create(1, veroce_tweak)};
	e.s.duo->places = places;
	e.a = duo_buf(&e.s.duo->host[DUO_A], BYTES, ALL_ACCESS);
	e.b = duo_buf(&e.s.duo->host[DUO_B], BYTES, ALL_ACCESS);
	e.inbox = duo_buf(&e.s.duo->host[DUO_B], BYTES, ALL_ACCESS);
	duo_fill(e.a, 1);
	duo_fill(e.b, 2);
	duo_fill(e.inbox, 3);
	return e;
}

static void connect(struct ends *e)
{
	struct duo_options o = duo_options();
	struct duo_pair p = duo_connect(e->s.duo, &o);

	e->s.a = p.a;
	e->s.b = p.b;
}

/* A WRITE, a SEND and a READ by A, none of which touches what another one reads. */
static void post_all(struct ends *e)
{
	struct duo_wr w[3];

	assert_true(duo_recv(e->s.b, 7, e->inbox, 0, BYTES));
	w[0] = duo_write_wr(1, e->a, 0, LEN, e->b, OFF);
	w[1] = duo_send_wr(2, e->a, 1, LEN);
	w[2] = duo_read_wr(3, e->a, LEN + OFF, LEN - OFF, e->b, LEN + OFF);
	assert_true(duo_post_chain(e->s.a, w, 3));
}

static void expect_all(struct ends *e)
{
	for (uint64_t id = 1; id <= 3; id++)
		duo_expect(e->s.duo, &e->s.a->sent, id, WC_SUCCESS);
	assert_int_equal(duo_expect(e->s.duo, &e->s.b->received, 7, WC_SUCCESS)->byte_len, LEN);
	assert_memory_equal(e->b->p + OFF, e->a->p, LEN);
	assert_memory_equal(e->inbox->p, e->a->p + 1, LEN);
	assert_memory_equal(e->a->p + LEN + OFF, e->b->p + LEN + OFF, LEN - OFF);
}

/* Packets of WRITEs, SENDs or responses that were sent, copies included. */
static uint32_t count(const struct ends *e, uint32_t flag)
{
	uint32_t n = 0;

	for (size_t i = 0; i < e->s.duo->wire_count; i++) {
		const struct duo_packet *p = &e->s.duo->wire[i];

		n += veroce_is_data(p) && p->info->flags & flag && p->payload_len;
	}
	return n;
}

TEST(both_offer_them_or_none_are_sent)
{
	for (unsigned set = 0; set < 4; set++) {
		struct veroce_options v = options(set & 1, set >> 1);
		struct ends e = start_unconnected(&v);
		uint32_t packets = set == 3 ? LARGE_PACKETS : (LEN + 1023) / 1024;

		connect(&e);
		duo_idle(e.s.duo);
		post_all(&e);
		duo_idle(e.s.duo);
		expect_all(&e);
		assert_int_equal(count(&e, F_WRITE), packets);
		assert_int_equal(count(&e, F_SEND), packets);
		assert_int_equal(e.s.a->qp->mtu, 1024);
		sim_end(&e.s);
	}
}

/* Each packet is asked for in its turn, or a row of them at a time. That which wakes the QP has no place yet. */
TEST(all_but_last_packets_have_places)
{
	const uint32_t known = 3 * (LARGE_PACKETS - 1) - 1;

	for (size_t batch = 1; batch <= 2; batch++) {
		struct veroce_options v = options(true, true);
		struct ends e = start_unconnected(&v);

		e.s.duo->places = true;
		e.s.duo->batch = batch;
		connect(&e);
		duo_idle(e.s.duo);
		post_all(&e);
		duo_idle(e.s.duo);
		expect_all(&e);
		assert_in_range(e.s.duo->placed, batch == 1 ? known : 2 * known / 3, known);
		sim_end(&e.s);
	}
}

TEST(hosts_that_differ_send_none)
{
	struct veroce_options v = options(true, true);
	struct ends e;

	v.same_host = false;
	e = start_unconnected(&v);
	connect(&e);
	post_all(&e);
	duo_idle(e.s.duo);
	expect_all(&e);
	assert_int_equal(count(&e, F_SEND), (LEN + 1023) / 1024);
	sim_end(&e.s);
}

/* Both post before either knows what the other offers, and of the CAPS those are lost that `lost` has a bit for. */
static void lose_caps(uint64_t step)
{
	for (unsigned set = 0; set < 4; set++) {
		for (uint64_t lost = 0; lost < 128; lost += step) {
			struct veroce_options v = options(set & 1, set >> 1);
			struct ends e = start_unconnected(&v);
			uint64_t mask = lost;
			struct duo_wr w;

			e.s.duo->script = lose_by_mask;
			e.s.duo->script_ctx = &mask;
			connect(&e);
			post_all(&e);
			w = duo_write_wr(9, e.b, LEN + OFF, 3000, e.a, 2 * LEN + OFF);
			duo_do(e.s.b, w);
			assert_memory_equal(e.a->p + 2 * LEN + OFF, e.b->p + LEN + OFF, 3000);
			expect_all(&e);
			sim_end(&e.s);
		}
	}
}

TEST(a_message_waits_until_both_know)
{
	lose_caps(9);
}

TEST_MANY(a_message_waits_whichever_caps_are_lost)
{
	lose_caps(1);
}

/* Each packet is lost in some run, and its copy comes late. */
TEST(lost_ones_come_again)
{
	for (uint32_t nth = 0; nth < 3 * LARGE_PACKETS; nth++) {
		struct veroce_options v = options(true, true);
		struct ends e = start_unconnected(&v);

		v.order = nth % 2 ? ORDER_STRONG : ORDER_MESSAGE;
		e.s.duo->placed_lost = nth % 3 ? 0 : 7;
		connect(&e);
		duo_idle(e.s.duo);
		duo_rule(e.s.duo, (struct duo_rule){.from = DUO_ANY, .opcode = DUO_ANY, .nth = nth, .fate = DUO_DROP});
		post_all(&e);
		duo_idle(e.s.duo);
		expect_all(&e);
		sim_end(&e.s);
	}
}

/* A peer that never answers gets path MTUs, after as long as it takes to know that. */
TEST(a_silent_peer_gets_none)
{
	struct veroce_options v = options(true, false);
	struct ends e = start_unconnected(&v);
	uint64_t began = e.s.duo->now_ns;

	duo_rule(e.s.duo,
		 (struct duo_rule){
			 .from = DUO_ANY, .opcode = DUO_ANY, .nth = DUO_ANY, .match = is_caps, .fate = DUO_DROP});
	connect(&e);
	post_all(&e);
	duo_idle(e.s.duo);
	expect_all(&e);
	assert_in_range(e.s.duo->now_ns - began, 100 * MS, 1000 * MS);
	assert_int_equal(count(&e, F_WRITE), (LEN + 1023) / 1024);
	sim_end(&e.s);
}

/* Of two ends that both offer it and hear nothing, each cuts path MTUs, and says so when it is
 * asked at last. */
TEST(two_silent_ends_agree_later)
{
	struct veroce_options v = options(true, true);
	struct ends e = start_unconnected(&v);
	struct duo_wr w;
	struct duo_rule *lose = duo_rule(
		e.s.duo,
		(struct duo_rule){
			.from = DUO_ANY, .opcode = DUO_ANY, .nth = DUO_ANY, .match = is_caps, .fate = DUO_DROP});

	connect(&e);
	post_all(&e);
	duo_idle(e.s.duo);
	expect_all(&e);
	lose->off = true;
	w = duo_write_wr(4, e.a, 0, LEN, e.b, OFF);
	assert_true(duo_post(e.s.a, &w));
	duo_run_for(e.s.duo, 500 * (uint64_t)MS);
	duo_expect(e.s.duo, &e.s.a->sent, 4, WC_SUCCESS);
	assert_int_equal(e.s.a->qp->veroce->mtu, 1024);
	sim_end(&e.s);
}

/* Has A's READ of so many bytes answered by B; how many bytes of the answer are left out. */
static uint32_t read_left_out(struct ends *e, uint32_t len)
{
	struct duo *duo = e->s.duo;
	struct pkt burst[2 * PKT_TRAIN_MAX];
	uint32_t left_out = 0;
	size_t n;

	duo_must_post(e->s.a, duo_read_wr(1, e->a, 0, len, e->b, 0));
	n = nic_output(duo->host[DUO_A].nic, burst, COUNT(burst), duo->now_ns);
	for (size_t i = 0; i < n; i++) {
		struct flow flow = *burst[i].flow;

		flow.neighbour = (uint8_t)(1 + duo->host[DUO_A].slot);
		burst[i].flow = &flow;
		nic_input(duo->host[DUO_B].nic, &burst[i], 1, duo->now_ns);
	}
	n = nic_output(duo->host[DUO_B].nic, burst, COUNT(burst), duo->now_ns);
	for (size_t i = 0; i < n; i++)
		left_out += burst[i].far_bytes;
	return left_out;
}

/* Reading it where it lies would cost its receiver a system call. */
TEST(a_short_read_is_copied)
{
	static const uint32_t lengths[] = {MR_READ_COPIED_MAX, MR_READ_COPIED_MAX + 4};

	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct veroce_options v = options(true, true);
		struct ends e = start_unconnected(&v);
		struct nic_peer n = {.near = true, .reads = true};

		connect(&e);
		post_all(&e);
		duo_idle(e.s.duo);
		expect_all(&e);
		nic_set_peer(e.s.duo->host[DUO_B].nic, e.s.duo->host[DUO_A].slot, &n);
		assert_int_equal(read_left_out(&e, lengths[i]), i ? lengths[i] : 0);
		duo_destroy(e.s.duo);
	}
}

/* Once with payload in its packet, once with payload in its place. */
int main(int argc, char **argv)
{
	int failed = test_run(argc, argv);

	places = true;
	return failed + test_run(argc, argv);
}
