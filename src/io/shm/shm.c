/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves packets through rings. Looking into a ring costs a cache line and a look at the sockets a system call, so while
 * packets come through memory the sockets are looked at now and then only. Before the caller sleeps (flush) every ring
 * is told so; from then on the first packet put rings the bell, and packets that came in between make deadline_ns() say
 * that there is no time to sleep.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "io/fd_away.h"
#include "io/shm/shm_state.h"
#include "io/uncancelled.h"
#include "space/space.h"

enum {
	RECORD_BYTES_MAX = 16 << 10, /* of several packets: what one end copies while the other
					copies the one before */
	QPN_AT = 5,                  /* in a BTH */
	BTH_BYTES = 12,
	SERVICE_UD = 3,          /* the opcode's highest 3 bits */
	LOWER_NS = 50000,        /* the sockets are looked at this often while packets come through memory, */
	LOWER_IDLE_NS = 20000,   /* this often when none have come for a moment, */
	LOWER_QUIET_NS = 320000, /* this often if in QUIET_NS nothing was sent there, and nothing came, */
	QUIET_NS = 10000000,
	BUSY_NS = 1000000, /* and always after so long without packets through memory */
	DRAIN_LOOKS = 40,  /* vain looks after which the sockets hold nothing that is older than a ring */
	DRAIN_LOOKS_MAX = 1000,
	BELLS_MAX = 16,     /* taken at a time */
	AHEAD_BYTES = 2048, /* descriptions of 2 MiB, which take longer to read than a thread takes to wake and to send
			       more */
	VAIN_BELLS_MAX = 1000 /* in a row, from a peer that puts nothing */
};

static const struct io_ops shm_ops;

static struct shm *of(struct io *io)
{
	assert(io->ops == &shm_ops);
	return (struct shm *)io;
}

int shm_open_io(struct io **io, struct io *lower, const struct shm_config *config)
{
	struct shm *s = space_get(sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->mark = shm_mark_new();
	s->epoll_fd = fd_away(epoll_create1(EPOLL_CLOEXEC));
	if (!s->mark || s->epoll_fd < 0) {
		int err = -errno;

		shm_close_fd(&s->epoll_fd);
		shm_mark_free(s->mark);
		space_put(s, sizeof(*s));
		return err;
	}
	s->io.ops = &shm_ops;
	s->lower = lower;
	s->pid = getpid();
	s->config = *config;
	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		s->in[i].bell = -1;
		s->out[i].bell = s->out[i].memory_fd = -1;
	}
	*io = &s->io;
	return 0;
}

void shm_set_placer(struct io *io, struct shm_placer placer)
{
	of(io)->placer = placer;
}

static bool is_own_address(const struct shm *s, const uint8_t gid[16])
{
	for (size_t i = 0; i < s->config.address_count; i++) {
		if (!memcmp(s->config.addresses[i], gid, 16))
			return true;
	}
	return false;
}

static bool is_within_host(const struct shm *s, const struct flow *f)
{
	return is_own_address(s, f->src) && is_own_address(s, f->dst);
}

/* The next train to each ring brings its flow along, so that its taker judges it anew. Rings from others are judged
 * here. */
void shm_set_addresses(struct io *io, const uint8_t (*addresses)[16], size_t count)
{
	struct shm *s = of(io);

	assert(count <= SHM_ADDRESSES_MAX);
	memcpy(s->config.addresses, addresses, count * sizeof(addresses[0]));
	s->config.address_count = count;
	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		s->out[i].putter.has_flow = false;
		s->in[i].foreign = s->in[i].taker.has_flow && !is_within_host(s, &s->in[i].taker.flow);
	}
}

/* ---- send ---- */

int shm_next_wanted(struct io *io)
{
	struct shm *s = of(io);

	for (unsigned i = 0; i < 2; i++) {
		if (s->wanted[i]) {
			unsigned bit = (unsigned)__builtin_ctzll(s->wanted[i]);

			s->wanted[i] &= s->wanted[i] - 1;
			return (int)(i * 64 + bit);
		}
	}
	return -1;
}

