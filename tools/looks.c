/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes from a process is copied, and then judged: nothing that it says is an index or a length before that. */
#include "looks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/qps_page.h"
#include "group/group.h"
#include "io/clock.h"
#include "tally.h"
#include "tool.h"

enum { ANSWER_MS = 500, AGAIN_MS = 50, TRIES = 40 };

struct taking {
	struct looks *looks;
	struct looks_wanted *wanted;
	const struct config *config;
	bool tells;
	int err;
};

/* ---- a page -------------------------------------------------------------------------------------- */

static bool is_known(const struct nic_qp_look *q)
{
	return q->is.type < QPT_COUNT && q->is.state < QPS_COUNT && q->is.way < NIC_WAYS && q->protocol < NIC_SPOKEN;
}

/* Of a page that is whole. Queue pairs with unknown values are left out. */
static bool is_right(struct qps_page *p, size_t bytes)
{
	uint32_t known = 0;

	if (p->magic != QPS_PAGE_MAGIC || p->version != QPS_PAGE_VERSION || p->bytes != sizeof(*p) ||
	    p->path_count > QPS_PAGE_PATHS_MAX || p->qp_count > QPS_PAGE_QPS_MAX ||
	    bytes != offsetof(struct qps_page, qps) + p->qp_count * sizeof(p->qps[0]))
		return false;
	for (uint32_t i = 0; i < p->qp_count; i++)
		if (is_known(&p->qps[i]))
			p->qps[known++] = p->qps[i];
	p->qp_count = known;
	return true;
}

/* *Takes* fd. The caller frees the page; NULL: it is none. */
static struct qps_page *page_read(int fd)
{
	const int needed = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
	struct qps_page *p = NULL;
	struct stat st;

	if ((fcntl(fd, F_GET_SEALS) & needed) == needed && !fstat(fd, &st) && st.st_size > 0 &&
	    (size_t)st.st_size <= sizeof(*p))
		p = calloc(1, sizeof(*p));
	if (p && (pread(fd, p, (size_t)st.st_size, 0) != st.st_size || !is_right(p, (size_t)st.st_size))) {
		free(p);
		p = NULL;
	}
	close(fd);
	return p;
}

/* ---- a program ------------------------------------------------------------------------------------- */

/* Room for more. False: out of memory. */
static bool append(void **rows, size_t *count, const void *more, size_t n, size_t row_bytes)
{
	void *all = n ? realloc(*rows, (*count + n) * row_bytes) : *rows;

	if (n && !all)
		return false;
	*rows = all;
	if (n)
		memcpy((char *)all + *count * row_bytes, more, n * row_bytes);
	*count += n;
	return true;
}

static void look_free(struct look *l)
{
	free(l->paths);
	free(l->qps);
	l->paths = NULL;
	l->qps = NULL;
	l->path_count = l->qp_count = 0;
}

static int by_qpn(const void *a, const void *b)
{
	const struct nic_qp_look *x = a, *y = b;

	return (x->is.qpn > y->is.qpn) - (x->is.qpn < y->is.qpn);
}

/* While pages were asked for, the table may have grown, and queue pairs come twice. */
static void sort_qps(struct look *l)
{
	size_t kept = 0;

	if (l->qp_count)
		qsort(l->qps, l->qp_count, sizeof(*l->qps), by_qpn);
	for (size_t i = 0; i < l->qp_count; i++)
		if (!kept || l->qps[kept - 1].is.qpn != l->qps[i].is.qpn)
			l->qps[kept++] = l->qps[i];
	l->qp_count = kept;
}

/* All pages, one after the other. 0 or a negative errno; -EAGAIN: another tool asks meanwhile. */
static int ask(struct look *l, const struct group_id *id, const struct group_member *m)
{
	uint32_t from = 0;

	l->took_ns = 0;
	do {
		int fd = group_look(id, m, from, ANSWER_MS);
		struct qps_page *p = fd < 0 ? NULL : page_read(fd);
		bool room;

		if (fd < 0)
			return fd;
		if (!p)
			return -EPROTO;
		if (!from) {
			l->at_ns = p->at_ns;
			l->counters = p->counters;
			l->paths_missing = p->unpaths;
		}
		l->took_ns += p->took_ns;
		room = append((void **)&l->paths, &l->path_count, p->paths, p->path_count, sizeof(*l->paths)) &&
		       append((void **)&l->qps, &l->qp_count, p->qps, p->qp_count, sizeof(*l->qps));
		/* A place is always farther on, so that no process can keep us here. */
		from = p->next > from ? p->next : 0;
		free(p);
		if (!room)
			return -ENOMEM;
	} while (from);
	sort_qps(l);
	return 0;
}

static int ask_again(struct look *l, const struct group_id *id, const struct group_member *m)
{
	int err = -EAGAIN;

	for (int i = 0; i < TRIES && err == -EAGAIN; i++) {
		if (i)
			clock_sleep_ns(AGAIN_MS * 1000000ull);
		look_free(l);
		err = ask(l, id, m);
	}
	return err;
}

static bool is_wanted(struct looks_wanted *w, pid_t pid)
{
	bool wanted = !w->pid_count;

	for (int i = 0; i < w->pid_count; i++)
		if (w->pids[i] == pid)
			wanted = w->matched[i] = true;
	return wanted;
}

