/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpma ADDRESS PORT [write]: a server that lends memory and a client that writes to it and flushes, by librpma.
 * The region's descriptor travels as private data, as in librpma's own examples.
 */
#include <librpma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 4096 };

static _Alignas(BYTES) char memory[BYTES];
static const char text[] = "persistent, more or less";

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", what, rpma_err_2str(err));
	exit(1);
}

static struct rpma_peer *peer(const char *address, enum rpma_util_ibv_context_type end)
{
	struct ibv_context *ctx;
	struct rpma_peer *peer;

	must(rpma_utils_get_ibv_context(address, end, &ctx), "no device");
	must(rpma_peer_new(ctx, &peer), "rpma_peer_new");
	return peer;
}

static void established(struct rpma_conn *conn)
{
	enum rpma_conn_event event;

	must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
	if (event != RPMA_CONN_ESTABLISHED) {
		fprintf(stderr, "not established: %s\n", rpma_utils_conn_event_2str(event));
		exit(1);
	}
}

static int serve(const char *address, const char *port)
{
	struct rpma_peer *p = peer(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_conn_private_data pdata;
	struct rpma_mr_local *mr;
	enum rpma_conn_event event;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_ep *ep;
	uint8_t descriptor[64];
	size_t size;

	must(rpma_mr_reg(p, memory, BYTES,
			 RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, &mr),
	     "rpma_mr_reg");
	must(rpma_mr_get_descriptor_size(mr, &size), "size");
	if (size > sizeof(descriptor))
		return 1;
	must(rpma_mr_get_descriptor(mr, descriptor), "descriptor");
	pdata = (struct rpma_conn_private_data){.ptr = descriptor, .len = (uint8_t)size};
	must(rpma_ep_listen(p, address, port, &ep), "rpma_ep_listen");
	must(rpma_ep_next_conn_req(ep, NULL, &req), "rpma_ep_next_conn_req");
	must(rpma_conn_req_connect(&req, &pdata, &conn), "rpma_conn_req_connect");
	established(conn);
	must(rpma_conn_next_event(conn, &event), "the end");
	puts(strcmp(memory, text) ? "something else was written" : "found what was written");
	rpma_conn_disconnect(conn);
	rpma_conn_delete(&conn);
	rpma_mr_dereg(&mr);
	rpma_ep_shutdown(&ep);
	rpma_peer_delete(&p);
	return strcmp(memory, text) != 0;
}

static void completed(struct rpma_conn *conn)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	must(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
	must(rpma_cq_wait(cq), "rpma_cq_wait");
	must(rpma_cq_get_wc(cq, 1, &wc, NULL), "rpma_cq_get_wc");
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
}

static int write_it(const char *address, const char *port)
{
	struct rpma_peer *p = peer(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	struct rpma_conn_private_data pdata;
	struct rpma_mr_remote *remote;
	struct rpma_mr_local *mr;
	enum rpma_conn_event event;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	strcpy(memory, text);
	must(rpma_mr_reg(p, memory, BYTES, RPMA_MR_USAGE_WRITE_SRC, &mr), "rpma_mr_reg");
	must(rpma_conn_req_new(p, address, port, NULL, &req), "rpma_conn_req_new");
	must(rpma_conn_req_connect(&req, NULL, &conn), "rpma_conn_req_connect");
	established(conn);
	must(rpma_conn_get_private_data(conn, &pdata), "private data");
	must(rpma_mr_remote_from_descriptor(pdata.ptr, pdata.len, &remote), "the peer's descriptor");
	must(rpma_write(conn, remote, 0, mr, 0, sizeof(text), RPMA_F_COMPLETION_ON_ERROR, NULL), "rpma_write");
	must(rpma_flush(conn, remote, 0, sizeof(text), RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL),
	     "rpma_flush");
	completed(conn);
	puts("written and flushed");
	must(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
	rpma_conn_next_event(conn, &event);
	rpma_mr_remote_delete(&remote);
	rpma_conn_delete(&conn);
	rpma_mr_dereg(&mr);
	rpma_peer_delete(&p);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	return argc > 3 ? write_it(argv[1], argv[2]) : serve(argv[1], argv[2]);
}
