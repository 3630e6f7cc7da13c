/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run of a scenario: builds the network and its hosts, and advances time from one post to the next. All randomness
 * comes from the scenario's seed.
 */
#include "sim/simulation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cc_trace.h"
#include "sim/event_log.h"
#include "sim/frame.h"
#include "sim/frame_ib.h"
#include "sim/simulation_cores.h"
#include "sim/simulation_flows.h"
#include "sim/simulation_parts.h"
#include "sim/simulation_rates.h"
#include "sim/simulation_state.h"

enum { BINS = 8192, BINS_OF_MANY = 512, CREDITS_MIN = 64, CREDITS_MAX = 4096 };

static const uint64_t queue_ps_max = 100000000000000; /* the longest that transport.rto may be */

/* ---- life ------------------------------------------------------------------------------------------- */

/*
 * How long a packet may wait where PFC prevents losses: behind the whole memory of each switch on its way, at
 * the rate of the narrowest link; with credits, the buffers of a lane on all links. The ways are those from the first
 * host. Without either long queues lose packets.
 * SCENARIO_NONE: no memory.
 */
static uint64_t longest_queue_ps(const struct simulation *s)
{
	const struct scenario_switch *sw = &s->scenario->sw;
	bool credits = sw->flow_control == SCENARIO_FLOW_CONTROL_CREDITS;
	uint64_t bytes = credits ? sw->lane_buffer_bytes * s->topology.link_count : sw->buffer_bytes, longest = 0;

	if (sw->pfc == SCENARIO_PFC_OFF && !credits)
		return 0;
	if (!credits && sw->border_buffer_bytes != SCENARIO_AUTO && sw->border_buffer_bytes > bytes)
		bytes = sw->border_buffer_bytes;
	for (uint32_t h = 1; h < s->topology.host_count; h++) {
		struct topology_path way;
		unsigned __int128 ps;

		if (topology_paths_get(s->paths, 0, h, &way))
			return SCENARIO_NONE;
		ps = (unsigned __int128)bytes * 8 * 1000000000000u * (way.hops - 1) / way.rate_bps;
		if (ps > queue_ps_max)
			return queue_ps_max;
		if (ps > longest)
			longest = (uint64_t)ps;
	}
	return longest;
}

static bool make_topology(struct simulation *s, struct why why)
{
	if (s->scenario->topology.kind != SCENARIO_TOPOLOGY_SUBNET)
		return parts_topology(s->scenario, &s->topology, why);
	if (!parts_subnet(s->scenario, &s->subnet, why))
		return false;
	s->topology = s->subnet.topology;
	return true;
}

static uint64_t base_rtt_ns(void *simulation, uint32_t src, uint32_t dst)
{
	struct simulation *s = simulation;
	struct topology_path way;

	if (topology_paths_get(s->paths, src, dst, &way))
		return s->host_config.nic.transport.cc.base_rtt_ns;
	return (topology_path_base_rtt_ps(&way, s->scenario->sw.latency_ps) + s->scenario->host.ack_delay_ps) / 1000;
}

/* HPCC's T is one for all flows (its paper, 3.2). */
static bool each_pair_has_its_rtt(const struct simulation *s)
{
	return s->scenario->cc.base_rtt_ps == SCENARIO_AUTO && !cc_needs_int(s->cc.algorithm);
}

