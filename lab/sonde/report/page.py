# SPDX-License-Identifier: Apache-2.0
"""The content of the page as values for the templates: one view per report, run and phase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sonde.charts.markup import Markup
from sonde.charts.study import StudySection
from sonde.findings.best_numbers import (
    BEST_NUMBER_RULE,
    NO_MEASURED_NUMBER,
    NO_STORAGE_NUMBER,
    SIMULATED_RULE,
    STORAGE_CLASSIFICATIONS,
    BestCandidate,
    describe_best,
    is_simulated,
    make_candidate,
    select_best_numbers,
)
from sonde.findings.classification import Classification, format_error_line, is_unfinished
from sonde.findings.explanations import explain_finding
from sonde.findings.irregularities import describe_irregularities
from sonde.findings.phase_summary import AssessedPhase, PhaseSummary, assess_phase
from sonde.model import quantities
from sonde.model.errors import format_as_sentence
from sonde.model.lines import Finding
from sonde.model.run import RecordedRun
from sonde.report import facts, figures
from sonde.report.definitions import RATE_DEFINITIONS, RateDefinition
from sonde.report.facts import LabelsAndValues, NodeView
from sonde.report.figures import FourTexts
from sonde.report.over_time import build_run_timeline, choose_style_class, render_sparkline
from sonde.report.sections.section import draw_sections_of_phase

# Findings that say a number is wrong come first.
_SEVERITIES = ("invalid", "warning", "info")
_STATUS_SENTENCES = {
    "failed": "The run failed",
    "interrupted": "The run was interrupted",
    "mismatch": "Verification found wrong data",
    "lost": "The run has no end: its engine was killed or lost, or is still at work",
}


@dataclass(frozen=True)
class SummaryRow:
    """One measured phase in the summary. `run` is its run's title where other rows would read the same."""

    anchor: str
    tasks: str
    run: str
    summary: PhaseSummary
    tone: str
    spark: Markup


@dataclass(frozen=True)
class SummaryGroup:
    """Groups rows that may be compared with each other: storage numbers in one group, all other numbers in another."""

    classification: Classification
    tone: str
    rows: tuple[SummaryRow, ...]


@dataclass(frozen=True)
class FindingView:
    """A finding in words, where it was made (run -> phases), and its evidence when that was one place."""

    severity: str
    id: str
    text: str
    advice: str
    explanation: str
    places: tuple[tuple[str, str], ...]
    evidence: LabelsAndValues


@dataclass(frozen=True)
class PhaseView:
    """Everything shown of one phase."""

    anchor: str
    position: int
    id: str
    tasks: str
    summary: PhaseSummary
    tone: str
    measured: bool
    figures: LabelsAndValues
    rates: tuple[tuple[RateDefinition, str, str, str], ...]
    wide: tuple[Markup, ...]
    narrow: tuple[Markup, ...]
    small: tuple[Markup, ...]
    split: tuple[tuple[str, str, float, str], ...]
    slowest: tuple[FourTexts, ...]
    treatments: tuple[FourTexts, ...]
    errors: tuple[str, ...]
    findings: tuple[tuple[str, str], ...]
    streams: tuple[FourTexts, ...]
    stream_words: str
    latencies: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class RepeatInstructions:
    """How to do it again: this run from the archive, the engine alone, and the plan."""

    run: str
    engine: str
    plan: Markup


@dataclass(frozen=True)
class RunView:
    """Everything shown of one run."""

    anchor: str
    title: str
    id: str
    archive: str
    alarms: tuple[str, ...]
    facts: LabelsAndValues
    errors: tuple[str, ...]
    timeline: Markup
    phases: tuple[PhaseView, ...]
    environment: tuple[NodeView, ...]
    more_nodes: int
    repeat: RepeatInstructions


@dataclass(frozen=True)
class PageView:
    """The whole report."""

    title: str
    lead: str
    rule: str
    weighed: str
    alarms: tuple[str, ...]
    facts: LabelsAndValues
    groups: tuple[SummaryGroup, ...]
    findings: tuple[FindingView, ...]
    runs: tuple[RunView, ...]
    definitions: tuple[RateDefinition, ...]
    several: bool
    typed: tuple[str, ...]
    before: tuple[StudySection, ...] = ()


