/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes commands to the device of rdma_cm that no library would: of any number and length, with ids of others, with
 * pointers to nothing, from several threads on the same descriptors, and from a child of fork. It ends with status 0 if it
 * ends.
 *
 *	storm SEED COMMANDS
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { THREADS = 4, CHANNELS = 3, HEADER = 8, COMMAND_MAX = 320, IDS = 40, GET_EVENT = 12 };

static int channels[CHANNELS];
static unsigned commands;
static uint8_t page[65536], *hole;

static uint32_t draw(uint64_t *s)
{
	*s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*s >> 33);
}

static uint64_t pointer(uint64_t *s)
{
	switch (draw(s) % 8) {
	case 0: return 0;
	case 1: return (uintptr_t)hole;
	case 2: return (uintptr_t)hole - 4; /* the last bytes that are there, and then none */
	case 3: return 8;
	default: return (uintptr_t)page;
	}
}

/* The bytes of a command: small numbers, some of them pointers, and an address now and then. */
static void fill(uint8_t *bytes, uint64_t *s)
{
	static const uint8_t loopback[8] = {2, 0, 0x27, 0x10, 127, 0, 0, 1};
	static const uint16_t places[] = {0, 4, 8, 12, 16, 20, 24, 28, 36, 56, 60, 272, 280};

	memset(bytes, 0, COMMAND_MAX);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		uint32_t number = draw(s) % IDS;

		memcpy(bytes + places[i], &number, sizeof(number));
	}
	for (size_t at = 0; at <= 24; at += 8) {
		uint64_t to = pointer(s);

		if (draw(s) % 2)
			memcpy(bytes + at, &to, sizeof(to));
	}
	if (draw(s) % 3 == 0)
		memcpy(bytes + (draw(s) % 2 ? 8 : 28), loopback, sizeof(loopback));
	if (draw(s) % 2)
		bytes[271] = bytes[279] = 1; /* conn_param.valid */
	if (draw(s) % 4 == 0)
		bytes[draw(s) % COMMAND_MAX] = (uint8_t)draw(s);
}

static void one(uint64_t *s)
{
	static const uint16_t spaces[] = {0x0106, 0x0111, 0x013f, 2};
	uint8_t w[HEADER + COMMAND_MAX];
	uint32_t number = draw(s) % 25;
	uint16_t in = (uint16_t)(draw(s) % 4 ? COMMAND_MAX : draw(s) % COMMAND_MAX),
		 out = (uint16_t)(draw(s) % 4 ? 400 : draw(s) % 400);
	size_t len = draw(s) % 8 ? sizeof(w) : draw(s) % sizeof(w);

	fill(w + HEADER, s);
	if (number == 0)
		memcpy(w + HEADER + 16, &spaces[draw(s) % 4], 2);
	memcpy(w, &number, 4);
	memcpy(w + 4, &in, 2);
	memcpy(w + 6, &out, 2);
	if (draw(s) % 64 == 0)
		(void)!write(channels[draw(s) % CHANNELS], hole - 8, 100);
	(void)!write(channels[draw(s) % CHANNELS], w, len);
}

static void *storm(void *seed)
{
	uint64_t s = (uintptr_t)seed;

	for (unsigned i = 0; i < commands; i++)
		one(&s);
	return NULL;
}

/* A child of fork has the descriptors, and nothing behind them. */
static int in_child(void)
{
	uint8_t get[HEADER + 8] = {GET_EVENT, 0, 0, 0, 8, 0, 0xff, 1};
	pid_t child = fork();
	int status = 1;

	if (!child) {
		uint64_t s = 5;

		errno = 0;
		if (write(channels[0], get, sizeof(get)) != -1 || errno != EACCES)
			_exit(3);
		for (unsigned i = 0; i < commands / 10; i++)
			one(&s);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return status;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	uintptr_t seed = argc > 1 ? (uintptr_t)strtoul(argv[1], NULL, 10) : 1;

	commands = argc > 2 ? (unsigned)atoi(argv[2]) : 5000;
	hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(hole += 4096, 4096);
	for (int i = 0; i < CHANNELS; i++) {
		channels[i] = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC | O_NONBLOCK);
		if (channels[i] < 0) {
			perror("open");
			return 2;
		}
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, storm, (void *)(seed * 1000 + i));
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (in_child()) {
		printf("the child failed\n");
		return 3;
	}
	printf("survived\n");
	return 0;
}
