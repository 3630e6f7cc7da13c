/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of a scenario's keys. Parsing, listings, messages and the manual page come from it; a
 * new key is a row and a field.
 */
#include "sim/scenario_row.h"

#define ANY    (UINT64_MAX - 1)
#define MBPS   UINT64_C(1000000)
#define TBPS   UINT64_C(1000000000000)
#define US     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000000)
#define DAY    (UINT64_C(86400) * SECOND)
#define TB     UINT64_C(1000000000000)
#define ONE    SCENARIO_PPB

#define AT(field)   SCENARIO_OF_ALL, offsetof(struct scenario, field)
#define IN_W(field) SCENARIO_OF_WORKLOAD, offsetof(struct scenario_workload, field)
#define IN_J(field) SCENARIO_OF_JOB, offsetof(struct scenario_job, field)
#define IN_F(field) SCENARIO_OF_FAILURE, offsetof(struct scenario_failure, field)
#define IN_P(field) SCENARIO_OF_PROGRAM, offsetof(struct scenario_program, field)

/* clang-format off */
/* s: section, n: name, at: AT(field), lo and hi: bounds, w: word, d: default, h: help */
#define NUM(s, n, kind, at, lo, hi, w, d, h) { s, n, SCENARIO_##kind, at, lo, hi, w, NULL, NULL, d, h, 0, false }
#define PICK(s, n, at, c, d, h) { s, n, SCENARIO_CHOICE, at, 0, 0, NULL, c, NULL, d, h, 0, false }
#define ONOFF(s, n, at, d, h) { s, n, SCENARIO_SWITCH, at, 0, 0, NULL, NULL, NULL, d, h, 0, false }
#define WORDS(s, n, kind, at, d, h) { s, n, SCENARIO_##kind, at, 0, 0, NULL, NULL, NULL, d, h, 0, false }
/* of some kinds of topology or workload only */
#define NUM_OF(k, s, n, kind, at, lo, hi, w, d, h) { s, n, SCENARIO_##kind, at, lo, hi, w, NULL, NULL, d, h, k, false }
#define PICK_OF(k, s, n, at, c, v, d, h) { s, n, SCENARIO_CHOICE, at, 0, 0, NULL, c, v, d, h, k, false }
#define WORDS_OF(k, s, n, kind, at, d, h) { s, n, SCENARIO_##kind, at, 0, 0, NULL, NULL, NULL, d, h, k, false }
#define FILE_OF(k, s, n, at, d, h) { s, n, SCENARIO_PATH, at, 0, 0, NULL, NULL, NULL, d, h, k, true }

#define T(kind) (1u << SCENARIO_TOPOLOGY_##kind)
#define W(kind) (1u << SCENARIO_##kind)
#define W_COLLECTIVE (W(ALL_TO_ALL) | W(RING_ALLREDUCE) | W(HALVING_DOUBLING) | W(TREE_ALLREDUCE) | W(MOE))
#define W_SIZED (W_COLLECTIVE | W(INCAST) | W(INCAST_POISSON) | W(PERMUTATION) | W(FLOW) | W(STAIRCASE) | W(VICTIM))

static const uint8_t site_kinds[] = {
	SCENARIO_TOPOLOGY_STAR, SCENARIO_TOPOLOGY_LEAF_SPINE, SCENARIO_TOPOLOGY_FAT_TREE,
	SCENARIO_TOPOLOGY_HPCC,
};

#define PLACES "all|host|fabric|long"

