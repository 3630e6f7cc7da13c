/* SPDX-License-Identifier: BSD-2-Clause */
/* sockaddr_in and sockaddr_in6 to GID form and back. */
#include "rdmacm/ucma_addr.h"

#include <errno.h>
#include <string.h>

static int read_ipv4(struct cm_addr *out, const void *sockaddr, size_t len)
{
	struct sockaddr_in in;

	if (len < sizeof(in))
		return -EINVAL;
	memcpy(&in, sockaddr, sizeof(in));
	*out = (struct cm_addr){.ip = {[10] = 0xff, [11] = 0xff}, .port = ntohs(in.sin_port), .family = CM_IPV4};
	memcpy(out->ip + 12, &in.sin_addr, sizeof(in.sin_addr));
	return 0;
}

static int read_ipv6(struct cm_addr *out, const void *sockaddr, size_t len)
{
	struct sockaddr_in6 in;

	if (len < sizeof(in))
		return -EINVAL;
	memcpy(&in, sockaddr, sizeof(in));
	if (IN6_IS_ADDR_LINKLOCAL(&in.sin6_addr) && !in.sin6_scope_id)
		return -EINVAL;
	*out = (struct cm_addr){.port = ntohs(in.sin6_port), .family = CM_IPV6};
	memcpy(out->ip, &in.sin6_addr, sizeof(out->ip));
	if (IN6_IS_ADDR_LINKLOCAL(&in.sin6_addr))
		out->ifindex = in.sin6_scope_id;
	return 0;
}

int ucma_addr_read(struct cm_addr *out, const void *sockaddr, size_t len)
{
	sa_family_t family;

	if (len < sizeof(family))
		return -EINVAL;
	memcpy(&family, sockaddr, sizeof(family));
	switch (family) {
	case AF_INET: return read_ipv4(out, sockaddr, len);
	case AF_INET6: return read_ipv6(out, sockaddr, len);
	default: return -EAFNOSUPPORT;
	}
}

size_t ucma_addr_write(void *sockaddr, size_t room, const struct cm_addr *a)
{
	struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(a->port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(a->port), .sin6_scope_id = a->ifindex};
	size_t len = 0;

	if (a->family == CM_IPV4 && room >= sizeof(in4)) {
		memcpy(&in4.sin_addr, a->ip + 12, sizeof(in4.sin_addr));
		len = sizeof(in4);
		memcpy(sockaddr, &in4, len);
	} else if (a->family == CM_IPV6 && room >= sizeof(in6)) {
		memcpy(&in6.sin6_addr, a->ip, sizeof(in6.sin6_addr));
		len = sizeof(in6);
		memcpy(sockaddr, &in6, len);
	}
	return len;
}
