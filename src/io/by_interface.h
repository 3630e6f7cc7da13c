/* SPDX-License-Identifier: BSD-2-Clause */
/* What left by each interface, in memory that the opener of a back end lends until close; readers elsewhere may share
 * it. */
#pragma once

#include <stdint.h>

enum { IO_INTERFACES_MAX = 32 };

struct io_interface {
	char name[16];
	uint32_t ifindex;
	uint64_t tx_packets;
	uint64_t tx_bytes; /* as of struct io_counters */
};

/* Those that something was sent by, in the order in which that began. */
struct io_interfaces {
	uint32_t count;
	struct io_interface rows[IO_INTERFACES_MAX];
};

/* The row of an interface, made if need be; NULL: there are too many. It may ask the kernel for a name. */
struct io_interface *io_interface_find(struct io_interfaces *, uint32_t ifindex);
