/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who runs when, and how a run ends (tools/sim_turns.h). The programs are this one: `verbena run`, as which it is started
 * anew, is a part that it plays.
 */
#include "sim_turns.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "sim.h"
#include "support/test.h"

enum { PROGRAMS_MAX = 3, ALARM_S = 60, WRONG = 9, SLOW_US = 200000, PATIENT_S = 60 };

bool sim_interrupted(void)
{
	return false;
}

/* ---- the parts ---- */

static struct {
	int fd;
	const struct lockstep_page *page;
	struct lockstep_message got;
} part;

static void say(enum lockstep_kind kind, uint64_t value)
{
	struct lockstep_head head = {.kind = kind, .value = value};

	if (lockstep_send(part.fd, &head, NULL))
		exit(WRONG);
}

static enum lockstep_kind next(void)
{
	return lockstep_receive(part.fd, &part.got, true) == 1 ? part.got.head.kind : 0;
}

static void expect(bool holds)
{
	if (!holds)
		exit(WRONG);
}

static uint64_t after_ns(void)
{
	return part.page->now_ns - LOCKSTEP_START_NS;
}

static void join(void)
{
	say(LOCKSTEP_JOIN, 1);
	expect(next() == LOCKSTEP_WELCOME);
}

static void wait_until(uint64_t ns)
{
	say(LOCKSTEP_WAIT, LOCKSTEP_START_NS + ns);
	expect(next() == LOCKSTEP_RUN);
}

static void send_to(uint32_t host, uint8_t byte)
{
	uint8_t bytes[4096] = {[1] = byte};
	struct lockstep_head head = {.kind = LOCKSTEP_PACKET, .bytes = sizeof(bytes), .flow.dport = 9};

	lockstep_address(host, head.flow.dst);
	expect(!lockstep_send(part.fd, &head, bytes));
}

static void play_ticks(void)
{
	join();
	for (uint64_t ns = 1000; ns < 10000; ns += 1000) {
		wait_until(ns);
		expect(after_ns() == ns);
	}
}

static void play_slow(void)
{
	join();
	for (uint64_t ns = 2500; ns <= 7500; ns += 5000) {
		wait_until(ns);
		expect(after_ns() == ns);
		usleep(SLOW_US);
		expect(after_ns() == ns);
	}
}

static void play_first(void)
{
	join();
	usleep(SLOW_US);
	send_to(2, 1);
}

static void play_second(void)
{
	join();
	send_to(2, 2);
}

/* Exits with which of the two came first. */
static void play_receiver(void)
{
	join();
	say(LOCKSTEP_WAIT, UINT64_MAX);
	expect(next() == LOCKSTEP_PACKET);
	exit(part.got.bytes[1]);
}

static void play_dead(void)
{
	signal(SIGSEGV, SIG_DFL); /* a sanitizer has another one */
	raise(SIGSEGV);
}

static void play_endless(void)
{
	join();
	for (;;)
		pause();
}

static void play_flooding(void)
{
	join();
	for (;;)
		send_to(1, 0);
}

static void play_forward(void)
{
	say(LOCKSTEP_WAIT, UINT64_MAX);
	next();
}

static void play_twice(void)
{
	join();
	say(LOCKSTEP_JOIN, 1);
	next();
}

static void play_waiting(void)
{
	join();
	wait_until(UINT64_MAX - LOCKSTEP_START_NS);
}

/* Neither a member of the program's group, nor its child any more. */
static void play_parent(void)
{
	if (!fork()) {
		setpgid(0, 0);
		alarm(ALARM_S);
		pause();
		exit(0);
	}
}

/* Its child goes on with the device. */
static void play_leaving(void)
{
	join();
	if (!fork()) {
		usleep(SLOW_US);
		wait_until(1000);
		for (;;)
			pause();
	}
}

static void play_stopped(void)
{
	join();
	raise(SIGSTOP);
}

static int make_socket(enum lockstep_socket kind, struct lockstep_end own, struct lockstep_end peer)
{
	struct sockaddr_un a;
	socklen_t bytes = lockstep_name(&a, part.page->run, kind, own, peer);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	expect(fd >= 0 && !bind(fd, (struct sockaddr *)&a, bytes));
	return fd;
}

