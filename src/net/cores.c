/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows, threads, and packets from part to part. The thread that calls network_run() plans windows and runs part 0;
 * it alone touches anything while no window runs. Windows are numbered by `turn`. Packets sent over a cut link in a
 * window lie in a list of that window; in the next window the far part copies them into its own store, and in the one
 * after that the near part takes the originals back. So two lists a link are enough, and no list is touched by two
 * threads in one window.
 */
#include "net/cores.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/int_stack.h"
#include "net/network_state.h"

/* Windows are no longer, so that nothing waits longer for their end. */
#define LOOKAHEAD_PS_MAX UINT64_C(10000000)

struct cut {
	struct port *port;
	struct packet *first[2], **end[2]; /* by the window's number, modulo 2 */
};

struct part {
	struct network net;
	struct cores *cores;
	pthread_t thread;
	uint64_t ran;     /* the last window */
	uint64_t last_ps; /* of its last event */
	/* By the part itself in its window, and by the planner between windows. */
	uint64_t sent_ps;       /* the earliest arrival of what it has sent to others in the last window */
	uint64_t sent;          /* of those, not yet copied */
	struct cut **in, **out; /* cut links that lead here, and away */
	uint32_t in_count, out_count;
} __attribute__((aligned(64)));

struct cores {
	struct network *whole;
	struct part *parts;
	uint32_t count, threads; /* threads: those that run, beside the caller's */
	uint32_t *part_of;       /* each node's */
	struct cut *cuts;
	uint64_t lookahead_ps;
	struct network_cores config;
	bool apart; /* a window runs */

	pthread_mutex_t lock;
	pthread_cond_t begins, ends;
	uint64_t turn, window_end_ps;
	uint32_t running;
	bool over;
};

/* ---- who has what --------------------------------------------------------------------------------- */

static uint32_t far_node(const struct network *net, const struct port *port)
{
	return port->to_host ? (uint32_t)(port->to_host - net->hosts) : port->to_switch->node;
}

static uint32_t near_node(const struct network *net, const struct port *port)
{
	return port->host ? (uint32_t)(port->host - net->hosts) : port->sw->node;
}

/*
 * Hosts go with their switch, and these are dealt out in the order of their hosts, so that a rack or pod stays together.
 * Returns how many such switches there are.
 */
static uint32_t place_edges(const struct network *net, uint32_t count, uint32_t *part_of)
{
	uint32_t edges = 0, seen = 0;

	for (uint32_t n = 0; n < net->node_count; n++)
		part_of[n] = UINT32_MAX;
	for (uint32_t h = 0; h < net->host_count; h++) {
		uint32_t at = far_node(net, net->hosts[h].port);

		edges += part_of[at] == UINT32_MAX;
		part_of[at] = 0;
	}
	for (uint32_t n = 0; n < net->node_count; n++)
		part_of[n] = UINT32_MAX;
	for (uint32_t h = 0; h < net->host_count; h++) {
		uint32_t at = far_node(net, net->hosts[h].port);

		if (part_of[at] == UINT32_MAX)
			part_of[at] = (uint32_t)((uint64_t)seen++ * count / edges);
		part_of[h] = part_of[at];
	}
	return edges;
}

/* The part that most of the switch's links lead to, or of several the one with the fewest ports; UINT32_MAX: none. */
static uint32_t nearest(const struct network *net, const struct sim_switch *sw, const uint32_t *part_of, uint32_t count,
			uint32_t *links, const uint64_t *ports)
{
	uint32_t best = UINT32_MAX;

	memset(links, 0, count * sizeof(*links));
	for (uint32_t i = 0; i < sw->port_count; i++) {
		uint32_t part = part_of[far_node(net, &sw->ports[i])];

		if (part != UINT32_MAX)
			links[part]++;
	}
	for (uint32_t p = 0; p < count; p++) {
		if (!links[p])
			continue;
		if (best == UINT32_MAX || links[p] > links[best] || (links[p] == links[best] && ports[p] < ports[best]))
			best = p;
	}
	return best;
}

