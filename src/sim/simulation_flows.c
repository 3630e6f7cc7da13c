/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message has a slot from its post to the last of its two reports to the workload; the slot's number
 * travels as immediate data if the receiver must report. Channels are found by their connection in a
 * hash table and close some time after their last message.
 */
#include "sim/simulation_flows_state.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/ideal.h"

/* ---- slots ------------------------------------------------------------------------------------------ */

static bool add_slab(struct flows *f)
{
	struct slot *slab;

	if (f->slab_count == f->slab_room) {
		uint32_t room = f->slab_room ? 2 * f->slab_room : 16;
		struct slot **more = realloc(f->slabs, room * sizeof(*more));

		if (!more)
			return false;
		f->slabs = more;
		f->slab_room = room;
	}
	slab = calloc(SLOTS_A_SLAB, sizeof(*slab));
	if (!slab)
		return false;
	f->slabs[f->slab_count] = slab;
	for (uint32_t i = SLOTS_A_SLAB; i-- > 0;) {
		slab[i].number = f->slab_count * SLOTS_A_SLAB + i;
		slab[i].free_next = f->free;
		f->free = slab[i].number;
	}
	f->slab_count++;
	return true;
}

static struct slot *take_slot(struct flows *f)
{
	struct slot *s;

	if (f->free == NO_SLOT && !add_slab(f))
		return NULL;
	s = slot_of(f, f->free);
	f->free = s->free_next;
	s->open = true;
	s->received = false;
	s->told = 0;
	s->line = NULL;
	return s;
}

/* ---- lines ------------------------------------------------------------------------------------------ */

static uint32_t bucket_of(const struct flows *f, uint64_t connection)
{
	return (uint32_t)(connection * UINT64_C(0x9e3779b97f4a7c15) >> 32) & f->bucket_mask;
}

static void widen(struct flows *f)
{
	uint32_t mask = 2 * f->bucket_mask + 1;
	struct line **old = f->buckets, **more = calloc(mask + 1, sizeof(*more));
	uint32_t old_mask = f->bucket_mask;

	if (!more)
		return; /* slower, but correct */
	f->buckets = more;
	f->bucket_mask = mask;
	for (uint32_t i = 0; i <= old_mask; i++) {
		while (old[i]) {
			struct line *l = old[i];
			uint32_t b = bucket_of(f, l->connection);

			old[i] = l->next;
			l->next = more[b];
			more[b] = l;
		}
	}
	free(old);
}

static uint64_t name_of(uint32_t host, uint32_t qpn)
{
	return (uint64_t)host << 32 | qpn;
}

static bool name(struct flows *f, const struct line *l)
{
	uint64_t channel = (uintptr_t)l->channel;

	return !f->c.named || !l->channel ||
	       (key_map_set(&f->names, name_of(l->src, channel_sender_qpn(l->channel)), channel) &&
		key_map_set(&f->names, name_of(l->dst, channel_receiver_qpn(l->channel)), channel));
}

static void forget_name(struct flows *f, const struct line *l)
{
	if (!l->channel)
		return;
	key_map_remove(&f->names, name_of(l->src, channel_sender_qpn(l->channel)));
	key_map_remove(&f->names, name_of(l->dst, channel_receiver_qpn(l->channel)));
}

static bool open_channel(struct flows *f, struct line *l, const struct message *m)
{
	struct host *src = f->c.hosts[m->src], *dst = f->c.hosts[m->dst];
	struct topology_path way;

	if (f->c.sdr) {
		if (topology_paths_get(f->c.paths, m->src, m->dst, &way))
			return false;
		l->sdr = sdr_line_open(src, dst, f->c.sdr,
				       topology_path_base_rtt_ps(&way, f->c.switch_latency_ps) / 1000 + 1, m->class);
		if (l->sdr)
			sdr_line_set_owner(l->sdr, l);
		return l->sdr;
	}
	l->channel = channel_open_in_class(src, dst, f->c.piece_bytes, m->class);
	if (l->channel)
		channel_set_owner(l->channel, l);
	return l->channel;
}