static bool make_network(struct simulation *s, struct why why)
{
	struct network_config c;
	char error[NETWORK_ERROR_BYTES];
	uint64_t *buffers, rtt_ps, queue_ps;

	if (!make_topology(s, why))
		return false;
	s->paths = topology_paths_create(&s->topology, (uint32_t)s->scenario->transport.payload_bytes);
	if (!s->paths || topology_paths_longest_rtt_ps(s->paths, s->scenario->sw.latency_ps, &rtt_ps))
		return refuse(why, "out of memory");
	if (!parts_network(s->scenario, &s->topology, &c, &buffers, why))
		return false;
	s->network = network_create(&s->topology, &c, error);
	free(buffers);
	if (!s->network)
		return refuse(why, "topology: %s", error);
	if (s->subnet.forwarding && network_set_subnet(s->network, &s->subnet))
		return refuse(why, "out of memory");
	if (!parts_links(s->scenario, &s->topology, s->network, why) ||
	    !parts_receivers(s->scenario, s->network, s->topology.host_count, why))
		return false;
	if (s->scenario->cores > 1 && !cores_divide(s, why))
		return false;
	if (rates_read(&s->rates, s->network, s->topology.host_count))
		return refuse(why, "out of memory");
	s->results->base_rtt_ps = rtt_ps;
	queue_ps = longest_queue_ps(s);
	if (queue_ps == SCENARIO_NONE)
		return refuse(why, "out of memory");
	if (!parts_host(s->scenario, &s->topology, rtt_ps, queue_ps, &s->cc, &s->host_config, why))
		return false;
	s->results->acks_each = cc_needs_int(s->cc.algorithm);
	s->results->one_base_rtt = !each_pair_has_its_rtt(s);
	if (!s->results->one_base_rtt) {
		s->host_config.base_rtt_ns = base_rtt_ns;
		s->host_config.base_rtt_ctx = s;
	}
	return true;
}

static bool make_hosts(struct simulation *s, struct why why)
{
	uint32_t n = s->topology.host_count;
	uint64_t idle = s->scenario->host.idle_qps;

	s->hosts = calloc(n, sizeof(struct host *));
	for (uint32_t i = 0; s->hosts && i < n; i++) {
		s->hosts[i] = host_create(s->network, i, &s->host_config);
		if (!s->hosts[i])
			return refuse(why, "out of memory after %u of %u hosts", i, n);
	}
	if (!s->hosts)
		return refuse(why, "out of memory");
	if (!idle)
		return true;
	s->idle = calloc((size_t)n * idle, sizeof(struct channel *));
	for (uint32_t i = 0; s->idle && i < n; i++) {
		for (uint64_t k = 0; k < idle; k++) {
			struct channel *c = channel_open(s->hosts[i], s->hosts[(i + 1) % n], CHANNEL_PIECE_BYTES_MAX);

			if (!c)
				return refuse(why, "host.idle_qps: no room for %llu at each host",
					      (unsigned long long)idle);
			s->idle[s->idle_count++] = c;
		}
	}
	return s->idle || refuse(why, "out of memory");
}

/* From 0, in the order of the topology's links. */
static bool number_ports(struct simulation *s)
{
	const struct topology *t = &s->topology;
	uint16_t *next = calloc(t->node_count + 1, sizeof(*next));

	s->port_number = calloc(2 * (size_t)t->link_count + 1, sizeof(*s->port_number));
	for (uint32_t i = 0; next && s->port_number && i < 2 * t->link_count; i++)
		s->port_number[i] = next[i % 2 ? t->links[i / 2].b : t->links[i / 2].a]++;
	free(next);
	return next && s->port_number;
}

/* A host's port has no queue of its own. */
static bool is_switch(const struct simulation *s, const struct results_port *p)
{
	return p->node >= s->topology.host_count;
}

