/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of descriptors. Those of Verbena's own are high, because programs count on low ones: nc.traditional looks at
 * descriptors below 16 alone, and select() at those below 1024.
 */
#pragma once

/* *Takes* a descriptor; the same file under a high number, or under this one where the limit leaves no room. -1 stays
 * -1. */
int fd_away(int fd);
/* The lowest number that fd_away() gives. */
int fd_away_first(void);
