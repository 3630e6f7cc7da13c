/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pair of hosts: the state that all QPs between two addresses share (veRoCE 10): whether the peer
 * host speaks veRoCE at all, and for every path there its round trip, its window and its bytes in
 * flight. Memory is pairs times paths, independent of the number of QPs.
 *
 * A path is a UDP source port of ours. All QPs of the pair share each path's congestion window, by their
 * turns at the nic. A QP that finds no room waits in `waiting` and is activated when
 * packets are acknowledged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/list.h"
#include "base/prng.h"
#include "cc/cc.h"
#include "transport/config.h"
#include "transport/paths/joint.h"
#include "transport/paths/one_way.h"
#include "transport/paths/pair_stall.h"
#include "transport/paths/path.h"
#include "transport/paths/trim_window.h"
#include "transport/paths/tx_space.h"
#include "transport/rxshare.h"

enum pair_speaks {
	PAIR_UNKNOWN,
	PAIR_VEROCE,
	PAIR_ROCEV2, /* CAPS had no answer */
};

struct pair {
	struct list link;    /* in the table's bucket */
	struct list waiting; /* of struct veroce_work */
	uint8_t src[16], dst[16];
	uint32_t users;
	enum pair_speaks speaks;
	uint64_t speaks_until_ns;
	uint64_t sent_bytes; /* over all paths */
	uint64_t gone_bytes;
	uint64_t near_bytes;   /* of those in flight, what is in the memory of this host, and fills no receive buffer */
	uint64_t idle_bytes;   /* likewise, what QPs have that wait because of an RNR NAK: it has left the network
				  (recovery_idle()) */
	uint64_t window_bytes; /* of all paths together; at most buffer_bytes */
	uint64_t buffer_bytes; /* the capacity of the peer's receive buffer and the network */
	struct trim_window trims;
	uint32_t cwnd_least_bytes;      /* no path's window is less; 0: no congestion control */
	uint64_t srtt_ns;               /* smoothed over all paths; 0: none */
	uint64_t rto_ns;                /* the longest of the paths that are up */
	uint64_t cc_due_ns;             /* the first deadline of the paths' congestion control; CC_NO_DEADLINE */
	uint64_t full_ns;               /* when a QP last found no room for a packet; 0: never */
	uint64_t paced_ns;              /* end of a wait for a path's pace; CC_NO_DEADLINE: none */
	uint64_t starved_until_ns;      /* one of the two hosts has waited for a processor lately (path_rtt_told()) */
	uint64_t min_rtt_ns[PATHS_MAX]; /* UINT64_MAX: none measured */
	struct path_arrivals {          /* of stamped packets, by the peer's path */
		uint32_t packets;
		uint32_t ce;
	} arrivals[PATHS_MAX];
	struct rxshare_host sent; /* to us */
	struct prng prng;
	/*
	 * Packets that a path may have in flight before its first acknowledgement. The path may be slow, and a
	 * host with many peers would otherwise send most of its data before it found out. UINT32_MAX, no such
	 * limit, where that acknowledgement is far away: see path_rtt_is_long().
	 */
	uint32_t blind_packets;
	uint32_t path_count;
	uint32_t down_count;
	uint32_t rto_down;  /* down_count when all timeouts were last compared for rto_ns */
	uint32_t left_turn; /* the turn of output in which a packet was last laid out, and its path */
	uint8_t left_path;
	bool asks;   /* each packet has AckReq: QPs wait for the room that its acknowledgement makes */
	bool scarce; /* a QP may have too few packets in flight for acknowledgements without AckReq: it shares the
			windows with others, or has a joint one that is small */
	bool local;  /* both addresses are this host's */
	uint32_t mtu_bytes;
	uint64_t made_ns;
	struct one_way one_way;
	struct stall stall; /* of a peer on this host */
	/*
	 * path_count of them, to read; for a peer on this host there is one. A pair that only receives has no paths of
	 * its own: until pair_begin() these are constant paths on which nothing was sent.
	 */
	const struct path *path;
	struct path *own;    /* the same, to change; NULL until pair_begin() */
	struct joint *joint; /* one congestion control for all of them (paths/joint.h); NULL: each has its own */
};

