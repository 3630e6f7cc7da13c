/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports of a group: to a process that cannot join, the reason and the process in its way; to a tool,
 * the members and their counters.
 */
#include <sys/un.h>

#include "support/group_members.h"
#include "support/test.h"

GROUP_TEST(a_tool_finds_the_members_and_their_counters)
{
	struct group_config cfg = config();
	struct group_member found[GROUP_SLOTS];
	uint64_t *shared;
	uint64_t value = 0;

	cfg.stat_fd = memfd_create("counters", MFD_CLOEXEC);
	assert_int_equal(ftruncate(cfg.stat_fd, 4096), 0);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, cfg.stat_fd, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	*shared = 4711;
	member_start();

	pid_t pid = member_fork(&cfg);
	struct report r = report_of(pid, JOIN_MS);

	assert_int_equal(r.kind, JOINED);
	members[member_count++] = (struct member){.pid = pid, .slot = r.slot};
	assert_int_equal(group_query(&(struct group_id){.uid = geteuid(), .port = port}, GROUP_ALL_SLOTS, 1000, found,
				     GROUP_SLOTS),
			 2);
	assert_int_equal(found[0].slot, 0);
	assert_int_equal(found[0].pid, members[0].pid);
	assert_true(found[0].answered);
	assert_int_equal(found[0].stat_fd, -1);
	assert_int_equal(found[1].slot, 1);
	assert_int_equal(found[1].pid, pid);
	assert_int_equal(pread(found[1].stat_fd, &value, sizeof(value), 0), sizeof(value));
	assert_int_equal(value, 4711);
	close(found[1].stat_fd);
	assert_int_equal(group_query(&(struct group_id){.uid = geteuid(), .port = port}, 1, 1000, found, 1), 1);
	close(found[0].stat_fd);
	assert_int_equal(group_query(&(struct group_id){.uid = geteuid(), .port = port}, 2, 1000, found, 1), 0);
	munmap(shared, 4096);
	close(cfg.stat_fd);
}

/* Places of a process, counters and all. Other processes may have some too. */
static int portless_places(pid_t pid, unsigned wait_ms)
{
	struct group_member found[GROUP_SLOTS];
	ssize_t n = group_query(&(struct group_id){.uid = geteuid(), .port = GROUP_PORT_NONE}, GROUP_ALL_SLOTS, wait_ms,
				found, GROUP_SLOTS);
	int places = 0;

	for (ssize_t i = 0; i < n; i++) {
		places += found[i].pid == pid && found[i].stat_fd >= 0;
		if (found[i].stat_fd >= 0)
			close(found[i].stat_fd);
	}
	return places;
}

GROUP_TEST(a_process_without_a_port_is_found)
{
	int stat_fd = memfd_create("counters", MFD_CLOEXEC), status;
	struct io_counters counters = {0};
	struct group *g[2];
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(group_open_portless(&g[i], stat_fd, &counters), 0);
		assert_int_equal(group_rx_fds(g[i], (int[1]){0}, 1), 0);
	}
	assert_int_not_equal(group_slot(g[0]), group_slot(g[1]));
	pid = fork();
	if (!pid)
		_exit(portless_places(getppid(), 5000));
	while (!waitpid(pid, &status, WNOHANG)) {
		group_service(g[0]);
		group_service(g[1]);
	}
	assert_int_equal(WEXITSTATUS(status), 2);
	group_close(g[0]);
	group_close(g[1]);
	assert_int_equal(portless_places(getpid(), 100), 0);
	close(stat_fd);
}

/* What a tool is told: 0 with the answer that is expected, or the errno. */
static int give_command(unsigned slot, pid_t pid, const char *command, const char *answer)
{
	const struct group_id id = {.uid = geteuid(), .port = GROUP_PORT_NONE};
	const struct group_member m = {.slot = slot, .pid = pid};
	char said[64] = "-";
	const struct group_command c = {.kind = GROUP_COMMAND_FAULT, .text = command, .wait_ms = 5000};
	int rc = group_command(&id, &m, &c, said, sizeof(said));

	return rc ? -rc : strcmp(said, answer) != 0;
}

