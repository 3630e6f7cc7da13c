# SPDX-License-Identifier: BSD-2-Clause
"""Who has a congestion control: each path of two hosts, each path of a queue pair, or a queue pair for all its paths."""
from reproduce.goals import share
from reproduce.robust import last_us
from reproduce.run import Run, Table, done

TITLE = "Scopes of congestion control"

SCOPES = ("hosts", "path", "qp")
ALGORITHMS = (("swift", []), ("dctcp", ["cc.algorithm=dctcp"]), ("dcqcn+w", ["cc.algorithm=dcqcn", "cc.window=on"]))


def runs(quick):
    out = []
    for scope in SCOPES:
        for name, sets in ALGORITHMS[:1] if quick else ALGORITHMS:
            sets = [f"cc.scope={scope}", *sets]
            out.append(Run(f"incast-{name}-{scope}", "tree-incast", *sets))
            out.append(Run(f"permutation-{name}-{scope}", "tree-permutation", *sets))
            out.append(Run(f"a2a-{name}-{scope}", "goal-all-to-all", "workload.a2a.size=32MB", *sets))
            out.append(Run(f"degraded-{name}-{scope}", "goal-all-to-all", "workload.a2a.size=32MB", "failures.degraded=1%", *sets))
    return out


def page(runs, out):
    named, table = done(runs), Table()
    for name, _ in ALGORITHMS:
        for scope in SCOPES:
            i, p, a, d = (named.get(f"{kind}-{name}-{scope}") for kind in ("incast", "permutation", "a2a", "degraded"))
            if not (i and p and a and d):
                continue
            table.row(f"{name}, scope {scope}: 128 x 4 MB into one; permutation of 128 x 10 MB; all-to-all of 128 hosts, 32 MB; the same "
                      "with 1 % of the links at half rate: of ideal", "values, side by side",
                      f"{4359000 / last_us(i):.1f} % ({i.figure('dropped_packets')} drops, queue {i.figure('queue_max') / 1e6:.1f} MB); "
                      f"{86400 / last_us(p):.1f} %; {share(a):.1f} %; {share(d):.1f} %", None, i, p, a, d)
    table.write(out)
