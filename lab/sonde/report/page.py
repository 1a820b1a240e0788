# SPDX-License-Identifier: Apache-2.0
"""What the page says, as values that the templates only lay out: one view per report, run and phase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from sonde.model.lines import Finding
from sonde.report import facts, figures, quantities
from sonde.report.definitions import RATES, Definition
from sonde.report.distributions import latency_chart, node_members, spread_chart, task_members
from sonde.report.facts import NodeView, Pairs
from sonde.report.figures import Four
from sonde.report.over_time import rate_chart, run_timeline, spark, tone
from sonde.report.reading import Run
from sonde.report.verdicts import Judged, Standing, Verdict, error_words, judge
from sonde.report.visible import one_line

_DOT = " · "
# Findings that say a number is wrong come first.
_SEVERITIES = ("invalid", "warning", "info")
_STATUS = {
    "failed": "The run failed",
    "interrupted": "The run was interrupted",
    "mismatch": "Verification found wrong data",
    "lost": "The run has no end: its engine was killed or lost, or is still at work",
}


@dataclass(frozen=True)
class SummaryRow:
    """One measured phase in the summary; `of` names its run when there are several."""

    anchor: str
    of: str
    verdict: Verdict
    tone: str
    spark: Markup


@dataclass(frozen=True)
class SummaryGroup:
    """Rows that may be compared with each other: storage numbers apart from all others."""

    standing: Standing
    tone: str
    rows: tuple[SummaryRow, ...]


@dataclass(frozen=True)
class FindingView:
    """A finding in words, with its evidence as short figures."""

    severity: str
    where: str
    text: str
    advice: str
    evidence: Pairs


@dataclass(frozen=True)
class PhaseView:
    """Everything shown of one phase."""

    anchor: str
    place: int
    id: str
    verdict: Verdict
    tone: str
    measured: bool
    figures: Pairs
    rates: tuple[tuple[Definition, str, str, str], ...]
    charts: tuple[Markup, ...]
    split: tuple[tuple[str, str, float, str], ...]
    slowest: tuple[Four, ...]
    treatments: tuple[Four, ...]
    findings: tuple[FindingView, ...]
    errors: tuple[str, ...]
    lanes: tuple[Four, ...]
    lane_words: str
    latencies: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Repeat:
    """How to do it again: what was typed, this run alone, the engine alone, and the plan."""

    typed: str
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
    facts: Pairs
    findings: tuple[FindingView, ...]
    errors: tuple[str, ...]
    timeline: Markup
    phases: tuple[PhaseView, ...]
    environment: tuple[NodeView, ...]
    more_nodes: int
    repeat: Repeat


@dataclass(frozen=True)
class PageView:
    """The whole report."""

    title: str
    lead: str
    alarms: tuple[str, ...]
    facts: Pairs
    groups: tuple[SummaryGroup, ...]
    findings: tuple[FindingView, ...]
    runs: tuple[RunView, ...]
    definitions: tuple[Definition, ...]
    several: bool


def page(runs: Sequence[Run], title: str | None) -> PageView:
    """The view of a report over these runs (one or more)."""
    several = len(runs) > 1
    rows: list[SummaryRow] = []
    views: list[RunView] = []
    for at, run in enumerate(runs, start=1):
        judged = [judge(run, phase) for phase in run.phases]
        views.append(_run_view(run, judged, at))
        rows += _rows(run, judged, at, several)
    groups = _grouped(rows)
    return PageView(
        title=title or views[0].title,
        lead=_lead(groups),
        alarms=tuple(f"{view.title}: {alarm}" if several else alarm for view in views for alarm in view.alarms),
        facts=facts.shared(runs),
        groups=groups,
        findings=_ordered(
            replace(finding, where=_DOT.join([view.title, finding.where] if finding.where else [view.title]))
            if several
            else finding
            for view in views
            for finding in view.findings
        ),
        runs=tuple(views),
        definitions=tuple(RATES.values()),
        several=several,
    )


def _lead(groups: Sequence[SummaryGroup]) -> str:
    """A warning in plain words when no number of the report is about storage."""
    standings = {group.standing for group in groups}
    if standings & {Standing.CACHE, Standing.MEMORY, Standing.SYNTHETIC} and Standing.STORAGE not in standings:
        return "None of these numbers is about storage."
    return ""


def _run_view(run: Run, judged: Sequence[Judged], at: int) -> RunView:
    views = tuple(_phase_view(run, one, at, place) for place, one in enumerate(judged, start=1))
    timeline = run_timeline(run, judged)
    own = [_finding(line) for line in run.record.findings]
    return RunView(
        anchor=f"r{at}",
        title=one_line(run.title, 200),
        id=one_line(run.head.id or run.folder.name, 120),
        archive=one_line(run.folder, 400),
        alarms=tuple(_alarms(run)),
        facts=facts.of_run(run),
        findings=_ordered([*own, *(finding for view in views for finding in view.findings)]),
        errors=tuple(error_words(line) for line in run.own_errors[:20]),
        timeline=timeline.render() if timeline else Markup(""),
        phases=views,
        environment=facts.nodes(run),
        more_nodes=max(0, len(run.machines) - facts.MOST_NODES),
        repeat=Repeat(
            facts.typed_command(run), facts.repeat_command(run), facts.engine_command(run), facts.plan_text(run)
        ),
    )


def _alarms(run: Run) -> Iterable[str]:
    if run.status != "done":
        opening = _STATUS.get(run.status, f"The run ended as “{one_line(run.status, 40)}”")
        said = one_line(run.end.text, 600)
        yield f"{opening}: {said}" if said else f"{opening}."
    yield from (one_line(one, 400) for one in run.damage)
    unfinished = [one_line(phase.id, 60) for phase in run.phases if phase.end is None]
    if unfinished:
        finished = len(run.phases) - len(unfinished)
        kept = {0: "", 1: "; the phase before it stands"}.get(finished, f"; the {finished} phases before it stand")
        yield f"Not finished: {', '.join(unfinished)}{kept}."
    if run.end.files_left:
        yield f"{quantities.plural(run.end.files_left, 'file')} left behind: sonde clean on the target removes them."


def _rows(run: Run, judged: Sequence[Judged], at: int, several: bool) -> Iterable[SummaryRow]:
    for place, one in enumerate(judged, start=1):
        if one.phase.begin.measured:
            css = tone(one.verdict.standing)
            curve = spark(one.profile, one.operations, css) if one.profile else Markup("")
            of = one_line(run.title if several else one.phase.id, 100)
            yield SummaryRow(f"r{at}p{place}", of, one.verdict, css, curve)


def _grouped(rows: Sequence[SummaryRow]) -> tuple[SummaryGroup, ...]:
    groups = []
    for standing in Standing:
        mine = tuple(row for row in rows if row.verdict.standing is standing)
        if mine:
            groups.append(SummaryGroup(standing, tone(standing), mine))
    return tuple(groups)


def _ordered(found: Iterable[FindingView]) -> tuple[FindingView, ...]:
    def rank(one: FindingView) -> int:
        return _SEVERITIES.index(one.severity) if one.severity in _SEVERITIES else len(_SEVERITIES)

    return tuple(sorted(found, key=rank))


def _finding(line: Finding) -> FindingView:
    evidence = tuple((facts.label(name), facts.shown(name, value)) for name, value in list(line.evidence.items())[:8])
    severity = line.severity if line.severity in _SEVERITIES else "info"
    text = one_line(line.text or line.id, 600)
    return FindingView(severity, one_line(line.phase or "", 80), text, one_line(line.advice, 600), evidence)


def _phase_view(run: Run, one: Judged, at: int, place: int) -> PhaseView:
    phase = one.phase
    lanes, lane_words = figures.lanes(phase)
    return PhaseView(
        anchor=f"r{at}p{place}",
        place=place,
        id=one_line(phase.id, 80),
        verdict=one.verdict,
        tone=tone(one.verdict.standing),
        measured=phase.begin.measured,
        figures=figures.of_phase(run, phase),
        rates=figures.rate_rows(phase, one.operations),
        charts=tuple(_charts(run, one)),
        split=figures.split(phase),
        slowest=figures.slowest(run, phase),
        treatments=tuple(figures.treatment(line) for line in phase.treatments),
        findings=tuple(_finding(line) for line in phase.findings),
        errors=tuple(error_words(line) for line in phase.errors[:20]),
        lanes=lanes,
        lane_words=lane_words,
        latencies=figures.latencies(phase),
    )


def _charts(run: Run, one: Judged) -> Iterable[Markup]:
    css = tone(one.verdict.standing)
    over_time = rate_chart(run, one)
    if over_time:
        yield over_time.render()
    for line in one.phase.histograms:
        latency = latency_chart(one.phase, line, css)
        if latency:
            yield latency.render()
    tasks, nodes = task_members(run, one), node_members(run, one)
    if len(tasks) > 1:
        yield spread_chart("tasks", "Rate of each task", tasks, one.operations, css).render()
    if len(nodes) > 1:
        yield spread_chart("nodes", "Rate of each node", nodes, one.operations, css).render()
