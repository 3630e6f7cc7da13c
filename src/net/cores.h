/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network that is divided among threads. Each part has switches and the hosts behind them, a queue of events, a store
 * of packets and a present time of its own: a struct network that shares the arrays of ports, switches and hosts with
 * the whole one. Parts meet only on links that lead from one to another, and nothing crosses such a link in less time
 * than its delay. So all parts may run apart for a window of the least of these delays; then they meet, and packets go
 * over. As the order of events is by time, class, and the number of a port or host (net/event.h), each part's events are
 * those of the whole network, in the same order: results do not depend on the number of parts.
 *
 * Where a window may not do (the run may end within it, or something happens to the network as a whole), one thread
 * takes the events of all parts in their common order.
 *
 * Private to src/net.
 */
#pragma once

#include "net/network.h"

struct cores;
struct port;
struct packet;

/* Of network_run(), for a network that is divided. */
enum network_stop cores_run(struct network *, uint64_t until_ps, uint64_t max_events);
/* Ends the threads and frees what they have. */
void cores_fini(struct network *);
/* Adds what the parts have counted. */
void cores_count(const struct network *, struct network_counts *);
void cores_count_drops(const struct network *, struct network_drops *);
/* Events to come, packets on their way between parts included. */
uint64_t cores_pending(const struct network *);
/* Routes are new: the parts know them. */
void cores_new_routes(struct network *);
/* The part whose is the near end of the port; the network itself if it is not divided. */
struct network *cores_of_port(struct network *, const struct port *);

/* For a port whose link leads to another part. */
struct cut;
/* The packet has been sent, by the part `from`, and arrives at its time_ps. */
void cut_send(struct network *from, struct cut *, struct packet *);
/* The link has gone down: packets that have not yet been copied into the other part are lost, as those on the wire are. */
