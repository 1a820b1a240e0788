# SPDX-License-Identifier: Apache-2.0
"""Amounts side by side: scatter before and after, or rates by unit of hardware."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sonde.charts.plot import share
from sonde.model.visible import one_line


@dataclass(frozen=True)
class Amount:
    """One bar; `low` and `high` are an interval or None; `tone` is before or after."""

    value: float
    low: float | None
    high: float | None
    tone: str
    shown: str


def amount_bars(rows: Sequence[tuple[str, Sequence[Amount]]], words: str, keys: Sequence[tuple[str, str]]) -> Markup:
    """Rows of one or more bars from zero on one scale; `keys` are pairs of a tone and what it stands for."""
    ends = [one.high if one.high is not None else one.value for _, amounts in rows for one in amounts]
    # one interval without an end must not flatten all bars
    top = (
        min(max(ends, default=1.0), 2.5 * max((one.value for _, amounts in rows for one in amounts), default=1.0))
        or 1.0
    )
    body = Markup("").join(
        Markup('<li><span class="cname">{}</span><span class="astack">{}</span></li>').format(
            one_line(name), Markup("").join(_amount(one, top) for one in amounts)
        )
        for name, amounts in rows
    )
    legend = Markup("").join(
        Markup('<span class="ki"><span class="key {}"></span>{}</span>').format(tone, one_line(word))
        for tone, word in keys
    )
    return Markup(
        '<figure class="chart" data-chart="amounts"><div class="abars" role="img" aria-label="{}"><ol>{}</ol></div>'
        '<figcaption><span class="keys">{}</span></figcaption></figure>'
    ).format(words, body, legend)


def _amount(one: Amount, top: float) -> Markup:
    whisker = Markup("")
    if one.low is not None and one.high is not None:
        low, high = min(one.low / top, 1.0), min(one.high / top, 1.0)
        whisker = Markup('<u style="left:{};width:{}"></u>').format(share(low), share(max(high - low, 0.001)))
    return Markup(
        '<span class="arow"><span class="ctrack" aria-hidden="true"><b class="{}" style="left:0;width:{}"></b>{}</span>'
        '<span class="cvalue">{}</span></span>'
    ).format(one.tone, share(max(one.value / top, 0.002)), whisker, one_line(one.shown))
