/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels as descriptors. The program holds one end of a pair of sockets, and the library holds the other. A
 * hang-up of our end shows that the program has closed every copy of its end.
 *
 * The program's end has bytes to read while events wait, and none when the last one is taken, so poll() and epoll work
 * as on the kernel's device. Each time that events are added, one byte is sent, whether or not others lie there unread:
 * Linux wakes the channel's waiters for each event, and a program with edge-triggered epoll may take one event for each
 * edge. Bytes are taken only when no event is left, all at once, or when they are many.
 *
 * A command asks the kernel one thing, which file its descriptor is; taking the last event and waiting cost more.
 *
 * A process whose devices are each bound to an interface or address has rdma_cm on all of them, else on the first. A
 * command holds the locks of all these engines, which it takes in their order; events come with the lock of their own.
 *
 * The engine's lock is held here, except where a comment says otherwise. A thread of the program that waits for an
 * event does not hold it: it waits in ppoll() on the program's end.
 */
#include <assert.h>
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/engine.h"
#include "rdmacm/source.h"
#include "rdmacm/trouble.h"
#include "rdmacm/ucma.h"
#include "verbs/cdev.h"
#include "verbs/explain.h"
#include "verbs/objects.h"

enum {
	BYTES_MANY = 64, /* that the program has not read; a socket holds some 270 */
	BUCKETS = 4096
};

/* No two files that are open have the same. */
struct identity {
	dev_t dev;
	ino_t ino;
};

/* The engines of the devices that rdma_cm uses. */
struct engines {
	size_t count;
	struct engine *of[UCMA_ENDS_MAX]; /* a child of fork has some that are lost */
};

static_assert((int)UCMA_ENDS_MAX == (int)ENGINE_DEVICES_MAX, "a channel has an end on each device");

/* What a channel is on one of them. */
struct channel_end {
	struct event_channel *whole;
	struct engine *engine;
	struct cm_channel *cm;
	uint64_t told; /* cm_channel_added() when it was last told */
};

struct event_channel {
	struct event_channel *next_by_file, *next_by_fd;
	const struct engines *engines;
	struct channel_end ends[UCMA_ENDS_MAX];
	size_t turn;            /* struct ucma_host */
	int fd;                 /* our end */
	struct identity theirs; /* of the program's end */
	_Atomic size_t bytes;   /* that the program can read */
};

static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER; /* inside the engine's */
/* Channels in a bucket by the number of the program's end, which the kernel counts up, and by our end. */
static struct event_channel *by_file[BUCKETS], *by_fd[BUCKETS];
static _Atomic int first_fd;                           /* as engine_fd_first() has it */
static _Atomic(const struct engines *) newest_engines; /* of this process; a child of fork starts others */

/* ---- the devices -------------------------------------------------------------------------------- */

/* Of one process, so the first says which they are. */
static bool is_theirs(const struct event_channel *ch, const struct engines *e)
{
	return ch->engines->of[0] == e->of[0];
}

static void lock_all(const struct engines *e, size_t from)
{
	for (size_t i = from; i < e->count; i++)
		engine_lock(e->of[i]);
}

static void unlock_all(const struct engines *e, size_t from)
{
	for (size_t i = e->count; i-- > from;)
		engine_unlock(e->of[i]);
}

static const struct engines *engines_new(struct engine *first)
{
	struct engines *e = space_get(sizeof(*e));

	if (!e)
		return fail_null(ENOMEM);
	*e = (struct engines){.count = engine_cm_devices(), .of = {first}};
	for (size_t i = 1; i < e->count; i++) {
		e->of[i] = device_engine((unsigned)i);
		if (!e->of[i]) {
			space_put(e, sizeof(*e));
			return NULL;
		}
	}
	atomic_store(&newest_engines, e);
	return e;
}

/* Starts those that do not run yet. NULL with errno. They are kept for good, as engines are. */
static const struct engines *engines_get(void)
{
	const struct engines *newest = atomic_load(&newest_engines);
	struct engine *first = device_engine(0);

	if (!first)
		return NULL;
	return newest && newest->of[0] == first ? newest : engines_new(first);
}

/* ---- which channel a descriptor is -------------------------------------------------------------- */

/* The numbers of a file; libc's fstat() would be the preloaded library's, which asks us in turn. */
static bool identify(int fd, struct identity *out)
{
	struct stat st;

	if (syscall(SYS_fstat, fd, &st) < 0)
		return false;
	*out = (struct identity){st.st_dev, st.st_ino};
	return true;
}

