/* SPDX-License-Identifier: BSD-2-Clause */
/* See udp_rx.h. */
#include "io/udp/udp_rx.h"

#include <assert.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "io/uncancelled.h"
#include "space/space.h"

enum {
	RX_BUFFER_BYTES = 65536, /* more than any UDP payload */
	RX_BUFFERS_BYTES = RX_BUFFER_BYTES * UDP_RX_MESSAGES,
	/* Four trains are 256 KiB: they are consumed while still in the L2 cache. */
	RX_MESSAGES_OF_TRAINS = 4,
	RX_TRAIN_BYTES = 8192,     /* a mean size above which messages are trains */
	RX_GROWTH = 4,             /* of the batch size, after a full batch */
	RX_STREAK_MAX = 8,         /* batches served by one socket before another gets the first turn */
	RX_PATIENCE_MAX = 16,      /* calls that find the first socket empty before others are polled */
	RX_PAUSE_NS = 20000,       /* after a pause of this length others are polled at once */
	WAITED_NS_MAX = 2000000000 /* veRoCE's stamps tell no more than twice that apart; longer, and a clock was set */
};

static_assert(RX_BUFFER_BYTES >= 65535, "no datagram is truncated");
static_assert((int)UDP_RX_SOCKETS_MAX <= (int)IO_FDS_MAX, "io_fds can tell every socket");

static const uint8_t v4_mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* ---- open and close ---- */

void udp_rx_prepare(int fd, enum udp_family family)
{
	if (family == UDP_V4) {
		udp_set_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
		udp_set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
		udp_set_option(fd, IPPROTO_IP, IP_RECVTTL, 1);
		/* What another process of the host joined is for that process (mcast.h). */
		udp_set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	} else {
		udp_set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
		udp_set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
		udp_set_option(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
		udp_set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
		/* RoCEv2 senders leave the checksum zero (IBTA A17.3.2), which IPv6 forbids (RFC 6936). */
		udp_set_option(fd, SOL_UDP, UDP_NO_CHECK6_RX, 1);
	}
	udp_set_option(fd, SOL_UDP, UDP_GRO, 1);
	udp_set_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	udp_set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, UDP_RCVBUF_BYTES);
}

int udp_rx_socket(enum udp_family family)
{
	int fd = udp_make_socket(family);

	if (fd >= 0)
		udp_rx_prepare(fd, family);
	return fd;
}

static uint32_t overflow_now(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) < 0)
		return 0;
	return info[SK_MEMINFO_DROPS];
}

void udp_rx_take(struct udp_rx *u, const int *fds, size_t count)
{
	u->socket_count = 0;
	u->first = 0;
	for (size_t i = 0; i < count; i++) {
		int domain = AF_INET;
		socklen_t len = sizeof(domain);
		struct udp_rx_socket *rx = &u->sockets[u->socket_count++];

		rx->fd = fds[i];
		getsockopt(rx->fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
		rx->family = domain == AF_INET6 ? UDP_V6 : UDP_V4;
		rx->port = udp_bound_port(rx->fd, rx->family);
		rx->timed = u->timed_port && rx->port == u->timed_port;
		if (rx->timed)
			udp_set_option(rx->fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
		rx->overflow = overflow_now(rx->fd);
	}
}

bool udp_rx_has_gro(const struct udp_rx *u)
{
	int on = 0;
	socklen_t len = sizeof(on);

	return u->socket_count && !getsockopt(u->sockets[0].fd, SOL_UDP, UDP_GRO, &on, &len) && on;
}

void udp_rx_heal(struct udp_rx *u)
{
	int fds[UDP_RX_SOCKETS_MAX];
	size_t count = u->socket_count;

	for (size_t i = 0; i < count; i++) {
		fds[i] = u->sockets[i].fd;
		udp_rx_prepare(fds[i], u->sockets[i].family);
	}
	udp_rx_take(u, fds, count);
}

int udp_rx_open(struct udp_rx *u, const struct udp_config *cfg)
{
	u->counters = cfg->counters;
	u->clock = cfg->clock;
	u->ask = UDP_RX_MESSAGES;
	u->patience = 1;
	/* Pages come as packets first touch them. */
	u->buffers = space_get(RX_BUFFERS_BYTES);
	if (!u->buffers)
		return -ENOMEM;
	for (size_t i = 0; i < UDP_RX_MESSAGES; i++) {
		u->iov[i].iov_base = u->buffers + i * RX_BUFFER_BYTES;
		u->iov[i].iov_len = RX_BUFFER_BYTES;
		u->messages[i].msg_hdr.msg_iov = &u->iov[i];
		u->messages[i].msg_hdr.msg_iovlen = 1;
		u->messages[i].msg_hdr.msg_name = &u->from[i];
		u->messages[i].msg_hdr.msg_control = &u->control[i];
	}
	u->timed_port = cfg->timed_port;
	udp_rx_take(u, cfg->rx_fds, cfg->rx_count);
	return 0;
}

void udp_rx_close(struct udp_rx *u)
{
	space_put(u->buffers, RX_BUFFERS_BYTES);
}

/* ---- receive ---- */

static void flow_set_v4(uint8_t *gid, const struct in_addr *a)
{
	memcpy(gid, v4_mapped, sizeof(v4_mapped));
	memcpy(gid + 12, a, 4);
}

struct rx_facts {
	bool has_destination;
	uint32_t segment_bytes; /* 0: one datagram as it came */
};

static int cmsg_int(const struct cmsghdr *c)
{
	int v;

	memcpy(&v, CMSG_DATA(c), sizeof(v));
	return v;
}

/* From when the kernel got it to the time that the call was made for. 0: it came later, or a clock was set meanwhile.
 */
static uint32_t waited_ns(const struct udp_rx *u, const struct cmsghdr *c)
{
	struct timespec came;
	int64_t ns;

	memcpy(&came, CMSG_DATA(c), sizeof(came));
	ns = u->asked_at_ns - ((int64_t)came.tv_sec * 1000000000 + came.tv_nsec);
	return ns < 0 || ns > WAITED_NS_MAX ? 0 : (uint32_t)ns;
}

static void parse_control(struct udp_rx *u, struct udp_rx_socket *rx, struct msghdr *h, struct flow *flow,
			  struct rx_facts *facts)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
			int v = cmsg_int(c);

			facts->segment_bytes = v > 0 ? (uint32_t)v : 0;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			flow_set_v4(flow->dst, &info.ipi_addr);
			facts->has_destination = true;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			flow->tos = *CMSG_DATA(c);
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) {
			flow->ttl = (uint8_t)cmsg_int(c);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			memcpy(flow->dst, &info.ipi6_addr, 16);
			if (udp_is_link_local(flow->dst) || udp_is_link_local(flow->src) || flow->dst[0] == 0xff)
				flow->ifindex = (uint32_t)info.ipi6_ifindex;
			facts->has_destination = true;
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
			flow->tos = (uint8_t)cmsg_int(c);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT) {
			flow->ttl = (uint8_t)cmsg_int(c);
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			uint32_t total = (uint32_t)cmsg_int(c);

			u->counters->rx_overflow += total - rx->overflow;
			rx->overflow = total;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS && rx->timed) {
			u->waited_ns = waited_ns(u, c);
		}
	}
}

