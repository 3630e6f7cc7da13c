/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An address is added there before the device joins there, and removed here after: for a moment both places have it, with
 * nobody here who answers. What fails there is undone, and the device goes on with the sockets that it still has.
 */
#include "engine/moving.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/address.h"
#include "engine/leaving.h"
#include "io/fd_away.h"
#include "io/net.h"

/* Addresses that move. */
struct luggage {
	int here, there; /* connections to the kernel; -1: none */
	size_t count;
	struct {
		struct address from, to;
	} taken[NIC_GIDS_MAX];
};

static bool is_same_file(int a, int b)
{
	struct stat sa, sb;

	return !fstat(a, &sa) && !fstat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static int explain_entry(int rc, char *why, size_t why_bytes)
{
	if (rc == -EPERM)
		snprintf(
			why, why_bytes,
			"it may not enter that network namespace: the program needs CAP_SYS_ADMIN in the user namespace that owns it, and in its own");
	else
		snprintf(why, why_bytes, "it cannot enter that network namespace: %s", strerror(-rc));
	return rc;
}

/* ---- addresses ---- */

static int explain_address(int rc, const uint8_t gid[16], char *why, size_t why_bytes)
{
	char text[INET6_ADDRSTRLEN];

	leaving_address_text(gid, text, sizeof(text));
	if (rc == -ENETUNREACH)
		snprintf(why, why_bytes, "there is no interface there whose network %s is in", text);
	else if (rc == -EPERM)
		snprintf(why, why_bytes, "it may not add %s there: the program needs CAP_NET_ADMIN there and here",
			 text);
	else
		snprintf(why, why_bytes, "it cannot add %s there: %s", text, strerror(-rc));
	return rc;
}

static int take_addresses(const struct engine *e, struct luggage *l, char *why, size_t why_bytes)
{
	struct address from;
	uint8_t gid[16];
	int rc;

	for (uint32_t i = 0; l->count < NIC_GIDS_MAX && leaving_address(e, i, gid); i++) {
		/* An address that neither place has: leaving_return() finds that out, and says which one it is. */
		if (address_find(l->there, gid, &from) || !address_find(l->here, gid, &from))
			continue;
		l->taken[l->count].from = from;
		rc = address_add(l->there, &from, &l->taken[l->count].to);
		if (rc)
			return explain_address(rc, gid, why, why_bytes);
		l->count++;
	}
	return 0;
}

static void put_back(struct luggage *l)
{
	while (l->count--)
		address_remove(l->there, &l->taken[l->count].to);
}

static void leave_nothing_here(struct luggage *l)
{
	for (size_t i = 0; i < l->count; i++)
		address_remove(l->here, &l->taken[i].from);
}

static void announce(const struct engine *e)
{
	for (uint32_t i = 0; i < e->gids.count; i++)
		if (e->gids.gids[i].ifindex &&
		    (nic_uses_gid(e->loop.nic, e->gids.gids[i].raw) || leaving_cm_uses(e, e->gids.gids[i].raw)))
			address_announce(e->gids.gids[i].raw, e->gids.gids[i].ifindex);
}

/* ---- there and back ---- */

/* The thread is there, and sockets are made there. */
static int arrive(struct engine *e, struct luggage *l, bool with_addresses, char *why, size_t why_bytes)
{
	int rc = 0;

	if (with_addresses) {
		l->there = address_open();
		if (l->here < 0 || l->there < 0) {
			rc = l->here < 0 ? l->here : l->there;
			snprintf(why, why_bytes, "it cannot ask the kernel for addresses: %s", strerror(-rc));
		} else {
			rc = take_addresses(e, l, why, why_bytes);
		}
	}
	if (!rc)
		rc = leaving_return(e, false, true, why, why_bytes);
	if (rc) {
		put_back(l);
		return rc;
	}
	leave_nothing_here(l);
	announce(e);
	return 0;
}

/* *Takes* `to`, which sockets are made in from now on, if it succeeds. */
static int go(struct engine *e, int to, int own, bool with_addresses, char *why, size_t why_bytes)
{
	struct luggage l = {.here = with_addresses ? address_open() : -1, .there = -1};
	int rc = net_enter(to), before;

	if (rc) {
		explain_entry(rc, why, why_bytes);
		goto out;
	}
	before = net_set(to);
	rc = arrive(e, &l, with_addresses, why, why_bytes);
	if (!rc) {
		if (before >= 0)
			close(before);
		goto out;
	}
	net_set(before);
	if (before < 0)
		net_leave(own);
	else
		net_enter(before);
out:
	if (l.here >= 0)
		close(l.here);
	if (l.there >= 0)
		close(l.there);
	return rc;
}

int moving_go(struct engine *e, int to, bool with_addresses, char *why, size_t why_bytes)
{
	int own = net_own(), kept, rc;

	if (own < 0) {
		snprintf(why, why_bytes, "it cannot tell its own network namespace: %s", strerror(-own));
		return own;
	}
	kept = fd_away(fcntl(to, F_DUPFD_CLOEXEC, 0));
	if (is_same_file(own, to)) {
		snprintf(why, why_bytes, "it is in that network namespace already");
		rc = -EEXIST;
	} else if (kept < 0) {
		rc = -errno;
		snprintf(why, why_bytes, "it has no descriptor left: %s", strerror(-rc));
	} else {
		rc = go(e, kept, own, with_addresses, why, why_bytes);
	}
	if (rc && kept >= 0)
		close(kept);
	close(own);
	return rc;
}
