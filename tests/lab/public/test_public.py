# SPDX-License-Identifier: Apache-2.0
"""`import sonde` for programs of others: what the documentation shows works, and the surface is what it says."""

from __future__ import annotations

import dataclasses
import doctest
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import run_builders
from make_record import write_run
from record_scene import Scene, Work

import sonde as package
from sonde.launch.engine import Engine
from sonde.model.errors import UserError
from sonde.public.archive import ArchiveReader
from sonde.public.runs import Phase, Run
from sonde.store.shards import locate_run_folder
from sonde.store.tags import change_tags

A, B, C = (f"2026010{day}T000000Z-daily-000{day}" for day in (1, 2, 3))
PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "python.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three runs, the first without a word on what its number is about, the second tagged."""
    root = tmp_path / "archive"
    numbers = {"classification": "burst", "classification_text": "From storage.", "validity": "good"}
    run_builders.add_run(root, A)
    run_builders.add_run(
        root, B, [run_builders.build_phase("read", 2e9, **numbers), run_builders.build_phase("write", 1e9)]
    )
    run_builders.add_run(root, C, [run_builders.build_phase("read", 3e9, **(numbers | {"validity": "doubtful"}))])
    change_tags(locate_run_folder(root, B), ["accepted"])
    return root


def test_public_names_and_members_are_never_removed() -> None:
    """Members may be added here, never taken away: programs of others use them."""
    names = {
        "ArchiveReader",
        "Bucket",
        "Check",
        "Figure",
        "RunFinding",
        "RunFindings",
        "Histogram",
        "Phase",
        "Run",
        "RunList",
    }
    names |= {"PhaseSeries", "Table", "UserError", "__version__", "check", "open", "run", "simulate"}
    names |= {"ComparedNumber", "RunComparison", "GateNumber", "GateResult"}
    names |= {"ExperimentCell", "ExperimentClaim", "ExecutedExperiment", "run_experiment"}
    names |= {"TrendChange", "TrendHistory", "TrendResult"}
    assert set(package.__all__) == names
    assert names <= set(dir(package))
    assert all(getattr(package, name) is not None for name in package.__all__)
    methods = {"root", "runs", "run", "experiment", "query", "compare", "trends", "gate"}
    assert {name for name in vars(ArchiveReader) if not name.startswith("_")} == methods
    run = {"id", "folder", "started", "status", "plan", "target", "tags", "phases", "document"}
    assert {field.name for field in dataclasses.fields(Run)} == run
    phase = {"id", "op", "bytes", "ops", "seconds", "bytes_per_s", "ops_per_s", "run", "folder"}
    phase |= {"classification", "classification_text", "validity", "document"}
    assert {field.name for field in dataclasses.fields(Phase)} == phase


def test_runs_are_selected_and_have_their_numbers(root: Path) -> None:
    archive = package.open(root)
    assert [run.id for run in archive.runs()] == [A, B, C]
    (accepted,) = archive.runs(tag="accepted")
    assert (accepted.id, accepted.tags, accepted.status, accepted.plan) == (B, ("accepted",), "done", "daily")
    assert accepted.started is not None
    assert accepted.started.isoformat() == "2026-01-02T00:00:00+00:00"
    read, write = accepted.phases
    assert (read.id, read.bytes_per_s, read.classification, read.classification_text) == (
        "read",
        2e9,
        "burst",
        "From storage.",
    )
    assert read.is_storage
    assert (write.classification, write.is_storage) == (None, False)
    assert accepted.phase("write") is write
    with pytest.raises(UserError, match='has no phase "erase"; its phases are read, write'):
        accepted.phase("erase")
    assert not archive.run("last").phase("read").is_storage, "a doubtful number does not count"
    assert [run.id for run in archive.runs(since="2026-01-02", until="2026-01-03")] == [B]
    assert [run.id for run in archive.runs(last=1)] == [C]
    assert list(archive.runs(plan="weekly")) == []