static bool is_same(const struct identity *a, const struct identity *b)
{
	return a->ino == b->ino && a->dev == b->dev;
}

static void channel_add(struct event_channel *ch)
{
	struct event_channel **file = &by_file[ch->theirs.ino % BUCKETS], **fd = &by_fd[ch->fd % BUCKETS];

	pthread_mutex_lock(&channels_lock);
	ch->next_by_file = *file;
	*file = ch;
	ch->next_by_fd = *fd;
	*fd = ch;
	pthread_mutex_unlock(&channels_lock);
}

static void channel_remove(const struct event_channel *ch)
{
	struct event_channel **file = &by_file[ch->theirs.ino % BUCKETS], **fd = &by_fd[ch->fd % BUCKETS];

	pthread_mutex_lock(&channels_lock);
	while (*file != ch)
		file = &(*file)->next_by_file;
	*file = ch->next_by_file;
	while (*fd != ch)
		fd = &(*fd)->next_by_fd;
	*fd = ch->next_by_fd;
	pthread_mutex_unlock(&channels_lock);
}

/* Called by any thread. The channel that it lends may be used only with the engine's lock held. */
static struct event_channel *channel_with(const struct identity *file)
{
	struct event_channel *ch;

	pthread_mutex_lock(&channels_lock);
	ch = by_file[file->ino % BUCKETS];
	while (ch && !is_same(&ch->theirs, file))
		ch = ch->next_by_file;
	pthread_mutex_unlock(&channels_lock);
	return ch;
}

/* That process's channel whose end here has that number: a child of fork has copies of its parent's channels. */
static struct event_channel *channel_at(int fd, const struct engines *engines)
{
	struct event_channel *ch;

	pthread_mutex_lock(&channels_lock);
	ch = by_fd[fd % BUCKETS];
	while (ch && (ch->fd != fd || !is_theirs(ch, engines)))
		ch = ch->next_by_fd;
	pthread_mutex_unlock(&channels_lock);
	return ch;
}

static void release(int held, int fd)
{
	if (held >= 0 && held != fd)
		close(held);
}

/*
 * A copy of a channel's descriptor, so that no other thread can close the channel meanwhile, and open a file that gets
 * its number; the descriptor itself where none is left. -1: another thread has closed it already.
 */
static int hold(int fd, const struct identity *channel)
{
	int held = fcntl(fd, F_DUPFD_CLOEXEC, atomic_load(&first_fd));
	struct identity file;

	if (held < 0 && errno != EBADF)
		held = fd;
	if (held >= 0 && identify(held, &file) && is_same(&file, channel))
		return held;
	release(held, fd);
	return -1;
}

/* A command, and what goes wrong with it. */
struct caller {
	const struct engines *engines;
	struct trouble trouble;
	struct event_channel *left; /* by an id that goes to another channel */
	int left_fd;
};

static int host_channel(void *ctx, int fd, struct cm_channel *out[UCMA_ENDS_MAX])
{
	struct caller *c = ctx;
	struct event_channel *ch;
	struct identity file;

	if (!identify(fd, &file))
		return -ENOENT;
	ch = channel_with(&file);
	if (!ch || !is_theirs(ch, c->engines))
		return -EINVAL;
	c->left = ch;
	c->left_fd = fd;
	for (size_t i = 0; i < c->engines->count; i++)
		out[i] = ch->ends[i].cm;
	return 0;
}

static uint16_t host_first_port(void *ctx)
{
	struct caller *c = ctx;

	return c->trouble.first_port = source_first_port();
}

/* The addresses that the devices are bound to. */
static size_t own_addresses(const struct engines *engines, struct cm_addr *own)
{
	static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};
	size_t n = 0;

	for (size_t i = 0; i < engines->count; i++) {
		struct cm_addr a = {0};

		for (uint32_t k = 0;
		     k < ENGINE_ADDRESSES_MAX && engine_chosen_address(engines->of[i], k, a.ip, &a.ifindex); k++) {
			a.family = memcmp(a.ip, ipv4, sizeof(ipv4)) ? CM_IPV6 : CM_IPV4;
			own[n++] = a;
		}
	}
	return n;
}

static int find_source(const struct engines *engines, struct cm_addr *src, struct cm_addr *dst)
{
	struct cm_addr own[UCMA_ENDS_MAX * ENGINE_ADDRESSES_MAX];
	size_t n = own_addresses(engines, own);

	return n ? source_find_among(own, n, src, dst) : source_find(src, dst);
}

