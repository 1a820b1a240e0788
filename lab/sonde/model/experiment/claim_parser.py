# SPDX-License-Identifier: Apache-2.0
"""Parses the text of claims and published numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping

from sonde.model.errors import UnitError, suggest_close_name
from sonde.model.experiment.claims import (
    FUNCTIONS,
    METRICS,
    PER_CHOICES,
    SHAPES,
    ArithmeticExpression,
    Claim,
    ClaimComparison,
    ClaimError,
    ClaimExpression,
    MetricFunctionCall,
    MetricReference,
    NumberLiteral,
    Scalar,
    ShapeName,
)
from sonde.model.units import parse_bytes, parse_duration, parse_op_rate, parse_rate, parse_share

_COMPARISON_OPERATORS: Mapping[type[ast.cmpop], str] = {
    ast.GtE: ">=",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.Lt: "<",
    ast.Eq: "==",
}
_ARITHMETIC_OPERATORS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_QUOTED_TEXT_PATTERN = re.compile(r"""("[^"]*"|'[^']*')""")
# A rate with its unit and an optional tolerance in percent.
_QUANTITY_PATTERN = re.compile(
    r"(?<![\w.])(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>(?:[kKMGTPE]i?)?B/s|[kM]?op/s)"
    r"(?:\s*(?P<sign>[-+\N{MINUS SIGN}])\s*(?P<share>\d+(?:\.\d+)?)\s*%)?"
)


