/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena export`: once a second it looks at the counters of the programs that run, and writes what has changed; who asks by
 * HTTP gets what was seen last.
 */
#include "export.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/gids.h"
#include "export_text.h"
#include "http.h"
#include "io/clock.h"
#include "sysfs_files.h"
#include "tool.h"

enum { LOOK_MS = 1000 };

static const char usage[] =
	"usage: verbena export OPTION...\n"
	"\n"
	"Gives the counters of your running programs, summed for each device, to programs that collect them,\n"
	"until it is interrupted. Names are those of InfiniBand adapters' counters.\n"
	"\n"
	"  -p, --prometheus ADDRESS:PORT  by HTTP, at that address alone, as /metrics\n"
	"  -t, --textfile FILE            as a file for the node exporter's textfile collector\n"
	"  -s, --sysfs DIR                as files in DIR, as the kernel has them in /sys\n"
	"  -n, --name NAME                what the first device is called there, as mlx5_0\n"
	"  -h, --help                     this text\n";

struct exporter {
	const struct export_wanted *wanted;
	const struct config *config;
	struct tally *tally;
	struct sysfs_files *files;
	struct http *http;
	char *text; /* of the last look */
	size_t text_bytes;
};

/* 0 or a negative errno. */
static int textfile_write(const char *path, const char *text, size_t bytes)
{
	char *beside;
	int fd, err = 0;

	if (asprintf(&beside, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkstemp(beside);
	if (fd < 0) {
		err = -errno;
		free(beside);
		return err;
	}
	if (write(fd, text, bytes) != (ssize_t)bytes)
		err = -ENOSPC;
	else if (fchmod(fd, 0644) || rename(beside, path))
		err = -errno;
	close(fd);
	if (err)
		unlink(beside);
	free(beside);
	return err;
}

/* Of each device; a port of zeros is down. */
static void ports_now(const struct config *c, struct engine_port ports[ENGINE_DEVICES_MAX])
{
	struct gid_table *t = calloc(ENGINE_DEVICES_MAX, sizeof(*t));
	char why[1024];

	if (t && !gids_load_all(t, c, why, sizeof(why)))
		for (unsigned d = 0; d < c->devices.count; d++)
			ports[d] = t[d].port;
	free(t);
}

static int fail(const char *name, int err)
{
	return complain("%s: %s", name, strerror(-err));
}

/* The exit status of what goes wrong, or 0. */
static int look(struct exporter *x)
{
	const struct export_wanted *w = x->wanted;
	struct engine_port ports[ENGINE_DEVICES_MAX] = {0};
	int err = tally_look(x->tally);

	if (err)
		return complain("cannot ask running programs: %s", strerror(-err));
	err = x->files ? sysfs_files_update(x->files, x->tally) : 0;
	if (err)
		return fail(w->sysfs, err);
	if (!w->textfile && !w->prometheus)
		return 0;
	ports_now(x->config, ports);
	free(x->text);
	x->text = export_text(x->tally, ports, &x->text_bytes);
	if (!x->text)
		return complain("out of memory");
	err = w->textfile ? textfile_write(w->textfile, x->text, x->text_bytes) : 0;
	return err ? fail(w->textfile, err) : 0;
}

static int start(struct exporter *x)
{
	const struct export_wanted *w = x->wanted;
	int err;

	x->tally = tally_new(x->config);
	if (!x->tally)
		return complain("out of memory");
	err = tally_look(x->tally);
	if (err)
		return complain("cannot ask running programs: %s", strerror(-err));
	if (w->prometheus && !(x->http = http_open(w->prometheus)))
		return EXIT_OURS;
	if (w->sysfs && !(x->files = sysfs_files_open(w->sysfs, w->name, x->config, x->tally)))
		return EXIT_OURS;
	return look(x);
}

static int keep(struct exporter *x, int signals)
{
	uint64_t next_ms = clock_now_ms() + LOOK_MS;
	struct pollfd p = {.fd = signals, .events = POLLIN};
	int rc = 0;

	for (;;) {
		uint64_t now_ms = clock_now_ms();

		if (x->http)
			http_serve(x->http, x->text, x->text_bytes, signals, next_ms);
		else
			poll(&p, 1, next_ms > now_ms ? (int)(next_ms - now_ms) : 0);
		if (poll(&p, 1, 0) > 0)
			return EXIT_SUCCESS;
		now_ms = clock_now_ms();
		if (now_ms < next_ms)
			continue;
		rc = look(x);
		if (rc)
			return rc;
		next_ms = now_ms + LOOK_MS;
	}
}

int export_run(const struct export_wanted *wanted, const struct config *c)
{
	struct exporter x = {.wanted = wanted, .config = c};
	sigset_t ends;
	int signals, rc;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return complain("signalfd: %s", strerror(errno));
	rc = start(&x);
	if (!rc)
		rc = keep(&x, signals);
	if (wanted->textfile && x.text)
		unlink(wanted->textfile);
	sysfs_files_close(x.files);
	http_close(x.http);
	tally_free(x.tally);
	free(x.text);
	close(signals);
	return rc;
}

/* As the kernel allows them. */
static bool is_name(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", name[i]))
			return false;
	return len && len < SYSFS_NAME_BYTES - 8;
}

int cmd_export(int argc, char **argv)
{
	static const struct option options[] = {
		{"prometheus", required_argument, NULL, 'p'},
		{"textfile", required_argument, NULL, 't'},
		{"sysfs", required_argument, NULL, 's'},
		{"name", required_argument, NULL, 'n'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct export_wanted w = {0};
	struct config c;
	char why[1024];
	int opt;

	while ((opt = getopt_long(argc, argv, "p:t:s:n:h", options, NULL)) != -1) {
		switch (opt) {
		case 'p': w.prometheus = optarg; break;
		case 't': w.textfile = optarg; break;
		case 's': w.sysfs = optarg; break;
		case 'n': w.name = optarg; break;
		case 'h': fputs(usage, stdout); return EXIT_SUCCESS;
		default: return usage_error("export");
		}
	}
	if (optind < argc)
		return complain("export: '%s': no argument is allowed", argv[optind]);
	if (!w.prometheus && !w.textfile && !w.sysfs)
		return complain("export: one of --prometheus, --textfile and --sysfs is needed");
	if (w.name && !w.sysfs)
		return complain("--name %s: it is for --sysfs", w.name);
	if (w.name && !is_name(w.name))
		return complain("--name %s: allowed are at most %d letters, digits, '_' and '-'", w.name,
				SYSFS_NAME_BYTES - 9);
	if (config_load(&c, why, sizeof(why)))
		return complain("%s", why);
	return export_run(&w, &c);
}
