/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the corpus of veroce_input_fuzz, one file a forgery:
 *
 *     veroce_input_corpus tests/veroce/corpus/veroce_input_fuzz
 *
 * In each, A has requests of all kinds on their way to B, some time passes, the forgery comes, and
 * time passes again. What else lies in that folder was found by fuzzing.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* As veroce_input_fuzz.c has them. */
enum kind {
	REPLAY,
	ACK,
	SACK,
	CAPS,
	MESSAGE,
	REQUEST,
	RESULT,
	CONTROL,
	RAW,
	POST,
	RECV,
	RUN,
	FAULTS,
	STATE,
	KEYS,
	MEMORY
};
enum { AT_B = 1 << 4, STRANGER = 1 << 6, OWN = 1 << 7 };
enum { SEND, WRITE, READ, FETCH_ADD, SEND_INV, WRITE_IMM, CMP_SWAP, SEND_IMM };

/* Codes of its offset(). */
enum { BACK_1 = 0xbf, BACK_3 = 0xbd, AHEAD_128 = 0xc5, AHEAD_65536 = 0xd1, AHEAD_HALF = 0xd9 };

enum { STEPS_MAX = 40 };

struct row {
	const char *name;
	uint8_t mode[3];
	uint8_t n;
	uint8_t bytes[STEPS_MAX];
};

#define STEPS(...)                        \
	sizeof((uint8_t[]){__VA_ARGS__}), \
	{                                 \
		__VA_ARGS__               \
	}

/* Flags 0, path 0, ECT(0): how a forged packet ends. */
#define SENT    0, 0x20
#define TRIMMED 0, 0x60