/* When the byte arrives, by the page. */
static uint64_t arrival_ns(int fd, char byte)
{
	char got = 0;

	while (recv(fd, &got, 1, 0) < 0)
		wait_until(UINT64_MAX - LOCKSTEP_START_NS);
	expect(got == byte);
	return after_ns();
}

/* A call, its answer and a byte take as long each; the end as well. */
static void play_listener(void)
{
	int fd, call;
	char got;

	join();
	fd = make_socket(LOCKSTEP_LISTENER, (struct lockstep_end){0, 99}, (struct lockstep_end){0});
	expect(!listen(fd, 1));
	while ((call = accept(fd, NULL, NULL)) < 0)
		wait_until(UINT64_MAX - LOCKSTEP_START_NS);
	expect(after_ns() == 50000);
	fcntl(call, F_SETFL, O_NONBLOCK);
	expect(arrival_ns(call, 'x') == 150000);
	while (recv(call, &got, 1, 0) < 0)
		wait_until(UINT64_MAX - LOCKSTEP_START_NS);
	expect(after_ns() == 150000 + 50000);
}

static void play_caller(void)
{
	struct lockstep_end none = {0};
	struct sockaddr_un a;
	socklen_t bytes;
	int fd;

	join();
	bytes = lockstep_name(&a, part.page->run, LOCKSTEP_SWITCH, none, none);
	fd = make_socket(LOCKSTEP_CLIENT, (struct lockstep_end){1, 98}, (struct lockstep_end){0, 99});
	expect(!connect(fd, (struct sockaddr *)&a, bytes));
	expect(arrival_ns(fd, LOCKSTEP_ACCEPTED) == 100000);
	expect(send(fd, "x", 1, 0) == 1);
	wait_until(150000);
	while (after_ns() < 150000)
		wait_until(150000);
}

/* Nobody listens there. */
static void play_stranger(void)
{
	struct lockstep_end none = {0};
	struct sockaddr_un a;
	socklen_t bytes;
	int fd;

	join();
	bytes = lockstep_name(&a, part.page->run, LOCKSTEP_SWITCH, none, none);
	fd = make_socket(LOCKSTEP_CLIENT, (struct lockstep_end){1, 98}, (struct lockstep_end){77, 99});
	expect(!connect(fd, (struct sockaddr *)&a, bytes));
	expect(arrival_ns(fd, LOCKSTEP_REFUSED) == 100000);
}

static const struct {
	const char *name;
	void (*play)(void);
} parts[] = {
	{"ticks", play_ticks},     {"slow", play_slow},         {"first", play_first},
	{"second", play_second},   {"receiver", play_receiver}, {"dead", play_dead},
	{"endless", play_endless}, {"flooding", play_flooding}, {"forward", play_forward},
	{"twice", play_twice},     {"waiting", play_waiting},   {"parent", play_parent},
	{"leaving", play_leaving}, {"stopped", play_stopped},   {"listener", play_listener},
	{"caller", play_caller},   {"stranger", play_stranger},
};

/* verbena run --address ADDRESS -- PART */
__attribute__((constructor)) static void play(int argc, char **argv)
{
	int page_fd;

	if (argc != 6 || strcmp(argv[1], "run") != 0)
		return;
	expect(lockstep_parse(getenv(LOCKSTEP_VARIABLE), &part.fd, &page_fd));
	part.page = mmap(NULL, sizeof(*part.page), PROT_READ, MAP_SHARED, page_fd, 0);
	expect(part.page != MAP_FAILED);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(parts[i].name, argv[5]) != 0)
			continue;
		parts[i].play();
		_exit(0);
	}
	_exit(WRONG);
}

/* ---- runs ---- */

static struct {
	struct turns_program programs[PROGRAMS_MAX];
	char *words[PROGRAMS_MAX][2];
	struct turns_result result;
	char why[TURNS_WHY_BYTES];
} r;

