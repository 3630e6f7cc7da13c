/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings between the two hosts. Each host has the wrapper of io/shm/shm.h, around a back end that is the channel. What the
 * engine does for a process is done here for a host: neighbours_look() before output, the places of payload, what is
 * taken back, and sleep.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "duo/duo_channel.h"
#include "engine/neighbours.h"
#include "io/shm/shm_state.h"

enum {
	BATCH_MAX = 64,
	LOOK_NS_MAX = 2000, /* between two looks of a poller */
	SLEEPS_OF = 4,      /* a host that has found nothing sleeps once in so many times */
	RING_BYTES_MAX = 4 << 20
};

/* A host's end. */
struct near {
	struct io channel; /* the back end below */
	struct duo_host *host;
	struct io *io;    /* the rings, around it */
	struct loop loop; /* as much of it as neighbours_look() uses */
	struct io_counters counters;
	struct duo_flight *inbox; /* what came by the channel: first .. count - 1 were not taken yet */
	size_t first, count, room, lent;
	uint64_t look_ns;
	bool asleep;
};

struct duo_rings {
	struct near ends[DUO_SIDES];
	struct prng prng;
};

static struct near *end_of(const struct duo_host *h)
{
	return &h->duo->rings->ends[h->side];
}

static struct duo_host *peer_of(const struct duo_host *h)
{
	return &h->duo->host[!h->side];
}

/* ---- the back end below ---- */

static size_t channel_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	struct near *e = (struct near *)io;
	size_t n = 0;

	(void)now_ns;
	while (e->lent)
		free(e->inbox[e->first - e->lent--].data);
	if (e->first == e->count)
		e->first = e->count = 0;
	for (; n < max && e->first < e->count; n++, e->first++, e->lent++) {
		const struct duo_flight *f = &e->inbox[e->first];

		pkts[n] = (struct pkt){.data = f->data, .flow = &f->flow, .len = f->len, .ip_id = 0xdead, .train = 1};
	}
	return n;
}

static size_t channel_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	const struct near *e = (const struct near *)io;

	(void)now_ns;
	for (size_t i = 0; i < n; i++)
		duo_transmit(e->host->duo, e->host->side, &pkts[i]);
	return n;
}

static size_t channel_fds(const struct io *io, int *fds, size_t max)
{
	(void)io;
	(void)fds;
	(void)max;
	return 0;
}

static uint64_t channel_deadline_ns(const struct io *io)
{
	(void)io;
	return UINT64_MAX;
}

static size_t channel_train_max(const struct io *io)
{
	(void)io;
	return PKT_TRAIN_MAX;
}

static void channel_flush(struct io *io)
{
	(void)io;
}

static void channel_close(struct io *io)
{
	struct near *e = (struct near *)io;

	for (size_t i = e->first - e->lent; i < e->count; i++)
		free(e->inbox[i].data);
	free(e->inbox);
}

static const struct io_ops channel_ops = {
	.recv = channel_recv,
	.send = channel_send,
	.fds = channel_fds,
	.deadline_ns = channel_deadline_ns,
	.train_max = channel_train_max,
	.flush = channel_flush,
	.close = channel_close,
};

/* ---- set-up ---- */

static size_t place(void *ctx, const struct pkt *pkts, size_t n, bool begins, uint8_t **spots)
{
	struct duo_host *h = ctx;
	size_t known = nic_place(h->nic, pkts, n, begins, spots);

	for (size_t i = 0; i < known; i++)
		h->duo->placed += spots[i] != NULL;
	return known;
}

static void open_end(struct duo_host *h)
{
	struct near *e = end_of(h);
	struct shm_config c = {.slot = h->slot, .bytes_max = RING_BYTES_MAX, .counters = &e->counters};

	for (int s = 0; s < DUO_SIDES; s++) {
		for (int g = 0; g < DUO_GIDS; g++)
			memcpy(c.addresses[c.address_count++], h->duo->host[s].gids[g].raw, 16);
	}
	e->channel.ops = &channel_ops;
	e->host = h;
	DUO_CHECK(h->duo, !shm_open_io(&e->io, &e->channel, &c));
	e->loop.nic = h->nic;
	e->loop.shm = e->io;
	shm_set_placer(e->io, (struct shm_placer){.place = place, .ctx = h});
}

void duo_rings_open(struct duo *d)
{
	d->rings = calloc(1, sizeof(*d->rings));
	if (!d->rings)
		abort();
	prng_init(&d->rings->prng, d->seed ^ 0x4165);
	open_end(&d->host[DUO_A]);
	open_end(&d->host[DUO_B]);
}

void duo_rings_close(struct duo *d)
{
	for (int s = 0; s < DUO_SIDES; s++)
		io_close(d->rings->ends[s].io);
	free(d->rings);
	d->rings = NULL;
}

/* ---- rings come and go ---- */

