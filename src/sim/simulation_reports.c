/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What hosts report about messages, and what follows from it.
 *
 * Where the network is divided, hosts report from several threads. What they report while parts run apart is kept in a
 * list of each part, and taken in order of time once the parts have met: nothing that a report causes may reach another
 * host by then. So a connection does not close with its last message, and a broken one does not end its flow, but at a
 * later time that follows from that of the report alone.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "net/grown.h"
#include "sim/simulation_flows_state.h"

void flows_report_received(struct flows *f, struct slot *s, uint64_t now_ps)
{
	if (s->received)
		return;
	s->received = true;
	workload_received(f->c.workload, &s->message, now_ps);
	flows_take_released(f);
}

static void report_sent(struct flows *f, struct slot *s, uint64_t now_ps)
{
	workload_sent(f->c.workload, &s->message, now_ps);
	flows_take_released(f);
}

/* Counts up to just before now: a window ends before the moment at its end. */
static void tell(struct flows *f, struct slot *s, uint64_t now_ps, uint64_t received)
{
	if (received <= s->told)
		return;
	if (results_goodput_add(f->c.results, s->flow, now_ps ? now_ps - 1 : 0, received - s->told))
		f->out_of_memory = true;
	s->told = received;
}

static void tell_of_line(void *flows, struct sdr_message *m, uint64_t bytes)
{
	const struct flows *f = flows;

	tell(flows, m->owner, network_now_ps(f->c.network), bytes);
}

void flows_sample(struct flows *f)
{
	uint64_t now_ps = network_now_ps(f->c.network);

	for (uint32_t i = 0; i <= f->bucket_mask; i++) {
		for (struct line *l = f->buckets[i]; l; l = l->next) {
			struct channel_cursor at = {0};
			const struct message_post *m;
			uint64_t bytes;

			if (l->sdr)
				sdr_line_progress(l->sdr, tell_of_line, f);
			while (l->channel && (m = channel_received(l->channel, &at, &bytes)))
				tell(f, slot_of(f, m->imm), now_ps, bytes);
		}
	}
}

/* A time after now that does not depend on when the report of now is taken. */
static uint64_t later_ps(uint64_t now_ps)
{
	return (now_ps / LATER_PS + 2) * LATER_PS;
}

/* A message for this connection now opens another one. */
static void close_later(struct flows *f, struct line *l, uint64_t now_ps)
{
	line_unlink(f, l);
	l->closes_ps = later_ps(now_ps);
	l->later_next = NULL;
	*f->closing_end = l;
	f->closing_end = &l->later_next;
}

/*
 * The QP broke: messages that wait for this one will never begin. Its last packet may arrive all the same, so its slot
 * is not used again.
 */
static void end_broken(struct flows *f, struct slot *s, uint64_t now_ps)
{
	s->received = true;
	s->ends_ps = later_ps(now_ps);
	s->later_next = NULL;
	*f->broken_end = s;
	f->broken_end = &s->later_next;
}

static bool is_idle(const struct line *l)
{
	return l->sdr ? sdr_line_is_idle(l->sdr) : channel_is_idle(l->channel);
}

void flows_end(struct flows *f, struct slot *s, uint64_t now_ps, bool good, bool idle)
{
	struct line *l = s->line;

	if (f->c.ended)
		f->c.ended(f->c.ctx, s->flow, l ? l->channel : NULL, good);
	if (good) {
		f->done++;
		f->open--;
		results_flow_done(f->c.results, s->flow, now_ps);
		flows_report_received(f, s, now_ps);
		report_sent(f, s, now_ps);
		slot_put(f, s);
	} else {
		end_broken(f, s, now_ps);
	}
	/* It may have a message again, which the end of this one has released. */
	if (l && l->last && idle && is_idle(l))
		close_later(f, l, now_ps);
	/* The wait for the last flow must end; and what is due later must be known. */
	if (flows_have_ended(f) || flows_due_ps(f) < f->next_told_ps)
		network_stop(f->c.network);
}

static void take_report(struct flows *f, const struct report *r)
{
	if (r->received) {
		flows_report_received(f, r->slot, r->at_ps);
		return;
	}
	if (r->good)
		tell(f, r->slot, r->at_ps, r->sent_bytes);
	if (r->done)
		flows_end(f, r->slot, r->at_ps, r->good, r->idle);
}

