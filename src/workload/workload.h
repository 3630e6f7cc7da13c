/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of a run: source, destination, size and time. A workload is one or more *parts* (an
 * all-to-all, a background of random messages, a victim); each part is a generator that knows which
 * messages wait for which, so that a host needs no code for collectives and millions of messages
 * need no memory.
 *
 * The simulation pulls and reports:
 *
 *   start      while workload_next(w, &m): at time m.start_ps post m on its connection. Only one
 *              need be held at a time; open-loop traffic never ends unless it was given an end.
 *   sent       when the sender knows all bytes of m acknowledged: workload_sent(w, &m, now)
 *   received   when all bytes of m have arrived at m.dst: workload_received(w, &m, now)
 *   expire     at the time workload_deadline(w), if that is not WORKLOAD_NEVER_PS: workload_expire(w, now); what a
 *              graph computes ends then, or a program's timer comes
 *   then       while workload_released(w, &m): post m at m.start_ps, which is now or later
 *
 * sent and received are independent and may come in either order; each is reported once for each
 * message. A message is a value: the simulation keeps its copy as long as it likes and returns it
 * unchanged. A workload learns the time by these calls alone, and nothing of the algorithms under
 * test: random draws depend on the seed, the part and the host alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workload/cdf.h"
#include "workload/graph_run.h"
#include "workload/program.h"
#include "net/text.h"
#include "net/topology/topology.h"

#define WORKLOAD_BYTES_MAX       (1ull << 44)
#define WORKLOAD_TIME_PS_MAX     (1ull << 62)
#define WORKLOAD_STEP_GAP_PS_MAX 1000000000000ull /* 1 s */
#define WORKLOAD_NEVER_PS        UINT64_MAX
enum {
	WORKLOAD_PARTS_MAX = 4096,
	WORKLOAD_HOSTS_MAX = 1 << 20,
	WORKLOAD_LIST_MAX = 1 << 24 /* messages of a part that is a list */
};

struct message {
	uint64_t start_ps; /* the earliest time to post it */
	/*
	 * 0: the connection exists, but nothing is sent, and neither `sent` nor `received` is
	 * reported.
	 */
	uint64_t bytes;
	/* Of its part, from 0; unique in the part. */
	uint64_t number;
	/*
	 * Messages of one connection have the same src and dst, share a QP and are sent in the
	 * order in which they were handed out. Unique in the workload but not consecutive: the part
	 * whose connections these are is in the high bits.
	 */
	uint64_t connection;
	uint32_t src, dst; /* hosts; never equal */
	uint16_t tag;      /* the group of flows to which it counts in the report */
	uint16_t part;
	uint8_t class;
	bool last; /* the connection's last: its QP can be destroyed afterwards */
};

struct workload;

/* Empty. NULL: no memory. */
struct workload *workload_create(void);
void workload_free(struct workload *);

enum workload_order {
	WORKLOAD_SHIFTED, /* i to i+1, i+2, .. */
	WORKLOAD_RANDOM   /* a random order of its own for every host */
};

/* From one host to another. */
struct workload_pair {
	uint32_t src, dst;
};

/*
 * The parameters of a part; the table below says which kind reads which. Zero is a sensible value
 * of every parameter that is not required. Pointers are borrowed during workload_add only.
 */
struct workload_params {
	uint64_t seed; /* of the run; parts of one kind and seed draw differently */
	uint64_t start_ps;
	uint16_t tag;
	uint8_t class; /* of its data; of hpcc-flows 0: as the text says */

	/*
	 * The part begins when the `after_count` parts from number `after` on are done, all their messages sent and
	 * received; its times count from then on. Parts whose messages are not counted beforehand are never done.
	 */
	uint32_t after, after_count;
	/*
	 * n: its connections are those of part n - 1, a part of the same kind and hosts; 0: its own. A part that sets
	 * connections_go_on shares them with a later one, so none of its messages is its connection's last.
	 */
	uint32_t connections_of;
	bool connections_go_on;

