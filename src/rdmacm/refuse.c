/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librdmacm's names, all of them refusing. Programs link librdmacm whether they use it or not, and
 * the distribution's own, finding our device but no kernel behind it, deadlocks in rdma_create_id.
 * So a library with every name it exports stands in its place: nothing is connected, and callers
 * are told so as the man pages say, with -1 or NULL. What a program can begin with fails with
 * ENODEV, as it does on a host without RDMA, and programs that can do without (UCX, MPI libraries)
 * then go on and say nothing; the rest, which nobody gets as far as, fails with EOPNOTSUPP.
 *
 * The functions are written without their parameters, which all but one ignore; the calling
 * convention lets a caller pass them all the same. A long serves int and ssize_t callers alike.
 */
#include <errno.h>
#include <netdb.h>
#include <stddef.h>

#define API __attribute__((visibility("default")))

#define FAIL(name, type, value, err)                                                               \
	API type name(void);                                                                       \
	API type name(void)                                                                        \
	{                                                                                          \
		errno = err;                                                                       \
		return value;                                                                      \
	}

#define BEGIN(name)  FAIL(name, long, -1, ENODEV)
#define REFUSE(name) FAIL(name, long, -1, EOPNOTSUPP)

/* Undoes what can never have been done. */
#define NOTHING(name)                                                                              \
	API void name(void);                                                                       \
	API void name(void)                                                                        \
	{                                                                                          \
	}

/* A pointer; gai_strerror() reads -1 as a wrong value of ai_flags, and EAI_SYSTEM as errno. */
FAIL(rdma_create_event_channel, void *, NULL, ENODEV)
FAIL(rdma_getaddrinfo, long, EAI_SYSTEM, ENODEV)

BEGIN(rdma_create_ep)
BEGIN(rdma_create_id)
BEGIN(rsocket)

REFUSE(rdma_accept)
REFUSE(rdma_ack_cm_event)
REFUSE(rdma_bind_addr)
REFUSE(rdma_connect)
REFUSE(rdma_create_qp)
REFUSE(rdma_create_qp_ex)
REFUSE(rdma_create_srq)
REFUSE(rdma_create_srq_ex)
REFUSE(rdma_destroy_id)
REFUSE(rdma_disconnect)
REFUSE(rdma_establish)
REFUSE(rdma_get_cm_event)
REFUSE(rdma_get_remote_ece)
REFUSE(rdma_get_request)
REFUSE(rdma_init_qp_attr)
REFUSE(rdma_join_multicast)
REFUSE(rdma_join_multicast_ex)
REFUSE(rdma_leave_multicast)
REFUSE(rdma_listen)
REFUSE(rdma_migrate_id)
REFUSE(rdma_notify)
REFUSE(rdma_query_addrinfo)
REFUSE(rdma_reject)
REFUSE(rdma_reject_ece)
REFUSE(rdma_resolve_addr)
REFUSE(rdma_resolve_addrinfo)
REFUSE(rdma_resolve_route)
REFUSE(rdma_set_local_ece)
REFUSE(rdma_set_option)
REFUSE(rdma_write_cm_event)

NOTHING(rdma_destroy_ep)
NOTHING(rdma_destroy_event_channel)
NOTHING(rdma_destroy_qp)
NOTHING(rdma_destroy_srq)
NOTHING(rdma_free_devices)
NOTHING(rdma_freeaddrinfo)

REFUSE(raccept)
REFUSE(rbind)
REFUSE(rclose)
REFUSE(rconnect)
REFUSE(repoll_create)
REFUSE(repoll_ctl)
REFUSE(repoll_wait)
REFUSE(rfcntl)
REFUSE(rgetpeername)
REFUSE(rgetsockname)
REFUSE(rgetsockopt)
REFUSE(riomap)
REFUSE(riounmap)
REFUSE(riowrite)
REFUSE(rlisten)
REFUSE(rpoll)
REFUSE(rread)
REFUSE(rreadv)
REFUSE(rrecv)
REFUSE(rrecvfrom)
REFUSE(rrecvmsg)
REFUSE(rselect)
REFUSE(rsend)
REFUSE(rsendmsg)
REFUSE(rsendto)
REFUSE(rsetsockopt)
REFUSE(rshutdown)
REFUSE(rwrite)
REFUSE(rwritev)

/* libfabric looks at the count whatever is returned. */
API void **rdma_get_devices(int *count);
API void **rdma_get_devices(int *count)
{
	if (count)
		*count = 0;
	errno = ENODEV;
	return NULL;
}

API const char *rdma_event_str(void);
API const char *rdma_event_str(void)
{
	return "rdma_cm is not supported";
}

/* No port: network byte order, but 0 is 0. */
API unsigned short rdma_get_src_port(void);
API unsigned short rdma_get_src_port(void)
{
	return 0;
}

API unsigned short rdma_get_dst_port(void);
API unsigned short rdma_get_dst_port(void)
{
	return 0;
}
