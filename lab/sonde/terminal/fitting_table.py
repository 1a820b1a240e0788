# SPDX-License-Identifier: Apache-2.0
"""Tables for terminals of any width: names, rates and percentages stand whole, words around them give way.

Columns that are right-aligned or may not wrap keep what they need; the others share the rest and fold between words,
never between a number and its unit. Where even that does not fit, each row becomes a few lines of its own: its name,
and under it every cell after the title of its column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text

from sonde.terminal.encoding import escape_as_line, escape_control_characters

_COLUMN_GAP = 2
# A word longer than this may be folded in the middle: paths and sentences of machines.
_MAX_UNBROKEN_WORD_LENGTH = 30
_UNIT_PATTERN = r"(?:[kMGT]i?B/s|[kMGT]?i?B|(?:million )?op/s|files/s|dirs/s|cores?|GiB/s|kIOPS|%|s|ms|µs|ns|min|h)"
_QUANTITY_PATTERN = re.compile(rf"(?<![\w.])([-+−±<]?\d[\d,.]*)[ \u00a0]({_UNIT_PATTERN})(?!\w)")
# Stands for a blank that no line may end at, while a cell is folded.
_NO_BREAK_MARK = "\ue000"


@dataclass(frozen=True)
class _ColumnWidth:
    """A column that was measured: what it needs, what it would like, and whether it may be folded."""

    least: int
    natural: int
    folds: bool


class FittingTable(Table):
    """A table without ruling lines that adapts to the width of the terminal."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [
            [_encode_cell(cell) for cell in row] for row in zip(*(column.cells for column in self.columns), strict=True)
        ]
        heads = [_encode_cell(column.header) for column in self.columns]
        sections = [not any(cell.plain for cell in row[1:]) for row in rows]
        full_rows = [row for row, alone in zip(rows, sections, strict=True) if not alone or len(row) == 1]
        measured = [
            _measure_column(column, head if self.show_header else Text(), [row[index] for row in full_rows])
            for index, (column, head) in enumerate(zip(self.columns, heads, strict=True))
        ]
        room = options.max_width - _COLUMN_GAP * (len(measured) - 1)
        styles = [str(row.style or "") for row in self.rows]
        if sum(item.least for item in measured) > room:
            yield from self._iterate_row_cards(console, options.max_width, heads, rows, styles)
            return
        widths = _distribute_width(measured, room)
        yield from self._split_at_headings(console, widths, heads, rows, sections, styles)

    def _split_at_headings(
        self,
        console: Console,
        column_widths: Sequence[int],
        header_cells: Sequence[Text],
        cell_rows: Sequence[Sequence[Text]],
        is_section_end: Sequence[bool],
        row_styles: Sequence[str],
    ) -> Iterator[RenderableType]:
        """Tables of equal widths, and between them the rows that are a heading and nothing else."""
        part = self._build_table(
            column_widths,
            [_fold_text(console, head, width) for head, width in zip(header_cells, column_widths, strict=True)],
        )
        for row, alone, style in zip(cell_rows, is_section_end, row_styles, strict=True):
            if alone and len(row) > 1:
                if part.rows or part.show_header:
                    yield part
                part = self._build_table(column_widths, None)
                yield row[0]
                continue
            part.add_row(
                *(_fold_text(console, cell, width) for cell, width in zip(row, column_widths, strict=True)), style=style
            )
        if part.rows or part.show_header:
            yield part

    def _build_table(self, column_widths: Sequence[int], folded_header_cells: Sequence[Text] | None) -> Table:
        table = Table(
            box=None,
            pad_edge=False,
            padding=(0, _COLUMN_GAP, 0, 0),
            header_style=self.header_style,
            show_header=self.show_header and folded_header_cells is not None,
        )
        for index, (column, width) in enumerate(zip(self.columns, column_widths, strict=True)):
            head = folded_header_cells[index] if folded_header_cells else ""
            table.add_column(head, justify=column.justify, width=width, no_wrap=True, style=column.style)
        return table

    def _iterate_row_cards(
        self,
        console: Console,
        max_width: int,
        header_cells: Sequence[Text],
        cell_rows: Sequence[Sequence[Text]],
        row_styles: Sequence[str],
    ) -> Iterator[RenderableType]:
        """Each row as its name and its cells, as many on a line as fit."""
        for row, style in zip(cell_rows, row_styles, strict=True):
            name, *cells = row
            if name.plain.strip():
                yield _make_unbreakable_line(name, style)
            items = [
                Text.assemble((f"{head.plain} ", "dim"), cell) if self.show_header and head.plain else cell
                for head, cell in zip(header_cells[1:], cells, strict=True)
                if cell.plain.strip() not in ("", "-")
            ]
            yield from (
                _make_unbreakable_line(item, style)
                for item in _join_texts_into_lines(console, items, max_width - _COLUMN_GAP)
            )


