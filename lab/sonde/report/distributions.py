# SPDX-License-Identifier: Apache-2.0
"""How values are spread: latencies of operations, rates of tasks and nodes, and where the tasks' time went."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from sonde.charts.axes import Axis, Tick, build_amount_axis, build_latency_axis, build_log_count_axis
from sonde.charts.markup import Markup
from sonde.charts.plot import Chart, ChartTooltip, Panel, render_html_table
from sonde.findings.assessment import format_phase_rate
from sonde.findings.stragglers import MemberRate, compute_straggler_limit
from sonde.model import quantities
from sonde.model.line_members import LatencySummary
from sonde.model.lines import HistogramLine
from sonde.model.record import PhaseRecord

PERCENTILES = (("p50", "p50_ns"), ("p90", "p90_ns"), ("p99", "p99_ns"), ("p99.9", "p999_ns"), ("max", "max_ns"))
BINS_PER_DECADE = 20
MAX_BARS = 72
# Below this many operations a histogram has no shape; their percentiles stand in a table.
MIN_DRAWN_OPERATIONS = 20
# What the name of a percentile takes of the width of a narrow chart.
PERCENTILE_NAME_WIDTH_SHARE = 0.12
# No bar is wider than this share of the chart.
MAX_BAR_WIDTH_SHARE = 0.045
TASK_TIME_PARTS = ("open", "transfer", "fsync", "close")


def build_latency_chart(phase: PhaseRecord, histogram_line: HistogramLine, css_class: str) -> Chart | None:
    """One histogram; None when it counted too few operations for a shape."""
    kind = histogram_line.kind
    buckets = [(max(b[0], 0.5), max(b[1], b[0], 1.0), b[2]) for b in histogram_line.buckets if len(b) == 3 and b[2] > 0]
    if not buckets or histogram_line.count < MIN_DRAWN_OPERATIONS or not histogram_line.max_ns:
        return None
    quantiles = list_latency_percentiles(phase, histogram_line.kind)
    low = buckets[0][0] if histogram_line.min_ns is None else histogram_line.min_ns
    high = max(*(value for _, value in quantiles), histogram_line.max_ns or 0.0, buckets[-1][0])
    axis = build_latency_axis(low / 1.1, high * 1.1)
    bins = _merge_buckets_into_bins(buckets, axis)
    panel = Panel(axis, build_log_count_axis(max(count for _, _, count in bins)), 110, "Operations")
    for start, stop, count in bins:
        panel.add_rectangle(f"bar {css_class}", start, stop, panel.y.low, count)
    _mark_percentiles(panel, quantiles)
    panel.tips = [_make_latency_tooltip(axis, bin_) for bin_ in bins]
    summary = f"Latency of {quantities.display_count(histogram_line.count)} {kind} operations: " + ", ".join(
        f"{name} {quantities.display_nanoseconds(value)}" for name, value in quantiles
    )
    caption = f"{quantities.display_count_with_noun(histogram_line.count, 'operation')}. Both axes are logarithmic."
    if histogram_line.overflow:
        caption += f" {quantities.display_count(histogram_line.overflow)} took longer than the histogram reaches."
    return Chart(
        kind="latency",
        about=histogram_line.kind,
        title=f"Latency: {kind}",
        summary=summary,
        panels=[panel],
        caption=render_percentiles(quantiles) + Markup("<span>{}</span>").format(caption),
        table=_make_bins_table(bins),
    )


def list_latency_percentiles(phase: PhaseRecord, operation_kind: str) -> list[tuple[str, float]]:
    """The recorded percentiles of one kind of operation."""
    stats = phase.end.latency.get(operation_kind, LatencySummary()) if phase.end else LatencySummary()
    return [(name, value) for name, member in PERCENTILES if (value := getattr(stats, member)) is not None]


def render_percentiles(percentiles: Sequence[tuple[str, float]]) -> Markup:
    """The percentiles as a row of figures under the drawing."""
    cells = Markup("").join(
        Markup("<span><b>{}</b> {}</span>").format(name, str(quantities.display_nanoseconds(value)))
        for name, value in percentiles
    )
    return Markup('<span class="percentiles">{}</span>').format(cells)


def _merge_buckets_into_bins(
    buckets: Sequence[tuple[float, float, float]], axis: Axis
) -> list[tuple[float, float, float]]:
    """The recorded buckets, joined into bins of equal width on the axis."""
    step = 1.0 / BINS_PER_DECADE
    counts: dict[int, float] = {}
    for low, high, count in buckets:
        position = math.floor(math.log10(math.sqrt(low * high)) / step)
        counts[position] = counts.get(position, 0.0) + count
    # A single bucket may be wider than a bin at the fast end; what is drawn stays inside the axis.
    return [
        (max(10 ** (bucket * step), axis.low), min(10 ** ((bucket + 1) * step), axis.high), count)
        for bucket, count in sorted(counts.items())
    ]


def _mark_percentiles(panel: Panel, percentiles: Sequence[tuple[str, float]]) -> None:
    """Lines through the plot, named above it; names that would touch stand one row higher."""
    occupied: list[float] = []
    for name, value in percentiles:
        panel.add_vertical_line("pct", value)
        position = panel.x.scale_to_share(value)
        leftward = position > 1 - PERCENTILE_NAME_WIDTH_SHARE
        begin = position - PERCENTILE_NAME_WIDTH_SHARE if leftward else position
        row = next((r for r, last in enumerate(occupied) if begin >= last), len(occupied))
        occupied[row : row + 1] = [begin + PERCENTILE_NAME_WIDTH_SHARE]
        panel.add_note_above_plot("left" if leftward else "", position, name, row)


def _make_latency_tooltip(axis: Axis, start_stop_and_count: tuple[float, float, float]) -> ChartTooltip:
    start, stop, count = start_stop_and_count
    span = f"{quantities.display_nanoseconds(start)} to {quantities.display_nanoseconds(stop)}"
    return ChartTooltip(
        axis.scale_to_share(start),
        axis.scale_to_share(stop),
        f"{span}\n{quantities.display_count_with_noun(count, 'operation')}",
    )


def _make_bins_table(bins: Sequence[tuple[float, float, float]]) -> Markup:
    total = sum(count for _, _, count in bins)
    rows: list[Sequence[object]] = []
    observed = 0.0
    for start, stop, count in bins:
        observed += count
        span = f"{quantities.display_nanoseconds(start)} – {quantities.display_nanoseconds(stop)}"
        rows.append((span, quantities.display_count(count), quantities.display_percent(observed / total)))
    return render_html_table(["Latency", "Operations", "Up to here"], rows, "Latency")


def build_member_rate_chart(
    member_kind: str, title: str, members: Sequence[MemberRate], counts_operations: bool, css_class: str
) -> Chart:
    """Members sorted by rate, slowest first: bars up to MAX_BARS members, one area for more."""
    ordered = sorted(members, key=lambda member: member.value)
    values = [item.value for item in ordered]
    scale = build_amount_axis(values[-1], "op/s" if counts_operations else "B/s", 3)
    few = len(values) <= 8
    names = (
        tuple(Tick((index + 0.5) / len(values), item.name, lower=index % 2 == 1) for index, item in enumerate(ordered))
        if few
        else ()
    )
    panel = Panel(Axis(0.0, float(len(values)), names), scale, 110, scale.unit)
    middle, slow = statistics.median(values), compute_straggler_limit(values)
    if len(values) <= MAX_BARS:
        half = min(0.36, MAX_BAR_WIDTH_SHARE / 2 * len(values))
        for index, value in enumerate(values):
            tone = "bad" if value < slow else css_class
            panel.add_rectangle(f"bar {tone}", index + 0.5 - half, index + 0.5 + half, 0.0, value)
    else:
        edges, heights = _thin_out_steps(values)
        panel.add_path(f"area {css_class}", panel.make_area_path(edges, [0.0] * len(heights), heights))
        panel.add_path(f"line {css_class}", panel.make_step_path(edges, heights))
    panel.add_horizontal_line("mean", middle)
    panel.tips = _make_member_tips(ordered, counts_operations)
    slowest, median, fastest = (format_phase_rate(rate, counts_operations) for rate in (values[0], middle, values[-1]))
    text = (
        f"{title}: {quantities.display_count_with_noun(len(values), 'value')} from {slowest} to {fastest}, median "
        f"{median};"
        f" slowest is {ordered[0].name}"
    )
    return Chart(
        kind=member_kind,
        title=title,
        summary=text,
        panels=[panel],
        caption=Markup(
            '<span class="keys"><span class="ki"><span class="key mean"></span>median {}</span></span> <span>{}</span>'
        ).format(
            median,
            f"Slowest {slowest}, fastest {fastest}; sorted by rate.",
        ),
        table=_make_members_table(ordered, counts_operations),
    )


def _thin_out_steps(sorted_rates: Sequence[float]) -> tuple[list[float], list[float | None]]:
    """At most 300 steps; the slowest and the fastest member keep their own."""
    group = max(1, -(-len(sorted_rates) // 300))
    edges, heights = [0.0], list[float | None]()
    cuts = [1, *range(1 + group, len(sorted_rates) - 1, group), len(sorted_rates) - 1, len(sorted_rates)]
    start = 0
    for stop in cuts:
        if stop > start:
            heights.append(sum(sorted_rates[start:stop]) / (stop - start))
            edges.append(float(stop))
            start = stop
    return edges, heights


def _make_member_tips(sorted_members: Sequence[MemberRate], counts_operations: bool) -> list[ChartTooltip]:
    count = len(sorted_members)
    group = max(1, -(-count // 80))
    tips: list[ChartTooltip] = []
    for index in range(0, count, group):
        stop = min(index + group, count)
        item = sorted_members[index]
        name = item.name + (f" on {item.host}" if item.host else "")
        if stop - index > 1:
            name = f"{index + 1} to {stop} of {quantities.display_count(count)}\nfrom {name}"
        tips.append(
            ChartTooltip(index / count, stop / count, f"{name}\n{format_phase_rate(item.value, counts_operations)}")
        )
    return tips


def _make_members_table(sorted_members: Sequence[MemberRate], counts_operations: bool) -> Markup:
    """All of them up to 64; beyond that the slowest twenty, evenly chosen ones, and the fastest five."""
    chosen: Sequence[int] = range(len(sorted_members))
    text = "Sorted by rate"
    if len(sorted_members) > 64:
        even = {round(i * (len(sorted_members) - 1) / 20) for i in range(21)}
        chosen = sorted({*range(20), *even, *range(len(sorted_members) - 5, len(sorted_members))})
        text = (
            f"{len(chosen)} of {quantities.display_count(len(sorted_members))}, sorted by rate; the record has them all"
        )
    rows = [
        (
            sorted_members[i].name,
            sorted_members[i].host,
            f"{i + 1}",
            format_phase_rate(sorted_members[i].value, counts_operations),
        )
        for i in chosen
    ]
    return render_html_table(["Which", "Host", "Place", "Rate"], rows, text, text_columns=2)


def list_task_time_shares(phase: PhaseRecord) -> list[tuple[str, float, float]]:
    """(part, seconds summed over tasks, share) for what took any time; empty when not recorded."""
    spent = [(part, getattr(phase.end.task_seconds, part) or 0.0) for part in TASK_TIME_PARTS] if phase.end else []
    total = sum(value for _, value in spent)
    return [(part, value, value / total) for part, value in spent if value > 0] if total > 0 else []
