/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joining a group. One process at a time does it, the holder of the lock, a listening name that
 * vanishes with its process. An attempt
 *
 *	looks who lives (every name is tried) and asks each what it holds;
 *	fetches the sockets of the one that holds most;
 *	takes the lowest slot below that whose name is free, with the socket its member left behind,
 *	    or else binds new sockets, whose index is the number of sockets there were;
 *	proves by a datagram to itself, in each lane, that the index is the slot;
 *	publishes its name, and gives every live member what that one lacks.
 *
 * The proof is needed because a member may have died a moment ago with sockets that nobody else
 * holds: until the kernel has closed them all, a new one stands behind them. It moves to its place
 * when they are gone, so the attempt is undone and made again. It also fails where a stopped member
 * alone holds some; that ends with an error that names it.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "io/group.h"
#include "io/group_link.h"
#include "io/group_state.h"
#include "io/udp.h"

enum {
	JOIN_MS_DEFAULT = 10000,
	ANSWER_MS_MAX = 300, /* what a live member gets to answer in */
	RETRY_MS = 10,
	PROOF_MS = 30,
	PROOF_TRIES = 4,
	PROOF_BYTES = 28,
	DRAIN_MAX = 100000, /* datagrams thrown away from an adopted socket */
	LISTENER_EVENT = 0xffff
};

enum member_state {
	NOBODY,
	ALIVE,  /* answered */
	SILENT, /* there, but did not answer in time */
	OTHER,  /* speaks another version */
	FOREIGN /* another user has the name */
};

struct member {
	enum member_state state;
	int link; /* -1 unless ALIVE */
	struct link_peer peer;
	unsigned held;
};

struct join {
	struct group *g;
	const struct group_config *cfg;
	uid_t uid;
	uint64_t deadline_ms;
	struct member members[GROUP_SLOTS];
	char *why;
	size_t why_bytes;
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void sleep_ms(unsigned ms)
{
	struct timespec ts = {.tv_nsec = (long)ms * 1000000};

	nanosleep(&ts, NULL);
}

/* ---- reasons ---- */

static int explain(struct join *j, int err, const char *doing)
{
	struct rlimit limit = {0};

	if (err == -EMFILE || err == -ETOOMANYREFS) {
		getrlimit(RLIMIT_NOFILE, &limit);
		snprintf(j->why, j->why_bytes,
			 "too many open files: the limit is %llu (ulimit -n), and a full group "
			 "needs "
			 "%u for itself",
			 (unsigned long long)limit.rlim_cur,
			 GROUP_SLOTS * GROUP_LANES_MAX + (int)UDP_FAMILIES * (int)UDP_PATHS_MAX + 16);
		return -EMFILE;
	}
	snprintf(j->why, j->why_bytes, "cannot %s: %s", doing, strerror(-err));
	return err;
}

/* Looks up who has bound a UDP port, from /proc; -1: not to be seen. */
static long port_owner(uint16_t port)
{
	static const char *const files[] = {"/proc/net/udp", "/proc/net/udp6"};

	for (unsigned i = 0; i < 2; i++) {
		FILE *f = fopen(files[i], "re");
		char line[512];

		while (f && fgets(line, sizeof(line), f)) {
			unsigned local;
			unsigned uid;

			if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %u", &local,
				   &uid) == 2 &&
			    local == port) {
				fclose(f);
				return (long)uid;
			}
		}
		if (f)
			fclose(f);
	}
	return -1;
}

static int explain_bind(struct join *j, int err, uint16_t port)
{
	long owner = port_owner(port);

	if (err != -EADDRINUSE && err != -EACCES)
		return explain(j, err, "bind a UDP socket");
	if (owner >= 0 && (uid_t)owner != j->uid)
		snprintf(j->why, j->why_bytes,
			 "UDP port %u is in use by another user (uid %ld), and only processes of one "
			 "user can share it: set VERBENA_PORT to a port of your own, at both ends, or "
			 "run in a network namespace of your own",
			 port, owner);
	else
		snprintf(j->why, j->why_bytes,
			 "UDP port %u is in use by something else (%s): another program, or the "
			 "kernel's own RoCE driver (rdma_rxe)",
			 port, strerror(-err));
	return -EADDRINUSE;
}

