/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that leave their payload out, which their receiver reads in the sender's memory. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "support/shm_ends.h"
#include "io/shm/shm_far.h"
#include "io/shm/shm_ring.h"
#include "io/shm/shm_state.h"
#include "support/test.h"
#include "wire/capseth.h"

/* Packets of a train that leave out bytes of `memory`, those of packet i from i * PKT_FAR_BYTES_MIN on. */
enum { FAR_AT = 40, FAR_TAIL = 4, FAR_LEN = FAR_AT + PKT_FAR_BYTES_MIN + FAR_TAIL };

static uint64_t lot = 1;

static struct loan *loan_of(struct end *e)
{
	return look_at(e, B, 1)->loan;
}

static size_t send_far(struct end *e, unsigned slot, const uint8_t *memory, size_t n)
{
	static uint8_t bytes[BURST][FAR_LEN];
	struct pkt pkts[BURST];

	for (size_t i = 0; i < n; i++) {
		const struct pkt_far far = {.from = memory + i * PKT_FAR_BYTES_MIN, .lot = lot};

		memset(bytes[i], (int)i, FAR_LEN);
		bytes[i][5] = (uint8_t)(slot << 1);
		memcpy(bytes[i] + FAR_AT, &far, sizeof(far));
		pkts[i] = (struct pkt){.data = bytes[i],
				       .flow = &within,
				       .len = FAR_LEN,
				       .ip_id = (uint16_t)i,
				       .train = (uint16_t)(n - i),
				       .far_at = FAR_AT,
				       .far_bytes = PKT_FAR_BYTES_MIN};
	}
	return io_send(e->io, pkts, n, 1);
}

static size_t take_far(struct end *e, const uint8_t *memory)
{
	struct pkt pkts[BURST];
	size_t got = 0;

	for (int i = 0; i < LOOKS; i++) {
		size_t n = io_recv(e->io, pkts, BURST, 1);

		for (size_t k = 0; k < n; k++, got++) {
			assert_int_equal(pkts[k].len, FAR_LEN);
			assert_int_equal(pkts[k].ip_id, got);
			assert_int_equal(pkts[k].data[0], got);
			assert_int_equal(pkts[k].data[FAR_LEN - 1], got);
			assert_memory_equal(pkts[k].data + FAR_AT, memory + got * PKT_FAR_BYTES_MIN, PKT_FAR_BYTES_MIN);
		}
	}
	return got;
}

ENDS_TEST(what_packets_leave_out_is_read_where_it_is)
{
	static uint8_t memory[10 * PKT_FAR_BYTES_MIN];

	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7 + i / 251);
	assert_false(shm_turn(a->io, 1));
	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	assert_true(look_at(a, B, 1)->reached);
	assert_true(look_at(a, B, 1)->reads);
	assert_int_equal(send_far(a, B, memory, 10), 10);
	assert_int_equal(take_far(b, memory), 10);
	assert_int_equal(a->counters.shm_tx_far, 10);
	/* Without a ring they are nothing that can be sent. */
	shm_lose(a->io, B, 1);
	assert_int_equal(send_far(a, B, memory, 10), 10);
	assert_int_equal(a->lower->sent, 0);
	assert_false(look_at(a, B, 1)->reached);
}

/* If the pieces of a message lie apart, one is left out, and the packet may be large. */
ENDS_TEST(a_large_packet_may_leave_out_little)
{
	enum { BYTES = 96 + CAPS_LARGE_BYTES };
	static uint8_t memory[PKT_FAR_BYTES_MIN], bytes[BYTES];
	const struct pkt_far far = {.from = memory, .lot = lot};
	struct pkt pkts[BURST], pkt = {.data = bytes,
				       .flow = &within,
				       .len = BYTES,
				       .train = 1,
				       .far_at = 5000,
				       .far_bytes = sizeof(memory)};

	connect_ends(a, A, b, B);
	memset(memory, 7, sizeof(memory));
	memset(bytes, 9, sizeof(bytes));
	bytes[5] = (uint8_t)(B << 1);
	memcpy(bytes + pkt.far_at, &far, sizeof(far));
	pass(a, B, b, 0, 1);
	assert_int_equal(io_send(a->io, &pkt, 1, 1), 1);
	assert_int_equal(io_recv(b->io, pkts, BURST, 1), 1);
	assert_int_equal(pkts[0].len, BYTES);
	assert_memory_equal(pkts[0].data, bytes, pkt.far_at);
	assert_memory_equal(pkts[0].data + pkt.far_at, memory, sizeof(memory));
	assert_memory_equal(pkts[0].data + pkt.far_at + sizeof(memory), bytes + pkt.far_at + sizeof(memory),
			    BYTES - pkt.far_at - sizeof(memory));
}

