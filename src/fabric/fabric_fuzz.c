/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any MADs in a small fabric, 260 bytes each: from which adapter, two bytes of DLID, one unused, and the MAD. Nothing
 * breaks, and what is answered is a response to what was asked.
 */
#include <string.h>

#include "fabric/fabric.h"
#include "support/fuzz_input.h"

enum { RECORD = 4 + MAD_LEN };

static const char text[] =
	"Switch 3 \"s\"\n[1] \"a\"[1]\n[2] \"t\"[1]\nSwitch 2 \"t\"\n[2] \"b\"[1]\nHca 1 \"a\"\nHca 1 \"b\"\n";

static void carry(struct fabric *f, const uint8_t *record)
{
	struct fabric_mad m = {.node = record[0] & 1 ? 2 : 3, .dlid = (uint16_t)(record[1] << 8 | record[2])};
	struct mad asked, answered;
	struct fabric_mad trap;
	enum fabric_end end;

	memcpy(m.bytes, record + 4, MAD_LEN);
	mad_decode(&asked, m.bytes);
	end = fabric_carry(f, &m);
	mad_decode(&answered, m.bytes);
	must(end == FABRIC_LOST || (answered.tid == asked.tid && answered.attribute == asked.attribute));
	must(end != FABRIC_ANSWERED || answered.method == MAD_METHOD_GET_RESP);
	must(end != FABRIC_DELIVERED || (m.node < f->count && f->nodes[m.node].type == NODE_CA) ||
	     f->nodes[m.node].is_sm || asked.method & 0x80);
	while (fabric_trap_next(f, &trap))
		must(f->nodes[trap.node].is_sm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fabric f;
	char why[128];

	must(!fabric_read(&f, text, sizeof(text) - 1, why, sizeof(why)));
	f.nodes[3].is_sm = true;
	must(!fabric_fault_set(&f, "s[2]=bit/7", why, sizeof(why)) &&
	     !fabric_fault_set(&f, "t[1]=length/5", why, sizeof(why)));
	for (; size >= RECORD; data += RECORD, size -= RECORD)
		carry(&f, data);
	fabric_free(&f);
	return 0;
}
