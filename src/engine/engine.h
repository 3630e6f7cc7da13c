/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine runs one nic on this host: sockets, the host's clock, a thread, and the right of a
 * polling application thread to do the engine's work itself.
 *
 * A process has one engine for each of its devices, started by the first engine_get() and kept until exit. Each has
 * a thread, sockets and a slot of the group of its own, so to each other they are as those of two processes. Threads:
 *   - the control path (create, modify, destroy) takes engine_lock();
 *   - a poller calls engine_poll(), which does a turn of the loop if nobody else is doing one;
 *   - after posting, a program's thread calls engine_kick();
 *   - the engine thread stands back while somebody polls, and is back within about 50 us.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults/faults.h"
#include "limits/limits.h"
#include "nic/nic.h"

struct cm;
struct profile;
struct cm_channel;
struct engine;

/* Called with the engine locked, after a turn of the loop, by whichever thread did the turn. */
struct engine_sink {
	void (*cq_event)(void *cq_owner);
	void (*async_event)(const struct async_event *);
	void (*port_event)(struct engine *, enum event_type); /* likewise, but by the engine's thread */
	/* Called with the engine locked: names each QP of the device (engine_fault_qp_made()), for rules that are new. */
	void (*each_qp)(struct engine *);
	/* Not locked, by the engine's thread: the port or the GID table has changed. */
	void (*port_changed)(struct engine *);
};

enum { ENGINE_DEVICES_MAX = 8, DEVICE_NAME_BYTES = 24 };

/* How many devices the settings ask for; 1 if they are wrong, which engine_get() then explains. */
uint32_t engine_device_count(void);
/* A bit for each of them that is iWARP's: RC over TCP connections, which rdma_cm alone makes. */
uint32_t engine_iwarp_devices(void);
/* The name of the only device, if the settings give it one (VERBENA_DEVICE); else empty. */
void engine_device_given(char given[DEVICE_NAME_BYTES]);
/* How many of them rdma_cm uses, from the first on: all, if each is bound to an interface or address; else one. */
uint32_t engine_cm_devices(void);
/* Whether such a device has RFC 7306's atomics and immediate data. */
bool engine_has_rfc7306(const struct engine *);
/* What the devices are like. */
const struct profile *engine_profile(const struct engine *);

/*
 * The process's engine of a device (0 .. ENGINE_DEVICES_MAX - 1), started if need be. NULL with errno and, in err, a
 * sentence that names what is wrong and what would help (port taken by another user, no address, bad VERBENA_* value).
 */
struct engine *engine_get(unsigned device, const struct engine_sink *, char *err, size_t err_bytes);

/* Before engine_get(): the memory of a group whose members have ended (group_config.shared_fd). Borrowed, for good. */
void engine_inherit(int shared_fd);

/* Its nic, for use with the lock held; and its number among the devices. */
struct nic *engine_nic(struct engine *);
unsigned engine_device(const struct engine *);
/* Whether its wire is RoCEv1: its GIDs are of that type. */
bool engine_is_rocev1(const struct engine *);
struct cm *engine_cm(struct engine *);
/* The thread is not cancelled until it unlocks. */
void engine_lock(struct engine *);
/* Likewise, and nothing is sent before it returns. */
void engine_lock_quietly(struct engine *);
/*
 * Whether this process was forked from the engine's: turns do nothing, and threads that held locks of verbs
 * objects at the fork do not exist here to release them.
 */
bool engine_is_lost(const struct engine *);
void engine_unlock(struct engine *); /* work that appeared meanwhile is done or handed over */

/*
 * Lock held. Makes the sockets of all paths. They are many, so this is done only when a queue pair connects to
 * another host (nic_qp_needs_paths).
 */
void engine_add_paths(struct engine *);

/*
 * Lock held, where there are streams: takes that address and port for the listener with that number (cm_id_listener()),
 * which is not to listen yet. alone: as tcp_bind(). 0 or a negative errno.
 */
int engine_bind(struct engine *, uint32_t number, const struct flow *at, bool alone);
/* Likewise. Listens for connections there; takes the port first if that was not done, or failed. 0 or a negative errno.
 */
int engine_listen(struct engine *, uint32_t number, const struct flow *at, int backlog);
/*
 * Lock held. The host hears the multicast group from now on, on that interface; 0: on every interface that has a GID,
 * unless ids of rdma_cm have chosen some (cm_hears()). 0 or a negative errno: -ENOMEM where there are too many groups,
 * -EOPNOTSUPP over iWARP.
 */
int engine_join(struct engine *, const uint8_t gid[16], uint32_t ifindex);
/* Lock held. Leaves the groups that no queue pair is attached to and no id has joined. */
void engine_leave_unused(struct engine *);

/* Now, on the clock that the nic is driven by, which is never set back (on a host CLOCK_MONOTONIC), nanoseconds. */
uint64_t engine_now_ns(const struct engine *);
/*
 * The wall clock's time when that clock's was 0, in nanoseconds since 1970. It is one number for good, so that two
 * readings of a time agree; a wall clock that is set later is not followed.
 */
uint64_t engine_wall_at_0_ns(const struct engine *);

/*
 * Numbers of descriptors: those of ours are high, because programs count on low ones (io/fd_away.h). *Takes* a
 * descriptor, and returns the same file under another number; and the lowest such number.
 */
