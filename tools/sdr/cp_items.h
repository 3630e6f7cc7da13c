/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a copy does to each thing, in the words of rsync's --itemize-changes: CP_ITEM_LEN characters and a name. Only the
 * receiving end knows, and the end that asks shows it.
 *
 * Private to tools/sdr.
 */
#pragma once

#include <stdint.h>

#include "sdr/cp_wire.h"

struct cp;

enum cp_item {
	ITEM_FRESH = 1,   /* there was none */
	ITEM_CONTENT = 2, /* data is copied, or a link points elsewhere */
	ITEM_SIZE = 4,
	ITEM_TIME = 8,
	ITEM_MODE = 16,
	ITEM_OWNER = 32,
	ITEM_GROUP = 64,
	ITEM_ATTRIBUTES = 128,
};

/* Shows or tells what happens to entry i, if anything does. */
void cp_item_say(struct cp *, uint32_t i);
/* What is deleted has a name below entry 0, and no entry. */
void cp_item_deleted(struct cp *, const char *name);
/* A CP_ITEM that the receiver has said. */
void cp_item_hear(struct cp *, const struct cp_frame *);