static int explain_silent(struct join *j, unsigned slot)
{
	snprintf(j->why, j->why_bytes,
		 "process %ld, which shares UDP port %u, does not answer (stopped, or in a "
		 "debugger?); its sockets are needed to join",
		 (long)j->members[slot].peer.pid, j->cfg->ports[0]);
	return -EAGAIN;
}

/* ---- the lock ---- */

static int take_lock(struct join *j)
{
	uint16_t port = j->cfg->ports[0];

	for (;;) {
		int fd = link_listen(j->uid, port, LINK_LOCK);

		if (fd >= 0)
			return fd;
		if (fd != -EADDRINUSE)
			return explain(j, fd, "take the lock");
		if (now_ms() >= j->deadline_ms)
			break;
		sleep_ms(RETRY_MS);
	}

	struct link_peer peer = {0};
	int fd = link_connect(j->uid, port, LINK_LOCK, &peer);

	if (fd >= 0)
		close(fd);
	if (fd == -EPERM)
		snprintf(j->why, j->why_bytes,
			 "process %ld of uid %u holds the lock of our group on UDP port %u: set "
			 "VERBENA_PORT to another port, at both ends, or run in a network namespace of "
			 "your own",
			 (long)peer.pid, (unsigned)peer.uid, port);
	else
		snprintf(j->why, j->why_bytes,
			 "process %ld has held the lock of the group on UDP port %u for too long",
			 (long)peer.pid, port);
	return -ETIMEDOUT;
}

/* ---- who lives ---- */

static void hang_up(struct member *m)
{
	if (m->link >= 0)
		close(m->link);
	m->link = -1;
}

static int say(int link, enum group_msg_type type, unsigned first)
{
	struct group_msg m = {.type = type, .first = (uint16_t)first};
	uint8_t buf[GROUP_MSG_HEADER_LEN];

	return link_send(link, buf, group_msg_encode(buf, &m), NULL, 0, NULL, 0);
}

/* 0, or a negative errno that ends the attempt. */
static int call_members(struct join *j)
{
	for (unsigned s = 0; s < GROUP_SLOTS; s++) {
		struct member *m = &j->members[s];

		m->link = link_connect(j->uid, j->cfg->ports[0], (int)s, &m->peer);
		switch (m->link) {
		case -ECONNREFUSED:
			m->state = NOBODY;
			break;
		case -EPERM:
			m->state = FOREIGN;
			break;
		case -EMFILE:
		case -ENFILE:
			return explain(j, m->link, "call the members");
		default:
			m->state = SILENT;
			if (m->link >= 0)
				say(m->link, GROUP_HELLO, 0);
		}
		if (m->link < 0)
			m->link = -1;
	}
	return 0;
}

/*
 * Waits until every member with a link has said something, which `heard` is told, or time is up.
 * heard returns false to hang up.
 */
