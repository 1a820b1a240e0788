# SPDX-License-Identifier: Apache-2.0
"""The limit that follows from a baseline, and what is said of runs that are held against it."""

from __future__ import annotations

import numpy as np
import pytest

from sonde.model.errors import UserError
from sonde.model.history_key import HistoryKey
from sonde.trends import baseline_gate
from sonde.trends.baseline_gate import GateCheck, check_against_baseline, compute_median_and_limit
from sonde.trends.detectors import DetectorSettings
from sonde.trends.sides import ComparedSide, SideValues

KEY = HistoryKey("a", "fs1", "hash", "", "e", "p1", "read", "cold", "sonde total", "bytes_per_s")


def test_limit_is_the_lower_of_15_percent_and_four_deviations() -> None:
    assert compute_median_and_limit([100.0] * 5) == pytest.approx((100.0, 85.0))
    scattered = np.exp([4.9, 5.0, 5.1]).tolist()
    assert compute_median_and_limit(scattered) == pytest.approx((np.exp(5), np.exp(5 - 4 * 1.4826 * 0.1)))
    assert compute_median_and_limit(scattered, DetectorSettings(collapse_deviations=1.0)) == pytest.approx(
        (np.exp(5), 0.85 * np.exp(5))
    )
    assert compute_median_and_limit([100.0] * 5, DetectorSettings(collapse_change=0.02)) == pytest.approx(
        (100.0, 100 * np.exp(-4 * 0.02))
    )


@pytest.mark.parametrize(
    ("measured", "low", "bad"),
    [((84.0,), 1, True), ((85.0,), 0, False), ((84.0, 85.0, 84.0), 2, False), ((84.0, 1.0), 2, True)],
)
def test_a_single_good_run_is_good(measured: tuple[float, ...], low: int, bad: bool) -> None:
    check = GateCheck(KEY, "probe", (100.0,) * 5, 100.0, 85.0, measured, ())
    assert (check.low_run_count, check.is_too_slow) == (low, bad)
    assert GateCheck(KEY, "probe", (), 80.0, 1.0, (40.0, 60.0, 10.0), ()).relative_change == -0.5


@pytest.fixture
def numeric_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sides whose runs are numbers already."""
    monkeypatch.setattr(baseline_gate, "collect_values_by_number", lambda runs: list(runs))


def number(*values: float, **key: str) -> SideValues:
    number_key = HistoryKey(**{**KEY.__dict__, **key})
    return SideValues(number_key, "probe", values, tuple("r" * len(values)), tuple(map(float, range(len(values)))))


def make_side(name: str, *of: SideValues) -> ComparedSide:
    return ComparedSide(name, of)  # type: ignore[arg-type]


def test_each_number_is_compared_with_its_baseline(numeric_runs: None) -> None:
    before = make_side("good", number(*[50.0] * 5, phase="p2"), number(*[100.0] * 5))
    now = make_side("last", number(84.0, 80.0), number(50.0, phase="p2", file_system="fs2"))
    first, second = check_against_baseline(before, now)
    assert first.key.phase == "p1"
    assert (first.usual, first.limit) == pytest.approx((100.0, 85.0))
    assert (first.measured, first.baseline, first.plan, first.differs_in) == ((84.0, 80.0), (100.0,) * 5, "probe", ())
    assert first.is_too_slow
    assert (second.key.phase, second.is_too_slow) == ("p2", False)
    assert second.differs_in == (("file system", "fs1", "fs2"),)
    assert check_against_baseline(before, now, DetectorSettings(collapse_change=0.05, collapse_deviations=1.0))[
        1
    ].limit == pytest.approx(47.5)


def test_gate_without_enough_data_gives_the_reason(numeric_runs: None) -> None:
    with pytest.raises(UserError) as few:
        check_against_baseline(make_side("good", number(1.0, 1.0, 1.0, 1.0)), make_side("last", number(1.0)))
    assert str(few.value) == (
        "good holds 4 runs of p1; a limit needs 5 at least, and ten are better: add runs with `sonde baseline set`."
    )
    with pytest.raises(UserError) as alone:
        check_against_baseline(make_side("good", number(*[1.0] * 5)), make_side("last", number(1.0, phase="other")))
    assert str(alone.value) == (
        "good and last have no number in common; set a baseline of the same experiment on the same storage with"
        " `sonde baseline set`."
    )
