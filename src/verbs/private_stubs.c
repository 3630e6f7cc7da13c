/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that the providers' own libraries import: many programs link them and bind all names at
 * start, so every name must exist, though none is ever called for a device of ours. One body serves
 * all names of a kind; it takes no arguments and ignores those that a caller passes.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "verbs/private.h"

EXPORT int private_unsupported(void);
EXPORT int private_minus_one(void);
EXPORT void *private_null(void);
EXPORT void private_nothing(void);
EXPORT unsigned int private_zero(void);

int private_unsupported(void)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

int private_minus_one(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

void *private_null(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

void private_nothing(void)
{
}

unsigned int private_zero(void)
{
	return 0;
}

/* Read by providers as data. */
EXPORT bool private_disassociate_destroy;
IN_PRIVATE_25(private_disassociate_destroy, verbs_allow_disassociate_destroy);

/* clang-format off */
IN_PRIVATE_25(private_zero, __ioctl_final_num_attrs);
IN_PRIVATE_25(private_unsupported, execute_ioctl);
IN_PRIVATE_25(private_unsupported, ibv_cmd_advise_mr);
IN_PRIVATE_25(private_unsupported, ibv_cmd_alloc_dm);
IN_PRIVATE_25(private_unsupported, ibv_cmd_alloc_mw);
IN_PRIVATE_25(private_unsupported, ibv_cmd_alloc_pd);
IN_PRIVATE_25(private_unsupported, ibv_cmd_attach_mcast);
IN_PRIVATE_25(private_unsupported, ibv_cmd_close_xrcd);
IN_PRIVATE_25(private_unsupported, ibv_cmd_create_ah);
IN_PRIVATE_25(private_unsupported, ibv_cmd_create_counters);
IN_PRIVATE_25(private_unsupported, ibv_cmd_create_cq);
IN_PRIVATE_25(private_unsupported, ibv_cmd_create_cq_ex);
IN_PRIVATE_25(private_unsupported, ibv_cmd_create_flow);
IN_PRIVATE_25(private_unsupported, ibv_cmd_create_flow_action_esp);
IN_PRIVATE_25(private_unsupported, ibv_cmd_create_qp);
IN_PRIVATE_25(private_unsupported, ibv_cmd_create_qp_ex);
IN_PRIVATE_25(private_unsupported, ibv_cmd_create_qp_ex2);
IN_PRIVATE_25(private_unsupported, ibv_cmd_create_rwq_ind_table);
IN_PRIVATE_25(private_unsupported, ibv_cmd_create_srq);
IN_PRIVATE_25(private_unsupported, ibv_cmd_create_srq_ex);
IN_PRIVATE_25(private_unsupported, ibv_cmd_create_wq);
IN_PRIVATE_25(private_unsupported, ibv_cmd_dealloc_mw);
IN_PRIVATE_25(private_unsupported, ibv_cmd_dealloc_pd);
IN_PRIVATE_25(private_unsupported, ibv_cmd_dereg_mr);
IN_PRIVATE_25(private_unsupported, ibv_cmd_destroy_ah);
IN_PRIVATE_25(private_unsupported, ibv_cmd_destroy_counters);
IN_PRIVATE_25(private_unsupported, ibv_cmd_destroy_cq);
IN_PRIVATE_25(private_unsupported, ibv_cmd_destroy_flow);
IN_PRIVATE_25(private_unsupported, ibv_cmd_destroy_flow_action);
IN_PRIVATE_25(private_unsupported, ibv_cmd_destroy_qp);
IN_PRIVATE_25(private_unsupported, ibv_cmd_destroy_rwq_ind_table);
IN_PRIVATE_25(private_unsupported, ibv_cmd_destroy_srq);
IN_PRIVATE_25(private_unsupported, ibv_cmd_destroy_wq);
IN_PRIVATE_25(private_unsupported, ibv_cmd_detach_mcast);
IN_PRIVATE_25(private_unsupported, ibv_cmd_free_dm);
IN_PRIVATE_25(private_unsupported, ibv_cmd_get_context);
IN_PRIVATE_25(private_unsupported, ibv_cmd_modify_cq);
IN_PRIVATE_25(private_unsupported, ibv_cmd_modify_flow_action_esp);
IN_PRIVATE_25(private_unsupported, ibv_cmd_modify_qp);
IN_PRIVATE_25(private_unsupported, ibv_cmd_modify_qp_ex);
IN_PRIVATE_25(private_unsupported, ibv_cmd_modify_srq);
IN_PRIVATE_25(private_unsupported, ibv_cmd_modify_wq);
IN_PRIVATE_25(private_unsupported, ibv_cmd_open_qp);
IN_PRIVATE_25(private_unsupported, ibv_cmd_open_xrcd);
IN_PRIVATE_25(private_unsupported, ibv_cmd_poll_cq);
IN_PRIVATE_25(private_unsupported, ibv_cmd_post_recv);
IN_PRIVATE_25(private_unsupported, ibv_cmd_post_send);
IN_PRIVATE_25(private_unsupported, ibv_cmd_post_srq_recv);
IN_PRIVATE_25(private_unsupported, ibv_cmd_query_context);
IN_PRIVATE_25(private_unsupported, ibv_cmd_query_mr);
IN_PRIVATE_25(private_unsupported, ibv_cmd_query_port);
IN_PRIVATE_25(private_unsupported, ibv_cmd_query_qp);
IN_PRIVATE_25(private_unsupported, ibv_cmd_query_srq);
IN_PRIVATE_25(private_unsupported, ibv_cmd_read_counters);
IN_PRIVATE_25(private_unsupported, ibv_cmd_reg_dm_mr);
IN_PRIVATE_25(private_unsupported, ibv_cmd_reg_mr);
IN_PRIVATE_25(private_unsupported, ibv_cmd_req_notify_cq);
IN_PRIVATE_25(private_unsupported, ibv_cmd_rereg_mr);
IN_PRIVATE_25(private_unsupported, ibv_cmd_resize_cq);
IN_PRIVATE_25(private_minus_one, ibv_read_ibdev_sysfs_file);
IN_PRIVATE_25(private_null, _verbs_init_and_alloc_context);
IN_PRIVATE_25(private_null, verbs_open_device);
IN_PRIVATE_25(private_nothing, verbs_init_cq);
IN_PRIVATE_25(private_nothing, verbs_set_ops);
IN_PRIVATE_25(private_nothing, verbs_uninit_context);

/* Names that only some families have. */
IN_PRIVATE(private_unsupported, ibv_cmd_query_device, "@", 25);
IN_PRIVATE(private_unsupported, ibv_cmd_query_device, "@", 33);
IN_PRIVATE(private_unsupported, ibv_cmd_query_device, "@@", 34);
IN_PRIVATE(private_unsupported, ibv_cmd_query_device_ex, "@", 25);
IN_PRIVATE(private_unsupported, ibv_get_fw_ver, "@", 25);
IN_PRIVATE_33(private_unsupported, ibv_cmd_query_device_any);
IN_PRIVATE_34(private_nothing, __verbs_log);
IN_PRIVATE_34(private_unsupported, ibv_cmd_create_cq_ex2);
IN_PRIVATE_34(private_unsupported, ibv_cmd_reg_dmabuf_mr);
IN_PRIVATE_59(private_unsupported, ibv_cmd_alloc_dmah);
IN_PRIVATE_59(private_unsupported, ibv_cmd_export_dmabuf_fd);
IN_PRIVATE_59(private_unsupported, ibv_cmd_free_dmah);
IN_PRIVATE_59(private_unsupported, ibv_cmd_query_port_speed);
IN_PRIVATE_59(private_unsupported, ibv_cmd_reg_mr_ex);
IN_PRIVATE_64(private_null, ibv_dmabuf_heap_cc_shared_init);
IN_PRIVATE_64(private_null, ibv_dmabuf_heap_alloc);
IN_PRIVATE_64(private_nothing, ibv_dmabuf_heap_destroy);
IN_PRIVATE_64(private_nothing, ibv_dmabuf_heap_free);
IN_PRIVATE_65(private_unsupported, ibv_cmd_create_comp_cntr);
IN_PRIVATE_65(private_unsupported, ibv_cmd_destroy_comp_cntr);
IN_PRIVATE_65(private_unsupported, ibv_cmd_inc_comp_cntr);
IN_PRIVATE_65(private_unsupported, ibv_cmd_inc_err_comp_cntr);
IN_PRIVATE_65(private_unsupported, ibv_cmd_qp_attach_comp_cntr);
IN_PRIVATE_65(private_unsupported, ibv_cmd_query_comp_cntr_caps);
IN_PRIVATE_65(private_unsupported, ibv_cmd_read_comp_cntr);
IN_PRIVATE_65(private_unsupported, ibv_cmd_read_err_comp_cntr);
IN_PRIVATE_65(private_unsupported, ibv_cmd_set_comp_cntr);
IN_PRIVATE_65(private_unsupported, ibv_cmd_set_err_comp_cntr);

/* A provider's constructor calls the one of its family. */
IN_PRIVATE(private_nothing, verbs_register_driver_25, "@", 25);
IN_PRIVATE(private_nothing, verbs_register_driver_33, "@", 33);
IN_PRIVATE(private_nothing, verbs_register_driver_34, "@@", 34);
IN_PRIVATE(private_nothing, verbs_register_driver_57, "@", 57);
IN_PRIVATE(private_nothing, verbs_register_driver_59, "@", 59);
IN_PRIVATE(private_nothing, verbs_register_driver_64, "@", 64);
IN_PRIVATE(private_nothing, verbs_register_driver_65, "@", 65);
/* clang-format on */
