/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VERBENA_DEVICES: how many devices a program sees, of which kind each is, and which interface or address it is bound to
 * (its rail).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/engine.h"

enum { RAIL_BYTES = 64 /* an IPv6 address, % and an interface */ };

struct devices {
	uint32_t count;   /* 1 .. ENGINE_DEVICES_MAX */
	uint32_t iwarp;   /* a bit for each that speaks iWARP */
	bool kinds_given; /* by words or names */
	bool has_rails;   /* each has one; else none has */
	char rails[ENGINE_DEVICES_MAX][RAIL_BYTES];
};

/*
 * Reads a number, or a list of kinds or names, each perhaps with @ and a rail behind it. Whether this host has such rails
 * is not judged. False with a sentence in why, and *d as it was.
 */
bool devices_parse(struct devices *d, const char *text, char *why, size_t why_bytes);
/* Whether a virtual device may have that name; false with a sentence in why. Empty, which is no name, may be. */
bool devices_is_name(const char *name, char *why, size_t why_bytes);

/*
 * `iwarp` has a bit for each device that speaks iWARP. The devices of each kind are numbered by themselves, unless there is
 * one, whose name is `given` (VERBENA_DEVICE); empty: it is not.
 */
static inline void device_name(char name[DEVICE_NAME_BYTES], uint32_t iwarp, const char *given, unsigned device)
{
	bool is_iwarp = iwarp >> device & 1;
	uint32_t before = (is_iwarp ? iwarp : ~iwarp) & ((UINT32_C(1) << device) - 1);

	if (given[0])
		snprintf(name, DEVICE_NAME_BYTES, "%s", given);
	else
		snprintf(name, DEVICE_NAME_BYTES, is_iwarp ? "verbena_iw%d" : "verbena%d", __builtin_popcount(before));
}
