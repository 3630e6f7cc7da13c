/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How two SDR programs find each other: a TCP connection, over which they exchange their settings and
 * the addresses of their ends, and later report what has arrived. Any error ends the program with a
 * sentence that names it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <verbena/sdr.h>

enum { MEET_ADDRESS = 64 };

/* Prints "PROGRAM: ..." and exits with 1. Where die_tell() is set it is called first, and nothing is printed if it says
 * that the user has the sentence already. */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
extern bool (*die_tell)(const char *sentence);

/* Connects to host, waiting up to ten seconds for a server to come; NULL: waits for a client. A
 * descriptor. */
int meet(const char *host, uint16_t port);
/* A socket that clients come to, at any address. */
int meet_listen(uint16_t port);
/* This end's address of a connection, and the peer's, as text; false: it has none. */
bool meet_address(int tcp, char text[MEET_ADDRESS]);
bool meet_peer(int tcp, char text[MEET_ADDRESS]);

/* The greeting, by which programs of this kind know each other: says it and hears it, or the other way round. */
enum meet_answer { MEET_KNOWN, MEET_SILENT, MEET_STRANGER };
enum meet_answer meet_greet(int fd);
bool meet_answer(int fd);

/* All of it, or the end of the program. */
void meet_send(int tcp, const void *data, size_t bytes);
void meet_recv(int tcp, void *data, size_t bytes);
/* The same of numbers, in network order. What they wait for may be something else: meet_look() is called first, where
 * it is set. */
void meet_send_numbers(int tcp, const uint64_t *numbers, size_t count);
void meet_recv_numbers(int tcp, uint64_t *numbers, size_t count);
/* As many whole records of `bytes` as have come, at most max; waits up to wait_ms for the first. */
extern void (*meet_look)(void);
size_t meet_poll(int tcp, void *records, size_t bytes, size_t max, int wait_ms);

/* Sleeps until something of the context may have changed, the peer has said something, or most_ms have passed; tcp -1: no
 * peer is waited for. May return early: whoever waits looks at everything before and after. */
void meet_rest(struct verbena_sdr_context *, int tcp, int most_ms);

/* Exchanges the ends' addresses with the peer, and connects them. */
void meet_connect(int tcp, struct verbena_sdr_qp *);

/* What the programs want of a device, and of a queue pair of it. */
struct meet_device {
	const char *name;    /* NULL: the first */
	const char *address; /* the GID that is it, where the port has one; NULL: that of gid_index */
	uint64_t gid_index;
	uint64_t mtu; /* 0: what the port carries */
	uint64_t chunk;
	uint32_t messages_log;  /* receives outstanding */
	uint64_t message_bytes; /* of the longest */
	bool sends, receives;
	uint64_t rate_mbps; /* 0: no limit */
	bool rate_auto;     /* ... or it finds itself */
	uint64_t rtt_ns;    /* 0: not known */
	bool idle_fill;
	bool plain; /* nothing is repaired: messages have no parities */
	/* Those of sdr_write_bw alone; 0: the library's defaults, and no workers. */
	uint64_t channels, workers, ib_port, generations, batch;
	bool rc;
};

struct verbena_sdr_context *meet_context(const struct meet_device *);
struct verbena_sdr_qp *meet_qp(struct verbena_sdr_context *, const struct meet_device *);

/* Registers `bytes` of zeroes; with `flags` as verbena_sdr_mr_reg(). */
void *meet_memory(struct verbena_sdr_context *, uint64_t bytes, uint32_t flags, struct verbena_sdr_mr **,
		  uint32_t *lkey);

/* The client's numbers go to the server, in the order of the wire. */
void meet_agree(int tcp, bool client, uint64_t *plan, size_t count);

uint32_t log2_up(uint64_t);
/* For qsort() of uint64_t. */
int by_value(const void *, const void *);
uint64_t now_ns(void);
