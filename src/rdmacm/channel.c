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
 * The engine's lock is held here, except where a comment says otherwise. A thread of the program that waits for an
 * event does not hold it: it waits in poll() on the program's end.
 */
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
	DEVICE = 0,      /* the device whose addresses and queue pairs connections use */
	BYTES_MANY = 64, /* that the program has not read; a socket holds some 270 */
	BUCKETS = 4096
};

/* No two files that are open have the same. */
struct identity {
	dev_t dev;
	ino_t ino;
};

struct event_channel {
	struct event_channel *next_by_file, *next_by_fd;
	struct engine *engine; /* a child of fork has one that is lost */
	struct cm_channel *cm;
	int fd;                 /* our end */
	struct identity theirs; /* of the program's end */
	size_t bytes;           /* that the program can read */
	uint64_t told;          /* cm_channel_added() when it was last told */
};

static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER; /* inside the engine's */
/* Channels in a bucket by the number of the program's end, which the kernel counts up, and by our end. */
static struct event_channel *by_file[BUCKETS], *by_fd[BUCKETS];
static _Atomic int first_fd;                   /* as engine_fd_first() has it */
static _Atomic(struct engine *) newest_engine; /* one for each process; a child of fork starts another */

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

/* The channel of that engine's whose end here has that number: a child of fork has copies of its parent's channels. */
static struct event_channel *channel_at(int fd, const struct engine *engine)
{
	struct event_channel *ch;

	pthread_mutex_lock(&channels_lock);
	ch = by_fd[fd % BUCKETS];
	while (ch && (ch->fd != fd || ch->engine != engine))
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
	struct engine *engine;
	struct trouble trouble;
	struct event_channel *left; /* by an id that goes to another channel */
	int left_fd;
};

static int host_channel(void *ctx, int fd, struct cm_channel **out)
{
	struct caller *c = ctx;
	struct event_channel *ch;
	struct identity file;

	if (!identify(fd, &file))
		return -ENOENT;
	ch = channel_with(&file);
	if (!ch || ch->engine != c->engine)
		return -EINVAL;
	c->left = ch;
	c->left_fd = fd;
	*out = ch->cm;
	return 0;
}

static uint16_t host_first_port(void *ctx)
{
	struct caller *c = ctx;

	return c->trouble.first_port = source_first_port();
}

static int host_route(void *ctx, struct cm_addr *src, struct cm_addr *dst)
{
	static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};
	struct cm_addr own[ENGINE_ADDRESSES_MAX];
	struct caller *c = ctx;
	uint32_t n = 0;

	for (; n < ENGINE_ADDRESSES_MAX; n++) {
		struct cm_addr *a = &own[n];

		*a = (struct cm_addr){0};
		if (!engine_chosen_address(c->engine, n, a->ip, &a->ifindex))
			break;
		a->family = memcmp(a->ip, ipv4, sizeof(ipv4)) ? CM_IPV6 : CM_IPV4;
	}
	return trouble_with_route(&c->trouble, dst, n ? source_find_among(own, n, src, dst) : source_find(src, dst));
}

static void host_told(void *ctx, const struct cm_event *e, const struct cm_id_info *info)
{
	struct caller *c = ctx;

	trouble_with_event(&c->trouble, e, info);
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
	struct caller *c = ctx;
	struct flow at = flow_from(id);

	return engine_bind(c->engine, cm_id_listener(id), &at, alone);
}

static int host_listen(void *ctx, const struct cm_id *id, int backlog)
{
	struct caller *c = ctx;
	struct flow at = flow_from(id);

	return engine_listen(c->engine, cm_id_listener(id), &at, backlog > 0 ? backlog : CM_BACKLOG_MAX);
}

static int host_join(void *ctx, const uint8_t gid[16], uint32_t ifindex)
{
	struct caller *c = ctx;

	return engine_join(c->engine, gid, ifindex);
}

static void host_leave(void *ctx)
{
	struct caller *c = ctx;

	engine_leave_unused(c->engine);
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
	struct event_channel *ch = cm_channel_owner(cm);
	uint64_t added = cm_channel_added(cm);

	if (ch->told != added && cm_channel_events(cm))
		byte_send(ch);
	ch->told = added;
}