/* The ring that a train takes, or NULL. */
static struct ring_out *ring_of(struct shm *s, const struct pkt *p, uint64_t now_ns)
{
	const uint8_t *qpn = p->data + QPN_AT;
	struct ring_out *r;
	unsigned slot;

	/* QPN 1 is every process's, and the last slot holds the multicast QPN. */
	if (p->len < BTH_BYTES || qpn[0] >> 1 >= SHM_SLOTS || (!qpn[0] && !qpn[1] && qpn[2] <= 1))
		return NULL;
	slot = qpn[0] >> 1;
	r = &s->out[slot];
	if (!r->memory) {
		if (now_ns >= r->again_ns && is_within_host(s, p->flow))
			s->wanted[slot / 64] |= UINT64_C(1) << slot % 64;
		return NULL;
	}
	if (!shm_is_accepted(&r->putter))
		return NULL;
	if (r->putter.has_flow && !memcmp(&r->putter.flow, p->flow, sizeof(*p->flow)))
		return r;
	if (!is_within_host(s, p->flow))
		return NULL;
	s->reach.slots[slot / 64] |= UINT64_C(1) << slot % 64;
	if (shm_is_read(&r->putter))
		s->reach.readers[slot / 64] |= UINT64_C(1) << slot % 64;
	shm_note_change(s, slot);
	return r;
}

static void wake(struct ring_out *r)
{
	static const uint64_t one = 1;

	if (r->memory && shm_wakes(&r->putter) && r->bell >= 0 && uncancelled_write(r->bell, &one, sizeof(one)) < 0) {
		/* EAGAIN: it has been rung often enough. */
	}
}

/*
 * Whether a process that sleeps has sent so much that is still to be taken that it need not be woken yet: it fills the
 * ring again while the rest is taken. Each time costs a system call, and a peer that reads long messages would make one
 * for each.
 */
static bool is_ahead(const struct shm *s, unsigned slot)
{
	const struct ring_in *r = &s->in[slot];

	return r->memory && r->begun && shm_unread(&r->taker) >= AHEAD_BYTES;
}

static void publish(struct shm *s, struct ring_out *r)
{
	unsigned slot = (unsigned)(r - s->out);

	r->dirty = false;
	if (!shm_publish(&r->putter))
		return;
	if (is_ahead(s, slot))
		s->owed[slot / 64] |= UINT64_C(1) << slot % 64;
	else
		wake(r);
}

/* Wakes the process with that slot, if that waited until it is not ahead any more. */
static void wake_owed(struct shm *s, unsigned slot)
{
	uint64_t bit = UINT64_C(1) << slot % 64;

	if (!(s->owed[slot / 64] & bit) || is_ahead(s, slot))
		return;
	s->owed[slot / 64] &= ~bit;
	wake(&s->out[slot]);
}

/* This process sleeps, too, or takes nothing more. */
static void wake_all_owed(struct shm *s)
{
	for (unsigned i = 0; i < 2; i++) {
		for (; s->owed[i]; s->owed[i] &= s->owed[i] - 1)
			wake(&s->out[i * 64 + (unsigned)__builtin_ctzll(s->owed[i])]);
	}
}

static uint32_t train_bytes(const struct pkt *p, size_t packets)
{
	return p[0].len * (uint32_t)(packets - 1) + p[packets - 1].len;
}

static size_t train_of(const struct pkt *p, size_t n)
{
	size_t packets = p->train > 1 ? p->train : 1;

	return packets < n ? packets : n;
}

/* How many packets of a train fit in one record of their kind. */
static size_t record_of(const struct pkt *p, size_t packets)
{
	size_t most, n = 1;

	if (packets == 1)
		return 1;
	most = p->far_at ? PKT_TRAIN_MAX : RECORD_BYTES_MAX / p->len + 1;
	while (n < packets && n < most && !p[n].far_at == !p->far_at)
		n++;
	return n;
}

