/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines and their transfers. A host with lines has a guest (host.h), which knows the lines that send from it and the
 * deadlines of the ends that are on it. At most one packet of a line waits in the nic, so what goes next is decided
 * when the wire is free.
 *
 * A callback may close its line. So every call that may make a callback holds the line busy,
 * and a line that is closed while busy is freed when the last such call returns.
 */
#include "sim/sdr_line.h"

#include <stdlib.h>
#include <string.h>

#include "sim/sdr_line_state.h"
#include "sim/sdr_words.h"

enum { SLOTS = 4, GENERATIONS = 2, DATA_WRS = 4, WORD_WRS = 4096, FRAG_BITS = 2, OFFSET_BITS_MIN = 18, SOON_NS = 1000 };

/* A queue pair as its owner pointer. */
struct uc_end {
	struct sdr_line *line;
	uint32_t generation;
	enum sdr_end end;
	bool words; /* and not data */
	bool fill;  /* parities that give way */
};

/* What a host knows of the way to another. */
struct known_way {
	struct known_way *next;
	const struct host *to;
	struct loss_estimate estimate;
};

struct guest {
	struct known_way *ways;
	struct sdr_line *sending; /* lines that have transfers */
	struct timers timers;
	struct sdr_counts counts;
};

/* ---- guests ------------------------------------------------------------------------------------------- */

static void guest_fill(void *, uint64_t now_ns);
static void guest_completed(void *, const struct cqe *);
static uint64_t guest_deadline(const void *);
static void guest_expire(void *, uint64_t now_ns);
static void guest_destroy(void *);

static const struct host_guest guest_calls = {
	.fill = guest_fill,
	.completed = guest_completed,
	.deadline = guest_deadline,
	.expire = guest_expire,
	.destroy = guest_destroy,
};

static struct guest *guest_of(struct host *h)
{
	struct guest *g = host_guest(h);

	if (g)
		return g;
	g = calloc(1, sizeof(*g));
	if (g && host_set_guest(h, &guest_calls, g))
		return g;
	free(g);
	return NULL;
}

static void guest_destroy(void *guest)
{
	struct guest *g = guest;
	struct known_way *next;

	for (struct known_way *w = g->ways; w; w = next) {
		next = w->next;
		free(w);
	}
	free(g);
}

static struct loss_estimate *estimate_of(struct guest *g, const struct host *to)
{
	struct known_way *w = g->ways;

	while (w && w->to != to)
		w = w->next;
	if (w)
		return &w->estimate;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	*w = (struct known_way){.next = g->ways, .to = to};
	loss_estimate_init(&w->estimate);
	g->ways = w;
	return &w->estimate;
}

struct sdr_counts sdr_counts_of(const struct host *h)
{
	const struct guest *g = host_guest(h);

	return g ? g->counts : (struct sdr_counts){0};
}

static uint64_t guest_deadline(const void *guest)
{
	return timers_deadline(&((const struct guest *)guest)->timers);
}

/* ---- life --------------------------------------------------------------------------------------------- */

static uint32_t log2_up(uint64_t n)
{
	uint32_t bits = 0;

	while (UINT64_C(1) << bits < n)
		bits++;
	return bits;
}

static struct shape shape_of(const struct host *h, const struct sdr_config *c)
{
	uint32_t mtu = host_config(h)->mtu_bytes, bits = log2_up(c->message_bytes);
	uint32_t chunk = c->scheme == SDR_SCHEME_TAIL ? mtu : c->chunk_bytes;
	uint64_t message = UINT64_C(1) << bits;
	uint32_t offset_bits;

	/* Parities may be more than a short message, and a chunk is the shortest. */
	if (message < 512 * (uint64_t)chunk)
		message = 512 * (uint64_t)chunk;
	offset_bits = log2_up(message / mtu);
	if (offset_bits < OFFSET_BITS_MIN)
		offset_bits = OFFSET_BITS_MIN;
	return (struct shape){
		.split = {.id_bits = (uint8_t)(32 - FRAG_BITS - offset_bits),
			  .offset_bits = (uint8_t)offset_bits,
			  .frag_bits = FRAG_BITS},
		.mtu = mtu,
		.chunk_bytes = chunk,
		.slots = SLOTS,
		.generations = GENERATIONS,
		.channels = c->channels,
		.message_bytes = message,
	};
}

