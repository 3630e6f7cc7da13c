/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sdr_write_bw: how fast messages go from the client to the server, and how many chunks are lost on
 * the way. Nothing is sent again, unless a scheme is named. The server looks at the bitmap of the oldest message; when
 * it is full, or no more of it comes, it says so over TCP, and the client may send one more.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "sdr/meet.h"
#include "sdr/chosen_scheme.h"

/* The server gives a message up of which nothing arrived for a while, although later ones have
 * begun, or when nothing arrives at all. */
enum { OVERTAKEN_NS = 5000000, SILENT_NS = 200000000, ACKS_MAX = 64, STUCK_S = 30 };

/* The server's report on a message, over TCP; big-endian. */
struct ack {
	uint32_t missing, wrong; /* chunks */
};

/* Settings that the client sends and the server takes over, in the order of the wire. */
enum plan_number {
	PLAN_SIZE,
	PLAN_ITERS,
	PLAN_WARMUP,
	PLAN_IN_FLIGHT,
	PLAN_MTU,
	PLAN_CHUNK,
	PLAN_CHANNELS,
	PLAN_GENERATIONS,
	PLAN_RC,
	PLAN_VERIFY,
	PLAN_SCHEME, /* 0: nothing is repaired; else one more than an enum scheme */
	PLAN_FILL,
	PLAN_NUMBERS
};

struct options {
	const char *host; /* NULL: server */
	const char *device;
	uint64_t port, ib_port, gid_index, workers, batch, rate_mbps;
	uint64_t plan[PLAN_NUMBERS];
};

static struct {
	struct options o;
	int tcp;
	struct verbena_sdr_context *ctx;
	struct verbena_sdr_qp *qp;
	struct verbena_sdr_mr *mr;
	uint8_t *memory; /* a message for each under way; the client's is one, unless it is verified
			  */
	uint32_t lkey;
	uint64_t size, depth, total, chunks;
	struct scheme_way way;
} g = {.o = {.port = 18516,
	     .ib_port = 1,
	     .batch = 8,
	     .plan = {8 << 20, 1000, 10, 128, 0, 65536, 8, 4, [PLAN_FILL] = 0}}};

/* Options that perftest has too are called as they are there. */
static const struct option_row rows[] = {
	/* clang-format off */
	{'s', "size", OPTION_U64, &g.o.plan[PLAN_SIZE], 1, 1 << 30, NULL, "bytes of a message *"},
	{'n', "iters", OPTION_U64, &g.o.plan[PLAN_ITERS], 1, UINT32_MAX, NULL, "messages *"},
	{'w', "warmup", OPTION_U64, &g.o.plan[PLAN_WARMUP], 0, UINT32_MAX, NULL, "messages before time is taken *"},
	{'t', "tx-depth", OPTION_POWER, &g.o.plan[PLAN_IN_FLIGHT], 1, 1024, NULL, "messages under way *"},
	{'m', "mtu", OPTION_POWER, &g.o.plan[PLAN_MTU], 0, 4096, NULL, "bytes of a packet; 0: what both ports carry *"},
	{'k', "chunk", OPTION_POWER, &g.o.plan[PLAN_CHUNK], 64, 262144, NULL, "bytes of a chunk *"},
	{'c', "channels", OPTION_U64, &g.o.plan[PLAN_CHANNELS], 1, 128, NULL, "channels *"},
	{'g', "generations", OPTION_U64, &g.o.plan[PLAN_GENERATIONS], 1, 16, NULL, "sets of queue pairs *"},
	{'p', "port", OPTION_U64, &g.o.port, 1, 65535, NULL, "TCP port to meet on"},
	{'i', "ib-port", OPTION_U64, &g.o.ib_port, 1, 255, NULL, "port of the device"},
	{'x', "gid-index", OPTION_U64, &g.o.gid_index, 0, 255, NULL, "index in the port's GID table"},
	{'T', "threads", OPTION_U64, &g.o.workers, 0, 128, NULL, "threads that watch the device; 0: the program itself"},
	{'b', "batch", OPTION_U64, &g.o.batch, 1, 64, NULL, "packets posted at a time"},
	{'r', "rate", OPTION_U64, &g.o.rate_mbps, 0, UINT32_MAX, NULL, "Mbit/s that are sent at most; 0: no limit"},
	{'d', "ib-dev", OPTION_TEXT, &g.o.device, 0, 0, "NAME", "the device (the first)"},
	{'R', "rc", OPTION_ONE, &g.o.plan[PLAN_RC], 0, 0, NULL, "reliable connections, which lose nothing *"},
	{'V', "verify", OPTION_ONE, &g.o.plan[PLAN_VERIFY], 0, 0, NULL, "every chunk that arrives is compared with what was sent *"},
	{'S', "scheme", OPTION_WORD, &g.o.plan[PLAN_SCHEME], 0, 0, "none|" SCHEME_NAMES, "how what is lost is repaired *"},
	{'F', "idle-fill", OPTION_ONE, &g.o.plan[PLAN_FILL], 0, 0, NULL, "with --scheme tail: parities go on until all has arrived *"},
	/* clang-format on */
};

