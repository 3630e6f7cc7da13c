/* SPDX-License-Identifier: BSD-2-Clause */
/* The GID table: its order, on made-up hosts, and its contents, on this one. */
#include "engine/gids.h"
#include "engine/config.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>

static void candidate(struct gid_candidate *c, uint32_t ifindex, bool loopback, const char *address, uint32_t sequence)
{
	*c = (struct gid_candidate){.loopback = loopback, .sequence = sequence};
	c->interface.ifindex = ifindex;
	assert_int_equal(inet_pton(AF_INET6, address, c->raw), 1);
}

TEST(loopback_is_last_and_link_local_first)
{
	static const char *const order[] = {"fe80::1", "::ffff:10.0.0.9", "::ffff:10.0.0.1",  "2001:db8::1", "fd00::5",
					    "fe80::2", "::ffff:10.1.0.1", "::ffff:127.0.0.1", "::1"};
	struct gid_candidate c[9];
	char text[INET6_ADDRSTRLEN];

	candidate(&c[0], 1, true, "::1", 0);
	candidate(&c[1], 1, true, "::ffff:127.0.0.1", 1);
	candidate(&c[2], 7, false, "::ffff:10.1.0.1", 2);
	candidate(&c[3], 3, false, "::ffff:10.0.0.9", 3);
	candidate(&c[4], 3, false, "2001:db8::1", 4);
	candidate(&c[5], 3, false, "::ffff:10.0.0.1", 5);
	candidate(&c[6], 3, false, "fd00::5", 6);
	candidate(&c[7], 3, false, "fe80::1", 7);
	candidate(&c[8], 7, false, "fe80::2", 8);
	gids_sort(c, 9);
	for (int i = 0; i < 9; i++)
		assert_string_equal(inet_ntop(AF_INET6, c[i].raw, text, sizeof(text)), order[i]);
}

TEST(this_host_has_a_table)
{
	struct gid_table t, again;
	char err[256] = "";
	bool loopback = false;

	assert_int_equal(gids_load(&t, NULL, err, sizeof(err)), 0);
	again = t;
	assert_int_equal(gids_follow(&again, NULL), 0);
	assert_memory_equal(t.gids, again.gids, sizeof(t.gids));
	assert_in_range(t.count, 1, NIC_GIDS_MAX);
	for (uint32_t i = 0; i < t.count; i++) {
		static const uint8_t none[16];

		assert_memory_not_equal(t.gids[i].raw, none, 16);
		assert_int_equal(t.gids[i].ifindex, t.interfaces[i].ifindex);
		assert_int_equal(t.gids[i].ip_mtu, t.interfaces[i].mtu);
		assert_int_equal(if_nametoindex(t.interfaces[i].name), t.gids[i].ifindex);
		assert_true(t.gids[i].ip_mtu >= 68); /* RFC 791 */
		if (loopback)
			assert_string_equal(t.interfaces[i].name, "lo");
		loopback = !strcmp(t.interfaces[i].name, "lo");
	}
}

/* tests/programs/port.py makes and unmakes the others. */
TEST(loopbacks_own_addresses_are_there_only_without_others)
{
	static const uint8_t lo[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
	struct gid_table t;
	char err[256] = "";
	bool found = false;

	assert_int_equal(gids_load(&t, &(struct gid_choice){.interfaces = ""}, err, sizeof(err)), 0);
	for (uint32_t i = 0; i < t.count; i++)
		found |= !memcmp(t.gids[i].raw, lo, sizeof(lo));
	assert_int_equal(found, !t.networked);
	assert_true(t.port.active);
}

TEST(only_named_interfaces_are_used)
{
	struct gid_table t;
	char err[256] = "";

	assert_int_equal(gids_load(&t, &(struct gid_choice){.interfaces = "lo"}, err, sizeof(err)), 0);
	for (uint32_t i = 0; i < t.count; i++)
		assert_string_equal(t.interfaces[i].name, "lo");
}

TEST(an_unknown_interface_is_named)
{
	static const char *const bad[] = {"lo,nosuch0", "nosuch0", "lo,,lo", "a-name-longer-than-any"};
	static const char *const told[] = {"'nosuch0'", "'nosuch0'", "''", "'a-name-longer-t"};
	struct gid_table t;

	for (int i = 0; i < 4; i++) {
		char err[256] = "";

		assert_int_equal(gids_load(&t, &(struct gid_choice){.interfaces = bad[i]}, err, sizeof(err)), -ENODEV);
		assert_non_null(strstr(err, told[i]));
	}
}

static int load_at(struct gid_table *t, const char *addresses, char *err)
{
	memset(t, 0, sizeof(*t));
	err[0] = 0;
	return gids_load(t, &(struct gid_choice){.addresses = addresses}, err, 512);
}

TEST(chosen_addresses_are_the_table)
{
	static const uint8_t two[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2};
	struct gid_table t;
	char err[512];

	assert_int_equal(load_at(&t, "127.0.0.1", err), 0);
	assert_int_equal(t.count, 1);
	assert_int_equal(t.gids[0].raw[15], 1);
	/* No interface has it, and yet it is the host's. */
	assert_int_equal(load_at(&t, "127.0.0.2", err), 0);
	assert_int_equal(t.count, 1);
	assert_memory_equal(t.gids[0].raw, two, 16);
	assert_string_equal(t.interfaces[0].name, "lo");
	assert_int_equal(t.gids[0].ip_mtu, t.interfaces[0].mtu);
	assert_int_equal(load_at(&t, "127.1.2.3,127.0.0.1,127.0.0.2", err), 0);
	assert_int_equal(t.count, 3);
	assert_int_equal(load_at(&t, "", err), 0);
}

TEST(bad_addresses_are_named)
{
	static const struct {
		const char *list;
		int err;
		const char *told;
	} bad[] = {
		{"localhost", -EINVAL, "'localhost': allowed are IPv4 and IPv6 addresses"},
		{"127.0.0.2,", -EINVAL, "missing behind the last comma"},
		{",127.0.0.2", -EINVAL, "''"},
		{"127.0.0.2,127.0.0.2", -EINVAL, "each once"},
		{"127.0.0.2,127.0.0.3,127.0.0.4,127.0.0.5,127.0.0.6", -EINVAL, "at most 4"},
		{"0.0.0.0", -EINVAL, "'0.0.0.0'"},
		{"::", -EINVAL, "'::'"},
		{"224.0.0.1", -EINVAL, "'224.0.0.1'"},
		{"255.255.255.255", -EINVAL, "'255.255.255.255'"},
		{"ff02::1", -EINVAL, "'ff02::1'"},
		{"127.0.0.2%lo", -EINVAL, "'127.0.0.2%lo'"},
		{"fe80::1%", -EINVAL, "'fe80::1%'"},
		{"192.0.2.77", -EADDRNOTAVAIL, "192.0.2.77 is no address of an interface"},
		{"127.0.0.0", -EADDRNOTAVAIL, "127.0.0.0 is no address"},
		{"127.255.255.255", -EADDRNOTAVAIL, "127.255.255.255 is no address"},
		{"127.0.0.1,2001:db8::77", -EADDRNOTAVAIL, "2001:db8::77 is no address"},
	};
	struct gid_table t;
	char err[512];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(load_at(&t, bad[i].list, err), bad[i].err);
		if (!strstr(err, bad[i].told) || !strstr(err, "VERBENA_ADDRESS="))
			fail_msg("\"%s\" does not say \"%s\"", err, bad[i].told);
	}
}

