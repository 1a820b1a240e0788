# SPDX-License-Identifier: Apache-2.0
"""On which storage targets the files lie, and how fast each target was where that can be told."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from markupsafe import Markup

from sonde.charts.plot import table
from sonde.findings.members import Member
from sonde.findings.targets import held_by_targets, pieces_of, pool_words, target_rates
from sonde.findings.verdicts import Judged
from sonde.model import quantities
from sonde.model.lines import LayoutLine
from sonde.model.run import Run
from sonde.model.visible import one_line
from sonde.report.distributions import spread_chart
from sonde.report.over_time import tone
from sonde.report.sections.section import Place, Section


def _draw(run: Run, judged: Judged) -> Iterator[tuple[Place, Markup]]:
    layout = judged.phase.layout
    if layout is None:
        return
    rates = {one.name: statistics.median(one.rates) for one in target_rates(judged.phase, judged.operations)}
    if len(rates) > 1:
        members = [Member(one_line(name, 60), rate) for name, rate in rates.items()]
        css = tone(judged.verdict.standing)
        yield "wide", spread_chart("targets", "Median file of each target", members, judged.operations, css).render()
    yield "narrow", _held(layout, rates, judged.operations)


def _held(layout: LayoutLine, rates: dict[str, float], operations: bool) -> Markup:
    told = f"{layout.told:,} of {layout.files:,} files" if layout.told < layout.files else "all files"
    rate = quantities.operation_rate if operations else quantities.byte_rate
    rows = [
        (
            one_line(one.name, 60),
            f"{one.files:,}",
            str(quantities.size(one.bytes)),
            str(rate(rates[one.name])) if one.name in rates else "",
        )
        for one in held_by_targets(layout)
    ]
    head = ("Target", "Files", "Bytes", "Median file")
    words = f"Where the bytes lie, from the layouts of {told}"
    if pieces := pieces_of(layout):
        words += f"; {quantities.plural(pieces.files, 'file')} in {quantities.plural(pieces.fragments, 'piece')} on it"
        if pieces.unplaced:
            words += f", {quantities.size(pieces.unplaced)} without a place yet"
    words += f"; {pools}" if (pools := pool_words(layout)) else ""
    return table(head, rows, words)


SECTION = Section(35, _draw)
