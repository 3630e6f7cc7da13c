/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages between the ends of a line. A nic without payload carries a message's length and its immediate; the
 * bytes wait here under the number that is the immediate. A message that was lost is dropped when its place is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/sdr_line_state.h"
#include "sim/sdr_words.h"

enum { WORDS_UNDER_WAY = 1 << 14 };

struct sdr_word {
	uint32_t number;
	uint32_t len;
	uint8_t bytes[];
};

struct sdr_word **sdr_words_create(void)
{
	return calloc(WORDS_UNDER_WAY, sizeof(struct sdr_word *));
}

void sdr_words_destroy(struct sdr_word **words)
{
	for (uint32_t i = 0; words && i < WORDS_UNDER_WAY; i++)
		free(words[i]);
	free(words);
}

uint32_t sdr_words_put(struct sdr_word **words, uint32_t number, const struct control *c, const uint8_t *payload)
{
	struct sdr_word **at = &words[number % WORDS_UNDER_WAY], *w;
	uint32_t len = CONTROL_HEADER_LEN + c->length;

	free(*at);
	*at = w = malloc(sizeof(*w) + len);
	if (!w)
		return 0;
	w->number = number;
	w->len = len;
	control_encode(w->bytes, c);
	memcpy(w->bytes + CONTROL_HEADER_LEN, payload, c->length);
	return len;
}

const uint8_t *sdr_words_get(struct sdr_word *const *words, uint32_t number, uint32_t *len)
{
	const struct sdr_word *w = words[number % WORDS_UNDER_WAY];

	if (!w || w->number != number)
		return NULL;
	*len = w->len;
	return w->bytes;
}

void sdr_line_say(struct sdr_line *l, enum sdr_end end, const struct control *c, const uint8_t *payload)
{
	struct host *at = end == SDR_SENDING ? l->from : l->to, *peer = end == SDR_SENDING ? l->to : l->from;
	struct qp *qp = l->qps[2 * (l->qp_count - 1) + end];
	struct host_memory here = host_memory(at), there = host_memory(peer);
	struct send_wqe *w = sq_slot(qp_sq(qp), 0);
	uint32_t number = l->words_said++, len = sdr_words_put(l->words, number, c, payload);

	if (!w || !len)
		return; /* lost, as any word may be */
	*w = (struct send_wqe){
		.opcode = WR_WRITE_IMM,
		.flags = WR_SIGNALED,
		.num_sge = 1,
		.length = len,
		.imm_or_key = number,
		.rkey = there.key,
		.remote_va = there.va,
	};
	w->sge[0] = (struct wqe_sge){.addr = here.va, .len = len, .lkey = here.key};
	sq_post(qp_sq(qp), 1);
	nic_doorbell(host_nic(at), qp);
	l->counts->words++;
	host_kick(at);
}