def make_report_view(runs: Sequence[RecordedRun], title: str | None) -> PageView:
    """The view of a report over these runs (one or more)."""
    several = len(runs) > 1
    shared = facts.list_shared_facts(runs)
    rows: list[SummaryRow] = []
    views: list[RunView] = []
    numbers: list[BestCandidate] = []
    for index, run in enumerate(runs, start=1):
        assessed = [assess_phase(run, phase) for phase in run.phases]
        own_facts = tuple(pair for pair in facts.list_run_facts(run) if pair not in shared)
        same = index > 1 and facts.have_same_machines(run, runs[0])
        views.append(_make_run_view(run, assessed, index, own_facts, () if same else facts.list_node_facts(run)))
        rows += _make_summary_rows(run, assessed, index)
        numbers += [make_candidate(run, item.phase, item.summary.assessment) for item in assessed]
    groups = _group_by_classification(_drop_redundant_titles(rows))
    quoted = select_best_numbers(numbers)
    lead = _make_lead_warning(groups) if not quoted else describe_best(quoted)
    return PageView(
        title=title or _make_default_title(runs),
        lead=lead,
        rule="" if not quoted else SIMULATED_RULE if is_simulated(quoted) else BEST_NUMBER_RULE,
        weighed=_describe_number_counts(rows) if several else "",
        alarms=tuple(f"{view.title}: {alarm}" if several else alarm for view in views for alarm in view.alarms),
        facts=shared,
        groups=groups,
        findings=_merge_findings(runs, several),
        runs=tuple(views),
        definitions=tuple(RATE_DEFINITIONS.values()),
        several=several,
        typed=tuple(dict.fromkeys(command for run in runs if (command := facts.format_user_command(run)))),
    )


def _make_default_title(runs: Sequence[RecordedRun]) -> str:
    """The default title of a report."""
    if len(runs) == 1:
        return runs[0].title
    targets = list(dict.fromkeys(facts.get_target_directory(run) for run in runs))
    return f"{len(runs)} runs on {targets[0]}" if len(targets) == 1 and targets[0] else f"{len(runs)} runs"


def _make_lead_warning(summary_groups: Sequence[SummaryGroup]) -> str:
    """A warning in plain words when no number of the report is about storage."""
    classifications = {group.classification for group in summary_groups}
    if Classification.SIMULATED in classifications:
        return NO_MEASURED_NUMBER
    if classifications & {
        Classification.CACHE,
        Classification.MEMORY,
        Classification.SYNTHETIC,
    } and not classifications & {
        Classification.STORAGE,
        Classification.BURST,
        Classification.SHORT,
    }:
        return NO_STORAGE_NUMBER
    return ""


def _describe_number_counts(summary_rows: Sequence[SummaryRow]) -> str:
    """How many numbers are storage numbers, doubtful or invalid."""
    if not summary_rows:
        return ""
    assessments = [row.summary.assessment for row in summary_rows]
    stored = sum(assessment.classification in STORAGE_CLASSIFICATIONS for assessment in assessments)
    numbers = quantities.display_count_with_noun(len(assessments), "number")
    text = f"Of {numbers} {stored or 'none'} {'are' if stored > 1 else 'is'} of storage"
    counts = [
        (sum(assessment.validity == validity for assessment in assessments), validity)
        for validity in ("doubtful", "invalid")
    ]
    doubted = " and ".join(f"{count} {validity}" for count, validity in counts if count)
    if not stored and not doubted:
        return f"{text}."
    return f"{text}; {doubted or 'nothing speaks against any of them'}."


def _make_run_view(
    run: RecordedRun,
    assessed_phases: Sequence[AssessedPhase],
    run_index: int,
    fact_pairs: LabelsAndValues,
    node_views: tuple[NodeView, ...],
) -> RunView:
    timeline = build_run_timeline(run, assessed_phases)
    return RunView(
        anchor=f"r{run_index}",
        title=run.title,
        id=run.run_line.id or run.folder.name,
        archive=str(run.folder),
        alarms=tuple(_list_alarms(run)),
        facts=fact_pairs,
        errors=tuple(format_error_line(line) for line in run.run_errors[:20]),
        timeline=timeline.render() if timeline else Markup(""),
        phases=tuple(
            _make_phase_view(run, assessed_phases, run_index, position)
            for position, assessed_phases in enumerate(assessed_phases, start=1)
        ),
        environment=node_views,
        more_nodes=max(0, len(run.raw_nodes) - facts.MAX_LISTED_NODES) if node_views else 0,
        repeat=RepeatInstructions(
            facts.format_repeat_command(run), facts.format_engine_command(run), facts.format_plan(run)
        ),
    )


def _list_alarms(run: RecordedRun) -> Iterable[str]:
    if run.status != "done":
        opening = _STATUS_SENTENCES.get(run.status, f"The run ended as “{run.status}”")
        text = run.end.text
        yield format_as_sentence(f"{opening}: {text}" if text else opening)
    yield from run.damage
    names = [phase.id for phase in run.phases if is_unfinished(phase)]
    if names:
        finished = len(run.phases) - len(names)
        stored = {0: "", 1: "; the phase before it stands"}.get(finished, f"; the {finished} phases before it stand")
        yield f"Not finished: {', '.join(names)}{stored}."
    if run.end.files_left:
        files = quantities.display_count_with_noun(run.end.files_left, "file")
        yield f"{files} left behind: sonde clean on the target removes them."