	/*
	 * The hosts that take part, by their rank: rank i is hosts[i], or host i where hosts is
	 * NULL. "Host" below means rank.
	 */
	const uint32_t *hosts;
	uint32_t host_count;

	uint64_t bytes;
	uint32_t senders;
	uint32_t target;
	uint32_t stride;
	uint64_t jitter_ps;

	enum workload_order order;
	uint32_t active_max;
	uint32_t rings;
	uint32_t chunks;
	uint32_t zipf_milli;
	bool combine;
	uint64_t step_gap_ps;

	const struct cdf *cdf;
	uint64_t rate_bps;
	const uint64_t *rates_bps; /* of each rank; NULL: rate_bps is that of all */
	uint32_t load_ppm;
	uint64_t end_ps;
	uint64_t count_max;

	uint32_t victim_src, victim_dst;
	uint64_t victim_bytes;

	uint64_t interval_ps;
	uint32_t connections, idle;

	const struct workload_pair *pairs;
	uint32_t pair_count;

	const char *text;
	size_t text_bytes;
	const struct topology *topology;

	struct program *program; /* borrowed until workload_free() */
	struct graph *graph;     /* finished; the part holds it */
	enum collective_algorithm algorithm;
	uint64_t eager_bytes;
	const struct graph_slow *slow; /* as graph_run.h has them, but of hosts in place of ranks */
	uint32_t slow_count;
};

/*
 * Adds a part. 0; -EINVAL with the reason in *err; -ENOMEM. Not to be called once messages have
 * been taken. The kinds, S being `bytes`:
 *
 *   incast            `senders` messages of S to `target`, from the other hosts in turn
 *                     beginning behind the target (more senders than hosts: a host sends
 *                     several, each on a connection of its own), each `jitter_ps` late at most.
 *                     0 senders: all others
 *   permutation       a random derangement: each host sends S to another, each receives S once,
 *                     with `jitter_ps`
 *   victim            an incast, tagged `tag`, and one message of `victim_bytes` from
 *                     victim_src to victim_dst, tagged tag + 1; the incast's senders are the
 *                     hosts from 0, `target`, victim_src and victim_dst excepted
 *   staircase         `senders` long flows, host i to i + stride or (stride 0) to `target`;
 *                     flow i joins at start + i x interval and, if `end_ps` is given, leaves at
 *                     end_ps - i x interval, the last to join first. A flow is messages of S,
 *                     `active_max` of them (0: 2) under way at a time, so S x active_max should
 *                     exceed a BDP
 *   many-qps          `connections` QPs from host 0 to the others in turn, `idle` of them never
 *                     used; each of the rest sends one message of S, at random between start
 *                     and end_ps (0: at once), tagged `tag`. And `senders` fast ones, sending
 *                     victim_bytes each from the start, tagged tag + 1
 *   all-to-all        each host sends S / hosts to each other host, in `order`, `active_max`
 *                     messages of a host under way (not yet sent) at a time; 0: all at once
 *   moe               the same, but of host i's S the expert at host j gets a share by Zipf's
 *                     law with exponent zipf_milli / 1000 (0: uniform), which expert is how
 *                     popular being random; shares that round to nothing are 1 byte. With
 *                     `combine` a host sends back what it received, message by message,
 *                     step_gap_ps after it arrived
 *   ring              allreduce of S by every host over `rings` rings (0: 1): 2(n-1) steps of S
 *                     / rings / n; a step of a host starts step_gap_ps after the previous one
 *                     has arrived
 *   halving-doubling  allreduce of S; hosts a power of two; 2 log2 n steps of S/2, S/4 .. and
 *                     back, each rounded down
 *   tree              allreduce of S in `chunks` (0: 1) pieces, up and down a binary tree
 *   poisson           open loop: every host draws exponential gaps with mean size x 8 / (load x
 *                     rate), a destination other than itself, a size from `cdf`; load_ppm
 *                     300000 is 30 % of its rate, payload only. Until end_ps or count_max
 *                     messages (0: no such end). A host's gaps and sizes do not depend on how
 *                     many hosts there are
 *   poisson-incast    open loop: `senders` random hosts send S each to one random host at a
 *                     time, so often that all incasts together are load_ppm of all hosts' rates
 *   pairs             a message of S for each of `pair_count` `pairs` (at least 1), all at start
 *   hpcc-flows        `text` in the format of workload_file.h; node numbers are those of
 *                     `topology`, or hosts where that is NULL. `tag` is as given, times are the
 *                     text's, and so are classes unless one is given
 *   htsim-matrix      likewise
 *   graph             the nodes of `graph`, whose ranks are at most as many as the hosts; its collectives in `chunks`
 *                     (0: 1) and by `algorithm`, its sends of up to `eager_bytes` done at once
 *   program           what `program` sends while the run goes on, by the calls of program.h
 */
