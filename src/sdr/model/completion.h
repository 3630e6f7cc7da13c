/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a reliable Write takes over a long link that loses packets, in closed form: from the
 * first packet's injection to the sender's notice that all has arrived. After Khalilov et al.,
 * "SDR-RDMA: Software-Defined Reliability Architecture for Planetary Scale RDMA Communication"
 * (SC'25), sections 4 and 5: losses are independent, control messages are free and arrive, there is
 * no congestion, and encoding is hidden behind injection. verbena-sdr(1) says what each scheme does.
 *
 * Times are seconds.
 */
#pragma once

#include <stdbool.h>

struct model_message {
	double chunks;     /* of the message, a whole number >= 1 */
	double inject_s;   /* what one chunk occupies the link for, > 0 */
	double rtt_s;      /* > 0 */
	double chunk_loss; /* the chance that a chunk does not arrive whole, 0 <= it < 1 */
};

/* The chance that of `packets` packets at least one is lost, each with chance packet_loss. */
double model_chunk_loss(double packet_loss, double packets);

/* What cannot be beaten without losses: injection and one round trip. */
double model_ideal(const struct model_message *);

/* A distribution of completion times. */
struct model_time {
	double mean_s;
	double median_s, p99_s, p999_s;
	double extra; /* parity chunks sent for each data chunk; retransmissions do not count */
};

/*
 * Selective repeat: each chunk is sent again rto_s after its last injection ended until it arrives,
 * which is known a round trip later. rto_s = 3 round trips is the paper's timer, 1 its best case of
 * a receiver that names holes. A lower bound where injection takes longer than rto_s, since
 * retransmissions then share the link with new chunks.
 */
void model_sr(const struct model_message *, double rto_s, struct model_time *);

/* The chance that a selective repeat is done within t_s. */
double model_sr_done(const struct model_message *, double rto_s, double t_s);

struct model_code {
	bool parities_are_xor; /* parity i of the data j with j mod parity = i; else any `data`
				  pieces give the rest */
	double data, parity;   /* chunks of a group */
	double wait_rtts;      /* from the expected end of a message to the fall-back; the paper: 1 */
};

/* The chance that one group cannot be repaired, and that of at least one in a message. */
double model_group_fails(const struct model_code *, double chunk_loss);
double model_falls_back(const struct model_message *, const struct model_code *);

/*
 * Groups of data chunks with parity chunks behind; where one cannot be repaired, the failed groups
 * are sent again by selective repeat with rto_s, after the wait. The number of failed groups is
 * drawn (binomial), as the paper's simulation does; model_ec_formula() is the mean as its
 * section 4.2 writes it, which adds the repeat of the *mean* number of failed groups also where
 * hardly any message has one.
 */
void model_ec(const struct model_message *, const struct model_code *, double rto_s, struct model_time *);
double model_ec_done(const struct model_message *, const struct model_code *, double rto_s, double t_s);
double model_ec_formula(const struct model_message *, const struct model_code *, double rto_s);

/* The least time within which a message is done with chance q < 1, by the code, or by selective
 * repeat where code is NULL. */
double model_quantile(const struct model_message *, const struct model_code *code, double rto_s, double q);

/*
 * The time that no scheme can beat, with or without feedback or codes. As many chunks must get through
 * as the message has, each on its own attempt, so the number of attempts is negative binomial; and a
 * round trip follows.
 */
void model_bound(const struct model_message *, struct model_time *);
/* As model_quantile(). */
double model_bound_quantile(const struct model_message *, double q);

/*
 * Parity over the tail: losses in what is older than a round trip are repaired while newer data is
 * injected, and only the last `coded` packets are, in groups with parities. A group may be one that as many
 * packets as it has data do not give in one case of 255 (EC_WIDE). A shortage is answered with fresh parities 1.1
 * round trips later, or at once where parities follow anyway. Returns the chance that a message is short of all of
 * them.
 */
struct model_tail {
	double coded, groups;
	double data, parity; /* packets of a group, at most */
	bool is_wide;
	double fill; /* more parities of a group, which follow without a word of the receiver; 0: none */
};

double model_tail(const struct model_message *, const struct model_tail *, struct model_time *);
double model_tail_quantile(const struct model_message *, const struct model_tail *, double q);
