/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A report's folder. The file INCOMPLETE is there from the first moment to the last, so that a
 * report cut short by a full disk, a signal or a power cut cannot be mistaken for a complete one.
 */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

#define MARK "INCOMPLETE"

static void note(struct folder *d, int error, const char *what, const char *name)
{
	if (d->error)
		return;
	d->error = error ? error : EIO;
	snprintf(d->where, sizeof(d->where), "%s%.255s", what, name);
}

static void end_file(struct folder *d)
{
	if (!d->open)
		return;
	errno = 0;
	if (ferror(d->open) | fflush(d->open))
		note(d, errno ? errno : ENOSPC, "cannot write ", d->name);
	if (fclose(d->open))
		note(d, errno, "cannot write ", d->name);
	d->open = NULL;
}

FILE *folder_file(struct folder *d, const char *name)
{
	char path[sizeof(d->path) + sizeof(d->name)];

	end_file(d);
	snprintf(d->name, sizeof(d->name), "%s", name);
	snprintf(path, sizeof(path), "%s/%s", d->path, name);
	if (!d->error) {
		d->open = fopen(path, "we");
		if (!d->open)
			note(d, errno, "cannot write ", name);
	}
	if (!d->open)
		d->open = fopen("/dev/null", "we");
	if (!d->open)
		abort(); /* no descriptor and no memory are left for a message */
	return d->open;
}

int folder_open(struct folder *d, const char *path)
{
	*d = (struct folder){0};
	if (snprintf(d->path, sizeof(d->path), "%s", path) >= (int)sizeof(d->path)) {
		note(d, ENAMETOOLONG, "cannot make it", "");
		return -1;
	}
	for (char *p = d->path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(d->path, 0777) && errno != EEXIST)
			note(d, errno, "cannot make ", d->path);
		*p = '/';
	}
	if (!d->error && mkdir(d->path, 0777) && errno != EEXIST)
		note(d, errno, "cannot make it", "");
	fputs("Until this file is gone, the files beside it are not a whole report.\n", folder_file(d, MARK));
	end_file(d);
	return d->error ? -1 : 0;
}

int folder_close(struct folder *d)
{
	char path[sizeof(d->path) + sizeof(d->name)];

	end_file(d);
	snprintf(path, sizeof(path), "%s/" MARK, d->path);
	if (!d->error && unlink(path))
		note(d, errno, "cannot remove ", MARK);
	if (d->error)
		return complain("the report in %s is not complete: %s: %s", d->path, d->where, strerror(d->error));
	return 0;
}
