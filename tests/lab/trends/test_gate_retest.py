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
def measured(sonde: Sonde, engine: Engine, archive: Path, target: Path, tmp_path: Path) -> list[Path]:
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


def scale(folder: Path, factor: float) -> None:
    """What the run says it measured, times a factor."""
    document = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    for phase in document["phases"]:
        phase["bytes_per_s"] *= factor
    # a rename, as every change in the archive: it is seen by the time stamp of the month
    edited = folder.parent / ".changed"
    edited.write_text(json.dumps(document), encoding="utf-8")
    edited.replace(folder / "run.json")


def test_one_good_repetition_opens_the_gate(sonde: Sonde, measured: list[Path]) -> None:
    scale(measured[5], 0.1)
    completed = sonde("gate", measured[5].name, "--baseline", "good", "--json")
    assert completed.code == 0, completed.err
    assert len(completed.json["runs"]) == 2
    assert completed.json["numbers"][0]["measured"] == pytest.approx([1e8, 1e9], rel=0.01)


def test_three_slow_runs_close_it(sonde: Sonde, measured: list[Path]) -> None:
    for folder in measured[:5]:
        scale(folder, 10)
    completed = sonde("gate", measured[5].name, "--baseline", "good", "--json")
    assert completed.code == 1, completed.err
    assert len(completed.json["runs"]) == 3
    assert completed.json["good"] is False
    again = [name for name in completed.json["runs"] if name != measured[5].name]
    runs_by_id = {run["id"]: run for run in sonde("list", "--json").json}
    assert all(runs_by_id[name]["role"] == "retest" and runs_by_id[name]["group"] == measured[5].name for name in again)


def test_without_retests_one_slow_run_is_enough(sonde: Sonde, measured: list[Path]) -> None:
    scale(measured[5], 0.1)
    assert sonde("gate", measured[5].name, "--baseline", "good", "--retests", "0").code == 1
