# SPDX-License-Identifier: Apache-2.0
"""Rates over time of the runs on two sides, from records whose curves are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from sonde.store.summary import read_summary
from sonde.trends.curves import Profiles, Records, curve_of, profiles

AddRun = Callable[..., Path]
FLAT, CLIFF = [1e9] * 240, [1e9] * 120 + [6e8] * 120
RATES = {("write", "write"): 1e9}


def read(add_run: AddRun, first: int, curves: Sequence[Sequence[float]], hosts: Sequence[float] = ()) -> Records:
    """Runs of one side, a day apart; each has its curve, the last one its hosts."""
    found = []
    for number, curve in enumerate(curves):
        last = number + 1 == len(curves)
        rates = {f"n{at}": rate for at, rate in enumerate(hosts)} if last else {}
        found.append(read_summary(add_run(first + number, RATES, slices={"write": curve}, hosts=rates)))
    return Records(found)


def compared(before: Records, after: Records) -> Profiles:
    found = profiles(before, after, "write", "write")
    assert found is not None
    return found


def test_a_curve_is_bytes_a_second_and_as_long_as_its_slices(add_run: AddRun) -> None:
    [(_, phase)] = read(add_run, 0, [[1e9, 3e9, 2e9]]).phases("write")
    found = curve_of(phase)
    assert found is not None
    assert found[0].tolist() == pytest.approx([1e9, 3e9, 2e9])
    assert found[1] == pytest.approx(0.3)


def test_the_length_is_that_of_the_latest_run_and_the_shape_that_of_the_median(add_run: AddRun) -> None:
    before = read(add_run, 0, [FLAT, FLAT])
    after = read(add_run, 10, [CLIFF[::2], CLIFF[::4], CLIFF])
    found = compared(before, after)
    assert found.seconds == pytest.approx(24.0)
    assert found.shape is not None
    assert found.shape.name == "cliff"
    assert found.shape.start == pytest.approx(0.5, abs=0.02)
    assert found.shape.depth == pytest.approx(0.4, abs=0.05)
    assert [one.size for one in found.after] == [120, 60, 240]
    assert found.likeness.differs is None, "two runs do not say which shapes are usual"


def test_with_enough_runs_before_another_shape_differs_and_the_usual_one_does_not(add_run: AddRun) -> None:
    chance = np.random.default_rng(4)
    usual = [(1e9 * np.exp(chance.normal(0, 0.05, 240))).tolist() for _ in range(13)]
    before = read(add_run, 0, usual[:12])
    assert compared(before, read(add_run, 20, usual[12:])).likeness.differs is False
    assert compared(before, read(add_run, 30, [CLIFF])).likeness.differs is True


def test_a_node_that_kept_the_others_waiting_is_named(add_run: AddRun) -> None:
    before = read(add_run, 0, [FLAT])
    slow = compared(before, read(add_run, 10, [FLAT, FLAT], [1e9, 1e9, 1e9, 1e9, 4e8, 1e9]))
    assert slow.blamed == ("n4",)
    even = compared(before, read(add_run, 20, [FLAT, FLAT], [1e9] * 6))
    assert (even.late, even.blamed) == (None, ())


def test_a_phase_that_nobody_has_is_not_compared(add_run: AddRun) -> None:
    before, after = read(add_run, 0, [FLAT]), read(add_run, 10, [FLAT])
    assert profiles(before, after, "write", "read") is None
    assert profiles(before, after, "read", "write") is None
    assert profiles(before, read(add_run, 20, [[0.0, 0.0]]), "write", "write") is not None, "operations instead"
