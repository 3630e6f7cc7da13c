/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owns the mappings and bells of all rings.
 *
 * Looking into a ring costs a cache line and a look at the sockets a system call, so while packets come through memory the
 * sockets are looked at every LOWER_NS only. Before the caller sleeps (flush) every ring is told so; from then on the first
 * packet put rings the bell, and packets that came in between make deadline_ns() say that there is no time to sleep.
 */
#include "io/shm.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd_away.h"
#include "io/shm_ring.h"

enum {
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
	BUFFER_BYTES = 128 << 10, /* two trains, in the L2 cache */
	FLOWS_MAX = 64,
	QPN_AT = 5, /* in a BTH */
	BTH_BYTES = 12,
	LOWER_NS = 20000,      /* the sockets are looked at this often while packets come through memory, */
	LOWER_IDLE_NS = 5000,  /* this often when none have come for a moment, */
	BUSY_NS = 100000,      /* and always after so long without any */
	DRAIN_LOOKS = 40,      /* vain looks after which the sockets hold nothing that is older than a ring */
	DRAIN_LOOKS_MAX = 1000,
	BELLS_MAX = 16,        /* taken at a time */
	VAIN_BELLS_MAX = 1000  /* in a row, from a peer that puts nothing */
};

struct ring_out {
	struct shm_memory *memory; /* NULL: there is no ring */
	struct shm_putter putter;
	int memory_fd, bell; /* -1: none */
	bool dirty;          /* something was put and not published */
	uint64_t full_ns;    /* since when it takes nothing; 0: it does */
	uint32_t full_head;  /* the other end's position then */
	uint64_t again_ns;   /* before that no other is wanted */
};

struct ring_in {
	struct shm_memory *memory;
	struct shm_taker taker;
	int bell;
	bool mine;    /* the memory is that of the ring to ourselves */
	bool begun;   /* the sockets hold nothing older */
	bool ending;  /* its process has ended */
	uint32_t looks, vain; /* before it begins */
	uint32_t vain_bells;
};

struct shm {
	struct io io;
	struct io *lower;
	struct shm_config config;
	int epoll_fd; /* the bells */
	uint64_t came_ns;  /* when packets last came through memory */
	uint64_t looked_ns; /* at the sockets */

	uint8_t live[SHM_SLOTS]; /* slots with a ring to us */
	unsigned live_count, turn;
	struct ring_in in[SHM_SLOTS];
	struct ring_out out[SHM_SLOTS];
	uint64_t wanted[2]; /* slots, a bit each */

	/* The train that is being handed out, and the memory of all that were lent. */
	uint8_t *buffer;
	uint32_t used;
	uint32_t flow_count;
	const uint8_t *at;
	const struct flow *flow;
	uint32_t left, segment, index;
	struct flow flows[FLOWS_MAX];
};

static const struct io_ops shm_ops;

static struct shm *of(struct io *io)
{
	assert(io->ops == &shm_ops);
	return (struct shm *)io;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int shm_open_io(struct io **io, struct io *lower, const struct shm_config *config)
{
	struct shm *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->buffer = malloc(BUFFER_BYTES);
	s->epoll_fd = fd_away(epoll_create1(EPOLL_CLOEXEC));
	if (!s->buffer || s->epoll_fd < 0) {
		int err = s->buffer ? -errno : -ENOMEM;

		close_fd(&s->epoll_fd);
		free(s->buffer);
		free(s);
		return err;
	}
	s->io.ops = &shm_ops;
	s->lower = lower;
	s->config = *config;
	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		s->in[i].bell = -1;
		s->out[i].bell = s->out[i].memory_fd = -1;
	}
	*io = &s->io;
	return 0;
}

/* ---- rings ---- */

static void free_in(struct shm *s, unsigned slot)
{
	struct ring_in *r = &s->in[slot];

	if (!r->memory)
		return;
	if (!r->mine)
		munmap(r->memory, SHM_MEMORY_BYTES);
	/* An epoll instance keeps it as long as anybody has a descriptor, and the peer has one. */
	if (r->bell >= 0)
		epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, r->bell, NULL);
	close_fd(&r->bell);
	*r = (struct ring_in){.bell = -1};
	for (unsigned i = 0; i < s->live_count; i++) {
		if (s->live[i] == slot)
			s->live[i] = s->live[--s->live_count];
	}
}

