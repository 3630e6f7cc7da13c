/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SDR over the nic in a simulated network: everything arrives whatever the link does, and equal runs are equal. With
 * the argument "many": in messages four times as large, too, and times are those of the closed form in src/sdr/model.
 */
#include <math.h>
#include <stdio.h>

#include "sdr/model/completion.h"
#include "support/sim_run.h"
#include "support/coded_link.h"
#include "support/test.h"

/* 8 MiB in 2048 packets of 4198 bytes: 0.17 ms of 25. */
static const char text[] = "[topology]\n"
			   "kind = dumbbell\n"
			   "hosts = 1\n"
			   "[link]\n"
			   "rate = 400Gbps\n"
			   "delay = 0\n"
			   "fabric_delay = 12.5ms\n"
			   "loss_place = fabric\n"
			   "[switch]\n"
			   "buffer = 256MB\n"
			   "[transport]\n"
			   "protocol = sdr\n"
			   "[sdr]\n"
			   "chunk = 4KiB\n"
			   "scheme = nack\n"
			   "[cc]\n"
			   "algorithm = none\n"
			   "[workload.message]\n"
			   "kind = flow\n"
			   "senders = 0\n"
			   "receivers = 1\n"
			   "size = 8MiB\n"
			   "repeat = 60\n"
			   "interval = 2s\n"
			   "[output]\n"
			   "goodput_window = none\n";

enum { WIRE_BYTES = 4198 };

static void all_arrived(const struct sim_run *run)
{
	assert_false(run->results.partial);
	assert_int_equal(run->results.flows_done, run->results.flow_count);
	for (uint32_t i = 0; i < run->results.flow_count; i++)
		assert_int_equal(run->results.flows[i].received_bytes, run->results.flows[i].bytes);
}

/* The mean time of a message, in seconds, over `seeds` runs. */
static double mean_s(const char *const *sets, int seeds)
{
	double sum = 0;
	uint32_t n = 0;

	for (int seed = 1; seed <= seeds; seed++) {
		char word[32];
		const char *more[8] = {word};
		struct sim_run run;

		snprintf(word, sizeof(word), "run.seed=%d", seed);
		for (int i = 0; sets[i]; i++)
			more[i + 1] = sets[i];
		sim_run_do(&run, text, more);
		all_arrived(&run);
		for (uint32_t i = 0; i < run.results.flow_count; i++, n++)
			sum += (double)run.results.flows[i].fct_ps / 1e12;
		sim_run_free(&run);
	}
	return sum / n;
}

static const struct model_message message = {
	.chunks = 2048, .inject_s = WIRE_BYTES * 8 / 400e9, .rtt_s = 0.025, .chunk_loss = 1e-3};

static void near(double value, double expected, double share)
{
	if (fabs(value - expected) > share * expected)
		fail_msg("%g is not within %g of %g", value, share, expected);
}

TEST(a_message_alone_takes_its_ideal_time)
{
	struct sim_run run;

	sim_run_do(&run, text, NULL);
	all_arrived(&run);
	for (uint32_t i = 0; i < run.results.flow_count; i++)
		near((double)run.results.flows[i].fct_ps, (double)run.results.flows[i].ideal_ps, 1e-3);
	assert_int_equal(run.results.recovery.line_packets, 60 * 2048);
	assert_int_equal(run.results.recovery.retransmitted_packets, 0);
	sim_run_free(&run);
}

/* 240 messages of two losses each: the mean's standard error is 2 %. */
TEST_MANY(a_timer_repeats_as_the_model_says)
{
	const char *const sets[] = {"link.loss=0.001", "sdr.scheme=sr", NULL};
	struct model_time t;

	model_sr(&message, 3 * message.rtt_s, &t);
	near(mean_s(sets, 4), t.mean_s, 0.06);
}