static void close_channel(struct line *l)
{
	channel_close(l->channel);
	sdr_line_close(l->sdr);
}

static struct line *line_get(struct flows *f, const struct message *m)
{
	struct line **bucket = &f->buckets[bucket_of(f, m->connection)], *l;

	for (l = *bucket; l; l = l->next) {
		if (l->connection == m->connection)
			return l;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	if (!open_channel(f, l, m))
		goto free_line;
	l->connection = m->connection;
	l->src = m->src;
	l->dst = m->dst;
	if (!name(f, l))
		goto close_channel;
	l->next = *bucket;
	*bucket = l;
	if (++f->line_count > 2 * f->bucket_mask)
		widen(f);
	return l;

close_channel:
	forget_name(f, l);
	close_channel(l);
free_line:
	free(l);
	return NULL;
}

void line_unlink(struct flows *f, struct line *l)
{
	struct line **at = &f->buckets[bucket_of(f, l->connection)];

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	f->line_count--;
}

static void line_free(struct flows *f, struct line *l)
{
	forget_name(f, l);
	close_channel(l);
	free(l);
}

/* ---- messages that wait for their time ------------------------------------------------------------- */

static bool before(const struct slot *a, const struct slot *b)
{
	if (a->message.start_ps != b->message.start_ps)
		return a->message.start_ps < b->message.start_ps;
	return a->flow < b->flow; /* in the order in which they were released */
}

static bool due_push(struct flows *f, struct slot *s)
{
	uint32_t i = f->due_count;

	if (f->due_count == f->due_room) {
		uint32_t room = f->due_room ? 2 * f->due_room : 64;
		struct slot **more = realloc(f->due, room * sizeof(*more));

		if (!more)
			return false;
		f->due = more;
		f->due_room = room;
	}
	f->due_count++;
	for (; i && before(s, f->due[(i - 1) / 2]); i = (i - 1) / 2)
		f->due[i] = f->due[(i - 1) / 2];
	f->due[i] = s;
	return true;
}

static struct slot *due_pop(struct flows *f)
{
	struct slot *top = f->due[0], *s = f->due[--f->due_count];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < f->due_count) {
		if (child + 1 < f->due_count && before(f->due[child + 1], f->due[child]))
			child++;
		if (!before(f->due[child], s))
			break;
		f->due[i] = f->due[child];
		i = child;
	}
	f->due[i] = s;
	return top;
}

/* ---- life ------------------------------------------------------------------------------------------- */

struct flows *flows_create(const struct flows_config *c)
{
	struct flows *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->c = *c;
	f->free = NO_SLOT;
	f->closing_end = &f->closing;
	f->broken_end = &f->broken;
	f->bucket_mask = 1023;
	f->buckets = calloc(f->bucket_mask + 1, sizeof(struct line *));
	if (c->parts > 1)
		f->reports = aligned_alloc(64, c->parts * sizeof(*f->reports));
	if (f->reports)
		memset(f->reports, 0, c->parts * sizeof(*f->reports));
	if (!f->buckets || (c->parts > 1 && !f->reports)) {
		free(f->buckets);
		free(f->reports);
		free(f);
		return NULL;
	}
	f->has_next = workload_next(c->workload, &f->next);
	return f;
}

void flows_destroy(struct flows *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i <= f->bucket_mask; i++) {
		while (f->buckets[i]) {
			struct line *l = f->buckets[i];

			line_unlink(f, l);
			line_free(f, l);
		}
	}
	while (f->closing) {
		struct line *l = f->closing;

		f->closing = l->later_next;
		line_free(f, l);
	}
	for (uint32_t i = 0; i < f->slab_count; i++)
		free(f->slabs[i]);
	for (uint32_t i = 0; f->reports && i < f->c.parts; i++)
		free(f->reports[i].list);
	free(f->reports);
	free(f->taken);
	free(f->slabs);
	free(f->due);
	free(f->buckets);
	key_map_fini(&f->names);
	free(f);
}

