/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the owner of a transport QP by its number: a table with open addressing, at most half full. */
#include <errno.h>
#include <stdlib.h>

#include "sdr/verbs/objects.h"

/* Fibonacci hashing; numbers may be given out in sequence. */
static uint32_t place(const struct verbena_sdr_context *ctx, uint32_t qpn)
{
	return (uint32_t)(qpn * UINT64_C(0x9e3779b97f4a7c15) >> 32) & ctx->route_mask;
}

static void insert(struct verbena_sdr_context *ctx, struct route r)
{
	uint32_t at = place(ctx, r.qpn);

	while (ctx->routes[at].qpn)
		at = (at + 1) & ctx->route_mask;
	ctx->routes[at] = r;
	ctx->route_count++;
}

/* Moves the table into one of that size. */
static int rebuild(struct verbena_sdr_context *ctx, uint32_t size)
{
	struct route *old = ctx->routes;
	uint32_t old_size = old ? ctx->route_mask + 1 : 0;
	struct route *new = calloc(size, sizeof(*new));

	if (!new)
		return -ENOMEM;
	ctx->routes = new;
	ctx->route_mask = size - 1;
	ctx->route_count = 0;
	for (uint32_t i = 0; i < old_size; i++) {
		if (old[i].qpn)
			insert(ctx, old[i]);
	}
	free(old);
	return 0;
}

int routes_reserve(struct verbena_sdr_context *ctx, uint32_t more)
{
	uint32_t size = ctx->routes ? ctx->route_mask + 1 : 64;

	while (size < 2 * (ctx->route_count + more))
		size *= 2;
	return rebuild(ctx, size);
}

void route_add(struct verbena_sdr_context *ctx, struct route r)
{
	insert(ctx, r);
}

/* Empties a place, and puts those behind it where a search finds them again. */
static void remove_at(struct verbena_sdr_context *ctx, uint32_t at)
{
	ctx->routes[at] = (struct route){0};
	ctx->route_count--;
	for (at = (at + 1) & ctx->route_mask; ctx->routes[at].qpn; at = (at + 1) & ctx->route_mask) {
		struct route moved = ctx->routes[at];

		ctx->routes[at] = (struct route){0};
		ctx->route_count--;
		insert(ctx, moved);
	}
}

void routes_remove(struct verbena_sdr_context *ctx, const struct verbena_sdr_qp *qp)
{
	for (uint32_t at = 0; at <= ctx->route_mask;) {
		if (ctx->routes[at].qpn && ctx->routes[at].qp == qp)
			remove_at(ctx, at); /* another may lie there now */
		else
			at++;
	}
}

const struct route *route_find(const struct verbena_sdr_context *ctx, uint32_t qpn)
{
	for (uint32_t at = place(ctx, qpn); ctx->routes[at].qpn; at = (at + 1) & ctx->route_mask) {
		if (ctx->routes[at].qpn == qpn)
			return &ctx->routes[at];
	}
	return NULL;
}