/* The model's receiver names a hole as it appears; ours after two more packets, and the last ones after a pause. */
TEST_MANY(nacks_repeat_as_the_model_says)
{
	const char *const sets[] = {"link.loss=0.001", "sdr.scheme=nack", NULL};
	struct model_time t;

	model_sr(&message, message.rtt_s, &t);
	near(mean_s(sets, 4), t.mean_s, 0.06);
}

/* Three groups in ten fall back; the timer is that of the expected end and a round trip. */
TEST_MANY(codes_fall_back_as_the_model_says)
{
	const char *const sets[] = {"link.loss=0.02", "sdr.scheme=mds", "sdr.parity=4", NULL};
	const struct model_code code = {.data = 32, .parity = 4, .wait_rtts = 1};
	struct model_message m = message;
	struct model_time t;

	m.chunk_loss = 0.02;
	model_ec(&m, &code, 3 * m.rtt_s, &t);
	near(mean_s(sets, 4), t.mean_s, 0.1);
}

/* Loss is assumed five times too low, so that many messages need a second round. */
TEST_MANY(packets_and_the_link_in_numbers_agree)
{
	const char *const sets[] = {"link.loss=0.01", "sdr.scheme=tail", "sdr.assumed_loss=0.002", NULL};
	struct coded_link_wish w = {
		.packets = 2048, .rtt_ns = 25000246, .packet_ns = 84, .loss = 0.01, .word_loss = -1, .assumed = 0.002};
	struct loss_estimate e;
	double sum_s = 0;

	loss_estimate_init(&e);
	for (w.seed = 0; w.seed < 1000; w.seed++)
		sum_s += (double)coded_link_run(&w, &e).done_ns / 1e9;
	assert_true(sum_s / 1000 > 1.1 * 0.0252);
	near(mean_s(sets, 4), sum_s / 1000, 0.06);
}

TEST_MANY(tails_need_no_second_round)
{
	const char *const sets[] = {"link.loss=0.001", "sdr.scheme=tail", NULL};

	near(mean_s(sets, 4), 0.025 + 2048 * message.inject_s, 0.005);
}

/* By real packets, where the loss was taken for ten times too low: no message needs a second round. */
TEST_MANY(idle_fill_saves_a_round)
{
	const char *sets[] = {"link.loss=0.01",         "sdr.scheme=tail",
			      "sdr.assumed_loss=0.001", "switch.weights=0,1,1,1000,1,1,1,1",
			      "sdr.idle_fill=1",        NULL};
	double most[2];

	for (int fill = 0; fill < 2; fill++) {
		struct sim_run run;

		sets[4] = fill ? "sdr.idle_fill=1" : NULL;
		sim_run_do(&run, text, sets);
		all_arrived(&run);
		most[fill] = 0;
		for (uint32_t i = 0; i < run.results.flow_count; i++)
			most[fill] = fmax(most[fill],
					  (double)run.results.flows[i].fct_ps / (double)run.results.flows[i].ideal_ps);
		/* A packet takes 84 ns. */
		assert_true(run.results.recovery.fill_packets <= 60 * 25000000 / 84);
		assert_int_equal(run.results.recovery.fill_packets > 0, fill);
		sim_run_free(&run);
	}
	assert_true(most[0] > 1.8);
	assert_true(most[1] < 1.05);
}

static void everything_arrives_over(const char *const *sets, bool again)
{
	struct sim_run run;
	uint64_t hash;

	sim_run_do(&run, text, sets);
	all_arrived(&run);
	hash = sim_hash(&run.results);
	sim_run_free(&run);
	if (!again)
		return;
	sim_run_do(&run, text, sets);
	assert_int_equal(sim_hash(&run.results), hash);
	sim_run_free(&run);
}

