/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line from inside: for sdr_line.c, which moves packets and words, and for the schemes, which decide what goes.
 *
 * Private to src/sim.
 */
#pragma once

#include "base/timer.h"
#include "sdr/message/control.h"
#include "sdr/message/receiver.h"
#include "sdr/scheme.h"
#include "sdr/message/sender.h"
#include "sdr/rate/auto_rate.h"
#include "sim/sdr_line.h"

enum { SDR_WORD_BYTES_MAX = 1024, SDR_PARTS = 2 };

/* The two ends of a transfer; each has a deadline of its own. */
enum sdr_end { SDR_SENDING, SDR_RECEIVING };

/* An SDR message: the data of a transfer, or its parity. */
struct sdr_part {
	uint64_t number; /* the message's, at both ends */
	uint64_t bytes;  /* of the receive; 0: the transfer has no such part */
	struct mr *mr;   /* the receive's region; NULL: completed */
	bool ended;      /* sender_end() */
	bool returned;   /* the transport has given everything back */
};

struct end_timer {
	struct timer timer;        /* first, so that it is the end_timer */
	struct transfer *transfer; /* NULL: it is the line's own */
	enum sdr_end end;
	struct sdr_line *line;
};

/* A message of the workload under way. No call of one end looks at the other's state. */
struct transfer {
	struct transfer *next;
	struct sdr_line *line;
	struct sdr_message *message; /* NULL: reported to the sender's program */
	struct sdr_part part[SDR_PARTS];
	struct end_timer timer[2]; /* by enum sdr_end */
	uint32_t packets;          /* of the data */
	bool received;             /* reported */
	uint32_t came;             /* chunks that the worker has published */
	uint64_t looked_ns;        /* when the receiver last looked at its bitmap */
	uint32_t came_all;         /* likewise, with those of the parity */
	bool unseen;               /* some of these came after that look */
	struct scheme_tx tx;
	struct scheme_rx rx;
};

extern const struct alloc sdr_line_alloc;

/* A receive that was completed. It stays known until its slot and generation come again, so that what is late is
 * counted. */
struct sdr_past {
	struct mr *mr;
	uint64_t *came; /* packets, a bit each */
	uint32_t packets;
};

struct sdr_line {
	struct sdr_line *next, *prev; /* of the sending host */
	const struct sdr_config *config;
	struct host *from, *to;
	void *owner;
	uint64_t rtt_ns;
	struct shape shape;
	struct sender sender;
	struct receiver receiver;
	struct worker worker;
	struct qp **qps; /* pairs: at the sender and at the receiver; generations x channels, generations for idle fill,
			    then control */
	struct uc_end *ends;
	uint32_t qp_count;
	struct sdr_past *past;            /* by generation, then slot */
	struct sdr_message *first, *last; /* that wait for a slot */
	struct transfer *transfers;       /* in the order in which they began */
	struct transfer *turn;            /* whose turn it is to send; NULL: the first */
	uint32_t posted;                  /* work requests with data that are not complete, but for this one: */
	bool fill_is_posted;              /* a packet of idle fill; its class may have to wait */
	struct sdr_word **words;          /* on their way, by number; see sdr_words.c */
	uint32_t words_said;
	uint32_t busy; /* calls into the line that have not returned */
	bool closed;
	struct auto_rate rate;
	uint64_t pace_ns;            /* when the next packet may leave */
	struct end_timer pace_timer; /* that of the next packet, or of a PING */
	struct sdr_counts *counts;
	struct loss_estimate *estimate; /* of the way to that host */
};

/* Posts a control message of one end, which is lost if there is no room. */
void sdr_line_say(struct sdr_line *, enum sdr_end, const struct control *, const uint8_t *payload);

/* How long so many bytes take at the line's rate; 0: at that of the wire. */
uint64_t sdr_rate_ns(const struct sdr_line *, uint64_t bytes);
/* Whether a packet may leave now; a packet leaves. */
bool sdr_rate_may_post(const struct sdr_line *, uint64_t now_ns);
void sdr_rate_posted(struct sdr_line *, uint32_t bytes, uint64_t now_ns);
/* When a PING is due, or a packet may be: a window that is full opens when a COUNT comes, or a little by itself, so it is
 * looked at when the next packet would leave. UINT64_MAX: neither. At that time sdr_rate_expire() sends the PING. */
uint64_t sdr_rate_due(const struct sdr_line *, uint64_t now_ns);
void sdr_rate_expire(struct sdr_line *, uint64_t now_ns);
/* Takes a PING or a COUNT. False: the message is neither. */
bool sdr_rate_hear(struct sdr_line *, enum sdr_end, const struct control *, const uint8_t *payload, uint64_t now_ns);

/* How long so many bytes of packets take to leave. */
uint64_t sdr_line_send_ns(const struct sdr_line *, uint64_t bytes);

/* Bytes of the parity's receive of a message; 0: none is needed. */
uint64_t sdr_parity_bytes(const struct sdr_line *, uint64_t bytes);
/* Both ends of a transfer whose receives are open and whose messages were started. False: no memory; each end that has
 * a scheme is to be freed all the same. */
bool sdr_scheme_open(struct transfer *, uint64_t now_ns);

/* The calls of an end: what it hears; when it has more to do, and that this time has come. */
void sdr_end_hear(struct transfer *, enum sdr_end, const struct control *, const uint8_t *payload, uint64_t now_ns);
uint64_t sdr_end_deadline(const struct transfer *, enum sdr_end);
void sdr_end_expire(struct transfer *, enum sdr_end, uint64_t now_ns);
/* The payload of the next message that is due, at most SDR_WORD_BYTES_MAX; -1: none is. */
int sdr_end_tell(struct transfer *, enum sdr_end, uint8_t *, enum control_type *, uint64_t now_ns);
/* A packet of a part came; verdict SDR_TAKEN or SDR_CHUNK. */
void sdr_came(struct transfer *, uint32_t part, uint32_t packet, enum sdr_verdict, uint64_t now_ns);
/* Packets of the data that the receiver has, or can compute. */
uint64_t sdr_have(const struct transfer *);

/* A part's receive is completed, whose slot is closed but not reset; takes its region. */
void sdr_past_keep(struct sdr_line *, const struct sdr_part *, const struct slot *);
void sdr_past_forget(struct sdr_line *);
/* Whether a packet of a message that is over has come before. */
bool sdr_past_has(const struct sdr_line *, uint32_t generation, struct imm);
