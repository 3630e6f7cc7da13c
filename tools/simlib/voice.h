/* SPDX-License-Identifier: BSD-2-Clause */
/* The library's own complain() and sim_own_path(). */
#pragma once

enum { VOICE_BYTES = 4096 };

/* What this thread's last complain() said; its until the next one. */
const char *voice_said(void);
