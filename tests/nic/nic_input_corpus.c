/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the corpus of nic_input_fuzz from real flows:
 *
 *     nic_input_corpus tests/nic/corpus/nic_input_fuzz
 *
 * Each file has one flow's packets, as records whose PSNs and keys are corrected in the replay,
 * behind the actions that make the other side expect them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duo/duo.h"

enum { FILE_BYTES_MAX = 12000, MTU = 256, REGION = 4096 };

/* As nic_input_fuzz.c has them. */
enum { TO_B = 1 << 0, KIND_SHIFT = 1, FIX_PSN = 1 << 3, FIX_KEY = 1 << 4, FIX_LEN = 1 << 5 };
enum { A_IS_LOST = 1, B_IS_LOST = 2, IPV6 = 4 };

struct file {
	uint8_t bytes[FILE_BYTES_MAX];
	size_t n;
	int kind;
	int direction; /* packets of this side are kept, or DUO_ANY */
	uint32_t psn[DUO_SIDES];
};

static void put(struct file *f, uint8_t b)
{
	if (f->n < sizeof(f->bytes))
		f->bytes[f->n++] = b;
}

static void record(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct file *f = ctx;
	uint32_t offset = 0;

	if ((f->direction != DUO_ANY && f->direction != (int)p->from) || f->n + 4 + p->len > sizeof(f->bytes))
		return;
	/* A request is due when it comes; a response belongs to a PSN of its own. */
	if (p->info->flags & F_RESPONSE)
		offset = p->bth.psn - f->psn[!p->from];
	put(f, (uint8_t)(FIX_PSN | FIX_KEY | FIX_LEN | f->kind << KIND_SHIFT | (p->from == DUO_A ? TO_B : 0)));
	put(f, (uint8_t)offset);
	put(f, (uint8_t)p->len);
	put(f, (uint8_t)(p->len >> 8));
	for (uint32_t i = 0; i < p->len; i++)
		put(f, data[i]);
}

struct flow_row {
	const char *name;
	enum qp_type type;
	enum wr_opcode op;
	uint32_t len;
	bool responses; /* keep B's answers instead of A's requests */
};

static const struct flow_row rows[] = {
	{"rc_send_only", QPT_RC, WR_SEND, 10, false},       {"rc_send_long", QPT_RC, WR_SEND, 800, false},
	{"rc_send_imm", QPT_RC, WR_SEND_IMM, 300, false},   {"rc_send_inv", QPT_RC, WR_SEND_INV, 300, false},
	{"rc_write_only", QPT_RC, WR_WRITE, 10, false},     {"rc_write_long", QPT_RC, WR_WRITE, 800, false},
	{"rc_write_imm", QPT_RC, WR_WRITE_IMM, 300, false}, {"rc_read", QPT_RC, WR_READ, 800, false},
	{"rc_fetch_add", QPT_RC, WR_FETCH_ADD, 8, false},   {"rc_cmp_swap", QPT_RC, WR_CMP_SWAP, 8, false},
	{"rc_flush", QPT_RC, WR_FLUSH, 0, false},           {"rc_atomic_write", QPT_RC, WR_ATOMIC_WRITE, 8, false},
	{"rc_flush_answer", QPT_RC, WR_FLUSH, 0, true},     {"rc_ack", QPT_RC, WR_WRITE, 399, true},
	{"rc_read_response", QPT_RC, WR_READ, 406, true},   {"rc_atomic_ack", QPT_RC, WR_FETCH_ADD, 8, true},
	{"uc_send_long", QPT_UC, WR_SEND, 800, false},      {"uc_send_imm", QPT_UC, WR_SEND_IMM, 10, false},
	{"uc_write_long", QPT_UC, WR_WRITE, 800, false},    {"uc_write_imm", QPT_UC, WR_WRITE_IMM, 300, false},
	{"ud_send", QPT_UD, WR_SEND, 100, false},           {"ud_send_imm", QPT_UD, WR_SEND_IMM, 0, false},
};

/* The action that posts the same at A: post_one() of the fuzz target makes these lengths of them. */
static void post_same(struct file *f, enum wr_opcode op)
{
	static const uint8_t argument[WR_OPCODE_COUNT] = {
		[WR_SEND] = 56, [WR_WRITE] = 57, [WR_READ] = 58, [WR_FETCH_ADD] = 59, [WR_FLUSH] = 0xe0};

	put(f, 0xf0);
	put(f, argument[op]);
}

