/* SPDX-License-Identifier: BSD-2-Clause */
/* Prometheus' text exposition format, version 0.0.4. */
#pragma once

#include <stddef.h>

#include "engine/engine.h"
#include "tally.h"

/* All metrics; `ports` has one for each device. The caller frees the text; NULL: out of memory. */
char *export_text(const struct tally *, const struct engine_port *ports, size_t *bytes);
