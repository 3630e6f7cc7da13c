/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of what a profile may say. A limit's highest value is ours, and its default; a set's default is all of it.
 */
#include "engine/profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/quantity.h"
#include "nic/nic.h"

struct errno_name {
	const char *name;
	int value;
};

static const char *const qp_types[] = {
	[PROFILE_RC] = "rc", [PROFILE_UC] = "uc", [PROFILE_UD] = "ud", [PROFILE_XRC] = "xrc", NULL,
};

static const char *const operations[] = {
	[PROFILE_SEND] = "send",     [PROFILE_SEND_IMM] = "send_imm",   [PROFILE_SEND_INV] = "send_inv",
	[PROFILE_WRITE] = "write",   [PROFILE_WRITE_IMM] = "write_imm", [PROFILE_READ] = "read",
	[PROFILE_ATOMIC] = "atomic", [PROFILE_PLACEMENT] = "placement", NULL,
};

static const char *const verbs[] = {
	[PROFILE_EXTENDED] = "extended",   [PROFILE_HAS_SRQ] = "srq",
	[PROFILE_WINDOWS] = "windows",     [PROFILE_MULTICAST] = "multicast",
	[PROFILE_ON_DEMAND] = "on_demand", [PROFILE_DEVICE_MEMORY] = "device_memory",
	[PROFILE_DOMAINS] = "domains",     [PROFILE_NULL_REGIONS] = "null_regions",
	[PROFILE_DMABUF] = "dmabuf",       [PROFILE_REREG] = "rereg",
	[PROFILE_RESIZE_CQ] = "resize_cq", [PROFILE_RESIZE_SRQ] = "resize_srq",
	[PROFILE_IMPORT] = "import",       NULL,
};

static const char *const gids[] = {
	[PROFILE_LINK_LOCAL] = "link_local",
	[PROFILE_IPV4] = "ipv4",
	[PROFILE_IPV6] = "ipv6",
	NULL,
};

static const struct errno_name errnos[] = {
	{"EINVAL", EINVAL},         {"ENOMEM", ENOMEM}, {"ENOSPC", ENOSPC}, {"ENOSYS", ENOSYS},
	{"EOPNOTSUPP", EOPNOTSUPP}, {"EPERM", EPERM},   {"EAGAIN", EAGAIN}, {NULL, 0},
};

static const struct limit_row {
	const char *key;
	uint32_t min, max;
} limits[] = {
	[PROFILE_QP] = {"max_qp", 1, NIC_MAX_QP},
	[PROFILE_QP_WR] = {"max_qp_wr", 1, NIC_MAX_QP_WR},
	[PROFILE_SGE] = {"max_sge", 1, NIC_MAX_SGE},
	[PROFILE_INLINE] = {"max_inline_data", 0, NIC_MAX_INLINE},
	[PROFILE_CQ] = {"max_cq", 1, NIC_MAX_CQ},
	[PROFILE_CQE] = {"max_cqe", 1, NIC_MAX_CQE},
	[PROFILE_MR] = {"max_mr", 1, NIC_MAX_MR},
	[PROFILE_MW] = {"max_mw", 0, NIC_MAX_MW},
	[PROFILE_PD] = {"max_pd", 1, NIC_MAX_PD},
	[PROFILE_SRQ] = {"max_srq", 0, NIC_MAX_SRQ},
	[PROFILE_SRQ_WR] = {"max_srq_wr", 1, NIC_MAX_SRQ_WR},
	[PROFILE_SRQ_SGE] = {"max_srq_sge", 1, NIC_MAX_SGE},
	[PROFILE_RD_ATOM] = {"max_qp_rd_atom", 0, NIC_MAX_RD_ATOM},
	[PROFILE_RES_RD_ATOM] = {"max_res_rd_atom", 0, NIC_MAX_RD_ATOM *NIC_MAX_QP},
	[PROFILE_AH] = {"max_ah", 0, NIC_MAX_AH},
	[PROFILE_MCAST_GRP] = {"max_mcast_grp", 0, NIC_MAX_MCAST_GROUPS},
	[PROFILE_MCAST_QP] = {"max_mcast_qp_attach", 0, NIC_MAX_MCAST_QPS},
	[PROFILE_MCAST_TOTAL] = {"max_total_mcast_qp_attach", 0, NIC_MAX_MCAST_GROUPS *NIC_MAX_MCAST_QPS},
};

static const struct set_row {
	const char *key;
	const char *const *words;
} sets[] = {
	[PROFILE_QP_TYPES] = {"qp_types", qp_types},
	[PROFILE_OPERATIONS] = {"operations", operations},
	[PROFILE_VERBS] = {"verbs", verbs},
	[PROFILE_GIDS] = {"gids", gids},
};

static const char *const errno_keys[] = {"refused", "full"};