/* All other switches, tier by tier. */
static bool place_others(const struct network *net, uint32_t count, uint32_t *part_of)
{
	uint32_t *links = calloc(count, sizeof(*links)), *next = calloc(net->switch_count + 1, sizeof(*next));
	uint64_t *ports = calloc(count, sizeof(*ports));
	bool more = links && next && ports;

	while (more) {
		more = false;
		for (uint32_t i = 0; i < net->switch_count; i++) {
			const struct sim_switch *sw = &net->switches[i];

			next[i] = part_of[sw->node];
			if (next[i] != UINT32_MAX)
				continue;
			next[i] = nearest(net, sw, part_of, count, links, ports);
			if (next[i] != UINT32_MAX)
				ports[next[i]] += sw->port_count;
			more |= next[i] != UINT32_MAX;
		}
		for (uint32_t i = 0; i < net->switch_count; i++)
			part_of[net->switches[i].node] = next[i];
	}
	/* Switches that no host is connected to. */
	for (uint32_t n = 0; n < net->node_count; n++)
		part_of[n] = part_of[n] == UINT32_MAX ? 0 : part_of[n];
	more = links && next && ports;
	free(links);
	free(next);
	free(ports);
	return more;
}

static bool is_cut(const struct cores *c, const struct port *port)
{
	return c->part_of[near_node(c->whole, port)] != c->part_of[far_node(c->whole, port)];
}

/* The least time that anything takes over the link of the port, beside that of its bytes. */
static uint64_t least_ps(const struct network *net, const struct port *port)
{
	uint64_t pause_ps = port->delay_ps + net->config.pause_response_ps;

	return net->config.lossless_classes && pause_ps < port->flight_ps ? pause_ps : port->flight_ps;
}

static int lay_cuts(struct cores *c)
{
	struct network *net = c->whole;
	uint32_t cuts = 0;

	for (uint32_t i = 0; i < net->port_count; i++)
		cuts += is_cut(c, &net->ports[i]);
	c->cuts = calloc(cuts + 1, sizeof(*c->cuts));
	for (uint32_t p = 0; p < c->count; p++) {
		c->parts[p].in = calloc(cuts + 1, sizeof(struct cut *));
		c->parts[p].out = calloc(cuts + 1, sizeof(struct cut *));
		if (!c->parts[p].in || !c->parts[p].out)
			return -ENOMEM;
	}
	if (!c->cuts)
		return -ENOMEM;
	cuts = 0;
	for (uint32_t i = 0; i < net->port_count; i++) {
		struct port *port = &net->ports[i];
		struct part *from = &c->parts[c->part_of[near_node(net, port)]];
		struct part *to = &c->parts[c->part_of[far_node(net, port)]];

		if (from == to)
			continue;
		struct cut *cut = &c->cuts[cuts++];

		*cut = (struct cut){.port = port};
		cut->end[0] = &cut->first[0];
		cut->end[1] = &cut->first[1];
		from->out[from->out_count++] = cut;
		to->in[to->in_count++] = cut;
		if (least_ps(net, port) < c->lookahead_ps)
			c->lookahead_ps = least_ps(net, port);
	}
	if (!c->lookahead_ps)
		return -EDOM;
	for (uint32_t i = 0; i < cuts; i++) {
		c->cuts[i].port->cut = &c->cuts[i];
		c->cuts[i].port->special |= SPECIAL_CUT;
	}
	return 0;
}

/* ---- packets that go over ------------------------------------------------------------------------- */

static struct part *part_of_network(struct network *net)
{
	return (struct part *)((char *)net - offsetof(struct part, net));
}

void cut_send(struct network *from, struct cut *cut, struct packet *p)
{
	struct part *part = part_of_network(from);
	unsigned list = part->cores->turn % 2;

	p->next = NULL;
	*cut->end[list] = p;
	cut->end[list] = &p->next;
	part->sent++;
	if (p->time_ps < part->sent_ps)
		part->sent_ps = p->time_ps;
}