static bool make_results(struct simulation *s, struct why why)
{
	const struct scenario_output *o = &s->scenario->output;
	struct results *r = s->results;
	const struct topology *t = &s->topology;

	snprintf(r->cc, sizeof(r->cc), s->scenario->cc.preset[0] ? "%.20s (%.20s)" : "%.20s", s->scenario->cc.algorithm,
		 s->scenario->cc.preset);
	snprintf(r->transport, sizeof(r->transport), "%s",
		 s->scenario->transport.protocol == SCENARIO_VEROCE ? "veroce"
		 : s->scenario->transport.protocol == SCENARIO_SDR  ? "sdr"
								    : "rocev2");
	r->hosts = t->host_count;
	r->switches = t->node_count - t->host_count;
	r->links = t->link_count;
	r->host_rate_bps = s->rates.most_bps;
	r->host_rate_bps_min = s->rates.least_bps;
	r->header_share_ppb = (uint32_t)(s->scenario->transport.payload_bytes * SCENARIO_PPB /
					 host_packet_wire_bytes(&s->host_config));
	if (o->goodput_window_ps != SCENARIO_NONE &&
	    results_goodput_start(r, o->goodput_window_ps, (uint32_t)o->goodput_flows, s->scenario->workload_count))
		return refuse(why, "out of memory");
	s->port_link = calloc(2 * (size_t)t->link_count + 1, sizeof(*s->port_link));
	if (!s->port_link || !number_ports(s))
		return refuse(why, "out of memory");
	if (s->scenario->sw.pfc != SCENARIO_PFC_OFF && o->goodput_window_ps != SCENARIO_NONE)
		results_series_init(&r->pfc.frames, o->goodput_window_ps, RESULTS_SUM);
	for (uint32_t i = 0; i < 2 * t->link_count; i++) {
		const struct topology_link *l = &t->links[i / 2];
		uint32_t node = i % 2 ? l->b : l->a;
		struct results_port port = {
			.node = node,
			.to = i % 2 ? l->a : l->b,
			.port = s->port_number[i],
			.tier = t->nodes[node].tier,
			.rate_bps = l->rate_bps,
		};
		uint32_t number;

		if (is_switch(s, &port) && o->goodput_window_ps != SCENARIO_NONE)
			results_series_init(&port.queue, o->goodput_window_ps, RESULTS_MAX);
		if (results_port_add(r, &port, &number))
			return refuse(why, "out of memory");
		s->port_link[number] = i;
	}
	return true;
}

/*
 * Receive WQEs are for messages that a part waits for: as many as hosts can have sent before the
 * first is replaced. A workload without such messages needs the least number.
 */
static uint32_t credits(const struct simulation *s)
{
	uint32_t hosts = s->topology.host_count;
	bool reported = false;

	for (uint32_t i = 0; i < workload_parts(s->workload); i++) {
		struct workload_facts facts;

		workload_facts(s->workload, i, &facts);
		reported |= facts.arrivals;
	}
	if (!reported)
		return 1;
	return hosts < CREDITS_MIN ? CREDITS_MIN : hosts > CREDITS_MAX ? CREDITS_MAX : hosts;
}

/* Frames since the last time, which was not after `since_ps`. */
static void tell_pauses(struct simulation *s, uint64_t since_ps)
{
	struct network_counts n;

	if (!s->results->pfc.frames.window_ps)
		return;
	network_count(s->network, &n);
	/* If there is no memory it is missing, like a sample. */
	if (n.pauses != s->pauses_told)
		results_series_add(&s->results->pfc.frames, since_ps, n.pauses - s->pauses_told);
	s->pauses_told = n.pauses;
}

static void sooner(uint64_t *wait_ps, uint64_t now_ps, uint64_t period_ps)
{
	if (period_ps && period_ps - now_ps % period_ps < *wait_ps)
		*wait_ps = period_ps - now_ps % period_ps;
}

static void sample(void *simulation, struct network *, uint64_t now_ps);

/* The next sample comes at the next end of a window, or interval of the samples. */
static void arm_samples(struct simulation *s)
{
	uint64_t now_ps = network_now_ps(s->network), wait_ps = UINT64_MAX;
	uint64_t period_ps = s->scenario->output.queue_sample_ps;

	sooner(&wait_ps, now_ps, s->results->goodput.total.window_ps);
	if (period_ps != SCENARIO_NONE)
		sooner(&wait_ps, now_ps, period_ps);
	if (wait_ps != UINT64_MAX)
		network_sample(s->network, wait_ps, sample, s);
}

