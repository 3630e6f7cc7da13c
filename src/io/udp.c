/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owns the transmit sockets and the receive buffers. Both directions live in arrays that are set up
 * once; a burst fills in what differs and makes one system call.
 *
 * Receive: `cur` of `batch` received messages are spent, `offset` bytes of the next one too. No
 * buffer is given to the kernel again before all of a batch has been yielded, and the next batch
 * starts at buffer 0 again: a receiver that keeps up stays within the few that are in cache.
 */
#include "io/udp.h"

#include <assert.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <linux/filter.h>
#include <unistd.h>

#include "base/ipudp.h"

enum {
	RX_BUFFER_BYTES = 65536, /* more than any UDP payload */
	RX_MESSAGES = 16,
	/* When trains come, four of them are 256 KiB: they are used up while still in the L2 cache.
	 */
	RX_MESSAGES_OF_TRAINS = 4,
	RX_TRAIN_BYTES = 8192, /* a mean size above which messages are trains */
	RX_GROWTH = 4,         /* of the batch that is asked for, after a full one */
	RX_STREAK_MAX = 8,     /* batches served by one socket before another gets the first turn */
	RX_PATIENCE_MAX = 16,  /* calls that find the first socket empty before others are asked */
	RX_PAUSE_NS = 20000,   /* a caller that was away for so long asks them at once */
	TX_MESSAGES = 16,
	TX_PORT_TRIES = 8,     /* of one path, before the kernel chooses */
	TX_TOS_RUN = 64,       /* messages of one other TOS in a row until it becomes the socket's own */
	TTL_DEFAULT = 64,
	CONTROL_BYTES = 192
};

/* RFC 768 payload, less the IPv4 header: what sendmsg takes at most. */
static_assert(PKT_TRAIN_BYTES_MAX <= 65507, "a train must fit one UDP datagram");
static_assert(RX_BUFFER_BYTES >= 65535, "no datagram is truncated");
static_assert((int)UDP_RX_SOCKETS_MAX <= (int)IO_FDS_MAX, "io_fds can tell every socket");

struct control {
	_Alignas(struct cmsghdr) uint8_t bytes[CONTROL_BYTES];
};

union address {
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct rx_socket {
	int fd;
	enum udp_family family;
	uint16_t port;
	uint32_t overflow; /* the kernel's running count of discarded datagrams, as last seen */
};

/*
 * A message whose TOS is not the socket's own says so in a control message, for 0.1 us. What most of a socket's
 * messages have becomes its own: a path that carries veRoCE data is soon ECT(0) by itself.
 */
struct tx_socket {
	int fd; /* -1: none */
	uint16_t port;
	uint8_t tos;       /* the socket's own */
	uint8_t other_tos; /* of the last messages, `other_run` in a row */
	unsigned other_run;
};

struct udp {
	struct io io;
	struct io_counters *counters;
	bool trains;

	/* receive */
	size_t batch;
	size_t cur;
	uint32_t offset;
	uint32_t segment_bytes; /* of message `cur`, once offset is not 0 */
	struct rx_socket *batch_socket;
	size_t messages; /* to ask the kernel for, next time */
	size_t rx_first; /* socket that is asked first */
	unsigned rx_streak;
	unsigned rx_idle;     /* calls that found the first socket empty since the others were asked */
	unsigned rx_patience; /* so many are let pass, 1 .. RX_PATIENCE_MAX */
	uint64_t rx_looked_ns;
	bool rx_drained; /* the kernel had fewer messages than it was asked for */
	struct rx_socket rx[UDP_RX_SOCKETS_MAX];
	size_t rx_count;
	uint8_t *buffers;
	struct flow flows[RX_MESSAGES];
	struct mmsghdr rx_messages[RX_MESSAGES];
	struct iovec rx_iov[RX_MESSAGES];
	union address rx_from[RX_MESSAGES];
	struct control rx_control[RX_MESSAGES];

