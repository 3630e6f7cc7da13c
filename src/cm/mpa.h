/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections over streams (RFC 5044 7.1, RFC 6581): what a conn is to InfiniBand's messages, a struct mpa is to a stream.
 * It owns the stream until a QP has it, and stays to see its end.
 *
 *      CONNECTING       active: TCP connects                       WAIT_REQUEST   passive: for MPA's Request
 *          | OPEN: Request                                             | it came: the listener is told
 *      WAIT_REPLY                                                  ASKED          for the program
 *          | Reply                                                     | accept: QP to RTS, Reply
 *          | QP to RTS                                             WAIT_FIRST     peer-to-peer: for the peer's first FPDU
 *          +-------------------------> OPEN <--------------------------+
 *                                       | either side ends it, or the QP does
 *                                    CLOSING
 *
 *   state         timer                  the QP has the stream
 *   CONNECTING    MPA_REPLY_NS, or       -
 *                 MPA_AGAIN_NS
 *   WAIT_REPLY    MPA_REPLY_NS           -
 *   WAIT_REQUEST  MPA_REQUEST_NS         -
 *   ASKED         -                      -
 *   WAIT_FIRST    MPA_REPLY_NS           yes
 *   OPEN          until the peer is      yes
 *                 heard: MPA_URGE_NS;
 *                 to close: MPA_CLOSING_NS
 *   CLOSING       MPA_CLOSING_NS         perhaps
 *
 * Peers that do not say in their frames who speaks first (A) are met halfway. As initiator this end always begins with
 * an RDMA Write without bytes, and repeats it while nothing was heard: Linux's siw does not look at what comes while it
 * sets up its end, before more comes. As responder it waits for the initiator's first FPDU (RFC 5044 7.1.2), but no
 * longer than MPA_URGE_NS: siw as initiator sends none before its program does, which may wait for ours.
 *
 * Private to src/cm.
 */
#pragma once

#include "base/list.h"
#include "base/timer.h"
#include "cm/cm.h"
#include "cm/map.h"
#include "iwarp/mpa.h"

enum mpa_state {
	MPA_NEW,
	MPA_CONNECTING,
	MPA_WAIT_REPLY,
	MPA_WAIT_REQUEST,
	MPA_ASKED,
	MPA_WAIT_FIRST,
	MPA_OPEN,
	MPA_CLOSING,
	MPA_STATES
};

enum {
	MPA_WAITING_MAX = 1024, /* streams whose Request has not come, where cm_config says nothing else */
	MPA_DATA_MAX = 251,     /* of private data: siw adds 4 to a length of 8 bits */
	MPA_URGES = 2           /* of an initiator */
};

#define MPA_REPLY_NS   UINT64_C(10000000000) /* as siw has it, and for TCP's own connect too */
#define MPA_REQUEST_NS UINT64_C(5000000000)
#define MPA_CLOSING_NS UINT64_C(5000000000)
/* Between a refused TCP connection and the next, and how long: a listener may come some milliseconds after its client.
 */
#define MPA_AGAIN_NS       UINT64_C(10000000)
#define MPA_AGAIN_UNTIL_NS UINT64_C(200000000)
#define MPA_URGE_NS        UINT64_C(250000000)
#define MPA_URGE_FIRST_NS  UINT64_C(20000000) /* of an initiator; then MPA_URGE_NS */

struct mpa {
	struct cm *cm;
	struct cm_id *id;  /* NULL: nobody is told any more */
	struct list link;  /* in cm->streams.conns */
	struct list waits; /* in WAIT_REQUEST: in cm->streams.waiting */
	struct map_node by_stream;
	struct timer timer;
	enum mpa_state state;
	struct flow flow; /* flow_label is the stream */
	uint32_t room;
	uint16_t segment_bytes;
	uint32_t qpn;
	uint8_t ird, ord; /* this end's, as agreed so far */
	uint8_t urges;    /* left: in OPEN, of MPA_URGES */
	bool refused;     /* in CONNECTING: TCP connects again when the timer fires */
	bool hangs_up;    /* in OPEN: the program has asked for the end */
	uint64_t began_ns;
	bool fin_sent;         /* by us, as the QP is gone */
	bool untimed;          /* its timer is still to be set, when the time is known */
	struct mpa_frame peer; /* its frame, without data */
	uint16_t have;
	uint8_t frame[MPA_FRAME_MAX]; /* that the peer sends */
};

/* What a cm has for streams. */
struct mpa_streams {
	struct nic *nic; /* NULL: there are none */
	struct map by_stream;
	struct timers timers;
	struct list conns;
	struct list out;
	struct mpa_out *lent;
	uint32_t next;       /* number of a stream or listener */
	struct list waiting; /* in WAIT_REQUEST, the oldest first */
	uint32_t waiting_count, waiting_max;
	bool untimed;   /* some conn is */
	uint64_t ended; /* nic_streams_ended() that was looked into */
	bool no_crc;    /* asked for by us */
	bool markers;   /* likewise */
	bool atomics;   /* queue pairs have RFC 7306's */
};

static inline bool cm_has_streams(const struct mpa_streams *s)
{
	return s->nic != NULL;
}

/* Streams are there if the settings name a nic for them. The end forgets their table; their conns have ended. */
void mpa_init(struct cm *, const struct cm_config *);
void mpa_fini(struct cm *);

/* The id is bound, and has a number for its listener. */
void mpa_bind(struct cm_id *);
/* The back end lets go of the port, if it has it. */
void mpa_unbind(struct cm_id *);
/* As the functions of cm.h with those names. */
int mpa_connect(struct cm_id *, const struct cm_param *, uint64_t now_ns);
int mpa_accept(struct cm_id *, const struct cm_param *, uint64_t now_ns);
int mpa_reject(struct cm_id *, const uint8_t *data, size_t len);
void mpa_disconnect(struct cm_id *, uint64_t now_ns);
int mpa_qp_attr(const struct cm_id *, struct qp_attr *, uint32_t *mask);
/* The id goes, and with it the socket that has its port, and its stream. */
void mpa_abandon(struct cm_id *, uint64_t now_ns);
void mpa_expire(struct cm *, uint64_t now_ns);
uint64_t mpa_deadline(const struct cm *);
