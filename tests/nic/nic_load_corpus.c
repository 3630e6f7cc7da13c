/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the corpus of nic_load_fuzz, images in the middle of traffic of each kind, and where all is done:
 *
 *     nic_load_corpus tests/nic/corpus/nic_load_fuzz
 */
#include <stdio.h>
#include <stdlib.h>

#include "nic/traffic.h"

enum { CRC_BYTES = 4, STEP_NS = 3000 };

static void save(const char *dir, int kind, const char *when, struct duo *d)
{
	struct nic_image image;
	char path[4096];
	uint8_t end[2];
	FILE *out;

	DUO_CHECK(d, !nic_save(d->host[DUO_A].nic, d->now_ns, &image));
	end[0] = (uint8_t)image.owner_count;
	end[1] = (uint8_t)kind;
	snprintf(path, sizeof(path), "%s/%s_%s", dir, traffics[kind].name, when);
	out = fopen(path, "wb");
	if (!out || fwrite(image.bytes, 1, image.size - CRC_BYTES, out) != image.size - CRC_BYTES ||
	    fwrite(end, 1, sizeof(end), out) != sizeof(end) || fclose(out)) {
		perror(path);
		exit(1);
	}
	nic_image_free(&image);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	for (int i = 0; i < TRAFFICS; i++) {
		struct duo *d = traffic_start(&traffics[i], 3);

		save(argv[1], i, "posted", d);
		duo_run_for(d, STEP_NS);
		save(argv[1], i, "flying", d);
		duo_idle(d);
		save(argv[1], i, "done", d);
		duo_destroy(d);
	}
	return 0;
}
