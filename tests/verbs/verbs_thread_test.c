/* SPDX-License-Identifier: BSD-2-Clause */
/* Several threads of one program in the same objects, and a forked child. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

enum { POSTERS = 4, EACH = 2000 };

static struct pair shared;
static atomic_uint completions, creations;
static atomic_bool stop;

static void *write_many(void *arg)
{
	for (uint64_t i = 0; i < EACH; i++) {
		struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_RDMA_WRITE}, *bad;

		while (ibv_post_send(shared.side[A].qp, &wr, &bad) == ENOMEM)
			sched_yield();
	}
	return NULL;
}

static void *poll_many(void *arg)
{
	struct ibv_wc wc[8];

	while (!stop) {
		int n = ibv_poll_cq(shared.side[A].cq, 8, wc);

		if (n < 0)
			break;
		for (int i = 0; i < n; i++)
			if (wc[i].status != IBV_WC_SUCCESS)
				stop = true;
		completions += (unsigned int)n;
		if (completions >= POSTERS * EACH)
			stop = true;
	}
	return NULL;
}

/* QPs that share the pollers' CQ come and go meanwhile. */
static void *create_many(void *arg)
{
	while (!stop) {
		struct ibv_qp_init_attr init = {.send_cq = shared.side[A].cq,
						.recv_cq = shared.side[A].cq,
						.cap = {4, 4, 1, 1, 0},
						.qp_type = IBV_QPT_RC};
		struct ibv_qp *qp = ibv_create_qp(shared.pd, &init);

		if (!qp || ibv_destroy_qp(qp))
			break;
		creations++;
	}
	return NULL;
}

TEST(threads_may_post_poll_and_create_at_once)
{
	pthread_t thread[POSTERS + 3];

	pair_make(&shared, (struct wishes){.all_signaled = true});
	for (int i = 0; i < POSTERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, write_many, NULL), 0);
	for (int i = POSTERS; i < POSTERS + 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, poll_many, NULL), 0);
	assert_int_equal(pthread_create(&thread[POSTERS + 2], NULL, create_many, NULL), 0);
	for (int i = 0; i < POSTERS + 3; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(completions, POSTERS * EACH);
	assert_true(creations > 0);
	pair_destroy(&shared);
}

static struct ibv_cq_ex *held;
static struct ibv_qp *doomed;

static void *destroy_doomed(void *arg)
{
	atomic_bool *started = arg;

	*started = true;
	return (void *)(intptr_t)ibv_destroy_qp(doomed);
}

/* A thread that reads a completion may call any verb, even if other threads wait for the CQ. */
TEST(a_held_cq_does_not_lock_the_device)
{
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE}, *bad;
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_ah_attr av;
	atomic_bool started = false;
	pthread_t thread;
	struct ibv_ah *ah;
	void *rc;

	pair_make(&shared, (struct wishes){.extended = true, .all_signaled = true});
	held = shared.side[A].cq_ex;
	init.send_cq = init.recv_cq = shared.side[A].cq;
	doomed = ibv_create_qp(shared.pd, &init);
	assert_non_null(doomed);
	assert_int_equal(ibv_post_send(shared.side[A].qp, &wr, &bad), 0);
	while (ibv_start_poll(held, &attr) == ENOENT)
		;
	assert_int_equal(pthread_create(&thread, NULL, destroy_doomed, &started), 0);
	while (!started)
		sched_yield();
	usleep(20000);
	av = pair_ah_attr(&shared);
	ah = ibv_create_ah(shared.pd, &av);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	ibv_end_poll(held);
	pthread_join(thread, &rc);
	assert_int_equal((intptr_t)rc, 0);
	pair_destroy(&shared);
}

static atomic_int holding;

/* Holds a completion until the test says stop. */
static void *hold_cq(void *arg)
{
	struct ibv_poll_cq_attr attr = {0};

	while (ibv_start_poll(held, &attr) == ENOENT)
		;
	holding = 1;
	while (holding == 1)
		sched_yield();
	ibv_end_poll(held);
	return NULL;
}

static int child_status(pid_t pid)
{
	int status = 0;

	for (int i = 0; i < 2000 && waitpid(pid, &status, WNOHANG) == 0; i++)
		usleep(10000);
	if (waitpid(pid, NULL, WNOHANG) == 0) {
		kill(pid, SIGKILL);
		fail_msg("the child waits");
	}
	return status;
}

