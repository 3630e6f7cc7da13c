/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between a program that runs in simulated time and the simulator that it runs in: messages over a socket pair
 * (SOCK_SEQPACKET), and a page of memory with the time. Both ends are of one build on one host, so numbers have the
 * host's form; but a program may write anything, so the simulator judges what it receives.
 *
 *     program                         simulator
 *        JOIN, with its pid  ------->            the program's engine starts
 *                            <-------  WELCOME   with the seed of its random numbers
 *        PACKET ...          ------->            they leave at the present time
 *        WAIT, until when    ------->            all its threads wait: time may pass
 *                            <-------  PACKET    ... have arrived
 *                            <-------  RUN       the time of the page is the present one
 *        BACK                ------->            a thread runs although the program has said WAIT: RUN, please
 *
 * The descriptors come by inheritance: the variable names the socket's and the page's, as "5,6".
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/pkt.h"

#define LOCKSTEP_VARIABLE "VERBENA_LOCKSTEP"
#define LOCKSTEP_MAGIC    UINT64_C(0x7665726273746570)

/* The program's time when simulated time is 0: many places take a time of 0 for none. */
#define LOCKSTEP_START_NS UINT64_C(1000000000)
/* What the wall clock is ahead of that: 2020-09-13 12:26:40 UTC in each run. */
#define LOCKSTEP_WALL_NS UINT64_C(1600000000000000000)

enum {
	LOCKSTEP_BYTES_MAX = 4608, /* of a packet: the longest path MTU and all headers */
	LOCKSTEP_ADDRESS_FIRST = 1 /* host 0 is 127.0.0.1 */
};

/* Of all programs of a run; they read it. */
struct lockstep_page {
	uint64_t magic;
	uint64_t run; /* of this run alone: a part of the names of its sockets */
	_Atomic uint64_t now_ns;
};

enum lockstep_kind {
	LOCKSTEP_JOIN = 1, /* value: the pid */
	LOCKSTEP_WELCOME,  /* value: the seed */
	LOCKSTEP_PACKET,   /* flow, ip_id, and bytes behind the head */
	LOCKSTEP_WAIT,     /* value: until when, nanoseconds of the page; UINT64_MAX: for good */
	LOCKSTEP_RUN,
	LOCKSTEP_BACK,
	LOCKSTEP_KINDS
};

struct lockstep_head {
	uint32_t kind;
	uint32_t bytes; /* behind the head; 1 .. LOCKSTEP_BYTES_MAX of a PACKET, else 0 */
	uint64_t value;
	struct flow flow;
	uint16_t ip_id;
};

struct lockstep_message {
	struct lockstep_head head;
	uint8_t bytes[LOCKSTEP_BYTES_MAX];
};

/* The descriptors that the variable's text names. False: it is no such text. */
bool lockstep_parse(const char *text, int *socket_fd, int *page_fd);

/* Sends a message whole, and waits for room. 0 or a negative errno. No cancellation point. */
int lockstep_send(int fd, const struct lockstep_head *, const void *bytes);

/*
 * Takes the next message; with `wait` it waits for one. 1; 0: the other end is closed; -EAGAIN: there is none; -EBADMSG:
 * it is none of the above; another negative errno. No cancellation point.
 */
int lockstep_receive(int fd, struct lockstep_message *, bool wait);

/* The address of a host, by its number, which is below 2^24 - 2: 127.0.0.1 and so on, in GID form. */
void lockstep_address(uint32_t host, uint8_t gid[16]);
/* The number of the host with an address; false: no host has it. */
bool lockstep_host(const uint8_t gid[16], uint32_t *host);
/* The number of a host's name, host0 and so on; false: it is none. */
bool lockstep_host_name(const char *name, uint32_t *host);

/*
 * TCP between programs. A program's sockets of TCP are of AF_UNIX, and all are connected with the simulator, which passes
 * the bytes on when their time has come. Abstract names say what they stand for.
 */
enum lockstep_socket {
	LOCKSTEP_SWITCH = 's', /* where the simulator listens; no ends */
	LOCKSTEP_LISTENER,     /* a program's own end, where it listens */
	LOCKSTEP_CLIENT,       /* a program's own end, and whom it calls */
	LOCKSTEP_CALL          /* the simulator's for a listener: whose call this is, and the listener's end */
};

struct lockstep_end {
	uint32_t host;
	uint16_t port;
};

/* The simulator's answer to a client, one byte before all others. */
enum { LOCKSTEP_ACCEPTED = 'a', LOCKSTEP_REFUSED = 'r' };

/* Writes the name; its length for bind() and connect(). */
socklen_t lockstep_name(struct sockaddr_un *, uint64_t run, enum lockstep_socket, struct lockstep_end own,
			struct lockstep_end peer);
/* Reads it; false: it is no such name. */
bool lockstep_name_read(const struct sockaddr_un *, socklen_t, enum lockstep_socket *, struct lockstep_end *own,
			struct lockstep_end *peer);
