/* SPDX-License-Identifier: BSD-2-Clause */
/* Pieces that a stream is lent: they arrive as they were, come back when nobody needs them, and always come back. */
#include "support/tcp_ends.h"
#include "support/test.h"

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { PIECE = 32 << 10, AROUND = 20, PIECES = 32, END = 4 };

static uint8_t memory[PIECES][PIECE];
static uint8_t *expected; /* what A has sent */
static size_t expected_len, expected_room;
static uint32_t lent;

static void expect(const uint8_t *data, size_t len)
{
	append(&expected, &expected_len, &expected_room, data, len);
}

static void fill(uint8_t *to, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)((i + seed) * 2654435761u >> 13);
}

/* One burst, as of an FPDU: a few bytes, the piece, and a few more. False: there is no room. */
static bool lend(const uint8_t *piece, size_t len)
{
	static uint8_t around[AROUND + END];
	struct flow f = loopback();
	struct pkt p[3] = {{.data = around, .len = AROUND, .kind = PKT_BYTES, .flow = &f},
			   {.data = (uint8_t *)(uintptr_t)piece, .len = (uint32_t)len, .kind = PKT_LENT, .flow = &f},
			   {.data = around + AROUND, .len = END, .kind = PKT_BYTES, .flow = &f}};

	if (a.room < len + sizeof(around))
		return false;
	a.room -= (uint32_t)(len + sizeof(around));
	fill(around, sizeof(around), lent++);
	f.flow_label = a.stream;
	expect(around, AROUND);
	expect(piece, len);
	expect(around + AROUND, END);
	assert_int_equal(io_send(a.io, p, 3, 0), 3);
	return true;
}

/*
 * Whether the kernel takes every note: what they lock counts together with all else that processes of this user have
 * locked. It lets only who needs no allowance lock a page without one.
 */