	/* transmit */
	unsigned paths;
	struct tx_socket tx[UDP_FAMILIES][UDP_PATHS_MAX];
	struct mmsghdr tx_messages[TX_MESSAGES];
	size_t tx_packets[TX_MESSAGES]; /* how many packets each message holds */
	struct iovec tx_iov[TX_MESSAGES];
	union address tx_to[TX_MESSAGES];
	struct control tx_control[TX_MESSAGES];
};

static const struct io_ops udp_ops;

static const uint8_t v4_mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* ---- open and close ---- */

static void set_int(int fd, int level, int option, int value)
{
	/* Every option set this way is an improvement that we can do without. */
	(void)!setsockopt(fd, level, option, &value, sizeof(value));
}

static void set_buffer(int fd, int force, int plain, int bytes)
{
	if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof(bytes)) < 0)
		set_int(fd, SOL_SOCKET, plain, bytes); /* the kernel cuts it to its limit */
}

void udp_rx_prepare(int fd, enum udp_family family)
{
	if (family == UDP_V4) {
		set_int(fd, IPPROTO_IP, IP_PKTINFO, 1);
		set_int(fd, IPPROTO_IP, IP_RECVTOS, 1);
		set_int(fd, IPPROTO_IP, IP_RECVTTL, 1);
	} else {
		set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
		set_int(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
		set_int(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
		/* RoCEv2 senders leave the checksum zero (IBTA A17.3.2), which IPv6 forbids by default (RFC 6936). */
		set_int(fd, SOL_UDP, UDP_NO_CHECK6_RX, 1);
	}
	set_int(fd, SOL_UDP, UDP_GRO, 1);
	set_int(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, UDP_RCVBUF_BYTES);
}

static int make_socket(enum udp_family family)
{
	int fd = socket(family == UDP_V4 ? AF_INET : AF_INET6,
			SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (family == UDP_V6)
		set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	return fd;
}

int udp_rx_socket(enum udp_family family)
{
	int fd = make_socket(family);

	if (fd >= 0)
		udp_rx_prepare(fd, family);
	return fd;
}

/* Nobody reads a transmit socket: a filter that accepts nothing keeps it empty. */
static void discard_input(int fd)
{
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
	struct sock_fprog prog = {.len = 1, .filter = code};

	(void)!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
}

static bool bind_port(int fd, enum udp_family family, uint16_t port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	return bind(fd, family == UDP_V4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6,
		    family == UDP_V4 ? sizeof(v4) : sizeof(v6)) == 0;
}

static uint16_t bound_port(int fd, enum udp_family family)
{
	union address a = {0};
	socklen_t len = sizeof(a);

	getsockname(fd, (struct sockaddr *)&a, &len);
	return ntohs(family == UDP_V4 ? a.v4.sin_port : a.v6.sin6_port);
}

/*
 * The low bits of a port name its path, so that it is found without a search; the high bits are
 * random, so that the paths of many processes are spread over whatever hashes them.
 */
static bool bind_path(int fd, enum udp_family family, unsigned path)
{
	uint16_t draws[TX_PORT_TRIES];

	if (getrandom(draws, sizeof(draws), 0) == sizeof(draws)) {
		for (int i = 0; i < TX_PORT_TRIES; i++) {
			unsigned port = UDP_SOURCE_PORT_MIN | (draws[i] & ~(UDP_PATHS_MAX - 1u)) | path;

			if (bind_port(fd, family, (uint16_t)port))
				return true;
			if (errno != EADDRINUSE)
				break;
		}
	}
	return bind_port(fd, family, 0);
}

static int open_tx(struct tx_socket *tx, enum udp_family family, unsigned path)
{
	int fd = make_socket(family);

	if (fd < 0)
		return fd;
	discard_input(fd);
	if (family == UDP_V4) {
		set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
		set_int(fd, IPPROTO_IP, IP_TTL, TTL_DEFAULT);
	} else {
		set_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
		set_int(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, TTL_DEFAULT);
	}
	set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, UDP_SNDBUF_BYTES);
	if (!bind_path(fd, family, path)) {
		int err = -errno;

		close(fd);
		return err;
	}
	*tx = (struct tx_socket){.fd = fd, .port = bound_port(fd, family)};
	return 0;
}

static void close_tx(struct tx_socket *tx)
{
	if (tx->fd >= 0)
		close(tx->fd);
	tx->fd = -1;
}

/*
 * Every path has a socket in each family that the first one has. Fewer paths than were asked for do
 * no harm, so only the first must succeed.
 */
static int open_paths(struct udp *u, const struct udp_config *cfg)
{
	unsigned wanted = cfg->paths ? cfg->paths : 1;

	for (unsigned i = 0; i < wanted; i++) {
		int err = open_tx(&u->tx[UDP_V4][i], UDP_V4, i);

		if (err < 0)
			return i ? 0 : err;
		if (!cfg->no_ipv6 && (i == 0 || u->tx[UDP_V6][0].fd >= 0) &&
		    open_tx(&u->tx[UDP_V6][i], UDP_V6, i) < 0 && i) {
			close_tx(&u->tx[UDP_V4][i]);
			return 0;
		}
		u->paths = i + 1;
	}
	return 0;
}

/* Linux 4.18 sends trains, and knows the option. */
static bool kernel_sends_trains(int fd)
{
	int value;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_UDP, UDP_SEGMENT, &value, &len) == 0;
}

static uint32_t overflow_now(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) < 0)
		return 0;
	return info[SK_MEMINFO_DROPS];
}

