/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Switches that cut payloads off instead of dropping packets (veRoCE 8; out-of-order O31): a Packet
 * Drop NAK at once reports a packet that comes without its payload, and it is sent again once.
 */
#include <errno.h>

#include "support/test.h"
#include "veroce/transfer.h"

enum { MTU = 1024, LATENCY_NS = 50000, WARM = 4, CUTS_MAX = 1024, TRIMMED_TOS = 9 << 2 | 2 };

/* A trimmed packet on its way. */
struct cut {
	uint64_t arrival_ns;
	struct flow flow;
	uint8_t data[256];
	uint32_t len;
};

struct trimming {
	struct transfer t;
	uint32_t ppm;        /* of first copies of data */
	uint32_t copies_ppm; /* of further ones */
	uint32_t all_below;  /* besides, of packets below that index the first copies */
	uint8_t tos;
	bool cut_this;
	struct cut cuts[CUTS_MAX];
	uint32_t count, delivered;
};

static bool choose(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	struct trimming *m = ctx;
	bool data = transfer_is_data(&m->t, p) && p->payload_len;

	m->cut_this = data && ((!p->bth.retrans && transfer_index(&m->t, p) < m->all_below) ||
			       prng_below(&m->t.prng, 1000000) < (p->bth.retrans ? m->copies_ppm : m->ppm));
	*fate = DUO_DROP;
	return m->cut_this;
}

/* Headers as they were, pad count included; lengths and the ICRC are those of the trimmed packet. */
static void cut(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct trimming *m = ctx;
	struct cut *c = &m->cuts[m->count];
	struct pkt pkt = {.data = c->data, .flow = &c->flow, .train = 1};

	if (!m->cut_this)
		return;
	m->cut_this = false;
	assert_true(m->count++ < CUTS_MAX);
	c->arrival_ns = m->t.duo->now_ns + m->t.duo->latency_ns;
	c->flow = duo_flow(m->t.duo, !m->t.from, DUO_GID_IPV4);
	c->flow.sport = (uint16_t)(DUO_SPORT_IPV4 + p->path);
	c->flow.dport = VEROCE_UDP_PORT;
	c->flow.tos = m->tos;
	pkt.len = p->len - p->payload_len - p->bth.pad;
	assert_true(pkt.len <= sizeof(c->data));
	memcpy(c->data, data, pkt.len - ICRC_LEN);
	icrc_seal(NULL, &pkt, 0);
	c->len = pkt.len;
}

/* In steps in which the channel delivers what is left of packets too, until nothing has happened
 * for long. */
static void run(struct trimming *m)
{
	struct duo *d = m->t.duo;

	for (uint32_t quiet = 0; quiet < 2000; quiet++) {
		duo_run_for(d, 1000);
		while (m->delivered < m->count && m->cuts[m->delivered].arrival_ns <= d->now_ns) {
			const struct cut *c = &m->cuts[m->delivered++];

			assert_int_equal(duo_inject(d, !m->t.from, &c->flow, c->data, c->len), 0);
			quiet = 0;
		}
	}
	duo_idle(d);
	assert_int_equal(m->delivered, m->count);
	transfer_check(&m->t);
}

static void start(struct trimming *m, const struct veroce_options *v, bool read, uint32_t len)
{
	struct duo_options o = duo_options();

	m->tos = m->tos ? m->tos : TRIMMED_TOS;
	transfer_start(&m->t, v, &o, 1, read, len, LATENCY_NS, WARM);
	m->t.duo->script = choose;
	m->t.duo->script_ctx = m;
	m->t.duo->tap = cut;
	m->t.duo->tap_ctx = m;
}

static size_t drop_naks(const struct transfer *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->duo->wire_count; i++) {
		const struct duo_packet *p = &t->duo->wire[i];

		n += p->from != t->from && p->aeth.syndrome == (AETH_NAK | NAK_PSN_SEQUENCE) &&
		     p->bth.opcode == (t->read ? OP_RC_ACK_RSP : OP_RC_ACK);
	}
	return n;
}

static struct veroce_options trim_options(void)
{
	struct veroce_options v = veroce_options();

	v.trim = true;
	return v;
}

