/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port as the world has it. The kernel tells of links and addresses that come, go and change; the engine's thread
 * hears it, and everything that knows the port's addresses follows.
 *
 * Only that thread writes the table, with the lock held; so it alone may read it without.
 *
 * Private to src/engine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/state.h"
#include "io/io.h"

/* Loads the table. 0, or a negative errno with a sentence in why. */
int port_open(struct engine *, char *why, size_t why_bytes);
/*
 * The descriptor that is readable when the kernel has told something; -1: it tells nothing here, and the table stays as
 * it was loaded.
 */
int port_fd(const struct engine *);
void port_close(struct engine *);

/* The engine's thread, lock held: hears nothing any more; */
void port_stop(struct engine *);
/* makes the table of where sockets are made now, which is not `here`, where the last one is of; 0 or a negative errno; */
int port_survey(const struct engine *, bool here, struct gid_table *);
/* and hears it there, with that table. sink->port_changed() is the caller's to call. */
void port_resume(struct engine *, const struct gid_table *);

/* The engine's thread, lock not held: takes in what the kernel has told, if it has. */
void port_look(struct engine *);

/*
 * Faults, by the engine's thread with the lock held; each raises its event. False: it was so already, or there is no such
 * GID, or no room for it.
 */
bool port_unplug(struct engine *, bool down); /* the cable */
bool port_hide_gid(struct engine *, const uint8_t gid[16], bool hide);
bool port_move_gid(struct engine *, const uint8_t gid[16]);

/* Writes the addresses of the table, of which there are NIC_GIDS_MAX at most. Returns how many. */
size_t port_addresses(const struct engine *, uint8_t (*own)[16]);
/* Writes the addresses of the host, those of interfaces that are not used too. How many; or a negative errno, with a
 * sentence in why. */
int port_host_gids(struct io_gid gids[IO_GIDS_MAX], char *why, size_t why_bytes);
/* Likewise those that the settings leave to all devices of the program together, whatever each is bound to. */
int port_chosen_gids(const struct engine *, struct io_gid gids[IO_GIDS_MAX], char *why, size_t why_bytes);
