# SPDX-License-Identifier: Apache-2.0
"""Outcomes of expectations in sentences, for the page and for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.charts.curves import shown
from sonde.experiments.judging.judge import Compared, InCell, Judgement
from sonde.model.experiment.outcomes import Outcome
from sonde.model.quantities import plural
from sonde.model.units import significant
from sonde.stats.bounds import Bounded

_MOST_CELLS = 3


def number(value: float) -> str:
    """Three significant digits, with a power of a thousand in a letter where it is large."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{significant(value / size)} {letter}"
    return f"{value:.3g}"


def unit_words(unit: str) -> str:
    """A unit as it stands behind a number: a ratio has none."""
    return "" if unit == "1" else unit


def amount(value: float, unit: str) -> str:
    """A value with its unit: 1.60 GB/s, 20 kop/s, 34.8 s, 0.5."""
    return shown(value, unit_words(unit))


def interval(found: Bounded) -> str:
    """1.99 [1.87, 2.11]; without an interval the value alone."""
    if found.low is None or found.high is None:
        return number(found.value)
    if found.low == found.high:
        return number(found.value)
    return f"{number(found.value)} [{number(found.low)}, {number(found.high)}]"


def _compared(part: Compared) -> str:
    if part.value is None:
        return part.missing
    if isinstance(part.threshold, str):
        return f'{part.missing}, wanted "{part.threshold}"'
    return f"{interval(part.value)} {part.operator} {number(part.threshold)}"


def _cell(one: InCell) -> str:
    place = ", ".join(f"{name}={value}" for name, value in one.at.items())
    told = "; ".join(_compared(part) for part in one.parts)
    return f"{place}: {told}" if place else told


def sentence(one: Judgement) -> str:
    """What was found, and what would decide it."""
    if one.outcome is Outcome.NOT_APPLICABLE:
        return f"Not looked at here: {one.reason.rstrip('.')}."
    chosen = [cell for cell in one.cells if cell.outcome is one.outcome]
    words = "; ".join(_cell(cell) for cell in chosen[:_MOST_CELLS])
    if len(chosen) > _MOST_CELLS:
        words += f"; and {len(chosen) - _MOST_CELLS} more"
    left = sum(cell.outcome is Outcome.NOT_APPLICABLE for cell in one.cells)
    if one.outcome is Outcome.FAILS and len(chosen) < len(one.cells) - left:
        words += f" (in {len(chosen)} of {plural(len(one.cells) - left, 'cell')})"
    words += "."
    if one.outcome is Outcome.INCONCLUSIVE:
        words += _what_would_tell(one)
    remarks = dict.fromkeys(part.remark for cell in chosen for part in cell.parts if part.remark)
    words += "".join(f" {one}" for one in list(remarks)[:_MOST_CELLS])
    if left:
        words += f" In {plural(left, 'cell')} something that it compares is missing."
    return words.replace("\N{NO-BREAK SPACE}", " ")


def _what_would_tell(one: Judgement) -> str:
    """How many more runs would; or why hardly any number would, where the numbers say it."""
    if one.more is not None:
        return f" About {plural(one.more, 'more run')} of each cell would tell."
    parts = [part for cell in one.cells for part in cell.parts if part.outcome is Outcome.INCONCLUSIVE]
    if any(part.more is None and part.value is not None and part.value.known for part in parts):
        return " More runs would hardly tell: the interval is wide, and the value is near to what it is compared with."
    return ""


def counts(judged: Sequence[Judgement]) -> str:
    """3 hold, 1 fails, 2 inconclusive, 4 not applicable."""
    names = {
        Outcome.HOLDS: ("holds", "hold"),
        Outcome.FAILS: ("fails", "fail"),
        Outcome.INCONCLUSIVE: ("is inconclusive", "are inconclusive"),
        Outcome.NOT_APPLICABLE: ("is not applicable", "are not applicable"),
    }
    found = {outcome: sum(one.outcome is outcome for one in judged) for outcome in names}
    return ", ".join(f"{count} {names[outcome][count != 1]}" for outcome, count in found.items() if count)


def outcome_lines(judged: Sequence[Judgement]) -> list[str]:
    """One line an expectation: outcome, name, sentence."""
    width = max((len(one.expectation.id) for one in judged), default=0)
    return [f"{one.outcome:14} {one.expectation.id:{width}}  {sentence(one)}" for one in judged]
