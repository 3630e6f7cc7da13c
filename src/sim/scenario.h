/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario, the description of a simulation, as plain data, and the one table of keys in which
 * people write it. Text is read from memory; files that a scenario names are read by the caller
 * (scenario_files) before it is used.
 *
 * The text is INI: [section], `key = value`, comments on lines of their own that begin with # or ;.
 * [workload.NAME], [job.NAME], [failure.NAME] and [program.NAME] may stand more than once, under different names. Values carry
 * their units: 100Gbps, 1us, 100km (of fibre, 5 us each), 1000B, 32MB = 32 000 000 B, 64KiB, 1.5%,
 * 0.2, 1/8. Nothing is rounded: a value without an exact number of picoseconds, bytes or bit/s is
 * an error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In a numeric field whose key allows the words auto, none, never or unlimited; see the field. */
#define SCENARIO_AUTO  UINT64_MAX
#define SCENARIO_NONE  UINT64_MAX
#define SCENARIO_NEVER UINT64_MAX
/* The second word of a key that has two. */
#define SCENARIO_LONGEST   (UINT64_MAX - 1) /* cc.base_rtt */
#define SCENARIO_NO_WINDOW (UINT64_MAX - 1) /* transport.window */

struct graph_file; /* workload/graph_read.h */

/* Shares, probabilities and gains are in parts of 10^9. */
#define SCENARIO_PPB UINT64_C(1000000000)

enum {
	SCENARIO_NAME_BYTES = 48,
	SCENARIO_TEXT_BYTES = 256,
	SCENARIO_PATH_BYTES = 1024,
	SCENARIO_WORKLOADS_MAX = 32, /* with those that jobs are */
	SCENARIO_JOBS_MAX = 32,
	SCENARIO_FAILURES_MAX = 64,
	SCENARIO_PROGRAMS_MAX = 64,
	SCENARIO_CC_PARAMS_MAX = 64,
	SCENARIO_RANGES_MAX = 64,
	SCENARIO_CLASSES = 8,
	SCENARIO_KEYS_MAX = 192
};

/* "0-7,12": inclusive ranges in the order written. count 0: not given, or the word all. */
struct scenario_ranges {
	uint32_t count;
	struct {
		uint32_t first, last;
	} range[SCENARIO_RANGES_MAX];
};

static inline bool scenario_ranges_have(const struct scenario_ranges *r, uint32_t number)
{
	for (uint32_t i = 0; i < r->count; i++) {
		if (number >= r->range[i].first && number <= r->range[i].last)
			return true;
	}
	return false;
}

/* A file that a key names. */
struct scenario_file {
	char path[SCENARIO_PATH_BYTES]; /* as written; empty: none */
	const char *text;               /* *borrowed*, ends in NUL; set by the caller, else NULL */
	size_t text_bytes;              /* without the NUL */
	/* Where the path has a '*', which stands for 0, 1, ..: a file for each rank, in place of text; *borrowed* likewise. */
	const struct graph_file *ranks;
	uint32_t rank_count;
};

enum scenario_topology_kind {
	SCENARIO_TOPOLOGY_STAR,        /* hosts */
	SCENARIO_TOPOLOGY_DUMBBELL,    /* hosts on each side */
	SCENARIO_TOPOLOGY_PARKING_LOT, /* bottlenecks */
	SCENARIO_TOPOLOGY_LEAF_SPINE,  /* leaves, hosts of each, spines, uplinks of each leaf */
	SCENARIO_TOPOLOGY_FAT_TREE,    /* k */
	SCENARIO_TOPOLOGY_HPCC,        /* nothing: the 320 hosts of the HPCC evaluation */
	SCENARIO_TOPOLOGY_TWO_DC,      /* site_kind and its parameters, twice; borders, long_links */
	SCENARIO_TOPOLOGY_DRAGONFLY, /* hosts of each router, routers of each group, global links of each router, groups */
	SCENARIO_TOPOLOGY_RAIL,      /* hosts (nodes), nics of each, group, spines, uplinks */
	SCENARIO_TOPOLOGY_FILE,      /* file */
	SCENARIO_TOPOLOGY_SUBNET,    /* file: a subnet with its routes */
	SCENARIO_TOPOLOGY_KINDS
};

