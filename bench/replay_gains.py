#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted against proven gains: changes of calls are predicted from measured call costs, then replayed.

    bench/replay_gains.py --on DIR | --on-model SYSTEM [--blocks 5] [--write]

Runs the 56 cases below. Their names divide them into a development half and a held-out half: only the first may be
looked at when the cost model is changed. A prediction counts as right when it differs from the proven gain by at most
25 % of it, or when both are below 5 % of the time in calls, which is not worth a change. Cases whose calibrations
disagree are not predicted (`GainShare.is_precise`), and are counted apart. `--write` replaces the table
in docs/tasks/replay.md.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sonde.advise.call_costs import CallCosts, make_calibration_phases, read_call_costs
from sonde.advise.call_log import CallKind, CallLog, Calls, make_blank_calls
from sonde.advise.proof import GainShare, predict_gain_from_costs
from sonde.advise.replay_changes import (
    REPLAY_BUFFER_BYTES,
    ReplayChange,
    merge_consecutive_calls,
    merge_files_of_all_tasks,
    remove_reopens,
    split_shared_files_by_task,
)
from sonde.advise.replay_plan import ReplayRequest, build_replay, make_calibration_plan, read_replayed_io_seconds
from sonde.cli.replay_runs import ReplayRunner, open_replay_runner
from sonde.store.archive import Archive

PAGE = Path(__file__).parent.parent / "docs" / "tasks" / "replay.md"
CALIBRATIONS = 5
BYTES_OF_TASK, MAX_SYNTHESIZED_CALLS = 8 << 20, 2000
WITHIN, WORTH = 0.25, 0.05


@dataclass(frozen=True)
class GainCase:
    """Calls before and after one change."""

    change: str
    name: str
    before: CallLog
    after: CallLog

    @property
    def is_held_out(self) -> bool:
        return zlib.crc32(self.name.encode()) % 2 == 1


@dataclass(frozen=True)
class GainResult:
    """Gains as fractions of the time in calls."""

    case: GainCase
    prediction: GainShare
    proven: float

    @property
    def predicted(self) -> float:
        return self.prediction.value

    @property
    def is_right(self) -> bool:
        is_close = abs(self.predicted - self.proven) <= WITHIN * abs(self.proven)
        return is_close or max(abs(self.predicted), abs(self.proven)) < WORTH


def make_log(tasks: list[Calls], files: int) -> CallLog:
    return CallLog("case", "", "", [f"/case/{number}" for number in range(files)], tasks)


