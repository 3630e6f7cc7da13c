/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program may send, and who has which address. */
#include "lockstep/lockstep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/test.h"

static int ends[2];

static int open_ends(void **state)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
}

TEST(a_message_arrives_as_it_was_sent)
{
	struct lockstep_head head = {.kind = LOCKSTEP_PACKET, .bytes = 5, .value = 7, .flow = {.dport = 4791}};
	struct lockstep_message m;

	assert_int_equal(lockstep_receive(ends[1], &m, false), -EAGAIN);
	assert_int_equal(lockstep_send(ends[0], &head, "hello"), 0);
	assert_int_equal(lockstep_receive(ends[1], &m, true), 1);
	assert_memory_equal(&m.head, &head, sizeof(head));
	assert_memory_equal(m.bytes, "hello", 5);
	head = (struct lockstep_head){.kind = LOCKSTEP_WAIT, .value = UINT64_MAX};
	assert_int_equal(lockstep_send(ends[0], &head, NULL), 0);
	assert_int_equal(lockstep_receive(ends[1], &m, false), 1);
	assert_int_equal(m.head.kind, LOCKSTEP_WAIT);
	assert_true(m.head.value == UINT64_MAX);
}

/* Any length, kind and number of bytes that is no message. */
TEST(nonsense_is_refused)
{
	static const struct {
		uint32_t kind, bytes;
		size_t sent;
	} wrong[] = {
		{LOCKSTEP_WAIT, 0, 1},
		{LOCKSTEP_WAIT, 0, sizeof(struct lockstep_head) - 1},
		{LOCKSTEP_WAIT, 0, sizeof(struct lockstep_head) + 1},
		{LOCKSTEP_WAIT, 4, sizeof(struct lockstep_head) + 4},
		{LOCKSTEP_PACKET, 0, sizeof(struct lockstep_head)},
		{LOCKSTEP_PACKET, 9, sizeof(struct lockstep_head) + 8},
		{LOCKSTEP_PACKET, LOCKSTEP_BYTES_MAX + 1, sizeof(struct lockstep_head) + LOCKSTEP_BYTES_MAX + 1},
		{LOCKSTEP_PACKET, UINT32_MAX, sizeof(struct lockstep_head) + 8},
		{0, 0, sizeof(struct lockstep_head)},
		{LOCKSTEP_KINDS, 0, sizeof(struct lockstep_head)},
	};
	static uint8_t bytes[sizeof(struct lockstep_message) + 64];
	struct lockstep_message m;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct lockstep_head head = {.kind = wrong[i].kind, .bytes = wrong[i].bytes};

		memcpy(bytes, &head, sizeof(head));
		assert_true(send(ends[0], bytes, wrong[i].sent, 0) == (ssize_t)wrong[i].sent);
		assert_int_equal(lockstep_receive(ends[1], &m, true), -EBADMSG);
	}
}

TEST(hosts_have_addresses_of_loopback)
{
	static const uint8_t first[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1}, far[16] = {[10] = 0xff, 0xff, 127, 1, 0, 0},
			     none[16] = {[10] = 0xff, 0xff, 127, 0, 0, 0}, other[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
	uint8_t gid[16];
	uint32_t host = 9;

	lockstep_address(0, gid);
	assert_memory_equal(gid, first, 16);
	lockstep_address(65535, gid);
	assert_memory_equal(gid, far, 16);
	assert_true(lockstep_host(gid, &host) && host == 65535);
	assert_false(lockstep_host(none, &host));
	assert_false(lockstep_host(other, &host));
}

TEST(hosts_have_names)
{
	uint32_t host;

	assert_true(lockstep_host_name("host0", &host) && host == 0);
	assert_true(lockstep_host_name("host120", &host) && host == 120);
	for (const char **wrong =
		     (const char *[]){"host", "host1x", "host-1", "host 1", "ghost1", "host123456789", NULL};
	     *wrong; wrong++)
		assert_false(lockstep_host_name(*wrong, &host));
}

TEST(sockets_have_names)
{
	struct lockstep_end own = {70000, 65535}, peer = {3, 18515}, got[2];
	enum lockstep_socket kind;
	struct sockaddr_un a;
	socklen_t bytes = lockstep_name(&a, UINT64_MAX, LOCKSTEP_CLIENT, own, peer);

	assert_true(lockstep_name_read(&a, bytes, &kind, &got[0], &got[1]));
	assert_int_equal(kind, LOCKSTEP_CLIENT);
	assert_int_equal(got[0].host, 70000);
	assert_int_equal(got[0].port, 65535);
	assert_int_equal(got[1].host, 3);
	assert_int_equal(got[1].port, 18515);
	assert_false(lockstep_name_read(&a, sizeof(a.sun_family), &kind, &got[0], &got[1])); /* none */
	assert_false(lockstep_name_read(&a, 24, &kind, &got[0], &got[1]));
	a.sun_path[0] = '/';
	assert_false(lockstep_name_read(&a, bytes, &kind, &got[0], &got[1]));
}

TEST(the_variable_names_two_descriptors)
{
	int a, b;

	assert_true(lockstep_parse("5,16", &a, &b) && a == 5 && b == 16);
	assert_false(lockstep_parse("5", &a, &b));
	assert_false(lockstep_parse("5,", &a, &b));
	assert_false(lockstep_parse("5,6 ", &a, &b));
	assert_false(lockstep_parse("-1,6", &a, &b));
}

TEST(an_end_that_is_closed_is_seen)
{
	struct lockstep_head head = {.kind = LOCKSTEP_RUN};
	struct lockstep_message m;

	close(ends[0]);
	assert_int_equal(lockstep_receive(ends[1], &m, true), 0);
	assert_int_equal(lockstep_send(ends[1], &head, NULL), -EPIPE);
}

TEST_PROGRAM(open_ends, NULL)
