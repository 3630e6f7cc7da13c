/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

#define US UINT64_C(1000000)
#define NS UINT64_C(1000)

enum { SETS_MAX = 16 };

/* All data packets have the same size, and only the host delays them. */
static const char pair[] = "[topology]\nkind = star\nhosts = 2\n"
			   "[link]\nrate = 100Gbps\ndelay = 1us\n"
			   "[transport]\nprotocol = rocev2\npayload = 4096\nheader_bytes = 64\nrto = 100ms\n"
			   "[cc]\nalgorithm = none\n"
			   "[run]\ncheck = on\n"
			   "[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\nstart = 100us\n";

static uint64_t wire_ps(uint64_t bytes)
{
	return bytes * 80;
}

/* The slowest flow's time, with those settings and perhaps one more; nothing is lost. */
static uint64_t slowest_ps(const char *text, const char *const *sets, const char *more)
{
	const char *all[SETS_MAX] = {0};
	struct sim_run run;
	uint64_t fct_ps = 0;
	int n = 0;

	for (; sets && *sets; sets++)
		all[n++] = *sets;
	all[n] = more;
	sim_run_do(&run, text, all);
	assert_false(run.results.partial);
	assert_int_equal(sim_dropped(&run), 0);
	assert_int_equal(run.results.recovery.retransmitted_packets, 0);
	assert_true(run.results.flow_count > 0);
	for (uint32_t i = 0; i < run.results.flow_count; i++) {
		const struct results_flow *f = &run.results.flows[i];

		assert_int_equal(f->received_bytes, f->bytes);
		fct_ps = f->fct_ps > fct_ps ? f->fct_ps : fct_ps;
	}
	sim_run_free(&run);
	return fct_ps;
}

/* ---- programs and acknowledgements --------------------------------------------------------------- */

/* While a post waits, the first CAPS of a veRoCE queue pair leave. */
TEST(a_flow_takes_its_ideal_time_and_the_delays)
{
	static const struct {
		const char *sets[4];
		uint64_t more_ps;
	} cases[] = {
		{{"host.post_delay=1700ns"}, 700 * NS},
		{{"host.completion_delay=1100ns"}, 1100 * NS},
		{{"host.ack_delay=1300ns"}, 1300 * NS},
		{{"host.post_delay=2us", "host.completion_delay=20us", "host.ack_delay=5us"}, 26 * US},
	};
	static const char *const sizes[] = {"workload.w.size=1", "workload.w.size=4096", "workload.w.size=3MB"};
	static const char *const protocols[] = {"transport.protocol=rocev2", "transport.protocol=veroce"};

	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		const char *sets[SETS_MAX] = {protocols[i % 2], sizes[i / 2]};
		uint64_t posted_ps = slowest_ps(pair, sets, "host.post_delay=1us");

		if (i % 2 == 0)
			assert_int_equal(posted_ps, slowest_ps(pair, sets, NULL) + 1 * US);
		sets[2] = "host.post_delay=1us";
		for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
			for (int j = 0; j < 3; j++)
				sets[3 + j] = cases[k].sets[j];
			assert_int_equal(slowest_ps(pair, sets, NULL), posted_ps + cases[k].more_ps);
		}
	}
}

/* A chunk goes on when it was received, and each time a program sees it and posts: 2 (n - 1) steps. */
TEST(each_step_of_a_collective_waits_for_its_programs)
{
	static const char ring[] = "[topology]\nkind = star\nhosts = 4\n"
				   "[transport]\nprotocol = rocev2\nheader_bytes = 64\n"
				   "[cc]\nalgorithm = none\n"
				   "[workload.w]\nkind = ring-allreduce\nsize = 16KB\n";
	static const char *const plain[] = {NULL};
	static const char *const delayed[] = {"host.post_delay=3us", "host.completion_delay=2us", NULL};
	const char *const *sets[] = {plain, delayed};
	uint64_t took_ps[2];

	for (int i = 0; i < 2; i++) {
		struct sim_run run;

		sim_run_do(&run, ring, sets[i]);
		assert_false(run.results.partial);
		assert_int_equal(run.results.collective_count, 1);
		took_ps[i] = run.results.collectives[0].time_ps;
		sim_run_free(&run);
	}
	/* The ACK that left before the chunk has left long ago. */
	assert_in_range(took_ps[1], took_ps[0] + 6 * 5 * US - 6 * wire_ps(90), took_ps[0] + 6 * 5 * US);
}

/*
 * A channel that closes with its completion, and one whose completion finds the next message on its
 * way.
 */
