/* SPDX-License-Identifier: BSD-2-Clause */
/* The ledger: which bytes are lent to which process, and when they are taken back. */

#include "base/pkt.h"
#include "mem/lend.h"
#include "support/test.h"

enum { LONG = PKT_FAR_BYTES_MIN };

/* A process that reads, and the two words that it shares with the lender. */
struct reader {
	_Atomic uint64_t told, given_back;
	struct loan loan;
	struct borrower borrower;
};

static struct lender lender;
static struct reader a, b;
static uint64_t requests[2]; /* of two queue pairs */
static uint8_t memory[3 * LONG], packet[4 * LONG];

static void reader_init(struct reader *r)
{
	*r = (struct reader){.loan = {.told = &r->told, .given_back = &r->given_back}};
	borrower_init(&r->borrower, &r->loan);
}

static int setup(void **state)
{
	lender = (struct lender){.lot = 40};
	lender_init(&lender);
	reader_init(&a);
	reader_init(&b);
	requests[0] = requests[1] = 0;
	memset(memory, 0x5a, sizeof(memory));
	memset(packet, 0, sizeof(packet));
	return 0;
}

#define CASE(name) TEST_WITH(name, setup, NULL)

/* A packet of several pieces: the first long one is lent, all others are copied. */
CASE(one_long_piece_of_a_packet_is_lent)
{
	struct pkt_far far;

	lender_begin(&lender, &a.borrower, &requests[0]);
	assert_false(lender_lend_request(&lender, packet, memory, 100));
	assert_int_equal(requests[0], 0);
	assert_true(lender_lend_request(&lender, packet + 100, memory + 7, LONG));
	assert_ptr_equal(lender.far.to, packet + 100);
	assert_int_equal(lender.far.len, LONG);
	memcpy(&far, packet + 100, sizeof(far));
	assert_ptr_equal(far.from, memory + 7);
	assert_int_equal(far.lot, 41);
	assert_int_equal(requests[0], 41);
	assert_int_equal(packet[100 + sizeof(far)], 0);
	assert_false(lender_lend_request(&lender, packet + 100 + LONG, memory, LONG));
	assert_ptr_equal(lender.far.to, packet + 100);
}

/* The packet was not sent: what is laid out in its place is another. */
CASE(a_packet_that_was_given_up_lends_nothing)
{
	lender_begin(&lender, &a.borrower, &requests[0]);
	assert_true(lender_lend_request(&lender, packet + 50, memory, LONG));
	assert_false(lender_lend_request(&lender, packet + 40, memory, 100));
	assert_int_equal(lender.far.len, 0);
	assert_true(lender_lend_request(&lender, packet + 50, memory, LONG));
	assert_true(lender_lend_request(&lender, packet + 50, memory + 1, LONG));
	assert_ptr_equal(lender.far.to, packet + 50);
}

/* Newer lots stay with who has them, and those of another process. */
CASE(lots_are_taken_back_up_to_one)
{
	struct reader *const to[] = {&a, &a, &b, &a};

	for (size_t i = 0; i < 4; i++) {
		lender_begin(&lender, &to[i]->borrower, &requests[i == 3]);
		assert_true(lender_lend_request(&lender, packet, memory, LONG));
	}
	assert_int_equal(requests[0], 43);
	assert_int_equal(requests[1], 44);
	borrower_take_back(&a.borrower, 42);
	assert_int_equal(a.told, 42);
	assert_int_equal(b.told, 0);
	assert_true(loan_is_out(&a.loan, 43));
	assert_false(loan_is_out(&a.loan, 42));
	borrower_take_back(&a.borrower, 41);
	assert_int_equal(a.told, 42);
}

/* What was given back is the lender's already: its reader is told nothing, and drops nothing of others'. */
CASE(what_was_given_back_is_not_taken_back)
{
	lender_begin(&lender, &a.borrower, &requests[0]);
	assert_true(lender_lend_response(&lender, packet, memory, LONG));
	assert_true(lender_lends_responses(&lender));
	a.given_back = 41;
	assert_false(lender_lends_responses(&lender));
	borrower_take_back(&a.borrower, 41);
	lender_take_back_responses(&lender, 41);
	assert_int_equal(a.told, 0);
}

/* The word that it is told by lies where the other process may write, too: the lender does not believe what it finds
 * there. */
CASE(what_was_taken_back_stays_taken_back)
{
	lender_begin(&lender, &a.borrower, &requests[0]);
	assert_true(lender_lend_request(&lender, packet, memory, LONG));
	borrower_take_back(&a.borrower, 41);
	a.told = 0;
	assert_int_equal(a.loan.taken_back, 41);
	assert_false(loan_is_out(&a.loan, 41));
}

/* Requests that left after the last response stay lent, whoever closes a region. */
CASE(responses_come_back_from_all)
{
	lender_begin(&lender, &a.borrower, &requests[0]);
	assert_true(lender_lend_response(&lender, packet, memory, LONG));
	lender_begin(&lender, &b.borrower, &requests[0]);
	assert_true(lender_lend_response(&lender, packet, memory, LONG));
	lender_begin(&lender, &a.borrower, &requests[0]);
	assert_true(lender_lend_request(&lender, packet, memory, LONG));
	lender_take_back_responses(&lender, 42);
	assert_int_equal(a.told, 41);
	assert_int_equal(b.told, 42);
	assert_true(loan_is_out(&a.loan, 43));
	assert_false(lender_lends_responses(&lender));
}

/* The ring that it had is gone, or there never was one. */
CASE(nobody_is_told_where_nobody_reads)
{
	lender_begin(&lender, &a.borrower, &requests[0]);
	assert_true(lender_lend_response(&lender, packet, memory, LONG));
	a.loan = (struct loan){0};
	assert_false(lender_lends_responses(&lender));
	lender_take_back_responses(&lender, 41);
	borrower_init(&b.borrower, NULL);
	borrower_take_back(&b.borrower, 41);
	assert_int_equal(a.told, 0);
}
