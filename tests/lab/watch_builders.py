# SPDX-License-Identifier: Apache-2.0
"""A watch on simulated file systems: runs are files in a folder, and rates follow from probe and time."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sonde.model.confined_files import open_file_to_append
from sonde.watch.description import ChannelEntry, ProbeEntry, WatchFile
from sonde.watch.history_gate import ProbeNumber
from sonde.watch.notice_channels import deliver_notices
from sonde.watch.watch_state import StateStore
from sonde.watch.watcher import ProbeRun, RoundReport, Watcher

DAY_S = 86400.0
START = 1_767_225_600.0  # 2026-01-01
RateModel = Callable[[str, int], float]  # directory, day -> factor of the usual rate


@dataclass
class ModelRunner:
    """A `ProbeRunner` that stores runs as lines of a file. The same group and attempt has the same rate."""

    path: Path
    rate: RateModel
    clock: list[float]
    noise: float = 0.04
    phases: tuple[str, ...] = ("write", "read")
    localizations: list[str] = field(default_factory=list)

    def run_probe(self, probe: ProbeEntry, run_group: str) -> ProbeRun:
        """Stores one run."""
        attempt = len(self.find_probe_runs(run_group))
        day = int((self.clock[0] - START) // DAY_S)
        generator = random.Random(f"{run_group} {attempt}")
        rates = {
            phase: 1e9 * self.rate(f"{probe.on} {probe.plan} {phase}", day) * generator.lognormvariate(0, self.noise)
            for phase in self.phases
        }
        entry = {
            "group": run_group,
            "run": f"{run_group}-{attempt}",
            "started": self.clock[0],
            "rates": rates,
            "probe": probe.id,
        }
        with open_file_to_append(self.path) as file:
            file.write((json.dumps(entry) + "\n").encode())
        return self._convert(entry)

    def find_probe_runs(self, run_group: str) -> list[ProbeRun]:
        """Stored runs of the group."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        return [self._convert(entry) for line in lines if (entry := json.loads(line))["group"] == run_group]

    def localize_slow_part(self, probe: ProbeEntry, run_group: str) -> str:
        """Notes that it was called."""
        self.localizations.append(run_group)
        return "OST 7 is slow."

    def _convert(self, entry: dict[str, object]) -> ProbeRun:
        rates = entry["rates"]
        assert isinstance(rates, dict)
        measurements = tuple(
            ProbeNumber(f"{entry['probe']}-{phase}", {"phase": phase, "operation": phase}, "bytes/s", float(rate))
            for phase, rate in rates.items()
        )
        return ProbeRun(str(entry["run"]), float(str(entry["started"])), 5.0, measurements)


def make_watch(folder: Path, directories: int = 1, plans: int = 1, localize: str = "") -> WatchFile:
    """Probes of each plan on each directory, once a day, and one channel, a file."""
    probes = tuple(
        ProbeEntry(id=f"fs{number}-p{plan}", plan=f"p{plan}", on=f"/fs{number}", localize=localize)
        for number in range(directories)
        for plan in range(plans)
    )
    channel = ChannelEntry(id="log", to="file", path=str(folder / "notices.ndjson"))
    return WatchFile(schema="sonde-watch/1", probes=probes, channels=(channel,))


def run_day(
    watch_settings: WatchFile,
    folder: Path,
    runner: ModelRunner,
    day: int,
    describe_events: Callable[[float, float], str] = lambda last_before, first_after: "",
) -> RoundReport:
    """One round on that day, with a new process's view of the state, and the delivery of its notices."""
    runner.clock[0] = START + (day + 0.5) * DAY_S
    store = StateStore(folder / "watch")
    watcher = Watcher(watch_settings, store, runner, "node1", lambda: runner.clock[0], describe_events=describe_events)
    report = watcher.run_round()
    assert deliver_notices(watch_settings, watcher.state, store, "node1") == []
    return report


def read_notices(folder: Path) -> list[dict[str, str]]:
    """The notices in the file of the channel."""
    path = folder / "notices.ndjson"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
