/* SPDX-License-Identifier: BSD-2-Clause */
/* What the faults on command of a program did, read from its page. Private to tools. */
#pragma once

#include "engine/stats.h"

/* The last events, a line each; as JSON, an object a line. The page is another process's, and may say anything. */
void events_print(const struct stats_page *, const char *device);
void events_print_json(const struct stats_page *, const char *device);
/* The rules, with how often each has fired. */
void rules_print(const struct stats_page *, const char *device);
