# SPDX-License-Identifier: Apache-2.0
"""Changes the sources in small ways and looks whether the tests notice: the test of the tests.

Usage: .venv/bin/python tools/mutants.py [--module M]… [--sample N] [--seed S] [--jobs J] [--again] [--fresh] [--unit]
A fair sample of the changes of each module (tools/mutation/modules.py) is tried, one after the other, each against the
module's own tests. Outcomes go to build/mutants/results.ndjson as they come, so an interrupted run goes on where it
was; --again tries those once more that survived, --fresh all, --unit leaves out the tests that load the preload library
(minutes for each change that its unit tests do not notice). Changes that mean the same are in
tests/mutants/equivalent.toml, each with its reason. Exit code 0 when of each module at least 90 % are noticed, else 1.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import random
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mutation import cpp_changes, cpp_trial, lab_trial, limits, python_changes, results
from mutation.change import BROKEN, EQUIVALENT, KILLED, SURVIVED, TIMEOUT, SourceChange
from mutation.modules import MODULES, ROOT, Module
from mutation.results import ChangeOutcome

MUTANTS_FOLDER = ROOT / "build" / "mutants"
MIN_KILLED_SHARE = 0.9
OUTCOMES_BY_EXIT_CODE = {0: SURVIVED, 1: KILLED, 2: TIMEOUT, 3: BROKEN}


def list_changes(module: Module) -> list[SourceChange]:
    """All changes of a module."""
    make = cpp_changes.list_cpp_changes if module.program else python_changes.list_python_changes
    files = [
        (file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) for file in module.list_source_files()
    ]
    return [change for name, text in files for change in make(name, text)]


def shuffle_changes(changes: list[SourceChange], seed: int) -> list[SourceChange]:
    """Returns all changes in the order in which they are tried: one change of each line precedes the second change of
    any line, so that a table of numbers does not outweigh the code next to it."""
    list_changes_of_node = random.Random(seed)
    by_line: dict[tuple[str, int], list[SourceChange]] = {}
    for change in changes:
        by_line.setdefault((change.file, change.line), []).append(change)
    for changes_of_line in by_line.values():
        list_changes_of_node.shuffle(changes_of_line)
    rounds: list[SourceChange] = []
    for turn in range(max(map(len, by_line.values()), default=0)):
        now = [changes_of_line[turn] for changes_of_line in by_line.values() if len(changes_of_line) > turn]
        list_changes_of_node.shuffle(now)
        rounds += now
    return rounds


@dataclass
class RunningTrial:
    """A forked process that tries a change."""

    change: SourceChange
    pid: int
    collect_ended_trials: int
    """Can be read when the process has ended."""
    began: float
    watch: limits.HangWatch | None


def fork_worker(try_change: Callable[[], str], cpu_s: float) -> int:
    """Starts a process of a group of its own that does the work and says by its exit code what came out."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        limits.limit_processor(cpu_s)
        became = try_change()
        code = next(number for number, word in OUTCOMES_BY_EXIT_CODE.items() if word == became)
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class Runner:
    """Tries changes of one module, some at a time, and hands out outcomes as they come."""

    def __init__(self, module: Module, job_count: int) -> None:
        self.module, self.jobs = module, job_count
        self.running: list[RunningTrial] = []
        self.free = [*range(job_count)]
        self.slots: dict[int, int] = {}
        if module.program:
            print(f"{module.name}: building the tests as they are", flush=True)
            self.build = cpp_trial.build_test_program(module)
            folder = MUTANTS_FOLDER / "clean"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            before = limits.read_processor_s_of_children()
            if (
                cpp_trial.run_test_program(
                    cpp_trial.get_unchanged_program(self.build), module, folder, cpp_trial.MAX_UNCHANGED_CPU_S
                )
                != SURVIVED
            ):
                sys.exit(f"{module.name}: its tests fail without any change: {folder}/output.txt")
            replace_operator_between = limits.read_processor_s_of_children()
            library = cpp_trial.get_unchanged_library(self.build)
            if (
                library is not None
                and cpp_trial.run_library_tests(library, module, folder, cpp_trial.MAX_UNCHANGED_CPU_S) != SURVIVED
            ):
                sys.exit(f"{module.name}: its tests fail without any change: {folder}/by-library.txt")
            costs = replace_operator_between - before, limits.read_processor_s_of_children() - replace_operator_between
            self.allowed = cpp_trial.AllowedProcessorTime(*map(limits.compute_allowed_processor_s, costs))
        else:
            file = MUTANTS_FOLDER / f"baseline-{module.name}.json"
            self.baseline = lab_trial.read_baseline(file) if file.is_file() else None
            if (
                self.baseline is None
                or not self.baseline.good
                or self.baseline.stamp != lab_trial.hash_lab_and_tests(module)
            ):
                print(f"{module.name}: running its tests as they are", flush=True)
                file.unlink(missing_ok=True)
                pid = fork_worker(lambda: lab_trial.measure_baseline(module, file), 3600)
                os.waitpid(pid, 0)
                self.baseline = lab_trial.read_baseline(file) if file.is_file() else None
            if self.baseline is None or not self.baseline.good:
                sys.exit(f"{module.name}: its tests fail without any change: {file.with_suffix('.log')}")

    def start_trial(self, change: SourceChange) -> ChangeOutcome | None:
        """Starts to try a change; the outcome when none needs to be tried."""
        slot = self.free.pop()
        if self.module.program:
            folder = MUTANTS_FOLDER / f"work-{slot}"
            allowed = self.allowed
            pid = fork_worker(
                lambda: cpp_trial.try_cpp_change(change, self.module, self.build, folder, allowed),
                cpp_trial.MAX_BUILD_CPU_S,
            )
            watch = None  # it looks itself whether a program that it started hangs
        else:
            assert self.baseline is not None
            source = (ROOT / change.file).read_text(encoding="utf-8")
            tests = self.baseline.list_tests_of_change(change, source)
            if not tests:
                self.free.append(slot)
                return ChangeOutcome(self.module.name, change, SURVIVED, 0.0)
            cpu = limits.compute_allowed_processor_s(sum(map(self.baseline.get_seconds_of_test, tests)))
            pid = fork_worker(
                lambda: lab_trial.try_lab_change(change, tests, MUTANTS_FOLDER / f"tests-{slot}.log"), cpu
            )
            watch = limits.HangWatch(pid)
        self.slots[pid] = slot
        self.running.append(RunningTrial(change, pid, os.pidfd_open(pid), time.monotonic(), watch))
        return None

    def collect_ended_trials(self) -> list[ChangeOutcome]:
        """Waits for at least one to end, or for a second."""
        poll = select.poll()
        for running in self.running:
            poll.register(running.collect_ended_trials, select.POLLIN)
        ready = {collect_ended_trials for collect_ended_trials, _ in poll.poll(1000)}
        iterate_outcomes = []
        for running in [*self.running]:
            is_hanging = (
                running.collect_ended_trials not in ready and running.watch is not None and running.watch.is_hanging()
            )
            if running.collect_ended_trials not in ready and not is_hanging:
                continue
            became = self.end(running)
            seconds = round(time.monotonic() - running.began, 2)
            iterate_outcomes.append(
                ChangeOutcome(self.module.name, running.change, TIMEOUT if is_hanging else became, seconds)
            )
        return iterate_outcomes

    def end(self, running: RunningTrial) -> str:
        """Ends a process with its descendants; returns its output."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGKILL)
        _, status = os.waitpid(running.pid, 0)
        os.close(running.collect_ended_trials)
        self.running.remove(running)
        self.free.append(self.slots.pop(running.pid))
        if os.WIFSIGNALED(status):
            return limits.classify_exit_status(-os.WTERMSIG(status))
        return OUTCOMES_BY_EXIT_CODE[os.WEXITSTATUS(status)]

    def iterate_outcomes(self, changes: Iterator[SourceChange], max_count: int) -> Iterator[ChangeOutcome]:
        """Outcomes of the first `max_count` that compile."""
        counted = 0
        more = True
        while (more and counted < max_count) or self.running:
            while more and self.free and counted + len(self.running) < max_count:
                change = next(changes, None)
                more = change is not None
                outcome = self.start_trial(change) if change is not None else None
                if outcome is not None:
                    counted += 1
                    yield outcome
            for outcome in self.collect_ended_trials() if self.running else []:
                counted += outcome.became != BROKEN
                yield outcome

    def end_all_trials(self) -> None:
        for running in [*self.running]:
            self.end(running)


def try_module(
    module: Module,
    ordered_changes: list[SourceChange],
    options: argparse.Namespace,
    earlier_outcomes: dict[results.Key, ChangeOutcome],
) -> None:
    """Tries the first changes of a module and adds their outcomes to the results file."""
    number = options.sample or module.least
    same = results.read_equivalent_changes()
    chosen: list[SourceChange] = []
    for change in ordered_changes:
        if len(chosen) == number:
            break
        before = earlier_outcomes.get(change.key)
        if before is None or before.became != BROKEN:
            chosen.append(change)
    pending = []
    for change in chosen:
        before = earlier_outcomes.get(change.key)
        if change.key in same:
            earlier_outcomes[change.key] = ChangeOutcome(module.name, change, EQUIVALENT, 0.0)
        elif before is None or (options.again and before.became == SURVIVED):
            pending.append(change)
        else:
            earlier_outcomes[change.key] = replace(before, change=change, module=module.name)
    if not pending:
        return
    beyond = [
        change
        for change in ordered_changes
        if change not in chosen and change.key not in earlier_outcomes and change.key not in same
    ]
    runner = Runner(module, options.jobs)
    began, done, worth = time.monotonic(), 0, len(pending)
    try:
        with (MUTANTS_FOLDER / "results.ndjson").open("a", encoding="utf-8") as file:
            for outcome in runner.iterate_outcomes(iter([*pending, *beyond]), worth):
                earlier_outcomes[outcome.change.key] = outcome
                file.write(outcome.format_json_line() + "\n")
                file.flush()
                done += outcome.became != BROKEN
                remaining_s = (time.monotonic() - began) / max(1, done) * (worth - done)
                print(f"{module.name}: {done} of {worth}, {remaining_s:.0f} s to go; {outcome.became}: "
                      f"{outcome.change.file}:{outcome.change.line}", flush=True)  # fmt: skip
    finally:
        runner.end_all_trials()


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keeps a second run out of a folder: two would build and test in each other's files. The system takes the lock
    away when the process ends, however that happens; what it started does not inherit it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+", encoding="utf-8") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            sys.exit(f"mutants: process {lock.read().strip()} tries changes in {folder} already; wait for it or end it")
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def main() -> int:
    """Tries the changes, then prints those that survived and the number of detected ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", action="append", choices=[module.name for module in MODULES])
    parser.add_argument(
        "--sample", type=int, default=0, help="how many changes of each module; 60 of the lab's, 40 of C++"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", action="store_true", help="tries once more what survived")
    parser.add_argument("--fresh", action="store_true", help="forgets earlier outcomes")
    parser.add_argument("--unit", action="store_true", help="only the unit tests of the preload library")
    arguments = parser.parse_args()
    with lock_folder(MUTANTS_FOLDER):
        return try_all(arguments)


def try_all(options: argparse.Namespace) -> int:
    """Tries the selected modules one after the other; returns the exit code."""
    if options.fresh:
        (MUTANTS_FOLDER / "results.ndjson").unlink(missing_ok=True)
    lab_trial.preload_modules()
    previous = results.read_outcomes(MUTANTS_FOLDER / "results.ndjson")
    modules = [module for module in MODULES if not options.module or module.name in options.module]
    modules = [replace(module, library="") for module in modules] if options.unit else modules
    every: dict[str, int] = {}
    kept_outcomes: list[ChangeOutcome] = []
    try:
        for module in modules:
            order = shuffle_changes(list_changes(module), options.seed)
            try_module(module, order, options, previous)
            every[module.name] = len(order)
            keys = dict.fromkeys(change.key for change in order)
            tried = [previous[key] for key in keys if key in previous and previous[key].became != BROKEN]
            kept_outcomes += tried[: options.sample or module.least]
    except KeyboardInterrupt:
        print("interrupted; what was tried is kept, and the next run goes on from here")
        return 1
    for word, kind in (("by time limit", TIMEOUT), ("survived", SURVIVED)):
        for outcome in kept_outcomes:
            if outcome.became == kind:
                print(
                    f"{word}: {outcome.change.file}:{outcome.change.line}: {outcome.change.before}"
                    f"\n       → {outcome.change.after}"
                )
    print("\n".join(results.format_outcome_table(every, kept_outcomes)))
    shares = [
        results.compute_killed_share([outcome for outcome in kept_outcomes if outcome.module == module.name])[1]
        for module in modules
    ]
    return 0 if all(share >= MIN_KILLED_SHARE for share in shares) else 1


if __name__ == "__main__":
    sys.exit(main())
