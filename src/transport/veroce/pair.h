/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pair of hosts: what all QPs between two addresses know together (veRoCE 10): whether the peer host
 * speaks veRoCE at all, and of every path there, its round trip, its window and what is in flight. Cost
 * is pairs times paths, whatever the number of QPs.
 *
 * A path is a UDP source port of ours. All QPs of the pair share each path's congestion window; their
 * turns at the nic share it out. A QP that finds no room waits in `waiting` and is activated when
 * something is acknowledged.
 */
#ifndef TRANSPORT_VEROCE_PAIR_H
#define TRANSPORT_VEROCE_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/list.h"
#include "base/prng.h"
#include "cc/cc.h"
#include "cc/pacer.h"
#include "cc/params.h"
#include "transport/veroce/trim_window.h"
#include "transport/veroce/tx_space.h"

enum pair_speaks {
	PAIR_UNKNOWN,
	PAIR_VEROCE,
	PAIR_ROCEV2, /* nobody answered on veRoCE's port */
};

struct path {
	struct cc cc;
	struct pacer pacer;
	uint64_t sent_bytes; /* free-running; retransmissions count, as they fill the path too */
	uint64_t gone_bytes; /* of those, no longer in flight: acknowledged or lost */
	uint64_t srtt_ns;    /* 0: none measured */
	uint64_t rttvar_ns;
	uint64_t cc_rtt_ns;  /* the least of this round trip's samples; 0: none */
	uint64_t cc_round_ns; /* when cc is told of it */
	uint64_t least_ns[2]; /* the least of those, of this while and the one before; 0: none */
	uint32_t least_while; /* number of this one */
	uint64_t reo_ns;     /* how much later a packet may arrive than one sent after it */
	uint64_t reo_until_ns;
	uint64_t heard_ns;   /* when a packet sent on it was last acknowledged */
	uint64_t probe_ns;   /* down: when the next probe is due */
	uint64_t probe_sent_ns; /* 0: none on its way */
	uint64_t round_end;  /* of the loss count: when gone_bytes reaches it */
	uint32_t round_lost_bytes;
	uint32_t stamp_seq;  /* of the next packet that is stamped (13.2) */
	uint32_t ce_seen;    /* the peer's count of CE marks on this path */
	bool down;
	uint8_t slow_signals;
	uint64_t slow_first_ns; /* of slow_signals */
	uint64_t slow_until_ns; /* new flowlets go elsewhere */
	uint8_t silent;      /* packets lost in a row without anything acknowledged */
	uint8_t good;        /* probes answered in a row while down */
};

struct pair {
	struct list link;    /* in the table's bucket */
	struct list waiting; /* QPs: struct veroce.waiting */
	uint8_t src[16], dst[16];
	uint32_t users;
	enum pair_speaks speaks;
	uint64_t speaks_until_ns;
	uint64_t sent_bytes; /* over all paths */
	uint64_t gone_bytes;
	uint64_t window_bytes; /* of all paths together; at most buffer_bytes */
	uint64_t buffer_bytes; /* what the peer's receive buffer and the network hold */
	struct trim_window trims;
	uint32_t cwnd_least_bytes; /* no path's window is less; 0: nothing controls any */
	uint64_t srtt_ns;    /* smoothed over all paths; 0: none */
	uint64_t rto_ns;     /* the longest of the paths that are up */
	uint64_t cc_due_ns;  /* the first deadline of the paths' congestion control; CC_NO_DEADLINE */
	uint64_t full_ns;    /* a QP last found no room for a packet; 0: none did */
	uint64_t paced_ns;   /* a QP waits until then for a path's pace; CC_NO_DEADLINE: none does */
	uint64_t min_rtt_ns[TX_PATHS_MAX]; /* UINT64_MAX: none measured */
	struct path_arrivals {  /* of stamped packets, by the peer's path */
		uint32_t packets;
		uint32_t ce;
	} arrivals[TX_PATHS_MAX];
	struct prng prng;
	/*
	 * What a path may have in flight before its first acknowledgement. It may be slow, and a host with many
	 * peers would send most of what it has before it knew.
	 */
	uint32_t blind_packets;
	uint32_t path_count;
	uint32_t down_count;
	bool asks; /* each packet asks for its acknowledgement: QPs wait for the room that it makes */
	bool begun; /* pair_begin() */
	bool local;
	uint32_t mtu_bytes;
	uint64_t made_ns;
	/*
	 * path_count of them: to a host of one path there are no more. What only receives has none of its own:
	 * until it has begun, these are nobody's, to be read only, and as of paths that nothing was sent on.
	 */
	struct path *path;
};

struct pair_config {
	const struct alloc *alloc;
	enum cc_algorithm cc;
	uint32_t paths;        /* to other hosts; one is enough to our own */
	uint64_t window_bytes; /* what a peer's receive buffer holds */
	uint64_t rto_min_ns;
	uint64_t target_ns;    /* cc_config.target_ns */
	const struct cc_params *cc_params; /* instead of cc and its defaults; borrowed; NULL: those */
	uint64_t line_rate_bps, base_rtt_ns; /* 0: unknown */
	uint64_t pace_slack_ns;
	uint32_t wire_overhead_bytes;
	uint32_t flowlet_packets;
	uint64_t flowlet_gap_ns; /* instead of those, a silence; 0: those */
	bool one_user;           /* each QP has a pair of its own, and its windows to itself */
};

enum { PAIR_BUCKETS_MIN = 16, PAIR_BUCKETS_MAX = 4096, PAIR_UNUSED_MAX = 1024 };