static bool fills(const uint64_t *plan)
{
	return !plan[PLAN_RC] && plan[PLAN_SCHEME] && scheme_fills((enum scheme)(plan[PLAN_SCHEME] - 1));
}

static void command_read(int argc, char **argv)
{
	int first = options_read(
		argc, argv, rows, OPTION_COUNT(rows),
		"Usage: sdr_write_bw [OPTION ...] [HOST]\n"
		"Sends messages whose chunks complete one by one, and tells how fast and how many were lost.\n"
		"Without HOST it is the server. The options marked * are the client's.\n\n");

	if (argc - first > 1)
		die("one host at most, not '%s' too", argv[first + 1]);
	if (g.o.plan[PLAN_FILL] && !fills(g.o.plan))
		die("--idle-fill goes with --scheme tail or auto");
	g.o.host = argv[first];
}

/* Whether a scheme repairs what is lost. */
static bool repairs(void)
{
	return g.o.plan[PLAN_SCHEME];
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* What message n has at an offset, which is a multiple of 8. */
static uint64_t word_at(uint64_t n, uint64_t offset)
{
	return mix(n << 32 ^ offset);
}

static void fill(uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < g.size; i += 8) {
		uint64_t v = word_at(n, i);

		memcpy(p + i, &v, g.size - i < 8 ? g.size - i : 8);
	}
}

static bool chunk_right(const uint8_t *p, uint64_t n, uint64_t chunk)
{
	uint64_t end = (chunk + 1) * g.o.plan[PLAN_CHUNK];

	if (end > g.size)
		end = g.size;
	for (uint64_t i = chunk * g.o.plan[PLAN_CHUNK]; i < end; i += 8) {
		uint64_t v = word_at(n, i);

		if (memcmp(p + i, &v, end - i < 8 ? end - i : 8))
			return false;
	}
	return true;
}

static uint8_t *buffer(uint64_t n)
{
	return g.memory + (g.o.host && !g.o.plan[PLAN_VERIFY] ? 0 : n % g.depth * g.size);
}

/* ---- setting up */

/* Both ends do as the client says. */
static void agree(void)
{
	meet_agree(g.tcp, g.o.host, g.o.plan, PLAN_NUMBERS);
	if (!options_allow(rows, OPTION_COUNT(rows), g.o.plan, g.o.plan + PLAN_NUMBERS) ||
	    (g.o.plan[PLAN_FILL] && !fills(g.o.plan)))
		die("the peer is not the sdr_write_bw of this version");
	g.size = g.o.plan[PLAN_SIZE];
	g.depth = g.o.plan[PLAN_IN_FLIGHT];
	g.total = g.o.plan[PLAN_WARMUP] + g.o.plan[PLAN_ITERS];
	g.chunks = (g.size + g.o.plan[PLAN_CHUNK] - 1) / g.o.plan[PLAN_CHUNK];
}

