/* SPDX-License-Identifier: BSD-2-Clause */
/* How rings are made, taken and ended. See shm_state.h. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd_away.h"
#include "io/shm/shm_state.h"
#include "io/uncancelled.h"
#include "space/space.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

void shm_close_fd(int *fd)
{
	if (*fd >= 0)
		uncancelled_close(*fd);
	*fd = -1;
}

void shm_free_in(struct shm *s, unsigned slot)
{
	struct ring_in *r = &s->in[slot];

	if (!r->memory)
		return;
	if (!r->mine)
		space_unmap(r->memory, SHM_MEMORY_BYTES);
	/* An epoll instance keeps it as long as anybody has a descriptor, and the peer has one. */
	if (r->bell >= 0)
		epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, r->bell, NULL);
	shm_close_fd(&r->bell);
	*r = (struct ring_in){.bell = -1};
	for (unsigned i = 0; i < s->live_count; i++) {
		if (s->live[i] == slot)
			s->live[i] = s->live[--s->live_count];
	}
}

void shm_free_out(struct shm *s, unsigned slot)
{
	struct ring_out *r = &s->out[slot];

	if (!r->memory)
		return;
	if (s->in[slot].mine)
		shm_free_in(s, slot);
	/* The other end may have it for longer, and learns nothing any more: it must take nothing. After a fork it is
	 * the parent's. */
	if (s->pid == getpid())
		shm_take_all_back(&r->putter);
	s->loans[slot] = (struct loan){0};
	space_unmap(r->memory, SHM_MEMORY_BYTES);
	shm_spill_free(r->spill);
	shm_close_fd(&r->memory_fd);
	shm_close_fd(&r->bell);
	s->lending[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	s->reach.full[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	s->reach.slots[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	s->reach.readers[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	shm_note_change(s, slot);
	*r = (struct ring_out){.memory_fd = -1, .bell = -1, .again_ns = r->again_ns};
	s->config.counters->shm_peers--;
}

static void *map(int fd)
{
	void *p = space_map(fd, SHM_MEMORY_BYTES);

	if (p)
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

static void begin_in(struct shm *s, unsigned slot, struct shm_memory *memory, int bell, pid_t pid)
{
	struct ring_in *r = &s->in[slot];

	*r = (struct ring_in){
		.memory = memory,
		.bell = bell,
		.process = shm_process_of(pid, &memory->probe),
	};
	shm_taker_init(&r->taker, memory);
	s->live[s->live_count++] = (uint8_t)slot;
	shm_mark_tell(s->mark, &memory->taker_probe);
	s->out[slot].helped_pid = 0;
	shm_accept(&r->taker, shm_process_is(&r->process));
}

int shm_make(struct io *io, unsigned slot, uint64_t now_ns, int fds[2])
{
	struct shm *s = (struct shm *)io;
	struct ring_out *r = &s->out[slot];
	void *memory;
	int err;

	if (r->memory)
		return -EEXIST;
	r->again_ns = now_ns + SHM_AGAIN_NS;
	if ((s->config.counters->shm_peers + 1) * SHM_MEMORY_BYTES > s->config.bytes_max)
		return -EDQUOT;
	r->memory_fd = make_memory();
	if (r->memory_fd < 0) {
		err = r->memory_fd;
		r->memory_fd = -1;
		return err;
	}
	memory = map(r->memory_fd);
	r->bell = fd_away(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	r->spill = shm_spill_new();
	if (!memory || r->bell < 0 || !r->spill) {
		err = -errno;
		shm_spill_free(r->spill);
		r->spill = NULL;
		if (memory)
			space_unmap(memory, SHM_MEMORY_BYTES);
		shm_close_fd(&r->memory_fd);
		shm_close_fd(&r->bell);
		return err;
	}
	r->memory = memory;
	shm_mark_tell(s->mark, &r->memory->probe);
	shm_memory_init(memory);
	shm_putter_init(&r->putter, memory);
	s->loans[slot] = (struct loan){.told = &r->memory->taken_back, .given_back = &r->memory->given_back};
	s->config.counters->shm_peers++;
	if (slot == s->config.slot) {
		/* No bell: deadline_ns() shows the sender's own thread what it sent. */
		begin_in(s, slot, memory, -1, getpid());
		s->in[slot].mine = true;
	}
	fds[0] = r->memory_fd;
	fds[1] = r->bell;
	return 0;
}

void shm_lose(struct io *io, unsigned slot, uint64_t now_ns)
{
	struct shm *s = (struct shm *)io;

	shm_free_out(s, slot);
	s->out[slot].again_ns = now_ns + SHM_AGAIN_NS;
}

static bool is_ring_memory(int fd)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS) == SEALS && !fstat(fd, &st) && st.st_size == SHM_MEMORY_BYTES;
}

int shm_take_ring(struct io *io, unsigned slot, pid_t pid, const int fds[2])
{
	struct shm *s = (struct shm *)io;
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
		shm_free_in(s, slot);
	/* One that is no eventfd may be readable for ever: that is noticed like too many bells. */
	if (!err && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, bell, &ev) < 0)
		err = -errno;
	if (!err) {
		begin_in(s, slot, memory, bell, pid);
		return 0;
	}
	if (memory)
		space_unmap(memory, SHM_MEMORY_BYTES);
	close(bell);
	return err;
}

void shm_end_ring(struct io *io, unsigned slot)
{
	struct shm *s = (struct shm *)io;
	struct ring_in *r = &s->in[slot];

	r->ending = true;
	if (r->memory && !shm_has_some(&r->taker))
		shm_free_in(s, slot);
}

void shm_leave(struct io *io)
{
	struct shm *s = (struct shm *)io;

	for (unsigned slot = 0; slot < SHM_SLOTS; slot++) {
		if (slot == s->config.slot)
			continue;
		shm_free_out(s, slot);
		s->out[slot].again_ns = 0;
		if (s->in[slot].memory)
			shm_end_ring(io, slot);
	}
	s->wanted[0] = s->wanted[1] = 0;
}

bool shm_reaches(const struct io *io, unsigned slot)
{
	const struct shm *s = (const struct shm *)io;

	return slot < SHM_SLOTS && s->out[slot].memory && shm_is_accepted(&s->out[slot].putter);
}
