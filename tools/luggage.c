/* SPDX-License-Identifier: BSD-2-Clause */
/* For a moment both places have an address, with a device that is frozen in each. */
#include "luggage.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ends.h"
#include "tool.h"

enum { SAID_BYTES = 128 };

static bool gid_parse(const char *text, uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(gid, mapped, sizeof(mapped));
	return inet_pton(AF_INET, text, gid + 12) == 1 || inet_pton(AF_INET6, text, gid) == 1;
}

/* EXIT_SUCCESS: it is there, or it is in the luggage now. */
static int pack(struct luggage *l, pid_t pid, const char *text, bool with_addresses)
{
	struct address at;
	uint8_t gid[16];

	if (!gid_parse(text, gid) || l->count == NIC_GIDS_MAX)
		return complain("process %d has another version of verbena, which cannot move so", pid);
	if (address_find(l->there, gid, &at))
		return EXIT_SUCCESS;
	if (!with_addresses)
		return complain(
			"process %d: the program uses %s, which is no address there; --with-addresses takes it along",
			pid, text);
	if (!address_find(l->here, gid, &at))
		return complain("process %d: the program uses %s, which is no address there, nor here", pid, text);
	if (!address_interface(l->there, gid))
		return complain("process %d: there is no interface there whose network %s is in", pid, text);
	l->of[l->count++].from = at;
	return EXIT_SUCCESS;
}

static int pack_device(struct luggage *l, const struct reached *f, size_t device, bool with_addresses)
{
	char command[SAID_BYTES], said[SAID_BYTES];
	int rc = EXIT_SUCCESS;

	for (unsigned i = 0; rc == EXIT_SUCCESS; i++) {
		snprintf(command, sizeof(command), "address %u", i);
		rc = reach_ask(f, device, command, said, sizeof(said));
		if (rc)
			return complain("process %d does not answer: %s", f->pid, strerror(-rc));
		if (!strcmp(said, "no address"))
			return EXIT_SUCCESS;
		if (strncmp(said, "address ", strlen("address ")) != 0)
			return complain("process %d: %s", f->pid, said);
		rc = pack(l, f->pid, said + strlen("address "), with_addresses);
	}
	return rc;
}

static bool is_packed(const struct luggage *l, const uint8_t gid[16])
{
	for (size_t i = 0; i < l->count; i++)
		if (!memcmp(l->of[i].from.gid, gid, sizeof(l->of[i].from.gid)))
			return true;
	return false;
}

/* One whose address stays would be ended by the kernel when the program is killed here, and its peer would see that. */
static int pack_tcp(struct luggage *l, pid_t pid, int pidfd, bool with_addresses)
{
	char text[ADDRESS_BYTES];
	uint8_t gid[16];
	int rc = EXIT_SUCCESS;

	for (size_t i = 0; rc == EXIT_SUCCESS && ends_tcp_address(pid, pidfd, i, gid); i++) {
		l->has_tcp = true;
		if (is_packed(l, gid))
			continue;
		rc = pack(l, pid, gid_text(gid, text), with_addresses);
		if (rc == EXIT_SUCCESS && !is_packed(l, gid))
			rc = complain(
				"process %d has a TCP connection from %s, which is an address there already: it cannot move along",
				pid, text);
	}
	return rc;
}

int luggage_pack(struct luggage *l, const struct reached *f, int pidfd, int here, int there, bool with_addresses)
{
	int rc = EXIT_SUCCESS;

	*l = (struct luggage){.here = address_open(), .there = -1};
	if (setns(there, CLONE_NEWNET) < 0)
		return complain("move: --to: it may not enter that network namespace: %s", strerror(errno));
	l->there = address_open();
	setns(here, CLONE_NEWNET);
	if (l->here < 0 || l->there < 0)
		return complain("move: it cannot ask the kernel for addresses: %s",
				strerror(l->here < 0 ? -l->here : -l->there));
	for (size_t i = 0; i < f->count && rc == EXIT_SUCCESS; i++)
		rc = pack_device(l, f, i, with_addresses);
	return rc == EXIT_SUCCESS ? pack_tcp(l, f->pid, pidfd, with_addresses) : rc;
}

int luggage_give(struct luggage *l)
{
	char text[ADDRESS_BYTES];
	int rc;

	for (; l->given < l->count; l->given++) {
		rc = address_add(l->there, &l->of[l->given].from, &l->of[l->given].to);
		if (!rc)
			continue;
		complain("move: it cannot add %s there: %s", gid_text(l->of[l->given].from.gid, text), strerror(-rc));
		luggage_take_back(l);
		return EXIT_OURS;
	}
	return EXIT_SUCCESS;
}

void luggage_take_back(struct luggage *l)
{
	while (l->given)
		address_remove(l->there, &l->of[--l->given].to);
}

void luggage_leave(struct luggage *l)
{
	for (size_t i = 0; i < l->count; i++)
		address_remove(l->here, &l->of[i].from);
}

void luggage_announce(const struct luggage *l, bool there)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct address *a = there ? &l->of[i].to : &l->of[i].from;

		address_announce(a->gid, a->ifindex);
	}
}

void luggage_close(struct luggage *l)
{
	if (l->here >= 0)
		close(l->here);
	if (l->there >= 0)
		close(l->there);
}
