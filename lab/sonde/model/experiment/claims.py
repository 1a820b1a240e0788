# SPDX-License-Identifier: Apache-2.0
"""Claims about results: ``bandwidth(write, offset="0B") / bandwidth(write, offset="256KiB") >= 1.3``.

A metric names a phase and, by axis, the cells it is taken from; axes that it does not name are the same on both sides,
and the claim must hold in each of their cells. A metric stands for the median over repeats with its interval. Functions
look along an axis, over repeats, over nodes, or over time. Comparisons may be chained, and joined by ``and``. A limit
may have a unit and a tolerance: ``bandwidth(write) >= 10 GB/s - 10 %``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sonde.model.errors import UnitError, UserError, suggest_close_name
from sonde.model.units import parse_duration, parse_op_rate, parse_rate, parse_share

# Metric -> (unit, meaning). Rates count bytes or operations over the interval from first to last task of the phase.
METRICS: Mapping[str, tuple[str, str]] = {
    "bandwidth": ("B/s", "bytes of the phase over its time, all tasks together"),
    "bandwidth_stonewall": ("B/s", "bytes up to the stonewall over the time to it"),
    "operations": ("op/s", "operations of the phase over its time, all tasks together"),
    "operations_slowest": ("op/s", "rate of the slowest task times the number of tasks (mdtest)"),
    "time": ("s", "from the first task's start to the last task's end"),
    "latency_p50": ("s", "median time of one operation"),
    "latency_p99": ("s", "time that 1 % of the operations exceed"),
    "latency_max": ("s", "longest operation"),
    "cpu_rate": ("B/s", "bytes for each second of system processor time"),
    "system_time": ("s", "system processor time of all tasks"),
    "user_time": ("s", "user processor time of all tasks"),
    "real_time": ("s", "time of the last command before the phase, as timex prints it"),
    "command_user_time": ("s", "user processor time of the last command before the phase"),
    "command_system_time": ("s", "system processor time of the last command before the phase"),
    "bandwidth_per_unit": ("B/s", "bandwidth over the units of storage"),
    "bandwidth_per_target": ("B/s", "bandwidth over the targets"),
    "bandwidth_per_node": ("B/s", "bandwidth over the client nodes"),
    "share_of_peak": ("1", "bandwidth over the stated peak"),
    "duplex_efficiency": ("1", "duplex bandwidth over the sum of both halves alone"),
    "accelerator_utilization": ("1", "share of the time that emulated accelerators computed, without first batches"),
    "samples": ("op/s", "samples that emulated accelerators took, per second, without first batches"),
    "residency": ("1", "share of the file that was in the page cache before the phase"),
    "errors": ("1", "operations that failed, and commands before the phase that did"),
    "calls": ("1", "calls that reached the file system"),
}
# Metrics that describe programs and clients: the classification of a rate says nothing about them.
CLIENT_METRICS = frozenset(
    {
        "cpu_rate",
        "system_time",
        "user_time",
        "real_time",
        "command_user_time",
        "command_system_time",
        "residency",
        "errors",
        "calls",
    }
)
# Function -> (options that it must have, options that it may have, meaning).
FUNCTIONS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "slope": (("over",), (), "slope of the logarithm against the logarithm of the axis"),
    "rank_correlation": (("over",), (), "Spearman's correlation with the axis, -1 to 1"),
    "rise": (("over",), (), "largest value over the first one along the axis"),
    "fall": (("over",), (), "last value over the largest one along the axis"),
    "largest": (("over",), (), "largest value along the axis"),
    "smallest": (("over",), (), "smallest value along the axis"),
    "spread": (("over",), (), "largest minus smallest, over the median, along the axis"),
    "scaling": (("over", "at"), (), "value at `at` over the value at the first place of the axis"),
    "efficiency": (("over", "at"), (), "scaling over the growth of the axis; of pools, of their units"),
    "variation": ((), (), "coefficient of variation over repeats"),
    "imbalance": (("per",), (), "largest over mean among nodes, tasks or targets of a run"),
    "tail": ((), ("per",), "time from half of the tasks done to all done, over the whole"),
    "shape": ((), (), "form of the rate over time: flat, declining, rising, dips"),
}
SHAPES = ("flat", "declining", "rising", "dips")
PER_CHOICES = ("node", "task", "target")
_OPERATORS: Mapping[type[ast.cmpop], str] = {ast.GtE: ">=", ast.LtE: "<=", ast.Gt: ">", ast.Lt: "<", ast.Eq: "=="}
_ARITHMETIC: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}

_QUOTED = re.compile(r"""("[^"]*"|'[^']*')""")
# A rate with its unit and an optional tolerance in percent.
_QUANTITY = re.compile(
    r"(?<![\w.])(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>(?:[kKMGTPE]i?)?B/s|[kM]?op/s)"
    r"(?:\s*(?P<sign>[-+\N{MINUS SIGN}])\s*(?P<share>\d+(?:\.\d+)?)\s*%)?"
)

