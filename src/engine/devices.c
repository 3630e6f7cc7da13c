/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A list says the kind of each device by a word, or its name, which is the kind's with a number. Devices are in the list's
 * order, but those of one kind in the order of their numbers: a name means the same device wherever it stands.
 */
#include "engine/devices.h"

#include <stdio.h>
#include <string.h>

#include "base/quantity.h"

/* One element of the list, which lends its text. */
struct part {
	const char *text, *rail; /* rail: behind the @; NULL: there is none */
	int len, rail_len;
	bool iwarp;
	uint32_t number; /* among those of its kind */
};

struct reading {
	struct part parts[ENGINE_DEVICES_MAX];
	uint32_t count;
	uint32_t kinds[2]; /* how many RoCE and iWARP devices */
	char *why;
	size_t why_bytes;
};

#define ALLOWED                                                                                                        \
	"allowed is a whole number from 1 to %d, or that many devices with commas between them, as roce or iwarp, or " \
	"as verbena0, verbena_iw0 and so on, each perhaps with @ and its interface or address behind it"

#define SAY(l, ...) (snprintf((l)->why, (l)->why_bytes, __VA_ARGS__), false)

/* The number behind a name that begins with that; -1: it is none. */
static int number_behind(const struct part *p, const char *begins)
{
	int n = (int)strlen(begins);

	return p->len == n + 1 && !strncmp(p->text, begins, (size_t)n) && p->text[n] >= '0' &&
			       p->text[n] < '0' + ENGINE_DEVICES_MAX
		       ? p->text[n] - '0'
		       : -1;
}

static bool is_word(const struct part *p, const char *word)
{
	return p->len == (int)strlen(word) && !strncmp(p->text, word, (size_t)p->len);
}

static bool read_name(struct reading *l, struct part *p)
{
	int roce = number_behind(p, "verbena"), iwarp = number_behind(p, "verbena_iw");

	p->iwarp = is_word(p, "iwarp") || iwarp >= 0;
	if (is_word(p, "roce") || is_word(p, "iwarp"))
		p->number = l->kinds[p->iwarp];
	else if (roce >= 0 || iwarp >= 0)
		p->number = (uint32_t)(p->iwarp ? iwarp : roce);
	else
		return SAY(l, "'%.*s' is no device; " ALLOWED, p->len, p->text, ENGINE_DEVICES_MAX);
	for (uint32_t i = 0; i < l->count; i++)
		if (l->parts[i].iwarp == p->iwarp && l->parts[i].number == p->number)
			return SAY(l, "'%.*s' is there twice; allowed is each device once", p->len, p->text);
	l->kinds[p->iwarp]++;
	return true;
}

static bool read_rail(struct reading *l, struct part *p)
{
	if (!!p->rail != (l->count ? !!l->parts[0].rail : !!p->rail))
		return SAY(l, "'%.*s' is %s @; allowed is an interface or address behind each device, or behind none",
			   p->len, p->text, p->rail ? "with an" : "without an");
	if (!p->rail)
		return true;
	if (!p->rail_len || p->rail_len >= RAIL_BYTES)
		return SAY(l, "'%.*s@%.*s': allowed behind the @ is an interface or an address of this host", p->len,
			   p->text, p->rail_len, p->rail);
	for (uint32_t i = 0; i < l->count; i++)
		if (l->parts[i].rail_len == p->rail_len && !strncmp(l->parts[i].rail, p->rail, (size_t)p->rail_len))
			return SAY(l, "'@%.*s' is there twice; allowed is each interface or address once", p->rail_len,
				   p->rail);
	return true;
}

static bool read_part(struct reading *l, const char *text, int len)
{
	const char *at = memchr(text, '@', (size_t)len);
	struct part p = {.text = text, .len = at ? (int)(at - text) : len};

	if (at) {
		p.rail = at + 1;
		p.rail_len = len - p.len - 1;
	}
	if (l->count == ENGINE_DEVICES_MAX)
		return SAY(l, "'%.*s' is one too many; " ALLOWED, len, text, ENGINE_DEVICES_MAX);
	if (!len)
		return SAY(l, "device %u of the list is missing; " ALLOWED, l->count + 1, ENGINE_DEVICES_MAX);
	if (!read_name(l, &p) || !read_rail(l, &p))
		return false;
	l->parts[l->count++] = p;
	return true;
}

/* Where among all devices the one of a kind with a number is. */
static uint32_t index_of(const struct reading *l, const struct part *p)
{
	uint32_t d = 0;

	for (uint32_t before = 0; before < p->number || l->parts[d].iwarp != p->iwarp; d++)
		before += l->parts[d].iwarp == p->iwarp;
	return d;
}

static bool settle(struct reading *l, struct devices *d)
{
	struct devices new = {.count = l->count, .kinds_given = true, .has_rails = l->parts[0].rail};

	for (uint32_t i = 0; i < l->count; i++) {
		const struct part *p = &l->parts[i];

		if (p->number >= l->kinds[p->iwarp])
			return SAY(l, "'%.*s' is there without those before it; allowed are names that count from 0",
				   p->len, p->text);
		new.iwarp |= (uint32_t)p->iwarp << i;
		if (p->rail)
			memcpy(new.rails[index_of(l, p)], p->rail, (size_t)p->rail_len);
	}
	*d = new;
	return true;
}

bool devices_is_name(const char *name, char *why, size_t why_bytes)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static const char later[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	size_t len = strlen(name);

	if (len < DEVICE_NAME_BYTES && strspn(name, later) == len && (!len || strchr(first, name[0])))
		return true;
	snprintf(why, why_bytes, "allowed are at most %d letters, digits, _ and -, of which the first is a letter",
		 DEVICE_NAME_BYTES - 1);
	return false;
}

bool devices_parse(struct devices *d, const char *text, char *why, size_t why_bytes)
{
	struct reading l = {.why = why, .why_bytes = why_bytes};
	const char *at = text;
	uint64_t v;

	if (!quantity_parse(text, strlen(text), &quantity_whole, &v) && v >= 1 && v <= ENGINE_DEVICES_MAX) {
		*d = (struct devices){.count = (uint32_t)v};
		return true;
	}
	if (!strpbrk(text, ",@") && (!text[0] || (text[0] >= '0' && text[0] <= '9')))
		return SAY(&l, ALLOWED, ENGINE_DEVICES_MAX);
	for (int len;; at += len + 1) {
		len = (int)strcspn(at, ",");
		if (!read_part(&l, at, len))
			return false;
		if (!at[len])
			return settle(&l, d);
	}
}
