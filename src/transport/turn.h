/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A turn of output is a list of steps, which an engine takes one after the other until one of them ends it.
 *
 * Private to src/transport.
 */
#pragma once

enum step {
	STEP_DONE, /* the next step follows */
	STEP_MORE, /* there is no room for what it has: the turn ends, and the QP has another one */
	STEP_STOP  /* the turn ends */
};
