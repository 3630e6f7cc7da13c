/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that share a registry: members here are threads, or one thread in several roles. */

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "base/prng.h"
#include "cm/registry.h"
#include "support/test.h"

enum { MEMBERS = 3 };

static struct registry_page *page;
static struct registry member[MEMBERS];
static bool dead[REGISTRY_SLOTS];

static bool lives(void *ctx, uint32_t slot)
{
	return !dead[slot];
}

static void join(struct registry *r, uint32_t slot, uint32_t life)
{
	*r = (struct registry){.page = page, .slot = slot, .lives = lives};
	registry_join(r, life);
}

static int setup(void **state)
{
	page = mmap(NULL, registry_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	memset(dead, 0, sizeof(dead));
	for (uint32_t i = 0; i < MEMBERS; i++)
		join(&member[i], i * 40, i + 1);
	return 0;
}

static int teardown(void **state)
{
	munmap(page, registry_bytes());
	return 0;
}

static struct cm_addr address(uint8_t last, uint16_t port)
{
	return (struct cm_addr){
		.ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = last}, .port = port, .family = CM_IPV4};
}

static struct cm_addr any4(uint16_t port)
{
	return (struct cm_addr){.ip = {[10] = 0xff, [11] = 0xff}, .port = port, .family = CM_IPV4};
}

