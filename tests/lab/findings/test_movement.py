# SPDX-License-Identifier: Apache-2.0
"""The sentence on how the rate moved explains the number beside it, or is not said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.findings.judgement import judgement_of
from sonde.findings.movement import AGREES, movement
from sonde.model.lines import Latency, Moved, Operations, PhaseBegin, PhaseEnd, Rate, Rates, SeriesLine
from sonde.model.quantities import plain
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import run_of

SLICE_S = 0.1


def moved(rates: list[float], number: float | None = None, interval: str = "total") -> str:
    """What is said of a direct read at these rates, 0.1 s each, whose number is `number` (or what the rates make)."""
    slices = tuple(int(rate * SLICE_S) for rate in rates)
    seconds, total = SLICE_S * len(rates), sum(slices)
    mean = number if number is not None else total / seconds
    rate = Rate(total, total >> 20, seconds, mean, mean / 2**20)
    end = PhaseEnd(
        phase="p",
        bytes=Moved(total, total, total, 0),
        ops=Operations(1, 1 + (total >> 20)),
        latency={"read": Latency(count=1)},
        rates=Rates(total=rate),
    )
    line = SeriesLine(phase="p", slice_s=SLICE_S, bytes=slices, ops=slices, active=(1,) * len(slices))
    record = RecordReader()
    record.phases["p"] = PhaseRecord(PhaseBegin(phase="p", op="read", direct=True), end, series=[line])
    return plain(judgement_of(run_of(record), record.phases["p"], interval).moved)


def test_a_rate_that_fell_is_said_with_the_time() -> None:
    assert moved([2e9] * 20 + [5e8] * 40) == "Fell from 2.00 GB/s to 500 MB/s after 2.00 s."


def test_a_rate_that_fell_and_rose() -> None:
    words = "Fell from 2.00 GB/s to 500 MB/s after 2.00 s, then rose to 2.00 GB/s after 4.00 s."
    assert moved([2e9] * 20 + [5e8] * 20 + [2e9] * 20) == words


def test_a_steady_rate_is_not_said_to_move() -> None:
    assert moved([2e9] * 60) == "Steady, ±1 % around 2.00 GB/s."


def test_levels_that_do_not_make_the_number_are_not_told() -> None:
    """105 MB/s is not explained by a fall from 7.91 to 5.23 MB/s: most of it was moved at another time."""
    rates = [7.9e6] * 20 + [5.2e6] * 20
    assert moved(rates) == "Fell from 7.90 MB/s to 5.20 MB/s after 2.00 s."
    assert moved(rates, 105e6) == ""
    assert moved([2e9] * 20 + [5e8] * 40, 2e8) == "", "the time of an fsync, in which nothing moves, is in the number"


def test_levels_of_spikes_are_means_and_not_medians() -> None:
    """Nine slices of ten at 5 MB/s and one at 1 GB/s: the number is 104 MB/s, which no median of slices comes near."""
    rates = ([5e6] * 9 + [1e9]) * 12
    words = moved(rates)
    assert "7." not in words
    assert "5.00 MB/s to" not in words


def test_an_interval_that_the_phase_lacks_is_told_by_the_whole() -> None:
    assert moved([2e9] * 60, interval="transfer") == "Steady, ±1 % around 2.00 GB/s."
    assert moved([2e9] * 60, 1e9, interval="transfer") == "", "and that is not explained"


rates = st.lists(st.sampled_from([0.0, 1e6, 5e7, 1e8, 1e9, 3e9]), min_size=8, max_size=40)


@given(rates, st.integers(1, 6), st.integers(0, 99))
def test_the_weighted_mean_of_the_levels_is_the_mean_rate(steps: list[float], repeat: int, seed: int) -> None:
    noise = np.random.default_rng(seed).lognormal(0, 0.05, len(steps) * repeat)
    series = [value * factor for value, factor in zip(np.repeat(steps, repeat), noise, strict=True)]
    amounts = [value * SLICE_S for value in series]
    told = movement(amounts, [1] * len(amounts), SLICE_S)
    assert told.mean == pytest.approx(sum(series) / len(series), rel=1e-6)
    seconds = SLICE_S * len(series)
    if told.kind == "steps":
        starts = [at for at, _ in told.parts] + [seconds]
        weighted = sum(rate * (stop - start) for (start, rate), stop in zip(told.parts, starts[1:], strict=True))
        assert weighted / seconds == pytest.approx(told.mean, rel=1e-6)
    elif told.kind == "drift":
        assert (told.before + told.after) / 2 == pytest.approx(told.mean, rel=1e-6)
    elif told.kind == "stalls":
        assert told.moving * (seconds - told.stalled_s) / seconds <= told.mean * (1 + 1e-6)
    assert told.explains(told.mean) or told.mean == 0
    assert not told.explains(told.mean * (1 + 2 * AGREES))
