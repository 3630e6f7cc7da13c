/* SPDX-License-Identifier: BSD-2-Clause */
/* The speed that a network interface reports for its link. Needs no privilege. Private to src/engine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Bits a second; 0: it reports none, like loopback and many virtual interfaces, or does not exist. */
uint64_t link_speed_bps(const char *interface);
/* Whether that speed is one that the interface's driver makes up, as veth (10 Gbit/s) and tun (10 Mbit/s) do. */
bool link_speed_is_made_up(const char *interface);