static void open_all(void)
{
	const struct meet_device device = {
		.name = g.o.device,
		.gid_index = g.o.gid_index,
		.mtu = g.o.plan[PLAN_MTU],
		.chunk = g.o.plan[PLAN_CHUNK],
		.messages_log = log2_up(g.depth) + (repairs() ? 1 : 0),
		.message_bytes = g.size,
		.sends = g.o.host,
		.receives = !g.o.host,
		.rate_mbps = g.o.rate_mbps,
		.idle_fill = g.o.plan[PLAN_FILL],
		.plain = !repairs(),
		.channels = g.o.plan[PLAN_CHANNELS],
		.workers = g.o.workers,
		.ib_port = g.o.ib_port,
		.generations = g.o.plan[PLAN_GENERATIONS],
		.batch = g.o.batch,
		.rc = g.o.plan[PLAN_RC],
	};
	uint64_t messages = g.o.host && !g.o.plan[PLAN_VERIFY] ? 1 : g.depth;

	g.ctx = meet_context(&device);
	g.qp = meet_qp(g.ctx, &device);
	g.memory = meet_memory(g.ctx, messages * g.size, g.o.host ? 0 : VERBENA_SDR_REMOTE_WRITE, &g.mr, &g.lkey);
	meet_connect(g.tcp, g.qp);
	if (!repairs())
		return;
	g.way = (struct scheme_way){.scheme = (enum scheme)(g.o.plan[PLAN_SCHEME] - 1),
				    .rate_mbps = g.o.rate_mbps,
				    .chunk = g.o.plan[PLAN_CHUNK]};
	scheme_open(&g.way, g.ctx, g.qp, g.tcp, g.o.host, NULL);
}

static void close_all(void)
{
	verbena_sdr_qp_destroy(g.qp);
	verbena_sdr_mr_dereg(g.mr);
	verbena_sdr_context_destroy(g.ctx);
	free(g.memory);
}

/* ---- the server */

struct receiving {
	struct verbena_sdr_recv *recv; /* depth of them */
	uint64_t posted, done;
	uint64_t have; /* chunks of the oldest */
	uint64_t changed_ns;
};

static uint64_t chunks_of(const struct verbena_sdr_recv *recv)
{
	const uint8_t *bitmap;
	uint64_t have = 0;
	size_t bytes;

	if (verbena_sdr_recv_bitmap_get(recv, &bitmap, &bytes))
		die("a message has no bitmap: %s", strerror(errno));
	for (size_t i = 0; i < bytes; i++)
		have += (uint64_t)__builtin_popcount(__atomic_load_n(&bitmap[i], __ATOMIC_ACQUIRE));
	return have;
}

static void post_more(struct receiving *r)
{
	while (r->posted < g.total && r->posted - r->done < g.depth) {
		struct verbena_sdr_recv_attr attr = {
			.address = buffer(r->posted), .max_length = g.size, .lkey = g.lkey};
		struct verbena_sdr_recv *recv = &r->recv[r->posted % g.depth];
		int err = repairs() ? scheme_recv_post(g.qp, &g.way, &attr, recv)
				    : verbena_sdr_recv_post(g.qp, &attr, recv);

		if (err == VERBENA_SDR_RETRY)
			return;
		if (err)
			die("posting a receive: %s", strerror(errno));
		r->posted++;
	}
}

static bool anything_came(void)
{
	struct verbena_sdr_stats stats;

	return !verbena_sdr_qp_stats_get(g.qp, &stats) && stats.packets;
}

static bool arrived(struct receiving *r)
{
	bool done;

	if (scheme_recv_poll(&g.way, &r->recv[r->done % g.depth], &done))
		die("receiving: %s", strerror(errno));
	return done;
}

/* Whether no more of the oldest message is waited for. Reliable connections bring all, and break where a packet meets a
 * receive that has ended. */
static bool over(struct receiving *r)
{
	uint64_t have = chunks_of(&r->recv[r->done % g.depth]), now = now_ns();
	bool overtaken;

	if (have == g.chunks)
		return true;
	if (g.o.plan[PLAN_RC])
		return false;
	if (have != r->have || (!r->changed_ns && anything_came())) {
		r->have = have;
		r->changed_ns = now;
	}
	if (!r->changed_ns || now - r->changed_ns < OVERTAKEN_NS)
		return false;
	overtaken = r->done + 1 < r->posted && chunks_of(&r->recv[(r->done + 1) % g.depth]);
	return overtaken || now - r->changed_ns > SILENT_NS;
}

