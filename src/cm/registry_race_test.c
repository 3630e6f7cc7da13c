/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several processes in the registry at once, in every order in which their steps can come. registry.c is compiled here
 * with each access to the shared memory as a call. A step is one access to a word that another process uses too, if
 * anybody writes it; everything else belongs to the step before.
 *
 * A process is a function that is run again from its beginning for each of its steps: what it has read so far is given
 * to it from a log, the next access is done, and at the one after that it is left. What a step wrote can be taken back,
 * so all orders are gone through depth first. A state (what each has read, and the shared words) is looked at once.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

#include "support/registry_words.h"
#include "support/test.h"

enum { PROCESSES_MAX = 3, LOG_MAX = 1024, WORDS_MAX = 4096, SHARED_MAX = 64, SEEN_MAX = 1 << 20, HERE = 7000 };

struct access {
	volatile void *word;
	size_t bytes;
	uint64_t before; /* found there */
	uint64_t hash;   /* of all that was found so far */
	bool wrote;
};

struct process;
typedef void program_fn(struct process *);

struct process {
	program_fn *program;
	const struct registry_claim *claim;
	struct registry at_first, r; /* its access, before it began and now */
	struct access log[LOG_MAX];
	unsigned logged, at;
	bool stepped, done;
	/* Its results. */
	int rc;
	uint32_t row;
};

struct word {
	volatile void *word;
	uint8_t users, writers; /* masks of processes */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static struct {
	struct registry_page *page;
	struct process processes[PROCESSES_MAX];
	unsigned count, dead;    /* a mask of slots */
	struct process *running; /* NULL: accesses are not part of what is explored */
	jmp_buf stop;
	struct word words[WORDS_MAX];
	bool grown; /* a word has become a shared one */
	volatile void *shared[SHARED_MAX];
	unsigned shared_count;
	uint64_t seen[SEEN_MAX];
	unsigned states, ends;
	void (*judge_end)(void);
	bool anybody_may_die;
} m;

/* ---- one access ----------------------------------------------------------------------------------- */

static uint64_t peek(volatile void *word, size_t bytes)
{
	uint64_t v = 0;

	memcpy(&v, (void *)word, bytes);
	return v;
}

static void poke(volatile void *word, size_t bytes, uint64_t v)
{
	memcpy((void *)word, &v, bytes);
}

static struct word *find_word(volatile void *word)
{
	size_t i = ((uintptr_t)word >> 2) * 2654435761u % WORDS_MAX;