static void listen_to(struct join *j, unsigned waiting,
		      bool (*heard)(struct join *, struct member *, const struct group_msg *))
{
	uint64_t until = now_ms() + ANSWER_MS_MAX;
	bool done[GROUP_SLOTS] = {false};

	while (waiting) {
		struct pollfd p[GROUP_SLOTS];
		unsigned of[GROUP_SLOTS];
		nfds_t n = 0;
		uint64_t now = now_ms();

		for (unsigned s = 0; s < GROUP_SLOTS; s++) {
			if (j->members[s].link < 0 || done[s])
				continue;
			of[n] = s;
			p[n++] = (struct pollfd){.fd = j->members[s].link, .events = POLLIN};
		}
		if (!n || now >= until || (poll(p, n, (int)(until - now)) < 0 && errno != EINTR))
			return;
		for (nfds_t i = 0; i < n; i++) {
			struct member *m = &j->members[of[i]];
			uint8_t buf[GROUP_MSG_HEADER_LEN];
			int fds[GROUP_MSG_FDS_MAX];
			size_t fd_count = 0;
			struct group_msg msg;
			ssize_t len;

			if (!p[i].revents)
				continue;
			len = link_recv(m->link, buf, sizeof(buf), fds, GROUP_MSG_FDS_MAX,
					&fd_count);
			if (len == -EAGAIN)
				continue;
			if (len > 0)
				link_close_all(fds, fd_count);
			done[of[i]] = true;
			waiting--;
			enum group_msg_verdict verdict =
				len > 0 ? group_msg_decode(&msg, buf, (size_t)len) : GROUP_MSG_BAD;

			if (verdict == GROUP_MSG_OTHER_VERSION)
				m->state = OTHER;
			if (verdict != GROUP_MSG_OK || !heard(j, m, &msg))
				hang_up(m);
		}
	}
}

static bool heard_info(struct join *j, struct member *m, const struct group_msg *msg)
{
	if (msg->type != GROUP_INFO || msg->slot != m - j->members || msg->held <= msg->slot)
		return false;
	m->state = ALIVE;
	m->held = msg->held;
	if (!j->g->lane_count) {
		j->g->lane_count = msg->lane_count;
		memcpy(j->g->lanes, msg->lanes, sizeof(j->g->lanes));
	}
	return true;
}

static unsigned count_links(const struct join *j)
{
	unsigned n = 0;

	for (unsigned s = 0; s < GROUP_SLOTS; s++)
		n += j->members[s].link >= 0;
	return n;
}

/* The member that holds most, or NULL. */
static struct member *richest(struct join *j)
{
	struct member *best = NULL;

	for (unsigned s = 0; s < GROUP_SLOTS; s++) {
		struct member *m = &j->members[s];

		if (m->state == ALIVE && m->link >= 0 && (!best || m->held > best->held))
			best = m;
	}
	return best;
}

/* ---- the sockets that there are ---- */

static int fetch_from(struct join *j, struct member *m)
{
	struct group *g = j->g;
	uint64_t until = now_ms() + ANSWER_MS_MAX;
	int err = say(m->link, GROUP_FETCH, 0);

	while (err == 0 && g->held < m->held) {
		struct pollfd p = {.fd = m->link, .events = POLLIN};
		uint64_t now = now_ms();
		uint8_t buf[GROUP_MSG_HEADER_LEN];
		int fds[GROUP_MSG_FDS_MAX];
		size_t n = 0;
		struct group_msg msg;
		ssize_t len;

		if (now >= until)
			return -ETIMEDOUT;
		poll(&p, 1, (int)(until - now));
		len = link_recv(m->link, buf, sizeof(buf), fds, GROUP_MSG_FDS_MAX, &n);
		if (len == -EAGAIN)
			continue;
		if (len <= 0)
			return len ? (int)len : -ECONNRESET;
		if (group_msg_decode(&msg, buf, (size_t)len) != GROUP_MSG_OK ||
		    msg.type != GROUP_FDS || msg.lane_count != g->lane_count ||
		    n != group_msg_fds(&msg) || msg.first != g->held || !msg.count) {
			link_close_all(fds, n);
			return -EPROTO;
		}
		if (!group_hold(g, msg.first, msg.count, fds))
			return -EPROTO;
	}
	return err;
}

static int fetch(struct join *j)
{
	struct member *m;

	while ((m = richest(j))) {
		int err = fetch_from(j, m);

		if (err == 0)
			return 0;
		if (err == -EMFILE || err == -ETOOMANYREFS)
			return explain(j, err, "take over sockets");
		m->state = SILENT;
		hang_up(m);
	}
	return 0;
}

