/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two nics on a scripted channel, in virtual time. It uses the nic's public contract only.
 *
 * A duo has two hosts. A packet that one sends reaches the host that has its destination address
 * `latency_ns` later, unless a rule or the seeded faults decide otherwise. Rules apply in the order in which they
 * were made; the first that matches decides. Everything is a function of the seed and the calls made: the same
 * twice gives the same `trace`.
 *
 * Time is the simulator's: flights are events of its queue. The simulated network is not between the two: that
 * network carries lengths only, while here payloads are compared byte by byte; its hosts give it one packet at a
 * time, while here nics send trains, as over a socket, and scripts decide each packet's fate.
 *
 * A duo is also two hosts without a channel, for programs that hand packets over themselves (bench/). Then memory
 * alone is checked.
 *
 * These are always checked, and a violation aborts with the last packets on stderr: trains, ICRCs and source
 * ports of packets sent, memory around every buffer, leaks, and a bound on the work done.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prng.h"
#include "mem/sge.h"
#include "nic/nic.h"
#include "net/event.h"
#include "support/heap.h"
#include "wire/aeth.h"
#include "wire/bth.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/reth.h"
#include "wire/sacketh.h"
#include "wire/veroce.h"

enum duo_side { DUO_A, DUO_B, DUO_SIDES };

enum {
	DUO_ANY = -1,
	DUO_GID_IPV4 = 0, /* indices of either host's GID table */
	DUO_GID_IPV6 = 1,
	DUO_GIDS = 2,
	DUO_SGE_MAX = 8,
	DUO_PACKET_MAX = 65536, /* packets of CAPS_LARGE_BYTES, too */
	DUO_CORRUPT_BITS = 8 * 8192,
	DUO_SPORT_IPV4 = 49152, /* source port of path 0; path i has i more */
	DUO_SPORT_IPV6 = 50176
};

#define DUO_START_NS   1000000u /* time does not start at 0, lest 0 be special */
#define DUO_LATENCY_NS 1000u

/* ---- the channel --------------------------------------------------------------------------- */

enum duo_fate {
	DUO_PASS,
	DUO_DROP,
	DUO_DELAY,     /* by n nanoseconds */
	DUO_HOLD,      /* until n more packets of the same direction have passed */
	DUO_DUPLICATE, /* the copy follows n nanoseconds later */
	DUO_CORRUPT,   /* bit n of the packet, modulo its length, is flipped */
	DUO_MARK_CE
};

/* One packet sent, as rules and tests see it. */
struct duo_packet {
	uint64_t index; /* over all packets sent, from 0 */
	uint64_t sent_ns;
	enum duo_side from;
	const struct opcode_info *info;
	struct bth bth;
	struct aeth aeth; /* all zero when the packet has none */
	struct reth reth;
	uint32_t payload_len;
	uint32_t len;
	uint16_t train;
	enum duo_fate fate;
	const struct pkt *pkt; /* itself, while a script decides about it */

	bool veroce;  /* the rest is veRoCE's */
	uint8_t path; /* by its source port */
	uint32_t msn, rqmsn, po;
	uint32_t sack_count;
	struct sacketh sack; /* the first block */
};

typedef bool duo_match(const struct duo_packet *, const void *arg);
/* Called for every packet sent, also if it is lost. */
typedef void duo_tap(void *ctx, const struct duo_packet *, const uint8_t *data);

struct duo_rule {
	int from;   /* enum duo_side or DUO_ANY */
	int opcode; /* enum opcode or DUO_ANY; First finds a Middle that starts a message (veRoCE 3, ALIKE), too */
	int nth;    /* the n-th that matches otherwise, from 0, or DUO_ANY */
	duo_match *match; /* or NULL */
	const void *arg;
	enum duo_fate fate;
	uint64_t n;

	uint64_t seen;
	uint64_t hits;
	bool off;
};

/*
 * Decides packet by packet, before any rule: true with *fate and *n set, as in a rule; false: the
 * rules decide.
 */
typedef bool duo_script(void *ctx, const struct duo_packet *, enum duo_fate *fate, uint64_t *n);

/* Rates of one direction, in parts of a million; independent of each other, at most one applies. */
struct duo_faults {
	uint32_t drop_ppm, duplicate_ppm, delay_ppm, corrupt_ppm, ce_ppm;
	uint64_t delay_ns_max;
};

/* ---- hosts and objects --------------------------------------------------------------------- */

struct cqe_log {
	struct cqe *e;
	size_t n;
	size_t room;
	size_t taken; /* by duo_expect() */
};

