/* SPDX-License-Identifier: BSD-2-Clause */
/* Owns the packet socket, the frames received with the last call, and the packets whose destination the kernel is
 * looking for. */
#include "io/raw/raw.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/fd_away.h"
#include "io/raw/raw_routes.h"
#include "io/udp/udp_socket.h"
#include "space/space.h"

enum {
	RX_FRAMES = 64,
	RX_FRAME_BYTES = RAW_PACKET_BYTES_MAX + ROCEV1_HEAD_LEN_MAX,
	TX_FRAMES = 64,
	WAIT_NS_MAX = 1000000000,
	RETRY_NS = 1000000,
	SLOT_SHIFT = 17, /* of a QPN */
	CONTROL_BYTES = 64
};

/* A packet whose destination the kernel is looking for. */
struct waiting {
	struct flow flow;
	uint32_t len;
	uint64_t until_ns;
	uint8_t bytes[RAW_PACKET_BYTES_MAX];
};

struct raw_tx {
	struct mmsghdr messages[TX_FRAMES];
	struct iovec iov[TX_FRAMES][2];
	struct sockaddr_ll to[TX_FRAMES];
	uint8_t heads[TX_FRAMES][ROCEV1_HEAD_LEN_MAX];
	uint32_t of[TX_FRAMES]; /* the packet that the message carries, by its index in the burst */
};

struct raw_rx {
	struct mmsghdr messages[RX_FRAMES];
	struct iovec iov[RX_FRAMES];
	struct sockaddr_ll from[RX_FRAMES];
	struct flow flows[RX_FRAMES];
	_Alignas(struct cmsghdr) uint8_t control[RX_FRAMES][CONTROL_BYTES];
	uint8_t frames[RX_FRAMES][RX_FRAME_BYTES];
};

struct raw_join {
	uint8_t gid[16];
	uint32_t ifindex; /* 0: none */
};

struct raw {
	struct io io;
	int fd;
	bool (*is_ours)(void *, const struct pkt *);
	void *ctx;
	struct io_counters *counters;
	struct io_interfaces *interfaces;
	uint32_t overflow; /* as the kernel last told */
	struct raw_routes routes;
	struct raw_join joins[RAW_JOINS_MAX];
	uint32_t waiting_count;
	uint64_t retry_ns;                        /* when to look again for the destinations of those that wait */
	struct waiting *waiting[RAW_WAITING_MAX]; /* the first waiting_count wait, oldest first; the others are free */
	struct raw_tx tx;
	struct raw_rx rx;
	struct waiting room[RAW_WAITING_MAX];
};

static const struct io_ops raw_ops;

/* ---- open and close ---- */

/* Frames for QPNs of the slot, for QPN 1 and for the multicast QPN. */
static int filter_attach(int fd, unsigned slot)
{
	enum {
		NEXTHDR_AT = 20,
		QPN_AT = ROCEV1_HEAD_LEN + 4,
		GSI = 1,
		MULTICAST = 0xffffff,
		DROP = 0,
		WHOLE = 0x40000
	};
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, NEXTHDR_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GRH_NEXTHDR_IBA, 0, 6),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, QPN_AT),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GSI, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MULTICAST, 3, 0),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, SLOT_SHIFT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, slot, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, DROP),
		BPF_STMT(BPF_RET | BPF_K, WHOLE),
	};
	struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) < 0 ? -errno : 0;
}

