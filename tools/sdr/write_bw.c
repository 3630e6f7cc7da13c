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

#include "sdr/meet.h"
#include "sdr/scheme.h"
#include "sdr/write_bw.h"

/* The server gives a message up of which nothing arrived for a while, although later ones have
 * begun, or when nothing arrives at all. */
enum { OVERTAKEN_NS = 5000000, SILENT_NS = 200000000, ACKS_MAX = 64, STUCK_S = 30 };

/* The server's report on a message, over TCP; big-endian. */
struct ack {
	uint32_t missing, wrong; /* chunks */
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
} g;

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
	if (g.o.host)
		meet_send_numbers(g.tcp, g.o.plan, PLAN_NUMBERS);
	else
		meet_recv_numbers(g.tcp, g.o.plan, PLAN_NUMBERS);
	if (!plan_valid(g.o.plan))
		die("the peer is not the sdr_write_bw of this version");
	g.size = g.o.plan[PLAN_SIZE];
	g.depth = g.o.plan[PLAN_IN_FLIGHT];
	g.total = g.o.plan[PLAN_WARMUP] + g.o.plan[PLAN_ITERS];
	g.chunks = (g.size + g.o.plan[PLAN_CHUNK] - 1) / g.o.plan[PLAN_CHUNK];
}

static uint32_t log2_up(uint64_t v)
{
	uint32_t log = 0;

	while (UINT64_C(1) << log < v)
		log++;
	return log;
}

static struct verbena_sdr_qp_attr qp_attr(void)
{
	struct verbena_sdr_qp_attr attr;
	uint64_t longest = g.size > g.o.plan[PLAN_CHUNK] ? g.size : g.o.plan[PLAN_CHUNK];

	verbena_sdr_qp_attr_init(&attr);
	attr.mtu = (uint32_t)g.o.plan[PLAN_MTU];
	attr.bitmap_chunk_size_log_bytes = log2_up(g.o.plan[PLAN_CHUNK]);
	attr.max_log_num_msgs = log2_up(g.depth) + (repairs() ? 1 : 0);
	/* The parities of a small message may have a chunk more than it. */
	if (repairs())
		longest += g.o.plan[PLAN_CHUNK];
	attr.max_in_flight_log_bytes = attr.max_log_num_msgs + log2_up(longest);
	attr.send_enable = g.o.host;
	attr.recv_enable = !g.o.host;
	attr.rate_limit_mbps = (uint32_t)g.o.rate_mbps;
	attr.generations = (uint32_t)g.o.plan[PLAN_GENERATIONS];
	attr.transport = g.o.plan[PLAN_RC] ? VERBENA_SDR_RC : VERBENA_SDR_UC;
	attr.send_batch = (uint32_t)g.o.batch;
	attr.idle_fill = g.o.plan[PLAN_FILL];
	return attr;
}

static void open_device(void)
{
	struct verbena_sdr_context_attr attr;
	struct verbena_sdr_qp_attr qa = qp_attr();

	verbena_sdr_context_attr_init(&attr);
	attr.num_channels = (uint32_t)g.o.plan[PLAN_CHANNELS];
	attr.num_workers = g.o.workers ? (uint32_t)g.o.workers : VERBENA_SDR_NO_WORKERS;
	attr.port = (uint32_t)g.o.ib_port;
	attr.gid_index = (uint32_t)g.o.gid_index;
	g.ctx = verbena_sdr_context_create(g.o.device, &attr);
	if (!g.ctx)
		die("device %s: %s", g.o.device ? g.o.device : "", strerror(errno));
	g.qp = verbena_sdr_qp_create(g.ctx, &qa);
	if (!g.qp)
		die("the device has no queue pairs for messages of %llu bytes, chunks of %llu, "
		    "packets of %llu: %s",
		    (unsigned long long)g.size, (unsigned long long)g.o.plan[PLAN_CHUNK],
		    (unsigned long long)g.o.plan[PLAN_MTU], strerror(errno));
}

static void take_memory(void)
{
	uint64_t messages = g.o.host && !g.o.plan[PLAN_VERIFY] ? 1 : g.depth;
	uint64_t bytes = (messages * g.size + 4095) / 4096 * 4096;

	g.memory = aligned_alloc(4096, bytes);
	if (!g.memory)
		die("%llu bytes of memory: %s", (unsigned long long)bytes, strerror(errno));
	memset(g.memory, 0, bytes);
	g.mr = verbena_sdr_mr_reg(g.ctx, g.memory, bytes, g.o.host ? 0 : VERBENA_SDR_REMOTE_WRITE);
	if (!g.mr || verbena_sdr_mr_lkey_get(g.mr, &g.lkey))
		die("registering memory: %s", strerror(errno));
}

static void way_find(void)
{
	char reason[SCHEME_REASON];
	double lost = 0;

	if (!repairs())
		return;
	g.way = (struct scheme_way){.scheme = (enum scheme)(g.o.plan[PLAN_SCHEME] - 1),
				    .rtt_ns = scheme_rtt_ns(g.ctx, g.qp, g.tcp, g.o.host, &lost),
				    .rate_mbps = g.o.rate_mbps,
				    .chunk = g.o.plan[PLAN_CHUNK]};
	if (!g.way.rtt_ns)
		die("no round trip could be measured");
	g.way.pings_lost = lost;
	scheme_choose(&g.way, g.tcp, g.o.host, reason);
	if (reason[0])
		printf(" %s\n", reason);
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

	options_read(&g.o, argc, argv);
	g.tcp = meet(g.o.host, (uint16_t)g.o.port);
	agree();
	open_device();
	take_memory();
	meet_connect(g.tcp, g.qp);
	way_find();
	if (g.o.host)
		status = send_all();
	else
		serve();
	close_all();
	return status;
}
