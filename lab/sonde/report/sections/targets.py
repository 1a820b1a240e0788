# SPDX-License-Identifier: Apache-2.0
"""The storage targets of the files, and the rate of each target where it is known."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.findings.phase_summary import AssessedPhase
from sonde.findings.stragglers import MemberRate
from sonde.findings.targets import collect_target_rates, collect_target_usage, count_fragments, describe_pool_disks
from sonde.model import quantities
from sonde.model.lines import LayoutLine
from sonde.model.run import RecordedRun
from sonde.report.distributions import build_member_rate_chart
from sonde.report.over_time import choose_style_class
from sonde.report.sections.section import ChartWidth, PhaseSection


def _draw_targets(run: RecordedRun, assessed_phase: AssessedPhase) -> Iterator[tuple[ChartWidth, Markup]]:
    layout = assessed_phase.phase.layout
    if layout is None:
        return
    rates = {
        rate.name: statistics.median(rate.rates)
        for rate in collect_target_rates(assessed_phase.phase, assessed_phase.operations)
    }
    if len(rates) > 1:
        members = [MemberRate(name, rate) for name, rate in rates.items()]
        css = choose_style_class(assessed_phase.summary.classification)
        yield (
            "wide",
            build_member_rate_chart(
                "targets", "Median file of each target", members, assessed_phase.operations, css
            ).render(),
        )
    yield "narrow", _describe_files_of_targets(layout, rates, assessed_phase.operations)


def _describe_files_of_targets(
    layout_line: LayoutLine, rates_by_target: dict[str, float], counts_operations: bool
) -> Markup:
    text = (
        f"{layout_line.reported:,} of {layout_line.files:,} files"
        if layout_line.reported < layout_line.files
        else "all files"
    )
    rate = quantities.display_operation_rate if counts_operations else quantities.display_byte_rate
    rows = [
        (
            item.name,
            f"{item.files:,}",
            str(quantities.display_configured_size(item.bytes)),
            str(rate(rates_by_target[item.name])) if item.name in rates_by_target else "",
        )
        for item in collect_target_usage(layout_line)
    ]
    head = ("Target", "Files", "Bytes", "Median file")
    note = f"Where the bytes lie, from the layouts of {text}"
    if pieces := count_fragments(layout_line):
        files = quantities.display_count_with_noun(pieces.files, "file")
        note += f"; {files} in {quantities.display_count_with_noun(pieces.fragments, 'piece')} on it"
        if pieces.unplaced:
            note += f", {quantities.display_configured_size(pieces.unplaced)} without a place yet"
    note += f"; {pools}" if (pools := describe_pool_disks(layout_line)) else ""
    return render_html_table(head, rows, note)


SECTION = PhaseSection(35, _draw_targets)