Scalar = str | int | float | bool


class ClaimError(UserError):
    """A malformed claim."""


@dataclass(frozen=True)
class NumberLiteral:
    """A plain number."""

    value: float


@dataclass(frozen=True)
class ShapeName:
    """A shape of a rate over time, like "flat"."""

    text: str


@dataclass(frozen=True)
class Metric:
    """The median of a metric over the repeats of a phase, in the cells that `at` names."""

    name: str
    phase: str  # empty: the only measured phase
    coordinates: Mapping[str, Scalar]


@dataclass(frozen=True)
class MetricFunctionCall:
    """A function of a metric."""

    name: str
    metric: Metric
    options: Mapping[str, Scalar]


@dataclass(frozen=True)
class Arithmetic:
    """Two values joined by + - * /."""

    operator: str
    left_operand: Value
    right_operand: Value


Value = NumberLiteral | ShapeName | Metric | MetricFunctionCall | Arithmetic


@dataclass(frozen=True)
class ClaimComparison:
    """left operator right; a chain a <= b <= c is two of these."""

    left_operand: Value
    operator: str
    right_operand: Value


@dataclass(frozen=True)
class Claim:
    """Comparisons that must all hold."""

    text: str
    comparisons: tuple[ClaimComparison, ...]

    def iterate_metrics(self) -> Iterator[Metric]:
        """Every metric in it, from left to right."""
        for comparison in self.comparisons:
            yield from _iterate_metrics(comparison.left_operand)
            yield from _iterate_metrics(comparison.right_operand)

    def iterate_functions(self) -> Iterator[MetricFunctionCall]:
        """Every function in it, from left to right."""
        for comparison in self.comparisons:
            yield from _iterate_functions(comparison.left_operand)
            yield from _iterate_functions(comparison.right_operand)


def _iterate_metrics(claim_value: Value) -> Iterator[Metric]:
    if isinstance(claim_value, Metric):
        yield claim_value
    elif isinstance(claim_value, MetricFunctionCall):
        yield claim_value.metric
    elif isinstance(claim_value, Arithmetic):
        yield from _iterate_metrics(claim_value.left_operand)
        yield from _iterate_metrics(claim_value.right_operand)


def _iterate_functions(claim_value: Value) -> Iterator[MetricFunctionCall]:
    if isinstance(claim_value, MetricFunctionCall):
        yield claim_value
    elif isinstance(claim_value, Arithmetic):
        yield from _iterate_functions(claim_value.left_operand)
        yield from _iterate_functions(claim_value.right_operand)


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


def wrap_value_in_claim(claim_text: str, claim_value: Value) -> Claim:
    """Returns a claim with the metrics and functions of `claim_value`, so that they can be checked like those of a
    claim."""
    return Claim(claim_text, (ClaimComparison(claim_value, ">", NumberLiteral(0.0)),))


def parse_claim_value(value_text: str) -> Value:
    """Parses one side of a claim: a metric, a function of a metric, or arithmetic with them. Raises ClaimError."""
    claim = parse_claim(f"{value_text} > 0")
    if len(claim.comparisons) != 1 or claim.comparisons[0].right_operand != NumberLiteral(0.0):
        raise ClaimError(f'"{value_text}" is a claim; write what a number is of, like bandwidth(write).')
    return claim.comparisons[0].left_operand


