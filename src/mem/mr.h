/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains and memory regions: which bytes a key opens, for which QPs and which access
 * (IBTA 10.6).
 *
 * A key is 32 random bits that nothing else that lives has; L_Key and R_Key of a region are the same
 * number. Every local access goes through mr_check(), every remote one through mr_check_remote(), again for
 * each packet, so a deregistered region is never touched.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/own.h"
#include "mem/copy.h"
#include "mem/lend.h"

/* The numbers of enum ibv_access_flags. */
enum mr_access {
	MR_LOCAL_WRITE = 1 << 0,
	MR_REMOTE_WRITE = 1 << 1,
	MR_REMOTE_READ = 1 << 2,
	MR_REMOTE_ATOMIC = 1 << 3,
	MR_MW_BIND = 1 << 4,
	MR_ZERO_BASED = 1 << 5,
	MR_ON_DEMAND = 1 << 6, /* its memory may come and go; to a packet all memory may */
	MR_FLUSH_GLOBAL = 1 << 8,
	/* A queue pair may have it, and no region: nothing here knows of memory that it outlives a loss of power. */
	MR_FLUSH_PERSISTENT = 1 << 9,
	MR_ACCESS_KNOWN = ((1 << 7) - 1) | MR_FLUSH_GLOBAL,
	/* What peers may be allowed to do. */
	MR_REMOTE_ACCESS = MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC | MR_FLUSH_GLOBAL
};

struct pd {
	uint32_t handle;
	uint32_t users; /* regions, windows, QPs, SRQs and address handles that name this PD */
};

struct mw;

/* Who opens remote keys: a QP. What a window of type 2 opens is for the QP alone that bound it. */
struct mr_user {
	struct pd *pd;
	struct mw *windows; /* of type 2 that it bound */
};

enum mr_kind {
	MR_REGION,
	MR_WINDOW,        /* what a memory window of type 1 opens, mw.h */
	MR_WINDOW_FAMILY, /* of type 2: all keys with these upper 24 bits are its */
	MR_ANCHOR         /* opens nothing */
};

enum mr_extent {
	MR_RANGE,       /* the bytes from addr */
	MR_WHOLE_SPACE, /* every byte of the process but the device's own, by its address; addr and length are 0 */
	MR_NOTHING      /* any address: zeros that stay zeros; addr and length are 0 */
};

/* Where the bytes of a region of nothing are: no process has memory there. */
#define MR_NOTHING_AT ((uint8_t *)(UINTPTR_MAX - UINT32_MAX))

struct mr {
	uint8_t *addr;   /* first byte in this process */
	uint64_t iova;   /* the address by which work requests and peers call the first byte */
	uint64_t length; /* bytes; 0 is legal and opens nothing */
	struct pd *pd;   /* NULL: it is no region */
	uint32_t key;
	uint32_t access; /* enum mr_access */
	/* Of a bound window: the struct pd, or of type 2 the struct mr_user, that it opens for. NULL: it is none. */
	const void *opener;
	uint64_t lot;     /* the last one with bytes of a READ's response from here; 0: there is none (lend.h) */
	uint32_t windows; /* bound to it */
	uint8_t kind;     /* enum mr_kind */
	uint8_t extent;   /* enum mr_extent */
};

/* Payload that lies already where it belongs (pkt.far_at on input), and not in the packet that is handled. */
struct mr_placed {
	const uint8_t *payload; /* its place in the packet; NULL: it is in there */
	const uint8_t *at;
};

struct mr_table {
	const struct alloc *alloc;
	struct mr **slot; /* open addressing, linear probing; the key's upper 24 bits are its hash */
	uint32_t mask;
	uint32_t count;
	uint64_t serial; /* of the next key */
	uint8_t secret[16];
	struct lender *lender; /* borrowed; NULL: all is always copied */
	bool lends;            /* payload that is read now may be lent */
	bool no_payload;       /* regions have addresses and no bytes; nothing is copied */
	bool copies_oddly;     /* some copies are none: no_payload, or there are regions of nothing */
	uint32_t nothings;     /* regions of nothing */
	struct mr_placed placed;
	const struct own *own; /* borrowed, or NULL: what no region of the whole address space opens */
	uint64_t *faults;      /* borrowed, or NULL: counts accesses to memory that is not there any more */
};

/* 0 or -ENOMEM. Borrows alloc for the table's life. */
int mr_table_init(struct mr_table *, const struct alloc *alloc, const uint8_t secret[16]);
/* Regions and windows that are still there are freed with it. */
void mr_table_fini(struct mr_table *);

/* Bytes of this process, and the address by which requests and peers call the first of them. */
struct mr_range {
	void *addr;
	uint64_t length;
	uint64_t iova;
};

/* What MR_ON_DEMAND makes a region of the whole address space. */
static inline bool mr_is_whole(const void *addr, uint64_t length, uint32_t access)
{
	return access & MR_ON_DEMAND && !addr && length == UINT64_MAX;
}

/*
 * A region of those bytes. 0, -EINVAL (unknown access bits; remote write or atomic without local
 * write, IBTA 10.6.3.1; a range that wraps; the whole address space by other addresses than its own; atomics on regions that have no bytes) or -ENOMEM. The table owns the
 * result until mr_destroy().
 */
int mr_create(struct mr_table *, struct pd *, struct mr_range, uint32_t access, struct mr **out);
/* A region of nothing (ibv_alloc_null_mr), for local access alone. 0 or -ENOMEM. */
int mr_create_nothing(struct mr_table *, struct pd *, struct mr **out);
/* Whether mr_create() would refuse these, without creating: 0 or -EINVAL. */
int mr_validate(const void *addr, uint64_t length, uint64_t iova, uint32_t access);
/* No window is bound to it. */
void mr_destroy(struct mr_table *, struct mr *);
/* The key stops working and another one is drawn (rereg). */
void mr_rekey(struct mr_table *, struct mr *);