void simulation_end_window(struct simulation *s, uint64_t now_ps)
{
	flows_sample(s->flows);
	tell_pauses(s, now_ps - 1);
	for (uint32_t i = 0; i < s->results->port_count; i++) {
		struct results_port *p = &s->results->ports[i];
		uint64_t bytes;

		if (!is_switch(s, p))
			continue;
		bytes = network_queue_longest_bytes(s->network, s->port_link[i] / 2, s->port_link[i] % 2);
		/* A curve that finds no memory ends early; the run goes on. */
		if (bytes && p->queue.window_ps)
			results_series_add(&p->queue, now_ps - 1, bytes);
	}
}

static void sample_queues(struct simulation *s)
{
	for (uint32_t i = 0; i < s->results->port_count; i++) {
		struct results_port *p = &s->results->ports[i];

		if (!is_switch(s, p))
			continue;
		p->queue_bytes = network_queue_bytes(s->network, s->port_link[i] / 2, s->port_link[i] % 2);
		results_queue_sample(p);
	}
}

static void sample(void *simulation, struct network *network, uint64_t now_ps)
{
	struct simulation *s = simulation;
	uint64_t window_ps = s->results->goodput.total.window_ps;
	uint64_t period_ps = s->scenario->output.queue_sample_ps;

	if (window_ps && now_ps % window_ps == 0)
		simulation_end_window(s, now_ps);
	if (period_ps != SCENARIO_NONE && now_ps % period_ps == 0)
		sample_queues(s);
	arm_samples(s);
}

/* Histograms are the network's own; without memory there are none. */
static void watch_queues(struct simulation *s)
{
	const struct scenario_output *o = &s->scenario->output;
	struct results *r = s->results;
	uint32_t bins = r->port_count - r->hosts > 4096 ? BINS_OF_MANY : BINS;

	for (uint32_t i = 0; o->queue_histograms && i < r->port_count; i++) {
		if (is_switch(s, &r->ports[i]))
			network_watch_queue(s->network, s->port_link[i] / 2, s->port_link[i] % 2, bins);
	}
	arm_samples(s);
}

/* ---- flows, as they come and go ------------------------------------------------------------------- */

static void log_flow(const struct simulation *s, const char *what, uint32_t flow)
{
	const struct results_flow *f = &s->results->flows[flow];
	char line[EVENT_LOG_LINE_BYTES];

	if (s->line)
		s->line(s->line_context, line,
			event_log_flow(line, what, flow, f->src, f->dst, f->bytes, network_now_ps(s->network)));
}

static bool is_traced(const struct simulation *s, uint32_t flow)
{
	const struct scenario_output *o = &s->scenario->output;

	return s->trace && (o->cc_trace_all || scenario_ranges_have(&o->cc_trace, flow));
}

static void flow_posted(void *simulation, uint32_t flow, const struct channel *c)
{
	struct simulation *s = simulation;

	log_flow(s, "posted", flow);
	if (c && is_traced(s, flow))
		cc_trace_begin(s->trace, flow, s->results->flows[flow].src, c);
}

static void flow_ended(void *simulation, uint32_t flow, const struct channel *c, bool good)
{
	struct simulation *s = simulation;

	if (c && is_traced(s, flow))
		cc_trace_end(s->trace, flow, s->results->flows[flow].src);
	log_flow(s, good ? "done" : "broke", flow);
}

static bool make_trace(struct simulation *s, struct why why)
{
	const struct scenario_output *o = &s->scenario->output;

	if (!o->cc_trace_all && !o->cc_trace.count)
		return true;
	s->trace = cc_trace_create(s->network, s->hosts, s->topology.host_count, s->results);
	return s->trace || refuse(why, "out of memory");
}

