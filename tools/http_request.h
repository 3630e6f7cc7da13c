/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request of HTTP/1.1 or 1.0 (RFC 9112) to a server of one page. It takes no bodies, and refuses what a peer may write
 * only by mistake or malice: folded lines, lone CRs and LFs, spaces before colons, two Hosts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { HTTP_REQUEST_BYTES_MAX = 4096 };

enum http_page { HTTP_NONE, HTTP_INDEX, HTTP_METRICS };

struct http_request {
	int status; /* of the answer; 0: more bytes are needed */
	enum http_page page;
	bool head; /* HEAD: without the page itself */
};

/* Judges the first request of those bytes; what stands behind it is not looked at. */
struct http_request http_judge(const char *bytes, size_t len);
