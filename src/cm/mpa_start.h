/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA's Request and Reply: writing them, and judging the peer's. Private to src/cm.
 *
 * We ask for CRCs always, so they are on (RFC 5044 7.1.2), for markers never, and for peer-to-peer set-up with an RDMA
 * Write (RFC 6581 9), so that a responder's program may speak first.
 */
#pragma once

#include "cm/mpa.h"

/* Writes the Request and returns its length. */
size_t mpa_start_request(uint8_t *frame, const struct mpa *, const struct cm_param *);
/* All but the private data. */
void mpa_start_reply(struct mpa_frame *, const struct mpa *);
/* What the peer's frame means to the program. */
void mpa_start_param(struct cm_param *, const struct mpa *);
/* Both set m->peer. 0, or -EPROTO: no connection comes of it. */
int mpa_start_judge_request(struct mpa *);
/* Sets the agreed settings in m; a Reply that rejects sets nothing. */
int mpa_start_judge_reply(struct mpa *);