def make_transfers(kind: CallKind, size: int, file: int, task: int, tasks: int) -> Calls:
    """Calls of one task: every n-th of n tasks on one file."""
    calls = make_blank_calls(min(MAX_SYNTHESIZED_CALLS, BYTES_OF_TASK // size), kind, file)
    calls["offset"] = (np.arange(calls.size) * tasks + task) * size
    calls["length"] = size
    return calls


def make_reopens(size: int, files: int, task: int) -> Calls:
    """Open, append, close, in turn on several files."""
    parts = []
    for number in range(300):
        file = task * files + number % files
        write = make_blank_calls(1, CallKind.WRITE, file)
        write["offset"], write["length"] = number // files * size, size
        parts += [make_blank_calls(1, CallKind.OPEN, file), write, make_blank_calls(1, CallKind.CLOSE, file)]
    return np.concatenate(parts)


def make_case(change: str, name: str, before: CallLog, apply: Callable[[CallLog], CallLog]) -> GainCase:
    return GainCase(change, f"{change}: {name}", before, apply(before))


def list_cases() -> list[GainCase]:
    """All cases, in an order that does not matter."""
    cases = []
    for kind in (CallKind.WRITE, CallKind.READ):
        verb = kind.name.lower()
        for tasks in (1, 2):
            for size in (200, 1000, 4096, 10000, 47008):
                log = make_log([make_transfers(kind, size, task, 0, 1) for task in range(tasks)], tasks)
                name = f"{verb} {size} B, {tasks} tasks"
                cases.append(
                    make_case("buffer", name, log, lambda calls: merge_consecutive_calls(calls, REPLAY_BUFFER_BYTES))
                )
        for tasks in (2, 4):
            for size in (1000, 4096, 65536, 1 << 20):
                log = make_log([make_transfers(kind, size, 0, task, tasks) for task in range(tasks)], 1)
                cases.append(
                    make_case("file-per-rank", f"{verb} {size} B, {tasks} tasks", log, split_shared_files_by_task)
                )
                if kind is CallKind.WRITE:
                    log = make_log([make_transfers(kind, size, task, 0, 1) for task in range(tasks)], tasks)
                    cases.append(
                        make_case("shared-file", f"{verb} {size} B, {tasks} tasks", log, merge_files_of_all_tasks)
                    )
    for tasks in (1, 2):
        for files in (1, 10):
            for size in (100, 4096, 65536):
                log = make_log([make_reopens(size, files, task) for task in range(tasks)], tasks * files)
                name = f"append {size} B, {files} files, {tasks} tasks"
                cases.append(make_case("keep-open", name, log, remove_reopens))
    return cases


@dataclass
class GainBench:
    """Measures cases with one runner; each gets its own calibrations."""

    runner: ReplayRunner
    blocks: int

    def measure(self, case: GainCase) -> GainResult:
        request = ReplayRequest(self.runner.target, has_think_time=False)
        costs = self._measure_costs(case.before, request)
        replays = [build_replay(log, self.runner.folder, request) for log in (case.before, case.after)]
        seconds: list[list[float]] = [[], []]
        for block in range(self.blocks):
            for side in (0, 1) if block % 2 else (1, 0):
                record = self.runner.run_replay(replays[side].plan, "bench", {"role": "bench"}).record
                seconds[side].append(read_replayed_io_seconds(record))
        before, after = (statistics.median(side) for side in seconds)
        prediction = predict_gain_from_costs(costs, case.before, ReplayChange(case.change, "", case.after, None))
        assert prediction is not None
        return GainResult(case, prediction, 1 - after / before)

    def _measure_costs(self, log: CallLog, request: ReplayRequest) -> list[CallCosts]:
        phases = make_calibration_phases(log)
        plan = make_calibration_plan(phases, self.runner.folder, request)
        count = CALIBRATIONS if self.runner.launcher is None else 1  # a model repeats a calibration exactly
        runs = [self.runner.run_replay(plan, "costs", {"role": "bench"}) for _ in range(count)]
        return [read_call_costs(run.record, phases) for run in runs]


def print_result(result: GainResult) -> None:
    half, verdict = "held out" if result.case.is_held_out else "", "right" if result.is_right else "WRONG"
    verdict += "" if result.prediction.is_precise else ", not predicted"
    gains = f"predicted {result.prediction!s:>18}  proven {100 * result.proven:6.1f} %"
    print(f"{result.case.name:45} {half:8} {gains}  {verdict}", flush=True)


def make_table(results: list[GainResult], storage: str) -> str:
    titles = ("half", "cases", "predicted", "within 25 %", "median difference", "largest difference")
    lines = [f"| change, {storage} | {' | '.join(titles)} |", "|---|---|---|---|---|---|---|"]
    for change in [*dict.fromkeys(result.case.change for result in results), "all"]:
        for half, is_held_out in (("development", False), ("held out", True)):
            part = [r for r in results if change in (r.case.change, "all") and r.case.is_held_out == is_held_out]
            predicted = [result for result in part if result.prediction.is_precise]
            if part and not predicted:
                lines.append(f"| {change} | {half} | {len(part)} | 0 | - | - | - |")
            elif part:
                differences = [abs(result.predicted - result.proven) for result in predicted]
                right = sum(result.is_right for result in predicted)
                middle, largest = 100 * statistics.median(differences), 100 * max(differences)
                share = 100 * right / len(predicted)
                counts = f"{len(part)} | {len(predicted)} | {right} ({share:.0f} %)"
                lines.append(f"| {change} | {half} | {counts} | {middle:.0f} points | {largest:.0f} points |")
    return "\n".join(lines) + "\n"


def replace_table(storage: str, table: str) -> None:
    """Replaces the table of one storage between its markers."""
    begin, end = f"<!-- gains on {storage}: begin -->\n", f"<!-- gains on {storage}: end -->\n"
    text = PAGE.read_text()
    PAGE.write_text(text[: text.index(begin)] + begin + table + text[text.index(end) :])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on")
    parser.add_argument("--on-model")
    parser.add_argument("--only", default="", help="cases whose names contain this text")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with ExitStack() as stack:
        archive = Archive(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gains-"))))
        runner = open_replay_runner(stack, options.on, options.on_model, "", archive, True)
        bench, results = GainBench(runner, options.blocks), []
        for case in list_cases():
            if options.only not in case.name:
                continue
            result = bench.measure(case)
            results.append(result)
            print_result(result)
    storage = "a local disk" if options.on else f"the model {options.on_model}"
    table = make_table(results, storage)
    print(table)
    if options.write:
        replace_table(storage, table)


if __name__ == "__main__":
    main()
