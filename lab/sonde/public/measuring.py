# SPDX-License-Identifier: Apache-2.0
"""Public functions that measure: run a plan, check a directory, simulate a plan."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sonde.conduct.run import RunResult, RunSetup, make_engine_failure
from sonde.experiments.check.check import CheckObserver, FileSystemCheck, store_check_result
from sonde.experiments.locations import require_existing_directory
from sonde.experiments.plan_loading import divide_tasks_into_processes, load_plan
from sonde.experiments.shipped_experiments import resolve_plan_source
from sonde.experiments.single_run import (
    RunLabels,
    load_simulated_plan,
    prepare_simulation,
    run_plan_once,
    simulate_plan_once,
)
from sonde.launch.engine import find_engine
from sonde.launch.launchers.list import LOCAL, make_launcher
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import EXIT_OK, UserError
from sonde.model.experiment.description import EXPERIMENT_FORMAT
from sonde.model.plan import read_plan_document
from sonde.model.system import read_system
from sonde.public.archive import ArchiveReader
from sonde.public.arguments import Texts, list_texts, require_range
from sonde.public.runs import Run, load_run
from sonde.public.tables import Rows
from sonde.store.archive import Archive

if TYPE_CHECKING:
    from sonde.terminal.run_display import Display

PlanSource = str | Path | Mapping[str, Any]
ArchiveSource = str | Path | ArchiveReader | None


def run(
    plan: PlanSource,
    *,
    on: str | Path | None = None,
    settings: Texts = (),
    tasks: int | None = None,
    processes: int | None = None,
    launcher: str = LOCAL,
    launcher_args: str = "",
    system: str | Path | None = None,
    archive: ArchiveSource = None,
    group: str = "",
    tags: Texts = (),
    note: str = "",
    progress: bool = False,
) -> Run:
    """Runs a plan once, stores the run and returns it, as `sonde run` does.

    `plan` is a file, the name of a shipped plan, or the document itself. `on` replaces its target directory, and
    each text of `settings` changes one member, like "data.access.transfer=4KiB". The archive is created if it is not
    there. `progress` prints to standard error. Blocks until the run has ended; an interrupt ends it in good order.

    Raises UserError if the plan is wrong, if nothing could be measured, or if the run failed; a failed run is stored.
    """
    name, document = _read_plan_document(plan)
    if processes is not None:
        require_range("processes", processes, 1, 65536)
    loaded = load_plan(name, list(list_texts(settings)), None if on is None else str(on), document)
    loaded, ranks = divide_tasks_into_processes(loaded, launcher, tasks, processes)
    labels = RunLabels(group, list_texts(tags), note)
    described = read_system(find_system_file(str(system))) if system else None
    folder = open_archive_folder(archive)
    with show_progress(progress) as display:
        setup = RunSetup(
            find_engine(),
            folder,
            make_launcher(launcher, ranks, launcher_args),
            on_stop=display.report_stop_signal,
            system=described,
        )
        folder.recover_unfinished_runs()
        display.begin_run(loaded.title, 1, 1, loaded)
        result = run_plan_once(loaded, setup, display.show_record_line, labels)
    return _require_successful_run(result)


def simulate(
    plan: PlanSource,
    system: str | Path,
    *,
    mount: str = "",
    faults: Texts = (),
    seed: int = 1,
    nodes: int | None = None,
    tasks: int | None = None,
    settings: Texts = (),
    archive: ArchiveSource = None,
    group: str = "",
    tags: Texts = (),
    progress: bool = False,
) -> Run:
    """Runs a plan once on a model of a machine, in virtual time, as `sonde simulate` does.

    `system` is a system file or the name of a shipped one. `faults` are texts like "slow-target 3 10x". The run is
    marked as simulated. Raises UserError like `run`.
    """
    require_range("seed", seed, 0, 2**62)
    for argument, number in (("nodes", nodes), ("tasks", tasks)):
        if number is not None:
            require_range(argument, number, 1, 10_000_000)
    machine = read_system(find_system_file(str(system)))
    name, document = _read_plan_document(plan)
    loaded = load_simulated_plan(name, list(list_texts(settings)), document, machine, mount, tasks)
    labels = RunLabels(group, list_texts(tags))
    folder = open_archive_folder(archive)
    with (
        show_progress(progress) as display,
        prepare_simulation(machine, mount, list_texts(faults), seed, nodes, tasks) as launcher,
    ):
        setup = RunSetup(find_engine(), folder, on_stop=display.report_stop_signal, system=machine)
        display.begin_run(loaded.title, 1, 1, loaded)
        result = simulate_plan_once(loaded, setup, display.show_record_line, launcher, labels)
    return _require_successful_run(result)


@dataclass(frozen=True)
class Figure:
    """One number of a check, with what it is about and how far to trust it."""

    key: str
    section: str
    label: str
    unit: str
    """bytes_per_s, ops_per_s or files_per_s."""
    value: float | None
    classification: str
    classification_text: str
    validity: str
    """good, doubtful or invalid."""
    tasks: int
    p50_ns: float | None
    p99_ns: float | None
    run: str
    phase: str


class Figures(Rows[Figure]):
    """The numbers of a check as a sequence."""

    _kinds: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("key", "section", "label", "unit"), "text"),
        "value": "float",
        **dict.fromkeys(("classification", "classification_text", "validity"), "text"),
        "tasks": "int",
        "p50_ns": "float",
        "p99_ns": "float",
        "run": "text",
        "phase": "text",
    }


@dataclass(frozen=True)
class Check:
    """The result of a check of a directory."""

    target: Path
    headline: str
    """The best numbers and their caveats in a sentence."""
    figures: Figures
    runs: tuple[Run, ...] = field(repr=False)
    notes: tuple[str, ...]
    document: Mapping[str, Any] = field(repr=False)
    """What `sonde check --json` prints."""

    def _repr_html_(self) -> str:
        """The report of the check, for notebooks."""
        from sonde.public.drawing import render_report_of_runs

        return render_report_of_runs([run.folder for run in self.runs], f"Check of {self.target}")

    def figure(self, key: str) -> Figure:
        """The number of that key. Raises UserError when there is none."""
        for figure in self.figures:
            if figure.key == key:
                return figure
        there = ", ".join(figure.key for figure in self.figures) or "none"
        raise UserError(f'The check has no figure "{key}"; its figures are {there}.')


def check(directory: str | Path, *, full: bool = False, archive: ArchiveSource = None, progress: bool = False) -> Check:
    """Measures the file system of a directory in about a minute, as `sonde check` does; `full` takes longer.

    Raises UserError if the directory is not there, if nothing could be measured, or if a part failed; what was measured
    is stored.
    """
    target = require_existing_directory(str(directory))
    folder = open_archive_folder(archive)
    with show_progress(progress) as display:
        setup = RunSetup(find_engine(), folder, on_stop=display.report_stop_signal)
        folder.recover_unfinished_runs()
        observer = CheckObserver(on_part=_make_part_observer(display), on_line=display.show_record_line)
        result = FileSystemCheck(target, setup, full, observer).measure_all_parts()
    store_check_result(result, folder)
    if result.exit_code != EXIT_OK:
        reason = next((item.text for item in result.runs if item.exit_code != EXIT_OK), "")
        raise make_engine_failure(result.exit_code, reason or "A part of the check failed or was interrupted.")
    figures = [
        Figure(
            **{name: getattr(item, name) for name in ("key", "section", "label", "unit", "value", "validity")},
            **{name: getattr(item, name) for name in ("tasks", "p50_ns", "p99_ns", "run", "phase")},
            classification=item.classification.value,
            classification_text=item.classification_clause,
        )
        for item in result.figures
    ]
    runs = tuple(load_run(item.folder) for item in result.runs)
    return Check(target, result.headline, Figures(figures), runs, tuple(result.notes), result.to_json())


def _make_part_observer(display: Display) -> Any:
    def begin_part(part_title: str, part_number: int, part_count: int, plan: Any) -> None:
        if part_count:
            display.set_run_position(part_number, part_count, None)
        display.begin_run(part_title, part_number, part_count, plan)

    return begin_part


@contextmanager
def show_progress(is_shown: bool) -> Iterator[Display]:
    """Yields a display on standard error, or one that shows nothing."""
    from sonde.terminal.run_display import make_display
    from sonde.terminal.screen import get_messages_console

    display = make_display(get_messages_console(), not is_shown)
    try:
        yield display
    finally:
        display.end_display()


def _read_plan_document(plan: PlanSource) -> tuple[str, dict[str, Any]]:
    """Returns a name for messages, and the document. Raises UserError, also for an experiment."""
    if isinstance(plan, Mapping):
        name, document = "plan", copy.deepcopy(dict(plan))
    else:
        name = str(plan)
        document = read_plan_document(resolve_plan_source(name))
    if document.get("schema") == EXPERIMENT_FORMAT:
        raise UserError(f"{name} is an experiment, and this runs a plan; `sonde.run_experiment` runs experiments.")
    return name, document


def open_archive_folder(archive: ArchiveSource) -> Archive:
    """Returns the archive that a call stores into; None means that of the environment."""
    root = archive.root if isinstance(archive, ArchiveReader) else archive
    return Archive.from_option(None if root is None else str(root))


def _require_successful_run(run_result: RunResult) -> Run:
    if run_result.exit_code != EXIT_OK:
        raise make_engine_failure(run_result.exit_code, run_result.text)
    return load_run(run_result.folder)
