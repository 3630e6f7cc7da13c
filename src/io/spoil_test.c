/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "faults/faults.h"
#include "io/io_fake.h"
#include "io/spoil.h"
#include "space/space.h"
#include "support/test.h"

enum { BURST = 64, US = 1000, MS = 1000000 };

/* ---- packets ---- */

struct rig {
	struct fake *fake;
	struct io *io;
	struct io_counters counters;
	struct faults *faults;
	struct fault_log log;
	uint64_t now_ns;
};

/* A script's engine and a back end, with no wrapper yet. */
static void rig_start(struct rig *r, const struct fault_script *script, uint32_t len)
{
	memset(r, 0, sizeof(*r));
	r->now_ns = 1000 * (uint64_t)MS;
	r->fake = fake_new(len);
	r->faults = faults_new(&space_alloc, &r->log, 0, r->now_ns);
	assert_int_equal(faults_add(r->faults, script, r->now_ns), 0);
}

static void rig_wrap(struct rig *r, uint32_t limit)
{
	assert_int_equal(spoil_open(&r->io, &r->fake->io, &(struct spoil_config){.faults = r->faults, .limit = limit},
				    &r->counters),
			 0);
}

static void script_of(struct rig *r, const char *text, uint32_t len)
{
	struct fault_script script;
	char why[FAULT_WHY_BYTES];

	fault_script_init(&script);
	if (fault_script_read(&script, "test", text, strlen(text), false, &(struct fault_host){.devices = 1}, why,
			      sizeof(why)))
		fail_msg("%s", why);
	rig_start(r, &script, len);
}

static void rig_open(struct rig *r, const char *spec, uint32_t len)
{
	struct fault_script script;
	struct impair_config cfg;
	char why[256];

	assert_int_equal(impair_parse(spec, &cfg, why, sizeof(why)), 0);
	fault_script_init(&script);
	fault_script_impair(&script, &cfg);
	rig_start(r, &script, len);
	rig_wrap(r, script.limit);
}

static void rig_close(struct rig *r)
{
	io_close(r->io);
	faults_free(r->faults);
}

static uint32_t number_of(const struct pkt *p)
{
	return get_be32(p->data);
}

/* Feeds `in` packets and stores the numbers of those that come out, moving time to each deadline.
 */
static size_t run(struct rig *r, uint64_t in, uint32_t *out, size_t max)
{
	size_t n = 0;

	r->fake->pending = in;
	for (;;) {
		struct pkt p[BURST];
		size_t k = io_recv(r->io, p, BURST, r->now_ns);

		for (size_t i = 0; i < k; i++) {
			assert_true(n < max);
			out[n++] = number_of(&p[i]);
		}
		if (k || r->fake->pending)
			continue;
		if (io_deadline_ns(r->io) == UINT64_MAX)
			return n;
		if (io_deadline_ns(r->io) > r->now_ns)
			r->now_ns = io_deadline_ns(r->io);
	}
}

TEST(nothing_is_spoiled_without_a_reason)
{
	static uint32_t out[10000];
	struct rig r;

	rig_open(&r, "", 100);
	assert_int_equal(run(&r, 10000, out, 10000), 10000);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(out[i], i);
	assert_int_equal(io_deadline_ns(r.io), UINT64_MAX);
	rig_close(&r);
}

TEST(shares_are_as_asked)
{
	enum { N = 200000 };
	static uint32_t out[2 * N];
	struct rig r;

	rig_open(&r, "drop=5%,dup=2%,reorder=3%,corrupt=1%,seed=9", 100);

	size_t n = run(&r, N, out, 2 * N);

	/* Five standard deviations of a binomial share. */
	assert_true(fabs((double)r.counters.impair_dropped - N * 0.05) < 5 * sqrt(N * 0.05));
	assert_true(fabs((double)r.counters.impair_duplicated - N * 0.95 * 0.02) < 5 * sqrt(N * 0.02));
	assert_true(fabs((double)r.counters.impair_reordered - N * 0.95 * 0.03) < 5 * sqrt(N * 0.03));
	assert_true(fabs((double)r.counters.impair_corrupted - N * 0.95 * 0.01) < 5 * sqrt(N * 0.01));
	assert_int_equal(r.counters.impair_overflow, 0);
	assert_int_equal(n, N - r.counters.impair_dropped + r.counters.impair_duplicated);
	rig_close(&r);
}