struct scenario_topology {
	unsigned kind;      /* enum scenario_topology_kind */
	unsigned site_kind; /* of each data centre: STAR, LEAF_SPINE, FAT_TREE or HPCC */
	uint64_t hosts;
	uint64_t k;
	uint64_t leaves, spines;
	uint64_t uplinks; /* of each leaf; SCENARIO_AUTO: one to each spine */
	uint64_t group;   /* nodes that share the leaves of a rail network; SCENARIO_AUTO: all */
	uint64_t routers, globals;
	uint64_t groups; /* SCENARIO_AUTO: as many as there can be */
	uint64_t bottlenecks;
	uint64_t nics;            /* of each node: ranks, and NICs of a rail network */
	uint64_t inside_rate_bps; /* of each rank's link inside its node; SCENARIO_NONE: there are no such links */
	uint64_t inside_delay_ps;
	bool pxn;
	uint64_t borders, long_links;
	struct scenario_file file; /* the text format of the HPCC simulator */
};

/* Which links. */
enum scenario_place {
	SCENARIO_PLACE_ALL,
	SCENARIO_PLACE_HOST,   /* a host at one end */
	SCENARIO_PLACE_FABRIC, /* between switches of one site */
	SCENARIO_PLACE_LONG    /* between sites */
};

/* The n-th data packet of a flow: counted from 1, retransmissions too; flows from 0. */
struct scenario_lost_packet {
	uint32_t flow, nth;
};

struct scenario_link {
	uint64_t rate_bps, fabric_rate_bps, border_rate_bps, long_rate_bps;
	uint64_t delay_ps, fabric_delay_ps, long_delay_ps;
	uint64_t long_skew_ps; /* each further long link is longer by this */
	unsigned loss_place;   /* enum scenario_place: where loss, ge_* and corrupt are */
	uint64_t loss_ppb;     /* each packet, each direction */
	uint64_t ge_bad_ppb;   /* Gilbert-Elliott: good to bad, per packet; 0: off */
	uint64_t ge_good_ppb;  /* bad to good */
	uint64_t ge_loss_ppb;  /* loss while bad */
	uint64_t corrupt_ppb;  /* lost after its whole time on the wire */
	uint64_t jitter_ps;    /* uniform in [0, this]; reorders: a test tool */
	uint32_t lost_count;
	struct scenario_lost_packet lost[SCENARIO_RANGES_MAX];
};

enum scenario_pfc { SCENARIO_PFC_OFF, SCENARIO_PFC_ON, SCENARIO_PFC_HPCC };
enum scenario_flow_control { SCENARIO_FLOW_CONTROL_PFC, SCENARIO_FLOW_CONTROL_CREDITS };
enum scenario_lane_queue { SCENARIO_LANE_QUEUE_INPUT, SCENARIO_LANE_QUEUE_OUTPUT };
enum scenario_mark { SCENARIO_MARK_DEQUEUE, SCENARIO_MARK_ENQUEUE };
enum scenario_routing {
	SCENARIO_ROUTING_ECMP,
	SCENARIO_ROUTING_FLOWLET,
	SCENARIO_ROUTING_WECMP,
	SCENARIO_ROUTING_SPRAY_RANDOM,
	SCENARIO_ROUTING_SPRAY_ROUND_ROBIN,
	SCENARIO_ROUTING_SPRAY_TWO, /* the shorter queue of two drawn at random */
	SCENARIO_ROUTING_SPRAY_LEAST,
	SCENARIO_ROUTING_VALIANT, /* these two of a dragonfly */
	SCENARIO_ROUTING_UGAL
};

struct scenario_switch {
	uint64_t buffer_bytes;
	uint64_t border_buffer_bytes; /* of switches with a long link */
	uint64_t latency_ps;
	uint64_t port_limit_bytes; /* of each egress queue; SCENARIO_NONE */
	uint64_t egress_alpha_ppb; /* dynamic threshold of lossy classes; SCENARIO_NONE */

	bool ecn;
	uint64_t kmin_bytes, kmax_bytes;
	uint64_t pmax_ppb;
	uint64_t ecn_rate_bps; /* kmin and kmax scale by port rate / this; 0: they do not */
	unsigned mark;         /* enum scenario_mark */

