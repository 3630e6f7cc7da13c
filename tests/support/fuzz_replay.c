/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands in for libFuzzer where a fuzz target is run as a test: replays every file of the corpus
 * folders given as arguments, each also truncated and with bits flipped, then seeded random inputs.
 * VERBENA_FUZZ_SEED repeats a run.
 *
 *     TARGET [-mutations=N] [-random=N] FOLDER...     so many a file; so many inputs
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_BYTES_MAX = 16384 };

static uint64_t state;
static int mutations = 100, random_inputs = 2000;

static uint64_t next(void)
{
	state += 0x9e3779b97f4a7c15u;
	uint64_t z = state;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* The target sees an exact-size heap copy, so that an overread is caught by the sanitizer. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static int replay_file(const char *path)
{
	static uint8_t buf[INPUT_BYTES_MAX];
	FILE *f = fopen(path, "rb");

	if (!f)
		return 0;
	size_t n = fread(buf, 1, sizeof(buf), f);

	fclose(f);
	run(buf, n);
	for (int i = 0; i < mutations && n; i++) {
		static uint8_t m[INPUT_BYTES_MAX];
		size_t len = next() % 4 ? n : next() % (n + 1);

		memcpy(m, buf, n);
		for (uint64_t flips = next() % 4; flips; flips--)
			m[next() % n] ^= (uint8_t)(1u << next() % 8);
		run(m, len);
	}
	return 1;
}

int main(int argc, char **argv)
{
	const char *env = getenv("VERBENA_FUZZ_SEED");
	int files = 0;

	state = env ? strtoull(env, NULL, 0) : 1;
	printf("seed %llu\n", (unsigned long long)state);
	for (int i = 1; i < argc; i++) {
		DIR *d;
		struct dirent *e;

		if (sscanf(argv[i], "-mutations=%d", &mutations) == 1 ||
		    sscanf(argv[i], "-random=%d", &random_inputs) == 1)
			continue;
		d = opendir(argv[i]);
		while (d && (e = readdir(d))) {
			char path[4096];

			if (e->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			files += replay_file(path);
		}
		if (d)
			closedir(d);
	}
	for (int i = 0; i < random_inputs; i++) {
		uint8_t buf[512];
		size_t n = next() % sizeof(buf);

		for (size_t k = 0; k < n; k++)
			buf[k] = (uint8_t)next();
		run(buf, n);
	}
	printf("%d corpus files, %d random inputs\n", files, random_inputs);
	return 0;
}
