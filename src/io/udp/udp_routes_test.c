/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By which interface UDP packets leave, in a network namespace of the test's own with two cables to one subnet, whose
 * other ends nobody reads: the kernel counts what each carries.
 */

#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>

#include "io/own_net.h"
#include "support/udp_ends.h"
#include "support/test.h"

enum { PACKETS = 100, PORT = 4791, PAIRS = 10000 };

#define SECOND UINT64_C(1000000000)

static const struct {
	const char *interface, *address;
} addresses[] = {
	{"vra1", "10.0.0.1"}, {"vra2", "10.0.0.2"}, {"vra1", "fd00::1"}, {"vra2", "fd00::2"}, {"lo", "10.9.0.1"},
};

enum { ADDRESSES = sizeof(addresses) / sizeof(addresses[0]) };

static struct io *io;
static struct io_counters counters;
static struct io_interfaces interfaces;
static uint64_t now_ns = SECOND;

__attribute__((constructor)) static void network_make(void)
{
	own_net_make();
	own_net_run("ip link set lo up && ip addr add 10.9.0.1/32 dev lo");
	for (int i = 1; i <= 2; i++) {
		char command[512];

		snprintf(
			command, sizeof(command),
			"ip link add vra%d type veth peer name vrb%d && echo 1 > /proc/sys/net/ipv6/conf/vrb%d/disable_ipv6 &&"
			"ip link set vrb%d up && ip link set vra%d arp off multicast off up &&"
			"ip addr add 10.0.0.%d/24 dev vra%d && ip addr add fd00::%d/64 dev vra%d nodad",
			i, i, i, i, i, i, i, i, i);
		own_net_run(command);
		/* Nobody has to be asked for the other end's address. */
		snprintf(command, sizeof(command),
			 "ip link set vra%d arp on && ip neigh add 10.0.0.9 dev vra%d lladdr 02:00:00:00:00:09 &&"
			 "ip neigh add fd00::9 dev vra%d lladdr 02:00:00:00:00:09",
			 i, i, i);
		own_net_run(command);
	}
	own_net_run("ip route add 172.16.0.9 via 10.0.0.9 dev vra1");
	own_net_run("ip route add 172.17.0.9 nexthop via 10.0.0.9 dev vra1 nexthop via 10.0.0.9 dev vra2");
}

static void gids_set(void)
{
	struct io_gid gids[ADDRESSES];

	for (int i = 0; i < ADDRESSES; i++) {
		set_addr(gids[i].gid, addresses[i].address);
		gids[i].ifindex = if_nametoindex(addresses[i].interface);
	}
	udp_set_gids(io, gids, ADDRESSES);
}

/* What the kernel says. */
static uint64_t carried_by(const char *interface)
{
	FILE *f = fopen("/proc/self/net/dev", "r");
	uint64_t packets, found = UINT64_MAX;
	char line[512], name[32];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " %31[^:]: %*u %*u %*u %*u %*u %*u %*u %*u %*u %" SCNu64, name, &packets) == 2 &&
		    !strcmp(name, interface))
			found = packets;
	fclose(f);
	assert_true(found != UINT64_MAX);
	return found;
}

static uint64_t counted_at(const char *interface)
{
	for (uint32_t i = 0; i < interfaces.count; i++)
		if (!strcmp(interfaces.rows[i].name, interface))
			return interfaces.rows[i].tx_packets;
	return 0;
}

static void send_one(const char *src, const char *dst)
{
	struct flow f = {.dport = PORT, .ttl = 64};
	uint8_t bytes[64] = {0};
	struct pkt p = {.data = bytes, .flow = &f, .len = sizeof(bytes), .train = 1};

	set_addr(f.src, src);
	set_addr(f.dst, dst);
	f.sport = udp_source_port(io, strchr(dst, ':') ? UDP_V6 : UDP_V4, 0);
	assert_int_equal(io_send(io, &p, 1, now_ns), 1);
}

/* All of them, as the kernel and our own counters say. */
static void assert_leaves_by(const char *interface, const char *src, const char *dst)
{
	uint64_t carried = carried_by(interface), counted = counted_at(interface), drops = counters.tx_drops;

	for (int i = 0; i < PACKETS; i++)
		send_one(src, dst);
	assert_int_equal(counters.tx_drops, drops);
	assert_int_equal(counted_at(interface), counted + PACKETS);
	assert_true(carried_by(interface) >= carried + PACKETS);
}

TEST(packets_leave_by_the_interface_of_their_source)
{
	assert_leaves_by("vra1", "10.0.0.1", "10.0.0.9");
	assert_leaves_by("vra2", "10.0.0.2", "10.0.0.9");
	assert_leaves_by("vra1", "fd00::1", "fd00::9");
	assert_leaves_by("vra2", "fd00::2", "fd00::9");
}

TEST(of_several_next_hops_the_source_has_its_own)
{
	assert_leaves_by("vra1", "10.0.0.1", "172.17.0.9");
	assert_leaves_by("vra2", "10.0.0.2", "172.17.0.9");
}

