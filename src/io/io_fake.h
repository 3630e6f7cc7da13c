/* SPDX-License-Identifier: BSD-2-Clause */
/* A back end for tests of wrappers: yields numbered packets, remembers what is sent. Private to src/io. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/byteorder.h"
#include "io/io.h"

enum { FAKE_BYTES_MAX = 2048, FAKE_BURST_MAX = 256 };

struct fake {
	struct io io;
	uint64_t pending;  /* packets that have arrived */
	uint32_t next;     /* number of the next one: the first four bytes of each */
	uint32_t len;      /* of each, at least 4 */
	uint16_t datagram; /* packets that the "kernel" coalesces */
	uint64_t sent;
	uint64_t trains; /* that were sent whole */
	uint32_t *noted; /* the numbers of packets sent; NULL: not noted */
	size_t noted_max;
	unsigned looks;  /* calls of io_recv */
	size_t send_max; /* accepted by one io_send */
	struct flow flow;
	uint8_t data[FAKE_BURST_MAX][FAKE_BYTES_MAX];
};

static size_t fake_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	struct fake *f = (struct fake *)io;
	size_t n = 0;

	f->looks++;
	/* Overwrites what was lent, so that a late read is noticed. */
	memset(f->data, 0xdd, sizeof(f->data));
	for (; n < max && n < FAKE_BURST_MAX && f->pending; n++, f->pending--) {
		memset(f->data[n], 0, f->len);
		put_be32(f->data[n], f->next);
		pkts[n] = (struct pkt){.data = f->data[n],
				       .flow = &f->flow,
				       .len = f->len,
				       .train = (uint16_t)(f->datagram - f->next % f->datagram)};
		f->next++;
	}
	return n;
}

static size_t fake_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	struct fake *f = (struct fake *)io;

	if (n > f->send_max)
		n = f->send_max;
	for (size_t i = 0; i < n; i++) {
		f->trains += pkts[i].train == 1;
		if (f->noted && f->sent + i < f->noted_max)
			f->noted[f->sent + i] = get_be32(pkts[i].data);
	}
	f->sent += n;
	return n;
}

static size_t fake_fds(const struct io *io, int *fds, size_t max)
{
	if (max)
		fds[0] = 42;
	return max > 0;
}

static uint64_t fake_deadline_ns(const struct io *io)
{
	return UINT64_MAX;
}

static size_t fake_train_max(const struct io *io)
{
	return 7;
}

static void fake_flush(struct io *io)
{
}

static void fake_close(struct io *io)
{
	free(io);
}

static const struct io_ops fake_ops = {
	.recv = fake_recv,
	.send = fake_send,
	.fds = fake_fds,
	.deadline_ns = fake_deadline_ns,
	.train_max = fake_train_max,
	.flush = fake_flush,
	.close = fake_close,
};

static inline struct fake *fake_new(uint32_t len)
{
	struct fake *f = calloc(1, sizeof(*f));

	f->io.ops = &fake_ops;
	f->len = len;
	f->datagram = 1;
	f->send_max = SIZE_MAX;
	f->flow.src[10] = f->flow.src[11] = f->flow.dst[10] = f->flow.dst[11] = 0xff;
	f->flow.src[15] = 1;
	f->flow.dst[15] = 2;
	return f;
}