/* Packets are cut to one length, so one behind a shorter one would begin at the wrong place. */
TEST(only_the_last_packet_may_be_short)
{
	enum { SHORT = FAR_LEN - 8 };
	static uint8_t bytes[2][FAR_LEN], description[SHM_FAR_BYTES_MAX], to[2 * FAR_LEN];

	for (unsigned last = 0; last < 2; last++) {
		struct pkt pkts[2];
		struct shm_far far = {.here_count = 0};
		uint64_t count;
		uint32_t len;

		for (unsigned i = 0; i < 2; i++)
			pkts[i] = (struct pkt){.data = bytes[i],
					       .len = i == last ? SHORT : FAR_LEN,
					       .far_at = FAR_AT,
					       .far_bytes = PKT_FAR_BYTES_MIN - 8};
		assert_int_equal(shm_far_describe(description, pkts, 2, &len, &count), 2);
		assert_int_equal(shm_far_lay_out(description, len, FAR_LEN, to, sizeof(to), &far),
				 last ? FAR_LEN + SHORT : 0);
		assert_int_equal(far.here_count, last ? 2 : 0);
	}
}

/* Trains are read together, and one that cannot be read does not take the others with it. */
ENDS_TEST(one_that_is_not_there_is_lost_alone)
{
	static uint8_t good[2 * PKT_FAR_BYTES_MIN];
	uint8_t *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pkt pkts[BURST];

	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	memset(good, 5, sizeof(good));
	assert_int_equal(munmap(gone, 4096), 0);
	send(a, B, 1, 1);
	assert_int_equal(send_far(a, B, good, 2), 2);
	assert_int_equal(send_far(a, B, gone, 3), 3);
	send(a, B, 2, 1);
	assert_int_equal(send_far(a, B, good, 1), 1);
	assert_int_equal(io_recv(b->io, pkts, BURST, 1), 5);
	assert_int_equal(b->counters.shm_far_failed, 1);
	assert_int_equal(get_be32(pkts[0].data + 12), 1);
	assert_memory_equal(pkts[1].data + FAR_AT, good, PKT_FAR_BYTES_MIN);
	assert_memory_equal(pkts[2].data + FAR_AT, good, PKT_FAR_BYTES_MIN);
	assert_int_equal(get_be32(pkts[3].data + 12), 2);
	assert_memory_equal(pkts[4].data + FAR_AT, good, PKT_FAR_BYTES_MIN);
	/* The last of what is taken may be lost as well. */
	assert_int_equal(send_far(a, B, gone, 3), 3);
	assert_int_equal(io_recv(b->io, pkts, 2, 1), 0);
	pass(a, B, b, 3, 1);
}

ENDS_TEST(what_is_not_there_is_lost)
{
	uint8_t *memory = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	connect_ends(a, A, b, B);
	assert_int_equal(munmap(memory + 4096, 7 * 4096), 0);
	assert_int_equal(send_far(a, B, memory, 10), 10);
	assert_int_equal(take_far(b, memory), 0);
	assert_int_equal(b->counters.shm_far_failed, 1);
	pass(a, B, b, 3, 1);
	munmap(memory, 4096);
}

/* The program has got its memory back before its peer looked: the packets have not arrived, and what comes after them
 * has. */