/* ---- inside nodes ---------------------------------------------------------------------------------- */

/* Connections of relays are none of the workload's; those of all sources to one destination are one. */
#define RELAYED (UINT64_C(1) << 47)

static uint32_t relay_of(const struct flows *f, const struct message *m)
{
	return f->c.pxn && !inside_joins(f->c.inside, m->src, m->dst) ? inside_relay(f->c.inside, m->src, m->dst)
								      : m->src;
}

/* Whether its first way, or all of it, is inside a node. */
static bool goes_inside(const struct flows *f, const struct slot *s)
{
	return s->relay != s->message.src || inside_joins(f->c.inside, s->message.src, s->message.dst);
}

/* The message as the relay sends it. */
static struct message relayed(const struct slot *s)
{
	struct message m = s->message;

	if (s->relay == m.src)
		return m;
	m.src = s->relay;
	m.connection = (m.connection & ~(2 * RELAYED - 1)) | RELAYED | (uint64_t)m.src << 20 | m.dst;
	return m;
}

/* ---- posting ---------------------------------------------------------------------------------------- */

static bool arrival_matters(const struct flows *f, const struct message *m);

/* The way of a message, with room for its rates; links 0: there is none. */
static struct ideal_way way_of(const struct flows *f, const struct message *m, struct topology_path *way,
			       uint64_t rates_bps[IDEAL_LINKS_MAX])
{
	const struct host_config *h = host_config(f->c.hosts[m->src]);
	struct ideal_way w = {
		.rates_bps = rates_bps,
		.latency_ps = f->c.switch_latency_ps,
		.read_bps = h->delay.read_bps,
		.drain_bps = f->c.drain_bps,
		.hosts_ps = h->delay.post_ps + h->delay.ack_ps + h->delay.completion_ps,
	};
	int64_t links = topology_paths_rates(f->c.paths, m->src, m->dst, rates_bps);

	*way = (struct topology_path){0};
	if (topology_paths_get(f->c.paths, m->src, m->dst, way) || links < 1 || links > IDEAL_LINKS_MAX)
		return w;
	w.links = (uint32_t)links;
	w.delay_ps = way->delay_ps;
	return w;
}

/* Sets what depends on the way between the hosts. */
static void know_way(const struct flows *f, const struct message *message, struct results_flow *record)
{
	struct slot s = {.message = *message, .relay = relay_of(f, message)};
	const struct message hop = relayed(&s), *m = &hop;
	const struct host_config *h = host_config(f->c.hosts[m->src]);
	struct host_message wire = host_message_wire(h, m->bytes, arrival_matters(f, m));
	uint64_t rates_bps[IDEAL_LINKS_MAX];
	struct topology_path way;
	struct ideal_way w = {0};

	if (inside_joins(f->c.inside, m->src, m->dst)) {
		record->inside = true;
		record->base_rtt_ps = 2 * inside_delay_ps(f->c.inside);
		record->ideal_ps = inside_alone_ps(f->c.inside, m->bytes) + inside_delay_ps(f->c.inside);
		return;
	}
	w = way_of(f, m, &way, rates_bps);
	if (way.hops)
		record->base_rtt_ps = topology_path_base_rtt_ps(&way, f->c.switch_latency_ps);
	if (w.links)
		record->ideal_ps = ideal_ps(&w, &wire, h->mtu_bytes);
	if (w.links && s.relay != message->src)
		record->ideal_ps += inside_alone_ps(f->c.inside, m->bytes);
}