static void udp_close(struct io *io)
{
	struct udp *u = (struct udp *)io;

	for (int f = 0; f < UDP_FAMILIES; f++)
		for (unsigned i = 0; i < UDP_PATHS_MAX; i++)
			close_tx(&u->tx[f][i]);
	if (u->buffers)
		munmap(u->buffers, (size_t)RX_BUFFER_BYTES * RX_MESSAGES);
	free(u);
}

int udp_open(struct io **io, const struct udp_config *cfg, char *why, size_t why_bytes)
{
	struct udp *u = aligned_alloc(64, (sizeof(*u) + 63) / 64 * 64);
	int err;

	assert(cfg->rx_count <= UDP_RX_SOCKETS_MAX);
	assert(cfg->paths <= UDP_PATHS_MAX);
	if (!u) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	memset(u, 0, sizeof(*u));
	u->io.ops = &udp_ops;
	u->counters = cfg->counters;
	u->messages = RX_MESSAGES;
	u->rx_patience = 1;
	for (int f = 0; f < UDP_FAMILIES; f++)
		for (unsigned i = 0; i < UDP_PATHS_MAX; i++)
			u->tx[f][i].fd = -1;

	/* Pages come as packets first touch them. */
	u->buffers = mmap(NULL, (size_t)RX_BUFFER_BYTES * RX_MESSAGES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (u->buffers == MAP_FAILED) {
		u->buffers = NULL;
		err = -ENOMEM;
		snprintf(why, why_bytes, "out of memory for receive buffers");
		goto close;
	}
	for (size_t i = 0; i < RX_MESSAGES; i++) {
		u->rx_iov[i].iov_base = u->buffers + i * RX_BUFFER_BYTES;
		u->rx_iov[i].iov_len = RX_BUFFER_BYTES;
		u->rx_messages[i].msg_hdr.msg_iov = &u->rx_iov[i];
		u->rx_messages[i].msg_hdr.msg_iovlen = 1;
		u->rx_messages[i].msg_hdr.msg_name = &u->rx_from[i];
		u->rx_messages[i].msg_hdr.msg_control = &u->rx_control[i];
	}
	for (size_t i = 0; i < TX_MESSAGES; i++) {
		u->tx_messages[i].msg_hdr.msg_iov = &u->tx_iov[i];
		u->tx_messages[i].msg_hdr.msg_iovlen = 1;
		u->tx_messages[i].msg_hdr.msg_name = &u->tx_to[i];
	}
	for (size_t i = 0; i < cfg->rx_count; i++) {
		int domain = AF_INET;
		socklen_t len = sizeof(domain);
		struct rx_socket *rx = &u->rx[u->rx_count++];

		rx->fd = cfg->rx_fds[i];
		getsockopt(rx->fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
		rx->family = domain == AF_INET6 ? UDP_V6 : UDP_V4;
		rx->port = bound_port(rx->fd, rx->family);
		rx->overflow = overflow_now(rx->fd);
	}
	err = open_paths(u, cfg);
	if (err < 0) {
		snprintf(why, why_bytes, "cannot make a UDP socket to send from: %s", strerror(-err));
		goto close;
	}
	u->trains = !cfg->no_trains && kernel_sends_trains(u->tx[UDP_V4][0].fd);
	*io = &u->io;
	return 0;

close:
	udp_close(&u->io);
	return err;
}

unsigned udp_paths(const struct io *io)
{
	return ((const struct udp *)io)->paths;
}

uint16_t udp_source_port(const struct io *io, enum udp_family family, unsigned path)
{
	const struct udp *u = (const struct udp *)io;

	if (path >= UDP_PATHS_MAX || u->tx[family][path].fd < 0)
		return 0;
	return u->tx[family][path].port;
}

size_t udp_rcvbuf_bytes(const struct io *io)
{
	const struct udp *u = (const struct udp *)io;
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < u->rx_count; i++) {
		int bytes = 0;
		socklen_t len = sizeof(bytes);

		getsockopt(u->rx[i].fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len);
		if ((size_t)bytes < least)
			least = (size_t)bytes;
	}
	return u->rx_count ? least : 0;
}

/* ---- receive ---- */

static bool is_link_local(const uint8_t *addr)
{
	return addr[0] == 0xfe && (addr[1] & 0xc0) == 0x80;
}

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

static void parse_control(struct udp *u, struct rx_socket *rx, struct msghdr *h, struct flow *flow,
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
			if (is_link_local(flow->dst) || is_link_local(flow->src))
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
		}
	}
}