static const struct scenario_row rows[] = {
	PICK("topology", "kind", AT(topology.kind), "star|dumbbell|parking-lot|leaf-spine|fat-tree|hpcc|two-dc|dragonfly|rail|file|subnet", "star",
	     "shape of the network; hpcc: 320 hosts, 20 ToR, 20 Agg and 16 core switches; subnet: with the routes that a subnet manager set"),
	PICK_OF(T(TWO_DC), "topology", "site", AT(topology.site_kind), "star|leaf-spine|fat-tree|hpcc", site_kinds, "leaf-spine",
	     "shape of each data centre of two-dc; its keys count for each"),
	NUM_OF(T(STAR) | T(DUMBBELL) | T(LEAF_SPINE) | T(TWO_DC) | T(RAIL) | T(DRAGONFLY), "topology", "hosts", COUNT, AT(topology.hosts), 1, 1 << 20, NULL, "16",
	     "hosts: of a star; on each side of a dumbbell; of each leaf, or router of a dragonfly; nodes of a rail network"),
	NUM_OF(T(FAT_TREE) | T(TWO_DC), "topology", "k", COUNT, AT(topology.k), 2, 128, NULL, "8",
	     "ports of a fat-tree's switches, even: k^3/4 hosts"),
	NUM_OF(T(LEAF_SPINE) | T(TWO_DC), "topology", "leaves", COUNT, AT(topology.leaves), 1, 1 << 16, NULL, "4", "leaf switches"),
	NUM_OF(T(LEAF_SPINE) | T(TWO_DC) | T(RAIL), "topology", "spines", COUNT, AT(topology.spines), 1, 1 << 16, NULL, "4", "spine switches"),
	NUM_OF(T(LEAF_SPINE) | T(TWO_DC) | T(RAIL), "topology", "uplinks", COUNT, AT(topology.uplinks), 1, 1 << 16, "auto", "auto", "links of each leaf to spines; auto: one to each"),
	NUM_OF(T(PARKING_LOT), "topology", "bottlenecks", COUNT, AT(topology.bottlenecks), 1, 1024, NULL, "2", "links in a row"),
	NUM("topology", "nics", COUNT, AT(topology.nics), 1, 64, NULL, "8", "ranks of each node, each with a NIC of its own, which is a host; of a rail network NIC i is on rail i; else read with inside_rate only"),
	NUM("topology", "inside_rate", RATE, AT(topology.inside_rate_bps), MBPS, 8 * TBPS, "none", "none", "rate of the link that joins each rank with the switch inside its node, by which messages within the node go; none: they go by NICs"),
	NUM("topology", "inside_delay", TIME, AT(topology.inside_delay_ps), 0, SECOND, NULL, "500ns", "one way, from rank to rank"),
	ONOFF("topology", "pxn", AT(topology.pxn), "off", "a message to another rail goes first, inside its node, to the rank of that rail, which sends it"),
	NUM_OF(T(DRAGONFLY), "topology", "routers", COUNT, AT(topology.routers), 1, 1024, NULL, "4", "routers of each group of a dragonfly, each linked to each other one"),
	NUM_OF(T(DRAGONFLY), "topology", "globals", COUNT, AT(topology.globals), 1, 1024, NULL, "2", "links of each router to other groups; each two groups have equally many"),
	NUM_OF(T(DRAGONFLY), "topology", "groups", COUNT, AT(topology.groups), 2, 1 << 20, "auto", "auto", "groups; auto: routers x globals + 1, the most that there can be"),
	NUM_OF(T(RAIL), "topology", "group", COUNT, AT(topology.group), 1, 1 << 20, "auto", "auto", "nodes whose NICs share a leaf for each rail; auto: all"),
	NUM_OF(T(TWO_DC), "topology", "borders", COUNT, AT(topology.borders), 1, 1024, NULL, "1", "border switches of each site, linked to all switches of its highest tier"),
	NUM_OF(T(TWO_DC), "topology", "long_links", COUNT, AT(topology.long_links), 1, 1024, NULL, "1", "links between the sites, which the border switches share"),
	FILE_OF(T(FILE) | T(SUBNET), "topology", "file", AT(topology.file), "", "file: nodes and links in the text format of the HPCC simulator; subnet: what verbena fabric --save wrote"),

	NUM("link", "rate", RATE, AT(link.rate_bps), MBPS, 8 * TBPS, NULL, "100Gbps", "links of hosts, each direction"),
	NUM("link", "fabric_rate", RATE, AT(link.fabric_rate_bps), MBPS, 8 * TBPS, "auto", "auto", "links between switches; auto: as rate (hpcc: 4 times)"),
	NUM("link", "border_rate", RATE, AT(link.border_rate_bps), MBPS, 8 * TBPS, "auto", "auto", "links of border switches within their site; auto: as fabric_rate"),
	NUM("link", "long_rate", RATE, AT(link.long_rate_bps), MBPS, 8 * TBPS, "auto", "auto", "links between sites; auto: as fabric_rate"),
	NUM("link", "delay", TIME, AT(link.delay_ps), 0, SECOND, NULL, "1us", "links of hosts, one way"),
	NUM("link", "fabric_delay", TIME, AT(link.fabric_delay_ps), 0, SECOND, "auto", "auto", "links between switches; auto: as delay"),
	NUM("link", "long_delay", TIME, AT(link.long_delay_ps), 0, SECOND, NULL, "100km", "links between sites"),
	NUM("link", "long_skew", TIME, AT(link.long_skew_ps), 0, SECOND, NULL, "0", "by which each further long link is longer"),
	PICK("link", "loss_place", AT(link.loss_place), PLACES, "all", "which links lose: all, of hosts, between switches, or between sites"),
	NUM("link", "loss", SHARE, AT(link.loss_ppb), 0, ONE, NULL, "0", "probability that a packet is lost, each direction of each such link"),
	NUM("link", "ge_bad", SHARE, AT(link.ge_bad_ppb), 0, ONE, NULL, "0", "Gilbert-Elliott: probability, per packet, of going from good to bad; 0: off"),
	NUM("link", "ge_good", SHARE, AT(link.ge_good_ppb), 0, ONE, NULL, "1", "... and from bad to good"),
	NUM("link", "ge_loss", SHARE, AT(link.ge_loss_ppb), 0, ONE, NULL, "1", "... and of loss while bad"),
	NUM("link", "corrupt", SHARE, AT(link.corrupt_ppb), 0, ONE, NULL, "0", "probability that a packet that is not lost is corrupted: dropped after its whole time on the wire"),
	WORDS("link", "lost", LOST, AT(link.lost), "", "exact packets lost, FLOW:N,...: the N-th data packet that a flow sends, N from 1"),
	NUM("link", "jitter", TIME, AT(link.jitter_ps), 0, SECOND, NULL, "0", "random additional delay of each packet, up to this; reorders"),

	NUM("switch", "buffer", BYTES, AT(sw.buffer_bytes), 1000, TB, NULL, "32MB", "shared packet memory of a switch"),
	NUM("switch", "border_buffer", BYTES, AT(sw.border_buffer_bytes), 1000, TB, "auto", "auto", "... of those with a long link; auto: as buffer"),
	NUM("switch", "latency", TIME, AT(sw.latency_ps), 0, SECOND, NULL, "0", "of each hop, beyond store and forward"),
	NUM("switch", "port_limit", BYTES, AT(sw.port_limit_bytes), 100, TB, "none", "none", "limit of each egress queue of data without PFC"),
	NUM("switch", "egress_alpha", SHARE, AT(sw.egress_alpha_ppb), ONE / 64, 64 * ONE, "none", "1", "without PFC a queue may hold this times the free buffer"),
	ONOFF("switch", "ecn", AT(sw.ecn), "on", "mark packets by RED on the queue's length"),
	NUM("switch", "kmin", BYTES, AT(sw.kmin_bytes), 0, TB, NULL, "100KB", "no mark up to this length, at ecn_rate"),
	NUM("switch", "kmax", BYTES, AT(sw.kmax_bytes), 0, TB, NULL, "400KB", "always a mark beyond this length, at ecn_rate"),
	NUM("switch", "pmax", SHARE, AT(sw.pmax_ppb), 0, ONE, NULL, "20%", "probability of a mark at kmax"),
	NUM("switch", "ecn_rate", RATE, AT(sw.ecn_rate_bps), 0, 8 * TBPS, NULL, "25Gbps", "kmin and kmax grow with the port's rate from here on; 0: the same on all"),
	PICK("switch", "mark", AT(sw.mark), "dequeue|enqueue", "dequeue", "whether the queue behind or before a packet counts"),
	PICK("switch", "pfc", AT(sw.pfc), "off|on|hpcc", "off", "priority flow control; hpcc: thresholds as the HPCC simulator has them"),
	NUM("switch", "pfc_alpha", SHARE, AT(sw.pfc_alpha_ppb), ONE / 64, 8 * ONE, NULL, "1/8", "dynamic threshold: this times the free buffer; a power of two"),
	NUM("switch", "pfc_headroom", BYTES, AT(sw.pfc_headroom_bytes), 0, TB, "auto", "auto", "of each port; auto: from rate and delay"),
	NUM("switch", "pfc_reserve", BYTES, AT(sw.pfc_reserve_bytes), 0, TB, NULL, "4KB", "of each port"),
	NUM("switch", "pfc_resume", BYTES, AT(sw.pfc_resume_bytes), 0, TB, NULL, "3KB", "resume this far below the threshold"),
	NUM("switch", "pfc_response", TIME, AT(sw.pfc_response_ps), 0, SECOND, NULL, "600ns", "from a pause frame's arrival to its effect"),
	ONOFF("switch", "pfc_resume_frames", AT(sw.pfc_resume_frames), "on", "off: pauses run out by themselves; not with pfc = hpcc"),
	PICK("switch", "flow_control", AT(sw.flow_control), "pfc|credits", "pfc", "pfc: of the buffer, as pfc says; credits: InfiniBand's links, a buffer for each port and virtual lane (class)"),
	NUM("switch", "lane_buffer", BYTES, AT(sw.lane_buffer_bytes), 64, 1 << 30, NULL, "64KiB", "credits: of each port and lane, hosts' too; a sender may be 128 KiB ahead at most"),
	PICK("switch", "lane_queue", AT(sw.lane_queue), "input|output", "input", "credits: a packet waits behind all that came in by its port and lane, or only behind what leaves by the same port"),
	NUM("switch", "lane_lifetime", TIME, AT(sw.lane_lifetime_ps), 1000000, DAY, "never", "never", "credits: a queue's first packet that has no credits for so long is dropped (HOQLife)"),
	ONOFF("switch", "int", AT(sw.int_on), "off", "stamp telemetry (INT) into data packets"),
	ONOFF("switch", "trim", AT(sw.trim), "off", "cut off the payload where a queue is full"),
	NUM("switch", "trim_queue", BYTES, AT(sw.trim_queue_bytes), 100, TB, NULL, "200KB", "a data queue of this length is full"),
	NUM("switch", "trim_control", BYTES, AT(sw.trim_control_bytes), 100, TB, NULL, "400KB", "a control queue of this length is full: drop"),
	NUM("switch", "trim_frame", BYTES, AT(sw.trim_frame_bytes), 64, 1024, NULL, "64B", "bytes of a trimmed packet"),
	ONOFF("switch", "trim_ecn", AT(sw.trim_ecn), "off", "RED also marks a trimmed packet, by the queue that was full"),
	PICK("switch", "routing", AT(sw.routing), "ecmp|flowlet|wecmp|spray-random|spray-round-robin|spray-two|spray-least|valiant|ugal", "ecmp",
	     "which of equal paths: by hash, by flowlet, by weighted hash, or for each packet: at random, in turn, the shorter queue of two, or the shortest; of a dragonfly also by a third group, or by it where the queue on the minimal path is twice as long"),
	NUM("switch", "flowlet_gap", TIME, AT(sw.flowlet_gap_ps), 0, SECOND, NULL, "50us", "silence after which a flowlet may go elsewhere"),
	NUM("switch", "t_conv", TIME, AT(sw.t_conv_ps), 0, DAY, "never", "0", "time until a failed link is routed around"),
	WORDS("switch", "weights", WEIGHTS, AT(sw.weight), "0,1,1,1,1,1,1,1", "DWRR weights of classes 0 to 7; class 0 is control, weight 0: strict priority; with credits the tables of VL arbitration"),
	NUM("switch", "low", COUNT, AT(sw.low_class), 1, 7, "none", "none", "a class that a port sends only while it can send no other, as Lower Effort is; not with credits"),

	NUM("failures", "degraded", SHARE, AT(failures.degraded_ppb), 0, ONE, NULL, "0", "share of the links that are slow from the start, drawn by the seed"),
	NUM("failures", "degraded_rate", SHARE, AT(failures.degraded_rate_ppb), 1000000, ONE, NULL, "50%", "their rate, as a share of the normal one"),
	NUM("failures", "down", SHARE, AT(failures.down_ppb), 0, ONE, NULL, "0", "share of the links that are down from the start"),
	PICK("failures", "place", AT(failures.place), PLACES, "fabric", "which links these are drawn from"),
	NUM("failure", "time", TIME, IN_F(time_ps), 0, DAY, NULL, "0", "when it happens"),
	WORDS("failure", "link", LINK, IN_F(link_a), "", "the links between two nodes, A-B, numbered as the topology does: hosts from 0, then switches"),
	PICK("failure", "action", IN_F(action), "down|up|rate", "down", "what happens"),
	NUM("failure", "rate", RATE, IN_F(rate_bps), MBPS, 8 * TBPS, "none", "none", "with action = rate: the new rate"),
	NUM("failure", "up_after", TIME, IN_F(up_after_ps), 0, DAY, "never", "never", "with action = down: how long"),

	NUM("host", "post_delay", TIME, AT(host.post_delay_ps), 0, SECOND, NULL, "0", "from a post until the NIC gets it"),
	NUM("host", "completion_delay", TIME, AT(host.completion_delay_ps), 0, SECOND, NULL, "0", "from the NIC's completion until the program sees it"),
	NUM("host", "ack_delay", TIME, AT(host.ack_delay_ps), 0, SECOND, NULL, "0", "by which ACKs leave late; part of congestion control's base RTT"),
	NUM("host", "read_rate", RATE, AT(host.read_rate_bps), MBPS, 8 * TBPS, "none", "none", "rate at which the NIC reads payload (PCIe), at most a packet ahead of the wire; none: unlimited"),
	NUM("host", "rx_buffer", BYTES, AT(host.rx_buffer_bytes), 1000, TB, "none", "none", "receive buffer of each host, drained at rx_drain; when full it drops data, or with PFC pauses it in time; none: never full"),
	NUM("host", "rx_drain", RATE, AT(host.rx_drain_bps), MBPS, 8 * TBPS, "none", "none", "rate at which data leaves it, as it was on the wire; none: at once"),
	NUM("host", "qp_cache", COUNT, AT(host.qp_cache), 1, 1 << 24, "none", "none", "queue pairs whose state the NIC has at hand, those used last; none: all"),
	NUM("host", "qp_miss", TIME, AT(host.qp_miss_ps), 0, SECOND, NULL, "1us", "time to fetch the state of another one; one fetch at a time, and packets that need it wait"),
	NUM("host", "idle_qps", COUNT, AT(host.idle_qps), 0, 1 << 20, NULL, "0", "queue pairs of each host that do nothing"),
	WORDS("host", "slow", SLOW, AT(host.slow), "", "stragglers, HOST:FACTOR or HOST:FACTOR@FROM-TO,...: what the host computes takes so many times as long, always or between two times"),

	PICK("transport", "protocol", AT(transport.protocol), "veroce|rocev2|sdr", "veroce", "protocol of queue pairs; sdr: messages over UC of rocev2, made reliable by [sdr]"),
	PICK("transport", "loss", AT(transport.loss), "auto|fast|base|irn|gbn", "auto", "loss detection: of veroce fast, base or irn; of rocev2 gbn, go-back-N; auto: fast, gbn"),
	NUM("transport", "paths", COUNT, AT(transport.paths), 1, 256, NULL, "16", "UDP source ports of a queue pair"),
	NUM("transport", "flowlet_gap", TIME, AT(transport.flowlet_gap_ps), 0, SECOND, NULL, "0", "of veroce: silence after which a queue pair changes path; 0: each packet may"),
	NUM("transport", "payload", BYTES, AT(transport.payload_bytes), 64, 16384, NULL, "4096", "of a full packet: the path MTU"),
	NUM("transport", "header_bytes", BYTES, AT(transport.header_bytes), 0, 1024, "auto", "auto", "header bytes of a data packet, without INT; auto: the real ones"),
	NUM("transport", "ack_bytes", BYTES, AT(transport.ack_bytes), 1, 1024, "auto", "auto", "bytes of an ACK; auto: the real ones"),
	NUM("transport", "int_bytes", BYTES, AT(transport.int_bytes), 0, 1024, "auto", "auto", "bytes that INT adds to a data packet; auto: 2, and 8 for each hop"),
	PICK("transport", "ack_class", AT(transport.ack_class), "control|data", "control", "traffic class of ACKs"),
	NUM("transport", "ack_every", COUNT, AT(transport.ack_every), 1, 1024, "auto", "auto", "packets for each ACK; auto: 1 where congestion control needs the telemetry of every packet, else as the NIC does"),
	NUM("transport", "cnp_interval", TIME, AT(transport.cnp_interval_ps), 0, SECOND, NULL, "50us", "between two CNPs of a flow; 0: for each marked packet"),
	NUM("transport", "cnp_gap_port", TIME, AT(transport.cnp_gap_port_ps), 0, SECOND, NULL, "0", "least time between any two CNPs of a port; a CNP that waits stands for all marks of its queue pair"),
	NUM("transport", "window", BYTES, AT(transport.window_bytes), 100, TB, "auto|none", "auto", "most bytes in flight of a queue pair, besides congestion control; auto: two bandwidth-delay products of the longest base RTT and a few packets; none: no such limit"),
	NUM("transport", "rto", TIME, AT(transport.rto_ps), US, 100 * SECOND, "auto", "auto", "retransmission timeout"),
	NUM("transport", "rx_window", COUNT, AT(transport.rx_window), 64, 1 << 16, NULL, "65536", "receive window in packets, a power of two"),
	NUM("transport", "class", COUNT, AT(transport.data_class), 1, 7, NULL, "3", "traffic class of data"),
	ONOFF("transport", "ecn", AT(transport.ecn), "on", "data packets are ECN-capable"),

	WORDS("cc", "algorithm", NAME, AT(cc.algorithm), "swift", "congestion control: none, swift, dctcp, dcqcn, ..."),
	WORDS("cc", "preset", NAME, AT(cc.preset), "", "a named set of parameters, as hpcc-eval"),
	ONOFF("cc", "window", AT(cc.window), "off", "the +w form: a window in step with the rate"),
	PICK("cc", "scope", AT(cc.scope), "auto|qp|path|hosts", "auto", "who has a control block: a queue pair for all its paths, each path of it, or each path of a pair of hosts; auto: qp with rocev2, hosts with veroce"),
	NUM("cc", "base_rtt", TIME, AT(cc.base_rtt_ps), 1000, SECOND, "auto|longest", "auto", "round trip without queues; auto: of each pair of hosts its own, or with hpcc, which has one for all, the longest; longest: that of the topology, for all"),

	PICK("sdr", "scheme", AT(sdr.scheme), "sr|nack|xor|mds|demand|tail", "tail", "with transport.protocol = sdr: selective repeat by timer alone, or also when the receiver names a hole; parities of each group (xor, mds) with selective repeat behind; mds with parities on demand; parities of the tail alone"),
	NUM("sdr", "chunk", BYTES, AT(sdr.chunk_bytes), 64, 1 << 20, NULL, "64KiB", "what is acknowledged and repeated, a power of two times transport.payload; of tail always a packet"),
	NUM("sdr", "channels", COUNT, AT(sdr.channels), 1, 16, NULL, "1", "UC queue pairs that share the packets of a connection; each has its path"),
	NUM("sdr", "rto", COUNT, AT(sdr.rto_rtts), 1, 100, NULL, "3", "round trips from a chunk to its repetition without an answer"),
	NUM("sdr", "data", COUNT, AT(sdr.code_data), 1, 254, NULL, "32", "xor, mds, demand: chunks of a group"),
	NUM("sdr", "parity", COUNT, AT(sdr.code_parity), 1, 254, NULL, "8", "... and its parities"),
	NUM("sdr", "assumed_loss", SHARE, AT(sdr.assumed_ppb), 1, ONE / 2, "auto", "auto", "of packets, as demand and tail reckon; auto: tail estimates it, demand takes 1 %"),
	NUM("sdr", "rate", RATE, AT(sdr.rate_bps), 0, 8 * TBPS, "auto", "0", "of payload, of each connection; auto: it finds itself, by what arrives (cc/delivery.h); 0: that of the host's link"),
	NUM("sdr", "idle_fill", COUNT, AT(sdr.fill_class), 1, 7, "none", "none", "of tail: the traffic class in which parities go on, while a host has nothing else to send, until a message is acknowledged; none: they do not"),

	PICK("workload", "kind", IN_W(kind), "incast|incast-poisson|permutation|all-to-all|ring-allreduce|halving-doubling|tree-allreduce|moe|cdf|flow|staircase|victim|file|graph|program", "flow",
	     "traffic pattern; program: what a program of libverbena-sim sends"),
	NUM_OF(W_SIZED, "workload", "size", BYTES, IN_W(size_bytes), 1, 1000 * TB, NULL, "1MB", "bytes of each flow; of a collective, bytes of each host"),
	NUM_OF(W(CDF) | W(INCAST_POISSON), "workload", "load", SHARE, IN_W(load_ppb), 1000, 4 * ONE, NULL, "30%", "payload, as a share of each host's link rate"),
	WORDS_OF(W(CDF), "workload", "cdf", CDF_NAME, IN_W(cdf), "WebSearch", "flow sizes: a built-in distribution, or a file of lines `bytes percent`"),
	FILE_OF(W(FILE_FLOWS) | W(GRAPH), "workload", "file", IN_W(file), "", "file: flows in the text format of the HPCC simulator, or a connection matrix of htsim; graph: GOAL or AICB text, or Chakra traces, a file for each rank, whose number a * stands for"),
	WORDS_OF(~W(FILE_FLOWS), "workload", "hosts", RANGES, IN_W(hosts), "all", "hosts that take part, as 0-7,12"),
	WORDS_OF(W(FLOW) | W(VICTIM), "workload", "senders", RANGES, IN_W(senders), "all", "one flow from each, to the receiver in the same place; of a victim: the victim"),
	WORDS_OF(W(INCAST) | W(FLOW) | W(STAIRCASE) | W(VICTIM), "workload", "receivers", RANGES, IN_W(receivers), "all", "all: the workload's choice, of an incast host 0; of a victim: the incast's, then the victim's"),
	NUM_OF(W(INCAST) | W(INCAST_POISSON) | W(STAIRCASE) | W(VICTIM), "workload", "fan_in", COUNT, IN_W(fan_in), 1, 1 << 20, "auto", "auto", "senders; more than there are hosts: some send several flows; auto: all but the receiver"),
	NUM_OF(~(W(FILE_FLOWS) | W(GRAPH) | W(PROGRAM)), "workload", "qps", COUNT, IN_W(qps), 1, 1024, NULL, "1", "queue pairs between two hosts, which share the bytes"),
	NUM_OF(~W(PROGRAM), "workload", "start", TIME, IN_W(start_ps), 0, DAY, NULL, "0", "when the first flow begins; added to the times of a file"),
	NUM_OF(~(W(GRAPH) | W(PROGRAM)), "workload", "stop", TIME, IN_W(stop_ps), 0, DAY, "never", "never", "no flow begins later; of a staircase: when the first one leaves"),
	NUM_OF(~(W(GRAPH) | W(PROGRAM)), "workload", "jitter", TIME, IN_W(jitter_ps), 0, DAY, NULL, "0", "random additional delay of each flow, up to this"),
	NUM_OF(W(INCAST) | W(PERMUTATION) | W(FLOW) | W(STAIRCASE) | W(VICTIM) | W(GRAPH) | W_COLLECTIVE, "workload", "interval", TIME, IN_W(interval_ps), 0, DAY, NULL, "0", "between rounds (0: when all of one is done), or between the steps of a staircase"),
	NUM_OF(W(INCAST) | W(PERMUTATION) | W(FLOW) | W(VICTIM) | W(GRAPH) | W_COLLECTIVE, "workload", "repeat", COUNT, IN_W(repeat), 1, 4096, NULL, "1", "rounds"),
	PICK_OF(W(INCAST) | W(PERMUTATION) | W(FLOW) | W(VICTIM) | W(GRAPH) | W_COLLECTIVE, "workload", "round_qps", IN_W(round_qps), "same|new", NULL, "same", "queue pairs of a round: those of the first one, or new ones"),
	NUM_OF(W(CDF) | W(INCAST_POISSON) | W(FILE_FLOWS), "workload", "flows", COUNT, IN_W(flows), 1, 1 << 30, "none", "none", "no more flows than this"),
	PICK_OF(W(ALL_TO_ALL) | W(MOE), "workload", "order", IN_W(order), "shifted|random|at-once", NULL, "shifted", "of the peers: i + k in step k, at random, or all at once"),
	NUM_OF(W(ALL_TO_ALL) | W(MOE), "workload", "active", COUNT, IN_W(active), 1, 1 << 20, "none", "none", "peers that a host sends to at a time"),
	NUM_OF(W(RING_ALLREDUCE), "workload", "rings", COUNT, IN_W(rings), 1, 64, NULL, "1", "channels, which share the bytes"),
	NUM_OF(W(MOE), "workload", "zipf", SHARE, IN_W(zipf_ppb), 0, 4 * ONE, NULL, "1", "exponent of the token counts"),
	WORDS_OF(W(GRAPH) | W(PROGRAM), "workload", "place", PLACED, IN_W(place), "packed", "rank i is the i-th of the hosts as listed; or of one host of each first switch in turn; or of an order drawn by the seed; or the i-th number in a file, in place of hosts"),
	PICK_OF(W(GRAPH), "workload", "algorithm", IN_W(algorithm), "auto|ring|halving-doubling|tree|direct", NULL, "auto", "of collectives; auto: halving-doubling or tree up to 64 KiB, else ring"),
	NUM_OF(W(GRAPH), "workload", "chunks", COUNT, IN_W(chunks), 1, 1024, NULL, "1", "parts of a collective's bytes that follow each other in a pipeline"),
	NUM_OF(W(GRAPH), "workload", "eager", BYTES, IN_W(eager_bytes), 0, TB, NULL, "0", "a send of up to so much is done when it is posted, others when they are acknowledged"),
	NUM("workload", "class", COUNT, IN_W(traffic_class), 1, 7, "auto", "auto", "traffic class; those of a host take turns; auto: of a file of flows as it says, else transport.class"),

	WORDS("job", "workload", NAME, IN_J(workload), "", "the name of a workload of kind = graph, which runs as this job and not by itself; keys that are not given are its"),
	WORDS("job", "hosts", RANGES, IN_J(hosts), "all", "hosts that take part, as 0-7,12"),
	WORDS("job", "place", PLACED, IN_J(place), "packed", "which rank is on which of them"),
	NUM("job", "start", TIME, IN_J(start_ps), 0, DAY, NULL, "0", "when it begins"),
	WORDS("job", "arrive", ARRIVE, IN_J(arrive_gap_ps), "", "poisson N: its rounds begin after the start, at random, N of them in a second in the mean; else one behind the other"),
	NUM("job", "repeat", COUNT, IN_J(repeat), 1, 4096, NULL, "1", "rounds"),

	WORDS("program", "hosts", RANGES, IN_P(hosts), "", "hosts that run it in simulated time, in a process each, as 0-7,12; workloads do not run then"),
	WORDS("program", "command", TEXT, IN_P(command), "", "what they run: words, perhaps quoted"),
	NUM("program", "start", TIME, IN_P(start_ps), 0, DAY, NULL, "0", "when the processes begin"),

	WORDS("run", "title", TEXT, AT(title), "", "one line on top of the report"),
	NUM("run", "until", TIME, AT(run.until_ps), 1, DAY, "none", "none", "simulated time at which the run ends"),
	NUM("run", "events", COUNT, AT(run.events), 1, ANY, "none", "none", "events after which the run ends"),
	ONOFF("run", "all_flows", AT(run.all_flows), "on", "the run ends when all flows are done"),
	NUM("run", "seed", COUNT, AT(run.seed), 0, ANY, NULL, "1", "seed of every random draw; the same seed gives the same bytes"),
	WORDS("run", "only", NAME, AT(run.only), "", "the name of the one workload or job that runs, alone; all: each does; none: the network is for programs, those of [program.NAME] or --run"),
	ONOFF("run", "check", AT(run.check), "off", "check the invariants after each event; slow"),

	ONOFF("output", "queue_histograms", AT(output.queue_histograms), "on", "time at each queue length, per port"),
	NUM("output", "queue_sample", TIME, AT(output.queue_sample_ps), 1000, DAY, "none", "none", "also sample queue lengths at this interval; the histograms are exact without samples"),
	NUM("output", "goodput_window", TIME, AT(output.goodput_window_ps), US, 1000 * SECOND, "none", "10us", "window of the curves over time; doubles as a run grows long"),
	NUM("output", "goodput_flows", COUNT, AT(output.goodput_flows), 0, 1024, NULL, "256", "this many flows, the first ones, have a curve each"),
	NUM("output", "fairness_start", TIME, AT(output.fairness_start_ps), 0, DAY, NULL, "0", "start of the stretch whose fairness is reported"),
	NUM("output", "fairness_window", TIME, AT(output.fairness_window_ps), US, 1000 * SECOND, "none", "none", "length of that stretch; none: to the end"),
	WORDS("output", "cc_trace", FLOWS, AT(output.cc_trace), "none", "flows whose rate and window are recorded on change: numbers, all or none"),
	WORDS("output", "pcap", PATH, AT(output.pcap), "", "capture file, written into the report's folder"),
	WORDS("output", "pcap_hosts", RANGES, AT(output.pcap_ports), "all", "hosts whose ports are captured, both directions; if links are named, only these"),
	WORDS("output", "pcap_links", RANGES, AT(output.pcap_links), "", "links captured, A-B,...: between two nodes, the smaller number first, hosts from 0, then switches"),
	ONOFF("output", "pcap_payload", AT(output.pcap_payload), "on", "payload, which does not exist, is written as zeroes; off: frames are cut before it"),
	ONOFF("output", "event_log", AT(output.event_log), "off", "events.txt in the report's folder: a line for every event, for comparing runs with diff"),
};
/* clang-format on */

const struct scenario_row *scenario_rows(size_t *count)
{
	*count = sizeof(rows) / sizeof(rows[0]);
	return rows;
}