/* The kernel knows the addresses of the wire alone. All devices have one map. */
static int find_mapped_source(struct caller *c, struct cm_addr *src, struct cm_addr *dst)
{
	struct engine *e = c->engines->of[0];
	struct cm_addr from = *src, to = *dst;
	int err;

	for (size_t i = 0; i < c->engines->count; i++)
		engine_follow_map(c->engines->of[i]);
	c->trouble.unmapped = !engine_hide_address(e, to.ip);
	if (c->trouble.unmapped)
		return -ENETUNREACH;
	if (!engine_hide_address(e, from.ip))
		return -EADDRNOTAVAIL;
	err = find_source(c->engines, &from, &to);
	if (!err && !(engine_show_address(e, from.ip) && engine_show_address(e, to.ip)))
		err = -EADDRNOTAVAIL;
	if (err)
		return err;
	*src = from;
	*dst = to;
	return 0;
}

static int host_route(void *ctx, struct cm_addr *src, struct cm_addr *dst)
{
	struct caller *c = ctx;
	bool mapped = engine_has_map(c->engines->of[0]);

	return trouble_with_route(&c->trouble, dst,
				  mapped ? find_mapped_source(c, src, dst) : find_source(c->engines, src, dst));
}

static void host_told(void *ctx, const struct cm_event *e, const struct cm_id_info *info)
{
	struct caller *c = ctx;

	trouble_with_event(&c->trouble, e, info);
}

static struct engine *engine_of(const struct cm_id *id)
{
	const struct channel_end *end = cm_channel_owner(cm_id_channel(id));

	return end->engine;
}

static struct flow flow_from(const struct cm_id *id)
{
	struct cm_id_info info;
	struct flow at = {0};

	cm_id_query(id, &info);
	memcpy(at.src, info.local.ip, sizeof(at.src));
	at.sport = info.local.port;
	at.ifindex = info.local.ifindex;
	return at;
}

static int host_bind(void *ctx, const struct cm_id *id, bool alone)
{
	struct flow at = flow_from(id);

	return engine_bind(engine_of(id), cm_id_listener(id), &at, alone);
}

static int host_listen(void *ctx, const struct cm_id *id, int backlog)
{
	struct flow at = flow_from(id);

	return engine_listen(engine_of(id), cm_id_listener(id), &at, backlog > 0 ? backlog : CM_BACKLOG_MAX);
}

static int host_join(void *ctx, const struct cm_id *id, const uint8_t gid[16], uint32_t ifindex)
{
	return engine_join(engine_of(id), gid, ifindex);
}

static void host_leave(void *ctx)
{
	struct caller *c = ctx;

	for (size_t i = 0; i < c->engines->count; i++)
		engine_leave_unused(c->engines->of[i]);
}

/* ---- what makes the program's end readable -------------------------------------------------------- */

/* If the socket is full, its program has been told often enough. */
static void byte_send(struct event_channel *ch)
{
	static const char byte;

	/* libc's send() is a cancellation point. */
	if (syscall(SYS_sendto, ch->fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) == sizeof(byte))
		ch->bytes++;
}

static void event(struct cm_channel *cm)
{
	struct channel_end *end = cm_channel_owner(cm);
	uint64_t added = cm_channel_added(cm);

	if (end->told != added && cm_channel_events(cm))
		byte_send(end->whole);
	end->told = added;
}

static size_t events_of(const struct event_channel *ch)
{
	size_t n = 0;

	for (size_t i = 0; i < ch->engines->count; i++)
		n += cm_channel_events(ch->ends[i].cm);
	return n;
}

/* Takes the bytes that are too many. fd is the program's end, or was a moment ago; `held`, or -1, is a copy of it. */
static void bytes_take(struct event_channel *ch, int fd, int held)
{
	size_t events = events_of(ch), keep = events ? 1 : 0;
	char bytes[BYTES_MANY];
	int from;

	if (ch->bytes <= (events ? BYTES_MANY : 0))
		return;
	from = held >= 0 ? held : hold(fd, &ch->theirs);
	while (from >= 0 && ch->bytes > keep) {
		size_t most = ch->bytes - keep;
		ssize_t n = recv(from, bytes, most < sizeof(bytes) ? most : sizeof(bytes), MSG_DONTWAIT);

		/* The program may have read them, though Linux would not let it. */
		ch->bytes = n > 0 ? ch->bytes - (size_t)n : 0;
	}
	if (from != held)
		release(from, fd);
	if (events && !ch->bytes)
		byte_send(ch);
}

