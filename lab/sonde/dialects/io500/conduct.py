# SPDX-License-Identifier: Apache-2.0
"""A run of IO500: its phases one after the other, each a run of the engine, by IO500's rules and into its files."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sonde.conduct.run import Result, Setup, conduct
from sonde.conduct.tool_line import ToolLine, conduct_line, plans_of
from sonde.dialects.io500 import data, search
from sonde.dialects.io500.figures import (
    Figures,
    find_figures,
    find_table,
    ior_figures,
    mdtest_figures,
    mdworkbench_figures,
)
from sonde.dialects.io500.ini import Config, listing
from sonde.dialects.io500.paper import Paper, now
from sonde.dialects.io500.phases import Phase, phases_of
from sonde.dialects.io500.rules import Rules
from sonde.dialects.io500.score import Score, hash_of_score, score_of
from sonde.dialects.io500.words import FEW_OBJECTS, SETS, Places, limits_files, runs, stonewall, words_of
from sonde.model.errors import DONE, INTERRUPTED, MISMATCH, StoppedError, UserError
from sonde.model.lines import Line
from sonde.model.plan import Plan
from sonde.model.units import format_wait


class View(Protocol):
    """What a person sees meanwhile."""

    def begin(self, title: str, number: int, count: int, plan: Plan) -> None:
        """A phase starts."""

    def line(self, kind: str, line: Line) -> None:
        """A line of its record."""

    def close(self) -> None:
        """It has ended."""

    def show(self, text: str) -> None:
        """A line of the official output."""

    def say(self, text: str) -> None:
        """A remark of ours."""


# Phases that are a command line of a tool, and what the engine calls it.
_TOOLS = {"ior": "ior", "mdtest": "mdtest", "mdworkbench": "md-workbench"}


@dataclass(frozen=True)
class Order:
    """What is to be done. `setup`: with what so many tasks are run. `version`: as the result names it."""

    config: Config
    places: Places
    tasks: int
    setup: Callable[[int], Setup]
    version: str
    group: str
    launched: bool = False  # by a launcher, which starts the processes
    extended: bool = False
    dry_run: bool = False
    cleanup: bool = False


@dataclass
class Row:
    """One phase that was run. `valid`: by the rules."""

    phase: Phase
    figures: Figures = field(default_factory=Figures)
    seconds: float = 0.0
    valid: bool = True
    broken: list[str] = field(default_factory=list)  # rules that it broke, in IO500's words
    run: Result | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of it. `exit_code` and `text` as for a run; breaking a rule is no failure."""

    rows: Sequence[Row]
    score: Score
    valid: bool
    exit_code: int
    text: str
    left: Sequence[str]  # names in the data directory that were not removed
    broken: Sequence[str] = ()  # rules that the settings or the run as a whole broke


