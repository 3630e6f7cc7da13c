/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load_test LIBRARY: loading the library has no effect. Launchers and ldd-like probes load it and
 * never open a device; one program in use takes an errno left by a constructor for a failure of its
 * own.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int count(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static int handlers(void)
{
	struct sigaction act;
	int n = 0;

	for (int s = 1; s < NSIG; s++)
		if (!sigaction(s, NULL, &act) && act.sa_handler != SIG_DFL)
			n++;
	return n;
}

static int faults;

static void expect(int holds, const char *claim)
{
	printf("%s %s\n", holds ? "ok   " : "FAULT", claim);
	faults += !holds;
}

int main(int argc, char **argv)
{
	int threads = count("/proc/self/task"), files = count("/proc/self/fd"), n = -1, err;
	void **(*list_get)(int *);
	void (*list_free)(void **);
	int handled = handlers();
	void **list, *lib;

	errno = 0;
	lib = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	err = errno;
	if (!lib) {
		fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: load_test LIBRARY");
		return 1;
	}
	expect(err == 0, "loading leaves errno alone");
	*(void **)&list_get = dlvsym(lib, "ibv_get_device_list", "IBVERBS_1.1");
	*(void **)&list_free = dlvsym(lib, "ibv_free_device_list", "IBVERBS_1.1");
	expect(list_get && list_free, "dlvsym finds the device list");
	if (faults)
		return 1;
	list = list_get(&n);
	expect(list && n == 1 && list[0] && !list[1], "there is one device");
	list_free(list);
	expect(count("/proc/self/task") == threads, "no thread was started");
	expect(count("/proc/self/fd") == files, "no descriptor was opened");
	expect(handlers() == handled, "no signal handler was installed");
	expect(dlclose(lib) == 0 && dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD), "dlclose() does not take the code away");
	return faults ? 1 : 0;
}
