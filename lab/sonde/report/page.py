# SPDX-License-Identifier: Apache-2.0
"""What the page says, as values that the templates only lay out: one view per report, run and phase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from sonde.charts.study import Section
from sonde.findings.best import NONE, OF_STORAGE, RULE, Number, best, best_words, number_of
from sonde.findings.remarks import remarks
from sonde.findings.standing import Standing, error_words, unfinished
from sonde.findings.verdicts import Judged, Verdict, judge
from sonde.model import quantities
from sonde.model.errors import sentence
from sonde.model.lines import Finding
from sonde.model.run import Run
from sonde.model.visible import one_line
from sonde.report import facts, figures
from sonde.report.definitions import RATES, Definition
from sonde.report.facts import NodeView, Pairs
from sonde.report.figures import Four
from sonde.report.over_time import run_timeline, spark, tone
from sonde.report.sections.section import draw

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
    """One measured phase in the summary. `run` is its run's title where other rows would read the same."""

    anchor: str
    tasks: str
    run: str
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
    """A finding in words, where it was made (run -> phases), and its evidence when that was one place."""

    severity: str
    id: str
    text: str
    advice: str
    places: tuple[tuple[str, str], ...]
    evidence: Pairs


@dataclass(frozen=True)
class PhaseView:
    """Everything shown of one phase."""

    anchor: str
    place: int
    id: str
    tasks: str
    verdict: Verdict
    tone: str
    measured: bool
    figures: Pairs
    rates: tuple[tuple[Definition, str, str, str], ...]
    wide: tuple[Markup, ...]
    narrow: tuple[Markup, ...]
    small: tuple[Markup, ...]
    split: tuple[tuple[str, str, float, str], ...]
    slowest: tuple[Four, ...]
    treatments: tuple[Four, ...]
    errors: tuple[str, ...]
    findings: tuple[tuple[str, str], ...]
    lanes: tuple[Four, ...]
    lane_words: str
    latencies: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Repeat:
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
    facts: Pairs
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
    rule: str
    weighed: str
    alarms: tuple[str, ...]
    facts: Pairs
    groups: tuple[SummaryGroup, ...]
    findings: tuple[FindingView, ...]
    runs: tuple[RunView, ...]
    definitions: tuple[Definition, ...]
    several: bool
    typed: tuple[str, ...]
    before: tuple[Section, ...] = ()


def page(runs: Sequence[Run], title: str | None) -> PageView:
    """The view of a report over these runs (one or more)."""
    several = len(runs) > 1
    shared = facts.shared(runs)
    rows: list[SummaryRow] = []
    views: list[RunView] = []
    numbers: list[Number] = []
    for at, run in enumerate(runs, start=1):
        judged = [judge(run, phase) for phase in run.phases]
        own = tuple(pair for pair in facts.of_run(run) if pair not in shared)
        same = at > 1 and facts.same_machines(run, runs[0])
        views.append(_run_view(run, judged, at, own, () if same else facts.nodes(run)))
        rows += _rows(run, judged, at)
        numbers += [number_of(run, one.phase, one.verdict.judgement) for one in judged]
    groups = _grouped(_told_apart(rows))
    quoted = best(numbers)
    lead = _lead(groups) if not quoted else best_words(quoted)
    return PageView(
        title=title or _title(runs),
        lead=lead,
        rule=RULE if quoted else "",
        weighed=_weighed(rows) if several else "",
        alarms=tuple(f"{view.title}: {alarm}" if several else alarm for view in views for alarm in view.alarms),
        facts=shared,
        groups=groups,
        findings=_findings(runs, several),
        runs=tuple(views),
        definitions=tuple(RATES.values()),
        several=several,
        typed=tuple(dict.fromkeys(words for run in runs if (words := facts.typed_command(run)))),
    )


def _title(runs: Sequence[Run]) -> str:
    """What a report is called that nobody named."""
    if len(runs) == 1:
        return one_line(runs[0].title, 200)
    targets = list(dict.fromkeys(facts.target(run) for run in runs))
    return f"{len(runs)} runs on {targets[0]}" if len(targets) == 1 and targets[0] else f"{len(runs)} runs"


def _lead(groups: Sequence[SummaryGroup]) -> str:
    """A warning in plain words when no number of the report is about storage."""
    standings = {group.standing for group in groups}
    if standings & {Standing.CACHE, Standing.MEMORY, Standing.SYNTHETIC} and not standings & {
        Standing.STORAGE,
        Standing.BURST,
        Standing.SHORT,
    }:
        return NONE
    return ""


def _weighed(rows: Sequence[SummaryRow]) -> str:
    """How many of the numbers are worth how much."""
    if not rows:
        return ""
    judged = [row.verdict.judgement for row in rows]
    stored = sum(one.standing in OF_STORAGE for one in judged)
    words = f"Of {quantities.plural(len(judged), 'number')} {stored} {'is' if stored == 1 else 'are'} of storage"
    counts = [(sum(one.verdict == verdict for one in judged), verdict) for verdict in ("doubtful", "invalid")]
    doubted = " and ".join(f"{count} {verdict}" for count, verdict in counts if count)
    return f"{words}; {doubted or 'nothing speaks against any of them'}."


