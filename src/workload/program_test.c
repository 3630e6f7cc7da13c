/* SPDX-License-Identifier: BSD-2-Clause */
/* When a program is called back, with a network in which each message takes 10 and is acknowledged after 20. */
#include <errno.h>
#include <stdio.h>

#include "support/test.h"
#include "workload/workload.h"

enum { RANKS = 4, DELAY = 10 };

struct world {
	struct program *program;
	struct workload *workload;
	struct message flights[64]; /* start_ps: when it arrives, or is acknowledged (tag 1) */
	uint32_t count;
	uint64_t now_ps;
	char log[512];
};

static struct world w;

static void fly(void)
{
	struct message m;

	while (workload_released(w.workload, &m)) {
		assert_true(w.count + 2 <= 64 && m.src != m.dst && m.bytes);
		m.start_ps = w.now_ps + DELAY;
		m.tag = 0;
		w.flights[w.count++] = m;
		m.start_ps += DELAY;
		m.tag = 1;
		w.flights[w.count++] = m;
	}
}

static void go_on(void)
{
	for (;;) {
		uint64_t deadline = workload_deadline(w.workload);
		uint32_t first = 0;
		struct message m;

		for (uint32_t i = 1; i < w.count; i++)
			first = w.flights[i].start_ps < w.flights[first].start_ps ? i : first;
		if (w.count && w.flights[first].start_ps <= deadline) {
			m = w.flights[first];
			memmove(&w.flights[first], &w.flights[first + 1], (--w.count - first) * sizeof(m));
			w.now_ps = m.start_ps;
			if (m.tag)
				workload_sent(w.workload, &m, w.now_ps);
			else
				workload_received(w.workload, &m, w.now_ps);
		} else if (deadline != WORKLOAD_NEVER_PS) {
			w.now_ps = deadline > w.now_ps ? deadline : w.now_ps;
			workload_expire(w.workload, w.now_ps);
		} else {
			return;
		}
		fly();
	}
}

static void start(void)
{
	struct workload_params p = {.host_count = RANKS};
	struct text_error err = {0};

	memset(&w, 0, sizeof(w));
	w.program = program_create();
	w.workload = workload_create();
	p.program = w.program;
	if (workload_add(w.workload, "program", &p, &err))
		fail_msg("%s", err.message);
}

static void end(void)
{
	workload_free(w.workload);
	program_free(w.program);
}

/* "a@20 b@30 " */
static void note(void *name)
{
	size_t n = strlen(w.log);

	snprintf(w.log + n, sizeof(w.log) - n, "%s@%lu ", (const char *)name, w.now_ps);
}

TEST(callbacks_come_when_a_message_is_acknowledged_and_has_arrived)
{
	start();
	assert_int_equal(program_ranks(w.program), RANKS);
	assert_int_equal(program_send(w.program, 0, 1, 1000, 7, note, "sent"), 0);
	assert_int_equal(program_receive(w.program, 1, 0, 7, note, "received"), 0);
	assert_int_equal(program_send(w.program, 0, 1, 0, 8, NULL, NULL), 0);
	assert_int_equal(program_receive(w.program, 1, 0, 8, NULL, NULL), 0);
	assert_string_equal(w.log, "");
	go_on();
	assert_string_equal(w.log, "received@10 sent@20 ");
	assert_int_equal(program_waits(w.program, &(struct program_wait){0}), 0);
	end();
}

