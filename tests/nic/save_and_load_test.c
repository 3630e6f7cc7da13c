/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A nic as bytes (nic_save(), nic_load()). The swarm judges that one that was loaded goes on as it would have
 * (tests/nic/swarm.c); here are the types of queue pair that it lacks, objects that have no traffic, and images that are
 * refused.
 */
#include <errno.h>

#include "duo/sim.h"
#include "nic/traffic.h"
#include "transport/qp.h"
#include "wire/crc32.h"

enum { SEEDS = 6, STEP_NS = 700 };

static uint64_t trace_of(const struct traffic *t, uint64_t seed, uint32_t reload_of)
{
	struct duo *d = traffic_start(t, seed);
	uint64_t trace;

	d->reload_of = reload_of;
	duo_idle(d);
	assert_int_equal(d->reloads != 0, reload_of != 0);
	trace = d->trace;
	duo_destroy(d);
	return trace;
}

TEST(every_type_goes_on_as_if_it_had_not_been_loaded)
{
	for (int i = 0; i < TRAFFICS; i++) {
		for (uint64_t seed = 1; seed <= SEEDS; seed++)
			assert_int_equal(trace_of(&traffics[i], seed, 3), trace_of(&traffics[i], seed, 0));
	}
}

/* An image in the middle of the traffic of one type. */
static struct nic_image image_of(struct duo *d)
{
	struct nic_image image;

	duo_run_for(d, 5 * STEP_NS);
	assert_int_equal(nic_save(d->host[DUO_A].nic, duo_now(&d->host[DUO_A]), &image), 0);
	return image;
}

static int load(struct duo_host *h, const struct nic_image *image)
{
	struct nic *nic;
	int err = nic_load(&h->config, image, duo_now(h), &nic);

	if (!err)
		nic_destroy(nic);
	return err;
}

static void fix_crc(struct nic_image *image)
{
	uint32_t crc = crc32_ieee(0, image->bytes, image->size - 4);

	memcpy(image->bytes + image->size - 4, &crc, 4);
}

TEST(an_image_with_a_wrong_byte_is_refused)
{
	for (int i = 0; i < TRAFFICS; i++) {
		struct duo *d = traffic_start(&traffics[i], 1);
		struct nic_image image = image_of(d);
		int64_t blocks = d->host[DUO_A].heap.blocks;

		assert_int_equal(load(&d->host[DUO_A], &image), 0);
		for (size_t at = 0; at < image.size; at += 1 + at / 64) {
			image.bytes[at] ^= 0x10;
			assert_int_equal(load(&d->host[DUO_A], &image), -EINVAL);
			image.bytes[at] ^= 0x10;
		}
		assert_int_equal(d->host[DUO_A].heap.blocks, blocks);
		nic_image_free(&image);
		duo_idle(d);
		duo_destroy(d);
	}
}

TEST(a_cut_image_is_refused_and_leaks_nothing)
{
	struct duo *d = traffic_start(&traffics[1], 1);
	struct nic_image image = image_of(d);
	size_t size = image.size;
	int64_t blocks = d->host[DUO_A].heap.blocks;

	for (image.size = 0; image.size < size; image.size += 1 + image.size / 50) {
		if (image.size >= 4)
			fix_crc(&image);
		assert_int_equal(load(&d->host[DUO_A], &image), -EINVAL);
		assert_int_equal(d->host[DUO_A].heap.blocks, blocks);
	}
	nic_image_free(&image);
	duo_idle(d);
	duo_destroy(d);
}

TEST(an_image_is_of_the_nic_that_is_described)
{
	struct duo *d = traffic_start(&traffics[0], 1);
	struct duo_host *h = &d->host[DUO_A];
	struct nic_image image = image_of(d);

	h->config.qpn_slot++;
	assert_int_equal(load(h, &image), -EINVAL);
	h->config.qpn_slot--;
	h->config.transport.protocol = PROTOCOL_VEROCE;
	assert_int_equal(load(h, &image), -EINVAL);
	h->config.transport.protocol = PROTOCOL_IWARP;
	assert_int_equal(load(h, &image), -EOPNOTSUPP);
	h->config.transport.protocol = PROTOCOL_ROCEV2;
	image.owner_count--;
	assert_int_equal(load(h, &image), -EINVAL);
	image.owner_count++;
	for (int64_t left = 0; load(h, &image); left++)
		h->heap.gets_left = left; /* each allocation fails once */
	h->heap.gets_left = -1;
	nic_image_free(&image);
	duo_idle(d);
	duo_destroy(d);
}

TEST(what_is_lent_comes_back_first)
{
	struct sim s;
	_Atomic uint64_t told = 0, given_back = 0;
	struct loan loan = {.told = &told, .given_back = &given_back};
	struct duo_options o = duo_options();
	struct nic_image image;

	s = sim_start(&o);
	s.a->qp->peer->borrower.loan = &loan;
	s.a->qp->lot = 5;
	assert_int_equal(nic_save(s.a->host->nic, s.duo->now_ns, &image), -EBUSY);
	given_back = 5;
	assert_int_equal(nic_save(s.a->host->nic, s.duo->now_ns, &image), 0);
	nic_image_free(&image);
	s.a->qp->peer->borrower.loan = NULL;
	sim_end(&s);
}
