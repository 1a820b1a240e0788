# SPDX-License-Identifier: Apache-2.0
"""Months of nightly probes with known changes: each is noticed in time, once, with its scope; noise stays silent.

The whole year (365 nights, 3 file systems, 4 tests, 12 changes) is a nightly test.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from watch_builders import START, ModelRunner, make_watch, read_notices, run_day

from sonde.watch.description import ProbeEntry
from sonde.watch.watch_state import StateStore
from sonde.watch.watcher import ProbeRun

# The operators of the test accept a lasting change after so many days.
DAYS_TO_ACCEPT = 15
FALSE_NOTICES_PER_HISTORY_AND_YEAR = 1.0


@dataclass(frozen=True)
class InjectedChange:
    """A drop of all histories on `directory` and of `plan` (empty: all). `last` is None for one that stays."""

    first: int
    directory: str
    plan: str
    factor: float
    last: int | None = None
    days_to_notice: int = 1

    def affects(self, directory: str, plan: str) -> bool:
        return self.directory in ("", directory) and self.plan in ("", plan)


CHANGES = (
    InjectedChange(25, "/fs1", "", 0.6, last=32),
    InjectedChange(52, "", "p1", 0.5),
    InjectedChange(80, "/fs0", "p0", 0.7),
    InjectedChange(108, "/fs2", "", 0.75, last=115),
    InjectedChange(134, "/fs0", "", 0.7),
    InjectedChange(160, "", "p3", 0.6),
    InjectedChange(186, "/fs2", "p2", 0.4, last=190),
    InjectedChange(212, "/fs1", "", 0.7),
    InjectedChange(240, "", "", 0.6),
    InjectedChange(268, "/fs2", "p0", 0.87, days_to_notice=20),
    InjectedChange(300, "/fs1", "p1", 0.5),
    InjectedChange(330, "", "p2", 0.7),
)


class RunnerInMemory(ModelRunner):
    """Keeps the runs of the current night only."""

    def find_probe_runs(self, run_group: str) -> list[ProbeRun]:
        return []

    def run_probe(self, probe: ProbeEntry, run_group: str) -> ProbeRun:
        self.path.unlink(missing_ok=True)
        self.attempts = getattr(self, "attempts", 0) + 1
        return super().run_probe(probe, f"{run_group}-{self.attempts}")


def simulate(folder: Path, days: int, directories: int, plans: int) -> list[tuple[int, InjectedChange | None, str]]:
    """The days on which incidents opened, the change that each belongs to, and its summary."""
    changes = [change for change in CHANGES if change.first < days - 1]

    def rate(name: str, day: int) -> float:
        directory, plan, _ = name.split()
        value = 1.0
        for change in changes:
            is_active = change.first <= day and (change.last is None or day <= change.last)
            value *= change.factor if is_active and change.affects(directory, plan) else 1.0
        return value

    watch = make_watch(folder, directories, plans)
    runner = RunnerInMemory(folder / "runs.ndjson", rate, [START], 0.04, ("write",))
    store = StateStore(folder / "watch")
    opened: list[tuple[int, InjectedChange | None, str]] = []
    for day in range(days):
        for incident in run_day(watch, folder, runner, day).opened:
            cause = next(
                (change for change in changes if change.first <= day <= change.first + change.days_to_notice), None
            )
            opened.append((day, cause, incident.summary))
        state = store.load_state()
        for incident in state.list_open_incidents():
            if runner.clock[0] - incident.opened > DAYS_TO_ACCEPT * 86400:
                state.accept_level(incident, runner.clock[0])
                store.save_state(state)
    return opened


def check_year(folder: Path, days: int, directories: int, plans: int) -> None:
    opened = simulate(folder, days, directories, plans)
    expected = [change for change in CHANGES if change.first < days - 1]
    causes = [cause for _, cause, _ in opened if cause is not None]
    assert causes == expected, opened
    false_notices = len(opened) - len(causes)
    assert false_notices <= FALSE_NOTICES_PER_HISTORY_AND_YEAR * directories * plans * days / 365, opened
    for _, cause, summary in opened:
        if cause is None:
            continue
        if cause.directory and cause.plan:
            assert f"on {cause.directory} fell by" in summary
        elif cause.directory or cause.plan:
            scope = f"directory {cause.directory}" if cause.directory else f"plan {cause.plan}"
            assert f"in common: {scope} (" in summary or f"in common: {scope}." in summary
        else:
            assert "in common: everything" in summary
    notices = read_notices(folder)
    assert len({notice["id"] for notice in notices}) == len(notices)
    assert sum(notice["kind"] == "slower" for notice in notices) == len(opened)
    fixed = sum(notice["kind"] == "fixed" for notice in notices)
    assert fixed >= sum(change.last is not None for change in expected)


def test_months_of_probes_give_one_notice_for_each_change(tmp_path: Path) -> None:
    check_year(tmp_path, 100, 2, 3)


@pytest.mark.nightly
def test_year_of_probes_gives_one_notice_for_each_change(tmp_path: Path) -> None:
    check_year(tmp_path, 365, 3, 4)
