# SPDX-License-Identifier: Apache-2.0
"""Percentage against a baseline: one bar a number, its interval on top, and the verdict in color and in words."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sonde.charts.markup import Markup
from sonde.charts.plot import format_css_percentage


@dataclass(frozen=True)
class ChangeRow:
    """`change`, `low` and `high` are shares (-0.7 is 70 % less; the last two None without an interval). `tone` is
    slower, faster, same or unknown; `label` is the change in words, `remark` what else to know."""

    group: str
    name: str
    change: float
    low: float | None
    high: float | None
    tone: str
    label: str
    comment: str = ""


_SCALE_STEPS = (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0)
_MAX_TICKS_PER_SIDE = 4
_TONE_MEANINGS = {
    "slower": "slower",
    "faster": "faster",
    "same": "no change seen, or a small one",
    "unknown": "too few runs to say",
}


def render_change_bars(change_rows: Sequence[ChangeRow], caption: str) -> Markup:
    """The bars in the order of `change_rows`, with a heading where the group changes. All share one scale around
    zero."""
    reach = max(
        (abs(value) for row in change_rows for value in (row.change, row.low, row.high) if value is not None), default=0
    )
    left_reach, right_reach = _compute_scale_limits(change_rows, reach)
    step = next(
        (step for step in _SCALE_STEPS if (left_reach + right_reach) / step <= 2 * _MAX_TICKS_PER_SIDE),
        _SCALE_STEPS[-1],
    )
    marks = [step * index for index in range(-int(left_reach / step + 1e-9), int(right_reach / step + 1e-9) + 1)]

    def scale_to_share(relative_change: float) -> float:
        return (min(max(relative_change, -left_reach), right_reach) + left_reach) / (left_reach + right_reach)

    grid = Markup("").join(
        Markup('<i class="{}" style="left:{}"></i>').format(
            "zero" if abs(mark) < 1e-9 else "", format_css_percentage(scale_to_share(mark))
        )
        for mark in marks
    )
    scale = Markup("").join(
        Markup('<span class="{}" style="left:{}">{}</span>').format(
            "minor" if round(mark / step) % 2 else "",
            format_css_percentage(scale_to_share(mark)),
            _format_percent(mark),
        )
        for mark in marks
    )
    body = Markup("")
    for group, members in itertools.groupby(change_rows, key=lambda row: row.group):
        if group:
            body += Markup('<li class="group">{}</li>').format(group)
        body += Markup("").join(_render_change_row(row, grid, scale_to_share(0.0), scale_to_share) for row in members)
    return Markup(
        '<figure class="chart" data-chart="changes"><div class="cbars" role="img" aria-label="{}">'
        '<div class="cscale" aria-hidden="true"><div>{}</div></div><ol>{}</ol></div><figcaption>'
        '<span class="keys">{}</span> {}</figcaption></figure>'
    ).format(caption, scale, body, _render_tone_keys(change_rows), _describe_marks(change_rows))


def _render_tone_keys(change_rows: Sequence[ChangeRow]) -> Markup:
    """The legend of the tones that occur."""
    used = {row.tone for row in change_rows}
    return Markup("").join(
        Markup('<span class="ki"><span class="key {}"></span>{}</span>').format(tone, meaning)
        for tone, meaning in _TONE_MEANINGS.items()
        if tone in used
    )


def _describe_marks(change_rows: Sequence[ChangeRow]) -> str:
    if any(row.low is not None for row in change_rows):
        return "Bars: change of the middle ratio; lines: its 95 % interval."
    return ""


def _compute_scale_limits(change_rows: Sequence[ChangeRow], largest_reach: float) -> tuple[float, float]:
    """Distances from zero to the left and right end of the scale, as fractions; the left one is at most 1, because no
    rate falls by more than 100 %."""
    values = [value for row in change_rows for value in (row.change, row.low, row.high) if value is not None]
    left_reach = min(1.0, max(0.2, -min(values, default=0.0) * 1.08))
    right_reach = max(0.2, min(max(values, default=0.0) * 1.08, 20.0))
    return (left_reach, right_reach) if largest_reach else (1.0, 1.0)


def _render_change_row(change_row: ChangeRow, grid_markup: Markup, zero_share: float, to_share: object) -> Markup:
    assert callable(to_share)
    end = to_share(change_row.change)
    bar = Markup('<b class="{}" style="left:{};width:{}"></b>').format(
        change_row.tone,
        format_css_percentage(min(zero_share, end)),
        format_css_percentage(max(abs(end - zero_share), 0.002)),
    )
    whisker = Markup("")
    if change_row.low is not None and change_row.high is not None:
        low, high = to_share(change_row.low), to_share(change_row.high)
        whisker = Markup('<u style="left:{};width:{}"></u>').format(
            format_css_percentage(low), format_css_percentage(max(high - low, 0.001))
        )
    remark = Markup("<small>{}</small>").format(change_row.comment) if change_row.comment else Markup("")
    return Markup(
        '<li><span class="cname">{}</span><span class="ctrack" aria-hidden="true">{}{}{}</span>'
        '<span class="cvalue {}">{}{}</span></li>'
    ).format(change_row.name, grid_markup, bar, whisker, change_row.tone, change_row.label, remark)


def _format_percent(relative_change: float) -> str:
    return f"{100 * relative_change:+.0f} %".replace("-", "−") if abs(relative_change) > 1e-9 else "0"
