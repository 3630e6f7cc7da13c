/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The turn: input, expiry, output, events. Each part is bounded, so that a flood of one does not
 * starve the others and a poller gets its thread back soon.
 *
 * nic_output() lends its packets until the next call into the nic. When the kernel takes only some
 * of them, the rest is copied to the stash and goes first in the next turn: the kernel is behind
 * then, and a copy costs nothing that matters.
 */
#include "engine/loop.h"

#include <errno.h>
#include <string.h>

#include "base/ipudp.h"
#include "engine/map_file.h"
#include "engine/neighbours.h"
#include "engine/registrar.h"
#include "engine/requests.h"
#include "faults/faults.h"
#include "io/tcp/tcp.h"
#include "limits/limits.h"
#include "space/space.h"

enum {
	INPUT_BATCH = 64,
	INPUT_PACKETS_MAX = 256, /* a turn */
	UNREAD_TURNS_MAX = 64,   /* turns of input that timers wait for: more than sockets hold */
	OUTPUT_BURST = 2 * PKT_TRAIN_MAX + NIC_TX_ANSWERS,
	OUTPUT_BURSTS_MAX = 4, /* a turn */
	OUTPUT_BYTES_MAX = 256 << 10,
	STASH_RETRY_NS = 200000,
	DOUBT_AGAIN_NS =
		100000000, /* how long a process that lived is not asked for: asking takes seven system calls */
	PAGE_INTERVAL_NS = 10000000,
	HEADERS_BYTES = 66, /* around a packet on the wire: Ethernet's with preamble and gap, IPv4's and UDP's */
	PACKET_BYTES_MAX = NIC_MTU_BYTES_MAX + 128
};

struct loop_stash {
	size_t first; /* next to send */
	size_t count;
	uint64_t retry_ns;
	struct pkt pkts[OUTPUT_BURST];
	struct flow flows[OUTPUT_BURST];
	uint8_t bytes[OUTPUT_BURST][PACKET_BYTES_MAX];
	/* The pieces of a train must be contiguous, so a burst is copied back to back in here. */
};

static bool stash_is_empty(const struct loop_stash *s)
{
	return s->first == s->count;
}

/* Keeps whole trains for which the kernel had no room. */
static __attribute__((cold)) void stash_fill(struct loop_stash *s, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	uint8_t *to = s->bytes[0];

	for (size_t i = 0; i < n; i++) {
		s->pkts[i] = pkts[i];
		s->flows[i] = *pkts[i].flow;
		s->pkts[i].flow = &s->flows[i];
		s->pkts[i].data = to;
		memcpy(to, pkts[i].data, pkts[i].len);
		to += pkts[i].len;
	}
	s->first = 0;
	s->count = n;
	s->retry_ns = now_ns + STASH_RETRY_NS;
}

static __attribute__((cold)) bool stash_send(struct loop *l, uint64_t now_ns)
{
	struct loop_stash *s = l->stash;
	size_t sent = io_send(l->io, s->pkts + s->first, s->count - s->first, now_ns);

	s->first += sent;
	s->retry_ns = now_ns + STASH_RETRY_NS;
	return sent > 0;
}

static bool is_multicast(const struct pkt *p)
{
	return p->len >= 8 && p->data[6] == 0xff && p->data[7] == 0xff && gid_is_multicast(p->flow->dst);
}

/*
 * Whose a packet is. The kernel picks the socket by a datagram's first packet and, while members come and go, by
 * indices that are a moment old. A packet that is not ours goes to its owner, never into our nic.
 */
enum owner { OURS, ANYONES, ANOTHERS, OF_STREAMS };

static enum owner owner_of(const struct loop *l, const struct pkt *p)
{
	unsigned slot = l->group ? group_slot_of(p) : l->slot;

	if (slot == l->slot)
		return OURS;
	if (slot != GROUP_ANY_SLOT)
		return ANOTHERS;
	/* All processes that joined a multicast group have got its packets. */
	return is_multicast(p) ? OURS : ANYONES;
}

static void take_ours(struct loop *l, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	nic_input(l->nic, pkts, n, now_ns);
}

static void take_anyones(struct loop *l, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	for (size_t i = 0; i < n; i++)
		requests_take(l, &pkts[i], 0, now_ns);
}

