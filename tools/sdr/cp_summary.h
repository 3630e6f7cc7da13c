/* SPDX-License-Identifier: BSD-2-Clause */
/* What sdr_cp says in the end. Private to tools/sdr. */
#pragma once

struct cp;

enum { CP_PARTIAL = 23 }; /* the exit status if something was left out, as rsync has it */

/* A line or two, a table if it is asked for, or a JSON object alone. */
void cp_summary_print(const struct cp *);
