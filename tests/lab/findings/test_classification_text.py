# SPDX-License-Identifier: Apache-2.0
"""Each classification has the same text wherever a number is shown."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from archive_builders import MACHINE, NOISY, TMPFS, normalize_blanks, store_run
from record_scene import Scene, Work
from rich.console import Console

from sonde.cli.check import print_check_result
from sonde.cli.main import main
from sonde.experiments.check.check import CheckResult
from sonde.experiments.check.figures import FigureRow, compute_figures
from sonde.findings.classification import Classification
from sonde.model.record import read_record
from sonde.report import write_report

CLOCK = {"id": "clock", "severity": "invalid", "text": "the clocks differ by 3 s over the phase"}

# What each phase is, and the words known beforehand.
WORKS: Mapping[str, tuple[Work, Classification, str]] = {
    "long": (
        Work("long", seconds=60.0, slice_s=0.1),
        Classification.STORAGE,
        "to storage: fsync at the end; sustained for 1 min",
    ),
    "burst": (
        Work("burst", "read", seconds=2.0, cache="cold", residency=0.0, fsync=0),
        Classification.BURST,
        "from storage: 0 % of the data was in the page cache before (device reads were not counted); a burst of 2.00 s",
    ),
    "brief": (
        Work("brief", seconds=0.2),
        Classification.SHORT,
        "to storage: fsync at the end; over in 252 ms: too short to trust",
    ),
    "cached": (
        Work("cached", "read", seconds=2.0, cache="warm", residency=1.0, fsync=0),
        Classification.CACHE,
        "served from page cache: not a storage number",
    ),
    "paced": (
        Work("paced", seconds=2.0, backend="paced"),
        Classification.SYNTHETIC,
        "the backend “paced” moves no data: not a storage number",
    ),
    "unsure": (
        Work("unsure", "read", seconds=2.0, fsync=0),
        Classification.UNKNOWN,
        "how much of it came from the page cache is not known",
    ),
    "wrong": (
        Work("wrong", seconds=2.0, findings=(CLOCK,)),
        Classification.INVALID,
        "the clocks differ by 3 s over the phase",
    ),
    "noisy": (
        Work("noisy", "read", seconds=2.0, direct=True, cache="direct", fsync=0, findings=(NOISY,)),
        Classification.BURST,
        "from storage: direct I/O; a burst of 2.00 s",
    ),
    "broken": (Work("broken", ends=False), Classification.FAILED, "it did not end; last heard of after"),
}
SIMULATED = (
    Work("model", seconds=60.0),
    Classification.SIMULATED,
    "simulated on edison, not measured; in the model: to",
)
MOUNTED = (Work("mount", seconds=2.0), Classification.SIMULATED, "simulated on demo, not measured; in the model: to")
MODEL = {"type": "fuse.sonde", "source": "sonde:demo", "network": False, "memory_backed": False}
IN_MEMORY = (Work("memory", seconds=2.0), Classification.MEMORY, "files on tmpfs live in memory: not a storage number")


def is_text_on_surface(surface: str, text: str) -> bool:
    """Whether the surface contains the text; the case of the first letter of a sentence does not matter."""
    return text.lower() in normalize_blanks(surface).lower()


def run_sonde(*arguments: str) -> str:
    """The output of a command."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(output):
        assert main(arguments) == 0
    output.seek(0)
    return output.read()


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Any]]:
    """Everything that the lab shows of these runs."""
    folder = tmp_path_factory.mktemp("surfaces")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "200")
        patch.setenv("SONDE_ARCHIVE", str(folder / "archive"))
        yield show_runs(folder / "archive", folder, patch)