static void take(void *ctx, const struct group_id *id, const struct group_member *m, const struct stats_page *page)
{
	struct taking *t = ctx;
	struct look l = {.pid = m->pid ? m->pid : page->pid, .raw = !page->port};
	int err;

	if (t->err || !is_wanted(t->wanted, m->pid))
		return;
	printable(l.comm, sizeof(l.comm), page->comm, sizeof(page->comm));
	page_device(l.device, page);
	err = ask_again(&l, id, m);
	if (!err && !append((void **)&t->looks->all, &t->looks->count, &l, 1, sizeof(l)))
		err = -ENOMEM;
	if (err)
		look_free(&l);
	if (err == -ENOMEM)
		t->err = err;
	else if (err && t->tells)
		complain("process %d %s", l.pid,
			 err == -EPROTO   ? "runs another version of verbena"
			 : err == -EAGAIN ? "is asked by others all the time"
					  : "does not answer");
}

int looks_take(struct looks *looks, const struct config *c, struct looks_wanted *wanted, bool tells)
{
	struct taking t = {.looks = looks, .wanted = wanted, .config = c, .tells = tells};
	int err;

	*looks = (struct looks){0};
	err = tally_each(c, take, &t);
	if (!err)
		err = t.err;
	if (err)
		looks_free(looks);
	return err;
}

void looks_free(struct looks *looks)
{
	for (size_t i = 0; i < looks->count; i++)
		look_free(&looks->all[i]);
	free(looks->all);
	*looks = (struct looks){0};
}

/* ---- two looks --------------------------------------------------------------------------------------- */

const struct look *look_before(const struct looks *looks, const struct look *now)
{
	for (size_t i = 0; i < looks->count; i++)
		if (looks->all[i].pid == now->pid && !strcmp(looks->all[i].device, now->device) &&
		    looks->all[i].at_ns < now->at_ns)
			return &looks->all[i];
	return NULL;
}

const struct nic_qp_look *look_qp_before(const struct look *before, const struct nic_qp_look *now)
{
	return before && before->qp_count ? bsearch(now, before->qps, before->qp_count, sizeof(*now), by_qpn) : NULL;
}

const struct nic_path_look *look_path_before(const struct look *before, const struct nic_path_look *now)
{
	for (size_t i = 0; before && i < before->path_count; i++) {
		const struct nic_path_look *p = &before->paths[i];

		if (p->path == now->path && !memcmp(p->src, now->src, 16) && !memcmp(p->dst, now->dst, 16) &&
		    p->sent_bytes <= now->sent_bytes)
			return p;
	}
	return NULL;
}

double look_words_rate(uint32_t before, uint32_t now, double seconds)
{
	return seconds > 0 ? (now - before) * 4. / seconds : 0;
}

/* ---- words --------------------------------------------------------------------------------------------- */

static bool pid_parse(const char *text, pid_t *out)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v <= 0 || v > INT_MAX)
		return false;
	*out = (pid_t)v;
	return true;
}

void page_device(char name[DEVICE_NAME_BYTES], const struct stats_page *p)
{
	char given[DEVICE_NAME_BYTES];

	printable(given, sizeof(given), p->given, sizeof(p->given));
	device_name(name, p->iwarp, given, p->device % ENGINE_DEVICES_MAX);
}

bool looks_pids(const char *command, int argc, char **argv, pid_t pids[LOOKS_PIDS_MAX], int *count)
{
	for (*count = 0; *count < argc; (*count)++) {
		if (*count == LOOKS_PIDS_MAX)
			complain("%s: at most %d process ids are allowed", command, LOOKS_PIDS_MAX);
		else if (!pid_parse(argv[*count], &pids[*count]))
			complain("%s: '%s': allowed are process ids, numbers from 1 on", command, argv[*count]);
		else
			continue;
		return false;
	}
	return true;
}

int looks_missing(const struct looks_wanted *w)
{
	int rc = EXIT_SUCCESS;

	for (int i = 0; i < w->pid_count; i++)
		if (!w->matched[i])
			rc = complain("process %d does not run on Verbena, or is another user's", w->pids[i]);
	return rc;
}

const char *qp_type_word(const struct nic_qp_report *r)
{
	static const char *const names[QPT_COUNT] = {[QPT_RC] = "RC",
						     [QPT_UC] = "UC",
						     [QPT_UD] = "UD",
						     [QPT_XRC_SEND] = "XRC_INI",
						     [QPT_XRC_RECV] = "XRC_TGT"};

	return names[r->type] ? names[r->type] : "?";
}

const char *qp_state_word(const struct nic_qp_report *r)
{
	static const char *const names[QPS_COUNT] = {
		[QPS_RESET] = "RESET", [QPS_INIT] = "INIT", [QPS_RTR] = "RTR", [QPS_RTS] = "RTS",
		[QPS_SQD] = "SQD",     [QPS_SQE] = "SQE",   [QPS_ERR] = "ERR"};

	return names[r->state];
}

const char *qp_protocol_word(const struct nic_qp_look *q)
{
	static const char *const names[NIC_SPOKEN] = {[NIC_SPEAKS_NOTHING] = "none",
						      [NIC_SPEAKS_ROCEV1] = "RoCEv1",
						      [NIC_SPEAKS_ROCEV2] = "RoCEv2",
						      [NIC_SPEAKS_VEROCE] = "veRoCE",
						      [NIC_SPEAKS_IWARP] = "iWARP"};

	return names[q->protocol];
}

const char *qp_way_word(const struct nic_qp_report *r, bool raw)
{
	static const char *const names[NIC_WAYS] = {[NIC_WAY_NONE] = "none",
						    [NIC_WAY_PACKETS] = "udp",
						    [NIC_WAY_MEMORY] = "shm",
						    [NIC_WAY_STREAM] = "tcp",
						    [NIC_WAY_EACH] = "each"};

	return r->way == NIC_WAY_PACKETS && raw ? "raw" : names[r->way];
}

bool qp_has_peer(const struct nic_qp_report *r)
{
	static const uint8_t none[sizeof(r->peer)];

	return memcmp(r->peer, none, sizeof(none)) != 0;
}
