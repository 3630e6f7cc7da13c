/* SPDX-License-Identifier: BSD-2-Clause */
/* See udp_tx.h. */
#include "io/udp/udp_tx.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/ipudp.h"
#include "io/uncancelled.h"

enum {
	TX_PORT_TRIES = 8, /* of one path, before the kernel chooses */
	TX_TOS_RUN = 64,   /* messages of one other TOS in a row until it becomes the socket's own */
	SPARE_FDS_MAX = 32,
	TTL_DEFAULT = 64
};

/* RFC 768 payload, less the IPv4 header: the most that sendmsg takes. */
static_assert(PKT_TRAIN_BYTES_MAX <= 65507, "a train must fit one UDP datagram");

/* ---- open and close ---- */

/* Nobody reads a transmit socket: a filter that accepts nothing keeps it empty. */
static void discard_input(int fd)
{
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
	struct sock_fprog prog;

	/* Clears its padding too: the kernel reads every byte. */
	memset(&prog, 0, sizeof(prog));
	prog.len = 1;
	prog.filter = code;
	(void)!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
}

static bool bind_port(int fd, enum udp_family family, uint16_t port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	return bind(fd, family == UDP_V4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6,
		    family == UDP_V4 ? sizeof(v4) : sizeof(v6)) == 0;
}

/*
 * The low bits of a port name its path, so that it is found without a search; the high bits are
 * random, so that switches that hash ports spread the paths of many processes.
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

static void prepare(int fd, enum udp_family family)
{
	discard_input(fd);
	if (family == UDP_V4) {
		udp_set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
		udp_set_option(fd, IPPROTO_IP, IP_TTL, TTL_DEFAULT);
		udp_set_option(fd, IPPROTO_IP, IP_MULTICAST_TTL, TTL_DEFAULT);
	} else {
		udp_set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
		udp_set_option(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, TTL_DEFAULT);
		udp_set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, TTL_DEFAULT);
	}
	udp_set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, UDP_SNDBUF_BYTES);
}

/* An unbound socket, or a negative errno. */
static int make_socket(enum udp_family family)
{
	int fd = udp_make_socket(family);

	if (fd >= 0)
		prepare(fd, family);
	return fd;
}

static int open_path(struct udp_tx_socket *tx, enum udp_family family, unsigned path)
{
	int fd = make_socket(family);

	if (fd < 0)
		return fd;
	if (!bind_path(fd, family, path)) {
		int err = -errno;

		close(fd);
		return err;
	}
	*tx = (struct udp_tx_socket){.fd = fd, .port = udp_bound_port(fd, family)};
	return 0;
}

static void close_path(struct udp_tx_socket *tx)
{
	if (tx->fd >= 0)
		close(tx->fd);
	tx->fd = -1;
}

/*
 * Reserves descriptors for others; they are closed again when the paths have theirs. False: there
 * are not enough.
 */
static bool hold_back(struct udp_tx *u, int *spare)
{
	for (unsigned i = 0; i < u->spare_fds; i++) {
		spare[i] = fcntl(u->sockets[UDP_V4][0].fd, F_DUPFD_CLOEXEC, 0);
		if (spare[i] < 0)
			return false;
	}
	return true;
}

/* False: the path has no socket in any family. */
static bool add_path(struct udp_tx *u, unsigned i)
{
	if (open_path(&u->sockets[UDP_V4][i], UDP_V4, i) < 0)
		return false;
	if (u->sockets[UDP_V6][0].fd < 0 || open_path(&u->sockets[UDP_V6][i], UDP_V6, i) == 0)
		return true;
	close_path(&u->sockets[UDP_V4][i]);
	return false;
}

/*
 * Every path has a socket in each family that the first one has. Fewer paths than configured do no
 * harm.
 */