/* The only packet, so that no other can show that it was lost. */
TEST(lone_trimmed_packet_is_sent_again_at_once)
{
	static const uint32_t lengths[] = {1, 4, 1023, 1024};

	for (unsigned i = 0; i < 2 * COUNT(lengths); i++) {
		struct veroce_options v = trim_options();
		struct trimming *m = calloc(1, sizeof(*m));
		struct transfer *t = &m->t;
		const struct duo_packet *nak;

		m->all_below = 1;
		start(m, &v, i & 1, MTU);
		memcpy(t->dst->p, t->src->p, MTU);
		memset(t->dst->p, 0, lengths[i / 2]);
		transfer_post(t, 0, lengths[i / 2]);
		run(m);
		DUO_CHECK(t->duo, t->receiver->rx_trimmed == 1);
		DUO_CHECK(t->duo, drop_naks(t) == 1 && t->receiver->naks_sent == 1);
		DUO_CHECK(t->duo, transfer_copies(t, 0) == 1);
		/* A round trip later: nothing waited. */
		DUO_CHECK(t->duo,
			  transfer_copy(t, 0, 1)->sent_ns <= transfer_copy(t, 0, 0)->sent_ns + 2 * LATENCY_NS + 2000);
		nak = duo_packet(t->duo, !t->from, t->read ? OP_RC_ACK_RSP : OP_RC_ACK, WARM);
		DUO_CHECK(t->duo, nak->aeth.syndrome == (AETH_NAK | NAK_PSN_SEQUENCE));
		DUO_CHECK(t->duo, nak->bth.psn == t->psn && nak->aeth.msn == WARM);
		DUO_CHECK(t->duo, nak->po == POETH_NO_INFO);
		DUO_CHECK(t->duo, !t->sender->tail_probes && !t->sender->timeouts);
		DUO_CHECK(t->duo, !t->receiver->rx_duplicates);
		transfer_end(t);
		free(m);
	}
}

/* out-of-order O31 */
TEST(trimmed_packets_are_sent_again_once)
{
	enum { PACKETS = 2000 };

	for (unsigned i = 0; i < 4; i++) {
		struct veroce_options v = trim_options();
		struct trimming *m = calloc(1, sizeof(*m));
		struct transfer *t = &m->t;

		v.paths = i & 2 ? 4 : 1;
		v.window_bytes = 100 * MTU;
		m->ppm = 100000;
		start(m, &v, i & 1, PACKETS * MTU);
		transfer_post(t, 0, PACKETS * MTU);
		run(m);
		DUO_CHECK(t->duo, m->count > PACKETS / 20);
		DUO_CHECK(t->duo, t->receiver->rx_trimmed == m->count);
		DUO_CHECK(t->duo, drop_naks(t) == m->count);
		DUO_CHECK(t->duo, t->sender->timeouts == 0 && t->sender->tail_probes == 0);
		DUO_CHECK(t->duo, t->sender->retransmits == m->count);
		transfer_end(t);
		free(m);
	}
}

/* The copy may be trimmed too, and so may its copy. */
TEST(trimmed_copies_are_sent_again)
{
	for (unsigned i = 0; i < 4; i++) {
		struct veroce_options v = trim_options();
		struct trimming *m = calloc(1, sizeof(*m));
		struct transfer *t = &m->t;

		v.paths = i & 2 ? 4 : 1;
		m->ppm = m->copies_ppm = 500000;
		start(m, &v, i & 1, 200 * MTU);
		transfer_post(t, 0, 200 * MTU);
		run(m);
		DUO_CHECK(t->duo, t->sender->timeouts == 0);
		DUO_CHECK(t->duo, t->sender->retransmits == m->count);
		transfer_end(t);
		free(m);
	}
}

