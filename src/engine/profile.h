/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile: what another device has less than ours, and how it says so. The verbs refuse what the profile lacks, and
 * report its limits; the nic knows nothing of it. Lines of a profile's file are `key = value`, with a key of the table in
 * profile.c or a setting's, whose default the value then is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum profile_limit {
	PROFILE_QP,
	PROFILE_QP_WR,
	PROFILE_SGE,
	PROFILE_INLINE,
	PROFILE_CQ,
	PROFILE_CQE,
	PROFILE_MR,
	PROFILE_MW,
	PROFILE_PD,
	PROFILE_SRQ,
	PROFILE_SRQ_WR,
	PROFILE_SRQ_SGE,
	PROFILE_RD_ATOM,
	PROFILE_RES_RD_ATOM, /* of all queue pairs together, those that they answer */
	PROFILE_AH,
	PROFILE_MCAST_GRP,
	PROFILE_MCAST_QP,    /* attached to a group, */
	PROFILE_MCAST_TOTAL, /* and to all groups together */
	PROFILE_LIMITS
};

enum profile_set { PROFILE_QP_TYPES, PROFILE_OPERATIONS, PROFILE_VERBS, PROFILE_GIDS, PROFILE_SETS };

/* The bits of each set. */
enum profile_qp_type { PROFILE_RC, PROFILE_UC, PROFILE_UD, PROFILE_XRC };

enum profile_operation {
	PROFILE_SEND,
	PROFILE_SEND_IMM,
	PROFILE_SEND_INV,
	PROFILE_WRITE,
	PROFILE_WRITE_IMM,
	PROFILE_READ,
	PROFILE_ATOMIC,
	PROFILE_PLACEMENT /* FLUSH and ATOMIC WRITE */
};

enum profile_verb {
	PROFILE_EXTENDED, /* ibv_create_qp_ex() and the others of that kind that are reached through the context */
	PROFILE_HAS_SRQ,
	PROFILE_WINDOWS,
	PROFILE_MULTICAST,
	PROFILE_ON_DEMAND,
	PROFILE_DEVICE_MEMORY,
	PROFILE_DOMAINS,
	PROFILE_NULL_REGIONS,
	PROFILE_DMABUF,
	PROFILE_REREG,
	PROFILE_RESIZE_CQ,
	PROFILE_RESIZE_SRQ,
	PROFILE_IMPORT /* what another context of the process has */
};

enum profile_gid { PROFILE_LINK_LOCAL, PROFILE_IPV4, PROFILE_IPV6 };

struct profile {
	uint32_t max[PROFILE_LIMITS];
	uint32_t set[PROFILE_SETS]; /* bits */
	int refused;                /* errno of what the device does not have, */
	int full;                   /* and of one object more than it has room for */
};

/* Our device. */
void profile_init(struct profile *);
/*
 * Sets what a line says. The number of the key, or -ENOENT: there is no such key; or -EINVAL, with what is allowed in
 * `why`.
 */
int profile_set(struct profile *, const char *key, const char *value, char *why, size_t why_bytes);
/* All keys, with commas between them. */
void profile_keys(char *buf, size_t bytes);

enum { PROFILE_KEYS = PROFILE_LIMITS + PROFILE_SETS + 2 };

/* Those of share/profiles, made of its files when they are built; the last has no name. */
struct profile_text {
	const char *name, *text;
};

extern const struct profile_text profile_texts[];

/* A shipped profile's text, or NULL: there is none of that name; and all names, with commas between them. */
const char *profile_shipped(const char *name);
void profile_names(char *buf, size_t bytes);

static inline bool profile_has(const struct profile *p, enum profile_set set, unsigned bit)
{
	return p->set[set] >> bit & 1;
}
