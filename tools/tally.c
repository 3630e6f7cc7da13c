/* SPDX-License-Identifier: BSD-2-Clause */
/* A program is known by its process id, its start and its device, so that a process id that comes again is another one. */
#include "tally.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "group/group.h"
#include "tool.h"

enum { WAIT_MS = 300, GROUPS_MAX = 64 };

static int group_each(const struct group_id *id, tally_visit *visit, void *ctx)
{
	struct group_member m[GROUP_SLOTS];
	ssize_t n = group_query(id, GROUP_ALL_SLOTS, WAIT_MS, m, GROUP_SLOTS);

	for (ssize_t i = 0; i < n; i++) {
		const struct stats_page *p = m[i].stat_fd < 0 ? NULL : stats_map(m[i].stat_fd);

		if (p) {
			visit(ctx, id, &m[i], p);
			stats_unmap(p);
		}
		if (m[i].stat_fd >= 0)
			close(m[i].stat_fd);
	}
	return n < 0 ? (int)n : 0;
}

int tally_each(const struct config *c, tally_visit *visit, void *ctx)
{
	uint16_t port = c->transport.protocol == PROTOCOL_ROCEV1 ? config_rocev1_port(c) : c->transport.rocev2.port;
	struct group_id ids[2 * GROUPS_MAX];
	size_t n = group_list(geteuid(), port, ids, GROUPS_MAX);
	int err = 0;

	n += group_list(geteuid(), GROUP_PORT_NONE, ids + n, GROUPS_MAX); /* iWARP's */
	for (size_t i = 0; i < n && !err; i++)
		if (ids[i].uid == geteuid() || !geteuid())
			err = group_each(&ids[i], visit, ctx);
	return err;
}

struct tally *tally_new(const struct config *c)
{
	struct tally *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->config = c;
	t->fields = stats_fields(&t->field_count);
	for (unsigned d = 0; d < ENGINE_DEVICES_MAX; d++) {
		t->sums[d] = calloc(t->field_count, sizeof(uint64_t));
		if (!t->sums[d]) {
			tally_free(t);
			return NULL;
		}
	}
	return t;
}

void tally_free(struct tally *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->program_count; i++)
		free(t->programs[i].counted);
	for (unsigned d = 0; d < ENGINE_DEVICES_MAX; d++)
		free(t->sums[d]);
	free(t->programs);
	free(t);
}

size_t tally_field(const struct tally *t, const char *name)
{
	size_t i = 0;

	while (i < t->field_count && strcmp(t->fields[i].name, name))
		i++;
	assert(i < t->field_count);
	return i;
}

static struct tally_program *find(struct tally *t, const struct stats_page *p, pid_t pid)
{
	struct tally_program *more;

	for (size_t i = 0; i < t->program_count; i++) {
		more = &t->programs[i];
		if (more->own_pid == p->pid && more->pid == pid && more->started_ns == p->started_ns &&
		    more->device == p->device)
			return more;
	}
	more = realloc(t->programs, (t->program_count + 1) * sizeof(*more));
	if (!more)
		return NULL;
	t->programs = more;
	more += t->program_count;
	*more = (struct tally_program){.pid = pid, .own_pid = p->pid, .started_ns = p->started_ns, .device = p->device};
	more->counted = calloc(t->field_count, sizeof(uint64_t));
	if (!more->counted)
		return NULL;
	t->program_count++;
	return more;
}

static void count(void *tally, const struct group_id *id, const struct group_member *m, const struct stats_page *p)
{
	struct tally *t = tally;
	struct tally_program *its;

	/* Another virtual device's counters are not this one's. */
	if (p->device >= ENGINE_DEVICES_MAX || strncmp(p->given, t->config->device, sizeof(p->given)))
		return;
	its = find(t, p, m->pid);
	if (!its)
		return;
	its->seen = true;
	printable(its->comm, sizeof(its->comm), p->comm, sizeof(p->comm));
	for (size_t i = 0; i < t->field_count; i++) {
		uint64_t now = stats_value(p, &t->fields[i]);

		if (now > its->counted[i])
			t->sums[its->device][i] += now - its->counted[i];
		its->counted[i] = now;
	}
}

/* One that does not answer in time may live, so it is remembered until its process is gone. */
static void forget_the_gone(struct tally *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->program_count; i++) {
		struct tally_program *p = &t->programs[i];

		if (!p->seen && (!p->pid || (kill(p->pid, 0) && errno == ESRCH)))
			free(p->counted);
		else
			t->programs[kept++] = *p;
	}
	t->program_count = kept;
}

int tally_look(struct tally *t)
{
	int err;

	for (size_t i = 0; i < t->program_count; i++)
		t->programs[i].seen = false;
	err = tally_each(t->config, count, t);
	forget_the_gone(t);
	return err;
}