/* The longest message of all workloads; of distributions no more than a GiB is known. */
static uint64_t longest_message(const struct scenario *s)
{
	uint64_t bytes = UINT64_C(1) << 20;

	for (uint32_t i = 0; i < s->workload_count; i++) {
		const struct scenario_workload *w = &s->workload[i];
		bool known = w->kind != SCENARIO_CDF && w->kind != SCENARIO_FILE_FLOWS && w->kind != SCENARIO_PROGRAM;
		uint64_t most = known ? w->size_bytes : UINT64_C(1) << 30;

		if (most > bytes)
			bytes = most;
	}
	return bytes;
}

static const struct sdr_config *make_sdr(struct simulation *s)
{
	const struct scenario_sdr *c = &s->scenario->sdr;

	if (s->scenario->transport.protocol != SCENARIO_SDR)
		return NULL;
	if (s->program)
		program_limit(s->program, longest_message(s->scenario));
	s->sdr = (struct sdr_config){
		.scheme = c->scheme,
		.chunk_bytes = (uint32_t)c->chunk_bytes,
		.channels = (uint32_t)c->channels,
		.rto_rtts = (uint32_t)c->rto_rtts,
		.rate_auto = c->rate_bps == SCENARIO_AUTO,
		.rate_bps = c->rate_bps == SCENARIO_AUTO ? 0 : c->rate_bps,
		.code_data = (uint32_t)c->code_data,
		.code_parity = (uint32_t)c->code_parity,
		.assumed_loss = c->assumed_ppb == SCENARIO_AUTO ? 0 : (double)c->assumed_ppb / SCENARIO_PPB,
		.fill_class = c->fill_class == SCENARIO_NONE ? 0 : (uint8_t)c->fill_class,
		/* Parities of a message may be as long as it is. */
		.message_bytes = longest_message(s->scenario) + (1 << 20),
		.sent = flows_line_sent,
		.received = flows_line_received,
	};
	return &s->sdr;
}

struct simulation *simulation_create(const struct scenario *scenario, struct results *results, char *why_text,
				     size_t why_bytes)
{
	return simulation_create_for(scenario, NULL, results, why_text, why_bytes);
}

struct simulation *simulation_create_for(const struct scenario *scenario, struct program *program,
					 struct results *results, char *why_text, size_t why_bytes)
{
	struct why why = {why_text, why_bytes};
	struct simulation *s = calloc(1, sizeof(*s));

	if (!s) {
		refuse(why, "out of memory");
		return NULL;
	}
	if (!scenario->workload_count) {
		refuse(why, "run.only: the network is for programs, which do not run in sweeps: nothing would happen");
		free(s);
		return NULL;
	}
	s->scenario = scenario;
	s->results = results;
	s->program = program;
	s->events_left = scenario->run.events;
	s->workload = workload_create();
	if (!s->workload) {
		refuse(why, "out of memory");
		goto destroy;
	}
	if (!make_network(s, why) ||
	    !parts_workload(scenario, &s->topology, &s->rates, program, s->workload, s->origins, why))
		goto destroy;
	if (scenario->cores > 1 && !cores_take(s, why))
		goto destroy;
	s->host_config.credits = credits(s);
	s->host_config.completed = flows_completed;
	s->host_config.received = flows_received;
	if (scenario->link.lost_count || scenario->output.event_log)
		s->host_config.flow_of = flows_flow_of;
	if (!parts_inside(scenario, &s->topology, &s->inside, why))
		goto destroy;
	s->rates.inside = s->inside;
	if (!make_hosts(s, why) || !make_results(s, why) || !make_trace(s, why))
		goto destroy;
	s->flows = flows_create(&(struct flows_config){
		.network = s->network,
		.hosts = s->hosts,
		.paths = s->paths,
		.inside = s->inside,
		.pxn = scenario->topology.pxn,
		.workload = s->workload,
		.results = results,
		.origins = s->origins,
		.named = s->host_config.flow_of != NULL,
		.posted = flow_posted,
		.ended = flow_ended,
		.ctx = s,
		.sdr = make_sdr(s),
		.piece_bytes = CHANNEL_PIECE_BYTES_MAX,
		.parts = scenario->cores > 1 ? scenario->cores : 0,
		.switch_latency_ps = scenario->sw.latency_ps,
		.drain_bps = scenario->host.rx_drain_bps == SCENARIO_NONE ? 0 : scenario->host.rx_drain_bps,
	});
	if (!s->flows) {
		refuse(why, "out of memory");
		goto destroy;
	}
	s->host_config.ctx = s->flows;
	s->sdr.ctx = s->flows;
	watch_queues(s);
	return s;

destroy:
	simulation_destroy(s);
	return NULL;
}

