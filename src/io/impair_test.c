/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "io/impair.h"
#include "io/io_fake.h"
#include "support/test.h"

enum { BURST = 64, US = 1000, MS = 1000000 };

/* ---- the specification ---- */

TEST(good_specifications_are_read)
{
	static const struct {
		const char *text;
		struct impair_config want;
	} rows[] = {
		{"", {.limit = 8192, .seed = 1}},
		{"drop=1%,dup=0.5%,reorder=2%,corrupt=0.1%,delay=5ms,jitter=1ms,rate=1G,seed=42",
		 {.drop = 0.01,
		  .dup = 0.005,
		  .reorder = 0.02,
		  .corrupt = 0.001,
		  .delay_ns = 5 * MS,
		  .jitter_ns = MS,
		  .rate_bps = 1000000000,
		  .limit = 8192,
		  .seed = 42}},
		{"drop=1e-3", {.drop = 0.001, .limit = 8192, .seed = 1}},
		{"drop=.5", {.drop = 0.5, .limit = 8192, .seed = 1}},
		{"drop=0.1", {.drop = 0.1, .limit = 8192, .seed = 1}},
		{"delay=1.5e1ms", {.delay_ns = 15000000, .limit = 8192, .seed = 1}},
		{"delay=0.4ns,jitter=0.5ns", {.jitter_ns = 1, .limit = 8192, .seed = 1}},
		{"rate=10T", {.rate_bps = 10000000000000, .limit = 8192, .seed = 1}},
		{"rate=1500", {.rate_bps = 1500, .limit = 8192, .seed = 1}},
		{"rate=25Gbps", {.rate_bps = 25000000000, .limit = 8192, .seed = 1}},
		{"seed=0x1F", {.limit = 8192, .seed = 31}},
		{"seed=010", {.limit = 8192, .seed = 10}},
		{"drop=0.25", {.drop = 0.25, .limit = 8192, .seed = 1}},
		{"drop=100%", {.drop = 1, .limit = 8192, .seed = 1}},
		{"drop=1%,burst=16", {.drop = 0.01, .burst = 16, .limit = 8192, .seed = 1}},
		{"ce=3%", {.ce = 0.03, .limit = 8192, .seed = 1}},
		{"delay=0", {.limit = 8192, .seed = 1}},
		{"delay=1.5us", {.delay_ns = 1500, .limit = 8192, .seed = 1}},
		{"delay=2s", {.delay_ns = 2000000000, .limit = 8192, .seed = 1}},
		{"rate=64k,limit=10", {.rate_bps = 64000, .limit = 10, .seed = 1}},
		{"rate=2.5M", {.rate_bps = 2500000, .limit = 8192, .seed = 1}},
		{"seed=0xffffffffffffffff", {.limit = 8192, .seed = UINT64_MAX}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct impair_config got;
		char why[256] = "";

		if (impair_parse(rows[i].text, &got, why, sizeof(why)) != 0)
			fail_msg("%s: %s", rows[i].text, why);
		assert_true(fabs(got.drop - rows[i].want.drop) < 1e-12);
		assert_true(fabs(got.dup - rows[i].want.dup) < 1e-12);
		assert_true(fabs(got.reorder - rows[i].want.reorder) < 1e-12);
		assert_true(fabs(got.corrupt - rows[i].want.corrupt) < 1e-12);
		assert_true(fabs(got.ce - rows[i].want.ce) < 1e-12);
		assert_int_equal(got.delay_ns, rows[i].want.delay_ns);
		assert_int_equal(got.jitter_ns, rows[i].want.jitter_ns);
		assert_int_equal(got.rate_bps, rows[i].want.rate_bps);
		assert_int_equal(got.burst, rows[i].want.burst);
		assert_int_equal(got.limit, rows[i].want.limit);
		assert_int_equal(got.seed, rows[i].want.seed);
	}
}

TEST(bad_specifications_are_explained)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"drop", "\"drop\" is not key=value"},
		{"drop=1%,", "\"\" is not key=value"},
		{",", "is not key=value"},
		{"lose=1%", "\"lose\" is not a key; the keys are drop, burst, dup, reorder, corrupt, ce, delay"},
		{"drop=2", "drop=2: must be a probability: 0 to 1, or 0% to 100%"},
		{"drop=101%", "drop=101%: must be"},
		{"drop=-1", "drop=-1: must be"},
		{"drop=nan", "drop=nan: must be"},
		{"drop=inf", "drop=inf: must be"},
		{"drop=0x1", "drop=0x1: must be"},
		{"drop= 1", "drop= 1: must be"},
		{"drop=1%x", "drop=1%x: must be"},
		{"drop=", "drop=: must be"},
		{"ce=2", "ce=2: must be a probability: 0 to 1, or 0% to 100%"},
		{"drop=1%,drop=2%", "drop is given twice"},
		{"delay=5", "delay=5: must be a time up to 60s with its unit: ns, us, ms or s"},
		{"delay=61s", "delay=61s: must be"},
		{"jitter=1h", "jitter=1h: must be"},
		{"rate=0", "rate=0: must be bits a second, 1k to 10T, with k, M, G or T"},
		{"rate=1Gbit", "rate=1Gbit: must be"},
		{"rate=1e30", "rate=1e30: must be"},
		{"seed=0x", "seed=0x: must be"},
		{"burst=0", "burst=0: must be packets, 1 to 1000000"},
		{"burst=1000001", "burst=1000001: must be packets"},
		{"limit=0", "limit=0: must be packets, 1 to 65536"},
		{"limit=65537", "limit=65537: must be"},
		{"seed=-1", "seed=-1: must be"},
		{"seed=18446744073709551616", "must be an unsigned 64-bit integer"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct impair_config got = {.limit = 77};
		char why[256] = "";

		assert_int_equal(impair_parse(rows[i].text, &got, why, sizeof(why)), -EINVAL);
		if (!strstr(why, rows[i].says))
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, why, rows[i].says);
		assert_int_equal(got.limit, 77);
	}
}