void flows_alone(const struct flows *f, const struct message *m, uint64_t *arrives_ps, uint64_t *acked_ps)
{
	const struct host_config *h = host_config(f->c.hosts[m->src]);
	struct host_message wire = host_message_wire(h, m->bytes, arrival_matters(f, m));
	uint64_t rates_bps[IDEAL_LINKS_MAX], least_bps;
	struct topology_path way;
	struct ideal_way w = way_of(f, m, &way, rates_bps);

	*arrives_ps = *acked_ps = 0;
	if (!w.links)
		return;
	/* Several ways together may be as fast as the hosts' links. */
	least_bps = rates_bps[0] < rates_bps[w.links - 1] ? rates_bps[0] : rates_bps[w.links - 1];
	for (uint32_t i = 1; i + 1 < w.links; i++)
		rates_bps[i] = rates_bps[i] < least_bps ? least_bps : rates_bps[i];
	*acked_ps = ideal_ps(&w, &wire, h->mtu_bytes);
	*arrives_ps = *acked_ps - h->delay.ack_ps - ideal_answer_ps(&w, &wire);
}

/* Whether other messages of this part wait for the arrival of one. */
static bool arrival_matters(const struct flows *f, const struct message *m)
{
	struct workload_facts facts;

	workload_facts(f->c.workload, m->part, &facts);
	return facts.arrivals;
}

void flows_lack_memory(struct flows *f)
{
	f->out_of_memory = true;
	network_stop(f->c.network);
}

static void drop(struct flows *f, struct slot *s)
{
	slot_put(f, s);
	f->open--;
	flows_lack_memory(f);
}

/* By the NIC of its source, or of the relay that has it now. */
static void post_outside(struct flows *f, struct slot *s)
{
	const struct message hop = relayed(s);

	s->line = line_get(f, &hop);
	if (!s->line) {
		drop(f, s);
		return;
	}
	s->line->last |= s->message.last && s->relay == s->message.src;
	s->post = (struct message_post){
		.bytes = s->message.bytes,
		.imm = s->number,
		.notify = arrival_matters(f, &s->message),
	};
	if (f->c.posted)
		f->c.posted(f->c.ctx, s->flow, s->line->channel);
	if (s->line->sdr) {
		s->sdr = (struct sdr_message){.bytes = s->message.bytes, .owner = s};
		sdr_line_post(s->line->sdr, &s->sdr);
	} else {
		channel_post(s->line->channel, &s->post);
	}
}

static void post(struct flows *f, struct slot *s)
{
	bool relays = s->relay != s->message.src;

	if (!goes_inside(f, s)) {
		post_outside(f, s);
		return;
	}
	s->inside = (struct inside_message){
		.bytes = s->message.bytes,
		.src = s->message.src,
		.dst = relays ? s->relay : s->message.dst,
		.quiet = relays,
	};
	if (!relays && f->c.posted)
		f->c.posted(f->c.ctx, s->flow, NULL);
	if (!inside_post(f->c.inside, &s->inside, network_now_ps(f->c.network)))
		drop(f, s);
}

/* Accepts a message: posts it, or keeps it until its time. */
static void begin(struct flows *f, const struct message *m)
{
	uint64_t now_ps = network_now_ps(f->c.network);
	struct results_flow record = {
		.src = m->src,
		.dst = m->dst,
		.workload = f->c.origins[m->part].workload,
		.round = f->c.origins[m->part].round,
		.qp = f->c.origins[m->part].qp,
		.connection = m->connection + 1,
		.bytes = m->bytes,
		.start_ps = m->start_ps > now_ps ? m->start_ps : now_ps,
		.fct_ps = RESULTS_NOT_DONE,
	};
	struct slot *s;

	if (!m->bytes) { /* a connection without traffic */
		if (!inside_joins(f->c.inside, m->src, m->dst) && !line_get(f, m))
			flows_lack_memory(f);
		return;
	}
	know_way(f, m, &record);
	s = take_slot(f);
	if (!s || results_flow_add(f->c.results, &record, &s->flow)) {
		if (s)
			slot_put(f, s);
		flows_lack_memory(f);
		return;
	}
	s->message = *m;
	s->relay = relay_of(f, m);
	f->begun++;
	f->open++;
	if (m->start_ps <= now_ps) {
		post(f, s);
	} else if (!due_push(f, s)) {
		slot_put(f, s);
		f->open--;
		flows_lack_memory(f);
	}
}

