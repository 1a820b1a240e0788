# SPDX-License-Identifier: Apache-2.0
"""Explains from the numbers why a claim does not hold: the plateau of a rate, or the scatter of runs."""

from __future__ import annotations

from sonde.experiments.claims.grid import ClaimContext
from sonde.experiments.claims.samples import MissingError, Samples
from sonde.experiments.claims.values import ClaimEvaluator
from sonde.model.experiment.claim_verdicts import ClaimVerdict
from sonde.model.experiment.claims import Claim, ClaimComparison, MetricFunctionCall
from sonde.stats.spread import MIN_VALUES, estimate_coefficient_of_variation

# A place belongs to the plateau if its interval reaches this fraction of the largest median.
MIN_PLATEAU_FRACTION = 0.9
# A smaller scatter is not reported as the reason.
MIN_REPORTED_SCATTER = 0.1
# For a value with enough runs.
NO_INTERVAL_SENTENCE = "It has no interval: by these runs its divisor may be 0."
# Functions that state growth along an axis.
_GROWTH_FUNCTIONS = ("rank_correlation", "slope", "rise")


def explain_comparison_result(
    comparison: ClaimComparison, evaluator: ClaimEvaluator, context: ClaimContext, verdict: ClaimVerdict
) -> str:
    """Returns one or two sentences; empty if the claim holds or does not apply, or if the numbers show no reason."""
    if verdict not in (ClaimVerdict.FAILS, ClaimVerdict.UNDECIDED):
        return ""
    claim = Claim("", (comparison,))
    explanations = [
        _explain_plateau(function, evaluator, context)
        for function in claim.iterate_functions()
        if comparison.operator in (">", ">=")
    ]
    if verdict is ClaimVerdict.UNDECIDED:
        explanations.append(_explain_scatter(claim, evaluator, context))
    return " ".join(dict.fromkeys(explanation for explanation in explanations if explanation))


def _explain_plateau(function_call: MetricFunctionCall, evaluator: ClaimEvaluator, context: ClaimContext) -> str:
    """Returns where a metric that should grow along an axis reaches its plateau."""
    if function_call.name not in _GROWTH_FUNCTIONS:
        return ""
    try:
        axis_samples = evaluator.collect_samples_along_axis(function_call, context)
    except MissingError:
        return ""
    name, axis = function_call.metric.name.replace("_", " "), str(function_call.options["over"])
    medians = [(value, samples.compute_median_bounds()) for value, _, samples in axis_samples]
    largest = max(bounds.value for _, bounds in medians)
    # From the end: the places that do not differ from the largest.
    knee = len(medians)
    while knee and _is_on_plateau(medians[knee - 1][1].limits[1], medians[knee - 1][1].value, largest):
        knee -= 1
    if knee == 0:
        return (
            f"The {name} is within {100 * (1 - MIN_PLATEAU_FRACTION):.0f} % of its largest from {medians[0][0]} on, the"
            f" smallest {axis} that was tried: the knee is below it."
        )
    last_bounds = medians[-1][1]
    if knee == len(medians):
        best = next(value for value, bounds in medians if bounds.value == largest)
        percent = 100 * last_bounds.value / largest
        return f"The {name} is largest at {best} and {percent:.0f} % of that at {medians[-1][0]}."
    distance_percent = 100 * (1 - MIN_PLATEAU_FRACTION)
    return f"The {name} is within {distance_percent:.0f} % of its largest from {medians[knee][0]} on: the knee."


def _is_on_plateau(upper_bound: float, median: float, largest_median: float) -> bool:
    return max(median, upper_bound if upper_bound < float("inf") else median) >= MIN_PLATEAU_FRACTION * largest_median


def _explain_scatter(claim: Claim, evaluator: ClaimEvaluator, context: ClaimContext) -> str:
    """Returns the cell with the largest scatter of runs, if the scatter is large."""
    scatters: list[tuple[float, str]] = []
    functions_by_metric = {
        id(function.metric): function for function in claim.iterate_functions() if "over" in function.options
    }
    for metric in claim.iterate_metrics():
        try:
            samples_by_cell: list[tuple[str, Samples]] = (
                [
                    (cell.id, samples)
                    for _, cell, samples in evaluator.collect_samples_along_axis(
                        functions_by_metric[id(metric)], context
                    )
                ]
                if id(metric) in functions_by_metric
                else [evaluator.find_cell_id_and_samples(metric, context)]
            )
            scatters += [
                (estimate_coefficient_of_variation(samples.values).value, f"{cell} ({metric.phase or metric.name})")
                for cell, samples in samples_by_cell
                if samples.count >= MIN_VALUES and not samples.is_exact
            ]
        except (MissingError, ValueError):
            continue
    if not scatters or max(scatters)[0] < MIN_REPORTED_SCATTER:
        return ""
    largest, cell_name = max(scatters)
    return f"Runs of {cell_name} scatter by {100 * largest:.0f} % (COV)."
