/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of `counters` are every driver's (Documentation/ABI/stable/sysfs-class-infiniband), those of `hw_counters` mlx5's.
 * Metrics have the names that Prometheus' node exporter gives the same files.
 */
#include "export_rows.h"

/* clang-format off */
#define EACH_ERROR(queue)                                                                                              \
	{queue "_local_length", queue "_local_qp_operation", queue "_local_protection", queue "_flushed",              \
	 queue "_window_bind", queue "_bad_response", queue "_local_access", queue "_remote_invalid_request",          \
	 queue "_remote_access", queue "_remote_operation", queue "_retries_exceeded", queue "_rnr_retries_exceeded",  \
	 queue "_other_errors"}

const struct export_row export_rows[] = {
	/* Words of four bytes, as InfiniBand counts. */
	{"counters/port_rcv_data", 4, "port_data_received_bytes_total", "Bytes of packets that were accepted, from the BTH on", {"rx_bytes"}, NULL},
	{"counters/port_xmit_data", 4, "port_data_transmitted_bytes_total", "Bytes of packets that were sent, from the BTH on", {"tx_bytes"}, NULL},
	{"counters/port_rcv_packets", 1, "port_packets_received_total", "Packets that were accepted", {"rx_packets"}, NULL},
	{"counters/port_xmit_packets", 1, "port_packets_transmitted_total", "Packets that were sent", {"tx_packets"}, NULL},
	{"counters/unicast_rcv_packets", 1, "unicast_packets_received_total", "Packets that were accepted, without those of multicast groups", {"rx_packets"}, "rx_multicast"},
	{"counters/unicast_xmit_packets", 1, "unicast_packets_transmitted_total", "Packets that were sent, without those to multicast groups", {"tx_packets"}, "tx_multicast"},
	{"counters/multicast_rcv_packets", 1, "multicast_packets_received_total", "Packets of multicast groups that were accepted", {"rx_multicast"}, NULL},
	{"counters/multicast_xmit_packets", 1, "multicast_packets_transmitted_total", "Packets that were sent to multicast groups", {"tx_multicast"}, NULL},
	{"counters/port_rcv_errors", 1, "port_errors_received_total", "Packets with an error: malformed, or the ICRC is wrong", {"rx_malformed", "rx_icrc_errors"}, NULL},
	{"counters/port_xmit_discards", 1, "port_discards_transmitted_total", "Packets that the host did not take to send them", {"io_tx_drops"}, NULL},
	{"hw_counters/rx_write_requests", 1, "rx_write_requests_total", "RDMA WRITEs of peers that were executed", {"rx_write_requests"}, NULL},
	{"hw_counters/rx_read_requests", 1, "rx_read_requests_total", "RDMA READs of peers that were executed", {"rx_read_requests"}, NULL},
	{"hw_counters/rx_atomic_requests", 1, "rx_atomic_requests_total", "Atomics of peers that were executed", {"rx_atomic_requests"}, NULL},
	{"hw_counters/out_of_buffer", 1, "out_of_buffer_drops_total", "Requests that found no receive WQE: RNR NAKs sent", {"rnrs_sent"}, NULL},
	{"hw_counters/rnr_nak_retry_err", 1, "rnr_nak_retry_packets_received_total", "RNR NAKs received", {"rnrs_received"}, NULL},
	{"hw_counters/out_of_sequence", 1, "out_of_sequence_packets_received_total", "Packets out of sequence", {"rx_out_of_sequence"}, NULL},
	{"hw_counters/duplicate_request", 1, "duplicate_requests_packets_total", "Packets that had arrived before", {"rx_duplicates"}, NULL},
	{"hw_counters/packet_seq_err", 1, "packet_sequence_errors_total", "NAKs of PSN sequence errors received", {"sequence_naks_received"}, NULL},
	{"hw_counters/implied_nak_seq_err", 1, "implied_nak_seq_errors_total", "Responses to READs or atomics that a later one showed to be lost", {"responses_missed"}, NULL},
	{"hw_counters/local_ack_timeout_err", 1, "local_ack_timeout_errors_total", "Local ACK timeouts", {"timeouts"}, NULL},
	{"hw_counters/np_cnp_sent", 1, "np_cnp_packets_sent_total", "CNPs sent", {"cnps_sent"}, NULL},
	{"hw_counters/np_ecn_marked_roce_packets", 1, "np_ecn_marked_roce_packets_received_total", "Packets received that a switch had marked CE", {"rx_marked"}, NULL},
	{"hw_counters/rp_cnp_handled", 1, "rp_cnp_packets_handled_total", "CNPs received to which congestion control reacted", {"cnps_received"}, "cnps_ignored"},
	{"hw_counters/rp_cnp_ignored", 1, "rp_cnp_ignored_packets_received_total", "CNPs received to which no congestion control reacts", {"cnps_ignored"}, NULL},
	{"hw_counters/rx_icrc_encapsulated", 1, "rx_icrc_encapsulated_errors_total", "Packets with a wrong ICRC", {"rx_icrc_errors"}, NULL},
	{"hw_counters/resp_local_length_error", 1, "resp_local_length_errors_total", "Receives that were too short for their message", {"recv_local_length"}, NULL},
	{"hw_counters/resp_remote_access_errors", 1, "resp_remote_access_errors_total", "Requests of peers that no key let in", {"rx_access_refused"}, NULL},
	{"hw_counters/req_remote_access_errors", 1, "req_remote_access_errors_total", "Requests that failed because the peer's keys did not let them in", {"send_remote_access"}, NULL},
	{"hw_counters/req_remote_invalid_request", 1, "req_remote_invalid_request_errors_total", "Requests that the peer found invalid", {"send_remote_invalid_request"}, NULL},
	{"hw_counters/req_cqe_error", 1, "req_cqes_errors_total", "Completions of send queues in error", EACH_ERROR("send"), NULL},
	{"hw_counters/req_cqe_flush_error", 1, "req_cqes_flush_errors_total", "Sends that were flushed", {"send_flushed"}, NULL},
	{"hw_counters/resp_cqe_error", 1, "resp_cqes_errors_total", "Completions of receive queues in error", EACH_ERROR("recv"), NULL},
	{"hw_counters/resp_cqe_flush_error", 1, "resp_cqes_flush_errors_total", "Receives that were flushed", {"recv_flushed"}, NULL},
	{"hw_counters/req_transport_retries_exceeded", 1, "req_transport_retries_exceeded_total", "Requests that failed because the peer did not answer", {"send_retries_exceeded"}, NULL},
	{"hw_counters/req_rnr_retries_exceeded", 1, "req_rnr_retries_exceeded_total", "Requests that failed because the peer had no receive WQE", {"send_rnr_retries_exceeded"}, NULL},
	/* Of Verbena alone. */
	{NULL, 1, "retransmitted_packets_total", "Request packets sent again", {"retransmits"}, NULL},
	{NULL, 1, "spurious_retransmissions_total", "Packets sent again although the first copy was only late", {"spurious"}, NULL},
	{NULL, 1, "trimmed_packets_received_total", "Packets whose payload a switch cut off", {"rx_trimmed"}, NULL},
	{NULL, 1, "path_timeouts_total", "Paths that were found to be down", {"path_timeouts"}, NULL},
	{NULL, 1, "rocev2_fallbacks_total", "Queue pairs that went on with RoCEv2", {"fallbacks"}, NULL},
	{NULL, 1, "socket_overflows_total", "Datagrams that the sockets' receive buffers had no room for", {"io_rx_overflow"}, NULL},
	{NULL, 1, "memory_packets_received_total", "Packets that came through memory, from processes of this host", {"io_shm_rx_packets"}, NULL},
	{NULL, 1, "memory_packets_transmitted_total", "Packets that left through memory, to processes of this host", {"io_shm_tx_packets"}, NULL},
};
/* clang-format on */

const size_t export_row_count = sizeof(export_rows) / sizeof(export_rows[0]);

uint64_t export_value(const struct tally *t, const struct export_row *r, const uint64_t *counted)
{
	uint64_t sum = 0, less = 0;

	for (int i = 0; i < EXPORT_SUMMED && r->fields[i]; i++)
		sum += counted[tally_field(t, r->fields[i])];
	if (r->less)
		less = counted[tally_field(t, r->less)];
	return less < sum ? sum - less : 0;
}
