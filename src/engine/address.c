/* SPDX-License-Identifier: BSD-2-Clause */
/* Each request has its answer before the next one, on a socket of its own; the kernel answers at once. */
#include "engine/address.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/icmp6.h>
#include <netinet/if_ether.h>
#include <netpacket/packet.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/fd_away.h"
#include "io/net.h"

enum { ANSWER_BYTES = 32768, MAC_BYTES = 6, NA_BYTES = 32, HOPS = 255 };

struct request {
	struct nlmsghdr h;
	union {
		struct ifaddrmsg addr;
		struct rtmsg route;
	};
	uint8_t attributes[128];
};

struct answer {
	_Alignas(struct nlmsghdr) uint8_t bytes[ANSWER_BYTES];
};

static bool is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, mapped, sizeof(mapped));
}

static const uint8_t *bytes_of(const uint8_t gid[16])
{
	return gid + (is_ipv4(gid) ? 12 : 0);
}

static size_t length_of(const uint8_t gid[16])
{
	return is_ipv4(gid) ? 4 : 16;
}

int address_open(void)
{
	int fd = fd_away(net_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));

	return fd < 0 ? -errno : fd;
}

static void add_attribute(struct request *r, unsigned short type, const void *data, size_t len)
{
	struct rtattr *a = (struct rtattr *)((uint8_t *)r + NLMSG_ALIGN(r->h.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	r->h.nlmsg_len = NLMSG_ALIGN(r->h.nlmsg_len) + RTA_LENGTH((unsigned)len);
}

/* The length of the first part of the answer, or a negative errno. */
static ssize_t ask(int fd, struct request *r, struct answer *a)
{
	ssize_t len = send(fd, r, r->h.nlmsg_len, 0);

	if (len >= 0)
		len = recv(fd, a->bytes, sizeof(a->bytes), 0);
	return len < 0 ? -errno : len;
}

/* ---- addresses ---- */

static bool is_it(const struct nlmsghdr *h, const uint8_t gid[16])
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);
	unsigned left = (unsigned)IFA_PAYLOAD(h);
	const struct rtattr *local = NULL;

	for (const struct rtattr *a = IFA_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		/* Of a point-to-point interface IFA_ADDRESS is the peer's. */
		if (a->rta_type == IFA_LOCAL || (a->rta_type == IFA_ADDRESS && !local))
			local = a;
	}
	return local && m->ifa_family == (is_ipv4(gid) ? AF_INET : AF_INET6) && RTA_PAYLOAD(local) == length_of(gid) &&
	       !memcmp(RTA_DATA(local), bytes_of(gid), length_of(gid));
}

/* Looks through one part of the answer to the end. True: there is another part. */
static bool look_through(const struct answer *answer, size_t len, const uint8_t gid[16], struct address *at,
			 bool *found)
{
	unsigned left = (unsigned)len;

	for (const struct nlmsghdr *h = (const void *)answer->bytes; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
		const struct ifaddrmsg *m = NLMSG_DATA(h);

		if (h->nlmsg_type != RTM_NEWADDR)
			return false;
		if (*found || !is_it(h, gid))
			continue;
		*at = (struct address){.ifindex = m->ifa_index, .prefix_len = m->ifa_prefixlen};
		memcpy(at->gid, gid, sizeof(at->gid));
		*found = true;
	}
	return true;
}

bool address_find(int fd, const uint8_t gid[16], struct address *at)
{
	struct request r = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.addr)),
				  .nlmsg_type = RTM_GETADDR,
				  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
			    .addr = {.ifa_family = is_ipv4(gid) ? AF_INET : AF_INET6}};
	struct answer answer;
	ssize_t len = ask(fd, &r, &answer);
	bool found = false;

	while (len > 0 && look_through(&answer, (size_t)len, gid, at, &found))
		len = recv(fd, answer.bytes, sizeof(answer.bytes), 0);
	return found;
}

uint32_t address_interface(int fd, const uint8_t gid[16])
{
	struct request r = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.route)),
				  .nlmsg_type = RTM_GETROUTE,
				  .nlmsg_flags = NLM_F_REQUEST},
			    .route = {.rtm_family = is_ipv4(gid) ? AF_INET : AF_INET6,
				      .rtm_dst_len = (unsigned char)(8 * length_of(gid))}};
	struct answer answer;
	const struct nlmsghdr *h = (const void *)answer.bytes;
	uint32_t ifindex = 0;
	ssize_t len;

	add_attribute(&r, RTA_DST, bytes_of(gid), length_of(gid));
	len = ask(fd, &r, &answer);
	if (len <= 0 || !NLMSG_OK(h, (unsigned)len) || h->nlmsg_type != RTM_NEWROUTE)
		return 0;

	const struct rtmsg *m = NLMSG_DATA(h);
	unsigned left = (unsigned)RTM_PAYLOAD(h);

	if (m->rtm_type != RTN_UNICAST)
		return 0;
	for (const struct rtattr *a = RTM_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == RTA_GATEWAY || a->rta_type == RTA_VIA)
			return 0;
		if (a->rta_type == RTA_OIF)
			memcpy(&ifindex, RTA_DATA(a), sizeof(ifindex));
	}
	return ifindex;
}

