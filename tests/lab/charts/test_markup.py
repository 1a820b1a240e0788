# SPDX-License-Identifier: Apache-2.0
"""Text of others is escaped where it becomes part of a page, by all ways into it."""

from __future__ import annotations

from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table

HOSTILE = "a<b>\x1b[2J\n\N{RIGHT-TO-LEFT OVERRIDE}&"
ESCAPED = "a&lt;b&gt;\\x1b[2J\\n\\u202e&amp;"


def test_inserted_text_is_escaped() -> None:
    assert Markup("<i>{}</i>").format(HOSTILE) == f"<i>{ESCAPED}</i>"
    assert Markup(", ").join([HOSTILE, Markup("<br>")]) == f"{ESCAPED}, <br>"
    assert Markup("<br>") + HOSTILE == f"<br>{ESCAPED}"
    assert Markup("<i>%s</i>") % HOSTILE == f"<i>{ESCAPED}</i>"


def test_markup_stays_as_it_is() -> None:
    assert Markup.escape(Markup("<b>\n</b>")) == "<b>\n</b>"
    assert type(Markup("{}").format("a")) is Markup


def test_lines_stay_lines() -> None:
    assert Markup.escape_lines("1 < 2\n\x1b") == "1 &lt; 2\n\\x1b"


def test_long_text_is_cut_after_20_000_characters() -> None:
    assert Markup.escape("x" * 20_000) == "x" * 20_000
    assert Markup.escape("x" * 20_001) == "x" * 20_000 + "\N{HORIZONTAL ELLIPSIS}"


def test_captions_of_tables_are_escaped() -> None:
    assert f"<caption>{ESCAPED}</caption>" in render_html_table(["a"], [], HOSTILE)
