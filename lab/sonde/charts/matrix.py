# SPDX-License-Identifier: Apache-2.0
"""A table of file systems by tests, colored by the ratio of the change, with the number in each field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sonde.charts.markup import Markup


@dataclass(frozen=True)
class MatrixField:
    """`change` is a share; `sure` says that it is more than chance; `text` goes into the field, as a link if given."""

    change: float
    sure: bool
    text: str
    link: str = ""


def _choose_field_css_class(field: MatrixField) -> str:
    """Five steps each way. Unsure fields stay without color, whatever their number."""
    if not field.sure:
        return "plain"
    size = abs(field.change) if field.change < 0 else field.change / (1 + field.change)
    step = 1 + sum(size >= border for border in (0.2, 0.4, 0.6))
    return f"{'down' if field.change < 0 else 'up'}{step}"


def render_matrix(
    row_names: Sequence[str],
    test_and_operation_pairs: Sequence[tuple[str, str]],
    fields: Mapping[tuple[str, tuple[str, str]], MatrixField],
    caption: str,
) -> Markup:
    """Rows are file systems, columns pairs of a test and an operation; fields that were not measured stay empty."""
    tests = list(dict.fromkeys(test for test, _ in test_and_operation_pairs))
    upper = Markup("").join(
        Markup('<th colspan="{}" scope="colgroup">{}</th>').format(
            sum(t == test for t, _ in test_and_operation_pairs), test
        )
        for test in tests
    )
    ordered = [column for test in tests for column in test_and_operation_pairs if column[0] == test]
    lower = Markup("").join(Markup('<th scope="col">{}</th>').format(op) for _, op in ordered)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            row, Markup("").join(_render_field(fields.get((row, column))) for column in ordered)
        )
        for row in row_names
    )
    return Markup(
        '<figure class="chart" data-chart="matrix"><div class="scroll" tabindex="0" role="region" aria-label="{}">'
        '<table class="matrix"><thead><tr><td></td>{}</tr><tr><td></td>{}</tr></thead><tbody>{}</tbody></table></div>'
        "<figcaption>Colored: more than chance, darker for more. ▼ slower, ▲ faster.</figcaption></figure>"
    ).format(caption, upper, lower, body)


def _render_field(field: MatrixField | None) -> Markup:
    if field is None:
        return Markup('<td class="none">·</td>')
    arrow = ("▼ " if field.change < 0 else "▲ ") if field.sure else ""
    text: str | Markup = field.text
    if field.link:
        text = Markup('<a href="{}">{}</a>').format(field.link, text)
    return Markup('<td class="{}">{}{}</td>').format(_choose_field_css_class(field), arrow, text)
