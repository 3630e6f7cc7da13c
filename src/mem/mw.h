/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows (IBTA 10.6.7): a key of its own to a part of a region, which work requests give and take away.
 *
 *                       bound by                     new R_Key        opens for            unbound by
 *     type 1            a bind, bound before or not  any              each QP of the PD    a bind of length 0
 *     type 2B           a bind of a free one         24 bits fixed    the QP that bound    an invalidation
 *
 * A window is in the table of keys under its R_Key, bound or not, as a region is, so mr_check_remote() looks once. Its
 * handle is a second key, which opens nothing and never changes: work requests name the window by it, since they may
 * be executed when the window is gone.
 */
#pragma once

#include "mem/mr.h"

/* The numbers of enum ibv_mw_type. */
enum mw_type { MW_TYPE_1 = 1, MW_TYPE_2 = 2 };

/* The part of an R_Key that is the program's to choose, for windows of type 2 (IBTA 10.6.7.2.1). */
enum { MW_TAG_MASK = 0xff };

enum { MW_ACCESS_KNOWN = MR_REMOTE_ACCESS | MR_ZERO_BASED };

struct mw {
	struct mr opened; /* under the R_Key; no access and no bytes: it is not bound */
	struct mr anchor; /* under the handle */
	struct pd *pd;
	enum mw_type type;
	struct mr *region;       /* that it is bound to, or NULL */
	struct mr_user *binder;  /* type 2, bound: the QP that bound it; NULL: that one is destroyed */
	struct mw *next, **link; /* among those of its binder */
};

/* A window that is not bound. 0, -EINVAL (another type) or -ENOMEM. The table owns it until mw_destroy(). */
int mw_create(struct mr_table *, struct pd *, enum mw_type, struct mw **out);
/* Bound or not: its keys stop working at once. */
void mw_destroy(struct mr_table *, struct mw *);

/* A key that nothing has, for the next binding of a window of type 1. */
uint32_t mw_draw_key(struct mr_table *);

/* What a bind asks for. */
struct mw_binding {
	uint64_t addr;   /* in the region, as peers call it (iova) */
	uint64_t length; /* bytes; 0: a window of type 1 is not bound any more */
	uint32_t handle; /* the window's */
	uint32_t rkey;   /* its new R_Key */
	uint32_t lkey;   /* of the region */
	uint32_t access; /* of MW_ACCESS_KNOWN */
};

/* Binds for that QP. False, and nothing has changed: IBTA C10-71 to C10-75 and o10-37.2 do not allow it. */
bool mw_bind(struct mr_table *, const struct mw_binding *, struct mr_user *);

/*
 * Whether an invalidation by that QP, local or a peer's, may name the key (IBTA 10.6.7.2.6): of a window of type 2 that
 * the QP bound, or of a region of its PD.
 */
bool mw_may_invalidate(const struct mr_table *, uint32_t key, const struct mr_user *);
/* Does it, if it may be done: the window is free, the region loses its remote access; its L_Key goes on working. */
void mw_invalidate(struct mr_table *, uint32_t key, const struct mr_user *);

/* The QP is about to go: the windows of type 2 that it bound open nothing any more. */
void mw_forget_user(const struct mr_table *, struct mr_user *);
/* The region is about to go with windows bound to it: none is any more. */
void mw_unbind_all(struct mr_table *, struct mr *region);
