/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/shm_ends.h"
#include "support/test.h"

#include <unistd.h>

/* That a process does not take is seen without its help: it is stopped. */
ENDS_TEST(who_takes_from_a_ring_is_seen)
{
	int fds[2];

	assert_int_equal(shm_look_at(a->io, B), SHM_UNSEEN);
	assert_int_equal(shm_make(a->io, B, 1, fds), 0);
	assert_int_equal(shm_look_at(a->io, B), SHM_WAITS); /* it was not heard of yet */

	int given[2] = {dup(fds[0]), dup(fds[1])};

	assert_int_equal(shm_take_ring(b->io, A, getpid(), given), 0);
	assert_int_equal(shm_look_at(a->io, B), SHM_RAN);
	send(a, B, 0, 1);
	send(a, B, 1, 1);
	assert_int_equal(shm_look_at(a->io, B), SHM_WAITS);
	expect(b, 0, 2);
	send(a, B, 2, 1);
	assert_int_equal(shm_look_at(a->io, B), SHM_RAN); /* not all */
	assert_int_equal(shm_look_at(a->io, B), SHM_WAITS);
	expect(b, 2, 1);
	assert_int_equal(shm_look_at(a->io, B), SHM_RAN);
	assert_int_equal(shm_look_at(a->io, B), SHM_RAN); /* there was nothing to take */
}
