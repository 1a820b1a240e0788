# SPDX-License-Identifier: Apache-2.0
"""Ratios, intervals and numbers of a comparison in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from sonde.model.series import OPERATIONS, SeriesKey
from sonde.model.units import counted, format_ops, format_rate
from sonde.stats.ratio import Ratio

if TYPE_CHECKING:
    from sonde.trends.comparison import Compared, Comparison

STYLES = {"slower": "bold red", "faster": "green", "small change": "", "no change seen": "", "too few runs": "yellow"}


def value_text(value: float, unit: str) -> str:
    """A rate in the unit of its series."""
    return format_ops(value) if unit in (OPERATIONS, "op/s") else format_rate(value)


def percent(share: float) -> str:
    """A change for people: "-71 %", "+4.2 %", "+210 %"; small ones get a digit more."""
    digits = 1 if abs(share) < 0.0995 else 0
    text = f"{100 * share:+.{digits}f}".replace("-", "−")
    return f"{text} %"


def change_words(change: Ratio) -> str:
    """The change with its interval: "−71 % [−76, −65]"."""
    return interval_words(change.value, change.low, change.high)


def interval_words(value: float | None, low: float | None, high: float | None) -> str:
    """A ratio as a change, with its interval where there is one; "-" for what is not known."""
    if value is None:
        return "-"
    if low is None or high is None:
        return percent(value - 1)
    ends = [percent(one - 1).removesuffix(" %") for one in (low, high)]
    return f"{percent(value - 1)} [{ends[0]}, {ends[1]}]"


def verdict_text(number: Compared, doubtful: bool = False) -> Text:
    """What to think of it; with "no change" goes what could not have been seen."""
    words: str = number.verdict
    if number.verdict == "no change seen" and number.visible is not None:
        words += f" (a drop below {100 * number.visible:.0f} % would not show)"
    elif number.verdict == "too few runs":
        words = number.ratio.why
    words += ", doubtful" if doubtful else ""
    return Text(words, style=STYLES[number.verdict])


def on_both_sides(comparison: Comparison) -> str:
    """A sentence on runs that make the sides alike; "" where there are none."""
    count = comparison.on_both_sides
    return f"{counted(count, 'run')} on both sides: a run does not differ from itself." if count else ""


def common_members(keys: Sequence[SeriesKey]) -> list[tuple[str, str]]:
    """Members of the key that all numbers share: they are said once, above the table."""
    names = ("system", "file_system", "node_class")
    return [
        (name.replace("_", " "), values.pop())
        for name in names
        if len(values := {getattr(key, name) for key in keys}) == 1 and any(values)
    ]


def number_name(key: SeriesKey, plan: str, keys: Sequence[SeriesKey]) -> str:
    """What a row is about: experiment and phase, and whichever part of the key is not the same in all rows."""
    parts = [plan or key.plan_hash, key.phase]
    parts += [getattr(key, name) for name in ("system", "file_system") if len({getattr(k, name) for k in keys}) > 1]
    return " · ".join(dict.fromkeys(part for part in parts if part))
