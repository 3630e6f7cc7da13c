/* SPDX-License-Identifier: BSD-2-Clause */
/* cm_test LIBRARY: how the library that replaces librdmacm refuses, and the names that it exports. */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void *lib;

static void *name_at(const char *name, const char *version)
{
	void *f = dlvsym(lib, name, version);

	if (!f)
		fail_msg("no %s@%s", name, version);
	return f;
}

/* UCX and MPI libraries call it at every start, and print nothing if this is the answer. */
static void there_is_no_device_to_begin_with(void **state)
{
	void *(*channel)(void) = name_at("rdma_create_event_channel", "RDMACM_1.0");
	int (*id)(void *, void **, void *, int) = name_at("rdma_create_id", "RDMACM_1.0");
	void **(*devices)(int *) = name_at("rdma_get_devices", "RDMACM_1.0");
	int (*rsocket)(int, int, int) = name_at("rsocket", "RDMACM_1.0");
	int count = 7;

	errno = 0;
	assert_null(channel());
	assert_int_equal(errno, ENODEV);
	errno = 0;
	assert_int_equal(id(NULL, NULL, NULL, 0x106), -1);
	assert_int_equal(errno, ENODEV);
	errno = 0;
	assert_null(devices(&count));
	assert_int_equal(errno, ENODEV);
	assert_int_equal(count, 0);
	errno = 0;
	assert_int_equal(rsocket(2, 1, 0), -1);
	assert_int_equal(errno, ENODEV);
}

static void an_address_is_refused_by_errno(void **state)
{
	int (*getaddrinfo)(const char *, const char *, void *, void **) =
		name_at("rdma_getaddrinfo", "RDMACM_1.0");
	void *result;

	errno = 0;
	assert_int_equal(getaddrinfo("127.0.0.1", "7471", NULL, &result), EAI_SYSTEM);
	assert_int_equal(errno, ENODEV);
}

static void names_of_later_releases_are_there(void **state)
{
	static const char *const names[][2] = {
		{"rdma_query_addrinfo", "RDMACM_1.4"}, {"rdma_resolve_addrinfo", "RDMACM_1.4"},
		{"rdma_write_cm_event", "RDMACM_1.4"}, {"repoll_create", "RDMACM_1.5"},
		{"repoll_ctl", "RDMACM_1.5"},          {"repoll_wait", "RDMACM_1.5"},
		{"rdma_set_local_ece", "RDMACM_1.3"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int (*f)(void) = name_at(names[i][0], names[i][1]);

		errno = 0;
		assert_int_equal(f(), -1);
		assert_int_equal(errno, EOPNOTSUPP);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_is_no_device_to_begin_with),
		cmocka_unit_test(an_address_is_refused_by_errno),
		cmocka_unit_test(names_of_later_releases_are_there),
	};

	lib = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!lib)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
