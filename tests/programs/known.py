# SPDX-License-Identifier: BSD-2-Clause
"""
The programs of Debian 12 that are known to use verbs: how each is run over Verbena, and what must come of it. One row
is one case of programs.py, and one example of docs/programs.md, which matrix.py writes from this table and from what
has passed.

In commands {A} is the address of the server's end, {B} of the client's, {D} a folder, {EXAMPLES} where tests/programs is. Both ends run
under `verbena run`.
"""
import dataclasses

VETH = ("veth1500-4",)
VETH6 = ("veth1500-6",)
LO = ("lo4",)
RSPRELOAD = "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"
UCX_RDMACM = "UCX_NET_DEVICES=verbena0:1 UCX_TLS=rc_verbs,ud_verbs,self UCX_SOCKADDR_TLS_PRIORITY=rdmacm "
UCX_MPI = "-x UCX_NET_DEVICES=verbena0:1 -x UCX_TLS=rc_verbs,ud_verbs,self"
MGID = "0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:9"
OMPI = "mpirun.openmpi --allow-run-as-root --oversubscribe "


@dataclasses.dataclass(frozen=True)
class Known:
    name: str  # of the case
    package: str  # whose version the page tells; what it needs is in cmake/packages.txt
    server: str  # a command with its environment; empty: there is one end
    client: str
    want: str = ""  # a pattern that the client's output must have
    server_want: str = ""
    note: str = ""  # on the page, after the commands
    needs: tuple = ()  # programs and files without which the case is skipped
    make: str = ""  # a shell command that builds the program first
    places: tuple = LO
    stays: bool = False  # the server serves on
    again: bool = False  # the client is run until the server has what it waits for
    race: str = ""  # a pattern by which the client tells that it came into a race of the program's own: both ends start again
    proof: bool = False  # it would run without Verbena too: packets must be seen
    all: bool = False  # takes long: `make test-all`
    seconds: int = 60


def both(words, server="", client=" -s {A}"):
    return words + server, words + client


def rows(package, *known, **common):
    return [Known(**{"package": package, **common, **k}) for k in known]


def pair(name, words, server="", client=" -s {A}", **more):
    s, c = both(words, server, client)
    return dict(name=name, server=s, client=c, **more)


