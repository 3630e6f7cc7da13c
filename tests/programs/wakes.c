/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary program of librdmacm that waits for its events in each way there is: poll(), edge-triggered epoll,
 * rdma_get_cm_event() in one thread and in several, without blocking. No wake-up may be missing, and none may come without an
 * event. Each event is that an address is resolved, so one process does it all.
 *
 *	wakes ADDRESS    one of this host
 *
 * It says what went otherwise than on Linux's device, where it passes too, and ends with status 1 then.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>

enum {
	WAIT_MS = 20000, /* for what must happen */
	RESOLVE_MS = 2000,
	UNREAD = 100, /* events that lie in the channel */
	ROUNDS = 1000,
	THREADS = 4,
	SHARED = 400, /* events for all threads */
	MANY = 4500,  /* channels at once */
	OTHER_FDS = 400,
};

static struct {
	struct rdma_event_channel *channel;
	struct sockaddr_in addr;
	const char *title;
	atomic_int taken;
	int wrong;
} g;

static void fail(const char *doing)
{
	printf("%s: %s: %s\n", g.title, doing, strerrorname_np(errno));
	exit(2);
}

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	printf("%s: not so: %s\n", g.title, what);
	g.wrong = 1;
}

/* ---- events --------------------------------------------------------------------------------------- */

static struct rdma_event_channel *new_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (!channel)
		fail("rdma_create_event_channel");
	return channel;
}

/* An id that will have an event. */
static struct rdma_cm_id *more(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		fail("rdma_create_id");
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&g.addr, RESOLVE_MS))
		fail("rdma_resolve_addr");
	return id;
}

static struct rdma_cm_id *take_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(channel, &event))
		fail("rdma_get_cm_event");
	must(event->event == RDMA_CM_EVENT_ADDR_RESOLVED, "an address is resolved");
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void destroy(struct rdma_cm_id *id)
{
	if (rdma_destroy_id(id))
		fail("rdma_destroy_id");
}

static void take(struct rdma_event_channel *channel)
{
	destroy(take_event(channel));
}

static bool has_none(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	return rdma_get_cm_event(channel, &event) < 0 && errno == EAGAIN;
}

static bool readable(const struct rdma_event_channel *channel, int wait_ms)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

	return poll(&p, 1, wait_ms) == 1 && p.revents == POLLIN;
}

static int new_epoll(const struct rdma_event_channel *channel)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, channel->fd, &e))
		fail("epoll");
	return epoll;
}

static bool edge(int epoll, int wait_ms)
{
	struct epoll_event e;

	return epoll_wait(epoll, &e, 1, wait_ms) == 1;
}

/* ---- cases ---------------------------------------------------------------------------------------- */

static void polls(void)
{
	must(!readable(g.channel, 0), "without an event nothing can be read");
	for (int i = 0; i < UNREAD; i++)
		more(g.channel);
	for (int i = 0; i < UNREAD; i++) {
		must(readable(g.channel, WAIT_MS), "an event can be read");
		take(g.channel);
	}
	must(!readable(g.channel, 0), "when the last event is taken nothing can be read");
}

static void one_event_an_edge(void)
{
	int epoll = new_epoll(g.channel);

	must(!edge(epoll, 0), "without an event there is no edge");
	for (int i = 0; i < UNREAD; i++) {
		more(g.channel);
		must(edge(epoll, WAIT_MS), "an event is an edge, though others lie there unread");
		must(!edge(epoll, 0), "an event is one edge");
	}
	for (int i = 0; i < ROUNDS && !g.wrong; i++) {
		more(g.channel);
		must(edge(epoll, WAIT_MS), "an event is an edge, though not all others are taken");
		take(g.channel);
		must(readable(g.channel, 0), "those that are left can be read");
		must(!edge(epoll, 0), "taking an event is no edge");
	}
	for (int i = 0; i < UNREAD; i++)
		take(g.channel);
	must(!edge(epoll, 0), "taking events is no edge");
	must(!readable(g.channel, 0), "nothing is left");
	for (int i = 0; i < UNREAD; i++) {
		more(g.channel);
		must(edge(epoll, WAIT_MS), "an event is an edge after all others were taken");
		take(g.channel);
	}
	close(epoll);
}

static void does_not_block(void)
{
	int flags = fcntl(g.channel->fd, F_GETFL);

	fcntl(g.channel->fd, F_SETFL, flags | O_NONBLOCK);
	must(has_none(g.channel), "without an event EAGAIN");
	more(g.channel);
	must(readable(g.channel, WAIT_MS), "an event can be read");
	take(g.channel);
	must(has_none(g.channel), "after the event EAGAIN");
	must(!readable(g.channel, 0), "nothing is left");
	fcntl(g.channel->fd, F_SETFL, flags);
}

