# SPDX-License-Identifier: Apache-2.0
"""Plants real faults in servers of a Ceph file system on this machine, diagnoses each by real runs, and prints how
often fault and server are right.

Usage: .venv/bin/python tools/diagnosis_real_servers.py [--rounds N] [--minutes N] [--seed N] [--only TEXT]
[--out FILE].
Needs root, control groups of version 1 and `tools/system-packages storage`. All daemons are in namespaces that end with
this program. References are the last runs on the healthy system, as in diagnosis_real_faults.py.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tools"), str(ROOT / "tests" / "storage")]

from ceph_cluster import NEEDED, Ceph  # noqa: E402
from daemon_namespace import Room, lacking, no_throttle  # noqa: E402
from user import User  # noqa: E402

from real_faults import limit_device  # noqa: E402
from real_trials import RealFault, RealMachine, parse_trial_options, run_trials  # noqa: E402
from sonde.diagnose.diagnosis_session import DiagnosisSession  # noqa: E402
from sonde.diagnose.diagnosis_state import DiagnosisState  # noqa: E402
from sonde.launch.engine import find_engine  # noqa: E402

_MIB = 1 << 20
# Only ratios of rates are compared, so rates are those of no particular machine.
_SYSTEM_TEMPLATE = """
schema = "sonde-system/2"
id = "one-host"
title = "Ceph with four OSDs, all daemons on one host"
[[networks]]
id = "loopback"
kind = "ethernet"
rate = "10 GB/s"
[[nodes]]
id = "client"
[[nodes.interfaces]]
network = "loopback"
[[servers]]
id = "storage"
roles = ["oss"]
[[servers.interfaces]]
network = "loopback"
[[servers]]
id = "metadata"
roles = ["mds", "mgs"]
[[servers.interfaces]]
network = "loopback"
[[targets]]
id = "osd.[0-3]"
kind = "osd"
index = 0
file_system = "fs"
server = "storage"
rate = "300 MB/s"
[[targets]]
id = "names"
kind = "mdt"
index = 0
file_system = "fs"
server = "metadata"
[[file_systems]]
id = "fs"
kind = "ceph"
[[mounts]]
id = "mount"
file_system = "fs"
path = "{path}"
on = "client"
"""
# What ceph-fuse can do: it has no page cache of the kernel to drop, and Ceph does not place files by number.
_EXPERIMENTS = ("every-target", "small-reads", "names", "warm-cache")


@dataclass(frozen=True)
class Osd:
    """A storage server in which a fault is planted."""

    ceph: Ceph
    number: int

    @property
    def pid(self) -> int:
        return self.ceph.pid(self.number)

    @property
    def device_number(self) -> str:
        """Major and minor number of the disk, as control groups name it."""
        device = int(self.ceph.room.output_of("stat", "-c", "%d", str(self.ceph.disk(self.number))))
        return f"{os.major(device)}:{os.minor(device)}"


@contextmanager
def _limit_network(room: Room, megabits_per_s: int) -> Iterator[None]:
    """All traffic of the room goes over its loopback device."""
    room.run(
        "tc",
        "qdisc",
        "add",
        "dev",
        "lo",
        "root",
        "tbf",
        "rate",
        f"{megabits_per_s}mbit",
        "burst",
        "256kb",
        "latency",
        "50ms",
    )
    try:
        yield
    finally:
        room.run("tc", "qdisc", "del", "dev", "lo", "root")


@contextmanager
def _lose_packets(room: Room, per_thousand: int) -> Iterator[None]:
    room.run("nft", "add table ip loss")
    try:
        room.run("nft", "add chain ip loss input { type filter hook input priority 0; }")
        room.run("nft", f"add rule ip loss input iif lo ip protocol tcp numgen random mod 1000 < {per_thousand} drop")
        yield
    finally:
        room.run("nft", "delete table ip loss")


SERVER_FAULTS: tuple[RealFault[Osd], ...] = (
    RealFault(
        "disk of an OSD limited",
        ("slow-target",),
        lambda osd, rate: limit_device(osd.device_number, "bps", rate * _MIB),
        *(4, 30, "MiB/s", True),
    ),
    RealFault(
        "an OSD stopped repeatedly",
        ("slow-target",),
        lambda osd, stopped_ms: osd.ceph.room.slowed(osd.pid, stopped_ms, 20),
        *(60, 300, "ms of each further 20 ms", True),
    ),
    RealFault(
        "network limited",
        ("slow-link", "network-wide"),
        lambda osd, rate: _limit_network(osd.ceph.room, rate),
        *(200, 1500, "Mbit/s"),
    ),
    RealFault(
        "packets lost", ("lossy-link",), lambda osd, rate: _lose_packets(osd.ceph.room, rate), *(5, 30, "of 1,000")
    ),
    RealFault("healthy", ("nothing",), lambda *_: nullcontext()),
)


class CephMachine(RealMachine[Osd]):
    """Ceph in a room, with an archive."""

    def __init__(self, room: Room, folder: Path) -> None:
        self._ceph = Ceph(room)
        self._user = User(room, find_engine().path, folder)
        system = folder / "system.toml"
        system.write_text(_SYSTEM_TEMPLATE.replace("{path}", str(self._ceph.mount_path)), encoding="utf-8")
        state = DiagnosisState(system=str(system))
        super().__init__(DiagnosisSession.open_session(state, folder / "predictions"), _EXPERIMENTS)

    def measure(self, experiment_id: str) -> Path:
        scaled = self.opened.model.find_experiment(experiment_id)
        plan = json.loads(scaled.make_plan(str(self._ceph.mount_path)).to_json())
        if scaled.stripe_count:
            plan["target"]["striping"] = {"count": scaled.stripe_count, "size": _MIB}
        file = self._user.folder / f"{experiment_id}.json"
        file.write_text(json.dumps(plan), encoding="utf-8")
        done = self._user.sonde("run", file.name, "--no-report", "-q")
        if done.code:
            raise RuntimeError(f"{experiment_id}: {done}")
        return sorted(self._user.folder.glob("sonde-archive/2*/*"))[-1]

    def draw_storage(self, generator: random.Random) -> tuple[Osd, str]:
        osd = Osd(self._ceph, generator.randrange(len(self._ceph.targets)))
        return osd, self._ceph.targets[osd.number]


def main() -> int:
    """Does rounds of trials and prints the table. Exit code 3 where the daemons cannot be started."""
    options = parse_trial_options(__doc__)
    if reason := lacking(*NEEDED, "tc", "nft") or no_throttle():
        print(f"No server can be started or slowed here: {reason}.", file=sys.stderr)
        return 3
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="sonde-real-servers-") as name:
        room = Room(Path(name))
        try:
            run_trials(CephMachine(room, Path(name)), SERVER_FAULTS, options)
        finally:
            room.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