TEST(a_burst_takes_as_many_in_a_row_as_asked)
{
	enum { N = 1000000, LENGTH = 16 };
	static uint32_t out[N];
	uint32_t bursts = 0;
	struct rig r;
	size_t n;

	rig_open(&r, "drop=5%,burst=16,seed=9", 100);
	n = run(&r, N, out, N);
	for (size_t i = 1; i < n; i++)
		bursts += out[i] != out[i - 1] + 1;
	/* Some 3100 bursts, whose lengths deviate by about their mean. */
	assert_true(fabs((double)r.counters.impair_dropped / bursts - LENGTH) < 5 * LENGTH / sqrt(3100));
	assert_true(fabs((double)r.counters.impair_dropped / N - 0.05) < 5 * 0.05 * sqrt(2.0 / 3100));
	rig_close(&r);
	rig_open(&r, "drop=1,burst=16", 100);
	assert_int_equal(run(&r, N, out, N), 0);
	rig_close(&r);
}

/* Of packets that come one in 10 ms, bursts that would last for ever take no second one. */
TEST(a_silence_ends_a_burst)
{
	enum { N = 10000 };
	static uint32_t out[N];
	struct rig r;

	rig_open(&r, "drop=50%,burst=1000000", 100);
	for (int i = 0; i < N; i++) {
		run(&r, 1, out, N);
		r.now_ns += 10 * (uint64_t)MS;
	}
	assert_true(r.counters.impair_dropped < 5);
	rig_close(&r);
}

TEST(a_seed_repeats_and_another_differs)
{
	enum { N = 5000 };
	static uint32_t a[2 * N], b[2 * N], c[2 * N];
	static const char spec[] = "drop=5%,dup=2%,reorder=3%,jitter=100us,seed=";
	char text[128];
	uint32_t *outs[] = {a, b, c};
	size_t n[3];

	for (int i = 0; i < 3; i++) {
		struct rig r;

		snprintf(text, sizeof(text), "%s%d", spec, i == 2 ? 8 : 7);
		rig_open(&r, text, 100);
		n[i] = run(&r, N, outs[i], 2 * N);
		rig_close(&r);
	}
	assert_int_equal(n[0], n[1]);
	assert_memory_equal(a, b, n[0] * sizeof(a[0]));
	assert_true(n[0] != n[2] || memcmp(a, c, n[0] * sizeof(a[0])) != 0);
}

/* The seed alone decides which packets are lost, not the other impairments. */
TEST(losses_do_not_depend_on_other_keys)
{
	enum { N = 5000 };
	static uint32_t out[2 * N];
	static bool seen[2][N];
	static const char *const specs[] = {"drop=5%", "drop=5%,dup=10%,reorder=20%,ce=30%,jitter=1ms"};

	for (int i = 0; i < 2; i++) {
		struct rig r;

		rig_open(&r, specs[i], 100);

		size_t n = run(&r, N, out, 2 * N);

		for (size_t k = 0; k < n; k++)
			seen[i][out[k]] = true;
		rig_close(&r);
	}
	assert_memory_equal(seen[0], seen[1], sizeof(seen[0]));
}

TEST(a_reordered_packet_is_overtaken_by_at_most_eight)
{
	enum { N = 20000 };
	static uint32_t out[N];
	struct rig r;
	uint32_t late = 0;

	rig_open(&r, "reorder=5%", 100);
	assert_int_equal(run(&r, N, out, N), N);
	for (uint32_t i = 0; i < N; i++) {
		/* Others that step aside meanwhile shift it a little further. */
		assert_true(labs((long)out[i] - (long)i) <= 24);
		for (uint32_t k = i + 1; k < N && k < i + 32; k++) {
			if (out[k] < out[i]) {
				late++;
				break;
			}
		}
	}
	assert_true(late > N / 50);
	rig_close(&r);
}

