/* SPDX-License-Identifier: BSD-2-Clause */
/* See tcp_address.h. */
#include "io/tcp/tcp_address.h"

#include <string.h>

bool tcp_address_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, prefix, sizeof(prefix));
}

socklen_t tcp_address_write(union tcp_address *a, const uint8_t gid[16], uint16_t port, uint32_t ifindex)
{
	memset(a, 0, sizeof(*a));
	if (tcp_address_is_ipv4(gid)) {
		a->v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
		memcpy(&a->v4.sin_addr, gid + 12, 4);
		return sizeof(a->v4);
	}
	a->v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
	memcpy(&a->v6.sin6_addr, gid, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr))
		a->v6.sin6_scope_id = ifindex;
	return sizeof(a->v6);
}

void tcp_address_read(const union tcp_address *a, uint8_t gid[16], uint16_t *port)
{
	if (a->any.sa_family == AF_INET) {
		memset(gid, 0, 16);
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, &a->v4.sin_addr, 4);
		*port = ntohs(a->v4.sin_port);
	} else {
		memcpy(gid, &a->v6.sin6_addr, 16);
		*port = ntohs(a->v6.sin6_port);
	}
}
