# SPDX-License-Identifier: Apache-2.0
"""Runs an experiment: every cell as often as its repeat rules require, in random order.

The archive holds the only state. Each run is stored atomically with its cell and repeat number, so the runner may be
killed at any moment: a later session runs only what is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sonde.conduct.run import RunResult
from sonde.experiments.cells import PreparedCell, prepare_cells
from sonde.experiments.environment_setup import EnvironmentSetup
from sonde.experiments.executor import Executor, RunAttempt
from sonde.experiments.forecast import Forecast, choose_exit_code_of_refusals
from sonde.experiments.medians import iterate_measured_phases
from sonde.experiments.request import ExperimentRequest
from sonde.experiments.results import RunPlacement, find_placement, hash_experiment
from sonde.experiments.schedule import RatesByPhase, Schedule, ScheduledRun
from sonde.model.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_MISMATCH, EXIT_OK, StoppedError, UserError
from sonde.model.experiment.description import Variant
from sonde.model.units import format_seconds
from sonde.store.archive import Archive
from sonde.store.groups import locate_group_folder, write_group_request
from sonde.store.summary import Summary, read_summary
from sonde.store.tags import change_tags


@dataclass
class RunnerObserver:
    """Callbacks of the runner; each may be replaced."""

    on_seed: Callable[[int], None] = lambda seed: None
    on_begin: Callable[[ScheduledRun, int, int, float | None], None] = lambda turn, number, count, seconds: None
    on_done: Callable[[ScheduledRun, RunResult], None] = lambda turn, result: None
    on_message: Callable[[str], None] = lambda text: None


@dataclass
class RunnerOutcome:
    """How the session ended. The results are in the archive."""

    group: str
    runs: int = 0  # successful runs of this session
    refusals: dict[str, str] = field(default_factory=dict)  # cell id -> reason
    refusal_codes: dict[str, int] = field(default_factory=dict)  # cell id -> exit code of the refusal
    failures: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    exit_code: int = EXIT_OK


@dataclass
class _CellState:
    """The finished repeats of a cell."""

    rates: dict[int, RatesByPhase] = field(default_factory=dict)  # by repeat
    warm_ups: set[int] = field(default_factory=set)
    seconds: list[float] = field(default_factory=list)

    def has_run(self, scheduled_run: ScheduledRun) -> bool:
        return scheduled_run.repeat in (self.warm_ups if scheduled_run.warm_up else self.rates)


class ExperimentRunner:
    """Runs the experiment of one request."""

    def __init__(
        self,
        request: ExperimentRequest,
        archive: Archive,
        executor: Executor,
        observer: RunnerObserver,
        time_limit: float | None = None,
    ) -> None:
        """`time_limit`: a run begins only if it will probably finish before this time (seconds of time.time()); None:
        no limit."""
        self._request, self._archive = request, archive
        self._time_limit = time_limit
        self._executor, self._observer = executor, observer
        self._hash = hash_experiment(request.experiment)
        self._cells: dict[str, _CellState] = {}
        self._number = 0
        self._outcome = RunnerOutcome(request.group)
        self._variants: Mapping[str, Variant] = {variant.id: variant for variant in request.experiment.file.variants}

    def prepare_cells(self) -> list[PreparedCell]:
        """Prepares all cells. Raises UserError for an unknown location name."""
        return prepare_cells(
            self._request.experiment, self._request.locations.load_directories_with_system(), self._request.group
        )

    def run_all_cells(
        self, prepared_cells: list[PreparedCell] | None = None, forecasts: Sequence[Forecast] = ()
    ) -> RunnerOutcome:
        """Blocks until all cells have enough repeats or a signal stops the session. Cells whose forecast has a refusal
        are not run. Raises UserError for an unknown location name.
        """
        experiment = self._request.experiment
        prepared_cells = self.prepare_cells() if prepared_cells is None else prepared_cells
        for cell, refusal, code in (
            *((cell_plan.cell.id, cell_plan.refusal, cell_plan.exit_code) for cell_plan in prepared_cells),
            *((cell_plan.cell_id, cell_plan.refusal, cell_plan.exit_code) for cell_plan in forecasts),
        ):
            if refusal:
                self._outcome.refusals[cell], self._outcome.refusal_codes[cell] = refusal, code
        ready = {
            cell_plan.cell.id: cell_plan
            for cell_plan in prepared_cells
            if cell_plan.cell.id not in self._outcome.refusals
        }
        self._load_earlier_runs()
        self._save_request_and_refusals(prepared_cells)
        self._observer.on_seed(self._request.seed)
        schedule = Schedule(
            [cell_plan.cell for cell_plan in ready.values()],
            self._request.repeat_rules,
            self._request.seed,
            lambda cell: self._get_cell_state(cell).rates,
            lambda cell: cell in self._outcome.refusals or cell in self._outcome.failures,
        )
        folder = locate_group_folder(self._archive.root, self._request.group)
        # Treatments and commands of variants change this machine, which a simulated run does not use.
        treatments = () if self._executor.simulated else experiment.file.treatments
        environment = EnvironmentSetup(treatments, folder, self._observer.on_message)
        try:
            with environment:
                self._run_schedule(schedule, ready, environment)
        except (StoppedError, KeyboardInterrupt):
            self._outcome.exit_code = EXIT_INTERRUPTED
        finally:
            self._save_request_and_refusals(prepared_cells)
            for cell_plan in ready.values():
                cell_plan.remove_shared_directories()
        self._outcome.messages += environment.problems
        self._set_exit_code(ready)
        return self._outcome

    def _run_schedule(
        self, schedule: Schedule, prepared_cells: Mapping[str, PreparedCell], environment: EnvironmentSetup
    ) -> None:
        cooldown = self._request.repeat_rules.cooldown
        for turn in schedule.iterate_runs():
            if self._get_cell_state(turn.cell.id).has_run(turn):
                continue
            if not self._fits_time_limit(turn, cooldown or 0.0):
                raise StoppedError("")
            if cooldown and self._outcome.runs:
                time.sleep(cooldown)
            self._run_scheduled_run(turn, prepared_cells[turn.cell.id], schedule, environment)
            if self._executor.stopped:
                raise StoppedError("")

    def _fits_time_limit(self, scheduled_run: ScheduledRun, cooldown_s: float) -> bool:
        """Returns whether a run fits before the time limit, judged by the longest run of its cell, or of all cells if
        the cell has none. A first run is always tried."""
        if self._time_limit is None:
            return True
        durations = self._get_cell_state(scheduled_run.cell.id).seconds or [
            duration for state in self._cells.values() for duration in state.seconds
        ]
        remaining_s = self._time_limit - time.time()
        if not durations or max(durations) + cooldown_s <= remaining_s:
            return True
        self._outcome.messages.append(
            f"{scheduled_run.cell.id} takes about {format_seconds(max(durations))}, and the job ends in"
            f" {format_seconds(max(remaining_s, 0.0))}: it is left to the next one."
        )
        return False

    def _run_scheduled_run(
        self,
        scheduled_run: ScheduledRun,
        prepared_cell: PreparedCell,
        schedule: Schedule,
        environment: EnvironmentSetup,
    ) -> None:
        variant = self._variants.get(str(scheduled_run.cell.coordinates.get("variant", "")))
        number, count, remaining_s = self._compute_progress(schedule)
        self._observer.on_begin(scheduled_run, number, count, remaining_s)
        began = time.monotonic()
        try:
            if not self._executor.simulated:
                environment.prepare_run(scheduled_run.cell.id, variant, prepared_cell.directory)
            result = self._executor.execute(
                RunAttempt(
                    prepared_cell.plan,
                    self._request.experiment.id,
                    self._make_run_facts(scheduled_run),
                    prepared_cell.clients,
                    variant,
                    self._request.experiment.resolve_storage(scheduled_run.cell),
                    self._request.experiment.find_swept_paths(),
                )
            )
        except StoppedError:
            raise
        except UserError as reason:
            if self._executor.stopped:
                raise StoppedError("") from None
            # A cell that cannot be run must not stop the others.
            refusal = str(reason).removeprefix(f"{prepared_cell.plan.origin}: ")
            self._outcome.refusals[scheduled_run.cell.id], self._outcome.refusal_codes[scheduled_run.cell.id] = (
                refusal,
                reason.exit_code,
            )
            self._observer.on_message(f"{scheduled_run.cell.id} is not run: {refusal}")
            return
        finally:
            environment.undo_changes_for_run()
        self._number += 1
        if self._request.tags:
            change_tags(result.folder, added_tags=self._request.tags)
        if result.exit_code == EXIT_OK:
            self._outcome.runs += 1
            self._record_run(read_summary(result.folder), time.monotonic() - began)
        elif not self._executor.stopped:
            self._outcome.failures[scheduled_run.cell.id] = result.text
            self._observer.on_message(f"{scheduled_run.cell.id} is not run again: {result.text}")
            if result.exit_code == EXIT_MISMATCH:
                self._outcome.exit_code = EXIT_MISMATCH
        self._observer.on_done(scheduled_run, result)

    def _make_run_facts(self, scheduled_run: ScheduledRun) -> dict[str, Any]:
        cell, request = scheduled_run.cell, self._request
        variant = str(cell.coordinates.get("variant", ""))
        placement = RunPlacement(
            request.experiment.id,
            self._hash,
            cell.id,
            cell.coordinates,
            cell.plan,
            variant,
            scheduled_run.repeat,
            scheduled_run.warm_up,
            request.profile,
            request.seed,
            self._number,
            self._executor.simulated,
        )
        note = {"note": request.note} if request.note else {}
        role = "calibration" if scheduled_run.warm_up else "run"
        return {"group": request.group, "role": role, **note, **placement.to_facts()}

    def _get_cell_state(self, cell_id: str) -> _CellState:
        return self._cells.setdefault(cell_id, _CellState())

    def _load_earlier_runs(self) -> None:
        """Loads the runs of earlier sessions from the archive."""
        if not self._request.stored:
            return
        from sonde.store.names import find_folders_of_group  # pyarrow takes long to import

        for folder in find_folders_of_group(self._archive.root, self._request.group):
            self._record_run(read_summary(folder))

    def _record_run(self, run_summary: Summary, total_seconds: float | None = None) -> None:
        """Records a run. `total_seconds` includes preparation and undo; None for runs of earlier sessions."""
        placement = find_placement(run_summary)
        if placement is None:
            return
        self._number = max(self._number, int(placement["number"]) + 1)
        if run_summary.status != "done":
            return
        state = self._get_cell_state(str(placement["cell"]))
        state.seconds.append(total_seconds if total_seconds is not None else run_summary.seconds or 0.0)
        if placement["warm_up"]:
            state.warm_ups.add(int(placement["repeat"]))
        else:
            state.rates[int(placement["repeat"])] = {
                phase: rate for phase, _, rate in iterate_measured_phases(run_summary)
            }

    def _compute_progress(self, schedule: Schedule) -> tuple[int, int, float | None]:
        """Returns the number of the run that begins, the expected number of runs, and the estimated remaining
        seconds."""
        cooldown = self._request.repeat_rules.cooldown or 0.0
        durations = [second for state in self._cells.values() for second in state.seconds]
        mean_duration = sum(durations) / len(durations) if durations else None
        done = count = 0
        remaining_s: float | None = 0.0
        for cell in schedule.cells:
            state = self._get_cell_state(cell.id)
            finished = len(state.rates) + len(state.warm_ups)
            done += finished
            if cell.id in self._outcome.refusals or cell.id in self._outcome.failures:
                count += finished
                continue
            expected_runs = max(finished, schedule.estimate_repeats(cell) + self._request.repeat_rules.warmup)
            count += expected_runs
            seconds_per_run = sum(state.seconds) / len(state.seconds) if state.seconds else mean_duration
            remaining_s = (
                None
                if remaining_s is None or seconds_per_run is None
                else remaining_s + (expected_runs - finished) * (seconds_per_run + cooldown)
            )
        return done + 1, max(count, done + 1), remaining_s

    def _save_request_and_refusals(self, prepared_cells: list[PreparedCell]) -> None:
        """Stores the request and the refused cells: once at the start, in case of a crash, and once at the end."""
        write_group_request(
            self._archive.root,
            self._request.group,
            {
                **self._request.to_json(),
                "simulated": self._executor.simulated,
                "directories": {
                    prepared_cell.cell.id: ", ".join(prepared_cell.measured_directories)
                    for prepared_cell in prepared_cells
                    if prepared_cell.directory
                },
                "refusals": self._outcome.refusals,
            },
        )

    def _set_exit_code(self, prepared_cells: Mapping[str, PreparedCell]) -> None:
        ended = self._outcome
        if ended.exit_code != EXIT_OK:
            return
        if ended.failures:
            ended.exit_code = EXIT_FAILED
        elif not any(self._get_cell_state(cell).rates for cell in prepared_cells):
            ended.exit_code = choose_exit_code_of_refusals(ended.refusal_codes.values())