TEST(the_last_reordered_packet_comes_after_a_millisecond)
{
	struct rig r;
	struct pkt p[BURST];
	uint64_t start;

	rig_open(&r, "reorder=100%", 100);
	start = r.now_ns;
	r.fake->pending = 3;
	assert_int_equal(io_recv(r.io, p, BURST, start), 0);
	assert_int_equal(io_deadline_ns(r.io), start + MS);
	assert_int_equal(io_recv(r.io, p, BURST, start + MS - 1), 0);
	assert_int_equal(io_recv(r.io, p, BURST, start + MS), 3);
	assert_int_equal(io_recv(r.io, p, BURST, start + MS), 0);
	assert_int_equal(io_deadline_ns(r.io), UINT64_MAX);
	rig_close(&r);
}

TEST(corruption_flips_one_bit)
{
	struct rig r;

	rig_open(&r, "corrupt=1", 64);
	r.fake->pending = 1000;
	for (uint32_t i = 0; i < 1000;) {
		struct pkt p[BURST];
		size_t n = io_recv(r.io, p, BURST, r.now_ns);

		assert_true(n > 0);
		for (size_t k = 0; k < n; k++, i++) {
			uint8_t want[64] = {0};
			int bits = 0;

			put_be32(want, i);
			for (size_t b = 0; b < 64; b++)
				bits += __builtin_popcount(want[b] ^ p[k].data[b]);
			assert_int_equal(bits, 1);
		}
	}
	rig_close(&r);
}

/* RFC 3168 s5: only ECN-capable packets are marked, and nothing else of the TOS changes. */
TEST(ecn_capable_packets_are_marked)
{
	static const struct {
		uint8_t tos, marked;
	} rows[] = {{0, 0}, {0xb8, 0xb8}, {1, 3}, {2, 3}, {0xba, 0xbb}, {3, 3}};
	static const char *const specs[] = {"ce=1", "ce=1,delay=1ms", "ce=1,dup=1", "ce=1,reorder=1"};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t k = 0; k < sizeof(specs) / sizeof(specs[0]); k++) {
			struct rig r;
			struct pkt p[BURST];
			size_t got = 0, want = k == 2 ? 20 : 10;

			rig_open(&r, specs[k], 100);
			r.fake->flow.tos = rows[i].tos;
			r.fake->flow.dport = i & 1 ? 4791 : 4794;
			r.fake->datagram = 10;
			r.fake->pending = 10;
			while (got < want) {
				size_t n = io_recv(r.io, p, BURST, r.now_ns);
				struct flow f = r.fake->flow;

				f.tos = rows[i].marked;
				for (size_t m = 0; m < n; m++)
					assert_memory_equal(p[m].flow, &f, sizeof(f));
				got += n;
				if (!n)
					r.now_ns += MS;
			}
			assert_int_equal(got, want);
			assert_int_equal(r.fake->flow.tos, rows[i].tos);
			assert_int_equal(r.counters.impair_marked, rows[i].tos == rows[i].marked ? 0 : 10);
			rig_close(&r);
		}
	}
}

/* If some packets of a datagram are marked, each has its own flow; the others keep the shared one. */
TEST(a_share_of_a_datagram_is_marked)
{
	enum { N = 100000 };
	struct rig r;
	size_t marked = 0;

	rig_open(&r, "ce=20%,seed=3", 100);
	r.fake->flow.tos = 2;
	r.fake->datagram = BURST;
	r.fake->pending = N;
	for (size_t got = 0; got < N;) {
		struct pkt p[BURST];
		size_t n = io_recv(r.io, p, BURST, r.now_ns);

		for (size_t i = 0; i < n; i++) {
			assert_int_equal(number_of(&p[i]), got + i);
			assert_true(p[i].flow->tos == 2 || p[i].flow->tos == 3);
			marked += p[i].flow->tos == 3;
			assert_in_range(p[i].train, 1, n - i);
			for (size_t k = 1; k < p[i].train; k++)
				assert_ptr_equal(p[i + k].flow, p[i].flow);
		}
		got += n;
	}
	assert_int_equal(r.counters.impair_marked, marked);
	assert_true(fabs((double)marked - N * 0.2) < 5 * sqrt(N * 0.2));
	rig_close(&r);
}

