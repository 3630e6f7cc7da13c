/* SPDX-License-Identifier: BSD-2-Clause */
/* What every simulation test includes: cmocka around a duo. */
#pragma once

#include <stdio.h>

#include "duo/duo.h"
#include "support/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { ALL_ACCESS = MR_LOCAL_WRITE | MR_REMOTE_ACCESS };

/* A failed check of the harness fails the one test, not the program. */
static inline void sim_fail(void)
{
	fail();
}

__attribute__((constructor)) static void sim_set_fail_hook(void)
{
	duo_fail_hook = sim_fail;
}

/* A duo, a connected pair and a buffer of BUF_BYTES on either side, filled differently. */
enum { BUF_BYTES = 64 * 1024 };

struct sim {
	struct duo *duo;
	struct duo_qp *a, *b;
	struct duo_buf *abuf, *bbuf;
};

/* *Takes* the duo: sim_end() destroys it. */
static inline struct sim sim_sized(struct duo *duo, const struct duo_options *o, uint64_t buf_bytes)
{
	struct sim s = {.duo = duo};
	struct duo_pair p = duo_connect(s.duo, o);

	s.a = p.a;
	s.b = p.b;
	s.abuf = duo_buf(&s.duo->host[DUO_A], buf_bytes, ALL_ACCESS);
	s.bbuf = duo_buf(&s.duo->host[DUO_B], buf_bytes, ALL_ACCESS);
	duo_fill(s.abuf, 1);
	duo_fill(s.bbuf, 2);
	return s;
}

static inline struct sim sim_on(struct duo *duo, const struct duo_options *o)
{
	return sim_sized(duo, o, BUF_BYTES);
}

static inline struct sim sim_start(const struct duo_options *o)
{
	return sim_on(duo_create(1, NULL), o);
}

static inline struct sim sim_default(void)
{
	struct duo_options o = duo_options();

	return sim_start(&o);
}

/* A start with other options: SIM(o.mtu = 256, o.retry_cnt = 0). */
#define SIM(...)                                      \
	({                                            \
		struct duo_options o = duo_options(); \
		__VA_ARGS__;                          \
		sim_start(&o);                        \
	})

/* No event may be left, and no completion or event that the test did not check. */
static inline void sim_end(struct sim *s)
{
	duo_idle(s->duo);
	for (struct duo_qp *q = s->duo->qps; q; q = q->next) {
		DUO_CHECK(s->duo, q->sent.taken == q->sent.n);
		DUO_CHECK(s->duo, q->received.taken == q->received.n);
	}
	duo_destroy(s->duo);
}

/* A test on `s`, the struct sim that the expression starts; it is ended behind the test. */
#define TEST_ON(name, start) TEST_OF(name, struct sim, s, start, sim_end(&s))

/* What follows the name are changes to the options, as in sim_default(). */
#define SIM_TEST(name, ...) TEST_ON(name, SIM(__VA_ARGS__))