static void ends_destroy(struct event_channel *ch, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct channel_end *end = &ch->ends[i];

		cm_channel_destroy(end->cm, engine_now_ns(end->engine));
		engine_leave_unused(end->engine);
	}
}

/* The first engine's lock is held. */
static void destroy(struct event_channel *ch)
{
	const struct engines *engines = ch->engines;

	lock_all(engines, 1);
	channel_remove(ch);
	ends_destroy(ch, engines->count);
	unlock_all(engines, 1);
	close(ch->fd);
	space_put(ch, sizeof(*ch));
}

static bool is_hung_up(const struct event_channel *ch)
{
	struct pollfd p = {.fd = ch->fd};

	return poll(&p, 1, 0) > 0 && p.revents & POLLHUP;
}

static void hung_up(int fd)
{
	struct event_channel *ch = channel_at(fd, atomic_load(&newest_engines));

	if (ch && is_hung_up(ch))
		destroy(ch);
}

static const struct engine_cm_sink sink = {.event = event, .hung_up = hung_up};

/* ---- open --------------------------------------------------------------------------------------- */

static int end_start(struct event_channel *ch, size_t i)
{
	struct channel_end *end = &ch->ends[i];

	end->whole = ch;
	end->engine = ch->engines->of[i];
	engine_set_cm_sink(end->engine, &sink);
	return cm_channel_create(engine_cm(end->engine), end, &end->cm);
}

/* Takes the engines' locks. 0 or a negative errno. */
static int channel_start(struct event_channel *ch)
{
	size_t made = 0;
	int err = 0;

	lock_all(ch->engines, 0);
	while (made < ch->engines->count && !err) {
		err = end_start(ch, made);
		made += !err;
	}
	/* By one engine, whose lock is the first: destroy() takes the others. */
	if (!err)
		err = engine_watch(ch->engines->of[0], ch->fd);
	if (err)
		ends_destroy(ch, made);
	else
		channel_add(ch);
	unlock_all(ch->engines, 0);
	return err;
}

static int cdev_open(int flags)
{
	int type = SOCK_STREAM | (flags & O_CLOEXEC ? SOCK_CLOEXEC : 0) | (flags & O_NONBLOCK ? SOCK_NONBLOCK : 0);
	const struct engines *engines = engines_get();
	struct event_channel *ch;
	int ends[2], err;

	if (!engines)
		return -1;
	ch = space_get(sizeof(*ch));
	if (!ch)
		return fail_minus_one(ENOMEM);
	ch->engines = engines;
	if (socketpair(AF_UNIX, type, 0, ends)) {
		err = errno == EMFILE ? trouble_with_descriptors(errno) : errno;
		goto free_channel;
	}
	err = !identify(ends[0], &ch->theirs) || fcntl(ends[1], F_SETFD, FD_CLOEXEC) ? errno : 0;
	atomic_store(&first_fd, engine_fd_first());
	ch->fd = ends[1] = engine_fd_away(ends[1]);
	if (!err)
		err = -channel_start(ch);
	if (!err)
		return ends[0];
	close(ends[0]);
	close(ends[1]);
free_channel:
	space_put(ch, sizeof(*ch));
	return fail_minus_one(err);
}

/* ---- write -------------------------------------------------------------------------------------- */

/* A write() to a channel. */
struct order {
	int fd;
	int held; /* a copy of fd, or -1 */
	struct identity file;
	const void *buf;
	size_t len;
};

static ssize_t carry_out(struct event_channel *ch, struct caller *caller, const struct order *o)
{
	const struct ucma_host host = {.route = host_route,
				       .channel = host_channel,
				       .copy = memory_copy,
				       .bind = host_bind,
				       .listen = host_listen,
				       .join = host_join,
				       .leave = host_leave,
				       .told = host_told,
				       .first_port = host_first_port,
				       .ctx = caller,
				       .turn = &ch->turn};
	size_t count = ch->engines->count;
	struct ucma_end ends[UCMA_ENDS_MAX];
	ssize_t rc;

	for (size_t i = 0; i < count; i++) {
		struct ibv_device *device = device_get((unsigned)i);

		ends[i] = (struct ucma_end){.cm = engine_cm(ch->ends[i].engine),
					    .channel = ch->ends[i].cm,
					    .node_guid = ibv_get_device_guid(device),
					    .device_index = (uint32_t)ibv_get_device_index(device)};
	}
	rc = ucma_command(&host, ends, count, o->buf, o->len, engine_now_ns(ch->engines->of[0]));
	bytes_take(ch, o->fd, o->held);
	if (caller->left)
		bytes_take(caller->left, caller->left_fd, -1);
	for (size_t i = 0; i < count; i++)
		trouble_with_command(&caller->trouble, ch->engines->of[i], rc < 0 ? (int)rc : 0);
	return rc;
}

