/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The results of a simulation, and the arithmetic of the metrics. The simulation appends records
 * and feeds the series; reports read the fields. Memory is bounded: series that outgrow their
 * length double their window, and records that are not kept are counted.
 *
 * Everything here is a pure function of its input. Two runs with the same input get the same
 * numbers to the last bit, on every machine. Only `struct results_simulator` may differ between
 * them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workload/graph_run.h"

enum {
	RESULTS_NAME_BYTES = 48,
	RESULTS_WHY_BYTES = 512,
	RESULTS_CLASSES = 8,
	RESULTS_SERIES_WINDOWS = 2048,    /* of one series, at most; even */
	RESULTS_GOODPUT_FLOWS_MAX = 1024, /* with a series each */
	RESULTS_TRACE_MAX = 1 << 20,      /* CC trace records kept */
	RESULTS_QUEUE_BIN_BYTES = 1000,   /* bin 0: empty; bin b: up to b times this */
	RESULTS_QUEUE_BINS_MAX = 1 << 17, /* longer than 131 MB: counts in the last bin */
	RESULTS_EQUAL_BINS = 20,
	RESULTS_FIXED_BINS = 4
};

#define RESULTS_NOT_DONE UINT64_MAX
#define RESULTS_NO_NODE  UINT32_MAX
#define RESULTS_NO_FLOW  UINT32_MAX
#define RESULTS_NO_CURVE UINT32_MAX

/*
 * A number per window of time, from time 0 on. When the last window is full, neighbours are joined
 * and the window doubles. SUM joins by adding, MAX by the larger.
 */
enum results_join { RESULTS_SUM, RESULTS_MAX };

struct results_series {
	uint64_t window_ps; /* now; a power of two times the first one */
	uint32_t count;     /* windows touched: up to the last one added to */
	uint32_t capacity;  /* allocated */
	enum results_join join;
	uint64_t *value; /* *owned* */
};

/* One message of the workload. */
struct results_flow {
	uint32_t src, dst;   /* hosts */
	uint32_t workload;   /* index into scenario's */
	uint32_t round;      /* of the workload, from 0 */
	uint32_t qp;         /* index of the pair's queue pairs; information only */
	uint64_t connection; /* flows of one number share a curve; 0: one of its own */
	uint32_t curve;      /* set by results_flow_add: the curve of the goodput that it feeds */
	uint32_t curve_next; /* likewise: the next flow that feeds it, or RESULTS_NO_FLOW */
	uint64_t bytes;
	uint64_t start_ps;       /* posted */
	uint64_t fct_ps;         /* posted to last byte acknowledged at the sender; RESULTS_NOT_DONE */
	uint64_t base_rtt_ps;    /* of its hosts, as topology_path_base_rtt_ps() has it; 0: not known */
	uint64_t ideal_ps;       /* its time alone (sim/ideal.h), without INT bytes; 0: not known */
	uint64_t received_bytes; /* by the receiver's NIC, each once */
	bool inside;             /* it went by links inside a node alone */
};

/* An egress port, of a switch or, without a queue, of a host. `to` is the node at the other end. */
struct results_port {
	uint32_t node, to;
	uint16_t port;     /* of the node */
	uint8_t tier;      /* of the node, as the topology has it */
	uint64_t rate_bps; /* at the end of the run, after faults of the link */

	uint64_t tx_packets, tx_bytes, ce_packets, trimmed_packets;

	/* The queue: bytes waiting. The owner fills these. */
	uint64_t queue_bytes; /* now */
	uint64_t queue_bytes_max;
	uint64_t queue_since_ps;                     /* when it became so */
	uint64_t queue_byte_ps_hi, queue_byte_ps_lo; /* integral over time, 128 bits */
	uint64_t *queue_time_ps;                     /* *owned*; time spent per RESULTS_QUEUE_BIN_BYTES of length */
	uint32_t queue_bins;
	uint32_t *sample_count; /* *owned*; samples at fixed intervals, per bin likewise */
	uint32_t sample_bins;
	struct results_series queue; /* longest in each window; window_ps 0: not kept */