/* A socket that gets nothing yet, so that no frame comes in before the filter. */
static int socket_open(unsigned slot)
{
	struct sockaddr_ll any = {.sll_family = AF_PACKET, .sll_protocol = htons(ROCEV1_ETHERTYPE)};
	int fd = fd_away(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	int err;

	if (fd < 0)
		return -errno;
	udp_set_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	udp_set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, UDP_RCVBUF_BYTES);
	udp_set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, UDP_SNDBUF_BYTES);
	err = filter_attach(fd, slot);
	if (!err && bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0)
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static void messages_prepare(struct raw *r)
{
	for (size_t i = 0; i < RX_FRAMES; i++) {
		struct msghdr *h = &r->rx.messages[i].msg_hdr;

		r->rx.iov[i] = (struct iovec){r->rx.frames[i], RX_FRAME_BYTES};
		h->msg_iov = &r->rx.iov[i];
		h->msg_iovlen = 1;
		h->msg_name = &r->rx.from[i];
		h->msg_control = r->rx.control[i];
	}
	for (size_t i = 0; i < TX_FRAMES; i++) {
		struct msghdr *h = &r->tx.messages[i].msg_hdr;

		r->tx.iov[i][0].iov_base = r->tx.heads[i];
		r->tx.to[i] = (struct sockaddr_ll){
			.sll_family = AF_PACKET, .sll_protocol = htons(ROCEV1_ETHERTYPE), .sll_halen = ROCEV1_MAC_LEN};
		h->msg_iov = r->tx.iov[i];
		h->msg_iovlen = 2;
		h->msg_name = &r->tx.to[i];
		h->msg_namelen = sizeof(r->tx.to[i]);
	}
	for (size_t i = 0; i < RAW_WAITING_MAX; i++)
		r->waiting[i] = &r->room[i];
}

static int explain(int err, char *why, size_t why_bytes)
{
	if (err == -EPERM || err == -EACCES)
		snprintf(
			why, why_bytes,
			"RoCEv1 needs a packet socket, which this process may not open: it takes CAP_NET_RAW, or a user and network "
			"namespace of your own (unshare -Urn)");
	else
		snprintf(why, why_bytes, "cannot open a packet socket for RoCEv1: %s", strerror(-err));
	return err;
}

int raw_open(struct io **io, const struct raw_config *cfg, char *why, size_t why_bytes)
{
	struct raw *r = space_get(sizeof(*r));
	int err;

	assert(cfg->gid_count <= IO_GIDS_MAX);
	if (!r) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	r->io.ops = &raw_ops;
	r->is_ours = cfg->is_ours;
	r->ctx = cfg->ctx;
	r->counters = cfg->counters;
	r->interfaces = cfg->interfaces;
	r->fd = err = socket_open(cfg->slot);
	if (err < 0)
		goto free_r;
	err = raw_routes_open(&r->routes, r->fd, cfg->gids, cfg->gid_count);
	if (err < 0)
		goto close_fd;
	messages_prepare(r);
	*io = &r->io;
	return 0;

close_fd:
	close(r->fd);
free_r:
	space_put(r, sizeof(*r));
	return explain(err, why, why_bytes);
}

void raw_set_gids(struct io *io, const struct io_gid *gids, size_t count)
{
	struct raw *r = (struct raw *)io;

	raw_routes_set(&r->routes, r->fd, gids, count);
}

static void raw_close(struct io *io)
{
	struct raw *r = (struct raw *)io;

	raw_routes_close(&r->routes);
	close(r->fd);
	space_put(r, sizeof(*r));
}

size_t raw_rcvbuf_bytes(const struct io *io)
{
	int bytes = 0;
	socklen_t len = sizeof(bytes);

	getsockopt(((const struct raw *)io)->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len);
	return (size_t)bytes;
}

/* ---- groups ---- */

static bool membership(const struct raw *r, int option, const uint8_t gid[16], uint32_t ifindex)
{
	struct packet_mreq m = {.mr_ifindex = (int)ifindex, .mr_type = PACKET_MR_MULTICAST, .mr_alen = ROCEV1_MAC_LEN};

	rocev1_mac_of_group(m.mr_address, gid);
	return setsockopt(r->fd, SOL_PACKET, option, &m, sizeof(m)) == 0;
}

