# SPDX-License-Identifier: Apache-2.0
"""Every number of an experiment as a table for other programs: a row for each metric of each phase of each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sonde.experiments.judging.measured import MeasuredRuns
from sonde.experiments.judging.samples import MissingError
from sonde.experiments.page.points import coordinates
from sonde.model.experiment.claims import METRICS

if TYPE_CHECKING:
    import pyarrow


def result_table(runs: MeasuredRuns) -> pyarrow.Table:
    """Columns: experiment, cell, one for each axis, phase, metric, unit, run, value. What a record does not say has no
    row."""
    import pyarrow  # takes longer to import than most commands take to run

    experiment = runs.experiment
    axes = list(dict.fromkeys(name for cell in experiment.cells for name in coordinates(experiment, cell)))
    rows: list[dict[str, Any]] = []
    for cell in experiment.cells:
        at = {name: str(value) for name, value in coordinates(experiment, cell).items()}
        for phase in experiment.plans[cell.plan]["phases"]:
            for metric, (unit, _) in METRICS.items():
                try:
                    found = runs.samples(metric, str(phase["id"]), cell)
                except MissingError:
                    continue
                for run, value in zip(found.runs, found.values, strict=True):
                    rows.append(
                        {"experiment": experiment.id, "cell": cell.id, **{name: at.get(name) for name in axes},
                         "phase": str(phase["id"]), "metric": metric, "unit": unit, "run": run, "value": float(value)}
                    )  # fmt: skip
    texts = ["experiment", "cell", *axes, "phase", "metric", "unit", "run"]
    schema = pyarrow.schema([*((name, pyarrow.string()) for name in texts), ("value", pyarrow.float64())])
    return pyarrow.Table.from_pylist(rows, schema=schema)
