/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owns the capture file. After a write error `dumper` is NULL for good and the wrapper only passes
 * calls on.
 */
#include "io/pcap.h"

#include <assert.h>
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/ipudp.h"
#include "io/clock.h"
#include "io/pcap_stream.h"
#include "space/space.h"

enum {
	SNAP_BYTES = 65535 + PCAP_HEAD_MAX,
	FILE_BUFFER_BYTES = 256 << 10,
	FLUSH_NS = 100 * 1000 * 1000, /* the most that a killed process loses */
	PATH_BYTES_MAX = 4096
};

static_assert((int)IPUDP_LEN_MAX <= (int)PCAP_HEAD_MAX, "a frame holds either kind of headers");

struct capture {
	struct io io;
	struct io *lower;
	struct io_counters *counters;
	struct pcap_config cfg;
	pcap_t *pcap;
	pcap_dumper_t *dumper;        /* NULL: capture has stopped */
	struct pcap_streams *streams; /* NULL: datagrams */
	char path[PATH_BYTES_MAX];
	uint64_t flush_at_ns; /* UINT64_MAX: nothing is buffered */
	uint8_t frame[SNAP_BYTES];
};

static const struct io_ops pcap_ops;

/* ---- open and close ---- */

/* 0, or -EINVAL for an escape that is not known, or -ENAMETOOLONG. */
static int expand_path(char *out, size_t out_bytes, const char *file)
{
	size_t n = 0;

	for (const char *p = file; *p; p++) {
		char pid[16];
		const char *text = pid;
		size_t len = 1;

		if (*p != '%') {
			text = p;
		} else if (p[1] == '%') {
			text = p++;
		} else if (p[1] == 'p') {
			len = (size_t)snprintf(pid, sizeof(pid), "%ld", (long)getpid());
			p++;
		} else {
			return -EINVAL;
		}
		if (n + len >= out_bytes)
			return -ENAMETOOLONG;
		memcpy(out + n, text, len);
		n += len;
	}
	out[n] = '\0';
	return 0;
}

static void stop(struct capture *c)
{
	if (c->dumper)
		pcap_dump_close(c->dumper);
	if (c->pcap)
		pcap_close(c->pcap);
	c->dumper = NULL;
	c->pcap = NULL;
	c->flush_at_ns = UINT64_MAX;
}

static void capture_free(struct capture *c)
{
	stop(c);
	pcap_streams_free(c->streams);
	space_put(c, sizeof(*c));
}

/* From here on `file` belongs to the dumper. */
static int start(struct capture *c, FILE *file)
{
	setvbuf(file, NULL, _IOFBF, FILE_BUFFER_BYTES);
	c->pcap = pcap_open_dead_with_tstamp_precision(c->cfg.head ? DLT_EN10MB : DLT_RAW, SNAP_BYTES,
						       PCAP_TSTAMP_PRECISION_NANO);
	if (c->pcap)
		c->dumper = pcap_dump_fopen(c->pcap, file);
	if (!c->dumper) {
		fclose(file);
		return -ENOMEM;
	}
	/* Writes the header at once, so that an empty capture can be opened too. */
	return pcap_dump_flush(c->dumper) < 0 ? -errno : 0;
}

int pcap_io_open(struct io **io, struct io *lower, const struct pcap_config *cfg, char *why, size_t why_bytes)
{
	struct capture *c = space_get(sizeof(*c));
	FILE *file;
	int err;

	if (!c) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	c->io.ops = &pcap_ops;
	c->lower = lower;
	c->counters = cfg->counters;
	c->cfg = *cfg;
	c->flush_at_ns = UINT64_MAX;
	c->streams = cfg->streams ? pcap_streams_new() : NULL;
	if (cfg->streams && !c->streams) {
		snprintf(why, why_bytes, "out of memory");
		err = -ENOMEM;
		goto free;
	}
	err = expand_path(c->path, sizeof(c->path), cfg->file);
	if (err < 0) {
		snprintf(why, why_bytes, "capture file %.80s: %s", cfg->file,
			 err == -EINVAL ? "only %p (process id) and %% are allowed after a %" : "the name is too long");
		goto free;
	}
	file = fopen(c->path, "we");
	if (!file) {
		err = -errno;
		snprintf(why, why_bytes, "cannot create capture file %.120s: %s", c->path, strerror(-err));
		goto free;
	}
	err = start(c, file);
	if (err < 0) {
		snprintf(why, why_bytes, "cannot write capture file %.120s: %s", c->path, strerror(-err));
		goto free;
	}
	*io = &c->io;
	return 0;

free:
	capture_free(c);
	return err;
}

/* ---- writing ---- */

static void fail(struct capture *c, int error)
{
	char sentence[256];

	c->counters->pcap_errors++;
	snprintf(sentence, sizeof(sentence), "capture stops, cannot write %.120s: %s; traffic goes on", c->path,
		 strerror(error ? error : EIO));
	stop(c);
	if (c->cfg.report)
		c->cfg.report(c->cfg.ctx, sentence);
}

