# SPDX-License-Identifier: Apache-2.0
"""The public function that runs experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sonde.conduct.run import RunSetup, make_engine_failure
from sonde.experiments.executor import ExecutorFactory
from sonde.experiments.experiment_builder import apply_command_line, build_experiment_from_plan
from sonde.experiments.experiment_run import describe_failure, run_experiment_request
from sonde.experiments.locations import RunLocations, require_existing_directory
from sonde.experiments.plan_loading import load_plan
from sonde.experiments.request import create_request, resume_request
from sonde.experiments.shipped_experiments import resolve_plan_source
from sonde.experiments.simulated_executor import SimulatedExecutor
from sonde.experiments.single_run import RunLabels, prepare_simulation
from sonde.launch.session import LineObserver
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import EXIT_OK, UserError
from sonde.model.experiment import make_experiment
from sonde.model.experiment.description import EXPERIMENT_FORMAT
from sonde.model.plan import read_plan_document
from sonde.model.system import System, read_system
from sonde.public.arguments import Texts, list_texts
from sonde.public.experiment_results import ExecutedExperiment, make_executed_experiment
from sonde.public.measuring import ArchiveSource, PlanSource, open_archive_folder, show_progress

DirectorySource = str | Path | Mapping[str, str | Path] | None


def run_experiment(
    experiment: PlanSource,
    *,
    on: DirectorySource = None,
    pools: Mapping[str, Sequence[str | Path]] | None = None,
    profile: str = "",
    settings: Texts = (),
    sweeps: Texts = (),
    repeat: int | None = None,
    warmup: int | None = None,
    launcher: str = "",
    launcher_args: str = "",
    system: str | Path | None = None,
    simulated: bool = False,
    faults: Texts = (),
    archive: ArchiveSource = None,
    group: str = "",
    resume: bool = False,
    tags: Texts = (),
    note: str = "",
    progress: bool = False,
) -> ExecutedExperiment:
    """Runs an experiment, or a plan several times, and returns medians and verdicts, as `sonde run` does.

    `experiment` is a file, the name of a shipped one, or the document itself. `on` is a directory, or directories
    by the names that the experiment uses. `sweeps` are texts like "data.access.transfer=4KiB,1MiB". With `simulated`
    it runs on the model of `system`, with `faults` as for `simulate`, and `on` and `pools` are not needed. `resume`
    continues the last run of the same experiment; so does the name of its `group`.

    Raises UserError for bad input, if nothing could be run, or if a run failed; finished runs are stored. A claim that
    fails raises nothing: see `failed_claims`.
    """
    labels = RunLabels(group, list_texts(tags), note)
    folder = open_archive_folder(archive)
    if faults and not simulated:
        raise UserError("Faults belong to a model; give simulated=True and a system.")
    with _choose_storage(simulated, system, list_texts(faults), on, pools, launcher, launcher_args) as (
        locations,
        create_executor,
    ):
        document, origin = _read_experiment_source(experiment)
        if document.get("schema") != EXPERIMENT_FORMAT:  # the plan gets its settings and directory, as in `sonde run`
            plan = load_plan(origin, list(list_texts(settings)), locations.default or None, dict(document))
            document, settings, locations = build_experiment_from_plan(plan), (), replace(locations, default="")
        described = make_experiment(apply_command_line(document, repeat, warmup, None, list_texts(sweeps)), origin)
        request = create_request(
            described, profile, list_texts(settings), locations, labels.group, labels.tags, labels.note
        )
        request = resume_request(folder, request, resume)
        with show_progress(progress) as display:
            done = run_experiment_request(request, folder, display, create_executor=create_executor)
    if done.outcome.exit_code != EXIT_OK:
        raise make_engine_failure(done.outcome.exit_code, describe_failure(done))
    return make_executed_experiment(done)


def _read_experiment_source(source: PlanSource) -> tuple[Mapping[str, Any], str]:
    """Returns the document of an experiment or plan, and its origin for messages."""
    if isinstance(source, Mapping):
        return dict(source), "document"
    origin = resolve_plan_source(str(source))
    return read_plan_document(origin), origin


@contextmanager
def _choose_storage(
    simulated: bool,
    system: str | Path | None,
    faults: Sequence[str],
    on: DirectorySource,
    pools: Mapping[str, Sequence[str | Path]] | None,
    launcher: str,
    launcher_args: str,
) -> Iterator[tuple[RunLocations, ExecutorFactory | None]]:
    """Yields the locations, and what creates the executor on a model; None on this machine. Raises UserError."""
    name = "" if system is None else str(system)
    if not simulated:
        yield _read_locations(on, pools, name, launcher, launcher_args), None
        return
    if not name:
        raise UserError("Say which machine to simulate: system=FILE or the name of a shipped one.")
    machine: System = read_system(find_system_file(name))
    with prepare_simulation(machine, "", faults, 1, None, None) as simulator:
        # Every cell is on a part of the machine; nothing is ever written here.
        storage = simulator.system.with_name("storage")
        storage.mkdir()

        def create_executor(setup: RunSetup, line: LineObserver, on_begin: Any) -> SimulatedExecutor:
            return SimulatedExecutor(setup, line, simulator, machine, on_begin)

        yield RunLocations(str(storage), system=name), create_executor


def _read_locations(
    on: DirectorySource,
    pools: Mapping[str, Sequence[str | Path]] | None,
    system: str,
    launcher: str,
    launcher_args: str,
) -> RunLocations:
    directories = dict(on) if isinstance(on, Mapping) else {}
    default = "" if on is None or isinstance(on, Mapping) else _convert_to_absolute_path(on)
    return RunLocations(
        default,
        {name: _convert_to_absolute_path(directory) for name, directory in directories.items()},
        {name: tuple(map(_convert_to_absolute_path, choices)) for name, choices in (pools or {}).items()},
        system,
        launcher,
        launcher_args,
    )


def _convert_to_absolute_path(directory: str | Path) -> str:
    return str(require_existing_directory(str(directory)).absolute())