/* Puts some packets of a train, in one record. Returns their number; 0: there is no room. */
static size_t put_some(struct shm *s, struct ring_out *r, const struct pkt *p, size_t packets, uint64_t now_ns)
{
	struct io_counters *c = s->config.counters;
	struct shm_train t = {.segment = p->len, .first = (uint8_t)p->ip_id, .far = p->far_at};
	const uint8_t *data = p->data;
	size_t n = record_of(p, packets);

	if (t.far && !shm_is_read(&r->putter)) {
		unsigned slot = (unsigned)(r - s->out);

		/* It says so when it cannot, at any time. These are lost, and come again whole. */
		s->reach.readers[slot / 64] &= ~(UINT64_C(1) << slot % 64);
		shm_note_change(s, slot);
		c->shm_dropped += n;
		return n;
	}
	if (t.far) {
		n = shm_far_describe(s->description.packets, p, n, &t.len, &s->description.lot);
		t.len += SHM_FAR_HEAD_BYTES;
		data = (const uint8_t *)&s->description;
	} else {
		t.len = train_bytes(p, n);
	}
	switch (shm_put(&r->putter, p->flow, data, &t)) {
	case SHM_DONE:
		r->dirty = true;
		c->shm_tx_packets += n;
		c->shm_tx_bytes += train_bytes(p, n);
		c->shm_tx_far += t.far ? n : 0;
		if (t.far)
			shm_lend(s, r, p, n);
		return n;
	case SHM_NO_ROOM: return 0;
	default:
		c->shm_broken++;
		shm_lose(&s->io, (unsigned)(r - s->out), now_ns);
		return packets;
	}
}

/* Keeps packets of a train until the ring has room. */
static __attribute__((cold)) void keep(struct shm *s, struct ring_out *r, const struct pkt *p, size_t packets,
				       uint64_t now_ns)
{
	unsigned slot = (unsigned)(r - s->out);
	uint64_t bit = UINT64_C(1) << slot % 64;

	if (!(s->reach.full[slot / 64] & bit)) {
		s->reach.full[slot / 64] |= bit;
		shm_note_change(s, slot);
		s->retry_wait_ns = SHM_RETRY_NS_MIN;
		s->retry_ns = now_ns + s->retry_wait_ns;
		s->config.counters->shm_full++;
	}
	if (!shm_spill_add(r->spill, p, packets, p->data[0] >> 5 == SERVICE_UD))
		s->config.counters->shm_dropped += packets;
}

/* Takes all packets of a train, in pieces. */
static void put_train(struct shm *s, struct ring_out *r, const struct pkt *p, size_t packets, uint64_t now_ns)
{
	size_t done = 0, n;

	while (shm_spill_is_empty(r->spill)) {
		n = put_some(s, r, p + done, packets - done, now_ns);
		done += n;
		if (done == packets)
			return;
		publish(s, r);
		if (!n)
			break;
	}
	keep(s, r, p + done, packets - done, now_ns);
}

/* Puts what was kept. True: something moved. */
static bool put_kept(struct shm *s, struct ring_out *r, uint64_t now_ns)
{
	struct pkt p[PKT_TRAIN_MAX];
	bool moved = false;
	size_t packets, n;

	while (r->memory && (packets = shm_spill_look(r->spill, p))) {
		n = put_some(s, r, p, packets, now_ns);
		/* A ring that was lost has lost them. */
		if (!n || !r->memory)
			break;
		shm_spill_drop(r->spill, n);
		moved = true;
	}
	if (r->dirty)
		publish(s, r);
	return moved;
}

