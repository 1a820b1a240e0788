# SPDX-License-Identifier: Apache-2.0
"""Caveats of an experiment: phases are joined only when they share the text."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sonde.experiments.caveats import describe_run_caveats
from sonde.experiments.results import Results


def make_results(*runs: Path) -> Results:
    return cast(Results, SimpleNamespace(runs=tuple(SimpleNamespace(warm_up=False, folder=run) for run in runs)))


def write_run(folder: Path, texts: dict[str, str]) -> Path:
    """A run with a phase and a warning for each text."""
    folder.mkdir(exist_ok=True)
    document: dict[str, Any] = {
        "schema": "sonde-run/2",
        "id": folder.name,
        "status": "done",
        "phases": [{"phase": phase, "op": "write", "measured": True} for phase in texts],
        "findings": [
            {"id": "noisy_node", "phase": phase, "severity": "warning", "text": text} for phase, text in texts.items()
        ],
    }
    (folder / "run.json").write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize(
    ("texts", "sentences"),
    [
        (
            {"write": "others used 1.4 cores", "read": "others used 0.3 cores"},
            [
                "Doubtful, write: others used 1.4 cores (in 1 of 1 run).",
                "Doubtful, read: others used 0.3 cores (in 1 of 1 run).",
            ],
        ),
        ({"write": "tmpfs", "read": "tmpfs"}, ["Doubtful, write, read: tmpfs (in 1 of 1 run)."]),
    ],
)
def test_each_phase_has_its_caveat_text(tmp_path: Path, texts: dict[str, str], sentences: list[str]) -> None:
    assert describe_run_caveats(make_results(write_run(tmp_path, texts))) == sentences


def test_text_of_one_run_is_not_asserted_for_all(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / str(index), {"write": f"task {index} was slow"}) for index in range(2)]
    assert describe_run_caveats(make_results(*runs)) == [
        "Doubtful, write: task 1 was slow (in 2 of 2 runs; the text is that of the last of them)."
    ]
