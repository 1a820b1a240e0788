# SPDX-License-Identifier: Apache-2.0
"""Finds comparisons that hold or fail for any measurement: such a claim does not depend on the storage."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from sonde.model.experiment.claims import (
    ArithmeticExpression,
    Claim,
    ClaimComparison,
    ClaimExpression,
    MetricFunctionCall,
    MetricReference,
    NumberLiteral,
    ShapeName,
)

Range = tuple[float, float]
_NONNEGATIVE_RANGE: Range = (0.0, inf)
_FUNCTION_RANGES: Mapping[str, Range] = {
    "slope": (-inf, inf),
    "rank_correlation": (-1.0, 1.0),
    "rise": (1.0, inf),
    "fall": (0.0, 1.0),
    "imbalance": (1.0, inf),
    "tail": (0.0, 1.0),
}
_METRIC_RANGES: Mapping[str, Range] = {"residency": (0.0, 1.0)}
# In ascending order: of the same operations p50 is at most p99, and p99 at most the maximum.
_LATENCY_METRICS = ("latency_p50", "latency_p99", "latency_max")
_MIRRORED_OPERATORS = {">=": "<=", "<=": ">=", ">": "<", "<": ">"}


def find_constant_comparison(claim: Claim) -> str:
    """Returns why a comparison of the claim has the same result for all numbers, as a sentence part; else empty."""
    for comparison in claim.comparisons:
        reason = _describe_constant(comparison)
        if reason:
            return reason
    return ""


def _describe_constant(comparison: ClaimComparison) -> str:
    if isinstance(comparison.left_operand, ShapeName) or isinstance(comparison.right_operand, ShapeName):
        return ""
    upper, operator, lower = comparison.left_operand, comparison.operator, comparison.right_operand
    if operator in ("<=", "<"):
        upper, operator, lower = lower, _MIRRORED_OPERATORS[operator], upper
    if operator == ">=" and _is_at_least(upper, lower):
        return "can never fail"
    if operator == ">" and _is_at_least(lower, upper):
        return "can never hold"
    (low, high), (other_low, other_high) = _find_possible_range(upper), _find_possible_range(lower)
    # A bound at infinity is not reached by any number.
    if low > other_high or (operator == ">=" and low == other_high and abs(low) < inf):
        return "can never fail"
    if high < other_low or (operator == ">" and high == other_low and abs(high) < inf):
        return "can never hold"
    return ""


def _is_at_least(larger_expression: ClaimExpression, smaller_expression: ClaimExpression) -> bool:
    """Returns whether `larger_expression` is never below `smaller_expression` because both are of the same numbers."""
    if (
        isinstance(larger_expression, ArithmeticExpression)
        and larger_expression.operator == "/"
        and smaller_expression == NumberLiteral(1.0)
    ):
        return _is_at_least(larger_expression.left_operand, larger_expression.right_operand)
    if (
        isinstance(smaller_expression, ArithmeticExpression)
        and smaller_expression.operator == "/"
        and larger_expression == NumberLiteral(1.0)
    ):
        return _is_at_least(smaller_expression.right_operand, smaller_expression.left_operand)
    if larger_expression == smaller_expression:
        return True
    if isinstance(larger_expression, MetricReference) and isinstance(smaller_expression, MetricReference):
        names = (larger_expression.name, smaller_expression.name)
        if set(names) <= set(_LATENCY_METRICS) and (larger_expression.phase, larger_expression.coordinates) == (
            smaller_expression.phase,
            smaller_expression.coordinates,
        ):
            return _LATENCY_METRICS.index(larger_expression.name) > _LATENCY_METRICS.index(smaller_expression.name)
        return False
    return _is_extreme_along_axis("largest", larger_expression, smaller_expression) or _is_extreme_along_axis(
        "smallest", smaller_expression, larger_expression
    )


def _is_extreme_along_axis(axis_name: str, extreme_value: ClaimExpression, member_value: ClaimExpression) -> bool:
    """Returns whether `extreme_value` is the largest or smallest value along an axis of which `member_value` is one
    value."""
    if (
        not isinstance(extreme_value, MetricFunctionCall)
        or extreme_value.name != axis_name
        or not isinstance(member_value, MetricReference)
    ):
        return False
    of, axis = extreme_value.metric, extreme_value.options.get("over")
    other_axes = {key: value for key, value in member_value.coordinates.items() if key != axis}
    same_metric = (of.name, of.phase) == (member_value.name, member_value.phase)
    return same_metric and axis in member_value.coordinates and other_axes == dict(of.coordinates)


def _find_possible_range(claim_value: ClaimExpression) -> Range:
    match claim_value:
        case NumberLiteral():
            return (claim_value.value, claim_value.value)
        case MetricReference():
            return _METRIC_RANGES.get(claim_value.name, _NONNEGATIVE_RANGE)
        case MetricFunctionCall() if claim_value.name in ("largest", "smallest"):
            return _find_possible_range(claim_value.metric)
        case MetricFunctionCall():
            return _FUNCTION_RANGES.get(claim_value.name, _NONNEGATIVE_RANGE)
        case ArithmeticExpression():
            return _combine_ranges(
                claim_value.operator,
                _find_possible_range(claim_value.left_operand),
                _find_possible_range(claim_value.right_operand),
            )
    return (-inf, inf)


def _combine_ranges(operator: str, left_range: Range, right_range: Range) -> Range:
    if operator == "+":
        return (left_range[0] + right_range[0], left_range[1] + right_range[1])
    if operator == "-":
        return (left_range[0] - right_range[1], left_range[1] - right_range[0])
    if operator == "/":
        if right_range[0] < 0.0 or right_range[1] == 0.0:
            return (-inf, inf)
        right_range = (
            1 / right_range[1] if right_range[1] < inf else 0.0,
            1 / right_range[0] if right_range[0] else inf,
        )
    products = [0.0 if 0.0 in (low, high) else low * high for low in left_range for high in right_range]
    return (min(products), max(products))
