/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket's index is the slot: destination QPN bits 23..17, or bits 31..25 of a communication id; else one that is
 * given. */
#include "group/group_steer.h"

#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>

#include "base/byteorder.h"
#include "group/group.h"

enum {
	QPN_AT = 4, /* a word of which the highest byte is not the QPN's */
	ATTRIBUTE_AT = 36,
	REQUEST_ID_AT = 44,
	REMOTE_COMM_ID_AT = 48,
	HEADERS_LEN = 52,
	GSI = 1,
	QPN_SHIFT = GROUP_SLOT_SHIFT,
	COMM_ID_SHIFT = 25,
	ATTRIBUTE_MRA = 0x11, /* from here to DREP each names a communication id */
	ATTRIBUTE_DREP = 0x16,
	ATTRIBUTE_SIDR_REP = 0x18
};

int steer_attach(int fd, unsigned requests)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, QPN_AT),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GSI, 2, 0),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, QPN_SHIFT),
		BPF_STMT(BPF_RET | BPF_A, 0),
		/* QPN 1 */
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ATTRIBUTE_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ATTRIBUTE_SIDR_REP, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, ATTRIBUTE_MRA, 0, 7),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, ATTRIBUTE_DREP, 6, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, REMOTE_COMM_ID_AT),
		BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, REQUEST_ID_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, COMM_ID_SHIFT),
		BPF_STMT(BPF_RET | BPF_A, 0),
		/* It names none. */
		BPF_STMT(BPF_RET | BPF_K, requests),
	};
	struct sock_fprog prog;

	/* Its padding too: the kernel is given every byte. */
	memset(&prog, 0, sizeof(prog));
	prog.len = sizeof(code) / sizeof(code[0]);
	prog.filter = code;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog, sizeof(prog)) < 0 ? -errno : 0;
}

unsigned group_slot_of_mad(const struct pkt *p)
{
	unsigned attribute = p->len < HEADERS_LEN ? 0 : get_be16(p->data + ATTRIBUTE_AT);
	uint32_t id;

	if (attribute == ATTRIBUTE_SIDR_REP)
		id = get_be32(p->data + REQUEST_ID_AT);
	else if (attribute >= ATTRIBUTE_MRA && attribute <= ATTRIBUTE_DREP)
		id = get_be32(p->data + REMOTE_COMM_ID_AT);
	else
		return GROUP_ANY_SLOT;
	return id ? id >> COMM_ID_SHIFT : GROUP_ANY_SLOT;
}