static void take_back(struct part *part, unsigned list)
{
	for (uint32_t i = 0; i < part->out_count; i++) {
		struct cut *cut = part->out[i];

		while (cut->first[list]) {
			struct packet *p = cut->first[list];

			cut->first[list] = p->next;
			packet_put(&part->net.packets, p);
		}
		cut->end[list] = &cut->first[list];
	}
}

/* The packet in the part's own store; NULL: no memory. */
static struct packet *copied(struct network *net, const struct packet *p)
{
	struct packet *copy = packet_get(&net->packets);
	bool good = copy != NULL;

	if (copy && p->body) {
		void *body = packet_body(&net->packets, copy, p->body_bytes);

		good = body != NULL;
		if (body)
			memcpy(body, p->body, p->body_bytes);
	}
	if (good && p->int_stack) {
		struct int_stack *stack = packet_int(&net->packets, copy);

		good = stack != NULL;
		if (stack)
			*stack = *p->int_stack;
	}
	if (!good) {
		net->events.out_of_memory = true;
		if (copy)
			packet_put(&net->packets, copy);
		return NULL;
	}
	void *body = copy->body;
	struct int_stack *stack = copy->int_stack;

	*copy = *p;
	copy->body = body;
	copy->int_stack = stack;
	return copy;
}

static void take_in(struct part *part, unsigned list)
{
	for (uint32_t i = 0; i < part->in_count; i++) {
		const struct cut *cut = part->in[i];

		for (const struct packet *p = cut->first[list]; p; p = p->next) {
			struct packet *copy = copied(&part->net, p);

			if (copy)
				port_insert_flight(&part->net, cut->port, copy);
		}
	}
}

/* What the window before has sent arrives here, and what the one before that has sent is free. */
static void exchange(struct part *part)
{
	part->sent = 0;
	part->sent_ps = NETWORK_NEVER_PS;
	take_back(part, part->cores->turn % 2);
	take_in(part, (part->cores->turn + 1) % 2);
}

/* ---- windows --------------------------------------------------------------------------------------- */

static void run_window(struct part *part, uint64_t end_ps)
{
	uint64_t events;

	exchange(part);
	events = part->net.counts.events;
	network_advance(&part->net, end_ps, UINT64_MAX);
	if (part->net.counts.events != events)
		part->last_ps = part->net.last_ps;
}