/* ---- lanes ---- */

static bool has_lane(const struct group *g, enum udp_family family, uint16_t port)
{
	for (unsigned i = 0; i < g->lane_count; i++)
		if (g->lanes[i].family == family && g->lanes[i].port == port)
			return true;
	return false;
}

static bool host_has_ipv6(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* The first member chooses; the others do as it does. */
static int settle_lanes(struct join *j)
{
	const struct group_config *cfg = j->cfg;
	struct group *g = j->g;
	size_t ports = 0;

	for (unsigned s = 0; s < GROUP_SLOTS; s++) {
		if (j->members[s].state != OTHER)
			continue;
		snprintf(j->why, j->why_bytes,
			 "process %ld shares UDP port %u and is of another version; processes that "
			 "run at the same time must be of one version",
			 (long)j->members[s].peer.pid, cfg->ports[0]);
		return -EPROTO;
	}
	if (!g->lane_count) {
		bool v6 = !cfg->no_ipv6 && host_has_ipv6();

		for (size_t i = 0; i < cfg->port_count; i++) {
			g->lanes[g->lane_count++] = (struct group_lane){UDP_V4, cfg->ports[i]};
			if (v6)
				g->lanes[g->lane_count++] =
					(struct group_lane){UDP_V6, cfg->ports[i]};
		}
		return 0;
	}
	for (size_t i = 0; i < g->lane_count; i++)
		ports += g->lanes[i].family == UDP_V4;
	if (ports > cfg->port_count) {
		snprintf(j->why, j->why_bytes,
			 "processes of this user share UDP port %u and one more; they run with other "
			 "settings",
			 cfg->ports[0]);
		return -EPROTO;
	}
	for (size_t i = 0; i < cfg->port_count; i++) {
		if (has_lane(g, UDP_V4, cfg->ports[i]))
			continue;
		snprintf(j->why, j->why_bytes,
			 "processes of this user share UDP port %u without port %u; they run with "
			 "other settings",
			 cfg->ports[0], cfg->ports[i]);
		return -EPROTO;
	}
	return 0;
}

/* ---- a slot ---- */

/* What the last owner left unread is not for us. */
static void drain(int fd)
{
	for (unsigned i = 0; i < DRAIN_MAX; i++)
		if (recv(fd, NULL, 0, MSG_DONTWAIT | MSG_TRUNC) < 0 && errno != EINTR)
			return;
}

static int bind_lane(struct join *j, const struct group_lane *lane)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(lane->port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(lane->port)};
	const void *addr = lane->family == UDP_V4 ? (const void *)&v4 : (const void *)&v6;
	socklen_t len = lane->family == UDP_V4 ? sizeof(v4) : sizeof(v6);
	int fd = udp_rx_socket(lane->family);
	int one = 1;

	if (fd < 0)
		return explain(j, fd, "make a UDP socket");
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) < 0 ||
	    bind(fd, addr, len) < 0) {
		int err = -errno;

		close(fd);
		return explain_bind(j, err, lane->port);
	}
	return fd;
}

/* New sockets, one a lane, behind those that there are. */
static int bind_slot(struct join *j)
{
	struct group *g = j->g;

	for (unsigned lane = 0; lane < g->lane_count; lane++) {
		int fd = bind_lane(j, &g->lanes[lane]);

		if (fd < 0)
			return fd;
		g->socks[lane][g->held] = fd;
	}
	g->held++;
	return 0;
}

/* The socket index is the slot: destination QPN bits 23..17, in byte 5 of BTH (IBTA 9.2). */
static int attach_program(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 5),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 1),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog prog;

	/* Its padding too: the kernel is given every byte. */
	memset(&prog, 0, sizeof(prog));
	prog.len = sizeof(code) / sizeof(code[0]);
	prog.filter = code;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog, sizeof(prog)) < 0
		       ? -errno
		       : 0;
}

