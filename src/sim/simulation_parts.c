/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenario to topology and host. */
#include "sim/simulation_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "net/topology/topology_build.h"
#include "net/topology/topology_hpcc.h"
#include "wire/icrc.h"
#include "wire/veroce.h"

bool refuse(struct why why, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why.text, why.bytes, format, ap);
	va_end(ap);
	return false;
}

/* ---- topology ----------------------------------------------------------------------------------- */

static const char *const topology_names[SCENARIO_TOPOLOGY_KINDS] = {
	[SCENARIO_TOPOLOGY_STAR] = "star",
	[SCENARIO_TOPOLOGY_DUMBBELL] = "dumbbell",
	[SCENARIO_TOPOLOGY_PARKING_LOT] = "parking-lot",
	[SCENARIO_TOPOLOGY_LEAF_SPINE] = "leaf-spine",
	[SCENARIO_TOPOLOGY_FAT_TREE] = "fat-tree",
	[SCENARIO_TOPOLOGY_HPCC] = "hpcc",
	[SCENARIO_TOPOLOGY_TWO_DC] = "two-dc",
	[SCENARIO_TOPOLOGY_DRAGONFLY] = "dragonfly",
	[SCENARIO_TOPOLOGY_RAIL] = "rail",
	[SCENARIO_TOPOLOGY_FILE] = "file",
	[SCENARIO_TOPOLOGY_SUBNET] = "subnet",
};

static uint64_t or_zero(uint64_t v)
{
	return v == SCENARIO_AUTO ? 0 : v;
}

bool parts_subnet(const struct scenario *s, struct subnet *out, struct why why)
{
	const struct subnet_links links = {
		.host_rate_bps = s->link.rate_bps,
		.host_delay_ps = s->link.delay_ps,
		.fabric_rate_bps = s->link.fabric_rate_bps,
		.fabric_delay_ps = s->link.fabric_delay_ps,
	};
	struct text_error err = {0};

	if (!subnet_read(out, &links, s->topology.file.text, s->topology.file.text_bytes, &err))
		return true;
	if (err.line)
		return refuse(why, "topology.file: line %u: %s", err.line, err.message);
	return refuse(why, "topology.file: %s", err.message[0] ? err.message : "out of memory");
}

bool parts_topology(const struct scenario *s, struct topology *out, struct why why)
{
	struct topology_params p = topology_params_default();
	struct topology_long_link long_links[1024];
	struct text_error err = {0};
	int rc;

	p.hosts = (uint32_t)s->topology.hosts;
	p.bottlenecks = (uint32_t)s->topology.bottlenecks;
	p.leaves = (uint32_t)s->topology.leaves;
	p.hosts_per_leaf = (uint32_t)s->topology.hosts;
	p.spines = (uint32_t)s->topology.spines;
	p.uplinks = (uint32_t)or_zero(s->topology.uplinks);
	p.k = (uint32_t)s->topology.k;
	p.nics = (uint32_t)s->topology.nics;
	p.borders = (uint32_t)s->topology.borders;
	p.rate_bps = s->link.rate_bps;
	p.delay_ps = s->link.delay_ps;
	p.fabric_rate_bps = or_zero(s->link.fabric_rate_bps);
	p.border_rate_bps = or_zero(s->link.border_rate_bps);
	if (s->link.fabric_delay_ps != SCENARIO_AUTO)
		p.fabric_delay_ps = s->link.fabric_delay_ps;
	if (s->topology.kind == SCENARIO_TOPOLOGY_RAIL)
		p.hosts_per_leaf = (uint32_t)or_zero(s->topology.group);
	if (s->topology.kind == SCENARIO_TOPOLOGY_DRAGONFLY) {
		p.leaves = (uint32_t)s->topology.routers;
		p.uplinks = (uint32_t)s->topology.globals;
		p.groups = (uint32_t)or_zero(s->topology.groups);
	}
	if (s->topology.kind == SCENARIO_TOPOLOGY_TWO_DC) {
		p.site_kind = topology_names[s->topology.site_kind];
		p.long_links = long_links;
		p.long_link_count = (uint32_t)s->topology.long_links;
		for (uint32_t i = 0; i < p.long_link_count; i++)
			long_links[i] = (struct topology_long_link){
				.rate_bps = or_zero(s->link.long_rate_bps),
				.delay_ps = s->link.long_delay_ps + i * s->link.long_skew_ps,
			};
	}
	if (s->topology.kind == SCENARIO_TOPOLOGY_FILE)
		rc = topology_read_hpcc(out, s->topology.file.text, s->topology.file.text_bytes, &err);
	else
		rc = topology_build(out, topology_names[s->topology.kind], &p, &err);
	if (rc && err.line)
		return refuse(why, "topology.file: line %u: %s", err.line, err.message);
	if (rc)
		return refuse(why, "topology.kind: %s", err.message[0] ? err.message : "out of memory");
	return true;
}

