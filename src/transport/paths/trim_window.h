/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window that all paths of a pair get together where switches trim more than the paths' own windows
 * can answer (our choice: docs/veroce.md). Without trims it is what the peer's buffer takes.
 *
 * Private to src/transport/paths.
 */
#ifndef TRANSPORT_PATHS_TRIM_WINDOW_H
#define TRANSPORT_PATHS_TRIM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct pair;

/* All 0 for a pair that begins. */
struct trim_window {
	uint64_t round_end;                  /* when the pair's gone_bytes reaches it */
	uint64_t round_bytes, trimmed_bytes; /* bytes of this round: all, and those trimmed */
	uint8_t heavy; /* rounds in a row in which much was trimmed */
	uint8_t calm;  /* rounds in a row in which every trim was answered by its path */
};

/* A packet of so many bytes, headers counted, was trimmed, on a path whose window is the least or is not. */
void trim_window_cut(struct pair *, uint32_t bytes, bool path_is_least);
/* Bytes were acknowledged, and have left the pair. */
void trim_window_grow(struct pair *);

#endif
