# SPDX-License-Identifier: Apache-2.0
"""Sentences on histories and changes, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from sonde.model.units import format_count_with_noun
from sonde.trends.changes import Change, JointChange, JointChangePart
from sonde.trends.comparison_text import format_change_percent, format_history_rate
from sonde.trends.history import History, convert_run_time_to_utc
from sonde.trends.run_caveats import CaveatCount
from sonde.trends.scope import JointChangeExplanation, Scope
from sonde.trends.survey import MIN_HISTORY_RUNS, HistoryAnalysis, Survey

_MAX_LISTED_HISTORIES = 6
# Labels in the order in which people say them.
_DESCRIBED_LABELS = ("experiment", "phase", "operation", "cache", "system", "node_class", "file_system")
# What several of one label are called, where it is said how many of them a description spans.
_PLURAL_LABELS = {"system": "systems", "node_class": "kinds of node", "file_system": "file systems"}
_CAUSE_PHRASES = {
    "clients": "points to what all file systems share for this kind of access: client software, its settings, the test",
    "storage": "points to that storage: its servers, disks, network or filling",
    "machine": "points to that machine: its clients or its network rather than the storage",
    "machine or storage": "points to that machine or its storage, which were measured together only",
    "test": "points to this kind of access; with one file system measured, clients and servers cannot be told apart",
    "everything": "points to what all of it shares: network, power, clocks, or how it is measured",
    "unknown": "does not point to one place",
}


def summarize_survey(survey: Survey) -> str:
    """The first sentences: whether anything is slower now, what speaks against its runs, what could not be judged."""
    short = describe_caveats(survey)
    if survey.simulated:
        short += (
            f" {format_count_with_noun(survey.simulated, 'simulated history')} "
            f"{'is' if survey.simulated == 1 else 'are'} left out."
        )
    if not survey.analyses:
        return f"Nothing can be said: {_describe_short_histories(survey.short)}{short}"
    if survey.short:
        more_histories = format_count_with_noun(survey.short, "more history")
        short += f" {more_histories} with fewer than {MIN_HISTORY_RUNS} runs cannot be judged."
    slower = [analysis for analysis in survey.analyses if analysis.is_newly_slower]
    remaining = len(survey.analyses) - len(slower)
    if not slower:
        blind = sum(analysis.visible is None for analysis in survey.analyses)
        unseen = f" Of {blind} it is not known what drop would show: too few runs." * (blind > 0)
        none = f"None of {format_count_with_noun(remaining, 'history')} became slower within its last ten runs."
        return f"{none}{_describe_still_slower(survey)}{unseen}{short}"
    names = [
        f"{make_history_name(item.history, survey.distinguishing_labels)} {format_change(item.changes[-1])}"
        f" since {convert_run_time_to_utc(item.changes[-1].first_after):%Y-%m-%d}"
        for item in slower[:6]
    ]
    more = f"; and {len(slower) - 6} more" * (len(slower) > 6)
    return (
        f"Slower now: {'; '.join(names)}{more}. {format_count_with_noun(remaining, 'other history')} did not become "
        "slower."
        f"{_describe_still_slower(survey)}{short}"
    )


def _describe_short_histories(short_history_count: int) -> str:
    """A sentence that every history is too short to be judged."""
    if short_history_count == 0:
        return "there is no history of measured runs yet."
    if short_history_count == 1:
        return f"the only history has fewer than {MIN_HISTORY_RUNS} runs."
    return f"all {short_history_count:,} histories have fewer than {MIN_HISTORY_RUNS} runs."


def _describe_still_slower(survey: Survey) -> str:
    """Names the histories that have not recovered from an earlier drop; empty if all have."""
    still = [item for item in survey.analyses if item.is_still_slower]
    if not still:
        return ""
    names = [
        f"{make_history_name(item.history, survey.distinguishing_labels)} {format_dated_change(item.changes[-1])}"
        for item in still[:_MAX_LISTED_HISTORIES]
    ]
    more = f"; and {len(still) - _MAX_LISTED_HISTORIES} more" * (len(still) > _MAX_LISTED_HISTORIES)
    return (
        f" {format_count_with_noun(len(still), 'history')} did not recover from an earlier drop: "
        f"{'; '.join(names)}{more}."
    )


def format_utc_day(unix_time: float) -> str:
    """The day (UTC)."""
    return f"{convert_run_time_to_utc(unix_time):%Y-%m-%d}"


def format_joint_dates(joint_change: JointChange) -> str:
    """When a joint change happened: its time, or first and last day where its members have several."""
    first, last = format_utc_day(joint_change.begin_time), format_utc_day(joint_change.end_time)
    return (
        f"{convert_run_time_to_utc(joint_change.begin_time):%Y-%m-%d %H:%M}" if first == last else f"{first} to {last}"
    )


def describe_caveats(survey: Survey) -> str:
    """Caveats of the last runs of the slower histories, or of all histories if none is slower; "" without caveats."""
    kinds: dict[str, list[tuple[bool, CaveatCount]]] = {}
    for analysis in survey.analyses:
        for caveat in analysis.caveats:
            kinds.setdefault(caveat.id, []).append((analysis.is_newly_slower, caveat))
    text = ""
    for kind, having in kinds.items():
        slower = any(is_slower for is_slower, _ in having)
        caveats = [caveat for is_slower, caveat in having if is_slower == slower]
        of = sum(analysis.is_newly_slower or not slower for analysis in survey.analyses)
        most = max(caveats, key=lambda caveat: caveat.runs / caveat.of)
        often = (
            f"in {most.runs} of its last {most.of} runs"
            if len(caveats) == 1
            else (f"in up to {most.runs} of their last {most.of} runs")
        )
        which = f"{len(caveats)} of {format_count_with_noun(of, 'slower history' if slower else 'history')}"
        text += f" Doubtful, {which}: {most.text.rstrip('.') or kind} ({often})."
    return text


def format_caveat_share(analysis: HistoryAnalysis) -> str:
    """ "4 of 10": how many of its last runs are doubtful, for the kind of caveat most of them have; "" for none."""
    most = max(analysis.caveats, key=lambda caveat: caveat.runs / caveat.of, default=None)
    return f"{most.runs} of {most.of}" if most else ""


def describe_joint_change(survey: Survey, joint_change: JointChange) -> list[str]:
    """Describes a joint change, one sentence for each part."""
    return [_describe_changed_part(survey, part) for part in joint_change.parts]


def _does_scope_cover_history(scope: Scope, history: History) -> bool:
    return all(history.labels.get(name, "") == value for name, value in scope.conditions.items())


def _describe_changed_part(survey: Survey, changed_part: JointChangePart) -> str:
    scopes = changed_part.explanation.scopes
    covered = [
        item
        for item in changed_part.changes
        if any(_does_scope_cover_history(scope, survey.histories[item.history]) for scope in scopes)
    ]
    others = [item for item in changed_part.changes if item not in covered] if covered else []
    size = _describe_sizes(covered or changed_part.changes)
    if len(changed_part.changes) == 1:
        return (
            f"{make_history_name(survey.histories[changed_part.changes[0].history], survey.distinguishing_labels)} "
            f"{size}."
        )
    why = changed_part.explanation
    scope_text = " and ".join(_describe_scope(scope, survey.histories) for scope in why.scopes)
    spared = sum(scope.spared for scope in why.scopes)
    exact = f" {format_count_with_noun(spared, 'other history')} with the same labels did not change." if spared else ""
    loose = (
        f" {format_count_with_noun(why.uncovered, 'history')} of these changes have no common cause."
        if why.uncovered
        else ""
    )
    if others:
        share = "has" if len(others) == 1 else "have"
        loose = (
            f" {format_count_with_noun(len(others), 'other history')} {_describe_sizes(others)} and {share} no "
            "common cause."
        )
    stood = f"{why.unchanged} unchanged, or changed differently" + f", {why.unjudged} cannot be judged" * (
        why.unjudged > 0
    )
    count = format_count_with_noun(len(covered or changed_part.changes), "history")
    return (
        f"{_capitalize_unless_archive_name(scope_text)} {size} ({count}; {stood}).{exact}{loose}"
        f" It {_CAUSE_PHRASES[why.cause]} ({_describe_certainty(why)})."
    )


def _capitalize_unless_archive_name(scope_phrase: str) -> str:
    """Capitalizes a phrase that Sonde writes. A name from the archive keeps its spelling."""
    return (
        scope_phrase[:1].upper() + scope_phrase[1:]
        if scope_phrase.startswith("everything that is measured")
        else scope_phrase
    )


def _describe_certainty(explanation: JointChangeExplanation) -> str:
    return {"clear": "clear", "likely": "likely, not certain"}.get(
        explanation.certainty, "other explanations fit as well"
    )


def _describe_sizes(changes: Sequence[Change]) -> str:
    ordered = sorted(changes, key=lambda change: abs(log(change.size.value)))
    small, large = (format_change_percent(change.size.value - 1).lstrip("+−") for change in (ordered[0], ordered[-1]))
    verb = "fell" if ordered[-1].is_drop else "rose"
    by = f"by {large}" if small == large else f"by {small.removesuffix(' %')} to {large}"
    passed = sum(change.is_temporary for change in changes)
    back = "" if not passed else ", and came back" if passed == len(changes) else f", {passed} of them came back"
    return f"{verb} {by}{back}"


def _describe_scope(scope: Scope, histories: Sequence[History]) -> str:
    values = [value for name in _DESCRIBED_LABELS if (value := scope.conditions.get(name))]
    others = [
        f"{name.replace('_', ' ')} {value or 'none'}"
        for name, value in scope.conditions.items()
        if name not in _DESCRIBED_LABELS
    ]
    text = " ".join(dict.fromkeys([*values, *others])) or "everything that is measured"
    alike = [history for history in histories if _does_scope_cover_history(scope, history)]
    spans = []
    for name, (count, of) in scope.spans.items():
        if name in _PLURAL_LABELS:
            # Series that could not be judged count: "all" is said only where nothing is left open.
            total = max(of, len({history.labels.get(name, "") for history in alike} - {""}))
            number = f"all {total}" if count == total else f"{count} of {total}"
            spans.append(f"on {number} {_PLURAL_LABELS[name]}")
    return " ".join([text, *spans])


def describe_alarm_budget(survey: Survey) -> str:
    """A sentence on the expected number of false alarms and how it was calibrated."""
    calibration = survey.calibration
    rate = f"{survey.budget.alarms_per_year:g} a year and history"
    if not calibration.from_site_noise:
        return f"False alarms: settings for independent runs, until a history has 60 runs; the budget is {rate}."
    expected = (calibration.per_100_runs or 0.0) * survey.budget.runs_per_year / 100
    learned = f"learned from {format_count_with_noun(calibration.runs, 'run')}"
    text = f"False alarms: {expected:.2g} a year and history expected (budget {rate}), {learned}"
    return (
        f"{text}."
        if calibration.meets_budget
        else f"{text}: the noise of this site breaks the budget; repeat each probe."
    )


def format_history_value(rate: float, history: History) -> str:
    """A value in the unit of its history."""
    return format_history_rate(rate, history.unit)


def format_change(change: Change) -> str:
    """How large, and whether it has passed."""
    return format_change_percent(change.size.value - 1) + (" (temporary)" if change.is_temporary else "")


def format_dated_change(change: Change) -> str:
    """How large, and the day of its first run."""
    return f"{format_change(change)} since {format_utc_day(change.first_after)}"


def make_history_name(history: History, distinguishing_labels: Sequence[str]) -> str:
    """Name of a history among others: experiment, phase and operation, and the labels that differ
    (`distinguishing_labels`); nothing twice."""
    parts = [history.labels.get(name, "") for name in ("experiment", "phase", "operation", *distinguishing_labels)]
    return " · ".join(dict.fromkeys(part for part in parts if part)) or history.joined_labels