bool parts_inside(const struct scenario *s, const struct topology *t, struct inside **out, struct why why)
{
	const struct scenario_topology *o = &s->topology;

	*out = NULL;
	if (o->inside_rate_bps == SCENARIO_NONE)
		return true;
	if (t->host_count % o->nics)
		return refuse(why, "topology.nics: %u hosts are not nodes of %u; allowed is a divisor", t->host_count,
			      (unsigned)o->nics);
	*out = inside_create(t->host_count, (uint32_t)o->nics, o->inside_rate_bps, o->inside_delay_ps);
	return *out || refuse(why, "out of memory");
}

/* ---- host ------------------------------------------------------------------------------------------ */

static bool parts_cc(const struct scenario *s, struct cc_params *cc, struct why why)
{
	enum cc_algorithm algorithm;

	if (!cc_by_name(s->cc.algorithm, &algorithm)) {
		char names[160] = "";
		size_t at = 0;

		for (unsigned i = 0; i < CC_ALGORITHMS && at < sizeof(names); i++)
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "", cc_name(i));
		return refuse(why, "cc.algorithm: \"%s\" is none of %s", s->cc.algorithm, names);
	}
	cc_params_default(cc, algorithm);
	if (s->cc.preset[0] && cc_params_preset(cc, s->cc.preset))
		return refuse(why, "cc.preset: %s has no preset \"%s\"", s->cc.algorithm, s->cc.preset);
	cc->window |= s->cc.window;
	for (uint32_t i = 0; i < s->cc.param_count; i++) {
		const struct scenario_cc_param *p = &s->cc.param[i];
		const struct cc_param_info *info = cc_param_find(algorithm, p->name);

		if (!info)
			return refuse(why, "cc.%s: %s has no such parameter", p->name, s->cc.algorithm);
		if (cc_params_set(cc, p->name, p->value))
			return refuse(why, "cc.%s: \"%s\" is no %s%s%s%s%s", p->name, p->value, info->unit,
				      info->value_min[0] ? " from " : "", info->value_min,
				      info->value_max[0] ? " to " : "", info->value_max);
	}
	if (cc_needs_int(algorithm) && !s->sw.int_on)
		return refuse(why, "switch.int: %s needs it, so it must be on", s->cc.algorithm);
	if (cc_needs_ecn(algorithm) && (!s->sw.ecn || !s->transport.ecn))
		return refuse(why, "%s.ecn: %s needs marks, so it must be on", s->sw.ecn ? "transport" : "switch",
			      s->cc.algorithm);
	if (cc_needs_int(algorithm) && s->transport.protocol != SCENARIO_ROCEV2)
		return refuse(why, "transport.protocol: %s is carried by rocev2 only", s->cc.algorithm);
	return true;
}

enum { ACK_EVERY_MAX = 16 }; /* rocev2_config.ackreq_packets */

static bool has_delays(const struct scenario_host *h)
{
	return h->post_delay_ps || h->completion_delay_ps || h->ack_delay_ps || h->read_rate_bps != SCENARIO_NONE ||
	       h->qp_cache != SCENARIO_NONE;
}

