/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns a topology into ports, switches, hosts and routes, or says why it cannot. Everything is
 * sized here, once; nothing is added to a network later.
 */
#include "net/network_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "net/network_state.h"

enum { PORTS_OF_SWITCH_MAX = 4096, MTU_WIRE_BYTES = 4096 + 104 };

#define DELAY_PS_MAX   UINT64_C(10000000000000) /* 10 s */
#define LATENCY_PS_MAX UINT64_C(1000000000)     /* 1 ms */

/* A text of words and numbers, cut to what fits. */
struct reason {
	char *at;
	size_t room;
};

static void say(struct reason *t, const char *words)
{
	while (*words && t->room > 1) {
		*t->at++ = *words++;
		t->room--;
	}
	if (t->room)
		*t->at = 0;
}

static void say_number(struct reason *t, uint64_t n)
{
	char digits[21];
	char *at = digits + sizeof(digits) - 1;

	*at = 0;
	do
		*--at = (char)('0' + n % 10);
	while (n /= 10);
	say(t, at);
}

static bool refuse(struct reason *t, const char *what, uint64_t which, const char *why)
{
	say(t, what);
	say_number(t, which);
	say(t, why);
	return false;
}

uint64_t network_object_seed(uint64_t seed, enum network_object kind, uint32_t number)
{
	uint8_t key[16] = {0};

	for (int i = 0; i < 8; i++)
		key[i] = (uint8_t)(seed >> 8 * i);
	key[8] = (uint8_t)kind;
	return siphash_u64(key, number);
}

static bool check_sizes(const struct topology *topology, struct reason *t)
{
	if (topology->node_count > TOPOLOGY_NODES_MAX)
		return refuse(t, "", topology->node_count, " nodes: at most 2^20 are allowed");
	if (topology->link_count > TOPOLOGY_LINKS_MAX)
		return refuse(t, "", topology->link_count, " links: at most 2^22 are allowed");
	if (topology->host_count == 0 || topology->host_count > topology->node_count)
		return refuse(t, "", topology->host_count, " hosts: there must be at least 1, and no more than nodes");
	return true;
}

static bool check_link(const struct topology *topology, uint32_t i, struct reason *t)
{
	const struct topology_link *link = &topology->links[i];

	if (link->a >= topology->node_count || link->b >= topology->node_count)
		return refuse(t, "link ", i, " ends at a node that does not exist");
	if (link->a == link->b)
		return refuse(t, "link ", i, " leads from a node to itself");
	if (link->rate_bps < NETWORK_RATE_BPS_MIN || link->rate_bps > NETWORK_RATE_BPS_MAX)
		return refuse(t, "link ", i, ": the rate must be 1 kbit/s to 100 Tbit/s");
	if (link->delay_ps > DELAY_PS_MAX)
		return refuse(t, "link ", i, ": the delay must be at most 10 s");
	if (link->loss_ppb > 1000000000)
		return refuse(t, "link ", i, ": the loss must be at most 10^9 in 10^9");
	return true;
}

void network_config_init(struct network_config *c)
{
	*c = (struct network_config){
		.port_queue_bytes = 1 << 20,
		.control_queue_bytes = 1 << 20,
		.flowlet_gap_ps = 10000000,
		.resume_offset_bytes = 2 * MTU_WIRE_BYTES,
		.mtu_bytes = MTU_WIRE_BYTES,
		.pause_wire_bytes = 64 + 20, /* preamble and gap with it */
		.pause_response_ps = 600000,
		.pause_quanta = UINT16_MAX,
	};
	for (unsigned class = 0; class < PACKET_CLASSES; class ++)
		c->dwrr_quantum_bytes[class] = MTU_WIRE_BYTES;
}

/* Every lane in turn, a packet of 4 KiB each. */
static void complete_arbitration(struct vl_tables *t)
{
	if (t->high_count || t->low_count)
		return;
	t->low_count = VL_LANES;
	for (uint8_t vl = 0; vl < VL_LANES; vl++)
		t->low[vl] = (struct vl_entry){vl, 64};
}

