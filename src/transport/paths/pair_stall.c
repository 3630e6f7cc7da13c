/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a peer process last ran, as far as its answers prove it. Its socket is a queue: a process that has read one
 * packet has read all that were sent before. It may lose the processor between reading and acknowledging, so one proof
 * is not enough. A second proof, of a packet that was sent a while after the first proof arrived, shows that it ran on.
 */
#include "transport/paths/pair_stall.h"

#include "transport/config.h"

/* In terms of the shortest tail probe timeout, 2 ms where there are processes. */
enum {
	RUN_SHIFT = 2 /* a fourth of it: the peer ran on for at least as long; acknowledgements wait for less */
};

/* A later answer does not count: time stamps have 32 bits. */
enum { ANSWER_NS_MAX = 1 << 30 };

void stall_read(const struct transport_config *config, struct stall *st, uint64_t tx_ns, uint64_t now_ns)
{
	uint64_t run_ns = config->veroce.pto_ns_min >> RUN_SHIFT;

	st->asks = 0;
	if (st->ask_ns > now_ns + run_ns)
		st->ask_ns = now_ns + run_ns;
	if (tx_ns < st->told_ns + run_ns)
		return;
	st->ran_ns = st->read_ns;
	st->read_ns = tx_ns;
	st->told_ns = now_ns;
	st->ask_ns = now_ns + run_ns;
}

bool stall_answered(const struct transport_config *config, struct stall *st, uint32_t tx1, uint64_t now_ns)
{
	uint64_t asked_ns = st->asked_ns;
	uint32_t before_ns = (uint32_t)asked_ns - tx1;

	if (!asked_ns || before_ns > ANSWER_NS_MAX)
		return false;
	stall_read(config, st, asked_ns - before_ns, now_ns);
	return true;
}