/* Refuses settings that a scenario can have but that are not simulated. */
static bool parts_supported(const struct scenario *s, const struct topology *t, struct why why)
{
	if (s->transport.ack_class == SCENARIO_ACK_DATA && parts_classes(s, t) != 1u << s->transport.data_class)
		return refuse(
			why, "transport.ack_class: with data all data has transport.class, but a workload has another");
	if (s->transport.protocol == SCENARIO_SDR && strcmp(s->cc.algorithm, cc_name(CC_NONE)))
		return refuse(why, "cc.algorithm: sdr has no congestion control; say none");
	if (s->transport.protocol == SCENARIO_SDR && (s->output.cc_trace_all || s->output.cc_trace.count))
		return refuse(why, "output.cc_trace: sdr has no congestion control");
	if (s->transport.protocol == SCENARIO_SDR && s->host.idle_qps)
		return refuse(why, "host.idle_qps: not with transport.protocol = sdr");
	if (s->transport.protocol == SCENARIO_SDR && has_delays(&s->host))
		return refuse(why, "transport.protocol: sdr is not simulated with delays of hosts");
	if (s->transport.protocol != SCENARIO_VEROCE && s->transport.flowlet_gap_ps)
		return refuse(why, "transport.flowlet_gap: a queue pair of rocev2 has one path; take veroce");
	if (s->transport.protocol != SCENARIO_VEROCE && s->cc.scope == SCENARIO_CC_HOSTS)
		return refuse(why, "cc.scope: of rocev2 qp or path, which are the same");
	if (s->transport.protocol == SCENARIO_VEROCE && s->transport.rx_window < RX_WINDOW_MIN)
		return refuse(why, "transport.rx_window: %llu is less than %d",
			      (unsigned long long)s->transport.rx_window, RX_WINDOW_MIN);
	if (s->transport.ack_every != SCENARIO_AUTO && s->transport.ack_every > ACK_EVERY_MAX)
		return refuse(why, "transport.ack_every: %llu is more than %d",
			      (unsigned long long)s->transport.ack_every, ACK_EVERY_MAX);
	if (s->transport.payload_bytes > NIC_MTU_BYTES_MAX || s->transport.payload_bytes % 4)
		return refuse(why, "transport.payload: %llu is no multiple of 4 up to %d",
			      (unsigned long long)s->transport.payload_bytes, NIC_MTU_BYTES_MAX);
	if (s->transport.paths > PATHS_MAX)
		return refuse(why, "transport.paths: %llu is more than %d", (unsigned long long)s->transport.paths,
			      PATHS_MAX);
	return true;
}

bool parts_receivers(const struct scenario *s, struct network *n, uint32_t host_count, struct why why)
{
	uint64_t buffer_bytes = s->host.rx_buffer_bytes;

	if (s->host.rx_drain_bps == SCENARIO_NONE)
		return buffer_bytes == SCENARIO_NONE ||
		       refuse(why, "host.rx_buffer: nothing waits in it; give host.rx_drain, too");
	if (buffer_bytes == SCENARIO_NONE)
		buffer_bytes = INT32_MAX; /* half a million packets */
	if (buffer_bytes > INT32_MAX)
		return refuse(why, "host.rx_buffer: %llu bytes are more than %d", (unsigned long long)buffer_bytes,
			      INT32_MAX);
	for (uint32_t i = 0; i < host_count; i++) {
		uint64_t headroom_bytes = network_receiver_headroom_bytes(n, i);

		if (buffer_bytes <= headroom_bytes)
			return refuse(why,
				      "host.rx_buffer: %llu bytes are no more than the headroom that PFC "
				      "needs at host %u, %llu",
				      (unsigned long long)buffer_bytes, i, (unsigned long long)headroom_bytes);
		if (network_set_receiver(n, i, buffer_bytes, s->host.rx_drain_bps))
			return refuse(why, "out of memory");
	}
	return true;
}

enum { VEROCE_TIMEOUT_CODE = 14 }; /* 67 ms, what programs usually ask for */

/*
 * The code of the next longer time: 4.096 us x 2^code (IBTA 9.7.6.1.3); a QP waits up to four times
 * that.
 */
static uint8_t timeout_code(uint64_t rto_ps)
{
	uint8_t code = 1;

	while (code < 31 && (4096000ull << code) < rto_ps)
		code++;
	return code;
}

/* A small table is fast; idle QPs exist at both ends. */
static uint8_t qpn_bits(const struct scenario *s)
{
	uint8_t bits = 14;

	while (bits < NIC_QPN_BITS && (1ull << bits) < 4 * s->host.idle_qps)
		bits++;
	return bits;
}

static const enum veroce_scope scopes[] = {
	[SCENARIO_CC_AUTO] = SCOPE_HOSTS,
	[SCENARIO_CC_QP] = SCOPE_QP,
	[SCENARIO_CC_PATH] = SCOPE_PATH,
	[SCENARIO_CC_HOSTS] = SCOPE_HOSTS,
};

/* So that the pace is that of packets as the scenario has them, whatever the length of the real headers. */
static uint32_t overhead_bytes(uint32_t header_bytes)
{
	return header_bytes - (veroce_header_len(OP_RC_WRITE_MIDDLE) + TSETH_LEN + ICRC_LEN);
}

