/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file, its locks, and who is in it. Locks are of an open file (F_OFD_SETLK), so two devices of one process are to
 * each other as two processes are. Places of the dead have no lock.
 */
#include "limits/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/quantity.h"
#include "base/siphash.h"
#include "io/clock.h"
#include "io/fd_away.h"
#include "limits/limits_page.h"
#include "space/space.h"

/* The layout's version is a part of the file's name: programs of another one have another file. */
#define PATH "/dev/shm/verbena-limits-1-%u-%ju"

enum {
	PATH_BYTES = 80,
	JOINING = LIMITS_DEVICES_MAX * LIMITS_PROCESSES_MAX, /* the byte that whoever joins has locked */
	JOIN_TRIES = 2000,
	JOIN_TRY_NS = 1000000,
	OPEN_TRIES = 100
};

struct limits {
	struct limits_page *page;
	struct limits_row *row;
	struct limits_place *place;
	struct limits_config config;
	uint64_t line_bps;
	int fd;
	char path[PATH_BYTES];
};

/* ---- what is given ---- */

static const char *const names[LIMITS] = {
	[LIMIT_QPS] = "qps",
	[LIMIT_CQS] = "cqs",
	[LIMIT_MRS] = "mrs",
	[LIMIT_MR_BYTES] = "mr_bytes",
	[LIMIT_HCA_OBJECT] = "hca_object",
};

const char *limit_name(enum limit k)
{
	return names[k];
}

bool limits_are_given(const struct limits_config *c)
{
	bool any = c->rate_bps || c->weight;

	for (int k = 0; k < LIMITS; k++)
		any |= c->quota[k] != 0;
	return any;
}

static int limit_of(const char *name, size_t len)
{
	for (int k = 0; k < LIMITS; k++)
		if (strlen(names[k]) == len && !strncmp(names[k], name, len))
			return k;
	return -1;
}

/* One "name=number" of the list. */
static bool quota_read(uint64_t quota[LIMITS], const char *text, size_t len, char *why, size_t why_bytes)
{
	/* Powers of 1024: of bytes, and nobody counts anything else in thousands here. */
	static const struct quantity_unit units[] = {
		{"K", 1, 0, 10}, {"M", 1, 0, 20}, {"G", 1, 0, 30}, {"T", 1, 0, 40}, {NULL, 0, 0, 0}};
	static const struct quantity_form form = {.units = units};
	const char *equals = memchr(text, '=', len);
	size_t name = equals ? (size_t)(equals - text) : len;
	int k = limit_of(text, name);
	uint64_t v;

	if (k < 0 || !equals) {
		snprintf(why, why_bytes,
			 "'%.*s': allowed are qps=N, cqs=N, mrs=N, mr_bytes=N and hca_object=N, with commas "
			 "between them",
			 (int)len, text);
		return false;
	}
	if (quota[k]) {
		snprintf(why, why_bytes, "'%.*s' is there twice", (int)name, text);
		return false;
	}
	if (quantity_parse(equals + 1, len - name - 1, &form, &v) || !v) {
		snprintf(why, why_bytes, "'%.*s': allowed is a whole number from 1 on; K, M, G or T may follow it",
			 (int)len, text);
		return false;
	}
	quota[k] = v;
	return true;
}

bool limits_parse_quota(uint64_t out[LIMITS], const char *text, char *why, size_t why_bytes)
{
	uint64_t quota[LIMITS] = {0};

	while (*text) {
		size_t n = strcspn(text, ", ");

		if (!quota_read(quota, text, n, why, why_bytes))
			return false;
		text += n + strspn(text + n, " ");
		if (!*text)
			break;
		text += *text == ',';
		text += strspn(text, " ");
		if (*text)
			continue;
		snprintf(why, why_bytes, "a quota is missing behind the last comma");
		return false;
	}
	memcpy(out, quota, sizeof(quota));
	return true;
}

