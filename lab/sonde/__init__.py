# SPDX-License-Identifier: Apache-2.0
"""Sonde's lab: plans, launches, keeps, compares, explains and presents measurements of storage.

For programs of others there is this module's public API::

    import sonde

    run = sonde.run("quick", on="/scratch")
    for phase in run.phases:
        if phase.is_storage:
            print(run.started, phase.id, phase.bytes_per_s)
    old = sonde.open("sonde-archive").runs(plan="quick", since="30d").to_arrow()

``__all__`` lists all of it. Everything else in the package may change from version to version.

This package knows what a measurement means. It moves no data itself: the engine, a separate program, does that, and the
two share nothing but the formats in ``schema/``. HACKING.md lists which folder may import which.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sonde.model.version import __version__

if TYPE_CHECKING:
    from sonde.model.errors import UserError
    from sonde.public.archive import ArchiveReader
    from sonde.public.archive import open_archive as open
    from sonde.public.comparing import (
        ComparedNumber,
        GateNumber,
        GateResult,
        RunComparison,
        TrendChange,
        TrendHistory,
        TrendResult,
    )
    from sonde.public.experiment_results import ExecutedExperiment, ExperimentCell, ExperimentClaim
    from sonde.public.experiments import run_experiment
    from sonde.public.measuring import Check, Figure, check, run, simulate
    from sonde.public.records import Bucket, Histogram, PhaseSeries, RunFinding, RunFindings
    from sonde.public.runs import Phase, Run, RunList
    from sonde.public.tables import Table

# Public name -> module that defines it. Modules are imported on first access, so that `import sonde` costs nothing.
_MODULES = {
    **dict.fromkeys(("ArchiveReader", "open"), "sonde.public.archive"),
    **dict.fromkeys(("ComparedNumber", "RunComparison", "GateNumber", "GateResult"), "sonde.public.comparing"),
    **dict.fromkeys(("TrendChange", "TrendHistory", "TrendResult"), "sonde.public.comparing"),
    **dict.fromkeys(("ExperimentCell", "ExperimentClaim", "ExecutedExperiment"), "sonde.public.experiment_results"),
    "run_experiment": "sonde.public.experiments",
    **dict.fromkeys(("Check", "Figure", "check", "run", "simulate"), "sonde.public.measuring"),
    **dict.fromkeys(("Bucket", "RunFinding", "RunFindings", "Histogram", "PhaseSeries"), "sonde.public.records"),
    **dict.fromkeys(("Phase", "Run", "RunList"), "sonde.public.runs"),
    "Table": "sonde.public.tables",
    "UserError": "sonde.model.errors",
}

__all__ = [
    "ArchiveReader",
    "Bucket",
    "Check",
    "ComparedNumber",
    "ExecutedExperiment",
    "ExperimentCell",
    "ExperimentClaim",
    "Figure",
    "GateNumber",
    "GateResult",
    "Histogram",
    "Phase",
    "PhaseSeries",
    "Run",
    "RunComparison",
    "RunFinding",
    "RunFindings",
    "RunList",
    "Table",
    "TrendChange",
    "TrendHistory",
    "TrendResult",
    "UserError",
    "__version__",
    "check",
    "open",
    "run",
    "run_experiment",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'sonde' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), "open_archive" if name == "open" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
