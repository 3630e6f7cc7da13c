/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a connection and of its QP: which way a connection goes, and that the checks of the debug build see a
 * QP that is not what its state says. A check that finds a fault aborts, so each fault is planted in a child.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nic/state.h"
#include "support/test.h"
#include "veroce/veroce.h"
#include "transport/veroce/veroce.h"

static void quiet(void)
{
	int fd = open("/dev/null", O_WRONLY);

	if (fd >= 0)
		dup2(fd, STDERR_FILENO);
	signal(SIGABRT, SIG_DFL);
}

/* Whether qp_check() takes the QP as it is; with `plant`, after that was done to it. */
static bool passes(struct duo_qp *q, void (*plant)(struct qp *))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		quiet();
		if (plant)
			plant(q->qp);
		qp_check(&q->host->nic->tp, q->qp);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void wake_early(struct qp *qp)
{
	if (veroce_is_answered(qp->veroce))
		qp->veroce->roams = true;
	else
		qp->veroce->decide_ns = 1;
}

static void forget_seal(struct qp *qp)
{
	qp->secret = 0;
}

static void change_ops(struct qp *qp)
{
	qp->ops = &veroce_asking_ops;
}

static void begin_what_is_not_posted(struct qp *qp)
{
	qp->sq.next++;
}

static void lose_timer(struct qp *qp)
{
	list_remove(&qp->active);
	list_remove(&qp->held);
	qp->timer.deadline_ns = TIMER_NEVER;
}

static void lose_place_of_read(struct qp *qp)
{
	qp->veroce->reads = psn_add(qp->veroce->reads, qp->veroce->w->reads_size + 1);
}

static void forget_packet(struct qp *qp)
{
	qp->veroce->w->q.tx.lost = tx_outstanding(&qp->veroce->w->q.tx) + 1;
}

static void go_back_to_rocev2(struct qp *qp)
{
	veroce_move(qp, VEROCE_ROCEV2);
}

static void go_back_to_init(struct qp *qp)
{
	qp_move(qp, QPS_INIT);
}

VEROCE_TEST(quiet_connection_is_what_its_state_says)
{
	static void (*const faults[])(struct qp *) = {
		wake_early, forget_seal, change_ops, begin_what_is_not_posted, go_back_to_rocev2, go_back_to_init};

	assert_int_equal(s.a->qp->veroce->state, VEROCE_SEALED);
	assert_true(passes(s.a, NULL));
	for (size_t i = 0; i < COUNT(faults); i++)
		assert_false(passes(s.a, faults[i]));
}

VEROCE_TEST(busy_connection_is_what_its_state_says)
{
	static void (*const faults[])(struct qp *) = {lose_timer, lose_place_of_read, forget_packet};

	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 32768, s.bbuf, 0));
	duo_run_for(s.duo, 10);
	assert_int_not_equal(tx_outstanding(&s.a->qp->veroce->w->q.tx), 0);
	assert_true(passes(s.a, NULL));
	for (size_t i = 0; i < COUNT(faults); i++)
		assert_false(passes(s.a, faults[i]));
	duo_wait(s.duo, &s.a->sent, 1);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
}

VEROCE_TEST(connection_without_seals_is_agreed_and_ends_with_its_qp, v.seal = SEAL_OFF)
{
	assert_int_equal(s.a->qp->veroce->state, VEROCE_AGREED);
	assert_int_equal(duo_qp_to_state(s.a, QPS_ERR), 0);
	assert_int_equal(s.a->qp->veroce->state, VEROCE_AGREED);
	assert_true(passes(s.a, NULL));
	assert_false(passes(s.a, wake_early));
	assert_int_equal(duo_qp_to_state(s.a, QPS_RESET), 0);
	assert_null(s.a->qp->veroce);
	assert_true(passes(s.a, NULL));
}

VEROCE_TEST(peer_that_speaks_rocev2_alone_takes_the_connection_there, v.protocol[DUO_A] = PROTOCOL_AUTO,
	    v.protocol[DUO_B] = PROTOCOL_ROCEV2)
{
	struct duo_wr w;

	assert_int_equal(s.b->qp->veroce->state, VEROCE_ROCEV2);
	w = duo_write_wr(1, s.abuf, 0, 8, s.bbuf, 0);
	assert_true(duo_post(s.a, &w));
	duo_wait(s.duo, &s.a->sent, 1);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	assert_int_equal(s.a->qp->veroce->state, VEROCE_ROCEV2);
	assert_true(passes(s.a, NULL));
	assert_false(passes(s.a, wake_early));
}