void simulation_destroy(struct simulation *s)
{
	if (!s)
		return;
	flows_destroy(s->flows);
	for (uint64_t i = 0; i < s->idle_count; i++)
		channel_close(s->idle[i]);
	free(s->idle);
	inside_free(s->inside);
	cc_trace_destroy(s->trace);
	for (uint32_t i = 0; s->hosts && i < s->topology.host_count; i++)
		host_destroy(s->hosts[i]);
	free(s->hosts);
	workload_free(s->workload);
	network_destroy(s->network);
	rates_free(&s->rates);
	topology_paths_free(s->paths);
	topology_free(&s->topology);
	s->subnet.topology = (struct topology){0};
	subnet_free(&s->subnet);
	free(s->port_link);
	free(s->port_number);
	free(s);
}

/* ---- capture ---------------------------------------------------------------------------------------- */

static void show(void *context, const struct packet *p, uint64_t now_ps)
{
	const struct simulation *s = context;
	uint8_t frame[FRAME_BYTES_MAX];
	uint32_t length;
	bool credits = s->scenario->sw.flow_control == SCENARIO_FLOW_CONTROL_CREDITS;
	size_t bytes = credits ? frame_ib_encode(frame, p, now_ps, &length) : frame_encode(frame, p, &length);

	s->frame(s->frame_context, frame, bytes, length, now_ps);
}

/* A range that names one link by the numbers of its ends. */
static bool joins(const struct topology *t, const struct topology_link *l, uint32_t a, uint32_t b)
{
	uint32_t x = t->nodes[l->a].number, y = t->nodes[l->b].number;

	return (x == a && y == b) || (x == b && y == a);
}

bool simulation_capture(struct simulation *s, simulation_frame frame, void *context, char *why_text, size_t why_bytes)
{
	const struct scenario_output *o = &s->scenario->output;
	const struct topology *t = &s->topology;
	struct why why = {why_text, why_bytes};
	bool all = !o->pcap_ports.count && !o->pcap_links.count;

	s->frame = frame;
	s->frame_context = context;
	for (uint32_t i = 0; i < o->pcap_ports.count; i++) {
		if (o->pcap_ports.range[i].last >= t->host_count)
			return refuse(why, "output.pcap_hosts: there is no host %u, only 0 to %u",
				      o->pcap_ports.range[i].last, t->host_count - 1);
	}
	for (uint32_t k = 0; k < o->pcap_links.count; k++) {
		uint32_t a = o->pcap_links.range[k].first, b = o->pcap_links.range[k].last, i = 0;

		while (i < t->link_count && !joins(t, &t->links[i], a, b))
			i++;
		if (i == t->link_count)
			return refuse(why, "output.pcap_links: no link joins the nodes %u and %u", a, b);
	}
	for (uint32_t i = 0; i < t->link_count; i++) {
		const struct topology_link *l = &t->links[i];
		bool wanted = (l->a < t->host_count && (all || scenario_ranges_have(&o->pcap_ports, l->a))) ||
			      (l->b < t->host_count && (all || scenario_ranges_have(&o->pcap_ports, l->b)));

		for (uint32_t k = 0; k < o->pcap_links.count; k++)
			wanted |= joins(t, l, o->pcap_links.range[k].first, o->pcap_links.range[k].last);
		if (wanted &&
		    (network_tap_port(s->network, i, 0, show, s) || network_tap_port(s->network, i, 1, show, s)))
			return refuse(why, "out of memory");
	}
	return true;
}

