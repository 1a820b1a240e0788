# SPDX-License-Identifier: Apache-2.0
"""What the command line says about an experiment, before anything of it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sonde.conduct.run import Observer, Setup
from sonde.experiments.executor import Attempt, Executor
from sonde.experiments.where import Where
from sonde.store.archive import Archive

Maker = Callable[[Setup, Observer, Callable[[Attempt], None]], Executor]


@dataclass(frozen=True)
class Wanted:
    """Options that say what is to be run."""

    profile: str = ""
    settings: tuple[str, ...] = ()
    places: Where = field(default_factory=Where)
    repeat: int | None = None
    warmup: int | None = None
    prepare: str | None = None
    sweeps: tuple[str, ...] = ()
    group: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    resume: bool = False

    @property
    def more_than_once(self) -> bool:
        """Whether a plan becomes an experiment by what is said."""
        return self.adds or self.resume

    @property
    def adds(self) -> bool:
        """Whether the command line adds to what is written."""
        return self.repeat is not None or self.warmup is not None or bool(self.prepare or self.sweeps)


@dataclass(frozen=True)
class How:
    """Options that say where it is kept and how it is shown."""

    archive: Archive
    mpi_module: Path | None = None
    quiet: bool = False
    as_json: bool = False
    report: bool = False
    dry_run: bool = False
    rate: float | None = None  # bytes/s to reckon with, in a dry run
    make: Maker | None = None  # who carries the runs out, if not the engine
