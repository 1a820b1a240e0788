# SPDX-License-Identifier: Apache-2.0
"""Axes of an experiment and the values on them: of sweeps, and of plans, variants, file systems and mounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.model.errors import UnitError, UserError
from sonde.model.experiment.description import ExperimentFile, Sweep
from sonde.model.units import exact_bytes, parse_bytes

# Axes that every experiment may have besides those of its sweeps.
RESERVED = (
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
MOST_VALUES = 10_000


class AxisError(UserError):
    """A sweep that has no meaning."""


@dataclass(frozen=True)
class Place:
    """One place on an axis: the value that names it, and what it sets."""

    value: Any
    settings: tuple[tuple[str, Any], ...]  # path, value
    label: str


@dataclass(frozen=True)
class Axis:
    """One axis of the cells."""

    name: str
    places: tuple[Place, ...]
    alone: bool = False  # one at a time, not combined with the other axes
    plans: tuple[str, ...] = ()  # plans that it applies to; empty: all

    def place(self, value: object) -> Place | None:
        """The place that a value names: as it is written, or as the same number of bytes."""
        for one in self.places:
            if one.value == value or str(one.value) == str(value):
                return one
        return next((one for one in self.places if _same_size(one.value, value)), None)


def _same_size(one: object, other: object) -> bool:
    try:
        return isinstance(one, str | int) and isinstance(other, str | int) and parse_bytes(one) == parse_bytes(other)
    except UnitError:
        return False


def axis_name(sweep: Sweep) -> str:
    """The name of a sweep's axis: its own, or the last name of its first path."""
    return sweep.name or (sweep.paths[0].rpartition(".")[2] if sweep.paths else "")


def axes_of(file: ExperimentFile) -> tuple[Axis, ...]:
    """Every axis whose places make cells, plans first and sweeps last. Raises AxisError."""
    found: list[Axis] = []
    if file.variants:
        found.append(Axis("variant", tuple(Place(one.id, (), one.title or one.id) for one in file.variants)))
    storage = file.storage
    if storage is not None:
        for name, listed in (("file_system", storage.file_systems), ("mount", storage.mounts)):
            if listed:
                found.append(Axis(name, tuple(Place(one, (), one) for one in listed)))
    return (*found, *(_axis(sweep) for sweep in file.sweep))


def _axis(sweep: Sweep) -> Axis:
    name = axis_name(sweep)
    values = values_of(sweep.values)
    if sweep.labels and len(sweep.labels) != len(values):
        raise AxisError(f"has {len(sweep.labels)} labels for {len(values)} values; give one for each.")
    places = []
    for number, value in enumerate(values):
        together = value if len(sweep.paths) > 1 else [value]
        if not isinstance(together, list) or len(together) != len(sweep.paths):
            raise AxisError(
                f"has {len(sweep.paths)} paths that change together, so each value is a list of {len(sweep.paths)}; "
                f"value {number + 1} is not."
            )
        label = sweep.labels[number] if sweep.labels else str(together[0])
        places.append(Place(together[0], tuple(zip(sweep.paths, together, strict=True)), label))
    return Axis(name, tuple(places), sweep.kind == "one_at_a_time", sweep.plans)


def values_of(written: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    """The values of a sweep: a list as it stands, or from … to by a factor or a step. Raises AxisError."""
    if not isinstance(written, Mapping):
        return list(written)
    ends = written["from"], written["to"]
    sizes = any(isinstance(one, str) for one in ends)
    try:
        first, last = (parse_bytes(one) if sizes else one for one in ends)
        step = parse_bytes(written["step"]) if isinstance(written.get("step"), str) else written.get("step")
    except UnitError as reason:
        raise AxisError(f"cannot be read: {reason}") from None
    factor = written.get("factor")
    if last < first or (factor is not None and first <= 0) or (step is not None and step <= 0):
        raise AxisError(f"runs from {ends[0]} to {ends[1]}, which never arrives; write the smaller end first, above 0.")
    found = []
    here = first
    while here <= last:
        found.append(here)
        if len(found) > MOST_VALUES:
            raise AxisError(f"has more than {MOST_VALUES} values, which cannot be meant.")
        here = here * factor if factor is not None else here + (step or 1)
    whole = [int(one) if float(one).is_integer() else one for one in found]
    return [exact_bytes(int(one)) for one in whole] if sizes else whole