static struct cm_addr any6(uint16_t port)
{
	return (struct cm_addr){.port = port, .family = CM_IPV6};
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(a_port_is_ones_or_shared_as_within_a_process)
{
	const struct {
		struct registry_claim there, wanted;
		int err;
	} row[] = {
		{{.space = CM_SPACE_TCP, .addr = address(1, 80)},
		 {.space = CM_SPACE_TCP, .addr = address(1, 80)},
		 -EADDRINUSE},
		{{.space = CM_SPACE_TCP, .addr = address(1, 80)}, {.space = CM_SPACE_TCP, .addr = address(2, 80)}, 0},
		{{.space = CM_SPACE_TCP, .addr = address(1, 80)}, {.space = CM_SPACE_TCP, .addr = address(1, 81)}, 0},
		{{.space = CM_SPACE_TCP, .addr = address(1, 80)}, {.space = CM_SPACE_UDP, .addr = address(1, 80)}, 0},
		{{.space = CM_SPACE_IB, .addr = address(1, 80)},
		 {.space = CM_SPACE_IB, .addr = address(1, 80)},
		 -EADDRINUSE},
		{{.space = CM_SPACE_TCP, .addr = any4(80)},
		 {.space = CM_SPACE_TCP, .addr = address(1, 80)},
		 -EADDRNOTAVAIL},
		{{.space = CM_SPACE_TCP, .addr = address(1, 80)},
		 {.space = CM_SPACE_TCP, .addr = any6(80)},
		 -EADDRNOTAVAIL},
		{{.space = CM_SPACE_TCP, .addr = any4(80)}, {.space = CM_SPACE_TCP, .addr = any4(80)}, -EADDRNOTAVAIL},
		{{.space = CM_SPACE_TCP, .addr = any4(80), .afonly = true},
		 {.space = CM_SPACE_TCP, .addr = any6(80), .afonly = true},
		 0},
		{{.space = CM_SPACE_TCP, .addr = any4(80), .afonly = true},
		 {.space = CM_SPACE_TCP, .addr = any6(80)},
		 -EADDRNOTAVAIL},
		{{.space = CM_SPACE_TCP, .addr = address(1, 80), .reuse = true},
		 {.space = CM_SPACE_TCP, .addr = address(1, 80), .reuse = true},
		 0},
		{{.space = CM_SPACE_TCP, .addr = address(1, 80), .reuse = true},
		 {.space = CM_SPACE_TCP, .addr = address(1, 80)},
		 -EADDRINUSE},
		{{.space = CM_SPACE_TCP, .addr = address(1, 80), .reuse = true, .listening = true},
		 {.space = CM_SPACE_TCP, .addr = address(1, 80), .reuse = true},
		 -EADDRINUSE},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint32_t a, b;

		assert_int_equal(registry_bind(&member[0], &row[i].there, &a), 0);
		assert_int_equal(registry_bind(&member[1], &row[i].wanted, &b), row[i].err);
		if (row[i].err) {
			assert_int_equal(member[1].in_the_way, 0);
			assert_int_equal(b, REGISTRY_NO_ROW);
			registry_release(&member[0], a, false);
			assert_int_equal(registry_bind(&member[1], &row[i].wanted, &b), 0);
		} else {
			registry_release(&member[0], a, false);
		}
		registry_release(&member[1], b, false);
	}
}

CASE(who_shares_a_port_across_processes_may_not_listen)
{
	struct registry_claim c = {.space = CM_SPACE_TCP, .addr = address(1, 80), .reuse = true}, listens = c;
	uint32_t a, b;

	listens.listening = true;
	assert_int_equal(registry_bind(&member[0], &c, &a), 0);
	assert_int_equal(registry_bind(&member[1], &c, &b), 0);
	assert_int_equal(registry_change(&member[0], &a, &listens), -EADDRINUSE);
	registry_release(&member[1], b, false);
	assert_int_equal(registry_change(&member[0], &a, &listens), 0);
	assert_int_equal(registry_bind(&member[1], &c, &b), -EADDRINUSE);
	/* Flags that change after the bind count for later binds. */
	c.reuse = false;
	registry_release(&member[0], a, false);
	assert_int_equal(registry_bind(&member[0], &c, &a), 0);
	c.reuse = true;
	registry_amend(&member[0], a, &c);
	assert_int_equal(registry_bind(&member[1], &c, &b), 0);
}

CASE(ports_of_the_dead_are_free)
{
	struct registry_claim c = {.space = CM_SPACE_TCP, .addr = address(1, 80), .listening = true};
	uint32_t row;
	int fit;

	assert_int_equal(registry_bind(&member[0], &c, &row), 0);
	assert_true(registry_draw(&member[0], CM_SPACE_TCP, 81));
	assert_false(registry_draw(&member[1], CM_SPACE_TCP, 81));
	assert_int_equal(registry_listener(&member[1], CM_SPACE_TCP, c.addr.ip, c.addr.ip, 80, &fit), 0);
	dead[0] = true;
	assert_int_equal(registry_listener(&member[1], CM_SPACE_TCP, c.addr.ip, c.addr.ip, 80, &fit), REGISTRY_NOBODY);
	assert_int_equal(fit, 0);
	assert_int_equal(registry_bind(&member[1], &c, &row), 0);
	assert_true(registry_draw(&member[1], CM_SPACE_TCP, 81));
	assert_true(registry_is_gone(&member[1], 0));
	/* And of one whose slot another has by now. */
	dead[0] = false;
	join(&member[0], 0, 77);
	assert_int_equal(registry_bind(&member[0], &c, &row), -EADDRINUSE);
	join(&member[1], 40, 78);
	assert_int_equal(registry_bind(&member[0], &c, &row), 0);
	assert_true(registry_draw(&member[0], CM_SPACE_TCP, 81));
}

CASE(a_drawn_port_is_nobody_elses)
{
	struct registry_claim c = {.space = CM_SPACE_TCP, .addr = address(1, 90)};
	uint32_t row;

	assert_true(registry_draw(&member[0], CM_SPACE_TCP, 90));
	assert_int_equal(registry_bind(&member[1], &c, &row), -EADDRINUSE);
	assert_false(registry_draw(&member[1], CM_SPACE_TCP, 90));
	assert_true(registry_draw(&member[1], CM_SPACE_UDP, 90));
	registry_undraw(&member[0], CM_SPACE_TCP, 90);
	assert_int_equal(registry_bind(&member[1], &c, &row), 0);
	assert_false(registry_draw(&member[0], CM_SPACE_TCP, 90));
	registry_release(&member[1], row, false);
	assert_true(registry_draw(&member[0], CM_SPACE_TCP, 90));
}

CASE(the_best_listener_of_all_is_found)
{
	struct registry_claim wild6 = {.space = CM_SPACE_TCP, .addr = any6(80), .listening = true};
	struct registry_claim bound = {.space = CM_SPACE_TCP, .addr = address(1, 81)};
	struct cm_addr one = address(1, 80);
	uint32_t row;
	int fit;

	assert_int_equal(registry_listener(&member[0], CM_SPACE_TCP, one.ip, one.ip, 80, &fit), REGISTRY_NOBODY);
	assert_int_equal(registry_bind(&member[1], &wild6, &row), 0);
	assert_int_equal(registry_listener(&member[0], CM_SPACE_TCP, one.ip, one.ip, 80, &fit), 40);
	assert_int_equal(fit, 1);
	assert_int_equal(registry_listener(&member[1], CM_SPACE_TCP, one.ip, one.ip, 80, &fit),
			 REGISTRY_NOBODY); /* its own */
	assert_int_equal(registry_listener(&member[0], CM_SPACE_UDP, one.ip, one.ip, 80, &fit), REGISTRY_NOBODY);
	assert_int_equal(registry_bind(&member[2], &bound, &row), 0);
	assert_int_equal(registry_listener(&member[0], CM_SPACE_TCP, one.ip, one.ip, 81, &fit), REGISTRY_NOBODY);
	bound.listening = true;
	assert_int_equal(registry_change(&member[2], &row, &bound), 0);
	assert_int_equal(registry_listener(&member[0], CM_SPACE_TCP, one.ip, one.ip, 81, &fit), 80);
	assert_int_equal(fit, 3);
}

CASE(rows_end_and_it_is_said)
{
	struct registry_claim c = {.space = CM_SPACE_TCP, .addr = address(1, 1)};
	uint32_t row, last = 0;

	for (uint32_t i = 0; i < REGISTRY_ROWS; i++) {
		c.addr.port = (uint16_t)(1 + i);
		assert_int_equal(registry_bind(&member[0], &c, &last), 0);
	}
	c.addr.port++;
	assert_int_equal(registry_bind(&member[0], &c, &row), -ENOMEM);
	registry_release(&member[0], 5, false);
	assert_int_equal(registry_bind(&member[0], &c, &row), 0);
	assert_int_equal(row, 5);
}

CASE(requests_are_remembered_by_the_newest)
{
	registry_note(&member[1], 0x1234567890);
	assert_int_equal(registry_noted(&member[0], 0x1234567890), 40);
	assert_int_equal(registry_noted(&member[0], 0x9934567890), REGISTRY_NOBODY);
	registry_note(&member[2], 0x9934567890);
	assert_int_equal(registry_noted(&member[0], 0x1234567890), REGISTRY_NOBODY);
	registry_leave(&member[2]);
	assert_int_equal(registry_noted(&member[0], 0x9934567890), REGISTRY_NOBODY);
}

static struct registry_will will_of(uint32_t number)
{
	return (struct registry_will){.flow = {.src = {1, [15] = 2}, .dst = {3, [15] = 4}, .ifindex = 7},
				      .local_comm_id = number,
				      .remote_comm_id = ~number,
				      .remote_qpn = number & 0xffffff};
}

CASE(the_dead_ones_wills_are_carried_out_once)
{
	struct registry_sweep s = {0}, again = {0};
	struct registry_will w, first = will_of(1), second = will_of(2);
	uint32_t dropped;

	registry_make_will(&member[1], &first);
	dropped = registry_make_will(&member[1], &second);
	registry_make_will(&member[2], &second);
	registry_drop_will(&member[1], dropped);
	assert_false(registry_next_will(&member[0], &s, &w)); /* all live */
	dead[40] = true;
	s = again;
	assert_true(registry_next_will(&member[0], &s, &w));
	assert_memory_equal(&w, &first, sizeof(w));
	assert_false(registry_next_will(&member[0], &s, &w));
	assert_false(registry_next_will(&member[2], &again, &w));
	/* The slot has a new owner before anybody looked. */
	dead[80] = true;
	join(&member[2], 80, 99);
	dead[80] = false;
	registry_make_will(&member[2], &first);
	again = (struct registry_sweep){.slot = 80, .end = 81, .looked = true};
	assert_true(registry_next_will(&member[2], &again, &w));
	assert_memory_equal(&w, &second, sizeof(w));
	assert_false(registry_next_will(&member[2], &again, &w));
}

CASE(there_is_one_registrar)
{
	assert_int_equal(registry_registrar(&member[0]), REGISTRY_NOBODY);
	assert_true(registry_take_over(&member[1], REGISTRY_NOBODY));
	assert_false(registry_take_over(&member[2], REGISTRY_NOBODY));
	assert_int_equal(registry_registrar(&member[2]), 40);
	assert_true(registry_take_over(&member[2], 40));
	assert_false(registry_take_over(&member[1], 40));
	assert_int_equal(registry_requests_slot(page), 80);
}

/* ---- at the same time --------------------------------------------------------------------------------- */

enum { RACERS = 3, ROUNDS = 3000 };

static pthread_barrier_t start;
static unsigned winners, found;

static void *racer(void *arg)
{
	struct registry *r = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct registry_claim c = {
			.space = CM_SPACE_TCP, .addr = address(1, (uint16_t)(i + 1)), .listening = true};
		uint32_t row;
		bool won;

		pthread_barrier_wait(&start);
		won = !registry_bind(r, &c, &row);
		if (won)
			__atomic_fetch_add(&winners, 1, __ATOMIC_SEQ_CST);
		pthread_barrier_wait(&start);
		if (won)
			registry_release(r, row, false);
	}
	return NULL;
}