def test_invalid_selections_and_queries_raise_user_errors(root: Path) -> None:
    archive = package.open(root)
    for wrong in (lambda: archive.runs(since="yesterday"), lambda: archive.run("nothing"), lambda: archive.query("x")):
        with pytest.raises(UserError):
            wrong()


def test_unknown_status_and_validity_are_rejected(root: Path) -> None:
    with pytest.raises(UserError, match='no status "complete"; use done, failed, interrupted, mismatch or lost'):
        package.open(root).runs(status="complete")
    with pytest.raises(UserError, match='no validity "bad"; use good, doubtful or invalid'):
        package.open(root).runs(validity="bad")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda archive: archive.runs(last=-1), "last is -1; it must be from 1"),
        (lambda archive: archive.compare("last", "last", smallest_change=7), "smallest_change is 7; .* from 0 to 0.99"),
        (lambda archive: archive.trends(smallest_change=float("nan")), "smallest_change is nan"),
        (lambda archive: archive.trends(budget=-1), "budget is -1; it must be from 0.01 to 50"),
        (lambda archive: archive.trends(measure="best"), 'no measure "best"; use delivered or capability'),
        (lambda archive: archive.gate(at_least="write=1GB/s", retests=-3), "retests is -3"),
    ],
)
def test_argument_outside_its_range_is_rejected(
    call: Callable[[package.ArchiveReader], object], message: str, root: Path
) -> None:
    with pytest.raises(UserError, match=message):
        call(package.open(root))


def test_missing_default_archive_has_no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_ARCHIVE", str(tmp_path / "none"))
    assert list(package.open().runs()) == []


def test_missing_archive_path_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no archive"):
        package.open(tmp_path / "none")


def test_sql_gives_a_table(root: Path) -> None:
    table = package.open(root).query("SELECT run, bytes_per_s FROM phases WHERE op = 'read' ORDER BY run")
    assert table.to_pydict() == {"run": [B, C], "bytes_per_s": [2e9, 3e9]}


def test_sql_makes_no_python_rows(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows as Python values take ten times the memory of a table: a million runs have four million phases."""
    from sonde.store.sql import SqlResult

    def refuse(answer: SqlResult) -> Any:
        raise AssertionError("the rows were made")

    monkeypatch.setattr(SqlResult, "rows", property(refuse))
    assert package.open(root).query("SELECT * FROM phases").num_rows == 4
    assert package.open(root).runs().phases().to_arrow().num_rows == 4


def test_a_run_of_an_older_version_is_judged_from_its_record(root: Path) -> None:
    folder = write_run(locate_run_folder(root, A), Scene(works=[Work("write", seconds=2.0)]))
    (folder / "run.json").write_text(json.dumps(run_builders.build_run_document(A)), encoding="utf-8")
    run = package.open(root).run(A)
    assert run.phases[0].classification == "burst"
    assert run.phases[0].classification_text.startswith("To storage: fsync at the end; a burst of")
    assert len(run.record().phases[0].series) == 1


def test_importing_sonde_costs_nothing() -> None:
    heavy = ("numpy", "pyarrow", "duckdb", "click", "rich", "sonde.public")
    code = f"import sys, sonde; print([name for name in {heavy} if name in sys.modules])"
    environment = {"PYTHONPATH": str(Path(package.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_first_example_of_the_page_runs(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example, *_) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.setenv("SONDE_ARCHIVE", str(root))
    names: dict[str, Any] = {}
    exec(example, names)
    assert capsys.readouterr().out == f"{B} read 2.0 GB/s\n"


def test_doctests_of_the_page_pass(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(PAGE), module_relative=False, report=True)
    assert result.attempted > 15
    assert result.failed == 0


def test_page_documents_every_public_name() -> None:
    """Classes that a call returns are described by their members."""
    text = PAGE.read_text(encoding="utf-8")
    calls = {name for name in package.__all__ if name.islower() and not name.startswith("_")}
    assert {name for name in calls if f"sonde.{name}(" not in text} == set()
    methods = {name for name in vars(ArchiveReader) if not name.startswith("_")} - {"root"}
    assert {name for name in methods if f"archive.{name}(" not in text} == set()
