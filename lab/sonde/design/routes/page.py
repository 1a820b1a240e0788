# SPDX-License-Identifier: Apache-2.0
"""The page of a simulated fabric: its picture, the spread over routers, what a lost router costs, native against
forwarded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from sonde.charts.amount_bars import Amount, amount_bars
from sonde.charts.curves import Curve, Curves, curve_chart
from sonde.charts.plot import table
from sonde.charts.study import Section, Study, write_study
from sonde.design.routes.diagram import diagram
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.flows import Outcome, Traffic
from sonde.design.routes.paths import Compared
from sonde.design.routes.words import ahead_words, fabric_words, outcome_words, striped_words, unknown_words
from sonde.model.units import counted, format_rate

_NORMAL = 1.96  # of the interval in which 95 % of random spreads lie


def write_page(found: Sequence[tuple[Fabric, Traffic, Sequence[Compared]]], title: str, out: Path) -> Path:
    """Writes the page to `out`. Raises ReportError when it cannot be written."""
    sections = [one for fabric, traffic, compared in found for one in _sections(fabric, traffic, compared)]
    alarms = [words for _, _, compared in found if (words := unknown_words(compared))]
    lead = "Predicted from the system file: nothing here was measured."
    return write_study(Study(f"Routes: {title}", lead, [], alarms, sections), out)


def _sections(fabric: Fabric, traffic: Traffic, compared: Sequence[Compared]) -> list[Section]:
    lost = [
        _outcome_row(f"without {way.router}", one) for way, one in zip(fabric.active, traffic.one_lost, strict=False)
    ]
    rows = [_outcome_row("all routers", traffic.all_living), *lost]
    titles = ["", "total", "slowest client", "fastest client", "fewest flows", "most flows", "held back by"]
    found = [
        Section(
            fabric_words(fabric), [], [Markup('<div class="scroll drawing">{}</div>').format(Markup(diagram(fabric)))]
        ),
        Section(
            "Spread over the routers",
            [f"{outcome_words(traffic.all_living)}.", _spread_words(traffic)],
            [_spread(traffic.all_living)],
        ),
        Section("A router lost", [], [table(titles, rows)]),
    ]
    if compared:
        words = [one for one in (*ahead_words(compared), striped_words(traffic.all_living)) if one]
        found.append(Section("Native against forwarded", words, [_chart(one) for one in compared]))
    return found


def _outcome_row(name: str, one: Outcome) -> list[str]:
    rates = [format_rate(rate) if rate is not None else "unknown" for rate in (
        one.total, one.client and one.client[0], one.client and one.client[2])]  # fmt: skip
    return [name, *rates, f"{100 * min(one.shares):.1f} %", f"{100 * max(one.shares):.1f} %", one.limit]


def chance_interval(share: float, flows: int) -> tuple[float, float]:
    """Bounds between which the share of a router lies in 95 of 100 random spreads of so many flows."""
    reach = _NORMAL * (share * (1 - share) / flows) ** 0.5
    return max(0.0, share - reach), min(1.0, share + reach)


def _spread_words(traffic: Traffic) -> str:
    one = traffic.all_living
    low, high = chance_interval(1 / len(one.routers), one.flows)
    return (
        f"{counted(one.flows, 'flow')} of {counted(traffic.clients, 'client')} and {counted(traffic.servers, 'server')}"
        f" over {counted(len(one.routers), 'router')}, by the hash of the kernel (layer {traffic.layer}). With equal"
        f" weights chance alone gives a router {100 * low:.1f} to {100 * high:.1f} %, in 95 of 100 cases."
    )


def _spread(one: Outcome) -> Markup:
    rows = [
        (name, [Amount(share, None, None, "after", f"{100 * share:.1f} %")])
        for name, share in zip(one.routers, one.shares, strict=True)
    ]
    return amount_bars(rows, "Share of the flows on each router", [("after", "share of the flows")])


def _chart(one: Compared) -> Markup:
    curves = [
        Curve(f"{path.mount} ({path.through})", [at.clients for at in rates], [at.rate for at in rates])
        for path, rates in one.mounts
        if rates
    ]
    if not curves:
        return Markup("<p>{}: nothing on the way has a described time.</p>").format(one.operation.title)
    words = f"{one.operation.title}, {counted(one.tasks, 'task')} a client"
    unit = "B/s" if one.operation.streams else "op/s"
    return curve_chart(
        Curves(
            one.operation.title[0].upper() + one.operation.title[1:],
            words,
            curves,
            unit,
            "clients",
            log_values=not one.operation.streams,
        )
    ).render()