KNOWN = rows(
    "rdmacm-utils",
    dict(name="rping", server="rping -s -a {A} -C 10 -v -V", client="rping -c -a {A} -C 10 -v -V",
         want=r"(?s)(ping data.*){10}", server_want=r"(?s)(ping data.*){10}"),
    dict(name="rping_q", server="rping -s -q -a {A} -C 10", client="rping -c -q -a {A} -C 10",
         note="the program moves the queue pair itself"),
    dict(name="rping_p", server="rping -s -P -a {A}", client="rping -c -a {A} -C 10", stays=True,
         note="a server for many clients"),
    dict(name="ucmatose", server="ucmatose -b {A} -c 20 -C 20 -S 4096", client="ucmatose -s {A} -c 20 -C 20 -S 4096",
         want="return status 0", server_want="return status 0"),
    dict(name="udaddy", server="udaddy -b {A} -c 5 -C 10", client="udaddy -s {A} -c 5 -C 10", want="return status 0",
         server_want="return status 0"),
    dict(name="mckey", server="mckey -m 239.1.2.3 -b {A} -C 10", client="mckey -m 239.1.2.3 -b {B} -s -C 10",
         want="return status 0", server_want="data transfers complete", again=True, places=LO + VETH,
         note="multicast through rdma_cm; with -o the sender joins as one that only sends"),
    dict(name="mckey_l", server="mckey -m 239.1.2.3 -b {A} -C 10", client="mckey -m 239.1.2.3 -b {B} -s -l -C 10",
         want="return status 0", server_want="data transfers complete", again=True, places=VETH, all=True,
         note="no process on the sender's own host gets what it sends"),
    dict(name="mckey_ipv6", server="mckey -m ff0e::77 -b {A} -C 10", client="mckey -m ff0e::77 -b {B} -s -o -C 10",
         want="return status 0", server_want="data transfers complete", again=True, places=VETH6),
    dict(name="rdma_client", server="rdma_server", client="rdma_client -s {A}", want="end 0"),
    dict(name="rdma_xclient", server="rdma_xserver -c x", client="rdma_xclient -c x -s {A}", want="end 0", server_want="end 0",
         places=LO + VETH, note="XRC through rdma_cm; with -c r RC"),
    dict(name="cmtime", server="cmtime -c 50", client="cmtime -s {A} -c 50", want="connect +:", stays=True),
    pair("rstream", "rstream -S 65536 -C 20 -I 2 -T v", want=r"65536|64k"),
    pair("rstream_bare", "rstream -S 1000 -C 20 -I 5", want="custom +1000"),
    # riostream's server listens first and says how many mappings it takes after that: a client between the two gets none.
    pair("riostream", "riostream -S 4096 -C 10 -I 1", want="custom +4k", race="riomap: Cannot allocate memory"),
    dict(name="rcopy", server="rcopy", client="rcopy {D}/file {A}:{D}/copy", stays=True, want="bytes in"),
)
KNOWN += rows(
    "librdmacm1",
    dict(name="rspreload", package="iperf", server=RSPRELOAD + " iperf -s -P 1", client=RSPRELOAD + " iperf -c {A} -n 2M",
         want=r"bits/sec", proof=True, needs=("/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so",),
         note="an ordinary TCP program over RDMA, by librspreload of librdmacm1"),
)
KNOWN += rows(
    "perftest",
    *[dict(name=name, server=words + " -F -n 200", client=words + " -F -n 200 {A}", want=r"\n *\d+ +\d+ +[\d.]+")
      for name, words in (("send_bw_R", "ib_send_bw -R"), ("write_lat_R", "ib_write_lat -R"))],
    *[dict(name=name, server=words + " -F -n 200", client=words + " -F -n 200 {A}", want=r"\n *\d+ +\d+ +[\d.]+", all=True)
      for name, words in (("read_bw_R", "ib_read_bw -R"), ("atomic_bw_R", "ib_atomic_bw -R"),
                          ("send_ud_R", "ib_send_bw -R -c UD"), ("write_R_q", "ib_write_bw -R -q 4"),
                          ("write_R_T", "ib_write_bw -R -T 96"), ("send_z", "ib_send_bw -z"))],
    dict(name="send_mcast", server="ib_send_bw -c UD -g -M %s -F -n 200" % MGID, places=VETH,
         client="ib_send_bw -c UD -g -M %s -F -n 200 {A}" % MGID, want=r"\n *\d+ +\d+ +[\d.]+",
         note="the group is 239.1.2.9; perftest's own, without -M, is interface-local: it needs an IPv6 GID (-x), and one host"),
)
KNOWN += rows(
    "perftest",
    *[dict(name=verb + "_xrc", server="ib_%s_bw -c XRC -F -n 200" % verb, client="ib_%s_bw -c XRC -F -n 200 {A}" % verb,
           want=r"\n *\d+ +\d+ +[\d.]+", all=verb in ("read", "atomic")) for verb in ("send", "write", "read", "atomic")],
)
KNOWN += rows(
    "ibverbs-utils",
    dict(name="xsrq_pingpong", server="ibv_xsrq_pingpong -g 0", client="ibv_xsrq_pingpong -g 0 {A}", want="success",
         server_want="success", note="a server for one client: with -c 2 it sends to one client by the other's queue pair"),
)
QPERF = ("rc_bw rc_bi_bw rc_rdma_write_bw rc_rdma_write_lat rc_rdma_write_poll_lat rc_rdma_read_bw "
         "rc_rdma_read_lat rc_fetch_add_mr rc_compare_swap_mr ver_rc_fetch_add ver_rc_compare_swap").split()