static void serve_full(struct shm *s, uint64_t now_ns)
{
	bool moved = false;

	for (unsigned i = 0; i < 2; i++) {
		for (uint64_t left = s->reach.full[i]; left; left &= left - 1) {
			unsigned slot = i * 64 + (unsigned)__builtin_ctzll(left);
			struct ring_out *r = &s->out[slot];

			moved |= put_kept(s, r, now_ns);
			/* Half of it, so that not each train that is taken starts and stops the sender. */
			if (!r->memory || !shm_spill_is_empty(r->spill) || !shm_is_half_free(&r->putter))
				continue;
			s->reach.full[i] &= ~(UINT64_C(1) << slot % 64);
			shm_note_change(s, slot);
			moved = true;
		}
	}
	if (moved)
		s->retry_wait_ns = SHM_RETRY_NS_MIN;
	else if (now_ns < s->retry_ns)
		return;
	else if (s->retry_wait_ns < SHM_RETRY_NS_MAX)
		s->retry_wait_ns *= 2;
	s->retry_ns = now_ns + s->retry_wait_ns;
}

static bool some_full(const struct shm *s)
{
	return s->reach.full[0] | s->reach.full[1];
}

bool shm_turn(struct io *io, uint64_t now_ns)
{
	struct shm *s = of(io);

	if (__builtin_expect(some_full(s), false))
		serve_full(s, now_ns);
	return s->changed[0] | s->changed[1];
}

bool shm_next_change(struct io *io, struct shm_peer *p)
{
	struct shm *s = of(io);

	for (unsigned i = 0; i < 2; i++) {
		unsigned bit = s->changed[i] ? (unsigned)__builtin_ctzll(s->changed[i]) : 0;

		if (!s->changed[i])
			continue;
		s->changed[i] &= s->changed[i] - 1;
		*p = (struct shm_peer){.slot = i * 64 + bit,
				       .reached = s->reach.slots[i] >> bit & 1,
				       .reads = s->reach.readers[i] >> bit & 1,
				       .full = s->reach.full[i] >> bit & 1,
				       .loan = &s->loans[i * 64 + bit]};
		return true;
	}
	return false;
}

/* There was a ring when they were made, and its process would have read the rest. */
static bool are_whole(const struct pkt *p, size_t packets)
{
	for (size_t i = 0; i < packets; i++) {
		if (p[i].far_at)
			return false;
	}
	return true;
}

/* Sends the packets from `from` on below, as far as no ring takes them; *to is set behind them. */
static __attribute__((noinline)) size_t send_below(struct shm *s, const struct pkt *pkts, size_t from, size_t n,
						   uint64_t now_ns, size_t *to)
{
	size_t end = from;

	do {
		end += train_of(&pkts[end], n - end);
	} while (end < n && !ring_of(s, &pkts[end], now_ns) && are_whole(&pkts[end], train_of(&pkts[end], n - end)));
	*to = end;
	s->below_ns = now_ns;
	return io_send(s->lower, pkts + from, end - from, now_ns);
}

static size_t shm_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	struct shm *s = of(io);
	struct ring_out *last = NULL;
	size_t done = 0;

	while (done < n) {
		struct ring_out *r = ring_of(s, &pkts[done], now_ns);
		size_t packets, to, sent;

		if (last && last != r && last->dirty)
			publish(s, last);
		last = r;
		packets = train_of(&pkts[done], n - done);
		if (!r && !are_whole(&pkts[done], packets)) {
			s->config.counters->shm_dropped += packets;
			done += packets;
			continue;
		}
		if (!r) {
			sent = send_below(s, pkts, done, n, now_ns, &to);
			done += sent;
			if (done < to)
				return done;
			continue;
		}
		put_train(s, r, &pkts[done], packets, now_ns);
		done += packets;
	}
	if (last && last->dirty)
		publish(s, last);
	return done;
}

bool shm_has_all(const struct io *io, uint64_t now_ns)
{
	const struct shm *s = (const struct shm *)io;

	return now_ns - s->came_ns < QUIET_NS && now_ns - s->below_ns >= QUIET_NS;
}

