# SPDX-License-Identifier: Apache-2.0
"""Costs of calls: which calls a calibration issues, and what known costs give for the calls of a log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sonde.advise.call_costs import (
    CALL_SIZES,
    CallCosts,
    compute_lower_quartile_costs,
    find_first_opens,
    find_new_writes,
    make_calibration_phases,
    predict_saved_fraction,
)
from sonde.advise.call_log import CALL_DTYPE, CallKind, CallLog
from sonde.advise.operation_list import build_operation_list
from sonde.advise.replay_changes import merge_consecutive_calls, remove_reopens
from sonde.advise.replay_plan import ReplayRequest, make_calibration_plan

READ, WRITE, OPEN, CLOSE, FSYNC = CallKind.READ, CallKind.WRITE, CallKind.OPEN, CallKind.CLOSE, CallKind.FSYNC
Row = tuple[CallKind, int, int, int]
OTHERS = {"create": 1.0, "open": 0.5, "close": 0.25, "stat": 0.125, "fsync": 8.0}


def make_log(*tasks: list[Row], files: int = 2) -> CallLog:
    arrays = tuple(
        np.array(
            [(float(k), 0.0, offset, length, file, kind) for k, (kind, file, offset, length) in enumerate(task)],
            CALL_DTYPE,
        )
        for task in tasks
    )
    return CallLog("made", "", "", [f"/f{number}" for number in range(files)], arrays)


def make_costs(per_call: float = 1.0, shared_factor: float = 1.0, again_factor: float = 1.0) -> CallCosts:
    """Each transfer costs `per_call` seconds at any size; the factors multiply it."""
    flat = np.full(len(CALL_SIZES), per_call)
    factors = {"new": 1.0, "again": again_factor, "read": 1.0}
    transfers = {
        (kind, is_shared): flat * factor * (shared_factor if is_shared else 1.0)
        for kind, factor in factors.items()
        for is_shared in (False, True)
    }
    return CallCosts(CALL_SIZES, transfers, OTHERS)


def test_costs_of_all_kinds_are_added() -> None:
    log = make_log([(OPEN, 0, 0, 0), (WRITE, 0, 0, 512), (FSYNC, 0, 0, 0), (CLOSE, 0, 0, 0), (OPEN, 0, 0, 0)], files=1)
    # Created, written, synchronized, closed, opened again, and closed at the end.
    assert make_costs().estimate_seconds(log) == pytest.approx(1.0 + 1.0 + 8.0 + 0.25 + 0.5 + 0.25)


@pytest.mark.parametrize(
    ("call_bytes", "expected_seconds"),
    [(1, 2.0), (512, 2.0), (4096, 8.0), (1448, 4.0), (4194304, 512.0), (2 * 4194304, 1024.0)],
)
def test_cost_between_sizes_is_interpolated(call_bytes: int, expected_seconds: float) -> None:
    """512 B cost 2 s and 4 KiB 8 s, so 1,448 B, halfway on logarithmic scales, cost 4 s."""
    costs = np.array([2.0, 8.0, 32.0, 128.0, 512.0])
    transfers = {(kind, is_shared): costs for kind in ("new", "again", "read") for is_shared in (False, True)}
    model = CallCosts(CALL_SIZES, transfers, dict.fromkeys(OTHERS, 0.0))
    log = make_log([(WRITE, 0, 0, call_bytes)], files=1)
    assert model.estimate_seconds(log) == pytest.approx(expected_seconds, rel=1e-3)


def test_buffering_saves_the_calls_that_it_removes() -> None:
    log = make_log([(WRITE, 0, 512 * k, 512) for k in range(100)], files=1)
    model = CallCosts(CALL_SIZES, make_costs().transfers, dict.fromkeys(OTHERS, 0.0))
    assert predict_saved_fraction(model, log, merge_consecutive_calls(log, 25 * 512)) == pytest.approx(0.96)


def test_dear_large_calls_make_buffering_a_loss() -> None:
    costs = np.array([1.0, 1.0, 1.0, 1000.0, 1000.0])
    transfers = {(kind, is_shared): costs for kind in ("new", "again", "read") for is_shared in (False, True)}
    log = make_log([(WRITE, 0, 2621 * k, 2621) for k in range(100)], files=1)
    model = CallCosts(CALL_SIZES, transfers, dict.fromkeys(OTHERS, 0.0))
    assert predict_saved_fraction(model, log, merge_consecutive_calls(log, 1 << 20)) == pytest.approx(-9.0, rel=0.01)


def test_files_that_stay_open_save_opens_and_closes() -> None:
    log = make_log([(OPEN, 0, 0, 0), (WRITE, 0, 0, 1), (CLOSE, 0, 0, 0)] * 4, files=1)
    # 1 + 3 * 0.5 opens, 4 closes of 0.25, 4 writes become 1 open, 4 writes and a close.
    assert predict_saved_fraction(make_costs(), log, remove_reopens(log)) == pytest.approx(1 - 5.25 / 7.5)


def test_shared_files_have_separate_call_costs() -> None:
    separate = make_log([(WRITE, 0, 0, 512)], [(WRITE, 1, 0, 512)])
    shared = make_log([(WRITE, 0, 0, 512)], [(WRITE, 0, 512, 512)], files=1)
    model = CallCosts(CALL_SIZES, make_costs(shared_factor=3.0).transfers, dict.fromkeys(OTHERS, 0.0))
    assert model.estimate_seconds(separate) == pytest.approx(2.0)
    assert model.estimate_seconds(shared) == pytest.approx(6.0)


def test_bytes_written_again_are_not_new() -> None:
    rows: list[Row] = [(WRITE, 0, 0, 8), (WRITE, 0, 8, 8), (WRITE, 0, 4, 8), (READ, 1, 0, 4), (WRITE, 1, 0, 4)]
    task = build_operation_list(make_log(rows)).tasks[0]
    writes = task["kind"] == WRITE
    exists = np.array([-1, 4])  # the second file is prepared
    assert find_new_writes(task, exists)[writes].tolist() == [True, True, False, False]
    assert find_first_opens(task).sum() == 2


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize(("amount", "sizes"), [(100, CALL_SIZES[:2]), (40_000, CALL_SIZES[:3]), (1 << 30, CALL_SIZES)])
def test_calibration_covers_costs_with_the_bytes_of_the_job(
    tmp_path: Path, tasks: int, amount: int, sizes: tuple[int, ...]
) -> None:
    phases = make_calibration_phases(make_log(*[[(WRITE, 0, 0, amount)]] * tasks, files=1))
    assert len({phase.phase_id for phase in phases}) == len(phases) == len(sizes) * 3 * (2 if tasks > 1 else 1) + 3
    assert {phase.size for phase in phases} == {0, *sizes}
    for phase in phases:
        operations = build_operation_list(phase.calls)
        assert len(operations.tasks) == tasks
        for task, calls in zip(operations.tasks, phase.calls.tasks, strict=True):
            assert not phase.size or set(calls["length"].tolist()) == {phase.size}
            assert not phase.size or int(task["length"].sum()) <= max(min(amount, 32 << 20), phase.size)
    plan = make_calibration_plan(phases, tmp_path, ReplayRequest("/x", is_cold=True))
    cold = [phase["id"] for phase in plan.document["phases"] if "before" in phase]
    assert cold == [phase.phase_id for phase in phases if phase.kind == "read"]


def test_disturbed_calibration_does_not_count() -> None:
    quiet, disturbed = make_costs(1.0), make_costs(50.0)
    costs = compute_lower_quartile_costs([quiet, disturbed, quiet, quiet, disturbed])
    assert costs.transfers["new", False].tolist() == [1.0] * len(CALL_SIZES)
