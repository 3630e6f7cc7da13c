/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of an ordinary verbs program with two: a TCP connection to the other end, a device, and a queue pair
 * connected to the other's. It is built against the distribution's libibverbs and does not know
 * which device serves it. Any error ends the program with a line on stderr and status 1.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What travels over TCP before the queue pairs are connected. Both ends are the same program. */
struct hello {
	uint32_t qpn, psn, rkey, mtu;
	uint64_t addr;
	union ibv_gid gid;
};

struct end {
	/* Set by the program's options. */
	const char *host; /* of the server; NULL: this is the server */
	int port, gid;

	int tcp; /* to the other end; a program may set a socket of its own before end_connect(); 0: it opens one */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct hello mine, theirs; /* the program sets addr and rkey of its own */
};

extern struct end end;

void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#define CHECK(cond, ...)                  \
	do {                              \
		if (!(cond))              \
			die(__VA_ARGS__); \
	} while (0)

double now_s(void);
uint64_t mix(uint64_t);
/* The next number of a sequence, whose state it moves. */
uint64_t draw(uint64_t *state);

/* The TCP connection to the other end. */
void end_open_tcp(void);
/* The first device, its port and GID, and a PD. */
void end_open(void);
/* A queue pair in INIT. Borrows init, whose CQs are end.cq. */
void end_create_qp(struct ibv_qp_init_attr *init, int access);
/* Connects to the other end by TCP, exchanges hellos, and brings the queue pair to RTS. Returns the way to the peer. */
struct ibv_ah_attr end_connect(uint8_t timeout, uint8_t retries);
/* Both ends have come to the same point, which the number names. */
void end_meet(uint32_t where);
/* Destroys what is above, and the channel of the CQ, which may be NULL. */
void end_close(struct ibv_comp_channel *);