static void take_anothers(struct loop *l, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	for (size_t i = 0; i < n; i++)
		group_forward(l->group, group_slot_of(&pkts[i]), &pkts[i], 0);
}

static void take_streams(struct loop *l, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	for (size_t i = 0; i < n; i++)
		cm_stream_input(l->cm, &pkts[i], now_ns);
}

static void (*const take[])(struct loop *, const struct pkt *, size_t n, uint64_t now_ns) = {
	[OURS] = take_ours, [ANYONES] = take_anyones, [ANOTHERS] = take_anothers, [OF_STREAMS] = take_streams};

/* What one owner gets in a row is taken at once. */
static void take_in(struct loop *l, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	size_t first = 0;

	while (first < n) {
		enum owner owner = l->streams ? OF_STREAMS : owner_of(l, &pkts[first]);
		size_t end = first + 1;

		while (end < n && (owner == OF_STREAMS || owner_of(l, &pkts[end]) == owner))
			end++;
		take[owner](l, pkts + first, end - first, now_ns);
		first = end;
	}
}

static bool input(struct loop *l, uint64_t now_ns)
{
	struct pkt pkts[INPUT_BATCH];
	size_t total = 0, n;

	do {
		n = io_recv(l->io, pkts, INPUT_BATCH, now_ns);
		take_in(l, pkts, n, now_ns);
		total += n;
		/* A batch that is not full was mostly all there was, so no further call is made. */
	} while (n == INPUT_BATCH && total < INPUT_PACKETS_MAX);
	l->unread = n == INPUT_BATCH;
	l->unread_turns = l->unread ? l->unread_turns + 1 : 0;
	l->moved += total;
	return total > 0;
}

/*
 * Between the nic's QPN 1 and the connection manager. Its answers leave in this turn; its timers, too, come after
 * input.
 */
static bool manage(struct loop *l, enum loop_work work, uint64_t now_ns)
{
	uint8_t mad[MAD_LEN];
	struct flow flow;
	struct pkt pkt;
	bool moved = false;

	if (l->map && nic_has_mads(l->nic))
		map_follow(l->map);
	while (nic_mad_take(l->nic, &flow, mad)) {
		cm_input(l->cm, &flow, mad, now_ns);
		moved = true;
	}
	if (work >= LOOP_POLLED && !l->unread && cm_deadline(l->cm) <= now_ns)
		cm_expire(l->cm, now_ns);
	while (cm_output(l->cm, &flow, mad))
		moved |= nic_mad_send(l->nic, &flow, mad);
	while (cm_stream_output(l->cm, &pkt))
		moved |= io_send(l->io, &pkt, 1, now_ns) > 0;
	return moved;
}

/*
 * Whether a process that does not answer may be waiting for a processor. This process is running, so no silent QP of
 * its own is excused by that. The group knows about the others: a member's name is gone with its process.
 */
static bool may_be_waiting(const struct loop *l, unsigned slot)
{
	return l->group && slot != group_slot(l->group) && group_lives(l->group, slot);
}

static void doubts(struct loop *l, uint64_t now_ns)
{
	int slot;

	while ((slot = nic_next_doubt(l->nic)) >= 0) {
		if (l->lived_ns[slot] && now_ns - l->lived_ns[slot] < DOUBT_AGAIN_NS)
			continue;
		l->lived_ns[slot] = may_be_waiting(l, (unsigned)slot) ? now_ns : 0;
		if (l->lived_ns[slot])
			nic_peer_lives(l->nic, (uint32_t)slot, neighbours_ran(l, (unsigned)slot), now_ns);
		else
			nic_peer_gone(l->nic, (uint32_t)slot, now_ns);
	}
}

/*
 * A timer means that a packet has not come in time, which is certain only when all input has been read: a
 * process that had to wait for a processor finds its acknowledgements in the socket and its deadlines past.
 * So timers run after input that left nothing behind. Input that lasts longer than a socket's buffer is the
 * load and not a backlog; then timers run as well.
 */