/* The pair of a channel; the one behind the last is for idle fill. */
static uint32_t pair_of(const struct sdr_line *l, uint32_t generation, uint32_t channel)
{
	return channel < l->shape.channels ? generation * l->shape.channels + channel
					   : GENERATIONS * l->shape.channels + generation;
}

/* Pair i of queue pairs; the last pair is for words. */
static bool make_pair(struct sdr_line *l, uint32_t i, uint8_t class)
{
	uint32_t fill_from = pair_of(l, 0, l->shape.channels);
	bool words = i == l->qp_count - 1, fill = i >= fill_from && !words;
	struct qp **qp = &l->qps[2 * i];

	for (uint32_t end = SDR_SENDING; end <= SDR_RECEIVING; end++) {
		struct host *h = end == SDR_SENDING ? l->from : l->to;

		l->ends[2 * i + end] = (struct uc_end){
			.line = l,
			.generation = fill ? i - fill_from : i / l->shape.channels,
			.end = end,
			.words = words,
			.fill = fill,
		};
		qp[end] = host_guest_qp(h, words ? WORD_WRS : DATA_WRS, &l->ends[2 * i + end]);
		if (!qp[end])
			return false;
	}
	class = fill ? l->config->fill_class : class;
	return !host_guest_connect(l->from, qp[0], l->to, qp[1], class) &&
	       !host_guest_connect(l->to, qp[1], l->from, qp[0], class);
}

static void destroy_qps(struct sdr_line *l)
{
	for (uint32_t i = 0; l->qps && i < 2 * l->qp_count; i++) {
		if (l->qps[i])
			nic_qp_destroy(host_nic(i % 2 ? l->to : l->from), l->qps[i]);
	}
}

static void line_free(struct sdr_line *l)
{
	sender_free(&l->sender);
	receiver_free(&l->receiver);
	sdr_words_destroy(l->words);
	free(l->qps);
	free(l->ends);
	free(l);
}

struct sdr_line *sdr_line_open(struct host *from, struct host *to, const struct sdr_config *config, uint64_t rtt_ns,
			       uint8_t class)
{
	struct guest *here = guest_of(from), *there = guest_of(to);
	struct sdr_line *l = calloc(1, sizeof(*l));
	bool good;

	if (!l || !here || !there) {
		free(l);
		return NULL;
	}
	*l = (struct sdr_line){.config = config, .from = from, .to = to, .counts = &here->counts};
	l->shape = shape_of(from, config);
	/* What a rate that finds itself keeps in a queue is up to 0.7 of it. */
	l->rtt_ns = config->rate_auto ? rtt_ns / 4 * 7 : rtt_ns;
	auto_rate_init(&l->rate, config->rate_auto, l->shape.mtu, 0, host_now_ns(from));
	timer_init(&l->pace_timer.timer);
	l->pace_timer.line = l;
	l->qp_count = GENERATIONS * (config->channels + !!config->fill_class) + 1;
	l->qps = calloc(2 * (size_t)l->qp_count, sizeof(*l->qps));
	l->ends = calloc(2 * (size_t)l->qp_count, sizeof(*l->ends));
	l->words = sdr_words_create();
	l->estimate = estimate_of(here, to);
	good = l->estimate && l->qps && l->ends && l->words && shape_valid(&l->shape) &&
	       !sender_init(&l->sender, &l->shape, &sdr_line_alloc) &&
	       !receiver_init(&l->receiver, &l->shape, &sdr_line_alloc);
	for (uint32_t i = 0; good && i < l->qp_count; i++)
		good = make_pair(l, i, class);
	if (good)
		return l;
	destroy_qps(l);
	line_free(l);
	return NULL;
}

void sdr_line_set_owner(struct sdr_line *l, void *owner)
{
	l->owner = owner;
}

void *sdr_line_owner(const struct sdr_line *l)
{
	return l->owner;
}

bool sdr_line_is_idle(const struct sdr_line *l)
{
	for (const struct transfer *t = l->transfers; t; t = t->next) {
		if (t->message)
			return false;
	}
	return !l->first;
}

static void enter(struct sdr_line *l)
{
	l->busy++;
}

static void leave(struct sdr_line *l)
{
	if (!--l->busy && l->closed)
		line_free(l);
}

/* ---- the list of lines that send from a host ------------------------------------------------------------ */

static bool is_listed(const struct guest *g, const struct sdr_line *l)
{
	return l->prev || l->next || g->sending == l;
}

