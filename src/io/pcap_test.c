/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <sys/resource.h>
#include <signal.h>
#include <unistd.h>

#include "base/ipudp.h"
#include "base/stream_event.h"
#include "io/io_fake.h"
#include "io/pcap.h"
#include "io/pcap_stream.h"
#include "io/tcp/tcp.h"
#include "support/test.h"

static const struct stream_event opens = {.kind = STREAM_OPEN, .room = 1000},
				 has_room = {.kind = STREAM_ROOM, .room = 1000}, ends = {.kind = STREAM_FIN},
				 is_gone = {.kind = STREAM_RESET};

static char folder[] = "/tmp/verbena-pcap-XXXXXX";
static char path[128];

struct rig {
	struct fake *fake;
	struct io *io;
	struct io_counters counters;
	int reports;
	char sentence[256];
};

static bool find_id(void *ctx, const struct pkt *p, uint16_t *id)
{
	if (p->len < 4 || p->data[3] % 2)
		return false;
	*id = (uint16_t)(0x100 + p->data[3]);
	return true;
}

static void report(void *ctx, const char *sentence)
{
	struct rig *r = ctx;

	r->reports++;
	snprintf(r->sentence, sizeof(r->sentence), "%s", sentence);
}

static void rig_open(struct rig *r, const char *file)
{
	struct pcap_config cfg = {.file = file, .counters = &r->counters, .ip_id = find_id, .report = report, .ctx = r};
	char why[256] = "";

	memset(r, 0, sizeof(*r));
	r->fake = fake_new(100);
	r->fake->flow.sport = 1111;
	r->fake->flow.dport = 4791;
	r->fake->flow.ttl = 64;
	if (pcap_io_open(&r->io, &r->fake->io, &cfg, why, sizeof(why)) < 0)
		fail_msg("%s", why);
}

static int setup(void **state)
{
	strcpy(folder, "/tmp/verbena-pcap-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/x.pcap", folder);
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	return rmdir(folder);
}

static pcap_t *reopen(void)
{
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, err);

	if (!p)
		fail_msg("%s", err);
	assert_int_equal(pcap_datalink(p), DLT_RAW);
	return p;
}

/* The sum of 16-bit words in one's complement; right checksums make it 0xffff. */
static uint16_t sum(uint32_t s, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i + 1 < n; i += 2)
		s += get_be16(p + i);
	if (n % 2)
		s += (uint32_t)p[n - 1] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)s;
}

/* Frames of a stream, as they came; sum: of the pseudo-header, TCP's header and what follows. */
struct frames {
	size_t count;
	uint8_t head[16][64];
	size_t head_len[16], len[16];
	uint16_t sum[16];
};

static void frames_add(void *ctx, const uint8_t *head, size_t head_len, const uint8_t *data, size_t len)
{
	struct frames *f = ctx;
	uint32_t s;

	assert_true(f->count < 16 && head_len <= 64);
	memcpy(f->head[f->count], head, head_len);
	f->head_len[f->count] = head_len;
	f->len[f->count] = len;
	s = (uint16_t)sum(6 + (uint32_t)(head_len - 20 + len), head + 12, head_len - 12);
	f->sum[f->count++] = sum(s, data, len);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(what_passed_can_be_read_again)
{
	struct rig r;
	struct pkt p[8];
	struct flow v6 = {.src = {0xfd, 1}, .dst = {0xfd, 2}, .sport = 7, .dport = 4794, .ttl = 9};
	uint8_t data[77];
	struct pcap_pkthdr *h;
	const u_char *bytes;
	pcap_t *f;

	rig_open(&r, path);
	r.fake->pending = 4;
	assert_int_equal(io_recv(r.io, p, 8, 0), 4);
	memset(data, 0x5a, sizeof(data));
	p[0] = (struct pkt){.data = data, .flow = &v6, .len = sizeof(data), .train = 1};
	p[1] = (struct pkt){.data = data, .flow = &r.fake->flow, .len = 50, .ip_id = 3, .train = 1};
	assert_int_equal(io_send(r.io, p, 2, 0), 2);
	/* A packet that was not accepted is not captured. */
	r.fake->send_max = 0;
	assert_int_equal(io_send(r.io, p, 2, 0), 0);
	assert_int_equal(r.counters.pcap_packets, 6);
	io_close(r.io);

	f = reopen();
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(pcap_next_ex(f, &h, &bytes), 1);
		assert_int_equal(h->caplen, 28 + 100);
		assert_int_equal(h->len, 28 + 100);
		assert_int_equal(get_be16(bytes + 4), i % 2 ? 0 : 0x100 + i);
		assert_int_equal(sum(0, bytes, 20), 0xffff);
		assert_int_equal(get_be16(bytes + 20), 1111);
		assert_int_equal(get_be16(bytes + 22), 4791);
		assert_int_equal(get_be32(bytes + 28), i);
		assert_int_equal(sum(17 + 108, bytes + 12, h->caplen - 12), 0xffff);
	}
	assert_int_equal(pcap_next_ex(f, &h, &bytes), 1);
	assert_int_equal(h->caplen, 48 + 77);
	assert_int_equal(bytes[0] >> 4, 6);
	assert_int_equal(bytes[7], 9);
	assert_int_equal(get_be16(bytes + 42), 4794);
	assert_memory_equal(bytes + 8, v6.src, 16);
	assert_memory_equal(bytes + 48, data, 77);
	/* The pseudo-header: addresses, length, next header 17. */
	assert_int_equal(sum(17 + 85, bytes + 8, h->caplen - 8), 0xffff);
	assert_int_equal(pcap_next_ex(f, &h, &bytes), 1);
	assert_int_equal(get_be16(bytes + 4), 3);
	assert_int_equal(pcap_next_ex(f, &h, &bytes), PCAP_ERROR_BREAK);
	pcap_close(f);
}

