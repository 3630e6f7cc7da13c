/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exported verbs of features that the nic does not have. Those that are reached through the context (flows, counters,
 * work queues) are null pointers there, for which the header's inline functions return EOPNOTSUPP.
 */
#include "verbs/explain.h"
#include "verbs/objects.h"
#include "verbs/private.h"

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	return fail(EOPNOTSUPP); /* the host's own network stack resolves addresses */
}

/*
 * Verbs of later releases, which this release's header does not declare. Prototypes do not matter
 * to functions that read no argument.
 */
#define LATER_INT(name)                  \
	EXPORT int name(void);           \
	int name(void)                   \
	{                                \
		return fail(EOPNOTSUPP); \
	}

#define LATER_MINUS_ONE(name)                      \
	EXPORT int name(void);                     \
	int name(void)                             \
	{                                          \
		return fail_minus_one(EOPNOTSUPP); \
	}

#define LATER_NULL(name)                      \
	EXPORT void *name(void);              \
	void *name(void)                      \
	{                                     \
		return fail_null(EOPNOTSUPP); \
	}

LATER_MINUS_ONE(ibv_dm_export_dmabuf_fd)
LATER_NULL(ibv_alloc_buf)
LATER_INT(ibv_free_buf)
LATER_NULL(ibv_reg_buf_mr)
LATER_MINUS_ONE(ibv_export_buf_dmabuf_fd)
LATER_INT(_ibv_query_comp_cntr_caps)
LATER_NULL(ibv_create_comp_cntr)
LATER_INT(ibv_destroy_comp_cntr)
LATER_INT(ibv_set_comp_cntr)
LATER_INT(ibv_set_err_comp_cntr)
LATER_INT(ibv_inc_comp_cntr)
LATER_INT(ibv_inc_err_comp_cntr)
LATER_INT(ibv_read_comp_cntr)
LATER_INT(ibv_read_err_comp_cntr)
LATER_INT(ibv_qp_attach_comp_cntr)

/* Drivers of before 2017 registered here; nothing links to it any more. */
EXPORT void register_driver(void);
void register_driver(void)
{
}
__asm__(".symver register_driver, ibv_register_driver@IBVERBS_1.1");