	unsigned pfc; /* enum scenario_pfc */
	uint64_t pfc_alpha_ppb;
	uint64_t pfc_headroom_bytes; /* per port; SCENARIO_AUTO: from rate and delay */
	uint64_t pfc_reserve_bytes;
	uint64_t pfc_resume_bytes; /* below the threshold by this */
	uint64_t pfc_response_ps;
	bool pfc_resume_frames; /* false: pauses run out by themselves */

	unsigned flow_control; /* enum scenario_flow_control; the rest is for credits */
	uint64_t lane_buffer_bytes;
	unsigned lane_queue;       /* enum scenario_lane_queue */
	uint64_t lane_lifetime_ps; /* SCENARIO_NEVER */

	bool int_on;

	bool trim;
	uint64_t trim_queue_bytes;   /* data queue longer than this: trim */
	uint64_t trim_control_bytes; /* control queue longer than this: drop */
	uint64_t trim_frame_bytes;
	bool trim_ecn; /* trimmed packets may be marked */

	unsigned routing; /* enum scenario_routing */
	uint64_t flowlet_gap_ps;
	uint64_t t_conv_ps;                /* SCENARIO_NEVER: a failed link stays in its groups */
	uint32_t weight[SCENARIO_CLASSES]; /* DWRR, of the data classes; [0], control: 0 is strict */
	uint64_t low_class;                /* that gets what the others leave; SCENARIO_NONE: there is none */
};

enum scenario_failure_action { SCENARIO_LINK_DOWN, SCENARIO_LINK_UP, SCENARIO_LINK_RATE };

/* [failure.NAME] */
struct scenario_failure {
	char name[SCENARIO_NAME_BYTES];
	uint64_t time_ps;
	uint32_t link_a, link_b; /* node numbers, as the topology numbers them; every link between */
	unsigned action;         /* enum scenario_failure_action */
	uint64_t rate_bps;       /* with SCENARIO_LINK_RATE */
	uint64_t up_after_ps;    /* with SCENARIO_LINK_DOWN; SCENARIO_NEVER */
};

/* [program.NAME] */
struct scenario_program {
	char name[SCENARIO_NAME_BYTES];
	struct scenario_ranges hosts;
	char command[SCENARIO_TEXT_BYTES];
	uint64_t start_ps;
};

/* [failures]: links drawn at random, degraded or down from the start */
struct scenario_failures {
	uint64_t degraded_ppb;      /* share of the links there */
	uint64_t degraded_rate_ppb; /* of their rate */
	uint64_t down_ppb;
	unsigned place; /* enum scenario_place */
};

/* What the host computes takes so many parts of 10^9 of its time, from one time up to another (SCENARIO_NEVER: the end). */
struct scenario_slow {
	uint32_t host;
	uint64_t factor_ppb;
	uint64_t from_ps, to_ps;
};

struct scenario_host {
	uint64_t post_delay_ps, completion_delay_ps, ack_delay_ps;
	uint64_t read_rate_bps;   /* PCIe; SCENARIO_NONE */
	uint64_t rx_buffer_bytes; /* SCENARIO_NONE */
	uint64_t rx_drain_bps;    /* SCENARIO_NONE */
	uint64_t qp_cache;        /* QPs whose state is at hand; SCENARIO_NONE */
	uint64_t qp_miss_ps;
	uint64_t idle_qps; /* besides those that the workload needs */
	uint32_t slow_count;
	struct scenario_slow slow[SCENARIO_RANGES_MAX]; /* in order of their starts; those of a host do not overlap */
};

enum scenario_protocol { SCENARIO_VEROCE, SCENARIO_ROCEV2, SCENARIO_SDR };
enum scenario_loss { SCENARIO_LOSS_FAST, SCENARIO_LOSS_BASE, SCENARIO_LOSS_IRN, SCENARIO_LOSS_GBN };
enum scenario_ack_class { SCENARIO_ACK_CONTROL, SCENARIO_ACK_DATA };

