# SPDX-License-Identifier: Apache-2.0
"""The state of a run in progress as a file of metrics, for the textfile collector of the Prometheus node exporter."""

from __future__ import annotations

import time
from pathlib import Path

from sonde.model.confined_files import ConfinedDirectory
from sonde.model.errors import MachineError, UserError
from sonde.model.lines import ErrorLine, PhaseBeginLine, PhaseEndLine, ProgressLine, RecordLine, RunLine
from sonde.model.metric_text import OpenMetricsText
from sonde.model.plan import Plan
from sonde.terminal.run_display import Display, RunProgress

# Collectors look every 10 to 60 seconds; the engine reports four times a second.
_WRITE_INTERVAL_S = 1.0


class MetricsDisplay(Display):
    """Keeps the file while runs are in progress, removes it at the end, and passes everything on to `display`.

    The file is replaced in one step but not forced to storage, where it would disturb the measurement.
    Raises UserError for a path that is no file, and MachineError when it cannot be created. When it cannot be written
    later, `display` says so once.
    """

    def __init__(self, display: Display, path: Path) -> None:
        self._display = display
        self._path = path
        self._progress = RunProgress()
        self._labels: dict[str, str] = {}
        self._position, self._errors, self._written_s = (1, 1), 0, 0.0
        self._directory: ConfinedDirectory | None = None
        try:
            if path.exists() and not path.is_file():
                raise UserError(f"--metrics: {path} is no regular file; name a new one.")
            self._directory = ConfinedDirectory.open(path.parent)
            self._write_metrics_file(self._directory)
        except OSError as reason:
            raise MachineError(f"--metrics: {path} cannot be written: {reason.strerror}.") from None

    def begin_run(self, title: str, run_number: int, run_count: int, plan: Plan) -> None:
        self._progress = RunProgress(plan)
        self._labels = {"plan": plan.id, "target": plan.target_name}
        self._position, self._errors = (run_number, run_count), 0
        self._write_metrics_or_warn()
        self._display.begin_run(title, run_number, run_count, plan)

    def set_run_position(self, run_number: int, run_count: int, remaining_s: float | None) -> None:
        self._display.set_run_position(run_number, run_count, remaining_s)

    def show_record_line(self, line_kind: str, line: RecordLine) -> None:
        self._progress.apply_record_line(line)
        match line:
            case ErrorLine():
                self._errors += 1
            case RunLine() | PhaseBeginLine() | PhaseEndLine():
                self._write_metrics_or_warn()
            case ProgressLine() if time.monotonic() - self._written_s >= _WRITE_INTERVAL_S:
                self._write_metrics_or_warn()
            case _:
                pass
        self._display.show_record_line(line_kind, line)

    def print_message(self, message: str) -> None:
        self._display.print_message(message)

    def report_stop_signal(self) -> None:
        self._display.report_stop_signal()

    def end_display(self) -> None:
        if self._directory is not None:
            self._directory.remove_file(self._path.name, missing_ok=True)
            self._directory.close()
            self._directory = None
        self._display.end_display()

    def _write_metrics_or_warn(self) -> None:
        if self._directory is None:
            return
        try:
            self._write_metrics_file(self._directory)
        except OSError as reason:
            self._directory.close()
            self._directory = None
            self._display.print_message(f"The metrics are not written any more: {self._path}: {reason.strerror}.")

    def _write_metrics_file(self, directory: ConfinedDirectory) -> None:
        part = f".{self._path.name}.part"
        directory.remove_file(part, missing_ok=True)
        with directory.create_file(part) as file:
            file.write(self._render_metrics().encode())
        directory.rename_entry(part, directory, self._path.name)
        self._written_s = time.monotonic()

    def _render_metrics(self) -> str:
        state, text = self._progress, OpenMetricsText()
        phase = {**self._labels, "phase": state.begin.phase, "operation": state.begin.op} if state.begin else {}
        number, count = self._position
        text.add_family("sonde_run_number", "Number of the run in progress, of sonde_run_count.", [({}, float(number))])
        text.add_family("sonde_run_count", "Runs that the command makes in all.", [({}, float(count))])
        text.add_family("sonde_run_tasks", "Tasks of the run.", [(self._labels, float(state.tasks))])
        text.add_family("sonde_run_errors", "Errors that the run has reported.", [(self._labels, float(self._errors))])
        if state.begin is None:
            return text.render()
        progress = state.progress or ProgressLine()
        for name, meaning, value in (
            ("sonde_phase_seconds", "Time since the phase began.", progress.phase_s),
            ("sonde_phase_bytes", "Bytes that the phase has transferred.", progress.bytes),
            ("sonde_phase_operations", "Operations that the phase has done.", progress.ops),
            ("sonde_phase_bytes_per_second", "Rate of the last quarter of a second.", progress.bytes_per_s),
            ("sonde_phase_operations_per_second", "Rate of the last quarter of a second.", progress.ops_per_s),
            ("sonde_phase_active_tasks", "Tasks that transfer data at this moment.", progress.active),
            (
                "sonde_phase_ratio",
                "How much of the phase is done, 0 to 1.",
                _convert_percent_to_ratio(state.percent_done),
            ),
        ):
            text.add_family(name, meaning, [] if value is None else [(phase, float(value))])
        return text.render()


def _convert_percent_to_ratio(percent: float | None) -> float | None:
    return None if percent is None else percent / 100