/* Fills in the flow of message i. False: it cannot be used. */
static bool open_message(struct udp *u, size_t i)
{
	struct rx_socket *rx = u->batch_socket;
	struct msghdr *h = &u->rx_messages[i].msg_hdr;
	struct flow *flow = &u->flows[i];
	const union address *from = &u->rx_from[i];
	struct rx_facts facts = {0};
	uint32_t len = u->rx_messages[i].msg_len;

	memset(flow, 0, sizeof(*flow));
	if (rx->family == UDP_V4) {
		flow_set_v4(flow->src, &from->v4.sin_addr);
		flow->sport = ntohs(from->v4.sin_port);
	} else {
		memcpy(flow->src, &from->v6.sin6_addr, 16);
		flow->sport = ntohs(from->v6.sin6_port);
	}
	flow->dport = rx->port;
	parse_control(u, rx, h, flow, &facts);
	u->segment_bytes =
		facts.segment_bytes && facts.segment_bytes < len ? facts.segment_bytes : len;
	return !(h->msg_flags & MSG_TRUNC) && facts.has_destination && len > 0;
}

/* Takes a batch from one socket; false if there was nothing. */
static bool fill(struct udp *u, struct rx_socket *rx)
{
	size_t most;
	int n;

	for (size_t i = 0; i < u->messages; i++) {
		struct msghdr *h = &u->rx_messages[i].msg_hdr;

		h->msg_namelen = sizeof(u->rx_from[i]);
		h->msg_controllen = sizeof(u->rx_control[i]);
		h->msg_flags = 0;
	}
	do {
		n = recvmmsg(rx->fd, u->rx_messages, (unsigned)u->messages, MSG_DONTWAIT, NULL);
		u->counters->rx_syscalls++;
	} while (n < 0 && errno == EINTR);
	/* After a pause there is one message, mostly, and whoever waits for it waits for a vain look for a
	 * second one too.
	 */
	if (n <= 0) {
		u->messages = 1;
		return false;
	}

	uint64_t bytes = 0;

	u->rx_drained = (size_t)n < u->messages;
	for (int i = 0; i < n; i++)
		bytes += u->rx_messages[i].msg_len;
	most = bytes > (uint64_t)n * RX_TRAIN_BYTES ? RX_MESSAGES_OF_TRAINS : RX_MESSAGES;
	if (!u->rx_drained)
		u->messages *= RX_GROWTH;
	if (u->messages > most)
		u->messages = most;
	u->counters->rx_trains += (uint64_t)n;
	u->counters->rx_bytes += bytes;
	u->batch_socket = rx;
	u->batch = (size_t)n;
	u->cur = 0;
	u->offset = 0;
	return true;
}

