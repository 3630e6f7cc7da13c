/* SPDX-License-Identifier: BSD-2-Clause */
/* The time of an engine, in whichever environment: what stands still for a while is behind the clock for good. */
#include "engine/env.h"

void env_stop_time(struct engine_env *env)
{
	atomic_store(&env->stands_at_ns, env_now_ns(env));
}

void env_let_time_go_on(struct engine_env *env)
{
	uint64_t stood_at_ns = atomic_load(&env->stands_at_ns);

	atomic_store(&env->behind_ns, env->now_ns(env) - stood_at_ns);
	atomic_store_explicit(&env->stands_at_ns, 0, memory_order_release);
}