static const struct row rows[] = {
	{"nothing", {0}, STEPS(RUN, 1)},
	{"replays", {1}, STEPS(REPLAY | AT_B, 9, 0, REPLAY, 12, 0, REPLAY | AT_B | OWN, 10, BACK_3, 0)},
	{"replay_changed", {1}, STEPS(REPLAY | AT_B | OWN, 9, 0, 2, 12, 1, 30, 0xff)},
	{"replay_of_a_stranger", {1}, STEPS(REPLAY | AT_B | STRANGER, 9, 0)},
	{"ack_unsent", {1}, STEPS(ACK, 0, AHEAD_128, 0, 0, SENT)},
	{"ack_old", {1}, STEPS(ACK, 0, BACK_3, 0, 0, SENT)},
	{"ack_short_msn", {1}, STEPS(ACK, 0, 12, BACK_3, 0, SENT)},
	{"ack_msn_jump", {1}, STEPS(ACK, 0, 2, AHEAD_128, 0, SENT)},
	{"ack_responses", {1}, STEPS(ACK | AT_B | OWN, 0, 1, 1, 0, SENT)},
	{"nak_drop", {1}, STEPS(ACK, 1, 1, 0, 0, SENT)},
	{"nak_invalid", {1}, STEPS(ACK, 2, 1, 0, 0, SENT)},
	{"nak_access", {1}, STEPS(ACK, 3, 2, 0, 0, SENT)},
	{"nak_operational", {1}, STEPS(ACK, 4, 3, 0, 0, SENT)},
	{"nak_rnr", {1}, STEPS(ACK, 6, 1, 0, 0, SENT)},
	{"nak_reserved", {1}, STEPS(ACK, 9, 1, 0, 0, SENT)},
	{"nak_responses", {1}, STEPS(ACK | AT_B | OWN, 2, 0, 0, 0, SENT)},
	{"sack_some", {1}, STEPS(SACK, 0, 0, 0x1f, 0, 0, 20, 0x55, 0, SENT)},
	{"sack_beyond", {1}, STEPS(SACK, 0, 1, 0x1f, 0, AHEAD_65536, 128, 255, 255, AHEAD_HALF, 200, 255, 255, SENT)},
	{"sack_base", {0x35}, STEPS(SACK, 0, 0, 0x1f, 0, 2, 128, 0x10, 0x10, SENT)},
	{"sack_irn", {0x09}, STEPS(SACK, 0, 0, 0x1f, 0, 4, 1, 1, 0, SENT)},
	{"sack_responses", {1}, STEPS(SACK | AT_B | OWN, 0, 0, 0x1f, 0, 1, 20, 0x55, 0, SENT)},
	{"caps_stranger", {1}, STEPS(CAPS | STRANGER, 0, 3, 3, 3, 0, 0, 1, SENT)},
	{"caps_narrow", {1}, STEPS(CAPS, 0, 3, 0, 1, 1, 1, 1, SENT)},
	{"caps_wide", {1}, STEPS(CAPS, 0, 3, 0xff, 6, AHEAD_HALF, AHEAD_HALF, 0, SENT)},
	{"caps_profile_0", {1, 3}, STEPS(CAPS, 0, 0, 0, 1, 1, 1, 1, SENT)},
	{"caps_old_life", {1}, STEPS(CAPS, 1, 3, 0, 1, 1, 1, 1, 1, SENT)},
	{"send_next", {1}, STEPS(MESSAGE | AT_B, 4, 0, 0, 0, 0, 5, 0, SENT)},
	{"send_rqmsn_jump", {1}, STEPS(MESSAGE | AT_B, 4, 3, 0, AHEAD_128, 0, 5, 0, SENT)},
	{"send_po_beyond", {1}, STEPS(MESSAGE | AT_B, 1, 3, 0, 1, 0x5f, 0, 0, SENT)},
	{"send_inv_early", {1}, STEPS(MESSAGE | AT_B, 13, 9, 3, 1, 0, 5, 0, SENT)},
	{"write_beyond_region", {1}, STEPS(MESSAGE | AT_B, 10, 2, 0, 0, 0, 80, 0xfe, SENT)},
	{"write_before_region", {1}, STEPS(MESSAGE | AT_B, 10, 0, 0, 0, 0, 80, 0, SENT)},
	{"write_secret", {1}, STEPS(MESSAGE | AT_B, 10, 0, 0, 0, 0, 20, 0x81, SENT)},
	{"write_msn_jump", {1}, STEPS(MESSAGE | AT_B, 10, 0, 5, 0, 0, 20, 0x80, SENT)},
	{"write_beyond_window", {1, 4}, STEPS(MESSAGE | AT_B, 10, AHEAD_128, 5, 0, 0, 20, 0x80, SENT)},
	{"write_old_half", {1}, STEPS(MESSAGE | AT_B, 10, AHEAD_HALF, 5, 0, 0, 20, 0x80, SENT)},
	{"write_imm_early", {0x41}, STEPS(MESSAGE | AT_B, 9, 4, 1, 0, 2, 20, 0x80, SENT)},
	{"write_trimmed", {1, 0x60}, STEPS(MESSAGE | AT_B | OWN, 7, 2, 0, 0, 1, 0, 0x80, TRIMMED)},
	{"write_cut", {1}, STEPS(MESSAGE | AT_B | OWN, 7, 2, 0, 0, 1, 0, 0x80, SENT)},
	{"read_secret", {1}, STEPS(REQUEST | AT_B, 0, 0, 0, 1, 30, SENT)},
	{"read_everything", {1}, STEPS(REQUEST | AT_B, 0, 0, 0, 0x20, 255, SENT)},
	{"flush_secret", {1}, STEPS(REQUEST | AT_B, 0x0c, 0, 0, 1, 30, SENT)},
	{"flush_early", {1}, STEPS(REQUEST | AT_B, 0x2c, 5, 3, 0x20, 1, SENT)},
	{"flush_reserved", {1}, STEPS(REQUEST | AT_B, 0x4c, 0, 0, 0x20, 1, SENT)},
	{"word_early", {1}, STEPS(REQUEST | AT_B, 5, 5, 3, 0x20, 8, SENT)},
	{"word_short", {1}, STEPS(REQUEST | AT_B, 5, 0, 0, 0x20, 7, SENT)},
	{"flushes_and_words", {1}, STEPS(POST, 0x12, 60, POST, 0x13, 0, POST, WRITE, 200, POST, 0x12, 1, RUN, 200)},
	{"atomic_early", {1}, STEPS(REQUEST | AT_B, 2, 5, 3, 0x20, 0, SENT)},
	{"result_unasked", {1}, STEPS(RESULT, 3, 0, AHEAD_128, 0, 0, 0, SENT)},
	{"result_wrong_place", {1}, STEPS(RESULT, 1, 1, 0, 7, 0, 0, SENT)},
	{"result_wrong_length", {1}, STEPS(RESULT, 0, 0, 0, 0, 0, 4, SENT)},
	{"result_right", {1}, STEPS(RESULT, 0, 0, 0, 0, 0, 0, SENT)},
	{"result_atomic", {1}, STEPS(RESULT, 4, 2, 1, 0, 0, 0, SENT)},
	{"result_trimmed", {1, 0x60}, STEPS(RESULT | OWN, 0, 0, 0, 0, 0, 0, TRIMMED)},
	{"hold", {1}, STEPS(CONTROL, 0x14, 1, 0, 0, SENT)},
	{"hold_and_resume", {1}, STEPS(CONTROL, 0x14, 100, 0, 0, SENT, RUN, 1, CONTROL, 0x14, 0, 0, 0, SENT)},
	{"hold_of_a_stranger", {1}, STEPS(CONTROL, 0x1c, 1, 0, 0, SENT)},
	{"hold_answer", {1}, STEPS(CONTROL, 0x15, 1, 0, 0, SENT)},
	{"cnp", {0x81}, STEPS(CONTROL, 0, 1, 0, 0, SENT)},
	{"rtt_request", {1}, STEPS(CONTROL, 1, 200, 0, 5, SENT)},
	{"rtt_response", {1}, STEPS(CONTROL, 2, 1, 0, 5, SENT)},
	{"slow_packets", {1}, STEPS(CONTROL, 3, 0, 0, 0, SENT, CONTROL, 3, 0, 1, 0, SENT)},
	{"rocev2",
	 {1, 3},
	 STEPS(RAW | AT_B | OWN, 20, 4, 0x40, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0)},
	{"keys_change", {1}, STEPS(KEYS | AT_B, 0x10, KEYS, 1, KEYS, 8)},
	{"memory_ends", {1}, STEPS(MEMORY | AT_B, 0, POST, WRITE_IMM, 40, RUN, 200, MEMORY, 0, POST, READ, 60)},
	{"states", {1}, STEPS(STATE, 0x41, STATE | AT_B, 1, RUN, 200, STATE, 0x40, STATE | AT_B, 0xff)},
};

