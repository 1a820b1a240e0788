# SPDX-License-Identifier: Apache-2.0
"""The HTML page of a simulated fabric: its drawing, the spread over routers, the cost of a lost router, native against
forwarded mounts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sonde.charts.amount_bars import AmountBar, render_amount_bars
from sonde.charts.curves import Curve, CurveChartData, build_curve_chart
from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.charts.study import Study, StudySection, write_study_page
from sonde.design.routes.diagram import draw_fabric
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.flows import FlowResult, TrafficSimulation
from sonde.design.routes.mount_throughput import OperationComparison
from sonde.design.routes.route_text import (
    describe_fabric,
    describe_flow_result,
    describe_leading_mounts,
    describe_striping_effect,
    describe_unknown_parameters,
)
from sonde.model.units import format_count_with_noun, format_rate

_Z_95 = 1.96  # standard deviations around the mean that hold 95 % of a normal distribution


def write_flow_page(
    predictions: Sequence[tuple[Fabric, TrafficSimulation, Sequence[OperationComparison]]], title: str, page_file: Path
) -> Path:
    """Writes the page. Raises ReportError when it cannot be written."""
    sections = [
        section
        for fabric, traffic, compared in predictions
        for section in _make_traffic_sections(fabric, traffic, compared)
    ]
    alarms = [sentence for _, _, compared in predictions if (sentence := describe_unknown_parameters(compared))]
    lead = "Predicted from the system file: nothing here was measured."
    return write_study_page(Study(f"Routes: {title}", lead, [], alarms, sections), page_file)


def _make_traffic_sections(
    fabric: Fabric, traffic: TrafficSimulation, operation_comparisons: Sequence[OperationComparison]
) -> list[StudySection]:
    lost = [
        _make_result_row(f"without {router.name}", result)
        for router, result in zip(fabric.active_routers, traffic.one_lost, strict=False)
    ]
    rows = [_make_result_row("all routers", traffic.all_up), *lost]
    titles = ["", "total", "slowest client", "fastest client", "fewest flows", "most flows", "limited by"]
    sections = [
        StudySection(
            describe_fabric(fabric),
            [],
            [Markup('<div class="scroll drawing">{}</div>').format(Markup(draw_fabric(fabric)))],  # nosec B704 # escapes names
        ),
        StudySection(
            "Spread over the routers",
            [f"{describe_flow_result(traffic.all_up)}.", _describe_spread(traffic)],
            [_draw_router_shares(traffic.all_up)],
        ),
        StudySection("A router lost", [], [render_html_table(titles, rows)]),
    ]
    if operation_comparisons:
        sentences = [
            sentence
            for sentence in (*describe_leading_mounts(operation_comparisons), describe_striping_effect(traffic.all_up))
            if sentence
        ]
        sections.append(
            StudySection(
                "Native against forwarded",
                sentences,
                [_draw_throughput(comparison) for comparison in operation_comparisons],
            )
        )
    return sections


def _make_result_row(row_name: str, flow_result: FlowResult) -> list[str]:
    rates = [
        format_rate(rate) if rate is not None else "unknown"
        for rate in (
            flow_result.total,
            flow_result.client and flow_result.client[0],
            flow_result.client and flow_result.client[2],
        )
    ]
    return [
        row_name,
        *rates,
        f"{100 * min(flow_result.shares):.1f} %",
        f"{100 * max(flow_result.shares):.1f} %",
        flow_result.bottleneck,
    ]


def compute_chance_interval(router_share: float, flow_count: int) -> tuple[float, float]:
    """Bounds of the share of a router in 95 of 100 random spreads of so many flows."""
    reach = _Z_95 * (router_share * (1 - router_share) / flow_count) ** 0.5
    return max(0.0, router_share - reach), min(1.0, router_share + reach)


def _describe_spread(traffic: TrafficSimulation) -> str:
    result = traffic.all_up
    low, high = compute_chance_interval(1 / len(result.routers), result.flows)
    return (
        f"{format_count_with_noun(result.flows, 'flow')} of {format_count_with_noun(traffic.clients, 'client')} and"
        f" {format_count_with_noun(traffic.servers, 'server')} over "
        f"{format_count_with_noun(len(result.routers), 'router')}, by the hash of the"
        f" kernel (layer {traffic.layer}). With equal weights chance alone gives a router {100 * low:.1f} to"
        f" {100 * high:.1f} %, in 95 of 100 cases."
    )


def _draw_router_shares(flow_result: FlowResult) -> Markup:
    rows = [
        (name, [AmountBar(share, None, None, "after", f"{100 * share:.1f} %")])
        for name, share in zip(flow_result.routers, flow_result.shares, strict=True)
    ]
    return render_amount_bars(rows, "Share of the flows on each router", [("after", "share of the flows")])


def _draw_throughput(comparison: OperationComparison) -> Markup:
    curves = [
        Curve(
            f"{path.mount} ({path.through})",
            [throughput.clients for throughput in rates],
            [throughput.rate for throughput in rates],
        )
        for path, rates in comparison.mounts
        if rates
    ]
    if not curves:
        return Markup("<p>{}: no stage has a described time.</p>").format(comparison.operation.title)
    title = f"{comparison.operation.title}, {format_count_with_noun(comparison.tasks, 'task')} a client"
    unit = "B/s" if comparison.operation.is_stream else "op/s"
    return build_curve_chart(
        CurveChartData(
            comparison.operation.title[0].upper() + comparison.operation.title[1:],
            title,
            curves,
            unit,
            "clients",
            log_values=not comparison.operation.is_stream,
        )
    ).render()
