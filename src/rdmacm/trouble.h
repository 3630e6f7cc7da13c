/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program of rdma_cm is told on standard error when a call fails, or a connection, for which it gets no more
 * than an errno or an event. First it is noted, under the engine's lock; later, without the lock, it is told.
 *
 * Private to src/rdmacm.
 */
#pragma once

#include "cm/cm.h"

struct engine;

/* Of one command. All zero: all is well. */
struct trouble {
	uint16_t first_port; /* that a program without privileges may bind; 0: not asked for */
	int err;             /* a negative errno: the command failed */
	bool unmapped;       /* likewise: the map lacks `remote` */
	int route_err;       /* likewise: there is no way to `remote` */
	struct cm_addr remote;
	bool told; /* `event` and `info` are those of the event that the command took */
	struct {
		enum cm_event_type type;
		int32_t status;
		bool answered;
	} event;
	struct cm_id_info info;
	struct cm_obstacle obstacle;
	long pid;        /* of the process that has the port */
	unsigned limits; /* reached by requests: cm_take_limits() */
	uint16_t udp_port;
	bool rocev2_refused; /* VERBENA_PROTOCOL=veroce, and a peer that does not speak it */
};

/* Returns err. */
int trouble_with_route(struct trouble *, const struct cm_addr *remote, int err);
void trouble_with_event(struct trouble *, const struct cm_event *, const struct cm_id_info *);
/* Lock held, at the end of each command, for each device that rdma_cm uses; err: 0 or a negative errno. */
void trouble_with_command(struct trouble *, struct engine *, int err);
void trouble_explain(const struct trouble *);
/* No descriptor is left for a channel. Returns err. */
int trouble_with_descriptors(int err);
