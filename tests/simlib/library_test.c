/* SPDX-License-Identifier: BSD-2-Clause */
/* libverbena-sim by its public calls alone: times, ends, and what is refused. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <verbena/sim.h>

#include "support/test.h"

/* Two ranks with a wire between them and a switch: nothing but the bytes takes time. */
static const char net[] = "[topology]\nkind = star\nhosts = 4\n[link]\nrate = 100Gbps\ndelay = 500ns\n"
			  "[transport]\nprotocol = rocev2\nwindow = none\n[cc]\nalgorithm = none\n";
/* Of RoCEv2 with immediate data on Ethernet: what a first or only packet has besides payload; a byte takes 80 ps. */
enum { FRAME = 66 + 12 + 4 + 20, BYTE_PS = 80, DELAY_PS = 500000, PACKET = 4096 };

static char folder[] = "/tmp/simlib.XXXXXX";
static char why[4096];

static const char *path_of(const char *name)
{
	static _Thread_local char path[4096];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static const char *file(const char *name, const char *text)
{
	const char *path = path_of(name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

static struct verbena_sim *open_text(const char *text)
{
	struct verbena_sim *s = verbena_sim_open(file("net.ini", text), NULL, why, sizeof(why));

	if (!s)
		fail_msg("%s", why);
	return s;
}

static struct verbena_sim *sim;
static uint64_t called_ps[64];
static unsigned calls;

static void note(void *context)
{
	(void)context;
	called_ps[calls++ % 64] = verbena_sim_now(sim);
}

static void fresh(const char *text)
{
	calls = 0;
	sim = open_text(text);
}

TEST(a_message_takes_what_its_bytes_take)
{
	fresh(net);
	assert_int_equal(verbena_sim_ranks(sim), 4);
	assert_int_equal(verbena_sim_now(sim), 0);
	assert_int_equal(verbena_sim_receive(sim, 1, 0, 1, note, NULL), 0);
	assert_int_equal(verbena_sim_send(sim, 0, 1, PACKET, 1, note, NULL), 0);
	assert_int_equal(calls, 0);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_DONE);
	assert_string_equal(verbena_sim_why(sim), "");
	assert_int_equal(calls, 2);
	assert_int_equal(called_ps[0], 2 * (DELAY_PS + (PACKET + FRAME) * BYTE_PS));
	/* The acknowledgement has BTH, AETH and ICRC. */
	assert_int_equal(called_ps[1], called_ps[0] + 2 * (DELAY_PS + (66 + 12 + 4 + 4) * BYTE_PS));
	assert_int_equal(verbena_sim_now(sim), called_ps[1]);
	/* And once more, on the same queue pair, from now on. */
	verbena_sim_receive(sim, 1, 0, 1, note, NULL);
	verbena_sim_send(sim, 0, 1, PACKET, 1, NULL, NULL);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_DONE);
	assert_int_equal(called_ps[2] - called_ps[1], called_ps[0]);
	verbena_sim_close(sim);
}

TEST(timers_and_ends_of_runs)
{
	fresh(net);
	verbena_sim_schedule(sim, 3000, note, NULL);
	verbena_sim_schedule(sim, 1000, note, NULL);
	assert_int_equal(verbena_sim_run(sim, 1000), VERBENA_SIM_UNTIL);
	assert_int_equal(calls, 1);
	assert_int_equal(called_ps[0], 1000);
	assert_int_equal(verbena_sim_run(sim, 2000), VERBENA_SIM_UNTIL);
	assert_int_equal(verbena_sim_now(sim), 2000);
	verbena_sim_schedule(sim, 0, note, NULL);
	assert_int_equal(verbena_sim_run(sim, 500), VERBENA_SIM_UNTIL); /* which is over */
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_DONE);
	assert_int_equal(calls, 3);
	assert_int_equal(called_ps[1], 2000);
	assert_int_equal(called_ps[2], 3000);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_DONE);
	verbena_sim_close(sim);
}

static void stop(void *context)
{
	note(context);
	verbena_sim_stop(sim);
}