/* Replaces members that are 0 and may not be. */
static void complete_config(struct network_config *c)
{
	struct network_config usual;

	network_config_init(&usual);
	if (!c->port_queue_bytes)
		c->port_queue_bytes = usual.port_queue_bytes;
	if (!c->control_queue_bytes)
		c->control_queue_bytes = usual.control_queue_bytes;
	if (!c->mtu_bytes)
		c->mtu_bytes = usual.mtu_bytes;
	if (!c->pause_wire_bytes)
		c->pause_wire_bytes = usual.pause_wire_bytes;
	complete_arbitration(&c->credits.arbitration);
	if (!c->pause_quanta)
		c->pause_quanta = usual.pause_quanta;
	for (unsigned class = 0; class < PACKET_CLASSES; class ++) {
		if (!c->dwrr_quantum_bytes[class])
			c->dwrr_quantum_bytes[class] = usual.dwrr_quantum_bytes[class];
	}
}

static bool check_bytes(struct reason *t, const char *what, uint64_t bytes, uint64_t min, uint64_t max)
{
	if (bytes >= min && bytes <= max)
		return true;
	refuse(t, what, bytes, " bytes: ");
	say_number(t, min);
	refuse(t, " .. ", max, " are allowed");
	return false;
}

static bool check_pfc(const struct network_config *c, struct reason *t)
{
	for (unsigned class = 0; class < PACKET_CLASSES; class ++) {
		if (c->alpha_log2[class] < -6 || c->alpha_log2[class] > 3)
			return refuse(t, "alpha of class ", class, ": 1/64 to 8 is allowed");
	}
	if ((unsigned)c->pfc > NETWORK_PFC_HPCC)
		return refuse(t, "PFC model ", c->pfc, " does not exist");
	if (!c->lossless_classes)
		return true;
	if (c->lossless_classes & 1u << PACKET_CONTROL_CLASS)
		return refuse(t, "class ", PACKET_CONTROL_CLASS, " is control and cannot be lossless");
	if (!c->buffer_bytes && !c->node_buffer_bytes)
		return refuse(t, "lossless classes need a shared buffer, not one of ", 0, " bytes");
	if (c->pause_response_ps > LATENCY_PS_MAX)
		return refuse(t, "a pause response of ", c->pause_response_ps, " ps: at most 1 ms is allowed");
	return check_bytes(t, "an MTU of ", c->mtu_bytes, 64, 1 << 16) &&
	       check_bytes(t, "a pause frame of ", c->pause_wire_bytes, 1, 1 << 16) &&
	       check_bytes(t, "a reserve of ", c->reserve_bytes, 0, 1 << 30) &&
	       check_bytes(t, "a resume offset of ", c->resume_offset_bytes, 0, 1 << 30) &&
	       check_bytes(t, "a headroom of ", c->headroom_bytes, 0, 1 << 30);
}

static bool check_credits(const struct network_config *c, struct reason *t)
{
	if (!c->credits.buffer_bytes)
		return true;
	if (c->lossless_classes || c->buffer_bytes || c->node_buffer_bytes || c->red.classes || c->trim_wire_bytes ||
	    c->int_stamp || c->marking_policy)
		return refuse(t, "credits, of ", c->credits.buffer_bytes,
			      " bytes a lane, do not go with shared buffers, PFC, marks, INT or trimming");
	if (c->credits.arbitration.high_count > VL_ENTRIES_MAX || c->credits.arbitration.low_count > VL_ENTRIES_MAX)
		return refuse(t, "arbitration tables of more than ", VL_ENTRIES_MAX, " entries");
	return check_bytes(t, "an MTU of ", c->mtu_bytes, 64, 1 << 16) &&
	       check_bytes(t, "a lane's buffer of ", c->credits.buffer_bytes,
			   (uint64_t)credit_blocks(c->mtu_bytes) * CREDIT_BLOCK_BYTES, 1 << 30);
}

static bool check_red(const struct network_red *red, struct reason *t)
{
	if (!red->classes)
		return true;
	if (red->pmax_ppb > 1000000000)
		return refuse(t, "marks with probability ", red->pmax_ppb, " in 10^9: at most 10^9 are allowed");
	if (red->kmin_bytes > red->kmax_bytes)
		return refuse(t, "Kmin of ", red->kmin_bytes, " bytes is above Kmax");
	if (red->rate_bps && red->rate_bps < NETWORK_RATE_BPS_MIN)
		return refuse(t, "RED for ", red->rate_bps, " bit/s: at least 1 kbit/s");
	return true;
}

