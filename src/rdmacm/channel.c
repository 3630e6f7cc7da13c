/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels as descriptors. The program holds one end of a pair of sockets, and the library holds the other. The
 * program's end has a byte to read for each event in the queue, so that poll() and epoll, edge-triggered too, work as on
 * the kernel's device. A hang-up of our end shows that the program has closed every copy of its end.
 *
 * The engine's lock is held here, except where a comment says otherwise. A thread of the program that waits for an event
 * does not hold it: it waits in poll() on the program's end.
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
#include <unistd.h>

#include "base/list.h"
#include "engine/engine.h"
#include "rdmacm/source.h"
#include "rdmacm/trouble.h"
#include "rdmacm/ucma.h"
#include "verbs/cdev.h"
#include "verbs/explain.h"
#include "verbs/objects.h"

enum { DEVICE = 0 }; /* the device whose addresses and queue pairs connections use */

struct event_channel {
	struct list link;
	struct engine *engine; /* a child of fork has one that is lost */
	struct cm_channel *cm;
	int fd;       /* our end */
	dev_t dev;    /* these two identify the program's end */
	ino_t ino;
	size_t bytes; /* that the program can read */
};

static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER; /* inside the engine's */
static struct list channels = {&channels, &channels};
static _Atomic int first_fd; /* as engine_fd_first() has it */
static _Atomic(struct engine *) newest_engine; /* one for each process; a child of fork starts another */

/* ---- which channel a descriptor is -------------------------------------------------------------- */

/* Called by any thread. The channel that it lends may be used only with the engine's lock held. */
static struct event_channel *channel_with(dev_t dev, ino_t ino)
{
	struct event_channel *found = NULL;

	pthread_mutex_lock(&channels_lock);
	for (struct list *l = channels.next; l != &channels && !found; l = l->next) {
		struct event_channel *ch = container_of(l, struct event_channel, link);

		if (ch->ino == ino && ch->dev == dev)
			found = ch;
	}
	pthread_mutex_unlock(&channels_lock);
	return found;
}

static struct event_channel *device_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? NULL : channel_with(st.st_dev, st.st_ino);
}

static int host_channel(void *ctx, int fd, struct cm_channel **out)
{
	struct event_channel *ch = device_of(fd);

	if (!ch)
		return fcntl(fd, F_GETFD) < 0 ? -ENOENT : -EINVAL;
	*out = ch->cm;
	return 0;
}

/* A command, and what goes wrong with it. */
struct caller {
	struct engine *engine;
	struct trouble trouble;
};

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

static int host_listen(void *ctx, const struct cm_id *id, int backlog)
{
	struct caller *c = ctx;
	struct cm_id_info info;
	struct flow at = {0};

	cm_id_query(id, &info);
	memcpy(at.src, info.local.ip, sizeof(at.src));
	at.sport = info.local.port;
	at.ifindex = info.local.ifindex;
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

/* ---- a byte for each event ---------------------------------------------------------------------- */

/* If the socket is full it is readable anyway; the bytes that are missing are sent as the program takes events. */
static void bytes_add(struct event_channel *ch)
{
	static const char byte;

	while (ch->bytes < cm_channel_events(ch->cm) &&
	       send(ch->fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(byte))
		ch->bytes++;
}

/* fd is the program's end. */
static void bytes_take(struct event_channel *ch, int fd)
{
	char byte;

	while (ch->bytes > cm_channel_events(ch->cm) && recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) == sizeof(byte))
		ch->bytes--;
	bytes_add(ch);
}

static void event(struct cm_channel *cm)
{
	bytes_add(cm_channel_owner(cm));
}

static void destroy(struct event_channel *ch)
{
	pthread_mutex_lock(&channels_lock);
	list_remove(&ch->link);
	pthread_mutex_unlock(&channels_lock);
	cm_channel_destroy(ch->cm, engine_now_ns());
	engine_leave_unused(ch->engine);
	close(ch->fd);
	free(ch);
}

static bool is_hung_up(const struct event_channel *ch)
{
	struct pollfd p = {.fd = ch->fd};

	return poll(&p, 1, 0) > 0 && p.revents & POLLHUP;
}

static void hung_up(void)
{
	struct list *next;

	for (struct list *l = channels.next; l != &channels; l = next) {
		struct event_channel *ch = container_of(l, struct event_channel, link);

		next = l->next;
		if (!engine_is_lost(ch->engine) && is_hung_up(ch))
			destroy(ch);
	}
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
		cm_channel_destroy(ch->cm, engine_now_ns());
		goto unlock;
	}
	atomic_store(&newest_engine, ch->engine);
	pthread_mutex_lock(&channels_lock);
	list_append(&channels, &ch->link);
	pthread_mutex_unlock(&channels_lock);
unlock:
	engine_unlock(ch->engine);
	return err;
}

