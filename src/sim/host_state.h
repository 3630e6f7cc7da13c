/* SPDX-License-Identifier: BSD-2-Clause */
/* A host from inside. Private to src/sim. */
#pragma once

#include "sim/host.h"
#include "wire/opcode.h"

enum { CQES = 4096, SIM_TTL = 64 };

/* Regions have no bytes: these are numbers. */
#define MEMORY_VA    UINT64_C(0x10000)
#define MEMORY_BYTES (UINT64_C(1) << 40)

struct host {
	struct nic *nic;
	struct network *network;
	const struct host_config *config;
	struct packet_store *packets;
	struct cq *cq;
	struct pd *pd;
	struct mr *mr;
	struct srq *srq;
	struct host_delay *delay;             /* NULL: no delays */
	const struct host_guest *guest_calls; /* NULL: no guest */
	void *guest;
	struct cq *guest_cq;
	uint32_t index;
	uint8_t paused; /* classes of data, as the nic knows it */
	bool asks;      /* with delay: the host looks again, as acknowledgements may have let the nic send more */
	uint32_t credits_ahead;
	uint8_t gid[16];
};

/* A QP in RESET, with that CQ and the host's SRQ; NULL: no memory. */
struct qp *host_make_qp(struct host *, enum qp_type, struct cq *, uint32_t send_wrs, void *owner);

/* ---- how the network sees a packet, of a port that RoCEv2 or veRoCE has; its BTH is whole ---- */

/* NULL: the opcode is none. */
const struct opcode_info *host_opcode_info(const struct pkt *);
/* Packets that carry an application's bytes, or request them; all others are answers and control. */
bool host_is_data(const struct opcode_info *, uint8_t opcode);
/* What ECMP hashes, in place of the source port. */
uint16_t host_entropy(uint32_t index, const struct pkt *);