struct scenario_transport {
	unsigned protocol;        /* enum scenario_protocol */
	unsigned loss;            /* enum scenario_loss; rocev2: GBN, set so by scenario_settle */
	uint64_t paths;           /* UDP source ports of a QP */
	uint64_t flowlet_gap_ps;  /* a QP changes path after this silence; 0: it sprays */
	uint64_t payload_bytes;   /* of a full packet: the path MTU */
	uint64_t header_bytes;    /* of a data packet on the wire; SCENARIO_AUTO: the real size */
	uint64_t ack_bytes;       /* likewise */
	uint64_t int_bytes;       /* what INT adds to a data packet; SCENARIO_AUTO: as stamped */
	unsigned ack_class;       /* enum scenario_ack_class */
	uint64_t ack_every;       /* packets; SCENARIO_AUTO: as the transport does */
	uint64_t cnp_interval_ps; /* 0: a CNP for each marked packet */
	uint64_t cnp_gap_port_ps; /* between any two CNPs of a port */
	uint64_t window_bytes; /* in flight, of a QP; SCENARIO_AUTO: two BDP; SCENARIO_NO_WINDOW: congestion control's
				  alone */
	uint64_t rto_ps;       /* SCENARIO_AUTO */
	uint64_t rx_window;    /* packets, a power of two */
	uint64_t data_class;   /* 1 .. 7 */
	bool ecn;              /* data is ECN-capable */
};

/* With SCENARIO_SDR: how messages over UC are made reliable. */
struct scenario_sdr {
	unsigned scheme;      /* enum sdr_scheme of sim/sdr_line.h */
	uint64_t chunk_bytes; /* a power of two times the payload of a packet, at most 64 times */
	uint64_t channels;
	uint64_t rto_rtts;
	uint64_t code_data, code_parity; /* chunks of a group */
	uint64_t assumed_ppb;            /* loss of packets; SCENARIO_AUTO: estimated */
	uint64_t fill_class;             /* of idle fill; SCENARIO_NONE: there is none */
	uint64_t rate_bps; /* of payload, of each connection; 0: the wire's; SCENARIO_AUTO: it finds itself */
};

/* A parameter of the algorithm, as written: `kmin = 3us` under [cc]. */
struct scenario_cc_param {
	char name[SCENARIO_NAME_BYTES];
	char value[SCENARIO_NAME_BYTES];
};

/* AUTO: of veroce HOSTS, of rocev2 QP. */
enum scenario_cc_scope { SCENARIO_CC_AUTO, SCENARIO_CC_QP, SCENARIO_CC_PATH, SCENARIO_CC_HOSTS };

struct scenario_cc {
	char algorithm[SCENARIO_NAME_BYTES];
	char preset[SCENARIO_NAME_BYTES]; /* empty: the algorithm's own defaults */
	bool window;                      /* the +w form of rate algorithms */
	unsigned scope;                   /* enum scenario_cc_scope: who shares one control block */
	uint64_t base_rtt_ps;             /* SCENARIO_AUTO: of each pair its own; SCENARIO_LONGEST */
	uint32_t param_count;
	struct scenario_cc_param param[SCENARIO_CC_PARAMS_MAX];
};

enum scenario_workload_kind {
	SCENARIO_INCAST,         /* senders -> receiver, `size` each; repeat every interval */
	SCENARIO_INCAST_POISSON, /* fan_in random senders -> a random receiver, by load */
	SCENARIO_PERMUTATION,
	SCENARIO_ALL_TO_ALL, /* size / hosts to each */
	SCENARIO_RING_ALLREDUCE,
	SCENARIO_HALVING_DOUBLING,
	SCENARIO_TREE_ALLREDUCE,
	SCENARIO_MOE,        /* all-to-all, Zipf */
	SCENARIO_CDF,        /* open loop, Poisson, random pairs */
	SCENARIO_FLOW,       /* senders[i] -> receivers[i], `size` each */
	SCENARIO_STAIRCASE,  /* flows join `interval` apart, and leave in the same order */
	SCENARIO_VICTIM,     /* incast of `fan_in` and one flow that shares its paused uplink only */
	SCENARIO_FILE_FLOWS, /* file: flow file of the HPCC simulator, or matrix of htsim */
	SCENARIO_GRAPH,      /* file: what ranks compute and send */
	SCENARIO_PROGRAM,    /* what a program sends, by the calls of workload/program.h */
	SCENARIO_WORKLOAD_KINDS
};

enum scenario_round_qps { SCENARIO_ROUND_QPS_SAME, SCENARIO_ROUND_QPS_NEW };