GROUP_TEST(a_command_goes_to_the_process_that_is_named)
{
	struct io_counters counters = {0};
	char command[32], long_one[GROUP_MSG_TEXT_MAX + 2];
	struct group *g;
	int status;
	pid_t pid;

	assert_int_equal(group_open_portless(&g, -1, &counters), 0);
	memset(long_one, 'x', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = 0;
	pid = fork();
	if (!pid) {
		unsigned slot = group_slot(g);

		/* The slot may be another process's by now. */
		if (give_command(slot, getppid() + 1, "link down", "") != ESRCH ||
		    give_command(slot, getppid(), long_one, "") != EMSGSIZE)
			_exit(1);
		_exit(give_command(slot, getppid(), "link down", "done"));
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		group_service(g);
		assert_false(group_next_command(g, GROUP_COMMAND_FREEZE, command, sizeof(command)));
		if (!group_next_command(g, GROUP_COMMAND_FAULT, command, sizeof(command)))
			continue;
		assert_int_equal(group_take_command_fd(g), -1);
		assert_string_equal(command, "link down");
		group_answer_command(g, "done");
		assert_false(group_next_command(g, GROUP_COMMAND_FAULT, command, sizeof(command)));
	}
	assert_int_equal(WEXITSTATUS(status), 0);
	group_close(g);
}

static int listen_as(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	strcpy(a.sun_path + 1, name);
	assert_int_equal(
		bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
		0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static struct group *open_named(const struct group_config *cfg, const char *heir)
{
	char why[GROUP_WHY_BYTES];
	struct group *g;

	assert_int_equal(group_open(&g, cfg, why, sizeof(why)), 0);
	group_name_heir(g, heir);
	return g;
}

/* It can tell a process that was killed from one that has ended, and the memory that it gets has what the last one
 * wrote. */
GROUP_TEST(an_heir_gets_what_the_last_one_leaves)
{
	struct group_config cfg = config();
	int heir, link, fds[1], page;
	struct group *g;
	char name[64], byte;
	size_t n = 0;

	snprintf(name, sizeof(name), "verbena.test.heir.%d", (int)getpid());
	cfg.shared_bytes = 4096;
	g = open_named(&cfg, name);
	group_close(g); /* nobody has that name: nothing happens */
	heir = listen_as(name);
	g = open_named(&cfg, name);
	*(char *)group_shared(g) = 42;
	link = accept(heir, NULL, NULL);
	assert_int_equal(link_recv(link, &byte, 1, fds, 1, &n), 1);
	assert_int_equal(n, 1);
	page = fds[0];
	group_close(g);
	assert_int_equal(link_recv(link, &byte, 1, fds, 1, &n), 0);
	close(link);
	cfg.shared_fd = page;
	g = open_named(&cfg, name);
	assert_int_equal(*(char *)group_shared(g), 42);
	link = accept(heir, NULL, NULL);
	assert_int_equal(link_recv(link, &byte, 1, fds, 1, &n), 1);
	close(fds[0]);
	group_leave_nothing(g);
	group_close(g);
	assert_int_equal(link_recv(link, &byte, 1, fds, 1, &n), 1);
	assert_int_equal(n, 0);
	close(link);
	close(page);
	close(heir);
}

static void assert_fails(const struct group_config *cfg, int err, const char *part)
{
	struct group *g;
	char why[GROUP_WHY_BYTES] = "";

	assert_int_equal(group_open(&g, cfg, why, sizeof(why)), err);
	if (!strstr(why, part))
		fail_msg("\"%s\" does not say \"%s\"", why, part);
	if (getenv("VERBENA_TEST_SHOW"))
		print_message("\t%s\n", why);
}

GROUP_TEST(a_held_lock_is_reported_with_its_holder)
{
	struct group_config cfg = config();
	char part[64];
	int lock = link_listen(&(struct group_id){.uid = geteuid(), .port = port}, LINK_LOCK);

	cfg.join_ms_max = 100;
	snprintf(part, sizeof(part), "process %d has held the lock", (int)getpid());
	assert_fails(&cfg, -ETIMEDOUT, part);
	close(lock);
}

/* On a busy machine it may take long, and another process that joined meanwhile would take as long. */
GROUP_TEST(a_holder_that_lives_is_waited_for)
{
	int lock = link_listen(&(struct group_id){.uid = geteuid(), .port = port}, LINK_LOCK), status;
	struct group_config cfg = config();
	char why[GROUP_WHY_BYTES];
	struct group *g;
	pid_t pid = fork();

	cfg.join_ms_max = 0;
	if (!pid) {
		close(lock);
		_exit(group_open(&g, &cfg, why, sizeof(why)) == 0 ? 0 : 1);
	}
	usleep(2000000);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	close(lock);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* As a launcher starts ranks, where each step of a join waits for a processor. VERBENA_TEST_STARTS has more of them. */
GROUP_TEST(all_join_beside_busy_programs)
{
	enum { BUSY = 16, RANKS = 5 };
	const char *more = getenv("VERBENA_TEST_STARTS");
	struct group_config cfg = config();
	pid_t busy[BUSY], rank[RANKS];

	cfg.join_ms_max = 0;
	for (int i = 0; i < BUSY; i++) {
		busy[i] = fork();
		if (!busy[i]) {
			alarm(120);
			for (volatile unsigned n = 0;; n++)
				;
		}
	}
	for (int start = 0; start < (more ? atoi(more) : 2); start++) {
		for (int i = 0; i < RANKS; i++)
			rank[i] = member_fork(&cfg);
		for (int i = 0; i < RANKS; i++)
			assert_int_equal(report_of(rank[i], 60000).kind, JOINED);
		for (int i = 0; i < RANKS; i++) {
			kill(rank[i], SIGKILL);
			waitpid(rank[i], NULL, 0);
		}
	}
	for (int i = 0; i < BUSY; i++) {
		kill(busy[i], SIGKILL);
		waitpid(busy[i], NULL, 0);
	}
}

GROUP_TEST(a_port_in_use_is_reported)
{
	struct group_config cfg = config();
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_fails(&cfg, -EADDRINUSE, "in use by something else");
	close(fd);
}

GROUP_TEST(another_users_group_is_reported)
{
	struct group_config cfg = config();
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	member_start();
	pid = fork();
	if (pid == 0) {
		struct group *g;
		char why[GROUP_WHY_BYTES] = "";

		if (setuid(65534) < 0 || group_open(&g, &cfg, why, sizeof(why)) != -EADDRINUSE ||
		    !strstr(why, "another user (uid 0)") || !strstr(why, "VERBENA_PORT") ||
		    !strstr(why, "network namespace"))
			_exit(1);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	expect_all_reached();
}

GROUP_TEST(too_few_descriptors_are_reported)
{
	struct group_config cfg = config();
	struct rlimit limit = {.rlim_cur = 12, .rlim_max = 12};
	int status;
	pid_t pid;

	for (int i = 0; i < 4; i++)
		member_start();
	pid = fork();
	if (pid == 0) {
		struct group *g;
		char why[GROUP_WHY_BYTES] = "";

		setrlimit(RLIMIT_NOFILE, &limit);
		if (group_open(&g, &cfg, why, sizeof(why)) != -EMFILE || !strstr(why, "limit is 12"))
			_exit(1);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	expect_all_reached();
}

GROUP_TEST(other_ports_are_reported)
{
	struct group_config cfg = config();

	member_start();
	cfg.ports[1] = (uint16_t)(port + 1);
	assert_fails(&cfg, -EPROTO, "without port");
	cfg.port_count = 1;
	assert_fails(&cfg, -EPROTO, "and one more");
	expect_all_reached();
}

GROUP_TEST(a_second_port_in_use_is_reported)
{
	struct group_config cfg = config();
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(second_port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char part[64];

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	snprintf(part, sizeof(part), "UDP port %u is in use by something else", second_port);
	assert_fails(&cfg, -EADDRINUSE, part);
	close(fd);
	member_start();
	expect_all_reached();
}

GROUP_TEST(a_full_group_is_reported)
{
	struct group_config cfg = config();
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < 600)
		skip();
	for (unsigned i = 0; i < GROUP_SLOTS; i++) {
		struct report r = member_start();

		if (r.kind == FAILED)
			fail_msg("%s", r.why);
		assert_int_equal(r.slot, i);
	}
	expect_all_reached();
	assert_fails(&cfg, -ENOSPC, "all 127 slots");
	member_kill(prng_below(&rng, member_count));
	assert_int_equal(member_start().kind, JOINED);
	expect_all_reached();
}