def _encode_cell(cell: object) -> Text:
    """The cell, encoded before it is measured. A text without styles is data and stays on one line."""
    if not isinstance(cell, Text):
        return Text(escape_as_line(cell))
    plain = escape_control_characters(cell.plain)
    return cell.copy() if plain == cell.plain else Text(plain, cell.style)


def _make_unbreakable_line(text: Text, rich_style: str) -> Text:
    """A line that is never cut: a name wider than the terminal continues in the next terminal line."""
    text.no_wrap, text.overflow = True, "ignore"
    if rich_style:
        text.stylize_before(rich_style)
    return text


def _bind_numbers_to_units(text: Text) -> Text:
    """The text with each number tied to its unit."""
    tied = text.copy()
    plain = _QUANTITY_PATTERN.sub(
        lambda result: result[0].replace(" ", _NO_BREAK_MARK).replace("\u00a0", _NO_BREAK_MARK), text.plain
    )
    tied.plain = plain
    return tied


def _fold_text(console: Console, text: Text, max_width: int) -> Text:
    """The text in lines of at most `max_width`, broken between words."""
    lines = list(_bind_numbers_to_units(text).wrap(console, max(1, max_width), overflow="fold"))
    for line in lines:
        line.plain = line.plain.rstrip().replace(_NO_BREAK_MARK, " ")
    return Text("\n").join(lines)


def _measure_column(column: Column, header_cell: Text, cells: Sequence[Text]) -> _ColumnWidth:
    """Minimum and natural width of a column."""
    folds = column.justify != "right" and not column.no_wrap
    natural = max(
        (line.cell_len for cell in (header_cell, *cells) for line in cell.split("\n", allow_blank=True)), default=0
    )
    sentences = [
        len(word)
        for cell in (header_cell, *(cells if folds else ()))
        for word in _bind_numbers_to_units(cell).plain.split()
    ]
    least = min(max(sentences, default=0), _MAX_UNBROKEN_WORD_LENGTH)
    if not folds:
        least = max(least, max((line.cell_len for cell in cells for line in cell.split("\n")), default=0))
    return _ColumnWidth(min(least, natural), natural, folds)


def _distribute_width(columns: Sequence[_ColumnWidth], total_width: int) -> list[int]:
    """Width of each column: its minimum, plus an equal share of the remaining width up to its natural width."""
    widths = [column.least for column in columns]
    remaining = total_width - sum(widths)
    while remaining > 0:
        wanting = [index for index, column in enumerate(columns) if widths[index] < column.natural]
        if not wanting:
            break
        each = max(1, remaining // len(wanting))
        for index in wanting:
            more = min(each, columns[index].natural - widths[index], remaining)
            widths[index] += more
            remaining -= more
    return [max(1, width) for width in widths]


def _join_texts_into_lines(console: Console, texts: Sequence[Text], max_width: int) -> Iterator[Text]:
    """Yields lines of at most `max_width` characters, indented by two, with as many items as fit; long items are
    folded."""
    line = Text()
    for item in texts:
        parts = _fold_text(console, item, max_width).split("\n")
        for index, part in enumerate(parts):
            is_separated = index > 0 or (line.plain and line.cell_len + _COLUMN_GAP + part.cell_len > max_width)
            if is_separated and line.plain:
                yield Text(" " * _COLUMN_GAP) + line
                line = Text()
            line = Text.assemble(line, " " * _COLUMN_GAP, part) if line.plain else part
    if line.plain:
        yield Text(" " * _COLUMN_GAP) + line
