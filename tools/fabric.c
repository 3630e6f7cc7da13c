/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena fabric`: a modelled InfiniBand fabric for the management tools of the distribution, through ibsim's
 * protocol: their MADs come in datagrams on sockets in the abstract name space, by libumad2sim, which stands before
 * libibumad.
 *
 * A client has a control socket, BASE:ctlPID, and one for MADs, BASE:inPID; here are BASE:ctl for all, and BASE:outN
 * for client N.
 */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/byteorder.h"
#include "fabric/fabric.h"
#include "fabric_save.h"

enum {
	CLIENTS_MAX = 64,
	MADS_A_TURN = 16,
	CONTROL_DATA = 64,
	CONTROL_BYTES = 16 + CONTROL_DATA,
	MAD_AT = 32, /* in a message */
	MESSAGE_BYTES = MAD_AT + MAD_LEN,
	HOST_BYTES = 32,
	FAULTS_MAX = 64,
	TRIES = 4, /* of a MAD on a link with a fault */
	TEXT_MAX = 1 << 20,
	TIMED_OUT = 110, /* ETIMEDOUT, on every architecture */
	IS_SM_BIT = 1 << 1,
	CLASS_SA = 0x03,
	METHOD_RESPONSE = 0x80
};

#define CONTROL_MAGIC 0xdeadbeefu

enum control_type {
	ERROR,
	CONNECT,
	DISCONNECT,
	GET_PORT,
	GET_VENDOR,
	GET_GID,
	GET_GUID,
	GET_NODEINFO,
	GET_PORTINFO,
	SET_ISSM,
	GET_PKEYS
};

static const char usage[] =
	"usage: verbena fabric [OPTION...] TOPOLOGY [-- COMMAND [ARGUMENT...]]\n"
	"\n"
	"Models an InfiniBand fabric, whose switches and adapters answer subnet management, for opensm and the tools\n"
	"of infiniband-diags. COMMAND and what it starts see it; the fabric ends with it. Without one it stays until\n"
	"interrupted, and programs see it with LD_PRELOAD=libumad2sim.so.\n"
	"\n"
	"  -n, --node NAME  the adapter at which COMMAND runs (SIM_HOST); the first one by default\n"
	"  -s, --save FILE  once COMMAND, a subnet manager, has brought all links up, write its forwarding tables, service\n"
	"                   levels and lanes for verbena sim (topology.kind = subnet), and end it\n"
	"  -f, --fault NODE[PORT]=KIND/N\n"
	"                   each Nth packet that the port receives is wrong: bit (one is flipped), length, version, lane, or room (sent\n"
	"                   without credits); several may be given\n"
	"  -h, --help       this text\n"
	"\n"
	"TOPOLOGY is a file as ibsim reads it; docs/fabric.md has the format.\n";

/* As the protocol has them, in the host's byte order. */
struct control {
	uint32_t magic, client, type, length;
	uint8_t data[CONTROL_DATA];
};
_Static_assert(sizeof(struct control) == CONTROL_BYTES, "the protocol's");

struct client {
	int fd; /* -1: none */
	struct fabric_node *node;
	bool is_sm;
	bool manages; /* it has asked agents: a manager, not a server as ibping -S is one */
};

struct server {
	struct fabric fabric;
	struct fabric_node *first; /* where clients are that name no node */
	const char *base;
	int control;
	struct client clients[CLIENTS_MAX];
	struct fabric_save *save; /* NULL: save nothing */
	const char *faults[FAULTS_MAX];
	int fault_count;
};

static socklen_t name_make(struct sockaddr_un *a, const struct server *s, const char *what, long number)
{
	int n;

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	n = number < 0 ? snprintf(a->sun_path + 1, sizeof(a->sun_path) - 2, "%s:%s", s->base, what)
		       : snprintf(a->sun_path + 1, sizeof(a->sun_path) - 2, "%s:%s%ld", s->base, what, number);
	if (n > (int)sizeof(a->sun_path) - 3)
		n = (int)sizeof(a->sun_path) - 3;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n + 1);
}

/* A bound socket, or a negative errno. */
static int socket_make(const struct server *s, const char *what, long number)
{
	struct sockaddr_un a;
	socklen_t len = name_make(&a, s, what, number);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0 || !bind(fd, (struct sockaddr *)&a, len))
		return fd < 0 ? -errno : fd;
	err = -errno;
	close(fd);
	return err;
}

/* ---- control ---- */

static struct fabric_port *port_of(const struct client *c)
{
	return &c->node->ports[fabric_first_port(c->node)];
}

static void sm_set(struct server *s, struct client *c, bool is_sm)
{
	bool any = false;

	c->is_sm = is_sm;
	for (int i = 0; i < CLIENTS_MAX; i++)
		any |= s->clients[i].fd >= 0 && s->clients[i].node == c->node && s->clients[i].is_sm;
	c->node->is_sm = any;
	if (any)
		port_of(c)->info.capabilities |= IS_SM_BIT;
	else
		port_of(c)->info.capabilities &= ~(uint32_t)IS_SM_BIT;
}

static void client_end(struct server *s, struct client *c)
{
	sm_set(s, c, false);
	close(c->fd);
	c->fd = -1;
}

/* Clients that are gone without a word have no socket any more. */
static void clients_sweep(struct server *s)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (s->clients[i].fd >= 0 && send(s->clients[i].fd, "", 0, MSG_DONTWAIT) < 0 && errno == ECONNREFUSED)
			client_end(s, &s->clients[i]);
	}
}

static struct client *client_free(struct server *s)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (s->clients[i].fd < 0)
			return &s->clients[i];
	}
	return NULL;
}

/* The data: its PID, a QP, whether it is a manager, the node's name; the answer has the client's number and the name.
 */
static bool client_begin(struct server *s, struct control *m)
{
	struct client *c = client_free(s);
	char name[HOST_BYTES + 1] = "";
	struct sockaddr_un in;
	uint32_t pid, is_sm;
	socklen_t len;

	if (!c) {
		clients_sweep(s);
		c = client_free(s);
	}
	memcpy(&pid, m->data, sizeof(pid));
	memcpy(&is_sm, m->data + 8, sizeof(is_sm));
	memcpy(name, m->data + 12, HOST_BYTES);
	if (!c)
		return false;
	c->node = name[0] ? fabric_find(&s->fabric, name) : s->first;
	if (!c->node || c->node->type != NODE_CA || !fabric_first_port(c->node)) {
		complain("fabric: no adapter \"%s\" with a link", name);
		return false;
	}
	c->manages = false;
	c->fd = socket_make(s, "out", c - s->clients);
	if (c->fd < 0)
		return false;
	len = name_make(&in, s, "in", pid);
	if (connect(c->fd, (struct sockaddr *)&in, len) < 0) {
		close(c->fd);
		c->fd = -1;
		return false;
	}
	sm_set(s, c, is_sm);
	m->client = (uint32_t)(c - s->clients);
	memcpy(m->data, &m->client, sizeof(m->client));
	memset(m->data + 12, 0, HOST_BYTES);
	memcpy(m->data + 12, c->node->name, strnlen(c->node->name, HOST_BYTES - 1));
	return true;
}

/* What an agent would answer to a Get of the client's own node. */
static void attribute_get(struct server *s, struct client *c, uint16_t attribute, uint32_t modifier, uint8_t *data)
{
	struct smp q = {.mad = {.base_version = MAD_BASE_VERSION,
				.mgmt_class = SMP_CLASS_LID,
				.class_version = SMP_CLASS_VERSION,
				.method = MAD_METHOD_GET,
				.attribute = attribute,
				.modifier = modifier}};

	q.mkey = port_of(c)->info.mkey;
	sma_answer(&s->fabric, c->node, 0, &q);
	memcpy(data, q.data, sizeof(q.data));
}

static bool client_answer(struct server *s, struct client *c, struct control *m)
{
	uint32_t vendor[] = {0x025642, 1, 1};
	uint64_t guid = c->node->guid + fabric_first_port(c->node);
	uint32_t on;

	switch (m->type) {
	case DISCONNECT: client_end(s, c); return true;
	case GET_PORT:
		memcpy(m->data, &port_of(c)->info.lid, 2);
		m->data[2] = port_of(c)->info.state;
		return true;
	case GET_VENDOR:
		memset(m->data, 0, sizeof(m->data));
		memcpy(m->data, vendor, sizeof(vendor));
		return true;
	case GET_GID:
		put_be64(m->data, port_of(c)->info.gid_prefix);
		put_be64(m->data + 8, guid);
		return true;
	case GET_GUID: put_be64(m->data, guid); return true;
	case GET_NODEINFO: attribute_get(s, c, SMP_NODE_INFO, 0, m->data); return true;
	case GET_PORTINFO: attribute_get(s, c, SMP_PORT_INFO, m->data[0], m->data); return true;
	case SET_ISSM:
		memcpy(&on, m->data, sizeof(on));
		sm_set(s, c, on);
		return true;
	case GET_PKEYS: attribute_get(s, c, SMP_PKEY_TABLE, 0, m->data); return true;
	default: return false;
	}
}

static void control_serve(struct server *s)
{
	struct sockaddr_un from;
	socklen_t len = sizeof(from);
	struct control m;
	ssize_t n = recvfrom(s->control, &m, sizeof(m), MSG_DONTWAIT, (struct sockaddr *)&from, &len);
	bool ok = false;

	if (n != sizeof(m) || m.magic != CONTROL_MAGIC)
		return;
	if (m.type == CONNECT)
		ok = client_begin(s, &m);
	else if (m.client < CLIENTS_MAX && s->clients[m.client].fd >= 0)
		ok = client_answer(s, &s->clients[m.client], &m);
	if (!ok)
		m.type = ERROR;
	sendto(s->control, &m, sizeof(m), MSG_DONTWAIT, (struct sockaddr *)&from, len);
}

/* ---- MADs ---- */

static void word_swap(uint8_t *message, size_t a, size_t b)
{
	uint8_t kept[4];

	memcpy(kept, message + a, 4);
	memcpy(message + a, message + b, 4);
	memcpy(message + b, kept, 4);
}

/*
 * A client says that it is a manager, and so does ibping -S, to be asked at all; but not which classes it takes. opensm
 * does not survive a request of a class that it has not registered.
 */
static bool takes_request(const struct client *c, const uint8_t *mad)
{
	uint8_t class = mad[1];

	return c->is_sm && c->manages == (class == SMP_CLASS_LID || class == SMP_CLASS_DIRECTED || class == CLASS_SA);
}

/* The client at that node that requests go to, or the one that a response names in the highest bits of its transaction
 * id. */
static struct client *receiver_of(struct server *s, const struct fabric_mad *m)
{
	bool response = m->bytes[3] & METHOD_RESPONSE;
	unsigned named = get_be16(m->bytes + 8);

	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		struct client *c = &s->clients[i];

		if (c->fd >= 0 && c->node == &s->fabric.nodes[m->node] &&
		    (response ? i + 1 == named : takes_request(c, m->bytes)))
			return c;
	}
	return NULL;
}

/* What a faulty link loses, the sender's kernel, or a response's requester, sends again after its timeout; here there
 * is no time. */
static enum fabric_end mad_carry(struct server *s, struct fabric_mad *m)
{
	enum fabric_end end = FABRIC_LOST;

	for (int tries = s->fault_count ? TRIES : 1; tries && end == FABRIC_LOST; tries--)
		end = fabric_carry(&s->fabric, m);
	return end;
}

/* A message: DLID, SLID (16 bits in network order, in a word), destination and source QP, status, 4 and 8 bytes, MAD.
 */
/* False: none is waiting. */
static bool mad_serve(struct server *s, struct client *c)
{
	enum { DLID = 0, SLID = 4, DQP = 8, SQP = 12, STATUS = 16 };
	uint8_t message[MESSAGE_BYTES];
	struct fabric_mad m = {.node = (uint16_t)(c->node - s->fabric.nodes), .slid = port_of(c)->info.lid};
	struct client *to = c;

	if (recv(c->fd, message, sizeof(message), MSG_DONTWAIT) != sizeof(message))
		return false;
	m.dlid = get_be16(message + DLID);
	m.sqp = get_be32(message + SQP);
	m.dqp = get_be32(message + DQP);
	memcpy(m.bytes, message + MAD_AT, MAD_LEN);
	c->manages |= fabric_is_request(m.bytes) && (m.bytes[1] == SMP_CLASS_LID || m.bytes[1] == SMP_CLASS_DIRECTED);
	if (!(m.bytes[3] & METHOD_RESPONSE))
		put_be16(m.bytes + 8, (uint16_t)(c - s->clients + 1));
	memset(message + SLID, 0, 4);
	put_be16(message + SLID, m.slid);
	switch (mad_carry(s, &m)) {
	case FABRIC_ANSWERED:
		word_swap(message, DLID, SLID);
		word_swap(message, DQP, SQP);
		put_be16(m.bytes + 8, 0);
		break;
	case FABRIC_DELIVERED:
		if (s->save && m.bytes[3] & METHOD_RESPONSE && get_be16(m.bytes + 8) == FABRIC_SAVE_TID) {
			fabric_save_answer(s->save, m.bytes);
			return true;
		}
		to = receiver_of(s, &m);
		if (m.bytes[3] & METHOD_RESPONSE)
			put_be16(m.bytes + 8, 0);
		break;
	case FABRIC_LOST: to = NULL;
	}
	if (!to) {
		if (!fabric_is_request(message + MAD_AT))
			return true;
		/* The client's library waits for it by this alone. */
		put_be32(message + STATUS, TIMED_OUT);
		memcpy(m.bytes, message + MAD_AT, MAD_LEN);
		to = c;
	}
	memcpy(message + MAD_AT, m.bytes, MAD_LEN);
	send(to->fd, message, sizeof(message), MSG_DONTWAIT);
	return true;
}

/* To the manager at its node, a MAD that no program sent. */
static void manager_send(struct server *s, const struct fabric_mad *m)
{
	struct client *to = receiver_of(s, m);
	uint8_t message[MESSAGE_BYTES] = {0};

	put_be16(message, m->dlid);
	put_be16(message + 4, m->slid);
	put_be32(message + 8, m->dqp);
	put_be32(message + 12, m->dqp);
	put_be64(message + MAD_AT - 8, MAD_LEN);
	memcpy(message + MAD_AT, m->bytes, MAD_LEN);
	if (to)
		send(to->fd, message, sizeof(message), MSG_DONTWAIT);
}

/* Queries of our own, as if a program at the manager's node had sent them. */
static void save_turn(struct server *s)
{
	struct fabric_mad m;

	while (fabric_save_turn(s->save, &m))
		manager_send(s, &m);
}

static void traps_send(struct server *s)
{
	struct fabric_mad m;

	while (fabric_trap_next(&s->fabric, &m))
		manager_send(s, &m);
}

/* ---- the tool ---- */

static int topology_load(struct server *s, const char *path)
{
	char *text = malloc(TEXT_MAX), why[256];
	FILE *f = fopen(path, "re");
	size_t n;
	int rc = 0;

	if (!text || !f) {
		rc = complain("fabric: %s: %s", path, strerror(errno));
	} else {
		n = fread(text, 1, TEXT_MAX, f);
		if (n == TEXT_MAX || ferror(f))
			rc = complain("fabric: %s: %s", path, ferror(f) ? strerror(errno) : "longer than 1 MiB");
		else if (fabric_read(&s->fabric, text, n, why, sizeof(why)))
			rc = complain("fabric: %s: %s", path, why);
	}
	if (f)
		fclose(f);
	free(text);
	return rc;
}

static int faults_set(struct server *s)
{
	char why[256];

	for (int i = 0; i < s->fault_count; i++) {
		if (fabric_fault_set(&s->fabric, s->faults[i], why, sizeof(why)))
			return complain("fabric: --fault %s", why);
	}
	return 0;
}

static int first_choose(struct server *s, const char *name)
{
	s->first = name ? fabric_find(&s->fabric, name) : NULL;
	for (uint16_t i = 0; !name && i < s->fabric.count && !s->first; i++) {
		if (s->fabric.nodes[i].type == NODE_CA && fabric_first_port(&s->fabric.nodes[i]))
			s->first = &s->fabric.nodes[i];
	}
	if (s->first && s->first->type == NODE_CA && fabric_first_port(s->first))
		return 0;
	return complain("fabric: there is no adapter %s%s%swith a link", name ? "\"" : "", name ? name : "",
			name ? "\" " : "");
}

/* The command's process, or -1. Its signals are those of a program, not the server's blocked ones. */
static pid_t command_start(const struct server *s, char **argv, const sigset_t *old)
{
	pid_t child = fork();

	if (child)
		return child;
	sigprocmask(SIG_SETMASK, old, NULL);
	setenv("IBSIM_SOCKNAME", s->base, 1);
	setenv("SIM_HOST", s->first->name, 0);
	setenv("LD_PRELOAD", UMAD2SIM, 1);
	execvp(argv[0], argv);
	complain("cannot run '%s': %s", argv[0], strerror(errno));
	_exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

static int command_status(const struct server *s, int status)
{
	if (s->save)
		return complain(
			"fabric: nothing is saved: the command ended before all links were active and all pairs known");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Until a signal ends it: the command's end, or an interrupt. */
static int serve(struct server *s, int signals, pid_t child)
{
	bool saved = false;

	for (;;) {
		struct pollfd p[CLIENTS_MAX + 2] = {{.fd = s->control, .events = POLLIN},
						    {.fd = signals, .events = POLLIN}};
		struct signalfd_siginfo info;
		int status;

		for (int i = 0; i < CLIENTS_MAX; i++)
			p[i + 2] = (struct pollfd){.fd = s->clients[i].fd, .events = POLLIN};
		if (s->save && !saved)
			save_turn(s);
		if (poll(p, CLIENTS_MAX + 2, s->save && !saved ? FABRIC_SAVE_TURN_MS : -1) < 0 && errno != EINTR)
			return complain("fabric: poll: %s", strerror(errno));
		if (s->save && !saved && fabric_save_is_whole(s->save)) {
			saved = true;
			kill(child, SIGTERM);
		}
		if (p[1].revents && read(signals, &info, sizeof(info)) == sizeof(info)) {
			if (info.ssi_signo != SIGCHLD) {
				if (child > 0)
					kill(child, (int)info.ssi_signo);
				else
					return EXIT_SUCCESS;
			} else if (child > 0 && waitpid(child, &status, WNOHANG) == child) {
				return saved ? fabric_save_write(s->save) : command_status(s, status);
			}
		}
		for (int i = 0; i < CLIENTS_MAX; i++) {
			/* Several at a time: a manager has some on the way, and each wake-up costs more than a MAD. */
			for (int k = 0; k < MADS_A_TURN && p[i + 2].fd >= 0 && p[i + 2].revents; k++) {
				if (!mad_serve(s, &s->clients[i]))
					break;
			}
		}
		traps_send(s);
		if (p[0].revents)
			control_serve(s);
	}
}

static int run(struct server *s, char **command)
{
	sigset_t set, old;
	pid_t child = 0;
	int signals;

	s->control = socket_make(s, "ctl", -1);
	if (s->control < 0)
		return complain("fabric: cannot serve \"%s\": %s", s->base, strerror(-s->control));
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0)
		return complain("fabric: signalfd: %s", strerror(errno));
	if (command[0] && access(UMAD2SIM, R_OK))
		return complain("fabric: there is no " UMAD2SIM ", which brings programs here: install libumad2sim0");
	if (command[0]) {
		child = command_start(s, command, &old);
		if (child < 0)
			return complain("fabric: fork: %s", strerror(errno));
	}
	return serve(s, signals, child);
}

int cmd_fabric(int argc, char **argv)
{
	static const struct option options[] = {{"node", required_argument, NULL, 'n'},
						{"save", required_argument, NULL, 's'},
						{"fault", required_argument, NULL, 'f'},
						{"help", no_argument, NULL, 'h'},
						{NULL, 0, NULL, 0}};
	static struct server s;
	char base[64];
	const char *node = NULL, *save = NULL, *name = getenv("IBSIM_SOCKNAME");
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "+n:s:f:h", options, NULL)) != -1) {
		switch (opt) {
		case 'n': node = optarg; break;
		case 's': save = optarg; break;
		case 'f':
			if (s.fault_count == FAULTS_MAX)
				return complain("fabric: --fault: at most %d", FAULTS_MAX);
			s.faults[s.fault_count++] = optarg;
			break;
		case 'h': fputs(usage, stdout); return EXIT_SUCCESS;
		default: return usage_error("fabric");
		}
	}
	if (optind == argc) {
		complain("fabric: the topology is missing");
		return usage_error("fabric");
	}
	if (save && optind + 1 == argc) {
		complain("fabric: --save needs a command: a subnet manager");
		return usage_error("fabric");
	}
	for (int i = 0; i < CLIENTS_MAX; i++)
		s.clients[i].fd = -1;
	/* With a command nobody else needs to know the name. */
	snprintf(base, sizeof(base), "verbena%ld", (long)getpid());
	s.base = name && name[0] ? name : optind + 1 < argc ? base : "sim";
	rc = topology_load(&s, argv[optind]);
	if (!rc)
		rc = faults_set(&s);
	if (!rc)
		rc = first_choose(&s, node);
	if (!rc && save) {
		s.save = fabric_save_new(&s.fabric, save);
		rc = s.save ? 0 : EXIT_OURS;
	}
	if (!rc)
		rc = run(&s, argv + optind + 1 + (optind + 1 < argc && !strcmp(argv[optind + 1], "--")));
	fabric_save_free(s.save);
	fabric_free(&s.fabric);
	return rc;
}
