/* SPDX-License-Identifier: BSD-2-Clause */
/* Rtnetlink's RTM_GETNEIGH of one address, and the datagram that makes the kernel resolve it. */
#include "io/raw/neighbour.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/fd_away.h"

enum {
	REPLY_BYTES = 4096,
	MAC_BYTES = 6,
	DISCARD_PORT = 9,
	/* Linux's NUD_VALID without what needs no MAC */
	VALID = NUD_PERMANENT | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY
};

static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

static bool is_ipv4(const uint8_t address[16])
{
	return !memcmp(address, v4_mapped, sizeof(v4_mapped));
}

int neighbour_open(void)
{
	int fd = fd_away(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));

	return fd < 0 ? -errno : fd;
}

static bool ask_table(int fd, uint32_t ifindex, const uint8_t address[16])
{
	struct {
		struct nlmsghdr h;
		struct ndmsg n;
		struct rtattr a;
		uint8_t address[16];
	} q = {
		.h = {.nlmsg_type = RTM_GETNEIGH, .nlmsg_flags = NLM_F_REQUEST},
		.n = {.ndm_family = is_ipv4(address) ? AF_INET : AF_INET6, .ndm_ifindex = (int)ifindex},
		.a = {.rta_type = NDA_DST},
	};
	size_t bytes = is_ipv4(address) ? 4 : 16;

	memcpy(q.address, address + 16 - bytes, bytes);
	q.a.rta_len = (unsigned short)RTA_LENGTH(bytes);
	q.h.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(q.n)) + RTA_ALIGN(q.a.rta_len));
	return send(fd, &q, q.h.nlmsg_len, MSG_DONTWAIT) == (ssize_t)q.h.nlmsg_len;
}

/* The entry's state; its MAC goes to mac if there is one. */
static enum neighbour_state read_entry(const struct nlmsghdr *h, uint8_t mac[6])
{
	const struct ndmsg *n = NLMSG_DATA(h);
	unsigned left = (unsigned)(h->nlmsg_len - NLMSG_LENGTH(sizeof(*n)));

	if (h->nlmsg_type != RTM_NEWNEIGH || h->nlmsg_len < NLMSG_LENGTH(sizeof(*n)) || !(n->ndm_state & VALID))
		return NEIGHBOUR_UNKNOWN;
	for (const struct rtattr *a = (const void *)((const char *)n + NLMSG_ALIGN(sizeof(*n))); RTA_OK(a, left);
	     a = RTA_NEXT(a, left)) {
		if (a->rta_type != NDA_LLADDR || RTA_PAYLOAD(a) != MAC_BYTES)
			continue;
		memcpy(mac, RTA_DATA(a), MAC_BYTES);
		return n->ndm_state & NUD_STALE ? NEIGHBOUR_STALE : NEIGHBOUR_KNOWN;
	}
	return NEIGHBOUR_UNKNOWN;
}

enum neighbour_state neighbour_look(int fd, uint32_t ifindex, const uint8_t address[16], uint8_t mac[6])
{
	_Alignas(struct nlmsghdr) char reply[REPLY_BYTES];
	const struct nlmsghdr *h = (const void *)reply;
	ssize_t got;

	if (!ask_table(fd, ifindex, address))
		return NEIGHBOUR_UNKNOWN;
	/* Netlink answers within send(). */
	got = recv(fd, reply, sizeof(reply), MSG_DONTWAIT);
	if (got < 0 || !NLMSG_OK(h, (size_t)got))
		return NEIGHBOUR_UNKNOWN;
	return read_entry(h, mac);
}

void neighbour_ask(uint32_t ifindex, const uint8_t address[16])
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(DISCARD_PORT)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(DISCARD_PORT), .sin6_scope_id = ifindex};
	bool ipv4 = is_ipv4(address);
	int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int index = (int)ifindex;

	if (fd < 0)
		return;
	memcpy(&v4.sin_addr, address + 12, 4);
	memcpy(&v6.sin6_addr, address, 16);
	if (!setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &index, sizeof(index)))
		(void)!sendto(fd, "", 0, MSG_DONTWAIT, ipv4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6,
			      ipv4 ? sizeof(v4) : sizeof(v6));
	close(fd);
}
