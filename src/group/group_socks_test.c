/* SPDX-License-Identifier: BSD-2-Clause */
/* The digest of the sockets that are held, by which members see that they hold the same, and which sockets are a
 * lane's. */
#include <unistd.h>
#include <arpa/inet.h>

#include "group/group_state.h"
#include "io/udp/udp_socket.h"
#include "support/test.h"

/* Of sockets with those cookies; 0 ends them. */
static uint64_t digest_of(const uint64_t *cookies)
{
	struct group *g = calloc(1, sizeof(*g));
	uint64_t digest;

	assert_non_null(g);
	g->lane_count = 1;
	group_socks_init(g);
	for (unsigned i = 0; cookies[i]; i++)
		g->socks[0][i] = (struct group_socket){.fd = 0, .cookie = cookies[i]};
	digest = group_digest(g);
	free(g);
	return digest;
}

TEST(the_same_sockets_in_another_order_have_the_same_digest)
{
	assert_true(digest_of((uint64_t[]){100, 101, 102, 0}) == digest_of((uint64_t[]){102, 100, 101, 0}));
}

/* The kernel counts cookies up, so neighbours are what a member holds, and their plain sums are often equal. */
TEST(other_sockets_have_another_digest)
{
	uint64_t pairs[40 * 39 / 2];
	size_t n = 0;

	for (uint64_t a = 1; a < 40; a++)
		for (uint64_t b = a + 1; b <= 40; b++)
			pairs[n++] = digest_of((uint64_t[]){1000 + a, 1000 + b, 0});
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			assert_true(pairs[i] != pairs[k]);
}

TEST(a_socket_that_is_missing_changes_the_digest)
{
	assert_true(digest_of((uint64_t[]){100, 101, 0}) != digest_of((uint64_t[]){100, 0}));
	assert_true(digest_of((uint64_t[]){100, 0}) != digest_of((uint64_t[]){0}));
}

/* A socket that shares the port in *at, or one that is free, which is then there; the address is text. */
static int socket_at(union udp_address *at, enum udp_family family, const char *text)
{
	int fd = udp_make_socket(family), one = 1;
	socklen_t len = family == UDP_V4 ? sizeof(at->v4) : sizeof(at->v6);
	uint16_t port = at->v4.sin_port;

	memset(at, 0, sizeof(*at));
	at->v4.sin_family = family == UDP_V4 ? AF_INET : AF_INET6;
	at->v4.sin_port = port;
	inet_pton(at->v4.sin_family, text, family == UDP_V4 ? (void *)&at->v4.sin_addr : (void *)&at->v6.sin6_addr);
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)at, len) < 0 || getsockname(fd, (struct sockaddr *)at, &len) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* One that another group of this user shares the port with, at an address of its own. */
TEST(a_socket_of_another_address_is_of_no_lane)
{
	static const struct {
		enum udp_family family;
		const char *ours, *others[2];
		uint8_t gid[16];
	} cases[] = {
		{UDP_V4, "127.0.0.1", {"127.0.0.2", "0.0.0.0"}, {[10] = 0xff, 0xff, 127, 0, 0, 1}},
		{UDP_V4, "0.0.0.0", {"127.0.0.2", "127.0.0.1"}, {0}},
		{UDP_V6, "::1", {"::", "::"}, {[15] = 1}},
		{UDP_V6, "::", {"::1", "::1"}, {0}},
	};
	struct group *g = calloc(1, sizeof(*g));

	assert_non_null(g);
	g->lane_count = 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		union udp_address at = {.v4 = {0}};
		int ours = socket_at(&at, cases[i].family, cases[i].ours);

		if (ours < 0 && cases[i].family == UDP_V6)
			continue; /* a host without IPv6 */
		assert_true(ours >= 0);
		g->lanes[0] = (struct group_lane){.family = (uint8_t)cases[i].family, .port = ntohs(at.v4.sin_port)};
		memcpy(g->lanes[0].at.gid, cases[i].gid, 16);
		assert_int_equal(group_lane_of(g, ours), 0);
		for (size_t k = 0; k < 2; k++) {
			int other = socket_at(&at, cases[i].family, cases[i].others[k]);

			assert_true(other >= 0);
			assert_int_equal(group_lane_of(g, other), -1);
			close(other);
		}
		close(ours);
	}
	free(g);
}
