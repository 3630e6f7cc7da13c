/* SPDX-License-Identifier: BSD-2-Clause */
/* Text of events. The BTH comes from a packet's body; packets of tests may have no body. */
#include "sim/event_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "wire/bth.h"
#include "wire/opcode.h"
#include "wire/rocev2.h"
#include "wire/veroce.h"

/* A line being written; text that does not fit is cut. */
struct line {
	char *text;
	size_t at;
};

static __attribute__((format(printf, 2, 3))) void add(struct line *l, const char *format, ...)
{
	size_t room = EVENT_LOG_LINE_BYTES - 1 - l->at; /* there is always room for the newline */
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(l->text + l->at, room, format, ap);
	va_end(ap);
	l->at += n > 0 && (size_t)n < room ? (size_t)n : room - 1;
}

static size_t end(struct line *l)
{
	l->text[l->at++] = '\n';
	l->text[l->at] = 0;
	return l->at;
}

static void add_port(struct line *l, const struct topology *t, const struct network_record *r)
{
	const struct topology_link *link = &t->links[r->link];

	add(l, " %" PRIu32 "-%" PRIu32, r->end ? link->b : link->a, r->end ? link->a : link->b);
}

static void add_transport(struct line *l, const struct packet *p)
{
	const struct opcode_info *info;
	struct bth bth;

	if (!p->body || p->body_bytes < BTH_LEN)
		return;
	bth_decode(&bth, p->body);
	info = p->dport == ROCEV2_UDP_PORT ? opcode_info((uint8_t)bth.opcode) : veroce_opcode_info((uint8_t)bth.opcode);
	if (info)
		add(l, " %s", info->name);
	else
		add(l, " opcode-%u", (unsigned)bth.opcode);
	add(l, " psn %" PRIu32 " qp 0x%" PRIx32, bth.psn, bth.dqpn);
}

static void add_packet(struct line *l, const struct packet *p)
{
	if (p->flags & PACKET_CREDITS) {
		add(l, " credits lane %u fctbs %u fccl %u", p->credits.vl, p->credits.fctbs, p->credits.fccl);
		return;
	}
	if (p->flags & PACKET_PAUSE) {
		add(l, " pfc classes 0x%02x pause 0x%02x quanta %u", p->pfc.classes, p->pfc.pause, p->pfc.quanta);
		return;
	}
	if (p->flow == PACKET_NO_FLOW)
		add(l, " flow -");
	else
		add(l, " flow %" PRIu32, p->flow);
	add_transport(l, p);
	add(l, " bytes %" PRIu32 " class %u%s%s", p->wire_bytes, p->class, p->flags & PACKET_CE ? " ce" : "",
	    p->flags & PACKET_TRIMMED ? " trimmed" : "");
}

static const char *const events[] = {
	[NETWORK_SENT] = "sent",       [NETWORK_ARRIVED] = "arrived",     [NETWORK_DROPPED] = "dropped",
	[NETWORK_TRIMMED] = "trimmed", [NETWORK_WOKEN] = "woken",         [NETWORK_LINK_DOWN] = "link-down",
	[NETWORK_LINK_UP] = "link-up", [NETWORK_LINK_RATE] = "link-rate",
};

static const char *const reasons[NETWORK_DROPS] = {
	[NETWORK_DROP_QUEUE] = "buffer-full",      [NETWORK_DROP_CONTROL] = "control-full",
	[NETWORK_DROP_HEADROOM] = "headroom-full", [NETWORK_DROP_LINK_LOSS] = "loss",
	[NETWORK_DROP_CORRUPT] = "corrupt",        [NETWORK_DROP_LINK_DOWN] = "link-down",
	[NETWORK_DROP_NO_ROUTE] = "no-route",      [NETWORK_DROP_HOPS] = "hops",
	[NETWORK_DROP_NO_HOST] = "no-host",        [NETWORK_DROP_CREDITS] = "no-credits",
	[NETWORK_DROP_LIFETIME] = "lifetime",
};

size_t event_log_network(char text[EVENT_LOG_LINE_BYTES], const struct topology *t, const struct network_record *r,
			 uint64_t now_ps)
{
	struct line l = {.text = text};

	add(&l, "%" PRIu64 " %s", now_ps, events[r->event]);
	if (r->event == NETWORK_WOKEN) {
		add(&l, " %" PRIu32, r->host);
		return end(&l);
	}
	add_port(&l, t, r);
	if (r->packet)
		add_packet(&l, r->packet);
	if (r->packet && r->queue_bytes && r->event != NETWORK_ARRIVED)
		add(&l, " queue %" PRIu32, r->queue_bytes);
	if (r->event == NETWORK_DROPPED && reasons[r->reason])
		add(&l, " %s", reasons[r->reason]);
	if (r->event == NETWORK_LINK_RATE)
		add(&l, " rate %" PRIu64, r->rate_bps);
	return end(&l);
}

size_t event_log_flow(char text[EVENT_LOG_LINE_BYTES], const char *what, uint32_t flow, uint32_t src, uint32_t dst,
		      uint64_t bytes, uint64_t now_ps)
{
	struct line l = {.text = text};

	add(&l, "%" PRIu64 " %s %" PRIu32 "-%" PRIu32 " flow %" PRIu32 " bytes %" PRIu64, now_ps, what, src, dst, flow,
	    bytes);
	return end(&l);
}
