/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests as clients send them, and as nobody should. */
#include "http_request.h"

#include <stdio.h>
#include <string.h>

#include "support/test.h"

/* As Prometheus 2.42, curl 7.88 and a browser send them. */
static const char prometheus[] =
	"GET /metrics HTTP/1.1\r\nHost: localhost:9399\r\nUser-Agent: Prometheus/2.42.0\r\nAccept: "
	"application/openmetrics-text;version=1.0.0,*/*;q=0.1\r\nAccept-Encoding: gzip\r\n"
	"X-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n";
static const char curl[] =
	"HEAD /metrics HTTP/1.1\r\nHost: 127.0.0.1:9399\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n";
static const char browser[] = "GET / HTTP/1.1\r\nHost: [::1]:9399\r\nConnection: keep-alive\r\nCookie:\r\n\r\n";

static struct http_request judge(const char *text)
{
	return http_judge(text, strlen(text));
}

TEST(clients_get_their_page)
{
	assert_int_equal(judge(prometheus).status, 200);
	assert_int_equal(judge(prometheus).page, HTTP_METRICS);
	assert_false(judge(prometheus).head);
	assert_int_equal(judge(curl).status, 200);
	assert_true(judge(curl).head);
	assert_int_equal(judge(browser).status, 200);
	assert_int_equal(judge(browser).page, HTTP_INDEX);
}

/* A request has one verdict, however its bytes arrive and whatever comes behind. */
TEST(a_request_is_judged_when_it_is_whole)
{
	char more[sizeof(prometheus) + 10];

	for (size_t len = 0; len < strlen(prometheus); len++)
		assert_int_equal(http_judge(prometheus, len).status, 0);
	snprintf(more, sizeof(more), "%sGET \1", prometheus);
	assert_int_equal(judge(more).status, 200);
}

TEST(what_is_wrong_is_refused)
{
	static const struct {
		int status;
		const char *text;
	} rows[] = {
		{400, "\r\n\r\n"},
		{400, "GET\r\n\r\n"},
		{400, "GET /metrics\r\n\r\n"},
		{400, "GET  /metrics HTTP/1.1\r\nHost: a\r\n\r\n"},
		{400, "GET /metrics  HTTP/1.1\r\nHost: a\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1 \r\nHost: a\r\n\r\n"},
		{400, "GET /metrics http/1.1\r\nHost: a\r\n\r\n"},
		{400, "G(T /metrics HTTP/1.1\r\nHost: a\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\nHost : a\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\nHost: a\r\nno field\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\nHost: a\177\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde"},
		{400, "GET /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{404, "GET /other HTTP/1.1\r\nHost: a\r\n\r\n"},
		{404, "GET /metrics/ HTTP/1.1\r\nHost: a\r\n\r\n"},
		{404, "GET http://a HTTP/1.1\r\nHost: a\r\n\r\n"},
		{404, "GET * HTTP/1.1\r\nHost: a\r\n\r\n"},
		{405, "POST /metrics HTTP/1.1\r\nHost: a\r\n\r\n"},
		{405, "get /metrics HTTP/1.1\r\nHost: a\r\n\r\n"},
		{505, "GET /metrics HTTP/1.2\r\nHost: a\r\n\r\n"},
		{200, "GET /metrics?a=b HTTP/1.1\r\nHost: a\r\n\r\n"},
		{200, "GET HTTP://a:1/metrics HTTP/1.1\r\nHOST:a\r\n\r\n"},
		{200, "GET /metrics HTTP/1.0\r\n\r\n"},
		{200, "GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (judge(rows[i].text).status != rows[i].status)
			print_error("%s: %d\n", rows[i].text, judge(rows[i].text).status);
		assert_int_equal(judge(rows[i].text).status, rows[i].status);
	}
}

TEST(a_request_without_end_is_too_long)
{
	char all[HTTP_REQUEST_BYTES_MAX];

	memset(all, 'a', sizeof(all));
	assert_int_equal(http_judge(all, sizeof(all) - 1).status, 0);
	assert_int_equal(http_judge(all, sizeof(all)).status, 431);
}