static void forgotten(void)
{
	struct rdma_cm_id *id = more(g.channel);

	must(readable(g.channel, WAIT_MS), "an event can be read");
	rdma_destroy_id(id);
	must(!readable(g.channel, 0), "an id takes its events with it");
}

/* Linux wakes nobody for an event that changes its channel. */
static void migrated(void)
{
	struct rdma_event_channel *other = new_channel();
	struct rdma_cm_id *id = more(g.channel);

	must(readable(g.channel, WAIT_MS), "an event can be read");
	if (rdma_migrate_id(id, other))
		fail("rdma_migrate_id");
	must(!readable(g.channel, 0), "no event is left where the id came from");
	must(readable(other, WAIT_MS), "its event can be read where it went");
	take(other);
	must(!readable(other, 0), "nothing is left");
	rdma_destroy_event_channel(other);
}

static void *taker(void *arg)
{
	for (;;) {
		take_event(g.channel);
		atomic_fetch_add(&g.taken, 1);
	}
	return arg;
}

static void end(pthread_t thread)
{
	void *how;

	pthread_cancel(thread);
	pthread_join(thread, &how);
	must(how == PTHREAD_CANCELED, "a thread that waits can be cancelled");
}

static void threads(void)
{
	struct rdma_cm_id *ids[SHARED]; /* rdma_resolve_addr() writes into one after its event may have been taken */
	pthread_t thread[THREADS];
	int patience_ms = WAIT_MS;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, taker, NULL);
	for (int i = 0; i < SHARED; i++)
		ids[i] = more(g.channel);
	while (atomic_load(&g.taken) < SHARED && patience_ms-- > 0)
		usleep(1000);
	must(atomic_load(&g.taken) == SHARED, "each event wakes a thread, and is taken once");
	for (int i = 0; i < THREADS; i++)
		end(thread[i]);
	for (int i = 0; i < SHARED; i++)
		destroy(ids[i]);
	must(!readable(g.channel, 0), "nothing is left");
	more(g.channel);
	take(g.channel);
}

static struct rdma_cm_event *next_of(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(channel, &event))
		fail("rdma_get_cm_event");
	must(event->event == type, rdma_event_str(type));
	return event;
}

static atomic_int waiting; /* a thread's number */

static void *waiter(void *channel)
{
	struct rdma_cm_event *event;

	atomic_store(&waiting, gettid());
	return rdma_get_cm_event(channel, &event) ? NULL : event;
}

static bool sleeps(int thread)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		fail(path);
	fclose(f);
	return state == 'S';
}

/* A listener, and an id of the other channel whose route to it is resolved. */
static struct rdma_cm_id *routed(struct rdma_event_channel *other, struct rdma_cm_id **listener)
{
	struct sockaddr_in at = g.addr;
	struct rdma_cm_id *id;