TEST(messages_of_a_connection_stay_apart)
{
	static const char *const sets[] = {"workload.w.repeat=20",
					   "workload.w.interval=1us",
					   "workload.w.size=10KB",
					   "host.completion_delay=7us",
					   "host.post_delay=3us",
					   "output.goodput_window=1us",
					   NULL};
	struct sim_run run;

	sim_run_do(&run, pair, sets);
	assert_false(run.results.partial);
	assert_int_equal(run.results.flows_done, 20);
	for (uint32_t i = 0; i < run.results.flow_count; i++)
		assert_int_equal(run.results.flows[i].received_bytes, 10000);
	sim_run_free(&run);
}

/* ---- reading ------------------------------------------------------------------------------------- */

enum { PACKETS = 500 };

static const char many[] = "workload.w.size=2048000"; /* PACKETS of 4096 */

TEST(a_host_sends_no_faster_than_it_reads)
{
	static const char *const one[] = {"workload.w.size=4096", NULL}, *const all[] = {many, NULL};
	uint64_t one_ps = slowest_ps(pair, one, NULL), all_ps = slowest_ps(pair, all, NULL);

	assert_int_equal(all_ps, one_ps + (PACKETS - 1) * wire_ps(4096 + 64));
	/* 4096 bytes at 40 Gbit/s; the first is on the wire as it is read. */
	assert_int_equal(slowest_ps(pair, all, "host.read_rate=40Gbps"), one_ps + (PACKETS - 1) * 819200);
	assert_int_equal(slowest_ps(pair, one, "host.read_rate=40Gbps"), one_ps);
	/* Payload fills 4096 of 4160 bytes. */
	assert_int_equal(slowest_ps(pair, all, "host.read_rate=99Gbps"), all_ps);
	assert_true(slowest_ps(pair, all, "host.read_rate=98Gbps") > all_ps);
}

TEST(veroce_reads_no_faster_either)
{
	static const char *const sets[] = {many, "transport.protocol=veroce", NULL};
	uint64_t took_ps = slowest_ps(pair, sets, "host.read_rate=40Gbps");

	assert_in_range(took_ps, PACKETS * 819200, (PACKETS + 10) * 819200);
}

/* ACKs of arriving data delay packets; meanwhile the bus reads on. */
TEST(acknowledgements_take_nothing_from_the_bus)
{
	static const char both[] = "[topology]\nkind = star\nhosts = 2\n"
				   "[link]\nrate = 100Gbps\ndelay = 1us\n"
				   "[transport]\nprotocol = rocev2\npayload = 4096\nheader_bytes = 64\nack_every = 1\n"
				   "[cc]\nalgorithm = none\n"
				   "[workload.w]\nkind = flow\nsenders = 0-1\nreceivers = 1,0\nsize = 2048000\n";
	uint64_t slow_ps = slowest_ps(both, NULL, "host.read_rate=94Gbps");

	assert_in_range(slow_ps, UINT64_C(2044000) * 8000 / 94, UINT64_C(2044000) * 8000 / 94 + 10 * US);
}

/* ---- receiving ----------------------------------------------------------------------------------- */

TEST(a_receiver_takes_no_faster_than_it_drains)
{
	static const char *const one[] = {"workload.w.size=4096", NULL};
	static const char *const all[] = {many, "host.rx_drain=25Gbps", NULL};
	uint64_t one_ps = slowest_ps(pair, one, NULL);

	assert_int_equal(slowest_ps(pair, all, NULL), one_ps + PACKETS * 4 * wire_ps(4096 + 64));
	/* With PFC it is the same without a large buffer. */
	assert_int_equal(slowest_ps(pair, (const char *[]){many, "host.rx_drain=25Gbps", "switch.pfc=on", NULL},
				    "host.rx_buffer=100KB"),
			 one_ps + PACKETS * 4 * wire_ps(4096 + 64));
}

TEST(a_slow_receiver_pauses_and_loses_nothing)
{
	static const char *const protocols[] = {"transport.protocol=rocev2", "transport.protocol=veroce"};

	for (int i = 0; i < 2; i++) {
		const char *sets[] = {
			many,           protocols[i], "host.rx_drain=10Gbps", "host.rx_buffer=100KB", "switch.pfc=on",
			"run.check=on", NULL};
		struct sim_run run;

		sim_run_do(&run, pair, sets);
		assert_false(run.results.partial);
		assert_int_equal(sim_dropped(&run), 0);
		assert_int_equal(run.results.flows_done, 1);
		assert_true(run.results.pfc.pause_frames > 5);
		sim_run_free(&run);
	}
}