void duo_ring_make(struct duo_host *from, bool reads)
{
	struct duo_host *to = peer_of(from);
	struct duo *d = from->duo;
	int lent[2], fds[2];

	duo_ring_lose(from);
	DUO_CHECK(d, !shm_make(end_of(from)->io, to->slot, d->now_ns, lent));
	fds[0] = dup(lent[0]);
	fds[1] = dup(lent[1]);
	/* Process 0 is nobody, so reading it fails as it does where the kernel forbids it. */
	DUO_CHECK(d, !shm_take_ring(end_of(to)->io, from->slot, reads ? getpid() : 0, fds));
	/* It is awake when it gets one, and has told nobody of this one that it sleeps. */
	end_of(to)->asleep = false;
}

bool duo_ring_lose(struct duo_host *from)
{
	unsigned slot = peer_of(from)->slot;
	struct near *e = end_of(from);

	if (!shm_reaches(e->io, slot))
		return false;
	shm_lose(e->io, slot, from->duo->now_ns);
	return true;
}

void duo_ring_end(struct duo_host *from)
{
	shm_end_ring(end_of(peer_of(from))->io, from->slot);
}

void duo_ring_blind(struct duo_host *from)
{
	((struct shm *)end_of(peer_of(from))->io)->in[from->slot].process.pid = 0;
}

const struct io_counters *duo_ring_counters(const struct duo_host *h)
{
	return &end_of(h)->counters;
}

/* ---- packets ---- */

void duo_rings_look(struct duo_host *h)
{
	int slot;

	neighbours_look(&end_of(h)->loop, h->duo->now_ns);
	/* The other host lives, and it runs unless it was stopped. */
	while ((slot = nic_next_doubt(h->nic)) >= 0)
		nic_peer_lives(h->nic, (uint32_t)slot, !duo_is_stopped(peer_of(h)), h->duo->now_ns);
}

void duo_rings_send(struct duo_host *h, const struct pkt *burst, size_t n)
{
	DUO_CHECK(h->duo, io_send(end_of(h)->io, burst, n, h->duo->now_ns) == n);
	/* The caller says when there are rings. */
	while (shm_next_wanted(end_of(h)->io) >= 0)
		;
}

static bool is_woken(const struct near *e)
{
	int fds[IO_FDS_MAX];
	struct pollfd p = {.events = POLLIN};

	DUO_CHECK(e->host->duo, io_fds(e->io, fds, IO_FDS_MAX) == 1);
	p.fd = fds[0];
	return poll(&p, 1, 0) == 1;
}

/* Whether the other host knows that this one sleeps, and wakes it later. */
static bool is_owed(const struct near *e)
{
	const struct shm *peer = (const struct shm *)end_of(peer_of(e->host))->io;

	return peer->owed[e->host->slot / 64] >> e->host->slot % 64 & 1;
}

/* A sleeper that has something in a ring is woken, or it would sleep for ever. */
static void check_sleep(const struct near *e)
{
	DUO_CHECK(e->host->duo, !e->asleep || io_deadline_ns(e->io) || is_owed(e) || is_woken(e));
}

static void take(struct near *e)
{
	struct duo *d = e->host->duo;
	size_t max = d->batch < BATCH_MAX ? d->batch : BATCH_MAX, n;
	struct pkt pkts[BATCH_MAX];

	e->asleep = false;
	n = io_recv(e->io, pkts, max, d->now_ns);
	for (size_t i = 0; i < n; i++)
		duo_trace(d, pkts[i].data, BTH_LEN);
	nic_input(e->host->nic, pkts, n, d->now_ns);
	e->look_ns = d->now_ns + 1 + prng_below(&d->rings->prng, LOOK_NS_MAX);
	if (n || e->first < e->count || prng_below(&d->rings->prng, SLEEPS_OF))
		return;
	io_flush(e->io);
	e->asleep = io_deadline_ns(e->io) > d->now_ns;
}

static void arrive(struct duo *d)
{
	struct duo_flight f;

	while (duo_land(d, d->now_ns, &f)) {
		struct duo_host *to = duo_addressee(d, &f.flow);
		struct near *e = to ? end_of(to) : NULL;

		if (!e) {
			free(f.data);
			continue;
		}
		if (e->count == e->room) {
			e->room = e->room ? e->room * 2 : BATCH_MAX;
			e->inbox = realloc(e->inbox, e->room * sizeof(f));
			if (!e->inbox)
				abort();
		}
		e->inbox[e->count++] = f;
	}
}

static uint64_t look_ns(const struct near *e)
{
	uint64_t due_ns;

	if (duo_is_stopped(e->host))
		return UINT64_MAX;
	if (e->first < e->count)
		return e->look_ns;
	due_ns = io_deadline_ns(e->io);
	if (!due_ns && e->asleep && !is_woken(e))
		return UINT64_MAX;
	return due_ns < e->look_ns ? e->look_ns : due_ns;
}

void duo_rings_happen(struct duo *d)
{
	arrive(d);
	for (int s = 0; s < DUO_SIDES; s++) {
		struct near *e = &d->rings->ends[s];

		check_sleep(e);
		if (look_ns(e) <= d->now_ns)
			take(e);
	}
}

uint64_t duo_rings_next_ns(struct duo *d)
{
	uint64_t a = look_ns(&d->rings->ends[DUO_A]), b = look_ns(&d->rings->ends[DUO_B]);

	return a < b ? a : b;
}
