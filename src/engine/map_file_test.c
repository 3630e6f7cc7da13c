/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/map_file.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

enum { ROOM = 64 };

static int parsed(const char *text, struct gid_row *rows, char *why, size_t why_bytes)
{
	assert_true(strlen(text) / MAP_LINE_MIN + 1 <= ROOM);
	return map_parse("the file", text, strlen(text), rows, why, why_bytes);
}

static void assert_row(const struct gid_row *row, const char *vgid, const char *underlay)
{
	uint8_t gid[16];

	inet_pton(AF_INET6, vgid, gid);
	assert_memory_equal(row->vgid, gid, sizeof(gid));
	inet_pton(AF_INET6, underlay, gid);
	assert_memory_equal(row->underlay, gid, sizeof(gid));
}

TEST(lines_are_pairs_of_addresses_and_come_by_vgid)
{
	static const char text[] = "# of the cluster\n"
				   "\n"
				   "10.200.0.7  192.0.2.17   # b\n"
				   "\t10.200.0.3\t192.0.2.18\r\n"
				   "fd00::1 2001:db8::1#c\n"
				   "::ffff:10.200.0.9 192.0.2.1\n"
				   "127.0.0.2 127.0.0.3";
	struct gid_row rows[ROOM];
	char why[256] = "";

	assert_int_equal(parsed(text, rows, why, sizeof(why)), 5);
	assert_row(&rows[0], "::ffff:10.200.0.3", "::ffff:192.0.2.18");
	assert_row(&rows[1], "::ffff:10.200.0.7", "::ffff:192.0.2.17");
	assert_row(&rows[2], "::ffff:10.200.0.9", "::ffff:192.0.2.1");
	assert_row(&rows[3], "::ffff:127.0.0.2", "::ffff:127.0.0.3");
	assert_row(&rows[4], "fd00::1", "2001:db8::1");
}

TEST(what_is_wrong_is_named_with_its_line)
{
	static const struct {
		const char *text, *told;
	} bad[] = {
		{"", "the file: there is no line with a virtual GID and its underlay"},
		{"# nothing\n\n   \n", "the file: there is no line with a virtual GID and its underlay"},
		{"10.200.0.7\n",
		 "the file:1: 1 words: allowed are two addresses, a virtual GID and that of the underlay"},
		{"10.200.0.7 192.0.2.1 42\n", "the file:1: 3 words: allowed are two"},
		{"\n10.200.0 192.0.2.1\n", "the file:2: '10.200.0': allowed are IPv4 and IPv6 addresses"},
		{"10.200.0.7 host\n", "the file:1: 'host': allowed are IPv4 and IPv6 addresses"},
		{"10.200.0.7 192.0.2.1/24\n", "the file:1: '192.0.2.1/24': allowed are"},
		{"fd00::1 fd00::1:fd00::1:fd00::1:fd00::1:fd00::1:fd00::1\n", "allowed are IPv4 and IPv6 addresses"},
		{"fe80::1 fd00::1\n", "the file:1: fe80::1: allowed is no group's address, none of a link alone"},
		{"10.0.0.1 224.0.0.1\n", "the file:1: 224.0.0.1: allowed is no group's address"},
		{"ff02::1 fd00::1\n", "the file:1: ff02::1: allowed is no group's address"},
		{"0.0.0.0 10.0.0.1\n", "the file:1: 0.0.0.0: allowed is"},
		{":: fd00::1\n", "the file:1: ::: allowed is"},
		{"10.0.0.1 fd00::1\n",
		 "the file:1: 10.0.0.1 is an IPv4 address and fd00::1 is none: allowed are two of one kind"},
		{"fd00::1 10.0.0.1\n", "the file:1: fd00::1 is an IPv6 address and 10.0.0.1 is none"},
		{"10.0.0.1 10.1.0.1\n10.0.0.2 10.1.0.2\n#\n10.0.0.1 10.1.0.3\n",
		 "the file:4: 10.0.0.1 is the vGID of line 1, too: allowed is one underlay for each"},
		{"10.0.0.1 10.1.0.1\n10.0.0.2 10.1.0.2\n10.0.0.3 10.1.0.2\n",
		 "the file:3: 10.1.0.2 is the underlay of line 2, too: allowed is one vGID for each"},
		{"10.0.0.1 10.1.0.1\n10.0.0.1 10.1.0.1\n", "the file:2: 10.1.0.1 is the underlay of line 1, too"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gid_row rows[ROOM];
		char why[256] = "";

		assert_int_equal(parsed(bad[i].text, rows, why, sizeof(why)), -EINVAL);
		if (!strstr(why, bad[i].told))
			fail_msg("%s: %s", bad[i].text, why);
	}
}

TEST(a_zero_byte_is_no_part_of_an_address)
{
	static const char text[] = "10.0.0.1\0 10.1.0.1\n";
	struct gid_row rows[ROOM];
	char why[256];

	assert_int_equal(map_parse("f", text, sizeof(text) - 1, rows, why, sizeof(why)), -EINVAL);
}
