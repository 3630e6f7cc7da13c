/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes choose a small topology, a configuration, flows, and faults with their times. In every case
 * the network is refused with a reason, or runs with all invariants held after each event, until
 * every packet has arrived or is counted as dropped.
 */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_input.h"
#include "support/sim_flows.h"
#include "support/sim_trees.h"

enum { HOSTS_MAX = 6, SWITCHES_MAX = 4, EVENTS_MAX = 1500 };

/* Hosts hang on switches, switches on the one before them, and there may be links more. */
static void topology(struct input *in, struct topology *t)
{
	static const uint64_t rates[] = {UINT64_C(1000000000),
					 UINT64_C(10000000000),
					 UINT64_C(100000000000),
					 UINT64_C(400000000000),
					 7777777777,
					 UINT64_C(100000000000000),
					 999,
					 0};
	uint32_t hosts = 1 + next_byte(in) % HOSTS_MAX, switches = 1 + next_byte(in) % SWITCHES_MAX,
		 extra = next_byte(in) % 4;

	tree_new(t, hosts, hosts + switches, hosts + switches - 1 + extra);
	for (uint32_t h = 0; h < hosts; h++)
		tree_link(t, h, hosts + next_byte(in) % switches, rates[next_byte(in) % 4],
			  next_byte(in) * UINT64_C(20000));
	for (uint32_t s = 1; s < switches; s++)
		tree_link(t, hosts + s - 1, hosts + s, rates[next_byte(in) % 4], next_byte(in) * UINT64_C(20000));
	for (uint32_t e = 0; e < extra; e++)
		tree_link(t, hosts + next_byte(in) % switches, hosts + next_byte(in) % switches,
			  rates[next_byte(in) % 32 ? next_byte(in) % 6 : 7], next_byte(in) * UINT64_C(20000));
}

static void configuration(struct input *in, struct network_config *c)
{
	uint8_t flags = next_byte(in);

	network_config_init(c);
	c->check = true;
	c->seed = next_byte(in);
	c->switch_latency_ps = flags & 1 ? next_byte(in) * 10000 : 0;
	c->routing = next_byte(in) % (NETWORK_UGAL + 1);
	c->weighted = flags & 2;
	c->converge_ps = flags & 4 ? NETWORK_NEVER_PS : next_byte(in) * UINT64_C(100000);
	c->port_queue_bytes = 256u * next_byte(in);
	c->control_queue_bytes = 256u * next_byte(in);
	c->control_burst = next_byte(in) % 16;
	c->mtu_bytes = 1600;
	c->resume_offset_bytes = next_byte(in) * 32u;
	c->dwrr_quantum_bytes[1] = 60 + next_byte(in) * 8u;
	c->low_class = flags & 16 ? 2 : 0;
	if (flags & 8) {
		c->buffer_bytes = (1 + (uint64_t)next_byte(in)) << (next_byte(in) % 12 + 8);
		c->lossless_classes = next_byte(in) & (next_byte(in) % 32 ? 0xfe : 0xff);
		c->pfc = next_byte(in) % 2 ? NETWORK_PFC_HPCC : NETWORK_PFC;
		c->pause_quanta = (uint16_t)(next_byte(in) * 100);
		c->pause_response_ps = next_byte(in) * 10000;
		c->reserve_bytes = next_byte(in) * 16u;
		for (unsigned class = 0; class < PACKET_CLASSES; class ++)
			c->alpha_log2[class] = (int8_t)(next_byte(in) % 10 - 6 + next_byte(in) / 255);
	}
	if (flags & 16)
		c->red = (struct network_red){.classes = next_byte(in),
					      .at_enqueue = flags & 32,
					      .kmin_bytes = 64u * next_byte(in),
					      .kmax_bytes = 128u * next_byte(in),
					      .pmax_ppb = next_byte(in) * 4000000u};
	if (flags & 64) {
		c->trim_wire_bytes = next_byte(in);
		c->trim_coin = flags & 128;
	}
	if (flags & 128 && !(flags & (8 | 16 | 64))) {
		c->credits.buffer_bytes = 64u * (next_byte(in) + next_byte(in) * 8u);
		c->credits.queue_per_output = next_byte(in) % 2;
		c->credits.lifetime_ps = next_byte(in) % 2 ? next_byte(in) * UINT64_C(100000) : 0;
		c->credits.arbitration.high_limit = next_byte(in);
		c->credits.arbitration.high_count = next_byte(in) % 3;
		c->credits.arbitration.low_count = next_byte(in) % 3;
		for (unsigned i = 0; i < 2; i++) {
			c->credits.arbitration.high[i] = (struct vl_entry){next_byte(in), next_byte(in)};
			c->credits.arbitration.low[i] = (struct vl_entry){next_byte(in), next_byte(in)};
		}
	}
}

