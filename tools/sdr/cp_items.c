/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/byteorder.h"
#include "sdr/cp.h"
#include "sdr/cp_items.h"

#define DELETED "*deleting  "

/* Whatever is in a name, a terminal only shows it. */
static void show(struct cp *cp, const char *text, const char *name)
{
	if (cp->json)
		return;
	cp_progress_clear(&cp->progress);
	printf("%.*s ", CP_ITEM_LEN, text);
	for (; *name; name++)
		printf(iscntrl((unsigned char)*name) ? "\\#%03o" : "%c", (unsigned char)*name);
	putchar('\n');
}

/* The end that asks shows it; the other one tells it. */
static void say(struct cp *cp, uint32_t i, const char *text, const char *name)
{
	uint8_t frame[4 + CP_ITEM_LEN + PATH_MAX];
	size_t len = i < cp->list.count ? 0 : strlen(name);

	if (!cp->plan[PLAN_ITEMS])
		return;
	if (cp->host) {
		show(cp, text, name);
		return;
	}
	put_be32(frame, i);
	memcpy(frame + 4, text, CP_ITEM_LEN);
	memcpy(frame + 4 + CP_ITEM_LEN, name, len);
	cp_say(CP_ITEM, frame, 4 + CP_ITEM_LEN + len);
}

static char verb(const struct cp *cp, const struct cp_entry *e)
{
	if (e->kind == CP_NAME)
		return e->item & ITEM_FRESH ? 'h' : '.';
	if (e->kind == CP_FILE && e->item & ITEM_CONTENT)
		return cp->plan[PLAN_FETCH] ? '>' : '<';
	return e->item & (ITEM_FRESH | ITEM_CONTENT) ? 'c' : '.';
}

static void text_write(const struct cp *cp, const struct cp_entry *e, char text[CP_ITEM_LEN + 1])
{
	static const struct {
		uint8_t place, item;
		char letter;
	} letters[] = {{3, ITEM_SIZE, 's'},  {4, ITEM_TIME, 't'},  {5, ITEM_MODE, 'p'},
		       {6, ITEM_OWNER, 'o'}, {7, ITEM_GROUP, 'g'}, {10, ITEM_ATTRIBUTES, 'x'}};

	snprintf(text, CP_ITEM_LEN + 1, "%c%c%s", verb(cp, e),
		 cp_is_folder(e)      ? 'd'
		 : e->kind == CP_LINK ? 'L'
				      : 'f',
		 e->item & ITEM_FRESH ? "+++++++++" : ".........");
	if (e->item & ITEM_FRESH)
		return;
	if (e->item & ITEM_CONTENT && (e->kind == CP_LINK || cp->plan[PLAN_CHECKSUM]))
		text[2] = 'c';
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
		if (e->item & letters[i].item)
			text[letters[i].place] = letters[i].letter;
	}
}

void cp_item_say(struct cp *cp, uint32_t i)
{
	char text[CP_ITEM_LEN + 1], name[PATH_MAX];

	if (!cp->list.entry[i].item || !cp_list_name(&cp->list, i, name, sizeof(name)))
		return;
	text_write(cp, &cp->list.entry[i], text);
	say(cp, i, text, name);
}

void cp_item_deleted(struct cp *cp, const char *name)
{
	cp->deleted++;
	say(cp, UINT32_MAX, DELETED, name);
}

void cp_item_hear(struct cp *cp, const struct cp_frame *f)
{
	char name[PATH_MAX] = "";
	uint32_t i;

	if (f->length < 4 + CP_ITEM_LEN || f->length - 4 - CP_ITEM_LEN >= sizeof(name) || !cp->plan[PLAN_ITEMS])
		cp_nonsense();
	for (i = 4; i < 4 + CP_ITEM_LEN; i++) {
		if (!isprint(f->payload[i]))
			cp_nonsense();
	}
	i = get_be32(f->payload);
	memcpy(name, f->payload + 4 + CP_ITEM_LEN, f->length - 4 - CP_ITEM_LEN);
	if (i >= cp->list.count || cp_list_name(&cp->list, i, name, sizeof(name)))
		show(cp, (const char *)f->payload + 4, name);
}