struct duo_host {
	struct duo *duo;
	enum duo_side side;
	unsigned slot;
	uint64_t stopped_until_ns;
	uint32_t waits_ns; /* the part of the latency that packets spend at this host before it takes them, and is told
			    */
	struct heap heap;
	struct alloc alloc;
	struct nic_config config;
	uint64_t clock_ns; /* the nic's time is so much ahead of the duo's (duo_reload()) */
	struct nic *nic;
	struct pd *pd;
	struct nic_gid gids[DUO_GIDS];
	struct async_event *events;
	size_t event_count;
	struct cq **cq_events;
	size_t cq_event_count;
};

/* Registered memory between two canaries. Its iova is not its address, and the same in every run. */
struct duo_buf {
	struct duo_host *host;
	uint8_t *p;
	uint64_t len;
	uint64_t iova;
	struct mr *mr; /* NULL: it was closed, */
	uint32_t key;  /* and its key was this one */
	struct duo_buf *next;
};

/* How a QP and its peer are set up; see duo_options(). */
struct duo_options {
	enum qp_type type;
	uint8_t gid; /* DUO_GID_IPV4 or _IPV6 */
	uint32_t mtu;
	uint32_t psn[DUO_SIDES]; /* each side's first send PSN */
	uint32_t access;         /* enum mr_access granted to the peer */
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint32_t qkey;
	struct qp_cap cap;
	uint32_t cqe;
	bool sq_sig_all;
	struct srq *srq[DUO_SIDES];
	struct cq *cq[DUO_SIDES]; /* for all completions, which the caller polls; NULL: two of the QP's own */
};

struct duo_qp {
	struct duo_host *host;
	struct duo_qp *peer;
	struct qp *qp;
	uint32_t qpn;
	struct cq *send_cq;
	struct cq *recv_cq;
	struct srq *srq;
	struct duo_options opt;
	struct cqe_log sent; /* completions polled from send_cq and recv_cq */
	struct cqe_log received;
	bool manual;  /* the test polls the CQs itself */
	bool lent_cq; /* by the options */
	struct duo_qp *next;
};

struct duo_pair {
	struct duo_qp *a, *b;
};

struct duo {
	uint64_t seed;
	uint64_t now_ns;
	uint64_t latency_ns;
	uint64_t trace;
	uint64_t steps_left; /* of the loop; 0: stuck, and the run aborts */
	size_t burst;        /* packets asked of nic_output() at a time */
	size_t batch;        /* packets given to a nic before it is asked for output */
	/*
	 * Payload of veRoCE packets is put to the places that nic_place() tells before the nic gets them, as between
	 * processes of one host, and of so many of these packets one is lost then (0: none).
	 */
	bool places;
	uint32_t reload_of; /* either nic is reloaded once in so many steps of the loop, by chance; 0: never */
	uint32_t placed_lost;
	uint64_t placed;         /* packets */
	struct duo_rings *rings; /* or NULL */
	struct duo_host host[DUO_SIDES];
	struct duo_faults faults[DUO_SIDES]; /* by sender */
	/* More latency of veRoCE packets, by path; UINT64_MAX: the path is dead. */
	uint64_t path_ns[PATHS_MAX];

	struct duo_packet *wire; /* every packet sent, for the tests to look at */
	size_t wire_count;
	size_t wire_room;
	duo_tap *tap; /* or NULL */
	void *tap_ctx;

	duo_script *script; /* or NULL */
	void *script_ctx;
	struct duo_rule *rules[32];
	size_t rule_count;
	struct event_queue flights; /* packets on their way, by arrival */
	uint64_t flown;             /* how many ever were, which is their order */
	struct duo_flight *held;
	struct duo_buf *bufs;
	uint64_t buf_count;
	struct duo_qp *qps;
	struct prng prng, reload_prng;
	uint64_t reloads;
	struct icrc_ctx icrc;
};

/* `tweak` may change a host's configuration before its nic is made; NULL: leave it. */
struct duo *duo_create(uint64_t seed, void (*tweak)(struct nic_config *, enum duo_side));
/* For a tweak: both are processes of one host, whose addresses are those of either. */
void duo_same_host(struct nic_config *);
/* Checks canaries and leaks. */
void duo_destroy(struct duo *);

/* RC, IPv4, MTU 1024, every remote access, retry 7 and 7, timeout 14, 64 WRs, 4 SGEs. */
struct duo_options duo_options(void);
/* Two QPs connected to each other and in RTS; UD ones merely are in RTS. */
struct duo_pair duo_connect(struct duo *, const struct duo_options *);
/* One QP in RESET, owned by the duo. */
struct duo_qp *duo_qp_create(struct duo_host *, const struct duo_options *);
/* Before duo_destroy() does it. */
void duo_qp_destroy(struct duo_qp *);
/* Modifies by the options, as far as INIT, RTR or RTS from the state before it. 0 or an errno. */
int duo_qp_to_init(struct duo_qp *);
int duo_qp_to_rtr(struct duo_qp *, const struct duo_qp *peer);
int duo_qp_to_rts(struct duo_qp *);
int duo_qp_to_state(struct duo_qp *, enum qp_state);
/*
 * The host's address of that index is another one from now on, 10.0.0.`last` or fd00::`last`, and packets to the old one are
 * lost.
 */
