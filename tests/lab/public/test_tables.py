# SPDX-License-Identifier: Apache-2.0
"""Tables of the public API: the same rows as Arrow, pandas and Polars, read only when they are needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import run_builders
from make_record import write_run
from record_scene import Scene, Work

import sonde
from sonde.model.confined_files import ConfinedDirectory
from sonde.model.record import read_record
from sonde.store.shards import locate_run_folder
from sonde.store.tables import write_tables

IDS = [f"2026010{day}T000000Z-daily-000{day}" for day in (1, 2, 3)]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pandas")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "archive"
    for day, run_id in enumerate(IDS, start=1):
        run_builders.add_run(root, run_id, [run_builders.build_phase("read", day * 1e9)])
    return root


@pytest.fixture
def recorded_run(tmp_path: Path) -> sonde.Run:
    """A run with a record: two tasks write at exactly 100 MB/s each for two seconds."""
    root = tmp_path / "archive"
    run_id = "20260101T000000Z-known-0001"
    finding = {"id": "cache_suspect", "severity": "warning", "phase": "write", "text": "cached", "advice": "write more"}
    work = Work("write", seconds=2.0, noise=0.0, slice_s=0.5, fsync=0.0, findings=[{**finding, "evidence": {"x": 1}}])
    folder = write_run(locate_run_folder(root, run_id), Scene(works=[work], tasks=2))
    document = run_builders.build_run_document(run_id, findings=[finding])
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    with ConfinedDirectory.open(folder) as directory:
        write_tables(directory, run_id, read_record(folder / "record.ndjson"))
    return sonde.open(root).run()


def test_run_list_converts_to_all_libraries(root: Path) -> None:
    runs = sonde.open(root).runs()
    assert runs.to_arrow()["run"].to_pylist() == IDS
    assert list(runs.to_pandas()["run"]) == IDS
    assert runs.to_polars()["run"].to_list() == IDS
    assert {"run", "plan", "read_bytes_per_s"} <= set(runs.columns)


def test_phase_table_of_a_selection_has_only_its_runs(root: Path) -> None:
    archive = sonde.open(root)
    assert archive.runs().phases().to_arrow()["bytes_per_s"].to_pylist() == [1e9, 2e9, 3e9]
    assert archive.runs(last=2).phases().to_arrow()["bytes_per_s"].to_pylist() == [2e9, 3e9]
    assert archive.runs()[1:2].phases().to_arrow()["run"].to_pylist() == [IDS[1]]
    assert len(archive.runs(plan="weekly").phases()) == 0


def test_slices_of_a_run_list_are_run_lists(root: Path) -> None:
    runs = sonde.open(root).runs()
    assert [run.id for run in runs[1:]] == IDS[1:]
    assert runs[-1].id == IDS[2]
    assert runs[:2].to_arrow()["run"].to_pylist() == IDS[:2]
    with pytest.raises(IndexError):
        runs[3]


def test_selecting_runs_reads_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a run.json was read")

    archive = sonde.open(root)
    assert len(archive.runs()) == 3  # builds the index
    monkeypatch.setattr("sonde.public.runs.read_summary", refuse)
    assert len(archive.runs().to_arrow()) == 3
    assert len(archive.runs().phases()) == 3


def test_series_sum_to_the_bytes_of_the_phase(recorded_run: sonde.Run) -> None:
    phase = recorded_run.phase("write")
    series = phase.series()
    assert series is not None
    assert series.slice_s == 0.5
    record = recorded_run.record().phases[0]
    assert record.end is not None
    assert sum(series.bytes) == record.end.bytes.transferred
    table = series.to_arrow().to_pydict()
    assert table["bytes"] == list(series.bytes)
    assert table["start_s"] == [0.5 * index for index in range(len(series))]
    assert table["bytes_per_s"] == pytest.approx([2 * value for value in series.bytes])
    rows = recorded_run.series().to_arrow().to_pydict()
    assert [b for b, scope in zip(rows["bytes"], rows["scope"], strict=True) if scope == "all"] == list(series.bytes)
    assert len(recorded_run.tasks()) == 2


def test_percentiles_interpolate_within_their_bucket() -> None:
    buckets = (sonde.Bucket(100.0, 200.0, 90), sonde.Bucket(1000.0, 2000.0, 9))
    histogram = sonde.Histogram("read", "read", 100, 110.0, 9000.0, 300.0, 1, buckets)
    assert histogram.percentile(0) == 110.0, "never below the fastest operation"
    assert histogram.percentile(45) == 150.0
    assert histogram.percentile(90) == 200.0
    assert histogram.percentile(99) == 2000.0
    assert histogram.percentile(100) == 9000.0, "the operation beyond the last bucket"
    assert histogram.to_arrow().to_pydict()["count"] == [90, 9]
    with pytest.raises(sonde.UserError, match="percentile 101"):
        histogram.percentile(101)
    with pytest.raises(sonde.UserError, match="no read was timed"):
        sonde.Histogram("read", "read", 0, None, None, None, 0, ()).percentile(50)


def test_histograms_count_every_operation(recorded_run: sonde.Run) -> None:
    histogram = recorded_run.phase("write").histograms()["write"]
    assert sum(bucket.count for bucket in histogram.buckets) == histogram.count
    assert histogram.min_ns is not None
    assert histogram.max_ns is not None
    assert histogram.min_ns <= histogram.percentile(50) <= histogram.max_ns


def test_findings_have_evidence_from_the_record(recorded_run: sonde.Run) -> None:
    (finding,) = recorded_run.findings
    assert (finding.id, finding.severity, finding.phase) == ("cache_suspect", "warning", "write")
    assert (finding.advice, finding.evidence) == ("write more", {"x": 1})
    assert recorded_run.findings.to_arrow().to_pydict()["evidence"] == ['{"x": 1}']
    assert recorded_run.findings[:1] == recorded_run.findings


def test_imported_run_has_no_series(root: Path) -> None:
    run = sonde.open(root).run()
    assert run.phase("read").series() is None
    assert run.phase("read").histograms() == {}
    assert len(run.series()) == 0
    assert list(run.findings) == []
    assert run.findings.to_arrow().num_rows == 0


def test_missing_library_is_one_sentence(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(sonde.UserError, match="needs the library polars"):
        sonde.open(root).runs().to_polars()


def test_damaged_table_is_one_sentence(recorded_run: sonde.Run) -> None:
    (recorded_run.folder / "series.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(sonde.UserError, match=r"series\.parquet cannot be read"):
        len(recorded_run.series())