TEST(a_device_has_its_rail_alone)
{
	static const struct {
		struct gid_choice choice;
		const char *told; /* NULL: the table is `address` on lo alone, or all of lo */
		uint8_t last;
	} rows[] = {
		{{.rail = "lo"}, NULL, 0},
		{{.rail = "127.0.0.1"}, NULL, 1},
		{{.rail = "127.0.0.2"}, NULL, 2},
		{{.rail = "127.0.0.2", .interfaces = "lo"}, NULL, 2},
		{{.rail = "127.0.0.2", .addresses = "127.0.0.3,127.0.0.2"}, NULL, 2},
		{{.rail = "lo", .addresses = "127.0.0.3"}, NULL, 3},
		{{.rail = "nosuch0"}, "'@nosuch0' is no interface", 0},
		{{.rail = "192.0.2.77"},
		 "'@192.0.2.77' is no interface, and no address of one that is up: allowed are lo",
		 0},
		{{.rail = "127.0.0.0"}, "'@127.0.0.0' is no interface", 0},
		{{.rail = "127.0.0.3", .addresses = "127.0.0.1"}, "and is in VERBENA_ADDRESS: allowed are", 0},
		{{.rail = "nosuch0", .interfaces = "lo"},
		 "and is in VERBENA_INTERFACES: allowed are lo, an address",
		 0},
	};
	struct gid_table t;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char err[512] = "";

		assert_int_equal(gids_load(&t, &rows[i].choice, err, sizeof(err)), rows[i].told ? -ENODEV : 0);
		if (rows[i].told && (!strstr(err, rows[i].told) || !strstr(err, "VERBENA_DEVICES: ")))
			fail_msg("\"%s\" does not say \"%s\"", err, rows[i].told);
		if (rows[i].told)
			continue;
		assert_true(t.port.active);
		assert_int_equal(gids_follow(&t, &rows[i].choice), 0);
		for (uint32_t k = 0; k < t.count; k++)
			assert_string_equal(t.interfaces[k].name, "lo");
		if (rows[i].last) {
			assert_int_equal(t.count, 1);
			assert_int_equal(t.gids[0].raw[15], rows[i].last);
		}
	}
}

TEST(no_two_devices_have_an_address)
{
	static struct config c = {.devices = {.count = 2, .has_rails = true, .rails = {"lo", "127.0.0.1"}}};
	static struct gid_table t[2];
	char err[512] = "";

	assert_int_equal(gids_load_all(t, &c, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "VERBENA_DEVICES: '@lo' and '@127.0.0.1' are one address: allowed is"));
	strcpy(c.devices.rails[1], "127.0.0.2");
	assert_int_equal(gids_load_all(t, &c, err, sizeof(err)), 0);
	assert_int_equal(t[1].count, 1);
	c.devices.has_rails = false;
	c.devices.rails[0][0] = c.devices.rails[1][0] = 0;
	assert_int_equal(gids_load_all(t, &c, err, sizeof(err)), 0);
	assert_memory_equal(&t[0], &t[1], sizeof(t[0]));
}
