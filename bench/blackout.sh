#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# How long a peer waits while a program's device moves between network namespaces: the longest time between two
# completions at the peer, for each of N moves (default 20), of tests/programs/move. Starts itself in namespaces of its own.
# RESTORE=yes: the whole program moves, by CRIU, with the TCP connection over which both ends meet.
#
#	bench/blackout.sh [BUILD [N [OPTION OF move ...]]]
set -u
if [ "${APART:-}" != yes ]; then
	export APART=yes
	exec unshare --mount --net --pid --fork --mount-proc ${UNSHARE_USER:+--map-root-user} "$0" "$@"
fi
build=$(readlink -f "${1:-build}") n=${2:-20}
shift 2 2>/dev/null || set --
mount -t tmpfs none /run && mkdir /run/netns && ip link set lo up
ip link add br0 type bridge forward_delay 0 && ip link set br0 up
i=1
for s in a b c; do
	ip netns add $s && ip -n $s link set lo up
	ip link add s$s type veth peer name e$s netns $s && ip link set s$s master br0 up && ip -n $s link set e$s up
	ip -n $s addr add 10.77.0.$i/16 dev e$s && i=$((i + 1))
done
ip -n b addr add 10.77.0.9/24 dev eb
ip link add m0 netns a type veth peer name m1 netns b
ip -n a addr add 10.78.0.1/24 dev m0 && ip -n b addr add 10.78.0.2/24 dev m1
ip -n a link set m0 up && ip -n b link set m1 up
sleep 1
index() { ip netns exec $1 $build/verbena devices --json | grep -o "{\"index\": [0-9]*, \"address\": \"$2\"" | grep -o '[0-9]*' | head -1; }
out=$(mktemp -d)
ip netns exec a $build/verbena run stdbuf -oL $build/tests/programs/move -g $(index a 10.77.0.1) "$@" >$out/server 2>&1 &
server=$!
# Until a program does what is awaited; if it ends before, its words are all there is to show.
await() {
	local of=$1 log=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		kill -0 $of 2>/dev/null || { echo "it has ended too early: $(cat $log)"; rm -r $out; exit 1; }
		sleep 0.1
	done
}
listens() { grep -q ':4853 .* 0A ' /proc/$server/net/tcp6; }
await $server $out/server listens
meet=${RESTORE:+10.77.0.1}
setsid nsenter --net=/run/netns/b $build/verbena run $build/tests/programs/move -g $(index b 10.77.0.9) "$@" ${meet:-10.78.0.1} </dev/null >$out/client 2>&1 &
client=$!
await $client $out/client ip netns exec b $build/verbena stat $client
sleep 1
for m in $(seq $n); do
	at=$([ $((m % 2)) = 1 ] && echo c || echo b)
	kill -USR1 $server
	said=$($build/verbena move $client --to $at --with-addresses ${RESTORE:+--restore}) || break
	[ -z "$said" ] || client=$(echo $said | sed 's/.*is process \([0-9]*\) now/\1/')
	sleep 0.3
done
kill -USR1 $server
kill -INT $client
wait $server
while kill -0 $client 2>/dev/null; do sleep 0.1; done
grep -h "^pause" $out/server | tail -n +2 | sort -k2 -n | awk '{v[NR] = $2} END {
	print NR " moves: median " v[int((NR + 1) / 2)] " ms, p99 " v[int((NR * 99 + 99) / 100)] " ms, longest " v[NR] " ms"}'
tail -n 1 $out/client
rm -r $out
