/* SPDX-License-Identifier: BSD-2-Clause */
/* The page is built in memory of its own and written at once: a reader never has a file that still grows. */
#include "engine/qps_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "engine/state.h"
#include "engine/stats.h"
#include "space/space.h"

enum { CHUNK = 256, CHUNK_NS_MAX = 2000000 };

static const uint64_t round_ns = 900000000; /* a tool that asks once a second is never refused */

/* From that place on, until the page is full or took long. */
static void fill(struct engine *e, struct qps_page *p, uint32_t from)
{
	struct nic *nic = e->loop.nic;
	uint64_t began_ns = env_now_ns(e->env), now_ns = began_ns;

	/* The rest is zero; to write all of it would cost more than a few queue pairs do. */
	p->magic = QPS_PAGE_MAGIC;
	p->version = QPS_PAGE_VERSION;
	p->bytes = sizeof(*p);
	p->next = from;
	p->at_ns = began_ns;
	p->counters = *nic_counters(nic);
	if (!from) {
		p->path_count = (uint32_t)nic_look_paths(nic, p->paths, QPS_PAGE_PATHS_MAX);
		p->unpaths = p->path_count == QPS_PAGE_PATHS_MAX;
	}
	do {
		uint32_t room = QPS_PAGE_QPS_MAX - p->qp_count;

		p->qp_count += (uint32_t)nic_look_qps(nic, &p->next, p->qps + p->qp_count, room < CHUNK ? room : CHUNK);
		now_ns = env_now_ns(e->env);
	} while (p->next && p->qp_count + CHUNK <= QPS_PAGE_QPS_MAX && now_ns - began_ns < CHUNK_NS_MAX);
	p->took_ns = now_ns - began_ns;
}

/* A sealed file, or -1. */
static int page_file(const struct qps_page *p)
{
	size_t bytes = offsetof(struct qps_page, qps) + p->qp_count * sizeof(p->qps[0]);
	int fd = stats_make_file("verbena-qps", bytes);

	if (fd < 0)
		return -1;
	if (pwrite(fd, p, bytes, 0) == (ssize_t)bytes &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	close(fd);
	return -1;
}

/* Whether a question from that place is answered now: the first of a round, or the next one. */
static bool is_due(const struct qps_round *r, uint64_t from, uint64_t now_ns)
{
	return from ? from == r->next : now_ns >= r->again_ns;
}

void qps_page_serve(struct engine *e)
{
	struct qps_round *r = &e->qps_round;
	struct qps_page *p;
	uint64_t from, now_ns;
	int fd = -1;

	if (!e->group || !group_next_look(e->group, &from))
		return;
	now_ns = env_now_ns(e->env);
	p = is_due(r, from, now_ns) ? space_get(sizeof(*p)) : NULL;
	if (p) {
		fill(e, p, (uint32_t)from);
		fd = page_file(p);
		r->next = p->next;
		if (!from)
			r->again_ns = now_ns + round_ns;
		space_put(p, sizeof(*p));
	}
	group_answer_look(e->group, fd);
	if (fd >= 0)
		close(fd);
}
