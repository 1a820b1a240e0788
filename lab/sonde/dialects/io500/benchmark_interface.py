# SPDX-License-Identifier: Apache-2.0
"""Arguments and results of a run of IO500: request, display, rows of phases and result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sonde.conduct.run import RunResult, RunSetup
from sonde.dialects.io500.command_lines import (
    RunDirectories,
)
from sonde.dialects.io500.figures import (
    PhaseFigures,
)
from sonde.dialects.io500.ini import Io500Config
from sonde.dialects.io500.phases import Io500Phase
from sonde.dialects.io500.score import Io500Score
from sonde.model.lines import RecordLine
from sonde.model.plan import Plan


class BenchmarkView(Protocol):
    """The display of a running benchmark."""

    def begin_phase(self, phase_title: str, phase_number: int, phase_count: int, plan: Plan) -> None:
        """Shows that a phase starts."""

    def show_record_line(self, line_kind: str, line: RecordLine) -> None:
        """Shows a line that the engine has just added to the record of the current phase."""

    def end_display(self) -> None:
        """Closes the display."""

    def show_official_line(self, output_line: str) -> None:
        """A line of the official output."""

    def print_message(self, message: str) -> None:
        """Prints a message of Sonde."""


@dataclass(frozen=True)
class BenchmarkRequest:
    """A request to run the benchmark.

    `setup` returns the run setup for a number of tasks; `version` is for the result.
    """

    config: Io500Config
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
    score: Io500Score
    valid: bool
    exit_code: int
    text: str
    remaining: Sequence[str]  # names in the data directory that were not removed
    broken: Sequence[str] = ()  # rules that the settings or the complete run broke
