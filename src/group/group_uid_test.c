/* SPDX-License-Identifier: BSD-2-Clause */
/* In a user namespace all users that have no number there look like one: whose a socket is cannot be told by that
 * number. */

#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group/group_link.h"
#include "support/test.h"

enum { CERTAIN, NOT_CERTAIN, NO_NAMESPACE };

static uid_t overflow_uid(void)
{
	FILE *f = fopen("/proc/sys/kernel/overflowuid", "re");
	unsigned uid = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%u", &uid), 1);
	fclose(f);
	return uid;
}

/* What a child says of that user, in a namespace in which one user has a number. */
static int said_inside(uid_t uid)
{
	unsigned ours = geteuid();
	pid_t child = fork();
	int status;

	if (!child) {
		FILE *f = unshare(CLONE_NEWUSER) ? NULL : fopen("/proc/self/uid_map", "we");

		if (!f || fprintf(f, "0 %u 1", ours) < 0 || fclose(f))
			_exit(NO_NAMESPACE);
		_exit(link_uid_is_certain(uid) ? CERTAIN : NOT_CERTAIN);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(in_a_user_namespace_the_users_without_a_number_are_not_told_apart)
{
	int said = said_inside(overflow_uid());

	if (said == NO_NAMESPACE)
		skip();
	assert_int_equal(said, NOT_CERTAIN);
	assert_int_equal(said_inside(0), CERTAIN);
}
