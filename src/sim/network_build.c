/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a topology to ports, switches, hosts and routes, or to the reason why not. Everything is sized
 * here, once; nothing is added to a network later.
 */
#include "sim/network_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "sim/network_state.h"

enum { PORTS_OF_SWITCH_MAX = 4096, NO_PORT = UINT32_MAX };

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

static bool check_config(const struct network_config *config, struct reason *t)
{
	if (config->switch_latency_ps > LATENCY_PS_MAX)
		return refuse(t, "a switch latency of ", config->switch_latency_ps,
			      " ps: at most 1 ms is allowed");
	if (config->port_queue_bytes > INT32_MAX)
		return refuse(t, "a port's queue of ", config->port_queue_bytes,
			      " bytes: at most 2^31 - 1 are allowed");
	if ((unsigned)config->routing > NETWORK_SPRAY_LEAST)
		return refuse(t, "routing ", config->routing, " does not exist");
	return true;
}

/* The first port of each node, from how many links it has; first[node_count] is the count of all. */
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

static void set_wire(struct network *net, struct port *port, struct port *back,
		     const struct topology_link *link)
{
	port->back = back;
	port->to_host = back->host;
	port->to_switch = back->sw;
	port->to_number = back->sw ? (uint16_t)(back - back->sw->ports) : 0;
	port->delay_ps = link->delay_ps;
	port->flight_ps = link->delay_ps + (back->sw ? net->config.switch_latency_ps : 0);
	port->queue_limit_bytes = net->config.port_queue_bytes;
	port_set_rate(port, link->rate_bps);
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

void port_set_rate(struct port *port, uint64_t rate_bps)
{
	const unsigned __int128 byte_ps = (unsigned __int128)8000000000000u << BYTE_PS_SHIFT;

	port->rate_bps = rate_bps;
	port->byte_ps = (uint64_t)((byte_ps + rate_bps / 2) / rate_bps);
}

/*
 * About the distance of events when half of all ports are busy with packets of 1000 bytes: good enough,
 * as the queue works with any.
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

static struct network *create(const struct topology *topology, const struct network_config *config,
			      uint32_t *next, struct reason *t)
{
	struct network *net = zeroes(1, sizeof(*net));
	uint32_t unreachable[2];
	int r = -ENOMEM;

	if (!net)
		goto refused;
	net->config = *config;
	if (!net->config.port_queue_bytes)
		net->config.port_queue_bytes = NETWORK_PORT_QUEUE_BYTES;
	net->host_count = topology->host_count;
	net->node_count = topology->node_count;
	net->switch_count = net->node_count - net->host_count;
	net->link_count = topology->link_count;
	net->port_count = 2 * net->link_count;
	net->kicked_end = &net->kicked;
	packet_store_init(&net->packets);
	net->ports = zeroes(net->port_count, sizeof(*net->ports));
	net->switches = zeroes(net->switch_count, sizeof(*net->switches));
	net->hosts = zeroes(net->host_count, sizeof(*net->hosts));
	net->link_ports = zeroes(net->link_count, sizeof(*net->link_ports));
	if (!net->ports || !net->switches || !net->hosts || !net->link_ports)
		goto refused;
	lay_links(net, topology, next);
	if (event_queue_init(&net->events, tick_shift(net)))
		goto refused;
	r = route_build(net, unreachable);
	if (r == -ENETUNREACH) {
		say(t, "host ");
		say_number(t, topology->nodes[unreachable[0]].number);
		refuse(t, " has no path to host ", topology->nodes[unreachable[1]].number, "");
	}
	if (!r)
		return net;
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
	struct network *net = NULL;
	uint32_t *next;

	say(&t, "");
	if (!check_sizes(topology, &t) || !check_config(config, &t))
		return NULL;
	next = malloc((topology->node_count + 1) * sizeof(*next));
	if (!next) {
		say(&t, "out of memory");
		return NULL;
	}
	if (place_ports(topology, next, &t))
		net = create(topology, config, next, &t);
	free(next);
	return net;
}

void network_destroy(struct network *net)
{
	if (!net)
		return;
	packet_store_fini(&net->packets);
	event_queue_fini(&net->events);
	route_fini(&net->routes);
	free(net->ports);
	free(net->switches);
	free(net->hosts);
	free(net->link_ports);
	free(net);
}