static bool check_config(const struct network_config *config, struct reason *t)
{
	if (config->switch_latency_ps > LATENCY_PS_MAX)
		return refuse(t, "a switch latency of ", config->switch_latency_ps, " ps: at most 1 ms is allowed");
	if ((unsigned)config->routing > NETWORK_UGAL)
		return refuse(t, "routing ", config->routing, " does not exist");
	if (config->low_class >= PACKET_CLASSES)
		return refuse(t, "a low class ", config->low_class, " does not exist");
	for (unsigned class = 0; class < PACKET_CLASSES; class ++) {
		if (!check_bytes(t, "a quantum of ", config->dwrr_quantum_bytes[class], 64, 1 << 24))
			return false;
	}
	return check_bytes(t, "a port's queue of ", config->port_queue_bytes, 0, 1 << 30) &&
	       check_bytes(t, "a control queue of ", config->control_queue_bytes, 0, 1 << 30) &&
	       check_bytes(t, "a queue's limit of ", config->class_queue_bytes, 0, 1 << 30) &&
	       check_bytes(t, "a shared buffer of ", config->buffer_bytes, 0, UINT64_C(1) << 31) &&
	       check_bytes(t, "trimmed packets of ", config->trim_wire_bytes, 0, 1 << 16) && check_pfc(config, t) &&
	       check_credits(config, t) && check_red(&config->red, t);
}

/*
 * The first port of each node, from how many links it has; first[node_count] is the count of all.
 */
static bool place_ports(const struct topology *topology, uint32_t *first, struct reason *t)
{
	uint32_t sum = 0;

	memset(first, 0, (topology->node_count + 1) * sizeof(*first));
	for (uint32_t i = 0; i < topology->link_count; i++) {
		if (!check_link(topology, i, t))
			return false;
		first[topology->links[i].a]++;
		first[topology->links[i].b]++;
	}
	for (uint32_t n = 0; n < topology->node_count; n++) {
		uint32_t count = first[n];

		if (n < topology->host_count && count != 1)
			return refuse(t, "host ", topology->nodes[n].number, " must have exactly one link");
		if (count > PORTS_OF_SWITCH_MAX && n >= topology->host_count)
			return refuse(t, "switch ", topology->nodes[n].number,
				      " has too many links: at most 4096 are allowed");
		first[n] = sum;
		sum += count;
	}
	first[topology->node_count] = sum;
	for (uint32_t i = 0; i < topology->link_count && topology->host_count > 2; i++) {
		const struct topology_link *link = &topology->links[i];

		if (link->a < topology->host_count && link->b < topology->host_count)
			return refuse(t, "link ", i, " joins two hosts, which no other host could reach");
	}
	return true;
}

static void set_end(struct network *net, struct port *port, uint32_t node)
{
	if (node < net->host_count) {
		port->host = &net->hosts[node];
		port->host->port = port;
	} else {
		port->sw = &net->switches[node - net->host_count];
	}
}

static void set_wire(struct network *net, struct port *port, struct port *back, const struct topology_link *link)
{
	port->back = back;
	port->to_host = back->host;
	port->to_switch = back->sw;
	port->to_number = back->sw ? (uint16_t)(back - back->sw->ports) : 0;
	port->delay_ps = link->delay_ps;
	port->flight_ps = link->delay_ps + (back->sw ? net->config.switch_latency_ps : 0);
	if (net->pfc_ports)
		port->pfc = &net->pfc_ports[port - net->ports];
	prng_init(&port->prng, network_object_seed(net->config.seed, OBJECT_PORT_MARK, (uint32_t)(port - net->ports)));
	port_set_rate(net, port, link->rate_bps);
}