CASE(of_several_that_want_a_port_at_once_one_has_it)
{
	pthread_t threads[RACERS];

	winners = 0;
	pthread_barrier_init(&start, NULL, RACERS);
	for (int i = 0; i < RACERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, racer, &member[i]), 0);
	for (int i = 0; i < RACERS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&start);
	assert_int_equal(winners, ROUNDS);
}

static void *heir(void *arg)
{
	struct registry_sweep s = {0};
	struct registry_will w;

	while (registry_next_will(arg, &s, &w))
		__atomic_fetch_add(&found, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

CASE(a_will_has_one_heir)
{
	struct registry_will w = will_of(5);
	pthread_t threads[2];

	for (int i = 0; i < REGISTRY_WILLS; i++)
		assert_int_not_equal(registry_make_will(&member[2], &w), REGISTRY_NO_ROW);
	assert_int_equal(registry_make_will(&member[2], &w), REGISTRY_NO_ROW);
	dead[80] = true;
	found = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, heir, &member[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(found, REGISTRY_WILLS);
}

/* ---- rubbish -------------------------------------------------------------------------------------------- */

CASE(rubbish_in_the_memory_harms_nobody)
{
	struct registry_sweep s = {0};
	struct registry_claim c = {.space = CM_SPACE_TCP, .addr = address(1, 80), .listening = true}, read;
	struct registry_will w;
	struct prng rng;
	uint32_t row;
	int fit;

	prng_init(&rng, 9);
	for (size_t i = 0; i < registry_bytes() / 8; i += i < (4 << 20) / 8 ? 1 : 512)
		((uint64_t *)page)[i] = prng_next(&rng);
	for (uint32_t i = 0; i < 300; i++) {
		c.addr.port = (uint16_t)prng_next(&rng);
		if (!registry_bind(&member[1], &c, &row))
			registry_release(&member[1], row, false);
		registry_listener(&member[1], CM_SPACE_TCP, c.addr.ip, c.addr.ip, c.addr.port, &fit);
		assert_in_range(registry_noted(&member[1], prng_next(&rng)) + 1, 0, REGISTRY_SLOTS);
		registry_row(page, i, (uint32_t)prng_next(&rng) % 4096, &read);
	}
	assert_in_range(registry_registrar(&member[1]) + 1, 0, REGISTRY_SLOTS);
	while (registry_next_will(&member[1], &s, &w))
		assert_true(w.remote_qpn <= 0xffffff);
}

CASE(without_memory_everything_goes)
{
	struct registry r = {0};
	struct registry_claim c = {.space = CM_SPACE_TCP, .addr = address(1, 80)};
	struct registry_sweep s = {0};
	struct registry_will w = will_of(1);
	uint32_t row;
	int fit;

	registry_join(&r, 1);
	assert_int_equal(registry_bind(&r, &c, &row), 0);
	assert_int_equal(registry_change(&r, &row, &c), 0);
	registry_release(&r, row, false);
	assert_true(registry_draw(&r, CM_SPACE_TCP, 1));
	registry_undraw(&r, CM_SPACE_TCP, 1);
	assert_int_equal(registry_listener(&r, CM_SPACE_TCP, c.addr.ip, c.addr.ip, 80, &fit), REGISTRY_NOBODY);
	registry_drop_will(&r, registry_make_will(&r, &w));
	assert_false(registry_next_will(&r, &s, &w));
	registry_leave(&r);
}

static void bound_to(struct registry *r, uint8_t last)
{
	struct cm_addr a = address(last, 0);
	uint8_t own[1][16];

	memcpy(own[0], a.ip, sizeof(own[0]));
	registry_set_own(r, own, 1);
}

CASE(a_wildcard_stands_for_the_addresses_that_its_member_has)
{
	struct registry_claim wild = {.space = CM_SPACE_TCP, .addr = any4(80), .listening = true};
	struct registry_claim six = {.space = CM_SPACE_TCP, .addr = any6(80), .listening = true};
	struct registry_claim one = {.space = CM_SPACE_TCP, .addr = address(1, 80)};
	struct registry_claim two = {.space = CM_SPACE_TCP, .addr = address(2, 80)};
	uint32_t row, rows[2];
	int fit;

	bound_to(&member[0], 1);
	bound_to(&member[1], 2);
	assert_int_equal(registry_bind(&member[0], &wild, &rows[0]), 0);
	assert_int_equal(registry_bind(&member[1], &six, &rows[1]), 0);
	/* The third one has every address. */
	assert_int_equal(registry_bind(&member[2], &wild, &row), -EADDRNOTAVAIL);
	assert_int_equal(registry_listener(&member[2], CM_SPACE_TCP, one.addr.ip, one.addr.ip, 80, &fit), 0);
	assert_int_equal(registry_listener(&member[2], CM_SPACE_TCP, two.addr.ip, two.addr.ip, 80, &fit), 40);
	assert_int_equal(registry_listener(&member[0], CM_SPACE_TCP, one.addr.ip, one.addr.ip, 80, &fit),
			 REGISTRY_NOBODY);
	assert_int_equal(registry_bind(&member[2], &one, &row), -EADDRNOTAVAIL);
	registry_release(&member[0], rows[0], false);
	assert_int_equal(registry_bind(&member[2], &one, &row), 0);
	assert_int_equal(registry_bind(&member[0], &wild, &rows[0]), -EADDRNOTAVAIL);
	/* Its address has gone, and another has come. */
	bound_to(&member[0], 3);
	assert_int_equal(registry_bind(&member[0], &wild, &rows[0]), 0);
	assert_int_equal(registry_listener(&member[1], CM_SPACE_TCP, two.addr.ip, two.addr.ip, 80, &fit),
			 REGISTRY_NOBODY);
}

CASE(an_address_has_an_owner)
{
	const struct cm_addr one = address(1, 0), two = address(2, 0), three = address(3, 0);

	bound_to(&member[0], 1);
	bound_to(&member[1], 2);
	bound_to(&member[2], 2);
	assert_int_equal(registry_owner(&member[1], one.ip), 0);
	assert_int_equal(registry_owner(&member[0], one.ip), REGISTRY_NOBODY); /* its own */
	assert_int_equal(registry_owner(&member[0], two.ip), 40);
	assert_int_equal(registry_owner(&member[0], three.ip), REGISTRY_NOBODY);
	dead[40] = true;
	assert_int_equal(registry_owner(&member[0], two.ip), 80);
	/* Nothing is left to who has the slot next. */
	join(&member[1], 40, 77);
	dead[40] = false;
	assert_int_equal(registry_owner(&member[0], three.ip), 40);
}
