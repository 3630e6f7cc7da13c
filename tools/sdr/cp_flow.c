/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "sdr/cp.h"
#include "sdr/cp_flow.h"
#include "sdr/cp_wire.h"
#include "sdr/meet.h"

static uint8_t *place(const struct cp *cp, uint64_t message)
{
	return cp->memory + message % CP_DEPTH * CP_MESSAGE;
}

/* ---- the sending end */

uint8_t *cp_out_memory(const struct cp_out *o)
{
	return o->filled - o->there < CP_DEPTH ? place(o->cp, o->filled) : NULL;
}

void cp_out_add(struct cp_out *o, uint64_t bytes)
{
	XXH128_canonical_t digest;

	XXH128_canonicalFromHash(&digest, XXH3_128bits(place(o->cp, o->filled), bytes));
	cp_say(CP_DIGEST, &digest, sizeof(digest));
	o->bytes[o->filled++ % CP_DEPTH] = bytes;
	o->filled_bytes += bytes;
	if (!o->start_ns)
		o->start_ns = now_ns();
}

/* Says what is chosen, and why, when it is another code than before. */
static void say_choice(struct cp_out *o, const struct verbena_sdr_ec_attr *a, const char *reason)
{
	if (a->data == o->said.data && a->parity == o->said.parity)
		return;
	cp_progress_clear(&o->cp->progress);
	if (a->parity)
		cp_tell(o->cp, "%u parities with %u packets, at %.2g %% of loss: %s\n", a->parity, a->data,
			a->loss * 100, reason);
	else
		cp_tell(o->cp, "parities on demand alone: %s\n", reason);
	o->said = *a;
}

/* False: there is no credit for it yet. */
static bool start_one(struct cp_out *o)
{
	uint64_t n = o->started, left = o->all_bytes > o->filled_bytes ? o->all_bytes - o->filled_bytes : 0;
	struct verbena_sdr_block b = {
		.address = place(o->cp, n), .length = o->bytes[n % CP_DEPTH], .lkey = o->cp->lkey};
	struct verbena_sdr_ec_attr attr = {0};
	const char *reason;
	int r = scheme_send(o->cp->qp, &o->cp->way, &b, left, &attr, &reason, &o->send[n % CP_DEPTH]);

	if (r == VERBENA_SDR_ERROR)
		die("sending: %s", strerror(errno));
	if (r)
		return false;
	if (attr.data)
		say_choice(o, &attr, reason);
	o->started++;
	return true;
}

/* False: the oldest one has not arrived yet. */
static bool finish_one(struct cp_out *o)
{
	bool done;

	if (scheme_poll(&o->cp->way, &o->send[o->there % CP_DEPTH], &done))
		die("sending: %s", errno == ETIMEDOUT ? "the peer does not answer any more" : strerror(errno));
	if (!done)
		return false;
	o->there_bytes += o->bytes[o->there++ % CP_DEPTH];
	if (!scheme_learn_found(&o->cp->way, o->cp->qp) && o->there > CP_DEPTH)
		scheme_learn(&o->cp->way, o->there_bytes - o->start_bytes, now_ns() - o->start_ns);
	return true;
}

bool cp_out_turn(struct cp_out *o)
{
	bool any = verbena_sdr_progress(o->cp->ctx);

	while (o->started < o->filled && start_one(o))
		any = true;
	while (o->there < o->started && finish_one(o))
		any = true;
	return any;
}

/* ---- the receiving end */

bool cp_in_post(struct cp_in *in, uint64_t bytes)
{
	struct verbena_sdr_recv_attr attr = {
		.address = place(in->cp, in->posted), .max_length = bytes, .lkey = in->cp->lkey};
	int r;

	if (in->posted - in->there == CP_DEPTH)
		return false;
	r = scheme_recv_post(in->cp->qp, &in->cp->way, &attr, &in->recv[in->posted % CP_DEPTH]);
	if (r == VERBENA_SDR_RETRY)
		return false;
	if (r)
		die("posting a receive: %s", strerror(errno));
	in->bytes[in->posted++ % CP_DEPTH] = bytes;
	return true;
}

bool cp_in_digest(struct cp_in *in, const uint8_t digest[16])
{
	if (in->digests - in->there == 2 * CP_DEPTH)
		return false;
	memcpy(in->digest[in->digests++ % (2 * CP_DEPTH)], digest, 16);
	return true;
}

const uint8_t *cp_in_take(struct cp_in *in, uint64_t *bytes, bool *right)
{
	uint64_t n = in->there;
	XXH128_canonical_t digest;
	bool done = false;

	if (n == in->posted || n == in->digests)
		return NULL;
	if (scheme_recv_poll(&in->cp->way, &in->recv[n % CP_DEPTH], &done))
		die("receiving: %s", strerror(errno));
	if (!done)
		return NULL;
	if (verbena_sdr_recv_complete(&in->recv[n % CP_DEPTH]))
		die("completing a receive: %s", strerror(errno));
	*bytes = in->bytes[n % CP_DEPTH];
	XXH128_canonicalFromHash(&digest, XXH3_128bits(place(in->cp, n), *bytes));
	*right = !memcmp(&digest, in->digest[n % (2 * CP_DEPTH)], sizeof(digest));
	return place(in->cp, n);
}

void cp_in_done(struct cp_in *in)
{
	in->there++;
}