void limits_text(const struct limits_config *c, char text[LIMITS_TEXT_BYTES])
{
	static const struct quantity_form rate = {.units = quantity_rates};
	char number[QUANTITY_TEXT_BYTES];
	size_t n = 0;

	text[0] = 0;
	if (c->rate_bps) {
		quantity_write(&rate, c->rate_bps, number);
		n += (size_t)snprintf(text + n, LIMITS_TEXT_BYTES - n, "rate %s ", number);
	}
	if (c->burst_bytes)
		n += (size_t)snprintf(text + n, LIMITS_TEXT_BYTES - n, "burst %u ", c->burst_bytes);
	if (c->weight)
		n += (size_t)snprintf(text + n, LIMITS_TEXT_BYTES - n, "weight %u ", c->weight);
	for (int k = 0; k < LIMITS; k++)
		if (c->quota[k])
			n += (size_t)snprintf(text + n, LIMITS_TEXT_BYTES - n, "%s=%" PRIu64 " ", names[k],
					      c->quota[k]);
	text[n ? n - 1 : 0] = 0;
}

static bool is_same(const struct limits_config *a, const struct limits_config *b)
{
	return !memcmp(a->quota, b->quota, sizeof(a->quota)) && a->rate_bps == b->rate_bps &&
	       a->burst_bytes == b->burst_bytes && a->weight == b->weight;
}

/* ---- the file ---- */

static void path_write(char path[PATH_BYTES])
{
	struct stat st = {0};

	stat("/proc/thread-self/ns/net", &st);
	snprintf(path, PATH_BYTES, PATH, (unsigned)geteuid(), (uintmax_t)st.st_ino);
}

static bool lock(int fd, off_t from, off_t count, short type)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = from, .l_len = count};

	return !fcntl(fd, F_OFD_SETLK, &l);
}

/* Whether another process has a lock there. */
static bool is_locked(int fd, off_t from, off_t count)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = from, .l_len = count};

	return !fcntl(fd, F_OFD_GETLK, &l) && l.l_type != F_UNLCK;
}

static bool is_sound(int fd, size_t bytes)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_size >= (off_t)bytes;
}

/* Its pages are there from now on: where the memory of /dev/shm is used up, that is an error now, and no signal later. */
static int make_room(int fd)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < sizeof(struct limits_page))
		return -EFBIG;
	return -posix_fallocate(fd, 0, sizeof(struct limits_page));
}

static int say(const struct limits *l, int err, char *why, size_t why_bytes)
{
	snprintf(why, why_bytes, "the limits of the device are kept in %s, which cannot be had: %s", l->path,
		 err == -EPERM ? "it is another user's" : strerror(-err));
	return err;
}

