# SPDX-License-Identifier: Apache-2.0
"""The points of figures and tables: a metric of a phase in a cell, with the cell's coordinates on all axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sonde.experiments.claims.measured_runs import MeasuredRuns
from sonde.experiments.claims.samples import MissingError, Samples
from sonde.experiments.claims.values import parse_axis_number
from sonde.model.experiment.claims import METRICS
from sonde.model.experiment.description import FigureDescription, TableDescription
from sonde.model.experiment.experiment import Cell, Experiment
from sonde.stats.ratio import RateRatio, compare_rates
from sonde.stats.stopping import adjust_level_for_looks

# Coordinates that are not axes of cells.
PHASE_COORDINATE, PLAN_COORDINATE, METRIC_COORDINATE = "phase", "plan", "metric"
# Maximum charts of one figure; the table of all results has the others.
MAX_CHARTS_PER_FIGURE = 8


@dataclass(frozen=True)
class FigurePoint:
    """One metric of one phase in one cell. `coordinates` has its values on all axes, plan, phase and metric."""

    coordinates: Mapping[str, Any]
    cell: Cell
    phase: str
    metric: str
    samples: Samples

    @property
    def unit(self) -> str:
        return METRICS[self.metric][0]


@dataclass(frozen=True)
class PointSelection:
    """Points of a figure or table, and reasons for missing ones, one sentence each."""

    points: tuple[FigurePoint, ...]
    missing: tuple[str, ...]


def collect_points(
    figure_or_table: FigureDescription | TableDescription, measured_runs: MeasuredRuns
) -> PointSelection:
    """Returns the measured points of a figure or table."""
    points, missing = [], dict[str, None]()
    for metric in figure_or_table.metrics:
        for cell, phase in iterate_selected_phases(figure_or_table, measured_runs.experiment):
            try:
                samples = measured_runs.collect_samples(metric, phase, cell)
                if figure_or_table.per:
                    divisor = _get_divisor(figure_or_table.per, measured_runs, cell, phase)
                    samples = replace(samples, values=tuple(value / divisor for value in samples.values))
            except MissingError as reason:
                missing[str(reason)] = None
                continue
            coordinates = {
                **get_cell_coordinates(measured_runs.experiment, cell),
                PHASE_COORDINATE: phase,
                METRIC_COORDINATE: metric,
            }
            points.append(FigurePoint(coordinates, cell, phase, metric, samples))
    return PointSelection(tuple(points), tuple(missing))


def compute_point_ratio(base_point: FigurePoint, point: FigurePoint) -> RateRatio | None:
    """Returns point / base with its interval; None if a value is not positive."""
    if min(*base_point.samples.values, *point.samples.values) <= 0:
        return None
    confidence = adjust_level_for_looks([base_point.samples.look, point.samples.look])
    return compare_rates(base_point.samples.values, point.samples.values, confidence)


def get_cell_coordinates(experiment: Experiment, cell: Cell) -> dict[str, Any]:
    """Returns the values of a cell on all axes, including the plan."""
    return {**({PLAN_COORDINATE: cell.plan} if experiment.file.plans else {}), **cell.coordinates}


def iterate_selected_phases(
    figure_or_table: FigureDescription | TableDescription, experiment: Experiment
) -> Iterator[tuple[Cell, str]]:
    """Yields the cells and phases of a figure or table in order."""
    fixed = canonicalize_axis_values(experiment, figure_or_table.where or {})
    for cell in experiment.cells:
        if figure_or_table.plans and cell.plan not in figure_or_table.plans:
            continue
        coordinates = get_cell_coordinates(experiment, cell)
        if any(coordinates.get(name) != value for name, value in fixed.items()):
            continue
        for phase in experiment.plans[cell.plan]["phases"]:
            if figure_or_table.phases:
                is_selected = phase["id"] in figure_or_table.phases
            else:
                is_selected = bool(phase.get("measure", True)) and not phase["op"].startswith(("mktree", "rmtree"))
            if is_selected:
                yield cell, str(phase["id"])


def canonicalize_axis_values(experiment: Experiment, values_by_axis: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values as their axes define them ("64 KiB" may be 65536); other values stay unchanged."""
    axis_places = {
        axis.name: axis.find_axis_value(values_by_axis[axis.name])
        for axis in experiment.axes
        if axis.name in values_by_axis
    }
    return {
        name: value if (places_of_axis := axis_places.get(name)) is None else places_of_axis.value
        for name, value in values_by_axis.items()
    }