void duo_move(struct duo_host *, uint8_t gid, uint8_t last);
struct ah_attr duo_av(const struct duo_host *from, const struct duo_host *to, uint8_t gid);

struct duo_buf *duo_buf(struct duo_host *, uint64_t len, uint32_t access);
void duo_buf_free(struct duo_buf *);
/* Deregisters the region; its memory is there until duo_buf_free(). */
void duo_buf_close(struct duo_buf *);
/* Fills it with bytes that look random; duo_filled() says byte i of them. */
void duo_fill(struct duo_buf *, uint64_t seed);
uint8_t duo_filled(uint64_t seed, uint64_t i);
/* The region's key; of a closed one, what it was. */
uint32_t duo_key(const struct duo_buf *);
struct sge duo_sge(const struct duo_buf *, uint64_t off, uint32_t len);

/* ---- work ------------------------------------------------------------------------------------ */

struct duo_wr {
	enum wr_opcode opcode;
	uint8_t flags; /* enum wr_flags */
	uint64_t wr_id;
	struct sge sge[DUO_SGE_MAX];
	uint32_t num_sge;
	uint32_t imm_or_key;
	uint64_t remote_va;
	uint32_t rkey;
	uint64_t compare_add, swap;
	const struct flow *flow; /* UD */
	uint32_t dqpn;
	uint32_t qkey;
	struct wqe_bind bind; /* BIND_MW */
	uint32_t flush_bytes; /* FLUSH, with the next two */
	uint8_t placement, selectivity;
	const void *inline_data; /* with WR_INLINE: `inline_len` bytes */
	uint32_t inline_len;
};

/* Signaled requests of one element, the usual case; change them as you like. */
struct duo_wr duo_send_wr(uint64_t wr_id, const struct duo_buf *, uint64_t off, uint32_t len);
struct duo_wr duo_write_wr(uint64_t wr_id, const struct duo_buf *, uint64_t off, uint32_t len,
			   const struct duo_buf *remote, uint64_t remote_off);
struct duo_wr duo_read_wr(uint64_t wr_id, const struct duo_buf *, uint64_t off, uint32_t len,
			  const struct duo_buf *remote, uint64_t remote_off);
struct duo_wr duo_fetch_add_wr(uint64_t wr_id, const struct duo_buf *, uint64_t off, const struct duo_buf *remote,
			       uint64_t remote_off, uint64_t add);
struct duo_wr duo_cmp_swap_wr(uint64_t wr_id, const struct duo_buf *, uint64_t off, const struct duo_buf *remote,
			      uint64_t remote_off, uint64_t compare, uint64_t swap);

/* 8 bytes from anywhere, inline. */
struct duo_wr duo_atomic_write_wr(uint64_t wr_id, const void *value, const struct duo_buf *remote, uint64_t remote_off);
/* To all, of a range. */
struct duo_wr duo_flush_wr(uint64_t wr_id, const struct duo_buf *remote, uint64_t remote_off, uint32_t len);

/* False: the queue is full. duo_post_chain() posts all or nothing, with one doorbell. */
bool duo_post(struct duo_qp *, const struct duo_wr *);
bool duo_post_chain(struct duo_qp *, const struct duo_wr *, uint32_t count);
/* One for which there is room. */
void duo_must_post(struct duo_qp *, struct duo_wr);
bool duo_post_recv(struct duo_qp *, uint64_t wr_id, const struct sge *, uint32_t count);
bool duo_post_srq(struct srq *, uint64_t wr_id, const struct sge *, uint32_t count);
/* One element. */
bool duo_recv(struct duo_qp *, uint64_t wr_id, const struct duo_buf *, uint64_t off, uint32_t len);

/* ---- time -------------------------------------------------------------------------------------- */

/* Until no packet is on its way and no nic has a deadline. */
void duo_idle(struct duo *);
void duo_run_until(struct duo *, uint64_t ns);
void duo_run_for(struct duo *, uint64_t ns);
/* Until the log holds `n` completions; aborts when everything is idle before. */
void duo_wait(struct duo *, const struct cqe_log *, size_t n);

/* ---- faults ------------------------------------------------------------------------------------- */