ENDS_TEST(what_was_taken_back_is_lost)
{
	static uint8_t memory[10 * PKT_FAR_BYTES_MIN];

	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	assert_int_equal(send_far(a, B, memory, 10), 10);
	assert_true(loan_is_out(loan_of(a), lot));
	loan_take_back(loan_of(a), lot++);
	assert_int_equal(take_far(b, memory), 0);
	assert_int_equal(b->counters.shm_far_failed, 1);
	assert_int_equal(send_far(a, B, memory, 10), 10);
	assert_int_equal(take_far(b, memory), 10);
	assert_false(loan_is_out(loan_of(a), lot));
}

/* Where the test says that payload belongs: so many packets from the first one on. */
struct places {
	uint8_t *to;
	size_t known, asked;
	size_t each; /* bytes; 0: PKT_FAR_BYTES_MIN */
	bool passes; /* packets that have all their bytes do */
};

static size_t place(void *ctx, const struct pkt *pkts, size_t n, bool begins, uint8_t **spots)
{
	struct places *p = ctx;
	size_t each = p->each ? p->each : PKT_FAR_BYTES_MIN, i = 0;

	assert_true(n && (begins || p->asked || p->passes));
	if (begins)
		p->asked = 0;
	for (; i < n; i++) {
		spots[i] = NULL;
		if (!pkts[i].far_bytes && !p->passes)
			break;
		if (!pkts[i].far_bytes)
			continue;
		assert_int_equal(pkts[i].far_at, FAR_AT);
		assert_int_equal(pkts[i].far_bytes, each);
		if (p->asked++ == p->known)
			break;
		spots[i] = p->to + (p->asked - 1) * each;
	}
	return i;
}

/* Payload goes where it belongs, and into the packets where that is not known. */
ENDS_TEST(what_has_a_place_is_read_to_it)
{
	enum { PACKETS = 10, KNOWN = 4 };
	static uint8_t memory[PACKETS * PKT_FAR_BYTES_MIN], to[PACKETS * PKT_FAR_BYTES_MIN];
	struct places places = {.to = to, .known = KNOWN};
	struct pkt pkts[BURST];

	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7 + i / 256);
	shm_set_placer(b->io, (struct shm_placer){.place = place, .ctx = &places});
	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	assert_int_equal(send_far(a, B, memory, PACKETS), PACKETS);
	assert_int_equal(io_recv(b->io, pkts, BURST, 1), PACKETS);
	assert_int_equal(places.asked, KNOWN + 1);
	for (size_t i = 0; i < PACKETS; i++) {
		struct pkt_far far;

		assert_int_equal(pkts[i].far_bytes, i < KNOWN ? PKT_FAR_BYTES_MIN : 0);
		if (i < KNOWN) {
			assert_int_equal(pkts[i].far_at, FAR_AT);
			memcpy(&far, pkts[i].data + FAR_AT, sizeof(far));
			assert_ptr_equal(far.from, to + i * PKT_FAR_BYTES_MIN);
		}
		assert_memory_equal(i < KNOWN ? to + i * PKT_FAR_BYTES_MIN : pkts[i].data + FAR_AT,
				    memory + i * PKT_FAR_BYTES_MIN, PKT_FAR_BYTES_MIN);
	}
	assert_int_equal(to[KNOWN * PKT_FAR_BYTES_MIN], 0);
	/* The nic has not seen what comes first: what is behind it comes with the next call, and has a place. */
	places.asked = 0;
	send(a, B, 1, 1);
	assert_int_equal(send_far(a, B, memory, 2), 2);
	assert_int_equal(io_recv(b->io, pkts, BURST, 1), 1);
	assert_int_equal(places.asked, 0);
	assert_int_equal(io_recv(b->io, pkts, BURST, 1), 2);
	assert_int_equal(places.asked, 2);
	assert_int_equal(pkts[1].far_bytes, PKT_FAR_BYTES_MIN);
}

/*
 * Acknowledgements between the packets of a row, and before them, do not end it: the row is read at once, and each
 * packet's payload gets to its own place.
 */
