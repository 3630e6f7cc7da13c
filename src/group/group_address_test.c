/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups at addresses of their own, beside each other on one host. */
#include <arpa/inet.h>

#include "support/group_members.h"
#include "support/test.h"

enum { NOBODY = 65534 };

static struct group_address address(const char *text)
{
	struct group_address a = {.gid = {[10] = 0xff, [11] = 0xff}};

	assert_int_equal(inet_pton(AF_INET, text, a.gid + 12), 1);
	return a;
}

static struct group_config config_at(const char *first, const char *second)
{
	struct group_config c = config();

	c.addresses[c.address_count++] = address(first);
	if (second)
		c.addresses[c.address_count++] = address(second);
	return c;
}

static struct report join(const struct group_config *cfg)
{
	pid_t pid = member_fork(cfg);
	struct report r = report_of(pid, JOIN_MS);

	if (r.kind == FAILED)
		waitpid(pid, NULL, 0);
	else
		members[member_count++] = (struct member){.pid = pid, .slot = r.slot};
	return r;
}

static void expect_joined(const struct group_config *cfg, unsigned slot)
{
	struct report r = join(cfg);

	if (r.kind != JOINED)
		fail_msg("%s", r.why);
	assert_int_equal(r.slot, slot);
}

static void expect_refused(const struct group_config *cfg, const char *part)
{
	struct report r = join(cfg);

	assert_int_equal(r.kind, FAILED);
	assert_int_equal(r.err, -EADDRINUSE);
	if (!strstr(r.why, part))
		fail_msg("\"%s\" does not say \"%s\"", r.why, part);
	if (getenv("VERBENA_TEST_SHOW"))
		print_message("\t%s\n", r.why);
}

/* A datagram to an address and slot, on both ports, must reach that member alone. */
static void expect_reached(const char *at, size_t member)
{
	static uint32_t nonce = 1;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct report r;

	for (unsigned i = 0; i < 2; i++, nonce++) {
		struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(i ? second_port : port)};
		uint64_t until = clock_now_ms() + WAIT_MS;
		uint8_t d[DATAGRAM] = {0};
		bool got = false;

		inet_pton(AF_INET, at, &a.sin_addr);
		put_be24(d + 5, members[member].slot << GROUP_SLOT_SHIFT);
		put_be32(d + 12, nonce);
		assert_int_equal(sendto(fd, d, sizeof(d), 0, (struct sockaddr *)&a, sizeof(a)), sizeof(d));
		while (!got && clock_now_ms() < until) {
			if (!next_report(&r, 100) || r.kind != GOT)
				continue;
			assert_int_equal(r.nonce, nonce);
			assert_int_equal(r.pid, members[member].pid);
			assert_int_equal(r.dport, ntohs(a.sin_port));
			got = true;
		}
		assert_true(got);
	}
	assert_false(next_report(&r, 0));
	close(fd);
}

GROUP_TEST(groups_at_different_addresses_are_beside_each_other)
{
	struct group_config two = config_at("127.0.0.2", NULL), three = config_at("127.0.0.3", NULL);

	expect_joined(&two, 0);
	expect_joined(&three, 0);
	expect_joined(&two, 1);
	expect_joined(&three, 1);
	for (unsigned i = 0; i < 4; i++)
		expect_reached(i % 2 ? "127.0.0.3" : "127.0.0.2", i);
	member_kill(0); /* the last one takes its place */
	expect_joined(&two, 0);
	expect_reached("127.0.0.2", 3);
	expect_reached("127.0.0.3", 0);
}

GROUP_TEST(a_group_receives_at_each_of_its_addresses_in_whichever_order)
{
	struct group_config a = config_at("127.0.0.2", "127.0.0.3"), b = config_at("127.0.0.3", "127.0.0.2");

	expect_joined(&a, 0);
	expect_joined(&b, 1);
	for (unsigned i = 0; i < 2; i++) {
		expect_reached("127.0.0.2", i);
		expect_reached("127.0.0.3", i);
	}
}

