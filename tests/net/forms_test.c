/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole simulations against results computed by hand: the real nic in hosts, ideal networks between
 * them. One byte takes 80 ps at 100 Gbit/s.
 */

#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

#define US UINT64_C(1000000)

enum { BYTE_PS = 80, DATA = 1048, ACK = 60 }; /* on the wire, as the HPCC scenarios have them */

#define WIRE "[cc]\nalgorithm = none\n[transport]\npayload = 1000B\nheader_bytes = 48B\nack_bytes = 60B\n"
#define FLOW "[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\n"

/* ---- one flow ---------------------------------------------------------------------------------------- */

/*
 * Packets leave the host back to back and never wait on later links, which are as fast: each further link
 * costs the last packet its own time once more. Then the ACK comes back, alone.
 */
static uint64_t fct_ps(uint64_t sent_bytes, uint64_t last_bytes, uint64_t ack_bytes, uint64_t links, uint64_t delay_ps,
		       uint64_t latency_ps)
{
	return (sent_bytes + (links - 1) * last_bytes) * BYTE_PS + links * ack_bytes * BYTE_PS +
	       2 * (links * delay_ps + (links - 1) * latency_ps);
}

/*
 * CAPS go first, and nothing waits for the answer. The peer sends a CAPS request too when it gets ours. Our answer takes
 * time if it leaves before the last packet.
 */
static uint64_t told_ps(uint64_t packets, uint64_t links, uint64_t delay_ps, uint64_t latency_ps)
{
	uint64_t asked_ps = fct_ps(ACK, ACK, 2 * ACK, links, delay_ps, latency_ps);

	return asked_ps < (ACK + (packets - 1) * DATA) * BYTE_PS ? ACK * BYTE_PS : 0;
}

TEST(one_flow_takes_exactly_its_time)
{
	static const struct {
		const char *sets[8];
		uint64_t links, delay_ps, latency_ps;
	} nets[] = {
		{{"topology.kind=star", "topology.hosts=2"}, 2, US, 0},
		{{"topology.kind=dumbbell", "topology.hosts=1"}, 3, US, 0},
		{{"topology.kind=dumbbell", "topology.hosts=1", "switch.latency=600ns"}, 3, US, 600000},
		{{"topology.kind=dumbbell", "topology.hosts=1", "link.delay=0"}, 3, 0, 0},
		{{"topology.kind=dumbbell", "topology.hosts=1", "link.delay=100us"}, 3, 100 * US, 0},
	};
	static const unsigned packets[] = {1, 2, 16, 17, 100, 2000};

	for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]) * 12; i++) {
		size_t net = i / 12;
		uint64_t links = nets[net].links, delay_ps = nets[net].delay_ps;
		unsigned n = packets[i % 6];
		bool veroce = i / 6 % 2;
		uint64_t want = fct_ps((veroce ? ACK : 0) + (uint64_t)n * DATA, DATA, ACK, links, delay_ps,
				       nets[net].latency_ps);
		char text[512];
		struct sim_run run;

		if (veroce)
			want += told_ps(n, links, delay_ps, nets[net].latency_ps);
		snprintf(text, sizeof(text),
			 WIRE "window = 1GB\nprotocol = %s\n" FLOW "size = %uB\n[run]\ncheck = on\n",
			 veroce ? "veroce" : "rocev2", n * 1000);
		sim_run_do(&run, text, nets[net].sets);
		assert_false(run.results.partial);
		if (run.results.flows[0].fct_ps != want)
			fail_msg("%s, %u packets, network %zu: %llu ps instead of %llu", veroce ? "veroce" : "rocev2",
				 n, net, (unsigned long long)run.results.flows[0].fct_ps, (unsigned long long)want);
		assert_int_equal(sim_dropped(&run), 0);
		assert_int_equal(run.results.recovery.retransmitted_packets, 0);
		sim_run_free(&run);
	}
}

/* Ethernet, IPv4 and UDP around, then what each has: BTH 12, RETH 16, AETH 4, ICRC 4. */
TEST(real_headers_take_their_time_too)
{
	static const struct {
		uint32_t size, packets, sent, longest;
	} cases[] = {
		{1000, 1, 66 + 32 + 1000, 66 + 32 + 1000},
		{3, 1, 66 + 32 + 4, 66 + 32 + 4}, /* padded */
		{3000, 3, 3 * (66 + 16 + 1000) + 16, 66 + 32 + 1000},
		{1001, 2, 66 + 32 + 1000 + 66 + 16 + 4, 66 + 32 + 1000},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];
		struct sim_run run;

		snprintf(text, sizeof(text),
			 "[topology]\nkind = dumbbell\nhosts = 1\n"
			 "[transport]\npayload = 1000B\nprotocol = rocev2\n[cc]\nalgorithm = none\n" FLOW
			 "size = %uB\n",
			 cases[i].size);
		sim_run_do(&run, text, NULL);
		assert_int_equal(run.results.flows[0].fct_ps,
				 fct_ps(cases[i].sent, cases[i].longest, 66 + 12 + 4 + 4, 3, US, 0));
		sim_run_free(&run);
	}
}

