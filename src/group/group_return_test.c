/* SPDX-License-Identifier: BSD-2-Clause */
/* A member that leaves for a while: what others see of it, and that it returns as who it was. */
#include <poll.h>

#include "support/group_members.h"
#include "support/test.h"

static struct group *open_here(const struct group_config *cfg)
{
	char why[GROUP_WHY_BYTES];
	struct group *g;

	assert_int_equal(group_open(&g, cfg, why, sizeof(why)), 0);
	return g;
}

static void come_back(struct group *g, const struct group_config *cfg)
{
	char why[GROUP_WHY_BYTES] = "";
	struct group *again;
	int rc = group_return(g, cfg, true, &again, why, sizeof(why));

	if (rc)
		fprintf(stderr, "%s\n", why);
	assert_int_equal(rc, 0);
	group_replace(g, again, true);
}

static bool report_is_there(void)
{
	struct pollfd p = {.fd = reports[0], .events = POLLIN};

	return poll(&p, 1, 5) > 0;
}

GROUP_TEST(a_member_returns_to_its_slot_and_its_memory)
{
	struct group_config cfg = config();
	struct group *g;
	int fds[GROUP_LANES_MAX];

	cfg.shared_bytes = 4096;
	for (int others = 0; others < 2; others++) {
		g = open_here(&cfg);
		*(uint32_t *)group_shared(g) = 4711;
		for (int i = 0; i < 3; i++) {
			unsigned slot = group_slot(g);

			group_leave(g);
			assert_int_equal(group_rx_fds(g, fds, 1), 1);
			assert_int_equal(fds[0], -1);
			assert_true(group_lives(g, slot));
			come_back(g, &cfg);
			assert_int_equal(group_slot(g), slot);
			assert_int_equal(*(uint32_t *)group_shared(g), 4711);
			assert_true(group_rx_fds(g, fds, GROUP_LANES_MAX) >= 2 && fds[0] >= 0);
		}
		group_close(g);
		if (!others)
			member_start();
	}
}

GROUP_TEST(nobody_takes_the_slot_of_one_that_is_away_and_none_waits_for_it)
{
	struct group_config cfg = config();
	struct group *g = open_here(&cfg);
	struct report r;
	pid_t pid;

	assert_int_equal(group_slot(g), 0);
	group_leave(g);
	pid = member_fork(&cfg);
	while (!report_is_there())
		group_service(g);
	r = report_of(pid, JOIN_MS);
	assert_int_equal(r.kind, JOINED);
	assert_int_equal(r.slot, 1);
	members[member_count++] = (struct member){.pid = pid, .slot = r.slot};
	come_back(g, &cfg);
	assert_int_equal(group_slot(g), 0);
	group_close(g);
}

GROUP_TEST(a_slot_that_another_process_has_is_named)
{
	struct group_config cfg = config();
	char why[GROUP_WHY_BYTES] = "", pid[16];
	struct group *g;

	member_start();
	cfg.as = 1;
	snprintf(pid, sizeof(pid), "%d", members[0].pid);
	assert_int_equal(group_open(&g, &cfg, why, sizeof(why)), -EEXIST);
	assert_non_null(strstr(why, pid));
	cfg.as = 6;
	assert_int_equal(group_open(&g, &cfg, why, sizeof(why)), 0);
	assert_int_equal(group_slot(g), 5);
	group_close(g);
}