ENDS_TEST(what_passes_does_not_end_a_row)
{
	enum { ROW = 4 };
	static uint8_t memory[2 * ROW * PKT_FAR_BYTES_MIN], to[sizeof(memory)];
	static const bool is_far[] = {false, true, true, true, true, false, true, true, true, true, false};
	struct places places = {.to = to, .known = 2 * ROW, .passes = true};
	struct pkt pkts[BURST];

	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 5 + i / 256);
	shm_set_placer(b->io, (struct shm_placer){.place = place, .ctx = &places});
	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	send(a, B, 1, 1);
	assert_int_equal(send_far(a, B, memory, ROW), ROW);
	send(a, B, 2, 1);
	assert_int_equal(send_far(a, B, memory + ROW * PKT_FAR_BYTES_MIN, ROW), ROW);
	send(a, B, 3, 1);
	assert_int_equal(io_recv(b->io, pkts, BURST, 1), 2 * ROW + 3);
	assert_int_equal(places.asked, 2 * ROW);
	for (size_t i = 0; i < 2 * ROW + 3; i++)
		assert_int_equal(pkts[i].far_bytes, is_far[i] ? PKT_FAR_BYTES_MIN : 0);
	assert_memory_equal(to, memory, sizeof(to));
	/* Where the place is not there any more, the packets are whole. */
	places = (struct places){.to = (uint8_t *)4096, .known = 2 * ROW, .passes = true};
	send(a, B, 4, 1);
	assert_int_equal(send_far(a, B, memory, ROW), ROW);
	send(a, B, 5, 1);
	assert_int_equal(send_far(a, B, memory + ROW * PKT_FAR_BYTES_MIN, ROW), ROW);
	assert_int_equal(io_recv(b->io, pkts, BURST, 1), 2 * ROW + 2);
	for (size_t i = 0, k = 0; i < 2 * ROW + 2; i++) {
		assert_int_equal(pkts[i].far_bytes, 0);
		if (is_far[i])
			assert_memory_equal(pkts[i].data + FAR_AT, memory + k++ * PKT_FAR_BYTES_MIN, PKT_FAR_BYTES_MIN);
	}
}

/* Packets of another ring in the same call keep nobody waiting: what has no place then is copied. */
TEST(a_busy_ring_does_not_keep_others_waiting)
{
	enum { FAR = 3, CALLS = 4 };
	static uint8_t memory[FAR * PKT_FAR_BYTES_MIN], to[sizeof(memory)];
	struct places places = {.to = to, .known = FAR};
	struct end *a = end_new(A), *b = end_new(B), *c = end_new(C);
	struct pkt pkts[BURST];

	shm_set_placer(b->io, (struct shm_placer){.place = place, .ctx = &places});
	connect_ends(a, A, b, B);
	connect_ends(c, C, b, B);
	pass(a, B, b, 0, 1);
	pass(c, B, b, 0, 1);
	for (int i = 0; i < CALLS; i++) {
		places.asked = 0;
		/* Either may be looked at first. */
		send(i % 2 ? a : c, B, 1, 1);
		assert_int_equal(send_far(i % 2 ? c : a, B, memory, FAR), FAR);
		assert_int_equal(io_recv(b->io, pkts, BURST, 1), FAR + 1);
	}
	end_free(a);
	end_free(b);
	end_free(c);
}

/* The packet behind the end of a row begins the next row, whose places are asked for once the nic has this one. */
ENDS_TEST(behind_the_end_of_a_row_begins_the_next_call)
{
	enum { ROW = 3 };
	static uint8_t memory[(ROW + 2) * PKT_FAR_BYTES_MIN], to[sizeof(memory)];
	struct places places = {.to = to, .known = 1};
	struct pkt pkts[BURST];

	shm_set_placer(b->io, (struct shm_placer){.place = place, .ctx = &places});
	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	/* The last packet of a message has no place. */
	assert_int_equal(send_far(a, B, memory, 2), 2);
	assert_int_equal(send_far(a, B, memory + 2 * PKT_FAR_BYTES_MIN, ROW), ROW);
	assert_int_equal(io_recv(b->io, pkts, BURST, 1), 2);
	assert_int_equal(pkts[0].far_bytes, PKT_FAR_BYTES_MIN);
	assert_int_equal(pkts[1].far_bytes, 0);
	places = (struct places){.to = to, .known = ROW};
	assert_int_equal(io_recv(b->io, pkts, BURST, 1), ROW);
	assert_int_equal(places.asked, ROW);
}

