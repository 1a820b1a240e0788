# SPDX-License-Identifier: Apache-2.0
"""Two processes use one file at the same time: a serial order explains each read, by `programs/registers.c`."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from preload_under_test import Preload

Program = Callable[[str], Path]
SEED = 20261124
SETTINGS = pytest.mark.parametrize(("params", "steps"), [("data", 400), ("data:auto", 2000)], ids=["named", "auto"])
PEERS = pytest.mark.parametrize("peer", ["bare", "same"])


def count_wrong_reads(
    preload: Preload, program: Path, folder: Path, params: str, schedules: int, steps: int, peer: str
) -> tuple[int, str]:
    """Wrong reads of so many schedules, and what the program prints about them."""
    command: list[str | Path] = [program, str(SEED), str(schedules), str(steps), peer]
    done: subprocess.CompletedProcess[str] = preload.run(command, folder, IOBUF_PARAMS=params)
    line = re.fullmatch(r"(\d+) reads of (\d+) schedules, (\d+) wrong\n", done.stdout)
    assert line is not None, done.stderr
    assert int(line[2]) == schedules
    assert int(line[1]) > schedules * steps
    return int(line[3]), done.stderr


@PEERS
@SETTINGS
def test_concurrent_reads_have_serial_order(
    preload: Preload, compile_program: Program, memory_folder: Path, params: str, steps: int, peer: str
) -> None:
    wrong = count_wrong_reads(
        preload, compile_program("registers"), memory_folder, params, 12_000 // steps, steps, peer
    )
    assert wrong == (0, "")


@pytest.mark.nightly
@PEERS
@SETTINGS
def test_ten_thousand_concurrent_schedules_have_serial_order(
    preload: Preload, compile_program: Program, memory_folder: Path, params: str, steps: int, peer: str
) -> None:
    per_run = 250
    for _ in range(10_000 // per_run):
        wrong = count_wrong_reads(preload, compile_program("registers"), memory_folder, params, per_run, steps, peer)
        assert wrong == (0, "")


@pytest.mark.nightly
def test_reads_without_lease_have_no_serial_order(
    preload: Preload, compile_program: Program, memory_folder: Path
) -> None:
    """The check finds stale reads: `alone` is the user's word that nobody else uses the file, and here it is false."""
    wrong, messages = count_wrong_reads(
        preload, compile_program("registers"), memory_folder, "data:alone", 250, 2000, "bare"
    )
    assert wrong > 0
    assert "of record" in messages