static bool notes_are_certain(void)
{
	struct rlimit limit, none;
	bool certain;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	none = (struct rlimit){0, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	certain = limit.rlim_cur == RLIM_INFINITY || !mlock(memory, 1);
	munlock(memory, 1);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	return certain;
}

/* A claim that holds only where the kernel takes every note; where that is not certain, a test that fails is skipped.
 */
static void assert_noted(bool condition)
{
	if (!condition && !notes_are_certain())
		skip();
	assert_true(condition);
}

static int lent_set_up(void **state)
{
	expected_len = 0;
	lent = 0;
	set_up(state);
	connect_them();
	return 0;
}

static int lent_tear_down(void **state)
{
	free(expected);
	expected = NULL;
	expected_room = 0;
	return tear_down(state);
}

static void got_as_sent(void)
{
	assert_int_equal(b.got_len, expected_len);
	assert_memory_equal(b.got, expected, expected_len);
}

/* Until the kernel takes no more, as B does not read. Pieces are in the kernel and in the backlog. */
static void lend_until_full(void)
{
	for (int idle = 0; idle < 200;) {
		fill(memory[lent % PIECES], PIECE, lent);
		idle = lent < PIECES && lend(memory[lent % PIECES], PIECE) ? 0 : idle + 1;
		receive(&a, 0);
	}
	assert_noted(a.back < lent);
}

#define CASE(name) TEST_WITH(name, lent_set_up, lent_tear_down)

/* A program that writes something else where a piece was, as soon as it is back. */
CASE(what_is_back_may_be_changed)
{
	uint32_t returned;

	for (int always = 0; always < 2; always++) {
		lent_tear_down(state);
		zerocopy_always = always;
		lent_set_up(state);
		returned = 0;
		for (int turns = 0; lent < 500; turns++) {
			assert_true(turns < 1000000);
			while (lent < 500 && lent - a.back < PIECES) {
				size_t len = PIECE / 2 + lent * 977 % (PIECE / 2);

				fill(memory[lent % PIECES], len, lent * 7);
				if (!lend(memory[lent % PIECES], len))
					break;
			}
			receive(&a, 0);
			if (turns % 3 == 0)
				receive(&b, 0);
			for (; returned < a.back; returned++)
				memset(memory[returned % PIECES], 0x55, PIECE);
		}
		UNTIL(a.back == lent && b.got_len == expected_len);
		got_as_sent();
		assert_noted(a.counters.tx_zerocopy > 0);
		/* Loopback's packets are the receiver's, so they are copied. */
		assert_noted(a.counters.tx_zerocopy_copied > 0);
		assert_noted(a.copied == !always);
		assert_noted(always ? a.counters.tx_zerocopy >= lent : a.counters.tx_zerocopy < lent);
		UNTIL(a.room == TCP_ROOM_BYTES);
	}
}

CASE(a_peer_that_does_not_read_keeps_pieces)
{
	lend_until_full();
	for (int i = 0; i < 100; i++)
		receive(&a, 0);
	assert_noted(a.back < lent);
	assert_true(tcp_leaving(a.io).bytes >= PIECE);
	UNTIL(b.got_len == expected_len && a.back == lent);
	got_as_sent();
	assert_int_equal(tcp_leaving(a.io).bytes, 0);
}

CASE(a_fin_waits_behind_pieces)
{
	lend_until_full();
	send_kind(&a, PKT_FIN, NULL, 0);
	UNTIL(b.fin);
	got_as_sent();
	UNTIL(a.back == lent);
	send_kind(&b, PKT_FIN, NULL, 0);
	UNTIL(a.fin && !tcp_streams(a.io));
	assert_false(a.reset);
}

/* Both directions have ended, and the stream goes when all is back. */
CASE(a_stream_that_is_over_waits_for_pieces)
{
	send_kind(&b, PKT_FIN, NULL, 0);
	UNTIL(a.fin);
	lend_until_full();
	send_kind(&a, PKT_FIN, NULL, 0);
	receive(&a, 0);
	assert_int_equal(tcp_streams(a.io), 1);
	UNTIL(b.fin && a.back == lent);
	got_as_sent();
	receive(&a, 0);
	assert_int_equal(tcp_streams(a.io), 0);
	assert_false(a.reset);
}

/* A prefix of what was sent; then the memory is changed, and nothing of that comes. */
static void got_no_changed_byte(void)
{
	memset(memory, 0x55, sizeof(memory));
	UNTIL(b.reset || b.fin);
	assert_true(b.got_len <= expected_len);
	assert_memory_equal(b.got, expected, b.got_len);
}

CASE(a_reset_is_answered_when_all_is_back)
{
	lend_until_full();
	send_kind(&a, PKT_RESET, NULL, 0);
	send_kind(&a, PKT_RESET, NULL, 0); /* harmless */
	for (int i = 0; !a.reset && i < PATIENCE_MS; i++)
		receive(&a, 1);
	assert_int_equal(a.reset, ECONNRESET + 1);
	assert_int_equal(tcp_streams(a.io), 0);
	got_no_changed_byte();
}

/* Behind a FIN, which a reset without pieces would leave to the kernel. */
CASE(a_reset_takes_pieces_back_behind_a_fin)
{
	lend_until_full();
	/* All is the kernel's. */
	for (int i = 0; a.room < TCP_ROOM_BYTES && i < PATIENCE_MS; i++) {
		receive(&a, 0);
		if (i % 50 == 0)
			receive(&b, 0);
	}
	assert_int_equal(a.room, TCP_ROOM_BYTES);
	assert_noted(a.back < lent);
	send_kind(&a, PKT_FIN, NULL, 0);
	send_kind(&a, PKT_RESET, NULL, 0);
	for (int i = 0; !a.reset && i < PATIENCE_MS; i++)
		receive(&a, 1);
	assert_int_equal(a.reset, ECONNRESET + 1);
	got_no_changed_byte();
}

CASE(a_peer_that_resets_gives_pieces_back)
{
	lend_until_full();
	send_kind(&b, PKT_RESET, NULL, 0);
	UNTIL(a.reset);
	assert_int_equal(tcp_streams(a.io), 0);
}

/* The program has unmapped it, though it is lent: the bytes cannot be made up. */
CASE(memory_that_is_gone_is_the_end)
{
	uint8_t *gone = mmap(NULL, 2 * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(gone != MAP_FAILED);
	lend(memory[0], PIECE);
	UNTIL(a.back == 1);
	expect(gone, PIECE); /* while it is there */
	munmap(gone, 2 * PIECE);
	send_kind(&a, PKT_LENT, gone, PIECE);
	UNTIL(a.reset && (b.reset || b.fin));
	assert_int_equal(a.reset, EFAULT + 1);
	assert_int_equal(tcp_streams(a.io), 0);
}

CASE(more_pieces_than_agreed_are_an_error)
{
	for (uint32_t i = 0; i < TCP_LENT_MAX + 1; i++)
		send_kind(&a, PKT_LENT, memory[i % PIECES], PIECE); /* whatever room there is */
	for (int i = 0; !a.reset && a.back <= TCP_LENT_MAX && i < PATIENCE_MS; i++)
		receive(&a, 1);
	assert_noted(a.reset == ENOBUFS + 1);
	assert_int_equal(tcp_streams(a.io), 0);
}

/* The kernel's notes are memory that is locked, of which the process may have none. */
CASE(a_kernel_that_takes_no_note_copies)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2], less[2];
	struct rlimit limit, none;

	assert_int_equal(syscall(SYS_capget, &head, caps), 0);
	memcpy(less, caps, sizeof(less));
	less[0].effective &= ~(1u << CAP_IPC_LOCK);
	assert_int_equal(syscall(SYS_capset, &head, less), 0);
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	none = (struct rlimit){0, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	for (uint32_t i = 0; i < 100;) {
		fill(memory[i % PIECES], PIECE, i);
		if (i - a.back < PIECES && lend(memory[i % PIECES], PIECE))
			i++;
		receive(&a, 0);
		receive(&b, 0);
	}
	UNTIL(a.back == lent && b.got_len == expected_len);
	got_as_sent();
	assert_int_equal(a.counters.tx_zerocopy, 0);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	assert_int_equal(syscall(SYS_capset, &head, caps), 0);
}

__attribute__((constructor)) static void lend_always(void)
{
	zerocopy_always = true;
}