TEST(what_a_stop_leaves_comes_in_the_next_run)
{
	fresh(net);
	verbena_sim_schedule(sim, 5000, stop, NULL);
	verbena_sim_schedule(sim, 5000, note, NULL);
	verbena_sim_send(sim, 0, 1, 100000, 0, note, NULL);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_STOPPED);
	assert_int_equal(calls, 1);
	assert_int_equal(verbena_sim_now(sim), 5000);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_DONE);
	assert_int_equal(calls, 3);
	assert_int_equal(called_ps[1], 5000);
	verbena_sim_close(sim);
}

static int inner;

static void again(void *context)
{
	(void)context;
	inner = verbena_sim_run(sim, VERBENA_SIM_NEVER);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(verbena_sim_report(sim, folder), -1);
	assert_int_equal(errno, EBUSY);
}

static void shut(void *context)
{
	note(context);
	verbena_sim_close(sim);
	assert_int_equal(verbena_sim_now(sim), 1000); /* it is there until this returns */
}

TEST(a_callback_may_close_but_not_run)
{
	fresh(net);
	verbena_sim_schedule(sim, 10, again, NULL);
	verbena_sim_schedule(sim, 1000, shut, NULL);
	verbena_sim_schedule(sim, 1000, note, NULL);
	verbena_sim_send(sim, 0, 1, 1 << 20, 0, note, NULL);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_CLOSED);
	assert_int_equal(inner, -1);
	assert_int_equal(calls, 1);
	/* With messages under way, between two runs. */
	fresh(net);
	verbena_sim_send(sim, 0, 1, 1 << 20, 0, note, NULL);
	assert_int_equal(verbena_sim_run(sim, 1000000), VERBENA_SIM_UNTIL);
	verbena_sim_close(sim);
	assert_int_equal(calls, 0);
	verbena_sim_close(NULL);
}

TEST(wrong_ranks_sizes_and_times_are_refused_with_a_sentence)
{
	fresh(net);
	assert_int_equal(verbena_sim_send(sim, 0, 4, 1, 0, note, NULL), -1);
	assert_int_equal(errno, ERANGE);
	assert_string_equal(verbena_sim_why(sim), "send: there is no rank 4, only 0 to 3");
	assert_int_equal(verbena_sim_send(sim, UINT32_MAX, 0, 1, 0, note, NULL), -1);
	assert_int_equal(verbena_sim_receive(sim, 0, 9, 0, note, NULL), -1);
	assert_string_equal(verbena_sim_why(sim), "receive: there is no rank 9, only 0 to 3");
	assert_int_equal(verbena_sim_send(sim, 0, 1, UINT64_C(1) << 60, 0, note, NULL), -1);
	assert_int_equal(errno, EMSGSIZE);
	assert_string_equal(verbena_sim_why(sim), "send: 1152921504606846976 bytes; allowed are 0 to 17592186044416");
	assert_int_equal(verbena_sim_schedule(sim, UINT64_MAX, note, NULL), -1);
	assert_int_equal(errno, ERANGE);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_DONE);
	/* The longest message begins, and the simulation can be closed in the middle of it. */
	assert_int_equal(verbena_sim_send(sim, 0, 1, VERBENA_SIM_BYTES_MAX, 0, note, NULL), 0);
	assert_int_equal(verbena_sim_send(sim, 2, 1, 0, 0, note, NULL), 0);
	assert_int_equal(verbena_sim_run(sim, 20000000), VERBENA_SIM_UNTIL);
	assert_int_equal(calls, 1);
	verbena_sim_close(sim);
	sim = open_text("[topology]\nkind = star\nhosts = 2\n[transport]\nprotocol = sdr\n[cc]\nalgorithm = none\n");
	assert_int_equal(verbena_sim_send(sim, 0, 1, (UINT64_C(1) << 30) + 1, 0, note, NULL), -1);
	assert_int_equal(errno, EMSGSIZE);
	assert_int_equal(verbena_sim_send(sim, 0, 1, 10000000, 0, note, NULL), 0);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_DONE);
	assert_int_equal(calls, 2);
	verbena_sim_close(sim);
}