/* Which rank of a graph is on which of its hosts. */
enum scenario_placement {
	SCENARIO_PLACE_PACKED,      /* in the order of the list */
	SCENARIO_PLACE_ROUND_ROBIN, /* one host of each first switch, then the next one of each */
	SCENARIO_PLACE_RANDOM,      /* by the seed */
	SCENARIO_PLACE_FILE         /* as a file says */
};

struct scenario_placement_of {
	unsigned by;               /* enum scenario_placement */
	struct scenario_file file; /* the hosts of ranks 0, 1, .. */
};

enum scenario_order { SCENARIO_ORDER_SHIFTED, SCENARIO_ORDER_RANDOM, SCENARIO_ORDER_AT_ONCE };

/* [workload.NAME], or [job.NAME], which is a workload of another name once it is settled */
struct scenario_workload {
	char name[SCENARIO_NAME_BYTES];
	const char *section;          /* "workload" or "job"; static */
	char of[SCENARIO_NAME_BYTES]; /* of a job: the workload that has its file */
	unsigned kind;                /* enum scenario_workload_kind */
	uint64_t size_bytes;
	uint64_t load_ppb;             /* of host link rate, payload only */
	char cdf[SCENARIO_NAME_BYTES]; /* a built-in one; empty: cdf_file */
	struct scenario_file cdf_file; /* lines `bytes percent` */
	struct scenario_file file;
	struct scenario_ranges hosts;              /* taking part; count 0: all */
	struct scenario_ranges senders, receivers; /* count 0: the workload's own choice */
	uint64_t fan_in;                           /* senders of an incast; SCENARIO_AUTO: all but the receiver */
	uint64_t qps;                              /* queue pairs of each pair of hosts, sharing its bytes evenly */
	uint64_t start_ps;
	uint64_t stop_ps;   /* the last start of a flow; SCENARIO_NEVER */
	uint64_t jitter_ps; /* starts are uniform in [0, this] later */
	uint64_t interval_ps;
	uint64_t arrive_gap_ps; /* of a job: the mean time between rounds, which begin at random; 0: they do not */
	uint64_t repeat;        /* rounds */
	unsigned round_qps;     /* enum scenario_round_qps */
	uint64_t flows;         /* at most this many; SCENARIO_NONE */
	unsigned order;         /* enum scenario_order */
	uint64_t active;        /* peers at a time; SCENARIO_NONE */
	uint64_t rings;
	uint64_t zipf_ppb; /* exponent */
	struct scenario_placement_of place;
	unsigned algorithm;     /* enum collective_algorithm: of a graph's collectives that have none of their own */
	uint64_t chunks;        /* of a graph's collectives */
	uint64_t eager_bytes;   /* a graph's sends of no more are done at once */
	uint64_t traffic_class; /* SCENARIO_AUTO: of each flow, as its file says */
};

/* [job.NAME]: a workload with some keys of its own */
struct scenario_job {
	char name[SCENARIO_NAME_BYTES];
	char workload[SCENARIO_NAME_BYTES];
	struct scenario_ranges hosts; /* count 0: the workload's; and so on, as far as keys are not given */
	struct scenario_placement_of place;
	uint64_t start_ps;
	uint64_t arrive_gap_ps;
	uint64_t repeat;
};

/* run.only: the scenario's network is for programs. */
#define SCENARIO_NO_WORKLOAD "none"

struct scenario_run {
	uint64_t until_ps; /* SCENARIO_NONE */
	uint64_t events;   /* SCENARIO_NONE */
	bool all_flows;    /* ends when all flows are done */
	uint64_t seed;
	bool check;                     /* invariants after each event */
	char only[SCENARIO_NAME_BYTES]; /* the one workload that runs; empty: all do */
};

struct scenario_output {
	bool queue_histograms;
	uint64_t queue_sample_ps;                       /* SCENARIO_NONE */
	uint64_t goodput_window_ps;                     /* SCENARIO_NONE */
	uint64_t goodput_flows;                         /* the number of first flows with a curve each */
	uint64_t fairness_start_ps, fairness_window_ps; /* window: SCENARIO_NONE, as the goodput's */
	struct scenario_ranges cc_trace;                /* flows; see cc_trace_all */
	bool cc_trace_all;
	struct scenario_file pcap;         /* path of the capture, written, not read; empty: none */
	struct scenario_ranges pcap_ports; /* hosts; count 0, and no links: all */
	struct scenario_ranges pcap_links; /* each range the two ends of a link, by their numbers */
	bool pcap_payload;                 /* zeroes stand for what does not exist, and an ICRC for them */
	bool event_log;
};

