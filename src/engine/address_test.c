/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of interfaces, in a network namespace of the test's own. */
#include "engine/address.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "io/own_net.h"
#include "support/test.h"

static const uint8_t ours[16] = {[10] = 0xff, [11] = 0xff, 10, 9, 8, 7};
static const uint8_t near4[16] = {[10] = 0xff, [11] = 0xff, 10, 9, 8, 9};
static const uint8_t near6[16] = {0xfd, 9, [15] = 9};
static const uint8_t far4[16] = {[10] = 0xff, [11] = 0xff, 10, 9, 9, 9};

static int kernel;

static struct address at(const uint8_t gid[16], uint8_t prefix_len)
{
	struct address a = {.ifindex = 4711, .prefix_len = prefix_len};

	memcpy(a.gid, gid, sizeof(a.gid));
	return a;
}

TEST(an_address_is_found_where_it_is)
{
	struct address a;

	assert_true(address_find(kernel, ours, &a));
	assert_int_equal(a.prefix_len, 24);
	assert_memory_equal(a.gid, ours, 16);
	assert_false(address_find(kernel, near4, &a));
	assert_false(address_find(kernel, near6, &a));
}

TEST(an_address_is_added_to_the_interface_of_its_network_and_removed)
{
	static const uint8_t *const gids[] = {near4, near6};
	struct address a, there, found;

	assert_true(address_find(kernel, ours, &found));
	for (int i = 0; i < 2; i++) {
		a = at(gids[i], i ? 64 : 24);
		assert_int_equal(address_add(kernel, &a, &there), 0);
		assert_int_equal(there.ifindex, found.ifindex);
		assert_true(address_find(kernel, gids[i], &a));
		assert_int_equal(a.ifindex, found.ifindex);
		assert_true(address_add(kernel, &a, &there) < 0); /* it is here */
		address_announce(gids[i], a.ifindex);
		assert_int_equal(address_remove(kernel, &a), 0);
		assert_false(address_find(kernel, gids[i], &a));
		assert_int_equal(address_remove(kernel, &there), -EADDRNOTAVAIL);
	}
}

TEST(an_address_of_no_interface_s_network_is_refused)
{
	struct address a = at(far4, 24), there;

	assert_int_equal(address_add(kernel, &a, &there), -ENETUNREACH);
	own_net_run("ip route add default via 10.9.8.1");
	assert_int_equal(address_add(kernel, &a, &there), -ENETUNREACH);
}

__attribute__((constructor)) static void network_make(void)
{
	own_net_make();
	own_net_run(
		"ip link set lo up && ip link add v0 type veth peer name v1 && ip link set v1 up && ip link set v0 up");
	own_net_run("ip addr add 10.9.8.7/24 dev v0 && ip addr add fd09::1/64 dev v0 nodad");
}

static int setup(void **state)
{
	kernel = address_open();
	return kernel < 0;
}

static int teardown(void **state)
{
	close(kernel);
	return 0;
}

TEST_PROGRAM(setup, teardown)