void udp_tx_add_paths(struct udp_tx *u, unsigned paths)
{
	int spare[SPARE_FDS_MAX];

	memset(spare, 0xff, sizeof(spare));
	if (u->paths < paths && hold_back(u, spare))
		while (u->paths < paths && add_path(u, u->paths))
			u->paths++;
	for (unsigned i = 0; i < u->spare_fds; i++)
		if (spare[i] >= 0)
			close(spare[i]);
}

/* Only the first must succeed. */
static int open_paths(struct udp_tx *u, const struct udp_config *cfg)
{
	int err = open_path(&u->sockets[UDP_V4][0], UDP_V4, 0);

	if (err < 0)
		return err;
	if (!cfg->no_ipv6)
		open_path(&u->sockets[UDP_V6][0], UDP_V6, 0);
	u->paths = 1;
	u->spare_fds = cfg->spare_fds < SPARE_FDS_MAX ? cfg->spare_fds : SPARE_FDS_MAX;
	udp_tx_add_paths(u, cfg->paths);
	return 0;
}

/* Linux sends trains, and has this option, from 4.18 on. */
static bool kernel_sends_trains(int fd)
{
	int value;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_UDP, UDP_SEGMENT, &value, &len) == 0;
}

int udp_tx_open(struct udp_tx *u, const struct udp_config *cfg)
{
	int err;

	u->counters = cfg->counters;
	u->fragmented_port = cfg->timed_port;
	for (int f = 0; f < UDP_FAMILIES; f++)
		for (unsigned i = 0; i < UDP_PATHS_MAX; i++)
			u->sockets[f][i].fd = -1;
	for (size_t i = 0; i < UDP_TX_MESSAGES; i++) {
		u->messages[i].msg_hdr.msg_iov = &u->iov[i];
		u->messages[i].msg_hdr.msg_iovlen = 1;
		u->messages[i].msg_hdr.msg_name = &u->to[i];
	}
	err = udp_routes_open(&u->routes, cfg->interfaces, cfg->bound);
	if (!err)
		err = open_paths(u, cfg);
	if (err < 0)
		return err;
	u->trains = !cfg->no_trains && kernel_sends_trains(u->sockets[UDP_V4][0].fd);
	return 0;
}

static void close_all(struct udp_tx_socket sockets[UDP_FAMILIES][UDP_PATHS_MAX])
{
	for (int f = 0; f < UDP_FAMILIES; f++)
		for (unsigned i = 0; i < UDP_PATHS_MAX; i++)
			close_path(&sockets[f][i]);
}

void udp_tx_close(struct udp_tx *u)
{
	close_all(u->sockets);
	udp_routes_close(&u->routes);
}

/* ---- leave and return ---- */

void udp_tx_leave(struct udp_tx *u)
{
	close_all(u->sockets);
	udp_routes_leave(&u->routes);
}

/* One with the port of that one, or none where there is none. Where a host has no IPv6, what needs it is not sent. */
static int open_again(struct udp_tx_socket *tx, const struct udp_tx_socket *old, enum udp_family family)
{
	int fd, err;

	*tx = (struct udp_tx_socket){.fd = -1, .port = old->port};
	if (!old->port)
		return 0;
	fd = make_socket(family);
	if (fd < 0)
		return family == UDP_V6 && fd == -EAFNOSUPPORT ? 0 : fd;
	if (!bind_port(fd, family, old->port)) {
		err = -errno;
		close(fd);
		return err;
	}
	tx->fd = fd;
	return 0;
}

int udp_tx_return(struct udp_tx *u, uint16_t *port)
{
	struct udp_tx_socket fresh[UDP_FAMILIES][UDP_PATHS_MAX];
	int err = 0;

	memset(fresh, 0xff, sizeof(fresh));
	for (int f = 0; f < UDP_FAMILIES && !err; f++) {
		for (unsigned i = 0; i < u->paths && !err; i++) {
			err = open_again(&fresh[f][i], &u->sockets[f][i], (enum udp_family)f);
			*port = u->sockets[f][i].port;
		}
	}
	if (err) {
		close_all(fresh);
		return err;
	}
	close_all(u->sockets);
	for (int f = 0; f < UDP_FAMILIES; f++)
		memcpy(u->sockets[f], fresh[f], u->paths * sizeof(fresh[f][0]));
	udp_routes_return(&u->routes);
	return 0;
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
	assert(h->msg_controllen <= UDP_CONTROL_BYTES);
}