/* Lives as long as the duo or duo_pass_all(). */
struct duo_rule *duo_rule(struct duo *, struct duo_rule);
struct duo_rule *duo_drop(struct duo *, int from, int opcode, int nth);
void duo_pass_all(struct duo *);
/* Every packet on its way is lost. */
void duo_ground(struct duo *);
/* The host neither sends nor takes before that time, as a process that is stopped. */
void duo_stop(struct duo_host *, uint64_t until_ns);

/*
 * The host's nic is saved, destroyed and loaded, by a clock that is years ahead or back again. Nothing else shows it: the
 * duo's own pointers are right again, and the trace is as without. No ring is there, and nothing is lent.
 */
void duo_reload(struct duo_host *);
static inline uint64_t duo_now(const struct duo_host *h)
{
	return h->duo->now_ns + h->clock_ns;
}

/* ---- memory between the two ------------------------------------------------------------------------ */

/*
 * Before any packet is sent, of two that duo_same_host() was for: real rings (io/shm/shm.h) stand between the nics and the
 * channel, as the engine has them between processes of one host, and what no ring takes goes by the channel. Both
 * hosts are pollers, which sleep now and then; that a sleeper is woken is checked.
 */
void duo_rings_open(struct duo *);
/* Makes the ring from a host, in place of an older one. reads: the other host can read this one's memory. */
void duo_ring_make(struct duo_host *from, bool reads);
/* The ring from a host is lost there; the other host learns it later. False: there is none. */
bool duo_ring_lose(struct duo_host *from);
void duo_ring_end(struct duo_host *from);
/* The other host cannot read the memory of that one any more. */
void duo_ring_blind(struct duo_host *from);
const struct io_counters *duo_ring_counters(const struct duo_host *);

/* ---- the wire ------------------------------------------------------------------------------------ */

/* Packets sent so far that match; DUO_ANY for any opcode or side; opcodes as in a rule. */
size_t duo_count(const struct duo *, int from, int opcode);
/* The n-th of them, or NULL. */
const struct duo_packet *duo_packet(const struct duo *, int from, int opcode, size_t n);
/* ACK packets with that syndrome; those with any ACK syndrome for 0. */
size_t duo_count_syndrome(const struct duo *, int from, uint8_t syndrome);
/*
 * Makes a packet of the given headers and payload, ICRC included, as the other host would send it to
 * `to`; returns its length. `ext` is what follows the BTH; bth->pad is set here.
 */
uint32_t duo_build(struct duo *, enum duo_side to, uint8_t gid, struct bth *bth, const void *ext, uint32_t ext_len,
		   const void *payload, uint32_t payload_len, uint8_t buf[DUO_PACKET_MAX]);
/* Makes one and hands it over at once. */
int duo_forge(struct duo *, enum duo_side to, uint8_t gid, struct bth *bth, const void *ext, uint32_t ext_len,
	      const void *payload, uint32_t payload_len);
/* As it is; the flow is what the receiver sees. 0, or -EBADMSG if the packet was not whole. */
int duo_inject(struct duo *, enum duo_side to, const struct flow *, const uint8_t *data, uint32_t len);
/* icrc_seal() for such a packet, with the secret that the peer of a veRoCE QP knows. */
void duo_seal(const struct duo *, enum duo_side to, struct pkt *);
/* The flow of packets from the other host to `to`. */
struct flow duo_flow(const struct duo *, enum duo_side to, uint8_t gid);
void duo_dump(const struct duo *, size_t last);

/* ---- checks -------------------------------------------------------------------------------------- */

/* Prints the last packets to stderr, then calls duo_fail_hook, if set, and aborts. */
extern void (*duo_fail_hook)(void);
#define DUO_CHECK(d, cond) ((cond) ? (void)0 : duo_fail(d, __FILE__, __LINE__, #cond))
_Noreturn void duo_fail(const struct duo *, const char *file, int line, const char *what);

/* The next completion of the log has this wr_id and status; returns it. */
#define duo_expect(d, log, wr_id, status) duo_expect_at(d, log, wr_id, status, __FILE__, __LINE__)
const struct cqe *duo_expect_at(const struct duo *, struct cqe_log *, uint64_t wr_id, enum wc_status, const char *file,
				int line);
/* Once all is idle, the next completion of what the queue pair sent. */
#define duo_finish(q, wr_id, status) (duo_idle((q)->host->duo), duo_expect((q)->host->duo, &(q)->sent, wr_id, status))
/* Posts one that succeeds, once all is idle, as the next of that queue pair. */
#define duo_do(q, wr) duo_do_at(q, wr, __FILE__, __LINE__)
void duo_do_at(struct duo_qp *, struct duo_wr, const char *file, int line);
bool duo_had_event(const struct duo_host *, enum event_type, const void *owner);
void duo_check_canaries(const struct duo *);
