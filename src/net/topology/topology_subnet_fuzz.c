/* SPDX-License-Identifier: BSD-2-Clause */
/* A text that is accepted is a topology that passes its check, and tables that a network takes and that lead packets
 * somewhere. */
#include <assert.h>
#include <string.h>

#include "net/network.h"
#include "net/topology/topology_subnet.h"
#include "support/fuzz_input.h"

struct sender {
	struct network *net;
	uint32_t index, hosts, left;
};

static struct packet *pull(void *object, uint32_t allowed, uint64_t now_ps)
{
	struct sender *s = object;
	struct packet *p;

	(void)now_ps;
	if (!(allowed & 2) || !s->left)
		return NULL;
	p = packet_get(network_packets(s->net));
	if (!p)
		return NULL;
	p->src = s->index;
	p->dst = s->left-- % s->hosts;
	p->class = 1;
	p->wire_bytes = 1000;
	return p;
}

static void arrive(void *object, struct packet *p, uint64_t now_ps)
{
	struct sender *s = object;

	(void)now_ps;
	packet_put(network_packets(s->net), p);
}

static void run(const struct subnet *s)
{
	static const struct endpoint_ops ops = {.pull = pull, .arrive = arrive};
	struct network_config config;
	char why[NETWORK_ERROR_BYTES];
	struct sender sender;
	struct network *net;
	enum network_stop stop;

	network_config_init(&config);
	config.credits.buffer_bytes = 8192;
	config.check = true;
	net = network_create(&s->topology, &config, why);
	if (!net)
		return;
	assert(!network_set_subnet(net, s));
	sender = (struct sender){net, 0, s->topology.host_count, 2 * s->topology.host_count};
	network_attach(net, 0, &ops, &sender);
	network_kick(net, 0);
	stop = network_run(net, NETWORK_NEVER_PS, 100000);
	assert(stop == NETWORK_IDLE || stop == NETWORK_DEADLOCK || stop == NETWORK_EVENTS);
	network_destroy(net);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct subnet_links links = {100000000000, 1000000, 400000000000, 1000000};
	struct text_error err = {0};
	struct subnet s;

	if (subnet_read(&s, &links, (const char *)data, size, &err)) {
		assert(strlen(err.message) < sizeof(err.message));
		return 0;
	}
	assert(topology_check(&s.topology, &err) == 0);
	if (s.topology.node_count <= 64)
		run(&s);
	subnet_free(&s);
	return 0;
}