/* ---- many flows into one host ------------------------------------------------------------------------- */

static const char incast[] = WIRE "window = 1GB\nprotocol = rocev2\nrto = 50ms\n"
				  "[topology]\nkind = star\nhosts = 9\n[switch]\nbuffer = 2MB\n"
				  "[workload.w]\nkind = incast\nsize = 1MB\n";

TEST_MANY(an_incast_with_pfc_loses_nothing_and_no_time)
{
	static const char *const modes[] = {"switch.pfc=on", "switch.pfc=hpcc"};
	uint64_t wire = 8 * UINT64_C(1000) * DATA;
	/* The port to the receiver is never idle from the first packet's arrival on. */
	uint64_t want = fct_ps(wire, DATA, ACK, 2, US, 0);

	for (int i = 0; i < 2; i++) {
		const char *sets[] = {modes[i], "run.check=on", NULL};
		struct sim_run run;
		uint64_t last_ps = 0;

		sim_run_do(&run, incast, sets);
		assert_false(run.results.partial);
		for (uint32_t f = 0; f < run.results.flow_count; f++) {
			if (run.results.flows[f].fct_ps > last_ps)
				last_ps = run.results.flows[f].fct_ps;
		}
		assert_in_range(last_ps, want - DATA * BYTE_PS, want + DATA * BYTE_PS);
		assert_int_equal(sim_dropped(&run), 0);
		assert_true(run.results.pfc.pause_frames > 0);
		assert_int_equal(run.results.pfc.hosts_paused, 8);
		assert_int_equal(run.results.recovery.retransmitted_packets, 0);
		assert_int_equal(run.results.recovery.timeouts, 0);
		sim_run_free(&run);
	}
}

/*
 * Its packets wait for up to ten milliseconds, and a timeout would repeat packets that are only
 * late.
 */
TEST(timers_are_patient_where_pfc_lets_packets_wait)
{
	static const char text[] = "[link]\nrate = 1Gbps\ndelay = 0\n[topology]\nkind = star\nhosts = 5\n"
				   "[switch]\necn = off\nbuffer = 10MB\n[cc]\nalgorithm = none\n"
				   "[transport]\nprotocol = rocev2\nack_every = 10\n"
				   "[workload.w]\nkind = incast\nsize = 168KB\nqps = 2\nrepeat = 2\ninterval = 30us\n";
	static const char *const modes[] = {"switch.pfc=on", "switch.pfc=hpcc"};

	for (int i = 0; i < 2; i++) {
		const char *sets[] = {modes[i], NULL};
		struct sim_run run;

		sim_run_do(&run, text, sets);
		assert_false(run.results.partial);
		assert_int_equal(sim_dropped(&run), 0);
		assert_int_equal(run.results.recovery.timeouts, 0);
		assert_int_equal(run.results.recovery.retransmitted_packets, 0);
		sim_run_free(&run);
	}
}

TEST(the_same_incast_without_pfc_loses)
{
	static const char *const sets[] = {"switch.pfc=off", "transport.rto=auto", NULL};
	struct sim_run run;

	sim_run_do(&run, incast, sets);
	assert_true(sim_dropped(&run) > 100);
	assert_true(run.results.recovery.retransmitted_packets > sim_dropped(&run));
	assert_int_equal(run.results.pfc.pause_frames, 0);
	sim_run_free(&run);
}

/* ---- congestion control -------------------------------------------------------------------------------- */

static const struct results_port *port_to(const struct results *r, uint32_t node)
{
	for (uint32_t i = 0; i < r->port_count; i++) {
		if (r->ports[i].to == node)
			return &r->ports[i];
	}
	return NULL;
}

TEST(hpcc_fills_a_link_up_to_eta_and_leaves_no_queue)
{
	static const char text[] = WIRE "protocol = rocev2\nack_every = 1\nack_class = data\n"
					"[topology]\nkind = star\nhosts = 3\n[switch]\nint = on\npfc = hpcc\n"
					"[workload.w]\nkind = incast\nsize = 10MB\n[output]\ngoodput_window = 20us\n";
	static const char *const sets[] = {"cc.algorithm=hpcc", "cc.preset=hpcc-eval", "cc.eta=0.95", NULL};
	const struct results_port *port;
	struct results_fairness fair;
	struct sim_run run;
	uint64_t share_ppm;

	sim_run_do(&run, text, sets);
	port = port_to(&run.results, 0);
	assert_non_null(port);
	/* U is the share of its capacity that the port sent; two flows of 10 MB take 1.8 ms. */
	share_ppm = (uint64_t)((unsigned __int128)port->tx_bytes * BYTE_PS * 1000000 / run.results.time_ps);
	assert_in_range(share_ppm, 920000, 970000);
	assert_true(results_queue_percentile(port, 500000) <= 2 * 1100);
	assert_true(results_queue_percentile(port, 950000) <= 5 * 1100);
	fair = results_fairness_between(&run.results, 500 * US, 1000 * US);
	assert_int_equal(fair.flows, 2);
	assert_true(fair.min_bps * 100 >= fair.max_bps * 80); /* its last bit of fairness comes slowly */
	assert_int_equal(run.results.pfc.pause_frames, 0);
	sim_run_free(&run);
}

