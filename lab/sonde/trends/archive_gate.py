# SPDX-License-Identifier: Apache-2.0
"""The gate on runs of an archive: checks a run against a baseline or limits, and repeats it while it is too slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sonde.conduct.run import RunSetup, conduct_run, make_engine_failure
from sonde.launch.engine import find_engine
from sonde.launch.launchers.list import LOCAL, make_launcher
from sonde.launch.session import LineObserver
from sonde.model.errors import EXIT_OK, UserError
from sonde.model.plan import Plan, read_plan_document
from sonde.model.simulation import is_simulated_document
from sonde.store.archive import Archive
from sonde.store.summary import PLAN_FILE, Summary, read_summary
from sonde.trends.baseline_gate import GateCheck, check_against_baseline
from sonde.trends.sides import BASELINE_PREFIX, ComparedSide, find_compared_side, require_runs_of_same_origin
from sonde.trends.stated_limits import LimitCheck, StatedLimit, check_limit_against_runs

RETEST_ROLE = "retest"  # role of a run that repeats a slow run
_BASELINE_ORIGIN_HINT = "Set a baseline of runs of the same origin with `sonde baseline set`."

GateCheckType = TypeVar("GateCheckType", GateCheck, LimitCheck)
RepeatRun = Callable[[Summary], Summary]


@dataclass(frozen=True)
class GateVerdict(Generic[GateCheckType]):
    """The checks of a run and its repetitions. `reference` is the baseline; None for stated limits."""

    now: ComparedSide
    checks: Sequence[GateCheckType]
    reference: ComparedSide | None = None

    @property
    def is_good(self) -> bool | None:
        """Whether no number is too slow. None: no number of a baseline, or not every limit, could be judged."""
        if any(item.is_too_slow for item in self.checks):
            return False
        missing = [bool(item.not_judged) for item in self.checks]
        is_missing = all(missing) if self.reference is not None else any(missing)
        return None if is_missing else True


def gate_against_baseline(
    archive: Archive, run_reference: str, baseline_reference: str, max_retests: int, repeat_run: RepeatRun
) -> GateVerdict[GateCheck]:
    """Checks the runs against the baseline. While a number is too slow, its plan is repeated with `repeat_run`, up to
    `max_retests` times.

    `baseline_reference` is the name of a baseline, or a side as `find_compared_side` reads it. Raises UserError, and
    NothingComparedError if both have no number in common.
    """
    reference = find_compared_side(archive, _resolve_baseline(archive, baseline_reference))
    now = find_compared_side(archive, run_reference)
    reference = ComparedSide(
        reference.name, tuple(item for item in reference.runs if item.id not in {current.id for current in now.runs})
    )
    if not reference.runs:
        raise UserError(f"{reference.name} holds no other run than the one to be judged.")
    reference, now = require_runs_of_same_origin(reference, now, _BASELINE_ORIGIN_HINT)

    def check_side(side: ComparedSide) -> GateVerdict[GateCheck]:
        return GateVerdict(side, check_against_baseline(reference, side), reference)

    return _repeat_slow_runs(now, check_side, max_retests, repeat_run)


def gate_against_limits(
    archive: Archive, run_reference: str, limits: Sequence[StatedLimit], max_retests: int, repeat_run: RepeatRun
) -> GateVerdict[LimitCheck]:
    """Checks the runs against stated limits. While a number is too slow, its plan is repeated with `repeat_run`, up to
    `max_retests` times. One run that reaches a limit is enough. Raises UserError."""

    def check_side(side: ComparedSide) -> GateVerdict[LimitCheck]:
        return GateVerdict(side, [check_limit_against_runs(item, side.runs) for item in limits])

    return _repeat_slow_runs(find_compared_side(archive, run_reference), check_side, max_retests, repeat_run)


def _repeat_slow_runs(
    measured_side: ComparedSide,
    check: Callable[[ComparedSide], GateVerdict[GateCheckType]],
    retest_count: int,
    repeat: RepeatRun,
) -> GateVerdict[GateCheckType]:
    verdict = check(measured_side)
    for _ in range(retest_count):
        slow_runs: list[Summary] = _find_slow_runs(measured_side, verdict.checks)
        if not slow_runs:
            break
        measured_side = ComparedSide(
            measured_side.name, (*measured_side.runs, *(repeat(run) for run in slow_runs)), measured_side.left_out
        )
        verdict = check(measured_side)
    return verdict


def _find_slow_runs(measured_side: ComparedSide, checks: Sequence[GateCheckType]) -> list[Summary]:
    """Returns for each number that is too slow the newest run that measured the number and can be repeated.

    A group holds runs of several plans: only a run of the same plan measures the number again.
    """
    runs: dict[str, Summary] = {}
    for item in checks:
        measured_by = (
            [run for run in measured_side.runs if run.id in item.runs and is_repeatable(run)]
            if item.is_too_slow
            else []
        )
        if measured_by:
            runs[measured_by[-1].id] = measured_by[-1]
    return list(runs.values())


def is_repeatable(run_summary: Summary) -> bool:
    """Returns whether the run has a plan that can be repeated on this machine: imported and simulated runs do not."""
    return (run_summary.folder / PLAN_FILE).is_file() and not is_simulated_document(run_summary.document)


def repeat_run(
    run_summary: Summary,
    archive: Archive,
    observer: LineObserver,
    on_stop: Callable[[], None] = lambda: None,
    on_begin: Callable[[Plan], None] = lambda plan: None,
) -> Summary:
    """Runs the plan of `run_summary` once more, with its launcher, and stores the run as a retest. Raises UserError if
    it fails."""
    plan_file = str(run_summary.folder / PLAN_FILE)
    plan = Plan.from_document(read_plan_document(plan_file), plan_file)
    name = str(run_summary.document.get("launcher") or LOCAL)
    ranks = run_summary.document.get("processes")
    launcher = make_launcher(
        name, ranks if isinstance(ranks, int) and name != LOCAL else 1, _get_launcher_args(run_summary)
    )
    setup = RunSetup(find_engine(), archive, launcher, None, on_stop)
    on_begin(plan)
    result = conduct_run(
        plan, setup, observer, extra_run_facts={"role": RETEST_ROLE, "group": run_summary.group or run_summary.id}
    )
    if result.exit_code != EXIT_OK:
        raise make_engine_failure(result.exit_code, result.text)
    return read_summary(result.folder)


def _resolve_baseline(archive: Archive, baseline_text: str) -> str:
    """Returns the side for the text: a plain word is the name of a baseline. Raises UserError if there is none."""
    if ":" in baseline_text or ".." in baseline_text or "/" in baseline_text:
        return baseline_text
    try:
        find_compared_side(archive, f"{BASELINE_PREFIX}{baseline_text}")
    except UserError:
        raise UserError(
            f'There is no baseline "{baseline_text}"; `sonde baseline set {baseline_text} RUN...` makes it, `sonde '
            "baseline show`"
            f" lists those there are."
        ) from None
    return f"{BASELINE_PREFIX}{baseline_text}"


def _get_launcher_args(run_summary: Summary) -> str:
    """Returns the value of --launcher-args in the run's command line."""
    command = run_summary.document.get("command")
    arguments = [str(argument) for argument in command] if isinstance(command, list) else []
    for index, argument in enumerate(arguments):
        if argument == "--launcher-args" and index + 1 < len(arguments):
            return arguments[index + 1]
        if argument.startswith("--launcher-args="):
            return argument.partition("=")[2]
    return ""
