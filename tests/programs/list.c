/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the names of the devices, one a line; built in ways in which programs are. */
#include <infiniband/verbs.h>
#include <stdio.h>

#ifdef WITH_OPTIONS
/* As programs choose options of AddressSanitizer. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=1";
}
#endif

int main(void)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	for (int i = 0; i < count; i++)
		puts(ibv_get_device_name(list[i]));
	printf("%d devices\n", count);
	if (list)
		ibv_free_device_list(list);
	return 0;
}
