# SPDX-License-Identifier: Apache-2.0
"""The best numbers follow one rule, and terminal, page, JSON and list quote the same ones."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

import pytest
from archive_builders import MACHINE, NOISY, TMPFS, normalize_blanks, store_run
from phase_builders import make_phase, run_with
from record_scene import MIB, Scene, Work, steady
from rich.console import Console

from sonde.cli.check import print_check_result
from sonde.experiments.check.check import CheckResult
from sonde.experiments.check.figures import FigureRow, compute_figures
from sonde.findings.best_numbers import (
    BEST_NUMBER_RULE,
    NO_STORAGE_NUMBER,
    BestCandidate,
    WorkKind,
    describe_best,
    determine_work_kind,
    select_best_numbers,
)
from sonde.findings.classification import (
    Classification,
)
from sonde.model.lines import (
    Finding,
)
from sonde.model.record import read_record
from sonde.report import write_report

RANDOM = {"access": {"transfer": "4KiB", "order": "random_permute"}, "io": {"direct": True}}
DIRECT: dict[str, Any] = {"direct": True, "cache": "direct", "fsync": 0, "noise": 0.0}
SUSPECT = {"id": "cache_suspect", "severity": "warning", "text": "from page cache", "advice": "", "evidence": {}}


def make_work(name: str, op: str, rate: float, **more: Any) -> Work:
    """Two seconds at a rate of each of four tasks."""
    return Work(name, op, steady(rate / 4), **{"seconds": 2.0, **DIRECT, **more})


# Rates chosen so that each rule that was thought of, and is not the one, quotes another number.
WORKS = [
    make_work("new", "write", 800e6, direct=False, cache="unknown", fsync=0.001),
    make_work("again", "rewrite", 3.2e9),
    make_work("slow-read", "read", 500e6),
    make_work("fast-read", "read", 900e6, findings=(NOISY,)),
    make_work("cached", "read", 9e9, direct=False, cache="warm", residency=1.0, findings=(SUSPECT,)),
    make_work("brief", "read", 7e9, seconds=0.1),
    make_work("paced", "write", 8e9, backend="paced"),
    make_work("blocks", "read", 80e6, transfer=4096, plan=RANDOM),
    make_work("prepared", "write", 6e9, measured=False),
]


def list_candidate_names(candidates: list[BestCandidate]) -> list[str]:
    return [candidate.name for candidate in candidates]


def test_the_best_of_a_kind_is_the_largest_number_of_storage() -> None:
    reads, writes = WorkKind("reads"), WorkKind("writes")
    numbers = [
        BestCandidate(reads, 1.0, Classification.BURST, name="small"),
        BestCandidate(reads, 3.0, Classification.STORAGE, name="largest"),
        *(
            BestCandidate(reads, 9.0, classification, name=classification.value)
            for classification in Classification
            if classification not in (Classification.STORAGE, Classification.BURST)
        ),
        BestCandidate(
            writes, 2.0, Classification.BURST, (Finding(id="noisy_node", severity="warning"),), name="doubtful"
        ),
        BestCandidate(None, 99.0, Classification.STORAGE, name="files"),
        BestCandidate(WorkKind("rewrites"), None, Classification.STORAGE, name="nothing"),
    ]
    for order in itertools.islice(itertools.permutations(numbers), 0, 5000, 97):
        assert list_candidate_names(select_best_numbers(order)) == ["doubtful", "largest"], (
            "whatever came first, writes before reads"
        )
    assert select_best_numbers([]) == []
    assert describe_best([]) == NO_STORAGE_NUMBER


@pytest.fixture
def folder(archive: Path) -> Path:
    return store_run(archive, "20261121T204501Z-known-ab12", Scene(works=WORKS))


def compute_check_result(folder: Path, monkeypatch: pytest.MonkeyPatch) -> CheckResult:
    measured_works = [work for work in WORKS if work.measured]
    rows = [
        FigureRow("0", work.id, work.id, "All", work.id, "ops_per_s" if work.transfer < MIB else "bytes_per_s")
        for work in measured_works
    ]
    monkeypatch.setattr("sonde.experiments.check.figures.list_possible_figures", lambda *_: rows)
    record = read_record(folder / "record.ndjson")
    figures = compute_figures({"0": (folder.name, record)}, MACHINE, is_queued=True)
    return CheckResult("group", folder, MACHINE, full=False, figures=figures)


def test_terminal_page_and_json_quote_the_same_numbers(
    sonde: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, terminal = compute_check_result(folder, monkeypatch), io.StringIO()
    print_check_result(Console(file=terminal, width=80), result, None)
    page = write_report([folder], tmp_path / "report.html").read_text(encoding="utf-8")
    headline = result.headline
    assert headline.startswith(
        f"Doubtful: {NOISY['text']} (1 of 4 numbers). Best from storage, in bursts of seconds: writes 7"
    )
    assert normalize_blanks(headline) in normalize_blanks(terminal.getvalue())
    assert normalize_blanks(headline) in normalize_blanks(page)
    assert BEST_NUMBER_RULE in normalize_blanks(page)
    document = result.to_json()
    assert document["headline"] == headline
    assert [number["figure"] for number in document["best"]] == ["new", "again", "fast-read", "blocks"]
    assert [number["work"] for number in document["best"]] == ["writes", "rewrites", "reads", "random 4 KiB reads"]
    (row,) = sonde("list", "--json").json
    by_name = {number["figure"]: number for number in document["best"]}
    assert row["id"] == folder.name
    (columns,) = sonde("query", "SELECT write_bytes_per_s w, read_bytes_per_s r FROM runs", "--json").json
    assert columns["w"] == by_name["again"]["bytes_per_s"], "writing again is writing, in the list"
    assert columns["r"] == by_name["fast-read"]["bytes_per_s"]


def test_no_figure_of_storage_stands_above_the_headline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = compute_check_result(folder, monkeypatch)
    quoted = {number["work"]: number.get("bytes_per_s", number.get("ops_per_s")) for number in result.to_json()["best"]}
    for figure in result.figures:
        if figure.classification in (Classification.STORAGE, Classification.BURST) and figure.kind and figure.value:
            work_of = f"random {figure.kind.random} {figure.kind.verb}" if figure.kind.random else figure.kind.verb
            assert figure.value <= quoted[work_of], figure.key


@pytest.mark.parametrize(
    ("classification", "expected_text"), [("cached", "cached"), ("brief", "too short"), ("paced", "synthetic")]
)
def test_list_names_the_classification_without_storage_numbers(
    sonde: Any, archive: Path, monkeypatch: pytest.MonkeyPatch, classification: str, expected_text: str
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    store_run(
        archive, "20261121T204501Z-known-ab12", Scene(works=[work for work in WORKS if work.id == classification])
    )
    assert expected_text in sonde("list").out


def test_numbers_of_memory_are_none_of_storage(
    archive: Path, tmp_path: Path, sonde: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folder = store_run(archive, "20261121T204501Z-known-ab12", Scene(works=WORKS[:2], file_system=TMPFS))
    assert NO_STORAGE_NUMBER in normalize_blanks(
        write_report([folder], tmp_path / "report.html").read_text(encoding="utf-8")
    )
    assert "in memory" in sonde("list").out


@pytest.mark.parametrize(
    ("op", "expected_direction"),
    [("write", "writes"), ("rewrite", "rewrites"), ("read", "reads"), ("reread", "reads"), ("read_only", "reads")],
)
def test_each_direction_has_its_best(op: str, expected_direction: str) -> None:
    phase = make_phase(op)
    kind = determine_work_kind(run_with(phase), phase)
    assert kind is not None
    assert (kind.verb, kind.random) == (expected_direction, "")
    assert determine_work_kind(run_with(make_phase("mixed")), make_phase("mixed")) is None
