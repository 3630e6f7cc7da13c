/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses that a whole program takes along to another network namespace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/address.h"
#include "nic/nic.h"
#include "reach.h"

struct luggage {
	int here, there; /* connections to the two kernels' tables */
	size_t count, given;
	bool has_tcp; /* connections whose addresses are among them */
	struct {
		struct address from, to;
	} of[NIC_GIDS_MAX];
};

/*
 * What TCP connections have, and what the devices' queue pairs and ids of rdma_cm need, and is not there. The caller is in the network namespace `here`,
 * which is left for `there`. with_addresses: addresses may go along. EXIT_SUCCESS, or EXIT_OURS and it has been said why they could not go on there;
 * luggage_close() in either case.
 */
int luggage_pack(struct luggage *, const struct reached *, int pidfd, int here, int there, bool with_addresses);
/* Gives the addresses to the place there; those here have them too. EXIT_SUCCESS; EXIT_OURS, it has been said why not, and
 * there is none there. */
int luggage_give(struct luggage *);
/* Tells the neighbours of the place where the caller is that the addresses are there: the one they were given to, or not. */
void luggage_announce(const struct luggage *, bool there);
/* Takes them away there, where they were given. */
void luggage_take_back(struct luggage *);
/* Takes them away here. */
void luggage_leave(struct luggage *);
void luggage_close(struct luggage *);