static void lay_links(struct network *net, const struct topology *topology, uint32_t *next)
{
	for (uint32_t n = net->host_count; n < net->node_count; n++) {
		struct sim_switch *sw = &net->switches[n - net->host_count];

		sw->index = n - net->host_count;
		sw->node = n;
		sw->tier = topology->nodes[n].tier;
		sw->ports = &net->ports[next[n]];
		sw->port_count = next[n + 1] - next[n];
		sw->hash_seed = network_object_seed(net->config.seed, OBJECT_SWITCH_HASH, n);
		prng_init(&sw->prng, network_object_seed(net->config.seed, OBJECT_SWITCH_CHOICE, n));
	}
	for (uint32_t i = 0; i < net->link_count; i++) {
		const struct topology_link *link = &topology->links[i];
		struct port *a = &net->ports[next[link->a]++], *b = &net->ports[next[link->b]++];

		set_end(net, a, link->a);
		set_end(net, b, link->b);
		a->link = b->link = i;
		set_wire(net, a, b, link);
		set_wire(net, b, a, link);
		net->link_ports[i] = (uint32_t)(a - net->ports);
	}
	for (uint32_t h = 0; h < net->host_count; h++) {
		net->hosts[h].timer_ps = NETWORK_NEVER_PS;
		for (unsigned i = 0; i < TIMER_EVENTS; i++)
			net->hosts[h].timer_events[i] = NETWORK_NEVER_PS;
	}
}