TEST(what_cannot_go_on_says_why)
{
	fresh(net);
	verbena_sim_receive(sim, 2, 3, 7, note, NULL);
	verbena_sim_receive(sim, 2, 1, 7, note, NULL);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_STUCK);
	assert_string_equal(verbena_sim_why(sim),
			    "2 receives wait for messages that nobody sends, the oldest is rank 2 from 3 tag 7");
	/* It can be helped. */
	verbena_sim_send(sim, 3, 2, 1, 7, NULL, NULL);
	verbena_sim_send(sim, 1, 2, 1, 7, NULL, NULL);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_DONE);
	assert_int_equal(calls, 2);
	verbena_sim_close(sim);
	/* The way of rank 0 is cut for ever. */
	snprintf(why, sizeof(why), "%s[failure.cut]\nlink = 0-4\ntime = 1us\n", net);
	fresh(why);
	verbena_sim_send(sim, 0, 1, 1 << 20, 0, note, NULL);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_STUCK);
	assert_non_null(strstr(verbena_sim_why(sim), "queue pairs broke"));
	assert_int_equal(calls, 0);
	verbena_sim_close(sim);
}

static void refused(const char *scenario, const char *const *settings, const char *wanted)
{
	char cut[8] = "";

	errno = 0;
	assert_null(verbena_sim_open(scenario, settings, why, sizeof(why)));
	assert_int_equal(errno, EINVAL);
	if (!strstr(why, wanted))
		fail_msg("not '%s': %s", wanted, why);
	assert_null(verbena_sim_open(scenario, settings, cut, sizeof(cut)));
	assert_int_equal(strlen(cut), sizeof(cut) - 1);
	assert_null(verbena_sim_open(scenario, settings, NULL, 0));
}

TEST(a_wrong_scenario_is_refused_by_file_line_and_key)
{
	const char *const wrong[] = {"link.rate=fast", NULL}, *const unknown[] = {"x.y=1", NULL};
	const char *const other[] = {"run.only=a", NULL};

	refused("no-such-scenario", NULL, "no-such-scenario: there is no such file, and no scenario of that name");
	refused(folder, NULL, "Is a directory");
	refused(NULL, NULL, "a scenario is needed");
	refused("", NULL, "a scenario is needed");
	refused(file("wrong.ini", "[link]\nrate = 100Gbps\nspeed = 3\n"), NULL, "wrong.ini:3: link.speed: ");
	refused(file("wrong.ini", "\n[link]\nrate = much\n"), NULL, "wrong.ini:3: link.rate: ");
	refused(file("net.ini", net), wrong, "link.rate: ");
	refused(file("net.ini", net), unknown, "there is no such section");
	refused(file("two.ini", "[workload.a]\nkind = program\n[workload.b]\nkind = program\n"), NULL,
		"two.ini:3: workload.b.kind: there is one program at most");
	refused(file("far.ini", "[workload.a]\nkind = program\nhosts = 0-99\n"), NULL, "workload.a.hosts");
	refused(file("none.ini", "[workload.a]\nkind = incast\n[run]\nonly = a\n"), other,
		"run.only: the workload of kind = program");
	refused(file("size.ini", "[workload.a]\nkind = program\nsize = 3\n"), NULL, "size.ini:3: workload.a.size: ");
}

TEST(ranks_are_the_hosts_that_the_scenario_names_and_other_workloads_run_beside_them)
{
	const char *const program[] = {"workload.other.kind=program", "workload.other.hosts=1-3", NULL};
	char text[1024];
	uint64_t alone_ps;

	snprintf(text, sizeof(text), "%s[workload.p]\nkind = program\nhosts = 2,0\n", net);
	fresh(text);
	assert_int_equal(verbena_sim_ranks(sim), 2);
	verbena_sim_send(sim, 0, 1, 1000000, 0, note, NULL);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_DONE);
	alone_ps = called_ps[0];
	verbena_sim_close(sim);
	file("ranks.txt", "3\n1\n2\n");
	snprintf(text, sizeof(text), "%s[workload.p]\nkind = program\nplace = ./ranks.txt\n", net);
	fresh(text);
	assert_int_equal(verbena_sim_ranks(sim), 3);
	verbena_sim_close(sim);
	/* Host 2 sends to host 0, as rank 0 does. */
	snprintf(text, sizeof(text), "%s[workload.p]\nkind = program\nhosts = 2,0\n", net);
	strcat(text, "[workload.other]\nkind = flow\nsenders = 2\nreceivers = 0\nsize = 1MB\n");
	fresh(text);
	verbena_sim_send(sim, 0, 1, 1000000, 0, note, NULL);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_DONE);
	assert_true(called_ps[0] > alone_ps * 3 / 2);
	verbena_sim_close(sim);
	/* Settings make another workload the program. */
	snprintf(text, sizeof(text), "%s[workload.other]\nkind = flow\n", net);
	file("net.ini", text);
	sim = verbena_sim_open(path_of("net.ini"), program, why, sizeof(why));
	assert_int_equal(verbena_sim_ranks(sim), 3);
	verbena_sim_close(sim);
	/* Without a program of its own, the scenario is a network alone. */
	snprintf(text, sizeof(text), "%s[workload.other]\nkind = flow\nsenders = 2\nreceivers = 0\nsize = 1MB\n", net);
	fresh(text);
	assert_int_equal(verbena_sim_ranks(sim), 4);
	verbena_sim_send(sim, 2, 0, 1000000, 0, note, NULL);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_DONE);
	assert_int_equal(called_ps[0], alone_ps);
	verbena_sim_close(sim);
}