static bool expire(struct loop *l, enum loop_work work, uint64_t now_ns)
{
	bool due;

	if (work < LOOP_POLLED || (l->unread && l->unread_turns < UNREAD_TURNS_MAX))
		return false;
	l->unread_turns = 0;
	due = nic_deadline(l->nic) <= now_ns;
	if (due)
		nic_expire(l->nic, now_ns);
	doubts(l, now_ns);
	return due;
}

/* The device may have sent too much, by this process or another: then only answers leave. */
static void pace(struct loop *l, uint64_t now_ns)
{
	uint64_t due_ns = limits_due_ns(l->limits, now_ns + l->behind_ns) - l->behind_ns;
	bool waits = due_ns > now_ns;

	l->data_due_ns = due_ns;
	if (waits == l->data_waits)
		return;
	l->data_waits = waits;
	if (waits && l->page)
		l->page->limit.rate_waits++;
	nic_pause(l->nic, waits ? UINT16_MAX : 0);
}

static void count_sent(struct loop *l, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += pkts[i].len + pkts[i].far_bytes + HEADERS_BYTES;
	limits_send(l->limits, bytes, now_ns + l->behind_ns);
}

static bool output(struct loop *l, uint64_t now_ns)
{
	struct pkt burst[OUTPUT_BURST];
	size_t bytes = 0;
	bool moved = false;

	l->more = false;
	for (int i = 0;; i++) {
		size_t n, sent;

		if (i == OUTPUT_BURSTS_MAX || bytes >= OUTPUT_BYTES_MAX) {
			l->more = true;
			break;
		}

		if (!stash_is_empty(l->stash)) {
			moved |= stash_send(l, now_ns);
			if (!stash_is_empty(l->stash))
				break;
		}
		if (l->shm)
			neighbours_look(l, now_ns);
		if (l->limits)
			pace(l, now_ns);
		n = nic_output(l->nic, burst, OUTPUT_BURST, now_ns);
		if (!n)
			break;
		if (l->limits)
			count_sent(l, burst, n, now_ns);
		moved = true;
		sent = io_send(l->io, burst, n, now_ns);
		if (sent < n) {
			stash_fill(l->stash, burst + sent, n - sent, now_ns);
			break;
		}
		l->moved += n;
		if (!nic_has_output(l->nic))
			break;
		for (size_t k = 0; k < n; k++)
			bytes += burst[k].len;
	}
	return moved;
}

static void events(struct loop *l)
{
	struct cm_channel *channel;
	struct async_event ev;
	struct cq *cq;

	while ((cq = nic_next_cq_event(l->nic)))
		l->sink->cq_event(cq->owner);
	while (nic_next_async_event(l->nic, &ev))
		l->sink->async_event(&ev);
	while (l->cm_sink && (channel = cm_next_stirred(l->cm)))
		l->cm_sink->event(channel);
}

void loop_show_qps(struct loop *l)
{
	if (!l->page || l->qps_shown == nic_qp_changes(l->nic))
		return;
	l->qps_shown = nic_qp_changes(l->nic);
	l->page->nic.qps = nic_counters(l->nic)->qps;
	stats_write_qps(l->page, l->nic);
}

static void page_update(struct loop *l)
{
	if (!l->page)
		return;
	l->page->nic = *nic_counters(l->nic);
	loop_show_qps(l);
	if (l->limits)
		limits_report(l->limits, &l->page->limits);
	if (!l->cm)
		return;
	cm_report(l->cm, &l->page->cm);
	if (l->listens_shown == cm_listens(l->cm) && l->page->listener_count <= cm_listeners(l->cm))
		return;
	l->listens_shown = cm_listens(l->cm);
	l->page->listener_count = (uint32_t)cm_report_listeners(l->cm, l->page->listeners, STATS_LISTENERS_MAX);
}

/* Whether what came is all that this turn has to do with: nothing waits to leave, and nothing is the cm's. */
static bool is_input_alone(const struct loop *l)
{
	return !l->streams && !nic_has_output(l->nic) && !nic_has_mads(l->nic);
}

/* A device that hangs loses what arrives and does nothing else. */
static __attribute__((cold)) bool hang(struct loop *l, uint64_t now_ns)
{
	input(l, now_ns);
	return false;
}