/* The place of a membership; with the interface 0 a free place. NULL: there is none. */
static struct raw_join *join_find(const struct raw *r, const uint8_t gid[16], uint32_t ifindex)
{
	for (size_t i = 0; i < RAW_JOINS_MAX; i++) {
		const struct raw_join *j = &r->joins[i];

		if (j->ifindex == ifindex && (!ifindex || !memcmp(j->gid, gid, sizeof(j->gid))))
			return (struct raw_join *)j;
	}
	return NULL;
}

static int join_one(struct raw *r, const uint8_t gid[16], uint32_t ifindex)
{
	struct raw_join *j = join_find(r, gid, 0);

	if (join_find(r, gid, ifindex))
		return 0;
	if (!j)
		return -ENOMEM;
	if (!membership(r, PACKET_ADD_MEMBERSHIP, gid, ifindex))
		return -errno;
	j->ifindex = ifindex;
	memcpy(j->gid, gid, sizeof(j->gid));
	return 0;
}

int raw_join(struct io *io, const uint8_t gid[16], const uint32_t *ifindex, size_t count)
{
	int err = -ENODEV;

	for (size_t i = 0; i < count; i++) {
		int its = join_one((struct raw *)io, gid, ifindex[i]);

		if (err)
			err = its;
	}
	return err;
}

void raw_keep(struct io *io, bool (*keep)(const void *, const uint8_t[16], uint32_t), const void *ctx)
{
	struct raw *r = (struct raw *)io;

	for (size_t i = 0; i < RAW_JOINS_MAX; i++) {
		struct raw_join *j = &r->joins[i];

		if (!j->ifindex || keep(ctx, j->gid, j->ifindex))
			continue;
		membership(r, PACKET_DROP_MEMBERSHIP, j->gid, j->ifindex);
		j->ifindex = 0;
	}
}

/* ---- send ---- */

static void frame_add(struct raw *r, size_t *n, const struct raw_route *route, uint32_t ifindex, const struct pkt *p,
		      uint32_t of)
{
	size_t i = (*n)++;

	r->tx.iov[i][0].iov_len = rocev1_encode(r->tx.heads[i], &route->link, p->flow, p->len);
	r->tx.iov[i][1] = (struct iovec){p->data, p->len};
	r->tx.to[i].sll_ifindex = (int)ifindex;
	memcpy(r->tx.to[i].sll_addr, route->link.dst, ROCEV1_MAC_LEN);
	r->tx.of[i] = of;
}

/* Frames for the first packets whose way is known; how many packets those are. */
static size_t frames_make(struct raw *r, const struct pkt *pkts, size_t n, size_t *frames, uint64_t now_ns)
{
	size_t i = 0;

	*frames = 0;
	for (; i < n && *frames + 2 <= TX_FRAMES; i++) {
		const struct raw_route *route = raw_route(&r->routes, pkts[i].flow, now_ns);

		if (route->way != RAW_KNOWN)
			break;
		frame_add(r, frames, route, route->ifindex, &pkts[i], (uint32_t)i);
		if (route->everywhere && r->routes.loopback)
			frame_add(r, frames, route, r->routes.loopback, &pkts[i], (uint32_t)i);
	}
	return i;
}

static void count_frame(struct raw *r, size_t i)
{
	struct io_interface *row =
		r->interfaces ? io_interface_find(r->interfaces, (uint32_t)r->tx.to[i].sll_ifindex) : NULL;

	r->counters->tx_bytes += r->tx.iov[i][1].iov_len;
	if (!row)
		return;
	row->tx_packets++;
	row->tx_bytes += r->tx.iov[i][1].iov_len;
}

/* How many frames are done with; fewer than n: the kernel has no room. */
static size_t frames_send(struct raw *r, size_t n)
{
	size_t done = 0;

	while (done < n) {
		int sent = sendmmsg(r->fd, &r->tx.messages[done], (unsigned)(n - done), MSG_DONTWAIT);

		r->counters->tx_syscalls++;
		if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) {
			r->counters->tx_again++;
			break;
		}
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0) {
			r->counters->tx_drops++;
			done++;
			continue;
		}
		for (size_t i = done; i < done + (size_t)sent; i++)
			count_frame(r, i);
		r->counters->tx_packets += (uint64_t)sent;
		r->counters->tx_trains += (uint64_t)sent;
		done += (size_t)sent;
	}
	return done;
}