/* The thread that would release the CQ is not in the child: the call fails and does not wait. */
TEST(a_child_does_not_wait_for_its_parents_threads)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE}, *bad;
	pthread_t thread;
	int status;
	pid_t pid;

	pair_make(&shared, (struct wishes){.extended = true, .all_signaled = true});
	held = shared.side[A].cq_ex;
	assert_int_equal(ibv_post_send(shared.side[A].qp, &wr, &bad), 0);
	assert_int_equal(pthread_create(&thread, NULL, hold_cq, NULL), 0);
	while (!holding)
		sched_yield();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		bool told = ibv_destroy_qp(shared.side[A].qp) == EIO && ibv_resize_cq(shared.side[A].cq, 100) == EIO &&
			    ibv_destroy_cq(shared.side[A].cq) == EIO &&
			    state_set(shared.side[A].qp, IBV_QPS_RESET) == EIO;

		_exit(told && !ibv_destroy_qp(shared.side[B].qp) ? 0 : 1);
	}
	status = child_status(pid);
	holding = 2;
	pthread_join(thread, NULL);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	pair_destroy(&shared);
}

static struct ibv_qp_ex *started;

/* A thread that describes a chain of requests and reads a CQ, and so has the locks of both. */
static void *hold_cq_and_sq(void *arg)
{
	ibv_wr_start(started);
	hold_cq(arg);
	ibv_wr_abort(started);
	return NULL;
}

static bool lost_calls_fail(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE}, *bad = NULL;
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_wc wc;

	if (ibv_poll_cq(shared.side[A].cq, 1, &wc) != -EIO || ibv_start_poll(held, &attr) != EIO ||
	    ibv_post_send(shared.side[A].qp, &wr, &bad) != EIO || bad != &wr)
		return false;
	/* More than once: nothing is taken, so nothing is given back. */
	for (int i = 0; i < 2; i++) {
		ibv_wr_start(started);
		ibv_wr_rdma_write(started, 1, 0);
		if (ibv_wr_complete(started) != EIO)
			return false;
		ibv_wr_start(started);
		ibv_wr_abort(started);
	}
	return true;
}

TEST(a_child_does_not_spin_where_its_parents_threads_were)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE}, *bad;
	pthread_t thread;
	int status;
	pid_t pid;

	pair_make(&shared, (struct wishes){.extended = true, .all_signaled = true});
	held = shared.side[A].cq_ex;
	started = ibv_qp_to_qp_ex(shared.side[A].qp);
	holding = 0;
	assert_int_equal(ibv_post_send(shared.side[A].qp, &wr, &bad), 0);
	assert_int_equal(pthread_create(&thread, NULL, hold_cq_and_sq, NULL), 0);
	while (!holding)
		sched_yield();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(lost_calls_fail() ? 0 : 1);
	status = child_status(pid);
	holding = 2;
	pthread_join(thread, NULL);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	pair_destroy(&shared);
}

TEST(a_child_can_open_the_device_for_itself)
{
	struct ibv_context *ctx = device_open();
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		struct pair p;
		struct ibv_send_wr wr = {.wr_id = 3, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;

		alarm(20);
		pair_make(&p, (struct wishes){0});
		recv_post(&p, B, 1, 0, 0);
		if (ibv_post_send(p.side[A].qp, &wr, &bad))
			_exit(2);
		if (wc_await(p.side[A].cq).wr_id != 3)
			_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(ibv_close_device(ctx), 0);

	/* The parent's own device works on. */
	pair_make(&shared, (struct wishes){0});
	recv_post(&shared, B, 1, 0, 0);
	{
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;

		assert_int_equal(ibv_post_send(shared.side[A].qp, &wr, &bad), 0);
	}
	assert_int_equal(wc_await(shared.side[B].cq).wr_id, 1);
	pair_destroy(&shared);
}

/* The device's thread in this process; 0: there is none. */
static pid_t device_thread(void)
{
	DIR *tasks = opendir("/proc/self/task");
	pid_t found = 0;

	for (struct dirent *d; tasks && !found && (d = readdir(tasks));) {
		char path[320], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", d->d_name);
		f = fopen(path, "r");
		if (f && fgets(name, sizeof(name), f) && !strcmp(name, "verbena\n"))
			found = (pid_t)atoi(d->d_name);
		if (f)
			fclose(f);
	}
	closedir(tasks);
	return found;
}

/* Programs pin the threads that spin, and one of those opens the device. */
TEST(a_pinned_thread_does_not_pin_the_devices)
{
	cpu_set_t before, one, its;
	int status;
	pid_t pid;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		CPU_ZERO(&one);
		for (int i = 0; !CPU_COUNT(&one); i++)
			if (CPU_ISSET(i, &before))
				CPU_SET(i, &one);
		if (sched_setaffinity(0, sizeof(one), &one) || !device_open())
			_exit(2);
		/* It takes its processors when it begins to run. */
		for (int i = 0; i < 2000; i++) {
			pid_t tid = device_thread();

			if (tid && !sched_getaffinity(tid, sizeof(its), &its) && CPU_EQUAL(&its, &before))
				_exit(0);
			usleep(10000);
		}
		_exit(1);
	}
	status = child_status(pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}