static void flush(struct capture *c)
{
	c->flush_at_ns = UINT64_MAX;
	errno = 0;
	if (c->dumper && (pcap_dump_flush(c->dumper) < 0 || ferror(pcap_dump_file(c->dumper))))
		fail(c, errno);
}

static void write_packet(struct capture *c, const struct pkt *p, uint16_t ip_id, const struct timespec *ts)
{
	struct pcap_pkthdr h = {0};

	if (p->len > IPUDP_PAYLOAD_MAX)
		return;

	size_t headers =
		c->cfg.head ? c->cfg.head(c->cfg.ctx, c->frame, p) : ipudp_encode(c->frame, p->flow, ip_id, p->len);

	memcpy(c->frame + headers, p->data, p->len);
	if (!c->cfg.head)
		ipudp_checksum(c->frame, c->frame + headers, p->len);
	h.ts.tv_sec = ts->tv_sec;
	h.ts.tv_usec = ts->tv_nsec; /* nanoseconds: the precision that the file was opened with */
	h.caplen = h.len = (bpf_u_int32)(headers + p->len);
	pcap_dump((u_char *)c->dumper, &h, c->frame);
	c->counters->pcap_packets++;
}

/* What pcap_streams_frames() calls. */
struct moment {
	struct capture *c;
	const struct timespec *ts;
};

static void write_frame(void *ctx, const uint8_t *head, size_t head_len, const uint8_t *data, size_t len)
{
	const struct moment *m = ctx;
	struct pcap_pkthdr h = {.ts.tv_sec = m->ts->tv_sec, .ts.tv_usec = m->ts->tv_nsec};

	h.caplen = h.len = (bpf_u_int32)(head_len + len);
	memcpy(m->c->frame, head, head_len);
	if (len)
		memcpy(m->c->frame + head_len, data, len);
	pcap_dump((u_char *)m->c->dumper, &h, m->c->frame);
	m->c->counters->pcap_packets++;
}

static void write_burst(struct capture *c, const struct pkt *pkts, size_t n, bool received, uint64_t now_ns)
{
	struct timespec ts;
	uint64_t wall_ns;

	if (!n || !c->dumper)
		return;
	wall_ns = c->cfg.wall_ns ? c->cfg.wall_ns(c->cfg.ctx) : clock_wall_ns();
	ts = (struct timespec){(time_t)(wall_ns / 1000000000), (long)(wall_ns % 1000000000)};
	errno = 0;
	for (size_t i = 0; i < n; i++) {
		uint16_t id = pkts[i].ip_id;

		if (c->streams) {
			pcap_streams_frames(c->streams, &pkts[i], received, write_frame, &(struct moment){c, &ts});
			continue;
		}
		if (received && (!c->cfg.ip_id || c->cfg.head || !flow_is_ipv4(pkts[i].flow) ||
				 !c->cfg.ip_id(c->cfg.ctx, &pkts[i], &id)))
			id = 0;
		write_packet(c, &pkts[i], id, &ts);
	}
	if (ferror(pcap_dump_file(c->dumper))) {
		fail(c, errno);
		return;
	}
	if (c->flush_at_ns == UINT64_MAX)
		c->flush_at_ns = now_ns + FLUSH_NS;
}

/* ---- the contract ---- */

static size_t pcap_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	struct capture *c = (struct capture *)io;
	size_t n = io_recv(c->lower, pkts, max, now_ns);

	write_burst(c, pkts, n, true, now_ns);
	if (now_ns >= c->flush_at_ns)
		flush(c);
	return n;
}

static size_t pcap_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	struct capture *c = (struct capture *)io;
	size_t sent = io_send(c->lower, pkts, n, now_ns);

	write_burst(c, pkts, sent, false, now_ns);
	return sent;
}

static size_t pcap_fds(const struct io *io, int *fds, size_t max)
{
	return io_fds(((const struct capture *)io)->lower, fds, max);
}

static uint64_t pcap_deadline_ns(const struct io *io)
{
	const struct capture *c = (const struct capture *)io;
	uint64_t at = io_deadline_ns(c->lower);

	return at < c->flush_at_ns ? at : c->flush_at_ns;
}

static size_t pcap_train_max(const struct io *io)
{
	return io_train_max(((const struct capture *)io)->lower);
}

static void pcap_flush(struct io *io)
{
	struct capture *c = (struct capture *)io;

	if (c->flush_at_ns != UINT64_MAX)
		flush(c);
	io_flush(c->lower);
}

static void capture_close(struct io *io)
{
	struct capture *c = (struct capture *)io;

	flush(c);
	io_close(c->lower);
	capture_free(c);
}

static const struct io_ops pcap_ops = {
	.recv = pcap_recv,
	.send = pcap_send,
	.fds = pcap_fds,
	.deadline_ns = pcap_deadline_ns,
	.train_max = pcap_train_max,
	.flush = pcap_flush,
	.close = capture_close,
};
