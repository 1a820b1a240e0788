# SPDX-License-Identifier: Apache-2.0
"""Claims about results: ``bandwidth(write, offset="0B") / bandwidth(write, offset="256KiB") >= 1.3``.

A metric names a phase and, by axis, the cells it is taken from; axes that it does not name are the same on both sides,
and the claim must hold in each of their cells. The value of a metric is the median over repeats, with its interval.
Functions look along an axis, over repeats, over nodes, or over time. Comparisons may be chained, and joined by ``and``.
A limit may have a unit and a tolerance: ``bandwidth(write) >= 10 GB/s - 10 %``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sonde.model.errors import UserError

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
    "client_memory": ("B", "most memory that the sampled node could no longer give programs, since the run began"),
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
        "client_memory",
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
class MetricReference:
    """The median of a metric over the repeats of a phase, in the cells that `at` names."""

    name: str
    phase: str  # empty: the only measured phase
    coordinates: Mapping[str, Scalar]


@dataclass(frozen=True)
class MetricFunctionCall:
    """A function that is applied to a metric, with its options."""

    name: str
    metric: MetricReference
    options: Mapping[str, Scalar]


@dataclass(frozen=True)
class ArithmeticExpression:
    """Two values joined by + - * /."""

    operator: str
    left_operand: ClaimExpression
    right_operand: ClaimExpression


ClaimExpression = NumberLiteral | ShapeName | MetricReference | MetricFunctionCall | ArithmeticExpression


@dataclass(frozen=True)
class ClaimComparison:
    """left operator right; a chain a <= b <= c is two of these."""

    left_operand: ClaimExpression
    operator: str
    right_operand: ClaimExpression


@dataclass(frozen=True)
class Claim:
    """Comparisons that must all hold."""

    text: str
    comparisons: tuple[ClaimComparison, ...]

    def iterate_metrics(self) -> Iterator[MetricReference]:
        """Every metric in it, from left to right."""
        for comparison in self.comparisons:
            yield from _iterate_metrics(comparison.left_operand)
            yield from _iterate_metrics(comparison.right_operand)

    def iterate_functions(self) -> Iterator[MetricFunctionCall]:
        """Every function in it, from left to right."""
        for comparison in self.comparisons:
            yield from _iterate_functions(comparison.left_operand)
            yield from _iterate_functions(comparison.right_operand)


def _iterate_metrics(claim_value: ClaimExpression) -> Iterator[MetricReference]:
    if isinstance(claim_value, MetricReference):
        yield claim_value
    elif isinstance(claim_value, MetricFunctionCall):
        yield claim_value.metric
    elif isinstance(claim_value, ArithmeticExpression):
        yield from _iterate_metrics(claim_value.left_operand)
        yield from _iterate_metrics(claim_value.right_operand)


def _iterate_functions(claim_value: ClaimExpression) -> Iterator[MetricFunctionCall]:
    if isinstance(claim_value, MetricFunctionCall):
        yield claim_value
    elif isinstance(claim_value, ArithmeticExpression):
        yield from _iterate_functions(claim_value.left_operand)
        yield from _iterate_functions(claim_value.right_operand)
