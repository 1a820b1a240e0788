# SPDX-License-Identifier: Apache-2.0
"""Evaluates the parts of a claim in one context: metrics, functions and arithmetic, each with a confidence interval.

The ratio of two metrics of the same cell is computed run by run; that of different cells as two groups of runs.
Everything else is interval arithmetic.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from sonde.experiments.claims.curve_forms import classify_form
from sonde.experiments.claims.grid import CellGrid, ClaimContext
from sonde.experiments.claims.samples import MissingError, Samples, SampleSource, compute_median_bounds
from sonde.model.errors import UnitError
from sonde.model.experiment.claims import (
    ArithmeticExpression,
    ClaimComparison,
    ClaimExpression,
    MetricFunctionCall,
    MetricReference,
    NumberLiteral,
)
from sonde.model.experiment.experiment import Cell
from sonde.model.units import parse_bytes
from sonde.stats.bounds import MIN_VALUES, BoundedValue, bootstrap_statistic, compute_binomial_interval
from sonde.stats.ranks import Floats, compute_midranks
from sonde.stats.ratio import MIN_RUNS_PER_SIDE as MIN_OF_SIDE
from sonde.stats.ratio import compare_rates
from sonde.stats.spread import estimate_coefficient_of_variation
from sonde.stats.stopping import MIN_RUNS as MIN_OF_MEDIAN
from sonde.stats.stopping import InterimLook, adjust_level_for_looks


@dataclass(frozen=True)
class EvaluatedValue:
    """A value, and the smallest number of runs behind a part of it; an interval needs `runs_needed` runs."""

    bounds: BoundedValue
    runs: int
    runs_needed: int = MIN_VALUES


class ClaimEvaluator:
    """Evaluates the parts of one claim."""

    def __init__(self, grid: CellGrid, sample_source: SampleSource, confidence: float) -> None:
        self._grid, self._source, self._confidence = grid, sample_source, confidence

    def evaluate_expression(self, expression: ClaimExpression, context: ClaimContext) -> EvaluatedValue:
        """Returns the value in a context. Raises MissingError."""
        match expression:
            case NumberLiteral():
                return EvaluatedValue(BoundedValue.from_exact_value(expression.value), _RUN_COUNT_OF_EXACT_VALUES)
            case MetricReference():
                samples = self._get_samples(expression, context)
                return EvaluatedValue(
                    samples.compute_median_bounds(self._confidence), _get_run_count(samples), MIN_OF_MEDIAN
                )
            case MetricFunctionCall():
                return self._evaluate_function(expression, context)
            case ArithmeticExpression():
                return self._evaluate_arithmetic(expression, context)
        raise MissingError("a form stands alone")

    def evaluate_comparison(
        self, comparison: ClaimComparison, context: ClaimContext
    ) -> tuple[EvaluatedValue, float, float]:
        """Returns the value to compare, its threshold, and the magnitude of the operands if it is a difference (else
        0). Two metrics are compared by their ratio. Raises MissingError."""
        left_scaled, right_scaled = (
            _split_factor_and_metric(comparison.left_operand),
            _split_factor_and_metric(comparison.right_operand),
        )
        if left_scaled is not None and right_scaled is not None and right_scaled[0] > 0 and left_scaled[0] > 0:
            return self._evaluate_ratio(left_scaled[1], right_scaled[1], context), right_scaled[0] / left_scaled[0], 0.0
        if isinstance(comparison.right_operand, NumberLiteral):
            return self.evaluate_expression(comparison.left_operand, context), comparison.right_operand.value, 0.0
        left_value, right_value = (
            self.evaluate_expression(comparison.left_operand, context),
            self.evaluate_expression(comparison.right_operand, context),
        )
        evaluated = EvaluatedValue(left_value.bounds - right_value.bounds, min(left_value.runs, right_value.runs))
        return evaluated, 0.0, max(abs(left_value.bounds.value), abs(right_value.bounds.value))

    def count_forms_of_runs(self, function_call: MetricFunctionCall, context: ClaimContext) -> Counter[str]:
        """Counts the runs of each form. Raises MissingError."""
        cell = self._grid.find_cell(function_call.metric, context)
        curves = self._source.collect_rate_curves(
            function_call.metric.name, self._grid.get_phase_of_metric(function_call.metric, cell), cell
        )
        return Counter(classify_form(curve) for curve in curves)

    def compute_form_share_and_counts(
        self, function_call: MetricFunctionCall, form_name: str, context: ClaimContext
    ) -> tuple[BoundedValue, Counter[str]]:
        """Returns the fraction of runs with this form and its interval, and the counts of all forms.

        Raises MissingError.
        """
        counts = self.count_forms_of_runs(function_call, context)
        if self._source.is_deterministic:
            return BoundedValue.from_exact_value(counts[form_name] / counts.total()), counts
        return compute_binomial_interval(counts[form_name], counts.total(), self._confidence), counts

    def _get_samples(self, metric: MetricReference, context: ClaimContext) -> Samples:
        cell = self._grid.find_cell(metric, context)
        return self._source.collect_samples(metric.name, self._grid.get_phase_of_metric(metric, cell), cell)

    def _evaluate_arithmetic(self, expression: ArithmeticExpression, context: ClaimContext) -> EvaluatedValue:
        if expression.operator == "/":
            left_scaled, right_scaled = (
                _split_factor_and_metric(expression.left_operand),
                _split_factor_and_metric(expression.right_operand),
            )
            if left_scaled is not None and right_scaled is not None:
                evaluated = self._evaluate_ratio(left_scaled[1], right_scaled[1], context)
                scale = BoundedValue.from_exact_value(left_scaled[0] / right_scaled[0])
                return EvaluatedValue(evaluated.bounds * scale, evaluated.runs, evaluated.runs_needed)
        left_value, right_value = (
            self.evaluate_expression(expression.left_operand, context),
            self.evaluate_expression(expression.right_operand, context),
        )
        calculate: Mapping[str, Callable[[BoundedValue, BoundedValue], BoundedValue]] = {
            "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
        }  # fmt: skip
        try:
            bounds = calculate[expression.operator](left_value.bounds, right_value.bounds)
        except ZeroDivisionError:
            raise MissingError("a divisor that is not 0") from None
        return EvaluatedValue(bounds, min(left_value.runs, right_value.runs))

    def _evaluate_ratio(
        self, numerator: MetricReference, denominator: MetricReference, context: ClaimContext
    ) -> EvaluatedValue:
        numerator_cell, denominator_cell = (
            self._grid.find_cell(numerator, context),
            self._grid.find_cell(denominator, context),
        )
        return self._compute_ratio(
            self._get_samples(numerator, context),
            self._get_samples(denominator, context),
            numerator_cell.id == denominator_cell.id,
        )

    def _compute_ratio(self, numerator: Samples, denominator: Samples, is_paired: bool) -> EvaluatedValue:
        runs = min(_get_run_count(numerator), _get_run_count(denominator))
        if min(denominator.values) <= 0 or min(numerator.values) <= 0:
            denominator_median = denominator.compute_median_bounds(self._confidence)
            if denominator_median.value == 0:
                raise MissingError("a divisor that is not 0")
            return EvaluatedValue(numerator.compute_median_bounds(self._confidence) / denominator_median, runs)
        if numerator.is_exact and denominator.is_exact:
            return EvaluatedValue(
                BoundedValue.from_exact_value(
                    numerator.compute_median_bounds().value / denominator.compute_median_bounds().value
                ),
                _RUN_COUNT_OF_EXACT_VALUES,
            )
        if is_paired:
            values_by_run = dict(zip(denominator.runs, denominator.values, strict=True))
            pairs = [
                a / values_by_run[run]
                for run, a in zip(numerator.runs, numerator.values, strict=True)
                if run in values_by_run
            ]
            if pairs:
                return EvaluatedValue(
                    compute_median_bounds(pairs, numerator.look, self._confidence), len(pairs), MIN_OF_MEDIAN
                )
        side_ratio = compare_rates(
            denominator.values,
            numerator.values,
            adjust_level_for_looks([numerator.look, denominator.look], self._confidence),
        )
        return EvaluatedValue(BoundedValue(side_ratio.value, side_ratio.low, side_ratio.high), runs, MIN_OF_SIDE)

    def _evaluate_function(self, function_call: MetricFunctionCall, context: ClaimContext) -> EvaluatedValue:
        simple: Mapping[str, Callable[[MetricFunctionCall, ClaimContext], EvaluatedValue]] = {
            "variation": self._evaluate_variation, "imbalance": self._evaluate_imbalance, "tail": self._evaluate_tail,
            "scaling": self._evaluate_scaling, "efficiency": self._evaluate_efficiency,
        }  # fmt: skip
        if function_call.name in simple:
            return simple[function_call.name](function_call, context)
        return self._evaluate_along_axis(function_call, context)

    def _evaluate_variation(self, function_call: MetricFunctionCall, context: ClaimContext) -> EvaluatedValue:
        samples = self._get_samples(function_call.metric, context)
        if samples.count < 2:
            raise MissingError("more than one run of the cell")
        scatter = estimate_coefficient_of_variation(
            samples.values, adjust_level_for_looks([samples.look], self._confidence)
        )
        bounds = BoundedValue(scatter.value, scatter.low, scatter.high)
        return EvaluatedValue(
            BoundedValue.from_exact_value(scatter.value) if samples.is_exact else bounds,
            _get_run_count(samples),
            MIN_OF_SIDE,
        )

    def _evaluate_imbalance(self, function_call: MetricFunctionCall, context: ClaimContext) -> EvaluatedValue:
        cell = self._grid.find_cell(function_call.metric, context)
        phase = self._grid.get_phase_of_metric(function_call.metric, cell)
        runs = self._source.collect_member_values(
            function_call.metric.name, phase, cell, str(function_call.options["per"])
        )
        imbalances = [float(np.max(run_values) / np.mean(run_values)) for run_values in runs if np.mean(run_values) > 0]
        return self._evaluate_median_of_runs(imbalances, self._source.determine_interim_look(cell))

    def _evaluate_tail(self, function_call: MetricFunctionCall, context: ClaimContext) -> EvaluatedValue:
        cell = self._grid.find_cell(function_call.metric, context)
        runs = self._source.collect_task_end_times(self._grid.get_phase_of_metric(function_call.metric, cell), cell)
        return self._evaluate_median_of_runs(
            [compute_completion_tail(task_ends) for task_ends in runs], self._source.determine_interim_look(cell)
        )

    def _evaluate_median_of_runs(self, run_values: list[float], interim_look: InterimLook) -> EvaluatedValue:
        if not run_values:
            raise MissingError("a run with a rate above 0")
        if self._source.is_deterministic:
            return EvaluatedValue(
                BoundedValue.from_exact_value(float(np.median(run_values))), _RUN_COUNT_OF_EXACT_VALUES
            )
        return EvaluatedValue(
            compute_median_bounds(run_values, interim_look, self._confidence), len(run_values), MIN_OF_MEDIAN
        )

    def find_cell_id_and_samples(self, metric: MetricReference, context: ClaimContext) -> tuple[str, Samples]:
        """Returns cell id and samples of a metric in a context. Raises MissingError."""
        return self._grid.find_cell(metric, context).id, self._get_samples(metric, context)

    def collect_samples_along_axis(
        self, function_call: MetricFunctionCall, context: ClaimContext
    ) -> list[tuple[object, Cell, Samples]]:
        """Returns place, cell and samples along the axis of a function. Raises MissingError."""
        axis_name = str(function_call.options["over"])
        places = []
        for value, cell in self._grid.list_cells_along(function_call.metric, axis_name, context):
            phase = self._grid.get_phase_of_metric(function_call.metric, cell)
            places.append((value, cell, self._source.collect_samples(function_call.metric.name, phase, cell)))
        return places

    def _evaluate_scaling(self, function_call: MetricFunctionCall, context: ClaimContext) -> EvaluatedValue:
        first_place, named_place = self._find_first_and_requested_axis_value(function_call, context)
        return self._compute_ratio(named_place[2], first_place[2], is_paired=False)

    def _evaluate_efficiency(self, function_call: MetricFunctionCall, context: ClaimContext) -> EvaluatedValue:
        first_place, named_place = self._find_first_and_requested_axis_value(function_call, context)
        growth = self._get_size_at_axis_value(named_place[0], named_place[1]) / self._get_size_at_axis_value(
            first_place[0], first_place[1]
        )
        evaluated = self._compute_ratio(named_place[2], first_place[2], is_paired=False)
        return EvaluatedValue(
            evaluated.bounds / BoundedValue.from_exact_value(growth), evaluated.runs, evaluated.runs_needed
        )

    def _find_first_and_requested_axis_value(
        self, function_call: MetricFunctionCall, context: ClaimContext
    ) -> tuple[tuple[object, Cell, Samples], tuple[object, Cell, Samples]]:
        """Returns the first place along an axis, and the place that the option `at` names."""
        places = self.collect_samples_along_axis(function_call, context)
        axis_name, requested_value = str(function_call.options["over"]), function_call.options["at"]
        axis = self._grid.axes.get(axis_name)
        axis_place = axis.find_axis_value(requested_value) if axis is not None else None
        canonical_value = axis_place.value if axis_place is not None else requested_value
        named_place = next((candidate for candidate in places if candidate[0] == canonical_value), None)
        if named_place is None:
            raise MissingError(f"no run at {axis_name}={requested_value}")
        return places[0], named_place

    def _get_size_at_axis_value(self, axis_value: object, cell: Cell) -> float:
        """Returns the size of a place: its number, or the storage units of its cell."""
        number = parse_axis_number(axis_value)
        size = self._source.count_storage_units(cell) if number is None else number
        if size <= 0:
            raise MissingError("a place of the axis that is above 0")
        return size

    def _evaluate_along_axis(self, function_call: MetricFunctionCall, context: ClaimContext) -> EvaluatedValue:
        places = self.collect_samples_along_axis(function_call, context)
        groups = [samples.values for _, _, samples in places]
        runs = min(_get_run_count(samples) for _, _, samples in places)
        exact = all(samples.is_exact for _, _, samples in places)
        statistic = self._make_statistic(function_call.name, [(value, cell) for value, cell, _ in places])
        if function_call.name == "slope" and any(min(group) <= 0 for group in groups):
            raise MissingError("values above 0, which have a logarithm")
        if exact:
            return EvaluatedValue(
                BoundedValue.from_exact_value(statistic(np.array([float(np.median(group)) for group in groups]))),
                _RUN_COUNT_OF_EXACT_VALUES,
            )
        confidence = adjust_level_for_looks([samples.look for _, _, samples in places], self._confidence)
        return EvaluatedValue(bootstrap_statistic(groups, statistic, confidence), runs)

    def _make_statistic(
        self, function_name: str, values_with_cells: list[tuple[object, Cell]]
    ) -> Callable[[Floats], float]:
        if function_name in _VALUE_STATISTICS:
            return _VALUE_STATISTICS[function_name]
        sizes = np.array([self._get_size_at_axis_value(value, cell) for value, cell in values_with_cells])
        return {
            "slope": lambda y: _compute_log_log_slope(sizes, y),
            "rank_correlation": lambda y: _compute_spearman_correlation(sizes, y),
        }[function_name]


_RUN_COUNT_OF_EXACT_VALUES = 1_000_000_000
_VALUE_STATISTICS: Mapping[str, Callable[[Floats], float]] = {
    "largest": lambda y: float(y.max()),
    "smallest": lambda y: float(y.min()),
    "rise": lambda y: float(y.max() / y[0]),
    "fall": lambda y: float(y[-1] / y.max()),
    "spread": lambda y: float((y.max() - y.min()) / np.median(y)),
}


def _get_run_count(samples: Samples) -> int:
    return _RUN_COUNT_OF_EXACT_VALUES if samples.is_exact else samples.count


def _split_factor_and_metric(expression: ClaimExpression) -> tuple[float, MetricReference] | None:
    """Returns factor and metric of a part that is a metric times a number, else None."""
    if isinstance(expression, MetricReference):
        return 1.0, expression
    if isinstance(expression, ArithmeticExpression) and expression.operator in "*/":
        if (
            isinstance(expression.right_operand, NumberLiteral)
            and (inner := _split_factor_and_metric(expression.left_operand)) is not None
            and expression.right_operand.value > 0
        ):
            factor = (
                expression.right_operand.value if expression.operator == "*" else 1 / expression.right_operand.value
            )
            return inner[0] * factor, inner[1]
        if (
            expression.operator == "*"
            and isinstance(expression.left_operand, NumberLiteral)
            and (inner := _split_factor_and_metric(expression.right_operand)) is not None
        ):
            return (inner[0] * expression.left_operand.value, inner[1]) if expression.left_operand.value > 0 else None
    return None


def _compute_log_log_slope(x: Floats, y: Floats) -> float:
    """Returns the least-squares slope of the logarithms; 1 means proportional growth."""
    a, b = np.log(x), np.log(y)
    a = a - a.mean()
    return float(np.sum(a * b) / np.sum(a * a))


def _compute_spearman_correlation(x: Floats, y: Floats) -> float:
    """Returns Spearman's rank correlation (Pearson's correlation of mid-ranks); 0 if all values are equal."""
    a, b = compute_midranks(x), compute_midranks(y)
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt(np.sum(a * a) * np.sum(b * b)))
    return float(np.sum(a * b)) / norm if norm else 0.0


def parse_axis_number(axis_value: object) -> float | None:
    """Returns the number of a place of an axis: the number itself or a size in bytes; None for a name."""
    if isinstance(axis_value, bool) or axis_value is None:
        return None
    if isinstance(axis_value, int | float):
        return float(axis_value)
    try:
        return float(parse_bytes(str(axis_value)))
    except UnitError:
        return None


def compute_completion_tail(task_ends: list[float] | tuple[float, ...] | object) -> float:
    """Returns the time from the median task end to the last, as a fraction of the last; ends in seconds from the
    start."""
    sorted_ends = np.sort(np.asarray(task_ends, dtype=float))
    half_end = sorted_ends[max(0, int(np.ceil(sorted_ends.size / 2)) - 1)]
    return float((sorted_ends[-1] - half_end) / sorted_ends[-1]) if sorted_ends[-1] > 0 else 0.0
