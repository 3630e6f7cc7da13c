/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window that all paths of a pair share where switches trim packets although the paths' own windows are the
 * smallest (our choice: docs/veroce.md). Without trims it is the capacity of the peer's buffer.
 *
 * Private to src/transport/paths.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pair;

/* All 0 for a pair that begins. */
struct trim_window {
	uint64_t round_end;                  /* when the pair's gone_bytes reaches it */
	uint64_t round_bytes, trimmed_bytes; /* bytes of this round: all, and those trimmed */
	uint8_t heavy;                       /* rounds in a row in which much was trimmed */
	uint8_t calm; /* rounds in a row in which no trim was on a path with the smallest window */
};

/* A packet of `bytes`, headers included, was trimmed; path_is_least: its path's window is the smallest. */
void trim_window_cut(struct pair *, uint32_t bytes, bool path_is_least);
/* Bytes were acknowledged, and have left the pair. */
void trim_window_grow(struct pair *);