class Benchmark:
    """Runs an order. Raises UserError before anything was made when it cannot be run as it is."""

    def __init__(self, order: Order, view: View) -> None:
        self._order = order
        self._view = view
        self._phases = phases_of(order.extended, order.cleanup)
        self._rules = Rules(order.config)
        self._rows: list[Row] = []
        self._broken: list[str] = []
        self._worst, self._text = DONE, ""
        self._objects = FEW_OBJECTS  # of md-workbench
        self._check()

    def run(self) -> Outcome:
        """From the first phase to the last, or to an interruption; what is finished counts."""
        order = self._order
        # The results of the run that is cleaned up after stay as they are.
        folder = Path(order.places.results, *(["cleanup"] if order.cleanup else []))
        if not order.dry_run:
            data.make_folders(order.places)
        try:
            self._paper = Paper(folder, self._view.show, order.config.number("global", "verbosity") or 0)
        except UserError:
            data.remove_data(order.places)
            raise
        try:
            self._head()
            try:
                self._all_phases()
            except (KeyboardInterrupt, StoppedError):
                self._stopped()
            finally:
                self._view.close()
            return self._tail()
        finally:
            self._paper.close()

    # Before

    def _check(self) -> None:
        """Refuses settings that a phase could not be run with, before the first one has taken its five minutes."""
        order = self._order
        order.setup(order.tasks)  # there is such a launcher
        for phase in self._phases:
            if not self._is_to_run(phase):
                continue
            if phase.tool in _TOOLS:
                self._plans(phase)
            script = order.config.text(phase.name, "external-script") if phase.tool == "find" else None
            if script:
                search.check_script(script)
            tasks = (order.config.number(phase.name, "nproc") or 0) if phase.tool == "find" else 0
            if tasks > order.tasks:
                raise UserError(f"[{phase.name}] nproc is {tasks}, but there are {order.tasks} tasks.")
        if not order.dry_run and not order.cleanup:
            data.check_free_of_data(order.places)

    def _is_to_run(self, phase: Phase) -> bool:
        """Whether the settings say so; in a cleanup: and there is something to remove."""
        there = not self._order.cleanup or (Path(self._order.places.data) / phase.part).is_dir()
        return there and runs(phase, self._order.config)

    def _line(self, phase: Phase) -> ToolLine:
        order = self._order
        words = words_of(phase, order.config, order.places, self._objects)[1:]
        return ToolLine(
            _TOOLS[phase.tool], tuple(words), order.tasks, f"io500-{phase.name}", f"IO500 {phase.name}", order.group
        )

    def _plans(self, phase: Phase) -> list[Plan]:
        try:
            return plans_of(self._line(phase), self._order.setup(self._order.tasks))
        except UserError as reason:
            raise type(reason)(f"IO500 {phase.name}: {reason}") from None

    def _head(self) -> None:
        order, paper = self._order, self._paper
        paper.file("config-orig.ini", order.config.source)
        paper.file("config.ini", listing(order.config, about=False))
        mode = "extended" if order.extended else "standard"
        paper.line("[run]")
        paper.pair("procs", str(order.tasks))
        paper.pair("version", order.version)
        paper.pair("config-hash", order.config.hash)
        paper.pair("result-dir", order.places.results)
        paper.pair("mode", mode)
        for text in self._rules.of_settings(order.dry_run):
            self._broken.append(text)
            paper.invalid(text)
        paper.note(f"START {now()}", 1)
        paper.summary(f"IO500 version {order.version} ({mode})")
        paper.line()

    # The phases

    def _all_phases(self) -> None:
        for number, phase in enumerate(self._phases, 1):
            self._drop_caches(phase)
            self._paper.line(f"\n[{phase.name}]")
            self._pause(phase)
            self._paper.pair("t_start", now(), 1)
            row = Row(phase)
            self._rows.append(row)
            began = time.monotonic()
            self._one(row, number)
            if row.seconds == 0 and not self._order.dry_run:
                row.seconds = time.monotonic() - began
            self._judge(row)
            if row.run is not None and row.run.exit_code == INTERRUPTED:
                raise StoppedError(row.run.text)

    def _one(self, row: Row, number: int) -> None:
        phase, order, paper = row.phase, self._order, self._paper
        if phase.tool == "timestamp":
            stamp = Path(order.places.results) / "timestampfile"
            paper.pair("timestamp-file", str(stamp), 2)
            stamp.write_bytes(b"")
            return
        if phase.tool == "mdworkbench":
            self._choose_objects(phase)
        words = words_of(phase, order.config, order.places, self._objects)
        if phase.name == "mdtest-hard-write" and limits_files(order.config):
            paper.warn(
                "stonewalling disabled in order to support -I option. Make sure your number of elements is big enough"
                " to meet the runtime limits!"
            )
        paper.pair("exe", " ".join(words))
        if order.dry_run:
            self._view.show(f"{phase.name}: {' '.join(words)}")
        if order.dry_run or not self._is_to_run(phase):
            return
        try:
            if phase.tool == "find":
                self._find(row, number, " ".join(words))
            else:
                self._tool(row, number)
        except StoppedError:
            raise
        except UserError as reason:
            row.valid = False
            self._fail(reason.exit_code, f"{phase.name}: {reason}")

    def _choose_objects(self, phase: Phase) -> None:
        """How many objects md-workbench has, where the settings do not say: as many as mdtest would create until the
        stonewall, at the lower of its two rates, shared out to the sets of all tasks."""
        order, config = self._order, self._order.config
        if config.number("mdworkbench", "filesPerProc") is None and phase.name.endswith("create"):
            made = ("mdtest-easy-write", "mdtest-hard-write")
            rates = [row.figures.value for row in self._rows if row.phase.name in made and row.figures.value > 0]
            if rates:
                shares = order.tasks * SETS
                self._objects = max(1, int(min(rates) * 1000 * stonewall(config) / shares))
            else:
                self._paper.warn(
                    "MDWorkbench uses the MDTest rates to determine suitable options but MDTest didn't run, will use a"
                    " low (and sane) default instead"
                )
        for key in ("filesPerProc", "precreatePerSet"):
            self._paper.pair(key, str(config.number("mdworkbench", key) or self._objects))

    def _tool(self, row: Row, number: int) -> None:
        phase, order, paper = row.phase, self._order, self._paper
        setup, line = order.setup(order.tasks), self._line(phase)
        plans = self._plans(phase)
        paper.pair("result-file", f"{order.places.results}/{phase.name}.txt", 2)
        self._view.begin(self._title(phase), number, len(self._phases), plans[0])
        result = conduct_line(line, plans, setup, self._view.line)
        self._view.close()
        paper.file(f"{phase.name}.txt", result.output + result.remarks)
        row.run = result.runs[0]
        self._take(row, result.exit_code, result.text)
        if result.exit_code in (DONE, MISMATCH):  # part of a phase is no result
            records = [one.record for one in result.runs]
            row.figures = (
                ior_figures(records[0])
                if phase.tool == "ior"
                else mdtest_figures(records[0])
                if phase.tool == "mdtest"
                else mdworkbench_figures(records)
            )
        if phase.tool == "mdtest":
            paper.pair("time", f"{row.figures.seconds:f}", 2)

    def _find(self, row: Row, number: int, command: str) -> None:
        phase, order, paper = row.phase, self._order, self._paper
        tasks = order.config.number(phase.name, "nproc")
        if order.config.text(phase.name, "external-script"):
            if tasks is not None:
                paper.pair("nproc", str(tasks))
            row.figures, last = search.run_script(command, paper.warn)
            paper.pair("last-output", f'"{last}"')
        else:
            count = tasks or order.tasks
            paper.pair("nproc", str(count))
            plan = search.plan_of(phase, order.places, None if order.launched else count)
            self._view.begin(self._title(phase), number, len(self._phases), plan)
            row.run = conduct(plan, order.setup(count), self._view.line, f"io500-{phase.name}", {"group": order.group})
            self._view.close()
            self._take(row, row.run.exit_code, row.run.text)
            row.figures = find_figures(row.run.record) if row.run.exit_code == DONE else Figures()
            if row.figures.value > 0:
                paper.file(f"{phase.name}.csv", find_table(row.figures, row.run.record))

    def _take(self, row: Row, exit_code: int, text: str) -> None:
        """How the engine's run ended."""
        assert row.run is not None
        end = row.run.record.end
        row.seconds = (end.seconds if end else None) or 0.0
        if exit_code not in (DONE, INTERRUPTED):
            row.valid = exit_code == MISMATCH  # that one is counted, and judged by the rules
            self._fail(exit_code, f"{row.phase.name}: {text}")

    def _fail(self, exit_code: int, text: str) -> None:
        self._paper.note(f"ERROR {text}")
        self._view.say(f"sonde: {text}")
        if self._worst == DONE and not self._order.cleanup:  # there, what is left counts
            self._worst, self._text = exit_code, text

    def _judge(self, row: Row) -> None:
        """What the rules say about a phase that has ended, and its lines in the result."""
        phase, paper, order = row.phase, self._paper, self._order
        ran = self._is_to_run(phase) and not order.dry_run and phase.is_measured
        if ran and row.run is not None and row.run.exit_code == INTERRUPTED:
            row.valid = False
            row.broken.append("Interrupted")
            paper.invalid("Interrupted")
        elif phase.is_measured:
            for text in self._rules.of_phase(phase, row.figures, row.seconds, ran, order.dry_run):
                row.valid = False
                row.broken.append(text)
                paper.invalid(text)
        self._write_row(row, ran)

    def _write_row(self, row: Row, ran: bool) -> None:
        phase, paper, figures = row.phase, self._paper, row.figures
        if ran and phase.tool == "ior" and phase.writes:
            paper.pair("accessed-pairs", str(figures.most_operations), 2)
            if figures.stonewall is not None:
                paper.pair("throughput-stonewall", f"{figures.stonewall:.2f}")
        elif ran and phase.tool == "mdtest" and phase.writes and figures.stonewall is not None:
            paper.pair("rate-stonewall", f"{figures.stonewall:f}")
        elif ran and phase.tool == "find" and figures.visited is not None:
            paper.pair("found", str(figures.found))
            paper.pair("total-files", str(figures.visited))
        for text in figures.ours:
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
        paper.pair("t_end", now(), 1)

    def _title(self, phase: Phase) -> str:
        return f"IO500 {phase.name}, about {format_wait(self._remaining())} in all to go"

    def _remaining(self) -> float:
        """Seconds that the phases from the current one on are expected to take: those that write, until the stonewall;
        those that read, as long as writing took; a search, a tenth of that."""
        wall = float(self._order.config.number("debug", "stonewall-time") or 0)
        took = {row.phase.part: row.seconds for row in self._rows if row.phase.writes and row.seconds > 0}
        seconds = 0.0
        for phase in self._phases[len(self._rows) - 1 :]:
            share = 0.1 if phase.tool == "find" else 1.0 if phase.is_measured else 0.0
            part = "mdtest-hard" if phase.tool == "find" else phase.part
            at_wall = phase.writes or phase.name == "ior-rnd4K-easy-read"
            seconds += wall if at_wall else share * took.get(part, wall)
        return seconds

    def _drop_caches(self, phase: Phase) -> None:
        config = self._order.config
        if not config.flag("global", "drop-caches") or not phase.is_measured:
            return
        command = ["sh", "-c", config.word("global", "drop-caches-cmd")]
        if self._order.launched:
            command = self._order.setup(self._order.tasks).launcher.arguments(command)
        code = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode
        if code != 0:
            self._paper.warn(f'Calling "{config.word("global", "drop-caches-cmd")}" returned {code}')

    def _pause(self, phase: Phase) -> None:
        folder = self._order.config.text("debug", "pause-dir")
        if folder is None:
            return
        self._paper.pair("t_pause", now(), 1)
        self._paper.note(f"Checking for pause file {folder}/{phase.name}")
        said = False
        while (Path(folder) / phase.name).exists():
            if not said:
                self._view.say(f"Waiting until {folder}/{phase.name} is removed")
                said = True
            time.sleep(0.2)

    # Afterwards

    def _stopped(self) -> None:
        self._worst, self._text = INTERRUPTED, "Interrupted; the phases that were finished are kept."
        self._rules.run_is_valid = False
        self._broken.append("Interrupted")
        self._paper.note("ERROR INVALID interrupted")

    def _tail(self) -> Outcome:
        order, paper = self._order, self._paper
        results = [(row.phase, row.figures.value) for row in self._rows]
        standard = [row.valid for row in self._rows if not row.phase.extra]
        valid = self._rules.run_is_valid and all(standard)
        score = score_of(results)
        paper.score("SCORE", score, valid, hash_of_score(score, results, valid, order.version))
        if order.extended:
            wide, every = score_of(results, extended=True), valid and all(row.valid for row in self._rows)
            paper.score("SCOREX", wide, every, hash_of_score(wide, results, every, None))
        self._view.show(f"\nThe result files are stored in the directory: {order.places.results}")
        left: list[str] = []
        if not order.dry_run:
            try:
                left = data.remove_data(order.places)
            except KeyboardInterrupt:
                left = [order.places.data]
        paper.note(f"END {now()}", 1)
        return Outcome(self._rows, score, valid, self._worst, self._text, left, self._broken)