int workload_add(struct workload *, const char *kind, const struct workload_params *, struct text_error *err);

/* The name of the i-th kind, from 0 on; NULL behind the last. */
const char *workload_kind(int i);

/* The next message whose time is known, in order of time; ties in order of parts. */
bool workload_next(struct workload *, struct message *);

/* All of the message was sent, or received: what waited for that is released. */
void workload_sent(struct workload *, const struct message *, uint64_t now_ps);
void workload_received(struct workload *, const struct message *, uint64_t now_ps);

/* When the next calc of a graph ends, or a program's timer comes; WORKLOAD_NEVER_PS: there is none. */
uint64_t workload_deadline(const struct workload *);
/* The deadline has come. */
void workload_expire(struct workload *, uint64_t now_ps);

/* A message that the last report released; the caller takes all of them before the next report. */
bool workload_released(struct workload *, struct message *);

/* There was no memory for what a report released: the run cannot go on. */
bool workload_failed(const struct workload *);

/*
 * How many messages of a part have never been handed out, of those that are known beforehand. If the part knows
 * which they are, *first is the first of them; else first->bytes is 0.
 */
uint64_t workload_held_back(const struct workload *, uint32_t part, struct message *first);

/*
 * How many nodes of a graph have not ended; 0 of other kinds. If there are any, `why` says what the first of them waits
 * for, once nothing is under way.
 */
uint32_t workload_unfinished(const struct workload *, uint32_t part, char *why, size_t why_bytes);

/* When each node of a graph began and ended; lent, NULL of other kinds and of a graph that has not begun. */
const struct graph_span *workload_spans(const struct workload *, uint32_t part);

/*
 * When a graph that begins at start_ps would end if messages took no time, as the part is set. 0 of other kinds, and
 * without memory.
 */
uint64_t workload_end_alone_ps(const struct workload *, uint32_t part, uint64_t start_ps);

/* Facts about a part that are known beforehand, for its report. */
struct workload_facts {
	const char *kind;
	struct graph *graph;    /* lent; NULL of other kinds, which have no nodes */
	bool arrivals;          /* workload_received() matters: others wait for its messages' arrival */
	bool waits;             /* some of its messages wait for others, of this part or before */
	uint64_t message_count; /* with bytes; 0: not known (open loop) */
	uint64_t bytes;         /* of all of them; 0: not known */
	/*
	 * Of a collective of bus_den hosts: S, and bus bandwidth = bus_num / bus_den x S / time; 0 for others. (Of
	 * an all-to-all it is (n-1)/n; of an allreduce 2(n-1)/n.)
	 */
	uint64_t collective_bytes;
	uint32_t bus_num, bus_den;
	bool exchange;   /* each byte is for one host alone, so no algorithm has fewer to send or to receive */
	uint8_t classes; /* bit c: it has messages of class c */
};

/* How many there are; and what is known of one. */
uint32_t workload_parts(const struct workload *);
void workload_facts(const struct workload *, uint32_t part, struct workload_facts *);
