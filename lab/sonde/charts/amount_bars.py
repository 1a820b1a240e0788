# SPDX-License-Identifier: Apache-2.0
"""Amounts side by side: scatter before and after, or rates by unit of hardware."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sonde.charts.markup import Markup
from sonde.charts.plot import format_css_percentage


@dataclass(frozen=True)
class AmountBar:
    """One bar; `low` and `high` are an interval or None; `tone` is before or after."""

    value: float
    low: float | None
    high: float | None
    tone: str
    label: str


def render_amount_bars(
    labeled_bars: Sequence[tuple[str, Sequence[AmountBar]]], caption: str, legend_keys: Sequence[tuple[str, str]]
) -> Markup:
    """Rows of one or more bars from zero on one scale; `legend_keys` are pairs of a color and its meaning."""
    ends = [
        amount.high if amount.high is not None else amount.value for _, amounts in labeled_bars for amount in amounts
    ]
    # one interval without an end must not flatten all bars
    top = (
        min(
            max(ends, default=1.0),
            2.5 * max((amount.value for _, amounts in labeled_bars for amount in amounts), default=1.0),
        )
        or 1.0
    )
    body = Markup("").join(
        Markup('<li><span class="cname">{}</span><span class="astack">{}</span></li>').format(
            name, Markup("").join(_render_amount_bar(amount, top) for amount in amounts)
        )
        for name, amounts in labeled_bars
    )
    legend = Markup("").join(
        Markup('<span class="ki"><span class="key {}"></span>{}</span>').format(tone, word)
        for tone, word in legend_keys
    )
    return Markup(
        '<figure class="chart" data-chart="amounts"><div class="abars" role="img" aria-label="{}"><ol>{}</ol></div>'
        '<figcaption><span class="keys">{}</span></figcaption></figure>'
    ).format(caption, body, legend)


def _render_amount_bar(bar: AmountBar, scale_end: float) -> Markup:
    whisker = Markup("")
    if bar.low is not None and bar.high is not None:
        low, high = min(bar.low / scale_end, 1.0), min(bar.high / scale_end, 1.0)
        whisker = Markup('<u style="left:{};width:{}"></u>').format(
            format_css_percentage(low), format_css_percentage(max(high - low, 0.001))
        )
    return Markup(
        '<span class="arow"><span class="ctrack" aria-hidden="true"><b class="{}" style="left:0;width:{}"></b>{}</span>'
        '<span class="cvalue">{}</span></span>'
    ).format(bar.tone, format_css_percentage(max(bar.value / scale_end, 0.002)), whisker, bar.label)