	/* PFC frames that paused this port's transmitter (received) and that its receiver sent to
	 * the peer (sent). */
	uint64_t pause_tx, resume_tx, pause_rx, resume_rx;
	uint64_t paused_ps[RESULTS_CLASSES]; /* of this transmitter */
	uint64_t longest_pause_ps;
	uint64_t headroom_bytes_max;
};

enum results_place { RESULTS_AT_LINK, RESULTS_AT_SWITCH, RESULTS_AT_HOST, RESULTS_PLACES };
enum results_reason {
	RESULTS_DROP_LOSS, /* the link's, on purpose */
	RESULTS_DROP_CORRUPT,
	RESULTS_DROP_LIST,         /* an exact packet */
	RESULTS_DROP_DOWN,         /* link down, or routed into it */
	RESULTS_DROP_BUFFER,       /* shared buffer full */
	RESULTS_DROP_THRESHOLD,    /* beyond the queue's dynamic or fixed limit */
	RESULTS_DROP_HEADROOM,     /* PFC headroom full: never in a right set-up */
	RESULTS_DROP_CONTROL_FULL, /* a trimmed packet found the control queue full */
	RESULTS_DROP_NO_ROUTE,
	RESULTS_DROP_RX_BUFFER, /* host's */
	RESULTS_DROP_STALE,     /* trim and others: for a QP that is gone */
	RESULTS_DROP_LIFETIME,  /* waited too long for credits */
	RESULTS_TRIMMED,        /* the last; no loss: it goes on without its payload */
	RESULTS_REASONS
};

struct results_drop {
	enum results_place place;
	enum results_reason reason;
	uint32_t node; /* where; RESULTS_NO_NODE: summed up */
	uint32_t to;   /* the node at the other end of the port */
	uint16_t port; /* of the node */
	uint8_t class;
	uint64_t packets, bytes;
};

struct results_pfc {
	uint64_t pause_frames, resume_frames;
	uint64_t paused_ps; /* summed over (port, class) */
	uint64_t longest_ps;
	uint32_t ports_paused; /* that ever were */
	uint32_t hosts_paused;
	uint32_t depth_max;           /* of the tree of pauses caused by pauses; 1: none was */
	struct results_series frames; /* pause frames sent per window */
};

/* Links with credits. */
struct results_credits {
	bool used;
	uint64_t frames;                /* flow control packets */
	uint64_t waits;                 /* times that a lane of a port had packets and no credits */
	uint64_t waited_ps, longest_ps; /* together; of one */
	uint64_t buffer_bytes_max;      /* of a lane at a port, the most that was used */
	uint32_t hosts_waited;          /* that ever had to */
};

/* What all hosts together did about loss and congestion. */
struct results_recovery {
	uint64_t retransmitted_packets;
	uint64_t spurious_packets; /* of those: the first copy had arrived, as the sender learned later; of SDR, as the
				      receiver saw */
	uint64_t timeouts;
	uint64_t naks; /* received, like the rest */
	uint64_t cnps;
	uint64_t trimmed_packets;
	uint64_t line_packets;   /* of SDR: with data or parity, first ones and others */
	uint64_t parity_packets; /* of these */
	uint64_t fill_packets;   /* of these: of idle fill */
	uint64_t words;          /* of SDR: control messages, both ways */
};

/* What limits a collective: the links between `hosts` hosts, `host` among them, and all others. */
struct results_limit {
	uint32_t hosts; /* 0: no links, but messages that wait for each other */
	uint32_t host;
	uint64_t bps; /* of those links together, each way */
};

struct results_collective {
	uint32_t workload;
	uint32_t round;
	uint32_t hosts;
	uint64_t bytes;                  /* S: of each host */
	uint64_t start_ps, time_ps;      /* time: RESULTS_NOT_DONE */
	uint64_t ideal_ps;               /* header-limited */
	uint64_t possible_ps;            /* at least, for its messages over this network; 0: not known */
	struct results_limit limit;      /* ... and because of what */
	uint64_t algorithm_bps, bus_bps; /* S/t; times 2(n-1)/n for allreduce, (n-1)/n for all-to-all */
};

