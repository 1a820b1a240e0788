# SPDX-License-Identifier: Apache-2.0
"""Histories and changes in words, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonde.trends.changes import Change
from sonde.trends.comparison_words import percent, value_text
from sonde.trends.series import Series
from sonde.trends.survey import Survey

_HIDDEN = ("series", "experiment_hash", "epoch", "node_class")


def promise(found: Survey) -> str:
    """What is promised about false alarms, and on what ground."""
    known = found.calibration
    rate = f"{found.budget.alarms_per_year:g} a year and series"
    if not known.own:
        return f"False alarms: settings for independent runs, until a series has 60 runs; the budget is {rate}."
    expected = (known.per_100_runs or 0.0) * found.budget.runs_per_year / 100
    words = f"False alarms: {expected:.2g} a year and series expected (budget {rate}), learned from {known.runs:,} runs"
    return f"{words}." if known.kept else f"{words}: the noise of this site breaks the budget; repeat each probe."


def value_of(value: float, series: Series) -> str:
    """A value in the unit of its series."""
    return value_text(value, series.unit)


def told(scope: Mapping[str, str]) -> dict[str, str]:
    """The labels that mean something to people."""
    return {name: value for name, value in scope.items() if name not in _HIDDEN and value}


def change_size(change: Change) -> str:
    """How large, and whether it has passed."""
    return percent(change.size.value - 1) + (" (passed)" if change.over else "")


def name_of(series: Series, others: Sequence[Series]) -> str:
    """What tells it from the others: experiment and phase, and the labels that differ."""
    labels = series.labels
    parts = [labels.get("experiment", ""), labels.get("phase", "")]
    telling = ("system", "file_system", "cache", "node_class", "epoch")
    parts += [labels.get(name, "") for name in telling if len({one.labels.get(name) for one in others}) > 1]
    return " · ".join(part for part in parts if part) or series.name