static void load(struct scenario *s)
{
	static const char text[] = "[run]\nonly = none\n[topology]\nkind = star\nhosts = 3\n"
				   "[link]\nrate = 100Gbps\ndelay = 1us\n";
	struct scenario_source *source = scenario_source_create();
	struct scenario_error e;

	assert_int_equal(scenario_source_text(source, "test.ini", text, &e), 0);
	assert_int_equal(scenario_source_settle(source, s, &e), 0);
	scenario_source_destroy(source);
}

/* Each name plays on the host of its place. */
static enum turns_end run(const char *a, const char *b, const char *c, uint64_t patience_s)
{
	static struct scenario s;
	const char *names[] = {a, b, c};
	enum turns_end end;
	size_t n = 0;

	load(&s);
	memset(&r, 0, sizeof(r));
	for (; n < PROGRAMS_MAX && names[n]; n++) {
		r.words[n][0] = (char *)names[n];
		r.programs[n] = (struct turns_program){
			.host = (uint32_t)n, .words = r.words[n], .text = names[n], .out_fd = STDERR_FILENO};
	}
	end = turns_run(&s, r.programs, n, patience_s, &r.result, r.why);
	/* No child is left, neither dead nor alive. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return end;
}

static void fails(const char *name, const char *why)
{
	char start[64];

	assert_int_equal(run(name, "waiting", NULL, PATIENT_S), TURNS_FAILED);
	snprintf(start, sizeof(start), "host 0: '%s' (pid ", name);
	if (strncmp(r.why, start, strlen(start)) != 0 || !strstr(r.why, why))
		fail_msg("'%s' and '%s' are not in: %s", start, why, r.why);
}

/* On a busy machine it may not even have begun. */
static void is_given_up(const char *name)
{
	assert_int_equal(run(name, NULL, NULL, 1), TURNS_FAILED);
	if (!strstr(r.why, name) || !strstr(r.why, " for 1 s (--patience) without waiting"))
		fail_msg("%s", r.why);
}

static void assert_exits(size_t i, int status)
{
	assert_true(r.programs[i].ended);
	assert_int_equal(r.programs[i].status, status << 8);
}

TEST(time_stands_while_a_program_runs_and_each_runs_when_it_is_due)
{
	assert_int_equal(run("ticks", "slow", NULL, PATIENT_S), TURNS_ENDED);
	assert_exits(0, 0);
	assert_exits(1, 0);
	assert_true(r.programs[1].ended_ps == 7500000);
}

TEST(packets_of_a_moment_enter_in_the_order_of_hosts)
{
	assert_int_equal(run("first", "second", "receiver", PATIENT_S), TURNS_ENDED);
	assert_exits(2, 1);
}

TEST(what_goes_over_tcp_takes_its_delay)
{
	assert_int_equal(run("listener", "caller", NULL, PATIENT_S), TURNS_ENDED);
	assert_exits(0, 0);
	assert_exits(1, 0);
	assert_int_equal(run("ticks", "stranger", NULL, PATIENT_S), TURNS_ENDED);
	assert_exits(1, 0);
}

TEST(a_program_that_fails_ends_the_run_with_its_name)
{
	fails("dead", "was ended by signal 11");
	fails("forward", "has broken the rules of simulated time");
	fails("twice", "has two processes that open the device");
}

TEST(a_program_that_never_waits_is_given_up)
{
	is_given_up("endless");
	is_given_up("flooding");
	is_given_up("stopped");
}

TEST(nothing_is_left_of_a_program_that_leaves_processes_behind)
{
	assert_int_equal(run("parent", "ticks", NULL, PATIENT_S), TURNS_ENDED);
	assert_exits(1, 0);
	assert_int_equal(run("leaving", "slow", NULL, PATIENT_S), TURNS_ENDED);
	assert_exits(0, 0);
	assert_exits(1, 0);
}

TEST(programs_that_all_wait_are_named)
{
	assert_int_equal(run("waiting", "ticks", NULL, PATIENT_S), TURNS_STUCK);
	assert_non_null(strstr(r.why, "host 0: 'waiting' (pid "));
}

TEST_PROGRAM(NULL, NULL)
