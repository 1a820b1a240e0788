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

from sonde.model.errors import UnitError, UserError, suggestion
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
    "resident": ("1", "share of the file that was in the page cache before the phase"),
    "errors": ("1", "operations that failed, and commands before the phase that did"),
    "calls": ("1", "calls that reached the file system"),
}
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
PER = ("node", "task", "target")
_OPERATORS: Mapping[type[ast.cmpop], str] = {ast.GtE: ">=", ast.LtE: "<=", ast.Gt: ">", ast.Lt: "<", ast.Eq: "=="}
_ARITHMETIC: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}

_QUOTED = re.compile(r"""("[^"]*"|'[^']*')""")
# A rate with its unit, and how much less (or more) than it is meant.
_QUANTITY = re.compile(
    r"(?<![\w.])(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>(?:[kKMGTPE]i?)?B/s|[kM]?op/s)"
    r"(?:\s*(?P<sign>[-+\N{MINUS SIGN}])\s*(?P<share>\d+(?:\.\d+)?)\s*%)?"
)

Scalar = str | int | float | bool


class ClaimError(UserError):
    """A claim that means nothing."""


@dataclass(frozen=True)
class Number:
    """A plain number."""

    value: float


@dataclass(frozen=True)
class Word:
    """A form of a rate over time."""

    text: str


@dataclass(frozen=True)
class Metric:
    """The median of a metric over the repeats of a phase, in the cells that `at` names."""

    name: str
    phase: str  # empty: the only measured phase
    at: Mapping[str, Scalar]


@dataclass(frozen=True)
class Function:
    """A function of a metric."""

    name: str
    of: Metric
    options: Mapping[str, Scalar]


@dataclass(frozen=True)
class Arithmetic:
    """Two values joined by + - * /."""

    operator: str
    left: Value
    right: Value


Value = Number | Word | Metric | Function | Arithmetic


@dataclass(frozen=True)
class Comparison:
    """left operator right; a chain a <= b <= c is two of these."""

    left: Value
    operator: str
    right: Value


@dataclass(frozen=True)
class Claim:
    """Comparisons that must all hold."""

    text: str
    comparisons: tuple[Comparison, ...]

    def metrics(self) -> Iterator[Metric]:
        """Every metric in it, from left to right."""
        for one in self.comparisons:
            yield from _metrics(one.left)
            yield from _metrics(one.right)

    def functions(self) -> Iterator[Function]:
        """Every function in it, from left to right."""
        for one in self.comparisons:
            yield from _functions(one.left)
            yield from _functions(one.right)


def _metrics(value: Value) -> Iterator[Metric]:
    if isinstance(value, Metric):
        yield value
    elif isinstance(value, Function):
        yield value.of
    elif isinstance(value, Arithmetic):
        yield from _metrics(value.left)
        yield from _metrics(value.right)


def _functions(value: Value) -> Iterator[Function]:
    if isinstance(value, Function):
        yield value
    elif isinstance(value, Arithmetic):
        yield from _functions(value.left)
        yield from _functions(value.right)


