# SPDX-License-Identifier: Apache-2.0
"""Ratios, intervals and numbers of a comparison in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from sonde.model.history_key import OPS_PER_S, HistoryKey
from sonde.model.units import format_count_with_noun, format_ops, format_rate
from sonde.stats.ratio import RateRatio

if TYPE_CHECKING:
    from sonde.trends.comparison import Comparison, NumberComparison
    from sonde.trends.sides import ComparedSide

VERDICT_STYLES = {
    "slower": "bold red",
    "faster": "green",
    "small change": "",
    "no change seen": "",
    "too few runs": "yellow",
}


def format_history_rate(rate: float, history_unit: str) -> str:
    """A rate in the unit of its history."""
    return format_ops(rate) if history_unit in (OPS_PER_S, "op/s") else format_rate(rate)


def format_change_percent(relative_change: float) -> str:
    """A change for people: "-71 %", "+4.2 %", "+210 %"; small ones get a digit more."""
    digits = 1 if abs(relative_change) < 0.0995 else 0
    text = f"{100 * relative_change:+.{digits}f}".replace("-", "−")
    return f"{text} %"


def format_change_interval(rate_ratio: RateRatio) -> str:
    """The change with its interval: "−71 % [−76, −65]"."""
    return format_ratio_interval(rate_ratio.value, rate_ratio.low, rate_ratio.high)


def format_ratio_interval(rate_ratio: float | None, low_ratio: float | None, high_ratio: float | None) -> str:
    """A ratio as a change, with its interval where there is one; "-" for what is not known."""
    if rate_ratio is None:
        return "-"
    if low_ratio is None or high_ratio is None:
        return format_change_percent(rate_ratio - 1)
    ends = [format_change_percent(item - 1).removesuffix(" %") for item in (low_ratio, high_ratio)]
    return f"{format_change_percent(rate_ratio - 1)} [{ends[0]}, {ends[1]}]"


def format_change_verdict(number_comparison: NumberComparison, is_doubtful: bool = False) -> Text:
    """Verdict on a number; "no change" includes the smallest change that would have been seen."""
    text: str = number_comparison.verdict
    if number_comparison.verdict == "no change seen" and number_comparison.visible is not None:
        text += f" (smallest detectable drop: {100 * number_comparison.visible:.0f} %)"
    text += (
        f"; not a storage number ({number_comparison.classification_text})"
        if number_comparison.classification_text
        else ""
    )
    text += ", doubtful" if is_doubtful else ""
    return Text(text, style=VERDICT_STYLES[number_comparison.verdict])


def list_missing_interval_sentences(number_comparisons: Sequence[NumberComparison]) -> list[str]:
    """Returns one sentence for each reason why numbers have no verdict, with the number of them."""
    reasons = Counter(
        number.ratio.why for number in number_comparisons if number.verdict == "too few runs" and number.ratio.why
    )
    return [
        f"Too few runs for {format_count_with_noun(count, 'number')}: {reason.rstrip('.')}."
        for reason, count in reasons.items()
    ]


def describe_simulated_runs(side: ComparedSide) -> str:
    """A sentence when the runs of a side are simulated, or simulated runs were left out; else empty."""
    if side.left_out:
        return f"{format_count_with_noun(side.left_out, 'simulated run')} left out"
    return "simulated, not measured" if side.is_simulated else ""


def describe_shared_runs(comparison: Comparison) -> str:
    """A sentence on runs that make the sides alike; "" where there are none."""
    count = comparison.shared_run_count
    return f"{format_count_with_noun(count, 'run')} on both sides: a run does not differ from itself." if count else ""


def list_common_members(keys: Sequence[HistoryKey]) -> list[tuple[str, str]]:
    """Members of the key that all numbers share, for one line above the table."""
    names = ("system", "file_system", "node_class")
    return [
        (name.replace("_", " "), values.pop())
        for name in names
        if len(values := {getattr(key, name) for key in keys}) == 1 and any(values)
    ]


def format_number_name(history_key: HistoryKey, plan_name: str, all_keys: Sequence[HistoryKey]) -> str:
    """Name of the number of a row: experiment and phase, and whichever part of the key is not the same in all rows."""
    parts = [plan_name or history_key.plan_hash, history_key.phase]
    parts += [
        getattr(history_key, name)
        for name in ("system", "file_system")
        if len({getattr(k, name) for k in all_keys}) > 1
    ]
    return " · ".join(dict.fromkeys(part for part in parts if part))
