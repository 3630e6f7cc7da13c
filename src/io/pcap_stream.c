/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of streams (pcap_stream.h). A stream is known from its STREAM_OPEN until it is gone, so sequence numbers have no
 * gap.
 *
 * A network's segments end where FPDUs do, or at least not inside a ULPDU_Length, which tshark 4.0 does not put
 * together again. Pieces that were read end anywhere. So up to three bytes wait for those behind them: FPDUs are
 * multiples of four bytes, counted from the end of MPA's start-up frame, whose length stands in its bytes 18 and 19
 * (RFC 5044 7.1.1).
 */
#include "io/pcap_stream.h"

#include <string.h>

#include "base/byteorder.h"
#include "base/ipudp.h"
#include "base/stream_event.h"
#include "io/tcp/tcp.h"
#include "space/space.h"

enum {
	BUCKETS = 256,
	TCP_NUMBER = 6,
	TCP_LEN = 20,
	TCP_OPTIONS_LEN = 4, /* of a SYN: the window is in units of 2^14 bytes (RFC 7323 2.2) */
	HEAD_MAX = IPUDP_IPV6_LEN + TCP_LEN + TCP_OPTIONS_LEN,
	PIECE_MAX = 60000, /* a frame's payload */
	MPA_LEN = 20,
	UNIT = 4,
	TTL = 64
};

enum tcp_flags { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_PSH = 8, TCP_ACK = 16 };

/* A direction. */
struct way {
	uint32_t next_seq;
	uint32_t units_from;    /* the sequence number that units are counted from; 0: pieces are left as they are */
	uint8_t rest[UNIT - 1]; /* waits, rest_len bytes */
	uint8_t rest_len;
	bool fin;
};

struct seen {
	struct seen *next; /* in its bucket */
	uint32_t number;
	struct flow flow;   /* as this end sends */
	struct way ways[2]; /* ours, and the peer's */
};

struct pcap_streams {
	struct seen *buckets[BUCKETS];
	uint8_t piece[PIECE_MAX];
};

/* A packet on its way into frames. */
struct framer {
	struct seen *s;
	void (*frame)(void *ctx, const uint8_t *head, size_t head_len, const uint8_t *data, size_t len);
	void *ctx;
};

struct pcap_streams *pcap_streams_new(void)
{
	return space_get(sizeof(struct pcap_streams));
}

void pcap_streams_free(struct pcap_streams *p)
{
	for (size_t i = 0; p && i < BUCKETS; i++) {
		while (p->buckets[i]) {
			struct seen *s = p->buckets[i];

			p->buckets[i] = s->next;
			space_put(s, sizeof(*s));
		}
	}
	space_put(p, sizeof(*p));
}

