/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flood of forged requests: REQs of connection management, each of another adapter, communication
 * id and queue pair, from addresses of this host to a listener that will never hear of their sender
 * again. Prints how many it sent.
 *
 *	req_flood RATE SECONDS SOURCE DESTINATION PORT [ADDRESSES]
 *
 * IPv4; PORT is the listener's, of the port space TCP. So many addresses take turns, of which
 * SOURCE is the first (1).
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/byteorder.h"
#include "base/prng.h"
#include "io/clock.h"
#include "wire/bth.h"
#include "wire/cm_msg.h"
#include "wire/cm_req.h"
#include "wire/deth.h"
#include "wire/icrc.h"
#include "wire/mad.h"

enum {
	UDP_PORT = 4791,
	IP_LEN = 36,
	SPACE_TCP = 0x0106,
	PACKET_LEN = BTH_LEN + DETH_LEN + MAD_LEN + ICRC_LEN,
	TICK_US = 1000,
	ADDRESSES_MAX = 4096
};

static struct flow flow = {.src = {[10] = 0xff, [11] = 0xff}, .dst = {[10] = 0xff, [11] = 0xff}, .dport = UDP_PORT};
static uint16_t service_port;

static double now_s(void)
{
	return (double)clock_now_ns() / 1e9;
}

static void forge(uint8_t *mad, struct prng *r)
{
	struct cm_req req = {
		.local_comm_id = (uint32_t)prng_next(r) | 1,
		.service_id = (uint64_t)SPACE_TCP << 16 | service_port,
		.ca_guid = prng_next(r),
		.qpn = (uint32_t)(2 + prng_next(r) % 0xfffff0),
		.remote_cm_timeout = 20,
		.local_cm_timeout = 18,
		.retry_count = 7,
		.pkey = 0xffff,
		.mtu = 3,
		.rnr_retry_count = 7,
		.max_cm_retries = 15,
		.primary = {.local_lid = 0xffff, .remote_lid = 0xffff, .hop_limit = 64, .ack_timeout = 17}};
	struct mad h = {.base_version = MAD_BASE_VERSION,
			.mgmt_class = CM_CLASS,
			.class_version = CM_CLASS_VERSION,
			.method = MAD_METHOD_SEND,
			.tid = prng_next(r),
			.attribute = CM_REQ};

	memcpy(req.primary.local_gid, flow.src, 16);
	memcpy(req.primary.remote_gid, flow.dst, 16);
	req.private_data[1] = 0x40;
	memcpy(req.private_data + 16, flow.src + 12, 4);
	memcpy(req.private_data + 32, flow.dst + 12, 4);
	memset(mad, 0, MAD_LEN);
	mad_encode(mad, &h);
	cm_req_encode(mad + MAD_HEADER_LEN, &req);
}

static void send_one(int fd, struct prng *r)
{
	uint8_t bytes[PACKET_LEN] = {0};
	struct pkt p = {.data = bytes, .flow = &flow, .len = PACKET_LEN, .train = 1};

	bth_encode(bytes, &(struct bth){.opcode = 0x64, .pkey = 0xffff, .dqpn = 1});
	deth_encode(bytes + BTH_LEN, &(struct deth){.qkey = 0x80010000, .sqpn = 1});
	forge(bytes + BTH_LEN + DETH_LEN, r);
	icrc_seal(NULL, &p, 0);
	(void)!send(fd, bytes, sizeof(bytes), 0);
}

/* A socket for each address from `first` on; false: errno says why. */
static bool sources_open(struct sockaddr_in *from, int *fds, unsigned count, const struct sockaddr_in *to)
{
	struct rlimit limit = {0};
	socklen_t len = sizeof(*from);

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (unsigned i = 0; i < count; i++) {
		from[i] = from[0];
		from[i].sin_addr.s_addr = htonl(ntohl(from[0].sin_addr.s_addr) + i);
		from[i].sin_port = 0;
		fds[i] = socket(AF_INET, SOCK_DGRAM, 0);
		if (fds[i] < 0 || bind(fds[i], (struct sockaddr *)&from[i], len) ||
		    connect(fds[i], (const struct sockaddr *)to, sizeof(*to)) ||
		    getsockname(fds[i], (struct sockaddr *)&from[i], &len))
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct sockaddr_in from[ADDRESSES_MAX];
	static int fds[ADDRESSES_MAX];
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(UDP_PORT)};
	struct prng r;
	double begun, rate, seconds;
	unsigned long sent = 0, addresses = argc == 7 ? strtoul(argv[6], NULL, 10) : 1;

	if (argc < 6 || argc > 7 || !addresses || addresses > ADDRESSES_MAX)
		return 64;
	rate = atof(argv[1]);
	seconds = atof(argv[2]);
	service_port = (uint16_t)atoi(argv[5]);
	from[0].sin_family = AF_INET;
	if (inet_pton(AF_INET, argv[3], &from[0].sin_addr) != 1 || inet_pton(AF_INET, argv[4], &to.sin_addr) != 1 ||
	    !sources_open(from, fds, (unsigned)addresses, &to)) {
		perror("req_flood");
		return 1;
	}
	memcpy(flow.dst + 12, &to.sin_addr, 4);
	prng_init(&r, (uint64_t)getpid());
	begun = now_s();
	while (now_s() - begun < seconds) {
		while ((double)sent < (now_s() - begun) * rate) {
			const struct sockaddr_in *source = &from[sent % addresses];

			memcpy(flow.src + 12, &source->sin_addr, 4);
			flow.sport = ntohs(source->sin_port);
			send_one(fds[sent % addresses], &r);
			sent++;
		}
		usleep(TICK_US);
	}
	printf("%lu sent\n", sent);
	return 0;
}
