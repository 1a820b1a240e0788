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


def make_results(folder: Path, texts: dict[str, str]) -> Results:
    """One run with a phase and a warning for each text."""
    document: dict[str, Any] = {
        "schema": "sonde-run/2",
        "id": "r",
        "status": "done",
        "phases": [{"phase": phase, "op": "write", "measured": True} for phase in texts],
        "findings": [
            {"id": "noisy_node", "phase": phase, "severity": "warning", "text": text} for phase, text in texts.items()
        ],
    }
    (folder / "run.json").write_text(json.dumps(document))
    return cast(Results, SimpleNamespace(runs=(SimpleNamespace(warm_up=False, folder=folder),)))


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
def test_each_phase_is_quoted_with_its_own_text(tmp_path: Path, texts: dict[str, str], sentences: list[str]) -> None:
    assert describe_run_caveats(make_results(tmp_path, texts)) == sentences
