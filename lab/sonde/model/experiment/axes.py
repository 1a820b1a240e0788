# SPDX-License-Identifier: Apache-2.0
"""Axes of an experiment with their values: sweeps, plans, variants, file systems, mounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.model.errors import UnitError, UserError
from sonde.model.experiment.description import ExperimentFile, Sweep
from sonde.model.units import format_exact_bytes, parse_bytes

# Axes that every experiment may have besides those of its sweeps.
RESERVED_AXIS_NAMES = (
    "plan",
    "variant",
    "file_system",
    "mount",
    "phase",
    "time",
    "call",
    "node",
    "task",
    "target",
    "server",
    "run",
)
MAX_AXIS_VALUES = 10_000


class AxisError(UserError):
    """A malformed sweep."""


@dataclass(frozen=True)
class AxisValue:
    """One value of an axis and the plan members that it sets."""

    value: Any
    settings: tuple[tuple[str, Any], ...]  # path, value
    label: str


@dataclass(frozen=True)
class SweepAxis:
    """One axis of the cells."""

    name: str
    values: tuple[AxisValue, ...]
    is_one_at_a_time: bool = False  # not combined with the other axes
    plans: tuple[str, ...] = ()  # plans that it applies to; empty: all

    def find_axis_value(self, sought_value: object) -> AxisValue | None:
        """Returns the axis value that equals `sought_value`, as written or as the same number of bytes."""
        for axis_value in self.values:
            if axis_value.value == sought_value or str(axis_value.value) == str(sought_value):
                return axis_value
        return next(
            (axis_value for axis_value in self.values if _is_same_byte_count(axis_value.value, sought_value)), None
        )


def _is_same_byte_count(first_value: object, second_value: object) -> bool:
    try:
        return (
            isinstance(first_value, str | int)
            and isinstance(second_value, str | int)
            and parse_bytes(first_value) == parse_bytes(second_value)
        )
    except UnitError:
        return False


def get_axis_name(sweep: Sweep) -> str:
    """Returns the name of a sweep's axis: its `name`, or the last member of its first path."""
    return sweep.name or (sweep.paths[0].rpartition(".")[2] if sweep.paths else "")


def build_cell_axes(experiment_file: ExperimentFile) -> tuple[SweepAxis, ...]:
    """Returns the axes of the cells, variants first and sweeps last. Raises AxisError."""
    axes: list[SweepAxis] = []
    if experiment_file.variants:
        axes.append(
            SweepAxis(
                "variant", tuple(AxisValue(entry.id, (), entry.title or entry.id) for entry in experiment_file.variants)
            )
        )
    storage = experiment_file.storage
    if storage is not None:
        for name, names in (("file_system", storage.file_systems), ("mount", storage.mounts)):
            if names:
                axes.append(SweepAxis(name, tuple(AxisValue(entry, (), entry) for entry in names)))
    return (*axes, *(_build_axis(sweep) for sweep in experiment_file.sweep))


def _build_axis(sweep: Sweep) -> SweepAxis:
    name = get_axis_name(sweep)
    values = expand_values(sweep.values)
    if sweep.labels and len(sweep.labels) != len(values):
        raise AxisError(f"has {len(sweep.labels)} labels for {len(values)} values; give one for each.")
    axis_values = []
    for position, value in enumerate(values):
        members = value if len(sweep.paths) > 1 else [value]
        if not isinstance(members, list) or len(members) != len(sweep.paths):
            raise AxisError(
                f"has {len(sweep.paths)} paths that change together, so each value is a list of {len(sweep.paths)}; "
                f"value {position + 1} is not."
            )
        label = sweep.labels[position] if sweep.labels else str(members[0])
        axis_values.append(AxisValue(members[0], tuple(zip(sweep.paths, members, strict=True)), label))
    return SweepAxis(name, tuple(axis_values), sweep.kind == "one_at_a_time", sweep.plans)


def expand_values(declared_values: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    """Returns the values of a sweep: a list unchanged, or from … to by a factor or a step. Raises AxisError."""
    if not isinstance(declared_values, Mapping):
        return list(declared_values)
    ends = declared_values["from"], declared_values["to"]
    has_sizes = any(isinstance(value, str) for value in ends)
    try:
        first, last = (parse_bytes(value) if has_sizes else value for value in ends)
        step = (
            parse_bytes(declared_values["step"])
            if isinstance(declared_values.get("step"), str)
            else declared_values.get("step")
        )
    except UnitError as reason:
        raise AxisError(f"cannot be read: {reason}") from None
    factor = declared_values.get("factor")
    if last < first or (factor is not None and first <= 0) or (step is not None and step <= 0):
        raise AxisError(f"runs from {ends[0]} to {ends[1]}, which never arrives; write the smaller end first, above 0.")
    values = []
    current = first
    while current <= last:
        values.append(current)
        if len(values) > MAX_AXIS_VALUES:
            raise AxisError(f"has more than {MAX_AXIS_VALUES} values, which cannot be meant.")
        current = current * factor if factor is not None else current + (step or 1)
    normalized = [int(value) if float(value).is_integer() else value for value in values]
    return [format_exact_bytes(int(value)) for value in normalized] if has_sizes else normalized