static void wait_for_mac(struct raw *r, const struct pkt *p, uint64_t now_ns)
{
	struct waiting *w;

	if (r->waiting_count == RAW_WAITING_MAX || p->len > RAW_PACKET_BYTES_MAX) {
		r->counters->tx_drops++;
		return;
	}
	if (!r->waiting_count)
		r->retry_ns = now_ns + RETRY_NS;
	w = r->waiting[r->waiting_count++];
	w->flow = *p->flow;
	w->len = p->len;
	w->until_ns = now_ns + WAIT_NS_MAX;
	memcpy(w->bytes, p->data, p->len);
}

/* False: it waits on. */
static bool wait_ends(struct raw *r, struct waiting *w, uint64_t now_ns)
{
	struct pkt p = {.data = w->bytes, .flow = &w->flow, .len = w->len, .train = 1};
	size_t frames;

	if (frames_make(r, &p, 1, &frames, now_ns))
		return frames_send(r, frames) == frames;
	if (now_ns < w->until_ns)
		return false;
	r->counters->tx_drops++;
	return true;
}

static void waiting_look(struct raw *r, uint64_t now_ns)
{
	uint32_t n = r->waiting_count, left = 0;

	if (!n || now_ns < r->retry_ns)
		return;
	r->retry_ns = now_ns + RETRY_NS;
	for (uint32_t i = 0; i < n; i++) {
		struct waiting *w = r->waiting[i];

		if (wait_ends(r, w, now_ns))
			continue;
		r->waiting[i] = r->waiting[left];
		r->waiting[left++] = w;
	}
	r->waiting_count = left;
}

/* A packet whose way is not known. */
static void hold_or_drop(struct raw *r, const struct pkt *p, uint64_t now_ns)
{
	if (raw_route(&r->routes, p->flow, now_ns)->way == RAW_ASKED)
		wait_for_mac(r, p, now_ns);
	else
		r->counters->tx_drops++;
}

static size_t raw_send(struct io *io, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	struct raw *r = (struct raw *)io;
	size_t done = 0;

	waiting_look(r, now_ns);
	while (done < n) {
		size_t frames, made = frames_make(r, pkts + done, n - done, &frames, now_ns);
		size_t sent = frames_send(r, frames);

		if (sent < frames)
			return done + r->tx.of[sent];
		done += made;
		if (!made)
			hold_or_drop(r, &pkts[done++], now_ns);
	}
	return n;
}

/* ---- receive ---- */

static bool frame_is_for_us(const struct raw *r, struct flow *f, const struct sockaddr_ll *from)
{
	uint32_t ifindex = (uint32_t)from->sll_ifindex;
	bool looped = ifindex == r->routes.loopback, group = raw_gid_is_group(f->dst);
	int src = raw_gid_find(&r->routes, f->src, 0), own;

	if ((src >= 0) != looped || raw_gid_is_group(f->src))
		return false;
	if (from->sll_pkttype != (group ? PACKET_MULTICAST : PACKET_HOST))
		return false;
	if (group) {
		f->ifindex = looped ? r->routes.gids[src].ifindex : ifindex;
		return join_find(r, f->dst, f->ifindex);
	}
	own = raw_gid_find(&r->routes, f->dst, looped ? 0 : ifindex);
	if (own >= 0 && udp_is_link_local(f->dst))
		f->ifindex = r->routes.gids[own].ifindex;
	return own >= 0;
}

static void overflow_read(struct raw *r, struct msghdr *h)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		uint32_t total;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_RXQ_OVFL)
			continue;
		memcpy(&total, CMSG_DATA(c), sizeof(total));
		r->counters->rx_overflow += total - r->overflow;
		r->overflow = total;
	}
}