/*
 * The access check: the host address of [va, va + len) if key names a region of pd that grants every bit of `access`
 * (0: local read) there, else NULL. Callers do not ask for len 0: zero-length RDMA needs no check
 * (IBTA C9-88).
 */
uint8_t *mr_check(const struct mr_table *, uint32_t key, const struct pd *, uint64_t va, uint64_t len, uint32_t access);

/*
 * Likewise for a peer's access by an R_Key, of a region or of a window that is bound; `access` is not 0. Of a window
 * its own range and access count, not the region's (IBTA 10.6.7.2.1).
 */
uint8_t *mr_check_remote(const struct mr_table *, uint32_t key, const struct mr_user *, uint64_t va, uint64_t len,
			 uint32_t access);

/* Likewise of the whole region or window, whose range need not be known. */
bool mr_check_remote_all(const struct mr_table *, uint32_t key, const struct mr_user *, uint32_t access);

/* Counts one and returns false. */
bool mr_fault(const struct mr_table *);
/* mr_read() where there are regions of nothing. */
bool mr_read_oddly(const struct mr_table *, void *to, const void *from, size_t len);

enum {
	MR_ALONE_COPIED_MAX = 16 << 10, /* a request's bytes, if no other is under way, */
	MR_READ_COPIED_MAX = 2 << 10    /* and a READ's */
};

/*
 * Whether what is read from now on is copied even where it may be lent: of a short message, as the system call by
 * which a peer reads all that came takes longer than two copies of that.
 */
static inline void mr_set_copies(const struct mr_table *t, bool copies)
{
	if (__builtin_expect(t->lends, 0))
		t->lender->copies = copies;
}

/* A region or window closes: what READ responses were lent from there is the program's again. */
static inline void mr_take_back(const struct mr_table *t, const struct mr *mr)
{
	if (__builtin_expect(mr->lot != 0, 0))
		lender_take_back_responses(t->lender, mr->lot);
}

/*
 * Bytes of a packet out of a region and into one, the last byte last (copy.h): every copy goes through these.
 * False: the program has unmapped the memory behind the region.
 */
static inline bool mr_read(const struct mr_table *t, void *to, const void *from, size_t len)
{
	if (t->copies_oddly)
		return t->no_payload || mr_read_oddly(t, to, from, len);
	return mem_copy(to, from, len) || mr_fault(t);
}

/* Likewise, and where the table says so the bytes are lent instead: of a request, or of a READ's response. */
static inline bool mr_read_request(const struct mr_table *t, void *to, const void *from, size_t len)
{
	return (__builtin_expect(t->lends, 0) && lender_lend_request(t->lender, to, from, len)) ||
	       mr_read(t, to, from, len);
}

/* Lends bytes of the region or window with that key, for a READ response. False: they are to be copied. */
bool mr_lend_response(const struct mr_table *, uint32_t key, void *to, const void *from, size_t len);

static inline bool mr_read_response(const struct mr_table *t, uint32_t key, void *to, const void *from, size_t len)
{
	return (__builtin_expect(t->lends, 0) && mr_lend_response(t, key, to, from, len)) || mr_read(t, to, from, len);
}

/* mr_write() of payload that is placed, for `from` in the packet: to there it need not be copied. */
bool mr_write_placed(const struct mr_table *, void *to, const uint8_t *from, size_t len);

static inline bool mr_write(const struct mr_table *t, void *to, const void *from, size_t len)
{
	if (__builtin_expect(t->placed.payload != NULL, 0))
		return mr_write_placed(t, to, from, len);
	if (t->copies_oddly && (t->no_payload || to == MR_NOTHING_AT))
		return true;
	return mem_place(to, from, len) || mr_fault(t);
}

/*
 * FETCH AND ADD, COMPARE AND SWAP on host memory (IBTA 9.4.5): atomic against every QP of the nic and, since
 * they are processor instructions, against the program. *found becomes the old value; compare is for COMPARE
 * AND SWAP. False, with nothing done, if the memory is gone.
 */
static inline bool mr_atomic(const struct mr_table *t, uint64_t *word, bool cmp_swap, uint64_t swap_add,
			     uint64_t compare, uint64_t *found)
{
	return (cmp_swap ? mem_cmp_swap(word, compare, swap_add, found) : mem_fetch_add(word, swap_add, found)) ||
	       mr_fault(t);
}

/* ATOMIC WRITE on host memory (IBTA A19): no thread sees a part of it. False: the memory is gone. */
static inline bool mr_store(const struct mr_table *t, uint64_t *word, uint64_t value)
{
	return t->no_payload || mem_store(word, value) || mr_fault(t);
}

struct archive;
/*
 * A table (base/archive.h): its size and the next key; then each region and, when the users are defined, each window as a
 * record of that type. A table that is loaded has the same things in the same slots. The functions for things return
 * their number.
 */
void mr_table_archive(struct archive *, struct mr_table *);
uint32_t mr_archive_regions(struct archive *, struct mr_table *, uint16_t type, uint32_t pd_kind);
uint32_t mr_archive_windows(struct archive *, struct mr_table *, uint16_t type, uint32_t pd_kind, uint32_t user_kind);

/* Writes the first regions (struct mr) or windows (struct mw), at most max, in the order of the table. Their number. */
size_t mr_objects(const struct mr_table *, bool windows, void **out, size_t max);

/* What has that key, of whatever kind, or NULL. */
struct mr *mr_find(const struct mr_table *, uint32_t key);