GROUP_TEST(groups_of_a_user_share_no_address)
{
	struct group_config a = config_at("127.0.0.2", "127.0.0.3"), b = config_at("127.0.0.3", "127.0.0.4");
	struct group_config c = config_at("127.0.0.4", NULL);

	expect_joined(&a, 0);
	expect_refused(&b, "at 127.0.0.3 by other programs of this user");
	expect_joined(&c, 0);
	expect_reached("127.0.0.3", 0);
	expect_reached("127.0.0.4", 1);
}

/* Its devices would be reached by that address too. */
GROUP_TEST(an_address_of_the_host_is_not_beside_all_of_them)
{
	struct group_config at = config_at("127.0.0.2", NULL), all = config();
	struct group_address host = address("127.0.0.2");

	at.host = all.host = &host;
	at.host_count = all.host_count = 1;
	expect_joined(&at, 0);
	expect_refused(&all, "at 127.0.0.2 by other programs of this user with VERBENA_ADDRESS");
	member_kill(0);
	expect_joined(&all, 0);
	expect_refused(&at, "at every address by programs of this user without VERBENA_ADDRESS");
	expect_all_reached();
}

GROUP_TEST(an_address_that_is_not_the_hosts_is_beside_all_of_them)
{
	struct group_config at = config_at("127.0.0.2", NULL), all = config();

	expect_joined(&all, 0);
	expect_joined(&at, 0);
	expect_reached("127.0.0.1", 0);
	expect_reached("127.0.0.2", 1);
	member_kill(0);
	expect_joined(&all, 0);
	expect_reached("127.0.0.2", 0);
	expect_reached("127.0.0.1", 1);
}

/* The dead are not in the way of those who follow. */
GROUP_TEST(addresses_are_free_again_after_kill)
{
	struct group_config two = config_at("127.0.0.2", NULL), both = config_at("127.0.0.2", "127.0.0.3");

	for (unsigned i = 0; i < ROUNDS; i++) {
		expect_joined(i % 2 ? &two : &both, 0);
		expect_reached("127.0.0.2", 0);
		member_kill(0);
	}
}

static struct report join_as_nobody(const struct group_config *cfg)
{
	struct report r;

	assert_int_equal(seteuid(NOBODY), 0);
	r = join(cfg);
	assert_int_equal(seteuid(0), 0);
	return r;
}

GROUP_TEST(two_users_are_beside_each_other)
{
	struct group_config two = config_at("127.0.0.2", NULL), three = config_at("127.0.0.3", NULL);
	struct group_config all = config();
	struct report r;

	if (geteuid() != 0 || !link_uid_is_certain(NOBODY))
		skip();
	expect_joined(&two, 0);
	r = join_as_nobody(&three);
	assert_string_equal(r.why, "");
	assert_int_equal(r.kind, JOINED);
	assert_int_equal(r.slot, 0);
	expect_reached("127.0.0.2", 0);
	expect_reached("127.0.0.3", 1);

	/* Without an address, and with another user's, he is told of one that is free. */
	r = join_as_nobody(&all);
	assert_int_equal(r.err, -EADDRINUSE);
	assert_non_null(strstr(r.why, "another user (uid 0) at 127.0.0.2"));
	assert_non_null(strstr(r.why, "VERBENA_ADDRESS"));
	assert_non_null(strstr(r.why, "127.0.0.4"));
	r = join_as_nobody(&two);
	assert_int_equal(r.err, -EADDRINUSE);
	assert_non_null(strstr(r.why, "127.0.0.4"));
}

GROUP_TEST(the_groups_of_a_port_are_listed)
{
	struct group_config two = config_at("127.0.0.2", NULL), three = config_at("127.0.0.3", NULL);
	struct group_member found[GROUP_SLOTS];
	struct group_id ids[4];

	assert_int_equal(group_list(geteuid(), port, ids, 4), 1);
	expect_joined(&two, 0);
	expect_joined(&three, 0);
	assert_int_equal(group_list(geteuid(), port, ids, 4), 3);
	assert_int_equal(ids[0].addresses, 0);
	assert_int_equal(group_query(&ids[0], GROUP_ALL_SLOTS, 1000, found, GROUP_SLOTS), 0);
	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(ids[i].uid, geteuid());
		assert_int_equal(group_query(&ids[i], GROUP_ALL_SLOTS, 1000, found, GROUP_SLOTS), 1);
		assert_true(found[0].pid == members[0].pid || found[0].pid == members[1].pid);
	}
}