static uint32_t scaled(uint32_t bytes, uint64_t rate_bps, uint64_t of_bps)
{
	unsigned __int128 n = of_bps ? (unsigned __int128)bytes * rate_bps / of_bps : bytes;

	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

uint64_t rate_byte_ps(uint64_t rate_bps)
{
	const unsigned __int128 byte_ps = (unsigned __int128)8000000000000u << BYTE_PS_SHIFT;

	return (uint64_t)((byte_ps + rate_bps / 2) / rate_bps);
}

void port_set_rate(struct network *net, struct port *port, uint64_t rate_bps)
{
	const struct network_red *red = &net->config.red;

	port->rate_bps = rate_bps;
	port->byte_ps = rate_byte_ps(rate_bps);
	port->red_min_bytes = scaled(red->kmin_bytes, rate_bps, red->rate_bps);
	port->red_max_bytes = scaled(red->kmax_bytes, rate_bps, red->rate_bps);
}

/*
 * About the distance of events when half of all ports are busy with packets of 1000 bytes: good
 * enough, as the queue works with any.
 */
static unsigned tick_shift(const struct network *net)
{
	unsigned __int128 bytes_per_s = 1;
	unsigned shift = 0;

	for (uint32_t i = 0; i < net->port_count; i++)
		bytes_per_s += net->ports[i].rate_bps / 8;
	uint64_t gap_ps = (uint64_t)((unsigned __int128)1000 * 1000000000000u / bytes_per_s);

	while (shift < 20 && UINT64_C(1) << (shift + 1) <= gap_ps)
		shift++;
	return shift + 2;
}

static void *zeroes(size_t count, size_t size)
{
	size_t bytes = (count ? count : 1) * size;
	void *mem = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	if (mem)
		memset(mem, 0, bytes);
	return mem;
}

static void set_features(struct network *net)
{
	const struct network_config *c = &net->config;

	for (uint32_t i = 0; i < net->switch_count; i++) {
		net->switches[i].features =
			(uint8_t)((c->red.classes ? FEATURE_RED : 0) | (c->int_stamp ? FEATURE_INT : 0) |
				  (c->trim_wire_bytes ? FEATURE_TRIM : 0) | (c->marking_policy ? FEATURE_MARK : 0));
	}
}

static bool set_loss(struct network *net, const struct topology *topology)
{
	for (uint32_t i = 0; i < net->link_count; i++) {
		const struct network_loss loss = {.loss_ppb = topology->links[i].loss_ppb};

		if (loss.loss_ppb && (network_set_loss(net, i, 0, &loss) || network_set_loss(net, i, 1, &loss)))
			return false;
	}
	return true;
}

/* The state of switches that spread packets. */
static bool spread(struct network *net)
{
	uint32_t groups = net->routes.group_count;

	for (uint32_t i = 0; i < net->switch_count; i++) {
		struct sim_switch *sw = &net->switches[i];

		if (net->config.routing == NETWORK_FLOWLET)
			sw->flowlets = calloc(FLOWLETS, sizeof(*sw->flowlets));
		if (net->config.routing == NETWORK_SPRAY_ROUND_ROBIN)
			sw->turns = calloc(groups ? groups : 1, sizeof(*sw->turns));
		if (net->config.routing == NETWORK_FLOWLET && !sw->flowlets)
			return false;
		if (net->config.routing == NETWORK_SPRAY_ROUND_ROBIN && !sw->turns)
			return false;
		for (uint32_t g = 0; sw->turns && g < groups; g++)
			sw->turns[g] = (uint32_t)prng_next(&sw->prng) >> 8;
	}
	return true;
}

static struct network *create(const struct topology *topology, const struct network_config *config, uint32_t *next,
			      struct reason *t)
{
	struct network *net = zeroes(1, sizeof(*net));
	uint32_t unreachable[2], node;
	int r = -ENOMEM;

	if (!net)
		goto refused;
	net->config = *config;
	net->slow = config->check;
	net->host_count = topology->host_count;
	net->node_count = topology->node_count;
	net->switch_count = net->node_count - net->host_count;
	net->link_count = topology->link_count;
	net->group_switches = topology->group_switches;
	net->port_count = 2 * net->link_count;
	net->kicked_end = &net->kicked;
	packet_store_init(&net->packets);
	net->ports = zeroes(net->port_count, sizeof(*net->ports));
	net->switches = zeroes(net->switch_count, sizeof(*net->switches));
	net->hosts = zeroes(net->host_count, sizeof(*net->hosts));
	net->link_ports = zeroes(net->link_count, sizeof(*net->link_ports));
	if (config->lossless_classes)
		net->pfc_ports = zeroes(net->port_count, sizeof(*net->pfc_ports));
	if (!net->ports || !net->switches || !net->hosts || !net->link_ports ||
	    !net->pfc_ports != !config->lossless_classes)
		goto refused;
	lay_links(net, topology, next);
	set_features(net);
	r = mmu_init(net, &node);
	net->config.node_buffer_bytes = NULL;
	if (r == -ENOSPC) {
		refuse(t, "switch ", topology->nodes[node].number,
		       " has a buffer without room for its ports' reserves and headroom, or one of "
		       "more than 2^31 bytes");
		goto refused;
	}
	r = -ENOMEM;
	if (credit_init(net))
		goto refused;
	if (event_queue_init(&net->events, tick_shift(net)))
		goto refused;
	r = route_build(net, unreachable);
	if (r == -ENETUNREACH) {
		say(t, "host ");
		say_number(t, topology->nodes[unreachable[0]].number);
		refuse(t, " has no path to host ", topology->nodes[unreachable[1]].number, "");
	}
	if (!r && set_loss(net, topology) && spread(net) && !policy_init(net))
		return net;
	if (!r)
		r = -ENOMEM;
refused:
	if (r == -ENOMEM)
		say(t, "out of memory");
	network_destroy(net);
	return NULL;
}

struct network *network_create(const struct topology *topology, const struct network_config *config,
			       char error[NETWORK_ERROR_BYTES])
{
	struct reason t = {error, NETWORK_ERROR_BYTES};
	struct network_config whole = *config;
	struct network *net = NULL;
	uint32_t *next;

	say(&t, "");
	complete_config(&whole);
	if (!check_sizes(topology, &t) || !check_config(&whole, &t))
		return NULL;
	next = malloc((topology->node_count + 1) * sizeof(*next));
	if (!next) {
		say(&t, "out of memory");
		return NULL;
	}
	if (whole.routing >= NETWORK_VALIANT && (whole.credits.buffer_bytes || !topology->group_switches))
		refuse(&t, "routing ", whole.routing, " is for dragonflies without credits");
	else if (place_ports(topology, next, &t))
		net = create(topology, &whole, next, &t);
	free(next);
	return net;
}

void network_destroy(struct network *net)
{
	if (!net)
		return;
	cores_fini(net);
	link_fini(net);
	observe_fini(net);
	policy_fini(net);
	subnet_fini(net);
	for (uint32_t i = 0; net->switches && i < net->switch_count; i++) {
		free(net->switches[i].flowlets);
		free(net->switches[i].turns);
	}
	for (uint32_t h = 0; net->hosts && h < net->host_count; h++)
		free(net->hosts[h].receiver);
	packet_store_fini(&net->packets);
	free(net->scratch);
	event_queue_fini(&net->events);
	route_fini(&net->routes);
	free(net->ports);
	free(net->switches);
	free(net->hosts);
	free(net->link_ports);
	free(net->pfc_ports);
	credit_fini(net);
	free(net->deadlock);
	free(net);
}