static void *work(void *arg)
{
	struct part *part = arg;
	struct cores *c = part->cores;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (!c->over && !(c->running && part->ran != c->turn))
			pthread_cond_wait(&c->begins, &c->lock);
		if (c->over)
			break;
		uint64_t end_ps = c->window_end_ps;

		part->ran = c->turn;
		pthread_mutex_unlock(&c->lock);
		run_window(part, end_ps);
		pthread_mutex_lock(&c->lock);
		if (!--c->running)
			pthread_cond_signal(&c->ends);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/*
 * Threads begin with the first window: a program may have made a child since the network was divided. If there are not
 * enough, the planner runs the other parts.
 */
static void start_threads(struct cores *c)
{
	while (c->threads + 1 < c->count &&
	       !pthread_create(&c->parts[c->threads + 1].thread, NULL, work, &c->parts[c->threads + 1]))
		c->threads++;
}

static void all_are_at(struct cores *c, uint64_t now_ps)
{
	c->whole->now_ps = now_ps;
	for (uint32_t p = 0; p < c->count; p++)
		c->parts[p].net.now_ps = now_ps;
}

/* The earliest thing that happens in a part, or on the way to another one. */
static uint64_t next_ps(struct cores *c)
{
	uint64_t at_ps = NETWORK_NEVER_PS;

	for (uint32_t p = 0; p < c->count; p++) {
		struct part *part = &c->parts[p];
		uint64_t ps = part->net.kicked ? part->net.now_ps : event_next_ps(&part->net.events);

		at_ps = ps < at_ps ? ps : at_ps;
		at_ps = part->sent_ps < at_ps ? part->sent_ps : at_ps;
	}
	return at_ps;
}

/* Whether more than one part has something to do. */
static bool are_busy(struct cores *c, uint64_t end_ps)
{
	uint32_t busy = 0;

	for (uint32_t p = 0; p < c->count; p++) {
		if (c->parts[p].sent)
			return true;
		busy += c->parts[p].net.kicked || event_next_ps(&c->parts[p].net.events) <= end_ps;
	}
	return busy > 1;
}

/* All parts run apart, up to and including end_ps. */
static void run_apart(struct cores *c, uint64_t end_ps)
{
	uint32_t threads = are_busy(c, end_ps) ? c->threads : 0;

	pthread_mutex_lock(&c->lock);
	c->turn++;
	c->apart = true;
	c->window_end_ps = end_ps;
	c->running = threads;
	if (threads)
		pthread_cond_broadcast(&c->begins);
	pthread_mutex_unlock(&c->lock);
	run_window(&c->parts[0], end_ps);
	for (uint32_t p = threads + 1; p < c->count; p++)
		run_window(&c->parts[p], end_ps);
	pthread_mutex_lock(&c->lock);
	while (c->running)
		pthread_cond_wait(&c->ends, &c->lock);
	c->apart = false;
	pthread_mutex_unlock(&c->lock);
	all_are_at(c, end_ps);
}

static void exchange_all(struct cores *c)
{
	c->turn++;
	for (uint32_t p = 0; p < c->count; p++)
		exchange(&c->parts[p]);
}

/* The network whose event comes next, the whole one's own included; NULL: there is none by until_ps. */
static struct network *first(struct cores *c, uint64_t until_ps)
{
	const struct event *best = event_peek(&c->whole->events);
	struct network *at = best ? c->whole : NULL;

	for (uint32_t p = 0; p < c->count; p++) {
		const struct event *e = event_peek(&c->parts[p].net.events);

		if (!e ||
		    (best && (e->time_ps > best->time_ps || (e->time_ps == best->time_ps && e->order > best->order))))
			continue;
		best = e;
		at = &c->parts[p].net;
	}
	return best && best->time_ps <= until_ps ? at : NULL;
}

static bool is_out_of_memory(const struct cores *c)
{
	bool any = c->whole->events.out_of_memory;

	for (uint32_t p = 0; p < c->count; p++)
		any |= c->parts[p].net.events.out_of_memory;
	return any;
}

static bool has_sent(const struct cores *c)
{
	bool any = false;

	for (uint32_t p = 0; p < c->count; p++)
		any |= c->parts[p].sent > 0;
	return any;
}

/* One thread takes all events in their order, up to and including end_ps, until one of them stops the network. */
static void run_together(struct cores *c, uint64_t end_ps)
{
	struct network *net;

	exchange_all(c);
	/* What hosts have requested since the last event. */
	for (uint32_t p = 0; p < c->count; p++)
		network_answer(&c->parts[p].net);
	while (!c->whole->stop && !is_out_of_memory(c) && (net = first(c, end_ps))) {
		all_are_at(c, event_peek(&net->events)->time_ps);
		c->parts[0].last_ps = net->now_ps;
		if (network_advance(net, net->now_ps, 1) == NETWORK_STOPPED)
			c->whole->stop = true;
		if (has_sent(c))
			exchange_all(c);
	}
	if (!c->whole->stop)
		all_are_at(c, end_ps);
}

static uint64_t events_of(const struct cores *c)
{
	uint64_t events = c->whole->counts.events;

	for (uint32_t p = 0; p < c->count; p++)
		events += c->parts[p].net.counts.events;
	return events;
}

uint64_t cores_pending(const struct network *net)
{
	const struct cores *c = net->cores;
	uint64_t pending = net->events.pending;

	for (uint32_t p = 0; p < c->count; p++)
		pending += c->parts[p].net.events.pending + c->parts[p].sent;
	return pending;
}

static enum network_stop why_stopped(struct cores *c, uint64_t begun_ps, uint64_t until_ps)
{
	uint64_t last_ps = begun_ps;
	bool pending = cores_pending(c->whole);

	if (is_out_of_memory(c))
		return NETWORK_OUT_OF_MEMORY;
	if (c->whole->stop) {
		c->whole->stop = false;
		return NETWORK_STOPPED;
	}
	for (uint32_t p = 0; p < c->count; p++)
		last_ps = c->parts[p].last_ps > last_ps ? c->parts[p].last_ps : last_ps;
	if (pending || until_ps < NETWORK_TIME_PS_MAX)
		last_ps = until_ps;
	all_are_at(c, last_ps);
	return pending ? NETWORK_UNTIL : NETWORK_IDLE;
}

enum network_stop cores_run(struct network *net, uint64_t until_ps, uint64_t max_events)
{
	struct cores *c = net->cores;
	uint64_t events = events_of(c), begun_ps = net->now_ps;
	uint64_t last = max_events < UINT64_MAX - events ? events + max_events : UINT64_MAX;

	start_threads(c);
	while (!net->stop && !is_out_of_memory(c)) {
		uint64_t parts_ps = next_ps(c), whole_ps = event_next_ps(&net->events), end_ps;

		if (parts_ps > until_ps && whole_ps > until_ps)
			break;
		if (events_of(c) >= last) {
			c->config.apart(c->config.ctx, net->now_ps);
			return NETWORK_EVENTS;
		}
		end_ps = until_ps;
		if (parts_ps < until_ps && until_ps - parts_ps >= c->lookahead_ps)
			end_ps = parts_ps + c->lookahead_ps - 1;
		if (whole_ps <= end_ps)
			end_ps = whole_ps > parts_ps ? whole_ps - 1 : whole_ps;
		bool apart = c->config.apart(c->config.ctx, end_ps);

		if (net->stop)
			break;
		if (apart && whole_ps > end_ps)
			run_apart(c, end_ps);
		else
			run_together(c, end_ps);
	}
	c->config.apart(c->config.ctx, net->now_ps);
	return why_stopped(c, begun_ps, until_ps);
}

/* ---- life ------------------------------------------------------------------------------------------ */

static int make_part(struct part *part, struct cores *c)
{
	struct network *net = &part->net;

	*net = *c->whole;
	net->cores = NULL;
	net->kicked = NULL;
	net->kicked_end = &net->kicked;
	net->scratch = NULL;
	net->faults = NULL;
	net->counts = (struct network_counts){0};
	net->drops = (struct network_drops){0};
	part->cores = c;
	part->sent_ps = NETWORK_NEVER_PS;
	packet_store_init(&net->packets);
	return event_queue_init(&net->events, c->whole->events.tick_shift);
}

/* Counts of what is lost on arrival are the far end's, and others the near end's: neither may make the record. */
static bool make_drops(const struct cores *c)
{
	for (uint32_t p = 0; p < c->count; p++) {
		for (uint32_t i = 0; i < c->parts[p].out_count; i++) {
			if (!port_drops(c->parts[p].out[i]->port))
				return false;
		}
	}
	return true;
}

static int refuse(char error[NETWORK_ERROR_BYTES], const char *why)
{
	snprintf(error, NETWORK_ERROR_BYTES, "%s", why);
	return -EINVAL;
}

int network_divide(struct network *net, const struct network_cores *config, char error[NETWORK_ERROR_BYTES])
{
	uint32_t edges;
	struct cores *c;
	int rc = -ENOMEM;

	if (net->credit_ports)
		return refuse(error, "a network with credits cannot be divided");
	if (net->slow)
		return refuse(error, "a network that is watched or checked cannot be divided");
	c = calloc(1, sizeof(*c));
	if (!c)
		return refuse(error, "out of memory");
	net->cores = c;
	c->whole = net;
	c->config = *config;
	c->count = config->count;
	c->lookahead_ps = LOOKAHEAD_PS_MAX;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->begins, NULL);
	pthread_cond_init(&c->ends, NULL);
	c->part_of = calloc(net->node_count, sizeof(*c->part_of));
	c->parts = aligned_alloc(64, c->count * sizeof(*c->parts));
	if (c->parts)
		memset(c->parts, 0, c->count * sizeof(*c->parts));
	for (uint32_t p = 0; c->parts && p < c->count; p++) {
		if (make_part(&c->parts[p], c))
			goto undo;
	}
	if (!c->part_of || !c->parts)
		goto undo;
	edges = place_edges(net, c->count, c->part_of);
	if (edges < c->count) {
		snprintf(error, NETWORK_ERROR_BYTES, "%u cores: at most %u are allowed, as many as switches with hosts",
			 c->count, edges);
		cores_fini(net);
		return -EINVAL;
	}
	if (!place_others(net, c->count, c->part_of))
		goto undo;
	rc = lay_cuts(c);
	if (!rc && !make_drops(c))
		rc = -ENOMEM;
	if (!rc)
		return 0;
undo:
	cores_fini(net);
	return refuse(error, rc == -EDOM
				     ? "a network whose switches are joined by links without delay cannot be divided"
				     : "out of memory");
}