static void list(struct sdr_line *l)
{
	struct guest *g = guest_of(l->from);

	if (is_listed(g, l))
		return;
	l->next = g->sending;
	if (l->next)
		l->next->prev = l;
	g->sending = l;
}

static void unlist(struct sdr_line *l)
{
	struct guest *g = guest_of(l->from);

	if (!is_listed(g, l))
		return;
	if (l->prev)
		l->prev->next = l->next;
	else
		g->sending = l->next;
	if (l->next)
		l->next->prev = l->prev;
	l->next = NULL;
	l->prev = NULL;
}

/* ---- words -------------------------------------------------------------------------------------------- */

static enum sr_end end_of(const struct transfer *t)
{
	return t->tx.scheme->end(&t->tx);
}

/* A time that has passed is soon: a sender that waits for the wire has such. */
static void set_timer(struct transfer *t, enum sdr_end end, uint64_t now_ns)
{
	struct guest *g = guest_of(end == SDR_SENDING ? t->line->from : t->line->to);
	uint64_t at_ns = sdr_end_deadline(t, end);

	if (at_ns == UINT64_MAX)
		timer_cancel(&g->timers, &t->timer[end].timer);
	else
		timer_set(&g->timers, &t->timer[end].timer, at_ns > now_ns ? at_ns : now_ns + SOON_NS);
}

/* All that an end has to say now, and its next deadline. What it has to send is asked for by guest_fill(). */
static void speak(struct transfer *t, enum sdr_end end, uint64_t now_ns)
{
	uint8_t payload[SDR_WORD_BYTES_MAX];
	enum control_type type;
	int len;

	while ((len = sdr_end_tell(t, end, payload, &type, now_ns)) >= 0) {
		const struct control c = {.type = type, .number = (uint32_t)t->part[0].number, .length = (uint16_t)len};

		sdr_line_say(t->line, end, &c, payload);
	}
	set_timer(t, end, now_ns);
}

/* ---- transfers ---------------------------------------------------------------------------------------- */

static void end_receive(struct transfer *t, struct sdr_part *p)
{
	struct sdr_line *l = t->line;
	struct slot *slot;

	if (!p->mr)
		return;
	worker_rest(&l->worker);
	slot = receiver_complete(&l->receiver, p->number);
	sdr_past_keep(l, p, slot);
	p->mr = NULL;
	if (slot)
		slot_reset(slot);
}

static void transfer_free(struct transfer *t)
{
	struct sdr_line *l = t->line;
	struct transfer **at = &l->transfers;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	if (l->turn == t)
		l->turn = t->next;
	for (int i = 0; i < SDR_PARTS; i++)
		end_receive(t, &t->part[i]);
	timer_cancel(&guest_of(l->from)->timers, &t->timer[SDR_SENDING].timer);
	timer_cancel(&guest_of(l->to)->timers, &t->timer[SDR_RECEIVING].timer);
	if (t->tx.scheme)
		t->tx.scheme->tx_free(&t->tx);
	if (t->rx.scheme)
		t->rx.scheme->rx_free(&t->rx);
	free(t);
}

void sdr_line_close(struct sdr_line *l)
{
	if (!l)
		return;
	unlist(l);
	timer_cancel(&guest_of(l->from)->timers, &l->pace_timer.timer);
	while (l->transfers)
		transfer_free(l->transfers);
	sdr_past_forget(l);
	destroy_qps(l);
	l->closed = true;
	if (!l->busy)
		line_free(l);
}

/* Posts the receive of a part and grants it to the sender, which starts its message. */
static bool open_part(struct transfer *t, struct sdr_part *p, uint64_t bytes)
{
	struct sdr_line *l = t->line;
	uint8_t payload[CTS_FIXED_LEN + CTS_GRANT_LEN];
	struct cts cts = {.count = 1};
	struct grant grant = {.bytes = bytes};
	uint64_t number;

	p->mr = host_region(l->to, bytes);
	if (!p->mr || receiver_post(&l->receiver, bytes, &p->number))
		return false;
	grant.key = p->mr->key;
	cts.first = (uint32_t)p->number;
	cts.posted = (uint32_t)l->receiver.posted;
	cts_encode(payload, &cts, &grant);
	sender_cts(&l->sender, &cts, payload);
	p->bytes = bytes;
	return !sender_start(&l->sender, NULL, &number) && number == p->number;
}

static bool both_free(const struct sdr_line *l, uint32_t parts)
{
	uint64_t number = l->receiver.posted;

	for (uint32_t i = 0; i < parts; i++) {
		uint32_t slot = shape_slot(&l->shape, number + i);

		if (l->receiver.slots[slot].open || l->sender.slots[slot].taken)
			return false;
	}
	return true;
}