static void free_out(struct shm *s, unsigned slot)
{
	struct ring_out *r = &s->out[slot];

	if (!r->memory)
		return;
	if (s->in[slot].mine)
		free_in(s, slot);
	munmap(r->memory, SHM_MEMORY_BYTES);
	close_fd(&r->memory_fd);
	close_fd(&r->bell);
	*r = (struct ring_out){.memory_fd = -1, .bell = -1, .again_ns = r->again_ns};
	s->config.counters->shm_peers--;
}

static void *map(int fd)
{
	void *p = mmap(NULL, SHM_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, SHM_MEMORY_BYTES, MADV_DONTDUMP);
	return p;
}

/* A memory file that cannot shrink, so that no access to it faults. */
static int make_memory(void)
{
	struct rlimit limit;
	int fd, err;

	/* To pass it would be a signal. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < SHM_MEMORY_BYTES)
		return -EFBIG;
	fd = fd_away(memfd_create("verbena-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (fd < 0)
		return -errno;
	/* All its pages now: where memory files are limited a page that is missing later would be a signal. */
	err = -posix_fallocate(fd, 0, SHM_MEMORY_BYTES);
	if (!err && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static void begin_in(struct shm *s, unsigned slot, struct shm_memory *memory, int bell)
{
	struct ring_in *r = &s->in[slot];

	*r = (struct ring_in){.memory = memory, .bell = bell};
	shm_taker_init(&r->taker, memory);
	s->live[s->live_count++] = (uint8_t)slot;
	shm_accept(&r->taker);
}

int shm_make(struct io *io, unsigned slot, uint64_t now_ns, int fds[2])
{
	struct shm *s = of(io);
	struct ring_out *r = &s->out[slot];
	void *memory;
	int err;

	if (r->memory)
		return -EEXIST;
	r->again_ns = now_ns + SHM_AGAIN_NS;
	r->memory_fd = make_memory();
	if (r->memory_fd < 0) {
		err = r->memory_fd;
		r->memory_fd = -1;
		return err;
	}
	memory = map(r->memory_fd);
	r->bell = fd_away(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (!memory || r->bell < 0) {
		err = -errno;
		if (memory)
			munmap(memory, SHM_MEMORY_BYTES);
		close_fd(&r->memory_fd);
		close_fd(&r->bell);
		return err;
	}
	r->memory = memory;
	shm_memory_init(memory);
	shm_putter_init(&r->putter, memory);
	r->full_ns = 0;
	s->config.counters->shm_peers++;
	if (slot == s->config.slot) {
		/* No bell: deadline_ns() shows the sender's own thread what it sent. */
		begin_in(s, slot, memory, -1);
		s->in[slot].mine = true;
	}
	fds[0] = r->memory_fd;
	fds[1] = r->bell;
	return 0;
}

void shm_lose(struct io *io, unsigned slot, uint64_t now_ns)
{
	struct shm *s = of(io);

	free_out(s, slot);
	s->out[slot].again_ns = now_ns + SHM_AGAIN_NS;
}

static bool is_ring_memory(int fd)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS) == SEALS && !fstat(fd, &st) && st.st_size == SHM_MEMORY_BYTES;
}

int shm_take_ring(struct io *io, unsigned slot, const int fds[2])
{
	struct shm *s = of(io);
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = slot};
	struct shm_memory *memory = NULL;
	int bell = fds[1], err = 0, flags = fcntl(bell, F_GETFL);

	if (slot >= SHM_SLOTS || slot == s->config.slot)
		err = -EINVAL;
	else if (!is_ring_memory(fds[0]) || flags < 0 || !(flags & O_NONBLOCK))
		err = -EPROTO;
	else if (!(memory = map(fds[0])))
		err = -ENOMEM;
	else if (!shm_memory_is_known(memory))
		err = -EPROTO;
	close(fds[0]);
	if (!err)
		free_in(s, slot);
	/* One that is no eventfd may be readable for ever: that is noticed like too many bells. */
	if (!err && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, bell, &ev) < 0)
		err = -errno;
	if (!err) {
		begin_in(s, slot, memory, bell);
		return 0;
	}
	if (memory)
		munmap(memory, SHM_MEMORY_BYTES);
	close(bell);
	return err;
}