size_t shm_kept(const struct io *io)
{
	const struct shm *s = (const struct shm *)io;
	size_t n = 0;

	for (unsigned i = 0; i < 2; i++) {
		for (uint64_t left = s->reach.full[i]; left; left &= left - 1)
			n += shm_spill_packets(s->out[i * 64 + (unsigned)__builtin_ctzll(left)].spill);
	}
	return n;
}

enum shm_sight shm_look_at(struct io *io, unsigned slot)
{
	struct ring_out *r = &of(io)->out[slot];
	uint32_t before = r->seen;

	if (!r->memory)
		return SHM_UNSEEN;
	if (!shm_is_accepted(&r->putter))
		return SHM_WAITS;
	r->seen = shm_taken_up_to(&r->putter);
	return r->seen != before || shm_is_empty(&r->putter) ? SHM_RAN : SHM_WAITS;
}

/* ---- receive ---- */

static __attribute__((cold)) void give_up(struct shm *s, unsigned slot)
{
	s->config.counters->shm_broken++;
	shm_free_in(s, slot);
}

/* A train for another slot, or from another host, is not this process's to judge. */
static bool is_for_us(const struct shm *s, const uint8_t *data, uint32_t segment)
{
	return segment >= BTH_BYTES && data[QPN_AT] >> 1 == s->config.slot;
}

/* Hands out packets of the train at hand. */
static size_t hand_out(struct shm *s, struct pkt *pkts, size_t n, size_t max)
{
	for (; s->left && n < max; n++) {
		uint32_t take = s->left < s->segment ? s->left : s->segment;

		pkts[n] = (struct pkt){.data = (uint8_t *)s->at,
				       .flow = s->flow,
				       .len = take,
				       .ip_id = (uint16_t)s->index++,
				       .train = s->packets--};
		s->at += take;
		s->left -= take;
	}
	return n;
}

/* Takes the next train of a ring into the buffer. SHM_DONE with nothing at hand: it was dropped. */
static enum shm_verdict take_train(struct shm *s, struct ring_in *r, bool *far)
{
	struct io_counters *c = s->config.counters;
	struct shm_train t;
	uint8_t *to = s->buffer + s->used;
	enum shm_verdict v = shm_take(&r->taker, to, SHM_PLACED_BYTES - s->used, &t);

	if (v != SHM_DONE)
		return v;
	/* Its flow is the peer's word, too; but who has heard of an address before us is no liar. */
	if (t.new_flow)
		r->foreign = !is_within_host(s, &r->taker.flow);
	r->taker.flow.neighbour = (uint8_t)(1 + (r - s->in));
	if (t.far && !shm_lay_out(s, &t, to))
		return SHM_BAD;
	if (r->foreign || !is_for_us(s, to, t.segment)) {
		if (t.far)
			shm_forget_last(s);
		c->shm_dropped++;
		return v;
	}
	if (t.new_flow || !s->flow_count || memcmp(&s->flows[s->flow_count - 1], &r->taker.flow, sizeof(struct flow)))
		s->flows[s->flow_count++] = r->taker.flow;
	s->flow = &s->flows[s->flow_count - 1];
	s->at = to;
	s->left = t.len;
	s->segment = t.segment;
	s->packets = t.len <= t.segment ? 1 : (uint16_t)((t.len + t.segment - 1) / t.segment);
	s->index = t.first;
	s->used += (t.len + 63) & ~63u;
	if (s->used > SHM_PLACED_BYTES)
		s->used = SHM_PLACED_BYTES;
	c->shm_rx_bytes += t.len;
	*far = t.far;
	return v;
}

/* Whether one more train has room in the buffer, and among those that lack something. */
static bool has_room(const struct shm *s)
{
	uint32_t most = s->placing && s->placed ? SHM_PLACED_BYTES : SHM_BUFFER_BYTES;

	return s->flow_count < SHM_FLOWS_MAX && s->used + PKT_TRAIN_BYTES_MAX <= most &&
	       s->far_count < SHM_FAR_TRAINS_MAX && s->far.here_count + PKT_TRAIN_MAX <= SHM_FAR_PIECES_MAX;
}

