# SPDX-License-Identifier: Apache-2.0
"""Public classes for the results of experiments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from sonde.experiments.experiment_run import ExperimentRun, convert_results_to_json, evaluate_stored_results
from sonde.experiments.medians import BYTE_RATE_UNIT, CellMedian
from sonde.experiments.results import read_group_results
from sonde.experiments.runner import RunnerOutcome
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import UserError
from sonde.model.system import read_system
from sonde.public.runs import Run, load_run
from sonde.public.tables import Convertible, Rows
from sonde.store.archive import Archive


@dataclass(frozen=True)
class ExperimentCell:
    """The median rate of one phase of one cell."""

    cell: str
    axis_values: Mapping[str, Any]
    plan: str
    phase: str
    unit: str
    """bytes_per_s or ops_per_s."""
    median: float
    low: float | None
    """Lower end of the 95 % interval of the median; None with too few runs."""
    high: float | None
    runs: int
    has_enough_runs: bool
    """Whether the repeats that the experiment asks for are there."""
    about: str
    """What the number describes if that is not storage, like "cached"; else empty."""


class ExperimentCells(Rows[ExperimentCell]):
    """The numbers of an experiment as a sequence. `axis_values` is JSON in a table."""

    _kinds: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("cell", "axis_values", "plan", "phase", "unit"), "text"),
        **dict.fromkeys(("median", "low", "high"), "float"),
        "runs": "int",
        "has_enough_runs": "bool",
        "about": "text",
    }

    @staticmethod
    def _to_row(cell: ExperimentCell) -> Mapping[str, Any]:
        return {**asdict(cell), "axis_values": json.dumps(dict(cell.axis_values), default=str)}


@dataclass(frozen=True)
class ExperimentClaim:
    """One claim of an experiment with its verdict."""

    id: str
    claim: str
    verdict: str
    """holds, fails, undecided or not judged."""
    reason: str
    """Why it was not judged; else empty."""
    runs_needed: int | None
    """More runs of each cell that would probably decide an undecided claim; None if no number would."""


class ExperimentClaims(Rows[ExperimentClaim]):
    """The claims of an experiment as a sequence."""

    _kinds: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("id", "claim", "verdict", "reason"), "text"),
        "runs_needed": "int",
    }


@dataclass(frozen=True)
class ExecutedExperiment(Convertible):
    """An experiment and its runs. As a table it has the columns of `cells`."""

    id: str
    title: str
    group: str
    """The name under which the archive stores it."""
    cells: ExperimentCells
    claims: ExperimentClaims
    run_folders: tuple[Path, ...] = field(repr=False)
    not_run: Mapping[str, str]
    """Cells that could not be run, each with the reason."""
    document: Mapping[str, Any] = field(repr=False)
    """What `sonde run --json` prints."""
    _experiment_run: ExperimentRun = field(repr=False, compare=False)

    @property
    def failed_claims(self) -> ExperimentClaims:
        """The claims that the runs contradict."""
        return ExperimentClaims([claim for claim in self.claims if claim.verdict == "fails"])

    @property
    def runs(self) -> tuple[Run, ...]:
        """The successful runs in order of time, read from the archive at each access."""
        return tuple(load_run(folder) for folder in self.run_folders)

    def claim(self, name: str) -> ExperimentClaim:
        """The claim of that id. Raises UserError when there is none."""
        for claim in self.claims:
            if claim.id == name:
                return claim
        there = ", ".join(claim.id for claim in self.claims) or "none"
        raise UserError(f'The experiment {self.id} has no claim "{name}"; its claims are {there}.')

    def to_arrow(self) -> Any:
        """Returns a `pyarrow.Table`, one row for each number."""
        return self.cells.to_arrow()

    def _repr_html_(self) -> str:
        """HTML of the page of the experiment, which notebooks show."""
        from sonde.public.drawing import render_experiment_page

        return render_experiment_page(self._experiment_run.results, self._experiment_run.system)


def read_executed_experiment(archive: Archive, name: str) -> ExecutedExperiment:
    """Returns a stored experiment: the name of its group, a unique beginning of one, or "last". Raises UserError."""
    results = read_group_results(archive, name)
    system = read_system(find_system_file(results.system)) if results.system else None
    outcome = RunnerOutcome(results.group, refusals=dict(results.refusals), failures=dict(results.failures))
    return make_executed_experiment(evaluate_stored_results(outcome, results, system))


def make_executed_experiment(experiment_run: ExperimentRun) -> ExecutedExperiment:
    """Returns the public form of an experiment that was run or read."""
    results = experiment_run.results
    document = convert_results_to_json(experiment_run)
    claims = [ExperimentClaim(**{name: item[name] for name in ExperimentClaims._kinds}) for item in document["claims"]]
    return ExecutedExperiment(
        id=results.experiment.id,
        title=results.experiment.title,
        group=results.group,
        cells=ExperimentCells([_make_experiment_cell(median) for median in experiment_run.medians]),
        claims=ExperimentClaims(claims),
        run_folders=tuple(run.folder for run in results.runs if not run.warm_up),
        not_run={**results.refusals, **results.failures},
        document=document,
        _experiment_run=experiment_run,
    )


def _make_experiment_cell(median: CellMedian) -> ExperimentCell:
    return ExperimentCell(
        **{
            name: getattr(median, name) for name in ("cell", "axis_values", "plan", "phase", "has_enough_runs", "about")
        },
        unit="bytes_per_s" if median.unit == BYTE_RATE_UNIT else "ops_per_s",
        median=median.interval.value,
        low=median.interval.low,
        high=median.interval.high,
        runs=median.interval.count,
    )
