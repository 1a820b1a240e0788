# SPDX-License-Identifier: Apache-2.0
"""A slow run is repeated at once: one good repetition opens the gate, three slow runs close it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sonde.findings.classification import Classification
from sonde.launch.engine import Engine
from sonde.store.archive import Archive
from sonde.store.summary import Summary, read_summary
from sonde.trends.archive_gate import gate_against_baseline, gate_against_limits
from sonde.trends.stated_limits import parse_limit

Sonde = Callable[..., Any]
PLAN = """
schema = "sonde-plan/2"
id = "known"
[data]
backend = "paced"
access = { transfer = "1MB", volume = "100MB" }
paced = { virtual_clock = true, schedule = [{ at = "0s", rate = "1GB/s" }] }
[[phases]]
id = "read"
op = "read"
"""


@pytest.fixture(autouse=True)
def known_answers_stand_for_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend with known answers is synthetic, so the gate would not judge its numbers."""
    monkeypatch.setattr(Classification, "is_judged", property(lambda self: True))


@pytest.fixture
def measured_runs(sonde: Sonde, engine: Engine, archive: Path, target: Path, tmp_path: Path) -> list[Path]:
    """Six runs at exactly 1 GB/s; the first five are the baseline."""
    plan = tmp_path / "known.toml"
    plan.write_text(PLAN, encoding="utf-8")
    folders = []
    for _ in range(6):
        completed = sonde("run", plan, "--on", target, "--no-report", "--json")
        assert completed.code == 0, completed.err
        folders.append(Path(completed.json["folder"]))
    sonde("baseline", "set", "good", *(folder.name for folder in folders[:5]))
    return folders


def scale_stored_rates(folder: Path, factor: float) -> None:
    """Multiplies the stored rates of a run by a factor."""
    document = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    for phase in document["phases"]:
        phase["bytes_per_s"] *= factor
    # a rename, as every change in the archive: it is seen by the time stamp of the month
    edited = folder.parent / ".changed"
    edited.write_text(json.dumps(document), encoding="utf-8")
    edited.replace(folder / "run.json")


def test_one_good_repetition_opens_the_gate(sonde: Sonde, measured_runs: list[Path]) -> None:
    scale_stored_rates(measured_runs[5], 0.1)
    completed = sonde("gate", measured_runs[5].name, "--baseline", "good", "--json")
    assert completed.code == 0, completed.err
    assert len(completed.json["runs"]) == 2
    assert completed.json["numbers"][0]["measured"] == pytest.approx([1e8, 1e9], rel=0.01)


def test_three_slow_runs_fail_the_gate(sonde: Sonde, measured_runs: list[Path]) -> None:
    for folder in measured_runs[:5]:
        scale_stored_rates(folder, 10)
    completed = sonde("gate", measured_runs[5].name, "--baseline", "good", "--json")
    assert completed.code == 1, completed.err
    assert len(completed.json["runs"]) == 3
    assert completed.json["good"] is False
    again = [name for name in completed.json["runs"] if name != measured_runs[5].name]
    runs_by_id = {run["id"]: run for run in sonde("list", "--json").json}
    assert all(
        runs_by_id[name]["role"] == "retest" and runs_by_id[name]["group"] == measured_runs[5].name for name in again
    )


def test_without_retests_one_slow_run_is_enough(sonde: Sonde, measured_runs: list[Path]) -> None:
    scale_stored_rates(measured_runs[5], 0.1)
    assert sonde("gate", measured_runs[5].name, "--baseline", "good", "--retests", "0").code == 1


def add_group(add_run: Callable[..., Path]) -> None:
    """Adds one group of three plans, each with one phase that the others have not."""
    for minute, (plan, phase, op) in enumerate((("w", "write", "write"), ("r", "read", "read"), ("f", "stat", "stat"))):
        add_run(minute / 1440, {(phase, op): 1e9}, plan=plan, group="check")


@pytest.mark.parametrize(
    ("limits", "repeated"),
    [
        (["write=2GB/s"], ["w"]),
        (["write=2GB/s", "stat=1MB/s"], ["w"]),
        (["read=2GB/s", "write=2GB/s"], ["r", "w"]),
        (["write=1MB/s"], []),
    ],
)
def test_gate_on_a_group_repeats_the_plan_of_the_slow_number(
    archive: Path, add_run: Callable[..., Path], limits: list[str], repeated: list[str]
) -> None:
    add_group(add_run)
    plans: list[str] = []

    def repeat(run_summary: Summary) -> Summary:
        plans.append(run_summary.plan)
        rates = {(str(phase["phase"]), str(phase["op"])): 3e9 for phase in run_summary.phases}
        return read_summary(add_run(1, rates, plan=run_summary.plan, group="check"))

    verdict = gate_against_limits(Archive(archive), "check", [parse_limit(text) for text in limits], 2, repeat)
    assert verdict.is_good
    assert plans == repeated


def test_gate_against_a_baseline_repeats_the_plan_of_the_slow_number(
    archive: Path, add_run: Callable[..., Path]
) -> None:
    for day in range(-9, 0):
        add_run(day, {("write", "write"): 3e9}, plan="w", group="before")
    add_group(add_run)
    plans: list[str] = []

    def repeat(run_summary: Summary) -> Summary:
        plans.append(run_summary.plan)
        return read_summary(add_run(1, {("write", "write"): 1e9}, plan="w", group="check"))

    verdict = gate_against_baseline(Archive(archive), "check", "plan:w", 2, repeat)
    assert verdict.is_good is False
    assert plans == ["w", "w"]
    assert len(verdict.now.runs) == 5
