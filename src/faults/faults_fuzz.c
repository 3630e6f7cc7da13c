/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text is refused with a reason or read as rules; these are then given QPs, packets, requests, calls and time in an
 * order that the bytes behind the text choose. Deeds come to an end, and the log stays within its bounds.
 */
#include <string.h>

#include "faults/faults.h"
#include "support/fuzz_input.h"

static void *get(void *ctx, size_t bytes)
{
	return calloc(1, bytes);
}

static void put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

static const struct alloc heap = {.get = get, .put = put};

static void do_deeds(struct faults *f, uint64_t now_ns)
{
	struct fault_deed deed;
	unsigned n = 0;

	while (faults_next(f, now_ns, &deed)) {
		must(n++ < 100000 && deed.action < FAULT_ACTIONS);
		if (deed.action == FAULT_COMPLETE && deed.qp)
			faults_wait_wr(f, &deed);
		faults_done(f, &deed, FAULT_DONE, now_ns);
	}
	must(faults_due_ns(f) > now_ns);
}

static void step(struct faults *f, struct input *in, uint64_t *now_ns)
{
	uint8_t bytes[64];
	struct flow flow = {.src = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = next_byte(in) & 3},
			    .dst = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}};
	struct pkt p = {.data = bytes, .flow = &flow};
	struct fault_verdict v;
	uint32_t qpn = next_byte(in) & 7;

	switch (next_byte(in) % 7) {
	case 0: faults_qp_made(f, next_byte(in) + 1u, qpn); break;
	case 1: faults_qp_peer(f, qpn, flow.src, next_byte(in) & 7); break;
	case 2: faults_qp_gone(f, qpn); break;
	case 3: faults_wr(f, qpn, *now_ns); break;
	case 4: faults_call(f, next_byte(in) % FAULT_CALLS, *now_ns); break;
	case 5: *now_ns += (uint64_t)next_byte(in) * 100000000; break;
	case 6:
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = i < 12 ? next_byte(in) : 0;
		bytes[5] = bytes[6] = 0;
		bytes[7] &= 7;
		p.len = next_byte(in) % sizeof(bytes);
		faults_packet(f, &p, next_byte(in) & 1, *now_ns, &v);
		break;
	}
	faults_rate_bps(f, true);
	if (next_byte(in) & 1)
		do_deeds(f, *now_ns);
}

static struct fault_log fault_log, copy;
static struct fault_script script;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *zero = memchr(data, 0, size);
	size_t len = zero ? (size_t)(zero - data) : size;
	struct input in = {data + len, size - len};
	struct fault_host host = {.devices = 2, .iwarp = 2};
	char why[FAULT_WHY_BYTES] = "", shown[FAULT_SHOWN_BYTES];
	uint64_t now_ns = 1000000000;
	struct faults *f;

	fault_script_init(&script);
	if (fault_script_read(&script, "f", (const char *)data, len, false, &host, why, sizeof(why))) {
		must(!strncmp(why, "f:", 2) && strlen(why) < sizeof(why) && !script.count);
		return 0;
	}
	memset(&fault_log, 0, sizeof(fault_log));
	f = faults_new(&heap, &fault_log, 0, now_ns);
	must(f && !faults_add(f, &script, now_ns));
	while (in.size)
		step(f, &in, &now_ns);
	do_deeds(f, now_ns);
	must(fault_log_read(&fault_log, &copy) && copy.rule_count <= FAULT_RULES_MAX);
	for (uint32_t i = 0; i < FAULT_RECORDS_MAX; i++)
		fault_shown(&copy.records[i], shown);
	faults_free(f);
	return 0;
}