/* Fills in the flow of message i. False: it cannot be used. */
static bool open_message(struct udp_rx *u, size_t i)
{
	struct udp_rx_socket *rx = u->batch_socket;
	struct msghdr *h = &u->messages[i].msg_hdr;
	struct flow *flow = &u->flows[i];
	const union udp_address *from = &u->from[i];
	struct rx_facts facts = {0};
	uint32_t len = u->messages[i].msg_len;

	memset(flow, 0, sizeof(*flow));
	if (rx->family == UDP_V4) {
		flow_set_v4(flow->src, &from->v4.sin_addr);
		flow->sport = ntohs(from->v4.sin_port);
	} else {
		memcpy(flow->src, &from->v6.sin6_addr, 16);
		flow->sport = ntohs(from->v6.sin6_port);
	}
	flow->dport = rx->port;
	u->waited_ns = 0;
	parse_control(u, rx, h, flow, &facts);
	u->segment_bytes = facts.segment_bytes && facts.segment_bytes < len ? facts.segment_bytes : len;
	u->segment = 0;
	u->segments = len ? (len + u->segment_bytes - 1) / u->segment_bytes : 0;
	return !(h->msg_flags & MSG_TRUNC) && facts.has_destination && len > 0;
}

/* As recvmmsg(); a single message comes 0.1 us sooner by itself. */
static int recv_some(int fd, struct mmsghdr *messages, unsigned count)
{
	ssize_t n;

	if (count > 1)
		return uncancelled_recvmmsg(fd, messages, count, MSG_DONTWAIT);
	n = uncancelled_recvmsg(fd, &messages->msg_hdr, MSG_DONTWAIT);
	if (n < 0)
		return -1;
	messages->msg_len = (unsigned)n;
	return 1;
}

/* For how long the caller has had no processor since now_ns, if that is known. */
static int64_t behind_ns(const struct udp_rx *u, uint64_t now_ns)
{
	return u->clock.now_ns ? (int64_t)(u->clock.now_ns(u->clock.ctx) - now_ns) : 0;
}