void shm_end_ring(struct io *io, unsigned slot)
{
	struct shm *s = of(io);
	struct ring_in *r = &s->in[slot];

	r->ending = true;
	if (r->memory && !shm_has_some(&r->taker))
		free_in(s, slot);
}

bool shm_reaches(const struct io *io, unsigned slot)
{
	const struct shm *s = of((struct io *)io);

	return slot < SHM_SLOTS && s->out[slot].memory && shm_is_accepted(&s->out[slot].putter);
}

static bool is_own_address(const struct shm *s, const uint8_t gid[16])
{
	for (size_t i = 0; i < s->config.address_count; i++) {
		if (!memcmp(s->config.addresses[i], gid, 16))
			return true;
	}
	return false;
}

static bool is_within_host(const struct shm *s, const struct flow *f)
{
	return is_own_address(s, f->src) && is_own_address(s, f->dst);
}

/* ---- send ---- */

int shm_next_wanted(struct io *io)
{
	struct shm *s = of(io);

	for (unsigned i = 0; i < 2; i++) {
		if (s->wanted[i]) {
			unsigned bit = (unsigned)__builtin_ctzll(s->wanted[i]);

			s->wanted[i] &= s->wanted[i] - 1;
			return (int)(i * 64 + bit);
		}
	}
	return -1;
}

/* The ring that a train takes, or NULL. */
static struct ring_out *ring_of(struct shm *s, const struct pkt *p, uint64_t now_ns)
{
	const uint8_t *qpn = p->data + QPN_AT;
	struct ring_out *r;
	unsigned slot;

	/* QPN 1 is every process's, and the last slot holds the multicast QPN. */
	if (p->len < BTH_BYTES || qpn[0] >> 1 >= SHM_SLOTS || (!qpn[0] && !qpn[1] && qpn[2] <= 1))
		return NULL;
	slot = qpn[0] >> 1;
	r = &s->out[slot];
	if (!r->memory) {
		if (now_ns >= r->again_ns && is_within_host(s, p->flow))
			s->wanted[slot / 64] |= UINT64_C(1) << slot % 64;
		return NULL;
	}
	if (!shm_is_accepted(&r->putter))
		return NULL;
	if (r->putter.has_flow && !memcmp(&r->putter.flow, p->flow, sizeof(*p->flow)))
		return r;
	return is_within_host(s, p->flow) ? r : NULL;
}

static void publish(struct ring_out *r)
{
	static const uint64_t one = 1;

	r->dirty = false;
	if (shm_publish(&r->putter) && r->bell >= 0 && write(r->bell, &one, sizeof(one)) < 0) {
		/* EAGAIN: it has been rung often enough. */
	}
}

/* The ring takes nothing now. True: the caller waits; false: what does not fit is dropped. */
static bool is_worth_waiting(struct shm *s, struct ring_out *r, uint64_t now_ns)
{
	uint32_t head = r->putter.head;

	publish(r);
	if (!r->full_ns || head != r->full_head) {
		r->full_ns = now_ns ? now_ns : 1;
		r->full_head = head;
	}
	if (now_ns >= r->full_ns + SHM_FULL_NS_MAX)
		return false;
	s->config.counters->shm_full++;
	return true;
}

static uint32_t train_bytes(const struct pkt *p, size_t packets)
{
	return p[0].len * (uint32_t)(packets - 1) + p[packets - 1].len;
}

static size_t train_of(const struct pkt *p, size_t n)
{
	size_t packets = p->train > 1 ? p->train : 1;

	return packets < n ? packets : n;
}

/* False: wait. */
static bool put_train(struct shm *s, struct ring_out *r, const struct pkt *p, size_t packets, uint64_t now_ns)
{
	struct io_counters *c = s->config.counters;
	uint32_t len = train_bytes(p, packets);

	switch (shm_put(&r->putter, p->flow, p->data, len, p->len)) {
	case SHM_DONE:
		r->dirty = true;
		r->full_ns = 0;
		c->shm_tx_packets += packets;
		c->shm_tx_bytes += len;
		return true;
	case SHM_NO_ROOM:
		if (is_worth_waiting(s, r, now_ns))
			return false;
		c->shm_dropped += packets;
		return true;
	default:
		c->shm_broken++;
		shm_lose(&s->io, (unsigned)(r - s->out), now_ns);
		return true;
	}
}