/* A connection of the peer's, bytes each way that need more than one frame, and its end: no sequence number is missing.
 */
CASE(a_stream_is_captured_from_its_beginning_to_its_end)
{
	enum { BYTES = 150000, SYN = 2, ACK = 16, PSH = 8, FIN = 1 };
	static const struct {
		uint16_t sport;
		uint8_t flags;
		uint32_t seq, ack, len;
	} want[] = {
		{2222, SYN, 0, 0, 0},
		{1111, SYN | ACK, 0, 1, 0},
		{2222, ACK, 1, 1, 0},
		{1111, ACK | PSH, 1, 1, 60000},
		{1111, ACK | PSH, 60001, 1, 60000},
		{1111, ACK | PSH, 120001, 1, 30000},
		{1111, ACK | FIN, 150001, 1, 0},
		{2222, ACK | PSH, 1, 150002, 5},
		{2222, ACK | FIN, 6, 150002, 0},
	};
	static uint8_t data[BYTES];
	struct flow flow = {.src = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1},
			    .dst = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2},
			    .sport = 1111,
			    .dport = 2222,
			    .flow_label = TCP_ACCEPTED | 1};
	const struct {
		struct pkt pkt;
		bool received;
	} pkts[] = {
		{{.flow = &flow, .data = data, .len = 7}, true}, /* before there is one: not its own */
		{{.flow = &flow, .event = &opens}, true},
		{{.flow = &flow, .event = &has_room}, true},
		{{.flow = &flow, .data = data, .len = BYTES}, false},
		{{.flow = &flow, .event = &ends}, false},
		{{.flow = &flow, .event = &ends}, false}, /* said twice */
		{{.flow = &flow, .data = data, .len = 5}, true},
		{{.flow = &flow, .event = &ends}, true},
		{{.flow = &flow, .event = &is_gone}, false}, /* it is gone */
	};
	struct pcap_streams *streams = pcap_streams_new();
	struct frames got = {0};

	memset(data + 20, 0x5a, sizeof(data) - 20);
	assert_non_null(streams);
	for (size_t i = 0; i < sizeof(pkts) / sizeof(*pkts); i++)
		pcap_streams_frames(streams, &pkts[i].pkt, pkts[i].received, frames_add, &got);
	assert_int_equal(got.count, sizeof(want) / sizeof(*want));
	for (size_t i = 0; i < got.count; i++) {
		const uint8_t *tcp = got.head[i] + 20;

		assert_int_equal(get_be16(got.head[i] + 2), got.head_len[i] + want[i].len);
		assert_int_equal(sum(0, got.head[i], 20), 0xffff);
		assert_int_equal(get_be16(tcp), want[i].sport);
		assert_int_equal(get_be16(tcp + 2), want[i].sport ^ 1111 ^ 2222);
		assert_int_equal(get_be32(tcp + 4), want[i].seq);
		assert_int_equal(get_be32(tcp + 8), want[i].ack);
		assert_int_equal(tcp[13], want[i].flags);
		assert_int_equal(got.len[i], want[i].len);
		assert_int_equal(got.sum[i], 0xffff);
	}
	pcap_streams_free(streams);
}

/* Pieces end where four bytes do, counted from the end of MPA's start-up frame; the rest comes with the next, or before
 * FIN. */