TEST(delay_is_exact_and_keeps_order)
{
	struct rig r;
	struct pkt p[BURST];
	uint64_t start;

	rig_open(&r, "delay=5ms", 100);
	start = r.now_ns;
	r.fake->pending = 10;
	assert_int_equal(io_recv(r.io, p, BURST, start), 0);
	r.fake->pending = 10;
	assert_int_equal(io_recv(r.io, p, BURST, start + 10), 0);
	assert_int_equal(io_deadline_ns(r.io), start + 5 * MS);
	assert_int_equal(io_recv(r.io, p, BURST, start + 5 * MS), 10);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(number_of(&p[i]), i);
		assert_int_equal(p[i].train, 1);
		assert_memory_equal(p[i].flow, &r.fake->flow, sizeof(r.fake->flow));
	}
	assert_int_equal(io_deadline_ns(r.io), start + 5 * MS + 10);
	/* Less room than there are packets: the others follow. */
	assert_int_equal(io_recv(r.io, p, 3, start + 6 * MS), 3);
	assert_int_equal(number_of(&p[0]), 10);
	assert_int_equal(io_recv(r.io, p, BURST, start + 6 * MS), 7);
	assert_int_equal(number_of(&p[6]), 19);
	rig_close(&r);
}

static uint64_t seven_ms_later(const void *ctx)
{
	return 1007 * (uint64_t)MS;
}

/* Between the reading of the clock and the packets the process may have had no processor. */
TEST(delay_begins_when_a_packet_is_taken)
{
	struct pkt p[BURST];
	struct io *above;
	struct rig r;

	script_of(&r, "in each delay 5ms", 100);
	assert_int_equal(
		spoil_open(&above, &r.fake->io,
			   &(struct spoil_config){.faults = r.faults, .limit = 10, .clock.now_ns = seven_ms_later},
			   &r.counters),
		0);
	r.fake->pending = 3;
	assert_int_equal(io_recv(above, p, BURST, 1000 * (uint64_t)MS), 0);
	assert_int_equal(io_deadline_ns(above), 1012 * (uint64_t)MS);
	assert_int_equal(io_recv(above, p, BURST, 1012 * (uint64_t)MS), 3);
	io_close(above);
	faults_free(r.faults);
}

TEST(rate_spaces_packets_out)
{
	enum { N = 1000 };
	static uint32_t out[N];
	struct rig r;
	uint64_t start;

	rig_open(&r, "rate=1G", 1250);
	start = r.now_ns;
	assert_int_equal(run(&r, N, out, N), N);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(out[i], i);
	/* 1250 bytes are 10 us at 1 Gbit/s. */
	assert_int_equal(r.now_ns - start, N * 10 * US);
	rig_close(&r);
}

TEST(a_full_pool_drops_the_tail)
{
	enum { N = 100 };
	static uint32_t out[N];
	struct rig r;

	rig_open(&r, "delay=1ms,limit=10", 100);
	assert_int_equal(run(&r, N, out, N), 10);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(out[i], i);
	assert_int_equal(r.counters.impair_overflow, N - 10);
	/* The cells come back. */
	assert_int_equal(run(&r, 5, out, N), 5);
	assert_int_equal(out[0], N);
	rig_close(&r);
}

TEST(trains_are_counted_anew)
{
	struct rig r;
	struct pkt p[BURST];
	size_t n;

	rig_open(&r, "drop=20%", 100);
	r.fake->pending = BURST;
	r.fake->datagram = BURST;
	n = io_recv(r.io, p, BURST, r.now_ns);
	assert_true(n > 0 && n < BURST);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(p[i].train, n - i);
	rig_close(&r);
}

TEST(everything_lost_is_an_empty_queue)
{
	struct rig r;
	struct pkt p[BURST];

	rig_open(&r, "drop=1", 100);
	r.fake->pending = 1000;
	assert_int_equal(io_recv(r.io, p, BURST, r.now_ns), 0);
	assert_int_equal(r.fake->pending, 0);
	assert_int_equal(r.counters.impair_dropped, 1000);
	rig_close(&r);
}

TEST(sending_is_not_touched)
{
	struct rig r;
	struct pkt p[BURST] = {0};
	int fd;

	rig_open(&r, "drop=1", 100);
	assert_int_equal(io_send(r.io, p, BURST, r.now_ns), BURST);
	r.fake->send_max = 3;
	assert_int_equal(io_send(r.io, p, BURST, r.now_ns), 3);
	assert_int_equal(r.fake->sent, BURST + 3);
	assert_int_equal(io_train_max(r.io), 7);
	assert_int_equal(io_fds(r.io, &fd, 1), 1);
	assert_int_equal(fd, 42);
	rig_close(&r);
}

