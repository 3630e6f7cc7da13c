/* SPDX-License-Identifier: BSD-2-Clause */
/* What a look at a QP and its paths needs of the engines beyond their rows (nic/report.c). Nothing here changes anything. */
#pragma once

#include "transport/qp.h"

/* Whether its packets are RoCEv2's (or RoCEv1's), as far as is known. */
bool qp_is_rocev2(const struct qp *);
/* Posted and not complete. */
uint32_t qp_send_wqes(const struct qp *);
/* The pair of hosts behind `last`; NULL: the first one, and there is no more. *bucket is 0 at first. */
const struct pair *transport_next_pair(struct transport *, uint32_t *bucket, const struct pair *last);
