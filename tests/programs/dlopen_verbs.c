/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that links no verbs library and looks for all it needs when it runs, as NCCL does: symbols by version,
 * with those it can do without, the types of the GIDs in sysfs, and an ECE that may be refused. It has pinned its
 * thread before that, and the device's thread may run wherever the process might when it began.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *library;

static void *symbol(const char *name, const char *version)
{
	void *p = dlvsym(library, name, version);

	if (!p) {
		fprintf(stderr, "no %s@%s\n", name, version);
		exit(1);
	}
	return p;
}

#define FIND(name, version) __typeof__(&name) name##_found = symbol(#name, version)

static int gid_type_told(const char *device, int index)
{
	char path[256], type[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/types/%d", device, index);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (!fgets(type, sizeof(type), f))
		type[0] = '\0';
	fclose(f);
	return !strcmp(type, "RoCE v2\n");
}

/* Whether one of this process's threads, not this one, may run on all those processors. */
static int another_has(const cpu_set_t *cpus)
{
	DIR *tasks = opendir("/proc/self/task");
	int found = 0;
	cpu_set_t its;

	for (struct dirent *d; tasks && (d = readdir(tasks));) {
		int tid = atoi(d->d_name);

		if (tid && tid != getpid() && !sched_getaffinity(tid, sizeof(its), &its) && CPU_EQUAL(&its, cpus))
			found = 1;
	}
	closedir(tasks);
	return found;
}

static int runs_anywhere_in_time(const cpu_set_t *cpus)
{
	int tries = 2000;

	while (!another_has(cpus) && --tries)
		usleep(10000);
	return tries > 0;
}

/* To the one it runs on, as programs that spin do; what it might run on before. */
static cpu_set_t pin(void)
{
	cpu_set_t all, one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_getaffinity(0, sizeof(all), &all);
	sched_setaffinity(0, sizeof(one), &one);
	return all;
}

static int must(int ok, const char *what)
{
	if (!ok)
		fprintf(stderr, "%s\n", what);
	return !ok;
}

int main(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_device **devices;
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	struct ibv_device_attr device;
	struct ibv_ece ece = {.vendor_id = 0x15b3};
	struct ibv_qp *qp;
	union ibv_gid gid;
	cpu_set_t cpus = pin();
	int n, wrong = 0, err;

	library = dlopen("libibverbs.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	FIND(ibv_get_device_list, "IBVERBS_1.1");
	FIND(ibv_get_device_name, "IBVERBS_1.1");
	FIND(ibv_open_device, "IBVERBS_1.1");
	FIND(ibv_close_device, "IBVERBS_1.1");
	FIND(ibv_query_device, "IBVERBS_1.1");
	FIND(ibv_query_gid, "IBVERBS_1.1");
	FIND(ibv_alloc_pd, "IBVERBS_1.1");
	FIND(ibv_create_cq, "IBVERBS_1.1");
	FIND(ibv_create_qp, "IBVERBS_1.1");
	FIND(ibv_event_type_str, "IBVERBS_1.1");
	FIND(ibv_query_ece, "IBVERBS_1.10");
	FIND(ibv_set_ece, "IBVERBS_1.10");
	FIND(ibv_reg_dmabuf_mr, "IBVERBS_1.12");
	int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *) =
		symbol("ibv_query_port", "IBVERBS_1.1");
	symbol("ibv_fork_init", "IBVERBS_1.1");
	symbol("ibv_reg_mr_iova2", "IBVERBS_1.8");
	symbol("ibv_get_async_event", "IBVERBS_1.1");

	devices = ibv_get_device_list_found(&n);
	if (!devices || n < 1)
		return must(0, "no device");
	ctx = ibv_open_device_found(devices[0]);
	if (!ctx)
		return must(0, "the device does not open");
	wrong |= must(runs_anywhere_in_time(&cpus), "the device's thread is pinned");
	wrong |= must(!ibv_query_device_found(ctx, &device) && device.max_qp > 0, "ibv_query_device");
	wrong |= must(!query_port(ctx, 1, &port) && port.gid_tbl_len > 0, "ibv_query_port");
	wrong |= must(!ibv_query_gid_found(ctx, 1, 0, &gid), "ibv_query_gid");
	wrong |= must(gid_type_told(ibv_get_device_name_found(devices[0]), 0), "sysfs has no type for GID 0");
	init.send_cq = init.recv_cq = ibv_create_cq_found(ctx, 4, NULL, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd_found(ctx);
	qp = pd && init.send_cq ? ibv_create_qp_found(pd, &init) : NULL;
	if (!qp)
		return must(0, "no queue pair");
	/* Each of the three is asked to learn whether the device has it; EOPNOTSUPP is the answer that is understood.
	 */
	err = ibv_query_ece_found(qp, &ece);
	wrong |= must(err == EOPNOTSUPP, "ibv_query_ece");
	wrong |= must(ibv_set_ece_found(qp, &ece) == EOPNOTSUPP, "ibv_set_ece");
	errno = 0;
	wrong |= must(!ibv_reg_dmabuf_mr_found(pd, 0, 0, 0, -1, 0) && errno == EOPNOTSUPP, "ibv_reg_dmabuf_mr");
	wrong |= must(ibv_event_type_str_found(IBV_EVENT_QP_FATAL) != NULL, "ibv_event_type_str");
	if (!wrong)
		puts("all found");
	return wrong;
}