static bool is_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

/*
 * Telling the kernel the source of a datagram costs 0.2 us. Between an address of the host and itself the
 * kernel chooses it anyway: by RFC 6724 rule 1, and by the preferred source of IPv4's local routes, which
 * is the address itself except for 127.0.0.0/8.
 */
static bool kernel_chooses_source(const struct flow *f)
{
	static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};

	if (memcmp(f->src, f->dst, sizeof(f->src)) != 0 || f->ifindex)
		return false;
	return memcmp(f->src, loopback, 13) != 0 || !memcmp(f->src, loopback, sizeof(loopback));
}

static void put_tos(struct msghdr *h, enum udp_family family, struct udp_tx_socket *tx, uint8_t value)
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

/* Not between two messages of one call: messages built before rely on the socket's TOS. */
static void settle_tos(struct udp_tx_socket *tx, enum udp_family family)
{
	int tos = tx->other_tos;

	if (tx->other_run < TX_TOS_RUN)
		return;
	tx->other_run = 0;
	if (setsockopt(tx->fd, family == UDP_V4 ? IPPROTO_IP : IPPROTO_IPV6, family == UDP_V4 ? IP_TOS : IPV6_TCLASS,
		       &tos, sizeof(tos)) == 0)
		tx->tos = tx->other_tos;
}

/* Options that change while it works are those of a new socket again. */
static void heal(struct udp_tx_socket *tx, enum udp_family family)
{
	int level = family == UDP_V4 ? IPPROTO_IP : IPPROTO_IPV6;

	prepare(tx->fd, family);
	udp_set_option(tx->fd, level, family == UDP_V4 ? IP_TOS : IPV6_TCLASS, 0);
	udp_set_option(tx->fd, level, family == UDP_V4 ? IP_MULTICAST_LOOP : IPV6_MULTICAST_LOOP, 1);
	*tx = (struct udp_tx_socket){.fd = tx->fd, .port = tx->port};
}

void udp_tx_heal(struct udp_tx *u)
{
	for (int family = 0; family < UDP_FAMILIES; family++)
		for (unsigned i = 0; i < UDP_PATHS_MAX; i++)
			if (u->sockets[family][i].fd >= 0)
				heal(&u->sockets[family][i], (enum udp_family)family);
}

static bool is_off_host(const struct flow *f)
{
	return f->neighbour == FLOW_OFF_HOST;
}

/* Whether this host gets copies is the socket's affair, and messages built before rely on it, too. */
static void settle_copies(struct udp_tx_socket *tx, enum udp_family family, bool off_host)
{
	int copies = !off_host;

	if (off_host == tx->off_host)
		return;
	if (setsockopt(tx->fd, family == UDP_V4 ? IPPROTO_IP : IPPROTO_IPV6,
		       family == UDP_V4 ? IP_MULTICAST_LOOP : IPV6_MULTICAST_LOOP, &copies, sizeof(copies)) == 0)
		tx->off_host = off_host;
}

/* A loopback interface returns all packets, so one that is for other hosts alone is for nobody there. */
static bool is_for_nobody(const struct flow *f)
{
	static const uint8_t v4[13] = {[10] = 0xff, [11] = 0xff, [12] = 127}, v6[16] = {[15] = 1};

	return is_off_host(f) && (!memcmp(f->src, v4, sizeof(v4)) || !memcmp(f->src, v6, sizeof(v6)));
}

