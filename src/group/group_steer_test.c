/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's program and the function agree: whose socket gets a packet. */

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/byteorder.h"
#include "group/group.h"
#include "group/group_steer.h"
#include "support/test.h"

enum { SOCKETS = 6, PACKET_LEN = 280, REQUESTS = 3 };

static int socks[SOCKETS], sender;
static struct sockaddr_in at = {.sin_family = AF_INET};

static int setup(void **state)
{
	socklen_t len = sizeof(at);
	int one = 1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < SOCKETS; i++) {
		socks[i] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
		assert_int_equal(setsockopt(socks[i], SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
		assert_int_equal(bind(socks[i], (struct sockaddr *)&at, sizeof(at)), 0);
		assert_int_equal(getsockname(socks[i], (struct sockaddr *)&at, &len), 0);
	}
	assert_int_equal(steer_attach(socks[2], REQUESTS), 0);
	sender = socket(AF_INET, SOCK_DGRAM, 0);
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < SOCKETS; i++)
		close(socks[i]);
	close(sender);
	return 0;
}

/* Which socket the kernel gives it to. */
static unsigned kernel_slot(const uint8_t *packet, size_t len)
{
	uint8_t buf[PACKET_LEN];

	assert_int_equal(sendto(sender, packet, len, 0, (struct sockaddr *)&at, sizeof(at)), len);
	for (unsigned i = 0; i < SOCKETS; i++) {
		if (recv(socks[i], buf, sizeof(buf), 0) == (ssize_t)len)
			return i;
	}
	fail_msg("it did not arrive");
	return 0;
}

TEST(packets_of_qps_go_by_the_qpn)
{
	for (uint32_t slot = 0; slot < SOCKETS; slot++) {
		uint8_t packet[PACKET_LEN] = {[4] = 0xc0};
		struct pkt p = {.data = packet, .len = PACKET_LEN};

		put_be24(packet + 5, slot << GROUP_SLOT_SHIFT | 0x1ffff);
		assert_int_equal(kernel_slot(packet, PACKET_LEN), slot);
		assert_int_equal(group_slot_of(&p), slot);
	}
}

TEST(messages_go_by_the_id_that_they_name)
{
	static const struct {
		uint16_t attribute;
		size_t id_at; /* 0: names none */
	} row[] = {{0x10, 0}, {0x11, 48}, {0x12, 48}, {0x13, 48}, {0x14, 48}, {0x15, 48}, {0x16, 48},
		   {0x17, 0}, {0x18, 44}, {0x19, 0},  {0x1a, 0},  {0, 0},     {0xffff, 0}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		for (uint32_t slot = 0; slot < SOCKETS; slot++) {
			uint8_t packet[PACKET_LEN] = {[7] = 1};
			struct pkt p = {.data = packet, .len = PACKET_LEN};

			put_be16(packet + 36, row[i].attribute);
			put_be32(packet + 44, 3u << 25);
			put_be32(packet + 48, 3u << 25);
			if (row[i].id_at)
				put_be32(packet + row[i].id_at, slot << 25 | 7);
			assert_int_equal(kernel_slot(packet, PACKET_LEN), row[i].id_at ? slot : REQUESTS);
			assert_int_equal(group_slot_of(&p), row[i].id_at ? slot : GROUP_ANY_SLOT);
		}
	}
}

TEST(who_gave_up_early_names_nobody)
{
	uint8_t packet[PACKET_LEN] = {[7] = 1};
	struct pkt p = {.data = packet, .len = PACKET_LEN};

	put_be16(packet + 36, 0x12);
	assert_int_equal(kernel_slot(packet, PACKET_LEN), REQUESTS);
	assert_int_equal(group_slot_of(&p), GROUP_ANY_SLOT);
}

TEST(what_is_cut_off_goes_to_slot_0)
{
	for (size_t len = 1; len < 52; len++) {
		uint8_t packet[PACKET_LEN] = {[7] = 1, [37] = 0x13, [48] = 2};
		struct pkt p = {.data = packet, .len = (uint32_t)len};

		assert_int_equal(kernel_slot(packet, len), 0);
		assert_true(group_slot_of(&p) == 0 || group_slot_of(&p) == GROUP_ANY_SLOT);
	}
}

TEST_PROGRAM(setup, teardown)
