# SPDX-License-Identifier: Apache-2.0
"""The rate over the time of a phase, of one side against the band of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sonde.charts.axes import Axis, Tick, build_amount_axis
from sonde.charts.markup import Markup
from sonde.charts.plot import Chart, Panel
from sonde.stats.bins import sum_into_bins

_PROFILE_BIN_COUNT = 100


@dataclass(frozen=True)
class ProfileOverlay:
    """Curves of a phase: rates over equal slices, one curve a run; `before` makes the band, `after` the lines."""

    title: str
    summary: str
    before: Sequence[Sequence[float]]
    after: Sequence[Sequence[float]]


def build_profile_chart(overlay: ProfileOverlay) -> Chart:
    """Draws both sides over relative time, so that runs of different length can be compared."""
    before, after = (
        np.array([_resample_rates_to_bins(item) for item in side]) for side in (overlay.before, overlay.after)
    )
    edges = np.linspace(0, 1, _PROFILE_BIN_COUNT + 1).tolist()
    marks = (0, 0.25, 0.5, 0.75, 1)
    axis = Axis(0, 1, tuple(Tick(mark, f"{100 * mark:.0f} %", minor=mark in (0.25, 0.75)) for mark in marks))
    scale = build_amount_axis(float(max(before.max(), np.median(after, axis=0).max())), "B/s")
    panel = Panel(axis, scale, 150, scale.unit)
    panel.add_path(
        "band all dull", panel.make_area_path(edges, before.min(axis=0).tolist(), before.max(axis=0).tolist()), "Before"
    )
    panel.add_path("median dull", panel.make_step_path(edges, np.median(before, axis=0).tolist()), "Median before")
    panel.add_path("line after", panel.make_step_path(edges, np.median(after, axis=0).tolist()), "Median after")
    caption = Markup(
        '<span class="caption-text">{}</span> <span class="keys"><span class="ki"><span class="key all dull"></span>'
        "all runs"
        ' before</span><span class="ki"><span class="key median dull"></span>their median</span>'
        '<span class="ki"><span class="key line after"></span>median after</span></span>'
    ).format(overlay.summary)
    return Chart("profile", overlay.title, overlay.summary, [panel], "share of the time", caption)


def _resample_rates_to_bins(slice_rates: Sequence[float]) -> list[float]:
    """`_PROFILE_BIN_COUNT` rates whatever the number of slices."""
    values = np.asarray(slice_rates, dtype=float)
    if values.size > _PROFILE_BIN_COUNT:
        return [
            value * _PROFILE_BIN_COUNT / values.size for value in sum_into_bins(values.tolist(), _PROFILE_BIN_COUNT)
        ]
    places = np.minimum((np.arange(_PROFILE_BIN_COUNT) * values.size) // _PROFILE_BIN_COUNT, values.size - 1)
    resampled: list[float] = values[places].tolist()
    return resampled