/* Payload that has a place is read in longer pieces than the buffer holds, which is for payload without one. */
ENDS_TEST(a_long_row_is_read_at_once)
{
	enum { TRAIN = 2, TRAINS = 16, BYTES = 30 << 10 };
	static uint8_t memory[TRAINS][TRAIN][BYTES], to[sizeof(memory)], bytes[TRAIN][FAR_AT + BYTES + FAR_TAIL];
	struct places places = {.to = to, .known = TRAIN * TRAINS, .each = BYTES};
	struct pkt pkts[BURST], train[TRAIN];

	shm_set_placer(b->io, (struct shm_placer){.place = place, .ctx = &places});
	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	for (size_t i = 0; i < TRAINS; i++) {
		for (size_t k = 0; k < TRAIN; k++) {
			const struct pkt_far far = {.from = memory[i][k], .lot = lot};

			memset(memory[i][k], (int)(i * TRAIN + k + 1), BYTES);
			bytes[k][5] = B << 1;
			memcpy(bytes[k] + FAR_AT, &far, sizeof(far));
			train[k] = (struct pkt){.data = bytes[k],
						.flow = &within,
						.len = sizeof(bytes[k]),
						.ip_id = (uint16_t)k,
						.train = (uint16_t)(TRAIN - k),
						.far_at = FAR_AT,
						.far_bytes = BYTES};
		}
		assert_int_equal(io_send(a->io, train, TRAIN, 1), TRAIN);
	}
	assert_int_equal(io_recv(b->io, pkts, BURST, 1), TRAIN * TRAINS);
	assert_memory_equal(to, memory, sizeof(to));
}

/* What the program has got back may hold anything, and not even a message that never completes gets it. */
ENDS_TEST(what_was_taken_back_does_not_get_to_its_place)
{
	static uint8_t memory[4 * PKT_FAR_BYTES_MIN], to[4 * PKT_FAR_BYTES_MIN], nothing[4 * PKT_FAR_BYTES_MIN];
	struct places places = {.to = to, .known = 4, .passes = true};
	struct pkt pkts[BURST];

	shm_set_placer(b->io, (struct shm_placer){.place = place, .ctx = &places});
	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	memset(memory, 5, sizeof(memory));
	assert_int_equal(send_far(a, B, memory, 4), 4);
	loan_take_back(loan_of(a), lot++);
	assert_int_equal(take_far(b, memory), 0);
	assert_int_equal(places.asked, 4);
	assert_memory_equal(to, nothing, sizeof(to));
	/* The same holds where whole packets come before it. */
	places.asked = 0;
	send(a, B, 1, 6);
	assert_int_equal(send_far(a, B, memory, 4), 4);
	loan_take_back(loan_of(a), lot);
	assert_int_equal(io_recv(b->io, pkts, BURST, 1), 6);
	assert_int_equal(places.asked, 4);
	assert_memory_equal(to, nothing, sizeof(to));
}

/* And what the other process has read before is its own: nothing of it is taken back. */
ENDS_TEST(newer_lots_are_not_taken_back)
{
	static uint8_t memory[10 * PKT_FAR_BYTES_MIN];

	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	assert_int_equal(send_far(a, B, memory, 3), 3);
	assert_int_equal(take_far(b, memory), 3);
	lot++;
	assert_int_equal(send_far(a, B, memory, 10), 10);
	loan_take_back(loan_of(a), lot - 1);
	assert_int_equal(loan_of(a)->taken_back, 0);
	lot++;
	assert_int_equal(send_far(a, B, memory, 10), 10);
	loan_take_back(loan_of(a), lot - 1);
	assert_int_equal(take_far(b, memory), 10);
	assert_int_equal(b->counters.shm_far_failed, 1);
}

/* The other end of a ring that this one has given up reads nothing any more. */
ENDS_TEST(what_a_lost_ring_has_is_taken_back)
{
	static uint8_t memory[10 * PKT_FAR_BYTES_MIN];

	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	assert_int_equal(send_far(a, B, memory, 10), 10);
	shm_lose(a->io, B, 1);
	assert_int_equal(take_far(b, memory), 0);
	assert_int_equal(b->counters.shm_far_failed, 1);
}