/* Sends the packets from `from` on below, as far as no ring takes them; *to is set behind them. */
static size_t send_below(struct shm *s, const struct pkt *pkts, size_t from, size_t n, uint64_t now_ns, size_t *to)
{
	size_t end = from;

	do {
		end += train_of(&pkts[end], n - end);
	} while (end < n && !ring_of(s, &pkts[end], now_ns));
	*to = end;
	return io_send(s->lower, pkts + from, end - from, now_ns);
}

static size_t shm_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	struct shm *s = of(io);
	struct ring_out *last = NULL;
	size_t done = 0;

	while (done < n) {
		struct ring_out *r = ring_of(s, &pkts[done], now_ns);
		size_t packets, to, sent;

		if (last && last != r && last->dirty)
			publish(last);
		last = r;
		if (!r) {
			sent = send_below(s, pkts, done, n, now_ns, &to);
			done += sent;
			if (done < to)
				return done;
			continue;
		}
		packets = train_of(&pkts[done], n - done);
		if (!put_train(s, r, &pkts[done], packets, now_ns))
			return done;
		done += packets;
	}
	if (last && last->dirty)
		publish(last);
	return done;
}

/* ---- receive ---- */

static void give_up(struct shm *s, unsigned slot)
{
	s->config.counters->shm_broken++;
	free_in(s, slot);
}

/* A train for another slot, or from another host, is not this process's to judge. */
static bool is_for_us(const struct shm *s, const uint8_t *data, uint32_t segment)
{
	return segment >= BTH_BYTES && data[QPN_AT] >> 1 == s->config.slot;
}

/* Hands out packets of the train at hand. */
static size_t hand_out(struct shm *s, struct pkt *pkts, size_t n, size_t max)
{
	for (; s->left && n < max; n++) {
		uint32_t take = s->left < s->segment ? s->left : s->segment;

		pkts[n] = (struct pkt){.data = (uint8_t *)s->at,
				       .flow = s->flow,
				       .len = take,
				       .ip_id = (uint16_t)s->index++,
				       .train = (uint16_t)((s->left + s->segment - 1) / s->segment)};
		s->at += take;
		s->left -= take;
	}
	return n;
}

/* Takes the next train of a ring into the buffer. SHM_DONE with nothing at hand: it was dropped. */
static enum shm_verdict take_train(struct shm *s, struct ring_in *r)
{
	struct io_counters *c = s->config.counters;
	struct shm_train t;
	uint8_t *to = s->buffer + s->used;
	enum shm_verdict v = shm_take(&r->taker, to, BUFFER_BYTES - s->used, &t);

	if (v != SHM_DONE)
		return v;
	/* Its flow is the peer's word, too. */
	if (t.new_flow && !is_within_host(s, &r->taker.flow))
		return SHM_BAD;
	if (!is_for_us(s, to, t.segment)) {
		c->shm_dropped++;
		return v;
	}
	if (t.new_flow || !s->flow_count || memcmp(&s->flows[s->flow_count - 1], &r->taker.flow, sizeof(struct flow)))
		s->flows[s->flow_count++] = r->taker.flow;
	s->flow = &s->flows[s->flow_count - 1];
	s->at = to;
	s->left = t.len;
	s->segment = t.segment;
	s->index = 0;
	s->used += (t.len + 63) & ~63u;
	if (s->used > BUFFER_BYTES)
		s->used = BUFFER_BYTES;
	c->shm_rx_bytes += t.len;
	return v;
}

static size_t drain(struct shm *s, unsigned slot, struct pkt *pkts, size_t n, size_t max)
{
	struct ring_in *r = &s->in[slot];

	while (n < max && s->flow_count < FLOWS_MAX) {
		enum shm_verdict v = take_train(s, r);

		if (v == SHM_BAD) {
			give_up(s, slot);
			return n;
		}
		if (v != SHM_DONE)
			break;
		n = hand_out(s, pkts, n, max);
	}
	shm_release(&r->taker);
	r->vain_bells = 0;
	if (r->ending && !shm_has_some(&r->taker))
		free_in(s, slot);
	return n;
}

static size_t take_from_rings(struct shm *s, struct pkt *pkts, size_t max)
{
	size_t n = hand_out(s, pkts, 0, max);

	if (n)
		return n;
	s->used = s->flow_count = 0;
	for (unsigned i = s->live_count; i-- > 0 && n < max && !s->left;) {
		unsigned slot;

		s->turn = s->turn < s->live_count ? s->turn : 0;
		slot = s->live[s->turn++];
		if (s->in[slot].begun && shm_has_some(&s->in[slot].taker))
			n = drain(s, slot, pkts, n, max);
	}
	return n;
}