/* ---- packets ---- */

struct rig {
	struct fake *fake;
	struct io *io;
	struct io_counters counters;
	uint64_t now_ns;
};

static struct rig *rig_open(struct rig *r, const char *spec, uint32_t len)
{
	struct impair_config cfg;
	char why[256];

	memset(r, 0, sizeof(*r));
	r->now_ns = 1000 * (uint64_t)MS;
	r->fake = fake_new(len);
	assert_int_equal(impair_parse(spec, &cfg, why, sizeof(why)), 0);
	assert_int_equal(impair_open(&r->io, &r->fake->io, &cfg, &r->counters), 0);
	return r;
}

/* What is before it and the packets' length are given. */
#define RIG_TEST(name, spec, len) TEST_OF(name, struct rig *, r, rig_open(&(struct rig){0}, spec, len), io_close(r->io))

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

RIG_TEST(nothing_is_spoiled_without_a_reason, "", 100)
{
	static uint32_t out[10000];

	assert_int_equal(run(r, 10000, out, 10000), 10000);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(out[i], i);
	assert_int_equal(io_deadline_ns(r->io), UINT64_MAX);
}

RIG_TEST(shares_are_as_asked, "drop=5%,dup=2%,reorder=3%,corrupt=1%,seed=9", 100)
{
	enum { N = 200000 };
	static uint32_t out[2 * N];

	size_t n = run(r, N, out, 2 * N);

	/* Five standard deviations of a binomial share. */
	assert_true(fabs((double)r->counters.impair_dropped - N * 0.05) < 5 * sqrt(N * 0.05));
	assert_true(fabs((double)r->counters.impair_duplicated - N * 0.95 * 0.02) < 5 * sqrt(N * 0.02));
	assert_true(fabs((double)r->counters.impair_reordered - N * 0.95 * 0.03) < 5 * sqrt(N * 0.03));
	assert_true(fabs((double)r->counters.impair_corrupted - N * 0.95 * 0.01) < 5 * sqrt(N * 0.01));
	assert_int_equal(r->counters.impair_overflow, 0);
	assert_int_equal(n, N - r->counters.impair_dropped + r->counters.impair_duplicated);
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
	io_close(r.io);
	rig_open(&r, "drop=1,burst=16", 100);
	assert_int_equal(run(&r, N, out, N), 0);
	io_close(r.io);
}

/* Of packets that come one in 10 ms, bursts that would last for ever take no second one. */
RIG_TEST(a_silence_ends_a_burst, "drop=50%,burst=1000000", 100)
{
	enum { N = 10000 };
	static uint32_t out[N];

	for (int i = 0; i < N; i++) {
		run(r, 1, out, N);
		r->now_ns += 10 * (uint64_t)MS;
	}
	assert_true(r->counters.impair_dropped < 5);
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
		io_close(r.io);
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
		io_close(r.io);
	}
	assert_memory_equal(seen[0], seen[1], sizeof(seen[0]));
}

RIG_TEST(a_reordered_packet_is_overtaken_by_at_most_eight, "reorder=5%", 100)
{
	enum { N = 20000 };
	static uint32_t out[N];
	uint32_t late = 0;

	assert_int_equal(run(r, N, out, N), N);
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
}

RIG_TEST(the_last_reordered_packet_comes_after_a_millisecond, "reorder=100%", 100)
{
	struct pkt p[BURST];
	uint64_t start = r->now_ns;

	r->fake->pending = 3;
	assert_int_equal(io_recv(r->io, p, BURST, start), 0);
	assert_int_equal(io_deadline_ns(r->io), start + MS);
	assert_int_equal(io_recv(r->io, p, BURST, start + MS - 1), 0);
	assert_int_equal(io_recv(r->io, p, BURST, start + MS), 3);
	assert_int_equal(io_recv(r->io, p, BURST, start + MS), 0);
	assert_int_equal(io_deadline_ns(r->io), UINT64_MAX);
}

RIG_TEST(corruption_flips_one_bit, "corrupt=1", 64)
{
	r->fake->pending = 1000;
	for (uint32_t i = 0; i < 1000;) {
		struct pkt p[BURST];
		size_t n = io_recv(r->io, p, BURST, r->now_ns);

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
			io_close(r.io);
		}
	}
}

