# SPDX-License-Identifier: Apache-2.0
"""Which trials with planted real faults count, and how a series of them ends."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from real_trials import RealFault, format_shares, has_visible_effect, make_trial_parser, run_trials  # noqa: E402
from sonde.diagnose.likelihood import ExperimentResult  # noqa: E402
from sonde.diagnose.measurements import TARGETS, RunMeasurement  # noqa: E402
from sonde.diagnose.noise import NoiseModel  # noqa: E402

FAULT: RealFault[None] = RealFault("network limited", ("slow-link",), lambda *_: nullcontext(), 1, 9, "Mbit/s")


def make_outcome(is_right: bool, counts: bool = True) -> dict[str, Any]:
    return {
        **{"planted": "network limited", "planted_part": "", "strength": "5 Mbit/s", "answer": "nothing", "part": ""},
        **{"is_right": is_right, "is_decided": False, "counts": counts, "idleness": "at rest"},
    }


class FakeMachine:
    """Returns outcomes in turn; raises those that are errors."""

    def __init__(self, outcomes: Sequence[dict[str, Any] | Exception]) -> None:
        self._outcomes = list(outcomes)

    def measure_baseline(self) -> None:
        """The outcomes are known already."""

    def diagnose(self, fault: RealFault[None], generator: random.Random) -> dict[str, Any]:
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@pytest.mark.parametrize(
    ("rate", "part", "scatter", "is_visible"),
    [
        (-0.18, 0.0, 0.0, False),
        (-0.2, 0.0, 0.0, True),
        (-0.2, 0.0, 0.2, False),
        (0.0, -0.47, 0.0, False),
        (0.0, -0.49, 0.0, True),
    ],
)
def test_effect_beyond_two_deviations_is_visible(rate: float, part: float, scatter: float, is_visible: bool) -> None:
    run = RunMeasurement({"write": rate}, {("write", TARGETS): {"t0": part, "t1": 0.0}})
    result = ExperimentResult("every-target", (run,), scatter={"write": scatter})
    assert has_visible_effect(result, NoiseModel()) == is_visible


def test_trials_without_effect_are_neither_right_nor_wrong() -> None:
    table = format_shares([make_outcome(True), make_outcome(False), make_outcome(True, counts=False)])
    assert "| network limited | 2 | 1 | 0 | 1 | nothing (1) |" in table
    assert "| all | 2 | 1 (50%) | | 1 | |" in table


def test_trial_that_fails_does_not_end_the_series(capsys: pytest.CaptureFixture[str]) -> None:
    machine: Any = FakeMachine([make_outcome(True), RuntimeError("names: a task failed"), make_outcome(True)])
    run_trials(machine, [FAULT], make_trial_parser("").parse_args(["--rounds", "3"]))
    printed = capsys.readouterr()
    assert "network limited: no result, names: a task failed" in printed.err
    assert "| all | 2 | 2 (100%)" in printed.out
