# SPDX-License-Identifier: Apache-2.0
"""The outcome of a tuning as a table, sentences and JSON."""

from __future__ import annotations

import statistics
from typing import Any

from rich.console import Console

from sonde.model.errors import format_as_sentence
from sonde.stats.ratio import RateRatio
from sonde.terminal.screen import make_plain_table
from sonde.tune.description import Tunable
from sonde.tune.search import SearchResult
from sonde.tune.tuning import TunedSetting, TuneOutcome


def print_outcome(console: Console, outcome: TuneOutcome) -> None:
    """Prints a row for each setting, then how to keep the better values."""
    table = make_plain_table()
    for title in ("setting", "now", "best", "change", "runs", ""):
        table.add_column(title, justify="right" if title in ("change", "runs") else "left")
    for setting in outcome.settings:
        result = setting.result
        table.add_row(setting.tunable.id, setting.present, result.best or "-", format_ratio_in_percent(result.ratio),
                      str(_count_runs(result)), result.verdict, style="bold" if result.is_better else None)  # fmt: skip
    if outcome.together is not None:
        together = outcome.together
        table.add_row(
            "all together",
            "",
            "",
            format_ratio_in_percent(together.ratio),
            str(_count_runs(together)),
            together.verdict,
        )
    console.print(table)
    for setting in outcome.settings:
        for value, reason in setting.result.rejected.items():
            console.print(f"{setting.tunable.id} {value} was not tried: {reason}.", style="dim", soft_wrap=True)
    better = [setting for setting in outcome.settings if setting.result.is_better]
    if not better:
        console.print("No value is known to be better than the present one; nothing is changed.")
    for setting in better:
        console.print(describe_how_to_keep_value(setting, outcome), soft_wrap=True)
    for problem in outcome.problems:
        console.print(f"! {problem}", style="yellow", soft_wrap=True)


def format_ratio_in_percent(ratio: RateRatio | None) -> str:
    """The change in percent with its interval."""
    if ratio is None:
        return "-"
    text = f"{100 * (ratio.value - 1):+.1f} %"
    if ratio.low is None or ratio.high is None:
        return text
    return f"{text} [{100 * (ratio.low - 1):+.1f}, {100 * (ratio.high - 1):+.1f}]"


def describe_how_to_keep_value(setting: TunedSetting, outcome: TuneOutcome) -> str:
    """How to keep the best value of a setting, or that it is kept, and what it can do besides changing rates."""
    tunable, value = setting.tunable, setting.result.best or ""
    keep = f" Permanently: {tunable.permanent.replace('VALUE', value)}." if tunable.permanent else ""
    if tunable.id in outcome.applied:
        use = f"{tunable.id} is {value} now; `sonde tune --restore` sets {setting.present} again."
    elif tunable.changes_system:
        use = f"{tunable.id} is {setting.present} again; --apply leaves {value} in place."
    else:
        use = f"{tunable.id}: use {value}."
    return f"{use}{keep}{f' Caution: {tunable.caution}' if tunable.caution else ''}"


def print_tunables(console: Console, tunables: dict[str, Tunable]) -> None:
    """Prints what can be tuned."""
    table = make_plain_table()
    for title in ("setting", "what it does", "values", "range", "needs"):
        table.add_column(title, overflow="fold")
    for tunable in tunables.values():
        table.add_row(tunable.id, tunable.title, ", ".join(tunable.values), _format_range(tunable), tunable.privilege)
    console.print(table)
    cautions = dict.fromkeys(tunable.caution for tunable in tunables.values() if tunable.caution)
    for caution in cautions:
        names = ", ".join(tunable.id for tunable in tunables.values() if tunable.caution == caution)
        console.print(f"{names}: {caution}", soft_wrap=True, highlight=False)


def _format_range(tunable: Tunable) -> str:
    if tunable.least is None and tunable.most is None:
        return ""
    return f"{tunable.least or 0:g} to {tunable.most or float('inf'):g}"


def _count_runs(search_result: SearchResult) -> int:
    return sum(map(len, search_result.rates.values())) + len(search_result.present) + len(search_result.changed)


def build_tune_document(outcome: TuneOutcome) -> dict[str, Any]:
    """The JSON document."""
    return {
        "settings": [
            {
                "tunable": setting.tunable.id,
                "present": setting.present,
                **_make_result_document(setting.result),
                "applied": setting.tunable.id in outcome.applied,
                "permanent": setting.tunable.permanent.replace("VALUE", setting.result.best or "VALUE"),
            }
            for setting in outcome.settings
        ],
        "together": _make_result_document(outcome.together) if outcome.together is not None else None,
        "problems": list(outcome.problems),
    }


def _make_result_document(search_result: SearchResult) -> dict[str, Any]:
    ratio = search_result.ratio
    return {
        "best": search_result.best,
        "verdict": search_result.verdict,
        "ratio": ratio.value if ratio else None,
        "low": ratio.low if ratio else None,
        "high": ratio.high if ratio else None,
        "median_rates": {value: statistics.median(rates) for value, rates in search_result.rates.items()},
        "present_rates": list(search_result.present),
        "changed_rates": list(search_result.changed),
        "rejected": {value: format_as_sentence(reason) for value, reason in search_result.rejected.items()},
    }


def build_list_document(tunables: dict[str, Tunable]) -> dict[str, Any]:
    """The JSON document of `--list`."""
    return {"tunables": [{name: value for name, value in vars(item).items() if value} for item in tunables.values()]}