TEST(ranks_of_a_node_have_the_link_inside)
{
	fresh("[topology]\nkind = leaf-spine\nhosts = 2\nnics = 2\ninside_rate = 1Tbps\ninside_delay = 100ns\n");
	verbena_sim_receive(sim, 1, 0, 0, note, NULL);
	verbena_sim_send(sim, 0, 1, 100000, 0, NULL, NULL);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_DONE);
	assert_int_equal(called_ps[0], 100000 * 8 + 100000);
	verbena_sim_close(sim);
}

TEST(the_report_ends_the_simulation)
{
	char report[64];

	fresh(net);
	verbena_sim_send(sim, 0, 1, 1000, 0, note, NULL);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), VERBENA_SIM_DONE);
	assert_int_equal(verbena_sim_report(sim, ""), -1);
	assert_int_equal(errno, EINVAL);
	snprintf(report, sizeof(report), "%s/report", folder);
	assert_int_equal(verbena_sim_report(sim, report), 0);
	assert_int_equal(access(path_of("report/flows.csv"), R_OK), 0);
	assert_int_equal(access(path_of("report/summary.json"), R_OK), 0);
	assert_int_equal(access(path_of("report/INCOMPLETE"), F_OK), -1);
	assert_int_equal(verbena_sim_report(sim, report), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(verbena_sim_run(sim, VERBENA_SIM_NEVER), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(verbena_sim_now(sim), called_ps[0]);
	verbena_sim_close(sim);
	/* A file is where the folder should be; messages are under way. */
	fresh(net);
	verbena_sim_send(sim, 0, 1, 1 << 20, 0, note, NULL);
	verbena_sim_run(sim, 1000000);
	assert_int_equal(verbena_sim_report(sim, path_of("net.ini")), -1);
	assert_int_equal(errno, EIO);
	assert_non_null(strstr(verbena_sim_why(sim), "net.ini"));
	verbena_sim_close(sim);
}

static void reply(void *context)
{
	uint64_t *left = ((uint64_t **)context)[1];
	struct verbena_sim *s = ((struct verbena_sim **)context)[0];

	if (!--*left)
		return;
	verbena_sim_receive(s, *left % 2, (*left + 1) % 2, 0, reply, context);
	verbena_sim_send(s, (*left + 1) % 2, *left % 2, 4096, 0, NULL, NULL);
}

/* A ping-pong; its end. */
static void *ping_pong(void *end_ps)
{
	uint64_t left = 200;
	void *context[2] = {verbena_sim_open(path_of("net.ini"), NULL, NULL, 0), &left};

	if (!context[0])
		return NULL;
	verbena_sim_schedule(context[0], 0, reply, context);
	verbena_sim_run(context[0], VERBENA_SIM_NEVER);
	*(uint64_t *)end_ps = verbena_sim_now(context[0]);
	verbena_sim_close(context[0]);
	return NULL;
}

TEST(simulations_in_threads_do_not_see_each_other)
{
	uint64_t alone_ps = 0, end_ps[4] = {0};
	pthread_t threads[4];

	file("net.ini", net);
	ping_pong(&alone_ps);
	assert_true(alone_ps > 198 * 2 * DELAY_PS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ping_pong, &end_ps[i]), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(end_ps[i], alone_ps);
	}
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

TEST_PROGRAM(set_up, tear_down)