static void build_message(struct udp_tx *u, size_t m, const struct pkt *p, size_t packets, enum udp_family family,
			  struct udp_tx_socket *tx)
{
	struct msghdr *h = &u->messages[m].msg_hdr;
	const struct flow *f = p->flow;
	const struct udp_route *route = udp_route(&u->routes, f, u->now_ns);
	const struct pkt *last = &p[packets - 1];

	/* Contiguous but for the last one's own length. */
	u->iov[m].iov_base = p->data;
	u->iov[m].iov_len = (size_t)(last->data - p->data) + last->len;
	u->packets[m] = packets;
	u->segment_bytes[m] = p->len;
	u->counts[m] = route->counts;
	h->msg_control = &u->control[m];
	h->msg_controllen = 0;
	h->msg_flags = 0;
	if (family == UDP_V4) {
		struct sockaddr_in *to = &u->to[m].v4;
		struct in_pktinfo info = {.ipi_ifindex = (int)route->ifindex};

		memset(to, 0, sizeof(*to));
		to->sin_family = AF_INET;
		to->sin_port = htons(f->dport);
		memcpy(&to->sin_addr, f->dst + 12, 4);
		h->msg_namelen = sizeof(*to);
		memcpy(&info.ipi_spec_dst, f->src + 12, 4);
		if (!kernel_chooses_source(f) && (info.ipi_spec_dst.s_addr || info.ipi_ifindex))
			put_cmsg(h, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	} else {
		struct sockaddr_in6 *to = &u->to[m].v6;
		struct in6_pktinfo info = {.ipi6_ifindex = route->ifindex};

		memset(to, 0, sizeof(*to));
		to->sin6_family = AF_INET6;
		to->sin6_port = htons(f->dport);
		memcpy(&to->sin6_addr, f->dst, 16);
		if (udp_is_link_local(f->dst))
			to->sin6_scope_id = f->ifindex;
		h->msg_namelen = sizeof(*to);
		memcpy(&info.ipi6_addr, f->src, 16);
		if (!kernel_chooses_source(f) && (route->ifindex || !is_zero(f->src, 16)))
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
static struct udp_tx_socket *tx_find(struct udp_tx *u, const struct flow *f, enum udp_family family)
{
	struct udp_tx_socket *tx = &u->sockets[family][f->sport % UDP_PATHS_MAX];

	if (tx->fd >= 0 && tx->port == f->sport)
		return tx;
	/* The kernel chose its port, if it is one of ours. */
	for (unsigned i = 0; i < u->paths; i++) {
		tx = &u->sockets[family][i];
		if (tx->fd >= 0 && tx->port == f->sport)
			return tx;
	}
	return NULL;
}

static void count_sent(struct udp_tx *u, size_t m, size_t *done)
{
	u->counters->tx_packets += u->packets[m];
	u->counters->tx_bytes += u->iov[m].iov_len;
	u->counters->tx_trains++;
	u->counts[m]->tx_packets += u->packets[m];
	u->counts[m]->tx_bytes += u->iov[m].iov_len;
	*done += u->packets[m];
}

/* As sendmmsg(); a single message goes 0.1 us faster by itself. */
static int send_some(int fd, struct mmsghdr *messages, unsigned count)
{
	if (count > 1)
		return uncancelled_sendmmsg(fd, messages, count, MSG_DONTWAIT);
	return uncancelled_sendmsg(fd, &messages->msg_hdr, MSG_DONTWAIT) < 0 ? -1 : 1;
}

static void let_fragment(int fd, bool v6, bool fragment)
{
	if (v6)
		udp_set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
			       fragment ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_PROBE);
	else
		udp_set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, fragment ? IP_PMTUDISC_DONT : IP_PMTUDISC_PROBE);
}

/*
 * Two processes of one host have agreed on packets that are larger than the MTU of the way between them, now that one of
 * them is on another host: they go one by one, in fragments (RFC 791 3.2). False: the kernel refused one.
 */
static __attribute__((cold)) bool send_in_fragments(struct udp_tx *u, int fd, size_t m)
{
	struct msghdr h = u->messages[m].msg_hdr;
	bool v6 = h.msg_namelen == sizeof(struct sockaddr_in6), sent = true;
	struct iovec iov = u->iov[m];
	size_t left = iov.iov_len, each = u->packets[m] > 1 ? u->segment_bytes[m] : left;

	if (u->to[m].v4.sin_port != htons(u->fragmented_port)) /* which is at the same place in u->to[m].v6 */
		return false;
	if (u->packets[m] > 1)
		h.msg_controllen -= CMSG_SPACE(sizeof(uint16_t)); /* the last one: UDP_SEGMENT */
	h.msg_iov = &iov;
	let_fragment(fd, v6, true);
	for (; left && sent; left -= iov.iov_len) {
		iov.iov_len = left < each ? left : each;
		sent = uncancelled_sendmsg(fd, &h, MSG_DONTWAIT) >= 0;
		iov.iov_base = (uint8_t *)iov.iov_base + iov.iov_len;
	}
	let_fragment(fd, v6, false);
	return sent;
}

/*
 * Sends messages 0 .. count-1 on fd; adds to *done the packets that were sent or dropped. False:
 * the kernel has no room; stop.
 */
static bool send_messages(struct udp_tx *u, int fd, size_t count, size_t *done)
{
	for (size_t m = 0; m < count;) {
		int n = send_some(fd, u->messages + m, (unsigned)(count - m));

		u->counters->tx_syscalls++;
		if (n > 0) {
			for (size_t end = m + (size_t)n; m < end; m++)
				count_sent(u, m, done);
			continue;
		}
		/* The error belongs to message m: a call that sent something reports no error. */
		switch (errno) {
		case EINTR: continue;
		case EAGAIN:
		case ENOBUFS:
		case ENOMEM: u->counters->tx_again++; return false;
		case EIO:
			/* An interface without checksum offload or with IPsec takes no trains. */
			if (u->packets[m] > 1 && u->trains) {
				u->trains = false;
				return true;
			}
			break;
		case EMSGSIZE:
		case EINVAL: /* of a train */
			if (!send_in_fragments(u, fd, m))
				break;
			count_sent(u, m++, done);
			continue;
		}
		u->counters->tx_drops += u->packets[m];
		*done += u->packets[m];
		m++;
	}
	return true;
}

size_t udp_tx_send(struct udp_tx *u, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	size_t done = 0;

	u->now_ns = now_ns;
	while (done < n) {
		struct udp_tx_socket *tx = NULL;
		size_t count = 0;
		size_t next = done;

		while (next < n && count < UDP_TX_MESSAGES) {
			const struct pkt *p = &pkts[next];
			enum udp_family family = flow_is_ipv4(p->flow) ? UDP_V4 : UDP_V6;
			struct udp_tx_socket *its = tx_find(u, p->flow, family);
			size_t packets = p->train > 1 ? p->train : 1;

			if (packets > n - next)
				packets = n - next;
			/* Alone, a packet has identification 0; others cannot be sent faithfully.
			 */
			if (!u->trains)
				packets = 1;
			bool refuse = !its || (!u->trains && family == UDP_V4 && p->ip_id) || is_for_nobody(p->flow);

			if (refuse && count)
				break;
			if (refuse) {
				u->counters->tx_drops += packets;
				next += packets;
				done = next;
				continue;
			}
			if (count && (its != tx || is_off_host(p->flow) != tx->off_host))
				break;
			tx = its;
			if (!count) {
				settle_tos(tx, family);
				settle_copies(tx, family, is_off_host(p->flow));
			}
			build_message(u, count++, p, packets, family, tx);
			next += packets;
		}
		if (count && !send_messages(u, tx->fd, count, &done))
			break;
	}
	return done;
}