static int file_open(struct limits *l)
{
	int err;

	l->fd = fd_away(open(l->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
	if (l->fd < 0)
		return errno == EACCES ? -EPERM : -errno;
	err = is_sound(l->fd, 0) ? make_room(l->fd) : -EPERM;
	if (err)
		close(l->fd);
	return err;
}

/* Who leaves last removes the file; one that was opened before has no name any more. */
static bool has_name(const struct limits *l)
{
	struct stat st;

	return !fstat(l->fd, &st) && st.st_nlink;
}

static int begin_joining(struct limits *l)
{
	for (int i = 0; i < JOIN_TRIES; i++) {
		if (lock(l->fd, JOINING, 1, F_WRLCK))
			return 0;
		clock_sleep_ns(JOIN_TRY_NS);
	}
	return -ETIMEDOUT;
}

/* Opened, and others that join wait. */
static int file_get(struct limits *l)
{
	for (int i = 0; i < OPEN_TRIES; i++) {
		int err = file_open(l);

		if (err)
			return err;
		err = begin_joining(l);
		if (!err && has_name(l))
			return 0;
		close(l->fd);
		if (err)
			return err;
	}
	return -EAGAIN;
}

/* ---- rows and places: whoever joins is alone with them, but for those that have a place ---- */

static off_t byte_of(const struct limits *l, const struct limits_row *row, uint32_t place)
{
	return (off_t)(row - l->page->rows) * LIMITS_PROCESSES_MAX + place;
}

/* Gives back what a place of the dead has counted. Whether it was one. */
static bool bury(const struct limits *l, struct limits_row *row, uint32_t i)
{
	struct limits_place *p = &row->place[i];

	if (p == l->place || !atomic_load(&p->set) || !lock(l->fd, byte_of(l, row, i), 1, F_WRLCK))
		return false;
	place_clear(p);
	lock(l->fd, byte_of(l, row, i), 1, F_UNLCK);
	return true;
}

static bool bury_all(const struct limits *l, struct limits_row *row)
{
	bool any = false;

	for (uint32_t i = 0; i < LIMITS_PROCESSES_MAX; i++)
		any |= bury(l, row, i);
	return any;
}

static uint64_t key_of(const char *device)
{
	static const uint8_t key[16] = "a device's row";
	uint64_t words[LIMITS_NAME_BYTES / 8] = {0}, hash = 0;

	strncpy((char *)words, device, sizeof(words) - 1);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		hash = siphash_u64(key, hash ^ words[i]);
	return hash | 1;
}

static struct limits_row *row_find(struct limits_page *page, uint64_t key)
{
	for (unsigned i = 0; i < LIMITS_DEVICES_MAX; i++)
		if (atomic_load(&page->rows[i].key) == key)
			return &page->rows[i];
	return NULL;
}

/* Its own, or one that nobody has. */
static struct limits_row *row_get(struct limits *l, const char *device)
{
	uint64_t key = key_of(device);
	struct limits_row *row = row_find(l->page, key);

	for (unsigned i = 0; i < LIMITS_DEVICES_MAX && !row; i++) {
		struct limits_row *free = &l->page->rows[i];

		if (is_locked(l->fd, byte_of(l, free, 0), LIMITS_PROCESSES_MAX))
			continue;
		bury_all(l, free);
		atomic_store(&free->places, 0);
		snprintf(free->name, sizeof(free->name), "%s", device);
		atomic_store(&free->key, key);
		row = free;
	}
	return row;
}

/* Nobody uses the device with other limits. */
static int check_config(const struct limits *l, const char *device, char *why, size_t why_bytes)
{
	char here[LIMITS_TEXT_BYTES], there[LIMITS_TEXT_BYTES];
	struct limits_config other;

	for (uint32_t i = 0; i < LIMITS_PROCESSES_MAX; i++) {
		if (!atomic_load(&l->row->place[i].set))
			continue;
		place_config(&l->row->place[i], &other);
		if (is_same(&other, &l->config))
			continue;
		limits_text(&l->config, here);
		limits_text(&other, there);
		snprintf(why, why_bytes,
			 "programs run on the device %s with the limits '%s', and this one has '%s': allowed are the "
			 "same for all programs of a device",
			 device, there, here);
		return -EBUSY;
	}
	return 0;
}

static bool is_used(const struct limits *l)
{
	for (uint32_t i = 0; i < LIMITS_PROCESSES_MAX; i++)
		if (atomic_load(&l->row->place[i].set))
			return true;
	return false;
}

static int place_get(struct limits *l, uint64_t now_ns)
{
	for (uint32_t i = 0; i < LIMITS_PROCESSES_MAX; i++) {
		if (!lock(l->fd, byte_of(l, l->row, i), 1, F_WRLCK))
			continue;
		if (!is_used(l))
			row_begin(l->row, &l->config, now_ns);
		l->place = &l->row->place[i];
		if (atomic_load(&l->row->places) < i + 1)
			atomic_store(&l->row->places, i + 1);
		place_set(l->place, &l->config);
		return 0;
	}
	return -ENOSPC;
}

static int take_place(struct limits *l, const char *device, uint64_t now_ns, char *why, size_t why_bytes)
{
	int err;

	l->row = row_get(l, device);
	if (!l->row) {
		snprintf(why, why_bytes, "%d devices with limits are in use, and no more are allowed",
			 LIMITS_DEVICES_MAX);
		return -ENOSPC;
	}
	bury_all(l, l->row);
	err = check_config(l, device, why, why_bytes);
	if (!err)
		err = place_get(l, now_ns);
	if (err == -ENOSPC)
		snprintf(why, why_bytes, "%d processes use the device %s, and no more are allowed",
			 LIMITS_PROCESSES_MAX, device);
	return err;
}

static void discard(struct limits *l)
{
	if (l->page)
		space_unmap(l->page, sizeof(*l->page));
	close(l->fd);
	space_put(l, sizeof(*l));
}

int limits_join(struct limits **out, const char *device, const struct limits_config *config, uint64_t line_bps,
		uint64_t now_ns, char *why, size_t why_bytes)
{
	struct limits *l = space_get(sizeof(*l));
	int err;

	snprintf(why, why_bytes, "out of memory");
	if (!l)
		return -ENOMEM;
	l->config = *config;
	l->line_bps = line_bps;
	path_write(l->path);
	err = file_get(l);
	if (err) {
		say(l, err, why, why_bytes);
		space_put(l, sizeof(*l));
		return err;
	}
	l->page = space_map(l->fd, sizeof(*l->page));
	err = l->page ? take_place(l, device, now_ns, why, why_bytes) : say(l, -ENOMEM, why, why_bytes);
	if (err) {
		discard(l);
		return err;
	}
	lock(l->fd, JOINING, 1, F_UNLCK);
	*out = l;
	return 0;
}

void limits_leave(struct limits *l)
{
	if (!l)
		return;
	place_clear(l->place);
	/* All locks, so nobody else is there, and nobody comes. */
	if (lock(l->fd, 0, JOINING + 1, F_WRLCK))
		unlink(l->path);
	discard(l);
}

void limits_forget(struct limits *l)
{
	if (l)
		close(l->fd);
}

/* ---- use ---- */

bool limits_take(struct limits *l, const uint64_t wanted[LIMITS], enum limit *over)
{
	return row_take(l->row, l->place, wanted, over) ||
	       (bury_all(l, l->row) && row_take(l->row, l->place, wanted, over));
}

void limits_note(struct limits *l, const uint64_t have[LIMITS])
{
	place_note(l->place, have);
}

bool limits_pace(const struct limits *l)
{
	return l->config.rate_bps || l->config.weight;
}

uint64_t limits_due_ns(struct limits *l, uint64_t now_ns)
{
	return row_due_ns(l->page, l->row, l->line_bps, now_ns);
}

void limits_send(struct limits *l, uint64_t bytes, uint64_t now_ns)
{
	row_send(l->page, l->row, l->config.burst_bytes, l->line_bps, bytes, now_ns);
}

/* ---- reports ---- */

static void report(const struct limits_row *row, struct limits_report *r)
{
	memset(r, 0, sizeof(*r));
	for (uint32_t i = 0; i < LIMITS_PROCESSES_MAX; i++) {
		if (!atomic_load(&row->place[i].set))
			continue;
		r->processes++;
		place_config(&row->place[i], &r->config);
	}
	for (int k = 0; k < LIMITS; k++)
		r->used[k] = row_used(row, (enum limit)k);
	r->rate_bps = r->config.rate_bps || r->config.weight ? atomic_load(&row->rate_bps) : 0;
	r->sent_bytes = atomic_load(&row->bytes);
}

void limits_report(const struct limits *l, struct limits_report *r)
{
	report(l->row, r);
}

bool limits_look(const char *device, struct limits_report *r)
{
	struct limits l = {.fd = -1};
	void *page;

	path_write(l.path);
	l.fd = open(l.path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (l.fd < 0)
		return false;
	page = is_sound(l.fd, sizeof(*l.page))
		       ? mmap(NULL, sizeof(*l.page), PROT_READ | PROT_WRITE, MAP_SHARED, l.fd, 0)
		       : MAP_FAILED;
	if (page != MAP_FAILED) {
		l.page = page;
		l.row = row_find(l.page, key_of(device));
		if (l.row) {
			bury_all(&l, l.row);
			report(l.row, r);
		}
		munmap(page, sizeof(*l.page));
	}
	close(l.fd);
	return l.row && r->processes;
}
