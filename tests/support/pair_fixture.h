/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of pairs and their paths: a pair, and packets sent and acknowledged on it. */
#pragma once

#include "support/test.h"
#include "transport/paths/path_choice.h"

enum { MTU = 1024, PACKET = 1000, WINDOW = 64 * 1024 };

static const uint64_t start_ns = 1000000, rto_ns_min = 500000;
static const uint8_t here[16] = {1}, there[16] = {2};

static int64_t blocks;
static size_t taken_bytes;
static bool dry; /* there is no more memory */

static inline void *get(void *ctx, size_t bytes)
{
	void *p = dry ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);

	if (!p)
		return NULL;
	blocks++;
	taken_bytes += bytes;
	return memset(p, 0, bytes);
}

static inline void put(void *ctx, void *p, size_t bytes)
{
	if (!p)
		return;
	blocks--;
	taken_bytes -= bytes;
	free(p);
}

struct fixture {
	struct cc_params cc_params;
	struct transport_config config;
	struct pair_table table;
	struct pair *pair;
	struct flowlet flowlet;
};

static uint16_t flowlet_packets = 8; /* of the next start() */
static uint64_t base_rtt_ns;         /* likewise; 0: not configured */
static enum veroce_scope scope;      /* likewise */
static const struct cc_kind *own_cc; /* likewise; NULL: none */

/* In place, as the table's lists must not move; returns it. */
static inline struct fixture *start(struct fixture *f, uint32_t paths, enum cc_algorithm cc)
{
	static const struct alloc alloc = {get, put, NULL};
	static const uint8_t secret[16] = "pair_test";

	f->flowlet = (struct flowlet){0};
	cc_params_default(&f->cc_params, cc);
	f->cc_params.own = own_cc;
	f->config = (struct transport_config){
		.paths = paths,
		.window_bytes = WINDOW,
		.cc = {.params = &f->cc_params,
		       .line_rate_bps = base_rtt_ns ? 10000000000 : 0,
		       .base_rtt_ns = base_rtt_ns},
		.veroce = {.cc = cc == CC_NONE ? VEROCE_CC_NONE : VEROCE_CC_SWIFT,
			   .scope = scope,
			   .rto_ns_min = rto_ns_min,
			   .flowlet_packets = flowlet_packets},
	};
	transport_config_settle(&f->config);
	pair_table_init(&f->table, &f->config, &alloc, secret);
	f->pair = pair_get(&f->table, here, there, false, MTU, start_ns);
	assert_non_null(f->pair);
	assert_true(pair_begin(&f->table, f->pair));
	return f;
}

static inline void end(struct fixture *f)
{
	pair_put(&f->table, f->pair);
	pair_table_fini(&f->table);
	assert_int_equal(blocks, 0);
}

/* A test of `f`, a fixture with so many paths and that congestion control. */
#define FIXTURE_TEST(name, paths, cc) TEST_OF(name, struct fixture *, f, start(&(struct fixture){0}, paths, cc), end(f))

static inline int pick(struct fixture *f, uint32_t bytes)
{
	return pair_pick(f->pair, &f->config, &f->flowlet, bytes, PAIR_NO_PATH, start_ns);
}

static inline int pick_again(struct fixture *f, uint8_t avoid)
{
	return pair_pick_again(f->pair, &f->config, PACKET, avoid, start_ns);
}

/* Sends one packet on whichever path is picked; false: none has room. */
static inline bool send(struct fixture *f, uint32_t bytes)
{
	int path = pick(f, bytes);

	if (path >= 0)
		path_sent(&f->config, f->pair, (uint32_t)path, bytes, start_ns);
	return path >= 0;
}

static inline void ack(struct fixture *f, uint32_t path, uint32_t packets, uint64_t tx_ns, uint64_t now_ns)
{
	struct tx_path_news n = {
		.bytes = packets * PACKET, .packets = packets, .newest_tx_ns = tx_ns, .sure = tx_ns ? packets : 0};
	struct path_echo nothing = {.path = PATHS_MAX};

	path_acked(&f->table, f->pair, path, &n, &nothing, now_ns);
}

/* A round trip of that length on each path. */
static inline void measure(struct fixture *f, const uint64_t *rtt_ns)
{
	for (uint32_t i = 0; i < f->pair->path_count; i++) {
		path_sent(&f->config, f->pair, i, PACKET, start_ns);
		ack(f, i, 1, start_ns, start_ns + rtt_ns[i]);
	}
}
