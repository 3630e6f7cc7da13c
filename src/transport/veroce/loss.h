/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss detection: which of the packets in flight a sender takes for lost (veRoCE 6.1). A setting chooses one of three.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct qp;
struct sender;
struct transport;
struct tseeth;
struct tx_news;

/* The content of an acknowledgement other than its PSN. */
struct acknowledgement {
	const uint8_t *sacks;        /* sack_count SACKETHs back to back */
	const struct tseeth *stamps; /* NULL: it carries none */
	uint32_t sack_count;
	uint32_t waited_ns; /* here, before it was read */
	uint32_t msn;       /* AETH.MSN: the last message that is complete at the peer */
	bool becn;
};

struct loss_ops {
	/* After every acknowledgement. Lost records are passed to recovery_lose(). */
	void (*acked)(struct transport *, struct qp *, struct sender *, const struct tx_news *,
		      const struct acknowledgement *, uint64_t now_ns);
	/* After the retransmission timer fired. */
	void (*timeout)(struct transport *, struct qp *, struct sender *, uint64_t now_ns);
	/* At sender.reo_ns; NULL: it is never set. */
	void (*late)(struct transport *, struct qp *, struct sender *, uint64_t now_ns);
	/* When the retransmission timeout begins to count; NULL: when una last moved. */
	uint64_t (*since)(const struct qp *, const struct sender *);
	bool probes; /* tail probes */
};
extern const struct loss_ops loss_fast, loss_base, loss_irn;