TEST(the_nth_receive_takes_the_nth_message_of_its_source_and_tag)
{
	struct program_wait first;

	start();
	program_receive(w.program, 1, 0, UINT64_C(1) << 40, note, "wide");
	program_receive(w.program, 1, 0, 5, note, "first");
	program_receive(w.program, 1, 0, 5, note, "second");
	program_receive(w.program, 1, 2, 5, note, "other");
	program_receive(w.program, 1, 3, 5, note, "never");
	program_send(w.program, 0, 1, 1, 5, NULL, NULL);
	go_on();
	assert_string_equal(w.log, "first@10 ");
	assert_int_equal(program_waits(w.program, &first), 4);
	assert_true(first.rank == 1 && first.from == 0 && first.tag == UINT64_C(1) << 40);
	program_send(w.program, 2, 1, 1, 5, NULL, NULL);
	program_send(w.program, 0, 1, 1, 5, NULL, NULL);
	program_send(w.program, 0, 1, 1, UINT64_C(1) << 40, NULL, NULL);
	go_on();
	assert_string_equal(w.log, "first@10 other@30 second@30 wide@30 ");
	assert_int_equal(program_waits(w.program, &first), 1);
	assert_true(first.rank == 1 && first.from == 3 && first.tag == 5);
	/* A message that nobody has asked for waits. */
	program_send(w.program, 3, 2, 1, 9, NULL, NULL);
	go_on();
	w.log[0] = 0;
	program_receive(w.program, 2, 3, 9, note, "late");
	assert_string_equal(w.log, "");
	go_on();
	assert_string_equal(w.log, "late@60 ");
	end();
}

TEST(a_message_to_itself_takes_no_time)
{
	start();
	program_send(w.program, 2, 2, 1000, 0, note, "sent");
	program_receive(w.program, 2, 2, 0, note, "received");
	assert_string_equal(w.log, "");
	go_on();
	assert_string_equal(w.log, "sent@0 received@0 ");
	end();
}

TEST(timers_come_in_order_of_time_and_then_of_the_calls)
{
	start();
	program_schedule(w.program, 300, note, "d");
	program_schedule(w.program, 100, note, "a");
	program_schedule(w.program, 200, note, "c");
	program_schedule(w.program, 100, note, "b");
	go_on();
	assert_string_equal(w.log, "a@100 b@100 c@200 d@300 ");
	end();
}

static void answer(void *context)
{
	note("question");
	program_send(w.program, 1, 0, 10, 2, note, "answered");
	program_receive(w.program, 1, 1, 3, note, "own");
	program_send(w.program, 1, 1, 10, 3, NULL, NULL);
	program_schedule(w.program, w.now_ps, note, "now");
}

TEST(what_callbacks_ask_for_begins_at_their_time)
{
	start();
	program_receive(w.program, 1, 0, 1, answer, NULL);
	program_receive(w.program, 0, 1, 2, note, "answer");
	program_send(w.program, 0, 1, 10, 1, NULL, NULL);
	go_on();
	assert_string_equal(w.log, "question@10 own@10 now@10 answer@20 answered@30 ");
	end();
}

static void stop(void *context)
{
	note("stop");
	program_stop(w.program, true);
}

TEST(once_stopped_it_is_not_called_until_it_goes_on)
{
	start();
	program_send(w.program, 0, 1, 1, 0, note, "sent");
	program_schedule(w.program, 5, stop, NULL);
	program_schedule(w.program, 5, note, "same time");
	go_on();
	assert_string_equal(w.log, "stop@5 ");
	assert_int_equal(w.now_ps, 20);
	program_stop(w.program, false);
	go_on();
	assert_string_equal(w.log, "stop@5 sent@20 same time@20 ");
	end();
}

TEST(wrong_ranks_and_sizes_are_refused)
{
	start();
	assert_int_equal(program_send(w.program, RANKS, 0, 1, 0, note, "x"), -ERANGE);
	assert_int_equal(program_send(w.program, 0, UINT32_MAX, 1, 0, note, "x"), -ERANGE);
	assert_int_equal(program_receive(w.program, RANKS, 0, 0, note, "x"), -ERANGE);
	assert_int_equal(program_receive(w.program, 0, RANKS, 0, note, "x"), -ERANGE);
	assert_int_equal(program_send(w.program, 0, 1, UINT64_C(1) << 60, 0, note, "x"), -EMSGSIZE);
	program_limit(w.program, 100);
	assert_int_equal(program_send(w.program, 0, 1, 101, 0, note, "x"), -EMSGSIZE);
	go_on();
	assert_string_equal(w.log, "");
	assert_int_equal(workload_add(w.workload, "program", &(struct workload_params){.host_count = 1},
				      &(struct text_error){0}),
			 -EINVAL);
	end();
}