/* Where a stream is linked, or would be. */
static struct seen **find(struct pcap_streams *p, uint32_t number)
{
	struct seen **at = &p->buckets[number % BUCKETS];

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

/* A frame from this end, or from the peer. */
static void put(const struct framer *f, bool from_peer, uint8_t flags, const uint8_t *data, size_t len)
{
	uint8_t head[HEAD_MAX] = {0};
	struct seen *s = f->s;
	struct flow flow = s->flow;
	uint32_t tcp_len = TCP_LEN + (flags & TCP_SYN ? TCP_OPTIONS_LEN : 0);
	uint8_t *tcp;

	if (from_peer) {
		memcpy(flow.src, s->flow.dst, sizeof(flow.src));
		memcpy(flow.dst, s->flow.src, sizeof(flow.dst));
		flow.sport = s->flow.dport;
		flow.dport = s->flow.sport;
	}
	tcp = head + ipudp_ip_encode(head, &flow, 0, TCP_NUMBER, tcp_len + (uint32_t)len);
	put_be16(tcp, flow.sport);
	put_be16(tcp + 2, flow.dport);
	put_be32(tcp + 4, s->ways[from_peer].next_seq);
	put_be32(tcp + 8, flags & TCP_ACK ? s->ways[!from_peer].next_seq : 0);
	tcp[12] = (uint8_t)(tcp_len / 4 << 4);
	tcp[13] = flags;
	put_be16(tcp + 14, UINT16_MAX);
	if (flags & TCP_SYN)
		put_be32(tcp + TCP_LEN, 0x01030300 | 14); /* no-operation, window scale, 3 bytes, 14 */
	put_be16(tcp + 16, ipudp_transport_checksum(head, tcp, tcp_len, data, (uint32_t)len));
	f->frame(f->ctx, head, (size_t)(tcp - head) + tcp_len, data, len);
	s->ways[from_peer].next_seq += (uint32_t)len + (flags & (TCP_SYN | TCP_FIN) ? 1 : 0);
}

static void opened(struct pcap_streams *p, const struct framer *f, const struct flow *flow)
{
	bool from_peer = flow->flow_label & TCP_ACCEPTED;

	*f->s = (struct seen){
		.number = flow->flow_label, .flow = *flow, .next = p->buckets[flow->flow_label % BUCKETS]};
	p->buckets[flow->flow_label % BUCKETS] = f->s;
	f->s->flow.ttl = TTL;
	f->s->flow.flow_label = 0; /* IPv6's is another number */
	put(f, from_peer, TCP_SYN, NULL, 0);
	put(f, !from_peer, TCP_SYN | TCP_ACK, NULL, 0);
	put(f, from_peer, TCP_ACK, NULL, 0);
}

/* How many of the last bytes of a piece are not a whole unit. */
static uint8_t beyond_units(struct way *w, const uint8_t *piece, size_t len)
{
	if (w->next_seq == 1 && len >= MPA_LEN)
		w->units_from = 1 + MPA_LEN + get_be16(piece + MPA_LEN - 2);
	return w->units_from ? (uint8_t)((w->next_seq + (uint32_t)len - w->units_from) % UNIT) : 0;
}

static void put_bytes(struct pcap_streams *p, const struct framer *f, bool from_peer, const uint8_t *data, size_t len)
{
	struct way *w = &f->s->ways[from_peer];

	while (len) {
		size_t n = PIECE_MAX - w->rest_len, total;

		if (len < n)
			n = len;
		memcpy(p->piece, w->rest, w->rest_len);
		memcpy(p->piece + w->rest_len, data, n);
		total = w->rest_len + n;
		w->rest_len = beyond_units(w, p->piece, total);
		total -= w->rest_len;
		memcpy(w->rest, p->piece + total, w->rest_len);
		if (total)
			put(f, from_peer, TCP_ACK | TCP_PSH, p->piece, total);
		data += n;
		len -= n;
	}
}

static void put_rest(const struct framer *f, bool from_peer)
{
	struct way *w = &f->s->ways[from_peer];

	if (w->rest_len)
		put(f, from_peer, TCP_ACK | TCP_PSH, w->rest, w->rest_len);
	w->rest_len = 0;
}

static void forget(struct seen **at)
{
	struct seen *s = *at;

	*at = s->next;
	space_put(s, sizeof(*s));
}

void pcap_streams_frames(struct pcap_streams *p, const struct pkt *pkt, bool received,
			 void (*frame)(void *ctx, const uint8_t *head, size_t head_len, const uint8_t *data,
				       size_t len),
			 void *ctx)
{
	struct seen **at = find(p, pkt->flow->flow_label);
	enum stream_event_kind kind = pkt_stream_kind(pkt);
	struct framer f = {.s = *at, .frame = frame, .ctx = ctx};

	if (kind == STREAM_OPEN && received && !f.s) {
		f.s = space_get(sizeof(*f.s));
		if (f.s)
			opened(p, &f, pkt->flow);
		return;
	}
	if (!f.s)
		return;
	if (kind == STREAM_BYTES) {
		put_bytes(p, &f, received, pkt->data, pkt->len);
	} else if (kind == STREAM_FIN && !f.s->ways[received].fin) {
		put_rest(&f, received);
		f.s->ways[received].fin = true;
		put(&f, received, TCP_ACK | TCP_FIN, NULL, 0);
		if (f.s->ways[!received].fin)
			forget(at);
	} else if (kind == STREAM_RESET) {
		put_rest(&f, received);
		put(&f, received, TCP_ACK | TCP_RST, NULL, 0);
		forget(at);
	}
}
