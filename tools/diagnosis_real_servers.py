# SPDX-License-Identifier: Apache-2.0
"""Plants real faults in servers, networks and nodes of file systems on this machine, diagnoses each by real runs, and
prints how often fault and part are right.

Usage: .venv/bin/python tools/diagnosis_real_servers.py [--machine ceph|gluster|nodes] [--rounds N] [--minutes N]
[--seed N] [--only TEXT] [--out FILE].
`ceph` and `gluster` have one client, `nodes` is Ceph with four client nodes. Needs root, control groups of version 1
and `tools/system-packages storage`. All daemons are in namespaces that end with this program. References are the last
runs on the healthy system, as in diagnosis_real_faults.py.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tools"), str(ROOT / "tests" / "storage")]

from ceph_cluster import NEEDED as CEPH_PROGRAMS  # noqa: E402
from daemon_namespace import Room, lacking, no_throttle  # noqa: E402
from gluster_cluster import NEEDED as GLUSTER_PROGRAMS  # noqa: E402

from real_clusters import (  # noqa: E402
    CephMachine,
    GlusterMachine,
    NodeMachine,
    StorageServer,
    limit_network,
    lose_packets,
)
from real_faults import limit_device  # noqa: E402
from real_nodes import ClientNode  # noqa: E402
from real_trials import RealFault, RealMachine, make_trial_parser, run_trials  # noqa: E402

_MIB = 1 << 20
# Running shorter than most requests, so that each is slowed. Requests take some 10 ms here, so shorter stops than those
# below cost less than the noise.
_RUNNING_MS = 3
HEALTHY: RealFault[Any] = RealFault("healthy", ("nothing",), lambda *_: nullcontext())
TARGET_FAULTS: tuple[RealFault[StorageServer], ...] = (
    RealFault(
        "disk of a server limited",
        ("slow-target",),
        lambda server, rate: limit_device(server.device_number, "bps", rate * _MIB),
        *(4, 30, "MiB/s", True),
    ),
    RealFault(
        "a server stopped repeatedly",
        ("slow-target",),
        lambda server, stopped_ms: server.stop_repeatedly(stopped_ms, _RUNNING_MS),
        *(12, 27, f"ms stopped, then {_RUNNING_MS} ms running", True),
    ),
)
NETWORK_FAULTS: tuple[RealFault[StorageServer], ...] = (
    RealFault(
        "network limited",
        ("slow-link", "network-wide"),
        lambda server, rate: limit_network(server.room, rate),
        *(200, 1500, "Mbit/s"),
    ),
    RealFault(
        "packets lost", ("lossy-link",), lambda server, rate: lose_packets(server.room, rate), *(5, 30, "of 1,000")
    ),
)
NODE_FAULTS: tuple[RealFault[ClientNode], ...] = (
    RealFault("network of a node limited", ("slow-link",), ClientNode.limit_network, *(200, 500, "Mbit/s", True)),
    RealFault(
        "processors of a node limited",
        ("slow-node",),
        ClientNode.limit_processors,
        *(5, 20, "% of one processor", True),
    ),
)
MACHINES: dict[str, tuple[Callable[[Room], RealMachine[Any]], Sequence[RealFault[Any]], Sequence[str]]] = {
    "ceph": (CephMachine, (*TARGET_FAULTS, *NETWORK_FAULTS, HEALTHY), CEPH_PROGRAMS),
    "gluster": (GlusterMachine, (*TARGET_FAULTS, HEALTHY), GLUSTER_PROGRAMS),
    "nodes": (NodeMachine, (*NODE_FAULTS, HEALTHY), (*CEPH_PROGRAMS, "ssh")),
}


def main() -> int:
    """Does rounds of trials and prints the table. Exit code 3 where the daemons cannot be started."""
    parser = make_trial_parser(__doc__)
    parser.add_argument("--machine", choices=MACHINES, default="ceph", help="file system and its clients")
    options = parser.parse_args()
    start_machine, faults, programs = MACHINES[options.machine]
    if reason := lacking(*programs, "tc", "nft") or no_throttle():
        print(f"No server can be started or slowed here: {reason}.", file=sys.stderr)
        return 3
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="sonde-real-servers-") as name:
        room = Room(Path(name))
        try:
            run_trials(start_machine(room), faults, options)
        finally:
            room.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