static int cdev_open(int flags)
{
	int type = SOCK_STREAM | (flags & O_CLOEXEC ? SOCK_CLOEXEC : 0) | (flags & O_NONBLOCK ? SOCK_NONBLOCK : 0);
	struct event_channel *ch = calloc(1, sizeof(*ch));
	int ends[2], err;
	struct stat st;

	if (!ch)
		return fail_minus_one(ENOMEM);
	list_init(&ch->link);
	ch->engine = device_engine(DEVICE);
	if (!ch->engine) {
		err = errno;
		goto free_channel;
	}
	if (socketpair(AF_UNIX, type, 0, ends)) {
		err = errno == EMFILE ? trouble_with_descriptors(errno) : errno;
		goto free_channel;
	}
	err = fstat(ends[0], &st) || fcntl(ends[1], F_SETFD, FD_CLOEXEC) ? errno : 0;
	atomic_store(&first_fd, engine_fd_first());
	ch->fd = ends[1] = engine_fd_away(ends[1]);
	ch->dev = st.st_dev;
	ch->ino = st.st_ino;
	if (!err)
		err = -channel_start(ch);
	if (!err)
		return ends[0];
	close(ends[0]);
	close(ends[1]);
free_channel:
	free(ch);
	return fail_minus_one(err);
}

/* ---- write -------------------------------------------------------------------------------------- */

/*
 * Takes the engine's lock, and looks up the descriptor with the lock held, because another thread may have closed it. A
 * child of fork has a copy of the descriptor, but no channel. Errors are explained without the lock: standard error
 * may be a pipe that nobody reads.
 */
static ssize_t command(struct engine *engine, int fd, const void *buf, size_t len)
{
	struct caller caller = {.engine = engine, .trouble.first_port = source_first_port()};
	const struct ucma_host host = {.route = host_route,
				       .channel = host_channel,
				       .copy = memory_copy,
				       .listen = host_listen,
				       .join = host_join,
				       .leave = host_leave,
				       .told = host_told,
				       .ctx = &caller,
				       .node_guid = ibv_get_device_guid(device_get(DEVICE)),
				       .device_index = (uint32_t)ibv_get_device_index(device_get(DEVICE)),
				       .port_first = caller.trouble.first_port};
	struct event_channel *ch;
	ssize_t rc = -EBADF;

	engine_lock(engine);
	ch = device_of(fd);
	if (ch && ch->engine != engine)
		rc = -EACCES; /* as in command_done(): of the parent of this process */
	if (ch && ch->engine == engine) {
		rc = ucma_command(&host, engine_cm(engine), ch->cm, buf, len, engine_now_ns());
		bytes_take(ch, fd);
		trouble_with_command(&caller.trouble, engine, rc < 0 ? (int)rc : 0);
	}
	engine_unlock(engine);
	trouble_explain(&caller.trouble);
	return rc;
}

static bool may_wait(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

/* A signal and the thread's cancellation end the wait, as they do in the kernel's device. */
static int wait_for_event(struct engine *engine, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	engine_hand_over(engine);
	return poll(&p, 1, -1) < 0 ? -errno : 0;
}

static ssize_t command_done(struct engine *engine, int fd, const void *buf, size_t len)
{
	/* In a child of fork: Linux answers so, because the child has credentials of its own. */
	ssize_t rc = -EACCES;
	int cancel;

	while (engine && !engine_is_lost(engine)) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		rc = command(engine, fd, buf, len);
		pthread_setcancelstate(cancel, &cancel);
		if (rc != -EAGAIN || !may_wait(fd))
			break;
		rc = wait_for_event(engine, fd);
		if (rc)
			break;
	}
	return rc;
}

static void close_held(void *fd)
{
	if (*(int *)fd >= 0)
		close(*(int *)fd);
}

/*
 * A system call keeps its file open until it returns. A copy of the descriptor does the same here: rping closes a channel
 * on which another of its threads waits, and that thread must go on waiting.
 */
static bool cdev_write(int fd, const void *buf, size_t len, ssize_t *written)
{
	struct engine *engine = atomic_load(&newest_engine);
	ssize_t rc;
	int held;

	/* Only a channel is copied: closing the copy of any other file would drop the program's POSIX locks on it. */
	if (!device_of(fd))
		return false;
	held = fcntl(fd, F_DUPFD_CLOEXEC, atomic_load(&first_fd));
	pthread_cleanup_push(close_held, &held);
	rc = command_done(engine, held >= 0 ? held : fd, buf, len);
	pthread_cleanup_pop(1);
	if (rc < 0)
		errno = (int)-rc;
	*written = rc < 0 ? -1 : rc;
	return true;
}

static bool cdev_has(dev_t dev, ino_t ino)
{
	return channel_with(dev, ino) != NULL;
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
