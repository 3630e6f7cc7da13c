/* SPDX-License-Identifier: BSD-2-Clause */
/* A running engine whose map is a file that changes. Its only address is 127.0.0.1, in an environment of virtual time. */
#include "engine/map_file.h"
#include "support/engine_ends.h"
#include "support/virtual_env.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STUCK_S = 600, CHANGES = 300 };

static char path[64] = "/tmp/verbena-map-XXXXXX", next[80];

/* As an administrator should, by a file that takes the place of the other. */
static void write_map(const char *text)
{
	FILE *f = fopen(next, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rename(next, path), 0);
	engine_lock(engine);
	engine_follow_map(engine);
	engine_unlock(engine);
}

static void ipv4(uint8_t gid[16], const char *text)
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	assert_int_equal(inet_pton(AF_INET, text, gid + 12), 1);
}

static void assert_name(const char *text)
{
	struct nic_gid gid;
	uint8_t name[16];

	ipv4(name, text);
	engine_lock(engine);
	assert_int_equal(nic_gid(nic, 0, &gid), 0);
	assert_memory_equal(gid.raw, name, sizeof(name));
	assert_int_equal(gid.ifindex, 1);
	engine_unlock(engine);
}

/* NULL: the map lacks it. */
static void assert_at(const char *name, const char *address)
{
	uint8_t gid[16], expected[16];

	ipv4(gid, name);
	assert_int_equal(engine_hide_address(engine, gid), address != NULL);
	ipv4(expected, address ? address : name);
	assert_memory_equal(gid, expected, sizeof(gid));
	if (address && strcmp(address, name)) {
		assert_true(engine_show_address(engine, gid));
		ipv4(expected, name);
		assert_memory_equal(gid, expected, sizeof(gid));
	}
}

TEST(the_device_and_its_peers_have_names)
{
	assert_name("127.0.0.9");
	assert_at("127.0.0.9", "127.0.0.1");
	assert_at("10.0.0.2", "192.0.2.2");
	assert_at("192.0.2.2", NULL);
	/* What means the same everywhere. */
	assert_at("0.0.0.0", "0.0.0.0");
	assert_at("239.1.2.3", "239.1.2.3");
	assert_at("127.0.0.5", "127.0.0.5");
}

TEST(a_map_that_has_changed_is_read_again)
{
	struct nic_gid gid;
	struct pair p;

	pair_open(&p);
	write_map("127.0.0.8 127.0.0.1\n10.0.0.2 192.0.2.3\n");
	assert_name("127.0.0.8");
	assert_at("10.0.0.2", "192.0.2.3");
	pair_close(&p);
	/* Its own address has no name: it is about to move, perhaps. */
	write_map("127.0.0.8 192.0.2.7\n");
	assert_at("10.0.0.2", NULL);
	engine_lock(engine);
	assert_int_equal(nic_gid(nic, 0, &gid), 0);
	assert_int_equal(gid.ifindex, 0);
	engine_unlock(engine);
	write_map("127.0.0.9 127.0.0.1\n");
	assert_name("127.0.0.9");
}

TEST(a_map_that_is_wrong_or_gone_changes_nothing)
{
	static const char *const wrong[] = {"", "127.0.0.8\n", "127.0.0.8 127.0.0.1\n127.0.0.7 127.0.0.1\n"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		write_map(wrong[i]);
		assert_name("127.0.0.9");
	}
	assert_int_equal(unlink(path), 0);
	engine_lock(engine);
	engine_follow_map(engine);
	engine_unlock(engine);
	assert_name("127.0.0.9");
	write_map("127.0.0.8 127.0.0.1\n");
	assert_name("127.0.0.8");
}

TEST(an_address_keeps_its_last_name_for_those_who_had_it)
{
	char text[80];

	for (int i = 1; i <= CHANGES; i++) {
		snprintf(text, sizeof(text), "127.0.0.9 127.0.0.1\n10.0.0.2 192.0.%d.%d\n", i / 200, i % 200 + 1);
		write_map(text);
	}
	for (int i = 1; i <= CHANGES; i++) {
		uint8_t gid[16], name[16];

		snprintf(text, sizeof(text), "192.0.%d.%d", i / 200, i % 200 + 1);
		ipv4(gid, text);
		ipv4(name, "10.0.0.2");
		assert_memory_equal(gid_map_last_vgid(map_of(engine->loop.map), gid), name, sizeof(name));
		assert_int_equal(gid_map_vgid(map_of(engine->loop.map), gid) != NULL, i == CHANGES);
	}
}

static int start(void **state)
{
	int fd = mkstemp(path);
	static const char text[] = "127.0.0.9 127.0.0.1\n10.0.0.2 192.0.2.2\n";
	bool written = fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1;

	close(fd);
	if (!written)
		return -1;
	snprintf(next, sizeof(next), "%s.next", path);
	setenv("VERBENA_MAP", path, 1);
	alarm(STUCK_S); /* two threads that wait for each other wait for ever */
	engine_set_env(virtual_env);
	return engine_ends_start();
}

static int stop(void **state)
{
	return unlink(path);
}

TEST_PROGRAM(start, stop)
