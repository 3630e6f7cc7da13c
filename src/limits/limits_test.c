/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that share a device's limits, by real files and locks. */
#include "limits/limits.h"
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct limits_config four = {.quota = {[LIMIT_QPS] = 4}};

static const char *name_of(char name[LIMITS_NAME_BYTES], unsigned i)
{
	snprintf(name, LIMITS_NAME_BYTES, "test-%d-%u", (int)getpid(), i);
	return name;
}

static struct limits *joined(const char *device, const struct limits_config *c)
{
	struct limits *l = NULL;
	char why[512] = "";

	if (limits_join(&l, device, c, 0, 0, why, sizeof(why)))
		fail_msg("%s", why);
	return l;
}

static bool takes(struct limits *l, uint64_t qps)
{
	enum limit over;

	return limits_take(l, (uint64_t[LIMITS]){[LIMIT_QPS] = qps}, &over);
}

TEST(quotas_are_read)
{
	static const struct {
		const char *text, *told;
	} bad[] = {
		{"qps=0", "'qps=0': allowed is a whole number from 1"},
		{"qps=", "'qps=': allowed"},
		{"qps=1x", "'qps=1x': allowed"},
		{"qps", "'qps': allowed are qps=N, cqs=N, mrs=N, mr_bytes=N and hca_object=N"},
		{"sqs=1", "'sqs=1': allowed are qps=N"},
		{"qps=1,qps=2", "'qps' is there twice"},
		{"qps=1,", "missing behind the last comma"},
		{",qps=1", "'': allowed are"},
	};
	uint64_t q[LIMITS] = {0};
	char why[256];

	assert_true(
		limits_parse_quota(q, "qps=1024, cqs=2048,mrs=4K, mr_bytes=4G , hca_object=20000", why, sizeof(why)));
	assert_int_equal(q[LIMIT_QPS], 1024);
	assert_int_equal(q[LIMIT_CQS], 2048);
	assert_int_equal(q[LIMIT_MRS], 4096);
	assert_int_equal(q[LIMIT_MR_BYTES], UINT64_C(4) << 30);
	assert_int_equal(q[LIMIT_HCA_OBJECT], 20000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(limits_parse_quota(q, bad[i].text, why, sizeof(why)));
		if (!strstr(why, bad[i].told))
			fail_msg("%s: told '%s'", bad[i].text, why);
	}
	assert_int_equal(q[LIMIT_QPS], 1024);
	assert_true(limits_parse_quota(q, "", why, sizeof(why)));
	assert_int_equal(q[LIMIT_QPS], 0);
}

TEST(places_of_a_device_share_and_others_do_not)
{
	char name[LIMITS_NAME_BYTES], other[LIMITS_NAME_BYTES];
	struct limits *a = joined(name_of(name, 0), &four), *b = joined(name, &four),
		      *c = joined(name_of(other, 1), &four);
	struct limits_report r;

	assert_true(takes(a, 3));
	assert_false(takes(b, 2));
	assert_true(takes(b, 1));
	assert_true(takes(c, 4));
	assert_true(limits_look(name, &r));
	assert_int_equal(r.used[LIMIT_QPS], 4);
	assert_int_equal(r.processes, 2);
	limits_leave(a);
	assert_true(takes(b, 4));
	limits_leave(b);
	assert_false(limits_look(name, &r));
	limits_leave(c);
}

TEST(a_device_has_one_set_of_limits)
{
	static const struct limits_config five = {.quota = {[LIMIT_QPS] = 5}, .rate_bps = 2000000000, .weight = 2};
	char name[LIMITS_NAME_BYTES], why[512] = "";
	struct limits *a = joined(name_of(name, 0), &four), *b = NULL;

	assert_int_equal(limits_join(&b, name, &five, 0, 0, why, sizeof(why)), -EBUSY);
	assert_non_null(strstr(why, "with the limits 'qps=4', and this one has 'rate 2Gbps weight 2 qps=5'"));
	limits_leave(a);
	b = joined(name, &five);
	limits_leave(b);
}

TEST(what_the_killed_counted_is_given_back)
{
	char name[LIMITS_NAME_BYTES];
	struct limits *a = joined(name_of(name, 0), &four);

	assert_true(takes(a, 1));
	for (int i = 0; i < 50; i++) {
		int fds[2], status;
		char byte;
		pid_t pid;

		assert_int_equal(pipe(fds), 0);
		pid = fork();
		if (!pid) {
			struct limits *child = joined(name, &four);

			limits_forget(a);
			byte = (char)takes(child, 3);
			if (write(fds[1], &byte, 1) != 1)
				_exit(1);
			kill(getpid(), SIGKILL);
		}
		assert_int_equal(read(fds[0], &byte, 1), 1);
		assert_int_equal(byte, 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		close(fds[0]);
		close(fds[1]);
	}
	/* The last one's are given back to who needs them. */
	assert_true(takes(a, 4));
	limits_leave(a);
}

TEST(there_are_so_many_places_and_rows)
{
	struct limits *all[LIMITS_PROCESSES_MAX], *more = NULL, *rows[LIMITS_DEVICES_MAX];
	char name[LIMITS_NAME_BYTES], why[512] = "";
	unsigned n = 0;

	for (unsigned i = 0; i < LIMITS_PROCESSES_MAX; i++)
		all[i] = joined(name_of(name, 0), &four);
	assert_int_equal(limits_join(&more, name, &four, 0, 0, why, sizeof(why)), -ENOSPC);
	assert_non_null(strstr(why, "128 processes use the device"));
	for (unsigned i = 0; i < LIMITS_PROCESSES_MAX; i++)
		limits_leave(all[i]);
	while (n < LIMITS_DEVICES_MAX && !limits_join(&rows[n], name_of(name, n), &four, 0, 0, why, sizeof(why)))
		n++;
	assert_int_equal(limits_join(&more, name_of(name, n), &four, 0, 0, why, sizeof(why)), -ENOSPC);
	/* A row whose processes are gone is anybody's. */
	limits_leave(rows[3]);
	more = joined(name_of(name, n), &four);
	limits_leave(more);
	for (unsigned i = 0; i < n; i++)
		if (i != 3)
			limits_leave(rows[i]);
}

TEST(weights_need_no_rate_and_rates_pace)
{
	static const struct limits_config paced = {.rate_bps = 1000000000};
	char name[LIMITS_NAME_BYTES];
	struct limits *a = joined(name_of(name, 0), &paced), *b = joined(name_of(name, 1), &four);
	const uint64_t now = UINT64_C(1) << 60;

	assert_true(limits_pace(a));
	assert_false(limits_pace(b));
	assert_true(limits_due_ns(a, now) <= now);
	limits_send(a, 10000000, now);
	assert_true(limits_due_ns(a, now) > now + 70000000);
	limits_leave(a);
	limits_leave(b);
}
