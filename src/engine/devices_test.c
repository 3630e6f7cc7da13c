/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/devices.h"
#include "support/test.h"

#include <string.h>

static struct devices parsed(const char *text)
{
	struct devices d;
	char why[512] = "";

	if (!devices_parse(&d, text, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	return d;
}

TEST(a_number_is_devices_without_rails)
{
	struct devices d = parsed("8");

	assert_int_equal(d.count, 8);
	assert_false(d.has_rails || d.kinds_given);
	assert_string_equal(d.rails[0], "");
}

TEST(each_device_has_its_rail)
{
	static const struct {
		const char *text;
		uint32_t count, iwarp;
		const char *rails[4];
	} rows[] = {
		{"verbena0@eth0", 1, 0, {"eth0"}},
		{"verbena0@eth0,verbena1@10.0.0.1", 2, 0, {"eth0", "10.0.0.1"}},
		{"verbena1@eth1,verbena0@eth0", 2, 0, {"eth0", "eth1"}},
		{"roce@eth0,roce@fe80::1%eth1", 2, 0, {"eth0", "fe80::1%eth1"}},
		{"iwarp@a,roce@b", 2, 1, {"a", "b"}},
		{"verbena_iw0@a,verbena0@b,verbena_iw1@c", 3, 5, {"a", "b", "c"}},
		{"verbena1@a,verbena_iw1@b,verbena_iw0@c,verbena0@d", 4, 6, {"d", "c", "b", "a"}},
		{"roce@a,verbena1@b", 2, 0, {"a", "b"}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct devices d = parsed(rows[i].text);

		assert_true(d.has_rails && d.kinds_given);
		assert_int_equal(d.count, rows[i].count);
		assert_int_equal(d.iwarp, rows[i].iwarp);
		for (uint32_t k = 0; k < d.count; k++)
			assert_string_equal(d.rails[k], rows[i].rails[k]);
	}
}

TEST(names_without_rails_are_kinds)
{
	struct devices d = parsed("verbena_iw0,verbena0");

	assert_int_equal(d.count, 2);
	assert_int_equal(d.iwarp, 1);
	assert_false(d.has_rails);
}

TEST(what_is_wrong_is_named_and_what_is_allowed)
{
	static const struct {
		const char *text, *told;
	} bad[] = {
		{"", "allowed is a whole number from 1 to 8"},
		{"0", "allowed is a whole number from 1 to 8"},
		{"9", "allowed is a whole number from 1 to 8"},
		{"two", "'two' is no device; allowed is"},
		{"roce,", "device 2 of the list is missing; allowed is"},
		{",roce", "device 1 of the list is missing; allowed is"},
		{"verbena0@eth0,,verbena1@eth1", "device 2 of the list is missing; allowed is"},
		{"@eth0", "'' is no device; allowed is"},
		{"verbena8", "'verbena8' is no device; allowed is"},
		{"verbena00", "'verbena00' is no device; allowed is"},
		{"Verbena0", "'Verbena0' is no device; allowed is"},
		{"mlx5_0@eth0", "'mlx5_0' is no device; allowed is"},
		{"2@eth0", "'2' is no device; allowed is"},
		{"verbena0@eth0,verbena0@eth1", "'verbena0' is there twice; allowed is each device once"},
		{"roce@eth0,verbena0@eth1", "'verbena0' is there twice"},
		{"verbena0@eth0,verbena1@eth0", "'@eth0' is there twice; allowed is each interface or address once"},
		{"verbena1@eth0", "'verbena1' is there without those before it; allowed are names that count from 0"},
		{"verbena0@eth0,verbena_iw1@eth1", "'verbena_iw1' is there without those before it"},
		{"verbena0@eth0,verbena1",
		 "'verbena1' is without an @; allowed is an interface or address behind each"},
		{"verbena0,verbena1@eth1", "'verbena1' is with an @; allowed is"},
		{"verbena0@", "'verbena0@': allowed behind the @ is an interface or an address"},
		{"roce,roce,roce,roce,roce,roce,roce,roce,iwarp", "'iwarp' is one too many; allowed is"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct devices d = {.count = 77};
		char why[512] = "";

		assert_false(devices_parse(&d, bad[i].text, why, sizeof(why)));
		assert_int_equal(d.count, 77);
		if (!strstr(why, bad[i].told))
			fail_msg("%s: \"%s\" does not say \"%s\"", bad[i].text, why, bad[i].told);
	}
}