static uint32_t wrong_chunks(const struct verbena_sdr_recv *recv, uint64_t n)
{
	const uint8_t *bitmap;
	uint32_t wrong = 0;
	size_t bytes;

	verbena_sdr_recv_bitmap_get(recv, &bitmap, &bytes);
	for (uint32_t c = 0; c < g.chunks; c++)
		wrong += (repairs() || verbena_sdr_chunk_arrived(bitmap, c)) && !chunk_right(buffer(n), n, c);
	return wrong;
}

/* Compares while the buffer is still posted, but cannot change any more in what the bitmap says is
 * there. */
static void finish(struct receiving *r)
{
	struct verbena_sdr_recv *recv = &r->recv[r->done % g.depth];
	uint64_t have = repairs() ? g.chunks : chunks_of(recv);
	struct ack ack = {.missing = htobe32((uint32_t)(g.chunks - have))};

	if (g.o.plan[PLAN_VERIFY])
		ack.wrong = htobe32(wrong_chunks(recv, r->done));
	if (verbena_sdr_recv_complete(recv))
		die("completing a receive: %s", strerror(errno));
	r->done++;
	r->have = 0;
	r->changed_ns = now_ns();
	meet_send(g.tcp, &ack, sizeof(ack));
}

/* The client may not know of all acknowledgements yet: it says when it does. */
static void answer_until_done(void)
{
	uint64_t done;

	while (repairs() && !meet_poll(g.tcp, &done, sizeof(done), 1, 0))
		verbena_sdr_progress(g.ctx);
}

static void serve(void)
{
	struct receiving r = {.recv = calloc(g.depth, sizeof(*r.recv))};
	struct verbena_sdr_stats stats;
	uint64_t ready = 0;

	if (!r.recv)
		die("no memory");
	while (r.done < g.total) {
		struct ack none;

		post_more(&r);
		verbena_sdr_progress(g.ctx);
		if (r.done < r.posted && (repairs() ? arrived(&r) : over(&r)))
			finish(&r);
		else if (g.o.workers || (++ready & 0xfff) == 0)
			meet_poll(g.tcp, &none, sizeof(none), 1, 0); /* notices a client that is gone */
	}
	answer_until_done();
	verbena_sdr_qp_stats_get(g.qp, &stats);
	printf("packets %llu, duplicates %llu, late %llu, credits sent %llu, repeated %llu\n",
	       (unsigned long long)stats.packets, (unsigned long long)stats.duplicates,
	       (unsigned long long)stats.dropped_late, (unsigned long long)stats.cts_sent,
	       (unsigned long long)stats.cts_repeated);
	free(r.recv);
}

/* ---- the client */

struct sending {
	struct verbena_sdr_send *send; /* depth of them */
	uint64_t sent, left, acked;    /* messages posted, sent, and reported by the server */
	uint64_t missing, wrong;
	uint64_t start_ns; /* of the first message */
};

static bool send_one(struct sending *s)
{
	struct verbena_sdr_block b = {.address = buffer(s->sent), .length = g.size, .lkey = g.lkey};
	int err;

	if (g.o.plan[PLAN_VERIFY])
		fill(buffer(s->sent), s->sent);
	if (repairs())
		err = scheme_send(g.qp, &g.way, &b, (g.total - s->sent - 1) * g.size, NULL, NULL,
				  &s->send[s->sent % g.depth]);
	else
		err = verbena_sdr_send_post(g.qp, &b, NULL, &s->send[s->sent % g.depth]);
	if (err == VERBENA_SDR_ERROR)
		die("sending: %s", strerror(errno));
	s->sent += !err;
	return !err;
}

static bool sends_left(struct sending *s)
{
	bool done = false, any = false;

	while (s->left < s->sent) {
		const struct verbena_sdr_send *send = &s->send[s->left % g.depth];

		if (repairs() ? scheme_poll(&g.way, send, &done) : verbena_sdr_send_poll(send, &done))
			die("sending: %s", strerror(errno));
		if (!done)
			return any;
		s->left++;
		any = true;
	}
	return any;
}

