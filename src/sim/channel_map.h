/* SPDX-License-Identifier: BSD-2-Clause */
/* Channels by the queue pairs that their packets go to, for whoever looks at packets from outside. */
#ifndef SIM_CHANNEL_MAP_H
#define SIM_CHANNEL_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct channel;
struct channel_map;

/* NULL: no memory. */
struct channel_map *channel_map_create(void);
/* Harmless on NULL. */
void channel_map_destroy(struct channel_map *);

/* Borrows the channel until it is removed. A queue pair is entered once. False: no memory. */
bool channel_map_add(struct channel_map *, uint32_t host, uint32_t qpn, struct channel *);
/* One that is not there is no error. */
void channel_map_remove(struct channel_map *, uint32_t host, uint32_t qpn);
/* NULL: there is none. */
struct channel *channel_map_find(const struct channel_map *, uint32_t host, uint32_t qpn);

#endif
