/* SPDX-License-Identifier: BSD-2-Clause */
/* Explains, after a refusal, what is wrong with a queue pair's attributes or with an address. Private to src/verbs. */
#pragma once

#include "verbs/objects.h"

/* The engine is not locked. Both return err. */
int explain_create(const struct profile *, const struct ibv_qp_init_attr *, int err);
int explain_modify(struct abi_qp *, const struct ibv_qp_attr *, int mask, int err);
/* Once, where a queue pair was connected to an address at which only this host's processes can be, but not from one. */
void explain_peer(struct abi_context *, const struct ibv_ah_attr *);
/* False: nothing is wrong with the address. `call` is the function to name. */
bool explain_address(struct abi_context *, const struct ibv_ah_attr *, const char *call);