static void everything_arrives_over_bad_links(const char *size, bool again)
{
	static const char *const links[][8] = {
		{"link.loss=0.1"},
		{"link.ge_bad=0.001", "link.ge_good=0.0625"},
		{"link.jitter=20us", "link.loss=0.01", "sdr.channels=4"},
		{"link.loss=0.05", "sdr.chunk=64KiB"},
		{"link.loss=0.5", "workload.message.size=100000B"},
		{"link.loss=0.01", "workload.message.interval=1ms"}, /* more messages than slots */
		{"link.loss=0.05", "link.jitter=20us", "sdr.idle_fill=3"},
		{"link.loss=0.05", "sdr.idle_fill=1", "sdr.channels=3", "workload.message.interval=1ms"},
	};
	static const char *const schemes[] = {"sdr.scheme=sr",  "sdr.scheme=nack",   "sdr.scheme=xor",
					      "sdr.scheme=mds", "sdr.scheme=demand", "sdr.scheme=tail"};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		for (size_t k = 0; k < sizeof(schemes) / sizeof(schemes[0]); k++) {
			const char *sets[11] = {"workload.message.repeat=4", size, schemes[k]};

			for (int w = 0; links[i][w]; w++)
				sets[w + 3] = links[i][w];
			everything_arrives_over(sets, again);
		}
	}
}

TEST(messages_arrive_over_bad_links)
{
	everything_arrives_over_bad_links("workload.message.size=2MiB", true);
}

/* 65,536 chunks behind a few holes: an acknowledgement shows them all, and what was lost goes again alone. */
TEST(a_timer_repeats_what_was_lost_alone)
{
	static const char *const sets[] = {"sdr.scheme=sr", "link.loss=1e-4", "workload.message.size=256MiB",
					   "workload.message.repeat=1", NULL};
	uint64_t lost = 0;
	struct sim_run run;

	sim_run_do(&run, text, sets);
	all_arrived(&run);
	for (uint32_t i = 0; i < run.results.drop_count; i++)
		lost += run.results.drops[i].packets;
	assert_in_range(lost, 4, 20);
	assert_true(run.results.recovery.retransmitted_packets <= 2 * lost);
	sim_run_free(&run);
}

/* Where nothing is lost all that goes again goes for nothing, also what comes when its message is over: of all messages
 * but the last, behind which the run ends. */
TEST(repeats_for_nothing_are_counted)
{
	static const char *const sets[][3] = {{"sdr.scheme=nack", "link.jitter=20us"},
					      {"sdr.scheme=tail", "link.jitter=300us"}};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		const struct results_recovery *r;
		struct sim_run run;

		sim_run_do(&run, text, sets[i]);
		all_arrived(&run);
		r = &run.results.recovery;
		assert_true(r->retransmitted_packets > 60);
		assert_in_range(r->spurious_packets, r->retransmitted_packets * 29 / 30, r->retransmitted_packets);
		sim_run_free(&run);
	}
}

/* Ten messages of one line: slots and generations are used again, while repeats of the messages before are late. */
TEST(slots_are_used_again_behind_late_packets)
{
	static const char *const schemes[] = {"sdr.scheme=sr",  "sdr.scheme=nack",   "sdr.scheme=xor",
					      "sdr.scheme=mds", "sdr.scheme=demand", "sdr.scheme=tail"};

	for (size_t k = 0; k < sizeof(schemes) / sizeof(schemes[0]); k++) {
		const char *const sets[] = {"workload.message.repeat=10",
					    "workload.message.size=2MiB",
					    "link.jitter=20us",
					    "sdr.idle_fill=1",
					    schemes[k],
					    NULL};
		struct sim_run run;

		sim_run_do(&run, text, sets);
		all_arrived(&run);
		for (uint32_t i = 1; i < run.results.flow_count; i++)
			assert_int_equal(run.results.flows[i].connection, run.results.flows[0].connection);
		sim_run_free(&run);
	}
}

TEST_MANY(large_messages_arrive_over_bad_links)
{
	everything_arrives_over_bad_links("workload.message.size=8MiB", false);
}