static void witness(void *context, const struct network_record *r, uint64_t now_ps)
{
	const struct simulation *s = context;
	char line[EVENT_LOG_LINE_BYTES];

	s->line(s->line_context, line, event_log_network(line, &s->topology, r, now_ps));
}

void simulation_log(struct simulation *s, simulation_line line, void *context)
{
	s->line = line;
	s->line_context = context;
	network_tell(s->network, witness, s);
}

/* ---- time ------------------------------------------------------------------------------------------- */

static enum simulation_state partial(struct simulation *s, enum simulation_state state, const char *text)
{
	s->results->partial = true;
	snprintf(s->results->partial_why, sizeof(s->results->partial_why), "%s", text);
	return state;
}

/* Flows that wait for what will not happen: "2 flows never began, the first is ...". Returns how many. */
static uint64_t held_back_text(const struct simulation *s, char *text, size_t bytes)
{
	const struct scenario_workload *of_first = NULL;
	struct message first, m;
	uint64_t held_back = 0;

	for (uint32_t i = 0; i < workload_parts(s->workload); i++) {
		uint64_t of_part = workload_held_back(s->workload, i, &m);

		if (of_part && !held_back) {
			first = m;
			of_first = &s->scenario->workload[s->origins[i].workload];
		}
		held_back += of_part;
	}
	if (!held_back)
		return 0;
	if (first.bytes)
		snprintf(text, bytes,
			 "%" PRIu64 " of the flows never began, the first is %" PRIu32 " to %" PRIu32 " of %" PRIu64
			 " bytes in [%s.%s]",
			 held_back, first.src, first.dst, first.bytes, of_first->section, of_first->name);
	else
		snprintf(text, bytes, "%" PRIu64 " of the flows never began, the first is in [%s.%s]", held_back,
			 of_first->section, of_first->name);
	return held_back;
}

/* Graphs that cannot go on: "3 nodes never ended in [workload.x]: rank ... waits for ..." of the first one. */
static bool unfinished_text(const struct simulation *s, bool broke, char *text, size_t bytes)
{
	char why[RESULTS_WHY_BYTES];
	const struct scenario_workload *w;

	for (uint32_t i = 0; i < workload_parts(s->workload); i++) {
		uint32_t nodes = workload_unfinished(s->workload, i, why, sizeof(why));

		if (!nodes)
			continue;
		w = &s->scenario->workload[s->origins[i].workload];
		snprintf(text, bytes, "%s%" PRIu32 " nodes of [%s.%s] never ended: %.400s",
			 broke ? "queue pairs broke: " : "", nodes, w->section, w->name, why);
		return true;
	}
	return false;
}

/* No flow is under way, and none will begin. */
static enum simulation_state all_ended(struct simulation *s, const struct flows_count *n)
{
	char text[RESULTS_WHY_BYTES];

	s->results->flows_held_back = held_back_text(s, text, sizeof(text));
	if (unfinished_text(s, n->failed, text, sizeof(text)))
		return partial(s, SIMULATION_STUCK, text);
	if (n->failed)
		return partial(s, SIMULATION_STUCK, "queue pairs broke: their flows never ended");
	return s->results->flows_held_back ? partial(s, SIMULATION_STUCK, text) : SIMULATION_ENDED;
}

/* The end that a stop of the network is; RUNS: none. */
static enum simulation_state judge(struct simulation *s, enum network_stop stop, uint64_t next_ps)
{
	const struct scenario_run *run = &s->scenario->run;
	struct flows_count n;

