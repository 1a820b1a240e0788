# SPDX-License-Identifier: Apache-2.0
"""Charts with time along the bottom: rate over time of one phase, the whole run, and the small curve in the summary."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sonde.charts.axes import Axis, amount_axis, members_axis, time_axis
from sonde.charts.plot import WIDTH, Chart, Panel, Tip, fixed, table
from sonde.findings.judgement import rate_words
from sonde.findings.profile import Profile
from sonde.findings.standing import Standing
from sonde.findings.verdicts import Judged, Verdict
from sonde.model import quantities
from sonde.model.lines import Rates
from sonde.model.record import PhaseRecord
from sonde.model.run import Run

MOST_TIPS = 80
# Quartiles and a median of fewer tasks only repeat the slowest and the fastest.
FEWEST_FOR_QUANTILES = 4
_CLASS = {Standing.STORAGE: "good", Standing.BURST: "good", Standing.INVALID: "bad", Standing.FAILED: "bad"}


def tone(standing: Standing) -> str:
    """Style class of a standing: good (a storage number), bad, or dull (a number about something else)."""
    return _CLASS.get(standing, "dull")


def spark(profile: Profile, operations: bool, css: str) -> Markup:
    """The curve of the total rate without axes, from zero, for a line of the summary."""
    rates = profile.ops_per_s if operations else profile.bytes_per_s
    group = max(1, -(-len(rates) // 60))
    values: list[float | None] = []
    edges = [*profile.edges[:-1:group], profile.edges[-1]]
    for at in range(0, len(rates), group):
        part = rates[at : at + group]
        values.append(sum(part) / len(part))
    top = max((value or 0.0 for value in values), default=0.0) or 1.0
    panel = Panel(Axis(0.0, profile.edges[-1]), Axis(0.0, top * 1.05), 40)
    panel.path("area", panel.area(edges, [0.0] * len(values), values))
    panel.path("line", panel.steps(edges, values))
    return Markup(
        '<svg class="spark {}" viewBox="0 0 1000 40" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        "{}</svg>"
    ).format(css, Markup("").join(panel.marks))


def rate_chart(run: Run, judged: Judged) -> Chart | None:
    """Rate over time of one phase: total, per task, and how many tasks were at work. None without a series."""
    phase, profile, found, operations = judged.phase, judged.profile, judged.verdict, judged.operations
    if profile is None:
        return None
    axis = time_axis(profile.edges[-1])
    rates = profile.ops_per_s if operations else profile.bytes_per_s
    unit = "op/s" if operations else "B/s"
    panels = [_total_panel(phase, profile, axis, rates, unit, found)]
    several = profile.tasks > 1 or run.tasks > 1
    spread = several and any(value is not None for value in profile.task_rate["p50"])
    if spread:
        panels.append(_task_panel(profile, axis, tone(found.standing)))
    if several:
        panels.append(_active_panel(profile, axis))
    words = f"Rate over time of phase {phase.id}, {quantities.seconds(profile.edges[-1])} long: {found.words}"
    return Chart(
        kind="rate",
        title="Rate over time",
        words=words,
        panels=panels,
        x_unit=f"{axis.unit} since the phase began",
        caption=_caption(profile, spread, tone(found.standing)),
        table=_table(profile, operations),
    )


def _total_panel(
    phase: PhaseRecord, profile: Profile, axis: Axis, rates: Sequence[float], unit: str, verdict: Verdict
) -> Panel:
    scale = amount_axis(max(rates, default=0.0), unit)
    panel = Panel(axis, scale, 150, f"All tasks together, {scale.unit}")
    low, high = profile.steady or (0.0, profile.edges[-1])
    end = profile.edges[-1]
    for start, stop, word in ((0.0, low, "warm-up"), (high, end, "tail")):
        if stop - start > 0.002 * end:
            panel.box("outside", start, stop, 0.0, scale.high)
            if stop - start > 0.12 * end:
                panel.note("", axis.at(start), word)
    css = tone(verdict.standing)
    panel.path(f"area {css}", panel.area(profile.edges, [0.0] * len(rates), list(rates)))
    panel.path(f"line {css}", panel.steps(profile.edges, list(rates)), "Rate of all tasks together")
    rates_of = phase.end.rates if phase.end else Rates()
    stonewall = rates_of.stonewall
    if stonewall is not None and 0 < stonewall.seconds < end * 0.999:
        panel.vertical("wall", stonewall.seconds)
        at = axis.at(stonewall.seconds)
        panel.note("" if at < 0.8 else "left", at, "stonewall")
    if rates_of.steady is not None and profile.steady:
        steady = rates_of.steady.ops_per_s if unit == "op/s" else rates_of.steady.bytes_per_s
        panel.horizontal("mean", min(steady, scale.high), low, high)
    panel.tips = _tips(profile, unit)
    return panel


def _task_panel(profile: Profile, axis: Axis, css: str) -> Panel:
    rates = profile.task_rate
    top = max((value for value in rates["max"] if value is not None), default=0.0)
    scale = amount_axis(top, "B/s", 3)
    panel = Panel(axis, scale, 90, f"Each task, {scale.unit}")
    panel.path(f"band all {css}", panel.area(profile.edges, rates["min"], rates["max"]), "Slowest to fastest task")
    if profile.tasks >= FEWEST_FOR_QUANTILES:
        panel.path(
            f"band half {css}", panel.area(profile.edges, rates["p25"], rates["p75"]), "Middle half of the tasks"
        )
        panel.path(f"median {css}", panel.steps(profile.edges, rates["p50"]), "Median task")
    panel.tips = _tips(profile, "task")
    return panel


def _active_panel(profile: Profile, axis: Axis) -> Panel:
    top = max(profile.active)
    scale = members_axis(max(top, 1))
    panel = Panel(axis, scale, 28, "Tasks at work")
    values = list(profile.active)
    panel.path("count", panel.area(profile.edges, [0.0] * len(values), values), "Number of tasks in their transfer")
    return panel


def _tips(profile: Profile, unit: str) -> list[Tip]:
    """One tip for every drawn interval, or for groups of them when there are many."""
    total = profile.edges[-1]
    count = len(profile.active)
    group = max(1, -(-count // MOST_TIPS))
    tips: list[Tip] = []
    for at in range(0, count, group):
        stop = min(at + group, count)
        start_s, stop_s = profile.edges[at], profile.edges[stop]
        middle = at + (stop - at) // 2
        rows = [f"{start_s:.4g}–{stop_s:.4g} s"]
        if unit == "task":
            parts = {name: values[middle] for name, values in profile.task_rate.items()}
            rows += [
                f"{name} {quantities.byte_rate(value)}"
                for name, value in (("fastest", parts["max"]), ("median", parts["p50"]), ("slowest", parts["min"]))
                if value is not None
            ]
        else:
            chosen = profile.ops_per_s if unit == "op/s" else profile.bytes_per_s
            moved = sum(chosen[i] * (profile.edges[i + 1] - profile.edges[i]) for i in range(at, stop))
            rows.append(rate_words(moved / max(stop_s - start_s, 1e-12), unit == "op/s"))
        rows.append(f"{quantities.plural(profile.active[middle], 'task')} at work")
        tips.append(Tip(start_s / total, stop_s / total, "\n".join(rows)))
    return tips


def _key(kind: str, css: str, words: str) -> Markup:
    return Markup('<span class="key {} {}"></span>{}').format(kind, css, words)


def _caption(profile: Profile, spread: bool, css: str) -> Markup:
    parts = [_key("line", css, "total")]
    if profile.steady:
        parts.append(_key("mean", "", "mean of the steady window"))
    if spread:
        if profile.tasks >= FEWEST_FOR_QUANTILES:
            parts.append(_key("median", css, "median task"))
            parts.append(_key("half", css, "middle half of the tasks (p25–p75)"))
        parts.append(_key("all", css, "slowest to fastest task"))
    width = quantities.seconds(profile.slice_s)
    slices = f"Slices of {width}"
    if profile.joined > 1:
        slices += f", drawn {profile.joined} at a time ({quantities.seconds(profile.slice_s * profile.joined)})"
    return Markup('<span class="keys">{}</span> <span>{}.</span>').format(
        Markup("").join(Markup('<span class="ki">{}</span>').format(part) for part in parts), slices
    )


def _table(profile: Profile, operations: bool) -> Markup:
    """At most 40 rows; the record has them all."""
    count = len(profile.active)
    group = max(1, -(-count // 40))
    rows: list[Sequence[object]] = []
    for at in range(0, count, group):
        stop = min(at + group, count)
        time = max(profile.edges[stop] - profile.edges[at], 1e-12)
        weights = [profile.edges[i + 1] - profile.edges[i] for i in range(at, stop)]
        moved = sum(profile.bytes_per_s[at + i] * w for i, w in enumerate(weights)) / time
        done = sum(profile.ops_per_s[at + i] * w for i, w in enumerate(weights)) / time
        cells: list[object] = [f"{profile.edges[at]:.4g}–{profile.edges[stop]:.4g} s", quantities.byte_rate(moved)]
        cells.append(quantities.operation_rate(done))
        for name in ("min", "p50", "max"):
            known = [value for value in profile.task_rate[name][at:stop] if value is not None]
            cells.append(quantities.byte_rate(sum(known) / len(known)) if known else "")
        cells.append(quantities.count(max(profile.active[at:stop])))
        rows.append(cells)
    columns = ["Time", "Total", "Operations", "Slowest task", "Median task", "Fastest task", "Tasks"]
    return table(columns, rows, "Rate over time")


Timed = tuple[Judged, float, float]


def run_timeline(run: Run, phases: Sequence[Judged]) -> Chart | None:
    """The whole run: what was done when, treatments included, and the total rate. None when nothing has a time."""
    known: list[Timed] = [(judged, *_span(judged.phase)) for judged in phases]
    last = max((stop for _, _, stop in known), default=0.0)
    if last <= 0:
        return None
    # Removing files may take longer than all phases; it is said, not drawn.
    after = max(0.0, run.end.t - last)
    end = last * 1.02 if after > 0.1 * last else last + after
    axis = time_axis(end)
    rates = _run_rates(known, axis)
    bars = _run_phases(known, axis)
    words = "The run in time: " + ", ".join(
        f"{one.phase.id} from {quantities.seconds(start)} to {quantities.seconds(stop)}" for one, start, stop in known
    )
    return Chart(
        kind="timeline",
        title="",
        words=words,
        panels=[rates, bars] if rates else [bars],
        x_unit=f"{axis.unit} since the run began",
        caption=Markup(
            '<span class="keys"><span class="ki"><span class="key line"></span>storage</span><span class="ki">'
            '<span class="key dull"></span>not a storage number</span><span class="ki"><span class="key treat"></span>'
            "treatment before a phase</span></span> <span>{}</span>"
        ).format(_gaps(after)),
        table=_timeline_table(known),
    )


def _gaps(after: float) -> str:
    """What the drawing does not show."""
    cleaning = f" Clean-up afterwards took {quantities.seconds(after)}." if after > 0.05 else ""
    return f"Gaps are preparation and barriers.{cleaning}"


def _span(phase: PhaseRecord) -> tuple[float, float]:
    last = [phase.begin.t, *(line.t for line in phase.errors)]
    if phase.progress:
        last.append(phase.progress.t)
    return phase.begin.t, phase.end.t if phase.end else max(last)


def _run_rates(known: Sequence[Timed], axis: Axis) -> Panel | None:
    top = max((max(one.profile.bytes_per_s) for one, _, _ in known if one.profile), default=0.0)
    if top <= 0:
        return None
    scale = amount_axis(top, "B/s", 3)
    panel = Panel(axis, scale, 90, f"All tasks together, {scale.unit}")
    for one, start, stop in known:
        # A backend with a clock of its own (paced) has slices that the run's time does not know.
        if one.profile is None or one.profile.edges[-1] > 1.5 * (stop - start):
            continue
        # Slices count from the common start, a little after phase_begin was written; the end is known better.
        elapsed = one.phase.end.seconds.elapsed if one.phase.end else None
        origin = start if elapsed is None else max(start, stop - elapsed)
        edges = [origin + edge for edge in one.profile.edges]
        rates = list(one.profile.bytes_per_s)
        css = tone(one.verdict.standing)
        panel.path(f"area {css}", panel.area(edges, [0.0] * len(rates), rates))
        panel.path(f"line {css}", panel.steps(edges, rates), one.phase.id)
    return panel


def _run_phases(known: Sequence[Timed], axis: Axis) -> Panel:
    panel = Panel(axis, Axis(0.0, 1.0), 34, "")
    tips: list[Tip] = []
    for place, (one, start, stop) in enumerate(known, start=1):
        phase, found = one.phase, one.verdict
        for line in phase.treatments:
            begun = max(0.0, line.t - (line.seconds or 0.0))
            _bar(panel, f"treat {line.outcome}", begun, line.t, 0.68)
            tips.append(Tip(axis.at(begun), axis.at(line.t), f"{line.kind}: {line.outcome}"))
        _bar(panel, f"span {tone(found.standing)}{'' if phase.begin.measured else ' prepare'}", start, stop, 1.0)
        room = axis.at(stop) - axis.at(start)
        if room > 0.025:
            css = "on" if phase.begin.measured else "on prepare"
            panel.name_bar(css, start, stop, f"{place} {phase.id}" if room > 0.12 else f"{place}")
        rate = f"{found.rate}\n" if found.rate else ""
        tips.append(Tip(axis.at(start), axis.at(stop), f"{place} {phase.id}\n{rate}{quantities.seconds(stop - start)}"))
    panel.tips = tips
    return panel


def _bar(panel: Panel, css: str, start: float, stop: float, tall: float) -> None:
    """A bar at least two thousandths wide, so that what was short is still seen."""
    left, right = panel.px(start), panel.px(stop)
    right = min(WIDTH, max(right, left + 2))
    top = (1 - tall) * panel.height / 2
    bottom = panel.height - top
    panel.path(css, f"M{fixed(left)} {fixed(top)}H{fixed(right)}V{fixed(bottom)}H{fixed(left)}Z")


def _timeline_table(known: Sequence[Timed]) -> Markup:
    rows: list[Sequence[object]] = []
    for one, start, stop in known:
        for line in one.phase.treatments:
            took = line.seconds or 0.0
            name = f"{line.kind} ({line.outcome})"
            rows.append((name, f"{max(0.0, line.t - took):.3f}", f"{line.t:.3f}", quantities.seconds(took), ""))
        spent = quantities.seconds(stop - start)
        rows.append((one.phase.id, f"{start:.3f}", f"{stop:.3f}", spent, one.verdict.rate or ""))
    return table(["What", "From, s", "To, s", "Took", "Rate"], rows, "The run in time")
