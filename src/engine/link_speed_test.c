/* SPDX-License-Identifier: BSD-2-Clause */
/* An interface that reports no speed has none; one that does reports a sane one. */
#include "engine/link_speed.h"
#include "support/test.h"

#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(loopback_has_no_speed)
{
	assert_int_equal(link_speed_bps("lo"), 0);
}

TEST(what_is_no_interface_has_no_speed)
{
	assert_int_equal(link_speed_bps(""), 0);
	assert_int_equal(link_speed_bps("nosuch9"), 0);
	assert_int_equal(link_speed_bps("a name that is longer than any"), 0);
}

TEST(any_speed_is_in_whole_megabits)
{
	struct if_nameindex *all = if_nameindex();

	assert_non_null(all);
	for (size_t i = 0; all[i].if_index; i++)
		assert_int_equal(link_speed_bps(all[i].if_name) % 1000000, 0);
	if_freenameindex(all);
}

/* In a network namespace of its own, so that it needs no privilege; 0: there can be none. */
static int made_up_of_veth(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) || system("ip link add veth0 type veth peer name veth1"))
		return 0;
	return link_speed_is_made_up("veth0") ? 1 : 2;
}

TEST(veth_makes_its_speed_up)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(made_up_of_veth());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		skip();
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_false(link_speed_is_made_up("lo"));
	assert_false(link_speed_is_made_up("a name that is longer than any"));
}
