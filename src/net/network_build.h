/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that a network is built with; for the network's own files. Private to src/net. */
#pragma once

#include <stdint.h>

/* The third part of a generator's seed, beside the run's seed and the object's number. */
enum network_object { OBJECT_SWITCH_HASH = 1, OBJECT_SWITCH_CHOICE, OBJECT_PORT_IMPAIRMENT, OBJECT_PORT_MARK };

/* A seed for one object: equal for equal arguments, and otherwise as good as drawn anew. */
uint64_t network_object_seed(uint64_t seed, enum network_object, uint32_t number);
