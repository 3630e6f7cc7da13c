/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that writes any commands. The input is a row of commands: number, length, and so many bytes. Pointers in
 * them are made to point into one page or nowhere; the other bytes are used as they are. The machine receives its own
 * messages, so it is both ends of each connection. By the input's length there are one device or two, which have
 * an address each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/ucma.h"
#include "support/fuzz_input.h"

enum { HEADER_LEN = 8, COMMAND_MAX = 320, OTHER_FD = 5, DEVICES = 2 };

static struct ucma_end channels[2][DEVICES];
static size_t device_count, turn;
static _Alignas(8) uint8_t page[65536];

static void *get(void *ctx, size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	return p ? memset(p, 0, bytes) : NULL;
}

static void put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

static const struct cm_addr here = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}, .family = CM_IPV4};

static int route(void *ctx, struct cm_addr *src, struct cm_addr *dst)
{
	uint16_t port = src->port;
	uint8_t last = (uint8_t)(1 + dst->ip[15] % device_count);

	*src = here;
	src->port = port;
	memcpy(dst->ip, here.ip, sizeof(dst->ip));
	src->ip[15] = dst->ip[15] = last;
	return 0;
}

static int channel_of_fd(void *ctx, int fd, struct cm_channel *out[UCMA_ENDS_MAX])
{
	if (fd != OTHER_FD)
		return fd < 0 ? -ENOENT : -EINVAL;
	for (size_t i = 0; i < device_count; i++)
		out[i] = channels[1][i].channel;
	return 0;
}

/* Replaces the pointers in a command: the input's would point to memory that does not exist. */
static void lead_pointers(uint32_t number, uint8_t *command)
{
	static const struct {
		uint8_t number, at;
	} pointers[] = {{0, 8}, {1, 0}, {5, 0}, {11, 0}, {12, 0}, {14, 0}, {16, 0}, {17, 0}, {18, 0}, {19, 0}, {22, 0}};
	uint64_t at;

	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		if (pointers[i].number != number)
			continue;
		memcpy(&at, command + pointers[i].at, sizeof(at));
		at = at & 1 ? 0 : (uint64_t)(uintptr_t)page;
		memcpy(command + pointers[i].at, &at, sizeof(at));
	}
	if (number == 14) {
		uint32_t len;

		memcpy(&len, command + 20, sizeof(len));
		len %= sizeof(page);
		memcpy(command + 20, &len, sizeof(len));
	}
}

static void settle(uint64_t now_ns)
{
	uint8_t mad[MAD_LEN];
	struct flow flow;

	for (size_t d = 0; d < device_count; d++) {
		for (int i = 0; i < 1000 && cm_output(channels[0][d].cm, &flow, mad); i++)
			cm_input(channels[0][(flow.dst[15] - 1u) % device_count].cm, &flow, mad, now_ns);
		cm_expire(channels[0][d].cm, now_ns);
	}
}

static int host_join(void *ctx, const struct cm_id *id, const uint8_t gid[16], uint32_t ifindex)
{
	return gid[15] & 1 ? -ENOMEM : 0;
}

static void host_leave(void *ctx)
{
}

static void device_make(uint32_t d)
{
	struct cm_config config = {.alloc = {.get = get, .put = put},
				   .slot = d,
				   .ca_guid = d,
				   .gid_count = 1,
				   .bound = device_count > 1,
				   .cm_count = (uint32_t)device_count,
				   .cm_index = d,
				   .port_first = 32768,
				   .port_last = 60999};
	struct cm *cm;

	memcpy(config.gids[0].raw, here.ip, sizeof(here.ip));
	config.gids[0].raw[15] = (uint8_t)(1 + d);
	config.gids[0].ip_mtu = 1500;
	cm = cm_create(&config);
	for (int i = 0; i < 2; i++) {
		channels[i][d] = (struct ucma_end){.cm = cm, .device_index = d};
		if (!cm || cm_channel_create(cm, NULL, &channels[i][d].channel))
			abort();
	}
}

static void play(const uint8_t *data, size_t size)
{
	const struct ucma_host host = {
		.route = route, .channel = channel_of_fd, .join = host_join, .leave = host_leave, .turn = &turn};
	uint64_t now_ns = 0;

	turn = 0;
	for (uint32_t d = 0; d < device_count; d++)
		device_make(d);
	while (size >= 4) {
		uint8_t buf[HEADER_LEN + COMMAND_MAX] = {0};
		uint32_t number = data[0] & 0x1f;
		uint16_t in = (uint16_t)((data[1] << 1) % COMMAND_MAX), out = (uint16_t)(data[2] << 2);
		const struct ucma_end *ends = channels[data[0] >> 5 & 1];
		size_t given = size - 3 < in ? size - 3 : in;

		now_ns += (uint64_t)(data[0] >> 6) * 1000000000;
		memcpy(buf, &number, sizeof(number));
		memcpy(buf + 4, &in, sizeof(in));
		memcpy(buf + 6, &out, sizeof(out));
		memcpy(buf + HEADER_LEN, data + 3, given);
		lead_pointers(number, buf + HEADER_LEN);
		if (ucma_command(&host, ends, device_count, buf, HEADER_LEN + in, now_ns) > (ssize_t)(HEADER_LEN + in))
			abort();
		settle(now_ns);
		data += 3 + given;
		size -= 3 + given;
	}
	for (size_t d = 0; d < device_count; d++)
		cm_destroy(channels[0][d].cm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	device_count = 1 + size % DEVICES;
	play(data, size);
	return 0;
}