/* A graph that ran: a step of a training job, where that is what it has. */
struct results_step {
	uint32_t workload, round;
	uint32_t nodes_done;
	uint64_t start_ps, time_ps; /* time: of the last node that ended, RESULTS_NOT_DONE: some have not */
	struct graph *graph;        /* *held* */
	struct graph_span *spans;   /* *owned*; of each of its nodes */
	/* Of the mean rank, and of the one that has most: */
	uint64_t infinite_ps;                /* what it would take if messages took no time; 0: not known */
	uint64_t compute_ps, compute_ps_max; /* it computes */
	uint64_t exposed_ps, exposed_ps_max; /* it does not, and something that it sends or receives is under way */
};

/* The graphs of a workload or job together: means of the steps that are done. */
struct results_job {
	uint32_t workload, ranks;
	uint32_t steps, steps_done;
	uint64_t time_ps, time_ps_max;
	uint64_t compute_ps, exposed_ps; /* of the mean rank */
	/*
	 * Of all its collectives, by the time that each takes: their bus bandwidth, as struct results_kind has it. 0: it has
	 * none.
	 */
	uint64_t bus_bps;
	uint64_t alone_ps;    /* a step when no other workload runs; 0: not known */
	uint64_t infinite_ps; /* if messages took no time; 0: not known */
};

/* On change; of each path of a flow. results.trace_signal and _target name signal and target. */
struct results_trace {
	uint64_t time_ps;
	uint32_t flow, path;
	uint64_t rate_bps; /* UINT64_MAX: not paced */
	uint64_t cwnd_bytes;
	uint64_t signal, target;
};

/* The only part that depends on the machine. */
struct results_simulator {
	uint64_t wall_ns, cpu_ns, memory_bytes_peak;
};

/* The flows of one series: one, or those of a connection, in the order of their starts. */
struct results_curve {
	struct results_series series; /* *owned* */
	uint64_t connection;
	uint32_t first, last; /* flows */
};

/* Bytes received per window: of the first flows or connections each, of each workload, and of
 * all. */
struct results_goodput {
	struct results_series total; /* window_ps 0: goodput over time is not kept */
	uint64_t window_ps;          /* with which all began */
	uint64_t grain_bytes;        /* the least amount added at once: no window is more exact */
	struct results_curve *curve; /* *owned* */
	uint32_t curve_count, curve_capacity;
	uint32_t *hash;                     /* *owned*; of connections: curve + 1; 0: free */
	struct results_series *of_workload; /* *owned*; [workloads] */
	uint32_t workloads;
};

struct results {
	bool partial;
	char partial_why[RESULTS_WHY_BYTES]; /* "interrupted", ... */

	uint64_t time_ps; /* simulated */
	uint64_t events, packet_hops, packets;
	uint64_t order_hash; /* of the order of all events: equal runs are equal here; 0: not kept */
	uint32_t hosts, switches, links;
	uint64_t base_rtt_ps;       /* the longest of the topology */
	bool one_base_rtt;          /* congestion control takes it, or the scenario's, for all pairs of hosts */
	bool acks_each;             /* transport.ack_every = auto: each packet is acknowledged */
	uint64_t host_rate_bps;     /* of the fastest host */
	uint64_t host_rate_bps_min; /* of the slowest */
	uint64_t receivers_bps;     /* of all hosts at which flows end, together */
	uint32_t header_share_ppb;  /* payload of a full packet / its time on the wire, x 10^9 */
	uint64_t invariants_checked;
	char cc[RESULTS_NAME_BYTES]; /* what ran: "hpcc (hpcc-eval)" */
	char transport[RESULTS_NAME_BYTES];