def parse_claim(text: str) -> Claim:
    """The claim that `text` says. Raises ClaimError with one sentence."""
    text = text.strip()
    written = with_numbers(text)
    try:
        tree = ast.parse(written, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ClaimError(
            f'"{text}" cannot be read; write a comparison like bandwidth(read) / bandwidth(write) >= 1.3.'
        ) from None
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    comparisons = tuple(one for part in parts for one in _comparisons(part, written))
    claim = Claim(text, comparisons)
    if not any(claim.metrics()):
        raise ClaimError(f'"{text}" names no metric; metrics are {", ".join(METRICS)}.')
    return claim


def claim_of(text: str, value: Value) -> Claim:
    """The claim whose metrics and functions are those of a value; `text` is how it was written."""
    return Claim(text, (Comparison(value, ">", Number(0.0)),))


def parse_value(text: str) -> Value:
    """One side of a claim: a metric, a function of one, or these calculated with. Raises ClaimError."""
    claim = parse_claim(f"{text} > 0")
    if len(claim.comparisons) != 1 or claim.comparisons[0].right != Number(0.0):
        raise ClaimError(f'"{text}" is a claim; write what a number is of, like bandwidth(write).')
    return claim.comparisons[0].left


def unit_of(value: Value) -> str:
    """The unit of a value: that of its metric, or 1 where it is a ratio or a number of another kind."""
    match value:
        case Metric():
            return METRICS[value.name][0]
        case Function() if value.name in ("largest", "smallest"):
            return METRICS[value.of.name][0]
        case Arithmetic() if value.operator != "/":
            left, right = unit_of(value.left), unit_of(value.right)
            return left if left != "1" else right
        case Arithmetic() if isinstance(value.right, Number):
            return unit_of(value.left)
    return "1"


def printed(value: float | str, unit: str) -> float:
    """A printed number in base units: "1.6 GB/s", "20 kop/s", "34.8 s", "70 %". A plain number is in the unit already.
    Raises UnitError."""
    if not isinstance(value, str):
        return float(value)
    read: Mapping[str, Callable[[str], float]] = {"B/s": parse_rate, "op/s": parse_op_rate, "s": parse_duration}
    return read.get(unit, parse_share)(value)


def with_numbers(text: str) -> str:
    """`text` with quantities as plain numbers: 10 GB/s is 10000000000.0, 10 GB/s - 10 % is 9000000000.0. What stands in
    quotation marks stays as it is."""
    parts = _QUOTED.split(text)
    return "".join(part if number % 2 else _QUANTITY.sub(_number, part) for number, part in enumerate(parts))


def _number(found: re.Match[str]) -> str:
    read = parse_op_rate if found["unit"].endswith("op/s") else parse_rate
    try:
        value = read(f"{found['value']} {found['unit']}")
    except UnitError as reason:
        raise ClaimError(str(reason)) from None
    if found["share"]:
        value *= 1 + (1 if found["sign"] == "+" else -1) * float(found["share"]) / 100
    return repr(float(value))


def _comparisons(node: ast.expr, text: str) -> Iterator[Comparison]:
    if not isinstance(node, ast.Compare):
        raise ClaimError(f'"{_source(node, text)}" compares nothing; write it with >=, <=, > or <, joined by "and".')
    left = _value(node.left, text)
    for operator, right_node in zip(node.ops, node.comparators, strict=True):
        right = _value(right_node, text)
        name = _OPERATORS.get(type(operator))
        if name is None:
            raise ClaimError(f'"{_source(node, text)}" compares with something other than >=, <=, >, < or ==.')
        forms = isinstance(left, Word) or isinstance(right, Word)
        if (name == "==") != forms or (forms and not _is_shape(left if isinstance(right, Word) else right)):
            raise ClaimError(
                f'"{_source(node, text)}": == is for forms only, like shape(bandwidth(read)) == "flat"; numbers that '
                "are measured are never equal, compare them with >= or <=."
            )
        yield Comparison(left, name, right)
        left = right


def _is_shape(value: Value) -> bool:
    return isinstance(value, Function) and value.name == "shape"


def _source(node: ast.expr, text: str) -> str:
    return ast.get_source_segment(text.strip(), node) or text


def _value(node: ast.expr, text: str) -> Value:
    if isinstance(node, ast.Constant):
        return _constant(node.value, text)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        found = _constant(node.operand.value, text)
        if isinstance(found, Number):
            return Number(-found.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _value(node.left, text), _value(node.right, text)
        if isinstance(left, Word) or isinstance(right, Word):
            raise ClaimError(f'"{_source(node, text)}" calculates with a word.')
        return Arithmetic(_ARITHMETIC[type(node.op)], left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in FUNCTIONS:
            return _function(node.func.id, node, text)
        return _metric(node.func.id, node, text)
    if isinstance(node, ast.Name):
        raise ClaimError(f'"{node.id}" stands alone; write a metric with its phase, like bandwidth(read).')
    raise ClaimError(f'"{_source(node, text)}" is not a metric, a function, a number or a word.')


def _constant(value: object, text: str) -> Number | Word:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ClaimError(f'"{text}" has {value!r}, which is no number and no word.')
    if isinstance(value, str):
        if value not in SHAPES:
            raise ClaimError(f'"{value}" is no form; forms are {", ".join(SHAPES)}.{suggestion(value, SHAPES)}')
        return Word(value)
    return Number(float(value))


def _metric(name: str, node: ast.Call, text: str) -> Metric:
    if name not in METRICS:
        near = suggestion(name, [*METRICS, *FUNCTIONS])
        raise ClaimError(
            f'there is no metric or function "{name}".{near or " Metrics are " + ", ".join(METRICS) + "."}'
        )
    if len(node.args) > 1:
        raise ClaimError(
            f'"{_source(node, text)}" names several phases; write one, and cells by name: transfer="4KiB".'
        )
    return Metric(name, _word(node.args[0], text) if node.args else "", _options(node, text))


def _function(name: str, node: ast.Call, text: str) -> Function:
    needed, allowed, _ = FUNCTIONS[name]
    if len(node.args) != 1:
        raise ClaimError(f"{name} takes one metric, like {name}(bandwidth(read){', over=transfer' if needed else ''}).")
    of = _value(node.args[0], text)
    if not isinstance(of, Metric):
        raise ClaimError(f'"{_source(node.args[0], text)}" is no metric; {name} takes one metric.')
    options = _options(node, text)
    for option in needed:
        if option not in options:
            raise ClaimError(f'"{_source(node, text)}" lacks {option}=…; write {name}(…, {option}=…).')
    for option, value in options.items():
        if option not in (*needed, *allowed):
            raise ClaimError(
                f'"{_source(node, text)}": {name} has no {option}=….{suggestion(option, (*needed, *allowed))}'
            )
        if option == "per" and value not in PER:
            raise ClaimError(f'"{_source(node, text)}": per is one of {", ".join(PER)}.{suggestion(str(value), PER)}')
    return Function(name, of, options)


def _options(node: ast.Call, text: str) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for one in node.keywords:
        if one.arg is None or one.arg in found:
            raise ClaimError(f'"{_source(node, text)}" names cells twice or by **; write transfer="4KiB".')
        found[one.arg] = _scalar(one.value, text)
    return found


def _scalar(node: ast.expr, text: str) -> Scalar:
    if isinstance(node, ast.Name):
        return {"true": True, "false": False}.get(node.id, node.id)  # as TOML writes them
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool):
        return node.value
    raise ClaimError(f'"{_source(node, text)}" is no value of an axis; write a number or a text like "4KiB".')


def _word(node: ast.expr, text: str) -> str:
    found = _scalar(node, text)
    if not isinstance(found, str):
        raise ClaimError(f'"{_source(node, text)}" is no phase; write its id, in quotation marks if it has a dash.')
    return found
