# SPDX-License-Identifier: Apache-2.0
"""Curves over what is swept: places, intervals, and the values in words."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sonde.charts.curves import Curve, CurveChartData, build_curve_chart, format_value_with_unit


def render_chart(**changes: object) -> str:
    curves = [
        Curve("native", [1, 2, 4, 8, 16], [1e9, 2e9, 4e9, 8e9, 8e9], [0.9e9] * 5, [1.1e9, 2.2e9, 4.4e9, 8.8e9, 8.8e9]),
        Curve("forwarded", [1, 16], [0.5e9, 4e9]),
    ]
    members: dict[str, Any] = {
        "title": "Reads",
        "summary": "Said.",
        "curves": curves,
        "unit": "B/s",
        "x_unit": "clients",
    }
    figure = CurveChartData(**members | changes)
    return str(build_curve_chart(figure).render())


def list_path_points(page: str, css_class: str) -> list[tuple[float, float]]:
    (data,) = re.findall(rf'<path class="curve {css_class}" d="([^"]*)"', page)
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", data)]


def test_doubled_values_are_equidistant_on_a_logarithmic_axis() -> None:
    points = list_path_points(render_chart(), "c0")
    assert [x for x, _ in points] == pytest.approx([0, 250, 500, 750, 1000])


def test_x_axis_follows_the_scale_of_the_figure() -> None:
    few = [Curve("a", [1, 2, 4], [1.0, 1.0, 1.0])]
    assert list_path_points(render_chart(curves=few, log_places=True), "c0")[1][0] == pytest.approx(500)
    assert list_path_points(render_chart(curves=few), "c0")[1][0] == pytest.approx(1000 / 3, abs=0.2)


def test_heights_are_in_proportion_to_the_values() -> None:
    page = render_chart()
    below = [220 - y for _, y in list_path_points(page, "c0")]
    assert below[1] == pytest.approx(2 * below[0], rel=0.01)
    assert below[3] == below[4] == pytest.approx(8 * below[0], rel=0.01)
    assert list_path_points(page, "c1")[1] == pytest.approx((1000, list_path_points(page, "c0")[2][1]), rel=0.01)


def test_logarithmic_scale_spaces_powers_of_ten_equally() -> None:
    page = render_chart(curves=[Curve("a", [1, 2, 3], [10.0, 100.0, 1000.0])], unit="op/s", log_values=True)
    heights = [y for _, y in list_path_points(page, "c0")]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.2)
    assert [x for x, _ in list_path_points(page, "c0")] == pytest.approx([0, 500, 1000]), "a short range is linear"


def test_interval_whisker_extends_between_its_bounds() -> None:
    page = render_chart()
    whiskers = re.findall(r'<path class="curve whisker c0" d="M([\d.]+) ([\d.]+)V([\d.]+)"', page)
    points = list_path_points(page, "c0")
    assert len(whiskers) == 5
    assert all(float(low) > y > float(high) for (_, low, high), (_, y) in zip(whiskers[1:4], points[1:4], strict=True))


def test_every_value_is_in_the_table_and_absent_values_are_empty() -> None:
    page = render_chart()
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", page)
    assert cells[:3] == ["clients", "native", "forwarded"]
    assert cells[3:9] == ["1", "1.00 GB/s", "500 MB/s", "2", "2.00 GB/s", ""]


def test_chart_of_a_single_point_works_and_of_none_fails() -> None:
    assert list_path_points(render_chart(curves=[Curve("a", [4], [1.0])]), "c0")
    with pytest.raises(ValueError, match="needs values"):
        render_chart(curves=[])


def test_values_have_their_unit() -> None:
    assert [
        format_value_with_unit(1.5e9, "B/s"),
        format_value_with_unit(900, "op/s"),
        format_value_with_unit(0.5, ""),
        format_value_with_unit(2, "s"),
    ] == [
        "1.50 GB/s",
        "900 op/s",
        "0.5",
        "2 s",
    ]