bool parts_host(const struct scenario *s, const struct topology *topology, uint64_t longest_rtt_ps,
		uint64_t longest_queue_ps, struct cc_params *cc, struct host_config *out, struct why why)
{
	static const enum veroce_loss losses[] = {
		[SCENARIO_LOSS_FAST] = LOSS_FAST,
		[SCENARIO_LOSS_BASE] = LOSS_BASE,
		[SCENARIO_LOSS_IRN] = LOSS_IRN,
		[SCENARIO_LOSS_GBN] = LOSS_FAST, /* of RoCEv2, which has no choice */
	};
	const struct scenario_transport *t = &s->transport;
	bool veroce = t->protocol == SCENARIO_VEROCE;
	uint32_t frame_bytes = s->sw.flow_control == SCENARIO_FLOW_CONTROL_CREDITS ? HOST_LRH_BYTES : HOST_FRAME_BYTES;
	uint64_t auto_rtt_ps = longest_rtt_ps + s->host.ack_delay_ps;
	uint64_t rtt_ps = s->cc.base_rtt_ps < SCENARIO_LONGEST ? s->cc.base_rtt_ps : auto_rtt_ps;
	uint16_t every_packet;
	uint64_t rto_ps = t->rto_ps == SCENARIO_AUTO ? 4 * rtt_ps + 100000000 : t->rto_ps;

	/*
	 * RoCEv2 measures no round trips; a timeout for a packet that only waits would add to the
	 * queue.
	 */
	if (!veroce && t->rto_ps == SCENARIO_AUTO)
		rto_ps += longest_queue_ps;
	if (!parts_supported(s, topology, why) || !parts_cc(s, cc, why))
		return false;
	every_packet = cc_needs_int(cc->algorithm); /* else 0: the NIC's own rule */
	/* clang-format off */
	*out = (struct host_config){
		.seed = s->run.seed,
		.mtu_bytes = (uint32_t)t->payload_bytes,
		.frame_bytes = frame_bytes,
		.header_bytes = (uint32_t)or_zero(t->header_bytes),
		.ack_bytes = (uint32_t)or_zero(t->ack_bytes),
		.int_bytes = t->int_bytes == SCENARIO_AUTO ? 42 : (uint32_t)t->int_bytes,
		.data_class = (uint8_t)t->data_class,
		.ack_in_data_class = t->ack_class == SCENARIO_ACK_DATA,
		.ecn = t->ecn,
		.telemetry = s->sw.int_on,
		.datagrams = t->protocol == SCENARIO_SDR,
		.delay = {
			.post_ps = s->host.post_delay_ps,
			.completion_ps = s->host.completion_delay_ps,
			.ack_ps = s->host.ack_delay_ps,
			.read_bps = or_zero(s->host.read_rate_bps),
			.cnp_gap_ps = t->cnp_gap_port_ps,
			.qp_cache = (uint32_t)or_zero(s->host.qp_cache),
			.qp_miss_ps = s->host.qp_miss_ps,
		},
		/* veRoCE has timeouts of its own; this one decides when it gives up. */
		.timeout = veroce ? VEROCE_TIMEOUT_CODE : timeout_code(rto_ps),
		.nic = {
			.qpn_bits = qpn_bits(s),
			.transport = {
				.protocol = veroce ? PROTOCOL_VEROCE : PROTOCOL_ROCEV2,
				.paths = veroce ? (uint32_t)t->paths : 1,
				.window_fixed = true,
				.cc = {
					.params = cc,
					.base_rtt_ns = rtt_ps / 1000,
					.wire_overhead_bytes = frame_bytes,
				},
				.rocev2 = {
					.ackreq_packets =
						t->ack_every == SCENARIO_AUTO ? every_packet : (uint16_t)t->ack_every,
					.cnp_interval_ns = t->cnp_interval_ps / 1000,
					.ce_echo = !t->cnp_interval_ps,
					.ce_is_cnp = true,
				},
				.veroce = {
					.loss = losses[t->loss],
					.rx_window = (uint32_t)t->rx_window,
					.trim = s->sw.trim,
					.flowlet_packets = 1,
					.flowlet_gap_ns = (t->flowlet_gap_ps + 999) / 1000,
					.scope = scopes[s->cc.scope],
					.rto_ns_min = rto_ps / 1000,
					.pto_ns_min = rtt_ps / 1000 + 1000,
				},
			},
		},
	};
	/* clang-format on */
	if (veroce && out->header_bytes)
		out->nic.transport.cc.wire_overhead_bytes = overhead_bytes(out->header_bytes);
	if (t->window_bytes == SCENARIO_AUTO)
		out->window_rtt_ps = rtt_ps;
	else
		out->nic.transport.window_bytes =
			(uint32_t)(t->window_bytes < UINT32_MAX ? t->window_bytes : UINT32_MAX);
	return true;
}