TEST(a_full_receive_buffer_drops_at_the_host)
{
	static const char *const sets[] = {
		many, "transport.protocol=veroce", "host.rx_drain=10Gbps", "host.rx_buffer=100KB", "run.check=on",
		NULL};
	struct sim_run run;
	uint64_t at_host = 0;

	sim_run_do(&run, pair, sets);
	assert_false(run.results.partial);
	assert_int_equal(run.results.flows_done, 1);
	for (uint32_t i = 0; i < run.results.drop_count; i++) {
		const struct results_drop *d = &run.results.drops[i];

		assert_int_equal(d->place, RESULTS_AT_HOST);
		assert_int_equal(d->reason, RESULTS_DROP_RX_BUFFER);
		at_host += d->packets;
	}
	assert_true(at_host > 10);
	sim_run_free(&run);
}

/* ---- state of queue pairs ------------------------------------------------------------------------ */

TEST(the_first_packet_waits_for_state_at_both_ends)
{
	static const char *const one[] = {"workload.w.size=100", NULL}, *const all[] = {many, NULL};
	static const char *const cached[] = {"workload.w.size=100", "host.qp_cache=1", "host.qp_miss=1500ns", NULL};

	assert_int_equal(slowest_ps(pair, cached, NULL), slowest_ps(pair, one, NULL) + 2 * 1500 * NS);
	/* Packets that come during the receiver's fetch wait; later packets do not. */
	assert_int_equal(slowest_ps(pair, all, "host.qp_cache=1"), slowest_ps(pair, all, NULL) + 1 * US);
}

/* Their packets take turns, and each finds the other's state. */
TEST(two_queue_pairs_need_state_for_two)
{
	static const char *const small[] = {many, "workload.w.qps=2", "host.qp_cache=1", NULL};
	static const char *const large[] = {many, "workload.w.qps=2", "host.qp_cache=2", NULL};
	uint64_t enough_ps = slowest_ps(pair, large, NULL), few_ps = slowest_ps(pair, small, NULL);

	assert_true(enough_ps < PACKETS * wire_ps(4160) + 10 * US);
	/* One fetch for each packet, and perhaps one for its ACK. */
	assert_in_range(few_ps, PACKETS * US, 2 * PACKETS * US + 10 * US);
}

TEST(fetches_lose_nothing)
{
	static const char *const sets[] = {
		"host.qp_cache=3",       "host.qp_miss=300ns",          "host.read_rate=80Gbps", "host.ack_delay=1us",
		"host.post_delay=200ns", "host.completion_delay=900ns", "switch.pfc=on",         "run.check=on",
		"switch.buffer=1MB",     "host.rx_drain=60Gbps",        "host.rx_buffer=200KB",  NULL};
	static const char *const protocols[] = {"rocev2", "veroce"};

	for (int i = 0; i < 2; i++) {
		char text[256];
		struct sim_run run;

		snprintf(text, sizeof(text),
			 "[topology]\nkind = star\nhosts = 8\n[transport]\nprotocol = %s\n"
			 "[workload.w]\nkind = all-to-all\nsize = 1MB\norder = at-once\n",
			 protocols[i]);
		sim_run_do(&run, text, sets);
		assert_false(run.results.partial);
		assert_int_equal(sim_dropped(&run), 0);
		assert_int_equal(run.results.flows_done, 56);
		sim_run_free(&run);
	}
}

/* ---- CNPs ---------------------------------------------------------------------------------------- */

TEST(cnps_of_a_port_keep_their_distance)
{
	static const char *const gaps[] = {"transport.cnp_gap_port=0", "transport.cnp_gap_port=10us"};
	static const char text[] = "[topology]\nkind = star\nhosts = 9\n"
				   "[transport]\nprotocol = rocev2\ncnp_interval = 4us\n"
				   "[switch]\necn = on\npfc = on\nkmin = 10KB\nkmax = 100KB\n"
				   "[cc]\nalgorithm = dcqcn\n"
				   "[run]\ncheck = on\n"
				   "[workload.w]\nkind = incast\nsize = 1MB\n";
	uint64_t cnps[2], time_ps = 0;

	for (int i = 0; i < 2; i++) {
		const char *sets[] = {gaps[i], NULL};
		struct sim_run run;

		sim_run_do(&run, text, sets);
		assert_false(run.results.partial);
		assert_int_equal(run.results.flows_done, 8);
		cnps[i] = run.results.recovery.cnps;
		time_ps = run.results.time_ps;
		sim_run_free(&run);
	}
	/* One receiver sends all CNPs, and never lacks marks for long. */
	assert_true(cnps[1] <= time_ps / (10 * US) + 1);
	assert_true(cnps[1] > 8);
	assert_true(cnps[0] > 2 * cnps[1]);
}
