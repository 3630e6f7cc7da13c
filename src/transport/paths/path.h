/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path of a pair of hosts: what is in flight on it, its round trip, its window and pace, and whether it is
 * up. `path` below is its index in pair.path.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cc/cc.h"
#include "cc/pacer.h"
#include "transport/paths/tx_space.h"

struct pair;
struct transport_config;
struct pair_table;

struct path {
	struct cc cc;
	struct pacer pacer;
	uint64_t sent_bytes; /* free-running; retransmissions count, as they fill the path too */
	uint64_t gone_bytes; /* of those, no longer in flight: acknowledged or lost */
	uint64_t lost_bytes; /* free-running: of those gone, lost. For observers */
	uint64_t idle_bytes; /* of those in flight; as pair.idle_bytes */
	uint64_t srtt_ns;    /* 0: none measured */
	uint64_t rttvar_ns;
	uint64_t cc_network_ns; /* of the shortest sample of this round trip, the network's part; 0: none */
	uint64_t cc_round_ns;   /* when congestion control gets it */
	uint64_t
		cc_least_ns[2]; /* the least of those times in this stretch of rounds, and in the one before; 0: none */
	uint64_t least_ns[2];   /* the shortest of those, of this period and the one before; 0: none */
	uint32_t least_while;   /* number of this period */
	uint32_t ce_seen;       /* the peer's count of CE marks on this path */
	uint64_t reo_ns;        /* how much later a packet may arrive than one sent after it */
	uint64_t reo_until_ns;
	uint64_t heard_ns;      /* when the newest packet left that was sent on it and acknowledged */
	uint64_t probe_ns;      /* if the path is down: when the next probe is due */
	uint64_t probe_sent_ns; /* 0: none is under way */
	uint64_t round_end;     /* end of the loss count: when gone_bytes reaches it */
	uint32_t round_lost_bytes;
	uint32_t stamp_seq;     /* of the next packet that is stamped (13.2) */
	uint64_t slow_first_ns; /* of slow_signals */
	uint64_t slow_until_ns; /* new flowlets go elsewhere */
	bool down;
	uint8_t slow_signals;
	uint8_t silent;       /* packets lost in a row, with none acknowledged between */
	uint8_t good;         /* probes answered in a row while down */
	uint8_t missed;       /* probes that were not, since it went down */
	uint16_t cc_hosts_us; /* of that shortest sample, the hosts' part; stops at UINT16_MAX */
	uint8_t cc_rounds;    /* of this stretch, */
	uint8_t cc_samples;   /* and samples; both stop where they are enough */
};

/*
 * The calls below change the path of a pair that has begun. Those that a packet of the peer alone can cause, pair_cnp()
 * and path_probe_answered(), and pair_expire() do nothing to one that has not.
 */
void path_sent(const struct transport_config *, struct pair *, uint32_t path, uint32_t bytes, uint64_t now_ns);
/* Bytes were lost, for any reason; a round trip with heavy loss counts as congestion. */
void path_lost(struct pair *, uint32_t path, uint32_t bytes, uint64_t now_ns);
/* A switch cut the payload off a packet; path_lost() is called as well. */
void path_trimmed(struct pair *, uint32_t path, uint32_t bytes, uint64_t now_ns);
/* The QP of these bytes is gone: they are neither lost nor acknowledged. */
void path_forget(struct pair *, uint32_t path, uint32_t bytes);
/* What an acknowledgement reports about the round trip (13.2). */
struct path_echo {
	uint32_t path; /* PATHS_MAX: nothing */
	uint64_t rtt_ns;
	uint64_t hosts_ns; /* spent at the two hosts before packets were read, and for the answer to leave; not part of
			      rtt_ns */
	uint32_t there_ns; /* of rtt_ns, the way there: a difference of two hosts' clocks, modulo 2^32 */
	uint32_t ce_packets;
	bool becn; /* one of the acknowledged packets was marked CE, on any path */
};
/* Bytes were acknowledged. */
void path_acked(struct pair_table *, struct pair *, uint32_t path, const struct tx_path_news *,
		const struct path_echo *, uint64_t now_ns);
/* `packets` sent on the path were lost, and none was acknowledged since. */
void path_silent(struct pair *, uint32_t path, uint32_t packets, uint64_t now_ns);
/*
 * The peer signalled that a packet on the path was slow. After several signals in a row, new flowlets avoid the path
 * for a while (9.1).
 */
void path_slow(struct pair *, uint32_t path, uint64_t now_ns);
/* A path that is down was probed: sets when the next probe is due, if this one is not answered. */
void path_probe_sent(const struct transport_config *, struct pair *, uint32_t path, uint64_t now_ns);
/*
 * The probe of a path that is down was answered. That is a round trip of the path: one that is much longer than the others
 * may have been taken for dead because nothing was known of it, and would be again.
 */
void path_probe_answered(struct pair_table *, struct pair *, uint32_t path, uint64_t now_ns);

/* A CNP arrived, for that path or, if there is no such path, for all. */
void pair_cnp(struct pair *, uint32_t path, uint64_t now_ns);
/* Runs the timers of congestion control that are due. */
void pair_expire(struct pair *, uint64_t now_ns);
