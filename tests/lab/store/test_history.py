# SPDX-License-Identifier: Apache-2.0
"""The series of an archive: complete, in order, and nothing in them that does not belong there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import run_builders

from sonde.conduct.run import RunSetup, conduct_run
from sonde.launch.engine import find_engine
from sonde.model.plan import Plan
from sonde.store.archive import Archive
from sonde.store.history import StoredHistory, list_histories
from sonde.store.rows import parse_epoch_seconds

Fake = Callable[..., Path]
PLAN: dict[str, Any] = {
    "id": "p",
    "target": {"path": "/x"},
    "data": {"access": {"transfer": "1MiB", "volume": "64MiB"}},
    "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
}


def store_run_of(archive: Path, plan: dict[str, Any] = PLAN, **facts: Any) -> Path:
    store = Archive(archive)
    return conduct_run(
        Plan.from_document(plan, "test"), RunSetup(find_engine(), store), lambda kind, line: None, extra_run_facts=facts
    ).folder


def by_phase(archive: Path) -> dict[str, StoredHistory]:
    return {history.key.phase: history for history in list_histories(Archive(archive))}


def test_an_empty_archive_has_no_series(archive: Path) -> None:
    assert list_histories(Archive(archive)) == []


def test_runs_of_one_experiment_make_one_series_a_phase(fake_engine: Fake, archive: Path) -> None:
    rates = [1e9, 8e8, 9e8]
    folders = []
    for rate in rates:
        fake_engine(rate=rate)
        folders.append(store_run_of(archive))
    series = by_phase(archive)
    assert set(series) == {"write", "read"}
    write = series["write"]
    values = dict(zip(write.runs, write.values.tolist(), strict=True))
    assert [values[folder.name] for folder in folders] == pytest.approx(rates)
    assert list(write.times) == sorted(write.times)
    assert write.key.unit == "bytes_per_s"
    assert write.key.definition == "sonde total"
    assert write.plan == "p"
    assert len(write) == 3


def test_another_plan_target_or_file_system_is_another_series(fake_engine: Fake, archive: Path) -> None:
    store_run_of(archive)
    store_run_of(archive, {**PLAN, "data": {"access": {"transfer": "2MiB", "volume": "64MiB"}}})
    store_run_of(archive, {**PLAN, "target": {"path": "/y"}})
    fake_engine(type="xfs")
    store_run_of(archive)
    histories = list_histories(Archive(archive))
    assert len(histories) == 8
    assert {len(history) for history in histories} == {1}
    assert len({history.key.id for history in histories}) == 8


@pytest.mark.parametrize(("mode", "phases"), [("enospc", {"write"}), ("crash", {"write"}), ("mismatch", set())])
def test_failed_phases_are_excluded_from_histories(
    fake_engine: Fake, archive: Path, mode: str, phases: set[str]
) -> None:
    fake_engine(mode)
    store_run_of(archive)
    assert set(by_phase(archive)) == phases


def test_calibrations_are_in_no_series(fake_engine: Fake, archive: Path) -> None:
    store_run_of(archive, role="calibration")
    assert list_histories(Archive(archive)) == []


def test_cached_and_cold_reads_have_separate_histories(fake_engine: Fake, archive: Path) -> None:
    first, second = store_run_of(archive), store_run_of(archive)
    summary = json.loads((second / "run.json").read_text())
    summary["phases"][1]["findings"] = ["cache_suspect"]
    (second / "run.json").write_text(json.dumps(summary))
    reads = {history.key.cache: history for history in list_histories(Archive(archive)) if history.key.phase == "read"}
    assert reads.pop("cached").runs == [second.name]
    assert [history.runs for history in reads.values()] == [[first.name]]


@pytest.mark.parametrize(
    ("text", "expected_seconds"),
    [
        ("1970-01-01T00:01:00Z", 60.0),
        ("1970-01-01T00:01:00", 60.0),
        ("1970-01-01T01:01:00+01:00", 60.0),
        ("yesterday", 0.0),
    ],
)
def test_times_are_utc(text: str, expected_seconds: float) -> None:
    assert parse_epoch_seconds(text) == expected_seconds


def test_operations_on_names_are_counted_as_operations(archive: Path) -> None:
    phases = [
        run_builders.build_phase("create", 4096.0),
        run_builders.build_phase("write", 1e9),
        run_builders.build_phase("walk", 0.0, ops_per_s=7.0),
    ]
    run_builders.add_run(archive, "20260101T000000Z-tree-0001", phases)
    assert {phase: (history.key.unit, history.values[0]) for phase, history in by_phase(archive).items()} == {
        "create": ("ops_per_s", 4096.0 / 2**20),
        "write": ("bytes_per_s", 1e9),
        "walk": ("ops_per_s", 7.0),
    }
