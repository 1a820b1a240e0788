# SPDX-License-Identifier: Apache-2.0
"""Runs IO500: each phase is a run of the engine, by IO500's rules and with its result files."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sonde.conduct.run import RunResult, RunSetup, conduct_run
from sonde.conduct.tool_run import ToolCommand, conduct_tool_run, resolve_plans_of_tool
from sonde.dialects.io500 import data, search
from sonde.dialects.io500.command_lines import (
    DEFAULT_OBJECTS,
    SETS_PER_TASK,
    RunDirectories,
    get_stonewall_seconds,
    is_phase_enabled,
    make_phase_command_line,
    uses_several_directories,
)
from sonde.dialects.io500.figures import (
    PhaseFigures,
    compute_ior_figures,
    compute_mdtest_figures,
    compute_mdworkbench_figures,
    find_figures,
    find_table,
)
from sonde.dialects.io500.ini import Config, format_settings
from sonde.dialects.io500.phases import Io500Phase, list_phases
from sonde.dialects.io500.result_file import ResultFile, format_local_time
from sonde.dialects.io500.rules import Rules
from sonde.dialects.io500.score import Score, compute_score, hash_score
from sonde.model.confined_files import create_file
from sonde.model.errors import EXIT_INTERRUPTED, EXIT_MISMATCH, EXIT_OK, StoppedError, UserError
from sonde.model.lines import RecordLine
from sonde.model.plan import Plan
from sonde.model.units import format_wait


class BenchmarkView(Protocol):
    """The display of a running benchmark."""

    def begin(self, title: str, number: int, count: int, plan: Plan) -> None:
        """A phase starts."""

    def line(self, kind: str, line: RecordLine) -> None:
        """A line of its record."""

    def close(self) -> None:
        """Closes the display."""

    def show(self, text: str) -> None:
        """A line of the official output."""

    def say(self, text: str) -> None:
        """Prints a message of Sonde."""


# Tools of phases, and the engine's names of them.
_TOOLS = {"ior": "ior", "mdtest": "mdtest", "mdworkbench": "md-workbench"}


@dataclass(frozen=True)
class BenchmarkRequest:
    """A request to run the benchmark.

    `setup` returns the run setup for a number of tasks; `version` is for the result.
    """

    config: Config
    places: RunDirectories
    tasks: int
    setup: Callable[[int], RunSetup]
    version: str
    group: str
    has_launcher: bool = False  # a launcher starts the processes
    extended: bool = False
    dry_run: bool = False
    cleanup: bool = False


@dataclass
class PhaseRow:
    """One phase that was run. `valid`: whether it follows the rules."""

    phase: Io500Phase
    figures: PhaseFigures = field(default_factory=PhaseFigures)
    seconds: float = 0.0
    valid: bool = True
    broken: list[str] = field(default_factory=list)  # texts of IO500 on broken rules
    run: RunResult | None = None


@dataclass(frozen=True)
class BenchmarkResult:
    """The result of a benchmark. `exit_code` and `text` are as for a run; a broken rule is no failure."""

    rows: Sequence[PhaseRow]
    score: Score
    valid: bool
    exit_code: int
    text: str
    remaining: Sequence[str]  # names in the data directory that were not removed
    broken: Sequence[str] = ()  # rules that the settings or the complete run broke


class Io500Benchmark:
    """Runs one request. Raises UserError before any file is created if the request is invalid."""

    def __init__(self, order: BenchmarkRequest, view: BenchmarkView) -> None:
        self._request = order
        self._view = view
        self._phases = list_phases(order.extended, order.cleanup)
        self._rules = Rules(order.config)
        self._rows: list[PhaseRow] = []
        self._broken: list[str] = []
        self._worst, self._text = EXIT_OK, ""
        self._objects = DEFAULT_OBJECTS  # of md-workbench
        self._check_settings()

    def run(self) -> BenchmarkResult:
        """Runs all phases until the end or an interruption; finished phases count."""
        order = self._request
        # A cleanup does not change the results of its run.
        folder = Path(order.places.results, *(["cleanup"] if order.cleanup else []))
        if not order.dry_run:
            data.make_folders(order.places)
        try:
            self._result_file = ResultFile(folder, self._view.show, order.config.number("global", "verbosity") or 0)
        except UserError:
            data.remove_data(order.places)
            raise
        try:
            self._write_head()
            try:
                self._run_phases()
            except (KeyboardInterrupt, StoppedError):
                self._note_stop()
            finally:
                self._view.close()
            return self._write_tail()
        finally:
            self._result_file.close()

    # Before

    def _check_settings(self) -> None:
        """Raises UserError for invalid settings of any phase before the first phase begins."""
        order = self._request
        order.setup(order.tasks)  # there is such a launcher
        for phase in self._phases:
            if not self._is_enabled(phase):
                continue
            if phase.tool in _TOOLS:
                self._translate_phase(phase)
            script = order.config.text(phase.name, "external-script") if phase.tool == "find" else None
            if script:
                search.check_script(script)
            tasks = (order.config.number(phase.name, "nproc") or 0) if phase.tool == "find" else 0
            if tasks > order.tasks:
                raise UserError(f"[{phase.name}] nproc is {tasks}, but there are {order.tasks} tasks.")
        if not order.dry_run and not order.cleanup:
            data.require_no_data(order.places)

    def _is_enabled(self, phase: Io500Phase) -> bool:
        """Returns whether the settings enable the phase and, in a cleanup, whether it has data to remove."""
        has_data = not self._request.cleanup or (Path(self._request.places.data) / phase.part).is_dir()
        return has_data and is_phase_enabled(phase, self._request.config)

    def _make_command_line(self, phase: Io500Phase) -> ToolCommand:
        order = self._request
        arguments = make_phase_command_line(phase, order.config, order.places, self._objects)[1:]
        return ToolCommand(
            _TOOLS[phase.tool], tuple(arguments), order.tasks, f"io500-{phase.name}", f"IO500 {phase.name}", order.group
        )

    def _translate_phase(self, phase: Io500Phase) -> list[Plan]:
        try:
            return resolve_plans_of_tool(self._make_command_line(phase), self._request.setup(self._request.tasks))
        except UserError as reason:
            raise type(reason)(f"IO500 {phase.name}: {reason}") from None

    def _write_head(self) -> None:
        order, paper = self._request, self._result_file
        paper.file("config-orig.ini", order.config.source)
        paper.file("config.ini", format_settings(order.config, about=False))
        mode = "extended" if order.extended else "standard"
        paper.line("[run]")
        paper.pair("procs", str(order.tasks))
        paper.pair("version", order.version)
        paper.pair("config-hash", order.config.hash)
        paper.pair("result-dir", order.places.results)
        paper.pair("mode", mode)
        for text in self._rules.check_settings(order.dry_run):
            self._broken.append(text)
            paper.invalid(text)
        paper.note(f"START {format_local_time()}", 1)
        paper.summary(f"IO500 version {order.version} ({mode})")
        paper.line()

    # The phases

    def _run_phases(self) -> None:
        for number, phase in enumerate(self._phases, 1):
            self._drop_caches(phase)
            self._result_file.line(f"\n[{phase.name}]")
            self._wait_for_pause_file_removal(phase)
            self._result_file.pair("t_start", format_local_time(), 1)
            row = PhaseRow(phase)
            self._rows.append(row)
            began = time.monotonic()
            self._run_phase(row, number)
            if row.seconds == 0 and not self._request.dry_run:
                row.seconds = time.monotonic() - began
            self._apply_rules(row)
            if row.run is not None and row.run.exit_code == EXIT_INTERRUPTED:
                raise StoppedError(row.run.text)

    def _run_phase(self, row: PhaseRow, number: int) -> None:
        phase, order, paper = row.phase, self._request, self._result_file
        if phase.tool == "timestamp":
            stamp = Path(order.places.results) / "timestampfile"
            paper.pair("timestamp-file", str(stamp), 2)
            create_file(stamp).close()
            return
        if phase.tool == "mdworkbench":
            self._choose_objects(phase)
        command_line = make_phase_command_line(phase, order.config, order.places, self._objects)
        if phase.name == "mdtest-hard-write" and uses_several_directories(order.config):
            paper.warn(
                "stonewalling disabled in order to support -I option. Make sure your number of elements is big"
                " enough to meet the runtime limits!"
            )
        paper.pair("exe", " ".join(command_line))
        if order.dry_run:
            self._view.show(f"{phase.name}: {' '.join(command_line)}")
        if order.dry_run or not self._is_enabled(phase):
            return
        try:
            if phase.tool == "find":
                self._run_search(row, number, " ".join(command_line))
            else:
                self._run_tool(row, number)
        except StoppedError:
            raise
        except UserError as reason:
            row.valid = False
            self._note_failure(reason.exit_code, f"{phase.name}: {reason}")

    def _choose_objects(self, phase: Io500Phase) -> None:
        """Chooses the number of md-workbench objects if the settings lack it: what mdtest would create until the
        stonewall at the lower of its two rates, divided by the sets of all tasks."""
        order, config = self._request, self._request.config
        if config.number("mdworkbench", "filesPerProc") is None and phase.name.endswith("create"):
            creating_phases = ("mdtest-easy-write", "mdtest-hard-write")
            rates = [
                row.figures.value for row in self._rows if row.phase.name in creating_phases and row.figures.value > 0
            ]
            if rates:
                sets = order.tasks * SETS_PER_TASK
                self._objects = max(1, int(min(rates) * 1000 * get_stonewall_seconds(config) / sets))
            else:
                self._result_file.warn(
                    "MDWorkbench uses the MDTest rates to determine suitable options but MDTest didn't run, will use"
                    " a low (and sane) default instead"
                )
        for key in ("filesPerProc", "precreatePerSet"):
            self._result_file.pair(key, str(config.number("mdworkbench", key) or self._objects))

    def _run_tool(self, row: PhaseRow, number: int) -> None:
        phase, order, paper = row.phase, self._request, self._result_file
        setup, line = order.setup(order.tasks), self._make_command_line(phase)
        plans = self._translate_phase(phase)
        paper.pair("result-file", f"{order.places.results}/{phase.name}.txt", 2)
        self._view.begin(self._make_title(phase), number, len(self._phases), plans[0])
        result = conduct_tool_run(line, plans, setup, self._view.line)
        self._view.close()
        paper.file(f"{phase.name}.txt", result.output + result.engine_messages)
        row.run = result.runs[0]
        self._record_end(row, result.exit_code, result.text)
        if result.exit_code in (EXIT_OK, EXIT_MISMATCH):  # part of a phase is no result
            records = [run.record for run in result.runs]
            row.figures = (
                compute_ior_figures(records[0])
                if phase.tool == "ior"
                else compute_mdtest_figures(records[0])
                if phase.tool == "mdtest"
                else compute_mdworkbench_figures(records)
            )
        if phase.tool == "mdtest":
            paper.pair("time", f"{row.figures.seconds:f}", 2)

    def _run_search(self, row: PhaseRow, number: int, command: str) -> None:
        phase, order, paper = row.phase, self._request, self._result_file
        tasks = order.config.number(phase.name, "nproc")
        if order.config.text(phase.name, "external-script"):
            if tasks is not None:
                paper.pair("nproc", str(tasks))
            row.figures, last_line = search.run_script(command, paper.warn)
            paper.pair("last-output", f'"{last_line}"')
        else:
            count = tasks or order.tasks
            paper.pair("nproc", str(count))
            plan = search.plan_of(phase, order.places, None if order.has_launcher else count)
            self._view.begin(self._make_title(phase), number, len(self._phases), plan)
            row.run = conduct_run(
                plan, order.setup(count), self._view.line, f"io500-{phase.name}", {"group": order.group}
            )
            self._view.close()
            self._record_end(row, row.run.exit_code, row.run.text)
            row.figures = find_figures(row.run.record) if row.run.exit_code == EXIT_OK else PhaseFigures()
            if row.figures.value > 0:
                paper.file(f"{phase.name}.csv", find_table(row.figures, row.run.record))

    def _record_end(self, row: PhaseRow, exit_code: int, text: str) -> None:
        """Records how the engine's run ended."""
        assert row.run is not None
        end = row.run.record.end
        row.seconds = (end.seconds if end else None) or 0.0
        if exit_code not in (EXIT_OK, EXIT_INTERRUPTED):
            row.valid = exit_code == EXIT_MISMATCH  # that one is counted, and judged by the rules
            self._note_failure(exit_code, f"{row.phase.name}: {text}")

    def _note_failure(self, exit_code: int, text: str) -> None:
        self._result_file.note(f"ERROR {text}")
        self._view.say(f"sonde: {text}")
        if self._worst == EXIT_OK and not self._request.cleanup:  # there, what is left counts
            self._worst, self._text = exit_code, text

    def _apply_rules(self, row: PhaseRow) -> None:
        """Applies the rules to a finished phase and writes its lines in the result."""
        phase, paper, order = row.phase, self._result_file, self._request
        ran = self._is_enabled(phase) and not order.dry_run and phase.is_measured
        if ran and row.run is not None and row.run.exit_code == EXIT_INTERRUPTED:
            row.valid = False
            row.broken.append("Interrupted")
            paper.invalid("Interrupted")
        elif phase.is_measured:
            for text in self._rules.check_phase(phase, row.figures, row.seconds, ran, order.dry_run):
                row.valid = False
                row.broken.append(text)
                paper.invalid(text)
        self._write_row(row, ran)

    def _write_row(self, row: PhaseRow, ran: bool) -> None:
        phase, paper, figures = row.phase, self._result_file, row.figures
        if ran and phase.tool == "ior" and phase.writes:
            paper.pair("accessed-pairs", str(figures.most_operations), 2)
            if figures.stonewall is not None:
                paper.pair("throughput-stonewall", f"{figures.stonewall:.2f}")
        elif ran and phase.tool == "mdtest" and phase.writes and figures.stonewall is not None:
            paper.pair("rate-stonewall", f"{figures.stonewall:f}")
        elif ran and phase.tool == "find" and figures.visited is not None:
            paper.pair("found", str(figures.matches))
            paper.pair("total-files", str(figures.visited))
        for text in figures.sentences:
            paper.note(f"sonde: {text}")
        if row.run is not None:
            for finding in row.run.record.all_findings:
                if finding.severity != "info":
                    paper.note(f"sonde: {finding.text}")
            paper.note(f"sonde: kept as {row.run.id}")
        if phase.is_measured:
            paper.pair("score", f"{figures.value:f}")
        paper.result(phase, figures.value, row.seconds, row.valid)
        paper.pair("t_delta", f"{row.seconds:.4f}", 1)
        paper.pair("t_end", format_local_time(), 1)

    def _make_title(self, phase: Io500Phase) -> str:
        return f"IO500 {phase.name}, about {format_wait(self._estimate_remaining_seconds())} in all to go"

    def _estimate_remaining_seconds(self) -> float:
        """Returns the expected seconds of the remaining phases: the stonewall for writes, the time of the write for
        reads, a tenth of that for searches."""
        wall = float(self._request.config.number("debug", "stonewall-time") or 0)
        took = {row.phase.part: row.seconds for row in self._rows if row.phase.writes and row.seconds > 0}
        seconds = 0.0
        for phase in self._phases[len(self._rows) - 1 :]:
            share = 0.1 if phase.tool == "find" else 1.0 if phase.is_measured else 0.0
            part = "mdtest-hard" if phase.tool == "find" else phase.part
            at_wall = phase.writes or phase.name == "ior-rnd4K-easy-read"
            seconds += wall if at_wall else share * took.get(part, wall)
        return seconds

    def _drop_caches(self, phase: Io500Phase) -> None:
        config = self._request.config
        if not config.flag("global", "drop-caches") or not phase.is_measured:
            return
        command = ["sh", "-c", config.required_text("global", "drop-caches-cmd")]
        if self._request.has_launcher:
            command = self._request.setup(self._request.tasks).launcher.make_command_line(command)
        code = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode
        if code != 0:
            self._result_file.warn(f'Calling "{config.required_text("global", "drop-caches-cmd")}" returned {code}')

    def _wait_for_pause_file_removal(self, phase: Io500Phase) -> None:
        folder = self._request.config.text("debug", "pause-dir")
        if folder is None:
            return
        self._result_file.pair("t_pause", format_local_time(), 1)
        self._result_file.note(f"Checking for pause file {folder}/{phase.name}")
        is_announced = False
        while (Path(folder) / phase.name).exists():
            if not is_announced:
                self._view.say(f"Waiting until {folder}/{phase.name} is removed")
                is_announced = True
            time.sleep(0.2)

    # Afterwards

    def _note_stop(self) -> None:
        self._worst, self._text = EXIT_INTERRUPTED, "Interrupted; finished phases are stored."
        self._rules.run_is_valid = False
        self._broken.append("Interrupted")
        self._result_file.note("ERROR INVALID interrupted")

    def _write_tail(self) -> BenchmarkResult:
        order, paper = self._request, self._result_file
        results = [(row.phase, row.figures.value) for row in self._rows]
        standard = [row.valid for row in self._rows if not row.phase.extra]
        valid = self._rules.run_is_valid and all(standard)
        score = compute_score(results)
        paper.score("SCORE", score, valid, hash_score(score, results, valid, order.version))
        if order.extended:
            extended_score, is_valid_extended = (
                compute_score(results, extended=True),
                valid and all(row.valid for row in self._rows),
            )
            paper.score(
                "SCOREX",
                extended_score,
                is_valid_extended,
                hash_score(extended_score, results, is_valid_extended, None),
            )
        self._view.show(f"\nThe result files are stored in the directory: {order.places.results}")
        remaining_names: list[str] = []
        if not order.dry_run:
            try:
                remaining_names = data.remove_data(order.places)
            except KeyboardInterrupt:
                remaining_names = [order.places.data]
        paper.note(f"END {format_local_time()}", 1)
        return BenchmarkResult(self._rows, score, valid, self._worst, self._text, remaining_names, self._broken)
