/* SPDX-License-Identifier: BSD-2-Clause */
/* sdr_receive ADDRESS FILE: writes what sdr_send sends, which it talks to by its standard input and output. */
#include <err.h>
#include <stdio.h>

#include <verbena/sdr.h>

enum { CHUNK = 1 << 16, PART = 1 << 23, BITMAP = PART / CHUNK / 8, PATIENCE_MS = 100 };

static void check(int result, const char *what)
{
	if (result != VERBENA_SDR_SUCCESS)
		err(1, "%s", what);
}

static void tell(const void *bytes, size_t count)
{
	if (fwrite(bytes, 1, count, stdout) != count || fflush(stdout))
		errx(1, "the sender has gone");
}

static void hear(void *bytes, size_t count)
{
	if (fread(bytes, 1, count, stdin) != count)
		errx(1, "the sender has gone");
}

static struct verbena_sdr_context *open_device(const char *address)
{
	struct verbena_sdr_context_attr attr;
	struct verbena_sdr_context *ctx;

	verbena_sdr_context_attr_init(&attr);
	attr.address = address;
	ctx = verbena_sdr_context_create(NULL, &attr);
	if (!ctx)
		err(1, "no device");
	return ctx;
}

static struct verbena_sdr_qp *join(struct verbena_sdr_context *ctx)
{
	struct verbena_sdr_qp_attr attr;
	struct verbena_sdr_qp *qp;
	unsigned char mine[4096], peers[4096];
	size_t size;

	verbena_sdr_qp_attr_init(&attr);
	attr.send_enable = false;
	qp = verbena_sdr_qp_create(ctx, &attr);
	if (!qp || verbena_sdr_qp_info_size_get(qp, &size) || size > sizeof(mine))
		err(1, "no queue pair");
	check(verbena_sdr_qp_info_get(qp, mine, size), "description");
	hear(peers, size);
	tell(mine, size);
	check(verbena_sdr_qp_connect(qp, peers, size), "connect");
	return qp;
}

/* Whether all chunks are there; *arrived has the bitmap. A chunk that does not come for a while is taken for lost. */
static bool look(const struct verbena_sdr_recv *recv, size_t length, unsigned char arrived[BITMAP])
{
	uint32_t chunks = (uint32_t)((length + CHUNK - 1) / CHUNK), c = 0;
	const uint8_t *bitmap;
	size_t bytes;

	while (c < chunks && verbena_sdr_recv_chunk_wait(recv, c, PATIENCE_MS) == VERBENA_SDR_SUCCESS)
		c++;
	check(verbena_sdr_recv_bitmap_get(recv, &bitmap, &bytes), "bitmap");
	for (uint32_t i = 0; i < chunks; i++)
		arrived[i / 8] |= (unsigned char)(verbena_sdr_chunk_arrived(bitmap, i) << i % 8);
	return c == chunks;
}

static void receive_part(struct verbena_sdr_qp *qp, char *part, size_t length, uint32_t lkey)
{
	struct verbena_sdr_recv_attr attr = {part, length, lkey};
	struct verbena_sdr_recv recv;
	bool whole = false;
	char left;

	check(verbena_sdr_recv_post(qp, &attr, &recv), "receive");
	while (!whole) {
		unsigned char arrived[BITMAP] = {0};

		hear(&left, 1);
		whole = look(&recv, length, arrived);
		tell(arrived, sizeof(arrived));
	}
	check(verbena_sdr_recv_complete(&recv), "complete");
}

int main(int argc, char **argv)
{
	static char part[PART];
	struct verbena_sdr_context *ctx;
	struct verbena_sdr_qp *qp;
	struct verbena_sdr_mr *mr;
	uint64_t left;
	uint32_t lkey;
	FILE *file;

	if (argc != 3)
		errx(2, "usage: sdr_receive ADDRESS FILE");
	file = fopen(argv[2], "w");
	if (!file)
		err(1, "%s", argv[2]);
	ctx = open_device(argv[1]);
	qp = join(ctx);
	hear(&left, sizeof(left));
	mr = verbena_sdr_mr_reg(ctx, part, sizeof(part), VERBENA_SDR_REMOTE_WRITE);
	if (!mr)
		err(1, "memory");
	check(verbena_sdr_mr_lkey_get(mr, &lkey), "key");
	while (left) {
		size_t length = left < PART ? (size_t)left : PART;

		receive_part(qp, part, length, lkey);
		if (fwrite(part, 1, length, file) != length)
			err(1, "%s", argv[2]);
		left -= length;
	}
	if (fclose(file))
		err(1, "%s", argv[2]);
	check(verbena_sdr_qp_destroy(qp), "destroy");
	verbena_sdr_mr_dereg(mr);
	return verbena_sdr_context_destroy(ctx);
}