uint64_t flows_due_ps(const struct flows *f)
{
	uint64_t at = f->has_next ? f->next.start_ps : NETWORK_NEVER_PS;

	if (f->due_count && f->due[0]->message.start_ps < at)
		at = f->due[0]->message.start_ps;
	if (workload_deadline(f->c.workload) < at)
		at = workload_deadline(f->c.workload);
	if (inside_deadline(f->c.inside) < at)
		at = inside_deadline(f->c.inside);
	if (f->closing && f->closing->closes_ps < at)
		at = f->closing->closes_ps;
	if (f->broken && f->broken->ends_ps < at)
		at = f->broken->ends_ps;
	return at;
}

uint64_t flows_next_ps(struct flows *f)
{
	f->next_told_ps = flows_due_ps(f);
	return f->next_told_ps;
}

bool flows_have_ended(const struct flows *f)
{
	return !f->open && !f->has_next && workload_deadline(f->c.workload) == WORKLOAD_NEVER_PS;
}

/* What is due inside nodes: messages arrive, or their relays have them. */
static void take_inside(struct flows *f)
{
	uint64_t now_ps = network_now_ps(f->c.network);
	struct inside_message *m;
	bool sent;

	while (f->c.inside && !f->out_of_memory && (m = inside_report(f->c.inside, now_ps, &sent))) {
		struct slot *s = (struct slot *)((char *)m - offsetof(struct slot, inside));

		if (m->quiet)
			post_outside(f, s);
		else if (sent)
			flows_end(f, s, now_ps, true, false);
		else
			flows_report_received(f, s, now_ps);
	}
}

/* Connections close, and flows end whose connections broke. */
static void end_due(struct flows *f, uint64_t now_ps)
{
	while (f->closing && f->closing->closes_ps <= now_ps) {
		struct line *l = f->closing;

		f->closing = l->later_next;
		if (!f->closing)
			f->closing_end = &f->closing;
		line_free(f, l);
	}
	while (f->broken && f->broken->ends_ps <= now_ps) {
		struct slot *s = f->broken;

		f->broken = s->later_next;
		if (!f->broken)
			f->broken_end = &f->broken;
		s->open = false;
		f->done++;
		f->failed++;
		f->open--;
	}
}

void flows_post_due(struct flows *f)
{
	uint64_t now_ps = network_now_ps(f->c.network);

	end_due(f, now_ps);
	while (f->due_count && f->due[0]->message.start_ps <= now_ps)
		post(f, due_pop(f));
	while (f->has_next && f->next.start_ps <= now_ps && !f->out_of_memory) {
		begin(f, &f->next);
		f->has_next = workload_next(f->c.workload, &f->next);
	}
	take_inside(f);
	while (workload_deadline(f->c.workload) <= now_ps && !f->out_of_memory) {
		workload_expire(f->c.workload, now_ps);
		flows_take_released(f);
	}
}

void flows_take_released(struct flows *f)
{
	struct message m;

	while (workload_released(f->c.workload, &m))
		begin(f, &m);
	if (workload_failed(f->c.workload))
		flows_lack_memory(f);
	if (flows_due_ps(f) < f->next_told_ps)
		network_stop(f->c.network);
}

uint32_t flows_flow_of(void *flows, uint32_t to, uint32_t qpn, uint32_t psn, bool data)
{
	const struct flows *f = flows;
	uint64_t channel = key_map_get(&f->names, name_of(to, qpn));
	const struct channel *c = channel == KEY_MAP_NONE ? NULL : (const struct channel *)(uintptr_t)channel;
	const struct message_post *m = NULL;

	if (c && data)
		m = channel_message(c, psn);
	else if (c)
		channel_progress(c, &m);
	return m ? ((const struct slot *)m)->flow : PACKET_NO_FLOW;
}

void flows_count(const struct flows *f, struct flows_count *out)
{
	*out = (struct flows_count){
		.begun = f->begun,
		.done = f->done,
		.failed = f->failed,
		.out_of_memory = f->out_of_memory,
		.ended = flows_have_ended(f),
	};
}