def parse_claim(claim_text: str) -> Claim:
    """Parses a claim. Raises ClaimError with one sentence."""
    claim_text = claim_text.strip()
    expanded = replace_quantities_by_numbers(claim_text)
    try:
        tree = ast.parse(expanded, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ClaimError(
            f'"{claim_text}" cannot be read; write a comparison like bandwidth(read) / bandwidth(write) >= 1.3.'
        ) from None
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    comparisons = tuple(comparison for part in parts for comparison in _parse_comparisons(part, expanded))
    claim = Claim(claim_text, comparisons)
    if not any(claim.iterate_metrics()):
        raise ClaimError(f'"{claim_text}" names no metric; metrics are {", ".join(METRICS)}.')
    return claim


def wrap_value_in_claim(claim_text: str, claim_value: ClaimExpression) -> Claim:
    """Returns a claim with the metrics and functions of `claim_value`, so that they can be checked like those of a
    claim."""
    return Claim(claim_text, (ClaimComparison(claim_value, ">", NumberLiteral(0.0)),))


def parse_claim_value(value_text: str) -> ClaimExpression:
    """Parses one side of a claim: a metric, a function of a metric, or arithmetic with them. Raises ClaimError."""
    claim = parse_claim(f"{value_text} > 0")
    if len(claim.comparisons) != 1 or claim.comparisons[0].right_operand != NumberLiteral(0.0):
        raise ClaimError(f'"{value_text}" is a claim; write what a number is of, like bandwidth(write).')
    return claim.comparisons[0].left_operand


def find_unit_of_value(claim_value: ClaimExpression) -> str:
    """Returns the unit of a value: the unit of its metric, or 1 for a ratio or a plain number."""
    match claim_value:
        case MetricReference():
            return METRICS[claim_value.name][0]
        case MetricFunctionCall() if claim_value.name in ("largest", "smallest"):
            return METRICS[claim_value.metric.name][0]
        case ArithmeticExpression() if claim_value.operator != "/":
            first_unit, right = (
                find_unit_of_value(claim_value.left_operand),
                find_unit_of_value(claim_value.right_operand),
            )
            return first_unit if first_unit != "1" else right
        case ArithmeticExpression() if isinstance(claim_value.right_operand, NumberLiteral):
            return find_unit_of_value(claim_value.left_operand)
    return "1"


def parse_published_number(number_text: float | str, stated_unit: str) -> float:
    """Converts a published number to base units: "1.6 GB/s", "20 kop/s", "34.8 s", "70 %". A plain number is unchanged.

    Raises UnitError.
    """
    if not isinstance(number_text, str):
        return float(number_text)
    parsers: Mapping[str, Callable[[str], float]] = {
        "B/s": parse_rate, "op/s": parse_op_rate, "s": parse_duration, "B": parse_bytes,
    }  # fmt: skip
    return parsers.get(stated_unit, parse_share)(number_text)


def replace_quantities_by_numbers(claim_text: str) -> str:
    """Replaces quantities by plain numbers: 10 GB/s by 10000000000.0, 10 GB/s - 10 % by 9000000000.0.

    Quoted text is unchanged.
    """
    parts = _QUOTED_TEXT_PATTERN.split(claim_text)
    return "".join(
        part if position % 2 else _QUANTITY_PATTERN.sub(_convert_quantity_to_number, part)
        for position, part in enumerate(parts)
    )


def _convert_quantity_to_number(quantity_match: re.Match[str]) -> str:
    parse_quantity = parse_op_rate if quantity_match["unit"].endswith("op/s") else parse_rate
    try:
        value = parse_quantity(f"{quantity_match['value']} {quantity_match['unit']}")
    except UnitError as reason:
        raise ClaimError(str(reason)) from None
    if quantity_match["share"]:
        value *= 1 + (1 if quantity_match["sign"] == "+" else -1) * float(quantity_match["share"]) / 100
    return repr(float(value))


def _parse_comparisons(syntax_node: ast.expr, claim_text: str) -> Iterator[ClaimComparison]:
    if not isinstance(syntax_node, ast.Compare):
        raise ClaimError(
            f'"{_get_source_text(syntax_node, claim_text)}" compares nothing; write it with >=, <=, > or <, joined '
            'by "and".'
        )
    left_operand = _parse_value_node(syntax_node.left, claim_text)
    for operator, right_node in zip(syntax_node.ops, syntax_node.comparators, strict=True):
        right_operand = _parse_value_node(right_node, claim_text)
        name = _COMPARISON_OPERATORS.get(type(operator))
        if name is None:
            raise ClaimError(
                f'"{_get_source_text(syntax_node, claim_text)}" compares with something other than >=, <=, >, < or ==.'
            )
        compares_shapes = isinstance(left_operand, ShapeName) or isinstance(right_operand, ShapeName)
        if (name == "==") != compares_shapes or (
            compares_shapes
            and not _is_shape_function(left_operand if isinstance(right_operand, ShapeName) else right_operand)
        ):
            raise ClaimError(
                f'"{_get_source_text(syntax_node, claim_text)}": == is for forms only, like shape(bandwidth(read)) '
                '== "flat";'
                f" numbers that "
                "are measured are never equal, compare them with >= or <=."
            )
        yield ClaimComparison(left_operand, name, right_operand)
        left_operand = right_operand


def _is_shape_function(claim_value: ClaimExpression) -> bool:
    return isinstance(claim_value, MetricFunctionCall) and claim_value.name == "shape"


def _get_source_text(syntax_node: ast.expr, claim_text: str) -> str:
    return ast.get_source_segment(claim_text.strip(), syntax_node) or claim_text


def _parse_value_node(syntax_node: ast.expr, claim_text: str) -> ClaimExpression:
    if isinstance(syntax_node, ast.Constant):
        return _parse_constant(syntax_node.value, claim_text)
    if (
        isinstance(syntax_node, ast.UnaryOp)
        and isinstance(syntax_node.op, ast.USub)
        and isinstance(syntax_node.operand, ast.Constant)
    ):
        literal = _parse_constant(syntax_node.operand.value, claim_text)
        if isinstance(literal, NumberLiteral):
            return NumberLiteral(-literal.value)
    if isinstance(syntax_node, ast.BinOp) and type(syntax_node.op) in _ARITHMETIC_OPERATORS:
        left_operand, right_operand = (
            _parse_value_node(syntax_node.left, claim_text),
            _parse_value_node(syntax_node.right, claim_text),
        )
        if isinstance(left_operand, ShapeName) or isinstance(right_operand, ShapeName):
            raise ClaimError(f'"{_get_source_text(syntax_node, claim_text)}" calculates with a word.')
        return ArithmeticExpression(_ARITHMETIC_OPERATORS[type(syntax_node.op)], left_operand, right_operand)
    if isinstance(syntax_node, ast.Call) and isinstance(syntax_node.func, ast.Name):
        if syntax_node.func.id in FUNCTIONS:
            return _parse_function_call(syntax_node.func.id, syntax_node, claim_text)
        return _parse_metric_call(syntax_node.func.id, syntax_node, claim_text)
    if isinstance(syntax_node, ast.Name):
        raise ClaimError(f'"{syntax_node.id}" stands alone; write a metric with its phase, like bandwidth(read).')
    raise ClaimError(f'"{_get_source_text(syntax_node, claim_text)}" is not a metric, a function, a number or a word.')


def _parse_constant(python_constant: object, claim_text: str) -> NumberLiteral | ShapeName:
    if isinstance(python_constant, bool) or not isinstance(python_constant, int | float | str):
        raise ClaimError(f'"{claim_text}" has {python_constant!r}, which is no number and no word.')
    if isinstance(python_constant, str):
        if python_constant not in SHAPES:
            raise ClaimError(
                f'"{python_constant}" is no form; forms are {", ".join(SHAPES)}.'
                f"{suggest_close_name(python_constant, SHAPES)}"
            )
        return ShapeName(python_constant)
    return NumberLiteral(float(python_constant))


def _parse_metric_call(metric_name: str, call_node: ast.Call, claim_text: str) -> MetricReference:
    if metric_name not in METRICS:
        hint = suggest_close_name(metric_name, [*METRICS, *FUNCTIONS])
        raise ClaimError(
            f'there is no metric or function "{metric_name}".{hint or " Metrics are " + ", ".join(METRICS) + "."}'
        )
    if len(call_node.args) > 1:
        raise ClaimError(
            f'"{_get_source_text(call_node, claim_text)}" names several phases; write one, and cells by name: '
            'transfer="4KiB".'
        )
    return MetricReference(
        metric_name,
        _parse_phase_name(call_node.args[0], claim_text) if call_node.args else "",
        _parse_function_options(call_node, claim_text),
    )


def _parse_function_call(function_name: str, call_node: ast.Call, claim_text: str) -> MetricFunctionCall:
    required, allowed, _ = FUNCTIONS[function_name]
    if len(call_node.args) != 1:
        raise ClaimError(
            f"{function_name} takes one metric, like "
            f"{function_name}(bandwidth(read){', over=transfer' if required else ''})."
        )
    metric = _parse_value_node(call_node.args[0], claim_text)
    if not isinstance(metric, MetricReference):
        raise ClaimError(
            f'"{_get_source_text(call_node.args[0], claim_text)}" is no metric; {function_name} takes one metric.'
        )
    options = _parse_function_options(call_node, claim_text)
    for option in required:
        if option not in options:
            raise ClaimError(
                f'"{_get_source_text(call_node, claim_text)}" lacks {option}=…; write {function_name}(…, {option}=…).'
            )
    for option, value in options.items():
        if option not in (*required, *allowed):
            raise ClaimError(
                f'"{_get_source_text(call_node, claim_text)}": {function_name} has no'
                f" {option}=….{suggest_close_name(option, (*required, *allowed))}"
            )
        if option == "per" and value not in PER_CHOICES:
            raise ClaimError(
                f'"{_get_source_text(call_node, claim_text)}": per is one of'
                f" {', '.join(PER_CHOICES)}.{suggest_close_name(str(value), PER_CHOICES)}"
            )
    return MetricFunctionCall(function_name, metric, options)


def _parse_function_options(call_node: ast.Call, claim_text: str) -> dict[str, Scalar]:
    options: dict[str, Scalar] = {}
    for keyword in call_node.keywords:
        if keyword.arg is None or keyword.arg in options:
            raise ClaimError(
                f'"{_get_source_text(call_node, claim_text)}" names cells twice or by **; write transfer="4KiB".'
            )
        options[keyword.arg] = _parse_scalar(keyword.value, claim_text)
    return options


def _parse_scalar(syntax_node: ast.expr, claim_text: str) -> Scalar:
    if isinstance(syntax_node, ast.Name):
        return {"true": True, "false": False}.get(syntax_node.id, syntax_node.id)  # as TOML writes them
    if isinstance(syntax_node, ast.Constant) and isinstance(syntax_node.value, str | int | float | bool):
        return syntax_node.value
    raise ClaimError(
        f'"{_get_source_text(syntax_node, claim_text)}" is no value of an axis; write a number or a text like "4KiB".'
    )


def _parse_phase_name(syntax_node: ast.expr, claim_text: str) -> str:
    phase = _parse_scalar(syntax_node, claim_text)
    if not isinstance(phase, str):
        raise ClaimError(
            f'"{_get_source_text(syntax_node, claim_text)}" is no phase; write its id, in quotation marks if it has '
            "a dash."
        )
    return phase