KNOWN += rows(
    "qperf",
    dict(name="qperf", server="qperf", client="qperf -t 1 -cm1 {A} rc_lat", want="latency *=", stays=True),
    *[dict(name="qperf_" + t, server="qperf", client="qperf -t 1 -cm1 {A} " + t, want="(latency|bw|msg_rate) *=",
           stays=True, all=True) for t in QPERF],
)
FIO = "fio --ioengine=rdma --port=7204 --bs=64k --size=2m "
KNOWN += rows(
    "fio",
    *[dict(name="fio_" + verb, server=FIO + "--rw=read --iodepth=16 --name=s --verify=crc32c",
           client=FIO + "--hostname={A} --verb=%s --rw=write --iodepth=16 --name=c --verify=crc32c" % verb,
           want="err= 0", server_want="err= 0", all=verb == "read") for verb in ("write", "read")],
    dict(name="fio_send", server=FIO + "--rw=read --iodepth=32 --name=s --verify=crc32c",
         client=FIO + "--hostname={A} --verb=send --rw=write --iodepth=16 --name=c --verify=crc32c --do_verify=0",
         want="err= 0", server_want="err= 0", all=True,
         note="the server's iodepth is as large as the file, because fio's SENDs ask for no RNR retries"),
)
KNOWN += rows(
    "ucx-utils",
    dict(name="ucx_default", server="ucx_perftest", client="ucx_perftest {A} -f -t tag_lat -s 8 -n 200", want=r"\n +200 ",
         places=VETH, note="UCX's own choice of transports", proof=True),
    *[dict(name="ucx_" + t, server="UCX_TLS=rc,self ucx_perftest",
           client="UCX_TLS=rc,self ucx_perftest {A} -f -t %s -n 200" % t, want=r"\n +200 ", all=True)
      for t in ("tag_bw", "stream_lat", "ucp_am_lat", "ucp_put_lat", "ucp_get", "ucp_add", "ucp_fadd", "ucp_swap",
                "ucp_cswap")],
    dict(name="ucx_ud", server="UCX_TLS=ud_verbs,self ucx_perftest",
         client="UCX_TLS=ud_verbs,self ucx_perftest {A} -f -t tag_lat -n 200", want=r"\n +200 ", all=True),
    dict(name="io_demo", server=UCX_RDMACM + "io_demo -p 1337", client=UCX_RDMACM + "io_demo -p 1337 -i 50 -o read,write {A}",
         want="status 'OK'", stays=True, places=VETH, note="connects by rdma_cm"),
    dict(name="ucp_client_server", package="libucx-dev", server="{D}/ucp_client_server", client="{D}/ucp_client_server -a {A}",
         make="cc -O1 -o {D}/ucp_client_server /usr/share/doc/libucx-dev/examples/ucp_client_server.c -lucp -lucs",
         needs=("/usr/share/doc/libucx-dev/examples/ucp_client_server.c",), stays=True, all=True, places=VETH),
)
KNOWN += rows(
    "libfabric-bin",
    dict(name="fi_info", server="", client="fi_info -p verbs", want=r"(?s)verbena0.*FI_PROTO_RDMA_CM_IB_RC"),
    dict(name="fi_msg", server="fi_pingpong -p verbs -e msg", client="fi_pingpong -p verbs -e msg {A}", want=r"\n1m +10 ",
         all=True),
    dict(name="fi_rdm", all=True, server="fi_pingpong -p verbs;ofi_rxm -e rdm", client="fi_pingpong -p verbs;ofi_rxm -e rdm {A}",
         want=r"\n1m +10 "),
    dict(name="fi_dgram", server="fi_pingpong -p verbs -e dgram", client="fi_pingpong -p verbs -e dgram {A}",
         want=r"\n1k +10 ", all=True),
    places=VETH,
)
MPICC = "mpicc.%s -O1 -o {D}/allreduce {EXAMPLES}/allreduce.c"
WANT_MPI = "%d ranks, 0 wrong"
KNOWN += rows(
    "openmpi-bin",
    *[dict(name="openmpi_ucx_%d" % n, server="",
           client=OMPI + "-np %d --mca pml ucx --mca osc ucx --mca pml_ucx_devices any --mca pml_ucx_tls any %s "
           "{D}/allreduce" % (n, UCX_MPI), want=WANT_MPI % n, all=n == 16) for n in (4, 16)],
    dict(name="openmpi_ofi", server="", client=OMPI + "-np 2 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "
         "verbs;ofi_rxm --mca osc pt2pt {D}/allreduce", want=WANT_MPI % 2, places=VETH, all=True),
    make=MPICC % "openmpi", proof=True, seconds=120,
)
KNOWN += rows(
    "mpich",
    *[dict(name="mpich_%d" % n, server="",
           client="UCX_NET_DEVICES=verbena0:1 UCX_TLS=rc_verbs,ud_verbs,self mpiexec.mpich -n %d {D}/allreduce" % n,
           want=WANT_MPI % n) for n in (4, 16)],
    make=(MPICC % "mpich") + " -DNO_WINDOWS", proof=True, all=True, seconds=120,
)
PYVERBS = "cp -r /usr/share/doc/rdma-core/tests {D} && gunzip -f {D}/tests/*.gz"
KNOWN += rows(
    "python3-pyverbs",
    dict(name="pyverbs_rdmacm", server="", client="/usr/bin/python3 {D}/tests/run_tests.py --dev verbena0 --gid 0 -k test_rdmacm.",
         want=r"\nOK", all=True),
    dict(name="pyverbs", server="", client="/usr/bin/python3 {D}/tests/run_tests.py --dev verbena0 --gid 0 -k test_qp. -k test_cq "
         "-k test_device -k test_mr -k test_pd -k test_addr", want=r"\nOK"),
    dict(name="pyverbs_memory", server="", client="/usr/bin/python3 {D}/tests/run_tests.py --dev verbena0 --gid 0 -k OdpTestCase "
         "-k ParentDomain -k DeviceMemory -k DMTest -k SharedPD -k rc_atomic_write",
         want=r"Ran 39 tests in .*\n\nOK( \(skipped=[1-3]\))?\n", note="the three tests that are skipped need huge pages"),
    dict(name="pyverbs_all", server="", client="/usr/bin/python3 {D}/tests/run_tests.py --dev verbena0 --gid 0", want=r"\nOK",
         all=True, note="the whole suite; what it skips, the device says that it lacks"),
    make=PYVERBS, needs=("/usr/share/doc/rdma-core/tests/run_tests.py",), places=VETH, seconds=120,
)
KNOWN += rows(
    "librpma-dev",
    dict(name="librpma", server="{D}/rpma {A} 7777", client="{D}/rpma {A} 7777 write", want="written and flushed",
         server_want="found what was written", make="cc -O1 -o {D}/rpma {EXAMPLES}/rpma.c -lrpma -libverbs",
         needs=("/usr/include/librpma.h",)),
)
KNOWN += rows(
    "libibverbs1",
    dict(name="dlopen", server="", client="{D}/dlopen_verbs", make="cc -O1 -o {D}/dlopen_verbs {EXAMPLES}/dlopen_verbs.c -ldl",
         want="all found", note="as NCCL does: dlopen(), versioned symbols, the GID table and its types in sysfs, ECE"),
)

