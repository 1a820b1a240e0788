# SPDX-License-Identifier: Apache-2.0
"""Where the cells of an experiment are measured: which directory stands for a file system, a mount, a pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sonde.model.errors import UserError, suggestion
from sonde.model.experiment import Cell, Experiment
from sonde.model.experiment.experiment import NO_TARGET
from sonde.model.system import System


@dataclass(frozen=True)
class Directories:
    """What --on, --pool and the system file say. Every directory is there."""

    default: str = ""  # of cells for which nothing else is said
    named: Mapping[str, str] = field(default_factory=dict)  # file system or mount -> directory
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # one directory, or one for each target
    system: System | None = None  # the machine that this is; None: not described

    def check(self, experiment: Experiment) -> None:
        """Raises UserError for a name that means nothing in this experiment, and where no cell has a directory."""
        places, pools = names_of(experiment)
        both: tuple[tuple[str, Mapping[str, str | tuple[str, ...]], set[str], set[str]], ...] = (
            ("--on", {**self.named}, places, pools),
            ("--pool", {**self.pools}, pools, places),
        )
        for option, given, known, other in both:
            for name in given:
                if name in known:
                    continue
                kind = "file system or mount" if option == "--on" else "pool"
                listed = ", ".join(sorted(known)) or "none"
                near = suggestion(name, known)
                if name in other:
                    near = f" Say {'--pool' if option == '--on' else '--on'} {name}={_written(given[name])}."
                raise UserError(
                    f'{option} {name}=…: {experiment.id} names no {kind} "{name}"; it names {listed}.{near}'
                )
        told = [self._found(experiment, cell) for cell in experiment.cells]
        if not any(told):
            first = next(iter([*sorted(places), *sorted(pools)]), "")
            option = "--pool" if first in pools and first not in places else "--on"
            more = f", or {option} {first}=DIR for each of {', '.join(sorted(places | pools))}" if first else ""
            raise UserError(f"Nothing says where {experiment.id} is to be measured; give --on DIR{more}.")

    def of(self, experiment: Experiment, cell: Cell) -> str:
        """The directory of a cell. Raises UserError with the reason why it cannot be measured."""
        found = self._found(experiment, cell)
        if found:
            return found
        names = [*_places(experiment, cell)]
        pool = _pool_of(experiment, cell)
        option = f"--on {names[0]}=DIR" if names else f"--pool {pool}=DIR" if pool else "--on DIR"
        raise UserError(f"Nothing says where this is to be measured; give {option}.")

    def _found(self, experiment: Experiment, cell: Cell) -> str:
        named = next((self.named[name] for name in _places(experiment, cell) if name in self.named), "")
        pooled = self.pools.get(_pool_of(experiment, cell), ("",))[0]
        return named or pooled or self.default or self._mounted(experiment, cell) or _own(experiment, cell)

    def several(self, experiment: Experiment, cell: Cell) -> tuple[str, ...]:
        """The directories of the pool of a cell where it has more than one; else none."""
        if any(name in self.named for name in _places(experiment, cell)):
            return ()
        found = self.pools.get(_pool_of(experiment, cell), ())
        return found if len(found) > 1 else ()

    def _mounted(self, experiment: Experiment, cell: Cell) -> str:
        """The mount of the system file, where the directory is there on this machine."""
        if self.system is None:
            return ""
        for name in _places(experiment, cell):
            for mount in self.system.mounts:
                if name in (mount.id, *mount.file_system) and Path(mount.path).is_dir():
                    return mount.path
        return ""

    def counted(self, experiment: Experiment, cell: Cell) -> Cell:
        """The cell with the units and targets of its pool as the system file counts them, where it does not say them:
        clients for each target stay the same however large the pool is."""
        storage = experiment.storage_of(cell)
        several = self.several(experiment, cell)
        if several and storage.targets is None:
            return replace(cell, settings=(*cell.settings, ("storage.targets", len(several))))
        if self.system is None or not storage.pool or storage.pool not in self.system.ids("pools"):
            return cell
        found = []
        if storage.targets is None and (targets := len(self.system.targets_of(storage.pool))):
            found.append(("storage.targets", targets))
        if storage.units is None and (units := len(self.system.units_of(storage.pool))):
            found.append(("storage.units", units))
        return replace(cell, settings=(*cell.settings, *found))


def _written(given: str | tuple[str, ...]) -> str:
    return given if isinstance(given, str) else ",".join(given)


def names_of(experiment: Experiment) -> tuple[set[str], set[str]]:
    """File systems and mounts that an experiment names, and pools."""
    places, pools = set[str](), set[str]()
    for cell in experiment.cells:
        places |= set(_places(experiment, cell))
        pools |= {_pool_of(experiment, cell)}
    return places, pools - {""}


def _places(experiment: Experiment, cell: Cell) -> Iterator[str]:
    """Names of the mount and file system of a cell, the most particular first."""
    chosen = next((one for one in experiment.file.variants if one.id == cell.at.get("variant")), None)
    if chosen is not None and chosen.mount:
        yield chosen.mount
    for axis in ("mount", "file_system"):
        if axis in cell.at:
            yield str(cell.at[axis])


def _pool_of(experiment: Experiment, cell: Cell) -> str:
    """Name of the pool of a cell; empty where it has none."""
    return experiment.storage_of(cell).pool


def _own(experiment: Experiment, cell: Cell) -> str:
    """The directory that the plan itself names."""
    found = str(experiment.plan_of(cell).target)
    return "" if found == NO_TARGET else found