/* Takes a batch from one socket; false if there was nothing. */
static bool fill(struct udp_rx *u, struct udp_rx_socket *rx, uint64_t now_ns)
{
	size_t most;
	int n;

	for (size_t i = 0; i < u->ask; i++) {
		struct msghdr *h = &u->messages[i].msg_hdr;

		h->msg_namelen = sizeof(u->from[i]);
		h->msg_controllen = sizeof(u->control[i]);
		h->msg_flags = 0;
	}
	do {
		n = recv_some(rx->fd, u->messages, (unsigned)u->ask);
		u->counters->rx_syscalls++;
	} while (n < 0 && errno == EINTR);
	/*
	 * After a pause there is mostly one message, and its reader would also wait for a vain look for a
	 * second one.
	 */
	if (n <= 0) {
		u->ask = 1;
		return false;
	}

	uint64_t bytes = 0;

	u->drained = (size_t)n < u->ask;
	for (int i = 0; i < n; i++)
		bytes += u->messages[i].msg_len;
	most = bytes > (uint64_t)n * RX_TRAIN_BYTES ? RX_MESSAGES_OF_TRAINS : UDP_RX_MESSAGES;
	if (!u->drained)
		u->ask *= RX_GROWTH;
	if (u->ask > most)
		u->ask = most;
	u->counters->rx_trains += (uint64_t)n;
	u->counters->rx_bytes += bytes;
	u->batch_socket = rx;
	/* The caller may have lost its processor since now_ns. */
	if (rx->timed)
		u->asked_at_ns = (int64_t)clock_wall_ns() - behind_ns(u, now_ns);
	u->batch = (size_t)n;
	u->cur = 0;
	u->offset = 0;
	return true;
}

/*
 * The next socket after the first, in a circle, that has something to read, or rx_count. One call
 * polls them all, and costs as much as a vain look at one of them.
 */
static size_t ask_others(struct udp_rx *u)
{
	struct pollfd p[UDP_RX_SOCKETS_MAX];
	size_t n = u->socket_count - 1;
	int state, some;

	for (size_t i = 0; i < n; i++)
		p[i] = (struct pollfd){.fd = u->sockets[(u->first + 1 + i) % u->socket_count].fd, .events = POLLIN};
	u->counters->rx_syscalls++;
	state = cancel_off();
	some = poll(p, n, 0);
	cancel_restore(state);
	for (size_t i = 0; some > 0 && i < n; i++) {
		if (p[i].revents)
			return (u->first + 1 + i) % u->socket_count;
	}
	return u->socket_count;
}

/* Takes a batch from another socket than the first, and makes that one the first. */
static bool fill_other(struct udp_rx *u, uint64_t now_ns)
{
	size_t k = u->socket_count > 1 ? ask_others(u) : u->socket_count;

	u->idle = 0;
	if (k == u->socket_count || !fill(u, &u->sockets[k], now_ns))
		return false;
	u->first = k;
	u->streak = 0;
	return true;
}

/*
 * A system call that finds nothing costs half as much as one that finds a packet, so two such calls
 * are avoided: the one after a batch that emptied the socket, and mostly the one that polls sockets
 * that were idle before. A caller that waits for the descriptors misses nothing.
 *
 * How often the idle ones are polled depends on the last result: if traffic changes between sockets,
 * at every call; if only one socket is busy, every RX_PATIENCE_MAX calls. A caller that comes back
 * after a pause may have been woken by any socket.
 */
static bool fill_any(struct udp_rx *u, uint64_t now_ns)
{
	bool paused = now_ns - u->looked_ns > RX_PAUSE_NS;

	u->looked_ns = now_ns;
	if (u->drained) {
		u->drained = false;
		if (!paused)
			return false;
	}
	if (!u->socket_count)
		return false;
	/* The busy socket is polled first, but not for ever. */
	if (u->streak == RX_STREAK_MAX) {
		u->streak = 0;
		if (fill_other(u, now_ns))
			return true;
	}
	if (fill(u, &u->sockets[u->first], now_ns)) {
		u->streak++;
		return true;
	}
	if (++u->idle < u->patience && !paused)
		return false;
	if (fill_other(u, now_ns)) {
		u->patience = 1;
		return true;
	}
	if (u->patience < RX_PATIENCE_MAX)
		u->patience *= 2;
	return false;
}

size_t udp_rx_recv(struct udp_rx *u, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	size_t n = 0;

	while (n == 0 && max > 0) {
		if (u->cur == u->batch && !fill_any(u, now_ns))
			return 0;
		while (n < max && u->cur < u->batch) {
			size_t i = u->cur;
			uint32_t len = u->messages[i].msg_len;

			if (u->offset == 0 && !open_message(u, i)) {
				u->counters->rx_drops++;
				u->cur++;
				continue;
			}

			uint32_t left = len - u->offset;
			uint32_t seg = u->segment_bytes;

			for (; left && n < max; n++) {
				uint32_t take = left < seg ? left : seg;

				pkts[n] = (struct pkt){.data = (uint8_t *)u->iov[i].iov_base + u->offset,
						       .flow = &u->flows[i],
						       .len = take,
						       .ip_id = (uint16_t)u->segment++,
						       .train = (uint16_t)(u->segments--),
						       .waited_ns = u->waited_ns};
				u->offset += take;
				left -= take;
			}
			if (!left) {
				u->cur++;
				u->offset = 0;
			}
		}
	}
	u->counters->rx_packets += n;
	return n;
}