struct pair_table {
	struct pair_config config;
	/* By address; `grown` are the buckets once there are more pairs than `few` are for. Few peers, little memory. */
	struct list few[PAIR_BUCKETS_MIN];
	struct list *grown;
	uint32_t bucket_count;
	uint32_t count; /* pairs */
	uint32_t unused; /* pairs without users, kept for what they know */
	uint8_t secret[16];
	uint64_t seed; /* of the next pair's choices */
};

/* Borrows config.alloc. */
void pair_table_init(struct pair_table *, const struct pair_config *, const uint8_t secret[16]);
void pair_table_fini(struct pair_table *);
/*
 * The pair of those addresses, made if need be or if it is to have one_user, with one user more; NULL: no
 * memory. `local`: both addresses are this host's.
 */
struct pair *pair_get(struct pair_table *, const uint8_t src[16], const uint8_t dst[16], bool local,
		      uint32_t mtu_bytes, uint64_t now_ns);
void pair_put(struct pair_table *, struct pair *);
/* Its congestion control of a path, as it is or will begin; `fresh` is room for the latter. */
const struct cc *pair_cc(const struct pair_table *, const struct pair *, uint32_t path, struct cc *fresh);

bool pair_take_paths(struct pair_table *, struct pair *);
/* To be called before a path is picked for the first packet. False: no memory. */
static inline bool pair_begin(struct pair_table *t, struct pair *p)
{
	return p->begun || pair_take_paths(t, p);
}

void pair_learn(struct pair *, enum pair_speaks, uint64_t now_ns);
enum pair_speaks pair_speaks(const struct pair *, uint64_t now_ns);

/*
 * A QP's place in spreading: a run of packets stays on one path, so that it can travel as a train. With
 * flowlet_gap_ns it stays there, and waits for that path's window and pace, until it has sent nothing for
 * so long; on most networks nothing is reordered then.
 */
struct flowlet {
	uint8_t path;
	uint16_t left;    /* packets; with a gap 0 only where there is no path yet */
	uint64_t sent_ns; /* the last packet, with a gap */
};

enum { PAIR_NO_PATH = -1 };

/*
 * The path for a packet of so many bytes, or PAIR_NO_PATH: no window has room. `again`: a copy of what
 * was lost on `avoid`; the fastest other path is taken.
 */
int pair_pick(struct pair *, const struct pair_config *, struct flowlet *, uint32_t bytes, bool again,
	      uint8_t avoid, uint64_t now_ns);

/*
 * After pair_pick() gave a path for a packet that is new: for how many such packets, that one included and
 * `max` at most, it would give the same one, as far as is known without looking at each; and they are taken
 * from the flowlet by pair_took() once it is known how many went.
 */
uint32_t pair_run(const struct pair *, const struct flowlet *, uint32_t path, uint32_t bytes, uint32_t max);
static inline void pair_took(const struct pair *p, struct flowlet *f, uint32_t count)
{
	if (p->path_count > 1)
		f->left = (uint16_t)(f->left - (count - 1)); /* one is what pair_pick() took */
}

/*
 * When the pace of a path whose window has room lets a packet go; CC_NO_DEADLINE: that is not what keeps
 * any. A path whose pace lets it go already was not taken for another reason, and no time will change that.
 */
uint64_t pair_paced_ns(const struct pair *, const struct pair_config *, uint32_t bytes, uint64_t now_ns);
/* Congestion control's timers that are due at cc_due_ns. */
void pair_expire(struct pair *, uint64_t now_ns);

/* A path that is up if any is, whatever its window; not `avoid` if there is another. */
int pair_pick_any(struct pair *, uint8_t avoid);

void path_sent(const struct pair_config *, struct pair *, uint32_t path, uint32_t bytes, uint64_t now_ns);
/* Lost, whatever the reason; a round trip with heavy loss counts as congestion. */
void path_lost(struct pair *, uint32_t path, uint32_t bytes, uint64_t now_ns);
/* A switch cut the payload off a packet, which path_lost() is told as well. */
void path_trimmed(struct pair *, uint32_t path, uint32_t bytes, uint64_t now_ns);
/* A CNP, of that path or, where there is no such path, of all. */
void pair_cnp(struct pair *, uint32_t path, uint64_t now_ns);
/* Its QP is gone: neither lost nor acknowledged. */
void path_forget(struct pair *, uint32_t path, uint32_t bytes);
/* What an acknowledgement told about the way there and back (13.2), if it did. */
struct path_echo {
	uint32_t path; /* TX_PATHS_MAX: nothing */
	uint64_t rtt_ns;
	uint64_t remote_ns; /* spent at the peer, not in rtt_ns */
	uint32_t ce_packets;
};
/* What it confirmed; becn: something that it covers was marked CE. */
void path_acked(struct pair_table *, struct pair *, uint32_t path, const struct tx_path_news *,
		const struct path_echo *, bool becn, uint64_t now_ns);
/* So many packets sent on it were lost, and nothing was acknowledged since. */
void path_silent(struct pair *, uint32_t path, uint32_t packets, uint64_t now_ns);
/* It was sent again in vain: the first copy was only late. */
void path_was_late(struct pair *, uint32_t path, uint64_t late_ns, uint64_t now_ns);
/* The peer says that a packet on it was slow: several in a row move new flowlets away for a while (9.1). */
void path_slow(struct pair *, uint32_t path, uint64_t now_ns);
/* The probe of a path that is down came back. */
void path_probe_answered(struct pair_table *, struct pair *, uint32_t path, uint64_t now_ns);

/* RTO of a path, before back-off. */
uint64_t path_rto_ns(const struct pair_config *, const struct path *);

#endif