TEST(without_a_route_there_the_routing_table_chooses)
{
	assert_leaves_by("vra1", "10.0.0.2", "172.16.0.9");
	assert_leaves_by("vra1", "10.9.0.1", "172.16.0.9");
	assert_leaves_by("vra1", "10.9.0.1", "10.0.0.9");
}

/* ifb is as a dummy: it takes what it is given, and nobody ever hears of it. */
TEST(an_interface_that_leads_nowhere_has_no_route)
{
	struct io_gid gid;

	if (system("ip link add vrn type ifb && ip link set vrn up && ip addr add 10.8.0.1/24 dev vrn") ||
	    system("ip route add 10.8.0.9 via 10.0.0.9 dev vra1"))
		skip();
	gid.ifindex = if_nametoindex("vrn");
	set_addr(gid.gid, "10.8.0.1");
	udp_set_gids(io, &gid, 1);
	assert_leaves_by("vra1", "10.8.0.1", "10.8.0.9");
	gids_set();
}

TEST(what_is_for_this_host_stays_here)
{
	assert_leaves_by("lo", "10.0.0.2", "10.0.0.1");
	assert_leaves_by("lo", "10.0.0.1", "10.0.0.1");
	assert_leaves_by("lo", "10.0.0.2", "10.9.0.1");
	assert_leaves_by("lo", "fd00::2", "fd00::1");
}

TEST(routes_come_and_go)
{
	assert_leaves_by("vra2", "10.0.0.2", "10.0.0.9");
	own_net_run("ip route del 10.0.0.0/24 dev vra2");
	now_ns += SECOND / 10;
	assert_leaves_by("vra1", "10.0.0.2", "10.0.0.9");
	own_net_run("ip route append 10.0.0.0/24 dev vra2");
	now_ns += SECOND;
	assert_leaves_by("vra2", "10.0.0.2", "10.0.0.9");
	own_net_run("ip route del 10.0.0.0/24 dev vra2");
	gids_set();
	assert_leaves_by("vra1", "10.0.0.2", "10.0.0.9");
	own_net_run("ip route append 10.0.0.0/24 dev vra2");
	gids_set();
}

TEST(one_cable_does_not_need_the_other)
{
	own_net_run("ip link set vra1 down");
	assert_leaves_by("vra2", "10.0.0.2", "10.0.0.9");
	own_net_run("ip link set vra1 up && ip route add 172.16.0.9 via 10.0.0.9 dev vra1");
	own_net_run("ip neigh replace 10.0.0.9 dev vra1 lladdr 02:00:00:00:00:09");
	gids_set();
	assert_leaves_by("vra1", "10.0.0.1", "10.0.0.9");
}

/* More pairs of addresses than are kept. */
TEST(no_pair_takes_anothers_place)
{
	uint64_t before = counted_at("vra2");
	char dst[32];

	own_net_run(
		"ip route add 172.20.0.0/16 via 10.0.0.9 dev vra1 && ip route add 172.20.0.0/16 via 10.0.0.9 dev vra2 metric 9");
	for (int i = 0; i < PAIRS; i++) {
		snprintf(dst, sizeof(dst), "172.20.%d.%d", i / 250, i % 250);
		send_one(i % 2 ? "10.0.0.2" : "10.0.0.1", dst);
	}
	assert_int_equal(counted_at("vra2"), before + PAIRS / 2);
}

/* The last one: IPv6 addresses go with the link. */
TEST(a_bound_device_leaves_by_no_other_interface)
{
	struct udp_config c = {.counters = &counters, .interfaces = &interfaces, .bound = true};
	struct io *unbound = io;
	uint64_t carried;
	char why[256];

	assert_int_equal(udp_open(&io, &c, why, sizeof(why)), 0);
	gids_set();
	assert_leaves_by("vra2", "10.0.0.2", "10.0.0.9");
	assert_leaves_by("lo", "10.0.0.2", "10.0.0.1");
	carried = carried_by("vra1");
	for (int i = 0; i < PACKETS; i++)
		send_one("10.0.0.2", "172.16.0.9");
	own_net_run("ip link set vra2 down");
	now_ns += SECOND;
	for (int i = 0; i < PACKETS; i++)
		send_one("10.0.0.2", "10.0.0.9");
	assert_true(carried_by("vra1") < carried + PACKETS);
	assert_leaves_by("vra1", "10.0.0.1", "10.0.0.9");
	io_close(io);
	io = unbound;
}

static int open_io(void **state)
{
	struct udp_config c = {.counters = &counters, .interfaces = &interfaces};
	char why[256];

	assert_int_equal(udp_open(&io, &c, why, sizeof(why)), 0);
	gids_set();
	return 0;
}

static int close_io(void **state)
{
	io_close(io);
	return 0;
}

TEST_PROGRAM(open_io, close_io)
