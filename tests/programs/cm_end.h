/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of an ordinary program of librdmacm that has one connection. It is built against the distribution's libraries
 * and does not know which device serves it. Any error ends the program with a line on standard output and status 2.
 */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/rdma_cma.h>

/* Stands at the start of an error's line: what the program was trying. NULL: nothing stands there. */
static const char *trying;

static inline void fail(const char *doing)
{
	printf("%s%s%s: %s\n", trying ? trying : "", trying ? ": " : "", doing, strerrorname_np(errno));
	exit(2);
}

/*
 * An id for where[0], an address, and where[1], a port. With RAI_PASSIVE in the flags it is for a listener, whose
 * connections have queue pairs for `wrs` work requests each way; else it has such a queue pair of its own.
 */
static inline struct rdma_cm_id *endpoint(char **where, int flags, uint32_t wrs, int sq_sig_all)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = flags}, *found;
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = wrs, .max_recv_wr = wrs, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = sq_sig_all};
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(where[0], where[1], &hints, &found))
		fail("address");
	if (rdma_create_ep(&id, found, NULL, &init))
		fail("endpoint");
	rdma_freeaddrinfo(found);
	return id;
}
