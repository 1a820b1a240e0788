# SPDX-License-Identifier: Apache-2.0
"""Charts with time along the bottom: rate over time of one phase, the whole run, and the small curve in the summary."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.charts.axes import Axis, build_amount_axis, build_member_count_axis, build_time_axis
from sonde.charts.markup import Markup
from sonde.charts.plot import PLOT_WIDTH_UNITS, Chart, ChartTooltip, Panel, make_rectangle_path, render_html_table
from sonde.findings.assessment import format_phase_rate
from sonde.findings.classification import Classification
from sonde.findings.phase_summary import AssessedPhase, PhaseSummary
from sonde.findings.phase_timeline import PhaseTimeline
from sonde.model import quantities
from sonde.model.line_members import PhaseRates
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun

MAX_TOOLTIPS = 80
# Quartiles and a median of fewer tasks only repeat the slowest and the fastest.
MIN_TASKS_FOR_QUANTILES = 4
_STYLE_CLASSES = {
    Classification.STORAGE: "good",
    Classification.BURST: "good",
    Classification.INVALID: "bad",
    Classification.FAILED: "bad",
}


def choose_style_class(classification: Classification) -> str:
    """Style class of a classification: good (a storage number), bad, or dull (a number about something else)."""
    return _STYLE_CLASSES.get(classification, "dull")


def render_sparkline(timeline: PhaseTimeline, counts_operations: bool, css_class: str) -> Markup:
    """The curve of the total rate without axes, from zero, for a line of the summary."""
    rates = timeline.ops_per_s if counts_operations else timeline.bytes_per_s
    group = max(1, -(-len(rates) // 60))
    values: list[float | None] = []
    edges = [*timeline.edges[:-1:group], timeline.edges[-1]]
    for index in range(0, len(rates), group):
        part = rates[index : index + group]
        values.append(sum(part) / len(part))
    top = max((value or 0.0 for value in values), default=0.0) or 1.0
    panel = Panel(Axis(0.0, timeline.edges[-1]), Axis(0.0, top * 1.05), 40)
    panel.add_path("area", panel.make_area_path(edges, [0.0] * len(values), values))
    panel.add_path("line", panel.make_step_path(edges, values))
    return Markup(
        '<svg class="spark {}" viewBox="0 0 1000 40" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        "{}</svg>"
    ).format(css_class, Markup("").join(panel.marks))


def build_rate_chart(run: RecordedRun, assessed_phase: AssessedPhase) -> Chart | None:
    """Rate over time of one phase: total, per task, and how many tasks were at work. None without a series."""
    phase, timeline, result, operations = (
        assessed_phase.phase,
        assessed_phase.timeline,
        assessed_phase.summary,
        assessed_phase.operations,
    )
    if timeline is None:
        return None
    axis = build_time_axis(timeline.edges[-1])
    rates = timeline.ops_per_s if operations else timeline.bytes_per_s
    unit = "op/s" if operations else "B/s"
    panels = [_make_total_rate_panel(phase, timeline, axis, rates, unit, result)]
    several = timeline.tasks > 1 or run.tasks > 1
    spread = several and any(value is not None for value in timeline.task_rate["p50"])
    if spread:
        panels.append(_make_task_panel(timeline, axis, choose_style_class(result.classification)))
    if several:
        panels.append(_make_active_panel(timeline, axis))
    text = (
        f"Rate over time of phase {phase.id}, {quantities.display_seconds(timeline.edges[-1])} long: "
        f"{result.detail_text}"
    )
    return Chart(
        kind="rate",
        title="Rate over time",
        summary=text,
        panels=panels,
        x_unit=f"{axis.unit} since the phase began",
        caption=_make_caption(timeline, spread, choose_style_class(result.classification)),
        table=_make_table(timeline, operations),
    )


def _make_total_rate_panel(
    phase: PhaseRecord,
    timeline: PhaseTimeline,
    axis: Axis,
    total_rates: Sequence[float],
    rate_unit: str,
    summary: PhaseSummary,
) -> Panel:
    scale = build_amount_axis(max(total_rates, default=0.0), rate_unit)
    panel = Panel(axis, scale, 150, f"All tasks together, {scale.unit}")
    low, high = timeline.steady or (0.0, timeline.edges[-1])
    end = timeline.edges[-1]
    for start, stop, word in ((0.0, low, "warm-up"), (high, end, "tail")):
        if stop - start > 0.002 * end:
            panel.add_rectangle("outside", start, stop, 0.0, scale.high)
            if stop - start > 0.12 * end:
                panel.add_note_above_plot("", axis.scale_to_share(start), word)
    css = choose_style_class(summary.classification)
    panel.add_path(f"area {css}", panel.make_area_path(timeline.edges, [0.0] * len(total_rates), list(total_rates)))
    panel.add_path(f"line {css}", panel.make_step_path(timeline.edges, list(total_rates)), "Rate of all tasks together")
    rates_of = phase.end.rates if phase.end else PhaseRates()
    stonewall = rates_of.stonewall
    if stonewall is not None and 0 < stonewall.seconds < end * 0.999:
        panel.add_vertical_line("wall", stonewall.seconds)
        position = axis.scale_to_share(stonewall.seconds)
        panel.add_note_above_plot("" if position < 0.8 else "left", position, "stonewall")
    if rates_of.steady is not None and timeline.steady:
        steady = rates_of.steady.ops_per_s if rate_unit == "op/s" else rates_of.steady.bytes_per_s
        panel.add_horizontal_line("mean", min(steady, scale.high), low, high)
    panel.tips = _make_rate_tooltips(timeline, rate_unit)
    return panel


def _make_task_panel(timeline: PhaseTimeline, axis: Axis, css_class: str) -> Panel:
    rates = timeline.task_rate
    top = max((value for value in rates["max"] if value is not None), default=0.0)
    scale = build_amount_axis(top, "B/s", 3)
    panel = Panel(axis, scale, 90, f"Each task, {scale.unit}")
    panel.add_path(
        f"band all {css_class}",
        panel.make_area_path(timeline.edges, rates["min"], rates["max"]),
        "Slowest to fastest task",
    )
    if timeline.tasks >= MIN_TASKS_FOR_QUANTILES:
        panel.add_path(
            f"band half {css_class}",
            panel.make_area_path(timeline.edges, rates["p25"], rates["p75"]),
            "Middle half of the tasks",
        )
        panel.add_path(f"median {css_class}", panel.make_step_path(timeline.edges, rates["p50"]), "Median task")
    panel.tips = _make_rate_tooltips(timeline, "task")
    return panel


def _make_active_panel(timeline: PhaseTimeline, axis: Axis) -> Panel:
    top = max(timeline.active)
    scale = build_member_count_axis(max(top, 1))
    panel = Panel(axis, scale, 28, "Tasks at work")
    values = list(timeline.active)
    panel.add_path(
        "count", panel.make_area_path(timeline.edges, [0.0] * len(values), values), "Number of tasks in their transfer"
    )
    return panel


def _make_rate_tooltips(timeline: PhaseTimeline, rate_unit: str) -> list[ChartTooltip]:
    """One tip for every drawn interval, or for groups of them when there are many."""
    total = timeline.edges[-1]
    count = len(timeline.active)
    group = max(1, -(-count // MAX_TOOLTIPS))
    tips: list[ChartTooltip] = []
    for index in range(0, count, group):
        stop = min(index + group, count)
        start_s, stop_s = timeline.edges[index], timeline.edges[stop]
        middle = index + (stop - index) // 2
        rows = [f"{start_s:.4g}–{stop_s:.4g} s"]
        if rate_unit == "task":
            parts = {name: values[middle] for name, values in timeline.task_rate.items()}
            rows += [
                f"{name} {quantities.display_byte_rate(value)}"
                for name, value in (("fastest", parts["max"]), ("median", parts["p50"]), ("slowest", parts["min"]))
                if value is not None
            ]
        else:
            chosen = timeline.ops_per_s if rate_unit == "op/s" else timeline.bytes_per_s
            moved = sum(chosen[i] * (timeline.edges[i + 1] - timeline.edges[i]) for i in range(index, stop))
            rows.append(format_phase_rate(moved / max(stop_s - start_s, 1e-12), rate_unit == "op/s"))
        rows.append(f"{quantities.display_count_with_noun(timeline.active[middle], 'task')} at work")
        tips.append(ChartTooltip(start_s / total, stop_s / total, "\n".join(rows)))
    return tips


def _render_legend_key(mark_kind: str, css_class: str, label_text: str) -> Markup:
    return Markup('<span class="key {} {}"></span>{}').format(mark_kind, css_class, label_text)


def _make_caption(timeline: PhaseTimeline, shows_spread: bool, css_class: str) -> Markup:
    parts = [_render_legend_key("line", css_class, "total")]
    if timeline.steady:
        parts.append(_render_legend_key("mean", "", "mean of the steady window"))
    if shows_spread:
        if timeline.tasks >= MIN_TASKS_FOR_QUANTILES:
            parts.append(_render_legend_key("median", css_class, "median task"))
            parts.append(_render_legend_key("half", css_class, "middle half of the tasks (p25–p75)"))
        parts.append(_render_legend_key("all", css_class, "slowest to fastest task"))
    width = quantities.display_seconds(timeline.slice_s)
    slices = f"Slices of {width}"
    if timeline.joined > 1:
        slices += (
            f", drawn {timeline.joined} at a time ({quantities.display_seconds(timeline.slice_s * timeline.joined)})"
        )
    return Markup('<span class="keys">{}</span> <span>{}.</span>').format(
        Markup("").join(Markup('<span class="ki">{}</span>').format(part) for part in parts), slices
    )


def _make_table(timeline: PhaseTimeline, counts_operations: bool) -> Markup:
    """At most 40 rows; the record has them all."""
    count = len(timeline.active)
    group = max(1, -(-count // 40))
    rows: list[Sequence[object]] = []
    for index in range(0, count, group):
        stop = min(index + group, count)
        time = max(timeline.edges[stop] - timeline.edges[index], 1e-12)
        weights = [timeline.edges[i + 1] - timeline.edges[i] for i in range(index, stop)]
        moved = sum(timeline.bytes_per_s[index + i] * w for i, w in enumerate(weights)) / time
        done = sum(timeline.ops_per_s[index + i] * w for i, w in enumerate(weights)) / time
        cells: list[object] = [
            f"{timeline.edges[index]:.4g}–{timeline.edges[stop]:.4g} s",
            quantities.display_byte_rate(moved),
        ]
        cells.append(quantities.display_operation_rate(done))
        for name in ("min", "p50", "max"):
            values = [value for value in timeline.task_rate[name][index:stop] if value is not None]
            cells.append(quantities.display_byte_rate(sum(values) / len(values)) if values else "")
        cells.append(quantities.display_count(max(timeline.active[index:stop])))
        rows.append(cells)
    columns = ["Time", "Total", "Operations", "Slowest task", "Median task", "Fastest task", "Tasks"]
    return render_html_table(columns, rows, "Rate over time")


TimedPhase = tuple[AssessedPhase, float, float]


def build_run_timeline(run: RecordedRun, phases: Sequence[AssessedPhase]) -> Chart | None:
    """The whole run: what was done when, treatments included, and the total rate. None when nothing has a time."""
    timeds: list[TimedPhase] = [(assessed, *_get_time_span(assessed.phase)) for assessed in phases]
    last = max((stop for _, _, stop in timeds), default=0.0)
    if last <= 0:
        return None
    # Removing files may take longer than all phases: it is in the caption, not in the chart.
    after = max(0.0, run.end.t - last)
    end = last * 1.02 if after > 0.1 * last else last + after
    axis = build_time_axis(end)
    rates = _make_run_rate_panel(timeds, axis)
    bars = _make_run_phase_panel(timeds, axis)
    summary = "The run in time: " + ", ".join(
        f"{item.phase.id} from {quantities.display_seconds(start)} to {quantities.display_seconds(stop)}"
        for item, start, stop in timeds
    )
    return Chart(
        kind="timeline",
        title="",
        summary=summary,
        panels=[rates, bars] if rates else [bars],
        x_unit=f"{axis.unit} since the run began",
        caption=Markup(
            '<span class="keys"><span class="ki"><span class="key line"></span>storage</span><span class="ki">'
            '<span class="key dull"></span>not a storage number</span><span class="ki"><span class="key treat"></span>'
            "treatment before a phase</span></span> <span>{}</span>"
        ).format(_describe_missing_time(after)),
        table=_make_timeline_table(timeds),
    )


def _describe_missing_time(seconds_after: float) -> str:
    """Sentence on gaps and clean-up, which the chart does not show."""
    cleaning = f" Clean-up afterwards took {quantities.display_seconds(seconds_after)}." if seconds_after > 0.05 else ""
    return f"Gaps are preparation and barriers.{cleaning}"


def _get_time_span(phase: PhaseRecord) -> tuple[float, float]:
    last = [phase.begin.t, *(line.t for line in phase.errors)]
    if phase.progress:
        last.append(phase.progress.t)
    return phase.begin.t, phase.end.t if phase.end else max(last)


def _make_run_rate_panel(timeds: Sequence[TimedPhase], axis: Axis) -> Panel | None:
    top = max((max(timed.timeline.bytes_per_s) for timed, _, _ in timeds if timed.timeline), default=0.0)
    if top <= 0:
        return None
    scale = build_amount_axis(top, "B/s", 3)
    panel = Panel(axis, scale, 90, f"All tasks together, {scale.unit}")
    for item, start, stop in timeds:
        # A backend with a clock of its own (paced) has slices that the run's time does not know.
        if item.timeline is None or item.timeline.edges[-1] > 1.5 * (stop - start):
            continue
        # Slices count from the common start, a little after phase_begin was written; the end is known better.
        elapsed = item.phase.end.seconds.elapsed if item.phase.end else None
        origin = start if elapsed is None else max(start, stop - elapsed)
        edges = [origin + edge for edge in item.timeline.edges]
        rates = list(item.timeline.bytes_per_s)
        css = choose_style_class(item.summary.classification)
        panel.add_path(f"area {css}", panel.make_area_path(edges, [0.0] * len(rates), rates))
        panel.add_path(f"line {css}", panel.make_step_path(edges, rates), item.phase.id)
    return panel


def _make_run_phase_panel(timeds: Sequence[TimedPhase], axis: Axis) -> Panel:
    panel = Panel(axis, Axis(0.0, 1.0), 34, "")
    tips: list[ChartTooltip] = []
    for index, (item, start, stop) in enumerate(timeds, start=1):
        phase, result = item.phase, item.summary
        for line in phase.treatments:
            begun = max(0.0, line.t - (line.seconds or 0.0))
            _draw_time_bar(panel, f"treat {line.outcome}", begun, line.t, 0.68)
            tips.append(
                ChartTooltip(axis.scale_to_share(begun), axis.scale_to_share(line.t), f"{line.kind}: {line.outcome}")
            )
        _draw_time_bar(
            panel,
            f"span {choose_style_class(result.classification)}{'' if phase.begin.measured else ' prepare'}",
            start,
            stop,
            1.0,
        )
        room = axis.scale_to_share(stop) - axis.scale_to_share(start)
        if room > 0.025:
            css = "on" if phase.begin.measured else "on prepare"
            panel.add_bar_label(css, start, stop, f"{index} {phase.id}" if room > 0.12 else f"{index}")
        rate = f"{result.rate}\n" if result.rate else ""
        tips.append(
            ChartTooltip(
                axis.scale_to_share(start),
                axis.scale_to_share(stop),
                f"{index} {phase.id}\n{rate}{quantities.display_seconds(stop - start)}",
            )
        )
    panel.tips = tips
    return panel


def _draw_time_bar(panel: Panel, css_class: str, start_s: float, stop_s: float, height: float) -> None:
    """A bar at least two thousandths wide, so that what was short is still seen."""
    left_x, right_x = panel.scale_x(start_s), panel.scale_x(stop_s)
    right_x = min(PLOT_WIDTH_UNITS, max(right_x, left_x + 2))
    top = (1 - height) * panel.height / 2
    bottom = panel.height - top
    panel.add_path(css_class, make_rectangle_path(left_x, right_x, top, bottom))


def _make_timeline_table(timeds: Sequence[TimedPhase]) -> Markup:
    rows: list[Sequence[object]] = []
    for item, start, stop in timeds:
        for line in item.phase.treatments:
            took = line.seconds or 0.0
            name = f"{line.kind} ({line.outcome})"
            rows.append((name, f"{max(0.0, line.t - took):.3f}", f"{line.t:.3f}", quantities.display_seconds(took), ""))
        spent = quantities.display_seconds(stop - start)
        rows.append((item.phase.id, f"{start:.3f}", f"{stop:.3f}", spent, item.summary.rate or ""))
    return render_html_table(["What", "From, s", "To, s", "Took", "Rate"], rows, "The run in time")
