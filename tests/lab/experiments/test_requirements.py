# SPDX-License-Identifier: Apache-2.0
"""Requirements of claims are checked in the records: only true reasons are reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from in_memory_runs import build_experiment

from sonde.experiments.claims.requirements import find_unmet_requirements
from sonde.experiments.results import CellRun, Results


def describe_missing(folder: Path, *treatments: tuple[str, str], simulated: bool = False) -> str:
    """Why the need "root" is not met by a run with these treatments (kind, outcome); empty: it is."""
    lines = [
        {"type": "run", "schema": "sonde-record/2", "nodes": 1},
        *({"type": "treatment", "phase": "write", "kind": kind, "outcome": out} for kind, out in treatments),
        {"type": "phase_begin", "phase": "write", "index": 0, "op": "write"},
        {"type": "end", "status": "done"},
    ]
    (folder / "record.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = CellRun("base", {}, "", "", 0, False, folder)
    return find_unmet_requirements(Results(build_experiment(), "g", (run,), {}, simulated=simulated)).get("root", "")


@pytest.mark.parametrize(
    ("treatments", "expected_sentence"),
    [
        ((("sync", "done"), ("drop_page_cache", "done")), ""),
        ((("drop_page_cache", "failed"), ("drop_page_cache", "done")), ""),
        ((("drop_page_cache", "failed"),), "could not be dropped, which requires root"),
        ((("sync", "done"), ("fadvise", "done")), "only pages of the files themselves"),
    ],
)
def test_dropping_cache_requires_root(
    tmp_path: Path, treatments: tuple[tuple[str, str], ...], expected_sentence: str
) -> None:
    text = describe_missing(tmp_path, *treatments)
    assert expected_sentence in text
    assert bool(expected_sentence) == bool(text)


def test_claim_without_drop_treatment_is_evaluated(tmp_path: Path) -> None:
    assert describe_missing(tmp_path, ("sync", "done")) == ""
    assert describe_missing(tmp_path, ("fadvise", "done"), simulated=True) == ""