enum { PAIR_WINDOW_FACTOR_MAX = 512 }; /* of window_bytes: the part for the network itself */
enum { PAIR_BUCKETS_MIN = 16, PAIR_BUCKETS_MAX = 4096, PAIR_UNUSED_MAX = 1024 };

struct pair_table {
	const struct transport_config *config;
	const struct alloc *alloc;
	/*
	 * Buckets of pairs by address: `few`, so that a few peers take little memory, and `grown` once there are
	 * too many pairs for those.
	 */
	struct list few[PAIR_BUCKETS_MIN];
	struct list *grown;
	uint32_t bucket_count;
	uint32_t count;  /* pairs */
	uint32_t unused; /* pairs without users */
	uint8_t secret[16];
	uint64_t seed; /* of the next pair's choices */
};

/* Borrows the settled config, which may change paths, and alloc. */
void pair_table_init(struct pair_table *, const struct transport_config *, const struct alloc *,
		     const uint8_t secret[16]);
void pair_table_fini(struct pair_table *);
/*
 * The pair of those addresses, with one user more: the one in the table, or a new one. With a scope of less than hosts
 * a new one for each QP whose peer is elsewhere. NULL: no memory. `local`: both addresses are this host's.
 */
struct pair *pair_get(struct pair_table *, const uint8_t src[16], const uint8_t dst[16], bool local, uint32_t mtu_bytes,
		      uint64_t now_ns);
void pair_put(struct pair_table *, struct pair *);
/* One user more. */
static inline void pair_hold(struct pair_table *t, struct pair *p)
{
	t->unused -= !p->users++;
	p->scarce |= p->users > 1;
}

/* A pair without users of which nothing is set but the addresses, which no other has; NULL: no memory. */
struct pair *pair_make(struct pair_table *, const uint8_t src[16], const uint8_t dst[16]);
/* The buckets: bucket_count lists of pairs in order of age. */
struct list *pair_table_buckets(struct pair_table *);
/* Four times as many. Without memory there are as many as before, with longer lists. */
void pair_table_grow(struct pair_table *);

struct archive;
/* The table's own numbers (base/archive.h), then each pair as a record of that type and an object of that kind. */
void pair_table_archive(struct archive *, struct pair_table *);
void pair_archive_all(struct archive *, struct pair_table *, uint16_t type, uint32_t kind);

/*
 * The congestion control between two hosts; `local`: within this host there is no network, and delays come
 * from the scheduler.
 */
enum cc_algorithm pair_algorithm(const struct transport_config *, bool local);
/* Whether that reacts to anything: it is not CC_NONE, or it is an algorithm without a row (cc_params.own). */
bool pair_is_controlled(const struct transport_config *, bool local);
/* A path's congestion control, or the joint one: the present state or, if it has none yet, the initial one, built in *fresh. */
const struct cc *pair_cc(const struct pair_table *, const struct pair *, uint32_t path, struct cc *fresh);

/* pair_begin() where the pair has no paths of its own yet. */
bool pair_take_paths(struct pair_table *, struct pair *);
/* Called before a path is picked for the first packet. False: no memory. */
static inline bool pair_begin(struct pair_table *t, struct pair *p)
{
	return p->own || pair_take_paths(t, p);
}

/* What fills the peer's receive buffer and the network. */
static inline uint64_t pair_flying(const struct pair *p)
{
	return p->sent_bytes - p->gone_bytes - p->near_bytes - p->idle_bytes;
}

/* A packet was laid out in that turn of output. */
static inline void pair_left(struct pair *p, uint32_t turn, uint32_t path)
{
	p->left_turn = turn;
	p->left_path = (uint8_t)path;
}

/* What the peer was found to speak; and what is known of that now, as it is forgotten in time. */
void pair_learn(struct pair *, enum pair_speaks, uint64_t now_ns);
enum pair_speaks pair_speaks(const struct pair *, uint64_t now_ns);