def _make_summary_rows(
    run: RecordedRun, assessed_phases: Sequence[AssessedPhase], run_index: int
) -> Iterable[SummaryRow]:
    for position, item in enumerate(assessed_phases, start=1):
        if item.phase.begin.measured:
            css = choose_style_class(item.summary.classification)
            curve = render_sparkline(item.timeline, item.operations, css) if item.timeline else Markup("")
            tasks = quantities.display_count_with_noun(run.tasks, "task")
            yield SummaryRow(f"r{run_index}p{position}", tasks, run.title, item.summary, css, curve)


def _drop_redundant_titles(summary_rows: Sequence[SummaryRow]) -> tuple[SummaryRow, ...]:
    """The title of the run stays only where phases of different runs have the same words."""
    runs: dict[tuple[str, str, str], set[str]] = {}
    for row in summary_rows:
        runs.setdefault((row.summary.name, row.summary.access, row.tasks), set()).add(row.run)
    return tuple(
        row if len(runs[row.summary.name, row.summary.access, row.tasks]) > 1 else replace(row, run="")
        for row in summary_rows
    )


def _group_by_classification(summary_rows: Sequence[SummaryRow]) -> tuple[SummaryGroup, ...]:
    groups = []
    for classification in Classification:
        members = tuple(row for row in summary_rows if row.summary.classification is classification)
        if members:
            groups.append(SummaryGroup(classification, choose_style_class(classification), members))
    return tuple(groups)


def _merge_findings(runs: Sequence[RecordedRun], has_several_runs: bool) -> tuple[FindingView, ...]:
    """Findings of all runs; one that occurs in several phases is listed once, with its phases."""
    result: dict[tuple[str, str, str], list[tuple[str, Finding]]] = {}
    for run in runs:
        for line in run.all_findings:
            key = (line.severity if line.severity in _SEVERITIES else "info", line.id, line.advice)
            result.setdefault(key, []).append((run.title if has_several_runs else "", line))
    views = [_make_finding_view(severity, cases) for (severity, _, _), cases in result.items()]
    return tuple(sorted(views, key=lambda view: _SEVERITIES.index(view.severity)))


def _make_finding_view(severity: str, phases_and_findings: Sequence[tuple[str, Finding]]) -> FindingView:
    first = phases_and_findings[0][1]
    places: dict[str, list[str]] = {}
    for title, line in phases_and_findings:
        places.setdefault(title, []).append(line.phase or "")
    evidence = list(first.evidence.items())[:8] if len(phases_and_findings) == 1 else []
    return FindingView(
        severity=severity,
        id=first.id,
        text=format_as_sentence(first.text or first.id),
        advice=format_as_sentence(first.advice),
        explanation=explain_finding(first.id),
        places=tuple((title, ", ".join(phase for phase in phases if phase)) for title, phases in places.items()),
        evidence=tuple(
            (facts.make_member_label(name), facts.format_fact_with_unit(name, value)) for name, value in evidence
        ),
    )


def _make_phase_view(run: RecordedRun, assessed_phase: AssessedPhase, run_index: int, phase_position: int) -> PhaseView:
    phase = assessed_phase.phase
    drawing = draw_sections_of_phase(run, assessed_phase)
    streams, stream_words = figures.list_streams(run, phase)
    return PhaseView(
        anchor=f"r{run_index}p{phase_position}",
        position=phase_position,
        id=phase.id,
        tasks=quantities.display_count_with_noun(run.tasks, "task"),
        summary=assessed_phase.summary,
        tone=choose_style_class(assessed_phase.summary.classification),
        measured=phase.begin.measured,
        figures=figures.list_phase_figures(run, phase),
        rates=figures.list_rates(phase, assessed_phase.operations),
        wide=drawing["wide"],
        narrow=drawing["narrow"],
        small=drawing["small"],
        split=figures.list_time_of_call_kinds(phase),
        slowest=figures.list_slowest_tasks(run, phase),
        treatments=tuple(figures.make_treatment_cells(line) for line in phase.treatments),
        errors=tuple(format_error_line(line) for line in phase.errors[:20]),
        findings=(
            *((finding.severity, format_as_sentence(finding.text or finding.id)) for finding in phase.findings),
            *(
                ("info", irregularity)
                for irregularity in describe_irregularities(
                    run, phase, assessed_phase.timeline, assessed_phase.operations
                )
            ),
        ),
        streams=streams,
        stream_words=stream_words,
        latencies=figures.list_undrawn_latencies(phase),
    )
