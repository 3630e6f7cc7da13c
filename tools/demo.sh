#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# demo.sh VERBENA: two unmodified programs of the distribution, both ends of each on this machine,
# over the RDMA device that `verbena run` gives them. No RDMA hardware, no kernel module, no root.
set -u
verbena=${1:-build/verbena}
dir=$(mktemp -d) || exit 1
server=
trap 'test -n "$server" && kill "$server" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

die() {
	echo "demo: $1" >&2
	for f in server client; do
		test -s "$dir/$f" && sed "s/^/  $f: /" "$dir/$f" >&2
	done
	exit 1
}

for tool in ibv_devinfo ibv_rc_pingpong ib_write_bw; do
	command -v $tool >/dev/null || die "$tool is missing: apt install ibverbs-utils perftest"
done

# Listening yet? The port as the kernel writes it, in either table.
listens() {
	grep -Eqi ":$(printf %04X "$1") [0:]*0000 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# both TITLE COMMAND...: the command as server, then with 127.0.0.1 as client.
both() {
	echo
	echo "== $1"
	shift
	port=$((20000 + $$ % 10000))
	while listens $port; do
		port=$((port + 1))
	done
	program=$1
	shift
	set -- "$program" -p $port "$@"
	echo "  server\$ verbena run $*"
	echo "  client\$ verbena run $* 127.0.0.1"
	: >"$dir/client"
	"$verbena" run "$@" >"$dir/server" 2>&1 &
	server=$!
	tries=0
	until listens $port; do
		tries=$((tries + 1))
		kill -0 $server 2>/dev/null && test $tries -lt 200 || die "$program: the server did not start"
		sleep 0.05
	done
	timeout 60 "$verbena" run "$@" 127.0.0.1 >"$dir/client" 2>&1 || die "$program: the client failed"
	wait $server || die "$program: the server failed"
	server=
	echo
}

echo "== the device, as programs see it"
"$verbena" run ibv_devinfo -v >"$dir/client" 2>&1 || die "ibv_devinfo failed"
grep -E 'hca_id|state:|link_layer|active_mtu|GID\[' "$dir/client"
grep -q 'GID\[ *0\]' "$dir/client" || die "no interface is up and has an address"

both "ping-pong of 4096 bytes, every one checked" ibv_rc_pingpong -g 0 -n 5000 -c
grep -E 'address|bytes in|iters in' "$dir/client" || die "no result"

both "one-sided writes of 1 MiB" ib_write_bw -F -x 0 -s 1048576 -n 2000
grep -A 1 '#bytes' "$dir/client" || die "no result"

echo
echo "Both ran over UDP port 4791 as RoCEv2. Your turn: $verbena run COMMAND"
