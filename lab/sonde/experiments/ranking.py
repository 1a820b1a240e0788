# SPDX-License-Identifier: Apache-2.0
"""Ranks the cells of a sweep: the best cell of each phase, how many times as fast it is as the others, and a figure.

Of training input the answer is another one: the largest number of accelerators that the storage keeps busy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sonde.experiments.medians import BYTE_RATE_UNIT, CellMedian
from sonde.model.experiment.description import FigureDescription
from sonde.model.experiment.experiment import Experiment
from sonde.model.units import format_count_with_noun, format_ops, format_rate
from sonde.stats.ratio import RateRatio, compare_rates

# Ratios of the best cell to this many others are printed: the next ones, and the slowest.
_MAX_PRINTED_RATIOS = 3
_MIN_DIFFERENCE_IN_TWO_DIGITS = 0.095
# Utilizations that the published definitions of training input demand (mlcommons/storage: unet3d and resnet50 90 %,
# cosmoflow 70 %).
_DEMANDED_UTILIZATIONS = (0.9, 0.7)


def describe_ranking(medians: Sequence[CellMedian]) -> list[str]:
    """Sentences on the best cell of each phase and its ratio to the next cells and to the slowest.

    Empty without two cells that only axes distinguish: variants are compared with each other elsewhere.
    """
    cells_of_phase: dict[tuple[str, str, str], list[CellMedian]] = {}
    for median in medians:
        if median.axis_values and "variant" not in median.axis_values:
            cells_of_phase.setdefault((median.plan, median.phase, median.unit), []).append(median)
    sentences = []
    for (plan, phase, _), cells in cells_of_phase.items():
        if len(cells) > 1:
            name = f"{plan}, {phase}" if plan else phase
            if all(cell.utilizations for cell in cells) and len({cell.accelerators for cell in cells}) > 1:
                sentences += _describe_busy_accelerators(name, cells)
                continue
            ranked = sorted(_remove_constant_axes(cells), key=lambda cell: -cell.interval.value)
            sentences += [_describe_best_cell(name, ranked), *_describe_ratios_to_best_cell(ranked)]
    return _drop_repeated_reasons(sentences)


def _drop_repeated_reasons(ratio_sentences: Sequence[str]) -> list[str]:
    """The sentences; of several ratios without an interval for one reason only the first gives it."""
    reasons: set[str] = set()
    results = []
    for sentence in ratio_sentences:
        reason = re.search(r" \(an interval needs [^)]*\)", sentence)
        if reason is not None and reason[0] in reasons:
            sentence = sentence.replace(reason[0], " (no interval)")
        reasons |= {reason[0]} if reason is not None else set()
        results.append(sentence)
    return results


def _describe_busy_accelerators(phase_id: str, cell_medians: Sequence[CellMedian]) -> list[str]:
    """How many accelerators compute for the demanded shares of the time, for all cells with the same other axes."""
    groups: dict[tuple[tuple[str, str], ...], list[CellMedian]] = {}
    counting_axes = _find_axes_of_accelerator_count(cell_medians)
    for cell in _remove_constant_axes(cell_medians):
        others = tuple((axis, str(value)) for axis, value in cell.axis_values.items() if axis not in counting_axes)
        groups.setdefault(others, []).append(cell)
    sentences = []
    for others, group in groups.items():
        name = ", ".join([phase_id, *(f"{axis}={value}" for axis, value in others)])
        sentences += [_describe_largest_busy_count(name, group, demanded) for demanded in _DEMANDED_UTILIZATIONS]
    return sentences


def _find_axes_of_accelerator_count(cell_medians: Sequence[CellMedian]) -> set[str]:
    """The axes that set the number of accelerators: each value has one number, and not all the same."""
    counting_axes = set()
    for axis in cell_medians[0].axis_values:
        numbers: dict[str, set[int]] = {}
        for cell in cell_medians:
            numbers.setdefault(str(cell.axis_values.get(axis)), set()).add(cell.accelerators)
        if all(len(of_value) == 1 for of_value in numbers.values()) and len(set(map(tuple, numbers.values()))) > 1:
            counting_axes.add(axis)
    return counting_axes


def _describe_largest_busy_count(phase_id: str, cell_medians: Sequence[CellMedian], demanded_utilization: float) -> str:
    """The largest number of accelerators that, like all smaller numbers tried, computed for the demanded share."""
    busy: CellMedian | None = None
    waiting: CellMedian | None = None
    for cell in sorted(cell_medians, key=lambda cell: cell.accelerators):
        if cell.median_utilization < demanded_utilization:
            waiting = cell
            break
        busy = cell
    if busy is None:
        sentence = (
            f"{phase_id}: no number of accelerators that was tried"
            f" computed {100 * demanded_utilization:.0f} % of the time"
        )
    else:
        about = f", not of storage ({busy.about})" if busy.about else ""
        sentence = (
            f"{phase_id}: {format_count_with_noun(busy.accelerators, 'accelerator')} computed"
            f" {100 * busy.median_utilization:.1f} % of the time{about}"
        )
        sentence += f": the most that reached {100 * demanded_utilization:.0f} %" if waiting else ""
    if waiting is None:
        return f"{sentence}, {100 * demanded_utilization:.0f} % is demanded; no larger number was tried."
    return f"{sentence}; {waiting.accelerators} computed {100 * waiting.median_utilization:.1f} %."


def _remove_constant_axes(cell_medians: Sequence[CellMedian]) -> list[CellMedian]:
    """The cells without the axes that have one value in all of them: these distinguish nothing."""
    names = [
        name for name in cell_medians[0].axis_values if len({cell.axis_values.get(name) for cell in cell_medians}) > 1
    ]
    return [replace(cell, axis_values={name: cell.axis_values[name] for name in names}) for cell in cell_medians]


def _describe_best_cell(phase_id: str, ranked_medians: Sequence[CellMedian]) -> str:
    best = ranked_medians[0]
    about = f", not of storage ({best.about})" if best.about else ""
    return (
        f"{phase_id}: {describe_cell_axes(best)} has the highest median of {len(ranked_medians)} cells, "
        f"{_format_median(best)}{about}."
    )


def _describe_ratios_to_best_cell(ranked_medians: Sequence[CellMedian]) -> list[str]:
    others = list(ranked_medians[1:])
    printed_cells = others if len(others) <= _MAX_PRINTED_RATIOS else [*others[: _MAX_PRINTED_RATIOS - 1], others[-1]]
    return [
        describe_cell_ratio(ranked_medians[0], other, compare_rates(other.rates, ranked_medians[0].rates))
        for other in printed_cells
    ]


def describe_cell_ratio(first_median: CellMedian, second_median: CellMedian, ratio: RateRatio) -> str:
    """How many times as fast `first_median` is as `second_median`, with the 95 % interval, or why there is none."""
    # two digits would print a ratio near 1 as 1
    digits = 2 if abs(ratio.value - 1) >= _MIN_DIFFERENCE_IN_TWO_DIGITS else 3
    factor = f"{ratio.value:.{digits}g}"
    sentence = (
        f"{describe_cell_axes(first_median)} is {'' if factor == '1' else f'{factor} times '}as fast as"
        f" {describe_cell_axes(second_median)}"
    )
    if ratio.low is None or ratio.high is None:
        return f"{sentence} ({ratio.why})."
    if not ratio.differs:
        return (
            f"{describe_cell_axes(first_median)} and {describe_cell_axes(second_median)} do not differ by more than "
            f"chance ({_format_ratio_interval(ratio)})."
        )
    return f"{sentence}, {_format_ratio_interval(ratio)}."


def _format_ratio_interval(ratio: RateRatio) -> str:
    """Two decimals where one would hide that 1 is outside."""
    digits = 1 if min(abs((ratio.low or 0) - 1), abs((ratio.high or 0) - 1)) >= 0.1 else 2
    return f"{ratio.low:.{digits}f} to {ratio.high:.{digits}f}"


def describe_cell_axes(median: CellMedian) -> str:
    """The values of the axes: transfer=1MiB, tasks=4."""
    return ", ".join(f"{name}={value}" for name, value in median.axis_values.items())


def _format_median(median: CellMedian) -> str:
    format_value = format_rate if median.unit == BYTE_RATE_UNIT else format_ops
    return format_value(median.interval.value)


def list_figures_or_default(experiment: Experiment, medians: Sequence[CellMedian]) -> tuple[FigureDescription, ...]:
    """The figures of the experiment; for a sweep without any, one with the first axis along the bottom and a line for
    each value of the second. None without a sweep."""
    axes = [axis.name for axis in experiment.axes if len(axis.values) > 1]
    if experiment.file.figures or not axes or not medians:
        return experiment.file.figures
    metric = "bandwidth" if any(median.unit == BYTE_RATE_UNIT for median in medians) else "operations"
    title = f"Rate over {axes[0]}"
    series = axes[1] if len(axes) > 1 else ""
    return (FigureDescription(id="sweep", title=title, kind="curve", metrics=(metric,), x=axes[0], series=series),)
