# SPDX-License-Identifier: BSD-2-Clause
"""
Faults that the tests must notice. Each is one wrong decision in one function: `old`, which occurs once in functions
of that name, becomes `new`, and `test` must fail. A fault is found by the name of its function, so files may
move; when the code itself changes, run.py says so, and the fault is to be written anew.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    name: str
    function: str
    old: str
    new: str
    test: str


FAULTS = [
    # ---- wire
    Fault("psn_without_wrap", "psn_diff", "(int32_t)((a - b) << 8) >> 8", "(int32_t)(a - b)", "unit/psn_test"),
    Fault("icrc_covers_tos", "masked_ipv4", "0x45ff0000u", "0x45000000u", "unit/icrc_test"),

    # ---- mem
    Fault("mr_end_overflows", "check", "len > mr->length - off", "off + len > mr->length", "unit/mr_test"),
    Fault("whole_space_has_the_device", "check_unbounded", "(t->own && own_has(t->own, va, len))", "false", "unit/mr_test"),
    Fault("whole_space_has_every_right", "check_unbounded", "if (access & ~mr->access)", "if (false)", "unit/mr_test"),
    Fault("window_to_the_device", "mw_bind", "mr_reach(t, mr, b->addr, b->length) : NULL", "mr->addr + (b->addr - mr->iova) : NULL",
          "verbs/verbs_odp_test_rocev2"),
    Fault("space_elsewhere_is_open", "pages_get", "own_set(0, 0, UINTPTR_MAX)", "(void)0", "unit/space_test"),
    Fault("nothing_has_an_r_key", "mr_create_nothing", "MR_LOCAL_WRITE", "MR_LOCAL_WRITE | MR_REMOTE_READ", "unit/mr_test"),
    Fault("mr_of_any_pd", "opens_for", "mr->pd == user->pd || ", "true || ",
          "sim/rocev2_rc_remote_errors_test"),
    Fault("region_of_any_pd_is_flushed", "mr_check_remote_all", "opens_for(mr, user)", "true", "sim/rocev2_mpe_test"),
    Fault("region_is_flushed_without_the_right", "mr_check_remote_all", "!(access & ~mr->access)", "true", "sim/rocev2_mpe_test"),
    Fault("invalidated_region_is_flushed", "mw_invalidate", "MR_REMOTE_ACCESS", "(MR_REMOTE_ACCESS & ~MR_FLUSH_GLOBAL)",
          "sim/rocev2_mpe_test"),
    Fault("mr_hole_stops_a_search", "mr_take_out", "from_home < ((i - hole) & t->mask)",
          "from_home <= ((i - hole) & t->mask)", "unit/mr_test"),

    # ---- queue
    Fault("error_is_not_solicited", "is_solicited", "e->solicited || e->status != WC_SUCCESS", "e->solicited",
          "unit/cq_test"),
    Fault("overrun_is_forgotten", "cq_push", "cq->overrun || head - tail", "head - tail", "unit/cq_test"),
    Fault("arming_is_weakened", "cq_arm", "next = state |", "next = (state & ~(uint64_t)CQ_ARMED) |", "unit/cq_test"),
    Fault("arming_overlooks_what_waits", "cq_arm", "depth > others &&", "false &&", "unit/cq_test"),
    Fault("one_completion_raises_two_events", "cq_arm", "(depth == 1 ? CQ_TOLD : 0)", "0", "unit/cq_test"),
    Fault("many_raise_one_event", "cq_push", "head == tail ? CQ_TOLD : 0", "CQ_TOLD", "unit/cq_test"),
    Fault("resize_loses_the_wrap", "cq_resize", "ring[(tail + i) & mask]", "ring[i & mask]", "unit/cq_test"),
    Fault("resize_frees_what_is_taken", "rq_resize", "if (!taken)", "if (true)", "unit/rq_test"),
    Fault("resize_forgets_who_is_taken", "move", "slot_at(rq, i)->index = n++;", "n++;", "unit/rq_test"),
    Fault("sq_takes_one_too_many", "sq_slot", "used < sq->capacity", "used <= sq->capacity", "unit/sq_test"),

    # ---- transport
    Fault("full_turns_take_no_answer", "tx_room_behind_data", "tx->count == tx->most", "true", "sim/nic_full_turns_test"),
    Fault("answer_waits_for_an_empty_turn", "last_ack", "if (goes && responder_output_ack",
          "if (goes && !t->more && responder_output_ack", "sim/nic_full_turns_test"),
    Fault("path_is_heard_when_told", "hear", "if (!tx_ns)", "if (true)", "unit/path_test"),
    Fault("turn_takes_many_paths", "veroce_path_of_turn", "pair->left_turn == tp->tx.turn", "false", "sim/veroce_trains_test"),
    Fault("answers_take_their_own_paths", "answer_path", "stamped ? veroce_path_of_turn(tp, pair) : PAIR_NO_PATH", "PAIR_NO_PATH", "sim/veroce_trains_test"),
    Fault("nobody_asks_before_a_fence", "ackreq_is_covered", "!(next->flags & WR_FENCE) &&", "", "sim/veroce_rare_acks_test"),
    Fault("too_few_cover_a_message", "ackreq_is_covered", ">= apart", "> 0", "sim/veroce_rare_acks_test"),
    Fault("every_message_asks", "ackreq_is_covered", "apart > VEROCE_ACKREQ_PACKETS", "false", "sim/veroce_rare_acks_test"),
    Fault("silent_peer_ends_its_responder", "gives_up", "doubtful && !veroce_is_q(qp, s)", "false", "sim/veroce_silent_peer_test"),
    Fault("peer_that_is_back_gets_nothing", "input_any", "if (qp->veroce->w->unheard)", "if (false)", "sim/veroce_silent_peer_test"),
    Fault("base_peers_are_answered_anywhere", "answer_path", "stamped ?", "true ?", "sim/veroce_trains_test"),

    Fault("flush_without_the_right", "judge_flush", "access & ~qp->access", "false", "sim/rocev2_mpe_test"),
    Fault("flush_of_any_range", "judge_flush", "m->va, m->len, access)", "m->va, 0, access)", "sim/rocev2_mpe_test"),
    Fault("reserved_level_is_a_range", "is_known", " && h->selectivity <= FETH_REGION", "", "sim/rocev2_mpe_test"),
    Fault("reserved_type_is_flushed", "is_known", "!(h->placement & ~(FETH_GLOBAL | FETH_PERSISTENT))", "true", "sim/rocev2_mpe_test"),
    Fault("word_is_written_without_the_right", "judge_write", "!(qp->access & MR_REMOTE_WRITE) || m->va", "m->va", "sim/rocev2_mpe_test"),
    Fault("word_is_not_aligned", "judge_write", "m->va & (ATOMIC_WRITE_BYTES - 1) || ", "", "sim/rocev2_mpe_test"),
    Fault("word_of_any_length", "judge_write", "m->payload_len != ATOMIC_WRITE_BYTES", "false", "sim/veroce_forged_requests_test"),
    Fault("write_overtakes_a_word", "fence_indicated", " || is_atomic_write(older)", "", "unit/fence_indicator_test"),
    Fault("flush_is_early", "early", "!(flags & F_END)", "!(flags & F_END) || p->bth.opcode == OP_RC_FLUSH", "sim/veroce_mpe_test"),

    # ---- as bytes
    Fault("loaded_requester_forgets_what_it_asked", "requester_archive", "psn_new, asked, wqe", "psn_new, wqe", "sim/nic_save_and_load_test"),
    Fault("loaded_path_forgets_a_round_trip", "path_archive", "srtt_ns, rttvar_ns", "srtt_ns", "sim/nic_save_and_load_test"),
    Fault("wrong_byte_is_loaded", "nic_load", "crc != crc32_ieee(0, image->bytes, image->size - CRC_BYTES)", "false", "sim/nic_save_and_load_test"),

    # ---- transport, RoCEv2
    Fault("progress_restores_nothing", "progress", "req->retries = qp->retry_cnt;", "", "sim/rocev2_rc_retry_test"),
    Fault("gap_has_many_naks", "responder_input", "if (!rsp->nak_sent)", "if (true)", "sim/rocev2_rc_loss_test"),
    Fault("oldest_answer_is_lost", "find_resource", "n <= rsp->res_count", "n < rsp->res_count",
          "sim/rocev2_rc_read_test"),
    Fault("duplicate_read_by_any_key", "is_same_read", "reth->rkey == r->rkey && ", "", "sim/rocev2_rc_read_test"),
    Fault("first_answer_makes_way", "take_resource", "|| !resource(qp, rsp->res_emit)->again", "",
          "sim/rocev2_rc_remote_errors_test"),
    Fault("loss_is_told_each_time", "responses_lost", "req->lost_seen && req->lost_psn == req->una", "false",
          "sim/rocev2_rc_read_test"),
    Fault("timeout_forgets_no_loss", "completer_expire", "req->lost_seen = false;", "", "sim/rocev2_rc_read_test"),
    Fault("write_may_be_short", "judge_write", "received != len", "received > len",
          "sim/rocev2_rc_remote_errors_test"),

    # ---- transport, veRoCE
    Fault("latest_deadline_is_kept", "examine", "late_ns(path, r) < s->reo_ns", "late_ns(path, r) > s->reo_ns",
          "sim/veroce_timeout_test"),
    Fault("msn_of_another_message", "msn_fits", "return psn_diff(msn, w->msn) == (psn == w->psn_last ? 0 : -1);",
          "return true;", "sim/veroce_corner_cases_test"),
    Fault("receive_of_the_past_is_written", "judge_send", "psn_diff(p->rqmsn, vr->rq_done) < 0", "psn_diff(p->rqmsn, vr->rq_done) < -1",
          "sim/veroce_forged_requests_test"),
    Fault("third_copy_goes_once", "recovery_doubles", "2 * (distance / r->copies)", "(distance / r->copies)",
          "sim/veroce_loss_by_time_test"),
    Fault("old_marks_count_again", "read_echo", "echo.ce_packets > PSN_MASK / 2", "false",
          "sim/veroce_late_acks_test"),
    Fault("block_serves_twice", "rx_step_window", "*block_of(w, s->epsn) = NULL;", "", "unit/rx_space_test"),
    Fault("holes_at_a_blocks_end_are_untold", "block_at", "h->valid_len = SACKETH_BITS;", ";",
          "sim/veroce_loss_test"),
    Fault("down_path_answers", "answer_path",
          "pair->path[path].down ? (uint32_t)pair_pick_any(pair, PATHS_MAX) : path", "path",
          "sim/veroce_ack_reports_test"),
    Fault("last_path_goes_down", "path_silent", "|| pair->down_count + 1 >= pair->path_count", "", "unit/path_test"),
    Fault("one_probe_brings_up", "path_probe_answered", "++p->good >= PATH_GOOD_PROBES", "++p->good >= 1",
          "sim/veroce_path_probe_test"),
    Fault("copy_on_a_silent_path", "pick_fastest", "doubtful(p) < doubtful(q) ||", "", "unit/path_choice_test"),

    # ---- congestion control
    Fault("cut_twice_a_window", "in_cwr", "ack_seq <= d->cwr_end", "ack_seq < d->cwr_end", "unit/dctcp_test"),
    Fault("pace_loses_fractions", "pacer_due_ns", "at += frac != 0;", "", "unit/pacer_test"),
    Fault("hpcc_takes_the_least_hop", "measure", "of_hop > u ||", "of_hop < u ||", "unit/hpcc_test"),

    # ---- iWARP
    Fault("a_port_of_others_is_kept", "bind_and_take", "a->port || err != -EADDRINUSE", "true", "unit/ucma_ports_test"),
    Fault("a_port_is_shared_by_chance", "tcp_bind", "SO_REUSEADDR, !alone);", "SO_REUSEADDR, 1);", "unit/tcp_test"),

    # ---- what the long swarms found
    Fault("others_leave_before_the_oldest", "goes_before_others", " || oldest->tx_ns <= since_ns", "", "sim/veroce_timeout_test"),
    Fault("what_is_refused_fills_the_window", "recovery_input", "recovery_idle(tp, qp, true);", ";", "sim/veroce_refused_sends_test"),
    Fault("copies_stay_on_a_silent_path", "pair_pick_any", "pair->path_count > 1 && doubtful", "false && doubtful",
          "unit/path_choice_test"),
    Fault("a_nak_ends_a_stall", "retry", "!patience_keeps", "loss != CC_LOSS_RTO || !patience_keeps",
          "sim/nic_patience_test"),
    Fault("what_does_not_run_is_silent", "patience_lives", "ran ? &peer_at(tp, slot)->ran_ns : &peer_at(tp, slot)->waits_ns", "&peer_at(tp, slot)->ran_ns",
          "sim/nic_patience_test"),
    Fault("who_was_away_judges", "patience_woke", "tp->back_ns = now_ns;", ";", "sim/nic_patience_test"),
    Fault("who_takes_nothing_ran", "shm_look_at", "return SHM_WAITS;", "return SHM_RAN;", "unit/shm_sight_test"),
    Fault("who_takes_some_waits", "shm_look_at", "r->seen != before || ", "", "unit/shm_sight_test"),
    Fault("an_older_ring_ends_a_newer_one", "group_ring_offered", "forget_older(g, slot);", "forget_older(g, slot + 1);", "unit/group_ring_test"),

    # ---- group
    Fault("lane_beyond_the_last", "group_msg_decode", "m->lane < m->lane_count", "m->lane <= m->lane_count",
          "unit/group_msg_test"),
    Fault("digest_unmixed", "group_digest", "sum += x ^ x >> 31;", "sum += g->socks[lane][i].cookie;",
          "unit/group_socks_test"),

    # ---- connection management
    Fault("tentative_rows_are_ignored", "row_read", "(state_status(*state) != FIRM && state_status(*state) != TENTATIVE)",
          "state_status(*state) != FIRM", "unit/registry_race_test"),
    Fault("higher_slot_takes_back_too", "row_clash", "&& r->slot < slot ", "", "unit/registry_race_test"),
    Fault("flags_change_in_steps", "registry_amend", "row_store_rest(&own(r)->rows[row], c);",
          "{ set_state(r, &own(r)->rows[row], REVOKED); row_store_rest(&own(r)->rows[row], c); "
          "set_state(r, &own(r)->rows[row], FIRM); }", "unit/registry_race_test"),
    Fault("refusal_is_final_at_once", "conn_ask_again", "since_ns >= CM_EARLY_NS", "true", "unit/cm_connect_test"),

    # ---- engine
    Fault("timers_before_input", "expire", "|| (l->unread && l->unread_turns < UNREAD_TURNS_MAX)", "",
          "unit/loop_test"),
    Fault("endless_input_stops_time", "expire", "l->unread && l->unread_turns < UNREAD_TURNS_MAX", "l->unread",
          "unit/loop_test"),
    Fault("pending_work_is_dropped", "lock_release", "if (w & LOCK_PENDING) {",
          "if (w & LOCK_PENDING && w >= LOCK_WAITER) {", "unit/lock_test"),
    Fault("rest_of_a_burst_is_lost", "output", "stash_fill(l->stash, burst + sent, n - sent, now_ns);",
          "stash_fill(l->stash, burst + sent, 0, now_ns);", "unit/loop_test"),

    Fault("xrc_message_changes_its_srq", "xrc_take_on", "if (qp->gbn->rsp.message)", "if (false)", "sim/rocev2_xrc_test"),
    Fault("xrc_srq_of_any_domain", "xrc_take_on", "srq->xrcd != qp->xrcd", "false", "verbs/verbs_xrc_test"),
    Fault("a_dead_key_takes_a_receive", "judge_write", " && qp->type != QPT_UC", "", "sim/rocev2_uc_test"),

    # ---- the simulated network
    Fault("red_by_another_queue", "red_mark", "port->queues[p->class].bytes", "port->queued_bytes", "unit/switch_test"),
    Fault("deficit_is_saved", "sched_next", "port->deficit_bytes[class] = 0;", "", "unit/switch_test"),
    Fault("both_of_two_are_one", "least_of_2", "b += b >= a;", "", "unit/route_test"),
    Fault("headroom_is_not_given_back", "mmu_release", "pfc->headroom_bytes[class] -= headroom;", "",
          "unit/pfc_test"),
    Fault("resume_at_the_threshold", "mmu_release", "after + net->config.resume_offset_bytes <=", "after <=",
          "unit/pfc_test"),
    Fault("credits_beyond_2048_blocks", "credit_limit", "room < CREDIT_BLOCKS_MAX ? room : CREDIT_BLOCKS_MAX", "room",
          "unit/credit_test"),
    Fault("lost_packets_keep_their_credits", "credit_heard", "r->abr = fctbs;", "(void)fctbs;", "unit/credit_test"),
    Fault("room_before_a_packet_has_left", "leave_buffer", "l->asks = false;", "", "unit/credits_test"),
    Fault("low_priority_starves", "high_is_spent", "a->high_bytes >=", "a->high_bytes >", "unit/credit_test"),
    Fault("slow_is_dead", "find_moving", "if (on_wire_blocks(out, vl))", "if (false)", "unit/credits_test"),
    Fault("one_lane_for_all_levels", "subnet_lane", ".vl[p->flags >> PACKET_SL_SHIFT]", ".vl[0]",
          "unit/topology_subnet_test"),
    Fault("percentile_one_below", "rank", "i < n ? i : n - 1", "i ? i - 1 : 0", "unit/results_test"),
    Fault("size_at_the_lower_point", "cdf_bytes", "a->bytes + (uint64_t)", "a->bytes + 0 * (uint64_t)",
          "unit/cdf_test"),
    Fault("acknowledgements_show_the_first_holes", "tell_ack", "r->shown = at < r->highest ? at : 0;", "r->shown = 0;",
          "unit/sr_test"),
    Fault("any_parity_helps_xor", "is_enough", "r->plan.is_xor", "false", "unit/coded_code_test"),
    Fault("an_answer_is_not_fresh", "answer", "a->parities++", "a->parities", "unit/coded_code_test"),
    Fault("what_is_late_was_needed", "take_packet", " || (v == SDR_DROP_LATE && sdr_past_has(l, q->generation, imm))", "",
          "unit/sdr_line_test"),

    Fault("a_flood_mutes_who_is_known", "limit_is_mute", "place < CM_SOURCES && ", "", "unit/cm_flood_test"),
    Fault("any_address_of_ours_is_the_connections", "conn_is_peer", " && !memcmp(c->flow.src, in->dst, sizeof(in->dst))", "", "unit/cm_id_test"),
    Fault("nobodys_uid_is_certain", "link_uid_is_certain", "return known >= UINT32_MAX;", "return true;", "unit/group_uid_test"),
    Fault("high_priority_is_spent_for_ever", "vl_choose",
          "if (high_is_spent(a, t))\n\t\t\ta->high_bytes = 0; /* nobody of low priority waits */", "", "unit/credit_test"),
    Fault("a_pause_does_not_restore_high_priority", "vl_choose", "if (low) {\n\t\ta->high_bytes = 0;",
          "if (low) {\n\t\tif (high_is_spent(a, t))\n\t\t\ta->high_bytes = 0;", "unit/credit_test"),
    Fault("a_short_message_is_read_on", "payload_fits", "len < payloads[type].fixed", "false", "unit/control_test"),

    # ---- the interface of a packet
    Fault("packets_leave_as_they_are_routed", "judge", "own && !local && !table.all_own", "false", "unit/udp_routes_test"),
    Fault("packets_for_this_host_leave_it", "judge", "own && !local &&", "own &&", "unit/udp_routes_test"),
    Fault("routes_are_made_up", "ask", "m->rtm_flags = RTM_F_FIB_MATCH;", "", "unit/udp_routes_test"),
    Fault("a_dummy_leads_out", "leads_out", "(!(r.ifr_flags & IFF_NOARP) || r.ifr_flags & IFF_POINTOPOINT)", "true", "unit/udp_routes_test"),
    Fault("a_route_that_went_is_kept", "judge", "r->ifindex ? NAMED_NS : CHOSEN_NS", "CHOSEN_NS", "unit/udp_routes_test"),
    Fault("changed_gids_change_no_route", "udp_routes_set_gids", "t->turn++;", "", "unit/udp_routes_test"),

    # ---- memory between processes
    Fault("who_reads_looks_but_before", "shm_fetch", " && t->lot > shm_taken_back(&r->taker)", "", "unit/shm_far_test"),
    Fault("all_lots_are_taken_back", "loan_take_back", "l->taken_back = lot;\n\tatomic_store_explicit(l->told, lot,", "l->taken_back = lot;\n\tatomic_store_explicit(l->told, UINT64_MAX,", "unit/shm_far_test"),
    Fault("what_was_given_back_is_taken_back", "loan_is_out", " && lot > atomic_load_explicit(l->given_back, memory_order_acquire)", "", "unit/lend_test"),
    Fault("who_learns_of_an_error_is_read_on", "note_error", "qp_take_back(tp, qp);", "", "sim/nic_neighbours_test"),
    Fault("last_words_wait_for_room", "is_held_up", "!last_turn && ", "", "sim/nic_neighbours_test"),
    Fault("room_wakes_nobody", "nic_set_peer", "if (!p->full)\n\t\tqps_resume(tp, &p->held_up);", "", "sim/nic_neighbours_test"),
    Fault("windows_close_and_stay_lent", "close", "mr_take_back(t, &mw->opened);", "", "unit/mw_test"),
    Fault("sockets_wait_for_a_processor", "shm_has_all", " && now_ns - s->below_ns >= QUIET_NS", "", "unit/shm_test"),
    Fault("sleeper_that_is_ahead_sleeps_on", "drain", "wake_owed(s, slot);", "", "unit/shm_test"),
    Fault("two_sleepers_wait_for_each_other", "shm_flush", "wake_all_owed(s);", "", "unit/shm_test"),
    Fault("memory_taken_back_is_read_to_its_place", "placed_may_be_read", "return false;", "continue;", "unit/shm_far_test"),
    Fault("a_rings_end_is_not_marked", "shm_publish",
          "atomic_store_explicit(word_at(p->memory, p->tail), 0, memory_order_relaxed); /* KIND_NONE */", "", "unit/shm_ring_test"),
    Fault("a_ring_without_an_end_is_kept", "drain", " || r->ended > SHM_RECORDS_MAX", "", "unit/shm_test"),
    Fault("any_memory_is_given_to_who_reads", "give", "return false;", "continue;", "unit/shm_help_test"),
    Fault("memory_taken_back_is_given", "is_lent", "l->first > taken_back && ", "", "unit/shm_help_test"),
    Fault("another_process_is_written_to", "may_help", "shm_process_is(&taker)", "true", "unit/shm_help_test"),
    Fault("who_is_written_to_may_be_anybody", "shm_read_with_help", "&s->mark->written", "&s->came_ns", "unit/shm_help_test"),
    Fault("bytes_of_strangers_are_believed", "shm_process_read", " && value == p->value", "", "unit/shm_far_test"),
    Fault("children_inherit_the_mark", "shm_mark_new", "madvise(m, sizeof(*m), MADV_DONTFORK);", "", "unit/shm_far_test"),
    Fault("late_helper_writes", "wait_for_helper", "shm_job_cancel(job);", "", "unit/shm_help_test"),
    Fault("helper_is_not_waited_for", "shm_read_with_help", "wait_for_helper(s, r, n);", "", "unit/shm_help_test"),
    Fault("nobody_helps", "shm_recv", "helped = !n && shm_help(s);", "helped = false;", "unit/shm_help_test"),
    Fault("chunk_has_two_owners", "claim", "is_open(j, chunk) && atomic_compare_exchange_strong_explicit(&j->states[chunk], &open, SHM_CHUNK_CLAIMED,\n\t\t\t\t\t\t\t\t\t      memory_order_acquire, memory_order_relaxed)", "is_open(j, chunk) && (atomic_store(&j->states[chunk], SHM_CHUNK_CLAIMED), open)", "unit/shm_job_test"),
    Fault("short_reads_are_requested_whole", "read_pairs_suit", "!qp->gbn->req.pairs.whole_left", "false", "sim/rocev2_read_pairs_test"),
    Fault("distant_reads_wait_for_round_trips", "read_pairs_came", "r->whole_left = r->whole_next;", ";", "sim/rocev2_read_pairs_test"),
    Fault("a_long_way_is_tried_again_as_often", "read_pairs_came", "r->whole_next * 2", "r->whole_next", "sim/rocev2_read_pairs_test"),
    Fault("timeout_of_a_path_that_came_back", "path_rtt_sample", " || pair->rto_down", "", "unit/path_rtt_test"),
    Fault("a_connection_is_for_many_rings", "group_ring_offered", " || g->ring_of[client] >= 0", "", "unit/group_ring_test"),
    Fault("packets_behind_a_short_one", "lay_out", "ended = len < segment;", ";", "unit/shm_far_test"),
    Fault("ipv4_lane_of_any_address", "is_socket_of_lane", "a.v4.sin_addr.s_addr == wanted.v4.sin_addr.s_addr", "true", "unit/group_socks_test"),
    Fault("ipv6_lane_of_any_address", "is_socket_of_lane", "!memcmp(&a.v6.sin6_addr, &wanted.v6.sin6_addr, 16)", "true", "unit/group_socks_test"),
    Fault("read_is_repeated_behind_the_last_nak", "ends_peer", "aeth_kind(syndrome) == AETH_NAK", "false", "sim/rocev2_rc_remote_errors_test"),
    Fault("nak_before_the_responses_before_it", "send_some", "if (!tx_outstanding(&s->tx))\n", "if (true)\n", "sim/veroce_reads_before_errors_test"),
    Fault("lost_ring_is_read", "shm_free_out", "shm_take_all_back(&r->putter);", "", "unit/shm_far_test"),

    # ---- the engine's waiting
    Fault("sleepers_wait_for_a_processor", "is_ready", " && state_of(tid) == 'R'", "", "unit/env_host_test"),
    Fault("a_wake_before_a_wait_is_lost", "env_host_open", "watch(&h->env, h->wake_fd, true)", "0", "unit/env_host_test"),
    Fault("who_runs_waits_for_a_processor", "ran", "s->ran_ns < (s->now_ns - w->slept_ns) / 4 * AWAIT_RAN_QUARTERS", "true", "unit/waiting_test"),
    Fault("sockets_packets_await_a_poller", "wanted", " || !s->may_wait", "", "unit/waiting_test"),
    Fault("an_await_has_no_end", "miss_poller", "s->now_ns - s->polled_ns >= AWAIT_NS_MAX", "false", "unit/waiting_test"),
    Fault("awaits_do_not_grow", "wanted", "AWAIT_GROWTH * waited_ns", "waited_ns", "unit/waiting_test"),
    Fault("who_works_instead_asks_again", "miss_poller", " || s->polled_ns == w->instead_of_ns", "", "unit/waiting_test"),
    Fault("naps_do_not_grow", "nap_ns", "(now_ns - w->polling_since_ns) / NAP_SHARE", "0", "unit/waiting_test"),
    Fault("naps_grow_for_ever", "nap_ns", "least(share_ns, NAP_NS_MAX)", "share_ns", "unit/waiting_test"),
    Fault("gaps_of_long_polling_are_stops", "polled_lately", "nap / GAP_SHARE > NAP_NS ? nap / GAP_SHARE : NAP_NS", "NAP_NS", "unit/waiting_test"),
    Fault("posts_are_time_without_polls", "last_poll_ns", " + s->post_turns_ns", "", "unit/waiting_test"),
    Fault("polls_that_bounce_are_none", "last_poll_ns", "s->bounced ? s->now_ns :", "", "unit/waiting_test"),
    Fault("excuses_shorten_naps", "stand_back", "!w->excused ||", "true ||", "unit/waiting_test"),
    Fault("excuses_have_no_end", "stand_back", " || s->now_ns - w->instead_of_ns > AWAIT_NS_MAX", "", "unit/waiting_test"),
    Fault("idle_pollers_keep_the_thread_napping", "served", "return act(WAITING_REST);", "w->looked_again = false;", "unit/waiting_test"),
    Fault("a_served_group_asks_on", "serve_again_later", "w->group_asks = false;", "", "unit/waiting_test"),
    Fault("a_turn_serves_the_group_for_nothing", "turned", "serve_again_later(w, s);", "w->looked_again = false;", "unit/waiting_test"),
    Fault("a_held_lock_is_waited_for_at_once", "held", "if (w->looked_again)", "if (true)", "unit/waiting_test"),
    Fault("nobody_spins_longer_for_a_reader", "spin_ns", "s->lends ? LENT_TIMES * w->spin_ns : w->spin_ns", "w->spin_ns", "unit/waiting_test"),
    Fault("one_long_yield_ends_the_spinning", "yielded", " && w->yielded_long", "", "unit/waiting_test"),
    Fault("spinning_ends_for_ever", "yielded", "least(s->now_ns - w->looked_ns, CROWDED_NS_MAX / CROWDED_TIMES)", "s->now_ns - w->looked_ns", "unit/waiting_test"),
    Fault("the_heart_beats_for_ever", "rested", "s->now_ns - s->stirred_ns < HEARTBEAT_FOR_NS", "true", "unit/waiting_test"),
    Fault("what_is_due_waits", "rested", "s->deadline_ns <= s->now_ns", "false", "unit/waiting_test"),
    Fault("the_port_asks_on", "waiting_port_is_due", "w->port_asks = false;", "", "unit/waiting_test"),
    Fault("a_deadline_wakes_nobody", "engine_leave", "deadline < e->sleep_until_ns", "false", "unit/engine_time_test"),
    Fault("a_hand_over_wakes_nobody", "thread_end_nap", "(state == THREAD_NAP || state == THREAD_AWAIT) &&", "false &&", "unit/engine_time_test"),
    Fault("every_post_is_sent_at_once", "may_defer", "atomic_load(&e->state) != THREAD_NAP", "true", "unit/engine_time_test"),
    Fault("serving_is_left_to_nobody", "serve", "atomic_store_explicit(&e->serve_wanted, true, memory_order_relaxed);", "", "unit/engine_time_test"),
    # ---- faults on command
    Fault("one_counter_for_all_queue_pairs", "hits", "if (r->nth_per_qp) {", "if (false) {", "unit/faults_test"),
    Fault("a_rule_acts_for_ever", "hits", "rule->open = false;", "", "unit/faults_test"),
    Fault("the_seed_says_nothing", "faults_add", "s->seed * 1000003 + f->count", "f->count", "unit/faults_test"),
    Fault("packets_pass_a_link_that_is_down", "faults_packet", "if (faults_stops(f)) {", "if (faults_hangs(f)) {", "unit/faults_test"),
    Fault("a_cut_train_is_sent_whole", "count_trains", "p->data + p->len == p[1].data", "true", "unit/spoil_test"),
    Fault("memory_has_a_checksum", "touch", "if (in_memory)\n\t\t\treturn false;", ";", "unit/spoil_test"),
    Fault("a_command_goes_to_whoever_has_the_slot", "group_command", "peer.pid != m->pid || ", "", "unit/group_told_test"),
]