static bool acks_taken(struct sending *s, int wait_ms)
{
	struct ack acks[ACKS_MAX];
	size_t n = meet_poll(g.tcp, acks, sizeof(acks[0]), ACKS_MAX, wait_ms);

	for (size_t i = 0; i < n; i++) {
		s->missing += be32toh(acks[i].missing);
		s->wrong += be32toh(acks[i].wrong);
	}
	s->acked += n;
	return n;
}

/* Where the server has waited long for a message it has reported it before it is sent: then it comes late, and counts
 * as lost. */
static bool may_send(const struct sending *s, uint64_t end)
{
	return s->sent < end && s->sent < s->acked + g.depth && s->sent < s->left + g.depth;
}

/*
 * Sends messages up to that number, and waits until the server has reported all of them. What the library does alone is
 * no progress: a server that hears nothing repeats its credits for ever.
 */
static void send_until(struct sending *s, uint64_t end)
{
	uint64_t last_ns = now_ns();

	while (s->acked < end || (repairs() && s->left < end)) {
		bool busy = verbena_sdr_progress(g.ctx), done = false;

		while (may_send(s, end) && send_one(s))
			done = true;
		done |= sends_left(s);
		done |= acks_taken(s, busy || done || s->left < s->sent || s->sent < end ? 0 : 1);
		if (done && s->acked > g.depth)
			scheme_learn(&g.way, s->acked * g.size, now_ns() - s->start_ns);
		if (done)
			last_ns = now_ns();
		else if (now_ns() - last_ns > STUCK_S * UINT64_C(1000000000))
			die("nothing has happened for %d s: %llu of %llu messages are sent, and %llu reported by the server",
			    STUCK_S, (unsigned long long)s->left, (unsigned long long)g.total,
			    (unsigned long long)s->acked);
	}
}

/* Packets that were handed to the device, repetitions and parities too. */
static uint64_t packets_sent(void)
{
	struct verbena_sdr_stats stats;

	return verbena_sdr_qp_stats_get(g.qp, &stats) ? 0 : stats.sent;
}

static void report(const struct sending *s, uint64_t ns, uint64_t packets)
{
	double bits = (double)g.size * 8 * (double)g.o.plan[PLAN_ITERS], seconds = (double)ns / 1e9;
	double chunks = (double)g.chunks * (double)g.o.plan[PLAN_ITERS];

	printf(" #bytes     #iterations    BW[Gb/sec]   goodput[Gb/sec]   MsgRate[Mpps]   PktRate[Mpps]   chunks   "
	       "  dropped\n");
	printf(" %-10llu %-14llu %-12.3f %-17.3f %-15.6f %-15.6f %-10.0f %llu\n", (unsigned long long)g.size,
	       (unsigned long long)g.o.plan[PLAN_ITERS], bits / seconds / 1e9,
	       bits * (chunks - (double)s->missing) / chunks / seconds / 1e9,
	       (double)g.o.plan[PLAN_ITERS] / seconds / 1e6, (double)packets / seconds / 1e6, chunks,
	       (unsigned long long)s->missing);
}

static int send_all(void)
{
	struct sending s = {.send = calloc(g.depth, sizeof(*s.send)), .start_ns = now_ns()};
	uint64_t start_ns, packets;

	if (!s.send)
		die("no memory");
	send_until(&s, g.o.plan[PLAN_WARMUP]);
	packets = packets_sent();
	s.missing = 0;
	start_ns = now_ns();
	send_until(&s, g.total);
	report(&s, now_ns() - start_ns, packets_sent() - packets);
	if (repairs())
		meet_send_numbers(g.tcp, &start_ns, 1);
	free(s.send);
	if (s.wrong)
		fprintf(stderr, "sdr_write_bw: %llu chunks arrived with other bytes than were sent\n",
			(unsigned long long)s.wrong);
	return s.wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
	int status = 0;

	command_read(argc, argv);
	g.tcp = meet(g.o.host, (uint16_t)g.o.port);
	agree();
	open_all();
	if (g.o.host)
		status = send_all();
	else
		serve();
	close_all();
	return status;
}
