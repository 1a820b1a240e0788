# SPDX-License-Identifier: Apache-2.0
"""The frame every chart is drawn in: marks in SVG, letters in HTML, no script.

The marks live in an SVG whose 1000 x `height` box is stretched to the width it gets (strokes keep their width, see the
style sheet), while all letters are HTML placed at shares of that width. So one drawing is right at 360 pixels, at 1280
and on paper, letters never shrink, and colors follow the scheme of the reader because they are classes, not values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sonde.charts.axes import Axis
from sonde.charts.markup import Markup

PLOT_WIDTH_UNITS = 1000.0
# Height of a row of notes above a plot, CSS pixels.
NOTE_ROW_HEIGHT_PX = 15
EMPTY_MARKUP = Markup("")


def format_coordinate(coordinate_px: float) -> str:
    """Coordinate with at most one decimal: short, and finer than any screen."""
    return f"{coordinate_px:.1f}".removesuffix(".0")


def format_css_percentage(fraction: float) -> str:
    """CSS percentage with two decimals."""
    return f"{fraction * 100:.2f}".rstrip("0").rstrip(".") + "%"


def make_rectangle_path(left_x: float, right_x: float, top_y: float, bottom_y: float) -> str:
    """SVG path data of a rectangle between two x and two y coordinates."""
    first, last = format_coordinate(left_x), format_coordinate(right_x)
    return f"M{first} {format_coordinate(top_y)}H{last}V{format_coordinate(bottom_y)}H{first}Z"


@dataclass(frozen=True)
class ChartTooltip:
    """Text that appears when the user points at (or taps) a part of a chart. `start` and `end` are shares of the
    width."""

    start: float
    end: float
    text: str


@dataclass
class Panel:
    """One plot area. Several panels may share the x axis of the last one."""

    x: Axis
    y: Axis
    height: int
    name: str = ""
    marks: list[Markup] = field(default_factory=list)
    labels: list[Markup] = field(default_factory=list)
    tips: Sequence[ChartTooltip] = ()
    rows: int = 0

    def scale_x(self, value: float) -> float:
        """Horizontal position of a value in the drawing."""
        return self.x.scale_to_share(value) * PLOT_WIDTH_UNITS

    def scale_y(self, value: float) -> float:
        """Vertical position of a value in the drawing (0 = top)."""
        return (1 - self.y.scale_to_share(value)) * self.height

    def add_path(self, css_class: str, path_data: str, title: str = "") -> None:
        """Adds a path; `title` names it for those who cannot see it."""
        inner = Markup("<title>{}</title>").format(title) if title else Markup("")
        self.marks.append(Markup('<path class="{}" d="{}">{}</path>').format(css_class, path_data, inner))

    def add_rectangle(self, css_class: str, x0: float, x1: float, y0: float, y1: float) -> None:
        """A rectangle between two x and two y values."""
        left_x, right_x = self.scale_x(x0), self.scale_x(x1)
        top, bottom = self.scale_y(y1), self.scale_y(y0)
        self.add_path(css_class, make_rectangle_path(left_x, right_x, top, bottom))

    def add_vertical_line(self, css_class: str, x_value: float) -> None:
        """A line from bottom to top."""
        self.add_path(css_class, f"M{format_coordinate(self.scale_x(x_value))} 0V{self.height}")

    def add_horizontal_line(
        self, css_class: str, y_value: float, x0: float | None = None, x1: float | None = None
    ) -> None:
        """A line at one y value, from `x0` to `x1`; the whole width without them."""
        left_x = 0.0 if x0 is None else self.scale_x(x0)
        right_x = PLOT_WIDTH_UNITS if x1 is None else self.scale_x(x1)
        self.add_path(
            css_class,
            f"M{format_coordinate(left_x)} {format_coordinate(self.scale_y(y_value))}H{format_coordinate(right_x)}",
        )

    def add_bar_label(self, css_class: str, start_x: float, stop_x: float, label_text: str) -> None:
        """Letters in the middle of a bar that reaches from one x value to another; cut off where it ends."""
        position = self.x.scale_to_share(start_x)
        self.labels.append(
            Markup('<span class="lb {}" style="left:{};width:{}">{}</span>').format(
                css_class,
                format_css_percentage(position),
                format_css_percentage(self.x.scale_to_share(stop_x) - position),
                label_text,
            )
        )

    def add_note_above_plot(self, css_class: str, at_x: float, note_text: str, text_row: int = 0) -> None:
        """Letters above the plot, where no mark can hide them; row 0 is the one nearest to it."""
        self.rows = max(self.rows, text_row + 1)
        self.labels.append(
            Markup('<span class="lb {}" style="left:{};top:{}px">{}</span>').format(
                css_class, format_css_percentage(at_x), -NOTE_ROW_HEIGHT_PX * (text_row + 1), note_text
            )
        )

    def make_step_path(self, x_edges: Sequence[float], y_values: Sequence[float | None]) -> str:
        """Path data of a step line: values[i] holds from edges[i] to edges[i+1]; None leaves a gap."""
        parts: list[str] = []
        open_ = False
        for index, value in enumerate(y_values):
            if value is None:
                open_ = False
                continue
            height = format_coordinate(self.scale_y(value))
            if not open_:
                parts.append(f"M{format_coordinate(self.scale_x(x_edges[index]))} {height}")
            else:
                parts.append(f"V{height}")
            parts.append(f"H{format_coordinate(self.scale_x(x_edges[index + 1]))}")
            open_ = True
        return "".join(parts)

    def make_area_path(
        self, x_edges: Sequence[float], low_values: Sequence[float | None], high_values: Sequence[float | None]
    ) -> str:
        """Path data of the area between two step lines; closed at every gap."""
        parts: list[str] = []
        for start, stop in _iterate_complete_intervals(low_values, high_values):
            span = range(start, stop)
            parts.append(self.make_step_path(x_edges[start : stop + 1], high_values[start:stop]))
            for index in reversed(span):
                right_x, left_x = (
                    format_coordinate(self.scale_x(x_edges[index + 1])),
                    format_coordinate(self.scale_x(x_edges[index])),
                )
                parts.append(f"L{right_x} {format_coordinate(self.scale_y(low_values[index] or 0.0))}H{left_x}")
            parts.append("Z")
        return "".join(parts)

    def render(self) -> Markup:
        """The panel with its y axis; the x axis belongs to the chart."""
        grid = Markup("").join(
            Markup('<path class="grid{}" d="M0 {}H1000"></path>').format(
                "" if tick.position > 0 else " base", format_coordinate((1 - tick.position) * self.height)
            )
            for tick in self.y.ticks
        )
        scale = Markup("").join(
            Markup('<span style="bottom:{}">{}</span>').format(format_css_percentage(tick.position), tick.label)
            for tick in self.y.ticks
        )
        title = Markup('<div class="pn">{}</div>').format(self.name) if self.name else Markup("")
        tips = Markup("").join(_render_tooltip(tip) for tip in self.tips)
        svg = Markup(
            '<svg viewBox="0 0 1000 {}" preserveAspectRatio="none" aria-hidden="true" focusable="false">{}{}</svg>'
        ).format(self.height, grid, Markup("").join(self.marks))
        return Markup(
            '{}<div class="panel" style="height:{}px;margin-top:{}px"><div class="y" aria-hidden="true">{}</div>'
            '<div class="plot">{}<div class="over" aria-hidden="true">{}{}</div></div></div>'
        ).format(title, self.height, NOTE_ROW_HEIGHT_PX * self.rows, scale, svg, Markup("").join(self.labels), tips)


def _render_tooltip(tooltip: ChartTooltip) -> Markup:
    # Tips of the right half open to the left, so that they stay on the page.
    return Markup('<i class="{}" style="left:{};width:{}" data-tip="{}"></i>').format(
        "r" if tooltip.start > 0.5 else "l",
        format_css_percentage(tooltip.start),
        format_css_percentage(max(0.0, tooltip.end - tooltip.start)),
        Markup.escape_lines(tooltip.text),
    )


def _iterate_complete_intervals(
    low_values: Sequence[float | None], high_values: Sequence[float | None]
) -> Iterable[tuple[int, int]]:
    """Runs of indices at which both are known."""
    start: int | None = None
    for index in range(len(high_values) + 1):
        is_known = index < len(high_values) and low_values[index] is not None and high_values[index] is not None
        if is_known and start is None:
            start = index
        elif not is_known and start is not None:
            yield start, index
            start = None


_TICK_CLASSES = {
    (False, False): Markup(""), (True, False): Markup(' class="minor"'), (False, True): Markup(' class="lower"'),
}  # fmt: skip


@dataclass(frozen=True)
class Chart:
    """A figure: panels above one x axis, what it shows in words, its caption, and the values behind it as a table."""

    kind: str
    title: str
    summary: str
    panels: Sequence[Panel]
    x_unit: str = ""
    caption: Markup = EMPTY_MARKUP
    table: Markup = EMPTY_MARKUP
    about: str = ""

    def render(self) -> Markup:
        """The whole figure as HTML."""
        axis = self.panels[-1].x
        ticks = Markup("").join(
            Markup('<span{} style="left:{}">{}</span>').format(
                _TICK_CLASSES[tick.minor, tick.lower], format_css_percentage(tick.position), tick.label
            )
            for tick in axis.ticks
        )
        scale = Markup('<div class="x" aria-hidden="true">{}</div>').format(ticks) if axis.ticks else Markup("")
        unit = Markup('<div class="xu" aria-hidden="true">{}</div>').format(self.x_unit) if self.x_unit else Markup("")
        table = (
            Markup('<details class="values"><summary>{}</summary>{}</details>').format("Values", self.table)
            if self.table
            else Markup("")
        )
        body = Markup("").join(panel.render() for panel in self.panels)
        return Markup(
            '<figure class="chart" data-chart="{}">{}'
            '<div class="frame" role="img" aria-label="{}">{}{}{}</div><figcaption>{}</figcaption>{}</figure>'
        ).format(
            self.kind,
            Markup("<h4>{}</h4>").format(self.title) if self.title else EMPTY_MARKUP,
            self.summary,
            body,
            scale,
            unit,
            self.caption,
            table,
        )


_ROW, _ROW_END = Markup("<tr>"), Markup("</tr>")
_TEXT_CELL, _NUMBER_CELL, _CELL_END = Markup("<td>"), Markup('<td class="n">'), Markup("</td>")


def render_html_table(
    column_titles: Sequence[str], rows: Iterable[Sequence[object]], table_caption: str = "", text_columns: int = 1
) -> Markup:
    """A table; the first `text_columns` columns are words, the others numbers set flush right."""
    head = Markup("").join(
        Markup("<th{}>{}</th>").format(Markup("") if index < text_columns else Markup(' class="n"'), name)
        for index, name in enumerate(column_titles)
    )
    # One flat list of constants and cells: a page of 500 runs with a format string per cell takes four times as long.
    pieces: list[Markup] = []
    for row in rows:
        pieces.append(_ROW)
        for index, cell in enumerate(row):
            pieces += (_TEXT_CELL if index < text_columns else _NUMBER_CELL, _render_table_cell(cell), _CELL_END)
        pieces.append(_ROW_END)
    body = Markup("").join(pieces)
    caption = Markup("<caption>{}</caption>").format(table_caption) if table_caption else Markup("")
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="{}">'
        "<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>"
    ).format(table_caption or "Values", caption, head, body)


def _render_table_cell(cell_value: object) -> Markup:
    if isinstance(cell_value, Markup):
        return cell_value
    return Markup.escape("" if cell_value is None else cell_value)
