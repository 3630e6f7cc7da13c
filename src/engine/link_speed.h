/* SPDX-License-Identifier: BSD-2-Clause */
/* How fast a network interface says that its link is. Asking needs no privilege. */
#ifndef ENGINE_LINK_SPEED_H
#define ENGINE_LINK_SPEED_H

#include <stdint.h>

/* Bits a second; 0: it does not say, as loopback and many virtual interfaces, or there is none. */
uint64_t link_speed_bps(const char *interface);

#endif
