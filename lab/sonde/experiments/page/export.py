# SPDX-License-Identifier: Apache-2.0
"""Exports every number of an experiment as a table: a row for each metric, phase and run, with published numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sonde.experiments.claims.measured_runs import MeasuredRuns
from sonde.experiments.claims.samples import MissingError
from sonde.experiments.page.points import canonicalize_axis_values, get_cell_coordinates
from sonde.experiments.page.published_comparison import PublishedComparison, compare_published
from sonde.model.experiment.claims import METRICS, MetricReference

if TYPE_CHECKING:
    import pyarrow

ResultRow = dict[str, Any]


def build_result_table(measured_runs: MeasuredRuns) -> pyarrow.Table:
    """Columns: experiment, cell, one for each axis, phase, metric, unit, run, value; published, published_to (upper end
    of a range), published_limit, published_unit, published_source, ratio (value / published).

    Values that a record lacks have no row. A published number is in the rows of its metric, phase and cell. It has a
    separate row without a run if it is of a calculated value (ratio, slope), if another document already gives the
    number, or if nothing was measured; `value` is then the calculated measured value, if any.
    """
    import pyarrow  # takes longer to import than most commands take to run

    experiment = measured_runs.experiment
    axes = list(dict.fromkeys(name for cell in experiment.cells for name in get_cell_coordinates(experiment, cell)))
    comparisons = compare_published(measured_runs, None)
    by_metric: dict[tuple[str, str, str], PublishedComparison] = {}
    for comparison in comparisons:
        if isinstance(comparison.value_expression, MetricReference) and comparison.measured is not None:
            by_metric.setdefault((comparison.cell, comparison.phase, comparison.value_expression.name), comparison)
    rows = list(_iterate_measured_rows(measured_runs, by_metric))
    shown_in_rows = {id(comparison) for comparison in by_metric.values()}
    rows += [
        _make_row_without_run(measured_runs, comparison)
        for comparison in comparisons
        if id(comparison) not in shown_in_rows
    ]
    text_columns = ["experiment", "cell", *axes, "phase", "metric", "unit", "run"]
    published_columns = ["published", "published_to", "published_limit", "published_unit", "published_source", "ratio"]
    types = {name: pyarrow.float64() for name in ("value", "published", "published_to", "ratio")}
    schema = pyarrow.schema(
        [(name, types.get(name, pyarrow.string())) for name in (*text_columns, "value", *published_columns)]
    )
    return pyarrow.Table.from_pylist(rows, schema=schema)


def _iterate_measured_rows(
    measured_runs: MeasuredRuns, comparisons: dict[tuple[str, str, str], PublishedComparison]
) -> Iterator[ResultRow]:
    experiment = measured_runs.experiment
    for cell in experiment.cells:
        axis_texts = {name: str(value) for name, value in get_cell_coordinates(experiment, cell).items()}
        for phase in (str(phase_entry["id"]) for phase_entry in experiment.plans[cell.plan]["phases"]):
            for metric, (unit, _) in METRICS.items():
                try:
                    samples = measured_runs.collect_samples(metric, phase, cell)
                except MissingError:
                    continue
                comparison = comparisons.get((cell.id, phase, metric))
                for run, value in zip(samples.runs, samples.values, strict=True):
                    head = {
                        "experiment": experiment.id,
                        "cell": cell.id,
                        **axis_texts,
                        "phase": phase,
                        "metric": metric,
                    }
                    published = {} if comparison is None else _make_published_columns(comparison, float(value))
                    yield {**head, "unit": unit, "run": run, "value": float(value), **published}


def _make_row_without_run(measured_runs: MeasuredRuns, comparison: PublishedComparison) -> ResultRow:
    """Returns the row of a published number without a run."""
    axis_values, metric = dict(comparison.context), comparison.published.of
    if isinstance(comparison.value_expression, MetricReference):
        axis_values, metric = (
            {
                **canonicalize_axis_values(measured_runs.experiment, comparison.value_expression.coordinates),
                **comparison.context,
            },
            comparison.value_expression.name,
        )
    measured = None if comparison.measured is None else comparison.measured.value
    return {
        "experiment": measured_runs.experiment.id,
        "cell": comparison.cell,
        **{name: str(value) for name, value in axis_values.items()},
        "phase": comparison.phase,
        "metric": metric,
        "unit": comparison.unit,
        "run": "",
        "value": measured,
        **_make_published_columns(comparison, measured),
    }


def _make_published_columns(comparison: PublishedComparison, measured_value: float | None) -> ResultRow:
    ratio = (
        None
        if measured_value is None or comparison.upper is not None or comparison.value == 0
        else measured_value / comparison.value
    )
    return {
        "published": comparison.value,
        "published_to": comparison.upper,
        "published_limit": comparison.published.limit,
        "published_unit": comparison.unit,
        "published_source": comparison.published.source,
        "ratio": ratio,
    }