static_assert(sizeof(limits) / sizeof(limits[0]) == PROFILE_LIMITS && sizeof(sets) / sizeof(sets[0]) == PROFILE_SETS,
	      "each has a row");

static uint32_t all_of(const char *const *words)
{
	uint32_t n = 0;

	while (words[n])
		n++;
	return (UINT32_C(1) << n) - 1;
}

void profile_init(struct profile *p)
{
	for (int i = 0; i < PROFILE_LIMITS; i++)
		p->max[i] = limits[i].max;
	for (int i = 0; i < PROFILE_SETS; i++)
		p->set[i] = all_of(sets[i].words);
	p->refused = EOPNOTSUPP;
	p->full = ENOMEM;
}

static size_t put(char *buf, size_t bytes, size_t n, const char *before, const char *word)
{
	return n < bytes ? n + (size_t)snprintf(buf + n, bytes - n, "%s%s", n ? before : "", word) : n;
}

static bool limit_set(const struct limit_row *row, uint32_t *to, const char *value, char *why, size_t why_bytes)
{
	uint64_t v;

	if (quantity_parse(value, strlen(value), &quantity_whole, &v) || v < row->min || v > row->max) {
		snprintf(why, why_bytes, "allowed is a whole number from %u to %u", row->min, row->max);
		return false;
	}
	*to = (uint32_t)v;
	return true;
}

/* A bit for the word; 0: it is none of them. */
static uint32_t bit_of(const char *const *words, const char *at, size_t len)
{
	for (uint32_t i = 0; words[i]; i++) {
		if (strlen(words[i]) == len && !strncmp(words[i], at, len))
			return UINT32_C(1) << i;
	}
	return 0;
}

/* Words with spaces or commas between them; `none` for no word at all. */
static bool set_set(const struct set_row *row, uint32_t *to, const char *value, char *why, size_t why_bytes)
{
	static const char between[] = " ,\t";
	uint32_t bits = 0, bit = 1;
	size_t len, n = 0;

	if (strcmp(value, "none")) {
		for (const char *at = value + strspn(value, between); *at && bit; at += strspn(at, between)) {
			len = strcspn(at, between);
			bit = bit_of(row->words, at, len);
			bits |= bit;
			at += len;
		}
		if (!bits)
			bit = 0;
	}
	if (bit) {
		*to = bits;
		return true;
	}
	for (int i = 0; row->words[i]; i++)
		n = put(why, why_bytes, n, ", ", row->words[i]);
	put(why, why_bytes, n, " ", "are the words that are allowed, or none");
	return false;
}

static bool errno_set(int *to, const char *value, char *why, size_t why_bytes)
{
	size_t n = 0;

	for (int i = 0; errnos[i].name; i++) {
		if (!strcmp(value, errnos[i].name)) {
			*to = errnos[i].value;
			return true;
		}
	}
	for (int i = 0; errnos[i].name; i++)
		n = put(why, why_bytes, n, ", ", errnos[i].name);
	put(why, why_bytes, n, " ", "are allowed");
	return false;
}

/* The key with that number. */
static const char *key_at(int i)
{
	if (i < PROFILE_LIMITS)
		return limits[i].key;
	if (i < PROFILE_LIMITS + PROFILE_SETS)
		return sets[i - PROFILE_LIMITS].key;
	return errno_keys[i - PROFILE_LIMITS - PROFILE_SETS];
}

int profile_set(struct profile *p, const char *key, const char *value, char *why, size_t why_bytes)
{
	int i = 0, set;
	bool ok;

	while (i < PROFILE_KEYS && strcmp(key_at(i), key))
		i++;
	if (i == PROFILE_KEYS)
		return -ENOENT;
	set = i - PROFILE_LIMITS;
	if (set < 0)
		ok = limit_set(&limits[i], &p->max[i], value, why, why_bytes);
	else if (set < PROFILE_SETS)
		ok = set_set(&sets[set], &p->set[set], value, why, why_bytes);
	else
		ok = errno_set(set == PROFILE_SETS ? &p->refused : &p->full, value, why, why_bytes);
	return ok ? i : -EINVAL;
}

void profile_keys(char *buf, size_t bytes)
{
	size_t n = 0;

	for (int i = 0; i < PROFILE_KEYS; i++)
		n = put(buf, bytes, n, ", ", key_at(i));
}

/* ---- what is shipped ----------------------------------------------------------------------------- */

const char *profile_shipped(const char *name)
{
	for (int i = 0; profile_texts[i].name; i++) {
		if (!strcmp(profile_texts[i].name, name))
			return profile_texts[i].text;
	}
	return NULL;
}

void profile_names(char *buf, size_t bytes)
{
	size_t n = 0;

	for (int i = 0; profile_texts[i].name; i++)
		n = put(buf, bytes, n, ", ", profile_texts[i].name);
}
