/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public header of libibverbs, its functions visible outside the shared object, and the
 * exported functions that no installed header declares. Every file here that defines an exported
 * function includes this one, so the compiler checks it against its declaration.
 */
#pragma once

#pragma GCC visibility push(default)

#include <infiniband/verbs.h>
#include <infiniband/sa.h>

/* Symbols with the names of macros or inline functions of the header. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

struct ib_uverbs_ah_attr;
struct ib_uverbs_qp_attr;
struct ib_user_path_rec;

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

#pragma GCC visibility pop

/* For functions that are exported under several versions or have no declaration above. */
#define EXPORT __attribute__((visibility("default")))