static void append(struct sdr_line *l, struct transfer *t)
{
	struct transfer **at = &l->transfers;

	while (*at)
		at = &(*at)->next;
	*at = t;
	list(l);
}

/* Begins a transfer of the first message that waits; false: it goes on waiting. */
static bool begin(struct sdr_line *l, uint64_t now_ns)
{
	struct sdr_message *m = l->first;
	uint64_t parity = m ? sdr_parity_bytes(l, m->bytes) : 0;
	struct transfer *t;

	if (!m || !both_free(l, parity ? 2 : 1))
		return false;
	t = calloc(1, sizeof(*t));
	if (!t)
		return false;
	l->first = m->next;
	*t = (struct transfer){.line = l, .message = m, .packets = shape_packets(&l->shape, m->bytes)};
	for (uint32_t end = SDR_SENDING; end <= SDR_RECEIVING; end++) {
		timer_init(&t->timer[end].timer);
		t->timer[end].transfer = t;
		t->timer[end].end = end;
	}
	append(l, t);
	if (!open_part(t, &t->part[0], m->bytes) || (parity && !open_part(t, &t->part[1], parity)) ||
	    !sdr_scheme_open(t, now_ns)) {
		/* As if it had failed: without memory the run ends soon. */
		transfer_free(t);
		l->config->sent(l->config->ctx, m, false);
		return true;
	}
	speak(t, SDR_SENDING, now_ns);
	speak(t, SDR_RECEIVING, now_ns);
	host_kick(l->from);
	return true;
}

void sdr_line_post(struct sdr_line *l, struct sdr_message *m)
{
	m->next = NULL;
	if (l->first)
		l->last->next = m;
	else
		l->first = m;
	l->last = m;
	enter(l);
	while (!l->closed && begin(l, host_now_ns(l->from)))
		;
	leave(l);
}

/* Frees the transfer once both ends are done with it, and begins another in its place. */
static void settle(struct transfer *t, uint64_t now_ns)
{
	struct sdr_line *l = t->line;

	for (int i = 0; i < SDR_PARTS; i++) {
		struct sdr_part *p = &t->part[i];

		if (end_of(t) == SR_RUNNING)
			return;
		if (p->bytes && !p->ended)
			p->ended = !sender_end(&l->sender, p->number);
		if (p->bytes && p->ended && !p->returned)
			p->returned = sender_done(&l->sender, p->number) == 1;
		if (p->bytes && !p->returned)
			return;
	}
	if (t->message || (end_of(t) == SR_DONE && !t->rx.scheme->quiet(&t->rx)))
		return;
	transfer_free(t);
	if (!l->transfers)
		unlist(l);
	while (!l->closed && begin(l, now_ns))
		;
}

/* Tells the programs what has happened at an end. The line may be closed afterwards, and the transfer gone. */
static void report(struct transfer *t, enum sdr_end end, uint64_t now_ns)
{
	struct sdr_line *l = t->line;
	const struct sdr_config *c = l->config;
	struct sdr_message *m = t->message;

	if (end == SDR_RECEIVING && m && !t->received && t->rx.scheme->whole(&t->rx)) {
		t->received = true;
		c->received(c->ctx, m);
		if (l->closed)
			return;
	}
	if (end == SDR_SENDING && m && end_of(t) != SR_RUNNING) {
		bool good = end_of(t) == SR_DONE;

		t->message = NULL;
		c->sent(c->ctx, m, good);
		if (l->closed)
			return;
	}
	settle(t, now_ns);
}

void sdr_line_progress(const struct sdr_line *l, void (*each)(void *ctx, struct sdr_message *, uint64_t bytes),
		       void *ctx)
{
	for (const struct transfer *t = l->transfers; t; t = t->next) {
		uint64_t bytes = t->message ? sdr_have(t) * l->shape.mtu : 0;

		if (bytes)
			each(ctx, t->message, bytes < t->message->bytes ? bytes : t->message->bytes);
	}
}

/* ---- out ---------------------------------------------------------------------------------------------- */

/* When the next packet may leave, or a PING. */
static void set_pace_timer(struct sdr_line *l, uint64_t now_ns)
{
	uint64_t at_ns = sdr_rate_due(l, now_ns);

	if (at_ns == UINT64_MAX)
		timer_cancel(&guest_of(l->from)->timers, &l->pace_timer.timer);
	else
		timer_set(&guest_of(l->from)->timers, &l->pace_timer.timer, at_ns);
}

