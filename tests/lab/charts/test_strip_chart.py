# SPDX-License-Identifier: Apache-2.0
"""Pages over many runs: the spread by date says what the runs say, and ten thousand of them open at once."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from statistics import NormalDist
from typing import Any

import browser
import numpy as np
import pytest

from sonde.charts.strip_chart import build_strip_chart, split_runs_into_calendar_periods
from sonde.charts.study import write_study_page
from sonde.stats.density import estimate_log_density
from sonde.trends.history import History
from sonde.trends.survey import survey_histories
from sonde.trends.survey_page import build_survey_page

DAY = 86400.0
BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("days", "expected_period", "expected_first_name"),
    [
        (10, "day", "2026-01-01"),
        (90, "week", "2025-12-29"),
        (365, "month", "2026-01"),
        (365 * 4, "quarter", "2026-Q1"),
        (365 * 20, "year", "2026"),
    ],
)
def test_strip_chart_uses_the_shortest_suitable_period(
    days: int, expected_period: str, expected_first_name: str
) -> None:
    times = BEGIN + DAY * np.arange(float(days))
    found_word, periods_found = split_runs_into_calendar_periods(times, np.ones(days))
    assert found_word == expected_period
    assert periods_found[0].name == expected_first_name
    assert 2 <= len(periods_found) <= 26
    assert sum(period.values.size for period in periods_found) == days


def test_every_run_is_in_its_month() -> None:
    times = np.array(
        [datetime(2026, month, day, tzinfo=UTC).timestamp() for month in range(1, 13) for day in (1, 14, 28)]
    )
    word, months = split_runs_into_calendar_periods(times, np.repeat(np.arange(1.0, 13.0), 3) * 1e9)
    assert word == "month"
    assert {month.name: set(month.values) for month in months}["2026-07"] == {7e9}
    assert [month.values.size for month in months] == [3] * 12


def render_with_plain_blanks(chart: Any) -> str:
    """The page of a chart with ordinary blanks."""
    return str(chart.render()).replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")


def test_chart_prints_its_figures() -> None:
    times = BEGIN + DAY * np.arange(60.0)
    values = np.where(np.arange(60) < 31, 2e9, 1e9) * np.tile([0.9, 1.0, 1.1], 20)
    chart = build_strip_chart("daily · read", "B/s", times, values)
    assert chart is not None
    page = render_with_plain_blanks(chart)
    assert "60 runs in 9 weeks" in page
    assert "medians from 1.00 GB/s to 2.00 GB/s" in page
    assert page.count('class="band all"') == 0, "seven values have no shape"
    assert page.count('class="level"') == 9
    assert "<script" not in page


def test_outliers_do_not_flatten_the_scale() -> None:
    values = np.full(100, 1e9)
    values[50] = 1e12
    chart = build_strip_chart("x", "B/s", BEGIN + DAY * np.arange(100.0), values)
    assert chart is not None
    assert "1 run above the scale" in render_with_plain_blanks(chart)


def test_single_period_yields_no_strip_chart() -> None:
    assert build_strip_chart("x", "B/s", np.array([BEGIN, BEGIN + 1]), np.array([1.0, 2.0])) is None


def test_density_integrates_to_1() -> None:
    ranks = (np.arange(500) + 0.5) / 500
    values = 1e9 * np.exp([NormalDist(0, 0.2).inv_cdf(float(rank)) for rank in ranks])
    places = np.exp(np.linspace(np.log(1e9) - 2, np.log(1e9) + 2, 2001))
    density = estimate_log_density(values, places)
    assert np.trapezoid(density, np.log(places)) == pytest.approx(1.0, abs=1e-6)
    assert places[density.argmax()] == pytest.approx(1e9, rel=0.1)
    # The density of a normal distribution with this deviation, at its middle; the kernel flattens it a little.
    assert density.max() == pytest.approx(1 / (0.2 * np.sqrt(2 * np.pi)), rel=0.1)
    assert estimate_log_density(7 * values, 7 * places) == pytest.approx(density), (
        "a factor moves it and changes nothing"
    )
    assert estimate_log_density(np.ones(5), np.array([1.0])).size == 1, "equal values are no error"
    for wrong in (np.array([]), np.array([0.0]), np.array([-1.0])):
        with pytest.raises(ValueError, match="above zero"):
            estimate_log_density(wrong, places)


@pytest.fixture(scope="module")
def history_of_many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 runs in 40 series over a year, one of which fell by half in summer, as the page of `sonde trend`."""
    chance = np.random.default_rng(3)
    first, every = datetime(2025, 11, 1, tzinfo=UTC).timestamp(), 52 * 60.0
    histories = []
    for number in range(40):
        runs = number + 40 * np.arange(250)
        rates = 1e10 * (1 + number % 7) * chance.lognormal(0, 0.05, runs.size)
        times = np.asarray(first + every * runs, dtype=np.float64)
        rates[runs > 6000] *= 0.5 if number == 3 else 1.0
        op = "write" if number % 2 else "read"
        labels = {"experiment": f"test{number // 8}", "operation": op, "system": f"s{number % 8}"}
        histories.append(History(labels, times, rates))
    survey = survey_histories(histories)
    assert [number for number, analysis in enumerate(survey.analyses) if analysis.changes] == [3]
    return write_study_page(build_survey_page(survey, "delivered"), tmp_path_factory.mktemp("many") / "trend.html")


@pytest.mark.slow
def test_ten_thousand_runs_are_a_small_page_without_script(history_of_many: Path) -> None:
    text = history_of_many.read_text(encoding="utf-8")
    assert len(text.encode()) < 5 << 20
    assert "<script" not in text
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    assert "Spread by date" in text


@pytest.mark.slow
@pytest.mark.browser
def test_ten_thousand_runs_have_no_element_each(history_of_many: Path) -> None:
    if browser.find_browser() is None:
        pytest.skip("there is no Chromium here")
    with browser.browser() as tab:
        tab.open(history_of_many)
        assert tab.evaluate("document.getElementsByTagName('*').length") < 10_000, "an element for each run"
        assert tab.messages == []
        for width in (360, 1280):
            tab.open(history_of_many, width=width)
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert tab.evaluate("document.querySelectorAll('[data-chart=strips]').length") == 12