static int choose_slot(struct join *j)
{
	struct group *g = j->g;
	unsigned slot = 0;

	while (slot < g->held && j->members[slot].state != NOBODY)
		slot++;
	if (slot == GROUP_SLOTS) {
		snprintf(j->why, j->why_bytes,
			 "all %d slots on UDP port %u are taken by processes of this user",
			 GROUP_SLOTS, j->cfg->ports[0]);
		return -ENOSPC;
	}
	if (slot == g->held) {
		int err;

		/* Behind our sockets there must be no others. */
		for (unsigned s = slot; s < GROUP_SLOTS; s++)
			if (j->members[s].state == SILENT || j->members[s].state == ALIVE)
				return explain_silent(j, s);
		if (j->members[slot].state == FOREIGN) {
			snprintf(j->why, j->why_bytes,
				 "process %ld of uid %u has taken the name of slot %u of our group "
				 "on "
				 "UDP port %u",
				 (long)j->members[slot].peer.pid,
				 (unsigned)j->members[slot].peer.uid, slot, j->cfg->ports[0]);
			return -EADDRINUSE;
		}
		err = bind_slot(j);
		if (err < 0)
			return err;
	}
	g->slot = slot;
	for (unsigned lane = 0; lane < g->lane_count; lane++) {
		int fd = g->socks[lane][slot];
		int err = attach_program(fd);

		if (err < 0)
			return explain(j, err, "attach a program to the UDP socket");
		udp_rx_prepare(fd, g->lanes[lane].family);
		drain(fd);
	}
	return 0;
}

/* ---- the proof ---- */

static bool proof_arrives(int fd, const uint8_t *proof)
{
	uint64_t until = now_ms() + PROOF_MS;

	for (uint64_t now; (now = now_ms()) < until;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint8_t buf[PROOF_BYTES + 1];
		ssize_t len;

		if (poll(&p, 1, (int)(until - now)) <= 0)
			continue;
		/* What else arrives came for this slot's last owner. */
		len = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (len == PROOF_BYTES && memcmp(buf, proof, PROOF_BYTES) == 0)
			return true;
	}
	return false;
}

/*
 * True: a datagram for our slot arrives at our socket, or this host has no loopback to try it on.
 * It looks like BTH with an opcode that nobody uses; who else gets it drops it.
 */
static bool prove_lane(const struct group *g, unsigned lane)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET,
				 .sin_port = htons(g->lanes[lane].port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
				  .sin6_port = htons(g->lanes[lane].port),
				  .sin6_addr = in6addr_loopback};
	bool is_v4 = g->lanes[lane].family == UDP_V4;
	int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool proven = false;

	for (unsigned i = 0; fd >= 0 && !proven && i < PROOF_TRIES; i++) {
		uint8_t proof[PROOF_BYTES];

		if (getrandom(proof, sizeof(proof), 0) != sizeof(proof))
			break;
		proof[0] = 0xff;
		proof[5] = (uint8_t)(g->slot << 1);
		if (sendto(fd, proof, sizeof(proof), 0,
			   is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6,
			   is_v4 ? sizeof(v4) : sizeof(v6)) < 0)
			proven = errno == ENETUNREACH || errno == EADDRNOTAVAIL ||
				 errno == ENETDOWN || errno == EHOSTUNREACH;
		else
			proven = proof_arrives(g->socks[lane][g->slot], proof);
	}
	if (fd >= 0)
		close(fd);
	return proven;
}

static int prove(struct join *j)
{
	for (unsigned lane = 0; lane < j->g->lane_count; lane++) {
		if (prove_lane(j->g, lane))
			continue;
		snprintf(
			j->why, j->why_bytes,
			"a datagram sent to ourselves on UDP port %u (IPv%c, slot %u) does not "
			"arrive: "
			"a firewall on the loopback interface, or another process holds sockets of "
			"the group",
			j->g->lanes[lane].port, j->g->lanes[lane].family == UDP_V4 ? '4' : '6',
			j->g->slot);
		return -EAGAIN;
	}
	return 0;
}

