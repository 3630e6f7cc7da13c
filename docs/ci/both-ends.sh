#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Both ends of ibv_rc_pingpong on this host, to stand for a program of yours: status 0 when both have ended well.
ibv_rc_pingpong -g 0 -c &
server=$!
# It listens at port 18515, hexadecimal 4853, as the kernel lists it; where it has ended instead, kill says so.
until grep -qs ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6; do
	kill -0 $server || exit 1
	sleep 0.1
done
if ! ibv_rc_pingpong -g 0 -c 127.0.0.1; then
	kill $server
	exit 1
fi
wait $server
