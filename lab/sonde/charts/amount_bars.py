# SPDX-License-Identifier: Apache-2.0
"""Amounts side by side: scatter before and after, or rates by unit of hardware."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sonde.charts.plot import format_share
from sonde.model.escaping import escape_line


@dataclass(frozen=True)
class Amount:
    """One bar; `low` and `high` are an interval or None; `tone` is before or after."""

    value: float
    low: float | None
    high: float | None
    tone: str
    label: str


def render_amount_bars(
    rows: Sequence[tuple[str, Sequence[Amount]]], text: str, keys: Sequence[tuple[str, str]]
) -> Markup:
    """Rows of one or more bars from zero on one scale; `keys` are pairs of a tone and what it stands for."""
    ends = [amount.high if amount.high is not None else amount.value for _, amounts in rows for amount in amounts]
    # one interval without an end must not flatten all bars
    top = (
        min(max(ends, default=1.0), 2.5 * max((amount.value for _, amounts in rows for amount in amounts), default=1.0))
        or 1.0
    )
    body = Markup("").join(
        Markup('<li><span class="cname">{}</span><span class="astack">{}</span></li>').format(
            escape_line(name), Markup("").join(_render_amount(amount, top) for amount in amounts)
        )
        for name, amounts in rows
    )
    legend = Markup("").join(
        Markup('<span class="ki"><span class="key {}"></span>{}</span>').format(tone, escape_line(word))
        for tone, word in keys
    )
    return Markup(
        '<figure class="chart" data-chart="amounts"><div class="abars" role="img" aria-label="{}"><ol>{}</ol></div>'
        '<figcaption><span class="keys">{}</span></figcaption></figure>'
    ).format(text, body, legend)


def _render_amount(amount: Amount, top: float) -> Markup:
    whisker = Markup("")
    if amount.low is not None and amount.high is not None:
        low, high = min(amount.low / top, 1.0), min(amount.high / top, 1.0)
        whisker = Markup('<u style="left:{};width:{}"></u>').format(
            format_share(low), format_share(max(high - low, 0.001))
        )
    return Markup(
        '<span class="arow"><span class="ctrack" aria-hidden="true"><b class="{}" style="left:0;width:{}"></b>{}</span>'
        '<span class="cvalue">{}</span></span>'
    ).format(amount.tone, format_share(max(amount.value / top, 0.002)), whisker, escape_line(amount.label))
