/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of a subnet, and packets that take the ways of its tables. */
#include <errno.h>

#include "net/network.h"
#include "net/topology/topology_subnet.h"
#include "support/sim_checks.h"
#include "support/test.h"

static const struct subnet_links links = {G100, US, 4 * G100, 2 * US};

/* Hosts 0 and 1 at switch 2, host's port 7; switches 2 and 3 have two links; nobody is at switch 3. */
#define HEAD "# comment\nsubnet 2 2\nlink 0 1 2 7\nlink 1 1 2 8\nlink 2 1 3 1\nlink 3 2 2 2\n"

static int read_text(struct subnet *s, const char *text, struct text_error *e)
{
	*e = (struct text_error){0};
	return subnet_read(s, &links, text, strlen(text), e);
}

TEST(tables_name_links_by_their_ports)
{
	struct text_error e;
	struct subnet s;

	assert_int_equal(
		read_text(&s,
			  HEAD
			  "forward 2 7 8\nforward 3 2 -\nlevels 1 5 0\nlanes 2 7 8 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 15\n",
			  &e),
		0);
	assert_int_equal(s.topology.host_count, 2);
	assert_int_equal(s.topology.node_count, 4);
	assert_int_equal(s.topology.link_count, 4);
	assert_true(s.topology.links[0].rate_bps == G100 && s.topology.links[0].delay_ps == US);
	assert_true(s.topology.links[2].rate_bps == 4 * G100 && s.topology.links[2].delay_ps == 2 * US);
	assert_int_equal(s.forwarding[0], 0);
	assert_int_equal(s.forwarding[1], 1);
	assert_int_equal(s.forwarding[2], 3);
	assert_int_equal(s.forwarding[3], SUBNET_NONE);
	assert_int_equal(s.levels[0], 0);
	assert_int_equal(s.levels[2], 5);
	assert_int_equal(s.lane_count, 1);
	assert_true(s.lanes[0].node == 2 && s.lanes[0].in_link == 0 && s.lanes[0].out_link == 1);
	assert_int_equal(s.lanes[0].vl[15], SUBNET_LANE_DROPS);
	subnet_free(&s);
}

TEST(what_is_wrong_is_named_with_its_line)
{
	static const struct {
		const char *text, *says;
		uint32_t line;
	} wrong[] = {
		{"", "begin with 'subnet", 0},
		{"link 0 1 2 1\n", "begin with 'subnet", 1},
		{"subnet 4000 96\n", "cannot be", 1},
		{"subnet 0 2\n", "cannot be", 1},
		{HEAD "link 2 1 3 3\n", "has a link already", 7},
		{HEAD "link 2 3 2 4\n", "to itself", 7},
		{HEAD "link 2 3 4 4\n", "a node", 7},
		{HEAD "link 2 256 3 4\n", "a port", 7},
		{HEAD "forward 1 7 8\n", "is a host", 7},
		{HEAD "forward 2 7\n", "1 of 2", 7},
		{HEAD "forward 2 7 6\n", "port 6 of node 2 has no link", 7},
		{HEAD "forward 2 7 8 8\n", "too much", 7},
		{HEAD "levels 0 16 0\n", "service level", 7},
		{HEAD "levels 0 0\n", "service level", 7},
		{HEAD "lanes 2 7 8 8 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", "lane 8", 7},
		{HEAD "lanes 2 7 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", "no link", 7},
		{HEAD "lanes 2 7 8 0 0\n", "a lane", 7},
		{HEAD "tables\n", "none of", 7},
		{HEAD "arbitrate 2 9 0 0 0\n", "port 9 of node 2 has no link", 7},
		{HEAD "arbitrate 2 7 256 0 0\n", "a limit", 7},
		{HEAD "arbitrate 2 7 0 65 0\n", "entries", 7},
		{HEAD "arbitrate 2 7 0 1 8 1 0\n", "a lane", 7},
		{HEAD "arbitrate 2 7 0 1 0 256 0\n", "a weight", 7},
		{HEAD "arbitrate 2 7 0 1 0 1\n", "entries", 7},
		{"subnet 2 1\nlink 0 1 2 1\n#           \n", "", 0},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct text_error e;
		struct subnet s;

		assert_int_equal(read_text(&s, wrong[i].text, &e), -EINVAL);
		if (!strstr(e.message, wrong[i].says) || (wrong[i].line && e.line != wrong[i].line))
			fail_msg("%zu: line %u: %s", i, e.line, e.message);
	}
}