/* Takes the bytes that are too many. fd is the program's end, or was a moment ago; `held`, or -1, is a copy of it. */
static void bytes_take(struct event_channel *ch, int fd, int held)
{
	size_t events = cm_channel_events(ch->cm), keep = events ? 1 : 0;
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

static void destroy(struct event_channel *ch)
{
	channel_remove(ch);
	cm_channel_destroy(ch->cm, engine_now_ns(ch->engine));
	engine_leave_unused(ch->engine);
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
	struct event_channel *ch = channel_at(fd, atomic_load(&newest_engine));

	if (ch && is_hung_up(ch))
		destroy(ch);
}

static const struct engine_cm_sink sink = {.event = event, .hung_up = hung_up};

/* ---- open --------------------------------------------------------------------------------------- */

/* Takes the engine's lock. 0 or a negative errno. */
static int channel_start(struct event_channel *ch)
{
	int err;

	engine_lock(ch->engine);
	engine_set_cm_sink(ch->engine, &sink);
	err = cm_channel_create(engine_cm(ch->engine), ch, &ch->cm);
	if (err)
		goto unlock;
	err = engine_watch(ch->engine, ch->fd);
	if (err) {
		cm_channel_destroy(ch->cm, engine_now_ns(ch->engine));
		goto unlock;
	}
	atomic_store(&newest_engine, ch->engine);
	channel_add(ch);
unlock:
	engine_unlock(ch->engine);
	return err;
}

static int cdev_open(int flags)
{
	int type = SOCK_STREAM | (flags & O_CLOEXEC ? SOCK_CLOEXEC : 0) | (flags & O_NONBLOCK ? SOCK_NONBLOCK : 0);
	struct engine *engine = device_engine(DEVICE);
	struct event_channel *ch;
	int ends[2], err;

	if (!engine)
		return -1;
	ch = space_get(sizeof(*ch));
	if (!ch)
		return fail_minus_one(ENOMEM);
	ch->engine = engine;
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

/*
 * Takes the engine's lock, and looks for the channel with the lock held, because another thread may have closed it. A
 * child of fork has a copy of the descriptor, but no channel. Errors are explained without the lock: standard error
 * may be a pipe that nobody reads.
 */
static ssize_t command(struct engine *engine, const struct order *o)
{
	struct caller caller = {.engine = engine};
	const struct ucma_host host = {.route = host_route,
				       .channel = host_channel,
				       .copy = memory_copy,
				       .bind = host_bind,
				       .listen = host_listen,
				       .join = host_join,
				       .leave = host_leave,
				       .told = host_told,
				       .first_port = host_first_port,
				       .ctx = &caller,
				       .node_guid = ibv_get_device_guid(device_get(DEVICE)),
				       .device_index = (uint32_t)ibv_get_device_index(device_get(DEVICE))};
	struct event_channel *ch;
	ssize_t rc = -EBADF;

	engine_lock(engine);
	ch = channel_with(&o->file);
	if (ch && ch->engine != engine)
		rc = -EACCES; /* as in cdev_write(): of the parent of this process */
	if (ch && ch->engine == engine) {
		rc = ucma_command(&host, engine_cm(engine), ch->cm, o->buf, o->len, engine_now_ns(engine));
		bytes_take(ch, o->fd, o->held);
		if (caller.left)
			bytes_take(caller.left, caller.left_fd, -1);
		trouble_with_command(&caller.trouble, engine, rc < 0 ? (int)rc : 0);
	}
	engine_unlock(engine);
	trouble_explain(&caller.trouble);
	return rc;
}

static ssize_t command_uncancelled(struct engine *engine, const struct order *o)
{
	ssize_t rc;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	rc = command(engine, o);
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
 * cancellation end the wait, as they do in the kernel's device.
 */
static ssize_t wait_for_event(struct engine *engine, struct order *o)
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
		engine_hand_over(engine);
		rc = poll(&p, 1, -1) < 0 ? -errno : command_uncancelled(engine, o);
	}
	pthread_cleanup_pop(1);
	return rc;
}

static bool cdev_write(int fd, const void *buf, size_t len, ssize_t *written)
{
	struct engine *engine = atomic_load(&newest_engine);
	struct order o = {.fd = fd, .held = -1, .buf = buf, .len = len};
	/* In a child of fork: Linux answers so, because the child has credentials of its own. */
	ssize_t rc = -EACCES;

	if (!identify(fd, &o.file) || !channel_with(&o.file))
		return false;
	if (engine && !engine_is_lost(engine))
		rc = command_uncancelled(engine, &o);
	if (rc == -EAGAIN && !is_nonblocking(fd))
		rc = wait_for_event(engine, &o);
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
