# SPDX-License-Identifier: Apache-2.0
"""Sonde's lab: plans, launches, keeps, compares, explains and presents measurements of storage.

For programs of others there is ``sonde.open()``, which reads an archive::

    import sonde

    for run in sonde.open("sonde-archive").runs(plan="quick", since="30d"):
        for phase in run.phases:
            if phase.is_storage:
                print(run.started, phase.id, phase.bytes_per_s)

What it returns is in ``sonde.public``. Everything else may change from version to version.

This package knows what a measurement means. It moves no data itself: the engine, a separate program, does that, and the
two share nothing but the formats in ``schema/``. HACKING.md draws who may know whom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sonde.model.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from sonde.public.runs import Runs

__all__ = ["__version__", "open"]


def open(archive: str | Path | None = None) -> Runs:
    """An archive to read: that folder, else $SONDE_ARCHIVE, else ./sonde-archive, as for the command.

    A folder that is not there is an archive without runs.
    """
    from sonde.public.runs import Runs

    return Runs(archive)