/* Takes the report of a host now, or keeps it until the parts of the network have met. */
static void report(struct flows *f, uint32_t host, struct report *r)
{
	r->at_ps = network_now_ps(network_of_host(f->c.network, host));
	if (!network_is_apart(f->c.network)) {
		take_report(f, r);
		return;
	}
	struct reports *kept = &f->reports[network_part(f->c.network, host)];
	struct report *list = grown(kept->list, kept->count, &kept->room, sizeof(*list));

	if (!list) {
		kept->out_of_memory = true;
		return;
	}
	kept->list = list;
	list[kept->count++] = *r;
}

/* By time, and then in an order that does not depend on the parts. */
static int compare_reports(const void *x, const void *y)
{
	const struct report *a = x, *b = y;

	if (a->at_ps != b->at_ps)
		return a->at_ps < b->at_ps ? -1 : 1;
	if (a->slot != b->slot)
		return a->slot->number < b->slot->number ? -1 : 1;
	if (a->received != b->received)
		return a->received ? -1 : 1;
	return a->sent_bytes < b->sent_bytes ? -1 : a->sent_bytes > b->sent_bytes;
}

static void take_reports(struct flows *f)
{
	uint32_t count = 0;

	for (uint32_t p = 0; p < f->c.parts; p++) {
		count += f->reports[p].count;
		f->out_of_memory |= f->reports[p].out_of_memory;
	}
	if (!count)
		return;
	if (count > f->taken_room) {
		struct report *more = realloc(f->taken, 2 * count * sizeof(*more));

		if (!more) {
			flows_lack_memory(f);
			return;
		}
		f->taken = more;
		f->taken_room = 2 * count;
	}
	count = 0;
	for (uint32_t p = 0; p < f->c.parts; p++) {
		if (!f->reports[p].count)
			continue;
		memcpy(&f->taken[count], f->reports[p].list, f->reports[p].count * sizeof(*f->taken));
		count += f->reports[p].count;
		f->reports[p].count = 0;
	}
	qsort(f->taken, count, sizeof(*f->taken), compare_reports);
	for (uint32_t i = 0; i < count; i++)
		take_report(f, &f->taken[i]);
}

/* Whether so much of the message is still to arrive that it cannot be done by then. */
static bool lasts(const struct flows *f, const struct slot *s, uint64_t until_ps)
{
	uint64_t now_ps = network_now_ps(f->c.network), rate_bps = network_host_rate_bps(f->c.network, s->message.dst);
	uint32_t mtu = host_config(f->c.hosts[s->message.dst])->mtu_bytes;
	uint64_t arrive;

	rate_bps = f->c.drain_bps > rate_bps ? f->c.drain_bps : rate_bps;
	arrive = (uint64_t)((unsigned __int128)rate_bps * (until_ps - now_ps) / (8000000000000u * (uint64_t)mtu));

	return s->open && s->line && s->line->channel && channel_missing(s->line->channel, &s->post) > arrive + 1;
}

/* Whether the last flow may end by then. */
static bool may_end(struct flows *f, uint64_t until_ps)
{
	if (f->has_next || f->due_count || f->broken)
		return false;
	if (f->unfinished && lasts(f, f->unfinished, until_ps))
		return false;
	for (uint32_t i = 0; i < f->slab_count * SLOTS_A_SLAB; i++) {
		f->unfinished = slot_of(f, i);
		if (lasts(f, f->unfinished, until_ps))
			return false;
	}
	return true;
}

bool flows_apart(void *flows, uint64_t end_ps)
{
	take_reports(flows);
	return !may_end(flows, end_ps);
}

void flows_completed(void *flows, struct channel *c, uint64_t wr_id, uint64_t bytes, bool good)
{
	struct report r = {.good = good};

	(void)bytes;
	r.slot = (struct slot *)channel_completed(c, wr_id, &r.sent_bytes, &r.done);
	r.sent_bytes = r.slot->post.completed;
	r.idle = channel_is_idle(c);
	report(flows, r.slot->line->src, &r);
}

void flows_received(void *flows, uint32_t imm)
{
	struct flows *f = flows;

	/* The sender cannot know before the receiver: acknowledged bytes have arrived. */
	assert(imm / SLOTS_A_SLAB < f->slab_count);
	struct report r = {.slot = slot_of(f, imm), .received = true};

	report(f, r.slot->message.dst, &r);
}

void flows_line_received(void *flows, struct sdr_message *m)
{
	struct flows *f = flows;

	flows_report_received(f, m->owner, network_now_ps(f->c.network));
}

void flows_line_sent(void *flows, struct sdr_message *m, bool good)
{
	struct flows *f = flows;
	struct slot *s = m->owner;
	uint64_t now_ps = network_now_ps(f->c.network);

	if (good)
		tell(f, s, now_ps, m->bytes);
	flows_end(f, s, now_ps, good, sdr_line_is_idle(s->line->sdr));
}