def _run_view(run: Run, judged: Sequence[Judged], at: int, own: Pairs, environment: tuple[NodeView, ...]) -> RunView:
    timeline = run_timeline(run, judged)
    return RunView(
        anchor=f"r{at}",
        title=one_line(run.title, 200),
        id=one_line(run.head.id or run.folder.name, 120),
        archive=one_line(run.folder, 400),
        alarms=tuple(_alarms(run)),
        facts=own,
        errors=tuple(error_words(line) for line in run.own_errors[:20]),
        timeline=timeline.render() if timeline else Markup(""),
        phases=tuple(_phase_view(run, one, at, place) for place, one in enumerate(judged, start=1)),
        environment=environment,
        more_nodes=max(0, len(run.machines) - facts.MOST_NODES) if environment else 0,
        repeat=Repeat(facts.repeat_command(run), facts.engine_command(run), facts.plan_text(run)),
    )


def _alarms(run: Run) -> Iterable[str]:
    if run.status != "done":
        opening = _STATUS.get(run.status, f"The run ended as “{one_line(run.status, 40)}”")
        said = one_line(run.end.text, 600)
        yield sentence(f"{opening}: {said}" if said else opening)
    yield from (one_line(one, 400) for one in run.damage)
    names = [one_line(phase.id, 60) for phase in run.phases if unfinished(phase)]
    if names:
        finished = len(run.phases) - len(names)
        kept = {0: "", 1: "; the phase before it stands"}.get(finished, f"; the {finished} phases before it stand")
        yield f"Not finished: {', '.join(names)}{kept}."
    if run.end.files_left:
        yield f"{quantities.plural(run.end.files_left, 'file')} left behind: sonde clean on the target removes them."


def _rows(run: Run, judged: Sequence[Judged], at: int) -> Iterable[SummaryRow]:
    for place, one in enumerate(judged, start=1):
        if one.phase.begin.measured:
            css = tone(one.verdict.standing)
            curve = spark(one.profile, one.operations, css) if one.profile else Markup("")
            tasks = quantities.plural(run.tasks, "task")
            yield SummaryRow(f"r{at}p{place}", tasks, one_line(run.title, 60), one.verdict, css, curve)


def _told_apart(rows: Sequence[SummaryRow]) -> tuple[SummaryRow, ...]:
    """The title of the run stays only where phases of different runs have the same words."""
    runs: dict[tuple[str, str, str], set[str]] = {}
    for row in rows:
        runs.setdefault((row.verdict.name, row.verdict.detail, row.tasks), set()).add(row.run)
    return tuple(
        row if len(runs[row.verdict.name, row.verdict.detail, row.tasks]) > 1 else replace(row, run="") for row in rows
    )


def _grouped(rows: Sequence[SummaryRow]) -> tuple[SummaryGroup, ...]:
    groups = []
    for standing in Standing:
        mine = tuple(row for row in rows if row.verdict.standing is standing)
        if mine:
            groups.append(SummaryGroup(standing, tone(standing), mine))
    return tuple(groups)


def _findings(runs: Sequence[Run], several: bool) -> tuple[FindingView, ...]:
    """Findings of all runs; what was found in several places is said once, with the places."""
    found: dict[tuple[str, str, str], list[tuple[str, Finding]]] = {}
    for run in runs:
        for line in run.record.all_findings:
            key = (line.severity if line.severity in _SEVERITIES else "info", line.id, line.advice)
            found.setdefault(key, []).append((run.title if several else "", line))
    views = [_finding(severity, cases) for (severity, _, _), cases in found.items()]
    return tuple(sorted(views, key=lambda view: _SEVERITIES.index(view.severity)))


def _finding(severity: str, cases: Sequence[tuple[str, Finding]]) -> FindingView:
    first = cases[0][1]
    places: dict[str, list[str]] = {}
    for title, line in cases:
        places.setdefault(one_line(title, 120), []).append(one_line(line.phase or "", 80))
    evidence = list(first.evidence.items())[:8] if len(cases) == 1 else []
    return FindingView(
        severity=severity,
        id=one_line(first.id, 60),
        text=sentence(one_line(first.text or first.id, 600)),
        advice=sentence(one_line(first.advice, 600)),
        places=tuple((title, ", ".join(phase for phase in phases if phase)) for title, phases in places.items()),
        evidence=tuple((facts.label(name), facts.shown(name, value)) for name, value in evidence),
    )


def _phase_view(run: Run, one: Judged, at: int, place: int) -> PhaseView:
    phase = one.phase
    drawn = draw(run, one)
    lanes, lane_words = figures.lanes(run, phase)
    return PhaseView(
        anchor=f"r{at}p{place}",
        place=place,
        id=one_line(phase.id, 80),
        tasks=quantities.plural(run.tasks, "task"),
        verdict=one.verdict,
        tone=tone(one.verdict.standing),
        measured=phase.begin.measured,
        figures=figures.of_phase(run, phase),
        rates=figures.rate_rows(phase, one.operations),
        wide=drawn["wide"],
        narrow=drawn["narrow"],
        small=drawn["small"],
        split=figures.split(phase),
        slowest=figures.slowest(run, phase),
        treatments=tuple(figures.treatment(line) for line in phase.treatments),
        errors=tuple(error_words(line) for line in phase.errors[:20]),
        findings=(
            *((one.severity, sentence(one_line(one.text or one.id, 600))) for one in phase.findings),
            *(("info", words) for words in remarks(run, phase, one.profile, one.operations)),
        ),
        lanes=lanes,
        lane_words=lane_words,
        latencies=figures.latencies(phase),
    )