/*
 * Whether what comes next waits for the next call. Payload that may have a place is asked for once the nic has what
 * comes before: the end of a row, or packets that do not pass. Otherwise it would be copied. `taken`: something came
 * from this ring already, so that no other ring can keep it waiting for ever.
 */
static bool stops(const struct shm *s, const struct ring_in *r, bool taken)
{
	return taken && !s->placing && s->placer.place && (s->placed || !s->far_count) && shm_next_is_far(&r->taker);
}

static size_t drain(struct shm *s, unsigned slot, struct pkt *pkts, size_t n, size_t max)
{
	struct ring_in *r = &s->in[slot];
	enum shm_verdict v = SHM_DONE;
	const size_t before = n;
	size_t unasked = n;
	uint32_t trains = 0;

	s->far_count = s->far.here_count = s->far.there_count = s->placed = 0;
	s->placing = s->placer.place && !n;
	s->asked = false;
	/* More records than a ring holds are those of a ring that a hostile process has filled all around: it would
	 * never be empty. */
	while (v == SHM_DONE && n < max && trains < SHM_RECORDS_MAX && has_room(s)) {
		bool far = false;
		size_t first = n;

		if (s->placing && shm_next_is_far(&r->taker)) {
			shm_ask_for_places(s, pkts, unasked, n, n);
			unasked = n;
		}
		if (stops(s, r, n > before))
			break;
		v = take_train(s, r, &far);
		if (v != SHM_DONE)
			break;
		trains++;
		n = hand_out(s, pkts, n, max);
		if (far) {
			s->far_trains[s->far_count].packet = first;
			s->far_trains[s->far_count++].packets_end = n;
			/* The peer may have said until now that it is not far. */
			shm_ask_for_places(s, pkts, unasked, first, n);
			unasked = n;
		}
		/* Whoever finds the ring empty takes its memory for read. */
		if (!s->far_count)
			shm_release(&r->taker);
	}
	wake_owed(s, slot);
	if (s->far_count)
		n = shm_fetch(s, r, pkts, n);
	if (v == SHM_BAD) {
		give_up(s, slot);
		return n;
	}
	shm_release(&r->taker);
	r->vain_bells = 0;
	r->ended += r->ending ? trains : 0;
	if (r->ending && (!shm_has_some(&r->taker) || r->ended > SHM_RECORDS_MAX))
		shm_free_in(s, slot);
	return n;
}

static size_t take_from_rings(struct shm *s, struct pkt *pkts, size_t max)
{
	size_t n = hand_out(s, pkts, 0, max);

	if (n)
		return n;
	s->used = s->flow_count = 0;
	for (unsigned i = s->live_count; i-- > 0 && n < max && !s->left;) {
		unsigned slot;

		s->turn = s->turn < s->live_count ? s->turn : 0;
		slot = s->live[s->turn++];
		if (s->in[slot].begun && shm_has_some(&s->in[slot].taker))
			n = drain(s, slot, pkts, n, max);
	}
	return n;
}

/*
 * A ring with its first packets waits until the sockets are empty: what its peer sent there before is older. True:
 * there is such a ring.
 */
static bool wait_for_older(struct shm *s, bool came)
{
	bool waits = false;

	for (unsigned i = 0; i < s->live_count; i++) {
		struct ring_in *r = &s->in[s->live[i]];

		if (r->begun || !shm_has_some(&r->taker))
			continue;
		r->vain = came ? 0 : r->vain + 1;
		r->begun = r->vain == DRAIN_LOOKS || ++r->looks == DRAIN_LOOKS_MAX;
		waits |= !r->begun;
	}
	return waits;
}

static bool some_waits(const struct shm *s)
{
	for (unsigned i = 0; i < s->live_count; i++) {
		const struct ring_in *r = &s->in[s->live[i]];

		if (!r->begun && shm_has_some(&r->taker))
			return true;
	}
	return false;
}

