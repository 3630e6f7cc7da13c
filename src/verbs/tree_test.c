/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"
#include "verbs/hostid.h"
#include "verbs/tree.h"

static const struct tree_gid gids[] = {
	{{[0] = 0xfe, [1] = 0x80, [15] = 1}, "eth0"},
	{{[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 7}, "eth0"},
};

static const struct tree_facts facts = {
	.guid = UINT64_C(0x0211223344556677),
	.device_count = 2,
	.gids = gids,
	.gid_count = 2,
};

struct expectation {
	const char *path;
	const char *text;
};

static const struct expectation expected[] = {
	{"class/infiniband_verbs/abi_version", "6"},
	{"class/infiniband_verbs/uverbs0/ibdev", "verbena0"},
	{"class/infiniband/verbena0/node_type", "1: CA"},
	{"class/infiniband/verbena0/node_guid", "0211:2233:4455:6677"},
	{"class/infiniband/verbena0/ports/1/link_layer", "Ethernet"},
	{"class/infiniband/verbena0/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001"},
	{"class/infiniband/verbena0/ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:c000:0207"},
	{"class/infiniband/verbena0/ports/1/gids/2", "0000:0000:0000:0000:0000:0000:0000:0000"},
	{"class/infiniband/verbena0/ports/1/gid_attrs/types/1", "RoCE v2"},
	{"class/infiniband/verbena0/ports/1/gid_attrs/ndevs/0", "eth0"},
	{"class/infiniband/verbena0/ports/1/pkeys/0", "0xffff"},
	{"class/infiniband/verbena0/sys_image_guid", "0211:2233:4455:6677"},
	{"class/infiniband_verbs/uverbs1/ibdev", "verbena1"},
	{"class/infiniband/verbena1/node_desc", "verbena1"},
	{"class/infiniband/verbena1/node_guid", "0211:2233:4455:6678"},
	{"class/infiniband/verbena1/sys_image_guid", "0211:2233:4455:6677"},
	{"class/infiniband/verbena1/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001"},
	{"class/infiniband/verbena1/ports/1/gid_attrs/ndevs/0", "eth0"},
};

enum { EXPECTED_COUNT = sizeof(expected) / sizeof(expected[0]) };

TEST(reading_gives_what_the_kernel_would_print)
{
	char buf[128];

	for (int i = 0; i < EXPECTED_COUNT; i++) {
		ssize_t len = tree_read(&facts, expected[i].path, buf, sizeof(buf));

		assert_int_equal(len, strlen(expected[i].text));
		assert_string_equal(buf, expected[i].text);
	}
}

TEST(the_gids_of_rocev1_say_so)
{
	struct tree_facts v1 = facts;
	char buf[32];

	v1.rocev1 = true;
	assert_int_equal(tree_read(&v1, "class/infiniband/verbena0/ports/1/gid_attrs/types/1", buf, sizeof(buf)), 10);
	assert_string_equal(buf, "IB/RoCE v1");
}

/* The devices of a kind are numbered by themselves; verbs' own numbers count all. */
TEST(devices_of_two_kinds_say_so)
{
	static const struct expectation mixed[] = {
		{"class/infiniband_verbs/uverbs0/ibdev", "verbena0"},
		{"class/infiniband_verbs/uverbs1/ibdev", "verbena_iw0"},
		{"class/infiniband_verbs/uverbs2/ibdev", "verbena1"},
		{"class/infiniband_verbs/uverbs3/ibdev", "verbena_iw1"},
		{"class/infiniband/verbena1/node_type", "1: CA"},
		{"class/infiniband/verbena1/node_guid", "0211:2233:4455:6679"},
		{"class/infiniband/verbena1/ports/1/gid_attrs/types/0", "IB/RoCE v1"},
		{"class/infiniband/verbena_iw1/node_type", "4: RNIC"},
		{"class/infiniband/verbena_iw1/node_guid", "0211:2233:4455:667a"},
		{"class/infiniband/verbena_iw1/ports/1/gid_attrs/types/0", "RoCE v2"},
	};
	struct tree_facts four = facts;
	char buf[128];

	four.device_count = 4;
	four.iwarp = 0xa;
	four.rocev1 = true;
	for (size_t i = 0; i < sizeof(mixed) / sizeof(mixed[0]); i++) {
		assert_int_equal(tree_read(&four, mixed[i].path, buf, sizeof(buf)), strlen(mixed[i].text));
		assert_string_equal(buf, mixed[i].text);
	}
	assert_int_equal(tree_read(&four, "class/infiniband/verbena2/node_type", buf, sizeof(buf)), -ENOENT);
}

TEST(an_unknown_file_is_not_there)
{
	char buf[8];

	assert_int_equal(tree_read(&facts, "class/infiniband/verbena0/x", buf, sizeof(buf)), -ENOENT);
	/* The kernel refuses to name the type of an empty slot. */
	assert_int_equal(tree_read(&facts, "class/infiniband/verbena0/ports/1/gid_attrs/types/2", buf, sizeof(buf)),
			 -ENOENT);
}

TEST(a_short_buffer_takes_what_fits)
{
	char buf[4] = "....";

	assert_int_equal(tree_read(&facts, "class/infiniband/verbena0/node_type", buf, 3), 3);
	assert_memory_equal(buf, "1: .", 4);
}

static void run(const char *command)
{
	int status = system(command);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool device_has_interface(const char *name, size_t first)
{
	static const struct tree_gid two[] = {
		{{[0] = 0xfe, [1] = 0x80, [15] = 1}, "eth0"},
		{{[15] = 1}, "lo"},
	};
	const struct tree_facts f = {.device_count = 1, .gids = two + first, .gid_count = 2 - first};
	char dir[] = "/tmp/verbena-tree-XXXXXX", path[128];
	struct stat st;
	bool there;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(tree_render(dir, &f), 0);
	snprintf(path, sizeof(path), "%s/class/infiniband/verbena0/device/net/%s", dir, name);
	there = !stat(path, &st);
	snprintf(path, sizeof(path), "rm -r %s", dir);
	run(path);
	return there;
}

/* As NCCL does it. */
TEST(a_device_is_a_link_to_a_virtual_one)
{
	char dir[] = "/tmp/verbena-tree-XXXXXX", path[512], home[PATH_MAX], again[PATH_MAX], target[256];
	ssize_t len;
	size_t end;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(tree_render(dir, &facts), 0);
	snprintf(path, sizeof(path), "%s/class/infiniband/verbena1/device", dir);
	len = readlink(path, target, sizeof(target) - 1);
	assert_true(len > 0);
	target[len] = 0;
	assert_string_equal(target, "../../../devices/virtual/verbena/verbena1:00.0");
	assert_non_null(realpath(path, home));
	end = strlen(home);
	strcpy(again, home);
	again[end - 1] = again[end - 3] = again[end - 4] = '0';
	assert_string_equal(again, home);
	strcat(again, "/subsystem");
	assert_non_null(realpath(again, home));
	assert_string_equal(strrchr(home, '/'), "/verbena");
	snprintf(path, sizeof(path), "rm -r %s", dir);
	run(path);
}

TEST(loopback_is_the_devices_interface_only_if_there_is_no_other)
{
	assert_true(device_has_interface("eth0", 0));
	assert_false(device_has_interface("lo", 0));
	assert_true(device_has_interface("lo", 1));
}

TEST(rendering_can_be_repeated_and_files_end_with_a_newline)
{
	char dir[] = "/tmp/verbena-tree-XXXXXX", path[512], buf[128];
	struct stat st;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(tree_render(dir, &facts), 0);
	assert_int_equal(tree_render(dir, &facts), 0);
	for (int i = 0; i < EXPECTED_COUNT; i++) {
		FILE *f;
		size_t len;

		snprintf(path, sizeof(path), "%s/%s", dir, expected[i].path);
		f = fopen(path, "r");
		assert_non_null(f);
		len = fread(buf, 1, sizeof(buf), f);
		fclose(f);
		assert_int_equal(len, strlen(expected[i].text) + 1);
		assert_memory_equal(buf, expected[i].text, len - 1);
		assert_int_equal(buf[len - 1], '\n');
	}
	snprintf(path, sizeof(path), "%s/dev/infiniband/uverbs0", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	snprintf(path, sizeof(path), "%s/dev/infiniband/uverbs1", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	snprintf(path, sizeof(path), "%s/dev/infiniband/uverbs2", dir);
	assert_int_not_equal(stat(path, &st), 0);
	snprintf(path, sizeof(path), "%s/class/infiniband/verbena0/device/net/eth0", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	snprintf(path, sizeof(path), "rm -r %s", dir);
	run(path);
	assert_int_equal(tree_render(dir, &facts), -ENOENT);
}

static bool holds(const char *dir, const char *path, const char *text)
{
	char full[512], buf[128] = "";
	FILE *f;

	snprintf(full, sizeof(full), "%s/class/infiniband/verbena1/%s", dir, path);
	f = fopen(full, "r");
	if (!f)
		return !text;
	assert_non_null(fgets(buf, sizeof(buf), f));
	fclose(f);
	buf[strcspn(buf, "\n")] = 0;
	return text && !strcmp(buf, text);
}

TEST(a_later_rendering_changes_what_differs)
{
	static const struct tree_gid later[] = {{{0}, "eth0"}, {{[0] = 0xfd, [15] = 9}, "eth1"}};
	struct tree_facts f = facts;
	char dir[] = "/tmp/verbena-tree-XXXXXX", path[512];
	struct stat before, after;

	assert_non_null(mkdtemp(dir));
	f.port = (struct engine_port){.active = true, .enabled = true, .speed_bps = 10000000000};
	assert_int_equal(tree_render(dir, &f), 0);
	assert_true(holds(dir, "ports/1/state", "4: ACTIVE") && holds(dir, "ports/1/rate", "10 Gb/sec (1X FDR10)"));
	snprintf(path, sizeof(path), "%s/class/infiniband/verbena1/node_guid", dir);
	assert_int_equal(stat(path, &before), 0);

	f.device_first = 1;
	f.port = (struct engine_port){0};
	f.gids = later;
	assert_int_equal(tree_render(dir, &f), 0);
	assert_true(holds(dir, "ports/1/state", "1: DOWN") && holds(dir, "ports/1/phys_state", "3: Disabled"));
	assert_true(holds(dir, "ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000"));
	assert_true(holds(dir, "ports/1/gid_attrs/types/0", NULL) && holds(dir, "ports/1/gid_attrs/ndevs/0", NULL));
	assert_true(holds(dir, "ports/1/gid_attrs/ndevs/1", "eth1"));
	assert_true(holds(dir, "../verbena0/ports/1/state", "4: ACTIVE"));
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	snprintf(
		path, sizeof(path),
		"test \"$(ls %s/class/infiniband/verbena1/device/net)\" = eth1 && test -z \"$(ls %s | grep new)\" && rm -r %s",
		dir, dir, dir);
	run(path);
}

TEST(the_guid_is_stable_and_local)
{
	uint64_t guid = hostid_guid();

	assert_true(guid == hostid_guid());
	assert_int_equal(guid >> 56 & 3, 2);
}
