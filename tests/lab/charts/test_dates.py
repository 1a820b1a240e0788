# SPDX-License-Identifier: Apache-2.0
"""Axes of dates have a handful of ticks whatever they span, and say one date once."""

from __future__ import annotations

import pytest

from sonde.charts.dates import build_date_axis, format_date_span

BEGIN = 1_780_000_000.0
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


@pytest.mark.parametrize(
    "seconds", [5 * MINUTE, 40 * MINUTE, 3 * HOUR, 20 * HOUR, 3 * DAY, 20 * DAY, 300 * DAY, 3000 * DAY]
)
def test_every_span_has_ticks_that_ascend(seconds: float) -> None:
    places = [tick.position for tick in build_date_axis(BEGIN, BEGIN + seconds).ticks]
    assert 2 <= len(places) <= 12
    assert places == sorted(set(places))
    assert places[0] >= 0
    assert places[-1] <= 1


def test_equal_dates_are_printed_once() -> None:
    assert format_date_span("2026-11-22", "2026-11-22") == "2026-11-22"
    assert format_date_span("2026-11-21", "2026-11-22") == "2026-11-21 to 2026-11-22"
