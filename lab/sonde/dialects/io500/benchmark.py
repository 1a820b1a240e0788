# SPDX-License-Identifier: Apache-2.0
"""Runs IO500: each phase is a run of the engine, by IO500's rules and with its result files."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from sonde.conduct.run import conduct_run
from sonde.conduct.tool_run import ToolCommand, conduct_tool_run, resolve_plans_of_tool
from sonde.dialects.io500 import data, search
from sonde.dialects.io500.benchmark_interface import BenchmarkRequest, BenchmarkResult, BenchmarkView, PhaseRow
from sonde.dialects.io500.command_lines import (
    DEFAULT_OBJECT_COUNT,
    SETS_PER_TASK,
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
    compute_search_figures,
    make_search_table,
)
from sonde.dialects.io500.ini import format_settings_as_ini
from sonde.dialects.io500.phases import Io500Phase, list_io500_phases
from sonde.dialects.io500.result_file import ResultFile, format_local_time
from sonde.dialects.io500.rules import Io500Rules
from sonde.dialects.io500.score import compute_score, hash_score
from sonde.model.confined_files import create_file
from sonde.model.errors import EXIT_INTERRUPTED, EXIT_MISMATCH, EXIT_OK, StoppedError, UserError
from sonde.model.plan import Plan
from sonde.model.units import format_wait

# Tools of phases, and the engine's names of them.
_VERBS_BY_TOOL = {"ior": "ior", "mdtest": "mdtest", "mdworkbench": "md-workbench"}


class Io500Benchmark:
    """Runs one request. Raises UserError before any file is created if the request is invalid."""

    def __init__(self, benchmark_request: BenchmarkRequest, view: BenchmarkView) -> None:
        self._request = benchmark_request
        self._view = view
        self._phases = list_io500_phases(benchmark_request.extended, benchmark_request.cleanup)
        self._rules = Io500Rules(benchmark_request.config)
        self._rows: list[PhaseRow] = []
        self._broken: list[str] = []
        self._worst, self._text = EXIT_OK, ""
        self._objects = DEFAULT_OBJECT_COUNT  # of md-workbench
        self._check_settings()

    def run_all_phases(self) -> BenchmarkResult:
        """Runs all phases until the end or an interruption; finished phases count."""
        order = self._request
        # A cleanup does not change the results of its run.
        folder = Path(order.places.results, *(["cleanup"] if order.cleanup else []))
        if not order.dry_run:
            data.create_ior_folders(order.places)
        try:
            self._result_file = ResultFile(
                folder, self._view.show_official_line, order.config.get_number("global", "verbosity") or 0
            )
        except UserError:
            data.remove_benchmark_data(order.places)
            raise
        try:
            self._write_result_head()
            try:
                self._run_phases()
            except (KeyboardInterrupt, StoppedError):
                self._record_interruption()
            finally:
                self._view.end_display()
            return self._write_scores_and_result_tail()
        finally:
            self._result_file.close_files()

    # Before

    def _check_settings(self) -> None:
        """Raises UserError for invalid settings of any phase before the first phase begins."""
        order = self._request
        order.setup(order.tasks)  # there is such a launcher
        for phase in self._phases:
            if not self._is_enabled(phase):
                continue
            if phase.tool in _VERBS_BY_TOOL:
                self._translate_phase(phase)
            script = order.config.get_text(phase.name, "external-script") if phase.tool == "find" else None
            if script:
                search.require_executable_script(script)
            tasks = (order.config.get_number(phase.name, "nproc") or 0) if phase.tool == "find" else 0
            if tasks > order.tasks:
                raise UserError(f"[{phase.name}] nproc is {tasks}, but there are {order.tasks} tasks.")
        if not order.dry_run and not order.cleanup:
            data.require_no_data_yet(order.places)

    def _is_enabled(self, phase: Io500Phase) -> bool:
        """Returns whether the settings enable the phase and, in a cleanup, whether it has data to remove."""
        has_data = not self._request.cleanup or (Path(self._request.places.data) / phase.part).is_dir()
        return has_data and is_phase_enabled(phase, self._request.config)

    def _make_command_line(self, phase: Io500Phase) -> ToolCommand:
        order = self._request
        arguments = make_phase_command_line(phase, order.config, order.places, self._objects)[1:]
        return ToolCommand(
            _VERBS_BY_TOOL[phase.tool],
            tuple(arguments),
            order.tasks,
            f"io500-{phase.name}",
            f"IO500 {phase.name}",
            order.group,
        )

    def _translate_phase(self, phase: Io500Phase) -> list[Plan]:
        try:
            return resolve_plans_of_tool(self._make_command_line(phase), self._request.setup(self._request.tasks))
        except UserError as reason:
            raise type(reason)(f"IO500 {phase.name}: {reason}") from None

    def _write_result_head(self) -> None:
        order, paper = self._request, self._result_file
        paper.write_other_file("config-orig.ini", order.config.source)
        paper.write_other_file("config.ini", format_settings_as_ini(order.config, with_descriptions=False))
        mode = "extended" if order.extended else "standard"
        paper.write_line("[run]")
        paper.write_pair("procs", str(order.tasks))
        paper.write_pair("version", order.version)
        paper.write_pair("config-hash", order.config.settings_hash)
        paper.write_pair("result-dir", order.places.results)
        paper.write_pair("mode", mode)
        for text in self._rules.check_settings(order.dry_run):
            self._broken.append(text)
            paper.write_broken_rule(text)
        paper.write_comment(f"START {format_local_time()}", 1)
        paper.write_summary_line(f"IO500 version {order.version} ({mode})")
        paper.write_line()

    # The phases

    def _run_phases(self) -> None:
        for number, phase in enumerate(self._phases, 1):
            self._drop_caches(phase)
            self._result_file.write_line(f"\n[{phase.name}]")
            self._wait_for_pause_file_removal(phase)
            self._result_file.write_pair("t_start", format_local_time(), 1)
            row = PhaseRow(phase)
            self._rows.append(row)
            began = time.monotonic()
            self._run_phase(row, number)
            if row.seconds == 0 and not self._request.dry_run:
                row.seconds = time.monotonic() - began
            self._check_phase_by_rules(row)
            if row.run is not None and row.run.exit_code == EXIT_INTERRUPTED:
                raise StoppedError(row.run.text)

    def _run_phase(self, phase_row: PhaseRow, phase_number: int) -> None:
        phase, order, paper = phase_row.phase, self._request, self._result_file
        if phase.tool == "timestamp":
            stamp = Path(order.places.results) / "timestampfile"
            paper.write_pair("timestamp-file", str(stamp), 2)
            create_file(stamp).close()
            return
        if phase.tool == "mdworkbench":
            self._choose_mdworkbench_object_count(phase)
        command_line = make_phase_command_line(phase, order.config, order.places, self._objects)
        if phase.name == "mdtest-hard-write" and uses_several_directories(order.config):
            paper.write_warning(
                "stonewalling disabled in order to support -I option. Make sure your number of elements is big"
                " enough to meet the runtime limits!"
            )
        paper.write_pair("exe", " ".join(command_line))
        if order.dry_run:
            self._view.show_official_line(f"{phase.name}: {' '.join(command_line)}")
        if order.dry_run or not self._is_enabled(phase):
            return
        try:
            if phase.tool == "find":
                self._run_search_phase(phase_row, phase_number, " ".join(command_line))
            else:
                self._run_tool_phase(phase_row, phase_number)
        except StoppedError:
            raise
        except UserError as reason:
            phase_row.valid = False
            self._record_failure(reason.exit_code, f"{phase.name}: {reason}")

    def _choose_mdworkbench_object_count(self, phase: Io500Phase) -> None:
        """Chooses the number of md-workbench objects if the settings lack it: what mdtest would create until the
        stonewall at the lower of its two rates, divided by the sets of all tasks."""
        order, config = self._request, self._request.config
        if config.get_number("mdworkbench", "filesPerProc") is None and phase.name.endswith("create"):
            creating_phases = ("mdtest-easy-write", "mdtest-hard-write")
            rates = [
                row.figures.value for row in self._rows if row.phase.name in creating_phases and row.figures.value > 0
            ]
            if rates:
                sets = order.tasks * SETS_PER_TASK
                self._objects = max(1, int(min(rates) * 1000 * get_stonewall_seconds(config) / sets))
            else:
                self._result_file.write_warning(
                    "MDWorkbench uses the MDTest rates to determine suitable options but MDTest didn't run, will use"
                    " a low (and sane) default instead"
                )
        for key in ("filesPerProc", "precreatePerSet"):
            self._result_file.write_pair(key, str(config.get_number("mdworkbench", key) or self._objects))

    def _run_tool_phase(self, phase_row: PhaseRow, phase_number: int) -> None:
        phase, order, paper = phase_row.phase, self._request, self._result_file
        setup, line = order.setup(order.tasks), self._make_command_line(phase)
        plans = self._translate_phase(phase)
        paper.write_pair("result-file", f"{order.places.results}/{phase.name}.txt", 2)
        self._view.begin_phase(self._make_title(phase), phase_number, len(self._phases), plans[0])
        result = conduct_tool_run(line, plans, setup, self._view.show_record_line)
        self._view.end_display()
        paper.write_other_file(f"{phase.name}.txt", result.output + result.engine_messages)
        phase_row.run = result.runs[0]
        self._record_end_of_phase(phase_row, result.exit_code, result.text)
        if result.exit_code in (EXIT_OK, EXIT_MISMATCH):  # part of a phase is no result
            records = [run.record for run in result.runs]
            phase_row.figures = (
                compute_ior_figures(records[0])
                if phase.tool == "ior"
                else compute_mdtest_figures(records[0])
                if phase.tool == "mdtest"
                else compute_mdworkbench_figures(records)
            )
        if phase.tool == "mdtest":
            paper.write_pair("time", f"{phase_row.figures.seconds:f}", 2)

    def _run_search_phase(self, phase_row: PhaseRow, phase_number: int, find_script: str) -> None:
        phase, order, paper = phase_row.phase, self._request, self._result_file
        tasks = order.config.get_number(phase.name, "nproc")
        if order.config.get_text(phase.name, "external-script"):
            if tasks is not None:
                paper.write_pair("nproc", str(tasks))
            phase_row.figures, last_line = search.run_external_find_script(find_script, paper.write_warning)
            paper.write_pair("last-output", f'"{last_line}"')
        else:
            count = tasks or order.tasks
            paper.write_pair("nproc", str(count))
            plan = search.build_search_plan(phase, order.places, None if order.has_launcher else count)
            self._view.begin_phase(self._make_title(phase), phase_number, len(self._phases), plan)
            phase_row.run = conduct_run(
                plan, order.setup(count), self._view.show_record_line, f"io500-{phase.name}", {"group": order.group}
            )
            self._view.end_display()
            self._record_end_of_phase(phase_row, phase_row.run.exit_code, phase_row.run.text)
            phase_row.figures = (
                compute_search_figures(phase_row.run.record) if phase_row.run.exit_code == EXIT_OK else PhaseFigures()
            )
            if phase_row.figures.value > 0:
                paper.write_other_file(f"{phase.name}.csv", make_search_table(phase_row.figures, phase_row.run.record))

    def _record_end_of_phase(self, phase_row: PhaseRow, exit_code: int, stderr_text: str) -> None:
        """Records how the engine's run ended."""
        assert phase_row.run is not None
        end = phase_row.run.record.end
        phase_row.seconds = (end.seconds if end else None) or 0.0
        if exit_code not in (EXIT_OK, EXIT_INTERRUPTED):
            phase_row.valid = exit_code == EXIT_MISMATCH  # that one is counted, and judged by the rules
            self._record_failure(exit_code, f"{phase_row.phase.name}: {stderr_text}")

    def _record_failure(self, exit_code: int, stderr_text: str) -> None:
        self._result_file.write_comment(f"ERROR {stderr_text}")
        self._view.print_message(f"sonde: {stderr_text}")
        if self._worst == EXIT_OK and not self._request.cleanup:  # there, what is left counts
            self._worst, self._text = exit_code, stderr_text

    def _check_phase_by_rules(self, phase_row: PhaseRow) -> None:
        """Applies the rules to a finished phase and writes its lines in the result."""
        phase, paper, order = phase_row.phase, self._result_file, self._request
        ran = self._is_enabled(phase) and not order.dry_run and phase.is_measured
        if ran and phase_row.run is not None and phase_row.run.exit_code == EXIT_INTERRUPTED:
            phase_row.valid = False
            phase_row.broken.append("Interrupted")
            paper.write_broken_rule("Interrupted")
        elif phase.is_measured:
            for text in self._rules.check_phase(phase, phase_row.figures, phase_row.seconds, ran, order.dry_run):
                phase_row.valid = False
                phase_row.broken.append(text)
                paper.write_broken_rule(text)
        self._write_phase_result(phase_row, ran)

    def _write_phase_result(self, phase_row: PhaseRow, was_run: bool) -> None:
        phase, paper, figures = phase_row.phase, self._result_file, phase_row.figures
        if was_run and phase.tool == "ior" and phase.writes:
            paper.write_pair("accessed-pairs", str(figures.max_operations), 2)
            if figures.stonewall is not None:
                paper.write_pair("throughput-stonewall", f"{figures.stonewall:.2f}")
        elif was_run and phase.tool == "mdtest" and phase.writes and figures.stonewall is not None:
            paper.write_pair("rate-stonewall", f"{figures.stonewall:f}")
        elif was_run and phase.tool == "find" and figures.visited is not None:
            paper.write_pair("found", str(figures.matches))
            paper.write_pair("total-files", str(figures.visited))
        for text in figures.sentences:
            paper.write_comment(f"sonde: {text}")
        if phase_row.run is not None:
            for finding in phase_row.run.record.all_findings:
                if finding.severity != "info":
                    paper.write_comment(f"sonde: {finding.text}")
            paper.write_comment(f"sonde: kept as {phase_row.run.id}")
        if phase.is_measured:
            paper.write_pair("score", f"{figures.value:f}")
        paper.write_phase_result(phase, figures.value, phase_row.seconds, phase_row.valid)
        paper.write_pair("t_delta", f"{phase_row.seconds:.4f}", 1)
        paper.write_pair("t_end", format_local_time(), 1)

    def _make_title(self, phase: Io500Phase) -> str:
        return f"IO500 {phase.name}, about {format_wait(self._estimate_remaining_seconds())} in all to go"

    def _estimate_remaining_seconds(self) -> float:
        """Returns the expected seconds of the remaining phases: the stonewall for writes, the time of the write for
        reads, a tenth of that for searches."""
        wall = float(self._request.config.get_number("debug", "stonewall-time") or 0)
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
        if not config.get_flag("global", "drop-caches") or not phase.is_measured:
            return
        command = ["sh", "-c", config.get_required_text("global", "drop-caches-cmd")]
        if self._request.has_launcher:
            command = self._request.setup(self._request.tasks).launcher.make_command_line(command)
        code = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode
        if code != 0:
            self._result_file.write_warning(
                f'Calling "{config.get_required_text("global", "drop-caches-cmd")}" returned {code}'
            )

    def _wait_for_pause_file_removal(self, phase: Io500Phase) -> None:
        folder = self._request.config.get_text("debug", "pause-dir")
        if folder is None:
            return
        self._result_file.write_pair("t_pause", format_local_time(), 1)
        self._result_file.write_comment(f"Checking for pause file {folder}/{phase.name}")
        is_announced = False
        while (Path(folder) / phase.name).exists():
            if not is_announced:
                self._view.print_message(f"Waiting until {folder}/{phase.name} is removed")
                is_announced = True
            time.sleep(0.2)

    # Afterwards

    def _record_interruption(self) -> None:
        self._worst, self._text = EXIT_INTERRUPTED, "Interrupted; finished phases are stored."
        self._rules.run_is_valid = False
        self._broken.append("Interrupted")
        self._result_file.write_comment("ERROR INVALID interrupted")

    def _write_scores_and_result_tail(self) -> BenchmarkResult:
        order, paper = self._request, self._result_file
        results = [(row.phase, row.figures.value) for row in self._rows]
        standard = [row.valid for row in self._rows if not row.phase.extra]
        valid = self._rules.run_is_valid and all(standard)
        score = compute_score(results)
        paper.write_score("SCORE", score, valid, hash_score(score, results, valid, order.version))
        if order.extended:
            extended_score, is_valid_extended = (
                compute_score(results, is_extended=True),
                valid and all(row.valid for row in self._rows),
            )
            paper.write_score(
                "SCOREX",
                extended_score,
                is_valid_extended,
                hash_score(extended_score, results, is_valid_extended, None),
            )
        self._view.show_official_line(f"\nThe result files are stored in the directory: {order.places.results}")
        remaining_names: list[str] = []
        if not order.dry_run:
            try:
                remaining_names = data.remove_benchmark_data(order.places)
            except KeyboardInterrupt:
                remaining_names = [order.places.data]
        paper.write_comment(f"END {format_local_time()}", 1)
        return BenchmarkResult(self._rows, score, valid, self._worst, self._text, remaining_names, self._broken)
