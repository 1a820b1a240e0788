# SPDX-License-Identifier: Apache-2.0
"""What a person sees while a run goes on: a live view on a terminal, plain lines elsewhere."""

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

from sonde.model.lines import End, ErrorLine, Line, NodeLine, PhaseBegin, PhaseEnd, Progress, RunLine
from sonde.model.plan import Plan
from sonde.model.units import format_wait, parse_duration
from sonde.terminal.phase_words import phase_words, preparation, rate_text, rate_words
from sonde.terminal.spark import BLOCKS, PLAIN, sparkline

# The view is drawn as often as the engine reports, not more: it shares the cores with what is measured.
_PER_SECOND = 4
_SPARK = 24
_PLAIN_EVERY_S = 5.0


class Follower:
    """Keeps what the view needs to know of the run; knows nothing of terminals."""

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self.begin: PhaseBegin | None = None
        self.progress: Progress | None = None
        self.rates: deque[tuple[float, float]] = deque(maxlen=_SPARK)  # bytes/s, op/s
        self.tasks = 0
        self.nodes = 0
        self.waiting = "starting"
        self.since = time.monotonic()
        self._finished = 0

    def start(self, plan: Plan) -> None:
        """A new run begins."""
        self.__init__()  # type: ignore[misc]
        self.plan = plan

    def take(self, line: Line) -> None:
        """One line of the record."""
        match line:
            case RunLine():
                self.tasks, self.nodes = line.tasks or 0, line.nodes or 1
                self._wait_for_next()
            case PhaseBegin():
                self.begin, self.progress = line, None
                self.rates.clear()
                self.since = time.monotonic()
            case Progress():
                self.progress = line
                self.rates.append((line.bytes_per_s, line.ops_per_s))
            case PhaseEnd():
                self.begin = None
                self._finished += 1
                self._wait_for_next()
                if line.stopped_by in ("error", "interrupt"):
                    self.waiting = "ending in good order, removing our files"
            case End():
                self.waiting = "done"
            case _:
                pass

    def _wait_for_next(self) -> None:
        phases = self.plan.phases if self.plan else []
        self.since = time.monotonic()
        self.waiting = preparation(phases[self._finished]) if self._finished < len(phases) else "removing our files"

    @property
    def phase(self) -> Mapping[str, Any]:
        """The plan of the phase that runs."""
        phases = self.plan.phases if self.plan else []
        wanted = self.begin.phase if self.begin else ""
        return next((one for one in phases if one["id"] == wanted), {})

    @property
    def percent(self) -> float | None:
        """Of the phase, 0..100; None when unknown."""
        if self.progress is None:
            return 0.0
        limit = self._time_limit()
        if limit:
            return min(100.0, 100 * self.progress.phase_s / limit)
        return self.progress.percent

    @property
    def remaining(self) -> float | None:
        """Seconds until the phase ends; None when unknown."""
        if self.progress is None or self.begin is None:
            return None
        limit = self._time_limit()
        if limit:
            return max(0.0, limit - self.progress.phase_s)
        planned, recent = self.begin.planned_bytes, [rate for rate, _ in list(self.rates)[-8:]]
        speed = sum(recent) / len(recent) if recent else 0.0
        share = self.progress.percent
        if not share:
            return None
        # by what is left where bytes are moved, else by the share that is done (operations on names move none)
        seconds = self.progress.phase_s * (100 - share) / share
        if planned and speed > 0:
            seconds = max(0.0, planned - self.progress.bytes) / speed
        wall = self._stop("stonewall")
        return min(seconds, max(0.0, wall - self.progress.phase_s)) if wall else seconds

    @property
    def flushing(self) -> bool:
        """All bytes are handed over and the storage has not yet confirmed them."""
        return bool(self.progress and self.percent == 100 and not self.progress.bytes_per_s)

    def _time_limit(self) -> float | None:
        return self._stop("time")

    def _stop(self, name: str) -> float | None:
        stop = self.phase.get("stop", {})
        return parse_duration(stop[name]) if name in stop else None