/* The time of the second workload's message, in nanoseconds. */
static double second_ns(const char *const *sets)
{
	static const char pair[] = "[topology]\nkind=dumbbell\nhosts=2\n[link]\nrate=10Gbps\ndelay=0\n"
				   "fabric_delay=500us\n[switch]\nbuffer=256MB\nweights=0,1,1,1000,1,1,1,1\n"
				   "[transport]\nprotocol=sdr\n[cc]\nalgorithm=none\n[sdr]\nassumed_loss=0.001\n"
				   "[workload.first]\nkind=flow\nsenders=0\nreceivers=2\nsize=128KiB\n"
				   "[workload.second]\nkind=flow\nsenders=1\nreceivers=3\nsize=640KiB\n"
				   "[output]\ngoodput_window=none\n";
	struct sim_run run;
	double ns;

	sim_run_do(&run, pair, sets);
	all_arrived(&run);
	assert_int_equal(run.results.flow_count, 2);
	ns = (double)run.results.flows[run.results.flows[0].workload ? 0 : 1].fct_ps / 1000;
	sim_run_free(&run);
	return ns;
}

/* Two hosts share a link. The first one's parities would take as much of it again as its message has four times. In a
 * class of their own, whose weight is a thousandth, the other host does not notice them, and in one that gets what is
 * left at most two packets of theirs. */
TEST(idle_fill_slows_nobody_down)
{
	const char *sets[] = {NULL, NULL, NULL};
	double low, lowest, high;
	double alone = second_ns(sets);

	sets[0] = "sdr.idle_fill=1";
	low = second_ns(sets);
	sets[1] = "switch.low=1";
	lowest = second_ns(sets);
	sets[0] = "sdr.idle_fill=3"; /* the data's */
	high = second_ns(sets);
	assert_true(low < 1.005 * alone);
	/* A packet that is under way when a message's comes, at each of the two ports: 3.4 us each. The first message
	 * has one control packet less on the link, of 134 bytes, if it fills: 107.2 ns. */
	assert_true(lowest >= alone - 108 && lowest - alone < 2 * 3400);
	assert_true(high > 1.1 * alone);
}

/* A host that has something to send again stops: at most one packet, of 3.4 us, is before a message. */
TEST(idle_fill_stops_for_a_message_of_the_host)
{
	const char *sets[] = {"workload.second.senders=0", "workload.second.start=200us", NULL, NULL};
	double low;
	double alone = second_ns(sets);

	sets[2] = "sdr.idle_fill=1";
	low = second_ns(sets);
	assert_true(low >= alone);
	assert_true(low - alone < 4000);
}

TEST(a_ring_of_four_sites_ends)
{
	static const char *const sets[] = {"topology.kind=star", "topology.hosts=4",    "link.delay=6ms",
					   "link.loss=0.001",    "link.loss_place=all", NULL};
	static const char ring[] = "[link]\nrate=400Gbps\n[switch]\nbuffer=256MB\n[transport]\nprotocol=sdr\n"
				   "[cc]\nalgorithm=none\n[sdr]\nchunk=4KiB\n"
				   "[workload.ring]\nkind=ring-allreduce\nsize=4MiB\n[output]\ngoodput_window=none\n";
	struct sim_run run;

	sim_run_do(&run, ring, sets);
	all_arrived(&run);
	assert_int_equal(run.results.flow_count, 24);
	assert_int_equal(run.results.collective_count, 1);
	sim_run_free(&run);
}

/* ---- rates: a link of 200 Mbit/s and 50 ms, whose buffer holds three round trips */

static const char narrow[] = "[topology]\nkind=dumbbell\nhosts=2\n"
			     "[link]\nrate=10Gbps\nfabric_rate=200Mbps\ndelay=0\nfabric_delay=25ms\nloss_place=fabric\n"
			     "[switch]\nbuffer=64MB\nport_limit=3750kB\necn=off\n"
			     "[transport]\nprotocol=sdr\npayload=1024B\n[sdr]\nscheme=tail\nrate=auto\n"
			     "[cc]\nalgorithm=none\n"
			     "[workload.first]\nkind=flow\nsenders=0\nreceivers=2\nsize=50MB\n"
			     "[output]\ngoodput_window=100ms\n";