def find_unit_of_value(claim_value: Value) -> str:
    """Returns the unit of a value: the unit of its metric, or 1 for a ratio or a plain number."""
    match claim_value:
        case Metric():
            return METRICS[claim_value.name][0]
        case MetricFunctionCall() if claim_value.name in ("largest", "smallest"):
            return METRICS[claim_value.metric.name][0]
        case Arithmetic() if claim_value.operator != "/":
            first_unit, right = (
                find_unit_of_value(claim_value.left_operand),
                find_unit_of_value(claim_value.right_operand),
            )
            return first_unit if first_unit != "1" else right
        case Arithmetic() if isinstance(claim_value.right_operand, NumberLiteral):
            return find_unit_of_value(claim_value.left_operand)
    return "1"


def parse_published_number(number_text: float | str, unit: str) -> float:
    """Converts a published number to base units: "1.6 GB/s", "20 kop/s", "34.8 s", "70 %". A plain number is unchanged.

    Raises UnitError.
    """
    if not isinstance(number_text, str):
        return float(number_text)
    parsers: Mapping[str, Callable[[str], float]] = {"B/s": parse_rate, "op/s": parse_op_rate, "s": parse_duration}
    return parsers.get(unit, parse_share)(number_text)


def replace_quantities_by_numbers(claim_text: str) -> str:
    """Replaces quantities by plain numbers: 10 GB/s by 10000000000.0, 10 GB/s - 10 % by 9000000000.0.

    Quoted text is unchanged.
    """
    parts = _QUOTED.split(claim_text)
    return "".join(
        part if position % 2 else _QUANTITY.sub(_convert_quantity_to_number, part)
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
        name = _OPERATORS.get(type(operator))
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


def _is_shape_function(claim_value: Value) -> bool:
    return isinstance(claim_value, MetricFunctionCall) and claim_value.name == "shape"


def _get_source_text(syntax_node: ast.expr, claim_text: str) -> str:
    return ast.get_source_segment(claim_text.strip(), syntax_node) or claim_text


def _parse_value_node(syntax_node: ast.expr, claim_text: str) -> Value:
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
    if isinstance(syntax_node, ast.BinOp) and type(syntax_node.op) in _ARITHMETIC:
        left_operand, right_operand = (
            _parse_value_node(syntax_node.left, claim_text),
            _parse_value_node(syntax_node.right, claim_text),
        )
        if isinstance(left_operand, ShapeName) or isinstance(right_operand, ShapeName):
            raise ClaimError(f'"{_get_source_text(syntax_node, claim_text)}" calculates with a word.')
        return Arithmetic(_ARITHMETIC[type(syntax_node.op)], left_operand, right_operand)
    if isinstance(syntax_node, ast.Call) and isinstance(syntax_node.func, ast.Name):
        if syntax_node.func.id in FUNCTIONS:
            return _parse_function_call(syntax_node.func.id, syntax_node, claim_text)
        return _parse_metric_call(syntax_node.func.id, syntax_node, claim_text)
    if isinstance(syntax_node, ast.Name):
        raise ClaimError(f'"{syntax_node.id}" stands alone; write a metric with its phase, like bandwidth(read).')
    raise ClaimError(f'"{_get_source_text(syntax_node, claim_text)}" is not a metric, a function, a number or a word.')


def _parse_constant(constant: object, claim_text: str) -> NumberLiteral | ShapeName:
    if isinstance(constant, bool) or not isinstance(constant, int | float | str):
        raise ClaimError(f'"{claim_text}" has {constant!r}, which is no number and no word.')
    if isinstance(constant, str):
        if constant not in SHAPES:
            raise ClaimError(
                f'"{constant}" is no form; forms are {", ".join(SHAPES)}.{suggest_close_name(constant, SHAPES)}'
            )
        return ShapeName(constant)
    return NumberLiteral(float(constant))


def _parse_metric_call(metric_name: str, call_node: ast.Call, claim_text: str) -> Metric:
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
    return Metric(
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
    if not isinstance(metric, Metric):
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