	at.sin_port = 0;
	if (rdma_create_id(g.channel, listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(*listener, (struct sockaddr *)&at) || rdma_listen(*listener, 1))
		fail("rdma_listen");
	at.sin_port = rdma_get_src_port(*listener);
	if (rdma_create_id(other, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&at, RESOLVE_MS))
		fail("rdma_resolve_addr");
	rdma_ack_cm_event(next_of(other, RDMA_CM_EVENT_ADDR_RESOLVED));
	if (rdma_resolve_route(id, RESOLVE_MS))
		fail("rdma_resolve_route");
	rdma_ack_cm_event(next_of(other, RDMA_CM_EVENT_ROUTE_RESOLVED));
	return id;
}

/*
 * A channel is closed under a thread that waits, and then its number is another file's. The thread still gets what
 * comes, and leaves the other file alone.
 */
static void closed(void)
{
	struct rdma_conn_param param = {.qp_num = 100, .retry_count = 7};
	struct rdma_event_channel *other = new_channel();
	struct rdma_cm_id *listener, *id = routed(other, &listener);
	struct rdma_cm_event *request, *event;
	pthread_t thread;
	int pair[2];
	char byte = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		fail("socketpair");
	pthread_create(&thread, NULL, waiter, other);
	while (!atomic_load(&waiting) || !sleeps(atomic_load(&waiting)))
		usleep(10000);
	usleep(200000); /* it sleeps for want of an event, not on its way to that */
	if (rdma_connect(id, &param))
		fail("rdma_connect");
	request = next_of(g.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	if (dup2(pair[0], other->fd) < 0 || write(pair[1], "x", 1) != 1)
		fail("dup2");
	if (rdma_reject(request->id, NULL, 0))
		fail("rdma_reject");
	pthread_join(thread, (void **)&event);
	must(event && event->event == RDMA_CM_EVENT_REJECTED, "a thread that waits gets what comes");
	must(recv(other->fd, &byte, 1, MSG_DONTWAIT) == 1 && byte == 'x', "what is for the new file is not taken");
	must(write(other->fd, "y", 1) == 1 && recv(pair[1], &byte, 1, MSG_DONTWAIT) == 1 && byte == 'y',
	     "it can be written");
	id = request->id;
	rdma_ack_cm_event(request);
	rdma_destroy_id(id);
	rdma_destroy_id(listener);
	must(!readable(g.channel, 0), "nothing is left");
	close(pair[0]);
	close(pair[1]);
	rdma_destroy_event_channel(other);
}

/* A copy under another number is the same channel, also when the first number is closed. */
static void copied(void)
{
	struct rdma_event_channel *other = new_channel();
	int spare = dup2(STDOUT_FILENO, 200),
	    numbers[] = {fcntl(other->fd, F_DUPFD, 100), fcntl(other->fd, F_DUPFD_CLOEXEC, 150), dup(other->fd),
			 dup2(other->fd, spare), dup3(other->fd, 201, O_CLOEXEC)};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct rdma_event_channel copy = {.fd = numbers[i]};
		struct stat st;

		must(numbers[i] >= 0 && !fstat(numbers[i], &st) && S_ISCHR(st.st_mode), "a copy is a device too");
		more(&copy);
		must(readable(other, WAIT_MS) && readable(&copy, 0), "an event of one can be read of the other");
		if (i % 2)
			take(other);
		else
			take(&copy);
		must(!readable(other, 0) && !readable(&copy, 0), "nothing is left");
	}
	close(other->fd);
	for (size_t i = 0; i + 1 < sizeof(numbers) / sizeof(numbers[0]); i++)
		close(numbers[i]);
	other->fd = numbers[4];
	more(other);
	take(other);
	rdma_destroy_event_channel(other);
}

/* Each of many channels has its own event, whatever becomes of the others. */
static void many(void)
{
	static struct rdma_event_channel *channels[MANY];
	struct rlimit limit;
	size_t n;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	n = limit.rlim_max < 2 * MANY + OTHER_FDS ? (limit.rlim_max - OTHER_FDS) / 2 : MANY;
	for (size_t i = 0; i < n; i++)
		channels[i] = new_channel();
	for (size_t i = 0; i < n; i++)
		more(channels[i]);
	for (size_t i = 1; i < n; i += 2)
		rdma_destroy_event_channel(channels[i]);
	for (size_t i = 0; i < n; i += 2) {
		must(readable(channels[i], WAIT_MS), "its event can be read");
		take(channels[i]);
		must(!readable(channels[i], 0), "nothing is left");
		rdma_destroy_event_channel(channels[i]);
	}
}

static void forked(void)
{
	struct rdma_cm_event *event;
	int status;
	pid_t child;

	more(g.channel);
	must(readable(g.channel, WAIT_MS), "an event can be read");
	child = fork();
	if (!child)
		_exit(rdma_get_cm_event(g.channel, &event) < 0 && errno == EACCES ? 0 : 1);
	must(waitpid(child, &status, 0) == child && !status, "a child of fork gets EACCES");
	must(readable(g.channel, 0), "and takes nothing");
	take(g.channel);
	must(!readable(g.channel, 0), "nothing is left");
}

static const struct {
	const char *title;
	void (*run)(void);
} cases[] = {
	{"poll", polls},
	{"epoll", one_event_an_edge},
	{"without blocking", does_not_block},
	{"destroyed ids", forgotten},
	{"migrated ids", migrated},
	{"threads", threads},
	{"closed channels", closed},
	{"copies", copied},
	{"many channels", many},
	{"fork", forked},
};

int main(int argc, char **argv)
{
	g.addr.sin_family = AF_INET;
	g.addr.sin_port = htons(9000);
	if (argc != 2 || inet_pton(AF_INET, argv[1], &g.addr.sin_addr) != 1) {
		fprintf(stderr, "usage: wakes ADDRESS\n");
		return 2;
	}
	g.title = "start";
	setvbuf(stdout, NULL, _IOLBF, 0);
	g.channel = new_channel();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && !g.wrong; i++) {
		g.title = cases[i].title;
		cases[i].run();
	}
	rdma_destroy_event_channel(g.channel);
	if (!g.wrong)
		printf("all as it must be\n");
	return g.wrong;
}
