/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine of queue pairs that speak iWARP. */
#pragma once

#include "transport/qp.h"

/* As qp_engine(): RC has one, all other types have none. */
const struct qp_ops *iwarp_engine(enum qp_type);
