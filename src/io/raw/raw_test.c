/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The back end of RoCEv1 in a network namespace of the test's own, which needs no privilege where user namespaces are
 * allowed: over the loopback interface, and over a veth pair at whose other end the test reads and writes frames by
 * hand.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/own_net.h"
#include "io/raw/raw.h"
#include "support/test.h"
#include "wire/rocev1.h"

#define MAC_A 0x02, 0, 0, 0, 0, 0x01
#define MAC_B 0x02, 0, 0, 0, 0, 0x02
#define GID_A 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x00, 0x00, 0xff, 0xfe, 0x00, 0x00, 0x01
#define GID_B 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x00, 0x00, 0xff, 0xfe, 0x00, 0x00, 0x02

enum { SLOT = 5, WAIT_MS = 30000, FRAME_BYTES = 2048, MS = 1000000 };

static const uint8_t gid_a[16] = {GID_A}, gid_b[16] = {GID_B};
static const uint8_t ip_lo[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
static const uint8_t ip_a[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1}, ip_b[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t group[16] = {0xff, 0x0e, [15] = 0x77};

static struct io_counters counters;
static struct io_interfaces interfaces;
static struct io *io;
static int peer = -1; /* at the other end of the veth pair */
static uint64_t now_ns = 1000 * (uint64_t)MS;

static bool nobodys(void *ctx, const struct pkt *p)
{
	return *(bool *)ctx || p->data[7] != 1;
}
static bool is_ours = true;

__attribute__((constructor)) static void network_make(void)
{
	own_net_make();
	own_net_run("ip link set lo up");
	own_net_run("ip link add vra address 02:00:00:00:00:01 type veth peer name vrb address 02:00:00:00:00:02");
	/* The other end answers nobody. */
	own_net_run("echo 1 > /proc/sys/net/ipv6/conf/vrb/disable_ipv6");
	own_net_run("ip addr add fe80::ff:fe00:1/64 dev vra nodad && ip addr add 10.0.0.1/24 dev vra");
	own_net_run("ip link set vrb arp off up && ip link set vra up");
}

static int open_io(char *why, size_t why_bytes)
{
	struct io_gid gids[3] = {{.ifindex = if_nametoindex("vra")},
				 {.ifindex = if_nametoindex("vra")},
				 {.ifindex = if_nametoindex("lo")}};
	struct raw_config cfg = {.gids = gids,
				 .gid_count = 3,
				 .slot = SLOT,
				 .is_ours = nobodys,
				 .ctx = &is_ours,
				 .counters = &counters,
				 .interfaces = &interfaces};

	memcpy(gids[0].gid, gid_a, 16);
	memcpy(gids[1].gid, ip_a, 16);
	memcpy(gids[2].gid, ip_lo, 16);
	return raw_open(&io, &cfg, why, why_bytes);
}

static int setup(void **state)
{
	struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_protocol = htons(ROCEV1_ETHERTYPE)};
	char why[256];

	a.sll_ifindex = (int)if_nametoindex("vrb");
	memset(&counters, 0, sizeof(counters));
	is_ours = true;
	peer = socket(AF_PACKET, SOCK_RAW, 0);
	if (peer < 0 || bind(peer, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	return open_io(why, sizeof(why));
}

static int teardown(void **state)
{
	io_close(io);
	close(peer);
	return 0;
}

/* BTH .. ICRC of a packet of 24 bytes to that QPN; nothing here looks at more of it. */
static struct pkt packet(uint8_t *bytes, uint32_t qpn, const struct flow *f)
{
	memset(bytes, 0x5a, 24);
	bytes[5] = (uint8_t)(qpn >> 16);
	bytes[6] = (uint8_t)(qpn >> 8);
	bytes[7] = (uint8_t)qpn;
	return (struct pkt){.data = bytes, .flow = f, .len = 24, .train = 1};
}

static struct flow flow_of(const uint8_t src[16], const uint8_t dst[16])
{
	struct flow f = {.tos = 0x68, .ttl = 64};

	memcpy(f.src, src, 16);
	memcpy(f.dst, dst, 16);
	return f;
}

static void send_one(const uint8_t src[16], const uint8_t dst[16], uint32_t qpn)
{
	struct flow f = flow_of(src, dst);
	uint8_t bytes[24];
	struct pkt p = packet(bytes, qpn, &f);

	assert_int_equal(io_send(io, &p, 1, now_ns), 1);
}

/* Waits for a packet; false: none has come after ms. */
static bool receive(struct pkt *p, int ms)
{
	int fd;
	struct pollfd f = {.events = POLLIN};

	assert_int_equal(io_fds(io, &fd, 1), 1);
	f.fd = fd;
	while (!io_recv(io, p, 1, now_ns)) {
		if (poll(&f, 1, ms) <= 0)
			return false;
	}
	return true;
}

static size_t peer_receive(uint8_t *frame)
{
	struct pollfd f = {.fd = peer, .events = POLLIN};

	assert_int_equal(poll(&f, 1, WAIT_MS), 1);
	return (size_t)recv(peer, frame, FRAME_BYTES, 0);
}

/* A frame from the wire, from the peer's MAC. */
static void peer_send(const uint8_t src[16], const uint8_t dst[16], uint32_t qpn)
{
	struct rocev1_link link = {.dst = {MAC_A}, .src = {MAC_B}};
	struct flow f = flow_of(src, dst);
	uint8_t frame[FRAME_BYTES], bytes[24];
	struct pkt p = packet(bytes, qpn, &f);
	size_t at = rocev1_encode(frame, &link, &f, p.len);

	memcpy(frame + at, bytes, p.len);
	assert_int_equal(send(peer, frame, at + p.len, 0), at + p.len);
}

/* The frame that was sent before must not arrive: this one, which is behind it, is the first. */
static void next_is_good(void)
{
	struct pkt p;

	peer_send(gid_b, gid_a, (SLOT << 17) + 99);
	assert_true(receive(&p, WAIT_MS));
	assert_int_equal(p.data[7], 99);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(packets_to_this_host_go_over_the_loopback_interface)
{
	const uint8_t *ways[][2] = {{ip_lo, ip_lo}, {gid_a, gid_a}, {ip_a, ip_a}};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct pkt p;

		send_one(ways[i][0], ways[i][1], (SLOT << 17) + 3);
		assert_true(receive(&p, WAIT_MS));
		assert_int_equal(p.len, 24);
		assert_int_equal(p.data[7], 3);
		assert_memory_equal(p.flow->src, ways[i][0], 16);
		assert_memory_equal(p.flow->dst, ways[i][1], 16);
		assert_int_equal(p.flow->tos, 0x68);
		assert_int_equal(p.flow->ttl, 64);
		assert_false(flow_has_udp(p.flow));
	}
	assert_int_equal(counters.tx_drops, 0);
	assert_int_equal(counters.rx_packets, 3);
	assert_int_equal(interfaces.count, 1);
	assert_string_equal(interfaces.rows[0].name, "lo");
	assert_int_equal(interfaces.rows[0].tx_packets, 3);
}

/* The golden frame of rocev1_test.c, by way of the kernel. */
CASE(the_golden_frame_is_on_the_wire)
{
	static const uint8_t golden[] = {
		MAC_B, MAC_A, 0x89, 0x15, 0x66, 0x80, 0,    0,  0,  0x30, 0x1b, 0x40, GID_A, GID_B, 0x0a, 0x00,
		0xff,  0xff,  0,    0,    0,    0x11, 0x80, 0,  0,  1,    0,    0,    0x56,  0,     0x12, 0x34,
		0x50,  0,     1,    2,    3,    4,    0,    0,  0,  0x10, 0,    1,    2,     3,     4,    5,
		6,     7,     8,    9,    10,   11,   12,   13, 14, 15,   0x03, 0x7f, 0x34,  0x38};
	struct flow f = flow_of(gid_a, gid_b);
	uint8_t bytes[48], frame[FRAME_BYTES];
	struct pkt p = {.data = bytes, .flow = &f, .len = sizeof(bytes), .train = 1};

	memcpy(bytes, golden + 54, sizeof(bytes));
	assert_int_equal(io_send(io, &p, 1, now_ns), 1);
	assert_int_equal(peer_receive(frame), sizeof(golden));
	assert_memory_equal(frame, golden, sizeof(golden));
	/* And so it is captured. */
	assert_int_equal(raw_head(io, frame, &p), 54);
	assert_memory_equal(frame, golden, 54);
}

CASE(frames_for_other_slots_and_addresses_do_not_come)
{
	struct pkt p;

	peer_send(gid_b, gid_a, (SLOT + 1) << 17);
	peer_send(gid_b, gid_b, SLOT << 17);
	peer_send(gid_b, ip_lo, SLOT << 17);
	next_is_good();
	/* QPN 1 is whose the owner says. */
	peer_send(gid_b, gid_a, 1);
	assert_true(receive(&p, WAIT_MS));
	is_ours = false;
	peer_send(gid_b, gid_a, 1);
	next_is_good();
}

CASE(nobody_on_the_wire_is_this_host)
{
	peer_send(gid_a, gid_a, SLOT << 17);
	peer_send(ip_lo, gid_a, SLOT << 17);
	peer_send(group, gid_a, SLOT << 17);
	next_is_good();
	assert_int_equal(counters.rx_drops, 3);
}

CASE(a_packet_waits_for_the_neighbour)
{
	uint8_t frame[FRAME_BYTES];
	struct pkt p;

	send_one(ip_a, ip_b, 7);
	assert_int_equal(counters.tx_packets, 0);
	assert_true(io_deadline_ns(io) < UINT64_MAX);
	own_net_run("ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev vra");
	now_ns += 2 * MS;
	assert_int_equal(io_recv(io, &p, 1, now_ns), 0);
	assert_int_equal(peer_receive(frame), 54 + 24);
	assert_int_equal(frame[54 + 7], 7);
	assert_int_equal(io_deadline_ns(io), UINT64_MAX);
	send_one(ip_a, ip_b, 8);
	assert_int_equal(peer_receive(frame), 54 + 24);
	assert_int_equal(frame[54 + 7], 8);
	own_net_run("ip neigh del 10.0.0.2 dev vra");
}

CASE(packets_to_nobody_are_dropped)
{
	static const uint8_t nobody[16] = {[10] = 0xff, 0xff, 10, 0, 0, 9};
	struct pkt p;

	for (int i = 0; i < RAW_WAITING_MAX + 3; i++)
		send_one(ip_a, nobody, 7);
	assert_int_equal(counters.tx_drops, 3);
	now_ns += 1001 * (uint64_t)MS;
	io_recv(io, &p, 1, now_ns);
	assert_int_equal(counters.tx_drops, 3 + RAW_WAITING_MAX);
	assert_int_equal(io_deadline_ns(io), UINT64_MAX);
	/* An address that is none of ours cannot be a source. */
	send_one(ip_b, ip_a, 7);
	assert_int_equal(counters.tx_drops, 4 + RAW_WAITING_MAX);
}

static bool none(const void *ctx, const uint8_t gid[16], uint32_t ifindex)
{
	return false;
}

CASE(a_groups_packets_go_out_and_round)
{
	static const uint8_t mac[] = {0x33, 0x33, 0, 0, 0, 0x77};
	const uint32_t ifindex = if_nametoindex("vra");
	uint8_t frame[FRAME_BYTES];
	struct pkt p;

	assert_int_equal(raw_join(io, group, &ifindex, 1), 0);
	assert_int_equal(raw_join(io, group, &ifindex, 1), 0);
	send_one(gid_a, group, 0xffffff);
	assert_int_equal(peer_receive(frame), 54 + 24);
	assert_memory_equal(frame, mac, sizeof(mac));
	assert_true(receive(&p, WAIT_MS));
	assert_memory_equal(p.flow->dst, group, 16);
	assert_int_equal(p.flow->ifindex, ifindex);
	raw_keep(io, none, NULL);
	/* Nobody is in the group any more. */
	send_one(gid_a, group, 0xffffff);
	peer_receive(frame);
	next_is_good();
	/* Room for as many as there may be, and no more. */
	for (int i = 0; i <= RAW_JOINS_MAX; i++) {
		uint8_t gid[16] = {0xff, 0x0e, [14] = (uint8_t)(i >> 8), [15] = (uint8_t)i};

		assert_int_equal(raw_join(io, gid, &ifindex, 1), i < RAW_JOINS_MAX ? 0 : -ENOMEM);
	}
}

static int try_without_capability(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none_at_all[2] = {{0}};
	char why[256] = "";

	if (syscall(SYS_capset, &h, none_at_all))
		return 1;
	return open_io(why, sizeof(why)) == -EPERM && strstr(why, "CAP_NET_RAW") ? 0 : 2;
}

TEST(without_the_capability_it_says_so)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(try_without_capability());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}
