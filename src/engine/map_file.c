/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * There is no watch on the file: a process has few descriptors to spare, and a user few inotify instances. One call of
 * stat() where a name is needed is nothing beside what connecting costs, and a file that is there before the program asks
 * is always seen.
 */
#include "engine/map_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ipudp.h"
#include "engine/state.h"
#include "io/uncancelled.h"
#include "space/space.h"

enum { PAST_MAX = 1 << 17, WHY_BYTES = 512, WORDS = 2, OWN_BYTES = 256 };

struct map_file {
	struct engine *e;
	const char *path;
	struct stat seen; /* the file as it was when it was last read, or all zero */
	struct gid_map map;
};

/* ---- text ---- */

struct line {
	const char *words[WORDS];
	int lens[WORDS];
	int count; /* of words, more than WORDS too */
};

static const char *line_split(const char *p, const char *end, struct line *l)
{
	*l = (struct line){.count = 0};
	while (p < end && *p != '\n' && *p != '#') {
		const char *word = p;

		if (*p == ' ' || *p == '\t' || *p == '\r') {
			p++;
			continue;
		}
		while (p < end && !strchr(" \t\r\n#", *p))
			p++;
		if (p == word) /* a zero byte */
			p++;
		if (l->count < WORDS) {
			l->words[l->count] = word;
			l->lens[l->count] = (int)(p - word);
		}
		l->count++;
	}
	while (p < end && *p != '\n')
		p++;
	return p < end ? p + 1 : end;
}

static bool is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, mapped, sizeof(mapped));
}

static bool address_read(const char *word, int len, uint8_t gid[16])
{
	char text[INET6_ADDRSTRLEN];

	memset(gid, 0, 16);
	if (len >= (int)sizeof(text) || memchr(word, 0, (size_t)len))
		return false;
	snprintf(text, sizeof(text), "%.*s", len, word);
	if (inet_pton(AF_INET6, text, gid) == 1)
		return true;
	gid[10] = gid[11] = 0xff;
	return inet_pton(AF_INET, text, gid + 12) == 1;
}

/* It names one host, wherever it is used. */
static bool names_one(const uint8_t gid[16])
{
	static const uint8_t zero[16];

	if (is_ipv4(gid))
		return gid[12] && gid[12] < 224;
	return memcmp(gid, zero, sizeof(zero)) != 0 && !gid_is_multicast(gid) &&
	       !(gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80);
}

struct reading {
	const char *file;
	int line;
	char *err;
	size_t err_bytes;
};

#define SAY(r, ...) (say((r), __VA_ARGS__), false)