	flows_count(s->flows, &n);
	if (n.out_of_memory || stop == NETWORK_OUT_OF_MEMORY)
		return partial(s, SIMULATION_FAILED, "out of memory");
	if (stop == NETWORK_BROKEN)
		return partial(s, SIMULATION_FAILED, network_fault(s->network));
	if (stop == NETWORK_DEADLOCK) {
		s->results->partial = true;
		parts_deadlock_text(network_deadlock(s->network), &s->topology, s->results->partial_why,
				    sizeof(s->results->partial_why));
		return SIMULATION_STUCK;
	}
	if (run->all_flows && n.ended)
		return all_ended(s, &n);
	if (run->until_ps != SCENARIO_NONE && network_now_ps(s->network) >= run->until_ps)
		return !n.ended && run->all_flows
			       ? partial(s, SIMULATION_ENDED, "run.until came before all flows were done")
			       : SIMULATION_ENDED;
	if (!s->events_left)
		return partial(s, SIMULATION_ENDED, "run.events were spent");
	if (network_now_ps(s->network) >= NETWORK_TIME_PS_MAX)
		return partial(s, SIMULATION_STUCK, "106 days have passed, which is as long as a run may be");
	if (stop == NETWORK_IDLE && next_ps == NETWORK_NEVER_PS)
		return n.ended ? all_ended(s, &n)
			       : partial(s, SIMULATION_STUCK, "nothing will happen any more, with flows open");
	return SIMULATION_RUNS;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The network has run until then, and nothing is left to be done. */
static bool has_come(struct simulation *s, enum network_stop stop, uint64_t until_ps)
{
	return (stop == NETWORK_UNTIL || stop == NETWORK_IDLE) && network_now_ps(s->network) >= until_ps &&
	       flows_next_ps(s->flows) > until_ps;
}

static enum simulation_state run(struct simulation *s, uint64_t until_ps, uint64_t events)
{
	enum simulation_state state = SIMULATION_RUNS;
	enum network_stop stop = NETWORK_STOPPED;
	struct network_counts before, after;

	network_count(s->network, &before);
	while (state == SIMULATION_RUNS && events && !has_come(s, stop, until_ps) &&
	       !(s->program && program_is_stopped(s->program))) {
		uint64_t next_ps = flows_next_ps(s->flows), some = least(events, s->events_left);
		uint64_t until = least(least(next_ps, until_ps), least(s->scenario->run.until_ps, NETWORK_TIME_PS_MAX));

		stop = network_run(s->network, until, some);
		/* Not between two events of one time: where that would be depends on where network_run() was asked to end. */
		if (stop == NETWORK_UNTIL || stop == NETWORK_IDLE)
			flows_post_due(s->flows);
		network_count(s->network, &after);
		/* They end when nothing happens for a while. */
		if (after.pending || next_ps <= network_now_ps(s->network))
			arm_samples(s);
		events -= after.events - before.events < events ? after.events - before.events : events;
		if (s->events_left != SCENARIO_NONE)
			s->events_left -= after.events - before.events;
		before = after;
		state = judge(s, stop, next_ps);
	}
	return state;
}

enum simulation_state simulation_run(struct simulation *s, uint64_t events)
{
	return run(s, SCENARIO_NONE, events);
}

enum simulation_state simulation_run_to(struct simulation *s, uint64_t until_ps)
{
	return run(s, until_ps, UINT64_MAX);
}

uint64_t simulation_now_ps(const struct simulation *s)
{
	return network_now_ps(s->network);
}

void simulation_progress(const struct simulation *s, struct simulation_progress *p)
{
	struct network_counts n;
	struct flows_count f;
	uint64_t known = 0;

	network_count(s->network, &n);
	flows_count(s->flows, &f);
	for (uint32_t i = 0; i < workload_parts(s->workload); i++) {
		struct workload_facts facts;

		workload_facts(s->workload, i, &facts);
		known += facts.message_count;
	}
	*p = (struct simulation_progress){
		.time_ps = network_now_ps(s->network),
		.events = n.events,
		.packet_hops = n.hops,
		.flows_done = f.done,
		.flows = known > f.begun ? known : f.begun,
	};
}