/* Four switches in a ring; the tables send host 0's packets to host 1, which is the next one, all the way round. */
#define RING                                                                   \
	"subnet 4 4\nlink 0 1 4 1\nlink 1 1 5 1\nlink 2 1 6 1\nlink 3 1 7 1\n" \
	"link 4 2 5 3\nlink 5 2 6 3\nlink 6 2 7 3\nlink 7 2 4 3\n"             \
	"forward 4 1 3 3 3\nforward 5 2 1 2 3\nforward 6 2 3 1 2\nforward 7 2 3 3 1\n"

static struct network *ring(const char *text, bool credits, struct flow_host **hosts)
{
	struct network_config config;
	char why[NETWORK_ERROR_BYTES];
	struct network *net;
	struct text_error e;
	struct subnet s;

	network_config_init(&config);
	config.check = true;
	config.mtu_bytes = 1026;
	config.credits.buffer_bytes = credits ? 16384 : 0;
	if (read_text(&s, text, &e))
		fail_msg("line %u: %s", e.line, e.message);
	net = network_create(&s.topology, &config, why);
	assert_non_null(net);
	assert_int_equal(network_set_subnet(net, &s), 0);
	assert_int_equal(network_set_subnet(net, &s), -EINVAL); /* once */
	subnet_free(&s);
	*hosts = flow_hosts(net, 4);
	return net;
}

static uint64_t sent_by(struct network *net, uint32_t link, unsigned end)
{
	struct network_port_counts c;

	assert_true(network_count_port(net, link, end, &c));
	return c.sent_packets;
}

TEST(packets_take_the_ways_of_the_tables)
{
	for (int credits = 0; credits < 2; credits++) {
		struct flow_host *hosts;
		struct network *net = ring(RING, credits, &hosts);

		flow_start(&hosts[0], 1, 10, 1026);
		must_end(net);
		assert_int_equal(hosts[1].got, 10);
		assert_int_equal(sent_by(net, 7, 1), 10); /* from switch 4 to 7 */
		assert_int_equal(sent_by(net, 6, 1), 10);
		assert_int_equal(sent_by(net, 5, 1), 10);
		assert_int_equal(sent_by(net, 4, 0), 0);
		must_be_empty(net);
		finish(net, hosts);
	}
}

TEST(without_an_entry_packets_are_dropped)
{
	for (int credits = 0; credits < 2; credits++) {
		struct flow_host *hosts;
		struct network *net = ring(RING "forward 7 2 - 3 1\n", credits, &hosts);

		/* The last line for a switch counts; what it leaves out stays as it was. */
		flow_start(&hosts[0], 1, 10, 1026);
		must_end(net);
		assert_int_equal(hosts[1].got, 10);
		finish(net, hosts);
		net = ring(
			"subnet 4 4\nlink 0 1 4 1\nlink 1 1 5 1\nlink 2 1 6 1\nlink 3 1 7 1\nlink 4 2 5 3\nlink 5 2 6 3\n"
			"link 6 2 7 3\nforward 4 1 - - -\n",
			credits, &hosts);
		flow_start(&hosts[0], 1, 10, 1026);
		must_end(net);
		assert_int_equal(hosts[1].got, 0);
		assert_int_equal(drops_of(net, NETWORK_DROP_NO_ROUTE), 10);
		must_be_empty(net);
		finish(net, hosts);
	}
}

/* Level 5 by the two hosts; the host's own map makes it lane 3, switch 4's lane 6, switch 7's lane 2, and so on: 5
 * modulo 8. */