static void post_packet(struct sdr_line *l, const struct send_packet *p, uint64_t now_ns)
{
	struct qp *qp = l->qps[2 * pair_of(l, p->generation, p->channel)];
	struct host_memory here = host_memory(l->from);
	struct send_wqe *w = sq_slot(qp_sq(qp), 0);

	*w = (struct send_wqe){
		.wr_id = p->slot,
		.opcode = WR_WRITE_IMM,
		.flags = WR_SIGNALED,
		.num_sge = 1,
		.length = p->bytes,
		.imm_or_key = p->imm,
		.rkey = p->rkey,
		.remote_va = p->offset,
	};
	w->sge[0] = (struct wqe_sge){.addr = here.va, .len = p->bytes, .lkey = here.key};
	sq_post(qp_sq(qp), 1);
	nic_doorbell(host_nic(l->from), qp);
	l->posted += p->channel < l->shape.channels;
	l->fill_is_posted |= p->channel == l->shape.channels;
	l->counts->packets++;
	sdr_rate_posted(l, p->bytes, now_ns);
}

uint64_t sdr_line_send_ns(const struct sdr_line *l, uint64_t bytes)
{
	uint32_t mtu = l->shape.mtu, full = (uint32_t)(bytes / mtu), rest = (uint32_t)(bytes % mtu);
	uint64_t wire_ns = (full * host_packet_ps(l->from, mtu) + (rest ? host_packet_ps(l->from, rest) : 0)) / 1000;

	return wire_ns > sdr_rate_ns(l, bytes) ? wire_ns : sdr_rate_ns(l, bytes);
}

static struct send_block block_of(struct transfer *t, const struct scheme_piece *p)
{
	const struct sdr_line *l = t->line;
	uint64_t piece = l->shape.chunk_bytes, offset = p->at * piece, left = t->part[p->parity].bytes - offset;
	struct send_block b = {
		.addr = host_memory(l->from).va,
		.bytes = left < piece ? left : piece,
		.offset = offset,
		.fill = p->fill,
	};

	l->counts->parity_packets += p->parity;
	l->counts->fill_packets += p->fill;
	l->counts->resent_packets += p->resent ? shape_packets(&l->shape, b.bytes) : 0;
	return b;
}

/* Asks the transfers in turn for a piece, which counts as sent when its last packet has left. */
static bool feed(struct sdr_line *l, uint64_t now_ns)
{
	struct transfer *first = l->turn ? l->turn : l->transfers, *t = first;

	while (t) {
		struct scheme_piece p;

		if (t->tx.scheme->next(&t->tx, &p, now_ns)) {
			struct send_block b = block_of(t, &p);

			t->tx.scheme->sent(&t->tx, &p, now_ns + sdr_line_send_ns(l, b.bytes));
			l->turn = t->next;
			speak(t, SDR_SENDING, now_ns);
			return !sender_add(&l->sender, t->part[p.parity].number, &b);
		}
		t = t->next ? t->next : l->transfers;
		if (t == first)
			break;
	}
	return false;
}

static bool post_next(struct sdr_line *l, uint64_t now_ns)
{
	struct send_packet p;

	if (!sender_peek(&l->sender, &p))
		return false;
	post_packet(l, &p, now_ns);
	sender_sent(&l->sender);
	return true;
}

/* Where no line has anything to send, one packet of idle fill is posted. */
static void post_fill(struct guest *g, uint64_t now_ns)
{
	for (struct sdr_line *l = g->sending; l; l = l->next) {
		for (struct transfer *t = l->transfers; t && l->config->fill_class; t = t->next) {
			struct scheme_piece p;
			struct send_block b;

			if (!t->tx.scheme->fill || !t->tx.scheme->fill(&t->tx, &p, now_ns))
				continue;
			b = block_of(t, &p);
			if (!sender_add(&l->sender, t->part[p.parity].number, &b))
				post_next(l, now_ns);
			return;
		}
	}
}

static void guest_fill(void *guest, uint64_t now_ns)
{
	struct guest *g = guest;
	bool idle = true;

	for (struct sdr_line *l = g->sending; l; l = l->next) {
		idle &= !l->posted && !l->fill_is_posted;
		if (l->posted)
			continue;
		if (!sdr_rate_may_post(l, now_ns))
			idle = false;
		else if (post_next(l, now_ns) || (feed(l, now_ns) && post_next(l, now_ns)))
			idle = false;
		set_pace_timer(l, now_ns);
	}
	if (idle)
		post_fill(g, now_ns);
}

