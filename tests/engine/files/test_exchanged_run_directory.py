# SPDX-License-Identifier: Apache-2.0
"""A neighbor exchanges the run directory while the engine measures: no file elsewhere is changed."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from engine_under_test import DONE, ENVIRONMENT, FAILED, Engine, Plan, write_plan
from neighbor import do_as, exchanging

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a second user needs root")

RUNS = 8
FILES = {"mapping": "many", "count": 600, "directories": "per_task"}
SMALL_ACCESS = {"transfer": "4KiB", "block": "4KiB", "segments": 1}


def make_data_plan(target: Path) -> Plan:
    """Two tasks write, look at, read and remove 600 files each, in a directory for each task."""
    phases = [{"id": op, "op": op} for op in ("write", "stat", "read", "remove")]
    return write_plan(
        target,
        *phases,
        tasks={"processes": 2},
        data={"access": SMALL_ACCESS, "files": FILES},
        target={"directory": "run"},
    )


def exchange_during_runs(engine: Engine, base: Path, victim_file: Path, second_user: int, pause_s: float) -> list[int]:
    """The exit codes of `RUNS` runs, during which the second user exchanges the run directory with another one, whose
    directories are links to the victim's. Everybody may rename entries of the target: it is not sticky."""
    codes = []
    for number in range(RUNS):
        target = base / f"open{number}"
        target.mkdir()
        target.chmod(0o777)
        other = target / "other"
        do_as(second_user, other.mkdir)
        for task in range(2):
            do_as(second_user, partial((other / f"t{task:08}").symlink_to, victim_file.parent))
        with exchanging(second_user, target / "run", other, pause_s):
            codes.append(engine.run(make_data_plan(target)).code)
    return codes


@pytest.mark.parametrize("pause_s", [0, 0.1])
def test_exchanged_run_directory_does_not_redirect_data_files(
    engine: Engine, shared_folder: Path, victim_file: Path, second_user: int, pause_s: float
) -> None:
    for task in range(2):
        for number in range(FILES["count"]):  # type: ignore[call-overload]
            (victim_file.parent / f"data.t{task:08}.{number:08}").write_text("thesis", encoding="utf-8")
    before = {path: path.read_bytes() for path in victim_file.parent.iterdir()}
    codes = exchange_during_runs(engine, shared_folder, victim_file, second_user, pause_s)
    print(codes)
    assert set(codes) <= {DONE, FAILED, ENVIRONMENT}
    assert {path: path.read_bytes() for path in victim_file.parent.iterdir()} == before