	struct results_flow *flows; /* *owned*, in order of number */
	uint32_t flow_count, flow_capacity;
	uint32_t flows_done;
	uint64_t flows_held_back;   /* that will never begin, as what they wait for does not happen */
	struct results_port *ports; /* *owned* */
	uint32_t port_count, port_capacity;
	struct results_drop *drops; /* *owned*, merged */
	uint32_t drop_count, drop_capacity;
	struct results_collective *collectives; /* *owned* */
	uint32_t collective_count, collective_capacity;
	struct results_step *steps; /* *owned* */
	uint32_t step_count, step_capacity;
	uint64_t *alone_ps; /* *owned*; of each workload, from runs of its own: struct results_job. NULL: not known */
	uint32_t alone_count;
	struct results_trace *trace; /* *owned* */
	uint32_t trace_count, trace_capacity;
	uint64_t trace_lost; /* beyond RESULTS_TRACE_MAX */
	/* names with their units, "alpha_ppb"; static. NULL: the algorithm has none */
	const char *trace_signal, *trace_target;
	struct results_pfc pfc;
	struct results_credits credits;
	struct results_recovery recovery;
	struct results_goodput goodput;
	struct results_simulator simulator;
};

/* ---- Filling. 0 or -ENOMEM, with nothing changed. ---- */

/* Empty; and back to that. */
void results_init(struct results *);
void results_free(struct results *);

/* Appends; *number, if not NULL, is its number, counting from 0. A port's or flow's record may be
 * changed in place. */
int results_flow_add(struct results *, const struct results_flow *, uint32_t *number);
int results_port_add(struct results *, const struct results_port *, uint32_t *number);
int results_collective_add(struct results *, const struct results_collective *);
/* Takes the spans and the hold on the graph; fills in all that follows from them. */
int results_step_add(struct results *, const struct results_step *);
int results_trace_add(struct results *, const struct results_trace *);

/*
 * Adds to the record of the same place, reason, node, port and class, or appends. Those of a port have to
 * come one after the other.
 */
int results_drop_add(struct results *, const struct results_drop *);

/* Sets fct_ps and counts the flow as done. Once a flow. */
void results_flow_done(struct results *, uint32_t flow, uint64_t now_ps);

/* Before the first flow: curves for the first `flows` flows or connections, the total and each
 * workload. window_ps > 0. */
int results_goodput_start(struct results *, uint64_t window_ps, uint32_t flows, uint32_t workloads);

/* Bytes newly received. Counts into received_bytes of the flow, too. */
int results_goodput_add(struct results *, uint32_t flow, uint64_t now_ps, uint64_t bytes);

/* A sample of the present length, as the ns-3 code takes one each 100 ns. */
int results_queue_sample(struct results_port *);

/* An empty series with a value for each window of time; its end; a value. 0, or -ENOMEM. */
void results_series_init(struct results_series *, uint64_t window_ps, enum results_join);
void results_series_free(struct results_series *);
int results_series_add(struct results_series *, uint64_t now_ps, uint64_t value);

/* The number of window i of window_ps, which is the series' own or a power of two of it. 0 beyond.
 */
uint64_t results_series_value(const struct results_series *, uint64_t window_ps, uint32_t i);

/* ---- Reading ---- */

/*
 * The element of rank floor(n * ppm / 10^6) of n sorted ascending, the last one for 100 %: what the
 * plots of the HPCC simulator call a percentile. 0 of none.
 */
double results_percentile(const double *sorted, size_t n, uint32_t ppm);
uint64_t results_percentile_u64(const uint64_t *sorted, size_t n, uint32_t ppm);

/* FCT / ideal; 0 for a flow that is not done or has no ideal. */
double results_slowdown(const struct results_flow *);

struct results_bin {
	uint64_t bytes_min, bytes_max; /* of the flows in it; of a fixed bin its bounds: min exclusive */
	uint32_t count;
	double mean, p50, p95, p99, p999, max;
};