/* ---- in ----------------------------------------------------------------------------------------------- */

static struct transfer *transfer_of(const struct sdr_line *l, uint32_t number)
{
	struct transfer *t = l->transfers;

	while (t && (uint32_t)t->part[0].number != number)
		t = t->next;
	return t;
}

static void take_word(struct sdr_line *l, enum sdr_end end, uint32_t number, uint64_t now_ns)
{
	struct transfer *t;
	struct control c;
	uint32_t len;
	const uint8_t *word = sdr_words_get(l->words, number, &len);

	if (!word || !control_decode(&c, word, len, 0))
		return;
	if (sdr_rate_hear(l, end, &c, word + CONTROL_HEADER_LEN, now_ns)) {
		set_pace_timer(l, now_ns);
		host_kick(l->from);
		return;
	}
	t = transfer_of(l, c.number);
	if (!t)
		return;
	sdr_end_hear(t, end, &c, word + CONTROL_HEADER_LEN, now_ns);
	speak(t, end, now_ns);
	host_kick(l->from);
	report(t, end, now_ns);
}

static void take_packet(struct sdr_line *l, const struct uc_end *q, const struct cqe *e, uint64_t now_ns)
{
	struct imm imm = imm_unpack(l->shape.split, e->imm_or_key);
	enum sdr_verdict v = worker_note(&l->worker, &l->receiver, q->generation, e->imm_or_key, e->byte_len);

	worker_rest(&l->worker);
	if (v == SDR_DUP || (v == SDR_DROP_LATE && sdr_past_has(l, q->generation, imm)))
		l->counts->spurious_packets++;
	if (v != SDR_TAKEN && v != SDR_CHUNK)
		return;
	for (struct transfer *t = l->transfers; t; t = t->next) {
		for (uint32_t i = 0; i < SDR_PARTS; i++) {
			if (!t->part[i].mr || shape_slot(&l->shape, t->part[i].number) != imm.id)
				continue;
			sdr_came(t, i, imm.offset, v, now_ns);
			speak(t, SDR_RECEIVING, now_ns);
			report(t, SDR_RECEIVING, now_ns);
			return;
		}
	}
}

/* Packets that went leave room for the next; the last one of a message may end its transfer. */
static void take_returned(struct sdr_line *l, const struct uc_end *q, const struct cqe *e, uint64_t now_ns)
{
	if (q->fill)
		l->fill_is_posted = false;
	else
		l->posted--;
	sender_returned(&l->sender, (uint32_t)e->wr_id, 1);
	for (struct transfer *t = l->transfers; t; t = t->next) {
		if (end_of(t) != SR_RUNNING) {
			settle(t, now_ns);
			return;
		}
	}
}

static void guest_completed(void *guest, const struct cqe *e)
{
	const struct uc_end *q = e->qp_owner;
	struct sdr_line *l = q->line;
	uint64_t now_ns = host_now_ns(l->from);

	(void)guest;
	enter(l);
	if (e->status == WC_SUCCESS && e->opcode & WC_RECV && q->words)
		take_word(l, q->end, e->imm_or_key, now_ns);
	else if (e->status == WC_SUCCESS && e->opcode & WC_RECV)
		take_packet(l, q, e, now_ns);
	else if (!q->words)
		take_returned(l, q, e, now_ns);
	leave(l);
}

/* ---- time --------------------------------------------------------------------------------------------- */

static void line_expire(struct sdr_line *l, uint64_t now_ns)
{
	sdr_rate_expire(l, now_ns);
	set_pace_timer(l, now_ns);
	host_kick(l->from);
}

static void guest_expire(void *guest, uint64_t now_ns)
{
	struct guest *g = guest;
	struct timer *timer;

	while ((timer = timers_take_due(&g->timers, now_ns))) {
		struct end_timer *due = (struct end_timer *)timer;
		struct transfer *t = due->transfer;
		struct sdr_line *l = t ? t->line : due->line;
		enum sdr_end end = due->end;

		if (!t) {
			line_expire(l, now_ns);
			continue;
		}
		enter(l);
		sdr_end_expire(t, end, now_ns);
		speak(t, end, now_ns);
		host_kick(l->from);
		report(t, end, now_ns);
		leave(l);
	}
}