/* False: it is not for this process. */
static bool frame_take(struct raw *r, size_t i, struct pkt *p)
{
	struct msghdr *h = &r->rx.messages[i].msg_hdr;
	struct rocev1_link link;
	size_t at;

	overflow_read(r, h);
	*p = (struct pkt){.flow = &r->rx.flows[i], .train = 1};
	at = h->msg_flags & MSG_TRUNC
		     ? 0
		     : rocev1_decode(&link, &r->rx.flows[i], &p->len, r->rx.frames[i], r->rx.messages[i].msg_len);
	if (!at || !frame_is_for_us(r, &r->rx.flows[i], &r->rx.from[i])) {
		r->counters->rx_drops++;
		return false;
	}
	p->data = r->rx.frames[i] + at;
	return !r->is_ours || r->is_ours(r->ctx, p);
}

static int frames_receive(struct raw *r, size_t max)
{
	int n;

	for (size_t i = 0; i < max; i++) {
		struct msghdr *h = &r->rx.messages[i].msg_hdr;

		h->msg_namelen = sizeof(r->rx.from[i]);
		h->msg_controllen = CONTROL_BYTES;
		h->msg_flags = 0;
	}
	do {
		n = recvmmsg(r->fd, r->rx.messages, (unsigned)max, MSG_DONTWAIT, NULL);
		r->counters->rx_syscalls++;
	} while (n < 0 && errno == EINTR);
	return n;
}

static size_t raw_recv(struct io *io, struct pkt *pkts, size_t max, uint64_t now_ns)
{
	struct raw *r = (struct raw *)io;
	size_t n = 0;
	int got;

	waiting_look(r, now_ns);
	got = frames_receive(r, max < RX_FRAMES ? max : RX_FRAMES);
	for (int i = 0; i < got; i++) {
		if (!frame_take(r, (size_t)i, &pkts[n]))
			continue;
		r->counters->rx_bytes += pkts[n].len;
		n++;
	}
	r->counters->rx_packets += n;
	r->counters->rx_trains += n;
	return n;
}

/* ---- the io contract ---- */

static size_t raw_fds(const struct io *io, int *fds, size_t max)
{
	if (max)
		fds[0] = ((const struct raw *)io)->fd;
	return max > 0;
}

static uint64_t raw_deadline_ns(const struct io *io)
{
	const struct raw *r = (const struct raw *)io;

	return r->waiting_count ? r->retry_ns : UINT64_MAX;
}

static size_t raw_train_max(const struct io *io)
{
	return 1;
}

static void raw_flush(struct io *io)
{
}

/* The length of the head of a frame that was received with the last call, or 0. */
static size_t head_of_received(const struct raw *r, const uint8_t *data)
{
	const uint8_t *first = r->rx.frames[0];

	return data > first && data < first + sizeof(r->rx.frames) ? (size_t)(data - first) % RX_FRAME_BYTES : 0;
}

size_t raw_head(const struct io *io, uint8_t *out, const struct pkt *p)
{
	const struct raw *r = (const struct raw *)io;
	const struct raw_routes *t = &r->routes;
	size_t received = head_of_received(r, p->data);
	const struct raw_route *there = raw_route_kept(t, p->flow->src, p->flow->dst);
	const struct raw_route *back = there ? NULL : raw_route_kept(t, p->flow->dst, p->flow->src);
	struct rocev1_link link = {0};

	if (received) {
		memcpy(out, p->data - received, received);
		return received;
	}
	if (there) {
		link = there->link;
	} else if (back) {
		memcpy(link.dst, back->link.src, sizeof(link.dst));
		memcpy(link.src, back->link.dst, sizeof(link.src));
	}
	return rocev1_encode(out, &link, p->flow, p->len);
}

static const struct io_ops raw_ops = {
	.recv = raw_recv,
	.send = raw_send,
	.fds = raw_fds,
	.deadline_ns = raw_deadline_ns,
	.train_max = raw_train_max,
	.flush = raw_flush,
	.close = raw_close,
};