/* A paced sender's last packets have no AckReq, and then its window shrinks below what they fill. */
TEST(a_window_that_shrinks_is_opened_by_an_ack_not_by_the_timer)
{
	static const char text[] =
		"[link]\nrate = 400Gbps\ndelay = 0\n"
		"[topology]\nkind = leaf-spine\nhosts = 4\nleaves = 2\nspines = 3\n"
		"[switch]\npfc = hpcc\nbuffer = 8MB\nint = on\n[cc]\nalgorithm = hpcc\n"
		"[transport]\nprotocol = rocev2\npayload = 256B\nack_every = 12\nheader_bytes = 48B\n"
		"ack_bytes = 60B\nack_class = data\nwindow = 16KB\necn = off\n"
		"[workload.w0]\nkind = incast\nsize = 161KB\n"
		"[workload.w1]\nkind = flow\nsenders = 0\nreceivers = 4\nsize = 258268B\n";

	for (unsigned seed = 1; seed <= 8; seed++) {
		char set[32];
		const char *sets[] = {set, NULL};
		struct sim_run run;

		snprintf(set, sizeof(set), "run.seed=%u", seed);
		sim_run_do(&run, text, sets);
		assert_false(run.results.partial);
		assert_int_equal(run.results.recovery.timeouts, 0);
		assert_int_equal(run.results.recovery.retransmitted_packets, 0);
		sim_run_free(&run);
	}
}

TEST_MANY(two_flows_of_dcqcn_share_a_link)
{
	static const char text[] = "[transport]\nprotocol = rocev2\npayload = 4000B\n[cc]\nalgorithm = dcqcn\n"
				   "[topology]\nkind = star\nhosts = 3\n[link]\nrate = 10Gbps\n[switch]\npfc = on\n"
				   "[workload.a]\nkind = flow\nsenders = 0\nreceivers = 2\nsize = 1GB\n"
				   "[workload.b]\nkind = flow\nsenders = 1\nreceivers = 2\nsize = 1GB\nstart = 5ms\n"
				   "[run]\nuntil = 400ms\nall_flows = off\n[output]\ngoodput_window = 1ms\n";
	struct results_fairness fair;
	struct sim_run run;

	sim_run_do(&run, text, NULL);
	assert_false(run.results.partial);
	fair = results_fairness_between(&run.results, 200000 * US, 200000 * US);
	assert_int_equal(fair.flows, 2);
	if (fair.min_bps * 100 < fair.max_bps * 95)
		fail_msg("%llu and %llu bit/s", (unsigned long long)fair.min_bps, (unsigned long long)fair.max_bps);
	/* Marks slow senders down before pauses are needed. */
	assert_true(fair.min_bps + fair.max_bps > UINT64_C(8500000000));
	assert_true(run.results.recovery.cnps > 100);
	assert_int_equal(run.results.recovery.retransmitted_packets, 0);
	sim_run_free(&run);
}

/* ---- exact losses ---------------------------------------------------------------------------------------- */

static void do_lost(struct sim_run *run, const char *protocol, const char *lost)
{
	char text[512];

	snprintf(text, sizeof(text),
		 WIRE "window = 1GB\nprotocol = %s\n[topology]\nkind = star\nhosts = 2\n"
		      "[link]\nlost = %s\n" FLOW "size = 200KB\n[run]\ncheck = on\n",
		 protocol, lost);
	sim_run_do(run, text, NULL);
	assert_false(run->results.partial);
}

/*
 * Packet k is lost; the receiver learns it by k + 1, the sender by the NAK. All packets from k on that
 * have left by then are sent again.
 */
