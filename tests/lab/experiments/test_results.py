# SPDX-License-Identifier: Apache-2.0
"""Results of an experiment are found in the archive, whatever else is there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sonde.conduct.run import RunSetup, conduct_run
from sonde.experiments.results import RunPlacement, build_experiment, hash_experiment, read_group_results
from sonde.launch.engine import find_engine
from sonde.model.errors import UserError
from sonde.model.plan import Plan
from sonde.store.archive import Archive
from sonde.store.groups import write_group_request

Fake = Callable[..., Path]

DOCUMENT: dict[str, Any] = {
    "schema": "sonde-experiment/2",
    "id": "two-sizes",
    "plan": {
        "data": {"access": {"transfer": "64KiB", "block": "64KiB", "volume": "1MiB"}},
        "phases": [{"id": "write", "op": "write"}],
    },
    "sweep": [
        {"paths": ["data.access.transfer", "data.access.block"], "values": [["4KiB", "4KiB"], ["64KiB", "64KiB"]]}
    ],
    "profiles": {"ci": {"data.access.volume": "256KiB"}},
}


def store_fake_run(
    archive: Archive, group: str, cell: int, repeat: int, run_number: int, warm_up: bool = False
) -> None:
    """A run of a cell, by the fake engine."""
    experiment = build_experiment(DOCUMENT, "x.toml", "ci", [])
    grid_cell = experiment.cells[cell]
    placement = RunPlacement(
        experiment.id,
        hash_experiment(experiment),
        grid_cell.id,
        grid_cell.coordinates,
        grid_cell.plan,
        "",
        repeat,
        warm_up,
        "ci",
        1,
        run_number,
    )
    plan = experiment.build_plan_of_cell(grid_cell, "/fake")
    role = "calibration" if warm_up else "run"
    conduct_run(
        plan,
        RunSetup(find_engine(), archive),
        lambda kind, line: None,
        extra_run_facts={"group": group, "role": role, **placement.to_facts()},
    )


def test_runs_of_cell_are_in_order_of_time(fake_engine: Fake, archive: Path) -> None:
    fake_engine()
    store = Archive(archive)
    request = {"document": DOCUMENT, "origin": "x.toml", "profile": "ci", "settings": ["data.access.volume=128KiB"]}
    write_group_request(archive, "g1", request | {"refusals": {"transfer=1MiB": "No space."}})
    store_fake_run(store, "g1", 1, 0, 1, warm_up=True)
    store_fake_run(store, "g1", 1, 0, 3)
    store_fake_run(store, "g1", 0, 0, 2)
    retest = {"group": "g1", "role": "retest", "experiment": {"nodes": 3}}  # as another tool has such a member
    other = Plan.from_document(DOCUMENT["plan"] | {"target": {"path": "/fake"}}, "x")
    conduct_run(other, RunSetup(find_engine(), store), lambda kind, line: None, extra_run_facts=retest)
    store_fake_run(store, "g2", 0, 0, 0)

    results = read_group_results(store, "last")
    assert [(run.cell, run.repeat, run.warm_up) for run in results.runs] == [
        ("transfer=64KiB", 0, True), ("transfer=4KiB", 0, False), ("transfer=64KiB", 0, False)]  # fmt: skip
    assert results.runs[1].axis_values == {"transfer": "4KiB"}
    assert [
        len(results.list_runs_of_cell("transfer=64KiB")),
        len(results.list_runs_of_cell("transfer=64KiB", is_warm_up=True)),
    ] == [
        1,
        1,
    ]
    assert results.refusals == {"transfer=1MiB": "No space."}
    plan = results.experiment.build_plan_of_cell(results.experiment.cells[0], "/x")
    assert plan.document["data"]["access"]["volume"] == "128KiB"  # the setting comes after the profile
    assert results.profile == "ci"


def test_missing_experiment_is_reported(archive: Path) -> None:
    write_group_request(archive, "20261122T100000Z-edison-ab", {"document": DOCUMENT})
    with pytest.raises(UserError, match='There is no experiment "cray" in the archive'):
        read_group_results(Archive(archive), "cray")


def test_removing_all_runs_removes_experiment(fake_engine: Fake, archive: Path, sonde: Any) -> None:
    fake_engine()
    for group in ("g1", "g2"):
        write_group_request(archive, group, {"document": DOCUMENT, "origin": "x.toml", "profile": "", "settings": []})
        store_fake_run(Archive(archive), group, 0, 0, 0)
    assert sonde("rm", "g1", "--group", "--yes").code == 0
    assert [path.name for path in (archive / "experiments").iterdir()] == ["g2"]


def test_run_of_killed_runner_is_active_until_engine_ends(archive: Path) -> None:
    store = Archive(archive)
    draft = store.begin_run("p", "{}", {"group": "g1"})
    assert store.list_unfinished_runs_of_group("g1") == [], "what we write ourselves is not somebody else's"
    engine = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        draft.record_writer_processes(engine.pid)
        assert store.list_unfinished_runs_of_group("g1") == [draft.folder]
        assert store.list_unfinished_runs_of_group("g2") == []
    finally:
        engine.communicate(b"\n")
    assert store.list_unfinished_runs_of_group("g1") == []


def test_repeat_run_twice_counts_once(fake_engine: Fake, archive: Path) -> None:
    fake_engine()
    write_group_request(archive, "g1", {"document": DOCUMENT, "origin": "x.toml", "profile": "ci", "settings": []})
    for _ in range(2):
        store_fake_run(Archive(archive), "g1", 0, 0, 0)
    store_fake_run(Archive(archive), "g1", 0, 1, 1)
    assert [run.repeat for run in read_group_results(Archive(archive), "g1").runs] == [0, 1]