/*
 * Slowdowns of the flows that are done, by size. Equal: the flows sorted by size (ties by slowdown)
 * and cut in twenty of as equal counts as may be, at i * n / 20. Fixed: <= 7 KB, <= 120 KB, <= 1
 * MB, more. `workload` UINT32_MAX: all of them. 0 or -ENOMEM.
 */
int results_bins_equal(const struct results *, uint32_t workload, struct results_bin[RESULTS_EQUAL_BINS]);
int results_bins_fixed(const struct results *, uint32_t workload, struct results_bin[RESULTS_FIXED_BINS]);

/* All done flows as one bin. */
int results_bin_all(const struct results *, uint32_t workload, struct results_bin *);

/* (sum x)^2 / (n * sum x^2); 1 for no values or only zeros. */
double results_jain(const double *x, size_t n);

/* How a rank of a step spent its time, until its last node ended. */
struct results_rank {
	uint64_t compute_ps, exposed_ps;
	uint64_t end_ps; /* after the step's start */
	/* When, in order; *owned*, both by `compute`. */
	struct graph_span *compute, *exposed;
	uint32_t compute_count, exposed_count;
};

/* 0 or -ENOMEM. */
int results_rank_of(const struct results_step *, uint32_t rank, struct results_rank *);
void results_rank_free(struct results_rank *);

/* The collectives of a step that are alike and done: means of them. */
struct results_kind {
	uint32_t kind, members; /* enum collective_kind */
	uint64_t bytes;         /* S of one, as workload/collective.h has it */
	uint64_t count;
	uint64_t time_ps; /* from the first member's start to the last one's end */
	uint64_t skew_ps; /* of that, until the last member started */
	uint64_t bus_bps; /* S / time, times what the kind's bus bandwidth is defined by */
};

/* *kinds, which the caller frees, and how many. 0 or -ENOMEM. */
int results_kinds(const struct results_step *, struct results_kind **kinds, uint32_t *count);

/* One for each workload with steps, in order; the caller frees *jobs. 0 or -ENOMEM. */
int results_jobs(const struct results *, struct results_job **jobs, uint32_t *count);

/* bytes x 8 / time; 0 of no time */
uint64_t results_bps(uint64_t bytes, uint64_t time_ps);

/*
 * The rates, bit/s, over windows [from, to) of the goodput's total, of the curves on which some
 * flow was open all that time. `bps` has room for curve_count. Returns how many.
 */
uint32_t results_open_rates(const struct results *, uint32_t from, uint32_t to, double *bps);

/* Over [start_ps, start_ps + window_ps), of the curves that were open all that time. */
struct results_fairness {
	uint64_t start_ps, window_ps;
	uint32_t flows; /* that it is of */
	uint32_t open;  /* curves open at some time of it */
	double jain;
	uint64_t min_bps, max_bps;
};

/*
 * One for each `per` windows of the goodput series, a power of two, in which at least two curves
 * were open throughout and something arrived: without arrivals nothing is shared. At most max.
 * Returns how many there are.
 */
size_t results_fairness_over_time(const struct results *, uint32_t per, struct results_fairness *, size_t max);

/*
 * Over one stretch, widened to whole windows; window_ps 0: to the end. flows 0: none was open
 * throughout. Where flows end, the index is that of those that last longest, so a report shows
 * `flows` and `open`, too.
 */
struct results_fairness results_fairness_between(const struct results *, uint64_t start_ps, uint64_t window_ps);

/* Mean rates of the flows, received_bytes / time open: Jain, least and most; of all, done or not. */
struct results_fairness results_fairness_of_flows(const struct results *, uint32_t workload);

/* The queue of a port from its histogram: the length that it did not exceed for this share of the
 * time; upper edge of the bin, 0 exact. */
uint64_t results_queue_percentile(const struct results_port *, uint32_t ppm);

/* Of all switch ports (tier > 0) together. */
uint64_t results_queue_percentile_all(const struct results *, uint32_t ppm);
double results_queue_mean(const struct results_port *);

/* As reports have them. */
const char *results_place_name(enum results_place);
const char *results_reason_name(enum results_reason);