/* About 100 KB: not for the stack of a thread. */
struct scenario {
	char name[SCENARIO_NAME_BYTES];  /* of the file, without folder and suffix */
	char title[SCENARIO_TEXT_BYTES]; /* [run] title; may be empty */
	struct scenario_topology topology;
	struct scenario_link link;
	struct scenario_switch sw;
	struct scenario_failures failures;
	uint32_t failure_count;
	struct scenario_failure failure[SCENARIO_FAILURES_MAX]; /* in order of time */
	uint32_t program_count;
	struct scenario_program program[SCENARIO_PROGRAMS_MAX]; /* in the order written; without any workload */
	struct scenario_host host;
	struct scenario_transport transport;
	struct scenario_cc cc;
	struct scenario_sdr sdr;
	uint32_t workload_count;
	struct scenario_workload workload[SCENARIO_WORKLOADS_MAX]; /* in the order written; jobs behind them */
	uint32_t job_count;                                        /* 0 once it is settled: then they are workloads */
	struct scenario_job job[SCENARIO_JOBS_MAX];
	struct scenario_run run;
	struct scenario_output output;
	uint32_t cores; /* that the run may use; no key, as nothing in the results depends on it. 0: 1 */
};

/* An error: a sentence, and the place of the text that caused it. */
struct scenario_error {
	char file[SCENARIO_PATH_BYTES];    /* "--set" for an override */
	uint32_t line;                     /* 0: none */
	char key[2 * SCENARIO_NAME_BYTES]; /* "switch.kmin"; empty: none */
	char what[1024];                   /* the error and what is allowed */
};

struct scenario_source; /* a scenario being read: it remembers where each key was given */

/* NULL: no memory. */
struct scenario_source *scenario_source_create(void);
void scenario_source_destroy(struct scenario_source *);

/*
 * Reads text (NUL-terminated; may hold anything). `file` is for messages and for the scenario's
 * name. Once, first. 0, or -EINVAL with *e, or -ENOMEM.
 */
int scenario_source_text(struct scenario_source *, const char *file, const char *text, struct scenario_error *e);

/* An override, "section.key=value"; wins over the text and over earlier ones. 0 or -EINVAL. */
int scenario_source_set(struct scenario_source *, const char *assignment, struct scenario_error *e);

/*
 * Called last: checks and settles what depends on several keys. 0 with *out complete but for the
 * text of files, or -EINVAL. Paths are as written: relative to the scenario's file.
 */
int scenario_source_settle(const struct scenario_source *, struct scenario *out, struct scenario_error *e);

/* Whether a [workload.NAME] is of that kind so far. */
bool scenario_source_has(const struct scenario_source *, enum scenario_workload_kind);

/*
 * Where "section.key" was given: fills in *e's file, line and key. False: it was not, and has its
 * default.
 */
bool scenario_source_where(const struct scenario_source *, const char *key, struct scenario_error *e);

/* A file that the caller must read, and the key that names it. */
struct scenario_wanted {
	struct scenario_file *file; /* in the scenario: text and text_bytes, or ranks, are the caller's to set */
	char key[2 * SCENARIO_NAME_BYTES];
	bool ranks; /* a '*' in the path stands for numbers */
};

/* The files that the caller must read, at most max of them; returns how many there are. */
size_t scenario_files(struct scenario *, struct scenario_wanted *, size_t max);

/* "FILE:LINE: KEY: WHAT" with the parts that are known. Returns snprintf's count. */
int scenario_error_text(const struct scenario_error *, char *buf, size_t bytes);

/* The table, for listings: rows in the order of the documentation. */
struct scenario_key {
	const char *section;  /* "workload" stands for [workload.NAME] */
	const char *name;     /* "NAME" of cc: any parameter of the algorithm */
	const char *type;     /* "rate", "time", "star|dumbbell|...", ... */
	const char *standard; /* the default, as one would write it; "" is none */
	const char *help;
};

/* All keys, for help and the manual page. */
const struct scenario_key *scenario_keys(size_t *count);
