# SPDX-License-Identifier: Apache-2.0
"""Public classes for comparisons, trends and the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from sonde.model.event import Event
from sonde.public.tables import Convertible, Rows
from sonde.trends.archive_comparison import ArchiveComparison
from sonde.trends.archive_gate import GateVerdict
from sonde.trends.baseline_gate import GateCheck
from sonde.trends.changes import Change
from sonde.trends.comparison import NumberComparison
from sonde.trends.environment import EnvironmentDifference
from sonde.trends.history import convert_run_time_to_utc
from sonde.trends.stated_limits import LimitCheck
from sonde.trends.survey import HistoryAnalysis, Survey
from sonde.trends.survey_text import make_history_name, summarize_survey


@dataclass(frozen=True)
class ComparedNumber:
    """One number on both sides of a comparison."""

    plan: str
    phase: str
    op: str
    system: str
    file_system: str
    unit: str
    """bytes_per_s or ops_per_s."""
    before: float
    after: float
    runs_before: int
    runs_after: int
    change: float
    """after / before − 1."""
    low: float | None
    """Lower end of the 95 % interval of the change; None with fewer than five runs on a side."""
    high: float | None
    p: float | None
    """Of the rank test, with the number of comparisons taken into account."""
    verdict: str
    """slower, faster, small change, no change seen or too few runs."""
    smallest_visible_drop: float | None
    """The drop that would probably have been seen, as a fraction."""
    about: str
    """What the number describes if that is not storage, like "cached"; else empty."""
    is_doubtful: bool
    """Whether a run has a finding against this number."""


class ComparedNumbers(Rows[ComparedNumber]):
    """The numbers of a comparison as a sequence."""

    _kinds: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("plan", "phase", "op", "system", "file_system", "unit"), "text"),
        **dict.fromkeys(("before", "after"), "float"),
        **dict.fromkeys(("runs_before", "runs_after"), "int"),
        **dict.fromkeys(("change", "low", "high", "p"), "float"),
        "verdict": "text",
        "smallest_visible_drop": "float",
        "about": "text",
        "is_doubtful": "bool",
    }


class EnvironmentDifferences(Rows[EnvironmentDifference]):
    """Members of the environment with other values on the two sides: `name`, `before`, `after` and `steady` (false if
    the value also changed within a side)."""

    _kinds: ClassVar[Mapping[str, str]] = {"name": "text", "before": "text", "after": "text", "steady": "bool"}


@dataclass(frozen=True)
class RunComparison(Convertible):
    """Two sides compared. As a table it has the columns of `numbers`."""

    before: tuple[str, ...]
    """Ids of the runs."""
    after: tuple[str, ...]
    numbers: ComparedNumbers
    environment: EnvironmentDifferences
    _comparison: ArchiveComparison = field(repr=False, compare=False)

    def _repr_html_(self) -> str:
        """HTML of the comparison page, which notebooks show."""
        from sonde.public.drawing import draw_comparison

        return draw_comparison(self._comparison)

    @property
    def slower(self) -> ComparedNumbers:
        """The numbers that became slower."""
        return ComparedNumbers([number for number in self.numbers if number.verdict == "slower"])

    @property
    def faster(self) -> ComparedNumbers:
        """The numbers that became faster."""
        return ComparedNumbers([number for number in self.numbers if number.verdict == "faster"])

    def to_arrow(self) -> Any:
        """Returns a `pyarrow.Table`, one row for each number."""
        return self.numbers.to_arrow()


@dataclass(frozen=True)
class TrendHistory:
    """The same measurement over time."""

    id: str
    name: str
    system: str
    file_system: str
    plan: str
    phase: str
    op: str
    unit: str
    """bytes/s or op/s."""
    runs: int
    level: float
    """Median since the last change."""
    latest: float
    """Median of the last three runs."""
    noise: float
    """Robust standard deviation of the logarithms."""
    smallest_visible_drop: float | None
    """The drop that ten more runs would probably show, as a fraction; None: the history is too short."""
    is_slower: bool
    """Whether it became slower within its last ten runs."""
    is_doubtful: bool
    """Whether one of its last runs has a finding against it."""


class TrendHistories(Rows[TrendHistory]):
    """Histories as a sequence."""

    _kinds: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("id", "name", "system", "file_system", "plan", "phase", "op", "unit"), "text"),
        "runs": "int",
        **dict.fromkeys(("level", "latest", "noise", "smallest_visible_drop"), "float"),
        **dict.fromkeys(("is_slower", "is_doubtful"), "bool"),
    }


@dataclass(frozen=True)
class TrendChange:
    """One history changed its level."""

    history: str
    """The id of the history."""
    name: str
    last_before: datetime
    """Start of the last run at the old level."""
    first_after: datetime
    noticed: datetime
    """Start of the run with which the detectors noticed it."""
    change: float
    """new / old level − 1."""
    low: float | None
    high: float | None
    is_temporary: bool
    """Whether later runs reversed at least half of it."""
    joint: int
    """Changes with the same number happened together."""


class TrendChanges(Rows[TrendChange]):
    """Changes as a sequence, in the order in which they happened."""

    _kinds: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("history", "name"), "text"),
        **dict.fromkeys(("last_before", "first_after", "noticed"), "time"),
        **dict.fromkeys(("change", "low", "high"), "float"),
        "is_temporary": "bool",
        "joint": "int",
    }


@dataclass(frozen=True)
class TrendResult(Convertible):
    """All histories of an archive and their changes. As a table it has the columns of `histories`."""

    summary: str
    """What changed, in a sentence."""
    histories: TrendHistories
    changes: TrendChanges
    short_histories: int
    """Histories that have too few runs to be watched."""
    _survey: Survey = field(repr=False, compare=False)
    _measure: str = field(repr=False)
    _events: Sequence[Event] = field(repr=False, compare=False)

    def _repr_html_(self) -> str:
        """HTML of the page of the histories, which notebooks show."""
        from sonde.public.drawing import render_survey_page

        return render_survey_page(self._survey, self._measure, self._events)

    @property
    def slower(self) -> TrendHistories:
        """The histories that became slower within their last ten runs."""
        return TrendHistories([history for history in self.histories if history.is_slower])

    def to_arrow(self) -> Any:
        """Returns a `pyarrow.Table`, one row for each history."""
        return self.histories.to_arrow()


@dataclass(frozen=True)
class GateNumber:
    """One number of a run, checked."""

    phase: str
    op: str
    """Empty for a stated limit."""
    measured: tuple[float, ...]
    """Of the run and its repetitions."""
    limit: float
    usual: float | None
    """Median of the baseline; None for a stated limit."""
    is_good: bool | None
    """None: not judged."""
    not_judged: str
    """Why it is not judged; empty for a verdict."""


class GateNumbers(Rows[GateNumber]):
    """Checked numbers as a sequence; in tables `measured` is the last value."""

    _kinds: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("phase", "op"), "text"),
        **dict.fromkeys(("measured", "limit", "usual"), "float"),
        "is_good": "bool",
        "not_judged": "text",
    }

    @staticmethod
    def _to_row(gate_number: GateNumber) -> Mapping[str, Any]:
        return {**vars(gate_number), "measured": gate_number.measured[-1] if gate_number.measured else None}


@dataclass(frozen=True)
class GateResult(Convertible):
    """The verdict of the gate on a run and its repetitions. As a table it has the columns of `numbers`."""

    is_good: bool | None
    """None: nothing could be judged."""
    runs: tuple[str, ...]
    """Ids of the run and its repetitions."""
    numbers: GateNumbers

    def to_arrow(self) -> Any:
        """Returns a `pyarrow.Table`, one row for each number."""
        return self.numbers.to_arrow()

    def describe(self) -> str:
        """A sentence for each number that is too slow or not judged; empty if all are good."""
        sentences = []
        for number in self.numbers:
            if number.is_good is False:
                measured = ", ".join(f"{value:.4g}" for value in number.measured)
                usual = f"; the usual value is {number.usual:.4g}" if number.usual is not None else ""
                sentences.append(f"{number.phase}: too slow: {measured}, and the limit is {number.limit:.4g}{usual}.")
            elif number.is_good is None:
                sentences.append(f"{number.phase}: not judged: {number.not_judged}.")
        return " ".join(sentences)


def make_comparison(comparison: ArchiveComparison) -> RunComparison:
    """Returns the public form of a comparison."""
    numbers = comparison.numbers
    return RunComparison(
        tuple(run.id for run in numbers.before.runs),
        tuple(run.id for run in numbers.after.runs),
        ComparedNumbers(
            [_make_compared_number(item, bool(numbers.list_caveats_of_number(item))) for item in numbers.numbers]
        ),
        EnvironmentDifferences(comparison.environment),
        comparison,
    )


def _make_compared_number(number_comparison: NumberComparison, is_doubtful: bool) -> ComparedNumber:
    before, after = number_comparison.levels_before_and_after
    low, high = (
        None if end is None else end - 1 for end in (number_comparison.ratio.low, number_comparison.ratio.high)
    )
    return ComparedNumber(
        **{name: getattr(number_comparison.key, name) for name in ("phase", "op", "system", "file_system", "unit")},
        plan=number_comparison.plan,
        before=before,
        after=after,
        runs_before=len(number_comparison.before),
        runs_after=len(number_comparison.after),
        change=number_comparison.ratio.value - 1,
        low=low,
        high=high,
        p=number_comparison.p,
        verdict=number_comparison.verdict,
        smallest_visible_drop=number_comparison.visible,
        about=number_comparison.classification_text,
        is_doubtful=is_doubtful,
    )


def convert_survey_to_trends(survey: Survey, measure: str, events: Sequence[Event]) -> TrendResult:
    """Returns the public form of a survey."""
    changes = [
        _make_trend_change(survey, change, position)
        for position, joint in enumerate(sorted(survey.joint, key=lambda item: item.begin_time))
        for change in joint.changes
    ]
    return TrendResult(
        summarize_survey(survey),
        TrendHistories([_make_trend_history(survey, item) for item in survey.analyses]),
        TrendChanges(sorted(changes, key=lambda change: change.first_after)),
        survey.short,
        survey,
        measure,
        events,
    )


def _make_trend_history(survey: Survey, history_analysis: HistoryAnalysis) -> TrendHistory:
    labels = history_analysis.history.labels
    return TrendHistory(
        id=labels.get("history", ""),
        name=make_history_name(history_analysis.history, survey.distinguishing_labels),
        system=labels.get("system", ""),
        file_system=labels.get("file_system", ""),
        plan=labels.get("experiment", ""),
        phase=labels.get("phase", ""),
        op=labels.get("operation", ""),
        unit=history_analysis.history.unit,
        runs=len(history_analysis.history),
        level=history_analysis.current_level,
        latest=history_analysis.now,
        noise=history_analysis.noise,
        smallest_visible_drop=history_analysis.visible,
        is_slower=history_analysis.is_newly_slower,
        is_doubtful=bool(history_analysis.caveats),
    )


def _make_trend_change(survey: Survey, change: Change, joint_change_number: int) -> TrendChange:
    history = survey.histories[change.history]
    low, high = (None if end is None else end - 1 for end in (change.size.low, change.size.high))
    return TrendChange(
        history=history.labels.get("history", ""),
        name=make_history_name(history, survey.distinguishing_labels),
        last_before=convert_run_time_to_utc(change.last_before),
        first_after=convert_run_time_to_utc(change.first_after),
        noticed=convert_run_time_to_utc(change.noticed),
        change=change.size.value - 1,
        low=low,
        high=high,
        is_temporary=change.is_temporary,
        joint=joint_change_number,
    )


def make_gate_result(verdict: GateVerdict[Any]) -> GateResult:
    """Returns the public form of a verdict."""
    numbers = [_make_gate_number(check) for check in verdict.checks]
    return GateResult(verdict.is_good, tuple(run.id for run in verdict.now.runs), GateNumbers(numbers))


def _make_gate_number(gate_or_limit_check: GateCheck | LimitCheck) -> GateNumber:
    is_good = None if gate_or_limit_check.not_judged else not gate_or_limit_check.is_too_slow
    if isinstance(gate_or_limit_check, GateCheck):
        return GateNumber(
            gate_or_limit_check.key.phase,
            gate_or_limit_check.key.op,
            gate_or_limit_check.measured,
            gate_or_limit_check.limit,
            gate_or_limit_check.usual,
            is_good,
            gate_or_limit_check.not_judged,
        )
    return GateNumber(
        gate_or_limit_check.phase,
        "",
        tuple(gate_or_limit_check.measured),
        gate_or_limit_check.least,
        None,
        is_good,
        gate_or_limit_check.not_judged,
    )