/* ---- scripts ---- */

enum { OUT_MAX = 64 };

/* Sends packets with numbers from 0 on, one at a time, and notes what reaches the network. */
static size_t send_all(struct rig *r, const char *script, uint32_t count, uint32_t out[OUT_MAX])
{
	static uint8_t bytes[OUT_MAX][100];
	struct pkt p[OUT_MAX];

	script_of(r, script, 100);
	rig_wrap(r, 64);
	r->fake->noted = out;
	r->fake->noted_max = OUT_MAX;
	for (uint32_t i = 0; i < count; i++) {
		memset(bytes[i], 0, sizeof(bytes[i]));
		put_be32(bytes[i], i);
		p[i] = (struct pkt){
			.data = bytes[i], .flow = &r->fake->flow, .len = 100, .train = (uint16_t)(count - i)};
	}
	assert_int_equal(io_send(r->io, p, count, r->now_ns), count);
	while (io_deadline_ns(r->io) != UINT64_MAX) {
		struct pkt none[1];

		if (io_deadline_ns(r->io) > r->now_ns)
			r->now_ns = io_deadline_ns(r->io);
		assert_int_equal(io_recv(r->io, none, 1, r->now_ns), 0);
	}
	return r->fake->sent;
}

static void check_sent(const char *script, uint32_t count, const uint32_t *want, size_t want_count)
{
	uint32_t out[OUT_MAX];
	struct rig r;

	assert_int_equal(send_all(&r, script, count, out), want_count);
	assert_memory_equal(out, want, want_count * sizeof(*want));
	rig_close(&r);
}

#define SENT(script, count, ...) \
	check_sent(script, count, (uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

TEST(rules_act_on_packets_that_leave)
{
	SENT("link up", 4, 0, 1, 2, 3);
	SENT("packet 2 out drop", 4, 0, 2, 3);
	SENT("packet 2 out double", 4, 0, 1, 1, 2, 3);
	SENT("packet 2 out swap", 4, 0, 2, 1, 3);
	SENT("packet 2 out delay 5ms", 4, 0, 2, 3, 1);
	SENT("packet 2 in drop", 4, 0, 1, 2, 3);
	SENT("after 2 packets out drop", 4, 0, 1, 3);
	SENT("every 2 packets out drop", 6, 0, 1, 3, 5);
}

/* What the kernel has no room for waits here, and goes later in order. */
TEST(a_full_kernel_loses_nothing)
{
	static uint8_t bytes[100];
	struct pkt p = {.data = bytes, .flow = NULL, .len = sizeof(bytes), .train = 1}, none[1];
	struct rig r;

	script_of(&r, "packet 1000 out drop", 100);
	rig_wrap(&r, 64);
	p.flow = &r.fake->flow;
	r.fake->send_max = 0;
	assert_int_equal(io_send(r.io, &p, 1, r.now_ns), 1);
	assert_int_equal(r.fake->sent, 0);
	r.fake->send_max = 10;
	assert_int_equal(io_recv(r.io, none, 1, io_deadline_ns(r.io)), 0);
	assert_int_equal(r.fake->sent, 1);
	rig_close(&r);
}

/* A train that has lost a packet is two; where single packets are picked none is made. */
TEST(a_train_that_is_cut_is_two)
{
	uint32_t out[OUT_MAX];
	struct rig r;

	send_all(&r, "packet 3 out drop", 6, out);
	assert_int_equal(r.fake->trains, 2);
	assert_int_equal(io_train_max(r.io), 1);
	rig_close(&r);
}

TEST(a_packet_through_memory_is_dropped_or_left_alone)
{
	struct pkt p[BURST];
	struct rig r;

	script_of(&r, "packet 2 in corrupt\npacket 3 in delay 5ms\npacket 4 in double\npacket 5 in drop", 100);
	rig_wrap(&r, 64);
	r.fake->flow.neighbour = 5;
	r.fake->pending = 6;
	assert_int_equal(io_recv(r.io, p, BURST, r.now_ns), 4);
	static const uint32_t left[] = {0, 2, 3, 5};

	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(number_of(&p[i]), left[i]);
	assert_int_equal(io_deadline_ns(r.io), UINT64_MAX);
	rig_close(&r);
}
