/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/profile.h"

#include <errno.h>
#include <string.h>

#include "nic/nic.h"
#include "support/test.h"

TEST(without_a_line_the_device_is_ours)
{
	struct profile p;

	profile_init(&p);
	assert_int_equal(p.max[PROFILE_QP], NIC_MAX_QP);
	assert_int_equal(p.max[PROFILE_RD_ATOM], NIC_MAX_RD_ATOM);
	for (unsigned bit = PROFILE_RC; bit <= PROFILE_XRC; bit++)
		assert_true(profile_has(&p, PROFILE_QP_TYPES, bit));
	for (unsigned bit = PROFILE_EXTENDED; bit <= PROFILE_IMPORT; bit++)
		assert_true(profile_has(&p, PROFILE_VERBS, bit));
	assert_int_equal(p.refused, EOPNOTSUPP);
	assert_int_equal(p.full, ENOMEM);
}

/* What a line says; err and the words of why, or nothing else but that changes. */
TEST(line_is_taken_or_refused_with_what_is_allowed)
{
	static const struct {
		const char *key, *value;
		int err;
		const char *why;
	} rows[] = {
		{"max_qp", "10", 0, NULL},
		{"max_qp", "131070", 0, NULL},
		{"max_qp", "131071", EINVAL, "from 1 to 131070"},
		{"max_qp", "0", EINVAL, "from 1 to"},
		{"max_qp", "-1", EINVAL, "from 1 to"},
		{"max_qp", "10x", EINVAL, "whole number"},
		{"max_qp", "", EINVAL, "whole number"},
		{"max_mw", "0", 0, NULL},
		{"max_res_rd_atom", "16776960", 0, NULL},
		{"max_res_rd_atom", "16776961", EINVAL, "from 0 to 16776960"},
		{"max_ah", "0", 0, NULL},
		{"max_ah", "16777217", EINVAL, "from 0 to 16777216"},
		{"max_mcast_grp", "21", EINVAL, "from 0 to 20"},
		{"max_mcast_qp_attach", "257", EINVAL, "from 0 to 256"},
		{"max_total_mcast_qp_attach", "5120", 0, NULL},
		{"qp_types", "uc", 0, NULL},
		{"qp_types", " rc,uc ,  ud", 0, NULL},
		{"qp_types", "none", 0, NULL},
		{"qp_types", "", EINVAL, "rc, uc, ud, xrc are"},
		{"qp_types", "rc raw", EINVAL, "rc, uc, ud, xrc are"},
		{"qp_types", "r", EINVAL, "or none"},
		{"operations", "write write_imm", 0, NULL},
		{"operations", "writes", EINVAL, "write_imm"},
		{"gids", "link_local", 0, NULL},
		{"verbs", "srq extended", 0, NULL},
		{"verbs", "rdma_cm", EINVAL, "device_memory"},
		{"refused", "ENOSYS", 0, NULL},
		{"refused", "38", EINVAL, "EOPNOTSUPP"},
		{"full", "ENOSPC", 0, NULL},
		{"full", "enospc", EINVAL, "ENOSPC"},
		{"max_qps", "1", ENOENT, NULL},
		{"", "1", ENOENT, NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct profile p, before;
		char why[256] = "";
		int n;

		profile_init(&p);
		before = p;
		n = profile_set(&p, rows[i].key, rows[i].value, why, sizeof(why));
		if (!rows[i].err) {
			assert_in_range(n, 0, PROFILE_KEYS - 1);
			continue;
		}
		assert_int_equal(n, -rows[i].err);
		assert_memory_equal(&p, &before, sizeof(p));
		if (rows[i].why && !strstr(why, rows[i].why))
			fail_msg("%s = %s: %s", rows[i].key, rows[i].value, why);
	}
}

TEST(words_are_bits)
{
	struct profile p;
	char why[256];

	profile_init(&p);
	profile_set(&p, "qp_types", "uc xrc", why, sizeof(why));
	assert_int_equal(p.set[PROFILE_QP_TYPES], 1u << PROFILE_UC | 1u << PROFILE_XRC);
	profile_set(&p, "operations", "none", why, sizeof(why));
	assert_int_equal(p.set[PROFILE_OPERATIONS], 0);
	profile_set(&p, "refused", "ENOSYS", why, sizeof(why));
	profile_set(&p, "full", "ENOSPC", why, sizeof(why));
	assert_true(p.refused == ENOSYS && p.full == ENOSPC);
}

TEST(short_buffers_are_not_overrun)
{
	struct profile p;

	profile_init(&p);
	for (size_t bytes = 1; bytes < 200; bytes++) {
		char buf[201];

		memset(buf, 7, sizeof(buf));
		profile_keys(buf, bytes);
		assert_true(strlen(buf) < bytes && buf[bytes] == 7);
		profile_set(&p, "verbs", "x", buf, bytes);
		assert_true(strlen(buf) < bytes && buf[bytes] == 7);
		profile_names(buf, bytes);
		assert_true(strlen(buf) < bytes && buf[bytes] == 7);
	}
}