/* If some packets of a datagram are marked, each has its own flow; the others keep the shared one. */
RIG_TEST(a_share_of_a_datagram_is_marked, "ce=20%,seed=3", 100)
{
	enum { N = 100000 };
	size_t marked = 0;

	r->fake->flow.tos = 2;
	r->fake->datagram = BURST;
	r->fake->pending = N;
	for (size_t got = 0; got < N;) {
		struct pkt p[BURST];
		size_t n = io_recv(r->io, p, BURST, r->now_ns);

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
	assert_int_equal(r->counters.impair_marked, marked);
	assert_true(fabs((double)marked - N * 0.2) < 5 * sqrt(N * 0.2));
}

RIG_TEST(delay_is_exact_and_keeps_order, "delay=5ms", 100)
{
	struct pkt p[BURST];
	uint64_t start = r->now_ns;

	r->fake->pending = 10;
	assert_int_equal(io_recv(r->io, p, BURST, start), 0);
	r->fake->pending = 10;
	assert_int_equal(io_recv(r->io, p, BURST, start + 10), 0);
	assert_int_equal(io_deadline_ns(r->io), start + 5 * MS);
	assert_int_equal(io_recv(r->io, p, BURST, start + 5 * MS), 10);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(number_of(&p[i]), i);
		assert_int_equal(p[i].train, 1);
		assert_memory_equal(p[i].flow, &r->fake->flow, sizeof(r->fake->flow));
	}
	assert_int_equal(io_deadline_ns(r->io), start + 5 * MS + 10);
	/* Less room than there are packets: the others follow. */
	assert_int_equal(io_recv(r->io, p, 3, start + 6 * MS), 3);
	assert_int_equal(number_of(&p[0]), 10);
	assert_int_equal(io_recv(r->io, p, BURST, start + 6 * MS), 7);
	assert_int_equal(number_of(&p[6]), 19);
}

static uint64_t seven_ms_later(const void *ctx)
{
	return 1007 * (uint64_t)MS;
}

/* Between the reading of the clock and the packets the process may have had no processor. */
TEST(delay_begins_when_a_packet_is_taken)
{
	struct impair_config cfg;
	struct pkt p[BURST];
	struct rig r;
	char why[256];

	memset(&r, 0, sizeof(r));
	r.fake = fake_new(100);
	assert_int_equal(impair_parse("delay=5ms", &cfg, why, sizeof(why)), 0);
	cfg.clock.now_ns = seven_ms_later;
	assert_int_equal(impair_open(&r.io, &r.fake->io, &cfg, &r.counters), 0);
	r.fake->pending = 3;
	assert_int_equal(io_recv(r.io, p, BURST, 1000 * (uint64_t)MS), 0);
	assert_int_equal(io_deadline_ns(r.io), 1012 * (uint64_t)MS);
	assert_int_equal(io_recv(r.io, p, BURST, 1012 * (uint64_t)MS), 3);
	io_close(r.io);
}

RIG_TEST(rate_spaces_packets_out, "rate=1G", 1250)
{
	enum { N = 1000 };
	static uint32_t out[N];
	uint64_t start = r->now_ns;

	assert_int_equal(run(r, N, out, N), N);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(out[i], i);
	/* 1250 bytes are 10 us at 1 Gbit/s. */
	assert_int_equal(r->now_ns - start, N * 10 * US);
}

RIG_TEST(a_full_pool_drops_the_tail, "delay=1ms,limit=10", 100)
{
	enum { N = 100 };
	static uint32_t out[N];

	assert_int_equal(run(r, N, out, N), 10);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(out[i], i);
	assert_int_equal(r->counters.impair_overflow, N - 10);
	/* The cells come back. */
	assert_int_equal(run(r, 5, out, N), 5);
	assert_int_equal(out[0], N);
}

RIG_TEST(trains_are_counted_anew, "drop=20%", 100)
{
	struct pkt p[BURST];
	size_t n;

	r->fake->pending = BURST;
	r->fake->datagram = BURST;
	n = io_recv(r->io, p, BURST, r->now_ns);
	assert_true(n > 0 && n < BURST);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(p[i].train, n - i);
}

RIG_TEST(everything_lost_is_an_empty_queue, "drop=1", 100)
{
	struct pkt p[BURST];

	r->fake->pending = 1000;
	assert_int_equal(io_recv(r->io, p, BURST, r->now_ns), 0);
	assert_int_equal(r->fake->pending, 0);
	assert_int_equal(r->counters.impair_dropped, 1000);
}

RIG_TEST(sending_is_not_touched, "drop=1", 100)
{
	struct pkt p[BURST] = {0};
	int fd;

	assert_int_equal(io_send(r->io, p, BURST, r->now_ns), BURST);
	r->fake->send_max = 3;
	assert_int_equal(io_send(r->io, p, BURST, r->now_ns), 3);
	assert_int_equal(r->fake->sent, BURST + 3);
	assert_int_equal(io_train_max(r->io), 7);
	assert_int_equal(io_fds(r->io, &fd, 1), 1);
	assert_int_equal(fd, 42);
}
