/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary program of librdmacm that binds to port 0, tells its port, and listens later. Between the two it is another
 * program, too, which wants that very port of TCP, as the kernel might give it to any.
 *
 *	ports ADDRESS TIMES
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cm_end.h"

/* A TCP socket at that port, or -1. */
static int tcp_at(struct in_addr addr, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = addr, .sin_port = port};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		fail("socket");
	if (!bind(fd, (struct sockaddr *)&in, sizeof(in)))
		return fd;
	if (errno != EADDRINUSE)
		fail("bind");
	close(fd);
	return -1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int refused = 0, taken = 0, times = argc == 3 ? atoi(argv[2]) : 0;

	if (!times || !channel || inet_pton(AF_INET, argv[1], &in.sin_addr) != 1)
		fail("start");
	for (int i = 0; i < times; i++) {
		struct rdma_cm_id *id;
		int fd;

		if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) || rdma_bind_addr(id, (struct sockaddr *)&in))
			fail("bind_addr");
		fd = tcp_at(in.sin_addr, rdma_get_src_port(id));
		taken += fd >= 0;
		refused += rdma_listen(id, 1) != 0;
		if (fd >= 0)
			close(fd);
		if (rdma_destroy_id(id))
			fail("destroy");
	}
	printf("%d ports were taken, %d listeners refused\n", taken, refused);
	return 0;
}