/* Whether something happened that may cost a lossless class packets. */
static bool go_wrong(struct input *in, struct network *net, uint32_t links)
{
	bool wrong = false;

	for (unsigned n = next_byte(in) % 6; n > 0; n--) {
		uint32_t link = next_byte(in) % (links + 1);
		uint64_t at_ps = next_byte(in) * UINT64_C(200000);
		const struct network_loss loss = {.loss_ppb = next_byte(in) * 4000000u,
						  .good_to_bad_ppb = 1000000,
						  .bad_to_good_ppb = 100000000,
						  .bad_loss_ppb = 900000000,
						  .corrupt_ppb = next_byte(in) % 2 * 4000000u};

		switch (next_byte(in) % 7) {
		case 0:
			network_link_down(net, link, at_ps);
			wrong = true;
			break;
		case 1: network_link_up(net, link, at_ps); break;
		case 2:
			network_link_rate(net, link, at_ps, UINT64_C(50000000000));
			wrong = true;
			break;
		case 3: network_set_loss(net, link, at_ps % 2, &loss); break;
		case 4:
			network_set_jitter(net, link, at_ps % 2, at_ps);
			wrong = true;
			break;
		case 5: network_lose_packet(net, link, at_ps % 2, loss.loss_ppb % HOSTS_MAX, at_ps % 32); break;
		case 6: network_set_receiver(net, link, at_ps >> 9, UINT64_C(10000000000)); break;
		}
	}
	return wrong;
}

static void flows(struct input *in, struct flow_host *hosts, uint32_t count)
{
	for (uint32_t h = 0; h < count; h++) {
		uint8_t what = next_byte(in);

		hosts[h].class = what % PACKET_CLASSES;
		hosts[h].acks = what & 8;
		hosts[h].new_sport = what & 16;
		hosts[h].flags |= what & 32 ? PACKET_TRIMMABLE : 0;
		hosts[h].window = next_byte(in) % 32;
		flow_start(&hosts[h], next_byte(in) % count, next_byte(in) % 64, 100 + next_byte(in) * 5u);
	}
}

static void run(struct input *in, struct network *net, const struct topology *t, const struct network_config *config)
{
	static const char lossless[] = "a packet of a lossless class was dropped";
	struct flow_host *hosts = flow_hosts(net, t->host_count);
	struct network_counts counts;
	enum network_stop stop;
	bool wrong;

	flows(in, hosts, t->host_count);
	wrong = go_wrong(in, net, t->link_count);
	/* The reference model's headroom is too small for short links. */
	wrong |= config->pfc == NETWORK_PFC_HPCC;
	stop = network_run(net, NETWORK_NEVER_PS, EVENTS_MAX);
	if (stop == NETWORK_BROKEN)
		must(wrong && !strcmp(network_fault(net), lossless));
	else
		must(stop == NETWORK_IDLE || stop == NETWORK_EVENTS ||
		     (stop == NETWORK_DEADLOCK && config->credits.buffer_bytes && network_deadlock(net)));
	network_count(net, &counts);
	if (stop == NETWORK_IDLE)
		must(counts.pending == 0);
	network_destroy(net);
	free(hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	char error[NETWORK_ERROR_BYTES];
	struct network_config config;
	struct network *net;
	struct topology t;

	topology(&in, &t);
	configuration(&in, &config);
	net = network_create(&t, &config, error);
	if (net)
		run(&in, net, &t, &config);
	else
		must(error[0] != 0);
	tree_free(&t);
	return 0;
}
