/* SPDX-License-Identifier: BSD-2-Clause */
/* Prometheus' text exposition format, version 0.0.4. */
#pragma once

#include <stddef.h>

#include "engine/engine.h"
#include "tally.h"

/* All metrics. The caller frees the text; NULL: out of memory. */
char *export_text(const struct tally *, const struct engine_port *, size_t *bytes);