/* ---- going public ---- */

static bool heard_ack(struct join *j, struct member *m, const struct group_msg *msg)
{
	return msg->type == GROUP_ACK;
}

/* A member that does not take them is skipped: the next joiner finds others that have them. */
static void give_to_members(struct join *j)
{
	struct group *g = j->g;
	unsigned waiting = 0;

	for (unsigned s = 0; s < GROUP_SLOTS; s++) {
		struct member *m = &j->members[s];

		if (m->state != ALIVE || m->held >= g->held ||
		    group_give(g, m->link, GROUP_ADOPT, m->held, g->held - m->held) < 0)
			hang_up(m);
		else
			waiting++;
	}
	listen_to(j, waiting, heard_ack);
}

static int publish(struct join *j)
{
	struct group *g = j->g;
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = LISTENER_EVENT};

	g->listener = link_listen(j->uid, j->cfg->ports[0], (int)g->slot);
	if (g->listener == -EADDRINUSE) {
		snprintf(j->why, j->why_bytes, "slot %u of UDP port %u was taken meanwhile",
			 g->slot, j->cfg->ports[0]);
		return -EAGAIN;
	}
	if (g->listener < 0)
		return explain(j, g->listener, "publish our slot");
	g->spare = fcntl(g->listener, F_DUPFD_CLOEXEC, 0);
	g->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (g->spare < 0 || g->epoll < 0 ||
	    epoll_ctl(g->epoll, EPOLL_CTL_ADD, g->listener, &ev) < 0)
		return explain(j, -errno, "publish our slot");
	return 0;
}

/* -EAGAIN: worth another attempt, with the reason set for when there is none. */
static int attempt(struct join *j)
{
	int err = call_members(j);

	if (err < 0)
		return err;
	listen_to(j, count_links(j), heard_info);
	err = settle_lanes(j);
	if (err == 0)
		err = fetch(j);
	if (err == 0)
		err = choose_slot(j);
	if (err == 0)
		err = prove(j);
	if (err == 0)
		err = publish(j);
	if (err == 0)
		give_to_members(j);
	return err;
}

int group_open(struct group **group, const struct group_config *cfg, char *why, size_t why_bytes)
{
	struct join *j = calloc(1, sizeof(*j));
	struct group *g = group_new();
	int lock = -1;
	int err;

	assert(cfg->port_count >= 1 && cfg->port_count <= GROUP_PORTS_MAX);
	if (!j || !g) {
		snprintf(why, why_bytes, "out of memory");
		err = -ENOMEM;
		goto free;
	}
	j->g = g;
	j->cfg = cfg;
	j->uid = geteuid();
	j->deadline_ms = now_ms() + (cfg->join_ms_max ? cfg->join_ms_max : JOIN_MS_DEFAULT);
	j->why = why;
	j->why_bytes = why_bytes;
	g->stat_fd = cfg->stat_fd;
	g->counters = cfg->counters ? cfg->counters : &g->own_counters;

	lock = take_lock(j);
	if (lock < 0) {
		err = lock;
		goto free;
	}
	for (;;) {
		memset(j->members, 0, sizeof(j->members));
		for (unsigned s = 0; s < GROUP_SLOTS; s++)
			j->members[s].link = -1;
		err = attempt(j);
		for (unsigned s = 0; s < GROUP_SLOTS; s++)
			hang_up(&j->members[s]);
		if (err != -EAGAIN)
			break;
		if (now_ms() >= j->deadline_ms) {
			err = -ETIMEDOUT;
			break;
		}
		group_reset(g);
		sleep_ms(RETRY_MS);
	}
	close(lock);
	if (err < 0)
		goto free;
	free(j);
	*group = g;
	return 0;

free:
	if (g)
		group_close(g);
	free(j);
	return err;
}