static void say(const struct reading *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(const struct reading *r, const char *fmt, ...)
{
	int n = r->line ? snprintf(r->err, r->err_bytes, "%s:%d: ", r->file, r->line)
			: snprintf(r->err, r->err_bytes, "%s: ", r->file);
	va_list ap;

	if (n < 0 || (size_t)n >= r->err_bytes)
		return;
	va_start(ap, fmt);
	vsnprintf(r->err + n, r->err_bytes - (size_t)n, fmt, ap);
	va_end(ap);
}

static bool row_read(const struct reading *r, const struct line *l, struct gid_row *row)
{
	uint8_t *to[WORDS] = {row->vgid, row->underlay};

	if (l->count != WORDS)
		return SAY(r, "%d words: allowed are two addresses, a virtual GID and that of the underlay", l->count);
	for (int i = 0; i < WORDS; i++) {
		if (!address_read(l->words[i], l->lens[i], to[i]))
			return SAY(r, "'%.*s': allowed are IPv4 and IPv6 addresses", l->lens[i], l->words[i]);
		if (!names_one(to[i]))
			return SAY(
				r,
				"%.*s: allowed is no group's address, none of a link alone, and none that names nobody",
				l->lens[i], l->words[i]);
	}
	if (is_ipv4(row->vgid) != is_ipv4(row->underlay))
		return SAY(r, "%.*s is an %s address and %.*s is none: allowed are two of one kind", l->lens[0],
			   l->words[0], is_ipv4(row->vgid) ? "IPv4" : "IPv6", l->lens[1], l->words[1]);
	return true;
}

static const char *text_of(const uint8_t gid[16], char text[INET6_ADDRSTRLEN])
{
	return inet_ntop(is_ipv4(gid) ? AF_INET : AF_INET6, gid + (is_ipv4(gid) ? 12 : 0), text, INET6_ADDRSTRLEN);
}

typedef int order_fn(const void *, const void *);

/* Sorts the rows. The second one of two that are equal, or NULL. */
static const struct gid_row *rows_order(struct gid_row *rows, size_t count, order_fn *order)
{
	qsort(rows, count, sizeof(*rows), order);
	for (size_t i = 1; i < count; i++)
		if (!order(&rows[i - 1], &rows[i]))
			return &rows[i];
	return NULL;
}

/* Goes to the second line that is equal to that row. Returns the number of the first one. */
static int go_to_second(struct reading *r, const char *text, size_t len, const struct gid_row *like, order_fn *order)
{
	const char *end = text + len;
	struct gid_row row;
	struct line l;
	int first = 0;

	r->line = 0;
	for (const char *p = text; p < end;) {
		r->line++;
		p = line_split(p, end, &l);
		if (!l.count || !row_read(r, &l, &row) || order(&row, like))
			continue;
		if (first)
			break;
		first = r->line;
	}
	return first;
}

int map_parse(const char *file, const char *text, size_t len, struct gid_row *rows, char *err, size_t err_bytes)
{
	struct reading r = {.file = file, .err = err, .err_bytes = err_bytes};
	char address[INET6_ADDRSTRLEN];
	const char *end = text + len;
	const struct gid_row *twice;
	size_t count = 0;
	struct line l;
	int n;

	for (const char *p = text; p < end;) {
		r.line++;
		p = line_split(p, end, &l);
		if (l.count && !row_read(&r, &l, &rows[count++]))
			return -EINVAL;
	}
	r.line = 0;
	if (!count) {
		say(&r, "there is no line with a virtual GID and its underlay");
		return -EINVAL;
	}
	twice = rows_order(rows, count, gid_row_by_underlay);
	if (twice) {
		n = go_to_second(&r, text, len, twice, gid_row_by_underlay);
		say(&r, "%s is the underlay of line %d, too: allowed is one vGID for each",
		    text_of(twice->underlay, address), n);
		return -EINVAL;
	}
	twice = rows_order(rows, count, gid_row_by_vgid);
	if (!twice)
		return (int)count;
	n = go_to_second(&r, text, len, twice, gid_row_by_vgid);
	say(&r, "%s is the vGID of line %d, too: allowed is one underlay for each", text_of(twice->vgid, address), n);
	return -EINVAL;
}

/* ---- a file ---- */

static void rows_free(const struct gid_row *rows, size_t count)
{
	space_put((void *)(uintptr_t)rows, count * sizeof(*rows));
}

static void map_free(const struct gid_map *map)
{
	rows_free(map->now, map->now_count);
	rows_free(map->past, map->past_count);
}

/* The whole file as text of MAP_BYTES_MAX + 1 bytes. Its length, or a negative errno with a sentence in why. */
static ssize_t file_text(const char *path, char *text, struct stat *seen, char *why, size_t why_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t len = 0, got = fd < 0 || fstat(fd, seen) ? -1 : 1;

	while (got > 0 && len <= MAP_BYTES_MAX) {
		got = read(fd, text + len, (size_t)(MAP_BYTES_MAX + 1 - len));
		len += got > 0 ? got : 0;
	}
	if (got < 0) {
		snprintf(why, why_bytes, "VERBENA_MAP=%s: cannot read it: %s", path, strerror(errno));
		len = -errno;
	} else if (len > MAP_BYTES_MAX) {
		snprintf(why, why_bytes, "VERBENA_MAP=%s: allowed are at most %d bytes", path, MAP_BYTES_MAX);
		len = -EINVAL;
	}
	if (fd >= 0)
		close(fd);
	return len;
}

static int out_of_memory(char *why, size_t why_bytes)
{
	snprintf(why, why_bytes, "out of memory");
	return -ENOMEM;
}

/* The rows that the text has, *given*: count of them at *rows. */
static int text_rows(const char *path, const char *text, size_t len, struct gid_row **rows, char *why, size_t why_bytes)
{
	size_t room = len / MAP_LINE_MIN + 1;
	struct gid_row *all = space_get(room * sizeof(*all));
	int count;

	*rows = NULL;
	if (!all)
		return out_of_memory(why, why_bytes);
	count = map_parse(path, text, len, all, why, why_bytes);
	if (count > 0) {
		*rows = space_get((size_t)count * sizeof(*all));
		if (*rows)
			memcpy(*rows, all, (size_t)count * sizeof(*all));
		else
			count = out_of_memory(why, why_bytes);
	}
	space_put(all, room * sizeof(*all));
	return count;
}

/* Gives `map` its second order: with the names that addresses had in `before` (NULL: there are none), unless those were
 * very many. */
static bool add_past(struct gid_map *map, const struct gid_map *before)
{
	size_t n = map->now_count, of_before = before && before->past_count < PAST_MAX ? before->past_count : 0;
	struct gid_row *all = space_get((n + of_before) * sizeof(*all)), *past;

	if (!all)
		return false;
	memcpy(all, map->now, n * sizeof(*all));
	qsort(all, n, sizeof(*all), gid_row_by_underlay);
	for (size_t i = 0; i < of_before; i++)
		if (!bsearch(&before->past[i], all, map->now_count, sizeof(*all), gid_row_by_underlay))
			all[n++] = before->past[i];
	past = space_get(n * sizeof(*past));
	if (past) {
		qsort(all, n, sizeof(*all), gid_row_by_underlay);
		memcpy(past, all, n * sizeof(*past));
		map->past = past;
		map->past_count = (uint32_t)n;
	}
	space_put(all, (map->now_count + of_before) * sizeof(*all));
	return past;
}

static int file_read(const char *path, const struct gid_map *before, struct gid_map *out, struct stat *seen, char *why,
		     size_t why_bytes)
{
	char *text = space_get(MAP_BYTES_MAX + 1);
	struct gid_map map = {.now = NULL};
	struct gid_row *rows;
	ssize_t len = text ? file_text(path, text, seen, why, why_bytes) : out_of_memory(why, why_bytes);
	int rc = len < 0 ? (int)len : text_rows(path, text, (size_t)len, &rows, why, why_bytes);

	space_put(text, MAP_BYTES_MAX + 1);
	if (rc < 0)
		return rc;
	map.now = rows;
	map.now_count = (uint32_t)rc;
	if (!add_past(&map, before)) {
		map_free(&map);
		return out_of_memory(why, why_bytes);
	}
	*out = map;
	return 0;
}

/* ---- this host ---- */

static bool is_empty(const struct nic_gid *g)
{
	static const uint8_t zero[16];

	return !memcmp(g->raw, zero, sizeof(zero));
}

/* Some address of the device has a name, or peers would not know it. */
static int judge_own(const char *path, const struct gid_map *map, const struct gid_table *t, char *why,
		     size_t why_bytes)
{
	char own[OWN_BYTES] = "", text[INET6_ADDRSTRLEN];
	size_t n = 0;

	for (uint32_t i = 0; i < t->count; i++) {
		if (is_empty(&t->gids[i]))
			continue;
		if (gid_map_vgid(map, t->gids[i].raw))
			return 0;
		if (n < sizeof(own))
			n += (size_t)snprintf(own + n, sizeof(own) - n, "%s%s", n ? ", " : "",
					      text_of(t->gids[i].raw, text));
	}
	snprintf(why, why_bytes, "%s: no line has an address of the device as its underlay; there are: %s", path,
		 n ? own : "none");
	return -EADDRNOTAVAIL;
}

static int judge_protocol(bool streams, char *why, size_t why_bytes)
{
	if (!streams)
		return 0;
	snprintf(why, why_bytes, "VERBENA_MAP: not for a device that speaks iWARP, whose addresses are those of TCP");
	return -EINVAL;
}

int map_show_tables(const struct config *c, struct gid_table *tables, char *why, size_t why_bytes)
{
	struct gid_map map;
	struct stat seen;
	int rc = judge_protocol(c->devices.iwarp, why, why_bytes);

	if (!rc)
		rc = file_read(c->map, NULL, &map, &seen, why, why_bytes);
	if (rc)
		return rc;
	for (unsigned d = 0; d < c->devices.count && !rc; d++) {
		struct gid_table *t = &tables[d];

		rc = judge_own(c->map, &map, t, why, why_bytes);
		for (uint32_t i = 0; i < t->count && !rc; i++) {
			const uint8_t *name = gid_map_vgid(&map, t->gids[i].raw);

			if (name)
				memcpy(t->gids[i].raw, name, sizeof(t->gids[i].raw));
			else
				t->gids[i] = (struct nic_gid){0};
		}
	}
	map_free(&map);
	return rc;
}

/* ---- an engine ---- */

int map_open(struct engine *e, char *why, size_t why_bytes)
{
	const char *path = e->config.map;
	struct map_file *f;
	int rc;

	if (!path[0])
		return 0;
	rc = judge_protocol(e->config.transport.protocol == PROTOCOL_IWARP, why, why_bytes);
	if (rc)
		return rc;
	f = space_get(sizeof(*f));
	if (!f)
		return out_of_memory(why, why_bytes);
	f->e = e;
	f->path = path;
	rc = file_read(path, NULL, &f->map, &f->seen, why, why_bytes);
	if (!rc)
		rc = judge_own(path, &f->map, &e->gids, why, why_bytes);
	if (rc)
		map_close(f);
	else
		e->loop.map = f;
	return rc;
}

void map_close(struct map_file *f)
{
	if (!f)
		return;
	map_free(&f->map);
	space_put(f, sizeof(*f));
}

const struct gid_map *map_of(const struct map_file *f)
{
	return f ? &f->map : NULL;
}

void map_tell_cm(const struct engine *e)
{
	struct nic_gid gids[NIC_GIDS_MAX];
	uint32_t count = nic_gid_count(e->loop.nic);

	for (uint32_t i = 0; i < count; i++)
		nic_gid(e->loop.nic, i, &gids[i]);
	cm_set_gids(e->loop.cm, gids, count);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Whether the device's own GIDs have other names by one map than by the other. */
static bool renames(const struct gid_table *t, const struct gid_map *a, const struct gid_map *b)
{
	for (uint32_t i = 0; i < t->count; i++) {
		const uint8_t *one = gid_map_vgid(a, t->gids[i].raw), *other = gid_map_vgid(b, t->gids[i].raw);

		if (!one != !other || (one && memcmp(one, other, sizeof(t->gids[i].raw)) != 0))
			return true;
	}
	return false;
}

static void take_over(struct map_file *f, const struct gid_map *map)
{
	const struct gid_map before = f->map;
	struct engine *e = f->e;

	f->map = *map;
	map_tell_cm(e);
	if (renames(&e->gids, &before, map)) {
		e->loop.sink->port_event(e, EVENT_GID_CHANGE);
		atomic_store_explicit(&e->renamed, true, memory_order_relaxed);
		e->env->wake(e->env);
	}
	map_free(&before);
}

static void read_again(struct map_file *f)
{
	char why[WHY_BYTES];
	struct gid_map map;

	/* Its addresses of this device may be those that it is about to move to. */
	if (file_read(f->path, &f->map, &map, &f->seen, why, sizeof(why)))
		fprintf(stderr, "verbena: %s; the map that was read before stays\n", why);
	else
		take_over(f, &map);
}

void map_follow(struct map_file *f)
{
	struct stat now = {0};
	int state;

	if (!f || f->e->closed)
		return;
	/* A file that is gone, as it is for a moment where it is replaced, has not changed. */
	if (stat(f->path, &now) || is_same(&now, &f->seen))
		return;
	state = cancel_off();
	f->seen = now;
	read_again(f);
	cancel_restore(state);
}

void engine_follow_map(struct engine *e)
{
	map_follow(e->loop.map);
}

bool engine_has_map(const struct engine *e)
{
	return e->loop.map;
}

/* What no map has, and means the same to programs and on the wire. */
static bool is_unmapped(const uint8_t ip[16])
{
	static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff}, zero[16], one[16] = {[15] = 1};

	return gid_is_multicast(ip) || !memcmp(ip, mapped, sizeof(mapped)) || !memcmp(ip, zero, sizeof(zero)) ||
	       !memcmp(ip, one, sizeof(one)) || (is_ipv4(ip) && ip[12] == 127);
}

static bool take(uint8_t ip[16], const uint8_t *other)
{
	if (other)
		memcpy(ip, other, 16);
	return other || is_unmapped(ip);
}

bool engine_hide_address(const struct engine *e, uint8_t ip[16])
{
	return !e->loop.map || take(ip, gid_map_underlay(&e->loop.map->map, ip));
}

bool engine_show_address(const struct engine *e, uint8_t ip[16])
{
	return !e->loop.map || take(ip, gid_map_vgid(&e->loop.map->map, ip));
}
