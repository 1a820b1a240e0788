# SPDX-License-Identifier: Apache-2.0
"""What the repeats of each cell say: the median of every phase with its interval, and what a variant changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sonde.experiments.order import stopping_of
from sonde.experiments.results import Results
from sonde.model.experiment.description import Repeat
from sonde.stats.ratio import Ratio, ratio, smallest_visible
from sonde.stats.stopping import Look, MedianInterval, level_of_several
from sonde.store.summary import Summary, read_summary

BYTES, OPERATIONS = "B/s", "op/s"


@dataclass(frozen=True)
class CellMedian:
    """One phase of one cell."""

    cell: str
    at: Mapping[str, Any]
    plan: str
    phase: str
    unit: str
    interval: MedianInterval
    look: Look  # how the repeats ended
    enough: bool  # as many repeats as were asked for, or an interval as narrow
    rates: tuple[float, ...]  # in the order of the repeats


@dataclass(frozen=True)
class Effect:
    """What one variant changes against the first one, everything else alike."""

    at: Mapping[str, Any]  # without the variant
    plan: str
    phase: str
    first: str
    second: str
    ratio: Ratio  # rate of `second` over that of `first`
    visible: float | None  # the smallest drop that so many runs would have shown four times in five, as a share


def medians(results: Results) -> list[CellMedian]:
    """In the order of the cells, and of the phases of each."""
    rule = stopping_of(results.experiment.file.repeat or Repeat())
    found = []
    for cell in results.experiment.cells:
        runs = sorted(results.of_cell(cell.id), key=lambda one: one.repeat)
        rates: dict[tuple[str, str], list[float]] = {}
        for run in runs:
            for phase, unit, rate in measured(read_summary(run.folder)):
                rates.setdefault((phase, unit), []).append(rate)
        for (phase, unit), values in rates.items():
            found.append(
                CellMedian(
                    cell.id,
                    cell.at,
                    cell.plan,
                    phase,
                    unit,
                    rule.interval(values),
                    rule.look(len(values)),
                    rule.enough(values),
                    tuple(values),
                )
            )
    return found


def measured(run: Summary) -> Iterator[tuple[str, str, float]]:
    """Phase, unit and rate of each phase that is measured: bytes, or operations where no bytes are moved."""
    for phase in run.phases:
        if not (phase.get("measured", True) and phase.get("done")):
            continue
        for name, unit in (("bytes_per_s", BYTES), ("ops_per_s", OPERATIONS)):
            rate = phase.get(name)
            if isinstance(rate, int | float) and rate > 0:
                yield str(phase["phase"]), unit, float(rate)
                break


def effects(found: list[CellMedian]) -> list[Effect]:
    """Every variant against the first, in each cell and phase that both have."""
    sides: dict[tuple[Any, ...], list[tuple[str, CellMedian]]] = {}
    for one in found:
        if "variant" in one.at:
            rest = tuple((name, str(value)) for name, value in one.at.items() if name != "variant")
            sides.setdefault((one.plan, rest, one.phase, one.unit), []).append((str(one.at["variant"]), one))
    made = []
    for (plan, _, phase, _), listed in sides.items():
        (first, base), *others = listed
        at = {name: value for name, value in base.at.items() if name != "variant"}
        for second, other in others:
            made.append(
                Effect(
                    at,
                    plan,
                    phase,
                    first,
                    second,
                    ratio(base.rates, other.rates, level_of_several([base.look, other.look])),
                    smallest_visible(base.rates, other.rates),
                )
            )
    return made
