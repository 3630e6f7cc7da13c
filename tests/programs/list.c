/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the names of the devices, one a line; built in ways in which programs are. */
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	for (int i = 0; i < count; i++)
		puts(ibv_get_device_name(list[i]));
	printf("%d devices\n", count);
	return 0;
}