TEST(go_back_n_sends_again_what_theory_says)
{
	static const unsigned lost[] = {1, 2, 20, 100, 148};

	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
		uint64_t k = lost[i], packet_ps = DATA * BYTE_PS, again, sent;
		uint64_t nak_ps = fct_ps((k + 1) * DATA, DATA, ACK, 2, US, 0);
		struct sim_run run;
		char list[32];

		sent = (nak_ps + packet_ps - 1) / packet_ps;
		again = sent - k + 1;
		snprintf(list, sizeof(list), "0:%u", lost[i]);
		do_lost(&run, "rocev2", list);
		assert_int_equal(sim_dropped(&run), 1);
		assert_int_equal(run.results.recovery.retransmitted_packets, again);
		assert_int_equal(run.results.recovery.naks, 1);
		assert_int_equal(run.results.recovery.timeouts, 0);
		assert_int_equal(run.results.flows[0].fct_ps, fct_ps((200 + again) * DATA, DATA, ACK, 2, US, 0));
		sim_run_free(&run);
	}
}

TEST(a_lost_last_packet_of_go_back_n_waits_for_the_timer)
{
	struct sim_run run;
	uint64_t without = fct_ps(201 * DATA, DATA, ACK, 2, US, 0);

	do_lost(&run, "rocev2", "0:200");
	assert_int_equal(run.results.recovery.timeouts, 1);
	assert_int_equal(run.results.recovery.naks, 0);
	/* IBTA 9.7.6.1.3: at least the code's time, at most four times that. */
	assert_in_range(run.results.flows[0].fct_ps, without + 131 * US, without + 4 * UINT64_C(131072000) + 5 * US);
	sim_run_free(&run);
}

TEST(veroce_sends_again_just_what_was_lost)
{
	static const struct {
		const char *list;
		unsigned count;
	} cases[] = {{"0:1", 1}, {"0:20", 1}, {"0:199", 1}, {"0:200", 1}, {"0:10,0:11,0:100", 3}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sim_run run;

		do_lost(&run, "veroce", cases[i].list);
		assert_int_equal(sim_dropped(&run), cases[i].count);
		assert_int_equal(run.results.recovery.retransmitted_packets, cases[i].count);
		assert_int_equal(run.results.recovery.spurious_packets, 0);
		assert_int_equal(run.results.recovery.timeouts, 0);
		sim_run_free(&run);
	}
}

/* ---- the same again --------------------------------------------------------------------------------------- */

/* A scenario that has both has both. */
TEST(loss_and_corruption_are_both_had)
{
	static const char *const sets[] = {"link.loss=2%", "link.corrupt=3%", "workload.w.size=10MB", NULL};
	uint64_t packets[RESULTS_REASONS] = {0};
	struct sim_run run;

	sim_run_do(&run, "[topology]\nkind = star\nhosts = 2\n" WIRE FLOW, sets);
	for (uint32_t i = 0; i < run.results.drop_count; i++)
		packets[run.results.drops[i].reason] += run.results.drops[i].packets;
	assert_true(packets[RESULTS_DROP_LOSS] > 200);
	assert_true(packets[RESULTS_DROP_CORRUPT] > packets[RESULTS_DROP_LOSS]);
	sim_run_free(&run);
}

TEST(the_same_seed_gives_the_same_bytes_everywhere)
{
	static const struct {
		const char *text;
		uint64_t hash;
	} cases[] = {
		{"[topology]\nkind = leaf-spine\nhosts = 4\nleaves = 2\nspines = 2\n"
		 "[link]\nloss = 0.5%\nloss_place = fabric\n"
		 "[workload.w]\nkind = all-to-all\nsize = 2MB\n",
		 UINT64_C(0xfb3b28faf4d98692)},
		{"[topology]\nkind = leaf-spine\nhosts = 4\nleaves = 2\nspines = 2\n"
		 "[switch]\npfc = on\nbuffer = 1MB\nrouting = spray-two\n"
		 "[transport]\nprotocol = rocev2\npayload = 1024B\n[cc]\nalgorithm = dcqcn\n"
		 "[workload.w]\nkind = cdf\ncdf = FB_Hadoop\nload = 50%\nflows = 300\n",
		 UINT64_C(0x1a37df0c08914c88)},
		{"[topology]\nkind = fat-tree\nk = 4\n[failures]\ndegraded = 20%\n[switch]\ntrim = on\n"
		 "[workload.w]\nkind = permutation\nsize = 500KB\n",
		 UINT64_C(0xdbc5a8e3d25c6211)},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static const char *const other[] = {"run.seed=2", NULL};
		struct sim_run run;
		uint64_t hash;

		sim_run_do(&run, cases[i].text, NULL);
		hash = sim_hash(&run.results);
		sim_run_free(&run);
		sim_run_do(&run, cases[i].text, NULL);
		assert_true(sim_hash(&run.results) == hash);
		sim_run_free(&run);
		sim_run_do(&run, cases[i].text, other);
		assert_true(sim_hash(&run.results) != hash);
		sim_run_free(&run);
		if (hash != cases[i].hash)
			fail_msg("case %zu: 0x%016llx", i, (unsigned long long)hash);
	}
}
