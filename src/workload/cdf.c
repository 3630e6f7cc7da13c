/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The points of the four distributions are text here, the same text as in share/cdf, so there is
 * one reader and one form.
 */
#include <errno.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>

#include "workload/cdf.h"

typedef unsigned __int128 u128;

enum { SHARE_EXPONENT = 10 }; /* a percent is 10^10 of CDF_ONE */

static int read_point(struct text *t, struct cdf_point *p, struct text_error *err)
{
	struct word bytes, percent, extra;

	if (!text_word(t, &bytes) || !text_word(t, &percent) || text_word(t, &extra))
		return text_fail(err, t->line, "not of the form: bytes percent");
	if (!word_number(bytes, 0, &p->bytes) || p->bytes > CDF_BYTES_MAX)
		return text_fail(err, t->line, "'%w' for a size; allowed are 0 to %u bytes", bytes,
				 (uint64_t)CDF_BYTES_MAX);
	if (!word_number(percent, SHARE_EXPONENT, &p->share) || p->share > CDF_ONE)
		return text_fail(err, t->line, "'%w' for a percent; allowed are 0 to 100", percent);
	return 0;
}

int cdf_read(struct cdf *out, const char *bytes, size_t size, struct text_error *err)
{
	struct cdf c = {0};
	struct text t;
	uint32_t room = 0;
	int rc = 0;

	text_start(&t, bytes, size);
	while (!rc && text_next_line(&t)) {
		struct cdf_point *p, *before;

		if (c.count == CDF_POINTS_MAX) {
			rc = text_fail(err, t.line, "more than %u points", (uint64_t)CDF_POINTS_MAX);
			break;
		}
		if (c.count == room) {
			room = room ? 2 * room : 32;
			p = realloc(c.points, room * sizeof(*p));
			if (!p) {
				rc = -ENOMEM;
				break;
			}
			c.points = p;
		}
		p = &c.points[c.count];
		before = c.count++ ? p - 1 : p;
		rc = read_point(&t, p, err);
		if (!rc && (p->bytes < before->bytes || p->share < before->share))
			rc = text_fail(err, t.line, "bytes and percent must not fall from line to line");
	}
	if (!rc && (!c.count || c.points[c.count - 1].share != CDF_ONE))
		rc = text_fail(err, t.line, "the last percent must be 100");
	if (!rc && !c.points[c.count - 1].bytes)
		rc = text_fail(err, t.line, "the largest size must be 1 byte or more");
	if (rc)
		cdf_free(&c);
	else
		*out = c;
	return rc;
}

void cdf_free(struct cdf *c)
{
	free(c->points);
	*c = (struct cdf){0};
}

uint64_t cdf_mean_millibytes(const struct cdf *c)
{
	/* Twice the mean, times CDF_ONE: at most 2 x 2^40 x 10^12. */
	u128 sum = (u128)2 * c->points[0].bytes * c->points[0].share;

	for (uint32_t i = 1; i < c->count; i++)
		sum += (u128)(c->points[i].bytes + c->points[i - 1].bytes) *
		       (c->points[i].share - c->points[i - 1].share);
	return (uint64_t)((sum * 1000 + CDF_ONE) / (2 * CDF_ONE));
}

uint64_t cdf_bytes(const struct cdf *c, uint64_t uniform)
{
	uint64_t share = (uint64_t)((u128)uniform * CDF_ONE >> 64);
	uint32_t low = 0, high = c->count - 1;
	uint64_t bytes;

	/* The first point beyond the share; the last point always is, since its share is CDF_ONE. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (c->points[middle].share > share)
			high = middle;
		else
			low = middle + 1;
	}
	bytes = c->points[low].bytes;
	if (low) {
		const struct cdf_point *a = &c->points[low - 1], *b = &c->points[low];

		bytes = a->bytes + (uint64_t)((u128)(b->bytes - a->bytes) * (share - a->share) / (b->share - a->share));
	}
	return bytes ? bytes : 1;
}

static const struct {
	const char *name, *text;
} builtin[] = {
	{"WebSearch", "0 0\n"
		      "10000 15\n"
		      "20000 20\n"
		      "30000 30\n"
		      "50000 40\n"
		      "80000 53\n"
		      "200000 60\n"
		      "1000000 70\n"
		      "2000000 80\n"
		      "5000000 90\n"
		      "10000000 97\n"
		      "30000000 100\n"},
	{"FB_Hadoop", "0 0\n"
		      "100 1\n"
		      "200 2\n"
		      "300 5\n"
		      "350 15\n"
		      "400 20\n"
		      "500 30\n"
		      "600 40\n"
		      "700 50\n"
		      "1000 60\n"
		      "2000 67\n"
		      "7000 70\n"
		      "30000 72\n"
		      "50000 82\n"
		      "80000 87\n"
		      "120000 90\n"
		      "300000 95\n"
		      "1000000 97.5\n"
		      "2000000 99\n"
		      "10000000 100\n"},
	{"AliStorage2019", "0 0\n"
			   "4000 22.93\n"
			   "8000 69.21\n"
			   "16000 80.61\n"
			   "32000 90.47\n"
			   "64000 93.53\n"
			   "128000 96.77\n"
			   "256000 97.53\n"
			   "2000000 100\n"},
	{"GoogleRPC2008", "0 0\n"
			  "3 6.5\n"
			  "64 15.5\n"
			  "128 35.2\n"
			  "256 49.8\n"
			  "512 78.5\n"
			  "1024 86.3\n"
			  "2048 90.9\n"
			  "4096 93.5\n"
			  "8192 96.4\n"
			  "16384 98.5\n"
			  "32768 99.04\n"
			  "65536 99.33\n"
			  "131072 99.713\n"
			  "262144 99.845\n"
			  "524288 99.95\n"
			  "1048576 99.976\n"
			  "2034108 99.988\n"
			  "4135977 99.995\n"
			  "8231141 99.9985\n"
			  "15158197 100\n"},
};

const char *const cdf_names[] = {"WebSearch", "FB_Hadoop", "AliStorage2019", "GoogleRPC2008", NULL};

/* FB_Hadoop is fb-hadoop is fb_hadoop. */
static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		char x = *a == '-' ? '_' : *a, y = *b == '-' ? '_' : *b;

		if (x >= 'A' && x <= 'Z')
			x = (char)(x - 'A' + 'a');
		if (y >= 'A' && y <= 'Z')
			y = (char)(y - 'A' + 'a');
		if (x != y)
			return false;
	}
	return *a == *b;
}

const char *cdf_text(const char *name)
{
	for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++)
		if (same_name(builtin[i].name, name))
			return builtin[i].text;
	return NULL;
}

int cdf_builtin(struct cdf *out, const char *name, struct text_error *err)
{
	const char *text = cdf_text(name);

	if (!text)
		return text_fail(err, 0,
				 "no distribution is called '%s'; allowed are WebSearch, FB_Hadoop, "
				 "AliStorage2019, GoogleRPC2008",
				 name);
	return cdf_read(out, text, strlen(text), err);
}