/* No packet behind them shows the loss of those without a NAK. */
TEST(whole_message_may_be_trimmed)
{
	static const uint32_t packets[] = {9, 64, 400};

	for (unsigned i = 0; i < 4 * COUNT(packets); i++) {
		struct veroce_options v = trim_options();
		struct trimming *m = calloc(1, sizeof(*m));
		struct transfer *t = &m->t;
		uint32_t n = packets[i / 4];

		v.paths = i & 2 ? 4 : 1;
		m->all_below = n;
		start(m, &v, i & 1, n * MTU);
		transfer_post(t, 0, n * MTU);
		run(m);
		DUO_CHECK(t->duo, drop_naks(t) == n && t->receiver->naks_sent == n);
		DUO_CHECK(t->duo, t->sender->retransmits == n);
		DUO_CHECK(t->duo, t->receiver->rx_duplicates == 0);
		DUO_CHECK(t->duo, !t->sender->timeouts && !t->sender->tail_probes);
		/* A round trip later: nothing waited. */
		for (uint32_t k = 0; k < n; k++)
			DUO_CHECK(t->duo, transfer_copy(t, k, 1)->sent_ns <=
						  transfer_copy(t, k, 0)->sent_ns + 2 * LATENCY_NS + 2000);
		transfer_end(t);
		free(m);
	}
}

/* Only data may be trimmed; without trimming at both ends nothing may be. */
TEST(data_alone_is_marked_trimmable)
{
	for (unsigned i = 0; i < 4; i++) {
		struct pkt burst[16];
		size_t n;
		struct sim s = VEROCE_SIM(v.trim = i & 1, v.base[DUO_B] = i & 2);

		duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 3 * MTU, s.bbuf, 0));
		n = nic_output(s.a->host->nic, burst, COUNT(burst), s.duo->now_ns);
		assert_int_equal(n, 3);
		for (size_t k = 0; k < n; k++) {
			assert_int_equal(burst[k].flow->tos, i == 1 ? 8 << 2 | 2 : 2);
			duo_inject(s.duo, DUO_B, burst[k].flow, burst[k].data, burst[k].len);
		}
		n = nic_output(s.b->host->nic, burst, COUNT(burst), s.duo->now_ns);
		assert_int_equal(n, 1);
		assert_int_equal(burst[0].flow->tos, 2);
		duo_inject(s.duo, DUO_A, burst[0].flow, burst[0].data, burst[0].len);
		duo_finish(s.a, 1, WC_SUCCESS);
		assert_memory_equal(s.abuf->p, s.bbuf->p, 3 * MTU);
		sim_end(&s);
	}
}

/* A duplicate's headers say nothing new: it is not asked for again. */
TEST(trimmed_duplicate_is_no_news)
{
	struct veroce_options v = trim_options();
	struct trimming *m = calloc(1, sizeof(*m));
	struct transfer *t = &m->t;
	struct cut again;

	m->all_below = 1;
	start(m, &v, false, MTU);
	transfer_post(t, 0, MTU);
	run(m);
	again = m->cuts[0];
	assert_int_equal(duo_inject(t->duo, DUO_B, &again.flow, again.data, again.len), 0);
	duo_idle(t->duo);
	DUO_CHECK(t->duo, t->receiver->rx_duplicates == 1 && t->receiver->rx_trimmed == 1);
	DUO_CHECK(t->duo, drop_naks(t) == 1 && t->sender->retransmits == 1);
	transfer_end(t);
	free(m);
}

/* A packet with a pad whose payload is missing is malformed without the mark, and lost then. */
TEST(cut_packet_without_the_mark_is_lost)
{
	for (int read = 0; read < 2; read++) {
		struct veroce_options v = trim_options();
		struct trimming *m = calloc(1, sizeof(*m));
		struct transfer *t = &m->t;

		m->tos = 2;
		start(m, &v, read, MTU);
		memcpy(t->dst->p, t->src->p, MTU);
		memset(t->dst->p, 0, 1021);
		m->all_below = 1;
		transfer_post(t, 0, 1021);
		duo_run_for(t->duo, (read ? 2 : 1) * LATENCY_NS);
		DUO_CHECK(t->duo, m->count == 1);
		assert_int_equal(duo_inject(t->duo, !t->from, &m->cuts[0].flow, m->cuts[0].data, m->cuts[0].len),
				 -EBADMSG);
		duo_idle(t->duo);
		transfer_check(t);
		DUO_CHECK(t->duo, t->receiver->rx_malformed == 1 && t->receiver->rx_trimmed == 0);
		DUO_CHECK(t->duo, drop_naks(t) == 0 && t->sender->tail_probes == 1);
		transfer_end(t);
		free(m);
	}
}
