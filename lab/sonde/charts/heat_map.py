# SPDX-License-Identifier: Apache-2.0
"""A heat map: a picture of one pixel a value, with names and numbers around it in HTML.

Values are shares of what is usual (1 is usual). The scale of colors is the same as everywhere: vermilion is slow, blue
is fast, and each step differs in lightness too, so that it is read on paper and by everybody.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sonde.charts.axes import build_time_axis
from sonde.charts.markup import Markup
from sonde.charts.plot import format_css_percentage

# Half as fast and twice as fast are the ends of the scale.
_DARKEST_RATIO = 0.5
_SLOW_COLOR, _USUAL_COLOR, _FAST_COLOR, _ABSENT_COLOR = (179, 79, 0), (246, 246, 244), (0, 91, 143), (205, 209, 214)
_COLOR_LEVEL_COUNT = 127
# A screen cannot resolve more rows: the rows furthest from usual are drawn.
MAX_HEAT_MAP_ROWS = 400
_MAX_HEIGHT_PX, _MAX_ROW_HEIGHT_PX, _MIN_LABELED_ROW_HEIGHT_PX = 420, 16, 11


@dataclass(frozen=True)
class HeatMap:
    """`values` has a row for each of `rows`; NaN is drawn as absent. `columns` are words for a few places (share of the
    width) below; `marked` rows always get their name."""

    title: str
    summary: str
    rows: Sequence[str]
    values: NDArray[np.float64]
    columns: Sequence[tuple[float, str]]
    marked: Sequence[int] = ()


def build_time_labels(seconds: float) -> list[tuple[float, str]]:
    """Labels of the time axis below a heat map; a label at its right end is left out, because it would extend beyond
    the map."""
    axis = build_time_axis(seconds)
    return [
        (tick.position, f"{tick.label} {axis.unit}") for tick in axis.ticks if not tick.minor and tick.position < 0.95
    ]


def render_heat_map(heat_map: HeatMap) -> Markup:
    """The figure as HTML."""
    selected_indices = _select_rows(heat_map)
    values = heat_map.values[selected_indices]
    height = max(1.0, min(_MAX_ROW_HEIGHT_PX, _MAX_HEIGHT_PX / len(selected_indices)))
    total = max(14.0, height * len(selected_indices))
    names = Markup("").join(
        Markup('<span class="{}" style="top:{}">{}</span>').format(
            "slow" if row in heat_map.marked else "",
            format_css_percentage((index + 0.5) / len(selected_indices)),
            heat_map.rows[row],
        )
        for index, row in _select_labels(selected_indices, heat_map.marked, height)
    )
    below = Markup("").join(
        Markup('<span style="left:{}">{}</span>').format(format_css_percentage(position), label)
        for position, label in heat_map.columns
    )
    left_out = len(heat_map.rows) - len(selected_indices)
    note = f" The {len(selected_indices)} rows furthest from usual; {left_out} more are not drawn." if left_out else ""
    legend = Markup(
        '<span class="keys"><span class="ki">half as fast <span class="scale"></span> twice as fast</span>'
        '<span class="ki"><span class="key absent"></span>took no part</span></span>'
    )
    return Markup(
        '<figure class="chart" data-chart="heat"><h4>{}</h4><div class="heat" role="img" aria-label="{}">'
        '<div class="hnames" aria-hidden="true" style="height:{}px">{}</div>'
        '<img alt="" src="{}" style="height:{}px"><div class="hcolumns" aria-hidden="true">{}</div></div>'
        '<figcaption><span class="caption-text">{}{}</span> {}</figcaption></figure>'
    ).format(
        heat_map.title,
        heat_map.summary,
        f"{total:.0f}",
        names,
        _encode_palette_png(values),
        f"{total:.0f}",
        below,
        heat_map.summary,
        note,
        legend,
    )


def _select_rows(heat_map: HeatMap) -> list[int]:
    count = len(heat_map.rows)
    if count <= MAX_HEAT_MAP_ROWS:
        return list(range(count))
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.nanmax(np.abs(np.log(np.where(np.isnan(heat_map.values), 1.0, heat_map.values))), axis=1)
    far[list(heat_map.marked)] = np.inf
    return sorted(np.argsort(-far, kind="stable")[:MAX_HEAT_MAP_ROWS].tolist())


def _select_labels(
    selected_indices: Sequence[int], marked_indices: Sequence[int], height: float
) -> list[tuple[int, int]]:
    """Position and row of the labels that fit; marked rows take precedence."""
    distance = max(1, round(_MIN_LABELED_ROW_HEIGHT_PX / height + 0.49))
    occupied: list[int] = []
    ordered = [index for index, row in enumerate(selected_indices) if row in marked_indices] + list(
        range(0, len(selected_indices), distance)
    )
    for index in ordered:
        if all(abs(index - other) >= distance for other in occupied):
            occupied.append(index)
    return [(index, selected_indices[index]) for index in sorted(occupied)]


def _encode_palette_png(color_indices: NDArray[np.float64]) -> str:
    """A palette picture as a data address, one pixel a value."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.log(color_indices) / -np.log(_DARKEST_RATIO)
    levels = np.clip(np.nan_to_num(scaled, nan=0.0, neginf=-1.0, posinf=1.0), -1, 1)
    index = np.where(
        np.isnan(color_indices), 2 * _COLOR_LEVEL_COUNT + 1, np.round(levels * _COLOR_LEVEL_COUNT) + _COLOR_LEVEL_COUNT
    ).astype(np.uint8)
    rows, columns = index.shape
    lines = np.concatenate([np.zeros((rows, 1), dtype=np.uint8), index], axis=1)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)),
        (b"PLTE", _encode_palette()),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    ]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    )
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")


def _encode_palette() -> bytes:
    steps = np.abs(np.arange(-_COLOR_LEVEL_COUNT, _COLOR_LEVEL_COUNT + 1)) / _COLOR_LEVEL_COUNT
    usual = np.array(_USUAL_COLOR, dtype=float)
    ends = np.array(
        [_SLOW_COLOR] * _COLOR_LEVEL_COUNT + [_USUAL_COLOR] + [_FAST_COLOR] * _COLOR_LEVEL_COUNT, dtype=float
    )
    colors = usual + (ends - usual) * steps[:, None] ** 0.8
    return np.concatenate([np.round(colors), [_ABSENT_COLOR]]).astype(np.uint8).tobytes()
