# SPDX-License-Identifier: Apache-2.0
"""The display of a run in progress: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from sonde.model.errors import format_as_sentence
from sonde.model.lines import (
    EndLine,
    ErrorLine,
    Finding,
    NodeLine,
    PhaseBeginLine,
    PhaseEndLine,
    ProgressLine,
    RecordLine,
    RunLine,
)
from sonde.model.plan import Plan
from sonde.model.units import format_wait, parse_duration
from sonde.terminal.phase_text import (
    describe_phase_end,
    describe_preparation,
    format_headline_rate,
    format_rate_by_transfer,
)
from sonde.terminal.sparkline import ASCII_BLOCKS, BLOCK_CHARACTERS, make_sparkline

# As often as the engine reports: drawing takes processor time from the measurement.
_REFRESHES_PER_S = 4
_SPARKLINE_CHARACTERS = 24
_PLAIN_PROGRESS_INTERVAL_S = 5.0
_EARLY_FINDING = "may_fill_file_system"  # written before the first phase: the user may still stop the run


class RunProgress:
    """The state of a run as its record lines report it; independent of terminals."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.plan = plan
        self.begin: PhaseBeginLine | None = None
        self.progress: ProgressLine | None = None
        self.rates: deque[tuple[float, float]] = deque(maxlen=_SPARKLINE_CHARACTERS)  # bytes/s, op/s
        self.tasks = 0
        self.nodes = 0
        self.waiting = "starting"
        self.since = time.monotonic()
        self._make_finished_line = 0

    def apply_record_line(self, line: RecordLine) -> None:
        """Applies one record line."""
        match line:
            case RunLine():
                self.tasks, self.nodes = line.tasks or 0, line.nodes or 1
                self._reset_for_next_phase()
            case PhaseBeginLine():
                self.begin, self.progress = line, None
                self.rates.clear()
                self.since = time.monotonic()
            case ProgressLine():
                self.progress = line
                self.rates.append((line.bytes_per_s, line.ops_per_s))
            case PhaseEndLine():
                self.begin = None
                self._make_finished_line += 1
                self._reset_for_next_phase()
                if line.stopped_by in ("error", "interrupt"):
                    self.waiting = "ending in good order, removing our files"
            case EndLine():
                self.waiting = "done"
            case _:
                pass

    def _reset_for_next_phase(self) -> None:
        phases = self.plan.phases if self.plan else []
        self.since = time.monotonic()
        self.waiting = (
            describe_preparation(phases[self._make_finished_line])
            if self._make_finished_line < len(phases)
            else "removing our files"
        )

    @property
    def phase_plan(self) -> Mapping[str, Any]:
        """The plan of the phase that runs."""
        phases = self.plan.phases if self.plan else []
        wanted = self.begin.phase if self.begin else ""
        return next((phase for phase in phases if phase["id"] == wanted), {})

    def is_measured(self, phase_id: str) -> bool:
        """Returns whether the plan rates a phase; a phase with ``measure = false`` prepares others."""
        phases = self.plan.phases if self.plan else []
        return next((phase.get("measure", True) is not False for phase in phases if phase["id"] == phase_id), True)

    @property
    def percent_done(self) -> float | None:
        """Progress of the phase, 0 to 100; None when unknown."""
        if self.progress is None:
            return 0.0
        limit = self._get_time_limit()
        if limit:
            return min(100.0, 100 * self.progress.phase_s / limit)
        return self.progress.percent

    @property
    def remaining_seconds(self) -> float | None:
        """Seconds until the phase ends; None when unknown."""
        if self.progress is None or self.begin is None:
            return None
        limit = self._get_time_limit()
        if limit:
            return max(0.0, limit - self.progress.phase_s)
        planned, recent = self.begin.planned_bytes, [rate for rate, _ in list(self.rates)[-8:]]
        speed = sum(recent) / len(recent) if recent else 0.0
        share = self.progress.percent
        if not share:
            return None
        # By the remaining bytes, or by the completed fraction for operations that transfer none.
        seconds = self.progress.phase_s * (100 - share) / share
        if planned and speed > 0:
            seconds = max(0.0, planned - self.progress.bytes) / speed
        wall = self._get_stop_seconds("stonewall")
        return min(seconds, max(0.0, wall - self.progress.phase_s)) if wall else seconds

    @property
    def is_flushing(self) -> bool:
        """Whether all bytes are written and the storage has not confirmed them yet."""
        return bool(self.progress and self.percent_done == 100 and not self.progress.bytes_per_s)

    def _get_time_limit(self) -> float | None:
        return self._get_stop_seconds("time")

    def _get_stop_seconds(self, stop_member: str) -> float | None:
        stop = self.phase_plan.get("stop", {})
        return parse_duration(stop[stop_member]) if stop_member in stop else None