	while (m.words[i].word && m.words[i].word != word)
		i = (i + 1) % WORDS_MAX;
	m.words[i].word = word;
	return &m.words[i];
}

static bool is_shared(const struct word *w)
{
	return w->writers && w->users & (w->users - 1);
}

/* Whether others use it too, as far as is known; that they do is found out on the way, and then all begins anew. */
static bool use(volatile void *word, enum access_kind kind)
{
	struct word *w = find_word(word);
	uint8_t me = (uint8_t)(1u << (m.running - m.processes));
	bool was = is_shared(w);

	w->users |= me;
	if (kind != LOAD)
		w->writers |= me;
	if (is_shared(w) && !was) {
		m.grown = true;
		m.shared[m.shared_count++] = word;
		assert(m.shared_count < SHARED_MAX);
	}
	return was;
}

static uint64_t perform(volatile void *word, size_t bytes, enum access_kind kind, uint64_t value, uint64_t expected)
{
	uint64_t before = peek(word, bytes);

	if (kind == OR)
		value |= before;
	if (kind == AND)
		value &= before;
	if (kind != LOAD && (kind != SWAP || before == expected))
		poke(word, bytes, value);
	return before;
}

static uint64_t touch(volatile void *word, size_t bytes, enum access_kind kind, uint64_t value, uint64_t expected)
{
	struct process *p = m.running;
	struct access *a;

	if (!p)
		return perform(word, bytes, kind, value, expected);
	if (p->at < p->logged)
		return p->log[p->at++].before;
	if (use(word, kind)) {
		if (p->stepped)
			longjmp(m.stop, 1);
		p->stepped = true;
	}
	assert(p->logged < LOG_MAX);
	a = &p->log[p->logged++];
	p->at++;
	*a = (struct access){.word = word, .bytes = bytes, .wrote = kind != LOAD};
	a->before = perform(word, bytes, kind, value, expected);
	a->hash = mix(a > p->log ? a[-1].hash : 0, a->before);
	return a->before;
}

/* ---- all orders ------------------------------------------------------------------------------------- */

/* The step begins behind the accesses that are logged; the first may be one before a shared word. */
static void step(struct process *p)
{
	p->at = 0;
	p->stepped = false;
	p->r = p->at_first;
	m.running = p;
	if (!setjmp(m.stop)) {
		p->program(p);
		p->done = true;
	}
	m.running = NULL;
}

static void take_back(struct process *p, unsigned logged)
{
	while (p->logged > logged) {
		struct access *a = &p->log[--p->logged];

		if (a->wrote)
			poke(a->word, a->bytes, a->before);
	}
	p->done = false;
}

static uint64_t state_hash(void)
{
	uint64_t h = 1;

	for (unsigned i = 0; i < m.count; i++) {
		const struct process *p = &m.processes[i];

		h = mix(mix(h, p->logged), p->logged ? p->log[p->logged - 1].hash : 0);
	}
	for (unsigned i = 0; i < m.shared_count; i++)
		h = mix(h, peek(m.shared[i], sizeof(uint32_t)));
	return h | 1;
}

static bool is_new(void)
{
	uint64_t h = state_hash();
	size_t i = h % SEEN_MAX;

	while (m.seen[i] && m.seen[i] != h)
		i = (i + 1) % SEEN_MAX;
	if (m.seen[i])
		return false;
	m.seen[i] = h;
	m.states++;
	assert(m.states < SEEN_MAX / 2);
	return true;
}

/* Those that have not ended stand still for good. One that is alone now, and finds them dead, has the port. */
static void somebody_dies(void)
{
	for (unsigned i = 0; i < m.count; i++) {
		struct process *p = &m.processes[i];
		unsigned logged = p->logged;

		if (p->done)
			continue;
		m.dead = 0;
		for (unsigned k = 0; k < m.count; k++)
			m.dead |= k != i && !m.processes[k].done ? 1u << m.processes[k].r.slot : 0;
		while (!p->done)
			step(p);
		for (unsigned k = 0; k < m.count; k++) {
			if (k != i && m.processes[k].done && !m.processes[k].rc)
				assert_true(p->rc < 0); /* somebody who lives has it */
		}
		m.dead = 0;
		take_back(p, logged);
	}
}

static void explore(void)
{
	bool ended = true;

	if (!is_new())
		return;
	for (unsigned i = 0; i < m.count; i++) {
		struct process *p = &m.processes[i];
		unsigned logged = p->logged;

		if (p->done)
			continue;
		ended = false;
		step(p);
		explore();
		take_back(p, logged);
	}
	if (ended) {
		m.ends++;
		m.judge_end();
	} else if (m.anybody_may_die) {
		somebody_dies();
	}
}

static void explore_all(void (*judge_end)(void))
{
	m.judge_end = judge_end;
	memset(m.words, 0, sizeof(m.words));
	m.shared_count = 0;
	do {
		m.grown = false;
		m.states = m.ends = 0;
		memset(m.seen, 0, sizeof(m.seen));
		explore();
	} while (m.grown);
	print_message("%u states, %u ends\n", m.states, m.ends);
	assert_true(m.ends > 0);
}

/* ---- the processes ---------------------------------------------------------------------------------- */

static bool lives(void *ctx, uint32_t slot)
{
	return !(m.dead >> slot & 1);
}

static struct registry_claim at_address(uint8_t last)
{
	return (struct registry_claim){.space = CM_SPACE_TCP,
				       .addr = {.ip = {[10] = 0xff, [11] = 0xff, [12] = last ? 10 : 0, [15] = last},
						.port = HERE,
						.family = CM_IPV4}};
}

static struct process *add(program_fn *program, const struct registry_claim *claim)
{
	struct process *p = &m.processes[m.count];

