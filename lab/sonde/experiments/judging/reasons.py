# SPDX-License-Identifier: Apache-2.0
"""Why a claim does not hold, as far as its numbers say: where a rate reaches its plateau, how much runs scatter."""

from __future__ import annotations

from sonde.experiments.judging.grid import Context
from sonde.experiments.judging.samples import MissingError, Samples
from sonde.experiments.judging.values import Values
from sonde.model.experiment.claims import Claim, Comparison, Function
from sonde.model.experiment.outcomes import Outcome
from sonde.stats.spread import LEAST, variation

# A place belongs to the plateau when its interval reaches this share of the largest median.
PLATEAU = 0.9
# Runs that scatter less are not the reason.
SCATTERS = 0.1
# Of a value with runs enough.
NO_INTERVAL = "It has no interval: what it is divided by may be 0, as far as these runs tell."
# What is said to grow along an axis.
_GROWS = ("rank_correlation", "slope", "rise")


def remark(one: Comparison, values: Values, at: Context, outcome: Outcome) -> str:
    """One or two sentences; empty for what holds or does not apply, and where the numbers say nothing."""
    if outcome not in (Outcome.FAILS, Outcome.INCONCLUSIVE):
        return ""
    claim = Claim("", (one,))
    told = [_along(function, values, at) for function in claim.functions() if one.operator in (">", ">=")]
    if outcome is Outcome.INCONCLUSIVE:
        told.append(_scatter(claim, values, at))
    return " ".join(dict.fromkeys(words for words in told if words))


def _along(function: Function, values: Values, at: Context) -> str:
    """Where what should grow along an axis is at its largest already."""
    if function.name not in _GROWS:
        return ""
    try:
        places = values.places(function, at)
    except MissingError:
        return ""
    name, over = function.of.name.replace("_", " "), str(function.options["over"])
    ends = [(place, samples.bounds()) for place, _, samples in places]
    largest = max(bounds.value for _, bounds in ends)
    # from the end: the places that cannot be told from the largest
    knee = len(ends)
    while knee and _reaches(ends[knee - 1][1].ends[1], ends[knee - 1][1].value, largest):
        knee -= 1
    if knee == 0:
        return (
            f"The {name} is within {100 * (1 - PLATEAU):.0f} % of its largest from {ends[0][0]} on, the smallest {over}"
            " that was tried: the knee lies lower here."
        )
    last = ends[-1][1]
    if knee == len(ends):
        best = next(place for place, bounds in ends if bounds.value == largest)
        return f"The {name} is largest at {best} and {100 * last.value / largest:.0f} % of that at {ends[-1][0]}."
    return f"The {name} is within {100 * (1 - PLATEAU):.0f} % of its largest from {ends[knee][0]} on: the knee."


def _reaches(high: float, value: float, largest: float) -> bool:
    return max(value, high if high < float("inf") else value) >= PLATEAU * largest


def _scatter(claim: Claim, values: Values, at: Context) -> str:
    """The cell whose runs scatter most, where that is much."""
    found: list[tuple[float, str]] = []
    around = {id(one.of): one for one in claim.functions() if "over" in one.options}
    for metric in claim.metrics():
        try:
            known: list[tuple[str, Samples]] = (
                [(cell.id, samples) for _, cell, samples in values.places(around[id(metric)], at)]
                if id(metric) in around
                else [values.of_cell(metric, at)]
            )
            found += [
                (variation(samples.values).value, f"{cell} ({metric.phase or metric.name})")
                for cell, samples in known
                if samples.count >= LEAST and not samples.exact
            ]
        except (MissingError, ValueError):
            continue
    if not found or max(found)[0] < SCATTERS:
        return ""
    most, words = max(found)
    return f"Runs of {words} scatter by {100 * most:.0f} % (COV)."