/*
 * The next socket after the first, in a circle, that has something to read, or rx_count. One call
 * asks them all, and costs as much as a vain look at one of them.
 */
static size_t ask_others(struct udp *u)
{
	struct pollfd p[UDP_RX_SOCKETS_MAX];
	size_t n = u->rx_count - 1;

	for (size_t i = 0; i < n; i++)
		p[i] = (struct pollfd){.fd = u->rx[(u->rx_first + 1 + i) % u->rx_count].fd,
				       .events = POLLIN};
	u->counters->rx_syscalls++;
	if (n && poll(p, n, 0) > 0)
		for (size_t i = 0; i < n; i++)
			if (p[i].revents)
				return (u->rx_first + 1 + i) % u->rx_count;
	return u->rx_count;
}

/* Takes a batch from another socket than the first, and makes that one the first. */
static bool fill_other(struct udp *u)
{
	size_t k = u->rx_count > 1 ? ask_others(u) : u->rx_count;

	u->rx_idle = 0;
	if (k == u->rx_count || !fill(u, &u->rx[k]))
		return false;
	u->rx_first = k;
	u->rx_streak = 0;
	return true;
}

/*
 * A system call that finds nothing costs half as much as one that finds a packet, so two are
 * spared: the one after a batch that emptied the socket, and, mostly, the one that asks sockets that
 * were idle before too. Whoever waits for the descriptors misses nothing by it.
 *
 * How often the idle ones are asked follows what came of it last time: traffic that changes between
 * sockets finds them asked at every call, and every RX_PATIENCE_MAX calls are enough for one that
 * has only one busy socket. A caller that comes back after a pause may have been woken by any.
 */
static bool fill_any(struct udp *u, uint64_t now_ns)
{
	bool paused = now_ns - u->rx_looked_ns > RX_PAUSE_NS;

	u->rx_looked_ns = now_ns;
	if (u->rx_drained) {
		u->rx_drained = false;
		if (!paused)
			return false;
	}
	if (!u->rx_count)
		return false;
	/* The busy socket is asked first; not for ever. */
	if (u->rx_streak == RX_STREAK_MAX) {
		u->rx_streak = 0;
		if (fill_other(u))
			return true;
	}
	if (fill(u, &u->rx[u->rx_first])) {
		u->rx_streak++;
		return true;
	}
	if (++u->rx_idle < u->rx_patience && !paused)
		return false;
	if (fill_other(u)) {
		u->rx_patience = 1;
		return true;
	}
	if (u->rx_patience < RX_PATIENCE_MAX)
		u->rx_patience *= 2;
	return false;
}

