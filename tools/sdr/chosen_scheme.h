/* SPDX-License-Identifier: BSD-2-Clause */
/* The ways in which programs send messages that must arrive, behind one set of calls. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <verbena/sdr.h>

/* The order is that of the wire. */
enum scheme {
	SCHEME_AUTO, /* one of the others, by scheme_choose() */
	SCHEME_RTO,  /* Selective Repeat, by timers alone */
	SCHEME_NACK, /* Selective Repeat, and the receiver names what it misses */
	SCHEME_XOR,  /* 32 chunks and 8 parities, then Selective Repeat */
	SCHEME_MDS,  /* the same with parities that stand for any chunk */
	SCHEME_EC,   /* parities as verbena_sdr_ec_choose() has them */
	SCHEME_TAIL, /* packets are repeated, and the last round trip's have parities */
	SCHEMES
};

const char *scheme_name(enum scheme);
/* Their names, as words of an option. */
#define SCHEME_NAMES "auto|rto|nack|xor|mds|ec|tail"

/* Whether it has parities to go on with (verbena_sdr_qp_attr.idle_fill). */
bool scheme_fills(enum scheme);
/* Ends the program if idle fill is asked for with a scheme that has none. */
void scheme_fill_check(bool idle_fill, enum scheme);

/* What messages are sent with; both ends have the same. */
struct scheme_way {
	enum scheme scheme;
	uint64_t rtt_ns;
	uint64_t rate_mbps; /* that was given; 0: none */
	bool rate_auto;     /* it finds itself */
	uint64_t seen_mbps; /* that was measured; 0: not yet */
	uint64_t chunk;
	uint64_t depth_bytes; /* of all messages that may be under way; 0: they are few */
	double pings_lost;    /* of those that measured the round trip, the share; at the end that measured alone */
};

/* How many numbers a message takes. */
static inline uint32_t scheme_numbers(enum scheme s)
{
	return s == SCHEME_RTO || s == SCHEME_NACK ? 1 : 2;
}

/* As the library's calls for the scheme: a result, and errno. */
int scheme_recv_post(struct verbena_sdr_qp *, const struct scheme_way *, const struct verbena_sdr_recv_attr *,
		     struct verbena_sdr_recv *);
int scheme_recv_poll(const struct scheme_way *, const struct verbena_sdr_recv *, bool *done);
/* behind: how many more bytes will follow. attr: what SCHEME_AUTO has chosen is written there with
 * the reason, if these are not NULL. */
int scheme_send(struct verbena_sdr_qp *, const struct scheme_way *, const struct verbena_sdr_block *, uint64_t behind,
		struct verbena_sdr_ec_attr *attr, const char **reason, struct verbena_sdr_send *);
int scheme_poll(const struct scheme_way *, const struct verbena_sdr_send *, bool *done);
/* Tells that `bytes` arrived within `ns`. If the user gave no rate, later messages are planned for this one. It is the
 * rate of what arrived, because a sender without a limit may lose most of what it sends. */
void scheme_learn(struct scheme_way *, uint64_t bytes, uint64_t ns);
/* The same by the rate that the queue pair has found. False: it finds none. */
bool scheme_learn_found(struct scheme_way *, const struct verbena_sdr_qp *);

/* The shortest of some round trips (and the share of lost PINGs, if that is not NULL), or 0 if nothing came back for
 * six seconds. Both ends call it, with `measures` at one of them, which tells the other over TCP; contexts without
 * workers alone. */
uint64_t scheme_rtt_ns(struct verbena_sdr_context *, struct verbena_sdr_qp *, int tcp, bool measures, double *lost);

enum { SCHEME_REASON = 200 };

/*
 * Measures the round trip, unless rtt_ns has it, and with SCHEME_AUTO chooses what is best for it, the rate and the
 * losses that were seen; the end that measures gets the reason, or "", of
 * SCHEME_REASON bytes, or prints it if reason is NULL. Both ends call it.
 */
void scheme_open(struct scheme_way *, struct verbena_sdr_context *, struct verbena_sdr_qp *, int tcp, bool measures,
		 char *reason);
