/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of algorithms, and all that the rest of the tree needs of each: its header, a row, and its state.
 * Everything else is in its struct cc_kind.
 */
#pragma once

#include "cc/dcqcn.h"
#include "cc/dcqcn_fw.h"
#include "cc/dctcp.h"
#include "cc/delivery.h"
#include "cc/hpcc.h"
#include "cc/rttcc.h"
#include "cc/swift.h"
#include "cc/timely.h"

/* clang-format off */
/* enum cc_algorithm, the name in settings, its struct cc_kind */
#define CC_ALGORITHM_ROWS(ROW)                                                                                         \
	ROW(CC_NONE, "none", cc_none_kind)         /* cwnd_bytes_max, always: the network or the peer does it */       \
	ROW(CC_SWIFT, "swift", cc_swift_kind)      /* delay (Kumar et al., SIGCOMM 2020) */                            \
	ROW(CC_DCTCP, "dctcp", cc_dctcp_kind)      /* CE marks (RFC 8257) */                                           \
	ROW(CC_DCQCN, "dcqcn", cc_dcqcn_kind)      /* CNPs (Zhu et al., SIGCOMM 2015) */                               \
	ROW(CC_DCQCN_FW, "dcqcn_fw", cc_dcqcn_fw_kind) /* CNPs, as NICs do it and as the HPCC evaluation ran it */     \
	ROW(CC_HPCC, "hpcc", cc_hpcc_kind)         /* INT (Li et al., SIGCOMM 2019) */                                 \
	ROW(CC_TIMELY, "timely", cc_timely_kind)   /* the gradient of delay (Mittal et al., SIGCOMM 2015) */           \
	ROW(CC_TIMELY_PATCHED, "timely_patched", cc_timely_patched_kind) /* ... as Zhu et al., CoNEXT 2016, mend it */ \
	ROW(CC_RTTCC, "rttcc", cc_rttcc_kind)      /* the RTT of probes, CNPs: in the shape of NVIDIA's ZTR-RTTCC */    \
	ROW(CC_DELIVERY, "delivery", cc_delivery_kind) /* the rate at which data arrives, and delay: for long paths */

/* x: struct cc_x in struct cc, struct x_params in struct cc_params */
#define CC_STATE_ROWS(ROW) ROW(swift) ROW(dctcp) ROW(dcqcn) ROW(dcqcn_fw) ROW(hpcc) ROW(timely) ROW(rttcc) ROW(delivery)
/* clang-format on */