CASE(pieces_of_a_stream_do_not_end_in_a_length_field)
{
	static const uint32_t pieces[] = {25, 7, 1, 2, 10}, want[] = {0, 0, 0, 25, 4, 4, 12, 0};
	uint8_t data[32] = {[19] = 5};
	struct flow flow = {.src = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1},
			    .dst = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2},
			    .sport = 1111,
			    .dport = 2222,
			    .flow_label = 5};
	struct pcap_streams *streams = pcap_streams_new();
	struct frames got = {0};
	uint32_t seq = 1;

	assert_non_null(streams);
	pcap_streams_frames(streams, &(struct pkt){.flow = &flow, .event = &opens}, true, frames_add, &got);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++)
		pcap_streams_frames(streams, &(struct pkt){.flow = &flow, .data = data, .len = pieces[i]}, true,
				    frames_add, &got);
	pcap_streams_frames(streams, &(struct pkt){.flow = &flow, .event = &is_gone}, false, frames_add, &got);
	assert_int_equal(got.count, sizeof(want) / sizeof(*want));
	for (size_t i = 3; i < got.count - 1; i++) {
		assert_int_equal(get_be32(got.head[i] + 24), seq);
		assert_int_equal(got.len[i], want[i]);
		assert_int_equal(got.sum[i], 0xffff);
		seq += want[i];
	}
	pcap_streams_free(streams);
}

static int count_packets(void)
{
	struct pcap_pkthdr *h;
	const u_char *bytes;
	pcap_t *f = reopen();
	int n = 0;

	while (pcap_next_ex(f, &h, &bytes) == 1)
		n++;
	pcap_close(f);
	return n;
}

CASE(what_is_buffered_reaches_the_file_in_time)
{
	struct rig r;
	struct pkt p[8];
	uint64_t at;

	rig_open(&r, path);
	assert_int_equal(count_packets(), 0);
	assert_int_equal(io_deadline_ns(r.io), UINT64_MAX);
	r.fake->pending = 2;
	io_recv(r.io, p, 8, 1000);
	at = io_deadline_ns(r.io);
	assert_true(at > 1000 && at <= 1000 + 100000000);
	io_recv(r.io, p, 8, at);
	assert_int_equal(io_deadline_ns(r.io), UINT64_MAX);
	assert_int_equal(count_packets(), 2);
	r.fake->pending = 1;
	io_recv(r.io, p, 8, at);
	io_flush(r.io);
	assert_int_equal(count_packets(), 3);
	io_close(r.io);
}

CASE(the_process_id_is_put_in_the_name)
{
	struct rig r;
	char name[200], want[200];

	snprintf(name, sizeof(name), "%s/%%p-%%%%.pcap", folder);
	snprintf(want, sizeof(want), "%s/%d-%%.pcap", folder, (int)getpid());
	rig_open(&r, name);
	io_close(r.io);
	assert_int_equal(unlink(want), 0);
}

CASE(what_cannot_be_created_is_explained)
{
	static const struct {
		const char *file;
		int err;
		const char *says;
	} rows[] = {
		{"/nonexistent/x.pcap", -ENOENT, "/nonexistent/x.pcap: No such file"},
		{"/tmp", -EISDIR, "cannot create capture file /tmp"},
		{"/tmp/%d.pcap", -EINVAL, "only %p (process id)"},
		{"/tmp/x%", -EINVAL, "only %p (process id)"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct io_counters counters = {0};
		struct pcap_config cfg = {.file = rows[i].file, .counters = &counters};
		struct fake *fake = fake_new(100);
		struct io *io;
		char why[256] = "";

		assert_int_equal(pcap_io_open(&io, &fake->io, &cfg, why, sizeof(why)), rows[i].err);
		if (!strstr(why, rows[i].says))
			fail_msg("\"%s\" does not say \"%s\"", why, rows[i].says);
		io_close(&fake->io);
	}
}

CASE(a_full_disk_is_reported_once_and_traffic_goes_on)
{
	struct rig r;
	struct pkt p[64];
	struct rlimit before, limit;
	uint64_t received = 0;

	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 4096;
	signal(SIGXFSZ, SIG_IGN);
	rig_open(&r, path);
	setrlimit(RLIMIT_FSIZE, &limit);
	r.fake->pending = 100;
	for (size_t n; (n = io_recv(r.io, p, 64, 0)) > 0;)
		received += n;
	io_flush(r.io);
	setrlimit(RLIMIT_FSIZE, &before);
	r.fake->pending = 100;
	for (size_t n; (n = io_recv(r.io, p, 64, 0)) > 0;)
		received += n;
	io_flush(r.io);
	assert_int_equal(io_send(r.io, p, 1, 0), 1);
	assert_int_equal(received, 200);
	assert_int_equal(r.reports, 1);
	assert_int_equal(r.counters.pcap_errors, 1);
	assert_non_null(strstr(r.sentence, "File too large"));
	assert_int_equal(io_deadline_ns(r.io), UINT64_MAX);
	io_close(r.io);
}