static size_t udp_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	struct udp *u = (struct udp *)io;
	size_t n = 0;

	while (n == 0 && max > 0) {
		if (u->cur == u->batch && !fill_any(u, now_ns))
			return 0;
		while (n < max && u->cur < u->batch) {
			size_t i = u->cur;
			uint32_t len = u->rx_messages[i].msg_len;

			if (u->offset == 0 && !open_message(u, i)) {
				u->counters->rx_drops++;
				u->cur++;
				continue;
			}

			uint32_t left = len - u->offset;
			uint32_t seg = u->segment_bytes;

			for (; left && n < max; n++) {
				uint32_t take = left < seg ? left : seg;

				pkts[n].data = (uint8_t *)u->rx_iov[i].iov_base + u->offset;
				pkts[n].flow = &u->flows[i];
				pkts[n].len = take;
				pkts[n].ip_id = 0;
				pkts[n].train = (uint16_t)((left + seg - 1) / seg);
				pkts[n].int_stack = NULL; /* no socket has any */
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

/* ---- send ---- */

static void put_cmsg(struct msghdr *h, int level, int type, const void *data, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)((uint8_t *)h->msg_control + h->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	h->msg_controllen += CMSG_SPACE(len);
	assert(h->msg_controllen <= CONTROL_BYTES);
}

static bool is_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

/*
 * Telling the kernel the source of a datagram costs 0.2 us. It chooses that one by itself from one of the
 * host's addresses to the same address: RFC 6724 rule 1, and the preferred source of IPv4's local routes,
 * which is the address but for those of 127.0.0.0/8.
 */
static bool kernel_chooses_source(const struct flow *f)
{
	static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};

	if (memcmp(f->src, f->dst, sizeof(f->src)) != 0 || f->ifindex)
		return false;
	return memcmp(f->src, loopback, 13) != 0 || !memcmp(f->src, loopback, sizeof(loopback));
}

static void put_tos(struct msghdr *h, enum udp_family family, struct tx_socket *tx, uint8_t value)
{
	int tos = value;

	if (value == tx->tos) {
		tx->other_run = 0;
		return;
	}
	tx->other_run = value == tx->other_tos ? tx->other_run + 1 : 1;
	tx->other_tos = value;
	if (family == UDP_V4)
		put_cmsg(h, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	else
		put_cmsg(h, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
}

/* Not between two messages of one call: those built before count on the socket's TOS as it is. */
static void settle_tos(struct tx_socket *tx, enum udp_family family)
{
	int tos = tx->other_tos;

	if (tx->other_run < TX_TOS_RUN)
		return;
	tx->other_run = 0;
	if (setsockopt(tx->fd, family == UDP_V4 ? IPPROTO_IP : IPPROTO_IPV6,
		       family == UDP_V4 ? IP_TOS : IPV6_TCLASS, &tos, sizeof(tos)) == 0)
		tx->tos = tx->other_tos;
}

static void build_message(struct udp *u, size_t m, const struct pkt *p, size_t packets,
			  enum udp_family family, struct tx_socket *tx)
{
	struct msghdr *h = &u->tx_messages[m].msg_hdr;
	const struct flow *f = p->flow;
	const struct pkt *last = &p[packets - 1];

	/* Contiguous but for the last one's own length. */
	u->tx_iov[m].iov_base = p->data;
	u->tx_iov[m].iov_len = (size_t)(last->data - p->data) + last->len;
	u->tx_packets[m] = packets;
	h->msg_control = &u->tx_control[m];
	h->msg_controllen = 0;
	h->msg_flags = 0;
	if (family == UDP_V4) {
		struct sockaddr_in *to = &u->tx_to[m].v4;
		struct in_pktinfo info = {.ipi_ifindex = (int)f->ifindex};

		memset(to, 0, sizeof(*to));
		to->sin_family = AF_INET;
		to->sin_port = htons(f->dport);
		memcpy(&to->sin_addr, f->dst + 12, 4);
		h->msg_namelen = sizeof(*to);
		memcpy(&info.ipi_spec_dst, f->src + 12, 4);
		if (!kernel_chooses_source(f) && (info.ipi_spec_dst.s_addr || info.ipi_ifindex))
			put_cmsg(h, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	} else {
		struct sockaddr_in6 *to = &u->tx_to[m].v6;
		struct in6_pktinfo info = {.ipi6_ifindex = f->ifindex};

		memset(to, 0, sizeof(*to));
		to->sin6_family = AF_INET6;
		to->sin6_port = htons(f->dport);
		memcpy(&to->sin6_addr, f->dst, 16);
		if (is_link_local(f->dst))
			to->sin6_scope_id = f->ifindex;
		h->msg_namelen = sizeof(*to);
		memcpy(&info.ipi6_addr, f->src, 16);
		if (!kernel_chooses_source(f) && (f->ifindex || !is_zero(f->src, 16)))
			put_cmsg(h, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	}
	put_tos(h, family, tx, f->tos);
	if (f->ttl && f->ttl != TTL_DEFAULT) {
		int ttl = f->ttl;

		if (family == UDP_V4)
			put_cmsg(h, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
		else
			put_cmsg(h, IPPROTO_IPV6, IPV6_HOPLIMIT, &ttl, sizeof(ttl));
	}
	if (packets > 1) {
		uint16_t segment = (uint16_t)p->len;

		put_cmsg(h, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	}
	if (!h->msg_controllen)
		h->msg_control = NULL;
}

/* The socket that a flow leaves by, or NULL. */
static struct tx_socket *tx_find(struct udp *u, const struct flow *f, enum udp_family family)
{
	struct tx_socket *tx = &u->tx[family][f->sport % UDP_PATHS_MAX];

	if (tx->fd >= 0 && tx->port == f->sport)
		return tx;
	/* The kernel chose its port, if it is one of ours. */
	for (unsigned i = 0; i < u->paths; i++) {
		tx = &u->tx[family][i];
		if (tx->fd >= 0 && tx->port == f->sport)
			return tx;
	}
	return NULL;
}

static void count_sent(struct udp *u, size_t m, size_t *done)
{
	u->counters->tx_packets += u->tx_packets[m];
	u->counters->tx_bytes += u->tx_iov[m].iov_len;
	u->counters->tx_trains++;
	*done += u->tx_packets[m];
}

/* As sendmmsg(); a single message goes 0.1 us faster by itself. */
static int send_some(int fd, struct mmsghdr *messages, unsigned count)
{
	if (count > 1)
		return sendmmsg(fd, messages, count, MSG_DONTWAIT);
	return sendmsg(fd, &messages->msg_hdr, MSG_DONTWAIT) < 0 ? -1 : 1;
}

/*
 * Sends messages 0 .. count-1 on fd; adds to *done the packets that are through with, one way or
 * the other. False: no room, stop.
 */
static bool send_messages(struct udp *u, int fd, size_t count, size_t *done)
{
	for (size_t m = 0; m < count;) {
		int n = send_some(fd, u->tx_messages + m, (unsigned)(count - m));

		u->counters->tx_syscalls++;
		if (n > 0) {
			for (size_t end = m + (size_t)n; m < end; m++)
				count_sent(u, m, done);
			continue;
		}
		/* The error belongs to message m: a call that sent something reports no error. */
		switch (errno) {
		case EINTR:
			continue;
		case EAGAIN:
		case ENOBUFS:
		case ENOMEM:
			u->counters->tx_again++;
			return false;
		case EIO:
			/* An interface without checksum offload or with IPsec takes no trains. */
			if (u->tx_packets[m] > 1 && u->trains) {
				u->trains = false;
				return true;
			}
			break;
		}
		u->counters->tx_drops += u->tx_packets[m];
		*done += u->tx_packets[m];
		m++;
	}
	return true;
}

static size_t udp_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	struct udp *u = (struct udp *)io;
	size_t done = 0;

	while (done < n) {
		struct tx_socket *tx = NULL;
		size_t count = 0;
		size_t next = done;

		while (next < n && count < TX_MESSAGES) {
			const struct pkt *p = &pkts[next];
			enum udp_family family = flow_is_ipv4(p->flow) ? UDP_V4 : UDP_V6;
			struct tx_socket *its = tx_find(u, p->flow, family);
			size_t packets = p->train > 1 ? p->train : 1;

			if (packets > n - next)
				packets = n - next;
			/* Alone, a packet has identification 0; others cannot be sent faithfully.
			 */
			if (!u->trains)
				packets = 1;
			bool refuse = !its || (!u->trains && family == UDP_V4 && p->ip_id);

			if (refuse && count)
				break;
			if (refuse) {
				u->counters->tx_drops += packets;
				next += packets;
				done = next;
				continue;
			}
			if (count && its != tx)
				break;
			tx = its;
			if (!count)
				settle_tos(tx, family);
			build_message(u, count++, p, packets, family, tx);
			next += packets;
		}
		if (count && !send_messages(u, tx->fd, count, &done))
			break;
	}
	return done;
}

/* ---- the rest of the contract ---- */

static size_t udp_fds(const struct io *io, int *fds, size_t max)
{
	const struct udp *u = (const struct udp *)io;
	size_t n = 0;

	for (; n < u->rx_count && n < max; n++)
		fds[n] = u->rx[n].fd;
	return n;
}

static uint64_t udp_deadline_ns(const struct io *io)
{
	return UINT64_MAX;
}

static size_t udp_train_max(const struct io *io)
{
	const struct udp *u = (const struct udp *)io;

	return u->trains ? PKT_TRAIN_MAX : 1;
}

static void udp_flush(struct io *io)
{
}

static const struct io_ops udp_ops = {
	.recv = udp_recv,
	.send = udp_send,
	.fds = udp_fds,
	.deadline_ns = udp_deadline_ns,
	.train_max = udp_train_max,
	.flush = udp_flush,
	.close = udp_close,
};