/*
 * Takes the engines' locks, and looks for the channel with the locks held, because another thread may have closed it. A
 * child of fork has a copy of the descriptor, but no channel. Errors are explained without the locks: standard error
 * may be a pipe that nobody reads.
 */
static ssize_t command(const struct engines *engines, const struct order *o)
{
	struct caller caller = {.engines = engines};
	struct event_channel *ch;
	ssize_t rc = -EBADF;

	lock_all(engines, 0);
	ch = channel_with(&o->file);
	if (ch && !is_theirs(ch, engines))
		rc = -EACCES; /* as in cdev_write(): of the parent of this process */
	else if (ch)
		rc = carry_out(ch, &caller, o);
	unlock_all(engines, 0);
	trouble_explain(&caller.trouble);
	return rc;
}

static ssize_t command_uncancelled(const struct engines *engines, const struct order *o)
{
	ssize_t rc;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	rc = command(engines, o);
	pthread_setcancelstate(cancel, &cancel);
	return rc;
}

/* False also for a descriptor that is closed. */
static bool is_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && flags & O_NONBLOCK;
}

static void release_order(void *order)
{
	const struct order *o = order;

	release(o->held, o->fd);
}

/*
 * A system call keeps its file open until it returns. A copy of the descriptor does the same here: rping closes a
 * channel on which another of its threads waits, and that thread must go on waiting. A signal and the thread's
 * cancellation end the wait, as they do in the kernel's device. A debugger or CRIU does not: who stops a thread in poll()
 * and looks at it makes it fail with EINTR, but ppoll() without a limit goes on.
 */
static ssize_t wait_for_event(const struct engines *engines, struct order *o)
{
	struct pollfd p = {.events = POLLIN};
	ssize_t rc;

	o->held = hold(o->fd, &o->file);
	/* Another thread has closed it since the command: it could as well have done so before. */
	if (o->held < 0)
		return -EBADF;
	p.fd = o->held;
	pthread_cleanup_push(release_order, o);
	for (rc = -EAGAIN; rc == -EAGAIN && !is_nonblocking(o->held);) {
		for (size_t i = 0; i < engines->count; i++)
			engine_hand_over(engines->of[i]);
		rc = ppoll(&p, 1, NULL, NULL) < 0 ? -errno : command_uncancelled(engines, o);
	}
	pthread_cleanup_pop(1);
	return rc;
}

static bool cdev_write(int fd, const void *buf, size_t len, ssize_t *written)
{
	const struct engines *engines = atomic_load(&newest_engines);
	struct order o = {.fd = fd, .held = -1, .buf = buf, .len = len};
	/* In a child of fork: Linux answers so, because the child has credentials of its own. */
	ssize_t rc = -EACCES;

	if (!identify(fd, &o.file) || !channel_with(&o.file))
		return false;
	if (engines && !engine_is_lost(engines->of[0]))
		rc = command_uncancelled(engines, &o);
	if (rc == -EAGAIN && !is_nonblocking(fd))
		rc = wait_for_event(engines, &o);
	if (rc < 0)
		errno = (int)-rc;
	*written = rc < 0 ? -1 : rc;
	return true;
}

static bool cdev_has(dev_t dev, ino_t ino)
{
	return channel_with(&(struct identity){dev, ino}) != NULL;
}

static const struct cdev_ops ops = {.open = cdev_open, .write = cdev_write, .has = cdev_has};

static void fork_lock(void)
{
	pthread_mutex_lock(&channels_lock);
}

static void fork_unlock(void)
{
	pthread_mutex_unlock(&channels_lock);
}

/* Without the preloaded library there is no device, which librdmacm reports. */
__attribute__((constructor)) static void cdev_announce(void)
{
	cdev_register_fn *announce = (cdev_register_fn *)dlsym(RTLD_DEFAULT, CDEV_REGISTER);

	if (!announce)
		return;
	pthread_atfork(fork_lock, fork_unlock, fork_unlock);
	announce(&ops);
}