int engine_fd_away(int fd);
int engine_fd_first(void);

/* The UDP port of RoCEv2, to which peers' connection managers listen too. */
uint16_t engine_udp_port(const struct engine *);
/*
 * Lock held. How many times RoCEv2 would have been needed and VERBENA_PROTOCOL=veroce forbade it: queue pairs that
 * failed, and requests that were dropped.
 */
uint64_t engine_refused_rocev2(const struct engine *);

/* Lock held. The process with a slot (struct cm_obstacle), or 0. */
long engine_pid_of(const struct engine *, int slot);

/* Both called with the engine locked. */
struct engine_cm_sink {
	void (*event)(struct cm_channel *); /* after a turn: it has other events than before */
	void (*hung_up)(int fd); /* a watched descriptor has no other end any more, or had none a moment ago */
};

/* Lock held. Sets the receiver of the connection manager's events; borrowed for good. */
void engine_set_cm_sink(struct engine *, const struct engine_cm_sink *);
/*
 * Lock held. From now on, when the other end of fd is closed, the sink is called, repeatedly until fd is closed
 * too. 0 or a negative errno.
 */
int engine_watch(struct engine *, int fd);

/* One turn of the loop, without ever blocking: input, expiry, output. */
void engine_poll(struct engine *);
/* Whether time passes only while the program waits; then threads call the other one before they post. */
bool engine_is_simulated(const struct engine *);
void engine_catch_up(struct engine *);
/*
 * Work was posted to qp (nic_doorbell() was not called yet; this does). Sends at once when the QP
 * is idle; otherwise leaves it to the next poll, with a bound by what is in flight.
 */
void engine_kick(struct engine *, struct qp *);
/* The caller is about to block: the engine thread takes over now rather than 50 us later. No cancellation point. */
void engine_hand_over(struct engine *);

/* Facts for `ibv_devinfo` and the file tree. */
struct engine_interface {
	char name[16];
	uint32_t ifindex;
	uint32_t mtu;
};
/* Lock held. The interface of a GID index; -ENOENT: there is no GID. */
int engine_gid_interface(const struct engine *, uint32_t gid_index, struct engine_interface *);

/*
 * The port's state: that of the interfaces with its addresses. Loopback counts only where the port has had no other
 * interface that was up, or the settings name no other.
 */
struct engine_port {
	bool active;        /* one of them is up and has a carrier, */
	bool enabled;       /* or is up at least */
	uint64_t speed_bps; /* of the fastest; 0: none says */
	bool made_up;       /* that speed is a virtual interface's, and says nothing of what it carries */
};
/* Lock held. */
struct engine_port engine_port(const struct engine *);

/* ---- faults on command (faults/faults.h); without a script only engine_number_qp() need be called ---- */

extern atomic_bool engine_faulty; /* a device of the process has a script */

static inline bool engine_has_faults(void)
{
	return __builtin_expect(atomic_load_explicit(&engine_faulty, memory_order_relaxed), 0);
}

/* Lock not held. The errno that the call fails with; 0: it does not. */
int engine_fault_call(struct engine *, enum fault_call);
/* Likewise. A send request is about to be posted to that QP. */
struct fault_wr engine_fault_wr(struct engine *, const struct qp *);
/*
 * Lock held. Asks whether the device may have one more object of a kind; kinds without a quota of their own are
 * LIMIT_HCA_OBJECT. `bytes` are those of a new region. With LIMIT_MR_BYTES no object is made, and a region becomes longer
 * by `bytes`. 0, or ENOMEM: the device has too many. What is made until engine_unlock() counts from then on.
 */
int engine_room(struct engine *, enum limit kind, uint64_t bytes);
/* How many of those the device may have; UINT64_MAX: it has no quota of them. */
uint64_t engine_quota(const struct engine *, enum limit);

/* Lock held. The number of a QP that is created, from 1 on. */
uint32_t engine_number_qp(struct engine *);
/* Lock held. It was created, knows its peer, is about to be destroyed. */
void engine_fault_qp_made(struct engine *, const struct qp *, uint32_t number);
void engine_fault_qp_peer(struct engine *, const struct qp *);
void engine_fault_qp_gone(struct engine *, const struct qp *);

enum { ENGINE_ADDRESSES_MAX = 16 };
/*
 * Lock held. The addresses that VERBENA_ADDRESS or its rail leaves the device, or that have names in the map, counted from
 * 0, below ENGINE_ADDRESSES_MAX; ifindex is 0 but for link-local ones. False: no more of them, and from index 0 on, unless
 * engine_is_bound() or there is a map, the device has every address of the host.
 */
bool engine_is_bound(const struct engine *);
bool engine_chosen_address(const struct engine *, uint32_t index, uint8_t gid[16], uint32_t *ifindex);
/*
 * Lock held. The names of VERBENA_MAP are those of its file now, before a call that resolves an address. Does nothing
 * where there is no map.
 */
void engine_follow_map(struct engine *);
bool engine_has_map(const struct engine *);
/*
 * Likewise: an address as programs know it becomes that of the wire, and back; those of groups and of the loopback, and
 * the wildcard stay. False: the map lacks it.
 */
bool engine_hide_address(const struct engine *, uint8_t ip[16]);
bool engine_show_address(const struct engine *, uint8_t ip[16]);
