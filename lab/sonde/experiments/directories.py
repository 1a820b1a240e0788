# SPDX-License-Identifier: Apache-2.0
"""The directories in which the cells of an experiment are measured: by file system, mount or pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sonde.model.errors import UserError, suggest_close_name
from sonde.model.experiment import Cell, Experiment
from sonde.model.experiment.experiment import PLACEHOLDER_TARGET
from sonde.model.system import System


@dataclass(frozen=True)
class Directories:
    """Directories from --on, --pool and the system file. All of them exist."""

    default: str = ""  # of cells without a more specific one
    by_name: Mapping[str, str] = field(default_factory=dict)  # file system or mount -> directory
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # one directory, or one for each target
    system: System | None = None  # this machine; None if not described

    def require_known_names(self, experiment: Experiment) -> None:
        """Raises UserError for a name that the experiment does not use, and if no cell has a directory."""
        locations, pools = list_locations_and_pools(experiment)
        options: tuple[tuple[str, Mapping[str, str | tuple[str, ...]], set[str], set[str]], ...] = (
            ("--on", {**self.by_name}, locations, pools),
            ("--pool", {**self.pools}, pools, locations),
        )
        for option, values_by_name, valid_names, names_of_other_option in options:
            for name in values_by_name:
                if name in valid_names:
                    continue
                kind = "file system or mount" if option == "--on" else "pool"
                valid_list = ", ".join(sorted(valid_names)) or "none"
                hint = suggest_close_name(name, valid_names)
                if name in names_of_other_option:
                    other_option = "--pool" if option == "--on" else "--on"
                    hint = f" Say {other_option} {name}={_format_option_value(values_by_name[name])}."
                raise UserError(
                    f'{option} {name}=…: {experiment.id} names no {kind} "{name}"; it names {valid_list}.{hint}'
                )
        directories = [self._find_directory(experiment, cell) for cell in experiment.cells]
        if not any(directories):
            example_name = next(iter([*sorted(locations), *sorted(pools)]), "")
            option = "--pool" if example_name in pools and example_name not in locations else "--on"
            example = (
                f", or {option} {example_name}=DIR for each of {', '.join(sorted(locations | pools))}"
                if example_name
                else ""
            )
            raise UserError(f"Nothing says where {experiment.id} is to be measured; give --on DIR{example}.")

    def find_directory(self, experiment: Experiment, cell: Cell) -> str:
        """Returns the directory of a cell. Raises UserError if it has none."""
        directory = self._find_directory(experiment, cell)
        if directory:
            return directory
        names = [*_iterate_location_names(experiment, cell)]
        pool = _get_pool_name(experiment, cell)
        option = f"--on {names[0]}=DIR" if names else f"--pool {pool}=DIR" if pool else "--on DIR"
        raise UserError(f"Nothing says where this is to be measured; give {option}.")

    def _find_directory(self, experiment: Experiment, cell: Cell) -> str:
        named_directory = next(
            (self.by_name[name] for name in _iterate_location_names(experiment, cell) if name in self.by_name), ""
        )
        pool_directory = self.pools.get(_get_pool_name(experiment, cell), ("",))[0]
        return (
            named_directory
            or pool_directory
            or self.default
            or self._find_mount_directory(experiment, cell)
            or _get_plan_directory(experiment, cell)
        )

    def get_pool_directories(self, experiment: Experiment, cell: Cell) -> tuple[str, ...]:
        """Returns the directories of the cell's pool if it has more than one."""
        if any(name in self.by_name for name in _iterate_location_names(experiment, cell)):
            return ()
        pool_directories = self.pools.get(_get_pool_name(experiment, cell), ())
        return pool_directories if len(pool_directories) > 1 else ()

    def _find_mount_directory(self, experiment: Experiment, cell: Cell) -> str:
        """Returns the mount point from the system file if it exists on this machine."""
        if self.system is None:
            return ""
        for name in _iterate_location_names(experiment, cell):
            for mount in self.system.mounts:
                if name in (mount.id, *mount.file_system) and Path(mount.path).is_dir():
                    return mount.path
        return ""

    def add_storage_counts(self, experiment: Experiment, cell: Cell) -> Cell:
        """Returns the cell with the numbers of units and targets of its pool, from the system file unless the cell
        gives them. The number of clients per target then does not depend on the size of the pool."""
        storage = experiment.resolve_storage(cell)
        pool_directories = self.get_pool_directories(experiment, cell)
        if pool_directories and storage.targets is None:
            return replace(cell, settings=(*cell.settings, ("storage.targets", len(pool_directories))))
        if self.system is None or not storage.pool or storage.pool not in self.system.list_part_ids("pools"):
            return cell
        settings = []
        if storage.targets is None and (targets := len(self.system.find_targets(storage.pool))):
            settings.append(("storage.targets", targets))
        if storage.units is None and (units := len(self.system.find_units(storage.pool))):
            settings.append(("storage.units", units))
        return replace(cell, settings=(*cell.settings, *settings))


def _format_option_value(option_value: str | tuple[str, ...]) -> str:
    return option_value if isinstance(option_value, str) else ",".join(option_value)


def list_locations_and_pools(experiment: Experiment) -> tuple[set[str], set[str]]:
    """Returns the names of file systems and mounts, and the names of pools, that an experiment uses."""
    locations, pools = set[str](), set[str]()
    for cell in experiment.cells:
        locations |= set(_iterate_location_names(experiment, cell))
        pools |= {_get_pool_name(experiment, cell)}
    return locations, pools - {""}


def _iterate_location_names(experiment: Experiment, cell: Cell) -> Iterator[str]:
    """Yields the names of the mount and file system of a cell, the most specific first."""
    variant = next(
        (candidate for candidate in experiment.file.variants if candidate.id == cell.coordinates.get("variant")), None
    )
    if variant is not None and variant.mount:
        yield variant.mount
    for axis in ("mount", "file_system"):
        if axis in cell.coordinates:
            yield str(cell.coordinates[axis])


def _get_pool_name(experiment: Experiment, cell: Cell) -> str:
    """Returns the name of the cell's pool, or an empty text."""
    return experiment.resolve_storage(cell).pool


def _get_plan_directory(experiment: Experiment, cell: Cell) -> str:
    """Returns the directory that the plan names, or an empty text."""
    directory = str(experiment.build_plan_of_cell(cell).target)
    return "" if directory == PLACEHOLDER_TARGET else directory