	*p = (struct process){.program = program, .claim = claim, .rc = 1, .row = REGISTRY_NO_ROW};
	p->at_first = (struct registry){.page = m.page, .slot = m.count, .lives = lives, .in_the_way = REGISTRY_NOBODY};
	registry_join(&p->at_first, m.count + 1);
	m.count++;
	return p;
}

/* Before all begins. */
static void have(struct process *p, const struct registry_claim *claim)
{
	assert_int_equal(registry_bind(&p->at_first, claim, &p->row), 0);
}

static void bind_it(struct process *p)
{
	p->rc = registry_bind(&p->r, p->claim, &p->row);
}

static void bind_twice(struct process *p)
{
	p->rc = registry_bind(&p->r, p->claim, &p->row);
	if (p->rc)
		return;
	registry_release(&p->r, p->row, false);
	p->rc = registry_bind(&p->r, p->claim, &p->row);
}

static void draw_it(struct process *p)
{
	p->rc = registry_draw(&p->r, CM_SPACE_TCP, HERE) ? 0 : -EADDRINUSE;
}

static void amend_it(struct process *p)
{
	registry_amend(&p->r, 0, p->claim);
	p->rc = 0;
}

static void change_it(struct process *p)
{
	uint32_t row = 0;

	p->rc = registry_change(&p->r, &row, p->claim);
}

static void look_it_up(struct process *p)
{
	int fit;

	p->rc = registry_listener(&p->r, CM_SPACE_TCP, p->claim->addr.ip, p->claim->addr.ip, HERE, &fit);
}

static void take_a_will(struct process *p)
{
	struct registry_sweep s = {0};
	struct registry_will w;

	p->rc = registry_next_will(&p->r, &s, &w) ? 0 : -ENOENT;
	if (!p->rc)
		assert_int_equal(w.local_comm_id, 4711);
}

static void become_registrar(struct process *p)
{
	p->rc = registry_take_over(&p->r, REGISTRY_NOBODY) ? 0 : -EAGAIN;
}

static unsigned winners(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m.count; i++)
		n += m.processes[i].rc == 0;
	return n;
}

static void one_has_it(void)
{
	assert_int_equal(winners(), 1);
	for (unsigned i = 0; i < m.count; i++) {
		struct process *p = &m.processes[i];

		if (p->rc)
			assert_true(p->rc == -EADDRINUSE || p->rc == -EADDRNOTAVAIL);
	}
}

static void at_most_one_has_it(void)
{
	assert_true(winners() <= 1);
}

static void all_have_it(void)
{
	assert_int_equal(winners(), m.count);
}

static void the_other_has_it(void)
{
	assert_int_equal(m.processes[0].rc, 0);
	assert_true(m.processes[1].rc < 0);
}

static void the_listener_is_found(void)
{
	assert_int_equal(m.processes[0].rc, 0);
	assert_int_equal(m.processes[1].rc, 0); /* the slot of the listener */
}

static void one_succeeds(void)
{
	assert_int_equal(winners(), 1);
}

enum { GUARD = 1 << 20 };