bool loop_turn(struct loop *l, enum loop_work work, uint64_t now_ns)
{
	bool came, moved, due = false, again = false, managed = false;

	l->moved = 0;
	if (l->faults && faults_hangs(l->faults))
		return hang(l, now_ns);
	came = work >= LOOP_POLLED && input(l, now_ns);
	/* The program waits for what came. Timers and all else can wait for its next poll. */
	if (came && work == LOOP_POLLED && !l->owes && is_input_alone(l)) {
		l->owes = true;
		l->stirred_ns = now_ns;
		events(l);
		return true;
	}
	if (work >= LOOP_POLLED)
		l->owes = false;
	if (work != LOOP_POSTED) {
		due = expire(l, work, now_ns);
		again = l->cm && requests_again(l, now_ns);
		managed = l->cm && manage(l, work, now_ns);
	}
	moved = output(l, now_ns);
	if (came || (moved && (!due || managed)))
		l->stirred_ns = now_ns;
	moved |= came || again;
	if (l->shm && work != LOOP_POSTED)
		neighbours_meet(l, now_ns);
	events(l);
	if (moved && now_ns >= l->page_due_ns) {
		page_update(l);
		l->page_due_ns = now_ns + PAGE_INTERVAL_NS;
	}
	return moved;
}

void loop_serve_group(struct loop *l, uint64_t now_ns)
{
	struct pkt pkts[INPUT_BATCH];
	size_t total = 0, n;

	if (!l->group)
		return;
	group_service(l->group);
	if (l->streams)
		return;
	registrar_serve(l, now_ns);
	if (l->shm)
		neighbours_serve(l, now_ns);
	do {
		n = group_recv_forwarded(l->group, pkts, INPUT_BATCH);
		for (size_t i = 0; i < n; i++) {
			/* Passed on once only, so that no packet circulates; requests a few times. */
			if (group_slot_of(&pkts[i]) == GROUP_ANY_SLOT)
				requests_take(l, &pkts[i], group_hops(l->group, i), now_ns);
			else if (group_slot_of(&pkts[i]) == l->slot)
				nic_input(l->nic, &pkts[i], 1, now_ns);
		}
		total += n;
	} while (n && total < INPUT_PACKETS_MAX);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t manage_deadline_ns(const struct loop *l)
{
	return least(cm_deadline(l->cm), least(requests_deadline_ns(l), registrar_deadline_ns(l)));
}

uint64_t loop_deadline_ns(const struct loop *l)
{
	/* Datagrams are taken and lost meanwhile; a stream's bytes stay until the link is up. */
	bool stuck = l->streams && !stash_is_empty(l->stash) && l->faults && faults_stops(l->faults);
	uint64_t nic = stuck ? nic_timer_deadline(l->nic) : nic_deadline(l->nic);
	uint64_t io = io_deadline_ns(l->io), first = nic < io ? nic : io;
	uint64_t cm = l->cm ? manage_deadline_ns(l) : UINT64_MAX;

	if (l->faults) {
		first = least(first, faults_due_ns(l->faults));
		if (faults_hangs(l->faults))
			return faults_due_ns(l->faults);
	}
	if (l->more || l->unread || l->owes)
		return 0;
	if (cm < first)
		first = cm;
	if (l->data_waits)
		first = least(first, l->data_due_ns);
	if (!stash_is_empty(l->stash) && !stuck && l->stash->retry_ns < first)
		return l->stash->retry_ns;
	return first;
}

void loop_rest(struct loop *l)
{
	page_update(l);
	io_flush(l->io);
}

static size_t place(void *cm, uint32_t number, uint8_t **to)
{
	return cm_stream_place(cm, number, to);
}

int loop_init(struct loop *l)
{
	/* Half a megabyte that is hardly ever touched. */
	l->stash = space_get(sizeof(*l->stash));
	if (!l->stash)
		return -ENOMEM;
	if (l->tcp)
		tcp_set_placer(l->tcp, (struct tcp_placer){.place = place, .ctx = l->cm});
	l->requests = requests_new(); /* without, what nobody listens for is refused at once */
	if (l->group)
		l->slot = group_slot(l->group);
	return 0;
}

void loop_fini(struct loop *l)
{
	space_put(l->stash, sizeof(*l->stash));
	requests_free(l->requests);
}
