/* SPDX-License-Identifier: BSD-2-Clause */
/* The speed that a network interface reports for its link. Needs no privilege. Private to src/engine. */
#pragma once

#include <stdint.h>

/* Bits a second; 0: it reports none, like loopback and many virtual interfaces, or does not exist. */
uint64_t link_speed_bps(const char *interface);