static void put(FILE *f, uint8_t b)
{
	fputc(b, f);
}

static void save(const char *dir, const struct row *row)
{
	static const uint8_t before[] = {POST, SEND, 40,       POST,      WRITE,       90,   POST,
					 READ, 60,   POST,     FETCH_ADD, 0,           POST, WRITE_IMM,
					 30,   POST, SEND_IMM, 10,        POST | AT_B, READ, 40};
	static const uint8_t losses[] = {FAULTS, 1, RUN | 6 << 4, 20};
	static const uint8_t after[] = {RUN | 7 << 4, 40, FAULTS, 0, POST, WRITE, 7, RUN | 7 << 4, 255};
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, row->name);
	f = fopen(path, "wb");
	if (!f) {
		perror(path);
		exit(1);
	}
	for (size_t i = 0; i < sizeof(row->mode); i++)
		put(f, row->mode[i]);
	for (size_t i = 0; i < sizeof(before); i++)
		put(f, before[i]);
	for (size_t i = 0; i < sizeof(losses); i++)
		put(f, losses[i]);
	for (size_t i = 0; i < row->n; i++)
		put(f, row->bytes[i]);
	for (size_t i = 0; i < sizeof(after); i++)
		put(f, after[i]);
	if (fclose(f)) {
		perror(path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		save(argv[1], &rows[i]);
	return 0;
}
