# SPDX-License-Identifier: Apache-2.0
"""Plants real faults in servers of a Ceph file system on this machine, diagnoses each by real runs, and prints how
often fault and server are right.

Usage: .venv/bin/python tools/diagnosis_real_servers.py [--rounds N] [--minutes N] [--seed N] [--only TEXT]
[--out FILE].
Needs root, control groups of version 1 and `tools/system-packages storage`. All daemons are in namespaces that end with
this program. References are the last runs on the healthy system, as in diagnosis_real_faults.py.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tools"), str(ROOT / "tests" / "storage")]

from ceph_cluster import NEEDED, Ceph  # noqa: E402
from daemon_namespace import Room, lacking, no_throttle  # noqa: E402
from user import User  # noqa: E402

from diagnosis_real_faults import RULE, format_shares  # noqa: E402
from real_faults import RealFault  # noqa: E402
from sonde.diagnose.diagnosis import is_probable_enough, rank_hypotheses  # noqa: E402
from sonde.diagnose.diagnosis_session import DiagnosisSession  # noqa: E402
from sonde.diagnose.diagnosis_state import DiagnosisState  # noqa: E402
from sonde.diagnose.library import find_diagnosis_experiment  # noqa: E402
from sonde.diagnose.stated_machine import UnsimulatedMachine  # noqa: E402
from sonde.launch.engine import find_engine  # noqa: E402

_FIRST_REFERENCES, _MAX_REFERENCES = 4, 8
_MIB = 1 << 20
_OSDS = 4
# Only ratios of rates are compared, so rates are those of no particular machine.
_SYSTEM = """
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
    def name(self) -> str:
        return f"osd.{self.number}"

    @property
    def pid(self) -> int:
        return self.ceph.pid(self.number)

    @property
    def disk(self) -> Path:
        return self.ceph.disk(self.number)


SERVER_FAULTS: tuple[RealFault[Osd], ...] = (
    RealFault(
        "disk of one OSD limited",
        ("slow-target",),
        lambda osd, rate: osd.ceph.room.throttled(osd.pid, osd.disk, rate * _MIB),
        *(4, 30, "MiB/s"),
    ),
    RealFault(
        "one OSD stopped repeatedly",
        ("slow-target",),
        lambda osd, stopped_ms: osd.ceph.room.slowed(osd.pid, stopped_ms, 20),
        *(60, 300, "ms of each further 20 ms"),
    ),
    RealFault("healthy", ("nothing",), lambda *_: nullcontext()),
)


class RealServers:
    """Ceph in a room, with the model of the machine and the baseline of the experiments."""

    def __init__(self, room: Room, folder: Path) -> None:
        self.ceph = Ceph(room)
        self._user = User(room, find_engine(), folder)
        system = folder / "system.toml"
        system.write_text(_SYSTEM.replace("{path}", str(self.ceph.mount_path)), encoding="utf-8")
        self._opened = DiagnosisSession.open_session(DiagnosisState(system=str(system)), folder / "predictions")
        self._references: dict[str, list[Path]] = {}

    def measure(self, name: str) -> Path:
        """Runs an experiment in the room and returns the folder of the run."""
        experiment = self._opened.model.find_experiment(name)
        plan = json.loads(experiment.make_plan(str(self.ceph.mount_path)).to_json())
        if experiment.stripe_count:
            plan["target"]["striping"] = {"count": _OSDS, "size": _MIB}
        file = self._user.folder / f"{name}.json"
        file.write_text(json.dumps(plan), encoding="utf-8")
        done = self._user.sonde("run", file.name, "--no-report", "-q")
        if done.code:
            raise RuntimeError(f"{name}: {done}")
        return sorted(self._user.folder.glob("sonde-archive/2*/*"))[-1]

    def measure_baseline(self) -> None:
        """Measures each experiment on the healthy system, the first time repeatedly."""
        for name in _EXPERIMENTS:
            earlier = self._references.setdefault(name, [])
            earlier += [self.measure(name) for _ in range(1 if earlier else _FIRST_REFERENCES)]
            del earlier[:-_MAX_REFERENCES]

    def diagnose(self, fault: RealFault[Osd], strength: int, osd: Osd) -> dict[str, Any]:
        """Plants a fault and returns what the diagnosis said."""
        session = DiagnosisSession(
            self._opened.state, self._opened.model, UnsimulatedMachine(self._opened.model.machine)
        )
        with fault.plant(osd, strength):
            for name in _EXPERIMENTS:
                run, references = self.measure(name), self._references[name]
                session.add_stored_run(find_diagnosis_experiment(name), run, references)
        ranking = rank_hypotheses(session.posterior)
        first = ranking[0]
        kind = first.hypothesis.fault or first.hypothesis.id
        return {
            "planted": fault.name,
            "strength": f"{strength} {fault.unit}" if fault.unit else "",
            "planted_part": osd.name if fault.unit else "",
            "answer": first.hypothesis.id,
            "part": first.part,
            "probability": round(first.probability, 4),
            "is_right": kind in fault.answers and first.part == (osd.name if fault.unit else ""),
            "is_decided": is_probable_enough(first, RULE),
            "second": ranking[1].hypothesis.id,
            "experiments": [
                {
                    "id": item.experiment,
                    "rates": {name: round(value, 3) for name, value in item.runs[0].rates.items()},
                    "parts": [
                        [*key, {name: round(value, 3) for name, value in values.items()}]
                        for key, values in item.runs[0].vectors.items()
                    ],
                }
                for item in session.state.experiment_results
            ],
        }


def main() -> int:
    """Does rounds of trials and prints the table. Exit code 3 where the daemons cannot be started."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="times that each fault is planted")
    parser.add_argument("--minutes", type=float, default=60, help="no further trial after this time")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn strengths and servers")
    parser.add_argument("--only", default="", help="faults whose names have this text")
    parser.add_argument("--out", type=Path, help="file to which a JSON line is appended for each trial")
    options = parser.parse_args()
    if reason := lacking(*NEEDED) or no_throttle():
        print(f"No server can be started or slowed here: {reason}.", file=sys.stderr)
        return 3
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    end = time.monotonic() + 60 * options.minutes
    numbers = random.Random(options.seed)
    outcomes: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="sonde-real-servers-") as name:
        room = Room(Path(name))
        try:
            servers = RealServers(room, Path(name))
            for fault in options.rounds * [item for item in SERVER_FAULTS if options.only in item.name]:
                if time.monotonic() > end:
                    break
                servers.measure_baseline()
                outcome = servers.diagnose(
                    fault, fault.draw_strength(numbers), Osd(servers.ceph, numbers.randrange(_OSDS))
                )
                outcomes.append(outcome)
                verdict = "right" if outcome["is_right"] else "wrong"
                planted = f"{fault.name} {outcome['planted_part']} {outcome['strength']}"
                print(f"{planted} -> {outcome['answer']} {outcome['part']} ({verdict})", file=sys.stderr, flush=True)
                if options.out:
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(outcome) + "\n")
        finally:
            room.close()
    if outcomes:
        print(format_shares(outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