class Display:
    """Displays nothing: for --json and --quiet."""

    def begin_run(self, run_title: str, run_number: int, run_count: int, plan: Plan) -> None:
        """Run `run_number` of `run_count` starts (0 of 0: a preparing run)."""

    def set_run_position(self, run_number: int, run_count: int, remaining_s: float | None) -> None:
        """Called before `begin_run` for many runs: run `run_number` of probably `run_count` begins, and all of them
        take about `remaining_s` seconds from now (None when unknown)."""

    def show_record_line(self, line_kind: str, line: RecordLine) -> None:
        """Displays one record line."""

    def print_message(self, message: str) -> None:
        """Prints a message."""

    def report_stop_signal(self) -> None:
        """Reports that a signal was forwarded to the engine."""
        self.print_message("Stopping in good order: finished phases are kept. A second Ctrl-C ends it within seconds.")

    def end_display(self) -> None:
        """Ends the display."""


def _format_run_heading(run_title: str, run_number: int, run_count: int) -> str:
    return f"{run_title}  ({run_number} of {run_count})" if run_count > 1 else run_title


class PlainDisplay(Display):
    """Log lines: one at the end of each phase, and one every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = RunProgress()
        self._shown = time.monotonic()
        self._preparing = self._prepared = False
        self._left: float | None = None

    def set_run_position(self, run_number: int, run_count: int, remaining_s: float | None) -> None:
        self._left = remaining_s

    def begin_run(self, run_title: str, run_number: int, run_count: int, plan: Plan) -> None:
        self._progress = RunProgress(plan)
        self._shown = time.monotonic()
        self._preparing = run_count == 0
        if run_count:
            remaining = f", about {format_wait(self._left)} left" if self._left else ""
            self.print_message(f"{_format_run_heading(run_title, run_number, run_count)}{remaining}")
        elif not self._prepared:
            self._prepared = True
            self.print_message("Finding volumes that fit")

    def print_message(self, message: str) -> None:
        self._console.print(message, soft_wrap=True)

    def show_record_line(self, line_kind: str, line: RecordLine) -> None:
        self._progress.apply_record_line(line)
        match line:
            case PhaseEndLine() if not self._preparing:
                text = describe_phase_end(line, self._progress.is_measured(line.phase))
                self.print_message(f"  {line.phase}: {format_headline_rate(line)}, {text}")
            case ErrorLine():
                self.print_message(f"  error: {line.text}")
            case Finding() if line.id == _EARLY_FINDING:
                self.print_message(f"  {format_as_sentence(line.text)} {format_as_sentence(line.advice)}")
            case ProgressLine() if time.monotonic() - self._shown >= _PLAIN_PROGRESS_INTERVAL_S:
                self._shown = time.monotonic()
                self.print_message(f"  {line.phase}: {', '.join(_describe_progress(self._progress))}")
            case _:
                pass


def _describe_progress(run_progress: RunProgress) -> list[str]:
    sentences = []
    if run_progress.percent_done is not None:
        sentences.append(f"{run_progress.percent_done:.0f} %")
    if run_progress.is_flushing:
        sentences.append("waiting for the storage to confirm (fsync)")
    elif run_progress.rates:
        sentences.append(format_rate_by_transfer(*run_progress.rates[-1]))
    if run_progress.remaining_seconds is not None and not run_progress.is_flushing:
        sentences.append(f"{format_wait(run_progress.remaining_seconds)} left")
    return sentences


class LiveDisplay(Display):
    """A terminal view: lines of finished phases, and below them the current phase."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._plain = not (console.encoding or "").lower().startswith("utf")
        self._progress = RunProgress()
        self._width = 12
        self._placed = False  # the location of the files was printed
        self._preparing = False
        self._position: tuple[int, int, float | None, float] | None = None
        self._spinner = Spinner("line" if self._plain else "dots", style="cyan")
        self._live = Live(
            get_renderable=self._make_view, console=console, refresh_per_second=_REFRESHES_PER_S, transient=True
        )

    def set_run_position(self, run_number: int, run_count: int, remaining_s: float | None) -> None:
        self._position = run_number, run_count, remaining_s, time.monotonic()

    def begin_run(self, run_title: str, run_number: int, run_count: int, plan: Plan) -> None:
        self._progress = RunProgress(plan)
        self._width = max([12, *(len(str(phase["id"])) for phase in plan.phases)])
        heading = Text(run_title, style="bold")
        if run_count > 1:
            heading.append(f"  {run_number} of {run_count}", style="dim")
        if not self._live.is_started:
            self._live.start()
        self._preparing = run_count == 0
        if run_count:
            self._print_above_view(heading)

    def show_record_line(self, line_kind: str, line: RecordLine) -> None:
        self._progress.apply_record_line(line)
        match line:
            case PhaseEndLine() if not self._preparing:
                self._print_above_view(self._make_finished_phase_line(line))
            case ErrorLine():
                self._print_above_view(Text(f"  {line.text}", style="red"))
            case Finding() if line.id == _EARLY_FINDING:
                self._print_above_view(
                    Text(f"  {format_as_sentence(line.text)} {format_as_sentence(line.advice)}", style="yellow")
                )
            case NodeLine() if line.node == 0 and not self._preparing and not self._placed:
                self._placed = True
                self._print_above_view(Text(_describe_location(line), style="dim"))
            case _:
                pass

    def print_message(self, message: str) -> None:
        self._print_above_view(Text(message, style="dim"))

    def _print_above_view(self, text: Text) -> None:
        """Prints a permanent line above the view; the view is refreshed first, or its old state would be repeated."""
        self._live.refresh()
        self._live.console.print(text)

    def end_display(self) -> None:
        if self._live.is_started:
            self._live.stop()

    def _make_finished_phase_line(self, phase_end: PhaseEndLine) -> Text:
        failed = phase_end.stopped_by in ("error", "interrupt") or bool(
            phase_end.verify and phase_end.verify.mismatches
        )
        mark = ("x" if failed else "-") if self._plain else ("✗" if failed else "✓")
        text = Text(f"  {mark} ", style="red" if failed else "green")
        text.append(f"{phase_end.phase:<{self._width}}  ", style="default")
        text.append(f"{format_headline_rate(phase_end):>14}", style="bold default")
        is_measured = self._progress.is_measured(phase_end.phase)
        text.append(f"   {describe_phase_end(phase_end, is_measured)}", style="dim")
        return text

    def _make_view(self) -> RenderableType:
        state = self._progress
        if state.begin is None:
            return self._make_waiting_view(state)
        percent = state.percent_done
        has_percent = percent is not None and not state.is_flushing
        rate = format_rate_by_transfer(*state.rates[-1]) if state.rates else ""
        in_ops = rate.endswith("op/s")
        history = [ops if in_ops else moved for moved, ops in state.rates]
        grid = Table.grid(padding=(0, 1))
        for _ in range(5):
            grid.add_column(no_wrap=True)
        grid.add_row(
            self._make_spinner_cell(state.begin.phase),
            ProgressBar(total=100 if has_percent else None, completed=percent or 0, width=24, pulse=not has_percent),
            Text(f"{percent:3.0f} %" if percent is not None else "     "),
            Text(f"{'fsync' if state.is_flushing else rate:>14}", style="bold"),
            Text(
                make_sparkline(history, _SPARKLINE_CHARACTERS, ASCII_BLOCKS if self._plain else BLOCK_CHARACTERS),
                style="cyan",
            ),
        )
        return Group(grid, Text(self._describe_run_state(state), style="dim"), *self._make_position_lines())

    def _make_position_lines(self) -> list[Text]:
        """The position of this run among many."""
        if self._position is None:
            return []
        number, count, remaining, since = self._position
        text = f"    run {number} of {count}"
        if remaining is not None:
            still = format_wait(max(0.0, remaining - (time.monotonic() - since)))
            text += f"{', ' if self._plain else ' · '}about {still} left in all"
        return [Text(text, style="dim")]

    def _make_spinner_cell(self, spinner_name: str) -> RenderableType:
        cell = Table.grid(padding=(0, 1, 0, 0))
        cell.add_row(Text(" "), self._spinner, Text(f"{spinner_name:<{self._width}}"))
        return cell

    def _make_waiting_view(self, run_progress: RunProgress) -> RenderableType:
        cell = Table.grid(padding=(0, 1, 0, 0))
        elapsed = time.monotonic() - run_progress.since
        clock = f" {format_wait(elapsed)}" if elapsed >= 2 else ""
        cell.add_row(Text(" "), self._spinner, Text(f"{run_progress.waiting}{clock}", style="dim"))
        return Group(cell, *self._make_position_lines())

    def _describe_run_state(self, run_progress: RunProgress) -> str:
        sentences = []
        if run_progress.is_flushing:
            sentences.append("all bytes handed over, waiting for the storage to confirm them")
        elif run_progress.remaining_seconds is not None:
            sentences.append(f"{format_wait(run_progress.remaining_seconds)} left")
        active = run_progress.progress.active if run_progress.progress else None
        some = f"{active} of " if active is not None and active < run_progress.tasks else ""
        tasks = f"{some}{run_progress.tasks} task{'s' if run_progress.tasks != 1 else ''}"
        observed = (
            run_progress.progress.nodes_seen
            if run_progress.progress and run_progress.progress.nodes_seen is not None
            else run_progress.nodes
        )
        nodes = (
            f"{observed} of {run_progress.nodes} nodes"
            if observed != run_progress.nodes
            else f"{observed} node{'s' if observed != 1 else ''}"
        )
        sentences.append(f"{tasks} on {nodes}")
        return " " * 4 + " · ".join(sentences) if not self._plain else " " * 4 + ", ".join(sentences)


def _describe_location(node_line: NodeLine) -> str:
    system = node_line.file_system
    location = f"{system.type} at {system.mount_point}" if system.mount_point else system.type
    return f"  on {node_line.host}: {location}" if location else f"  on {node_line.host}"


def make_display(console: Console, quiet: bool) -> Display:
    """The display for this console."""
    if quiet:
        return Display()
    return LiveDisplay(console) if console.is_terminal else PlainDisplay(console)
