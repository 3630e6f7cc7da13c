/* SPDX-License-Identifier: BSD-2-Clause */
/* Who was lent which lots. A borrower is in the list from the first READ response that it was lent until all are back.
 */
#include "mem/lend.h"

#include <string.h>

#include "base/pkt.h"
#include "mem/copy.h"

void lender_init(struct lender *l)
{
	list_init(&l->borrowers);
}

void borrower_init(struct borrower *b, struct loan *loan)
{
	list_init(&b->link);
	b->loan = loan;
}

void lender_begin(struct lender *l, struct borrower *to, uint64_t *requests)
{
	l->lot++;
	l->to = to;
	l->requests = requests;
	l->far.len = 0;
}

/*
 * Only if they are there now: a region whose memory is gone is the sender's error, and to be found here. The first and
 * the last byte stand for their pages; those between, of a packet with pages between, are found by who reads them.
 */
static bool lend(struct lender *l, uint8_t *to, const void *from, size_t len)
{
	const struct pkt_far far = {.from = from, .lot = l->lot};
	uint8_t byte;

	/* Of a packet that was given up: this one is in its place. */
	if (l->far.len && to < l->far.to + l->far.len)
		l->far.len = 0;
	if (l->far.len || l->copies || len < PKT_FAR_BYTES_MIN || len > UINT16_MAX || !mem_copy(&byte, from, 1) ||
	    !mem_copy(&byte, (const uint8_t *)from + len - 1, 1))
		return false;
	memcpy(to, &far, sizeof(far));
	l->far = (struct mr_far){.to = to, .len = (uint32_t)len};
	return true;
}

bool lender_lend_request(struct lender *l, uint8_t *to, const void *from, size_t len)
{
	if (!lend(l, to, from, len))
		return false;
	*l->requests = l->lot;
	return true;
}

bool lender_lend_response(struct lender *l, uint8_t *to, const void *from, size_t len)
{
	if (!lend(l, to, from, len))
		return false;
	l->to->responses = l->lot;
	if (list_empty(&l->to->link))
		list_append(&l->borrowers, &l->to->link);
	return true;
}

void borrower_take_back(struct borrower *b, uint64_t lot)
{
	if (b->loan)
		loan_take_back(b->loan, lot);
}

void lender_take_back_responses(struct lender *l, uint64_t lot)
{
	struct list *next;

	for (struct list *i = l->borrowers.next; i != &l->borrowers; i = next) {
		struct borrower *b = container_of(i, struct borrower, link);

		next = i->next;
		borrower_take_back(b, lot < b->responses ? lot : b->responses);
		if (lot >= b->responses)
			list_remove(&b->link);
	}
}

bool lender_lends_responses(struct lender *l)
{
	while (!list_empty(&l->borrowers)) {
		struct borrower *b = container_of(l->borrowers.next, struct borrower, link);

		if (b->loan && loan_is_out(b->loan, b->responses))
			return true;
		list_remove(&b->link);
	}
	return false;
}