enum { NARROW_WIRE = 1024 + 102 };

/* What the first flow gets of the link's rate, in payload, from its first packet to the last acknowledgement. */
static double narrow_share(const struct results *r)
{
	const struct results_flow *f = &r->flows[0];

	return (double)f->bytes * 8 / ((double)f->fct_ps / 1e12) / (200e6 * 1024 / NARROW_WIRE);
}

static uint64_t full_drops(const struct results *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->drop_count; i++)
		n += r->drops[i].reason == RESULTS_DROP_BUFFER ? r->drops[i].packets : 0;
	return n;
}

/* Its start-up and the end are a fifth of the time. */
TEST(a_rate_finds_itself_whatever_is_lost_at_random)
{
	static const char *const losses[] = {"link.loss=0", "link.loss=0.01", "link.loss=0.05"};

	for (size_t i = 0; i < 3; i++) {
		const char *const sets[] = {losses[i], NULL};
		struct sim_run run;

		sim_run_do(&run, narrow, sets);
		all_arrived(&run);
		assert_true(narrow_share(&run.results) > 0.75);
		assert_int_equal(full_drops(&run.results), 0);
		sim_run_free(&run);
	}
}

/* Without a limit the buffer is overrun. */
TEST(a_given_rate_is_kept_to_and_none_overruns_a_slow_link)
{
	struct sim_run run;

	sim_run_do(&run, narrow, (const char *const[]){"sdr.rate=90Mbps", NULL});
	all_arrived(&run);
	near(narrow_share(&run.results) * 200e6 * 1024 / NARROW_WIRE, 90e6, 0.05);
	assert_int_equal(full_drops(&run.results), 0);
	sim_run_free(&run);
	sim_run_do(&run, narrow, (const char *const[]){"sdr.rate=0", "workload.first.size=8MB", NULL});
	all_arrived(&run);
	assert_true(full_drops(&run.results) > 4000);
	sim_run_free(&run);
}

/* The narrow link, and more of the scenario. */
static void narrow_do(struct sim_run *run, const char *more, const char *const *sets)
{
	char all[2048];

	snprintf(all, sizeof(all), "%s%s", narrow, more);
	sim_run_do(run, all, sets);
	all_arrived(run);
}

TEST(a_rate_goes_on_behind_a_path_that_was_dead)
{
	static const char *const sets[] = {"link.loss=0.01", NULL};
	struct sim_run run;

	narrow_do(&run, "[failure.dead]\ntime=1s\nlink=4-5\naction=down\nup_after=2s\n", sets);
	/* 50 MB take 2.2 s, and 2 s nothing goes. */
	assert_in_range(run.results.flows[0].fct_ps, UINT64_C(4000000000000), UINT64_C(5000000000000));
	sim_run_free(&run);
}

/* Together they take 4.4 s: the second one, which begins when the first has the link, does not wait for its end. */
TEST(rates_that_find_themselves_share_a_link)
{
	struct sim_run run;

	narrow_do(&run, "[workload.second]\nkind=flow\nsenders=1\nreceivers=3\nsize=30MB\nstart=500ms\n", NULL);
	for (int i = 0; i < 2; i++)
		assert_true(run.results.flows[i].fct_ps < UINT64_C(4000000000000));
	assert_int_equal(full_drops(&run.results), 0);
	sim_run_free(&run);
}

TEST(what_is_not_simulated_is_refused)
{
	static const char *const wrong[][2] = {
		{"cc.algorithm=swift", "cc.algorithm"},
		{"host.ack_delay=1us", "transport.protocol"},
		{"host.idle_qps=1", "host.idle_qps"},
		{"output.cc_trace=all", "output.cc_trace"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *const sets[] = {wrong[i][0], NULL};
		struct sim_run run;

		sim_run_start(&run, text, sets);
		assert_null(run.simulation);
		assert_memory_equal(run.why, wrong[i][1], strlen(wrong[i][1]));
		sim_run_free(&run);
	}
}