void cores_fini(struct network *net)
{
	struct cores *c = net->cores;

	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->over = true;
	pthread_cond_broadcast(&c->begins);
	pthread_mutex_unlock(&c->lock);
	for (uint32_t i = 1; i <= c->threads; i++)
		pthread_join(c->parts[i].thread, NULL);
	for (uint32_t p = 0; c->parts && p < c->count; p++) {
		packet_store_fini(&c->parts[p].net.packets);
		event_queue_fini(&c->parts[p].net.events);
		free(c->parts[p].net.scratch);
		free(c->parts[p].in);
		free(c->parts[p].out);
	}
	pthread_cond_destroy(&c->begins);
	pthread_cond_destroy(&c->ends);
	pthread_mutex_destroy(&c->lock);
	free(c->parts);
	free(c->part_of);
	free(c->cuts);
	free(c);
	net->cores = NULL;
}

/* ---- seen from outside ----------------------------------------------------------------------------- */

struct network *cores_of_port(struct network *net, const struct port *port)
{
	return net->cores ? &net->cores->parts[net->cores->part_of[near_node(net, port)]].net : net;
}

struct network *network_of_host(struct network *net, uint32_t host)
{
	return net->cores ? &net->cores->parts[net->cores->part_of[host]].net : net;
}

uint32_t network_part(const struct network *net, uint32_t host)
{
	return net->cores ? net->cores->part_of[host] : 0;
}

bool network_is_apart(const struct network *net)
{
	return net->cores && net->cores->apart;
}

void cores_new_routes(struct network *net)
{
	for (uint32_t p = 0; net->cores && p < net->cores->count; p++)
		net->cores->parts[p].net.routes = net->routes;
}

void cores_count(const struct network *net, struct network_counts *n)
{
	for (uint32_t p = 0; p < net->cores->count; p++) {
		const struct network_counts *of = &net->cores->parts[p].net.counts;

		n->events += of->events;
		n->hops += of->hops;
		n->packets += of->packets;
		n->delivered += of->delivered;
		n->dropped += of->dropped;
		n->pauses += of->pauses;
	}
}

void cores_count_drops(const struct network *net, struct network_drops *drops)
{
	uint64_t *to = (uint64_t *)drops;

	for (uint32_t p = 0; p < net->cores->count; p++) {
		const uint64_t *of = (const uint64_t *)&net->cores->parts[p].net.drops;

		for (size_t i = 0; i < sizeof(*drops) / sizeof(*to); i++)
			to[i] += of[i];
	}
}