def show_runs(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """Stores the runs and shows them on each surface."""
    scene = Scene(works=[work for work, _, _ in WORKS.values()], status="failed")
    folders = [
        store_run(archive, "20261121T204501Z-known-ab12", scene),
        store_run(archive, "20261121T214501Z-known-ab13", Scene(works=[IN_MEMORY[0]], file_system=TMPFS)),
        store_run(archive, "20261121T224501Z-known-ab14", Scene(works=[SIMULATED[0]], simulated={"system": "edison"})),
        store_run(archive, "20261121T234501Z-known-ab15", Scene(works=[MOUNTED[0]], file_system=MODEL)),
    ]
    phase_names = [*WORKS, "memory", "model", "mount"]
    monkeypatch.setattr(
        "sonde.experiments.check.figures.list_possible_figures",
        lambda *_: [
            FigureRow(str(index), name, f"read-{name}", "All", name) for index in range(4) for name in phase_names
        ],
    )
    records = {str(index): (folder.name, read_record(folder / "record.ndjson")) for index, folder in enumerate(folders)}
    result = CheckResult(
        "group", tmp_path, MACHINE, full=False, figures=compute_figures(records, MACHINE, is_queued=True)
    )
    checked = io.StringIO()
    print_check_result(Console(file=checked, width=200), result, None)
    return {
        "terminal": "".join(run_sonde("show", folder.name) for folder in folders),
        "page": write_report(folders, tmp_path / "report.html").read_text(encoding="utf-8"),
        "check": checked.getvalue(),
        "check json": result.to_json(),
        "show json": [
            phase for folder in folders for phase in json.loads(run_sonde("show", folder.name, "--json"))[0]["phases"]
        ],
        "list": run_sonde("list"),
        "summary": [phase for folder in folders for phase in json.loads((folder / "run.json").read_text())["phases"]],
        "table": [row for folder in folders for row in parquet.read_table(folder / "phases.parquet").to_pylist()],
        "index": json.loads(run_sonde("query", "SELECT phase, classification, validity FROM phases", "--json")),
    }


def test_every_surface_prints_the_same_classification_text(surfaces: Mapping[str, Any]) -> None:
    runs = {**WORKS, "memory": IN_MEMORY, "model": SIMULATED, "mount": MOUNTED}
    assert {classification for _, classification, _ in runs.values()} == set(Classification)
    for name, (_, classification, text) in runs.items():
        for surface in ("terminal", "page", "check"):
            assert is_text_on_surface(surfaces[surface], text), (name, surface)
        (assessment,) = (row["assessment"] for row in surfaces["show json"] if row["phase"] == name)
        assert assessment["classification"] == classification.value
        assert is_text_on_surface(assessment["classification_text"], text)
        (summary,) = (entry for entry in surfaces["summary"] if entry["phase"] == name)
        (row,) = (entry for entry in surfaces["table"] if entry["phase"] == name)
        (indexed,) = (entry for entry in surfaces["index"] if entry["phase"] == name)
        assert summary["classification_text"] == row["classification_text"] == assessment["classification_text"]
        assert [entry["classification"] for entry in (summary, row, indexed)] == [classification.value] * 3
        assert summary["validity"] == row["validity"] == indexed["validity"] == assessment["validity"]
        (figure,) = (entry for entry in surfaces["check json"]["figures"] if entry["phase"] == name)
        assert figure["classification"] == classification.value
        assert figure["classification_text"] == assessment["classification_text"]


def test_noisy_node_is_reported_on_every_surface(surfaces: Mapping[str, Any]) -> None:
    for surface in ("terminal", "page", "check"):
        assert is_text_on_surface(surfaces[surface], f"doubtful: {NOISY['text']}"), surface
    assert surfaces["check json"]["headline"].startswith(f"Doubtful: {NOISY['text']}")
    (figure,) = (entry for entry in surfaces["check json"]["figures"] if entry["phase"] == "noisy")
    (document,) = (entry for entry in surfaces["show json"] if entry["phase"] == "noisy")
    assert figure["caveats"] == document["assessment"]["caveats"] == [NOISY]
    for table in ("summary", "table", "index"):
        (row,) = (entry for entry in surfaces[table] if entry["phase"] == "noisy")
        assert row["validity"] == "doubtful", table
    assert is_text_on_surface(surfaces["list"], "invalid: uncertain clock, other load on the node")


def test_variation_sentence_is_the_same_on_every_surface(surfaces: Mapping[str, Any]) -> None:
    (assessment,) = (entry["assessment"] for entry in surfaces["show json"] if entry["phase"] == "burst")
    (figure,) = (entry for entry in surfaces["check json"]["figures"] if entry["phase"] == "burst")
    assert re.fullmatch(r"Steady, ±\d+ % around [\d.]+ GB/s\.", assessment["variation"])
    assert figure["variation"] == assessment["variation"]
    assert is_text_on_surface(surfaces["terminal"], assessment["variation"])
    assert is_text_on_surface(surfaces["page"], assessment["variation"])
