/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server of one page for one thread. A client that is slow holds up nobody: each has a few seconds for all, and where
 * there are too many, the oldest gives way to the newest.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct http;

/*
 * Listens at ADDRESS:PORT, and nowhere else; addresses are numbers, those of IPv6 in brackets. NULL, after a sentence on
 * standard error.
 */
struct http *http_open(const char *where);
void http_close(struct http *); /* NULL is harmless */

/* Serves the page, which it borrows, until that time of io/clock.h, or until fd, which is not -1, is readable. */
void http_serve(struct http *, const char *page, size_t page_bytes, int fd, uint64_t until_ms);
