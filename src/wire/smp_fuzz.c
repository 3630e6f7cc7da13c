/* SPDX-License-Identifier: BSD-2-Clause */
/* Any 256 bytes as an SMP: reserved bytes aside they come back, and so does what its attribute is read as. */
#include <string.h>

#include "support/fuzz_input.h"
#include "wire/smi.h"
#include "wire/smp.h"

/* What was written once is read as the same again. */
static void check_attributes(const uint8_t *data)
{
	uint8_t once[SMP_DATA_LEN], twice[SMP_DATA_LEN];
	struct node_info n;
	struct switch_info s;
	struct port_info p;

	node_info_decode(&n, data);
	node_info_encode(once, &n);
	node_info_decode(&n, once);
	node_info_encode(twice, &n);
	must(!memcmp(once, twice, sizeof(once)) && !memcmp(once, data, 40));
	switch_info_decode(&s, data);
	switch_info_encode(once, &s);
	switch_info_decode(&s, once);
	switch_info_encode(twice, &s);
	must(!memcmp(once, twice, sizeof(once)) && !memcmp(once, data, 17));
	port_info_decode(&p, data);
	port_info_encode(once, &p);
	port_info_decode(&p, once);
	port_info_encode(twice, &p);
	must(!memcmp(once, twice, sizeof(once)) && !memcmp(once, data, 34));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t in[MAD_LEN], out[MAD_LEN];
	struct smp s;

	if (size < MAD_LEN)
		return 0;
	memcpy(in, data, sizeof(in));
	memset(in + 18, 0, 2);
	memset(in + 36, 0, 28);
	smp_decode(&s, in);
	memset(out, 0xa5, sizeof(out));
	smp_encode(out, &s);
	must(!memcmp(in, out, sizeof(in)));
	check_attributes(s.data);
	return 0;
}
