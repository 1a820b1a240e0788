# SPDX-License-Identifier: Apache-2.0
"""Medians with intervals of every phase of each cell, and the effects of variants."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.experiments.results import Results
from sonde.experiments.schedule import make_stopping_rule
from sonde.findings.best_numbers import STORAGE_CLASSIFICATIONS
from sonde.findings.classification import label_classification
from sonde.model.errors import RecordError
from sonde.model.experiment.description import RunSchedule
from sonde.model.units import format_count_with_noun
from sonde.stats.ratio import RateRatio, compare_rates, estimate_detectable_drop
from sonde.stats.stopping import InterimLook, MedianInterval, adjust_level_for_looks
from sonde.store.summary import Summary, read_summary

_STORAGE_CLASSIFICATIONS = frozenset(kind.value for kind in STORAGE_CLASSIFICATIONS)
BYTE_RATE_UNIT, OPERATION_RATE_UNIT = "B/s", "op/s"


@dataclass(frozen=True)
class CellMedian:
    """The median rate of one phase of one cell."""

    cell: str
    axis_values: Mapping[str, Any]
    plan: str
    phase: str
    unit: str
    interval: MedianInterval
    look: InterimLook  # how the repeats ended
    has_enough_runs: bool  # the requested number of repeats or width of the interval was reached
    rates: tuple[float, ...]  # in the order of the repeats
    classifications: tuple[str, ...] = ()  # different ones of the rates; empty where nothing is known
    accelerators: int = 0  # emulated ones that read training samples
    utilizations: tuple[float, ...] = ()  # shares of the time that they computed, of the runs that state one

    @property
    def about(self) -> str:
        """Classifications of the rates other than storage: ``too short, cached``; else empty."""
        return ", ".join(
            label_classification(kind) for kind in self.classifications if kind not in _STORAGE_CLASSIFICATIONS
        )

    @property
    def median_utilization(self) -> float:
        """Returns the median of the utilizations; there must be at least one."""
        return statistics.median(self.utilizations)


@dataclass(frozen=True)
class VariantEffect:
    """The effect of a variant against the first variant, with all other axes equal."""

    axis_values: Mapping[str, Any]  # without the variant
    plan: str
    phase: str
    first: str
    second: str
    ratio: RateRatio  # rate of `second` over that of `first`
    smallest_visible_drop: float | None  # fraction; these runs detect it with 80 % probability


def compute_medians(results: Results) -> list[CellMedian]:
    """Returns the medians in the order of cells and of their phases."""
    stopping = make_stopping_rule(results.experiment.file.repeat or RunSchedule())
    cell_medians = []
    for cell in results.experiment.cells:
        runs = sorted(results.list_runs_of_cell(cell.id), key=lambda run: run.repeat)
        rates: dict[tuple[str, str], list[float]] = {}
        kinds: dict[str, dict[str, None]] = {}
        accelerators, utilizations = dict[str, int](), dict[str, list[float]]()
        for run in runs:
            try:
                summary = read_summary(run.folder)
            except RecordError:
                continue  # removed meanwhile
            for phase, unit, rate in iterate_measured_phases(summary):
                rates.setdefault((phase, unit), []).append(rate)
            for row in summary.phases:
                kinds.setdefault(str(row.get("phase")), {})[str(row.get("classification") or "")] = None
                if row.get("done") and row.get("utilization") is not None:
                    accelerators[str(row["phase"])] = int(row["accelerators"])
                    utilizations.setdefault(str(row["phase"]), []).append(float(row["utilization"]))
        for (phase, unit), values in rates.items():
            cell_medians.append(
                CellMedian(
                    cell.id,
                    cell.coordinates,
                    cell.plan,
                    phase,
                    unit,
                    stopping.compute_median_interval(values),
                    stopping.classify_look(len(values)),
                    stopping.is_finished(values),
                    tuple(values),
                    tuple(kind for kind in kinds[phase] if kind),
                    accelerators.get(phase, 0),
                    tuple(utilizations.get(phase, ())),
                )
            )
    return cell_medians


def describe_non_storage_numbers(medians: Sequence[CellMedian]) -> list[str]:
    """One sentence for each kind of number that does not describe storage: its phases and the number of cells."""
    cells: dict[str, dict[str, list[str]]] = {}
    for median in medians:
        if median.about:
            cells.setdefault(median.about, {}).setdefault(median.phase, []).append(median.cell)
    return [
        f"Not of storage ({about}): "
        + ", ".join(f"{phase} in {format_count_with_noun(len(of_phase), 'cell')}" for phase, of_phase in phases.items())
        + "."
        for about, phases in cells.items()
    ]


def iterate_measured_phases(summary: Summary) -> Iterator[tuple[str, str, float]]:
    """Yields phase, unit and rate of each measured phase: bytes/s, or operations/s if no bytes were transferred."""
    for phase in summary.phases:
        if not (phase.get("measured", True) and phase.get("done")):
            continue
        for name, unit in (("bytes_per_s", BYTE_RATE_UNIT), ("ops_per_s", OPERATION_RATE_UNIT)):
            rate = phase.get(name)
            if isinstance(rate, int | float) and rate > 0:
                yield str(phase["phase"]), unit, float(rate)
                break


def compute_effects(medians: list[CellMedian]) -> list[VariantEffect]:
    """Compares every variant with the first one, in each cell and phase that both have."""
    sides: dict[tuple[Any, ...], list[tuple[str, CellMedian]]] = {}
    for cell_median in medians:
        if "variant" in cell_median.axis_values:
            other_axes = tuple(
                (name, str(value)) for name, value in cell_median.axis_values.items() if name != "variant"
            )
            sides.setdefault((cell_median.plan, other_axes, cell_median.phase, cell_median.unit), []).append(
                (str(cell_median.axis_values["variant"]), cell_median)
            )
    variant_effects = []
    for (plan, _, phase, _), members in sides.items():
        (first_name, first_median), *compared = members
        shared_axes = {name: value for name, value in first_median.axis_values.items() if name != "variant"}
        for second_name, second_median in compared:
            variant_effects.append(
                VariantEffect(
                    shared_axes,
                    plan,
                    phase,
                    first_name,
                    second_name,
                    compare_rates(
                        first_median.rates,
                        second_median.rates,
                        adjust_level_for_looks([first_median.look, second_median.look]),
                    ),
                    estimate_detectable_drop(first_median.rates, second_median.rates),
                )
            )
    return variant_effects
