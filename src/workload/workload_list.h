/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A part that is a list of messages, for small patterns and for files: some start at a given time,
 * others when a trigger fires; the ends of other messages fire triggers.
 *
 * Private to src/workload.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "workload/workload_part.h"

enum { LIST_NO_TRIGGER = UINT32_MAX };

struct listed {
	uint64_t start_ps;
	uint64_t bytes;
	uint64_t connection;
	uint32_t src, dst; /* ranks */
	/* The triggers that its ends fire, or LIST_NO_TRIGGER. */
	uint32_t sent_trigger, received_trigger;
	uint16_t tag;
	uint8_t class;
	bool waits;    /* for a trigger; start_ps is how long after it */
	bool released; /* by it */
};

enum list_trigger_type {
	LIST_ONESHOT,   /* the first firing releases all targets */
	LIST_MULTISHOT, /* each firing releases the next one */
	LIST_BARRIER    /* the count-th firing releases all */
};

struct list_trigger {
	enum list_trigger_type type;
	uint64_t count; /* LIST_BARRIER: firings needed */
	uint64_t fired;
	uint32_t first, target_count; /* targets[first ..]: items that wait for this trigger */
};

struct list;

/* With room for `room` messages and `triggers` triggers of `targets` targets. NULL: no memory. */
struct list *list_create(const struct workload_part *common, uint32_t room, uint32_t triggers, uint32_t targets);

/* The next item, zeroed but for tag and class, the connection (its index) and no triggers. */
struct listed *list_add(struct list *);
uint32_t list_count(const struct list *);
struct listed *list_items(struct list *);

/* To be filled in by the caller before list_finish. */
struct list_trigger *list_triggers(struct list *);
uint32_t *list_targets(struct list *);

/* Sorts the list, which becomes *out. On failure (-ENOMEM) it is freed. */
int list_finish(struct list *, struct workload_part **out);

void list_free(struct list *);
