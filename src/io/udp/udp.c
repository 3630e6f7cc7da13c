/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins the two directions (udp_rx.h, udp_tx.h) into one back end. */
#include "io/udp/udp.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "io/udp/udp_rx.h"
#include "io/udp/udp_tx.h"
#include "space/space.h"

struct udp {
	struct io io;
	struct udp_rx rx;
	struct udp_tx tx;
	bool gro; /* the kernel took that option, by which others are known to be there */
};

static const struct io_ops udp_ops;

static void udp_close(struct io *io)
{
	struct udp *u = (struct udp *)io;

	udp_tx_close(&u->tx);
	udp_rx_close(&u->rx);
	space_put(u, sizeof(*u));
}

int udp_open(struct io **io, const struct udp_config *cfg, char *why, size_t why_bytes)
{
	struct udp *u = space_get(sizeof(*u));
	int err;

	assert(cfg->rx_count <= UDP_RX_SOCKETS_MAX);
	assert(cfg->paths <= UDP_PATHS_MAX);
	if (!u) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	u->io.ops = &udp_ops;
	err = udp_rx_open(&u->rx, cfg);
	if (err < 0) {
		snprintf(why, why_bytes, "out of memory for receive buffers");
		goto free_u;
	}
	u->gro = udp_rx_has_gro(&u->rx);
	err = udp_tx_open(&u->tx, cfg);
	if (err < 0) {
		snprintf(why, why_bytes, "cannot make a UDP socket to send from: %s", strerror(-err));
		goto close;
	}
	*io = &u->io;
	return 0;

close:
	udp_tx_close(&u->tx);
	udp_rx_close(&u->rx);
free_u:
	space_put(u, sizeof(*u));
	return err;
}

void udp_set_gids(struct io *io, const struct io_gid *gids, size_t count)
{
	struct udp_tx *tx = &((struct udp *)io)->tx;

	udp_routes_set_gids(&tx->routes, tx->sockets[UDP_V4][0].fd, gids, count);
}

unsigned udp_paths(const struct io *io)
{
	return ((const struct udp *)io)->tx.paths;
}

unsigned udp_add_paths(struct io *io, unsigned paths)
{
	struct udp_tx *tx = &((struct udp *)io)->tx;

	assert(paths <= UDP_PATHS_MAX);
	udp_tx_add_paths(tx, paths);
	return tx->paths;
}

uint16_t udp_source_port(const struct io *io, enum udp_family family, unsigned path)
{
	const struct udp_tx *tx = &((const struct udp *)io)->tx;

	if (path >= UDP_PATHS_MAX || tx->sockets[family][path].fd < 0)
		return 0;
	return tx->sockets[family][path].port;
}

void udp_leave(struct io *io)
{
	struct udp *u = (struct udp *)io;

	u->rx.socket_count = 0;
	udp_tx_leave(&u->tx);
}

int udp_return(struct io *io, const int *rx_fds, size_t rx_count, char *why, size_t why_bytes)
{
	struct udp *u = (struct udp *)io;
	uint16_t port = 0;
	int err = udp_tx_return(&u->tx, &port);

	assert(rx_count <= UDP_RX_SOCKETS_MAX);
	if (!err)
		udp_rx_take(&u->rx, rx_fds, rx_count);
	else
		snprintf(why, why_bytes, "cannot make a UDP socket to send from port %u again: %s", port,
			 strerror(-err));
	return err;
}

bool udp_heal(struct io *io)
{
	struct udp *u = (struct udp *)io;

	if (!u->gro || !u->rx.socket_count || udp_rx_has_gro(&u->rx))
		return false;
	udp_rx_heal(&u->rx);
	udp_tx_heal(&u->tx);
	return true;
}

size_t udp_rcvbuf_bytes(const struct io *io)
{
	const struct udp_rx *rx = &((const struct udp *)io)->rx;
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < rx->socket_count; i++) {
		int bytes = 0;
		socklen_t len = sizeof(bytes);

		getsockopt(rx->sockets[i].fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len);
		if ((size_t)bytes < least)
			least = (size_t)bytes;
	}
	return rx->socket_count ? least : 0;
}

/* ---- the io contract ---- */

static size_t udp_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	return udp_rx_recv(&((struct udp *)io)->rx, pkts, max, now_ns);
}

static size_t udp_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	return udp_tx_send(&((struct udp *)io)->tx, pkts, n, now_ns);
}

static size_t udp_fds(const struct io *io, int *fds, size_t max)
{
	const struct udp_rx *rx = &((const struct udp *)io)->rx;
	size_t n = 0;

	for (; n < rx->socket_count && n < max; n++)
		fds[n] = rx->sockets[n].fd;
	return n;
}

static uint64_t udp_deadline_ns(const struct io *io)
{
	return UINT64_MAX;
}

static size_t udp_train_max(const struct io *io)
{
	return ((const struct udp *)io)->tx.trains ? PKT_TRAIN_MAX : 1;
}

static void udp_flush(struct io *io)
{
}

static const struct io_ops udp_ops = {
	.recv = udp_recv,
	.send = udp_send,
	.fds = udp_fds,
	.deadline_ns = udp_deadline_ns,
	.train_max = udp_train_max,
	.flush = udp_flush,
	.close = udp_close,
};