/* The program has unmapped where it belongs: the packets are whole, so that the nic can answer. */
ENDS_TEST(a_place_that_is_not_there_loses_nothing)
{
	static uint8_t memory[10 * PKT_FAR_BYTES_MIN];
	struct places places = {.to = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
				.known = 10};

	memset(memory, 5, sizeof(memory));
	assert_int_equal(munmap(places.to + 4096, 4096), 0);
	shm_set_placer(b->io, (struct shm_placer){.place = place, .ctx = &places});
	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	assert_int_equal(send_far(a, B, memory, 10), 10);
	assert_int_equal(take_far(b, memory), 10);
	assert_int_equal(b->counters.shm_far_failed, 0);
	munmap(places.to, 4096);
	munmap(places.to + 2 * 4096, 4096);
}

/* Memory that packets leave out, and the other end's mark. */
struct left_out {
	uint8_t *memory;
	void *mark;
};

static void change_memory(void *ctx)
{
	const struct left_out *l = ctx;

	memset(l->memory, 9, 10 * PKT_FAR_BYTES_MIN);
}

static void change_memory_and_mark(void *ctx)
{
	const struct left_out *l = ctx;

	change_memory(ctx);
	mmap(l->mark, sizeof(struct shm_mark), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* Sends packets that leave their payload out, and gives the id of their sender to another process before they are
 * taken. */
static void take_after(void (*change)(void *ctx), struct places *places)
{
	static uint8_t memory[10 * PKT_FAR_BYTES_MIN];
	struct end *a = end_new(A), *b = end_new(B);
	const struct left_out left_out = {memory, ((struct shm *)a->io)->mark};
	struct shm_process *sender;
	pid_t stranger;

	shm_set_placer(b->io, (struct shm_placer){.place = place, .ctx = places});
	connect_ends(a, A, b, B);
	pass(a, B, b, 0, 1);
	stranger = stranger_new(change, (void *)&left_out);
	assert_int_equal(send_far(a, B, memory, 10), 10);
	sender = &((struct shm *)b->io)->in[A].process;
	assert_int_equal(sender->pid, getpid());
	sender->pid = stranger;
	assert_int_equal(take_far(b, memory), 0);
	assert_int_equal(b->counters.shm_far_failed, 1);
	stranger_end(stranger);
	end_free(a);
	end_free(b);
}

/* An id is a new process's, or a new image's: nothing of its memory arrives, not even at the place where the payload
 * belonged. */
TEST(another_process_is_not_read)
{
	static uint8_t to[10 * PKT_FAR_BYTES_MIN], none[sizeof(to)];

	take_after(change_memory, &(struct places){.to = to, .known = 10});
	assert_memory_equal(to, none, sizeof(to));
}

TEST(what_is_at_the_same_place_is_no_mark)
{
	static uint8_t to[10 * PKT_FAR_BYTES_MIN];

	take_after(change_memory_and_mark, &(struct places){.to = to, .known = 10});
}

/* A process that may be read may not be later (prctl(PR_SET_DUMPABLE)): it learns that, and sends whole packets. */
ENDS_TEST(who_is_read_no_more_learns_it)
{
	static uint8_t memory[10 * PKT_FAR_BYTES_MIN];

	connect_ends(a, A, b, B);
	send(a, B, 0, 1);
	assert_true(look_at(a, B, 1)->reads);
	expect(b, 0, 1);
	((struct shm *)b->io)->in[A].process.pid = -1;
	assert_int_equal(send_far(a, B, memory, 10), 10);
	assert_int_equal(take_far(b, memory), 0);
	assert_int_equal(send_far(a, B, memory, 10), 10);
	assert_int_equal(a->counters.shm_tx_far, 10);
	assert_int_equal(a->counters.shm_dropped, 10);
	assert_true(look_at(a, B, 1)->reached);
	assert_false(look_at(a, B, 1)->reads);
	pass(a, B, b, 3, 1);
}
