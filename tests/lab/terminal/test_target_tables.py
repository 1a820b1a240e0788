# SPDX-License-Identifier: Apache-2.0
"""The tables of storage targets in the terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from target_load import phase_of

from sonde.model.record import RecordReader
from sonde.model.run import make_recorded_run
from sonde.terminal.target_tables import print_targets


@pytest.mark.parametrize(("kind", "direct", "is_noted"), [("write", False, 1), ("write", True, 0), ("read", False, 0)])
def test_buffered_writes_are_noted_below_the_table(kind: str, direct: bool, is_noted: int) -> None:
    ops = np.full((2, 20), 10)
    phase = phase_of(ops, ops * 1_000_000, kind)
    phase.begin = replace(phase.begin, direct=direct)
    reader = RecordReader()
    reader.phases["p"] = phase
    output = io.StringIO()
    print_targets(Console(file=output, width=200), make_recorded_run(reader, Path(), {}))
    assert "OST0001" in output.getvalue()
    assert output.getvalue().count("those of the page cache while it has room") == is_noted
