/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far a copy is, on standard error: one line that changes if that is a terminal, else a line every few seconds.
 *
 * Private to tools/sdr.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sdr/cp_list.h"

struct cp_progress {
	bool quiet, terminal, shown;
	uint64_t bytes;             /* to be copied */
	uint64_t start_ns, show_ns; /* when it was and will be shown */
	uint64_t seen_ns, seen;     /* the last time the rate was looked at, and what was done then */
	double rate_bps;            /* that fades */
	char file[64];              /* the one that is copied, and how much of it */
};

void cp_progress_start(struct cp_progress *, bool quiet, uint64_t bytes);
/* `done`: bytes; `lost`: share of the packets, negative where it is not known. */
void cp_progress_show(struct cp_progress *, uint64_t done, double lost);
/* It is shown again in about so many milliseconds. */
int cp_progress_ms(const struct cp_progress *);
/* Which file it is, and up to which of its blocks. */
void cp_progress_file(struct cp_progress *, const struct cp_list *, struct cp_cursor);
/* Makes room for other lines. */
void cp_progress_clear(struct cp_progress *);

/* "1.50 GB" */
const char *cp_bytes_text(uint64_t bytes, char text[16]);