/*
 * A ring with its first packets waits until the sockets are empty: what its peer sent there before is older. True: there is
 * such a ring.
 */
static bool wait_for_older(struct shm *s, bool came)
{
	bool waits = false;

	for (unsigned i = 0; i < s->live_count; i++) {
		struct ring_in *r = &s->in[s->live[i]];

		if (r->begun || !shm_has_some(&r->taker))
			continue;
		r->vain = came ? 0 : r->vain + 1;
		r->begun = r->vain == DRAIN_LOOKS || ++r->looks == DRAIN_LOOKS_MAX;
		waits |= !r->begun;
	}
	return waits;
}

static bool some_waits(const struct shm *s)
{
	for (unsigned i = 0; i < s->live_count; i++) {
		const struct ring_in *r = &s->in[s->live[i]];

		if (!r->begun && shm_has_some(&r->taker))
			return true;
	}
	return false;
}

static bool may_skip_lower(const struct shm *s, bool came, uint64_t now_ns)
{
	if (came)
		return now_ns - s->looked_ns < LOWER_NS;
	return now_ns - s->came_ns < BUSY_NS && now_ns - s->looked_ns < LOWER_IDLE_NS;
}

static size_t shm_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	struct shm *s = of(io);
	size_t n = 0, below;

	if (!s->live_count && !s->left)
		return io_recv(s->lower, pkts, max, now_ns);
	if (max && some_waits(s)) {
		do {
			below = io_recv(s->lower, pkts, max, now_ns);
		} while (wait_for_older(s, below) && !below);
		return below;
	}
	n = take_from_rings(s, pkts, max);
	s->config.counters->shm_rx_packets += n;
	if (n)
		s->came_ns = now_ns;
	if (n == max || may_skip_lower(s, n, now_ns))
		return n;
	s->looked_ns = now_ns;
	return n + io_recv(s->lower, pkts + n, max - n, now_ns);
}

/* ---- sleep ---- */

static size_t shm_fds(const struct io *io, int *fds, size_t max)
{
	const struct shm *s = (const struct shm *)io;
	size_t n = io_fds(s->lower, fds, max);

	if (n < max)
		fds[n++] = s->epoll_fd;
	return n;
}

static uint64_t shm_deadline_ns(const struct io *io)
{
	const struct shm *s = (const struct shm *)io;

	if (s->left)
		return 0;
	for (unsigned i = 0; i < s->live_count; i++) {
		if (shm_has_some(&s->in[s->live[i]].taker))
			return 0;
	}
	return io_deadline_ns(s->lower);
}

static size_t shm_train_max(const struct io *io)
{
	return io_train_max(((const struct shm *)io)->lower);
}

static void hear_bells(struct shm *s)
{
	struct epoll_event ev[BELLS_MAX];
	int n = epoll_wait(s->epoll_fd, ev, BELLS_MAX, 0);
	uint64_t junk;

	for (int i = 0; i < n; i++) {
		unsigned slot = ev[i].data.u32;
		struct ring_in *r = &s->in[slot];

		if (read(r->bell, &junk, sizeof(junk)) < 0 || ++r->vain_bells == VAIN_BELLS_MAX)
			give_up(s, slot);
	}
}

static void shm_flush(struct io *io)
{
	struct shm *s = of(io);

	if (s->live_count)
		hear_bells(s);
	for (unsigned i = 0; i < s->live_count; i++)
		shm_sleep(&s->in[s->live[i]].taker);
	io_flush(s->lower);
}

static void shm_close(struct io *io)
{
	struct shm *s = of(io);

	/* After a fork the instance is the parent's, too, and what is taken out of it is missing there: it is only closed. */
	close_fd(&s->epoll_fd);
	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		free_in(s, i);
		free_out(s, i);
	}
	io_close(s->lower);
	free(s->buffer);
	free(s);
}

static const struct io_ops shm_ops = {
	.recv = shm_recv,
	.send = shm_send,
	.fds = shm_fds,
	.deadline_ns = shm_deadline_ns,
	.train_max = shm_train_max,
	.flush = shm_flush,
	.close = shm_close,
};