static bool may_skip_lower(const struct shm *s, bool came, uint64_t now_ns)
{
	bool quiet = now_ns - s->below_ns >= QUIET_NS;
	uint64_t wait_ns = quiet ? LOWER_QUIET_NS : came ? LOWER_NS : LOWER_IDLE_NS;

	return (came || now_ns - s->came_ns < BUSY_NS) && now_ns - s->looked_ns < wait_ns;
}

static size_t look_below(struct shm *s, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	size_t n = io_recv(s->lower, pkts, max, now_ns);

	s->looked_ns = now_ns;
	if (n)
		s->below_ns = now_ns;
	return n;
}

static size_t shm_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	struct shm *s = of(io);
	size_t n = 0, below;
	bool helped;

	if (!s->live_count && !s->left)
		return io_recv(s->lower, pkts, max, now_ns);
	if (max && some_waits(s)) {
		do {
			below = look_below(s, pkts, max, now_ns);
		} while (wait_for_older(s, below) && !below);
		return below;
	}
	n = take_from_rings(s, pkts, max);
	s->config.counters->shm_rx_packets += n;
	if (n)
		s->came_ns = now_ns;
	helped = !n && shm_help(s);
	if (n == max || may_skip_lower(s, n || helped, now_ns))
		return n;
	return n + look_below(s, pkts + n, max - n, now_ns);
}

/* ---- sleep ---- */

static size_t shm_fds(const struct io *io, int *fds, size_t max)
{
	const struct shm *s = (const struct shm *)io;
	size_t n = io_fds(s->lower, fds, max);

	if (n < max)
		fds[n++] = s->epoll_fd;
	return n;
}

static uint64_t shm_deadline_ns(const struct io *io)
{
	const struct shm *s = (const struct shm *)io;

	uint64_t lower;

	if (s->left)
		return 0;
	for (unsigned i = 0; i < s->live_count; i++) {
		if (shm_has_some(&s->in[s->live[i]].taker))
			return 0;
	}
	lower = io_deadline_ns(s->lower);
	return some_full(s) && s->retry_ns < lower ? s->retry_ns : lower;
}

static size_t shm_train_max(const struct io *io)
{
	return io_train_max(((const struct shm *)io)->lower);
}

static void hear_bells(struct shm *s)
{
	struct epoll_event ev[BELLS_MAX];
	int n = epoll_wait(s->epoll_fd, ev, BELLS_MAX, 0);
	uint64_t junk;

	for (int i = 0; i < n; i++) {
		unsigned slot = ev[i].data.u32;
		struct ring_in *r = &s->in[slot];

		if (read(r->bell, &junk, sizeof(junk)) < 0 || ++r->vain_bells == VAIN_BELLS_MAX)
			give_up(s, slot);
	}
}

static void shm_flush(struct io *io)
{
	struct shm *s = of(io);

	wake_all_owed(s);
	if (s->live_count)
		hear_bells(s);
	for (unsigned i = 0; i < s->live_count; i++)
		shm_sleep(&s->in[s->live[i]].taker);
	io_flush(s->lower);
}

static void shm_close(struct io *io)
{
	struct shm *s = of(io);

	/* After a fork the instance is the parent's, too, and what is taken out of it is missing there: it is only
	 * closed. */
	shm_close_fd(&s->epoll_fd);
	for (unsigned i = 0; i < SHM_SLOTS; i++) {
		shm_free_in(s, i);
		shm_free_out(s, i);
	}
	io_close(s->lower);
	shm_mark_free(s->mark);
	space_put(s, sizeof(*s));
}

static const struct io_ops shm_ops = {
	.recv = shm_recv,
	.send = shm_send,
	.fds = shm_fds,
	.deadline_ns = shm_deadline_ns,
	.train_max = shm_train_max,
	.flush = shm_flush,
	.close = shm_close,
};