static int change(int fd, uint16_t type, uint16_t flags, const struct address *at)
{
	struct request r = {.h = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.addr)),
				  .nlmsg_type = type,
				  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags},
			    .addr = {.ifa_family = is_ipv4(at->gid) ? AF_INET : AF_INET6,
				     .ifa_prefixlen = at->prefix_len,
				     /* It was unique until now. */
				     .ifa_flags = is_ipv4(at->gid) ? 0 : IFA_F_NODAD,
				     .ifa_index = at->ifindex}};
	struct answer answer;
	const struct nlmsghdr *h = (const void *)answer.bytes;
	ssize_t len;

	add_attribute(&r, IFA_LOCAL, bytes_of(at->gid), length_of(at->gid));
	add_attribute(&r, IFA_ADDRESS, bytes_of(at->gid), length_of(at->gid));
	len = ask(fd, &r, &answer);
	if (len < 0)
		return (int)len;
	if (!NLMSG_OK(h, (unsigned)len) || h->nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
}

int address_add(int fd, const struct address *a, struct address *at)
{
	struct address there = *a;
	int rc;

	there.ifindex = address_interface(fd, a->gid);
	if (!there.ifindex)
		return -ENETUNREACH;
	rc = change(fd, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &there);
	if (!rc)
		*at = there;
	return rc;
}

int address_remove(int fd, const struct address *at)
{
	return change(fd, RTM_DELADDR, 0, at);
}

/* ---- neighbours ---- */

static bool mac_of(uint32_t ifindex, uint8_t mac[MAC_BYTES])
{
	struct ifreq r = {.ifr_ifindex = (int)ifindex};
	int fd = net_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && !ioctl(fd, SIOCGIFNAME, &r) && !ioctl(fd, SIOCGIFHWADDR, &r) &&
		  r.ifr_hwaddr.sa_family == ARPHRD_ETHER;

	if (fd >= 0)
		close(fd);
	if (ok)
		memcpy(mac, r.ifr_hwaddr.sa_data, MAC_BYTES);
	return ok;
}

static void announce_arp(const uint8_t ip[4], uint32_t ifindex, const uint8_t mac[MAC_BYTES])
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_ARP),
				 .sll_ifindex = (int)ifindex,
				 .sll_halen = MAC_BYTES};
	struct ether_arp p = {.ea_hdr = {.ar_hrd = htons(ARPHRD_ETHER),
					 .ar_pro = htons(ETH_P_IP),
					 .ar_hln = MAC_BYTES,
					 .ar_pln = 4,
					 .ar_op = htons(ARPOP_REQUEST)}};
	int fd = net_socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memset(to.sll_addr, 0xff, MAC_BYTES);
	memcpy(p.arp_sha, mac, MAC_BYTES);
	memcpy(p.arp_spa, ip, 4);
	memcpy(p.arp_tpa, ip, 4);
	if (fd < 0)
		return;
	(void)!sendto(fd, &p, sizeof(p), MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to));
	close(fd);
}

static void announce_ndp(const uint8_t ip[16], uint32_t ifindex, const uint8_t mac[MAC_BYTES])
{
	struct sockaddr_in6 from = {.sin6_family = AF_INET6, .sin6_scope_id = ifindex};
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_scope_id = ifindex};
	uint8_t p[NA_BYTES] = {[0] = ND_NEIGHBOR_ADVERT, [4] = 0x20, [24] = ND_OPT_TARGET_LINKADDR, [25] = 1};
	int fd = net_socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6), hops = HOPS, index = (int)ifindex;

	memcpy(&from.sin6_addr, ip, 16);
	memcpy(&to.sin6_addr, "\xff\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
	memcpy(p + 8, ip, 16);
	memcpy(p + 26, mac, MAC_BYTES);
	if (fd < 0)
		return;
	if (!bind(fd, (struct sockaddr *)&from, sizeof(from)) &&
	    !setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops)) &&
	    !setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof(index)))
		(void)!sendto(fd, p, sizeof(p), MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to));
	close(fd);
}

void address_announce(const uint8_t gid[16], uint32_t ifindex)
{
	uint8_t mac[MAC_BYTES];

	if (!mac_of(ifindex, mac))
		return;
	if (is_ipv4(gid))
		announce_arp(gid + 12, ifindex, mac);
	else
		announce_ndp(gid, ifindex, mac);
}
