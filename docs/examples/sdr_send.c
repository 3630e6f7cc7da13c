/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sdr_send ADDRESS FILE COMMAND...: sends a file to sdr_receive, which COMMAND starts on the other host:
 *
 *     verbena run ./sdr_send 192.0.2.1 data ssh peer verbena run ./sdr_receive 192.0.2.2 copy
 *
 * The two agree by the command's standard input and output, and repair what is lost in a way of their own: when a part of the
 * file has left, the receiver answers with its bitmap, and chunks that it misses are sent again, until it has them all.
 */
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <verbena/sdr.h>

enum { CHUNK = 1 << 16, PART = 1 << 23, BITMAP = PART / CHUNK / 8 };

struct sender {
	FILE *from, *to; /* the receiver */
	struct verbena_sdr_context *ctx;
	struct verbena_sdr_qp *qp;
	struct verbena_sdr_send send;
};

static void check(int result, const char *what)
{
	if (result == VERBENA_SDR_ERROR)
		err(1, "%s", what);
}

static void tell(struct sender *s, const void *bytes, size_t count)
{
	if (fwrite(bytes, 1, count, s->to) != count || fflush(s->to))
		errx(1, "the receiver has gone");
}

static void hear(struct sender *s, void *bytes, size_t count)
{
	if (fread(bytes, 1, count, s->from) != count)
		errx(1, "the receiver has gone");
}

static pid_t start(struct sender *s, char **command)
{
	int to[2], from[2];
	pid_t pid;

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC) || (pid = fork()) < 0)
		err(1, "%s", command[0]);
	if (!pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execvp(command[0], command);
		err(1, "%s", command[0]);
	}
	close(to[0]);
	close(from[1]);
	s->to = fdopen(to[1], "w");
	s->from = fdopen(from[0], "r");
	return pid;
}

/* Both ends have all attributes but the direction and the rate alike. */
static void join(struct sender *s, const char *address)
{
	struct verbena_sdr_context_attr ctx;
	struct verbena_sdr_qp_attr attr;
	unsigned char info[4096];
	size_t size;

	verbena_sdr_context_attr_init(&ctx);
	ctx.address = address;
	s->ctx = verbena_sdr_context_create(NULL, &ctx);
	if (!s->ctx)
		err(1, "no device");
	verbena_sdr_qp_attr_init(&attr);
	attr.recv_enable = false;
	attr.rate_limit_mbps = 1000;
	s->qp = verbena_sdr_qp_create(s->ctx, &attr);
	if (!s->qp || verbena_sdr_qp_info_size_get(s->qp, &size) || size > sizeof(info))
		err(1, "no queue pair");
	check(verbena_sdr_qp_info_get(s->qp, info, size), "description");
	tell(s, info, size);
	hear(s, info, size);
	check(verbena_sdr_qp_connect(s->qp, info, size), "connect");
}

static bool started(struct sender *s)
{
	int r = verbena_sdr_send_stream_start(s->qp, NULL, &s->send);

	check(r, "start");
	return r == VERBENA_SDR_SUCCESS;
}

static bool has_left(struct sender *s)
{
	uint64_t bytes;

	check(verbena_sdr_send_queued_get(&s->send, &bytes), "queued");
	return !bytes;
}

static bool done(struct sender *s)
{
	bool is;

	check(verbena_sdr_send_poll(&s->send, &is), "poll");
	return is;
}

/* It asks for an event, then looks, then waits, so nothing that happens in between is missed. */
static void wait_until(struct sender *s, bool (*ready)(struct sender *))
{
	struct pollfd p = {.events = POLLIN};
	int armed;

	check(verbena_sdr_event_fd_get(s->ctx, &p.fd), "event");
	while (armed = verbena_sdr_event_arm(s->ctx), check(armed, "event"), !ready(s)) {
		if (armed == VERBENA_SDR_SUCCESS)
			poll(&p, 1, 100);
	}
}

static void send_part(struct sender *s, const char *part, size_t length, uint32_t lkey)
{
	unsigned char arrived[BITMAP] = {0};
	bool missing;

	wait_until(s, started);
	for (;;) {
		missing = false;
		for (uint32_t c = 0; (size_t)c * CHUNK < length; c++) {
			size_t at = (size_t)c * CHUNK, bytes = length - at < CHUNK ? length - at : CHUNK;
			struct verbena_sdr_block b = {part + at, bytes, lkey, c};

			if (arrived[c / 8] >> c % 8 & 1)
				continue;
			check(verbena_sdr_send_stream_continue(&s->send, &b), "send");
			missing = true;
		}
		if (!missing)
			break;
		wait_until(s, has_left);
		tell(s, "", 1);
		hear(s, arrived, sizeof(arrived));
	}
	check(verbena_sdr_send_stream_end(&s->send), "end");
	wait_until(s, done);
}

int main(int argc, char **argv)
{
	struct sender s = {0};
	struct verbena_sdr_mr *mr;
	uint64_t length;
	struct stat st;
	char *data;
	pid_t pid;
	uint32_t lkey;
	int fd, status;

	if (argc < 4)
		errx(2, "usage: sdr_send ADDRESS FILE COMMAND...");
	fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || !st.st_size)
		err(1, "%s", argv[2]);
	data = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		err(1, "%s", argv[2]);
	signal(SIGPIPE, SIG_IGN);
	pid = start(&s, argv + 3);
	join(&s, argv[1]);
	length = (uint64_t)st.st_size;
	tell(&s, &length, sizeof(length));
	mr = verbena_sdr_mr_reg(s.ctx, data, length, 0);
	if (!mr)
		err(1, "memory");
	check(verbena_sdr_mr_lkey_get(mr, &lkey), "key");
	for (uint64_t at = 0; at < length; at += PART)
		send_part(&s, data + at, length - at < PART ? length - at : PART, lkey);
	fclose(s.to);
	check(verbena_sdr_qp_destroy(s.qp), "destroy");
	verbena_sdr_mr_dereg(mr);
	verbena_sdr_context_destroy(s.ctx);
	return waitpid(pid, &status, 0) != pid || status;
}