/* An ACK packet from B for the PSN `offset` after A's first. */
static void answer(struct file *f, uint8_t offset, uint8_t syndrome)
{
	uint8_t p[BTH_LEN + AETH_LEN + ICRC_LEN] = {0};

	bth_encode(p, &(struct bth){.opcode = OP_RC_ACK});
	aeth_encode(p + BTH_LEN, &(struct aeth){.syndrome = syndrome, .msn = 1});
	put(f, FIX_PSN);
	put(f, offset);
	put(f, sizeof(p));
	put(f, 0);
	for (size_t i = 0; i < sizeof(p); i++)
		put(f, p[i]);
}

/* Possible answers, in several orders, while A waits for two WRITEs, a READ and an atomic. */
static void make_answers(struct file *f, uint8_t first, uint8_t second)
{
	memset(f, 0, sizeof(*f));
	put(f, A_IS_LOST | B_IS_LOST);
	post_same(f, WR_WRITE);
	post_same(f, WR_WRITE);
	post_same(f, WR_READ);
	post_same(f, WR_FETCH_ADD);
	answer(f, 0, AETH_ACK | AETH_CREDIT_INVALID);
	answer(f, 2, first);
	put(f, 0xf2); /* some time */
	put(f, 200);
	answer(f, 3, second);
	answer(f, 6, AETH_ACK | AETH_CREDIT_INVALID); /* behind the READ: its responses were lost */
	answer(f, 2, first);
}

static void make(const struct flow_row *row, struct file *f)
{
	struct duo *d = duo_create(1, NULL);
	struct duo_options o = duo_options();
	struct flow flow;
	uint32_t ip_mtu;

	o.type = row->type;
	o.mtu = MTU;
	struct duo_pair p = duo_connect(d, &o);
	struct duo_buf *a = duo_buf(p.a->host, REGION, MR_LOCAL_WRITE);
	struct duo_buf *b = duo_buf(p.b->host, REGION, MR_LOCAL_WRITE | MR_REMOTE_ACCESS);
	struct duo_wr w = duo_write_wr(1, a, 0, row->len, b, 64);
	struct ah_attr av = duo_av(p.a->host, p.b->host, DUO_GID_IPV4);

	memset(f, 0, sizeof(*f));
	f->kind = row->type == QPT_RC ? 0 : row->type == QPT_UC ? 1 : 2;
	f->direction = row->responses ? DUO_B : DUO_A;
	memcpy(f->psn, o.psn, sizeof(f->psn));
	put(f, row->responses ? A_IS_LOST | B_IS_LOST : 0);
	if (row->responses)
		post_same(f, row->op);
	d->tap = record;
	d->tap_ctx = f;
	if (row->op == WR_FLUSH)
		w = duo_flush_wr(1, b, 64, 100);
	w.opcode = row->op;
	w.imm_or_key = b->mr->key;
	DUO_CHECK(d, !nic_resolve(p.a->host->nic, &av, &flow, &ip_mtu));
	if (row->type == QPT_UD) {
		w.flow = &flow;
		w.dqpn = p.b->qpn;
		w.qkey = o.qkey;
	}
	duo_recv(p.b, 1, b, 1024, 2000);
	DUO_CHECK(d, duo_post(p.a, &w));
	duo_idle(d);
	duo_expect(d, &p.a->sent, 1, WC_SUCCESS);
	duo_destroy(d);
}

static void save(const char *dir, const char *name, const struct file *f)
{
	char path[4096];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	out = fopen(path, "wb");
	if (!out || fwrite(f->bytes, 1, f->n, out) != f->n || fclose(out)) {
		perror(path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	static const uint8_t syndromes[] = {0x1f, 0x00, 0x21, 0x3f, 0x40, 0x60, 0x61, 0x62, 0x63, 0x64, 0x7f};
	static struct file f, all;

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	put(&all, IPV6);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		make(&rows[i], &f);
		save(argv[1], rows[i].name, &f);
		for (size_t k = 1; k < f.n && !rows[i].responses; k++)
			put(&all, f.bytes[k]);
	}
	save(argv[1], "everything_ipv6", &all);
	for (size_t i = 0; i < sizeof(syndromes); i++) {
		char name[64];

		make_answers(&f, syndromes[i], syndromes[(i + 1) % sizeof(syndromes)]);
		snprintf(name, sizeof(name), "rc_answer_%02x", syndromes[i]);
		save(argv[1], name, &f);
	}
	return 0;
}
