/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The nic's state, and the calls between its files.
 *
 * Private to src/nic.
 */
#pragma once

#include <stdatomic.h>

#include "nic/nic.h"
#include "transport/qp.h"
#include "wire/icrc.h"
#include "wire/mad.h"

enum { NIC_FEW_QPS = 8 };

/* Datagrams to QPN 1 that wait for nic_mad_take(), and those that leave from it (gsi.c). */
struct gsi {
	struct list in, out;
	uint32_t in_count, out_count;
	uint32_t psn;
};

struct nic {
	struct transport tp;
	_Atomic(struct qp *) rung; /* doorbells not yet collected, newest first */
	/* QPs by the lowest bits of the QPN: at least as many buckets as QPs, in few_qps while these are enough. */
	struct qp **qps;
	uint32_t qps_mask;
	uint32_t qp_count;
	struct qp *few_qps[NIC_FEW_QPS];
	uint32_t qpn_bits;
	uint32_t qpn_base;
	uint32_t qpn_serial; /* next input of the permutation */
	uint8_t qpn_secret[16];
	uint64_t srqn_serial; /* next input of the XRC SRQs' numbers */
	uint32_t pd_serial;
	struct list pds;    /* struct nic_pd */
	struct list cqs;    /* struct nic_cq */
	struct list srqs;   /* struct nic_srq */
	struct list xrcds;  /* struct nic_xrcd */
	struct list groups; /* struct mcast_group */
	uint32_t group_count;
	struct gsi gsi;
	struct rx_row row; /* of nic_place() */
	bool own_arena;
	uint16_t pkeys[NIC_PKEYS_MAX];
	uint32_t pkey_count;
	uint32_t gid_count;
	/* Large, and last: pages that are never touched cost nothing in a network of thousands of nics. */
	struct nic_gid gids[NIC_GIDS_MAX];
	struct icrc_ctx icrc;
};

struct nic_pd {
	struct pd pd;
	struct list link;
};

struct nic_cq {
	struct cq cq;
	struct list link;
};

struct nic_xrcd {
	struct xrcd xrcd;
	struct list link;
};

struct nic_srq {
	struct srq srq;
	struct list link;
};

/* The QP with that number, or NULL. */
struct qp *qp_table_find(const struct nic *, uint32_t qpn);
/* Enters the QP by that number, which is free, or with 0 by one that is drawn; -ENOMEM when all are taken. */
int qp_table_add(struct nic *, struct qp *, uint32_t qpn);
bool qpn_is_free(const struct nic *, uint32_t qpn);
/* Twice as many buckets. If there is no memory for them, each bucket has more QPs. */
void qp_table_grow(struct nic *);
void qp_table_remove(struct nic *, struct qp *);
void qp_table_init(struct nic *);
/* Destroys the QPs that are left. */
void qp_table_fini(struct nic *);

/*
 * Whether the IB state table (IBTA 10.3.1, 11.2.5.2) lets a QP of that type go from one state to
 * another with that mask of attributes.
 */
bool qp_transition_is_legal(enum qp_type, enum qp_state from, enum qp_state to, uint32_t mask);

/* Whether that address is one of the host's own. */
bool nic_is_local(const struct nic *, const uint8_t gid[16]);
/* The address of the wire that a dgid stands for; NULL: the map lacks it. */
const uint8_t *nic_underlay(const struct nic *, const uint8_t dgid[16]);
/* Finds out who the QP's peer is, by the addresses and the QPN that it has now. */
void qp_find_peer(struct nic *, struct qp *);

/* The protocol of a connected QP; `pair`: that of its engine (qp_psns). */
enum nic_spoken nic_spoken(const struct nic *, const struct qp *, const struct pair *);

/* What a QP begins with; NULL: the nic has no QPs of that type. */
const struct qp_ops *nic_engine_of(const struct nic *, enum qp_type);
/* Whether a QP with these parts and capabilities is allowed. */
bool qp_may_make(const struct nic *, const struct qp_init *);
/* One with the capabilities that were granted, and that number (0: draws one). 0 or -ENOMEM. */
int qp_make(struct nic *, const struct qp_init *granted, uint32_t qpn, struct qp **out);
/* Whether every value in the mask is one that the attribute can have: 0, -EINVAL or -EOPNOTSUPP. */
int qp_judge_values(const struct nic *, const struct qp_attr *, uint32_t mask);

/* Moves the QP, with what the move brings about; judged and applied before. */
void qp_enter(struct nic *, struct qp *, enum qp_state from, enum qp_state to, uint64_t now_ns);
/* nic_qp_modify() of a QP whose engine has streams. */
int stream_modify(struct nic *, struct qp *, const struct qp_attr *, uint32_t mask, uint64_t now_ns);

/* A packet for the QP; counts what speaks against it. */
void nic_deliver(struct nic *, struct qp *, struct rx *);
/* Whether a P_Key matches one of the table's. */
bool nic_has_pkey(const struct nic *, uint16_t pkey);
/* A packet for the multicast QPN. */
__attribute__((noinline)) void mcast_input(struct nic *, struct rx *);
/* Detaches a QP from all groups. */
void mcast_detach_all(struct nic *, struct qp *);

struct archive;
/* Their groups and datagrams as bytes (image.c); each record has that type. Loading, nothing is there yet. */
void mcast_archive(struct archive *, struct nic *, uint16_t type);
void gsi_archive(struct archive *, struct nic *, uint16_t type);
/* The SRQ joins that domain, by a number that nobody has. */
void srq_join(struct nic *, struct srq *, struct xrcd *, struct cq *, uint32_t number);

/* No datagram waits. */
void gsi_init(struct gsi *);
/* A packet for QPN 1. */
__attribute__((cold)) void gsi_input(struct nic *, const struct rx *);
/* Within a turn: lays out the waiting datagrams, as far as there is room. */
__attribute__((cold)) void gsi_output(struct nic *);

/* Collects the doorbells that have rung: their QPs join the active lists. */
void nic_hear_doorbells(struct nic *);