TEST(a_packets_lane_is_that_of_its_level_at_each_hop)
{
	struct flow_host *hosts;
	struct network *net = ring(RING "levels 0 0 5 0 0\n"
					"lanes 0 0 0 0 0 0 0 0 3 0 0 0 0 0 0 0 0 0 0\n"
					"lanes 4 1 3 0 0 0 0 0 6 0 0 0 0 0 0 0 0 0 0\n"
					"lanes 7 2 3 0 0 0 0 0 2 0 0 0 0 0 0 0 0 0 0\n",
				   true, &hosts);

	flow_start(&hosts[0], 1, 10, 1026);
	must_end(net);
	assert_int_equal(hosts[1].got, 10);
	assert_int_equal(hosts[1].got_class[5], 10); /* the last switch has no map of its own */
	must_be_empty(net);
	finish(net, hosts);
}

/* Two hosts at one switch send to a third; what arrives of each, a thousandth. */
static void shares(const char *arbitration, uint64_t *first, uint64_t *second)
{
	char text[1024] =
		"subnet 3 1\nlink 0 1 3 1\nlink 1 1 3 2\nlink 2 1 3 3\nforward 3 1 2 3\nlevels 1 1 0 0\nlevels 2 2 0 0\n";
	struct network_config config;
	char why[NETWORK_ERROR_BYTES];
	struct flow_host *hosts;
	struct text_error e;
	struct network *net;
	struct subnet s;

	network_config_init(&config);
	config.check = true;
	config.mtu_bytes = 1026;
	config.credits.buffer_bytes = 65536;
	if (read_text(&s, strcat(text, arbitration), &e))
		fail_msg("line %u: %s", e.line, e.message);
	net = network_create(&s.topology, &config, why);
	assert_non_null(net);
	assert_int_equal(network_set_subnet(net, &s), 0);
	subnet_free(&s);
	hosts = flow_hosts(net, 3);
	flow_start(&hosts[1], 0, 100000, 1026);
	flow_start(&hosts[2], 0, 100000, 1026);
	network_run(net, 500 * US, UINT64_MAX);
	assert_true(hosts[0].got > 4000);
	*first = hosts[0].got_class[1] * 1000 / hosts[0].got;
	*second = hosts[0].got_class[2] * 1000 / hosts[0].got;
	finish(net, hosts);
}

TEST(a_ports_tables_share_its_link)
{
	uint64_t one, two;

	shares("", &one, &two);
	assert_in_range(one, 490, 510);
	shares("arbitrate 3 1 0 0 2 1 17 2 51\n", &one, &two);
	assert_in_range(one, 240, 260);
	/* The last line for a port counts. */
	shares("arbitrate 3 1 0 0 2 1 17 2 51\narbitrate 3 1 0 0 2 1 51 2 17\n", &one, &two);
	assert_in_range(two, 240, 260);
	/* High priority without a limit leaves nothing but what its lane has no packet for. */
	shares("arbitrate 3 1 255 1 2 64 1 1 64\n", &one, &two);
	assert_in_range(one, 0, 20);
	/* Another port's tables, and a host's, do not matter here. */
	shares("arbitrate 3 2 255 1 2 64 1 1 64\narbitrate 1 0 255 1 2 64 1 1 64\n", &one, &two);
	assert_in_range(one, 490, 510);
}

TEST(lane_15_drops)
{
	static const char *const maps[] = {"lanes 4 1 3 15 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
					   "lanes 0 0 0 15 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"};

	for (size_t i = 0; i < 2; i++) {
		char text[1024] = RING;
		struct flow_host *hosts;
		struct network *net = ring(strcat(text, maps[i]), true, &hosts);

		flow_start(&hosts[0], 1, 10, 1026);
		must_end(net);
		assert_int_equal(hosts[1].got, 0);
		assert_int_equal(drops_of(net, NETWORK_DROP_NO_ROUTE), 10);
		must_be_empty(net);
		finish(net, hosts);
	}
}
