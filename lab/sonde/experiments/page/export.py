# SPDX-License-Identifier: Apache-2.0
"""Every number of an experiment as a table for other programs: a row for each metric of each phase of each run, and
beside it what the source document prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sonde.experiments.judging.measured import MeasuredRuns
from sonde.experiments.judging.samples import MissingError
from sonde.experiments.page.beside import Beside, beside
from sonde.experiments.page.points import coordinates, settled
from sonde.model.experiment.claims import METRICS, Metric

if TYPE_CHECKING:
    import pyarrow

Row = dict[str, Any]


def result_table(runs: MeasuredRuns) -> pyarrow.Table:
    """Columns: experiment, cell, one for each axis, phase, metric, unit, run, value; published, published_to (the other
    end of a range), published_limit, published_unit, published_source, ratio (value over published).

    What a record does not say has no row. A published number stands in the rows of the metric, phase and cell that it
    is of. One that is of something else (a ratio, a slope), that a second document prints for the same, or of which
    nothing was measured, has a row of its own without a run: its value is ours where that can be calculated.
    """
    import pyarrow  # takes longer to import than most commands take to run

    experiment = runs.experiment
    axes = list(dict.fromkeys(name for cell in experiment.cells for name in coordinates(experiment, cell)))
    printed = beside(runs, None)
    first: dict[tuple[str, str, str], Beside] = {}
    for one in printed:
        if isinstance(one.of, Metric) and one.ours is not None:
            first.setdefault((one.cell, one.phase, one.of.name), one)
    rows = list(_measured(runs, first))
    beside_runs = {id(one) for one in first.values()}
    rows += [_alone(runs, one) for one in printed if id(one) not in beside_runs]
    texts = ["experiment", "cell", *axes, "phase", "metric", "unit", "run"]
    theirs = ["published", "published_to", "published_limit", "published_unit", "published_source", "ratio"]
    types = {name: pyarrow.float64() for name in ("value", "published", "published_to", "ratio")}
    schema = pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in (*texts, "value", *theirs)])
    return pyarrow.Table.from_pylist(rows, schema=schema)


def _measured(runs: MeasuredRuns, printed: dict[tuple[str, str, str], Beside]) -> Iterator[Row]:
    experiment = runs.experiment
    for cell in experiment.cells:
        at = {name: str(value) for name, value in coordinates(experiment, cell).items()}
        for phase in (str(one["id"]) for one in experiment.plans[cell.plan]["phases"]):
            for metric, (unit, _) in METRICS.items():
                try:
                    found = runs.samples(metric, phase, cell)
                except MissingError:
                    continue
                told = printed.get((cell.id, phase, metric))
                for run, value in zip(found.runs, found.values, strict=True):
                    head = {"experiment": experiment.id, "cell": cell.id, **at, "phase": phase, "metric": metric}
                    theirs = {} if told is None else _theirs(told, float(value))
                    yield {**head, "unit": unit, "run": run, "value": float(value), **theirs}


def _alone(runs: MeasuredRuns, one: Beside) -> Row:
    """A published number that stands beside no run."""
    at, metric = dict(one.at), one.told.of
    if isinstance(one.of, Metric):
        at, metric = {**settled(runs.experiment, one.of.at), **one.at}, one.of.name
    ours = None if one.ours is None else one.ours.value
    return {
        "experiment": runs.experiment.id, "cell": one.cell, **{name: str(value) for name, value in at.items()},
        "phase": one.phase, "metric": metric, "unit": one.unit, "run": "", "value": ours, **_theirs(one, ours),
    }  # fmt: skip


def _theirs(one: Beside, ours: float | None) -> Row:
    over = None if ours is None or one.to is not None or one.value == 0 else ours / one.value
    return {
        "published": one.value, "published_to": one.to, "published_limit": one.told.limit, "published_unit": one.unit,
        "published_source": one.told.source, "ratio": over,
    }  # fmt: skip