# What does not work, and why: the page's last section.
LACKING = [
    ("ibv_xsrq_pingpong -c 2 and MPI's use of XRC", "share an XRC domain between processes of a host. Each process under Verbena "
     "has its own ([verbs.md](verbs.md), 3.7). The first request for another process's SRQ ends the "
     "queue pairs, with a line on standard error at the target; the program looks at no errors then, and waits until it is ended."),
    ("udpong", "a datagram rsocket of librdmacm sends to itself by an address handle that has the port's LID and no GRH "
     "(ds_add_qp_dest() in rsocket.c). RoCE has no LIDs, and Linux refuses the handle on each RoCE device: over rxe the program ends "
     "in the same way. To take LID 0 for this host would lead other programs' datagrams astray."),
    ("qperf's uc_ and ud_ tests, and rc_ tests without -cm1", "ib_prep() in its rdma.c names the peer by a LID without a GRH, whatever "
     "the port's link layer, and RoCE has no LIDs. The rc_ tests work with -cm1, by rdma_cm; rd_params() turns that off for all others."),
    ("iperf3 over librspreload", "stalls after 128 KiB, which is an rsocket's receive buffer, over rxe as well; why was not found out. "
     "iperf (version 2) works."),
    ("socat, Python, curl over librspreload", "socat crashes with librspreload alone, without any device; rsocket() knows the bare "
     "types of sockets, so those that a program opens with SOCK_CLOEXEC or SOCK_NONBLOCK become TCP's, and librspreload does not say "
     "so. `verbena stat` shows whether a program is on Verbena."),
    ("nc.traditional with -q over librspreload", "its data get through, but it never ends: a signal handler of its own "
     "closes the socket in the middle of a poll, and waits for a lock of librdmacm's that the poll holds."),
    ("libfabric's msg and rdm endpoints on a host that has only a loopback interface", "libfabric leaves out loopback "
     "interfaces; dgram works there."),
    ("Open MPI's btl openib", "Debian's build has no rdmacm connector, and RoCE needs that one."),
    ("librpma's server at 127.0.0.1", "on a host with other addresses: as with Linux, an id that is bound to a loopback "
     "address has no device there. Give it another address of the host."),
    ("MPICH's windows", "give wrong results between processes of one host in Debian's build, without Verbena as well."),
    ("fio with verb=send and an iodepth as large as the server's", "fio's SENDs ask for no RNR retries, so a server that is "
     "late ends the connection, on any device; give the server a larger iodepth."),
]