class Display:
    """Shows nothing: for --json and --quiet."""

    def begin(self, title: str, number: int, count: int, plan: Plan) -> None:
        """A run starts; it is number `number` of `count` (0 of 0: one that prepares the others)."""

    def whole(self, number: int, count: int, left: float | None) -> None:
        """Said before `begin`, of many runs: the one that begins is number `number` of probably `count`, and all of
        them take about `left` seconds from now (None when that is not known)."""

    def line(self, kind: str, line: Line) -> None:
        """One line of its record."""

    def say(self, text: str) -> None:
        """A remark of ours."""

    def stopping(self) -> None:
        """A signal was passed on to the engine."""
        self.say("Stopping in good order: finished phases are kept. A second Ctrl-C ends it within seconds.")

    def close(self) -> None:
        """No more comes."""


def _heading(title: str, number: int, count: int) -> str:
    return f"{title}  ({number} of {count})" if count > 1 else title


class PlainDisplay(Display):
    """Lines for a log: one when a phase ends, and one every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._follower = Follower()
        self._shown = time.monotonic()
        self._preparing = self._prepared = False
        self._left: float | None = None

    def whole(self, number: int, count: int, left: float | None) -> None:
        self._left = left

    def begin(self, title: str, number: int, count: int, plan: Plan) -> None:
        self._follower.start(plan)
        self._shown = time.monotonic()
        self._preparing = count == 0
        if count:
            left = f", about {format_wait(self._left)} left" if self._left else ""
            self.say(f"{_heading(title, number, count)}{left}")
        elif not self._prepared:
            self._prepared = True
            self.say("Finding volumes that fit")

    def say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)

    def line(self, kind: str, line: Line) -> None:
        self._follower.take(line)
        match line:
            case PhaseEnd() if not self._preparing:
                self.say(f"  {line.phase}: {rate_words(line)}, {phase_words(line)}")
            case ErrorLine():
                self.say(f"  error: {line.text}")
            case Progress() if time.monotonic() - self._shown >= _PLAIN_EVERY_S:
                self._shown = time.monotonic()
                self.say(f"  {line.phase}: {', '.join(_progress_words(self._follower))}")
            case _:
                pass


def _progress_words(state: Follower) -> list[str]:
    words = []
    if state.percent is not None:
        words.append(f"{state.percent:.0f} %")
    if state.flushing:
        words.append("waiting for the storage to confirm (fsync)")
    elif state.rates:
        words.append(rate_text(*state.rates[-1]))
    if state.remaining is not None and not state.flushing:
        words.append(f"{format_wait(state.remaining)} left")
    return words


class LiveDisplay(Display):
    """A terminal: finished phases scroll by, the phase that runs is drawn below them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._plain = not (console.encoding or "").lower().startswith("utf")
        self._follower = Follower()
        self._width = 12
        self._placed = False  # said once where the files are
        self._preparing = False
        self._whole: tuple[int, int, float | None, float] | None = None
        self._spinner = Spinner("line" if self._plain else "dots", style="cyan")
        self._live = Live(get_renderable=self._view, console=console, refresh_per_second=_PER_SECOND, transient=True)

    def whole(self, number: int, count: int, left: float | None) -> None:
        self._whole = number, count, left, time.monotonic()

    def begin(self, title: str, number: int, count: int, plan: Plan) -> None:
        self._follower.start(plan)
        self._width = max([12, *(len(str(phase["id"])) for phase in plan.phases)])
        heading = Text(title, style="bold")
        if count > 1:
            heading.append(f"  {number} of {count}", style="dim")
        if not self._live.is_started:
            self._live.start()
        self._preparing = count == 0
        if count:
            self._above(heading)

    def line(self, kind: str, line: Line) -> None:
        self._follower.take(line)
        match line:
            case PhaseEnd() if not self._preparing:
                self._above(self._finished(line))
            case ErrorLine():
                self._above(Text(f"  {line.text}", style="red"))
            case NodeLine() if line.node == 0 and not self._preparing and not self._placed:
                self._placed = True
                self._above(Text(_place_words(line), style="dim"))
            case _:
                pass

    def say(self, text: str) -> None:
        self._above(Text(text, style="dim"))

    def _above(self, text: Text) -> None:
        """Prints what stays; the view below is drawn anew first, or it would be repeated as it was."""
        self._live.refresh()
        self._live.console.print(text)

    def close(self) -> None:
        if self._live.is_started:
            self._live.stop()

    def _finished(self, end: PhaseEnd) -> Text:
        failed = end.stopped_by in ("error", "interrupt") or bool(end.verify and end.verify.mismatches)
        mark = ("x" if failed else "-") if self._plain else ("✗" if failed else "✓")
        text = Text(f"  {mark} ", style="red" if failed else "green")
        text.append(f"{end.phase:<{self._width}}  ", style="default")
        text.append(f"{rate_words(end):>14}", style="bold default")
        text.append(f"   {phase_words(end)}", style="dim")
        return text

    def _view(self) -> RenderableType:
        state = self._follower
        if state.begin is None:
            return self._waiting_view(state)
        percent = state.percent
        known = percent is not None and not state.flushing
        rate = rate_text(*state.rates[-1]) if state.rates else ""
        in_ops = rate.endswith("op/s")
        history = [ops if in_ops else moved for moved, ops in state.rates]
        grid = Table.grid(padding=(0, 1))
        for _ in range(5):
            grid.add_column(no_wrap=True)
        grid.add_row(
            self._spinner_cell(state.begin.phase),
            ProgressBar(total=100 if known else None, completed=percent or 0, width=24, pulse=not known),
            Text(f"{percent:3.0f} %" if percent is not None else "     "),
            Text(f"{'fsync' if state.flushing else rate:>14}", style="bold"),
            Text(sparkline(history, _SPARK, PLAIN if self._plain else BLOCKS), style="cyan"),
        )
        return Group(grid, Text(self._details(state), style="dim"), *self._all())

    def _all(self) -> list[Text]:
        """Where this run stands among many."""
        if self._whole is None:
            return []
        number, count, left, since = self._whole
        words = f"    run {number} of {count}"
        if left is not None:
            still = format_wait(max(0.0, left - (time.monotonic() - since)))
            words += f"{', ' if self._plain else ' · '}about {still} left in all"
        return [Text(words, style="dim")]

    def _spinner_cell(self, name: str) -> RenderableType:
        cell = Table.grid(padding=(0, 1, 0, 0))
        cell.add_row(Text(" "), self._spinner, Text(f"{name:<{self._width}}"))
        return cell

    def _waiting_view(self, state: Follower) -> RenderableType:
        cell = Table.grid(padding=(0, 1, 0, 0))
        elapsed = time.monotonic() - state.since
        clock = f" {format_wait(elapsed)}" if elapsed >= 2 else ""
        cell.add_row(Text(" "), self._spinner, Text(f"{state.waiting}{clock}", style="dim"))
        return Group(cell, *self._all())

    def _details(self, state: Follower) -> str:
        words = []
        if state.flushing:
            words.append("all bytes handed over, waiting for the storage to confirm them")
        elif state.remaining is not None:
            words.append(f"{format_wait(state.remaining)} left")
        active = state.progress.active if state.progress else None
        some = f"{active} of " if active is not None and active < state.tasks else ""
        tasks = f"{some}{state.tasks} task{'s' if state.tasks != 1 else ''}"
        seen = state.progress.nodes_seen if state.progress and state.progress.nodes_seen is not None else state.nodes
        nodes = f"{seen} of {state.nodes} nodes" if seen != state.nodes else f"{seen} node{'s' if seen != 1 else ''}"
        words.append(f"{tasks} on {nodes}")
        return " " * 4 + " · ".join(words) if not self._plain else " " * 4 + ", ".join(words)


def _place_words(node: NodeLine) -> str:
    system = node.file_system
    where = f"{system.type} at {system.mount_point}" if system.mount_point else system.type
    return f"  on {node.host}: {where}" if where else f"  on {node.host}"


def make_display(console: Console, quiet: bool) -> Display:
    """The view that suits where messages go."""
    if quiet:
        return Display()
    return LiveDisplay(console) if console.is_terminal else PlainDisplay(console)
