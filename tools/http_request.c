/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading order is that of the request: its end, its first line, its fields. */
#include "http_request.h"

#include <string.h>
#include <strings.h>

struct text {
	const char *p;
	size_t len;
};

static bool is(struct text t, const char *word)
{
	return t.len == strlen(word) && !memcmp(t.p, word, t.len);
}

/* Field names know no case. */
static bool is_name(struct text t, const char *word)
{
	return t.len == strlen(word) && !strncasecmp(t.p, word, t.len);
}

/* RFC 9110 5.6.2. */
static bool is_token(struct text t)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < t.len; i++) {
		char c = t.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      memchr(others, c, sizeof(others) - 1)))
			return false;
	}
	return t.len;
}

/* What stands before the separator, which goes too; all, if there is none. */
static struct text cut(struct text *rest, const char *separator)
{
	const char *at = memmem(rest->p, rest->len, separator, strlen(separator));
	struct text first = {rest->p, at ? (size_t)(at - rest->p) : rest->len};
	size_t gone = at ? first.len + strlen(separator) : rest->len;

	rest->p += gone;
	rest->len -= gone;
	return first;
}

static bool is_plain(struct text t)
{
	for (size_t i = 0; i < t.len; i++)
		if (((unsigned char)t.p[i] < ' ' && t.p[i] != '\t') || t.p[i] == 0x7f)
			return false;
	return true;
}

static enum http_page page_of(struct text target)
{
	struct text path;

	/* The form that goes to proxies, which a server takes too (RFC 9112 3.2.2). */
	if (target.len > 7 && !strncasecmp(target.p, "http://", 7)) {
		target.p += 7;
		target.len -= 7;
		while (target.len && *target.p != '/') {
			target.p++;
			target.len--;
		}
	}
	path = cut(&target, "?");
	return is(path, "/metrics") ? HTTP_METRICS : is(path, "/") ? HTTP_INDEX : HTTP_NONE;
}

/* 0, or the status with which it is refused. *fresh: it is of HTTP/1.1. */
static int judge_line(struct text line, struct http_request *r, bool *fresh)
{
	struct text method = cut(&line, " "), target = cut(&line, " ");

	if (!is_token(method) || !target.len || line.len != 8 || memcmp(line.p, "HTTP/", 5) || line.p[6] != '.')
		return 400;
	*fresh = is(line, "HTTP/1.1");
	if (!*fresh && !is(line, "HTTP/1.0"))
		return 505;
	r->head = is(method, "HEAD");
	if (!r->head && !is(method, "GET"))
		return 405;
	r->page = page_of(target);
	return r->page == HTTP_NONE ? 404 : 0;
}

/* Refused are fields that are none, and bodies. */
static int judge_field(struct text line, unsigned *hosts)
{
	struct text name;

	if (!memchr(line.p, ':', line.len))
		return 400;
	name = cut(&line, ":");
	while (line.len && (*line.p == ' ' || *line.p == '\t')) {
		line.p++;
		line.len--;
	}
	if (!is_token(name) || is_name(name, "transfer-encoding") ||
	    (is_name(name, "content-length") && !is(line, "0")))
		return 400;
	*hosts += is_name(name, "host");
	return 0;
}

static int judge(struct text head, struct http_request *r)
{
	bool fresh = false;
	unsigned hosts = 0;
	int status, line_status = 0;

	for (bool first = true; first || head.len; first = false) {
		struct text line = cut(&head, "\r\n");

		if (!is_plain(line))
			return 400;
		status = first ? judge_line(line, r, &fresh) : judge_field(line, &hosts);
		if (status == 400)
			return 400;
		if (first)
			line_status = status;
	}
	return hosts > 1 || (fresh && !hosts) ? 400 : line_status;
}

struct http_request http_judge(const char *bytes, size_t len)
{
	const char *end = memmem(bytes, len < HTTP_REQUEST_BYTES_MAX ? len : HTTP_REQUEST_BYTES_MAX, "\r\n\r\n", 4);
	struct http_request r = {0};

	if (!end) {
		r.status = len < HTTP_REQUEST_BYTES_MAX ? 0 : 431;
		return r;
	}
	r.status = judge((struct text){bytes, (size_t)(end - bytes)}, &r);
	if (!r.status)
		r.status = 200;
	return r;
}
