/* SPDX-License-Identifier: BSD-2-Clause */
/* An interface that reports no speed has none; one that does reports a sane one. */
#include "engine/link_speed.h"
#include "support/test.h"

#include <net/if.h>

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
