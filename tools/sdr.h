/* SPDX-License-Identifier: BSD-2-Clause */
/* Common parts of `verbena sdr`: a question about links and messages, and the schemes that
 * answer it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sdr/model/completion.h"

enum { SDR_VALUES_MAX = 32 };

struct sdr_list {
	double values[SDR_VALUES_MAX];
	size_t n;
};

/* Units: bytes, bit/s, seconds, chances. */
struct sdr_question {
	struct sdr_list sizes, losses; /* losses are of packets */
	double rate_bps, rtt_s;
	double packet_bytes, chunk_bytes; /* a chunk is a whole number of packets */
	double rto_rtts;                  /* of selective repeat by timer */
	double data, parity;              /* chunks of a group of XOR and EC */
	double assumed;                   /* loss of packets that TAIL's plan is for; < 0: that of the link */
	bool idle_fill;                   /* TAIL goes on with parities */
	double nodes;                     /* of a ring */
	bool receiver_gated;              /* its rounds begin when data is there, not when it is acknowledged */
};

enum sdr_scheme { SDR_SR, SDR_NACK, SDR_XOR, SDR_MDS, SDR_TAIL, SDR_BOUND, SDR_SCHEMES };

struct sdr_answer {
	struct model_time time;
	double ideal_s;
	double fails; /* the chance that a message needs a second round: a retransmission, or more
			 than its parity */
	double data;  /* pieces of a group; 0: no code */
	double parity;
};

/* "SR", "NACK" .., as the paper names them where it has them. */
const char *sdr_scheme_name(enum sdr_scheme);
const char *sdr_scheme_title(enum sdr_scheme);

/* How a message of `size` bytes fares with the scheme when packets are lost with chance `loss`. */
void sdr_answer(const struct sdr_question *, double size, double loss, enum sdr_scheme, struct sdr_answer *);

/* A message of so many bytes in units of unit_bytes, of which one is lost if any of its packets is. */
struct model_message sdr_message(const struct sdr_question *, double size, double unit_bytes, double loss);
/* The code that the library would choose for the tail of a message, which is in packets. */
void sdr_tail_code(const struct sdr_question *, const struct model_message *, struct model_tail *);

/* How many packets a chunk may have, a power of two up to 64, so that at most one message in a thousand needs a second
 * repair by the scheme, which is SR, NACK, XOR or EC. 0: not even one. */
double sdr_chunk_packets(const struct sdr_question *, double size, double loss, enum sdr_scheme);

/* ---- sdr_model.c, sdr_plan.c: what the subcommands print ---- */

void sdr_model_table(const struct sdr_question *);
void sdr_model_csv(const struct sdr_question *, FILE *);
void sdr_plan(const struct sdr_question *);
void sdr_plan_csv(const struct sdr_question *);
/* As sdr_figures(). */
int sdr_plan_page(const struct sdr_question *, const char *path);
void sdr_ring(const struct sdr_question *, bool csv);
/* How long all-reduces of a buffer take, by at most SDR_TRIALS_MAX drawn ones. */
enum { SDR_TRIALS_MAX = 8000, SDR_SEED = 1 };
void sdr_ring_times(const struct sdr_question *, double size, double loss, enum sdr_scheme, unsigned trials,
		    struct model_time *);

/* Writes the page. 0, or EXIT_OURS after an error message. */
int sdr_figures(const char *path);