def _get_divisor(divisor_kind: str, measured_runs: MeasuredRuns, cell: Cell, phase_id: str) -> float:
    if divisor_kind == "unit":
        return measured_runs.count_storage_units(cell)
    if divisor_kind == "target":
        return measured_runs.count_storage_targets(cell)
    _, record, _ = measured_runs.list_phase_records(phase_id, cell)[0]
    run_line = record.run
    if divisor_kind == "node":
        return float((run_line.nodes if run_line else None) or 1)
    return float((run_line.tasks if run_line else None) or 1)


def format_axis_value(experiment: Experiment, axis_name: str, axis_value: Any) -> str:
    """Returns the label of a place on an axis, a phase or a plan."""
    if axis_name == PLAN_COORDINATE:
        title = next((plan.title for plan in experiment.file.plans if plan.id == axis_value), "")
        return title or str(axis_value)
    axis = next((plan for plan in experiment.axes if plan.name == axis_name), None)
    sweep_value = axis.find_axis_value(axis_value) if axis is not None else None
    return sweep_value.label if sweep_value is not None else str(axis_value)


def format_axis_name_and_value(experiment: Experiment, axis_name: str, axis_value: Any) -> str:
    """Returns the label with the name of the axis if needed: "in_flight 16", but "read" and "native"."""
    label = format_axis_value(experiment, axis_name, axis_value)
    is_plain = label == str(axis_value) and axis_name not in (PHASE_COORDINATE, PLAN_COORDINATE)
    return (
        f"{axis_name} {label}"
        if is_plain and (isinstance(axis_value, bool | int | float) or label[:1].isdigit())
        else label
    )


def make_chart_title(experiment: Experiment, shared_coordinates: Mapping[str, Any]) -> str:
    """Returns the title of a chart: the coordinates that all its points share."""
    return " · ".join(
        format_axis_name_and_value(experiment, name, value)
        for name, value in shared_coordinates.items()
        if value is not None
    )


def make_not_drawn_sentence(sentence_head: str, reason_text: object) -> str:
    """Returns one sentence, for example "Not drawn: no run of cell base has it."."""
    return f"{sentence_head}: {str(reason_text).rstrip('.')}."


def order_axis_values(experiment: Experiment, axis_name: str, axis_values: Sequence[Any]) -> list[Any]:
    """Returns the distinct places in the order of their axis."""
    unique = list({str(value): value for value in axis_values}.values())
    axis = next((axis for axis in experiment.axes if axis.name == axis_name), None)
    if axis is not None:
        order = [str(axis_value.value) for axis_value in axis.values]
        return sorted(unique, key=lambda value: order.index(str(value)) if str(value) in order else len(order))
    return unique


def parse_axis_numbers(axis_values: Sequence[Any]) -> list[float] | None:
    """Returns the number of each place; None if a place has no number or two have the same."""
    place_values = [parse_axis_number(number) for number in axis_values]
    defined = [number for number in place_values if number is not None]
    return defined if len(defined) == len(axis_values) and len(set(defined)) == len(defined) else None


def split_points_into_charts(
    points: Sequence[FigurePoint], axes_in_chart: Sequence[str]
) -> list[tuple[dict[str, Any], list[FigurePoint]]]:
    """Groups points into charts by the coordinates that differ and are not drawn inside a chart."""
    names = sorted({name for point in points for name in point.coordinates})
    outside = [
        name
        for name in names
        if name not in axes_in_chart and len({str(point.coordinates.get(name)) for point in points}) > 1
    ]
    groups: dict[tuple[str, ...], tuple[dict[str, Any], list[FigurePoint]]] = {}
    for point in points:
        key = tuple(str(point.coordinates.get(name)) for name in outside)
        groups.setdefault(key, ({name: point.coordinates.get(name) for name in outside}, []))[1].append(point)
    return list(groups.values())