static int setup(void **state)
{
	/* Of the many megabytes few are touched. */
	uint8_t *p =
		mmap(NULL, registry_bytes() + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(p != MAP_FAILED && !mprotect(p + GUARD, registry_bytes(), PROT_READ | PROT_WRITE));
	m.page = (struct registry_page *)(void *)(p + GUARD);
	m.count = m.dead = 0;
	m.anybody_may_die = false;
	return 0;
}

static int teardown(void **state)
{
	munmap((uint8_t *)m.page - GUARD, registry_bytes() + 2 * GUARD);
	return 0;
}

/* ---- claims ------------------------------------------------------------------------------------------- */

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(of_two_one_has_the_port)
{
	struct registry_claim c = at_address(1);

	add(bind_it, &c);
	add(bind_it, &c);
	m.anybody_may_die = true;
	explore_all(one_has_it);
}

CASE(of_three_one_has_the_port)
{
	struct registry_claim c = at_address(1);

	for (int i = 0; i < 3; i++)
		add(bind_it, &c);
	explore_all(one_has_it);
}

CASE(of_a_wildcard_and_an_address_one_has_the_port)
{
	struct registry_claim every = at_address(0), one = at_address(1);

	add(bind_it, &every);
	add(bind_it, &one);
	explore_all(one_has_it);
}

CASE(two_addresses_have_the_port_each)
{
	struct registry_claim one = at_address(1), two = at_address(2);

	add(bind_it, &one);
	add(bind_it, &two);
	explore_all(all_have_it);
}

CASE(who_shares_has_it_too)
{
	struct registry_claim c = at_address(1);

	c.reuse = true;
	for (int i = 0; i < 3; i++)
		add(bind_it, &c);
	explore_all(all_have_it);
}

CASE(who_gives_it_back_and_wants_it_again_does_not_have_it_twice)
{
	struct registry_claim c = at_address(1);

	add(bind_twice, &c);
	add(bind_it, &c);
	explore_all(at_most_one_has_it);
	m.count = 0;
	memset(m.page, 0, sizeof(struct registry_page) - (REGISTRY_SLOTS - 2) * sizeof(struct area));
	add(bind_it, &c);
	add(bind_twice, &c);
	explore_all(at_most_one_has_it);
}

CASE(a_port_that_is_drawn_is_nobody_elses)
{
	struct registry_claim c = at_address(1);

	add(draw_it, NULL);
	add(draw_it, NULL);
	add(bind_it, &c);
	explore_all(at_most_one_has_it);
}

/* Flags change while somebody looks: there is no moment in which the port is free. */
CASE(who_changes_its_flags_has_the_port_all_the_time)
{
	struct registry_claim c = at_address(1), changed = at_address(1);
	struct process *p = add(amend_it, &changed);

	changed.afonly = true;
	have(p, &c);
	add(bind_it, &c);
	explore_all(the_other_has_it);
}

CASE(who_listens_is_found_all_the_time)
{
	struct registry_claim c = at_address(1), changed = at_address(1);
	struct process *p = add(amend_it, &changed);

	c.listening = c.reuse = changed.listening = true;
	have(p, &c);
	add(look_it_up, &c);
	explore_all(the_listener_is_found);
}

CASE(who_begins_to_listen_has_the_port_all_the_time)
{
	struct registry_claim c = at_address(1), changed = at_address(1);
	struct process *p = add(change_it, &changed);

	changed.listening = true;
	have(p, &c);
	add(bind_it, &c);
	explore_all(the_other_has_it);
}

/* ---- the dead -------------------------------------------------------------------------------------------- */

CASE(the_port_of_one_who_died_is_one_others)
{
	struct registry_claim c = at_address(1);
	struct process gone = {.row = 0};

	gone.at_first = (struct registry){.page = m.page, .slot = 2, .lives = lives};
	registry_join(&gone.at_first, 77);
	have(&gone, &c);
	add(bind_it, &c);
	add(bind_it, &c);
	m.dead = 1u << 2;
	explore_all(one_has_it);
}

CASE(a_will_is_carried_out_once)
{
	const struct registry_will will = {.local_comm_id = 4711};
	struct registry gone = {.page = m.page, .slot = 2, .lives = lives};

	registry_join(&gone, 77);
	assert_int_equal(registry_make_will(&gone, &will), 0);
	add(take_a_will, NULL);
	add(take_a_will, NULL);
	m.dead = 1u << 2;
	explore_all(one_succeeds);
}

CASE(there_is_one_registrar)
{
	for (int i = 0; i < 3; i++)
		add(become_registrar, NULL);
	explore_all(one_succeeds);
}
